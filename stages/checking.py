"""Assertions for the stages' tests, which explain a failure to the learner.

A test of the course never ends in `assert a == b`.  It says in a sentence
what it found and what the contract asks for, and shows the two graphs, or the
two texts, side by side with the first difference marked.
"""

from __future__ import annotations

import re
import signal
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from types import FrameType
from typing import Any, Final, TypeAlias

_WIDTH: Final = 76
"""How wide a picture may be: `explain` indents it by four columns."""

Tracer: TypeAlias = Any
"""What `sys.settrace` takes: a function that returns another like it."""

Made: TypeAlias = Any
"""A graph or a node of the fx under test, which is not imported here."""

_STUB: Final = re.compile(r"stage \d\d: [\w.]+(?=\n|$)")
"""A stub's message; code that passes the error on may add lines to it."""


def stub_of(error: BaseException) -> str | None:
    """The stub's message, if an error comes from an unwritten function."""
    if not isinstance(error, NotImplementedError):
        return None
    found = _STUB.match(str(error))
    return found[0] if found else None


class Mistake(AssertionError):
    """A failed check: a sentence for the learner, and maybe a picture."""

    def __init__(self, sentence: str, picture: str = "") -> None:
        self.sentence = sentence
        self.picture = picture
        super().__init__(f"{sentence}\n{picture}" if picture else sentence)


def check(ok: object, sentence: str, *, picture: str = "") -> None:
    """Raise a Mistake unless `ok` is true.

    Args:
        ok: what must hold; its truth value counts.
        sentence: what the test found, and what the contract asks for.
        picture: lines to show below the sentence.

    Raises:
        Mistake: `ok` is false.
    """
    if not ok:
        raise Mistake(sentence, picture)


def same(yours: object, expected: object, sentence: str) -> None:
    """Raise a Mistake unless two values are equal and of the same type.

    Raises:
        Mistake: they are not; the picture shows one above the other.
    """
    if type(yours) is not type(expected) or yours != expected:
        picture = f"yours:    {yours!r}\nexpected: {expected!r}"
        raise Mistake(sentence, picture)


def same_text(yours: str, expected: str, sentence: str) -> None:
    """Raise a Mistake unless two texts have the same lines.

    White space at the ends of lines, and empty lines around the text, do not
    count; `expected` may be indented.

    Raises:
        Mistake: they differ; the picture shows them side by side, with the
            first difference marked.
    """
    left, right = _lines(yours), _lines(expected)
    if left != right:
        raise Mistake(sentence, side_by_side(left, right))


def same_graph(graph: object, expected: str, sentence: str) -> None:
    """Compare the printed form of a graph with a text, as `same_text` does.

    Args:
        graph: a Graph, or an OrderedGraph.
        expected: what `str(graph)` should be.
        sentence: what the test found, and what the contract asks for.
    """
    same_text(str(graph), expected, sentence)


@contextmanager
def raising(
    error: type[BaseException], part: str, sentence: str
) -> Iterator[None]:
    """Check that the block raises an error whose message contains `part`.

    The error of an unwritten function is passed on as it is.

    Raises:
        Mistake: the block raised nothing, another error, or one with another
            message.
    """
    try:
        yield
    except Mistake:
        raise
    except (error, Exception) as found:
        # A stub's NotImplementedError is a RuntimeError, but not the one meant.
        if stub_of(found):
            raise
        if not isinstance(found, error):
            raise Mistake(
                sentence,
                f"yours:    {type(found).__name__}: {found}\n"
                f"expected: {error.__name__}: … {part} …",
            ) from found
        if part not in str(found):
            raise Mistake(
                sentence, f"yours:    {found}\nexpected: … {part} …"
            ) from found
    else:
        raise Mistake(
            sentence,
            f"yours:    nothing was raised\n"
            f"expected: {error.__name__}: … {part} …",
        )


@contextmanager
def working(sentence: str) -> Iterator[None]:
    """Tell an error that the block raises as a mistake.

    The error of an unwritten function is passed on as it is, and so is a
    Mistake.

    Raises:
        Mistake: the block raised an error, which the picture shows.
    """
    try:
        yield
    except Mistake:
        raise
    except Exception as error:
        if stub_of(error):
            raise
        picture = f"yours: {type(error).__name__}: {error}"
        raise Mistake(sentence, picture) from error


def linear(run: Callable[[int], object], sentence: str) -> None:
    """Check that work grows no faster than the size of the input.

    The lines of fx that are run are counted, which, unlike time, is the same
    on each machine.

    Args:
        run: does the work for an input of the given size.
        sentence: what the work is, and which cost the contract promises.

    Raises:
        Mistake: four times the size takes more than six times the lines.
    """
    small, large = _lines_run(run, 50), _lines_run(run, 200)
    if large > 6 * small:
        raise Mistake(
            sentence,
            f"size  50: {small:7,} lines run\n"
            f"size 200: {large:7,} lines run, {large // small} times as many",
        )


