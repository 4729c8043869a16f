"""Stage 07, rewriter: a pattern taken apart, and what each node of it asks for.

A pattern is a graph.  Matching it again and again, the matcher wants to know
at once what a node of the pattern asks of a node of the graph: that is its
`Step`.  Two *spellings* say when two calls are the same: `Exact`, which is
torch.fx's rule, and the one of `call_forms`, which sees through spelling.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import NamedTuple, Protocol, TypeAlias

import torch
from torch._ops import OpOverload

from ..graph import Graph
from ..node import Node
from ..text.dotted_path import find
from ..usedef.values import Argument, Value

Pair: TypeAlias = tuple[Sequence[Argument], Sequence[Argument]]
"""The arguments of two calls, in one order: the pattern's, the graph's."""

Key: TypeAlias = object
"""What a node is looked up by: its target, or its opcode; hashable."""

BY_OPCODE = ("placeholder", "get_attr", "output")
"""Opcodes whose target does not matter for a match."""


class Spelling(Protocol):
    """Says when a call in the graph is the call in the pattern."""

    def key(self, node: Node) -> Key:
        """What nodes that could be equal have in common."""

    def pair(self, pattern: Node, node: Node) -> Pair | None:
        """The arguments of both, or None if the calls are not the same."""

    def commutes(self, pattern: Node) -> bool:
        """Whether the first two operands may be exchanged."""
        ...

    def same_value(self, pattern: Node, node: Node) -> bool:
        """Whether two get_attr nodes fetch what counts as the same."""
        ...


class Exact:
    """The same opcode, the same target, the same arguments: torch.fx's rule."""

    def key(self, node: Node) -> Key:
        """The target, or the opcode where the target does not matter."""
        return node.op if node.op in BY_OPCODE else node.target

    def pair(self, pattern: Node, node: Node) -> Pair | None:
        """The arguments as they stand; by the schema, for an OpOverload."""
        raise NotImplementedError("stage 07: Exact.pair")

    def commutes(self, pattern: Node) -> bool:
        """Never: operands have their order."""
        return False

    def same_value(self, pattern: Node, node: Node) -> bool:
        """Whether both fetch tensors of one class, whatever is in them.

        Raises:
            AssertionError: a graph has no owner to look into.
            RuntimeError: the pattern fetches what is no tensor.
        """
        theirs, ours = fetched(pattern), fetched(node)
        if type(theirs) is not type(ours):
            return False
        if not isinstance(theirs, torch.Tensor):
            raise RuntimeError(
                f"Unsupported type {theirs} when matching attributes: "
                f"pattern node {pattern} fetches it, and only tensors can "
                "be compared"
            )
        return True


def fetched(node: Node) -> Value:
    """What a get_attr node fetches.

    Raises:
        AssertionError: its graph has no owner.
    """
    owner = node.graph.owning_module
    if owner is None:
        raise AssertionError(
            f"{node}.graph.owning_module must not be None: put the graph of "
            f"get_attr node {node} into a GraphModule"
        )
    return find(owner, str(node.target))


def by_schema(node: Node) -> list[Argument]:
    """All arguments of a call of an OpOverload, defaults filled in."""
    target: Value = node.target
    args, kwargs = node.args, node.kwargs
    found: list[Argument] = []
    for place, one in enumerate(target._schema.arguments):
        if one.name in kwargs:
            found.append(kwargs[one.name])
        elif not one.kwarg_only and place < len(args):
            found.append(args[place])
        else:
            found.append(one.default_value)
    return found


class Step(NamedTuple):
    """What one node of the pattern asks of its partner in the graph.

    Attributes:
        node: the node of the pattern.
        key: what its partner is looked up by.
        wildcard: it is a placeholder that takes anything.
        readers: how many readers its partner has, all of them in the match;
            -1 if it may have others too.
        commutes: its first two operands may be exchanged.
    """

    node: Node
    key: Key
    wildcard: bool
    readers: int
    commutes: bool


