"""Stage 04, module patching: which function a trace calls, and with what.

A trace usually calls the root's own function, with one placeholder for each
parameter.  This file has the other cases as well: a root with `*args`, for
which one proxy stands; a decorated root; and inputs that are nested, for which
the call takes their leaves.  It also warns of hooks, which a trace of the
root's forward cannot see.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from types import CodeType, FunctionType, MethodType
from typing import Final

from torch import nn

from ..proxy import TracerBase
from ..torch_internals import pytree
from ..torch_internals.tracing import compiled_from
from ..usedef.protocols import PyTreeInfo
from ..usedef.values import Value
from .concrete_args import (
    ConcreteArgs,
    PHBase,
    RootInputs,
    by_name,
    mark,
    parameters_of,
)
from .watch import Watch

_VAR_FLAGS: Final = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def method_of(root: nn.Module, name: str) -> Value:
    """The method of a root module that is traced, from its class.

    The forward of the class is traced; a forward or hooks of the instance are
    not, and who watches the trace warns.

    Raises:
        AssertionError: the class does not have it.
        NotImplementedError: torch.compile has made the root; its class has no
            forward.
    """
    inner = compiled_from(root)
    if inner is not None:
        kind = type(inner).__name__
        raise NotImplementedError(
            f"the root is what torch.compile has made of a {kind}, whose code "
            "cannot be traced: trace the module itself, root._orig_mod, and "
            "compile the result if you like, torch.compile(gm)"
        )
    method = getattr(type(root), name, None)
    if method is None:
        raise AssertionError(
            f"traced_func_name={name} doesn't exist in {type(root).__name__}"
        )
    return method


def not_a_function(root: object, function: object) -> str:
    """The message for a root that is neither a module nor a function."""
    remedy = "trace a module or a plain Python function; put anything else "
    remedy += "inside one"
    if isinstance(root, MethodType):
        name = root.__name__
        remedy = (
            f"to trace a method of a module, set tracer.traced_func_name = "
            f"{name!r} and trace the module: tracer.trace(net), and then "
            "fx.GraphModule(net, graph)"
        )
    return f"Expected FunctionType, got {type(function)}: {remedy}"


def undecorated(function: Callable[..., Value]) -> Callable[..., Value]:
    """The Python function inside decorators, whose parameters count.

    What decorates a builtin, or a class, has only its own.
    """
    inner = inspect.unwrap(function)
    return inner if isinstance(inner, FunctionType) else function


def root_call(
    tracer: TracerBase,
    root_fn: Callable[..., Value],
    owner: nn.Module | None,
    concrete_args: ConcreteArgs | None,
    watch: Watch,
) -> tuple[Callable[..., Value], list[Value]]:
    """What to call, and with which arguments: `create_args_for_root`.

    Args:
        tracer: records the placeholders.
        root_fn: the function that is traced.
        owner: the module whose method it is, if it is one.
        concrete_args: see `Tracer.trace`.
        watch: is told of the defaults.
    """
    function = undecorated(root_fn)
    names, varargs, varkw, has_keyword_only, defaults = parameters_of(function)
    if owner is not None and not names:
        raise RuntimeError(
            "``self`` argument cannot be part of *args expansion!"
        )
    args: list[Value] = [] if owner is None else [owner]
    free = names[len(args) :]
    takes_rest = bool(varargs or varkw) and len(names) == 1
    if takes_rest and concrete_args and isinstance(concrete_args, tuple):
        return root_fn, [*args, *_flat_placeholders(tracer, concrete_args)]
    rest = [name for name in (varargs, varkw) if name]
    known = {*free, *(name.lstrip("*") for name in rest)}
    concrete = by_name(concrete_args, free, known)
    unfixed = {k: defaults[k] for k in defaults if k not in concrete}
    watch.given(function, unfixed)
    make = RootInputs(tracer, function, defaults, concrete, known)
    # A frame has *args at its end, a signature before what is keyword-only.
    split = function.__code__.co_argcount - len(args)
    order = [*free[:split], varargs, *free[split:], varkw]
    inputs = {name: make(name) for name in order if name}
    args += [inputs[name] for name in (*free, *rest)]
    if rest or has_keyword_only:
        root_fn = _taking_all(root_fn, function, len(args))
    if not concrete:
        return root_fn, args
    # A tuple of a tuple and a dict would be read as args and kwargs.
    is_pair = [tuple, dict] == list(map(type, args))
    leaves, spec = pytree.tree_flatten(args if is_pair else tuple(args))
    if len(leaves) == len(args) and all(map(operator.is_, leaves, args)):
        return root_fn, args
    if rest:
        raise RuntimeError(
            f"{function.__qualname__} takes {' and '.join(rest)}, and its "
            "concrete_args are nested: generated code can take a structure "
            "apart only if each parameter has a name. Trace a function that "
            "names them"
        )
    names = names if owner is None else ["self", *free]

    def flat(*leaves: Value) -> Value:
        nested = pytree.tree_unflatten(list(leaves), spec)
        results, out_spec = pytree.tree_flatten(root_fn(*nested))
        tracer.graph._pytree_info = PyTreeInfo(names, spec, out_spec)
        return results

    return flat, leaves


def _flat_placeholders(
    tracer: TracerBase, values: tuple[Value, ...]
) -> list[Value]:
    """Placeholders input_0, input_1, … for a root that takes `*args`."""
    proxies = []
    for index, value in enumerate(values):
        name = f"input_{index}"
        proxy = tracer.create_proxy("placeholder", name, (), {})
        if isinstance(value, PHBase):
            mark(proxy.node, value)
        proxies.append(proxy)
    return proxies


def _taking_all(
    root_fn: Callable[..., Value], function: Callable[..., Value], count: int
) -> Callable[..., Value]:
    """A variant of `root_fn` that takes all parameters by position.

    Python would put the one proxy of `*args` into a tuple, and the graph would
    have the tuple one level too deep.

    Args:
        root_fn: what is traced.
        function: the same without decorators.
        count: how many parameters `function` has, `*args` being one.

    Raises:
        RuntimeError: a decorator's wrapper cannot take `*args` as one value.
    """
    code = function.__code__
    if _shape(root_fn.__code__) == _shape(code):
        return _all_positional(root_fn, count)
    names = code.co_varnames[code.co_argcount : count]
    if code.co_flags & _VAR_FLAGS:
        raise RuntimeError(
            f"{function.__qualname__} takes *args or **kwargs and is "
            f"decorated by {root_fn.__code__.co_qualname}, which has other "
            "parameters: such a root cannot be traced. Give it parameters "
            "with names, or trace it undecorated"
        )

    @functools.wraps(root_fn)
    def call(*args: Value) -> Value:
        by_keyword = dict(zip(names, args[code.co_argcount :], strict=True))
        return root_fn(*args[: code.co_argcount], **by_keyword)

    return call


def _shape(code: CodeType) -> tuple[int, int, int]:
    """How many parameters there are of each kind."""
    rest = code.co_flags & _VAR_FLAGS
    return code.co_argcount, code.co_kwonlyargcount, rest


def _all_positional(
    function: Callable[..., Value], count: int
) -> Callable[..., Value]:
    """A function whose `*args` and the like are `count` plain parameters.

    Then one proxy can be passed for `*args`, and stands for all of them.

    It has the same code with other flags: without the bit for `*args`, that
    variable is an ordinary parameter.
    """
    code = function.__code__
    return FunctionType(
        code.replace(
            co_argcount=count,
            co_posonlyargcount=0,
            co_kwonlyargcount=0,
            co_flags=code.co_flags & ~_VAR_FLAGS,
        ),
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
