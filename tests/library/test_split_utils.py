"""Passes: split_by_tags and its neighbours, beside torch.fx."""

from __future__ import annotations

import random

import pytest
import torch
import torch.fx
from torch import nn
from torch.fx.passes import split_utils as theirs

import fx
from fx.passes import split_utils
from fx.passes.split_utils import split_by_tags
from fx.use_def.values import AnyValue
from tests.library.memory_programs import outcome, program, recipe_of
from tests.library.zoo_by_text import BY_TEXT
from tests.zoo import Network, borrow


def tagged(gm: AnyValue, parts: dict[str, str], other: str = "a") -> AnyValue:
    """The module, its calls tagged by their names."""
    for node in gm.graph.nodes:
        node.tag = parts.get(node.name, other)
    return gm


@pytest.mark.parametrize("network", BY_TEXT)
def test_networks_in_three(network: Network) -> None:
    with borrow(network, training=False) as model:
        cut: list[AnyValue] = []
        for lib, split in (
            (fx, split_by_tags),
            (torch.fx, theirs.split_by_tags),
        ):
            gm: AnyValue = lib.symbolic_trace(model)
            nodes = [*gm.graph.nodes]
            for number, node in enumerate(nodes):
                node.tag = "abc"[3 * number // len(nodes)]
            cut.append(split(gm, [*"abc"], return_fqn_mapping=True))
        (ours, mapped), (other, beside) = cut
        assert mapped == beside
        for name in "abc":
            assert getattr(ours, name).code == getattr(other, name).code
        torch.manual_seed(0)
        expected = model(*network.inputs())
        torch.manual_seed(0)
        torch.testing.assert_close(ours(*network.inputs()), expected)


class Model(nn.Module):
    """A weight that two parts fetch, a shared module, a nested output."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Module()
        self.inner.w = nn.Parameter(torch.ones(3))
        self.lin = nn.Linear(3, 3)

    def forward(
        self, x: AnyValue, k: AnyValue = 2, *more: AnyValue
    ) -> AnyValue:
        y = self.lin(x) + self.inner.w
        z = self.lin(y) * self.inner.w * k
        return {"both": [y, z.sum()], "more": more}, self.inner.w


def test_attributes_are_fetched_where_they_are_used() -> None:
    model = Model()
    gm = tagged(fx.symbolic_trace(model), {"lin": "a", "add": "a"}, "b")
    split = split_by_tags(gm, ["a", "b", "none"], return_tuple=True)
    x = torch.randn(2, 3)
    torch.testing.assert_close(split(x), model(x))
    torch.testing.assert_close(split(x, 5, 6), model(x, 5, 6))
    assert split.a.inner.w is split.b.inner.w is split.inner.w
    assert split.a.lin is split.b.lin is model.lin
    assert len(list(split.parameters())) == 3
    assert split.none() == ()
    theirs_gm = tagged(torch.fx.symbolic_trace(model), {"lin": "a"}, "b")
    other: AnyValue = theirs.split_by_tags(theirs_gm, ["a", "b"])
    with pytest.raises(TypeError):  # it drops defaults
        other(x)


def test_an_attribute_that_is_returned_twice_and_is_not_saved() -> None:
    root, graph = nn.Module(), fx.Graph()
    root.register_buffer("loose", torch.ones(3), persistent=False)
    loose = [graph.get_attr("loose") for _ in range(3)]
    first = graph.call_function(torch.neg, (loose[0],))
    graph.output((first, loose[1], loose[2]))
    gm = fx.GraphModule(root, graph)
    split = split_by_tags(tagged(gm, {}), ["a"])
    assert [*map(torch.sum, split())] == [-3, 3, 3]
    assert [*split.state_dict()] == []
    assert {name for name, _ in split.named_buffers()} == {"loose"}


def test_an_attribute_that_is_named_like_a_part() -> None:
    gm = tagged(fx.symbolic_trace(Model()), {})
    for node in gm.graph.nodes:
        node.tag = "inner"
    with pytest.raises(ValueError, match="use another tag"):
        split_by_tags(gm, ["inner"])


def test_without_a_tag() -> None:
    gm = fx.symbolic_trace(lambda x: x.relu())
    with pytest.raises(AssertionError, match="Node does not have tag: %relu"):
        split_by_tags(gm, ["a"])


def test_a_part_before_one_that_it_needs() -> None:
    gm = tagged(fx.symbolic_trace(lambda x: x.relu().neg()), {"neg": "b"})
    with pytest.raises(AssertionError, match="neg uses relu, which is in a"):
        split_by_tags(gm, ["b", "a"])


def read_write_read(x: AnyValue) -> AnyValue:
    y = torch.add(x, 1)
    before = y * 2
    y.add_(3)
    return before, y * 5


def test_a_write_before_a_read_is_refused() -> None:
    parts = {"mul": "late"}
    gm = tagged(fx.symbolic_trace(read_write_read), parts)
    with pytest.raises(AssertionError, match="add_ must stay behind mul"):
        split_by_tags(gm, ["a", "late"])
    other = tagged(torch.fx.symbolic_trace(read_write_read), parts)
    x = torch.zeros(1)
    wrong: AnyValue = theirs.split_by_tags(other, ["a", "late"])
    assert not torch.equal(wrong(x)[0], read_write_read(x)[0])


@pytest.mark.parametrize("seed", range(2))
def test_any_program_in_any_order_of_parts(seed: int) -> None:
    drawn, cut = random.Random(seed), 0
    for _ in range(300):
        gm = fx.GraphModule({}, program(recipe_of(drawn)))
        tags = [str(n) for n in range(drawn.randint(1, 6))]
        nodes: AnyValue = gm.graph.nodes
        at = 0
        for node in nodes:
            at += drawn.random() < 0.3
            moved = at - (drawn.random() < 0.1)
            node.tag = tags[max(0, min(moved, len(tags) - 1))]
        try:
            split = split_by_tags(gm, tags)
        except AssertionError as error:
            assert "order must be" in str(error)
            continue
        cut += 1
        expected, found = outcome(gm), outcome(split)
        assert found == expected, gm.code
        split.graph.lint()
    assert cut > 80


class Nested(nn.Module):
    """Attributes at paths, and in a list of modules."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(1, 1)])
        self.holder = nn.Module()


@pytest.mark.parametrize(
    "path",
    ["layers.0.weight", "layers.append", "layers.1", "holder", "holder.x.y"],
)
def test_getattr_recursive(path: str) -> None:
    model = Nested()
    found = split_utils.getattr_recursive(model, path)
    assert found is theirs.getattr_recursive(model, path)


def test_setattr_recursive() -> None:
    model: AnyValue = Nested()
    split_utils.setattr_recursive(model, "holder.x", 3)
    split_utils.setattr_recursive(model, "y", 4)
    assert (model.holder.x, model.y) == (3, 4)
    with pytest.raises(AttributeError):
        split_utils.setattr_recursive(model, "none.x", 3)
