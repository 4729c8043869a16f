"""Stage 05, codegen: GraphModule, a graph that can be called.

A GraphModule is an `nn.Module` whose `forward` was written by its graph.  It
holds the modules, parameters and buffers that the nodes' targets name, at the
same paths as the module it was traced from.

    edit gm.graph  →  gm.recompile()  →  gm.code and gm(x) are new

Each instance has a class of its own, for that is where `forward` is found.
`recompile` makes the new function first and puts it there last, so that other
threads may call the module meanwhile, and a graph that Python refuses leaves
it as it was.
"""

from __future__ import annotations

import contextlib
import copy
import os
import sys
import traceback
import types
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import ClassVar, Final, Self, TypeVar, cast

from torch import nn
from torch.utils import _pytree as pytree

from .codegen.codegen import _PyTreeCodeGen
from .codegen.source import Program, compile_forward, last_frame
from .graph import Graph
from .node import Node
from .saving.serialize import write_folder
from .text import dotted_path
from .usedef.protocols import GraphTracer, PythonCode, ReplaceHook
from .usedef.values import Value

__all__ = ["GraphModule"]

NodeHook = Callable[[Node], object]
"""Called with a node that was made, or is about to be erased."""

_IMPL: Final = "GraphModuleImpl"

_GENERATED: Final = frozenset(
    ("_graph", "_code", "_lineno_map", "_prologue_start")
)
"""The attributes that `recompile` makes, or that it makes them from."""

_SPECS: Final = frozenset(("_in_spec", "_out_spec"))
"""What `recompile` makes too, if inputs or outputs are nested."""

_PRESERVED: Final = "_user_preserved_attributes"
"""Key of `meta`: a dict of attributes that a deep copy gets once more."""


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
        self._tracer_cls = _lasting(graph._tracer_cls)
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
        for child in self.children():
            if isinstance(child, GraphModule):
                child.recompile()
        return self._take(_compile(self._graph))

    def _recompile_if_edited(self) -> None:
        """`recompile`, but what would be made once more stays as it is.

        For those who have changed nothing: a user may have, before.

        Cost: O(nodes + size of their arguments); Python compiles only what
        is new.
        """
        if getattr(self.recompile, "__func__", None) is not _RECOMPILE:
            self.recompile()  # a user's own, which may do more
            return
        for child in self.children():
            if isinstance(child, GraphModule):
                child._recompile_if_edited()  # noqa: SLF001
        self._take(_compile(self._graph, self._wrapped_call.program))

    def _take(self, program: Program) -> PythonCode:
        """Have a program as `code` and `forward`."""
        self._code = program.code.src
        self._lineno_map = program.code._lineno_map
        self._prologue_start = program.code._prologue_start
        if isinstance(codegen := self._graph._codegen, _PyTreeCodeGen):
            self._in_spec = codegen.pytree_info.in_spec
            self._out_spec = codegen.pytree_info.out_spec
        self._wrapped_call.program = program
        type(self).forward = program.forward
        return program.code

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

        def write(graph: Graph) -> str:
            code = graph.python_code(
                "self",
                verbose=True,
                include_stride=include_stride,
                include_device=include_device,
                colored=colored,
                expanded_def=expanded_def,
                additional_meta=additional_meta,
            )
            return code.src

        text = _readable(self, type(self).__name__, write)
        if print_output:
            print(text)
        return text

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
        program = self._wrapped_call.program
        needed = {path.partition(".")[0] for path in _fetched(program.nodes)}
        needed |= _SPECS
        attributes = {k: v for k, v in vars(self).items() if k in needed}
        write_folder(self, program.code, attributes, Path(folder), module_name)

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
        needed = _needed(self)
        seen: set[int] = set()
        rest: list[nn.Module] = [self]
        while rest:
            module = rest.pop()
            if id(module) in seen:
                continue
            seen.add(id(module))
            for name, child in list(module._modules.items()):
                if (id(module), name) not in needed:
                    delattr(module, name)
                elif child is not None:
                    rest.append(child)

    # -- copies ------------------------------------------------------------

    def __deepcopy__(self, memo: dict[int, Value]) -> GraphModule:
        """A copy with a graph of its own, and all attributes copied.

        Its class is called GraphModule.

        torch.fx: graph_module.py, GraphModule.__deepcopy__
        """
        new = _make(type(self))
        memo[id(self)] = new
        graph = copy.deepcopy(self._graph, memo)
        state = copy.deepcopy(_state(self), memo)
        self._deepcopy_init()(new, _Attributes(state), graph)
        # What an overridden _deepcopy_init did not take.
        vars(new).update(state)
        for name, value in new.meta.get(_PRESERVED, {}).items():
            setattr(new, name, value)
        for hook in new._deepcopy_hooks:
            hook(new)
        return new

    def _deepcopy_init(self) -> Callable[..., None]:
        """What initialises a deep copy, which a subclass may override.

        Called as `init(new, root, graph)`: the new instance, a module with
        copies of all attributes, a copy of the graph.

        torch.fx: graph_module.py, GraphModule._deepcopy_init
        """
        return _take_state

    def __copy__(self) -> GraphModule:
        """A module with the same graph, which belongs to the copy then.

        Attributes are shared; the empty modules that were made for paths are
        not. Its class is called GraphModule.

        torch.fx: graph_module.py, GraphModule.__copy__
        """
        new = _make(type(self))
        nn.Module.__init__(new)
        _take_targets(new, self, self._graph)
        for name, value in _state(self).items():
            if name in ("_modules", "_parameters", "_buffers"):
                for key in value.keys() - vars(new)[name].keys():
                    vars(new)[name][key] = value[key]
            elif name in vars(new) or name.endswith("_hooks"):
                vars(new)[name] = copy.copy(value)
            else:
                vars(new)[name] = value
        new.graph = self._graph
        return new

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
        made = _make, (_importable(cls), cls.__name__)
        return (*made, self.__getstate__())

    def __getstate__(self) -> dict[str, Value]:
        """All attributes, without what `recompile` makes again."""
        return {**_state(self), "_graph": self._graph}

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
        self._replace_hooks.remove(_hook("Replace", f))

    def _register_create_node_hook(self, f: NodeHook) -> None:
        """Have `f` called with each node that is made in the graph."""
        self._create_node_hooks.append(_hook("create_node", f))

    def _unregister_create_node_hook(self, f: NodeHook) -> None:
        """Forget a create hook; ValueError if there is no such."""
        self._create_node_hooks.remove(_hook("create_node", f))

    def _register_erase_node_hook(self, f: NodeHook) -> None:
        """Have `f` called with each node that is erased from the graph."""
        self._erase_node_hooks.append(_hook("erase_node", f))

    def _unregister_erase_node_hook(self, f: NodeHook) -> None:
        """Forget an erase hook; ValueError if there is no such."""
        self._erase_node_hooks.remove(_hook("erase_node", f))

    def _register_deepcopy_hook(
        self, f: Callable[[GraphModule], object]
    ) -> None:
        """Have `f` called with each deep copy that is made of the module."""
        self._deepcopy_hooks.append(_hook("deepcopy", f))

    def _unregister_deepcopy_hook(
        self, f: Callable[[GraphModule], object]
    ) -> None:
        """Forget a deepcopy hook; ValueError if there is no such."""
        self._deepcopy_hooks.remove(_hook("deepcopy", f))


