"""Extra: functions that a program hands to torch, recorded as modules.

    checkpoint(block, x)    →    checkpoint(self._traced0, x, weight)
    torch.vmap(row)(x)      →    vmap = torch.vmap(self._traced0, (0, None))
                                 call = vmap(x, y)

What such a function does has a graph of its own.  Tensors and sizes that it has
from outside become inputs of it: they are lifted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import torch

from ...graph import Graph
from ...graph_module import GraphModule
from ...node import Node
from ...usedef.values import Argument, Value
from .structures import Apart

if TYPE_CHECKING:
    from .recorder import ExampleTracer


class Submodule:
    """A function that is being recorded as a module.

    Attributes:
        graph: what it does.
        lifted: node outside → the placeholder for it.
    """

    def __init__(self, tracer: ExampleTracer) -> None:
        """Begin: what the tracer records from now on is in the new graph."""
        self._tracer = tracer
        self._outer = tracer.graph, tracer.inner, dict(tracer.node_by_id)
        self.graph = tracer.graph = Graph(tracer_cls=tracer.graph._tracer_cls)
        tracer.inner = self
        self.lifted: dict[Node, Node] = {}
        self._last: Node | None = None

    def end(self) -> None:
        """Record into the outer graph again."""
        tracer = self._tracer
        tracer.graph, tracer.inner, tracer.node_by_id = self._outer

    def placeholder(self, name: str) -> Node:
        """A new input, behind those that there are."""
        with (
            self.graph.inserting_after(self._last)
            if self._last
            else self.graph.inserting_before(None)
        ):
            self._last = made = self.graph.placeholder(name)
        made.target = made.name
        return made

    def lift(self, node: Node) -> Node:
        """The node itself, or the placeholder for one from outside."""
        if node.graph is self.graph:
            return node
        if self._outer[1] is not None:
            node = self._outer[1].lift(node)
        if node not in self.lifted:
            made = self.placeholder(node.name)
            made.meta.update(node.meta)
            self.lifted[node] = made
        return self.lifted[node]

    def returns(self, result: Value) -> list[torch.Tensor]:
        """Let the graph return the tensors in a result.

        Returns:
            These tensors.
        """
        apart = Apart()
        apart.take(result)
        leaves = [x for x in apart.leaves if isinstance(x, torch.Tensor)]
        nodes = [self._tracer.create_arg(leaf) for leaf in leaves]
        single = isinstance(result, torch.Tensor)
        value: Argument = nodes[0] if single else tuple(nodes)
        self._tracer.create_node("output", "output", (value,), {})
        return leaves

    def take_in(self, outside: list[Node]) -> None:
        """Let exactly these nodes be lifted, in this order."""
        self._last = None
        placeholders = [n for n in self.graph.nodes if n.op == "placeholder"]
        by_outer = {**self.lifted}
        for node in outside:
            if node not in by_outer:
                self.placeholder(node.name)
                continue
            kept = by_outer[node]
            first = next(iter(self.graph.nodes))
            if self._last is not None:
                self._last.append(kept)
            elif first is not kept:
                first.prepend(kept)
            self._last = kept
        assert len(placeholders) <= len(outside)

    def stored(self) -> Node:
        """A node, outside, that fetches the module."""
        tracer = self._tracer
        for node in reversed(self.graph.nodes):
            if not node.users and node in tracer.erasable:
                self.graph.erase_node(node)
        with tracer.showing(lambda value: value):
            module = GraphModule(tracer.root, self.graph)
        path = tracer.store("_traced", module)
        return tracer.create_node("get_attr", path, (), {})


CHECKPOINT_OPTIONS: Final = frozenset(
    "use_reentrant context_fn determinism_check debug early_stop "
    "preserve_rng_state".split()
)
"""The keywords of `checkpoint` that are not for the function."""


def flat_dims(dims: Value, value: Value) -> list[Value]:
    """The dimension that vmap takes away, for each tensor in its inputs.

    Args:
        dims: as the user gave them.
        value: the inputs, or a part of them.
    """
    if isinstance(value, torch.Tensor):
        return [dims]
    if isinstance(value, dict):
        value = [*value.values()]
        dims = [*dims.values()] if isinstance(dims, dict) else dims
    if not isinstance(value, tuple | list):
        return []
    each = dims if isinstance(dims, tuple | list) else [dims] * len(value)
    pairs = zip(each, value, strict=True)
    return [dim for pair in pairs for dim in flat_dims(*pair)]
