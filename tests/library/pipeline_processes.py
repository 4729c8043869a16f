"""A pipeline of several processes beside one process: prints what differs.

    python -m tests.library.pipeline_processes bert 4 gpipe float64

Each child process makes the network and runs one stage; then the parent, alone,
runs the same microbatches through the whole network and compares loss, result
and gradients.  How the children start, and whether by a fork, does not matter.
"""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import Schedule1F1B, ScheduleGPipe

import fx
from fx.passes.pipeline import cut_in_stages, pipeline_stage
from fx.use_def.values import AnyValue
from tests.zoo.bert import Bert
from tests.zoo.resnet import BasicBlock, ResNet

MICROBATCHES = 4


def bert() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """A small transformer; its mask goes through every cut."""
    model = Bert(50, 8, 16, 4, 4, 0.0)
    words = torch.randint(1, 50, (8, 8))
    return model, (words, torch.zeros_like(words), torch.ones_like(words))


def resnet() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """A small ResNet: skip connections, batch norms, and ReLUs in place."""
    model = ResNet(BasicBlock, (1, 1, 1, 1), 10)
    return model, (torch.randn(8, 3, 32, 32),)


NETWORKS: dict[str, Callable[[], tuple[nn.Module, tuple[torch.Tensor, ...]]]]
NETWORKS = {"bert": bert, "resnet": resnet}


def made(name: str, dtype: torch.dtype) -> AnyValue:
    """The traced network and its inputs, the same in each process."""
    torch.manual_seed(0)
    model, inputs = NETWORKS[name]()
    cast = [x.to(dtype) if x.is_floating_point() else x for x in inputs]
    return fx.symbolic_trace(model.to(dtype)), cast


def loss_of(output: AnyValue, target: torch.Tensor) -> torch.Tensor:
    """A loss of all results."""
    results = output if isinstance(output, tuple | list) else (output,)
    total: torch.Tensor = sum(
        (each * target.mean()).square().mean() for each in results
    )
    return total


def child(
    rank: int,
    count: int,
    schedule: str,
    folder: Path,
    name: str,
    dtype: torch.dtype,
) -> None:
    """Run one stage of a training step, and save what it has."""
    torch.set_num_threads(1)
    untyped: AnyValue = dist
    store = untyped.FileStore(str(folder / "store"), count)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=count)
    gm, inputs = made(name, dtype)
    stages = cut_in_stages(gm, count, [each[:2] for each in inputs])
    stage = pipeline_stage(stages, rank)
    kinds: AnyValue = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}
    run = kinds[schedule](
        stage, MICROBATCHES, loss_fn=loss_of, scale_grads=False
    )
    target = torch.ones(8, dtype=next(gm.parameters()).dtype)
    losses: list[torch.Tensor] = []
    last = rank == count - 1
    given = {"target": target, "losses": losses} if last else {}
    output = run.step(*(inputs if rank == 0 else ()), **given)
    torch.save(
        {
            "gradients": {
                name: each.grad
                for name, each in stages[rank].named_parameters()
            },
            "buffers": dict(stages[rank].named_buffers()),
            "output": output if last else None,
            "losses": losses,
        },
        folder / f"{rank}.pt",
    )
    dist.barrier()
    dist.destroy_process_group()


def main(name: str, count: int, schedule: str, dtype: torch.dtype) -> int:
    """Start the processes, wait for them, and compare."""
    folder = Path(tempfile.mkdtemp())
    children = [
        multiprocessing.Process(
            target=child, args=(rank, count, schedule, folder, name, dtype)
        )
        for rank in range(count)
    ]
    for each in children:
        each.start()
    for each in children:
        each.join()
    codes = [each.exitcode for each in children]
    if any(codes):
        print("failed:", codes)
        return 1
    found = [torch.load(folder / f"{rank}.pt") for rank in range(count)]
    gm, inputs = made(name, dtype)
    target = torch.ones(8, dtype=dtype)
    losses, outputs = [], []
    for part in zip(*(x.chunk(MICROBATCHES) for x in inputs), strict=True):
        outputs.append(gm(*part))
        losses.append(loss_of(outputs[-1], target[:2]))
        last_loss: AnyValue = losses[-1]
        last_loss.backward()
    bound: AnyValue = {"rtol": 1e-4, "atol": 1e-6}
    if dtype == torch.float64:
        bound["rtol"] = 0
    gradients = {k: v for each in found for k, v in each["gradients"].items()}
    expected = {k: v.grad for k, v in gm.named_parameters()}
    assert gradients.keys() == expected.keys()
    torch.testing.assert_close(gradients, expected, **bound)
    buffers = {k: v for each in found for k, v in each["buffers"].items()}
    torch.testing.assert_close(buffers, dict(gm.named_buffers()), **bound)
    torch.testing.assert_close(found[-1]["losses"], losses, **bound)
    whole: AnyValue = outputs
    if isinstance(outputs[0], tuple):
        whole = tuple(torch.cat(each) for each in zip(*outputs, strict=True))
    else:
        whole = torch.cat(outputs)
    torch.testing.assert_close(found[-1]["output"], whole, **bound)
    print(f"{len(gradients)} gradients in {count} processes as in one")
    return 0


if __name__ == "__main__":
    _, network, processes, kind, precision = sys.argv
    sys.exit(main(network, int(processes), kind, getattr(torch, precision)))
