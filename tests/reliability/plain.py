"""A graph of lists and dicts: what each edit means, slowly and plainly."""

from __future__ import annotations

import builtins
import contextlib
import keyword
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

AnyValue: TypeAlias = Any
Change: TypeAlias = Callable[["Node"], AnyValue]


def mapped(value: AnyValue, change: Change) -> AnyValue:
    """A value with each node in it replaced."""
    match value:
        case Node():
            return change(value)
        case list() | tuple():
            return type(value)([mapped(item, change) for item in value])
        case dict():
            return {key: mapped(item, change) for key, item in value.items()}
    return value


class Node:
    """A node: its fields and nothing else. Who uses it is looked up."""

    def __init__(
        self, graph: Graph, op: str, target: AnyValue, name: str
    ) -> None:
        self.graph, self.op, self.target, self.name = graph, op, target, name
        self.args: tuple[AnyValue, ...] = ()
        self.kwargs: dict[str, AnyValue] = {}
        self.meta: dict[str, AnyValue] = {}

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once."""
        found: dict[Node, None] = {}
        mapped((self.args, self.kwargs), lambda node: found.setdefault(node))
        return list(found)

    @property
    def users(self) -> list[Node]:
        """Those that have this node among their arguments."""
        return [n for n in self.graph.nodes if self in n.all_input_nodes]

    def _change(self, change: Change) -> None:
        self.args = mapped(self.args, change)
        self.kwargs = mapped(self.kwargs, change)

    def update_arg(self, place: int, value: AnyValue) -> None:
        """Replace a positional argument."""
        args = list(self.args)
        args[place] = value
        self.args = tuple(args)

    def update_kwarg(self, key: str, value: AnyValue) -> None:
        """Replace a keyword argument."""
        self.kwargs = {**self.kwargs, key: value}

    def replace_input_with(self, old: Node, new: Node) -> None:
        """Use another node in the place of one."""
        self._change(lambda node: new if node is old else node)

    def replace_all_uses_with(
        self, new: Node, may: Callable[[Node], bool] = lambda user: True
    ) -> None:
        """Have the users use another node."""
        for user in self.users:
            if may(user):
                user.replace_input_with(self, new)

    def prepend(self, other: Node) -> None:
        """Move another node before this one."""
        if other is not self:
            self.graph.nodes.remove(other)
            self.graph.nodes.insert(self.graph.nodes.index(self), other)

    def append(self, other: Node) -> None:
        """Move another node behind this one."""
        if other is not self:
            self.graph.nodes.remove(other)
            self.graph.nodes.insert(self.graph.nodes.index(self) + 1, other)

    def _rename(self, candidate: str) -> None:
        if candidate != self.name:
            self.name = self.graph.new_name(candidate)


class Graph:
    """A list of nodes, the names that were ever given, a place to insert."""

    def __init__(self, owning_module: AnyValue = None) -> None:
        self.owning_module = owning_module
        self.nodes: list[Node] = []
        self.names: set[str] = set()
        self.counts: dict[str, int] = {}
        self.before: Node | None = None

    def new_name(self, wanted: str) -> str:
        """A name like the wanted one that no node ever had."""
        name = base = re.sub(r"\W", "_", wanted)
        taken = self.names | set(dir(builtins)) | set(keyword.kwlist)
        number = -1
        if match := re.fullmatch(r"(.*)_(\d+)", name):
            base, number = match[1], int(match[2])
        if number < 0 or name in taken:
            number = self.counts.get(base, 0)
        while name in taken:
            number += 1
            name = f"{base}_{number}"
        self.names.add(name)
        self.counts[base] = number
        return name

    def create_node(
        self,
        op: str,
        target: AnyValue,
        args: tuple[AnyValue, ...] = (),
        kwargs: dict[str, AnyValue] | None = None,
        name: str | None = None,
    ) -> Node:
        """Make a node at the insert point."""
        text = target if isinstance(target, str) else target.__name__
        node = Node(self, op, target, self.new_name(name or text))
        node.args, node.kwargs = args, kwargs or {}
        place = len(self.nodes)
        if self.before is not None:
            place = self.nodes.index(self.before)
        self.nodes.insert(place, node)
        return node

    def placeholder(self, name: str) -> Node:
        """A parameter."""
        return self.create_node("placeholder", name)

    def get_attr(self, path: str) -> Node:
        """An attribute of the root."""
        return self.create_node("get_attr", path)

    def call_function(self, *call: AnyValue) -> Node:
        """A call of a function."""
        return self.create_node("call_function", *call)

    def call_method(self, *call: AnyValue) -> Node:
        """A call of a method."""
        return self.create_node("call_method", *call)

    def call_module(self, *call: AnyValue) -> Node:
        """A call of a submodule."""
        return self.create_node("call_module", *call)

    def output(self, value: AnyValue) -> Node:
        """What the graph returns."""
        return self.create_node("output", "output", (value,))

    @contextlib.contextmanager
    def inserting_before(self, node: Node | None) -> Iterator[None]:
        """Insert before a node meanwhile."""
        self.before, was = node, self.before
        yield
        self.before = was

    def inserting_after(
        self, node: Node
    ) -> contextlib.AbstractContextManager[None]:
        """Insert behind a node meanwhile: before the next one."""
        behind = self.nodes[self.nodes.index(node) + 1 :]
        return self.inserting_before(behind[0] if behind else None)

    def erase_node(self, node: Node) -> None:
        """Remove a node that nobody uses."""
        if node.users:
            raise RuntimeError("it has users")
        self.nodes.remove(node)

    def node_copy(self, node: Node, change: Change) -> Node:
        """The same call once more, on other values."""
        args, kwargs = mapped((node.args, node.kwargs), change)
        new = self.create_node(node.op, node.target, args, kwargs, node.name)
        new.meta = dict(node.meta)
        return new

    def graph_copy(
        self, other: Graph, value_of: dict[Node, AnyValue]
    ) -> AnyValue:
        """Copy all nodes of a graph; what it returns."""
        for node in other.nodes:
            if node.op == "output":
                return mapped(node.args[0], value_of.__getitem__)
            value_of[node] = self.node_copy(node, value_of.__getitem__)
        return None

    def __deepcopy__(self, memo: object) -> Graph:
        new = Graph()
        new.output(new.graph_copy(self, {}))
        return new

    def eliminate_dead_code(self) -> None:
        """Remove what nobody uses, the last first; here all calls are pure.

        Raises:
            RuntimeError: if a node stands before one that it uses.
        """
        self.lint()
        for node in list(reversed(self.nodes)):
            if node.op not in ("placeholder", "output") and not node.users:
                self.nodes.remove(node)

    def find_nodes(self, *, op: str, target: AnyValue) -> list[Node]:
        """The nodes with this op and target."""
        return [
            node
            for node in self.nodes
            if node.op == op and target in (None, node.target)
        ]

    def lint(self) -> None:
        """Raise if a node uses one that does not stand before it."""
        for place, node in enumerate(self.nodes):
            for used in node.all_input_nodes:
                if used not in self.nodes[:place]:
                    raise RuntimeError(f"{node.name} uses {used.name}")

    def evaluate(self, *inputs: AnyValue) -> AnyValue:
        """What the program returns, by one look at each node."""
        values: dict[Node, AnyValue] = {}
        given = list(inputs)
        for node in self.nodes:
            args, kwargs = mapped((node.args, node.kwargs), values.__getitem__)
            match node.op:
                case "placeholder":
                    values[node] = given.pop(0)
                case "get_attr":
                    values[node] = self._at(node.target)
                case "call_module":
                    values[node] = self._at(node.target)(*args, **kwargs)
                case "call_method":
                    method = getattr(args[0], node.target)
                    values[node] = method(*args[1:], **kwargs)
                case "call_function":
                    values[node] = node.target(*args, **kwargs)
                case _:
                    return args[0]
        return None

    def _at(self, path: str) -> AnyValue:
        value = self.owning_module
        for name in path.split("."):
            value = getattr(value, name)
        return value
