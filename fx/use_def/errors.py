"""Stage 02, use-def: what is said when an argument cannot be accepted.

`fx/node.py` decides what to refuse, and `constant` whether a leaf is one; the
exceptions are made here, so that their words are not in the way of the lines
that do the work.

Sets and deques with nodes are refused, although they could be searched, because
an edge must also be replaceable: `map_arg` would have to build the container
again, and generated code to write it.
"""

from __future__ import annotations

import copy
from typing import Final

import torch.fx

from ..linked_list.linked_list import Link
from ..linked_list.ordered_graph import NamedNode
from .arguments import CONTAINERS, found_in, parts_of_constant
from .text import _type_repr, pretty_target
from .values import LEAVES, PROXY_TYPES, AnyValue, Argument

AnyNode = NamedNode[object]

_OF_TORCH: Final = (
    *PROXY_TYPES[1:],
    *(torch.fx.Graph, torch.fx.GraphModule, torch.fx.Tracer),
)

_NO_CONSTANTS: Final = (Link, *PROXY_TYPES)


def refuse_torchs(found: object) -> None:
    """Raise for a graph, module, node, proxy or tracer of torch.fx.

    Its attributes are named like ours, so that the mistake would show late.

    Raises:
        TypeError: it is one.
    """
    if isinstance(found, _OF_TORCH):
        kind = next(c for c in _OF_TORCH if isinstance(found, c)).__name__
        raise TypeError(
            f"this is a {kind} of torch.fx, and its nodes are not nodes of fx: "
            "convert the whole graph or module first, fx.from_torch(graph), "
            "or trace with fx"
        )


def not_in_graph(node: AnyNode, user: AnyNode) -> RuntimeError:
    """The error for an argument `node` that is not in the graph of `user`.

    The usual cause is a copy made without `arg_transform`, so the message names
    it.
    """
    if node.graph is user.graph:
        return RuntimeError(
            f"Argument '{node}' of Node '{user}' was erased from this "
            "Graph: use a node that is still in it"
        )
    return RuntimeError(
        f"Argument '{node}' of Node '{user}' does not belong to this "
        "Graph, but was used as an argument! If you are copying nodes "
        "from another graph, make sure to use ``arg_transform`` on "
        "node_copy() to remap values"
    )


def is_erased(node: AnyNode) -> RuntimeError:
    """The error for an erased node that is given nodes as arguments."""
    return RuntimeError(
        f"Node '{node}' was erased, so that it cannot use other nodes: give "
        "the arguments to a node that is in the Graph"
    )


def used_before_defined(node: AnyNode, user: AnyNode) -> str:
    """What `lint` says of an argument `node` that comes after its `user`."""
    return (
        f"Argument '{node}' of Node '{user}' was used before it has been "
        "defined! Please check that Nodes in the graph are topologically "
        "ordered"
    )


def meta_is_taken(meta: dict[str, AnyValue]) -> AssertionError:
    """The error for a node that has meta, and is to get another one's."""
    return AssertionError(
        "Called node.replace_all_uses_with(replace_with, propagate_meta=True), "
        "but replace_with already has .meta keys: "
        f"{', '.join(map(str, meta))}"
    )


def no_state(path: str) -> str:
    """The warning for a path that the owning module has nothing at."""
    return (
        "Attempted to insert a get_attr Node with no underlying reference in "
        f"the owning GraphModule: {path!r}. Call GraphModule.add_submodule to "
        "add the necessary submodule, register_parameter to add the necessary "
        "Parameter, or register_buffer to add the necessary buffer"
    )


def not_erasable(node: AnyNode, graph: object) -> RuntimeError:
    """The error for a node that cannot be erased from `graph`."""
    users = getattr(node, "users", {})
    if node._state == "sentinel":
        return RuntimeError("the sentinel of a Graph cannot be erased")
    if users:
        return RuntimeError(
            f"Tried to erase Node {node} but it still had {len(users)} users "
            f"in the graph: {users}!"
        )
    if node.graph is not graph:
        return RuntimeError(f"Attempting to remove {node} from wrong graph!")
    state = "in no list" if node._state == "new" else "erased already"
    return RuntimeError(f"Tried to erase Node {node}, which is {state}")


def not_a_node(found: object, node: AnyNode) -> TypeError:
    """The error for a replacement of `node` that is a constant."""
    refuse_torchs(found)
    return TypeError(
        f"uses of Node {node} can go to another Node only, not to "
        f"{found!r}: assign args or kwargs to put a constant there"
    )


def wrong_containers(
    args: object, kwargs: object, node: AnyNode
) -> AssertionError:
    """The error for arguments that are not a tuple and a dict."""
    return AssertionError(
        f"args must be a tuple, got {type(args)}, and kwargs a dict, "
        f"got {type(kwargs)}, in Node {node}"
    )


def constant(leaf: Argument, node: AnyNode) -> Argument:
    """An argument without nodes as `node` keeps it: itself, or a set copied.

    Raises:
        TypeError: it is a container in which a Node could not be replaced,
            such as a set, and holds one, or a Proxy; or it is a Proxy itself,
            or a Node or Proxy of torch.fx.
    """
    if type(leaf) in LEAVES or isinstance(leaf, CONTAINERS):
        return leaf
    found = found_in(leaf, _NO_CONSTANTS, parts_of_constant)
    if found is leaf:
        raise not_a_value(leaf, node)
    if found is not None:
        raise inside(leaf, found, node)
    return copy.copy(leaf) if isinstance(leaf, (set, frozenset)) else leaf


def not_a_value(leaf: object, node: AnyNode) -> TypeError:
    """The error for a Proxy among the arguments, or a Node of torch.fx."""
    return TypeError(
        f"Node {node} has a {_type_repr(type(leaf))} among its arguments, "
        "which is not a value: give a Node of the same Graph; that of a Proxy "
        "is `proxy.node`, and a graph of torch.fx is converted by fx.from_torch"
    )


def inside(container: object, found: object, node: AnyNode) -> TypeError:
    """The error for a node in a container in which it cannot be replaced."""
    kind = type(container).__name__
    return TypeError(
        f"Node {node} has {type(found).__name__} {found} inside a {kind}, "
        "where its use cannot be tracked: pass a list, a tuple or a dict"
    )


def illegal_keyword(key: object, node: AnyNode) -> ValueError:
    """The error for a keyword that no call in Python can have."""
    return ValueError(
        f"Node {node} ({node.op} of {pretty_target(node.target)}) has "
        f"the keyword {key!r}, which is not an identifier in Python"
    )


def not_an_input(arg: object, index: int, node: AnyNode) -> TypeError:
    """The error for an argument that is a constant where a node is asked for.

    Raised by `Node.input_at`.
    """
    return TypeError(
        f"argument {index} of Node {node} is not a Node but "
        f"{arg!r}, a {_type_repr(type(arg))}: look at node.args"
    )
