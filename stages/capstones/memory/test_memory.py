"""Checks a memory planner: networks run in one buffer, as it has planned."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

import pytest
import torch

from fx.experimental.proxy_tensor import make_fx
from fx.graph_module import GraphModule
from fx.interpreter import Interpreter
from fx.node import Node
from fx.use_def.values import AnyValue
from stages.capstones.board import Board, Program, Row, timed
from stages.checking import check
from tests.zoo import ZOO, Network, borrow

ALIGNMENT: Final = 64
INPUTS: Final = ("placeholder", "get_attr")
NAMES: Final = ("resnet18", "densenet121", "unet", "gpt2", "dlrm", "fpn")
NETWORKS: Final = [one for one in ZOO if one.name in NAMES]


class Block(NamedTuple):
    """The memory that a node allocates.

    Attributes:
        node: the node.
        size: how many bytes, rounded up to the alignment.
        first: the place in the graph where it is allocated.
        last: the last place where a node uses it.
    """

    node: Node
    size: int
    first: int
    last: int


class Watching(Interpreter):
    """Runs a graph, and notes which memory each node allocates and uses."""

    def __init__(self, gm: GraphModule) -> None:
        super().__init__(gm, garbage_collect_values=False)
        self.owners: dict[int, Node | None] = {}
        self.sizes: dict[Node, int] = {}
        self.last: dict[Node, int] = {}
        self.place = -1

    def run_node(self, n: Node) -> AnyValue:
        """Run a node, and note its memory.

        Args:
            n: the node.
        """
        self.place += 1
        for arg in n.all_input_nodes:
            for tensor in tensors(self.env[arg]):
                key = tensor.untyped_storage().data_ptr()
                if owner := self.owners.get(key):
                    self.last[owner] = self.place
        value = super().run_node(n)
        self.note(n, value)
        return value

    def note(self, n: Node, value: AnyValue) -> None:
        """Note the memory of a value.

        Args:
            n: its node.
            value: the value; a tuple of tensors is noted at its items.
        """
        if n.op in INPUTS and isinstance(value, torch.Tensor):
            self.owners[value.untyped_storage().data_ptr()] = None
        elif n.op != "output" and isinstance(value, torch.Tensor):
            storage = value.untyped_storage()
            if storage.data_ptr() not in self.owners and storage.nbytes():
                self.owners[storage.data_ptr()] = n
                self.sizes[n] = -(-storage.nbytes() // ALIGNMENT) * ALIGNMENT
                self.last[n] = self.place


def tensors(value: AnyValue) -> Iterator[torch.Tensor]:
    """A tensor, or the tensors in a tuple or list."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors(item)


def blocks_of(gm: GraphModule, inputs: Sequence[torch.Tensor]) -> list[Block]:
    """The memory that the nodes of a graph allocate, in order."""
    watching = Watching(gm)
    watching.run(*inputs)
    places = {node: place for place, node in enumerate(gm.graph.nodes)}
    return [
        Block(node, size, places[node], watching.last[node])
        for node, size in watching.sizes.items()
    ]


def lower_bound(blocks: Sequence[Block]) -> int:
    """The most bytes that are in use at one place; no plan needs fewer."""
    changes: dict[int, int] = {}
    for block in blocks:
        changes[block.first] = changes.get(block.first, 0) + block.size
        changes[block.last + 1] = changes.get(block.last + 1, 0) - block.size
    used = most = 0
    for place in sorted(changes):
        used += changes[place]
        most = max(most, used)
    return most


class InBuffer(Interpreter):
    """Runs a graph with all results at their places in one buffer."""

    def __init__(
        self, gm: GraphModule, plan: dict[Node, int], owners: dict[Node, int]
    ) -> None:
        super().__init__(gm)
        self.plan = plan
        self.owners = owners
        peak = max((plan[n] + size for n, size in owners.items()), default=0)
        self.buffer = torch.full((peak,), 0xFF, dtype=torch.uint8)

    def run_node(self, n: Node) -> AnyValue:
        """Run a node, and move a new result to its place.

        Args:
            n: the node.
        """
        value = super().run_node(n)
        if n not in self.owners:
            return value
        start = self.plan[n]
        into = torch.empty(0, dtype=value.dtype).set_(
            self.buffer.untyped_storage(),
            start // value.element_size() + value.storage_offset(),
            value.size(),
            value.stride(),
        )
        return into.copy_(value)


