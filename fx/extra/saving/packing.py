"""Extra: values that hold nodes, pickled without following them.

Pickle follows references.  If it followed those from node to node, a chain of
1,000 nodes would be a recursion 1,000 calls deep, and no node could be made
before its inputs.  So a graph pickles what its nodes hold with `pack`, which
writes a node of the graph as its number, wherever it stands: in a list, in a
set, in an attribute of a user's object.  `unpack` gets the nodes that were made
meanwhile, and puts them back.  Pickle finds the nodes: it asks `persistent_id`
about each object that it meets, where a walk of our own would need to know
every container.

A deep copy of a graph has the same problem with `meta`, where any object can
hold nodes: `moved` packs what does, and unpacks it with the nodes of the copy.

torch.fx: node.py, Node.__getstate__; it pickles inputs and users as they are,
so a chain of 1,000 nodes exceeds the recursion limit, and an operator of
`torch.ops` in a graph cannot be pickled.

torch.fx: _graph_pickler.py, _GraphPickleData; this is for the compiler's own
cache, writes nodes one by one as well, and is not what `pickle.dumps` uses.
"""

from __future__ import annotations

import copyreg
import functools
import gc
import io
import pickle
import pkgutil
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Final, NamedTuple, TypeAlias, TypeVar

import torch

from ...codegen.codegen import CodeGen
from ...codegen.nested import _BoxedCodeGen, _PyTreeCodeGen
from ...linked_list.linked_list import Link
from ...linked_list.ordered_graph import OrderedGraph
from ...torch_private.fake_tensors import FakeTensor, FakeTensorMode
from ...torch_private.overloads import OpOverload, OpOverloadPacket
from ...torch_private.pytree import pytree
from ...tracing.tracer import Tracer
from ...use_def.protocols import PyTreeInfo
from ...use_def.text import (
    _get_qualified_name,
    _type_repr,
    importable,
    resolves_to,
)
from ...use_def.values import LEAVES, AnyValue

LinkT = TypeVar("LinkT", bound=Link)

_BY_REFERENCE = (
    BuiltinFunctionType,
    FunctionType,
    torch.Tensor,
    torch.nn.Module,
    type,
)
"""What the pickle around this one writes, so that it is shared with it.

That one may know it already, as a parameter of the module whose graph this is;
or it may be another pickler, such as cloudpickle, that can write more.
"""


_SHARED = (*_BY_REFERENCE, ModuleType, OpOverload, OpOverloadPacket)
"""What a deep copy shares, and nobody need look into for nodes."""


Packed: TypeAlias = tuple[bytes, list[AnyValue]]
"""A value that holds nodes: as a pickle, with marks for what is not in it; and
what the marks of `("outside", index)` stand for."""


def pack(value: AnyValue, nodes: Iterable[Link]) -> Packed:
    """Pickle a value, each node in it as its number.

    A graph packs twice, what makes the nodes and what they hold, and makes the
    nodes between the two calls of `unpack`.  Once would do if each value came
    before its use, but a graph may be pickled in the middle of an edit.

    Args:
        value: anything that pickle can write.
        nodes: the nodes that are written as numbers, in this order.  Any
            other node takes its graph with it.

    Cost: O(size of `value`).
    """
    file = io.BytesIO()
    pickler = _Pickler(file, {node: n for n, node in enumerate(nodes)})
    pickler.dump(value)
    return file.getvalue(), pickler.outside


def unpack(packed: Packed, nodes: Sequence[Link]) -> AnyValue:
    """The value that was packed, with the node of each number in its place."""
    return _Unpickler(packed, nodes).load()


_TRACED = frozenset(("nn_module_stack", "stack_trace", "is_wrapped"))
"""Keys of `meta` that a trace sets, none of them to a node."""


def move_metas(copies: Mapping[LinkT, LinkT]) -> None:
    """Put the copy of each node in its place in the `meta` of the copies.

    Args:
        copies: node -> its copy, which has a shallow copy of its `meta`.

    Cost: O(nodes + size of what they have in `meta`, besides a trace's keys).
    """
    nodes: list[AnyValue] = [*copies.values()]
    noted = [n for n in nodes if not n.meta.keys() <= _TRACED]
    metas = moved([node.meta for node in noted], copies)
    for node, meta in zip(noted, metas, strict=True):
        node.meta = meta


def moved(
    values: list[AnyValue], copies: Mapping[LinkT, LinkT]
) -> list[AnyValue]:
    """The values, with the copy of each node in its place.

    The values are containers of any kind and objects of any class. Those that
    hold no node are returned themselves, and so are those that cannot be
    pickled. The others are made again, apart from the tensors, functions,
    modules and nodes without a copy in them, which are shared.

    Cost: O(size of `values`).
    """
    clean: set[int] = set()
    if not _hold_node(values, clean):
        return values
    places = [i for i, v in enumerate(values) if _hold_node([v], clean)]
    result = [*values]
    holding = [values[i] for i in places]
    for i, new in zip(places, _rebuilt(holding, copies), strict=True):
        result[i] = new
    return result


