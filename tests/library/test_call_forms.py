"""Calls of one form give one value, so that a rewrite may exchange them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fx import Graph, replace_pattern, symbolic_trace, wrap
from fx.extra.matching.call_forms import form, operator_name
from fx.node import Node
from fx.rewriting.patterns import same_tensor

AnyValue: TypeAlias = Any

X: Final = torch.tensor([[1.5, -2.25, 0.5], [3.0, 0.75, -1.0]])
Y: Final = torch.tensor([[0.3, 1.75, 2.0], [-1.0, 0.25, 0.875]])

OTHERS: Final = (
    *((), (1,), (0,), (2,), (True,), (0.5,), (1, True), (0, 1), ((1, 0),)),
    *((Y,), (Y, 1), (Y, 0.5), (Y, Y), (Y, "sum"), (X > 0, Y)),
)
NAMED: Final[tuple[dict[str, AnyValue], ...]] = (
    *({}, {"dim": 1}, {"dim": 1, "keepdim": True}, {"alpha": 2}, {"p": 1}),
    *({"reduction": "sum"}, {"reduction": 1}, {"dtype": torch.float64}),
    *({"rounding_mode": "floor"}, {"approximate": "tanh"}, {"diagonal": 1}),
    {"unbiased": False},
)

DRAWS: Final = (
    "rand",
    "bernoulli",
    "multinomial",
    "normal",
    "dropout",
    "rrelu",
)
KEPT_OUT: Final = {
    *("empty_like", "new_empty", "resize", "share_memory", "numpy"),
    *("poisson", "set_", "is_set_to", "data_ptr", "gumbel_softmax"),
}


def targets() -> Iterator[AnyValue]:
    """What may have an operator: functions of torch, and names of methods."""
    for name in sorted({*dir(torch), *dir(F), *dir(Tensor)}):
        private = name.startswith("_") or name.endswith("_")
        drawn = any(word in name for word in DRAWS)
        if private or drawn or name in KEPT_OUT:
            continue
        found = [getattr(one, name, None) for one in (torch, F)]
        yield from (f for f in found if callable(f) and not isinstance(f, type))
        if hasattr(Tensor, name):
            yield name


def calls(graph: Graph) -> Iterator[Node]:
    """Calls on X of all that has an operator, with many arguments."""
    for target in targets():
        is_method = isinstance(target, str)
        make: AnyValue = graph.call_method if is_method else graph.call_function
        for args, kwargs in itertools.product(OTHERS, NAMED):
            yield make(target, (X, *args), dict(kwargs))


def plain(value: AnyValue) -> AnyValue:
    """A value that can be compared; what is not a number is not equal."""
    if isinstance(value, Tensor):
        strided = value.layout is torch.strided
        numbers = str(value.tolist()) if strided else ""
        return str(value.dtype), tuple(value.shape), numbers
    if isinstance(value, tuple | list):
        return [*map(plain, value)]
    return str(value)


def value_of(node: Node) -> AnyValue:
    """What a call gives; None if it cannot be made."""
    of, args = X.clone(), list(node.args[1:])
    target: AnyValue = node.target
    try:
        if node.op == "call_method":
            target = getattr(of, target)
        else:
            args.insert(0, of)
        return plain(target(*args, **node.kwargs))
    except Exception:  # most calls are not legal
        return None


@pytest.mark.filterwarnings("ignore")
def test_calls_of_one_form_give_one_value() -> None:
    values: dict[object, dict[str, str]] = {}
    for node in calls(Graph()):
        found = form(node)
        value = None if found is None else value_of(node)
        if found is not None and value is not None:
            given = str([*map(plain, found.values)])
            key = (found.name, found.names, given)
            written = f"{node.op} {node.target} {node.args[1:]} {node.kwargs}"
            values.setdefault(key, {})[str(value)] = written
    assert len(values) > 500
    assert [found for found in values.values() if len(found) > 1] == []


def test_the_object_of_a_method_is_self() -> None:
    objects: dict[str, AnyValue] = {}
    for node in calls(Graph()):
        found = form(node) if node.op == "call_method" else None
        if found is not None and "self" in found.names:
            place = found.names.index("self")
            objects[str(node.target)] = found.values[place]
    assert {"where", "polygamma", "add"} < objects.keys()
    assert [name for name, found in objects.items() if found is not X] == []


def test_methods_whose_function_has_another_order() -> None:
    def method(x: AnyValue, y: AnyValue) -> AnyValue:
        return x.where(x > 0, y) + x.where(other=y, condition=y > 0)

    def function(c: AnyValue, a: AnyValue, b: AnyValue) -> AnyValue:
        return torch.where(c, a, b)

    gm = symbolic_trace(method)
    assert len(replace_pattern(gm, function, function, normalize=True)) == 2
    assert torch.equal(gm(X, Y), method(X, Y))


def rewritten(
    function: Callable[..., AnyValue], pattern: Callable[..., AnyValue]
) -> int:
    """How many matches of a pattern there are by meaning."""
    gm = symbolic_trace(function)
    return len(replace_pattern(gm, pattern, pattern, normalize=True))


def test_what_torch_nn_functional_does_otherwise_is_not_found() -> None:
    def mean(a: AnyValue, b: AnyValue) -> AnyValue:
        return F.kl_div(a, b)

    def by_name(a: AnyValue, b: AnyValue) -> AnyValue:
        return F.kl_div(target=b, input=a)

    assert not rewritten(lambda a, b: torch.kl_div(a, b), mean)
    assert rewritten(by_name, mean)
    pool = F.max_pool2d
    assert rewritten(lambda x: torch.max_pool2d(x, 2), lambda x: pool(x, 2))


def test_tuples_cannot_be_exchanged() -> None:
    def behind(x: AnyValue) -> AnyValue:
        return x.shape + (5,)  # noqa: RUF005

    def in_front(sizes: AnyValue) -> AnyValue:
        return (5,) + sizes  # noqa: RUF005

    def halves(x: AnyValue, y: AnyValue) -> AnyValue:
        return torch.split(x, 1) + y.chunk(2)

    def exchanged(x: AnyValue, y: AnyValue) -> AnyValue:
        return y.chunk(2) + torch.split(x, 1)

    assert not rewritten(behind, in_front)
    assert not rewritten(halves, exchanged)
    assert not rewritten(
        lambda x, y: x.shape + y.size(), lambda x, y: y.size() + x.shape
    )
    assert rewritten(lambda x: x + 5, lambda x: 5 + x)
    assert rewritten(lambda x: x + x.relu(), lambda x: x.relu() + x)


def test_operators_of_python_on_numbers_are_not_those_of_torch() -> None:
    def add(a: AnyValue, b: AnyValue) -> AnyValue:
        return torch.add(a, b)

    def add_one(a: AnyValue) -> AnyValue:
        return torch.add(a, 1)

    def remainder(a: AnyValue, b: AnyValue) -> AnyValue:
        return torch.remainder(a, b)

    assert not rewritten(lambda x: x.new_ones(x.shape + x.size()), add)
    assert not rewritten(lambda x: x.unbind(0) + x.split(1), add)
    assert not rewritten(lambda x: (2 * x.size(0) % 3) * x, remainder)
    assert rewritten(lambda x: x.size(0) + x, add)
    assert rewritten(lambda x: x % 3, remainder)
    for number in NUMBERS:
        assert not rewritten(_times(_plus_one(number)), add_one)
        assert rewritten(_plus_one(_times(number)), add_one)
    for tensor in TENSORS:
        assert rewritten(_plus_one(tensor), add_one)


def test_functions_of_python_are_not_their_operators() -> None:
    """`torch.stft` pads the input, and `aten.stft` does not."""
    graph, aten = Graph(), torch.ops.aten
    x = graph.placeholder("x")
    for name in ("stft", "unique_consecutive", "norm"):
        calls_of = (
            graph.call_function(getattr(aten, name), (x,)),
            graph.call_function(getattr(torch, name), (x,)),
            graph.call_method(name, (x,)),
        )
        operator, function, method = map(operator_name, calls_of)
        assert function == method == f"torch.{name}" != operator
    centred = graph.call_method("stft", (x, 4, 1, 4, None, True))
    plain_one = graph.call_method("stft", (x, 4, 1, 4, None, False))
    assert form(centred) != form(plain_one)


def test_zeros_have_signs() -> None:
    def divided(by: AnyValue) -> Callable[[AnyValue], AnyValue]:
        return lambda x: x / by

    for one, other in ((0.0, -0.0), (0j, -0j)):
        assert not rewritten(divided(one), divided(other))
        assert rewritten(divided(one), divided(one))
    zero, minus = torch.tensor(0.0), torch.tensor(-0.0)
    assert not same_tensor(zero, minus)
    assert same_tensor(minus, -zero)
    assert not same_tensor(zero.to("meta"), zero.to("meta"))


def test_what_is_written_alike_matches_as_it_is() -> None:
    doubled = _twice(lambda x: x)
    for inner in (*NUMBERS, *TENSORS, lambda x: x.max(1)[0], F.normalize):
        assert rewritten(_twice(inner), doubled)
        assert not rewritten(_twice(inner), lambda a: 3 * a)


def test_constants_of_all_dtypes_are_equal_to_themselves() -> None:
    def quantized() -> Tensor:
        return torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)

    def small() -> Tensor:
        return torch.zeros(2).to(torch.float8_e4m3fn)

    assert same_tensor(quantized(), quantized())
    assert same_tensor(small(), small())
    assert not same_tensor(small(), (-torch.zeros(2)).to(small().dtype))
    conjugate = torch.tensor([1 + 2j]).conj()
    assert same_tensor(conjugate, conjugate.clone())


def _twice(f: Callable[[AnyValue], AnyValue]) -> Callable[[AnyValue], AnyValue]:
    return lambda x: f(x) * 2


def _plus_one(
    f: Callable[[AnyValue], AnyValue],
) -> Callable[[AnyValue], AnyValue]:
    return lambda x: f(x) + 1


def _times(f: Callable[[AnyValue], AnyValue]) -> Callable[[AnyValue], AnyValue]:
    return lambda x: f(x) * x


def known_length(x: AnyValue) -> int:
    """How many items there are: a function that no schema speaks for."""
    return len(x)


wrap(known_length)

NUMBERS: Final[tuple[Callable[[AnyValue], AnyValue], ...]] = (
    *(lambda x: x.stride(0), lambda x: x.dim(), lambda x: x.numel()),
    *(lambda x: x.get_device(), lambda x: x.element_size()),
    *(lambda x: x.storage_offset(), lambda x: x.nbytes, lambda x: x.ndim),
    *(lambda x: x.tolist()[0][0], lambda x: x.sum().item()),
    *(lambda x: x.shape[0], lambda x: x.size()[0]),
    lambda x: known_length(x),
)
"""Ways to a number."""

TENSORS: Final[tuple[Callable[[AnyValue], AnyValue], ...]] = (
    *(lambda x: x, lambda x: x.relu(), lambda x: x.float(), lambda x: x.T),
    *(lambda x: F.relu(x), lambda x: x.split(1)[0], lambda x: x.half()[0]),
    *(lambda x: -x, lambda x: x.shape[0] * x, lambda x: x.sort(0)[0]),
    *(lambda x: x.mean(), lambda x: torch.max(x), lambda x: x.to("cpu")),
)
"""Ways to a tensor."""


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_modules_that_return_tuples(kind: type[nn.RNN]) -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = kind(3, 3), kind(3, 3)
            self.act = nn.ReLU()

        def forward(self, x: AnyValue) -> AnyValue:
            return self.one(x) + self.two(x), self.act(x) + self.act(x)

    gm = symbolic_trace(Both())
    found = replace_pattern(
        gm, lambda a, b: torch.add(a, b), lambda a, b: a + b, normalize=True
    )
    assert len(found) == 1


aten = torch.ops.aten

FOUND: list[tuple[Callable[..., AnyValue], Callable[..., AnyValue], int]] = [
    (lambda x: torch.add(x, 1), aten.add.Tensor, 1),
    (lambda x: x + 1, lambda x, y: torch.add(x, y), 1),
    (lambda x: aten.add.Tensor(x, 1), lambda x, y: x + y, 1),
    (lambda x: x.var(0), lambda x, y: torch.var(x, y), 1),
    (lambda x: x.var(0), aten.var.dim, 1),
    (lambda x: x.var(False), aten.var.default, 1),
    (lambda x: torch.mean(x, 0), aten.mean.dim, 1),
    (lambda x: torch.max(x, 1), aten.max.dim, 1),
    (lambda x: aten.var.default(x, 0), aten.var.default, 1),
    # What is another overload.
    (lambda x: x.var(0), aten.var.default, 0),
    (lambda x: aten.var.default(x, 0), lambda x, y: torch.var(x, y), 0),
    (lambda x: aten.var(x, 0), lambda x, y: torch.var(x, y), 0),
    (lambda x: torch.max(x, 1), aten.max.other, 0),
    (lambda x: aten.split.Tensor(x, 1), aten.split.sizes, 0),
    (lambda x: torch.squeeze_copy(x, 0), aten.squeeze_copy.dims, 0),
    (lambda x: aten.var.dim(x, None, 1), torch.var, 0),
    (lambda x: torch.add(x, x.relu()), aten.add.Scalar, 0),
    (lambda x: torch.normal(x, x), aten.normal.Tensor_float, 0),
    (lambda x: aten.stft.default(x, 4), aten.stft.center, 0),
    # What TorchScript alone has.
    (lambda x: aten.add.int(x.size(0), 1), lambda x, y: torch.add(x, y), 0),
    (lambda x: aten.mul.int(x.size(0), 2), lambda x, y: x * y, 0),
    # What gives a number for a dtype.
    (lambda x: torch.result_type(x, 1), aten.result_type.Scalar, 0),
]


@pytest.mark.parametrize(("f", "pattern", "count"), FOUND)
def test_a_call_is_of_one_overload(
    f: Callable[..., AnyValue], pattern: Callable[..., AnyValue], count: int
) -> None:
    gm = symbolic_trace(f)
    searched = symbolic_trace(lambda x, y: pattern(x, y))
    found = replace_pattern(gm, searched, lambda x, y: x, normalize=True)
    assert len(found) == count
