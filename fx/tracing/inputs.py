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
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import count
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Final

import torch
from torch import nn

from ..proxy import Proxy, TracerBase
from ..torch_private.overloads import assert_
from ..torch_private.pytree import pytree
from ..use_def.annotations import annotations_of
from ..use_def.dead_code import has_side_effect
from ..use_def.protocols import PyTreeInfo
from ..use_def.values import AnyValue, Args, Function, base_types

if TYPE_CHECKING:
    from .tracer import TraceListener


class PHBase:
    """A placeholder: "some value" among concrete_args.

    torch.fx: _symbolic_trace.py, PHBase
    """

    def __repr__(self) -> str:
        """As users write it."""
        return "PH"


PH: Final = PHBase()
"""An input that stays symbolic.

torch.fx: _symbolic_trace.py, PH
"""


class PHWithMeta(PHBase):
    """A placeholder that marks its node with `ph_key`, and what else is set.

    torch.fx: _symbolic_trace.py, PHWithMeta
    """

    def __init__(self, ph_key: str | None = None) -> None:
        """Make a placeholder whose node gets the attribute `ph_key`."""
        super().__init__()
        self.ph_key = ph_key


ConcreteArgs = Mapping[str, AnyValue] | tuple[AnyValue, ...]


def parameters_of(
    function: Function,
) -> tuple[list[str], str | None, str | None, bool, dict[str, AnyValue]]:
    """The parameters of a plain Python function, as Python itself binds them.

    `inspect.signature` may say something else: what is in `__signature__`.

    Returns:
        The names of those that take one value, positional then keyword-only;
        "*args" or None; "**kwargs" or None; whether some are keyword-only; the
        default values of those that have one.
    """
    code = function.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    rest = iter(code.co_varnames[count:])
    has_args = code.co_flags & inspect.CO_VARARGS
    has_kwargs = code.co_flags & inspect.CO_VARKEYWORDS
    last: Args = function.__defaults__ or ()
    first = code.co_argcount - len(last)
    defaults = dict(zip(code.co_varnames[first:], last, strict=False))
    return (
        list(code.co_varnames[:count]),
        f"*{next(rest)}" if has_args else None,
        f"**{next(rest)}" if has_kwargs else None,
        code.co_kwonlyargcount > 0,
        {**defaults, **(function.__kwdefaults__ or {})},
    )


def by_name(
    concrete_args: ConcreteArgs | None, names: list[str], known: Collection[str]
) -> Mapping[str, AnyValue]:
    """Concrete arguments by the parameter they are for.

    Programs that fix all parameters but a few name `kwargs` too: that one
    stays an input.

    A name that does not exist is refused: the parameter that was meant would
    stay symbolic, and the error that follows would be about something else.

    Args:
        concrete_args: by name, or one for each parameter in order.
        names: the parameters that take one value.
        known: these, and those that take the rest, without stars.

    Raises:
        RuntimeError: a tuple of the wrong length.
        TypeError: a name that is not a parameter.
    """
    if concrete_args is None:
        return {}
    if isinstance(concrete_args, tuple):
        if len(names) != len(concrete_args):
            raise RuntimeError(
                f"Tracing expected {len(names)} arguments but got "
                f"{len(concrete_args)} concrete arguments"
            )
        return dict(zip(names, concrete_args, strict=True))
    for name in concrete_args:
        if name not in known:
            raise TypeError(
                f"concrete_args has {name!r}, which is not a parameter of "
                f"the traced function; its parameters are {', '.join(names)}"
            )
    return concrete_args


@dataclass
class RootInputs:
    """Makes the placeholders of the function that is traced.

    A default goes into the placeholder as it is: lowered like an argument, a
    tensor would become a get_attr node, which no signature can read.

    Attributes:
        tracer: records the placeholders.
        annotations: of the function's parameters, by name.
        defaults: the same.
        concrete: the parameters that are fixed or nested.
        taken: the names of all parameters.
    """

    tracer: TracerBase
    annotations: Mapping[str, AnyValue]
    defaults: Mapping[str, AnyValue]
    concrete: Mapping[str, AnyValue]
    taken: Collection[str]

    def __call__(self, name: str) -> AnyValue:
        """The value that stands for a parameter: a proxy, or a structure."""
        if name in self.concrete:
            return self._specialized(name, self.concrete[name])
        return self._placeholder(name, name, self.annotations.get(name))

    def _placeholder(
        self, target: str, name: str, note: AnyValue = None
    ) -> Proxy:
        """A placeholder with the default of a parameter, if it has one."""
        proxy = self.tracer.create_proxy(
            "placeholder", target, (), {}, type_expr=note
        )
        if name in self.defaults:
            proxy.node.args = (self.defaults[name],)
        return proxy

    def _specialized(self, name: str, value: AnyValue) -> AnyValue:
        """A structure of proxies and constants, with a placeholder each."""
        numbers = count(1)
        # The default is one of the structure, not of a part of it.
        owner = name if pytree.tree_is_leaf(value) else ""

        def leaf(x: AnyValue) -> AnyValue:
            names = (f"{name}_{number}" for number in numbers)
            target = next(name for name in names if name not in self.taken)
            proxy = self._placeholder(target, owner)
            if isinstance(x, PHBase):
                return mark(proxy, x)
            self._assert_equal(proxy, x, name)
            return x

        return pytree.tree_map(leaf, value)

    def _assert_equal(self, proxy: Proxy, value: AnyValue, name: str) -> None:
        """Record a check that a fixed input is what it was traced for."""
        message = (
            f"{name} has been specialized to have value {value} but got "
            "another value"
        )
        if value is None:
            self.tracer.create_proxy(
                "call_function", _assert_is_none, (proxy, message), {}
            )
        elif type(value) in base_types and not isinstance(value, torch.Tensor):
            self.tracer.create_proxy(
                "call_function", assert_, (proxy == value, message), {}
            )
        else:
            warnings.warn(
                "Was not able to add assertion to guarantee correct input "
                f"{name} to specialized function. It is up to the user to "
                "make sure that your inputs match the inputs you specialized "
                "the function with.",
                stacklevel=2,
            )


