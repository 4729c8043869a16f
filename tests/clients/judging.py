"""What the tables of models traced by fx.trace have in common.

A model is traced on one input, and the graph is called with it and others:
right, refused by a guard, wrong, or an error.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import torch
from torch import nn

import fx
from fx.use_def.values import AnyValue

SECONDS: Final = 240
"""How much of the processor's time a model may take."""


class Row(NamedTuple):
    """What came out for a model.

    Attributes:
        name: of the model, or of its family.
        calls: right, refused, wrong or an error, for each input; none if the
            model does not run at all.
        seconds: of the processor that the trace has taken.
        why: the reason for what is not right.
        others: further cells of the table.
    """

    name: str
    calls: tuple[str, ...]
    seconds: float
    why: str
    others: tuple[str, ...] = ()


def tensors(
    value: AnyValue, seen: set[int] | None = None
) -> list[torch.Tensor]:
    """The tensors in what a model gives, its cache included."""
    seen = set() if seen is None else seen
    if isinstance(value, torch.Tensor):
        return [value]
    if id(value) in seen or isinstance(value, type | nn.Module):
        return []
    seen.add(id(value))
    held: AnyValue = getattr(value, "__dict__", {}).values()
    if isinstance(value, Mapping):
        held = value.values()
    elif isinstance(value, list | tuple):
        held = value
    return [tensor for item in held for tensor in tensors(item, seen)]


def same(one: AnyValue, two: AnyValue) -> bool:
    """Whether two results have nearly equal tensors."""
    pairs = [tensors(one), tensors(two)]
    return len(pairs[0]) == len(pairs[1]) and all(
        a.shape == b.shape
        and torch.allclose(a.double(), b.double(), 1e-4, 1e-4, equal_nan=True)
        for a, b in zip(*pairs, strict=True)
    )


def called(
    gm: AnyValue, model: AnyValue, *args: AnyValue, **given: AnyValue
) -> tuple[str, str]:
    """What a call of the graph is beside one of the model, and why."""
    try:
        torch.manual_seed(0)
        want = model(*args, **given)
    except Exception as error:
        return "-", line(error)
    try:
        torch.manual_seed(0)
        got = gm(*args, **given)
    except fx.GuardError as error:
        return "refused", line(error)
    except Exception as error:
        return "error", line(error)
    return ("right", "") if same(want, got) else ("WRONG", "another result")


def timed(act: Callable[[], AnyValue]) -> tuple[float, AnyValue]:
    """How long something takes, and its result or what it raises."""
    begin = time.process_time()
    try:
        result = act()
    except Exception as error:
        result = error
    return time.process_time() - begin, result


def line(error: Exception | None) -> str:
    """An error as one line."""
    text = str(error).strip().partition("\n")[0][:160]
    return f"{type(error).__name__}: {text}"


def rows(names: Iterable[str], judged: Callable[[str], Row]) -> Iterator[Row]:
    """Judge models, each in a process of its own, for as long as it may."""
    for name in names:
        read, write = os.pipe()
        child = os.fork()
        if not child:
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            signal.alarm(10 * SECONDS)  # for one that waits for ever
            sys.stderr = open(os.devnull, "w")  # noqa: SIM115
            with torch.no_grad():
                os.write(write, repr(tuple(judged(name))).encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            data = pipe.read()
        os.waitpid(child, 0)
        if data:
            yield Row(*eval(data, {"nan": float("nan")}))
        else:
            why = f"over {SECONDS} s of the processor, or killed"
            yield Row(name, ("no end",), 0.0, why)
