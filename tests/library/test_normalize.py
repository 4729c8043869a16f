"""Passes: calls written in one way, beside torch.fx."""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable

import pytest
import torch
import torch.fx
from torch import nn
from torch.fx.experimental import normalize as theirs
from torch.fx.experimental import schema_type_annotation as their_types
from torch.fx.passes.shape_prop import ShapeProp as TheirShapeProp
from torch.nn import functional as F

import fx
from fx.experimental import normalize as ours
from fx.experimental.schema_type_annotation import AnnotateTypesWithSchema
from fx.passes.shape_prop import ShapeProp
from fx.use_def.values import AnyValue
from tests.zoo import ZOO, Network, borrow


def line(gm: AnyValue, name: str) -> str:
    """The line of a module's code that computes a value."""
    (found,) = (
        each.partition(";")[0].strip()
        for each in gm.code.splitlines()
        if each.strip().startswith(f"{name} ")
    )
    return str(found)


def body(gm: AnyValue) -> str:
    """A module's code without the signature: types stay there in fx."""
    return str(gm.code.partition(":\n")[2])


def calls(x: AnyValue, y: AnyValue) -> AnyValue:
    a = torch.add(x, y, alpha=2)
    b = F.relu(torch.cat([a, y], 1))
    c = torch.sum(F.gelu(b), (0,), keepdim=True)
    d, _ = torch.max(x, 0)
    return x.add(1), c, torch.eq(d, 1), torch.floor_divide(x, 2), torch.neg(x)


def test_types_that_are_given_count_and_not_those_of_the_node() -> None:
    class Powers(ours.NormalizeArgs):
        def call_method(
            self, target: AnyValue, args: AnyValue, kwargs: AnyValue
        ) -> AnyValue:
            types = (int, torch.Tensor)
            return self.call_function(torch.pow, (2, *args), kwargs, types)

    new = Powers(fx.symbolic_trace(lambda x: x.exp2())).transform()
    assert "torch.pow(self = 2, exponent = x)" in new.code
    assert new(torch.tensor(3.0)) == 8


@pytest.mark.parametrize("only_kwargs", [True, False])
def test_arguments_as_torch_fx(only_kwargs: bool) -> None:
    inputs = torch.rand(2, 3), torch.rand(2, 3)
    gm, beside = fx.symbolic_trace(calls), torch.fx.symbolic_trace(calls)
    ShapeProp(gm).propagate(*inputs)
    TheirShapeProp(beside).propagate(*inputs)
    before = gm.code
    new = ours.NormalizeArgs(gm, only_kwargs).transform()
    expected = theirs.NormalizeArgs(beside, only_kwargs).transform()
    assert gm.code == before
    different = {"max_1"}  # whose own type torch.fx takes for the argument's
    for node in expected.graph.nodes:
        if node.op == "call_function" and node.name not in different:
            assert line(new, node.name) == line(expected, node.name)
    for old, copy in zip(gm.graph.nodes, new.graph.nodes, strict=True):
        assert old.meta.items() <= copy.meta.items()
    torch.testing.assert_close(new(*inputs), calls(*inputs))


def test_operators_as_torch_fx() -> None:
    def f(x: AnyValue, y: AnyValue) -> AnyValue:
        a = torch.add(x, y) * torch.mul(x, 2) - torch.sub(x, y)
        b = torch.div(a, y) + torch.remainder(x, 2) + torch.floor_divide(x, 2)
        c = torch.eq(a, b), torch.ne(a, b), torch.lt(a, b), torch.le(a, b)
        return F.relu(a), *c, torch.gt(a, b), torch.ge(a, b), torch.pow(a, 2)

    new = ours.NormalizeOperators(fx.symbolic_trace(f)).transform()
    beside = theirs.NormalizeOperators(torch.fx.symbolic_trace(f)).transform()
    assert body(new) == body(beside)
    ours_: AnyValue = ours.NormalizeOperators.binary_magic_method_remap
    assert ours_ == theirs.NormalizeOperators.binary_magic_method_remap


