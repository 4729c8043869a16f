"""Stage 02, use-def: protocols for the classes of later stages.

A Graph (02) is filled by a Tracer (04), written as code by a CodeGen (05) and
owned by a GraphModule (05).  But no file imports one of a later stage, so that
the first stages work without the rest.  What a graph needs of those classes is
stated here as protocols, with the data that passes between them.

A later class does not inherit from its protocol; the type checker compares the
two where they meet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

import torch

from ..linked_list.linked_list import Link, LinkedList
from ..torch_private.pytree import pytree
from .values import AnyValue

NodeT = TypeVar("NodeT", bound=Link)

TransformCodeFunc: TypeAlias = Callable[[list[str]], list[str]]
"""Edits the body of generated code, which comes as a list of strings."""

ReplaceHook: TypeAlias = Callable[..., object]
"""Called as hook(old=node, new="its new name", user=node)."""


@dataclass
class PythonCode:
    """What it takes to execute or save a graph as Python.

    Attributes:
        src: the source of the function, and what comes before its `def`.
        globals: the objects that the source uses as globals, by name.
        _lineno_map: line of the function, its `def` being 0 -> index of the
            node in the graph.
        _prologue_start: the line of `src` on which the function begins.

    torch.fx: graph.py, PythonCode
    """

    src: str
    globals: dict[str, AnyValue]
    _lineno_map: dict[int, int | None] | None
    _prologue_start: int = 0


class PyTreeInfo(NamedTuple):
    """How nested inputs become flat placeholders, and flat outputs nested.

    A trace with nested `concrete_args` makes it, and code generation uses it.

    torch.fx: graph.py, _PyTreeInfo
    """

    orig_args: list[str]
    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec | None

    def __deepcopy__(self, memo: object) -> PyTreeInfo:
        """The record itself: nothing in it changes."""
        return self


class GraphOwner(Protocol[NodeT]):
    """The module that a graph belongs to; stage 05's GraphModule.

    torch.fx: graph.py, Graph.owning_module
    """

    _replace_hooks: list[ReplaceHook]
    _create_node_hooks: list[Callable[[NodeT], object]]
    _erase_node_hooks: list[Callable[[NodeT], object]]

    def get_submodule(self, target: str) -> torch.nn.Module:
        """The module at a dotted path; AttributeError if there is none."""
        ...

    def named_children(self) -> Iterator[tuple[str, torch.nn.Module]]:
        """The modules one step down."""
        ...


class GraphTracer(Protocol):
    """What makes a graph by tracing; stage 04's Tracer.

    torch.fx: graph.py, Graph.__init__ (tracer_cls)
    """

    def trace(self, root: AnyValue, concrete_args: AnyValue = None) -> AnyValue:
        """The graph of what `root` does."""


class CodeOptions(NamedTuple):
    """What generated code should show besides what it does.

    Attributes:
        verbose: comments saying where nodes come from, shapes as annotations.
        include_stride: strides beside the shapes.
        include_device: devices beside the shapes.
        colored: ANSI colours.
        expanded_def: one parameter a line.
        record_func: profiler ranges around each call.
        additional_meta: keys of node.meta to show in the comments.
    """

    verbose: bool = False
    include_stride: bool = False
    include_device: bool = False
    colored: bool = False
    expanded_def: bool = False
    record_func: bool = False
    additional_meta: Sequence[str] = ()


class CodeGenerator(Protocol[NodeT]):
    """Writes a graph as Python; stage 05's CodeGen.

    torch.fx: graph.py, CodeGen
    """

    _body_transformer: TransformCodeFunc | None

    def module_attributes(self) -> dict[str, AnyValue]:
        """Attributes of the module that the code reads."""
        ...

    def _gen_python_code(
        self,
        nodes: LinkedList[NodeT],
        root_module: str,
        options: CodeOptions,
    ) -> PythonCode:
        """The graph as a function `forward`."""
        ...

    def process_inputs(self, *args: AnyValue) -> AnyValue:
        """A caller's inputs, as the graph's placeholders take them."""

    def process_outputs(self, out: AnyValue, /) -> AnyValue:
        """The graph's outputs, as the caller gets them."""
