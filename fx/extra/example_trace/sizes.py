"""Extra: the sizes of inputs, which stay free in a trace.

Each size of an input that may vary is a symbol to torch, and a call of `size`
in the graph.  What Python computes of sizes is an expression of the symbols,
which is written as Python (`text`), and that text becomes nodes (`node`):

    x.shape[1] // 2    →    size = x.size(1);  floordiv = size // 2

Parsing that text is less work than it seems: torch has a printer for
each of its functions, and the guards need the same text. Torch takes a symbol
for a number that is not 0, so an input with an empty dimension is refused,
unless the example has one.

What was asked about sizes of inputs is checked before the graph runs; what was
asked about a size that a leaf has computed is checked behind the leaf.
"""

from __future__ import annotations

import ast
import builtins
import math
import operator
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import torch
from torch import nn

from ...graph import Graph
from ...node import Node
from ...proxy import TraceError
from ...recording import frames
from ...torch_private.fake_tensors import FakeTensorMode
from ...torch_private.overloads import assert_
from ...torch_private.symbolic_sizes import (
    SYMBOLIC,
    constant,
    expression_of,
    new_env,
    new_size,
)
from ...use_def.values import Argument, Value
from .guards import Guard, answered, of_kind

Dims: TypeAlias = Mapping[int, Value] | None
"""Which sizes of a tensor may vary, by their place; None for all of them."""


