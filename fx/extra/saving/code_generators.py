"""Extra: code generators that a saved graph can have as data.

A code generator is code, which a file cannot hold.  One that only says which
inputs it takes apart, and what it checks, can be made of that again.  Each kind
has a name, under which the line of its graph has what it was made of.  The
stages have no such kind; that of `fx.trace`, whose graphs have guards, is put
here by `import fx`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from ...graph import Graph
from ...usedef.values import Value
from .values import Codec


@dataclass(frozen=True)
class Kind:
    """A kind of code generators.

    Attributes:
        is_of: whether a code generator is of this kind.
        data: what one is made of, as data of JSON; ValueError if it cannot be.
        make: makes one of that.
        known: the key in the line of a graph → its kind.
    """

    is_of: Callable[[Value], bool]
    data: Callable[[Value, Codec], Value]
    make: Callable[[Value, Codec], Value]
    known: ClassVar[dict[str, Kind]] = {}


def record_of(graph: Graph, codec: Codec) -> dict[str, Value] | None:
    """What the line of a graph says of its code generator, if it is known."""
    codegen: Value = graph._codegen
    for key, kind in Kind.known.items():
        if kind.is_of(codegen):
            return {key: kind.data(codegen, codec)}
    return None


def take(graph: Graph, record: dict[str, Value], codec: Codec) -> None:
    """Give a graph the code generator that its line has."""
    for key in Kind.known.keys() & record.keys():
        graph.set_codegen(Kind.known[key].make(record.pop(key), codec))
