"""Stage 02, use-def: walk, read, write, copy and delete `a.b.c` in modules.

The target of a get_attr or call_module node is a path of attribute names, its
*atoms*, from the root module down: "encoder.layers.0.weight".  A number
is an atom like any other, because `nn.Sequential` and `nn.ModuleList` keep
their children under such names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import torch
from torch import nn

from ..torch_internals.modules import registration_hooks
from ..usedef.values import Value

MISSING: Final = object()
"""What stands for the value of an attribute that does not exist, since None
may be a value."""


class Step(NamedTuple):
    """One atom of a path, and what was found there.

    Attributes:
        prefix: the path walked so far, "" at the root.
        atom: the attribute asked for.
        value: what was found there, or MISSING.
    """

    prefix: str
    atom: str
    value: object


class PathError(AttributeError):
    """A path leads nowhere.

    Its `name` is the first attribute that is missing, and its `obj` what was
    asked for that.  By these, Python suggests similar names.
    """


def walk(root: object, path: str) -> Iterator[Step]:
    """Follow `path` from `root`, atom by atom, up to the first missing one.

    Args:
        root: where to begin; usually a module.
        path: the atoms, with dots between them.

    Yields:
        A step for each atom.  If an attribute is missing, its step, with the
        value MISSING, is the last one.
    """
    value, prefix = root, ""
    for atom in path.split("."):
        value = getattr(value, atom, MISSING)
        yield Step(prefix, atom, value)
        if value is MISSING:
            return
        prefix = f"{prefix}.{atom}" if prefix else atom


def find(root: object, path: str) -> Value:
    """The object at `path`.

    Raises:
        PathError: an attribute on the way is missing.

    torch.fx: graph_module.py, _get_attr
    """
    value: Value = root
    for atom in path.split("."):
        found = getattr(value, atom, MISSING)
        if found is MISSING:
            raise _path_error(root, path)
        value = found
    return value


def look_up(root: object, path: str) -> Value:
    """The object at `path`; None if there is none."""
    try:
        return find(root, path)
    except PathError:
        return None


def _path_error(root: object, path: str) -> PathError:
    """The error for a path that breaks off; says where."""
    *found, (prefix, atom, _) = walk(root, path)
    last = found[-1].value if found else root
    where = f"'{prefix}'" if prefix else "the root"
    return PathError(
        f"'{path}' leads nowhere: {where}, "
        f"a {type(last).__qualname__}, has no attribute '{atom}'",
        name=atom,
        obj=last,
    )


def exists(root: object, path: str) -> bool:
    """Whether something, None included, is at `path`.

    torch.fx: graph_module.py, _has_attr
    """
    return all(step.value is not MISSING for step in walk(root, path))


def is_state(root: object, path: str) -> bool:
    """Whether `path` is a module, a parameter or a buffer below `root`."""
    holder, found, atom = root, root, ""
    for step in walk(root, path):
        holder, found, atom = found, step.value, step.atom
    if isinstance(found, (nn.Module, nn.Parameter)):
        return True
    return found is not MISSING and atom in getattr(holder, "_buffers", {})


def is_persistent(root: object, path: str) -> bool:
    """Whether a tensor is not a buffer that a state dict leaves out."""
    prefix, _, name = path.rpartition(".")
    holder = find(root, prefix) if prefix else root
    return name not in getattr(holder, "_non_persistent_buffers_set", ())


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
    found: dict[str, object] = {"": source}
    entered: dict[str, object] = {"": destination}
    for path in paths:
        prefix, _, field = path.rpartition(".")
        here = _holder(prefix, found, _look)
        value = _look(here, field)
        if value is MISSING:
            raise _path_error(source, path)
        there = _holder(prefix, entered, _enter)
        if there is here:
            continue
        if isinstance(value, nn.Module):
            _set_child(there, field, value)
        else:
            passing = getattr(here, "_non_persistent_buffers_set", ())
            _store(there, field, value, persistent=field not in passing)


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
        _set_child(holder, atom, value)
    return value


def _set_child(holder: object, name: str, child: nn.Module) -> None:
    """`setattr`, in a third of its time if there is nothing to replace."""
    if (
        type(holder) is nn.Module
        and not (holder._parameters or holder._buffers or registration_hooks)
        and name not in vars(holder)
    ):
        holder._modules[name] = child
    else:
        setattr(holder, name, child)


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
