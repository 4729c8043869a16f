"""The benchmarks measure equal work, in turn, and judge it rightly."""

from __future__ import annotations

import contextlib
import gc
import json
import platform
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import fx
from tests.benchmarks import (
    alone,
    bare,
    examples,
    growth,
    instructions,
    networks,
)
from tests.benchmarks.__main__ import main
from tests.benchmarks.measure import (
    A_CALL,
    A_NODE,
    BYTES,
    Rounds,
    Task,
    Unit,
    allocated,
    measure,
    seconds,
)
from tests.benchmarks.operations import (
    OURS,
    TORCH,
    Benchmark,
    Beside,
    Goal,
    Library,
    at_least,
    at_most,
    select,
)
from tests.benchmarks.programs import HalfDead, Matches, Mixed, Nested
from tests.benchmarks.report import DifferentWork, check_same_work, measured
from tests.benchmarks.tables import BENCHMARKS

# What torch.fx's own split_const_subgraphs says of its graph.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Attempted to insert a get_attr Node:UserWarning"
)

TINY = 40
QUICK = Rounds(most=1, least=1, sample=0.0)
FEW = 2


@pytest.fixture(autouse=True)
def frozen_again() -> None:
    """Let `measure`, which collects garbage first, not look at torch each time.

    `measure` itself takes this back, as test_the_collector_... says.
    """
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def few_networks() -> Iterator[None]:
    """Measure the smallest networks: tests/parity compares all of them."""
    patch = pytest.MonkeyPatch()
    zoo = networks.networks(networks.SIZES[0])
    few = sorted(zoo, key=lambda one: len([*one[0].modules()]))
    patch.setattr(networks, "networks", lambda size: few[:FEW])
    patch.setattr(examples, "NETWORKS", ("dlrm",))
    examples.zoo.cache_clear()
    yield
    patch.undo()
    examples.zoo.cache_clear()


def ready(name: str) -> Benchmark:
    """A benchmark, unless what it measures is not written yet."""
    if missing := BENCHMARKS[name].missing():
        pytest.skip(f"fx has no {', '.join(missing)} yet")
    return BENCHMARKS[name]


# -- the operations --------------------------------------------------------


@pytest.mark.parametrize("name", BENCHMARKS)
def test_both_libraries_do_the_same_work(name: str) -> None:
    check_same_work(ready(name), TINY)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_runs(name: str) -> None:
    bench = ready(name)
    size = bench.sizes[0] if bench.unit is A_CALL else TINY
    row = measured(bench, size, QUICK)
    assert row.torch > 0
    assert row.ours > 0
    assert len(row.ratios) == 1


@pytest.mark.parametrize("name", BENCHMARKS)
def test_programs_have_about_as_many_nodes_as_their_size_says(
    name: str,
) -> None:
    bench = ready(name)
    if bench.unit is not A_CALL:
        for size in (TINY, 2_000):
            assert size <= bench.make(OURS, size).count <= size + 4


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_run_leaves_the_next_one_the_same_to_do(name: str) -> None:
    task = ready(name).make(OURS, TINY)
    first = str(task.show(task.run(task.setup())))
    assert str(task.show(task.run(task.setup()))) == first


def test_every_run_has_half_of_the_nodes_to_erase() -> None:
    task = ready("eliminate-dead-code").make(OURS, TINY)
    for _ in range(2):
        given = task.setup()
        before = len(given.nodes)
        assert len(task.run(given).nodes) == before - TINY // 2


def test_every_run_has_a_match_in_four_nodes_to_replace() -> None:
    task = ready("replace-pattern").make(OURS, TINY)
    for _ in range(2):
        given = task.setup()
        assert "sigmoid(" not in given.code
        assert task.run(given).code.count("sigmoid(") == TINY // 4