_RECOMPILE: Final = GraphModule.recompile
"""The method that no subclass, and nobody who looks on, has replaced."""


class _WrappedCall:
    """Calls a module and, if its generated code fails, shows where.

    Attributes:
        program: the generated code; set by `recompile`.

    torch.fx: graph_module.py, _WrappedCall
    """

    program: Program

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
            if message := _where_it_failed(error, self.program):
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


def _where_it_failed(error: Exception, program: Program) -> str:
    """The message for an error that arose in a line of `program` itself.

    "" if it came from deeper: then the traceback ends at the cause, and an
    inner GraphModule has had its say.
    """
    *_, (frame, number) = traceback.walk_tb(error.__traceback__)
    if frame.f_code is not program.forward.__code__:
        return ""
    _, line, node = program.line(number)
    parts = [
        "".join(traceback.format_exception(error)),
        f"Call using an FX-traced Module, line {number} of the traced "
        "Module's generated forward function:",
        f"{program.line(number - 1).text}\n{line}\n",
        f"{'~' * len(line.strip())}~~~ <--- HERE",
        f"{program.line(number + 1).text}\n",
        f"{program.line(number + 2).text}\n",
    ]
    if node is not None:
        origin = last_frame(node.stack_trace or "")
        parts.append(f"That line is Node {node}" + (origin and ", recorded at"))
        parts.extend(filter(None, [origin]))
    return "\n".join(parts)


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


def _make(cls: type[GraphModule], name: str = "GraphModule") -> GraphModule:
    """An instance without attributes, its class being called `name`."""
    new = cls.__new__(_base_of(cls))
    type(new).__name__ = name
    return new


