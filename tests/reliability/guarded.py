"""Programs that ask about their inputs, traced on one and called with others.

A program is a few lines of Python: arithmetic of sizes, branches on shapes,
strides, dtypes and options, views and writes.  Each line is tried on the
example before it is kept.  `fx.trace` records the program on the example; then
both are called with inputs of other shapes, dtypes, strides and options.  The
graph must give what the program gives, in the same state of the inputs, or
refuse the call.  What raises in the program may raise anything in the graph.
"""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Iterator
from functools import partial
from typing import Any, Final, TypeAlias

import torch
from torch.nn import functional

import fx
from tests.reliability.part import Outcome, Part, Plant
from tests.reliability.traced import Refused, graph_of, searched, wrong

AnyValue: TypeAlias = Any

NAMES: Final[dict[str, AnyValue]] = {
    "torch": torch,
    "math": math,
    "F": functional,
}

TENSORS: Final = (
    *("{a} + {b}", "{a} * {b}", "{a} - {n}", "torch.cat([{a}, {b}])"),
    *("{a}.squeeze()", "{a}.squeeze(0)", "{a}.squeeze(-1)", "{a}.unsqueeze(0)"),
    *("{a}.t()", "{a}.transpose(0, -1)", "{a}.reshape(-1)", "{a}.flatten()"),
    *("{a}.view(-1)", "{a}.reshape({a}.shape[0], -1)", "{a}.contiguous()"),
    *("{a}[:{n}]", "{a}[..., {n}:]", "{a}[{n} // 2]", "{a}[None]"),
    *("{a}.expand({n}, *{a}.shape)", "{a}.sum(0)", "{a}.mean(-1, True)"),
    *("{a}.max(-1).values", "torch.arange({n}) + {a}.sum()", "{a}.double()"),
    *("torch.zeros({n}, {a}.shape[-1]) + {a}", "{a}.new_ones({n})"),
    *("{a}.chunk(2, -1)[0]", "{a}.repeat({n}, *[1] * ({a}.dim() - 1))"),
    *(
        "F.pad({a}, (0, {n}))",
        "{a}.to({b}.dtype)",
        "{a}.detach()",
        "{a}.clone()",
    ),
    *("sum(row for row in {a})", "torch.stack([{a}, {a}], -1)", "{a}.T"),
    *(
        "torch.einsum('...i,...i->...', {a}, {b})",
        "{a} @ {b}.transpose(-1, -2)",
    ),
    *("{a}.broadcast_to(torch.broadcast_shapes({a}.shape, {b}.shape))",),
    *("torch.full({a}.shape, {n})", "{a}.roll(1, 0)", "{a}.cumsum(0)"),
    *("{a}.unflatten(0, (-1, {n}))", "torch.where({a} > {n}, {a}, {b})"),
    *("F.softmax({a}, -1)", "{a}.narrow(0, 0, {n})", "{a}.tile(2)"),
    *("torch.ones({a}.numel()).reshape({a}.shape)", "{a}.mul(2).add(k)"),
)
"""What a line may compute of tensors a and b, and a number n."""

NUMBERS: Final = (
    *("{a}.shape[0]", "{a}.size(-1)", "{a}.dim()", "len({a})", "{a}.numel()"),
    *("({n} + 1)", "({n} // 2)", "({n} * 2)", "max({n}, {m})", "({n} % 3)"),
    *("math.ceil({n} / 2)", "int({n})", "min({n}, 4)", "abs({n} - {m})", "k"),
    *("{a}.stride(0)", "len({a}.shape)", "[{n}, {m}][0]", "({n} - 1)"),
    *("{{1: 5, 2: 7}}.get({n}, {m})", "len(f'{{{n}}}')", "round({n} * 0.5)"),
)
"""What it may compute as a number."""

CONDITIONS: Final = (
    *("{n} == {m}", "{n} > {m}", "{n} % 2 == 0", "{a}.dim() == 2", "{n} == 1"),
    *("{a}.is_contiguous()", "{a}.dtype == torch.float32", "flag", "{n}"),
    *("{a}.requires_grad", "{a}.shape == {b}.shape", "{n} in (1, 2)"),
    *("{a}.dtype == {b}.dtype", "x is y", "{a}.shape[0] == 1", "k > 2"),
    *("{a}.is_floating_point()", "isinstance(k, int)", "not {n}"),
    *("{a}.shape[-1] == {b}.shape[-1] or {n} < 3", "{a}.t().is_contiguous()"),
    *("torch.is_grad_enabled()", "{n} * {m} > 6 and flag"),
)
"""What a branch may ask."""

WRITES: Final = (
    *("{a} += 1", "{a}.mul_(2)", "{a}[0] = {n}", "{a}.t().add_(1)"),
    *("{a}[..., :{n}].zero_()", "{a}.contiguous().add_(1)", "{a}.squeeze_()"),
    *("{a}.view(-1)[0] = 3", "torch.add({a}, 1, out={a})"),
)
"""What may write into a tensor, perhaps an input."""


