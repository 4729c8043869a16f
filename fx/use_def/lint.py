"""Stage 02, use-def: the verifier, which says where a graph is wrong.

A pass can edit a graph into something that is not a program: a value used
above its definition, a target that does not exist.  `problems(graph)` yields
such faults with their nodes, and does not stop at the first; `Graph.lint`
raises the first.  There is one function for each invariant, in the order in
which they are worth reading.  At the end stands `last_users`: where each value
of a legal graph is used for the last time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import torch

from ..linked_list.linked_list import LinkedList
from ..linked_list.namespace import is_parameter_name
from ..linked_list.opcodes import OPCODES
from ..linked_list.ordered_graph import OrderedGraph
from ..node import Node
from . import errors
from .dotted_path import MISSING, walk
from .values import AnyValue


class Problem(NamedTuple):
    """A fault in a graph.

    Attributes:
        node: where it is; None if it concerns the graph as a whole.
        message: what was found, and what would be right.
        kind: the exception that `Graph.lint` raises for it.
    """

    node: Node | None
    message: str
    kind: type[Exception] = RuntimeError


def problems(graph: OrderedGraph[Node]) -> Iterator[Problem]:
    """What is wrong with `graph`, not just the first fault.

    Structure comes before meaning: a graph whose opcodes, owners, names, order
    or users are wrong is not examined further.

    Cost: O(nodes + uses).
    """
    errors.refuse_torchs(graph)
    structural = list(structure_problems(graph))
    yield from structural
    if not structural:
        yield from parameter_problems(graph)
        yield from _output(graph)
        yield from _targets(graph)
        yield from code_problems(graph)


def code_problems(graph: OrderedGraph[Node]) -> Iterable[Problem]:
    """The problems that a graph's code generator finds, if it has any."""
    codegen: AnyValue = vars(graph).get("_codegen")
    return codegen.problems(graph) if hasattr(codegen, "problems") else ()


def structure_problems(graph: OrderedGraph[Node]) -> Iterator[Problem]:
    """What is wrong with opcodes, owners, names, order and users.

    Cost: O(nodes + uses).
    """
    nodes = list(graph._nodes)
    return chain(_nodes(graph, nodes), _uses(graph, nodes), _users(nodes))


def _nodes(graph: OrderedGraph[Node], nodes: list[Node]) -> Iterator[Problem]:
    """Each node has a legal opcode, this graph, and a name of its own."""
    names: set[str] = set()
    if len(nodes) != len(graph._nodes):
        message = (
            f"the Graph counts {len(graph._nodes)} nodes but has {len(nodes)}: "
            "a Node made by hand was put among them; use graph.create_node"
        )
        yield Problem(None, message)
    for node in nodes:
        if node._op not in OPCODES:
            yield Problem(node, f"Node {node} had unknown opcode {node.op}!")
        if node.graph is not graph:
            yield Problem(node, f"Node '{node}' does not belong to this Graph!")
        name = node._name
        if name in names:
            yield Problem(node, f"Node redefined name {name}!")
        elif not is_parameter_name(name):
            message = f"Node has the name {name!r}, which is not an identifier"
            yield Problem(node, message)
        names.add(name)


def _uses(graph: OrderedGraph[Node], nodes: list[Node]) -> Iterator[Problem]:
    """Each value is defined before it is used, and knows who uses it."""
    for node in nodes:
        for arg in node._inputs:
            if arg.graph is not graph or arg._erased:
                yield Problem(node, str(errors.not_in_graph(arg, node)))
            elif not 0 < arg._sort_key < node._sort_key:
                yield Problem(node, errors.used_before_defined(arg, node))
            if node not in arg.users:
                message = f"Node {node} uses {arg} but is not in its users"
                yield Problem(node, message)


def _users(nodes: list[Node]) -> Iterator[Problem]:
    """The users of each value are nodes of the graph that use it."""
    uses = {(arg, node) for node in nodes for arg in node._inputs}
    for node in nodes:
        for user in node.users:
            if (node, user) not in uses:
                message = (
                    f"Node {node} lists {user} as a user, but {user} does "
                    "not take it as an input"
                )
                yield Problem(node, message)


def parameter_problems(graph: OrderedGraph[Node]) -> Iterator[Problem]:
    """The placeholders are the parameters of a legal `def forward(self, …)`.

    Cost: O(nodes).
    """
    nodes = [node for node in graph._nodes if node._op == "placeholder"]
    nodes = nodes[1:] if nodes and is_own_self(nodes[0]) else nodes
    parameters = [(str(node.target), bool(node._args)) for node in nodes]
    for index, fault in parameter_faults(parameters):
        yield Problem(nodes[index], f"placeholder {nodes[index]}{fault}")


