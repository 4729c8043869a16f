"""Stage 04, module patching: where a root has its modules and tensors.

A node fetches a parameter by its dotted path, but the code that is traced has
the parameter itself.  So a trace begins with one walk through the root that
notes the path of everything in it.  A tensor that is added to the root while
the trace runs is searched for; a module that is added then has no path.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

import torch
from torch import nn

from ..proxy import TraceError
from ..recording import frames
from ..torch_private.pytree import pytree
from ..use_def.values import AnyValue
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


_OTHERS: Final = frozenset(
    (bool, int, float, str, tuple, type(None), dict, OrderedDict, set)
)
"""Exact types of most attributes of a module; to ask for a tensor is slow."""


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
    """

    def __init__(self, root: nn.Module) -> None:
        """Walk through the modules of `root`, each once."""
        self.modules: dict[nn.Module, str] = {}
        self.tensors: dict[int, tuple[str, torch.Tensor | None]] = {}
        self.constants: dict[AnyValue, str] = {}
        ahead = [("", root)]
        while ahead:
            path, module = ahead.pop()
            if module in self.modules:
                continue
            self.modules[module] = path
            prefix = path and path + "."
            attributes = vars(module)
            if not _OTHERS.issuperset(map(type, attributes.values())):
                for name, value in [*attributes.items()]:  # other threads'
                    if isinstance(value, CONSTANTS):
                        self.constants[value] = prefix + name
            # A ScriptModule finds all three elsewhere, and they are no dicts.
            for tensors in (module._parameters, module._buffers):
                for name, tensor in tensors.items():
                    self.tensors.setdefault(id(tensor), (prefix + name, tensor))
            for name, child in reversed(module._modules.items()):
                if child is not None:
                    ahead.append((prefix + name, child))

    def named(self) -> list[tuple[str, AnyValue]]:
        """The tensors and constants, each once, with their paths."""
        constants = [
            (path, value)
            for value, path in self.constants.items()
            if id(value) not in self.tensors
        ]
        return [*self.tensors.values(), *constants]


def path_among(
    value: AnyValue, named: Iterable[tuple[str, AnyValue]]
) -> str | None:
    """The name of `value` itself among named values."""
    return next((name for name, other in named if other is value), None)


def refuse_proxies_in(value: AnyValue) -> None:
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
