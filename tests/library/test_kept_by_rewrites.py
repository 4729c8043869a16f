"""What a rewrite keeps on request: the matched modules, and what is written."""

from __future__ import annotations

from typing import no_type_check

import pytest
import torch
from torch import nn

from fx._symbolic_trace import symbolic_trace
from fx.extra.matching.explain import explain
from fx.graph import Graph
from fx.graph_module import GraphModule
from fx.rewriting.rules import Rule, rewrite_until_stable
from fx.subgraph_rewriter import replace_pattern, replace_pattern_with_filters
from fx.use_def.values import AnyValue

# -- modules of the pattern --------------------------------------------------


class Held(nn.Module):
    """A module that holds others, and runs a function of itself."""

    def __init__(self, run: AnyValue, **parts: nn.Module) -> None:
        super().__init__()
        self.run = run
        for name, part in parts.items():
            self.add_module(name, part)

    @no_type_check
    def forward(self, x):
        return self.run(self, x)


def linear(size: int = 2, *, bias: bool = True) -> nn.Linear:
    """A layer with random weights."""
    return nn.Linear(size, size, bias=bias)


class Net(nn.Module):
    """Three calls of two layers; one is called `l`, as in the pattern."""

    def __init__(self) -> None:
        super().__init__()
        self.l, self.inner = linear(), nn.Sequential(linear(), nn.ReLU())

    @no_type_check
    def forward(self, x):
        return self.inner(self.l(self.inner(x)))


X = torch.tensor([[0.5, -2.0], [3.0, 1.0]])
PATTERN = Held(lambda s, x: s.l(x), l=linear(1))


def rewritten(new: AnyValue, pattern: AnyValue = PATTERN) -> GraphModule:
    """The network, with its layers replaced."""
    gm = symbolic_trace(Net())
    replace_pattern(gm, pattern, new, modules_by_class=True)
    gm.graph.lint()
    return gm


@pytest.mark.parametrize("form", ["module", "traced", "graph", "no owner"])
def test_a_module_of_the_pattern_is_the_one_that_was_matched(form: str) -> None:
    new: AnyValue = Held(lambda s, x: s.l(x) * 2, l=linear(1))
    if form != "module":
        new = symbolic_trace(new)
    if form in ("graph", "no owner"):
        new = new.graph
    if form == "no owner":
        new.owning_module = None
    net = Net()
    gm = symbolic_trace(net)
    found = replace_pattern(gm, PATTERN, new, modules_by_class=True)
    assert len(found) == 3
    inner = net.inner[0]
    value = inner(X) * 2
    value = net.l(value.relu()) * 2
    assert torch.equal(gm(X), (inner(value) * 2).relu())
    assert len([*gm.parameters()]) == 4


def test_what_is_fetched_of_it_is_that_of_the_matched_module() -> None:
    new = Held(lambda s, x: x @ s.l.weight.t() + s.l.bias, l=linear(1))
    net = Net()
    gm = symbolic_trace(net)
    replace_pattern(gm, PATTERN, new, modules_by_class=True)
    torch.testing.assert_close(gm(X), net(X))
    fetched = [n.target for n in gm.graph.find_nodes(op="get_attr")]
    assert {*fetched[2:4]} == {"l.weight", "l.bias"}


def test_a_module_under_another_name_is_the_patterns_if_it_is_the_same() -> (
    None
):
    layer = linear(1)
    pattern = Held(lambda s, x: s.l(x), l=layer)
    net = Net()
    gm = symbolic_trace(net)
    new = Held(lambda s, x: s.other(x).clone(), other=layer)
    replace_pattern(gm, pattern, new, modules_by_class=True)
    assert torch.equal(gm(X), net(X))


def test_a_module_of_another_class_is_the_replacements() -> None:
    pattern = Held(lambda s, x: s.relu(x), relu=nn.ReLU())
    net = nn.Sequential()
    net.add_module("relu", nn.ReLU())
    net.add_module("two", nn.ReLU())
    gm = symbolic_trace(net)
    new = Held(lambda s, x: s.relu(x), relu=nn.Tanh())
    replace_pattern(gm, pattern, new, modules_by_class=True)
    assert torch.equal(gm(X), X.tanh().tanh())


def test_with_a_rule_it_is_so_too() -> None:
    net = Net()
    gm = symbolic_trace(net)
    pattern = Held(lambda s, x: s.l(x).relu(), l=linear())
    new = Held(lambda s, x: s.g(s.l(x)), l=linear(), g=nn.ReLU())
    both = nn.Sequential(net.l, net.inner[0])
    gm = symbolic_trace(
        Held(lambda s, x: s.both[1](s.both[0](x).relu()).relu(), both=both)
    )
    want = gm(X)
    rule = Rule(pattern, new, options={"modules_by_class": True})
    assert rewrite_until_stable(gm, [rule]) == 2
    assert torch.equal(gm(X), want)


def test_what_a_callback_gives_is_its_own() -> None:
    def make(match: AnyValue, graph: Graph, pattern: Graph) -> Graph:
        zero = linear()
        nn.init.zeros_(zero.weight)
        nn.init.ones_(zero.bias)
        return symbolic_trace(Held(lambda s, x: s.l(x), l=zero)).graph

    gm = symbolic_trace(nn.Sequential(linear()))
    replace_pattern_with_filters(
        gm,
        Held(lambda s, x: s.l(x), l=linear()),
        replacement_callback=make,
        modules_by_class=True,
    )
    assert torch.equal(gm(X), torch.ones(2, 2))


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (Held(lambda s, x: s.l(x), l=linear(7)), "same settings"),
        (
            Held(lambda s, x: s.l.weight + s.l.none, l=linear(1)),
            "has no 'none'",
        ),
    ],
)
def test_what_is_not_clear_is_refused(new: Held, message: str) -> None:
    if "none" in message:
        new.get_submodule("l").none = nn.Parameter(torch.ones(1))
    with pytest.raises(RuntimeError, match=message):
        rewritten(new)


