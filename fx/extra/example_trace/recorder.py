"""Extra: records the calls of torch that a program makes with fake tensors.

While the program runs, a mode of torch shows us each call of a function or
method of torch.  A call that gives a tensor becomes a node:

    y = F.relu(x) + 1    →    relu = F.relu(x);  add = relu + 1

Tensors are known by their identity, so all that were seen are kept alive.  A
call that gives something else, such as `x.dtype`, is a question.  Most answers
follow from what each guard checks; of the others it is noted who asked.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Final

import torch
from torch import nn
from torch.overrides import TorchFunctionMode, is_tensor_method_or_property

from ...node import Node, map_arg
from ...ordered.opcodes import Opcode, Target
from ...proxy import TraceError
from ...recording import frames
from ...recording.operators import magic_methods
from ...torch_internals import pytree
from ...torch_internals.fake_tensors import (
    detached,
    is_fake,
    unset_fake_temporarily,
)
from ...torch_internals.functorch import is_wrapped
from ...torch_internals.operators import switch_gradients
from ...torch_internals.symbolic_sizes import DATA_DEPENDENT, SYMBOLIC, hint_of
from ...tracing.entered import note_mode
from ...tracing.patching import TRACES
from ...tracing.state import State
from ...tracing.tracer import Tracer
from ...usedef.values import Argument, Value
from . import refusals
from .blocks import Blocks
from .leaves import Leaves
from .sizes import Sizes
from .structures import attributes_of
from .submodules import CHECKPOINT_OPTIONS, Submodule, flat_dims

if TYPE_CHECKING:
    from ...proxy import Proxy

Function = Callable[..., Value]


class ExampleTracer(Tracer):
    """Records what a program does with fake tensors.

    Attributes:
        sizes: the symbols, and what was asked about them.
        facts: what was asked of parameters and buffers, as sentences.
        node_by_id: id of a tensor → the node that computes it.
        shown: what the program gets for an attribute of a module.
        inner: the innermost function that is recorded as a module.
        blocks: of the program, in which calls mean something else.
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
        self.facts: dict[str, str] = {}
        self.inner: Submodule | None = None
        self.shown: Callable[[Value], Value] = self.fake
        self.blocks = Blocks(self)
        self.paused = 0
        self.erasable: set[Node] = set()
        self.node_by_id: dict[int, Node] = {}
        self._real_of: dict[int, torch.Tensor] = {}
        self._fake_of: dict[int, torch.Tensor] = {}
        self._alive: list[Value] = []
        self._constants: list[tuple[torch.Tensor, int, str]] = []

    @property
    def paths(self) -> dict[nn.Module, str]:
        """The modules of the root, and their dotted paths."""
        return self.submodule_paths or {}

    def create_node(
        self,
        kind: Opcode,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: Value = None,
    ) -> Node:
        """Add a node; in a submodule, nodes from outside are lifted."""
        if self.inner is not None:
            lifted: Value = map_arg((args, kwargs), self.inner.lift)
            args, kwargs = lifted
        return super().create_node(kind, target, args, kwargs, name, type_expr)

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
            if id(value) in self.node_by_id and not _keeps_identity(node):
                with self.pause():
                    value = value.view_as(value)
            self.node_by_id[id(value)] = node
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
        node = self.node_by_id.get(id(tensor))
        if node is None:
            real = self._real_of.get(id(tensor), tensor)
            if is_fake(real):
                paths = self.paths if self.blocks.begun else None
                raise TraceError(refusals.unseen(tensor, paths))
            path = self._tensor_path(real)
            if path is None:
                path, fake = self._constant_path(real), self.fake(real)
                made = fake, fake._version, frames.where()  # noqa: SLF001
                self._constants.append(made)
            node = self.create_node("get_attr", path, (), {})
            self.erasable.add(node)
            for each in (tensor, real, self.fake(real)):
                self.node_by_id[id(each)] = node
            node.meta["val"] = self.noted(self.fake(real))
        return node

    def noted(self, value: Value) -> Value:
        """What a node's `meta` keeps of a value: no gradients, no symbols."""
        if isinstance(value, torch.Tensor) and is_wrapped(value):
            return None
        if is_fake(value):
            with self.pause():
                return detached(self.sizes.mode, value)
        return hint_of(value)

    def fake(self, tensor: torch.Tensor) -> torch.Tensor:
        """The fake tensor for a tensor that is not part of the inputs."""
        if not _is_tensor(tensor) or is_fake(tensor) or is_wrapped(tensor):
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
        return self.shown(attr_val)

    @contextmanager
    def showing(self, shown: Callable[[Value], Value]) -> Iterator[None]:
        """A block that is not recorded, and reads parameters otherwise.

        Args:
            shown: what an attribute of a module is.
        """
        before, self.shown = self.shown, shown
        try:
            with self.pause():
                yield
        finally:
            self.shown = before

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
            result, is_real = self._run_call(function, args, kwargs, True)
            self._captured.read_training = read
        node = make(lowered, named)
        bind = self._bind_real if is_real else self.bind
        return bind(node, result)

    def see(self, function: Function, args: Value, kwargs: Value) -> Value:
        """Run a call of torch, and record it unless it only asks."""
        if self.paused:
            return function(*args, **kwargs)
        if function is switch_gradients:
            self.blocks.switch_gradients(function, *args)
            return function(*args)
        args, kwargs = pytree.tree_map(self.fake, (args, kwargs))
        name = getattr(function, "__name__", "")
        if name in _BY_ONES:
            self.sizes.ask_if_one(args[0])
        try:
            written = self.create_arg(args), self.create_arg(kwargs)
        except NotImplementedError:
            if _has_values((args, kwargs)):
                raise
            with unset_fake_temporarily(), self.pause():
                return function(*args, **kwargs)  # of an array of numpy, say
        with self.pause():
            result, is_real = self._run_call(function, args, kwargs, False)
        if result is None or any(
            isinstance(x, torch.Tensor) for x in pytree.tree_leaves(result)
        ):
            if name == "__get__" and result is None:
                return self._question(function, args, kwargs, result)
            node = self._record(function, name, *written)
            bind = self._bind_real if is_real else self.bind
            return bind(node, result) if result is not None else None
        return self._question(function, args, kwargs, result)

    def _run_call(
        self, function: Function, args: Value, kwargs: Value, is_leaf: bool
    ) -> tuple[Value, bool]:
        """Call what is recorded as one node; with data, if it must be.

        Some operators have a wrong rule for tensors without data, or none, and
        a leaf may decide by values.

        Args:
            function: gives the result.
            args: of the call.
            kwargs: of the call.
            is_leaf: whether it is a leaf, and no function of torch.

        Returns:
            The result, and whether it has data.
        """
        try:
            return function(*args, **kwargs), False
        except Exception as error:
            if not is_leaf and isinstance(error, DATA_DEPENDENT):
                raise
            try:
                with unset_fake_temporarily(), self.showing(self._real):
                    real = pytree.tree_map(self._real, (args, kwargs))
                    result = function(*real[0], **real[1])
            except Exception:
                raise error from None
            leaves = pytree.tree_leaves(result)
            if not all(isinstance(x, torch.Tensor | NoneType) for x in leaves):
                message = refusals.data_dependent(error, self.paths)
                raise TraceError(message) from error
            return result, True

    def _real(self, value: Value) -> Value:
        """A tensor with some data, such as the fake one may have."""
        if not is_fake(value):
            return value.clone() if _is_tensor(value) else hint_of(value)
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
        is_method = getattr(torch.Tensor, name, None) is function
        if not is_method and not is_tensor_method_or_property(function):
            return make(function, args, kwargs)
        if name in _OPERATORS and not kwargs:
            target, count, is_reflected = _OPERATORS[name]
            if len(args) == count:
                return make(target, args[::-1] if is_reflected else args, {})
        return self.create_node("call_method", name, args, kwargs)

    def _question(
        self, function: Function, args: Value, kwargs: Value, result: Value
    ) -> Value:
        """Note what was asked of a tensor.

        Most answers follow from dtype, device and sizes, which each call of
        the graph checks.  Any other is asked again at this place.
        """
        name = getattr(function, "__name__", "")
        is_attribute = name == "__get__"
        if is_attribute:
            getter: Value = function
            name = getter.__self__.__name__
        node = self.node_by_id.get(id(args[0])) if args else None
        if name in _FOLLOWS:
            if node is None or node.op == "get_attr":
                self._note_fact(name, args, result)
            elif name == "dtype" and node.op != "placeholder":
                self.blocks.ask_what_casts(args[0].device.type)
        elif name == "grad_fn":
            for each in (args[0].requires_grad, args[0].is_leaf):
                bool(each)
        elif not isinstance(result, _ANSWERS):
            raise TraceError(refusals.data_dependent(None, self.paths))
        elif node is not None and node.op == "placeholder" and not self.inner:
            given = [*map(repr, args[1:])]
            given += [f"{key}={kwargs[key]!r}" for key in kwargs]
            call = "" if is_attribute else f"({', '.join(given)})"
            self.sizes.ask_input(f"{node}.{name}{call}", result)
        else:
            lowered = self.create_arg(args), self.create_arg(kwargs)
            again = self._record(function, function.__name__, *lowered)
            self.sizes.check_equal(again, self.create_arg(result))
        return result

    def _note_fact(self, name: str, args: Value, result: Value) -> None:
        """Note what was asked of a parameter or buffer."""
        real = args and self._real_of.get(id(args[0]), args[0])
        path = self._tensor_path(real) if _is_tensor(real) else None
        if path and f"{path}.{name}" not in self.facts:
            self.facts[f"{path}.{name}"] = (
                f"{path}.{name} was {result!r}: {frames.where()}"
            )

    def see__enter__(
        self, enter: Function, args: Value, kwargs: Value
    ) -> Value:
        """Begin a block of autocast or inference mode."""
        if not self.paused:
            self.blocks.enter(args[0])
        with self.pause():
            return enter(*args)

    def see__exit__(self, leave: Function, args: Value, kwargs: Value) -> Value:
        """End a block of autocast or inference mode."""
        if not self.paused:
            self.blocks.leave(args[0])
        with self.pause():
            return leave(*args)

    def see_question(self, ask: Function, args: Value, kwargs: Value) -> Value:
        """Answer a question about a mode of torch."""
        if not self.paused:
            self.blocks.ask(ask, args)
        return ask(*args, **kwargs)

    def see_number(self, method: Function, args: Value, kwargs: Value) -> Value:
        """Answer the program's question for the hash or text of a size."""
        if self.paused or not frames.is_user(sys._getframe(2)):
            return method(*args)
        return getattr(plain(args[0]), method.__name__)()

    def call_leaf_method(
        self, method: Function, args: Value, kwargs: Value
    ) -> Value:
        """Record the call of an object, such as a scripted function."""
        function = partial(method, args[0])
        return self.call_leaf(function, args[1:], kwargs, args[0])

    def call_leaf(
        self,
        function: Function,
        args: Value,
        kwargs: Value,
        target: Function | None = None,
    ) -> Value:
        """Record the call of a leaf function, if it is given tensors.

        Args:
            function: gives the result.
            args: of the call.
            kwargs: of the call.
            target: what the node calls, if that is not the function.
        """
        if self.paused or not _has_values((args, kwargs)):
            return function(*args, **kwargs)
        make = partial(self.create_node, "call_function", target or function)
        return self.whole(make, function, args, kwargs)

    def see_context(self, ctx: Value) -> None:
        """Keep the forward of a torch.autograd.Function whole.

        Programs bind `apply` to names of their own.  It makes a context first,
        and then looks up `forward`, which takes the context or not.
        """
        cls: Value = ctx._forward_cls  # noqa: SLF001
        owner = next(one for one in cls.__mro__ if "forward" in vars(one))
        base = torch.autograd.Function
        first = int(cls.setup_context is base.setup_context)

        def see_forward(called: Value) -> Value:
            forward: Value = getattr(called, "__func__", called)

            @functools.wraps(forward)
            def recorded(*given: Value, **named: Value) -> Value:
                if getattr(TRACES.current, "example_tracer", None) is not self:
                    return forward(*given, **named)
                run = partial(forward, *given[:first])
                return self.call_leaf(run, given[first:], named, cls.apply)

            return staticmethod(recorded)

        TRACES.patch(owner, ["forward"], see_forward)

    # -- functions of functions --------------------------------------------

    def see_checkpoint(
        self, checkpoint: Function, args: Value, kwargs: Value
    ) -> Value:
        """Record a checkpointed function as a module."""
        if self.paused:
            return checkpoint(*args, **kwargs)
        options = {k: kwargs.pop(k) for k in CHECKPOINT_OPTIONS & kwargs.keys()}
        inner = Submodule(self)
        try:
            result = args[0](*args[1:], **kwargs)
            leaves = inner.returns(result)
        finally:
            inner.end()
        given = inner.stored(), *inner.lifted
        node = self.create_node("call_function", checkpoint, given, options)
        return self._bind_leaves(node, result, leaves)

    def see_vmap(self, vmap: Function, args: Value, kwargs: Value) -> Value:
        """Record a function that torch.vmap calls as a module."""
        function, in_dims, out_dims, randomness, chunk, *given = args
        if self.paused:
            return vmap(*args, **kwargs)
        dims = flat_dims(in_dims, tuple(given)) + flat_dims(0, kwargs)
        outside = [
            x for x in pytree.tree_leaves((given, kwargs)) if _is_tensor(x)
        ]
        batched = [
            self.create_arg(x)
            for x, dim in zip(outside, dims, strict=True)
            if dim is not None
        ]
        inner = Submodule(self)

        def recorded(*rows: Value, **named: Value) -> Value:
            before, self.paused = self.paused, 0
            try:
                inside = filter(_is_tensor, pytree.tree_leaves((rows, named)))
                for row, dim in zip(inside, dims, strict=True):
                    if dim is not None:
                        made = inner.placeholder("row")
                        self.node_by_id[id(row)] = made
                        self._alive.append(row)
                result = function(*rows, **named)
                inner.returns(result)
                return result
            finally:
                self.paused = before

        try:
            with self.pause():
                rest = in_dims, out_dims, randomness, chunk, *given
                result = vmap(recorded, *rest, **kwargs)
        finally:
            inner.end()
        places = (
            *(d for d in dims if d is not None),
            *[None] * len(inner.lifted),
        )
        options = {"in_dims": places, "out_dims": out_dims}
        options |= {"randomness": randomness, "chunk_size": chunk}
        make = partial(self.create_node, "call_function")
        mapped = make(torch.vmap, (inner.stored(),), options)
        node = make(operator.call, (mapped, *batched, *inner.lifted), {})
        leaves = [x for x in pytree.tree_leaves(result) if _is_tensor(x)]
        return self._bind_leaves(node, result, leaves)

    def see_cond(self, cond: Function, args: Value, kwargs: Value) -> Value:
        """Record the branches of torch.cond as modules."""
        if self.paused:
            return cond(*args, **kwargs)
        names = "pred", "true_fn", "false_fn", "operands"
        named = {
            "operands": (),
            **dict(zip(names, args, strict=False)),
            **kwargs,
        }
        branches, results = [], []
        for name in names[1:3]:
            inner = Submodule(self)
            try:
                results.append(named[name](*named["operands"]))
                branches.append((inner, inner.returns(results[-1])))
            finally:
                inner.end()
        (one, leaves), (two, others) = branches
        with self.pause():
            if [*map(_kind, leaves)] != [*map(_kind, others)]:
                raise TraceError(refusals.branches())
        outside = [*{**one.lifted, **two.lifted}]
        for inner, _ in branches:
            inner.take_in(outside)
        modules = one.stored(), two.stored()
        given = self.create_arg(named["pred"]), *modules, tuple(outside)
        node = self.create_node("call_function", cond, given, {})
        return self._bind_leaves(node, results[0], leaves)

    def _bind_leaves(
        self, node: Node, result: Value, leaves: list[torch.Tensor]
    ) -> Value:
        """Bind the tensors of a result, which a module gives as a tuple."""
        if isinstance(result, torch.Tensor):
            return self.bind(node, result)
        for index, leaf in enumerate(leaves):
            self._bind_item(node, operator.getitem, index, leaf)
        return result

    def store(self, prefix: str, value: Value) -> str:
        """Put something on the root until the trace has ended; its path."""
        return self._store(prefix, value)

    # -- the trace ---------------------------------------------------------

    def begin(self, state: State) -> None:
        """Begin with what the root holds."""
        self._state = state
        self.submodule_paths = state.modules
        self.tensor_attrs = state.constants
        self._captured.begin(state)

    def check_constants(self) -> None:
        """Raise TraceError if a tensor that no call has made is written to."""
        for fake, version, line in self._constants:
            if fake._version != version:  # noqa: SLF001
                raise TraceError(refusals.written(line))

    @property
    def stored(self) -> list[str]:
        """The names of what the trace has put on the root."""
        return self._added

    def is_held(self, path: str, value: Value) -> bool:
        """Whether a fake tensor stands for what the root has there."""
        real = self._real_of.get(id(value))
        return real is not None and self._tensor_path(real) == path

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


