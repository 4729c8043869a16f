"""Two graphs that must be the same: if they are not, which nodes differ."""

from __future__ import annotations

import fx
from fx.passes.structure import structure_hash


def assert_same_graph(found: fx.GraphModule, right: fx.GraphModule) -> None:
    """Fail unless two modules have the same graph, names and order included.

    Args:
        found: the module that is tested.
        right: what it should be.
    """
    difference = fx.diff(right, found)
    assert not difference, f"the graph is not the same:\n{difference}"
    assert structure_hash(right) == structure_hash(found)
    assert str(found.graph) == str(right.graph)