def test_the_floor_of_nested_modules_records_what_fx_does() -> None:
    root, tracer, bare_tracer = Nested(TINY), fx.Tracer(), bare.Tracer()
    ours, floor = tracer.trace(root).nodes, bare_tracer.trace(root).nodes()
    assert len(floor) == TINY + 2
    for node, plain in zip(ours, floor, strict=True):
        for name in ("op", "name", "target", "args", "kwargs", "meta", "users"):
            assert str(getattr(node, name)) == str(getattr(plain, name))
    assert bare_tracer.node_name_to_scope == tracer.node_name_to_scope


def test_the_edits_by_hand_are_those_of_replace_pattern() -> None:
    by_hand = alone.edits_and_code(TINY)
    rewritten = ready("replace-pattern").make(OURS, TINY)
    gm = by_hand.run(by_hand.setup())
    gm.recompile()
    assert gm.code == rewritten.run(rewritten.setup()).code


@pytest.mark.parametrize("lib", [TORCH, OURS], ids=lambda lib: lib.name)
def test_growth_is_of_whole_rewrites_without_compile(lib: Library) -> None:
    ready("replace-pattern")
    row = growth.grown(lib, TINY, runs=2)
    assert (row.name, row.size, len(row.times)) == (lib.name, TINY, 2)
    assert row.a_node > 0
    with growth.without_compile(lib):
        module = lib.compiled(Matches(TINY))
        assert module(1.0) is None
        assert "torch.relu" in module.code
    assert lib.compiled(Matches(TINY))(torch.ones(1)) is not None


def test_scale_is_of_each_operation_at_each_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # No time is read here: garbage need not be collected before each row.
    monkeypatch.setattr(growth, "collector_off", contextlib.nullcontext)
    lines = list(growth.scale_table((TINY, 2 * TINY), most=1))
    rows = [line for line in lines if f" {2 * TINY} " in line]
    assert len(rows) == len([line for line in lines if f" {TINY} " in line])
    assert [row[:31].strip() for row in rows[:9]] == [
        "deepcopy, floor",
        "lint, floor",
        "eliminate-dead-code, floor",
        "interpreter-on-a-number, floor",
        "save, floor",
        "load, floor",
        "replace an input, wide, floor",
        "trace-functions",
        "trace-mixed",
    ]
    assert all(float(row[41:50]) > 0 for row in rows)
    told = {row[:31].strip(): row.split()[-1] for row in rows}
    assert told["lint"] in ("met", "MISSED")


def test_the_floors_of_growth_do_what_they_are_floors_of() -> None:
    graph = growth._bare_graph(Mixed(TINY))
    assert len(graph.nodes()) == len(OURS.trace(Mixed(TINY)).nodes)
    lines = [(node.op, node.name, str(node.args)) for node in graph.nodes()]
    for made in (growth._copied(graph), growth._loaded(growth._saved(graph))):
        assert [(n.op, n.name, str(n.args)) for n in made.nodes()] == lines
    fan = growth._redirected(growth._bare_fan(TINY))
    x, y, *users = fan.nodes()
    assert [*x.users] == users and not y.users
    assert all(user.args == (x,) for user in users)
    swept = growth._eliminated(growth._bare_graph(HalfDead(TINY)))
    expected = OURS.trace(HalfDead(TINY))
    expected.eliminate_dead_code()
    assert [node.name for node in swept.nodes()] == [
        node.name for node in expected.nodes
    ]


@pytest.mark.parametrize(
    ("floor", "found", "told"),
    [(1.0, 2.59, "met"), (0.5, 2.61, "MISSED"), (1.2, 2.79, "met")],
)
def test_a_goal_of_growth_leaves_out_what_the_floor_takes_longer(
    floor: float, found: float, told: str
) -> None:
    first = {"lint": 2.0, "lint, floor": 1.0}
    now = {"lint": found, "lint, floor": floor}
    assert growth.verdict("lint", first, now).endswith(f" {told}")
    assert growth.verdict("lint, floor", first, now) == ""


