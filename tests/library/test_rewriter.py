"""replace_pattern: sound, all or nothing, and what torch.fx has not."""

from __future__ import annotations

import copy
import inspect
import linecache
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeAlias, no_type_check

import pytest
import torch
from hypothesis import given, settings
from torch import nn

from fx._symbolic_trace import symbolic_trace
from fx.extra.matching.explain import explain
from fx.graph import Graph
from fx.graph_module import GraphModule
from fx.node import Node
from fx.passes.utils.matcher_utils import InternalMatch, SubgraphMatcher
from fx.rewriting.rules import Rule, rewrite_until_stable
from fx.subgraph_rewriter import replace_pattern, replace_pattern_with_filters
from fx.use_def.protocols import PythonCode
from fx.use_def.values import AnyValue
from tests.library.counted import calls
from tests.library.random_graphs import (
    Recipe,
    all_matches,
    apart,
    build,
    recipes,
    small_recipes,
)

Code: TypeAlias = Callable[..., Any]
Traced: TypeAlias = Code | Graph
"""A function without annotations, to be traced; or a graph."""

TraceFunction: TypeAlias = Callable[[FrameType, str, Any], Any]
"""What sys.settrace takes."""

X = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64)
Y = torch.tensor([-1.0, 2.0, 0.5], dtype=torch.float64)


def traced(function: Callable[..., Any]) -> GraphModule:
    """The trace of a function."""
    return symbolic_trace(function)


def respelled(pattern: Graph) -> Graph:
    """A graph that computes the same with other operations."""
    new = Graph()
    values: dict[Node, Node] = {}
    for node in pattern.nodes:
        args = [values[a] for a in node.args if isinstance(a, Node)]
        if node.op == "placeholder":
            values[node] = new.placeholder(node.name)
        elif node.target is torch.relu:
            values[node] = new.call_method("clamp", (args[0], 0))
        elif node.target is torch.neg:
            values[node] = new.call_function(torch.sub, (0, args[0]))
        elif node.target is torch.add:
            minus = new.call_method("neg", (args[1],))
            values[node] = new.call_method("sub", (args[0], minus))
        elif node.target is torch.mul:
            values[node] = new.call_method("mul", (args[1], args[0]))
    returned = pattern.output_node().all_input_nodes
    new.output(tuple([values[node] for node in returned]))
    return new


@given(recipes, small_recipes)
@settings(max_examples=60, deadline=None)
def test_sound_rules_keep_the_result(big: Recipe, small: Recipe) -> None:
    gm, pattern = GraphModule({}, build(big)), build(small)
    expected = gm(X, Y)
    count = len(list(apart(all_matches(pattern, gm.graph))))
    done = replace_pattern_with_filters(gm, pattern, respelled(pattern))
    gm.graph.lint()
    assert len(done) == count
    for one, other in zip(gm(X, Y), expected, strict=True):
        torch.testing.assert_close(one, other)


# -- all or nothing ----------------------------------------------------------


def state(gm: GraphModule) -> object:
    """All that a rewrite could change, in a form that can be compared."""
    nodes = list(gm.graph.nodes)
    names = gm.graph._graph_namespace
    return (
        [(id(n), n.format_node(), list(map(str, n.users))) for n in nodes],
        [str(n) for n in reversed(gm.graph.nodes)],
        [str(n.next) for n in nodes],
        len(gm.graph.nodes),
        copy.deepcopy(dict(vars(names))),
        gm.code,
        sorted(gm.state_dict()),
    )


