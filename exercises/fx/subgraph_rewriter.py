"""Stage 07, rewriter: replace_pattern, which exchanges parts of a program.

    def pattern(x, y): return torch.relu(x + y)
    def replacement(x, y): return my_fused_kernel(x, y)

    replace_pattern(gm, pattern, replacement)

Three graphs take part: the module's own, and those of the pattern and of the
replacement, which are traced if they are not graphs yet.  First the matches
are found (`passes/utils/matcher_utils.py`) and the replacements are checked
(`rewriting/templates.py`); only then is the graph edited
(`rewriting/replacing.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, Unpack

from torch import nn

from .graph import Graph
from .graph_module import GraphModule
from .node import Node
from .passes.utils.matcher_utils import (
    InternalMatch,
    MatchOptions,
    SubgraphMatcher,
)
from .rewriting.places import no_place
from .rewriting.replacing import commit
from .rewriting.templates import (
    MakeReplacement,
    MakeTemplate,
    Program,
    Rewrite,
    graph_of,
    template_maker,
)
from .use_def.dotted_path import look_up
from .use_def.values import AnyValue

__all__ = [
    "Match",
    "ReplacedPatterns",
    "RewriteOptions",
    "replace_pattern",
    "replace_pattern_with_filters",
]

MatchFilter: TypeAlias = Callable[[InternalMatch, Graph, Graph], bool]
"""Called with (match, graph, pattern); says whether to replace the match."""


class RewriteOptions(MatchOptions, total=False):
    """Ways to rewrite that torch.fx does not have; all are off by default.

    After a rewrite a new node has no notes on its value: no `meta["val"]`,
    `"tensor_meta"`, `"example_value"` or `"type"`.  Neither does a node behind
    it, unless the new node has the same notes as the one that it replaces.

    Attributes:
        carry_meta: a node that replaces a returned node gets its meta, except
            those notes, and all new nodes get its stack trace;
            `meta["replaces"]` has the names of the nodes that were replaced.
        recompute_meta: new nodes and those behind them get notes on their
            values that are true, of the kinds that the graph has. Calls are
            run on fake tensors for that; if one cannot be, that is a warning,
            and there are no notes behind it.
    """

    carry_meta: bool
    recompute_meta: bool


class Match(NamedTuple):
    """Where a pattern was found and replaced.

    Attributes:
        anchor: the node of the pattern where matching began.
        nodes_map: node of the pattern -> node of the graph.

    torch.fx: subgraph_rewriter.py, Match
    """

    anchor: Node
    nodes_map: dict[Node, AnyValue]


@dataclass
class ReplacedPatterns:
    """A match that was replaced, and the nodes that replaced it.

    Attributes:
        anchor: the node of the pattern where matching began.
        nodes_map: node of the pattern -> node of the graph.
        replacements: the new nodes.

    torch.fx: subgraph_rewriter.py, ReplacedPatterns
    """

    anchor: Node
    nodes_map: dict[Node, AnyValue]
    replacements: list[Node]


def replace_pattern(
    gm: GraphModule,
    pattern: Callable[..., AnyValue] | GraphModule,
    replacement: Callable[..., AnyValue] | GraphModule,
    **options: Unpack[RewriteOptions],
) -> list[Match]:
    """Replace every occurrence of a pattern, and recompile.

    Args:
        gm: the module to rewrite, in place.
        pattern: what to look for. Its inputs match anything, its operations
            match equal ones. Nodes that it does not return must not have
            users outside of the match.
        replacement: what replaces a match. It has as many inputs as the
            pattern and returns as many values; names do not matter. Modules
            and attributes that `gm` lacks are copied into it.
        options: see `RewriteOptions`.

    Returns:
        The matches, by the place of their first anchor. Of matches that
        share nodes only the first is replaced.

    Raises:
        TraceError: pattern or replacement cannot be traced.
        ValueError: the pattern has no operation.
        AssertionError: they have different numbers of inputs or outputs; this
            and what follows is found at the first match.
        RuntimeError: the replacement names an attribute that does not exist,
            calls as a module what is not one, or returns a dict with other
            keys than the pattern's.
        In each case `gm` is as it was.

    Cost: O(nodes + uses + candidates · size of the pattern).

    torch.fx: subgraph_rewriter.py, replace_pattern
    """
    return [
        Match(done.anchor, done.nodes_map)
        for done in replace_pattern_with_filters(
            gm, pattern, replacement, **options
        )
    ]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Callable[..., AnyValue] | Graph | GraphModule,
    replacement: Callable[..., AnyValue] | Graph | GraphModule | None = None,
    match_filters: list[MatchFilter] | None = None,
    ignore_literals: bool = False,
    replacement_callback: MakeReplacement | None = None,
    node_name_match: str = "",
    **options: Unpack[RewriteOptions],
) -> list[ReplacedPatterns]:
    """Replace those occurrences of a pattern that pass all filters.

    Args:
        gm: the module to rewrite, in place.
        pattern: what to look for.
        replacement: what replaces a match.
        match_filters: a match is replaced if all of them return True.
        ignore_literals: a constant in the pattern matches any constant.
        replacement_callback: makes the replacement for each match instead.
            All are made before the first edit.
        node_name_match: an anchor also matches nodes that have this text in
            their names.
        options: see `RewriteOptions`.

    Returns:
        The matches and the nodes that replaced them, in order.

    Raises:
        AssertionError: neither a replacement nor a callback is given; else
            as `replace_pattern`.

    torch.fx: subgraph_rewriter.py, replace_pattern_with_filters
    """
    matcher = matcher_for(pattern, ignore_literals, options)
    found = matcher.match(gm.graph, node_name_match)
    filters = list(match_filters or ())
    matches = [
        match
        for match in found
        if all(wanted(match, gm.graph, matcher.pattern) for wanted in filters)
    ]
    make = template_maker(gm, matcher, replacement, replacement_callback)
    rewrites = plan_rewrites(gm, matcher, matches, make)
    commit(gm, rewrites, options)
    if isinstance(replacement, nn.Module):
        gm.delete_all_unused_submodules()
    return [
        ReplacedPatterns(
            rewrite.match.anchors[0], rewrite.match.nodes_map, rewrite.made
        )
        for rewrite in rewrites
    ]


# -- pattern and replacement -------------------------------------------------


def matcher_for(
    pattern: Program, ignore_literals: bool, options: MatchOptions
) -> SubgraphMatcher:
    """A matcher for a pattern that is to be replaced.

    Raises:
        ValueError: the pattern has no operation to look for.
        RuntimeError: it has operations on which its result does not depend.
    """
    graph = graph_of(pattern)
    matcher = SubgraphMatcher(graph, ignore_literals=ignore_literals, **options)
    sought = [n for n in graph.nodes if n.op not in ("placeholder", "output")]
    if not sought and matcher.pattern_anchors:
        raise ValueError(
            "the pattern only returns its input, and that is everywhere: "
            "put an operation into it"
        )
    for node in sought:
        module = look_up(graph.owning_module, str(node.target))
        if node.op == "call_module" and hasattr(module, "unchecked"):
            continue  # the guards of fx.trace, which are no part of a pattern
        if node not in matcher.prepared.nodes and matcher.pattern_anchors:
            raise RuntimeError(
                f"node {node} of the pattern is not needed for what the "
                "pattern returns, so that no match would find it: return it"
            )
    return matcher


def plan_rewrites(
    gm: GraphModule,
    matcher: SubgraphMatcher,
    matches: Sequence[InternalMatch],
    make: MakeTemplate,
    *,
    refused: bool = False,
) -> list[Rewrite]:
    """The matches with their replacements, as far as there is a place.

    Args:
        gm: is to be rewritten; nothing of it is changed yet.
        matcher: has found the matches.
        matches: what is to be replaced.
        make: gives the replacement of a match.
        refused: give the others as well; `refused` of each says why.

    Cost: O(nodes) if mutations are respected, else O(users of the matches).
    """
    inputs = matcher.prepared.placeholders
    rewrites = [Rewrite(match, make(match), inputs) for match in matches]
    for rewrite in rewrites:
        rewrite.refused = no_place(rewrite)
    if matcher.options.get("respect_mutations", False):
        Rewrite.respect(gm.graph, rewrites)
    return [each for each in rewrites if refused or not each.refused]
