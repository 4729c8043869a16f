"""Stage 08, reinplace: which nodes share storage, or may share it.

The graph runs once on fake tensors, which have storages but no data.
`Storages` notes in which of them each node's value is found.  Two storages
that differ in this run may still be the same one for other strides.  Where a
schema says so, they are merged into one alias set.
"""

from __future__ import annotations

import math
import operator
from typing import NamedTuple

import torch

from ..graph_module import GraphModule
from ..interpreter import Interpreter
from ..linked_list.opcodes import Target
from ..node import Node, map_arg
from ..schemas.facts import facts_of
from ..torch_private.fake_tensors import (
    FakeTensor,
    FakeTensorMode,
    detect_fake_mode,
)
from ..torch_private.pytree import pytree
from ..use_def.arguments import map_aggregate
from ..use_def.values import AnyValue, Args, Argument


class Geometry(NamedTuple):
    """Where in its storage a tensor has its elements, and what they are."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    dtype: torch.dtype
    conjugate: bool
    negative: bool

    def span(self) -> tuple[int, int]:
        """The index of the tensor's first element, and one past the last.

        Indices count elements from the beginning of the storage.
        """
        if 0 in self.size:
            return self.offset, self.offset
        steps = zip(self.size, self.stride, strict=True)
        last = sum((size - 1) * stride for size, stride in steps)
        return self.offset, self.offset + last + 1

    def overlaps_itself(self) -> bool:
        """Whether two elements may be in the same place.

        They are not if each dimension steps over all smaller dimensions.
        """
        reach = 0
        for stride, size in sorted(zip(self.stride, self.size, strict=True)):
            if size == 1:
                continue
            if stride <= reach:
                return 0 not in self.size
            reach += (size - 1) * stride
        return False

    def fills_its_span(self) -> bool:
        """Whether each place from the first to the last has an element."""
        first, end = self.span()
        whole = end - first == math.prod(self.size)
        return whole and not self.overlaps_itself()


def geometry(tensor: torch.Tensor) -> Geometry:
    """The geometry of a tensor."""
    return Geometry(
        tuple(tensor.size()),
        tensor.stride(),
        int(tensor.storage_offset()),
        tensor.dtype,
        tensor.is_conj(),
        tensor.is_neg(),
    )


def tensors_in(value: AnyValue) -> list[torch.Tensor]:
    """The tensors in a fake value whose memory can be seen.

    Args:
        value: a tensor, a list or tuple of results, or anything else.
    """
    return [leaf for leaf in pytree.tree_leaves(value) if can_be_seen(leaf)]


def can_be_seen(tensor: torch.Tensor) -> bool:
    """Whether a tensor without data says where it has its elements.

    A sparse, nested or mkldnn tensor does not, and a subclass of Tensor that
    wraps others has a storage which is not theirs.
    """
    return (
        type(tensor) in (FakeTensor, torch.Tensor)
        and tensor.layout is torch.strided
        and not tensor.is_nested
    )


def hides_memory(value: AnyValue) -> bool:
    """Whether there is a tensor in a fake value that `can_be_seen` denies."""
    return any(
        isinstance(leaf, torch.Tensor) and not can_be_seen(leaf)
        for leaf in pytree.tree_leaves(value)
    )


def without_data(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor on the meta device that lies in its storage as `tensor` does."""
    place = geometry(tensor)
    end = place.span()[1]
    memory = torch.empty(end, dtype=tensor.dtype, device="meta")
    return memory.as_strided(place.size, place.stride, place.offset)


# -- a run without data ------------------------------------------------------


class _Propagation(Interpreter):
    """Runs a graph on fake tensors, and keeps every value."""

    def __init__(self, module: GraphModule, mode: FakeTensorMode) -> None:
        super().__init__(module, garbage_collect_values=False)
        self._mode = mode

    def get_attr(
        self, target: Target, args: tuple[Argument, ...], kwargs: AnyValue
    ) -> AnyValue:
        """The attribute, with fake tensors for its tensors."""
        return map_aggregate(self.fetch_attr(str(target)), self.fake)

    def fake(self, value: Argument) -> Argument:
        """A fake tensor for a tensor; another value as it is.

        Tensors that share storage get fake tensors that share storage.
        """
        if isinstance(value, torch.Tensor):
            return self._mode.from_tensor(value)
        return value


def propagate(
    gm: GraphModule, sample_args: Args
) -> tuple[FakeTensorMode, dict[Node, AnyValue]]:
    """Run a graph on fake tensors.

    Args:
        gm: the module. Its parameters and buffers are replaced by fake
            tensors for this run.
        sample_args: its inputs, real or fake.

    Returns:
        The mode of the fake tensors, and the value of each node.

    Raises:
        RuntimeError: there are too few inputs or too many.
        Whatever an operator raises for the sample inputs.

    Cost: O(nodes).
    """
    mode = detect_fake_mode(sample_args) or FakeTensorMode(
        allow_non_fake_inputs=True
    )
    run = _Propagation(gm, mode)
    fakes = pytree.tree_map(run.fake, sample_args)
    with mode:
        run.run(*fakes)
    return mode, run.env


