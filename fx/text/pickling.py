"""Passes: what pickles of fx 0.2 call by names in `fx.text.pickling`.

A pickle names the classes that it needs, so these stay where they were.  New
pickles have plain tuples in their place.
"""

from __future__ import annotations

from typing import NamedTuple

from ..extra.saving.packing import _Fake as _Fake
from ..usedef.values import Value


class Packed(NamedTuple):
    """Now a plain tuple; see `fx.extra.saving.packing`."""

    data: bytes
    outside: list[Value]