class Sizes:
    """The symbols of a trace, and what was asked about them.

    Attributes:
        mode: makes the fake tensors.
        guards: what was asked, and answered for the example.
        erasable: nodes that may be of no use.
    """

    def __init__(
        self,
        graph: Graph,
        erasable: set[Node],
        opened: Callable[[], list[Value]],
    ) -> None:
        """Begin without symbols.

        Args:
            graph: where sizes are computed.
            erasable: where to note nodes that may be of no use.
            opened: gives the last argument of a check inside of blocks.
        """
        self.erasable: set[Node] = erasable
        self._graph = graph
        self._opened = opened
        self._env = new_env(self._note)
        self.mode: FakeTensorMode = FakeTensorMode(
            allow_non_fake_inputs=True, shape_env=self._env
        )
        self.guards: list[Guard] = []
        self._unbacked_asked: dict[str, str] = {}
        self._nodes: dict[str, Argument] = {}
        self._dims: dict[Value, tuple[str, Value]] = {}

    def finish(self) -> None:
        """Forget the numbers, which the `meta` of nodes would keep alive."""
        self._env.known.clear()
        self._dims.clear()

    # -- tensors -----------------------------------------------------------

    def fake(self, tensor: torch.Tensor, node: Node, dims: Dims) -> Value:
        """An input without data, whose sizes are symbols where they may vary.

        Args:
            tensor: the example.
            node: its value at run time.
            dims: which sizes may vary.
        """
        free = [*(range(tensor.dim()) if dims is None else dims)]
        if not _may_be_free(tensor):
            free = []
        sizes: list[Value] = [*tensor.shape]
        for place in free:
            dim = None if dims is None else dims[place]
            sizes[place] = self._size(node, place, sizes[place], dim)
        for place, size in enumerate(tensor.shape):
            if place not in free:
                self.guards.append(Guard(f"{node}.size({place})", size))
        if free:  # torch takes it that a symbol is not 0
            self.guards.append(Guard(f"0 in {node}.shape", value=False))
            return self._made(tensor, sizes)
        return self.mode.from_tensor(tensor, static_shapes=True)

    def result(self, tensor: torch.Tensor, node: Node) -> tuple[Node, Value]:
        """What stands for a result that is known by made-up data alone.

        The graph checks what the program asks about its sizes, and that its
        kind is the same.

        Returns:
            The node that gives it when that is checked, and the fake tensor.

        Raises:
            TraceError: it is empty, or of a kind with no sizes.
        """
        if not _may_be_free(tensor) or node.graph is not self._graph:
            raise TraceError(
                f"{node} can only be run on data, and its result on some that "
                f"were made up, of shape {tuple(tensor.shape)}, says too "
                "little. It must not be empty, nor be computed in a function "
                f"that is given to torch\n  in\n  {frames.where()}"
            )
        kind = node, tensor.dtype, tensor.dim(), *self._opened()
        node = node.graph.call_function(of_kind, kind)
        sizes = []
        for place, value in enumerate(tensor.shape):
            size = self._size(node, place, value, None)
            self._env.late.add(expression_of(size))
            sizes.append(size)
        return node, self._made(tensor, sizes)

    def _made(self, tensor: torch.Tensor, sizes: list[Value]) -> torch.Tensor:
        """A tensor without data, like another one but for its sizes."""
        kind: Value = {"dtype": tensor.dtype, "device": tensor.device}
        with self.mode, torch.no_grad():
            fake = torch.empty_strided(sizes, _strides(tensor, sizes), **kind)
        return fake.requires_grad_(tensor.requires_grad)

    def _size(self, node: Node, place: int, value: int, dim: Value) -> Value:
        """A size that may vary, as a user's `torch.export.Dim` says, if any."""
        text = f"{node}.size({place})"
        name = getattr(dim, "__name__", None)
        if name in self._dims:
            first, size = self._dims[name]
            self.guards.append(Guard(f"{text} == {first}", value=True))
            return size
        size = new_size(self._env, text, value)
        self.mode.cache_enabled = False  # with symbols, it costs more than not
        size_node = self._graph.call_method("size", (node, place))
        size_node.meta["val"] = value
        self.erasable.add(size_node)
        self._nodes[text] = size_node
        if name is not None:
            self._dims[name] = text, size
            for limit, sign in ((dim.min, ">="), (dim.max, "<=")):
                if isinstance(limit, int) and 0 < limit < 2**40:
                    told = f"{text} {sign} {limit}"
                    self.guards.append(Guard(told, value=True))
        return size

    # -- what is computed --------------------------------------------------

    def text(self, number: Value) -> str:
        """How a SymInt, SymFloat or SymBool is computed, as Python."""
        return self._env.written(expression_of(number))

    def node(self, number: Value) -> Argument:
        """The node that computes a SymInt or the like, or a constant."""
        return self._of_text(ast.parse(self.text(number), mode="eval").body)

    def can_write(self, value: Value) -> bool:
        """Whether nodes can compute a size, or each size of a shape."""
        try:
            for number in value if isinstance(value, tuple) else (value,):
                if isinstance(number, SYMBOLIC):
                    self.node(number)
        except KeyError:
            return False
        return True

    def _of_text(self, tree: ast.expr) -> Argument:
        """The node of a piece of text, made when it is first needed."""
        text = ast.unparse(tree)
        if text not in self._nodes:
            self._nodes[text] = self._new_node(tree)
        return self._nodes[text]

    def _new_node(self, tree: ast.expr) -> Argument:
        """A node of a piece of text, or a constant.

        Raises:
            KeyError: no node can say it.
        """
        if isinstance(tree, ast.Constant):
            return tree.value
        if isinstance(tree, ast.Name):
            return self._named(tree)
        if isinstance(tree, ast.Call):
            sides, function = tree.args, self._named(tree.func)
        else:
            inside = [*ast.iter_child_nodes(tree)]
            sides = [child for child in inside if isinstance(child, ast.expr)]
            kinds = (type(child) for child in inside if child not in sides)
            function = _OPERATORS[next(kinds, ast.expr)]
        if isinstance(tree, ast.BoolOp) and tree.values[2:]:
            sides = [sides[0], ast.BoolOp(tree.op, tree.values[1:])]
        args = tuple(map(self._of_text, sides))
        if any(isinstance(arg, Node) for arg in args):
            return self._graph.call_function(function, args)
        return function(*args)

    def _named(self, tree: ast.expr) -> Value:
        """What an expression names: a function, or a type."""
        module, _, name = ast.unparse(tree).rpartition(".")
        return vars(_MODULES[module])[name]

    # -- what is asked -----------------------------------------------------

    def _note(self, text: str, value: Value, is_unbacked: bool) -> None:
        """Note what ShapeEnv relies on from now on."""
        if not is_unbacked:
            self.guards.append(Guard(text, value, frames.where()))
        else:
            told = f"({text}) == {constant(value)}"
            self._unbacked_asked[text if value is True else told] = (
                frames.where()
            )

    def ask_input(self, text: str, answer: Value) -> None:
        """Note what was asked of an input, and the answer.

        Args:
            text: the question, as Python.
            answer: a constant, a number computed of sizes, or a tuple.
        """
        if isinstance(answer, SYMBOLIC):
            text, answer = f"{text} == {self.text(answer)}", True
        elif isinstance(answer, tuple):
            for place, item in enumerate(answer):
                self.ask_input(f"{text}[{place}]", item)
            return
        self.guards.append(Guard(text, answer, frames.where()))

    def check_unbacked(self) -> None:
        """Let the graph check what was asked of sizes that it computes."""
        for text, line in self._unbacked_asked.items():
            node = self._of_text(ast.parse(text, mode="eval").body)
            message = f"the trace relied on {text}, asked at {line}"
            holds = self._graph.call_function(answered, (node, True, message))
            self._graph.call_function(assert_, (holds, ""))


_OPERATORS: Final[dict[type, Callable[..., Value]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
    ast.And: operator.and_,
    ast.Or: operator.or_,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
"""Syntax → the function of a node."""

_MODULES: Final = {"": builtins, "math": math, "torch": torch}
"""Where expressions find what they name."""


def _may_be_free(tensor: torch.Tensor) -> bool:
    """Whether a tensor's sizes can be symbols: it is a plain one with data."""
    is_plain = type(tensor) in (torch.Tensor, nn.Parameter)
    return is_plain and tensor.layout == torch.strided and 0 not in tensor.shape


def _strides(tensor: torch.Tensor, sizes: list[Value]) -> list[Value]:
    """The strides of a tensor with other sizes: in the same order, if dense."""
    strides: list[Value] = [*tensor.stride()]
    order = sorted(
        range(tensor.dim()), key=lambda i: (strides[i], tensor.size(i))
    )
    number, new = 1, 1
    for place in order:
        if strides[place] != number and tensor.size(place) != 1:
            return strides  # not dense: as in the example
        number *= tensor.size(place)
    new_strides: list[Value] = [*strides]
    for place in order:
        new_strides[place] = new
        new = new * sizes[place]
    return new_strides
