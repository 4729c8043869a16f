"""Passes: note at each call of a module what a back end needs of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch
from torch import nn

from ..graph_module import GraphModule
from ..usedef.dotted_path import find
from ..usedef.values import Value

__all__ = [
    "default_matching",
    "extract_attrs_for_lowering",
    "lift_lowering_attrs_to_nodes",
]


def default_matching(name: str, target_version: int) -> str:
    """The name of an attribute in another version of its class: the same.

    torch.fx: passes/param_fetch.py, default_matching
    """
    return name


_WINDOW: Final = ["kernel_size", "stride", "padding", "dilation"]

module_fetch_book: Final[
    dict[type, tuple[int, list[str], Callable[[str, int], str]]]
] = {
    nn.Linear: (1, ["weight", "bias"], default_matching),
    nn.Conv2d: (
        1,
        ["weight", "bias", *_WINDOW, "groups", "padding_mode"],
        default_matching,
    ),
    nn.BatchNorm2d: (
        2,
        ["weight", "bias", "running_mean", "running_var", "eps"],
        default_matching,
    ),
    nn.AdaptiveAvgPool2d: (1, [], default_matching),
    nn.MaxPool2d: (
        1,
        [*_WINDOW, "return_indices", "ceil_mode"],
        default_matching,
    ),
    nn.ReLU: (1, ["inplace"], default_matching),
}
"""Class -> its version that is known, the attributes that are needed, and what
they are named in another version.  Other classes may be added."""


def extract_attrs_for_lowering(mod: nn.Module) -> dict[str, Value]:
    """The attributes of a module that `module_fetch_book` lists for its class.

    Returns:
        Name -> attribute, and "name" -> the dotted name of the class.

    Raises:
        RuntimeError: the book lacks the class, or knows an older version only.

    torch.fx: passes/param_fetch.py, extract_attrs_for_lowering
    """
    name = torch.typename(mod)
    known = module_fetch_book.get(type(mod))
    if known is None:
        raise RuntimeError(
            f"{name} is not in the module_fetch_book yet: add the attributes "
            "that the back end needs"
        )
    version, attributes, named = known
    actual: Value = mod._version  # noqa: SLF001
    if version < actual:
        raise RuntimeError(
            f"Fetcher version {version} try to fetch {name} version {actual}: "
            "see in module_fetch_book whether its attributes are still right"
        )
    found = {each: getattr(mod, named(each, actual)) for each in attributes}
    return {"name": name, **found}


def lift_lowering_attrs_to_nodes(fx_module: GraphModule) -> None:
    """Set `attrs_for_lowering` of each call of a module.

    Calls of a module with a graph are set in that graph.

    Raises:
        RuntimeError: as `extract_attrs_for_lowering`.

    torch.fx: passes/param_fetch.py, lift_lowering_attrs_to_nodes
    """
    for node in fx_module.graph.find_nodes(op="call_module"):
        module = find(fx_module, str(node.target))
        if isinstance(module, GraphModule):
            lift_lowering_attrs_to_nodes(module)
        else:
            noted: Value = node
            noted.attrs_for_lowering = extract_attrs_for_lowering(module)
