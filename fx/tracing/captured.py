"""Stage 04, module patching: tensors that the code has without a proxy.

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
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import ClassVar, Final, NamedTuple, TypeAlias

import torch
from torch import nn

from ..node import Node
from ..recording import frames
from ..usedef.dotted_path import MISSING
from ..usedef.values import Value
from .entered import note_mode, warn_of_hooks
from .patching import names_of, put
from .state import STORED, Held, State, inside
from .wrapping import find_proxy

_PLAIN: Final = (torch.Tensor, nn.Parameter)
"""Exact types of the tensors that are watched for writes: lazy parameters
refuse questions, and subclasses may answer anything."""

Fetched: TypeAlias = list[tuple[Node, tuple[str, int]]]
"""The get_attr nodes of captured tensors, each with the user's line."""


class Captured:
    """The tensors that a trace met without a proxy, and those of its root.

    Attributes:
        warn_of_writes: warns of recorded writes into such tensors.  The plain
            default does not look for them; `import fx` puts one here that
            knows which calls write.
        read_training: the modules whose `training` the code has read.
    """

    warn_of_writes: ClassVar[Callable[[Fetched, nn.Module], None]] = (
        staticmethod(lambda nodes, root: None)
    )

    def __init__(self) -> None:
        """Begin without any."""
        self._nodes: Fetched = []
        self._before: list[tuple[str, torch.Tensor, int]] = []
        self._held: list[Held] = []
        self._entered: dict[nn.Module, str] = {}
        self.read_training: set[nn.Module] = set()
        self._paths: Mapping[nn.Module, str] = {}

    def begin(self, state: State) -> None:
        """Begin a trace with what its root holds."""
        self._nodes.clear()
        self._held = state.held
        self._paths = state.modules
        self._before = [
            (path, tensor, tensor._version)  # noqa: SLF001
            for path, tensor in state.named()
            if type(tensor) in _PLAIN and not tensor.is_inference()
        ]

    def end(self) -> None:
        """End a trace: the root has again what it had where it got proxies."""
        for change in changes(self._held):
            if _holds_proxy(change.value):
                change.undo()
        self._nodes.clear()
        self._before.clear()
        self._held = []
        self._entered.clear()
        self.read_training.clear()
        self._paths = {}

    def enter(self, module: nn.Module) -> None:
        """Note that a module is traced into, and warn of its hooks."""
        if module not in self._entered:
            path = self._paths.get(module, type(module).__name__)
            self._entered[module] = path
            warn_of_hooks(module, path)

    def note(self, node: Node, value: Value) -> Node:
        """Note a get_attr node of `value`, and the line; return the node."""
        if type(value) is torch.Tensor and not value.is_inference():
            version: int = value._version  # noqa: SLF001
            self._before.append((str(node.target), value, version))
        self._nodes.append((node, frames.user_line()))
        return node

    def warn(self, output: Node, root: nn.Module) -> None:
        """Warn of writes, and note fixed modes, when the trace has ended.

        Args:
            output: the output node of the graph.
            root: what was traced, for the modules that are called.

        Cost: O(users of the nodes + tensors of the root).
        """
        note_mode(output, root, self._paths, self.read_training)
        changed = dict.fromkeys(
            path
            for path, tensor, version in self._before
            if tensor._version != version  # noqa: SLF001
        )
        if changed:
            frames.warn(
                f"the code wrote to {', '.join(changed)} while it was traced, "
                "with nothing of an input: that was done once, and the graph "
                "does not do it again. Set proxy_buffer_attributes on the "
                "tracer, or move the code into a leaf module. A tensor that "
                "forward makes (a _tensor_constant) can be made of an input: "
                "torch.zeros_like(x), x.new_ones(…)"
            )
        warn_of_changes(
            [
                one
                for one in changes(self._held)
                if not _STORED.search(one.path)
            ],
            "Move the code into a leaf module, or write into a buffer (copy_) "
            "and set proxy_buffer_attributes on the tracer",
        )
        Captured.warn_of_writes(self._nodes, root)


class Change(NamedTuple):
    """A value that is not what it was when the trace began.

    Attributes:
        path: of the attribute, list or dict that has it.
        value: what is there now; None if it was removed.
        undo: makes it what it was.
    """

    path: str
    value: Value
    undo: Callable[[], None]


_STORED: Final = re.compile(
    rf"^({'|'.join(STORED.values())}|_\w+_constant_)\d+$"
)
"""Names of attributes that traces, of other threads too, set on a root."""


def changes(held: list[Held]) -> Iterator[Change]:
    """The changes of what is held: those of a list are told as one.

    Cost: O(values held), but all of it is done in C.
    """
    for path, now, before in held:
        if not isinstance(before, dict):
            is_set = isinstance(before, set)
            same = len(now) == len(before) and (
                now == before if is_set else all(map(operator.is_, now, before))
            )
            if not same:
                yield Change(path, [*now], partial(_refill, now, before))
            continue
        has = names_of(now)
        if len(has) != len(before) or any(
            map(operator.is_not, has.values(), before.values())
        ):
            names = dict.fromkeys((*before, *has))
            for name in names:
                old, new = before.get(name, MISSING), has.get(name, MISSING)
                if old is not new and not _is_pythons(now, name):
                    is_module = not path or path.endswith(".")
                    where = f"{path}{name}" if is_module else path
                    value = None if new is MISSING else new
                    yield Change(where, value, partial(put, now, name, old))


def _holds_proxy(value: Value) -> bool:
    """Whether there is a proxy in a value, or in objects and sets there."""
    items = [
        item
        for _, now in inside("", value, set())
        for item in (now.values() if isinstance(now, dict) else now)
    ]
    return find_proxy(value, *items) is not None


def _is_pythons(holder: Value, name: Value) -> bool:
    """Whether it is an attribute of a class that is not the user's."""
    return isinstance(holder, type) and name[:2] == "__"


def _refill(values: Value, before: Value) -> None:
    """Let a list, set or deque have the items that it had."""
    values.clear()
    add = values.update if isinstance(before, set) else values.extend
    add(before)


def warn_of_changes(found: Iterable[Change], advice: str) -> None:
    """Warn of what is not what it was, if there is such."""
    paths = dict.fromkeys(change.path for change in found)
    if paths:
        frames.warn(
            f"the code put another value in the place of {', '.join(paths)} "
            "while it was traced, and the graph does not do that when it "
            f"runs. {advice}"
        )
