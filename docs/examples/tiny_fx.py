"""A whole fx in one file: trace a module, then run, write or change it."""

import inspect
import operator
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from unittest.mock import patch

from torch import Tensor, nn

Value: TypeAlias = Any  # whatever the traced program computes with


def label(target: Value) -> str:
    return str(getattr(target, "__name__", target))


@dataclass(eq=False)
class Node:
    op: str
    target: Value
    args: tuple[Value, ...]
    kwargs: dict[str, Value]
    name: str

    def __repr__(self) -> str:
        return self.name

    def given(self) -> list[str]:
        named = [f"{key}={value!r}" for key, value in self.kwargs.items()]
        return [*map(repr, self.args), *named]

    def line(self) -> str:
        call = f"{label(self.target)}({', '.join(self.given())})"
        return f"{self.name} = {self.op} {call}"


@dataclass(eq=False)
class Graph:
    nodes: list[Node] = field(default_factory=list)

    def add(
        self, op: str, target: Value, *args: Value, **kwargs: Value
    ) -> Node:
        name = label(target).replace(".", "_")
        if any(node.name == name for node in self.nodes):
            name += f"_{len(self.nodes)}"
        self.nodes.append(Node(op, target, args, kwargs, name))
        return self.nodes[-1]

    def __str__(self) -> str:
        return "\n".join(n.line() for n in self.nodes)


def swap(value: Value, kind: type, new: Value) -> Value:
    """Put new(v) in place of each v of a kind, however deep it is nested."""
    if isinstance(value, tuple | list):
        return type(value)([swap(one, kind, new) for one in value])
    if isinstance(value, dict):
        return {key: swap(one, kind, new) for key, one in value.items()}
    return new(value) if isinstance(value, kind) else value


@dataclass(eq=False)
class Proxy:
    graph: Graph
    node: Node

    def __getattr__(self, name: str) -> Value:
        return lambda *a, **k: record("call_method", name, (self, *a), k)

    def __bool__(self) -> bool:
        raise TypeError("a proxy has no value yet, so an `if` cannot ask it")

    @classmethod
    def __torch_function__(
        cls, function: Value, _: Value, args: Value, kwargs: Value = None
    ) -> Value:
        return record("call_function", function, args, kwargs)


def record(op: str, target: Value, args: Value, kwargs: Value = None) -> Proxy:
    """Add a call to the graph of the proxies among its arguments."""
    found: list[Proxy] = []
    swap((args, kwargs), Proxy, found.append)
    args, kwargs = swap((args, kwargs or {}), Proxy, lambda proxy: proxy.node)
    graph = found[0].graph
    return Proxy(graph, graph.add(op, target, *args, **kwargs))


def operation(function: Value, step: int = 1) -> Value:
    return lambda *args: record("call_function", function, args[::step])


for _name in ("add", "sub", "mul", "truediv", "matmul", "getitem", "gt"):
    setattr(Proxy, f"__{_name}__", operation(getattr(operator, _name)))
    setattr(Proxy, f"__r{_name}__", operation(getattr(operator, _name), -1))


def trace(root: nn.Module) -> Graph:
    """Run a module's forward on proxies, and return what they recorded."""
    graph = Graph()
    paths = {module: path for path, module in root.named_modules()}

    def call(module: nn.Module, *args: Value, **kwargs: Value) -> Proxy:
        return record("call_module", paths[module], args, kwargs)

    names = inspect.signature(root.forward).parameters
    inputs = [Proxy(graph, graph.add("placeholder", name)) for name in names]
    with patch.object(nn.Module, "__call__", call):
        record("output", "output", (root.forward(*inputs),))
    return graph


def interpret(graph: Graph, root: nn.Module, *inputs: Value) -> Value:
    """Run a graph node by node."""
    env, waiting = dict[Node, Value](), list(inputs)
    args: Value = ()
    for node in graph.nodes:
        args, kwargs = swap((node.args, node.kwargs), Node, env.get)
        match node.op:
            case "placeholder":
                env[node] = waiting.pop(0)
            case "call_function":
                env[node] = node.target(*args, **kwargs)
            case "call_method":
                env[node] = getattr(args[0], node.target)(*args[1:], **kwargs)
            case "call_module":
                env[node] = root.get_submodule(node.target)(*args, **kwargs)
    return args[0]


def code(graph: Graph) -> str:
    """Write the Python that computes what a graph does."""
    inputs, imports, lines = ["self"], set[str](), list[str]()
    for node in graph.nodes:
        given, call = node.given(), ""
        match node.op:
            case "placeholder":
                inputs.append(node.name)
            case "call_function":
                home = node.target.__module__.lstrip("_")
                imports.add(f"import {home}")
                call = f"{home}.{label(node.target)}"
            case "call_method":
                call = f"{given.pop(0)}.{node.target}"
            case "call_module":
                call = f"self.get_submodule({node.target!r})"
        if call:
            lines.append(f"    {node} = {call}({', '.join(given)})")
    result = graph.nodes[-1].args[0]
    head = f"def forward({', '.join(inputs)}):"
    return "\n".join([*sorted(imports), head, *lines, f"    return {result}"])


def merge_equal_calls(graph: Graph) -> None:
    """Compute equal calls once: common subexpression elimination."""
    first, instead = dict[str, Node](), dict[Node, Node]()
    for node in graph.nodes:
        given = (node.args, node.kwargs)
        node.args, node.kwargs = swap(given, Node, instead.get)
        key = (node.op, node.target, node.args, node.kwargs)
        instead[node] = first.setdefault(repr(swap(key, Tensor, id)), node)
    graph.nodes = [node for node in graph.nodes if instead[node] is node]
