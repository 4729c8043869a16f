"""Stage 08, reinplace: where in its storage a tensor has its elements.

Two tensors in one storage with equal geometries are the same numbers, so dtype,
conjugation and sign are part of it.  Whether two strided tensors meet is a hard
problem: only the stretch from the first to the last element is compared, which
is coarse and cheap.  A tensor overlaps itself unless each stride steps over all
that the smaller ones reach: exact for usual strides, careful for those of
`as_strided`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch

from ..torch_internals import pytree
from ..torch_internals.fake_tensors import FakeTensor
from ..usedef.values import Value


class Geometry(NamedTuple):
    """Where in its storage a tensor has its elements, and what they are."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    dtype: torch.dtype
    conjugate: bool
    negative: bool

    def span(self) -> tuple[int, int]:
        """The index of the tensor's first element, and one past the last.

        Indices count elements from the beginning of the storage.
        """
        if 0 in self.size:
            return self.offset, self.offset
        steps = zip(self.size, self.stride, strict=True)
        last = sum((size - 1) * stride for size, stride in steps)
        return self.offset, self.offset + last + 1

    def overlaps_itself(self) -> bool:
        """Whether two elements may be in the same place.

        They are not if each dimension steps over all smaller dimensions.
        """
        reach = 0
        for stride, size in sorted(zip(self.stride, self.size, strict=True)):
            if size == 1:
                continue
            if stride <= reach:
                return 0 not in self.size
            reach += (size - 1) * stride
        return False

    def fills_its_span(self) -> bool:
        """Whether each place from the first to the last has an element."""
        first, end = self.span()
        whole = end - first == math.prod(self.size)
        return whole and not self.overlaps_itself()


def geometry(tensor: torch.Tensor) -> Geometry:
    """The geometry of a tensor."""
    return Geometry(
        tuple(tensor.size()),
        tensor.stride(),
        int(tensor.storage_offset()),
        tensor.dtype,
        tensor.is_conj(),
        tensor.is_neg(),
    )


def tensors_in(value: Value) -> list[torch.Tensor]:
    """The tensors in a fake value whose memory can be seen.

    Args:
        value: a tensor, a list or tuple of results, or anything else.
    """
    return [leaf for leaf in pytree.tree_leaves(value) if can_be_seen(leaf)]


def can_be_seen(tensor: torch.Tensor) -> bool:
    """Whether a tensor without data says where it has its elements.

    A sparse, nested or mkldnn tensor does not, and a subclass of Tensor that
    wraps others has a storage which is not theirs.
    """
    return (
        type(tensor) in (FakeTensor, torch.Tensor)
        and tensor.layout is torch.strided
        and not tensor.is_nested
    )


def hides_memory(value: Value) -> bool:
    """Whether there is a tensor in a fake value that `can_be_seen` denies."""
    return any(
        isinstance(leaf, torch.Tensor) and not can_be_seen(leaf)
        for leaf in pytree.tree_leaves(value)
    )


def without_data(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor on the meta device that lies in its storage as `tensor` does."""
    place = geometry(tensor)
    end = place.span()[1]
    memory = torch.empty(end, dtype=tensor.dtype, device="meta")
    return memory.as_strided(place.size, place.stride, place.offset)
