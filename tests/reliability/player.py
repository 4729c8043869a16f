"""Random programs, edited at random, in whichever library one says."""

from __future__ import annotations

import copy
import operator
import pickle
import random
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import torch

import fx
from tests.library.generated import torch_text
from tests.reliability import plain

Lib: TypeAlias = Any
"""`torch.fx`, `fx`, or `plain`, or something of one of them."""

AnyValue: TypeAlias = Any
Tensor: TypeAlias = torch.Tensor
Step: TypeAlias = Callable[["Player", Lib], object]


def total(parts: list[Tensor], *, more: dict[str, AnyValue]) -> Tensor:
    """A function with nodes inside of containers."""
    result = sum(parts, more["first"])
    for part in more["rest"]:
        result = result + part
    return result


class Root(torch.nn.Module):
    """What get_attr and call_module nodes name."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.arange(9.0).view(3, 3) - 4)
        self.act = torch.nn.Hardtanh(-3.0, 5.0)
        self.inner = torch.nn.Module()
        self.inner.act = torch.nn.ReLU()


def shown(value: AnyValue) -> str:
    """A value, with nodes by their names."""
    match value:
        case list() | tuple():
            brackets = "[]" if isinstance(value, list) else "()"
            return ", ".join(map(shown, value)).join(brackets)
        case dict():
            items = [f"{key}: {shown(item)}" for key, item in value.items()]
            return ", ".join(items).join("{}")
    return f"%{value.name}" if hasattr(value, "all_input_nodes") else str(value)


SOUGHT: Final = (
    ("call_function", torch.relu),
    ("call_function", torch.neg),
    ("call_method", "relu"),
    ("call_module", "act"),
    ("call_module", None),
    ("placeholder", None),
    ("output", None),
)
"""Opcodes and targets that are looked for after each edit."""


class Player:
    """Plays one script on the graph of one library.

    The choices depend on the seed and on places in the graph alone, so they
    are the same for all libraries as long as the graphs are.
    """

    def __init__(self, lib: Lib, seed: int) -> None:
        self.lib = lib
        self.rng = random.Random(seed)
        self.root = Root()
        self.graph = lib.Graph(owning_module=self.root)
        for name in ("x", "y"):
            self.graph.placeholder(name)
        for _ in range(self.rng.randrange(3, 15)):
            self.call(list(self.graph.nodes))
        self.graph.output(tuple(self.some(list(self.graph.nodes), 2)))

    def some(self, pool: list[Lib], count: int) -> list[Lib]:
        """Nodes of `pool`, more likely late ones."""
        late = pool[-4:] if self.rng.random() < 0.6 else pool
        return [self.rng.choice(late) for _ in range(count)]

    def inner(self) -> list[Lib]:
        """The nodes that are neither parameters nor the output."""
        skip = ("placeholder", "output")
        return [n for n in self.graph.nodes if n.op not in skip]

    def call(self, pool: list[Lib]) -> Lib:
        """A new node at the insert point that uses some of `pool`."""
        g, (a, b, c) = self.graph, self.some(pool, 3)
        match self.rng.randrange(11):
            case 0 | 1:
                op = self.rng.choice((operator.add, operator.sub, torch.add))
                return g.call_function(op, (a, b))
            case 2:
                return g.call_function(torch.relu, (a,))
            case 3:
                return g.call_method("clamp", (a,), {"min": -9, "max": 9.5})
            case 4:
                return g.call_method("add", (a, b), {"alpha": 2})
            case 5:
                return g.get_attr("table")
            case 6:
                path = self.rng.choice(("act", "inner.act"))
                return g.call_module(path, (a,))
            case 7:
                more = {"first": b, "rest": (c, a)}
                return g.call_function(total, ([a, b],), {"more": more})
            case 8:
                index = (slice(None, None, 1), self.rng.choice(([0, 2, 1], 1)))
                return g.call_function(operator.getitem, (a, index))
            case 9:
                name = self.rng.choice(("add", "x_1", "out_7", "table", "y"))
                return g.create_node("call_function", torch.neg, (a,), {}, name)
        return g.call_function(torch.maximum, (a, b))

    # -- edits -------------------------------------------------------------

    def insert(self) -> None:
        nodes = list(self.graph.nodes)
        place = self.rng.randrange(2, len(nodes))
        if self.rng.random() < 0.5:
            with self.graph.inserting_before(nodes[place]):
                first = self.call(nodes[:place])
                self.call([*nodes[:place], first])
        else:
            with self.graph.inserting_after(nodes[place - 1]):
                self.call(nodes[:place])

    def erase(self) -> None:
        self.graph.erase_node(self.rng.choice(self.inner()))

    def replace(self) -> None:
        old, new = self.rng.sample(list(self.graph.nodes)[:-1], 2)
        old.replace_all_uses_with(new, lambda user: user is not new)

    def replace_one(self) -> None:
        user = self.rng.choice(self.inner())
        (new,) = self.some(list(self.graph.nodes)[:-1], 1)
        for old in user.all_input_nodes[:1]:
            user.replace_input_with(old, new)

    def assign(self) -> None:
        nodes = list(self.graph.nodes)
        user = self.rng.choice(self.inner())
        before = nodes[: nodes.index(user)]
        match self.rng.randrange(3):
            case 0 if user.args:
                user.update_arg(0, self.rng.choice(before))
            case 1 if "more" in user.kwargs:
                a, b = self.some(before, 2)
                user.update_kwarg("more", {"first": a, "rest": [b]})
            case _:
                user.args = tuple(reversed(user.args))

    def move(self) -> None:
        place, node = self.rng.choice(self.inner()), self.inner()[-1]
        if self.rng.random() < 0.3:
            node = self.rng.choice(self.inner())
        if self.rng.random() < 0.5:
            place.prepend(node)
        else:
            place.append(node)

    def crowd(self) -> None:
        """Take turns at one place, until no key is free there."""
        inner = self.inner()
        place, turns = self.rng.choice(inner), inner[:2]
        for _ in range(40):
            for node in turns:
                place.prepend(node)

    def copy_node(self) -> None:
        node = self.rng.choice(self.inner())
        with self.graph.inserting_after(node):
            new = self.graph.node_copy(node, lambda n: n)
        new.meta["copied"] = True

    def rename(self) -> None:
        node = self.rng.choice(self.inner())
        node._rename(self.rng.choice(("add", "relu_1", "fresh", "x")))

    def retarget(self) -> None:
        """Let a node call something else, by a function or by a method."""
        unary = (torch.relu, torch.neg, "relu", "neg")
        nodes = [n for n in self.graph.nodes if n.target in unary]
        node, target = self.rng.choice(nodes), self.rng.choice(unary)
        op = "call_method" if isinstance(target, str) else "call_function"
        node.op = op
        node.target = target

    def sweep(self) -> None:
        self.graph.eliminate_dead_code()

    def walk(self) -> None:
        """Edits in the middle of a loop."""
        for node in self.graph.nodes:
            if node.op == "call_function" and self.rng.random() < 0.3:
                with self.graph.inserting_before(node):
                    new = self.graph.node_copy(node, lambda n: n)
                node.replace_all_uses_with(new)
                self.graph.erase_node(node)

    def copy_graph(self) -> None:
        new = self.lib.Graph(self.root)
        value_of: dict[Lib, Lib] = {}
        new.output(new.graph_copy(self.graph, value_of))
        self.graph = new

    def deep_copy(self) -> None:
        self.graph = copy.deepcopy(self.graph)
        self.graph.owning_module = self.root

    def store(self) -> None:
        if self.lib is fx:  # torch's table of names is not its own after this
            self.graph = pickle.loads(pickle.dumps(self.graph))
            self.graph.owning_module = self.root

    EDITS = (
        *[insert] * 4,
        *[replace, erase, assign, move] * 2,
        replace_one,
        crowd,
        copy_node,
        rename,
        *[retarget] * 2,
        sweep,
        walk,
        copy_graph,
        deep_copy,
        store,
    )

    def edit(self) -> tuple[str, str]:
        """Make an edit; its name, and what it raised."""
        step = self.rng.choice(self.EDITS)
        try:
            step(self)
        except (RuntimeError, IndexError, ValueError, KeyError) as error:
            return step.__name__, type(error).__name__
        return step.__name__, ""

    # -- what can be seen --------------------------------------------------

    def lint(self) -> str:
        """What the verifier raises."""
        try:
            self.graph.lint()
        except RuntimeError as error:
            return type(error).__name__
        return ""

    def nodes(self) -> list[str]:
        """The nodes in order, with all that they are called with."""
        return [
            f"{n.name} = {n.op} {n.target} {shown(n.args)} {shown(n.kwargs)}"
            for n in self.graph.nodes
        ]

    def uses(self) -> list[tuple[str, list[str], list[str]]]:
        """The edges, from both ends."""
        return [
            (
                node.name,
                [used.name for used in node.all_input_nodes],
                sorted(user.name for user in node.users),
            )
            for node in self.graph.nodes
        ]

    def sought(self) -> list[str]:
        """What finding by op and target gives, and each node's meta."""
        found = [
            node
            for op, target in SOUGHT
            for node in self.graph.find_nodes(op=op, target=target)
        ]
        copied = [n for n in self.graph.nodes if "copied" in n.meta]
        return [node.name for node in (*found, *copied)]

    def ordered(self) -> list[str]:
        """The nodes as comparing them sorts them."""
        backwards = list(self.graph.nodes)[::-1]
        if self.lib is not plain:
            backwards.sort()
        else:
            backwards.reverse()
        return [node.name for node in backwards]

    def code(self) -> str:
        return torch_text(self.graph.python_code("self"))

    def results(self, make: Callable[[Lib], AnyValue]) -> AnyValue:
        """What `make(module)` gives when it is called, or raises."""
        x = torch.arange(9.0).view(3, 3) % 5 - 2
        try:
            outputs = self._callable(make)(x, x.t())
            return [(out.shape, out.tolist()) for out in outputs]
        except (RuntimeError, IndexError, TypeError, AttributeError) as error:
            return type(error).__name__

    def _callable(
        self, make: Callable[[Lib], AnyValue]
    ) -> Callable[..., AnyValue]:
        if self.lib is plain:
            evaluate: Callable[..., AnyValue] = self.graph.evaluate
            return evaluate
        made: Callable[..., AnyValue] = make(
            self.lib.GraphModule(Root(), self.graph)
        )
        return made
