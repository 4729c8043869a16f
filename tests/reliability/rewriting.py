"""Programs in which a pattern is replaced by what means the same.

The pattern is a piece of the program, and its replacement the same piece, or
an equivalent one: so the whole program must compute what it did.  That is
decided by a loop over the nodes of the program as it was.  Half of the
programs write to their values; there the order of reads and writes is to be
respected.  torch.fx rewrites the same programs, and cannot be asked to.

Some patterns and replacements are graphs of torch.fx, which are only read.
Some replacements leave out what the pattern writes into its inputs: they may be
made only where nobody reads that.

In every fourth program a leaf function is called in all the ways that Python
has, and the pattern is that function itself; none of its calls may be left. In
every eighth the program is a network, and a layer is found by its class.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, TypeAlias

import torch

import fx
from tests.reliability.part import Outcome, Part, Plant

Tensor: TypeAlias = torch.Tensor
Lib: TypeAlias = Any
Graph: TypeAlias = Any
Node: TypeAlias = Any
AnyValue: TypeAlias = Any


def search(seed: int, cases: int) -> Iterator[Outcome]:
    """Random programs, and whether a rewrite changed what they compute."""
    rng = random.Random(seed)
    for number in range(cases):
        case = rng.randrange(10**9)
        play = leaf_difference if number % 4 == 3 else difference
        if number % 8 == 1:
            play = network_difference
        theirs = play(torch.fx, case)
        yield Outcome(f"seed {case}", play(fx, case), theirs)


def inputs() -> list[Tensor]:
    """Integers, so that results are exact whatever their order."""
    return [torch.arange(4).view(2, 2) - 1, 3 - torch.arange(4).view(2, 2)]


# -- programs ----------------------------------------------------------------


def random_graph(lib: Lib, rng: random.Random, *, writes: bool) -> Graph:
    """A program of two inputs, all of whose values are 2 by 2."""
    graph = lib.Graph()
    values = [graph.placeholder(name) for name in "xy"]
    for _ in range(rng.randrange(3, 10)):
        a, b = rng.choice(values[-3:]), rng.choice(values)
        kind = rng.randrange(10)
        make = write if writes and kind < 3 else view if kind < 5 else pure
        values.append(make(graph, rng, a, b))
    graph.output([rng.choice(values[2:]) for _ in range(rng.randrange(1, 4))])
    return graph


def pure(graph: Graph, rng: random.Random, a: Node, b: Node) -> Node:
    """A call that computes a value."""
    number = rng.choice((2, 3))
    both = [("input", a), ("other", b)]
    rng.shuffle(both)
    args, kwargs = rng.choice(
        (
            ((torch.add, (a, b)), {}),
            ((torch.relu, (a,)), {}),
            ((operator.mul, (a, number)), {}),
            ((operator.mul, (a, a)), {}),
            ((operator.sub, (a, number)), {}),
            ((operator.sub, (a, b)), {}),
            ((torch.sub, ()), dict(both)),
        )
    )
    return graph.call_function(*args, kwargs)


def view(graph: Graph, rng: random.Random, a: Node, b: Node) -> Node:
    """A value that may share memory with an earlier one, or a copy."""
    name = rng.choice(("t", "clone", "detach", "neg"))
    return graph.call_method(name, (a,))


def write(graph: Graph, rng: random.Random, a: Node, b: Node) -> Node:
    """A call that writes to a value."""
    name, *rest = rng.choice(
        (("add_", 2), ("mul_", 2), ("relu_",), ("add_", b), ("copy_", b))
    )
    return graph.call_method(name, (a, *rest))


def evaluated(lib: Lib, graph: Graph) -> list[Tensor]:
    """The results of a program, and its inputs afterwards."""
    given = inputs()
    rest = iter(given)
    known: dict[Node, AnyValue] = {}
    for node in graph.nodes:
        args, kwargs = lib.node.map_arg(
            (node.args, dict(node.kwargs)), known.__getitem__
        )
        match node.op:
            case "placeholder":
                known[node] = next(rest)
            case "call_method":
                known[node] = getattr(args[0], node.target)(*args[1:], **kwargs)
            case "call_function":
                known[node] = node.target(*args, **kwargs)
            case _:
                return [*args[0], *given]
    raise AssertionError("a program has an output")


# -- patterns and replacements -----------------------------------------------


def random_pattern(
    lib: Lib, rng: random.Random, graph: Graph, *, literal: int | None
) -> Graph:
    """A piece of a program, perhaps with a literal instead of its own."""
    calls = [node for node in graph.nodes if node.op.startswith("call")]
    last = rng.choice(calls)
    piece = {last}
    for _ in range(rng.randrange(3)):
        more = [
            one
            for node in piece
            for one in node.all_input_nodes
            if one in calls and one not in piece
        ]
        piece.update(rng.sample(more, min(len(more), 1)))
    pattern = lib.Graph()
    known: dict[Node, Node] = {}
    used = {one for node in piece for one in node.all_input_nodes}
    for node in graph.nodes:
        if node in used - piece:
            known[node] = pattern.placeholder(f"a{len(known)}")
    for node in graph.nodes:
        if node in piece:
            known[node] = new = pattern.node_copy(node, known.__getitem__)
            if literal is not None:
                new.args = tuple(
                    literal if isinstance(one, int) else one for one in new.args
                )
            if len(node.kwargs) > 1 and rng.random() < 0.5:
                new.kwargs = dict(reversed([*new.kwargs.items()]))
    every = rng.random() < 0.8
    pattern.output(
        [
            known[node]
            for node in graph.nodes
            if node is last
            or (node in piece and every and not piece.issuperset(node.users))
        ]
    )
    return pattern


def equivalent(
    lib: Lib, rng: random.Random, pattern: Graph, found: Mapping[Node, AnyValue]
) -> Graph:
    """The pattern with the literals of a match, perhaps in other words."""
    graph = lib.Graph()
    known: dict[Node, Node] = {}
    for node in pattern.nodes:
        partner: AnyValue = found.get(node)
        args = [*node.args]
        if node.op.startswith("call") and not node.kwargs:
            for place, one in enumerate(partner.args):
                if isinstance(args[place], int) and isinstance(one, int):
                    args[place] = one
        new = lib.node.map_arg(args, known.get)
        if node.target is torch.add and rng.random() < 0.5:
            known[node] = graph.call_function(torch.add, tuple(reversed(new)))
        elif node.target is torch.relu and rng.random() < 0.5:
            copy = graph.call_method("clone", tuple(new))
            known[node] = graph.call_method("relu_", (copy,))
        elif node.target == "mul_" and rng.random() < 0.5:
            product = graph.call_function(operator.mul, tuple(new))
            known[node] = graph.call_method("copy_", (new[0], product))
        else:
            kwargs = lib.node.map_arg(dict(node.kwargs), known.get)
            known[node] = graph.create_node(
                node.op, node.target, tuple(new), kwargs
            )
    return graph


def without_writes(graph: Graph, given: list[AnyValue]) -> None:
    """Let a replacement compute with copies of the tensors it is given."""
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    first = next(node for node in graph.nodes if node not in inputs)
    for value, one in zip(inputs, given, strict=True):
        if isinstance(one, int):
            continue
        with graph.inserting_before(first):
            copy = graph.call_method("clone", (value,))
        value.replace_all_uses_with(copy, lambda user, copy=copy: user != copy)


# -- one case ----------------------------------------------------------------


def difference(lib: Lib, seed: int) -> str:
    """What a rewrite has changed about a program; "" if nothing."""
    rng = random.Random(seed)
    writes = rng.random() < 0.7
    graph = random_graph(lib, rng, writes=writes)
    try:
        before = evaluated(lib, graph)
    except RuntimeError:  # it writes to what it reads
        return ""
    literal = rng.choice((None, None, 7))
    pattern = random_pattern(lib, rng, graph, literal=literal)
    options = {}
    if lib is fx:
        options["respect_mutations"] = writes or rng.random() < 0.5
        options["normalize"] = rng.random() < 0.3
    gm = lib.GraphModule(torch.nn.Module(), graph)
    code, sought = gm.code, str(pattern)
    is_torchs = lib is fx and rng.random() < 0.2
    given = fx.to_torch(pattern) if is_torchs else pattern

    def made(match: AnyValue, _graph: Graph, pattern: Graph) -> Graph:
        new = equivalent(lib, rng, pattern, match.nodes_map)
        if rng.random() < 0.3:
            without_writes(new, match.placeholder_nodes)
        return fx.to_torch(new) if is_torchs else new

    rewriter = import_module(f"{lib.__name__}.subgraph_rewriter")
    try:
        rewriter.replace_pattern_with_filters(
            gm,
            given,
            replacement_callback=made,
            ignore_literals=literal is not None,
            **options,
        )
    except Exception as refused:  # the caller sees it
        return f"{refused!r}\n{sought}\n{code}" if lib is fx else ""
    both = f"\n{sought}\n{code}\n{gm.code}"
    try:
        gm.graph.lint()
        given = inputs()
        after = [*gm(*given), *given]
    except Exception as raised:  # a wrong program may raise anything
        return f"{raised!r}{both}"
    if not all(map(torch.equal, before, after)):
        return f"{before} became {after}{both}"
    return ""


# -- leaf functions ----------------------------------------------------------


@fx.wrap
def shifted(x: AnyValue, by: AnyValue = 2, *, twice: AnyValue = 1) -> AnyValue:
    """A leaf function for fx."""
    return (x + by) * twice


torch.fx.wrap("shifted")


def call_of_leaf(rng: random.Random, x: AnyValue, y: AnyValue) -> AnyValue:
    """One of the ways to call it."""
    by = rng.choice((2, 3, y))
    if by is x:  # an input that is given twice stands for two values
        by = 2
    kwargs = {} if rng.random() < 0.5 else {"twice": rng.choice((1, 4))}
    match rng.randrange(4):
        case 0:
            return shifted(x, **kwargs)
        case 1:
            return shifted(x, by, **kwargs)
        case 2:
            return shifted(x, by=by, **kwargs)
        case _:
            return shifted(**kwargs, by=by, x=x)


def leaf_difference(lib: Lib, seed: int) -> str:
    """What is wrong after a leaf function was replaced; "" if nothing."""
    rng = random.Random(seed)

    def forward(x: AnyValue, y: AnyValue) -> AnyValue:
        values = [x, y, torch.neg(x)]
        for _ in range(rng.randrange(1, 5)):
            value, other = rng.choice(values[-3:]), rng.choice(values)
            values.append(call_of_leaf(rng, value, other))
        return values[-1] + values[-2]

    gm = lib.symbolic_trace(forward)
    before, code = gm(*inputs()), gm.code
    rewriter = import_module(f"{lib.__name__}.subgraph_rewriter")
    try:
        rewriter.replace_pattern(gm, shifted, unshifted)
        after = gm(*inputs())
    except Exception as refused:
        return f"{refused!r}\n{code}"
    left = [node for node in gm.graph.nodes if node.target is shifted]
    if left or not torch.equal(before, after):
        return f"{left} left, {before} became {after}\n{code}\n{gm.code}"
    return ""


def unshifted(x: AnyValue, by: AnyValue, twice: AnyValue) -> AnyValue:
    """What the leaf function does."""
    return torch.mul(torch.add(x, by), twice)


# -- networks ----------------------------------------------------------------


class Layered(torch.nn.Module):
    """Layers of integers, some of which are called more than once."""

    def __init__(self, seed: int, *, deep: bool) -> None:
        """Make the layers, and choose which are called."""
        super().__init__()
        rng = random.Random(seed)
        self.one, self.two = layer(rng), layer(rng)
        self.inner = torch.nn.Sequential(layer(rng), torch.nn.ReLU())
        self.calls = [rng.randrange(3) for _ in range(4 if deep else 1)]

    def forward(self, x: AnyValue) -> AnyValue:
        """Call them, one after the other."""
        for number in self.calls:
            called = (self.one, self.two, self.inner)[number]
            x = torch.relu(called(x)) - 1
        return x


def layer(rng: random.Random) -> torch.nn.Linear:
    """A layer of integers."""
    made = torch.nn.Linear(2, 2)
    with torch.no_grad():
        for one in made.parameters():
            one.copy_(torch.tensor([rng.randrange(-2, 3) for _ in range(2)]))
    return made


class Layer(torch.nn.Module):
    """A pattern or replacement: one layer, called or computed."""

    def __init__(self, rng: random.Random, path: str, way: int) -> None:
        """Put a layer at a path."""
        super().__init__()
        holder: torch.nn.Module = self
        *above, self.name = path.split(".")
        for name in above:
            holder.add_module(name, torch.nn.Module())
            holder = holder.get_submodule(name)
        holder.add_module(self.name, layer(rng))
        self.path, self.way = path, way

    def forward(self, x: AnyValue) -> AnyValue:
        """Call it, or compute what it computes."""
        held: AnyValue = self.get_submodule(self.path)
        if self.way == 0:
            return torch.relu(held(x))
        if self.way == 1:
            return held(x).clamp(min=0)
        return torch.relu(x @ held.weight.t() + held.bias)


def network_difference(lib: Lib, seed: int) -> str:
    """What is wrong after layers were found by their class; "" if nothing."""
    rng = random.Random(seed)
    net = Layered(seed, deep=rng.random() < 0.9)
    gm = lib.symbolic_trace(net)
    path = rng.choice(("one", "lin", "inner.0", "a.b"))
    new: AnyValue = Layer(rng, path, rng.randrange(1, 3))
    if rng.random() < 0.5:
        new = lib.symbolic_trace(new)
    options = {"modules_by_class": True} if lib is fx else {}
    rewriter = import_module(f"{lib.__name__}.subgraph_rewriter")
    given, code = inputs()[0].float(), gm.code
    try:
        rewriter.replace_pattern(gm, Layer(rng, path, 0), new, **options)
        after = gm(given)
    except Exception as refused:
        return f"{refused!r}\n{code}"
    left = sum(node.target is torch.relu for node in gm.graph.nodes)
    before = net(given)
    if not torch.equal(before, after):
        return f"{before} became {after}, {left} left\n{code}\n{gm.code}"
    return ""


MUTATIONS = "fx/extra/matching/respecting.py"
RESPECTING = "fx/extra/matching/respecting.py"
MATCHER = "fx/passes/utils/matcher_utils.py"

PART = Part(
    name="rewriting",
    compares="results and inputs, before and after equivalent replacements",
    run=search,
    share=500,
    long=200_000,
    plants=(
        Plant(
            MUTATIONS,
            "if writes and calls:",
            "if False:",
            "a match's own write is moved behind a read",
        ),
        Plant(
            MUTATIONS,
            "    if effects:\n",
            "    if False:\n",
            "a read of the match is moved behind a write",
        ),
        Plant(
            RESPECTING,
            "rewrite.stay = end < min(users, default=end.next)",
            "rewrite.stay = False",
            "new nodes are moved to their first user",
        ),
        Plant(
            RESPECTING,
            '            if seen:\n                return f"what',
            '            if False:\n                return f"what',
            "a match's write is lost, and is read later",
        ),
        Plant(
            "fx/extra/matching/call_forms.py",
            "if not self.modules_by_class:\n            return None",
            "if self.modules_by_class:\n            return None",
            "a replacement calls a new module in place of the matched one",
        ),
        Plant(
            MATCHER,
            "if known is found or equal_constants(known, found):",
            "if self.matcher.ignore_literals or equal_constants(known, found):",
            "with ignore_literals x * 2 is a * a",
        ),
        Plant(
            MATCHER,
            " and not holds_node((sought, found)):",
            ":",
            "with ignore_literals a literal is a value",
        ),
        Plant(
            MATCHER,
            "if len(self.pattern.returning) > 1 and not is_convex(inside):",
            "if False:",
            "a value leaves the match and comes back",
        ),
        Plant(
            "fx/rewriting/patterns.py",
            "is_alike = [*named] == [*others]",
            "is_alike = {*named} == {*others}",
            "keywords are paired by their order",
        ),
        Plant(
            "fx/rewriting/templates.py",
            "if is_leaf_function(function):",
            "if False:",
            "a leaf function that is the pattern is traced through",
        ),
        Plant(
            "fx/passes/utils/matcher_utils.py",
            "for kind, convert in CONVERTERS.items():",
            "for kind, convert in CONVERTERS and ():",
            "graphs of torch.fx are refused as patterns",
        ),
        Plant(
            "fx/rewriting/patterns.py",
            "    sought.apply_defaults()\n    found.apply_defaults()\n",
            "",
            "a leaf function's default is not one of its arguments",
        ),
    ),
)
