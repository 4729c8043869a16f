"""Stage 08: what make_fx captures, and what it leaves alone.

That the graphs are torch.fx's, tests/parity/programs/make_fx.py shows.
"""

from __future__ import annotations

import functools
import gc
import math
import pickle
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, no_type_check

import numpy as np
import pytest
import torch
import torch.backends.mha
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.func import functionalize
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils._python_dispatch import TorchDispatchMode

import fx
from fx.experimental.proxy_tensor import TracingMode, make_fx
from fx.tracing.patching import TRACES
from fx.use_def.values import AnyValue
from tests.parity.programs.make_fx import Binds

Tensor = torch.Tensor
Parameters = dict[str, torch.Tensor]
aten = torch.ops.aten


class Net(nn.Module):
    """Parameters, a buffer, a plain tensor, and some in two places."""

    shift: Tensor

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))
        self.body[2].bias = self.body[0].bias
        self.tied: nn.Module = self.body[0]
        self.register_buffer("shift", torch.ones(3))
        self.table = torch.arange(3.0)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.body(x) + self.tied(x) + self.shift * self.table
        return y + torch.tensor([1.0, 2.0, 3.0])


def fetched(gm: fx.GraphModule) -> list[str]:
    """What get_attr nodes fetch, in order."""
    return [str(n.target) for n in gm.graph.find_nodes(op="get_attr")]


def targets(gm: fx.GraphModule) -> list[str]:
    """The operators that are called, in order."""
    return [
        str(n.target).removeprefix("aten.")
        for n in gm.graph.nodes
        if n.op == "call_function"
    ]


X = torch.arange(6.0).reshape(2, 3)


# -- what is fetched -------------------------------------------------------

NET_PATHS = [
    "body.0.weight",
    "body.0.bias",
    "body.2.weight",
    "body.0.bias",
    "shift",
    "table",
    "body.0.weight",
    "body.0.bias",
    "_tensor_constant0",
]


@pytest.mark.parametrize(
    "f",
    [
        lambda net: net,
        lambda net: net.forward,
        lambda net: functools.partial(net),
        lambda net: functionalize(net),
    ],
    ids=["module", "method", "partial", "functionalized"],
)
def test_a_module_s_tensors_keep_their_paths(
    f: Callable[[Net], Callable[..., Tensor]],
) -> None:
    net = Net()
    gm = make_fx(f(net))(X)
    assert sorted(fetched(gm)) == sorted(NET_PATHS)
    torch.testing.assert_close(gm(X), net(X))
    assert gm.get_parameter("body.0.weight") is net.body[0].weight
    assert not hasattr(net, "_tensor_constant0")
    gm.graph.lint()


def test_what_is_fetched_is_shared() -> None:
    net = Net()
    gm = make_fx(net)(X)
    with torch.no_grad():
        next(net.parameters()).add_(1)
    torch.testing.assert_close(gm(X), net(X))


def test_a_path_that_a_graph_module_needs_itself_is_not_used() -> None:
    class Odd(nn.Module):
        graph: nn.Module

        def __init__(self) -> None:
            super().__init__()
            self.graph = nn.Linear(3, 3)
            self._param_constant0 = nn.Parameter(torch.ones(3))

        def forward(self, x: Tensor) -> Tensor:
            y: Tensor = self.graph(x) + self._param_constant0
            return y

    odd = Odd()
    gm = make_fx(odd)(X)
    assert fetched(gm) == [
        "_param_constant1",
        "_param_constant2",
        "_param_constant0",
    ]
    torch.testing.assert_close(gm(X), odd(X))


def test_an_unknown_tensor_is_fetched_once_each() -> None:
    one, two = torch.ones(3), nn.Parameter(torch.ones(3) * 2)
    gm = make_fx(lambda x: x * one + two - one)(X)
    assert fetched(gm) == [
        "_tensor_constant0",
        "_param_constant0",
        "_tensor_constant0",
    ]
    assert gm.get_buffer("_tensor_constant0") is one
    assert dict(gm.named_parameters()) == {"_param_constant0": two}


# -- constants -------------------------------------------------------------


