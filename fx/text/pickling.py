"""Passes: what pickles of fx 0.2 call by names in `fx.text.pickling`."""

from __future__ import annotations

from typing import NamedTuple

from ..extra.saving.packing import _Fake as _Fake
from ..usedef.values import Value


class Packed(NamedTuple):
    """Now a plain tuple; see `fx.extra.saving.packing`."""

    data: bytes
    outside: list[Value]
