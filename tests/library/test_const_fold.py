"""Passes: constants are computed once, and again when they have changed."""

from __future__ import annotations

import copy
import operator
import pickle
import sys
import threading
import time
import warnings
from collections.abc import Callable

import pytest
import torch
import torch.fx
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental import const_fold as theirs
from torch.fx.experimental.proxy_tensor import make_fx as their_make_fx
from torch.nn.utils import parametrize

import fx
from fx.experimental import const_fold
from fx.experimental.const_fold import FoldedGraphModule, split_const_subgraphs
from fx.experimental.proxy_tensor import make_fx
from fx.use_def.values import AnyValue
from tests.library.memory_programs import flat
from tests.zoo import ZOO, Network, borrow

pytestmark = [
    pytest.mark.filterwarnings("ignore:gradients end"),
    pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr"),
    pytest.mark.filterwarnings("ignore:Failed to fetch module"),
]


class Holder(nn.Module):
    """A module with parameters, a buffer and children."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.a = nn.Parameter(torch.randn(3, 3))
        self.b = nn.Parameter(torch.randn(3, 3))
        self.register_buffer("c", torch.randn(3, 3))
        self.linear = nn.Linear(3, 3)
        self.norm = nn.BatchNorm1d(3)
        self.drop = nn.Dropout(0.5)
        self.quiet = nn.Dropout(0.5).eval()
        self.inner = nn.Module()
        self.inner.d = nn.Parameter(torch.randn(3))


def model(forward: Callable[..., AnyValue]) -> AnyValue:
    """A holder with this forward."""
    return type("Model", (Holder,), {"forward": forward})()


def traced(made: AnyValue, lib: AnyValue = fx) -> AnyValue:
    """A model, traced with its buffers."""
    tracer = lib.Tracer()
    tracer.proxy_buffer_attributes = True
    return lib.GraphModule(made, tracer.trace(made))


X = torch.linspace(-1, 1, 9).view(3, 3)


def folded(forward: Callable[..., AnyValue]) -> tuple[AnyValue, list[str]]:
    """A model, folded, and the calls that were; three calls are compared."""
    gm = traced(model(forward))
    before, beside = str(gm.graph), copy.deepcopy(gm)
    found: AnyValue = split_const_subgraphs(gm)
    assert str(gm.graph) == before
    found.graph.lint()
    for _ in range(3):
        ours, expected = found(X.clone()), beside(X.clone())
        torch.testing.assert_close(ours, expected, rtol=0, atol=0)
        with torch.no_grad():
            for one in (*ours, *expected):
                if isinstance(one, torch.Tensor):
                    one.mul_(2)
    assert str(gm.state_dict()) == str(beside.state_dict())
    return found, calls(found)


def calls(found: AnyValue) -> list[str]:
    """What is called in the graph of the constants."""
    const = found.const_subgraph_module
    nodes = const.graph.nodes if const else ()
    return [n.name for n in nodes if n.op.startswith("call")]


# -- where torch.fx is right -------------------------------------------------


def one(self: AnyValue, x: AnyValue) -> AnyValue:
    return (x + (self.a + self.b) * 2).sum()


def several(self: AnyValue, x: AnyValue) -> AnyValue:
    return (x - self.a.t()) * (self.a @ self.b) + self.c


def nested(self: AnyValue, x: AnyValue) -> AnyValue:
    return {"r": x + torch.neg(self.inner.d)}["r"] * self.inner.d


def module(self: AnyValue, x: AnyValue) -> AnyValue:
    return x @ self.linear(self.c)


def evaluated(self: AnyValue, x: AnyValue) -> AnyValue:
    return x @ torch.neg(self.quiet(self.c))


def pieces(self: AnyValue, x: AnyValue) -> AnyValue:
    return x + torch.unbind(self.a)[0] + torch.cat([self.b, self.c])[:3]


def none(self: AnyValue, x: AnyValue) -> AnyValue:
    return x + self.a


@pytest.mark.parametrize(
    "forward", [one, several, nested, module, evaluated, pieces, none]
)
def test_as_torch_fx(forward: Callable[..., AnyValue]) -> None:
    ours = split_const_subgraphs(traced(model(forward)))
    beside: AnyValue = theirs.split_const_subgraphs(
        traced(model(forward), torch.fx)
    )
    assert sorted(calls(ours)) == sorted(calls(beside))
    ours.run_folding()
    beside.run_folding()
    assert len(ours.graph.nodes) == len(beside.graph.nodes)
    assert {*ours.state_dict()} == {*beside.state_dict()}
    torch.testing.assert_close(ours(X), beside(X), rtol=0, atol=0)


@pytest.mark.parametrize("name", ["vgg16", "dlrm", "siamese", "blstm_cnn"])
def test_networks(name: str) -> None:
    (network,) = (each for each in ZOO if each.name == name)
    with borrow(network, training=False) as net, torch.no_grad():
        inputs = network.inputs()
        found = split_const_subgraphs(make_fx(net)(*inputs))
        beside: AnyValue = theirs.split_const_subgraphs(
            their_make_fx(net)(*inputs)
        )
        ours, others = calls(found), calls(beside)
        assert len(ours) == len(others) > 0
        torch.testing.assert_close(found(*inputs), net(*inputs))


@pytest.mark.parametrize("network", ZOO[:3], ids=lambda one: one.name)
def test_nothing_to_fold(network: Network) -> None:
    net = network.without_numbers().eval()
    found = split_const_subgraphs(net)
    assert found.const_subgraph_module is None
    assert str(found.graph) == str(fx.symbolic_trace(net).graph)


def test_what_a_value_keeps() -> None:
    gm = fx.symbolic_trace(model(several))
    for node in gm.graph.nodes:
        node.meta["noted"] = node.name
    found: AnyValue = split_const_subgraphs(gm)
    names = [node.meta.get("noted") for node in found.graph.nodes]
    assert "t" in names and "matmul" in names and "mul" in names
    held = found._FX_CONST_FOLDED_ATTRS
    assert isinstance(held, nn.ParameterList)
    found.run_folding()
    assert [each.requires_grad for each in found._FX_CONST_FOLDED_ATTRS] == [
        True,
        True,
    ]
    with torch.no_grad():
        found.run_folding()
    assert not found._FX_CONST_FOLDED_ATTRS[1].requires_grad


def test_a_node_that_is_skipped() -> None:
    gm = fx.symbolic_trace(model(one))
    asked = []

    def skip(node: AnyValue) -> bool:
        asked.append(node.name)
        return node.target is operator.mul

    assert calls(split_const_subgraphs(gm, skip)) == ["add"]
    assert asked == ["a", "b", "add", "mul"]
    skipped = split_const_subgraphs(gm, lambda node: node.op == "get_attr")
    assert calls(skipped) == []


@pytest.mark.parametrize(
    "wish", ["x", "a", "a_1", "a_b", "1x", "x.y-z", "_9", "__2", "a__", "b_09"]
)
def test_names_that_are_free(wish: str) -> None:
    made: tuple[list[str], list[str]] = [], []
    for lib, found in zip((fx, torch.fx), made, strict=True):
        gm: AnyValue = lib.symbolic_trace(nn.Identity())
        for _ in range(3):
            of = const_fold if lib is fx else theirs
            name: str = of.get_unique_attr_name_in_module(gm, wish)
            setattr(gm, name, 1)
            found.append(name)
    assert made[0] == made[1]


# -- where it is not ---------------------------------------------------------


def returned(self: AnyValue, x: AnyValue) -> AnyValue:
    a = self.a + 1
    return a, x + a


def returned_in_a_view(self: AnyValue, x: AnyValue) -> AnyValue:
    a = self.a + 1
    return x + a, [a.view(-1)]


def written_later(self: AnyValue, x: AnyValue) -> AnyValue:
    a = self.a + 1
    a.add_(x)
    return a.sum(), x


def a_view_of_what_is_written(self: AnyValue, x: AnyValue) -> AnyValue:
    a = self.a + 1
    b = a.view(9)
    a.add_(x)
    return (x.view(9) + b,)


def written_by_a_function(self: AnyValue, x: AnyValue) -> AnyValue:
    return (flat(self.a + 1) + 1 + x.view(9),)


def behind_a_write(self: AnyValue, x: AnyValue) -> AnyValue:
    self.c.add_(x)
    return x + (self.c * 2), x


def in_front_of_a_write(self: AnyValue, x: AnyValue) -> AnyValue:
    y = x + (self.c * 2)
    self.c.add_(x)
    return y, x


def behind_an_unknown_write(self: AnyValue, x: AnyValue) -> AnyValue:
    x.add_(1)  # may be self.c
    return (x + (self.c * 2),)


def statistics(self: AnyValue, x: AnyValue) -> AnyValue:
    y = self.norm(x)
    return y + (self.norm.running_mean * 2), x


def a_view_of_what_may_change(self: AnyValue, x: AnyValue) -> AnyValue:
    self.norm(x)
    return (x + self.norm.running_mean.neg(),)


def a_view_of_what_is_written_later(self: AnyValue, x: AnyValue) -> AnyValue:
    row = self.c[0]
    self.c.add_(x)
    return (x + row,)


fx.wrap("flat")

NOT_FOLDED = [
    returned,
    returned_in_a_view,
    written_later,
    a_view_of_what_is_written,
    written_by_a_function,
    behind_a_write,
    behind_an_unknown_write,
    statistics,
    a_view_of_what_may_change,
    a_view_of_what_is_written_later,
]


@pytest.mark.parametrize("forward", NOT_FOLDED)
def test_what_must_be_new_each_time(forward: Callable[..., AnyValue]) -> None:
    assert folded(forward)[1] == []


def test_random_numbers_are_drawn_each_time() -> None:
    def forward(self: AnyValue, x: AnyValue) -> AnyValue:
        return x + self.drop(self.a) + torch.rand_like(self.a)

    assert calls(split_const_subgraphs(model(forward))) == []


def test_a_module_with_a_hook_runs_each_time() -> None:
    made, seen = model(module), []
    made.linear.register_forward_hook(lambda *_: seen.append(1))
    found = split_const_subgraphs(traced(made))
    assert calls(found) == []
    found(X), found(X)
    assert len(seen) == 2


def test_a_value_in_front_of_a_write_is_computed_again() -> None:
    assert folded(in_front_of_a_write)[1] == ["mul"]


def test_a_mode_in_front_of_a_call() -> None:
    gm = fx.symbolic_trace(model(one))
    with gm.graph.inserting_before(next(iter(gm.graph.nodes)).next):
        gm.graph.call_function(torch._C._set_grad_enabled, (True,))
    assert calls(split_const_subgraphs(gm)) == []


def numbers(self: AnyValue, x: AnyValue) -> AnyValue:
    rows = self.a.t().size(0)
    return (torch.reshape(x, (rows, -1)) * self.b.t().dim(),)


def test_numbers_stay_numbers() -> None:
    found, made = folded(numbers)
    assert made == ["t", "size", "t_1", "dim"]
    assert [*found._FX_CONST_FOLDED_ATTRS] == [3, 2]


def test_several_values_of_one_call() -> None:
    def forward(self: AnyValue, x: AnyValue) -> AnyValue:
        return (x + torch.stack(torch.unbind(self.a), 1),)

    assert folded(forward)[1] == ["unbind", "stack"]
    gm = fx.symbolic_trace(model(forward))
    some = split_const_subgraphs(gm, lambda n: n.name == "stack")
    assert calls(some) == ["unbind"]
    torch.testing.assert_close(some(X), gm(X))


def test_a_module_that_is_called_twice() -> None:
    def forward(self: AnyValue, x: AnyValue) -> AnyValue:
        return (self.linear(x) + self.linear(self.c),)

    assert folded(forward)[1] == ["linear_1"]


def test_nested_inputs_and_keywords() -> None:
    weight = torch.ones(2)

    def forward(pair: AnyValue) -> AnyValue:
        return torch.mul(pair["a"], weight.neg())

    gm = fx.symbolic_trace(forward, concrete_args={"pair": {"a": fx.PH}})
    found = split_const_subgraphs(gm)
    assert found({"a": torch.ones(2)}).tolist() == [-1, -1]
    plain = split_const_subgraphs(model(one))
    torch.testing.assert_close(plain(x=X), plain(X))


def test_it_has_the_mode_of_the_module() -> None:
    assert split_const_subgraphs(model(one)).training
    assert not split_const_subgraphs(model(one).eval()).training


# -- when what was read has changed ------------------------------------------


def write(made: AnyValue) -> None:
    made.a.mul_(3)


def put_another(made: AnyValue) -> None:
    made.a.data = torch.ones(3, 3)


def load(made: AnyValue) -> None:
    made.load_state_dict({n: v + 1 for n, v in made.state_dict().items()})


def step(made: AnyValue) -> None:
    made.a.grad = torch.ones_like(made.a)
    torch.optim.SGD([made.a], 0.1).step()


@pytest.mark.parametrize("change", [write, put_another, load, step])
def test_weights_that_change(change: Callable[[AnyValue], None]) -> None:
    made = model(one)
    found = split_const_subgraphs(made)
    for _ in range(2):
        torch.testing.assert_close(found(X), made(X), rtol=0, atol=0)
        with torch.no_grad():
            change(made)
    held = found._FX_CONST_FOLDED_ATTRS
    torch.testing.assert_close(found(X), made(X), rtol=0, atol=0)
    assert found._FX_CONST_FOLDED_ATTRS is not held
    held = found._FX_CONST_FOLDED_ATTRS
    found(X)
    assert found._FX_CONST_FOLDED_ATTRS is held


def twice(self: AnyValue, x: AnyValue) -> AnyValue:
    """The weight is folded, and fetched by what is left."""
    return x @ self.a + self.a * 2


@pytest.mark.parametrize("is_loaded", [False, True])
def test_a_weight_that_is_replaced_is_that_of_both_graphs(
    is_loaded: bool,
) -> None:
    made = model(twice)
    found = split_const_subgraphs(made)
    assert found.const_subgraph_module is not None
    other = nn.Parameter(torch.full((3, 3), 7.0))
    for each in (made, found):
        if is_loaded:
            each.load_state_dict({"a": other}, strict=False, assign=True)
        else:
            each.a = other
    torch.testing.assert_close(found(X), made(X), rtol=0, atol=0)


def test_a_weight_of_another_kind_is_refused() -> None:
    found = split_const_subgraphs(model(twice))
    parametrize.register_parametrization(found, "a", nn.Tanh())
    with pytest.raises(RuntimeError, match="a was folded, and is of another"):
        found(X)


def test_to_empty_takes_its_keyword() -> None:
    made = model(twice)
    found: AnyValue = split_const_subgraphs(copy.deepcopy(made))
    found.to("meta").to_empty(device="cpu")
    with torch.no_grad():
        found.a.copy_(made.a)
    torch.testing.assert_close(found(X), made(X), rtol=0, atol=0)


def test_a_weight_of_a_folded_module_and_another_dtype() -> None:
    made = model(module)
    found = split_const_subgraphs(traced(made))
    found(X)
    with torch.no_grad():
        made.linear.bias.add_(1)
    torch.testing.assert_close(found(X), made(X), rtol=0, atol=0)
    found.double()
    made.double()
    torch.testing.assert_close(found(X.double()), made(X.double()))


def test_autocast() -> None:
    def forward(self: AnyValue, x: AnyValue) -> AnyValue:
        return x @ (self.a @ self.b)

    made = model(forward)
    found = split_const_subgraphs(made)
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(found(X), made(X), rtol=0, atol=0)
    torch.testing.assert_close(found(X), made(X), rtol=0, atol=0)


def product(self: AnyValue, x: AnyValue) -> AnyValue:
    return x + self.a @ self.b


def cast(module: AnyValue) -> AnyValue:
    """The result under autocast."""
    with torch.autocast("cpu", torch.bfloat16):
        return module(X)


def test_both_states_of_autocast_have_values_of_their_own() -> None:
    made = model(product).requires_grad_(False)
    found = split_const_subgraphs(made)
    held = found._FX_CONST_FOLDED_ATTRS
    for _ in range(2):
        for run in (cast, lambda module: module(X)):
            assert torch.equal(run(found), run(made))
    assert found._FX_CONST_FOLDED_ATTRS is held
    made.a.add_(1)
    assert torch.equal(cast(found), cast(made))
    assert torch.equal(found(X), made(X))
    new = copy.copy(found)
    new.graph.output_node().args = (new.graph.find_nodes(op="placeholder")[0],)
    new.recompile()
    assert torch.equal(cast(new), X), "not what the other module does"


def test_several_values_and_numbers_under_autocast() -> None:
    made = model(several)
    torch.testing.assert_close(cast(split_const_subgraphs(made)), cast(made))
    found = split_const_subgraphs(traced(model(numbers)))
    assert torch.equal(cast(found)[0], cast(model(numbers))[0])


def test_a_hook_writes_to_the_module_under_autocast() -> None:
    found: AnyValue = split_const_subgraphs(model(product))

    def count(module: AnyValue, given: AnyValue) -> None:
        module.calls = getattr(module, "calls", 0) + 1

    found.register_forward_pre_hook(count)
    found(X)
    cast(found)
    assert found.calls == 2


def in_threads(
    acts: list[Callable[[], None]], seconds: float
) -> list[BaseException]:
    """What is raised in threads, each of which acts again and again."""
    raised: list[BaseException] = []
    stop = time.monotonic() + seconds

    def work(act: Callable[[], None]) -> None:
        try:
            while time.monotonic() < stop and not raised:
                act()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=work, args=(act,)) for act in acts]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    return raised


def test_threads_with_autocast_and_without() -> None:
    made = model(product).requires_grad_(False)
    found = split_const_subgraphs(made)
    right = made(X), cast(made)

    def plain() -> None:
        assert torch.equal(found(X), right[0])

    def under_autocast() -> None:
        assert torch.equal(cast(found), right[1])

    assert in_threads([plain, under_autocast] * 2, 0.5) == []


def test_threads_that_fold_again() -> None:
    made = model(product).requires_grad_(False)
    found = split_const_subgraphs(made)
    right = made(X)

    def call() -> None:
        assert torch.equal(found(X), right)

    def touch() -> None:
        made.a.add_(0)
        time.sleep(1e-4)

    assert in_threads([call, call, call, touch], 0.5) == []


def test_values_that_are_folded_in_a_fake_mode_have_data() -> None:
    made = model(product).requires_grad_(False)
    found: AnyValue = split_const_subgraphs(made)
    made.a.add_(1)
    new_mode: AnyValue = FakeTensorMode
    with new_mode(allow_non_fake_inputs=True) as mode:
        found(mode.from_tensor(X))
    assert torch.equal(found(X), made(X))


def test_another_default_device() -> None:
    graph = fx.Graph()
    ones = graph.call_function(torch.ones, (3,))
    graph.output(graph.call_function(torch.add, (graph.placeholder("x"), ones)))
    found = split_const_subgraphs(fx.GraphModule({}, graph))
    with torch.device("meta"):
        assert found(torch.ones(3)).device.type == "meta"
    assert torch.equal(found(torch.ones(3)), torch.ones(3) * 2)


def test_a_dropout_that_is_put_in_training() -> None:
    found: AnyValue = split_const_subgraphs(traced(model(evaluated)))
    found(X)
    cast(found)
    found.train()
    runs: tuple[AnyValue, ...] = (found, lambda x: cast(found))
    for run in runs:
        with pytest.raises(RuntimeError, match="not constant any more: Drop"):
            run(X)
    found.eval()
    found(X)


@pytest.mark.parametrize("is_run", [False, True])
def test_copies(is_run: bool) -> None:
    made = model(several)
    found: AnyValue = split_const_subgraphs(made)
    new: AnyValue
    if is_run:
        found(X)
    for new in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert issubclass(type(new), FoldedGraphModule)
        torch.testing.assert_close(new(X), made(X), rtol=0, atol=0)
        with torch.no_grad():
            new.const_subgraph_module.a.add_(1)
        assert not torch.equal(new(X), made(X))


def test_unused_modules_are_deleted_but_what_folds() -> None:
    made = model(several)
    found: AnyValue = split_const_subgraphs(made)
    found.add_submodule("unused", nn.ReLU())
    found.delete_all_unused_submodules()
    assert not hasattr(found, "unused")
    with torch.no_grad():
        found.const_subgraph_module.a.add_(1)
    torch.testing.assert_close(found(X), made(X))


def test_tensors_that_cannot_tell_of_writes() -> None:
    with torch.inference_mode():
        made = model(one)
    found = split_const_subgraphs(made)
    with torch.inference_mode():
        torch.testing.assert_close(found(X), made(X), rtol=0, atol=0)


def test_what_was_folded_is_not_folded_again() -> None:
    found = split_const_subgraphs(model(one))
    with pytest.raises(TypeError, match="was folded already"):
        split_const_subgraphs(found)
    split_const_subgraphs(split_const_subgraphs(model(none)))


def test_who_would_train_it_is_told() -> None:
    with pytest.warns(UserWarning, match="gradients end at the folded"):
        split_const_subgraphs(model(one))
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        split_const_subgraphs(model(one))(X)


def test_what_runs_the_graph_finds_values() -> None:
    made = model(one)
    found = split_const_subgraphs(made)
    assert found.has_folding_been_run
    outer = fx.symbolic_trace(nn.Sequential(found))
    runs = (fx.Interpreter(found).run, found.forward, outer)
    for run in runs:
        torch.testing.assert_close(run(X), made(X))


def counted(self: AnyValue, x: AnyValue) -> AnyValue:
    return x + self.count / 3


def test_a_conversion_is_no_loss() -> None:
    made = model(counted)
    made.register_buffer("count", torch.tensor([1, 2, 4]))
    found: AnyValue = split_const_subgraphs(traced(made))
    inner = nn.Sequential(found)
    inner.bfloat16().float()
    torch.testing.assert_close(inner(X), made(X), rtol=0, atol=0)


def test_both_graphs_keep_one_buffer_after_a_conversion() -> None:
    made = model(lambda self, x: x * torch.neg(self.c) + self.c)
    found: AnyValue = split_const_subgraphs(traced(made)).double()
    expected = found(X)
    found.c.mul_(2)
    torch.testing.assert_close(found(X), 2 * expected)


def test_values_made_in_inference_mode() -> None:
    made = model(lambda self, x: (x * (self.a + self.b)).sum())
    with torch.inference_mode():
        found: AnyValue = split_const_subgraphs(made)
    x = X.clone().requires_grad_()
    found(x).backward()
    torch.testing.assert_close(x.grad, (made.a + made.b).detach())


def test_another_default_dtype() -> None:
    graph = fx.Graph()
    ones = graph.call_function(torch.ones, (3,))
    graph.output(graph.call_function(torch.add, (graph.placeholder("x"), ones)))
    found = split_const_subgraphs(fx.GraphModule({}, graph))
    whole = torch.ones(3, dtype=torch.int)
    assert found(whole).dtype is torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert found(whole).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_time_grows_with_the_nodes() -> None:
    graph = fx.Graph()
    value = x = graph.placeholder("x")
    for _ in range(2000):
        weight = graph.call_function(torch.neg, (graph.get_attr("w"),))
        value = graph.call_function(torch.mul, (value, weight))
    graph.output((value, x))
    gm = fx.GraphModule({"w": torch.ones(2)}, graph)
    found = split_const_subgraphs(gm)
    assert len(calls(found)) == 2000
    assert torch.equal(found(X[:2, :2])[0], X[:2, :2])


def test_what_is_said_to_have_an_effect_is_not_folded() -> None:
    made = model(lambda self, x: x + torch.neg(self.a) * torch.exp(self.b))

    def is_exp(node: fx.Node) -> bool:
        return node.target is torch.exp

    found: AnyValue = split_const_subgraphs(made, is_impure_node=is_exp)
    assert torch.exp in [node.target for node in found.graph.nodes]
    assert torch.neg not in [node.target for node in found.graph.nodes]
    torch.testing.assert_close(found(X), made(X))


def test_graphs_inside_other_modules_are_asked_about_and_each_once() -> None:
    asked: list[str] = []

    def is_relu(node: fx.Node) -> bool:
        asked.append(node.name)
        return node.target is torch.relu

    inner = fx.symbolic_trace(model(lambda self: torch.relu(self.a)))
    root, graph = nn.Module(), fx.Graph()
    root.held = nn.Sequential(nn.Identity(), inner)
    x = graph.placeholder("x")
    for _ in range(3):
        x = graph.call_function(torch.add, (x, graph.call_module("held")))
    graph.output(x)
    gm = fx.GraphModule(root, graph)
    split_const_subgraphs(gm, is_relu)
    assert asked.count("relu") == 1
    assert asked.count("held") == 1


def test_dead_code_is_left_out_with_what_it_fetches() -> None:
    made = model(lambda self, x: (torch.sub(x, self.b), x + self.a.t())[1])
    made.eval()
    gm = traced(made)
    found = split_const_subgraphs(gm)
    assert "sub" not in found.code
    assert "b" not in dict(found.named_parameters())
    assert "sub" in gm.code
