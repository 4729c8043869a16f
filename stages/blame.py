"""Which function is wrong: each is exchanged for the reference's in turn.

A test of stage 04 may fail because of a function of stage 02.  If the tests
that fail pass as soon as one function is the reference's, that function is
where to look.  If no single one helps, pairs are tried.
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
    """What the exchanges showed.

    Attributes:
        failing: the tests that fail with the learner's own functions.
        guilty: the functions, or pairs of them, whose exchange makes all of
            these pass.
        helped: functions whose exchange makes some of them pass, with how
            many.
        elsewhere: whether they fail even with all functions exchanged: the
            mistake is in a line that is no exercise.
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

    Cost: a run of the failing tests for each function written; for each pair
    of them, if no single one is guilty.
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
    """How many tests still fail when these functions are the reference's."""
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
    # One that now waits for something unwritten has lost its mistake.
    return len([test for test in failing if test in result.failed])


def told(found: Blame) -> Iterator[str]:
    """What a blame means, in words."""
    if not found.failing:
        yield "No test of this stage fails: nobody is to blame."
        return
    yield f"{len(found.failing)} tests fail."
    if found.elsewhere:
        yield (
            "They fail even with all your functions exchanged for the "
            "reference's: something else in your files was changed. "
            "`python -m stages diff` shows what."
        )
    for names in found.guilty:
        yield f"All of them pass with the reference's {_listed(names)}."
        for name in names:
            one = exercises()[name]
            yield f"    look at exercises/fx/{one.file}, {one.qualname}"
    if not found.guilty and not found.elsewhere:
        yield "No one function and no pair of them is to blame alone."
        for name, count in sorted(found.helped.items(), key=lambda x: -x[1]):
            yield f"    {count} pass with the reference's {_listed((name,))}"


def _listed(names: tuple[str, ...]) -> str:
    """Names of functions as one says them."""
    return " and ".join(exercises()[name].qualname for name in names)
