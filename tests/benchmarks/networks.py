"""What is measured on real networks: all of `tests/zoo`, one row an operation.

A run does the operation once with each network; the size is how many there
are, and the time is the mean over them.  Their tensors are on the device
"meta", which has no memory: fx asks for shapes and paths, not for numbers.

Where torchvision is installed, each operation has a second row, for six
networks of it: `build/clients/bin/python -m tests.benchmarks --only networks`,
after `make clients`.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from importlib.util import find_spec

import torch
from torch import nn
from torch.nn import functional

from tests.benchmarks.measure import A_CALL, Made, Task
from tests.benchmarks.operations import (
    Beside,
    Library,
    at_least,
    benchmark,
    out_of_date,
)
from tests.clients import vision
from tests.zoo import ZOO, Inputs

__all__ = ["SIZES", "each_network", "networks"]

_TORCHVISIONS = (
    "convnext_tiny",
    "efficientnet_b0",
    "mobilenet_v3_large",
    "resnet18",
    "swin_t",
    "vit_b_16",
)
SIZES = (
    (len(ZOO), len(_TORCHVISIONS)) if find_spec("torchvision") else (len(ZOO),)
)


@cache
def networks(size: int) -> Sequence[tuple[nn.Module, Inputs]]:
    """Each network, in evaluation mode, with inputs for it.

    Args:
        size: how many: all of the zoo, or those of torchvision.
    """
    if size == len(_TORCHVISIONS):
        with torch.device("meta"):
            image = torch.empty(1, 3, 224, 224)
            made = [getattr(vision.models(), name)() for name in _TORCHVISIONS]
        return [(module.eval(), (image,)) for module in made]
    modules = [network.without_numbers().eval() for network in ZOO]
    inputs = [tuple(x.to("meta") for x in network.inputs()) for network in ZOO]
    return list(zip(modules, inputs, strict=True))


def each_network(
    size: int, do: Callable[[nn.Module], Made], show: Callable[[Made], object]
) -> Task:
    """Do something with each network; compare what comes out of each."""
    modules = [module for module, _ in networks(size)]
    return Task(
        lambda _: [do(module) for module in modules],
        len(modules),
        show=lambda made: [show(one) for one in made],
    )


_union = re.compile(r"\btyping_Union\[([^][]*)\]")


def _code(module: Made) -> str:
    """The code of a GraphModule."""
    return _source(module.code)


def _source(text: Made) -> str:
    """Generated code, with unions as torch.fx before 2.15 writes them."""
    return _union.sub(lambda m: m[1].replace(",", "|"), str(text))


def _patch_alone(size: int) -> Task:
    """Replace the two methods of nn.Module that a trace replaces, and back.

    Python then looks through all classes that derive from nn.Module.
    """
    names = ("__call__", "__getattr__")
    methods = [vars(nn.Module)[name] for name in names]

    def other(*args: Made, **kwargs: Made) -> Made:
        return methods

    def patch(_: nn.Module) -> None:
        for name in names:
            setattr(nn.Module, name, other)
        for name, method in zip(names, methods, strict=True):
            setattr(nn.Module, name, method)

    return each_network(size, patch, str)


@benchmark(
    at_least(3),
    sizes=SIZES,
    full=(),
    unit=A_CALL,
    beside=Beside("patching nn.Module", _patch_alone),
)
def networks_trace(lib: Library, size: int) -> Task:
    """Tracer().trace of each network of the zoo."""
    return each_network(size, lib.trace, str)


def _compile_alone(size: int) -> Task:
    """Let Python compile what torch.fx writes for each."""
    traced = [torch.fx.symbolic_trace(module) for module, _ in networks(size)]
    texts = [module.code for module in traced]
    return Task(
        lambda _: [compile(text, "<benchmark>", "exec") for text in texts],
        len(texts),
    )


@benchmark(
    at_least(1.5),
    alone=at_least(2),
    sizes=SIZES,
    full=(),
    unit=A_CALL,
    beside=Beside("compile() alone", _compile_alone),
)
def networks_graph_module(lib: Library, size: int) -> Task:
    """GraphModule(network, graph) of each network."""
    graphs = {module: lib.trace(module) for module, _ in networks(size)}
    make = lib.root.GraphModule
    return each_network(
        size, lambda module: make(module, graphs[module]), _code
    )


@benchmark(at_least(2.2), sizes=SIZES, full=(), unit=A_CALL)
def networks_symbolic_trace(lib: Library, size: int) -> Task:
    """symbolic_trace of each network: its trace and its GraphModule."""
    return each_network(size, lib.root.symbolic_trace, _code)


@benchmark(
    at_least(1.5),
    sizes=SIZES,
    full=(),
    unit=A_CALL,
    beside=Beside("compile() alone", _compile_alone),
)
def networks_recompile(lib: Library, size: int) -> Task:
    """GraphModule.recompile of each network, whose last code was another."""
    made = {module: lib.compiled(module) for module, _ in networks(size)}
    task = each_network(
        size,
        lambda module: made[module].recompile(),
        lambda code: _source(code.src),
    )

    def setup() -> None:
        for module in made.values():
            out_of_date(module)

    return replace(task, setup=setup)


def _running(size: int, runs: Sequence[Callable[..., Made]]) -> Task:
    """Run something with the inputs of each network, without gradients."""
    inputs = [inputs for _, inputs in networks(size)]

    def run(_: Made) -> list[Made]:
        with torch.no_grad():
            return [go(*given) for go, given in zip(runs, inputs, strict=True)]

    return Task(run, len(runs), show=lambda _: None)


def _eager(size: int) -> Task:
    """Run each without any fx."""
    return _running(size, [module for module, _ in networks(size)])


_BESIDE_EAGER = Beside("eager alone", _eager)


@benchmark(None, sizes=SIZES, full=(), unit=A_CALL, beside=_BESIDE_EAGER)
def networks_interpreter(lib: Library, size: int) -> Task:
    """Interpreter.run of each network; torch's own work is most of it."""
    make = lib.module("interpreter").Interpreter
    modules = [lib.compiled(module) for module, _ in networks(size)]
    return _running(size, [make(module).run for module in modules])


