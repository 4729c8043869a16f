"""Passes: products with the same right operand computed at once."""

from __future__ import annotations

import itertools
import operator
import random
from collections.abc import Callable

import pytest
import torch
import torch.fx
from torch import nn
from torch.fx.experimental import merge_matmul as theirs

import fx
from fx.experimental import merge_matmul as ours
from fx.passes.shape_prop import ShapeProp
from fx.use_def.values import AnyValue
from tests.zoo import ZOO, Network, borrow


class Products(nn.Module):
    """Runs a function of its inputs and two matrices."""

    def __init__(self, f: Callable[..., AnyValue]) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.w = nn.Parameter(torch.rand(3, 3, generator=generator))
        self.v = nn.Parameter(torch.rand(3, 3, generator=generator))
        self.row = nn.Parameter(torch.rand(3, generator=generator))
        self.batch = nn.Parameter(torch.rand(2, 3, 3, generator=generator))
        self.f = f

    def forward(self, x: AnyValue, y: AnyValue) -> AnyValue:
        return self.f(self, x, y)


def products(gm: AnyValue) -> int:
    """How many calls of torch.matmul a graph has."""
    return sum(node.target is torch.matmul for node in gm.graph.nodes)


def left(f: Callable[..., AnyValue], *inputs: torch.Tensor) -> int:
    """How many products are left; results and gradients must stay."""
    made = Products(f)
    gm = ours.merge_matmul(made)
    gm.graph.lint()
    inputs = inputs or tuple(torch.rand(2, 4, 3))
    seen = []
    made.requires_grad_(f not in WRITE_OPERANDS)
    for module in (made, gm, fx.symbolic_trace(gm)):
        made.zero_grad()
        copies = [each.clone() for each in inputs]
        results = module(*copies)
        results = results if isinstance(results, tuple) else (results,)
        if f not in WRITE_OPERANDS:
            sum(each.sum() for each in results).backward()
        gradients = [each.grad for each in made.parameters()]
        seen.append((results, copies, gradients))
    torch.testing.assert_close(seen[1], seen[0])
    torch.testing.assert_close(seen[2], seen[0])
    return products(gm)


# -- where torch.fx is right -------------------------------------------------


def two(self: AnyValue, x: AnyValue, y: AnyValue) -> AnyValue:
    return torch.matmul(x, self.w) + torch.matmul(y, self.w)


def three_of_five(self: AnyValue, x: AnyValue, y: AnyValue) -> AnyValue:
    a, b = torch.matmul(x, self.w), torch.matmul(y, self.v)
    c, d = torch.matmul(x + y, self.w), torch.matmul(a, b.t())
    return c + torch.matmul(y.neg(), self.w), d


def in_a_row(self: AnyValue, x: AnyValue, y: AnyValue) -> AnyValue:
    return torch.matmul(torch.matmul(x, self.w).abs(), self.w) + y


def of_each_other(self: AnyValue, x: AnyValue, y: AnyValue) -> AnyValue:
    a = torch.matmul(x, self.w)
    return torch.matmul(y, a.t()).sum() + torch.matmul(x, a.t()).sum()


@pytest.mark.parametrize(
    ("f", "expected"), [(two, 1), (three_of_five, 3), (in_a_row, 2)]
)
def test_as_torch_fx(f: Callable[..., AnyValue], expected: int) -> None:
    assert left(f) == expected
    beside = theirs.merge_matmul(Products(f))
    assert products(beside) == expected
    x, y = torch.rand(2, 4, 3)
    torch.testing.assert_close(
        ours.merge_matmul(Products(f))(x, y), beside(x, y)
    )


def test_the_same_graph_where_operands_are_known_to_be_matrices() -> None:
    gm = fx.symbolic_trace(Products(two))
    ShapeProp(gm).propagate(*torch.rand(2, 4, 3))
    merged = ours.merge_matmul(gm)
    beside = theirs.merge_matmul(Products(two))
    kinds: AnyValue = [
        [str(each.name) for each in nodes if each.op == "call_function"]
        for nodes in (merged.graph.nodes, beside.graph.nodes)
    ]
    plain = [
        sorted(name.rstrip("_0123456789") for name in names) for names in kinds
    ]
    assert plain[0] == plain[1]


NETWORKS = [one for one in ZOO if one.name in ("gpt2", "vit_b_16", "siamese")]


