"""Stage 07, rewriter: put replacements where the matches are.

`commit` edits the graph in three passes over all matches.  One match may read
what another one returns, and in this order that needs no special case:

    1  copy each replacement to its place   old and new exist side by side
    2  redirect the users of the old nodes to the new ones, each user once
    3  erase the old nodes, users before their operands

If anything is raised on the way, the graph is put back as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

import torch

from ..graph import Graph
from ..graph_module import GraphModule
from ..linked_list.opcodes import Target
from ..node import Node, map_arg
from ..torch_private.pytree import pytree
from ..traceback import OF_VALUE
from ..use_def.dead_code import RULE
from ..use_def.values import LEAVES, AnyValue, Argument
from .places import find_place
from .snapshot import Snapshot
from .templates import BY_PATH, Rewrite, copy_needed

CARRIED: Final = ("stack_trace", "nn_module_stack", "source_fn_stack")
"""Meta of a replaced node that is true of all nodes that replace it."""


def carry(rewrite: Rewrite, outputs: list[Argument]) -> None:
    """Give the new nodes the meta of those that they replace."""
    old = rewrite.operations
    names = tuple(node.name for node in old)
    known: dict[str, AnyValue] = {
        key: node.meta[key]
        for node in reversed(old)
        for key in CARRIED
        if key in node.meta
    }
    for node in rewrite.made:
        node.meta = {**known, **node.meta, "replaces": names}
    made = set(rewrite.made)
    for gone, new in zip(rewrite.match.returning_nodes, outputs, strict=True):
        if isinstance(new, Node) and new in made:
            new.meta = {**new.meta, **gone.meta, "replaces": names}


def commit(
    gm: GraphModule, rewrites: Sequence[Rewrite], options: Mapping[str, object]
) -> None:
    """Carry the rewrites out and recompile, or change nothing.

    Without rewrites, earlier edits of the graph are compiled all the same.

    Args:
        gm: the module whose graph the matches are in.
        rewrites: in the order in which they were found; no two share a node.
        options: see `subgraph_rewriter.RewriteOptions`.

    Raises:
        What a hook of `gm` or the compiler raises; KeyboardInterrupt. The
        graph and the attributes are then as they were.

    Cost: O(nodes + uses + size of the replacements).
    """
    if not rewrites:
        gm.recompile()
        return
    with Snapshot(gm) as before:
        Edit(gm, carry_meta=bool(options.get("carry_meta"))).apply(rewrites)
        update_value_meta(before, gm, [options])
        gm.recompile()


class Edit:
    """The edits of one commit.

    Attributes:
        new: a node that was replaced -> what replaces it.
        dead: nodes to be erased, in order.
        future_users: a new node -> nodes that will use it after `redirect`.
    """

    def __init__(self, gm: GraphModule, *, carry_meta: bool) -> None:
        """Begin with nothing changed."""
        self.gm = gm
        self.graph: Graph = gm.graph
        self.carry_meta = carry_meta
        self.new: dict[Node, Argument] = {}
        self.dead: dict[Node, None] = {}
        self.future_users: dict[Node, list[Node]] = {}

    def apply(self, rewrites: Iterable[Rewrite]) -> None:
        """Insert all replacements, redirect users, erase the old nodes."""
        for rewrite in rewrites:
            copy_needed(self.gm, rewrite.template)
            self.insert(rewrite)
        self.redirect()
        self.erase()

    def insert(self, rewrite: Rewrite) -> None:
        """Copy the template of one rewrite to its place.

        The placeholders of the template become what those of the pattern are
        paired with, or what an earlier rewrite replaced that by (`current`).
        The new nodes are listed in `rewrite.made`, the outputs of the template
        replace what the match returned, and the matched nodes are dead.
        """
        match, made = rewrite.match, rewrite.template
        values = [self.current(value) for value in match.placeholder_nodes]
        known = dict(zip(made.placeholders, values, strict=True))
        show_inputs(rewrite, values)
        place = find_place(rewrite, self.users, self.dead)
        with self.graph.inserting_before(place):
            for node in made.body:
                known[node] = new = self.graph.node_copy(
                    node, known.__getitem__
                )
                if made.renamed and node.op in BY_PATH:
                    path = str(node.target)
                    new.target = made.renamed.get(path, path)
                rewrite.made.append(new)
        outputs = [
            known[out] if isinstance(out, Node) else out for out in made.outputs
        ]
        if self.carry_meta:
            carry(rewrite, outputs)
        for gone, came in zip(match.returning_nodes, outputs, strict=True):
            self.replace(gone, came)
        self.dead.update(rewrite.operations)

    def current(self, arg: Argument) -> Argument:
        """An argument, with each replaced node in it replaced.

        Cost: O(1) for a node, amortised, however often it was replaced.
        """
        if not isinstance(arg, Node):
            return arg if type(arg) in LEAVES else map_arg(arg, self.current)
        if arg not in self.new:
            return arg
        trail = []
        newest: Argument = arg
        while isinstance(newest, Node) and newest in self.new:
            trail.append(newest)
            newest = self.new[newest]
        for node in trail[:-1]:
            self.new[node] = newest
        return newest

    def replace(self, old: Argument, new: Argument) -> None:
        """Note that users of `old` are to use `new`."""
        if old is new or not isinstance(old, Node):
            return
        self.new[old] = new
        if isinstance(new, Node):
            users = self.future_users.setdefault(new, [])
            users.extend(self.users(old))

    def users(self, node: Node) -> Iterator[Node]:
        """The users of a node, future ones too, that will not be erased."""
        for user in (*node.users, *self.future_users.get(node, ())):
            if user not in self.dead:
                yield user

    def redirect(self) -> None:
        """Redirect each user of what was replaced to the replacement."""
        hooks = self.gm._replace_hooks  # noqa: SLF001
        users: dict[Node, None] = {}
        for old in self.new:
            for user in old.users:
                if user in self.dead:
                    continue
                users[user] = None
                for hook in [*hooks]:
                    hook(old=old, new=str(self.current(old)), user=user)
        for user in users:
            user.args = tuple(map(self.current, user.args))
            if user.kwargs:
                user.kwargs = map_arg(user.kwargs, self.current)

    def erase(self) -> None:
        """Erase all dead nodes, users before their operands."""
        ready = [node for node in self.dead if not node.users]
        while ready:
            node = ready.pop()
            inputs = node.all_input_nodes
            self.graph.erase_node(node)
            ready += [n for n in inputs if not n.users and n in self.dead]


def show_inputs(rewrite: Rewrite, values: list[AnyValue]) -> None:
    """Let a match say what its inputs are now."""
    paired = rewrite.match.nodes_map
    for node, value in zip(rewrite.inputs, values, strict=True):
        if node in paired:
            paired[node] = value
    rewrite.match.placeholder_nodes[:] = values


# -- notes on values -----------------------------------------------------------


def update_value_meta(
    before: Snapshot, gm: GraphModule, options: Iterable[Mapping[str, object]]
) -> None:
    """Drop the notes on values that may be untrue after a rewrite.

    `make_fx`, `ShapeProp` and torch.export note of which shape and dtype a
    value is, and passes believe them.  New nodes have no such notes, nor has
    what is behind them, unless its inputs have noted what they had before.
    With `recompute_meta` among the options they are found anew.  Without it, a
    program that runs by the rule of torch.fx keeps all that it has: torchao
    does not quantize a node that has none.

    torch.fx: subgraph_rewriter.py, _replace_pattern; there they stay.

    Cost: O(nodes + uses); to recompute, each call behind a new node is run.
    """
    recompute = any(chosen.get("recompute_meta") for chosen in options)
    if RULE.get() == "torch" and not recompute:
        return
    olds, nodes = before.fields, gm.graph.nodes
    # After `x.t_()`, a note on `x` is true of some of its users only: as such
    # calls are rare, every note but those of the inputs is doubtful then.
    reshapes = any(map(_reshapes, {n.target for n in (*olds, *nodes)}))
    changed: dict[Node, dict[str, AnyValue]] = {}
    for node in nodes:
        *_, had, _ = olds.get(node, ((), ()))
        has = node.all_input_nodes
        if (
            node not in olds
            or (reshapes and node.op != "placeholder")
            or len(had) != len(has)
            or not changed.keys().isdisjoint(has)
            or not all(map(_note_the_same, had, has))
        ):
            old = changed[node] = node.meta  # the snapshot holds it: copy it
            node.meta = {key: old[key] for key in old if key not in OF_VALUE}
    if recompute:
        before.recompute(gm, changed)


def _note_the_same(old: Node, new: Node) -> bool:
    """Whether two nodes have noted the same of their values, and anything."""
    keys = sorted(OF_VALUE & old.meta.keys())
    before, after = ([n.meta.get(key) for key in keys] for n in (old, new))
    return old is new or "[]" != described(before) == described(after)


def described(noted: AnyValue) -> str:
    """What a note says, as text: to compare symbols would add a guard."""

    def text(leaf: AnyValue) -> str:
        if isinstance(leaf, torch.Tensor):
            stride = leaf.stride() if leaf.layout is torch.strided else ""
            size = f"{tuple(leaf.shape)} {stride}"
            return f"{size} {leaf.dtype} {leaf.device} {leaf.layout}"
        is_tensor = isinstance(leaf, type) and issubclass(leaf, torch.Tensor)
        return "a tensor" if is_tensor else f"{type(leaf)} {leaf}"

    return str(pytree.tree_map(text, noted))


@lru_cache(maxsize=1024)
def _reshapes(target: Target) -> bool:
    """Whether a call gives its first argument another shape, as `t_` does."""
    name = str(getattr(target, "__name__", target)).split(".")[0]
    packet: AnyValue = getattr(torch.ops.aten, name, None)
    if not name.endswith("_") or packet is None:
        return False
    overload = getattr(packet, packet.overloads()[0])
    return torch.Tag.inplace_view in overload.tags
