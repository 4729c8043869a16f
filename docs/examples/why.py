"""One program, seen by each way to get at the program behind a function."""

import ast
import inspect
import re
from typing import Any, TypeAlias

import torch
from torch.fx.experimental.proxy_tensor import make_fx

import fx
from docs.examples.noisy import noise, program

AnyValue: TypeAlias = Any


def with_the_syntax_tree() -> None:
    tree = ast.parse(inspect.getsource(program))
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.Call):
            print(f"line {node.lineno}:", ast.unparse(node).splitlines()[0])


def with_torchscript() -> None:
    graph = str(torch.jit.script(program).inlined_graph)
    print(re.sub(r"# \S*/", "# ", graph))  # file names without folders


def with_proxies() -> None:
    try:
        fx.symbolic_trace(program)
    except fx.proxy.TraceError as error:
        print(str(error).splitlines()[0])

    print(fx.symbolic_trace(noise).code.strip())


def with_tensors_without_data() -> None:
    x = torch.ones(3)
    try:
        fx.trace(program, x)
    except fx.TraceError as error:
        print(str(error).splitlines()[0])

    print(fx.trace(noise, x).code.strip())

    def halved(x: torch.Tensor) -> torch.Tensor:
        return x / 2 if x.shape[0] > 2 else x

    gm = fx.trace(halved, x)
    print([guard.expression for guard in gm.guards if guard.line])


def with_the_dispatcher() -> None:
    try:
        make_fx(program)(torch.ones(3))
    except RuntimeError as error:
        print(str(error).split(" - ")[0])

    print(make_fx(noise)(torch.ones(3)).code.strip())


def with_the_bytecode() -> None:
    def show(gm: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> AnyValue:
        print(gm.code.strip(), end="\n\n")
        return gm.forward

    torch.compile(program, backend=show)(torch.ones(3))


def with_export() -> None:
    class Program(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = noise(x)
            y: torch.Tensor = torch.cond(
                x.sum() > 0, torch.relu, torch.neg, (x,)
            )
            return y

    exported = torch.export.export(Program(), (torch.ones(3),))
    print(exported.graph)
