"""What schemas say about memory, and which nodes share storage."""

from __future__ import annotations

from typing import Any, TypeAlias

import pytest
import torch
from torch.fx.passes import reinplace as torch_reinplace

from fx.reinplacing.aliasing import geometry
from fx.schemas.facts import facts_of

aten = torch.ops.aten

AnyValue: TypeAlias = Any


def functional_operators() -> list[AnyValue]:
    """Every overload of every operator of aten that has a kernel."""
    found = []
    for schema in torch._C._jit_get_all_schemas():
        namespace, _, name = schema.name.partition("::")
        packet = getattr(aten, name, None) if namespace == "aten" else None
        if packet is not None and schema.overload_name in packet.overloads():
            found.append(getattr(packet, schema.overload_name or "default"))
        elif packet is not None and not schema.overload_name:
            found.append(packet.default)
    return found


# --- operators -------------------------------------------------------------


def test_twins_are_those_that_torch_finds() -> None:
    """And a dropout's, whose first argument has another name in place."""
    seen = 0
    for op in functional_operators():
        facts = facts_of(op)
        assert facts is not None
        first = op._schema.arguments[:1]
        if not first or str(first[0].type) != "Tensor":
            assert facts.inplace_variant is None, op
            continue
        try:
            theirs = torch_reinplace._maybe_get_inplace_op(op)
        except AssertionError:  # an operator that writes a second argument
            theirs = None
        if facts.writes:  # an operator with out= is no functional one
            theirs = None
        seen += theirs is not None
        assert facts.inplace_variant is theirs, op
    assert seen > 150


def test_inverses_are_the_documents_four() -> None:
    found = {
        str(op): str(facts.view)
        for op in functional_operators()
        if (facts := facts_of(op)) is not None and facts.view is not None
    }
    assert found == {
        "aten.as_strided_scatter.default": "aten.as_strided.default",
        "aten.diagonal_scatter.default": "aten.diagonal.default",
        "aten.select_scatter.default": "aten.select.int",
        "aten.slice_scatter.default": "aten.slice.Tensor",
    }


@pytest.mark.parametrize(
    ("op", "views", "writes"),
    [
        (aten.view.default, ["self"], []),
        (aten.split.Tensor, ["self"], []),
        (aten.expand_as.default, ["self"], []),
        (aten.contiguous.default, ["self"], []),
        (aten.add_.Tensor, [], ["self"]),
        (aten.add.out, [], ["out"]),
        (aten.t_.default, [], ["self"]),
        (aten.add.Tensor, [], []),
    ],
)
def test_views_and_writes(
    op: AnyValue, views: list[str], writes: list[str]
) -> None:
    facts = facts_of(op)
    assert facts is not None
    assert [one.name for one in facts.views] == views
    assert [one.name for one in facts.writes] == writes
    assert views == [] or facts.inplace_variant is None


def test_what_is_no_operator_has_no_facts() -> None:
    assert facts_of(torch.add) is None
    assert facts_of("add") is None
    assert facts_of(aten.add) is None


def test_random_operators_and_readers_of_strides() -> None:
    def flags(op: AnyValue) -> tuple[bool, bool]:
        facts = facts_of(op)
        assert facts is not None
        return facts.draws, facts.reads_layout

    assert flags(aten.bernoulli.p) == (True, False)
    assert flags(aten.as_strided.default) == (False, True)
    assert flags(aten.view.default) == (False, False)


def test_an_operator_of_a_library_has_its_twin_too() -> None:
    with torch.library._scoped_library("fx_aliasing", "DEF") as library:
        library.define("twice(Tensor self) -> Tensor")
        library.define("twice_(Tensor(a!) self) -> Tensor(a!)")
        library.define("other(Tensor self) -> Tensor")
        library.define("other_(Tensor(a!) self, int n) -> Tensor(a!)")
        ops = torch.ops.fx_aliasing
        twice, other = facts_of(ops.twice.default), facts_of(ops.other.default)
        assert twice is not None
        assert other is not None
        assert twice.inplace_variant is ops.twice_.default
        assert other.inplace_variant is None


# --- geometry --------------------------------------------------------------


@pytest.mark.parametrize(
    ("tensor", "span", "overlaps", "fills"),
    [
        (torch.ones(2, 3), (0, 6), False, True),
        (torch.ones(2, 3).t(), (0, 6), False, True),
        (torch.ones(4, 3)[1:, :2], (3, 11), False, False),
        (torch.ones(6)[::2], (0, 5), False, False),
        (torch.ones(1).expand(3), (0, 1), True, False),
        (torch.ones(5).as_strided((3, 2), (1, 1)), (0, 4), True, False),
        (torch.ones(()), (0, 1), False, True),
        (torch.ones(0, 3), (0, 0), False, True),
        (torch.ones(1, 3).expand(1, 3), (0, 3), False, True),
    ],
)
def test_where_the_elements_are(
    tensor: torch.Tensor, span: tuple[int, int], overlaps: bool, fills: bool
) -> None:
    found = geometry(tensor)
    assert found.span() == span
    assert found.overlaps_itself() is overlaps
    assert found.fills_its_span() is fills
