"""Stage 08, reinplace: make_fx, which records a function as ATen operators.

    graph_module = make_fx(f)(torch.randn(2, 3))

A symbolic trace sees what Python says: `x + y`, `self.linear(x)`.  A capture
sees what torch does about it.  The function runs on tensors; below autograd,
below functorch, each operator of ATen comes by a dispatch mode, which runs it
and writes it down:

    f          user's code, torch.func.grad, vmap, functionalize, backward()
    ↓ operators of ATen
    _Mode      decompose, or run the operator and have it recorded
    ↓ nodes
    _Capture   which node has made which tensor; tensors that none has made

So a graph has one kind of call, `torch.ops.aten.….…`, and whatever Python,
modules and autograd did to get there is gone from it.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

import torch
import torch.backends.mha
from torch import nn
from torch._C import _DisableTorchDispatch
from torch._ops import OpOverload
from torch._subclasses.fake_impls import fast_detach
from torch._subclasses.fake_tensor import (
    FakeTensor,
    FakeTensorMode,
    unset_fake_temporarily,
)
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _get_current_dispatch_mode_stack,
    autograd_would_have_decomposed,
)

from .. import frames
from .._pytree import child_specs
from ..arguments import LEAVES, Argument, Value
from ..concrete_args import parameters_of
from ..graph import NO_DEFAULT, Graph
from ..graph_module import _OWN, GraphModule
from ..node import Node
from ..passes.shape_prop import extract_tensor_metadata
from ..patching import TRACES, Place
from ..protocols import PyTreeInfo
from ..proxy import GraphAppendingTracer, TracerBase

__all__ = ["make_fx"]

TracingMode: TypeAlias = Literal["real", "fake"]
"""What a capture computes with: the data itself, or shapes alone."""

DecompositionTable: TypeAlias = Mapping[OpOverload, Callable[..., Value]]
"""What to run, and so record, in the place of an operator."""

MAX_CONSTANT: Final = 1
"""How many elements a constant may have whose value is kept for `item()`."""


def make_fx(
    f: Callable[..., Value],
    decomposition_table: DecompositionTable | None = None,
    tracing_mode: TracingMode = "real",
) -> Callable[..., GraphModule]:
    """A function that captures `f` as a graph of ATen operators.

        gm = make_fx(f)(*args)
        gm(*args)   # what f does on inputs of these shapes, without f

    The graph holds what happened in this one run: control flow, shapes and
    Python values are fixed. `node.meta["val"]` is each value as a fake
    tensor. A tensor that is no input and no result becomes a get_attr: of
    its path, if `f` is a module that has it, else `_param_constant0`,
    `_tensor_constant0` and so on. What the graph fetches is shared, not
    copied.

    Args:
        f: a function or module of tensors and other values, nested in
            containers as you like; `grad`, `vmap` or `functionalize` of one;
            it may call `backward`.
        decomposition_table: operator -> function of the same arguments that
            is recorded instead. It may return NotImplemented.
        tracing_mode: "real" runs `f` for good, in-place writes included;
            "fake" computes shapes only and writes to no input.

    Returns:
        A function of the sample inputs, whose result is the GraphModule.

    Raises:
        AssertionError: another tracing mode.
        RuntimeError: (when capturing) Python asks for a number that is in a
            tensor; a fake tensor of somebody else is used.

    Cost: O(operators), besides running `f`.

    torch.fx: experimental/proxy_tensor.py, make_fx
    """
    if tracing_mode not in get_args(TracingMode):
        raise AssertionError(
            f"tracing_mode must be real/fake, got {tracing_mode}: 'real' "
            "computes, 'fake' finds shapes without data; shapes are never "
            "symbolic here"
        )
    table = dict(decomposition_table or {})

    @functools.wraps(f)
    def wrapped(*args: Value) -> GraphModule:
        return _capture(f, args, table, tracing_mode)

    return wrapped


def _capture(
    f: Callable[..., Value],
    args: tuple[Value, ...],
    table: DecompositionTable,
    tracing_mode: TracingMode,
) -> GraphModule:
    """Run `f` and make a module of what was recorded."""
    inputs, in_spec = pytree.tree_flatten(args)
    fakes = _fake_mode(inputs) if tracing_mode == "fake" else None
    if fakes is not None:
        inputs = [_to_fake(fakes, value) for value in inputs]
    capture = _Capture(_state(f))
    try:
        names = capture.add_inputs(f, inputs, in_spec)
        # Of the modes, the last sees an operator first: it is recorded, then
        # made fake.
        with (
            _recording(capture),
            fakes or contextlib.nullcontext(),
            _Mode(capture, table),
        ):
            result = f(*pytree.tree_unflatten(inputs, in_spec))
        capture.add_output(f, result, names, in_spec)
    finally:
        capture.forget()
    name = getattr(f, "__name__", type(f).__name__)
    return GraphModule(capture.attributes, capture.graph, name)


# -- inputs ----------------------------------------------------------------


def _fake_mode(inputs: Iterable[Value]) -> FakeTensorMode:
    """The mode of the first fake tensor among the inputs, or a new one."""
    for value in inputs:
        if isinstance(value, FakeTensor):
            return value.fake_mode
    return FakeTensorMode(allow_non_fake_inputs=True, static_shapes=True)


def _to_fake(mode: FakeTensorMode, value: Value) -> Value:
    """A tensor as a fake one; another value as it is."""
    if isinstance(value, torch.Tensor):
        return mode.from_tensor(value, static_shapes=True)
    return value


def _signature(
    f: Callable[..., Value], count: int
) -> tuple[list[str], dict[str, Value]]:
    """The names of the `count` parameters that get values, and defaults.

    They are arg0, arg1, … where `f` has `*args` or cannot tell.
    """
    function = inspect.unwrap(f)
    bound = inspect.ismethod(function)
    function = getattr(function, "__func__", function)
    if inspect.isfunction(function):
        names, *special = parameters_of(function)
        names = names[bound:]
        if not any(special) and len(names) >= count:
            parameters = inspect.signature(function).parameters
            defaults = {name: parameters[name].default for name in names}
            return names[:count], defaults
    return [f"arg{index}" for index in range(count)], {}


def _state(f: Callable[..., Value]) -> _State:
    """The tensors that `f` has if it is a module: id -> (path, tensor)."""
    module = inspect.unwrap(f)
    module = getattr(module, "__self__", module)
    found: _State = {}
    if isinstance(module, nn.Module):
        for path, tensor in (
            *module.named_parameters(),
            *module.named_buffers(),
        ):
            if path.partition(".")[0] not in _OWN:
                found[id(tensor)] = path, tensor
    return found


# -- what surrounds a capture ----------------------------------------------


@contextlib.contextmanager
def _recording(capture: _Capture) -> Iterator[None]:
    """Let this thread be captured, and by nobody else, for a block."""
    outer = [
        mode
        for mode in _get_current_dispatch_mode_stack()
        if isinstance(mode, _Mode) and not mode.paused
    ]
    cache = torch.is_autocast_cache_enabled()
    opened = TRACES.during(capture)
    try:
        for mode in outer:
            mode.paused = True
        # A cached cast of a parameter would come out of nowhere.
        torch.set_autocast_cache_enabled(False)
        with opened, opened:
            TRACES.patch(_FAST_PATH, _fast_path)
            yield
    finally:
        torch.set_autocast_cache_enabled(cache)
        for mode in outer:
            mode.paused = False


_FAST_PATH: Final = Place(vars(torch.backends.mha), "get_fastpath_enabled")
"""What attention and transformer layers ask before they use one fused kernel,
which no pass could look into."""


def _fast_path(original: Callable[[], bool]) -> Callable[[], bool]:
    """What stands in for get_fastpath_enabled: no, in a capture."""

    @functools.wraps(original)
    def stand_in() -> bool:
        return not isinstance(TRACES.current, _Capture) and original()

    return stand_in


# -- operators -------------------------------------------------------------


class _Operator(NamedTuple):
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
def _operator(func: OpOverload) -> _Operator:
    """What a capture has to know of `func`, looked up once."""
    composite = func.has_kernel_for_dispatch_key(
        torch._C.DispatchKey.CompositeImplicitAutograd
    )
    return _Operator(
        func.overloadpacket.__name__,
        composite and func not in _METADATA,
        torch.Tag.data_dependent_output in func.tags,
        torch.Tag.nondeterministic_seeded in func.tags,
        func._schema.is_mutable,
    )


_LIFT: Final = torch.ops.aten.lift_fresh_copy.default

_DEFAULTS: Final = LEAVES - {torch.Tensor}
"""Types of defaults that a placeholder can have."""

_PLAIN: Final = frozenset((torch.Tensor, nn.Parameter, FakeTensor))
"""Types of tensors with no behaviour of their own."""


class _Mode(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's
    """Sees each operator, and has it recorded.

    Attributes:
        paused: another capture runs inside; this one is to see nothing.
    """

    def __init__(self, capture: _Capture, table: DecompositionTable) -> None:
        """Make a mode.

        Args:
            capture: what records.
            table: what to decompose, and how.
        """
        super().__init__()  # type: ignore[no-untyped-call]  # torch's
        self._capture = capture
        self._table = table
        self.paused = False

    def __torch_dispatch__(
        self,
        func: OpOverload,
        types: tuple[type, ...],
        args: tuple[Value, ...] = (),
        kwargs: dict[str, Value] | None = None,
    ) -> Value:
        """Decompose an operator, or run and record it."""
        kwargs = kwargs or {}
        if self.paused or func is torch.ops.prim.device.default:
            return func(*args, **kwargs)
        plain = _PLAIN.issuperset(types)
        if not plain and self._capture.is_foreign(args, kwargs):
            # The subclass says what it is made of, in operators again.
            return NotImplemented
        if func in self._table:
            with self:
                result = self._table[func](*args, **kwargs)
            if result is not NotImplemented:
                return result
        what = _operator(func)
        if what.composite:
            leaves = pytree.arg_tree_leaves(*args, **kwargs)
            if autograd_would_have_decomposed(func, leaves):
                with self:
                    result = func.decompose(*args, **kwargs)
                if result is not NotImplemented:
                    return result
        return self._capture.run(func, args, kwargs)


# -- recording -------------------------------------------------------------


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


_State: TypeAlias = dict[int, tuple[str, torch.Tensor]]
"""id of a tensor -> where the captured module has it, and the tensor."""


class _Capture(GraphAppendingTracer):
    """Records operators on tensors into a graph: an `Interceptor`.

    Attributes:
        attributes: what get_attr nodes fetch, by path.
    """

    def __init__(self, state: _State) -> None:
        """Begin with an empty graph.

        Args:
            state: the tensors that have a path already.
        """
        super().__init__(Graph())
        self.attributes: dict[str, Value] = {}
        self._state = state
        self._taken = {path for path, _ in state.values()}
        self._known: dict[int, _Known] = {}
        self._constants: dict[int, _Constant] = {}
        self._fakes: FakeTensorMode | None = None

    def forget(self) -> None:
        """Let go of all tensors, when the capture has ended."""
        self._known.clear()
        self._constants.clear()

    def add_inputs(
        self,
        f: Callable[..., Value],
        inputs: list[Value],
        in_spec: pytree.TreeSpec,
    ) -> list[str]:
        """Make a placeholder for each leaf of the arguments of `f`.

        Returns:
            The names of the parameters.
        """
        children = child_specs(in_spec)
        names, defaults = _signature(f, len(children))
        values = iter(inputs)
        for name, spec in zip(names, children, strict=True):
            default = defaults.get(name, NO_DEFAULT)
            given = type(default) in _DEFAULTS and spec.is_leaf()
            for count in range(1, spec.num_leaves + 1):
                node = self.create_node(
                    "placeholder",
                    f"{name}_{count}",
                    (default,) if given else (),
                    {},
                )
                value = next(values)
                if isinstance(value, torch.Tensor):
                    self._bind(value, node)
        return names

    def add_output(
        self,
        f: Callable[..., Value],
        result: Value,
        names: list[str],
        in_spec: pytree.TreeSpec,
    ) -> None:
        """Make the output, flat if the inputs were nested."""
        returns = None
        if all(child.is_leaf() for child in child_specs(in_spec)):
            notes = getattr(inspect.unwrap(f), "__annotations__", {})
            returns = notes.get("return")
        else:
            result, out_spec = pytree.tree_flatten(result)
            self.graph._pytree_info = PyTreeInfo(names, in_spec, out_spec)
        output = self.create_arg(result)
        self.create_node("output", "output", (output,), {}, type_expr=returns)

    # -- one operator ------------------------------------------------------

    def run(
        self,
        func: OpOverload,
        args: tuple[Value, ...],
        kwargs: dict[str, Value],
    ) -> Value:
        """Run an operator and add its node, if there is no exception.

        Raises:
            RuntimeError: it takes a number out of a tensor that is not
                constant.
        """
        if func is torch.ops.aten.lift_fresh.default:
            # `torch.tensor(…)` is a new tensor each time it is run.
            func = _LIFT
        what = _operator(func)
        if what.reads_data:
            return self._read(func, args, kwargs)
        result = func(*args, **kwargs)
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
        self._bind(result, node, constant)
        return result

    def _bind(self, value: Value, node: Node, constant: Value = None) -> Value:
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
            fakes.append(self._bind(item, each, part))
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
        if self._fakes is None:
            self._fakes = FakeTensorMode(allow_fallback_kernels=True)
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
        if isinstance(a, torch.Tensor):
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
            type(leaf) not in _PLAIN and id(leaf) not in self._known
            for leaf in pytree.arg_tree_leaves(*args, **kwargs)
            if isinstance(leaf, torch.Tensor)
        )

    def _fetch(self, tensor: torch.Tensor) -> Node:
        """A new get_attr node for a tensor that no node has made."""
        if isinstance(tensor, FakeTensor):
            raise RuntimeError(
                "make_fx met a fake tensor that is no input and no result: "
                f"shape {tuple(tensor.shape)}, in\n  {frames.where()}\n"
                "  A graph cannot keep it, for it has no data. Pass it to the "
                "captured function as an argument, or use real tensors."
            )
        if id(tensor) not in self._state:
            self._state[id(tensor)] = self._fresh_path(tensor), tensor
        path, _ = self._state[id(tensor)]
        self.attributes[path] = tensor
        node = self.create_node("get_attr", path, (), {})
        self._describe(tensor, node)
        return node

    def _fresh_path(self, tensor: torch.Tensor) -> str:
        """The first of _tensor_constant0, … that is not taken."""
        kind = "param" if isinstance(tensor, nn.Parameter) else "tensor"
        number = 0
        while f"_{kind}_constant{number}" in self._taken:
            number += 1
        path = f"_{kind}_constant{number}"
        self._taken.add(path)
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
        what = _operator(func)
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
            if isinstance(leaf, torch.Tensor) and id(leaf) in self._known
        }
        for key, constant in list(self._constants.items()):
            if constant.storage in storages:
                del self._constants[key]

    # -- traces that this capture runs in ----------------------------------

    def call_module(
        self,
        module: nn.Module,
        original: Callable[..., Value],
        args: tuple[Value, ...],
        kwargs: dict[str, Value],
    ) -> Value:
        """A call of a module, which is simply made."""
        return original(module, *args, **kwargs)

    def read_attribute(
        self, module: nn.Module, name: str, value: Value
    ) -> Value:
        """What is read from a module, as it is."""
        return value

    def call_function(
        self,
        function: Callable[..., Value],
        args: tuple[Value, ...],
        kwargs: dict[str, Value],
    ) -> Value:
        """A call of a global, which is simply made."""
        return function(*args, **kwargs)


def _is_small(value: Value) -> bool:
    """Whether all tensors in a result are kept as constants."""
    leaves = pytree.tree_leaves(value)
    return all(
        leaf.numel() <= MAX_CONSTANT
        for leaf in leaves
        if isinstance(leaf, torch.Tensor)
    )


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
