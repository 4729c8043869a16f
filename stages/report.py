"""What the check of a stage prints: results, explanations, what to do next."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import pytest

from stages.checking import Mistake, Overtime, stub_of
from stages.functions import State
from stages.manifest import (
    ROOT,
    Exercise,
    Piece,
    Stage,
    exercises,
    exercises_by_file,
    pieces,
    stages,
)
from stages.tree import Tree

DONE, WRONG, BLOCKED, TO_WRITE, UNKNOWN = "✓", "✗", "~", "·", " "

CAPSTONES = (
    "a program of your own: python -m stages read gradient (or memory, int8)"
)
"""Where the course leads after its last stage."""

GRADIENT = 6
"""The stage with which one has all that the capstone `gradient` needs."""

TOLD = 3
"""How many failures of an exercise are shown in full."""


class Verdicts:
    """The outcomes of the tests, by function and by piece.

    A piece goes by its title, which for a single function is not its name.
    """

    def __init__(self) -> None:
        self._signs: dict[str, list[str]] = {}
        self._told: set[tuple[str, str]] = set()
        self.many: set[str] = set()
        """Failed tests that tell nothing new about their exercise, by id.

        Three are shown in full, if they say different things.
        """
        self.blocked: set[str] = set()
        """Tests that failed inside another exercise, known to be wrong.

        Their errors say nothing about their own exercise, and are not shown.
        """
        self.culprits: dict[str, str] = {}
        """Pieces with tests that failed because of another -> that one."""
        self.failed: dict[str, str] = {}
        """The tests that failed, by id, with the explanation."""
        self.told: dict[str, str] = {}
        """Functions and pieces -> what the first failed test says first."""
        self.stuck: list[str] = []
        """The tests that were stopped, because they did not end."""
        self.passed: list[str] = []
        self.to_write: list[str] = []
        self.waits: dict[str, str] = {}
        """Written functions -> the first stub that a test of them reached."""
        self.reached: dict[str, str] = {}
        """Those that called a stub of another piece -> which, and where."""
        self.stubs: set[str] = set()
        """The messages of the stubs that tests have reached."""
        self.unmarked: list[str] = []

    def add(
        self,
        names: Sequence[str],
        item: pytest.Item,
        report: pytest.TestReport,
    ) -> None:
        """Record the outcome of one test."""
        if not names:
            self.unmarked.append(item.nodeid)
        titles = list(dict.fromkeys(pieces()[name].title for name in names))
        sign = DONE
        if report.passed:
            self.passed.append(item.nodeid)
        elif stub := dict(report.user_properties).get("to write"):
            sign = TO_WRITE
            self.to_write.append(item.nodeid)
            self.stubs.add(str(stub))
        else:
            sign = self._failed([*names, *titles], item.nodeid, report)
        for name in (*names, *titles):
            self._signs.setdefault(name, []).append(sign)

    def _failed(
        self, titles: Sequence[str], nodeid: str, report: pytest.TestReport
    ) -> str:
        """Record a failure in some functions and pieces; its sign."""
        explanation = str(report.longrepr)
        self.failed[nodeid] = explanation
        sentence = explanation.partition("\n")[0]
        for title in titles:
            self.told.setdefault(title, sentence)
        through = dict(report.user_properties).get("through", ())
        assert isinstance(through, list | tuple)
        for culprit in (pieces()[name].title for name in through):
            if culprit not in titles and WRONG in self.signs(culprit):
                self.blocked.add(nodeid)
                self.culprits.update((title, culprit) for title in titles)
                return BLOCKED
        keys = {(title, sentence) for title in titles}
        many = any(self.signs(one).count(WRONG) >= TOLD for one in titles)
        if many or keys & self._told:
            self.many.add(nodeid)
        self._told |= keys
        return WRONG

    def signs(self, name: str) -> str:
        """A sign for each test of a function or piece, in their order."""
        return "".join(self._signs.get(name, []))

    def part(self, name: str) -> float:
        """Which part of the tests of a function have failed, 0 to 1."""
        signs = self.signs(name)
        return signs.count(WRONG) / max(len(signs), 1)

    def of(self, name: str) -> str:
        """One sign for all: wrong, to write, done, or not checked."""
        signs = self.signs(name)
        order = (WRONG, BLOCKED, TO_WRITE, DONE)
        return next((sign for sign in order if sign in signs), UNKNOWN)


# --- the header ------------------------------------------------------------


def header(tree: Tree, numbers: Sequence[int]) -> str:
    """Which tree is under test, and which of its stages are borrowed."""
    if tree.is_reference:
        return "fx under test: fx, the reference itself"
    states = tree.states()
    parts: list[str] = []
    for stage in map(stages().__getitem__, numbers):
        counts = [written(piece, states) for piece in stage.pieces]
        begun = [
            counted(piece, states)
            for piece, count in zip(stage.pieces, counts, strict=True)
            if 0 < count < len(piece.functions)
        ]
        parts.append(
            f"{sum(counts)} of {len(stage.exercises)} functions written in "
            f"stage {stage.number:02d}"
            + (f" ({', '.join(begun)})" if begun else "")
        )
    others = [n for n in stages() if n not in numbers]
    kind = {n: _whose(stages()[n], states) for n in others}
    for whose, group in groupby(others, key=kind.__getitem__):
        parts.append(f"{_range([*group])} {whose}")
    return f"fx under test: {tree.name}: " + " · ".join(parts)


def written(piece: Piece, states: Mapping[str, State]) -> int:
    """How many functions of a piece are written."""
    return sum(states[one.name] is State.WRITTEN for one in piece.functions)


def counted(piece: Piece, states: Mapping[str, State]) -> str:
    """How much of a piece is written: `ring 1 of 5`."""
    return f"{piece.title} {written(piece, states)} of {len(piece.functions)}"


def is_written(piece: Piece, states: Mapping[str, State]) -> bool:
    """Whether all functions of a piece are written."""
    return written(piece, states) == len(piece.functions)


def _whose(stage: Stage, states: Mapping[str, State]) -> str:
    """Whose code runs for a stage that is not under test."""
    whole = [is_written(piece, states) for piece in stage.pieces]
    return (
        "yours"
        if all(whole)
        else "partly borrowed"
        if any(whole)
        else "borrowed"
    )


def _range(numbers: list[int]) -> str:
    """`[1, 2, 3, 5]` as `01-03, 05`."""
    parts: list[str] = []
    for _, group in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        run = [f"{number:02d}" for _, number in group]
        parts.append(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}")
    return ", ".join(parts)


# --- one failure -----------------------------------------------------------


def missing_stub(error: BaseException) -> str | None:
    """The message of the stub that made a test fail, if one did."""
    seen: BaseException | None = error
    while seen is not None:
        if stub := stub_of(seen):
            return stub
        seen = seen.__cause__ or seen.__context__
    return None


def passed_through(error: BaseException, tree: Tree) -> list[str]:
    """The exercises whose lines an error, or its cause, came through."""
    found: list[str | None] = []
    seen: BaseException | None = error
    while seen is not None:
        found += [
            exercise_at(tree, tree.file(frame), frame.lineno or 0)
            for frame in tree.frames(seen)
        ]
        seen = seen.__cause__ or seen.__context__
    return [name for name in found if name]


def exercise_at(tree: Tree, file: str, line: int) -> str | None:
    """The exercise that a line of a tree is in."""
    for one in exercises_by_file().get(file, ()):
        function = tree.function(one)
        if function.lineno <= line <= (function.end_lineno or 0):
            return one.name
    return None


def where_reached(error: BaseException, tree: Tree) -> str:
    """The line of the tree from which a stub was called; "" if none was."""
    frames = tree.frames(error)  # the last one is the stub
    return _place_of(frames[-2]) if len(frames) > 1 else ""


def explain(error: BaseException, item: pytest.Item, tree: Tree) -> str:
    """The explanation of a failure, as the learner reads it.

    It has the sentence, the picture, the lines of the learner that the error
    came through, the test, and the command that shows a hint.
    """
    lines = told_of(error, tree)
    path, line, _ = item.reportinfo()
    if item.get_closest_marker("exercise"):
        lines.append(f"test: {_from_root(str(path))}:{(line or 0) + 1}")
        titles = [
            pieces()[name].title
            for mark in item.iter_markers("exercise")
            for name in mark.args
            if name in exercises()
        ]
        lines += [
            f"hint: python -m stages hint {title}"
            for title in dict.fromkeys(titles)
        ]
    return "\n".join(lines)


def told_of(error: BaseException, tree: Tree) -> list[str]:
    """An error as lines: what is wrong, and the learner's lines on the way."""
    return [*_said(error), *_own_lines(error, tree)]


