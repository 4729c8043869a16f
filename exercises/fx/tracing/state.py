"""Stage 04, module patching: where a root has its modules and tensors.

A node fetches a parameter by its dotted path, but the code that is traced has
the parameter itself.  So a trace begins with one walk through the root that
notes the path of everything in it.  A tensor that is added to the root while
the trace runs is searched for; a module that is added then has no path.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, NamedTuple

import torch
from torch import nn

from ..ordered.opcodes import Opcode, Target
from ..recording import frames
from ..torch_internals import pytree
from ..usedef.values import Value

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


class Held(NamedTuple):
    """Something that holds values, and what it held when a trace began.

    Attributes:
        path: of a module with a dot, or of a list or dict without one.
        now: the attributes or buffers of a module, or a list or dict among its
            attributes.
        before: a copy of it.
    """

    path: str
    now: Value
    before: Value


_OF_ALL: Final = vars(nn.Module())
"""The attributes that each module has."""

_DICTS: Final = [*map(type, _OF_ALL.values())].count(dict)
"""How many of them are dicts."""

_OTHERS: Final = frozenset(
    (bool, int, float, str, tuple, type(None), dict, OrderedDict, set)
)
"""Exact types of most attributes of a module; to ask for a tensor is slow."""


class State:
    """The paths of everything in a root's hierarchy, found in one walk.

    Attributes:
        modules: module -> its first dotted path.
        tensors: id of a parameter or buffer -> its first dotted path, and it
            itself.
        constants: tensors and the like that are plain attributes -> path.
        held: where there are attributes and buffers, and lists and dicts of
            theirs.
    """

    def __init__(self, root: nn.Module) -> None:
        """Walk through the modules of `root`, each once."""
        self.modules: dict[nn.Module, str] = {}
        self.tensors: dict[int, tuple[str, torch.Tensor | None]] = {}
        self.constants: dict[Value, str] = {}
        self.held: list[Held] = []
        ahead = [("", root)]
        while ahead:
            path, module = ahead.pop()
            if module in self.modules:
                continue
            self.modules[module] = path
            prefix = path and path + "."
            attributes = vars(module)
            self.held.append(Held(prefix, attributes, attributes.copy()))
            kinds = [*map(type, attributes.values())]
            if not _OTHERS.issuperset(kinds) or kinds.count(dict) > _DICTS:
                self._look_into(prefix, attributes)
            # A ScriptModule finds all three elsewhere, and they are no dicts.
            buffers = module._buffers
            if buffers:
                self.held.append(Held(prefix, buffers, dict(buffers.items())))
            for held in (module._parameters, buffers):
                for name, tensor in held.items():
                    self.tensors.setdefault(id(tensor), (prefix + name, tensor))
            for name, child in reversed(module._modules.items()):
                if child is not None:
                    ahead.append((prefix + name, child))

    def _look_into(self, prefix: str, attributes: dict[str, Value]) -> None:
        """Note the constants, lists and dicts among a module's attributes."""
        for name, value in [*attributes.items()]:  # other threads' traces
            if isinstance(value, CONSTANTS):
                self.constants[value] = prefix + name
            elif isinstance(value, list | dict) and name not in _OF_ALL:
                self.held.append(Held(prefix + name, value, copy.copy(value)))

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
