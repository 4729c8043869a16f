"""Stage 08, reinplace: tensors whose value is the same in each run.

`torch.tensor(2.0).item()` may be asked for while a graph is captured, because
the number does not depend on the inputs.  For such small tensors `Constants`
keeps the value, computes along with operators that take only constants, and
drops a constant when an operator writes into its memory.

Only tensors of one element are kept.  A number that depends on an input is
refused, because Python would go on with it and no node would say so: the graph
would be right for this one input and silently wrong for all others.
"""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

import torch

from ..node import Node
from ..schemas.facts import facts_of
from ..torch_internals import pytree
from ..torch_internals.fake_tensors import unset_fake_temporarily
from ..torch_internals.overloads import OpOverload
from ..usedef.values import Value
from .capture import MAX_ELEMENTS, Args, Guards, Kwargs, value_read
from .reading import Claims, refer


class _Constant(NamedTuple):
    """The value of a tensor that does not depend on the inputs.

    Attributes:
        value: another tensor with the same data, which no program writes.
        storage: identifies the storage of the captured tensor.
    """

    value: Value
    storage: object


class Constants(dict[int, _Constant], Guards):
    """The constants among the tensors of a capture, by their identities."""

    def __init__(self, known: Container[int]) -> None:
        """Begin without constants.

        Args:
            known: the identities of the tensors that nodes have made.
        """
        super().__init__()
        self._known = known
        self._claims = Claims()

    def made(self, tensor: torch.Tensor, node: Node, value: Value) -> None:
        """Note the constant value of a tensor; None if it is not constant."""
        self._claims.claim(tensor, node)
        if value is not None:
            self[id(tensor)] = _Constant(value, _storage_of(tensor))
        else:
            self.pop(id(tensor), None)

    def gone(self, key: int) -> None:
        """Forget a tensor that nobody has any more."""
        self.pop(key, None)

    def fetched(self, value: Value) -> None:
        """Refuse a tensor in the memory of what a node has made."""
        self._claims.check(value)

    def varies(self, value: Value) -> bool:
        """Whether a value is the tensor of a node, and not constant."""
        return id(value) in self._known and id(value) not in self

    def read(self, func: OpOverload, args: Args, kwargs: Kwargs) -> Value:
        """What an operator computes from constants: `item` reads a number.

        Raises:
            RuntimeError: a tensor among the arguments is not constant.
        """
        if any(map(self.varies, pytree.arg_tree_leaves(*args, **kwargs))):
            raise value_read(func)

        def value(leaf: Value) -> Value:
            constant = self.get(id(leaf))
            return leaf if constant is None else constant.value

        args, kwargs = pytree.tree_map(value, (args, kwargs))
        with unset_fake_temporarily():
            return func(*args, **kwargs)

    def fold(
        self, func: OpOverload, args: Args, kwargs: Kwargs, result: Value
    ) -> Value:
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
            if not random and _is_small(result):
                return self.read(func, args, kwargs)
        if facts is None or facts.writes:
            self._end_written(leaves)
        return None

    def _end_written(self, leaves: list[torch.Tensor]) -> None:
        """Drop the constants that share storage with one of some tensors."""
        storages = {
            _storage_of(leaf)
            for leaf in leaves
            if id(leaf) in self._known and leaf.layout is torch.strided
        }
        for key, constant in list(self.items()):
            if constant.storage in storages:
                del self[key]


def _is_small(value: Value) -> bool:
    """Whether all tensors in a result are small enough to be constants."""
    leaves = pytree.tree_leaves(value)
    return all(
        leaf.numel() <= MAX_ELEMENTS and leaf.layout is torch.strided
        for leaf in leaves
        if isinstance(leaf, torch.Tensor)
    )


def _storage_of(tensor: torch.Tensor) -> object:
    """Identifies a storage: no other one, now or later, is equal to it."""
    return refer(tensor.untyped_storage())
