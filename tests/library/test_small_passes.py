"""Passes: the small ones that back ends are built with, beside torch.fx."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import pytest
import torch
import torch.fx
from torch import nn

import fx
from fx.passes import graph_manipulation, param_fetch, tools_common
from fx.passes.operator_support import (
    OpSupports,
    any_chain,
    chain,
    create_op_support,
)
from fx.passes.shape_prop import ShapeProp
from fx.passes.tools_common import sort_nodes
from fx.passes.utils.common import (
    HolderModule,
    compare_graphs,
    lift_subgraph_as_module,
    subgraph_of,
)
from fx.use_def.values import AnyValue


def both(name: str) -> list[tuple[AnyValue, AnyValue]]:
    """The two libraries, and of each the module of this name."""
    return [
        (lib, importlib.import_module(f"{lib.__name__}.passes.{name}"))
        for lib in (fx, torch.fx)
    ]


class Net(nn.Module):
    """Modules, a function, a method, an operator, and an integer result."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)
        self.norm = nn.BatchNorm2d(2)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2)

    def forward(self, x: AnyValue) -> AnyValue:
        x = self.pool(self.relu(self.norm(self.conv(x))))
        return torch.flatten(x, 1).argmax(1) + torch.neg(x).sum()


# -- tools_common ------------------------------------------------------------


def test_what_each_node_calls() -> None:
    seen = []
    for lib, tools in both("tools_common"):
        gm = lib.symbolic_trace(Net())
        modules = dict(gm.named_modules())
        calls = [n for n in gm.graph.nodes if n.op.startswith("call")]
        seen.append([tools.get_node_target(modules, node) for node in calls])
        with pytest.raises(AssertionError, match="but found placeholder"):
            tools.get_node_target(modules, next(iter(gm.graph.nodes)))
    assert seen[0] == seen[1]


class Acc:
    """As if it came from a module acc_ops."""

    __module__ = "some.acc_ops"


@pytest.mark.parametrize("of", ["a.b", nn.Linear, torch.Tensor, Acc])
def test_names_of_classes(of: AnyValue) -> None:
    ours, theirs = [tools for _, tools in both("tools_common")]
    assert ours.get_acc_ops_name(of) == theirs.get_acc_ops_name(of)


def shuffled(lib: AnyValue) -> AnyValue:
    """A module whose first call uses the last one."""
    gm = lib.symbolic_trace(lambda x, y: (x.neg().exp() + y.relu(), y.cos()))
    *_, last, _ = gm.graph.nodes
    first = next(node for node in gm.graph.nodes if node.name == "neg")
    first.args = (last,)
    return gm


def test_nodes_are_sorted_and_go_no_further_than_they_must() -> None:
    seen = []
    for lib, tools in both("tools_common"):
        gm = shuffled(lib)
        assert tools.stable_topological_sort(gm) is gm
        gm.graph.lint()
        seen.append([node.name for node in gm.graph.nodes])
    assert seen[0] == seen[1]
    assert seen[0].index("cos") + 1 == seen[0].index("neg")


def test_what_is_sorted_is_left_alone() -> None:
    gm = fx.symbolic_trace(Net())
    before = [*gm.graph.nodes]
    tools_common.legalize_graph(gm)
    assert [*gm.graph.nodes] == before


def test_a_circle_is_told_and_nothing_is_moved() -> None:
    for lib, tools in both("tools_common"):
        for sort, error in (
            (tools.legalize_graph, RuntimeError),
            (tools.stable_topological_sort, AssertionError),
        ):
            gm = shuffled(lib)
            names = [node.name for node in gm.graph.nodes]
            gm.graph.find_nodes(op="call_method", target="cos")[0].args = (
                gm.graph.find_nodes(op="call_method", target="exp")[0],
            )
            with pytest.raises(error, match="Input graph has cycles"):
                sort(gm)
            assert [node.name for node in gm.graph.nodes] == names


