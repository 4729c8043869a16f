"""Extra: records the calls of torch that a program makes with fake tensors.

While the program runs, a mode of torch shows us each call of a function or
method of torch.  A call that gives a tensor becomes a node:

    y = F.relu(x) + 1    →    relu = F.relu(x);  add = relu + 1

Tensors are known by their identity, so all that were seen are kept alive.  A
call that gives something else, such as `x.dtype`, is a question.  Most answers
follow from what each guard checks; of the others it is noted who asked.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

import torch
from torch import nn
from torch.overrides import TorchFunctionMode, is_tensor_method_or_property

from ...node import Node
from ...proxy import TraceError
from ...recording import frames
from ...recording.operators import magic_methods
from ...torch_internals import pytree
from ...torch_internals.fake_tensors import (
    detached,
    is_fake,
    unset_fake_temporarily,
)
from ...torch_internals.symbolic_sizes import DATA_DEPENDENT, SYMBOLIC, hint_of
from ...tracing.entered import note_mode
from ...tracing.state import State
from ...tracing.tracer import Tracer
from ...usedef.values import Argument, Value
from . import refusals
from .leaves import Leaves
from .sizes import Sizes
from .structures import attributes_of

if TYPE_CHECKING:
    from ...proxy import Proxy

Function = Callable[..., Value]


class ExampleTracer(Tracer):
    """Records what a program does with fake tensors.

    Attributes:
        sizes: the symbols, and what was asked about them.
        asked: questions about tensors, besides sizes, with the user's line.
        facts: the same about parameters and buffers, as sentences.
        paused: how many calls go on that are recorded as a whole.
        erasable: nodes that only take a value apart.
    """

    record_stack_traces = True

    def __init__(self, chosen: Tracer, leaves: Leaves) -> None:
        """Begin with an empty graph.

        Args:
            chosen: says which modules are leaves.
            leaves: what else is.
        """
        super().__init__()
        self._chosen = chosen
        self._leaves = leaves
        self.sizes: Sizes
        self.asked: dict[str, str] = {}
        self.facts: dict[str, str] = {}
        self.paused = 0
        self.erasable: set[Node] = set()
        self._node_of: dict[int, Node] = {}
        self._real_of: dict[int, torch.Tensor] = {}
        self._fake_of: dict[int, torch.Tensor] = {}
        self._alive: list[Value] = []

    @property
    def paths(self) -> dict[nn.Module, str]:
        """The modules of the root, and their dotted paths."""
        return self.submodule_paths or {}

    # -- values and nodes --------------------------------------------------

    def bind(self, node: Node, value: Value, given: Value = ()) -> Value:
        """Let a node stand for a value, and for the tensors in it.

        A tensor that was there before, such as the one that `contiguous`
        gives back, may be another one at run time.  So the program gets a
        new alias of it.

        Args:
            node: computes the value.
            value: a tensor, or something with tensors in it.
            given: the arguments of the call.

        Returns:
            The value for the program.
        """
        node.meta["val"] = pytree.tree_map(self.noted, value)
        if isinstance(value, torch.Tensor):
            if id(value) in self._node_of and not _keeps_identity(node):
                with self.pause():
                    value = value.view_as(value)
            self._node_of[id(value)] = node
            self._alive.append(value)
            return value
        if isinstance(value, tuple | list):
            items = [
                self._bind_item(node, operator.getitem, index, item)
                for index, item in enumerate(value)
            ]
            return items if type(value) is list else _like(value, items)
        if isinstance(value, dict):
            for key, item in value.items():
                self._bind_item(node, operator.getitem, key, item)
        elif not isinstance(value, nn.Module):
            for name, item in (attributes_of(value) or {}).items():
                self._bind_item(node, getattr, name, item)
        return value

    def _bind_item(
        self, whole: Node, get: Function, key: Value, item: Value
    ) -> Value:
        """Bind what is in a value, if there are tensors in it."""
        if any(isinstance(x, torch.Tensor) for x in pytree.tree_leaves(item)):
            node = self.create_node("call_function", get, (whole, key), {})
            self.erasable.add(node)
            return self.bind(node, item)
        return item

    def create_arg(self, a: Value) -> Argument:
        """What a node can hold for a value of the program."""
        if isinstance(a, torch.Tensor):
            return self.node_of(a)
        if isinstance(a, SYMBOLIC):
            try:
                return self.sizes.node(a)
            except KeyError:  # too rare to be written: fixed, and guarded
                return plain(a)
        if isinstance(a, torch.Size):
            return tuple(map(self.create_arg, a))
        return super().create_arg(a)

    def node_of(self, tensor: torch.Tensor) -> Node:
        """The node of a tensor; for one of the root, a new get_attr node.

        Raises:
            TraceError: the call that made it was not seen.
        """
        node = self._node_of.get(id(tensor))
        if node is None:
            real = self._real_of.get(id(tensor), tensor)
            if is_fake(real):
                raise TraceError(refusals.unseen(tensor, self.paths))
            path = self._tensor_path(real) or self._constant_path(real)
            node = self.create_node("get_attr", path, (), {})
            for each in (tensor, real, self.fake(real)):
                self._node_of[id(each)] = node
            node.meta["val"] = self.noted(self.fake(real))
        return node

    def noted(self, value: Value) -> Value:
        """What a node's `meta` keeps of a value: no gradients, no symbols."""
        if is_fake(value):
            with self.pause():
                return detached(self.sizes.mode, value)
        return hint_of(value)

    def fake(self, tensor: torch.Tensor) -> torch.Tensor:
        """The fake tensor for a tensor that is not part of the inputs."""
        if is_fake(tensor) or not isinstance(tensor, torch.Tensor):
            return tensor
        if id(tensor) not in self._fake_of:
            with self.pause():
                new = self.sizes.mode.from_tensor(tensor, static_shapes=True)
            self._fake_of[id(tensor)] = new
            self._real_of[id(new)] = tensor
            self._alive += [tensor, new]
        return self._fake_of[id(tensor)]

    # -- modules -----------------------------------------------------------

    def getattr(
        self,
        attr: str,
        attr_val: Value,
        parameter_proxy_cache: dict[str, Proxy],
    ) -> Value:
        """A fake tensor for a parameter or buffer."""
        return self.fake(attr_val)

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Whether a call is recorded as a whole, as the chosen tracer says."""
        return (
            m in self._leaves.modules
            or isinstance(m, torch.jit.ScriptModule)
            or self._chosen.is_leaf_module(m, module_qualified_name)
        )

    def call_module(
        self,
        m: nn.Module,
        forward: Function,
        args: tuple[Value, ...],
        kwargs: dict[str, Value],
    ) -> Value:
        """Record the call of a leaf, or run another module."""
        path = self.paths.get(m)
        if self.paused or not path:
            return forward(*args, **kwargs)
        calls = self.num_calls.get(path, 0)
        self.num_calls[path] = calls + 1
        call = f"{path}@{calls}" if calls else path
        scope, here = self.scope, (path, type(m))
        before = scope.module_path, scope.module_type
        try:
            scope.module_path, scope.module_type = here
            self.module_stack[call] = here
            if not self.is_leaf_module(m, path):
                return forward(*args, **kwargs)
            make = partial(self.create_node, "call_module", path)
            return self.whole(make, forward, args, kwargs)
        finally:
            self.module_stack.pop(call, None)
            scope.module_path, scope.module_type = before

    # -- calls -------------------------------------------------------------

    @contextmanager
    def pause(self) -> Iterator[None]:
        """A block in which nothing is recorded."""
        self.paused += 1
        try:
            yield
        finally:
            self.paused -= 1

    def whole(
        self,
        make: Callable[[Value, Value], Node],
        function: Function,
        args: tuple[Value, ...],
        kwargs: dict[str, Value],
    ) -> Value:
        """Record a call as one node.

        Args:
            make: makes the node, of its arguments.
            function: gives the result, for which nothing is recorded.
            args: of the call.
            kwargs: of the call.
        """
        lowered: Value = self.create_arg(args)
        named: Value = self.create_arg(kwargs)
        with self.pause():
            read = {*self._captured.read_training}
            result, is_real = self._run_call(function, args, kwargs)
            self._captured.read_training = read
        node = make(lowered, named)
        bind = self._bind_real if is_real else self.bind
        return bind(node, result)

    def see(self, function: Function, args: Value, kwargs: Value) -> Value:
        """Run a call of torch, and record it unless it only asks."""
        if self.paused:
            return function(*args, **kwargs)
        args, kwargs = pytree.tree_map(self.fake, (args, kwargs))
        name = getattr(function, "__name__", "")
        if name in _BY_ONES:
            self.sizes.ask_if_one(args[0])
        written = self.create_arg(args), self.create_arg(kwargs)
        result, is_real = self._run_call(function, args, kwargs)
        if result is None or any(
            isinstance(x, torch.Tensor) for x in pytree.tree_leaves(result)
        ):
            if name == "__get__" and result is None:
                return self._question(function, args, result)
            node = self._record(function, name, *written)
            bind = self._bind_real if is_real else self.bind
            return bind(node, result) if result is not None else None
        return self._question(function, args, result)

    def _run_call(
        self, function: Function, args: Value, kwargs: Value
    ) -> tuple[Value, bool]:
        """Call what is recorded as one node; with data, if it must be.

        Some operators have a wrong rule for tensors without data, or none, and
        a leaf may decide by values.

        Returns:
            The result, and whether it has data.
        """
        try:
            return function(*args, **kwargs), False
        except Exception as error:
            is_leaf = bool(self.paused)
            if not is_leaf and isinstance(error, DATA_DEPENDENT):
                raise
            try:
                with unset_fake_temporarily(), self.pause():
                    real = pytree.tree_map(self._real, (args, kwargs))
                    return function(*real[0], **real[1]), True
            except Exception:
                raise error from None

    def _real(self, value: Value) -> Value:
        """A tensor with some data, such as the fake one may have."""
        if not is_fake(value):
            return hint_of(value)
        if id(value) in self._real_of:
            return self._real_of[id(value)].detach().clone()
        sizes = [*map(hint_of, value.shape)]
        strides = [*map(hint_of, value.stride())]
        return torch.empty_strided(
            sizes, strides, dtype=value.dtype, device=value.device
        ).fill_(0 if value.dtype in _WHOLE else 1)

    def _bind_real(self, node: Node, value: Value) -> Value:
        """Bind the result of a run with data: all its sizes are unknown."""

        def fake(place: Node, real: torch.Tensor) -> torch.Tensor:
            new = self.sizes.fake(real, place, None, is_input=False)
            bound: torch.Tensor = self.bind(place, new)
            return bound

        if isinstance(value, torch.Tensor):
            return fake(node, value)
        if isinstance(value, tuple | list):
            items = []
            for index, item in enumerate(value):
                get = self.create_node(
                    "call_function", operator.getitem, (node, index), {}
                )
                items.append(self._bind_real(get, item))
            return items if type(value) is list else _like(value, items)
        return value

    def _record(
        self, function: Function, name: str, args: Value, kwargs: Value
    ) -> Node:
        """The node for a call."""
        make = partial(self.create_node, "call_function")
        if name in ("__get__", "__set__"):
            attribute: Value = function
            key = attribute.__self__.__name__
            get = getattr if name == "__get__" else setattr
            return make(
                get, (args[0], key, *args[1:2][: name == "__set__"]), {}
            )
        if not is_tensor_method_or_property(function):
            return make(function, args, kwargs)
        if name in _OPERATORS and not kwargs:
            target, count, is_reflected = _OPERATORS[name]
            if len(args) == count:
                return make(target, args[::-1] if is_reflected else args, {})
        return self.create_node("call_method", name, args, kwargs)

    def _question(
        self, function: Function, args: Value, result: Value
    ) -> Value:
        """Note what was asked of a tensor."""
        name = getattr(function, "__name__", "")
        if name == "__get__":
            getter: Value = function
            name = getter.__self__.__name__
        if name in _KNOWN:
            self._ask_of_state(name, args, result)
        elif name in _ASKED:
            self.asked.setdefault(_ASKED[name], frames.where())
            if _ASKED[name] == "layout({})":
                self.sizes.ask_if_one(args[0])
            self._ask_of_state(name, args, result)
        return result

    def _ask_of_state(self, name: str, args: Value, result: Value) -> None:
        """Note what was asked of a parameter or buffer."""
        real = args and self._real_of.get(id(args[0]))
        path = None if real is None else self._tensor_path(real)
        if path and f"{path}.{name}" not in self.facts:
            self.facts[f"{path}.{name}"] = (
                f"{path}.{name} was {result!r}: {frames.where()}"
            )

    def call_leaf(
        self, function: Function, args: Value, kwargs: Value
    ) -> Value:
        """Record the call of a leaf function, if it is given tensors."""
        given = pytree.tree_leaves((args, kwargs))
        if self.paused or not any(
            isinstance(each, (torch.Tensor, *SYMBOLIC)) for each in given
        ):
            return function(*args, **kwargs)
        make = partial(self.create_node, "call_function", function)
        return self.whole(make, function, args, kwargs)

    # -- the trace ---------------------------------------------------------

    def begin(self, state: State) -> None:
        """Begin with what the root holds."""
        self._state = state
        self.submodule_paths = state.modules
        self.tensor_attrs = state.constants
        self._captured.begin(state)

    def note_modes(self, output: Node) -> None:
        """Note at the output which modules' modes the graph has fixed."""
        read = self._captured.read_training
        note_mode(output, self.root, self.paths, read)

    def finish(self) -> None:
        """Forget the root, and what the trace kept alive."""
        self.submodule_paths = self._state = None
        self._captured.end()
        self._alive.clear()