class Bringing(nn.Module):
    """A replacement with a module and a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Identity()
        self.scale = nn.Parameter(torch.ones(3, dtype=torch.float64))

    @no_type_check
    def forward(self, x):
        return self.inner(x) * self.scale


@no_type_check
def three_matches(x, y):
    a = torch.relu(torch.neg(x))
    b = torch.relu(torch.neg(a + y))
    return torch.relu(torch.neg(b)), a


@no_type_check
def relu_of_neg(x):
    return torch.relu(torch.neg(x))


MINE = (
    "rewriting/replacing.py",
    "rewriting/templates.py",
    "rewriting/places.py",
    "rewriting/snapshot.py",
    "fx/graph.py",
    "linked_list/linked_list.py",
)


def interrupt_at(number: int, act: Callable[[], object]) -> bool:
    """Whether `act` reached its line `number` in our files, and died there."""
    left = number

    def trace(
        frame: FrameType, event: str, arg: object
    ) -> TraceFunction | None:
        nonlocal left
        if not frame.f_code.co_filename.endswith(MINE):
            return None
        if frame.f_code.co_name in ("restore", "__exit__"):
            return None
        if event == "line":
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def test_a_rewrite_can_be_interrupted_at_each_line() -> None:
    gm = traced(three_matches)
    before, result = state(gm), gm(X, Y)
    number, new = 1, symbolic_trace(Bringing())

    def act() -> object:
        return replace_pattern_with_filters(gm, relu_of_neg, new)

    while interrupt_at(number, act):
        after = state(gm)
        if "inner" in gm.code:  # it had finished already
            break
        assert after == before, f"interrupted at line {number}"
        gm.graph.lint()
        number += 7
    assert number > 300
    assert gm.code.count("self.inner") == 3
    assert len(gm(X, Y)) == len(result)


def test_a_hook_that_raises_undoes_everything() -> None:
    gm = traced(three_matches)
    before = state(gm)
    seen: list[str] = []

    def refuse(node: Node) -> None:
        seen.append(str(node))
        if len(seen) == 3:
            raise ValueError("no more")

    gm._register_erase_node_hook(refuse)
    with pytest.raises(ValueError, match="no more"):
        replace_pattern(gm, relu_of_neg, lambda x: torch.exp(x))
    assert len(seen) == 3
    assert state(gm) == before
    gm._unregister_erase_node_hook(refuse)
    assert len(replace_pattern(gm, relu_of_neg, lambda x: torch.exp(x))) == 3
    gm.graph.lint()


@no_type_check
def _calls_no_such(x):
    return torch.relu(x).no_such()


class TestWithoutAMatch:
    """replace_pattern recompiles even then, and that keeps what is the same."""

    @staticmethod
    def no_match(gm: GraphModule) -> None:
        assert replace_pattern(gm, lambda x: torch.cosh(x), relu_of_neg) == []

    def test_what_would_be_the_same_stays(self) -> None:
        gm = traced(three_matches)
        forward, code = type(gm).forward, gm.code
        self.no_match(gm)
        assert type(gm).forward is forward and gm.code is code
        gm.recompile()
        assert type(gm).forward is forward
        del linecache.cache[forward.__code__.co_filename]
        gm.recompile()
        assert inspect.getsource(type(gm).forward) in code

    def test_the_same_text_may_mean_another_function(self) -> None:
        def once(x: torch.Tensor) -> torch.Tensor:
            return x * 2

        def again(x: torch.Tensor) -> torch.Tensor:
            return x * 3

        again.__name__, again.__qualname__ = once.__name__, once.__qualname__
        graph = Graph()
        node = graph.call_function(once, (graph.placeholder("x"),))
        graph.output(node)
        gm = GraphModule({}, graph)
        node.target = again
        code = gm.code
        self.no_match(gm)
        assert gm.code == code
        assert gm(torch.tensor(1.0)) == 3.0

    def test_the_same_text_may_be_of_other_nodes(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        gm = traced(_calls_no_such)
        last = gm.graph.output_node()
        old = last.input_at(0)
        with gm.graph.inserting_before(last):
            new = gm.graph.call_method("no_such", old.args)
        old.replace_all_uses_with(new)
        gm.graph.erase_node(old)
        new.name = "no_such"
        new.stack_trace = '  File "net.py", line 7, in f\n    new line\n'
        code = gm.code
        self.no_match(gm)
        assert gm.code == code
        with pytest.raises(AttributeError):
            gm(torch.ones(1))
        assert "new line" in capsys.readouterr().err

    def test_the_same_text_may_have_come_from_other_lines(self) -> None:
        def forget(pieces: list[str]) -> list[str]:
            return [piece for piece in pieces if "# COUNTER" not in piece]

        gm = traced(lambda x: torch.neg(x))
        code = gm.code
        assert gm._lineno_map is not None and any(gm._lineno_map.values())
        gm.graph.on_generate_code(lambda _: forget)
        self.no_match(gm)
        assert gm.code == code
        assert not any(gm._lineno_map.values())

    def test_child_graph_modules_are_compiled_if_edited(self) -> None:
        child = traced(lambda x: torch.neg(x))
        graph = Graph()
        graph.output(graph.call_module("child", (graph.placeholder("x"),)))
        gm = GraphModule({"child": child}, graph)
        next(n for n in child.graph.nodes if n.name == "neg").target = torch.abs
        self.no_match(gm)
        assert gm(torch.tensor(2.0)) == 2.0

    def test_a_forward_set_by_hand_is_replaced(self) -> None:
        gm: Any = traced(lambda x: torch.neg(x))
        forward = type(gm).forward
        type(gm).forward = lambda self, x: x
        self.no_match(gm)
        assert type(gm).forward is forward

    def test_names_that_were_given_another_meaning_get_theirs_back(
        self,
    ) -> None:
        gm = traced(lambda x: torch.neg(x))
        vars(gm)["_code"] = gm.recompile().src = "nonsense"
        type(gm).forward.__globals__["torch"] = None
        self.no_match(gm)
        assert "torch.neg" in gm.code
        assert gm(torch.tensor(2.0)) == -2.0

    @pytest.mark.parametrize("whose", ["class", "subclass", "instance"])
    def test_a_recompile_of_the_users_is_called(
        self, whose: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Counting(GraphModule):
            def recompile(self) -> PythonCode:
                called.append("subclass")
                return super().recompile()

        called: list[str] = []
        kind = Counting if whose == "subclass" else GraphModule
        gm = kind({}, traced(lambda x: torch.neg(x)).graph)
        if whose == "instance":
            vars(gm)["recompile"] = lambda: called.append(whose)
        if whose == "class":
            monkeypatch.setattr(
                GraphModule, "recompile", lambda self: called.append(whose)
            )
        called.clear()
        self.no_match(gm)
        assert called == [whose]


def missing_module() -> Graph:
    """A replacement that calls a module nobody has."""
    graph = Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_module("nowhere", (x,)))
    return graph


HALF, TRAINING = "half", "training"
"""The names of a method and of an attribute of every module."""


class HiddenByAMethod(nn.Module):
    """A replacement with a child that `getattr` does not lead to."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Module()
        setattr(self.inner, HALF, nn.ReLU())

    def forward(self, x: torch.Tensor) -> AnyValue:
        (child,) = self.inner.children()
        return child(x)


