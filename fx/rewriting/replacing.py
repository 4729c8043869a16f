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
from typing import Final

from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg
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
        before.settle(gm, [options])
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
