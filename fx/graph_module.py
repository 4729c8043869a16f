"""Stage 05, codegen: GraphModule, a graph that can be called.

A GraphModule is an `nn.Module` whose `forward` was written by its graph.  It
holds the modules, parameters and buffers that the nodes' targets name, at the
same paths as the module from which the graph was traced.

    edit gm.graph  →  gm.recompile()  →  gm.code and gm(x) are new

Python looks `forward` up on the class, so each instance gets its own class.
`recompile` makes the new function first and puts it there last: other threads
may call the module meanwhile, and if Python refuses the code, the module
still has the function that it had.
"""

from __future__ import annotations

import contextlib
import copy
import os
import sys
import types
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import ClassVar, Final, Self, TypeVar, cast

from torch import nn
from torch.utils import _pytree as pytree

from .codegen.failures import where_it_failed
from .codegen.readable import class_text
from .codegen.source import CompiledForward, compile_forward
from .codegen.unchanged import kept
from .codegen.variants import SPECS, _PyTreeCodeGen
from .graph import Graph, importable
from .node import Node
from .saving import copying
from .saving.serialize import write_folder
from .saving.used_attributes import delete_unused, paths_in
from .text import dotted_path
from .usedef.protocols import GraphTracer, PythonCode, ReplaceHook
from .usedef.values import Value

__all__ = ["GraphModule"]

NodeHook = Callable[[Node], object]
"""Called with a node that was made, or is about to be erased."""

_IMPL: Final = "GraphModuleImpl"


