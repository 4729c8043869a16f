"""Stage 07, rewriter: what a pattern requires of the nodes that match it.

A pattern is a graph, and the matcher compares each of its nodes with many
nodes of the graph that is searched.  What does not depend on that graph is
worked out here once: `prepare` says for each node of the pattern what its
partner must look like.  `Exact` decides when two calls are the same, by the
rule of torch.fx; `call_forms.py` has the class that also accepts equivalent
calls.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias, TypedDict

import torch

from ..graph import Graph
from ..node import Node
from ..torch_internals.overloads import OpOverload
from ..usedef.dotted_path import find
from ..usedef.values import Argument, Value
from .all_arguments import by_schema, by_signature

Pair: TypeAlias = tuple[Sequence[Argument], Sequence[Argument]]
"""The arguments of two calls in one order: the pattern's, the graph's."""

BY_OPCODE = ("placeholder", "get_attr", "output")
"""Opcodes whose target does not matter for a match."""


class MatchOptions(TypedDict, total=False):
    """Ways to match that torch.fx does not have; all are off by default.

    Attributes:
        normalize: equivalent calls match: `x + y`, `torch.add(x, y)` and
            `x.add(y)`; arguments by position or by keyword, defaults left
            out or not; `x * 2` and `2 * x`.
        compare_constants: tensors that the pattern fetches must equal those
            of the graph, in dtype, shape and value.
        modules_by_class: a module of the pattern matches every module of its
            class, whatever its path, settings and weights; but if it has
            weights and is called twice, one and the same. In a replacement,
            its path means the module that it is paired with in each match,
            unless the replacement has a module of another class there. One
            of that class with other settings is refused. What a callback
            returns means what it has.
        respect_mutations: writes and reads keep their order, and what is
            written is still written. A match is left alone if one of its
            nodes would move across a node that may have an effect, or, if the
            match or its replacement may have one itself, across any other
            call. It is left alone, too, if it has an effect that its
            replacement is not known to have, unless that is a write into
            memory that nobody reads afterwards under another name; and if its
            replacement writes into an input that is read afterwards, and the
            match does not. Calls of which nothing is known are not writes.
    """

    normalize: bool
    compare_constants: bool
    modules_by_class: bool
    respect_mutations: bool


def check_options(options: Collection[str]) -> None:
    """Raise TypeError if an option has a name that none has."""
    known = [*MatchOptions.__annotations__, "carry_meta", "recompute_meta"]
    for name in options:
        if name not in known:
            raise TypeError(
                f"there is no option {name!r}: the options are "
                f"{', '.join(known)}"
            )


class Exact:
    """Two calls are the same if opcode, target and arguments agree.

    This is the rule of torch.fx.
    """

    def partners(
        self, graph: Graph, sought: Iterable[Node]
    ) -> dict[Node, list[Node]]:
        """For nodes of a pattern, those of a graph that may be equal, in order.

        They have the opcode and, where it matters, the target.
        """
        return {
            node: graph.find_nodes(
                op=node.op,
                target=None if node.op in BY_OPCODE else node.target,
            )
            for node in sought
        }

    def pair(self, pattern: Node, node: Node) -> Pair | None:
        """The arguments of both calls, or None if the calls differ.

        If two calls of an OpOverload were written with different arguments,
        its schema fills in the defaults of both.
        """
        raise NotImplementedError("stage 07: Exact.pair")

    def commutes(self, pattern: Node) -> bool:
        """Whether the first two operands may be exchanged: never, here."""
        return False

    def conflict(self, paired: Mapping[Node, Value]) -> str:
        """Why pairs that match one by one do not match together; here "".

        Args:
            paired: node of the pattern -> what it is paired with.
        """
        return ""

    def matched_path(
        self, path: str, root: object, paired: Mapping[Node, Value]
    ) -> str | None:
        """Where the searched module has what a match gives for a path; None.

        Args:
            path: what a replacement calls or fetches.
            root: where the replacement has it, if it does.
            paired: node of the pattern -> what it is paired with.

        Returns:
            The path; "" if what `root` has is meant, and None if the match
            does not say.
        """
        return None

    def same_value(self, pattern: Node, node: Node) -> bool:
        """Whether two get_attr nodes fetch tensors of one class.

        Raises:
            AssertionError: a graph has no owner to look into.
            RuntimeError: the pattern fetches something other than a tensor.
        """
        theirs, ours = fetched(pattern), fetched(node)
        if type(theirs) is not type(ours):
            return False
        if not isinstance(theirs, torch.Tensor):
            raise RuntimeError(
                f"Unsupported type {theirs} when matching attributes: "
                f"pattern node {pattern} fetches it, and only tensors can "
                "be compared"
            )
        return True


def fetched(node: Node) -> Value:
    """What a get_attr node fetches.

    Raises:
        AssertionError: its graph has no owner.
    """
    owner = node.graph.owning_module
    if owner is None:
        raise AssertionError(
            f"{node}.graph.owning_module must not be None: put the graph of "
            f"get_attr node {node} into a GraphModule"
        )
    return find(owner, str(node.target))


def side_by_side(pattern: Node, node: Node) -> Pair | None:
    """The arguments of two calls, keyword values after the positional ones.

    None if their keywords differ. What they call is not compared. Calls of a
    leaf function that are written in different ways get all their arguments.
    """
    named, others = pattern.kwargs, node.kwargs
    is_alike = [*named] == [*others]
    if not is_alike or len(pattern.args) != len(node.args):
        in_full = by_signature(pattern, node)
        if in_full or not is_alike:
            return in_full
    if not named:
        return pattern.args, node.args
    return (*pattern.args, *named.values()), (*node.args, *others.values())


class PatternNode(NamedTuple):
    """What one node of the pattern requires of its partner in the graph.

    Attributes:
        wildcard: it is a placeholder that takes anything.
        user_count: how many users it has in the pattern, if its partner may
            have no others; -1 if the partner may have any number.
        commutes: its first two operands may be exchanged, and that can help.
    """

    wildcard: bool
    user_count: int
    commutes: bool


class PreparedPattern(NamedTuple):
    """A pattern, and what the matcher has to know of it.

    Attributes:
        comparison: when two calls are the same.
        nodes: what each node requires that an anchor depends on.
        anchors: where matching begins: what only the output uses.
        placeholders: the pattern's inputs.
        returning: what the pattern returns, each node once.
    """

    comparison: Exact
    nodes: dict[Node, PatternNode]
    anchors: list[Node]
    placeholders: list[Node]
    returning: list[Node]


def prepare(
    pattern: Graph,
    comparison: Exact,
    *,
    match_output: bool,
    match_placeholder: bool,
) -> PreparedPattern:
    """Work out what each node of a pattern requires.

    Args:
        pattern: a graph with an output.
        comparison: when two calls are the same.
        match_output: the output is to be matched, too.
        match_placeholder: a placeholder is not a wildcard: of the nodes,
            only placeholders match it.

    Cost: O(size of the pattern).
    """
    output = pattern.output_node()
    returning = output.all_input_nodes
    anchors = [node for node in returning if len(node.users) == 1]
    if match_output:
        anchors = [output]
    reached: dict[Node, Node | None] = {}
    for anchor in anchors:
        reached |= upstream(anchor, reached)
    free = {*returning, output}
    nodes = {}
    for node in reached:
        inner = node not in free and node.op != "placeholder"
        nodes[node] = PatternNode(
            node.op == "placeholder" and not match_placeholder,
            sum(user in reached for user in node.users) if inner else -1,
            comparison.commutes(node)
            and (match_placeholder or not _has_free_operands(node)),
        )
    placeholders = pattern.find_nodes(op="placeholder")
    return PreparedPattern(comparison, nodes, anchors, placeholders, returning)


def _has_free_operands(node: Node) -> bool:
    """Whether its operands are two inputs, each of which is read only here.

    Then they match in either order, and to try both would double the ways.
    """
    inputs = node.all_input_nodes
    return len(inputs) == 2 and all(
        value.op == "placeholder" and len(value.users) == 1 for value in inputs
    )


def upstream(anchor: Node, stop: Container[Node]) -> dict[Node, Node | None]:
    """All nodes that `anchor` depends on -> one of their users, anchor first.

    Nodes in `stop` are included, but their operands are not followed.
    """
    user: dict[Node, Node | None] = {anchor: None}
    stack = [anchor]
    while stack:
        node = stack.pop()
        if node in stop:
            continue
        for operand in node.all_input_nodes:
            if operand not in user:
                user[operand] = node
                stack.append(operand)
    return user
