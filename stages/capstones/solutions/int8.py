"""Int8 weights for the linears of a graph, and how far they are off at most.

The scale of an output channel is its largest weight divided by 127, so that
rounding changes no weight by more than half a scale.  A linear computes in
float32, or in float64 for weights of that dtype, and rounds its result to the
dtype of its input at the end: float16 would overflow on the way.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

import torch
from torch import nn
from torch.nn import functional as F

from fx.graph_module import GraphModule
from fx.node import Node
from fx.use_def.values import AnyValue

Key: TypeAlias = tuple[int, torch.Size, tuple[int, ...]]
"""Tells whether two tensors are the same numbers in memory."""

Numbers: TypeAlias = tuple[torch.Tensor, torch.Tensor]
"""An int8 weight, and the scale of each of its rows, as a column."""

LEVELS: Final = 127
"""The largest int8 weight; the smallest is -127."""


class Int8Linear(nn.Module):
    """A linear with an int8 weight.

    Args:
        numbers: its weight.
        bias: its bias, in any dtype.
    """

    weight: torch.Tensor
    scale: torch.Tensor

    def __init__(self, numbers: Numbers, bias: torch.Tensor | None) -> None:
        super().__init__()
        weight, scale = numbers
        self.register_buffer("weight", weight)
        self.register_buffer("scale", scale)
        if isinstance(bias, nn.Parameter):
            self.bias: torch.Tensor | None = bias
        else:
            self.register_buffer("bias", bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply the linear.

        Args:
            x: (…, in), in the dtype that the weight had.
        """
        weight = self.weight.to(self.scale.dtype).mul_(self.scale)
        bias = self.bias
        if x.dtype == weight.dtype:
            return F.linear(x, weight, bias)
        bias = None if bias is None else bias.to(weight.dtype)
        return F.linear(x.to(weight.dtype), weight, bias).to(x.dtype)


class Linear(NamedTuple):
    """A linear of a graph: its node, input, weight and bias.

    The weight and the bias are paths in the module.
    """

    node: Node
    input: Node
    weight: str
    bias: str | None


def quantise(gm: GraphModule) -> GraphModule:
    """A copy of a module whose linears have int8 weights.

    Args:
        gm: stays as it is; what is not quantised is shared with the result.
    """
    graph = copy.deepcopy(gm.graph)
    linears = [one for node in graph.nodes if (one := _linear(gm, node))]
    others = _storages_elsewhere(gm, linears)
    held: dict[str, AnyValue] = {}
    made: dict[Key, Numbers] = {}
    for node, given, path, bias in linears:
        weight = _fetched(gm, path)
        if weight.untyped_storage().data_ptr() in others:
            continue
        key = weight.data_ptr(), weight.shape, weight.stride()
        numbers = made.get(key) or _rounded(weight)
        made[key] = numbers
        if node.op == "call_function":
            node.op, node.target = "call_module", f"int8_{node.name}"
            node.args, node.kwargs = (given,), {}
        held[str(node.target)] = Int8Linear(
            numbers, None if bias is None else _fetched(gm, bias)
        )
    for node in graph.find_nodes(op="get_attr"):
        if not node.users:
            graph.erase_node(node)
    for node in graph.nodes:
        if node.op in ("get_attr", "call_module"):
            path = str(node.target)
            if path not in held:
                held[path] = _fetched(gm, path)
    small = GraphModule(held, graph, type(gm).__name__)
    small.training = gm.training
    return small


def bound(small: GraphModule, name: str, x: torch.Tensor) -> torch.Tensor:
    """How far each element of a linear's result may be from the true one.

    Half a scale for each weight, and the rounding of the floating point: a
    sum of n products is off by n roundings of the sum of their sizes.

    Args:
        small: what `quantise` returned.
        name: of the linear's node.
        x: the linear's input.
    """
    (node,) = [n for n in small.graph.nodes if n.name == name]
    linear = small.get_submodule(str(node.target))
    assert isinstance(linear, Int8Linear)
    scale, bias = linear.scale.double(), linear.bias
    size = x.detach().double().abs()
    sizes = F.linear(size, (linear.weight * scale).abs())
    sizes += 0 if bias is None else bias.detach().double().abs()
    own, last = torch.finfo(linear.scale.dtype), torch.finfo(x.dtype)
    steps = (linear.weight.shape[1] + 4) * own.eps / 2
    steps += 0 if own.dtype == last.dtype else last.eps
    rounding = steps * sizes + last.smallest_normal * last.eps
    half = (0.5 + LEVELS * own.eps) * scale[:, 0]
    return size.sum(-1, keepdim=True) * half + rounding


def _fetched(gm: GraphModule, path: str) -> AnyValue:
    """A tensor or a module, by its path."""
    return operator.attrgetter(path)(gm)


def _rounded(weight: torch.Tensor) -> Numbers:
    """A weight in int8."""
    weight = weight.detach()
    if weight.dtype != torch.float64:
        weight = weight.float()
    scale = weight.abs().amax(1, keepdim=True) / LEVELS
    whole = (weight / torch.where(scale > 0, scale, 1)).round()
    return whole.clamp(-LEVELS, LEVELS).to(torch.int8), scale


def _linear(gm: GraphModule, node: Node) -> Linear | None:
    """A node as a linear, if its weight and bias are tensors of the module."""
    if node.op == "call_module":
        path = str(node.target)
        module = gm.get_submodule(path)
        if type(module) is not nn.Linear or _has_hooks(module):
            return None
        has_bias = "bias" in dict(module.named_parameters())
        bias = f"{path}.bias" if has_bias else None
        return Linear(node, node.all_input_nodes[0], f"{path}.weight", bias)
    if node.op != "call_function" or node.target is not F.linear:
        return None
    given: dict[str, AnyValue] = {"bias": None, **node.kwargs}
    given |= zip(("input", "weight", "bias"), node.args, strict=False)
    weight, bias = given["weight"], given["bias"]
    used = [one for one in (weight, bias) if one is not None]
    if any(one.op != "get_attr" for one in used):
        return None
    name = None if bias is None else bias.target
    return Linear(node, given["input"], weight.target, name)


def _has_hooks(module: nn.Module) -> bool:
    """Whether a call of the module, or its gradient, runs more than forward."""
    return any(
        getattr(module, f"_{kind}_hooks")
        for kind in ("forward", "forward_pre", "backward", "backward_pre")
    )


def _storages_elsewhere(gm: GraphModule, linears: list[Linear]) -> set[int]:
    """The storages of the tensors that something but a linear's weight uses."""
    known = {one.node.name: one for one in linears}
    found: list[torch.Tensor] = []
    for node in gm.graph.nodes:
        if node.op == "call_module" and node.name not in known:
            found += _tensors(gm.get_submodule(str(node.target)))
        elif node.op == "get_attr":
            for user in node.users:
                one = known.get(user.name)
                uses = [*user.args, *user.kwargs.values()].count(node)
                if one is None or one.weight != node.target or uses > 1:
                    found += _tensors(_fetched(gm, str(node.target)))
    return {one.untyped_storage().data_ptr() for one in found}


def _tensors(value: AnyValue) -> Iterator[torch.Tensor]:
    """The tensors of a module, or a tensor itself."""
    if isinstance(value, nn.Module):
        yield from value.parameters()
        yield from value.buffers()
    elif isinstance(value, torch.Tensor):
        yield value
