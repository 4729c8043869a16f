"""Passes: the rows of a page that has two graphs beside each other.

Nodes that belong together share a row; `fx.diff` says which do.  If their
order differs, not all can: those of a longest part in the same order share
rows, and the others are marked as moved.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from ..graph_module import GraphModule
from ..passes.graph_diff import diff
from .describe import Data

__all__ = ["rows_of"]


def rows_of(before: GraphModule, after: GraphModule) -> list[Data]:
    """Put the nodes of two graphs in rows.

    Args:
        before: a module.
        after: another one, for example what a pass made of the first.

    Returns:
        For each row `at`, the numbers of its node in both graphs, of which one
        can be None.  What was removed stands in front of what was added there.
        Rows that differ have a `mark`: "-" for what was removed, "+" added,
        "~" changed, "m" moved; and a list `what` of texts.

    Cost: O(n log n) for n nodes and uses.
    """
    difference = diff(before, after)
    olds = {node: i for i, node in enumerate(before.graph.nodes)}
    news = {node: i for i, node in enumerate(after.graph.nodes)}
    pairs = [(news[new], olds[old]) for old, new in difference.pairs.items()]
    old_of = dict(sorted(pairs))
    what = {news[change.after]: [*change.what] for change in difference.changed}
    anchors = _longest_rise([*old_of.values()])
    paired = set(old_of.values())

    def rows() -> Iterator[Data]:
        left = 0  # the first old node that has no row yet
        for new in range(len(news)):
            while left < len(olds) and left not in anchors:
                yield removed(left)
                left += 1
            old = old_of.get(new)
            if old in anchors:
                mark = {"mark": "~"} if new in what else {}
                yield {"at": [old, new]} | mark | _noted(what.get(new))
                left += 1
            else:
                mark = {"mark": "+" if old is None else "m"}
                yield {"at": [None, new]} | mark | _noted(what.get(new))
        yield from map(removed, range(left, len(olds)))

    def removed(old: int) -> Data:
        return {"at": [old, None], "mark": "m" if old in paired else "-"}

    return [*rows()]


def _noted(what: list[str] | None) -> Data:
    return {"what": what} if what else {}


def _longest_rise(numbers: Sequence[int]) -> set[int]:
    """The members of a longest part that rises, of different numbers.

    It is patience sorting: each number goes to the first pile whose top is
    larger.

    Cost: O(n log n).
    """
    ends: list[int] = []  # the least end of a rise of each length
    before: dict[int, int | None] = {}
    for number in numbers:
        place = bisect_left(ends, number)
        before[number] = ends[place - 1] if place else None
        ends[place : place + 1] = [number]
    members = set()
    last = ends[-1] if ends else None
    while last is not None:
        members.add(last)
        last = before[last]
    return members