class InTheWay(nn.Module):
    """A replacement with a child where a module has something else."""

    def __init__(self) -> None:
        super().__init__()
        inner = nn.Sequential(nn.ReLU())
        setattr(self, TRAINING, inner)

    def forward(self, x: torch.Tensor) -> AnyValue:
        (relu,) = getattr(self, TRAINING).children()
        return relu(x)


@pytest.mark.parametrize(
    ("pattern", "new", "kind", "message"),
    [
        (lambda x: x, lambda x: x, ValueError, "only returns its input"),
        (relu_of_neg, lambda x, y: x, AssertionError, "Placeholder count"),
        (relu_of_neg, lambda x: (x, x), AssertionError, "Returning nodes"),
        (relu_of_neg, missing_module(), RuntimeError, "nowhere"),
        (
            relu_of_neg,
            HiddenByAMethod(),
            RuntimeError,
            "the replacement has there is a method",
        ),
        (relu_of_neg, Graph(), RuntimeError, "no output"),
        (relu_of_neg, None, AssertionError, "Must provide either"),
        (
            lambda x, y: torch.relu(torch.neg(x)),
            lambda x, y: y,
            RuntimeError,
            "does not use its input y",
        ),
        (
            lambda x: (torch.neg(x), x),
            lambda x: (x, torch.neg(x)),
            RuntimeError,
            "returns its input x",
        ),
        (
            lambda x: {"a": relu_of_neg(x)},
            lambda x: {"b": torch.exp(x)},
            RuntimeError,
            "same keys in one order",
        ),
    ],
)
def test_bad_input_changes_nothing(
    pattern: Traced,
    new: Traced | nn.Module,
    kind: type[Exception],
    message: str,
) -> None:
    gm = traced(three_matches)
    before = state(gm)
    with pytest.raises(kind, match=message):
        replace_pattern_with_filters(gm, pattern, new)
    assert state(gm) == before