def test_pairs_are_kept_in_order() -> None:
    graph = fx.symbolic_trace(lambda x: (x.neg(), x.exp(), x.cos())).graph
    nodes = {node.name: node for node in graph.nodes}
    sort_nodes(graph, [(nodes["cos"], nodes["neg"])])
    assert [n.name for n in graph.nodes] == ["x", "exp", "cos", "neg", "output"]


# -- operator_support --------------------------------------------------------


TABLES: tuple[AnyValue, ...] = (
    {},
    {"torch.nn.modules.conv.Conv2d": None, "torch.flatten": None},
    {"torch.neg": (([torch.float32],), {}), "sum": (([torch.int64],), {})},
    {"torch.neg": ((None,), {}), "_operator.add": ((), {"other": []})},
    {"_operator.add": (([torch.int64], [torch.float32], []), {})},
)


@pytest.mark.parametrize("table", TABLES)
def test_a_table_of_what_is_supported(table: AnyValue) -> None:
    seen = []
    for lib, support in both("operator_support"):
        gm = lib.symbolic_trace(Net())
        shapes = importlib.import_module(f"{lib.__name__}.passes.shape_prop")
        shapes.ShapeProp(gm).propagate(torch.randn(1, 1, 6, 6))
        asked = support.OperatorSupport(table)
        modules = dict(gm.named_modules())
        seen.append(
            {
                n.name: asked.is_node_supported(modules, n)
                for n in gm.graph.nodes
            }
        )
    assert seen[0] == seen[1]


def test_all_of_some_and_one_of_some() -> None:
    gm = fx.symbolic_trace(lambda x: (torch.neg(x) + 1).exp())
    ShapeProp(gm).propagate(torch.zeros(1))
    is_add = create_op_support(lambda _, node: node.name == "add")
    names = OpSupports.decline_if_node_in_names({"exp"})
    floats = OpSupports.decline_if_input_dtype(torch.float32)

    def supported(by: AnyValue) -> list[str]:
        return [n.name for n in gm.graph.nodes if by.is_node_supported({}, n)]

    assert supported(is_add) == ["add"]
    assert supported(names) == ["x", "neg", "add", "output"]
    assert supported(floats) == ["x"]
    assert supported(chain(names, is_add)) == ["add"]
    assert supported(chain(floats, is_add)) == []
    assert supported(any_chain(floats, is_add)) == ["x", "add"]


# -- graph_manipulation ------------------------------------------------------


def test_calls_of_one_thing_become_calls_of_another() -> None:
    seen = []
    for lib, passes in both("graph_manipulation"):
        gm = lib.symbolic_trace(lambda x: torch.relu(torch.relu(x)).relu())
        args = ("call_function", torch.relu, "call_method", "neg")
        passes.replace_target_nodes_with(gm, *args)
        seen.append(gm.code)
        assert gm(torch.ones(1)).tolist() == [1]
    assert seen[0] == seen[1]


def test_what_a_replaced_call_keeps() -> None:
    def forward(pair: AnyValue) -> AnyValue:
        return torch.relu(pair[0]) + pair[1]

    hints = {"pair": (fx.PH, fx.PH)}
    gm = fx.symbolic_trace(forward, concrete_args=hints)
    (relu,) = gm.graph.find_nodes(op="call_function", target=torch.relu)
    relu.meta["note"], relu.type = 1, int
    graph_manipulation.replace_target_nodes_with(
        gm, "call_function", torch.relu, "call_function", torch.neg
    )
    assert (relu.target, relu.meta["note"], relu.type) == (torch.neg, 1, int)
    assert gm((torch.ones(1), 1)).tolist() == [0]


def test_sizes_in_bytes() -> None:
    seen = []
    for lib, passes in both("graph_manipulation"):
        gm = lib.symbolic_trace(Net())
        passes.get_size_of_all_nodes(gm, [torch.randn(1, 1, 6, 6)])
        nodes = [*gm.graph.nodes][:-1]
        seen.append({node.name: tuple(node.size_bytes) for node in nodes})
    assert seen[0] == seen[1]
    assert seen[0]["conv"] == (4 * 32, 4 * (32 + 18 + 2))


