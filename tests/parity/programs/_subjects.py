"""What several parity programs trace, and how they make it for each library.

Functions that are to be traced carry `no_type_check` instead of annotations:
an annotation would become part of the graph and of the generated code.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import textwrap
import types
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, no_type_check

import torch
from torch import nn

AnyValue: TypeAlias = Any
"""A class or value of the library under test, or of a module made here."""


class Overview(nn.Module):
    """The module of the documents' overview: get_attr, add, call, clamp."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.param = nn.Parameter(torch.rand(3, 4))
        self.linear = nn.Linear(4, 5)

    @no_type_check
    def forward(self, x):
        return self.linear(x + self.param).clamp(min=0.0, max=1.0)


class Inner(nn.Module):
    """A user's module with a leaf in it."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.l = nn.Linear(2, 2)

    @no_type_check
    def forward(self, x):
        return torch.neg(self.l(x))


class Outer(nn.Module):
    """A user's module that calls another one, twice."""

    def __init__(self) -> None:
        super().__init__()
        self.foo = Inner()

    @no_type_check
    def forward(self, x):
        return self.foo(self.foo(x) + 1)


class Root(nn.Module):
    """A module whose forward is a given function of (self, *inputs)."""

    def __new__(cls, forward: Callable[..., object], **parts: object) -> Root:
        """Give every instance a class of its own, with its own forward."""
        named = type("Root", (cls,), {"forward": forward})
        return super().__new__(named)

    def __init__(self, forward: Callable[..., object], **parts: object) -> None:
        super().__init__()
        for name, part in parts.items():
            if type(part) is torch.Tensor:
                self.register_buffer(name, part)
            else:
                setattr(self, name, part)


def module(lib: AnyValue, name: str) -> AnyValue:
    """A module of one of the libraries, by its name inside of it."""
    return importlib.import_module(f"{lib.__name__}.{name}")


def passes(lib: AnyValue, name: str) -> AnyValue:
    """A module of passes of one of the libraries."""
    return module(lib, f"passes.{name}")


def subclass(base: AnyValue, **members: object) -> AnyValue:
    """A subclass of `base`, a class of either library, with `members`."""
    return type("Custom", (base,), dict(members))


def trace_with(lib: AnyValue, root: object, **members: object) -> AnyValue:
    """The Graph of `root` by a Tracer subclass with `members`."""
    return subclass(lib.Tracer, **members)().trace(root)


def proxy(lib: AnyValue, name: str = "x") -> AnyValue:
    """A Proxy of a new placeholder in a new Graph, outside any trace."""
    return lib.Proxy(lib.Graph().placeholder(name))


def proxies(lib: AnyValue, *names: str) -> list[AnyValue]:
    """Proxies of new placeholders in one new Graph, with one tracer."""
    graph = lib.Graph()
    tracer = lib.proxy.GraphAppendingTracer(graph)
    return [lib.Proxy(graph.placeholder(name), tracer) for name in names]


def node_line(node: AnyValue) -> str:
    """'op target args kwargs' of a Node, the same in both libraries."""
    target = node.target
    if not isinstance(target, str):
        target = f"{target.__module__}.{target.__name__}"
    return f"{node.op} {target} {node.args} {dict(node.kwargs)}"


def lines(graph: AnyValue) -> list[str]:
    """A line for every Node of `graph`, with its name."""
    return [f"{node.name}: {node_line(node)}" for node in graph.nodes]


def new_nodes(graph: AnyValue, act: Callable[[], object]) -> list[str]:
    """The lines of the Nodes that `act` adds to `graph`."""
    before = set(graph.nodes)
    act()
    return [node_line(node) for node in graph.nodes if node not in before]


@contextlib.contextmanager
def module_of(
    source: str, *, name: str = "user_code", **names: object
) -> Iterator[AnyValue]:
    """A Python module made of `source`, importable while inside.

    Args:
        source: its text.
        name: its `__name__`.
        names: globals that `source` finds, as `lib=lib`.
    """
    module = types.ModuleType(name)
    module.__dict__.update(names)
    shadowed = sys.modules.get(name)
    sys.modules[name] = module
    try:
        text = textwrap.dedent(source)
        code = compile(text, f"<{name}>", "exec", dont_inherit=True)
        exec(code, module.__dict__)
        yield module
    finally:
        del sys.modules[name]
        if shadowed is not None:
            sys.modules[name] = shadowed


def without_wraps(code: str) -> list[str]:
    """The lines of generated code that say something, but no wrap lines."""
    return [
        line
        for line in code.splitlines()
        if line.strip() and not ("wrap(" in line and line[0] != " ")
    ]
