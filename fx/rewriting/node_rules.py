"""Stage 07, rewriter: rules that are functions of a node.

    Rule(lambda a: torch.neg(torch.neg(a)), lambda a: a)

    @rewrite("call_function", torch.neg)
    def neg_neg(node: Node, rewriter: Rewriter) -> None:
        (inner,) = node.all_input_nodes
        if inner.target is torch.neg:
            rewriter.replace(node, inner.args[0], inputs=True)

Both rules do the same, except that the pattern is not found if the inner call
has other users.  A pattern is shorter, but a function can also look at what no
pattern describes, such as a module's settings, a shape or the users of a value.
It gets one node, and edits the graph with a `Rewriter`.  `rewrite_until_stable`
takes lists of both kinds; `neg_neg(gm)` applies this rule alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from ..graph_module import GraphModule
from ..linked_list.opcodes import Opcode, Target
from ..node import Node, map_arg
from ..subgraph_rewriter import RewriteOptions
from ..use_def.values import Argument
from .replacing import CARRIED, Edit
from .rules import AnyRule, Worklist, rewrite_until_stable

RuleFunction: TypeAlias = "Callable[[Node, Rewriter], object]"
"""Looks at a node, and edits the graph if it likes."""


def rewrite(
    op: Opcode | None = None, *targets: Target, recompute_meta: bool = False
) -> Callable[[RuleFunction], NodeRule]:
    """Make a function a rule for `rewrite_until_stable`.

    Args:
        op: the opcode of the nodes that it is called with; None for any.
        targets: what these nodes call or fetch; anything, if none is given.
        recompute_meta: see `RewriteOptions`.
    """
    options = RewriteOptions(recompute_meta=recompute_meta)
    return lambda function: NodeRule(function, op, targets, options)


@dataclass
class NodeRule(AnyRule):
    """A function that is called with each node until it edits no more."""

    function: RuleFunction
    op: Opcode | None
    targets: tuple[Target, ...]
    options: RewriteOptions

    def __call__(self, gm: GraphModule) -> int:
        """Rewrite a module by this rule alone: see `rewrite_until_stable`."""
        return rewrite_until_stable(gm, [self])

    def __str__(self) -> str:
        """The name of the function."""
        return getattr(self.function, "__name__", "a rule")

    def prepare(self, worklist: Worklist) -> Callable[[Node], bool]:
        """What calls the function with a node, and says whether it edited.

        What the function raises gets a note with its name and the node.
        """
        worklist.looks_afar = True

        def apply(node: Node) -> bool:
            if self.op not in (None, node.op):
                return False
            if self.targets and node.target not in self.targets:
                return False
            rewriter = Rewriter(worklist, node)
            try:
                self.function(node, rewriter)
            except Exception as error:
                error.add_note(f"raised by the rule {self} at node {node}")
                raise
            for changed in rewriter.touched:
                near = (changed, *changed.all_input_nodes)
                worklist.waiting.update(dict.fromkeys(near))
            return rewriter.edited

        return apply


class Rewriter:
    """Edits a graph for a rule. Each verb acts at once.

    Attributes:
        gm: the module that is rewritten. What a rule adds to it, or changes of
            the graph without a verb, is undone too if something is raised.
        node: the node that the rule is called with.
        edited: whether there was an edit.
        touched: nodes that will be looked at again next, with their inputs;
            all others once nothing else is to be done.
    """

    def __init__(self, worklist: Worklist, node: Node) -> None:
        """Begin to edit at a node."""
        self.gm: GraphModule = worklist.gm
        self.node = node
        self.edited: bool = False
        self.touched: dict[Node, None] = {}
        self._made: dict[Node, None] = {}
        self._waiting = worklist.waiting

    def insert(
        self,
        op: Opcode,
        target: Target,
        args: tuple[Argument, ...] = (),
        kwargs: dict[str, Argument] | None = None,
    ) -> Node:
        """Make a node right before the rule's node, with its stack trace.

        It stays, used or not. For the arguments, see `Graph.create_node`.
        """
        with self.gm.graph.inserting_before(self.node):
            made = self.gm.graph.create_node(op, target, args, kwargs)
        known = self.node.meta
        made.meta.update({key: known[key] for key in CARRIED if key in known})
        self._made[made] = None
        self.changed(made)
        return made

    def replace(
        self, node: Node, new: Argument, *, inputs: bool = False
    ) -> None:
        """Let the users of a node use a value in its place, and erase it.

        What was inserted notes in `meta["replaces"]` what it replaced, and as
        the new value it has the node's `meta`, as with `carry_meta`.

        Args:
            node: the node.
            new: a node before those users, a constant, or a list of these.
            inputs: see `erase`.

        Raises:
            ValueError: a user comes before `new`, or is `new`.
        """
        users, values = [*node.users], list[Node]()
        map_arg(new, values.append)
        for user in users:
            if any(not value < user for value in values):
                raise ValueError(
                    f"{user} uses {node} and cannot use {new} in its place, "
                    "which is not computed before it"
                )
        for made in self._made:
            old = node.meta if made is new else {}
            made.meta = {**made.meta, **old, "replaces": (node.name,)}
        self.changed(*users)
        edit = Edit(self.gm, carry_meta=False)
        edit.dead[node] = None
        edit.replace(node, new)
        edit.redirect()
        self.erase(node, inputs=inputs)

    def erase(self, node: Node, *, inputs: bool = False) -> None:
        """Erase a node without users.

        Args:
            node: the node.
            inputs: erase its inputs, too, and theirs, if they then have no
                users and only compute (`Node.is_impure`). Else they stay.

        Raises:
            RuntimeError: it has users.
        """
        rest = [node]
        while rest:
            gone = rest.pop()
            found = gone.all_input_nodes
            self.gm.graph.erase_node(gone)
            self.changed(*found)
            for table in (self._waiting, self.touched):
                table.pop(gone, None)
            if inputs:
                rest += [n for n in found if not n.users and not n.is_impure()]

    def changed(self, *nodes: Node) -> None:
        """Say that nodes have been edited without a verb of this class."""
        self.edited = True
        self.touched.update(dict.fromkeys(nodes))