def _is_tensor(value: Value) -> bool:
    """Whether it is a tensor."""
    return isinstance(value, torch.Tensor)


def _kind(tensor: torch.Tensor) -> tuple[Value, ...]:
    """What two tensors have in common if one may stand for the other."""
    return tensor.dtype, tensor.device, *tensor.shape


def _has_values(value: Value) -> bool:
    """Whether there are tensors in a value, or numbers computed of sizes."""
    kinds = (torch.Tensor, *SYMBOLIC)
    return any(isinstance(leaf, kinds) for leaf in pytree.tree_leaves(value))


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

_BY_ONES: Final = ("squeeze", "squeeze_")
"""Calls whose result has fewer dimensions where a size is 1."""

_WHOLE: Final = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
"""Types of numbers that may be indices."""

_FOLLOWS: Final = frozenset(
    "dtype device layout ndim dim ndimension shape size numel nelement type "
    "is_floating_point is_complex is_signed element_size itemsize nbytes "
    "get_device is_cpu is_cuda is_meta is_sparse is_quantized is_nested "
    "is_mkldnn is_mps is_xpu __len__".split()
)
"""Questions whose answer follows from what each guard checks."""

_ANSWERS: Final = (bool, int, float, str, tuple, NoneType, *SYMBOLIC)
"""Types of answers that can be compared."""
