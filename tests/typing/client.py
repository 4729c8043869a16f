"""A program that uses fx: strictly typed, with no ignore and no cast.

It is ordinary use of the library, not a list of tricks: test_typing.py runs
it, and has mypy and pyright read it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import assert_never

import torch
from torch import Tensor, nn
from torch.nn import functional

import fx


class Gate(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(x)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.gate = Gate()
        self.scale = nn.Parameter(torch.full((4,), 2.0))

    def forward(self, x: Tensor) -> Tensor:
        gated: Tensor = self.gate(self.linear(x))
        return torch.relu(gated.neg()) + self.scale


class GateTracer(fx.Tracer):
    """Keeps each Gate as one node, and notes the classes it has called."""

    def __init__(self) -> None:
        super().__init__()
        self.called: Counter[str] = Counter()

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        leaf = super().is_leaf_module(m, module_qualified_name)
        return leaf or isinstance(m, Gate)

    def call_module(
        self,
        m: nn.Module,
        forward: Callable[..., object],
        args: tuple[object, ...],
        kwargs: dict[str, object],
    ) -> object:
        self.called[type(m).__name__] += 1
        return super().call_module(m, forward, args, kwargs)


class Described(fx.GraphModule):
    """Says in words what it does."""

    def __init__(self, tracer: GateTracer, net: nn.Module) -> None:
        super().__init__(net, tracer.trace(net), "Described")
        self.called = tracer.called

    def lines(self) -> list[str]:
        return [describe(node) for node in self.graph.nodes]


def describe(node: fx.Node) -> str:
    match node.op:
        case "placeholder":
            return f"take {node.target}"
        case "get_attr" | "call_module":
            return f"{node.name} is self.{node.target}"
        case "call_method":
            return f"{node.name} is {node.input_at(0).name}.{node.target}"
        case "call_function":
            return f"{node.name} is a call, used by {len(node.users)}"
        case "output":
            return f"return {node.input_at(0).name}"
        case _:
            assert_never(node.op)


def use_gelu(node: fx.Node) -> fx.Node:
    """Edit with nodes: a call of gelu in place of `node`."""
    x = node.input_at(0)
    x.meta["before"] = node.name
    with node.graph.inserting_after(x):
        gelu = node.graph.call_function(functional.gelu, (x,))
    node.replace_all_uses_with(gelu)
    node.graph.erase_node(node)
    return gelu


def use_softplus(node: fx.Node) -> fx.Node:
    """Edit with proxies: log(1 + e^x), written out, in place of `node`."""
    with node.graph.inserting_before(node):
        x = fx.Proxy(node.input_at(0))
        small = torch.log(1 + torch.exp(x)) * 1.0
        result = torch.where(x > 20.0, x - 0, small)
    assert isinstance(result, fx.Proxy)
    node.replace_all_uses_with(result.node)
    node.graph.erase_node(node)
    return result.node


def main() -> tuple[list[str], Counter[str], float]:
    torch.manual_seed(0)
    net, x = Net(), torch.ones(2, 4)
    module = Described(GateTracer(), net)
    for node in module.graph.find_nodes(
        op="call_function", target=torch.relu
    ):
        use_softplus(use_gelu(node))
    module.graph.lint()
    module.recompile()
    wanted = functional.softplus(net.gate(net.linear(x)).neg()) + net.scale
    difference: Tensor = (module(x) - wanted).abs().max()
    plain = fx.symbolic_trace(lambda x: x + 1)
    assert torch.equal(plain(x), x + 1)
    return module.lines(), module.called, difference.item()


if __name__ == "__main__":
    print(main())
