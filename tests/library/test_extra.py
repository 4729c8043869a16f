"""What extra puts into the seams, and the stages without it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest
import torch
from torch import nn

import fx
from fx.extra import registering
from fx.passes.utils.matcher_utils import SubgraphMatcher
from fx.rewriting.comparing import exactly
from fx.rewriting.value_notes import Changes, no_run
from fx.saving.code_generators import Kind
from fx.tracing.captured import Captured
from fx.usedef.dead_code import TorchsRule
from fx.usedef.schemas import NoSchemas
from fx.usedef.values import Value

PLAIN: dict[tuple[type, str], Value] = {
    (fx.Graph, "_dead_code_rule"): TorchsRule(),
    (fx.Node, "_schemas"): NoSchemas(),
    (Captured, "warn_of_writes"): staticmethod(lambda nodes, root: None),
    (SubgraphMatcher, "comparing"): staticmethod(exactly),
    (Changes, "run"): staticmethod(no_run),
    (fx.GraphModule, "guards"): property(lambda gm: ()),
    (Kind, "known"): {},
}
"""The seams and their plain defaults."""


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The stages as they are before `register`."""
    for (holder, name), default in PLAIN.items():
        monkeypatch.setattr(holder, name, default)
    yield
    monkeypatch.undo()


def test_the_list_of_seams_is_whole() -> None:
    told = registering.__doc__ or ""
    for holder, name in PLAIN:
        assert f"    {holder.__name__}.{name}" in told
    assert told.count("\n    ") == told.count("\n          ") + len(PLAIN)


def test_register_fills_each_seam(plain: None) -> None:
    before = {seam: getattr(*seam) for seam in PLAIN}
    registering.register()
    assert all(getattr(*seam) is not before[seam] for seam in PLAIN)


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
    for option in ("normalize", "respect_mutations"):
        options: dict[str, Value] = {option: True}
        with pytest.raises(RuntimeError, match=f"{option}=True needs"):
            fx.replace_pattern(gm, _gelu, _relu, **options)
    assert gm.code == code
    with pytest.raises(RuntimeError, match="recompute_meta=True needs"):
        gm.graph.output_node().meta["val"] = x
        fx.replace_pattern(gm, _gelu, _relu, recompute_meta=True)


def test_with_it_the_write_is_warned_of_and_stays() -> None:
    with pytest.warns(UserWarning, match="writes into '_tensor_constant0'"):
        gm = fx.symbolic_trace(Net().eval())
    assert "add_" in rewritten(gm)