def test_numbers_come_out_of_constants() -> None:
    def f(x: Tensor) -> Tensor:
        two = torch.tensor(2)
        view = two.view(1)
        two.mul_(3)
        return x * int(view) if view > 5 else x

    modes: tuple[TracingMode, ...] = ("real", "fake")
    for mode in modes:
        gm = make_fx(f, tracing_mode=mode)(X)
        torch.testing.assert_close(gm(X), X * 6)


def _writes_to_a_base(x: Tensor) -> Tensor:
    constant = torch.tensor(2.0)
    view = constant.view(1)
    constant.add_(x.sum())
    return x * view.item()


def _writes_to_a_view(x: Tensor) -> Tensor:
    constant = torch.tensor(2.0)
    constant.expand(3)[:1].add_(x.sum())
    return x * constant.item()


@pytest.mark.parametrize("f", [_writes_to_a_base, _writes_to_a_view])
def test_an_overwritten_tensor_is_not_constant(
    f: Callable[[Tensor], Tensor],
) -> None:
    with pytest.raises(RuntimeError, match="trying to get value out of"):
        make_fx(f)(X)


def test_writes_elsewhere_leave_constants_alone() -> None:
    def f(x: Tensor) -> Tensor:
        constant = torch.tensor(2.0)
        sparse = x.to_sparse().mul_(3)
        return (sparse.to_dense() + 1).mul_(constant.item())

    gm = make_fx(f)(X)
    torch.testing.assert_close(gm(X), (X * 3 + 1) * 2)


def test_random_numbers_are_not_constant() -> None:
    def f(x: Tensor) -> Tensor:
        return x * torch.tensor(2.0).bernoulli_(0.5).item()

    with pytest.raises(RuntimeError, match="trying to get value out of"):
        make_fx(f)(X)


# -- bad input -------------------------------------------------------------


def test_an_error_names_the_user_s_line() -> None:
    def branches(x: Tensor) -> Tensor:
        if x.sum() > 0:
            return x
        return -x

    with pytest.raises(RuntimeError) as caught:
        make_fx(branches)(X)
    message = str(caught.value)
    assert message.startswith("It appears that you're trying to get value out")
    assert "test_make_fx.py" in message
    assert "if x.sum() > 0" in message
    assert "torch.where" in message


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x + x.tolist()[0][0],
        lambda x: x * np.ones(x.shape),
        lambda x: torch.tensor([x.sum(), 1.0]),
        lambda x: torch.as_tensor([x[0].sum()]),
        lambda x: torch.tensor_split(x, x.long()[0, :1])[0],
        lambda x: setattr(x * 2, "data", x),
        lambda x: x.clone().apply_(lambda each: each),
    ],
)
def test_data_that_no_operator_takes(f: Callable[[Tensor], object]) -> None:
    with pytest.raises(RuntimeError, match="trying to get value out of"):
        make_fx(f)(X)


def test_a_literal_may_be_read_and_text_is_warned_of() -> None:
    gm = make_fx(lambda x: x * sum(torch.tensor([2.0, 3.0]).tolist()))(X)
    assert torch.equal(gm(X), X * 5)
    with pytest.warns(UserWarning, match="a tensor as text"):
        make_fx(lambda x: x * len(str(x)))(X)


def test_a_tensor_in_the_memory_of_another() -> None:
    for f in (lambda x: nn.Parameter(x) * 2, lambda x: nn.Parameter(x * 3) * 2):
        with pytest.raises(RuntimeError, match="in the memory of the value of"):
            make_fx(f)(X)
    base = torch.ones(4)
    view = base.view(2, 2)
    gm = make_fx(lambda x: (base.add_(x), view + 1))(torch.ones(4))
    assert gm(torch.ones(4))[1].tolist() == [[4.0, 4.0], [4.0, 4.0]]


@pytest.mark.parametrize("mode", ["real", "fake"])
def test_a_tensor_of_the_function_is_written_once(mode: TracingMode) -> None:
    count = torch.zeros(1)
    make_fx(lambda x: x + count.add_(torch.tensor(1.0)), tracing_mode=mode)(X)
    assert count.item() == (mode == "real")


