"""Stage 02, use-def: where each value is used for the last time.

Generated code and the interpreter free a value after its last use, and both
ask here.  One walk over the nodes answers for all values.
"""

from __future__ import annotations

from ..linked_list.linked_list import LinkedList
from ..node import Node


def last_users(nodes: LinkedList[Node]) -> dict[Node, Node]:
    """For each value that is used, the last node to use it.

    Args:
        nodes: in an order in which they can run.

    Returns:
        node -> the last of its users.  A node without users has no entry.

    Cost: O(nodes + uses).
    """
    return {node: user for user in nodes for node in user._inputs}
