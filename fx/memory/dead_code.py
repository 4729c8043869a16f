"""Stage 02, use-def: which nodes without users must stay.

A call with an effect must stay, with one exception: a write into memory that
nobody looks at afterwards.

    a = conv(x)     new memory
    b = relu_(a)    writes into it, and nobody uses a or b

Both can go.  To see that, values are traced to the calls that made their
memory.  Nothing may be overlooked here, so memory is given up wherever it may
flow to something that is not traced: an input, a container, a user's function.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Final, Literal, TypeAlias

from ..node import Node
from ..usedef.values import Argument
from .effects import (
    Effect,
    classify,
    effect_by_name,
    is_new,
    is_tensor,
    is_torchs_module,
    overloads_of,
)

Makers: TypeAlias = frozenset[Node] | None
"""The calls that made the memory that a value may be in; None if others may
have it too."""

_MOST: Final = 8
"""A value in more memories than this is not traced."""


def must_keep(unknown: Literal["drop", "keep"]) -> Callable[[Node], bool]:
    """The predicate by which dead code elimination keeps unused nodes.

    It must be asked from the last node of a graph to the first, and the graph
    may change meanwhile only in that the nodes that are not kept are erased.

    Args:
        unknown: "drop" keeps what is impure, as torch.fx does; "keep" keeps
            all that is not pure.  Neither keeps a write that nobody can see.

    Raises:
        ValueError: `unknown` is another word.

    Cost: O(1) for each node, as `classify`; O(nodes + uses) once, when it is
    asked about a write.
    """
    if unknown not in ("drop", "keep"):
        raise ValueError(f'unknown={unknown!r}: say unknown="drop" or "keep"')
    memory: Memory | None = None
    tensors: dict[Node, bool] = {}

    def keep(node: Node) -> bool:
        nonlocal memory
        if unknown == "drop":
            effect = effect_by_name(node)
        else:
            effect = classify(node, tensors)
        if effect.kind != "impure":
            return effect.kind == "unknown" and unknown == "keep"
        if effect.target is None:
            return True
        if memory is None:
            memory = Memory(node.graph.nodes)
        return memory.is_seen_after(node)

    return keep


class Memory:
    """The memory that the calls of a graph make, and who uses it."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        """Trace the values of all nodes, in the order of the program.

        Cost: O(nodes + uses).
        """
        self._makers: dict[Node, Makers] = {}
        self._users: dict[Node, list[Node]] = {}
        self._losers: dict[Node, list[Node]] = {}
        self._tensors: dict[Node, bool] = {}
        for node in nodes:
            makers = self._makers[node] = self._makers_of(node)
            used = [self._makers[arg] or () for arg in node._inputs]
            for maker in dict.fromkeys([m for group in used for m in group]):
                self._users[maker].append(node)
                if makers is None:
                    self._losers[maker].append(node)
            if makers is not None and node in makers:
                self._users[node], self._losers[node] = [], []

    def is_seen_after(self, write: Node) -> bool:
        """Whether what a node writes may be seen by a node after it.

        Of the nodes after it, only those that stay are left in the graph.

        Cost: O(1), amortised over the nodes of a walk from last to first.
        """
        makers = self._makers[write]
        return makers is None or any(
            _last(self._losers[maker]) is not None
            or _last(self._users[maker]) is not write
            for maker in makers
        )

    def _makers_of(self, node: Node) -> Makers:
        """The makers of a node's memory.

        None also if the node may keep its inputs where others find them.
        """
        if node.op in ("placeholder", "get_attr", "output"):
            return None
        effect = effect_by_name(node)
        if effect.target is not None:
            written = effect.target.of(node._args, node._kwargs)
            known = is_tensor(written, self._tensors)
            return self._union([written]) if known else None
        # A batch norm in training writes into its own state only.
        keeps_nothing = (
            effect.kind == "pure"
            or node.op == "call_module"
            or not node._inputs  # torch.rand(2)
        )
        if keeps_nothing and is_new(node, self._tensors):
            return frozenset((node,))
        return self._union(self._sources(node, effect))

    def _sources(self, node: Node, effect: Effect) -> Iterable[Argument]:
        """The inputs whose memory the value of a pure call may be in.

        Empty if it may be in other memory as well.
        """
        first = node._args[0] if node._args else None
        if effect.kind != "pure" or node.target is operator.getitem:
            return (first,) if effect.kind == "pure" else ()
        if node.op == "call_method" and not is_tensor(first, self._tensors):
            return ()
        if node.op == "call_module":
            return node._inputs if is_torchs_module(node) else ()
        overloads = overloads_of(node)
        if overloads and all(each.views_first for each in overloads):
            return (first,)
        return node._inputs if overloads else ()

    def _union(self, sources: Iterable[Argument]) -> Makers:
        """The makers of all of some values."""
        union: set[Node] = set()
        for source in sources:
            makers = self._makers[source] if isinstance(source, Node) else None
            if makers is None:
                return None
            union |= makers
        return frozenset(union) if 0 < len(union) <= _MOST else None


def _last(nodes: list[Node]) -> Node | None:
    """The last of some nodes that is still in its graph.

    The others at the end are taken off, so that they are looked at once.
    """
    while nodes and nodes[-1]._erased:
        nodes.pop()
    return nodes[-1] if nodes else None
