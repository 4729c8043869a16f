"""Extra: generated code for people to read.

The same statements with comments: the line of the user's program that made
each node, the shape of its value, colours.  Comments and quoted shapes come
from `node.meta`, in which passes put objects of any kind.  Their text is cut
to one line of printable characters, and an object that is not plain data is
shown as its type, so that reading a graph never runs a part of it.  A line
break in a comment would end it and begin a statement, and the `__repr__` of an
object in `meta` may fail or never end.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Final

import torch

from ...codegen.argument_text import ArgumentPrinter, is_sum
from ...codegen.names import GlobalNames
from ...codegen.source import frames_of
from ...immutable_collections import immutable_dict, immutable_list
from ...node import Node
from ...torch_private.fake_tensors import FakeTensor
from ...torch_private.overloads import HigherOrderOperator, OpOverload
from ...use_def.protocols import CodeOptions
from ...use_def.text import device_text, dtype_text, has_strides
from ...use_def.values import LEAVES, AnyValue
from .boxed import BoxingEmitter

# These are torch.fx's, and so are the names of profiler ranges, for which tools
# look.
RED: Final = "\033[31m"
GREEN: Final = "\033[32m"
BLUE: Final = "\033[34m"
DIM: Final = "\033[2m"
PLAIN: Final = "\033[0m"

_PROFILER: Final = "torch._C._profiler._RecordFunctionFast"
_INPUTS: Final = "ENTER_GRAPH_PLACEHOLDER_KEY"
_LONG: Final = 40
_LARGE: Final = 1 << 12
_DEEP: Final = 8
"""The longest note, the largest int (in bits) and the deepest container that
a comment shows whole. Python refuses to print very long ints."""


class ReadableEmitter(BoxingEmitter):
    """An emitter that shows what its options ask for.

    It is a class of its own because code to run is written far more often than
    code to read, and should not ask six questions about each node.  Comments
    and ranges go around what the base class writes.

    torch.fx: graph.py, CodeGen._gen_python_code; one function writes code to
    run and code to read.
    """

    def __init__(
        self, options: CodeOptions, *args: AnyValue, **kwargs: AnyValue
    ) -> None:
        """Name everything; `run` writes.

        Args:
            options: what to show. FX_GRAPH_SHOW_STRIDE=1 and
                FX_GRAPH_SHOW_DEVICE=1 in the environment count as well.
                (torch.fx's FX_GRAPH_SHOW_META does not: it would put the
                text of any object among the statements.)
            args: as for an Emitter.
            kwargs: as for an Emitter.
        """
        super().__init__(*args, **kwargs)
        self._options = options
        self._strides = options.include_stride or _is_set("STRIDE")
        self._devices = options.include_device or _is_set("DEVICE")
        self._summary = ""
        self._recorder = self.globals.in_torch(_PROFILER)
        if options.colored:
            printer = ColouredPrinter(self.variables, self.globals)
            self._text = printer.text

    def run(self) -> None:
        """Write all nodes, inside a profiler range if that is asked for.

        As in torch.fx, it is closed behind the return statement.
        """
        if not self._options.record_func:
            return super().run()
        self._enter("", _INPUTS, None)
        super().run()
        self._leave("", self.origins[-1])

    def write(self, index: int, node: Node) -> None:
        """Write one node, with a comment and a profiler range around it."""
        if self._options.verbose and node.op not in ("placeholder", "output"):
            self._comment(node)
        if not (self._options.record_func and node.op.startswith("call_")):
            return super().write(index, node)
        suffix = f"_{self.variables[node]}"
        self._enter(suffix, str(index), index)
        super().write(index, node)
        self._leave(suffix, index)

    # -- profiler ranges ---------------------------------------------------

    def _enter(self, suffix: str, key: str, index: int | None) -> None:
        """Open a profiler range, in a variable with a name of its own."""
        name = self.globals.scratch(f"_rf{suffix}")
        line = f"{name} = {self._recorder}('## {key} ##'); {name}.__enter__()\n"
        self.write_line(line, index)

    def _leave(self, suffix: str, index: int | None) -> None:
        """Close a profiler range."""
        name = self.globals.scratch(f"_rf{suffix}")
        self.write_line(f"{name}.__exit__(None, None, None)\n", index)

    # -- parts of statements -----------------------------------------------

    def placeholder(self, node: Node) -> str:
        """A parameter, with its description if each has its own line."""
        statement = super().placeholder(node)
        if self._options.expanded_def:
            # Who writes the `def` line finds the comment by the first "#", as
            # in torch.fx.  In an annotation or default it can only be inside a
            # string, where \x23 means the same.
            text = self.parameters.pop().replace("#", r"\x23")
            description = node.meta.get("desc")
            if description is not None:
                text += f"  # {_one_line(description)}"
            self.parameters.append(text)
        return statement

    def _descriptions(self, node: Node) -> Sequence[str] | None:
        """What each item of the output is."""
        descs = node.meta.get("desc") if self._options.expanded_def else None
        if not isinstance(descs, list | tuple):
            return None
        return [_one_line(desc) for desc in descs]

    def _annotation(self, node: Node) -> str:
        """What is known of the value, else the type of the node.

        It is in quotes, so evaluating it gives a text.
        """
        known = self._known(node) if self._options.verbose else ""
        return f': "{known}"' if known else super()._annotation(node)

    def _end(self, node: Node) -> str:
        """The end of a line, with what it frees made dim."""
        return self._dim(super()._end(node)[:-1]) + "\n"

    def _free(self, names: Sequence[str]) -> str:
        """What frees boxes, and what is in them, made dim."""
        return self._dim(super()._free(names))

    def _dim(self, end: str) -> str:
        """`;  x = None`, or nothing."""
        return f";  {self._paint(DIM, end[3:])}" if end else ""

    # -- what is known of a value ------------------------------------------

    def _known(self, node: Node) -> str:
        """Dtype and shape of a tensor, the expression of a symbol.

        Fake tensors leave `val`, `ShapeProp` leaves `tensor_meta`, and Dynamo
        leaves `example_value`.
        """
        keys = ("val", "tensor_meta", "example_value")
        value: AnyValue = next(
            (node.meta[k] for k in keys if k in node.meta), None
        )
        if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
            return f"Sym({_harmless(str(value))})"
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        dtype = getattr(value, "dtype", None)
        if isinstance(dtype, torch.dtype) and hasattr(value, "shape"):
            return f"{dtype_text(dtype)}{_sizes(value.shape)}"
        return ""

    def _tensor(self, value: torch.Tensor) -> str:
        """`f32[2, 3]`, in the name of its class if that is a special one."""
        text = self._paint(RED, dtype_text(value.dtype))
        text += self._paint(BLUE, _sizes(value.shape))
        strided = self._strides and has_strides(value)
        stride = _sizes(value.stride()) if strided else ""
        text += self._paint(DIM + BLUE, stride)
        device = _harmless(device_text(value.device)) if self._devices else ""
        text += self._paint(DIM + GREEN, device)
        kind = type(value)
        if kind is torch.Tensor or kind is FakeTensor:
            return text
        return f"{_harmless(kind.__name__)}({text})"

    # -- comments ----------------------------------------------------------

    def _comment(self, node: Node) -> None:
        """Write where a node is from, unless the last comment says it.

        One line of a program makes several nodes.  In the line map, a comment
        belongs to the node before it.
        """
        text = self._paint(DIM, self._origin(node))
        if text != self._summary:
            self._summary = text
            last = self.origins[-1] if self.origins else None
            self.write_line(f"\n{text}\n", last)

    def _origin(self, node: Node) -> str:
        """The comment: where a node is from, and what passes noted."""
        meta = node.meta
        keys = [key for key in self._options.additional_meta if key in meta]
        notes = ", ".join([f"{key}: {_one_line(meta[key])}" for key in keys])
        head = f"# {_one_line(notes)} " if notes else ""
        notes = f"{_annotation_note(meta)}{_recompute_note(meta)}"
        return f"{head}#{notes} {_one_line(_frame_of(node))}"

    def _paint(self, colour: str, text: str) -> str:
        """Text in a colour."""
        return f"{colour}{text}{PLAIN}" if self._options.colored else text


class ColouredPrinter(ArgumentPrinter):
    """Writes constants in blue, and containers and names without colour."""

    def __init__(
        self, variables: Mapping[Node, str], names: GlobalNames
    ) -> None:
        """Make a printer for one generated function."""
        super().__init__(variables, names)
        self._plain = ArgumentPrinter(variables, names)

    def text(self, value: AnyValue) -> str:
        """An argument as a Python expression with escape codes in it."""
        if hasattr(type(value), "_fields"):
            return self._plain.text(value)
        if isinstance(value, _NOT_BLUE):
            return super().text(value)
        if type(value) is complex and not is_sum(value):
            return super().text(value)  # a call, with blue parts
        return f"{BLUE}{self._plain.text(value)}{PLAIN}"


_NOT_BLUE: Final = (
    Node,
    tuple,
    list,
    slice,
    Enum,
    torch.Tensor,
    OpOverload,
    HigherOrderOperator,
)
"""Types of arguments that torch.fx does not colour.