class Typed(nn.Module):
    """Fetches and calls what has a type."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.inner = nn.Parameter(torch.ones(3)), nn.Linear(3, 3)
        self.register_buffer("b", torch.ones(3))

    def forward(self, x: AnyValue) -> AnyValue:
        bias: AnyValue = self.b
        a = F.max_pool1d(F.relu(self.inner(x)) * self.w + bias, 1)
        return F.softmax(torch.neg(a), 0)


@pytest.mark.parametrize("off", [None, "functionals", "modules", "get_attrs"])
def test_types_as_torch_fx(off: str | None) -> None:
    options: AnyValue = {} if off is None else {f"annotate_{off}": False}
    codes = []
    for lib, cls in (
        (fx, AnnotateTypesWithSchema),
        (torch.fx, their_types.AnnotateTypesWithSchema),
    ):
        traced: AnyValue = lib.symbolic_trace(Typed())
        made: AnyValue = cls
        codes.append(body(made(traced, **options).transform()))
    assert codes[0] == codes[1]


NETWORKS = [one for one in ZOO if one.parameters < 12_000_000]


@pytest.mark.parametrize("network", NETWORKS, ids=lambda one: one.name)
def test_networks(network: Network) -> None:
    """The code is torch.fx's; results stay to the last bit."""
    with borrow(network, training=False) as model, torch.no_grad():
        inputs = network.inputs()
        expected = model(*inputs)
        gm, beside = fx.symbolic_trace(model), torch.fx.symbolic_trace(model)
        operators = ours.NormalizeOperators(gm).transform()
        also: AnyValue = theirs.NormalizeOperators(beside).transform()
        assert body(operators) == body(also)
        new = ours.NormalizeArgs(operators).transform()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            also = theirs.NormalizeArgs(also).transform()
        for node in also.graph.nodes:
            if node.op == "call_module":
                assert line(new, node.name) == line(also, node.name)
        new.graph.lint()
        torch.testing.assert_close(new(*inputs), expected, rtol=0, atol=0)


# -- where torch.fx is not right ---------------------------------------------


def test_types_are_those_of_the_arguments() -> None:
    def f(x: AnyValue) -> AnyValue:
        return torch.max(x, x.dim() - 2).values

    x = torch.rand(2, 3)
    gm = fx.symbolic_trace(f)
    ShapeProp(gm).propagate(x)
    new = ours.NormalizeArgs(gm).transform()
    assert "input = x, dim = sub, keepdim" in line(new, "max_1")
    torch.testing.assert_close(new(x), f(x))


NUMBER_FIRST: list[Callable[[AnyValue], AnyValue]] = [
    lambda x: torch.pow(2, x),
    lambda x: torch.pow(x.size(0), x),
    lambda x: torch.where(x > 0, 1.0, x),
    lambda x: torch.remainder(5, x),
    lambda x: torch.bucketize(0.5, x),
    lambda x: torch.ops.aten.pow.Scalar(2, torch.ops.aten.add.Tensor(x, 1)),
    lambda x: torch.ops.aten.add(x, 1),
    lambda x: torch.ops.aten.where.ScalarSelf(x > 0, 1.0, x),
]


@pytest.mark.parametrize("f", NUMBER_FIRST)
@pytest.mark.parametrize("only_kwargs", [True, False])
def test_who_takes_self(
    f: Callable[[AnyValue], AnyValue], only_kwargs: bool
) -> None:
    gm, x = fx.symbolic_trace(f), torch.rand(3) + 1
    ShapeProp(gm).propagate(x)
    new = ours.NormalizeArgs(gm, only_kwargs).transform()
    assert bool(re.search(r"\bself = ", new.code)) == only_kwargs
    torch.testing.assert_close(new(x), f(x))


def test_what_is_known_to_be_a_tensor_without_a_run() -> None:
    gm = fx.symbolic_trace(lambda x: torch.add(torch.neg(x), 1))
    new = ours.NormalizeArgs(gm).transform()
    assert "input = neg, other = 1, alpha = 1" in new.code


MISSING = object()


def collects(x: torch.Tensor, seen: AnyValue = []) -> torch.Tensor:  # noqa: B006
    seen.append(len(seen))
    return x + len(seen)


def by_sentinel(x: torch.Tensor, y: AnyValue = MISSING) -> torch.Tensor:
    return x if y is MISSING else x + y


