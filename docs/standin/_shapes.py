"""A stand-in for torch: the same numbers in another shape, and new tensors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from operator import index

from . import _rules as rules
from ._forms import needs_place
from ._rules import (
    Rule,
    alike,
    dtype_of,
    floats,
    int_index,
    known,
    need,
    places,
    refuse,
    resized,
    same,
)
from ._tensor import (
    AnyValue,
    NoRule,
    OutOfRange,
    Tensor,
    bool_,
    broadcast,
    dtype,
    float32,
    int64,
)

Sizes = Sequence[int]


# --- the same numbers -------------------------------------------------------


def reshape(x: Tensor, shape: Sizes) -> Tensor:
    """The same numbers in another shape."""
    sizes, rest = list(shape), -math.prod(shape)
    need(all(size >= -1 for size in sizes), sizes.count(-1) < 2)
    if -1 in sizes:
        need(rest)
        sizes[sizes.index(-1)] = x.numel() // rest
    if math.prod(sizes) != x.numel():
        refuse(
            f"shape {[*shape]} is invalid for {x.numel()} numbers, those of "
            f"shape {list(x.shape)}"
        )
    return Tensor(sizes, x.dtype)


def view(x: Tensor, shape: Sizes) -> Tensor:
    """As `reshape`; numbers out of order may only have dimensions split."""
    found = reshape(x, shape)
    if not (x.packed or _splits(x.shape, found.shape)):
        raise NoRule(
            "the order in memory, on which view depends, is not known to the "
            "small torch: write reshape"
        )
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


def flatten(x: Tensor, start_dim: int, end_dim: int) -> Tensor:
    """Several dimensions as one."""
    start, end = known(start_dim, x.ndim), known(end_dim, x.ndim)
    if start > end:
        refuse(f"flatten from {start} to {end}")
    inner = math.prod(x.shape[start : end + 1])
    return Tensor([*x.shape[:start], inner, *x.shape[end + 1 :]], x.dtype)


def unflatten(x: Tensor, dim: int, sizes: Sizes) -> Tensor:
    """One dimension as several."""
    at = known(dim, x.ndim)
    need(x.ndim)
    return resized(x, at, *reshape(Tensor([x.shape[at]]), sizes).shape)


def permute(x: Tensor, dims: Sizes) -> Tensor:
    """Dimensions in another order."""
    order = places(dims, x.ndim)
    if len(order) != x.ndim:
        refuse(f"permute of {x.ndim} dimensions to {len(order)}")
    return Tensor([x.shape[at] for at in order], x.dtype)


def transpose(x: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two dimensions exchanged."""
    a, b = known(dim0, x.ndim), known(dim1, x.ndim)
    shape = list(x.shape)
    if shape:
        shape[a], shape[b] = shape[b], shape[a]
    return Tensor(shape, x.dtype)


def t(x: Tensor) -> Tensor:
    """The transposed matrix."""
    if x.ndim > 2:
        refuse(f"t() of {x.ndim} dimensions")
    return backwards(x)


def turned(x: Tensor) -> Tensor:
    """As `t`, of matrices only."""
    need(x.ndim in (0, 2))
    return backwards(x)


def backwards(x: Tensor) -> Tensor:
    """All dimensions in the other order."""
    return Tensor(reversed(x.shape), x.dtype)


def transposed(x: Tensor) -> Tensor:
    """The last two dimensions exchanged."""
    need(x.ndim > 1)
    return transpose(x, -2, -1)


def squeeze(x: Tensor, dim: AnyValue = None) -> Tensor:
    """Without dimensions of size 1."""
    found = range(x.ndim) if dim is None else places(dim, x.ndim)
    sizes = enumerate(x.shape)
    return Tensor([n for at, n in sizes if n != 1 or at not in found], x.dtype)


def unsqueeze(x: Tensor, dim: int) -> Tensor:
    """With one more dimension."""
    at = known(dim, x.ndim + 1)
    return Tensor([*x.shape[:at], 1, *x.shape[at:]], x.dtype)


