"""Extra: `torch.iinfo` and `torch.finfo`, which take a proxy for a dtype.

    torch.iinfo(x.dtype).max      255, whatever the dtype of x will be

Both are classes written in C, and read a number at one place of the object that
they are given, whatever that object is.  Where a dtype has its number, a proxy
has something else: the answer is about uint8 or, with Python 3.14, sometimes
about a dtype by chance.  So a class that refuses proxies stands in for each of
them while traces run.

A function in its place would do for the program that is traced.  But libraries
that are imported meanwhile put both classes into sets, and ask `type(value) in
…` or `isinstance`, and may keep what they got.  So the class that stands in is
equal to the original, makes what the original makes, and has the same
instances.

torch.fx: proxy.py, Attribute; a trace calls the original with one of these, and
255 becomes a constant of the graph.
"""

from __future__ import annotations

from typing import Final

import torch

from ...proxy import Proxy
from ...use_def.values import AnyValue

LIMITS: Final = {id(kind): kind for kind in (torch.finfo, torch.iinfo)}
"""The two classes, by identity: programs import them by name."""


class _StandIn(type):
    """The class of what stands in for a class."""

    original: type

    def __call__(cls, *args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        """Make what the original makes.

        Raises:
            TypeError: a proxy is given for the dtype.
        """
        for value in (*args, *kwargs.values()):
            if isinstance(value, Proxy):
                raise TypeError(
                    f"torch.{cls.__name__} takes a dtype, and {value} is a "
                    "proxy"
                )
        return cls.original(*args, **kwargs)

    def __instancecheck__(cls, instance: object) -> bool:
        """Whether it is one of the original's."""
        return isinstance(instance, cls.original)

    def __eq__(cls, other: object) -> bool:
        """Whether it is this class, or the original."""
        return other is cls.original or type.__eq__(cls, other)

    def __hash__(cls) -> int:
        """The hash of the original."""
        return hash(cls.original)


def stand_in(original: type) -> AnyValue:
    """A class that stands in for one of the two."""
    members = {"original": original, "__module__": original.__module__}
    return _StandIn(original.__name__, (), members)
