"""Extra: blocks of a program in which calls mean something else.

    with torch.no_grad():        →    mode = torch.is_grad_enabled()
        y = x * 2                     _set_grad_enabled(False)
                                      y = x * 2
                                      _set_grad_enabled(mode)

They are recorded as torch's own compilers write them: a call when a block
begins and one when it ends, which puts back what was there at run time.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Final

import torch
from torch.autograd.function import BackwardCFunction
from torch.nn import functional

from ...node import Node
from ...proxy import TraceError
from ...recording import frames
from ...torch_internals.operators import (
    INFERENCE_MODE,
    enter_autocast,
    exit_autocast,
    switch_gradients,
)
from ...torch_internals.symbolic_sizes import SYMBOLIC
from ...torch_internals.transforms import autocast_arguments
from ...tracing.patching import TRACES
from ...tracing.wrapping import original_of
from ...usedef.values import Value
from ..watching.switches import PLACES
from .calls import Call, current, handing_to
from .sizes import plain
from .wholes import Wholes

_GRAD_MODE: Final = "torch.autograd.grad_mode"


class Blocks(Wholes):
    """A tracer that records where blocks begin and end.

    Attributes:
        modes: questions about modes of torch → the user's line.
    """

    def __init__(self) -> None:
        """Begin outside of all blocks."""
        super().__init__()
        self._before: dict[int, list[Node]] = {}
        self._made: dict[int, object] = {}  # which have switched, and not begun
        self.modes: dict[str, str] = {}

    def switch_gradients(self, mode: Value) -> None:
        """Record that gradients are switched, on or back, to a mode."""
        switch = _outermost_switch(sys._getframe(1))
        block = switch and switch.f_locals.get("self")
        step = switch.f_code.co_name if switch else ""
        stack = self._before.setdefault(id(block), [])
        if step == "__exit__" and stack:
            mode = stack.pop()
        elif switch and id(block) not in self._made:
            stack.append(self.call(original_of(torch.is_grad_enabled)))
        self._made.pop(id(block), None)
        if step == "__init__":
            self._made[id(block)] = block
        self.call(switch_gradients, mode)

    def enter(self, call: Call) -> Value:
        """Record that a block of autocast or inference mode begins."""
        (block,) = call.args
        if isinstance(block, torch.autocast):
            node = self.call(enter_autocast, *autocast_arguments(block))
        else:
            node = self.call(INFERENCE_MODE[0], block.mode)
        self._before.setdefault(id(block), []).append(node)
        with self.pause():
            return call.run()

    def leave(self, call: Call) -> Value:
        """Record that it ends."""
        block = call.args[0]
        is_autocast = isinstance(block, torch.autocast)
        target = exit_autocast if is_autocast else INFERENCE_MODE[1]
        self.call(target, self._before[id(block)].pop())
        with self.pause():
            return call.run()

    def ask_mode(self, call: Call) -> Value:
        """Note that the program, and not torch, asks for a mode."""
        if frames.is_user(sys._getframe(2)):
            given = ", ".join(map(repr, call.args))
            text = f"torch.{call.name}({given})"
            self.modes.setdefault(text, frames.where())
        return call.run()

    def ask_what_casts(self, device: str) -> None:
        """Note that a dtype was asked that these modes decide."""
        where = frames.where()
        self.modes.setdefault(f"torch.is_autocast_enabled({device!r})", where)
        self.modes.setdefault("torch.get_default_dtype()", where)


def patch() -> None:
    """Replace what begins and ends blocks, and who asks of modes."""
    for block in (torch.autocast, torch.inference_mode):
        TRACES.patch(block, ["__enter__"], handing_to(Blocks.enter))
        TRACES.patch(block, ["__exit__"], handing_to(Blocks.leave))
    asked = vars(torch).keys() & _QUESTIONS
    TRACES.patch(vars(torch), asked, handing_to(Blocks.ask_mode))
    for number in SYMBOLIC[:2]:
        methods = vars(number).keys() & _OF_NUMBERS
        TRACES.patch(number, methods, handing_to(_ask_number))
    for holder, functions in PLACES:
        changing = [name for name in functions if _CHANGES.search(name)]
        TRACES.patch(holder, changing, handing_to(_refuse_change))
    attention = "scaled_dot_product_attention"
    TRACES.patch(vars(functional), [attention], handing_to(_take_bools))
    with_backward: Value = BackwardCFunction
    TRACES.patch(with_backward, ["__init__"], lambda _: _seen_context)
    scripted: Value = torch.jit.ScriptFunction
    TRACES.patch(scripted, ["__call__"], handing_to(_call_object))


_OF_NUMBERS: Final = frozenset(("__hash__", "__repr__"))
"""Methods for which a number has to be known."""

_QUESTIONS: Final = frozenset(
    "is_grad_enabled is_inference_mode_enabled is_autocast_enabled "
    "is_autocast_cpu_enabled get_autocast_dtype get_default_dtype "
    "get_default_device".split()
)
"""Functions of torch that ask in which mode a program runs."""


_CHANGES: Final = re.compile(r"seed|rng|set_default|dual|deterministic_algo")
"""Names of functions that change what later calls compute."""


def _refuse_change(tracer: Wholes, call: Call) -> Value:
    """Raise TraceError if the program changes torch for what follows."""
    if not frames.is_user(sys._getframe(2)):
        return call.run()
    raise TraceError(
        f"the program calls {call.name}, which changes what later calls of "
        f"torch compute, and no graph says so\n  in\n  {frames.where()}\n"
        "  Call it around the graph"
    )


def _take_bools(tracer: Wholes, call: Call) -> Value:
    """Make a call that refuses a truth value computed of sizes: fix it."""

    def fixed(value: Value) -> Value:
        return plain(value) if isinstance(value, torch.SymBool) else value

    return call.mapped(fixed).run()


def _ask_number(tracer: Wholes, call: Call) -> Value:
    """Answer the program's question for the hash or text of a size."""
    if not frames.is_user(sys._getframe(2)):
        return call.run()
    return getattr(plain(call.args[0]), call.name)()


def _call_object(tracer: Wholes, call: Call) -> Value:
    """Record the call of an object, such as a scripted function."""
    called, *args = call.args
    function = functools.partial(call.function, called)
    return tracer.call_leaf(Call(function, tuple(args), call.kwargs), called)


def _seen_context(ctx: Value) -> None:
    """Make the context of a torch.autograd.Function, and keep it whole.

    Programs bind `apply` to names of their own.  It makes a context first, and
    then looks up `forward`, which takes the context or not.
    """
    if current() is None:
        return
    cls: Value = ctx._forward_cls  # noqa: SLF001
    owner = next(one for one in cls.__mro__ if "forward" in vars(one))
    base = torch.autograd.Function
    first = int(cls.setup_context is base.setup_context)

    def forward(tracer: Wholes, call: Call) -> Value:
        function = functools.partial(call.function, *call.args[:first])
        inner = Call(function, call.args[first:], call.kwargs)
        return tracer.call_leaf(inner, cls.apply)

    TRACES.patch(owner, ["forward"], handing_to(forward))


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
