"""What a trace on an example takes, beside torch.export, and its guards.

torch.fx has neither.  So the first row has `torch.export.export` in its place,
and the second a graph without guards.
"""

from __future__ import annotations

import functools

import torch
from torch import nn

import fx
from tests.benchmarks.measure import A_CALL, Made, Task
from tests.benchmarks.operations import OURS, Library, benchmark, no_slower
from tests.zoo import ZOO
from tests.zoo.resnet import resnet18

_NETWORKS = ("resnet18", "mobilenet_v2", "siamese")


@functools.cache
def _zoo() -> list[tuple[nn.Module, tuple[torch.Tensor, ...]]]:
    """Some networks of the zoo, with inputs."""
    chosen = [network for network in ZOO if network.name in _NETWORKS]
    return [(one.build().eval(), tuple(one.inputs())) for one in chosen]


@benchmark(no_slower(), sizes=(len(_NETWORKS),), full=(), unit=A_CALL)
def example_trace(lib: Library, size: int) -> Task:
    """fx.trace with fixed sizes; in torch's place, torch.export.export."""

    def run(_: Made) -> Made:
        if lib is OURS:
            return [fx.trace(net, *x, dynamic=False) for net, x in _zoo()]
        return [torch.export.export(net, x, strict=False) for net, x in _zoo()]

    return Task(run, len(_zoo()), show=len)


@benchmark(no_slower(1 / 1.05), sizes=(64,), full=(), unit=A_CALL)
def example_guarded_call(lib: Library, size: int) -> Task:
    """A call of ResNet-18 with guards, on an image; torch.fx has none."""
    net, image = resnet18().eval(), torch.zeros(1, 3, size, size)
    is_ours = lib is OURS
    gm: Made = fx.trace(net, image) if is_ours else lib.compiled(net)

    def run(_: Made) -> Made:
        with torch.no_grad():
            return gm(image)

    return Task(run, 1, show=lambda made: [*made.shape])
