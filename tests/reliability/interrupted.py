"""An exception at any line: afterwards all is as before, or finished.

Each action is run again and again, and each time an exception is raised at
another of the lines of the library that it executes. Then nothing in the
process may be patched, the graph must be whole (the old one or the new one),
and the same action, not interrupted, must work.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any, TypeAlias

import torch
import torch.fx
from torch import nn

import fx
from fx.passes.reinplace import reinplace
from tests.reliability.part import Outcome, Part, Plant
from tests.reliability.patched import patched, put_back

Lib: TypeAlias = Any
"""`torch.fx` or `fx`, or something of one of them."""

AnyValue: TypeAlias = Any


class Interrupted(BaseException):
    """Raised at a chosen line."""


def interrupted(
    act: Callable[[], object], package: str, line: int
) -> tuple[int, str]:
    """Run `act`, raising at one of the lines that it executes in a package.

    Args:
        act: what to run.
        package: the start of the names of the modules whose lines count.
        line: which line raises, counted from 1; 0 is none.

    Returns:
        How many lines were executed, and where it was interrupted.
    """
    count, place = 0, ""

    def on_line(frame: FrameType, event: str, arg: object) -> AnyValue:
        nonlocal count, place
        if event == "line":
            count += 1
            if count == line:
                place = f"{frame.f_code.co_qualname}:{frame.f_lineno}"
                raise Interrupted(place)
        return on_line

    def on_call(frame: FrameType, event: str, arg: object) -> AnyValue:
        inside = str(frame.f_globals.get("__name__", "")).startswith(package)
        # An exception in a finalizer, which may run at any time, is lost.
        called = frame.f_back and frame.f_back.f_globals.get("__name__")
        return on_line if inside and called != "weakref" else None

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        act()
    except Interrupted:
        pass
    finally:
        sys.settrace(before)
    return count, place


class Net(nn.Module):
    """Calls, parameters, a constant, and a function that is wrapped."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))
        self.inner = nn.Sequential(nn.Linear(3, 3), nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run it."""
        y: torch.Tensor = self.inner(x * self.scale) + torch.ones(3)
        return torch.relu(torch.neg(y)) + torch.relu(torch.neg(x)).mul_(2.0)


X = torch.arange(6.0).view(2, 3) - 3


def surroundings() -> tuple[object, ...]:
    """What an action may change around it, and must put back."""
    return *patched(), sys.modules["torch"], torch.is_grad_enabled()


@dataclass
class Run:
    """An action on something fresh.

    Attributes:
        act: what is interrupted, and then done again.
        gm: the module that is edited, if one is.
        net: the module that is traced.
    """

    act: Callable[[], object]
    gm: Lib = None
    net: Net | None = None


def _traced(lib: Lib) -> Lib:
    torch.manual_seed(0)
    return lib.symbolic_trace(Net())


def trace(lib: Lib) -> Run:
    """Trace a module, with functions of `math` wrapped."""
    net = Net()

    def act(root: nn.Module = net) -> Lib:
        return lib.Tracer(autowrap_modules=(math,)).trace(root)

    # Asked here: after a trace the module rightly has its constant.
    assert len(act(Net()).nodes) >= 10
    return Run(act, net=net)


def symbolic_trace(lib: Lib) -> Run:
    """Trace and compile; the module keeps the constant, as in torch.fx."""
    net = Net()
    return Run(lambda: lib.symbolic_trace(net)(X))


def recompile(lib: Lib) -> Run:
    """Edit a graph and compile it again."""
    gm = _traced(lib)

    def act() -> None:
        for node in gm.graph.find_nodes(op="call_function", target=torch.relu):
            node.target = torch.abs
        gm.recompile()

    return Run(act, gm)


def _pattern(x: AnyValue) -> AnyValue:
    return torch.relu(torch.neg(x))


def _replacement(x: AnyValue) -> AnyValue:
    return torch.neg(torch.clamp_max(x, 0.0))


def rewrite(lib: Lib) -> Run:
    """Replace a pattern that is there twice."""
    gm = _traced(lib)

    def act() -> None:
        lib.subgraph_rewriter.replace_pattern(gm, _pattern, _replacement)

    return Run(act, gm)


def reinplacing(lib: Lib) -> Run:
    """Reinplace a program of ATen operators."""
    gm = fx.experimental.proxy_tensor.make_fx(
        lambda x: (x + 1).relu().mul(2).neg()
    )(X)
    return Run(lambda: reinplace(gm, X.clone()), gm)


ACTIONS = (trace, symbolic_trace, recompile, rewrite, reinplacing)
OF_BOTH = frozenset((trace, symbolic_trace, rewrite))
"""Actions that torch.fx has alike."""


@put_back()
def tried(action: Callable[[Lib], Run], lib: Lib, line: int) -> tuple[str, str]:
    """Interrupt an action on something fresh; where, and what is wrong then."""
    run_, before = action(lib), surroundings()
    attributes = set(vars(run_.net)) if run_.net is not None else set()
    right = run_.gm(X) if run_.gm is not None else None
    name = "fx." if lib is fx else "torch.fx."
    place = f"line {line}"
    try:
        _, place = interrupted(run_.act, name, line)
        if surroundings() != before:
            return place, "something is still patched"
        if run_.net is not None and set(vars(run_.net)) != attributes:
            return place, "the traced module has other attributes"
        if run_.gm is not None:
            _check_whole(run_.gm, right)
        run_.act()
        if run_.gm is not None:
            _check_whole(run_.gm, right)
    except Exception as error:
        return place, f"{type(error).__name__}: {error}"
    return place, ""


def _check_whole(gm: Lib, right: AnyValue) -> None:
    """Raise unless a module runs as before, or as its graph says."""
    gm.graph.lint()
    found = gm(X)
    if not torch.equal(found, right):
        lib = fx if isinstance(gm, fx.GraphModule) else torch.fx
        again = lib.Interpreter(gm).run(X)
        assert torch.equal(found, again), "code and graph differ"


def run(seed: int, cases: int) -> Iterator[Outcome]:
    """Interrupt each action at lines drawn at random, or at each line."""
    rng = random.Random(seed)
    lines = {}
    for action in ACTIONS:
        for lib in (fx, torch.fx):
            name = "fx." if lib is fx else "torch.fx."
            lines[action, lib], _ = interrupted(action(lib).act, name, 0)
    every = [(a, line) for a in ACTIONS for line in range(1, lines[a, fx] + 1)]
    rng.shuffle(every)
    for action, line in every[:cases]:
        place, ours = tried(action, fx, line)
        if not place:  # the first run, which fills caches, has more lines
            continue
        theirs = None
        if action in OF_BOTH:
            there = 1 + line * lines[action, torch.fx] // lines[action, fx]
            _, theirs = tried(action, torch.fx, there)
        case = f"{action.__name__}, line {line} ({place})"
        yield Outcome(case, ours, theirs)


PART = Part(
    "interrupted",
    "an exception at a line of tracing, compiling, rewriting or "
    "reinplacing: what is patched, the graph, and the next time",
    run,
    share=100,
    long=20_000,
    plants=(
        Plant(
            "fx/tracing/tracer.py",
            "        except BaseException as error:\n            for name in",
            "        except Exception as error:\n            for name in",
            "constants of a broken trace stay",
        ),
        Plant(
            "fx/tracing/patching.py",
            "            if not ended:\n"
            "                self._end(trace, before)",
            "            pass",
            "the end of a trace is not tried twice",
        ),
        Plant(
            "fx/rewriting/snapshot.py",
            "        if raised is None:\n",
            "        if not isinstance(raised, Exception):\n",
            "a broken rewrite is left as it is",
        ),
        Plant(
            "fx/passes/reinplace.py",
            "    with Snapshot(gm):\n",
            "    if True:\n",
            "reinplace is given up in the middle",
        ),
    ),
)
