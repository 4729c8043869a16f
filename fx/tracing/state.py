"""Stage 04, module patching: where a root has its modules and tensors.

A node fetches a parameter by its dotted path, but the code that is traced has
the parameter itself.  So a trace begins with one walk through the root that
notes the path of everything in it.  A tensor that is added to the root while
the trace runs is searched for; a module that is added then has no path.

Objects are followed one step: a module that keeps its trainer refers to the
whole program through it.
"""

from __future__ import annotations

import functools
import sys
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Final, TypeAlias

import torch
from torch import nn

from ..linked_list.opcodes import Opcode, Target
from ..proxy import TraceError
from ..recording import frames
from ..torch_private import pytree
from ..use_def.values import Value
from .wrapping import find_proxy

CONSTANTS: Final = (torch.Tensor, torch.ScriptObject, pytree.TreeSpec)
"""Values that a node cannot hold: nodes fetch them from where the root has
them."""

STORED: Final[dict[type[object], str]] = {
    torch.Tensor: "_tensor_constant",
    torch.ScriptObject: "_torchbind_obj",
    pytree.TreeSpec: "_tree_spec_constant",
    torch.Generator: "_opaque_obj",
}
"""Type of what a trace stores on the root -> how its name there begins."""


Held: TypeAlias = tuple[str, Value, Value]
"""Something that holds values, and what it held when a trace began: its path
(with a dot at the end if it is a module, an object or a class), it itself, and
a copy. It is the attributes or buffers of a module, a container among its
attributes, the attributes of an object there, or a class."""


_OF_ALL: Final = vars(nn.Module())
"""The attributes that each module has."""

_DICTS: Final = [*map(type, _OF_ALL.values())].count(dict)
_SETS: Final = [*map(type, _OF_ALL.values())].count(set)
"""How many of them are dicts, and sets."""

_OTHERS: Final = frozenset(
    (bool, int, float, str, tuple, type(None), dict, OrderedDict, set)
)
"""Exact types of most attributes of a module; to ask for a tensor is slow."""


_CONTAINERS: Final = (list, tuple, dict, set, deque)
"""Types whose items are looked at."""

_PLAIN: Final = frozenset((bool, int, float, str, type(None), torch.Tensor))
"""Exact types of most items of containers, which hold nothing."""


def inside(
    path: str, value: Value, known: set[int]
) -> Iterator[tuple[str, Value]]:
    """The containers in a value, and the attributes of objects in it.

    An object in an object is not looked into: a trainer or a logger leads to
    everything that there is.

    Args:
        path: of the value.
        value: may be a container or an object itself.
        known: ids of what is left out, to which those of what is yielded come.

    Yields:
        The path of each, with a dot if it is an object's, and it.

    Cost: O(items).
    """
    ahead = [(path, value, True)]
    for where, now, is_near in ahead:
        if not isinstance(now, _CONTAINERS):
            kind: Value = type(now)
            if not (is_near and _is_users(kind)):
                continue
            where, now, is_near = f"{where}.", vars(now), False
        if id(now) not in known:
            known.add(id(now))
            yield where, now
            items = [*(now.values() if isinstance(now, dict) else now)]
            if not _PLAIN.issuperset(map(type, items)):
                ahead += [(where.rstrip("."), item, is_near) for item in items]


@functools.lru_cache(maxsize=1024)
def _is_users(kind: Value) -> bool:
    """Whether objects of a class have attributes that forward may assign."""
    return kind is SimpleNamespace or not (
        issubclass(kind, (type, nn.Module))
        or not kind.__dictoffset__
        or is_librarys(kind)
    )


@functools.lru_cache(maxsize=1024)
def is_librarys(kind: Value) -> bool:
    """Whether a class is fx's, torch's, or of Python's library."""
    return is_library(str(kind.__module__))


def is_library(module: str) -> bool:
    """Whether a module of this name is fx's, torch's, or Python's."""
    top = module.partition(".")[0]
    ours = __name__.partition(".")[0]
    return top in ("torch", ours) or top in sys.stdlib_module_names