def test_growth_is_told_as_multiples_of_the_first_size() -> None:
    ready("replace-pattern")
    lines = list(growth.table({OURS: (TINY, 2 * TINY)}))
    rows = [line.split() for line in lines if line.startswith("fx")]
    assert [row[:2] for row in rows] == [["fx", "40"], ["fx", "80"]]
    assert float(rows[0][-1]) == 1


# -- the measuring ---------------------------------------------------------


class Machine:
    """A clock that only moves when work is done, and who did work when."""

    def __init__(self) -> None:
        self.now = 0.0
        self.ran: list[str] = []
        self.collecting: list[bool] = []

    def clock(self) -> float:
        """The time on the clock."""
        return self.now

    def takes(self, who: str, *times: float) -> Task:
        """A task that takes each of these times in turn, per 1 node."""
        turns = iter(times)

        def run(_: object) -> str:
            self.now += next(turns)
            self.ran.append(who)
            self.collecting.append(gc.isenabled())
            return who

        return Task(run, 1)

    def setup(self) -> None:
        """Something slow that must not be counted."""
        self.now += 100.0

    def unit(self) -> Unit:
        """Seconds of this machine."""
        return Unit(
            "s", 1.0, lambda task, loops: seconds(task, loops, self.clock)
        )


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_rounds_alternate_and_the_first_run_does_not_count(
    machine: Machine,
) -> None:
    tasks = {
        "torch": machine.takes("torch", 90, 1, 2, 3),
        "ours": machine.takes("ours", 90, 4, 5, 6),
    }
    samples = measure(tasks, machine.unit(), Rounds(most=3, sample=0.0))
    assert samples == {"torch": [1, 2, 3], "ours": [4, 5, 6]}
    assert machine.ran == ["torch", "ours"] * 2 + ["ours", "torch"] + [
        "torch",
        "ours",
    ]


def test_setup_is_not_timed(machine: Machine) -> None:
    task = replace(machine.takes("ours", 1, 3), setup=machine.setup)
    assert seconds(task, 2, machine.clock) == 2


def test_what_is_too_slow_runs_once(machine: Machine) -> None:
    slow = Rounds(too_slow=-1)
    tasks = {"torch": machine.takes("torch", 1)}
    assert len(measure(tasks, A_NODE, slow)["torch"]) == 1
    assert machine.ran == ["torch"]


def test_short_runs_are_repeated_and_long_ones_are_few() -> None:
    rounds = Rounds(most=9, least=3, budget=4.0, sample=0.03)
    assert rounds.loops(0.001) == 30
    assert rounds.loops(1.0) == 1
    assert rounds.number(0.01) == 9
    assert rounds.number(0.8) == 5
    assert rounds.number(60.0) == 3
    assert Rounds(most=1).number(0.01) == 1


def at_depth(depth: int, run: Callable[[], float]) -> float:
    """Call `run` from so many calls."""
    return at_depth(depth - 1, run) if depth else run()


def test_how_deep_a_benchmark_is_called_does_not_matter() -> None:
    def calls(_: object) -> None:
        for _ in range(100):
            nothing()

    def nothing() -> None: ...

    def quickest() -> float:
        return min(seconds(Task(calls, 1)) for _ in range(5))

    times = [at_depth(depth, quickest) for depth in range(200)]
    # Without room for their frames it would be a hundred times as long.
    assert max(times) < 10 * min(times)


def test_the_collector_is_off_while_timing_and_on_again_after(
    machine: Machine,
) -> None:
    def fails(_: object) -> None:
        raise ZeroDivisionError

    assert gc.isenabled()
    tasks = {"ours": machine.takes("ours", 1, 1, 1, 1)}
    measure(tasks, machine.unit(), Rounds(most=3, sample=0.0))
    assert machine.collecting == [False] * 4
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError):
        measure({"ours": Task(fails, 1)})
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


