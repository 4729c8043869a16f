"""Reinplace: what it refuses, what it tells, and what no parity shows."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
import torch
from torch import nn

import fx
from fx.passes.reinplace import ReinplaceReport, reinplace, reinplace_report
from tests.parity.programs.reinplacing import as_lib, captured, functional

aten = torch.ops.aten

AnyValue: TypeAlias = Any


def graph_module(
    build: Callable[[fx.Graph], object], root: nn.Module | None = None
) -> fx.GraphModule:
    graph = fx.Graph()
    graph.output(build(graph))
    return fx.GraphModule(root or nn.Module(), graph)


def calls(gm: fx.GraphModule) -> list[str]:
    """The targets of the calls, without "aten."."""
    return [
        str(n.target).removeprefix("aten.")
        for n in gm.graph.nodes
        if n.op not in ("placeholder", "get_attr", "output")
    ]


def rules(report: ReinplaceReport) -> dict[str, str]:
    """Node -> what stopped it."""
    return {verdict.node: verdict.rule for verdict in report.kept}


def x4() -> torch.Tensor:
    return torch.tensor([1.0, -2.0, 3.0, -4.0])


# --- bad input -------------------------------------------------------------


def add_graph() -> fx.GraphModule:
    return graph_module(
        lambda g: g.call_function(
            aten.add.Tensor,
            (g.call_function(aten.clone.default, (g.placeholder("x"),)), 1),
        )
    )


@pytest.mark.parametrize(
    ("inputs", "kind", "words"),
    [
        ((), RuntimeError, "Expected positional argument for parameter x"),
        ((1, 2), RuntimeError, "expected at most 1 positional"),
        (("text",), Exception, "While executing %clone_default"),
        ((None,), Exception, "While executing %clone_default"),
    ],
)
def test_wrong_inputs_are_refused_and_nothing_changes(
    inputs: tuple[AnyValue, ...], kind: type[Exception], words: str
) -> None:
    gm = add_graph()
    before = str(gm.graph)
    with pytest.raises(kind, match=words):
        reinplace(gm, *inputs)
    assert str(gm.graph) == before


def test_another_module_is_refused() -> None:
    not_one: AnyValue = nn.Linear(2, 2)
    with pytest.raises(TypeError, match="rewrites a GraphModule, not Linear"):
        reinplace(not_one, x4())


def test_memory_that_an_unknown_function_has_seen_is_not_written() -> None:
    seen: list[torch.Tensor] = []

    def stash(value: torch.Tensor) -> torch.Tensor:
        seen.append(value)
        return value

    def build(g: fx.Graph) -> object:
        a = g.call_function(aten.clone.default, (g.placeholder("x"),))
        g.call_function(stash, (a,))
        return g.call_function(aten.add.Tensor, (a, 1))

    gm = graph_module(build)
    report = reinplace_report(gm, x4())
    assert rules(report)["add_tensor"] == "1b"
    assert "no schema tells what stash does" in str(report)
    reinplace(gm, x4())
    gm(x4())
    assert torch.equal(seen[-1], x4())


def test_memory_that_a_graph_writes_itself_is_left_alone() -> None:
    def build(g: fx.Graph) -> object:
        a = g.call_function(aten.clone.default, (g.placeholder("x"),))
        g.call_function(aten.add_.Tensor, (a, 1))
        return g.call_function(aten.mul.Tensor, (a, 2))

    gm = graph_module(build)
    report = reinplace_report(gm, x4())
    (verdict,) = [v for v in report.kept if v.node == "mul_tensor"]
    assert verdict.rule == "1b"
    assert verdict.reason == (
        "add__tensor writes into it: the graph is not functional"
    )


def test_a_call_of_a_module_keeps_its_input() -> None:
    root = nn.Module()
    root.relu = nn.ReLU(inplace=True)

    def build(g: fx.Graph) -> object:
        a = g.call_function(aten.clone.default, (g.placeholder("x"),))
        b = g.call_module("relu", (a,))
        return g.call_function(aten.add.Tensor, (b, 1))

    gm = graph_module(build, root)
    expected = gm(x4())
    reinplace(gm, x4())
    assert torch.equal(gm(x4()), expected)
    assert calls(gm)[-1] == "add.Tensor"


def test_a_graph_without_tensors_or_calls() -> None:
    gm = graph_module(lambda g: g.placeholder("x"))
    assert reinplace(gm, 3)(3) == 3
    empty = graph_module(lambda g: None)
    assert reinplace(empty)() is None


def test_a_first_argument_by_keyword_is_left() -> None:
    def build(g: fx.Graph) -> object:
        a = g.call_function(aten.clone.default, (g.placeholder("x"),))
        kwargs: dict[str, object] = {"self": a, "other": 1}
        return g.call_function(aten.add.Tensor, (), kwargs)

    gm = graph_module(build)
    assert rules(reinplace_report(gm, x4()))["add_tensor"] == "1a"
    assert calls(reinplace(gm, x4())) == ["clone.default", "add.Tensor"]


def test_what_autograd_follows_is_left_alone() -> None:
    gm = captured(fx, lambda x: x.exp().mul(2), x4())
    x = x4().requires_grad_()
    report = reinplace_report(gm, x)
    assert "autograd may need" in str(report)
    with torch.no_grad():
        assert calls(reinplace(gm, x)) == ["exp.default", "mul_.Tensor"]
    gm = captured(fx, lambda x: x.exp().mul(2), x4())
    reinplace(gm, x)
    gm(x).sum().backward()
    assert x.grad is not None
    assert torch.allclose(x.grad, 2 * x.detach().exp())


# --- beyond torch.fx -------------------------------------------------------


def step(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """One step of a training loop that updates its weights in place."""

    def loss(w: torch.Tensor) -> torch.Tensor:
        return ((x @ w).tanh() ** 2).sum()

    w.sub_(torch.func.grad(loss)(w) * 0.1)
    return w.sum()


def test_a_training_step_updates_its_weights_in_their_memory() -> None:
    w, x = torch.rand(16, 16), torch.rand(2, 16)
    gm = functional(fx, step, w, x)
    mine, theirs = w.clone(), w.clone()
    report = reinplace_report(gm, w, x)
    reinplace(gm, w, x)
    assert torch.equal(gm(mine, x), step(theirs, x))
    assert torch.equal(mine, theirs)
    assert "copy_.default" not in calls(gm)
    assert "sub_.Tensor" in calls(gm)
    assert report.peak_after < report.peak_before


@pytest.mark.parametrize("use", ["before", "after", "result", "alias"])
def test_an_overwritten_input_that_is_needed_is_kept(use: str) -> None:
    def build(g: fx.Graph) -> object:
        x, y = g.placeholder("x"), g.placeholder("y")
        b = g.call_function(aten.mul.Tensor, (x, 2))
        read = y if use == "alias" else x
        early = g.call_function(aten.sum.default, (read,))
        c = g.call_function(aten.neg.default, (y,))
        g.call_function(aten.copy_.default, (x, c))
        late = g.call_function(aten.sum.default, (x,))
        result = {"before": early, "after": late, "alias": early}
        return (result.get(use, b), b if use == "result" else late)

    base = x4()
    y = base.view(4) if use == "alias" else x4()
    gm = graph_module(build)
    expected = gm(base.clone(), y.clone())
    reinplace(gm, base, y)
    assert calls(gm)[0] == "mul.Tensor"
    assert all(map(torch.equal, expected, gm(base.clone(), y.clone())))


def test_a_copy_of_the_input_turned_is_not_dropped() -> None:
    def build(g: fx.Graph) -> object:
        x = g.placeholder("x")
        b = g.call_function(aten.mul.Tensor, (x, 2))
        t = g.call_function(aten.t.default, (b,))
        g.call_function(aten.copy_.default, (x, t))
        return None

    gm = graph_module(build)
    x = torch.arange(4.0).view(2, 2)
    expected = (x * 2).t().clone()
    reinplace(gm, x)
    gm(x)
    assert torch.equal(x, expected)
    assert calls(gm) == ["mul.Tensor", "t.default", "copy_.default"]


def test_random_numbers_are_the_same() -> None:
    def build(g: fx.Graph) -> object:
        x = g.placeholder("x")
        a = g.call_function(aten.clone.default, (x,))
        t = g.call_function(aten.t.default, (a,))
        part = g.call_function(aten.slice.Tensor, (t, 1, 0, 2))
        flat = g.call_function(aten.clone.default, (x,))
        b = g.call_function(aten.bernoulli.p, (flat, 0.5))
        return g.call_function(aten.bernoulli.p, (part, 0.5)), b

    gm = graph_module(build)
    x = torch.rand(8, 8)
    torch.manual_seed(0)
    expected = gm(x)
    reinplace(gm, x)
    torch.manual_seed(0)
    assert all(map(torch.equal, expected, gm(x)))
    assert "bernoulli_.float" in calls(gm)
    assert "bernoulli.p" in calls(gm)


def test_a_second_time_changes_nothing() -> None:
    gm = captured(fx, lambda x: x.sin().add(1).mul(2), x4())
    first = reinplace(gm, x4()).code
    assert reinplace(gm, x4()).code == first


def test_unused_results_are_written_all_the_same() -> None:
    def build(g: fx.Graph) -> object:
        a = g.call_function(aten.clone.default, (g.placeholder("x"),))
        g.call_function(aten.add.Tensor, (a, 1))
        return 7

    gm = graph_module(build)
    assert reinplace(gm, x4())(x4()) == 7
    assert calls(gm) == ["clone.default", "add_.Tensor"]


# --- the report ------------------------------------------------------------


def test_the_report_names_the_rule_of_every_node() -> None:
    def build(g: fx.Graph) -> object:
        x = g.placeholder("x")
        a = g.call_function(aten.clone.default, (x,), name="a")
        g.call_function(aten.add.Tensor, (x, 1), name="on_input")
        g.call_function(aten.ge.Scalar, (a, 1), name="dtype")
        g.call_function(aten.mul.Tensor, (a, a), name="twice")
        g.call_function(aten.neg.default, (a,), name="used_later")
        b = g.call_function(aten.add.Tensor, (a, 1), name="b")
        return g.call_function(aten.sum.default, (b,), name="total")

    gm = graph_module(build)
    before = gm.code
    report = reinplace_report(gm, x4())
    assert gm.code == before
    assert rules(report) == {
        "a": "3b",
        "on_input": "1b",
        "dtype": "1a",
        "twice": "1c",
        "used_later": "2",
        "total": "3b",
    }
    assert [(v.node, v.rule) for v in report.done] == [("b", "3b")]
    first, *lines = str(report).splitlines()
    assert first.startswith("1 of 7 calls in place or erased; peak ")
    assert len(lines) == 7


def test_peak_bytes_are_counted() -> None:
    """A chain needs two buffers before, and one after; views cost nothing."""

    def f(x: torch.Tensor) -> torch.Tensor:
        return x.sin().add(1).view(2, 2).mul(2).exp()

    report = reinplace_report(captured(fx, f, x4()), x4())
    assert (report.peak_before, report.peak_after) == (32, 16)


def test_a_view_that_only_fake_tensors_allow_is_seen() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x.clone()[:, 0:3:2].mul(2).view(-1)

    x = torch.ones(2, 2, 3)
    gm = captured(fx, f, x)
    expected = gm(x)
    assert rules(reinplace_report(gm, x))["mul"] == "4"
    assert torch.equal(reinplace(gm, x)(x), expected)


# --- size ------------------------------------------------------------------


def long_chain(nodes: int) -> fx.GraphModule:
    """Writes through a view, over and over: every set of aliases is long."""

    def build(g: fx.Graph) -> object:
        value = g.call_function(aten.clone.default, (g.placeholder("x"),))
        for _ in range(nodes // 3):
            part = g.call_function(aten.select.int, (value, 0, 0))
            new = g.call_function(aten.add.Tensor, (part, 1))
            args = (value, new, 0, 0)
            value = g.call_function(aten.select_scatter.default, args)
        return value

    return graph_module(build)


def test_a_long_program_is_rewritten() -> None:
    gm = reinplace(long_chain(900), torch.zeros(2, 2))
    expected = torch.tensor([[300.0, 300.0], [0.0, 0.0]])
    assert torch.equal(gm(torch.zeros(2, 2)), expected)
    assert "select_scatter.default" not in calls(gm)


def looks(nodes: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often the pass takes a use from a heap, for so many nodes."""
    count = 0
    pop = heapq.heappop

    def counting(heap: list[int]) -> int:
        nonlocal count
        count += 1
        return pop(heap)

    with monkeypatch.context() as patch:
        patch.setattr("heapq.heappop", counting)
        reinplace(long_chain(nodes), torch.zeros(2, 2))
    return count


