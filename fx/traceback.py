"""Stage 03, proxies and magic methods: notes that new nodes inherit.

A transformation that runs a graph node by node and records another graph
should keep, with each new node, where it comes from.  Inside
`preserve_node_meta()`, it names the node that it runs with
`set_current_meta(node)`, and each node that is recorded meanwhile inherits
that node's stack trace and notes.  The state is a ContextVar, so threads and
tasks do not see each other's notes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final

from .node import Node, map_arg
from .recording.notes import NOTES, Notes
from .use_def.values import AnyValue

__all__ = [
    "annotate",
    "format_stack",
    "get_current_meta",
    "has_preserved_node_meta",
    "preserve_node_meta",
    "set_current_meta",
    "set_stack_trace",
]

OF_VALUE: Final = frozenset(["val", "tensor_meta", "example_value", "type"])
"""The keys of meta that say of which type and shape a node's value is."""

_CHANGED: Final = object()
"""What stands for an argument whose value may have changed."""


def has_preserved_node_meta() -> bool:
    """Whether new nodes inherit notes.

    torch.fx: traceback.py, has_preserved_node_meta
    """
    return NOTES.get().preserved


def get_current_meta() -> dict[str, AnyValue]:
    """The notes that new nodes inherit.

    torch.fx: traceback.py, get_current_meta
    """
    return NOTES.get().meta


@contextmanager
def _during(notes: Notes) -> Iterator[None]:
    """Make `notes` the current ones for a block."""
    token = NOTES.set(notes)
    try:
        yield
    finally:
        NOTES.reset(token)


@contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """Let nodes recorded in this block inherit notes.

    torch.fx: traceback.py, preserve_node_meta
    """
    with _during(Notes(enable, dict(get_current_meta()))):
        yield


def set_current_meta(
    node: Node, pass_name: str = ""
) -> AbstractContextManager[None]:
    """Let nodes recorded in this block inherit the notes of `node`.

    It is called for each node that runs, so where notes are not preserved it
    gives one shared context that does nothing.

    Args:
        node: the node being run; its meta is inherited.
        pass_name: the pass that runs it, for the note "from_node".

    Does nothing outside `preserve_node_meta()`.

    torch.fx: traceback.py, set_current_meta
    """
    if not has_preserved_node_meta() or not node.meta:
        return nullcontext()
    meta = dict(node.meta)
    sources = list(meta.get("from_node", ()))
    meta["from_node"] = [*sources, (node.name, pass_name)]
    return _during(Notes(True, meta))


@contextmanager
def annotate(annotation_dict: dict[str, AnyValue]) -> Iterator[None]:
    """Add entries to meta["custom"] of nodes recorded in this block.

    torch.fx: traceback.py, annotate
    """
    meta = dict(get_current_meta())
    meta["custom"] = {**meta.get("custom", {}), **annotation_dict}
    with _during(Notes(has_preserved_node_meta(), meta)):
        yield


def set_stack_trace(stack: list[str]) -> None:
    """Make `stack` the stack trace that new nodes inherit; [] for none.

    Does nothing outside `preserve_node_meta()`.

    torch.fx: traceback.py, set_stack_trace
    """
    if has_preserved_node_meta():
        # Tasks that were started here share the old dict: make a new one.
        meta = {**get_current_meta(), "stack_trace": "".join(stack)}
        NOTES.set(Notes(True, meta))


def format_stack() -> list[str]:
    """The stack trace that new nodes inherit, as a list of at most one.

    torch.fx: traceback.py, format_stack
    """
    trace = get_current_meta().get("stack_trace", "")
    return [trace] if trace else []


def forget_changed_values(repeated: dict[Node, Node]) -> None:
    """Drop notes on values from nodes that may have other values now.

    Args:
        repeated: new nodes, in order, each with the old node whose opcode,
            target and meta it has.  If its arguments are others, or one of
            them is no repetition, what the old one noted of its value need
            not be true.

    Cost: O(nodes with their arguments); O(nodes) if there are no such notes.
    """
    if not any(OF_VALUE & old.meta.keys() for old in repeated.values()):
        return
    unchanged: dict[Node, Node] = {}
    for new, old in repeated.items():
        given = map_arg(
            (new.args, new.kwargs), lambda node: unchanged.get(node, _CHANGED)
        )
        # As text, 2 differs from 2.0.
        if repr(given) == repr((old.args, old.kwargs)):
            unchanged[new] = old
        else:
            for key in OF_VALUE & new.meta.keys():
                del new.meta[key]
