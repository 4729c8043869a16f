"""Stage 04, module patching: questions that no proxy is asked itself.

`isinstance(x, torch.Tensor)` looks at the class of x, and `callable(x)` at
what its class has.  A proxy cannot answer like a tensor there, so that a trace
replaces these builtins and warns.  And what `torch.compile` has wrapped asks
torch.fx whether a trace runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch

from ..proxy import Proxy, TracerBase
from ..recording import frames
from ..usedef.values import Value
from .patching import TRACES

QUESTIONS: Final = frozenset(("callable", "hasattr", "isinstance"))
"""Builtins that ask what an object is, which a graph cannot record."""

_A_TENSOR: Final = torch.empty(0)


def warn_unless_a_tensor_agrees(
    function: Callable[..., Value], args: tuple[Value, ...], result: Value
) -> None:
    """Warn if a question about a proxy has another answer for a tensor.

    Args:
        function: one of QUESTIONS.
        args: what it was called with.
        result: its answer.
    """
    asked = args[0] if args else None
    if not isinstance(asked, Proxy) or isinstance(result, Proxy):
        return
    if result is function(_A_TENSOR, *args[1:]):
        return
    frame = frames.user_frame()
    if frame is not None and frames.is_method_of(frame, Proxy, TracerBase):
        return  # it is not part of the program that is traced
    frames.warn(
        f"{function.__name__} of {asked} is {result}, because it is a proxy; "
        "of a tensor it is not, and what follows is decided while tracing. "
        "Ask something else, or move the code into a function marked with "
        "fx.wrap"
    )


class _Flag:
    """Whether a trace of fx runs here, or one of torch.fx.

    It is read as a flag or called as a function, as the torch that is
    installed does.
    """

    def __init__(self, theirs: Value) -> None:
        """Stand for torch.fx's own flag, or its function, too."""
        self._theirs = theirs

    def __bool__(self) -> bool:
        """Answer whoever reads the flag."""
        return TRACES.current is not None or bool(self._theirs)

    def __call__(self) -> bool:
        """Answer whoever calls the function."""
        return TRACES.current is not None or bool(self._theirs())


make_flag: Final[Callable[[Value], Value]] = _Flag
"""Makes what replaces torch.fx's flag."""
