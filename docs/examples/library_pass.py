"""Using fx: a pass that puts another operation in the place of one."""

from __future__ import annotations

import torch
from torch.nn import functional

import fx
from stages.residual import Residual


def is_relu(gm: fx.GraphModule, node: fx.Node) -> bool:
    """Whether a node calls ReLU as a function, a method or a module."""
    if node.op == "call_module":
        return isinstance(gm.get_submodule(str(node.target)), torch.nn.ReLU)
    relus = torch.relu, functional.relu, "relu"
    return node.op.startswith("call") and node.target in relus


def relu_to_gelu(gm: fx.GraphModule) -> int:
    """Replace each ReLU by GELU, in place; return how many."""
    count = 0
    for node in gm.graph.nodes:
        if is_relu(gm, node):
            with gm.graph.inserting_before(node):
                x = node.all_input_nodes[0]
                gelu = gm.graph.call_function(functional.gelu, (x,))
            node.replace_all_uses_with(gelu)
            gm.graph.erase_node(node)
            count += 1
    gm.graph.lint()
    gm.recompile()
    return count


def main() -> None:
    """Apply the pass to Residual."""
    torch.manual_seed(0)
    module, x = Residual(), torch.randn(2, 4)
    gm = fx.symbolic_trace(module)
    print("replaced:", relu_to_gelu(gm))
    print(gm.code.strip())
    expected = functional.gelu(module.linear(x) + x)
    print("as expected:", torch.equal(gm(x), expected))