def _rebuilt(
    values: list[AnyValue], copies: Mapping[LinkT, LinkT]
) -> list[AnyValue]:
    """Values that hold nodes, made again with the nodes' copies.

    All at once, so that an object that two of them have stays one object;
    but if one of them cannot be pickled, each for itself, and the items of a
    dict likewise.
    """
    file = io.BytesIO()
    pickler = _Mover(file, {node: n for n, node in enumerate(copies)})
    try:
        pickler.dump(values)
    except Exception:  # a user's object can raise anything
        if len(values) > 1:
            return [_rebuilt([value], copies)[0] for value in values]
        value = values[0]
        if type(value) is dict and len(value) > 1:
            items = [_rebuilt([{k: v}], copies)[0] for k, v in value.items()]
            return [{k: v for item in items for k, v in item.items()}]
        return values
    packed = file.getvalue(), pickler.outside
    rebuilt: list[AnyValue] = unpack(packed, [*copies.values()])
    return rebuilt


def _hold_node(values: list[AnyValue], clean: set[int]) -> bool:
    """Whether a node can be reached from some values; runs none of their code.

    Most notes hold no node, and to pack them all would be slow.  The garbage
    collector knows what each object refers to, whatever its class.

    Args:
        values: of any kind.
        clean: the ids of objects from which none can be, which grows.
    """
    seen: set[int] = set()
    level = values
    while level:
        kinds = set(map(type, level)) - LEAVES
        if any(issubclass(kind, Link) for kind in kinds):
            return True
        kinds = {kind for kind in kinds if not issubclass(kind, _SHARED)}
        ahead = {
            id(part): part
            for part in level
            if type(part) in kinds and id(part) not in seen
        }
        seen |= ahead.keys()
        level = gc.get_referents(*[ahead[key] for key in ahead.keys() - clean])
    clean |= seen
    return False


class _Fake(NamedTuple):
    """What is kept of a FakeTensor, which has no data of its own.

    Its mode cannot be pickled, so all that are loaded together get a new one.
    They share no storage, even if they did.
    """

    size: tuple[int, ...]
    stride: tuple[int, ...] | None
    dtype: torch.dtype
    device: torch.device
    layout: torch.layout
    requires_grad: bool
    is_parameter: bool

    @classmethod
    def of(cls, tensor: torch.Tensor) -> tuple[AnyValue, ...]:
        """A plain tuple of what is kept of a tensor with sizes of numbers."""
        strided = tensor.layout is torch.strided
        return (
            tuple(map(int, tensor.shape)),
            tuple(map(int, tensor.stride())) if strided else None,
            tensor.dtype,
            tensor.device,
            tensor.layout,
            tensor.requires_grad,
            isinstance(tensor, torch.nn.Parameter),
        )

    def make(self) -> torch.Tensor:
        """Such a tensor, fake if a FakeTensorMode is active."""
        dtype, device = self.dtype, self.device
        if self.stride is None:
            layout = self.layout
            new = torch.empty(
                self.size, dtype=dtype, device=device, layout=layout
            )
        else:
            new = torch.empty_strided(
                self.size, self.stride, dtype=dtype, device=device
            )
        if self.is_parameter:
            return torch.nn.Parameter(new, self.requires_grad)
        new.requires_grad = self.requires_grad
        return new


def examples(
    info: PyTreeInfo,
) -> tuple[list[str], list[AnyValue], list[AnyValue]]:
    """The names of a PyTreeInfo, and examples of its structures.

    A pickled `TreeSpec` names private classes of torch, which says itself that
    they will go.
    """
    return info.orig_args, _example(info.in_spec), _example(info.out_spec)


def _example(spec: pytree.TreeSpec | None) -> list[AnyValue]:
    """A list with an example of a structure; an empty one without a spec.

    The example itself may be None.
    """
    if spec is None:
        return []
    return [pytree.tree_unflatten([0] * spec.num_leaves, spec)]


def _pytree_info(
    orig_args: list[str], inputs: list[AnyValue], outputs: list[AnyValue]
) -> PyTreeInfo:
    """The PyTreeInfo of example structures; pickles call it."""
    in_spec, *rest = map(pytree.tree_structure, inputs + outputs)
    return PyTreeInfo(orig_args, in_spec, rest[0] if rest else None)


_OTHERS: Final[AnyValue] = copyreg.dispatch_table
_REDUCERS: Final[Mapping[type, AnyValue]] = ChainMap(
    {PyTreeInfo: lambda info: (_pytree_info, examples(info))}, _OTHERS
)
"""Class -> what makes of an instance the call that makes it again."""


