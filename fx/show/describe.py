"""Passes: a graph written down as data, for a page about it.

The data are lists and dictionaries, which become JSON, and the scripts of the
page (`fx/show/*.js`) read them by these keys.  Nodes, modules and stack traces
are numbers in it, because a thousand nodes can have one stack trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import TypeAlias

import torch
from torch import nn

from ..codegen.source import frames_of
from ..extra.effects.effects import owned
from ..graph_module import GraphModule
from ..node import Node
from ..use_def.text import _get_qualified_name, format_arg
from ..use_def.values import AnyValue
from .measure import Facts, bytes_of, value_text

__all__ = ["Data", "describe"]

Data: TypeAlias = dict[str, AnyValue]
"""What JSON can say."""

_Group: TypeAlias = tuple[str, str]
"""A module with nodes: its path, with `@1` in a second call, and its class."""


def describe(gm: GraphModule, facts: Facts) -> Data:
    """Write down a module's graph.

    Args:
        gm: the module.
        facts: what is known of its values.

    Returns:
        `nodes`, each with the numbers of its inputs; `groups`, the modules that
        nodes are in, each with the number of the one around it; `stacks`, the
        lines of the user's program; `code`; `problem`.

    Cost: O(nodes + size of their arguments).
    """
    return _Describer(gm, facts).data()


class _Describer:
    """Writes one graph; modules and stack traces once each."""

    def __init__(self, gm: GraphModule, facts: Facts) -> None:
        self._gm, self._facts = gm, facts
        self._numbers = {node: i for i, node in enumerate(gm.graph.nodes)}
        self._groups: dict[tuple[_Group, ...], int] = {}
        self._stacks: dict[str, int] = {}

    def data(self) -> Data:
        """All of it."""
        code = self._gm.graph.python_code("self")
        text = code.src.lstrip("\n")
        start = code._prologue_start - (len(code.src) - len(text))
        lines: dict[int | None, int] = {}
        for line, index in (code._lineno_map or {}).items():
            lines.setdefault(index, line + start)  # its first line
        nodes = [
            self._node(node) | {"line": lines.get(number, 0)}
            for node, number in self._numbers.items()
        ]
        return {
            "nodes": nodes,
            "groups": [self._group(path) for path in self._groups],
            "stacks": [frames_of(stack) for stack in self._stacks],
            "code": text,
            "weights": _weights(self._gm),
            "problem": self._facts.problem,
        }

    def _node(self, node: Node) -> Data:
        """A node; what is unknown or empty is left out."""
        value = self._facts.values.get(node)
        seconds = self._facts.seconds.get(node)
        held = owned(node)
        entry = {
            "name": node.name,
            "op": node.op,
            "target": _target(node),
            "call": _call(node, held),
            "inputs": [self._numbers[n] for n in node.all_input_nodes],
            "group": self._number_of(_modules_around(node)),
            "type": value_text(value),
            "bytes": bytes_of(value),
            "ms": None if seconds is None else round(seconds * 1e3, 4),
            "module": _one_line(held) if isinstance(held, nn.Module) else "",
            "weights": _weights(held),
            "stack": self._stack(node),
        }
        return {key: item for key, item in entry.items() if item or item == 0}

    def _number_of(self, path: tuple[_Group, ...]) -> int:
        """The number of a module by the modules around it; -1 for the root."""
        for part in accumulate((group,) for group in path):
            self._groups.setdefault(part, len(self._groups))
        return self._groups[path] if path else -1

    def _group(self, path: tuple[_Group, ...]) -> Data:
        name, kind = path[-1]
        return {"name": name, "kind": kind, "in": self._number_of(path[:-1])}

    def _stack(self, node: Node) -> int | None:
        """The number of a node's stack trace; an input has none of its own."""
        if not node.stack_trace or node.op == "placeholder":
            return None
        return self._stacks.setdefault(node.stack_trace, len(self._stacks))


def _modules_around(node: Node) -> tuple[_Group, ...]:
    """The modules in whose forward a node is, the outermost first."""
    stack = node.meta.get("nn_module_stack")
    if stack:
        entries = [
            (path, (str(key), _class_name(kind)))
            for key, (path, kind) in stack.items()
            if path
        ]
        if node.op == "call_module" and entries:
            # The last one is the called module, or the one that it replaced:
            # a call that a pass has put in has the modules of the old call.
            last = f"{entries[-1][0]}."
            inside = str(node.target).startswith(last)
            entries = entries if inside else entries[:-1]
        return tuple(group for _, group in entries)
    if node.op != "call_module":
        return ()
    parents = str(node.target).split(".")[:-1]
    return tuple((path, "") for path in accumulate(parents, "{}.{}".format))


def _class_name(kind: object) -> str:
    """The name of a class, or the last part of a text that names it."""
    text = kind.__qualname__ if isinstance(kind, type) else str(kind)
    return text.rpartition(".")[2]


def _target(node: Node) -> str:
    target = node.target
    return target if isinstance(target, str) else _get_qualified_name(target)


def _call(node: Node, held: AnyValue) -> str:
    """What a node does, short: `relu(conv1)`, `x.view(1, -1)`.

    A row of the page has little space; its details have the rest.
    """
    parts = [*_texts(node)]
    match node.op:
        case "placeholder":
            return f"input = {parts[0]}" if parts else "input"
        case "get_attr":
            return f"self.{node.target}"
        case "output":
            return f"return {', '.join(parts)}"
        case "call_method" if parts:
            return f"{parts[0]}.{node.target}({', '.join(parts[1:])})"
    name = type(held).__name__
    if not isinstance(held, nn.Module):
        name = _target(node).removesuffix(".default").rpartition(".")[2]
    return f"{name}({', '.join(parts)})"


def _texts(node: Node) -> Iterator[str]:
    """The arguments, nodes without a percent sign."""
    for value in node.args:
        yield _argument(value)
    for key, value in node.kwargs.items():
        yield f"{key}={_argument(value)}"


def _argument(value: AnyValue) -> str:
    if isinstance(value, str):
        return repr(value)
    return format_arg(value).replace("%", "")


def _one_line(module: nn.Module) -> str:
    """A module as it is printed, if it has no modules in it."""
    if next(module.children(), None) is None:
        return repr(module)
    return type(module).__name__


def _weights(value: AnyValue) -> int | None:
    """How many numbers a module, or a tensor, holds."""
    # A lazy parameter has none yet, but refuses the question.
    with torch.DisableTorchFunctionSubclass():
        match value:
            case nn.Module():
                return sum(p.numel() for p in value.parameters())
            case torch.Tensor():
                return value.numel()
    return None
