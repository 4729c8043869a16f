"""Stage 07, rewriter: SubgraphMatcher, which finds a pattern in a graph.

Both the pattern and what is searched are graphs.  Matching begins at an
*anchor*, something that the pattern returns and only returns, and climbs from
there to the inputs, in both graphs at once: a value may have many readers but
has one producer, so that upwards there is one way.

    pattern   x ── relu ── add        anchor: add, paired with add_7
    graph     … ── relu_3 ── add_7    then relu with relu_3, then x with …

A pair fits if op, target and arguments agree; a placeholder of the pattern
takes anything.  What the pattern does not return must have no readers outside
of the match, for it will be gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypedDict, Unpack

from ...graph import Graph
from ...node import Node
from ...rewriting.call_forms import Normalized
from ...rewriting.pattern_steps import Exact, Plan, Route, Step, plan
from ...usedef.values import Argument, Value

__all__ = ["InternalMatch", "MatchOptions", "Mismatch", "SubgraphMatcher"]


class MatchOptions(TypedDict, total=False):
    """Ways to match that torch.fx does not have; all are off by default.

    Attributes:
        normalize: calls are the same if they mean the same: `x + y`,
            `torch.add(x, y)` and `x.add(y)`; arguments by position or by
            keyword, defaults left out or not; `x * 2` and `2 * x`.
        compare_constants: tensors that the pattern fetches must equal those
            of the graph, in dtype, shape and value.
        modules_by_class: a module of the pattern matches every module of its
            class, whatever its path, settings and weights.
        respect_mutations: a match does not reach across a node that writes
            to a tensor, and is not moved across one.
    """

    normalize: bool
    compare_constants: bool
    modules_by_class: bool
    respect_mutations: bool


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
    nodes_map: dict[Node, Value]


@dataclass
class InternalMatch:
    """A place where the pattern is found.

    Attributes:
        anchors: the nodes of the pattern where matching began.
        nodes_map: node of the pattern -> node of the graph; a placeholder
            may stand for a constant or a list, too.
        placeholder_nodes: what the pattern's inputs stand for, in order;
            None for an input that the pattern does not use.
        returning_nodes: the nodes of the graph for what the pattern returns.
        name_node_map: for those who give nodes names; empty here.

    torch.fx: passes/utils/matcher_utils.py, InternalMatch
    """

    anchors: list[Node]
    nodes_map: dict[Node, Value] = field(default_factory=dict)
    placeholder_nodes: list[Value] = field(default_factory=list)
    returning_nodes: list[Value] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self) -> InternalMatch:
        """A match whose containers can be changed apart from this one's."""
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
        pattern_anchors: what it returns and only returns; the output itself
            if that is to be matched.
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
        """Take the pattern apart.

        Args:
            pattern: what to look for.
            match_output: the output must be paired with the output.
            match_placeholder: a placeholder matches placeholders only,
                instead of anything.
            remove_overlapping_matches: of matches that share nodes, keep the
                first.
            ignore_literals: constants in the pattern match anything.
            options: see `MatchOptions`.

        Raises:
            ValueError: the pattern is empty.
            AssertionError: it has dead code, or no output.

        Cost: O(size of the pattern · values that it returns).

        torch.fx: passes/utils/matcher_utils.py, SubgraphMatcher
        """
        _check_pattern(pattern)
        self.pattern = pattern
        self.match_output = match_output
        self.match_placeholder = match_placeholder
        self.remove_overlapping_matches = remove_overlapping_matches
        self.ignore_literals = ignore_literals
        self.options = options
        self.spelling: Normalized | Exact = (
            Normalized(
                normalize=options.get("normalize", False),
                compare_constants=options.get("compare_constants", False),
                modules_by_class=options.get("modules_by_class", False),
            )
            if any(options.values())
            else Exact()
        )
        self.plan: Plan = plan(
            pattern,
            self.spelling,
            match_output=match_output,
            match_placeholder=match_placeholder,
        )
        self.pattern_anchors: list[Node] = self.plan.anchors
        self.pattern_placeholder_nodes: list[Node] = self.plan.placeholders
        self.pattern_returning_nodes: list[Node] = self.plan.returning

    def match(
        self, graph: Graph, node_name_match: str = ""
    ) -> list[InternalMatch]:
        """Find the pattern in a graph.

        Args:
            graph: in an order in which it can run.
            node_name_match: an anchor may also be paired with a node whose
                name has this text in it, whatever that does.

        Returns:
            The matches, by the place of their first anchor. In each, what is
            not returned has no readers outside, and no way leads out of the
            match and back into it.

        Cost: O(nodes + candidates · size of the pattern); for a pattern that
        falls into unconnected parts, O(product of their candidates) at worst.

        torch.fx: passes/utils/matcher_utils.py, SubgraphMatcher.match
        """
        return list(_Search(self, graph, node_name_match).matches())

    def mismatches(
        self, graph: Graph, node_name_match: str = ""
    ) -> list[Mismatch]:
        """Why each try to match that failed did so, in order.

        Cost: as `match`.
        """
        search = _Search(self, graph, node_name_match, keep=True)
        for _ in search.matches():
            pass
        return search.mismatches

    def match_at(self, graph: Graph, node: Node) -> InternalMatch | None:
        """The match whose first anchor is paired with `node`, if any."""
        search = _Search(self, graph, "", only=node)
        return next(search.matches(), None)


