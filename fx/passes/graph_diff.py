"""Passes: whether two graphs are equal, and how they differ if not.

    print(fx.diff(before, after))

    - %bn1 : [num_users=1] = call_module[target=bn1](args = (%conv1,), ...
    ~ conv1: call_module conv1 torch.nn.modules.conv.Conv2d(...) -> ...
    ~ relu: args[0] %bn1 -> %conv1

The nodes of one graph are matched with nodes of the other along the edges
between them, so neither names nor positions count.  (A difference of texts
would be full of names that changed because a number was given away earlier.)
Then it is checked what is different between the two nodes of each pair; what
has no partner was removed or added.  The graphs are equal if that finds
nothing, so "equal" can be trusted whatever the matching does.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node
from ..use_def.text import format_arg
from ..use_def.values import Argument
from .structure import Structure

__all__ = ["Change", "Difference", "diff"]

Pairs: TypeAlias = Iterator[tuple[Node, Node]]
"""Nodes of the first graph, each with a node of the second."""


@dataclass(frozen=True)
class Change:
    """Two nodes that are in the same place and differ.

    Attributes:
        before: the node of the first graph.
        after: the node of the second graph.
        what: how they differ, a line for each difference.
    """

    before: Node
    after: Node
    what: tuple[str, ...]

    def __str__(self) -> str:
        """The names and the differences, a line for each."""
        one, other = self.before.name, self.after.name
        names = one if one == other else f"{one} -> {other}"
        return "\n".join(f"~ {names}: {line}" for line in self.what)


@dataclass(frozen=True)
class Difference:
    """How a graph differs from another one; false if they are equal.

    Attributes:
        pairs: node of the first graph -> the node of the second that it became.
        removed: the nodes that only the first graph has, in order.
        added: the nodes that only the second graph has, in order.
        changed: the pairs that differ, in the order of the second graph.
    """

    pairs: Mapping[Node, Node]
    removed: tuple[Node, ...]
    added: tuple[Node, ...]
    changed: tuple[Change, ...]

    def __bool__(self) -> bool:
        """Whether there is a difference."""
        return bool(self.removed or self.added or self.changed)

    def __str__(self) -> str:
        """A line for each difference, or "no difference"."""
        lines = [f"- {node.format_node()}" for node in self.removed]
        lines += [f"+ {node.format_node()}" for node in self.added]
        lines += map(str, self.changed)
        return "\n".join(lines) or "no difference"


def diff(a: Graph | GraphModule, b: Graph | GraphModule) -> Difference:
    """Compare two graphs, whatever the names and the order of their nodes.

    Equal are graphs whose nodes can be paired so that the two of each pair do
    the same with the same inputs.  Their order may differ where that changes
    nothing: not between writes and reads of the same memory, random draws,
    and calls of which nothing is known.  Types and `meta` do not count, and
    of a parameter of forward only its place, its default and its stars.

    Of two modules, submodules count by their class and by what their
    `extra_repr` says, which is neither the training mode nor hooks, and child
    graph modules by their graph; of graphs, only the paths.  Tensors count by
    dtype and shape.

    Calls that do not lead to the output and are equal in all respects, their
    users included, are paired in their order; only if such calls are wired to
    each other may equal graphs be told apart.

    In the test of a pass: `assert not fx.diff(found, expected)`.

    Args:
        a: a graph, or a module that has one.
        b: another one.

    Returns:
        The difference, which is false if the graphs are equal.  It need not be
        the smallest one, but turns `a` into `b`.

    Raises:
        TypeError: a graph is one of torch.fx.

    Cost: O(n log n) for n nodes and uses.
    """
    if not (isinstance(a, GraphModule) and isinstance(b, GraphModule)):
        a = a.graph if isinstance(a, GraphModule) else a
        b = b.graph if isinstance(b, GraphModule) else b
    one, other = Structure(a, _identity), Structure(b, _identity)
    matcher = _Matcher(one, other)
    matcher.match()
    return Difference(
        matcher.pairs,
        tuple(node for node in one.labels if node not in matcher.pairs),
        tuple(node for node in other.labels if node not in matcher.back),
        tuple(matcher.changes()),
    )


def _identity(value: object) -> str:
    """What tells an object from others of its kind, while both exist."""
    return f" at {id(value)}"


class _Matcher:
    """Pairs the nodes of two graphs.

    Attributes:
        pairs: node of the first graph -> node of the second.
        back: node of the second graph -> node of the first.
    """

    def __init__(self, a: Structure, b: Structure) -> None:
        self._a, self._b = a, b
        self.pairs: dict[Node, Node] = {}
        self.back: dict[Node, Node] = {}
        self._new: deque[tuple[Node, Node]] = deque()

    # -- matching ----------------------------------------------------------

    def match(self) -> None:
        """Pair the nodes, beginning with what is certain.

        First whole graphs, then what lies above the first edits, then what
        there is once; from there, neighbour by neighbour.  A common user says
        more than a common input, as a node has many users.  The steps are in
        order of certainty, because a wrong pair makes others wrong.
        """
        a, b = self._a, self._b
        ends = (side.graph.find_nodes(op="output") for side in (a, b))
        for pair in zip(*ends, strict=False):
            self._pair(*pair)
        above, other_above = a.above(), b.above()
        self._by_key(a.around(above), b.around(other_above))
        if len(self.pairs) == len(a.labels) == len(b.labels):
            return
        self._by_key(above, other_above)
        nearby, other_nearby = a.nearby(), b.nearby()
        self._by_key(nearby, other_nearby, most=1)
        self._by_key(a.labels, b.labels, most=1)
        self._spread(self._inputs_alike)
        self._spread(self._users_alike)
        self._by_key(nearby, other_nearby)
        self._spread(self._users_alike)
        self._by_key(a.labels, b.labels, evenly=False)
        self._by_key(a.targets(), b.targets(), most=1)
        self._spread(self._same_place)

    def _pair(self, one: Node, other: Node) -> None:
        """Pair two nodes, if both are free."""
        if one not in self.pairs and other not in self.back:
            self.pairs[one], self.back[other] = other, one
            self._new.append((one, other))

    def _by_key(
        self,
        keys: Mapping[Node, str],
        others: Mapping[Node, str],
        *,
        evenly: bool = True,
        most: float = math.inf,
    ) -> None:
        """Pair the free nodes that have the same key, in their order.

        Args:
            keys: the keys of the first graph's nodes.
            others: the keys of the second graph's nodes.
            evenly: leave keys alone that one graph has more often: it is not
                clear which node is without a partner.
            most: leave keys alone that there are more often.
        """
        groups: dict[str, tuple[list[Node], list[Node]]] = {}
        for node in self._a.graph.nodes:
            if node not in self.pairs:
                groups.setdefault(keys[node], ([], []))[0].append(node)
        for node in self._b.graph.nodes:
            if node not in self.back:
                groups.setdefault(others[node], ([], []))[1].append(node)
        for ours, theirs in groups.values():
            if len(ours) <= most and (len(ours) == len(theirs) or not evenly):
                for one, other in zip(ours, theirs, strict=evenly):
                    self._pair(one, other)

    def _spread(self, beside: Callable[[Node, Node], Pairs]) -> None:
        """Pair what is beside a pair, and beside that, and so on."""
        self._new.extend(self.pairs.items())
        while self._new:
            for one, other in beside(*self._new.popleft()):
                self._pair(one, other)

    def _inputs_alike(self, one: Node, other: Node) -> Pairs:
        """Inputs at the same place that are of the same kind."""
        for left, right in self._inputs(one, other):
            if self._a.labels[left] == self._b.labels[right]:
                yield left, right

    def _users_alike(self, one: Node, other: Node) -> Pairs:
        """Inputs, and users, that are of the same kind on both sides."""
        yield from self._inputs_alike(one, other)
        labels, others = self._a.labels, self._b.labels
        free: dict[tuple[str, int], list[Node]] = {}
        for user, place in self._a.uses[one]:
            if user not in self.pairs:
                free.setdefault((labels[user], place), []).append(user)
        theirs: dict[tuple[str, int], list[Node]] = {}
        for user, place in self._b.uses[other] if free else ():
            if user not in self.back:
                theirs.setdefault((others[user], place), []).append(user)
        for key, users in free.items():
            if len(users) == len(theirs.get(key, ())):
                yield from zip(users, theirs[key], strict=True)

    def _same_place(self, one: Node, other: Node) -> Pairs:
        """Inputs that have become something else of as many inputs.

        What was `relu(x)` for some user is `gelu(x)` now: a change, rather
        than a call less and another more.
        """
        for left, right in self._inputs(one, other):
            if len(self._a.inputs[left]) == len(self._b.inputs[right]):
                yield left, right

    def _inputs(self, one: Node, other: Node) -> Pairs:
        """The inputs at the same places that are free on both sides."""
        sides = self._a.inputs[one], self._b.inputs[other]
        for left, right in zip(*sides, strict=False):
            if left not in self.pairs and right not in self.back:
                yield left, right

    # -- differences -------------------------------------------------------

    def changes(self) -> Iterator[Change]:
        """The pairs whose nodes differ, in the order of the second graph."""
        position = {node: i for i, node in enumerate(self._b.graph.nodes)}
        for after in self._b.graph.nodes:
            before = self.back.get(after)
            if before is not None:
                what = [*self._edits(before, after)]
                what += self._moves(before, after, position)
                if what:
                    yield Change(before, after, tuple(what))

    def _edits(self, before: Node, after: Node) -> Iterator[str]:
        """How what two nodes do differs, and with which inputs."""
        a, b = self._a, self._b
        inputs = [self.pairs.get(value) for value in a.inputs[before]]
        # Most pairs are the same, which shows without a look at arguments.
        if a.labels[before] == b.labels[after] and inputs == b.inputs[after]:
            return
        old, new = a.what(before), b.what(after)
        if (before.op, old) != (after.op, new):
            yield f"{before.op} {old} -> {after.op} {new}".replace("  ", " ")
        theirs = _arguments(after)
        ours = _arguments(before)
        for key in ours | theirs:
            if key not in theirs:
                yield f"{key} {format_arg(ours[key])} is gone"
            elif key not in ours:
                yield f"{key} {format_arg(theirs[key])} is new"
            elif a.text(ours[key], self._partner) != b.text(
                theirs[key], _own_name
            ):
                old, new = format_arg(ours[key]), format_arg(theirs[key])
                yield f"{key} {old} -> {new}"

    def _partner(self, node: Node) -> str:
        """What stands for a node of the first graph: its partner's name."""
        partner = self.pairs.get(node)
        return "?" if partner is None else _own_name(partner)

    def _moves(
        self, before: Node, after: Node, position: Mapping[Node, int]
    ) -> Iterator[str]:
        """The nodes that must run first, and in the second graph do not."""
        for first in self._a.before[before]:
            partner = self.pairs.get(first)
            if partner is not None and position[partner] > position[after]:
                yield f"moved in front of {partner.name}"


def _own_name(node: Node) -> str:
    return f"%{node.name}"


def _arguments(node: Node) -> dict[str, Argument]:
    """The arguments of a node, by what to name them in a message."""
    named = {f"args[{i}]": value for i, value in enumerate(node.args)}
    return named | {key: node.kwargs[key] for key in sorted(node.kwargs)}
