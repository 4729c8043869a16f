"""Passes: cut a row of weights into parts that are as even as can be."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


def lightest_cuts(
    weights: Sequence[float], places: Sequence[int], count: int
) -> list[int]:
    """The cuts with which the heaviest stage is as light as can be.

    Args:
        weights: of all calls before each place; not falling.
        places: where a cut may be, in order.
        count: how many stages there are.

    Raises:
        ValueError: there are fewer places than cuts.

    Cost: O(places + count · log places).
    """
    if len(places) < count - 1 or count < 1:
        raise ValueError(
            f"the graph can be cut at {len(places)} places, which does not "
            f"give {count} stages: elsewhere more than tensors, or than "
            "`most` bytes, would go through, or a write would be cut off"
        )
    ends = [*places, len(weights) - 1]
    low, high = 0.0, weights[-1]
    cuts = places[: count - 1]
    for _ in range(60):
        middle = (low + high) / 2
        found = _within(weights, ends, count, middle)
        if found is None:
            low = middle
        else:
            high, cuts = middle, found
    return list(cuts)


def _within(
    weights: Sequence[float], ends: Sequence[int], count: int, limit: float
) -> list[int] | None:
    """Cuts with which no stage weighs more than a limit, if there are any."""
    totals = [weights[end] for end in ends]
    cuts: list[int] = []
    start, done = 0.0, -1
    for left in range(count - 1, 0, -1):
        reach = bisect_left(totals, start + limit + 1e-9 * totals[-1])
        # Each of the stages behind this one needs an end of its own.
        done = max(done + 1, min(reach - 1, len(ends) - 1 - left))
        if totals[done] - start > limit * (1 + 1e-9) + 1e-9:
            return None
        cuts.append(ends[done])
        start = totals[done]
    return cuts if totals[-1] - start <= limit * (1 + 1e-9) + 1e-9 else None
