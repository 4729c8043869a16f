"""PyTorch's compilers on a graph module, beside eager execution.

What `torch.compile` and `torch.export` take is a module, and a graph module
is one: a trace can be compiled, as a network can be.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import Final, NamedTuple, cast

import torch
from torch import nn
from torch.utils import _pytree as pytree

from fx.use_def.values import AnyValue

BACKENDS: Final = ("eager", "aot_eager")
"""Backends of torch.compile that need nothing besides torch."""

HAS_COMPILER: Final = any(map(shutil.which, ("g++", "clang++")))
"""Whether there is what "inductor" compiles its kernels with."""

EXPORT: Final = "export"


class Step(NamedTuple):
    """What a step of training gives.

    Attributes:
        results: the tensors that the module returns.
        gradients: of those parameters that it uses, by name.
        buffers: what is in its buffers afterwards, by name.
    """

    results: list[torch.Tensor]
    gradients: dict[str, torch.Tensor]
    buffers: dict[str, torch.Tensor]


def step(module: nn.Module, inputs: Sequence[torch.Tensor]) -> Step:
    """Call a module and differentiate; its buffers are put back."""
    before = {name: each.clone() for name, each in module.named_buffers()}
    parameters = dict(module.named_parameters())
    torch.manual_seed(0)
    results: AnyValue = pytree.tree_leaves(module(*inputs))
    loss: AnyValue = sum(each.float().square().mean() for each in results)
    gradients: AnyValue = torch.autograd.grad(
        loss, list(parameters.values()), allow_unused=True
    )
    after = {name: each.clone() for name, each in module.named_buffers()}
    with torch.no_grad():
        for name, each in module.named_buffers():
            each.copy_(before[name])
    return Step(
        [each.detach() for each in results],
        {
            _plain(name): each
            for name, each in zip(parameters, gradients, strict=True)
            if each is not None
        },
        {_plain(name): each for name, each in after.items()},
    )


def compiled(
    gm: AnyValue, way: str, inputs: tuple[torch.Tensor, ...]
) -> nn.Module:
    """A graph module, exported or compiled by a backend.

    Args:
        gm: the module; its parameters are those of the result.
        way: EXPORT, or the name of a backend.
        inputs: what it is called with.
    """
    torch.compiler.reset()
    if way == EXPORT:
        exported: nn.Module = torch.export.export(gm, inputs).module()
        return exported
    made: AnyValue = torch.compile(gm, backend=way, fullgraph=True)
    return cast(nn.Module, made)


def compare(found: Step, expected: Step, *, exact: bool) -> None:
    """Raise AssertionError if two steps have not given the same.

    Args:
        found: of the compiled module.
        expected: of eager execution.
        exact: to the last bit; otherwise what `assert_close` takes as equal.
    """
    bounds: AnyValue = {"rtol": 0, "atol": 0} if exact else {}
    torch.testing.assert_close(found.results, expected.results, **bounds)
    torch.testing.assert_close(found.gradients, expected.gradients, **bounds)
    # A plain tensor of the network is a buffer of the graph module.
    buffers = {name: found.buffers[name] for name in expected.buffers}
    torch.testing.assert_close(buffers, expected.buffers, **bounds)


def _plain(name: str) -> str:
    """A name without what torch.compile puts before it."""
    return name.removeprefix("_orig_mod.")
