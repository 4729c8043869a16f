"""Dead code elimination of graphs in graphs, and of writes nobody can see."""

from __future__ import annotations

import gc
import operator
import time
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
import torch
import torch.fx
from torch import nn
from torch.nn import functional as F

import fx
from fx.use_def.dead_code import TorchsRule
from tests.zoo.densenet import DenseNet
from tests.zoo.vgg import VGG

Anything: TypeAlias = Any


def test_checks_that_fx_records_are_kept() -> None:
    gm = fx.symbolic_trace(lambda x, m: x.neg(), concrete_args={"m": None})
    with gm.graph.inserting_before(gm.graph.output_node()):
        (x, *_) = gm.graph.nodes
        gm.graph.call_function(fx.proxy.assert_fn, (x,))
    before = str(gm.graph)
    gm.graph.eliminate_dead_code()
    assert str(gm.graph) == before
    assert "assert_fn" in before
    assert "_assert_is_none" in before


class Targets(set[object]):
    """A predicate that is false as long as it has no targets."""

    def __call__(self, node: fx.Node) -> bool:
        return node.op in ("placeholder", "output") or node.target in self


def test_a_predicate_is_asked_although_it_is_false() -> None:
    graph = fx.symbolic_trace(lambda x: x).graph
    with graph.inserting_before(graph.output_node()):
        graph.call_function(print, ())
    assert graph.eliminate_dead_code(Targets())
    assert print not in {node.target for node in graph.nodes}


def users_function(x: torch.Tensor) -> torch.Tensor:
    """A function of which fx knows nothing."""
    return x


def parent_and_child() -> tuple[fx.GraphModule, fx.GraphModule]:
    """A graph that fetches a child, whose graph has dead calls."""
    inner = fx.Graph()
    x = inner.placeholder("x")
    inner.call_function(users_function, (x,))
    inner.call_function(torch.relu, (x,))
    inner.output(x)
    child = fx.GraphModule(torch.nn.Module(), inner)
    root = torch.nn.Module()
    root.child = child
    outer = fx.Graph()
    y = outer.placeholder("y")
    fetched = outer.get_attr("child")
    outer.output((y, fetched))
    parent = fx.GraphModule(root, outer)
    return parent, child


def targets(module: fx.GraphModule) -> list[object]:
    """What the calls of a module's graph call."""
    nodes = module.graph.nodes
    return [node.target for node in nodes if node.op == "call_function"]


# -- feature extraction ------------------------------------------------------


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "vgg": lambda: VGG(((4,), (4,)), classes=2),
    "dense": lambda: DenseNet((2, 1), growth=4, dropout=0.1, classes=2),
}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("unknown", ["drop", "keep"])
def test_nothing_remains_behind_the_last_feature(
    name: str, unknown: Anything
) -> None:
    network = NETWORKS[name]().eval()
    whole = fx.symbolic_trace(network)
    x = torch.randn(2, 3, 32, 32)
    for place, node in enumerate(whole.graph.nodes):
        if node.op in ("placeholder", "output"):
            continue
        gm = fx.symbolic_trace(network)
        feature = list(gm.graph.nodes)[place]
        gm.graph.output_node().args = (feature,)
        gm.recompile()
        expected = gm(x)
        gm.graph.eliminate_dead_code(unknown=unknown)
        gm.recompile()
        torch.testing.assert_close(gm(x), expected, rtol=0, atol=0)
        # A write into the feature itself changes it, and has to stay.
        behind = list(gm.graph.nodes)[place + 1 : -1]
        assert all(node.all_input_nodes == [feature] for node in behind)
        assert len(behind) <= 1


# -- writes ------------------------------------------------------------------


def left(
    build: Callable[[Anything, Anything], Anything], training: bool = False
) -> list[str]:
    """What elimination leaves of the calls that `build` adds."""
    owner: Anything = nn.Module()
    owner.norm, owner.linear = nn.BatchNorm1d(4), nn.Linear(4, 4)
    owner.weight = nn.Parameter(torch.ones(4, 4))
    owner.hooked = nn.Linear(4, 4)
    owner.hooked.register_forward_hook(lambda m, args, result: None)
    graph = fx.Graph(owner.train(training))
    x = graph.placeholder("x", torch.Tensor)
    result = build(graph, x)
    graph.output(x if result is None else result)
    graph.eliminate_dead_code(unknown="keep")
    return [node.name for node in graph.nodes if node.op.startswith("call")]


