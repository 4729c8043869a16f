"""What extra puts into the seams, and the stages without it."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator

import pytest
import torch
from torch import nn

import fx
from fx.codegen.emit import Emitter
from fx.extra import registering
from fx.passes.utils.matcher_utils import SubgraphMatcher
from fx.rewriting.patterns import Exact
from fx.tracing.tracer import TraceListener
from fx.use_def.dead_code import TorchsRule
from fx.use_def.values import AnyValue

PLAIN: dict[tuple[type, str], AnyValue] = {
    (fx.Graph, "_dead_code_rule"): TorchsRule(),
    (fx.Proxy, "__hash__"): object.__hash__,
    (fx.CodeGen, "emitter_of"): staticmethod(lambda *_: Emitter),
    (fx.Tracer, "_watching"): TraceListener,
    (SubgraphMatcher, "comparing"): staticmethod(lambda _: Exact()),
}
"""What the stages have in place of some of the methods."""


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The stages as they are before `register`."""
    for (holder, name), default in PLAIN.items():
        monkeypatch.setattr(holder, name, default)
    yield
    monkeypatch.undo()


def test_register_replaces_each(plain: None) -> None:
    before = {place: getattr(*place) for place in PLAIN}
    registering.register()
    assert all(getattr(*place) is not before[place] for place in PLAIN)


class Net(nn.Module):
    """A network whose forward makes a tensor, and writes into it."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run it."""
        made = torch.zeros(4)
        made.add_(x)
        torch.cos(x)  # nobody uses it
        return torch.relu(self.linear(x)) + 1


def _relu(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x)


def _gelu(x: torch.Tensor) -> torch.Tensor:
    return nn.functional.gelu(x)


def rewritten(gm: fx.GraphModule) -> str:
    """The graph's code, when relu is gelu and dead code is gone."""
    fx.replace_pattern(gm, _relu, _gelu)
    gm.graph.eliminate_dead_code()
    gm.graph.lint()
    gm.recompile()
    return gm.code


@pytest.mark.usefixtures("plain")
def test_the_stages_do_their_work_without_it() -> None:
    net, x = Net().eval(), torch.randn(4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nobody looks for writes
        gm = fx.symbolic_trace(net)
    assert torch.equal(gm(x), net(x))
    assert torch.equal(fx.Interpreter(gm).run(x), net(x))
    code = rewritten(gm)
    assert "gelu" in code
    assert "cos" not in code
    assert "add_" not in code  # a method, of which torch.fx knows nothing
    want = nn.functional.gelu(net.linear(x)) + 1
    torch.testing.assert_close(gm(x), want)
    copied = copy.deepcopy(gm)
    assert torch.equal(copied(x), gm(x))
    assert "gelu" in gm.print_readable(print_output=False)


def test_with_it_the_write_is_warned_of_and_stays() -> None:
    with pytest.warns(UserWarning, match="writes into '_tensor_constant0'"):
        gm = fx.symbolic_trace(Net().eval())
    assert "add_" in rewritten(gm)


class Unseen(nn.Module):
    """Does what a trace is watched for, each of it once."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: AnyValue = None
        self.inner = Net()
        self.inner.register_forward_hook(lambda *given: None)

    def forward(self, x: AnyValue, y: AnyValue = None) -> AnyValue:
        """Run it."""
        self.kept = x
        torch.manual_seed(0)
        with torch.no_grad():
            z = self.inner(x)
        if y is None or isinstance(x, torch.Tensor) or x in {1}:
            return z
        return torch.nn.functional.dropout(z, 0.5, self.training)


def traced(root: nn.Module) -> tuple[fx.GraphModule, list[str]]:
    """A trace, and what it warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gm = fx.symbolic_trace(root)
    return gm, [str(one.message) for one in caught]


def test_a_trace_that_nobody_watches_records_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watched, said = traced(Unseen())
    monkeypatch.setattr(fx.Tracer, "_watching", TraceListener)
    monkeypatch.setattr(fx.Proxy, "__hash__", object.__hash__)
    root = Unseen()
    plain, silent = traced(root)
    assert len(said) > 6
    assert silent == []
    assert plain.code == watched.code
    assert "isinstance" not in globals()


def test_an_error_that_nobody_watches_has_no_advice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def loops(x: AnyValue) -> AnyValue:
        return [x for _ in range(x)]

    with pytest.raises(TypeError) as told:
        fx.symbolic_trace(loops)
    assert "while fx traced" in "".join(told.value.__notes__)
    monkeypatch.setattr(fx.Tracer, "_watching", TraceListener)
    with pytest.raises(TypeError) as told:
        fx.symbolic_trace(loops)
    assert not hasattr(told.value, "__notes__")