class GraphModule(nn.Module):
    """An `nn.Module` that does what a graph says.

        gm = GraphModule(root, graph)
        gm.graph.erase_node(node)
        gm.recompile()

    Attributes:
        meta: for passes to leave notes in; copied with the module.

    torch.fx: graph_module.py, GraphModule
    """

    meta: dict[str, Value]
    _wrapped_call: ClassVar[_WrappedCall]
    _graph: Graph
    _code: str
    _lineno_map: dict[int, int | None] | None
    _prologue_start: int
    _tracer_cls: type[GraphTracer] | None
    _tracer_extras: dict[str, Value]
    _in_spec: pytree.TreeSpec
    _out_spec: pytree.TreeSpec | None
    _replace_hooks: list[ReplaceHook]
    _create_node_hooks: list[NodeHook]
    _erase_node_hooks: list[NodeHook]
    _deepcopy_hooks: list[Callable[[GraphModule], object]]

    # TorchScript, which compiles properties and evaluates annotations, is to
    # leave ours alone.
    __jit_unused_properties__: ClassVar[list[str]] = ["graph", "code"]
    __jit_ignored_attributes__: ClassVar[list[str]] = list(__annotations__)

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """Make an instance, in a class of its own.

        torch.fx: graph_module.py, GraphModule.__new__
        """
        base = _base_of(cls)
        new = super().__new__(cast("type[Self]", _class_below(base)))
        if base is not cls:
            # As in type(gm)(root, graph). The class of `new` stands beside
            # `cls`, and Python initialises instances of `cls` only.
            initialise: Callable[..., None] = base.__init__
            initialise(new, *args, **kwargs)
        return new

    def __init__(
        self,
        root: nn.Module | dict[str, Value],
        graph: Graph,
        class_name: str = "GraphModule",
    ) -> None:
        """Make a module that does what `graph` says.

        Args:
            root: where to find what the nodes' targets name. It is shared,
                not copied, and comes to the same paths; plain tensors become
                buffers. A dict has the paths as its keys.
            graph: the graph, which from now on belongs to this module.
            class_name: the name of the module's class.

        Raises:
            RuntimeError: `root` is neither; a dict lacks a target; a target
                would hide something of GraphModule; the graph has no output,
                or Python refuses its code.
            AttributeError: a module lacks a target.

        Cost: O(nodes + size of their arguments).

        torch.fx: graph_module.py, GraphModule.__init__
        """
        super().__init__()
        type(self).__name__ = class_name
        self.meta = {}
        self._replace_hooks = []
        self._create_node_hooks = []
        self._erase_node_hooks = []
        self._deepcopy_hooks = []
        _take_targets(self, root, graph)
        self.graph = graph
        self._tracer_cls = importable(graph._tracer_cls)
        self._tracer_extras = graph._tracer_extras or {}

    # -- the graph and its code --------------------------------------------

    @property
    def graph(self) -> Graph:
        """The graph; assign another to have the module do what that says.

        Edit it in place as you like, then call `recompile`.

        Raises:
            AssertionError: what is assigned is no Graph.
            RuntimeError: as `recompile`; the module keeps its graph.

        torch.fx: graph_module.py, GraphModule.graph
        """
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(
                f"Expected a Graph instance, but got {type(g)}"
            )
        graph, owner = vars(self).get("_graph"), g.owning_module
        self._graph, g.owning_module = g, self
        try:
            self.recompile()
        except BaseException:
            g.owning_module = owner
            if graph is not None:
                self._graph = graph
            raise

    @property
    def code(self) -> str:
        """The source of `forward`, as of the last `recompile`.

        torch.fx: graph_module.py, GraphModule.code
        """
        return self._code

    def recompile(self) -> PythonCode:
        """Make `code` and `forward` anew from the graph.

        To be called when the graph was edited. Child modules that are
        GraphModules are recompiled too. Other threads may be calling the
        module: each call runs either the old code or the new.

        Returns:
            The source, the globals that it names, and where its lines come
            from.

        Raises:
            RuntimeError: the graph has no output, or Python refuses its
                code. The module keeps what it had.

        Cost: O(nodes + size of their arguments).

        torch.fx: graph_module.py, GraphModule.recompile
        """
        for _, child in self._child_graph_modules():
            child.recompile()
        compiled = self._compile()
        self._code = compiled.code.src
        self._lineno_map = compiled.code._lineno_map
        self._prologue_start = compiled.code._prologue_start
        if isinstance(codegen := self._graph._codegen, _PyTreeCodeGen):
            self._in_spec = codegen.pytree_info.in_spec
            self._out_spec = codegen.pytree_info.out_spec
        self._wrapped_call.compiled = compiled
        type(self).forward = compiled.forward
        return compiled.code

    def _compile(self) -> CompiledForward:
        """The graph as a function; the module is not changed."""
        nodes = tuple(self._graph.nodes)
        if not any(node.op == "output" for node in reversed(nodes)):
            raise RuntimeError(
                "the Graph has no output: add graph.output(value) before a "
                "GraphModule is made from it or recompiled"
            )
        code = self._graph.python_code("self")
        known = vars(self._wrapped_call).get("compiled")
        return kept(known, code, nodes) or compile_forward(
            code, nodes, self._graph._co_fields
        )

    def _child_graph_modules(self) -> Iterator[tuple[str, GraphModule]]:
        """The children that have a graph, too, with their names."""
        for name, child in self.named_children():
            if isinstance(child, GraphModule):
                yield name, child

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        *,
        fast_sympy_print: object = False,
        expanded_def: bool = False,
        additional_meta: list[str] | None = None,
    ) -> str:
        """The code with comments on where it comes from, children included.

        It is written anew from the graph, whether recompiled or not.

        Args:
            print_output: print it, too.
            include_stride: show the strides of tensors beside their shapes.
            include_device: show their devices.
            colored: ANSI colours.
            fast_sympy_print: taken for torch.fx's sake; there is but one way
                to print symbolic sizes here.
            expanded_def: one parameter a line.
            additional_meta: keys of node.meta to show in the comments.

        torch.fx: graph_module.py, GraphModule.print_readable
        """
        write = partial(
            Graph.python_code,
            root_module="self",
            verbose=True,
            include_stride=include_stride,
            include_device=include_device,
            colored=colored,
            expanded_def=expanded_def,
            additional_meta=additional_meta,
        )
        text = self._readable(type(self).__name__, write)
        if print_output:
            print(text)
        return text

    def _readable(self, name: str, write: Callable[[Graph], PythonCode]) -> str:
        """The code as a class in Python, with the children's inside."""
        children = [
            child._readable(child_name, write)  # noqa: SLF001
            for child_name, child in self._child_graph_modules()
        ]
        return class_text(name, write(self._graph).src, children)

    def __str__(self) -> str:
        """The modules, then the code."""
        hint = "please use `graph_module.print_readable()`"
        tree = super().__str__()
        return f"{tree}\n{self._code}\n# To see more debug info, {hint}"

    def to_folder(
        self, folder: str | os.PathLike[str], module_name: str = "FxModule"
    ) -> None:
        """Write the module out as a Python package that can be edited.

        After that, `from <folder> import <module_name>` works, in this
        process or another, wherever the folder is moved; `<module_name>()`
        is a plain nn.Module.

        Args:
            folder: where to write to; made if need be, but not its parents.
            module_name: the name of the class.

        Raises:
            ValueError: `module_name` cannot be the name of a class.
            RuntimeError: the code uses an object that can be neither
                imported nor pickled. Nothing is written then.

        Warns which child modules could not be written as Python: they are
        pickled beside it.

        torch.fx: graph_module.py, GraphModule.to_folder
        """
        compiled = self._wrapped_call.compiled
        write_folder(self, compiled, Path(folder), module_name)

    # -- submodules --------------------------------------------------------

    def add_submodule(self, target: str, m: nn.Module) -> bool:
        """Put a module at a dotted path, making empty modules on the way.

        Args:
            target: the path, "foo.bar".
            m: the module.

        Returns:
            False, and nothing is changed, if something on the way is no
            module.

        Raises:
            KeyError: the path ends at an attribute that is no module.

        torch.fx: graph_module.py, GraphModule.add_submodule
        """
        return dotted_path.add_submodule(self, target, m)

    def delete_submodule(self, target: str) -> bool:
        """Remove the module at a dotted path.

        Args:
            target: the path, "foo.bar".

        Returns:
            Whether there was one.

        torch.fx: graph_module.py, GraphModule.delete_submodule
        """
        return dotted_path.delete_submodule(self, target)

    def delete_all_unused_submodules(self) -> None:
        """Remove the modules that no node needs.

        Needed are a module that a node calls or fetches, with all that is in
        it, and the modules on the way to what a node calls or fetches.

        Cost: O(nodes + modules).

        torch.fx: graph_module.py, GraphModule.delete_all_unused_submodules
        """
        delete_unused(self, paths_in(self._graph.nodes))

    # -- copies ------------------------------------------------------------

    def __deepcopy__(self, memo: dict[int, Value]) -> GraphModule:
        """A copy with a graph of its own, and all attributes copied.

        Its class is called GraphModule.

        torch.fx: graph_module.py, GraphModule.__deepcopy__
        """
        return copying.deep_copy(self, _blank(type(self)), memo)

    def _deepcopy_init(self) -> Callable[..., None]:
        """What initialises a deep copy, which a subclass may override.

        Called as `init(new, root, graph)`: the new instance, a module with
        copies of all attributes, a copy of the graph.

        torch.fx: graph_module.py, GraphModule._deepcopy_init
        """
        return copying.take_state

    def __copy__(self) -> GraphModule:
        """A module with the same graph, which belongs to the copy then.

        Attributes are shared; the empty modules that were made for paths are
        not. Its class is called GraphModule.

        torch.fx: graph_module.py, GraphModule.__copy__
        """
        return copying.shallow_copy(self, _blank(type(self)))

    def _replicate_for_data_parallel(self) -> GraphModule:
        """What `nn.DataParallel` makes one of for each device.

        torch.fx: graph_module.py, GraphModule._replicate_for_data_parallel
        """
        replica = copy.copy(self)
        vars(replica)["_is_replica"] = True
        self._graph.owning_module = self
        return replica

    def __reduce__(self) -> tuple[Value, ...]:
        """Pickle the graph itself: names, types and meta survive.

        A class that is local to a function cannot be pickled; its nearest
        base class that is not stands for it. In torch.package, "fx.**" must
        be extern.
        """
        cls = type(self)
        bases = cast("tuple[type[GraphModule], ...]", cls.__mro__)
        known = next(base for base in bases if importable(base) is not None)
        return _blank, (known, cls.__name__), self.__getstate__()

    def __getstate__(self) -> dict[str, Value]:
        """All attributes, without what `recompile` makes again."""
        return {**copying.state_of(self), "_graph": self._graph}

    def __setstate__(self, state: dict[str, Value]) -> None:
        """Take the attributes over and make the code."""
        attributes = dict(state)
        graph = attributes.pop("_graph")
        restore: Callable[[dict[str, Value]], None] = super().__setstate__
        restore(attributes)
        self.graph = graph

    # -- hooks -------------------------------------------------------------

    @contextlib.contextmanager
    def _set_replace_hook(self, f: ReplaceHook) -> Iterator[None]:
        """Have `f` called for each use that is replaced, during a block.

        Args:
            f: called as f(old=node, new="name of the new one", user=node),
                for renamed nodes too.

        torch.fx: graph_module.py, GraphModule._set_replace_hook
        """
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)

    def _register_replace_node_hook(self, f: ReplaceHook) -> None:
        """Have `f` called for each use that is replaced, and each rename."""
        self._replace_hooks.append(_hook("Replace", f))

    def _unregister_replace_node_hook(self, f: ReplaceHook) -> None:
        """Forget a replace hook; ValueError if there is no such."""
        self._replace_hooks.remove(f)

    def _register_create_node_hook(self, f: NodeHook) -> None:
        """Have `f` called with each node that is made in the graph."""
        self._create_node_hooks.append(_hook("create_node", f))

    def _unregister_create_node_hook(self, f: NodeHook) -> None:
        """Forget a create hook; ValueError if there is no such."""
        self._create_node_hooks.remove(f)

    def _register_erase_node_hook(self, f: NodeHook) -> None:
        """Have `f` called with each node that is erased from the graph."""
        self._erase_node_hooks.append(_hook("erase_node", f))

    def _unregister_erase_node_hook(self, f: NodeHook) -> None:
        """Forget an erase hook; ValueError if there is no such."""
        self._erase_node_hooks.remove(f)

    def _register_deepcopy_hook(
        self, f: Callable[[GraphModule], object]
    ) -> None:
        """Have `f` called with each deep copy that is made of the module."""
        self._deepcopy_hooks.append(_hook("deepcopy", f))

    def _unregister_deepcopy_hook(
        self, f: Callable[[GraphModule], object]
    ) -> None:
        """Forget a deepcopy hook; ValueError if there is no such."""
        self._deepcopy_hooks.remove(f)