def test_a_write_into_what_is_returned_stays() -> None:
    def build(graph: Anything, x: Anything) -> Anything:
        made = graph.call_function(torch.abs, (x,))
        view = graph.call_method("view", (made, -1))
        graph.call_method("zero_", (view,))
        return made

    assert left(build) == ["abs_1", "view", "zero_"]


@pytest.mark.parametrize(
    "escape",
    [
        lambda graph, made: graph.call_function(users_function, (made,)),
        lambda graph, made: graph.call_module("hooked", (made,)),
        lambda graph, made: graph.call_function(print, ([made],)),
        lambda graph, made: graph.call_function(getattr, (made, "data")),
    ],
    ids=["function", "hook", "print", "data"],
)
def test_a_write_into_what_others_may_hold_stays(escape: Anything) -> None:
    def build(graph: Anything, x: Anything) -> Anything:
        made = graph.call_function(torch.abs, (x,))
        held = escape(graph, made)
        graph.call_method("zero_", (made,))
        return held

    assert left(build)[-1] == "zero_"


def test_a_write_before_the_last_look_stays_and_one_after_it_goes() -> None:
    def build(graph: Anything, x: Anything) -> Anything:
        made = graph.call_function(torch.abs, (x,))
        graph.call_method("mul_", (made, 2))
        seen = graph.call_function(torch.add, (made, 1))
        graph.call_method("zero_", (made,))
        return seen

    assert left(build) == ["abs_1", "mul_", "add"]


def test_state_and_random_draws_stay() -> None:
    def build(graph: Anything, x: Anything) -> None:
        made = graph.call_module("norm", (x,))
        graph.call_function(torch.relu_, (made,))
        drawn = graph.call_function(torch.rand, (4,))
        graph.call_method("mul_", (drawn, 2))
        graph.call_method("uniform_", (graph.call_function(torch.abs, (x,)),))
        weight = graph.get_attr("weight")
        graph.call_method("mul_", (weight, 2))

    assert left(build, training=True) == [
        *("norm", "rand", "abs_1", "uniform_", "mul__1")
    ]


def test_map_runs_what_it_is_given() -> None:
    def build(graph: Anything, x: Anything) -> None:
        mapped = graph.call_function(map, (print, x))
        graph.call_function(list, (mapped,))
        graph.call_function(map, (print, x))

    assert left(build) == ["map_1", "list_1"]


def test_list_that_is_changed_in_an_item() -> None:
    def build(graph: Anything, x: Anything) -> Anything:
        parts = graph.call_function(torch.ops.aten.split.Tensor, (x, 2))
        made = graph.call_function(torch.abs, (x,))
        graph.call_function(operator.setitem, (parts, 0, made))
        graph.call_method("zero_", (made,))
        return graph.call_function(operator.getitem, (parts, 0))

    assert "zero_" in left(build) and "setitem" in left(build)


@pytest.mark.parametrize("kind", ["writes", "views", "methods"])
def test_many_writes_take_linear_time(kind: str) -> None:
    def seconds(size: int) -> float:
        graph = fx.Graph()
        x = graph.placeholder("x", torch.Tensor)
        made = node = graph.call_function(torch.abs, (x,))
        for _ in range(size):
            if kind == "writes":
                graph.call_method("mul_", (made, 2))
            elif kind == "views":
                node = graph.call_method("view", (node, -1))
                graph.call_method("mul_", (node, 2))
            else:
                node = graph.call_method("abs", (node,))
        graph.output(x)
        gc.collect()
        gc.disable()  # what earlier tests left would be counted here
        try:
            begin = time.thread_time()
            graph.eliminate_dead_code(unknown="keep")
            taken = time.thread_time() - begin
        finally:
            gc.enable()
        assert len(graph.nodes) == 2
        return taken

    few = min(seconds(500) for _ in range(3))
    assert min(seconds(10_000) for _ in range(2)) < 100 * few


# -- the rule of torch.fx ----------------------------------------------------


