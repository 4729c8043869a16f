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
    Capture    which node has made which tensor; tensors that none has made

So a graph has one kind of call, `torch.ops.aten.….…`, and whatever Python,
modules and autograd did to get there is gone from it.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, Literal, NoReturn, TypeAlias, get_args

import torch
import torch.backends.mha
from torch import nn
from torch._ops import HigherOrderOperator, OpOverload
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _get_current_dispatch_mode_stack,
    autograd_would_have_decomposed,
)

from .._pytree import child_specs
from ..graph import NO_DEFAULT
from ..graph_module import OWN, GraphModule
from ..recording import frames
from ..reinplacing.capture import PLAIN, Capture, State, operator_of, to_fake
from ..tracing.concrete_args import parameters_of
from ..tracing.patching import TRACES, Place
from ..usedef.arguments import LEAVES
from ..usedef.protocols import PyTreeInfo
from ..usedef.values import Value

__all__ = ["make_fx"]

TracingMode: TypeAlias = Literal["real", "fake"]
"""What a capture computes with: the data itself, or shapes alone."""

DecompositionTable: TypeAlias = Mapping[OpOverload, Callable[..., Value]]
"""What to run, and so record, in the place of an operator."""


def make_fx(
    f: Callable[..., Value],
    decomposition_table: DecompositionTable | None = None,
    tracing_mode: TracingMode = "real",
) -> Callable[..., GraphModule]:
    """A function that captures `f` as a graph of ATen operators.

        gm = make_fx(f)(*args)
        gm(*args)   # what f does on inputs of these shapes, without f

    The graph holds what happened in this one run: control flow, shapes and
    Python values are fixed, and which inputs are one tensor.
    `node.meta["val"]` is each value as a fake tensor. A tensor that is no
    input and no result becomes a get_attr: of its path, if `f` is a module
    that has it, else `_param_constant0`, `_tensor_constant0` and so on. What
    the graph fetches is shared, not copied.

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
            tensor, or in fake mode for a shape that depends on data; a fake
            tensor of somebody else is used.
        NotImplementedError: (when capturing) an operator on functions, such
            as `torch.cond`; a result that no node can hold.

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

    @functools.wraps(f, updated=())
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
        inputs = [to_fake(fakes, value) for value in inputs]
    capture = Capture(_state(f), fakes)
    try:
        names = _add_inputs(capture, f, inputs, in_spec)
        with (
            _recording(capture),
            fakes or contextlib.nullcontext(),
            _Mode(capture, table),
        ):
            result = f(*pytree.tree_unflatten(inputs, in_spec))
        _add_output(capture, f, result, PyTreeInfo(names, in_spec, None))
    finally:
        capture.forget()
    name = getattr(f, "__name__", type(f).__name__)
    return GraphModule(capture.attributes, capture.graph, name)


# -- inputs and outputs ----------------------------------------------------


def _fake_mode(inputs: Iterable[Value]) -> FakeTensorMode:
    """The mode of the first fake tensor among the inputs, or a new one."""
    for value in inputs:
        if isinstance(value, FakeTensor):
            return value.fake_mode
    return FakeTensorMode(allow_non_fake_inputs=True, static_shapes=True)


def _add_inputs(
    capture: Capture,
    f: Callable[..., Value],
    inputs: list[Value],
    in_spec: pytree.TreeSpec,
) -> list[str]:
    """Make a placeholder for each leaf of the arguments; their names."""
    children = child_specs(in_spec)
    names, defaults = _signature(f, len(children))
    values = iter(inputs)
    for name, spec in zip(names, children, strict=True):
        default = defaults.get(name, NO_DEFAULT)
        given = type(default) in _DEFAULTS and spec.is_leaf()
        for count in range(1, spec.num_leaves + 1):
            node = capture.create_node(
                "placeholder",
                f"{name}_{count}",
                (default,) if given else (),
                {},
            )
            capture.bind(next(values), node)
    return names


_DEFAULTS: Final = LEAVES - {torch.Tensor}
"""Types of defaults that a placeholder can have."""


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


def _add_output(
    capture: Capture, f: Callable[..., Value], result: Value, info: PyTreeInfo
) -> None:
    """Make the output, flat if the inputs were nested."""
    returns = None
    if all(child.is_leaf() for child in child_specs(info.in_spec)):
        notes = getattr(inspect.unwrap(f), "__annotations__", {})
        returns = notes.get("return")
    else:
        result, out_spec = pytree.tree_flatten(result)
        capture.graph._pytree_info = info._replace(out_spec=out_spec)
    output = capture.create_arg(result)
    capture.create_node("output", "output", (output,), {}, type_expr=returns)


def _state(f: Callable[..., Value]) -> State:
    """The tensors that `f` has if it is a module, or a method of one."""
    owner = inspect.unwrap(f)
    if isinstance(owner, functools.partial):
        owner = owner.func
    owner = getattr(owner, "__self__", owner)
    found: State = {}
    if isinstance(owner, nn.Module):
        for path, value in _attributes(owner):
            reserved = path.partition(".")[0] in OWN
            if isinstance(value, torch.Tensor) and not reserved:
                found.setdefault(id(value), (path, value))
    return found


def _attributes(root: nn.Module) -> Iterator[tuple[str, object]]:
    """Parameters, buffers and other attributes of a module, with paths."""
    for prefix, module in root.named_modules():
        dot = f"{prefix}." if prefix else ""
        for held in (module._parameters, module._buffers, vars(module)):
            for name, value in held.items():
                yield dot + name, value


# -- what surrounds a capture ----------------------------------------------


@contextlib.contextmanager
def _recording(capture: Capture) -> Iterator[None]:
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
        return not isinstance(TRACES.current, Capture) and original()

    return stand_in


if TYPE_CHECKING:

    class _DispatchMode(contextlib.nullcontext[None]):
        """TorchDispatchMode, as mypy can take it: it has no annotations."""
else:
    _DispatchMode = TorchDispatchMode


class _Mode(_DispatchMode):
    """Sees each operator, and has it recorded.

    Attributes:
        paused: another capture runs inside; this one is to see nothing.
    """

    supports_higher_order_operators = True
    """Let them come here, to be refused in words."""

    def __init__(self, capture: Capture, table: DecompositionTable) -> None:
        """Make a mode.

        Args:
            capture: what records.
            table: what to decompose, and how.
        """
        super().__init__()
        self._capture = capture
        self._table = table
        self.paused = False

    def __torch_dispatch__(
        self,
        func: OpOverload | HigherOrderOperator,
        types: tuple[type, ...],
        args: tuple[Value, ...] = (),
        kwargs: dict[str, Value] | None = None,
    ) -> Value:
        """Decompose an operator, or run and record it."""
        kwargs = kwargs or {}
        if self.paused or func is torch.ops.prim.device.default:
            return func(*args, **kwargs)
        if not isinstance(func, OpOverload):
            _refuse(func)
        plain = PLAIN.issuperset(types)
        if not plain and self._capture.is_foreign(args, kwargs):
            # The subclass says what it is made of, in operators again.
            return NotImplemented
        if func in self._table:
            with self:
                result = self._table[func](*args, **kwargs)
            if result is not NotImplemented:
                return result
        what = operator_of(func)
        if what.composite:
            leaves = pytree.arg_tree_leaves(*args, **kwargs)
            if autograd_would_have_decomposed(func, leaves):
                with self:
                    result = func.decompose(*args, **kwargs)
                if result is not NotImplemented:
                    return result
        return self._capture.run(func, args, kwargs)


def _refuse(func: HigherOrderOperator) -> NoReturn:
    """Raise the error for an operator on functions."""
    raise NotImplementedError(
        f"make_fx met torch.ops.higher_order.{func.__name__}, in\n"
        f"  {frames.where()}\n"
        "  It takes functions, and a graph of ATen operators has none. Use "
        "torch.where for a choice and a Python loop for a repetition, or "
        "capture the functions one by one."
    )
