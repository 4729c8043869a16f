"""Stage 08, reinplace: a graph of the operators that run, and their tensors.

Operators take tensors and return tensors, and do not say where those come
from.  A `Capture` therefore remembers, for each tensor as long as it lives, the
node whose value it is.  So it can turn the arguments of an operator into nodes,
and the results are known when the next operator takes them.  A tensor that no
node has made existed before the function ran.  It becomes an attribute of the
captured module, and a get_attr node fetches it.
"""

from __future__ import annotations

import functools
import itertools
import operator
import weakref
from collections.abc import Container
from typing import Final, NamedTuple, TypeAlias

import torch
from torch import nn

from ..graph import Graph
from ..node import Node
from ..passes.shape_prop import extract_tensor_metadata
from ..proxy import GraphAppendingTracer, TracerBase
from ..recording import frames
from ..schemas.facts import facts_of
from ..torch_private.dispatch import without_dispatch
from ..torch_private.fake_tensors import (
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    detached,
    unset_fake_temporarily,
)
from ..torch_private.overloads import OpOverload
from ..torch_private.pytree import pytree
from ..tracing.state import STORED
from ..use_def.values import AnyValue, Args, Argument, Kwargs

OwnedTensors: TypeAlias = dict[int, tuple[str, AnyValue]]
"""id of a tensor -> its path in the captured module, and the tensor."""

_PREFIXES: Final[tuple[tuple[type[object], str], ...]] = (
    (nn.Parameter, "_param_constant"),
    *STORED.items(),
)
"""What the names of attributes that the captured module lacked begin with."""

_FETCHED: Final = tuple([kind for kind, _ in _PREFIXES])
"""Types of values that no node can hold, and a get_attr node fetches."""

_LIFT: Final = torch.ops.aten.lift_fresh_copy.default


MAX_ELEMENTS: Final = 1
"""How many elements a constant may have, so that `item()` works; a literal, of
which `tolist()` can be asked, may have 64 times as many."""


class CaptureGuards:
    """Told of each tensor, and asked for numbers; here none is constant.

    Data may leave a tensor without an operator, and a number that Python has
    read is the same in each run of the graph. `make_fx` has `Constants`, which
    refuses the first, and knows which tensors do not depend on the inputs.
    """

    def __init__(self, known: Container[int]) -> None:
        """Begin; `known` has the identities of tensors that nodes have made."""

    def read(self, func: OpOverload, args: Args, kwargs: Kwargs) -> AnyValue:
        """What an operator reads out of tensors, or a RuntimeError."""
        raise value_read(func)

    def fold(
        self, func: OpOverload, args: Args, kwargs: Kwargs, result: AnyValue
    ) -> AnyValue:
        """The result of an operator, if it is the same in each run."""
        return None

    def made(self, tensor: torch.Tensor, node: Node, value: AnyValue) -> None:
        """A tensor is the value of a node; `value` is its constant, or None."""

    def gone(self, key: int) -> None:
        """A tensor of this identity has died."""

    def fetched(self, value: AnyValue) -> None:
        """A value that no node has made becomes an attribute."""

    def varies(self, value: AnyValue) -> bool:
        """Whether a value is the tensor of a node, and not constant."""
        return False

    def clear(self) -> None:
        """The capture has ended."""


class _Known(NamedTuple):
    """The node whose value a tensor is.

    The reference is there for its callback, which forgets a dead tensor.
    """

    node: Node
    reference: weakref.ref[torch.Tensor]


