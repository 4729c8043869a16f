"""Stage 02, use-def: look up a private name of torch, or say what lacks it.

    OpOverload = find("torch._ops:OpOverload", since="1.10", needed_for="…")

If the installed torch has the name, that is the object itself, and costs
nothing afterwards.  If not, it is a class with no instances: `isinstance` is
False, a class below it can be written, and whoever calls it or reads something
from it gets a `MissingName` that says which feature needs it.
"""

from __future__ import annotations

import pkgutil
from typing import Final, NoReturn

import torch

from ..usedef.values import Value

OLDEST_TORCH: Final = "2.9"
"""The oldest torch that fx works with."""

TESTED_TORCH: Final = (OLDEST_TORCH, "2.15")
"""The oldest and the newest torch that fx was tested with."""


def checked_version(version: str) -> str:
    """The version of torch, if it is not too old for fx.

    Raises:
        ImportError: it is older than OLDEST_TORCH.
    """
    if torch.torch_version.TorchVersion(version) < OLDEST_TORCH:
        raise ImportError(
            f"fx needs torch {OLDEST_TORCH} or newer, and this is torch "
            f"{version}: pip install 'torch>={OLDEST_TORCH}'"
        )
    return version


TORCH: Final = checked_version(torch.__version__)
"""The version of the torch that is installed."""


class MissingName(RuntimeError):
    """Something of fx was used that needs a name which torch does not have."""


class _Missing(type):
    """The class of what `find` gives for a name that torch does not have."""

    needed_for: str
    since: str

    def _refuse(cls) -> NoReturn:
        oldest, newest = TESTED_TORCH
        raise MissingName(
            f"fx needs {cls.__name__} for {cls.needed_for}, and torch {TORCH} "
            f"has no such name, as torch {cls.since} had. fx was tested with "
            f"torch {oldest} to {newest}: install one of these, or a newer "
            "fx. Everything else works."
        )

    def __call__(cls, *args: Value, **kwargs: Value) -> NoReturn:
        """Refuse to be called, or to make an instance."""
        cls._refuse()

    def __getattr__(cls, name: str) -> NoReturn:
        """Refuse to be asked for what the object would have."""
        if name[:2] == "__":  # Python's own questions, such as `__wrapped__`
            raise AttributeError(name)
        cls._refuse()


def find(path: str, *, since: str, needed_for: str) -> Value:
    """The object of torch at a path with a private name in it.

    Args:
        path: the module, a colon, and the name in it: "torch._ops:OpOverload";
            or a module alone.
        since: the first version of torch that has it there.
        needed_for: the feature that needs it, as a noun phrase.

    Returns:
        The object, or a class with no instances that raises MissingName when
        it is called, or asked for an attribute.
    """
    found = find_or(path, None, since=since, without=needed_for)
    if found is not None:
        return found
    missing = _Missing(path.replace(":", "."), (), {})
    missing.needed_for, missing.since = needed_for, since
    return missing


def find_or(path: str, default: Value, *, since: str, without: str) -> Value:
    """The object of torch at a path, or something that does as well.

    Args:
        path: as for `find`.
        default: what stands in for it.
        since: the first version of torch that has it there.
        without: what is different with the default.
    """
    try:
        return pkgutil.resolve_name(path)
    except (ImportError, AttributeError):
        return default
