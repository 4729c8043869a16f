"""Runs the reader's program, and says what it printed and what it made."""

from __future__ import annotations

import contextlib
import io
import json
import linecache
import re
import sys
import traceback
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from fx.graph import Graph
from fx.graph_module import GraphModule
from fx.linked_list.ordered_graph import OrderedGraph

from .measure import PLACE
from .showing import SHOWN, show

AnyValue: TypeAlias = Any
"""What the reader's program has made."""

HINTS: Final = {
    "No module named 'fx.": "; it needs the installed torch, of which this "
    "page has a small one",
    "No module named '": "; this page has Python's own modules, fx and a small "
    "torch",
    "'Proxy' object cannot be interpreted as an integer": "; its value is not "
    "known while tracing: use a number, or fx.trace of the installed fx",
    "'Proxy' object does not support item assignment": "; write "
    "y[i].copy_(value), or make a new value as with torch.where",
    "fx.wrap('len')": "; for a loop, use a number: sizes are known to fx.trace "
    "of the installed fx",
    "the small torch ": "; leave this line out to try the rest here",
}
"""What is said after an error with one of these texts."""

STOPS: Final = re.compile(r"(the run stops at|no shape from) \w+(, line \d+)?")
"""What the viewer's page says if shapes end before the graph does."""


def play(source: str) -> str:
    """Run a program.

    Returns:
        JSON: `printed`; `error`; `page`, the viewer's page of what it gave to
        `fx.show`, or else of its last module, and `problem`, where a run of
        that stops; and for a graph without a module `nodes` and `code`.
    """
    lines = source.splitlines(keepends=True)
    linecache.cache[PLACE] = (len(source), None, lines, PLACE)
    said = io.StringIO()
    names: dict[str, AnyValue] = {"__name__": "__main__"}
    error, page = "", ""
    SHOWN.clear()
    with contextlib.redirect_stdout(said):
        try:
            exec(compile(source, PLACE, "exec", dont_inherit=True), names)
            page = _page(names)
        except Exception as raised:
            error = _told(raised)
    nodes, code = ([], "") if page else _graph(names)
    answer = {"printed": said.getvalue(), "page": page, "error": error}
    stops = STOPS.search(page)
    answer["problem"] = stops[0] if stops else ""
    return json.dumps(answer | {"nodes": nodes, "code": code})


def _page(names: Mapping[str, AnyValue]) -> str:
    """The viewer's page of what was shown, or of the last module; or ""."""
    modules = [one for one in names.values() if isinstance(one, GraphModule)]
    if modules and not SHOWN:
        show(modules[-1])
    return SHOWN[-1].html if SHOWN else ""


def _told(raised: Exception) -> str:
    """An error as its reader needs it: the message, and the own lines."""
    frames = traceback.extract_tb(raised.__traceback__)
    own = [frame for frame in frames if frame.filename == PLACE]
    where = f"line {own[-1].lineno}: " if own else ""
    if isinstance(raised, SyntaxError):
        where = f"line {raised.lineno}: "
    more = [hint for part, hint in HINTS.items() if part in str(raised)]
    return f"{where}{type(raised).__name__}: {raised}{''.join(more[:1])}"


def _graph(
    names: Mapping[str, AnyValue],
) -> tuple[list[dict[str, AnyValue]], str]:
    """The nodes of the last graph among a program's names, and its code."""
    for value in reversed([*names.values()]):
        if isinstance(value, GraphModule):
            return [*map(_node, value.graph.nodes)], value.code.strip()
        if isinstance(value, Graph):
            finished = any(node.op == "output" for node in value.nodes)
            code = value.python_code("self").src.strip() if finished else ""
            return [*map(_node, value.nodes)], code
        if isinstance(value, OrderedGraph):
            return [*map(_plain, value.nodes)], ""
        if type(value).__module__ == "tiny_fx" and hasattr(value, "nodes"):
            tiny: AnyValue = sys.modules["tiny_fx"]
            return _tiny(tiny, value), tiny.code(value)
    return [], ""


def _plain(node: AnyValue) -> dict[str, AnyValue]:
    """A node that has a name and nothing else yet."""
    return {"name": node.name, "op": node.op, "does": "", "users": []}


def _node(node: AnyValue) -> dict[str, AnyValue]:
    """What the page shows of a node."""
    named = [f"{key}={value}" for key, value in node.kwargs.items()]
    given = ", ".join([*map(str, node.args), *named])
    target = node._pretty_print_target(node.target)
    does = {"placeholder": "", "output": f"return {given}"}
    return {
        "name": node.name,
        "op": node.op,
        "does": does.get(node.op, f"{target}({given})"),
        "users": [user.name for user in node.users],
    }


def _tiny(tiny: AnyValue, graph: AnyValue) -> list[dict[str, AnyValue]]:
    """The nodes of a graph of the one-page fx, which keeps no users."""
    return [
        {
            "name": node.name,
            "op": node.op,
            "does": node.line().partition(f" = {node.op} ")[2],
            "users": [
                user.name
                for user in graph.nodes
                if node in _given(tiny, (user.args, user.kwargs))
            ],
        }
        for node in graph.nodes
    ]


def _given(tiny: AnyValue, values: AnyValue) -> list[AnyValue]:
    """The nodes in arguments."""
    found: list[AnyValue] = []
    tiny.swap(values, tiny.Node, found.append)
    return found