class Program:
    """A program that grows line by line, and is run on its example."""

    def __init__(self, rng: random.Random) -> None:
        """Begin with a program that returns its inputs."""
        self._rng = rng
        self.example = inputs(rng)
        self.tensors, self.numbers = ["x", "y"], ["1", "2", "3"]
        self.lines: list[str] = []
        for _ in range(rng.randint(2, 7)):
            self._grow()

    @property
    def text(self) -> str:
        """The program."""
        given = ", ".join(self.tensors + self.numbers[3:])
        lines = [*self.lines, f"return [{given}]"]
        return "def program(x, y, k=2, flag=True):\n    " + "\n    ".join(lines)

    def function(self) -> AnyValue:
        """The program as a function."""
        names = dict(NAMES)
        exec(self.text, names)
        return names["program"]

    def _grow(self) -> None:
        """Add a line that the example can run."""
        kept = self.lines[:], self.tensors[:], self.numbers[:]
        kind, name = self._rng.random(), f"v{len(self.lines)}"
        if kind < 0.15:
            line = self._filled(self._rng.choice(WRITES))
        elif kind < 0.4:
            line = f"{name} = {self._filled(self._rng.choice(NUMBERS))}"
            self.numbers.append(name)
        else:
            line = f"{name} = {self._tensor()}"
            if kind > 0.7:
                asked = self._filled(self._rng.choice(CONDITIONS))
                line += f" if {asked} else {self._tensor()}"
            self.tensors.append(name)
        self.lines.append(line)
        try:
            result = self.function()(**copy.deepcopy(self.example))
            small = sum(t.numel() for t in result if _is_tensor(t)) < 10_000
        except Exception:  # not on this example
            small = False
        if not small:
            self.lines, self.tensors, self.numbers = kept

    def _tensor(self) -> str:
        return self._filled(self._rng.choice(TENSORS))

    def _filled(self, form: str) -> str:
        """A form with names in it."""
        names = {key: self._rng.choice(self.tensors) for key in "ab"}
        numbers = {key: self._rng.choice(self.numbers) for key in "nm"}
        return form.format(**names, **numbers)


def _is_tensor(value: object) -> bool:
    return isinstance(value, torch.Tensor)


def inputs(rng: random.Random) -> dict[str, AnyValue]:
    """Inputs of a program."""
    rank = rng.choice((1, 2, 2, 2, 3))
    shape = [rng.choice((1, 2, 2, 3, 3, 4, 5)) for _ in range(rank)]
    if rng.random() < 0.03:
        shape[0] = 0
    other = shape if rng.random() < 0.6 else shape[rng.randint(0, rank - 1) :]
    if rng.random() < 0.2:
        other = [1 if rng.random() < 0.5 else size for size in other]
    given: dict[str, AnyValue] = {"x": tensor(rng, shape)}
    given["y"] = given["x"] if rng.random() < 0.05 else tensor(rng, other)
    if rng.random() < 0.2:
        given["k"] = rng.choice((1, 2, 3, 2.0, True))
    if rng.random() < 0.2:
        given["flag"] = rng.random() < 0.5
    return given


def tensor(rng: random.Random, shape: list[int]) -> torch.Tensor:
    """A tensor: most often a plain one."""
    dtype = torch.float32
    if rng.random() < 0.15:
        dtype = rng.choice((torch.float64, torch.int64))
    count = math.prod(shape)
    made = torch.arange(1, count + 1).to(dtype)
    if rng.random() < 0.15:  # strides in reverse
        return made.reshape(shape[::-1]).permute(*range(len(shape))[::-1])
    if rng.random() < 0.1:
        made = made.repeat_interleave(2)[::2]
    made = made.reshape(shape)
    if made.is_floating_point() and rng.random() < 0.1:
        made.requires_grad_()
    return made


def varied(
    rng: random.Random, given: dict[str, AnyValue]
) -> dict[str, AnyValue]:
    """Inputs that are like others, but for one thing or all."""
    if rng.random() < 0.3:
        return inputs(rng)
    new = copy.deepcopy(given)
    name = rng.choice(("x", "y"))
    shape = [*new[name].shape]
    kind = rng.random()
    if kind < 0.5:  # the same change in both, so that sums are possible
        place = rng.randrange(len(shape)) if shape else 0
        size = rng.choice((0, 1, 1, 2, 3, 4, 5))
        for key in ("x", "y"):
            held = [*given[key].shape]
            at = len(held) - (len(shape) - place)
            if 0 <= at < len(held) and held[at] == shape[place]:
                held[at] = size
            dtype = given[key].dtype
            new[key] = tensor(random.Random(0), held).to(dtype)
    elif kind < 0.8:
        new[name] = tensor(rng, shape)
    elif kind < 0.9:
        new["k"] = rng.choice((1, 2, 3, 2.0, True))
    else:
        new["flag"] = rng.random() < 0.5
    return new


def judged(rng: random.Random, refused: Refused) -> Iterator[Outcome]:
    """A program, traced once and called some times."""
    program = Program(rng)
    function = program.function()
    gm = graph_of(
        _case(program, program.example),
        refused,
        lambda: fx.trace(function, **copy.deepcopy(program.example)),
    )
    if isinstance(gm, Outcome):
        yield gm
    if not callable(gm):
        return
    calls = [program.example, *(varied(rng, program.example) for _ in range(4))]
    for given in calls:
        yield Outcome(_case(program, given), wrong(gm, function, **given))


def _case(program: Program, given: dict[str, AnyValue]) -> str:
    """A program, its example and a call, as text."""
    kinds = [
        {
            key: (tuple(v.shape), v.stride(), v.dtype, v.requires_grad)
            if isinstance(v, torch.Tensor)
            else v
            for key, v in each.items()
        }
        for each in (program.example, given)
    ]
    return f"{program.text}\n# traced with {kinds[0]}\n# called with {kinds[1]}"


PART = Part(
    "guarded",
    "programs that ask about their inputs, and their graphs by fx.trace, on "
    "other inputs",
    partial(searched, judged),
    share=100,
    long=20_000,
    plants=(
        Plant(
            "fx/extra/example_trace/guards.py",
            "            if self._ask(*leaves) == self._values:",
            "            if self._ask(*leaves):",
            "guards are asked, and not compared",
        ),
        Plant(
            "fx/torch_private/symbolic_sizes.py",
            "                    bool(tensor.shape[dim] == 1)",
            "                    tensor.shape[dim].__eq__(1)",
            "squeeze is taken to keep each size that is free",
        ),
    ),
)
