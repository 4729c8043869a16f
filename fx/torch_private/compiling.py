"""Stage 05, codegen: what torch.compile can be told of a function.

What torch.compile makes is kept with the code of a function.  A GraphModule is
called through functions that all modules share, so these have to be left alone:
compiling begins at `forward`, whose code is new whenever the graph is.
"""

from __future__ import annotations

from contextlib import suppress
from types import CodeType
from typing import Final

from ..use_def.values import AnyValue
from .names import find_or

_eval_frame: Final[AnyValue] = find_or(
    "torch._C._dynamo.eval_frame",
    None,
    without="torch.compile may run the old code of a recompiled module",
)


def skip(code: CodeType) -> None:
    """Have torch.compile leave code alone, and not what it calls."""
    with suppress(TypeError, KeyError):  # of a torch without these names
        names: AnyValue = vars(_eval_frame)
        action = names["_FrameAction"]
        strategy = names["_FrameExecStrategy"](action.SKIP, action.DEFAULT)
        names["set_code_exec_strategy"](code, strategy)
