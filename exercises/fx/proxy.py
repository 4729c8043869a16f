"""Stage 03, proxies and magic methods: values that write down what is done.

A Proxy stands for a value that is not known yet: the result of one node of a
graph.  Each operation on it (an operator, a method, a function of torch) adds
a node to that graph and returns a Proxy for the new node.  So running a
function on proxies records the function as a graph:

    x + 1        Python calls    Proxy.__add__            call_function
    x.relu()     Python calls    Proxy.__getattr__, then
                                 Attribute.__call__       call_method
    torch.abs(x) torch calls     Proxy.__torch_function__ call_function

All three end in `TracerBase.create_proxy`, which turns the arguments into
what a node can hold (`create_arg`), makes the node (`create_node`) and wraps
it (`proxy`).  A subclass may change each of these steps.
"""

from __future__ import annotations

import copy
import dataclasses
import enum
import functools
import operator
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias, cast

import torch

from .graph import Graph
from .immutable_collections import immutable_dict, immutable_list
from .linked_list.opcodes import Opcode, Target
from .node import Node, map_arg
from .recording import errors, frames
from .recording.notes import NOTES, inherit
from .torch_private.overloads import HigherOrderOperator
from .use_def.arguments import constructed, parts
from .use_def.dead_code import has_side_effect
from .use_def.errors import refuse_torchs
from .use_def.values import LEAVES, AnyValue, Argument, ProxyBase, base_types

__all__ = [
    "Attribute",
    "GraphAppendingTracer",
    "ParameterProxy",
    "Proxy",
    "Scope",
    "ScopeContextManager",
    "TraceError",
    "TracerBase",
]


class TraceError(ValueError):
    """The traced code does something that a graph cannot express.

    The first line of the message says what, the rest names the user's line
    and a way out.

    torch.fx: proxy.py, TraceError
    """


