"""What fx.trace takes apart, what it compares, and what it refuses."""

from __future__ import annotations

import copy
import functools
import types
from collections import OrderedDict, UserDict, defaultdict, deque
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Any, TypeAlias

import numpy
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence

import fx

AnyValue: TypeAlias = Any

X = torch.ones(3)


class Box:
    """Has attributes."""

    def __init__(self, **given: AnyValue) -> None:
        vars(self).update(given)

    def get(self, x: AnyValue) -> AnyValue:
        """A tensor of it, and one more."""
        return self.x + x  # type: ignore[attr-defined]


class Slots:
    """Has slots."""

    __slots__ = ("x", "y")

    def __init__(self, x: AnyValue) -> None:
        self.x = x


class Output(OrderedDict[str, AnyValue]):
    """As transformers has it, registered with pytree."""


class Own(dict[str, AnyValue]):
    """Is not registered."""


torch.utils._pytree.register_pytree_node(
    Output,
    lambda value: ([*value.values()], [*value]),
    lambda items, keys: Output(zip(keys, items, strict=True)),
)


def first(o: AnyValue) -> AnyValue:
    """Twice the first tensor in a value."""
    if callable(o):
        return o(X) * 2
    x: AnyValue = o.x if hasattr(o, "x") else o["x"]
    return x * 2


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (lambda: types.SimpleNamespace(x=X), lambda o: setattr(o, "y", 1)),
        (lambda: Box(x=X, y=0.0), lambda o: setattr(o, "y", -0.0)),
        (lambda: Slots(X), lambda o: setattr(o, "y", 1)),
        (lambda: Box(x=X, y={1: 2}), lambda o: o.y.update({True: o.y.pop(1)})),
        (lambda: Box(x=X, y={1, 2}), lambda o: o.y.add(3)),
        (lambda: Box(x=X, y=frozenset([1])), lambda o: o.__init__(y={1})),
        (lambda: Box(x=X).get, lambda o: setattr(o.__self__, "y", 2)),
        (
            lambda: functools.partial(torch.mul, other=X),
            lambda o: o.keywords.update(out=None),
        ),
        (lambda: UserDict(x=X), lambda o: o.data.update(y=1)),
        (lambda: OrderedDict(x=X, y=1), lambda o: o.move_to_end("x")),
        (lambda: defaultdict[str, AnyValue](int, x=X), lambda o: o.update(y=1)),
        (lambda: Output(x=X), lambda o: o.update(y=1)),
    ],
)
def test_a_change_in_place_is_noticed(
    make: Callable[[], AnyValue], change: Callable[[AnyValue], AnyValue]
) -> None:
    example = make()
    gm = fx.trace(first, example)
    for given in (example, make()):
        assert torch.equal(gm(given), first(make()))
    change(example)
    with pytest.raises(fx.GuardError, match="is not what the trace relied on"):
        gm(example)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        *((0.0, -0.0), (1, True), (1, 1.0), (1j, complex(-0.0, 1))),
        *((frozenset([1]), frozenset([True])), ("a", b"a")),
        *((numpy.float32(0), numpy.float32(-0.0)), ([], ()), ({}, Own())),
        *((PurePath("a"), PurePath("b")), (slice(0), slice(False))),
        *((range(0, 0), range(1, 0)), (object(), object()), (len, abs)),
    ],
)
def test_constants_are_equal_if_nobody_can_tell(
    one: AnyValue, two: AnyValue
) -> None:
    gm = fx.trace(lambda x, o: x * 2, X, one)
    assert torch.equal(copy.deepcopy(gm)(X, one), X * 2)
    with pytest.raises(fx.GuardError):
        gm(X, two)
    nan = fx.trace(lambda x, o: x * 2, X, float("nan"))
    assert torch.equal(nan(X, float("nan")), X * 2)


class Makes(Box):
    """Makes objects in a way of its own."""

    def __new__(cls, **given: AnyValue) -> AnyValue:
        return object.__new__(cls)


@pytest.mark.parametrize(
    "value",
    [
        *(numpy.ones(3), iter([X]), (x for x in [X]), {X}, {X: 1}, Own(x=X)),
        *(Makes(x=X), {"x": X}.items(), [].append, bytearray(b"a")),
        *(ValueError(1), types.MappingProxyType({"x": X})),
    ],
)
def test_what_is_not_taken_apart_is_refused(value: AnyValue) -> None:
    with pytest.raises(fx.TraceError, match=r"the input o\.y is a \w+, which"):
        fx.trace(lambda x, o: x * 2, X, Box(y=value))
    gm = fx.trace(lambda x, o=value: x * 2, X)  # but a default is
    assert torch.equal(gm(X), X * 2)
    with pytest.raises(fx.GuardError):
        fx.trace(lambda x, o: x * 2, X, 1)(X, value)