@pytest.mark.parametrize("mode", ["real", "fake"])
def test_a_buffer_that_is_bound_anew_is_warned_of(mode: TracingMode) -> None:
    net = Binds()
    with pytest.warns(UserWarning, match="in the place of count while"):
        make_fx(net, tracing_mode=mode)(torch.ones(2))
    assert type(net.count) is Tensor
    assert net.count.tolist() == ([1, 1] if mode == "real" else [0, 0])


def test_shapes_that_depend_on_data_need_data() -> None:
    with pytest.raises(RuntimeError, match="depends on data") as caught:
        make_fx(lambda x: x.nonzero(), tracing_mode="fake")(X)
    assert "tracing_mode='real'" in str(caught.value)
    gm = make_fx(lambda x: x.nonzero())(X)
    assert targets(gm) == ["nonzero.default"]


def test_a_fake_tensor_of_somebody_else_is_refused() -> None:
    with FakeTensorMode():
        fake = torch.ones(3)
    with pytest.raises(
        RuntimeError, match="fake tensor that is neither an input"
    ):
        make_fx(lambda x: fake * 2)(X)


def test_an_operator_on_functions_is_refused() -> None:
    @no_type_check
    def f(x):
        return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))

    with pytest.raises(NotImplementedError, match=r"cond, in\n") as caught:
        make_fx(f)(X)
    assert "torch.cond(x.sum() > 0" in str(caught.value)
    assert "torch.where" in str(caught.value)


def test_there_are_two_tracing_modes() -> None:
    with pytest.raises(AssertionError, match="must be real/fake, got symbolic"):
        make_fx(torch.sin, tracing_mode="symbolic")  # type: ignore[arg-type]


def test_a_missing_argument_is_python_s_error() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional"):
        make_fx(lambda x, y: x + y)(X)


# -- functions of every kind -----------------------------------------------


def _starred(x: Tensor, *rest: Tensor, scale: float = 2) -> Tensor:
    return sum(rest, x) * scale


def _keyword(x: Tensor, y: Tensor, **options: float) -> Tensor:
    return x + y * options.get("scale", 3)


def _defaulted(x: Tensor, y: Tensor, scale: float = 2.0) -> Tensor:
    return x + y * scale


