"""Stage 05, codegen: a graph module in files that hold data alone.

    fx.save(gm, "model")               model/graph.jsonl   one line a node
    gm = fx.load("model")              model/weights.pt    the tensors

The text can be read and compared, and loading it runs no code that it names:
functions are looked up in a list (`allowed.py`), values are of known types
(`values.py`), modules are of torch.nn or the user's own (`module_tree.py`).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import torch
from torch import nn
from torch.utils import _pytree as pytree

from ..codegen.codegen import CodeGen
from ..codegen.variants import _PyTreeCodeGen
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node
from ..ordered.namespace import is_parameter_name
from ..usedef.lint import problems
from ..usedef.protocols import PyTreeInfo
from ..usedef.values import Value
from .allowed import Allowed, check_attribute
from .module_tree import GRAPH_MODULE, Tree, find, module_records
from .values import Codec, Weights

_TEXT: Final = "graph.jsonl"
_WEIGHTS: Final = "weights.pt"
_TREES: Final = ("inputs", "outputs")
_GETATTR: Final = "builtins.getattr"
_HEADER: Final = {"format": "fx graph", "version": 1}


class LoadError(ValueError):
    """A file does not hold a graph module that can be loaded."""


# -- saving ------------------------------------------------------------------


def save(
    gm: GraphModule,
    path: str | os.PathLike[str],
    *,
    allow: Iterable[object] = (),
) -> None:
    """Write a graph module to a folder, as text and tensors.

        fx.save(gm, "model")
        gm = fx.load("model")

    The folder gets `graph.jsonl`, with one line for each module and node, and
    `weights.pt`, which `torch.load(weights_only=True)` reads.  It appears when
    all is written, in place of a graph that was saved there before.

    Names, types, code, nested inputs, tied weights, buffers, dtypes,
    `requires_grad` and `training` survive, and so do notes in `meta` of known
    types.  Modules of torch.nn are described; of other modules only the
    tensors are written, and `load` needs a root that has the modules.

    Args:
        gm: the module to save.
        path: the folder; its parent must exist.
        allow: functions, operators and classes that the file may name besides
            those of `fx/saving/allowed.py`; a string is the name of a method.

    Raises:
        ValueError: a node or the module cannot be saved.  Says which, and why.
        FileExistsError: the folder has other files in it.
        Whatever writing raises.  In all cases `path` is as it was before.

    Warns which notes in `meta` are left out, because they are of no known type.

    Cost: O(nodes + size of their arguments + tensors).
    """
    codec = Codec(Allowed(allow), Weights())
    lost: dict[str, str] = {}
    lines = [f"{json.dumps(each)}\n" for each in _records(gm, codec, lost)]
    _write(Path(path).absolute(), lines, codec.weights)
    if lost:
        notes = "; ".join(f"{key!r} of {lost[key]}" for key in lost)
        warnings.warn(f"notes in meta were not saved: {notes}", stacklevel=2)


def _write(folder: Path, lines: list[str], weights: Weights) -> None:
    """Write the files beside `folder`, then put them in its place."""
    old = {file.name for file in folder.iterdir()} if folder.exists() else set()
    if not old <= {_TEXT, _WEIGHTS}:
        raise FileExistsError(
            f"{folder} has other files than a saved graph: choose another path"
        )
    beside = Path(
        tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent)
    )
    try:
        new = beside / "new"
        new.mkdir()
        torch.save(dict(weights), new / _WEIGHTS)
        (new / _TEXT).write_text("".join(lines), encoding="utf-8")
        if folder.exists():
            folder.rename(beside / "old")
        new.rename(folder)
    finally:
        if not folder.exists() and (beside / "old").exists():
            (beside / "old").rename(folder)
        shutil.rmtree(beside)


def _records(
    gm: GraphModule, codec: Codec, lost: dict[str, str]
) -> Iterator[dict[str, Value]]:
    """What the lines say: a header, the modules, then each graph."""
    yield _HEADER
    graphs: dict[str, GraphModule] = {}
    for path, module, record in module_records(gm, codec):
        if isinstance(module, GraphModule) and "class" in record:
            graphs[path] = module
            record |= _notes(module.meta, codec, f"module {path!r}", lost)
        yield {"module": path, **record}
    for path, owner in graphs.items():
        yield from _graph_records(path, owner, codec, lost)
    yield {"end": list(graphs)}


def _graph_records(
    path: str, owner: GraphModule, codec: Codec, lost: dict[str, str]
) -> Iterator[dict[str, Value]]:
    """A graph's signature, then its nodes."""
    graph = owner.graph
    for problem in problems(graph):
        raise ValueError(f"the graph is broken: {problem.message}")
    codec.nodes = {node.name: node for node in graph.nodes}
    yield {"graph": path, **_nested(graph, codec)}
    for node in graph.nodes:
        try:
            record = _node_record(node, owner, codec)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"node {node} cannot be saved: {error}") from error
        yield record | _notes(node.meta, codec, f"node {node}", lost)


