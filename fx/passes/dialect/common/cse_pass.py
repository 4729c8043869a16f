"""Passes: equal calls computed once (common subexpression elimination).

    a = x * x              a = x * x
    b = x * x      →       return (a + a,)
    return (a + b,)

Two equal calls are one only if nobody can tell the difference.  Between them,
nothing may have written what they read; and as their results become one value,
nobody may write into it, or find out in another way that there is just one.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Hashable, Iterator
from typing import Final

import torch

from ....extra.effects.effect_tables import FRESH_OPERATORS
from ....extra.effects.effects import Memory, classify, is_new, is_tensor
from ....graph import Graph
from ....graph_module import GraphModule
from ....node import Node
from ....use_def.dead_code import is_in
from ....use_def.values import AnyValue, Argument
from ...infra.pass_base import PassBase, PassResult
from ...structure import BY_REPR
from ...tools_common import CALLABLE_NODE_OPS

__all__ = ["CSEPass", "get_CSE_banned_ops"]

_BANNED: Final = (
    "dropout _fused_dropout _standard_gamma bernoulli multinomial "
    "native_dropout normal poisson binomial rrelu rand_like rand randint randn "
    "randperm add_ sub_ mul_ div_ pow_ lerp_ relu_ sigmoid_ tanh_"
).split()


def get_CSE_banned_ops() -> set[AnyValue]:
    """Operators that draw random numbers, and some that work in place.

    They need not be banned here: no call with an effect is merged.

    torch.fx: passes/dialect/common/cse_pass.py, get_CSE_banned_ops
    """
    return {getattr(torch.ops.aten, name) for name in _BANNED}


class CSEPass(PassBase):
    """Leaves out a call that equals an earlier one, whose result is used.

    Merged are calls without an effect, with the same arguments: the same
    nodes, and constants that are equal and of one type.  A method is merged
    only if its object is known to be a tensor.  Two values are left apart if
    both of them are returned, because the caller may write into one.

    torch.fx: passes/dialect/common/cse_pass.py, CSEPass; it merges whatever is
    not banned. Its own warning says that graphs with effects must not be given
    to it, or that the caller has to list them all.
    """

    def __init__(self, banned_ops: Collection[AnyValue] | None = None) -> None:
        """Merge all calls but those of some functions and operators."""
        self.banned_ops: Collection[AnyValue] = banned_ops or ()

    def call(self, graph_module: GraphModule) -> PassResult:
        """A new module without the equal calls, or the old one as it was.

        Cost: O(nodes + uses).
        """
        graph = graph_module.graph
        merged = dict(equal_calls(graph, self.banned_ops))
        if not merged:
            return PassResult(graph_module, False)
        new = Graph()
        values: dict[Node, Node] = {}
        for node in graph.nodes:
            if node in merged:
                values[node] = values[merged[node]]
            else:
                values[node] = new.node_copy(node, values.__getitem__)
        new.set_codegen(graph._codegen)
        return PassResult(GraphModule(graph_module, new), True)


def equal_calls(
    graph: Graph, banned_ops: Collection[AnyValue] = ()
) -> Iterator[tuple[Node, Node]]:
    """Calls that can be left out, and for each the earlier call it equals.

    Args:
        graph: is not changed.
        banned_ops: functions, operators or packets of them to leave alone.
    """
    tensors: dict[Node, bool] = {}
    written = _LastWrites(graph)
    sharable, returned = sharable_calls(graph, tensors)
    merged: dict[Node, Node] = {}
    banned = {*banned_ops}
    known: dict[Hashable, Node] = {}
    for node in graph.nodes:
        if node.op not in CALLABLE_NODE_OPS:
            continue
        effect = classify(node, tensors)
        if effect.kind != "pure":
            if not effect.only_draws:
                written.note(node)
            continue
        target = getattr(node.target, "overloadpacket", node.target)
        if node not in sharable or is_in(banned, target):
            continue
        key = _key(node, merged), written.before(node)
        first = known.setdefault(key, node)
        if first is node or {first, node} <= returned:
            continue
        if node in returned:
            returned.add(first)
        merged[node] = first
        yield node, first


# -- what they read ----------------------------------------------------------


class _LastWrites:
    """When the memory that calls read was last written, in a walk.

    A write into memory that a call of the graph made counts for those who use
    that memory.  Any other effect counts for all calls, because it is not
    known what it reached.
    """

    def __init__(self, graph: Graph) -> None:
        """Find the memories that the calls of a graph make."""
        self._memory = Memory(graph.nodes)
        self._used: dict[Node, list[int]] = {}
        self._clock = 0
        self._anywhere = 0
        self._last: dict[int, int] = {}
        for number, users in enumerate(self._memory.uses()):
            for user in users:
                self._used.setdefault(user, []).append(number)

    def note(self, node: Node) -> None:
        """Note that a call with an effect has run."""
        self._clock += 1
        if self._memory.is_made_here(node):
            for number in self._used.get(node, ()):
                self._last[number] = self._clock
        else:
            self._anywhere = self._clock

    def before(self, node: Node) -> int:
        """A number that is another one if what a call reads was written."""
        times = [self._last.get(n, 0) for n in self._used.get(node, ())]
        return max([self._anywhere, *times])


# -- what becomes of their results -------------------------------------------

_TELLING: Final = (operator.is_, operator.is_not, id)
"""Functions that tell whether two values are one."""


def sharable_calls(
    graph: Graph, tensors: dict[Node, bool]
) -> tuple[set[Node], set[Node]]:
    """The calls whose results nobody writes, and those that are returned.

    Followed are all values that may be views of a result or hold it.  The walk
    begins at the last node: if somebody writes into a view, neither it nor the
    tensor that it shows may be shared.
    """
    sharable: set[Node] = set()
    returned: set[Node] = set()
    for node in reversed(graph.nodes):
        seen = [user for user in node.users if not is_copy(user, tensors)]
        tells = any(node.target is function for function in _TELLING)
        if not tells and all(
            user.op == "output"
            or (user in sharable and classify(user, tensors).kind == "pure")
            or _only_reads(user, node, tensors)
            for user in seen
        ):
            sharable.add(node)
        if any(user.op == "output" or user in returned for user in seen):
            returned.add(node)
    return sharable, returned


def is_copy(node: Node, tensors: dict[Node, bool]) -> bool:
    """Whether a call only reads its arguments, and its result keeps none.

    A module may still change itself, as a batch norm in training does.
    """
    effect = classify(node, tensors)
    only_reads = effect.kind == "pure" or effect.only_draws
    return is_new(node, tensors) and (only_reads or node.op == "call_module")


_OPERATORS: Final = {getattr(operator, name) for name in FRESH_OPERATORS}


def known_tensors(graph: Graph) -> dict[Node, bool]:
    """Which nodes are tensors, as far as they were asked about.

    An operator of Python is taken to give a tensor if an operand is one.  In
    `x - a` the input `x` may be anything that has a `-`, and the result could
    hold `a`; folding constants would stop at each such call.
    """
    tensors: dict[Node, bool] = {}
    for node in graph.nodes:
        if is_in(_OPERATORS, node.target) and any(
            is_tensor(arg, tensors) for arg in node.args
        ):
            tensors[node] = True
    return tensors


def _only_reads(user: Node, node: Node, tensors: dict[Node, bool]) -> bool:
    """Whether a call writes into another tensor, and does nothing else."""
    target = classify(user, tensors).target
    if target is None:
        return False
    written = target.of(user.args, user.kwargs)
    return written is not node and is_tensor(written, tensors)


# -- equality ----------------------------------------------------------------


def _key(node: Node, merged: dict[Node, Node]) -> Hashable:
    """What equal calls have in common.

    The type of a constant is part of it: `1 == 1.0 == True` in Python, but as
    operands they give results of other dtypes.
    """

    def key(value: Argument) -> Hashable:
        if isinstance(value, Node):
            return merged.get(value, value)
        if isinstance(value, tuple | list):
            return (type(value), *map(key, value))
        if isinstance(value, dict):
            pairs = [(key(name), key(item)) for name, item in value.items()]
            return (type(value), *pairs)
        if isinstance(value, slice):
            return (slice, *map(key, (value.start, value.stop, value.step)))
        if type(value) in BY_REPR:
            return (type(value), repr(value))
        return id(value)

    target = node.target if isinstance(node.target, str) else id(node.target)
    kwargs = sorted(node.kwargs.items())
    return (node.op, target, key(node.args), *[key(item) for item in kwargs])
