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
from collections.abc import Callable, Iterator
from functools import partial
from typing import ClassVar, Final, Self, TypeAlias, TypeVar

from torch import nn

from .codegen import attributes
from .codegen.attributes import SPECS, paths_in
from .codegen.source import (
    CompiledForward,
    compile_forward,
    kept,
    refuse_call,
    where_it_failed,
)
from .graph import Graph
from .node import Node
from .torch_private import compiling
from .torch_private.pytree import pytree
from .use_def.protocols import GraphTracer, PythonCode, ReplaceHook
from .use_def.text import importable
from .use_def.values import AnyValue, Open

__all__ = ["GraphModule", "reduce_graph_module"]

NodeHook = Callable[[Node], object]
"""Called with a node that was made, or is about to be erased."""

CopyHook: TypeAlias = "Callable[[GraphModule], object]"
"""Called with a deep copy that was made."""


_IMPL: Final = "GraphModuleImpl"


class GraphModule(nn.Module, metaclass=Open):
    """An `nn.Module` that does what a graph says.

        gm = GraphModule(root, graph)
        gm.graph.erase_node(node)
        gm.recompile()

    Attributes:
        meta: notes of passes, by any key; copied with the module.

    torch.fx: graph_module.py, GraphModule
    """

    meta: dict[str, AnyValue]
    _wrapped_call: ClassVar[_WrappedCall]
    _graph: Graph
    _code: str
    _lineno_map: dict[int, int | None] | None
    _prologue_start: int
    _tracer_cls: type[GraphTracer] | None
    _tracer_extras: dict[str, AnyValue]
    _in_spec: pytree.TreeSpec
    _out_spec: pytree.TreeSpec | None
    _replace_hooks: list[ReplaceHook]
    _create_node_hooks: list[NodeHook]
    _erase_node_hooks: list[NodeHook]
    _deepcopy_hooks: list[CopyHook]
    # `import fx` puts these here: see fx/extra/registering.py.
    to_torch: ClassVar[Callable[[GraphModule], AnyValue]]
    guards: ClassVar[AnyValue]

    # TorchScript compiles properties and evaluates annotations; it must not
    # do that with ours.
    __jit_unused_properties__: ClassVar[list[str]] = ["graph", "code", "guards"]
    __jit_ignored_attributes__: ClassVar[list[str]] = list(__annotations__)

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """Make an instance, and a class for it alone.

        torch.fx: graph_module.py, GraphModule.__new__
        """
        base: AnyValue = _base_of(cls)
        new: Self = super().__new__(class_below(base))
        # Here, because a class below may not call GraphModule.__init__.
        vars(new).update(attributes.at_first())
        if base is not cls and (args or kwargs):
            # As in type(gm)(root, graph): the new class is not below `cls`,
            # and Python calls `__init__` for instances of `cls` only.
            base.__init__(new, *args, **kwargs)
        return new

    def __init__(
        self,
        root: nn.Module | dict[str, AnyValue],
        graph: Graph,
        class_name: str = "GraphModule",
    ) -> None:
        """Make a module that does what `graph` says.

        Args:
            root: has the attributes that the nodes' targets name. They are
                shared, not copied, and get the same paths; plain tensors
                become buffers. The keys of a dict are the paths.
            graph: the graph, whose `owning_module` is then this module.
            class_name: the name of the module's class.

        Raises:
            RuntimeError: `root` is neither; a dict lacks a target; a target
                would hide an attribute of GraphModule; the graph has nodes
                but no output, or Python refuses its code.
            AttributeError: a module lacks a target.

        Cost: O(nodes + size of their arguments).

        torch.fx: graph_module.py, GraphModule.__init__
        """
        super().__init__()
        type(self).__name__ = class_name
        vars(self).update(attributes.at_first())
        _take_targets(self, root, graph)
        self.graph = graph
        self._tracer_cls = importable(graph._tracer_cls)
        self._tracer_extras = graph._tracer_extras or {}

    # -- the graph and its code --------------------------------------------

    @property
    def graph(self) -> Graph:
        """The graph of this module; you may assign another one.

        After an edit in place, call `recompile`; assigning does it for you.

        Raises:
            AssertionError: the assigned object is not a Graph.
            RuntimeError: as `recompile`; the module keeps its graph.

        torch.fx: graph_module.py, GraphModule.graph
        """
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(
                f"Expected a Graph instance, but got {type(g)}; "
                "fx.from_torch(g) makes one of a graph of torch.fx"
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
        """Make `code` and `forward` from the graph as it is now.

        Call it after an edit of the graph. Child modules that are
        GraphModules are recompiled too. Other threads may call the module
        meanwhile: each call runs either the old code or the new.

        Returns:
            The source, the globals that it names, and where its lines come
            from.

        Raises:
            RuntimeError: the graph has nodes but no output, or Python
                refuses its code. The module keeps its old code.

        Cost: O(nodes + size of their arguments).

        torch.fx: graph_module.py, GraphModule.recompile
        """
        for _, child in self._child_graph_modules():
            child.recompile()
        compiled = self._compile()
        self._code = compiled.code.src
        self._lineno_map = compiled.code._lineno_map
        self._prologue_start = compiled.code._prologue_start
        vars(self).update(self._graph._codegen.module_attributes())
        self._wrapped_call.compiled = compiled
        # Not on a class that another library has put below (parametrizations).
        mro: AnyValue = type(self).__mro__
        own = next(c for c in mro if "_wrapped_call" in vars(c))
        own.forward = compiled.forward
        return compiled.code

    def _compile(self) -> CompiledForward:
        """The graph as a function; the module is not changed."""
        nodes = tuple(self._graph.nodes)
        if nodes and not any(node.op == "output" for node in reversed(nodes)):
            raise RuntimeError(
                "the Graph has no output: add graph.output(value) before a "
                "GraphModule is made from it or recompiled"
            )
        code = self._graph.python_code("self")
        known = vars(self._wrapped_call).get("compiled")
        compiled = kept(known, code, nodes) or compile_forward(
            code, nodes, self._graph._co_fields
        )
        return compiled if nodes else compiled._replace(forward=refuse_call)

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

        It shows the graph as it is now, recompiled or not.

        Args:
            print_output: print it, too.
            include_stride: show the strides of tensors beside their shapes.
            include_device: show their devices.
            colored: ANSI colours.
            fast_sympy_print: has no effect; torch.fx has two ways to print
                symbolic sizes.
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
        code = write(self._graph).src.lstrip("\n")
        head = f"class {name}(torch.nn.Module):\n{code}"
        return _indented(head) + _indented("\n".join(["", *children]))

    def to_folder(
        self, folder: str | os.PathLike[str], module_name: str = "FxModule"
    ) -> None:
        """Nothing; `import fx` puts that of fx.extra.saving here."""

    def __str__(self) -> str:
        """The modules, then the code."""
        hint = "please use `graph_module.print_readable()`"
        tree = super().__str__()
        return f"{tree}\n{self._code}\n# To see more debug info, {hint}"

    # -- submodules --------------------------------------------------------

    def add_submodule(self, target: str, m: nn.Module) -> bool:
        """Put a module at a dotted path, making empty modules on the way.

        Args:
            target: the path, "foo.bar".
            m: the module.

        Returns:
            Whether it was added: not if an attribute on the way is not a
            module, and then nothing is changed.

        Raises:
            KeyError: the path ends at an attribute that is not a module.

        torch.fx: graph_module.py, GraphModule.add_submodule
        """
        return attributes.add_submodule(self, target, m)

    def delete_submodule(self, target: str) -> bool:
        """Remove the module at a dotted path.

        Args:
            target: the path, "foo.bar".

        Returns:
            Whether there was one.

        torch.fx: graph_module.py, GraphModule.delete_submodule
        """
        return attributes.delete_submodule(self, target)

    def delete_all_unused_submodules(self) -> None:
        """Remove the modules that no node uses.

        A module that a node calls or fetches is used, with everything inside
        of it, and so are the modules on the path to it.

        Cost: O(nodes + modules).

        torch.fx: graph_module.py, GraphModule.delete_all_unused_submodules
        """
        attributes.delete_unused(self, paths_in(self._graph.nodes))

    # -- copies ------------------------------------------------------------

    def __deepcopy__(self, memo: dict[int, AnyValue]) -> GraphModule:
        """A copy of the graph and of all attributes.

        Its class is named GraphModule.

        torch.fx: graph_module.py, GraphModule.__deepcopy__
        """
        return attributes.deep_copy(self, _blank(type(self)), memo)

    def _deepcopy_init(self) -> Callable[..., None]:
        """The function that initialises a deep copy; may be overridden.

        Called as `init(new, root, graph)`: the new instance, a module with
        copies of all attributes, a copy of the graph.

        torch.fx: graph_module.py, GraphModule._deepcopy_init
        """
        return attributes.take_state

    def __copy__(self) -> GraphModule:
        """A module with the same graph, whose owner is the copy then.

        Attributes are shared; the empty modules that were made for paths are
        not. Its class is named GraphModule.

        torch.fx: graph_module.py, GraphModule.__copy__
        """
        return attributes.shallow_copy(self, _blank(type(self)))

    def _replicate_for_data_parallel(self) -> GraphModule:
        """A copy for one device of `nn.DataParallel`.

        torch.fx: graph_module.py, GraphModule._replicate_for_data_parallel
        """
        replica = copy.copy(self)
        vars(replica)["_is_replica"] = True
        self._graph.owning_module = self
        return replica

    # -- hooks -------------------------------------------------------------

    @contextlib.contextmanager
    def _set_replace_hook(self, f: ReplaceHook) -> Iterator[None]:
        """Call `f` for each use that is replaced, inside of the block.

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
        """Call `f` for each use that is replaced, and each rename."""
        self._replace_hooks.append(_hook("Replace", f))

    def _unregister_replace_node_hook(self, f: ReplaceHook) -> None:
        """Remove a replace hook; ValueError if it is not registered."""
        self._replace_hooks.remove(f)

    def _register_create_node_hook(self, f: NodeHook) -> None:
        """Call `f` with each node that is made in the graph."""
        self._create_node_hooks.append(_hook("create_node", f))

    def _unregister_create_node_hook(self, f: NodeHook) -> None:
        """Remove a create hook; ValueError if it is not registered."""
        self._create_node_hooks.remove(f)

    def _register_erase_node_hook(self, f: NodeHook) -> None:
        """Call `f` with each node that is erased from the graph."""
        self._erase_node_hooks.append(_hook("erase_node", f))

    def _unregister_erase_node_hook(self, f: NodeHook) -> None:
        """Remove an erase hook; ValueError if it is not registered."""
        self._erase_node_hooks.remove(f)

    def _register_deepcopy_hook(self, f: CopyHook) -> None:
        """Call `f` with each deep copy that is made of the module."""
        self._deepcopy_hooks.append(_hook("deepcopy", f))

    def _unregister_deepcopy_hook(self, f: CopyHook) -> None:
        """Remove a deepcopy hook; ValueError if it is not registered."""
        self._deepcopy_hooks.remove(f)


def _indented(text: str) -> str:
    """All lines but the first, moved to the right; blank lines are empty."""
    first, *rest = text.split("\n")
    moved = (f"    {line}" if line.strip() else "" for line in rest)
    return "\n".join((first, *moved))


class _WrappedCall:
    """Calls a module and, if its generated code fails, shows where.

    Attributes:
        compiled: the generated function; set by `recompile`.
        explained: what to print of an error.

    torch.fx: graph_module.py, _WrappedCall
    """

    compiled: CompiledForward
    explained = staticmethod(where_it_failed)

    def __init__(self, base: type[nn.Module]) -> None:
        """Make it for a class below `base`."""
        # The class that `super()` would find: nn.Module or a user's. Its
        # `__call__` is looked up at each call, because tracing patches it.
        self._above = next(c for c in base.__mro__ if "__call__" in vars(c))

    def __call__(
        self, obj: AnyValue, *args: AnyValue, **kwargs: AnyValue
    ) -> AnyValue:
        """Call `obj`."""
        try:
            return self._above.__call__(obj, *args, **kwargs)
        except Exception as error:
            compiled = vars(self).get("compiled")  # none without a graph
            if compiled and (message := self.explained(error, *compiled)):
                print(message, file=sys.stderr)
            # Not for GuardError, by which a program chooses: this takes time.
            edited = compiled and type(error).__module__ == "builtins"
            if edited and obj.code != obj.graph.python_code("self").src:
                error.add_note(
                    "The graph was edited since this code was made: call "
                    "recompile() on the module after the last edit"
                )
            raise


def _base_of(cls: type[GraphModule]) -> AnyValue:
    """The class that a user wrote: `cls`, or the one that it is below.

    All classes of instances are directly below that one, so that a copy of a
    copy is not at the end of an ever longer chain.
    """
    return next(c for c in cls.__mro__ if "_wrapped_call" not in vars(c))


def class_below(base: AnyValue) -> AnyValue:
    """A new class for one instance of `base`."""
    call = _WrappedCall(base)
    bound = call.__call__  # once, which saves each call a look-up

    def call_wrapped(
        self: GraphModule, *args: AnyValue, **kwargs: AnyValue
    ) -> AnyValue:
        return bound(self, *args, **kwargs)

    for function in (call_wrapped, _WrappedCall.__call__):
        compiling.skip(function.__code__)
    members = {
        "__module__": __name__,
        "__qualname__": f"GraphModule.__new__.<locals>.{_IMPL}",
        "__call__": call_wrapped,
        "_wrapped_call": call,
    }
    return type(base)(_IMPL, (base,), members)


reduce_graph_module: Callable[[dict[str, AnyValue], str], GraphModule]
"""Begins to unpickle one; `import fx` puts it here, from fx.extra.saving."""


def _blank(cls: type[GraphModule]) -> GraphModule:
    """An instance without a graph, for a copy; its class is GraphModule."""
    new: GraphModule = cls.__new__(_base_of(cls))
    type(new).__name__ = "GraphModule"
    return new


# -- attributes ------------------------------------------------------------


OWN: Final = frozenset(
    (*dir(GraphModule), *GraphModule.__annotations__, *vars(nn.Module()))
).difference(SPECS)
"""The attributes of every GraphModule, which a target must not hide. Specs are
allowed: the code of a module with nested inputs fetches them."""


def _take_targets(module: GraphModule, root: object, graph: Graph) -> None:
    """Share with `module` what the nodes' targets name in `root`."""
    paths = paths_in(graph.nodes)
    for path, node in paths.items():
        name = path.partition(".")[0]
        if name in OWN:
            raise RuntimeError(
                f"Node {node} needs '{path}', but '{name}' is an attribute of "
                "every GraphModule: rename the one that was traced, or give "
                f"the node another path, as in node.target = 'my_{path}', and "
                f"pass {{'my_{path}': …}} as root"
            )
    if isinstance(root, nn.Module):
        paths |= attributes.fetched_from_self(graph.nodes, root, OWN)
        module.training = getattr(root, "training", True)
        attributes.copy_attributes(root, module, paths)
    elif isinstance(root, dict):
        for path, node in paths.items():
            if path not in root:
                raise RuntimeError(
                    f"Node {node} referenced target {path} but that target "
                    "was not provided in ``root``! Add that key to the dict"
                )
        # "foo" before "foo.bar": putting "foo" there would hide "foo.bar".
        for path in sorted(paths, key=lambda path: path.count(".")):
            attributes.assign(module, path, root[path])
    else:
        raise RuntimeError(
            f"Unsupported type {root} passed for root! Pass the nn.Module "
            "that the graph was traced from, or a dict of paths to objects"
        )


HookT = TypeVar("HookT")


def _hook(kind: str, hook: HookT) -> HookT:
    """The hook itself, if it can be called."""
    if not callable(hook):
        raise AssertionError(f"{kind} hook must be a callable.")
    return hook
