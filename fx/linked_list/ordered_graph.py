"""Stage 01, linked-list graph: named nodes with opcodes, in order.

Here the list meets the program.  A node has a name, an opcode and a target; a
graph keeps its nodes in a `LinkedList`, names them through a `Namespace`, and
knows where the next one goes:

    graph = OrderedGraph(NamedNode)
    x = graph.create_node("placeholder", "x")
    with graph.inserting_before(x):
        graph.create_node("get_attr", "weight")

Values come in stage 02, which derives `Node` and `Graph` from these classes.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Final, Generic, Literal, Self, TypeVar, cast

from .linked_list import Link, LinkedList
from .namespace import Namespace, target_to_str
from .opcodes import Opcode, Target, check_target

GraphT_co = TypeVar("GraphT_co", covariant=True)

_SENTINEL: Final = cast(Opcode, "root")
"""What the sentinel of a graph has for an opcode; no other node can."""


class NamedNode(Link, Generic[GraphT_co]):
    """A line of a program: which graph it is in, its name, op and target.

    torch.fx: node.py, Node
    """

    __slots__ = ("_name", "_op", "_target", "graph")

    graph: GraphT_co
    _op: Opcode
    _target: Target

    def __init__(
        self: Self, graph: GraphT_co, name: str, op: Opcode, target: Target
    ) -> None:
        """Make a node that is not in a list yet.

        Args:
            graph: the graph that the node is for.
            name: the variable that its value becomes; see `Namespace`.
            op: one of the six opcodes.
            target: a callable for call_function, else a str.

        Raises:
            AssertionError: unknown opcode.
            ValueError: a target of the wrong type.
        """
        check_target(op, target, name, graph)
        Link.__init__(self)
        self.graph = graph
        self._name = name
        self._op = op
        self._target = target

    @property
    def name(self) -> str:
        """The variable that the node's value becomes; unique in its graph."""
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        self._name = name

    @property
    def op(self) -> Opcode:
        """The opcode: one of six."""
        return self._op

    @op.setter
    def op(self, op: Opcode) -> None:
        self._call(op, self._target)

    @property
    def target(self) -> Target:
        """What is called, fetched or bound."""
        return self._target

    @target.setter
    def target(self, target: Target) -> None:
        self._call(self._op, target)

    def _call(self, op: Opcode, target: Target) -> None:
        """Set the opcode and the target."""
        self._op = op
        self._target = target

    @property
    def _state(self) -> Literal["new", "linked", "erased", "sentinel"]:
        """Whether the node is in its graph's list yet, still, or no longer."""
        if self._erased:
            return "erased"
        if self._op == _SENTINEL:
            return "sentinel"
        return "new" if self._next is self else "linked"

    @property
    def next(self) -> Self:
        """The node after this one; after the last, the sentinel."""
        return self._next

    @property
    def prev(self) -> Self:
        """The node before this one; before the first, the sentinel."""
        return self._prev

    def prepend(self: Self, x: Self) -> None:
        """Move `x` to the place right before this node.

        Args:
            x: a node of the same graph.

        Raises:
            AssertionError: `x` is of another graph, one of the two nodes is
                erased, or this one is in no list. Neither list is changed.

        torch.fx: node.py, Node.prepend
        """
        self._check_neighbour(x)
        Link.prepend(self, x)

    def append(self: Self, x: Self) -> None:
        """Move `x` to the place right after this node.

        Args:
            x: a node of the same graph.

        Raises:
            AssertionError: as `prepend`.

        torch.fx: node.py, Node.append
        """
        self._check_neighbour(x)
        Link.append(self, x)

    def _check_neighbour(self: Self, x: Self) -> None:
        """Raise unless `x` can be moved beside this node."""
        here, moved = self._state, x._state
        if here == "erased" or moved == "erased":
            raise AssertionError(
                f"Node {self if here == 'erased' else x} was erased from its "
                "graph: it can neither move nor be a place to move to. Use "
                "nodes that are in the graph"
            )
        if x.graph is not self.graph:
            raise AssertionError(
                "Attempting to move a Node into a different Graph: "
                f"{x} cannot be put beside {self}; copy it there with "
                f"graph.node_copy({x})"
            )
        if here == "new":
            raise AssertionError(f"{self} is in no list: use create_node")
        if moved == "sentinel":
            raise AssertionError("the sentinel of a Graph cannot be moved")

    def __repr__(self) -> str:
        """The node's name."""
        return self._name

    def format_node(self) -> str | None:
        """The node's line in the printed graph."""
        return f"%{self._name} = {self.op}[target={self.target}]"


