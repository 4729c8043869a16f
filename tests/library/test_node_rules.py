"""Rules that are functions of a node, beside patterns that say the same."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import pytest
import torch
from torch import nn

import fx
from fx.passes.fake_tensor_prop import FakeTensorProp
from fx.rewriting.node_rules import NodeRule, Rewriter, rewrite
from fx.rewriting.rules import AnyRule, DoesNotEndError, Rule
from fx.rewriting.rules import rewrite_until_stable as apply
from fx.use_def.values import AnyValue
from tests.library.counted import calls

Program: TypeAlias = Callable[[AnyValue], AnyValue]
X = torch.linspace(-2, 2, 6).view(2, 3)


@rewrite("call_function", torch.neg)
def neg_neg(node: fx.Node, rewriter: Rewriter) -> None:
    (inner,) = node.all_input_nodes
    if inner.target is torch.neg:
        rewriter.replace(node, inner.args[0], inputs=True)


@rewrite("call_function", torch.relu, torch.relu_)
def clamped(node: fx.Node, rewriter: Rewriter) -> None:
    new = rewriter.insert("call_method", "clamp", node.args, {"min": 0})
    rewriter.replace(node, new)


@rewrite("call_method", "abs")
def abs_twice(node: fx.Node, rewriter: Rewriter) -> None:
    new = rewriter.insert("call_function", torch.abs, node.args)
    new = rewriter.insert("call_function", torch.abs, (new,))
    rewriter.replace(node, new)


@rewrite("call_function")
def unused(node: fx.Node, rewriter: Rewriter) -> None:
    if not node.users:
        rewriter.erase(node)


PAIRS: tuple[tuple[AnyRule, AnyRule], ...] = (
    (neg_neg, Rule(lambda a: torch.neg(torch.neg(a)), lambda a: a)),
    (clamped, Rule(lambda a: torch.relu(a), lambda a: a.clamp(min=0))),
    (abs_twice, Rule(lambda a: a.abs(), lambda a: torch.abs(torch.abs(a)))),
)

PROGRAMS: tuple[Program, ...] = (
    lambda x: torch.neg(torch.neg(torch.neg(torch.relu(x)))),
    lambda x: (torch.relu(torch.neg(torch.neg(x))).abs(), torch.neg(x)),
    lambda x: {"a": [x.abs(), torch.relu(x) + torch.relu(x)]},
)


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_function_does_what_a_pattern_does(
    pair: tuple[AnyRule, AnyRule], program: Program
) -> None:
    by_function, by_pattern = made = [fx.symbolic_trace(program) for _ in pair]
    counts = [apply(gm, [r]) for gm, r in zip(made, pair, strict=True)]
    assert counts[0] == counts[1]
    for gm in made:
        gm.graph.lint()
        gm.graph.eliminate_dead_code()
    assert not fx.diff(by_pattern, by_function)
    torch.testing.assert_close(by_function(X), program(X))


def test_both_kinds_stand_in_one_list() -> None:
    gm = fx.symbolic_trace(lambda x: torch.neg(torch.sign(torch.neg(x))))
    rules = [neg_neg, Rule(lambda a: torch.sign(a), lambda a: torch.neg(a))]
    assert apply(gm, rules) == 2
    assert [node.name for node in gm.graph.nodes if node.users] == ["x", "neg"]


def chain(size: int) -> fx.GraphModule:
    graph = fx.Graph()
    value = graph.placeholder("x")
    for _ in range(size):
        value = graph.call_function(torch.neg, (value,))
    graph.output(value)
    return fx.GraphModule(nn.Module(), graph)


@pytest.mark.parametrize("rule", [neg_neg, unused])
def test_the_work_grows_with_the_graph(rule: NodeRule) -> None:
    """`unused` goes up the chain, against the order of its nodes."""
    counts = []
    for gm in map(chain, (1_250, 10_000)):
        if rule is unused:
            gm.graph.output_node().args = (None,)
        counts.append(calls(partial(rule, gm), "call", "c_call"))
        left = gm.graph.find_nodes(op="call_function", target=torch.neg)
        assert len([node for node in left if node.users]) == 0
    assert counts[0] < counts[1] < 9 * counts[0]


def test_what_is_inserted_says_where_it_came_from() -> None:
    gm = fx.symbolic_trace(lambda x: torch.relu(x) + 1)
    (relu,) = gm.graph.find_nodes(op="call_function", target=torch.relu)
    relu.meta = {"stack_trace": "line 1", "val": X, "mine": 2}
    assert clamped(gm) == 1
    (new,) = gm.graph.find_nodes(op="call_method", target="clamp")
    assert new.meta == {
        "stack_trace": "line 1",
        "mine": 2,
        "replaces": ("relu",),
    }


@pytest.mark.parametrize("recompute", [False, True])
def test_notes_on_values_are_true(recompute: bool) -> None:
    @rewrite("call_function", torch.relu, recompute_meta=recompute)
    def wider(node: fx.Node, rewriter: Rewriter) -> None:
        new = rewriter.insert("call_function", torch.cat, ([*node.args] * 2,))
        rewriter.replace(node, new)

    gm = fx.symbolic_trace(lambda x: torch.relu(x) + 1)
    FakeTensorProp(gm).propagate(X)
    assert wider(gm) == 1
    (add,) = gm.graph.output_node().all_input_nodes
    noted = add.meta.get("val")
    assert noted is None if noted is None else tuple(noted.shape) == (4, 3)
    assert (noted is not None) is recompute


def test_a_value_may_become_a_constant_or_a_list() -> None:
    @rewrite("call_method")
    def fold(node: fx.Node, rewriter: Rewriter) -> None:
        if node.target == "dim":
            rewriter.replace(node, 2)
        elif node.target == "split":
            rewriter.replace(node, [node.args[0], 3])

    gm = fx.symbolic_trace(lambda x: (x.dim() + x, x.split(1)))
    assert fold(gm) == 2
    assert str(gm.graph.output_node().args) == "((add, [x, 3]),)"
    torch.testing.assert_close(gm(X), (2 + X, [X, 3]))


@pytest.mark.parametrize("inputs", [False, True])
def test_what_is_dead_is_erased_if_that_is_asked(inputs: bool) -> None:
    @rewrite("call_function", torch.abs)
    def drop(node: fx.Node, rewriter: Rewriter) -> None:
        if not node.users:
            rewriter.erase(node, inputs=inputs)

    gm = fx.symbolic_trace(lambda x, y: (torch.abs(torch.exp(y) + x), x)[1])
    assert drop(gm) == 1
    assert (len(gm.graph.nodes) == 3) is inputs


def test_a_rule_may_edit_by_itself_and_say_so() -> None:
    @rewrite("call_function", torch.relu)
    def to_abs(node: fx.Node, rewriter: Rewriter) -> None:
        node.target = torch.abs
        rewriter.changed(node)

    @rewrite("call_function", torch.abs)
    def to_neg(node: fx.Node, rewriter: Rewriter) -> None:
        node.target = torch.neg
        rewriter.changed(node)

    gm = fx.symbolic_trace(lambda x: torch.neg(torch.relu(x)))
    assert apply(gm, [to_neg, to_abs, neg_neg]) == 3
    assert str(gm.graph.output_node().args) == "(x,)"


def fails(node: fx.Node, rewriter: Rewriter) -> None:
    rewriter.gm.add_submodule("more", nn.ReLU())
    rewriter.replace(node, rewriter.insert("call_module", "more", node.args))
    raise KeyError("no")


def after_itself(node: fx.Node, rewriter: Rewriter) -> None:
    new = rewriter.insert("call_function", torch.abs, node.args)
    new.args = (node,)
    rewriter.replace(node, new)


def used(node: fx.Node, rewriter: Rewriter) -> None:
    rewriter.erase(node)


def endless(node: fx.Node, rewriter: Rewriter) -> None:
    new = rewriter.insert("call_function", torch.relu, node.args)
    rewriter.replace(node, new)


@pytest.mark.parametrize(
    ("function", "kind", "said"),
    [
        (fails, KeyError, "raised by the rule fails at node relu"),
        (after_itself, ValueError, "abs_1 uses relu and cannot use abs_1"),
        (used, RuntimeError, "relu"),
        (endless, DoesNotEndError, "the last by rule endless at node relu_"),
    ],
)
def test_a_rule_that_raises_changes_nothing(
    function: Callable[[fx.Node, Rewriter], object],
    kind: type[Exception],
    said: str,
) -> None:
    gm = fx.symbolic_trace(lambda x: torch.relu(x) + 1)
    before, code = [*gm.graph.nodes], gm.code
    rule = rewrite("call_function", torch.relu)(function)
    with pytest.raises(kind) as raised:
        apply(gm, [rule], max_rewrites=20)
    notes = getattr(raised.value, "__notes__", ())
    assert said in f"{raised.value} {' '.join(notes)}"
    if kind is not DoesNotEndError:
        assert notes == [f"raised by the rule {rule} at node relu"]
    assert ([*gm.graph.nodes], gm.code) == (before, code)
    assert not hasattr(gm, "more")
    gm.graph.lint()
    torch.testing.assert_close(gm(X), torch.relu(X) + 1)


def test_hooks_are_told() -> None:
    gm, told = fx.symbolic_trace(lambda x: torch.relu(x) + 1), []
    with gm._set_replace_hook(lambda **about: told.append(about["new"])):
        clamped(gm)
    assert told == ["clamp"]
