"""Stage 02, use-def: follow a path such as `a.b.c` from a module.

The target of a get_attr or call_module node is a path of attribute names, its
*atoms*, from the root module down: "encoder.layers.0.weight".  A number
is an atom like any other, because `nn.Sequential` and `nn.ModuleList` keep
their children under such names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from torch import nn

from .values import AnyValue

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


def find(root: object, path: str) -> AnyValue:
    """The object at `path`.

    It loops without steps, because dead code elimination and matching call it
    for each `call_module` node; only for the error does it walk again.

    Raises:
        PathError: an attribute on the way is missing.

    torch.fx: graph_module.py, _get_attr
    """
    *_, (_, _, value) = walk(root, path)
    if value is MISSING:
        raise path_error(root, path)
    return value


def look_up(root: object, path: str) -> AnyValue:
    """The object at `path`; None if there is none."""
    try:
        return find(root, path)
    except PathError:
        return None


def path_error(root: object, path: str) -> PathError:
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
    *before, (_, atom, found) = walk(root, path)
    holder = before[-1].value if before else root
    if isinstance(found, (nn.Module, nn.Parameter)):
        return True
    return found is not MISSING and atom in getattr(holder, "_buffers", {})


def is_persistent(root: object, path: str) -> bool:
    """Whether a tensor is not a buffer that a state dict leaves out."""
    prefix, _, name = path.rpartition(".")
    holder = find(root, prefix) if prefix else root
    return name not in getattr(holder, "_non_persistent_buffers_set", ())