class _WrappedCall:
    """Calls a module and, if its generated code fails, shows where.

    Attributes:
        compiled: the generated function; set by `recompile`.

    torch.fx: graph_module.py, _WrappedCall
    """

    compiled: CompiledForward

    def __init__(self, base: type[nn.Module]) -> None:
        """Make it for a class below `base`."""
        # Where `super().__call__` would be: in nn.Module or a user's class.
        # Looked up there at each call, for tracing patches it.
        self._above = next(c for c in base.__mro__ if "__call__" in vars(c))

    def __call__(
        self, obj: GraphModule, *args: Value, **kwargs: Value
    ) -> Value:
        """Call `obj`."""
        try:
            return self._above.__call__(obj, *args, **kwargs)
        except Exception as error:
            if message := where_it_failed(error, *self.compiled):
                print(message, file=sys.stderr)
            raise


def _caller(wrapped_call: _WrappedCall) -> Callable[..., Value]:
    """The `__call__` of the class that has this `_wrapped_call`.

    torch.fx: graph_module.py, GraphModule.recompile (call_wrapped)
    """
    call = wrapped_call.__call__  # bound once, which saves a lookup a call

    def call_wrapped(self: GraphModule, *args: Value, **kwargs: Value) -> Value:
        return call(self, *args, **kwargs)

    return call_wrapped


