"""Passes: source partitions, and a matcher whose pattern gives names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache

import pytest
import torch
import torch.fx
from torch import nn
from torch.export import export
from torch.fx.passes.utils import matcher_with_name_node_map_utils as their_maps
from torch.fx.passes.utils import source_matcher_utils as theirs
from torch.nn import functional as F

import fx
from fx.passes.utils import source_matcher_utils as ours
from fx.passes.utils.matcher_with_name_node_map_utils import (
    SubgraphMatcherWithNameNodeMap,
)
from fx.use_def.values import AnyValue
from tests.zoo import ZOO

# -- source partitions -------------------------------------------------------


@cache
def exported(name: str, strict: bool) -> AnyValue:
    """A network of the zoo, as torch.export has it."""
    (network,) = (one for one in ZOO if one.name == name)
    inputs = tuple(x.to("meta") for x in network.inputs())
    with torch.no_grad():
        model = network.without_numbers().eval()
        return export(model, inputs, strict=strict).module()


def shown(
    parts: dict[AnyValue, list[AnyValue]],
    order: Callable[[Iterable[str]], list[str]] = sorted,
) -> AnyValue:
    """The partitions by the names of their nodes."""
    return {
        source: [
            [
                [node.name for node in part.nodes],
                *[
                    order(node.name for node in nodes)
                    for nodes in (
                        part.input_nodes,
                        part.output_nodes,
                        part.params,
                    )
                ],
                part.source,
            ]
            for part in some
        ]
        for source, some in parts.items()
    }


SOURCES: list[AnyValue] = [
    nn.Conv2d,
    nn.BatchNorm2d,
    nn.Linear,
    F.relu,
    torch.add,
    "conv2d",
    "batch_norm",
    "linear",
    "relu",
    nn.Module,
]


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("name", ["resnet18", "siamese"])
@pytest.mark.parametrize("leave_out", [False, True])
def test_as_torch_fx(name: str, strict: bool, leave_out: bool) -> None:
    beside = exported(name, strict)
    gm = fx.from_torch(beside)
    keep: AnyValue = (lambda node: node.name[-1] != "1") if leave_out else None
    found = ours.get_source_partitions(gm.graph, SOURCES, keep)
    expected = theirs.get_source_partitions(beside.graph, SOURCES, keep)
    assert shown(found) == shown(expected)
    assert list(found) == list(expected)
    assert sum(map(len, found.values())) >= 5
    ours_ = [part for some in found.values() for part in some]
    theirs_ = [part for some in expected.values() for part in some]
    links = 0
    for one, one_there in zip(ours_, theirs_, strict=True):
        for other, other_there in zip(ours_[:9], theirs_[:9], strict=True):
            linked = ours.check_subgraphs_connected(one, other)
            assert linked == theirs.check_subgraphs_connected(
                one_there, other_there
            )
            links += linked
    assert links > 0


@pytest.mark.newest
def test_inputs_are_in_order() -> None:
    graph = fx.Graph()
    x, y, z = map(graph.placeholder, "xyz")
    calls = [graph.call_function(torch.add, pair) for pair in ((z, x), (y, x))]
    for call in calls:
        call.meta["source_fn_stack"] = [("a", torch.add)]
    graph.output(calls)
    found = ours.get_source_partitions(graph, [torch.add])
    expected = theirs.get_source_partitions(fx.to_torch(graph), [torch.add])
    assert shown(found, list) == shown(expected, list)
    assert found[torch.add][0].input_nodes == [x, y, z]


def noted(*notes: tuple[AnyValue, dict[str, AnyValue]]) -> fx.Graph:
    """Calls of functions on the one before, with notes."""
    graph = fx.Graph()
    value = graph.placeholder("x")
    for target, meta in notes:
        value = graph.call_function(target, (value,))
        value.meta.update(meta)
    graph.output(value)
    return graph


def test_a_class_by_itself_by_its_name_and_by_its_base() -> None:
    graph = noted(
        (torch.neg, {"nn_module_stack": {"a": ("a", nn.ReLU6)}}),
        (torch.exp, {"nn_module_stack": {"b": ("b", "torch.nn.X")}}),
        (torch.cos, {"nn_module_stack": {"c": ("c", "my.Own")}}),
        (torch.sin, {"torch_fn": ("sin_1", "function.sin")}),
        (torch.tan, {"source_fn_stack": [("o", abs), ("t", torch.tan)]}),
    )
    wanted = [nn.Hardtanh, "my.Own", "sin", abs, torch.tan]
    found = ours.get_source_partitions(graph, wanted)
    names = {
        key: [p.nodes[0].name for p in some] for key, some in found.items()
    }
    assert names == {
        nn.Hardtanh: ["neg"],
        "my.Own": ["cos"],
        "sin": ["sin"],
        torch.tan: ["tan"],
    }
    beside = theirs.get_source_partitions(fx.to_torch(graph), wanted)
    assert {key: len(some) for key, some in beside.items()} == {
        key: len(some) for key, some in found.items()
    }


def test_inputs_in_lists_and_keywords() -> None:
    graph = fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    cat = graph.call_function(torch.cat, ([x, y],), {"dim": x})
    cat.meta["source_fn_stack"] = [("cat", torch.cat)]
    graph.output(cat)
    (part,) = ours.get_source_partitions(graph, [torch.cat])[torch.cat]
    assert part.input_nodes == [x, y]
    assert part.output_nodes == [cat]
    there = theirs.get_source_partitions(fx.to_torch(graph), [torch.cat])
    assert there[torch.cat][0].input_nodes == []


def test_what_is_empty_or_of_torch_fx() -> None:
    graph = noted((torch.neg, {"source_fn_stack": [("n", torch.neg)]}))
    assert ours.get_source_partitions(graph, []) == {}
    nobody = ours.get_source_partitions(graph, [torch.neg], lambda _: False)
    assert nobody == {torch.neg: []}
    with pytest.raises(TypeError, match="from_torch"):
        find: AnyValue = ours.get_source_partitions
        find(torch.fx.symbolic_trace(lambda x: x).graph, [])


def test_sources_that_are_an_iterator_and_notes_with_more() -> None:
    note: AnyValue = [("n", torch.neg, "more")]
    graph = noted(
        (torch.neg, {"source_fn_stack": note}),
        (torch.exp, {"source_fn_stack": [], "torch_fn": ("e", "a.exp")}),
    )
    find: AnyValue = ours.get_source_partitions
    found = find(graph, iter([torch.relu, torch.neg, "exp"]))
    assert [*found] == [torch.neg, "exp"]


@pytest.mark.parametrize(
    ("wanted", "note", "error", "message"),
    [
        (nn.Linear, {}, TypeError, "give a list"),
        ("neg", {}, TypeError, "give a list"),
        (None, {}, TypeError, "give a list"),
        (["neg"], {"torch_fn": ("a", "b")}, ValueError, "Node neg comes from"),
        (["neg"], {"torch_fn": "x"}, ValueError, "Node neg comes from"),
        (["neg"], {"source_fn_stack": [abs]}, ValueError, "correct node.meta"),
        ([[]], {"source_fn_stack": [("a", [])]}, ValueError, "unhashable"),
    ],
)
def test_what_is_wrong_is_named(
    wanted: AnyValue, note: AnyValue, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        ours.get_source_partitions(noted((torch.neg, note)), wanted)
    with pytest.raises(TypeError, match=r"not a ReLU.*`gm.graph`"):
        find: AnyValue = ours.get_source_partitions
        find(fx.symbolic_trace(nn.ReLU()), [nn.ReLU])


def test_time_grows_with_the_nodes() -> None:
    graph = fx.Graph()
    values = [graph.placeholder("x")]
    for number in range(20_000):
        values.append(graph.call_function(torch.neg, (values[number // 2],)))
        values[-1].meta["source_fn_stack"] = [("all", torch.neg)]
    graph.output(values[-1])
    (part,) = ours.get_source_partitions(graph, [torch.neg])[torch.neg]
    assert len(part.nodes) == 20_000
    assert part.output_nodes == [values[-1]]
    assert not ours.check_subgraphs_connected(
        ours.SourcePartition([values[0]], None, []),
        ours.SourcePartition(part.nodes[2:], None),
    )


# -- a pattern that gives names ----------------------------------------------


class Pattern(nn.Module):
    """A convolution and what follows it, with names."""

    def forward(self, x: AnyValue, w: AnyValue) -> AnyValue:
        conv = F.conv2d(x, w)
        relu = F.relu(conv)
        return relu, {"conv": conv, "relu": relu, "weight": w}


class Target(nn.Module):
    """What the pattern is in, twice."""

    def forward(self, x: AnyValue, w: AnyValue) -> AnyValue:
        a = F.relu(F.conv2d(x, w))
        a *= 2
        return F.relu(F.conv2d(a, w)) + 1


INPUTS = torch.rand(1, 3, 4, 4), torch.rand(3, 3, 1, 1)


@cache
def both(cls: Callable[[], nn.Module]) -> AnyValue:
    """A module exported, once for both libraries."""
    return export(cls(), INPUTS).module()


def pairs() -> Iterator[tuple[AnyValue, AnyValue]]:
    """A pattern and a graph, exported, and traced with and without nesting."""
    yield fx.from_torch(both(Pattern)), fx.from_torch(both(Target))
    yield fx.symbolic_trace(Pattern()), fx.symbolic_trace(Target())
    hints = {"x": fx.PH, "w": fx.PH}
    yield (
        fx.symbolic_trace(Pattern(), concrete_args=hints),
        fx.symbolic_trace(Target(), concrete_args=hints),
    )


def test_names_as_torch_fx() -> None:
    matcher = their_maps.SubgraphMatcherWithNameNodeMap(
        export(Pattern(), INPUTS).module()
    )
    expected = matcher.match(both(Target).graph)
    for pattern, gm in pairs():
        before = str(pattern.graph)
        found = SubgraphMatcherWithNameNodeMap(pattern).match(gm.graph)
        assert str(pattern.graph) == before
        assert len(found) == len(expected) == 2
        for match, there in zip(found, expected, strict=True):
            assert match.name_node_map.keys() == there.name_node_map.keys()
            for name in ("conv", "relu"):
                node = match.name_node_map[name]
                assert str(node) == str(there.name_node_map[name])
            assert match.name_node_map["weight"] in gm.graph.nodes
            assert match.name_node_map["weight"].op == "placeholder"


@pytest.mark.parametrize("index", range(3))
def test_nodes_are_replaced_by_their_names(index: int) -> None:
    pattern, gm = [*pairs()][index]
    expected = gm(*INPUTS)
    for match in SubgraphMatcherWithNameNodeMap(pattern).match(gm.graph):
        relu, conv = (match.name_node_map[key] for key in ("relu", "conv"))
        conv.meta["note"] = "fused"
        with gm.graph.inserting_after(relu):
            new = gm.graph.call_function(torch.clamp, (conv, 0))
        relu.replace_all_uses_with(new)
        gm.graph.erase_node(relu)
    gm.graph.lint()
    gm.recompile()
    assert gm.code.count("clamp(") == 2
    assert sum("note" in node.meta for node in gm.graph.nodes) == 2
    torch.testing.assert_close(gm(*INPUTS), expected)


def test_one_place_alone() -> None:
    def pattern(x: AnyValue, y: AnyValue, unused: AnyValue) -> AnyValue:
        total = torch.add(x, y)
        return total, {"sum": total, "second": y, "unused": unused}

    gm = fx.symbolic_trace(lambda x: torch.add(torch.neg(x), 3))
    matcher = SubgraphMatcherWithNameNodeMap(fx.symbolic_trace(pattern))
    _, neg, add, _ = gm.graph.nodes
    assert matcher.match_at(gm.graph, neg) is None
    match = matcher.match_at(gm.graph, add)
    assert match is not None
    assert match.name_node_map == {"sum": add, "second": 3}


def test_options_are_passed_on() -> None:
    def pattern(x: AnyValue) -> AnyValue:
        total = torch.add(x, 1)
        return total, {"sum": total}

    gm = fx.symbolic_trace(lambda x: (x + 1) * torch.add(x, 2))
    made: AnyValue = fx.symbolic_trace(pattern)
    names = [
        [str(match.name_node_map["sum"]) for match in matcher.match(gm.graph)]
        for matcher in (
            SubgraphMatcherWithNameNodeMap(made),
            SubgraphMatcherWithNameNodeMap(made, normalize=True),
            SubgraphMatcherWithNameNodeMap(made, ignore_literals=True),
        )
    ]
    assert names == [[], ["add"], ["add_1"]]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (lambda x: torch.neg(x), "to return a tuple"),
        (lambda x: ({"neg": torch.neg(x)},), "at least two outputs"),
        (lambda x: (torch.neg(x), x), "have a dict output as the last"),
        (lambda x: (torch.neg(x), {"exp": torch.exp(x)}), "dead code"),
    ],
)
def test_patterns_without_names(pattern: AnyValue, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        SubgraphMatcherWithNameNodeMap(fx.symbolic_trace(pattern))
