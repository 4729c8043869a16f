"""Extra: warns of recorded writes into tensors that are not proxies.

    t = torch.zeros(2)     # done while tracing, once
    t.add_(x)              # recorded: the graph writes into its constant
    return t * 2           # done while tracing, before any write: zeros

Such a write comes too late for what the trace reads from the tensor, and it is
still there at the graph's next call.  The graph is well formed all the same, so
this is a warning and not an error.  A tensor may be written through a view of
it, so its users are followed as far as they may return one.  To know which
calls write takes the schemas of torch's operators, which the stage of traces
does without.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from types import EllipsisType
from typing import Final, TypeAlias

from torch import nn

from ..node import Node
from ..recording import frames
from ..schemas.facts import facts_of_overloads
from ..torch_private.pytree import pytree
from ..use_def.values import Argument
from .effects import effect_tables as tables
from .effects.effects import is_new, overloads_of
from .effects.modules import returns_new_tensor

Fetched: TypeAlias = list[tuple[Node, tuple[str, int]]]
"""The get_attr nodes of captured tensors, each with the user's line."""

_OF_VIEWS: Final = (int, slice, EllipsisType, type(None))
"""Types in an index that gives a view; one with lists or tensors copies."""

_ADVICE: Final = (
    "a tensor that is not a proxy: what else the code reads from it is its "
    "value while tracing, and the next call of the graph finds what this one "
    "wrote. If forward makes the tensor, make it of an input: "
    "torch.zeros_like(x), x.new_zeros(…). If it is a buffer, set "
    "proxy_buffer_attributes on the tracer"
)


def warn_of_writes(nodes: Fetched, root: nn.Module) -> None:
    """Warn of each captured tensor that a node of the graph writes into.

    Args:
        nodes: those that fetch such tensors.
        root: what was traced, for the modules that are called.

    Cost: O(users of the nodes).
    """
    warned: set[object] = set()
    for node, line in nodes:
        for user, view in _uses(node, root):
            written = pytree.tree_leaves([*_written_by(user, root)])
            if node.target not in warned and view in written:
                warned.add(node.target)
                frames.warn(
                    f"{user} writes into {node.target!r}, {_ADVICE}", line
                )


def _uses(node: Node, root: nn.Module) -> Iterator[tuple[Node, Node]]:
    """The users of a tensor and of its views, each with what it uses."""
    views = [node]
    for view in views:
        for user in view.users:
            yield user, view
            if user.args[:1] == (view,) and _may_return(view, user, root):
                views.append(user)


def _may_return(first: Node, node: Node, root: nn.Module) -> bool:
    """Whether a call may return its first argument, a tensor, or a view.

    `torch.zeros(2).to(x.device)` is recorded, and is the same tensor if that
    is on the device already.
    """
    if node.op == "call_module":
        return not returns_new_tensor(root.get_submodule(str(node.target)))
    if node.target is operator.getitem:
        index = node.args[1]
        parts = index if isinstance(index, tuple) else (index,)
        return all(isinstance(part, _OF_VIEWS) for part in parts)
    # A function that is not torch's is taken to return something new.
    known = node.op == "call_method" or node.target is getattr
    return (known or bool(overloads_of(node))) and not is_new(
        node, {first: True}
    )


def _written_by(node: Node, root: nn.Module) -> Iterator[Argument]:
    """The arguments that a node writes into, as far as its target says.

    A function of the user's that writes is not noticed.
    """
    args, kwargs = node.args, node.kwargs
    if node.op == "call_method":
        name = str(node.target)
        in_place = name.endswith("_") and not name.endswith("__")
        if in_place or name in tables.IN_PLACE_METHODS:
            yield args[:1]
    elif node.op == "call_module":
        if getattr(root.get_submodule(str(node.target)), "inplace", False):
            yield args[:1]
    elif node.op == "call_function":
        yield kwargs.get("out")
        if node.target is setattr or kwargs.get("inplace"):
            yield args[:1]
        for facts in facts_of_overloads(node.target) or ():
            yield [parameter.of(args, kwargs) for parameter in facts.writes]
