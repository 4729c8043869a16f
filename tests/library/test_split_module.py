"""Passes: split_module, beside torch.fx and beside what was split."""

from __future__ import annotations

import inspect
import random
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import count

import pytest
import torch
import torch.fx
from torch import nn
from torch.fx.passes.split_module import split_module as their_split

import fx
from fx.passes.split_module import split_module
from fx.passes.utils.call_order import kept_in_order
from fx.use_def.values import AnyValue
from tests.library.memory_programs import flat, program, recipe_of
from tests.library.zoo_by_text import BY_TEXT
from tests.zoo import Network, borrow

Answer = Callable[[AnyValue], AnyValue]


def by_name(parts: Mapping[str, object], other: object = 0) -> Answer:
    """The part of each node by its name."""
    return lambda node: parts.get(node.name, other)


def in_turn(length: int) -> Answer:
    """So many calls for each part, one part after another."""
    numbers = count()
    return lambda node: next(numbers) // length


def texts(gm: AnyValue) -> Iterator[tuple[str, str]]:
    """The code of a split module, without its return type, and of its parts.

    The return type stays in ours.
    """
    yield "", re.sub(r"\) -> .*:", "):", gm.code)
    for name, child in gm.named_children():
        if hasattr(child, "code"):
            yield name, child.code


@pytest.mark.parametrize("network", BY_TEXT)
def test_networks_in_stages(network: Network) -> None:
    with borrow(network, training=False) as model:
        ours, theirs = fx.symbolic_trace(model), torch.fx.symbolic_trace(model)
        mapped: dict[str, str] = {}
        length = len(ours.graph.nodes) // 3
        split = split_module(ours, model, in_turn(length), mapped)
        beside: dict[str, str] = {}
        other = their_split(theirs, model, in_turn(length), beside)
        assert dict(texts(split)) == dict(texts(other))
        assert mapped == beside
        torch.manual_seed(0)
        expected = model(*network.inputs())
        torch.manual_seed(0)
        torch.testing.assert_close(split(*network.inputs()), expected)