def _importable(cls: type[GraphModule]) -> type[GraphModule]:
    """The nearest class among `cls` and its bases that pickle can name."""
    mro = cast("tuple[type[GraphModule], ...]", cls.__mro__)
    return next(c for c in mro if "<locals>" not in c.__qualname__)


def _lasting(cls: type[GraphTracer] | None) -> type[GraphTracer] | None:
    """A tracer's class; None if it is local to a function.

    Such a class cannot be pickled, and would keep the module from it.
    """
    return None if cls is None or "<locals>" in cls.__qualname__ else cls


# -- attributes ------------------------------------------------------------


class _Attributes(nn.Module):
    """A module that has given attributes and does nothing.

    torch.fx: graph_module.py, _CodeOnlyModule
    """

    def __init__(self, attributes: dict[str, Value]) -> None:
        """Have just these attributes."""
        super().__init__()
        vars(self).update(attributes)


def _state(module: GraphModule) -> dict[str, Value]:
    """The attributes, without what `recompile` makes again."""
    made = _GENERATED
    if isinstance(module.graph._codegen, _PyTreeCodeGen):
        made |= _SPECS
    held = vars(module)
    return {name: held[name] for name in held if name not in made}


def _take_state(new: GraphModule, root: nn.Module, graph: Graph) -> None:
    """Give `new` all attributes of `root`, and a graph."""
    vars(new).update(vars(root))
    new.graph = graph


_OWN: Final = frozenset(
    (*dir(GraphModule), *GraphModule.__annotations__, *vars(nn.Module()))
).difference(_SPECS)
"""Names that mean something in every GraphModule. A spec may be fetched: that
is what a trace of a module with nested inputs does."""


def _fetched(nodes: Iterable[Node]) -> dict[str, Node]:
    """The dotted paths that nodes fetch or call, each with its first node."""
    paths: dict[str, Node] = {}
    for node in nodes:
        if node.op in ("get_attr", "call_module"):
            paths.setdefault(str(node.target), node)
    return paths


def _take_targets(module: GraphModule, root: object, graph: Graph) -> None:
    """Share with `module` what the nodes' targets name in `root`."""
    paths = _fetched(graph.nodes)
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
    if atom in _OWN:
        raise RuntimeError(
            f"Node {node} needs '{path}', but '{atom}' is an attribute of "
            "every GraphModule: rename the one that was traced, or give the "
            f"node another path, as in node.target = 'my_{path}', and pass "
            f"{{'my_{path}': …}} as root"
        )


def _needed(root: GraphModule) -> set[tuple[int, str]]:
    """Which child of which module the nodes need: (id of module, name)."""
    needed: set[tuple[int, str]] = set()
    whole: set[int] = set()
    for path in _fetched(root.graph.nodes):
        holder: object = root
        for _, atom, value in dotted_path.walk(root, path):
            needed.add((id(holder), atom))
            holder = value
        rest = [holder]
        while rest:
            module = rest.pop()
            if isinstance(module, nn.Module) and id(module) not in whole:
                whole.add(id(module))
                needed.update((id(module), name) for name in module._modules)
                rest.extend(module._modules.values())
    return needed


# -- code ------------------------------------------------------------------


def _compile(graph: Graph, known: Program | None = None) -> Program:
    """The compiled code of a graph; `known` if it is that already."""
    nodes = tuple(graph.nodes)
    if not any(node.op == "output" for node in reversed(nodes)):
        raise RuntimeError(
            "the Graph has no output: add graph.output(value) before a "
            "GraphModule is made from it or recompiled"
        )
    code = graph.python_code("self")
    if known is not None and known.is_of(code, nodes):
        return known
    return compile_forward(code, nodes, graph._co_fields)


def _readable(
    module: GraphModule, name: str, write: Callable[[Graph], str]
) -> str:
    """A module as a class in Python, with its child GraphModules inside."""
    code = write(module.graph).lstrip("\n")
    text = _indent(f"class {name}(torch.nn.Module):\n{code}")
    children = [
        _readable(child, child_name, write)
        for child_name, child in module.named_children()
        if isinstance(child, GraphModule)
    ]
    return text + _indent("\n".join(["", *children]))


def _indent(text: str) -> str:
    """All lines but the first, moved to the right; blank lines are empty."""
    first, *rest = text.split("\n")
    moved = (f"    {line}" if line.strip() else "" for line in rest)
    return "\n".join((first, *moved))


HookT = TypeVar("HookT")


def _hook(kind: str, hook: HookT) -> HookT:
    """The hook itself, if it can be called."""
    if not callable(hook):
        raise AssertionError(f"{kind} hook must be a callable.")
    return hook
