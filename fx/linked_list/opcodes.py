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
"""The six opcodes as a set, for look-ups."""


def check_target(
    op: str, target: object, name: str, graph: object = None
) -> None:
    """Raise if `op` is not an opcode or `target` has the wrong type for it.

    Args:
        op: the opcode to check.
        target: a callable if op is "call_function", else a str.
        name: the node's name, for the error.
        graph: the graph that the node is for; it is printed in the error.

    Raises:
        AssertionError: the opcode is unknown (torch.fx's type for it).
        ValueError: the target is of the wrong type for the opcode.

    torch.fx: node.py, Node.__init__
    """
    takes_function = op == "call_function"
    fits = callable(target) if takes_function else isinstance(target, str)
    if fits and op in OPCODES:
        return
    where = f"name = '{name}'"
    if graph is not None:
        where = f"graph = {graph}, {where}"
    if op not in OPCODES:
        raise AssertionError(
            f"op '{op}' is not in _legal_ops ({where}): "
            f"use one of {', '.join(get_args(Opcode))}"
        )
    expected = "Callable" if takes_function else "str"
    raise ValueError(
        f"Node [{where}] target {target!r} has type "
        f"{type(target).__qualname__} but a {expected} is expected: "
        f"op '{op}' takes {expected} target"
    )
