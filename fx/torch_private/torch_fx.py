"""Passes: torch.fx's own names, and where its graphs reach a program.

Programs for torch.fx look for private names in its modules, so fx has these
under the same paths (`fx.compat.names`).

`fx.as_torch` puts other functions in the place of those through which graphs
reach a program.  Most are in modules that a program may never load, so they are
named here, and looked up when they are loaded: to import them at once would
load all of Dynamo.  If a later torch lacks a name, what was put in its place
raises as soon as it is called.  `ExportedProgram` is not here, because it is
public.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from ..use_def.values import AnyValue
from .names import find

PyTreeCodeGen: Final[AnyValue] = find(
    "torch.fx.graph:_PyTreeCodeGen",
    needed_for="graphs of torch.fx with nested inputs",
)
BoxedCodeGen: Final[AnyValue] = find(
    "torch.fx.graph:_BoxedCodeGen",
    since="2.10",
    needed_for="graphs of torch.fx that take their inputs as one list",
)
PyTreeInfo: Final[AnyValue] = find(
    "torch.fx.graph:_PyTreeInfo",
    needed_for="graphs of torch.fx with nested inputs",
)
parse_stack_trace: Final[AnyValue] = find(
    "torch.fx.graph:_parse_stack_trace",
    needed_for="fx.graph._parse_stack_trace",
)
exec_with_source: Final[AnyValue] = find(
    "torch.fx.graph_module:_exec_with_source",
    needed_for="fx.graph_module._exec_with_source",
)
LazyGraphModule: Final[AnyValue] = find(
    "torch.fx._lazy_graph_module:_LazyGraphModule",
    needed_for="fx._lazy_graph_module._LazyGraphModule",
)
use_lazy: Final[AnyValue] = find(
    "torch.fx._lazy_graph_module:_use_lazy_graph_module",
    needed_for="fx._lazy_graph_module._use_lazy_graph_module",
)
skip_lazy: Final[AnyValue] = find(
    "torch.fx._lazy_graph_module:_force_skip_lazy_graph_module",
    needed_for="fx._lazy_graph_module._force_skip_lazy_graph_module",
)
CodeOnlyModule: Final[AnyValue] = find(
    "torch.fx.graph_module:_CodeOnlyModule",
    needed_for="fx.graph_module._CodeOnlyModule",
)
python_type: Final[AnyValue] = find(
    "torch.fx.operator_schemas:_torchscript_type_to_python_type",
    needed_for="fx.operator_schemas._torchscript_type_to_python_type",
)

Around: TypeAlias = Callable[[AnyValue], AnyValue]
"""Given a function, it returns the one to put in its place."""

LOOKUP: Final = "torch._dynamo.backends.registry:lookup_backend"
"""Is given a backend of torch.compile, or its name, and returns it."""

COMPILING: Final = (
    "torch._dynamo.backends.common:aot_autograd",
    "torch._functorch.aot_autograd:aot_function",
    "torch._functorch.aot_autograd:aot_module_simplified",
)
"""Are given functions that compile graphs, by the names `COMPILERS`."""

COMPILERS: Final = ("fw_compiler", "bw_compiler", "inference_compiler")

OF_BACKENDS: Final = ("compiler_name", "get_compiler_config", "reset")
"""What a backend may have besides being called."""


def replace(path: str, around: Around) -> None:
    """Put another function in the place of one of those above.

    Args:
        path: its module has just been loaded. What has imported the function
            from it already goes on to use the old one.
        around: makes the other.
    """
    module, _, name = path.partition(":")
    function = find(path, needed_for="backends of programs for torch.fx")
    vars(sys.modules[module])[name] = around(function)


def by_module(doors: Mapping[str, Around]) -> dict[str, dict[str, Around]]:
    """Doors by their modules."""
    grouped: dict[str, dict[str, Around]] = {}
    for path, around in doors.items():
        grouped.setdefault(path.partition(":")[0], {})[path] = around
    return grouped
