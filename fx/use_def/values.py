"""Stage 02, use-def: type aliases, such as AnyValue, and fx's own constants.

This file imports nothing of fx, so that every other file can use the names.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, get_args

import torch
import torch.fx

AnyValue: TypeAlias = Any
"""A value of the user's program, which fx passes on and knows nothing of."""

Argument: TypeAlias = object
"""What args and kwargs are made of: a Node, a constant, or a tuple, list,
dict with string keys, slice or dataclass of Arguments.  Any object can be a
constant, so the alias promises nothing: narrow with `isinstance` or `match`,
or ask `node.input_at(0)` for a Node."""

Function: TypeAlias = Callable[..., AnyValue]
"""What a program calls."""

Args: TypeAlias = tuple[AnyValue, ...]
"""What a call gives by position."""

Kwargs: TypeAlias = dict[str, AnyValue]
"""What a call gives by keyword."""


class ArgsKwargsPair(NamedTuple):
    """The arguments of a call.

    torch.fx: operator_schemas.py, ArgsKwargsPair
    """

    args: Args
    kwargs: Kwargs


BaseArgumentTypes: Final[object] = (
    str
    | int
    | float
    | bool
    | complex
    | torch.SymInt
    | torch.SymFloat
    | torch.SymBool
    | torch.Tensor
    | torch.dtype
    | torch.device
    | torch.layout
    | torch.memory_format
    | type(torch.ops.aten.add.Tensor)
)
"""The constants that a trace accepts as they are."""

base_types: Final[tuple[type, ...]] = get_args(BaseArgumentTypes)
"""BaseArgumentTypes as a tuple, for `isinstance`."""


def overrides_new(kind: AnyValue) -> bool:
    """Whether a class of named tuples may be called with other than its items.

    It overrides the `__new__` that `namedtuple` wrote; `_make` takes the items.
    """
    of_namedtuple = next(c for c in kind.__mro__ if "_fields" in vars(c))
    return kind.__new__ is not of_namedtuple.__new__


class Open(ABCMeta):
    """The class of Node, Graph and GraphModule, which `fx.as_torch` changes.

    A program for torch.fx is told there that torch's are instances, too.  A
    class below them may have `ABCMeta` as well.
    """

    if not TYPE_CHECKING:  # a type checker takes ABCMeta's
        __instancecheck__ = type.__instancecheck__


class ProxyBase(metaclass=Open):
    """Stands for a value while a program is recorded: stage 03's Proxy."""


PROXY_TYPES: Final = (ProxyBase, torch.fx.Proxy, torch.fx.Node)
"""What cannot be an argument, because it would be taken for a constant."""

LEAVES: Final[frozenset[type]] = frozenset(
    (*base_types, type(None), type(...), range)
)
"""Exact types of constants: nothing to look for inside them."""
