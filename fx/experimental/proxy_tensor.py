"""Stage 08, reinplace: make_fx, which records a function as ATen operators.

    graph_module = make_fx(f)(torch.randn(2, 3))

`symbolic_trace` records what the Python code says: `x + y`, `self.linear(x)`.
`make_fx` records the operators that torch runs to do it.  It runs the
function on tensors, and torch's dispatcher hands each ATen operator, once
autograd and functorch (`torch.func`) have done their part, to a dispatch mode:

    f            user's code, torch.func.grad, vmap, functionalize, backward()
    ↓ operators of ATen
    CaptureMode  decomposes an operator, or has it run and recorded
    ↓ nodes
    Capture      knows which node has made which tensor

So the calls in the graph are calls of operators, `torch.ops.aten.….…` or a
library's own, and the Python code, the modules and autograd that led to them
are gone.

Inputs and outputs are made outside of the mode, since describing them would be
recorded.  The mode is inside of a fake mode: the innermost is asked first,
records, and hands the operator on.  Captures can be nested, and the outer one
is paused meanwhile.  What is switched for the run is switched back after it,
also after an error: modes, the cache of autocast (it would hand out a cast
parameter that no operator of this capture has made), and the fast path of
attention layers, which would be one opaque node.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import importlib
import inspect
from collections.abc import Callable, Iterator
from typing import Final, Literal, TypeAlias, get_args

import torch
import torch.backends.mha
from torch import nn

from .._pytree import child_specs
from ..capture.capture import Capture, to_fake
from ..capture.mode import CaptureMode, DecompositionTable
from ..capture.unsupported import Constants, ReadMode
from ..graph import NO_DEFAULT
from ..graph_module import OWN, GraphModule
from ..node import Node
from ..proxy import CONSTANTS
from ..recording import frames
from ..torch_private.dispatch import active_modes
from ..torch_private.fake_tensors import FakeTensorMode, detect_fake_mode
from ..torch_private.pytree import pytree
from ..tracing.inputs import _assert_same
from ..tracing.patching import TRACES
from ..tracing.state import State
from ..tracing.tracer import TraceListener, Tracer
from ..use_def.annotations import annotations_of, signature_of
from ..use_def.protocols import PyTreeInfo
from ..use_def.values import LEAVES, AnyValue, Function

__all__ = ["make_fx"]

TracingMode: TypeAlias = Literal["real", "fake"]
"""What a capture computes with: the data itself, or shapes alone."""


def make_fx(
    f: Function,
    decomposition_table: DecompositionTable | None = None,
    tracing_mode: TracingMode = "real",
) -> Callable[..., GraphModule]:
    """Make a function that captures `f` as a graph of ATen operators.

        gm = make_fx(f)(*args)
        gm(*args)   # what f does on inputs of these shapes, without f

    The graph holds the operators of this one run: control flow, shapes and
    Python values are fixed, and so is which inputs are the same tensor. A
    number, a string or None among the inputs is checked when the graph runs.
    Gradients of the module's results are those of its operators: `no_grad`,
    hooks of tensors and the backward of an `autograd.Function` leave no trace.
    `node.meta["val"]` is each value as a fake tensor, and an input that is a
    number itself. A tensor that is neither an input nor a result becomes a
    get_attr. Its path is the one it has in `f`, if `f` is a module, else
    `_param_constant0`, `_tensor_constant0` and so on. The module shares the
    tensors that the graph fetches with `f`.
    This includes functions marked with `fx.wrap`: the graph has their
    operators instead of a call, and a warning says so.

    Args:
        f: a function or module of tensors and other values, which may be
            nested in containers; `grad`, `vmap` or `functionalize` of one. It
            may call `backward`.
        decomposition_table: operator -> function of the same arguments that
            is recorded in its place. It may return NotImplemented. Without a
            table, `detach` is recorded as `alias`, so that gradients of the
            module go through it; give an empty table to keep it.
        tracing_mode: "real" runs `f` on the sample inputs, in-place writes
            included; "fake" computes shapes only and writes to no input.

    Returns:
        A function of the sample inputs, whose result is the GraphModule.

    Raises:
        AssertionError: another tracing mode.
        RuntimeError: (when capturing) Python asks for a number that is in a
            tensor, or in fake mode for a shape that depends on data; `f` uses
            a fake tensor that is not among the inputs.
        NotImplementedError: (when capturing) an operator that takes functions,
            such as `torch.cond`; a result that no node can hold.

    Cost: O(operators), besides running `f`.

    torch.fx: experimental/proxy_tensor.py, make_fx
    """
    if tracing_mode not in get_args(TracingMode):
        raise AssertionError(
            f"tracing_mode must be real/fake, got {tracing_mode}: 'real' "
            "computes, 'fake' finds shapes without data; shapes are never "
            "symbolic here"
        )
    given = decomposition_table
    table = dict(_WITHOUT_TABLE if given is None else given)

    @functools.wraps(f, updated=())
    def wrapped(*args: AnyValue) -> GraphModule:
        inputs, in_spec = pytree.tree_flatten(args)
        fakes = None
        if tracing_mode == "fake":
            fakes = detect_fake_mode(inputs) or FakeTensorMode(
                allow_non_fake_inputs=True, static_shapes=True
            )
            inputs = [to_fake(fakes, value) for value in inputs]
        state = _state(f)
        owned = {
            id(value): (path, value)
            for path, value in state.named()
            if isinstance(value, torch.Tensor)
            and path.partition(".")[0] not in OWN
        }
        watch = Tracer._watching()  # noqa: SLF001
        capture = Capture(owned, fakes, Constants)
        try:
            names = _add_inputs(capture, f, inputs, in_spec)
            with (
                _capturing(capture, watch, state),
                fakes or contextlib.nullcontext(),
                CaptureMode(capture, table),
                ReadMode(capture.constants.varies),
            ):
                result = f(*pytree.tree_unflatten(inputs, in_spec))
            returns = None
            if all(child.is_leaf() for child in child_specs(in_spec)):
                # Nothing is nested: the code has a plain signature.
                returns = annotations_of(inspect.unwrap(f)).get("return")
            else:
                result, out_spec = pytree.tree_flatten(result)
                info = PyTreeInfo(names, in_spec, out_spec)
                capture.graph._pytree_info = info
            value = (capture.create_arg(result),)
            capture.create_node("output", "output", value, {}, None, returns)
            watch.captured(undo=False)
        finally:
            capture.forget()
            if fakes:
                watch.captured(undo=True)
        name = getattr(f, "__name__", type(f).__name__)
        return GraphModule(capture.attributes, capture.graph, name)

    return wrapped


_WITHOUT_TABLE: Final[DecompositionTable] = {
    torch.ops.aten.detach.default: torch.ops.aten.alias.default
}
"""What is decomposed if nothing is said about it."""


def __getattr__(name: str) -> AnyValue:
    """What torch has here besides, its own: one machine, with its own graphs.

    They reach a program as any graph of torch.fx does.
    """
    return getattr(importlib.import_module(f"torch.{__name__}"), name)


# -- inputs and outputs ----------------------------------------------------


def _add_inputs(
    capture: Capture,
    f: Function,
    inputs: list[AnyValue],
    in_spec: pytree.TreeSpec,
) -> list[str]:
    """Make a placeholder for each leaf of the arguments, then checks of them.

    Returns:
        The names of the parameters that the arguments are for.
    """
    children = child_specs(in_spec)
    signature = _signature(f, len(children))
    values = iter(inputs)
    nodes: list[Node] = []
    for (name, default), spec in zip(signature.items(), children, strict=True):
        given = type(default) in CONSTANTS and spec.is_leaf()
        for count in range(1, spec.num_leaves + 1):
            node = capture.create_node(
                "placeholder",
                f"{name}_{count}",
                (default,) if given else (),
                {},
            )
            value = next(values)
            capture.bind(value, node)
            if isinstance(value, int | float):
                node.meta["val"] = value
            nodes.append(node)
    first: dict[int, Node] = {}
    for node, value in zip(nodes, inputs, strict=True):
        if not isinstance(value, torch.Tensor):
            _check(capture, node, value)
        elif (other := first.setdefault(id(value), node)) is not node:
            frames.warn(
                f"{other.target} and {node.target} are one tensor in this run, "
                f"and the graph reads {node.target} in the place of both: "
                "capture with a tensor for each, or never call the graph with "
                "two"
            )
    return list(signature)


def _check(capture: Capture, node: Node, value: AnyValue) -> None:
    """Record that an input must be the constant that it is in this run.

    Warns if it is an object that may have changed by then.
    """
    if type(value) not in LEAVES and not isinstance(value, _CONSTANTS):
        frames.warn(
            f"make_fx captured {node.target} as it is in this run, and the "
            f"graph ignores another {type(value).__name__} that it is called "
            "with: capture again for another one, or pass its tensors"
        )
        return
    message = (
        f"{node.target} has been specialized to have value {value!r} but got "
        "another value"
    )
    args = (node, value, message)
    capture.create_node("call_function", _assert_same, args, {})


_CONSTANTS: Final = (int, float, complex, str, bytes, slice, enum.Enum)
"""Further types of which a graph can hold the values, and their subclasses."""


def _signature(f: Function, count: int) -> dict[str, AnyValue]:
    """The names of the first `count` parameters, with their defaults.

    The names are arg0, arg1, … if `f` has `*args` or no signature.
    """
    function = inspect.unwrap(f)
    if inspect.isfunction(function) or inspect.ismethod(function):
        parameters = list(signature_of(function).parameters.values())
        several = any(
            p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters
        )
        if not several and len(parameters) >= count:
            return {p.name: p.default for p in parameters[:count]}
    return {f"arg{index}": NO_DEFAULT for index in range(count)}


def _state(f: Function) -> State:
    """What the module has that `f` is, or that `f` is a method of.

    With the paths of the captured module a graph says `self.body.0.weight` and
    not `_param_constant3`, and a state dict of the module fits it.  `self.count
    = self.count + x` binds another tensor and writes to none, so no operator
    says it: there is a warning.
    """
    owner = inspect.unwrap(f)
    if isinstance(owner, functools.partial):
        owner = owner.func
    owner = getattr(owner, "__self__", owner)
    return State(owner if isinstance(owner, nn.Module) else nn.Module())


# -- what surrounds a capture ----------------------------------------------


@contextlib.contextmanager
def _capturing(
    capture: Capture, watch: TraceListener, state: State
) -> Iterator[None]:
    """Prepare the process for a capture in this thread, for a block."""
    outer = [
        mode
        for mode in active_modes()
        if isinstance(mode, CaptureMode) and not mode.paused
    ]
    cache = torch.is_autocast_cache_enabled()
    try:
        for mode in outer:
            mode.paused = True
        # The cache would supply a cast of a parameter that no node has made.
        torch.set_autocast_cache_enabled(False)
        with TRACES.during(capture):
            TRACES.patch(*_FAST_PATH, _fast_path)
            watch.capture(state)
            yield
    finally:
        torch.set_autocast_cache_enabled(cache)
        for mode in outer:
            mode.paused = False


_FAST_PATH: Final = vars(torch.backends.mha), ["get_fastpath_enabled"]
"""What attention and transformer layers ask before they use one fused kernel,
which no pass could look into."""


def _fast_path(original: Callable[[], bool]) -> Callable[[], bool]:
    """A wrapper of get_fastpath_enabled that says no during a capture."""

    @functools.wraps(original)
    def wrapper() -> bool:
        return not isinstance(TRACES.current, Capture) and original()

    return wrapper