def _node_record(
    node: Node, owner: GraphModule, codec: Codec
) -> dict[str, Value]:
    """A node without its notes."""
    _check_target(node, owner, codec.allowed)
    target: Value = node.target
    if target is getattr:
        target = _GETATTR
    elif node.op == "call_function":
        target = codec.allowed.name_of(target)
    record = {"node": node.name, "op": node.op, "target": codec.data(target)}
    if node.args:
        record["args"] = [codec.data(arg) for arg in node.args]
    if node.kwargs:
        record["kwargs"] = {k: codec.data(node.kwargs[k]) for k in node.kwargs}
    if node.type is not None:
        record["type"] = codec.data(node.type)
        codec.annotation(record["type"])
    return record


def _nested(graph: Graph, codec: Codec) -> dict[str, Value]:
    """How nested inputs and outputs are made flat, if they are."""
    codegen = graph._codegen
    if type(codegen) not in (CodeGen, _PyTreeCodeGen) or (
        codegen._body_transformer is not None  # noqa: SLF001
    ):
        raise ValueError(
            "the graph has a code generator of a user, which is code: save it "
            "without, and call graph.set_codegen on what was loaded"
        )
    if not isinstance(codegen, _PyTreeCodeGen):
        return {}
    names, inputs, outputs = codegen.pytree_info
    record = {"parameters": names, "inputs": _structure(inputs, codec)}
    if outputs is not None:
        record["outputs"] = _structure(outputs, codec)
    return record


def _structure(spec: pytree.TreeSpec, codec: Codec) -> Value:
    """An example of a structure, with a 0 for each leaf, as data."""
    example = pytree.tree_unflatten([0] * spec.num_leaves, spec)
    data = codec.data(example)
    if pytree.tree_structure(codec.value(data)) != spec:
        raise ValueError(f"the structure {spec} cannot be saved")
    return data


def _notes(
    meta: Mapping[Value, Value], codec: Codec, where: str, lost: dict[str, str]
) -> dict[str, Value]:
    """The notes that have a form as data; the others are noted in `lost`."""
    notes: dict[str, Value] = {}
    codec.in_meta = True
    for key, value in meta.items():
        try:
            if type(key) is not str:
                raise ValueError("its key is not a string")
            notes[key] = codec.data(value)
        except (ValueError, RecursionError) as error:
            lost.setdefault(str(key), f"{where}: {error}")
    codec.in_meta = False
    return {"meta": notes} if notes else {}


def _check_target(node: Node, owner: nn.Module, allowed: Allowed) -> None:
    """Raise ValueError unless a file may have a node with this target."""
    if node.target is getattr:
        check_attribute(node.args)
    elif node.op == "call_method":
        allowed.check_method(str(node.target))
    elif node.op in ("get_attr", "call_module"):
        find(owner, str(node.target))


# -- loading -----------------------------------------------------------------


def load(
    path: str | os.PathLike[str],
    root: nn.Module | None = None,
    *,
    allow: Iterable[object] = (),
    map_location: Value = None,
) -> GraphModule:
    """Read a graph module that `save` wrote.

    Loading runs no code that the file names: it makes modules of torch.nn, and
    compiles the graph, which names only functions that compute.  What a graph
    computes when it is *called* is still the file's choice, and it may be slow,
    wrong, or use all memory.

    Args:
        path: the folder.
        root: has the modules that the file does not describe, at the same
            paths.  They become part of the result, with the tensors of the
            file in the place of their own.
        allow: as for `save`; at least what the file names.
        map_location: the device for the tensors, as `torch.load` takes it.

    Raises:
        LoadError: the file is damaged, or names what is not allowed, or needs
            a root.  Says which file and line.

    Cost: O(length of the files).
    """
    folder, allowed = Path(path), Allowed(allow)
    with _reading(f"{folder / _WEIGHTS}"):
        held = torch.load(
            folder / _WEIGHTS, map_location=map_location, weights_only=True
        )
        kinds = {type(tensor) for tensor in held.values()}
        if not kinds <= {torch.Tensor, nn.Parameter}:
            raise ValueError("it holds other things than tensors")
    reader = _Reader(root, Codec(allowed, Weights(held)))
    file, number = folder / _TEXT, 0
    with _reading(f"{file}"), file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            with _reading(f"{file}, line {number}: {line[:80].strip()}"):
                reader.read(json.loads(line, object_pairs_hook=_object))
        return reader.result()


@contextlib.contextmanager
def _reading(where: str) -> Iterator[None]:
    """Make every error a LoadError that says where it was."""
    try:
        yield
    except LoadError:
        raise
    except Exception as error:
        message = f"{where}: {type(error).__name__}: {error}"
        raise LoadError(message) from error


