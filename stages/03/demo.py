"""Stage 03's demo: run the example on a Proxy, and look at what is left."""

from __future__ import annotations

import textwrap

import torch

from fx.graph import Graph
from fx.proxy import GraphAppendingTracer, Proxy, TraceError
from fx.use_def.values import AnyValue
from stages.residual import Residual


class RecordedLinear(torch.nn.Linear):
    """A layer whose call is recorded.

    (A tracer, in stage 04, sees to this for every module.)
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Record a call of the module, if the input is a Proxy."""
        if not isinstance(input, Proxy):
            return super().forward(input)
        return input.tracer.create_proxy("call_module", "linear", (input,), {})


def main() -> None:
    """Record the example by hand, then ask what a graph cannot answer."""
    graph = Graph()
    tracer = GraphAppendingTracer(graph)
    x = tracer.create_proxy("placeholder", "x", (), {})
    print(f"{x} stands for a value that is not computed yet.\n")

    model = Residual()
    model.linear = RecordedLinear(4, 4)
    result: AnyValue = model(x)
    graph.output(tracer.create_arg(result))
    print("Residual()(x), run on that Proxy, leaves this graph:")
    print(graph)

    scratch = Graph()
    y = Proxy(scratch.placeholder("y"))
    attribute: AnyValue = y.shape
    print(f"\ny.shape is an {type(attribute).__name__}: ", end="")
    print(f"{len(scratch.nodes)} node so far, the placeholder.")
    rows, columns = attribute
    _ = 1 - y.view(columns, rows)
    print("rows, columns = y.shape; 1 - y.view(columns, rows) adds:")
    for node in list(scratch.nodes)[1:]:
        print(f"    {node.format_node()}")

    print("\nif y > 0: …")
    try:
        if y > 0:
            print("    never reached")
    except TraceError as error:
        show(error)
    print("for row in y: …")
    try:
        for _row in y:
            print("    never reached")
    except TraceError as error:
        show(error)


def show(error: TraceError) -> None:
    """Print an error, without the path of this file."""
    for line in str(error).splitlines():
        if "File" not in line:
            text = textwrap.fill(line.strip(), 72)
            print(textwrap.indent(text, "    "))


if __name__ == "__main__":
    main()
