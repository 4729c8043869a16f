"""Stage 02, use-def: where each value is read for the last time.

Generated code and the interpreter free a value after its last use.  Both ask
here: one pass over the nodes from the end to the start, and the first reader
met on the way is the last one to run.
"""

from __future__ import annotations

from ..node import Node
from ..ordered.linked_list import LinkedList


def last_uses(nodes: LinkedList[Node]) -> dict[Node, list[Node]]:
    """For each node that reads something last: what it reads last.

    Args:
        nodes: in an order in which they can run.

    Returns:
        user -> the nodes whose last user it is, in the order of its inputs.
        A node that nobody uses is in no list.

    Cost: O(nodes + uses).
    """
    raise NotImplementedError("stage 02: last_uses")
