"""Stage 03, proxies and magic methods: where in the user's code we are.

When a proxy is used as a condition or in a loop, the error should name the
user's line, and `a, b = proxy` can work if the number of names is known.  This
file finds the innermost frame that belongs neither to fx nor to torch, the
expression that it evaluates and the instruction that it executes.  Bytecode
changes from one Python to the next.

It only reads.  What cannot be found out is "" or None and not an exception,
because an error while making an error hides both.  A frame belongs to fx or
torch by the name of its module and not by its file, since generated code has
none.
"""

from __future__ import annotations

import dis
import linecache
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from itertools import islice, takewhile
from types import FrameType
from typing import Final, TypeVar

from ..use_def.values import AnyValue

T = TypeVar("T")

OURS: Final = (__name__.removesuffix("recording.frames"), "torch.")
"""How the names of fx's modules begin, and of torch's."""


def is_user(frame: FrameType) -> bool:
    """Whether a frame's code belongs to the user, not to fx or torch."""
    return not f"{frame.f_globals.get('__name__')}.".startswith(OURS)


def run_traced(function: Callable[..., T], inputs: Sequence[AnyValue]) -> T:
    """Call a function for a trace: `user_stack` begins above this call."""
    return function(*inputs)


def user_frame() -> FrameType | None:
    """The innermost frame of the user's code, if there is one."""
    stack = traceback.walk_stack(sys._getframe(1))
    return next((frame for frame, _ in stack if is_user(frame)), None)


def user_line() -> tuple[str, int]:
    """The user's file and line, for a warning."""
    frame = user_frame()
    if frame is None:
        return "<unknown>", 1
    return frame.f_code.co_filename, frame.f_lineno


def warn(message: str, line: tuple[str, int] | None = None) -> None:
    """Warn at the user's line, or at one that `user_line` gave before."""
    warnings.warn_explicit(message, UserWarning, *(line or user_line()))


def user_stack() -> str:
    """The user's frames, from the traced function inwards, as text.

    Frames of fx and torch are left out, and so is everything outside the
    trace in progress. Innermost last, "" if there are none.
    """
    code = run_traced.__code__
    stack = traceback.walk_stack(sys._getframe(1))
    inside = takewhile(lambda entry: entry[0].f_code is not code, stack)
    users = [
        (frame.f_code.co_filename, line, frame.f_code.co_name, None)
        for frame, line in inside
        if is_user(frame)
    ]
    summary = traceback.StackSummary.from_list(users[::-1])
    return "".join(summary.format()).strip()


def where(frame: FrameType | None = None) -> str:
    """The user's line and expression, for the end of an error message.

    Positions count bytes of UTF-8, so the line is cut as bytes.  An expression
    on several lines is left out.

    Args:
        frame: a frame of the user's code; by default the innermost one.
    """
    frame = frame or user_frame()
    if frame is None:
        return "in code that has no Python frame"
    code = frame.f_code
    place = f'File "{code.co_filename}", line {frame.f_lineno}'
    line = linecache.getline(code.co_filename, frame.f_lineno).strip()
    text = f"{place}, in {code.co_qualname}"
    if line:
        text += f"\n    {line}"
    expression = _expression(frame)
    if expression and expression != line:
        text += f"\n    in the expression: {expression}"
    return text


def _expression(frame: FrameType) -> str:
    """The source of what is being evaluated in `frame`, if on one line."""
    code = frame.f_code
    positions = islice(code.co_positions(), frame.f_lasti // 2, None)
    first, last, start, end = next(positions, (None, None, None, None))
    if first is None or first != last:
        return ""
    line = linecache.getline(code.co_filename, first).encode()
    return line[start:end].decode(errors="replace").strip()


def unpack_count(frame: FrameType) -> int | None:
    """How many names `a, b = …` unpacks to, if `frame` is executing that.

    None also for more than 255 names, whose number takes two instructions.

    A wrong count would silently make a wrong graph, so an unpacking of more
    names is refused like a loop.  `dis.get_instructions` would read the whole
    number, but decodes the function from its beginning.
    """
    code, here = frame.f_code.co_code, frame.f_lasti
    is_long = dis.opname[code[here - 2]] == "EXTENDED_ARG"
    if is_long or dis.opname[code[here]] != "UNPACK_SEQUENCE":
        return None
    return code[here + 1]


def is_asserting(frame: FrameType) -> bool:
    """Whether `frame` is testing the condition of an assert statement.

    That is: the truth value decides whether to jump over the next
    instruction, which loads AssertionError to raise it.

    `if not x: raise AssertionError` jumps over a global of that name, which is
    not an assert.  The names of the instructions differ between versions of
    Python, so the beginning and the end of the jump's name are compared.  Of a
    condition with `and` or `or`, only the last jump is recognised; what is not
    is refused.
    """
    rest = [
        instruction
        for instruction in dis.get_instructions(frame.f_code)
        if instruction.offset >= frame.f_lasti
        and instruction.opname not in _IDLE
    ]
    test, behind = rest[0].opname, rest[1]
    jumps = test.startswith("POP_JUMP") and test.endswith("IF_TRUE")
    return jumps and (behind.opname, behind.argrepr) in _LOADS


_LOADS: Final = {
    ("LOAD_ASSERTION_ERROR", ""),
    ("LOAD_COMMON_CONSTANT", "AssertionError"),
}
"""What loads the class, and not a name: up to Python 3.13, and from 3.14 on."""

_IDLE: Final = ("COMPARE_OP", "TO_BOOL", "NOT_TAKEN")
"""Instructions beside the jump: newer Pythons convert to bool before it."""
