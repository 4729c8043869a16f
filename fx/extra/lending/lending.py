"""Extra: finds torch's file for a module that fx has not.

    import fx.passes.splitter_base      torch's file, about fx's graphs
    fx.passes.splitter_base.__file__    …/torch/fx/passes/splitter_base.py

A program that was written for torch.fx may import passes that no stage is
about. They could be written again here, and would have to follow torch's from
then on; torch is installed anyway, with files that work on any nodes.

Python asks `Lender` after all its other finders, so that a file of fx always
comes first. Some modules are not about graphs but about symbolic sizes, and
torch itself compares with their classes: fake tensors ask whether a size is a
`SymNode`. Of these there must be one copy only, so that
`fx.experimental.symbolic_shapes` is the very module of torch.

A file of fx may have fewer names than torch's file has. The others are found in
a *twin* of it: `fx.experimental.optimization_of_torch` is torch's file
`optimization.py`, loaded in the same way.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Final

import torch.fx

from ...compat.first_use import load
from ...use_def.values import AnyValue

__all__ = ["Lender", "install", "names_of"]

SHARED: Final = frozenset(
    {"fx.tensor_type"}
    | {
        f"fx.experimental.{name}"
        for name in (
            *("_backward_state", "_config", "_constant_symnode"),
            *("_dynamism", "_size_hinting", "_spec_binding", "dynamic_spec"),
            *("recording", "sym_node", "symbolic_shapes", "validator"),
        )
    }
)
"""Modules that are torch's own, and not loaded a second time."""

_COMPILER: Final = "it is a part of Dynamo, which works on graphs of torch.fx"

NOT_LENT: Final = {
    "fx._graph_pickler": "fx pickles its graphs by itself: pickle.dumps(graph)",
    "fx.passes._tensorify_python_scalars": _COMPILER,
    "fx.passes.regional_inductor": _COMPILER,
    "fx.passes.regional_inductor_invoke_subgraph": _COMPILER,
    "fx.passes.runtime_assert": _COMPILER,
    "fx.passes.tests": "these are tests that torch ships",
}
"""Modules that are out, and why: imported, they would fail later."""

TWIN: Final = "_of_torch"
"""What stands behind the name of a module of fx in that of its twin."""


class _Shared(Loader):
    """Gives a module of torch in place of a new one."""

    def exec_module(self, module: ModuleType) -> None:
        """Put torch's module where Python looks for the new one.

        It takes what it finds there when a module has been loaded. Handed over
        at the beginning, torch's module, which is in use, would be written to.
        """
        name = module.__name__
        sys.modules[name] = importlib.import_module(f"torch.{name}")


class Lender(MetaPathFinder):
    """Finds files of torch.fx for modules that fx has not."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Where torch's file for a module of fx is; None if it has none.

        Raises:
            ModuleNotFoundError: torch has it, but it is of no use to fx.
        """
        package, *parts = fullname.removesuffix(TWIN).split(".")
        if package != "fx" or not parts:
            return None
        if why := NOT_LENT.get(fullname):
            raise ModuleNotFoundError(
                f"No module named {fullname!r}: {why} (torch.{fullname})",
                name=fullname,
            )
        stem = Path(torch.fx.__path__[0], *parts)
        inner = stem / "__init__.py"
        file = inner if inner.exists() else stem.with_suffix(".py")
        if not file.exists():
            return None
        shared = fullname in SHARED
        loader: Loader = (
            _Shared()
            if shared
            else load("extra.lending.renaming.LentLoader")(fullname, str(file))
        )
        # As a package it has no folder: Python itself would find the files in
        # that, and not rename anything.
        spec = ModuleSpec(
            fullname, loader, origin=str(file), is_package=file == inner
        )
        spec.has_location = not shared
        return spec


def install() -> None:
    """Let Python ask a `Lender`, after all the finders that it has."""
    if not any(isinstance(finder, Lender) for finder in sys.meta_path):
        sys.meta_path.append(Lender())


def names_of(module: str) -> Callable[[str], AnyValue]:
    """What a module of fx does for a name that it lacks: look in its twin.

    It is meant as the module's `__getattr__` (PEP 562), which Python calls.

    Args:
        module: its dotted name, such as "fx.experimental.optimization".

    Returns:
        A function that finds what torch's file of this name has: its own
        names, in which `torch.fx` means fx. For any other name it raises
        AttributeError.
    """

    def find(name: str) -> AnyValue:
        try:
            if not name.startswith("__"):
                return vars(importlib.import_module(f"{module}{TWIN}"))[name]
        except KeyError:
            pass
        raise AttributeError(
            f"module {module!r} has no attribute {name!r}, and neither has "
            f"torch.{module}, which lends what fx has not"
        )

    return find