def _said(error: BaseException) -> list[str]:
    """What is wrong, in a sentence and maybe a picture."""
    if isinstance(error, Mistake):
        picture = [f"    {line}" for line in error.picture.splitlines()]
        return [error.sentence, *picture]
    if isinstance(error, Overtime):
        return [
            f"Still running: {error}. Perhaps the condition of a loop never "
            f"becomes false, or a circular list does not lead back to its "
            f"start."
        ]
    if isinstance(error, RecursionError):
        return [
            f"RecursionError: {error}: a function calls itself without end, "
            f"or as deep as a graph is long."
        ]
    if isinstance(error, SystemExit):
        return ["The code under test ended the program (SystemExit)."]
    text = "".join(traceback.format_exception_only(error)).strip()
    return text.splitlines()


def _own_lines(error: BaseException, tree: Tree) -> list[str]:
    """The lines of the tree under test that an error came through.

    A Mistake comes through the lines of the error that it tells about.
    """
    if isinstance(error, Mistake) and error.__cause__ is not None:
        error = error.__cause__
    lines: list[str] = []
    for frame in tree.frames(error):
        lines += [f"at {_place_of(frame)}", f"    {frame.line}"]
    if len(lines) > 12:
        lines = [*lines[:6], "    …", *lines[-6:]]
    return lines


