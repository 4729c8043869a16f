"""Stage 02: the edges of Residual, an edit, dead code, the verifier, a copy."""

from __future__ import annotations

import operator

import torch

from fx.graph import Graph
from fx.use_def.lint import last_users, problems


def residual() -> Graph:
    """relu(linear(x) + x), node by node."""
    graph = Graph()
    x = graph.create_node("placeholder", "x")
    linear = graph.create_node("call_module", "linear", (x,))
    add = graph.create_node("call_function", operator.add, (linear, x))
    relu = graph.create_node("call_function", torch.relu, (add,))
    graph.create_node("output", "output", (relu,))
    return graph


def show_edges(graph: Graph) -> None:
    """Print both ends of each edge, and where each value is last used."""
    last = last_users(graph.nodes)
    for node in graph.nodes:
        print(
            f"  {node.name:<7} inputs {node.all_input_nodes!s:<12} "
            f"users {list(node.users)!s:<14} last used by {last.get(node)}"
        )


def lint(graph: Graph) -> None:
    """Print what the verifier finds."""
    found = list(problems(graph))
    print(f"lint finds {len(found)} problems")
    for problem in found:
        print(f"  at {problem.node}: {problem.message.split('!')[0]}")


def main() -> None:
    """Replace relu by gelu, in the steps that every pass takes."""
    graph = residual()
    print(graph)
    show_edges(graph)

    print("\nrelu replaced by gelu:")
    relu = graph.find_nodes(op="call_function", target=torch.relu)[0]
    with graph.inserting_after(relu):
        gelu = graph.call_function(torch.nn.functional.gelu, relu.args)
    changed = relu.replace_all_uses_with(gelu)
    print(f"  changed {changed}, relu has {len(relu.users)} users")
    print(f"  dead code was erased: {graph.eliminate_dead_code()}")
    lint(graph)

    print("\nbroken: gelu moved before the value that it uses")
    gelu.input_at(0).prepend(gelu)
    lint(graph)
    gelu.next.append(gelu)

    copy = Graph()
    copy.output(copy.graph_copy(graph, {}))
    print(f"\nthe repaired graph equals its copy: {str(copy) == str(graph)}")
    print(copy)


if __name__ == "__main__":
    main()
