"""Using fx: a pass that a type checker reads, without ignores."""

from __future__ import annotations

from typing import assert_never

import torch

import fx
from stages.residual import Residual


def describe(node: fx.Node) -> str:
    """A node in words; a checker sees that no opcode is forgotten."""
    match node.op:
        case "placeholder":
            return f"takes {node.target}"
        case "get_attr" | "call_module":
            return f"uses self.{node.target}"
        case "call_method" | "call_function":
            return f"computes {node.name} from {node.input_at(0).name}"
        case "output":
            return f"returns {node.input_at(0).name}"
        case _:
            assert_never(node.op)


def relu_by_hand(node: fx.Node) -> None:
    """Write an operation out, with proxies in the place of tensors."""
    with node.graph.inserting_before(node):
        x = fx.Proxy(node.input_at(0))
        result = torch.where(x > 0, x, 0.0)
    assert isinstance(result, fx.Proxy)
    node.replace_all_uses_with(result.node)
    node.graph.erase_node(node)


def main() -> None:
    """Describe Residual, and write its relu out."""
    gm = fx.symbolic_trace(Residual())
    for node in gm.graph.nodes:
        print(describe(node))
    for node in gm.graph.find_nodes(op="call_function", target=torch.relu):
        relu_by_hand(node)
    gm.graph.lint()
    gm.recompile()
    print(gm.code.strip())
