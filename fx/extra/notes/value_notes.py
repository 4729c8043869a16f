"""Extra: what nodes note of their values stays true when a graph is rewritten.

`make_fx`, `ShapeProp` and torch.export note in each node's `meta` of which
shape and dtype its value is, and passes believe them: how much memory a result
needs, or whether a call may work in place, is decided by them.  A replacement
may return something else, and all that is computed from it is something else
then:

    relu_1   val: float32 [3, 2]         relu(permute)   val: float64 [3, 2]

`settle` compares a rewritten graph with what it was before.  Notes that may be
untrue are dropped, or found anew by running the calls on fake tensors.

torch.fx: subgraph_rewriter.py, _replace_pattern; there the notes behind a
replacement stay as they are. New nodes have those of the replacement's nodes,
if it was exported with inputs of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Protocol, TypeAlias

import torch
from torch import Tag

from ...compat.first_use import importer
from ...graph_module import GraphModule
from ...node import Node, map_arg
from ...recording import frames
from ...rewriting.snapshot import Snapshot
from ...torch_private import pytree
from ...traceback import OF_VALUE
from ...use_def.dead_code import RULE
from ...use_def.values import Value

Notes: TypeAlias = Mapping[str, Value]
"""The meta of a node, or the part of it that is about its value."""


def settle(
    before: Snapshot, gm: GraphModule, options: Iterable[Mapping[str, object]]
) -> None:
    """Make the notes on the values of a rewritten graph true, or drop them.

    A program that runs by the rule of torch.fx keeps all that it has, unless
    it asks for notes that are true: torchao, for one, does not quantize a node
    that has none.  If a call was run again and its notes say what they said
    before, the node keeps them, and what is behind it is not affected.

    Each `meta` that changes becomes a new dict, because the snapshot holds the
    old ones and restores them if this is interrupted.

    Args:
        before: the graph before the first edit.
        gm: the module that was rewritten.
        options: with `recompute_meta` among them the notes are found anew;
            warns if some cannot be.

    Cost: O(nodes + uses); to recompute, each call behind a new node is run.
    """
    recompute = any(chosen.get("recompute_meta") for chosen in options)
    if RULE.get() == "torch" and not recompute:
        return
    change = Changes(gm, before)
    again = _on_fake_tensors(gm, change) if recompute and change.kinds else None
    for node in gm.graph.nodes:
        is_affected = change.affects(node)
        notes = again.see(node, is_affected=is_affected) if again else {}
        is_new = node not in before.fields
        if is_new or (is_affected and not change.same(node.meta, notes)):
            change.found[node] = notes
    for node, notes in change.found.items():
        keys = OF_VALUE & node.meta.keys()
        had = keys if node in before.fields else change.kinds
        kept = {key: node.meta[key] for key in node.meta if key not in keys}
        node.meta = kept | {key: notes[key] for key in notes if key in had}
    if again and again.problem:
        frames.warn(
            f"recompute_meta: {again.problem}, so that this node and what "
            "depends on it have no notes on their values"
        )


def _on_fake_tensors(gm: GraphModule, change: Changes) -> Recomputing:
    """Begin to run a graph.

    That needs an interpreter and fake tensors.  Most rewrites do not ask for
    it, so these are imported here.
    """
    late = importer("fx.passes", {"Recomputed": "recomputed_notes"})
    recomputed: Value = late("Recomputed")
    recomputing: Recomputing = recomputed(gm, change)
    return recomputing


class Recomputing(Protocol):
    """Runs the calls of a graph, in order, to see what their values are like.

    Attributes:
        problem: which affected call could not be run, and why; "" so far.
    """

    problem: str

    def see(self, node: Node, *, is_affected: bool) -> Notes:
        """What the next node should note of its value, if it is affected.

        Returns:
            The notes of each kind; nothing if it cannot be run.
        """
        ...


class Changes:
    """Which notes a rewrite makes doubtful.

    Attributes:
        before: the nodes that there were -> their fields.
        kinds: the keys of meta under which these had such notes.
        found: nodes that have other notes now than in their meta -> these.
        reshapes: a call gives a tensor that others use another shape, as
            `x.t_()` does. Then a note on `x` is true of some of its users
            only, and nothing can be concluded from it: as such calls are
            rare, every note but those of the inputs is doubtful then.
    """

    def __init__(self, gm: GraphModule, before: Snapshot) -> None:
        """Look at the nodes that there were, and those that there are."""
        self.before: dict[Node, tuple[Value, ...]] = before.fields
        metas = (node.meta for node in self.before)
        self.kinds: frozenset[str] = OF_VALUE.intersection(
            chain.from_iterable(metas)
        )
        self.found: dict[Node, Notes] = {}
        nodes = {*self.before, *gm.graph.nodes}
        self.reshapes: bool = any(map(changes_shapes, nodes))

    def affects(self, node: Node) -> bool:
        """Whether the notes of a node may be untrue.

        Those of the nodes in front of it have been asked about.
        """
        fields = self.before.get(node)
        if fields is None or (self.reshapes and node.op != "placeholder"):
            return True
        olds, news = _nodes_in(fields[2:4]), _nodes_in((node.args, node.kwargs))
        return len(olds) != len(news) or any(
            new in self.found
            if new is old
            else not self.same(old.meta, self.found.get(new, new.meta))
            for old, new in zip(olds, news, strict=True)
        )

    def same(self, old: Notes, new: Notes) -> bool:
        """Whether there are notes, and they say the same as some others."""
        keys = self.kinds & old.keys()
        return bool(keys) and all(
            key in new and described(old[key]) == described(new[key])
            for key in keys
        )


def _nodes_in(arguments: Value) -> list[Node]:
    """The nodes among arguments, as often as they are there."""
    nodes: list[Node] = []
    map_arg(arguments, nodes.append)
    return nodes


def described(noted: Value) -> str:
    """What a note says, as text.

    Sizes may be symbols, and to ask whether two of these are equal would add a
    guard to the program that was exported.
    """

    def text(leaf: Value) -> str:
        if isinstance(leaf, torch.Tensor):
            strided = leaf.layout is torch.strided
            return (
                f"{tuple(leaf.shape)} {leaf.stride() if strided else ''} "
                f"{leaf.dtype} {leaf.device} {leaf.layout}"
            )
        if isinstance(leaf, type) and issubclass(leaf, torch.Tensor):
            return "a tensor"
        return f"{type(leaf)} {leaf}"

    return str(pytree.tree_map(text, noted))


def changes_shapes(node: Node) -> bool:
    """Whether a call gives a tensor that it is given another shape."""
    name = str(getattr(node.target, "__name__", node.target)).split(".")[0]
    return (
        name.endswith("_")
        and node.op in ("call_function", "call_method")
        and _reshapes(name)
    )


@functools.lru_cache(maxsize=1024)
def _reshapes(name: str) -> bool:
    """Whether an operator of this name gives its operand another shape."""
    packet = getattr(torch.ops.aten, name, None)
    overloads: list[str] = getattr(packet, "overloads", list)()
    return any(
        Tag.inplace_view in getattr(packet, key).tags for key in overloads
    )
