"""Stage 05, codegen: how the type of a node is written as an annotation.

Annotations of parameters and of the return value are evaluated when the
generated function is defined, so each class in them is a global of the code:
`typing.List[torch.Tensor]` is written `typing_List[torch.Tensor]`.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable
from types import FunctionType, UnionType
from typing import Final

from ..text.qualified_names import _type_repr
from ..usedef.values import Value
from .global_names import GlobalNames

_ALIASES: Final[dict[object, Value]] = {
    alias.__origin__: alias
    for alias in (
        getattr(typing, name)
        for name in ("List", "Dict", "Set", "FrozenSet", "Tuple")
    )
}
"""`list` -> `typing.List`, for types that were written in the old way."""

_NAMED_BY_REPR: Final = frozenset((str, int, bool, bytes, type(...)))
"""Exact types whose `repr` is a good hint for the name of a global."""


def type_text(kind: Value, names: GlobalNames) -> str:
    """A type, or another object that annotates something, as code.

    Args:
        kind: a class, a generic type with arguments, `int | None`, a string,
            or any object.
        names: where its parts get their names.

    torch.fx: graph.py, type_repr
    """
    if isinstance(kind, list):  # the parameters of typing.Callable
        return f"[{_join(kind, names)}]"
    if type(kind) is tuple and not kind:
        return "()"
    if isinstance(kind, UnionType):
        return "|".join(type_text(arg, names) for arg in typing.get_args(kind))
    origin = None
    if not isinstance(kind, type) and not hasattr(kind, "__metadata__"):
        origin = getattr(kind, "__origin__", None)
    return (
        _plain(kind, names) if origin is None else _generic(kind, origin, names)
    )


def _join(kinds: Iterable[Value], names: GlobalNames) -> str:
    """Type arguments."""
    return ",".join(type_text(kind, names) for kind in kinds)


def _generic(kind: Value, origin: Value, names: GlobalNames) -> str:
    """`list[int]`, `typing.Union[int, str]`."""
    if type(kind).__module__ == "typing" and hasattr(kind, "__args__"):
        origin = _ALIASES.get(origin, origin)
    name = names.name_of(origin, _type_repr(origin))
    args = typing.get_args(kind) or getattr(kind, "__args__", ())
    return f"{name}[{_join(args, names)}]" if args else name


def _plain(kind: Value, names: GlobalNames) -> str:
    """A class, or another object, bound as a global."""
    if isinstance(kind, type | FunctionType):
        return names.name_of(kind, _type_repr(kind))
    cls = type(kind)
    if cls in _NAMED_BY_REPR or cls.__module__ == "typing":
        return names.bind(_type_repr(kind), kind)
    return names.constant(kind)
