"""Passes: a transformer in as many processes as one likes.

    torchrun --nproc-per-node 2 -m fx.pipeline

Each process makes the same model, cuts it into stages, and runs its own in a
step of training; the last one compares that with the whole model.  The models
are the same because the seed is; a real program would load the weights of one
stage in each process.
"""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import ScheduleGPipe

from ._symbolic_trace import symbolic_trace
from .passes.pipeline import cut_in_stages, pipeline_stage

__all__ = ["main"]

MICROBATCHES = 4


def transformer() -> nn.Module:
    """Numbers of words (N, T) to scores of the next word (N, T, 1000)."""
    layers = [
        nn.TransformerEncoderLayer(64, 4, 256, 0.0, batch_first=True)
        for _ in range(6)
    ]
    return nn.Sequential(nn.Embedding(1000, 64), *layers, nn.Linear(64, 1000))


def loss_of(scores: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
    """The cross entropy of the scores of each word."""
    return nn.functional.cross_entropy(scores.flatten(0, 1), words.flatten())


def main() -> int:
    """Run the stage of this process in one step, and say what it has.

    Returns:
        0 if the losses are those of the whole model; 2 without torchrun.
    """
    if "RANK" not in os.environ:
        print("run it as: torchrun --nproc-per-node 2 -m fx.pipeline")
        return 2
    dist.init_process_group("gloo")
    rank, count = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    gm = symbolic_trace(transformer())
    words = torch.randint(1000, (2 * MICROBATCHES, 16))
    whole = [loss_of(gm(part), part) for part in words.chunk(MICROBATCHES)]

    stages = cut_in_stages(gm, count, [words[:2]])
    stage = pipeline_stage(stages, rank)
    schedule = ScheduleGPipe(stage, MICROBATCHES, loss_fn=loss_of)
    losses: list[torch.Tensor] = []
    inputs = (words,) if rank == 0 else ()
    if rank == count - 1:
        schedule.step(*inputs, target=words, losses=losses)
    else:
        schedule.step(*inputs)

    size = sum(p.numel() for p in stages[rank].parameters())
    calls = stages[rank].graph.find_nodes(op="call_module")
    print(
        f"process {rank}: {len(calls)} calls, {size:,} parameters", flush=True
    )
    dist.barrier()
    dist.destroy_process_group()
    if rank < count - 1:
        return 0
    found, expected = torch.stack(losses), torch.stack(whole)
    print(f"losses in {count} processes: {found.tolist()}")
    print(f"the same in one:       {expected.tolist()}", flush=True)
    return 0 if torch.allclose(found, expected) else 1


if __name__ == "__main__":
    sys.exit(main())
