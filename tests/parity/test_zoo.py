"""Real networks: graph, code and results are those of torch.fx and eager."""

from __future__ import annotations

import pytest
import torch
import torch.fx

import fx
from tests.library.zoo_by_text import BY_TEXT
from tests.parity.harness import plain
from tests.zoo import Network, borrow


@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize("network", BY_TEXT)
@pytest.mark.claims("symbolic-trace", "proxy-transparent")
def test_network(network: Network, training: bool) -> None:
    """Traced by both libraries: the same text; run: what eager gives."""
    inputs = network.inputs()
    with borrow(network, training=training) as model:
        ours = fx.symbolic_trace(model)
        theirs = torch.fx.symbolic_trace(model)
        assert plain(str(ours.graph)) == plain(str(theirs.graph))
        assert plain(ours.code) == plain(theirs.code)
        ours.graph.lint()
    with borrow(network, training=training) as model, torch.no_grad():
        torch.manual_seed(1)
        right = model(*inputs)
    with borrow(network, training=training) as model, torch.no_grad():
        torch.manual_seed(1)
        got = fx.symbolic_trace(model)(*inputs)
    torch.testing.assert_close(got, right, rtol=0, atol=0)
