"""Stage 02, use-def: what the schema of an operator says about memory.

What is this operator: a view (and of which argument), a write, the in-place
or the inverse of another?  Its schema answers, so that there is no list of
operators here:

    add.Tensor(Tensor self, ...) -> Tensor             twin: add_.Tensor
    select.int(Tensor(a) self, ...) -> Tensor(a)       a view of self
    select_scatter(Tensor self, Tensor src, ...)       inverse of select.int
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

import torch
from torch import Tag
from torch._ops import OpOverload, OpOverloadPacket

from ..node import Node
from ..ordered.opcodes import Target
from ..usedef.values import Argument, Value

__all__ = ["OperatorFacts", "Parameter", "facts_of"]

Operator: TypeAlias = OpOverload[..., Value]
"""One overload of an operator of torch."""


class Parameter(NamedTuple):
    """One parameter of an operator, as calls give it."""

    name: str
    place: int

    def of(self, node: Node) -> Argument:
        """What a call gives for it, or None."""
        if self.place < len(node.args):
            return node.args[self.place]
        return node.kwargs.get(self.name)


class OperatorFacts(NamedTuple):
    """What the schema of an operator says about memory.

    Attributes:
        first: the first parameter, if that is one tensor.
        source: the parameter that the scatter operators write; or None.
        views: the parameters that the result may be a view of.
        writes: the parameters that are written into.
        twin: the operator that computes the same in its first argument.
        view: for a scatter operator, the view that it is the inverse of.
        random: whether it draws random numbers.
        reads_layout: whether the result depends on strides, not on elements
            alone.
    """

    first: Parameter | None
    source: Parameter | None
    views: tuple[Parameter, ...]
    writes: tuple[Parameter, ...]
    twin: Operator | None
    view: Operator | None
    random: bool
    reads_layout: bool


def facts_of(target: Target) -> OperatorFacts | None:
    """What is known of a target; None if it is no operator with a schema.

    Cost: O(1) once an operator has been seen.
    """
    return _facts(target) if isinstance(target, OpOverload) else None


_LAYOUT_READERS: Final = frozenset(
    "is_contiguous is_non_overlapping_and_dense is_strides_like_format set "
    "storage_offset stride sym_is_contiguous sym_storage_offset "
    "sym_stride".split()
)
"""Operators of aten, besides as_strided and its kin, that look at strides."""


@functools.lru_cache(maxsize=4096)
def _facts(op: Operator) -> OperatorFacts:
    """What is known of an operator."""
    base = _base_name(op)
    arguments = op._schema.arguments
    views: list[Parameter] = []
    writes: list[Parameter] = []
    for place, argument in enumerate(arguments):
        if argument.alias_info is not None:
            into = writes if argument.alias_info.is_write else views
            into.append(Parameter(argument.name, place))
    functional = not views and not writes
    one_tensor = bool(arguments) and _is_tensor(arguments[0].type)
    view = _inverted_view(op) if functional else None
    return OperatorFacts(
        Parameter(arguments[0].name, 0) if one_tensor else None,
        Parameter(arguments[1].name, 1) if view is not None else None,
        tuple(views),
        tuple(writes),
        _in_place_twin(op) if functional and one_tensor else None,
        view,
        Tag.nondeterministic_seeded in op.tags,
        base.startswith("as_strided") or base in _LAYOUT_READERS,
    )


def _is_tensor(jit_type: Value) -> bool:
    """Whether a type in a schema is `Tensor`.

    Args:
        jit_type: a torch._C.JitType, of which torch's stubs know too little.
    """
    return str(jit_type) == "Tensor"


def _base_name(op: Operator) -> str:
    """The name without namespace and overload: "add"."""
    return op._schema.name.partition("::")[2]


def _overloads(op: Operator, name: str) -> Iterator[Operator]:
    """The overloads of the operator `name` in the namespace of `op`."""
    namespace = op._schema.name.partition("::")[0]
    packet = getattr(getattr(torch.ops, namespace), name, None)
    if isinstance(packet, OpOverloadPacket):
        names: Callable[[], list[str]] = packet.overloads
        for overload in names():
            yield getattr(packet, overload)


def _in_place_twin(op: Operator) -> Operator | None:
    """The overload of `name_` that takes what `op` takes, and writes self."""
    for twin in _overloads(op, f"{_base_name(op)}_"):
        if _is_twin(op._schema, twin._schema):
            return twin
    return None


def _is_twin(
    schema: torch._C.FunctionSchema, twin: torch._C.FunctionSchema
) -> bool:
    """Whether a call of one is a call of the other, in place."""
    if len(schema.returns) != 1 or not twin.arguments:
        return False
    self, *others = (argument.alias_info for argument in twin.arguments)
    return (
        _is_tensor(schema.returns[0].type)
        and self is not None
        and self.is_write
        and all(info is None for info in others)
        and schema.arguments[0].type == twin.arguments[0].type
        # The first may have another name: it is given by position.
        and _parameters_fit(schema.arguments[1:], twin.arguments[1:])
    )


def _inverted_view(op: Operator) -> Operator | None:
    """For `select_scatter(self, src, ...)`: the view `select(self, ...)`."""
    name, _, scatter = _base_name(op).rpartition("_")
    arguments = op._schema.arguments
    if scatter != "scatter" or [a.name for a in arguments[:2]] != [
        "self",
        "src",
    ]:
        return None
    for view in _overloads(op, name):
        given = view._schema.arguments
        is_view = bool(given) and given[0].alias_info is not None
        rest = [arguments[0], *arguments[2:]]
        if is_view and _parameters_fit(rest, given):
            return view
    return None


def _parameters_fit(
    given: Iterable[torch._C.Argument], taken: Iterable[torch._C.Argument]
) -> bool:
    """Whether arguments for some parameters can be given for others.

    A default that the first have must be the default of the second.
    """
    ours, theirs = list(given), list(taken)
    return len(ours) == len(theirs) and all(
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
        for one, other in zip(ours, theirs, strict=True)
    )