@pytest.mark.parametrize("network", NETWORKS, ids=lambda one: one.name)
def test_networks(network: Network) -> None:
    with borrow(network, training=False) as model, torch.no_grad():
        gm = fx.symbolic_trace(model)
        merged = ours.merge_matmul(gm)
        assert products(merged) == products(gm)  # none has a weight in common
        inputs = network.inputs()
        torch.testing.assert_close(merged(*inputs), model(*inputs))


def test_dependence() -> None:
    gm: AnyValue = torch.fx.symbolic_trace(
        lambda x, y: (x + y).neg().abs().exp()
    )
    mine = fx.from_torch(gm)
    for depth in (0, 1, 2, 6):
        answers = [
            [
                lib.may_depend_on(a, b, depth)
                for a, b in itertools.product(graph.nodes, repeat=2)
            ]
            for lib, graph in ((ours, mine.graph), (theirs, gm.graph))
        ]
        assert answers[0] == answers[1]
    x, y, add, *_ = mine.graph.nodes
    assert ours.are_nodes_independent([x, y])
    assert not ours.are_nodes_independent([x, y, add])


def test_results_taken_apart() -> None:
    x, y = torch.rand(2, 3), torch.rand(4, 3)
    result = torch.cat([x, y])
    torch.testing.assert_close(
        ours.split_result_tensors(result, [x, y]),
        theirs.split_result_tensors(result, [x, y]),
    )


# -- where it is not ---------------------------------------------------------


def two_operands(self: AnyValue, x: AnyValue, y: AnyValue) -> AnyValue:
    a, b = torch.matmul(x, self.w), torch.matmul(y, self.w)
    return torch.matmul(a, self.v) + torch.matmul(b.relu(), self.v)


def some_of_them(self: AnyValue, x: AnyValue, y: AnyValue) -> AnyValue:
    a, b = torch.matmul(x, self.w), torch.matmul(y, self.w)
    return torch.matmul(a.neg(), self.w) + torch.matmul(b.exp(), self.w)


def by_keyword(self: AnyValue, x: AnyValue, y: AnyValue) -> AnyValue:
    return torch.matmul(x, other=self.w) + torch.matmul(y, self.w)


def in_place(self: AnyValue, x: AnyValue, y: AnyValue) -> AnyValue:
    a, b = torch.matmul(x, self.w), torch.matmul(y, self.w)
    return a.relu_() + b.add_(a)


def a_write_to_the_left_one(
    self: AnyValue, x: AnyValue, y: AnyValue
) -> AnyValue:
    a = torch.matmul(x, self.w)
    x.add_(1)
    return a + torch.matmul(x, self.w)


def a_write_elsewhere(self: AnyValue, x: AnyValue, y: AnyValue) -> AnyValue:
    z = torch.add(x, 1)
    a = torch.matmul(y, self.w)
    z.add_(1)
    return a + torch.matmul(z, self.w)


def a_shape_changed(self: AnyValue, x: AnyValue, y: AnyValue) -> AnyValue:
    z = torch.add(x, 1)
    a = torch.matmul(z, self.w)
    z.unsqueeze_(0)
    return a.sum() + torch.matmul(z, self.w).sum() + torch.matmul(y, self.w)


def batches(self: AnyValue, x: AnyValue, y: AnyValue) -> AnyValue:
    return torch.matmul(x, self.batch).sum() + torch.matmul(y, self.batch).sum()


def vectors(self: AnyValue, x: AnyValue, y: AnyValue) -> AnyValue:
    return torch.matmul(x, self.row).sum() + torch.matmul(y, self.row).sum()


WRITE_OPERANDS = (a_write_to_the_left_one, a_shape_changed)
"""What autograd refuses, whoever computes the products."""


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (two_operands, 2),
        (some_of_them, 2),
        (by_keyword, 1),
        (in_place, 1),
        (a_write_to_the_left_one, 2),
        (a_write_elsewhere, 1),
        (a_shape_changed, 2),
        (batches, 2),
        (vectors, 1),
        (of_each_other, 3),
    ],
)
def test_hostile(f: Callable[..., AnyValue], expected: int) -> None:
    assert left(f) == expected


def matrices(self: AnyValue, x: AnyValue, y: AnyValue) -> AnyValue:
    return torch.matmul(x, self.w).sum(), torch.matmul(y, self.w)


@pytest.mark.parametrize("f", [matrices, vectors])
def test_left_operands_of_any_shape(f: Callable[..., AnyValue]) -> None:
    shapes = (3,), (2, 3), (0, 3), (2, 1, 4, 3)
    for one, other in itertools.product(shapes, repeat=2):
        assert left(f, torch.rand(one), torch.rand(other)) == 1