def test_what_holds_a_module_of_the_pattern_is_refused() -> None:
    pattern = Held(lambda s, x: s.b[0](x), b=nn.Sequential(linear(1)))
    graph = Graph()
    graph.output(graph.call_module("b", (graph.placeholder("x"),)))
    new = GraphModule({"b": nn.Sequential(linear(1))}, graph)
    with pytest.raises(RuntimeError, match=r"call 'b\.0' in the replacement"):
        rewritten(new, pattern)


def test_one_module_stands_for_two_of_the_same_settings() -> None:
    pattern = Held(lambda s, x: s.d(s.d(x)), d=nn.Softmax(0))
    for second, count in ((nn.Softmax(1), 1), (nn.Softmax(0), 0)):
        gm = symbolic_trace(nn.Sequential(nn.Softmax(1), second))
        new = Held(lambda s, x: s.d(x), d=nn.Softmax(0))
        found = replace_pattern(gm, pattern, new, modules_by_class=True)
        assert len(found) == count


# -- writes ------------------------------------------------------------------


@no_type_check
def returns_written(x):
    y = torch.relu(x)
    y.mul_(2)
    return y


@no_type_check
def returns_write(x):
    return torch.relu(x).mul_(2)


@no_type_check
def reads_a_view(x):
    y = torch.relu(x)
    v = y.view(-1)
    return y.mul_(2) + 1, v.sum()


@no_type_check
def writes_an_input(x):
    return x.mul_(2)


@no_type_check
def keeps_it(x):
    y = torch.relu(x)
    kept = [y]
    z = y.mul_(2)
    return z, kept


@no_type_check
def under_two_names(x):
    y = torch.relu(x)
    v = y.view(-1)
    return y.mul_(2).view(-1) + v


@no_type_check
def draws(x):
    return torch.nn.functional.dropout(x, 0.5)


@no_type_check
def twice(a):
    return a.mul_(2)


@no_type_check
def pure(a):
    return a * 2


@no_type_check
def another_write(a):
    return a.copy_(a * 2)


@pytest.mark.parametrize(
    ("target", "pattern", "new", "why"),
    [
        (returns_write, twice, pure, ""),
        (returns_written, twice, pure, "output uses it later"),
        (returns_written, twice, another_write, ""),
        (returns_written, twice, lambda a: a.clone().mul_(2), "output uses"),
        (reads_a_view, twice, pure, "sum_1 uses it later"),
        (writes_an_input, twice, pure, "others may have its memory"),
        (writes_an_input, twice, another_write, ""),
        (keeps_it, twice, pure, "output uses it later"),
        (
            under_two_names,
            lambda a, b: a.mul_(2).view(-1) + b,
            lambda a, b: (a * 2).view(-1) + b,
            "uses it under another name",
        ),
        (
            lambda x: torch.relu(x).view(-1).mul_(2),
            lambda a: a.view(-1).mul_(2),
            lambda a: a.view(-1).mul_(3),
            "",
        ),
        (
            lambda x: x.view(-1).mul_(2),
            lambda a: a.view(-1).mul_(2),
            lambda a: a.view(-1).mul_(2),
            "",
        ),
        (
            lambda x: x.view(-1).mul_(2),
            lambda a: a.view(-1).mul_(2),
            lambda a: a.reshape(-1).mul_(2),
            "others may have its memory",
        ),
        (
            draws,
            lambda a: torch.nn.functional.dropout(a, 0.5),
            lambda a: torch.nn.functional.dropout(a, 0.5).clone(),
            "",
        ),
        (
            draws,
            lambda a: torch.nn.functional.dropout(a, 0.5),
            lambda a: a.clone(),
            "has an effect",
        ),
        (
            lambda x: torch.exp(torch.relu(x)),
            lambda a: torch.exp(a),
            lambda a: a.exp_(),
            "",
        ),
        (
            lambda x: torch.exp(x),
            lambda a: torch.exp(a),
            lambda a: a.exp_(),
            "the replacement writes into x",
        ),
    ],
)
def test_no_write_is_lost_on_request(
    target: AnyValue, pattern: AnyValue, new: AnyValue, why: str
) -> None:
    gm = symbolic_trace(target)
    text = explain(gm, pattern, new, print_output=False, respect_mutations=True)
    assert why in text
    assert ("left alone" in text) == bool(why)
    found = replace_pattern(gm, pattern, new, respect_mutations=True)
    assert len(found) == (not why)


def test_a_module_that_changes_itself_has_to_be_called() -> None:
    for new, count in (
        (Held(lambda s, x: s.n(x) * 1, n=nn.BatchNorm1d(2)), 1),
        (Held(lambda s, x: x * 1, n=nn.BatchNorm1d(2)), 0),
        (Held(lambda s, x: s.m(x) * 1, m=nn.BatchNorm1d(2)), 0),
    ):
        gm = symbolic_trace(nn.Sequential(nn.BatchNorm1d(2)))
        found = replace_pattern(
            gm,
            Held(lambda s, x: s.n(x), n=nn.BatchNorm1d(2)),
            new,
            respect_mutations=True,
            modules_by_class=True,
        )
        assert len(found) == count
