"""Stage 05: the graph of a module as Python, edited and compiled again."""

from __future__ import annotations

import torch

from fx._symbolic_trace import symbolic_trace
from fx.graph_module import GraphModule
from stages.residual import Residual


def main() -> None:
    """Trace, print the code, edit the graph, recompile, run."""
    torch.manual_seed(0)
    model, x = Residual(), torch.randn(2, 4)
    traced = symbolic_trace(model)
    print("The code that the graph is:", traced.code.strip(), sep="\n")
    print("as eager:", torch.equal(traced(x), model(x)))

    swap_relu_for_gelu(traced)
    print("\nThe graph is edited, the code is not yet:")
    print(traced.graph)
    print("as before:", torch.equal(traced(x), model(x)))

    traced.recompile()
    print("\nAfter recompile:", traced.code.strip(), sep="\n")
    wanted = torch.nn.functional.gelu(model.linear(x) + x)
    print("as before:", torch.equal(traced(x), model(x)))
    print("gelu(linear(x) + x):", torch.equal(traced(x), wanted))


def swap_relu_for_gelu(traced: GraphModule) -> None:
    """Put gelu in the place of each relu."""
    graph = traced.graph
    for node in graph.find_nodes(op="call_function", target=torch.relu):
        with graph.inserting_after(node):
            gelu = graph.call_function(
                torch.nn.functional.gelu, (node.input_at(0),)
            )
        node.replace_all_uses_with(gelu)
        graph.erase_node(node)


if __name__ == "__main__":
    main()
