"""Stage 03, proxies and magic methods: where in the user's code we are.

When a proxy is used as a condition or in a loop, the error should name the
user's line, and `a, b = proxy` can work if the number of names is known.  This
file finds the innermost frame that belongs neither to fx nor to torch, the
expression that it evaluates and the instruction that it executes.  No other
file reads bytecode, which changes from one Python to the next.
"""

from __future__ import annotations

import dis
import linecache
import sys
import traceback
from collections.abc import Callable
from itertools import islice, takewhile
from types import FrameType
from typing import Final

_OURS: Final = (__name__.removesuffix("recording.frames"), "torch.")


def _is_ours(frame: FrameType) -> bool:
    """Whether a frame's code belongs to fx or torch, not to the user."""
    return f"{frame.f_globals.get('__name__')}.".startswith(_OURS)


def run_traced(function: Callable[..., object], inputs: list[object]) -> object:
    """Call the function that is traced: `user_stack` begins above this call."""
    return function(*inputs)


def user_frame() -> FrameType | None:
    """The innermost frame of the user's code, if there is one."""
    stack = traceback.walk_stack(sys._getframe(1))
    return next((frame for frame, _ in stack if not _is_ours(frame)), None)


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
        if not _is_ours(frame)
    ]
    summary = traceback.StackSummary.from_list(users[::-1])
    return "".join(summary.format()).strip()


def where() -> str:
    """The user's line and expression, for the end of an error message."""
    frame = user_frame()
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
    here = islice(code.co_positions(), frame.f_lasti // 2, None)
    first, last, start, end = next(here, (None, None, None, None))
    if first is None or first != last:
        return ""
    line = linecache.getline(code.co_filename, first).encode()
    return line[start:end].decode(errors="replace").strip()


def unpack_count(frame: FrameType) -> int | None:
    """How many names `a, b = …` unpacks to, if `frame` is executing that.

    None also for more than 255 names, whose number takes two instructions.
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
    """
    rest = [
        instruction.opname
        for instruction in dis.get_instructions(frame.f_code)
        if instruction.offset >= frame.f_lasti
    ]
    if rest[0] == "TO_BOOL":  # Python 3.13 converts before it jumps
        rest.pop(0)
    jumps = rest[0].startswith("POP_JUMP") and rest[0].endswith("IF_TRUE")
    return jumps and rest[1] in (
        "LOAD_ASSERTION_ERROR",
        "LOAD_COMMON_CONSTANT",
    )