# -- where torch.fx goes wrong -----------------------------------------------


def test_inputs_that_were_lists_are_up_to_date() -> None:
    gm = traced(lambda x, y: torch.cat([torch.neg(x), torch.neg(y)]) * 2)
    expected = gm(X, Y)
    replace_pattern(gm, lambda x: torch.neg(x), lambda x: x * -1)
    done = replace_pattern(gm, lambda a: torch.cat(a), lambda a: torch.cat(a))
    gm.graph.lint()
    assert len(done) == 1
    torch.testing.assert_close(gm(X, Y), expected)


def test_constants_with_the_names_of_others_stay_apart() -> None:
    one, two, three, four = (torch.full((3,), n) for n in (1.0, 2.0, 3.0, 4.0))
    gm = traced(lambda x: torch.relu(x) * one + two)
    replace_pattern(gm, lambda x: torch.relu(x), lambda x: x * three + four)
    assert torch.equal(gm(X.float()), (X.float() * three + four) * one + two)


class Weighted(nn.Module):
    """Multiplies by its weight."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(value))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight


@pytest.mark.parametrize("until_stable", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_each_replacement_of_a_callback_keeps_its_weights(
    until_stable: bool, shared: bool
) -> None:
    made: list[GraphModule] = []

    def make(match: InternalMatch, graph: Graph, pattern: Graph) -> Graph:
        if not (shared and made):
            made.append(symbolic_trace(Weighted(10.0 ** (len(made) + 1))))
        return made[-1].graph

    gm = traced(lambda x: (torch.relu(x), torch.relu(x + 1), torch.relu(x + 2)))
    if until_stable:
        rule = Rule(lambda x: torch.relu(x), make=make)
        rewrite_until_stable(gm, [rule])
    else:
        replace_pattern_with_filters(
            gm, lambda x: torch.relu(x), replacement_callback=make
        )
    assert len([*gm.parameters()]) == len(made) == (1 if shared else 3)
    factors = (10.0, 10.0, 10.0) if shared else (10.0, 100.0, 1000.0)
    expected = [(X + i) * factor for i, factor in enumerate(factors)]
    torch.testing.assert_close(list(gm(X)), expected)


def test_a_child_may_stand_where_a_module_has_something_else() -> None:
    gm = traced(lambda x: torch.relu(x))
    replace_pattern(gm, lambda x: torch.relu(x), InTheWay())
    torch.testing.assert_close(gm(X), torch.relu(X))


def test_identities_between_outputs_that_interleave() -> None:
    @no_type_check
    def target(x):
        a = torch.relu(x)
        b = torch.neg(a)
        c = torch.relu(b)
        return torch.neg(c)

    gm = traced(target)
    replace_pattern(gm, lambda x: torch.relu(x), lambda x: x)
    replace_pattern(gm, lambda x: torch.neg(torch.neg(x)), lambda x: x)
    gm.graph.lint()
    assert len(gm.graph.nodes) == 2


# -- options -----------------------------------------------------------------


@pytest.mark.parametrize("ignore_literals", [False, True])
def test_operands_stay_in_their_places_beside_a_third(
    ignore_literals: bool,
) -> None:
    @no_type_check
    def target(a, b):
        return torch.add(b, torch.relu(a), alpha=2)

    gm = traced(target)
    done = replace_pattern_with_filters(
        gm,
        lambda x, y: torch.add(torch.relu(x), y, alpha=1),
        lambda x, y: torch.add(y, x.clamp(min=0)),
        ignore_literals=ignore_literals,
        normalize=True,
    )
    assert not done


def test_an_option_that_is_misspelt_is_refused() -> None:
    wrong: Any = {"respect_mutation": True}
    for act in (
        lambda gm: replace_pattern(
            gm, lambda x: torch.relu(x), lambda x: x, **wrong
        ),
        lambda gm: explain(gm, lambda x: torch.relu(x), **wrong),
        lambda gm: rewrite_until_stable(
            gm,
            [Rule(lambda x: torch.relu(x), lambda x: x, options=wrong)],
        ),
    ):
        with pytest.raises(TypeError, match="no option 'respect_mutation'"):
            act(traced(lambda x: torch.relu(x)))


def test_a_module_of_the_pattern_is_one_module() -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.m = nn.Linear(2, 2)

        def forward(self, x: AnyValue, y: AnyValue) -> AnyValue:
            return self.m(x) - self.m(y)

    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.p, self.q = nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x: AnyValue, y: AnyValue) -> AnyValue:
            return self.p(x) - self.q(y)

    for root, count in ((Two(), 0), (Shared(), 1)):
        gm = traced(root)
        found = replace_pattern(
            gm, Shared(), lambda x, y: x - y, modules_by_class=True
        )
        assert len(found) == count


def test_operands_that_match_either_way_are_tried_once() -> None:
    def products(count: int, last: AnyValue, *more: AnyValue) -> GraphModule:
        graph = Graph()
        inputs = [graph.placeholder(f"p{i}") for i in range(2 * count + 1)]
        value = graph.call_function(last, (inputs[-1],))
        for pair in zip(inputs[::2], inputs[1::2], strict=False):
            product = graph.call_function(torch.mul, pair)
            value = graph.call_function(torch.add, (product, value))
        other = [graph.call_function(f, (inputs[0],)) for f in more]
        graph.output((value, *other) if other else value)
        return GraphModule({}, graph)

    matcher = SubgraphMatcher(products(40, torch.neg).graph, normalize=True)
    graph = products(40, torch.relu, torch.neg).graph
    assert len(matcher.mismatches(graph)) < 2000


def test_a_rewrite_is_not_moved_across_a_mutation_on_request() -> None:
    @no_type_check
    def target(x):
        y = torch.relu(x)
        x.add_(10)
        return torch.neg(y)

    for respect in (False, True):
        gm = traced(target)
        expected = target(X.clone())
        replace_pattern(
            gm,
            lambda x: torch.relu(x),
            lambda x: x.clamp(min=0),
            respect_mutations=respect,
        )
        gm.graph.lint()
        assert torch.equal(gm(X.clone()), expected) is respect


@no_type_check
def own_write(x):
    y = x.clone()
    z = y.mul_(2)
    return torch.cos(y), torch.relu(z + 3)


@no_type_check
def pure(x):
    a = torch.neg(x)
    b = torch.cos(x)
    return torch.relu(a), b


@pytest.mark.parametrize(
    ("target", "pattern", "replacement", "count"),
    [
        (own_write, lambda x: x.mul_(2), lambda x: x.mul_(2), 1),
        (own_write, lambda x: x.mul_(2) + 3, lambda x: x.mul_(2) + 3, 0),
        (
            pure,
            lambda x: torch.relu(torch.neg(x)),
            lambda x: torch.relu(x.neg_()),
            0,
        ),
        (
            pure,
            lambda x: torch.relu(torch.neg(x)),
            lambda x: torch.relu(-x),
            1,
        ),
        (pure, lambda x: (x, torch.neg(x)), lambda x: (x, -x), 1),
    ],
)
def test_no_write_passes_a_read_on_request(
    target: Code, pattern: Code, replacement: Code, count: int
) -> None:
    """Nor the write of the match, nor that of what replaces it."""
    gm = traced(target)
    found = replace_pattern(gm, pattern, replacement, respect_mutations=True)
    gm.graph.lint()
    assert len(found) == count
    for one, other in zip(gm(X.clone()), target(X.clone()), strict=True):
        assert torch.equal(one, other)


def test_meta_is_carried_with_its_provenance() -> None:
    gm = traced(relu_of_neg)
    for node in gm.graph.nodes:
        node.meta = {"stack_trace": f"trace of {node}", "note": str(node)}
        node.meta["val"] = str(node)
    (done,) = replace_pattern_with_filters(
        gm,
        relu_of_neg,
        lambda x: torch.exp(torch.sin(x)),
        carry_meta=True,
    )
    sin, exp = done.replacements
    assert exp.meta["note"] == "relu"
    assert "note" not in sin.meta
    assert "val" not in exp.meta, "it says what relu is like"
    assert sin.meta["stack_trace"] == "trace of relu"
    assert sin.meta["replaces"] == exp.meta["replaces"] == ("relu", "neg")


class Scaled(nn.Module):
    """Two layers of one weight, and buffers of which one is not saved."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 3, dtype=torch.float64)
        self.second = nn.Linear(3, 3, dtype=torch.float64)
        self.second.weight = self.first.weight
        self.register_buffer("saved", torch.ones(3))
        self.register_buffer("loose", torch.ones(3), persistent=False)

    @no_type_check
    def forward(self, x):
        return self.second(self.first(x) * self.saved) * self.loose


