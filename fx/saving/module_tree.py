"""Stage 05, codegen: the modules of a graph module as data, and again.

Each module is a record: its class with the arguments of the constructor, its
parameters and buffers, and the attributes that the constructor did not set to
what they are.  A module that cannot be made in this way, such as one of a
user's class, is recorded as one that the user's root has at the same path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from inspect import signature
from typing import Final

import torch
from torch import nn

from ..graph import Graph
from ..graph_module import OWN, GraphModule
from ..text import dotted_path
from ..usedef.values import Value
from .attributes import state_of
from .values import Codec

GRAPH_MODULE: Final = "fx.GraphModule"
"""The name of that class in files."""

_TENSORS: Final = {"parameters": "_parameters", "buffers": "_buffers"}
_OF_CHILD: Final = {
    "d_model": "self_attn.embed_dim",
    "nhead": "self_attn.num_heads",
}
"""Where a layer of a transformer has the arguments that it has no name for."""

_MADE: Final = ("_flat_weight", "_tracer_")
"""How attributes begin that follow from others, or from the tracer."""


# -- to data -----------------------------------------------------------------


def module_records(
    gm: GraphModule, codec: Codec
) -> Iterator[tuple[str, nn.Module | None, dict[str, Value]]]:
    """Each module with its path and record, parents first.

    A module that has been seen comes again as None.

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
        try:
            record = {"root": "in it"} if of_root else _recipe(module, codec)
        except Exception as error:  # a constructor may raise anything
            if not path:
                raise ValueError(
                    f"the module cannot be saved: {error}"
                ) from None
            record = {"root": str(error)}
        yield path, module, record | _state(module, path, codec)
        prefix = f"{path}." if path else ""
        for name, child in reversed(module._modules.items()):
            if child is not None:
                stack.append((f"{prefix}{name}", child, "root" in record))


def _state(module: nn.Module, path: str, codec: Codec) -> dict[str, Value]:
    """Which tensors a module has, and whether it is in training."""
    record: dict[str, Value] = {}
    for kind, attribute in _TENSORS.items():
        keys = {
            name: tensor
            if tensor is None
            else codec.weights.key(tensor, f"{path}.{name}".lstrip("."))
            for name, tensor in getattr(module, attribute).items()
        }
        record |= {kind: keys} if keys else {}
    if names := module._non_persistent_buffers_set:
        record["not persistent"] = sorted(names)
    return record if module.training else record | {"training": False}


def _recipe(module: nn.Module, codec: Codec) -> dict[str, Value]:
    """How to make a module: its class, the arguments, further attributes.

    Raises:
        ValueError: what is made so would not be the module.
    """
    for name, hooks in vars(module).items():
        if name.endswith("_hooks") and hooks:
            raise ValueError(f"it has {name.strip('_')}, which are code")
    record = {"class": _class_name(module, codec), **_arguments(module, codec)}
    new = make(record, codec)
    own, made = _attributes(module), _attributes(new)
    if (
        made.keys() - own.keys()
        or new._modules.keys() - module._modules.keys()
        or not (_is_container(new) or _names(new) == _names(module))
    ):
        raise ValueError("its constructor makes other attributes than it has")
    attributes = {
        name: codec.data(value)
        for name, value in own.items()
        if name not in made or not _same(value, made[name], codec)
    }
    return record | ({"attributes": attributes} if attributes else {})


def _same(one: Value, other: Value, codec: Codec) -> bool:
    """Whether two attributes are written the same; tensors never are."""
    if isinstance(other, torch.Tensor):
        return False
    return repr(codec.data(one)) == repr(codec.data(other))


def _is_container(module: nn.Module) -> bool:
    """Whether a module may have any tensors and attributes."""
    return isinstance(module, GraphModule) or type(module) is nn.Module


def _names(module: nn.Module) -> list[list[str]]:
    """The names of a module's parameters and buffers."""
    return [sorted(getattr(module, each)) for each in _TENSORS.values()]


def _class_name(module: nn.Module, codec: Codec) -> str:
    """The name of a module's class; ValueError if it is not allowed."""
    kind = type(module)
    if isinstance(module, GraphModule):
        kind = kind.__mro__[1]
        if kind is GraphModule:
            return GRAPH_MODULE
    name = codec.allowed.class_name(kind)
    if name is None:
        name = f"{kind.__module__}.{kind.__qualname__}"
        raise ValueError(f"its class {name} is not allowed")
    return name


def _arguments(module: nn.Module, codec: Codec) -> dict[str, Value]:
    """The constructor's arguments, as the attributes of these names say."""
    if isinstance(module, GraphModule):
        return {"args": {"class_name": type(module).__name__}}
    is_rnn = isinstance(module, nn.RNNBase)  # its subclasses say **kwargs
    parameters = signature(nn.RNNBase if is_rnn else type(module)).parameters
    held, tensors = vars(module), module._parameters | module._buffers
    args: dict[str, Value] = {}
    for name, parameter in parameters.items():
        given = held.get(name)
        if is_rnn and (name == "mode" or (name == "proj_size" and not given)):
            continue  # what nn.LSTM or nn.GRU says itself
        if name in _OF_CHILD and "self_attn" in module._modules:
            args[name] = codec.data(dotted_path.find(module, _OF_CHILD[name]))
        elif name in held:
            args[name] = codec.data(held[name])
        elif name in tensors and type(parameter.default) is bool:
            args[name] = tensors[name] is not None
    return {"args": args} if args else {}


