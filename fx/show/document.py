"""Passes: makes a page from data, a template, a style and scripts."""

from __future__ import annotations

import html
import json
import re
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Final

from .describe import Data

__all__ = ["SCRIPTS", "Page"]

SCRIPTS: Final = ("graph.js", "arcs.js", "list.js", "page.js")
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
            "script": "\n".join(map(_asset, SCRIPTS)),
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


def _asset(name: str) -> str:
    """The text of a file beside this one."""
    return resources.files("fx.show").joinpath(name).read_text("utf-8")