def captured(network: Network) -> tuple[GraphModule, tuple[torch.Tensor, ...]]:
    """A network as a graph of ATen operators, and its inputs."""
    inputs = network.inputs()
    with borrow(network, training=False) as model, torch.no_grad():
        return make_fx(model)(*inputs), inputs


def complaints(plan: object, blocks: Sequence[Block]) -> Iterator[str]:
    """What is wrong with a plan at first sight."""
    if not isinstance(plan, dict):
        yield f"`plan` must return a dict, not {type(plan).__name__}."
        return
    for block in blocks:
        start = plan.get(block.node)
        if not isinstance(start, int) or isinstance(start, bool):
            yield (
                f"{block.node} allocates {block.size} bytes, and the plan has "
                f"{start!r} for it: give each such node its offset, a number."
            )
        elif start < 0 or start % ALIGNMENT:
            yield (
                f"{block.node} is at {start}, and an offset must be a multiple "
                f"of {ALIGNMENT}, and not negative."
            )


def overlap(plan: dict[Node, int], blocks: Sequence[Block]) -> str:
    """Two blocks that are in the same bytes at the same time, or ""."""
    for index, one in enumerate(blocks):
        for other in blocks[index + 1 :]:
            together = one.first <= other.last and other.first <= one.last
            start, second = plan[one.node], plan[other.node]
            apart = start + one.size <= second or second + other.size <= start
            if together and not apart:
                return (
                    f"{one.node} ({start} to {start + one.size}, used until "
                    f"place {one.last}) and {other.node} ({second} to "
                    f"{second + other.size}, allocated at place {other.first})"
                )
    return ""


class Kept:
    """The tensors that a graph could write into, and what was in them.

    Args:
        gm: the graph.
        inputs: its inputs.
    """

    def __init__(self, gm: GraphModule, inputs: Sequence[torch.Tensor]) -> None:
        tensors = [*inputs, *gm.parameters(), *gm.buffers()]
        self.before = [(one, one.clone()) for one in tensors]

    def changed(self) -> bool:
        """Whether a tensor has other values than before."""
        return not all(torch.equal(one, then) for one, then in self.before)

    def restore(self) -> None:
        """Give each tensor the values that it had."""
        for one, then in self.before:
            if not torch.equal(one, then):
                one.copy_(then)


def checked(
    program: Program, gm: GraphModule, inputs: Sequence[torch.Tensor]
) -> tuple[int, int]:
    """The peak of a plan, and the lower bound."""
    text = str(gm.graph)
    with torch.no_grad():
        kept = Kept(gm, inputs)
        blocks = blocks_of(gm, inputs)
        kept.restore()
        plan = program.plan(gm, *inputs)
        check(
            not kept.changed() and str(gm.graph) == text,
            "`plan` changed its inputs, or the module: run a graph that "
            "writes into its inputs or into the module's tensors on copies.",
        )
        problem = next(complaints(plan, blocks), "")
        check(not problem, problem)
        both = overlap(plan, blocks)
        check(
            not both,
            f"Two values are in the same bytes: {both}. A block is as long as "
            f"the value's storage, and lives until the last use of anything "
            f"in it.",
        )
        right = [one.clone() for one in tensors((gm(*inputs), inputs))]
        kept.restore()
        sizes = {block.node: block.size for block in blocks}
        running = InBuffer(gm, plan, sizes)
        found = [*tensors((running.run(*inputs), inputs))]
        check(
            all(map(torch.equal, right, found)),
            "Run in one buffer as planned, the program gives another result.",
        )
        kept.restore()
    peak = max((plan[one.node] + one.size for one in blocks), default=0)
    return peak, lower_bound(blocks)


