"""Using fx: which calls of a model take the arithmetic, without running it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import torch
from torch import nn
from torch._subclasses import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode

import fx


class Flops(fx.Interpreter):
    """Counts the floating point operations of each node."""

    def __init__(self, gm: fx.GraphModule) -> None:
        super().__init__(gm)
        self.counted: Counter[fx.Node] = Counter()

    def run_node(self, n: fx.Node) -> object:
        """Run a node, and note what it takes."""
        with FlopCounterMode(display=False) as counter:
            result = super().run_node(n)
        self.counted[n] = counter.get_total_flops()
        return result


def flops(
    model: nn.Module, make_inputs: Callable[[], tuple[torch.Tensor, ...]]
) -> Counter[fx.Node]:
    """The operations of each call, for inputs of a size; nothing is computed.

    A multiplication and an addition count as two.
    """
    gm = fx.symbolic_trace(model)
    with FakeTensorMode(allow_non_fake_inputs=True):
        interpreter = Flops(gm)
        interpreter.run(*make_inputs())
    return interpreter.counted


def main() -> None:
    """Count those of a small network for images."""
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 16 * 16, 10),
    )
    counted = flops(model, lambda: (torch.empty(1, 3, 32, 32),))
    for node, count in counted.most_common(3):
        print(f"{node.target!s:4} {count:>10,}")
    print(f"all  {counted.total():>10,}")


if __name__ == "__main__":
    main()
