"""`make tour`: traces, shows and runs real networks, then lists the stages.

python -m stages.tour            what fits the screen
python -m stages.tour --all      every line of graph, table and code
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import torch
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text
from torch import nn

import fx
from fx.passes.profiling import Profiler
from stages.manifest import stages
from stages.tour_passes import show_folding, show_pipeline, show_reinplacing
from tests.zoo import ZOO, Network

NETWORKS = ("resnet18", "bert_base")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tour; returns 0 if all results agree with eager mode."""
    parser = argparse.ArgumentParser(prog="python -m stages.tour")
    parser.add_argument("--all", action="store_true", help="show every line")
    options = parser.parse_args(argv)
    console = Console()
    lines = 10**6 if options.all else max(8, (console.height - 12) // 2)
    by_name = {network.name: network for network in ZOO}
    agreed = [
        visit(console, by_name[name], lines, options.all) for name in NETWORKS
    ]
    agreed.append(show_folding(console, by_name["resnet18"]))
    agreed.append(show_reinplacing(console))
    agreed.append(show_pipeline(console))
    console.rule("[bold]The stages")
    console.print(stage_table())
    console.print(where_to_begin())
    return 0 if all(agreed) else 1


def visit(
    console: Console, network: Network, lines: int, everything: bool
) -> bool:
    """Trace, show and run a network; returns whether it agrees with eager."""
    console.rule(f"[bold]{network.name}[/] · {network.paper}")
    model = network.build().eval()
    inputs = network.inputs()
    traced = fx.symbolic_trace(model)
    graph = str(traced.graph).splitlines()
    code = traced.code.strip().splitlines()
    width = None if everything else console.width - 4
    console.print(
        f"[dim]gm = fx.symbolic_trace(model)[/]: {len(traced.graph.nodes)} "
        f"nodes from {sum(1 for _ in model.modules())} modules, "
        f"{sum(p.numel() for p in model.parameters()):,} parameters"
    )
    console.print(listing("print(gm.graph)", graph, lines, width))
    console.print(node_table(traced.graph, lines // 2))
    console.print(source("print(gm.code)", code, lines, width))
    console.print(time_table(traced, inputs, lines // 2))
    difference = largest_difference(model, traced, inputs)
    agrees = difference == 0.0
    mark = "[green]as eager[/]" if agrees else "[red]not as eager[/]"
    console.print(
        f"run on {', '.join(str(tuple(x.shape)) for x in inputs)}: the "
        f"largest difference from eager is {difference:g} ({mark})\n"
    )
    return agrees


def largest_difference(
    model: nn.Module, traced: fx.GraphModule, inputs: Sequence[torch.Tensor]
) -> float:
    """The largest difference between any output of the two modules."""
    with torch.no_grad():
        torch.manual_seed(0)
        ours = tensors(traced(*inputs))
        torch.manual_seed(0)
        right = tensors(model(*inputs))
    pairs = zip(ours, right, strict=True)
    return max(float((a - b).abs().max()) for a, b in pairs)


def tensors(value: object) -> list[torch.Tensor]:
    """The tensors in a network's output."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [tensor for item in value for tensor in tensors(item)]
    if isinstance(value, dict):
        return tensors(list(value.values()))
    return []


def cut(lines: list[str], most: int, width: int | None) -> tuple[str, int]:
    """The first lines, each cut to a width, and how many were left out."""
    shown = lines[:most]
    if width is not None:
        shown = [
            line if len(line) <= width else line[: width - 1] + "…"
            for line in shown
        ]
    return "\n".join(shown), len(lines) - len(shown)


def listing(
    title: str, lines: list[str], most: int, width: int | None
) -> RenderableType:
    """Plain lines under a title."""
    text, left = cut(lines, most, width)
    return Panel(Text(text), title=title, subtitle=more(left))


def source(
    title: str, lines: list[str], most: int, width: int | None
) -> RenderableType:
    """Lines of Python under a title."""
    text, left = cut(lines, most, width)
    body = Syntax(text, "python", background_color="default")
    return Panel(body, title=title, subtitle=more(left))


def more(left: int) -> str | None:
    """A note on how many lines were left out."""
    return f"{left} more lines: --all" if left else None


def node_table(graph: fx.Graph, most: int) -> RenderableType:
    """The nodes as a table: what `graph.print_tabular()` prints."""
    table = Table(title="gm.graph.print_tabular()", title_justify="left")
    for column in ("opcode", "name", "target", "args", "users"):
        table.add_column(column, overflow="ellipsis", no_wrap=True)
    for index, node in enumerate(graph.nodes):
        if index == most:
            break
        table.add_row(
            node.op,
            node.name,
            node._pretty_print_target(node.target),
            str(node.args),
            str(len(node.users)),
        )
    return table


def time_table(
    traced: fx.GraphModule, inputs: Sequence[torch.Tensor], most: int
) -> RenderableType:
    """Shape, time and size of each node's value, the slowest first."""
    profiler = Profiler(traced)
    with torch.no_grad():
        profiler.run(*inputs)
    table = Table(title="Profiler(gm).run(x)", title_justify="left")
    for column in ("node", "shape", "ms", "KiB"):
        table.add_column(column, overflow="ellipsis", no_wrap=True)
    slowest = sorted(profiler.records, key=lambda r: r.seconds, reverse=True)
    for node, seconds, size, shape in slowest[:most]:
        ms, kib = f"{seconds * 1e3:.2f}", f"{size / 1024:.0f}"
        table.add_row(node.name, str(list(shape or ())), ms, kib)
    return table


def stage_table() -> RenderableType:
    """A table of the stages and the files to read first."""
    table = Table()
    table.add_column("stage")
    table.add_column("what it is")
    table.add_column("read first, in fx/")
    for number, stage in stages().items():
        table.add_row(f"{number:02d}", stage.title, " ".join(stage.core))
    return table


def where_to_begin() -> RenderableType:
    """The first step for each kind of newcomer."""
    return Group(
        Text("To learn: .venv/bin/python -m stages says what to write first."),
        Text("To read: make serve, or open fx/linked_list/linked_list.py."),
        Text("To use it: import fx where you wrote import torch.fx."),
        Text("To change it: CONTRIBUTING.md says where to look."),
    )


if __name__ == "__main__":
    raise SystemExit(main())