def _check_pattern(pattern: Graph) -> None:
    """Raise if nothing can be matched with a pattern."""
    if len(pattern.nodes) == 0:
        raise ValueError(
            "SubgraphMatcher cannot be initialized with an empty pattern: "
            "it needs at least an output"
        )
    for node in pattern.nodes:
        if node.op != "output" and not node.users and not node.is_impure():
            raise AssertionError(
                "SubgraphMatcher cannot be initialized with an pattern with "
                f"dead code: nothing uses {node}. Remove it, as "
                "pattern.eliminate_dead_code() does, or return it"
            )


_UNBOUND: Final = object()
"""Not yet paired; None may be what a placeholder stands for."""


class _Search:
    """One run of a matcher over one graph."""

    def __init__(
        self,
        matcher: SubgraphMatcher,
        graph: Graph,
        node_name_match: str,
        *,
        keep: bool = False,
        only: Node | None = None,
    ) -> None:
        """Prepare to look for the matcher's pattern.

        Args:
            matcher: what to look for, and how.
            graph: where.
            node_name_match: see `SubgraphMatcher.match`.
            keep: remember why tries failed.
            only: the first anchor is paired with this node.
        """
        self.matcher = matcher
        self.plan: Plan = matcher.plan
        self.graph = graph
        self.name = node_name_match
        self.only = only
        self.keep = keep
        self.mismatches: list[Mismatch] = []
        self.taken: set[Node] = set()
        self.effects: dict[Node, int] | None = None
        self.nodes_map: dict[Node, Value] = {}
        self.partners: set[Node] = set()

    # -- anchors -----------------------------------------------------------

    def matches(self) -> Iterator[InternalMatch]:
        """All matches: each way to pair all anchors, in order."""
        anchors = self.plan.anchors
        pools = self.pools()
        if not anchors or not all(pools):
            return
        unique = self.matcher.remove_overlapping_matches
        levels = [iter(pools[0])]
        marks = [0]
        while levels:
            self.back_to(marks[-1])
            node = next(levels[-1], None)
            if node is None:
                levels.pop()
                marks.pop()
                continue
            if unique and node in self.taken:
                continue
            if not self.climb(anchors[len(levels) - 1], node):
                continue
            if len(levels) < len(anchors):
                marks.append(len(self.nodes_map))
                levels.append(iter(self.candidates(len(levels), pools)))
                continue
            match = self.found()
            if match is not None:
                yield match
                if unique:
                    self.taken.update(match.operations())
                    del levels[1:], marks[1:]

    def pools(self) -> list[list[Node]]:
        """For each anchor, the nodes of the graph that it may be paired with.

        All empty if some node of the pattern has no possible partner at all.
        """
        plan, spelling = self.plan, self.matcher.spelling
        nodes = self.graph.nodes if self.only is None else (self.only,)
        buckets: dict[object, list[Node]] = {
            step.key: [] for step in plan.steps.values() if not step.wildcard
        }
        key_of = spelling.key
        for node in nodes:
            try:
                bucket = buckets.get(key_of(node))
            except TypeError:  # a target that cannot be hashed
                continue
            if bucket is not None:
                bucket.append(node)
        complete = self.only is not None or all(buckets.values())
        if not complete and not self.name and not self.keep:
            return [[] for _ in plan.anchors]
        return [self.pool(plan.steps[one], buckets) for one in plan.anchors]

    def pool(self, step: Step, buckets: dict[object, list[Node]]) -> list[Node]:
        """The nodes that one anchor may be paired with, in order."""
        if step.wildcard:
            return list(self.graph.nodes)
        if not self.name:
            return self.by_rarest(step, buckets)
        equal = set(buckets[step.key])
        return [
            node
            for node in self.graph.nodes
            if node in equal or self.named(node)
        ]

    def by_rarest(
        self, anchor: Step, buckets: dict[object, list[Node]]
    ) -> list[Node]:
        """The candidates for an anchor, from the rarest node that it needs.

        Where that is much rarer than the anchor itself, what is below it is
        all that can match.
        """
        found = buckets[anchor.key]
        routes = self.plan.rare_routes.get(anchor.node, [])
        if self.keep or self.only is not None or not routes:
            return found
        steps = self.plan.steps
        rarest = min(routes, key=lambda r: len(buckets[steps[r.start].key]))
        rare = buckets[steps[rarest.start].key]
        if 4 * len(rare) >= len(found):
            return found
        ends = {end for node in rare for end in self.below(node, rarest)}
        return sorted(ends)

    def candidates(self, place: int, pools: list[list[Node]]) -> list[Node]:
        """The nodes for a further anchor, given what is paired already."""
        route = self.plan.routes[place]
        start = None if route is None else self.nodes_map[route.start]
        if route is None or not isinstance(start, Node):
            pool = pools[place]
            if self.matcher.remove_overlapping_matches and self.taken:
                pool[:] = [node for node in pool if node not in self.taken]
            return pool
        return self.below(start, route)

    def below(self, start: Node, route: Route) -> list[Node]:
        """The nodes at the end of a route that begins at `start`, in order."""
        front: dict[Node, None] = {start: None}
        key_of = self.matcher.spelling.key
        for sought in route.path:
            key = self.plan.steps[sought].key
            last = sought is route.path[-1]
            front = {
                user: None
                for node in front
                for user in node.users
                if key_of(user) == key or (last and self.named(user))
            }
        return sorted(front)

    def named(self, node: Node) -> bool:
        """Whether a node may be paired with an anchor for its name alone."""
        return bool(self.name) and self.name in node.name

    # -- climbing ----------------------------------------------------------

    def climb(self, anchor: Node, node: Node) -> bool:
        """Pair an anchor with a node, and all that they need in turn.

        Where operands may be exchanged, the other order is tried if the
        first leads nowhere.
        """
        stack: list[tuple[Argument, Argument]] = [(anchor, node)]
        choices: list[_Choice] = []
        at_anchor = True
        while stack:
            sought, found = stack.pop()
            if isinstance(sought, Node) and isinstance(found, Node):
                problem = self.meet(sought, found, stack, choices, at_anchor)
            else:
                problem = self.compare(sought, found, stack)
            at_anchor = False
            if problem:
                if self.keep:
                    paired = dict(self.nodes_map)
                    why = Mismatch(problem, sought, found, paired)
                    self.mismatches.append(why)
                if not choices:
                    return False
                stack, mark = choices.pop()
                self.back_to(mark)
        return True

    def meet(
        self,
        sought: Node,
        found: Node,
        stack: list[tuple[Argument, Argument]],
        choices: list[_Choice],
        at_anchor: bool,
    ) -> str:
        """Pair two nodes and put their arguments on the stack.

        A node has one partner. A wildcard takes any node, arguments unseen.
        Else both are the same call, as the spelling says; and, unless
        literals are ignored (`obstacle` looks then), the node found has no
        more readers than its step of the plan allows.

        Args:
            sought: a node of the pattern.
            found: a node of the graph.
            stack: the pairs still to be compared, the next one last.
            choices: where the search can try another way: a stack, and how
                many nodes were paired when it was taken. An operation that
                commutes adds one, its operands exchanged.
            at_anchor: whether the two are where the search began; there, a
                node that is known by its name may be spelt in another way.

        Returns:
            Why they cannot be paired; "" if they are.
        """
        known = self.nodes_map.get(sought, _UNBOUND)
        if known is not _UNBOUND:
            return "" if known is found else f"{sought} is {known} already"
        if found in self.partners:
            return f"{found} is paired with another node of the pattern"
        step = self.plan.steps[sought]
        if step.wildcard:
            self.bind(sought, found)
            return ""
        pair = self.matcher.spelling.pair(sought, found)
        if pair is None and at_anchor and self.named(found):
            pair = _flat(sought, found)
        if pair is None or len(pair[0]) != len(pair[1]):
            return _difference(sought, found)
        loose = self.matcher.ignore_literals
        if 0 <= step.readers < len(found.users) and not loose:
            return f"{found} has readers outside of the match"
        self.bind(sought, found)
        pairs = list(zip(*pair, strict=True))
        pairs.reverse()
        if step.commutes and len(pairs) > 1:
            other = [*pairs[:-2], *_exchanged(pairs)]
            choices.append(([*stack, *other], len(self.nodes_map)))
        stack += pairs
        return ""

    def compare(
        self,
        sought: Argument,
        found: Argument,
        stack: list[tuple[Argument, Argument]],
    ) -> str:
        """Compare two arguments of which at most one is a node.

        Returns:
            Why they do not fit; "" if they do.
        """
        if isinstance(sought, Node):
            if sought.op == "placeholder":
                known = self.nodes_map.setdefault(sought, found)
                if known is found or _equal(known, found):
                    return ""
                if self.matcher.ignore_literals:
                    return ""
            return f"{sought} is not {found!r}"
        if isinstance(sought, (list, tuple)) and isinstance(
            found, (list, tuple)
        ):
            if len(sought) != len(found):
                return f"{len(found)} items instead of {len(sought)}"
            stack.extend(reversed(list(zip(sought, found, strict=True))))
            return ""
        if self.matcher.ignore_literals:
            return ""
        if not isinstance(found, Node) and _equal(sought, found):
            return ""
        return f"{found!r} instead of {sought!r}"

    def bind(self, sought: Node, found: Node) -> None:
        """Pair two nodes."""
        self.nodes_map[sought] = found
        self.partners.add(found)

    def back_to(self, mark: int) -> None:
        """Undo all pairs but the first `mark`."""
        paired = self.nodes_map
        while len(paired) > mark:
            _, found = paired.popitem()
            if isinstance(found, Node):
                self.partners.discard(found)

    # -- what is found -----------------------------------------------------

    def found(self) -> InternalMatch | None:
        """The match, if all that is paired can be taken out of the graph."""
        paired, plan = self.nodes_map, self.plan
        match = InternalMatch(list(plan.anchors), dict(paired))
        match.placeholder_nodes = [paired.get(p) for p in plan.placeholders]
        match.returning_nodes = [paired[node] for node in plan.returning]
        problem = self.obstacle(match)
        if not problem:
            return match
        if self.keep:
            why = Mismatch(problem, plan.anchors[0], None, match.nodes_map)
            self.mismatches.append(why)
        return None

    def obstacle(self, match: InternalMatch) -> str:
        """Why the paired nodes cannot be taken out; "" if they can.

        They cannot if one of them is in an earlier match; if, literals being
        ignored, one that the pattern does not return is read outside; if the
        pattern returns several values and one comes back into the match; or
        if mutations are to be respected and something writes in between.
        """
        operations = match.operations()
        inside = set(operations)
        if not self.taken.isdisjoint(inside):
            return "it shares nodes with an earlier match"
        if self.matcher.ignore_literals:
            for node in operations:
                leaks = not inside.issuperset(node.users)
                if leaks and node not in match.returning_nodes:
                    return f"{node} has readers outside of the match"
        if len(self.plan.returning) > 1 and _comes_back(inside):
            return "a value leaves the match and comes back into it"
        if self.matcher.options.get("respect_mutations", False):
            return self.written_between(inside)
        return ""

    def written_between(self, inside: set[Node]) -> str:
        """Whether something writes to tensors amid the nodes of a match."""
        if not inside:
            return ""
        if self.effects is None:
            self.effects = effects_before(self.graph)
        first, last = min(inside), max(inside)
        ours = sum(node is not last and _has_effect(node) for node in inside)
        if self.effects[last] - self.effects[first] > ours:
            return f"a node between {first} and {last} has an effect"
        return ""


