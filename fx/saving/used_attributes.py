"""Stage 05, codegen: the attributes of a module that its graph uses."""

from __future__ import annotations

from collections.abc import Iterable

from torch import nn

from ..node import Node
from ..text import dotted_path


def paths_in(nodes: Iterable[Node]) -> dict[str, Node]:
    """The dotted paths that nodes fetch or call, each with its first node.

    Cost: O(nodes).
    """
    paths: dict[str, Node] = {}
    for node in nodes:
        if node.op in ("get_attr", "call_module"):
            paths.setdefault(str(node.target), node)
    return paths


def delete_unused(root: nn.Module, paths: Iterable[str]) -> None:
    """Remove the modules below `root` that no path leads through or into.

    Args:
        root: where the paths begin.
        paths: what is used. A module at the end of a path is used with
            everything inside it.

    Cost: O(length of the paths + modules).
    """
    used = _used_children(root, paths)
    seen: set[int] = set()
    rest = [root]
    while rest:
        module = rest.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        for name, child in list(module._modules.items()):
            if (id(module), name) not in used:
                delattr(module, name)
            elif child is not None:
                rest.append(child)


def _used_children(
    root: nn.Module, paths: Iterable[str]
) -> set[tuple[int, str]]:
    """Which child of which module is used: (id of the module, name).

    Not the child alone: a module may have two names, of which one is used.
    """
    used: set[tuple[int, str]] = set()
    seen: set[nn.Module] = set()
    for path in paths:
        found: object = root
        for step in dotted_path.walk(root, path):
            used.add((id(found), step.atom))
            found = step.value
        if isinstance(found, nn.Module):
            for _, module in found.named_modules(seen):
                used.update((id(module), name) for name in module._modules)
    return used
