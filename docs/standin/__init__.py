"""A stand-in for torch, for tracing in a browser: shapes, and no numbers.

It is put beside fx's own files under the name `torch`.  A proxy notices the
calls of these functions in the same way as those of torch.
"""

from __future__ import annotations

import math
import sys
from contextlib import ContextDecorator, nullcontext
from types import ModuleType
from typing import Final

from . import _C as _C
from . import fx as fx
from . import nn as nn
from . import overrides as overrides
from . import return_types as return_types
from . import utils as utils
from ._functions import _TYPES, MADE, of_torch, overridable, typed
from ._ops import HigherOrderOperator
from ._shapes import broadcast_tensors
from ._tensor import AnyValue as AnyValue
from ._tensor import Size as Size
from ._tensor import Tensor as Tensor
from ._tensor import device as device
from ._tensor import dtype as dtype
from ._tensor import float32 as float32
from .torch_version import TorchVersion

__version__: Final = TorchVersion("2.15.0")


DisableTorchFunctionSubclass: Final = nullcontext


@overridable
def _assert(condition: object, message: str) -> None:
    """Raise unless a condition holds: what concrete_args records."""
    if not condition:
        raise AssertionError(message)


class _Never:
    """A class of torch that has no instance here."""


class _Names:
    """Names of torch that stand for nothing here, as `torch.Tag.core`."""

    def __init__(self, **names: AnyValue) -> None:
        self.__dict__.update(names)

    def __getattr__(self, name: str) -> AnyValue:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Names()


class _Packet(_Names):
    """The class of `torch.ops.aten.add`."""


_add: Final = _Packet(Tensor=type("OpOverload", (), {})())
_cond: Final = _Names(cond=HigherOrderOperator("cond"))
ops: Final = _Names(aten=_Names(add=_add), higher_order=_cond)
compiler, Tag = _Names(), _Names()

for _name in (
    *("SymInt", "SymFloat", "SymBool", "layout", "memory_format", "qscheme"),
    *("ScriptObject", "ScriptMethod", "Generator"),
):
    globals()[_name] = type(_name, (_Never,), {"__module__": "torch"})
for _name in ("sparse_bsc", "sparse_bsr", "sparse_csc", "sparse_csr"):
    globals()[_name] = _Names()
for _name in ("strided", "contiguous_format", "channels_last"):
    globals()[_name] = _Names()
globals().update(_TYPES)
inf, nan, pi, e = math.inf, math.nan, math.pi, math.e


class no_grad(ContextDecorator, nullcontext[None]):
    """Nothing is trained here."""


class set_grad_enabled(no_grad):
    """As `no_grad`."""

    def __init__(self, mode: bool) -> None:
        super().__init__()


enable_grad = inference_mode = no_grad
cuda: Final = _Names(is_available=lambda: False, device_count=lambda: 0)
backends: Final = _Names()


def manual_seed(seed: int) -> None:
    """Of no use here: nothing is drawn."""


def is_tensor(value: object) -> bool:
    """Whether a value is a tensor."""
    return isinstance(value, Tensor)


def broadcast_shapes(*shapes: AnyValue) -> AnyValue:
    """The shape that several fit."""
    given = [s if hasattr(s, "__len__") else [s] for s in shapes]
    return broadcast_tensors(*map(Tensor, given))[0].shape


for _name in ("float", "double", "long", "int", "bool"):
    globals()[f"{_name.title()}Tensor"] = typed(_TYPES[_name])


class finfo:
    """What is known of numbers with fractions."""

    def __init__(self, type: dtype = float32) -> None:
        bits = {"float16": (10, 5), "bfloat16": (7, 8), "float32": (23, 8)}
        digits, exponent = bits.get(type.name, (52, 11))
        if not type.is_floating_point:
            raise TypeError(f"{type} has no fractions: use torch.iinfo")
        self.bits, self.dtype = 8 * type.itemsize, type.name
        self.eps = self.resolution = 2.0**-digits
        top = 2 ** (exponent - 1)
        self.max = (2 - self.eps) * 2.0 ** (top - 1)
        self.min, self.tiny = -self.max, 2.0 ** (2 - top)
        self.smallest_normal = self.tiny


class iinfo:
    """What is known of whole numbers."""

    def __init__(self, type: dtype) -> None:
        if type.category != 1:
            raise TypeError(f"{type} has no whole numbers: use torch.finfo")
        self.bits, self.dtype = 8 * type.itemsize, type.name
        signed = not type.name.startswith("u")
        self.max = 2 ** (self.bits - signed) - 1
        self.min = -self.max - 1 if signed else 0


def get_default_dtype() -> dtype:
    """The type of new tensors of fractions."""
    return float32


def typename(value: object) -> str:
    """The name of a value's class, with its module."""
    return f"{type(value).__module__}.{type(value).__qualname__}"


class _Space(ModuleType):
    """A module of torch of which only the functions' names are known."""

    def __getattr__(self, name: str) -> AnyValue:
        if name.startswith("__"):
            raise AttributeError(name)
        if made := MADE.get((self.__name__, name)):
            return made
        return of_torch(self.__name__, name)


def _space(name: str) -> AnyValue:
    return sys.modules.setdefault(name, _Space(name))


special, linalg, fft, functional = (
    _space(f"torch.{name}")
    for name in ("special", "linalg", "fft", "functional")
)
for _name in ("_special", "_linalg", "_fft"):
    setattr(_C, _name, _space(f"torch._C.{_name}"))


def __getattr__(name: str) -> AnyValue:
    """A function, made when it is first asked for."""
    if name.startswith("_"):
        raise AttributeError(name)
    return globals().setdefault(name, of_torch("torch", name))
