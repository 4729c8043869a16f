"""Stage 08, reinplace: which values share storage, found by running.

The graph is run once on fake tensors, which have storages but no data, and
`Storages` tells which nodes live in which of them.  Where the operators alone
decide, `memory.facts` answers.
"""

from __future__ import annotations

import operator
from typing import NamedTuple

import torch
from torch._guards import detect_fake_mode
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree

from ..graph_module import GraphModule
from ..interpreter import Interpreter
from ..memory.facts import facts_of
from ..node import Node, map_arg
from ..ordered.opcodes import Target
from ..usedef.arguments import map_aggregate
from ..usedef.values import Argument, Value

__all__ = [
    "DisjointSets",
    "Geometry",
    "Storages",
    "arguments_of",
    "geometry",
    "is_item",
    "nodes_in",
    "propagate",
    "tensors_in",
    "without_data",
]

# -- fake values -------------------------------------------------------------


class Geometry(NamedTuple):
    """Where in its storage a tensor has its elements, and what they are."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    dtype: torch.dtype
    conjugate: bool
    negative: bool

    def span(self) -> tuple[int, int]:
        """The first element that the tensor has, and one past the last."""
        if 0 in self.size:
            return self.offset, self.offset
        steps = zip(self.size, self.stride, strict=True)
        last = sum((size - 1) * stride for size, stride in steps)
        return self.offset, self.offset + last + 1

    def overlaps_itself(self) -> bool:
        """Whether two elements may be in one place.

        The answer is no if each dimension steps over all smaller ones.
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
        elements = 1
        for size in self.size:
            elements *= size
        return end - first == elements and not self.overlaps_itself()


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


def tensors_in(value: Value) -> list[torch.Tensor]:
    """The tensors with a storage in a value: itself, or in a list or tuple."""
    if isinstance(value, torch.Tensor):
        return [value] if value.layout is torch.strided else []
    if value is None or isinstance(value, (int, float, str)):
        return []
    return [
        leaf
        for leaf in pytree.tree_leaves(value)
        if isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided
    ]


