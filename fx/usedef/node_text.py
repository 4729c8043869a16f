"""Stage 02, use-def: how a node is written in a printed graph.

    %add : [num_users=1] = call_function[target=operator.add](
        args = (%x, 1), kwargs = {})

on one line.  A Node among the arguments is written with a percent sign, a
constant as `str` writes it.

Tests of many programs compare such lines, so they are torch.fx's.  Lists and
tuples are written by hand because of the nodes inside.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

import torch

from ..linked_list.linked_list import Link
from ..linked_list.opcodes import Opcode
from ..torch_internals.overloads import dtype_abbreviations
from .values import Argument, Value


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
        case set() | frozenset() if arg and type(arg) in (set, frozenset):
            inside = f"{{{', '.join(in_order(arg, map(repr, arg)))}}}"
            return inside if type(arg) is set else f"frozenset({inside})"
        case torch.device():
            return device_text(arg)
    return str(arg)


def in_order(items: Collection[Value], texts: Iterable[str]) -> Iterable[str]:
    """The texts of a set's items, in an order that every process has.

    Strings, and most objects, are in another order in each.
    """
    is_fixed = all(isinstance(item, int | float) for item in items)
    return texts if is_fixed else sorted(texts)


def arguments_text(
    op: Opcode, args: tuple[Argument, ...], kwargs: dict[str, Argument]
) -> str:
    """The end of a node's line in the printed graph: what it is called with."""
    if op == "placeholder":
        return f"(default={args[0]})" if args else ""
    if op == "get_attr":
        return ""
    return f"(args = {format_arg(args)}, kwargs = {format_arg(kwargs)})"


def dtype_text(dtype: torch.dtype) -> str:
    """The short name of a dtype, f32 or bf16; the long one of a rare one."""
    return dtype_abbreviations.get(dtype, str(dtype).removeprefix("torch."))


def device_text(device: torch.device) -> str:
    """A device; without its index if each process is to print the same.

    That is so where a program is compiled on one machine for all
    (`torch.compiler.config.compile_on_one_rank`), and the device is the
    current one.

    torch.fx: node.py, _device_annotation
    """
    for_all = getattr(torch.compiler.config, "compile_on_one_rank", False)
    if for_all and device.index is not None:
        ours = torch.accelerator.current_accelerator()
        number = torch.accelerator.current_device_index() if ours else None
        if ours and (device.type, device.index) == (ours.type, number):
            return device.type
    return str(device)


def has_strides(value: torch.Tensor) -> bool:
    """Whether a tensor has strides; one whose rows are compressed has none."""
    return value.layout not in _COMPRESSED


_COMPRESSED: Final = frozenset(
    (torch.sparse_bsc, torch.sparse_bsr, torch.sparse_csc, torch.sparse_csr)
)
"""The layouts of tensors without strides."""


def tensor_text(meta: dict[str, Value]) -> str:
    """Type, shape, stride and device of a node's value, if its meta has it."""
    value = meta.get("val", meta.get("tensor_meta"))
    if value is None:
        value = meta.get("example_value")
    if not isinstance(value, torch.Tensor):
        return ""
    shape, kind = list(value.shape), dtype_text(value.dtype)
    stride = list(value.stride()) if has_strides(value) else ""
    return f'Tensor "{kind}{shape}{stride}{device_text(value.device)}"'


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows under their header, in columns, as `Graph.print_tabular` prints."""
    columns = zip(header, *rows, strict=True)
    widths = [
        max(len(head) + 2, *map(len, cells), 0) for head, *cells in columns
    ]
    rule = ["-" * width for width in widths]
    return "\n".join(
        "  ".join(
            cell.ljust(width) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in (header, rule, *rows)
    )