class State:
    """The paths of everything in a root's hierarchy, found in one walk.

    The paths are those of `named_modules()`: the first one wins, parents before
    children.  A stack and not a recursion, because modules may be nested deeply
    or contain themselves.  Tensors are looked up by id, since their hash runs
    code of torch, and are kept so that the id stays theirs.

    Attributes:
        modules: module -> its first dotted path.
        tensors: id of a parameter or buffer -> its first dotted path, and it
            itself.
        constants: tensors and the like that are plain attributes -> path.
        held: where there are attributes and buffers, containers and objects of
            theirs, and attributes of their classes.
    """

    def __init__(self, root: nn.Module) -> None:
        """Walk through the modules of `root`, each once."""
        self.modules: dict[nn.Module, str] = {}
        self.tensors: dict[int, tuple[str, torch.Tensor | None]] = {}
        self.constants: dict[Value, str] = {}
        self.held: list[Held] = []
        self._known: set[int] = set()
        classes = set[type]()
        ahead = [("", root)]
        while ahead:
            path, module = ahead.pop()
            if module in self.modules:
                continue
            self.modules[module] = path
            prefix = path and path + "."
            if type(module) not in classes:
                classes.add(type(module))
                self._hold_classes(type(module).__mro__)
            attributes = vars(module)
            self.held.append((prefix, attributes, attributes.copy()))
            kinds = [*map(type, attributes.values())]
            if (
                not _OTHERS.issuperset(kinds)
                or kinds.count(dict) > _DICTS
                or kinds.count(set) > _SETS
            ):
                self._look_into(prefix, attributes)
            # A ScriptModule finds all three elsewhere, and they are no dicts.
            buffers = module._buffers
            self.held.append((prefix, buffers, dict(buffers.items())))
            for tensors in (module._parameters, buffers):
                for name, tensor in tensors.items():
                    self.tensors.setdefault(id(tensor), (prefix + name, tensor))
            for name, child in reversed(module._modules.items()):
                if child is not None:
                    ahead.append((prefix + name, child))

    def _hold_classes(self, classes: Iterable[Value]) -> None:
        """Note the attributes of a module's class, and of its bases."""
        for cls in classes:
            if not is_librarys(cls) and id(cls) not in self._known:
                self._known.add(id(cls))
                self.held.append((f"{cls.__name__}.", cls, dict(vars(cls))))

    def _look_into(self, prefix: str, attributes: dict[str, Value]) -> None:
        """Note what a module's attributes are or hold."""
        for name, value in [*attributes.items()]:  # other threads' traces
            if isinstance(value, CONSTANTS):
                self.constants[value] = prefix + name
            elif name not in _OF_ALL and type(value) not in _PLAIN:
                self._hold(prefix + name, value)

    def _hold(self, path: str, value: Value) -> None:
        """Note what can be assigned to in the value of an attribute."""
        for where, now in inside(path, value, self._known):
            if isinstance(now, dict):
                self.held.append((where, now, dict(now)))
            elif not isinstance(now, tuple):
                before = set(now) if isinstance(now, set) else [*now]
                self.held.append((where, now, before))

    def named(self) -> list[tuple[str, Value]]:
        """The tensors and constants, each once, with their paths."""
        constants = [
            (path, value)
            for value, path in self.constants.items()
            if id(value) not in self.tensors
        ]
        return [*self.tensors.values(), *constants]


def path_among(value: Value, named: Iterable[tuple[str, Value]]) -> str | None:
    """The name of `value` itself among named values."""
    return next((name for name, other in named if other is value), None)


def root_argument() -> str:
    """The message where the root itself, whose path is "", is to be fetched."""
    return (
        "the root module is an argument of a call that is recorded, "
        f"and no node can fetch it\n  in\n  {frames.where()}\n"
        "  Pass the parts of it that the function needs, or trace a "
        "module that has this one as a child."
    )


def finished_trace(kind: Opcode, target: Target) -> str:
    """The message where a proxy records something after its trace."""
    return (
        f"a Proxy of a finished trace is used: {kind} of {target} "
        "would come after the output of its graph. To edit the "
        "graph, set an insert point (graph.inserting_before) and "
        "wrap its nodes: Proxy(node)"
    )


def refuse_proxies_in(value: Value) -> None:
    """Raise if an object that is to be a constant holds a proxy.

    Its next users would find proxies of a trace that has ended.

    Raises:
        TraceError: it does, in an attribute or in a list or dict there.
    """
    proxy = find_proxy(vars(value) if hasattr(value, "__dict__") else ())
    if proxy is not None:
        raise TraceError(
            f"a {type(value).__qualname__} that was made without a proxy "
            f"holds {proxy} now, and the graph would keep it as a constant\n"
            f"  in\n  {frames.where()}\n"
            "  Give the proxies to its constructor, which is recorded then, or "
            "return what it holds, as a tuple, list or dict"
        )
