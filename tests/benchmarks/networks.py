"""What is measured on real networks: all of `tests/zoo`, one row an operation.

A run does the operation once with each network; the size is how many there
are, and the time is the mean over them.  Their tensors are on the device
"meta", which has no memory: fx asks for shapes and paths, not for numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import torch
from torch import nn

from tests.benchmarks.measure import A_CALL, Made, Task
from tests.benchmarks.operations import (
    Beside,
    Library,
    at_least,
    benchmark,
    out_of_date,
)
from tests.zoo import ZOO, Inputs

__all__ = ["each_network", "networks", "patch_alone"]

_NETWORKS = (len(ZOO),)


@cache
def networks() -> Sequence[tuple[nn.Module, Inputs]]:
    """Each network, in evaluation mode, with inputs for it."""
    modules = [network.without_numbers().eval() for network in ZOO]
    inputs = [tuple(x.to("meta") for x in network.inputs()) for network in ZOO]
    return list(zip(modules, inputs, strict=True))


def each_network(
    do: Callable[[nn.Module], Made], show: Callable[[Made], object]
) -> Task:
    """Do something with each network; compare what comes out of each."""
    modules = [module for module, _ in networks()]
    return Task(
        lambda _: [do(module) for module in modules],
        len(modules),
        show=lambda made: [show(one) for one in made],
    )


def _code(module: Made) -> str:
    """The code of a GraphModule."""
    return str(module.code)


def patch_alone(size: int) -> Task:
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

    return each_network(patch, str)


@benchmark(
    at_least(3),
    sizes=_NETWORKS,
    full=(),
    unit=A_CALL,
    beside=Beside("patching nn.Module", patch_alone),
)
def networks_trace(lib: Library, size: int) -> Task:
    """Tracer().trace of each network of the zoo."""
    return each_network(lib.trace, str)


def _compile_alone(size: int) -> Task:
    """Let Python compile what torch.fx writes for each."""
    texts = [torch.fx.symbolic_trace(module).code for module, _ in networks()]
    return Task(
        lambda _: [compile(text, "<benchmark>", "exec") for text in texts],
        len(texts),
    )


@benchmark(
    at_least(1.5),
    sizes=_NETWORKS,
    full=(),
    unit=A_CALL,
    beside=Beside("compile() alone", _compile_alone),
)
def networks_graph_module(lib: Library, size: int) -> Task:
    """GraphModule(network, graph) of each network; compile() is in it."""
    graphs = {module: lib.trace(module) for module, _ in networks()}
    make = lib.root.GraphModule
    return each_network(lambda module: make(module, graphs[module]), _code)


@benchmark(at_least(2.2), sizes=_NETWORKS, full=(), unit=A_CALL)
def networks_symbolic_trace(lib: Library, size: int) -> Task:
    """symbolic_trace of each network: its trace and its GraphModule."""
    return each_network(lib.root.symbolic_trace, _code)


@benchmark(
    at_least(1.5),
    sizes=_NETWORKS,
    full=(),
    unit=A_CALL,
    beside=Beside("compile() alone", _compile_alone),
)
def networks_recompile(lib: Library, size: int) -> Task:
    """GraphModule.recompile of each network, whose last code was another."""
    made = {module: lib.compiled(module) for module, _ in networks()}
    task = each_network(
        lambda module: made[module].recompile(), lambda code: str(code.src)
    )

    def setup() -> None:
        for module in made.values():
            out_of_date(module)

    return replace(task, setup=setup)


def _running(runs: Sequence[Callable[..., Made]]) -> Task:
    """Run something with the inputs of each network, without gradients."""
    inputs = [inputs for _, inputs in networks()]

    def run(_: Made) -> list[Made]:
        with torch.no_grad():
            return [go(*given) for go, given in zip(runs, inputs, strict=True)]

    return Task(run, len(runs), show=lambda _: None)


def _eager(size: int) -> Task:
    """Run each without any fx."""
    return _running([module for module, _ in networks()])


_BESIDE_EAGER = Beside("eager alone", _eager)


@benchmark(None, sizes=_NETWORKS, full=(), unit=A_CALL, beside=_BESIDE_EAGER)
def networks_interpreter(lib: Library, size: int) -> Task:
    """Interpreter.run of each network; torch's own work is most of it."""
    make = lib.module("interpreter").Interpreter
    modules = [lib.compiled(module) for module, _ in networks()]
    return _running([make(module).run for module in modules])


@benchmark(None, sizes=_NETWORKS, full=(), unit=A_CALL, beside=_BESIDE_EAGER)
def networks_shape_prop(lib: Library, size: int) -> Task:
    """ShapeProp.propagate of each network; torch's own work is most of it."""
    make = lib.module("passes.shape_prop").ShapeProp
    modules = [lib.compiled(module) for module, _ in networks()]
    return _running([make(module).propagate for module in modules])