def without_data(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of the meta device that lies in memory as `tensor` does."""
    size, stride, offset = geometry(tensor)[:3]
    end = geometry(tensor).span()[1]
    memory = torch.empty(end, dtype=tensor.dtype, device="meta")
    return memory.as_strided(size, stride, offset)


class _Propagation(Interpreter):
    """Runs a graph on fake tensors, and keeps every value."""

    def __init__(self, module: GraphModule, mode: FakeTensorMode) -> None:
        super().__init__(module, garbage_collect_values=False)
        self._mode = mode

    def get_attr(
        self, target: Target, args: tuple[Argument, ...], kwargs: Value
    ) -> Value:
        """The attribute, made fake if it is a tensor."""
        return map_aggregate(self.fetch_attr(str(target)), self.fake)

    def fake(self, value: Argument) -> Argument:
        """A fake tensor for a real one; of one storage if they are."""
        if isinstance(value, torch.Tensor):
            return self._mode.from_tensor(value)
        return value


def propagate(
    gm: GraphModule, sample_args: tuple[Value, ...]
) -> tuple[FakeTensorMode, dict[Node, Value]]:
    """Run a graph without data.

    Args:
        gm: the module; its parameters and buffers are made fake as well.
        sample_args: its inputs; tensors that share storage still do.

    Returns:
        The mode of the fake tensors, and the value of each node.

    Raises:
        RuntimeError: an input is missing or has no place.
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
    """Numbers in sets that can be merged; each set has one that names it."""

    def __init__(self, count: int = 0) -> None:
        self._parent = list(range(count))

    def add(self) -> int:
        """A new number, alone in its set.  They count from 0."""
        self._parent.append(len(self._parent))
        return len(self._parent) - 1

    def find(self, number: int) -> int:
        """The number that names the set of `number`.  Cost: O(1), nearly."""
        parent = self._parent
        while parent[number] != number:
            parent[number] = number = parent[parent[number]]
        return number

    def merge(self, one: int, other: int) -> int:
        """Make one set of two, and return its name: that of `one`."""
        one, other = self.find(one), self.find(other)
        self._parent[other] = one
        return one

    def __len__(self) -> int:
        return len(self._parent)


class Storages:
    """The memory of a program: the storages, and the nodes that live there.

    Attributes:
        sets: the storages, by number; those that may be one are merged.
        size: the bytes of each.
        of: node -> the storages that its value is in.
    """

    def __init__(self, values: dict[Node, Value]) -> None:
        """Number the storages of the fake values of a graph's nodes.

        Cost: O(nodes + arguments).
        """
        self.sets: DisjointSets = DisjointSets()
        self.size: list[int] = []
        self.of: dict[Node, tuple[int, ...]] = {}
        self._numbers: dict[int, int] = {}
        # No storage made later can have the identity of one of these.
        self._alive: list[torch.UntypedStorage] = []
        for node, value in values.items():
            found: dict[int, None] = {}
            for tensor in tensors_in(value) if node.op != "output" else ():
                found[self._number(tensor.untyped_storage())] = None
            self.of[node] = tuple(found)
        for node in values:
            self._merge_declared(node)

    def _number(self, storage: torch.UntypedStorage) -> int:
        """The number of a storage, a new one if it has none."""
        number = self._numbers.setdefault(id(storage), len(self.sets))
        if number == len(self.sets):
            self.sets.add()
            self._alive.append(storage)
            self.size.append(storage.nbytes())
        return number

    def number_of(self, tensor: torch.Tensor) -> int | None:
        """The number of a tensor's storage; None if no node lives there."""
        return self._numbers.get(id(tensor.untyped_storage()))

    def classes(self, node: Node) -> list[int]:
        """The names of the sets that the value of a node is in."""
        find = self.sets.find
        of = self.of[node]
        if len(of) == 1:
            return [find(of[0])]
        return list(dict.fromkeys([find(number) for number in of]))

    def _merge_declared(self, node: Node) -> None:
        """Let a view count as one even where these inputs made it a copy.

        `contiguous` and `reshape` copy or do not, as the strides will have it.
        """
        facts = facts_of(node.target)
        for parameter in facts.views if facts is not None else ():
            source = parameter.of(node.args, node.kwargs)
            if isinstance(source, Node):
                for one in self.of[source]:
                    for other in self.of[node]:
                        self.sets.merge(one, other)

    def shares_with_inputs(self, node: Node) -> bool:
        """Whether a result is in the storage of an argument."""
        mine = self.of[node]
        return any(
            number in mine
            for arg in node.all_input_nodes
            for number in self.of[arg]
        )

    def is_alias(self, node: Node, of: Node) -> bool:
        """Whether a node only gives another view of what `of` has.

        So it is for views, for items of a list of views, and for operators
        whose every result is found to be in the storage of `of`.
        """
        facts = facts_of(node.target)
        if facts is None:
            return is_item(node)
        if facts.writes:
            return False
        if any(one.of(node.args, node.kwargs) is of for one in facts.views):
            return sum(arg is of for arg in arguments_of(node)) == 1
        found = self.of[node]
        return bool(found) and set(found) <= set(self.of[of])


def arguments_of(node: Node) -> list[Node]:
    """The nodes among the arguments, as often as they stand there."""
    if not node.kwargs and all(isinstance(a, Node) for a in node.args):
        return [arg for arg in node.args if isinstance(arg, Node)]
    return nodes_in((node.args, dict(node.kwargs)))


def nodes_in(argument: Argument) -> list[Node]:
    """The nodes in an argument, as often as they stand there."""
    found: list[Node] = []
    map_arg(argument, found.append)
    return found


def is_item(node: Node) -> bool:
    """Whether a node takes an item out of what an operator returned."""
    source = node.args[0] if node.args else None
    return (
        node.target is operator.getitem
        and isinstance(source, Node)
        and source.op == "call_function"
        and _gives_several(source.target)
    )


def _gives_several(target: Target) -> bool:
    """Whether an operator returns a tuple or a list."""
    if not isinstance(target, OpOverload):
        return False
    returns = target._schema.returns
    return len(returns) != 1 or str(returns[0].type) != "Tensor"
