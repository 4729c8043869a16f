"""Stage 07, rewriter: rules, applied until none of them finds anything.

One call of `replace_pattern` replaces what is there when it begins; what a
replacement brings about is left.  `rewrite_until_stable` looks again, but
only where something has changed: a *worklist* holds the nodes at which a
match could end, and each rewrite puts those back that it may concern.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg
from ..passes.utils.matcher_utils import InternalMatch, SubgraphMatcher
from ..subgraph_rewriter import (
    MakeReplacement,
    MakeTemplate,
    MatchFilter,
    RewriteOptions,
    matcher_for,
    plan_rewrites,
    template_maker,
)
from ..usedef.values import Value
from . import replacing
from .replacing import Edit, Undoable


@dataclass
class Rule:
    """What to look for and what to put there: see `replace_pattern`.

    Attributes:
        pattern: a function, module or graph.
        replacement: another; None if `make` is given.
        make: makes the replacement for a match, as `replacement_callback`.
        filters: a match is replaced if all of them answer True.
        options: see `RewriteOptions`.
        name: what messages call it.
    """

    pattern: Callable[..., Value] | Graph
    replacement: Callable[..., Value] | Graph | None = None
    make: MakeReplacement | None = None
    filters: Sequence[MatchFilter] = ()
    options: RewriteOptions = field(default_factory=RewriteOptions)
    name: str = ""

    def __str__(self) -> str:
        """Its name, or its pattern's."""
        return self.name or getattr(self.pattern, "__name__", "a rule")


class DoesNotEndError(RuntimeError):
    """Rules go on and on; the graph is as it was before the first of them."""


def rewrite_until_stable(
    gm: GraphModule, rules: Iterable[Rule], max_rewrites: int = 100_000
) -> int:
    """Apply rules, in order of preference, until none applies anywhere.

    Args:
        gm: the module to rewrite, in place; recompiled at the end.
        rules: at each node the first that matches is applied. A pattern has
            one anchor: something that it returns and only returns.
        max_rewrites: more are taken for a sign that the rules never end.

    Returns:
        How many rewrites were made.

    Raises:
        DoesNotEndError: there were more than `max_rewrites`.
        ValueError: a pattern has several anchors, or no operation.
        What `replace_pattern` raises. Whatever it is, `gm` is as it was.

    Cost: O(nodes + uses + (nodes + rewrites) · rules · size of the largest
    pattern, and of the readers of what is new).
    """
    with Undoable(gm):
        work = _Worklist(gm, [_Ready(gm, rule) for rule in rules])
        count = work.run(max_rewrites)
        gm.recompile()
    return count


class _Ready:
    """A rule, its matcher and replacement made once."""

    def __init__(self, gm: GraphModule, rule: Rule) -> None:
        """Trace and check pattern and replacement."""
        self.rule = rule
        self.matcher: SubgraphMatcher = matcher_for(
            rule.pattern, ignore_literals=False, options=rule.options
        )
        if len(self.matcher.pattern_anchors) != 1:
            raise ValueError(
                f"the pattern of {rule} has "
                f"{len(self.matcher.pattern_anchors)} anchors; "
                "rewrite_until_stable needs exactly one value that the "
                "pattern returns and does not read itself"
            )
        self.make: MakeTemplate = template_maker(
            gm, self.matcher, rule.replacement, rule.make
        )
        self.size = len(self.matcher.plan.steps)

    def match(self, gm: GraphModule, node: Node) -> InternalMatch | None:
        """The match that ends at a node, if there is one."""
        found = self.matcher.match_at(gm.graph, node)
        if found is None:
            return None
        sought = self.matcher.pattern
        fits = all(ask(found, gm.graph, sought) for ask in self.rule.filters)
        return found if fits else None


class _Worklist:
    """The nodes at which a match may end, in the order of their coming."""

    def __init__(self, gm: GraphModule, rules: list[_Ready]) -> None:
        """Begin with all nodes."""
        self.gm = gm
        self.rules = rules
        self.reach = max((rule.size for rule in rules), default=0)
        self.waiting = dict.fromkeys(gm.graph.nodes)

    def run(self, max_rewrites: int) -> int:
        """Apply rules until nothing is left to look at."""
        count = 0
        gone: set[Node] = set()
        while self.waiting:
            node = next(iter(self.waiting))
            del self.waiting[node]
            applied = None if node in gone else self.apply(node, gone)
            count += applied is not None
            if count > max_rewrites:
                raise DoesNotEndError(
                    f"more than max_rewrites={max_rewrites} rewrites, the "
                    f"last by rule {applied} at node {node}: does a "
                    "replacement contain what a rule looks for? The graph is "
                    "as it was"
                )
        return count

    def apply(self, node: Node, gone: set[Node]) -> Rule | None:
        """Apply the first rule that matches at a node; which one it was."""
        for ready in self.rules:
            match = ready.match(self.gm, node)
            if match is None:
                continue
            rewrites = plan_rewrites(
                self.gm, ready.matcher, [match], ready.make
            )
            if not rewrites:
                continue
            carry = ready.rule.options.get("carry_meta", False)
            edit = Edit(self.gm, carry_meta=carry)
            edit.apply(rewrites)
            gone.update(edit.dead)
            self.look_again(rewrites[0], edit)
            return ready.rule
        return None

    def look_again(self, done: replacing.Rewrite, edit: Edit) -> None:
        """Put back the nodes that may match now, and did not before.

        A match that is new has a new node in it, or one that has lost a
        reader: it ends at most a pattern's size below.
        """
        raise NotImplementedError("stage 07: _Worklist.look_again")