class _Pickler(pickle.Pickler):
    """Writes a mark for each node, operator, tensor, function and class."""

    def __init__(self, file: io.BytesIO, number: Mapping[Link, int]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.dispatch_table = _REDUCERS
        self._number = number
        self._index: dict[int, int] = {}
        self._alive: list[object] = []
        self.outside: list[AnyValue] = []

    def persistent_id(self, obj: object) -> tuple[object, ...] | None:
        """The mark that stands for an object, or None to write it here."""
        if isinstance(obj, Link):
            number = self._number.get(obj)  # None: it takes its graph with it
            return None if number is None else ("node", number)
        if isinstance(obj, (OpOverload, OpOverloadPacket)):
            return ("operator", *str(obj).split("."))
        if isinstance(obj, FakeTensor):
            return ("fake", self._place(obj, _Fake.of))
        if isinstance(obj, (*_BY_REFERENCE, OrderedGraph)):
            name = _lasting_name(obj)
            return ("named", name) if name else ("outside", self._place(obj))
        return None

    def _place(
        self,
        obj: AnyValue,
        kept: Callable[[AnyValue], AnyValue] = lambda obj: obj,
    ) -> int:
        """The index of an object in `outside`, where `kept(obj)` is put."""
        index = self._index.get(id(obj))
        if index is None:
            self.outside.append(kept(obj))
            index = self._index[id(obj)] = len(self._index)
            self._alive.append(obj)  # so that no other object gets its id
        return index


class _Mover(_Pickler):
    """Writes a mark for each node that has a copy, and all that is shared."""

    def persistent_id(self, obj: object) -> tuple[object, ...] | None:
        """The mark that stands for an object, or None to write it here."""
        if isinstance(obj, Link) and obj in self._number:
            return ("node", self._number[obj])
        shared = isinstance(obj, (*_SHARED, Link))
        return ("outside", self._place(obj)) if shared else None


class _Unpickler(pickle.Unpickler):
    """Reads what `_Pickler` wrote."""

    def __init__(self, packed: Packed, nodes: Sequence[Link]) -> None:
        data, outside = packed
        super().__init__(io.BytesIO(data))
        self._found = {"node": nodes, "outside": outside}
        self._fakes: dict[int, torch.Tensor] = {}
        self._mode = functools.cache(FakeTensorMode)

    def persistent_load(self, mark: AnyValue) -> AnyValue:
        """The object that a mark stands for.

        A library that registers an operator must be loaded before.
        """
        kind, *key = mark
        if kind == "fake":
            return self._fake(key[0])
        if kind == "named":
            return pkgutil.resolve_name(key[0])
        if kind != "operator":
            return self._found[kind][key[0]]
        target: AnyValue = torch.ops
        for name in key:
            target = getattr(target, name)
        return target

    def _fake(self, index: int) -> torch.Tensor:
        """A FakeTensor; all that are loaded together have one new mode."""
        if index not in self._fakes:
            with self._mode():
                self._fakes[index] = _Fake(
                    *self._found["outside"][index]
                ).make()
        return self._fakes[index]


_DOORS: Final[tuple[tuple[object, str], ...]] = (
    (Tracer, "fx.Tracer"),
    (CodeGen, "fx.CodeGen"),
    (_PyTreeCodeGen, "fx.graph._PyTreeCodeGen"),
    (_BoxedCodeGen, "fx.graph._BoxedCodeGen"),
    (_pytree_info, "fx.graph._pytree_info"),
)
"""What graphs hold of fx, by names that stay when files are moved."""


def _lasting_name(obj: object) -> str:
    """The name under which torch, or fx, has something; "" for all else.

    `F.max_pool2d` was made inside another function, and pickle would look for
    it by its own name there, `boolean_dispatch.<locals>.fn`.
    """
    for known, name in _DOORS:
        if known is obj:
            return name
    if not isinstance(obj, (FunctionType, BuiltinFunctionType)):
        return ""
    name = _get_qualified_name(obj)
    resolves = name.startswith("torch.") and resolves_to(name, obj)
    return name if resolves else ""


def portable(meta: dict[str, AnyValue]) -> dict[str, AnyValue]:
    """The `meta` of a node, as it is pickled.

    In the module stack of a trace, a class that pickle cannot find again is
    its name.  Each GraphModule has such a class of its own.
    """
    stack = meta.get("nn_module_stack")
    if not isinstance(stack, dict):
        return meta
    local = {
        key: (*note[:-1], _type_repr(note[-1]))
        for key, note in stack.items()
        if isinstance(note, tuple) and any(map(_is_local, note[-1:]))
    }
    return {**meta, "nn_module_stack": stack | local} if local else meta


def _is_local(note: AnyValue) -> bool:
    """Whether this is a class that pickle cannot find again."""
    return isinstance(note, type) and importable(note) is None
