"""Stage 08, reinplace: which values share memory, by what operators.

Two kinds of questions, which `reinplace` asks at every node.  What is this
operator: a view (and of which argument), a write, the in-place or the inverse
of another?  Its schema answers, so that there is no list of operators here:

    add.Tensor(Tensor self, ...) -> Tensor             twin: add_.Tensor
    select.int(Tensor(a) self, ...) -> Tensor(a)       a view of self
    select_scatter(Tensor self, Tensor src, ...)       inverse of select.int

And what is in this memory: the graph is run once on fake tensors, which have
storages but no data, and `Storages` tells which nodes live in which of them.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

import torch
from torch import Tag
from torch._guards import detect_fake_mode
from torch._ops import OpOverload, OpOverloadPacket
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree

from ..graph_module import GraphModule
from ..interpreter import Interpreter
from ..node import Node
from ..usedef.arguments import Argument, Target, Value, map_aggregate, map_arg

__all__ = [
    "DisjointSets",
    "Geometry",
    "OperatorFacts",
    "Storages",
    "arguments_of",
    "facts_of",
    "geometry",
    "is_item",
    "nodes_in",
    "propagate",
    "tensors_in",
    "without_data",
]

Operator: TypeAlias = OpOverload[..., Value]
"""One overload of an operator of torch."""

# -- operators ---------------------------------------------------------------


class Parameter(NamedTuple):
    """One parameter of an operator, as calls give it."""

    name: str
    place: int

    def of(self, node: Node) -> Argument:
        """What a call gives for it, or None."""
        if self.place < len(node.args):
            return node.args[self.place]
        return node.kwargs.get(self.name)


class OperatorFacts(NamedTuple):
    """What the schema of an operator says about memory.

    Attributes:
        first: the first parameter, if that is one tensor.
        source: the parameter that the scatter operators write; or None.
        views: the parameters that the result may be a view of.
        writes: the parameters that are written into.
        twin: the operator that computes the same in its first argument.
        view: for a scatter operator, the view that it is the inverse of.
        random: whether it draws random numbers.
        reads_layout: whether the result depends on strides, not on elements
            alone.
    """

    first: Parameter | None
    source: Parameter | None
    views: tuple[Parameter, ...]
    writes: tuple[Parameter, ...]
    twin: Operator | None
    view: Operator | None
    random: bool
    reads_layout: bool


def facts_of(target: Target) -> OperatorFacts | None:
    """What is known of a target; None if it is no operator with a schema.

    Cost: O(1) once an operator has been seen.
    """
    return _facts(target) if isinstance(target, OpOverload) else None


_LAYOUT_READERS: Final = frozenset(
    "is_contiguous is_non_overlapping_and_dense is_strides_like_format set "
    "storage_offset stride sym_is_contiguous sym_storage_offset "
    "sym_stride".split()
)
"""Operators of aten, besides as_strided and its kin, that look at strides."""


@functools.lru_cache(maxsize=4096)
def _facts(op: Operator) -> OperatorFacts:
    """What is known of an operator."""
    base = _base_name(op)
    arguments = op._schema.arguments
    views: list[Parameter] = []
    writes: list[Parameter] = []
    for place, argument in enumerate(arguments):
        if argument.alias_info is not None:
            into = writes if argument.alias_info.is_write else views
            into.append(Parameter(argument.name, place))
    functional = not views and not writes
    one_tensor = bool(arguments) and _is_tensor(arguments[0].type)
    view = _inverted_view(op) if functional else None
    return OperatorFacts(
        Parameter(arguments[0].name, 0) if one_tensor else None,
        Parameter(arguments[1].name, 1) if view is not None else None,
        tuple(views),
        tuple(writes),
        _in_place_twin(op) if functional and one_tensor else None,
        view,
        Tag.nondeterministic_seeded in op.tags,
        base.startswith("as_strided") or base in _LAYOUT_READERS,
    )


def _is_tensor(jit_type: Value) -> bool:
    """Whether a type in a schema is `Tensor`.

    Args:
        jit_type: a torch._C.JitType, of which torch's stubs know too little.
    """
    return str(jit_type) == "Tensor"


def _base_name(op: Operator) -> str:
    """The name without namespace and overload: "add"."""
    return op._schema.name.partition("::")[2]


def _overloads(op: Operator, name: str) -> Iterator[Operator]:
    """The overloads of the operator `name` in the namespace of `op`."""
    namespace = op._schema.name.partition("::")[0]
    packet = getattr(getattr(torch.ops, namespace), name, None)
    if isinstance(packet, OpOverloadPacket):
        names: Callable[[], list[str]] = packet.overloads
        for overload in names():
            yield getattr(packet, overload)


def _in_place_twin(op: Operator) -> Operator | None:
    """The overload of `name_` that takes what `op` takes, and writes self."""
    for twin in _overloads(op, f"{_base_name(op)}_"):
        if _is_twin(op._schema, twin._schema):
            return twin
    return None


def _is_twin(
    schema: torch._C.FunctionSchema, twin: torch._C.FunctionSchema
) -> bool:
    """Whether a call of one is a call of the other, in place."""
    if len(schema.returns) != 1 or not twin.arguments:
        return False
    self, *others = (argument.alias_info for argument in twin.arguments)
    return (
        _is_tensor(schema.returns[0].type)
        and self is not None
        and self.is_write
        and all(info is None for info in others)
        and schema.arguments[0].type == twin.arguments[0].type
        # The first may have another name: it is given by position.
        and _parameters_fit(schema.arguments[1:], twin.arguments[1:])
    )


def _inverted_view(op: Operator) -> Operator | None:
    """For `select_scatter(self, src, ...)`: the view `select(self, ...)`."""
    name, _, scatter = _base_name(op).rpartition("_")
    arguments = op._schema.arguments
    if scatter != "scatter" or [a.name for a in arguments[:2]] != [
        "self",
        "src",
    ]:
        return None
    for view in _overloads(op, name):
        given = view._schema.arguments
        is_view = bool(given) and given[0].alias_info is not None
        rest = [arguments[0], *arguments[2:]]
        if is_view and _parameters_fit(rest, given):
            return view
    return None


def _parameters_fit(
    given: Iterable[torch._C.Argument], taken: Iterable[torch._C.Argument]
) -> bool:
    """Whether arguments for some parameters can be given for others.

    A default that the first have must be the default of the second.
    """
    ours, theirs = list(given), list(taken)
    return len(ours) == len(theirs) and all(
        one.name == other.name
        and one.type == other.type
        and one.kwarg_only == other.kwarg_only
        and (
            not one.has_default_value()
            or (
                other.has_default_value()
                and one.default_value == other.default_value
            )
        )
        for one, other in zip(ours, theirs, strict=True)
    )


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
            source = parameter.of(node)
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
        if any(one.of(node) is of for one in facts.views):
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
