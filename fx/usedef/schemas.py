"""Stage 02, use-def: who is asked for the signature of what a node calls.

`torch.add(x, y)` and `torch.add(input=x, other=y)` are equivalent, but to see
that, one has to know the signatures of all operators.  A node knows none.  It
asks the object at `Node._schemas`, and so does a tracer that refuses calls
which write.  The plain default there knows nothing, and says so; `import fx`
puts `fx.operator_schemas` there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, NoReturn, Protocol, TypeAlias

import torch

from .values import Argument, Value

Function: TypeAlias = Callable[..., Value]
"""What a call_function node may call."""

Args: TypeAlias = tuple[Argument, ...]
Kwargs: TypeAlias = Mapping[str, Argument]


class ArgsKwargsPair(NamedTuple):
    """The arguments of a call.

    torch.fx: operator_schemas.py, ArgsKwargsPair
    """

    args: tuple[Value, ...]
    kwargs: dict[str, Value]


class Schemas(Protocol):
    """What knows signatures: see the functions of fx.operator_schemas."""

    def normalize_function(
        self,
        target: Function,
        args: Args,
        kwargs: Kwargs | None,
        arg_types: tuple[Value, ...] | None,
        kwarg_types: Mapping[str, Value] | None,
        normalize_to_only_use_kwargs: bool,
        /,
    ) -> ArgsKwargsPair | None:
        """A call's arguments, written as its signature gives them."""
        ...

    def normalize_module(
        self,
        root: torch.nn.Module,
        target: str,
        args: Args,
        kwargs: Kwargs | None,
        normalize_to_only_use_kwargs: bool,
        /,
    ) -> ArgsKwargsPair | None:
        """The arguments of a call of a module, by its `forward`."""
        ...

    def check_for_mutable_operation(
        self, target: Function, args: Args, kwargs: Kwargs, /
    ) -> None:
        """Raise if the call is sure to write into one of its arguments."""
        ...


class NoSchemas:
    """Knows no signature, and raises RuntimeError when asked for one.

    To answer "not known" would be wrong: a pass would take it for a function
    without a signature.
    """

    def normalize_function(self, *call: object) -> NoReturn:
        """Raise, as nothing is known here."""
        _refuse("Node.normalized_arguments")

    def normalize_module(self, *call: object) -> NoReturn:
        """Raise, as nothing is known here."""
        _refuse("Node.normalized_arguments")

    def check_for_mutable_operation(self, *call: object) -> NoReturn:
        """Raise, as nothing is known here."""
        _refuse("check_mutable_operations")


def _refuse(what: str) -> NoReturn:
    raise RuntimeError(
        f"{what} needs fx.operator_schemas, which is not there: import fx as a "
        "whole"
    )