def effects_before(graph: Graph) -> dict[Node, int]:
    """For each node, how many nodes before it have an effect.

    Cost: O(nodes).
    """
    count = 0
    counts = {}
    for node in graph.nodes:
        counts[node] = count
        count += _has_effect(node)
    return counts


def _has_effect(node: Node) -> bool:
    """Whether an operation is known to do more than compute its value."""
    return node.op.startswith("call") and node.is_impure()


_Choice = tuple[list[tuple[Argument, Argument]], int]
"""What else could be tried: the pairs to come, and how many were made."""


def _exchanged(
    pairs: list[tuple[Argument, Argument]],
) -> list[tuple[Argument, Argument]]:
    """The last two pairs with the graph's operands exchanged."""
    (second, found_second), (first, found_first) = pairs[-2:]
    return [(second, found_first), (first, found_second)]


def _flat(sought: Node, found: Node) -> tuple[list[Argument], list[Argument]]:
    """The arguments of two nodes that are paired for their names."""
    if [*sought.kwargs] != [*found.kwargs]:
        return [], [None]
    return (
        [*sought.args, *sought.kwargs.values()],
        [*found.args, *found.kwargs.values()],
    )


def _difference(sought: Node, found: Node) -> str:
    """What two calls that are not the same differ in."""
    if (sought.op, sought.target) == (found.op, found.target):
        return "other arguments, or other constants"
    return "another operation"


def _equal(sought: Argument, found: Argument) -> bool:
    """Whether two constants are of one type and equal."""
    if type(sought) is not type(found):
        return False
    same: Value = sought == found
    try:
        return bool(same)
    except (RuntimeError, ValueError):  # elementwise, as tensors compare
        return bool(same.all())


def _comes_back(inside: set[Node]) -> bool:
    """Whether a way leads out of a set of nodes and back in.

    It cannot come back behind the last of them: only what stands before that
    is looked at.
    """
    last = max(inside)
    seen: set[Node] = set()
    rest = list(_readers(inside, inside))
    while rest:
        node = rest.pop()
        if node in inside:
            return True
        if node not in seen and node < last:
            seen.add(node)
            rest.extend(node.users)
    return False


def _readers(nodes: Iterable[Node], but: set[Node]) -> Iterator[Node]:
    """The readers of some nodes, except some."""
    for node in nodes:
        for user in node.users:
            if user not in but:
                yield user
