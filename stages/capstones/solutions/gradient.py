"""Reverse-mode differentiation: a graph that computes another's gradient.

The new graph is a copy of the old one, and behind it the derivative of each
node in reverse order.  `_RULES` has, for each operator, what it adds to the
gradients of its operands.  Nodes that no input leads to are left out, and so
is a factor of one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, cast

import torch

from fx.graph import Graph
from fx.graph_module import GraphModule
from fx.node import Node
from fx.passes.shape_prop import ShapeProp
from fx.proxy import Proxy
from fx.use_def.values import AnyValue

Operand: TypeAlias = AnyValue
"""A Proxy, or a number."""

Rule: TypeAlias = Callable[..., Sequence[Operand]]
"""(gradient, result, operands) -> what it adds to that of each operand."""


def gradient(gm: GraphModule, *inputs: torch.Tensor) -> GraphModule:
    """A module that returns the gradient of `gm` by each of its inputs.

    Args:
        gm: returns a tensor without dimensions.
        *inputs: what the result will be called with, or tensors of the same
            shapes.
    """
    ShapeProp(gm).propagate(*inputs)
    graph = Graph()
    copies: dict[Node, Node] = {}
    graph.graph_copy(gm.graph, copies)
    old = [node for node in gm.graph.nodes if node.op != "output"]
    places = [node for node in old if node.op == "placeholder"]
    active = set(places)
    for node in old:
        if not active.isdisjoint(node.all_input_nodes):
            active.add(node)
    grads: dict[Node, Operand] = {gm.graph.output_node().input_at(0): 1.0}
    for node in reversed(old):
        if node in grads and node.op == "call_function":
            for arg, grad in _parts(node, grads[node], copies):
                if arg in active:
                    known = grads.get(arg)
                    grads[arg] = grad if known is None else known + grad
    found = [_full(grads.get(node, 0.0), copies[node]) for node in places]
    graph.output(tuple(found))
    graph.eliminate_dead_code()
    return GraphModule(gm, graph)


def _parts(
    node: Node, grad: Operand, copies: dict[Node, Node]
) -> list[tuple[Node, Operand]]:
    """What a node adds to the gradients of its operands."""
    operands = [
        Proxy(copies[a]) if isinstance(a, Node) else a for a in node.args
    ]
    if node.target is torch.sum:
        return [(node.input_at(0), _summed(node, grad))]
    if node.target is torch.transpose:
        back = grad
        if isinstance(grad, Proxy):
            back = torch.transpose(grad, *operands[1:])
        return [(node.input_at(0), back)]
    product = node.target in (operator.matmul, torch.matmul)
    if product or any(
        _shape(arg) != _shape(node) for arg in node.all_input_nodes
    ):
        grad = _tensor(grad, copies[node])  # a number would broadcast anew
    rule = _RULES[node.target]
    parts = rule(grad, Proxy(copies[node]), *operands)
    return [
        (arg, _narrowed(part, node, arg))
        for arg, part in zip(node.args, parts, strict=False)
        if isinstance(arg, Node)
    ]


def _summed(node: Node, grad: Operand) -> Operand:
    """The gradient of the operand of a sum."""
    if not isinstance(grad, Proxy):
        return grad
    dim: AnyValue = (
        node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
    )
    keep = node.args[2] if len(node.args) > 2 else node.kwargs.get("keepdim")
    if dim is not None and not keep:
        grad = torch.unsqueeze(grad, dim)
    return grad.expand(_shape(node.input_at(0)))


def _narrowed(part: Operand, node: Node, arg: Node) -> Operand:
    """A gradient summed over the dimensions that were broadcast."""
    wide, shape = _shape(node), _shape(arg)
    if node.target in (operator.matmul, torch.matmul):
        wide = (*wide[:-2], *shape[-2:])
    if not isinstance(part, Proxy) or wide == shape:
        return part
    lead = len(wide) - len(shape)
    sizes = [1] * lead + [*shape]
    dims = [i for i, n in enumerate(wide) if sizes[i] == 1 and n != 1]
    if dims:
        part = torch.sum(part, dims, True)
    return part.reshape(shape) if lead else part


def _shape(node: Node) -> tuple[int, ...]:
    """The shape of a node's value."""
    return tuple(node.meta["tensor_meta"].shape)


def _full(grad: Operand, copy: Node) -> Node:
    """The node of a gradient; a number becomes a tensor of the right shape."""
    return cast("Proxy", _tensor(grad, copy)).node


def _tensor(grad: Operand, copy: Node) -> Operand:
    """A gradient that is a number as a tensor like the value it is of."""
    if isinstance(grad, Proxy):
        return grad
    return torch.full_like(Proxy(copy), grad)


def _matmul(
    g: Operand, y: Operand, a: Operand, b: Operand
) -> Sequence[Operand]:
    """The rule of a product of matrices."""
    return g @ b.transpose(-1, -2), a.transpose(-1, -2) @ g


def _times(g: Operand, factor: Operand) -> Operand:
    """A product, of which a factor of one is left out."""
    return factor if not isinstance(g, Proxy) and g == 1 else g * factor


_RULES: Final[dict[object, Rule]] = {
    operator.add: lambda g, y, a, b: (g, g),
    operator.sub: lambda g, y, a, b: (g, -g),
    operator.mul: lambda g, y, a, b: (_times(g, b), _times(g, a)),
    operator.truediv: lambda g, y, a, b: (g / b, _times(g, -y / b)),
    operator.neg: lambda g, y, a: (-g,),
    operator.matmul: _matmul,
    torch.exp: lambda g, y, a: (_times(g, y),),
    torch.log: lambda g, y, a: (g / a,),
    torch.tanh: lambda g, y, a: (_times(g, 1 - y * y),),
    torch.sigmoid: lambda g, y, a: (_times(g, y * (1 - y)),),
    torch.relu: lambda g, y, a: (g * (a > 0),),
}
_RULES[torch.matmul] = _matmul
