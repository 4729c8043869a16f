"""Passes: fuse, remove_dropout and their helpers, beside torch.fx."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
import torch.fx
from torch import nn
from torch.fx.experimental import optimization as theirs

import fx
from fx.experimental import optimization as ours
from fx.linked_list.opcodes import Target
from fx.passes.conv_bn_fusion import fold_conv_bn
from fx.passes.shape_prop import ShapeProp
from fx.use_def.values import AnyValue
from tests.zoo import ZOO, Network, borrow


class Layers(nn.Module):
    """A convolution, norms, a linear layer and dropouts; forward varies."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv = nn.Conv2d(2, 3, 1)
        self.norm, self.other = nn.BatchNorm2d(3), nn.BatchNorm2d(3)
        self.linear, self.flat = nn.Linear(3, 3), nn.BatchNorm1d(3)
        self.drop, self.second = nn.Dropout(0.5), nn.Dropout(0.5, inplace=True)
        self.inner = nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3))
        for module in self.modules():
            if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
                statistics = dict(module.named_buffers())
                nn.init.uniform_(statistics["running_mean"], -1, 1)
                nn.init.uniform_(statistics["running_var"], 0.5, 1.5)
        self.eval()


def layers(forward: Callable[..., AnyValue]) -> AnyValue:
    """Layers with this forward."""
    return type("Model", (Layers,), {"forward": forward})()


X = torch.linspace(-1, 1, 16).view(2, 2, 2, 2)


def norms(module: nn.Module) -> int:
    """How many BatchNorms a module has."""
    kinds = nn.BatchNorm1d | nn.BatchNorm2d
    return sum(isinstance(each, kinds) for each in module.modules())


def fused(model: AnyValue, x: torch.Tensor = X) -> tuple[AnyValue, int]:
    """A model after `fuse`, and how many norms it has left."""
    expected = copy.deepcopy(model)(x.clone())
    found: AnyValue = ours.fuse(model)
    torch.testing.assert_close(model(x.clone()), expected)
    torch.testing.assert_close(found(x.clone()), expected)
    found.graph.lint()
    return found, norms(found)


SMALL = ("resnet18", "mobilenet_v2", "densenet121", "blstm_cnn")


@pytest.mark.parametrize(
    "network",
    [each for each in ZOO if each.name in SMALL],
    ids=lambda one: one.name,
)
def test_networks(network: Network) -> None:
    with borrow(network, training=False) as model, torch.no_grad():
        for name in ("fuse", "remove_dropout"):
            mine = getattr(ours, name)(model)
            beside = getattr(theirs, name)(model)
            nodes = [(n.op, n.target) for n in mine.graph.nodes]
            assert nodes == [(n.op, n.target) for n in beside.graph.nodes]
            assert {*mine.state_dict()} == {*beside.state_dict()}
            inputs = network.inputs()
            torch.testing.assert_close(mine(*inputs), beside(*inputs))


# -- fuse --------------------------------------------------------------------


def test_what_fuse_changes() -> None:
    model = layers(lambda self, x: self.norm(self.conv(x)))
    before = copy.deepcopy(model.state_dict())
    ours.fuse(model)
    torch.testing.assert_close(model.state_dict(), before)
    traced = fx.symbolic_trace(model)
    other = ours.fuse(traced, no_trace=True)
    assert other is not traced and norms(traced) == 1 and norms(other) == 0
    assert ours.fuse(traced, inplace=True) is not traced
    assert ours.fuse(traced, inplace=True, no_trace=True) is traced
    torch.testing.assert_close(traced(X), model(X))


def test_a_layer_that_is_called_twice() -> None:
    def forward(self: AnyValue, x: AnyValue) -> AnyValue:
        return self.norm(self.conv(x)) + self.other(self.conv(x * 2))

    found, left = fused(layers(forward))
    assert left == 0
    once = [n.target for n in found.graph.find_nodes(op="call_module")]
    assert once == ["conv_folded", "conv"]


def test_a_layer_that_is_used_elsewhere_keeps_its_path() -> None:
    def forward(self: AnyValue, x: AnyValue) -> AnyValue:
        return self.norm(self.conv(x)) + self.conv(x) + self.conv.weight.sum()

    found, left = fused(layers(forward))
    assert left == 0
    assert {"conv", "conv_folded"} == {n for n, _ in found.named_children()}