def test_what_is_compared_by_identity_is_told() -> None:
    generator, mark = torch.Generator(), object()
    given = [len, int, types, nn.ReLU(), nn.ReLU().forward, generator, mark]
    gm = fx.trace(lambda x, o: x * len(o), X, given)
    assert torch.equal(gm(X, given), X * 7)
    assert len(gm.guards.unchecked) == 7
    assert gm.guards.unchecked[0] == (
        "o[0] is len, and what that holds is not compared"
    )
    (said,) = fx.trace(lambda x, o=given: x, X).guards.unchecked
    assert said == "the default of o, and what it holds, is fixed"


class Weighted(nn.Module):
    """Returns its parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(X.clone())

    def forward(self, x: AnyValue) -> AnyValue:
        """The parameter itself, alone and in a container."""
        return self.w, [self.w + x, self.w]


def test_results_keep_their_classes() -> None:
    model = Weighted()
    one, (_, two) = fx.trace(model, X)(X)
    assert one is two is model.w
    made = fx.trace(lambda x: Box(y=slice(0, x.shape[0]), z={1}), X)(X[:2])
    assert made.y == slice(0, 2)
    assert made.z == {1}
    part = fx.trace(lambda x: functools.partial(torch.mul, x + 1), X)(X)
    assert torch.equal(part(2), X * 4)
    gm = fx.trace(lambda x, o: (x * 2, o), X, local := lambda: 3)
    assert gm(X, local)[1] is local


@pytest.mark.parametrize(
    "program",
    [
        *(lambda x: {"a": x}.items(), lambda x: {x}, lambda x: iter([x])),
        *(lambda x: [lambda: x], lambda x: (y for y in x), lambda x: Own(x=x)),
        *(lambda x: nn.Linear(2, 2), lambda x: x.add, lambda x: Makes(x=x)),
        *(lambda x: nn.Parameter(x * 2), lambda x: [map(torch.relu, [x])]),
    ],
)
def test_results_that_no_graph_makes_are_refused(program: AnyValue) -> None:
    with pytest.raises(fx.TraceError, match="the result"):
        fx.trace(program, X)


def test_containers_of_each_kind_are_updated() -> None:
    def program(
        x: AnyValue, dq: AnyValue, dd: AnyValue, s: AnyValue, o: AnyValue
    ) -> AnyValue:
        dq.append(x * 2)
        dd["b"].append(x)
        dd.default_factory = None
        s.add(7)
        o.y = x * 3
        del o.x
        return x

    def given() -> list[AnyValue]:
        return [deque([X], 1), defaultdict(list), {1}, Slots(X)]

    gm = fx.trace(program, X, *given())
    dq, dd, s, o = now = given()
    gm(X, *now)
    assert torch.equal(dq[0], X * 2)
    assert len(dq) == 1
    assert dd.default_factory is None
    assert torch.equal(dd["b"][0], X)
    assert s == {1, 7}
    assert torch.equal(o.y, X * 3)
    assert not hasattr(o, "x")
    with pytest.raises(fx.TraceError, match="in a dict of the inputs is a set"):
        fx.trace(lambda x, d: d.update(k={x}), X, {})


def kept(x: AnyValue, o: AnyValue) -> AnyValue:
    """Is a leaf that may change what it is given."""
    if isinstance(o, list):
        o.append(1)
    return x * (2 if type(o) is torch.Size else 3)


def test_a_leaf_is_given_what_the_program_gives() -> None:
    gm = fx.trace(lambda x: kept(x, torch.Size([1])), X, leaves=[kept])
    assert torch.equal(gm(X), X * 2)
    with pytest.raises(fx.TraceError, match="changes a list"):
        fx.trace(lambda x: kept(x, [1]), X, leaves=[kept])


def test_a_packed_sequence_is_taken_apart() -> None:
    def program(packed: PackedSequence) -> AnyValue:
        return packed.data * 2

    given = nn.utils.rnn.pack_sequence([torch.ones(3, 2), torch.ones(2, 2)])
    assert torch.equal(fx.trace(program, given)(given), given.data * 2)
    given.note = 1  # type: ignore[attr-defined]
    with pytest.raises(fx.TraceError, match="PackedSequence"):
        fx.trace(program, given)


def test_defaults_and_containers_are_saved(tmp_path: Path) -> None:
    def program(
        x: AnyValue, o: AnyValue, options: AnyValue = (1, [2])
    ) -> AnyValue:
        return x * o["k"][0].start, OrderedDict(a=x + options[0])

    given = {"k": [slice(2, 3)], -0.0: frozenset([True])}
    gm = fx.trace(program, X, given)
    fx.save(gm, tmp_path / "gm")
    new = fx.load(tmp_path / "gm")
    assert torch.equal(new(X, given)[1]["a"], X + 1)
    assert type(new(X, given)[1]) is OrderedDict
    with pytest.raises(fx.GuardError):
        new(X, {"k": [slice(2, 3)], 0.0: frozenset([True])})