def _place_of(frame: traceback.FrameSummary) -> str:
    """Where a frame was: `exercises/fx/node.py:90, in prepend`."""
    return f"{frame.filename}:{frame.lineno}, in {frame.name}"


def _from_root(path: str) -> str:
    """A path relative to the project's root folder, if it is inside."""
    return path.removeprefix(str(ROOT)).lstrip("/\\")


# --- the summary -----------------------------------------------------------


def summary(
    verdicts: Verdicts, tree: Tree, numbers: Sequence[int], whole: bool
) -> Iterator[str]:
    """Each exercise with its signs, then the one thing to do next.

    Args:
        verdicts: the outcomes of the tests.
        tree: the tree that was checked.
        numbers: the stages named.
        whole: whether all tests of these stages were to run.
    """
    for number in numbers:
        stage = stages()[number]
        checked = [one for one in stage.pieces if verdicts.signs(one.title)]
        if checked:
            yield ""
            yield f"stage {number:02d}, {stage.title}"
            yield from (_row(one, verdicts) for one in checked)
    for name, reached in verdicts.reached.items():
        yield ""
        yield (
            f"{exercises()[name].qualname} is written, but a test of it "
            f"reached the stub of {reached}."
        )
        yield (
            "  If that line should not run in this case, it is the "
            "mistake; otherwise write the stub first."
        )
    yield ""
    yield from _next(verdicts, tree, numbers, whole)


def _row(piece: Piece, verdicts: Verdicts) -> str:
    """A piece, and a sign for each of its tests."""
    signs = verdicts.signs(piece.title)
    right = [verdicts.of(one.name) for one in piece.functions].count(DONE)
    title = piece.title
    if 0 < right < len(piece.functions):
        title = f"{title} {right} of {len(piece.functions)}"
    row = f"  {verdicts.of(piece.title)} {title:36} {signs}"
    if BLOCKED in signs:
        return f"{row}  (~ failed inside {verdicts.culprits[piece.title]})"
    own = {one.qualname for one in piece.functions}
    stubs = [verdicts.waits.get(one.name) for one in piece.functions]
    waits = [stub for stub in stubs if stub and stub not in own]
    return f"{row}  (· waits for {waits[0]})" if waits else row


def _next(
    verdicts: Verdicts, tree: Tree, numbers: Sequence[int], whole: bool
) -> Iterator[str]:
    """What the learner should do next."""
    known = dict.fromkeys(pieces().values())
    wrong = [one for one in known if verdicts.of(one.title) == WRONG]
    # The stub may be in a function that is half written, or in another stage.
    to_write = [
        piece
        for piece in known
        if any(one.stub in verdicts.stubs for one in piece.functions)
    ]
    if wrong:
        yield from _fix(wrong[0], tree, verdicts)
    elif to_write:
        yield from _write(to_write[0], tree)
    elif verdicts.failed:
        yield "next: fix what failed above"
    elif not verdicts.passed:
        yield "No test was run."
    elif not tree.is_reference:
        yield from _done(verdicts, tree, numbers, whole)


