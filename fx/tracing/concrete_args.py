"""Stage 04, module patching: parameters that are fixed, or nested, in a trace.

`concrete_args={"flag": True}` traces a function with `flag` fixed, so that
code may branch on it; `concrete_args={"pair": (fx.PH, fx.PH)}` says that
`pair` is a tuple of two unknown values. Either way the leaves become
placeholders, flat; what a fixed one is must be checked when the graph runs.

A graph checks what it assumes, or the trace has warned that it does not.  The
check is `==`, so 1 passes for True.  `x == None` may be a tensor, so None has a
check of its own; a fixed tensor cannot be compared and gets a warning.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Collection, Mapping
from itertools import count
from typing import Final, NamedTuple

import torch

from ..node import Node
from ..proxy import Proxy, TracerBase
from ..torch_internals import pytree
from ..torch_internals.overloads import assert_
from ..usedef.annotations import annotations_of
from ..usedef.dead_code import has_side_effect
from ..usedef.values import Value, base_types


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


ConcreteArgs = Mapping[str, Value] | tuple[Value, ...]


class Parameters(NamedTuple):
    """The parameters of a function, as Python itself binds them.

    `inspect.signature` may say something else: what is in `__signature__`.

    Attributes:
        names: those that take one value, positional then keyword-only.
        varargs: "*args", or None.
        varkw: "**kwargs", or None.
        has_keyword_only: whether some of `names` are keyword-only.
        defaults: the default values of those that have one.
    """

    names: list[str]
    varargs: str | None
    varkw: str | None
    has_keyword_only: bool
    defaults: dict[str, Value]


def parameters_of(function: Callable[..., Value]) -> Parameters:
    """The parameters of a plain Python function."""
    code = function.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    rest = iter(code.co_varnames[count:])
    has_args = code.co_flags & inspect.CO_VARARGS
    has_kwargs = code.co_flags & inspect.CO_VARKEYWORDS
    last: tuple[Value, ...] = function.__defaults__ or ()
    first = code.co_argcount - len(last)
    defaults = dict(zip(code.co_varnames[first:], last, strict=False))
    return Parameters(
        list(code.co_varnames[:count]),
        f"*{next(rest)}" if has_args else None,
        f"**{next(rest)}" if has_kwargs else None,
        code.co_kwonlyargcount > 0,
        {**defaults, **(function.__kwdefaults__ or {})},
    )


def by_name(
    concrete_args: ConcreteArgs | None, names: list[str], known: Collection[str]
) -> Mapping[str, Value]:
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


class RootInputs:
    """Makes the placeholders of the function that is traced.

    A default goes into the placeholder as it is: lowered like an argument, a
    tensor would become a get_attr node, which no signature can read.
    """

    def __init__(
        self,
        tracer: TracerBase,
        function: Callable[..., Value],
        defaults: Mapping[str, Value],
        concrete: Mapping[str, Value],
        taken: Collection[str],
    ) -> None:
        """Prepare to make the placeholders.

        Args:
            tracer: records the placeholders.
            function: the function, for annotations.
            defaults: of its parameters, by name.
            concrete: the parameters that are fixed or nested.
            taken: the names of all parameters.
        """
        self._tracer = tracer
        self._defaults = defaults
        self._annotations = annotations_of(function)
        self._concrete = concrete
        self._taken = taken

    def __call__(self, name: str) -> Value:
        """The value that stands for a parameter: a proxy, or a structure."""
        if name in self._concrete:
            return self._specialized(name, self._concrete[name])
        return self._placeholder(name, name, self._annotations.get(name))

    def _placeholder(self, target: str, name: str, note: Value = None) -> Proxy:
        """A placeholder with the default of a parameter, if it has one."""
        proxy = self._tracer.create_proxy(
            "placeholder", target, (), {}, type_expr=note
        )
        if name in self._defaults:
            proxy.node.args = (self._defaults[name],)
        return proxy

    def _specialized(self, name: str, value: Value) -> Value:
        """A structure of proxies and constants, with a placeholder each."""
        numbers = count(1)
        # The default is one of the structure, not of a part of it.
        owner = name if pytree.tree_is_leaf(value) else ""

        def leaf(x: Value) -> Value:
            names = (f"{name}_{number}" for number in numbers)
            target = next(name for name in names if name not in self._taken)
            proxy = self._placeholder(target, owner)
            if isinstance(x, PHBase):
                mark(proxy.node, x)
                return proxy
            self._assert_equal(proxy, x, name)
            return x

        return pytree.tree_map(leaf, value)

    def _assert_equal(self, proxy: Proxy, value: Value, name: str) -> None:
        """Record a check that a fixed input is what it was traced for."""
        message = (
            f"{name} has been specialized to have value {value} but got "
            "another value"
        )
        if value is None:
            self._tracer.create_proxy(
                "call_function", _assert_is_none, (proxy, message), {}
            )
        elif type(value) in base_types and not isinstance(value, torch.Tensor):
            self._tracer.create_proxy(
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


def mark(node: Node, placeholder: PHBase) -> None:
    """Copy the attributes that the user set on a PH object to its node."""
    if placeholder is PH:
        return
    for name in dir(placeholder):
        value = getattr(placeholder, name)
        dunder = name.startswith("__")
        if not dunder and not callable(value) and not hasattr(node, name):
            setattr(node, name, value)


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
