"""Extra: the modules of a graph module as data, and again.

Each module is a record: its class, parameters, buffers and other attributes.
It is made again without its constructor, as `copy` and `pickle` do.  A module
of which something is not data, such as a hook, or is of a user's class, is
recorded as one that the user's root has at the same path.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Final

from torch import nn

from ...graph import Graph
from ...graph_module import OWN, GraphModule
from ...use_def.values import AnyValue
from .values import Codec

GRAPH_MODULE: Final = "fx.GraphModule"
"""The name of that class in files."""

_NOTED: Final = {"__overloads__"}  # by torch.jit.script, on what it looks at
_COMMON: Final = _NOTED | vars(nn.Module()).keys()
_OF_GRAPH_MODULES: Final = _COMMON | (GraphModule.__annotations__.keys() & OWN)
_TENSORS: Final = {"parameters": "_parameters", "buffers": "_buffers"}


# -- to data -----------------------------------------------------------------


def module_records(
    gm: GraphModule, codec: Codec
) -> Iterator[tuple[str, nn.Module | None, dict[str, AnyValue]]]:
    """Each module with its path and record, parents first.

    A module that has been seen comes again as None.  `named_modules` would
    leave out the further places of a shared module, so this walks `_modules`.

    Raises:
        ValueError: `gm` itself, or a tensor, cannot be saved.

    Cost: O(modules + tensors).
    """
    paths: dict[nn.Module, str] = {}
    stack: list[tuple[str, nn.Module, bool]] = [("", gm, False)]
    while stack:
        path, module, of_root = stack.pop()
        if module in paths:
            yield path, None, {"same as": paths[module]}
            continue
        paths[module] = path
        record = _state(module, path, codec)
        try:
            record |= {"root": "in it"} if of_root else _recipe(module, codec)
        except ValueError as error:
            if not path:
                raise ValueError(
                    f"the module cannot be saved: {error}"
                ) from error
            record["root"] = str(error)
        if "root" in record:
            record["is a"] = type(module).__name__
        yield path, module, record
        prefix = f"{path}." if path else ""
        for name, child in reversed(module._modules.items()):
            if child is not None:
                stack.append((f"{prefix}{name}", child, "root" in record))


def _state(module: nn.Module, path: str, codec: Codec) -> dict[str, AnyValue]:
    """Which tensors a module has, and whether it is in training."""
    record: dict[str, AnyValue] = {}
    for kind, attribute in _TENSORS.items():
        tensors = getattr(module, attribute)
        if hidden := tensors.keys() & vars(module).keys():
            raise ValueError(
                f"the module {path!r} cannot be saved: of its {kind}, other "
                f"attributes hide {sorted(hidden)}"
            )
        keys = {
            name: tensor
            if tensor is None
            else codec.weights.key(tensor, f"{path}.{name}".lstrip("."))
            for name, tensor in tensors.items()
        }
        record |= {kind: keys} if keys else {}
    if names := module._non_persistent_buffers_set:
        record["not persistent"] = sorted(names)
    return record if module.training else record | {"training": False}


def _recipe(module: nn.Module, codec: Codec) -> dict[str, AnyValue]:
    """How to make a module: its class and attributes.

    `__getstate__` has what `pickle` would write.  If one attribute has no form
    as data, the caller of `load` has to give the module.

    Raises:
        ValueError: something of it is not data.
    """
    for name, hooks in vars(module).items():
        if name.endswith("_hooks") and hooks:
            raise ValueError(f"it has {name.strip('_')}, which are code")
    if "forward" in vars(module):
        raise ValueError("it has a forward of its own, which is code")
    if None in module._modules.values():
        raise ValueError("one of its modules is None")
    kind = type(module)
    if isinstance(module, GraphModule):
        if (written := kind.__mro__[1]) is not GraphModule:
            raise ValueError(
                f"it is a {written.__name__}, which is code: save a plain one, "
                "GraphModule(module, module.graph)"
            )
        record = {"class": GRAPH_MODULE, "name": kind.__name__}
    else:
        record = {"class": codec.allowed.name_of(kind)}
    untyped: AnyValue = module
    state = untyped.__getstate__()
    common = _every_modules(module)
    attributes = {k: state[k] for k in state if k not in common}
    for name in attributes:
        _check_new(module, name)
    data = {name: codec.data(attributes[name]) for name in attributes}
    return record | ({"attributes": data} if data else {})


def _every_modules(module: nn.Module) -> Set[str]:
    """The attributes that each module has, or each graph module."""
    return _OF_GRAPH_MODULES if isinstance(module, GraphModule) else _COMMON


def _check_new(module: nn.Module, name: str) -> None:
    """Raise if every module has an attribute of this name, or its class has.

    `hasattr(module, name)` would run a property.
    """
    dunder = name.startswith("__") and name.endswith("__")
    if dunder or hasattr(type(module), name) or name in _every_modules(module):
        raise ValueError(f"{name!r} cannot be an attribute of the module")


def _module_at(root: nn.Module | None, path: list[str]) -> nn.Module | None:
    """The module below `root` at a path, if there is one."""
    for name in path:
        root = None if root is None else root._modules.get(name)
    return root


def check_path(root: nn.Module, path: str) -> None:
    """Raise ValueError unless a graph's path leads to something saved.

    That is a module, a tensor or a plain attribute: nothing of a class, such
    as a method or a property.  A path of a file must not run a property, so it
    is followed through dicts.
    """
    *prefix, name = path.split(".")
    module = _module_at(root, prefix)
    if module is not None:
        attributes = vars(module)
        tables = [attributes[key] for key in ("_modules", *_TENSORS.values())]
        if name not in _every_modules(module):
            tables.append(attributes)
        if any(table.get(name) is not None for table in tables):
            return
    raise ValueError(f"the path {path!r} leads to nothing that is saved")


# -- from data ---------------------------------------------------------------


def _make(record: dict[str, AnyValue], codec: Codec) -> nn.Module:
    """A new module, as a record says, without its modules and tensors.

    As no constructor runs, a file cannot choose its arguments, and no random
    numbers are drawn.  `__setstate__` brings back later what is not data, such
    as the weak references of an LSTM.
    """
    name = record.pop("class")
    if name == GRAPH_MODULE:
        graph = Graph()
        graph.output(None)
        return GraphModule(nn.Module(), graph, str(record.pop("name")))
    kind = codec.allowed.named.get(name)
    if not isinstance(kind, type) or not issubclass(kind, nn.Module):
        raise ValueError(f"{name!r} is not a class of modules that is allowed")
    module = kind.__new__(kind)
    nn.Module.__init__(module)
    return module


class Tree:
    """Modules that are made from records, parents first.

    "same as" in a record names a module that is complete, so that no module
    can be put inside of itself.

    Attributes:
        modules: path → module.
        codec: reads the attributes, and knows the tensors.
    """

    def __init__(self, root: nn.Module | None, codec: Codec) -> None:
        """Make an empty tree.

        Args:
            root: has the modules that the records do not tell how to make.
            codec: reads the attributes, and knows the tensors.
        """
        self.modules: dict[str, nn.Module] = {}
        self._root = root
        self.codec = codec
        self._last = ""
        self._was: list[tuple[nn.Module, str, AnyValue]] = []

    def add(self, path: str, record: dict[str, AnyValue]) -> nn.Module:
        """Make the module of a record, and put it into its parent.

        Args:
            path: where the module is.
            record: loses the keys that are read.

        Raises:
            Exception: the record is wrong. The tree is then of no use.
        """
        parent, _, name = path.rpartition(".")
        if path in self.modules or not _is_below(self._last, parent):
            raise ValueError("the module is not in its place, after its parent")
        # Nothing may be put into a module once it is elsewhere, too: else
        # two modules could be inside each other.
        self._last = parent if "same as" in record else path
        if "same as" in record:
            if _is_below(path, record["same as"]):
                raise ValueError("the module is inside of itself")
            module = self.modules[record.pop("same as")]
        else:
            module = self._made(path, record)
        self.modules[path] = module
        if path:
            holder = self.modules[parent]
            if name not in holder._modules:
                _check_new(holder, name)
            holder.add_module(name, module)
        return module

    def _made(self, path: str, record: dict[str, AnyValue]) -> nn.Module:
        """A module of a record, with its state."""
        new = "root" not in record
        module = (
            _make(record, self.codec)
            if new
            else self._of_root(path, record.pop("root"), record.pop("is a"))
        )
        for kind in _TENSORS:
            self._fill(module, kind, record.pop(kind, {}), is_new=new)
        module.training = record.pop("training", True) is True
        passing = record.pop("not persistent", ())
        state = record.pop("attributes", {})
        for name in state:
            _check_new(module, name)
        state = {name: self.codec.value(state[name]) for name in state}
        if isinstance(module, GraphModule):
            vars(module).update(state)
        elif new:
            untyped: AnyValue = module
            untyped.__setstate__(state)
        module._non_persistent_buffers_set = set(map(str, passing))
        return module

    def _of_root(self, path: str, why: AnyValue, kind: AnyValue) -> nn.Module:
        """A module of the root, noted as it is now.

        Args:
            path: where it is.
            why: why the file does not say how to make it.
            kind: the name of the class that was saved.
        """
        module = _module_at(self._root, path.split("."))
        if module is None:
            raise ValueError(
                "the file does not say how to make the module, because when "
                f"it was saved, {why}. Give a module that has it, as in "
                "`load(path, root)`; or give `allow` to save as well"
            )
        if type(module).__name__ != kind:
            raise ValueError(
                f"a {kind} was saved, and the root has a "
                f"{type(module).__name__} there"
            )
        attributes = vars(module)
        names = ("training", "_non_persistent_buffers_set")
        was = {name: attributes[name] for name in names}
        for table in ("_modules", *_TENSORS.values()):
            was |= attributes[table]
        self._was += [(module, name, was[name]) for name in was]
        return module

    def undo(self) -> None:
        """Give the modules of the root back what they had."""
        for module, name, value in reversed(self._was):
            setattr(module, name, value)

    def _fill(
        self, module: nn.Module, kind: str, keys: AnyValue, *, is_new: bool
    ) -> None:
        """Give a module its parameters, or its buffers, by name."""
        table = vars(module)[_TENSORS[kind]]
        if is_new:
            for name in keys:
                _check_new(module, name)
                table[name] = None
        if table.keys() != keys.keys():
            raise ValueError(f"it has the {kind} {[*table]}, not {[*keys]}")
        for name, key in keys.items():
            tensor = None if key is None else self.codec.weights[key]
            setattr(module, name, tensor)


class Rehearsal(Tree):
    """A tree that `save` makes to see that `load` could; changes no module."""

    def _of_root(self, path: str, why: AnyValue, kind: AnyValue) -> nn.Module:
        """A double of the root's module, which shares its attributes."""
        module, double = super()._of_root(path, why, kind), nn.Module()
        attributes = vars(double)
        attributes.update(vars(module))
        for table in ("_modules", *_TENSORS.values()):
            attributes[table] = {**attributes[table]}
        return double


def _is_below(path: str, ancestor: str) -> bool:
    """Whether a path is `ancestor`, or begins there."""
    return not ancestor or f"{path}.".startswith(f"{ancestor}.")
