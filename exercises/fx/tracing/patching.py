"""Stage 04, module patching: put functions in place of others, and back.

A tracer must see calls that do not go through a proxy: `self.linear(x)` is a
call of an nn.Module, `self.weight` is an attribute of one, `math.sqrt(x)` is
a global.  While traces run, these places hold a *stand-in*, which asks which
trace is running **in its own thread or task** and otherwise does what the
original does: other threads notice nothing.

    Place(nn.Module, "__call__")     an attribute of a class
    Place(module.__dict__, "sqrt")   a global of a Python module

What must hold, whatever is raised wherever:

- A place has its stand-in while a trace that patched it is open.
- When the last open trace has ended, every place has its original back.

There is no lock: an exception between acquiring and releasing one would stop
every trace after it.  Instead all steps may be done twice, and two traces
agree by announcing themselves *before* they look:

    begin: announce the trace; wait for whoever is undoing; patch
    end:   announce the undoing; withdraw the trace;
           if no trace is announced, undo; withdraw the undoing

Either the ending side sees the new trace and leaves the patches alone, or the
new trace sees the undoing and waits for it.
"""

from __future__ import annotations

import builtins
import os
import sys
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Final, NamedTuple, Protocol

import torch

from ..usedef.values import Value

MISSING: Final = object()
"""What stood in a place where there was nothing."""


class Interceptor(Protocol):
    """A trace that runs: what stand-ins hand calls to. See `Tracer.trace`."""

    def call_module(
        self,
        module: torch.nn.Module,
        original: Callable[..., Value],
        args: tuple[Value, ...],
        kwargs: dict[str, Value],
    ) -> Value:
        """The result of calling a module."""

    def call_overridden(
        self,
        module: torch.nn.Module,
        original: Callable[..., Value],
        args: tuple[Value, ...],
        kwargs: dict[str, Value],
    ) -> Value:
        """The result of calling a module whose class has its own `__call__`."""

    def read_attribute(
        self, module: torch.nn.Module, name: str, value: Value
    ) -> Value:
        """What reading a parameter, buffer or submodule gives."""

    def call_function(
        self,
        function: Callable[..., Value],
        args: tuple[Value, ...],
        kwargs: dict[str, Value],
    ) -> Value:
        """The result of calling a global that may be a leaf function."""


class Place(NamedTuple):
    """Where a function can be looked up, and so replaced.

    Attributes:
        holder: a class, or the globals of a Python module.
        name: the attribute or global.
    """

    holder: Value
    name: str

    @property
    def key(self) -> tuple[int, str]:
        """What tells this place from others (globals cannot be hashed)."""
        return id(self.holder), self.name

    def look(self) -> Value:
        """What stands there itself, or MISSING."""
        is_class = isinstance(self.holder, type)
        held = vars(self.holder) if is_class else self.holder
        return held.get(self.name, MISSING)

    def put(self, value: Value) -> None:
        """Make `value` stand there; MISSING makes it empty."""
        if isinstance(self.holder, type):
            setattr(self.holder, self.name, value)
        elif value is MISSING:
            self.holder.pop(self.name, None)
        else:
            self.holder[self.name] = value


class _Patch(NamedTuple):
    """A place, what stood there, and what stands in for it."""

    place: Place
    original: Value
    stand_in: Callable[..., Value]


class Patches:
    """The patches of all traces that are open, and which one runs here.

    Each method may be interrupted by an exception at any line; `end` called
    once more then finishes the work.
    """

    def __init__(self) -> None:
        """Begin with nothing patched."""
        self._current: ContextVar[Interceptor | None] = ContextVar(
            "fx trace", default=None
        )
        self._open: dict[Interceptor, int] = {}
        self._undoing: dict[Interceptor, int] = {}
        self._patches: dict[tuple[int, str], _Patch] = {}

    @property
    def current(self) -> Interceptor | None:
        """The trace that runs in this thread or task, if any."""
        return self._current.get()

    def patch(
        self,
        place: Place,
        make: Callable[[Value], Callable[..., Value]],
    ) -> None:
        """Put a stand-in in `place` until the last open trace ends.

        Does nothing if it has one already.

        Args:
            place: where to put it.
            make: makes the stand-in from the original. (A global that is not
                there stands for the builtin of its name.)
        """
        raise NotImplementedError("stage 04: Patches.patch")

    def during(self, trace: Interceptor) -> OpenTrace:
        """A context in which `trace` runs in this thread and may patch.

        Enter it twice, `with opened, opened:`. If an exception breaks into
        the end of the inner one, the outer one does it again.
        """
        return OpenTrace(self, trace)

    def begin(self, trace: Interceptor) -> None:
        """Announce a trace, and wait until nobody is undoing patches."""
        self._open[trace] = os.getpid()
        while self._someone_undoes():
            time.sleep(0)
        self._current.set(trace)

    def end(self, trace: Interceptor, before: Interceptor | None) -> None:
        """Withdraw a trace and, if it was the last, undo all patches.

        The trace is in `_open` or in `_undoing` until all is done.
        """
        self._current.set(before)
        if trace in self._open or trace in self._undoing:
            self._undoing[trace] = threading.get_ident()
            self._open.pop(trace, None)
            # A fork copies traces that no thread of the child will end.
            if os.getpid() not in self._open.values():
                self._undo()
            self._undoing.pop(trace, None)

    def _someone_undoes(self) -> bool:
        """Whether another thread is undoing patches just now.

        An entry whose thread is no longer inside `end` was interrupted for
        good, and is dropped: the trace that begins will undo in its place.
        """
        stacks = sys._current_frames()
        me = threading.get_ident()
        busy = False
        for trace, thread in list(self._undoing.items()):
            frame = stacks.get(thread)
            while frame is not None and frame.f_code is not _END_CODE:
                frame = frame.f_back
            if frame is None:
                self._undoing.pop(trace, None)
            busy = busy or (frame is not None and thread != me)
        return busy

    def _undo(self) -> None:
        """Put all originals back, the last one patched first."""
        raise NotImplementedError("stage 04: Patches._undo")


_END_CODE: Final = Patches.end.__code__


class OpenTrace:
    """A trace that is open: the context manager of `Patches.during`."""

    def __init__(self, patches: Patches, trace: Interceptor) -> None:
        """Remember what to begin, and what to go back to."""
        self._patches = patches
        self._trace = trace
        self._before = patches.current

    def __enter__(self) -> None:
        """Begin; nothing stays begun if that fails."""
        try:
            self._patches.begin(self._trace)
        except BaseException:
            self._patches.end(self._trace, self._before)
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End."""
        self._patches.end(self._trace, self._before)


TRACES: Final = Patches()
"""The traces of this process."""


def is_fx_tracing() -> bool:
    """Whether a symbolic trace runs in this thread or task.

    torch.fx: _symbolic_trace.py, is_fx_tracing
    """
    return TRACES.current is not None
