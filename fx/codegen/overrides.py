"""Stage 05, codegen: running the functions with which users change the code.

A user can derive from `CodeGen`, or give a graph a function that edits the
lines of its body (`Graph.on_generate_code`).  Such functions were written for
several versions of torch.fx, and all of them must go on working.

The oldest overrides of `generate_output` write `f"return {value}"`.  Then a
node prints itself by its name, which may differ from its variable, so nodes
print as their variables while such a method runs.  A function that edits the
body may insert, drop and reorder lines; comments with the number of the node go
with them, `# COUNTER: 3`, and are taken out afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..usedef.annotations import signature_of
from ..usedef.values import Value
from .emit import COUNTER
from .local_names import LocalNames

_counter = re.compile(rf"{COUNTER}(\d+)")


def call_override(
    method: Callable[..., str], *args: Value, **kwargs: Value
) -> str:
    """Call a method that may have been written for fewer keywords.

    torch.fx: graph.py, CodeGen._call_method_with_signature_check
    """
    if not _is_ours(method):
        known = signature_of(method).parameters
        kwargs = {key: kwargs[key] for key in kwargs if key in known}
    return method(*args, **kwargs)


@contextmanager
def printed_as(
    variables: LocalNames, method: Callable[..., str]
) -> Iterator[None]:
    """Let `repr(node)` be the node's variable while a user's method runs.

    The oldest overrides of `generate_output` write `f"return {value!r}"`, and
    a node's name need not be its variable.
    """
    nodes = () if _is_ours(method) else variables
    before = {node: node._repr_fn for node in nodes}  # noqa: SLF001
    try:
        for node in nodes:
            node._repr_fn = variables.__getitem__  # noqa: SLF001
        yield
    finally:
        for node in nodes:
            node._repr_fn = before[node]  # noqa: SLF001


def _is_ours(method: Callable[..., str]) -> bool:
    """Whether a method is from this folder, not a user's."""
    module = str(getattr(method, "__module__", ""))
    return module.rpartition(".")[0] == __package__


def without_counters(text: str) -> tuple[str, list[int | None]]:
    """The text without the counters' lines; what they said of the others."""
    lines: list[str] = []
    origins: list[int | None] = []
    index = None
    for line in text.split("\n"):
        if found := _counter.fullmatch(line.strip()):
            index = int(found[1])
        else:
            lines.append(line)
            origins.append(index)
    return "\n".join(lines), origins
