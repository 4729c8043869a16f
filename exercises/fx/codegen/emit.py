"""Stage 05, codegen: the nodes of a graph as the statements of a function.

Each node is one line, in the order of the graph.  A local variable would keep
its tensor until the function returns, so a line ends by setting to None the
variables that no later line reads:

    add = x + param;  x = param = None

There is one method for each opcode, which returns the statement.  The line's
end is the same for all opcodes, and `write` adds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import setitem
from typing import Final

from ..linked_list.linked_list import LinkedList
from ..linked_list.opcodes import OPCODES, check_target
from ..node import Node
from ..recording.operators import Operator, syntax_of
from ..use_def.lint import last_users
from ..use_def.values import AnyValue, Argument
from .argument_text import ArgumentPrinter, type_text
from .names import GlobalNames, LocalNames, exact, is_attribute_name, quoted

INDENT: Final = "    "
COUNTER: Final = "# COUNTER: "
"""Begins a comment with the index of the next node, for edited bodies."""


class Emitter:
    """Writes the nodes of one graph, once.

    Attributes:
        variables: the variable of each node.
        globals: the objects that the code names.
        parameters: the parameters, with annotation and default.
        returns: the return annotation with its arrow, or nothing.
        wrapped: the leaf functions that are called, as ordered keys.
        pieces: the body. A statement and the end of its line are a piece
            each, because functions of users that edit the body expect it.
        origins: for each line of the body the index of its node.
        counting: whether a comment with its index precedes each node.

    torch.fx: graph.py, CodeGen._gen_python_code
    """

    def __init__(
        self,
        nodes: LinkedList[Node],
        root: str,
        write_output: Callable[..., str],
        taken: Iterable[str] = (),
        *,
        counting: bool = False,
    ) -> None:
        """Name everything; `run` writes.

        Args:
            nodes: all nodes of the graph.
            root: how the code calls the module.
            write_output: writes the return statement: `CodeGen._return`.
            taken: further names that a global must not have.
            counting: write a comment with its index in front of each node.
        """
        self.nodes = nodes
        self.variables: LocalNames = LocalNames(nodes, root)
        self.globals: GlobalNames = GlobalNames(
            self.variables.taken() | {*taken}
        )
        self.parameters: list[str] = []
        self.returns: str = ""
        self.wrapped: dict[str, None] = {}
        self.pieces: list[str] = []
        self.origins: list[int | None] = []
        self.counting = counting
        self._root = root
        self._write_output = write_output
        self._text = ArgumentPrinter(self.variables, self.globals).text
        self._spellings: dict[int, str | Operator] = {}
        self._last_users = last_users(nodes)

    def run(self) -> None:
        """Write all nodes.

        Raises:
            RuntimeError: a node cannot be written as Python.
            NotImplementedError: a node has an unknown opcode.
        """
        for index, node in enumerate(self.nodes):
            self.write(index, node)

    def write(self, index: int, node: Node) -> None:
        """Write one node: its statement, if it has one, and the line's end."""
        if self.counting:
            self.pieces.append(f"{COUNTER}{index}\n")
        op = node._op
        if op not in OPCODES:
            raise NotImplementedError(f"node: {op} {node.target}")
        statement = getattr(self, op)(node)
        if op == "placeholder":
            self.write_line(statement, index)
            return
        self.pieces += (statement, self._end(node))
        self.origins.append(index)
        if op == "output":
            self.origins += [index] * statement.count("\n")

    def write_line(self, text: str, index: int | None) -> None:
        """Write lines that do not belong to a node, line ends included."""
        if text:
            self.pieces.append(text)
            self.origins += [index] * text.count("\n")

    # -- one method for each opcode ----------------------------------------

    def placeholder(self, node: Node) -> str:
        """A parameter; and a line, if the variable has another name."""
        raise NotImplementedError("stage 05: Emitter.placeholder")

    def get_attr(self, node: Node) -> str:
        """`weight = self.linear.weight`."""
        return self._assign(node, self._attribute(self._root, path_of(node)))

    def call_module(self, node: Node) -> str:
        """`linear = self.linear(x)`."""
        module = self._attribute(self._root, path_of(node))
        arguments = self._arguments(node, node._args)
        return self._assign(node, f"{module}({arguments})")

    def call_method(self, node: Node) -> str:
        """`clamp = x.clamp(min = 0.0)`.

        Raises:
            RuntimeError: there is no first argument, the object.
        """
        args = node._args
        if not args:
            raise RuntimeError(
                f"Node {node} calls the method {node.target!r} of nothing: "
                "its first argument must be the object"
            )
        method = self._attribute(self._primary(args[0]), path_of(node))
        arguments = self._arguments(node, args[1:])
        return self._assign(node, f"{method}({arguments})")

    def call_function(self, node: Node) -> str:
        """`add = x + y`, `name = x.name`, `relu = torch.relu(x)`.

        An operator where Python has syntax for it, a dot for a getattr, else
        a call. If that calls a wrapped function, `wrapped` gets its name.
        """
        target, args = node._target, node._args
        spelling = self._spellings.get(id(target)) or self._spell(node)
        if isinstance(spelling, Operator):
            if has_syntax(spelling, node, self._last_users):
                return self._operator(node, spelling)
            spelling = self.globals.name_of(target)
        if target is getattr and is_attribute_access(node):
            return self._assign(node, f"{self._primary(args[0])}.{args[1]}")
        if node.meta.get("is_wrapped") and spelling.isidentifier():
            self.wrapped[spelling] = None
        arguments = self._arguments(node, args)
        return self._assign(node, f"{spelling}({arguments})")

    def output(self, node: Node) -> str:
        """`return relu`."""
        if not node.args:
            raise RuntimeError(
                f"Node {node} returns nothing: its first argument must be "
                "what the function returns, which may be None"
            )
        if node.type is not None:
            self.returns = f" -> {type_text(node.type, self.globals)}"
        return self._write_output(
            node.args[0],
            self.variables,
            descs=self._descriptions(node),
            repr_fn=self._text,
        )

    # -- parts of statements -----------------------------------------------

    def _assign(self, node: Node, expression: str) -> str:
        """The variable of the node, annotated, with its value."""
        return f"{self.variables[node]}{self._annotation(node)} = {expression}"

    def _annotation(self, node: Node) -> str:
        """The type of the node's value, if it is known."""
        if node.type is None:
            return ""
        return f" : {type_text(node.type, self.globals)}"

    def _spell(self, node: Node) -> str | Operator:
        """The name of the function that a node calls, or its syntax."""
        target = node._target
        check_target(node.op, target, node.name)
        spelling = syntax_of(target) or self.globals.name_of(target)
        self._spellings[id(target)] = spelling
        return spelling

    def _operator(self, node: Node, operator: Operator) -> str:
        """The operator's syntax, with the operands in it."""
        operands = [*map(self._text, node._args)]
        if operator.name == "pow" and operands[0].startswith("-"):
            operands[0] = f"({operands[0]})"  # -1 ** x is -(1 ** x)
        expression = operator.template.format(*operands)
        if operator.in_place:
            return f"{expression};  {self._assign(node, operands[0])}"
        return self._assign(node, expression)

    def _descriptions(self, node: Node) -> Sequence[str] | None:
        """What each item of the output is, one a line; None: on one line."""
        return None

    def _arguments(self, node: Node, args: tuple[Argument, ...]) -> str:
        """What goes between the parentheses of a call."""
        kwargs = node._kwargs
        parts = [*map(self._text, args)]
        for key in kwargs:
            if not is_attribute_name(key):
                raise RuntimeError(
                    f"Node {node} has the keyword {key!r}, which no call in "
                    "Python can have: give node.kwargs another key"
                )
            parts.append(f"{key} = {self._text(kwargs[key])}")
        return ", ".join(parts)

    def _primary(self, arg: Argument) -> str:
        """An argument, written so that a dot can follow it."""
        text = self._text(arg)
        return f"({text})" if text[0] in "-0123456789" else text

    def _attribute(self, owner: str, path: str) -> str:
        """`self.layers`, or `getattr(self, "0")` if a dot is impossible."""
        for name in path.split("."):
            if is_attribute_name(name):
                owner = f"{owner}.{name}"
            else:
                getattr_ = self.globals.builtin("getattr")
                owner = f"{getattr_}({owner}, {quoted(name)})"
        return owner

    # -- freeing -----------------------------------------------------------

    def _end(self, node: Node) -> str:
        """The end of a node's line, which frees values after their last use.

        A line break, or `;  x = y = None` and a line break. The values are
        those that no later node uses; a node without users frees itself,
        last. The output frees nothing, because nothing runs after it.
        """
        raise NotImplementedError("stage 05: Emitter._end")


# -- what syntax there is -----------------------------------------------------


_INDEXED: Final = (Node, tuple, list, dict, str, bytes)
"""Types of what may come before brackets; Python warns of `1[0]`."""


def has_syntax(
    operator: Operator, node: Node, last_users: Mapping[Node, Node]
) -> bool:
    """Whether a call of an operator can be written with its syntax.

    Python warns of brackets behind a value that cannot have any. The left side
    of an in-place operator must be a variable that no later line reads: after
    `n += 1` it is another number, but its node still stands for the old one.
    And `x[0] = 1` has no value that a later line could use.

    Args:
        operator: the syntax.
        node: the call.
        last_users: for each value, the last node to use it.
    """
    raise NotImplementedError("stage 05: has_syntax")


def is_attribute_access(node: Node) -> bool:
    """Whether a call of getattr can be written with a dot."""
    args = node._args
    if node._kwargs or len(args) != 2:
        return False
    name = args[1]
    return type(name) is str and is_attribute_name(name)


def path_of(node: Node) -> str:
    """The target of a node whose opcode wants a string."""
    target: AnyValue = node._target
    if not isinstance(target, str):
        check_target(node.op, target, node.name)  # raises
    return exact(target)
