"""Passes: what a graph is, apart from the names of its nodes.

Two graphs are equal if one is the other with other names, or with calls in
another order that makes no difference.  To find out without trying all ways to
pair their nodes, each node gets a key that is computed from what it is and from
what is around it, but from no name:

    label   call_function torch.add(%, 1)   what it is; % stands for a node
    above   label and the keys above of its inputs
    around  above and the keys around of its users

Two nodes with the same key `above` compute the same value.  Those with the same
key `around` are also used in the same way, up to the output, which leaves no
way to tell them apart.  `fx.diff` is built on these keys.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Final

import torch
from torch import nn

from .._pytree import child_specs
from ..codegen.codegen import CodeGen
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node
from ..use_def.dotted_path import exists, find
from ..use_def.errors import refuse_torchs
from ..use_def.text import _get_qualified_name, resolves_to
from ..use_def.values import AnyValue
from .utils.call_order import kept_in_order

__all__ = ["Structure", "structure_hash"]

BY_REPR: Final = (
    *(bool, int, float, complex, str, bytes, range, type(None), type(...)),
    *(torch.dtype, torch.device, torch.layout, torch.memory_format),
)
"""Types whose `repr` says all of a value, and the same in every process: that
of 0.0 is not that of -0.0."""


def structure_hash(graph: Graph | GraphModule) -> str:
    """A text that is the same for equal graphs, in every process.

    Graphs that `fx.diff` finds equal have equal hashes.  Others have different
    ones, unless they differ only in functions that have the same name, in
    objects of a type that fx does not know, or in how calls that are equal in
    all respects, and do not lead to the output, are wired.  A cache of compiled
    graphs can use it as its key.

    Args:
        graph: a graph, or a module, whose submodules then count by their class
            and settings, and whose tensors by their dtype and shape.

    Cost: O(n log n) for n nodes and uses.
    """
    shape = Structure(graph, lambda value: "")
    keys = sorted(shape.around(shape.above()).values())
    return hashlib.blake2b("".join(keys).encode(), digest_size=16).hexdigest()


class Structure:
    """Labels and edges of a graph's nodes.

    Attributes:
        labels: what each node is, without names.
        inputs: the nodes among the arguments of each, in order, each as often
            as it is there.
        uses: the users of each, with the place in their `inputs`.
        before: the nodes that each must stay behind though it does not use
            them: writes and reads, random draws, the parameters of forward
            (callers count these).
    """

    def __init__(
        self, graph: Graph | GraphModule, identity: Callable[[object], str]
    ) -> None:
        """Look at a graph.

        Args:
            graph: the graph, or the module that has it.
            identity: writes what tells apart two objects of the same type, or
                two functions of the same name, where nothing else does.

        Raises:
            TypeError: the graph is one of torch.fx.
        """
        refuse_torchs(graph)
        self._root = graph if isinstance(graph, GraphModule) else None
        self._identity = identity
        self._targets: dict[int, str] = {}
        self.graph: Graph = graph if isinstance(graph, Graph) else graph.graph
        self.labels: dict[Node, str] = {}
        self.inputs: dict[Node, list[Node]] = {}
        self.uses: dict[Node, list[tuple[Node, int]]] = {}
        self.before: dict[Node, list[Node]] = {}
        for node in self.graph.nodes:
            self._add(node)
        places = self.graph.find_nodes(op="placeholder")
        for pairs in (pairwise(places), kept_in_order(self.graph)):
            for first, second in pairs:
                self.before[second].append(first)

    def _add(self, node: Node) -> None:
        """Note what a node is and uses."""
        inputs: list[Node] = []

        def seen(value: Node) -> str:
            inputs.append(value)
            return "%"

        args = self.text(node.args, seen)
        kwargs = self.text(dict(sorted(node.kwargs.items())), seen)
        self.labels[node] = f"{node.op} {self.what(node)}{args}{kwargs}"
        self.inputs[node], self.uses[node], self.before[node] = inputs, [], []
        for place, value in enumerate(inputs):
            self.uses[value].append((node, place))

    # -- text --------------------------------------------------------------

    def what(self, node: Node) -> str:
        """A node's target, with what a module has there, but without names."""
        target = node.target
        match node.op:
            case "placeholder":
                return "*" * (len(str(target)) - len(str(target).lstrip("*")))
            case "output":
                return self._nesting()
            case "call_function":
                return self._of_function(target)
            case "call_method":
                return str(target)
        path = str(target)
        if self._root is None or not exists(self._root, path):
            return path
        return f"{path} {self._held(find(self._root, path))}"

    def _nesting(self) -> str:
        """How inputs come in and results go out, if not one by one."""
        codegen = self.graph._codegen
        if type(codegen) is CodeGen:
            return ""
        info = getattr(codegen, "pytree_info", None)
        specs = (info.in_spec, info.out_spec) if info else ()
        return " ".join([type(codegen).__name__, *map(self._of_spec, specs)])

    def _of_spec(self, spec: AnyValue) -> str:
        """How a structure is nested, down to its leaves."""
        if spec is None or not spec.num_leaves or spec.type is None:
            return "*"
        parts = ", ".join(map(self._of_spec, child_specs(spec)))
        kind = f"{spec.type.__module__}.{spec.type.__qualname__}"
        return f"{kind}({self.text(spec.context, str)}: {parts})"

    def _of_function(self, target: object) -> str:
        """The name of a function, and its identity if others have that name.

        A lambda, or a function inside of another one, has such a name.
        """
        text = self._targets.get(id(target))
        if text is None:
            text = _get_qualified_name(target)
            if not resolves_to(text, target):
                text += self._identity(target)
            self._targets[id(target)] = text
        return text

    def _held(self, value: object) -> str:
        """What a module has at a path: its kind, and not what is in it."""
        match value:
            case GraphModule():
                return structure_hash(value)
            case nn.Module():
                return f"{_kind(value)}({value.extra_repr()})"
        return self.text(value, lambda node: "%")

    def text(self, value: AnyValue, name: Callable[[Node], str]) -> str:
        """An argument, with what `name` answers for the nodes in it.

        It tells apart what is equal and not the same: `1` and `True`, or `0.0`
        and `-0.0`.

        Cost: O(size of the argument).
        """
        if isinstance(value, Node):
            return name(value)
        parts = _parts(value)
        if parts is None:
            return self._of_object(value)
        inside = [self.text(part, name) for part in parts]
        if isinstance(value, set | frozenset):
            inside.sort()
        kind = type(value)
        plain = next((c for c in (list, dict) if c in kind.__mro__), kind)
        shown = "" if plain is tuple else plain.__qualname__
        return f"{shown}({', '.join(inside)})"

    def _of_object(self, value: AnyValue) -> str:
        """A constant that has no nodes in it.

        The `repr` of an object of an unknown type might have an address in it,
        so its class must do.
        """
        if type(value) in BY_REPR:
            return repr(value)
        match value:
            case enum.Enum():
                return f"{_kind(value)}.{value.name}"
            case torch.Tensor():
                return f"{_kind(value)} {value.dtype} {[*value.shape]}"
            case _ if callable(value):
                return self._of_function(value)
        return f"{_kind(value)}{self._identity(value)}"

    # -- keys --------------------------------------------------------------

    def above(self) -> dict[Node, str]:
        """A key of each node and all that it is computed from."""
        keys: dict[Node, str] = {}
        for node in self.graph.nodes:
            inputs = [keys[value] for value in self.inputs[node]]
            before = sorted(keys[value] for value in self.before[node])
            keys[node] = _key([self.labels[node], *inputs, "|", *before])
        return keys

    def around(self, above: Mapping[Node, str]) -> dict[Node, str]:
        """A key of each node and all that is connected with it.

        Args:
            above: what `above` returned.
        """
        keys: dict[Node, str] = {}
        for node in reversed(self.graph.nodes):
            users = sorted(f"{keys[u]} {place}" for u, place in self.uses[node])
            keys[node] = _key([above[node], *users])
        return keys

    def targets(self) -> dict[Node, str]:
        """The opcode of each node, and the name of what it calls.

        An edit changes `above` for all that follows, and `around` for all
        nodes, but this and `nearby` only next to it.
        """
        return {
            node: f"{node.op} {self.what(node).partition(' ')[0]}"
            for node in self.graph.nodes
        }

    def nearby(self) -> dict[Node, str]:
        """A key of each node, its inputs, and its users."""
        labels = self.labels
        keys: dict[Node, str] = {}
        for node in self.graph.nodes:
            inputs = [labels[value] for value in self.inputs[node]]
            users = sorted(f"{labels[u]} {at}" for u, at in self.uses[node])
            keys[node] = _key([labels[node], *inputs, "|", *users])
        return keys


def _parts(value: AnyValue) -> list[AnyValue] | None:
    """What is in a container; None for all else."""
    match value:
        case slice():
            return [value.start, value.stop, value.step]
        case dict():
            return [part for item in value.items() for part in item]
        case list() | tuple() | set() | frozenset():
            return [*value]
        case _ if dataclasses.is_dataclass(value) and not callable(value):
            return [getattr(value, f.name) for f in dataclasses.fields(value)]
    return None


def _kind(value: object) -> str:
    """The name of a value's class, with its module."""
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _key(parts: Iterable[str]) -> str:
    """A short text for a long one, the same in every process."""
    joined = "\n".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(joined, digest_size=16).hexdigest()
