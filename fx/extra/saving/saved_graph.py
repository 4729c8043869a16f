"""Extra: a graph module in files that hold data alone.

    fx.save(gm, "model")               model/graph.jsonl   one line a node
    gm = fx.load("model")              model/weights.pt    the tensors

The text can be read and compared, and loading it runs no code that it names:
functions are looked up in a list (`allowed.py`), values are of known types
(`values.py`), modules are of torch.nn or the user's own (`module_tree.py`).
Each line is an object of JSON, so that a changed node is one changed line, and
an error can say which line is wrong.
"""

from __future__ import annotations

import contextlib
import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from torch import nn

from ...codegen.codegen import CodeGen
from ...codegen.nested import _PyTreeCodeGen
from ...compat import first_use
from ...graph import Graph
from ...graph_module import GraphModule
from ...linked_list.namespace import is_parameter_name
from ...node import Node
from ...use_def.errors import refuse_torchs
from ...use_def.lint import problems
from ...use_def.values import AnyValue
from . import files
from .allowed import Allowed
from .module_tree import Rehearsal, Tree, check_path, module_records
from .packing import _pytree_info, examples
from .values import Codec, Weights

_GETATTR: Final = "builtins.getattr"

_FOUND_AGAIN: Final = ("val", "example_value")
"""Notes that fx and torch make themselves, of fake tensors; a pass such as
FakeTensorProp makes them again."""


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
    types; for those of ShapeProp give `allow=[TensorMetadata]`.  Modules of
    torch.nn are described; of others only the tensors are written, and `load`
    needs a root that has them.

    Args:
        gm: the module to save.
        path: the folder; its parent must exist.
        allow: functions, operators and classes that the file may name besides
            those of `allowed.py`; a string is the name of a method.

    Raises:
        TypeError: `gm` is not an fx.GraphModule.
        ValueError: a node or the module cannot be saved, or could not be
            loaded again.  Says which, and why.
        RuntimeError: `lint` finds that a graph is broken.
        FileExistsError: the folder has something in it that `save` did not
            write, or that was changed since; or it is one that cannot be
            replaced: the current directory, or a mount point.
        What writing raises.  `path` then holds what it held before, or the
        whole new graph.

    Warns which notes in `meta` are left out, because they are of no known type.
    Fake tensors in `meta["val"]`, which a pass finds again, are left out, too.

    Cost: O(nodes + size of their arguments + tensors).  As nothing is written
    that could not be loaded, it takes the time of loading the text, too.
    """
    refuse_torchs(gm)
    if not isinstance(gm, GraphModule):
        raise TypeError(
            f"save takes a GraphModule, not {type(gm).__name__}: trace the "
            "module first, fx.symbolic_trace(module)"
        )
    writer = _Writer(allowed := Allowed(allow))
    lines = [f"{json.dumps(record)}\n" for record in writer.records(gm)]
    weights = writer.codec.weights
    _rehearse(_Reader(Rehearsal(gm, Codec(allowed, weights))), lines)
    files.write(Path(path).resolve(), lines, weights)
    if lost := writer.lost:
        notes = "; ".join(f"{key!r} of {lost[key]}" for key in lost)
        warnings.warn(f"notes in meta were not saved: {notes}", stacklevel=2)


def _rehearse(reader: _Reader, lines: list[str]) -> None:
    """Raise unless `load` would read what is about to be written.

    Reading has rules of its own, such as those for names of attributes, and
    nobody should learn of them when the saved graph is all that is left.
    """
    for line in lines:
        try:
            reader.read(json.loads(line))
        except Exception as error:
            raise ValueError(
                "the module cannot be saved, because it could not be loaded "
                f"again: {line[:80].strip()}: {type(error).__name__}: {error}"
            ) from error
    reader.result()


class _Writer:
    """Makes the lines of a file.

    Attributes:
        codec: writes values.
        lost: key of a note that is not saved → where it is, and why.
    """

    def __init__(self, allowed: Allowed) -> None:
        """Make a writer of files that name what is allowed."""
        self.codec = Codec(allowed, Weights())
        self.lost: dict[str, str] = {}
        self._notes = Codec(allowed, Weights(), notes=True)

    def records(self, gm: GraphModule) -> Iterator[dict[str, AnyValue]]:
        """What the lines say after the header: the modules, then the graphs."""
        graphs: dict[str, GraphModule] = {}
        for path, module, record in module_records(gm, self.codec):
            if isinstance(module, GraphModule) and "class" in record:
                graphs[path] = module
                record |= self._meta(module.meta, f"module {path!r}")
            yield {"module": path, **record}
        for path, owner in graphs.items():
            graph = owner.graph
            _lint(graph)
            self.codec.nodes = {node.name: node for node in graph.nodes}
            yield {"graph": path, **self._nested(graph)}
            for node in graph.nodes:
                try:
                    record = self._node(node, owner)
                except (ValueError, RecursionError) as error:
                    raise ValueError(
                        f"node {node} cannot be saved: {error}"
                    ) from error
                yield record | self._meta(node.meta, f"node {node}")

    def _node(self, node: Node, owner: GraphModule) -> dict[str, AnyValue]:
        """A node without its notes."""
        codec, target = self.codec, node.target
        _check_target(node, owner, codec.allowed)
        if target is getattr:
            target = _GETATTR
        elif not isinstance(target, str):
            target = codec.allowed.name_of(target)
            codec.allowed.function(target)  # a class may have a name alone
        more = {
            "args": list(map(codec.data, node.args)),
            "kwargs": {key: codec.data(v) for key, v in node.kwargs.items()},
            "type": codec.data(node.type),
        }
        codec.annotation(more["type"])
        return {
            **{"node": node.name, "op": node.op, "target": target},
            **{key: more[key] for key in more if more[key]},
        }

    def _nested(self, graph: Graph) -> dict[str, AnyValue]:
        """How nested inputs and outputs are made flat, if they are.

        As in a pickle of the graph, that is written as an example of the
        structure, with a 0 for each leaf.
        """
        codegen = graph._codegen
        if type(codegen).__name__ == "GuardedCodeGen":
            return {
                "guarded": first_use.load("extra.saving.nested.data")(
                    codegen, self.codec
                )
            }
        if type(codegen) not in (CodeGen, _PyTreeCodeGen) or (
            codegen._body_transformer is not None  # noqa: SLF001
        ):
            raise ValueError(
                "the graph has a code generator of a user, which is code: save "
                "it without, and call graph.set_codegen on what was loaded"
            )
        if not isinstance(codegen, _PyTreeCodeGen):
            return {}
        names, *trees = examples(codegen.pytree_info)
        return {"parameters": names, "trees": list(map(self.codec.data, trees))}

    def _meta(
        self, meta: Mapping[AnyValue, AnyValue], where: str
    ) -> dict[str, AnyValue]:
        """The notes that have a form as data; the others are `lost`.

        A node that cannot be saved is an error, because without it the graph
        would be another one.  Without a note it runs as before.
        """
        notes: dict[str, AnyValue] = {}
        for key, value in meta.items():
            try:
                if type(key) is not str:
                    raise ValueError("its key is not a string")
                notes[key] = self._notes.data(value)
            except (ValueError, RecursionError) as error:
                if key not in _FOUND_AGAIN:
                    self.lost.setdefault(str(key), f"{where}: {error}")
        return {"meta": notes} if notes else {}


def _lint(graph: Graph) -> None:
    """Raise as `graph.lint`, but not for names, which are only data here."""
    for problem in problems(graph):
        if problem.node is None or is_parameter_name(problem.node.name):
            graph.lint()


def _check_target(node: Node, owner: nn.Module, allowed: Allowed) -> None:
    """Raise ValueError unless a file may have a node with this target."""
    if node.op in ("get_attr", "call_module"):
        check_path(owner, str(node.target))
    allowed.check_target(node.op, node.target, node.args)


# -- loading -----------------------------------------------------------------


def load(
    path: str | os.PathLike[str],
    root: nn.Module | None = None,
    *,
    allow: Iterable[object] = (),
    map_location: AnyValue = None,
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
            file in the place of their own; if an error is raised, they keep
            their own.
        allow: as for `save`; at least what the file names.
        map_location: the device for the tensors, as `torch.load` takes it.

    Raises:
        LoadError: the file is damaged, or names what is not allowed, or needs
            a root.  Says which file and line.

    Cost: O(length of the files).
    """
    allowed, file = Allowed(allow), Path(path, files.TEXT)
    with (
        _reading(f"{file}"),
        files.plain(file).open(encoding="utf-8") as lines,
    ):
        beside = file.with_name(files.WEIGHTS)
        with _reading(f"{beside}"):
            weights = Weights(files.tensors_in(beside, map_location))
            # Else a graph was saved there since the text was opened, and the
            # tensors may be those of the new one.
            files.check_unmoved(lines, file)
        reader = _Reader(Tree(root, Codec(allowed, weights)))
        try:
            for number, line in enumerate(lines, 1):
                with _reading(f"{file}, line {number}: {line[:80].strip()}"):
                    record = json.loads(line)
                    _check_header(record) if number == 1 else reader.read(
                        record
                    )
            return reader.result()
        except BaseException:
            reader.tree.undo()
            raise


