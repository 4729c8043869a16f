"""How the benchmarks measure: two libraries in turn, in one process.

A machine is never quiet, so bare times decide nothing: in each round every
library runs once, in alternating order, and the ratio of *that round* counts;
the median over the rounds is the result.
"""

from __future__ import annotations

import contextlib
import gc
import math
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

__all__ = [
    "A_CALL",
    "A_NODE",
    "BYTES",
    "Made",
    "Rounds",
    "Samples",
    "Task",
    "Unit",
    "allocated",
    "collector_off",
    "measure",
    "seconds",
]

Made: TypeAlias = Any
"""What a library made: a graph, a module, a text. Benchmarks are untyped
here, since they are written once for both."""

Samples: TypeAlias = dict[str, list[float]]
"""Who ran -> what one run took in each round."""


def _nothing() -> None:
    """Set up nothing."""


def _itself(result: Made) -> object:
    """Show what came out as it is."""
    return result


@dataclass(frozen=True)
class Task:
    """What one library does in a benchmark, at one size.

    Attributes:
        run: what is timed, given what `setup` returned.
        count: how many nodes, or calls, one run is about.
        setup: makes a fresh start for each run. Not timed.
        show: what came out, as plain data that all libraries must agree on.
    """

    run: Callable[[Made], Made]
    count: int
    setup: Callable[[], Made] = _nothing
    show: Callable[[Made], object] = _itself


def seconds(
    task: Task,
    loops: int = 1,
    clock: Callable[[], float] = time.thread_time,
) -> float:
    """The time of one run, the mean of `loops`.

    It is the processor time of this thread: what is measured runs in one
    thread, and what other processes take is not counted.
    """
    total = 0.0
    for _ in range(loops):
        given = task.setup()
        start = clock()
        result = task.run(given)
        total += clock() - start
        # Freed here, not where the next run's result takes its place.
        del result, given
    return total / loops


# Python keeps frames in pieces of memory.  A call that does not fit into the
# last piece takes a new one from the system, and gives it back when it returns:
# a hundred times as long as the call itself.  So how deep in calls a loop is
# measured would decide.  A frame that needs much gets a piece with much room.
seconds.__code__ = seconds.__code__.replace(co_stacksize=40_000)


def allocated(task: Task, loops: int = 1) -> float:
    """The bytes that what one run makes takes while it is kept."""
    given = task.setup()
    tracemalloc.start()
    try:
        kept = task.run(given)
        gc.collect()
        size, _ = tracemalloc.get_traced_memory()
        del kept
    finally:
        tracemalloc.stop()
    return float(size)


@dataclass(frozen=True)
class Unit:
    """What is measured: how, and how one unit of it is called.

    Attributes:
        name: heads the numbers in the table.
        scale: what `sample` returns is multiplied by it.
        sample: measures one run, the mean of several.
    """

    name: str
    scale: float
    sample: Callable[[Task, int], float]


A_NODE = Unit("µs/node", 1e6, seconds)
A_CALL = Unit("µs/call", 1e6, seconds)
BYTES = Unit("B/node", 1.0, allocated)


@dataclass(frozen=True)
class Rounds:
    """How often to measure.

    Attributes:
        most: at most so many rounds,
        least: and at least so many,
        budget: but no more than fit in so many seconds.
        too_slow: what takes longer than this, all libraries together, is
            run once.
        sample: short runs are repeated until they take so many seconds.
    """

    most: int = 9
    least: int = 3
    budget: float = 4.0
    too_slow: float = 10.0
    sample: float = 0.03

    def loops(self, one: float) -> int:
        """How often to repeat a run of `one` second."""
        return max(1, math.ceil(self.sample / max(one, 1e-9)))

    def number(self, one_round: float) -> int:
        """How many rounds of so many seconds to run."""
        fit = int(self.budget / max(one_round, 1e-9))
        return max(min(self.least, self.most), min(self.most, fit))


@contextlib.contextmanager
def collector_off() -> Iterator[None]:
    """Without garbage collection; what is there now is never looked at."""
    was_on = gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_on:
            gc.enable()


def measure(
    tasks: Mapping[str, Task], unit: Unit = A_NODE, rounds: Rounds | None = None
) -> Samples:
    """What one run of each task takes, round by round.

    The first run of each warms caches up and says how long a run is; it does
    not count, unless it took so long that one is all there will be.

    Args:
        tasks: who -> what to run.
        unit: what to measure.
        rounds: how often.
    """
    rounds = rounds or Rounds()
    with collector_off():
        first = {who: _clean(seconds, task, 1) for who, task in tasks.items()}
        if sum(first.values()) > rounds.too_slow and unit.sample is seconds:
            return {who: [time] for who, time in first.items()}
        loops = {who: rounds.loops(time) for who, time in first.items()}
        one_round = sum(first[who] * loops[who] for who in tasks)
        order = list(tasks)
        samples: Samples = {who: [] for who in tasks}
        for _ in range(rounds.number(one_round)):
            for who in order:
                sample = _clean(unit.sample, tasks[who], loops[who])
                samples[who].append(sample)
            order.reverse()
    return samples


def _clean(
    sample: Callable[[Task, int], float], task: Task, loops: int
) -> float:
    """A sample that begins without the garbage of the one before."""
    gc.collect()
    return sample(task, loops)
