"""Passes: one product of matrices for several with the same right operand.

    a = x @ w                     rows = cat([x, y])
    b = y @ w              →      a, b = split(rows @ w)

Several small products cost more than one large one, which needs fewer calls
and reads the weight `w` once.  They can be one if all
their operands can be there before any of their results is needed, so this is a
question of order: no path may lead from one to another, and none of what they
read may be written between them.
"""

from __future__ import annotations

import operator
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations

import torch
from torch import nn

from .._symbolic_trace import symbolic_trace
from ..extra.effects.effects import owned
from ..extra.matching.call_forms import form
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node
from ..passes.tools_common import Pair, sorted_nodes
from ..passes.utils.call_order import kept_in_order
from ..use_def.values import AnyValue, Argument

__all__ = [
    "are_nodes_independent",
    "may_depend_on",
    "merge_matmul",
    "split_result_tensors",
]


def merge_matmul(in_mod: nn.Module) -> GraphModule:
    """A module with fewer calls of `torch.matmul`.

    Products with the same right operand are merged, also if an attribute is
    fetched twice for them.  The left operands may have any shapes: they are
    joined as rows.  The right one must be known to be a matrix or a vector,
    as a parameter or by what `ShapeProp` has noted.  Operands are taken for
    dense tensors.  Sums may be rounded in another way than before.

    While autograd records, the products are computed one by one all the same,
    in addition to the large one: run a merged module without gradients.

    Args:
        in_mod: a module to trace, or one that has a graph. It is not changed,
            and its tensors are shared.

    Cost: O(uses + nodes · log nodes), and tracing.

    torch.fx: experimental/merge_matmul.py, merge_matmul; it looks for
    dependence up to six uses back, does not ask for effects, and raises at the
    second weight that it finds.
    """
    gm = in_mod if isinstance(in_mod, GraphModule) else symbolic_trace(in_mod)
    kept = [*kept_in_order(gm.graph)]
    merged = {group[0]: group for group in _at_once(gm.graph, kept)}
    if not merged and gm is not in_mod:
        return gm
    leader = {node: first for first, all_ in merged.items() for node in all_}
    new = Graph()
    values: dict[Node, Node] = {}
    for node in sorted_nodes(gm.graph.nodes, kept, leader):
        if node in merged:
            _add_merged(new, merged[node], values)
        else:
            values[node] = new.node_copy(node, values.__getitem__)
    new.set_codegen(gm.graph._codegen)
    return GraphModule(gm, new, type(gm).__name__)


# -- which products ----------------------------------------------------------


def _at_once(graph: Graph, kept: Iterable[Pair]) -> Iterator[list[Node]]:
    """Products that can be computed at the same time, in order.

    Whether two products may be merged depends on which others are.  So a run
    is played through, which answers it for all of them: calls that can run at
    the same moment do not depend on each other, and the moments are in order.

    In this run a product waits as long as anything else can run.  Then all
    products of one right operand run that can: of the operand that has been
    complete for the shortest time, if there is one.

    Cost: O(uses).
    """
    later = {node: [*node.users] for node in graph.nodes}
    waits = {node: len(node.all_input_nodes) for node in graph.nodes}
    for first, second in kept:
        later[first].append(second)
        waits[second] += 1
    right = _right_operands(graph)
    missing = Counter(right.values())
    products: OrderedDict[object, list[Node]] = OrderedDict()
    ready = deque(node for node in graph.nodes if not waits[node])
    while ready or products:
        if ready:
            run = [ready.popleft()]
        else:
            run = sorted(products.popitem(last=False)[1])
        if len(run) > 1:
            yield run
        for user in [user for node in run for user in later[node]]:
            waits[user] -= 1
            if waits[user]:
                continue
            if user not in right:
                ready.append(user)
                continue
            operand = right[user]
            products.setdefault(operand, []).append(user)
            missing[operand] -= 1
            if not missing[operand]:
                products.move_to_end(operand, last=False)


def _right_operands(graph: Graph) -> dict[Node, object]:
    """The products that can be merged, and what stands for the right operand.

    For a fetched attribute that is the tensor, by its identity.  An operand of
    three dimensions is a matrix for each of several left operands, whose rows
    could not be joined.
    """
    operands: dict[Node, object] = {}
    for node in graph.nodes:
        _, right = _operands(node) or (None, None)
        if right is not None and _rank(right) in (1, 2):
            tensor = _fetched(right)
            operands[node] = right if tensor is None else id(tensor)
    return operands


def _operands(node: Node) -> tuple[Node, Node] | None:
    """Both operands of a product; None for another call, or with `out=`."""
    if node.target is not torch.matmul:
        return None
    call_form = form(node)
    if call_form is None or call_form.names != ("self", "other"):
        return None
    left, right = call_form.values
    if isinstance(left, Node) and isinstance(right, Node):
        return left, right
    return None


