"""Threads that trace, run, recompile and fold at the same time.

A case is a round: eight threads trace, each its own module; four run modules
that nobody traces; two recompile a graph module that others call; three run one
module whose constants are folded, one of them under autocast, while a fourth
writes its weights. All must see what they would see alone, and nothing may be
patched afterwards.
"""

from __future__ import annotations

import math
import random
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, TypeAlias

import torch
import torch.fx
from torch import nn

import fx
from tests.reliability.part import Outcome, Part, Plant
from tests.reliability.patched import patched, put_back

Lib: TypeAlias = Any
"""`torch.fx` or `fx`, or something of one of them."""

AnyValue: TypeAlias = Any
Errors: TypeAlias = list[str]

TRACING, RUNNING, RECOMPILING = 8, 4, 2
TRACES = 3
"""How often a thread traces in a round."""


class Block(nn.Module):
    """A module with everything that is patched: calls, parameters, math."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))
        self.inner = nn.Sequential(nn.Linear(3, 3), nn.ReLU())

    def forward(self, x: AnyValue) -> torch.Tensor:
        """Run it."""
        if isinstance(x, nn.Module):
            raise TypeError(x)
        y: torch.Tensor = self.inner(x * self.scale)
        return y + math.sqrt(4.0)


class Net(nn.Module):
    """Blocks in a row; the depth tells the threads' graphs apart."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(depth))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run it."""
        for block in self.blocks:
            x = block(x)
        return x


def guarded(
    act: Callable[[], None], errors: Errors, times: Iterator[object]
) -> threading.Thread:
    """A thread that acts as often as there are times; errors are noted."""

    def work() -> None:
        try:
            for _ in times:
                act()
        except BaseException as error:
            errors.append(f"{type(error).__name__}: {error}")

    return threading.Thread(target=work, daemon=True)


def tracing(lib: Lib, depth: int, errors: Errors) -> threading.Thread:
    """A thread that traces a module of its own."""
    expected = str(lib.Tracer().trace(Net(depth)))

    def act() -> None:
        found = str(lib.Tracer().trace(Net(depth)))
        if found != expected:
            errors.append(f"a trace gave\n{found}\nand alone\n{expected}")

    return guarded(act, errors, iter(range(TRACES)))


def running(errors: Errors, times: Iterator[object]) -> threading.Thread:
    """A thread that runs a module."""
    net, x = Net(2), torch.ones(2, 3)
    right = net(x)

    def act() -> None:
        if not torch.equal(net(x), right):
            errors.append("a module gave another result")
        if type(net.get_parameter("blocks.0.scale")) is not nn.Parameter:
            errors.append("a parameter was a proxy")

    return guarded(act, errors, times)


def recompiling(
    lib: Lib, errors: Errors, times: Iterator[object]
) -> threading.Thread:
    """A thread that recompiles a module and calls it."""
    graph = lib.Graph()
    x = graph.placeholder("x")
    node = graph.call_function(torch.neg, (x,))
    graph.output(node)
    gm = lib.GraphModule({}, graph)

    def act() -> None:
        node.target = torch.neg if node.target is torch.abs else torch.abs
        gm.recompile()
        found = gm(torch.tensor(-2.0)).item()
        if found != 2.0:
            errors.append(f"a recompiled module gave {found}")

    return guarded(act, errors, times)


class Product(nn.Module):
    """A module that multiplies its weights in each call."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.rand(4, 4), requires_grad=False)
        self.b = nn.Parameter(torch.rand(4, 4), requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run it."""
        return x + self.a @ self.b


