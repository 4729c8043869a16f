"""A stand-in for torch: the same numbers in another shape, and new tensors."""

from __future__ import annotations

import math
from collections.abc import Iterable
from operator import index

from ._rules import (
    alike,
    dtype_of,
    floats,
    int_index,
    known,
    need,
    places,
    refuse,
)
from ._tensor import (
    AnyValue,
    NoRule,
    OutOfRange,
    Tensor,
    bool_,
    broadcast,
    device,
    dtype,
    float32,
    int64,
)


def sizes_of(sizes: tuple[AnyValue, ...]) -> list[int]:
    """Sizes that are given one by one, or as one list."""
    alone = len(sizes) == 1 and isinstance(sizes[0], (tuple, list))
    found = [*sizes[0]] if alone else [*sizes]
    need(*(type(one) is int for one in found))
    return found


def resized(input: Tensor, at: int, *sizes: int) -> Tensor:
    """A tensor with other sizes in place of one."""
    head, tail = input.shape[:at], input.shape[at + 1 :]
    return Tensor([*head, *sizes, *tail], input.dtype)


# --- the same numbers -------------------------------------------------------


def reshape(input: Tensor, *shape: AnyValue) -> Tensor:
    """The same numbers in another shape."""
    whole = sizes_of(shape)
    sizes, rest = list(whole), -math.prod(whole)
    need(all(size >= -1 for size in sizes), sizes.count(-1) < 2)
    if -1 in sizes:
        need(rest)
        sizes[sizes.index(-1)] = input.numel() // rest
    if math.prod(sizes) != input.numel():
        refuse(
            f"shape {whole} is invalid for {input.numel()} numbers, those of "
            f"shape {list(input.shape)}"
        )
    return Tensor(sizes, input.dtype)


def reshaped(input: Tensor, shape: AnyValue) -> Tensor:
    """As `reshape`, with the sizes in one list."""
    return reshape(input, [*shape])


def view(input: Tensor, *shape: AnyValue) -> Tensor:
    """As `reshape`; numbers out of order may only have dimensions split."""
    found = reshape(input, *shape)
    need(input.packed or _splits(input.shape, found.shape))
    return found


def _splits(old: Iterable[int], new: Iterable[int]) -> bool:
    """Whether each old dimension is the product of some new ones."""
    sizes = [size for size in new if size != 1]
    for size in old:
        whole = 1
        while whole < size and sizes:
            whole *= sizes.pop(0)
        if whole != size:
            return False
    return not sizes


def view_as(input: Tensor, other: Tensor) -> Tensor:
    """As `view`, in the shape of another."""
    return view(input, *other.shape)


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Several dimensions as one."""
    start, end = known(start_dim, input.ndim), known(end_dim, input.ndim)
    if start > end:
        refuse(f"flatten from {start} to {end}")
    inner = math.prod(input.shape[start : end + 1])
    shape = [*input.shape[:start], inner, *input.shape[end + 1 :]]
    return Tensor(shape, input.dtype)


def unflatten(input: Tensor, dim: int, sizes: AnyValue) -> Tensor:
    """One dimension as several."""
    at = known(dim, input.ndim)
    need(input.ndim)
    inner = reshape(Tensor([input.shape[at]]), [*sizes])
    return resized(input, at, *inner.shape)


def permute(input: Tensor, *dims: AnyValue) -> Tensor:
    """Dimensions in another order."""
    order = places(sizes_of(dims), input.ndim)
    if len(order) != input.ndim:
        refuse(f"permute of {input.ndim} dimensions to {len(order)}")
    return Tensor([input.shape[at] for at in order], input.dtype)


def permuted(input: Tensor, dims: AnyValue) -> Tensor:
    """As `permute`, with the dimensions in one list."""
    return permute(input, [*dims])


def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two dimensions exchanged."""
    a, b = known(dim0, input.ndim), known(dim1, input.ndim)
    shape = list(input.shape)
    if shape:
        shape[a], shape[b] = shape[b], shape[a]
    return Tensor(shape, input.dtype)


def movedim(input: Tensor, source: int, destination: int) -> Tensor:
    """One dimension in another place."""
    a, b = known(source, input.ndim), known(destination, input.ndim)
    shape = list(input.shape)
    shape.insert(b, shape.pop(a))
    return Tensor(shape, input.dtype)


def t(input: Tensor) -> Tensor:
    """The transposed matrix."""
    if input.ndim > 2:
        refuse(f"t() of {input.ndim} dimensions")
    return backwards(input)


def turned(input: Tensor) -> Tensor:
    """As `t`, of matrices only."""
    need(input.ndim in (0, 2))
    return backwards(input)


