"""`make tour`: traces, runs and rewrites a network, then lists the stages."""

from __future__ import annotations

from pathlib import Path

import torch
from rich.console import Console, Group, RenderableType
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

import fx
from docs.examples.resnet18 import ResNet18, page
from fx.passes.profiling import Profiler
from stages.manifest import stages
from stages.tour_passes import show_pipeline, show_reinplacing

PAGE = Path(__file__).resolve().parents[1] / "build" / "resnet18.html"
LINES = 6
"""Of code and of the table of times: a screen holds a part of each."""


def main(page: Path = PAGE) -> int:
    """Run the tour; returns 0 if all results agree with eager mode."""
    console = Console()
    agreed = [show_network(console)]
    show_folding(console, page)
    agreed.append(show_reinplacing(console))
    agreed.append(show_pipeline(console))
    console.rule("[bold]The stages")
    console.print(stage_table())
    console.print(where_to_begin(page))
    return 0 if all(agreed) else 1


def show_network(console: Console) -> bool:
    """Trace and run ResNet-18; returns whether it agrees with eager."""
    console.rule("[bold]ResNet-18[/] · gm = fx.symbolic_trace(model)")
    model = ResNet18().eval()
    x = torch.randn(1, 3, 224, 224)
    gm = fx.symbolic_trace(model)
    nodes, modules = len(gm.graph.nodes), sum(1 for _ in model.modules())
    console.print(f"{nodes} nodes from {modules} modules; gm.code begins with")
    code = "\n".join(gm.code.strip().splitlines()[: LINES + 1])
    console.print(Syntax(code, "python", background_color="default"))
    console.print(time_table(gm, x))
    with torch.no_grad():
        agrees = torch.equal(gm(x), model(x))
    mark = "[green]the same[/]" if agrees else "[red]not the same[/]"
    console.print(f"the result is {mark} as eager's\n")
    return agrees


def time_table(gm: fx.GraphModule, x: torch.Tensor) -> RenderableType:
    """Shape, time and size of a few nodes' values, the slowest first."""
    profiler = Profiler(gm)
    with torch.no_grad():
        profiler.run(x)
    table = Table(title="The slowest: Profiler(gm).run(x)")
    for column in ("node", "shape", "ms", "KiB"):
        table.add_column(column, no_wrap=True)
    slowest = sorted(profiler.records, key=lambda r: r.seconds, reverse=True)
    for node, seconds, size, shape in slowest[:LINES]:
        ms, kib = f"{seconds * 1e3:.2f}", f"{size / 1024:.0f}"
        table.add_row(node.name, str(list(shape or ())), ms, kib)
    return table


def show_folding(console: Console, path: Path) -> None:
    """Fold its BatchNorms, and write the page that the site begins with."""
    console.rule("[bold]Rewritten by a pass[/] · fold_conv_bn(gm)")
    path.parent.mkdir(exist_ok=True)
    page().write(path)
    console.print("both graphs are in the file named below\n")


def stage_table() -> RenderableType:
    """A table of the stages and the files to read first."""
    table = Table()
    table.add_column("stage")
    table.add_column("what it is")
    table.add_column("read first, in fx/")
    for number, stage in stages().items():
        table.add_row(f"{number:02d}", stage.title, " ".join(stage.core))
    return table


def where_to_begin(path: Path) -> RenderableType:
    """The first step for each kind of newcomer."""
    return Group(
        Text("To learn: .venv/bin/python -m stages says what to write first."),
        Text("To read: make serve, or open fx/linked_list/linked_list.py."),
        Text("To use it: import fx where you wrote import torch.fx."),
        Text("To change it: CONTRIBUTING.md says where to look."),
        Text(f"To see ResNet-18 and the pass, open {path} in a browser."),
    )


if __name__ == "__main__":
    raise SystemExit(main())
