"""Stage 05, codegen: the names of parameters and variables.

A node's value is a variable of the generated function, named like the node.
Two kinds of names are given: callers use a parameter as a keyword, so it is
what the placeholder's target says, and the module is `self`.  A variable that
would have such a name is renamed, and so is one that would be a keyword, a
builtin or a second variable of its name, which happens if the user has set
`node.name`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import NoReturn

from ..linked_list.namespace import TAKEN, Namespace
from ..node import Node


class LocalNames(dict[Node, str]):
    """The variable of each node of a graph.

    Attributes:
        parameters: placeholder -> its parameter, without stars.
        roots: the names by which the code finds the module.

    Cost: O(nodes).

    torch.fx: graph.py, Graph.python_code (node_repr)
    """

    parameters: dict[Node, str]
    roots: frozenset[str]

    def __init__(self, nodes: Iterable[Node], root: str) -> None:
        """Name the nodes.

        Nearly always the names that the nodes have are legal and distinct,
        which a few questions about sets and one long text tell, each answered
        in C.  Otherwise the nodes are named anew, in order, and those with a
        good name keep it.

        Args:
            nodes: all nodes of the graph, in order.
            root: how the code finds the module, "self" or "self.child".
        """
        super().__init__({node: node._name for node in nodes})
        self.roots = frozenset(("self", root.partition(".")[0]))
        self.parameters = {
            node: as_python_reads(exact(node._target).lstrip("*"))
            for node in self
            if node._op == "placeholder" and isinstance(node._target, str)
        }
        theirs = set(self.roots)
        for node, parameter in self.parameters.items():
            if parameter != self[node]:
                theirs.add(parameter)
        names = set(self.values())
        if not (_are_legal(names, len(self)) and names.isdisjoint(theirs)):
            self._rename()

    def _rename(self) -> None:
        """Change as few names as possible, from the first node to the last."""
        namespace = Namespace()
        parameters = set(self.parameters.values())
        for node in self:
            own = self.parameters.get(node)
            wish = exact(node.name)
            name = namespace.create_name(wish)
            while name in self.roots or (name in parameters and name != own):
                name = namespace.create_name(wish)
            self[node] = name

    def taken(self) -> set[str]:
        """All names that a global must not have."""
        return {*self.values(), *self.parameters.values(), *self.roots}

    def __missing__(self, node: Node) -> NoReturn:
        """Say of an argument node that it is not in the graph."""
        users = ", ".join(map(str, node.users))
        raise RuntimeError(
            f"Node {node}, used by {users}, was erased or is of another graph: "
            "pass a node of this graph instead (node.replace_input_with)"
        )


def _are_legal(names: set[str], count: int) -> bool:
    """Whether `count` nodes can have these names as they are."""
    return (
        len(names) == count
        and set(map(type, names)) <= {str}
        and all(map(str.isidentifier, names))
        and "".join(names).isascii()
        and names.isdisjoint(TAKEN)
    )


def as_python_reads(name: str) -> str:
    """An identifier in the form in which Python reads it: `fi` for `ﬁ`."""
    return name if name.isascii() else unicodedata.normalize("NFKC", name)


def exact(text: str) -> str:
    """The characters of `text`, even if its class prints something else."""
    return text if type(text) is str else str.__str__(text)
