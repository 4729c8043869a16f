"""Stage 02, use-def: how a node is written in a printed graph.

    %add : [num_users=1] = call_function[target=operator.add](
        args = (%x, 1), kwargs = {})

on one line.  A Node among the arguments is written with a percent sign, a
constant as `str` writes it.

Tests of many programs compare such lines, so they are torch.fx's.  Lists and
tuples are written by hand because of the nodes inside.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from types import FunctionType
from typing import Final, TypeVar

import torch
from torch.nn import functional

from ..linked_list.linked_list import Link
from ..linked_list.namespace import BUILTINS
from ..linked_list.opcodes import Opcode
from ..torch_private.overloads import dtype_abbreviations
from .values import AnyValue, Argument

ClassT = TypeVar("ClassT", bound=type)

_RESPELLED: Final = {
    "torch.segment_reduce": "torch._segment_reduce",
    "torch.nn.functional._ScalingType": "torch.nn.functional.ScalingType",
    "torch.nn.functional._SwizzleType": "torch.nn.functional.SwizzleType",
}
"""Functions of torch whose `__name__` is not the name they are found under."""

_lambda_assigned = re.compile(r"\s*([A-Za-z_][\w.]*)\s*(?::[^=]*)?=\s*lambda\b")


def _get_qualified_name(func: object) -> str:
    """The name of a callable, with the module it is in.

    Builtins are bare (`len`), methods of tensors are `torch.Tensor.relu`,
    everything else is `module.name`.  A callable without a name is written as
    its type: `functools.partial`, `builtins.list.append`.

    torch.fx: node.py, _get_qualified_name
    """
    name = getattr(func, "__name__", None)
    if not isinstance(name, str):
        return _of_type(type(func))
    if BUILTINS.get(name) is func:
        return name
    if _is_tensor_method(func, name):
        return f"torch.Tensor.{name}"
    if name == "<lambda>":
        name = _lambda_name(func)
    module = getattr(func, "__module__", None)
    if not isinstance(module, str):
        homes = (m for m in (torch, functional) if m.__dict__.get(name) is func)
        module = getattr(next(homes, None), "__name__", None)
    if module is None:  # a method: of the class that has it, or is asked
        owner = getattr(func, "__objclass__", None)
        bound_to: object = getattr(func, "__self__", func)
        cls = owner if isinstance(owner, type) else type(bound_to)
        return f"{_of_type(cls)}.{name}"
    # torch.ops.aten.add says that its module is torch._ops.aten.
    text = f"{module.replace('torch._ops', 'torch.ops')}.{name}"
    return _RESPELLED.get(text, text)


def _is_tensor_method(func: object, name: str) -> bool:
    """Whether `func` is found as `torch.Tensor.<name>`.

    `torch.Tensor.relu` says that it is of a private base class, so the test is
    whether `torch.Tensor` has this very object.  One written in Python must be
    from `torch._tensor`, since a user may put one on Tensor.
    """
    if getattr(func, "__qualname__", None) == f"Tensor.{name}":
        return getattr(func, "__module__", None) == "torch._tensor"
    descriptor = not isinstance(func, FunctionType)
    return descriptor and getattr(torch.Tensor, name, None) is func


def _of_type(cls: type) -> str:
    """A class with its module: `builtins.list`."""
    return f"{cls.__module__}.{cls.__qualname__}"


def _lambda_name(func: object) -> str:
    """The variable that a lambda is assigned to in its source, if it is.

    With two lambdas on one line that can be wrong; `resolves_to` finds out
    before code uses it.
    """
    if not isinstance(func, FunctionType):
        return "<lambda>"
    try:
        source = inspect.getsource(func)
    except (OSError, TypeError):  # typed at a prompt, or made by exec
        return "<lambda>"
    assigned = _lambda_assigned.match(source)
    return assigned[1] if assigned else "<lambda>"


def resolves_to(text: str, obj: object) -> bool:
    """Whether the dotted name `text`, looked up, is exactly `obj`.

    The first atom is an imported module, or alone a builtin; the rest are
    attributes.  This is the question to ask before a name stands for an object
    in generated code: a callable's `__name__` and `__module__` can say
    anything.  Of the object itself nothing runs.

    Nothing is imported, since that would run code that a `__module__` names.

    Cost: O(atoms).
    """
    head, *atoms = text.split(".")
    if not atoms:
        return head in BUILTINS and BUILTINS[head] is obj
    value: object = sys.modules.get(head)
    try:
        for atom in atoms:
            value = getattr(value, atom)
    except Exception:  # a module's own __getattr__ may raise anything
        return False
    return value is obj


def _type_repr(obj: object) -> str:
    """How a type, or whatever else is an annotation, is written.

    A class is `module.qualname` (bare for builtins), `...` is itself, a
    function is its name, and all else, such as `list[int]`, is its repr.

    torch.fx: node.py, _type_repr
    """
    if isinstance(obj, type):
        in_builtins = obj.__module__ == "builtins"
        return obj.__qualname__ if in_builtins else _of_type(obj)
    if obj is ...:
        return "..."
    return obj.__name__ if isinstance(obj, FunctionType) else repr(obj)


def is_from_torch(obj: object) -> bool:
    """Whether `obj` says that it lives in torch: in `torch` or `torch.x.y`.

    What is in a module of `torch._dynamo` or `torch._inductor` does not
    count, because those generate functions from a user's code.

    torch.fx: graph.py, _is_from_torch
    """
    module = getattr(obj, "__module__", None)
    if module is not None:
        return isinstance(module, str) and _is_torch_module(module)
    name = getattr(obj, "__name__", None)
    if not isinstance(name, str) or name == "torch":
        return False
    return any(getattr(m, name, None) is obj for m in (torch, functional))


@lru_cache(maxsize=1024)
def _is_torch_module(name: str) -> bool:
    """Whether a module of this name counts as torch's own."""
    head, *atoms = name.split(".")
    inside_compiler = not {"_dynamo", "_inductor"}.isdisjoint(atoms[:-1])
    return head == "torch" and all(atoms) and not inside_compiler


def pretty_target(target: object) -> str:
    """A node's target as the printed graph shows it.

    Strings are themselves; callables are `builtins.len`, `operator.add`,
    `torch.relu`, `my_model.scale`.

    A builtin has its module, so that it is not taken for a method's name.

    torch.fx: node.py, Node._pretty_print_target
    """
    if isinstance(target, str):
        return target
    text = _get_qualified_name(target)
    if "." not in text and target.__module__ == "builtins":
        return f"builtins.{text}"
    # The module of `operator` calls itself by the name of its C half.
    return text[1:] if text.startswith("_operator.") else text


def importable(cls: ClassT | None) -> ClassT | None:
    """A class if it can be found again by its name, else None."""
    if cls is None or "<locals>" in cls.__qualname__:
        return None
    return cls


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


def in_order(items: Collection[object], texts: Iterable[str]) -> Iterable[str]:
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


def tensor_text(meta: dict[str, AnyValue]) -> str:
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
