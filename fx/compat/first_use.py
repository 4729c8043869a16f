"""Passes: what is imported when it is first used: modules, names, methods.

`import torch` loads nearly all of torch.fx, and programs rely on it: they write
`torch.fx.passes.shape_prop` without having imported that.  Loading as much
at every `import fx` would take as long as everything else in it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping

from ..use_def.values import AnyValue

__all__ = ["Later", "importer", "load", "of_namesake"]


def importer(
    package: str, names: Mapping[str, str]
) -> Callable[[str], AnyValue]:
    """What a package does for an attribute that it lacks: import it.

    It is meant as the package's `__getattr__` (PEP 562), which Python calls.

    Args:
        package: its dotted name; each module below it can be looked up.
        names: other names that can be looked up, and the path of each: see
            `load`.

    Returns:
        A function that finds an attribute, and raises AttributeError if there
        is none.  A module that exists and fails while it is imported raises
        its own error.
    """

    def find(name: str) -> AnyValue:
        if name in names:
            return load(names[name])
        dotted = f"{package}.{name}"
        try:
            return importlib.import_module(dotted)
        except ModuleNotFoundError as error:
            if error.name != dotted:
                raise
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}"
            ) from None

    return find


def of_namesake(
    module: str, later: Mapping[str, str]
) -> Callable[[str], AnyValue]:
    """What a module at the top of fx/ does for a name that it lacks.

    Programs import a name from where they see it, and torch.fx's files see
    what they import for their own work: `TreeSpec` in `torch.fx._pytree`,
    `map_aggregate` in `torch.fx.interpreter`.  torch.fx does not document
    these, but libraries take them.  To import them in fx's files would make
    these import what they do not use, and what later stages define.

    Args:
        module: its dotted name, which is that of its namesake in torch.fx
            without "torch.".
        later: names that fx has, and the path of each: see `load`.

    Returns:
        A function that finds a name of `later`, or what the namesake imports
        from torch: fx's own, if torch.fx defines it (a Node of torch.fx would
        fit no graph), or else torch's.  For any other name it raises
        AttributeError, also for those that the namesake defines itself:
        `tests/api_surface.toml` says why fx has none of that name.
    """

    def find(name: str) -> AnyValue:
        if name in later:
            vars(sys.modules[module])[name] = found = load(later[name])
            return found
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


def load(path: str) -> AnyValue:
    """A file of fx, or what it defines, by its dotted path without "fx."."""
    parent, _, name = path.rpartition(".")
    module = importlib.import_module(f"fx.{parent}")
    if hasattr(module, name):
        return getattr(module, name)
    return importlib.import_module(f"fx.{path}")


class Later:
    """A method of a class that is imported when it is first asked for.

    From then on the class has the method itself.
    """

    def __init__(
        self, holder: type, name: str, path: str, *, static: bool = False
    ) -> None:
        """Stand for what is at a path, or for the `staticmethod` of it."""
        self._holder, self._name, self._path = holder, name, path
        self._static = static

    def __get__(self, instance: object, owner: type) -> AnyValue:
        """The method, bound as Python would bind it."""
        loaded = load(self._path)
        if self._static:
            loaded = staticmethod(loaded)
        setattr(self._holder, self._name, loaded)
        bind = getattr(type(loaded), "__get__", None)
        return loaded if bind is None else bind(loaded, instance, owner)
