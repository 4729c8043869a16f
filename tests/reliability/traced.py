"""Programs and their graphs by `fx.trace`, called alike and compared.

A program is traced once and called some times.  In each call the graph must
give what the program gives, in the same state of its inputs, or refuse. What
raises in the program may raise anything in the graph.
"""

from __future__ import annotations

import contextlib
import copy
import io
import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import torch

import fx
from tests.reliability.part import Outcome

AnyValue: TypeAlias = Any
Refused: TypeAlias = Counter[str]
"""The first words of an error → how many programs; "" counts the others."""


def same(one: AnyValue, two: AnyValue) -> bool:
    """Whether two results are equal."""
    if isinstance(one, torch.Tensor) and isinstance(two, torch.Tensor):
        return (
            one.dtype == two.dtype
            and one.shape == two.shape
            and one.requires_grad == two.requires_grad
            and torch.allclose(one.double(), two.double(), equal_nan=True)
        )
    if isinstance(one, list | tuple | dict):
        if isinstance(one, dict):
            one, two = [*one.values()], [*two.values()]
        return len(one) == len(two) and all(map(same, one, two))
    return type(one) is type(two) and bool(one == two)


def modes() -> list[object]:
    """In which modes torch is."""
    return [
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch.get_autocast_dtype("cpu"),
    ]


def called(
    program: AnyValue, args: Sequence[AnyValue], given: AnyValue
) -> AnyValue:
    """What a program gives and makes of its inputs, or what it raises."""
    args, given = copy.deepcopy((args, given))
    torch.manual_seed(1)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            return program(*args, **given), [*args], given
    except Exception as error:
        return error


def wrong(
    graph: AnyValue,
    program: AnyValue,
    *args: AnyValue,
    may_raise: bool = False,
    is_lax: bool = False,
    **given: AnyValue,
) -> str:
    """What a graph does wrong with some inputs, "" if nothing.

    Args:
        graph: of the program.
        program: says what is right.
        *args: inputs.
        may_raise: whether the graph may raise where the program gives a result.
        is_lax: whether it may do anything where the program raises.
        **given: others, by name.
    """
    before = modes()
    want, got = (called(each, args, given) for each in (program, graph))
    if modes() != before:
        return f"leaves torch in {modes()}, which was in {before}"
    if isinstance(got, Exception):
        refused = isinstance(got, fx.GuardError) or "trace relied" in f"{got}"
        if refused or may_raise or isinstance(want, Exception):
            return ""
        return f"raises {type(got).__name__}: {str(got)[:200]}"
    if isinstance(want, Exception):
        error = f"{type(want).__name__}: {want}"
        return "" if is_lax else f"gives a result, and the program {error}"
    return "" if same(want, got) else f"{got} is {want}"


def graph_of(
    case: str, refused: Refused, trace: Callable[[], AnyValue]
) -> AnyValue:
    """A graph; None if it is refused, an `Outcome` if the trace fails."""
    try:
        gm = trace()
    except fx.TraceError as error:
        refused[str(error)[:40]] += 1
        return None
    except Exception as error:
        text = f"trace raises {type(error).__name__}: {str(error)[:200]}"
        return Outcome(case, text)
    refused[""] += 1
    return gm


def searched(
    judged: Callable[[random.Random, Refused], Iterator[Outcome]],
    seed: int,
    cases: int,
) -> Iterator[Outcome]:
    """Judge programs until there were so many calls; the last: the refused."""
    warnings.simplefilter("ignore")
    rng, count, refused = random.Random(seed), 0, Counter[str]()
    while count < cases:
        for outcome in judged(rng, refused):
            count += 1
            yield outcome
    share = 1 - refused[""] / max(refused.total(), 1)
    text = f"{share:.0%} of the programs are refused: {refused}"
    yield Outcome("what is refused", text if share > 0.3 else "")
