"""What a trace on an example takes, beside torch.export, and its guards.

torch.fx has neither.  So the first rows have `torch.export.export` in its
place, and the last a graph without guards.  Most of a trace is torch's own
work: beside it the same networks run on the same tensors without data, and
nothing is recorded.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final

import torch
from torch import nn
from torch.export import Dim
from torch.func import functional_call
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    StatelessSymbolicContext,
)

import fx
from fx.torch_private.fake_tensors import FakeTensorMode, python_dispatcher
from fx.torch_private.symbolic_sizes import new_env, settings
from tests.benchmarks.measure import A_CALL, Made, Task
from tests.benchmarks.operations import (
    OURS,
    Beside,
    Library,
    benchmark,
    no_slower,
)
from tests.zoo import ZOO
from tests.zoo.resnet import resnet18

NETWORKS = ("resnet18", "mobilenet_v2", "siamese")


@functools.cache
def zoo() -> list[tuple[nn.Module, tuple[torch.Tensor, ...]]]:
    """Some networks of the zoo, with inputs."""
    chosen = [network for network in ZOO if network.name in NETWORKS]
    return [(one.build().eval(), tuple(one.inputs())) for one in chosen]


def _traced(lib: Library, *, free: bool) -> Task:
    """Trace each network; in torch's place, torch.export.export."""

    def run(_: Made) -> Made:
        if lib is OURS:
            return [fx.trace(net, *x, dynamic=free) for net, x in zoo()]
        return [_exported(net, x, free=free) for net, x in zoo()]

    return Task(run, len(zoo()), show=len)


def _exported(net: nn.Module, given: Made, *, free: bool) -> Made:
    """What torch.export makes of a network."""
    dims = [
        {place: Dim.AUTO for place, size in enumerate(x.shape) if size > 1}
        for x in given
    ]
    shapes: Made = {"dynamic_shapes": tuple(dims)} if free else {}
    return torch.export.export(net, given, strict=False, **shapes)


def _floor(free: bool) -> Callable[[int], Task]:
    """Run each network on tensors without data, and record nothing."""

    def run(_: Made) -> Made:
        with settings(), python_dispatcher():
            return [_without_data(net, x, free=free) for net, x in zoo()]

    return lambda size: Task(run, len(zoo()), show=len)


def _without_data(net: nn.Module, given: Made, *, free: bool) -> Made:
    """What a network gives for tensors without data."""
    mode = FakeTensorMode(
        allow_non_fake_inputs=True,
        shape_env=new_env(
            lambda text, value, late: None, lambda _: None, lambda _: None
        ),
    )
    mode.cache_enabled = not free
    held: dict[str, torch.Tensor] = {
        name: mode.from_tensor(tensor, static_shapes=True)
        for name, tensor in net.state_dict(keep_vars=True).items()
    }
    inputs = [
        mode.from_tensor(x, symbolic_context=_all_free(x))
        if free
        else mode.from_tensor(x, static_shapes=True)
        for x in given
    ]
    with mode:
        return functional_call(net, held, (*inputs,))


def _all_free(x: torch.Tensor) -> Made:
    """What tells torch that all sizes of a tensor may vary."""
    return StatelessSymbolicContext([DimDynamic.DYNAMIC] * x.dim())


_example = functools.partial(
    benchmark, no_slower(), sizes=(len(NETWORKS),), full=(), unit=A_CALL
)
_BESIDE: Final = "tensors without data alone"


@_example(beside=Beside(_BESIDE, _floor(free=False)))
def example_trace(lib: Library, size: int) -> Task:
    """fx.trace with fixed sizes; in torch's place, torch.export.export."""
    return _traced(lib, free=False)


@_example(beside=Beside(_BESIDE, _floor(free=True)))
def example_trace_free(lib: Library, size: int) -> Task:
    """fx.trace with free sizes; in torch's place, torch.export.export."""
    return _traced(lib, free=True)


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
