"""Passes: what pickles of fx 0.2 call by names in `fx.text.pickling`."""

from __future__ import annotations

from typing import NamedTuple

import torch

from ..usedef.values import Value


class Packed(NamedTuple):
    """Now a plain tuple; see `fx.extra.saving.packing`."""

    data: bytes
    outside: list[Value]


class _Fake(NamedTuple):
    """Now a plain tuple; see `fx.extra.saving.packing`."""

    size: tuple[int, ...]
    stride: tuple[int, ...] | None
    dtype: torch.dtype
    device: torch.device
    layout: torch.layout
    requires_grad: bool
    is_parameter: bool
