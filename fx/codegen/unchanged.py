"""Stage 05, codegen: keep compiled code that would come out the same again.

A rewrite that finds nothing to replace still has to recompile, because the
user may have edited the graph before.  If not, which is the usual case, two
thirds of the time would go into Python's `compile`, which would only make the
same function again.  So the rewriter recompiles inside of
`keeping_unchanged()`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from ..node import Node
from ..usedef.protocols import PythonCode
from ..usedef.values import Value
from .source import CompiledForward

_keeping: Final[ContextVar[bool]] = ContextVar("_keeping", default=False)


@contextmanager
def keeping_unchanged() -> Iterator[None]:
    """A block in which `recompile` keeps functions that are up to date."""
    token = _keeping.set(True)
    try:
        yield
    finally:
        _keeping.reset(token)


def kept(
    known: CompiledForward | None, code: PythonCode, nodes: Sequence[Node]
) -> CompiledForward | None:
    """`known`, inside of the block, if compiling `code` would make it again.

    That takes more than equal text. The lines must have been written for the
    same nodes, because errors name them, and each global must be the same
    object: two functions of one name are written alike.

    Args:
        known: what was compiled last, if anything.
        code: what would be compiled now.
        nodes: the nodes for which `code` was written, in order.

    Cost: O(nodes + globals + length of the text), all of it comparisons.
    """
    if known is None or not _keeping.get():
        return None
    forward: Value = known.forward
    names = forward.__globals__
    same = (
        known.code.src == code.src
        and known.code._lineno_map == code._lineno_map
        and known.nodes == nodes
        # `names` stands for "missing": no global of the code is that dict.
        and all(names.get(k, names) is v for k, v in code.globals.items())
    )
    return known if same else None