def test_work_grows_as_the_program_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small, large = looks(90, monkeypatch), looks(900, monkeypatch)
    assert 0 < small < large < 12 * small


def test_as_lib_keeps_the_graph() -> None:
    """The tests' own helper: what it makes for fx prints as torch's does."""
    theirs = captured(torch.fx, lambda x: x.sin() + 1, x4())
    assert str(as_lib(fx, theirs).graph) == str(theirs.graph)


def test_an_input_is_not_written_where_a_sparse_input_may_share_it() -> None:
    aten = torch.ops.aten
    graph = fx.Graph()
    sparse, x = graph.placeholder("sparse"), graph.placeholder("x")
    new = graph.call_function(aten.mul.Tensor, (x, 2))
    old = graph.call_function(aten._to_dense.default, (sparse,))
    graph.call_function(aten.copy_.default, (x, new))
    graph.output(old)
    gm = fx.GraphModule(torch.nn.Module(), graph)
    values = torch.ones(3)
    whole = torch.sparse_coo_tensor(
        torch.tensor([[0, 1, 2]]),
        values,
        (3,),
        is_coalesced=True,
        check_invariants=False,
    )
    assert torch.equal(
        reinplace(gm, whole, values)(whole, values), torch.ones(3)
    )
    assert torch.equal(values, torch.full((3,), 2.0))


