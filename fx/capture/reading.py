"""Stage 08, reinplace: data that leaves a tensor without an operator.

A capture sees operators.  `x.numpy()` is not one, nor is `nn.Parameter(x)`: the
graph would keep the data of the one run.  So a `ReadMode` refuses functions
that give data away, and `Claims` tell a tensor that is in the memory of
another, which a node has made, from one that was there before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode

from ..node import Node
from ..recording import frames
from ..torch_internals import pytree
from ..torch_internals.fake_tensors import FakeTensor
from ..usedef.values import Value
from .capture import Args, Kwargs, value_read

refer: Final[Callable[[object], Value]] = StorageWeakRef
"""A weak reference to a storage: no other one, now or later, is equal to it."""

if TYPE_CHECKING:
    from .mode import DispatchMode as FunctionMode  # likewise
else:
    FunctionMode = TorchFunctionMode


# -- memory ------------------------------------------------------------------


class _Claim(NamedTuple):
    """A storage, and the node that has made it, if any has.

    `nn.Parameter(x * 2)` is a new tensor in old memory.  A capture does not
    know it and would fetch it like a weight.  So a tensor that was there before
    may share storage only with others that were.
    """

    storage: Value
    maker: Node | None


class Claims:
    """Which node has made which memory."""

    def __init__(self) -> None:
        """Begin without any."""
        self._claims: dict[int, _Claim] = {}

    def claim(self, value: Value, maker: Node | None) -> Node | None:
        """Note who has made a tensor's memory, unless that has been noted.

        Args:
            value: the tensor, or another value.
            maker: the node that has made it; None if it was there before.

        Returns:
            The node that has made the memory, as noted first, if any has.
        """
        if not isinstance(value, torch.Tensor) or isinstance(value, FakeTensor):
            return None
        try:
            storage = value.untyped_storage()
            place = storage.data_ptr()
        except (NotImplementedError, RuntimeError):  # it has no storage
            return None
        claim = self._claims.get(place)
        if claim is None or claim.storage.expired():
            claim = _Claim(refer(storage), maker if place else None)
            self._claims[place] = claim
        return claim.maker

    def check(self, value: Value) -> None:
        """Raise if a tensor is in memory that a node has made.

        Raises:
            RuntimeError: it is, though no operator has made it.
        """
        maker = self.claim(value, None)
        if maker is not None:
            raise RuntimeError(
                "make_fx met a tensor in the memory of the value of "
                f"{maker}, and no operator has made it, in\n"
                f"  {frames.where()}\n"
                "  The graph would hold the data of this one run. Use an "
                "operator, such as view_as or clone, or pass the tensor as "
                "an argument."
            )


# -- functions ---------------------------------------------------------------


class ReadMode(FunctionMode):
    """Refuses what takes data out of a tensor and runs no operator for it."""

    def __init__(self, varies: Callable[[Value], bool]) -> None:
        """Make a mode.

        Args:
            varies: whether a value is a tensor that depends on the inputs.
        """
        super().__init__()
        self._varies = varies

    def __torch_function__(
        self,
        func: Callable[..., Value],
        types: tuple[type, ...],
        args: Args = (),
        kwargs: Kwargs | None = None,
    ) -> Value:
        """Call a function of torch, unless it reads what may change."""
        kwargs = kwargs or {}
        read = _READ.get(func)
        leaves = pytree.tree_leaves(read((args, kwargs))) if read else ()
        for leaf in leaves:
            if self._varies(leaf):
                raise value_read(getattr(func, "__qualname__", func))
        return func(*args, **kwargs)


_Given: TypeAlias = tuple[Args, Kwargs]
"""The arguments of a call."""


def _all(given: _Given) -> Value:
    """All arguments."""
    return given


def _in_lists(given: _Given) -> Value:
    """The arguments that are not tensors, but may have some in them."""
    values = [*given[0], *given[1].values()]
    return [value for value in values if not isinstance(value, torch.Tensor)]


def _but_first(given: _Given) -> Value:
    """All arguments but the first."""
    return given[0][1:], given[1]


def _in_index(given: _Given) -> Value:
    """What is in lists inside of an index."""
    index = given[0][1]
    parts = index if isinstance(index, tuple) else (index,)
    return [part for part in parts if isinstance(part, list)]


_SET_DATA: Final[Value] = vars(torch.Tensor.__base__)["data"].__set__

_READ: Final[dict[Callable[..., Value], Callable[[_Given], Value]]] = {
    **dict.fromkeys(
        (
            torch.Tensor.__array__,
            torch.Tensor.__dlpack__,
            torch.Tensor.apply_,
            _SET_DATA,
            torch.Tensor.map_,
            torch.Tensor.numpy,
            torch.Tensor.tolist,
        ),
        _all,
    ),
    **dict.fromkeys(
        (
            torch.Tensor.new,
            torch.Tensor.new_tensor,
            torch.as_tensor,
            torch.asarray,
            torch.sparse_bsc_tensor,
            torch.sparse_bsr_tensor,
            torch.sparse_compressed_tensor,
            torch.sparse_coo_tensor,
            torch.sparse_csc_tensor,
            torch.sparse_csr_tensor,
            torch.tensor,
        ),
        _in_lists,
    ),
    torch.Tensor.__getitem__: _in_index,
    torch.Tensor.__setitem__: _in_index,
    torch.Tensor.tensor_split: _but_first,
    torch.tensor_split: _but_first,
}
"""The functions of torch that read data past the dispatcher, and of which
arguments.  tests/reliability/capturing.py looks for others."""
