"""Stage 07, rewriter: what a pattern requires of the nodes that match it.

A pattern is a graph, and the matcher compares each of its nodes with many
nodes of the graph that is searched.  What does not depend on that graph is
worked out here once: `prepare` says for each node of the pattern what its
partner must look like.  `Exact` decides when two calls are the same, by the
rule of torch.fx; `call_forms.py` has the class that also accepts equivalent
calls.  `Candidates` are the nodes of a graph at which it is worth to begin.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias, TypedDict

import torch

from ..graph import Graph
from ..node import Node
from ..schemas.facts import facts_of
from ..torch_private.overloads import OpOverload
from ..use_def.annotations import signature_of
from ..use_def.arguments import parts
from ..use_def.dotted_path import find
from ..use_def.values import LEAVES, AnyValue, Argument

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
        if node.op != pattern.op:
            return None
        if node.target != pattern.target and node.op not in BY_OPCODE:
            return None
        if node.op == "get_attr" and not self.same_value(pattern, node):
            return None
        pair = side_by_side(pattern, node)
        if pair is not None and len(pair[0]) == len(pair[1]):
            return pair
        if isinstance(pattern.target, OpOverload):
            return by_schema(pattern), by_schema(node)
        return None

    def commutes(self, pattern: Node) -> bool:
        """Whether the first two operands may be exchanged: never, here."""
        return False

    def conflict(self, paired: Mapping[Node, AnyValue]) -> str:
        """Why pairs that match one by one do not match together; here "".

        Args:
            paired: node of the pattern -> what it is paired with.
        """
        return ""

    def matched_path(
        self, path: str, root: object, paired: Mapping[Node, AnyValue]
    ) -> str | None:
        """The path in the searched module for a path in the replacement.

        Where modules are compared by class, a replacement means by a path what
        the pattern has there, and so what that is paired with. Here, None.

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


def fetched(node: Node) -> AnyValue:
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


# -- constants and arguments -------------------------------------------------


def equal_constants(sought: Argument, found: Argument) -> bool:
    """Whether two constants are equal and of one type, and so their items."""
    if type(sought) is not type(found):
        return False
    if isinstance(sought, torch.Tensor) and isinstance(found, torch.Tensor):
        return same_tensor(sought, found)
    if type(sought) in LEAVES:
        signed = isinstance(sought, (float, complex))  # 0.0 is not -0.0
        return bool(sought == found) and (
            not signed or repr(sought) == repr(found)
        )
    if isinstance(sought, dict) and isinstance(found, dict):
        return sought.keys() == found.keys() and all(
            equal_constants(value, found[key]) for key, value in sought.items()
        )
    ours, theirs = [*parts(sought)], [*parts(found)]
    if ours and len(ours) == len(theirs):
        return all(map(equal_constants, ours, theirs))
    same: AnyValue = sought == found
    try:
        return bool(same)
    except (RuntimeError, ValueError):  # elementwise, as arrays compare
        return bool(same.all())


def same_tensor(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors are equal in all but how they lie in memory."""
    if (one.dtype, one.device) != (other.dtype, other.device):
        return False
    try:
        return torch.equal(one, other) and torch.equal(
            _signs(one), _signs(other)
        )
    except NotImplementedError:  # no data, or a layout that is not compared
        return one is other


def _signs(tensor: torch.Tensor) -> torch.Tensor:
    """Which numbers are negative, -0.0 among them; empty if 0 has one sign."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj().resolve_neg())
    if not tensor.is_floating_point() or tensor.is_quantized:
        return torch.empty(0)
    is_small = tensor.dtype.itemsize == 1  # which signbit does not take
    return torch.signbit(tensor.float() if is_small else tensor)


def by_schema(node: Node) -> list[Argument]:
    """All arguments of a call of an OpOverload, defaults filled in."""
    facts = facts_of(node.target)
    parameters = facts.parameters.values() if facts else ()
    return [one.of(node.args, node.kwargs) for one in parameters]


def by_signature(
    pattern: Node, node: Node
) -> tuple[list[Argument], list[Argument]] | None:
    """All arguments of two calls of one leaf function, in one order.

    None if the pattern's target is not a leaf function, or if either call does
    not fit its parameters.
    """
    target: AnyValue = pattern.target
    is_leaf = pattern.meta.get("is_wrapped") and node.target is pattern.target
    if not is_leaf:
        return None
    try:
        bind = signature_of(target).bind
        sought = bind(*pattern.args, **pattern.kwargs)
        found = bind(*node.args, **node.kwargs)
    except (TypeError, ValueError):  # it does not fit, or is written in C
        return None
    sought.apply_defaults()
    found.apply_defaults()
    return [*sought.arguments.values()], [*found.arguments.values()]


# -- one pattern --------------------------------------------------------------


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


# -- where it is looked for ----------------------------------------------------


class Candidates:
    """The candidates for the anchors of one pattern in one graph.

    Attributes:
        pools: for each anchor, its candidates in order; empty lists if some
            node of the pattern has no possible partner.
    """

    def __init__(
        self,
        pattern: PreparedPattern,
        graph: Graph,
        name: str,
        *,
        exhaustive: bool,
    ) -> None:
        """Look up all nodes that call what the pattern calls.

        Args:
            pattern: what to look for.
            graph: where to look.
            name: nodes with this in their names are candidates, too.
            exhaustive: keep candidates that cannot lead to a match.

        Cost: O(nodes found + their uses); O(nodes) the first time, and with
        options.
        """
        self._pattern = pattern
        calls = [n for n in pattern.nodes if not pattern.nodes[n].wildcard]
        found = pattern.comparison.partners(graph, calls)
        named = [n for n in graph.nodes if name in n.name] if name else []
        self._possible: set[Node] = set().union(named, *found.values())
        self.pools: list[list[Node]] = [[] for _ in pattern.anchors]
        self._ends: list[set[Node]] = []
        if not (all(found.values()) or name or exhaustive):
            return
        for place, anchor in enumerate(pattern.anchors):
            pool = found.get(anchor) or []
            if anchor not in found:
                pool = [*graph.nodes]
            elif name:
                pool = sorted({*pool, *named})
            elif not exhaustive:
                needed = upstream(anchor, ())
                rare = min((found[n] for n in needed if n in found), key=len)
                if 4 * len(rare) < len(pool):
                    pool = self._below(rare, {*pool})
            self.pools[place] = pool
            self._ends.append({*pool})

    def near(self, place: int, paired: Mapping[Node, AnyValue]) -> list[Node]:
        """The candidates for a further anchor, given what is paired already.

        They are below a node that the anchors share, an operation if there is
        one: an input may have many more users.
        """
        user = upstream(self._pattern.anchors[place], paired)
        shared = [node for node in user if node in paired]
        shared.sort(key=lambda node: node.op == "placeholder")
        start = paired[shared[0]] if shared else None
        if not isinstance(start, Node):
            return self.pools[place]
        return self._below([start], self._ends[place])

    def _below(self, starts: Iterable[Node], ends: set[Node]) -> list[Node]:
        """Those of `ends` that are not further below than in the pattern."""
        reached = dict.fromkeys(starts)
        front = [*reached]
        for _ in self._pattern.nodes:
            users = {user: None for node in front for user in node.users}
            front = [
                user
                for user in users
                if user in self._possible and user not in reached
            ]
            reached |= dict.fromkeys(front)
        return sorted([node for node in reached if node in ends])
