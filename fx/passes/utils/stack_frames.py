"""Passes: the lines of the user's program that a node comes from."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

__all__ = ["Frame", "frames_of"]

_FRAME: Final = re.compile(
    r'^ *File "(.+)", line (\d+), in (.+)(?:\n(?! *File ") *(.*))?',
    re.MULTILINE,
)


class Frame(NamedTuple):
    """A line of a program.

    Attributes:
        file: the path of its file.
        line: its number.
        function: the name of the function that it is in.
        code: its text, "" if it is not known.
    """

    file: str
    line: int
    function: str
    code: str


def frames_of(stack_trace: str | None) -> list[Frame]:
    """The frames of a stack trace that is text, the innermost last."""
    found = _FRAME.findall(stack_trace or "")
    return [Frame(file, int(line), *rest) for file, line, *rest in found]