def _object(pairs: list[tuple[str, Value]]) -> dict[str, Value]:
    """An object of JSON; each key once."""
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key is there twice")
    return result


_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "format": ("version",),
    "module": (
        *("class", "args", "attributes", "root", "same as", "meta"),
        *("parameters", "buffers", "not persistent", "training"),
    ),
    "graph": ("parameters", "inputs", "outputs"),
    "node": ("op", "target", "args", "kwargs", "type", "meta"),
    "end": (),
}
"""The first key of a line → the others that it may have."""


class _Reader:
    """Makes modules and graphs of the lines of a file, in order."""

    def __init__(self, root: nn.Module | None, codec: Codec) -> None:
        """Make a reader that has read nothing."""
        self._codec = codec
        self._tree = Tree(root, codec)
        self._graphs: dict[str, Graph | None] = {}
        self._open = Graph()
        self._last = ""
        # Notes may name nodes further down, so they are read at the end.
        self._notes: list[tuple[dict[str, Value], Value, dict[str, Node]]] = []

    def read(self, record: dict[str, Value]) -> None:
        """Read one line.

        Raises:
            Exception: it is wrong. The reader is then of no use.
        """
        kind = next(iter(record))
        unknown = record.keys() - {kind, *_KEYS[kind]}
        if unknown or (self._last == "") != (kind == "format"):
            raise ValueError(f"a line with {kind!r} is not in its place")
        if self._last == "end":
            raise ValueError("there are lines after the end")
        getattr(self, f"_{kind}")(record)
        self._last = kind

    def _format(self, record: dict[str, Value]) -> None:
        """Check the header."""
        if record != _HEADER:
            raise ValueError(f"this version of fx reads {_HEADER}")

    def _module(self, record: dict[str, Value]) -> None:
        """Make a module."""
        path = record["module"]
        self._tree.add(path, record)
        module = self._tree.modules[path]
        if record.get("class") == GRAPH_MODULE:
            self._graphs[path] = None
            meta: dict[str, Value] = vars(module)["meta"]
            self._notes.append((meta, record.get("meta", {}), {}))

    def _graph(self, record: dict[str, Value]) -> None:
        """Begin the graph of a module."""
        path = record["graph"]
        if self._graphs[path] is not None:
            raise ValueError("the module has a graph already")
        self._graphs[path] = self._open = graph = Graph()
        self._codec.nodes = {}
        if "inputs" in record:
            names = record["parameters"]
            if not all(map(is_parameter_name, names)):
                raise ValueError("the parameters are not identifiers")
            trees = (
                self._codec.value(record[k]) for k in _TREES if k in record
            )
            spec, *rest = map(pytree.tree_structure, trees)
            outputs = rest[0] if rest else None
            graph._pytree_info = PyTreeInfo(names, spec, outputs)
        self._owner = self._tree.modules[path]

    def _node(self, record: dict[str, Value]) -> None:
        """Make a node of the graph that was begun last."""
        codec, name, target = self._codec, record["node"], record["target"]
        graph = self._open
        if name in codec.nodes or not is_parameter_name(name):
            raise ValueError("the node is not in its place, or not its name")
        if record["op"] == "call_function":
            is_getattr = target == _GETATTR
            target = getattr if is_getattr else codec.allowed.function(target)
        node = graph.create_node(
            record["op"],
            target,
            tuple(map(codec.value, record.get("args", ()))),
            {k: codec.value(v) for k, v in record.get("kwargs", {}).items()},
            name,
            codec.annotation(record.get("type")),
        )
        node.name = name  # even one that no node is given, such as `len`
        _check_target(node, self._owner, codec.allowed)
        self._notes.append((node.meta, record.get("meta", {}), codec.nodes))
        codec.nodes[name] = node

    def _end(self, record: dict[str, Value]) -> None:
        """Check that each graph was there."""
        if record["end"] != [*self._graphs] or None in self._graphs.values():
            raise ValueError("it lacks a graph")

    def result(self) -> GraphModule:
        """The module, when all lines are read."""
        if self._last != "end":
            raise ValueError("the file ends too early")
        codec, modules = self._codec, self._tree.modules
        codec.in_meta = True
        for meta, data, codec.nodes in self._notes:
            meta.update((key, codec.value(data[key])) for key in data)
        for path, graph in reversed(self._graphs.items()):
            owner = modules[path]
            if not isinstance(graph, Graph) or not isinstance(
                owner, GraphModule
            ):
                raise ValueError(f"{path!r} is not a graph module")
            graph.owning_module = owner
            graph.lint()
            owner.graph = graph
        gm = modules[""]
        if not isinstance(gm, GraphModule):
            raise ValueError("the outermost module is not a graph module")
        return gm