class Route(NamedTuple):
    """The way from an anchor to another, over what they have in common.

    Attributes:
        start: a node of the pattern that is paired already.
        path: the nodes from there down to the next anchor.
    """

    start: Node
    path: tuple[Node, ...]


class Plan(NamedTuple):
    """A pattern, taken apart.

    Attributes:
        steps: each node of the pattern that an anchor needs.
        anchors: where matching begins: what only the output reads.
        routes: for each anchor, how it hangs together with those before it.
        placeholders: the pattern's inputs.
        returning: what the pattern returns, each node once.
        rare_routes: for each anchor, the way to it from each operation that
            it needs and that the pattern does not return.
    """

    steps: dict[Node, Step]
    anchors: list[Node]
    routes: list[Route | None]
    placeholders: list[Node]
    returning: list[Node]
    rare_routes: dict[Node, list[Route]]


def plan(
    pattern: Graph,
    spelling: Spelling,
    *,
    match_output: bool,
    match_placeholder: bool,
) -> Plan:
    """Take a pattern apart.

    Args:
        pattern: a graph with an output.
        spelling: when calls are the same.
        match_output: the output is to be matched, too.
        match_placeholder: placeholders match placeholders only.

    Cost: O(size of the pattern · anchors).
    """
    output = pattern.output_node()
    returning = output.all_input_nodes
    anchors = [node for node in returning if len(node.users) == 1]
    if match_output:
        anchors = [output]
    reached: dict[Node, None] = {}
    routes = [_join(anchor, reached) for anchor in anchors]
    may_leak = {*returning, output}
    steps = {}
    for node in reached:
        inner = node not in may_leak and node.op != "placeholder"
        steps[node] = Step(
            node,
            spelling.key(node),
            node.op == "placeholder" and not match_placeholder,
            sum(user in reached for user in node.users) if inner else -1,
            spelling.commutes(node),
        )
    placeholders = [node for node in pattern.nodes if node.op == "placeholder"]
    rare = {anchor: _rare_routes(anchor, steps) for anchor in anchors}
    return Plan(steps, anchors, routes, placeholders, returning, rare)


def _climb(anchor: Node, stop: Container[Node]) -> dict[Node, Node | None]:
    """All nodes that `anchor` needs -> one that reads them, anchor first.

    Nodes in `stop` are met, and not climbed beyond.
    """
    reader: dict[Node, Node | None] = {anchor: None}
    stack = [anchor]
    while stack:
        node = stack.pop()
        if node in stop:
            continue
        for parent in node.all_input_nodes:
            if parent not in reader:
                reader[parent] = node
                stack.append(parent)
    return reader


def _route(start: Node, reader: dict[Node, Node | None]) -> Route:
    """The way down from `start` along its readers."""
    path = []
    below = reader[start]
    while below is not None:
        path.append(below)
        below = reader[below]
    return Route(start, tuple(path))


def _join(anchor: Node, reached: dict[Node, None]) -> Route | None:
    """How `anchor` hangs together with `reached`; adds what it needs to it.

    The best place to touch is an operation: it has few readers, while an
    input may have any number.
    """
    reader = _climb(anchor, reached)
    touched = [node for node in reader if node in reached]
    reached.update(dict.fromkeys(reader))
    if not touched:
        return None
    start = min(touched, key=lambda node: node.op == "placeholder")
    return _route(start, reader)


_ROUTES = 8
"""The longest way, and the most ways, worth remembering for one anchor."""


def _rare_routes(anchor: Node, steps: dict[Node, Step]) -> list[Route]:
    """The short ways to `anchor` from operations that are not returned."""
    reader = _climb(anchor, ())
    starts = [node for node in reader if steps[node].readers > 0]
    routes = []
    for start in starts[:_ROUTES]:
        route = _route(start, reader)
        if len(route.path) <= _ROUTES:
            routes.append(route)
    return routes
