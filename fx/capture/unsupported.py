"""Stage 08, reinplace: what a capture must not record in silence.

A graph of operators repeats one run of a program, and two things in a program
would be wrong in it:

    ReadMode,   numbers that Python takes out of tensors; allowed are those
    Constants   that are the same in each run, such as torch.tensor(2).item()
    Constants   a tensor in memory that a node has made, if no operator has
                made the tensor (`nn.Parameter(x * 2)`)
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Final, NamedTuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode

from ..node import Node
from ..recording import frames
from ..schemas.facts import facts_of
from ..torch_private.fake_tensors import FakeTensor, unset_fake_temporarily
from ..torch_private.overloads import OpOverload
from ..torch_private.pytree import pytree
from ..use_def.values import AnyValue, Args, Function, Kwargs
from .capture import MAX_ELEMENTS, CaptureGuards, value_read

# -- numbers that are read ---------------------------------------------------


class ReadMode(TorchFunctionMode):
    """Refuses what takes data out of a tensor and runs no operator for it."""

    def __init__(self, varies: Callable[[AnyValue], bool]) -> None:
        """Make a mode.

        Args:
            varies: whether a value is a tensor that depends on the inputs.
        """
        super().__init__()
        self._varies = varies

    def __torch_function__(
        self,
        func: Function,
        types: tuple[type, ...],
        args: Args = (),
        kwargs: Kwargs | None = None,
    ) -> AnyValue:
        """Call a function of torch, unless it reads what may change."""
        kwargs = kwargs or {}
        read = _READ.get(func)
        leaves = pytree.tree_leaves(read(args, kwargs)) if read else ()
        for leaf in leaves:
            if self._varies(leaf):
                raise value_read(getattr(func, "__qualname__", func))
        if func is torch.Tensor.__repr__ and self._varies(args[0]):
            frames.warn(
                "make_fx met a tensor as text, which has the data of this one "
                "run: to print it is fine, but a value that is made of the "
                "text is a constant of the graph. Compute it from the tensor"
            )
        return func(*args, **kwargs)


def _named(holder: object, names: str) -> list[Function]:
    """Functions of a class or module, by their names."""
    return [getattr(holder, name) for name in names.split()]


_READ: Final[dict[Function, Callable[[Args, Kwargs], AnyValue]]] = {
    **dict.fromkeys(
        _named(torch.Tensor, "apply_ map_ numpy tolist __array__ __dlpack__"),
        lambda args, kwargs: (args, kwargs),
    ),
    vars(torch.Tensor.__base__)["data"].__set__: lambda args, kwargs: args,
    **dict.fromkeys(
        _named(torch.Tensor, "new new_tensor")
        + _named(torch, "as_tensor asarray tensor sparse_compressed_tensor")
        + _named(torch, "sparse_bsc_tensor sparse_bsr_tensor sparse_coo_tensor")
        + _named(torch, "sparse_csc_tensor sparse_csr_tensor"),
        # Not the tensors themselves, but those in lists.
        lambda args, kwargs: [
            value
            for value in (*args, *kwargs.values())
            if not isinstance(value, torch.Tensor)
        ],
    ),
    **dict.fromkeys(
        (torch.Tensor.__getitem__, torch.Tensor.__setitem__),
        # What is in lists inside of an index.
        lambda args, kwargs: [
            part
            for part in (args[1] if isinstance(args[1], tuple) else args[1:2])
            if isinstance(part, list)
        ],
    ),
    **dict.fromkeys(
        (torch.Tensor.tensor_split, torch.tensor_split),
        lambda args, kwargs: (args[1:], kwargs),
    ),
}
"""The functions of torch that read data past the dispatcher, and of which
arguments.  tests/reliability/capturing.py looks for others."""


# -- constants, and who has made which memory ---------------------------------


class _Claim(NamedTuple):
    """A storage, and the node that has made it, if any has.

    `nn.Parameter(x * 2)` is a new tensor in old memory.  A capture does not
    know it and would fetch it like a weight.  So a tensor that was there before
    may share storage only with others that were.
    """

    storage: AnyValue
    maker: Node | None


class _Constant(NamedTuple):
    """The value of a tensor that does not depend on the inputs.

    Attributes:
        value: another tensor with the same data, which no program writes.
        storage: identifies the storage of the captured tensor.
    """

    value: AnyValue
    storage: object


class Constants(dict[int, _Constant], CaptureGuards):
    """The constants among the tensors of a capture, by their identities."""

    def __init__(self, known: Container[int]) -> None:
        """Begin without constants.

        Args:
            known: the identities of the tensors that nodes have made.
        """
        super().__init__()
        self._known = known
        self._claims: dict[int, _Claim] = {}

    def made(self, tensor: torch.Tensor, node: Node, value: AnyValue) -> None:
        """Note the constant value of a tensor; None if it is not constant."""
        self._claim(tensor, node)
        if value is not None:
            self[id(tensor)] = _Constant(value, _storage_of(tensor))
        else:
            self.pop(id(tensor), None)

    def gone(self, key: int) -> None:
        """Forget a tensor that nobody has any more."""
        self.pop(key, None)

    def fetched(self, value: AnyValue) -> None:
        """Refuse a tensor in the memory of what a node has made.

        Raises:
            RuntimeError: it is, though no operator has made it.
        """
        maker = self._claim(value, None)
        if maker is not None:
            raise RuntimeError(
                "make_fx met a tensor in the memory of the value of "
                f"{maker}, and no operator has made it, in\n"
                f"  {frames.where()}\n"
                "  The graph would hold the data of this one run. Use an "
                "operator, such as view_as or clone, or pass the tensor as "
                "an argument."
            )

    def _claim(self, value: AnyValue, maker: Node | None) -> Node | None:
        """The node that has made a tensor's memory, if any has.

        It is noted that `maker` has, unless another node is noted; None for
        what was there before.
        """
        if not isinstance(value, torch.Tensor) or isinstance(value, FakeTensor):
            return None
        try:
            place = value.untyped_storage().data_ptr()
        except (NotImplementedError, RuntimeError):  # it has no storage
            return None
        claim = self._claims.get(place)
        if claim is None or claim.storage.expired():
            maker = maker if place else None
            claim = _Claim(_storage_of(value), maker)
            self._claims[place] = claim
        return claim.maker

    def varies(self, value: AnyValue) -> bool:
        """Whether a value is the tensor of a node, and not constant."""
        return id(value) in self._known and id(value) not in self

    def read(self, func: OpOverload, args: Args, kwargs: Kwargs) -> AnyValue:
        """What an operator computes from constants: `item` reads a number.

        Raises:
            RuntimeError: a tensor among the arguments is not constant.
        """
        if any(map(self.varies, pytree.arg_tree_leaves(*args, **kwargs))):
            raise value_read(func)

        def value(leaf: AnyValue) -> AnyValue:
            constant = self.get(id(leaf))
            return leaf if constant is None else constant.value

        args, kwargs = pytree.tree_map(value, (args, kwargs))
        with unset_fake_temporarily():
            return func(*args, **kwargs)

    def fold(
        self, func: OpOverload, args: Args, kwargs: Kwargs, result: AnyValue
    ) -> AnyValue:
        """Compute the result of an operator from the constants it takes.

        An operator that writes ends the constants in the memory it writes.

        Returns:
            The result as constant values; None if an argument is not
            constant, none is, or the operator draws random numbers.
        """
        if not self:
            return None
        facts = facts_of(func)
        leaves = [
            leaf
            for leaf in pytree.arg_tree_leaves(*args, **kwargs)
            if isinstance(leaf, torch.Tensor)
        ]
        # A tensor that no node has made may change, and must not be written
        # a second time.
        if leaves and all(id(leaf) in self for leaf in leaves):
            random = facts is None or facts.draws
            is_small = all(
                leaf.numel() <= MAX_ELEMENTS and leaf.layout is torch.strided
                for leaf in pytree.tree_leaves(result)
                if isinstance(leaf, torch.Tensor)
            )
            if is_small and not random:
                return self.read(func, args, kwargs)
        if facts is None or facts.writes:
            written = {
                _storage_of(leaf)
                for leaf in leaves
                if id(leaf) in self._known and leaf.layout is torch.strided
            }
            for key, constant in list(self.items()):
                if constant.storage in written:
                    del self[key]
        return None


def _storage_of(tensor: torch.Tensor) -> AnyValue:
    """A weak reference to a storage: no other one is ever equal to it."""
    refer: AnyValue = StorageWeakRef
    return refer(tensor.untyped_storage())
