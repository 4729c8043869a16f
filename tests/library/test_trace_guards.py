"""The guards of a trace are a node, and go wherever nodes go."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from torch import nn

import fx
from fx.experimental import const_fold
from fx.experimental.optimization import fuse
from fx.passes.dialect.common.cse_pass import CSEPass
from fx.passes.reinplace import reinplace
from fx.passes.split_module import split_module
from fx.use_def.values import AnyValue

X = torch.arange(6.0).reshape(2, 3)


class Small(nn.Module):
    """A convolution, a norm, a constant, equal calls, a write in place."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Ask for a size."""
        z = self.norm(self.conv(x)) if x.shape[0] > 1 else self.conv(x)
        fixed = self.weight * 2 + 1
        return torch.relu(z + z.relu() + z.relu() + fixed.sum())


def parts(gm: AnyValue, root: nn.Module) -> AnyValue:
    """In two parts, the second after the norm."""
    late = {"relu", "add_1", "add_2", "add_3", "relu_1", "relu_2"}
    return split_module(gm, root, lambda n: int(n.name in late))


def merged(gm: AnyValue) -> AnyValue:
    """Equal calls merged."""
    done = CSEPass()(gm)
    assert done is not None
    return done.graph_module


PASSES: list[AnyValue] = [
    lambda gm, root, x: fuse(gm),
    lambda gm, root, x: merged(gm),
    lambda gm, root, x: const_fold.split_const_subgraphs(gm),
    lambda gm, root, x: reinplace(gm, x),
    lambda gm, root, x: parts(gm, root),
    lambda gm, root, x: fx.symbolic_trace(gm),
]


@pytest.mark.parametrize("change", PASSES)
def test_passes_keep_guards_and_do_what_they_do_without(
    change: AnyValue,
) -> None:
    root, x = Small().eval(), torch.randn(2, 3, 5, 5)
    gm = fx.trace(root, x)
    bare = fx.trace(root, x)
    (node,) = bare.graph.find_nodes(op="call_module", target="_guards")
    bare.graph.erase_node(node)
    bare.recompile()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made, without = change(gm, root, x), change(bare, root, x)
    torch.testing.assert_close(made(x), root(x))
    assert len(made.graph.nodes) - len(without.graph.nodes) in (0, 1)
    with pytest.raises(fx.GuardError):
        made(x[:1])


def test_signatures_are_edited() -> None:
    gm = fx.trace(lambda x, flag=True, y=None: x + 1, X, y=X + 1)
    _, y = gm.graph.find_nodes(op="placeholder")
    gm.graph.erase_node(y)
    with gm.graph.inserting_before(gm.graph.find_nodes(op="call_module")[0]):
        scale = gm.graph.placeholder("scale", default_value=1.0)
    (add,) = (n for n in gm.graph.nodes if n.op == "call_function")
    add.update_arg(1, scale)
    gm.graph.lint()
    gm.recompile()
    assert "def forward(self, x, flag = True, *, scale = 1.0):" in gm.code
    assert torch.equal(gm(X, scale=3), X + 3)
    assert torch.equal(fx.Interpreter(gm).run(X), X + 1)
    assert "y.dim() is 2" in repr(gm.guards)
    with pytest.raises(fx.GuardError, match="it was True"):
        gm(X, False)
    with pytest.raises(fx.GuardError, match=r"x\.dim\(\)"):
        gm(X[0])


def test_an_input_that_is_compared_with_another_is_not_erased() -> None:
    gm = fx.trace(
        lambda x, y: x + 1 if x.shape[0] == y.shape[0] else x, X, X + 1
    )
    with pytest.raises(RuntimeError, match="still had 1 users"):
        gm.graph.erase_node(gm.graph.find_nodes(op="placeholder")[1])


def test_placeholders_of_nested_inputs_stay_in_order() -> None:
    gm = fx.trace(lambda x, more: x - more[0], X, [X + 1])
    first, last = gm.graph.find_nodes(op="placeholder")
    first.prepend(last)
    for act in (
        gm.graph.lint,
        gm.recompile,
        lambda: fx.Interpreter(gm).run(X, [X + 1]),
    ):
        with pytest.raises(RuntimeError, match="have to be the first"):
            act()
    gm.graph.set_codegen(fx.CodeGen())
    gm.graph.lint()
    gm.recompile()
    assert torch.equal(gm(more_0=X, x=X * 3), X * 2)


class Two(NamedTuple):
    """Two results."""

    a: AnyValue
    b: AnyValue


def test_outputs_are_set() -> None:
    gm = fx.trace(lambda x: Two(x + 1, x * 2), X)
    output = gm.graph.output_node()
    a, b = output.all_input_nodes
    output.args = ((a, b, a),)
    for act in (gm.graph.lint, gm.recompile, lambda: fx.Interpreter(gm).run(X)):
        with pytest.raises(RuntimeError, match="set_outputs"):
            act()
    fx.set_outputs(gm.graph, {"two": Two(b, a), "k": 3})
    gm.recompile()
    got = gm(X)
    assert isinstance(got["two"], Two)
    assert got["k"] == 3
    assert torch.equal(got["two"].a, X * 2)
    with pytest.raises(fx.GuardError):
        gm(X.double())


