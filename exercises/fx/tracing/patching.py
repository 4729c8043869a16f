"""Stage 04, module patching: replace functions while traces run, and restore.

Some calls never touch a proxy and still have to be recorded: `self.linear(x)`
calls an nn.Module, `self.weight` reads an attribute of one, `math.sqrt(x)`
calls a global.  While traces run, the places where Python looks these
functions up hold *replacements*:

    nn.Module, "__call__"     an attribute of a class
    vars(math), "sqrt"        a global of a Python module

The places belong to the whole process, but a trace belongs to one thread or
task.  So a replacement asks which trace runs **where it is called**, and
otherwise calls the original.  Two things hold, also after any exception,
unless someone else puts another function into the place, which then stays:

- A place has its replacement while a trace that patched it is open.
- When the last open trace has ended, it has its original back.

Threads begin and end their traces at the same time, so the last trace to end
must not undo what another one has just patched.  A lock would not do: an
exception between acquiring it and releasing it would stop every later trace.
Instead, both sides announce what they do *before* they look at each other.
Either the ending trace sees the new one and leaves the patches alone, or the
new one sees the undoing and waits for it.
"""

from __future__ import annotations

import builtins
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TypeAlias

from ..use_def.dotted_path import MISSING
from ..use_def.values import AnyValue

_Patch: TypeAlias = tuple[AnyValue, Callable[..., AnyValue]]
"""What a place held at first, and what it holds while traces run."""


def names_of(holder: AnyValue) -> Mapping[str, AnyValue]:
    """The names that a holder itself has, and what it has under them."""
    return vars(holder) if isinstance(holder, type) else holder


def put(holder: AnyValue, name: str, value: AnyValue) -> None:
    """Make a place hold `value`; MISSING empties it."""
    if isinstance(holder, type) and value is not MISSING:
        setattr(holder, name, value)
    elif isinstance(holder, type):
        delattr(holder, name)
    elif value is MISSING:
        holder.pop(name, None)
    else:
        holder[name] = value


class Patches:
    """The patches of all open traces, and which trace runs here.

    A trace is any object with a hash. An exception may come at any line, so
    each method can be called again to finish its work.
    """

    def __init__(self) -> None:
        """Begin with nothing patched."""
        self._current: ContextVar[object] = ContextVar("fx trace", default=None)
        self._open: dict[object, int] = {}
        self._undoing: dict[object, int] = {}
        self._patches: dict[int, tuple[AnyValue, dict[str, _Patch]]] = {}

    @property
    def current(self) -> object:
        """The trace that runs in this thread or task, or None."""
        return self._current.get()

    def patch(
        self,
        holder: AnyValue,
        names: Iterable[str],
        make: Callable[[AnyValue], Callable[..., AnyValue]],
    ) -> None:
        """Replace what is in some places until the last open trace ends.

        Patching a place a second time has no effect, unless the original is
        there again: then the same replacement is put back. The first original
        stays the one that is restored, and what other code has put over the
        replacement stays. Two threads may patch a place at the same moment:
        both go on with one patch.

        Args:
            holder: a class, or the globals of a Python module.
            names: its attributes or globals that are to be replaced.
            make: makes the replacement from what is called there: the
                original or, if the place is empty, the builtin of its name.
        """
        raise NotImplementedError("stage 04: Patches.patch")

    @contextmanager
    def during(self, trace: object) -> Iterator[None]:
        """A block in which `trace` runs in this thread or task, and patches.

        If an exception, such as a KeyboardInterrupt, breaks into the end of
        a trace, the trace is ended once more.
        """
        before = self.current
        ended = False
        threading.current_thread()  # enumerate() knows it from now on
        try:
            try:
                self._begin(trace)
                yield
            finally:
                self._end(trace, before)
                ended = True
        finally:
            if not ended:
                self._end(trace, before)

    def _begin(self, trace: object) -> None:
        """Announce a trace, and wait until no other thread undoes patches."""
        raise NotImplementedError("stage 04: Patches._begin")

    def _end(self, trace: object, before: object) -> None:
        """Withdraw a trace and, if it was the last, undo all patches.

        At every line before the last, the trace is announced in `_open` or
        in `_undoing`. It is announced in neither afterwards, whatever is
        raised, so that a later trace can finish an undoing that was given up.
        """
        raise NotImplementedError("stage 04: Patches._end")

    def _undo(self) -> None:
        """Restore all originals, in any order: a place is patched once.

        What other code has put over a replacement stays. The patches of a
        holder are forgotten when all its places are right, and not before:
        an interrupted call can be made again.
        """
        raise NotImplementedError("stage 04: Patches._undo")


def _threads_of(traces: dict[object, int]) -> set[int]:
    """The living threads of some traces.

    A fork copies traces of threads that do not live in the child process.
    """
    threads = set(traces.values())
    # Not sys._current_frames(): Python 3.11 collects garbage in it, under a
    # lock of the interpreter, and the next thread that asks waits for ever.
    return threads & {thread.ident for thread in threading.enumerate()}


TRACES: Final = Patches()
"""The traces of this process."""