def backwards(input: Tensor) -> Tensor:
    """All dimensions in the other order."""
    return Tensor(reversed(input.shape), input.dtype)


def transposed(input: Tensor) -> Tensor:
    """The last two dimensions exchanged."""
    need(input.ndim > 1)
    return transpose(input, -2, -1)


def squeeze(input: Tensor, dim: AnyValue = None) -> Tensor:
    """Without dimensions of size 1."""
    found = range(input.ndim) if dim is None else places(dim, input.ndim)
    shape = [
        size
        for at, size in enumerate(input.shape)
        if size != 1 or at not in found
    ]
    return Tensor(shape, input.dtype)


def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """With one more dimension."""
    at = known(dim, input.ndim + 1)
    shape = [*input.shape[:at], 1, *input.shape[at:]]
    return Tensor(shape, input.dtype)


def expand(input: Tensor, *size: AnyValue) -> Tensor:
    """As if repeated."""
    whole = sizes_of(size)
    missing = len(whole) - input.ndim
    if missing < 0 or -1 in whole[:missing]:
        refuse(f"{list(input.shape)} cannot be expanded to {whole}")
    padded = [1] * missing + list(input.shape)
    shape = [b if a == -1 else a for a, b in zip(whole, padded, strict=True)]
    if any(b not in (1, a) for a, b in zip(shape, padded, strict=True)):
        refuse(f"{list(input.shape)} cannot be expanded to {whole}")
    return Tensor(shape, input.dtype)


def broadcast_to(input: Tensor, size: AnyValue) -> Tensor:
    """As `expand`, with the sizes in one list."""
    return expand(input, [*size])


def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """As `expand`, to the shape of another."""
    return expand(input, *other.shape)


def repeat(input: Tensor, *repeats: AnyValue) -> Tensor:
    """Several times."""
    times = sizes_of(repeats)
    missing = len(times) - input.ndim
    if missing < 0:
        refuse(f"{input.ndim} dimensions, and repeats of {len(times)}")
    padded = [1] * missing + list(input.shape)
    shape = [a * b for a, b in zip(times, padded, strict=True)]
    need(all(one >= 0 for one in times))
    return Tensor(shape, input.dtype)


def repeat_interleave(
    input: Tensor, repeats: int, dim: int | None = None
) -> Tensor:
    """Each several times."""
    need(repeats >= 0, input.ndim)
    if dim is None:
        return Tensor([input.numel() * repeats], input.dtype)
    at = known(dim, input.ndim)
    return resized(input, at, input.shape[at] * repeats)


def flip(input: Tensor, *dims: AnyValue) -> Tensor:
    """In the other order."""
    need(dims)
    places(sizes_of(dims), input.ndim)
    return alike(input)


def flipped(input: Tensor, dims: AnyValue) -> Tensor:
    """As `flip`, with the dimensions in one list."""
    return flip(input, [*dims])


def triangle(input: Tensor, diagonal: int = 0) -> Tensor:
    """One half of a matrix."""
    need(input.ndim > 1)
    return alike(input)


