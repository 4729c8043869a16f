"""Stage 08, reinplace: a capture, which notes the operators that were run.

Operators do not say where their arguments come from: they get tensors.  A
capture knows of every tensor the node whose value it is, as long as the tensor
lives.  So the arguments of an operator become nodes, and its results are known
in their turn.  A tensor that no node has made was there before: it becomes an
attribute, which a get_attr node fetches.
"""

from __future__ import annotations

import functools
import operator
import weakref
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

import torch
from torch import nn
from torch._C import _DisableTorchDispatch
from torch._ops import OpOverload
from torch._subclasses.fake_impls import fast_detach
from torch._subclasses.fake_tensor import (
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    unset_fake_temporarily,
)
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils import _pytree as pytree

from ..graph import Graph
from ..node import Node
from ..passes.shape_prop import extract_tensor_metadata
from ..proxy import GraphAppendingTracer, TracerBase
from ..recording import frames
from ..usedef.values import Argument, Value

State: TypeAlias = dict[int, tuple[str, Value]]
"""id of a tensor -> where the captured module has it, and the tensor."""

_PREFIXES: Final = (
    (nn.Parameter, "_param_constant"),
    (torch.Tensor, "_tensor_constant"),
    (torch.Generator, "_opaque_obj"),
    (torch.ScriptObject, "_torchbind_obj"),
)
"""What a value is called that no module has, by its type."""

_FETCHED: Final = tuple([kind for kind, _ in _PREFIXES])
"""Types of values that no node can hold, and a get_attr node fetches."""

PLAIN: Final = frozenset((torch.Tensor, nn.Parameter, FakeTensor))
"""Types of tensors with no behaviour of their own."""

MAX_CONSTANT: Final = 1
"""How many elements a constant may have whose value is kept for `item()`."""


class Operator(NamedTuple):
    """What a capture has to know of an operator.

    Attributes:
        name: what its nodes ask to be called.
        composite: it has a definition in terms of other operators, which
            autograd would use.
        reads_data: it gives Python a number out of a tensor.
        random: its result cannot be computed in advance.
        writes: it changes an argument.
    """

    name: str
    composite: bool
    reads_data: bool
    random: bool
    writes: bool


_METADATA: Final = (
    torch.ops.aten.size.default,
    torch.ops.aten.stride.default,
    torch.ops.aten.storage_offset.default,
)
"""Operators that are never decomposed."""


@functools.lru_cache(maxsize=4096)
def operator_of(func: OpOverload) -> Operator:
    """What a capture has to know of `func`, looked up once."""
    composite = func.has_kernel_for_dispatch_key(
        torch._C.DispatchKey.CompositeImplicitAutograd
    )
    return Operator(
        func.overloadpacket.__name__,
        composite and func not in _METADATA,
        torch.Tag.data_dependent_output in func.tags,
        torch.Tag.nondeterministic_seeded in func.tags,
        func._schema.is_mutable,
    )


_LIFT: Final = torch.ops.aten.lift_fresh_copy.default


class _Known(NamedTuple):
    """What is known of a tensor: the node whose value it is.

    The reference is there for its callback, which forgets a dead tensor.
    """

    node: Node
    reference: weakref.ref[torch.Tensor]


class _Constant(NamedTuple):
    """The value of a tensor that does not depend on the inputs.

    Attributes:
        value: a tensor of its own that always has the same data.
        storage: what tells the memory of the captured tensor from others.
    """

    value: Value
    storage: object


