"""Extra: blocks of a program in which calls mean something else.

    with torch.no_grad():        →    mode = torch.is_grad_enabled()
        y = x * 2                     _set_grad_enabled(False)
                                      y = x * 2
                                      _set_grad_enabled(mode)

They are recorded as torch's own compilers write them: a call when a block
begins and one when it ends, which puts back what was there at run time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Final

import torch
from torch.autograd.function import BackwardCFunction
from torch.utils.checkpoint import checkpoint

from ...node import Node
from ...recording import frames
from ...torch_internals.functorch import VMAP
from ...torch_internals.operators import (
    INFERENCE_MODE,
    autocast_arguments,
    enter_autocast,
    exit_autocast,
)
from ...torch_internals.symbolic_sizes import SYMBOLIC
from ...tracing.patching import TRACES
from ...tracing.wrapping import original_of
from ...usedef.values import Value
from .leaves import handing_to, importers_of

if TYPE_CHECKING:
    from .recorder import ExampleTracer

_GRAD_MODE: Final = "torch.autograd.grad_mode"


class Blocks:
    """The blocks that a program is in.

    Attributes:
        begun: whether the program runs.
        asked: questions about modes → the user's line.
    """

    def __init__(self, tracer: ExampleTracer) -> None:
        """Begin outside of all blocks."""
        self._tracer = tracer
        self.begun = False
        self._before: dict[int, list[Node]] = {}
        self._made: dict[int, object] = {}  # which have switched, and not begun
        self.asked: dict[str, str] = {}

    def patch(self) -> None:
        """Replace what begins and ends blocks, and who asks of modes."""
        for block in (torch.autocast, torch.inference_mode):
            for name in ("__enter__", "__exit__"):
                TRACES.patch(block, [name], handing_to(f"see{name}"))
        asked = vars(torch).keys() & _QUESTIONS
        TRACES.patch(vars(torch), asked, handing_to("see_question"))
        for number in SYMBOLIC[:2]:
            of_numbers = vars(number).keys() & _OF_NUMBERS
            TRACES.patch(number, of_numbers, handing_to("see_number"))
        for function in (checkpoint, torch.cond):
            name = original_of(function).__name__
            for place in importers_of(function):
                TRACES.patch(place, [name], handing_to(f"see_{name}"))
        TRACES.patch(*VMAP, handing_to("see_vmap"))
        self.begun = True
        with_backward: Value = BackwardCFunction
        TRACES.patch(with_backward, ["__init__"], lambda _: _seen_context)
        scripted: Value = torch.jit.ScriptFunction
        TRACES.patch(scripted, ["__call__"], handing_to("call_leaf_method"))

    def switch_gradients(self, function: Value, mode: Value) -> None:
        """Record that gradients are switched, on or back.

        Args:
            function: of torch.
            mode: whether they are on from now on.
        """
        switch = _outermost_switch(sys._getframe(1))
        block = id(switch.f_locals.get("self")) if switch else 0
        make = self._tracer.create_node
        if switch and switch.f_code.co_name == "__exit__":
            stack = self._before.get(block)
            mode = stack.pop() if stack else mode
        elif switch and block not in self._made:
            node = make("call_function", torch.is_grad_enabled, (), {})
            self._before.setdefault(block, []).append(node)
        if switch and switch.f_code.co_name == "__init__":
            self._made[block] = switch.f_locals["self"]
        else:
            self._made.pop(block, None)
        make("call_function", function, (mode,), {})

    def enter(self, block: Value) -> None:
        """Record that a block of autocast or inference mode begins."""
        make = self._tracer.create_node
        if isinstance(block, torch.autocast):
            args = autocast_arguments(block)
            node = make("call_function", enter_autocast, args, {})
        else:
            node = make("call_function", INFERENCE_MODE[0], (block.mode,), {})
        self._before.setdefault(id(block), []).append(node)

    def leave(self, block: Value) -> None:
        """Record that it ends."""
        node = self._before[id(block)].pop()
        is_autocast = isinstance(block, torch.autocast)
        target = exit_autocast if is_autocast else INFERENCE_MODE[1]
        self._tracer.create_node("call_function", target, (node,), {})

    def ask_what_casts(self, device: str) -> None:
        """Note that a dtype was asked that these modes decide."""
        for text in (
            f"torch.is_autocast_enabled({device!r})",
            "torch.get_default_dtype()",
        ):
            self.asked.setdefault(text, frames.where())

    def ask(self, function: Callable[..., Value], args: Value) -> None:
        """Note that the program, not torch, asks for a mode."""
        if frames.is_user(sys._getframe(3)):  # of the replacement
            given = ", ".join(map(repr, args))
            text = f"torch.{function.__name__}({given})"
            self.asked.setdefault(text, frames.where())


_OF_NUMBERS: Final = frozenset(("__hash__", "__repr__"))
"""Methods for which a number has to be known."""

_QUESTIONS: Final = frozenset(
    "is_grad_enabled is_inference_mode_enabled is_autocast_enabled "
    "is_autocast_cpu_enabled get_autocast_dtype get_default_dtype "
    "get_default_device".split()
)
"""Functions of torch that ask in which mode a program runs."""


def _seen_context(ctx: Value) -> None:
    """What makes the context of a torch.autograd.Function."""
    tracer = getattr(TRACES.current, "example_tracer", None)
    if tracer is not None:
        tracer.see_context(ctx)


def _outermost_switch(frame: FrameType | None) -> FrameType | None:
    """The frame of the block of torch that switches gradients, if one does."""
    found = None
    for one in _callers(frame):
        if one.f_globals.get("__name__") == _GRAD_MODE:
            found = one
        elif found is not None or frames.is_user(one):
            break
    return found


def _callers(frame: FrameType | None) -> Iterator[FrameType]:
    """A frame, and those that called it."""
    while frame is not None:
        yield frame
        frame = frame.f_back
