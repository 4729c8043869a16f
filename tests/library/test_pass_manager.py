"""Passes: PassBase and PassManager, beside torch.fx."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable

import pytest
import torch
import torch.fx
from torch import nn

import fx
from fx.passes.dialect.common.cse_pass import CSEPass
from fx.passes.infra.pass_base import PassBase, PassResult
from fx.passes.infra.pass_manager import (
    PassManager,
    pass_result_wrapper,
    this_before_that_pass_constraint,
)
from fx.use_def.values import AnyValue


def libraries() -> list[tuple[AnyValue, AnyValue, AnyValue]]:
    """The two libraries, and of each the two modules."""
    return [
        (
            lib,
            importlib.import_module(f"{lib.__name__}.passes.infra.pass_base"),
            importlib.import_module(
                f"{lib.__name__}.passes.infra.pass_manager"
            ),
        )
        for lib in (fx, torch.fx)
    ]


def f(x: AnyValue) -> AnyValue:
    y = torch.add(x, x)
    z = torch.add(y, x)
    return torch.add(y, z)


def replacing(base: AnyValue, old: AnyValue, new: AnyValue) -> AnyValue:
    """A pass that lets calls of one function call another."""

    class Replace(base.PassBase):  # type: ignore[misc]
        def call(self, graph_module: AnyValue) -> AnyValue:
            found = graph_module.graph.find_nodes(
                op="call_function", target=old
            )
            for node in found:
                node.target = new
            return base.PassResult(graph_module, bool(found))

    return Replace()


def test_passes_are_run_until_nothing_changes() -> None:
    seen = []
    for lib, base, infra in libraries():
        gm = lib.symbolic_trace(f)
        passes = [
            replacing(base, torch.mul, torch.div),
            replacing(base, torch.add, torch.mul),
        ]
        once = infra.PassManager(passes=[*passes])(gm)
        targets = [n.target for n in gm.graph.nodes if n.op == "call_function"]
        often = infra.PassManager(passes=passes, steps=5)
        more = often(once.graph_module)
        seen.append(
            (once.modified, targets, more.modified, more.graph_module.code)
        )
        assert more.graph_module(torch.ones(1)).item() == 1
        assert often(gm).modified is False
    assert seen[0] == seen[1]


def test_what_each_pass_changed() -> None:
    def double(gm: fx.GraphModule) -> None:
        for node in gm.graph.find_nodes(op="call_function", target=torch.add):
            with gm.graph.inserting_after(node):
                gm.graph.call_function(torch.relu, (node,))

    run = PassManager(
        [
            pass_result_wrapper(double),
            pass_result_wrapper(lambda gm: None),
            CSEPass(),
        ]
    )
    gm = fx.symbolic_trace(lambda x: torch.add(x, 1) + torch.add(x, 1))
    result = run(gm)
    told = [
        (each.name, each.added, each.removed, each.modified)
        for each in run.changes
    ]
    assert told[0] == ("double", 2, 0, True)
    assert told[2] == ("CSEPass", 0, 2, True)
    assert all(each.seconds >= 0 for each in run.changes)
    assert result.graph_module(torch.zeros(1)).tolist() == [2]


def test_a_pass_that_returns_nothing_is_told() -> None:
    for lib, _, infra in libraries():
        gm = lib.symbolic_trace(f)

        def nothing(gm: AnyValue) -> None:
            gm.recompile()

        with pytest.raises(Exception, match="running the 'nothing' pass after"):
            infra.PassManager([nothing])(gm)
        wrapped = infra.pass_result_wrapper(nothing)
        assert wrapped.__name__ == "nothing"
        assert infra.PassManager([wrapped])(gm).modified
        assert infra.pass_result_wrapper(None) is None
        with pytest.raises(Exception, match="pass after the following"):
            infra.PassManager([infra.pass_result_wrapper(lambda gm: 3)])(gm)


class Named:
    """A pass that is an object and does nothing."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, gm: AnyValue) -> PassResult:
        return PassResult(gm, False)


