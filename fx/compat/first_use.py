"""Passes: modules and names that a package imports when they are first used.

`import torch` loads nearly all of torch.fx, and programs rely on it: they write
`torch.fx.passes.shape_prop` without having imported that.  Loading as much
at every `import fx` would take as long as everything else in it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping

from ..use_def.values import AnyValue

__all__ = ["importer"]


def importer(
    package: str, names: Mapping[str, str]
) -> Callable[[str], AnyValue]:
    """What a package does for an attribute that it lacks: import it.

    It is meant as the package's `__getattr__` (PEP 562), which Python calls.

    Args:
        package: its dotted name; each module below it can be looked up.
        names: a name that can be looked up, and the module that defines it,
            below the package.

    Returns:
        A function that finds an attribute, and raises AttributeError if there
        is none.  A module that exists and fails while it is imported raises
        its own error.
    """

    def find(name: str) -> AnyValue:
        dotted = f"{package}.{names.get(name, name)}"
        try:
            module = importlib.import_module(dotted)
        except ModuleNotFoundError as error:
            if error.name != dotted:
                raise
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}"
            ) from None
        return getattr(module, name) if name in names else module

    return find
