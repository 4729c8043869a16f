"""Stage 07, rewriter: apply rewrite rules until none of them matches.

`replace_pattern` replaces the matches that exist when it is called, and leaves
those that its own replacements create.  `rewrite_until_stable` looks again, but
only where something has changed: a *worklist* holds the nodes at which a match
may end, and each rewrite puts back the nodes that it may affect.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from ..graph_module import GraphModule
from ..node import Node, map_arg
from ..subgraph_rewriter import (
    MatchFilter,
    RewriteOptions,
    matcher_for,
    plan_rewrites,
)
from .replacing import Edit, update_value_meta
from .snapshot import Snapshot
from .templates import MakeReplacement, Program, Rewrite, template_maker


class AnyRule(ABC):
    """A `Rule`, or a function of a node: see `node_rules.py`."""

    options: RewriteOptions

    @abstractmethod
    def prepare(self, worklist: Worklist) -> Callable[[Node], bool]:
        """A function that applies the rule at a node, and says if it did."""


@dataclass
class Rule(AnyRule):
    """A pattern and its replacement: see `replace_pattern`.

    Attributes:
        pattern: a function, module or graph.
        replacement: another; None if `make` is given.
        make: makes the replacement for each match instead, like the
            `replacement_callback` of `replace_pattern_with_filters`.
        filters: a match is replaced if all of them answer True.
        options: see `RewriteOptions`.
        name: its name in messages.
    """

    pattern: Program
    replacement: Program | None = None
    make: MakeReplacement | None = None
    filters: Sequence[MatchFilter] = ()
    options: RewriteOptions = field(default_factory=RewriteOptions)
    name: str = ""

    def __str__(self) -> str:
        """Its name, or its pattern's."""
        return self.name or getattr(self.pattern, "__name__", "a rule")

    def prepare(self, worklist: Worklist) -> Callable[[Node], bool]:
        """A function that applies the rule at a node, and says if it did.

        The pattern is checked now, the replacement at the first match.

        Raises:
            ValueError: the pattern has several anchors, or no operation.
        """
        gm = worklist.gm
        matcher = matcher_for(self.pattern, False, self.options)
        anchors = len(matcher.pattern_anchors)
        if anchors != 1:
            raise ValueError(
                f"the pattern of {self} has {anchors} anchors; "
                "rewrite_until_stable needs exactly one value that the "
                "pattern returns and does not read itself"
            )
        make = template_maker(gm, matcher, self.replacement, self.make)
        worklist.reach = max(worklist.reach, len(matcher.prepared.nodes))
        afar = self.filters or self.options.get("respect_mutations")
        worklist.looks_afar |= bool(afar)

        def apply(node: Node) -> bool:
            match = matcher.match_at(gm.graph, node)
            if match is None or not all(
                wanted(match, gm.graph, matcher.pattern)
                for wanted in self.filters
            ):
                return False
            for rewrite in plan_rewrites(gm, matcher, [match], make):
                carry = self.options.get("carry_meta", False)
                edit = Edit(gm, carry_meta=carry)
                edit.apply([rewrite])
                for erased in edit.dead:
                    worklist.waiting.pop(erased, None)
                worklist.look_again(rewrite, edit)
                return True
            return False

        return apply


class DoesNotEndError(RuntimeError):
    """The rules still matched after `max_rewrites`; the graph is unchanged."""


def rewrite_until_stable(
    gm: GraphModule, rules: Iterable[AnyRule], max_rewrites: int = 100_000
) -> int:
    """Apply rules, in order of preference, until none applies anywhere.

    Args:
        gm: the module to rewrite, in place; recompiled at the end.
        rules: at each node the first that matches is applied. A pattern has
            one anchor: a node that it returns and does not use itself. A
            function of a node is made a rule by `rewriter.rewrite`.
        max_rewrites: after more, the rules are assumed never to end.

    Returns:
        How many rewrites were made.

    Raises:
        DoesNotEndError: there were more than `max_rewrites`.
        ValueError: a pattern has several anchors, or no operation.
        What `replace_pattern` raises. In each case `gm` is as it was.

    Cost: O(nodes + uses + (nodes + rewrites) · rules · size of the largest
    pattern, and of the users of new nodes); with filters, functions or
    `respect_mutations` that again for each round that rewrites something.
    """
    with Snapshot(gm) as before:
        rules = [*rules]
        count = Worklist(gm, rules).run(max_rewrites)
        update_value_meta(before, gm, [rule.options for rule in rules])
        gm.recompile()
    return count


class Worklist:
    """The nodes at which a match may end.

    Attributes:
        ready: each rule, with what applies it at a node.
        reach: the number of nodes of the largest pattern.
        looks_afar: a rule may look at other parts of the graph.
        waiting: the nodes, in the order in which they are looked at.
    """

    def __init__(self, gm: GraphModule, rules: Iterable[AnyRule]) -> None:
        """Begin with all nodes."""
        self.gm = gm
        self.reach: int = 0
        self.looks_afar: bool = False
        ready = [(rule, rule.prepare(self)) for rule in rules]
        self.ready: list[tuple[AnyRule, Callable[[Node], bool]]] = ready
        self.waiting: dict[Node, None] = dict.fromkeys(gm.graph.nodes)

    def run(self, max_rewrites: int) -> int:
        """Apply rules until no node is waiting; count the rewrites.

        A filter, a function, or an effect between the nodes of a match may
        refuse it for what is elsewhere in the graph. With such rules all nodes
        wait again, until that brings no rewrite.
        """
        count = before = 0
        while self.waiting:
            node = next(iter(self.waiting))
            del self.waiting[node]
            fitting = (rule for rule, fits in self.ready if fits(node))
            applied = next(fitting, None)
            count += applied is not None
            if count > max_rewrites:
                raise DoesNotEndError(
                    f"more than max_rewrites={max_rewrites} rewrites, the "
                    f"last by rule {applied} at node {node}: does a "
                    "replacement contain what a rule looks for? The graph is "
                    "as it was"
                )
            if self.looks_afar and not self.waiting and count > before:
                before = count
                self.waiting.update(dict.fromkeys(self.gm.graph.nodes))
        return count

    def look_again(self, done: Rewrite, edit: Edit) -> None:
        """Put back the nodes at which a match may end now, but did not before.

        A new match contains a node that is new, or has a new operand, or has
        lost a user. It ends at that node or downstream of it, at most as far
        as the largest pattern reaches.
        """
        touched: dict[Node, int] = dict.fromkeys(done.made, 0)

        def lost_a_user(node: Node) -> None:
            if len(node.users) <= self.reach:
                touched.setdefault(node, 0)

        map_arg(tuple(done.match.placeholder_nodes), lost_a_user)
        for new in edit.new.values():
            map_arg(new, lambda node: touched.setdefault(node, 0))
        rest = deque(touched)
        while rest:
            node = rest.popleft()
            self.waiting[node] = None
            depth = touched[node] + 1
            if depth < self.reach:
                for user in node.users:
                    if user not in touched:
                        touched[user] = depth
                        rest.append(user)