class TracerBase:
    """Records operations on proxies into a graph.

    Attributes:
        graph: the graph that nodes are added to.
        record_stack_traces: keep the user's stack with each node.
        check_mutable_operations: refuse functions of torch that write to
            their arguments.
        trace_asserts: record `assert proxy` instead of refusing it.
        proxy_buffer_attributes: reading a buffer gives a proxy.
        traced_func_name: the method of a root module that is traced.
        scope: where in the module hierarchy the trace is.
        module_stack: the calls of modules that have not returned yet,
            outermost first: key of the call -> (path, class).
        node_name_to_scope: name of a node -> the (path, class) of the module
            in whose forward it was recorded.

    torch.fx: proxy.py, TracerBase
    """

    graph: Graph
    record_stack_traces: bool = False
    check_mutable_operations: bool = False
    trace_asserts: bool = False
    proxy_buffer_attributes: bool = False
    traced_func_name: str = "forward"
    _is_tracing: bool = False
    _refuse_writes: ClassVar[Callable[..., None]]
    """Of fx.operator_schemas; `import fx` puts it here."""
    _held: tuple[type, ...] = (*base_types, enum.Enum, HigherOrderOperator)
    scope: Scope
    module_stack: OrderedDict[str, tuple[str, AnyValue]]
    node_name_to_scope: dict[str, tuple[str, AnyValue]]

    def __init__(self) -> None:
        """Begin at the root, outside of all modules."""
        self.scope = Scope("", None)
        self.module_stack = OrderedDict()
        self.node_name_to_scope = {}

    def create_proxy(
        self,
        kind: Opcode,
        target: Target,
        args: tuple[AnyValue, ...],
        kwargs: dict[str, AnyValue],
        name: str | None = None,
        type_expr: AnyValue = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Record an operation and return a proxy for its result.

        Args:
            kind: the opcode.
            target: what is called, fetched or bound.
            args: positional arguments, as the user's code gave them; for a
                placeholder, its default.
            kwargs: keyword arguments, likewise.
            name: the name to ask for.
            type_expr: the type of the result, for annotations.
            proxy_factory_fn: wraps the node instead of `self.proxy`.

        Raises:
            NotImplementedError: a node cannot hold one of the arguments.
            AssertionError: `create_arg` gave None for the arguments.

        torch.fx: proxy.py, TracerBase.create_proxy
        """
        lowered: AnyValue = self.create_arg(args)
        named: AnyValue = self.create_arg(kwargs) if kwargs else {}
        if lowered is None or named is None:  # a graph takes these for ()
            raise AssertionError(
                f"{type(self).__name__}.create_arg gave None for the "
                f"arguments of {target}: return what a node can hold"
            )
        node = self.create_node(kind, target, lowered, named, name, type_expr)
        if proxy_factory_fn is None:
            return self.proxy(node)
        return proxy_factory_fn(node)

    def create_node(
        self,
        kind: Opcode,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: AnyValue = None,
    ) -> Node:
        """Add a node to the graph, with notes about where it was recorded.

        Override this to check or annotate every operation recorded.

        Args:
            kind: the opcode.
            target: what is called, fetched or bound.
            args: positional arguments, as a node holds them.
            kwargs: keyword arguments, likewise.
            name: the name to ask for.
            type_expr: the type of the result, for annotations.

        Raises:
            RuntimeError: `check_mutable_operations`, and the function writes
                to an argument; a trace that has ended records more.

        torch.fx: proxy.py, TracerBase.create_node
        """
        if self.check_mutable_operations and callable(target):
            self._refuse_writes(target, args, kwargs)
        graph = self.graph
        if graph.is_finished:
            self.check_unfinished(kind, target)
        node = graph.create_node(kind, target, args, kwargs, name, type_expr)
        module = self.scope.module_path, self.scope.module_type
        self.node_name_to_scope[node._name] = module
        if NOTES.get().preserved:
            inherit(node)
        elif self.module_stack:
            node.meta["nn_module_stack"] = self.module_stack.copy()
        if self.record_stack_traces and not node.stack_trace:
            trace = frames.user_stack()
            if trace:
                node.stack_trace = trace
        return node

    def check_unfinished(self, kind: Opcode, target: Target) -> None:
        """Called when a node is recorded and the graph has its output."""

    def proxy(self, node: Node) -> Proxy:
        """The proxy that user code gets for a node.

        torch.fx: proxy.py, TracerBase.proxy
        """
        return Proxy(node, self)

    def create_arg(self, a: AnyValue) -> Argument:
        """Turn a value of the user's code into what a node can hold.

        Proxies become their nodes, containers are rebuilt with each item
        turned in the same way, and constants stay what they are. A dataclass
        becomes a node that constructs it. An object with a method
        `__fx_create_arg__(tracer)` is asked for its own result. Override
        this for more types.

        Raises:
            NotImplementedError: a value of another type.
            RuntimeError: a proxy inside a key of a dict.
            TypeError: a dataclass whose constructor does not keep its fields.

        Cost: O(size of `a`).

        torch.fx: proxy.py, TracerBase.create_arg
        """
        raise NotImplementedError("stage 03: TracerBase.create_arg")

    def create_other_arg(self, a: AnyValue) -> Argument:
        """Do what `create_arg` does, for types that it does not name.

        They are subclasses of those that it names, tensors and dataclasses.
        """
        if isinstance(a, Proxy):
            return a.node
        refuse_torchs(a)
        if hasattr(a, "__fx_create_arg__"):
            lowered: Argument = a.__fx_create_arg__(self)
            return lowered
        if isinstance(a, tuple):  # a subclass of it, named or not
            items = [self.create_arg(item) for item in a]
            make: Callable[..., Argument] = cast("AnyValue", type(a))
            return make(*items) if hasattr(a, "_fields") else make(items)
        if isinstance(a, list):
            return [self.create_arg(item) for item in a]
        if isinstance(a, dict):
            return _lower_dict(self, a)
        if isinstance(a, self._held) and not proxies_in([a], fields=True):
            return a
        if dataclasses.is_dataclass(a) and not isinstance(a, type):
            specs = dataclasses.fields(a)
            given = {f.name: getattr(a, f.name) for f in specs}
            constructed(type(a), given)
            fields = {
                f.name: self.create_arg(given[f.name]) for f in specs if f.init
            }
            return self.create_node("call_function", type(a), (), fields)
        return errors.numpy_number(a)

    def to_bool(self, obj: Proxy) -> bool:
        """What `bool(proxy)` is: unknown while tracing, so a TraceError.

        Override this if the tracer knows more.

        torch.fx: proxy.py, TracerBase.to_bool
        """
        raise TraceError(errors.condition(obj))

    def iter(self, obj: Proxy) -> Iterator[AnyValue]:
        """What iterating over a proxy gives; unknown, so a TraceError.

        Override this if the tracer knows more.

        torch.fx: proxy.py, TracerBase.iter
        """
        raise TraceError(errors.iteration(obj))

    def keys(self, obj: Proxy) -> AnyValue:
        """What `proxy.keys()`, and so `**proxy`, gives: a recorded call.

        Override this to return the keys, if the tracer knows them.

        torch.fx: proxy.py, TracerBase.keys
        """
        return Attribute(obj, "keys")()


CONSTANTS: Final = LEAVES - {torch.Tensor}
"""Exact types of values that a node holds as they are, in every graph."""


def _lower_dict(tracer: TracerBase, a: dict[AnyValue, AnyValue]) -> Argument:
    """A dict with the same keys, which must not hold a proxy."""
    lowered = {}
    for key, value in a.items():
        if not isinstance(key, str):
            key = tracer.create_arg(key)
            map_arg(key, _refuse_key)
        lowered[key] = tracer.create_arg(value)
    return lowered


def _refuse_key(node: Node) -> None:
    """Raise for a dict whose key is the value of a node."""
    raise RuntimeError(
        "Keys for dictionaries used as an argument cannot contain a Node. "
        f"Got key: {node}"
    )


class GraphAppendingTracer(TracerBase):
    """Records into an existing graph, without tracing anything.

    `Proxy(node)` uses one, so that passes can write operators on nodes.

    torch.fx: proxy.py, GraphAppendingTracer
    """

    def __init__(self, graph: Graph) -> None:
        """Make a tracer that adds to `graph`, at its insert point."""
        super().__init__()
        self.graph = graph


class Scope:
    """The module in whose forward a node is recorded.

    Attributes:
        module_path: dotted path of the module whose forward runs, "" at the
            root.
        module_type: that module's class, None at the root.

    torch.fx: proxy.py, Scope
    """

    def __init__(self, module_path: str, module_type: AnyValue) -> None:
        """Make a scope of a path and a class."""
        self.module_path = module_path
        self.module_type = module_type


class ScopeContextManager:
    """Overwrites a scope with another one until a `with` block ends.

    torch.fx: proxy.py, ScopeContextManager
    """

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        """Overwrite `scope` with `current_scope`, remembering what it was."""
        self._scope = scope
        self._path, self._type = scope.module_path, scope.module_type
        scope.module_path = current_scope.module_path
        scope.module_type = current_scope.module_type

    def __enter__(self) -> Scope:
        """The scope that was overwritten."""
        return self._scope

    def __exit__(self, *raised: object) -> None:
        """Write the old values back."""
        self._scope.module_path = self._path
        self._scope.module_type = self._type


# -- the magic methods -----------------------------------------------------


def _records(function: Callable[..., AnyValue]) -> Callable[..., Proxy]:
    """A method that records `function(self, …)`."""

    def method(*args: AnyValue, **kwargs: AnyValue) -> Proxy:
        """Record `function` with the operands, of which the first is self."""
        tracer: TracerBase = args[0].tracer
        return tracer.create_proxy("call_function", function, args, kwargs)

    method.__name__ = function.__name__
    return method


def _reflects(function: Callable[..., AnyValue]) -> Callable[..., Proxy]:
    """A method that records `function(other, self)`."""

    def method(self: Proxy, other: AnyValue) -> Proxy:
        """Record `function`; Python passes the operands the other way round."""
        args = (other, self)
        return self.tracer.create_proxy("call_function", function, args, {})

    name = f"__r{function.__name__.strip('_')}__"
    method.__name__ = method.__qualname__ = name
    return method


_Op: TypeAlias = "Callable[..., Proxy]"

if TYPE_CHECKING:

    class _Like(torch.Tensor):
        """To a type checker a Proxy is a tensor: torch's functions take it.

        (At run time `isinstance` tells the two apart.) The attributes below
        are those for which a Proxy gives something other than a tensor does.
        """

        __eq__: AnyValue
        __ne__: AnyValue
        __pos__: AnyValue
        __neg__: AnyValue
        __abs__: AnyValue
        __pow__: AnyValue
        __rtruediv__: AnyValue
        shape: AnyValue
        ndim: AnyValue

else:
    _Like = ProxyBase


class Assigned:
    """An attribute of tensors whose assignment is recorded.

    Reading it gives an Attribute, as reading any other name does; assigning
    it records a call of setattr. A user's subclass of Proxy may keep an
    attribute of its own under the name.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        """Learn which attribute of which class it is."""
        self._module, self._name = owner.__module__, name

    def __get__(self, proxy: Proxy | None, owner: type) -> AnyValue:
        """What the proxy itself has under the name, or an Attribute.

        Of the class it is this object, as `inspect.getmembers` asks for it.
        """
        if proxy is None:
            return self
        attributes = vars(proxy)
        if self._name in attributes:
            return attributes[self._name]
        return proxy.__getattr__(self._name)

    def __set__(self, proxy: Proxy, value: AnyValue) -> None:
        """Record the assignment."""
        if type(proxy).__module__ != self._module:
            vars(proxy)[self._name] = value
            return
        args = (proxy, self._name, value)
        proxy.tracer.create_proxy("call_function", setattr, args, {})


class Proxy(_Like):
    """Stands for the value of a node and records operations on it.

        y = torch.relu(x) + 1     # two nodes
        y.clamp(min=0.0)          # one more

    A transformation can wrap a node of a finished graph in a Proxy to write
    operators on it: the new nodes are added at the graph's insert point.

    A Proxy has no truth value and no length, and cannot be iterated (but
    `a, b = proxy` works), because these depend on data that is not known.
    Assigning an attribute that tensors have, such as `x.data = y`, is
    recorded; any other attribute is one of the proxy's own.

    Attributes:
        node: the node that it stands for.
        tracer: what records the operations.

    torch.fx: proxy.py, Proxy
    """

    node: Node
    tracer: TracerBase

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        """Stand for `node`.

        Args:
            node: the node.
            tracer: what records; by default, a tracer that adds to the
                node's own graph.

        Raises:
            TypeError: without a tracer, for a node of torch.fx.
        """
        if tracer is None:
            refuse_torchs(node)
            tracer = GraphAppendingTracer(node.graph)
        self.node, self.tracer = node, tracer

    def __repr__(self) -> str:  # type: ignore[override]  # takes less
        """The name of the node."""
        return f"Proxy({self.node.name})"

    def __getattr__(self, name: str) -> Attribute:
        """An attribute of the value, which is recorded when it is used.

        `x.shape` is a fetch and `x.relu()` is a call of a method, and Python
        asks for the attribute before it is known which of the two it will be.
        """
        return Attribute(self, name)

    def __call__(self, *args: AnyValue, **kwargs: AnyValue) -> Proxy:
        """Record a call of the value itself."""
        return self.tracer.create_proxy(
            "call_method", "__call__", (self, *args), kwargs
        )

    def __iter__(self) -> Iterator[AnyValue]:
        """The items, if the code says how many there are: `a, b = x`."""
        raise NotImplementedError("stage 03: Proxy.__iter__")

    def __bool__(self) -> bool:
        """Ask the tracer; with `trace_asserts`, record `assert proxy`."""
        if self.tracer.trace_asserts and frames.is_asserting(sys._getframe(1)):
            self.tracer.create_proxy("call_function", assert_fn, (self,), {})
            return True
        return self.tracer.to_bool(self)

    def __len__(self) -> int:
        """Refuse: `len` must return a number, and it is not known."""
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you "
            "want this call to be recorded, please call fx.wrap('len') "
            f"at module scope\n  len({self}) is in\n  {frames.where()}"
        )

    def keys(self) -> AnyValue:
        """What `**proxy` asks for: see `TracerBase.keys`."""
        return self.tracer.keys(self)

    __array_priority__ = 1000  # a tensor's, for which NumPy's numbers yield

    @property
    def __array_struct__(self) -> AnyValue:
        """Refuse: NumPy asks for it to compute with the value."""
        raise TraceError(errors.numpy(self))

    @classmethod
    def __torch_function__(
        cls,
        orig_method: Callable[..., AnyValue],
        types: Sequence[type],
        args: tuple[AnyValue, ...] = (),
        kwargs: dict[str, AnyValue] | None = None,
    ) -> Proxy:
        """Record a call of torch that has a proxy among its arguments.

        Args:
            orig_method: the function or method of torch that was called.
            types: the classes of arguments that define this method.
            args: positional arguments.
            kwargs: keyword arguments.

        Raises:
            RuntimeError: the proxies are of different traces; a higher-order
                operator is given a plain Python function.

        torch.fx: proxy.py, Proxy.__torch_function__
        """
        raise NotImplementedError("stage 03: Proxy.__torch_function__")

    def __setstate__(self, state: dict[str, AnyValue]) -> None:
        """Restore the attributes of a copy, which has none of its own yet."""
        vars(self).update(state)

    def __deepcopy__(self, memo: dict[int, AnyValue]) -> Proxy:
        """A proxy of a copied node; what cannot be copied is shared.

        While the code that made the proxy is traced, its deepcopy is recorded.
        """
        if self.tracer._is_tracing:
            record = self.tracer.create_proxy
            return record("call_function", copy.deepcopy, (self,), {})
        new = object.__new__(type(self))
        memo[id(self)] = new
        for key, value in vars(self).items():
            try:
                vars(new)[key] = copy.deepcopy(value, memo)
            except Exception:  # user attributes can be anything
                vars(new)[key] = copy.copy(value)
        return new

    def __hash__(self) -> int:
        """The identity, as for tensors.

        `import fx` puts a method here that warns code that is traced.
        """
        return object.__hash__(self)

    # Each method is assigned with its type, so that a type checker knows that
    # `proxy + 1` is a Proxy. A test compares these lines with the table in
    # recording/operators.py.
    __eq__: _Op = _records(operator.eq)
    __ne__: _Op = _records(operator.ne)
    __lt__: _Op = _records(operator.lt)
    __le__: _Op = _records(operator.le)
    __gt__: _Op = _records(operator.gt)
    __ge__: _Op = _records(operator.ge)
    __pos__: _Op = _records(operator.pos)
    __neg__: _Op = _records(operator.neg)
    __invert__: _Op = _records(operator.invert)
    __abs__: _Op = _records(operator.abs)
    __add__: _Op = _records(operator.add)
    __sub__: _Op = _records(operator.sub)
    __mul__: _Op = _records(operator.mul)
    __matmul__: _Op = _records(operator.matmul)
    __truediv__: _Op = _records(operator.truediv)
    __floordiv__: _Op = _records(operator.floordiv)
    __mod__: _Op = _records(operator.mod)
    __pow__: _Op = _records(operator.pow)
    __lshift__: _Op = _records(operator.lshift)
    __rshift__: _Op = _records(operator.rshift)
    __and__: _Op = _records(operator.and_)
    __xor__: _Op = _records(operator.xor)
    __or__: _Op = _records(operator.or_)
    __getitem__: _Op = _records(operator.getitem)
    __radd__: _Op = _reflects(operator.add)
    __rsub__: _Op = _reflects(operator.sub)
    __rmul__: _Op = _reflects(operator.mul)
    __rmatmul__: _Op = _reflects(operator.matmul)
    __rtruediv__: _Op = _reflects(operator.truediv)
    __rfloordiv__: _Op = _reflects(operator.floordiv)
    __rmod__: _Op = _reflects(operator.mod)
    __rpow__: _Op = _reflects(operator.pow)
    __rlshift__: _Op = _reflects(operator.lshift)
    __rrshift__: _Op = _reflects(operator.rshift)
    __rand__: _Op = _reflects(operator.and_)
    __rxor__: _Op = _reflects(operator.xor)
    __ror__: _Op = _reflects(operator.or_)
    __rgetitem__: _Op = _reflects(operator.getitem)

    if not TYPE_CHECKING:  # to a type checker these are a tensor's
        data = Assigned()
        grad = Assigned()
        requires_grad = Assigned()
        names = Assigned()
        real = Assigned()
        imag = Assigned()


