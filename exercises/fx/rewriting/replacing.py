"""Stage 07, rewriter: put replacements where the matches are.

What to do is settled before the first edit: a `Template` is a replacement
that has been checked, a `Rewrite` a match with its template.  Then `commit`
edits the graph, in three passes, so that matches which touch one another are
no special case:

    1  copy each template to its place      old and new stand side by side
    2  have all readers of the old read the new, each reader once
    3  erase the old, from the last to the first

If anything is raised on the way, the graph is put back as it was.
"""

from __future__ import annotations

import copy
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from torch import nn

from ..codegen.unchanged import keeping_unchanged
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg
from ..passes.utils.matcher_utils import InternalMatch, effects_before
from ..text import dotted_path
from ..usedef import lint
from ..usedef.arguments import LEAVES, map_aggregate
from ..usedef.values import Argument, Value
from .snapshot import Attributes, Snapshot

BY_PATH = ("get_attr", "call_module")
"""Opcodes whose target is a path in the owning module."""

CARRIED = ("stack_trace", "nn_module_stack", "source_fn_stack")
"""Meta of a replaced node that is true of all that replaces it."""


@dataclass
class Template:
    """A replacement, checked.

    Attributes:
        graph: the replacement.
        placeholders: its inputs.
        body: its operations.
        outputs: what it returns, one after the other.
        needed: paths to be taken over -> the object there.
        renamed: paths that are others in the module that is rewritten.
    """

    graph: Graph
    placeholders: list[Node]
    body: list[Node]
    outputs: list[Argument]
    needed: dict[str, object] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)


@dataclass
class Rewrite:
    """A match and what is put in its place.

    Attributes:
        match: where.
        template: what.
        inputs: the placeholders of the pattern.
        stay: put it where the match ends, not before its first reader.
        made: the new nodes, once they are there.
        operations: the nodes of the graph that will be gone.
    """

    match: InternalMatch
    template: Template
    inputs: list[Node]
    stay: bool = False
    made: list[Node] = field(default_factory=list)
    operations: list[Node] = field(init=False)

    def __post_init__(self) -> None:
        """Find the nodes that will be gone."""
        self.operations = self.match.operations()


# -- before the first edit ---------------------------------------------------


def template(
    gm: GraphModule,
    graph: Graph,
    root: object,
    *,
    own_constants: bool = False,
) -> Template:
    """Check a replacement.

    Args:
        gm: the module that will be rewritten.
        graph: the replacement's graph.
        root: where its targets are found, if `gm` has no such.
        own_constants: its get_attr targets are its own, whatever `gm` has
            under the same name: they were made by tracing.

    Raises:
        RuntimeError: the graph is broken, has no output, or names a module
            or attribute that neither `gm` nor `root` has.

    Cost: O(size of the graph).
    """
    for problem in lint.structure_problems(graph):
        raise problem.kind(f"in the replacement: {problem.message}")
    nodes = list(graph.nodes)
    if not nodes or nodes[-1].op != "output":
        raise RuntimeError(
            "the replacement has no output: end its graph with "
            "graph.output(value)"
        )
    outputs: list[Argument] = []
    map_aggregate(nodes[-1].args[0], outputs.append)
    made = Template(
        graph,
        [node for node in nodes if node.op == "placeholder"],
        [node for node in nodes if node.op not in ("placeholder", "output")],
        outputs,
    )
    for node in made.body:
        if node.op in BY_PATH:
            _settle_path(gm, root, node, made, own=own_constants)
    return made


def _settle_path(
    gm: GraphModule, root: object, node: Node, made: Template, *, own: bool
) -> None:
    """Decide what a node of a replacement is to fetch or call."""
    path = str(node.target)
    ours, theirs = _look_up(gm, path), _look_up(root, path)
    if own and node.op == "get_attr" and theirs is not None:
        if ours is theirs:
            return
        if ours is not None:
            made.renamed[path] = _free_path(gm, path)
        made.needed[path] = theirs
    elif ours is None and theirs is None:
        raise RuntimeError(
            f'Attempted to create a "{node.op}" node during subgraph '
            f"rewriting with target {path}, but the referenced attribute "
            "does not exist in the replacement GraphModule, nor in the one "
            f"that is rewritten: node {node} of the replacement needs it"
        )
    elif ours is None:
        made.needed[path] = theirs


def _look_up(root: object, path: str) -> object:
    """What is at a path; None if nothing is."""
    if root is None or not dotted_path.exists(root, path):
        return None
    found: object = dotted_path.find(root, path)
    return found


def _free_path(gm: GraphModule, path: str) -> str:
    """A path like `path` at which nothing is."""
    stem, number = path.rstrip("0123456789"), 0
    while dotted_path.exists(gm, f"{stem}{number}"):
        number += 1
    return f"{stem}{number}"