NodeT = TypeVar("NodeT", bound=NamedNode[object])


class InsertPoint(Generic[NodeT]):
    """Where a graph puts new nodes.

    Making one sets the insert point, and the end of a `with` block restores
    the one before.  So `graph.inserting_before(n)` alone moves the insert
    point for good, and `with graph.inserting_before(n):` for the block only.

    torch.fx: graph.py, _InsertPoint
    """

    def __init__(
        self, graph: OrderedGraph[NodeT], insert: Callable[[NodeT], None]
    ) -> None:
        """Make `insert` the way that `graph` adds nodes from now on."""
        self.graph = graph
        self.orig_insert: Callable[[NodeT], None] = graph._insert
        graph._insert = insert

    def __enter__(self) -> None:
        """Do nothing: the insert point is set already."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Restore the insert point that was set before."""
        self.graph._insert = self.orig_insert


class OrderedGraph(Generic[NodeT]):
    """Nodes in order, with unique names, and the place for the next one.

    torch.fx: graph.py, Graph
    """

    def __init__(self, node_class: type[NodeT]) -> None:
        """Make an empty graph.

        Args:
            node_class: makes the nodes, the sentinel of the list among them:
                called with a graph, a name, an opcode and a target.
        """
        self._node_class = node_class
        self._root = root = node_class(self, "", "output", "")
        root._op = _SENTINEL
        self._nodes = LinkedList(root)
        self._insert: Callable[[NodeT], None] = root.prepend
        self._graph_namespace = Namespace()

    @property
    def nodes(self) -> LinkedList[NodeT]:
        """The nodes in order, to be walked (and edited meanwhile).

        torch.fx: graph.py, Graph.nodes
        """
        return self._nodes

    @property
    def _len(self) -> int:
        """How many nodes there are."""
        return self._nodes._len

    def inserting_before(self, n: NodeT | None = None) -> InsertPoint[NodeT]:
        """Put new nodes before `n` from now on, in the order of creation.

            with graph.inserting_before(n):
                ...  # here
            graph.inserting_before(n)  # or for good

        Args:
            n: a node of this graph; None is the start of the graph.

        Raises:
            AssertionError: `n` is not in this graph.

        torch.fx: graph.py, Graph.inserting_before
        """
        if n is None:
            return self.inserting_after(self._root)
        self._check_place(n, "before")
        return InsertPoint(self, n.prepend)

    def inserting_after(self, n: NodeT | None = None) -> InsertPoint[NodeT]:
        """Put each new node right after `n` from now on.

        The second of two new nodes is then between `n` and the first.

        Args:
            n: a node of this graph; None is the end of the graph.

        Raises:
            AssertionError: `n` is not in this graph.

        torch.fx: graph.py, Graph.inserting_after
        """
        if n is None:
            return self.inserting_before(self._root)
        self._check_place(n, "after")
        return InsertPoint(self, n.append)

    def _check_place(self, n: NodeT, side: str) -> None:
        """Raise unless new nodes can be put beside `n`."""
        gone = n._state == "erased"
        if n.graph is not self or gone or n._state == "new":
            state = "was erased" if gone else "is not among its nodes"
            raise AssertionError(
                f"Node to insert {side} is not in graph. "
                f"{n} {state}: give a node of this graph"
            )

    def create_node(
        self, op: Opcode, target: Target, *, name: str | None = None
    ) -> NodeT:
        """Make a node and put it at the insert point.

        Args:
            op: one of the six opcodes.
            target: a callable for call_function, else a str.
            name: the name to ask for; by default made from the target.

        Raises:
            AssertionError: unknown opcode.
            ValueError: a target of the wrong type.

        torch.fx: graph.py, Graph.create_node
        """
        wish = target_to_str(target) if name is None else name
        node = self._node_class(self, wish, op, target)
        node._name = self._graph_namespace.create_name(wish)
        self._nodes.add(node, self._insert)
        return node

    def erase_node(self, to_erase: NodeT) -> None:
        """Take a node out of the graph.

        Raises:
            RuntimeError: the node is of another graph, or erased before.

        torch.fx: graph.py, Graph.erase_node
        """
        if to_erase.graph is not self or to_erase._state != "linked":
            raise RuntimeError(f"{to_erase} is not in this graph")
        self._nodes.erase(to_erase)

    def __str__(self) -> str:
        """The graph as text, a node a line."""
        lines = (node.format_node() for node in self._nodes)
        return "\n    ".join(("graph():", *filter(None, lines)))
