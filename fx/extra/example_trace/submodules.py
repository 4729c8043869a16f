"""Extra: functions that a program hands to torch, recorded as modules.

    checkpoint(block, x)    →    checkpoint(self._traced0, x, weight)
    torch.vmap(row)(x)      →    vmap = torch.vmap(self._traced0, (0, None))
                                 call = vmap(x, y)

What such a function does has a graph of its own.  Tensors and sizes that it has
from outside become inputs of it: they are lifted.

A checkpointed function runs twice, once more in the backward pass. If the
trace went through it, the graph would give the same values, but would keep all
that it computes. In `torch.vmap`, torch runs the function on tensors that have
one dimension less, and what is recorded meanwhile is about these. The branches
of `torch.cond` must have the same inputs, so each gets placeholders for what
only the other one uses.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Final

import torch
from torch.utils.checkpoint import checkpoint

from ...graph import Graph
from ...graph_module import GraphModule
from ...node import Node
from ...proxy import TraceError
from ...torch_internals import pytree
from ...torch_internals.transforms import VMAP, broadcast_to_and_flatten
from ...tracing.patching import TRACES
from ...usedef.values import Argument, Value
from . import refusals
from .calls import Call, handing_to, places_of
from .structures import is_tensor
from .wholes import Wholes


class Submodule:
    """A function that is being recorded as a module.

    Attributes:
        graph: what it does.
        lifted: node outside → the placeholder for it.
        leaves: the tensors that it has returned.
    """

    def __init__(self, tracer: Wholes) -> None:
        """Begin with an empty graph."""
        self._tracer = tracer
        self._outer = tracer.graph, tracer.inner, {**tracer.node_by_id}
        self.graph: Graph = Graph(tracer_cls=tracer.graph._tracer_cls)
        self.lifted: dict[Node, Node] = {}
        self.leaves: list[torch.Tensor] = []
        self._last: Node | None = None

    def record(self, function: Callable[[], Value]) -> Value:
        """Run a function that is recorded into the graph; its result."""
        tracer = self._tracer
        tracer.graph, tracer.inner = self.graph, self
        try:
            result = function()
            leaves = pytree.tree_leaves(result)
            self.leaves = [leaf for leaf in leaves if is_tensor(leaf)]
            nodes = [*map(tracer.create_arg, self.leaves)]
            value: Argument = nodes[0] if is_tensor(result) else tuple(nodes)
            tracer.create_node("output", "output", (value,), {})
            tracer.erase_unused()
            return result
        finally:
            tracer.graph, tracer.inner, tracer.node_by_id = self._outer

    def placeholder(self, name: str) -> Node:
        """A new input, behind those that there are."""
        graph, last = self.graph, self._last
        with graph.inserting_after(last) if last else graph.inserting_before():
            self._last = new = graph.placeholder(name)
        new.target = new.name
        return new

    def lift(self, node: Node) -> Node:
        """The node itself, or the placeholder for one from outside."""
        if node.graph is self.graph:
            return node
        if self._outer[1] is not None:
            node = self._outer[1].lift(node)
        if node not in self.lifted:
            self.lifted[node] = new = self.placeholder(node.name)
            new.meta.update(node.meta)
        return self.lifted[node]

    def stored(self) -> Node:
        """A node, outside, that fetches the module."""
        with self._tracer.showing(lambda value: value):
            module = GraphModule(self._tracer.root, self.graph)
        return self._tracer.store("_traced", module)


def patch() -> None:
    """Replace the functions of torch that take such functions."""
    handles: dict[Value, Value] = {checkpoint: _checkpoint, torch.cond: _cond}
    for holder, name in places_of(handles):
        TRACES.patch(holder, [name], handing_to(handles[holder[name]]))
    TRACES.patch(*VMAP, handing_to(_vmap))


_OPTIONS: Final = frozenset(
    "use_reentrant context_fn determinism_check debug early_stop "
    "preserve_rng_state".split()
)
"""The keywords of `checkpoint` that are not for the function."""


def _checkpoint(tracer: Wholes, call: Call) -> Value:
    """Record a checkpointed function as a module."""
    given = {**call.kwargs}
    options = {key: given.pop(key) for key in _OPTIONS & given.keys()}
    inner, function = Submodule(tracer), call.args[0]
    result = inner.record(lambda: function(*call.args[1:], **given))
    node = tracer.call(call.function, inner.stored(), *inner.lifted, **options)
    return tracer.bind_leaves(node, result, inner.leaves)


def _cond(tracer: Wholes, call: Call) -> Value:
    """Record the branches of torch.cond as modules."""
    names = "pred", "true_fn", "false_fn", "operands"
    given = {**dict(zip(names, call.args, strict=False)), **call.kwargs}
    operands = given.get("operands", ())
    one, two = Submodule(tracer), Submodule(tracer)
    result = one.record(lambda: given["true_fn"](*operands))
    for node in one.lifted:  # so that both have the same inputs, in one order
        two.lift(node)
    two.record(lambda: given["false_fn"](*operands))
    with tracer.pause():
        if [*map(_kind, one.leaves)] != [*map(_kind, two.leaves)]:
            raise TraceError(refusals.branches())
    for node in two.lifted:
        one.lift(node)
    pred = tracer.create_arg(given["pred"])
    modules = one.stored(), two.stored()
    node = tracer.call(call.function, pred, *modules, tuple(one.lifted))
    return tracer.bind_leaves(node, result, one.leaves)


def _kind(tensor: torch.Tensor) -> tuple[Value, ...]:
    """What two tensors have in common if one may stand for the other."""
    return tensor.dtype, tensor.device, *tensor.shape


def _vmap(tracer: Wholes, call: Call) -> Value:
    """Record a function that torch.vmap calls as a module."""
    function, in_dims, out_dims, randomness, chunk_size, *given = call.args
    dims = _flat_dims(in_dims, tuple(given)) + _flat_dims(0, call.kwargs)
    outside = filter(is_tensor, pytree.tree_leaves((given, call.kwargs)))
    rows = [
        tracer.create_arg(tensor)
        for tensor, dim in zip(outside, dims, strict=True)
        if dim is not None
    ]
    inner = Submodule(tracer)

    def recorded(*args: Value, **kwargs: Value) -> Value:
        before, tracer.paused = tracer.paused, 0
        try:
            inside = filter(is_tensor, pytree.tree_leaves((args, kwargs)))
            for row, dim in zip(inside, dims, strict=True):
                if dim is not None:
                    tracer.bind(inner.placeholder("row"), row)
            return inner.record(lambda: function(*args, **kwargs))
        finally:
            tracer.paused = before

    with tracer.pause():
        result = call.function(recorded, *call.args[1:], **call.kwargs)
    mapped = tracer.call(
        torch.vmap,
        inner.stored(),
        in_dims=(
            *(d for d in dims if d is not None),
            *[None] * len(inner.lifted),
        ),
        out_dims=out_dims,
        randomness=randomness,
        chunk_size=chunk_size,
    )
    node = tracer.call(operator.call, mapped, *rows, *inner.lifted)
    leaves = [leaf for leaf in pytree.tree_leaves(result) if is_tensor(leaf)]
    return tracer.bind_leaves(node, result, leaves)


def _flat_dims(dims: Value, value: Value) -> list[Value]:
    """The dimension that vmap takes away, for each tensor in its inputs.

    Args:
        dims: as the user gave them.
        value: the inputs.
    """
    leaves, spec = pytree.tree_flatten(value)
    spread: Value = broadcast_to_and_flatten(dims, spec)
    pairs = zip(leaves, spread, strict=True)
    return [dim for leaf, dim in pairs if is_tensor(leaf)]
