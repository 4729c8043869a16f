"""Passes: cut a module into parts, each a module with a graph of its own.

A function says for each call which part it belongs to.  Then the parts are put
in an order in which they can run, and the main graph calls one after another:

    def forward(self, x):
        submod_0 = self.submod_0(x)
        getitem, getitem_1 = submod_0[0], submod_0[1]
        return self.submod_1(getitem, getitem_1)
"""

from __future__ import annotations

import operator
from collections.abc import (
    Callable,
    Container,
    Hashable,
    Iterator,
    MutableMapping,
)
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import count, pairwise
from typing import TypeAlias

from torch import nn

from ..codegen.attributes import copy_attributes
from ..graph import Graph
from ..graph_module import OWN, GraphModule
from ..node import Node, map_arg
from ..use_def.dotted_path import find
from ..use_def.errors import refuse_torchs
from ..use_def.values import AnyValue, Argument
from .tools_common import topological_order
from .utils.call_order import kept_in_order

__all__ = ["split_module"]

PartId: TypeAlias = Hashable
"""What the callback answers: which part a call belongs to."""


@dataclass(frozen=True)
class Part:
    """The calls that become one module.

    Attributes:
        name: the module's name in the main module.
        nodes: its calls, in order.
        inputs: the values from outside that they use, as keys.
        outputs: their values that are used outside, as keys.
        needs: the parts that must run before this one -> two calls that show
            why: one there, and one here.
        needed_by: the parts that must run after this one, as keys.
    """

    name: str
    nodes: list[Node] = field(default_factory=list)
    inputs: dict[Node, None] = field(default_factory=dict)
    outputs: dict[Node, None] = field(default_factory=dict)
    needs: dict[PartId, tuple[Node, Node]] = field(default_factory=dict)
    needed_by: dict[PartId, None] = field(default_factory=dict)


Parts: TypeAlias = dict[PartId, Part]


def split_module(
    m: GraphModule,
    root_m: nn.Module,
    split_callback: Callable[[Node], PartId],
    qualname_map: MutableMapping[str, str] | None = None,
    keep_original_order: bool = False,
    keep_original_node_name: bool = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
    tuple_return: bool = False,
) -> GraphModule:
    """Cut a module into submodules, one for each part, that it calls in turn.

    Parameters of the function and attributes that it fetches stay in the main
    module, which hands them to the parts that use them.  Calls that have an
    effect stay in order with those that could notice.

    Args:
        m: the module; it is not changed, and the new one shares its modules
            and tensors.
        root_m: not used; torch.fx has it.
        split_callback: says for a call which part it belongs to, by a number
            or anything that can be a key.  Asked once for each, in order.
        qualname_map: filled with the new path of each module that is called
            -> its path in `m`.
        keep_original_order: run the parts in the order of their first calls.
            By default, a part runs as soon as its inputs are ready; of
            several, the last first.
        keep_original_node_name: name the nodes of the parts as in `m`.
        keep_original_input_name: name the inputs of the parts after the
            values; otherwise arg_0, arg_1, ...
        partition_affix: is part of the names: submod_<affix>_<part>.
        tuple_return: return a tuple also from parts with a single output.

    Returns:
        A module that computes what `m` computes.

    Raises:
        RuntimeError: a part needs another one that needs it, or, with
            `keep_original_order`, one that runs later.
        TypeError: `m` is a module of torch.fx.

    Cost: O(nodes + uses + pairs of parts that depend on each other).

    torch.fx: passes/split_module.py, split_module
    """
    refuse_torchs(m)
    affix = "" if partition_affix is None else f"{partition_affix}_"
    parts, part_of = _assign(m.graph, split_callback, f"submod_{affix}")
    connect(m.graph, parts, part_of)
    if keep_original_order:
        order = list(parts)
        _check_order(parts)
    else:
        order = _runnable_order(parts)
    modules: dict[str, AnyValue] = {}
    for part in (parts[key] for key in order):
        graph, called = _part_graph(
            part,
            keep_names=keep_original_node_name,
            input_names=keep_original_input_name,
            as_tuple=tuple_return,
        )
        modules[part.name] = GraphModule(
            {name: find(m, path) for name, path in called.items()}, graph
        )
        if qualname_map is not None:
            paths = {f"{part.name}.{name}": called[name] for name in called}
            qualname_map.update(paths)
    graph = _main_graph(m.graph, [parts[key] for key in order], tuple_return)
    fetched = [str(n.target) for n in graph.find_nodes(op="get_attr")]
    new = GraphModule({p: find(m, p) for p in fetched} | modules, graph)
    copy_attributes(m, new, fetched)  # says which buffers are persistent
    return new


# -- parts -------------------------------------------------------------------


def _assign(
    graph: Graph, split_callback: Callable[[Node], PartId], prefix: str
) -> tuple[Parts, dict[Node, PartId]]:
    """The parts with their calls, and the part of each call."""
    parts: Parts = {}
    part_of: dict[Node, PartId] = {}
    fetched = graph.find_nodes(op="get_attr")
    taken = {str(node.target).partition(".")[0] for node in fetched}
    for node in graph.nodes:
        if node.op.startswith("call"):
            key = part_of[node] = split_callback(node)
            if key not in parts:
                name = _free(f"{prefix}{key}", taken)
                taken.add(name)
                parts[key] = Part(name)
            parts[key].nodes.append(node)
    return parts, part_of