@pytest.mark.parametrize("network", NETWORKS, ids=lambda one: str(one.name))
def test_a_network_runs_in_one_buffer(
    network: Network, yours: Program, ours: Program, board: Board
) -> None:
    gm, inputs = captured(network)
    peak, bound = checked(yours, gm, inputs)
    best, _ = checked(ours, gm, inputs)
    with torch.no_grad():
        took = timed(*(partial(one.plan, gm, *inputs) for one in (yours, ours)))
    name = network.name
    board.rows += [
        Row(f"{name}, peak / bound", peak / bound, best / bound, ""),
        Row(f"{name}, time", *took, "ms"),
    ]
    check(
        peak <= 2 * bound,
        f"The plan needs {peak:,} bytes, and never are more than {bound:,} in "
        f"use: bytes of values that are dead must be used again.",
    )


def test_views_and_writes_share_memory(yours: Program) -> None:
    def program(x: torch.Tensor) -> object:
        one = torch.add(x, 1)
        view = one.view(-1)
        two = torch.mul(x, 2)
        three = torch.mul(x, 3)
        view.add_(1)
        return view.view(4, 4) + two.t(), three

    inputs = (torch.arange(16.0).view(4, 4),)
    checked(yours, make_fx(program)(*inputs), inputs)


def test_what_is_returned_lives_to_the_end(yours: Program) -> None:
    def program(x: torch.Tensor) -> object:
        first = torch.add(x, 1)
        rest = x
        for number in range(5):
            rest = torch.mul(rest, number + 1)
        return [first, rest.view(-1), x]

    inputs = (torch.arange(16.0),)
    checked(yours, make_fx(program)(*inputs), inputs)


def test_several_results_and_none(yours: Program) -> None:
    def program(x: torch.Tensor) -> object:
        values, places = torch.max(x, 1)
        left, right = torch.split(torch.exp(x), 2, 1)
        torch.neg(x)  # nobody uses it, and it needs a place all the same
        return left @ right.t() + values, places

    inputs = (torch.arange(16.0).view(4, 4),)
    checked(yours, make_fx(program)(*inputs), inputs)
    checked(yours, make_fx(lambda x: x.view(-1))(*inputs), inputs)


def test_a_program_that_writes_into_its_inputs(yours: Program) -> None:
    count = torch.zeros(4, 4)

    def program(x: torch.Tensor, y: torch.Tensor) -> object:
        x.view(-1).mul_(2)
        one = torch.exp(x)
        one.add_(y.copy_(one))
        return one * 2 + count, y

    inputs = (torch.ones(4, 4), torch.ones(4, 4))
    gm = make_fx(program)(*inputs)
    (constant,) = gm.graph.find_nodes(op="get_attr")
    with gm.graph.inserting_after(constant):
        gm.graph.call_function(torch.ops.aten.add_.Tensor, (constant, 1))
    gm.recompile()
    checked(yours, gm, inputs)


def test_a_storage_is_longer_than_the_value(yours: Program) -> None:
    def program(x: torch.Tensor) -> object:
        wide = torch.empty_strided((16,), (16,)).copy_(x)
        other = torch.exp(x)
        return wide * other + torch.neg(x)

    inputs = (torch.arange(16.0) / 16,)
    checked(yours, make_fx(program)(*inputs), inputs)


def random_program(seed: int) -> tuple[GraphModule, torch.Tensor]:
    """A program of views, writes and values of many sizes, and its input."""
    chance = random.Random(seed)

    def program(x: torch.Tensor) -> object:
        values = [torch.neg(x)]
        for _ in range(40):
            one, other = chance.choices(values, k=2)
            kind = chance.randrange(6)
            if kind == 0:
                values.append(one.reshape(-1)[: chance.randrange(1, 400)])
            elif kind == 1:
                values.append(one.mul_(0.5))
            else:
                both = torch.cat([one.view(-1), other.view(-1)])
                values.append(both[-chance.randrange(1, 400) :].exp())
        return [values[-1], chance.choice(values), chance.choice(values).sum()]

    x = torch.arange(16.0) / 16
    return make_fx(program)(x), x


def test_random_programs(yours: Program, ours: Program, board: Board) -> None:
    totals = [0, 0, 0]
    for seed in range(30):
        gm, x = random_program(seed)
        peak, bound = checked(yours, gm, (x,))
        best, _ = checked(ours, gm, (x,))
        for index, each in enumerate((peak, best, bound)):
            totals[index] += each
    peak, best, bound = totals
    row = Row("30 random, peak / bound", peak / bound, best / bound, "")
    board.rows.append(row)