class Branches(nn.Module):
    """Two ways through, with what torch.fx takes for one name."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Sequential(nn.Linear(4, 4))
        self.a_0 = nn.ReLU()
        self.w = nn.Parameter(torch.ones(4))

    def forward(self, x: AnyValue, k: int = 3) -> AnyValue:
        y = self.a_0(self.a(x))
        return {"sums": [y + self.w, y.sum() * k]}, x


def test_two_paths_that_would_have_one_name() -> None:
    model = Branches()
    gm = fx.symbolic_trace(model)
    mapped: dict[str, str] = {}
    split = split_module(gm, model, by_name({"add": 1}), mapped)
    x = torch.randn(2, 4)
    torch.testing.assert_close(split(x), model(x))
    torch.testing.assert_close(split(x, k=5), model(x, k=5))
    assert mapped == {"submod_0.a_0": "a.0", "submod_0.a_0_1": "a_0"}
    theirs = their_split(
        torch.fx.symbolic_trace(model), model, by_name({"add": 1})
    )
    assert not torch.equal(theirs(x)[0]["sums"][1], model(x)[0]["sums"][1])


@pytest.mark.parametrize(
    "options",
    [
        {"keep_original_order": True},
        {"keep_original_node_name": True},
        {"keep_original_input_name": False},
        {"partition_affix": "of"},
        {"tuple_return": True},
    ],
    ids=lambda options: next(iter(options)),
)
def test_options_do_as_in_torch(options: dict[str, AnyValue]) -> None:
    def forward(x, y):  # type: ignore[no-untyped-def]
        return torch.relu(x) + y, torch.neg(y).sum(), (x.exp() * 2).tanh()

    parts = by_name({"neg": 1, "sum_1": 1, "mul": "z", "tanh": "z"})
    ours = split_module(
        fx.symbolic_trace(forward), nn.Module(), parts, **options
    )
    if options.keys() <= inspect.signature(their_split).parameters.keys():
        root = torch.fx.symbolic_trace(forward)
        theirs = their_split(root, nn.Module(), parts, **options)
        assert dict(texts(ours)) == dict(texts(theirs))
    x, y = torch.randn(3), torch.randn(3)
    expected: AnyValue = (torch.relu(x) + y, -y.sum(), (x.exp() * 2).tanh())
    torch.testing.assert_close(ours(x, y), expected)


def test_names_are_kept_with_any_number_of_inputs() -> None:
    def forward(
        x: AnyValue, *rest: AnyValue, k: int = 3, **more: AnyValue
    ) -> AnyValue:
        return x.relu() * k, rest, more

    gm = fx.symbolic_trace(forward)
    split = split_module(gm, gm, in_turn(1), keep_original_node_name=True)
    x = torch.randn(2)
    torch.testing.assert_close(split(x, k=2, z=4), forward(x, k=2, z=4))


@pytest.mark.parametrize("path", ["add.module", "state.dict"])
def test_a_path_that_would_become_the_name_of_a_method(path: str) -> None:
    parent, child = path.split(".")
    root: AnyValue = nn.Module()
    setattr(root, parent, nn.Module())
    getattr(root, parent).add_module(child, nn.Linear(2, 2))
    graph = fx.Graph()
    graph.output(graph.call_module(path, (graph.placeholder("x"),)))
    gm = fx.GraphModule(root, graph)
    x = torch.ones(2)
    assert torch.equal(split_module(gm, gm, lambda node: 0)(x), gm(x))


def test_an_attribute_that_is_called_like_a_part() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.submod_0 = nn.Parameter(torch.ones(3))

        def forward(self, x: AnyValue) -> AnyValue:
            return x * self.submod_0

    split = split_module(fx.symbolic_trace(Model()), Model(), in_turn(1))
    assert [name for name, _ in split.named_children()] == ["submod_0_1"]
    x = torch.randn(3)
    assert torch.equal(split(x), x)


def test_modules_and_weights_are_shared() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))
    model[2] = model[0]
    gm = fx.symbolic_trace(model)
    before = gm.code
    split: AnyValue = split_module(gm, model, in_turn(1))
    inner = split.submod_0.get_submodule("0")
    assert inner is gm.get_submodule("0") is split.submod_2.get_submodule("0")
    assert len(list(split.parameters())) == 2
    assert gm.code == before


def test_a_buffer_that_is_not_saved_stays_so() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("saved", torch.ones(3))
            self.register_buffer("loose", torch.ones(3), persistent=False)

        def forward(self, x: AnyValue) -> AnyValue:
            return x.neg() * self.loose + self.saved

    split = split_module(fx.symbolic_trace(Model()), Model(), in_turn(1))
    assert [*split.state_dict()] == ["saved"]
    assert [name for name, _ in split.named_buffers()] == ["loose", "saved"]


def test_nothing_to_cut() -> None:
    gm = fx.symbolic_trace(lambda x: (x, [x]))
    assert list(split_module(gm, gm, in_turn(1)).children()) == []
    assert split_module(gm, gm, in_turn(1))(3) == (3, [3])


def test_types_and_notes_go_along() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) + 1

    gm = fx.symbolic_trace(forward)
    for node in gm.graph.nodes:
        node.meta["from"] = node.name
    split: AnyValue = split_module(gm, gm, in_turn(1))
    found = {
        name: [(n.name, n.meta.get("from"), n.type) for n in part.graph.nodes]
        for name, part in split.named_children()
    }
    assert found == {
        "submod_0": [
            ("x", "x", "torch.Tensor"),
            ("relu", "relu", None),
            ("output", None, None),
        ],
        "submod_1": [
            ("relu", "relu", None),
            ("add", "add", None),
            ("output", None, None),
        ],
    }
    kept = {node.name: node.meta.get("from") for node in split.graph.nodes}
    assert kept["submod_0"] == "relu"
    assert kept["submod_1"] == "add"


# -- parts that need each other ----------------------------------------------


def test_the_order_of_first_calls_may_be_impossible() -> None:
    def forward(x: AnyValue) -> AnyValue:
        return x.relu() + x.neg()

    gm = fx.symbolic_trace(forward)
    parts = by_name({"neg": 1})
    with pytest.raises(RuntimeError, match="submod_0 needs submod_1: add uses"):
        split_module(gm, gm, parts, keep_original_order=True)
    x = torch.randn(3)
    torch.testing.assert_close(split_module(gm, gm, parts)(x), forward(x))


def read_write_read(x: AnyValue) -> AnyValue:
    y = x + 1
    before = y * 2
    y.add_(3)
    return before, y * 5


def test_a_cycle_through_an_effect_says_so() -> None:
    gm = fx.symbolic_trace(read_write_read)
    with pytest.raises(RuntimeError, match="may have an effect"):
        split_module(gm, gm, by_name({"add_": 1, "add": 2}))


def test_a_write_stays_before_a_read_through_a_users_function() -> None:
    graph = fx.Graph()
    made = graph.call_function(torch.add, (graph.placeholder("x"), 1))
    seen = graph.call_function(flat, (made,))
    graph.call_method("add_", (made, 3))
    graph.output(graph.call_function(torch.mul, (seen, 2)))
    gm = fx.GraphModule({}, graph)
    with pytest.raises(RuntimeError, match="mul must stay behind add_"):
        split_module(gm, gm, by_name({"add_": 1}))
    split = split_module(gm, gm, by_name({"add_": 1, "mul": 2}))
    assert split(torch.zeros(2)).tolist() == [8, 8]


def test_branches_that_write_into_their_own_memory_are_free() -> None:
    def forward(x: AnyValue) -> AnyValue:
        one, two = torch.add(x, 1), torch.sub(x, 1)
        one.relu_()
        two.neg_()
        one.exp_()
        return one + two

    gm = fx.symbolic_trace(forward)
    pairs = {(a.name, b.name) for a, b in kept_in_order(gm.graph)}
    assert pairs == {
        ("relu_", "exp_"),
        ("exp_", "add_1"),
        ("neg_", "add_1"),
    }
    parts = by_name({"sub": 1, "neg_": 1, "add_1": 2})
    x = torch.randn(3)
    torch.testing.assert_close(split_module(gm, gm, parts)(x), forward(x))


def mostly_alone(drawn: random.Random) -> Answer:
    """Each call has its own part, or now and then that of an earlier one.

    The fewer are joined, the fewer cycles there are, and the freer the order.
    """
    labels, joined = [0], drawn.choice((0.2, 0.5, 0.9))

    def answer(_: AnyValue) -> int:
        again = drawn.random() < joined
        labels.append(drawn.choice(labels) if again else len(labels))
        return labels[-1]

    return answer


@pytest.mark.parametrize("seed", range(4))
def test_any_program_in_any_parts(seed: int) -> None:
    drawn, cut = random.Random(seed), 0
    for _ in range(500):
        gm = fx.GraphModule({}, program(recipe_of(drawn)))
        try:
            split = split_module(gm, gm, mostly_alone(drawn))
        except RuntimeError as error:
            assert "cycle exists" in str(error)
            continue
        cut += 1
        x = torch.linspace(-1, 1, 4)
        torch.manual_seed(0)
        expected = gm(x)
        torch.manual_seed(0)
        found = split(x)
        torch.testing.assert_close(
            found, expected, rtol=0, atol=0, equal_nan=True, msg=gm.code
        )
        split.graph.lint()
    assert cut > 100


class Statistics(nn.Module):
    """A batch norm in training, and other ways to what it writes."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.other = nn.BatchNorm1d(2), nn.BatchNorm1d(2).eval()
        self.alone = nn.BatchNorm1d(2)
        mean = self.norm.running_mean = torch.zeros(2)
        self.other.running_mean = mean
        self.path, self.view = self.norm, mean.view(2)


@pytest.mark.parametrize(
    ("path", "ordered"),
    [
        ("norm.running_mean", True),
        ("path.running_mean", True),
        ("other.running_mean", True),
        ("view", True),
        ("other", True),
        ("alone.running_mean", False),
    ],
)
def test_who_shares_what_a_batch_norm_writes_stays_in_order(
    path: str, ordered: bool
) -> None:
    graph = fx.Graph()
    x = graph.placeholder("x", torch.Tensor)
    if path == "other":
        first = graph.call_module(path, (x,))
    else:
        first = graph.call_function(torch.neg, (graph.get_attr(path),))
    second = graph.call_module("norm", (x,))
    third = graph.call_function(torch.neg, (first,))
    graph.output((second, third))
    fx.GraphModule(Statistics(), graph)
    pairs = [*kept_in_order(graph)]
    assert ((first, second) in pairs) is ordered
    assert ((second, third) in pairs) is ordered
