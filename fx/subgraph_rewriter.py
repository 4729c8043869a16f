"""Stage 07, rewriter: replace_pattern, one piece of program for another.

    def pattern(x, y): return torch.relu(x + y)
    def replacement(x, y): return my_fused_kernel(x, y)

    replace_pattern(gm, pattern, replacement)

Three graphs take part: the module's own, and those of the pattern and of the
replacement, which are traced if they are not graphs yet.  The matches are
found (`passes/utils/matcher_utils.py`), the replacements checked, and only
then is the graph edited (`replacing.py`).
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
from .rewriting import replacing
from .rewriting.replacing import Rewrite, Template
from .tracing.tracer import Tracer
from .usedef.values import Value

__all__ = [
    "Match",
    "ReplacedPatterns",
    "RewriteOptions",
    "replace_pattern",
    "replace_pattern_with_filters",
]

Program: TypeAlias = Callable[..., Value] | nn.Module | Graph
"""A pattern or replacement: a function, a module, or a graph as it is."""

MatchFilter: TypeAlias = Callable[[InternalMatch, Graph, Graph], bool]
"""Asked with (match, graph, pattern) whether to replace a match."""

MakeReplacement: TypeAlias = Callable[[InternalMatch, Graph, Graph], Graph]
"""Given (match, graph, pattern), makes the replacement for a match."""


class RewriteOptions(MatchOptions, total=False):
    """Ways to rewrite that torch.fx does not have; all are off by default.

    Attributes:
        carry_meta: what takes the place of a returned node gets its meta, and
            all new nodes its stack trace; `meta["replaces"]` has the names of
            the nodes that were replaced.
    """

    carry_meta: bool


class Match(NamedTuple):
    """Where a pattern was found and replaced.

    Attributes:
        anchor: the node of the pattern where matching began.
        nodes_map: node of the pattern -> node of the graph.

    torch.fx: subgraph_rewriter.py, Match
    """

    anchor: Node
    nodes_map: dict[Node, Value]


@dataclass
class ReplacedPatterns:
    """Where a pattern was found, and what stands there now.

    Attributes:
        anchor: the node of the pattern where matching began.
        nodes_map: node of the pattern -> node of the graph.
        replacements: the new nodes.

    torch.fx: subgraph_rewriter.py, ReplacedPatterns
    """

    anchor: Node
    nodes_map: dict[Node, Value]
    replacements: list[Node]


def replace_pattern(
    gm: GraphModule,
    pattern: Callable[..., Value] | GraphModule,
    replacement: Callable[..., Value] | GraphModule,
    **options: Unpack[RewriteOptions],
) -> list[Match]:
    """Replace every occurrence of a pattern, and recompile.

    Args:
        gm: the module to rewrite, in place.
        pattern: what to look for: its inputs match anything, its operations
            themselves; what it returns may be read by others, all else not.
        replacement: what to put there. It has as many inputs as the pattern
            and returns as many values; names do not matter. Its modules and
            attributes are copied to where `gm` has none of that name.
        options: see `RewriteOptions`.

    Returns:
        The matches, by the place of their first anchor. Of matches that
        share nodes only the first is replaced.

    Raises:
        TraceError: pattern or replacement cannot be traced.
        AssertionError: they have different numbers of inputs or outputs.
        ValueError: the pattern has no operation.
        RuntimeError: the replacement names what does not exist.
        Whatever is raised, `gm` is as it was.

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
    pattern: Callable[..., Value] | Graph | GraphModule,
    replacement: Callable[..., Value] | Graph | GraphModule | None = None,
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
        replacement: what to put there.
        match_filters: a match is replaced if all of them answer True.
        ignore_literals: constants in the pattern match anything.
        replacement_callback: makes the replacement for each match instead.
            All are made before the first edit.
        node_name_match: an anchor also matches nodes that have this in their
            names.
        options: see `RewriteOptions`.

    Returns:
        The matches and what was put there, in order.

    Raises:
        AssertionError: neither a replacement nor a callback is given; else
            as `replace_pattern`.

    torch.fx: subgraph_rewriter.py, replace_pattern_with_filters
    """
    matcher = matcher_for(pattern, ignore_literals, options)
    found = matcher.match(gm.graph, node_name_match)
    matches = [
        match
        for match in found
        if all(
            wanted(match, gm.graph, matcher.pattern)
            for wanted in match_filters or ()
        )
    ]
    make = template_maker(gm, matcher, replacement, replacement_callback)
    rewrites = plan_rewrites(gm, matcher, matches, make)
    replacing.commit(gm, rewrites, carry_meta=options.get("carry_meta", False))
    if isinstance(replacement, nn.Module):
        gm.delete_all_unused_submodules()
        gm.graph.lint()
    return [
        ReplacedPatterns(
            rewrite.match.anchors[0], rewrite.match.nodes_map, rewrite.made
        )
        for rewrite in rewrites
    ]


# -- pattern and replacement -------------------------------------------------


def matcher_for(
    pattern: Program, ignore_literals: bool, options: RewriteOptions
) -> SubgraphMatcher:
    """A matcher for a pattern that is to be replaced.

    Raises:
        ValueError: the pattern has no operation to look for.
        RuntimeError: it has operations that its result does not need.
    """
    graph = graph_of(pattern)
    normalize = options.get("normalize", False)
    matcher = SubgraphMatcher(
        graph,
        ignore_literals=ignore_literals,
        normalize=normalize,
        compare_constants=options.get("compare_constants", False),
        modules_by_class=options.get("modules_by_class", False),
        respect_mutations=options.get("respect_mutations", False),
    )
    sought = [n for n in graph.nodes if n.op not in ("placeholder", "output")]
    if not sought and matcher.pattern_anchors:
        raise ValueError(
            "the pattern only returns its input, and that is everywhere: "
            "put an operation into it"
        )
    for node in sought:
        if node not in matcher.plan.steps and matcher.pattern_anchors:
            raise RuntimeError(
                f"node {node} of the pattern is not needed for what the "
                "pattern returns, so that no match would find it: return it"
            )
    return matcher


def graph_of(program: Program) -> Graph:
    """The graph of a pattern or replacement; traced if need be."""
    if isinstance(program, GraphModule):
        return program.graph
    if isinstance(program, Graph):
        return program
    tracer = Tracer()
    graph = tracer.trace(program)
    owner: Value = tracer.root  # no GraphModule: nobody is going to call it
    graph.owning_module = owner
    return graph


MakeTemplate: TypeAlias = Callable[[InternalMatch], Template]
"""Makes the checked replacement for a match."""


def template_maker(
    gm: GraphModule,
    matcher: SubgraphMatcher,
    replacement: Program | None,
    callback: MakeReplacement | None,
) -> MakeTemplate:
    """What makes the replacements."""
    if replacement is None and callback is None:
        raise AssertionError(
            "Must provide either a replacement GraphModule or a replacement "
            "callback"
        )
    if callback is not None:
        make = callback

        def made_for(match: InternalMatch) -> Template:
            graph = make(match, gm.graph, matcher.pattern)
            return replacing.template(gm, graph, graph.owning_module)

        return made_for
    assert replacement is not None
    graph = graph_of(replacement)
    traced = not isinstance(replacement, nn.Module | Graph)
    root = replacement if isinstance(replacement, nn.Module) else None
    made: list[Template] = []

    def the_same(match: InternalMatch) -> Template:
        if not made:
            owner = root or graph.owning_module
            one = replacing.template(gm, graph, owner, own_constants=traced)
            made.append(one)
        return made[0]

    return the_same


def plan_rewrites(
    gm: GraphModule,
    matcher: SubgraphMatcher,
    matches: Sequence[InternalMatch],
    make: MakeTemplate,
) -> list[Rewrite]:
    """The matches with their replacements, all checked."""
    rewrites = []
    checked: set[int] = set()
    for match in matches:
        template = make(match)
        if id(template) not in checked:
            replacing.check_fit(match, template, matcher.pattern)
        checked.add(id(template))
        rewrites.append(Rewrite(match, template, matcher.plan.placeholders))
    return replacing.settle_places(
        gm,
        rewrites,
        respect_mutations=matcher.options.get("respect_mutations", False),
    )
