"""What the tables of models traced by fx.trace have in common.

A model is traced on one input, and the graph is called with it and others:
right, refused by a guard, wrong, or an error.
"""

from __future__ import annotations

import copy
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import torch
from torch import nn

import fx
from fx.torch_private.pytree import pytree
from fx.use_def.values import AnyValue
from tests.clients.small import NETWORKS

Given: TypeAlias = tuple[tuple[AnyValue, ...], dict[str, AnyValue]]
"""Arguments of a call, without and with names."""

CPU: Final = "CPU seconds"

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


class Table(NamedTuple):
    """Models that are tried in one way.

    Attributes:
        name: of the file below `results`.
        calls: what each call of a graph is named.
        build: a model of a name, and the arguments of each call, the first of
            which is the example; what does not run raises.
        packages: whose versions are noted.
        free: whether torch.export gets all sizes free; None if it is not tried.
        modes: whether models are traced in training, for each time.
        explained: name of a model → why it is not right.
    """

    name: str
    calls: Sequence[str]
    build: Callable[[str], tuple[AnyValue, Sequence[Given]]]
    packages: Sequence[str]
    free: bool | None = None
    modes: Sequence[bool] = (False,)
    explained: Mapping[str, str] = {}

    @property
    def heads(self) -> tuple[str, ...]:
        """The columns of a row after its name: calls, and then others."""
        others = () if self.free is None else ("torch.export",)
        return *self.calls, *others, *(f"its {CPU}" for _ in others)


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


def judged(table: Table, name: str) -> Row:
    """Build, trace, call and export a model."""
    torch.manual_seed(0)
    try:
        model, given = table.build(name)
    except Exception as error:
        return Row(name, (), 0.0, line(error))
    args, kwargs = given[0]
    numbers = [x for x in kwargs if not isinstance(kwargs[x], torch.Tensor)]
    dynamic = dict.fromkeys(kwargs, True) if numbers else None
    found: list[tuple[str, str]] = []
    seconds = 0.0
    for training in table.modes:
        model.train(training)
        took, gm = timed(
            lambda: fx.trace(model, *args, dynamic=dynamic, **kwargs)
        )
        seconds = seconds or took
        if isinstance(gm, Exception):
            found.append(("not traced", line(gm)))
            found += [("-", "")] * (len(given) - 1)
            continue
        for a, named in given:  # a call in training writes into the modules
            both = copy.deepcopy((gm, model)) if training else (gm, model)
            found.append(called(*both, *a, **named))
    calls, reasons = zip(*found, strict=True)
    others = exported(model.eval(), given[0], table.free)
    return Row(name, calls, seconds, next(filter(None, reasons), ""), others)


def exported(
    model: nn.Module, given: Given, free: bool | None
) -> tuple[str, ...]:
    """Whether torch.export takes a model, and in what time."""
    export: AnyValue = torch.export
    if free is None:
        return ()
    shapes = export.ShapesCollection()
    for leaf in pytree.tree_leaves(given):
        if isinstance(leaf, torch.Tensor):
            size = export.Dim.AUTO if free else export.Dim.STATIC
            shapes[leaf] = (size,) * leaf.dim()
    took, program = timed(
        lambda: export.export(
            model, *given, dynamic_shapes=shapes, strict=False
        )
    )
    return "no" if isinstance(program, Exception) else "yes", f"{took:.1f}"


def known(name: str) -> tuple[nn.Module, list[Given]]:
    """A model of this project."""
    make, x = NETWORKS[name]
    return make().eval(), [((x,), {})]


def rows(table: Table, names: Iterable[str]) -> Iterator[Row]:
    """Judge models, each in a process of its own, for as long as it may."""
    for name in NETWORKS:  # import what each of them needs
        judged(table._replace(build=known), name)
    for name in names:
        read, write = os.pipe()
        child = os.fork()
        if not child:
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            signal.alarm(10 * SECONDS)  # for one that waits for ever
            sys.stderr = open(os.devnull, "w")  # noqa: SIM115
            with torch.no_grad():
                os.write(write, repr(tuple(judged(table, name))).encode())
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
