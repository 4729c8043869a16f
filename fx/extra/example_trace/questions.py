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
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType, NoneType
from typing import TYPE_CHECKING, Final

import torch
from torch import nn

from ...proxy import TraceError
from ...recording import frames
from ...torch_internals import pytree, watching
from ...torch_internals.overloads import assert_
from ...torch_internals.symbolic_sizes import SYMBOLIC, specialize
from ...tracing.wrapping import original_of
from ...usedef.values import Value
from . import errors
from .calls import Call
from .guards import OF_MODES, Guard, answered, check

if TYPE_CHECKING:
    from ...node import Node
    from .recorder import Recorder


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
        self._asked: set[Value] = set()
        self.open: dict[int, Node] = {}
        self.modes: list[Guard] = []
        self.facts: dict[str, str] = {}
        self.wrote_sizes: bool = False
        self.fixes_texts: bool = False

    def opened(self) -> list[tuple[Node, ...]]:
        """The last argument of a check inside of blocks, if there are any."""
        return [tuple(self.open.values())] if self.open else []

    def ask(self, call: Call, answer: Value) -> None:
        """Note what was asked of a tensor.

        Raises:
            TraceError: the answer cannot be compared with a later one.
        """
        recorder = self._recorder
        name, is_attribute = call.name, call.name == "__get__"
        if is_attribute:
            getter: Value = call.function
            name = getter.__self__.__name__
        if name == "grad_fn":
            (asked,) = call.args[:1]
            for attribute in ("requires_grad", "is_leaf"):
                get: Value = vars(torch.Tensor.__base__)[attribute].__get__
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
            if name == "shape" and node:
                recorder.unsure.discard(node)

    def _ask_again(self, call: Call, answer: Value) -> None:
        """Let the graph ask what was asked, once."""
        recorder = self._recorder
        written: Value = recorder.create_arg((call.args, call.kwargs))
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
            module: Value = self._recorder.root.get_submodule(name)
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

    def text_of_size(self, number: Value) -> str:
        """The text of a number computed of sizes."""
        self.wrote_sizes = True
        if self.fixes_texts:
            return str(specialize(number))
        return self.text_of(self._recorder.sizes.text(number))

    def ask_mode(self, call: Call, answer: Value) -> None:
        """Note that the program asks for a mode, and the answer."""
        text = MODES[call.function] + _arguments(call, 0)
        if self._recorder.blocks:  # one of them may have decided it
            self._ask_again(call, answer)
        else:
            self.modes.append(Guard(text, answer, frames.where()))

    def ask_setting(self, text: str, answer: Value) -> None:
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


def _modes() -> Iterator[tuple[Value, str]]:
    """These functions, and how a guard calls them."""
    for module in watching.MODES:
        for name, value in vars(module).items():
            if OF_MODES.fullmatch(name) and callable(value):
                yield original_of(value), f"{module.__name__}.{name}"


MODES: Final = dict(_modes())
"""A function that asks in which mode a program runs → how a guard calls it."""


def _settings() -> Iterator[tuple[Value, str]]:
    """What asks when an attribute of torch.backends is read, and its path."""
    for path, module in [*sys.modules.items()]:
        if path.startswith("torch.backends"):
            for name, held in {**vars(type(module)), **vars(module)}.items():
                of_backends = type(held).__module__.startswith("torch.backends")
                if of_backends and not isinstance(held, ModuleType):
                    yield held, f"{path}.{name}"


SETTINGS: Final = {id(held): (held, path) for held, path in _settings()}
"""The id of an attribute, or of what has some → the object, and its path."""
