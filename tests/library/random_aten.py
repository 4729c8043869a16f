"""Random functional programs of ATen operators, and inputs to run them on.

The numbers are small integers, also where the dtype is a float: then results
are exact, and a wrong one is wrong by more than rounding.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from typing import Any, TypeAlias

import torch

import fx
from fx.node import Node

aten = torch.ops.aten

Tensor: TypeAlias = torch.Tensor
AnyValue: TypeAlias = Any


def random_inputs(seed: int) -> list[Tensor]:
    """One to three tensors of any layout; some share memory."""
    rng = random.Random(seed)
    dtype = rng.choice((torch.float64, torch.float64, torch.int64))
    torch.manual_seed(seed)
    sizes = ((3, 3), (2, 3), (4,), (4,), (2, 2, 3), (1, 3), (1, 2, 2, 2))
    size = rng.choice(sizes)
    first = laid_out(torch.randint(-4, 5, size).to(dtype), rng)
    inputs = [first]
    for _ in range(rng.randrange(3)):
        kind = rng.randrange(7)
        if kind == 1:
            inputs.append(first[0])
        elif kind == 2 and first.dim() == 2:
            inputs.append(first.t())
        elif kind in (0, 3, 5) and first.dim() == 1:
            inputs.append(sparse(first))
        elif kind == 3 and first.dim() == 2:
            to = (first.to_sparse_csr, first.to_sparse_csc)
            inputs.append(rng.choice(to)())
        elif kind in (0, 3):
            inputs.append(first.view_as(first))
        elif kind == 4:
            inputs.append(first.expand(2, *size))
        else:
            other = torch.randint(-4, 5, size).to(dtype)
            inputs.append(laid_out(other, rng))
    if dtype.is_floating_point and rng.random() < 0.25:
        inputs[-1] = inputs[-1].detach().requires_grad_()
    return inputs


def laid_out(tensor: Tensor, rng: random.Random) -> Tensor:
    """A tensor with the same elements, in some layout."""
    match rng.randrange(10):
        case 0 if tensor.dim() == 2:
            return tensor.t().contiguous().t()
        case 1 if tensor.dim() == 4:
            return tensor.contiguous(memory_format=torch.channels_last)
        case 2:  # with gaps between the elements, and not at the start
            wide = torch.stack((tensor, tensor), -1)
            return wide[..., 1]
        case 3:
            return tensor[:1].expand(tensor.shape)
        case 4 if tensor.dim() > 1:
            return tensor.transpose(0, -1).contiguous().transpose(0, -1)
    return tensor


def sparse(values: Tensor) -> Tensor:
    """A sparse vector that shares the memory of its values."""
    places = torch.arange(len(values))[None]
    return torch.sparse_coo_tensor(
        places,
        values,
        (len(values),),
        is_coalesced=True,
        check_invariants=False,
    )


class Builder:
    """Makes a graph and runs it at the same time, to know the shapes."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.graph = fx.Graph()
        self.pool: list[Node] = []
        self.sparse: list[Node] = []
        self.results: list[Node | None] = []
        self.values: dict[Node, Tensor] = {}
        self.inputs: list[Node] = []
        for i, value in enumerate(random_inputs(seed)):
            node = self.keep(self.graph.placeholder(f"x{i}"), value)
            if value.layout is torch.strided:
                self.inputs.append(node)

    def keep(self, node: Node, value: Tensor) -> Node:
        # Kernels for other operators do not always expect a sparse tensor.
        dense = value.layout is torch.strided
        (self.pool if dense else self.sparse).append(node)
        self.values[node] = value
        return node

    def call(
        self, op: AnyValue, *args: AnyValue, **kwargs: AnyValue
    ) -> Node | None:
        """Add a call, unless it fails with these shapes."""

        def value_of(node: Node) -> AnyValue:
            return self.values[node]

        real: AnyValue = fx.map_arg(args, value_of)
        try:
            value = op(*real, **kwargs)
        except (RuntimeError, IndexError, TypeError, ValueError):
            return None
        node = self.graph.call_function(op, args, kwargs)
        if isinstance(value, Tensor):
            return self.keep(node, value)
        self.values[node] = value
        for i in range(len(value)):
            item = self.graph.call_function(operator.getitem, (node, i))
            self.keep(item, value[i])
        return node

    def any(self) -> Node:
        """A value, more likely a late one."""
        if self.rng.random() < 0.5:
            return self.rng.choice(self.pool[-3:])
        return self.rng.choice(self.pool)

    def like(self, node: Node) -> Node:
        """A value of the same size, if there is another; else any."""
        size = self.values[node].shape
        same = [n for n in self.pool if self.values[n].shape == size]
        return self.rng.choice(same) if self.rng.random() < 0.7 else self.any()

    def scalar(self) -> int:
        return self.rng.randrange(-3, 4)

    # -- steps -------------------------------------------------------------

    def pointwise(self, on: Node | None = None) -> Node | None:
        a = self.any() if on is None else on
        choice = self.rng.randrange(12)
        if choice < 3:
            op = self.rng.choice((aten.add, aten.sub, aten.mul))
            if self.rng.random() < 0.3:
                return self.call(op.Tensor, a, self.view(a) or a)
            return self.call(op.Tensor, a, self.like(a))
        if choice < 6:
            op = self.rng.choice((aten.add, aten.mul))
            return self.call(op.Tensor, a, self.scalar())
        if choice == 6:
            return self.call(aten.fill.Scalar, a, self.scalar())
        if choice == 7:
            return self.call(aten.copy.default, a, self.like(a))
        if choice == 8:
            return self.call(aten.remainder.Scalar, a, 7)
        unary = (aten.neg, aten.relu, aten.abs, aten.tril, aten.sgn, aten.zero)
        return self.call(self.rng.choice(unary).default, a)

    def dtypes(self) -> Node | None:
        a = self.any()
        choice = self.rng.randrange(4)
        if choice == 0:
            return self.call(aten.ge.Scalar, a, 0)
        if choice == 1:
            return self.call(aten.logical_not.default, a)
        if choice == 2:
            return self.call(aten.eq.Tensor, a, self.like(a))
        dtype = self.rng.choice((torch.float64, torch.int64, torch.bool))
        return self.call(aten._to_copy.default, a, dtype=dtype)

    def whole(self) -> Node | None:
        """An operator that reads many elements for each that it writes."""
        a = self.any()
        match self.rng.randrange(8):
            case 0:
                return self.call(aten.cumsum.default, a, 0)
            case 1:
                return self.call(aten.sum.dim_IntList, a, [0])
            case 2:
                return self.call(aten.cat.default, [a, self.like(a)])
            case 3:
                return self.call(aten.mm.default, a, self.like(a))
            case 4:
                b = self.like(a)
                return self.call(aten.addmm.default, self.like(a), a, b)
            case 5:
                return self.call(aten.flip.default, a, [0])
            case 6:
                mask = self.call(aten.lt.Scalar, self.like(a), self.scalar())
                return mask and self.call(aten.masked_fill.Scalar, a, mask, 2)
        return self.call(aten.max.dim, a, 0)

    def fresh(self) -> Node | None:
        a = self.any()
        if self.rng.random() < 0.2:
            return self.call(aten.full.default, [3, 3], self.scalar() + 0.0)
        op = self.rng.choice((aten.clone, aten.clone, aten.ones_like))
        new = self.call(op.default, a)
        if new and self.rng.random() < 0.3:
            new = self.call(
                aten.expand.default, new, [2, *self.values[a].shape]
            )
            new = new and self.pointwise(new)
        return new

    def partial_view(
        self, a: Node
    ) -> tuple[AnyValue, AnyValue, tuple[AnyValue, ...]]:
        """A view of a part, the operator that inverts it, and its rest."""
        dims = self.values[a].dim()
        dim = self.rng.randrange(max(dims, 1))
        match self.rng.randrange(4):
            case 0:
                index = self.rng.randrange(-1, 2)
                rest: tuple[AnyValue, ...] = (dim, index)
                return aten.select.int, aten.select_scatter.default, rest
            case 1:
                start, step = self.rng.randrange(2), self.rng.randrange(1, 3)
                rest = (dim, start, self.rng.choice((2, 3, 99)), step)
                return aten.slice.Tensor, aten.slice_scatter.default, rest
            case 2:
                rest = (self.rng.randrange(-1, 2),)
                return (
                    aten.diagonal.default,
                    aten.diagonal_scatter.default,
                    rest,
                )
        offset = self.rng.choice((None, 0, 1))
        rest = ([2], [self.rng.randrange(1, 4)], offset)
        return aten.as_strided.default, aten.as_strided_scatter.default, rest

    def view(self, on: Node | None = None) -> Node | None:
        a = self.any() if on is None else on
        match self.rng.randrange(12):
            case 0:
                return self.call(aten.view.default, a, [-1])
            case 1:
                return self.call(aten.transpose.int, a, 0, -1)
            case 2:
                return self.call(aten.unsqueeze.default, a, 0)
            case 3:
                return self.call(aten.expand.default, a, [2, 3, 3])
            case 4:
                return self.call(aten.split.Tensor, a, 2)
            case 5:
                return self.call(aten.unbind.int, a)
            case 6:
                op = self.rng.choice((aten.alias, aten.detach, aten.squeeze))
                return self.call(op.default, a)
            case 7:
                op = self.rng.choice((aten.reshape, aten._unsafe_view))
                return self.call(op.default, a, [-1])
            case 8:
                return self.call(aten.contiguous.default, a)
        op, _, rest = self.partial_view(a)
        return self.call(op, a, *rest)

    def layout(self) -> Node | None:
        """A sparse tensor on the memory of a value, or a part of one."""
        if self.sparse and self.rng.random() < 0.6:
            a = self.rng.choice(self.sparse)
            ops = (aten.values, aten.values, aten._to_dense, aten.neg)
            return self.call(self.rng.choice(ops).default, a)
        flat = self.call(aten.view.default, self.any(), [-1])
        if flat is None:
            return None
        count = self.values[flat].numel()
        places = self.call(aten.ones.default, [1, count], dtype=torch.int64)
        places = places and self.call(aten.cumsum.default, places, 1)
        return places and self.call(
            aten._sparse_coo_tensor_with_dims_and_tensors.default,
            *(1, 0, [count + 1], places, flat),
            dtype=self.values[flat].dtype,
            layout=torch.sparse_coo,
            is_coalesced=True,
        )

    def scatter(self) -> Node | None:
        """What functionalization makes of a write into a part, or nearly."""
        a = self.any()
        if self.rng.random() < 0.6:
            a = self.call(aten.clone.default, a) or a
        elif self.rng.random() < 0.3:
            size = [2, *self.values[a].shape]
            a = self.call(aten.expand.default, a, size) or a
        view, inverse, rest = self.partial_view(a)
        part = self.call(view, a, *rest)
        if part is None:
            return None
        new = part
        for _ in range(self.rng.choice((1, 1, 1, 2))):
            new = self.pointwise(new) or new
        if self.rng.random() < 0.2:
            new = self.pointwise() or new
        if self.rng.random() < 0.15:
            new = self.like(part)
        if self.rng.random() < 0.15:
            _, inverse, rest = self.partial_view(a)
        result = self.call(inverse, a, new, *rest)
        if self.rng.random() < 0.15:
            other = self.pointwise(part)
            result = other and self.call(inverse, a, other, *rest)
        if result and self.rng.random() < 0.3:
            self.results += [new, result]
        return result

    def update(self) -> Node | None:
        """A write into an input, as functionalization has it."""
        if not self.inputs:
            return None
        x = self.rng.choice(self.inputs)
        new = self.pointwise(x)
        if self.sparse:
            self.results.append(
                self.call(aten._to_dense.default, self.sparse[0])
            )
        return new and self.call(aten.copy_.default, x, new)

    def overwrite(self) -> Node | None:
        """The `copy_` into an input that functionalization ends with."""
        if not self.inputs:
            return None
        x = self.rng.choice(self.inputs)
        return self.call(aten.copy_.default, x, self.like(x))

    def finish(self) -> fx.GraphModule:
        writes = [self.overwrite] * self.rng.choice((0, 0, 1, 2))
        for write in writes:
            if self.rng.random() < 0.8:
                write()
        results = [self.any() for _ in range(self.rng.randrange(1, 4))]
        results += [node for node in self.results if node is not None]
        results += self.sparse[: self.rng.randrange(2)]
        self.graph.output(tuple(results))
        return fx.GraphModule(torch.nn.Module(), self.graph)


def random_program(seed: int) -> fx.GraphModule:
    """A functional program for `random_inputs(seed)`."""
    build = Builder(seed)
    steps: list[Callable[[], Node | None]] = [
        *[build.pointwise] * 5,
        *[build.view] * 3,
        *[build.scatter] * 3,
        build.dtypes,
        build.whole,
        build.layout,
        *([build.update] * 4 if build.sparse else ()),
        *[build.fresh] * 2,
    ]
    for _ in range(build.rng.randrange(2, 10)):
        build.rng.choice(steps)()
        if build.rng.random() < 0.04:
            build.update()
    return build.finish()
