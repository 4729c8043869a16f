"""Extra: what a program asks while it is traced, and who answers later.

A call that gives a tensor becomes a node.  A call that gives something else is
a question: the answer decides what the program does next, so it has to be the
same whenever the graph is called.

    if h.dtype == torch.half:    →    dtype = h.dtype
                                      answered(dtype, torch.float32, "…")

What is asked of an input follows from what each guard checks, or is a guard.
All else is asked again where the graph computes it. The dtype of a result may
be decided by a parameter, which `gm.double()` changes, or by autocast; its
strides may not be those of a fake tensor. Only a shape is asked no second time
if it was computed of inputs alone, or of what was asked.

Modes and defaults of torch are guards if the program asked, by whatever name it
has imported the function. Behind a block that switches one, they are asked in
the graph. What nobody has asked is not compared: a graph that was traced
outside of autocast may be called inside.

Sizes are dynamic.  Each one that may vary is a symbol to torch, and a call of
`size` in the graph.  What Python computes of sizes is an expression of the
symbols, which is written as Python (`text`), and that text becomes nodes
(`node`):

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
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType, NoneType
from typing import TYPE_CHECKING, Final, TypeAlias

import torch
from torch import nn

from ...graph import Graph
from ...node import Node
from ...proxy import TraceError
from ...recording import frames
from ...recording.operators import magic_methods
from ...torch_private import watching
from ...torch_private.fake_tensors import FakeTensorMode, unset_fake_temporarily
from ...torch_private.overloads import assert_
from ...torch_private.pytree import pytree
from ...torch_private.symbolic_sizes import (
    SYMBOLIC,
    constant,
    expression_of,
    new_env,
    new_number,
    new_size,
    specialize,
)
from ...tracing.wrapping import original_of
from ...use_def.values import AnyValue, Argument
from . import errors
from .calls import Call
from .guards import OF_MODES, Guard, answered, check, of_kind

if TYPE_CHECKING:
    from .recorder import Recorder

Dims: TypeAlias = Mapping[int, AnyValue] | None
"""Which sizes of a tensor may vary, by their place; None for all of them.

