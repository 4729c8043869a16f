"""Extra: explain why a pattern is not found.

Of all failed tries to match, `explain` shows the one that paired most nodes,
because the author of a pattern has a place in mind that nearly fits: the
pattern, and the part of the graph around it, with the pairs and the first
difference marked.  Matches and failed tries are those of `SubgraphMatcher`, so
the explanation agrees with the matching.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Unpack

from ...graph import Graph
from ...graph_module import GraphModule
from ...node import Node
from ...passes.utils.matcher_utils import Mismatch, SubgraphMatcher
from ...rewriting.templates import Program, template_maker
from ...subgraph_rewriter import RewriteOptions, matcher_for, plan_rewrites

AROUND = 2
"""How many nodes of the graph are shown around each that matters."""

MOST_MATCHES = 5
"""How many matches are listed."""


def explain(
    gm: GraphModule | Graph,
    pattern: Program,
    replacement: Program | None = None,
    *,
    ignore_literals: bool = False,
    print_output: bool = True,
    **options: Unpack[RewriteOptions],
) -> str:
    """Say why `replace_pattern` with these arguments finds what it finds.

        0 match(es), 2 other place(s) tried
        The best try paired 3 of the pattern's 4 nodes, then: 1 instead of 2
        pattern:
          =  %x : [num_users=1] = placeholder[target=x]   is  x
          >  %add : [num_users=1] = call_function[…](args = (%x, 2), …)
        graph:
          …

    Args:
        gm: what was searched.
        pattern: what was looked for.
        replacement: if given and `gm` is a module, what was to replace it;
            then the text says which matches had to be left alone, too.
        ignore_literals: as for `replace_pattern_with_filters`.
        print_output: print the text, too.
        options: as for `replace_pattern`.

    Returns:
        The text: how many matches there are and, of the tries that failed,
        the one that paired most nodes, with its first difference.

    Raises:
        As `replace_pattern`, for a pattern that cannot be matched.

    Cost: as `SubgraphMatcher.match`, with every candidate tried.

    torch.fx: passes/utils/matcher_utils.py, _init_logger; with
    PYTORCH_MATCHER_LOGLEVEL=INFO it logs each pair of nodes that is compared,
    and not what was different.
    """
    matcher = matcher_for(pattern, ignore_literals, options)
    graph = gm if isinstance(gm, Graph) else gm.graph
    lines = [*_report(matcher, graph)]
    if replacement is not None and isinstance(gm, GraphModule):
        lines += _left_alone(gm, matcher, replacement)
    text = "\n".join(lines)
    if print_output:
        print(text)
    return text


def _report(matcher: SubgraphMatcher, graph: Graph) -> Iterator[str]:
    """The lines of the explanation."""
    matches = matcher.match(graph)
    tries = matcher.mismatches(graph)
    yield f"{len(matches)} match(es), {len(tries)} other place(s) tried"
    for match in matches[:MOST_MATCHES]:
        ends = ", ".join(str(node) for node in match.returning_nodes)
        yield f"  matched: {ends}"
    if len(matches) > MOST_MATCHES:
        yield f"  and {len(matches) - MOST_MATCHES} more"
    if tries:
        best = max(tries, key=lambda mismatch: len(mismatch.nodes_map))
        yield from _difference(matcher, graph, best)
    elif not matches:
        yield from _nowhere(matcher)


def _left_alone(
    gm: GraphModule, matcher: SubgraphMatcher, replacement: Program
) -> Iterator[str]:
    """The matches for whose replacement there is no place, and why.

    That depends on the replacement, so a pattern alone does not say it.
    """
    make = template_maker(gm, matcher, replacement, None)
    matches = matcher.match(gm.graph)
    for rewrite in plan_rewrites(gm, matcher, matches, make, refused=True):
        if rewrite.refused:
            end = max(rewrite.operations)
            yield f"  left alone: {end}: {rewrite.refused}"


def _nowhere(matcher: SubgraphMatcher) -> Iterator[str]:
    """What to say if not one node was a candidate.

    The most frequent reason is that the graph has an equivalent call.
    """
    ends = [node.format_node() for node in matcher.pattern_anchors]
    yield "No node of the graph is what the pattern ends with:"
    yield from (f"  > {end}" for end in ends)
    if not matcher.options.get("normalize", False):
        yield (
            "The graph may have an equivalent call (x + y, torch.add(x, y) "
            "and x.add(y) are equivalent): normalize=True finds those, too."
        )


def _difference(
    matcher: SubgraphMatcher, graph: Graph, best: Mismatch
) -> Iterator[str]:
    """Pattern and graph, with what was paired and the first difference."""
    steps = matcher.prepared.nodes
    yield (
        f"The best try paired {len(best.nodes_map)} of the pattern's "
        f"{len(steps)} nodes, then: {best.reason}"
    )
    wrong, found = _where(best)
    yield "pattern:"
    for node in matcher.pattern.nodes:
        partner = best.nodes_map.get(node, "")
        mark = _mark(node, wrong, best.nodes_map)
        end = f"   is  {partner}" if partner else ""
        yield f"  {mark} {node.format_node()}{end}"
    yield "graph:"
    partners = {n for n in best.nodes_map.values() if isinstance(n, Node)}
    yield from _excerpt(graph, found, partners)


def _where(best: Mismatch) -> tuple[object, object]:
    """The nodes at which pattern and graph differ.

    If constants differ, these are the nodes that were paired last, because
    their arguments were being compared.
    """
    if isinstance(best.pattern, Node) and isinstance(best.found, Node):
        return best.pattern, best.found
    for node in reversed(best.nodes_map):
        if node.op != "placeholder":
            return node, best.nodes_map[node]
    return best.pattern, best.found


def _mark(node: Node, wrong: object, paired: Container[Node]) -> str:
    """What precedes a node's line: `>`, `=` or nothing."""
    if node is wrong:
        return ">"
    return "=" if node in paired else " "


def _excerpt(
    graph: Graph, wrong: object, partners: Container[Node]
) -> Iterator[str]:
    """The lines of the graph around what was paired and what differs."""
    nodes = list(graph.nodes)
    shown = {
        place + step
        for place, node in enumerate(nodes)
        if node in partners or node is wrong
        for step in range(-AROUND, AROUND + 1)
    }
    gap = False
    for place, node in enumerate(nodes):
        if place in shown:
            yield f"  {_mark(node, wrong, partners)} {node.format_node()}"
        elif not gap:
            yield "    …"
        gap = place not in shown
