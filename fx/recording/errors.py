"""Stage 03, proxies and magic methods: what is said when nothing is recorded.

`fx/proxy.py` decides what to record.  Where a graph could not do what the code
does, the words of the errors are here.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Mapping, Sequence
from numbers import Number
from typing import Final

from ..node import Node
from ..torch_private.overloads import HigherOrderOperator
from ..torch_private.pytree import pytree
from ..use_def.values import AnyValue
from . import frames


def condition(proxy: object) -> str:
    """The message where a proxy is used as a truth value."""
    return (
        "symbolically traced variables cannot be used as inputs to "
        f"control flow\n  {proxy} is used as a truth value in\n"
        f"  {frames.where()}\n"
        "  The graph has one path only. If the condition is a setting, fix it "
        "with concrete_args=; if it depends on data, use torch.where, or move "
        "the code into a function marked with fx.wrap or a leaf module."
    )


def iteration(proxy: object) -> str:
    """The message where a proxy is iterated."""
    return (
        "Proxy object cannot be iterated. This can be attempted when the "
        "Proxy is used in a loop or as a *args or **kwargs function "
        f"argument.\n  {proxy} is iterated in\n  {frames.where()}\n"
        "  Its length is not known. Unpack a known number (a, b = x), index "
        "with range(n), or move the loop into a function marked with fx.wrap."
    )


def numpy(proxy: object) -> str:
    """The message where NumPy asks a proxy for its memory."""
    return (
        "symbolically traced variables cannot be converted to NumPy's arrays\n"
        f"  NumPy is given {proxy} in\n  {frames.where()}\n"
        "  Its functions cannot be recorded. Call torch's (torch.sqrt(x), "
        "x.shape[-1] ** 0.5), or move it into a function marked with fx.wrap."
    )


def numpy_number(value: AnyValue) -> AnyValue:
    """A number of NumPy, which a node holds as it is.

    Raises:
        NotImplementedError: it is anything else.
    """
    kind = type(value)
    # NumPy registers its numbers with Python's, but not its truth values.
    known = isinstance(value, Number) or kind.__name__ in ("bool", "bool_")
    if known and kind.__module__ == "numpy":
        return value
    advice = (
        "A node cannot hold such a value. Pass a tensor, a number, a "
        "string or a container of these, or override Tracer.create_arg."
    )
    if isinstance(value, Node):
        advice = f"That is a node: pass a proxy of it, Proxy({value})."
    raise NotImplementedError(
        f"argument of type: {kind}\n  in\n  {frames.where()}\n  {advice}"
    )


_PLAIN_FUNCTIONS: Final = (
    types.FunctionType,
    types.MethodType,
    types.BuiltinFunctionType,
    functools.partial,
)


def refuse_functions(
    called: object, args: Sequence[AnyValue], kwargs: Mapping[str, AnyValue]
) -> None:
    """Raise if a higher-order operator is given a function to look into.

    Args:
        called: what is called, which may be any function of torch.
        args: positional arguments.
        kwargs: keyword arguments.
    """
    if not isinstance(called, HigherOrderOperator):
        return
    for leaf in pytree.tree_leaves((args, kwargs)):
        if isinstance(leaf, _PLAIN_FUNCTIONS):
            raise RuntimeError(
                f"Unable to symbolically trace the HigherOrderOperator {called}"
                f" because it received an arbitrary callable argument {leaf}. "
                "Use make_fx or dynamo tracing instead."
            )
