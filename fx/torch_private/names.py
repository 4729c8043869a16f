"""Stage 02, use-def: look up a private name of torch, or say what needs it.

    HigherOrderOperator = find("torch._ops:HigherOrderOperator", needed_for="…")

If the installed torch has the name, that is the object itself, and costs
nothing afterwards.  If not, it is a class with no instances: `isinstance` is
False, a class below it can be written, and whoever calls it or reads something
from it gets a `MissingName` that says which feature needs it.

If fx imported private names at the top of its files, a user who upgrades torch
could not import fx at all, although most programs need none of them.  For the
same reason torch has no upper bound.
"""

from __future__ import annotations

import pkgutil
from typing import Final, NamedTuple, NoReturn

import torch
from torch.torch_version import TorchVersion

from ..use_def.values import AnyValue

OLDEST_TORCH: Final = "2.9"
"""The oldest torch that fx works with."""

TESTED_TORCH: Final = (OLDEST_TORCH, "2.15")
"""The oldest and the newest torch that fx was tested with."""


def checked_version(version: TorchVersion) -> TorchVersion:
    """The version of torch, if it is not too old for fx.

    Raises:
        ImportError: it is older than OLDEST_TORCH.
    """
    if version < OLDEST_TORCH:
        raise ImportError(
            f"fx needs torch {OLDEST_TORCH} or newer, and this is torch "
            f"{version}: pip install 'torch>={OLDEST_TORCH}'"
        )
    return version


TORCH: Final = checked_version(torch.__version__)
"""The version of the torch that is installed."""


class PrivateName(NamedTuple):
    """A private name of torch that fx looks up.

    Attributes:
        path: the module, a colon, and the name in it; or a module alone.
        since: the first version of torch that has it there, of those that fx
            works with.
        what: the feature that needs it, or what is different without it.
        found: whether the torch that is installed has it.
    """

    path: str
    since: str
    what: str
    found: bool


LOOKED_UP: Final[list[PrivateName]] = []
"""Each name that was looked up so far, for whoever asks what torch lacks."""


class MissingName(RuntimeError):
    """Something of fx was used that needs a name which torch does not have."""


class _Missing(type):
    """The class of what `find` gives for a name that torch does not have."""

    entry: PrivateName

    def _refuse(cls) -> NoReturn:
        path, since, feature, _ = cls.entry
        name = path.replace(":", ".")
        oldest, newest = TESTED_TORCH
        raise MissingName(
            f"fx needs {name} for {feature}, and torch {TORCH} has no such "
            f"name, as torch {since} has. fx was tested with torch {oldest} "
            f"to {newest}: install one of these, or a newer fx. Everything "
            "else works."
        )

    def __call__(cls, *args: AnyValue, **kwargs: AnyValue) -> NoReturn:
        """Refuse to be called, or to make an instance."""
        cls._refuse()

    def __getattr__(cls, name: str) -> NoReturn:
        """Raise MissingName for any attribute."""
        if name[:2] == "__":  # Python's own questions, such as `__wrapped__`
            raise AttributeError(name)
        cls._refuse()


def find(path: str, *, needed_for: str, since: str = OLDEST_TORCH) -> AnyValue:
    """The object of torch at a path with a private name in it.

    Args:
        path: the module, a colon, and the name in it: "torch._ops:OpOverload";
            or a module alone.
        needed_for: the feature that needs it, as a noun phrase.
        since: the first version of torch that has it there, if fx works with
            older ones.

    Returns:
        The object, or a class with no instances that raises MissingName when
        it is called, or asked for an attribute.
    """
    found = find_or(path, None, since=since, without=needed_for)
    if found is not None:
        return found
    return _Missing("Missing", (), {"entry": LOOKED_UP[-1]})


def find_or(
    path: str, default: AnyValue, *, without: str, since: str = OLDEST_TORCH
) -> AnyValue:
    """The object of torch at a path, or something that does as well.

    Args:
        path: as for `find`.
        default: what stands in for it.
        without: what is different with the default.
        since: as for `find`.
    """
    try:
        value = pkgutil.resolve_name(path)
    except (ImportError, AttributeError):
        LOOKED_UP.append(PrivateName(path, since, without, found=False))
        return default
    LOOKED_UP.append(PrivateName(path, since, without, found=True))
    return value
