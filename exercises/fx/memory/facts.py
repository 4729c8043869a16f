"""Stage 02, use-def: what is known of an operator of torch.

Passes ask what an operator does to memory: is its result a view, and of which
argument; does it write; is there a variant of it that works in place?  Each
overload of an operator declares this in its schema, so no list of operators
is needed here:

    add.Tensor(Tensor self, ...) -> Tensor             twin: add_.Tensor
    add_.Tensor(Tensor(a!) self, ...) -> Tensor(a!)    writes self
    select.int(Tensor(a) self, ...) -> Tensor(a)       a view of self
    select_scatter(Tensor self, Tensor src, ...)       inverse of select.int
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from inspect import Signature
from typing import Final, NamedTuple, TypeAlias

import torch
from torch import Tag
from torch._C import FunctionSchema
from torch._ops import OpOverload, OpOverloadPacket
from torch.jit._builtins import _find_builtin

from ..usedef.values import Argument, Value
from .signatures import signature_of_schema

__all__ = ["Facts", "Overload", "Parameter", "facts_of", "facts_of_overloads"]

Overload: TypeAlias = OpOverload[..., Value]
"""One overload of an operator of torch: torch.ops.aten.add.Tensor."""


class Parameter(NamedTuple):
    """One parameter of a function, as calls give it.

    Attributes:
        name: what a call writes to give it by keyword.
        place: its index among positional arguments; None for keyword-only.
        default: what it is if a call does not give it; `...` if a call must.
    """

    name: str
    place: int | None = None
    default: Value = None

    def of(
        self, args: Sequence[Argument], kwargs: Mapping[str, Argument]
    ) -> Argument:
        """What a call with these arguments gives for it, or the default."""
        if self.place is not None and self.place < len(args):
            return args[self.place]
        given: Argument = kwargs.get(self.name, self.default)
        return given


def _parameter(place: int, argument: torch._C.Argument) -> Parameter:
    """The parameter that a schema declares at some place."""
    return Parameter(
        argument.name,
        None if argument.kwarg_only else place,
        argument.default_value if argument.has_default_value() else ...,
    )


class Facts:
    """What is known of one overload of an operator.

    Attributes:
        overload: the overload itself.
        schema: how torch declares it.
        name: of the operator, "aten::add" for all overloads of add.
        full_name: with the overload, "aten::add.Tensor".
        base: without the namespace, "add".
        parameters: by name.
        views: the parameters that the result may be a view of.
        writes: the parameters that are written into.
        draws: whether it draws random numbers.
        reads_layout: whether the result depends on strides, not on elements
            alone.
        reads_data: whether it gives Python a number out of a tensor.
        returns_one_tensor: whether the result is one tensor, and not a tuple,
            a list or a number.
    """

    def __init__(self, overload: Overload) -> None:
        """Read what the schema and the tags of an overload declare."""
        schema = overload._schema
        self.overload = overload
        self.schema = schema
        self.name: str = schema.name
        parts = (schema.name, schema.overload_name)
        self.full_name = ".".join(filter(None, parts))
        self.base = self.name.partition("::")[2]
        self.parameters = {
            argument.name: _parameter(place, argument)
            for place, argument in enumerate(schema.arguments)
        }
        self.views: list[Parameter] = []
        self.writes: list[Parameter] = []
        for argument in schema.arguments:
            if argument.alias_info is not None:
                is_write = argument.alias_info.is_write
                marked = self.writes if is_write else self.views
                marked.append(self.parameters[argument.name])
        self.draws = Tag.nondeterministic_seeded in overload.tags
        self.reads_layout = (
            self.base.startswith("as_strided") or self.base in _LAYOUT_READERS
        )
        self.reads_data = Tag.data_dependent_output in overload.tags
        returns = [str(value.type) for value in schema.returns]
        self.returns_one_tensor = returns == ["Tensor"]

    @cached_property
    def signature(self) -> Signature:
        """The schema as a signature of Python."""
        return signature_of_schema(self.schema)

    @cached_property
    def twin(self) -> Overload | None:
        """The overload that computes the same into its first argument."""
        if self._is_functional and self.returns_one_tensor:
            for twin in self._namesakes(f"{self.base}_"):
                if _is_twin(self.schema, twin._schema):
                    return twin
        return None

    @cached_property
    def view(self) -> Overload | None:
        """For a scatter operator, the view that it is the inverse of.

        That is `select(self, ...)` for `select_scatter(self, src, ...)`.
        """
        base, _, scatter = self.base.rpartition("_")
        is_scatter = (
            scatter == "scatter"
            and [*self.parameters][:2] == ["self", "src"]
            and self._is_functional
        )
        for view in self._namesakes(base) if is_scatter else ():
            given, taken = list(self.schema.arguments), view._schema.arguments
            del given[1]
            if taken and taken[0].alias_info is not None and _fit(given, taken):
                return view
        return None

    @property
    def source(self) -> Parameter | None:
        """For a scatter operator, the parameter that it writes."""
        return None if self.view is None else self.parameters["src"]

    @property
    def _is_functional(self) -> bool:
        """Whether it writes into no argument and returns no view of one."""
        return not self.views and not self.writes

    def _namesakes(self, base: str) -> list[Overload]:
        """The overloads of the operator `base` in the same namespace."""
        return _overloads(f"{self.name.partition('::')[0]}::{base}")


_LAYOUT_READERS: Final = frozenset(
    "is_contiguous is_non_overlapping_and_dense is_strides_like_format set "
    "storage_offset stride sym_is_contiguous sym_storage_offset "
    "sym_stride".split()
)
"""Operators of aten, besides as_strided and its kin, that look at strides.
This is the one thing here that no schema tells."""


# -- from a target to its facts ----------------------------------------------


def facts_of(target: object) -> Facts | None:
    """What is known of a target; None if it is not an overload of an operator.

    "None" must be read as "may do anything".

    Cost: O(1) once an operator has been seen.
    """
    return _facts(target) if isinstance(target, OpOverload) else None


_facts: Final[Callable[[Overload], Facts]] = functools.lru_cache(4096)(Facts)
"""By overload and not by name, as a library can be unloaded, and another one
define an operator of the same name."""


def facts_of_overloads(target: object) -> list[Facts] | None:
    """The facts of all overloads that a call of `target` can mean.

    Args:
        target: an overload (`torch.ops.aten.add.Tensor`), a packet of them
            (`torch.ops.aten.add`) or a builtin of torch (`torch.add`).

    Returns:
        The facts in torch's order, or None if torch has no schema for such a
        target.

    Cost: O(overloads).
    """
    if isinstance(target, OpOverload):
        return [_facts(target)]
    if not isinstance(target, OpOverloadPacket):
        target = builtin_name(target)
        if target is None:
            return None
    return [_facts(overload) for overload in _overloads(target)]


builtin_name: Final[Callable[[object], str | None]] = _find_builtin
"""`torch.add` → "aten::add"."""


def _overloads(target: object) -> list[Overload]:
    """The overloads of a packet, or of the operator of a name; maybe none."""
    if isinstance(target, str):
        namespace, _, base = target.partition("::")
        target = getattr(getattr(torch.ops, namespace), base, None)
    if not isinstance(target, OpOverloadPacket):
        return []
    names: Callable[[], list[str]] = target.overloads
    return [getattr(target, name) for name in names()]


# -- pairs of operators ------------------------------------------------------


def _is_twin(schema: FunctionSchema, twin: FunctionSchema) -> bool:
    """Whether a call of `schema` can be a call of `twin`, in place."""
    if not schema.arguments or not twin.arguments:
        return False
    ours, theirs = schema.arguments[0], twin.arguments[0]
    written, *others = (argument.alias_info for argument in twin.arguments)
    return (
        str(ours.type) == str(theirs.type) == "Tensor"
        and written is not None
        and written.is_write
        and all(info is None for info in others)
        # The first may have another name: it is given by position.
        and _fit(schema.arguments[1:], twin.arguments[1:])
    )


def _fit(
    given: Sequence[torch._C.Argument], taken: Sequence[torch._C.Argument]
) -> bool:
    """Whether arguments for some parameters can be given for others.

    A call may leave out what has a default, so the others must have the same.
    """
    return len(given) == len(taken) and all(
        one.name == other.name
        and one.type == other.type
        and one.kwarg_only == other.kwarg_only
        and (
            not one.has_default_value()
            or (
                other.has_default_value()
                and one.default_value == other.default_value
            )
        )
        for one, other in zip(given, taken, strict=True)
    )