def _check_header(record: dict[str, AnyValue]) -> None:
    """Raise ValueError unless the file is of a version that can be read."""
    found = record.get("format"), record.get("version")
    if found != (files.FORMAT, files.VERSION):
        raise ValueError(
            f"this fx reads {files.FORMAT!r}, version {files.VERSION}: load "
            "it with the fx that saved it"
        )


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


class _Reader:
    """Makes modules and graphs of the lines of a file, in order.

    Targets and types are checked as the nodes are made. `lint` looks at each
    graph as a whole before code is generated from it.

    Attributes:
        tree: the modules.
    """

    def __init__(self, tree: Tree) -> None:
        """Make a reader that has read nothing."""
        self.tree = tree
        self._codec = tree.codec
        self._notes = Codec(tree.codec.allowed, Weights(), notes=True)
        self._graphs: dict[nn.Module, Graph | None] = {}
        self._names: dict[Node, str] = {}
        self._open: tuple[nn.Module, Graph]

    def read(self, record: dict[str, AnyValue]) -> None:
        """Read one line after the header.

        Raises:
            Exception: it is wrong. Do not use the reader after that.
        """
        meta: dict[str, AnyValue] = {}
        if "node" in record:
            meta = self._node(record).meta
        elif "graph" in record:
            self._graph(record)
        else:
            has_class = "class" in record
            module = self.tree.add(record.pop("module"), record)
            if has_class and isinstance(module, GraphModule):
                self._graphs[module], meta = None, module.meta
        notes = record.pop("meta", {})
        meta.update((key, self._notes.value(notes[key])) for key in notes)
        if record:
            raise ValueError(f"the keys {[*record]} are not known")

    def _graph(self, record: dict[str, AnyValue]) -> None:
        """Begin the graph of a module."""
        owner, graph = self.tree.modules[record.pop("graph")], Graph()
        if self._graphs[owner] is not None:
            raise ValueError("the module has a graph already")
        self._graphs[owner] = graph
        self._open = owner, graph
        self._codec.nodes = {}
        if "guarded" in record:
            nested = record.pop("guarded")
            graph.set_codegen(
                first_use.load("extra.saving.nested.make")(nested, self._codec)
            )
        if "trees" in record:
            names = record.pop("parameters")
            if not all(map(is_parameter_name, names)):
                raise ValueError("the parameters are not identifiers")
            trees = map(self._codec.value, record.pop("trees"))
            graph._pytree_info = _pytree_info(names, *trees)

    def _node(self, record: dict[str, AnyValue]) -> Node:
        """Make a node of the graph that was begun last."""
        codec, name = self._codec, record.pop("node")
        if name in codec.nodes:
            raise ValueError("two nodes have this name")
        op, target = record.pop("op"), record.pop("target")
        if op == "call_function":
            is_getattr = target == _GETATTR
            target = getattr if is_getattr else codec.allowed.function(target)
        kwargs = record.pop("kwargs", {})
        owner, graph = self._open
        node = graph.create_node(
            op,
            target,
            tuple(map(codec.value, record.pop("args", ()))),
            {key: codec.value(kwargs[key]) for key in kwargs},
            name,
            codec.annotation(record.pop("type", None)),
        )
        _check_target(node, owner, codec.allowed)
        self._names[node] = name
        codec.nodes[name] = node
        return node

    def result(self) -> GraphModule:
        """The module, when all lines are read."""
        for owner, graph in reversed(self._graphs.items()):
            if graph is None or not isinstance(owner, GraphModule):
                raise ValueError("the graph of a module is missing")
            graph.owning_module = owner
            graph.lint()
            for node in graph.nodes:
                # Even one that no node is given, such as `len` or "a b".
                node.name = self._names[node]
            owner.graph = graph
        gm = self.tree.modules[""]
        if not isinstance(gm, GraphModule):
            raise ValueError("the outermost module is not a graph module")
        repr(gm)  # raises if a module lacks an attribute that it prints
        return gm