def test_an_option_that_is_left_out_is_not_the_traced_one() -> None:
    gm = fx.trace(lambda x, flag=True: x if flag else x + 1, X, flag=False)
    acts: list[Callable[[], AnyValue]] = [
        lambda: fx.Interpreter(gm).run(x=X),
        lambda: fx.Interpreter(gm).boxed_run([X]),
        lambda: fx.Interpreter(gm).run(X),
    ]
    for act in acts:
        with pytest.raises(fx.GuardError, match="flag"):
            act()
    assert torch.equal(fx.Interpreter(gm).run(X, False), X + 1)


def test_a_traced_pattern_and_replacement() -> None:
    gm = fx.trace(lambda x, y: torch.relu(x * y), X, X + 1)
    pattern = fx.trace(lambda x, y: x * y, X, X + 1)
    given = torch.ones(2)
    other = fx.trace(
        lambda x, y: x - y if x.dim() == 1 else x, given, given + 1
    )
    assert len(fx.replace_pattern(gm, pattern, other)) == 1
    with pytest.raises(fx.GuardError, match=r"x\.dim\(\)"):
        gm(X, X + 1)  # which is what the replacement relied on


@pytest.mark.filterwarnings("ignore")
def test_a_trace_is_compiled_whole_and_exported() -> None:
    gm = fx.trace(lambda x: {"y": x + 1 if x.shape[0] > 1 else x}, X)
    ways: list[Callable[..., AnyValue]] = [
        torch.compile(gm, backend="eager", fullgraph=True),
        torch.export.export(gm, (X,), strict=False).module(),
    ]
    for way in ways:
        assert torch.equal(way(X)["y"], X + 1)


def test_guards_are_asked_before_sizes_that_an_input_may_not_have() -> None:
    gm = fx.trace(lambda x: x.new_ones(x.shape[1]), X)
    assert [node.name for node in gm.graph.nodes][:2] == ["x", "_guards"]
    with pytest.raises(fx.GuardError, match="dim"):
        gm(torch.ones(3))


def test_compiled_graph_takes_other_sizes_and_refuses_other_constants() -> None:
    def program(x: AnyValue, more: AnyValue, k: int = 2) -> AnyValue:
        return x * more["y"] * k

    x, y = torch.ones(3, 2), torch.ones(3, 2)
    gm = fx.trace(program, x, {"y": y}, 2)
    fast = torch.compile(gm, backend="eager", dynamic=None)
    for count in (3, 5, 6, 1):
        x, y = torch.full((count, 2), 3.0), torch.ones(count, 2)
        assert torch.equal(fast(x, {"y": y}, 2), x * 2)
    with pytest.raises(fx.GuardError, match=r"k is not .* it was 2, and is 3"):
        fast(x, {"y": y}, 3)
    assert torch.equal(fast(x, {"y": y}), x * 2)
    with pytest.raises(fx.GuardError, match=r"more\['y'\]|x.size"):
        fast(x, {"y": torch.ones(4, 2)})


class InBlocks(nn.Module):
    """Asks in blocks for a dtype that a parameter decides."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3, 3))

    def forward(self, x: torch.Tensor) -> AnyValue:
        """In four blocks."""
        autocast = torch.autocast("cpu", dtype=torch.bfloat16)
        no_grad = torch.no_grad()
        with torch.inference_mode(), autocast, no_grad, torch.enable_grad():
            scaled = x * self.weight
            is_float = scaled.dtype == torch.float32
            return torch.linalg.cholesky(scaled if is_float else x)


class Around(nn.Module):
    """Calls a traced module in a block of its own."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> AnyValue:
        """Without gradients."""
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.half):
            return self.inner(x)


def test_an_error_ends_the_blocks_that_it_was_in() -> None:
    def modes() -> list[object]:
        nesting = torch.autocast_increment_nesting()
        torch.autocast_decrement_nesting()
        asked = torch.is_grad_enabled, torch.is_inference_mode_enabled
        return [ask() for ask in asked] + [
            nesting,
            torch.is_autocast_enabled("cpu"),
            torch.get_autocast_dtype("cpu"),
        ]

    inner = fx.trace(InBlocks(), torch.eye(3))
    outer = fx.trace(Around(inner), torch.eye(3), leaves=["inner"])
    before = modes()
    for gm in (inner, outer):
        for x in (-torch.eye(3), torch.eye(3).double()):
            with pytest.raises(RuntimeError):
                gm(x)
            assert modes() == before
    inner.double()
    for gm in (inner, outer):
        with pytest.raises(fx.GuardError, match="dtype"):
            gm(torch.eye(3))
        assert modes() == before
