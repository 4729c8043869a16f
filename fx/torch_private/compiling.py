"""Stage 05, codegen: what torch.compile can be told of a function.

What torch.compile makes is kept with the code of a function.  A GraphModule is
called through functions that all modules share, so these have to be left alone:
compiling begins at `forward`, whose code is new whenever the graph is.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Final

from ..use_def.values import AnyValue
from .names import find_or

_HOME: Final = "torch._C._dynamo.eval_frame"
_WITHOUT: Final = "torch.compile may run the old code of a recompiled module"

_set_strategy: Final[Callable[[CodeType, AnyValue], None]] = find_or(
    f"{_HOME}:set_code_exec_strategy",
    lambda code, strategy: None,
    without=_WITHOUT,
)
_Strategy: Final[AnyValue] = find_or(
    f"{_HOME}:_FrameExecStrategy", None, without=_WITHOUT
)
_Action: Final[AnyValue] = find_or(
    f"{_HOME}:_FrameAction", None, without=_WITHOUT
)


def skip(code: CodeType) -> None:
    """Have torch.compile leave code alone, and not what it calls."""
    if _Strategy and _Action:
        _set_strategy(code, _Strategy(_Action.SKIP, _Action.DEFAULT))
