"""Stage 05, codegen: generated text laid out with one item a line.

Parameters and results get a line each if somebody asks for it, so that a
comment can stand behind each of them; a module becomes a class with the classes
of its children inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest

from ..usedef.values import Argument
from .emit import INDENT


def parameter_line(parameter: str) -> str:
    """A line with one parameter; a comment goes behind the comma."""
    text, hash_, comment = parameter.partition("#")
    comment = f"  # {comment.lstrip()}" if hash_ else ""
    return f"{INDENT}{text.rstrip()},{comment}\n"


def output_text(
    value: Argument,
    descs: Sequence[str] | None,
    repr_fn: Callable[[object], str],
) -> str:
    """What is returned, on a line for each item if there are comments."""
    if descs is None or not isinstance(value, list | tuple):
        return repr_fn(value)
    left, right = "()" if isinstance(value, tuple) else "[]"
    comments = [f"  # {desc}" for desc in descs[: len(value)]]
    lines = [
        f"{INDENT}{repr_fn(item)},{comment}\n"
        for item, comment in zip_longest(value, comments, fillvalue="")
    ]
    return f"{left}\n{''.join(lines)}{right}"


def class_text(name: str, code: str, children: Iterable[str]) -> str:
    """A module as a class in Python.

    Args:
        name: the name of the class.
        code: the source of its forward.
        children: the texts of the classes inside it.
    """
    head = f"class {name}(torch.nn.Module):\n" + code.lstrip("\n")
    return _indent(head) + _indent("\n".join(["", *children]))


def _indent(text: str) -> str:
    """All lines but the first, moved to the right; blank lines are empty."""
    first, *rest = text.split("\n")
    moved = (f"{INDENT}{line}" if line.strip() else "" for line in rest)
    return "\n".join((first, *moved))