def test_bytes_are_those_that_are_kept() -> None:
    def run(_: object) -> bytes:
        bytes(500_000)  # gone at once
        return bytes(100_000)

    assert 100_000 <= allocated(Task(run, 1)) < 102_000


# -- the judging -----------------------------------------------------------


def fake(
    theirs: Task,
    ours: Task,
    goal: Goal | None = None,
    *,
    unit: Unit = A_NODE,
    beside: Beside | None = None,
) -> Benchmark:
    """A benchmark of two tasks that are there already."""

    def make(lib: Library, size: int) -> Task:
        return theirs if lib is TORCH else ours

    goals: dict[int | None, Goal] = {} if goal is None else {None: goal}
    return Benchmark("fake", make, "A fake.", goals, (1,), (), unit, (), beside)


def timed(
    machine: Machine, theirs: tuple[float, ...], ours: tuple[float, ...]
) -> tuple[Task, Task]:
    """Two tasks; the two runs that do not count are put in front."""
    return (
        replace(machine.takes("x", 1, 1, *theirs), count=2),
        replace(machine.takes("x", 1, 1, *ours), count=2),
    )


def test_the_ratio_is_the_median_of_the_rounds(machine: Machine) -> None:
    # Not the ratio of the medians, which come from different rounds.
    tasks = timed(machine, (2, 20, 30), (1, 4, 10))
    rounds = Rounds(most=3, sample=0.0)
    row = measured(fake(*tasks, unit=machine.unit()), 1, rounds)
    assert row.ratios == [2, 5, 3]
    assert row.ratio == 3
    assert (row.torch, row.ours) == (10, 2)


def test_what_is_subtracted_is_taken_off_both(machine: Machine) -> None:
    floor = Beside("floor", lambda _: machine.takes("x", 1, 1), subtract=True)
    tasks = timed(machine, (7,), (3,))
    bench = fake(*tasks, unit=machine.unit(), beside=floor)
    row = measured(bench, 1, QUICK)
    assert (row.torch, row.ours, row.beside) == (3, 1, 0.5)
    assert row.ratio == 3


@pytest.mark.parametrize(
    ("goal", "verdict"),
    [
        (at_least(2), "met"),
        (at_least(2.4), "close"),
        (at_least(2.6), "MISSED"),
        (at_most(1), "met"),
        (at_most(0.9), "close"),
        (at_most(0.7), "MISSED"),
        (None, ""),
    ],
)
def test_goals(machine: Machine, goal: Goal | None, verdict: str) -> None:
    tasks = timed(machine, (4,), (2,))
    row = measured(fake(*tasks, goal, unit=machine.unit()), 1, QUICK)
    assert (row.ratio, row.ours) == (2, 1)
    assert row.verdict == verdict


def test_different_results_are_not_compared(
    capsys: pytest.CaptureFixture[str],
) -> None:
    bench = fake(Task(lambda _: "1\n2", 1), Task(lambda _: "1\n3", 1))
    with pytest.raises(DifferentWork, match=r"\n 1\n-2\n\+3$"):
        measured(bench, 1, QUICK)
    assert main([], {"fake": bench}) == 1
    assert "fake: results differ" in capsys.readouterr().out


def test_different_sizes_are_not_compared() -> None:
    bench = fake(Task(lambda _: "same", 1), Task(lambda _: "same", 2))
    with pytest.raises(DifferentWork, match=r"has 1 nodes, fx 2"):
        measured(bench, 1, QUICK)


# -- the command line ------------------------------------------------------


@pytest.fixture
def spin() -> Iterator[Callable[[int], Task]]:
    """Makes a task that takes so many times as long as another."""

    def make(times: int) -> Task:
        def run(_: object) -> None:
            for _ in range(20_000 * times):
                pass

        return Task(run, 1)

    yield make


