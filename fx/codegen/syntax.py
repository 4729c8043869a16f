"""Stage 05, codegen: which calls and names Python's syntax can express.

A graph can hold what no line of Python says with an operator or a dot, such
as `add(x, y, alpha=2)` or the attribute "0".  The emitter asks here, and
writes a plain call where the answer is no.
"""

from __future__ import annotations

import functools
import keyword
from collections.abc import Mapping
from operator import setitem
from typing import Final

from ..linked_list.opcodes import check_target
from ..node import Node
from ..recording.operators import Operator
from ..usedef.values import Value
from .local_names import as_python_reads, exact

_KEYWORDS: Final = frozenset(keyword.kwlist)
_INDEXED: Final = (Node, tuple, list, dict, str, bytes)
"""Types of what may come before brackets; Python warns of `1[0]`."""


def has_syntax(
    operator: Operator, node: Node, last_users: Mapping[Node, Node]
) -> bool:
    """Whether a call of an operator can be written with its syntax.

    Python warns of brackets behind a value that cannot have any. The left side
    of an in-place operator must be a variable that no later line reads: after
    `n += 1` it is another number, but its node still stands for the old one.
    And `x[0] = 1` has no value that a later line could use.

    Args:
        operator: the syntax.
        node: the call.
        last_users: for each value, the last node to use it.
    """
    args = node._args
    if node._kwargs or len(args) != operator.arity:
        return False
    if operator.in_place:
        left: Value = args[0]
        if not issubclass(type(left), Node):
            return False
        is_item = operator.function is setitem
        return not node.users if is_item else last_users[left] is node
    return operator.name != "getitem" or issubclass(type(args[0]), _INDEXED)


def is_attribute_access(node: Node) -> bool:
    """Whether a call of getattr can be written with a dot."""
    args = node._args
    if node._kwargs or len(args) != 2:
        return False
    name = args[1]
    return type(name) is str and is_attribute_name(name)


def path_of(node: Node) -> str:
    """The target of a node whose opcode wants a string."""
    target: Value = node._target
    if not isinstance(target, str):
        check_target(node.op, target, node.name)  # raises
    return exact(target)


@functools.lru_cache(maxsize=4096)
def is_attribute_name(name: str) -> bool:
    """Whether `x.name` is the attribute `name` of x.

    A keyword is not, and neither is an identifier that Python would read as
    another one: it takes compatibility characters apart.
    """
    if not name.isidentifier() or name in _KEYWORDS:
        return False
    return as_python_reads(name) == name


def quoted(text: str) -> str:
    """A string literal, in double quotes if it needs no escapes."""
    plain = repr(text)
    return f'"{text}"' if plain == f"'{text}'" and '"' not in text else plain