class LeafTracer(fx.Tracer):
    """Records the call of a Sequential, and calls of what is in it."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return True


def test_a_layer_in_a_sequential_that_is_called_as_a_whole() -> None:
    def forward(self: AnyValue, x: AnyValue) -> AnyValue:
        return self.norm(self.inner[0](x)), self.inner(x)

    model = layers(forward)
    expected, held = model(X), [*model.inner]
    gm = fx.GraphModule(model, LeafTracer().trace(model))
    assert fold_conv_bn(gm) == 1
    torch.testing.assert_close(gm(X), expected)
    assert [*model.inner] == held


def test_a_norm_without_weights_stays_behind_a_linear_layer() -> None:
    model = layers(lambda self, x: self.flat(self.linear(x)))
    model.flat.weight = model.flat.bias = None
    gm = fx.symbolic_trace(model)
    x = torch.rand(4, 3)
    ShapeProp(gm).propagate(x)
    assert fold_conv_bn(gm) == 0
    assert torch.equal(gm(x), model(x))


def test_a_weight_that_the_graph_writes() -> None:
    def forward(self: AnyValue, x: AnyValue) -> AnyValue:
        self.conv.weight.data.mul_(0.5)
        return self.norm(self.conv(x)) + self.inner(x)

    model = layers(forward)
    gm = fx.symbolic_trace(model)
    found: AnyValue = ours.fuse(gm, no_trace=True)
    assert norms(found) == 1 and norms(found.inner) == 0
    for _ in range(2):
        torch.testing.assert_close(found(X), gm(X))


@pytest.mark.parametrize("of", ["running_mean", "running_var"])
def test_statistics_that_another_norm_changes(of: str) -> None:
    model = layers(lambda self, x: self.other(self.norm(self.conv(x))))
    setattr(model.norm, of, getattr(model.other, of).view(-1))
    model.other.train()
    gm = fx.symbolic_trace(model)
    found: AnyValue = ours.fuse(gm, inplace=True, no_trace=True)
    assert norms(found) == 2


def test_a_convolution_without_a_batch() -> None:
    norm = nn.BatchNorm1d(3)
    norm.running_mean = torch.rand(3)
    model = nn.Sequential(nn.Conv1d(2, 3, 1), norm).eval()
    gm, x = fx.symbolic_trace(model), torch.rand(2, 3)
    ShapeProp(gm).propagate(x)
    assert norms(ours.fuse(gm, no_trace=True)) == 1
    ShapeProp(gm).propagate(x[None])
    assert norms(ours.fuse(gm, no_trace=True)) == 0


def test_a_norm_along_another_dimension() -> None:
    norm = nn.BatchNorm1d(5)
    norm.running_mean = torch.rand(5)
    model = nn.Sequential(nn.Conv1d(2, 3, 1), norm).eval()
    found, x = ours.fuse(model), torch.rand(2, 5)
    assert norms(found) == 1
    torch.testing.assert_close(found(x), model(x))


def test_a_result_with_another_user() -> None:
    def forward(self: AnyValue, x: AnyValue) -> AnyValue:
        y = self.conv(x)
        return self.norm(y) + y

    assert fused(layers(forward))[1] == 1


def test_a_write_between_the_layer_and_the_norm() -> None:
    def forward(self: AnyValue, x: AnyValue) -> AnyValue:
        y = self.conv(x)
        x.add_(1)
        return self.norm(y) + x.sum()

    assert fused(layers(forward))[1] == 0


def test_norms_that_stay() -> None:
    def forward(self: AnyValue, x: AnyValue) -> AnyValue:
        return self.norm(self.conv(x))

    training = layers(forward)
    training.norm.train()
    assert norms(ours.fuse(training)) == 1
    for kind in ("forward", "forward_pre", "full_backward"):
        for name in ("conv", "norm"):
            hooked: AnyValue = layers(forward)
            seen: list[int] = []
            register = getattr(getattr(hooked, name), f"register_{kind}_hook")
            register(lambda *_, seen=seen: seen.append(1))
            assert fused(hooked)[1] == 1
    own = layers(forward)
    own.norm.forward = torch.neg
    assert fused(own)[1] == 1
    bare = layers(forward)
    bare.norm = nn.BatchNorm2d(3, track_running_stats=False).eval()
    assert fused(bare)[1] == 1


def test_a_linear_layer_needs_a_noted_shape() -> None:
    def forward(self: AnyValue, x: AnyValue) -> AnyValue:
        return self.flat(self.linear(x))

    model = layers(forward)
    assert fused(model, torch.randn(2, 3, 3))[1] == 1
    for shape, left in ((4, 3), 0), ((4, 3, 3), 1):
        gm, x = fx.symbolic_trace(model), torch.randn(shape)
        ShapeProp(gm).propagate(x)
        found: AnyValue = ours.fuse(gm, no_trace=True)
        assert norms(found) == left
        torch.testing.assert_close(found(x), model(x))


def test_folding_in_the_module_itself() -> None:
    model = layers(lambda self, x: self.inner(x))
    gm = fx.symbolic_trace(model)
    assert fold_conv_bn(gm) == 1
    inner: AnyValue = gm.inner
    assert {n for n, _ in inner.named_children()} == {"0"}
    assert len(model.inner) == 2
    torch.testing.assert_close(gm(X), model(X))


# -- remove_dropout ----------------------------------------------------------


def both(self: AnyValue, x: AnyValue) -> AnyValue:
    y = self.drop(x)
    return self.second(y.neg()) + nn.functional.dropout(y, 0.5, self.training)


def test_dropouts_go_even_in_training() -> None:
    model = layers(both)
    expected = model(X)
    found: AnyValue = ours.remove_dropout(model.train())
    beside: AnyValue = theirs.remove_dropout(model.eval())
    names = [node.name for node in beside.graph.nodes]
    again: AnyValue = ours.remove_dropout(model.eval())
    assert [node.name for node in again.graph.nodes] == names
    assert not [*found.graph.find_nodes(op="call_module")]
    assert not [*found.children()]
    functional = nn.functional.dropout
    left = found.graph.find_nodes(op="call_function", target=functional)
    assert len(left) == 1
    torch.testing.assert_close(ours.remove_dropout(model)(X), expected)
    assert model.drop in model.modules()


def test_dropouts_that_stay() -> None:
    class Other(nn.Dropout):
        def forward(self, x: AnyValue) -> AnyValue:
            return x + 1

    model = layers(both)
    model.drop.register_forward_hook(lambda module, args, y: y * 2)
    model.second = Other()
    found: AnyValue = ours.remove_dropout(model)
    assert {n for n, _ in found.named_children()} == {"drop"}
    torch.testing.assert_close(found(X), model(X))


def test_a_dropout_called_by_keyword() -> None:
    model = layers(lambda self, x: self.drop(input=x) * 2)
    assert torch.equal(ours.remove_dropout(model)(X), X * 2)


# -- helpers -----------------------------------------------------------------


def test_helpers_as_in_torch_fx() -> None:
    def forward(self: AnyValue, x: AnyValue) -> AnyValue:
        y = self.norm(self.conv(x))
        return (y + self.conv.weight.sum()).relu() + self.inner(x)

    model, seen = layers(forward), []
    for lib, made in (fx, ours), (torch.fx, theirs):
        gm: AnyValue = lib.symbolic_trace(copy.deepcopy(model))
        modules = dict(gm.named_modules())
        pattern = (nn.Conv2d, nn.BatchNorm2d)
        nodes = {node.name: node for node in gm.graph.nodes}
        found = [
            name
            for name, node in nodes.items()
            if made.matches_module_pattern(pattern, node, modules)
        ]
        new = nn.Identity()
        made.replace_node_module(nodes["inner_1"], modules, new)
        inner = dict(gm.named_modules())["inner.1"]
        assert inner is new and modules["inner.1"] is new
        part = made.extract_subgraph(
            gm,
            [nodes["norm"], nodes["add"], nodes["relu"]],
            [nodes["conv"], nodes["sum_1"]],
            [nodes["relu"], nodes["add"]],
        )
        result = part(torch.ones(1, 3, 2, 2), torch.tensor(2.0))
        seen.append((found, part.code, str(result)))
    assert seen[0] == seen[1]


def test_what_helpers_refuse() -> None:
    gm = fx.symbolic_trace(layers(lambda self, x: self.conv(x).neg().exp()))
    *_, neg, exp, _ = gm.graph.nodes
    with pytest.raises(KeyError):
        ours.extract_subgraph(gm, [exp], [], [exp])
    function = gm.graph.call_function(torch.neg, (exp,))
    with pytest.raises(AssertionError, match="Expected str target"):
        ours.replace_node_module(function, {}, nn.Identity())
    assert not ours.matches_module_pattern((nn.Conv2d,), neg, {})


def test_a_shape_that_a_transformer_has_changed_is_not_believed() -> None:
    class Expands(fx.Transformer):
        def call_module(
            self, target: Target, args: tuple[AnyValue, ...], kwargs: AnyValue
        ) -> AnyValue:
            if target == "linear":
                args = (args[0].expand(5, 3, 3),)
            return super().call_module(target, args, kwargs)

    gm = fx.symbolic_trace(layers(lambda self, x: self.flat(self.linear(x))))
    x = torch.linspace(-1, 1, 9).view(3, 3)
    ShapeProp(gm).propagate(x)
    new = Expands(gm).transform()
    torch.testing.assert_close(ours.fuse(new, no_trace=True)(x), new(x))


def test_a_fold_that_fails_changes_nothing() -> None:
    gm = fx.symbolic_trace(layers(lambda self, x: self.norm(self.conv(x))))
    conv = dict(gm.named_modules())["conv"].train()
    weight = vars(conv)["_parameters"]["weight"]
    vars(conv)["_parameters"]["weight"] = weight * 1  # which has no deep copy
    code = gm.code
    with pytest.raises(RuntimeError, match="deepcopy"):
        fold_conv_bn(gm)
    assert (gm.code, conv.training) == (code, True)
    assert [*dict(gm.named_children())] == ["conv", "norm"]


def test_traces_on_an_example_are_fused() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
            self.drop = nn.Dropout()

        def forward(self, given: dict[str, torch.Tensor]) -> AnyValue:
            return self.drop(self.norm(self.conv(given["x"])))

    net, x = Net().eval(), torch.randn(2, 3, 6, 6)
    gm = fx.trace(net, {"x": x})
    for change in (ours.fuse, ours.remove_dropout):
        new: AnyValue = change(gm)
        calls = [n.name for n in new.graph.find_nodes(op="call_module")]
        assert len(calls) == len([*gm.graph.find_nodes(op="call_module")]) - 1
        torch.testing.assert_close(new({"x": x}), net({"x": x}))
        with pytest.raises(fx.GuardError):
            new({"y": x})
    assert torch.equal(gm({"x": x}), net({"x": x}))