def _rank(node: Node) -> int | None:
    """How many dimensions a value has, if that is known."""
    tensor = _fetched(node)
    if tensor is None:
        tensor = node.meta.get("val")
    if isinstance(tensor, torch.Tensor):
        return tensor.dim()
    shape = getattr(node.meta.get("tensor_meta"), "shape", None)
    return None if shape is None else len(shape)


def _fetched(node: Node) -> AnyValue:
    """What a get_attr node fetches; None if that is not known."""
    return owned(node) if node.op == "get_attr" else None


# -- the product -------------------------------------------------------------


def _add_merged(
    graph: Graph, products: Sequence[Node], values: dict[Node, Node]
) -> None:
    """Add one product for several to a graph, and note their values.

    Shapes are known when the graph runs.  So left operands are made matrices
    then, and results get their dimensions back.
    """
    pairs = [pair for pair in map(_operands, products) if pair is not None]
    lefts = [values[left] for left, _ in pairs]
    known = [_rank(left) == 2 for left, _ in pairs]
    rows: list[Argument] = [
        left if flat else graph.call_function(as_rows, (left,))
        for left, flat in zip(lefts, known, strict=True)
    ]
    joined = graph.call_function(torch.cat, (rows,))
    right = values[pairs[0][1]]
    product = graph.call_function(torch.matmul, (joined, right))
    parts = graph.call_function(split_result_tensors, (product, rows, right))
    # To a later trace, too, it is one call: inside, it asks about gradients.
    parts.meta["is_wrapped"] = True
    for place, old in enumerate(products):
        new = graph.call_function(operator.getitem, (parts, place))
        if not known[place]:
            new = graph.call_function(with_rows_of, (new, lefts[place]))
        new.meta.update(old.meta)
        new.type = old.type
        values[old] = new


def as_rows(x: torch.Tensor) -> torch.Tensor:
    """A tensor as a matrix: all dimensions but the last are one."""
    return x.unsqueeze(0).flatten(0, -2)


def with_rows_of(part: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """What became of the rows of `x`, in the dimensions that `x` has."""
    return part.reshape(x.shape[:-1] + part.shape[1:])


def split_result_tensors(
    result: torch.Tensor,
    inputs: list[torch.Tensor],
    right: torch.Tensor | None = None,
) -> tuple[torch.Tensor, ...]:
    """A product taken apart into the products of its inputs.

    Nobody else uses `result`, so each part may be written in place, also
    where gradients are recorded.  (Autograd forbids it for the parts that
    `torch.split` makes, and a ReLU in place behind a product would fail.)

    The gradient of a part that no loss uses is zero rows of that of `result`,
    which is a gradient all the same, and becomes NaN behind a square root of
    zero.  Where autograd records, each part is therefore a product of its own.

    Args:
        result: the product of the inputs, one below the other, with a matrix.
        inputs: each has as many rows as its part gets.
        right: the matrix; without it, all parts share their gradients.

    torch.fx: experimental/merge_matmul.py, split_result_tensors
    """
    if right is not None and result.requires_grad:
        return tuple(torch.matmul(left, right) for left in inputs)
    sizes = [left.shape[0] for left in inputs]
    split: AnyValue = torch.unsafe_split_with_sizes
    copied: AnyValue = torch.split_with_sizes_copy
    try:
        return tuple(split(result, sizes))
    except RuntimeError:  # torch.vmap has no rule for it
        return tuple(copied(result, sizes))


# -- dependence --------------------------------------------------------------


def may_depend_on(a: Node, b: Node, search_depth: int = 6) -> bool:
    """Whether a node may need the value of another one.

    `merge_matmul` does not ask; it is here for programs for torch.fx.

    Args:
        a: the node.
        b: the other one; a node depends on itself.
        search_depth: how many uses to follow.

    Returns:
        False if `a` does not need `b`. True if it does, or if there is more
        to look at behind the last use that is followed.

    Cost: O(nodes that are looked at, and their uses).

    torch.fx: experimental/merge_matmul.py, may_depend_on
    """
    reached = {a}
    for _ in range(search_depth):
        if b in reached:
            return True
        reached = {value for node in reached for value in node.all_input_nodes}
    return b in reached or any(node.all_input_nodes for node in reached)


def are_nodes_independent(nodes: list[Node]) -> bool:
    """Whether no node among some may need the value of another one.

    Cost: that of `may_depend_on` for each pair.

    torch.fx: experimental/merge_matmul.py, are_nodes_independent
    """
    return not any(may_depend_on(a, b) for a, b in permutations(nodes, 2))