def _fix(piece: Piece, tree: Tree, verdicts: Verdicts) -> Iterator[str]:
    """What to do about a piece that is wrong."""
    if tree.is_reference:
        return
    # A mistake in the first fails tests of later ones, too, and seldom the
    # other way round.
    most = max(verdicts.part(one.name) for one in piece.functions)
    one = next(o for o in piece.functions if 2 * verdicts.part(o.name) > most)
    of = f" of {piece.title}" if len(piece.functions) > 1 else ""
    yield f"next: fix {one.qualname}{of} in {_place(one, tree)}"
    if sum(verdicts.part(name) > 0 for name in exercises()) > 1:
        yield "      What else is ✗ may be right: check it again after that."
    yield f"      python -m stages hint {piece.title}"
    yield (
        f"      python -m stages blame {piece.stage:02d}    "
        f"(which of your functions is wrong?)"
    )


def _write(piece: Piece, tree: Tree) -> Iterator[str]:
    """What to do about a piece that is not written."""
    if tree.is_reference:
        return
    title, one = to_write(piece, tree.states())
    yield f"next: write {title} in {_place(one, tree)}"
    yield f"      {piece.task}"
    yield f"      python -m stages hint {piece.title}    (if you want one)"
    watch = f"python -m stages watch {piece.stage:02d}"
    yield f"      {watch}    (checks at each save)"


def unfinished(states: Mapping[str, State]) -> list[int]:
    """The stages in which something is not written."""
    return [
        number
        for number, stage in stages().items()
        if not all(is_written(piece, states) for piece in stage.pieces)
    ]


def to_write(piece: Piece, states: Mapping[str, State]) -> tuple[str, Exercise]:
    """A piece to write as it is told, and the function to begin with."""
    left = [o for o in piece.functions if states[o.name] is not State.WRITTEN]
    one = (left or piece.functions)[0]
    if len(piece.functions) == 1:
        return piece.title, one
    done = f"{written(piece, states)} of {len(piece.functions)} written"
    return f"{one.qualname} ({piece.title}: {done})", one


def _place(one: Exercise, tree: Tree) -> str:
    """Where a function is."""
    return f"{tree.shown(one.file)}:{tree.function(one).lineno}"


def is_whole(verdicts: Verdicts, numbers: Sequence[int], whole: bool) -> bool:
    """Whether each exercise of these stages was checked by all its tests."""
    return whole and all(
        verdicts.signs(one.title)
        for number in numbers
        for one in stages()[number].pieces
    )


def _done(
    verdicts: Verdicts, tree: Tree, numbers: Sequence[int], whole: bool
) -> Iterator[str]:
    """What to do after a stage, or a part of it, has passed."""
    names = " ".join(f"stages/{number:02d}" for number in numbers)
    if not is_whole(verdicts, numbers, whole):
        states = tree.states()
        ones = (one for number in numbers for one in stages()[number].pieces)
        rest = [one for one in ones if not is_written(one, states)]
        yield "These pass." if rest else f"These pass. Now: pytest {names}"
        for piece in rest[:1]:
            yield from _write(piece, tree)
        return
    for number in numbers:
        yield f"Stage {number:02d}: exercises done ✓"
    last = stages()[numbers[-1]]
    yield f"try: python -m stages run {last.after}"
    yield f"     It {last.shows}."
    if left := unfinished(tree.states()):
        yield (
            f"next: python -m stages predict {left[0]:02d}, "
            f"read {left[0]:02d}, then pytest stages/{left[0]:02d}"
        )
    else:
        yield f"next: {CAPSTONES}"
    if GRADIENT in numbers:
        yield (
            "open now: a program that differentiates programs: "
            "python -m stages read gradient"
        )
    yield f"also: python -m stages solution {last.pieces[0].title}"
    yield (
        f"      python -m stages seal {numbers[-1]:02d}    (the library's own "
        f"tests on your code)"
    )
