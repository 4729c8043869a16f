"""Extra: errors of `fx.trace` that say what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from types import FrameType
from typing import Final, TypeAlias

import torch
from torch import nn

from ...proxy import TraceError
from ...recording import frames
from ...torch_internals.symbolic_sizes import DATA_DEPENDENT, UNSUPPORTED
from ..watching.advice import raised_in

Paths: TypeAlias = Mapping[nn.Module, str]
"""The modules of a root, and their dotted paths."""


REFUSALS: Final[tuple[type[Exception], ...]] = (
    *(TraceError, NotImplementedError, UNSUPPORTED),
    *DATA_DEPENDENT,
)
"""Errors of a call that eager would not raise."""


def unseen(tensor: torch.Tensor, paths: Paths | None) -> str:
    """The message for a tensor of which no recorded call is known.

    Args:
        tensor: what is used.
        paths: of the modules; None if the program has ended.
    """
    where = "what the program returns"
    advice = "record the call that made it: fx.trace(…, leaves=[its function])"
    if paths is not None:
        where = frames.where()
        advice = leaf_advice(frames.user_frame(), paths)
    return (
        f"a tensor of shape {tuple(tensor.shape)} is used that no call of "
        "torch has made that a trace can see, as in a class of C++ or a "
        f"transform of torch.func\n  in\n  {where}\n  {advice}"
    )


def written(line: str) -> str:
    """The message for a write into a tensor that is a constant of the graph."""
    return (
        "the program writes into a tensor that no call of torch has made that "
        "a trace can see. The graph has it as a constant, in which the next "
        f"call would find what this one has written\n  in\n  {line}\n"
        "  Make it of an input, x.new_tensor(…), or by torch.tensor(…)"
    )


def branches() -> str:
    """The message for branches that give different kinds of tensors."""
    return (
        "the branches of torch.cond give tensors of different shape, dtype or "
        f"number\n  in\n  {frames.where()}"
    )


def caught(error: Exception) -> str:
    """The message for a program that goes on after a call has failed."""
    return (
        f"a call has failed ({type(error).__name__}: {error}), and the program "
        "goes on. With other sizes, or another module, it might not fail"
        f"\n  in\n  {frames.where(raised_in(error))}\n  Ask for what makes it "
        "fail, such as x.shape; or fix the sizes: fx.trace(…, dynamic=False)"
    )


def drawn() -> str:
    """The message for a program that draws numbers of Python or numpy."""
    return (
        "the program draws random numbers of Python's random or of numpy, "
        "which would be the same in each call of the graph. Draw them with "
        "torch, or give them as inputs"
    )


def refusal(error: Exception, paths: Paths) -> Exception:
    """What is raised for an error that eager would not raise."""
    if isinstance(error, DATA_DEPENDENT):
        return TraceError(data_dependent(error, paths))
    if isinstance(error, UNSUPPORTED):
        return TraceError(unsupported(error))
    return error


def data_dependent(error: Exception | None, paths: Paths) -> str:
    """The message for a program that decides by the values of tensors."""
    frame = (error and raised_in(error)) or frames.user_frame()
    return (
        "the program asks for the values of a tensor, which only exist when "
        f"the graph runs\n  in\n  {frames.where(frame)}\n"
        "  Compute it with torch: torch.where(c, a, b) for `a if c else b`, "
        "torch.cond for branches that cost much, torch._check for an error. "
        f"Or keep the call whole: {leaf_advice(frame, paths)}"
    )


def unsupported(error: Exception) -> str:
    """The message for an operator that cannot run without data."""
    return (
        f"an operator has no rule for tensors without data: {error}\n  in\n"
        f"  {frames.where(raised_in(error))}\n  Give it one: "
        "torch.library.register_fake"
    )


def leaf_advice(frame: FrameType | None, paths: Paths) -> str:
    """How to keep the function of a frame whole."""
    name = frame and leaf_name(frame, paths)
    if not name:
        return "move it into a function, and pass fx.trace(…, leaves=[it])"
    return f"fx.trace(…, leaves=[{name!r}]) records a call of it as one node"


def leaf_name(frame: FrameType, paths: Paths) -> str:
    """The path of a frame's module or function; "" if it cannot be a leaf."""
    code = frame.f_code
    first = code.co_varnames[0] if code.co_argcount else ""
    owner = frame.f_locals.get(first)
    if isinstance(owner, nn.Module) and code.co_name == "forward":
        return paths.get(owner, "")
    if "<" in code.co_qualname:
        return ""
    return f"{frame.f_globals.get('__name__')}.{code.co_qualname}"


def devices(error: Exception, found: Mapping[str, str]) -> str:
    """The message for an error of a program whose tensors are on two devices.

    Args:
        error: what the program raised.
        found: name of an input, parameter or buffer → its device.
    """
    placed = {
        device: ", ".join(name for name in found if found[name] == device)
        for device in found.values()
    }
    return (
        f"{str(error).strip()}\n  in\n  {frames.where(raised_in(error))}\n"
        "  The example and the module are on several devices: "
        + "; ".join(f"{names} on {device}" for device, names in placed.items())
    )