def test_sizes_without_shapes_are_told() -> None:
    for lib, passes in both("graph_manipulation"):
        gm = lib.symbolic_trace(Net())
        with pytest.raises(RuntimeError, match="has no tensor metadata"):
            passes.get_size_of_all_nodes(gm)


# -- param_fetch -------------------------------------------------------------


def test_attributes_for_a_back_end() -> None:
    seen = []
    for lib, passes in both("param_fetch"):
        torch.manual_seed(0)
        inner = lib.symbolic_trace(Net())

        root = nn.Sequential(inner, nn.Linear(3, 3))
        graph = lib.Graph()
        called = graph.call_module("0", (graph.placeholder("x"),))
        graph.output(graph.call_module("1", (called,)))
        gm = lib.GraphModule(root, graph)
        passes.lift_lowering_attrs_to_nodes(gm)
        calls = [*inner.graph.nodes, *gm.graph.nodes]
        found = [getattr(n, "attrs_for_lowering", None) for n in calls]
        seen.append(str(found))
    assert seen[0] == seen[1]
    assert "torch.nn.modules.batchnorm.BatchNorm2d" in seen[0]


def of_a_newer_version() -> nn.Module:
    """As if torch had changed the class."""
    made: AnyValue = nn.Linear(1, 1)
    made._version = 99
    return made  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (nn.Tanh, "is not in the module_fetch_book"),
        (of_a_newer_version, "Fetcher version 1 try to fetch"),
    ],
)
def test_modules_that_the_book_does_not_know(
    make: Callable[[], nn.Module], message: str
) -> None:
    for _, passes in both("param_fetch"):
        with pytest.raises(RuntimeError, match=message):
            passes.extract_attrs_for_lowering(make())
    assert param_fetch.default_matching("a", 1) == "a"


# -- utils.common ------------------------------------------------------------


class Deep(nn.Module):
    """A module and a buffer at paths."""

    a: AnyValue

    def __init__(self) -> None:
        super().__init__()
        self.a = HolderModule({"b": nn.Linear(2, 2), "none": None})
        self.a.register_buffer("c", torch.ones(2))

    def forward(self, x: AnyValue) -> AnyValue:
        return self.a.b(x) + self.a.c


def test_a_graph_is_lifted_with_what_it_names() -> None:
    model = Deep()
    seen = []
    for lib, common in both("utils.common"):
        gm = lib.symbolic_trace(model)
        graph = lib.Graph()
        graph.output(graph.graph_copy(gm.graph, {}))
        lifted, mapping = common.lift_subgraph_as_module(gm, graph, "c", "Of")
        assert lifted.a.b is model.a.b
        assert lifted.a.c is model.a.c
        x = torch.randn(1, 2)
        assert torch.equal(lifted(x), model(x))
        seen.append((mapping, lifted.code, type(lifted).__name__))
    assert seen[0] == seen[1]
    assert seen[0][0] == {"a.b": "c.a.b", "a.c": "c.a.c"}


def test_only_what_it_names() -> None:
    gm = fx.symbolic_trace(Net())
    relu = [node for node in gm.graph.nodes if node.name == "relu"]
    graph, inputs = subgraph_of(relu, relu, as_tuple=True)
    lifted: AnyValue = lift_subgraph_as_module(gm, graph)[0]
    assert [node.name for node in inputs] == ["norm"]
    assert [name for name, _ in lifted.named_children()] == ["relu"]
    assert lifted(-torch.ones(1)) == (torch.zeros(1),)


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (lambda a, b: (a + b).relu(), True),
        (lambda a, b: (b + a).relu(), False),
        (lambda a, b: (a + b).neg(), False),
        (lambda a: (a + 1).relu(), False),
    ],
)
def test_graphs_are_compared(other: AnyValue, same: bool) -> None:
    left = fx.symbolic_trace(lambda x, y: (x + y).relu()).graph
    assert compare_graphs(left, fx.symbolic_trace(other).graph) is same
