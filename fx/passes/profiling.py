"""Stage 06, interpreter: Profiler, which measures time and memory of each node.

It is also the shortest example of an interpreter with a purpose: it overrides
`run_node` to watch the graph run.

A record keeps the size of a value and not the value, which would change the
memory that is measured; a view counts in full.  On an accelerator the times are
those of the launch.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import torch

from ..interpreter import Interpreter
from ..node import Node
from ..torch_private.pytree import pytree
from ..use_def.values import AnyValue

__all__ = ["Profiler", "Record"]


class Record(NamedTuple):
    """What was measured at one node.

    Attributes:
        node: the node.
        seconds: how long it ran.
        bytes: the size of the tensors it made, views counted in full.
        shape: the shape of its value, if that is one tensor.
    """

    node: Node
    seconds: float
    bytes: int
    shape: tuple[int, ...] | None


class Profiler(Interpreter):
    """Records time and output bytes of each node.

    profiler = Profiler(gm)
    profiler.run(x)
    print(profiler.table())
    """

    records: list[Record]

    def run(self, *args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        """Run the graph; the records of an earlier run are dropped."""
        self.records = []
        return super().run(*args, **kwargs)

    def run_node(self, n: Node) -> AnyValue:
        """Run one node and measure it."""
        start = time.perf_counter()
        result = super().run_node(n)
        seconds = time.perf_counter() - start
        size = sum(
            leaf.numel() * leaf.element_size()
            for leaf in pytree.tree_leaves(result)
            if isinstance(leaf, torch.Tensor)
        )
        is_tensor = isinstance(result, torch.Tensor)
        shape = tuple(result.shape) if is_tensor else None
        self.records.append(Record(n, seconds, size, shape))
        return result

    def table(self, most: int | None = None) -> str:
        """The records as text, the slowest first.

        Args:
            most: how many rows to show; all by default.
        """
        total = sum(record.seconds for record in self.records) or 1.0
        rows = [f"{'node':30} {'op':14} {'ms':>9} {'%':>6} {'KiB':>10}  shape"]
        slowest = sorted(self.records, key=lambda r: r.seconds, reverse=True)
        for node, seconds, size, shape in slowest[:most]:
            rows.append(
                f"{node.name[:30]:30} {node.op:14} {seconds * 1e3:9.3f} "
                f"{100 * seconds / total:6.1f} {size / 1024:10.1f}  "
                f"{'' if shape is None else list(shape)}"
            )
        return "\n".join(rows)
