"""Extra: which module a replacement means by a path of the pattern.

With `modules_by_class=True` the pattern's `l` stands for another module in each
match.  A replacement that calls `l` means that module, and `l.weight` is its
weight: the author had to give the replacement some module to be traced with,
and its weights are as accidental as the pattern's.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import nn

from ...node import Node
from ...use_def.dotted_path import look_up
from ...use_def.values import AnyValue
from ..effects.effects import owned


def matched_path(
    path: str, root: object, paired: Mapping[Node, AnyValue]
) -> str | None:
    """See `Exact.matched_path`.

    Raises:
        RuntimeError: it cannot be known what is meant.
    """
    calls = {
        str(sought.target): (owned(sought), found)
        for sought, found in paired.items()
        if sought.op == "call_module"
        and isinstance(found, Node)
        and found.op == "call_module"
    }
    for place, (module, _) in calls.items():
        held = look_up(root, place) if place.startswith(f"{path}.") else None
        if held is not None and type(held) is type(module):
            raise RuntimeError(
                f"the replacement calls {path!r}, in which is {place!r}; the "
                "pattern calls that, and it stands for another module in each "
                f"match: call {place!r} in the replacement, too"
            )
    atoms = path.split(".")
    for count in range(len(atoms), 0, -1):
        place = ".".join(atoms[:count])
        theirs = look_up(root, place)
        for name, (module, found) in calls.items():
            if name == place or (theirs is not None and theirs is module):
                # A GraphModule has a bare module where it only fetches weights.
                if theirs is not None and type(theirs) is not nn.Module:
                    if type(theirs) is not type(module):
                        return ""
                    _check_settings(place, theirs, module)
                return _inside(found, path, atoms[count:])
    return None


def _check_settings(place: str, theirs: AnyValue, module: AnyValue) -> None:
    """Raise if a replacement has a module of other settings at a path."""
    if repr(theirs) != repr(module):
        raise RuntimeError(
            f"the replacement has {theirs!r} at {place!r}, and the pattern "
            f"{module!r}, which stands for the module of each match: give "
            "both the same settings if the replacement is to call that "
            "module, or another name to a module of its own"
        )


def _inside(found: Node, path: str, rest: list[str]) -> str:
    """The path of a matched module, or of what is in it."""
    target = ".".join([str(found.target), *rest])
    if look_up(found.graph.owning_module, target) is None:
        raise RuntimeError(
            f"the replacement needs {path!r}, but the module {found.target!r} "
            f"that node {found} calls has no {'.'.join(rest)!r}: leave the "
            "match out by a filter"
        )
    return target
