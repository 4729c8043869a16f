"""Stage 04: traces do not touch each other, nor code that is not traced."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import math
import os
import sys
import threading
import types
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType

import pytest
import torch
from torch import nn

import fx
from fx import traceback as fx_traceback
from fx.tracing import inputs, patching, tracer
from fx.tracing.patching import TRACES
from fx.use_def.values import AnyValue
from tests.process import python

tiny = types.ModuleType("tiny")
"""A module to wrap: two functions, where math has sixty."""
tiny.half = lambda x: x / 2  # type: ignore[attr-defined]  # a new global
tiny.twice = lambda x: x * 2  # type: ignore[attr-defined]  # a new global


class Block(nn.Module):
    """A module with everything that is patched: calls, parameters, math."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.inner = nn.Sequential(nn.Linear(width, width), nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.inner(x * self.scale)
        return y + math.sqrt(4.0)


class Net(nn.Module):
    """Blocks in a row; the depth tells the threads' graphs apart."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(3) for _ in range(depth))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return x


def state_of_patches() -> tuple[object, ...]:
    """What stands in every place that a trace of `Net` patches."""
    return (
        vars(nn.Module)["__call__"],
        vars(nn.Module)["__getattr__"],
        math.sqrt,
        math.floor,
        TRACES.current,
        dict(TRACES._open),
        dict(TRACES._undoing),
        dict(TRACES._patches),
    )


CLEAN = state_of_patches()


@pytest.fixture(autouse=True)
def nothing_stays_patched() -> Iterator[None]:
    """Every test here ends as it began."""
    assert state_of_patches() == CLEAN
    yield
    assert state_of_patches() == CLEAN


@contextmanager
def switch_interval(seconds: float) -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(seconds)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def keep_tracing(depth: int, expected: str, errors: list[object]) -> None:
    """What each tracing thread does."""
    try:
        for _ in range(12):
            graph = str(fx.Tracer().trace(Net(depth)))
            errors.extend([graph] if graph != expected else [])
    except BaseException as raised:
        errors.append(raised)


def keep_running(
    net: Net, x: torch.Tensor, stop: threading.Event, errors: list[object]
) -> None:
    """What each thread with an eager module does."""
    right = net(x)
    try:
        while not stop.is_set():
            assert torch.equal(net(x), right)
            assert type(net.get_parameter("blocks.0.scale")) is nn.Parameter
    except BaseException as raised:
        errors.append(raised)


def test_eight_threads_trace_while_two_run_eager_modules() -> None:
    errors: list[object] = []
    stop = threading.Event()
    tracers = [
        threading.Thread(
            target=keep_tracing,
            args=(depth, str(fx.Tracer().trace(Net(depth))), errors),
        )
        for depth in range(1, 9)
    ]
    eager = (Net(3), torch.ones(2, 3), stop, errors)
    runners = [
        threading.Thread(target=keep_running, args=eager) for _ in range(2)
    ]
    with switch_interval(1e-5):
        for thread in (*runners, *tracers):
            thread.start()
        for thread in tracers:
            thread.join()
        stop.set()
        for thread in runners:
            thread.join()
    assert errors == []


_WHILE_GARBAGE_IS_COLLECTED = """
import gc, sys, threading
import fx
from torch import nn

gc.callbacks.append(lambda phase, info: [sum([1]) for _ in range(20)])
gc.set_threshold(40)
sys.setswitchinterval(1e-5)

def trace():
    net = nn.Sequential(nn.ReLU(), nn.ReLU())
    for _ in range(30):
        fx.Tracer().trace(net)

