"""Stage 04, module patching: leaf functions and classes, kept as one call.

A leaf function is not traced through: if a proxy is among its arguments, the
call is recorded as one node.  A module makes a function a leaf by `wrap`, for
all traces, and a tracer by `autowrap_modules` or `autowrap_functions`, for its
own.  This file finds the globals that hold wrapped functions, so that a trace
can replace them; constructing an instance of a class is recorded through
`ProxyableClassMeta`, which needs no replacement.
"""

from __future__ import annotations

import builtins
import functools
import sys
import types
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias, TypeVar, overload

from ..proxy import Proxy, proxies_in
from ..use_def.values import AnyValue, Args, Kwargs
from .patching import TRACES

F = TypeVar("F", bound=Callable[..., AnyValue])

Globals: TypeAlias = dict[str, AnyValue]
"""The globals of a Python module."""

MARK: Final = "__fx_wrapped__"
"""The global in which a Python module keeps what was wrapped in it."""

ORIGINAL: Final = "__fx_original__"
"""The attribute in which a replacement keeps its original."""


QUESTIONS: Final = frozenset(("callable", "hasattr", "isinstance"))
"""Builtins that ask what an object is, which a graph cannot record."""

_MODULES: Final[dict[int, Globals]] = {}
"""Registry: the globals in which something is wrapped, by their id."""


@overload
def wrap(fn_or_name: str) -> str: ...
@overload
def wrap(fn_or_name: F) -> F: ...
def wrap(fn_or_name: str | Callable[..., AnyValue]) -> AnyValue:
    """Make a global function of the calling module a leaf.

        wrap("len")          # by name

        @wrap                # or as a decorator
        def clip(x, low): ...

    While tracing, a call of it with a proxy among the arguments is recorded
    as one call_function node; other calls just run.

    Args:
        fn_or_name: the function, or the name of the global.

    Returns:
        `fn_or_name`.

    Raises:
        RuntimeError: neither a callable nor a name.
        TypeError: a class, or something else that is not a function.
        NotImplementedError: not called at the top level of a module.

    torch.fx: _symbolic_trace.py, wrap
    """
    if not isinstance(fn_or_name, str) and not callable(fn_or_name):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable "
            f"or string name, not {type(fn_or_name).__name__}"
        )
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError(
            "wrap must be called at the top level of a module, not in "
            f"{frame.f_code.co_qualname}: it marks a global of that module"
        )
    namespace = frame.f_globals
    if isinstance(fn_or_name, str):
        name, function = fn_or_name, lookup(namespace, fn_or_name)
    else:
        name = getattr(fn_or_name, "__name__", "")
        function = fn_or_name
    where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
    if function is not None:
        _check_function(function, name, where)
    note_wrapped(namespace, name, where)
    return fn_or_name


def note_wrapped(namespace: Globals, name: str, where: str) -> None:
    """Register a leaf function of a module.

    Args:
        namespace: the module's globals.
        name: which of them.
        where: file and line of the call of `wrap`.
    """
    namespace.setdefault(MARK, {})[name] = where
    if "__name__" in namespace:
        # Code without a module, such as generated code, is reached through
        # its own functions only, and this registry must not keep it alive.
        _MODULES[id(namespace)] = namespace


def lookup(namespace: Globals, name: str) -> AnyValue:
    """The global or builtin of this name, or None if there is none yet."""
    return namespace.get(name, getattr(builtins, name, None))


_FUNCTIONS: Final = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    functools._lru_cache_wrapper,
)


def _check_function(function: AnyValue, name: str, where: str) -> None:
    """Raise unless a replacement can take the place of `function`."""
    if isinstance(function, _FUNCTIONS):
        return
    kind = "a class" if isinstance(function, type) else type(function).__name__
    remedy = "wrap a plain function that calls it"
    if isinstance(function, type):
        remedy += ", or give it metaclass=fx.ProxyableClassMeta"
    raise TypeError(
        f"wrap({name!r}) at {where}: {name or function!r} is {kind}, and only "
        f"a function can be wrapped: {remedy}"
    )


def wrapped_globals(
    namespace: Globals, *, must_exist: bool
) -> Iterator[tuple[str, Callable[..., AnyValue]]]:
    """The leaf functions of one module: their names, and they themselves.

    Args:
        namespace: the module's globals.
        must_exist: raise for a wrapped name that the module lacks.

    Raises:
        NameError: a wrapped name is neither a global of the module nor a
            builtin.
        TypeError: it is not a function.
    """
    for name, where in list(namespace.get(MARK, {}).items()):
        function = lookup(namespace, name)
        if function is not None:
            original = original_of(function)
            _check_function(original, name, where)
            yield name, original
        elif must_exist:
            module = namespace.get("__name__", "the module")
            raise NameError(
                f"wrap({name!r}) at {where}: {module} has no global {name!r} "
                "yet. Define or import it there, or remove the wrap"
            )


def all_wrapped_globals() -> Iterator[tuple[Globals, str, AnyValue]]:
    """The leaf functions of all modules, except names not yet defined."""
    for namespace in list(_MODULES.values()):
        for name, leaf in wrapped_globals(namespace, must_exist=False):
            yield namespace, name, leaf


def original_of(function: AnyValue) -> AnyValue:
    """The original of a replacement; any other function is returned as is.

    Any global can hold a replacement, because another thread may be tracing.
    """
    attributes = getattr(function, "__dict__", {})
    original = attributes.get(ORIGINAL, function)
    # functools.wraps copies the attribute to what decorates a replacement.
    return original if attributes.get("__wrapped__") is original else function


def find_proxy(*values: AnyValue) -> Proxy | None:
    """The first proxy in some values, at any depth but in no dataclass.

    A function may write into a dataclass, and a node would be given a copy.
    """
    return next(iter(proxies_in(values, fields=False)), None)


def record_leaf(
    proxy: Proxy, function: Callable[..., AnyValue], args: Args, kwargs: Kwargs
) -> Proxy:
    """Record a call of a leaf function.

    The mark `is_wrapped` lets generated code wrap the function again.
    """
    result = proxy.tracer.create_proxy("call_function", function, args, kwargs)
    result.node.meta["is_wrapped"] = True
    return result


class ProxyableClassMeta(type):
    """The metaclass of classes whose construction is recorded.

        class Pair(metaclass=fx.ProxyableClassMeta):
            def __init__(self, left, right): ...

    While tracing, `Pair(x, y)` with a proxy among the arguments becomes one
    call_function node with the class as target.

    torch.fx: _symbolic_trace.py, ProxyableClassMeta
    """

    def __call__(cls, *args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        """Construct an instance, or record its construction."""
        if TRACES.current is not None:
            proxy = find_proxy(args, kwargs)
            if proxy is not None:
                return proxy.tracer.create_proxy(
                    "call_function", cls, args, kwargs
                )
        return super().__call__(*args, **kwargs)