class Attribute(Proxy):
    """`proxy.name`, which can become a method call or the attribute's value.

    If it is called, it records call_method on `root`. Any other use needs its
    node, which is then made: a call of `getattr`.

    Attributes:
        root: the proxy whose attribute it is.
        attr: the attribute's name.

    torch.fx: proxy.py, Attribute
    """

    def __init__(self, root: Proxy, attr: str) -> None:
        """Stand for `root.attr`; records nothing."""
        self.root: Proxy = root
        self.attr: str = attr
        self.tracer: TracerBase = root.tracer

    def __getattr__(self, name: str) -> AnyValue:
        """Make the node when it is first asked for."""
        raise NotImplementedError("stage 03: Attribute.__getattr__")

    def __call__(self, *args: AnyValue, **kwargs: AnyValue) -> Proxy:
        """Record a method call."""
        return self.tracer.create_proxy(
            "call_method", self.attr, (self.root, *args), kwargs
        )


class ParameterProxy(Proxy):
    """A proxy for a parameter whose shape is known and stays fixed.

    `shape`, `ndim`, `size()`, `dim()`, `numel()` and `nelement()` answer
    from the parameter, so that code may branch on them; everything else is
    recorded. Made by `Tracer(param_shapes_constant=True)`.

    torch.fx: proxy.py, ParameterProxy
    """

    def __init__(
        self,
        tracer: TracerBase,
        node: Node,
        name: str,
        param: torch.nn.Parameter,
    ) -> None:
        """Stand for `param`, whose dotted path is `name`.

        Raises:
            AssertionError: `param` is not a Parameter.
        """
        if not isinstance(param, torch.nn.Parameter):
            raise AssertionError(f"Expected Parameter, got {type(param)}")
        super().__init__(node, tracer)
        self.name: str = name
        self.shape: torch.Size = param.shape
        self.ndim: int = param.ndim
        self.param = param

    def __repr__(self) -> str:  # type: ignore[override]  # takes less
        """The path of the parameter."""
        return f"ParameterProxy({self.name})"

    def numel(self) -> int:
        """How many elements it has."""
        return self.param.numel()

    nelement = numel

    def size(self) -> torch.Size:  # type: ignore[override]  # takes less
        """The parameter's shape."""
        return self.param.size()

    def dim(self) -> int:
        """How many dimensions it has."""
        return len(self.size())


@has_side_effect
def assert_fn(x: object) -> None:
    """The function that a recorded assert calls.

    Raises:
        AssertionError: `x` is false.

    torch.fx: proxy.py, assert_fn
    """
    if not x:
        raise AssertionError("Assertion failed")


# -- calls of torch --------------------------------------------------------


def proxies_in(values: Iterable[AnyValue], *, fields: bool) -> list[Proxy]:
    """The proxies in some values, at any depth (`parts`), from left to right.

    Nothing is recorded on the way: an Attribute gets no node.

    Args:
        values: to look through.
        fields: look into dataclasses, too.
    """
    raise NotImplementedError("stage 03: proxies_in")


def _common_tracer(
    function: object, args: tuple[AnyValue, ...], kwargs: dict[str, AnyValue]
) -> TracerBase:
    """The tracer of all the proxies in a call, or RuntimeError if they differ.

    A proxy may be at any depth, also in a field of a dataclass.
    """
    raise NotImplementedError("stage 03: _common_tracer")


@functools.lru_cache(maxsize=4096)
def _is_tensor_method(function: Callable[..., AnyValue]) -> bool:
    """Whether torch calls it as a method or property of a tensor."""
    return bool(torch.overrides.is_tensor_method_or_property(function))