ORDERS = [
    ("abcd", ["ca", "db"]),
    ("abcd", ["dc", "cb", "ba"]),
    ("abcd", ["ba", "bd"]),
    ("abcd", []),
    ("cab", ["ac"]),
]


@pytest.mark.parametrize(("names", "first"), ORDERS)
def test_an_order_is_found(names: str, first: list[str]) -> None:
    seen = []
    for _, _, infra in libraries():
        passes = {name: Named(name) for name in names}
        run = infra.PassManager([*passes.values()])
        for this, that in map(tuple, first):
            run.add_constraint(
                infra.this_before_that_pass_constraint(
                    passes[this], passes[that]
                )
            )
        if first:
            with pytest.raises(RuntimeError, match="schedule constraint viol"):
                run.validate_constraints()
        run.solve_constraints()
        run.validate_constraints()
        seen.append("".join(each.name for each in run.passes))
    assert seen[0] == seen[1]


def test_a_circle_of_constraints_is_told() -> None:
    for _, _, infra in libraries():
        a, b = Named("a"), Named("b")
        rule = infra.this_before_that_pass_constraint
        run = infra.PassManager([a, b], [rule(a, b), rule(b, a)])
        with pytest.raises(RuntimeError, match="Circular dependency detected"):
            run(nn.Identity())


def test_a_pass_that_runs_twice() -> None:
    a, b = Named("a"), Named("b")
    run = PassManager([b, a, a], [this_before_that_pass_constraint(a, b)])
    run.solve_constraints()
    assert run.passes == [a, a, b]
    run.add_pass(a)
    with pytest.raises(RuntimeError, match="schedule constraint violated"):
        run.validate_constraints()


def check_no_div(module: nn.Module) -> None:
    """Raise if a module divides."""
    graph: AnyValue = module.graph
    if graph.find_nodes(op="call_function", target=torch.div):
        raise ValueError("it divides")


def test_checks() -> None:
    for lib, base, infra in libraries():
        gm = lib.symbolic_trace(f)
        run = infra.PassManager(
            [replacing(base, torch.add, torch.div)],
            run_checks_after_each_pass=True,
        )
        run.add_checks(check_no_div)
        with pytest.raises(Exception, match="running the 'Replace' pass") as e:
            run(gm)
        assert str(e.value.__cause__) == "it divides"
        with pytest.raises(ValueError, match="it divides"):
            run(gm)
        with pytest.raises(TypeError, match="only take in one variable"):
            run.add_checks(lambda a, b: None)


def breaking(gm: AnyValue) -> None:
    """A pass that leaves a graph in which a value is used before it is made."""
    first, second, *_ = gm.graph.find_nodes(
        op="call_function", target=torch.add
    )
    first.args = (second, second)


def test_graphs_are_linted_after_each_pass() -> None:
    gm = fx.symbolic_trace(f)
    wrapped = pass_result_wrapper(breaking)
    with pytest.raises(Exception, match="running the 'breaking' pass"):
        PassManager([wrapped], run_checks_after_each_pass=True)(gm)
    PassManager([wrapped])(fx.symbolic_trace(f))


def test_failures_can_be_logged_instead(
    caplog: pytest.LogCaptureFixture,
) -> None:
    run = PassManager(
        [Named("a")],
        run_checks_after_each_pass=True,
        suppress_check_failures=True,
    )
    run.add_checks(lambda module: 1 / 0)  # type: ignore[arg-type]
    with caplog.at_level(logging.ERROR):
        assert run(fx.symbolic_trace(f)).modified is False
    assert "ZeroDivisionError" in caplog.text


def test_conditions_before_and_after() -> None:
    order = []

    class Checked(PassBase):
        def requires(self, graph_module: fx.GraphModule) -> None:
            order.append("requires")

        def call(self, graph_module: fx.GraphModule) -> PassResult:
            order.append("call")
            return PassResult(graph_module, False)

        def ensures(self, graph_module: fx.GraphModule) -> None:
            order.append("ensures")

    gm = fx.symbolic_trace(f)
    assert Checked()(gm) == (gm, False)
    assert order == ["requires", "call", "ensures"]
    abstract: Callable[[], object] = PassBase
    with pytest.raises(TypeError):
        abstract()