# -- classes ---------------------------------------------------------------


def _base_of(cls: type[GraphModule]) -> type[GraphModule]:
    """The class that somebody wrote, if `cls` is one of an instance.

    Classes of instances stand side by side below it: copies of copies do not
    pile them up.
    """
    mro = cast("tuple[type[GraphModule], ...]", cls.__mro__)
    return next(c for c in mro if not c.__qualname__.endswith(_IMPL))


def _class_below(base: type[GraphModule]) -> type[GraphModule]:
    """A new class for one instance of `base`."""
    wrapped_call = _WrappedCall(base)
    members = {
        "__module__": __name__,
        "__qualname__": f"GraphModule.__new__.<locals>.{_IMPL}",
        "__call__": _caller(wrapped_call),
        "_wrapped_call": wrapped_call,
    }
    return cast(
        "type[GraphModule]",
        types.new_class(
            _IMPL, (base,), exec_body=lambda ns: ns.update(members)
        ),
    )


def _blank(cls: type[GraphModule], name: str = "GraphModule") -> GraphModule:
    """An instance without attributes, whose class is named `name`."""
    new = cls.__new__(_base_of(cls))
    type(new).__name__ = name
    return new


# -- attributes ------------------------------------------------------------


OWN: Final = frozenset(
    (*dir(GraphModule), *GraphModule.__annotations__, *vars(nn.Module()))
).difference(SPECS)
"""Names that mean something in every GraphModule. A spec may be fetched: that
is what a trace of a module with nested inputs does."""


def _take_targets(module: GraphModule, root: object, graph: Graph) -> None:
    """Share with `module` what the nodes' targets name in `root`."""
    paths = paths_in(graph.nodes)
    for path, node in paths.items():
        _check_path(path, node)
    if isinstance(root, nn.Module):
        module.training = getattr(root, "training", True)
        for path in paths:
            dotted_path.copy_attribute(root, module, path)
    elif isinstance(root, dict):
        for path, node in paths.items():
            if path not in root:
                raise RuntimeError(
                    f"Node {node} referenced target {path} but that target "
                    "was not provided in ``root``! Add that key to the dict"
                )
        # "foo" before "foo.bar": putting "foo" there would hide "foo.bar".
        for path in sorted(paths, key=lambda path: path.count(".")):
            dotted_path.assign(module, path, root[path])
    else:
        raise RuntimeError(
            f"Unsupported type {root} passed for root! Pass the nn.Module "
            "that the graph was traced from, or a dict of paths to objects"
        )


def _check_path(path: str, node: Node) -> None:
    """Raise if a path would hide something that a GraphModule needs."""
    atom = path.partition(".")[0]
    if atom in OWN:
        raise RuntimeError(
            f"Node {node} needs '{path}', but '{atom}' is an attribute of "
            "every GraphModule: rename the one that was traced, or give the "
            f"node another path, as in node.target = 'my_{path}', and pass "
            f"{{'my_{path}': …}} as root"
        )


HookT = TypeVar("HookT")


def _hook(kind: str, hook: HookT) -> HookT:
    """The hook itself, if it can be called."""
    if not callable(hook):
        raise AssertionError(f"{kind} hook must be a callable.")
    return hook
