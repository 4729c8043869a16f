"""Stage 07, rewriter: SubgraphMatcher, which finds a pattern in a graph.

Pattern and graph are both graphs.  Matching begins at an *anchor*, a node that
the pattern returns and does not use itself, paired with a candidate in the
graph.  From there it follows the operands up the use-def chains of both graphs
at once: a value may have many users, but it has one producer, so there is only
one way to go.

    pattern   x ── relu ── add        anchor: add, paired with add_7
    graph     … ── relu_3 ── add_7    then relu with relu_3, then x with …

Two nodes can be paired if op, target and arguments agree; a placeholder of the
pattern takes anything.  The matched nodes will be erased, so nodes that the
pattern does not return must not have users outside of the match.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias, Unpack

from ...graph import Graph
from ...node import Node
from ...rewriting.patterns import (
    Candidates,
    Exact,
    MatchOptions,
    PatternNode,
    PreparedPattern,
    check_options,
    equal_constants,
    prepare,
    side_by_side,
)
from ...use_def.arguments import holds_node
from ...use_def.errors import refuse_torchs
from ...use_def.values import AnyValue, Argument

__all__ = ["InternalMatch", "MatchOptions", "Mismatch", "SubgraphMatcher"]


class Mismatch(NamedTuple):
    """Why a try to match ended.

    Attributes:
        reason: what differs, in one clause.
        pattern: the pattern's side: a node or a constant.
        found: the graph's side.
        nodes_map: what had been paired until then.
    """

    reason: str
    pattern: Argument
    found: Argument
    nodes_map: dict[Node, AnyValue]


@dataclass
class InternalMatch:
    """A place where the pattern was found.

    Attributes:
        anchors: the nodes of the pattern where matching began.
        nodes_map: node of the pattern -> node of the graph; a placeholder
            may also stand for a constant or a list.
        placeholder_nodes: what the pattern's inputs stand for, in order;
            None for an input that the pattern does not use.
        returning_nodes: the nodes of the graph for what the pattern returns.
        name_node_map: for subclasses that give nodes names; empty here.

    torch.fx: passes/utils/matcher_utils.py, InternalMatch
    """

    anchors: list[Node]
    nodes_map: dict[Node, AnyValue] = field(default_factory=dict)
    placeholder_nodes: list[AnyValue] = field(default_factory=list)
    returning_nodes: list[AnyValue] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self) -> InternalMatch:
        """A match with its own map and lists, but the same `anchors`."""
        return InternalMatch(
            self.anchors,
            self.nodes_map.copy(),
            self.placeholder_nodes.copy(),
            self.returning_nodes.copy(),
        )

    def operations(self) -> list[Node]:
        """The nodes of the graph that the match consists of."""
        return [
            found
            for sought, found in self.nodes_map.items()
            if sought.op not in ("placeholder", "output")
        ]


class SubgraphMatcher:
    """Finds all places in a graph that look like a pattern.

    Attributes:
        pattern: the pattern.
        pattern_anchors: what it returns and does not use itself; the output
            node if that is to be matched.
        pattern_placeholder_nodes: its inputs.
        pattern_returning_nodes: what it returns, each node once.

    torch.fx: passes/utils/matcher_utils.py, SubgraphMatcher
    """

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
        **options: Unpack[MatchOptions],
    ) -> None:
        """Prepare a pattern for matching.

        Args:
            pattern: what to look for; if it is of torch.fx, it is converted.
            match_output: the output must be paired with the output.
            match_placeholder: a placeholder matches placeholders and
                constants, instead of anything.
            remove_overlapping_matches: of matches that share nodes, keep the
                first.
            ignore_literals: a constant in the pattern matches any constant.
            options: see `MatchOptions`.

        Raises:
            ValueError: the pattern is empty.
            AssertionError: it has dead code, or no output.
            TypeError: there is no option of that name.

        Cost: O(size of the pattern · values that it returns).

        torch.fx: passes/utils/matcher_utils.py, SubgraphMatcher
        """
        pattern = as_ours(pattern)
        if len(pattern.nodes) == 0:
            raise ValueError(
                "SubgraphMatcher cannot be initialized with an empty pattern: "
                "it needs at least an output"
            )
        for node in pattern.nodes:
            if node.op != "output" and not node.users and not node.is_impure():
                raise AssertionError(
                    "SubgraphMatcher cannot be initialized with a pattern with "
                    f"dead code: nothing uses {node}. Remove it, as "
                    "pattern.eliminate_dead_code() does, or return it"
                )
        check_options(options)
        self.pattern = pattern
        self.match_output = match_output
        self.match_placeholder = match_placeholder
        self.remove_overlapping_matches = remove_overlapping_matches
        self.ignore_literals = ignore_literals
        self.options = options
        self.prepared: PreparedPattern = prepare(
            pattern,
            SubgraphMatcher.comparing(options),
            match_output=match_output,
            match_placeholder=match_placeholder,
        )
        self.pattern_anchors: list[Node] = self.prepared.anchors
        self.pattern_placeholder_nodes: list[Node] = self.prepared.placeholders
        self.pattern_returning_nodes: list[Node] = self.prepared.returning

    @staticmethod
    def comparing(options: MatchOptions) -> Exact:
        """What compares two calls; `import fx` puts here what options ask."""
        return Exact()

    def match(
        self, graph: Graph, node_name_match: str = ""
    ) -> list[InternalMatch]:
        """Find the pattern in a graph.

        Args:
            graph: in an order in which it can run.
            node_name_match: an anchor may also be paired with a node that
                has this text in its name, whatever that node calls.

        Returns:
            The matches, by the place of their first anchor. Each is contained
            (nodes that the pattern does not return have no users outside) and
            convex (no path leaves the match and comes back).

        Cost: O(nodes + candidates · size of the pattern); for a pattern of
        unconnected parts, O(product of their candidates) at worst.

        torch.fx: passes/utils/matcher_utils.py, SubgraphMatcher.match
        """
        refuse_torchs(graph)
        return list(Search(self, graph, node_name_match).matches())

    def mismatches(self, graph: Graph) -> list[Mismatch]:
        """Why each failed try to match failed, in order.

        Cost: as `match`, with every candidate tried.
        """
        search = Search(self, graph, keep=True)
        for _ in search.matches():
            pass
        return search.mismatches

    def match_at(self, graph: Graph, node: Node) -> InternalMatch | None:
        """The match whose anchor is paired with `node`, if there is one.

        Raises:
            ValueError: the pattern has several anchors.
        """
        (anchor,) = self.pattern_anchors
        search = Search(self, graph)
        return search.found() if search.match_from(anchor, node) else None


Comparison: TypeAlias = tuple[Argument, Argument]
"""An argument of the pattern, and one of the graph to compare it with."""


class Search:
    """One run of a matcher over one graph.

    Attributes:
        nodes_map: node of the pattern -> its partner in the graph, so far.
        partners: the nodes of the graph that are paired.
        stack: what is still to be compared, the next last.
        choices: the other ways to go on: what would be to be compared, and
            how many nodes were paired at that point.
        taken: the nodes of earlier matches.
        mismatches: why tries failed, if these are kept.
        before: what `moves_across` remembers of the graph.
    """

    def __init__(
        self,
        matcher: SubgraphMatcher,
        graph: Graph,
        name: str = "",
        *,
        keep: bool = False,
    ) -> None:
        """Prepare to look for the matcher's pattern.

        Args:
            matcher: what to look for, and how.
            graph: where.
            name: the `node_name_match` of `SubgraphMatcher.match`.
            keep: remember why tries failed.
        """
        self.matcher = matcher
        self.pattern: PreparedPattern = matcher.prepared
        self.graph = graph
        self.name = name
        self.keep = keep
        self.nodes_map: dict[Node, AnyValue] = {}
        self.partners: set[Node] = set()
        self.stack: list[Comparison] = []
        self.choices: list[tuple[list[Comparison], int]] = []
        self.taken: set[Node] = set()
        self.mismatches: list[Mismatch] = []
        self.before: Mapping[Node, AnyValue] = {}

    def matches(self) -> Iterator[InternalMatch]:
        """All matches: each way to pair all anchors, in order."""
        anchors = self.pattern.anchors
        candidates = Candidates(
            self.pattern, self.graph, self.name, exhaustive=self.keep
        )
        if not anchors or not all(candidates.pools):
            return
        unique = self.matcher.remove_overlapping_matches
        # An input may stand for a node that an earlier match took.
        free = [self.pattern.nodes[anchor].wildcard for anchor in anchors]
        levels = [iter(candidates.pools[0])]
        marks = [0]
        while levels:
            self.backtrack(marks[-1])
            node = next(levels[-1], None)
            if node is None:
                levels.pop()
                marks.pop()
                continue
            place = len(levels)
            if unique and node in self.taken and not free[place - 1]:
                continue
            if not self.match_from(anchors[place - 1], node):
                continue
            if place < len(anchors):
                near = candidates.near(place, self.nodes_map)
                levels.append(iter(near))
                marks.append(len(self.nodes_map))
                continue
            match = self.found()
            if match is not None:
                yield match
                if unique:
                    self.taken.update(match.operations())
                    # Go on at the first anchor whose node is taken now.
                    level = len(free) if all(free) else free.index(False) + 1
                    del levels[level:], marks[level:]

    def match_from(self, anchor: Node, node: Node) -> bool:
        """Pair an anchor with a node, and in turn all that they depend on.

        Where operands may be exchanged, the other order is tried if the first
        one fails.
        """
        raise NotImplementedError("stage 07: Search.match_from")

    def match_node(self, sought: Node, found: Node) -> str:
        """Pair two nodes and put their arguments on the stack.

        A node has one partner. A wildcard takes any node, whatever that
        node's arguments are. Otherwise both must be the same call, and the
        node found must have no more users than the pattern allows. An operation
        that commutes, in both graphs, adds a choice, with its operands
        exchanged; but not if a third argument, such as `alpha`, belongs to one
        of them, or if the two are paired for a name alone.

        Args:
            sought: a node of the pattern. If it is an anchor, a node that has
                the name asked for may make another call.
            found: a node of the graph.

        Returns:
            "" if they are paired, or why they cannot be: "x is y already",
            "y is paired with another node of the pattern", what `_difference`
            says, or "y has users outside of the match".
        """
        raise NotImplementedError("stage 07: Search.match_node")

    def compare(self, sought: Argument, found: Argument) -> str:
        """Compare two arguments of which at most one is a node.

        Lists and tuples are compared item by item, other containers as
        constants; that is the rule of torch.fx. Any placeholder takes a
        constant; if it is met again, it must have its first value, or an equal
        one (`equal_constants`).

        Returns:
            "" if they match, or why they do not: "add is not 3" for a node of
            the pattern, "3 items instead of 2" (found, sought), or "3 instead
            of 2" (likewise). Values are written by `repr`: "x is not 'sum'".
        """
        if isinstance(sought, Node):
            if sought.op == "placeholder":
                known = self.nodes_map.setdefault(sought, found)
                if known is found or equal_constants(known, found):
                    return ""
            return f"{sought} is not {found!r}"
        if isinstance(sought, (list, tuple)) and isinstance(
            found, (list, tuple)
        ):
            if len(sought) != len(found):
                return f"{len(found)} items instead of {len(sought)}"
            self.stack += reversed(list(zip(sought, found, strict=True)))
            return ""
        if self.matcher.ignore_literals and not holds_node((sought, found)):
            return ""
        if not isinstance(found, Node) and equal_constants(sought, found):
            return ""
        return f"{found!r} instead of {sought!r}"

    def commutes(self, asked: PatternNode, found: Node) -> bool:
        """Whether the operands of a pair of nodes may be exchanged.

        The graph is asked, too: what looks like the pattern's sum may join
        tuples there.
        """
        return asked.commutes and self.pattern.comparison.commutes(found)

    def named(self, sought: Node, found: Node) -> bool:
        """Whether a node may be paired with an anchor for its name alone."""
        return (
            bool(self.name)
            and self.name in found.name
            and sought in self.pattern.anchors
        )

    def bind(self, sought: Node, found: Node) -> None:
        """Pair two nodes."""
        self.nodes_map[sought] = found
        self.partners.add(found)

    def backtrack(self, mark: int) -> None:
        """Undo all pairs but the first `mark`."""
        paired = self.nodes_map
        while len(paired) > mark:
            _, found = paired.popitem()
            if isinstance(found, Node):
                self.partners.discard(found)

    def note(self, reason: str, sought: Argument, found: Argument) -> None:
        """Remember why a try failed, if that is wanted."""
        if self.keep:
            paired = dict(self.nodes_map)
            self.mismatches.append(Mismatch(reason, sought, found, paired))

    # -- what is found -----------------------------------------------------

    def found(self) -> InternalMatch | None:
        """The match, if all that is paired can be taken out of the graph."""
        paired, pattern = self.nodes_map, self.pattern
        match = InternalMatch(
            list(pattern.anchors),
            dict(paired),
            [paired.get(node) for node in pattern.placeholders],
            [paired[node] for node in pattern.returning],
        )
        problem = self.obstacle(match) or pattern.comparison.conflict(paired)
        if not problem:
            return match
        self.note(problem, pattern.anchors[0], None)
        return None

    def obstacle(self, match: InternalMatch) -> str:
        """Why the nodes of a match cannot be taken out; "" if they can.

        Returns:
            "it shares nodes with an earlier match", "a value leaves the match
            and comes back into it" if it is not convex, or, if mutations are
            to be respected, what `moves_across` says.
        """
        inside = set(match.operations())
        if not self.taken.isdisjoint(inside):
            return "it shares nodes with an earlier match"
        if len(self.pattern.returning) > 1 and not is_convex(inside):
            return "a value leaves the match and comes back into it"
        if self.matcher.options.get("respect_mutations", False):
            return self.moves_across(inside)
        return ""

    def moves_across(self, inside: set[Node]) -> str:
        """Why a write and a read would change places; "" if they would not.

        `import fx` puts a method here that knows which calls write.
        """
        return ""


def is_convex(nodes: set[Node]) -> bool:
    """Whether no path along users leaves a set of nodes and comes back.

    None leaves an empty set: a match of inputs alone.

    Cost: O(nodes between the first and the last of the set, and their uses).
    """
    raise NotImplementedError("stage 07: is_convex")


def _exchanged(pairs: list[Comparison]) -> list[Comparison]:
    """Two pairs, with the graph's operands exchanged."""
    (second, found_second), (first, found_first) = pairs
    return [(second, found_first), (first, found_second)]


def _difference(sought: Node, found: Node) -> str:
    """What two calls that are not the same differ in."""
    if (sought.op, sought.target) == (found.op, found.target):
        return "other arguments, or other constants"
    return "another operation"


CONVERTERS: Final[dict[type, Callable[[AnyValue], AnyValue]]] = {}
"""Class of torch.fx -> what makes the same of fx of an instance, to be read;
the package root fills it in."""


def as_ours(found: AnyValue) -> AnyValue:
    """A graph or module of torch.fx as one of fx, to be read; else as it is.

    Raises:
        TypeError: it is of torch.fx, and cannot be converted.

    Cost: O(1); of what is converted, O(nodes + size of their arguments).
    """
    for kind, convert in CONVERTERS.items():
        if isinstance(found, kind):
            return convert(found)
    refuse_torchs(found)
    return found