With each is its `torch.export.Dim`, or whether it must stay free.
"""


class Sizes:
    """The symbols of a trace, and what was asked about them.

    Attributes:
        mode: makes the fake tensors.
        guards: what was asked, and answered for the example.
        erasable: nodes that may be of no use.
        marked: how a size is written that must stay free → the size.
        fixed: which of these the program has fixed → how.
    """

    def __init__(
        self,
        graph: Graph,
        erasable: set[Node],
        opened: Callable[[], list[AnyValue]],
        undecided: Callable[[Exception], None],
    ) -> None:
        """Begin without symbols.

        Args:
            graph: where sizes are computed.
            erasable: where to note nodes that may be of no use.
            opened: gives the last argument of a check inside of blocks.
            undecided: is given the error for a question that values decide.
        """
        self.erasable: set[Node] = erasable
        self._graph = graph
        self._opened = opened
        self._env = new_env(self._note, self._defer, undecided)
        self.mode: FakeTensorMode = FakeTensorMode(
            allow_non_fake_inputs=True, shape_env=self._env
        )
        self.guards: list[Guard] = []
        self.marked: dict[str, AnyValue] = {}
        self.fixed: dict[str, Guard] = {}
        self._unbacked_asked: dict[str, str] = {}
        self._deferred: list[tuple[AnyValue, str]] = []
        self._nodes: dict[str, Argument] = {}
        self._dims: dict[AnyValue, tuple[str, AnyValue]] = {}

    def finish(self) -> None:
        """Forget the numbers, which the `meta` of nodes would keep alive."""
        self._env.known.clear()
        self._dims.clear()
        self.marked.clear()

    # -- tensors -----------------------------------------------------------

    def fake(self, tensor: torch.Tensor, node: Node, dims: Dims) -> AnyValue:
        """An input without data, whose sizes are symbols where they may vary.

        Args:
            tensor: the example.
            node: its value at run time.
            dims: which sizes may vary.
        """
        free = [*(range(tensor.dim()) if dims is None else dims)]
        if not _may_be_free(tensor):
            if dims and any(dims.values()):
                raise TypeError(
                    f"dynamic= says that sizes of {node} may vary, and those "
                    "of an example that is empty, sparse or of a class of its "
                    "own are fixed"
                )
            free = []
        sizes: list[AnyValue] = [*tensor.shape]
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

    def number(self, value: AnyValue, node: Node, *, must: bool) -> AnyValue:
        """An input that is a number which may vary.

        Args:
            value: the example, an int or a float.
            node: its value at run time.
            must: whether it must stay free.
        """
        kind, text = type(value), f"{node}"
        if not -(2**63) <= value < 2**63 and kind is int:
            raise TypeError(f"dynamic= frees {text}, which has over 64 bits")
        symbolic = "torch.SymInt" if kind is int else "torch.SymFloat"
        asked = f"isinstance({text}, {kind.__name__} | {symbolic})"
        self.guards.append(Guard(asked, value=True))
        self.guards.append(Guard(f"isinstance({text}, bool)", value=False))
        self._nodes[text], number = node, new_number(self._env, text, value)
        if must:
            self.marked[text] = number
        return number

    def result(self, tensor: torch.Tensor, node: Node) -> tuple[Node, AnyValue]:
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

    def name(self, node: Node, tensor: torch.Tensor) -> bool:
        """Let the sizes that only a node's value has be asked of it.

        Returns:
            Whether a size depends on values.
        """
        env = self._env
        if env.unbacked <= env.texts.keys() or node.graph is not self._graph:
            return self.depends_on_values(tensor)
        for place, size in enumerate(tensor.shape):
            symbol = getattr(getattr(size, "node", None), "_expr", None)
            if symbol in env.unbacked and symbol not in env.texts:
                text = env.texts[symbol] = f"{node}.size({place})"
                self.mode.cache_enabled = False
                size_node = self._graph.call_method("size", (node, place))
                self.erasable.add(size_node)
                self._nodes[text] = size_node
                env.late.add(symbol)
        self._check_deferred()
        return self.depends_on_values(tensor)

    def depends_on_values(self, tensor: AnyValue) -> bool:
        """Whether a size of a tensor does."""
        return _has_symbols(tensor, self._env.unbacked)

    @contextmanager
    def inside(self, *, whole: bool) -> Iterator[Callable[[AnyValue], bool]]:
        """A block that makes a call.

        Args:
            whole: whether it is a leaf's. What torch takes to hold of sizes
                inside is the leaf's affair, and its result is asked again.

        Yields:
            Tells of a value whether its size depends on values inside.
        """
        known, before = {*self._env.unbacked}, self._env.is_inside
        self._env.is_inside = True
        try:
            yield lambda value: _has_symbols(value, self._env.unbacked - known)
        finally:
            self._env.is_inside = before
            new = self._env.unbacked - known if whole else set()
            self._deferred = [
                (expression, line)
                for expression, line in self._deferred
                if new.isdisjoint(expression.free_symbols)
            ]

    def _made(
        self, tensor: torch.Tensor, sizes: list[AnyValue]
    ) -> torch.Tensor:
        """A tensor without data, like another one but for its sizes."""
        kind: AnyValue = {"dtype": tensor.dtype, "device": tensor.device}
        with self.mode, torch.no_grad():
            fake = torch.empty_strided(sizes, _strides(tensor, sizes), **kind)
        return fake.requires_grad_(tensor.requires_grad)

    def _size(
        self, node: Node, place: int, value: int, dim: AnyValue
    ) -> AnyValue:
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
        if dim:
            self.marked[text] = size
        if name is not None:
            self._dims[name] = text, size
            for limit, sign in ((dim.min, ">="), (dim.max, "<=")):
                if isinstance(limit, int) and 0 < limit < 2**40:
                    told = f"{text} {sign} {limit}"
                    self.guards.append(Guard(told, value=True))
        return size

    # -- what is computed --------------------------------------------------

    def text(self, number: AnyValue) -> str:
        """How a SymInt, SymFloat or SymBool is computed, as Python."""
        return self._env.written(expression_of(number))

    def node(self, number: AnyValue) -> Argument:
        """The node that computes a SymInt or the like, or a constant."""
        return self._of_text(ast.parse(self.text(number), mode="eval").body)

    def can_write(self, value: AnyValue) -> bool:
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

    def _named(self, tree: ast.expr) -> AnyValue:
        """What an expression names: a function, or a type."""
        module, _, name = ast.unparse(tree).rpartition(".")
        return vars(_MODULES[module])[name]

    # -- what is asked -----------------------------------------------------

    def _note(self, text: str, value: AnyValue, is_unbacked: bool) -> None:
        """Note what ShapeEnv relies on from now on."""
        if not is_unbacked:
            self.guards.append(Guard(text, value, frames.where()))
            for size, number in self.marked.items():
                if expression_of(number).is_number:
                    self.fixed.setdefault(size, self.guards[-1])
        else:
            told = f"({text}) == {constant(value)}"
            self._unbacked_asked[text if value is True else told] = (
                frames.where()
            )

    def ask_input(self, text: str, answer: AnyValue) -> None:
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

    def _defer(self, expression: AnyValue) -> None:
        """Note what torch takes to hold of sizes that depend on values."""
        self._deferred.append((expression, frames.where()))
        self._check_deferred()

    def _check_deferred(self) -> None:
        """Let the graph check what it can say of that, here and now."""
        waiting, self._deferred = self._deferred, []
        for expression, line in waiting:
            if self._env.unbacked & expression.free_symbols <= self._env.late:
                self._check(self._env.written(expression), line)
            else:  # a size that is being computed
                self._deferred.append((expression, line))

    def _check(self, text: str, line: str) -> None:
        """Let the graph check something about sizes, here."""
        node = self._of_text(ast.parse(text, mode="eval").body)
        message = f"the trace relied on {text}, asked at {line}"
        given = node, True, message, *self._opened()
        holds = self._graph.call_function(answered, given)
        self._graph.call_function(assert_, (holds, ""))

    def check_unbacked(self) -> None:
        """Let the graph check what was asked of sizes that it computes.

        Raises:
            TraceError: it does not know one of them.
        """
        for text, line in self._unbacked_asked.items():
            self._check(text, line)
        for _, line in self._deferred:
            raise TraceError(errors.unknown_size(line))


def _operators() -> Iterator[tuple[type, Callable[..., AnyValue]]]:
    """The syntax of each operator, and the function of a node."""
    for name, text in magic_methods.items():
        tree: AnyValue = ast.parse(text.format("a", "b"), mode="eval").body
        if isinstance(tree, ast.BinOp | ast.UnaryOp | ast.Compare):
            syntax = tree.ops if isinstance(tree, ast.Compare) else [tree.op]
            yield type(syntax[0]), getattr(operator, name)


_OPERATORS: Final = {
    **dict(_operators()),
    ast.Not: operator.not_,
    ast.And: operator.and_,
    ast.Or: operator.or_,
}
"""Syntax → the function of a node."""

_MODULES: Final = {"": builtins, "math": math, "torch": torch}
"""Where expressions find what they name."""


def _has_symbols(tensor: AnyValue, symbols: set[AnyValue]) -> bool:
    """Whether some are in the sizes of a tensor; not for another value."""
    if not symbols or not isinstance(tensor, torch.Tensor):
        return False
    sizes: list[AnyValue] = [*tensor.shape]
    return any(
        isinstance(size, SYMBOLIC)
        and not symbols.isdisjoint(expression_of(size).free_symbols)
        for size in sizes
    )


def _may_be_free(tensor: torch.Tensor) -> bool:
    """Whether a tensor's sizes can be symbols: it is a plain one with data."""
    is_plain = type(tensor) in (torch.Tensor, nn.Parameter)
    return is_plain and tensor.layout == torch.strided and 0 not in tensor.shape