def test_a_result_is_not_put_under_a_sparse_tensor_that_is_returned() -> None:
    aten = torch.ops.aten
    graph = fx.Graph()
    x = graph.placeholder("x")
    copy = graph.call_function(aten.clone.default, (x,))
    row = graph.call_function(aten.select.int, (copy, 0, 1))
    new = graph.call_function(aten.add.Tensor, (row, 3))
    whole = graph.call_function(aten.select_scatter.default, (copy, new, 0, 1))
    flat = graph.call_function(aten.view.default, (whole, [-1]))
    ones = graph.call_function(
        aten.ones.default, ([1, 4],), {"dtype": torch.int64}
    )
    sparse = graph.call_function(
        aten._sparse_coo_tensor_with_dims_and_tensors.default,
        (1, 0, [5], ones, flat),
        {"dtype": torch.float32, "layout": torch.sparse_coo},
    )
    graph.output((new, sparse))
    gm = fx.GraphModule(torch.nn.Module(), graph)
    x22 = torch.ones(2, 2)
    result, around = reinplace(gm, x22)(x22)
    values = around._values()
    result.zero_()
    assert values.tolist() == [1, 1, 4, 4]


@pytest.mark.parametrize("by_name", range(5))
def test_arguments_may_be_keywords(by_name: int) -> None:
    def build(graph: fx.Graph) -> object:
        def call(op: AnyValue, *args: object, **kwargs: object) -> fx.Node:
            is_named, names = number[0] == by_name, list(kwargs)
            number[0] += 1
            given = kwargs if is_named else {}
            rest = () if is_named else tuple(kwargs[name] for name in names)
            return graph.call_function(op, (*args, *rest), given)

        number = [0]
        x = graph.placeholder("x")
        whole = graph.call_function(aten.clone.default, (x,))
        row = call(aten.select.int, self=whole, dim=0, index=1)
        new = call(aten.add.Tensor, self=row, other=1)
        done = call(
            aten.select_scatter.default, self=whole, src=new, dim=0, index=1
        )
        more = call(aten.add.Tensor, self=x, other=2)
        return done, call(aten.copy_.default, self=x, src=more)

    gm, x, y = graph_module(build), x4().view(2, 2), x4().view(2, 2)
    expected, found = gm(x), reinplace(gm, y.clone())(y)
    torch.testing.assert_close((found, y), (expected, x), rtol=0, atol=0)


