"""Stage 02, use-def: values that hold nodes, pickled without following them.

Pickle follows references.  If it followed those from node to node, a chain of
1,000 nodes would be a recursion 1,000 calls deep; and a node could not be
made before its inputs are.  So a graph pickles what its nodes hold with
`pack`, which writes a node of the graph as its number, wherever it stands: in
a list, in a set, in an attribute of a user's object.  `unpack` gets the nodes
that were made meanwhile, and puts them back.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterable, Mapping, Sequence
from types import BuiltinFunctionType, FunctionType
from typing import NamedTuple, TypeVar

import torch
from torch._ops import OpOverload, OpOverloadPacket

from ..ordered.linked_list import Link
from ..usedef.values import Value

ClassT = TypeVar("ClassT", bound=type)

_BY_REFERENCE = (
    BuiltinFunctionType,
    FunctionType,
    torch.Tensor,
    torch.nn.Module,
    type,
)
"""What the pickle around this one writes, so that it is shared with it."""


class Packed(NamedTuple):
    """A value that holds nodes, ready to be pickled.

    Attributes:
        data: the value as a pickle, with marks for what is not in it.
        outside: what the marks of `("outside", index)` stand for.
    """

    data: bytes
    outside: list[Value]


def pack(value: Value, nodes: Iterable[Link]) -> Packed:
    """Pickle a value, each node in it as its number.

    Args:
        value: anything that pickle can write.
        nodes: the nodes that are written as numbers, in this order.  Any
            other node takes its graph with it.

    Cost: O(size of `value`).
    """
    file = io.BytesIO()
    pickler = _Pickler(file, {node: n for n, node in enumerate(nodes)})
    pickler.dump(value)
    return Packed(file.getvalue(), pickler.outside)


def unpack(packed: Packed, nodes: Sequence[Link]) -> Value:
    """The value that was packed, with the node of each number in its place."""
    return _Unpickler(packed, nodes).load()


class _Pickler(pickle.Pickler):
    """Writes a mark for each node, operator, tensor, function and class."""

    def __init__(self, file: io.BytesIO, number: Mapping[Link, int]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._number = number
        self._index: dict[int, int] = {}
        self.outside: list[Value] = []

    def persistent_id(self, obj: object) -> tuple[object, ...] | None:
        """The mark that stands for an object, or None to write it here."""
        if isinstance(obj, Link):
            number = self._number.get(obj)
            return None if number is None else ("node", number)
        if isinstance(obj, OpOverload):
            name = obj._schema.name.partition("::")
            return ("operator", name[0], name[2], obj._overloadname)
        if isinstance(obj, OpOverloadPacket):
            name = obj._qualified_op_name.partition("::")
            return ("operator", name[0], name[2])
        if isinstance(obj, _BY_REFERENCE):
            index = self._index.setdefault(id(obj), len(self.outside))
            if index == len(self.outside):
                self.outside.append(obj)
            return ("outside", index)
        return None


class _Unpickler(pickle.Unpickler):
    """Reads what `_Pickler` wrote."""

    def __init__(self, packed: Packed, nodes: Sequence[Link]) -> None:
        super().__init__(io.BytesIO(packed.data))
        self._found = {"node": nodes, "outside": packed.outside}

    def persistent_load(self, mark: Value) -> Value:
        """The object that a mark stands for."""
        kind, *key = mark
        if kind != "operator":
            return self._found[kind][key[0]]
        found: Value = torch.ops
        for name in key:
            found = getattr(found, name)
        return found


def importable(cls: ClassT | None) -> ClassT | None:
    """A class if pickle can find it again by its name, else None."""
    if cls is None or "<locals>" in cls.__qualname__:
        return None
    return cls
