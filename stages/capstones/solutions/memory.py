"""A static memory planner: the largest blocks choose their places first.

Blocks are placed from the largest to the smallest, each at the lowest offset
where it meets no block that lives at the same time ("greedy by size", Pisarchyk
and Lee, "Efficient memory management for deep neural net inference", 2020).
Where that is worse than the bound, a second order is tried: by the place of the
allocation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import torch

from fx.graph_module import GraphModule
from fx.interpreter import Interpreter
from fx.node import Node
from fx.use_def.values import AnyValue

ALIGNMENT: Final = 64


class Block(NamedTuple):
    """Memory that a node allocates, and the places between which it lives."""

    node: Node
    size: int
    first: int
    last: int


def plan(gm: GraphModule, *inputs: torch.Tensor) -> dict[Node, int]:
    """Offsets, in one buffer, of the memory that each node allocates.

    Args:
        gm: a graph of ATen operators.
        *inputs: what it will be called with, or tensors like these.
    """
    blocks = lives(gm, *inputs)
    orders: tuple[Callable[[Block], object], ...] = (
        lambda block: (-block.size, block.first),
        lambda block: (block.first, -block.size),
        lambda block: (-block.size * (block.last - block.first + 1),),
    )
    sizes = {block.node: block.size for block in blocks}
    plans = [_placed(sorted(blocks, key=order)) for order in orders]  # type: ignore[arg-type]
    return min(
        plans,
        key=lambda one: max((one[n] + sizes[n] for n in one), default=0),
    )


def lives(gm: GraphModule, *inputs: torch.Tensor) -> list[Block]:
    """The blocks that a run of a graph allocates, in order."""
    return _Lives(gm).found(inputs)


def _placed(blocks: Iterable[Block]) -> dict[Node, int]:
    """Blocks at the lowest free offsets, one after the other."""
    placed: list[tuple[int, Block]] = []  # by offset
    for block in blocks:
        start = 0
        for offset, other in placed:
            if other.first <= block.last and block.first <= other.last:
                if offset - start >= block.size:
                    break
                start = max(start, offset + other.size)
        placed.append((start, block))
        placed.sort(key=lambda pair: pair[0])
    return {block.node: offset for offset, block in placed}


class _Lives(Interpreter):
    """Finds by running a graph which nodes allocate, and until when."""

    def __init__(self, gm: GraphModule) -> None:
        super().__init__(gm, garbage_collect_values=False)
        schemas = [
            getattr(node.target, "_schema", None) for node in gm.graph.nodes
        ]
        self._writes = any(one and one.is_mutable for one in schemas)
        self._owners: dict[int, Node | None] = {}
        self._sizes: dict[Node, int] = {}
        self._lives: dict[Node, tuple[int, int]] = {}
        self._place = -1

    def found(self, inputs: Iterable[torch.Tensor]) -> list[Block]:
        """Run on copies of what the graph may write into; give the blocks."""
        with torch.no_grad():
            self.run(*(one.clone() for one in inputs))
        return [
            Block(node, size, *self._lives[node])
            for node, size in self._sizes.items()
        ]

    def get_attr(
        self, target: AnyValue, args: AnyValue, kwargs: AnyValue
    ) -> AnyValue:
        """A tensor of the module, or a copy of it.

        Args:
            target: its path.
            args: none.
            kwargs: none.
        """
        value = super().get_attr(target, args, kwargs)
        return value.clone() if self._writes else value

    def run_node(self, n: Node) -> AnyValue:
        """Run a node.

        Args:
            n: the node.
        """
        self._place += 1
        for arg in n.all_input_nodes:
            for tensor in _tensors(self.env[arg]):
                owner = self._owners.get(_key(tensor))
                if owner is not None:
                    self._lives[owner] = self._lives[owner][0], self._place
        value = super().run_node(n)
        if isinstance(value, torch.Tensor) and n.op != "output":
            size = value.untyped_storage().nbytes()
            if n.op in ("placeholder", "get_attr"):
                self._owners[_key(value)] = None
            elif _key(value) not in self._owners and size:
                self._owners[_key(value)] = n
                self._sizes[n] = -(-size // ALIGNMENT) * ALIGNMENT
                self._lives[n] = self._place, self._place
        return value


def _key(tensor: torch.Tensor) -> int:
    """Tells a storage from others while all are alive."""
    return tensor.untyped_storage().data_ptr()


def _tensors(value: AnyValue) -> Iterable[torch.Tensor]:
    """The tensors in a value."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors(item)
