"""Passes: the partitioner and fuse_by_partitions, beside torch.fx."""

from __future__ import annotations

import importlib
import operator
import random
from collections.abc import Callable
from functools import partial

import pytest
import torch
import torch.fx
from torch import nn

import fx
from fx.passes.infra.partitioner import CapabilityBasedPartitioner, Partition
from fx.passes.operator_support import OperatorSupport, create_op_support
from fx.passes.tools_common import sorted_nodes
from fx.passes.utils import fuser_utils
from fx.use_def.values import AnyValue
from tests.library.memory_programs import outcome, program, recipe_of
from tests.zoo import ZOO, Network, borrow


def partitioner(
    lib: AnyValue,
    gm: AnyValue,
    supports: Callable[[AnyValue], bool],
    **options: AnyValue,
) -> AnyValue:
    """A partitioner of one of the libraries."""
    passes = f"{lib.__name__}.passes"
    support = importlib.import_module(f"{passes}.operator_support")
    infra = importlib.import_module(f"{passes}.infra.partitioner")
    by_name = support.create_op_support(lambda _, node: supports(node))
    return infra.CapabilityBasedPartitioner(gm, by_name, **options)


def names(partitions: list[AnyValue]) -> list[list[str]]:
    """The nodes of each partition by their names."""
    return [[node.name for node in part.nodes] for part in partitions]


def calls_except(*missing: str) -> Callable[[AnyValue], bool]:
    """Supports all functions and operators but these."""
    return lambda n: n.op == "call_function" and n.name not in missing


def simple(a: AnyValue, b: AnyValue, c: AnyValue) -> AnyValue:
    add = a + b
    linear = add * 2
    add_2 = linear + c
    add_3 = add_2 + a
    relu = add_3.relu()
    add_4 = add_2 + b
    add_5 = add_4 + relu
    return add_5 + 1


def branches(a: AnyValue, b: AnyValue, c: AnyValue) -> AnyValue:
    d = (a + b).relu() + 1
    e = c + d
    return d * e, e.relu() + 2, (a * 2 - 1)


def nothing(a: AnyValue, b: AnyValue, c: AnyValue) -> AnyValue:
    return a.relu(), b, c


def parallel(a: AnyValue, b: AnyValue, c: AnyValue) -> AnyValue:
    return (a + 1) * 2, (b + 1) * 2, (c + 1).relu() * 2 + 1


def several(a: AnyValue, b: AnyValue, c: AnyValue) -> AnyValue:
    top = torch.topk(a + b, 1)
    chunks = torch.chunk(c, 2)
    return top[0] + top[1], chunks[0].relu() + chunks[1]


FUNCTIONS = [simple, branches, nothing, parallel, several]


@pytest.mark.newest
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("horizontal", [False, True])
@pytest.mark.parametrize("f", FUNCTIONS)
def test_as_torch_fx(
    f: Callable[..., AnyValue], horizontal: bool, single: bool
) -> None:
    seen = []
    gm: AnyValue = None
    for lib in (fx, torch.fx):
        gm = lib.symbolic_trace(f)
        found = partitioner(
            lib,
            gm,
            calls_except(),
            allows_single_node_partition=single,
            skip_horizontal_fusion=horizontal,
        )
        parts = found.propose_partitions()
        gm = found.fuse_partitions(parts)
        codes = [part.code for part in gm.children()]
        seen.append((names(parts), gm.code.partition(":")[2], codes))
        gm.graph.lint()
    ours, theirs = seen
    order: AnyValue = sorted if horizontal else list
    assert order(ours[0]) == order(theirs[0])
    assert order(ours[2]) == order(theirs[2])
    a, b, c = torch.randn(3, 4)
    torch.testing.assert_close(gm(a, b, c), f(a, b, c))


