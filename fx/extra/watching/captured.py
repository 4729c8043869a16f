"""Extra: tensors that a trace meets without a proxy.

A buffer, a tensor of a closure, and one that forward makes itself, such as
`torch.zeros(2)`, are real tensors while a trace runs.  What the code does with
them alone is done at once, and the graph has the result.  A call that has a
proxy, too, is recorded, and the tensor is fetched by a get_attr node:

    t = torch.zeros(2)     # done, once
    t.add_(x)              # recorded: the graph writes into its constant
    return t * 2           # done while tracing, before any write: zeros

So a recorded write into such a tensor comes too late for what the trace reads
from it, and it is still there at the graph's next call.  A write that is done
while tracing comes too early for what was recorded before it.  And that the
code puts another tensor in the place of a buffer is not recorded.  The trace
warns.

To record the later reads too would need a look at every call of torch, also at
those without a proxy, and each trace would pay for it.  A tensor that forward
makes would still be one for all calls of the graph, where eager has a new one
in each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import torch
from torch import nn

from ...node import Node
from ...recording import frames
from ...tracing.state import STORED, State
from ...use_def.values import AnyValue
from ..captured_writes import Fetched, warn_of_writes
from .changes import StateChange, warn_of_changes

_PLAIN: Final = (torch.Tensor, nn.Parameter)
"""Exact types of the tensors that are watched for writes: lazy parameters
refuse questions, and subclasses may answer anything."""

_STORED: Final = re.compile(
    rf"^({'|'.join(STORED.values())}|_\w+_constant_)\d+$"
)
"""Names of attributes that traces, of other threads too, set on a root."""


class Captured:
    """The tensors that a trace met without a proxy, and those of its root.

    torch counts the writes into each tensor for autograd, so its `_version`
    shows a write that no proxy saw, such as `self.count += 1`.  A tensor that
    forward makes is counted from the node that fetches it, because what is
    written earlier is right.
    """

    def __init__(self, state: State) -> None:
        """Begin a trace with what its root holds."""
        self._nodes: Fetched = []
        self._before: list[tuple[str, torch.Tensor, int]] = [
            (path, tensor, tensor._version)  # noqa: SLF001
            for path, tensor in state.named()
            if type(tensor) in _PLAIN and not tensor.is_inference()
        ]

    def note(self, node: Node, value: AnyValue) -> None:
        """Note a get_attr node of `value`, and the user's line.

        When the trace has ended, the user's frames are gone.
        """
        if type(value) is torch.Tensor and not value.is_inference():
            version: int = value._version  # noqa: SLF001
            self._before.append((str(node.target), value, version))
        self._nodes.append((node, frames.user_line()))

    def warn(self, root: nn.Module, changed: Iterable[StateChange]) -> None:
        """Warn of writes, when the trace has ended.

        Args:
            root: what was traced, for the modules that are called.
            changed: what its modules hold that they did not.

        Cost: O(users of the nodes + tensors of the root).
        """
        written = dict.fromkeys(
            path
            for path, tensor, version in self._before
            if tensor._version != version  # noqa: SLF001
        )
        if written:
            frames.warn(
                f"the code wrote to {', '.join(written)} while it was traced, "
                "with nothing of an input: that was done once, and the graph "
                "does not do it again. Set proxy_buffer_attributes on the "
                "tracer, or move the code into a leaf module. A tensor that "
                "forward makes (a _tensor_constant) can be made of an input: "
                "torch.zeros_like(x), x.new_ones(…)"
            )
        warn_of_changes(
            [change for change in changed if not _STORED.search(change.path)],
            "Move the code into a leaf module, or write into a buffer (copy_) "
            "and set proxy_buffer_attributes on the tracer",
        )
        warn_of_writes(self._nodes, root)