def check_fit(match: InternalMatch, made: Template, pattern: Graph) -> None:
    """Raise unless a template can take the place of a match.

    Raises:
        AssertionError: the numbers of inputs or outputs disagree.
        RuntimeError: the replacement reads what the match does not know; or
            the pattern returns an input, and the replacement something else.
    """
    inputs, outputs = match.placeholder_nodes, match.returning_nodes
    if len(inputs) != len(made.placeholders):
        raise AssertionError(
            f"Placeholder count mismatch: {len(inputs)} vs "
            f"{len(made.placeholders)}: pattern and replacement must have "
            "the same inputs, used or not"
        )
    if len(outputs) != len(made.outputs):
        raise AssertionError(
            f"Returning nodes count mismatch: {len(outputs)} vs "
            f"{len(made.outputs)}: pattern and replacement must return "
            "equally many values"
        )
    sought = [node for node in pattern.nodes if node.op == "placeholder"]
    partner = dict(zip(sought, made.placeholders, strict=True))
    for one, other in partner.items():
        if one not in match.nodes_map and other.users:
            raise RuntimeError(
                f"the replacement reads its input {other}, but the pattern "
                f"does not use its input {one}: no match says what it is"
            )
    returned = pattern.output_node().all_input_nodes
    for one, new in zip(returned, made.outputs, strict=True):
        if one.op == "placeholder" and partner[one] is not new:
            raise RuntimeError(
                f"the pattern returns its input {one}, and the replacement "
                f"{new} in its place: return input {partner[one]} there"
            )


def settle_places(
    gm: GraphModule, rewrites: list[Rewrite], *, respect_mutations: bool
) -> list[Rewrite]:
    """The rewrites for which there is a place.

    A place is behind all that the replacement reads and before all that reads
    it; readers that come too early are moved, unless they have an effect.

    Cost: O(nodes) if effects matter, else O(readers of the matches).
    """
    effects = effects_before(gm.graph) if respect_mutations else {}
    kept = []
    for rewrite in rewrites:
        late = _late_readers(rewrite)
        if any(node.is_impure() for node in late):
            continue
        if respect_mutations:
            end = max(rewrite.operations).next
            place = _first_reader(rewrite.match) or end
            rewrite.stay = end < place and effects[end] != effects[place]
        kept.append(rewrite)
    return kept


# -- the edits ---------------------------------------------------------------


def commit(
    gm: GraphModule, rewrites: Sequence[Rewrite], *, carry_meta: bool = False
) -> None:
    """Carry the rewrites out and recompile, or change nothing.

    Without rewrites, too, edits that somebody made before are compiled.

    Args:
        gm: the module whose graph the matches are in.
        rewrites: in the order in which they were found; no two share a node.
        carry_meta: see `subgraph_rewriter.RewriteOptions`.

    Raises:
        What a hook of `gm` or the compiler raises; KeyboardInterrupt. The
        graph and the attributes are then as they were.

    Cost: O(nodes + uses + size of the replacements).
    """
    if not rewrites:
        with keeping_unchanged():
            gm.recompile()
        return
    with Undoable(gm):
        Edit(gm, carry_meta=carry_meta).apply(rewrites)
        gm.recompile()


class Undoable:
    """A block after which a module is rewritten, or as it was before."""

    def __init__(self, gm: GraphModule) -> None:
        """Write down how the module is."""
        self.graph: Snapshot = Snapshot(gm.graph)
        self.attributes: Attributes = Attributes(gm)
        self.attributes.save()

    def __enter__(self) -> None:
        """Do nothing: all is written down."""

    def __exit__(
        self, kind: object, raised: BaseException | None, trace: object
    ) -> None:
        """Go back if something was raised, even if that is interrupted."""
        if raised is None:
            return
        try:
            self.graph.restore()
            self.attributes.restore()
        except BaseException:
            self.graph.restore()
            self.attributes.restore()
            raise


