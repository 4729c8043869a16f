"""Extra: errors of `fx.trace` that say what to do next."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from itertools import takewhile
from types import FrameType
from typing import Final, TypeAlias

import torch
from torch import nn

from ...proxy import TraceError
from ...recording import frames
from ...torch_private.symbolic_sizes import (
    DATA_DEPENDENT,
    UNDECIDED,
    UNSUPPORTED,
)
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


def unknown_size(line: str) -> str:
    """The message for what torch assumed of a size inside of a call."""
    return (
        "torch takes something to hold of a size that depends on the values of "
        f"tensors, and no tensor of the graph has that size\n  in\n  {line}\n"
        "  Let the program compute it outside of functions that it hands to "
        "torch; or keep the call whole: fx.trace(…, leaves=[…])"
    )


def branches() -> str:
    """The message for branches that give different kinds of tensors."""
    return (
        "the branches of torch.cond give tensors of different shape, dtype or "
        f"number\n  in\n  {frames.where()}"
    )


def refused(path: str, value: object) -> str:
    """The message for an input or a result that is not taken apart.

    Args:
        path: how it is written.
        value: the input or the result, or a part of it.
    """
    return (
        f"{path} is a {type(value).__qualname__}, which fx.trace cannot take "
        "apart wholly, so nobody could tell whether it is the same in a later "
        "call, or make it anew\n  Give what it holds as tensors and "
        "constants, in tuples, lists, dicts or a dataclass. Or tell torch how "
        "to take its class apart: "
        "torch.utils._pytree.register_pytree_node(cls, flatten, unflatten)"
    )


def parameter(name: str) -> str:
    """The message for a result that the program makes a parameter of."""
    return (
        f"the result {name} is an nn.Parameter that the program makes, and a "
        "graph makes plain tensors. Return the tensor that it is made of"
    )


def changed(name: str) -> str:
    """The message for a leaf that changes a list or dict among its arguments.

    Args:
        name: of what is called.
    """
    return (
        f"{name}, which is recorded as one node, changes a list or dict that "
        f"it is given, and the graph would not\n  in\n  {frames.where()}\n"
        "  Return the new one, or leave it out of leaves="
    )


def caught(error: Exception) -> str:
    """The message for a program that goes on after a call has failed."""
    return (
        f"a call has failed ({type(error).__name__}: {error}), and the program "
        "goes on. With other sizes, or another module, it might not fail"
        f"\n  in\n  {frames.where(raised_in(error))}\n  Ask for what makes it "
        "fail, such as x.shape; or fix the sizes: fx.trace(…, dynamic=False)"
    )


def hook(paths: Paths) -> str:
    """The message for a hook that the program registers on a tensor."""
    return (
        "the program registers a hook on a tensor, and a graph cannot hold a "
        f"function\n  in\n  {frames.where()}\n  Write a "
        "torch.autograd.Function. Or keep the call whole: "
        f"{leaf_advice(frames.user_frame(), paths)}"
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
    if isinstance(error, UNDECIDED):
        return (
            "the program asks for a size that depends on the values of "
            "tensors, which only exist when the graph runs\n  in\n  "
            f"{frames.where(frame)}\n  If it is always so, say that before, "
            "torch._check(n > 0), which the graph then checks; or let torch "
            f"take what is empty, too. Or keep the call whole: "
            f"{leaf_advice(frame, paths)}"
        )
    return (
        "the program asks for the values of a tensor, which only exist when "
        f"the graph runs\n  in\n  {frames.where(frame)}\n"
        + "  torch.distributions checks its arguments: "
        "Normal(…, validate_args=False) does not\n"
        * _in_distribution()
        + "  Compute it with torch: torch.where(c, a, b) for `a if c else b`, "
        "torch.cond for branches that cost much, torch._check for an error. "
        f"Or keep the call whole: {leaf_advice(frame, paths)}"
    )


def _in_distribution() -> bool:
    """Whether the user's code has called a distribution, which asks."""
    stack = (frame for frame, _ in traceback.walk_stack(None))
    called = takewhile(lambda frame: not frames.is_user(frame), stack)
    names = [str(frame.f_globals.get("__name__")) for frame in called]
    return any(name.startswith("torch.distributions") for name in names)


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
    callers = takewhile(
        lambda entry: entry[0].f_code is not frames.run_traced.__code__,
        traceback.walk_stack(frame.f_back),
    )
    is_root = not any(frames.is_user(caller) for caller, _ in callers)
    if is_root or "<" in code.co_qualname:
        return ""
    return f"{frame.f_globals.get('__name__')}.{code.co_qualname}"


def fixed(size: str, value: float, asked: str, line: str) -> str:
    """The message for a size that must stay free, and that the program fixes.

    Args:
        size: how it is written.
        value: what it is in the example.
        asked: what the program relies on.
        line: of the program.
    """
    plain = f"{size} == {value}", f"{size} is {value}"
    why = "" if asked in plain else f", because of {asked}"
    return (
        f"dynamic= says that {size} may vary, and the program fixes it to "
        f"{value}{why}\n  in\n  {line}\n  Let the line ask something else. "
        "What dynamic= does not name is fixed; with torch.export.Dim.AUTO a "
        "size varies if it can"
    )


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


def differs(found: str) -> str:
    """The message for a graph that gives something else than its program."""
    return (
        f"on its own example the graph does not give what the program gives: "
        f"{found}\n  A call went by the trace, or the program decides by "
        "something that is not one of its inputs. Make the function that does "
        "so a leaf, fx.trace(…, leaves=[…]); check=False returns the graph as "
        "it is"
    )


def leaf_changed(path: str) -> str:
    """The message for a leaf that the program changes and that stays whole."""
    return (
        f"the program changes the module {path} and calls it, and a call of a "
        "scripted module, or of one with a backward hook, is recorded as one "
        f"node, which would call it unchanged\n  in\n  {frames.where()}\n"
        "  Change it before the trace, or give what changes as an input"
    )


def backward_hook(name: str) -> str:
    """The message for a root whose backward hooks no graph runs."""
    return (
        f"{name} has a backward hook, which the graph would not run. Trace it "
        "as a child of another module, which records its call as one node; or "
        "under torch.no_grad()"
    )