def test_no_piece_needs_its_own_result() -> None:
    def f(x: AnyValue) -> AnyValue:
        a = torch.exp(x)
        return torch.add(a, torch.neg(a))

    gm = fx.symbolic_trace(f)
    found = partitioner(
        fx, gm, calls_except("neg"), allows_single_node_partition=True
    )
    assert names(found.propose_partitions()) == [["add"], ["exp"]]
    nodes = {node.name: node for node in gm.graph.nodes}
    together = [nodes["exp"], nodes["add"]]
    assert not fuser_utils.validate_partition(together)
    with pytest.raises(AssertionError, match="Invalid partition, found depend"):
        fuser_utils.fuse_as_graphmodule(gm, together, "fused")
    before = gm.code
    with pytest.raises(AssertionError, match="Invalid partition, found depend"):
        fuser_utils.fuse_by_partitions(gm, [dict.fromkeys(together)])
    gm.recompile()
    assert gm.code == before


def test_two_pieces_that_need_each_other() -> None:
    def f(x: AnyValue, y: AnyValue) -> AnyValue:
        a, b = torch.exp(x), torch.neg(y)
        return torch.cos(a), torch.sin(b)

    gm = fx.symbolic_trace(f)
    _, _, exp, neg, cos, sin, _ = gm.graph.nodes
    cos.args, sin.args = (neg,), (exp,)
    with pytest.raises(AssertionError, match="found dependency cycles"):
        fuser_utils.fuse_by_partitions(gm, [[exp, cos], [neg, sin]])
    assert [*gm.children()] == []
    fuser_utils.fuse_by_partitions(gm, [[exp, sin], [neg, cos], []])
    assert [name for name, _ in gm.named_children()] == ["fused_0", "fused_1"]


def test_what_cannot_be_fused() -> None:
    gm = fx.symbolic_trace(lambda x: torch.exp(x))
    x, exp, _ = gm.graph.nodes
    with pytest.raises(AssertionError, match="exp is in two partitions"):
        fuser_utils.fuse_by_partitions(gm, [[exp], [exp]])
    with pytest.raises(AssertionError, match="x is not a call or attribute"):
        fuser_utils.fuse_by_partitions(gm, [[x, exp]])
    other = fx.symbolic_trace(lambda x: torch.exp(x))
    with pytest.raises(AssertionError, match="doesn't belong to passed in"):
        fuser_utils.fuse_as_graphmodule(other, [exp], "fused")


def test_a_tuple_of_one() -> None:
    gm = fx.symbolic_trace(lambda x: torch.exp(torch.neg(x)))
    _, neg, _, _ = gm.graph.nodes
    fuser_utils.fuse_by_partitions(gm, [[neg]], "one_", True)
    assert gm.get_submodule("one_0")(torch.ones(1)) == (-torch.ones(1),)
    assert gm(torch.zeros(1)).item() == 1


