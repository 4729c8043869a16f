"""A program that uses fx, strictly typed: no ignore, no cast, no Any.

It is ordinary use of the library, not a list of tricks.  test_typing.py runs
it and has mypy and pyright read it.
"""

from collections import Counter
from collections.abc import Callable
from typing import assert_never

import torch
from torch import Tensor, nn
from torch.nn import functional

import fx


@fx.wrap
def clip(x: Tensor, limit: float) -> Tensor:
    return x if bool((x < limit).all()) else x.clamp(max=limit)


class Gate(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(x)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = Gate()
        self.scale = nn.Parameter(torch.full((4,), 2.0))

    def forward(self, x: Tensor) -> Tensor:
        gated: Tensor = self.gate(clip(x, 9.0))
        return torch.relu(gated.neg()) + self.scale


class GateTracer(fx.Tracer):
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
            return f"{node.name} is computed, for {len(node.users)}"
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


def use_softplus(node: fx.Node) -> None:
    """Edit with proxies: log(1 + e^x), written out, in place of `node`."""
    with node.graph.inserting_before(node):
        x = fx.Proxy(node.input_at(0))
        small = torch.log(1 + torch.exp(x))
        result = torch.where(x > 20.0, abs(x), small)
    assert isinstance(result, fx.Proxy)
    node.replace_all_uses_with(result.node)
    node.graph.erase_node(node)


def main() -> tuple[list[str], dict[str, int], float]:
    net, x = Net(), torch.linspace(-3.0, 3.0, 8).reshape(2, 4)
    module = Described(GateTracer(), net)
    for relu in module.graph.find_nodes(op="call_function", target=torch.relu):
        use_softplus(use_gelu(relu))
    module.graph.lint()
    module.recompile()
    again: Tensor = fx.symbolic_trace(module)(x)
    wanted = functional.softplus(net.gate(x).neg()) + net.scale
    return module.lines(), module.called, (again - wanted).abs().max().item()


if __name__ == "__main__":
    print(main())