class Pairwise(nn.Module):
    """A module of two inputs."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y


# -- inputs that are not tensors ---------------------------------------------

MODES: tuple[TracingMode, ...] = ("real", "fake")
FIXED = (
    *((3, 1), (3, 3.0), (1, True), (True, False), (0.0, -0.0), (1.0, 1)),
    *(("sum", "mean"), (None, 0), (0, None), (1j, -1j), (b"a", b"b")),
    *((slice(1), slice(2)), (torch.float32, torch.float64), (2, "2")),
    *((math.nan, 0.0), (torch.device("cpu"), torch.device("meta"))),
)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("first", "second"), FIXED, ids=repr)
def test_a_graph_is_for_the_values_that_it_was_captured_with(
    first: object, second: object, mode: TracingMode
) -> None:
    def f(x: Tensor, i: AnyValue) -> Tensor:
        return x + float(i == first)

    def g(x: Tensor, i: AnyValue) -> Tensor:
        return f(x, i["a"][0])

    for function, pack in ((f, lambda i: i), (g, lambda i: {"a": [i]})):
        gm = make_fx(function, tracing_mode=mode)(X, pack(first))
        for call in (gm, fx.Interpreter(gm).run):
            expected = function(X, pack(first))
            assert torch.equal(call(X, pack(first)), expected)
            with pytest.raises(
                AssertionError, match=r"to have value .* but got another value"
            ):
                call(X, pack(second))
        gm.graph.eliminate_dead_code()
        gm.recompile()
        with pytest.raises(AssertionError, match="got another value"):
            pickle.loads(pickle.dumps(gm))(X, pack(second))


def test_a_graph_with_fixed_values_can_be_saved(tmp_path: Path) -> None:
    gm = make_fx(lambda x, i, s: x * i)(X, 3, "a")
    for node in gm.graph.nodes:
        node.meta.clear()
    fx.save(gm, tmp_path / "gm")
    back = fx.load(tmp_path / "gm")
    assert torch.equal(back(X, 3, "a"), X * 3)
    with pytest.raises(AssertionError, match="s_1 has been specialized"):
        back(X, 3, "b")


def test_other_objects_among_the_inputs_are_warned_of() -> None:
    with pytest.warns(UserWarning, match="captured net_1 as it is in this run"):
        gm = make_fx(lambda net, x: net(x))(nn.Linear(3, 3), X)
    assert [n.op for n in gm.graph.nodes].count("get_attr") == 2
    with pytest.warns(UserWarning, match="ignores another Generator that"):
        make_fx(lambda x, g: torch.rand((2,), generator=g))(
            X, torch.Generator()
        )


@pytest.mark.parametrize("mode", ["real", "fake"])
def test_one_tensor_that_is_given_twice_is_warned_of(mode: AnyValue) -> None:
    with pytest.warns(UserWarning, match="x_1 and y_2 are one tensor in this"):
        gm = make_fx(lambda x, y: x + y[1] * 2, tracing_mode=mode)(X, [1, X])
    assert torch.equal(gm(X, [1, X]), X * 3)


@pytest.mark.parametrize(
    ("f", "names"),
    [
        (_starred, ["arg0_1", "arg1_1"]),
        (_keyword, ["arg0_1", "arg1_1"]),
        (_defaulted, ["x_1", "y_1"]),
        (Pairwise().forward, ["x_1", "y_1"]),
        (torch.add, ["arg0_1", "arg1_1"]),
        (functools.partial(_defaulted, scale=4), ["arg0_1", "arg1_1"]),
    ],
)
def test_names_of_inputs(f: Callable[..., Tensor], names: list[str]) -> None:
    gm = make_fx(f)(X, X + 1)
    found = [n.name for n in gm.graph.nodes if n.op == "placeholder"]
    assert found == names
    torch.testing.assert_close(gm(X, X * 2), f(X, X * 2))


def test_nested_inputs_may_be_called_with_others() -> None:
    gm = make_fx(lambda d, pair: {"sum": d["a"] + pair[1]})(
        {"a": X}, (None, X + 1)
    )
    assert torch.equal(gm({"a": X * 2}, (None, X))["sum"], X * 3)


@pytest.mark.parametrize("mode", ["real", "fake"])
def test_every_tensor_has_its_value_as_a_fake_one(
    mode: TracingMode,
) -> None:
    net = Net()
    gm = make_fx(lambda x: net(x).split(1), tracing_mode=mode)(X)
    for node in gm.graph.nodes:
        if node.op == "output":
            continue
        values = node.meta["val"]
        for value in values if isinstance(values, list | tuple) else [values]:
            assert isinstance(value, FakeTensor)
    weight = gm.graph.find_nodes(op="get_attr")[0]
    assert weight.meta["val"].shape == (3, 3)
    assert weight.meta["tensor_meta"].requires_grad


def test_fake_captures_write_to_nothing() -> None:
    net, x = Net(), X.clone()
    before = {k: v.clone() for k, v in net.state_dict().items()}

    def f(x: Tensor) -> list[Tensor | None]:
        net(x.add_(1)).sum().backward()
        net.shift.mul_(2)
        return [p.grad for p in net.parameters()]

    gm = make_fx(f, tracing_mode="fake")(x)
    assert torch.equal(x, X)
    assert all(p.grad is None for p in net.parameters())
    for name, value in net.state_dict().items():
        assert torch.equal(value, before[name])
    expected = gm(x)
    torch.testing.assert_close(expected, f(X.clone()), rtol=0, atol=1e-4)


def test_operators_of_the_user_s_own() -> None:
    @torch.library.custom_op("fx_tests::twice", mutates_args=())
    def twice(x: Tensor) -> Tensor:
        return x * 2

    gm = make_fx(lambda x: twice(x) + 1)(X)
    assert targets(gm)[0] == "fx_tests.twice.default"
    assert torch.equal(gm(X), X * 2 + 1)


def test_a_tensor_of_its_own_class_says_what_it_is_made_of() -> None:
    make: Callable[..., Any] = TwoTensor
    pair = make(torch.ones(3), torch.zeros(3))
    gm = make_fx(lambda x: x * (pair + 1).b)(X)
    assert targets(gm) == ["add.Tensor", "add.Tensor", "mul.Tensor"]
    assert gm.get_buffer("_tensor_constant0") is pair.a
    assert gm.get_buffer("_tensor_constant1") is pair.b
    torch.testing.assert_close(gm(X), X)


def test_what_captures_is_a_plain_function() -> None:
    net = Net()
    capture = make_fx(net)
    assert set(vars(capture)) == {"__wrapped__"}
    assert vars(capture)["__wrapped__"] is net


# -- surroundings ----------------------------------------------------------


def encoder() -> nn.TransformerEncoder:
    """What takes three fused paths in eval mode, without gradients."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
    return nn.TransformerEncoder(layer, 2).eval().requires_grad_(False)