# -- storages ----------------------------------------------------------------


class DisjointSets:
    """The numbers 0, 1, … in sets that can be merged: a union-find.

    Each set has a representative, which is one of its numbers. At first, each
    number is alone in its set.
    """

    def __init__(self, count: int) -> None:
        self._parent = list(range(count))

    def find(self, number: int) -> int:
        """The representative of the set of `number`.  Cost: O(1), nearly."""
        parent = self._parent
        while parent[number] != number:
            parent[number] = number = parent[parent[number]]
        return number

    def merge(self, one: int, other: int) -> None:
        """Merge two sets; the representative is that of `one`."""
        self._parent[self.find(other)] = self.find(one)


class Storages:
    """The storages of a program, and the nodes whose values are in them.

    Attributes:
        all: the storages. Keeping them alive keeps their identities unique.
        of: node -> the storages that its value was found in, as indices.
        sets: the alias sets: storages, by index, that may be the same.
        hidden: the nodes whose values have memory that cannot be seen: they
            are not in alias sets, and may share storage with what is.
    """

    def __init__(self, values: dict[Node, AnyValue]) -> None:
        """Number the storages of the fake values of a graph's nodes.

        Cost: O(nodes + arguments).
        """
        self.all: list[torch.UntypedStorage] = []
        self.of: dict[Node, tuple[int, ...]] = {}
        self.hidden: set[Node] = set()
        self._numbers: dict[int, int] = {}
        for node, value in values.items():
            numbers: dict[int, None] = {}
            for tensor in tensors_in(value) if node.op != "output" else ():
                numbers[self._number(tensor.untyped_storage())] = None
            self.of[node] = tuple(numbers)
            if hides_memory(value):
                self.hidden.add(node)
        self.sets: DisjointSets = DisjointSets(len(self.all))
        for node in values:
            self._merge_declared(node)

    def _number(self, storage: torch.UntypedStorage) -> int:
        """The index of a storage, which is added if it is new."""
        number = self._numbers.setdefault(id(storage), len(self.all))
        if number == len(self.all):
            self.all.append(storage)
        return number

    def number_of(self, tensor: torch.Tensor) -> int | None:
        """The index of a tensor's storage; None if it belongs to no node."""
        if not can_be_seen(tensor):
            return None
        return self._numbers.get(id(tensor.untyped_storage()))

    def alias_sets(self, node: Node) -> list[int]:
        """The representatives of the alias sets of a node's storages."""
        find = self.sets.find
        return list(dict.fromkeys([find(number) for number in self.of[node]]))

    def _merge_declared(self, node: Node) -> None:
        """Merge the storages of a node and of what it may be a view of.

        `contiguous` and `reshape` copy or do not copy, depending on strides.
        Even if they copied in this run, they count as views.
        """
        facts = facts_of(node.target)
        for parameter in facts.views if facts is not None else ():
            for source in nodes_in(parameter.of(node.args, node.kwargs)):
                for number in self.of[source]:
                    for other in self.of[node]:
                        self.sets.merge(number, other)

    def is_alias(self, node: Node, of: Node) -> bool:
        """Whether a node only returns another view of the value of `of`.

        That is true of views, of the items of a list of views, and of
        operators all of whose results were found in the storage of `of`.
        Such a node does not read the elements. Any other node may, even one
        without a schema.
        """
        facts = facts_of(node.target)
        if facts is None:
            return is_item(node)
        if facts.writes:
            return False
        if any(view.of(node.args, node.kwargs) is of for view in facts.views):
            return sum(arg is of for arg in arguments_of(node)) == 1
        numbers = self.of[node]
        return bool(numbers) and set(numbers) <= set(self.of[of])


def arguments_of(node: Node) -> list[Node]:
    """The nodes among a node's arguments; one that is given twice, twice."""
    return nodes_in((node.args, node.kwargs))


def nodes_in(argument: Argument) -> list[Node]:
    """The nodes in an argument; one that is in it twice, twice."""
    nodes: list[Node] = []
    map_arg(argument, nodes.append)
    return nodes


def is_item(node: Node) -> bool:
    """Whether a node takes an item out of the results of an operator."""
    source = node.args[0] if node.args else None
    if node.target is not operator.getitem or not isinstance(source, Node):
        return False
    facts = facts_of(source.target)
    return facts is not None and not facts.returns_one_tensor