class Watch(TorchFunctionMode):
    """Shows a tracer each call of torch."""

    def __init__(self, tracer: ExampleTracer) -> None:
        """Make it for a tracer."""
        super().__init__()
        self._tracer = tracer

    def __torch_function__(
        self,
        func: Function,
        types: Value,
        args: Value = (),
        kwargs: Value = None,
    ) -> Value:
        """Hand a call to the tracer."""
        return self._tracer.see(func, args, kwargs or {})


def plain(number: Value) -> Value:
    """The number itself, which is fixed by a guard from then on."""
    if isinstance(number, torch.SymInt):
        return int(number)
    if isinstance(number, torch.SymFloat):
        return float(number)
    return bool(number) if isinstance(number, torch.SymBool) else number


def _keeps_identity(node: Node) -> bool:
    """Whether a call always gives back the tensor that it was given."""
    name = str(node.target)
    in_place = name.endswith("_") and not name.endswith("__")
    return node.op == "call_method" and in_place


def _like(value: Value, items: list[Value]) -> Value:
    """A tuple of the same type; others than plain ones stay as they are."""
    return tuple(items) if type(value) is tuple else value


_OPERATORS: Final = {
    **{
        name.strip("_"): (getattr(operator, name), text.count("{}"), False)
        for name, text in magic_methods.items()
    },
    **{
        f"__{name.strip('_')}__": (
            getattr(operator, name),
            text.count("{}"),
            False,
        )
        for name, text in magic_methods.items()
    },
    **{
        f"__r{name}__": (getattr(operator, name), 2, True)
        for name in ("sub", "pow", "truediv", "floordiv", "mod")
    },
    "__setitem__": (operator.setitem, 3, False),
}
"""Name of a method → operator, number of operands, whether in reverse."""

_KNOWN: Final = frozenset(
    "dtype device layout ndim dim shape size numel nelement".split()
)
"""What follows from what each guard checks, but not of parameters."""

_BY_ONES: Final = ("squeeze", "squeeze_")
"""Calls whose result has fewer dimensions where a size is 1."""

_WHOLE: Final = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
"""Types of numbers that may be indices."""

_ASKED: Final = {
    **dict.fromkeys(
        ("stride", "is_contiguous", "storage_offset", "is_non_overlapping"),
        "layout({})",
    ),
    **dict.fromkeys(
        ("requires_grad", "is_leaf", "grad_fn"), "{}.requires_grad"
    ),
    "is_conj": "{}.is_conj()",
    "is_neg": "{}.is_neg()",
    "is_inference": "{}.is_inference()",
}
"""What is guarded if it is asked of any tensor → of which expression, for each
input."""