class Capture(GraphAppendingTracer):
    """Records operators on tensors into a graph.

    Attributes:
        attributes: what get_attr nodes fetch, by path.
    """

    def __init__(
        self, state: State, mode: FakeTensorMode | None = None
    ) -> None:
        """Begin with an empty graph.

        Args:
            state: the tensors that have a path already.
            mode: makes operators run without data; None, and they run.
        """
        super().__init__(Graph())
        self.attributes: dict[str, Value] = {}
        self._state = state
        self._taken = {path for path, _ in state.values()}
        self._counts = dict.fromkeys(dict(_PREFIXES).values(), 0)
        self._known: dict[int, _Known] = {}
        self._constants: dict[int, _Constant] = {}
        self._mode = mode
        self._fakes = mode or FakeTensorMode(allow_fallback_kernels=True)

    def forget(self) -> None:
        """Let go of all tensors, when the capture has ended."""
        self._known.clear()
        self._constants.clear()
        for value in self.attributes.values():
            # `backward` without data has left a gradient without data.
            leaf = isinstance(value, torch.Tensor) and value.is_leaf
            if leaf and isinstance(value.grad, FakeTensor):
                value.grad = None

    # -- one operator ------------------------------------------------------

    def run(
        self,
        func: OpOverload,
        args: tuple[Value, ...],
        kwargs: dict[str, Value],
    ) -> Value:
        """Run an operator and add its node, if there is no exception.

        One that reads data, like `item`, makes no node: see `_read`.

        Args:
            func: the operator that was called.
            args: its arguments, as they are when the program runs.
            kwargs: the same, by name.

        Returns:
            What it returned; the new node is bound to it. A constant is known
            with it: for a new tensor, if it is small; else, while there are
            constants, if all that the operator takes is constant.

        Raises:
            RuntimeError: it takes a number out of a tensor that is not
                constant; the shape of its result depends on data, and there
                is none.
        """
        if func is torch.ops.aten.lift_fresh.default:
            # `torch.tensor(…)` is a new tensor each time it is run.
            func = _LIFT
        what = operator_of(func)
        if what.reads_data:
            return self._read(func, args, kwargs)
        result = self._call(func, args, kwargs)
        node = self.create_node(
            "call_function",
            func,
            tuple([self.create_arg(arg) for arg in args]),
            {key: self.create_arg(arg) for key, arg in kwargs.items()},
            what.name,
        )
        constant = None
        if func is _LIFT:
            constant = _copy_of_small(args[0])
        elif self._constants:
            constant = self._fold(func, args, kwargs, result)
        self.bind(result, node, constant)
        return result

    def _call(
        self,
        func: OpOverload,
        args: tuple[Value, ...],
        kwargs: dict[str, Value],
    ) -> Value:
        """Call an operator, without data if that is the mode."""
        if self._mode is None or func is _LIFT:
            return func(*args, **kwargs)
        # A fake mode that is given real tensors alone may run for real.
        args, kwargs = pytree.tree_map(
            functools.partial(to_fake, self._mode), (args, kwargs)
        )
        try:
            return func(*args, **kwargs)
        except DynamicOutputShapeException as raised:
            raise RuntimeError(
                f"the shape of what {func} gives depends on data, in\n"
                f"  {frames.where()}\n"
                "  Without data it is unknown: capture with "
                "tracing_mode='real', which fixes the shape of this one run."
            ) from raised

    def bind(self, value: Value, node: Node, constant: Value = None) -> Value:
        """Note that `node` has made a value; what its meta says of it."""
        if isinstance(value, torch.Tensor):
            self._know(value, node)
            if constant is not None:
                storage = _memory(value)
                self._constants[id(value)] = _Constant(constant, storage)
            else:
                self._constants.pop(id(value), None)
            return self._describe(value, node)
        if not isinstance(value, (tuple, list)):
            return None
        fakes = []
        for index, item in enumerate(value):
            each = self.create_node(
                "call_function", operator.getitem, (node, index), {}
            )
            part = None if constant is None else constant[index]
            fakes.append(self.bind(item, each, part))
        node.meta["val"] = type(value)(fakes)
        return node.meta["val"]

    def _know(self, tensor: torch.Tensor, node: Node) -> None:
        """Remember whose value a tensor is, as long as it lives."""
        key, known, constants = id(tensor), self._known, self._constants

        def die(_: object) -> None:
            known.pop(key, None)
            constants.pop(key, None)

        known[key] = _Known(node, weakref.ref(tensor, die))

    def _describe(self, value: torch.Tensor, node: Node) -> Value:
        """Fill the meta of the node of a tensor; the tensor as a fake one."""
        fake = self._fake(value)
        node.meta["val"] = fake
        if value.layout is torch.strided and not value.is_nested:
            node.meta["tensor_meta"] = extract_tensor_metadata(value)
        return fake

    def _fake(self, value: torch.Tensor) -> FakeTensor | None:
        """A fake tensor of the same shape, with memory of its own.

        None for what has no strides.
        """
        if isinstance(value, FakeTensor):
            return fast_detach(value.fake_mode, value)
        strided = value.layout is torch.strided and not value.is_nested
        if not strided or value.is_quantized:
            return None
        with _DisableTorchDispatch():
            empty = torch.empty_strided(
                value.shape, value.stride(), dtype=value.dtype, device="meta"
            )
            return FakeTensor(self._fakes, empty, value.device)

    # -- arguments ---------------------------------------------------------

    def create_arg(self, a: Value) -> Argument:
        """A tensor becomes the node whose value it is.

        Raises:
            RuntimeError: a fake tensor that nothing in this capture made.
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

    def is_foreign(
        self, args: tuple[Value, ...], kwargs: dict[str, Value]
    ) -> bool:
        """Whether a tensor among arguments is of a class of its own.

        Those that the graph has made already are taken as they are.
        """
        return any(
            type(leaf) not in PLAIN and id(leaf) not in self._known
            for leaf in pytree.arg_tree_leaves(*args, **kwargs)
            if isinstance(leaf, torch.Tensor)
        )

    def _fetch(self, value: Value) -> Node:
        """A new get_attr node for what no node has made."""
        if isinstance(value, FakeTensor):
            raise RuntimeError(
                "make_fx met a fake tensor that is no input and no result: "
                f"shape {tuple(value.shape)}, in\n  {frames.where()}\n"
                "  A graph cannot keep it, for it has no data. Pass it to the "
                "captured function as an argument, or use real tensors."
            )
        if id(value) not in self._state:
            self._state[id(value)] = self._fresh_path(value), value
        path, _ = self._state[id(value)]
        self.attributes[path] = value
        node = self.create_node("get_attr", path, (), {})
        if isinstance(value, torch.Tensor):
            self._describe(value, node)
        return node

    def _fresh_path(self, value: Value) -> str:
        """The first of _tensor_constant0, … that is not taken."""
        prefix = next(p for kind, p in _PREFIXES if isinstance(value, kind))
        path = ""
        while not path or path in self._taken:
            path = f"{prefix}{self._counts[prefix]}"
            self._counts[prefix] += 1
        return path

    # -- constants ---------------------------------------------------------

    def _read(
        self,
        func: OpOverload,
        args: tuple[Value, ...],
        kwargs: dict[str, Value],
    ) -> Value:
        """A number out of a tensor, which must not depend on the inputs."""
        values = self._constant_values(args, kwargs)
        if values is None:
            raise RuntimeError(
                "It appears that you're trying to get value out of a tracing "
                f"tensor with {func}, in\n  {frames.where()}\n"
                "  The graph would hold the number of this one run. If code "
                "branches on it, use torch.where; if it is a setting, pass a "
                "Python number instead of a tensor."
            )
        args, kwargs = values
        with unset_fake_temporarily():
            return func(*args, **kwargs)

    def _fold(
        self,
        func: OpOverload,
        args: tuple[Value, ...],
        kwargs: dict[str, Value],
        result: Value,
    ) -> Value:
        """What an operator gives for constants, None if not all are."""
        what = operator_of(func)
        leaves = pytree.arg_tree_leaves(*args, **kwargs)
        if any(id(leaf) in self._constants for leaf in leaves):
            values = self._constant_values(args, kwargs)
            if values is not None and not what.random and _is_small(result):
                args, kwargs = values
                with unset_fake_temporarily():
                    return func(*args, **kwargs)
        if what.writes:
            self._overwrite(leaves)
        return None

    def _constant_values(
        self, args: tuple[Value, ...], kwargs: dict[str, Value]
    ) -> tuple[tuple[Value, ...], dict[str, Value]] | None:
        """Arguments with constants for tensors; None if one is none."""
        for leaf in pytree.arg_tree_leaves(*args, **kwargs):
            if id(leaf) in self._known and id(leaf) not in self._constants:
                return None

        def value(leaf: Value) -> Value:
            constant = self._constants.get(id(leaf))
            return leaf if constant is None else constant.value

        values: tuple[tuple[Value, ...], dict[str, Value]]
        values = pytree.tree_map(value, (args, kwargs))
        return values

    def _overwrite(self, leaves: list[Value]) -> None:
        """Forget constants whose memory may be written to."""
        storages = {
            _memory(leaf)
            for leaf in leaves
            if id(leaf) in self._known and leaf.layout is torch.strided
        }
        for key, constant in list(self._constants.items()):
            if constant.storage in storages:
                del self._constants[key]


def _is_small(value: Value) -> bool:
    """Whether all tensors in a result are kept as constants."""
    leaves = pytree.tree_leaves(value)
    return all(
        leaf.numel() <= MAX_CONSTANT and leaf.layout is torch.strided
        for leaf in leaves
        if isinstance(leaf, torch.Tensor)
    )


def to_fake(mode: FakeTensorMode, value: Value) -> Value:
    """A real tensor as a fake one; another value as it is."""
    if isinstance(value, torch.Tensor) and not isinstance(value, FakeTensor):
        with unset_fake_temporarily():
            return mode.from_tensor(value, static_shapes=True)
    return value


def _memory(tensor: torch.Tensor) -> object:
    """What tells the memory of a tensor from all others, now and later."""
    refer: Callable[[object], object] = StorageWeakRef
    return refer(tensor.untyped_storage())


def _copy_of_small(tensor: torch.Tensor) -> torch.Tensor | None:
    """A copy of a constant, if its value is kept."""
    if tensor.numel() > MAX_CONSTANT:
        return None
    with unset_fake_temporarily():
        return tensor.clone()
