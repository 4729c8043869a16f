"""The part of `make tour` that reinplaces and cuts programs."""

from __future__ import annotations

import copy
import subprocess
import sys

import torch
from rich.console import Console
from rich.text import Text
from torch import nn
from torch.nn import functional as F

from fx.experimental.proxy_tensor import make_fx
from fx.passes.reinplace import reinplace, reinplace_report

Parameters = dict[str, torch.Tensor]


def training_step(
    parameters: Parameters, x: torch.Tensor, y: torch.Tensor
) -> Parameters:
    """One step of gradient descent of a two-layer network, as a function."""

    def loss(p: Parameters) -> torch.Tensor:
        hidden = torch.tanh(F.linear(x, p["w1"], p["b1"])).square() + 1
        return F.cross_entropy(F.linear(hidden, p["w2"], p["b2"]), y)

    gradients = torch.func.grad(loss)(parameters)
    return {
        name: parameters[name] - 0.1 * gradients[name] for name in parameters
    }


def show_reinplacing(console: Console) -> bool:
    """Reinplace a training step; returns whether its results are the same."""
    console.rule(
        "[bold]Done in place[/] · a training step, forward and backward"
    )
    torch.manual_seed(0)
    first, second = nn.Linear(32, 64), nn.Linear(64, 10)
    parameters = {
        "w1": first.weight.detach(),
        "b1": first.bias.detach(),
        "w2": second.weight.detach(),
        "b2": second.bias.detach(),
    }
    batch = (torch.randn(4096, 32), torch.randint(10, (4096,)))
    step = torch.func.functionalize(training_step)
    gm = make_fx(step)(parameters, *batch)
    report = reinplace_report(gm, parameters, *batch)
    console.print(Text(str(report).splitlines()[0]))
    for node, _, rule, reason in report.kept[:3]:
        console.print(Text(f"  {node} is not, by rule {rule}: {reason}"))
    right = training_step(copy.deepcopy(parameters), *batch)
    got = reinplace(gm, parameters, *batch)(parameters, *batch)
    same = all(torch.equal(got[name], right[name]) for name in right)
    mark = "[green]the same[/]" if same else "[red]other[/]"
    console.print(f"the new parameters are {mark} as eager's\n")
    return same


def show_pipeline(console: Console) -> bool:
    """Train a transformer in two processes; returns if that is as in one."""
    console.rule("[bold]In two processes[/] · a transformer, cut in stages")
    if torch.__version__.startswith("2.9."):
        console.print("left out: processes of torch 2.9 lose each other here")
        return True
    command = "torch.distributed.run --standalone --nproc-per-node 2"
    run = subprocess.run(
        [sys.executable, "-m", *command.split(), "-m", "fx.pipeline"],
        capture_output=True,
        text=True,
        check=False,
    )
    console.print("[dim]torchrun --nproc-per-node 2 -m fx.pipeline[/]")
    console.print(Text(run.stderr if run.returncode else run.stdout))
    return run.returncode == 0