def folded(
    lib: Lib, errors: Errors, times: Iterator[object]
) -> Iterator[threading.Thread]:
    """Threads that call a module whose product is folded, and change it."""
    fold = import_module(f"{lib.__name__}.experimental.const_fold")
    net, x = Product(), torch.ones(4, 4)
    gm = fold.split_const_subgraphs(net)

    def calling(is_cast: bool) -> Callable[[], None]:
        def called(module: AnyValue) -> AnyValue:
            with torch.autocast("cpu", torch.bfloat16, enabled=is_cast):
                return module(x)

        right = called(net)

        def act() -> None:
            if not torch.equal(called(gm), right):
                errors.append("a folded module gave another result")

        return act

    for is_cast in (False, True, False):
        yield guarded(calling(is_cast), errors, times)

    def touch() -> None:
        net.a.add_(0)

    yield guarded(touch, errors, times)


@put_back()
def played(lib: Lib, seed: int) -> str:
    """What is wrong after a round, if anything."""
    rng, errors = random.Random(seed), Errors()
    before, stop = patched(), threading.Event()
    traces = [tracing(lib, rng.randrange(1, 9), errors) for _ in range(TRACING)]
    others = [running(errors, _Until(stop)) for _ in range(RUNNING)]
    others += [
        recompiling(lib, errors, _Until(stop)) for _ in range(RECOMPILING)
    ]
    others += folded(lib, errors, _Until(stop))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(10 ** rng.uniform(-6, -3))
    try:
        for thread in (*others, *traces):
            thread.start()
        waited = _together(traces, 60)
        stop.set()
        hanging = [*waited, *_together(others, 10)]
        errors += [f"a thread hangs in\n{_place(one)}" for one in hanging]
        if patched() != before:
            errors.append("something is still patched")
    finally:
        sys.setswitchinterval(interval)
    return "\n".join(errors[:3])


def _together(
    threads: list[threading.Thread], seconds: float
) -> list[threading.Thread]:
    """Wait for threads, and say which ones are still at work after a time."""
    until = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0, until - time.monotonic()))
    return [thread for thread in threads if thread.is_alive()]


def _place(thread: threading.Thread) -> str:
    """The lines that a thread is at."""
    frame = sys._current_frames().get(thread.ident or 0)
    return "".join(traceback.format_stack(frame, 4)) if frame else "(ended)"


class _Until(Iterator[object]):
    """Goes on until an event."""

    def __init__(self, stop: threading.Event) -> None:
        self.stop = stop

    def __next__(self) -> None:
        if self.stop.is_set():
            raise StopIteration


def run(seed: int, cases: int) -> Iterator[Outcome]:
    """Play rounds."""
    for number in range(seed * 1_000_000, seed * 1_000_000 + cases):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = played(torch.fx, number)
            ours = played(fx, number)
        yield Outcome(f"round {number}", ours, theirs)


FOLD = "fx/experimental/const_fold.py"

PART = Part(
    "threads",
    "rounds of eight threads that trace, four that run modules, two that "
    "recompile and four about a folded one: graphs, results, and what is "
    "patched afterwards",
    run,
    share=5,
    long=300,
    plants=(
        Plant(
            "fx/tracing/patching.py",
            "            if not _threads_of(self._open):\n"
            "                self._undo()",
            "            self._undo()",
            "the first trace that ends undoes the patches of all",
        ),
        Plant(
            "fx/tracing/patching.py",
            "        while _threads_of(self._undoing) - {me}:\n"
            "            time.sleep(1e-4)\n",
            "",
            "a trace begins while another thread undoes patches",
        ),
        Plant(
            "fx/tracing/tracer.py",
            "vars(module).copy().items()",
            "vars(module).items()",
            "globals are looked through while a trace adds names",
        ),
        Plant(
            "fx/tracing/tracer.py",
            " and name not in QUESTIONS",
            "",
            "names that another trace has added are leaves",
        ),
        Plant(
            FOLD,
            "if state == self._state:",
            "if True:",
            "a value that was folded under autocast is used without it",
        ),
        Plant(
            FOLD,
            "            folded = self._folded()\n",
            "            folded = delattr(self, name) or self._folded()\n",
            "the folded value is missing while another thread folds again",
        ),
    ),
)