def _strides(tensor: torch.Tensor, sizes: list[AnyValue]) -> list[AnyValue]:
    """The strides of a tensor with other sizes: in the same order, if dense."""
    strides: list[AnyValue] = [*tensor.stride()]
    order = sorted(
        range(tensor.dim()), key=lambda i: (strides[i], tensor.size(i))
    )
    number, new = 1, 1
    for place in order:
        if strides[place] != number and tensor.size(place) != 1:
            return strides  # not dense: as in the example
        number *= tensor.size(place)
    new_strides: list[AnyValue] = [*strides]
    for place in order:
        new_strides[place] = new
        new = new * sizes[place]
    return new_strides


# -- questions -----------------------------------------------------------------


class Questions:
    """What a program has asked.

    Attributes:
        open: what has to be put back for the blocks that are open.
        modes: what it asked about modes of torch, as guards.
        facts: what no guard can ask, as sentences → the user's line.
        wrote_sizes: whether the text of a size was asked.
        fixes_texts: whether a size is fixed whose text is asked.
    """

    def __init__(self, recorder: Recorder) -> None:
        """Begin without any."""
        self._recorder = recorder
        self._asked: set[AnyValue] = set()
        self.open: dict[int, Node] = {}
        self.modes: list[Guard] = []
        self.facts: dict[str, str] = {}
        self.wrote_sizes: bool = False
        self.fixes_texts: bool = False

    def refuse(self, error: Exception) -> None:
        """Remember an error for a size, if the program asks, and not torch."""
        if not self._recorder.paused:
            self._recorder.refuse(error)

    def opened(self) -> list[tuple[Node, ...]]:
        """The last argument of a check inside of blocks, if there are any."""
        return [tuple(self.open.values())] if self.open else []

    def ask(self, call: Call, answer: AnyValue) -> None:
        """Note what was asked of a tensor.

        Raises:
            TraceError: the answer cannot be compared with a later one.
        """
        recorder = self._recorder
        name, is_attribute = call.name, call.name == "__get__"
        if is_attribute:
            getter: AnyValue = call.function
            name = getter.__self__.__name__
        if name == "grad_fn":
            (asked,) = call.args[:1]
            for attribute in ("requires_grad", "is_leaf"):
                get: AnyValue = vars(torch.Tensor.__base__)[attribute].__get__
                self.ask(Call(get, (asked,), {}), get(asked))
            return
        given = pytree.tree_leaves((call.args, call.kwargs))
        nodes = {recorder.node_by_id.get(id(value)) for value in given} - {None}
        node = nodes.pop() if len(nodes) == 1 else None
        is_input = node in recorder.inputs
        if name in _SHAPES and node and node not in recorder.unsure:
            return
        if is_input and name in _OF_KIND:
            return
        if not isinstance(answer, _ANSWERS):
            raise TraceError(errors.data_dependent(None, recorder.paths))
        if is_input and hasattr(torch.Tensor, name):
            text = "" if is_attribute else _arguments(call, 1)
            recorder.sizes.ask_input(f"{node}.{name}{text}", answer)
        elif recorder.sizes.can_write(answer):
            with recorder.in_graph(node.graph if node else recorder.graph):
                self._ask_again(call, answer)
            is_open = name != "shape" or recorder.sizes.depends_on_values(
                call.args[0]
            )
            if node and not is_open:
                recorder.unsure.discard(node)

    def _ask_again(self, call: Call, answer: AnyValue) -> None:
        """Let the graph ask what was asked, once."""
        recorder = self._recorder
        written: AnyValue = recorder.create_arg((call.args, call.kwargs))
        key = recorder.graph, repr((call.function, written, answer))
        if key not in self._asked:
            self._asked.add(key)
            again = recorder.record(call, *written)
            expected = recorder.create_arg(answer)
            is_attribute = again.target is getattr
            what = ".".join(map(str, again.args)) if is_attribute else again
            message = f"the trace relied on {what} == {expected!r}"
            message += f", asked at {frames.where()}"
            given = again, expected, message, *self.opened()
            holds = recorder.call(answered, *given)
            recorder.call(assert_, holds, "")

    def keeps_identity(self, node: Node) -> bool:
        """Whether a call that has given back its input does so always."""
        name = str(getattr(node.target, "__name__", node.target))
        if node.op == "call_module":
            module: AnyValue = self._recorder.root.get_submodule(name)
            is_inplace = getattr(module, "inplace", False)
            return bool(is_inplace) or isinstance(module, nn.Identity)
        if name.endswith("_") and not name.endswith("__"):
            return True
        if "out" in node.kwargs or node.kwargs.get("inplace") is True:
            return True
        given = node.all_input_nodes
        if any(other.op != "placeholder" for other in given):
            return False
        asked = Guard(f"{given[0]}.is_contiguous()", value=True)
        is_asked = any(
            guard[:2] == asked[:2] for guard in self._recorder.sizes.guards
        )
        return name in _CONVERSIONS or (name == "contiguous" and is_asked)

    def text_of(self, name: str) -> str:
        """The text of a tensor or size, which no guard compares.

        It is not the text that the program gets when it runs: most programs
        print it, and in one that decides by it the trial shows the difference.
        """
        self.facts.setdefault(f"the text of {name}", frames.where())
        return f"<{name}>"

    def text_of_size(self, number: AnyValue) -> str:
        """The text of a number computed of sizes."""
        self.wrote_sizes = True
        if self.fixes_texts:
            return str(specialize(number))
        return self.text_of(self._recorder.sizes.text(number))

    def ask_mode(self, call: Call, answer: AnyValue) -> None:
        """Note that the program asks for a mode, and the answer."""
        text = MODES[call.function] + _arguments(call, 0)
        if self._recorder.blocks:  # one of them may have decided it
            self._ask_again(call, answer)
        else:
            self.modes.append(Guard(text, answer, frames.where()))

    def ask_setting(self, text: str, answer: AnyValue) -> None:
        """Note that the program asks for an attribute of torch.backends."""
        try:
            check(text, ())
            self.modes.append(Guard(text, answer, frames.where()))
        except ValueError:  # one that this torch has anew
            self.facts.setdefault(f"{text} was {answer!r}", frames.where())