def is_own_self(node: AnyValue) -> bool:
    """Whether a first placeholder is the `self` of the generated method.

    It is, as in torch.fx, if it has this name and nothing else.
    """
    plain = not node.args and node.type is None
    return plain and node.op == "placeholder" and node.target == "self"


def parameter_faults(
    parameters: Iterable[tuple[str, bool]],
) -> Iterator[tuple[int, str]]:
    """What is wrong with `def forward(self, …)`.

    Args:
        parameters: the name of each, with its stars, and whether it has a
            default value.

    Yields:
        The index of a parameter and what is wrong with it.
    """
    seen = {"self"}
    last = ""
    for index, (parameter, has_default) in enumerate(parameters):
        bare = parameter.lstrip("*")
        if not is_parameter_name(bare):
            yield index, f" has the target {parameter!r}, not a name"
        if bare in seen:
            yield index, f": a second parameter named {bare}"
        if reason := _misplaced(parameter, has_default, last):
            yield index, f": {reason}"
        seen.add(bare)
        if parameter.startswith("*"):
            last = parameter
        elif has_default:
            last = "="


def _misplaced(parameter: str, has_default: bool, last: str) -> str:
    """Why a parameter cannot come after the ones before it, or "".

    Args:
        parameter: its name, with its stars.
        has_default: whether it has a default value.
        last: "" after plain parameters, "=" after one with a default, the
            starred parameter itself after that.
    """
    if last.startswith("**"):
        return f"{parameter} comes after {last}, which must be last"
    starred = parameter.startswith("*")
    if last.startswith("*") and starred and not parameter.startswith("**"):
        return f"{parameter} is a second *args, after {last}"
    if last == "=" and not has_default and not starred:
        return "has no default, but the parameter before it has one"
    if starred and has_default:
        return f"{parameter} cannot have a default"
    return ""


def _output(graph: OrderedGraph[Node]) -> Iterator[Problem]:
    """The last node, and no other, is the output, and returns one value."""
    outputs = [node for node in graph._nodes if node._op == "output"]
    if not outputs:
        yield Problem(None, "the Graph has no output: add graph.output(value)")
    for extra in outputs[1:]:
        yield Problem(extra, f"Node {extra} is a second output")
    for node in outputs:
        if len(node._args) != 1 or node._kwargs:
            yield Problem(node, f"Node {node} must have one argument")
    if outputs and (after := outputs[-1]._next) is not graph._root:
        message = f"Node {after} comes after the output and never runs"
        yield Problem(after, message)


def _targets(graph: OrderedGraph[Node]) -> Iterator[Problem]:
    """Targets are of the right type, and exist in the owning module."""
    for node in graph._nodes:
        op, target = node._op, node._target
        called = op == "call_function"
        if not (callable(target) if called else isinstance(target, str)):
            expected = "a Callable" if called else "a str"
            yield Problem(
                node,
                f"Node {node} target {target} has type "
                f"{torch.typename(target)} but {expected} is expected",
                ValueError,
            )
            continue
        owner = node.graph.owning_module
        if op in ("get_attr", "call_module") and owner is not None:
            yield from _path(node, owner)


def _path(node: Node, owner: object) -> Iterator[Problem]:
    """Each step of a dotted target exists, modules for call_module."""
    target = str(node.target)
    for prefix, atom, value in walk(owner, target):
        if value is MISSING or value is None:
            fault = f"references nonexistent attribute {atom} of {prefix}"
        elif node.op == "get_attr" or isinstance(value, torch.nn.Module):
            continue
        else:
            fault = f"{atom} of {prefix} does not reference an nn.Module"
        yield Problem(node, f"Node {node} target {target} {fault}")
        return


def excerpt(
    graph: OrderedGraph[Node], node: Node | None, around: int = 5
) -> str:
    """The lines of the printed graph near `node`, which is marked.

    Args:
        graph: the graph to print from.
        node: the node to mark; None gives the last lines.
        around: how many lines to show on each side.
    """
    nodes = list(graph._nodes)
    place = nodes.index(node) if node in nodes else len(nodes) - 1
    lines = []
    for index, near in enumerate(nodes):
        if abs(index - place) <= around:
            mark = "->" if near is node else "  "
            lines.append(f" {mark} {near.format_node()}")
    return "\n".join(lines)


def last_users(nodes: LinkedList[Node]) -> dict[Node, Node]:
    """For each value that is used, the last node to use it.

    Args:
        nodes: in an order in which they can run.

    Returns:
        node -> the last of its users.  A node without users has no entry.

    Cost: O(nodes + uses).
    """
    return {node: user for user in nodes for node in user._inputs}