class Tail(nn.Module):
    """A network that goes on behind the feature that is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 1)
        self.norm = nn.BatchNorm2d(3)
        self.relu = nn.ReLU(inplace=True)
        self.drop = nn.Dropout()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        feature: torch.Tensor = self.conv(x)
        x = self.drop(self.relu(self.norm(feature)))
        x.add_(1)
        checked: Anything = torch._assert
        checked(x is not None, "a tensor")
        return F.dropout(F.relu_(feature))


def cut(lib: Anything, **settings: Anything) -> Anything:
    """The graph up to the convolution, cleaned."""
    gm = lib.symbolic_trace(Tail())
    conv = next(n for n in gm.graph.nodes if n.target == "conv")
    gm.graph.output_node().args = (conv,)
    gm.graph.eliminate_dead_code(**settings)
    return gm


def test_the_rule_of_torch_fx_removes_what_torch_fx_removes() -> None:
    theirs = str(cut(torch.fx).graph)
    assert str(cut(fx, effects="torch").graph) == theirs
    with fx.effects.by_rule("torch"):
        assert str(cut(fx).graph) == theirs
        sound = str(cut(fx, effects="sound").graph)
    assert str(cut(fx).graph) == sound != theirs


def test_the_rule_holds_for_child_graphs() -> None:
    for settings in ({"effects": "torch"}, {}):
        parent, child = parent_and_child()
        (x,) = child.graph.find_nodes(op="placeholder")
        with child.graph.inserting_after(x):
            child.graph.call_method("add_", (x, 1))
        with fx.effects.by_rule("sound" if settings else "torch"):
            chosen: Anything = settings
            parent.graph.eliminate_dead_code(**chosen)
        assert [n.op for n in child.graph.nodes] == ["placeholder", "output"]


def test_what_fx_registered_stays_by_either_rule() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.call_function(users_function, (x,))
    graph.call_function(print, (x,))
    graph.output(x)
    registry = fx.use_def.dead_code.side_effect_registry
    fx.has_side_effect(users_function)
    try:
        graph.eliminate_dead_code(effects="torch")
    finally:
        registry.discard(users_function)
    assert [n.name for n in graph.nodes] == ["x", "users_function", "output"]


def test_what_torch_fx_would_remove_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level("INFO", "fx.effects"):
        cut(fx)
    said = {record.getMessage() for record in caplog.records}
    assert any(text.startswith("add_ stays; torch.fx would") for text in said)
    assert not any(text.startswith("_assert") for text in said)
    assert all(text.partition(": ")[2] for text in said)


def test_a_misspelt_rule_is_refused() -> None:
    wrong: Anything = "troch"
    with pytest.raises(ValueError, match="say effects="):
        fx.Graph().eliminate_dead_code(effects=wrong)


# -- the rule of a graph on which nothing better was put ----------------------

PLAIN = TorchsRule()


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """A world in which extra has registered nothing."""
    monkeypatch.setattr(fx.Graph, "_dead_code_rule", PLAIN)


class Own(nn.Module):
    """A module that says that it has an effect."""

    _is_impure = True


def of_each_kind(lib: Anything) -> Anything:
    """A module whose graph has a call of each kind that the rule tells."""
    graph = lib.Graph()
    x = graph.placeholder("x")
    aten = torch.ops.aten
    for target, args in (
        (torch.relu, (x,)),
        (torch.relu_, (x,)),
        (torch._assert, (x, "")),
        (operator.setitem, (x, 0, 1)),
        (users_function, (x,)),
        (aten.relu.default, (x,)),
        (aten.relu_.default, (x,)),
        (aten.add.out, (x, x)),
        (aten.add_, (x, x)),
        (aten.bernoulli.default, (x,)),
        (aten.rand.default, ([2],)),
        (aten.native_dropout.default, (x, 0.5, True)),
        (torch.bernoulli, (x,)),
        (aten._assert_async.msg, (x, "")),
    ):
        graph.call_function(target, args)
    graph.call_method("add_", (x, 1))
    graph.call_module("own", (x,))
    graph.call_module("relu", (x,))
    graph.get_attr("w")
    graph.output(x)
    root = nn.Module()
    root.own, root.relu, root.w = Own(), nn.ReLU(), nn.Parameter(torch.ones(1))
    return lib.GraphModule(root, graph)


@pytest.mark.parametrize("impure_random", [True, False])
@pytest.mark.usefixtures("plain")
def test_the_plain_rule_answers_as_torch_fx(impure_random: bool) -> None:
    ours, theirs = of_each_kind(fx), of_each_kind(torch.fx)
    for mine, other in zip(ours.graph.nodes, theirs.graph.nodes, strict=True):
        right = other.is_impure(impure_random)
        assert mine.is_impure(impure_random) == right, mine
    assert ours.graph.eliminate_dead_code()
    assert theirs.graph.eliminate_dead_code()
    assert [*map(str, ours.graph.nodes)] == [*map(str, theirs.graph.nodes)]


@pytest.mark.usefixtures("plain")
def test_the_plain_rule_keeps_what_is_registered() -> None:
    gm = of_each_kind(fx)
    fx.has_side_effect(users_function)
    try:
        gm.graph.eliminate_dead_code(effects="torch")
    finally:
        fx.use_def.dead_code.side_effect_registry.discard(users_function)
    assert users_function in targets(gm)