def _arguments(call: Call, first: int) -> str:
    """The arguments of a call as text, from one of them on."""
    given = [*map(repr, call.args[first:])]
    given += [f"{key}={value!r}" for key, value in call.kwargs.items()]
    return f"({', '.join(given)})"


_CONVERSIONS: Final = frozenset(
    "to type type_as cpu cuda float double half bfloat16 int long short char "
    "byte bool cfloat cdouble".split()
)
"""Methods that give back their input if it has the dtype and device."""

_SHAPES: Final = frozenset(
    "ndim dim ndimension shape size numel nelement __len__".split()
)
"""Questions whose answer follows from the shape."""

_OF_KIND: Final = _SHAPES | frozenset(
    "dtype device layout type is_floating_point is_complex is_signed "
    "element_size itemsize nbytes get_device is_cpu is_cuda is_meta is_sparse "
    "is_quantized is_nested is_mkldnn is_mps is_xpu".split()
)
"""Questions about inputs whose answer follows from what each guard checks."""

_ANSWERS: Final = (
    *(bool, int, float, str, tuple, NoneType, *SYMBOLIC),
    *(torch.dtype, torch.device, torch.layout, torch.memory_format),
)
"""Types of answers that can be compared."""


def _nbytes(recorder: Recorder, tensor: torch.Tensor) -> AnyValue:
    """The number of bytes, which torch does not compute of symbols."""
    asked = torch.Tensor.numel, torch.Tensor.element_size
    count, size = (recorder.see(Call(f, (tensor,), {})) for f in asked)
    return count * size