def diagonal(
    input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """The diagonal."""
    need(offset == 0)
    gone = places([dim1, dim2], input.ndim)
    rest = [n for at, n in enumerate(input.shape) if at not in gone]
    return Tensor([*rest, min(input.shape[at] for at in gone)], input.dtype)


# --- some of them -----------------------------------------------------------


def taken(input: Tensor, place: AnyValue | None) -> Tensor:
    """What an index takes."""
    left, result = list(input.shape), list[int]()
    lists: list[tuple[int, list[int]]] = []
    for one in _indices(input, place):
        if one is None:
            result.append(1)
        elif isinstance(one, slice):
            need((one.step or 1) > 0)
            result.append(len(range(*one.indices(left.pop(0)))))
        elif isinstance(one, (Tensor, list)):
            shape = _places(one, left.pop(0))
            if shape or isinstance(one, list):
                lists.append((len(result), shape))
                result.append(0)
        elif not -left[0] <= one < left.pop(0):
            raise OutOfRange(f"index {one} is out of {list(input.shape)}")
    found = Tensor(_indexed(result, lists), input.dtype)
    whole = isinstance(place, slice) and place.step in (None, 1)
    found.packed = whole or place is None or type(place) is int
    return found


def put(input: Tensor, index: AnyValue | None, value: AnyValue) -> None:
    """Other numbers at what an index takes."""
    place = taken(input, index)
    if isinstance(value, Tensor):
        given = [1] * (place.ndim - value.ndim) + list(value.shape)
        while len(given) > place.ndim and given[0] == 1:
            del given[0]
        if broadcast(given, place.shape) != [*place.shape]:
            refuse(f"{value} does not fit into {place}")


def _indices(input: Tensor, place: AnyValue) -> list[AnyValue]:
    """An index, with slices in the place of dimensions that it leaves out."""
    indices = list(place) if isinstance(place, tuple) else [place]
    for one in indices:
        kinds = (int, slice, list, type(None), type(...))
        need(isinstance(one, Tensor) or type(one) in kinds)
        if isinstance(one, slice):
            given = (one.start, one.stop, one.step)
            ends = [end for end in given if end is not None]
            if any(hasattr(end, "node") for end in ends):
                refuse(
                    "a tensor is sliced by a traced size, which is no number "
                    "while tracing: use a number, or fx.trace of the "
                    "installed fx"
                )
            need(*(type(index(end)) is int for end in ends))
    dots = [at for at, one in enumerate(indices) if one is ...] or [
        len(indices)
    ]
    counted = sum(one is not None and one is not ... for one in indices)
    if counted > input.ndim or len(dots) > 1:
        raise OutOfRange(f"{counted} indices for {input.ndim} dimensions")
    whole = [slice(None)] * (input.ndim - counted)
    return [*indices[: dots[0]], *whole, *indices[dots[0] + 1 :]]


def _places(places: AnyValue, size: int) -> list[int]:
    """The shape of a tensor, or of nested lists, that says places."""
    if isinstance(places, Tensor):
        if places.dtype is bool_:
            raise NoRule(
                "its size depends on numbers, and here are only shapes"
            )
        return [*int_index(places).shape]
    need(*(type(one) is int for one in places))
    if any(not -size <= one < size for one in places):
        raise OutOfRange(f"an index of {places} is out of {size}")
    return [len(places)]


def _indexed(sizes: list[int], lists: list[tuple[int, list[int]]]) -> list[int]:
    """Sizes of which some were taken by lists of places."""
    if not lists:
        return sizes
    shape = broadcast(*(one for _, one in lists))
    taken = [at for at, _ in lists]
    rest = [size for at, size in enumerate(sizes) if at not in taken]
    beside = taken == [*range(taken[0], taken[0] + len(taken))]
    start = taken[0] if beside else 0
    return [*rest[:start], *shape, *rest[start:]]


def gather(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Numbers of places along a dimension."""
    at = known(dim, input.ndim)
    need(index.dtype is int64)
    pairs = [*zip(index.shape, input.shape, strict=True)]
    if any(a > b for one, (a, b) in enumerate(pairs) if one != at):
        refuse(f"an index of {list(index.shape)} for {list(input.shape)}")
    return Tensor(index.shape, input.dtype)


def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Some places of a dimension."""
    at = known(dim, input.ndim)
    need(input.ndim, int_index(index).ndim == 1)
    return resized(input, at, *index.shape)


def select(input: Tensor, dim: int, index: int) -> Tensor:
    """One place of a dimension."""
    at = known(dim, input.ndim)
    need(input.ndim)
    return taken(input, (*[slice(None)] * at, index))


def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """A part of a dimension."""
    at = known(dim, input.ndim)
    need(start >= 0)
    if not start <= start + length <= input.shape[at]:
        refuse(f"{length} from {start} on, of {input.shape[at]}")
    return resized(input, at, length)


def cat(tensors: Iterable[Tensor], dim: int = 0) -> Tensor:
    """Tensors one behind the other."""
    first, *rest = tensors
    need(*(one.ndim and one.numel() for one in (first, *rest)))
    shape, at = list(first.shape), known(dim, first.ndim)
    for one in rest:
        if [*one.shape[:at], *one.shape[at + 1 :]] != [
            *first.shape[:at],
            *first.shape[at + 1 :],
        ]:
            refuse(f"{list(first.shape)} and {list(one.shape)} do not fit")
        shape[at] += one.shape[at]
    return Tensor(shape, dtype_of(first, *rest))


def stack(tensors: Iterable[Tensor], dim: int = 0) -> Tensor:
    """Tensors on top of each other."""
    every = list(tensors)
    at = known(dim, every[0].ndim + 1)
    for one in every:
        if one.shape != every[0].shape:
            refuse(f"{list(every[0].shape)} and {list(one.shape)} differ")
    shape = every[0].shape
    return Tensor([*shape[:at], len(every), *shape[at:]], dtype_of(*every))


def split(
    tensor: Tensor, split_size_or_sections: AnyValue, dim: int = 0
) -> tuple[Tensor, ...]:
    """Parts of a tensor."""
    at = known(dim, tensor.ndim)
    whole, sizes = tensor.shape[at], split_size_or_sections
    if isinstance(sizes, int):
        need(whole, type(sizes) is int, sizes > 0)
        starts = range(0, whole, sizes)
        sizes = [min(sizes, whole - start) for start in starts]
    need(*(type(one) is int for one in sizes))
    if sum(sizes) != whole:
        refuse(f"parts of {[*sizes]} do not make {whole}")
    found = tuple(resized(tensor, at, size) for size in sizes)
    for one in found:
        one.packed = at == 0
    return found


def split_method(
    input: Tensor, split_size: AnyValue, dim: int = 0
) -> tuple[Tensor, ...]:
    """As `split`; a method has another name for the sizes."""
    return split(input, split_size, dim)


def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """So many parts of a tensor."""
    size = input.shape[known(dim, input.ndim)]
    need(chunks > 0)
    return split(input, -(-size // chunks), dim)


def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """A tensor for each place of a dimension."""
    at = known(dim, input.ndim)
    need(input.ndim)
    found = tuple(resized(input, at) for _ in range(input.shape[at]))
    for one in found:
        one.packed = at == 0
    return found


# --- new tensors ------------------------------------------------------------


def made(
    *sizes: AnyValue,
    dtype: dtype | None = None,
    device: AnyValue | None = None,
    requires_grad: bool = False,
    **named: AnyValue,
) -> Tensor:
    """A new tensor of a shape."""
    need({*named} <= {"size"}, not (sizes and named))
    need(type(requires_grad) is bool)
    need(not requires_grad or (dtype or float32).is_floating_point)
    if device is not None:
        _place(device)
    return Tensor(sizes_of(sizes or (named["size"],)), dtype or float32)


def _typed(kind: dtype, more: dict[str, AnyValue]) -> dict[str, AnyValue]:
    """Keywords, with a type unless they have one."""
    return {"dtype": kind} | more


def drawn(
    *size: AnyValue, dtype: dtype | None = None, **more: AnyValue
) -> Tensor:
    """A new tensor of fractions."""
    need((dtype or float32).is_floating_point)
    return made(*size, dtype=dtype, **more)


def full(size: AnyValue, fill_value: AnyValue, **more: AnyValue) -> Tensor:
    """A new tensor of one number."""
    kind = dtype_of(fill_value)
    need(not isinstance(fill_value, Tensor))
    return made([*size], **_typed(kind, more))


def randint(*ends: AnyValue, size: AnyValue = None, **more: AnyValue) -> Tensor:
    """A new tensor of whole numbers."""
    *numbers, last = ends
    if size is not None:
        numbers, last = [*ends], size
    need(len(numbers) in (1, 2), *(type(one) is int for one in numbers))
    low, high = [0, *numbers][-2:]
    if low >= high:
        refuse(f"randint from {low} to {high}")
    need(more.get("dtype", int64).category == 1)
    return made([*last], **_typed(int64, more))


def randperm(n: int, **more: AnyValue) -> Tensor:
    """Whole numbers in some order."""
    need("dtype" not in more)
    return made(n, dtype=int64, **more)


def eye(n: int, m: AnyValue = None, **more: AnyValue) -> Tensor:
    """A unit matrix."""
    return made(n, n if m is None else m, **more)


def linspace(start: float, end: float, steps: int, **more: AnyValue) -> Tensor:
    """Numbers at equal distances."""
    need(type(start) in (int, float), type(end) in (int, float))
    return drawn(steps, **more)


def arange(*ends: AnyValue, **more: AnyValue) -> Tensor:
    """Numbers in a row."""
    need(len(ends) in (1, 2, 3), all(type(one) in (int, float) for one in ends))
    start, end, step = (*(0, *ends)[-2:], 1) if len(ends) < 3 else ends
    if (end - start) * step < 0 or not step:
        refuse(f"no numbers from {start} to {end} by {step}")
    own = dtype_of(*ends)
    kind = more.pop("dtype", None) or own
    need(kind is not bool_, kind.category >= own.category)
    return made(math.ceil((end - start) / step), dtype=kind, **more)


def tensor(
    data: AnyValue,
    *,
    dtype: dtype | None = None,
    device: AnyValue | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A new tensor with the shape of nested lists."""
    shape, level = list[int](), [data]
    while level and all(isinstance(one, (list, tuple)) for one in level):
        shape.append(len(level[0]))
        if any(len(one) != shape[-1] for one in level):
            raise ValueError("the lists have several lengths")
        level = [inner for one in level for inner in one]
    own = dtype_of(*level) if level else float32
    need(not any(isinstance(one, Tensor) for one in level))
    kind = dtype or own
    if device is not None:
        _place(device)
    need(not requires_grad or kind.is_floating_point)
    return Tensor(shape, kind)


def like(
    input: Tensor,
    *,
    dtype: dtype | None = None,
    device: AnyValue | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A new tensor of the shape of another."""
    return made(
        [*input.shape],
        dtype=dtype or input.dtype,
        device=device,
        requires_grad=requires_grad,
    )


def drawn_like(input: Tensor, **more: AnyValue) -> Tensor:
    """As `like`, of fractions."""
    found = like(input, **more)
    floats(found)
    return found


def full_like(input: Tensor, fill_value: AnyValue, **more: AnyValue) -> Tensor:
    """As `like`, of one number."""
    need(type(fill_value) in (int, float), input.dtype is not bool_)
    return like(input, **more)


def new_made(input: Tensor, *size: AnyValue, **more: AnyValue) -> Tensor:
    """A new tensor of the type of another."""
    return made(*size, **_typed(input.dtype, more))


def new_full(input: Tensor, size: AnyValue, fill_value: float) -> Tensor:
    """As `new_made`, of one number."""
    return new_made(input, [*size])


# --- another type -----------------------------------------------------------


def contiguous(input: Tensor) -> Tensor:
    """In order."""
    return alike(input)


def is_contiguous(input: Tensor) -> bool:
    """Whether the numbers are in order."""
    need(input.packed)
    return True


def size(input: Tensor, dim: int | None = None) -> AnyValue:
    """The shape, or the size of one dimension."""
    if dim is None:
        return input.shape
    need(input.ndim)
    return input.shape[known(dim, input.ndim)]


def to(input: Tensor, *wanted: AnyValue, **more: AnyValue) -> Tensor:
    """On another device, or of another type."""
    need({*more} <= {"dtype", "device"}, wanted or more)
    kinds = [*wanted]
    if kinds and isinstance(kinds[0], (str, device)):
        _place(kinds.pop(0))
        need("device" not in more)
    if kinds or "device" in more:
        need(not (wanted and "device" in more))
        _place(more.get("device", "cpu"))
    kinds += [more["dtype"]] if more.get("dtype") else []
    need(len(kinds) < 2, len(wanted) < 2 or isinstance(kinds[0], dtype))
    kind = kinds[0] if kinds else input
    kind = kind.dtype if isinstance(kind, Tensor) else kind
    need(isinstance(kind, dtype))
    return Tensor(input.shape, kind)


def _place(given: AnyValue) -> None:
    """Raise unless a device is one that torch has."""
    kind = given.type if isinstance(given, device) else given
    need(kind.partition(":")[0] in ("cpu", "cuda", "mps", "xpu", "meta"))


def as_type(kind: dtype) -> AnyValue:
    """A rule for a method such as `float`."""
    return lambda input: Tensor(input.shape, kind)


def of_type(input: Tensor, dtype: dtype) -> Tensor:
    """Of a given type."""
    return to(input, dtype=dtype)


def type_as(input: Tensor, other: Tensor) -> Tensor:
    """Of the type of another."""
    return Tensor(input.shape, other.dtype)


def meshgrid(*tensors: AnyValue, indexing: str) -> tuple[Tensor, ...]:
    """The places of a grid, a tensor for each of its dimensions."""
    alone = len(tensors) == 1 and not isinstance(tensors[0], Tensor)
    given = [*tensors[0]] if alone else [*tensors]
    need(given, indexing in ("ij", "xy"), *(one.ndim < 2 for one in given))
    need(len({one.dtype for one in given}) == 1)
    sizes = [one.numel() for one in given]
    if indexing == "xy":
        sizes[:2] = sizes[1::-1]
    found = tuple(Tensor(sizes, one.dtype) for one in given)
    for one in found:
        one.packed = False
    return found


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Tensors as if repeated, to the shape that all fit."""
    shape = broadcast(*(one.shape for one in tensors))
    return tuple(Tensor(shape, one.dtype) for one in tensors)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """A 1 in the place of each number."""
    need(tensor.dtype is int64, num_classes > 0)
    return Tensor([*tensor.shape, num_classes], int64)


def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False
) -> Tensor:
    """Places, drawn by how likely they are."""
    need(floats(input), input.ndim in (1, 2))
    need(num_samples > 0 and (replacement or num_samples <= input.shape[-1]))
    return Tensor([*input.shape[:-1], num_samples], int64)
