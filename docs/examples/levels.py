"""One addition on its way down, noted at each level by who can listen there."""

from __future__ import annotations

import dis
import inspect
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from docs.machinery.film import Arc, Choices, Row

AnyValue: TypeAlias = Any
"""What a program computes with."""


def program(x: AnyValue) -> AnyValue:
    """What is looked at."""
    return x + 1


class Asked:
    """Notes which method Python looks up."""

    def __add__(self, other: int) -> str:
        return f"x.__add__({other})"


class Functions(TorchFunctionMode):
    """Notes the functions of torch that are called."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_function__(
        self,
        func: AnyValue,
        types: AnyValue,
        args: Sequence[AnyValue] = (),
        kwargs: Mapping[str, AnyValue] | None = None,
    ) -> AnyValue:
        """Note the name, and go on."""
        self.names.append(f"Tensor.{func.__name__}(x, {args[1]})")
        return func(*args, **(kwargs or {}))


class Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the operators that the dispatcher runs."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: list[str] = []

    def __torch_dispatch__(
        self,
        func: AnyValue,
        types: AnyValue,
        args: Sequence[AnyValue] = (),
        kwargs: Mapping[str, AnyValue] | None = None,
    ) -> AnyValue:
        """Note the name, and go on."""
        self.names.append(f"{func}(x, {args[1]})")
        return func(*args, **(kwargs or {}))


def choices() -> Choices:
    """The levels, from the source down."""
    x = torch.ones(2)
    with Functions() as functions, Operators() as operators:
        program(x)
    source = inspect.getsource(program).split("return ")[1].strip()
    code = dis.Bytecode(program)
    (add,) = [one for one in code if one.opname == "BINARY_OP"]
    rows = [
        Row("source", source, "TorchScript"),
        Row("bytecode", f"{add.opname} {add.argrepr}", "Dynamo"),
        Row("Python", program(Asked()), "torch.fx, JAX"),
        Row("function", functions.names[0], "fx.trace"),
        Row("dispatcher", operators.names[0], "make_fx"),
    ]
    arcs = [Arc(one.name, two.name) for one, two in itertools.pairwise(rows)]
    asked = Choices("Which program?")
    asked.option("add").shot("One addition, level by level", rows, arcs)
    return asked