It asks about these before it comes to the constants.
"""

_PLAIN: Final = LEAVES - {torch.Tensor, int} | {Node}
"""Exact types whose `repr` is known, and short: that of a tensor may be pages,
and that of an int is looked at by itself."""

_BRACKETS: Final[dict[type, str]] = {
    tuple: "({})",
    list: "[{}]",
    immutable_list: "[{}]",
    dict: "{{{}}}",
    immutable_dict: "{{{}}}",
}
"""Exact types of containers that are shown with what is in them."""


def _is_set(what: str) -> bool:
    """Whether the environment asks for strides or devices."""
    return os.environ.get(f"FX_GRAPH_SHOW_{what}") == "1"


def _frame_of(node: Node) -> str:
    """The innermost frame of a node's stack trace, in one line.

    torch.fx: graph.py, _parse_stack_trace; it writes the same comment, with
    the `str` of what passes left in `meta`, which may break the line.
    """
    frames = frames_of(node.stack_trace)
    if not frames:
        return "No stacktrace found for following nodes"
    file, number, function, code = frames[-1]
    backward = node.meta.get("autograd_backward", False) is True
    head = "Backward of forward node: " if backward else ""
    return f"{head}File: {file}:{number} in {function}, code: {code}"


def _annotation_note(meta: dict[str, AnyValue]) -> str:
    """What the user said of a part of the program (`traceback.annotate`)."""
    notes = meta.get("custom")
    if not notes or not isinstance(notes, dict):
        return ""
    shown = []
    for key, value in notes.items():
        text = _shown(value)
        long = f"{text[:_LONG]}..." if len(text) > _LONG else value
        shown.append(f"{_literal(key)}: {_literal(long)}")
    return f" Annotation: {{{_one_line(', '.join(shown))}}}"


def _recompute_note(meta: dict[str, AnyValue]) -> str:
    """What activation checkpointing has decided."""
    group, policy = meta.get("ac_graph_id"), meta.get("recompute")
    name = _one_line(getattr(policy, "name", policy))
    if group is None:
        return "" if policy is None else f" recompute: {name}"
    suffix = "" if policy is None else f" - {name}"
    return f" ac_graph_id: {_one_line(group)}{suffix}"


# -- text of any object ----------------------------------------------------


def _shown(value: AnyValue) -> str:
    """A value as `print` shows it, if it is plain; else its type."""
    return value if type(value) is str else _literal(value)


def _literal(value: AnyValue, depth: int = 0) -> str:
    """A value as `repr` shows it, if it is plain; else its type."""
    kind = type(value)
    if kind in _PLAIN:
        return repr(value)
    if kind is int and value.bit_length() < _LARGE:
        return repr(value)
    if issubclass(kind, Enum):
        return f"{kind.__name__}.{value._name_}"
    if kind in _BRACKETS and depth < _DEEP:
        return _BRACKETS[kind].format(_literals(value, depth + 1))
    return f"<{kind.__name__}>"


def _literals(value: AnyValue, depth: int) -> str:
    """The items of a container."""
    if isinstance(value, dict):
        items = [
            f"{_literal(key, depth)}: {_literal(item, depth)}"
            for key, item in value.items()
        ]
    else:
        items = [_literal(item, depth) for item in value]
    comma = "," if type(value) is tuple and len(value) == 1 else ""
    return ", ".join(items) + comma


def _sizes(sizes: Iterable[AnyValue]) -> str:
    """`[2, s0]`."""
    return f"[{', '.join([_harmless(str(size)) for size in sizes])}]"


def _one_line(value: AnyValue) -> str:
    """A value as text that stays inside a comment."""
    text = " ".join(_shown(value).splitlines())
    return "".join([c if c.isprintable() or c == "\t" else "?" for c in text])


def _harmless(text: str) -> str:
    """Text that stays inside double quotes, with no backslash before one."""
    return _one_line(text).replace('"', "'").replace("\\", "/")
