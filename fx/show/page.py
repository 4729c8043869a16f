"""Passes: makes the page from data, a template, a style and scripts."""

from __future__ import annotations

import html
import json
import re
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Final

from torch import nn

from ..graph_module import GraphModule
from ..tracing.tracer import Tracer
from ..use_def.errors import refuse_torchs
from ..use_def.values import AnyValue
from .compare import rows_of
from .describe import Data, describe
from .measure import measure

__all__ = ["Page", "show", "traced"]

_SCRIPTS: Final = ("graph.js", "arcs.js", "list.js", "page.js")
"""Plain JavaScript, to be read in this order."""

_HEIGHT: Final = 640
"""Of the frame in a notebook, in pixels."""


class Page:
    """A page about a graph, which notebooks show.

    Attributes:
        title: its heading.
    """

    def __init__(self, title: str, data: Data) -> None:
        """Make a page.

        Args:
            title: its heading.
            data: what its scripts show: `sides`, the graphs, and for two of
                them `rows`.
        """
        self.title = title
        self._data = data

    @cached_property
    def html(self) -> str:
        """The page as text, which forbids the browser to load anything."""
        # A target or a line of source may contain "</script>", which would
        # end the script that the data are in.
        data = json.dumps(self._data, separators=(",", ":"))
        parts = {
            "title": html.escape(self.title),
            "style": _asset("page.css"),
            "data": data.replace("<", r"\u003c"),
            "script": "\n".join(map(_asset, _SCRIPTS)),
        }
        return re.sub(
            r"\{\{(\w+)\}\}", lambda at: parts[at[1]], _asset("page.html")
        )

    def write(self, path: str | Path) -> Path:
        """Write the page to a file.

        Args:
            path: the file; one that is there is overwritten.

        Returns:
            The file.
        """
        file = Path(path)
        file.write_text(self.html, encoding="utf-8")
        return file

    def _repr_html_(self) -> str:
        """The page in a frame: its style and scripts stay in there."""
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" sandbox="allow-scripts"'
            f' style="width:100%;height:{_HEIGHT}px;border:0"></iframe>'
        )


def show(
    module: nn.Module,
    *inputs: AnyValue,
    after: nn.Module | None = None,
    times: bool = False,
    title: str = "",
) -> Page:
    """Make a page on which one can look at a graph.

        fx.show(gm, torch.randn(1, 3, 224, 224)).write("net.html")

    A notebook shows what is returned.  The page has the graph as a list, folded
    by module, with an arc from each value to its uses; the code; and for each
    node its shape, size and time, and the user's line that made it.

    Args:
        module: a graph module, or a module to trace.
        *inputs: inputs for it, with which shapes are found; by default, the
            page shows the shapes that are in `meta`.
        after: what a pass made of it, or a module to trace. The page then
            shows both, and marks what `fx.diff` finds.
        times: also run the module on the inputs, three times, and show the
            least time of each node.
        title: the heading; by default the name of the module's class.

    Raises:
        TypeError: a module is a graph module of torch.fx.
        TraceError: the module cannot be traced.

    Cost: O(size of the graph), a run without data, and with `times` three runs.
    With `after`, O(n log n) for n nodes and uses.
    """
    both = [traced(side) for side in (module, after) if side is not None]
    sides = [
        describe(gm, measure(gm, inputs, times and bool(inputs))) for gm in both
    ]
    data: Data = {"sides": sides}
    if len(both) > 1:
        data["rows"] = rows_of(*both)
    return Page(title or type(module).__name__, data)


def traced(module: nn.Module) -> GraphModule:
    """A module's graph, its nodes with the lines that made them.

    `symbolic_trace` does not record the lines, because that takes time.

    Args:
        module: a module; one that is a graph module already stays as it is.

    Raises:
        TypeError: it is one of torch.fx.
        TraceError: it cannot be traced.
    """
    refuse_torchs(module)
    if isinstance(module, GraphModule):
        return module
    tracer = Tracer()
    tracer.record_stack_traces = True
    return GraphModule(module, tracer.trace(module), type(module).__name__)


def _asset(name: str) -> str:
    """The text of a file beside this one."""
    return resources.files("fx.show").joinpath(name).read_text("utf-8")
