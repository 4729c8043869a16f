"""Stage 05, codegen: CodeGen, from a graph to the source of a function.

    graph.python_code("self").src

        def forward(self, x):
            param = self.param
            add = x + param;  x = param = None
            relu = torch.relu(add);  add = None
            return relu

The emitter writes the body.  `CodeGen` adds what comes before it, such as the
def line.  Users derive from it to change the signature, the return statement,
and how a caller's inputs and outputs become the graph's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from types import MappingProxyType

from ..linked_list.linked_list import LinkedList
from ..node import Node
from ..tracing.torch_marks import wrap_for
from ..use_def.annotations import signature_of
from ..use_def.lint import parameter_problems
from ..use_def.protocols import CodeOptions, PythonCode, TransformCodeFunc
from ..use_def.values import AnyValue, Argument
from .emit import COUNTER, INDENT, Emitter
from .names import PREFILLED, LocalNames


class CodeGen:
    """Writes graphs out as Python functions; subclass it to change how.

    torch.fx: graph.py, CodeGen
    """

    emitter_of: Callable[
        [LinkedList[Node], CodeOptions], Callable[..., Emitter]
    ] = staticmethod(lambda nodes, options: Emitter)
    """Chooses what writes a graph's body: what is necessary and no more.
    `import fx` puts a choice here that knows emitters for readable code, and
    for arguments in boxes."""

    _body_transformer: TransformCodeFunc | None = None
    _func_name: str = "forward"
    _spelled: Mapping[str, str] = MappingProxyType({n: n for n in PREFILLED})

    # -- what a subclass can change ----------------------------------------

    def gen_fn_def(
        self,
        free_vars: list[str],
        maybe_return_annotation: str,
        *,
        expanded_def: bool = False,
    ) -> str:
        """The first line of the function, and what comes before the body.

        Args:
            free_vars: the parameters, with annotation and default.
            maybe_return_annotation: " -> int", or nothing.
            expanded_def: write one parameter a line.

        torch.fx: graph.py, CodeGen.gen_fn_def
        """
        if free_vars[:1] != ["self"]:
            free_vars.insert(0, "self")
        parameters = ", ".join(free_vars)
        if expanded_def:
            lines = [parameter_line(parameter) for parameter in free_vars]
            parameters = f"\n{''.join(lines)}"
        return f"def {self._func_name}({parameters}){maybe_return_annotation}:"

    def generate_output(
        self,
        output_args: Argument,
        *,
        descs: Sequence[str] | None = None,
        repr_fn: Callable[[object], str] | None = None,
    ) -> str:
        """The return statement.

        Args:
            output_args: what the graph returns.
            descs: a comment for each item of it, or None for one line.
            repr_fn: writes an argument as Python.

        torch.fx: graph.py, CodeGen.generate_output
        """
        return f"return {output_text(output_args, descs, repr_fn or repr)}"

    def process_inputs(self, *args: AnyValue) -> AnyValue:
        """What the placeholders get if the function is called with `args`.

        `f(*args)` is `process_outputs(graph run on process_inputs(*args))`.

        torch.fx: graph.py, CodeGen.process_inputs
        """
        return args

    def process_outputs(self, outputs: AnyValue) -> AnyValue:
        """What the function returns when the graph returns `outputs`.

        torch.fx: graph.py, CodeGen.process_outputs
        """
        return outputs

    def additional_globals(self) -> list[tuple[str, AnyValue]]:
        """Names that the text of a subclass uses, with their objects.

        torch.fx: graph.py, CodeGen.additional_globals
        """
        return []

    def module_attributes(self) -> dict[str, AnyValue]:
        """Attributes of the module that the text of a subclass reads."""
        return {}

    def _own_parameters(self) -> Iterable[str]:
        """Parameters of the function that are not placeholders."""
        return ()

    # -- putting it together -----------------------------------------------

    def _gen_python_code(
        self, nodes: LinkedList[Node], root_module: str, options: CodeOptions
    ) -> PythonCode:
        """The function that the nodes are, as source and globals.

        A graph without a statement has the body `pass`. From then on
        `_spelled` says how this code writes the prefilled globals.

        Args:
            nodes: all nodes of the graph.
            root_module: how the code finds the module, "self" for example.
            options: what to show beyond what is necessary.

        Raises:
            RuntimeError: the graph cannot be written as Python.

        torch.fx: graph.py, CodeGen._gen_python_code
        """
        self._check(nodes)
        emitter = self._emitter(nodes, root_module, options)
        self._spelled = emitter.globals.spelled
        emitter.run()
        if not emitter.origins:
            emitter.write_line("pass\n", len(nodes) - 1 if nodes else None)
        wraps = _wrap_statements(emitter)
        body, origins = self._body(emitter)
        for name, value in self.additional_globals():
            emitter.globals.claim(name, value)
        definition = call_override(
            self.gen_fn_def,
            emitter.parameters,
            emitter.returns,
            expanded_def=options.expanded_def,
        )
        first_line = definition.count("\n") + 1
        return PythonCode(
            f"\n{wraps}\n\n{definition}\n{body}",
            emitter.globals.values,
            dict(enumerate(origins, first_line)),
            wraps.count("\n") + 4,
        )

    def _check(self, nodes: LinkedList[Node]) -> None:
        """Raise if the placeholders cannot be parameters of a function."""
        graph = next((node.graph for node in nodes), None)
        if graph is not None and type(self).gen_fn_def is CodeGen.gen_fn_def:
            for problem in parameter_problems(graph):
                raise problem.kind(problem.message)

    def _emitter(
        self, nodes: LinkedList[Node], root_module: str, options: CodeOptions
    ) -> Emitter:
        """What writes the body."""
        taken = {*self._own_parameters(), self._func_name, "__builtins__"}
        arguments = nodes, root_module, self._return, taken
        counting = self._body_transformer is not None
        kind = self.emitter_of(nodes, options)
        return kind(*arguments, counting=counting)

    def _return(
        self,
        output_args: Argument,
        variables: LocalNames,
        *,
        descs: Sequence[str] | None,
        repr_fn: Callable[[object], str],
    ) -> str:
        """Call `generate_output` with the keywords that it accepts.

        The oldest overrides write `f"return {value!r}"`, and a node's name need
        not be its variable: while a user's method runs, `repr(node)` is that.
        """
        method = self.generate_output
        nodes = () if _is_ours(method) else variables
        before = {node: node._repr_fn for node in nodes}  # noqa: SLF001
        try:
            for node in nodes:
                node._repr_fn = variables.__getitem__  # noqa: SLF001
            return call_override(
                method, output_args, descs=descs, repr_fn=repr_fn
            )
        finally:
            for node, written in before.items():
                node._repr_fn = written  # noqa: SLF001

    def _body(self, emitter: Emitter) -> tuple[str, list[int | None]]:
        """The indented body, and the index of the node for each line."""
        origins = emitter.origins
        if self._body_transformer is None:
            text = "".join(emitter.pieces)
            origins.append(origins[-1])
        else:
            pieces = self._body_transformer(emitter.pieces)
            text, origins = without_counters("".join(pieces))
        blank = len(text) - len(text.lstrip("\n"))
        lines = text[blank:].replace("\n", f"\n{INDENT}")
        return f"{INDENT}{lines}", origins[blank:]


def _wrap_statements(emitter: Emitter) -> str:
    """Lines that wrap the leaf functions of the graph again.

    Without these lines, a trace of the generated function would look into the
    leaf functions.  What a library marked for torch.fx stays marked for it.
    """
    lines, names = [], emitter.globals
    for leaf in emitter.wrapped:
        again = wrap_for(names.values[leaf])
        lines.append(f'{names.name_of(again, "wrap")}("{leaf}")')
    return "\n".join(lines)


# -- the text of the parts ---------------------------------------------------


def parameter_line(parameter: str) -> str:
    """A line with one parameter; a comment goes behind the comma."""
    text, hash_, comment = parameter.partition("#")
    comment = f"  # {comment.lstrip()}" if hash_ else ""
    return f"{INDENT}{text.rstrip()},{comment}\n"


def output_text(
    value: Argument,
    descs: Sequence[str] | None,
    repr_fn: Callable[[object], str],
) -> str:
    """What is returned, on a line for each item if there are comments."""
    if descs is None or not isinstance(value, list | tuple):
        return repr_fn(value)
    left, right = "()" if isinstance(value, tuple) else "[]"
    comments = [f"  # {desc}" for desc in descs[: len(value)]]
    lines = [
        f"{INDENT}{repr_fn(item)},{comment}\n"
        for item, comment in zip_longest(value, comments, fillvalue="")
    ]
    return f"{left}\n{''.join(lines)}{right}"


_counter = re.compile(rf"{COUNTER}(\d+)")


def without_counters(text: str) -> tuple[str, list[int | None]]:
    """The text without the counters' lines; what they said of the others."""
    lines: list[str] = []
    origins: list[int | None] = []
    index = None
    for line in text.split("\n"):
        if found := _counter.fullmatch(line.strip()):
            index = int(found[1])
        else:
            lines.append(line)
            origins.append(index)
    return "\n".join(lines), origins


# -- what users have written -------------------------------------------------


def call_override(
    method: Callable[..., str], *args: AnyValue, **kwargs: AnyValue
) -> str:
    """Call a method that may have been written for fewer keywords.

    torch.fx: graph.py, CodeGen._call_method_with_signature_check
    """
    if not _is_ours(method):
        known = signature_of(method).parameters
        kwargs = {key: kwargs[key] for key in kwargs if key in known}
    return method(*args, **kwargs)


def _is_ours(method: Callable[..., str]) -> bool:
    """Whether a method is from this folder, not a user's."""
    module = str(getattr(method, "__module__", ""))
    return module.rpartition(".")[0] == __package__
