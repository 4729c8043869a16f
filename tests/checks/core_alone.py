"""Two networks through all stages, whatever else fx has or has not.

    python -m tests.checks.core_alone

traces, prints, compiles, runs, interprets, rewrites, captures and reinplaces
them.  The test beside this file runs it with an fx of the stages alone.
"""

from __future__ import annotations

import re
import warnings
from typing import Any, TypeAlias

import torch
from torch import nn
from torch.testing import assert_close

import fx
from fx.experimental.proxy_tensor import make_fx
from fx.passes.reinplace import reinplace
from fx.passes.shape_prop import ShapeProp
from tests.zoo import ZOO, Inputs, Network, borrow

NETWORKS = ("resnet18", "bert_base")

AnyValue: TypeAlias = Any
"""What a network takes or gives."""


def _added(x: AnyValue, y: AnyValue) -> AnyValue:
    x += y
    return x


def _sum(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.add(x, y)


def _plus(x: AnyValue, y: AnyValue) -> AnyValue:
    return x + y


def work(network: Network, module: nn.Module) -> None:
    """Do all that the stages can."""
    inputs = network.inputs()
    expected: AnyValue = module(*inputs)
    gm = fx.symbolic_trace(module)
    for run in (gm, fx.Interpreter(gm).run, fx.Transformer(gm).transform()):
        assert_close(run(*inputs), expected)
    ShapeProp(gm).propagate(*inputs)
    gm.graph.lint()
    assert "_tensor_constant" not in str(gm.graph)
    print(network.name, len(gm.graph.nodes), "nodes")
    print(" ", _rewritten(gm), "sums rewritten")
    assert_close(gm(*inputs), expected, rtol=1e-4, atol=1e-4)
    with torch.no_grad():
        _capture(module, inputs, expected)


def _rewritten(gm: fx.GraphModule) -> int:
    """Write sums as calls of `torch.add`; how many there were."""
    found = [fx.replace_pattern(gm, one, _sum) for one in (_added, _plus)]
    gm.graph.eliminate_dead_code()
    gm.graph.lint()
    gm.recompile()
    return sum(map(len, found))


def _capture(module: nn.Module, inputs: Inputs, expected: AnyValue) -> None:
    """To ATen, and then in place."""
    captured = make_fx(module)(*inputs)
    assert_close(captured(*inputs), expected)
    in_place: AnyValue = reinplace(captured, *inputs)
    assert_close(in_place(*inputs), expected)
    print(" ", len(re.findall(r"\w_\.\w+\(", in_place.code)), "calls write")


def main() -> None:
    """Do the work for each network; a warning is an error."""
    print(fx.__file__)
    warnings.simplefilter("error")
    for network in ZOO:
        if network.name in NETWORKS:
            with borrow(network, training=False) as module:
                work(network, module)


if __name__ == "__main__":
    main()
