"""Stage 02, use-def: what is known of an operator of torch.

Passes ask what an operator does to memory: is its result a view, and of which
argument; does it write; is there a variant of it that works in place?  Each
overload of an operator declares this in its schema, so no list of operators
is needed here:

    add.Tensor(Tensor self, ...) -> Tensor           in place: add_.Tensor
    add_.Tensor(Tensor(a!) self, ...) -> Tensor(a!)    writes self
    select.int(Tensor(a) self, ...) -> Tensor(a)       a view of self
    select_scatter(Tensor self, Tensor src, ...)       inverse of select.int

A marked argument `Tensor(a)` may share memory with what else is marked `a`, and
`Tensor(a!)` is written.  So operators that a user registers with
`torch.library` are known like torch's own. A schema does not say which
operators answer about strides: `reads_layout` is the one list of names.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

import torch
from torch import Tag

from ..torch_private.operators import find_builtin
from ..torch_private.overloads import OpOverload, OpOverloadPacket
from ..use_def.values import AnyValue, Args, Argument, Kwargs

Overload: TypeAlias = "OpOverload[..., AnyValue]"
"""One overload of an operator of torch: torch.ops.aten.add.Tensor."""


class Parameter(NamedTuple):
    """One parameter of a function, as calls give it.

    Attributes:
        name: what a call writes to give it by keyword.
        place: its index among positional arguments; None for keyword-only.
        default: what it is if a call does not give it; `...` if a call must.
        type: as a schema writes it, "Tensor".
    """

    name: str
    place: int | None = None
    default: AnyValue = None
    type: str = ""

    def of(self, args: Args, kwargs: Kwargs) -> Argument:
        """What a call with these arguments gives for it, or the default."""
        if self.place is not None and self.place < len(args):
            return args[self.place]
        given: Argument = kwargs.get(self.name, self.default)
        return given


class OperatorInfo:
    """What is known of one overload of an operator.

    Attributes:
        overload: the overload itself.
        schema: how torch declares it.
        name: of the operator, "aten::add" for all overloads of add.
        full_name: with the overload, "aten::add.Tensor".
        base: without the namespace, "add".
        is_torchs: whether it is one of torch's own, and not of a library.
        parameters: by name.
        views: the parameters that the result may be a view of.
        writes: the parameters that are written into.
        views_first: whether the result can be a view of the first parameter
            and of no other.
        draws: whether it draws random numbers.
        reads_layout: whether the result depends on strides, not on elements
            alone.
        reads_data: whether it gives Python a number out of a tensor.
        returns_one_tensor: whether the result is one tensor, and not a tuple,
            a list or a number.
        returns_tensors: whether the result is tensors, one or several.
        returns_nothing: whether there is neither a result nor a declared
            write, so that it can only be called for an effect.
    """

    def __init__(self, overload: Overload) -> None:
        """Read what the schema and the tags of an overload declare."""
        schema = overload._schema
        self.overload = overload
        self.schema = schema
        self.name: str = schema.name
        parts = (schema.name, schema.overload_name)
        self.full_name: str = ".".join(filter(None, parts))
        namespace, _, base = self.name.partition("::")
        self.base: str = base
        self.is_torchs: bool = namespace in ("aten", "prims")
        self.parameters: dict[str, Parameter] = {}
        self.views: list[Parameter] = []
        self.writes: list[Parameter] = []
        for place, argument in enumerate(schema.arguments):
            parameter = self.parameters[argument.name] = Parameter(
                argument.name,
                None if argument.kwarg_only else place,
                argument.default_value if argument.has_default_value() else ...,
                str(argument.type),
            )
            if argument.alias_info is not None:
                is_write = argument.alias_info.is_write
                (self.writes if is_write else self.views).append(parameter)
        first = [*self.parameters.values()][:1]
        self.views_first: bool = bool(first) and self.views == first
        self.draws: bool = Tag.nondeterministic_seeded in overload.tags
        self.reads_layout: bool = (
            self.base.startswith("as_strided") or self.base in _LAYOUT_READERS
        )
        self.reads_data: bool = Tag.data_dependent_output in overload.tags
        returns = [str(value.type) for value in schema.returns]
        self.returns_one_tensor: bool = returns == ["Tensor"]
        self.returns_tensors: bool = {*returns} in (
            {"Tensor"},
            {"List[Tensor]"},
        )
        self.returns_nothing: bool = not returns and not self.writes

    @cached_property
    def inplace_variant(self) -> Overload | None:
        """The overload that computes the same into its first argument.

        It need not have the same overload name, and an operator with a `_` at
        its end need not be such a variant.  One tensor must come out, the first
        argument must be written, no other written or viewed, and the rest must
        fit one by one.
        """
        given = [*self.parameters.values()]
        for other in self._namesakes(f"{self.base}_"):
            taken = [*other.parameters.values()]
            if (
                self.returns_one_tensor
                and given
                and taken
                and other.writes == taken[:1]
                and not other.views
                and given[0].type == taken[0].type == "Tensor"
                # The first may have another name: it is given by position.
                and _fit(given[1:], taken[1:])
            ):
                return other.overload
        return None

    @cached_property
    def view(self) -> Overload | None:
        """For a scatter operator, the view that it is the inverse of.

        That is `select(self, ...)` for `select_scatter(self, src, ...)`, which
        writes its parameter `src`.
        """
        base, _, scatter = self.base.rpartition("_")
        given = [*self.parameters.values()]
        if scatter != "scatter" or [*self.parameters][:2] != ["self", "src"]:
            return None
        for other in self._namesakes(base):
            taken = [*other.parameters.values()]
            if other.views == taken[:1] and _fit([given[0], *given[2:]], taken):
                return other.overload
        return None

    def _namesakes(self, base: str) -> list[OperatorInfo]:
        """The facts of the operator `base` in the same namespace.

        A view, or an operator that writes, gets an empty list: only functional
        operators have a inplace_variant or are the inverse of a view.
        """
        if self.views or self.writes:
            return []
        namespace = self.name.partition("::")[0]
        return _facts_in(_packet(f"{namespace}::{base}"))


_LAYOUT_READERS: Final = frozenset(
    "is_contiguous is_non_overlapping_and_dense is_strides_like_format set "
    "storage_offset stride sym_is_contiguous sym_storage_offset "
    "sym_stride".split()
)
"""Operators of aten, besides as_strided and its kin, that look at strides.
This is the one thing here that no schema tells."""


# -- from a target to its facts ----------------------------------------------


def facts_of(target: object) -> OperatorInfo | None:
    """What is known of a target; None if it is not an overload of an operator.

    "None" must be read as "may do anything".

    Cost: O(1) once an operator has been seen.
    """
    return _facts(target) if isinstance(target, OpOverload) else None


_facts: Final[Callable[[Overload], OperatorInfo]] = functools.lru_cache(4096)(
    OperatorInfo
)
"""By overload and not by name, as a library can be unloaded, and another one
define an operator of the same name."""


def facts_of_overloads(target: object) -> list[OperatorInfo] | None:
    """The facts of all overloads that a call of `target` can mean.

    Args:
        target: an overload (`torch.ops.aten.add.Tensor`), a packet of them
            (`torch.ops.aten.add`) or a builtin of torch (`torch.add`).

    Returns:
        The facts in torch's order, or None if torch has no schema for such a
        target.  The list is kept: do not change it.

    Cost: O(1) once an operator has been seen.
    """
    if isinstance(target, OpOverload):
        return [_facts(target)]
    if not isinstance(target, OpOverloadPacket):
        name = find_builtin(target)
        if name is None:
            return None
        target = _packet(name)
    return _facts_in(target)


def _packet(name: str) -> object:
    """What torch.ops has under the name "aten::add"; None if nothing."""
    namespace, _, base = name.partition("::")
    return getattr(getattr(torch.ops, namespace), base, None)


@functools.lru_cache(4096)
def _facts_in(packet: AnyValue) -> list[OperatorInfo]:
    """The facts of all overloads of an operator; none of anything else."""
    if not isinstance(packet, OpOverloadPacket):
        return []
    names: Callable[[], list[str]] = packet.overloads
    return [_facts(getattr(packet, name)) for name in names()]


# -- pairs of operators ------------------------------------------------------


def _fit(given: Sequence[Parameter], taken: Sequence[Parameter]) -> bool:
    """Whether arguments for some parameters can be given for others.

    A call may leave out what has a default, so the others must have the same.
    """
    return len(given) == len(taken) and all(
        (one.name, one.type) == (other.name, other.type)
        and (one.place is None) == (other.place is None)
        and (one.default is ... or one.default == other.default)
        for one, other in zip(given, taken, strict=True)
    )
