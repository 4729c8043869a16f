"""Stage 04's demo: trace the example, draw the line of leaves elsewhere."""

from __future__ import annotations

import torch
from torch import nn

from fx.tracing.patching import TRACES
from fx.tracing.tracer import Tracer
from fx.tracing.wrapping import wrap
from stages.residual import Residual

wrap("len")


class Scaled(nn.Module):
    """The example, followed by a leaf function and a constant."""

    def __init__(self) -> None:
        super().__init__()
        self.block = Residual()
        self.factor = torch.tensor(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The example's result, scaled by the number of rows.

        Args:
            x: of shape (rows, 4).
        """
        if TRACES.current is not None:
            print(f"    while tracing: {state()}")
        result: torch.Tensor = self.block(x) * self.factor / len(x)
        return result


class Deep(Tracer):
    """A tracer for which no module is a leaf."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Never.

        Args:
            m: the module that is called.
            module_qualified_name: its path.
        """
        return False


_own = vars(nn.Module)["__call__"]


def state() -> str:
    """What is patched at the moment."""
    patched = vars(nn.Module)["__call__"] is not _own
    module = "is replaced" if patched else "is the original"
    leaf = "is replaced" if "len" in globals() else "is the builtin"
    return f"nn.Module.__call__ {module}, len {leaf}"


def main() -> None:
    """Trace three times, and look whether anything stays patched."""
    print("Tracer().trace(Residual()): nn.Linear is a leaf.")
    print(Tracer().trace(Residual()))

    print("\nWith no leaves, nn.Linear is traced through to its parameters:")
    print(Deep().trace(Residual()))

    print("\nSeen from a larger root, with a leaf function and a constant:")
    tracer = Tracer()
    graph = tracer.trace(Scaled())
    print(graph)
    for name in ("block_linear", "add", "mul"):
        path, kind = tracer.node_name_to_scope[name]
        inside = f"in {path}, a {kind.__name__}" if path else "in the root"
        print(f"    {name} arose {inside}")

    print(f"\nAfter the traces: {state()}.")
    print(f"Scaled()(x) is a {type(Scaled()(torch.ones(2, 4))).__name__}.")


if __name__ == "__main__":
    main()
