"""Finds a wrong function by replacing each in turn by the reference's.

A test of stage 04 may fail because of a function of stage 02.  If all failing
tests pass once an exercise is replaced by the reference's, the mistake is in
it; if no single exercise does it, pairs are tried.  An exercise of several
functions is then searched for the one whose replacement is enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations
from typing import NamedTuple, TypeAlias

from stages.manifest import Piece, pieces
from stages.running import Job, Result, run_all
from stages.tree import Tree

Group: TypeAlias = tuple[Piece, ...]
"""What is replaced at once: exercises, or single functions of them."""


class Blame(NamedTuple):
    """The result of replacing functions by the reference's.

    Attributes:
        failing: the tests that fail with the learner's own functions.
        guilty: the pieces, or pairs of them, whose replacement makes all of
            these pass; instead of a piece, that function of it whose
            replacement is enough.
        helped: if no single piece is guilty, those whose replacement makes
            some of these pass, and how many.
        elsewhere: whether they fail even with all functions replaced, so that
            the mistake is outside of the exercises.
    """

    failing: dict[str, str]
    guilty: list[Group]
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

    Cost: a run of the failing tests for each written exercise, one for each
    pair if no single exercise is guilty, and one for each function of those
    that are.
    """
    (first,) = run_all([Job(tree, [number])], executor)
    failing = first.ran().failed
    if not failing:
        return Blame({}, [], {}, elsewhere=False)
    known = dict.fromkeys(pieces().values())
    written = [one for one in known if tree.is_written(one)]
    search = _Search(tree, number, failing, first.stuck, executor)
    if any(search.left([(*written,)])):
        return Blame(failing, [], {}, elsewhere=True)
    guilty = search.enough([(one,) for one in written])
    helped: dict[Piece, int] = {}
    if not guilty:
        left = search.left([(one,) for one in written])
        passing = [len(failing) - count for count in left]
        helped = {o: n for o, n in zip(written, passing, strict=True) if n}
        guilty = search.enough([*combinations(helped or written, 2)])
    named = [each for ones in guilty for each in search.narrowed(ones)]
    return Blame(failing, named, helped, elsewhere=False)


class _Search(NamedTuple):
    """Runs a stage's failing tests with replacements."""

    tree: Tree
    number: int
    failing: dict[str, str]
    stuck: list[str]
    executor: ProcessPoolExecutor

    def enough(self, groups: Sequence[Group]) -> list[Group]:
        """The groups with whose replacement all tests pass."""
        left = self.left(groups, first_failure=True)
        likely = [ones for ones, n in zip(groups, left, strict=True) if not n]
        left = self.left(likely)  # a run may have stopped at a stub
        return [ones for ones, n in zip(likely, left, strict=True) if not n]

    def left(
        self, groups: Sequence[Group], *, first_failure: bool = False
    ) -> list[int]:
        """For each group, how many tests fail once it is replaced."""
        # Tests that do not end come last.
        tests = sorted(self.failing, key=self.stuck.__contains__)
        jobs = [
            Job(
                self.tree._replace(
                    borrowed=[f.name for one in ones for f in one.functions]
                ),
                [self.number],
                tests=tests,
                first_failure=first_failure,
            )
            for ones in groups
        ]
        results = run_all(jobs, self.executor)
        return [_failures(result, self.failing) for result in results]

    def narrowed(self, group: Group) -> list[Group]:
        """A guilty group with single functions where one is enough."""
        found = [group]
        for place, one in enumerate(group):
            if len(one.functions) > 1:
                found = [
                    each
                    for ones in found
                    for each in self._enough(ones, place) or [ones]
                ]
        return found

    def _enough(self, group: Group, place: int) -> list[Group]:
        """The same with a function at one place, if all tests pass then."""
        before, after = group[:place], group[place + 1 :]
        tried = [(*before, f.alone, *after) for f in group[place].functions]
        return self.enough(tried)


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
    alone = len(found.failing) == 1
    yield "1 test fails." if alone else f"{len(found.failing)} tests fail."
    if found.elsewhere:
        yield (
            f"{'It fails' if alone else 'They fail'} even with the reference's "
            "version of all your functions, so something else in your files "
            "has changed. This shows what:\n"
            "    git diff --no-index exercises/.base exercises/fx"
        )
    for group in found.guilty:
        passes = "It passes" if alone else "All of them pass"
        yield f"{passes} with the reference's {_listed(group)}."
        for one in (one for piece in group for one in piece.functions):
            yield f"    look at exercises/fx/{one.file}, {one.qualname}"
        for title in (one.title for one in group if len(one.functions) > 1):
            yield f"    No function of {title} is enough alone."
    if not found.guilty and not found.elsewhere:
        yield "Replacing one function or a pair does not make all pass."
        for piece, count in sorted(found.helped.items(), key=lambda x: -x[1]):
            yield f"    {count} pass with the reference's {piece.title}"


def _listed(group: Group) -> str:
    """The titles of a group, joined by "and"."""
    return " and ".join(one.title for one in group)
