"""Stage 04, module patching: what a running trace does with what it catches.

Stand-ins (`patching`) hand calls to the trace that runs in their thread.
This is that trace: it patches what its tracer has to see, decides which calls
concern it, and asks the tracer what to do with those.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING

from torch import nn

from ..proxy import Proxy
from ..usedef.values import Value
from .patching import TRACES, Place
from .wrapping import (
    all_wrapped_globals,
    find_proxy,
    function_stand_in,
    record_leaf,
    wrapped_globals,
)

if TYPE_CHECKING:
    from .tracer import Tracer


class TraceRun:
    """One run of a tracer: an `Interceptor`."""

    def __init__(self, tracer: Tracer) -> None:
        """Begin with no attribute read and no module visited."""
        self._tracer = tracer
        self._proxies: dict[str, Proxy] = {}
        self._visited: set[int] = set()
        self._seen: set[type] = set()
        self._leaves = set(tracer._autowrap_function_ids)

    def patch(self, function: FunctionType) -> None:
        """Patch what a trace of `function` has to see."""
        TRACES.patch(Place(nn.Module, "__call__"), _module_call)
        TRACES.patch(Place(nn.Module, "__getattr__"), _module_getattr)
        for place, leaf in all_wrapped_globals():
            self._patch_leaf(place, leaf)
        self._visit(function.__globals__)
        for module in self._tracer._autowrap_search:
            self._visit(vars(module))
        modules = self._tracer.submodule_paths or ()
        for kind in dict.fromkeys(map(type, modules)):
            self._patch_own_call(kind)

    def _patch_leaf(self, place: Place, leaf: Callable[..., Value]) -> None:
        """Have calls of a leaf function come here."""
        self._leaves.add(id(leaf))
        TRACES.patch(place, function_stand_in)

    def _visit(self, namespace: dict[str, Value]) -> None:
        """Patch the leaf functions among the globals of a module, once."""
        if id(namespace) in self._visited:
            return
        self._visited.add(id(namespace))
        for place, leaf in wrapped_globals(namespace, must_exist=True):
            self._patch_leaf(place, leaf)
        leaves = self._tracer._autowrap_function_ids
        for name, value in list(namespace.items()):
            if id(value) in leaves and not name.startswith("_"):
                TRACES.patch(Place(namespace, name), function_stand_in)

    def _patch_own_call(self, kind: type[nn.Module]) -> None:
        """Have calls of modules whose class has its own `__call__` come here.

        The class of a GraphModule has one too, beside its `_wrapped_call`,
        and that one goes on to nn.Module's.
        """
        for base in kind.__mro__:
            if base is nn.Module:
                return
            own = vars(base).get("__call__")
            if own is not None:
                if "_wrapped_call" not in vars(base):
                    TRACES.patch(Place(base, "__call__"), _own_call)
                return

    def call_module(
        self,
        module: nn.Module,
        original: Callable[..., Value],
        args: tuple[Value, ...],
        kwargs: dict[str, Value],
    ) -> Value:
        """A call of a module: the tracer decides."""
        kind = type(module)
        if kind not in self._seen or "forward" in vars(module):
            self._seen.add(kind)
            forward = getattr(module, "forward", module)
            self._visit(getattr(forward, "__globals__", {}))
        call = functools.partial(original, module)
        return self._tracer.call_module(module, call, args, kwargs)

    def call_overridden(
        self,
        module: nn.Module,
        original: Callable[..., Value],
        args: tuple[Value, ...],
        kwargs: dict[str, Value],
    ) -> Value:
        """A call of a module with its own `__call__`.

        A leaf is recorded whatever that method does; otherwise the method
        runs, and calls nn.Module's in its turn.
        """
        path = self._tracer.path_of_module(module)
        if self._tracer.is_leaf_module(module, path):
            return self.call_module(module, original, args, kwargs)
        return original(module, *args, **kwargs)

    def read_attribute(
        self, module: nn.Module, name: str, value: Value
    ) -> Value:
        """What is read from a module: the tracer decides."""
        return self._tracer.getattr(name, value, self._proxies)

    def call_function(
        self,
        function: Callable[..., Value],
        args: tuple[Value, ...],
        kwargs: dict[str, Value],
    ) -> Value:
        """A call of a global: recorded if a leaf meets a proxy."""
        if id(function) in self._leaves:
            proxy = find_proxy(args, kwargs)
            if proxy is not None:
                return record_leaf(proxy, function, args, kwargs)
        return function(*args, **kwargs)


def _module_call(original: Callable[..., Value]) -> Callable[..., Value]:
    """What stands in for nn.Module.__call__."""

    @functools.wraps(original)
    def stand_in(mod: nn.Module, *args: Value, **kwargs: Value) -> Value:
        trace = TRACES.current
        if trace is None:
            return original(mod, *args, **kwargs)
        return trace.call_module(mod, original, args, kwargs)

    return stand_in


def _own_call(original: Callable[..., Value]) -> Callable[..., Value]:
    """What stands in for the `__call__` of a module class of its own."""

    @functools.wraps(original)
    def stand_in(mod: nn.Module, *args: Value, **kwargs: Value) -> Value:
        trace = TRACES.current
        if trace is None:
            return original(mod, *args, **kwargs)
        return trace.call_overridden(mod, original, args, kwargs)

    return stand_in


def _module_getattr(original: Callable[..., Value]) -> Callable[..., Value]:
    """What stands in for nn.Module.__getattr__."""

    @functools.wraps(original)
    def stand_in(mod: nn.Module, name: str) -> Value:
        value = original(mod, name)
        trace = TRACES.current
        if trace is None:
            return value
        return trace.read_attribute(mod, name, value)

    return stand_in