def mark(proxy: Proxy, placeholder: AnyValue) -> Proxy:
    """Copy the attributes that the user set on a PH object to its node."""
    node, is_plain = proxy.node, placeholder is PH
    for name in dir(placeholder) if not is_plain else ():
        value = getattr(placeholder, name)
        dunder = name.startswith("__")
        if not dunder and not callable(value) and not hasattr(node, name):
            setattr(node, name, value)
    return proxy


@has_side_effect
def _assert_is_none(value: object, msg: str) -> None:
    """Check, when a graph runs, an input that was traced as None."""
    if value is not None:
        raise AssertionError(msg)


@has_side_effect
def _assert_same(value: object, constant: object, msg: str) -> None:
    """Check, when a graph runs, an input that was captured as a constant.

    True is not 1 here, and -0.0 is not 0.0, because operators tell them
    apart; nan is nan.
    """
    signed = isinstance(constant, float | complex)
    same = repr(value) == repr(constant) if signed else value == constant
    if type(value) is not type(constant) or not same:
        raise AssertionError(msg)


_VAR_FLAGS: Final = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def method_of(root: nn.Module, name: str) -> AnyValue:
    """The method of a root module that is traced, from its class.

    The forward of the class is traced; a forward or hooks of the instance are
    not, and who watches the trace warns.

    Raises:
        AssertionError: the class does not have it.
        NotImplementedError: torch.compile has made the root; its class has no
            forward.
    """
    if type(root).__name__ == "OptimizedModule":
        kind = type(root._modules.get("_orig_mod")).__name__
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


def undecorated(function: Function) -> Function:
    """The Python function inside decorators, whose parameters count.

    What decorates a builtin, or a class, has only its own.
    """
    inner = inspect.unwrap(function)
    return inner if isinstance(inner, FunctionType) else function


def root_call(
    tracer: TracerBase,
    root_fn: Function,
    owner: nn.Module | None,
    concrete_args: ConcreteArgs | None,
    watch: TraceListener,
) -> tuple[Function, list[AnyValue]]:
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
    args: list[AnyValue] = [] if owner is None else [owner]
    free = names[len(args) :]
    takes_rest = bool(varargs or varkw) and len(names) == 1
    if takes_rest and concrete_args and isinstance(concrete_args, tuple):
        return root_fn, [*args, *_flat_placeholders(tracer, concrete_args)]
    rest = [name for name in (varargs, varkw) if name]
    known = {*free, *(name.lstrip("*") for name in rest)}
    concrete = by_name(concrete_args, free, known)
    unfixed = {k: defaults[k] for k in defaults if k not in concrete}
    watch.given(function, unfixed)
    notes = annotations_of(function)
    make = RootInputs(tracer, notes, defaults, concrete, known)
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

    def flat(*leaves: AnyValue) -> AnyValue:
        nested = pytree.tree_unflatten(list(leaves), spec)
        results, out_spec = pytree.tree_flatten(root_fn(*nested))
        tracer.graph._pytree_info = PyTreeInfo(names, spec, out_spec)
        return results

    return flat, leaves


def _flat_placeholders(tracer: TracerBase, values: Args) -> list[AnyValue]:
    """Placeholders input_0, input_1, … for a root that takes `*args`."""
    proxies = []
    for index, value in enumerate(values):
        proxy = tracer.create_proxy("placeholder", f"input_{index}", (), {})
        is_marked = isinstance(value, PHBase)
        proxies.append(mark(proxy, value) if is_marked else proxy)
    return proxies


def _taking_all(root_fn: Function, function: Function, count: int) -> Function:
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
    code, of_root = function.__code__, root_fn.__code__
    shape, ours = (
        (c.co_argcount, c.co_kwonlyargcount, c.co_flags & _VAR_FLAGS)
        for c in (code, of_root)
    )
    if shape == ours:
        # The same code with other flags: without the bit for `*args`, that
        # variable is an ordinary parameter.
        positional = of_root.replace(
            co_argcount=count,
            co_posonlyargcount=0,
            co_kwonlyargcount=0,
            co_flags=of_root.co_flags & ~_VAR_FLAGS,
        )
        rest = root_fn.__name__, root_fn.__defaults__, root_fn.__closure__
        return FunctionType(positional, root_fn.__globals__, *rest)
    names = code.co_varnames[code.co_argcount : count]
    if code.co_flags & _VAR_FLAGS:
        raise RuntimeError(
            f"{function.__qualname__} takes *args or **kwargs and is "
            f"decorated by {of_root.co_qualname}, which has other "
            "parameters: such a root cannot be traced\n  Give it parameters "
            "with names, or trace it undecorated"
        )

    @functools.wraps(root_fn)
    def call(*args: AnyValue) -> AnyValue:
        by_keyword = dict(zip(names, args[code.co_argcount :], strict=True))
        return root_fn(*args[: code.co_argcount], **by_keyword)

    return call
