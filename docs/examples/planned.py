"""Where each result lies in the one buffer of a memory plan."""

from __future__ import annotations

import torch
from torch import Tensor

from docs.machinery.film import Choices, Row
from fx.experimental.proxy_tensor import make_fx
from stages.capstones.solutions.memory import ALIGNMENT, lives, plan


def program(x: Tensor) -> Tensor:
    """Results of 64 and 128 bytes; one of them is used late."""
    first = x + 1
    wide = torch.cat([first, x])
    second = wide.relu()[:16] * 2
    return first + second


def choices() -> Choices:
    """A row for each node, a column for 64 bytes, a letter for a block."""
    x = torch.ones(16)
    gm = make_fx(program)(x)
    offsets, blocks = plan(gm, x), lives(gm, x)
    end = max(offsets[one.node] + one.size for one in blocks) // ALIGNMENT
    rows = []
    for place, node in enumerate(gm.graph.nodes):
        buffer = ["·"] * end
        for letter, one in zip("ABCDEFGH", blocks, strict=False):
            if one.first <= place <= one.last:
                start = offsets[one.node] // ALIGNMENT
                size = one.size // ALIGNMENT
                buffer[start : start + size] = letter * size
        made = [one.size for one in blocks if one.node is node]
        note = f"allocates {made[0]} bytes" if made else ""
        rows.append(Row(node.name, " ".join(buffer), note))
    asked = Choices("Which program?")
    asked.option("plan").shot("The buffer while each node runs", rows)
    return asked