FUSED = {
    "_transformer_encoder_layer_fwd.default",
    "_native_multi_head_attention.default",
}


class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's
    """Notes which operators run."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's
        self.seen: set[str] = set()

    @no_type_check
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.add(str(func).removeprefix("aten."))
        return func(*args, **(kwargs or {}))


def runs_fused(module: nn.Module, x: Tensor) -> bool:
    """Whether an eager call takes the fused path."""
    with Watch() as watch:
        module(x)
    return bool(watch.seen & FUSED)


def test_fused_paths_are_off_in_captures_alone() -> None:
    module, x = encoder(), torch.randn(2, 3, 4)
    original = torch.backends.mha.get_fastpath_enabled
    assert runs_fused(module, x)
    seen: list[bool] = []

    def f(x: Tensor) -> Tensor:
        other = threading.Thread(
            target=lambda: seen.append(runs_fused(module, x.detach().clone()))
        )
        other.start()
        other.join()
        y: Tensor = module(x)
        return y

    gm = make_fx(f)(x)
    assert not FUSED & set(targets(gm))
    assert seen == [True]
    assert torch.backends.mha.get_fastpath_enabled is original
    assert runs_fused(module, x)
    torch.testing.assert_close(gm(x), module(x))


def test_all_is_restored_when_the_function_fails() -> None:
    original = torch.backends.mha.get_fastpath_enabled
    torch.set_autocast_cache_enabled(True)

    def f(x: Tensor) -> Tensor:
        assert torch.backends.mha.get_fastpath_enabled is not original
        assert not torch.backends.mha.get_fastpath_enabled()
        assert not torch.is_autocast_cache_enabled()
        raise KeyboardInterrupt

    def outer(x: Tensor) -> Tensor:
        with pytest.raises(KeyboardInterrupt):
            make_fx(f)(x)
        return x + 1

    assert targets(make_fx(outer)(X)) == ["add.Tensor"]
    assert torch.backends.mha.get_fastpath_enabled is original
    assert torch.is_autocast_cache_enabled()
    assert TRACES.current is None
    with Watch() as watch:
        X + 1
    assert watch.seen == {"add.Tensor"}


def test_threads_capture_side_by_side() -> None:
    graphs: dict[int, str] = {}
    start = threading.Barrier(4)

    def capture(count: int) -> None:
        def f(x: Tensor) -> Tensor:
            for _ in range(count):
                x = x.sin() + 1
            return x

        start.wait()
        for _ in range(5):
            graphs[count] = " ".join(targets(make_fx(f)(X)))

    threads = [
        threading.Thread(target=capture, args=(n,)) for n in (3, 5, 7, 9)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for count in (3, 5, 7, 9):
        assert graphs[count] == " ".join(["sin.default add.Tensor"] * count)


def test_a_capture_in_a_symbolic_trace_and_the_other_way() -> None:
    graphs: list[fx.GraphModule] = []
    net = Net()

    @no_type_check
    def forward(x):
        graphs.append(make_fx(net)(X))
        return x + 1

    gm = fx.symbolic_trace(forward)
    assert len(list(gm.graph.nodes)) == 3
    assert sorted(fetched(graphs[0])) == sorted(NET_PATHS)

    def f(x: Tensor) -> Tensor:
        y: Tensor = fx.symbolic_trace(net)(x)
        return y

    torch.testing.assert_close(make_fx(f)(X)(X), net(X))


def test_tensors_die_when_the_function_lets_them_go() -> None:
    dead: list[bool] = []

    def f(x: Tensor) -> Tensor:
        y = x + 1
        watched = weakref.ref(y)
        y = y * 2
        dead.append(watched() is None)
        return y

    gc.disable()
    try:
        gm = make_fx(f)(X)
    finally:
        gc.enable()
    assert dead == [True]
    assert torch.equal(gm(X), (X + 1) * 2)


def test_many_tensors_in_the_same_places_are_told_apart() -> None:
    def f(x: Tensor) -> Tensor:
        total = x
        for i in range(200):
            total = total + (x * i).sin() * (x + i).cos()
        return total

    gm = make_fx(f)(X)
    torch.testing.assert_close(gm(X * 3), f(X * 3))


def test_decompositions_and_what_they_call_are_recorded() -> None:
    def twice(x: Tensor) -> Tensor:
        return x.relu() + x.relu()

    table = {aten.sin.default: twice, aten.relu.default: lambda x: x.abs()}
    gm = make_fx(lambda x: x.sin(), table)(X)
    assert targets(gm) == ["abs.default", "abs.default", "add.Tensor"]
    assert aten.sin.default in table


# -- leaf functions ------------------------------------------------------------


@fx.wrap
def gelu2(x: Tensor) -> Tensor:
    """A leaf of traces."""
    return x * torch.sigmoid(1.7 * x)


fx.wrap("len")
torch.fx.wrap("marked_by_torch")


def marked_by_torch(x: Tensor) -> Tensor:
    """A leaf for torch.fx."""
    return x + 1


def test_a_leaf_function_is_looked_into_and_that_is_said() -> None:
    def f(x: Tensor) -> Tensor:
        return gelu2(x) + gelu2(x + len([1]))

    with pytest.warns(UserWarning, match="inside of gelu2, although") as said:
        gm = make_fx(f)(torch.ones(3))
    assert len(said) == 1
    assert "custom_op" in str(said[0].message)
    assert said[0].filename == __file__
    torch.testing.assert_close(gm(torch.zeros(3)), f(torch.zeros(3)))
    assert targets(gm).count("sigmoid.default") == 2
    assert not TRACES._patches


def test_a_leaf_of_torch_fx_is_not_worth_a_warning(
    recwarn: pytest.WarningsRecorder,
) -> None:
    assert targets(make_fx(marked_by_torch)(torch.ones(3))) == ["add.Tensor"]
    assert not recwarn.list


def calls_gelu2(x: Tensor) -> Tensor:
    """One leaf call."""
    return gelu2(x)


@pytest.mark.filterwarnings("ignore:make_fx records the operators inside")
@pytest.mark.parametrize("trace_first", [False, True])
def test_a_capture_and_a_trace_at_the_same_time(trace_first: bool) -> None:
    """Each replaces the leaf function, and is the first or second to do so."""
    seen: dict[str, list[str]] = {}
    inner: list[str] = ["trace", "capture"]
    outer = inner.pop(0 if trace_first else 1)

    def run(which: str) -> None:
        if which == "trace":
            seen[which] = targets(fx.symbolic_trace(program(which)))
        else:
            seen[which] = targets(make_fx(program(which))(torch.ones(3)))

    def program(which: str) -> Callable[..., Tensor]:
        def f(x: Tensor) -> Tensor:
            if which == outer:
                thread = threading.Thread(target=run, args=inner)
                thread.start()
                thread.join()
            return gelu2(x)

        return f

    run(outer)
    assert len(seen["capture"]) == 3
    assert len(seen["trace"]) == 1
    assert "gelu2" in seen["trace"][0]


def test_a_trace_inside_of_a_capture_records_a_leaf() -> None:
    seen = []

    def f(x: Tensor) -> Tensor:
        seen.append(targets(fx.symbolic_trace(calls_gelu2)))
        return x + 1

    make_fx(f)(torch.ones(3))
    assert len(seen[0]) == 1
