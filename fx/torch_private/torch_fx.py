"""Passes: torch.fx's own names that programs import, and fx passes on.

Programs for torch.fx look for the private ones in its modules, so fx has these
under the same paths (`fx.compat.names`).
"""

from __future__ import annotations

from typing import Final

from ..use_def.values import Value
from .names import find

PyTreeCodeGen: Final[Value] = find(
    "torch.fx.graph:_PyTreeCodeGen",
    needed_for="graphs of torch.fx with nested inputs",
)
BoxedCodeGen: Final[Value] = find(
    "torch.fx.graph:_BoxedCodeGen",
    since="2.10",
    needed_for="graphs of torch.fx that take their inputs as one list",
)
PyTreeInfo: Final[Value] = find(
    "torch.fx.graph:_PyTreeInfo",
    needed_for="graphs of torch.fx with nested inputs",
)
parse_stack_trace: Final[Value] = find(
    "torch.fx.graph:_parse_stack_trace",
    needed_for="fx.graph._parse_stack_trace",
)
CodeOnlyModule: Final[Value] = find(
    "torch.fx.graph_module:_CodeOnlyModule",
    needed_for="fx.graph_module._CodeOnlyModule",
)
python_type: Final[Value] = find(
    "torch.fx.operator_schemas:_torchscript_type_to_python_type",
    needed_for="fx.operator_schemas._torchscript_type_to_python_type",
)
