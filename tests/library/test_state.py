"""The walk through a root finds what torch finds, in every kind of module."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import no_type_check

import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm
from torch.nn.utils.prune import l1_unstructured

import fx
from fx.experimental.proxy_tensor import make_fx
from fx.rewriting.snapshot import Snapshot
from fx.tracing.state import State

X = torch.tensor([[1.0, -2.0], [3.0, 0.5]])


def norm() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).eval()


@no_type_check
def of_script_class() -> nn.Module:
    class Scaled(torch.jit.ScriptModule):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(2))
            self.register_buffer("offset", torch.ones(2))

        @torch.jit.script_method
        def forward(self, x):
            return x * self.scale + self.offset

    return Scaled()


def with_nothing() -> nn.Module:
    """A child, a parameter and a buffer that are None."""
    module = nn.BatchNorm1d(2, affine=False, track_running_stats=False)
    module.register_module("child", None)
    return module


def shared() -> nn.Sequential:
    """A child under two names, and a buffer of it in another one."""
    module = norm()
    module.add_module("again", module[1])
    module[0].register_buffer("alias", module[1].get_buffer("running_mean"))
    return module


@no_type_check
def kinds():
    return {
        "plain": norm,
        "scripted": lambda: torch.jit.script(norm()),
        "traced": lambda: torch.jit.trace(norm(), X),
        "of_script_class": of_script_class,
        "graph_module": lambda: fx.symbolic_trace(norm()),
        "with_nothing": with_nothing,
        "shared": shared,
        "exported": lambda: torch.export.export(norm(), (X,)).module(),
        "parametrized": lambda: weight_norm(nn.Linear(2, 2)),
        "pruned": lambda: l1_unstructured(nn.Linear(2, 2), "weight", 0.5),
    }


KINDS: dict[str, Callable[[], nn.Module]] = kinds()


@pytest.fixture(params=KINDS)
def root(request: pytest.FixtureRequest) -> nn.Module:
    class Root(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                self.child: nn.Module = KINDS[request.param]()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = self.child(x).relu()
            return result

    return Root()


def test_the_walk_finds_what_torch_finds(root: nn.Module) -> None:
    state = State(root)
    assert list(state.modules.items()) == [
        (module, path) for path, module in root.named_modules()
    ]
    held = dict([*root.named_parameters(), *root.named_buffers()])
    found = {
        path: tensor
        for path, tensor in state.tensors.values()
        if tensor is not None
    }
    assert found.keys() == held.keys()
    assert all(found[path] is held[path] for path in held)


@pytest.mark.filterwarnings("ignore:the code put another value in the place")
def test_it_is_traced_and_captured(root: nn.Module) -> None:
    for gm in (fx.symbolic_trace(root), make_fx(root)(X)):
        assert torch.equal(gm(X), root(X))


def test_what_is_not_used_is_deleted(root: nn.Module) -> None:
    graph = fx.Graph()
    graph.output(graph.call_module("child", (graph.placeholder("x"),)))
    gm = fx.GraphModule(root, graph)
    gm.add_module("unused", nn.ReLU())
    gm.delete_all_unused_submodules()
    assert [name for name, _ in gm.named_children()] == ["child"]
    assert torch.equal(gm(X).relu(), root(X))


def test_a_rewrite_beside_it_is_carried_out(root: nn.Module) -> None:
    graph = fx.Graph()
    called = graph.call_module("child", (graph.placeholder("x"),))
    graph.output(graph.call_function(torch.relu, (called,)))
    gm = fx.GraphModule(root, graph)
    before = dict(gm.named_modules())
    with pytest.raises(ValueError, match="no replacement"), Snapshot(gm):
        gm.add_module("new", nn.ReLU())
        raise ValueError("no replacement")
    assert dict(gm.named_modules()) == before
    assert fx.replace_pattern(
        gm, lambda x: torch.relu(x), lambda x: x.clamp(min=0)
    )
    assert torch.equal(gm(X), root(X))


def test_what_is_not_saved_is_forgotten_with_its_buffer() -> None:
    gm = fx.symbolic_trace(nn.Linear(2, 2))
    with pytest.raises(ValueError, match="no"), Snapshot(gm):
        gm.register_buffer("passing", torch.ones(1), persistent=False)
        raise ValueError("no")
    assert not gm._non_persistent_buffers_set


def test_each_tensor_has_one_name() -> None:
    """A registered one, where a plain attribute has the tensor too."""
    root = norm()
    root.alias = root[1].running_mean
    root.other = torch.ones(2)
    named = State(root).named()
    assert len({id(tensor) for _, tensor in named}) == len(named)
    paths = [path for path, _ in named]
    assert "1.running_mean" in paths
    assert "alias" not in paths
    assert "other" in paths
