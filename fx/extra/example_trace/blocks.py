"""Extra: blocks of a program in which calls mean something else.

    with torch.no_grad():        →    mode = torch.is_grad_enabled()
        y = x * 2                     _set_grad_enabled(False)
                                      y = x * 2
                                      _set_grad_enabled(mode)

They are recorded as torch's own compilers write them: a call when a block
begins and one when it ends, which puts back what was there at run time.

A block puts back the mode that was there before, and that is known only when
the graph runs. If the mode of the trace were written into the graph, a graph
that was traced under `no_grad` would switch gradients off for good. Torch
keeps the old mode in the block itself, so a block that is begun a second time
inside of itself forgets the first; the graph does the same.

Autocast decides dtypes. So a program that asks for the dtype of a computed
tensor relies on it, and is guarded.

The hash and the text of a size need a number. When the program asks for them,
as a key of a dict does, a guard fixes the size; torch itself still gets the
symbol.
"""

from __future__ import annotations

import functools
import re
import sys
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

_OF_GRADIENTS: Final = (
    *(torch.no_grad, torch.enable_grad, torch.set_grad_enabled),
)


class Blocks(Wholes):
    """A tracer that records where blocks begin and end.

    Attributes:
        modes: questions about modes of torch → the user's line.
    """

    def __init__(self) -> None:
        """Begin outside of all blocks."""
        super().__init__()
        self._before: dict[int, Node] = {}
        self.modes: dict[str, str] = {}

    def enter(self, call: Call) -> Value:
        """Record that a block begins, and let it."""
        block = call.args[0]
        # As torch does, each time anew for a block that is begun again.
        self._before[id(block)] = self._mode(block)
        with self.pause():
            result = call.run()
        if isinstance(block, _OF_GRADIENTS):
            self.call(switch_gradients, torch.is_grad_enabled())
        return result

    def _mode(self, block: Value) -> Node:
        """A node for what has to be put back when a block ends."""
        if isinstance(block, torch.autocast):
            return self.call(enter_autocast, *autocast_arguments(block))
        if isinstance(block, torch.inference_mode):
            return self.call(INFERENCE_MODE[0], block.mode)
        return self.call(original_of(torch.is_grad_enabled))

    def leave(self, call: Call) -> Value:
        """Record that it ends, and let it."""
        block, target = call.args[0], INFERENCE_MODE[1]
        before: Value = self._before.get(id(block))
        if isinstance(block, torch.autocast):
            target = exit_autocast
        elif isinstance(block, _OF_GRADIENTS):
            target = switch_gradients
        self.call(target, block.prev if before is None else before)
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
    for block in (torch.autocast, torch.inference_mode, *_OF_GRADIENTS):
        # This one switches when it is made, if it is a block at all.
        begin = "__init__" if block is torch.set_grad_enabled else "__enter__"
        TRACES.patch(block, [begin], handing_to(Blocks.enter))
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
    owner = next(kind for kind in cls.__mro__ if "forward" in vars(kind))
    base = torch.autograd.Function
    first = int(cls.setup_context is base.setup_context)

    def forward(tracer: Wholes, call: Call) -> Value:
        function = functools.partial(call.function, *call.args[:first])
        inner = Call(function, call.args[first:], call.kwargs)
        return tracer.call_leaf(inner, cls.apply)

    TRACES.patch(owner, ["forward"], handing_to(forward))