class Weighed(nn.Module):
    """A shared module and a weight, inside and outside of the piece."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.act = nn.ReLU()
        self.w = nn.Parameter(torch.ones(3))

    def forward(self, x: AnyValue) -> AnyValue:
        y = self.act(self.lin(x) * self.w).neg()
        return {"nested": [self.lin(y), (self.w,)]}


def test_modules_are_pieces_too() -> None:
    model = Weighed()
    gm = fx.symbolic_trace(model)
    found = partitioner(fx, gm, lambda node: node.op != "call_method")
    parts = found.propose_partitions()
    assert names(parts) == [["lin_1"], ["lin", "w", "mul", "act"]][1:]
    fused: AnyValue = found.fuse_partitions(parts)
    assert fused.fused_0.lin is model.lin
    x = torch.randn(2, 3)
    torch.testing.assert_close(fused(x), model(x))


def test_a_module_is_called_by_its_second_name() -> None:
    linear = nn.Linear(3, 3)
    graph = fx.Graph()
    x = graph.placeholder("x")
    first = graph.call_module("one", (x,))
    graph.output(graph.call_module("two", (first,)))
    gm = fx.GraphModule({"one": linear, "two": linear}, graph)
    support = OperatorSupport({"torch.nn.modules.linear.Linear": None})
    fused = CapabilityBasedPartitioner(gm, support).partition_and_fuse()
    assert [name for name, _ in fused.named_children()] == ["one", "fused_0"]
    value = torch.randn(2, 3)
    assert torch.equal(fused(value), linear(linear(value)))


@pytest.mark.parametrize("network", ZOO, ids=lambda one: one.name)
def test_networks(network: Network) -> None:
    with borrow(network, training=False) as model:
        gm = fx.symbolic_trace(model)
        unsupported = (nn.ReLU, nn.Dropout, nn.Softmax)

        def supports(node: AnyValue) -> bool:
            if node.op == "call_module":
                module = gm.get_submodule(node.target)
                return not isinstance(module, unsupported)
            return str(node.op) == "call_function"

        inputs = network.inputs()
        expected = model(*inputs)
        fused = partitioner(fx, gm, supports).partition_and_fuse()
        torch.testing.assert_close(fused(*inputs), expected)
        fused.graph.lint()


def bookends(a: AnyValue) -> AnyValue:
    b = torch.permute(torch.permute(a, (1, 0)), (1, 0))
    c = torch.permute(b + a, (1, 0)) * 2
    return torch.permute(torch.permute(c, (1, 0)), (1, 0)), c.sum()


def test_what_computes_nothing_at_the_ends() -> None:
    seen = []
    for lib in (fx, torch.fx):
        gm = lib.symbolic_trace(bookends)
        found = partitioner(
            lib, gm, calls_except(), non_compute_ops=["torch.permute"]
        )
        parts = found.propose_partitions()
        found.remove_bookend_non_compute_ops(parts)
        seen.append(names(parts))
    assert seen[0] == seen[1] == [["add", "permute_2", "mul"]]


def test_single_calls_that_are_allowed() -> None:
    for lib in (fx, torch.fx):
        gm = lib.symbolic_trace(nothing)
        add = lib.symbolic_trace(lambda x: (torch.exp(x).relu() + 1).relu())
        found = partitioner(
            lib,
            add,
            calls_except(),
            allowed_single_node_partition_ops=["torch.exp"],
        )
        assert names(found.propose_partitions()) == [["exp"]]
        assert partitioner(lib, gm, calls_except()).propose_partitions() == []


def test_a_partition() -> None:
    gm = fx.symbolic_trace(nothing)
    first, second, *_ = gm.graph.nodes
    part = Partition(3, [first], [7])
    part.add_node(second)
    assert (part.size(), repr(part)) == (2, "{a: 7, b: None}")
    part.remove_node(first)
    assert part.nodes == {second: None}
    with pytest.raises(ValueError, match="zip"):
        Partition(None, [first], [])


# -- effects -----------------------------------------------------------------


def test_unpacking_stays_behind_an_effect() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    a = graph.call_function(torch.chunk, (x, 2))
    one = graph.call_function(operator.getitem, (a, 0))
    graph.call_method("add_", (x, 1))
    other = graph.call_function(operator.getitem, (a, 1))
    graph.output(graph.call_function(torch.sub, (one, other)))
    gm = fx.GraphModule({}, graph)
    expected = gm(torch.arange(4.0))
    fused = partitioner(fx, gm, calls_except()).partition_and_fuse()
    torch.testing.assert_close(fused(torch.arange(4.0)), expected)


@pytest.mark.parametrize("connected", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_any_program_in_any_pieces(seed: int, connected: bool) -> None:
    drawn, fused = random.Random(seed), 0
    for _ in range(300):
        gm = fx.GraphModule({}, program(recipe_of(drawn, 14)))
        share = drawn.choice((0.3, 0.6, 0.9))
        chosen = {n.name for n in gm.graph.nodes if drawn.random() < share}
        before, expected = gm.code, outcome(gm)
        found = CapabilityBasedPartitioner(
            gm,
            create_op_support(is_among(chosen)),
            allows_single_node_partition=True,
            skip_horizontal_fusion=connected,
        )
        parts = found.propose_partitions()
        gm = found.fuse_partitions(parts)
        gm.graph.lint()
        fused += any(part.size() > 1 for part in parts)
        assert outcome(gm) == expected, f"{before}\n{names(parts)}\n{gm.code}"
    assert fused > 150


@pytest.mark.parametrize("seed", range(3))
def test_any_parts_are_fused_or_refused(seed: int) -> None:
    drawn, fused = random.Random(seed), 0
    for _ in range(300):
        gm = fx.GraphModule({}, program(recipe_of(drawn, 12)))
        calls = [n for n in gm.graph.nodes if n.op.startswith("call")]
        parts: list[dict[AnyValue, None]] = [{}, {}, {}]
        for node in calls:
            if drawn.random() < 0.5:
                drawn.choice(parts)[node] = None
        before, expected = gm.code, outcome(gm)
        try:
            fuser_utils.fuse_by_partitions(gm, parts)
        except AssertionError as error:
            assert "found dependency cycles" in str(error)
            gm.recompile()
            assert gm.code == before
            continue
        fused += 1
        assert outcome(gm) == expected, f"{before}\n{parts}\n{gm.code}"
    assert fused > 40


def is_among(names: set[str]) -> Callable[[object, AnyValue], bool]:
    """Supports calls of these names."""
    return lambda _, node: node.op[0] == "c" and node.name in names


def pure_program(lib: AnyValue, seed: int) -> AnyValue:
    """Calls of functions on the values before them."""
    drawn, graph = random.Random(seed), lib.Graph()
    values = [graph.placeholder("x"), graph.placeholder("y")]
    for _ in range(drawn.randint(4, 20)):
        pair = tuple(drawn.choice(values[-5:]) for _ in range(2))
        values.append(graph.call_function(torch.add, pair))
    graph.output(values[-1])
    return lib.GraphModule({}, graph)


def is_connected(part: AnyValue) -> bool:
    """Whether the uses inside of a piece link all of its nodes."""
    found, rest = set(), [next(iter(part.nodes))]
    while rest:
        node = rest.pop()
        if node not in found and node in part.nodes:
            found.add(node)
            rest += [*node.users, *node.all_input_nodes]
    return len(found) == len(part.nodes)


@pytest.mark.newest
@pytest.mark.parametrize("connected", [False, True])
def test_never_more_pieces_than_torch_fx(connected: bool) -> None:
    more = 0
    for seed in range(150):
        counted = []
        for lib in (fx, torch.fx):
            gm = pure_program(lib, seed)
            drawn = random.Random(seed)
            chosen = {n.name for n in gm.graph.nodes if drawn.random() < 0.7}
            found = partitioner(
                lib,
                gm,
                partial(is_among(chosen), None),
                allows_single_node_partition=True,
                skip_horizontal_fusion=connected,
            )
            parts = found.propose_partitions()
            counted.append(len(parts))
            if connected:
                assert all(map(is_connected, parts))
        # There may be more connected pieces, as levels do not move for them.
        assert connected or counted[0] <= counted[1]
        more += counted[0] - counted[1]
    assert more <= 25


def test_nodes_in_order() -> None:
    gm = fx.symbolic_trace(simple)
    nodes = [*gm.graph.nodes]
    drawn = random.Random(0)
    shuffled = drawn.sample(nodes, len(nodes))
    found = fuser_utils.topo_sort(shuffled)
    place = {node: number for number, node in enumerate(found)}
    assert sorted(found) == nodes
    assert all(place[a] < place[n] for n in nodes for a in n.all_input_nodes)
    assert sorted_nodes(nodes) == nodes
