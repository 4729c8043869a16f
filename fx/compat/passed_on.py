"""Passes: names that a file of torch.fx has because it imports them.

Programs import a name from where they see it: `TreeSpec` from
`torch.fx._pytree`, `map_aggregate` from `torch.fx.interpreter`.  torch.fx's
files import these for their own work, and fx's files have other work.  So a
module of fx that is asked for a name that it lacks looks into its namesake,
when it is asked.  torch.fx does not document these names, but libraries take
them: torchrec has `TreeSpec` from `torch.fx._pytree`.

To import the names in fx's files would make these import what they do not use,
and what later stages define.  Asking torch.fx also needs no list that has to
follow it.  Only the modules at the top of `fx/` do so.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

from ..use_def.values import AnyValue

__all__ = ["finder"]


def finder(module: str) -> Callable[[str], AnyValue]:
    """What a module of fx does for a name that it lacks.

    It is meant as the module's `__getattr__` (PEP 562), which Python calls.

    Args:
        module: its dotted name, which is that of its namesake in torch.fx
            without "torch.".

    Returns:
        A function that finds what the namesake imports from torch: fx's own,
        if torch.fx defines it (a Node of torch.fx would fit no graph), or else
        torch's.  For any other name it raises AttributeError, also for those
        that the namesake defines itself: `tests/api_surface.toml` says why fx
        has none of that name.
    """

    def find(name: str) -> AnyValue:
        missing = AttributeError(f"module {module!r} has no attribute {name!r}")
        if name.startswith("_"):
            raise missing
        theirs: AnyValue = importlib.import_module(f"torch.{module}")
        value: AnyValue = getattr(theirs, name, None)
        home = str(getattr(value, "__module__", None))
        if home == theirs.__name__ or home.partition(".")[0] != "torch":
            raise missing
        if not home.startswith("torch.fx."):
            return value
        try:
            ours = importlib.import_module(home.removeprefix("torch."))
            return vars(ours)[name]
        except (ModuleNotFoundError, KeyError):
            raise missing from None

    return find
