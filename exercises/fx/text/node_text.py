"""Stage 02, use-def: how a node is written in a printed graph.

    %add : [num_users=1] = call_function[target=operator.add](
        args = (%x, 1), kwargs = {})

on one line.  A Node among the arguments has a percent sign, constants are
written as `str` writes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.utils._dtype_abbrs import dtype_abbrs

from ..ordered.linked_list import Link
from ..usedef.values import Argument
from .qualified_names import _type_repr, pretty_target

if TYPE_CHECKING:
    from ..node import Node


def format_arg(arg: Argument) -> str:
    """An argument as the printed graph shows it.

    torch.fx: node.py, _format_arg
    """
    custom = getattr(type(arg), "_custom_fx_repr_fn", None)
    if custom is not None and callable(custom):
        return str(custom(arg))
    match arg:
        case Link():
            return f"%{arg}"
        case list():
            return f"[{', '.join(map(format_arg, arg))}]"
        case tuple():
            comma = "," if len(arg) == 1 else ""
            return f"({', '.join(map(format_arg, arg))}{comma})"
        case dict():
            items = (f"{key}: {format_arg(arg[key])}" for key in arg)
            return f"{{{', '.join(items)}}}"
    return str(arg)


def format_node(node: Node, *, tensor_metadata: bool = False) -> str:
    """The line of the printed graph that is about `node`."""
    if node.op == "output":
        return f"return {node.args[0] if node.args else None}"
    kind = f"{_type_repr(node.type)} " if node.type is not None else ""
    if tensor_metadata and node.op.startswith("call_"):
        kind = _tensor_text(node) or kind
    head = f"%{node.name} : {kind}[num_users={len(node.users)}] = {node.op}"
    target = f"[target={pretty_target(node.target)}]"
    if node.op == "placeholder":
        default = f"(default={node.args[0]})" if node.args else ""
        return f"{head}{target}{default}"
    if node.op == "get_attr":
        return f"{head}{target}"
    args, kwargs = format_arg(node.args), format_arg(node.kwargs)
    return f"{head}{target}(args = {args}, kwargs = {kwargs})"


def _tensor_text(node: Node) -> str:
    """Type, shape, stride and device of the value in meta, if it is known."""
    value = node.meta.get("val", node.meta.get("tensor_meta"))
    if value is None:
        value = node.meta.get("example_value")
    if not isinstance(value, torch.Tensor):
        return ""
    if value.layout in (torch.sparse_csc, torch.sparse_csr):
        return ""
    shape, stride = list(value.shape), list(value.stride())
    kind = dtype_abbrs[value.dtype]
    return f'Tensor "{kind}{shape}{stride}{value.device}"'
