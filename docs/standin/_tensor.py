"""A stand-in for torch: tensors that have a shape and a dtype, and no data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NoReturn, TypeAlias

AnyValue: TypeAlias = Any
"""Whatever the traced program computes with."""


class dtype:
    """A type of numbers."""

    def __init__(self, name: str, rank: int) -> None:
        """Make one; of two tensors, the type of the higher rank is taken."""
        self.name = name
        self.rank = rank

    def __deepcopy__(self, memo: AnyValue) -> dtype:
        return self  # there is one of each

    @property
    def itemsize(self) -> int:
        """The bytes of one number."""
        bits = self.name.lstrip("abcdefghijklmnopqrstuvwxyz")
        return int(bits) // 8 if bits else 1

    @property
    def category(self) -> int:
        """0 for yes or no, 1 for whole numbers, 2 for fractions, 3 complex."""
        return min(self.rank, 1) + (self.rank > 5) + self.is_complex

    @property
    def is_floating_point(self) -> bool:
        """Whether it has fractions, and is not complex."""
        return 6 <= self.rank < 10

    @property
    def is_complex(self) -> bool:
        """Whether its numbers are complex."""
        return self.rank >= 10

    def __repr__(self) -> str:
        return f"torch.{self.name}"


_NAMES = (
    "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 "
    "complex64 complex128"
)
DTYPES = tuple(dtype(name, rank) for rank, name in enumerate(_NAMES.split()))
bool_, uint8, int8, int16, int32, int64, *_others = DTYPES
float16, bfloat16, float32, float64, complex64, complex128 = _others


def real_of(kind: dtype) -> dtype:
    """The type of the parts of complex numbers; other types stay."""
    return {complex64: float32, complex128: float64}.get(kind, kind)


class NoRule(NotImplementedError):
    """A shape is asked for of which nothing is known here."""


class OutOfRange(IndexError):
    """An index or a dimension that a tensor does not have; torch refuses it."""


class device:
    """Where a tensor is; here on the CPU, whatever it is named."""

    def __init__(self, type: str, index: int | None = None) -> None:
        name, _, number = type.partition(":")
        self.type = name
        self.index = int(number) if number else index

    def __repr__(self) -> str:
        more = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{more})"

    def __eq__(self, other: object) -> bool:
        return repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


class Size(tuple[int, ...]):
    """A shape."""

    def numel(self) -> int:
        """How many numbers a tensor of this shape has."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"


def overrides(values: Iterable[AnyValue]) -> Iterator[AnyValue]:
    """The arguments, also in lists, whose class wants to be asked."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from overrides(value)
        elif not isinstance(value, (Tensor, type)) and hasattr(
            type(value), "__torch_function__"
        ):
            yield value


def is_traced(*values: AnyValue) -> bool:
    """Whether any class wants to be asked."""
    return bool([*overrides(values)])


_OF_SIZES: Final = ("zeros", "ones", "empty", "rand", "randn", "expand")


def asked(
    function: Callable[..., AnyValue],
    args: tuple[AnyValue, ...],
    kwargs: Mapping[str, AnyValue],
) -> tuple[AnyValue] | None:
    """What an argument's class makes of a call; None if no argument has one.

    Raises:
        TypeError: several sizes, the first of them traced, which torch takes
            for another form of the function.
    """
    if args and function.__name__ in _OF_SIZES:
        sizes = args[isinstance(args[0], Tensor) :]
        if len(sizes) > 1 and is_traced(sizes[0]):
            raise TypeError(
                f"{function.__name__}() takes 1 positional argument but "
                f"{len(sizes)} were given: give the sizes as one tuple"
            )
    for value in overrides((*args, *kwargs.values())):
        kind = type(value)
        given = dict(kwargs) or None  # as torch
        found = kind.__torch_function__(function, (kind,), args, given)
        if found is not NotImplemented:
            return (found,)
    return None


class Tensor:
    """A shape and a dtype: enough to be traced with, and to find shapes."""

    __module__ = "torch"
    requires_grad = False
    is_sparse = is_quantized = is_meta = is_cuda = False
    grad = None

    def __init__(
        self, shape: Iterable[int] = (), dtype: dtype = float32
    ) -> None:
        if isinstance(shape, int):
            raise NoRule("a tensor of given sizes is made by torch.empty")
        self.shape = Size(shape)
        if any(type(size) is not int for size in self.shape):
            raise NoRule("sizes are whole numbers")
        if any(size < 0 for size in self.shape):
            raise RuntimeError(f"a size of {list(self.shape)} is negative")
        self.dtype = dtype
        self.device = device("cpu")
        self.packed = True  # whether the numbers are known to be in order

    @classmethod
    def __torch_function__(
        cls,
        function: Callable[..., AnyValue],
        types: Iterable[type],
        args: tuple[AnyValue, ...] = (),
        kwargs: Mapping[str, AnyValue] | None = None,
    ) -> AnyValue:
        """What torch does by default: call the function."""
        return function(*args, **(kwargs or {}))

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return len(self.shape)

    def dim(self) -> int:
        """How many dimensions it has."""
        return len(self.shape)

    def numel(self) -> int:
        """How many numbers it has."""
        return self.shape.numel()

    ndimension, nelement = dim, numel

    @property
    def itemsize(self) -> int:
        """The bytes of one number."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of its numbers."""
        return self.numel() * self.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[AnyValue]:
        return (self[i] for i in range(len(self)))

    def __hash__(self) -> int:
        return id(self)

    __getitem__: AnyValue
    __getattr__: AnyValue

    def _no_data(self) -> NoReturn:
        raise NoRule(
            "the torch of this page computes shapes and no numbers: install "
            "fx to ask a tensor for its values"
        )

    def __bool__(self) -> bool:
        self._no_data()

    def __float__(self) -> float:
        self._no_data()

    def __int__(self) -> int:
        self._no_data()

    def item(self) -> AnyValue:
        """Its only number, which is not known here."""
        self._no_data()

    def tolist(self) -> AnyValue:
        """Its numbers, which are not known here."""
        self._no_data()

    def __repr__(self) -> str:
        return f"tensor(shape={list(self.shape)}, dtype={self.dtype})"


def broadcast(*shapes: Iterable[int]) -> list[int]:
    """The shape of an operation on tensors of several shapes."""
    result: list[int] = []
    for shape in map(list, shapes):
        longer, other = sorted((result, shape), key=len, reverse=True)
        other = [1] * (len(longer) - len(other)) + other
        pairs = [*zip(longer, other, strict=True)]
        if any(a != b and 1 not in (a, b) for a, b in pairs):
            raise RuntimeError(f"shapes {result} and {shape} do not fit")
        result = [b if a == 1 else a for a, b in pairs]
    return result
