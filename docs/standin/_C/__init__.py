"""A stand-in for torch._C."""

from . import _nn as _nn
