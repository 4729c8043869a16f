"""Stage 01, linked-list graph: the six kinds of node, and what each targets.

A graph is a function written down one call a line, and six kinds of line are
enough:

    placeholder     a parameter                  target: its name
    get_attr        a value kept in the module   target: its dotted path
    call_function   a call of a free function    target: the function itself
    call_method     a call of a method           target: the method's name
    call_module     a call of a submodule        target: its dotted path
    output          the return statement         target: the word "output"
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, TypeAlias, get_args

Opcode: TypeAlias = Literal[
    "placeholder",
    "get_attr",
    "call_function",
    "call_method",
    "call_module",
    "output",
]
"""What a node does; `match node.op:` over the six can be exhaustive."""

Target: TypeAlias = Callable[..., object] | str
"""What a node calls or fetches: a callable for call_function, else a str."""

OPCODES: Final[frozenset[str]] = frozenset(get_args(Opcode))
"""The six opcodes; the one table of them."""


def check_target(op: str, target: object, where: str = "") -> None:
    """Raise if `op` is no opcode or `target` is of the wrong type for it.

    Args:
        op: the opcode to check.
        target: a callable if op is "call_function", else a str.
        where: words that tell the reader of the error which node it is.

    Raises:
        AssertionError: the opcode is unknown (torch.fx's type for it).
        ValueError: the target is of the wrong type for the opcode.

    torch.fx: node.py, Node.__init__
    """
    if op == "call_function":
        if not callable(target):
            raise _wrong_target(op, target, where, "a Callable")
    elif op not in OPCODES:
        raise AssertionError(
            f"op '{op}' is not in _legal_ops{where and f' ({where})'}: "
            f"use one of {', '.join(get_args(Opcode))}"
        )
    elif not isinstance(target, str):
        raise _wrong_target(op, target, where, "a str")


def _wrong_target(
    op: str, target: object, where: str, expected: str
) -> ValueError:
    """The error for a target of the wrong type."""
    return ValueError(
        f"Node [{where}] target {target!r} has type "
        f"{type(target).__qualname__} but {expected} is expected: "
        f"op '{op}' takes {expected.removeprefix('a ')} target"
    )