class Capture(GraphAppendingTracer):
    """Records the operators that run into a graph.

    Attributes:
        attributes: the values that get_attr nodes fetch, by path.
        constants: the values of tensors that are the same in each run.
    """

    def __init__(
        self,
        owned: OwnedTensors,
        mode: FakeTensorMode | None = None,
        guards: type[CaptureGuards] = CaptureGuards,
    ) -> None:
        """Begin with an empty graph.

        Args:
            owned: the tensors of the captured module.
            mode: runs the operators without data. If it is None, they compute.
            guards: makes `constants`.
        """
        super().__init__(Graph())
        self.attributes: dict[str, AnyValue] = {}
        self._owned = owned
        self._taken = {path for path, _ in owned.values()}
        self._counts = {prefix: itertools.count() for _, prefix in _PREFIXES}
        self._known: dict[int, _Known] = {}
        self.constants: CaptureGuards = guards(self._known)
        self._mode = mode
        self._fakes = mode or FakeTensorMode(allow_fallback_kernels=True)

    def forget(self) -> None:
        """Drop all references to tensors, when the capture has ended."""
        self._known.clear()
        self.constants.clear()
        for value in self.attributes.values():
            # `backward` without data has left a gradient without data.
            leaf = isinstance(value, torch.Tensor) and value.is_leaf
            if leaf and isinstance(value.grad, FakeTensor):
                value.grad = None

    # -- one operator ------------------------------------------------------

    def run(self, func: OpOverload, args: Args, kwargs: Kwargs) -> AnyValue:
        """Run an operator, add its node, and bind the result to the node.

        An operator that raises leaves no node, nor do its arguments. One that
        reads data, like `item`, makes none either: `Constants.read` answers it.

        Args:
            func: the operator that was called.
            args: its arguments, which are tensors and not nodes.
            kwargs: the same, by name.

        Returns:
            The operator's result. If the result is the same in each run of
            the program, `bind` is told its constant value: that of a small
            tensor literal, and what `constants.fold` computes from constants.

        Raises:
            RuntimeError: it takes a number out of a tensor that is not
                constant; in fake mode, the shape of its result depends on
                data.
        """
        if func is torch.ops.aten.lift_fresh.default:
            # `torch.tensor(…)` makes a new tensor in each run.
            func = _LIFT
        facts = facts_of(func)
        if facts is not None and facts.reads_data:
            return self.constants.read(func, args, kwargs)
        result = self._call(func, args, kwargs)
        node = self.create_node(
            "call_function",
            func,
            tuple([self.create_arg(arg) for arg in args]),
            {key: self.create_arg(arg) for key, arg in kwargs.items()},
            func.overloadpacket.__name__,
        )
        if func is _LIFT:
            constant = copy_of_small(args[0])
        else:
            constant = self.constants.fold(func, args, kwargs, result)
        self.bind(result, node, constant)
        return result

    def _call(self, func: OpOverload, args: Args, kwargs: Kwargs) -> AnyValue:
        """Call an operator; in fake mode without data."""
        if self._mode is None or func is _LIFT:
            return func(*args, **kwargs)
        # A fake mode computes with data if all tensors that it gets are real.
        args, kwargs = pytree.tree_map(
            functools.partial(to_fake, self._mode), (args, kwargs)
        )
        try:
            return func(*args, **kwargs)
        except DynamicOutputShapeException as raised:
            raise RuntimeError(
                f"the shape of the result of {func} depends on data, in\n"
                f"  {frames.where()}\n"
                "  Without data it is unknown: capture with "
                "tracing_mode='real', which fixes the shape of this one run."
            ) from raised

    def bind(
        self, value: AnyValue, node: Node, constant: AnyValue = None
    ) -> AnyValue:
        """Note that a value is the value of `node`, and describe it in meta.

        Args:
            value: a tensor, or a list or tuple of results, each of which gets
                a getitem node. Other values are not noted.
            node: the node that has made it.
            constant: the same value, if it is the same in each run.

        Returns:
            What `node.meta["val"]` says of the value.
        """
        if isinstance(value, torch.Tensor):
            self._know(value, node)
            self.constants.made(value, node, constant)
            return self._describe(value, node)
        if not isinstance(value, (tuple, list)):
            return None
        fakes = []
        for index, item in enumerate(value):
            item_node = self.create_node(
                "call_function", operator.getitem, (node, index), {}
            )
            part = None if constant is None else constant[index]
            fakes.append(self.bind(item, item_node, part))
        node.meta["val"] = type(value)(fakes)
        return node.meta["val"]

    def _know(self, tensor: torch.Tensor, node: Node) -> None:
        """Remember whose value a tensor is, as long as it lives."""
        key, known, constants = id(tensor), self._known, self.constants

        def die(_: object) -> None:
            known.pop(key, None)
            constants.gone(key)

        known[key] = _Known(node, weakref.ref(tensor, die))

    def knows(self, tensor: torch.Tensor) -> bool:
        """Whether the tensor is the value of a node."""
        return id(tensor) in self._known

    def _describe(self, value: torch.Tensor, node: Node) -> AnyValue:
        """Fill the meta of a tensor's node.  Returns the tensor as a fake."""
        fake = self._fake(value)
        node.meta["val"] = fake
        if value.layout is torch.strided and not value.is_nested:
            node.meta["tensor_meta"] = extract_tensor_metadata(value)
        return fake

    def _fake(self, value: torch.Tensor) -> FakeTensor | None:
        """A fake tensor of the same shape and strides, in its own storage.

        None for a tensor that has no strides.
        """
        if isinstance(value, FakeTensor):
            return detached(value.fake_mode, value)
        strided = value.layout is torch.strided and not value.is_nested
        if not strided or value.is_quantized:
            return None
        with without_dispatch():
            empty = torch.empty_strided(
                value.shape, value.stride(), dtype=value.dtype, device="meta"
            )
            return FakeTensor(self._fakes, empty, value.device)

    # -- arguments ---------------------------------------------------------

    def create_arg(self, a: AnyValue) -> Argument:
        """Turn an argument of an operator into an argument of its node.

        A tensor becomes the node whose value it is, or a new get_attr node.

        Raises:
            RuntimeError: a fake tensor that no operator of this capture made,
                or a real one in the memory of what one has made.
        """
        known = self._known.get(id(a))
        if known is not None:
            return known.node
        if isinstance(a, _FETCHED):
            return self._fetch(a)
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            items = tuple([self.create_arg(item) for item in a])
            return self.create_node("call_function", type(a), items, {})
        return TracerBase.create_arg(self, a)

    def _fetch(self, value: AnyValue) -> Node:
        """A new get_attr node for a value that no node has made."""
        if isinstance(value, FakeTensor):
            raise RuntimeError(
                "make_fx met a fake tensor that is neither an input nor the "
                f"result of an operator: shape {tuple(value.shape)}, in\n"
                f"  {frames.where()}\n"
                "  A graph cannot keep it, because it has no data. Pass it to "
                "the captured function as an argument, or use real tensors."
            )
        if id(value) not in self._owned:
            self.constants.fetched(value)
            self._owned[id(value)] = self._fresh_path(value), value
        path, _ = self._owned[id(value)]
        self.attributes[path] = value
        node = self.create_node("get_attr", path, (), {})
        if isinstance(value, torch.Tensor):
            self._describe(value, node)
        return node

    def _fresh_path(self, value: AnyValue) -> str:
        """The first of _tensor_constant0, … that is not taken."""
        prefix = next(p for kind, p in _PREFIXES if isinstance(value, kind))
        paths = (f"{prefix}{number}" for number in self._counts[prefix])
        return next(path for path in paths if path not in self._taken)


def to_fake(mode: FakeTensorMode, value: AnyValue) -> AnyValue:
    """A real tensor as a fake one; another value as it is."""
    if isinstance(value, torch.Tensor) and not isinstance(value, FakeTensor):
        with unset_fake_temporarily():
            return mode.from_tensor(value, static_shapes=True)
    return value


def copy_of_small(tensor: torch.Tensor) -> torch.Tensor | None:
    """A copy of a tensor that is small enough to be a constant, else None."""
    if tensor.numel() > 64 * MAX_ELEMENTS:
        return None
    with unset_fake_temporarily():
        return tensor.clone()


def value_read(func: object) -> RuntimeError:
    """The error for a function that takes data out of a tensor."""
    return RuntimeError(
        "It appears that you're trying to get value out of a tracing "
        f"tensor with {func}, in\n  {frames.where()}\n"
        "  The graph would hold the number of this one run. If code "
        "branches on it, use torch.where; if it is a setting, pass a "
        "Python number instead of a tensor."
    )
