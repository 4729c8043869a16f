"""Stage 02, use-def: where each value is used for the last time.

Generated code and the interpreter free a value after its last use, and both
ask here.  The nodes are walked once, from the last to the first: the first
user of a value that the walk meets is the last one to run.
"""

from __future__ import annotations

from ..node import Node
from ..ordered.linked_list import LinkedList


def last_uses(nodes: LinkedList[Node]) -> dict[Node, list[Node]]:
    """For each node, the values that it is the last to use.

    Args:
        nodes: in an order in which they can run.

    Returns:
        user -> the nodes whose last user it is, in the order of its inputs.
        A node without users is not in any of the lists.

    Cost: O(nodes + uses).
    """
    raise NotImplementedError("stage 02: last_uses")
