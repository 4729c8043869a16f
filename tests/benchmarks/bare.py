"""A graph and a tracer that check nothing: the floor of trace-modules.

The graph keeps what that of torch.fx keeps: names, users and the order. The
tracer has the methods that a user of torch.fx may override, and notes in which
modules each node was recorded. But it refuses nothing, replaces nothing except
two methods of nn.Module, and knows no other calls than those of modules.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from contextvars import ContextVar

from torch import nn

from tests.benchmarks.measure import Made


class Node:
    """A node, linked to the one before it and the one after it."""

    # fmt: off
    __slots__ = ("args", "inputs", "kwargs", "meta", "name", "next", "op",
                 "prev", "target", "users")
    # fmt: on

    def __init__(
        self, name: str, op: str, target: str, args: Made, kwargs: Made
    ) -> None:
        self.name, self.op, self.target = name, op, target
        self.args, self.kwargs = args, kwargs
        self.prev = self.next = self
        self.meta: dict[str, Made] = {}
        self.users: dict[Node, None] = {}
        values = (*args, *kwargs.values())
        nodes = [arg for arg in values if isinstance(arg, Node)]
        self.inputs = tuple(dict.fromkeys(nodes))
        for node in self.inputs:
            node.users[self] = None

    def __repr__(self) -> str:
        return self.name


class Graph:
    """A ring of nodes, each with a name of its own."""

    def __init__(self) -> None:
        self.root = Node("", "", "", (), {})
        self.names: set[str] = set()
        self.counts: dict[str, int] = {}

    def create_node(
        self, op: str, target: str, args: Made, kwargs: Made
    ) -> Node:
        """Make a node at the end."""
        name = base = target.replace(".", "_")
        number = self.counts.get(base, 0)
        while name in self.names:
            number += 1
            name = f"{base}_{number}"
        self.counts[base] = number
        self.names.add(name)
        node = Node(name, op, target, args, kwargs)
        node.next, node.prev = self.root, self.root.prev
        node.prev.next = self.root.prev = node
        return node

    def nodes(self) -> list[Node]:
        """All nodes, in order."""
        found = []
        node = self.root.next
        while node is not self.root:
            found.append(node)
            node = node.next
        return found


class Proxy:
    """Stands for the value of a node."""

    __slots__ = ("node", "tracer")

    def __init__(self, node: Node, tracer: Tracer) -> None:
        self.node, self.tracer = node, tracer


class Tracer:
    """Records calls of modules; its methods are there to be overridden."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.scope: tuple[str, Made] = ("", None)
        self.node_name_to_scope: dict[str, tuple[str, Made]] = {}
        self.module_stack: OrderedDict[str, Made] = OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.paths: dict[nn.Module, str] = {}

    def create_arg(self, a: Made) -> Made:
        """What a node holds for a value."""
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, tuple):
            return tuple([self.create_arg(item) for item in a])
        return a

    def create_proxy(
        self, op: str, target: str, args: Made, kwargs: Made
    ) -> Proxy:
        """Record a call."""
        args = self.create_arg(args)
        kwargs = {key: self.create_arg(kwargs[key]) for key in kwargs}
        return self.proxy(self.create_node(op, target, args, kwargs))

    def create_node(
        self, op: str, target: str, args: Made, kwargs: Made
    ) -> Node:
        """Make a node, with notes about where it was recorded."""
        node = self.graph.create_node(op, target, args, kwargs)
        self.node_name_to_scope[node.name] = self.scope
        if self.module_stack:
            node.meta["nn_module_stack"] = self.module_stack.copy()
        return node

    def proxy(self, node: Node) -> Proxy:
        """What the traced code gets for a node."""
        return Proxy(node, self)

    def path_of_module(self, module: nn.Module) -> str:
        """The path of a module from the root."""
        return self.paths[module]

    def is_leaf_module(self, module: nn.Module, path: str) -> bool:
        """Whether the call of a module is one node."""
        return module.__module__.startswith(
            ("torch.nn", "torch.ao.nn")
        ) and not isinstance(module, nn.Sequential)

    def call_module(
        self,
        module: nn.Module,
        forward: Callable[..., Made],
        args: Made,
        kwargs: Made,
    ) -> Made:
        """Record the call of a module, or go through it."""
        path = self.path_of_module(module)
        calls = self.num_calls.get(path, 0)
        self.num_calls[path] = calls + 1
        call = f"{path}@{calls}" if calls else path
        before = self.scope
        self.scope = self.module_stack[call] = (path, type(module))
        try:
            if not self.is_leaf_module(module, path):
                return forward(*args, **kwargs)
            return self.create_proxy("call_module", path, args, kwargs)
        finally:
            del self.module_stack[call]
            self.scope = before

    def getattr(self, attr: str, value: Made) -> Made:
        """What the traced code gets for an attribute of a module."""
        if isinstance(value, nn.Parameter):
            return self.create_proxy("get_attr", attr, (), {})
        return value

    def trace(self, root: nn.Module) -> Graph:
        """Record what the forward of a module with one input calls."""
        self.paths = {module: path for path, module in root.named_modules()}
        forward: Made = root.forward
        token = _current.set(self)
        _put(_replaced_call, _replaced_getattr)
        try:
            x = self.create_proxy("placeholder", "x", (), {})
            self.create_proxy("output", "output", (forward(x),), {})
        finally:
            _put(_call, _getattr)
            _current.reset(token)
        return self.graph


_current: ContextVar[Tracer | None] = ContextVar("_current", default=None)
_call: Made = nn.Module.__call__
_getattr: Made = nn.Module.__getattr__


def _put(call: Made, getattr_: Made) -> None:
    """Make these the methods of nn.Module."""
    module: Made = nn.Module
    module.__call__, module.__getattr__ = call, getattr_


def _replaced_call(self: nn.Module, *args: Made, **kwargs: Made) -> Made:
    tracer = _current.get()
    if tracer is None:
        return _call(self, *args, **kwargs)

    def forward(*inputs: Made, **options: Made) -> Made:
        return _call(self, *inputs, **options)

    return tracer.call_module(self, forward, args, kwargs)


def _replaced_getattr(self: nn.Module, name: str) -> Made:
    value = _getattr(self, name)
    tracer = _current.get()
    return value if tracer is None else tracer.getattr(name, value)