def test_a_tensor_under_two_names() -> None:
    def f(self: AnyValue, x: AnyValue, y: AnyValue) -> AnyValue:
        return torch.matmul(x, self.w) + torch.matmul(y, self.v)

    made = Products(f)
    assert products(ours.merge_matmul(made)) == 2
    made.v = made.w
    assert products(ours.merge_matmul(made)) == 1


def unused(self: AnyValue, x: AnyValue, y: AnyValue) -> AnyValue:
    products = [torch.matmul(one, self.w) for one in (x, torch.sqrt(self.v))]
    return *products, torch.matmul(y, self.w.detach())


@pytest.mark.parametrize("again", [False, True])
def test_a_product_that_no_loss_uses_gives_no_gradient(again: bool) -> None:
    model = Products(unused)
    model.v.data.zero_()
    merged = ours.merge_matmul(model)
    if again:
        merged = fx.symbolic_trace(merged)
    x, y = torch.rand(2, 4, 3)
    found = merged(x, y)
    assert [one.requires_grad for one in found] == [True, True, False]
    found[0].sum().backward()
    assert model.v.grad is None
    model.w.grad = None
    assert products(merged) == 2
    with torch.no_grad():
        torch.testing.assert_close(merged(x, y), model(x, y))


def test_under_vmap_and_forward_mode() -> None:
    model = Products(two)
    merged = ours.merge_matmul(model)
    x, y = torch.rand(2, 5, 4, 3)
    found, expected = torch.vmap(merged)(x, y), torch.vmap(model)(x, y)
    torch.testing.assert_close(found, expected)
    found = torch.func.jacfwd(merged)(x[0], y[0])
    expected = torch.func.jacfwd(model)(x[0], y[0])
    torch.testing.assert_close(found, expected)


def test_an_operand_of_unknown_rank() -> None:
    gm = fx.symbolic_trace(
        lambda x, y, w: torch.matmul(x, w) + torch.matmul(y, w)
    )
    assert products(ours.merge_matmul(gm)) == 2
    inputs = torch.rand(3, 2, 2)
    ShapeProp(gm).propagate(*inputs)
    merged = ours.merge_matmul(gm)
    assert products(merged) == 1
    assert products(gm) == 2
    torch.testing.assert_close(merged(*inputs), gm(*inputs))


def test_with_out_or_a_constant() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    w = graph.get_attr("w")
    out = graph.call_function(torch.clone, (x,))
    a = graph.call_function(torch.matmul, (x, w))
    graph.call_function(torch.matmul, (x, w), {"out": out})
    graph.output(graph.call_function(torch.add, (a, out)))
    gm = fx.GraphModule(Products(two), graph)
    assert products(ours.merge_matmul(gm)) == 2


def program(lib: AnyValue, seed: int) -> AnyValue:
    """Products with three matrices, of values that come of each other."""
    drawn, root, graph = random.Random(seed), nn.Module(), lib.Graph()
    for name in "uvw":
        weight = torch.rand(2, 2, generator=torch.Generator().manual_seed(1))
        setattr(root, name, nn.Parameter(weight))
    values = [
        graph.call_function(torch.clone, (graph.placeholder(name),))
        for name in "xy"
    ]
    for _ in range(12):
        value, other = drawn.choice(values[-6:]), drawn.choice(values)
        kind = drawn.randrange(8)
        if kind < 4:
            weight = graph.get_attr(drawn.choice("uvw"))
            values.append(graph.call_function(torch.matmul, (value, weight)))
        elif kind == 4:
            values.append(graph.call_method("sub_", (value, other)))
        else:
            target = drawn.choice((torch.add, torch.sub, operator.add))
            values.append(graph.call_function(target, (value, other)))
    graph.output(tuple(values))
    return lib.GraphModule(root, graph)


@pytest.mark.parametrize("seed", range(2))
def test_any_program(seed: int) -> None:
    fewer = 0
    inputs = torch.rand(2, 2, 2)
    for number in range(150):
        gm = program(fx, 1000 * seed + number)
        merged = ours.merge_matmul(gm)
        merged.graph.lint()
        fewer += products(merged) < products(gm)
        with torch.no_grad():
            expected = gm(*inputs.clone())
            found = merged(*inputs.clone())
        torch.testing.assert_close(found, expected, msg=str(gm.code))
        again = ours.merge_matmul(merged)
        assert products(again) <= products(merged)
    assert fewer > 60
