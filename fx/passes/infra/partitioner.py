"""Passes: which calls a back end gets, in as few pieces as possible.

A back end that supports some calls is given whole pieces of a graph.  A piece
must not need its own result: if a path leaves it, runs through a call that is
not supported, and comes back, it could not run at all.

    relu ── print ── relu_1      not one piece, but two

So each node gets a level: how often a path from it to the end goes from a
supported call to one that is not.  Along a path the level never grows, and it
falls where the path leaves the supported calls.  So no path comes back into a
level that it has left, and all supported calls of a level can be one piece.
Fewer pieces are impossible, since calls of one path that are on different
levels must be in different pieces.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

from torch import nn

from ...graph_module import GraphModule
from ...node import Node
from ...use_def.errors import refuse_torchs
from ..tools_common import CALLABLE_NODE_OPS, get_node_target
from ..utils.call_order import kept_in_order
from ..utils.fuser_utils import fuse_by_partitions

__all__ = ["CapabilityBasedPartitioner", "Partition"]

_NON_COMPUTE: Final = ("torch.ops.aten.view", "_operator.getitem")
"""What is never counted as a computation."""

Neighbours: TypeAlias = Mapping[Node, Sequence[Node]]
"""The nodes that must run before a node, or after it."""


class Support(Protocol):
    """Says which nodes a back end can run.

    `fx.passes.operator_support`, which torch lends, has ways to make one.
    """

    def is_node_supported(
        self, submodules: Mapping[str, nn.Module], node: Node
    ) -> bool:
        """Whether the back end can run a node; modules are given by path."""
        ...


class Partition:
    """Some nodes of a graph.

    Attributes:
        id: a number, or None.
        nodes: the nodes in order, and for each its place from the end of the
            graph, or None.

    torch.fx: passes/infra/partitioner.py, Partition
    """

    def __init__(
        self,
        id: int | None = None,
        nodes: Iterable[Node] | None = None,
        node_orders: Iterable[int] | None = None,
    ) -> None:
        """Begin with some nodes, and perhaps a place for each."""
        self.nodes: dict[Node, int | None] = dict.fromkeys(nodes or ())
        self.id = id
        if node_orders is not None:
            self.nodes.update(zip(self.nodes, node_orders, strict=True))

    def size(self) -> int:
        """How many nodes it has."""
        return len(self.nodes)

    def add_node(self, node: Node, node_order: int | None = None) -> None:
        """Put a node in."""
        self.nodes[node] = node_order

    def remove_node(self, node: Node) -> None:
        """Take a node out."""
        self.nodes.pop(node)

    def __repr__(self) -> str:
        """Its nodes and their places."""
        return str(self.nodes)


class CapabilityBasedPartitioner:
    """Finds the pieces of a graph that a back end can run.

        partitioner = CapabilityBasedPartitioner(gm, support)
        fused = partitioner.partition_and_fuse()

    torch.fx: passes/infra/partitioner.py, CapabilityBasedPartitioner; it
    merges pieces step by step, and each step looks for a cycle among all nodes
    behind both. A chain of 1,000 nodes takes it 1.5 s and one of 5,000 takes
    185 s, where one walk finds as many pieces in 0.02 s.
    """

    def __init__(
        self,
        graph_module: GraphModule,
        operator_support: Support,
        allows_single_node_partition: bool = False,
        non_compute_ops: Collection[str] | None = None,
        allowed_single_node_partition_ops: Collection[str] | None = None,
        skip_horizontal_fusion: bool = False,
    ) -> None:
        """Prepare to cut a module.

        Args:
            graph_module: the module.
            operator_support: says which nodes the back end can run. It is
                asked about calls and fetched attributes.
            allows_single_node_partition: propose a piece also if it computes
                a single thing.
            non_compute_ops: calls that compute nothing, by the names that
                `get_node_target` gives them. Views are among them anyway.
            allowed_single_node_partition_ops: calls that may be a piece alone.
            skip_horizontal_fusion: only put calls into one piece that are
                connected inside of it.
        """
        single = allowed_single_node_partition_ops
        self.allowed_single_node_partition_ops: Collection[str] = single or []
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops: Collection[str] = non_compute_ops or []
        self.skip_horizontal_fusion = skip_horizontal_fusion
        refuse_torchs(graph_module)
        self.operator_support = operator_support
        self.graph_module = graph_module

    def propose_partitions(self) -> list[Partition]:
        """The pieces, those at the end of the graph first.

        Without `skip_horizontal_fusion` and the limits on small pieces, there
        are as few as can be.  With it there may be a few more: levels are set
        before it is known what is connected, and a call that has found
        something on its level does not look for a better one.

        What takes results of a call that returns several is in its piece, if
        nothing in between forbids it, because a list of tensors can rarely be
        handed over.

        Cost: O(nodes + uses).
        """
        before, after = self._neighbours()
        tied = _unpacking(self.graph_module)
        supported = self._supported(tied)
        levels = _levels(self.graph_module, supported, after)
        for node in self.graph_module.graph.nodes:
            alone = self.skip_horizontal_fusion and not any(
                user in supported and levels[user] == levels[node]
                for user in after[node]
            )
            if node in supported and (alone or node in tied):
                levels[node] = min(
                    (
                        levels[prior]
                        for prior in before[node]
                        if prior in supported or prior.op in CALLABLE_NODE_OPS
                    ),
                    default=levels[node],
                )
        if self.skip_horizontal_fusion:
            levels = _connected(levels, supported, before)
        parts: dict[int, Partition] = {}
        nodes = self.graph_module.graph.nodes
        for order, node in enumerate(reversed(nodes)):
            if node in supported:
                part = parts.setdefault(levels[node], Partition(len(parts)))
                part.add_node(node, order)
        for part in parts.values():
            part.nodes = dict(reversed(part.nodes.items()))
        return [part for part in parts.values() if self._is_worth_it(part)]

    def fuse_partitions(
        self, partitions: list[Partition], prefix: str = "fused_"
    ) -> GraphModule:
        """Let a call of a module stand for each piece: `fuse_by_partitions`."""
        pieces = [part.nodes for part in partitions]
        return fuse_by_partitions(self.graph_module, pieces, prefix=prefix)

    def remove_bookend_non_compute_ops(
        self, partitions: list[Partition]
    ) -> None:
        """Take out what computes nothing, at the beginning and end of pieces.

        Cost: O(nodes + uses).
        """
        before, after = self._neighbours()
        for part in partitions:
            for near, step in ((before, 1), (after, -1)):
                for node in [*part.nodes][::step]:
                    if self._name(node) in self.non_compute_ops and not any(
                        neighbour in part.nodes for neighbour in near[node]
                    ):
                        part.remove_node(node)

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """Let a call of a module stand for each piece that is proposed."""
        return self.fuse_partitions(self.propose_partitions(), prefix)

    def _neighbours(self) -> tuple[Neighbours, Neighbours]:
        """What must run before each node, and after it."""
        before: dict[Node, list[Node]] = {}
        after: dict[Node, list[Node]] = {}
        for node in self.graph_module.graph.nodes:
            before[node] = node.all_input_nodes
            after[node] = [*node.users]
        for first, second in kept_in_order(self.graph_module.graph):
            before[second].append(first)
            after[first].append(second)
        return before, after

    def _supported(self, tied: Mapping[Node, Node]) -> set[Node]:
        """The nodes that the back end gets."""
        named = self.graph_module.named_modules(remove_duplicate=False)
        modules = dict(named)
        supported: set[Node] = set()
        for node in self.graph_module.graph.nodes:
            if node in tied:
                fits = tied[node] in supported
            else:
                fits = node.op not in (
                    "placeholder",
                    "output",
                ) and self.operator_support.is_node_supported(modules, node)
            if fits:
                supported.add(node)
        return supported

    def _name(self, node: Node) -> str:
        """What a call calls; "" for a fetched attribute."""
        if node.op not in CALLABLE_NODE_OPS:
            return ""
        module = self.graph_module
        modules = {}
        if node.op == "call_module":
            modules[str(node.target)] = module.get_submodule(str(node.target))
        return get_node_target(modules, node)

    def _is_worth_it(self, part: Partition) -> bool:
        """Whether a piece computes enough."""
        if self.allows_single_node_partition:
            return True
        names = [self._name(node) for node in part.nodes]
        nothing = {*_NON_COMPUTE, *self.non_compute_ops, ""}
        alone = self.allowed_single_node_partition_ops
        work = sum(name not in nothing for name in names)
        return work + sum(name in alone for name in names) > 1


def _unpacking(gm: GraphModule) -> dict[Node, Node]:
    """What only takes results of a call that nothing else uses -> the call.

    For `top = torch.topk(x, 1)`, these are `top[0]` and `top[1]`.
    """
    tied: dict[Node, Node] = {}
    for node in gm.graph.nodes:
        if all(
            user.target is operator.getitem and user.args[0] is node
            for user in node.users
        ):
            tied.update(dict.fromkeys(node.users, node))
    return tied


def _levels(
    gm: GraphModule, supported: set[Node], after: Neighbours
) -> dict[Node, int]:
    """How often a path from each node goes from supported nodes to others.

    Paths count up to their last supported node, -1 where there is none.
    """
    levels: dict[Node, int] = {}
    for node in reversed(gm.graph.nodes):
        leaves = int(node in supported)
        levels[node] = max(
            (
                levels[user] + (leaves if user not in supported else 0)
                for user in after[node]
            ),
            default=leaves - 1,
        )
    return levels


def _connected(
    levels: Mapping[Node, int], supported: set[Node], before: Neighbours
) -> dict[Node, int]:
    """A number for each group of supported nodes of a level that are linked.

    Without horizontal fusion each of them is a piece.
    """
    links: defaultdict[Node, list[Node]] = defaultdict(list)
    for node in supported:
        for prior in before[node]:
            if prior in supported and levels[prior] == levels[node]:
                links[node].append(prior)
                links[prior].append(node)
    groups: dict[Node, int] = {}
    for node in supported:
        rest = [] if node in groups else [node]
        number = len(groups)
        while rest:
            linked = rest.pop()
            if linked not in groups:
                groups[linked] = number
                rest += links[linked]
    return groups