class Edit:
    """The edits of one commit.

    Attributes:
        new: node that was replaced -> what is read in its stead.
        dead: nodes to be erased.
    """

    def __init__(self, gm: GraphModule, *, carry_meta: bool) -> None:
        """Begin with nothing changed."""
        self.gm = gm
        self.graph: Graph = gm.graph
        self.carry_meta = carry_meta
        self.new: dict[Node, Argument] = {}
        self.dead: dict[Node, None] = {}
        self.also_read: dict[Node, list[Node]] = {}

    def apply(self, rewrites: Iterable[Rewrite]) -> None:
        """Copy, redirect, erase."""
        for rewrite in rewrites:
            _take_over(self.gm, rewrite.template)
            self.insert(rewrite)
        self.redirect()
        self.erase()

    def erase(self) -> None:
        """Erase all that is dead, readers before what they read."""
        ready = [node for node in self.dead if not node.users]
        while ready:
            node = ready.pop()
            inputs = node.all_input_nodes
            self.graph.erase_node(node)
            ready += [n for n in inputs if not n.users and n in self.dead]

    def current(self, arg: Argument) -> Argument:
        """An argument in terms of what is there now."""
        if not isinstance(arg, Node):
            return arg if type(arg) in LEAVES else map_arg(arg, self.current)
        if arg not in self.new:
            return arg
        trail = []
        found: Argument = arg
        while isinstance(found, Node) and found in self.new:
            trail.append(found)
            found = self.new[found]
        for node in trail[:-1]:
            self.new[node] = found
        return found

    def insert(self, rewrite: Rewrite) -> None:
        """Copy the template of one rewrite to its place.

        The placeholders of the template become what is matched by those of
        the pattern, or what an earlier rewrite has put there (`current`). The
        nodes made are noted in `rewrite.made`, what the match returned is
        replaced by the template's output, and the nodes matched are dead.
        """
        raise NotImplementedError("stage 07: Edit.insert")

    def replace(self, old: Argument, new: Argument) -> None:
        """From now on, `new` is read where `old` was."""
        if old is new or not isinstance(old, Node):
            return
        self.new[old] = new
        if isinstance(new, Node):
            readers = self.also_read.setdefault(new, [])
            readers.extend(self.readers(old))

    def readers(self, node: Node) -> Iterator[Node]:
        """The readers of a node that are here to stay."""
        for user in (*node.users, *self.also_read.get(node, ())):
            if user not in self.dead:
                yield user

    def place(self, rewrite: Rewrite) -> Node:
        """The node before which the new ones go."""
        returned = [
            node
            for node in rewrite.match.returning_nodes
            if isinstance(node, Node)
        ]
        if rewrite.stay:
            return max(rewrite.operations).next
        if len(returned) > 1:
            self.make_way(rewrite)
        readers = [one for node in returned for one in self.readers(node)]
        if not readers:
            return max(returned).next
        first = min(readers) if len(readers) > 1 else readers[0]
        if len(returned) > 1 and first < _last_input(rewrite):
            # Readers inside of the match will be gone: they do not count.
            inside = set(rewrite.operations)
            outside = [node for node in readers if node not in inside]
            return min(outside, default=max(returned).next)
        return first

    def make_way(self, rewrite: Rewrite) -> None:
        """Move readers that come too early behind the last input."""
        cursor = _last_input(rewrite)
        for node in _late_readers(rewrite, self.dead):
            cursor.append(node)
            cursor = node

    def redirect(self) -> None:
        """Have each reader of what was replaced read what is there now."""
        hooks = self.gm._replace_hooks  # noqa: SLF001
        readers: dict[Node, None] = {}
        for old in self.new:
            for reader in old.users:
                if reader in self.dead:
                    continue
                readers[reader] = None
                for hook in hooks:
                    hook(old=old, new=str(self.current(old)), user=reader)
        for reader in readers:
            reader.args = tuple([self.current(arg) for arg in reader.args])
            if reader.kwargs:
                reader.kwargs = map_arg(reader.kwargs, self.current)


def show_inputs(rewrite: Rewrite, values: list[Value]) -> None:
    """Show in a match what its inputs are now."""
    paired = rewrite.match.nodes_map
    for node, value in zip(rewrite.inputs, values, strict=True):
        if node in paired:
            paired[node] = value
    rewrite.match.placeholder_nodes[:] = values


def _take_over(gm: GraphModule, made: Template) -> None:
    """Put what a template needs into the module: copies, each once."""
    for path, found in made.needed.items():
        target = made.renamed.get(path, path)
        if _look_up(gm, target) is not None:
            continue
        new = copy.deepcopy(found)
        if isinstance(new, nn.Module):
            gm.add_submodule(target, new)
        else:
            dotted_path.assign(gm, target, new)


def _carry_meta(rewrite: Rewrite, outputs: list[Argument]) -> None:
    """Give the new nodes what is known of the replaced ones."""
    old = rewrite.match.operations()
    names = tuple(node.name for node in old)
    known = {
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


# -- places ------------------------------------------------------------------


def _first_reader(match: InternalMatch) -> Node | None:
    """The first reader of what a match returns."""
    readers = [
        reader
        for node in match.returning_nodes
        if isinstance(node, Node)
        for reader in node.users
    ]
    return min(readers, default=None)


def _last_input(rewrite: Rewrite) -> Node:
    """The last node that a replacement reads; the sentinel if none."""
    found: list[Node] = []
    made, values = rewrite.template, rewrite.match.placeholder_nodes
    for one, value in zip(made.placeholders, values, strict=True):
        if one.users:
            map_arg(value, found.append)
    graph = rewrite.operations[0].graph
    return max(found, default=next(iter(graph.nodes)).prev)


def _late_readers(rewrite: Rewrite, dead: Container[Node] = ()) -> list[Node]:
    """What reads the match's values before all its inputs are there.

    With all that depends on it up to there, in order. Nothing, if the match
    returns one value: then all inputs stand before it.
    """
    returned = rewrite.match.returning_nodes
    if len(returned) < 2:
        return []
    last = _last_input(rewrite)
    inside = set(rewrite.operations)
    rest = [node for node in returned if isinstance(node, Node)]
    late: set[Node] = set()
    while rest:
        for reader in rest.pop().users:
            if reader in inside or reader in dead or reader in late:
                continue
            if reader < last:
                late.add(reader)
                rest.append(reader)
    return sorted(late)
