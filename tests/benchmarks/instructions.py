"""A clock that another program cannot disturb: instructions in place of time.

    python -m tests.benchmarks --instructions

On a machine that shares its cores, the same run takes up to twice as long from
one minute to the next.  The number of instructions that it executes stays the
same within about a hundredth.  It is not time: an instruction that waits for
memory counts as one that does not.  Linux counts them, if it is allowed to and
the processor can.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from tests.benchmarks.measure import A_NODE, BYTES, Rounds, Unit, seconds
from tests.benchmarks.operations import Benchmark

__all__ = ["ROUNDS", "clock", "counted"]

ROUNDS: Final = Rounds(most=3, sample=0.0)
"""What hardly varies need not be repeated often."""

_PERF_EVENT_OPEN: Final = {"x86_64": 298, "aarch64": 241}
"""Processor -> the number of the system call."""

_HARDWARE, _INSTRUCTIONS = 0, 1
_PINNED, _NOT_THE_KERNELS = 1 << 2, 1 << 5 | 1 << 6

_ASKED: Final = struct.pack(
    "IIQQQQQ72x",
    _HARDWARE,
    112,
    _INSTRUCTIONS,
    0,
    0,
    0,
    _PINNED | _NOT_THE_KERNELS,
)
"""A `perf_event_attr`, of 112 bytes."""


def clock() -> Callable[[], float]:
    """A function that gives how many instructions this thread has executed.

    Raises:
        OSError: they cannot be counted here; says why.
    """
    number = _PERF_EVENT_OPEN.get(platform.machine())
    if platform.system() != "Linux" or number is None:
        raise OSError("instructions are counted on Linux only, x86_64 and ARM")
    this_thread, any_core, no_group, no_flags = 0, -1, -1, 0
    library = ctypes.CDLL(None, use_errno=True)
    file: int = library.syscall(
        number, _ASKED, this_thread, any_core, no_group, no_flags
    )
    if file < 0:
        reason = os.strerror(ctypes.get_errno())
        raise OSError(
            f"Linux does not count instructions here: {reason}. See "
            "/proc/sys/kernel/perf_event_paranoid; many virtual machines "
            "cannot count them at all"
        )

    def read() -> float:
        count = os.read(file, 8)
        if not count:
            raise OSError("other programs use all counters of the processor")
        return float(int.from_bytes(count, sys.byteorder))

    return read


def counted(bench: Benchmark, clock: Callable[[], float]) -> Benchmark:
    """The same benchmark in instructions; bytes stay bytes.

    They are thousands for a node, and millions for a call.

    Args:
        bench: measures seconds, or bytes.
        clock: what `clock` returned. A processor has few counters, and each
            call takes one, so all benchmarks share it.
    """
    if bench.unit is BYTES:
        return bench
    of_node = bench.unit is A_NODE
    name, scale = ("k/node", 1e-3) if of_node else ("M/call", 1e-6)
    sample = partial(seconds, clock=clock)
    return replace(bench, unit=Unit(name, scale, sample))
