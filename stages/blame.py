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

from stages.functions import State
from stages.manifest import exercises
from stages.running import Job, Result, run_all
from stages.tree import Tree


class Blame(NamedTuple):
    """The result of replacing functions by the reference's.

    Attributes:
        failing: the tests that fail with the learner's own functions.
        guilty: the functions, or pairs of them, whose replacement makes all
            of these pass.
        helped: functions whose replacement makes some of these pass, and how
            many.
        elsewhere: whether they fail even with all functions replaced, so that
            the mistake is outside of the exercises.
    """

    failing: dict[str, str]
    guilty: list[tuple[str, ...]]
    helped: dict[str, int]
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
    states = tree.states()
    written = [n for n, state in states.items() if state is State.WRITTEN]
    everything = _left(tree, number, failing, [tuple(written)], executor)
    if everything[tuple(written)]:
        return Blame(failing, [], {}, elsewhere=True)
    singles: list[tuple[str, ...]] = [(name,) for name in written]
    left = _left(tree, number, failing, singles, executor)
    guilty = [names for names in singles if not left[names]]
    helped = {
        names[0]: len(failing) - left[names]
        for names in singles
        if left[names] < len(failing)
    }
    if not guilty:
        pairs: list[tuple[str, ...]] = [*combinations(helped or written, 2)]
        left = _left(tree, number, failing, pairs, executor)
        guilty = [names for names in pairs if not left[names]]
    return Blame(failing, guilty, helped, elsewhere=False)


def _left(
    tree: Tree,
    number: int,
    failing: dict[str, str],
    exchanges: list[tuple[str, ...]],
    executor: ProcessPoolExecutor,
) -> dict[tuple[str, ...], int]:
    """For each group of functions, how many tests fail once it is replaced."""
    jobs = [
        Job(tree._replace(borrowed=names), [number], tests=[*failing])
        for names in exchanges
    ]
    results = run_all(jobs, executor)
    return {
        names: _failures(result, failing)
        for names, result in zip(exchanges, results, strict=True)
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
    for names in found.guilty:
        yield f"All of them pass with the reference's {_listed(names)}."
        for name in names:
            one = exercises()[name]
            yield f"    look at exercises/fx/{one.file}, {one.qualname}"
    if not found.guilty and not found.elsewhere:
        yield "Replacing one function or a pair does not make all pass."
        for name, count in sorted(found.helped.items(), key=lambda x: -x[1]):
            yield f"    {count} pass with the reference's {_listed((name,))}"


def _listed(names: tuple[str, ...]) -> str:
    """The names of functions, joined by "and"."""
    return " and ".join(exercises()[name].qualname for name in names)
