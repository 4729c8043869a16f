"""Passes: a drawing of a graph, which Graphviz lays out.

    FxGraphDrawer(gm, "net").get_dot_graph().write_svg("net.svg")

The drawing is an object of pydot, a package that fx does not need otherwise.
For a graph of more than a few dozen nodes, `fx.show` is easier to read.  The
colours are those of torch.fx, so that the text of a drawing is the same.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, TypeAlias

import torch
from torch import nn

from ..codegen.source import frames_of
from ..compat.names import _format_arg
from ..graph_module import GraphModule
from ..node import Node
from ..operator_schemas import normalize_function
from ..use_def import dotted_path
from ..use_def.text import _get_qualified_name
from ..use_def.values import AnyValue, Argument
from .shape_prop import TensorMetadata

__all__ = ["FxGraphDrawer"]

BoxShape: TypeAlias = str | None
"""The name that Graphviz has for a shape; None for a record with fields."""

_COLORS: Final = {
    "placeholder": '"AliceBlue"',
    "call_module": "LemonChiffon1",
    "get_attr": "LightGrey",
    "output": "PowderBlue",
}
_COLORS_OF_CALLS: Final = """
    CadetBlue1 Coral DarkOliveGreen1 DarkSeaGreen1 GhostWhite Khaki1
    LavenderBlush1 LightSkyBlue MistyRose1 MistyRose2 PaleTurquoise2
    PeachPuff1 Salmon Thistle1 Thistle3 Wheat1
""".split()
_MOST_ITEMS: Final = 8
"""How much of a list in the arguments is shown."""
_KEYWORDS: Final = frozenset(("graph", "node", "edge"))
"""Names that in dot mean the settings of all nodes or edges, unquoted."""


class FxGraphDrawer:
    """Draws a graph module, and the graph modules that it calls.

    torch.fx: passes/graph_drawer.py, FxGraphDrawer
    """

    def __init__(
        self,
        graph_module: GraphModule,
        name: str,
        ignore_getattr: bool = False,
        ignore_parameters_and_buffers: bool = False,
        skip_node_names_in_args: bool = True,
        parse_stack_trace: bool = False,
        dot_graph_shape: BoxShape = None,
        normalize_args: bool = False,
    ) -> None:
        """Draw a module as it is now; later edits do not show.

        Args:
            graph_module: the module.
            name: the name of its drawing.
            ignore_getattr: leave `get_attr` nodes out.
            ignore_parameters_and_buffers: leave the tensors of called modules
                out.
            skip_node_names_in_args: leave arguments with nodes out, since
                there are arrows for these.
            parse_stack_trace: show the user's line, where it was recorded.
            dot_graph_shape: Graphviz's shape of a node; "record" by default.
            normalize_args: show all arguments by keyword, where that can be.

        Raises:
            ImportError: pydot is not installed.

        Cost: O(nodes + size of their arguments).
        """
        self._pydot = _pydot()
        self._no_attributes = ignore_getattr
        self._no_tensors = ignore_parameters_and_buffers
        self._no_names = skip_node_names_in_args
        self._lines = parse_stack_trace
        self.dot_graph_shape: str = dot_graph_shape or "record"
        self.normalize_args = normalize_args
        self._name = name
        self._dot_graphs = {name: self._drawn(graph_module, name)}
        for node in graph_module.graph.find_nodes(op="call_module"):
            child = dotted_path.find(graph_module, str(node.target))
            if isinstance(child, GraphModule):
                key = f"{name}_{node.target}"
                self._dot_graphs[key] = self._drawn(child, key)

    def get_dot_graph(self, submod_name: str | None = None) -> AnyValue:
        """The drawing of the module, or of one that it calls: a `pydot.Dot`."""
        if submod_name is None:
            return self.get_main_dot_graph()
        return self.get_submod_dot_graph(submod_name)

    def get_main_dot_graph(self) -> AnyValue:
        """The drawing of the module itself."""
        return self._dot_graphs[self._name]

    def get_submod_dot_graph(self, submod_name: str) -> AnyValue:
        """The drawing of a graph module that is called.

        Args:
            submod_name: the path of that module.

        Raises:
            KeyError: no graph module of this path is called.
        """
        return self._dot_graphs[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self) -> dict[str, AnyValue]:
        """All drawings; those of called modules are named `NAME_PATH`."""
        return self._dot_graphs

    # -- drawing -------------------------------------------------------------

    def _drawn(self, gm: GraphModule, name: str) -> AnyValue:
        """A graph with a box for each node, and an arrow for each use."""
        dot = self._pydot.Dot(name, rankdir="TB")
        shown = [
            node
            for node in gm.graph.nodes
            if not (self._no_attributes and node.op == "get_attr")
        ]
        for node in shown:
            self._add_box(dot, node.name, self._label(gm, node), _color(node))
            if node.op == "call_module" and not self._no_tensors:
                self._add_tensors(dot, gm, node)
        for node in shown:
            for user in node.users:
                self._add_arrow(dot, node.name, user.name)
        return dot

    def _add_box(
        self, dot: AnyValue, name: str, label: str, color: str
    ) -> None:
        style = {"style": '"filled,rounded"', "fontcolor": "#000000"}
        shape = self.dot_graph_shape
        box = self._pydot.Node(
            _quoted(name), label=label, shape=shape, fillcolor=color, **style
        )
        dot.add_node(box)

    def _add_arrow(self, dot: AnyValue, start: str, end: str) -> None:
        dot.add_edge(self._pydot.Edge(_quoted(start), _quoted(end)))

    def _add_tensors(self, dot: AnyValue, gm: GraphModule, node: Node) -> None:
        """A box for each parameter and buffer of a module that is called."""
        module: nn.Module = dotted_path.find(gm, str(node.target))
        if isinstance(module, GraphModule):
            return
        for path, tensor in chain(
            module.named_parameters(), module.named_buffers()
        ):
            is_weight = isinstance(tensor, nn.Parameter)
            op = f"get_{'parameter' if is_weight else 'buffer'}"
            name = f"{node.name}.{path}"
            what = rf"{tensor.dtype}{[*tensor.shape]}\n"
            label = rf"{{{name}|op_code={op}\l{what}}}"
            self._add_box(dot, name, label, "Salmon")
            self._add_arrow(dot, name, node.name)

    # -- what stands in a box --------------------------------------------------

    def _label(self, gm: GraphModule, node: Node) -> str:
        """The text of a node's box; `|` is a line between two fields."""
        parts = [f"{{name=%{node.name}|op_code={node.op}\n"]
        if node.op == "call_module":
            module = dotted_path.find(gm, str(node.target))
            constants = r"\n".join(_constants(module))
            parts.append(rf"\n{_safe(torch.typename(module))}\n|{constants}\n")
        else:
            parts.append(rf"|target={_target(node)}\n")
            parts += self._arguments(node)
            parts.append(rf"|num_users={len(node.users)}\n")
        parts += _of_tensors(node.meta.get("tensor_meta"))
        if self._lines and (frames := frames_of(node.stack_trace)):
            at = frames[-1]
            file = "/".join(at.file.split("/")[-2:])
            parts.append(rf"|file={_safe(f'{file}:{at.line} {at.code}')}\n")
        return "".join([*parts, "}"])

    def _arguments(self, node: Node) -> Iterator[str]:
        """The fields of the arguments."""
        args: Iterable[Argument] = node.args
        kwargs = node.kwargs
        if self.normalize_args and callable(node.target):
            try:
                normalized = normalize_function(
                    node.target, node.args, kwargs, None, None, True
                )
            except (RuntimeError, TypeError):
                normalized = None  # shown as they are
            args, kwargs = normalized or (args, kwargs)
        yield self._listed("args=(", map(_shown, args), ")")
        named = (f"{key}: {_shown(value)}" for key, value in kwargs.items())
        yield self._listed(r"kwargs=\{", named, r"\}")

    def _listed(self, head: str, items: Iterable[str], end: str) -> str:
        """The field of some arguments; nothing if there are none to show."""
        texts = [text for text in items if not (self._no_names and "%" in text)]
        if not texts:
            return ""
        if len(texts) == 1:
            return f"|{head}{_safe(texts[0])},{end}"
        lines = r",\n".join(map(_safe, texts))
        return rf"|{head}\l{lines},\n{end}\l"


