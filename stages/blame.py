"""Finds a wrong function by replacing each in turn by the reference's.

A test of stage 04 may fail because of a function of stage 02.  If all failing
tests pass once a function is replaced by the reference's, the mistake is in
that function.  If no single function does it, pairs are tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations
from typing import NamedTuple

from stages.manifest import Piece, pieces
from stages.running import Job, Result, run_all
from stages.tree import Tree


class Blame(NamedTuple):
    """The result of replacing functions by the reference's.

    Attributes:
        failing: the tests that fail with the learner's own functions.
        guilty: the pieces, or pairs of them, whose replacement makes all of
            these pass.
        helped: pieces whose replacement makes some of these pass, and how
            many.
        elsewhere: whether they fail even with all functions replaced, so that
            the mistake is outside of the exercises.
    """

    failing: dict[str, str]
    guilty: list[tuple[Piece, ...]]
    helped: dict[Piece, int]
    elsewhere: bool


def blame(tree: Tree, number: int, executor: ProcessPoolExecutor) -> Blame:
    """Find the function that makes a stage's tests fail.

    Args:
        tree: the learner's, with the stage under test.
        number: the stage.
        executor: where the checks run.

    Raises:
        Broken: the tests cannot be run at all.

    Cost: a run of the failing tests for each written function, and one for
    each pair if no single function is guilty.
    """
    (first,) = run_all([Job(tree, [number])], executor)
    failing = first.ran().failed
    if not failing:
        return Blame({}, [], {}, elsewhere=False)
    known = dict.fromkeys(pieces().values())
    written = [one for one in known if tree.is_written(one)]
    everything = _left(tree, number, failing, [tuple(written)], executor)
    if everything[tuple(written)]:
        return Blame(failing, [], {}, elsewhere=True)
    singles: list[tuple[Piece, ...]] = [(one,) for one in written]
    left = _left(tree, number, failing, singles, executor)
    guilty = [ones for ones in singles if not left[ones]]
    helped = {
        ones[0]: len(failing) - left[ones]
        for ones in singles
        if left[ones] < len(failing)
    }
    if not guilty:
        pairs: list[tuple[Piece, ...]] = [*combinations(helped or written, 2)]
        left = _left(tree, number, failing, pairs, executor)
        guilty = [ones for ones in pairs if not left[ones]]
    return Blame(failing, guilty, helped, elsewhere=False)


def _left(
    tree: Tree,
    number: int,
    failing: dict[str, str],
    exchanges: list[tuple[Piece, ...]],
    executor: ProcessPoolExecutor,
) -> dict[tuple[Piece, ...], int]:
    """For each group of pieces, how many tests fail once it is replaced."""
    jobs = [
        Job(
            tree._replace(
                borrowed=[one.name for p in group for one in p.functions]
            ),
            [number],
            tests=[*failing],
        )
        for group in exchanges
    ]
    results = run_all(jobs, executor)
    return {
        group: _failures(result, failing)
        for group, result in zip(exchanges, results, strict=True)
    }


def _failures(result: Result, failing: dict[str, str]) -> int:
    """How many of the tests fail; all of them if the check did not run."""
    if not result.has_run:
        return len(failing)
    # A test that now stops at a stub no longer shows the mistake.
    return len([test for test in failing if test in result.failed])


def told(found: Blame) -> Iterator[str]:
    """The result as lines for the learner."""
    if not found.failing:
        yield (
            "No test of this stage fails, so none of its functions can be "
            "blamed. If the library's tests fail with your code, `pytest "
            "stages/NN` says so, and names the function they came through."
        )
        return
    yield f"{len(found.failing)} tests fail."
    if found.elsewhere:
        yield (
            "They fail even with the reference's version of all your "
            "functions, so something else in your files has changed. "
            "`python -m stages diff` shows what."
        )
    for group in found.guilty:
        yield f"All of them pass with the reference's {_listed(group)}."
        for one in (one for piece in group for one in piece.functions):
            yield f"    look at exercises/fx/{one.file}, {one.qualname}"
    if not found.guilty and not found.elsewhere:
        yield "Replacing one function or a pair does not make all pass."
        for piece, count in sorted(found.helped.items(), key=lambda x: -x[1]):
            yield f"    {count} pass with the reference's {piece.title}"


def _listed(group: tuple[Piece, ...]) -> str:
    """The titles of pieces, joined by "and"."""
    return " and ".join(piece.title for piece in group)
