"""Passes: fx.diff and structure_hash, beside a canonical form of graphs."""

from __future__ import annotations

import copy
import random
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
import torch.fx
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import fx
from fx.graph import Graph
from fx.node import Node
from fx.passes.graph_diff import Difference
from fx.passes.structure import structure_hash
from fx.passes.utils.call_order import kept_in_order
from fx.use_def.values import AnyValue
from tests.library.counted import calls
from tests.library.random_graphs import Recipe, build, recipes
from tests.process import printed
from tests.zoo import ZOO, Network

seeds = st.randoms(use_true_random=False)


def canonical(graph: Graph) -> str:
    """A pure graph without dead code, its nodes numbered from the output up.

    A numbered graph is written as a text, so that two are equal if and only
    if the texts are: an oracle that shares nothing with what is tested.
    """
    numbers: dict[Node, int] = {}
    lines: list[str] = []

    def visit(node: Node) -> str:
        if node not in numbers:
            numbers[node] = len(numbers)
            what = str(node.target) if node.op != "placeholder" else ""
            args = fx.map_arg(node.args, visit_as_text)
            lines.append(f"{numbers[node]} {node.op} {what} {args!r}")
        return f"%{numbers[node]}"

    def visit_as_text(node: Node) -> AnyValue:
        return visit(node)

    places = [visit(n) for n in graph.nodes if n.op == "placeholder"]
    return "\n".join([*places, visit(graph.output_node()), *lines])


def shuffled(graph: Graph, rng: random.Random) -> Graph:
    """A copy with other names, in a random order that changes nothing."""
    must: dict[Node, set[Node]] = {
        node: set(node.all_input_nodes) for node in graph.nodes
    }
    for first, second in kept_in_order(graph):
        must[second].add(first)
    places = [node for node in must if node.op == "placeholder"]
    for first, second in pairwise(places):
        must[second].add(first)
    output = graph.output_node()
    must[output] |= must.keys() - {output}
    new, copies = Graph(), dict[Node, Node]()
    while len(copies) < len(must):
        ready = [n for n in must if n not in copies and must[n] <= {*copies}]
        node = rng.choice(ready)
        name = f"n{rng.randrange(10**6)}"
        copy = new.create_node(
            node.op,
            name if node.op == "placeholder" else node.target,
            fx.map_arg(node.args, copies.__getitem__),
            fx.map_arg(node.kwargs, copies.__getitem__),
            name,
        )
        copies[node] = copy
    return new


def check_truth(a: Graph, b: Graph) -> Difference:
    """The difference; checks that it leaves out nothing.

    Nodes that are not removed are paired one to one with those that are not
    added, and pairs that are not said to differ are the same call on pairs.
    """
    found = fx.diff(a, b)
    assert [n for n in a.nodes if n not in found.pairs] == [*found.removed]
    partners = set(found.pairs.values())
    assert len(partners) == len(found.pairs)
    assert [n for n in b.nodes if n not in partners] == [*found.added]
    changed = {change.before for change in found.changed}
    for one, other in found.pairs.items():
        if one not in changed:
            assert one.op == other.op
            assert one.op == "placeholder" or one.target == other.target
            ours = one.args, dict(one.kwargs)
            assert (other.args, other.kwargs) == fx.map_arg(
                ours, lambda n: found.pairs.get(n, n)
            )
    assert str(found) and (bool(found) != (str(found) == "no difference"))
    return found


# -- equal -------------------------------------------------------------------


def with_effects(recipe: Recipe) -> Graph:
    """A graph with writes, random draws, constants, and keywords."""
    graph = Graph()
    values = [graph.placeholder(name) for name in "xy"]
    for op, one, other in recipe:
        a, b = values[-1 - one % min(len(values), 4)], values[other % 2]
        match op:
            case 0:
                node = graph.call_function(torch.relu, (a,))
            case 1:
                node = graph.call_method("add_", (a, b), {"alpha": other})
            case 2:
                node = graph.call_function(torch.add, (a,), {"other": b})
            case _:
                node = graph.call_function(torch.dropout, (a, 0.5, True))
        values.append(node)
    graph.output({"last": values[-1], "others": [*values[2:-1]]})
    return graph


@given(recipes, seeds, st.sampled_from([build, with_effects]))
def test_names_and_harmless_order_do_not_count(
    recipe: Recipe, rng: random.Random, make: Callable[[Recipe], Graph]
) -> None:
    graph = make(recipe)
    other = shuffled(graph, rng)
    assert not check_truth(graph, other), str(fx.diff(graph, other))
    assert structure_hash(graph) == structure_hash(other)