def expand(x: Tensor, size: Sizes, implicit: bool = False) -> Tensor:
    """As if repeated."""
    missing = len(size) - x.ndim
    padded = [1] * missing + list(x.shape)
    pairs = [*zip(size, padded, strict=False)]
    fits = all(b in (1, a) or a == -1 for a, b in pairs)
    if missing < 0 or -1 in size[:missing] or not fits:
        refuse(f"{list(x.shape)} cannot be expanded to {[*size]}")
    return Tensor([b if a == -1 else a for a, b in pairs], x.dtype)


def repeat(x: Tensor, times: Sizes) -> Tensor:
    """Several times."""
    missing = len(times) - x.ndim
    if missing < 0:
        refuse(f"{x.ndim} dimensions, and repeats of {len(times)}")
    need(all(one >= 0 for one in times))
    pairs = zip(times, [1] * missing + list(x.shape), strict=True)
    return Tensor([a * b for a, b in pairs], x.dtype)


def repeat_interleave(
    x: Tensor, repeats: int, dim: int | None, size: None
) -> Tensor:
    """Each several times."""
    need(repeats >= 0, x.ndim, size is None)
    if dim is None:
        return Tensor([x.numel() * repeats], x.dtype)
    at = known(dim, x.ndim)
    return resized(x, at, x.shape[at] * repeats)


def flip(x: Tensor, dims: Sizes) -> Tensor:
    """In the other order."""
    places(dims, x.ndim)
    return alike(x)


def triangle(x: Tensor, diagonal: int) -> Tensor:
    """One half of a matrix."""
    need(x.ndim > 1)
    return alike(x)