def test_a_goal_that_is_missed_is_the_exit_status(
    spin: Callable[[int], Task], capsys: pytest.CaptureFixture[str]
) -> None:
    def status(goal: Goal, *options: str) -> int:
        bench = fake(spin(4), spin(1), goal)
        return main(["--rounds=1", *options], {"fake": bench})

    assert status(at_least(2), "--check") == 0
    assert status(at_least(9)) == 0
    assert status(at_least(9), "--check") == 1
    assert capsys.readouterr().out.count("MISSED") == 2


def test_what_misses_its_goal_is_profiled(
    spin: Callable[[int], Task], capsys: pytest.CaptureFixture[str]
) -> None:
    bench = fake(spin(1), spin(1), at_least(9))
    main(["--rounds=1", "--profile=3"], {"fake": bench})
    assert "(run)" in capsys.readouterr().out


def test_json_has_every_round(
    spin: Callable[[int], Task], tmp_path: Path
) -> None:
    file = tmp_path / "rows.json"
    bench = fake(spin(1), spin(1), at_least(9))
    main(["--rounds=3", f"--json={file}"], {"fake": bench})
    (row,) = json.loads(file.read_text(encoding="utf-8"))["rows"]
    assert row["name"] == "fake"
    assert row["goal"] == "≥ 9"
    assert row["verdict"] == "MISSED"
    assert len(row["ratios"]) == 3


def test_what_fx_does_not_have_is_said(
    spin: Callable[[int], Task], capsys: pytest.CaptureFixture[str]
) -> None:
    bench = replace(fake(spin(1), spin(1)), needs=("graph", "no_such_file"))
    assert bench.missing() == ["no_such_file"]
    main([], {"fake": bench})
    assert "there is no fx.no_such_file yet" in capsys.readouterr().out


def test_benchmarks_are_selected_by_name() -> None:
    traces = [bench.name for bench in select(["trace"], BENCHMARKS)]
    assert traces[0] == "trace-tiny"
    assert all(name.startswith("trace-") for name in traces)
    assert select([], BENCHMARKS) == list(BENCHMARKS.values())
    with pytest.raises(ValueError, match="no benchmark is 'trase'"):
        select(["trase"], BENCHMARKS)


def test_a_wrong_name_is_a_wrong_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["--only=trase"])
    assert raised.value.code == 2
    assert "graph-copy" in capsys.readouterr().err


def test_bytes_have_one_goal_and_calls_no_size() -> None:
    assert BENCHMARKS["memory"].unit is BYTES
    assert BENCHMARKS["memory"].goal(10_000) == at_most(680)
    assert BENCHMARKS["call"].sizes == (1,)


@pytest.fixture
def can_count() -> None:
    """Skip where the kernel does not count instructions."""
    try:
        instructions.clock()
    except OSError as problem:
        pytest.skip(str(problem))


@pytest.mark.usefixtures("can_count")
def test_twice_the_work_is_twice_the_instructions() -> None:
    once = Task(lambda _: sum(range(100_000)), 1)
    twice = Task(lambda _: sum(range(200_000)), 1)
    clock = instructions.clock()
    found = [seconds(task, clock=clock) for task in (once, twice, twice)]
    assert found[1] / found[0] == pytest.approx(2, rel=0.1)
    assert found[1] == pytest.approx(found[2], rel=0.1)


@pytest.mark.usefixtures("can_count")
def test_the_tables_can_count_instructions(
    capsys: pytest.CaptureFixture[str],
) -> None:
    of = ["--only", "each-erase", "--only", "call", "--size", "40"]
    assert main(["--instructions", "--rounds", "1", *of]) == 0
    table = capsys.readouterr().out
    assert re.search(r"^each-erase +40 .* k/node$", table, re.MULTILINE)
    assert re.search(r"^call +1 .* M/call$", table, re.MULTILINE)


def test_where_nothing_can_count_instructions_it_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    with pytest.raises(SystemExit):
        main(["--instructions", "--only", "each-erase"])
    assert "on Linux only" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["--instructions", "--record"])
    assert "counts no growth" in capsys.readouterr().err