def _pydot() -> AnyValue:
    """The package pydot."""
    try:
        return importlib.import_module("pydot")
    except ImportError as error:
        raise ImportError(
            "FxGraphDrawer draws with pydot, which is not installed: run "
            "`pip install pydot`, or look at the graph with fx.show"
        ) from error


def _quoted(name: str) -> str:
    """A node's name as dot takes it for one."""
    return f'"{name}"' if name in _KEYWORDS else name


_ESCAPES: Final = str.maketrans({mark: f"\\{mark}" for mark in "{}<>|"})


def _safe(text: str) -> str:
    """A text without the characters that divide a box into fields."""
    return text.translate(_ESCAPES)


def _shown(value: Argument) -> str:
    return _format_arg(value, _MOST_ITEMS)


def _target(node: Node) -> str:
    target = node.target
    return _safe(
        target if isinstance(target, str) else _get_qualified_name(target)
    )


def _color(node: Node) -> str:
    """The colour of an opcode, or of the function that is called."""
    if node.op in _COLORS:
        return _COLORS[node.op]
    name = node._pretty_print_target(node.target).encode()
    digest = hashlib.md5(name, usedforsecurity=False).digest()
    number = int.from_bytes(digest[:4])
    return _COLORS_OF_CALLS[number % len(_COLORS_OF_CALLS)]


def _constants(module: nn.Module) -> Iterator[str]:
    """The settings of a module that its class lists for TorchScript."""
    for name in getattr(module, "__constants__", ()):
        if hasattr(module, name):
            yield _safe(f"{name}: {getattr(module, name)}")


def _of_tensors(meta: object) -> Iterator[str]:
    """The fields about the tensors that ShapeProp found."""
    match meta:
        case TensorMetadata():
            yield rf"|dtype={meta.dtype}\n|shape={tuple(meta.shape)}\n"
            yield rf"|requires_grad={meta.requires_grad}\n"
            yield rf"|stride={meta.stride}\n"
            scheme = meta.qparams.get("qscheme")
            channels = "per_channel_" if "channel" in str(scheme) else ""
            for key, value in meta.qparams.items():
                if key != "qscheme":
                    yield rf"|q_{channels}{key}={value}\n"
            if scheme is not None:
                yield rf"|qscheme={scheme}\n"
        case list() | tuple():
            for item in meta:
                yield from _of_tensors(item)
        case dict():
            for item in meta.values():
                yield from _of_tensors(item)