def _lines_run(run: Callable[[int], object], size: int) -> int:
    """How many lines of fx are run meanwhile."""
    count = 0

    def on_line(frame: FrameType, event: str, _: object) -> Tracer:
        nonlocal count
        count += event == "line"
        return on_line

    def on_call(frame: FrameType, event: str, _: object) -> Tracer:
        name = str(frame.f_globals.get("__name__"))
        return on_line if name.partition(".")[0] == "fx" else None

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        run(size)
    finally:
        sys.settrace(before)
    return count


def uses_intact(graph: Made, sentence: str) -> None:
    """Check that each node's users are the nodes with it in their arguments.

    The arguments are searched without fx, whose own functions for that may
    still be unwritten.

    Raises:
        Mistake: an edge is recorded at one end only; the picture names it.
    """
    wrong = list(_wrong_edges(graph))
    if wrong:
        raise Mistake(sentence, "\n".join(wrong))


def _wrong_edges(graph: Made) -> Iterator[str]:
    """A line for each edge that only one of its two nodes records."""
    members = list(graph.nodes)
    wanted = [(node, used) for node in members for used in _used_by(node)]
    for node, used in wanted:
        if node not in used.users:
            yield (
                f"%{node} has %{used} among its arguments, "
                f"but %{used}.users is {_names(used)}: %{node} is missing"
            )
    for used in members:
        for user in used.users:
            if (user, used) not in wanted:
                yield (
                    f"%{used}.users is {_names(used)}, but %{user} does not "
                    f"have %{used} among its arguments (any more)"
                )


def _used_by(node: Made) -> list[Made]:
    """The nodes in a node's arguments, each once."""
    found: list[Made] = []
    rest: list[Made] = [node.args, node.kwargs]
    while rest:
        value = rest.pop()
        if hasattr(value, "users"):
            if value not in found:
                found.append(value)
        elif isinstance(value, tuple | list):
            rest.extend(value)
        elif isinstance(value, dict):
            rest.extend(value.values())
        elif isinstance(value, slice):
            rest.extend((value.start, value.stop, value.step))
    return found


def _names(node: Made) -> str:
    """A node's users as text: `[%add, %relu]`."""
    return "[" + ", ".join(f"%{user}" for user in node.users) + "]"


def side_by_side(yours: list[str], expected: list[str]) -> str:
    """Two texts, the first difference marked by an arrow.

    They stand in two columns if these fit; otherwise lines that are the same
    are shown once, and the two versions of others one above the other.
    """
    rows = [*zip_longest(yours, expected, fillvalue="(nothing)")]
    first = next(n for n, (left, right) in enumerate(rows) if left != right)
    width = max(len(left) for left, _ in [("yours", ""), *rows])
    columns = [
        f"{'→ ' if n == first else '  '}{left:{width}}    {right}".rstrip()
        for n, (left, right) in enumerate(rows)
    ]
    columns.insert(0, f"  {'yours':{width}}    expected")
    if max(map(len, columns)) > _WIDTH:
        columns = [line for row in rows for line in _stacked(*row)]
    return "\n".join([*columns, "→ the first difference"])


def _stacked(left: str, right: str) -> Iterator[str]:
    """One row of two texts, without columns."""
    if left == right:
        yield from _wrapped("  ", left)
    else:
        yield from _wrapped("→ yours:    ", left)
        yield from _wrapped("  expected: ", right)


def _wrapped(label: str, line: str) -> list[str]:
    """A line behind a label, broken where it is too wide."""
    indent = " " * (len(line) - len(line.lstrip()))
    return textwrap.wrap(
        line.lstrip(),
        _WIDTH,
        initial_indent=label + indent,
        subsequent_indent=" " * len(label) + indent + "    ",
        break_on_hyphens=False,
    ) or [label.rstrip()]


def _lines(text: str) -> list[str]:
    """The lines of a text without the indentation that all of them share."""
    lines = [line.rstrip() for line in text.strip("\n").splitlines()]
    while lines and not lines[0]:
        lines.pop(0)
    while lines and not lines[-1]:
        lines.pop()
    depth = min(
        (len(line) - len(line.lstrip()) for line in lines if line), default=0
    )
    return [line[depth:] for line in lines]


# --- time ------------------------------------------------------------------


class Overtime(BaseException):
    """Code was stopped because it took too long.

    It is not an Exception, so that code which catches every Exception does
    not swallow it.
    """


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Interrupt the block after some seconds of processor time.

    Processor time counts, because a busy machine makes every block slower.  A
    block that waits instead of working is interrupted after six times as
    long, and one that catches the error is interrupted again each second.
    Without interval timers (on Windows), and in a debugger, nothing is
    interrupted.

    Args:
        seconds: how much processor time the block may take.

    Raises:
        Overtime: it took longer; raised from the line that was running.
    """
    if not hasattr(signal, "setitimer") or sys.gettrace() is not None:
        yield
        return
    began, work = time.monotonic(), time.process_time()

    def stop(number: int, frame: FrameType | None) -> None:
        if time.process_time() - work > 0.9 * seconds:
            raise Overtime(f"stopped after {seconds:g} seconds")
        if time.monotonic() - began > 6 * seconds:
            raise Overtime(f"stopped after {6 * seconds:g} seconds of waiting")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        no_limit()
        signal.signal(signal.SIGALRM, before)


def no_limit() -> None:
    """Cancel the limit of the block that is running, if there is one."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0)