def _names(recorder: Recorder, tensor: torch.Tensor) -> list[str]:
    """The names of attributes that a plain tensor has."""
    fact = f"the names of {recorder.node_of(tensor)}'s attributes"
    recorder.questions.facts.setdefault(fact, frames.where())
    with unset_fake_temporarily(), recorder.pause():
        return dir(recorder.real(tensor))


def _text(recorder: Recorder, tensor: torch.Tensor, *_: str) -> str:
    """The text of a tensor."""
    return recorder.questions.text_of(str(recorder.node_of(tensor)))


def _refuse_hook(recorder: Recorder, *_: AnyValue) -> None:
    """Raise TraceError, since a graph cannot hold a function."""
    raise TraceError(errors.hook(recorder.paths))


_NBYTES: Final[AnyValue] = torch.Tensor.nbytes

MADE_UP: Final[dict[AnyValue, Callable[..., AnyValue]]] = {
    _NBYTES.__get__: _nbytes,
    "__dir__": _names,
    **dict.fromkeys(("__repr__", "__str__", "__format__"), _text),
    "register_hook": _refuse_hook,
    "register_post_accumulate_grad_hook": _refuse_hook,
    "is_same_size": lambda _, one, two: bool(one.shape == two.shape),
}
"""Calls, or their names, that torch makes wrongly without data."""


def _modes() -> Iterator[tuple[AnyValue, str]]:
    """These functions, and how a guard calls them."""
    for module in watching.MODES:
        for name, value in vars(module).items():
            if OF_MODES.fullmatch(name) and callable(value):
                yield original_of(value), f"{module.__name__}.{name}"


MODES: Final = dict(_modes())
"""A function that asks in which mode a program runs → how a guard calls it."""


def _settings() -> Iterator[tuple[AnyValue, str]]:
    """What asks when an attribute of torch.backends is read, and its path."""
    for path, module in [*sys.modules.items()]:
        if path.startswith("torch.backends"):
            for name, held in {**vars(type(module)), **vars(module)}.items():
                of_backends = type(held).__module__.startswith("torch.backends")
                if of_backends and not isinstance(held, ModuleType):
                    yield held, f"{path}.{name}"


SETTINGS: Final = {id(held): (held, path) for held, path in _settings()}
"""The id of an attribute, or of what has some → the object, and its path."""