def test_what_a_replacement_brings_stays_as_it_is() -> None:
    gm, scaled = traced(lambda x: x.relu()), Scaled()
    (_,) = replace_pattern(gm, lambda x: x.relu(), symbolic_trace(scaled))
    assert {*gm.state_dict()} == {*scaled.state_dict()}
    assert {*dict(gm.named_buffers())} == {"saved", "loose"}
    first, second = gm.get_submodule("first"), gm.get_submodule("second")
    assert first.weight is second.weight is not scaled.first.weight
    assert torch.equal(gm(X), scaled(X))


# -- until stable ------------------------------------------------------------

RELUS = Rule(lambda x: torch.relu(torch.relu(x)), lambda x: torch.relu(x))


def relus(count: int) -> GraphModule:
    """A chain of relus."""

    @no_type_check
    def target(x):
        for _ in range(count):
            x = torch.relu(x)
        return torch.neg(x)

    return traced(target)


def test_rules_feed_one_another() -> None:
    gm = traced(
        lambda x: torch.neg(torch.neg(torch.neg(torch.relu(torch.neg(-x)))))
    )
    rules = [
        Rule(
            lambda x: torch.neg(torch.neg(x)),
            lambda x: x,
            options={"normalize": True},
        ),
        RELUS,
    ]
    assert rewrite_until_stable(gm, rules) == 2
    assert [n.name for n in gm.graph.nodes] == ["x", "relu", "neg_4", "output"]


