"""Passes: a module cut into stages that run one after another in a pipeline.

A model that does not fit on one machine is cut into stages, one for each.
While the second stage works on one part of a batch, the first is busy with the
next.  A stage takes what the stage before it returns, so a value that a later
stage needs is handed through all in between:

    stage 0   x          → h, skip
    stage 1   h, skip    → h_1, skip
    stage 2   h_1, skip  → the result

`torch.distributed.pipelining` sends the values and runs the schedule.  In each
process:

    stages = cut_in_stages(gm, 4, [one_microbatch])
    stage = pipeline_stage(stages, rank)

`fx.pipeline` is a whole script.  `torchrun --nproc-per-node 4 script.py` starts
the processes; on two hosts, `torchrun --nnodes 2 --nproc-per-node 4
--rdzv-backend c10d --rdzv-endpoint HOST:PORT script.py` on each of them.  With
GPUs, say `device=f"cuda:{local_rank}"` and use the backend `nccl`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import torch
from torch import nn
from torch.distributed.pipelining import PipelineStage

from ..codegen.nested import _PyTreeCodeGen
from ..extra.effects.effects import (
    Memory,
    changes_only_itself,
    effect_by_name,
    owned,
)
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg
from ..torch_private.fake_tensors import FakeTensorMode
from ..torch_private.names import TORCH
from ..torch_private.overloads import assert_
from ..use_def.values import Argument
from .shape_prop import ShapeProp, TensorMetadata
from .tools_common import CALLABLE_NODE_OPS

__all__ = ["by_parameters", "cut_in_stages", "pipeline_stage"]


def by_parameters(node: Node) -> float:
    """How many numbers the parameters have that a call brings along."""
    tensors = (tensor for _, tensor in _tensors(node))
    return float(sum(t.numel() for t in tensors if isinstance(t, nn.Parameter)))


def cut_in_stages(
    gm: GraphModule,
    count: int,
    example: Sequence[torch.Tensor],
    *,
    weigh: Callable[[Node], float] = by_parameters,
    most: int | None = None,
) -> list[GraphModule]:
    """Cut a module into stages, the heaviest of which is as light as can be.

    A cut is made only where tensors, and nothing else, go through it, and not
    between a call that makes memory and one that writes into it.  Each process
    may cut the model by itself, and comes to the same stages: shapes are found
    with fake tensors, so that neither the statistics of a model in training
    nor the random state change.

    Args:
        gm: the module. Its nodes get the notes of ShapeProp, and
            the stages share its modules and tensors.
        count: how many stages there are to be.
        example: tensors to call it with, of a microbatch.
        weigh: what a call weighs: its parameters by default, which balances
            the memory, or `times.__getitem__` of what a Profiler has measured,
            which balances the work.
        most: how many bytes may go through a cut, in each microbatch.

    Returns:
        The stages. The first takes the inputs, and the last returns what `gm`
        returns; between them are tensors, or tuples of them.

    Raises:
        ValueError: there are not that many places for a cut; two stages would
            need the same parameter or buffer; a call writes into memory that
            no call has made; the inputs are nested; or the result is not a
            tensor or a tuple of them.

    Cost: O(nodes + uses + count · values), and a run without data.
    """
    if isinstance(gm.graph._codegen, _PyTreeCodeGen):
        raise ValueError(
            "the module takes nested inputs apart, which its first stage would "
            "not do: trace it with a parameter for each tensor"
        )
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    ShapeProp(gm, mode).propagate(*example)
    _check_writes(gm)
    calls = [node for node in gm.graph.nodes if node.op in CALLABLE_NODE_OPS]
    spans = _spans(gm.graph, calls)
    fitting = _fitting(spans, len(calls), most)
    outside = _outside_of_writes(gm.graph, calls)
    places = [place for place in outside if fitting[place]]
    weights = [0.0, *accumulate(weigh(node) for node in calls)]
    cuts = [0, *lightest_cuts(weights, places, count), len(calls)]
    stage_of = {
        node: number
        for number in range(count)
        for node in calls[cuts[number] : cuts[number + 1]]
    }
    _check_shared(stage_of)
    stages = []
    for number, (start, end) in enumerate(pairwise(cuts)):
        takes = _through(spans, start) if number else ()
        through = _through(spans, end)
        gives: Argument = through[0] if len(through) == 1 else tuple(through)
        if number == count - 1:
            gives = _result(gm.graph)
        stages.append(_stage(gm, calls[start:end], takes, gives))
    return stages


def pipeline_stage(
    stages: Sequence[GraphModule],
    index: int,
    device: torch.device | str = "cpu",
    group: torch.distributed.ProcessGroup | None = None,
) -> PipelineStage:
    """One stage, for the process that runs it.

        stage = pipeline_stage(stages, torch.distributed.get_rank())
        schedule = ScheduleGPipe(stage, n_microbatches=4, loss_fn=loss)

    The stages know what they take and give.  So PyTorch need not run them to
    find out, which would count as a step for each batch norm.

    Args:
        stages: from `cut_in_stages`; each process cuts the same model.
        index: which of them this process runs.
        device: where; the stage is moved there.
        group: the processes, if not all.
    """
    place = torch.device(device)
    module = stages[index].to(place)
    takes, gives = module.meta["takes"], module.meta["gives"]
    stage = PipelineStage(
        module, index, len(stages), place, takes, gives, group=group
    )
    if TORCH.startswith("2.12.") and index:
        # It would wait for a gradient of each input, also of integers.
        stage.grad_send_info = [
            index - 1 if tensor.requires_grad else None for tensor in takes
        ]
    return stage


# -- where to cut ------------------------------------------------------------


class _Span(NamedTuple):
    """The cuts that a value goes through, from its maker to its last user."""

    value: Node
    first: int
    last: int


def _spans(graph: Graph, calls: Sequence[Node]) -> list[_Span]:
    """The values of a graph, each with the places between calls it crosses."""
    place = {node: number for number, node in enumerate(calls)}
    spans = []
    for node in graph.nodes:
        if node.op in ("get_attr", "output") or not node.users:
            continue
        last = max(place.get(user, len(calls)) for user in node.users)
        spans.append(_Span(node, place.get(node, -1) + 1, last))
    return spans


def _through(spans: Iterable[_Span], place: int) -> list[Node]:
    """The values that go through a cut, in order."""
    return [span.value for span in spans if span.first <= place <= span.last]


def _fitting(
    spans: Iterable[_Span], count: int, most: int | None
) -> list[bool]:
    """For each place, whether tensors, and nothing else, go through a cut.

    A value that is used far below goes through thousands of places, so none of
    them has a list: what begins at a place is added there, what ends is
    subtracted, and the running sums say how much goes through.

    Args:
        spans: of all values.
        count: how many calls there are.
        most: how many bytes may go through.
    """
    values, others, sizes = ([0] * (count + 2) for _ in range(3))
    for value, first, last in spans:
        size = _bytes(value)
        counts = (values, 1), (others, int(size is None)), (sizes, size or 0)
        for column, amount in counts:
            column[first] += amount
            column[last + 1] -= amount
    sums = zip(*map(accumulate, (values, others, sizes)), strict=True)
    return [
        some > 0 and other == 0 and (most is None or size <= most)
        for some, other, size in sums
    ]


def _bytes(value: Node) -> int | None:
    """How large a tensor is; None for another value."""
    noted = value.meta.get("tensor_meta")
    if not isinstance(noted, TensorMetadata):
        return None
    return noted.shape.numel() * noted.dtype.itemsize


def _outside_of_writes(graph: Graph, calls: Sequence[Node]) -> list[int]:
    """The places that are not between a memory's maker and a write into it.

    What a process gets is a copy: a ReLU in place behind the cut would not
    write into the memory of its convolution, and autograd refuses to write
    into what has just arrived.
    """
    place = {node: number for number, node in enumerate(calls)}
    closed: set[int] = set()
    for users in Memory(graph.nodes).uses():
        writes = [place[user] for user in users if effect_by_name(user).target]
        if writes:
            makers = [value for user in users for value in user.all_input_nodes]
            first = min(place[maker] for maker in makers if maker in place)
            closed.update(range(first + 1, max(writes) + 1))
    return [cut for cut in range(1, len(calls)) if cut not in closed]


# -- even cuts ---------------------------------------------------------------


def lightest_cuts(
    weights: Sequence[float], places: Sequence[int], count: int
) -> list[int]:
    """The cuts with which the heaviest stage is as light as can be.

    A pipeline is as fast as its slowest stage.  The weight of that is found by
    bisection, and sixty halvings leave nothing to choose between.

    Args:
        weights: of all calls before each place; not falling.
        places: where a cut may be, in order.
        count: how many stages there are.

    Raises:
        ValueError: there are fewer places than cuts.

    Cost: O(places + count · log places).
    """
    if len(places) < count - 1 or count < 1:
        raise ValueError(
            f"the graph can be cut at {len(places)} places, which does not "
            f"give {count} stages: elsewhere nothing, more than tensors or "
            "more than `most` bytes would go through, or a write would be cut "
            "off"
        )
    ends = [*places, len(weights) - 1]
    low, high = 0.0, weights[-1]
    cuts = places[: count - 1]
    for _ in range(60):
        middle = (low + high) / 2
        fitting = _within(weights, ends, count, middle)
        if fitting is None:
            low = middle
        else:
            high, cuts = middle, fitting
    return list(cuts)


def _within(
    weights: Sequence[float], ends: Sequence[int], count: int, limit: float
) -> list[int] | None:
    """Cuts with which no stage weighs more than a limit, if there are any.

    One stage after another is filled as far as the limit allows.
    """
    totals = [weights[end] for end in ends]
    limit = limit * (1 + 1e-9) + 1e-9
    cuts: list[int] = []
    start, done = 0.0, -1
    for left in range(count - 1, 0, -1):
        reach = bisect_right(totals, start + limit) - 1
        # Each of the stages behind this one needs an end of its own.
        done = max(done + 1, min(reach, len(ends) - 1 - left))
        if totals[done] - start > limit:
            return None
        cuts.append(ends[done])
        start = totals[done]
    return cuts if totals[-1] - start <= limit else None


# -- what cannot be cut ------------------------------------------------------


def _check_writes(gm: GraphModule) -> None:
    """Raise if a call writes into memory that no call of the graph has made.

    A user's function is trusted to change nothing.
    """
    memory = Memory(gm.graph.nodes)
    for node in gm.graph.nodes:
        if node.op not in CALLABLE_NODE_OPS or changes_only_itself(node):
            continue
        effect = effect_by_name(node)
        if effect.target is None and effect.kind != "impure":
            continue
        only_raises = node.target is assert_
        known = effect.only_draws or only_raises or memory.is_made_here(node)
        if not known:
            raise ValueError(
                f"{node} may change what another stage has: {effect.reason}"
            )


def _check_shared(stage_of: dict[Node, int]) -> None:
    """Raise if two stages need one tensor.

    A parameter in two processes would get half of its gradient in each.  A
    model whose first and last layers share weights can be cut so that both are
    in one stage, or not at all.
    """
    seen: dict[int, tuple[int, str]] = {}
    for node, stage in stage_of.items():
        for path, tensor in _tensors(node):
            first, name = seen.setdefault(id(tensor), (stage, path))
            if first != stage:
                also = "" if name == path else f", there as {name}"
                raise ValueError(
                    f"{path} is used in stage {stage} and in stage "
                    f"{first}{also}: each process would change its own copy. "
                    "Use another number of stages, or another weigh="
                )


def _tensors(node: Node) -> Iterator[tuple[str, torch.Tensor]]:
    """The parameters and buffers that a call needs, with their paths."""
    fetched = [n for n in node.all_input_nodes if n.op == "get_attr"]
    for holder in (node, *fetched):
        value, path = owned(holder), str(holder.target)
        if isinstance(value, nn.Module):
            yield from value.named_parameters(path)
            yield from value.named_buffers(path)
        elif isinstance(value, torch.Tensor):
            yield path, value


def _result(graph: Graph) -> Argument:
    """What the graph returns."""
    result = graph.output_node().args[0]
    values = result if isinstance(result, tuple | list) else (result,)
    if not all(isinstance(v, Node) and _bytes(v) is not None for v in values):
        raise ValueError(
            f"the result {result} cannot be sent: return a tensor, or a tuple "
            "of them"
        )
    return result


def _stage(
    gm: GraphModule,
    calls: Iterable[Node],
    takes: Iterable[Node],
    gives: Argument,
) -> GraphModule:
    """The module of a stage; the first one takes what `gm` takes."""
    graph = Graph()
    copies: dict[Node, Node] = {}
    for node in takes:
        copies[node] = graph.placeholder(node.name, node.type)
        copies[node].meta = node.meta.copy()
    if not copies:
        for node in gm.graph.find_nodes(op="placeholder"):
            copies[node] = graph.node_copy(node)

    def copy_of(node: Node) -> Node:
        if node not in copies:  # a fetched attribute
            copies[node] = graph.node_copy(node)
        return copies[node]

    for node in calls:
        for value in node.all_input_nodes:
            copy_of(value)
        copies[node] = graph.node_copy(node, copy_of)
    graph.output(map_arg(gives, copy_of))
    stage = GraphModule(gm, graph)
    inputs = graph.find_nodes(op="placeholder")
    results = graph.output_node().all_input_nodes
    stage.meta["takes"] = tuple(_like(node) for node in inputs)
    stage.meta["gives"] = tuple(_like(node) for node in results)
    return stage


def _like(node: Node) -> torch.Tensor | None:
    """A tensor without data, like the value of a node."""
    noted = node.meta.get("tensor_meta")
    if not isinstance(noted, TensorMetadata):
        return None
    like = torch.empty_strided(
        noted.shape, noted.stride, dtype=noted.dtype, device="meta"
    )
    return like.requires_grad_(noted.requires_grad)