def diagonal(x: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    """The diagonal."""
    need(offset == 0)
    gone = places([dim1, dim2], x.ndim)
    rest = [n for at, n in enumerate(x.shape) if at not in gone]
    return Tensor([*rest, min(x.shape[at] for at in gone)], x.dtype)


def tiled(x: Tensor, times: Sequence[int]) -> Tensor:
    """Several times, the last dimensions first."""
    return repeat(x, [1] * (x.ndim - len(times)) + [*times])


def moved(x: Tensor, source: AnyValue, target: AnyValue) -> Tensor:
    """Several dimensions in other places."""
    a, b = rules.places(source, x.ndim), rules.places(target, x.ndim)
    need(len(a) == len(b))
    rest = [at for at in range(x.ndim) if at not in a]
    for to, at in sorted(zip(b, a, strict=True)):
        rest.insert(to, at)
    return permute(x, rest)


def parted(x: Tensor, count: int, dim: int) -> AnyValue:
    """As many parts as are asked for, the first of which are larger."""
    size = x.shape[known(dim, x.ndim)]
    need(count > 0)
    sizes = [size // count + (at < size % count) for at in range(count)]
    return split(x, sizes, dim)


def side_by_side(least: int, at: int) -> Rule:
    """Tensors with at least so many dimensions, one behind the other."""

    def rule(tensors: Sequence[Tensor]) -> Tensor:
        dims = {one.ndim for one in tensors}
        need(len(dims) == 1)
        if least == 1:
            return cat(tensors, at if dims != {1} else 0)
        need(min(dims))
        shape = [lifted(one.shape, at) for one in tensors]
        pairs = zip(shape, tensors, strict=True)
        return cat([Tensor(a, b.dtype) for a, b in pairs], at)

    return rule


def lifted(shape: Sequence[int], at: int) -> Sequence[int]:
    """A vector as a matrix, a row if they are put below each other."""
    return shape if len(shape) > 1 else [1, *shape] if at == 0 else [*shape, 1]


def corner(turn: int) -> Rule:
    """The places of one half of a matrix."""

    def rule(row: int, col: int, offset: int, kind: AnyValue) -> Tensor:
        need(row >= 0, col >= 0, kind in (None, int64))
        lower = [min(max(at + offset + turn, 0), col) for at in range(row)]
        count = sum(lower) if turn else row * col - sum(lower)
        return Tensor([2, count], int64)

    return rule


def rolled(x: Tensor, shifts: Sequence[int], dims: Sequence[int]) -> Tensor:
    """Moved around."""
    need(shifts, len(shifts) == len(dims) or (len(shifts) == 1 and not dims))
    for dim in dims:
        need(x.ndim)
        known(dim, x.ndim)
    return alike(x)


def cornered(x: Tensor, offset: int) -> Tensor:
    """A vector as the diagonal of a matrix, or the diagonal of one."""
    need(x.ndim in (1, 2), offset == 0)
    return (
        diagonal(x, 0, 0, 1) if x.ndim == 2 else Tensor(2 * [*x.shape], x.dtype)
    )


def shuffled(x: Tensor, groups: int) -> Tensor:
    """Channels in another order."""
    need(x.ndim > 2, groups > 0, x.numel(), x.shape[1] % groups == 0)
    return alike(x)


def unshuffled(x: Tensor, by: int) -> Tensor:
    """An image as more channels."""
    need(x.ndim > 2, x.numel(), by > 0)
    *lead, channels, high, wide = x.shape
    need(high % by == wide % by == 0)
    return Tensor([*lead, channels * by**2, high // by, wide // by], x.dtype)


# --- some of them -----------------------------------------------------------


def taken(x: Tensor, place: AnyValue | None) -> Tensor:
    """What an index takes."""
    left, result = list(x.shape), list[int]()
    lists: list[tuple[int, list[int]]] = []
    for one in _indices(x, place):
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
            raise OutOfRange(f"index {one} is out of {list(x.shape)}")
    found = Tensor(_indexed(result, lists), x.dtype)
    whole = isinstance(place, slice) and place.step in (None, 1)
    found.packed = whole or place is None or type(place) is int
    return found


def put(x: Tensor, index: AnyValue | None, value: AnyValue) -> None:
    """Other numbers at what an index takes."""
    place = taken(x, index)
    if isinstance(value, Tensor):
        given = [1] * (place.ndim - value.ndim) + list(value.shape)
        while len(given) > place.ndim and given[0] == 1:
            del given[0]
        if broadcast(given, place.shape) != [*place.shape]:
            refuse(f"{value} does not fit into {place}")


def _indices(x: Tensor, place: AnyValue) -> list[AnyValue]:
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
    if counted > x.ndim or len(dots) > 1:
        raise OutOfRange(f"{counted} indices for {x.ndim} dimensions")
    whole = [slice(None)] * (x.ndim - counted)
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


def gather(x: Tensor, dim: int, index: Tensor, sparse: bool) -> Tensor:
    """Numbers of places along a dimension."""
    at = known(dim, x.ndim)
    need(index.dtype is int64)
    pairs = [*zip(index.shape, x.shape, strict=True)]
    if any(a > b for one, (a, b) in enumerate(pairs) if one != at):
        refuse(f"an index of {list(index.shape)} for {list(x.shape)}")
    return Tensor(index.shape, x.dtype)


def index_select(x: Tensor, dim: int, index: Tensor) -> Tensor:
    """Some places of a dimension."""
    at = known(dim, x.ndim)
    need(x.ndim, int_index(index).ndim == 1)
    return resized(x, at, *index.shape)


def select(x: Tensor, dim: int, index: int) -> Tensor:
    """One place of a dimension."""
    at = known(dim, x.ndim)
    need(x.ndim)
    return taken(x, (*[slice(None)] * at, index))


def narrow(x: Tensor, dim: int, start: int, length: int) -> Tensor:
    """A part of a dimension."""
    at = known(dim, x.ndim)
    need(start >= 0)
    if not start <= start + length <= x.shape[at]:
        refuse(f"{length} from {start} on, of {x.shape[at]}")
    return resized(x, at, length)


def cat(tensors: Sequence[Tensor], dim: int) -> Tensor:
    """Tensors one behind the other."""
    need(*(one.ndim and one.numel() for one in tensors))
    at = known(dim, tensors[0].ndim)
    whole = sum(one.shape[at] for one in tensors)
    shapes = [resized(one, at, whole).shape for one in tensors]
    if len({*shapes}) > 1:
        refuse(f"{[[*one.shape] for one in tensors]} do not fit")
    return Tensor(shapes[0], dtype_of(*tensors))


def stack(tensors: Sequence[Tensor], dim: int) -> Tensor:
    """Tensors on top of each other."""
    shape = tensors[0].shape
    at = known(dim, len(shape) + 1)
    if any(one.shape != shape for one in tensors):
        refuse(f"{[[*one.shape] for one in tensors]} differ")
    return Tensor([*shape[:at], len(tensors), *shape[at:]], dtype_of(*tensors))


def split(x: Tensor, sizes: AnyValue, dim: int) -> tuple[Tensor, ...]:
    """Parts of a tensor."""
    at = known(dim, x.ndim)
    whole = x.shape[at]
    if type(sizes) is int:
        need(whole, sizes > 0)
        sizes = [min(sizes, whole - at) for at in range(0, whole, sizes)]
    need(*(type(one) is int for one in sizes))
    if sum(sizes) != whole:
        refuse(f"parts of {[*sizes]} do not make {whole}")
    return cut(tuple(resized(x, at, size) for size in sizes), at)


def cut(parts: tuple[Tensor, ...], at: int) -> tuple[Tensor, ...]:
    """Parts along a dimension, in order if it is the first."""
    for one in parts:
        one.packed = at == 0
    return parts


def chunk(x: Tensor, chunks: int, dim: int) -> tuple[Tensor, ...]:
    """So many parts of a tensor."""
    need(chunks > 0)
    return split(x, -(-x.shape[known(dim, x.ndim)] // chunks), dim)


def unbind(x: Tensor, dim: int) -> tuple[Tensor, ...]:
    """A tensor for each place of a dimension."""
    at = known(dim, x.ndim)
    need(x.ndim)
    return cut(tuple(resized(x, at) for _ in range(x.shape[at])), at)


def scattered(
    x: Tensor, dim: int, index: Tensor, src: AnyValue, *settings: AnyValue
) -> Tensor:
    """Numbers put at places along a dimension."""
    at = known(dim, x.ndim)
    need(index.dtype is int64, x.ndim == index.ndim > 0, index.numel())
    need(x.numel())
    if isinstance(src, Tensor):
        same(x, src)
        need(src.ndim == x.ndim)
        pairs = zip(index.shape, src.shape, strict=True)
        need(all(a <= b for a, b in pairs))
    else:
        need(rules.dtype_of(src).category <= x.dtype.category)
    pairs = zip(index.shape, x.shape, strict=True)
    need(all(a <= b for one, (a, b) in enumerate(pairs) if one != at))
    reduce = settings[0] if settings else "sum"
    need(reduce in ("sum", "prod", "mean", "amax", "amin"))
    return alike(x)


def added_at(
    x: Tensor, dim: int, index: Tensor, src: AnyValue, factor: AnyValue = 1
) -> Tensor:
    """Rows put at places of a dimension."""
    at = known(dim, x.ndim)
    need(rules.int_index(index).ndim == 1, x.ndim)
    if isinstance(src, Tensor):
        same(x, src)
        need(src.shape == resized(x, at, *index.shape).shape)
        need(index.dtype is int64)
    need(rules.dtype_of(factor).category <= x.dtype.category)
    return alike(x)


def filled_at(x: Tensor, dim: int, index: Tensor, value: AnyValue) -> Tensor:
    """One number put at places of a dimension."""
    need(rules.shape_of(value) == (), index.dtype is int64)
    need(rules.dtype_of(value).category <= x.dtype.category)
    need(x.dtype is not bool_)
    return added_at(x, dim, index, 1)


def picked(x: Tensor, index: Tensor) -> Tensor:
    """Numbers by their places in all."""
    need(x.numel(), index.dtype is int64)
    return Tensor(index.shape, x.dtype)


def windows(x: Tensor, dim: int, size: int, step: int) -> Tensor:
    """Parts of a dimension, which may overlap."""
    at = known(dim, x.ndim)
    need(x.ndim, 0 < size <= x.shape[at], step > 0)
    found = resized(x, at, (x.shape[at] - size) // step + 1)
    return Tensor([*found.shape, size], x.dtype)


def written(x: Tensor, src: Tensor, *settings: AnyValue) -> Tensor:
    """Numbers of another tensor."""
    need(broadcast(x.shape, src.shape) == [*x.shape])
    need(src.dtype.category <= x.dtype.category)
    return alike(x)


def filled(x: Tensor, value: AnyValue) -> Tensor:
    """One number everywhere."""
    need(rules.shape_of(value) == (), x.dtype is not bool_)
    need(rules.dtype_of(value).category <= x.dtype.category)
    return alike(x)


# --- new tensors ------------------------------------------------------------


def drawn(size: Sizes, kind: dtype | None) -> Tensor:
    """A new tensor of fractions, or of complex numbers."""
    need((kind or float32).category > 1)
    return Tensor(size, kind or float32)


def randint(low: int, high: int, size: Sizes, kind: dtype | None) -> Tensor:
    """A new tensor of whole numbers."""
    if low >= high:
        refuse(f"randint from {low} to {high}")
    need((kind or int64).category == 1)
    return Tensor(size, kind or int64)


def arange(
    start: AnyValue, end: AnyValue, step: AnyValue, kind: dtype | None
) -> Tensor:
    """Numbers in a row."""
    need(all(type(one) in (int, float) for one in (start, end, step)))
    if (end - start) * step < 0 or not step:
        refuse(f"no numbers from {start} to {end} by {step}")
    own = dtype_of(start, end, step)
    found = kind or own
    need(found is not bool_, 3 > found.category >= own.category)
    return Tensor([math.ceil((end - start) / step)], found)


def tensor(
    data: AnyValue,
    *,
    dtype: dtype | None = None,
    device: AnyValue = "cpu",
    requires_grad: bool = False,
) -> Tensor:
    """A new tensor with the shape of nested lists."""
    needs_place("cpu" if device is None else device)
    shape, level = list[int](), [data]
    while level and all(isinstance(one, (list, tuple)) for one in level):
        shape.append(len(level[0]))
        if any(len(one) != shape[-1] for one in level):
            raise ValueError("the lists have several lengths")
        level = [inner for one in level for inner in one]
    own = dtype_of(*level) if level else float32
    need(not any(isinstance(one, Tensor) for one in level))
    need(not requires_grad or (dtype or own).category > 1)
    return Tensor(shape, dtype or own)


def drawn_like(x: Tensor, kind: dtype | None) -> Tensor:
    """A new tensor of the shape of another, of fractions."""
    return drawn(x.shape, kind or x.dtype)


def full_like(x: Tensor, value: AnyValue, kind: dtype | None) -> Tensor:
    """As `drawn_like`, of one number."""
    need(type(value) in (int, float), x.dtype is not bool_)
    return Tensor(x.shape, kind or x.dtype)


def normal(mean: AnyValue, std: AnyValue, *more: AnyValue) -> Tensor:
    """Drawn around a mean."""
    if more:
        return drawn(*more)
    need(isinstance(std, Tensor) or std >= 0)
    return rules.of_all(mean, std)


# --- another type -----------------------------------------------------------


def is_contiguous(x: Tensor) -> bool:
    """Whether the numbers are in order."""
    need(x.packed)
    return True


def size(x: Tensor, dim: int) -> int:
    """The size of one dimension."""
    need(x.ndim)
    return x.shape[known(dim, x.ndim)]


def cast(x: Tensor, kind: AnyValue) -> Tensor:
    """Of another type, or that of another tensor."""
    return Tensor(x.shape, kind.dtype if isinstance(kind, Tensor) else kind)


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


def one_hot(x: Tensor, num_classes: int) -> Tensor:
    """A 1 in the place of each number."""
    need(x.dtype is int64, num_classes > 0)
    return Tensor([*x.shape, num_classes], int64)


def multinomial(x: Tensor, count: int, replacement: bool) -> Tensor:
    """Places, drawn by how likely they are."""
    need(floats(x), x.ndim in (1, 2))
    need(count > 0 and (replacement or count <= x.shape[-1]))
    return Tensor([*x.shape[:-1], count], int64)
