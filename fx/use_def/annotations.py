"""Stage 02, use-def: annotations and signatures, also of names not defined.

An annotation may name a class that is imported for a type checker alone, or
defined further down.  From Python 3.14 on, asking for it raises then, unless
one says in which form it may come.
"""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Callable
from inspect import Signature
from typing import Final

from .values import AnyValue

_TEXT: Final[dict[str, AnyValue]] = {}
"""The keyword of `inspect.get_annotations` that asks for all as text."""

_KNOWN: Final[dict[str, AnyValue]] = {}
"""The one that asks for values, and for a ForwardRef where there is none."""

_SIGNATURE: Final[dict[str, AnyValue]] = {}
"""The same for `inspect.signature`."""

if sys.version_info >= (3, 14):
    from annotationlib import Format

    _TEXT["format"] = Format.STRING
    _KNOWN["format"] = _SIGNATURE["annotation_format"] = Format.FORWARDREF


def annotations_of(function: Callable[..., AnyValue]) -> dict[str, AnyValue]:
    """The annotations of a function; as text where a name is not defined.

    Args:
        function: not called, and its decorators are not looked through.
    """
    try:
        return inspect.get_annotations(function)
    except (NameError, AttributeError):
        texts = inspect.get_annotations(function, **_TEXT)
        known = inspect.get_annotations(function, **_KNOWN)
        return {
            name: note if _is_known(note) else texts[name]
            for name, note in known.items()
        }


def _is_known(note: AnyValue) -> bool:
    """Whether all that an annotation names is defined."""
    parts = typing.get_args(note)
    is_name = isinstance(note, typing.ForwardRef)
    return not is_name and all(map(_is_known, parts))


def signature_of(
    function: Callable[..., AnyValue], *, follow_wrapped: bool = True
) -> Signature:
    """`inspect.signature`, also where annotations name what is not defined.

    Raises:
        ValueError: there is no signature, as of some functions in C.
    """
    return inspect.signature(
        function, follow_wrapped=follow_wrapped, **_SIGNATURE
    )
