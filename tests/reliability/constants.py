"""Whether passes that record a graph again keep its constants.

A graph takes any object as a constant, and so do its code and the Interpreter,
while a trace takes few.  Each case is an object that stands in the arguments of
a call, by itself and in containers.  The passes that record a graph again must
give it back to the function that is called.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import fractions
import functools
import math
import pathlib
import re
import types
import uuid
from collections.abc import Iterator
from typing import Any, TypeAlias

import torch
import torch.fx
from torch.utils import _pytree as pytree

import fx
from fx.experimental.normalize import NormalizeArgs, NormalizeOperators
from fx.experimental.schema_type_annotation import AnnotateTypesWithSchema
from tests.reliability.part import Outcome, Part, Plant

Anything: TypeAlias = Any


@dataclasses.dataclass
class Counted:
    """A dataclass whose constructor does not keep what it is given."""

    count: int

    def __post_init__(self) -> None:
        self.count += 1


CONSTANTS: tuple[Anything, ...] = (
    *(torch.nn.PairwiseDistance(), torch.nn.Linear(2, 2).weight),
    *(torch.ones(2, 2), torch.Generator(), torch.finfo(torch.float32)),
    *(uuid.uuid4(), fractions.Fraction(1, 3), re.A | re.I, enum.Enum("E", "a")),
    *(Counted(3), object(), Counted, math, torch.add, round, iter([1]), ...),
    *(b"text", bytearray(b"text"), {1, 2}, frozenset("ab"), range(3)),
    *(NotImplemented, types.SimpleNamespace(a=1), functools.partial(len)),
    *(re.compile("a"), pathlib.PurePath("a"), collections.deque([1])),
    *(types.MappingProxyType({"a": 1}), memoryview(b"a")),
)
"""What a graph, generated code and the Interpreter take, whatever it is."""


def held(x: torch.Tensor, constant: Anything, more: Anything) -> Anything:
    """A function that gives back what it is given."""
    return constant, more


PASSES: tuple[Anything, ...] = (
    *(fx.Transformer, AnnotateTypesWithSchema),
    *(NormalizeArgs, NormalizeOperators),
)
"""Passes that record a graph again."""


def with_call(lib: Anything, constant: Anything) -> Anything:
    """A module that calls `held` with a constant."""
    graph = lib.Graph()
    x = graph.placeholder("x")
    kwargs = {"more": [constant, 1]}
    graph.output(graph.call_function(held, (x, constant), kwargs))
    return lib.GraphModule(torch.nn.Module(), graph)


def lost(gm: Anything, again: Anything) -> str:
    """How a constant is lost when a pass records a module again."""
    want = leaves(gm(torch.ones(2)))
    try:
        got = leaves(again(gm).transform()(torch.ones(2)))
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:100]}"
    same = len(want) == len(got) and all(map(alike, want, got))
    return "" if same else f"{want} is {got}"


def leaves(value: Anything) -> list[Anything]:
    """The constants in what `held` gives."""
    found = pytree.tree_leaves(value)
    return [one.stop if isinstance(one, slice) else one for one in found]


def alike(one: Anything, other: Anything) -> bool:
    """Whether two constants are one; code may make equal ones."""
    by_text = isinstance(one, set | frozenset | range | bytes | int)
    return one is other or (by_text and one == other)


def judged(constant: Anything) -> tuple[str, str]:
    """What is wrong here, and in torch.fx, about a constant."""
    ours = theirs = ""
    for given in (constant, [constant], {"a": (constant,)}, slice(constant)):
        gm = with_call(fx, given)
        for again in PASSES:
            text = lost(gm, again)
            ours = ours or (text and f"{again.__name__} of {given!r}: {text}")
        try:
            beside = with_call(torch.fx, given)
            beside(torch.ones(2))
        except (SyntaxError, NameError):  # it writes constants by their repr
            continue
        theirs = theirs or lost(beside, torch.fx.Transformer)
    return ours, theirs


def run(seed: int, cases: int) -> Iterator[Outcome]:
    """Judge all constants, whatever the seed is."""
    for constant in CONSTANTS[:cases]:
        yield Outcome(type(constant).__name__, *judged(constant))


PART = Part(
    "constants",
    "objects in the arguments of a call, before and after a pass has recorded "
    "the graph again",
    run,
    share=len(CONSTANTS),
    long=len(CONSTANTS),
    plants=(
        Plant(
            "fx/interpreter.py",
            "    _held: tuple[type, ...] = (object,)",
            "    _of_all: tuple[type, ...] = (object,)",
            "a Transformer refuses what a trace would not record",
        ),
        Plant(
            "fx/interpreter.py",
            "None if unknown else super()._state_node(a)",
            "super()._state_node(a)",
            "a Transformer refuses a parameter of another module",
        ),
    ),
)
