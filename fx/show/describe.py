"""Passes: one graph or two written down as data, for a page about them.

The data are lists and dictionaries, which become JSON, and the scripts of the
page (`fx/show/*.js`) read them by these keys.  Nodes, modules and stack traces
are numbers in it, because a thousand nodes can have one stack trace.

Of two graphs, nodes that belong together share a row, except those that moved.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple, TypeAlias

import torch
from torch import nn

from ..codegen.source import frames_of
from ..graph_module import GraphModule
from ..node import Node
from ..use_def.dotted_path import look_up
from ..use_def.text import _get_qualified_name, dtype_text, format_arg
from ..use_def.values import AnyValue

__all__ = ["Data", "Facts", "bytes_of", "describe", "rows_of", "value_text"]

Data: TypeAlias = dict[str, AnyValue]
"""What JSON can say."""

_Group: TypeAlias = tuple[str, str]
"""A module with nodes: its path, with `@1` in a second call, and its class."""


class Facts(NamedTuple):
    """What is known of the values of a graph.

    Attributes:
        values: node -> its value, or what `meta` says of it.
        seconds: node -> how long it ran.
        problem: why not all values are known; "" if they are.  A call that
            needs data, such as `item()`, ends the run without data.
    """

    values: Mapping[Node, AnyValue]
    seconds: Mapping[Node, float]
    problem: str


def describe(gm: GraphModule, facts: Facts, notes: Sequence[str] = ()) -> Data:
    """Write down a module's graph.

    Args:
        gm: the module.
        facts: what is known of its values.
        notes: keys of `node.meta` to show.

    Returns:
        `nodes`, each with the numbers of its inputs; `groups`, the modules that
        nodes are in, each with the number of the one around it; `stacks`, the
        lines of the user's program; `code`; `problem`.

    Cost: O(nodes + size of their arguments).
    """
    return _Describer(gm, facts, notes).data()


class _Describer:
    """Writes one graph; modules and stack traces once each."""

    def __init__(
        self, gm: GraphModule, facts: Facts, notes: Sequence[str]
    ) -> None:
        self._gm, self._facts, self._notes = gm, facts, notes
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
        named = node.op in ("call_module", "get_attr")
        held = look_up(self._gm, str(node.target)) if named else None
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
            "notes": [_note(node.meta.get(key, "")) for key in self._notes],
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


def _note(value: AnyValue) -> float | str:
    """A number as it is, for sums; else its text."""
    is_number = type(value) in (int, float) and math.isfinite(value)
    return value if is_number else str(value)


def value_text(value: AnyValue) -> str:
    """The kind of a value: `f32[1,64]`, `(f32[2], i64[2])`; "" if unknown."""
    match value:
        case object(dtype=torch.dtype() as dtype, shape=shape):
            return f"{dtype_text(dtype)}[{','.join(map(str, shape))}]"
        case list() | tuple():
            return f"({', '.join(map(value_text, value))})"
        case dict():
            items = (f"{key}: {value_text(value[key])}" for key in value)
            return f"{{{', '.join(items)}}}"
        case None:
            return ""
        case type():
            return value.__name__
    return type(value).__name__


def bytes_of(value: AnyValue) -> int:
    """The size of the tensors in a value; 0 for those of unknown sizes."""
    match value:
        case object(dtype=torch.dtype() as dtype, shape=shape):
            size: int = dtype.itemsize
            for length in shape:
                size *= length if type(length) is int else 0
            return size
        case list() | tuple():
            return sum(map(bytes_of, value))
        case dict():
            return sum(map(bytes_of, value.values()))
    return 0


def rows_of(
    before: GraphModule,
    after: GraphModule,
    same: Mapping[Node, Node],
    what: Mapping[Node, Sequence[str]],
) -> list[Data]:
    """Put the nodes of two graphs in rows.

    Args:
        before: a module.
        after: another one.
        same: node of the first -> node of the second that it became.
        what: node of the second -> how it differs.

    Returns:
        For each row `at`, the numbers of its node in both graphs, or None for
        one.  What was removed stands in front of what was added there.  Rows
        that differ have a list `what` of texts and a `mark`: "-" for what was
        removed, "+" added, "~" changed, "m" moved.

    Cost: O(n log n) for n nodes.
    """
    olds = {node: i for i, node in enumerate(before.graph.nodes)}
    news = {node: i for i, node in enumerate(after.graph.nodes)}
    old_of = dict(sorted((news[new], olds[old]) for old, new in same.items()))
    texts = {news[node]: [*lines] for node, lines in what.items()}
    anchors = _longest_rise([*old_of.values()])
    paired = set(old_of.values())

    def rows() -> Iterator[Data]:
        left = 0  # the first old node that has no row yet
        for new in range(len(news)):
            while left < len(olds) and left not in anchors:
                yield removed(left)
                left += 1
            old = old_of.get(new)
            if old in anchors:
                mark = {"mark": "~"} if new in texts else {}
                yield {"at": [old, new]} | mark | _noted(texts.get(new))
                left += 1
            else:
                mark = {"mark": "+" if old is None else "m"}
                yield {"at": [None, new]} | mark | _noted(texts.get(new))
        yield from map(removed, range(left, len(olds)))

    def removed(old: int) -> Data:
        return {"at": [old, None], "mark": "m" if old in paired else "-"}

    return [*rows()]


def _noted(what: list[str] | None) -> Data:
    return {"what": what} if what else {}


def _longest_rise(numbers: Sequence[int]) -> set[int]:
    """The members of a longest part that rises, of different numbers.

    It is patience sorting: each number goes to the first pile whose top is
    larger.

    Cost: O(n log n).
    """
    ends: list[int] = []  # the least end of a rise of each length
    before: dict[int, int | None] = {}
    for number in numbers:
        place = bisect_left(ends, number)
        before[number] = ends[place - 1] if place else None
        ends[place : place + 1] = [number]
    members = set()
    last = ends[-1] if ends else None
    while last is not None:
        members.add(last)
        last = before[last]
    return members