def test_a_copy_with_a_keyword_is_a_write() -> None:
    def build(graph: fx.Graph) -> object:
        x = graph.placeholder("x")
        more = graph.call_function(aten.add.Tensor, (x, 2))
        return graph.call_function(aten.copy_.default, (x,), {"src": more})

    gm = graph_module(build)
    reinplace(gm, x4())
    assert calls(gm) == ["add.Tensor", "copy_.default"]


def test_a_scatter_that_reaches_beyond_its_argument_is_kept() -> None:
    aten: Any = torch.ops.aten

    def program(x: torch.Tensor) -> torch.Tensor:
        new = aten.add.Tensor(x, 0.0)
        half = aten.slice.Tensor(new, 0, 4, 8)
        read = aten.slice.Tensor(new, 0, 0, 4, 2)
        into = aten.as_strided_scatter.default
        result: torch.Tensor = into(half, read, [2], [2], 2)
        return result

    def into_an_input(x: torch.Tensor) -> torch.Tensor:
        half, ones = aten.slice.Tensor(x, 0, 0, 4), aten.ones.default([4])
        new = aten.as_strided_scatter.default(half, ones, [4], [1], 4)
        aten.copy_.default(aten.slice.Tensor(x, 0, 0, 4), new)
        return x

    for function in program, into_an_input:
        gm = reinplace(fx.symbolic_trace(function), torch.arange(8.0))
        expected = fx.symbolic_trace(function)(torch.arange(8.0))
        assert torch.equal(gm(torch.arange(8.0)), expected)