def _free(name: str, taken: Container[str]) -> str:
    """The name, or with a number behind it the first that is not taken."""
    number, free = 0, name
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free


def connect(graph: Graph, parts: Parts, part_of: dict[Node, PartId]) -> None:
    """Find what goes from part to part, and which must run before which."""

    def must_precede(before: Node, after: Node) -> None:
        first, second = part_of[before], part_of[after]
        if first != second:
            parts[second].needs.setdefault(first, (before, after))
            parts[first].needed_by[second] = None

    for node in graph.nodes:
        user = parts[part_of[node]] if node in part_of else None
        for value in node.all_input_nodes:
            maker = parts[part_of[value]] if value in part_of else None
            if maker is user:
                continue
            if user is not None:
                user.inputs[value] = None
            if maker is not None:
                maker.outputs[value] = None
                if user is not None:
                    must_precede(value, node)
    for before, after in kept_in_order(graph):
        must_precede(before, after)


# -- the order of the parts --------------------------------------------------


def _runnable_order(parts: Parts) -> list[PartId]:
    """The parts, each behind those that it needs."""
    try:
        needs = {key: part.needs for key, part in parts.items()}
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        steps = [_need(parts, b, a) for a, b in pairwise(error.args[1])]
        raise RuntimeError(
            "cycle exists between partitions!\n"
            + "\n".join(steps)
            + "\nPut these calls into one part, or cut one of the parts in two."
        ) from None
    waits = {key: len(part.needs) for key, part in parts.items()}
    later = {key: part.needed_by for key, part in parts.items()}
    newest_first = count(step=-1)
    return topological_order(waits, later, lambda *_: next(newest_first))


def _need(parts: Parts, user: PartId, needed: PartId) -> str:
    """Why a part must run after another one."""
    before, after = parts[user].needs[needed]
    why = (
        f"uses {before}"
        if before in after.all_input_nodes
        else f"must stay behind {before}, as one of the two may have an effect"
    )
    return f"  {parts[user].name} needs {parts[needed].name}: {after} {why}"


def _check_order(parts: Parts) -> None:
    """Raise if a part needs one that runs later."""
    for key, needed in out_of_order(parts):
        raise RuntimeError(
            "the parts cannot run in the order of their first calls:\n"
            f"{_need(parts, key, needed)}\n"
            "Leave out keep_original_order, or split in another way."
        )


def out_of_order(parts: Parts) -> Iterator[tuple[PartId, PartId]]:
    """Each part that needs a later one, and that one."""
    run: set[PartId] = set()
    for key, part in parts.items():
        run.add(key)
        yield from ((key, needed) for needed in part.needs if needed not in run)


# -- the graphs --------------------------------------------------------------


def _part_graph(
    part: Part, *, keep_names: bool, input_names: bool, as_tuple: bool
) -> tuple[Graph, dict[str, str]]:
    """The graph of a part, and name -> old path of the modules it calls."""
    graph = Graph()
    copies: dict[Node, Argument] = {}
    for number, value in enumerate(part.inputs):
        name = value.name if input_names else f"arg_{number}"
        copy = graph.placeholder(name, value.type)
        copy.meta = value.meta.copy()
        copies[value] = copy
    called: dict[str, str] = {}
    names: dict[str, str] = {}
    for node in part.nodes:
        target = node.target
        if node.op == "call_module":
            path = str(target)
            if path not in names:
                wish = path.replace(".", "_")
                # `add.module` must not become a method of each module.
                wish = f"{wish}_" if wish in OWN else wish
                names[path] = _free(wish, called)
                called[names[path]] = path
            target = names[path]
        copy = graph.create_node(
            node.op,
            target,
            map_arg(node.args, copies.__getitem__),
            map_arg(node.kwargs, copies.__getitem__),
            node.name if keep_names else None,
            node.type,
        )
        copy.meta = node.meta.copy()
        copies[node] = copy
    results = tuple(copies[value] for value in part.outputs)
    alone = len(results) == 1 and not as_tuple
    graph.output(results[0] if alone else results)
    return graph, called


def _main_graph(old: Graph, parts: list[Part], as_tuple: bool) -> Graph:
    """The graph that calls the parts in their order."""
    graph = Graph()
    graph.set_codegen(old._codegen)
    values: dict[Node, Argument] = {}
    for node in old.nodes:
        if node.op in ("placeholder", "get_attr"):
            values[node] = graph.node_copy(node)
    for part in parts:
        args = tuple(values[value] for value in part.inputs)
        call = graph.call_module(part.name, args)
        alone = len(part.outputs) == 1 and not as_tuple
        for number, value in enumerate(part.outputs):
            result = call
            if not alone:
                result = graph.call_function(operator.getitem, (call, number))
            result.meta = value.meta.copy()
            values[value] = result
    output = old.output_node()
    given = map_arg(output.args[0], values.__getitem__)
    graph.output(given, output.type).meta = output.meta.copy()
    return graph