@benchmark(None, sizes=SIZES, full=(), unit=A_CALL, beside=_BESIDE_EAGER)
def networks_shape_prop(lib: Library, size: int) -> Task:
    """ShapeProp.propagate of each network; torch's own work is most of it."""
    make = lib.module("passes.shape_prop").ShapeProp
    modules = [lib.compiled(module) for module, _ in networks(size)]
    return _running(size, [make(module).propagate for module in modules])


def _with_functions(lib: Library, network: nn.Module) -> Made:
    """A GraphModule in which convolutions and batch norms are functions."""

    class Tracer(lib.root.Tracer):  # type: ignore[misc, name-defined]  # either
        def is_leaf_module(self, m: nn.Module, path: str) -> Made:
            is_leaf = super().is_leaf_module(m, path)
            return is_leaf and not isinstance(m, nn.Conv2d)

        def call_module(
            self, m: nn.Module, forward: Made, args: Made, kwargs: Made
        ) -> Made:
            if isinstance(m, nn.BatchNorm2d):
                statistics = m.running_mean, m.running_var
                return _norm(args[0], *statistics, m.weight, m.bias)
            return super().call_module(m, forward, args, kwargs)

    return lib.root.GraphModule(network, Tracer().trace(network))


def _norm(x: Made, mean: Made, var: Made, weight: Made, bias: Made) -> Made:
    """A batch norm in evaluation mode."""
    return functional.batch_norm(x, mean, var, weight, bias, eps=1e-5)


_SAME_SIZE: Made = (1, 1), (1, 1), (1, 1), 1
"""Stride, padding, dilation and groups of most 3 x 3 convolutions."""


def _convolution_and_norm(
    x: Made, kernel: Made, mean: Made, var: Made, weight: Made, bias: Made
) -> Made:
    """What is looked for."""
    y = torch.conv2d(x, kernel, None, *_SAME_SIZE)
    return _norm(y, mean, var, weight, bias)


def _folded(
    x: Made, kernel: Made, mean: Made, var: Made, weight: Made, bias: Made
) -> Made:
    """What replaces it: one convolution."""
    scale = weight * torch.rsqrt(var + 1e-5)
    kernel = kernel * scale[:, None, None, None]
    return torch.conv2d(x, kernel, bias - mean * scale, *_SAME_SIZE)


@benchmark(at_least(2), sizes=SIZES, full=(), unit=A_CALL)
def networks_replace_pattern(lib: Library, size: int) -> Task:
    """replace_pattern of a 3 x 3 convolution and its norm in each network.

    One convolution replaces them. In the graphs both are functions: a pattern
    of torch.fx can only name a module by its path. Each run has fresh copies.
    """
    made = {m: _with_functions(lib, m) for m, _ in networks(size)}
    fresh: dict[nn.Module, Made] = {}
    replace_pattern = lib.module("subgraph_rewriter").replace_pattern

    def rewritten(network: nn.Module) -> Made:
        replace_pattern(fresh[network], _convolution_and_norm, _folded)
        return fresh[network]

    def setup() -> None:
        fresh.update({m: copy.deepcopy(gm) for m, gm in made.items()})

    return replace(each_network(size, rewritten, _code), setup=setup)