@given(recipes, recipes)
def test_equal_exactly_if_the_canonical_forms_are(
    one: Recipe, other: Recipe
) -> None:
    a, b = build(one), build(other)
    equal = canonical(a) == canonical(b)
    assert bool(check_truth(a, b)) != equal
    assert (structure_hash(a) == structure_hash(b)) == equal


def test_who_shares_a_call_counts() -> None:
    """The same values, but one call of two is shared by others."""

    def graph(second: int) -> Graph:
        new = Graph()
        x = new.placeholder("x")
        twins = [new.call_function(torch.relu, (x,)) for _ in range(2)]
        users = zip(
            (torch.exp, torch.sin, torch.cos), (0, second, 1), strict=True
        )
        new.output([new.call_function(f, (twins[at],)) for f, at in users])
        return new

    assert not fx.diff(graph(0), graph(0))
    found = check_truth(graph(0), graph(1))
    assert str(found) == "~ sin: args[0] %relu -> %relu_1"
    assert structure_hash(graph(0)) != structure_hash(graph(1))


@pytest.mark.parametrize("network", ZOO, ids=lambda n: str(n.name))
def test_an_edit_of_a_network_is_all_that_is_found(network: Network) -> None:
    """One call inserted, one replaced: that, and who now uses them."""
    model = network.without_numbers()
    a, b = fx.symbolic_trace(model), fx.symbolic_trace(model)
    assert not fx.diff(a, b)
    assert structure_hash(a) == structure_hash(b)
    calls = [n for n in b.graph.nodes if n.op == "call_module" and n.users]
    first, second = calls[len(calls) // 3], calls[len(calls) * 2 // 3]
    users = {user.name for user in first.users}
    with b.graph.inserting_after(first):
        new = b.graph.call_function(torch.sigmoid, (first,))
    first.replace_all_uses_with(new, lambda user: user is not new)
    b.add_submodule("other", nn.Softplus())
    second.target = "other"
    found = check_truth(a.graph, b.graph)
    assert (found.removed, found.added) == ((), (new,))
    names = {change.before.name for change in found.changed}
    assert names == users | {second.name}
    assert structure_hash(a) != structure_hash(b)


# -- single edits ------------------------------------------------------------


@given(recipes, seeds)
def test_each_single_edit_is_found_and_named(
    recipe: Recipe, rng: random.Random
) -> None:
    graph = build(recipe)
    names: dict[Node, Node] = {}
    other = Graph()
    other.output(other.graph_copy(graph, names))
    node = rng.choice([n for n in graph.nodes if n.op == "call_function"])
    copy = names[node]
    kind = rng.choice(["target", "constant", "insert", "bypass"])
    match kind:
        case "target":
            copy.target = torch.atan
        case "constant":
            copy.kwargs = {"out": None}
        case "insert":
            with other.inserting_after(copy):
                new = other.call_function(torch.atan, (copy,))
            copy.replace_all_uses_with(new, lambda user: user is not new)
        case "bypass":
            copy.replace_all_uses_with(copy.all_input_nodes[0])
            other.erase_node(copy)
    found = check_truth(graph, other)
    assert structure_hash(graph) != structure_hash(other)
    changed = {change.before: change.after for change in found.changed}
    if kind == "insert":
        assert [n.target for n in found.added] == [torch.atan]
    elif kind == "bypass":
        assert len(found.removed) == 1
        assert found.removed[0].target is node.target
    elif kind == "constant":
        assert any("out None is new" in str(c) for c in found.changed)
    else:
        assert found.added == (copy,) or changed[node] is copy


def traced(f: AnyValue) -> fx.GraphModule:
    return fx.symbolic_trace(f)


def test_what_is_printed() -> None:
    def before(x, y):  # type: ignore[no-untyped-def]
        a = torch.relu(x + 1)
        return torch.cat([a.exp(), y], dim=0)

    def after(x, y):  # type: ignore[no-untyped-def]
        a = torch.tanh(x + 2)
        return torch.cat([y, a.exp()], dim=1).neg()

    assert str(fx.diff(traced(before), traced(after))).splitlines() == [
        "+ %neg : [num_users=1] = call_method[target=neg]"
        "(args = (%cat,), kwargs = {})",
        "~ add: args[1] 1 -> 2",
        "~ relu -> tanh: call_function torch.relu -> call_function torch.tanh",
        "~ cat: args[0] [%exp, %y] -> [%y, %exp]",
        "~ cat: dim 0 -> 1",
        "~ output: args[0] %cat -> %neg",
    ]
    assert str(fx.diff(traced(before), traced(before))) == "no difference"


def test_no_two_nodes_become_the_same_one() -> None:
    def two(x, y):  # type: ignore[no-untyped-def]
        (y + x) + y
        return x, y

    def one(x, y):  # type: ignore[no-untyped-def]
        return y + y, y

    # The sum of both graphs is a user of y, at one place and at both.
    assert str(fx.diff(traced(two), traced(one))).splitlines() == [
        "- %add_1 : [num_users=0] = call_function[target=operator.add]"
        "(args = (%add, %y), kwargs = {})",
        "~ add: args[1] %x -> %y",
        "~ output: args[0] (%x, %y) -> (%add, %y)",
    ]


def test_a_write_that_moves_is_found() -> None:
    def early(x):  # type: ignore[no-untyped-def]
        y = x + 1
        y.add_(2)
        return y, y * 3

    a, b = traced(early), traced(early)
    nodes = {node.name: node for node in b.graph.nodes}
    nodes["mul"].append(nodes["add_"])
    found = fx.diff(a, b)
    assert str(found) == "~ mul: moved in front of add_"
    assert structure_hash(a) != structure_hash(b)


def test_reads_between_two_writes_may_change_places() -> None:
    def forward(x):  # type: ignore[no-untyped-def]
        y = x + 1
        reads = y * 2, y.exp(), y.sin()
        y.add_(1)
        return *reads, y

    a, b = traced(forward), traced(forward)
    nodes = {node.name: node for node in b.graph.nodes}
    nodes["sin"].append(nodes["mul"])
    assert not fx.diff(a, b)
    assert structure_hash(a) == structure_hash(b)
    nodes["add_"].append(nodes["mul"])
    assert fx.diff(a, b)
    assert structure_hash(a) != structure_hash(b)


def test_parameters_count_by_place_stars_and_default() -> None:
    def f(x, y=1, *rest):  # type: ignore[no-untyped-def]
        return x

    def renamed(a, b=1, *more):  # type: ignore[no-untyped-def]
        return a

    def swapped(a, b=1, *more):  # type: ignore[no-untyped-def]
        return b

    def default(x, y=2, *rest):  # type: ignore[no-untyped-def]
        return x

    def starred(x, y=1, **rest):  # type: ignore[no-untyped-def]
        return x

    assert not fx.diff(traced(f), traced(renamed))
    for other in (swapped, default, starred):
        assert fx.diff(traced(f), traced(other))
        assert structure_hash(traced(f)) != structure_hash(traced(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (0.0, -0.0),
        ((1,), [1]),
        (slice(1), slice(2)),
        ({"a": 1}, {"b": 1}),
        (torch.float32, torch.float64),
        (torch.ones(2), torch.ones(3)),
    ],
    ids=str,
)
def test_constants_that_print_or_compare_alike(
    one: AnyValue, other: AnyValue
) -> None:
    def graph(value: AnyValue) -> Graph:
        new = Graph()
        new.output(new.call_function(torch.add, (value,)))
        return new

    assert fx.diff(graph(one), graph(other))
    assert not fx.diff(graph(one), graph(one))
    assert structure_hash(graph(one)) != structure_hash(graph(other))


def test_functions_of_one_name_are_told_apart() -> None:
    def make() -> AnyValue:
        def inner(x: AnyValue) -> AnyValue:
            return x

        return inner

    first, second = make(), make()
    graphs = []
    for function in (first, first, second):
        graph = Graph()
        graph.output(graph.call_function(function, (graph.placeholder("x"),)))
        graphs.append(graph)
    assert not fx.diff(graphs[0], graphs[1])
    assert fx.diff(graphs[0], graphs[2])


def test_modules_count_by_class_settings_and_graph() -> None:
    def module(*layers: nn.Module) -> fx.GraphModule:
        return fx.symbolic_trace(nn.Sequential(*layers))

    one = module(nn.Linear(2, 3), nn.ReLU())
    assert not fx.diff(one, module(nn.Linear(2, 3), nn.ReLU()))
    for other in (
        module(nn.Linear(2, 4), nn.ReLU()),
        module(nn.Linear(2, 3), nn.Tanh()),
    ):
        assert fx.diff(one, other)
        assert not fx.diff(one.graph, other), "graphs alone have no modules"
        assert structure_hash(one) != structure_hash(other)
    child = traced(lambda x: torch.relu(x))
    another = traced(lambda x: torch.tanh(x))
    root = nn.Sequential(child)
    graph = Graph()
    graph.output(graph.call_module("0", (graph.placeholder("x"),)))
    assert fx.diff(
        fx.GraphModule(root, graph),
        fx.GraphModule(nn.Sequential(another), graph),
    )


def test_how_inputs_are_nested_counts() -> None:
    def traced(forward: AnyValue, *keys: str) -> fx.GraphModule:
        nested = {"q": dict.fromkeys(keys, fx.PH)}
        return fx.symbolic_trace(forward, concrete_args=nested)

    one = traced(lambda q: {"r": q["a"] - q["b"]}, "a", "b")
    others = (
        traced(lambda q: {"r": q["b"] - q["a"]}, "b", "a"),
        traced(lambda q: [q["a"] - q["b"]], "a", "b"),
        fx.symbolic_trace(lambda a, b: a - b),
    )
    again = traced(lambda q: {"r": q["a"] - q["b"]}, "a", "b")
    for _ in range(2):
        nested: AnyValue = defaultdict(lambda: 0)
        nested["a"] = fx.PH
        made = fx.symbolic_trace(lambda d: d["a"] + 1, {"d": nested})
        assert not fx.diff(made, copy.deepcopy(made))
    assert not fx.diff(one, again)
    assert structure_hash(one) == structure_hash(again)
    for other in others:
        assert fx.diff(one, other)
        assert structure_hash(one) != structure_hash(other)


def test_the_hash_is_the_same_in_every_process() -> None:
    program = (
        "import torch, fx\n"
        "from fx.passes.structure import structure_hash as h\n"
        "f = lambda x: torch.cat([x.add(1.5, alpha=2), {x: 1} and x], dim=0)\n"
        "print(h(fx.symbolic_trace(f)))"
    )
    texts = {
        printed("-c", program, env={"PYTHONHASHSEED": seed})
        for seed in ("1", "2")
    }
    assert len(texts) == 1 and len(texts.pop().strip()) == 32


def test_graphs_of_torch_are_named() -> None:
    theirs: AnyValue = torch.fx.symbolic_trace(lambda x: x + 1)
    ours = fx.from_torch(theirs)
    assert not fx.diff(ours, fx.from_torch(theirs))
    for pair in ((theirs, ours), (ours, theirs.graph)):
        with pytest.raises(TypeError, match="of torch"):
            fx.diff(*pair)


# -- size --------------------------------------------------------------------


def calls_for(size: int, edit: Callable[[int, int], bool]) -> int:
    """How many Python calls the difference of two chains takes."""

    def chain(edited: bool) -> Graph:
        graph = Graph()
        value = graph.placeholder("x")
        for i in range(size):
            target = torch.neg if edited and edit(i, size) else torch.relu
            value = graph.call_function(target, (value,))
        graph.output(value)
        return graph

    a, b = chain(False), chain(True)
    found: list[AnyValue] = []
    count = calls(lambda: found.append(fx.diff(a, b)), "call", "c_call")
    assert bool(found[0]) == any(edit(i, size) for i in range(size))
    return count


@pytest.mark.parametrize(
    "edit",
    [
        lambda i, n: False,
        lambda i, n: i == n // 2,
        lambda i, n: i % 7 == 0,
        lambda i, n: True,
    ],
    ids=["none", "one", "many", "all"],
)
def test_the_difference_takes_linear_time(
    edit: Callable[[int, int], bool],
) -> None:
    assert calls_for(4_000, edit) < 8.3 * calls_for(500, edit)


def test_equal_calls_in_great_number() -> None:
    """Ten thousand users of a node, and as many equal calls."""
    graph = Graph()
    x = graph.placeholder("x")
    graph.output([graph.call_function(torch.relu, (x,)) for _ in range(10_000)])
    other = Graph()
    y = other.placeholder("y")
    relus = [other.call_function(torch.relu, (y,)) for _ in range(10_000)]
    other.output(relus[::-1])
    assert not fx.diff(graph, other)
    relus[5].target = torch.neg
    found = fx.diff(graph, other)
    assert [change.after for change in found.changed] == [relus[5]]
