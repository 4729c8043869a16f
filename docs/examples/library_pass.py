"""Using fx: a pass that puts another operation in the place of one."""

from __future__ import annotations

import torch
from torch.nn import functional

import fx
from stages.residual import Residual


def relu_to_gelu(gm: fx.GraphModule) -> int:
    """Replace each call of torch.relu, in place.

    Returns:
        How many calls were replaced.
    """
    count = 0
    for node in gm.graph.find_nodes(op="call_function", target=torch.relu):
        with gm.graph.inserting_before(node):
            gelu = gm.graph.call_function(functional.gelu, node.args)
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


if __name__ == "__main__":
    main()