def _attributes(module: nn.Module) -> dict[str, Value]:
    """The attributes that are neither tensors nor every module's."""
    is_graph = isinstance(module, GraphModule)
    held = state_of(module) if isinstance(module, GraphModule) else vars(module)
    common = OWN if is_graph else vars(nn.Module())
    return {
        name: value
        for name, value in held.items()
        if name not in common and not name.startswith(_MADE)
    }


# -- from data ---------------------------------------------------------------


def make(record: Mapping[str, Value], codec: Codec) -> nn.Module:
    """A new module, as a record says, whose tensors hold no data."""
    name, args = record["class"], record.get("args", {})
    if name == GRAPH_MODULE:
        graph = Graph()
        graph.output(None)
        return GraphModule(nn.Module(), graph, str(args["class_name"]))
    kind = codec.allowed.classes.get(name)
    if not isinstance(kind, type) or not issubclass(kind, nn.Module):
        raise ValueError(f"{name!r} is not a class of modules that is allowed")
    with torch.device("meta"):
        module: nn.Module = kind(**{k: codec.value(args[k]) for k in args})
    return module


class Tree:
    """Modules that are made from records, parents first.

    Attributes:
        modules: path → module.
    """

    def __init__(self, root: nn.Module | None, codec: Codec) -> None:
        """Make an empty tree.

        Args:
            root: has the modules that the records do not tell how to make.
            codec: reads arguments and attributes, and knows the tensors.
        """
        self.modules: dict[str, nn.Module] = {}
        self._root = root
        self._codec = codec
        self._last = ""

    def add(self, path: str, record: Mapping[str, Value]) -> None:
        """Make the module of a record, and put it into its parent.

        Raises:
            Exception: the record is wrong. The tree is then of no use.
        """
        parent, _, name = path.rpartition(".")
        if path in self.modules or not _is_below(self._last, parent):
            raise ValueError("the module is not in its place, after its parent")
        if "same as" in record:
            if _is_below(path, record["same as"]):
                raise ValueError("the module is inside of itself")
            module = self.modules[record["same as"]]
        else:
            module = self._made(path, record)
        self.modules[path] = module
        # Nothing may be put into a module once it is elsewhere, too: else
        # two modules could be inside each other.
        self._last = parent if "same as" in record else path
        if path:
            holder = self.modules[parent]
            if name not in holder._modules:
                _check_new(holder, name)
            holder.add_module(name, module)

    def _made(self, path: str, record: Mapping[str, Value]) -> nn.Module:
        """A module of a record, with its state."""
        if "root" in record:
            module = self._of_root(path, record["root"])
        else:
            module = make(record, self._codec)
            for name, data in record.get("attributes", {}).items():
                if name not in _attributes(module):
                    _check_new(module, name)
                vars(module)[name] = self._codec.value(data)
            passing = record.get("not persistent", ())
            module._non_persistent_buffers_set = set(map(str, passing))
        for kind in _TENSORS:
            self._fill(module, kind, record.get(kind, {}))
        module.training = record.get("training", True) is True
        return module

    def _of_root(self, path: str, reason: str) -> nn.Module:
        """The module that the user's root has at a path."""
        module = self._root
        for name in path.split("."):
            module = None if module is None else module._modules.get(name)
        if module is None:
            raise ValueError(
                f"the file does not say how to make the module ({reason}): "
                "give a module that has it, as in `load(path, root)`"
            )
        return module

    def _fill(
        self, module: nn.Module, kind: str, keys: Mapping[str, str | None]
    ) -> None:
        """Give a module its parameters, or its buffers, by name."""
        held: dict[str, Value] = getattr(module, _TENSORS[kind])
        if held.keys() != keys.keys() and not (
            _is_container(module) and held.keys() <= keys.keys()
        ):
            raise ValueError(f"it has the {kind} {[*held]}, not {[*keys]}")
        for name, key in keys.items():
            tensor = self._tensor(kind, key)
            if name in held:
                setattr(module, name, tensor)
                continue
            _check_new(module, name)
            if kind == "parameters":
                module.register_parameter(name, tensor)
            else:
                passing = name in module._non_persistent_buffers_set
                module.register_buffer(name, tensor, persistent=not passing)

    def _tensor(self, kind: str, key: str | None) -> Value:
        """A parameter, or a buffer, by its key; None for none."""
        if key is None:
            return None
        tensor = self._codec.weights[key]
        if isinstance(tensor, nn.Parameter) != (kind == "parameters"):
            raise ValueError(f"{key!r} is not one of the {kind}")
        return tensor


def _is_below(path: str, ancestor: str) -> bool:
    """Whether a path is `ancestor`, or begins there."""
    return not ancestor or f"{path}.".startswith(f"{ancestor}.")


def _check_new(module: nn.Module, name: str) -> None:
    """Raise if a module has an attribute of this name, or its class has.

    `hasattr(module, name)` would run a property.
    """
    hidden = name.startswith("__") or hasattr(type(module), name)
    if hidden or name in vars(module):
        raise ValueError(f"{name!r} cannot be an attribute of the module")


def find(root: nn.Module, path: str) -> Value:
    """What a graph's path leads to: a module, tensor or plain attribute.

    Nothing of a class is found, such as a method or a property.

    Raises:
        ValueError: there is nothing.
    """
    *prefix, name = path.split(".")
    module: Value = root
    for step in prefix:
        module = {} if module is None else module._modules.get(step)
    for held in (
        ()
        if module is None
        else (
            module._modules,
            module._parameters,
            module._buffers,
            _attributes(module),
        )
    ):
        if held.get(name) is not None:
            return held[name]
    raise ValueError(f"the path {path!r} leads to nothing that is saved")