def in_order(f: Callable[..., AnyValue]) -> Callable[..., AnyValue]:
    @functools.wraps(f)
    def run(*args: AnyValue) -> AnyValue:
        return f(*args)

    return run


@in_order
def decorated(x: torch.Tensor, y: int = 2) -> torch.Tensor:
    return x * y


def plain(x: torch.Tensor, y: int = 2, z: AnyValue = (1, 2.5)) -> AnyValue:
    return x * y + z[1]


@pytest.mark.parametrize(
    ("f", "stays"),
    [(collects, 1), (by_sentinel, 1), (decorated, 1), (plain, 0)],
)
def test_functions_of_a_user(f: Callable[..., AnyValue], stays: bool) -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(f, (x,)))
    gm = fx.GraphModule({}, graph)
    new = ours.NormalizeArgs(gm).transform()
    assert (str(new.graph) == str(gm.graph)) == stays
    ones = torch.ones(2)
    first, second = new(ones), new(ones)
    if f is collects:
        assert (second - first).tolist() == [1, 1]
    torch.testing.assert_close(new(ones), f(ones) - int(f is collects))


def test_notes_stay_true_and_stay() -> None:
    gm = fx.symbolic_trace(lambda x: torch.relu(torch.add(x, 2)).sum())
    ShapeProp(gm).propagate(torch.ones(2))
    new = ours.NormalizeArgs(gm).transform()
    (add,) = new.graph.find_nodes(op="call_function", target=torch.add)
    assert list(add.kwargs) == ["input", "other", "alpha"]
    assert all("tensor_meta" in node.meta for node in new.graph.nodes)

    class Changes(ours.NormalizeArgs):
        """Also gives the tensor a dimension more."""

        def call_function(
            self,
            target: AnyValue,
            args: AnyValue,
            kwargs: AnyValue,
            *types: AnyValue,
        ) -> AnyValue:
            if target is torch.relu:
                args = (args[0][None],)
            return super().call_function(target, args, kwargs, *types)

    new = Changes(gm).transform()
    (relu,) = new.graph.find_nodes(op="call_function", target=torch.relu)
    assert "tensor_meta" not in relu.meta
    new = ours.NormalizeOperators(gm).transform()
    assert [
        node.name for node in new.graph.nodes if "tensor_meta" not in node.meta
    ] == ["add"]


def called(function: AnyValue, *args: AnyValue) -> fx.GraphModule:
    """A module that calls a function on tensors."""
    graph = fx.Graph()
    x = graph.placeholder("x", torch.Tensor)
    graph.output(graph.call_function(function, (x, *args)))
    return fx.GraphModule(nn.Module(), graph)


@pytest.mark.parametrize("only_kwargs", [True, False])
def test_an_overload_whose_argument_is_named_input(only_kwargs: bool) -> None:
    resize, scales = torch.ops.aten.upsample_nearest2d, [2.0, 2.0]
    new = ours.NormalizeArgs(
        called(resize, None, scales), only_kwargs
    ).transform()
    x = torch.rand(1, 1, 2, 2)
    torch.testing.assert_close(new(x), resize(x, None, scales))


def test_a_call_with_an_argument_that_no_code_can_name_stays() -> None:
    for args in ((), (0.0, 1.0)):
        gm = called(torch.ops.aten.uniform.default, *args)
        new = ours.NormalizeArgs(gm).transform()
        assert str(new.graph) == str(gm.graph)


def test_constants_of_any_type_stay() -> None:
    distance = nn.PairwiseDistance()
    graph = fx.Graph()
    x = graph.placeholder("x")
    loss = F.triplet_margin_with_distance_loss
    options: dict[str, object] = {"distance_function": distance}
    graph.output(graph.call_function(loss, (x, x, x), options))
    gm, a = fx.GraphModule(nn.Module(), graph), torch.rand(3, 4)
    for normalize in (ours.NormalizeArgs, ours.NormalizeOperators):
        new = normalize(gm).transform()
        (node,) = new.graph.find_nodes(op="call_function", target=loss)
        assert node.kwargs["distance_function"] is distance
        torch.testing.assert_close(new(a), gm(a))