threads = [threading.Thread(target=trace) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_traces_that_end_at_once_may_have_garbage_collected() -> None:
    # As Hypothesis does, and a profiler: Python code is run at a collection.
    # Alone in its process, which the fault would stop for good.
    done = python("-c", _WHILE_GARBAGE_IS_COLLECTED, timeout=60)
    assert done.returncode == 0, done.stderr


def test_two_threads_that_trace_one_root_name_constants_apart() -> None:
    class Shared(nn.Module):
        def forward(self, x: torch.Tensor, n: int) -> torch.Tensor:
            return x + torch.full((1,), float(n))

    both = threading.Barrier(2)

    class AtOnce(fx.Tracer):
        def get_fresh_qualname(self, prefix: str) -> str:
            name = super().get_fresh_qualname(prefix)
            with contextlib.suppress(threading.BrokenBarrierError):
                both.wait(1)
            return name

    shared = Shared()
    graphs: dict[int, fx.Graph] = {}

    def trace(n: int) -> None:
        graphs[n] = AtOnce().trace(shared, {"n": n})

    threads = [threading.Thread(target=trace, args=(n,)) for n in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n, graph in graphs.items():
        assert fx.GraphModule(shared, graph)(torch.zeros(1), n) == n


def test_traces_that_end_in_the_order_they_began() -> None:
    """The first of two overlapping traces ends while the second runs on."""
    inside, go_on = threading.Event(), threading.Event()
    graphs: dict[str, fx.Graph] = {}

    class Waits(nn.Module):
        def __init__(self, arrive: threading.Event, leave: threading.Event):
            super().__init__()
            self.linear = nn.Linear(2, 2)
            self.arrive, self.leave = arrive, leave

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.linear(x)
            self.arrive.set()
            assert self.leave.wait(10)
            y: torch.Tensor = self.linear(x)
            return y + math.sqrt(x[0, 0])

    first_inside = threading.Event()

    def first() -> None:
        module = Waits(first_inside, inside)
        graphs["first"] = fx.Tracer().trace(module)
        go_on.set()

    def second() -> None:
        assert first_inside.wait(10)
        graphs["second"] = fx.Tracer().trace(Waits(inside, go_on))

    threads = [threading.Thread(target=f) for f in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert str(graphs["first"]) == str(graphs["second"])
    assert "math.sqrt" in str(graphs["second"])


def test_a_replacement_that_is_put_back_later_acts_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As by a trace of torch.fx that began within ours, and ends later."""
    called: list[str] = []

    class Counting(fx.Tracer):
        def call_module(self, m: nn.Module, *args: AnyValue) -> AnyValue:
            called.append(self.path_of_module(m))
            return super().call_module(m, *args)

    class Spy(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            late.append(vars(nn.Module)["__call__"])
            return x

    late: list[AnyValue] = []
    net = Net(1)
    right = Counting().trace(net)
    expected, stacks = called.copy(), stacks_of(right)
    fx.Tracer().trace(Spy())
    with monkeypatch.context() as patched:
        patched.setattr(nn.Module, "__call__", late[0])
        called.clear()
        graph = Counting().trace(net)
    assert called == expected
    assert stacks_of(graph) == stacks


def stacks_of(graph: fx.Graph) -> list[list[str]]:
    """In which calls of modules each node was recorded."""
    return [list(node.meta.get("nn_module_stack", ())) for node in graph.nodes]


def test_what_decorates_a_replacement_is_a_function_of_its_own() -> None:
    """As a module that forward imports may decorate math.sqrt."""
    made: list[Callable[..., AnyValue]] = []

    class Decorates(nn.Module):
        def forward(self, x: torch.Tensor) -> AnyValue:
            @functools.wraps(math.sqrt)
            def safe_sqrt(x: AnyValue) -> AnyValue:
                return math.sqrt(x + 1)

            made.append(safe_sqrt)
            return safe_sqrt(x)

    inside = fx.Tracer().trace(Decorates())
    after = fx.Tracer(autowrap_functions=(made[0],)).trace(made[0])
    for graph in (inside, after):
        assert [n.name for n in graph.nodes] == ["x", "add", "sqrt", "output"]


class Injected(BaseException):
    """Raised by the test at a chosen line."""


TURNS = 3
"""How often a line of a loop is tried: what its later turns do is the same."""


def run_raising_at(
    act: Callable[[], object], files: tuple[str, ...], count: int
) -> bool:
    """Run `act`, raising at the count-th line executed in `files`.

    Lines are counted the first `TURNS` times that they are executed.

    Returns whether there were so many lines.
    """
    left = count
    broken_into = ""
    turns: Counter[tuple[CodeType, int]] = Counter()

    def on_line(frame: FrameType, event: str, arg: object) -> AnyValue:
        nonlocal left, broken_into
        line = frame.f_code, frame.f_lineno
        turns[line] += event == "line"
        if event == "line" and turns[line] <= TURNS:
            left -= 1
            if left == 0:
                broken_into = f"line {frame.f_lineno} of {frame.f_code.co_name}"
                raise Injected(broken_into)
        return on_line

    def on_call(frame: FrameType, event: str, arg: object) -> AnyValue:
        return on_line if frame.f_code.co_filename in files else None

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        act()
    except Injected:
        pass
    except Exception as error:
        if broken_into:
            error.add_note(
                f"The test raised an exception before {broken_into}, as Ctrl-C "
                "may at any line, and what runs after it raised this one."
            )
        raise
    finally:
        sys.settrace(before)
    return left <= 0


def unwritten_module() -> types.ModuleType:
    """A Python module with a wrapped function, and one that calls it."""
    module = types.ModuleType("wrapped_for_isolation")
    sys.modules["tiny"] = tiny
    exec(
        "import fx, tiny\n"
        "from tiny import twice\n"
        "@fx.wrap\n"
        "def leaf(x): return x\n"
        "fx.wrap('len')\n"
        "def root(x):\n"
        "    return leaf(x) + tiny.half(x) + twice(x) + len(x)\n",
        vars(module),
    )
    return module


def test_an_exception_at_any_line_leaves_nothing_patched() -> None:
    module = unwritten_module()
    names = dict(vars(module))
    net = Net(1)
    attributes = set(vars(net))
    files = tuple(str(part.__file__) for part in (inputs, patching, tracer))

    def act() -> None:
        fx.Tracer((tiny,)).trace(net)
        fx.Tracer((tiny,)).trace(module.root)

    count = 0
    while True:
        count += 1
        more = run_raising_at(act, files, count)
        assert state_of_patches() == CLEAN, f"after line {count}"
        assert dict(vars(module)) == names, f"after line {count}"
        assert set(vars(net)) == attributes, f"after line {count}"
        if not more:
            break
    assert count > 300, "the trace ran far fewer lines than it has"
    assert "leaf" in str(fx.Tracer().trace(module.root))
    graphs: list[fx.Graph] = []
    elsewhere = threading.Thread(
        target=lambda: graphs.append(fx.Tracer().trace(net)), daemon=True
    )
    elsewhere.start()
    elsewhere.join(10)
    assert graphs, "a trace in another thread waits for an interrupted one"


@pytest.mark.parametrize(
    "kind",
    [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit, RecursionError],
)
def test_an_exception_in_forward_comes_through(
    kind: type[BaseException],
) -> None:
    class Fails(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.last = x + torch.ones(3)
            raise kind("from forward")

    net = Fails()
    with pytest.raises(kind):
        fx.Tracer().trace(net)
    assert not hasattr(net, "_tensor_constant0")


class Stubborn(dict[str, AnyValue]):
    """Globals that refuse to be written to, as often as one says."""

    refusals = 0

    def __setitem__(self, name: str, value: AnyValue) -> None:
        if self.refusals:
            self.refusals -= 1
            raise KeyboardInterrupt
        super().__setitem__(name, value)


def test_an_undoing_given_up_for_good_is_finished_by_the_next_trace() -> None:
    """An undoing is tried twice; interrupted twice, nobody waits for it."""
    patches = patching.Patches()
    names = Stubborn(sqrt=math.sqrt)

    def trace(refusals: int = 0) -> None:
        with patches.during(object()):
            patches.patch(names, ["sqrt"], lambda original: lambda x: 0)
            assert names["sqrt"] is not math.sqrt
            names.refusals = refusals

    with pytest.raises(KeyboardInterrupt):
        trace(refusals=2)
    assert names["sqrt"] is not math.sqrt
    assert not patches._open
    assert not patches._undoing
    elsewhere = threading.Thread(target=trace, daemon=True)
    elsewhere.start()
    elsewhere.join(10)
    assert not elsewhere.is_alive()
    assert names["sqrt"] is math.sqrt
    assert not patches._patches


def test_nobody_waits_for_a_thread_that_has_died_or_for_itself() -> None:
    patches = patching.Patches()
    no_thread = -1
    patches._undoing[object()] = no_thread
    patches._undoing[object()] = threading.get_ident()
    with patches.during(object()):
        pass


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_while_another_thread_traces_ends_clean() -> None:
    """In the child nobody ends that trace; its patches go all the same."""
    inside, go_on = threading.Event(), threading.Event()

    def waits(x: AnyValue) -> AnyValue:
        inside.set()
        assert go_on.wait(20)
        return x

    work = threading.Thread(target=lambda: fx.Tracer().trace(waits))
    work.start()
    assert inside.wait(10)
    child = os.fork()
    if not child:
        status = 1
        try:
            patched = state_of_patches()[0] is not CLEAN[0]
            fx.Tracer().trace(Net(1))
            status = 0 if patched and not TRACES._patches else 2
        finally:
            os._exit(status)
    go_on.set()
    work.join(10)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_task_keeps_its_stack_trace_to_itself() -> None:
    async def one() -> list[str]:
        fx_traceback.set_stack_trace(["one"])
        await asyncio.sleep(0.02)
        return fx_traceback.format_stack()

    async def two() -> list[str]:
        await asyncio.sleep(0.01)
        return fx_traceback.format_stack()

    async def both() -> list[list[str]]:
        with fx_traceback.preserve_node_meta():
            return [*await asyncio.gather(one(), two())]

    assert asyncio.run(both()) == [["one"], []]


class Rounded(torch.autograd.Function):
    """Rounds, and lets the gradient pass."""

    @staticmethod
    def forward(ctx: AnyValue, x: AnyValue) -> AnyValue:
        return x.round()

    @staticmethod
    def backward(ctx: AnyValue, *gradients: AnyValue) -> AnyValue:
        return gradients[0]


class Doubled(Rounded):
    """Has its forward from another function."""

    @staticmethod
    def backward(ctx: AnyValue, *gradients: AnyValue) -> AnyValue:
        return 2 * gradients[0]


class InTwoSteps(torch.autograd.Function):
    """Notes apart from forward what backward needs."""

    @staticmethod
    def forward(x: AnyValue) -> AnyValue:
        return x.round()

    @staticmethod
    def setup_context(
        ctx: AnyValue, inputs: AnyValue, output: AnyValue
    ) -> None: ...

    @staticmethod
    def backward(ctx: AnyValue, *gradients: AnyValue) -> AnyValue:
        return 3 * gradients[0]


@pytest.mark.parametrize("function", [Rounded, Doubled, InTwoSteps])
def test_a_function_with_its_own_backward_is_warned_of(
    function: AnyValue,
) -> None:
    apply: AnyValue = function.apply  # bound before the trace
    context = torch.autograd.function.BackwardCFunction
    before = [dict(vars(one)) for one in (Rounded, InTwoSteps, context)]
    x = torch.tensor([1.5], requires_grad=True)

    def eager() -> float:
        (found,) = torch.autograd.grad(apply(x).sum(), x)
        return float(found)

    gradient = eager()

    def root(y: AnyValue) -> AnyValue:
        assert eager() == gradient
        return apply(y)

    with pytest.warns(UserWarning, match="its backward") as caught:
        gm = fx.symbolic_trace(root)
    assert [one.filename for one in caught] == [__file__]
    assert [node.target for node in gm.graph.nodes][1:-1] == ["round"]
    assert before == [vars(one) for one in (Rounded, InTwoSteps, context)]
    assert eager() == gradient
