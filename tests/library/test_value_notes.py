"""What nodes note of their values is true after a rewrite, or is not there."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.export import Dim

import fx
from fx.experimental.proxy_tensor import TracingMode, make_fx
from fx.extra.effects.effects import by_rule
from fx.passes.fake_tensor_prop import FakeTensorProp
from fx.passes.shape_prop import ShapeProp
from fx.rewriting.replacing import described
from fx.rewriting.rules import Rule, rewrite_until_stable
from fx.use_def.values import AnyValue

aten = torch.ops.aten
KINDS = ("val", "tensor_meta", "type")
X = torch.ones(2, 3)


def t(x: AnyValue) -> AnyValue:
    """The pattern."""
    return aten.t.default(x)


REPLACEMENTS: dict[str, Callable[[AnyValue], AnyValue]] = {
    "the same": lambda x: aten.permute.default(x, [1, 0]),
    "other strides": lambda x: aten.clone.default(aten.t.default(x)),
    "another dtype": lambda x: aten.t.default(aten.to.dtype(x, torch.float64)),
    "another shape": lambda x: aten.permute.default(x, [0, 1]),
    "another size": lambda x: aten.t.default(aten.cat.default([x, x])),
    "the input": lambda x: x,
}


def program(x: AnyValue) -> AnyValue:
    """What is rewritten: `alone` does not depend on what is replaced."""
    alone = torch.sigmoid(x)
    first, second = torch.max(torch.relu(torch.relu(x).t()) + 1, 0)
    return first * 2, second.sum(), alone


def captured(mode: TracingMode = "fake") -> fx.GraphModule:
    """Its graph, with notes."""
    return make_fx(program, tracing_mode=mode)(X)


def noted(gm: fx.GraphModule) -> dict[str, dict[str, AnyValue]]:
    """What each node has noted, as far as it can be compared."""
    return {
        node.name: {
            key: described(node.meta[key]) for key in KINDS if key in node.meta
        }
        for node in gm.graph.nodes
    }


def true_notes(gm: fx.GraphModule) -> dict[str, dict[str, AnyValue]]:
    """What each node would note if the graph ran now."""
    fresh = copy.deepcopy(gm)
    for node in fresh.graph.nodes:
        node.meta = {}
    ShapeProp(fresh).propagate(X.clone())
    with_data = noted(fresh)
    FakeTensorProp(fresh).propagate(X.clone())
    return {
        name: {**with_data[name], **noted(fresh)[name]} for name in with_data
    }


def untrue(gm: fx.GraphModule) -> list[str]:
    """The notes that do not hold."""
    true = true_notes(gm)
    return [
        f"{name}: {key} is {true[name][key]} and not {said}"
        for name, notes in noted(gm).items()
        for key, said in notes.items()
        if true[name][key] != said
    ]


@pytest.mark.parametrize("options", [{}, {"carry_meta": True}])
@pytest.mark.parametrize("name", REPLACEMENTS)
@pytest.mark.parametrize("mode", ["fake", "real"])
def test_notes_are_true_or_not_there(
    name: str, options: AnyValue, mode: TracingMode
) -> None:
    gm = captured(mode)
    before = noted(gm)
    assert len(fx.replace_pattern(gm, t, REPLACEMENTS[name], **options)) == 1
    assert untrue(gm) == []
    for kept in ("sigmoid", "relu", "x_1"):
        assert noted(gm)[kept] == before[kept] != {}


@pytest.mark.parametrize("name", REPLACEMENTS)
@pytest.mark.parametrize("mode", ["fake", "real"])
def test_notes_are_found_anew_on_request(name: str, mode: TracingMode) -> None:
    gm = captured(mode)
    before = {node.name: node.meta.get("val") for node in gm.graph.nodes}
    fx.replace_pattern(gm, t, REPLACEMENTS[name], recompute_meta=True)
    assert untrue(gm) == []
    for node in gm.graph.nodes:
        assert node.op == "output" or "val" in node.meta, node
    if name == "the same":
        after = {node.name: node.meta.get("val") for node in gm.graph.nodes}
        for kept in before.keys() & after.keys():
            assert after[kept] is before[kept], "its inputs are as they were"


class Net(nn.Module):
    """Modules with state, one of which counts its calls."""

    def __init__(self) -> None:
        """Make them."""
        super().__init__()
        self.linear, self.norm = nn.Linear(3, 3), nn.BatchNorm1d(3)
        self.count: AnyValue = Counts()
        self.shift = nn.Buffer(torch.ones(3))

    def forward(self, x: AnyValue) -> AnyValue:
        """Run it."""
        y = self.norm(torch.relu(self.linear(x)) + self.shift)
        return self.count(y.add_(1)).t(), y.shape[0], {"twice": (y, y)}


class Counts(nn.Module):
    """Puts a new tensor in the place of an attribute in each call."""

    def __init__(self) -> None:
        """Begin with none."""
        super().__init__()
        self.calls: AnyValue = torch.zeros(())

    def forward(self, x: AnyValue) -> AnyValue:
        """Count and return."""
        self.calls = self.calls + 1
        return x * self.calls.to(x.dtype)


def net() -> fx.GraphModule:
    """The graph of a Net, in which `count` is one call."""

    class Tracer(fx.Tracer):
        """Keeps it a leaf."""

        def is_leaf_module(self, m: nn.Module, qualname: str) -> bool:
            """Whether it is one."""
            return isinstance(m, Counts) or super().is_leaf_module(m, qualname)

    root = Net()
    return fx.GraphModule(root, Tracer().trace(root))


@pytest.mark.parametrize(
    "new",
    [
        lambda x: torch.sigmoid(x),
        lambda x: torch.relu(x).double().float(),
        lambda x: torch.cat([x, x]),
        lambda x: x,
        lambda x: x.add_(1),
        lambda x: x.detach(),
    ],
)
def test_notes_of_shape_prop(new: Callable[[AnyValue], AnyValue]) -> None:
    gm = net()
    ShapeProp(gm).propagate(X.clone())
    state = copy.deepcopy(gm.state_dict())
    calls = gm.get_submodule("count").calls
    fx.replace_pattern(gm, lambda x: torch.relu(x), new, recompute_meta=True)
    assert gm.get_submodule("count").calls is calls
    for name, value in gm.state_dict().items():
        assert torch.equal(value, state[name]), name
    after = [(str(n), n.meta.get("tensor_meta")) for n in gm.graph.nodes]
    ShapeProp(gm).propagate(X.clone())
    assert after == [
        (str(n), n.meta.get("tensor_meta")) for n in gm.graph.nodes
    ]
    assert untrue(gm) == []


def test_new_modules_and_attributes_are_noted() -> None:
    gm = fx.symbolic_trace(lambda x: torch.relu(x + 1) * 2)
    FakeTensorProp(gm).propagate(X.clone())
    wider = fx.symbolic_trace(Wider())
    fx.replace_pattern(gm, relu_of, wider, recompute_meta=True)
    made: AnyValue = {n.name: n.meta.get("val") for n in gm.graph.nodes}
    assert made["wide"].shape == (2, 3)
    assert type(made["scale"]).__name__ == "FakeTensor"
    assert untrue(gm) == []


def relu_of(x: AnyValue) -> AnyValue:
    """A pattern."""
    return torch.relu(x)


class Wider(nn.Module):
    """A replacement with a module and a parameter."""

    def __init__(self) -> None:
        """Make both."""
        super().__init__()
        self.wide, self.scale = nn.Linear(3, 3), nn.Parameter(torch.ones(3))

    def forward(self, x: AnyValue) -> AnyValue:
        """Run it."""
        return self.wide(x) * self.scale


@pytest.mark.parametrize("recompute", [False, True])
def test_notes_that_a_replacement_brings_are_of_its_own_inputs(
    recompute: bool,
) -> None:
    gm, brought = captured(), make_fx(torch.t)(torch.ones(7, 5))
    fx.replace_pattern(gm, t, brought, recompute_meta=recompute)
    assert untrue(gm) == []
    plain = fx.symbolic_trace(lambda x: torch.ops.aten.t.default(x))
    fx.replace_pattern(plain, t, brought, recompute_meta=recompute)
    assert "val" not in plain.graph.output_node().input_at(0).meta


@pytest.mark.parametrize("recompute", [False, True])
def test_rules(recompute: bool) -> None:
    gm = captured()
    options: AnyValue = {"recompute_meta": recompute}
    rules = [
        Rule(lambda x: aten.relu.default(aten.relu.default(x)), aten_relu),
        Rule(t, lambda x: aten.relu.default(x), options=options),
    ]
    assert rewrite_until_stable(gm, rules) == 3
    assert untrue(gm) == []
    has = ["val" in n.meta for n in gm.graph.nodes if n.op == "call_function"]
    assert all(has) is recompute


def aten_relu(x: AnyValue) -> AnyValue:
    """A replacement."""
    return aten.relu.default(x)


def test_a_value_that_is_replaced_twice() -> None:
    gm = captured()
    rules = [
        Rule(t, lambda x: aten.tanh.default(x)),
        Rule(
            lambda x: aten.tanh.default(x),
            lambda x: aten.permute.default(x, [1, 0]),
        ),
    ]
    rules[1].options["recompute_meta"] = True
    kept = gm.graph.find_nodes(op="call_function", target=aten.sum.default)[0]
    before = kept.meta["val"]
    assert rewrite_until_stable(gm, rules) == 2
    assert kept.meta["val"] is before
    assert untrue(gm) == []


def test_symbolic_sizes_are_found_anew() -> None:
    class Rows(nn.Module):
        """Has one symbolic size."""

        def forward(self, x: AnyValue) -> AnyValue:
            """Run it."""
            return torch.relu(x) * 2, torch.sigmoid(x)

    exported = torch.export.export(
        Rows(), (torch.ones(4, 3),), dynamic_shapes=({0: Dim("n")},)
    )
    gm = fx.from_torch(exported.module())
    x, sigmoid = (
        n.meta["val"] for n in gm.graph.nodes if n.name in ("x", "sigmoid")
    )
    guards = len(x.fake_mode.shape_env.guards)
    fx.replace_pattern(
        gm,
        aten_relu,
        lambda x: aten.cat.default([x, x]),
        recompute_meta=True,
    )
    mul, kept = (
        n.meta["val"] for n in gm.graph.nodes if n.name in ("mul", "sigmoid")
    )
    assert kept is sigmoid
    assert str(mul.shape[0]) == f"2*{x.shape[0]}"
    assert len(x.fake_mode.shape_env.guards) == guards


@fx.wrap
def refuses(x: AnyValue) -> AnyValue:
    """A function that needs data."""
    return x * float(x.sum().item())


@fx.wrap
def nowhere(x: AnyValue) -> AnyValue:
    """A function that fails."""
    raise TypeError("no")


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (lambda x: refuses(x), "refuses was not computed"),
        (lambda x: x.nonzero(), "nonzero was not computed"),
        (lambda x: nowhere(x), "nowhere was not computed (no)"),
    ],
)
def test_what_cannot_be_run_has_no_notes(
    new: Callable[[AnyValue], AnyValue], said: str
) -> None:
    gm = fx.symbolic_trace(lambda x: torch.neg((x + 1).abs()))
    FakeTensorProp(gm).propagate(X.clone())
    with pytest.warns(UserWarning, match="recompute_meta: ") as warned:
        fx.replace_pattern(gm, lambda x: x.abs(), new, recompute_meta=True)
    assert len(warned) == 1
    assert said in str(warned[0].message)
    (last,) = gm.graph.find_nodes(op="call_function", target=torch.neg)
    assert "val" in gm.graph.find_nodes(op="placeholder")[0].meta
    assert "val" not in last.meta


def test_a_call_that_reshapes_its_input_loses_all_notes_but_the_inputs() -> (
    None
):
    gm = fx.symbolic_trace(lambda x: (x.mul_(2), x.add(1)))
    FakeTensorProp(gm).propagate(X.clone())
    fx.replace_pattern(gm, lambda x: x.mul_(2), lambda x: x.t_())
    assert untrue(gm) == []
    assert [n.name for n in gm.graph.nodes if "val" in n.meta] == ["x"]
    gm = fx.symbolic_trace(lambda x: (x.mul_(2), x.add(1)))
    FakeTensorProp(gm).propagate(X.clone())
    fx.replace_pattern(
        gm, lambda x: x.mul_(2), lambda x: x.t_(), recompute_meta=True
    )
    assert untrue(gm) == []
    shapes: AnyValue = {n.name: n.meta.get("val") for n in gm.graph.nodes}
    assert shapes["t_"].shape == (3, 2)


def test_nothing_is_noted_where_nothing_was() -> None:
    gm = fx.symbolic_trace(program)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fx.replace_pattern(
            gm, lambda x: torch.sigmoid(x), torch_tanh, recompute_meta=True
        )
    assert not any("val" in node.meta for node in gm.graph.nodes)


def torch_tanh(x: AnyValue) -> AnyValue:
    """A replacement."""
    return torch.tanh(x)


def test_by_the_rule_of_torch_fx_notes_stay() -> None:
    gm = captured()
    with by_rule("torch"):
        fx.replace_pattern(gm, t, REPLACEMENTS["another dtype"])
    assert len(untrue(gm)) > 3
    gm = captured()
    with by_rule("torch"):
        fx.replace_pattern(
            gm, t, REPLACEMENTS["another dtype"], recompute_meta=True
        )
    assert untrue(gm) == []


@pytest.mark.parametrize("recompute", [False, True])
def test_a_rewrite_that_fails_leaves_the_notes(recompute: bool) -> None:
    gm = captured()
    before = noted(gm)

    def fail(**_: object) -> None:
        raise KeyError

    new = REPLACEMENTS["another dtype"]
    with pytest.raises(KeyError), gm._set_replace_hook(fail):
        fx.replace_pattern(gm, t, new, recompute_meta=recompute)
    assert noted(gm) == before
    gm.recompile = fail  # type: ignore[method-assign, assignment]
    with pytest.raises(KeyError):
        fx.replace_pattern(gm, t, new, recompute_meta=recompute)
    assert noted(gm) == before
