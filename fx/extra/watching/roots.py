"""Extra: what a trace of a root does not see.

A trace runs the forward of the root's class.  A call of the root would run its
hooks as well, or a forward that was set on the root alone.  And a parameter
with a default gets a proxy, so that `if mask is None` goes the way that it
would never go by default.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterable, Mapping
from types import CodeType
from typing import Final

from torch import nn

from ...recording import frames
from ...torch_private.modules import beside_forward
from ...use_def.values import AnyValue


def warn_of_unseen(root: nn.Module, name: str) -> None:
    """Warn if a call of the root does more than its method `name`."""
    unseen = [f"a {name} of its own"] if name in vars(root) else []
    if name == "forward":
        unseen = beside_forward(root)
        if _is_users(type(root).__call__):
            unseen.append("a __call__ in its class")
    if unseen:
        frames.warn(
            f"the root has {' and '.join(unseen)}, and only the {name} of its "
            f"class, {type(root).__name__}, is traced. To record all, trace a "
            "module that calls the root: torch.nn.Sequential(root)"
        )


def _is_users(function: object) -> bool:
    """Whether a function or method is defined neither in fx nor in torch."""
    return not f"{getattr(function, '__module__', None)}.".startswith(
        frames.OURS
    )


def warn_of_is(
    function: Callable[..., AnyValue], asked: Mapping[str, AnyValue]
) -> None:
    """Warn of parameters with a default that the code compares by `is`.

    Args:
        function: the function that is traced, undecorated.
        asked: the defaults of its parameters, without those that are fixed.
    """
    if not asked:
        return
    for name in _compared_by_is(function.__code__, asked):
        frames.warn(
            f"{function.__qualname__} compares its parameter {name!r} with a "
            "constant by `is`, which is decided while tracing: for a proxy, "
            f"`{name} is {asked[name]!r}` is False. To trace what happens by "
            f"default, pass concrete_args={{{name!r}: {asked[name]!r}}}"
        )


def _compared_by_is(code: CodeType, names: Iterable[str]) -> list[str]:
    """Those of a function's parameters that it compares with constants by `is`.

    `mask is None` asks nothing of the object, so a proxy cannot answer.  But
    the function's code shows it: an instruction that loads the parameter, and
    behind it a jump for None, or a constant and `IS_OP`.  Most functions have
    no such instruction, and need not be decoded.

    Cost: O(code).
    """
    compared: dict[str, None] = {}
    if not _COMPARES.isdisjoint(code.co_code[::2]):
        before: list[tuple[str, object]] = [("", None), ("", None)]
        for step in dis.get_instructions(code):
            pair = step.opname, step.argval
            if step.opname in _NONE_JUMPS:
                compared[_loaded(*before[-1])] = None
            elif step.opname == "IS_OP" and before[-1][0] in _CONSTANTS:
                compared[_loaded(*before[-2])] = None
            before = [before[-1], pair]
    return [name for name in names if name in compared]


def _loaded(opname: str, argval: object) -> str:
    """The name of the variable that an instruction loads, "" for none."""
    if not opname.startswith(("LOAD_FAST", "LOAD_DEREF")):
        return ""
    # From Python 3.13 on, one instruction can load two.
    return str(argval[-1] if isinstance(argval, tuple) else argval)


_NONE_JUMPS: Final = frozenset(
    name for name in dis.opmap if "JUMP" in name and name.endswith("NONE")
)
"""The instructions of `if x is None`."""

_CONSTANTS: Final = ("LOAD_CONST", "LOAD_SMALL_INT")
"""The instructions that load a constant; the second is of Python 3.14."""

_COMPARES: Final = {dis.opmap[name] for name in (*_NONE_JUMPS, "IS_OP")}