def test_rules_are_tried_again_when_a_far_effect_has_gone() -> None:
    """`add_` stands between relu and neg, until a rule removes it."""

    @no_type_check
    def root(x, y):
        a = torch.relu(x)
        w = y.add_(1)
        return torch.neg(a) + torch.sin(w)

    gm = traced(root)
    rules = [
        Rule(
            lambda p: torch.neg(torch.relu(p)),
            lambda p: torch.exp(p),
            options={"respect_mutations": True},
        ),
        Rule(lambda p: torch.sin(p.add_(1)), lambda p: torch.cos(p)),
    ]
    assert rewrite_until_stable(gm, rules) == 2
    names = [node.name for node in gm.graph.nodes]
    assert names == ["x", "y", "exp", "cos", "add", "output"]


def test_rules_are_tried_again_when_a_filter_may_answer_otherwise() -> None:
    @no_type_check
    def root(x, y):
        return torch.relu(x) + torch.sin(y)

    def no_sin(match: InternalMatch, graph: Graph, pattern: Graph) -> bool:
        return not graph.find_nodes(op="call_function", target=torch.sin)

    gm = traced(root)
    rules = [
        Rule(lambda p: torch.relu(p), lambda p: torch.exp(p), filters=[no_sin]),
        Rule(lambda p: torch.sin(p), lambda p: torch.cos(p)),
    ]
    assert rewrite_until_stable(gm, rules) == 2


def test_rules_have_one_anchor() -> None:
    rule = Rule(lambda x: (torch.relu(x), torch.neg(x)), lambda x: (x, x))
    with pytest.raises(ValueError, match="2 anchors"):
        rewrite_until_stable(relus(1), [rule])


def test_rewriting_is_linear() -> None:
    def once(size: int) -> int:
        gm = relus(size)
        return calls(
            lambda: replace_pattern(
                gm, lambda x: torch.relu(x), lambda x: torch.exp(x)
            )
        )

    def again(size: int) -> int:
        gm = relus(size)
        return calls(lambda: rewrite_until_stable(gm, [RELUS]))

    assert once(1_600) < 8.2 * once(200)
    assert again(1_600) < 8.2 * again(200)


def test_many_results_read_by_one() -> None:
    """Each reader is changed once, however many of its inputs are."""

    def size(count: int) -> int:
        gm = traced(lambda x: torch.cat([torch.relu(x) for _ in range(count)]))
        return calls(
            lambda: replace_pattern(
                gm, lambda x: torch.relu(x), lambda x: torch.exp(x)
            )
        )

    assert size(800) < 8.5 * size(100)
