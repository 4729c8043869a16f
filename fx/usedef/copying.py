"""Stage 02, use-def: who copies what nodes note, and who pickles a graph.

A graph copies its nodes by itself.  What a pass has put into `node.meta` is
shared with the copy, as in torch.fx, so that a node in there is still the node
of the old graph.  Pickle is worse off: it follows references from node to node,
and Python's limit of recursion ends that after some hundred nodes.  So a graph
asks the object at `Graph._copying`.  The plain default there leaves notes as
they are and refuses to pickle; `import fx` puts `fx.extra.saving` there, which
does both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn, Protocol

from .values import Value


class Copying(Protocol):
    """What a graph and its nodes ask when they are copied or pickled."""

    def move_metas(self, copies: Mapping[Value, Value], /) -> None:
        """Put the copy of each node in its place in the copies' `meta`."""
        ...

    def state_of(self, graph: Value, /) -> dict[str, Value]:
        """What `Graph.__getstate__` gives."""
        ...

    def restore(self, graph: Value, state: dict[str, Value], /) -> None:
        """What `Graph.__setstate__` does."""
        ...

    def reduced(self, node: Value, /) -> tuple[Value, ...]:
        """What `Node.__reduce__` gives."""
        ...

    def erased_node(self, graph: Value, packed: Value, /) -> Value:
        """A node that was erased from a graph, of what `reduced` gave."""
        ...


class PlainCopying:
    """Leaves notes as they are; raises TypeError where a graph is pickled.

    A pickle made without care would end in a RecursionError.
    """

    def move_metas(self, copies: Mapping[Value, Value], /) -> None:
        """Do nothing: nodes in notes stay those of the old graph."""

    def state_of(self, graph: Value, /) -> NoReturn:
        """Raise, because pickle would follow nodes without end."""
        _refuse()

    def restore(self, graph: Value, state: dict[str, Value], /) -> NoReturn:
        """Raise, as there is no such pickle."""
        _refuse()

    def reduced(self, node: Value, /) -> NoReturn:
        """Raise, because pickle would follow nodes without end."""
        _refuse()

    def erased_node(self, graph: Value, packed: Value, /) -> NoReturn:
        """Raise, as there is no such pickle."""
        _refuse()


def _refuse() -> NoReturn:
    raise TypeError(
        "pickling a Graph needs fx.extra.saving, which is not there: import "
        "fx as a whole"
    )
