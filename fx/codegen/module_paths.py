"""Stage 05, codegen: write, copy and delete at the end of a dotted path.

A graph module holds at the same paths what the module held that was traced.
An operation that fails has changed nothing, except that a failed write may
leave empty modules that it has put in on the way.

Empty modules are made on the way, because a graph may name
"encoder.proj.weight" before there is a module `encoder.proj`.  When attributes
are copied, the value is looked for first, so that a path that does not exist
leaves no empty modules behind; what both modules share already is not stored,
since that would write into the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import torch
from torch import nn

from ..usedef.dotted_path import MISSING, path_error, walk


def assign(
    root: nn.Module, path: str, value: object, *, persistent: bool = True
) -> None:
    """Put `value` at `path`; empty modules are installed on the way.

    A tensor becomes a buffer, by default a persistent one, unless it is a
    Parameter or what it is put into is not a module.

    Raises:
        KeyError: a tensor is to replace what is not a buffer.

    torch.fx: graph_module.py, _assign_attr
    """
    *prefix, field = path.split(".")
    holder: object = root
    for atom in prefix:
        holder = _enter(holder, atom)
    _store(holder, field, value, persistent=persistent)


def copy_attribute(
    source: nn.Module, destination: nn.Module, path: str
) -> None:
    """Put what `source` has at `path` into `destination`, at the same path.

    See `copy_attributes`.

    torch.fx: graph_module.py, _copy_attr
    """
    copy_attributes(source, destination, (path,))


def copy_attributes(
    source: nn.Module, destination: nn.Module, paths: Iterable[str]
) -> None:
    """Put what `source` has at each path into `destination`, at the same path.

    The objects themselves are shared, not copied.  Empty modules are installed
    on the way, and a tensor becomes a buffer, as `assign` does; one that is a
    non-persistent buffer of `source` stays so.  If both modules already share
    a part of a path, the rest is shared with it and nothing is done.

    Raises:
        PathError: `source` has nothing at a path; nothing is done for it.
        KeyError: a tensor is to replace what is not a buffer.

    Cost: each module on the way is looked up once, for all paths.
    """
    holders: dict[str, object] = {"": source}
    new_holders: dict[str, object] = {"": destination}
    for path in paths:
        prefix, _, field = path.rpartition(".")
        holder = _holder(prefix, holders, _look)
        value = _look(holder, field)
        if value is MISSING:
            raise path_error(source, path)
        new_holder = _holder(prefix, new_holders, _enter)
        if new_holder is holder:
            continue
        if isinstance(value, nn.Module):
            setattr(new_holder, field, value)
        else:
            passing = getattr(holder, "_non_persistent_buffers_set", ())
            _store(new_holder, field, value, persistent=field not in passing)


def _holder(
    path: str,
    holders: dict[str, object],
    step: Callable[[object, str], object],
) -> object:
    """The object at `path`, found atom by atom with `step` and remembered."""
    if path in holders:
        return holders[path]
    known = path
    rest: list[str] = []
    while known not in holders:
        known, _, atom = known.rpartition(".")
        rest.append(atom)
    holder = holders[known]
    for atom in reversed(rest):
        known = f"{known}.{atom}" if known else atom
        holder = holders[known] = step(holder, atom)
    return holder


def _look(holder: object, atom: str) -> object:
    """What is to be copied from `holder`, or MISSING.

    A child is found although an attribute of the class of `holder` hides it,
    and in less time than `getattr` takes.
    """
    if isinstance(holder, nn.Module) and atom not in vars(holder):
        children: Mapping[str, object] = getattr(holder, "_modules", {})
        if atom in children:
            return children[atom]
    return getattr(holder, atom, MISSING)


def _enter(holder: object, atom: str) -> object:
    """What `holder` has under `atom`: an empty new module, if nothing."""
    value: object = getattr(holder, atom, None)
    if value is None:
        value = nn.Module()
        setattr(holder, atom, value)
    return value


def _store(
    holder: object, field: str, value: object, *, persistent: bool = True
) -> None:
    """Set an attribute; a module's plain tensors go among its buffers."""
    if (
        isinstance(value, torch.Tensor)
        and not isinstance(value, nn.Parameter)
        and isinstance(holder, nn.Module)
    ):
        holder.register_buffer(field, value, persistent=persistent)
    else:
        setattr(holder, field, value)


def add_submodule(root: nn.Module, path: str, module: nn.Module) -> bool:
    """Install `module` at `path`; empty modules are installed on the way.

    Returns:
        False, and nothing is changed, if something on the way is not one.

    Raises:
        KeyError: `path` ends at an attribute that is not a module.

    torch.fx: graph_module.py, GraphModule.add_submodule
    """
    *prefix, field = path.split(".")
    parent = root
    for atom in prefix:
        child = _enter(parent, atom)
        if not isinstance(child, nn.Module):
            return False
        parent = child
    parent.add_module(field, module)
    return True


def delete_submodule(root: nn.Module, path: str) -> bool:
    """Remove the module at `path`.

    Returns:
        Whether there was one: False if something on the way, or at the end,
        is missing or no module.

    torch.fx: graph_module.py, GraphModule.delete_submodule
    """
    steps = list(walk(root, path))
    if not all(isinstance(step.value, nn.Module) for step in steps):
        return False
    parent = steps[-2].value if len(steps) > 1 else root
    delattr(parent, steps[-1].atom)
    return True
