"""Arithmetic of sizes: programs of random expressions, traced and called.

An expression is made of sizes, constants and all of Python's operators and
functions of numbers: negative ones, floats, conversions, divisions by what may
be 0, functions of `math`, comparisons.  It is used as a size, a factor, a fill
value, a place, a scale, or to choose a branch.  `fx.trace` records the program
on an example; then both are called with ten other shapes: ones, odd and large
ones.  The graph must give what the program gives, exactly, or refuse the call.

Some programs are traced again with one size, or number, that must stay free:
the trace is an error if, and only if, every other value is refused.  Recurrent
modules and random tensors must not fix any size.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from functools import partial
from typing import Any, Final, TypeAlias

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import rnn

import fx
from tests.reliability.part import Outcome, Part, Plant
from tests.reliability.traced import Refused, called, graph_of, searched, wrong

AnyValue: TypeAlias = Any

NAMES: Final[dict[str, AnyValue]] = {
    "pow": lambda *args: pow(*args),  # only modules' globals are replaced
    "len": lambda value: len(value),
    "isinstance": lambda value, kind: isinstance(value, kind),
    "torch": torch,
    "math": math,
    "F": functional,
    "pack": rnn.pack_padded_sequence,
}

SIZES: Final = (
    *("x.shape[0]", "x.shape[1]", "y.shape[0]", "x.numel()", "y.size(-1)"),
    *("len(y)", "y[1:].shape[0]", "torch.cat([x, x]).shape[0]"),
    *("k", "k", "k", "r", "r"),
)

CONSTANTS: Final = (
    *("1", "2", "3", "7", "-1", "-2", "-3", "0", "10", "True"),
    *("0.5", "1.7", "-0.3", "0.1", "2.0", "-1.0", "0.0", "1e3"),
)

OPERATIONS: Final = (
    *("({a} + {b})", "({a} - {b})", "({a} * {b})", "({a} // {b})") * 2,
    *("({a} % {b})", "({a} / {b})", "-{a}", "+{a}", "abs({a})") * 2,
    *("({i} & {j})", "({i} | {j})", "({i} ^ {j})", "~{i}", "({i} << 2)"),
    *("({i} >> 1)", "(1 << ({i} % 5))", "({i} // {j})", "({i} % {j})"),
    *("({a} ** 2)", "({a} ** 0.5)", "({a} ** -1)", "(2 ** ({i} % 4))"),
    *("divmod({a}, {b})[0]", "divmod({a}, {b})[1]", "round({a})"),
    *("round({a}, 1)", "round({a}, -1)", "math.ceil({a})", "math.floor({a})"),
    *("math.trunc({a})", "int({a})", "float({a})", "math.sqrt(abs({a}))"),
    *("max({a}, {b})", "min({a}, {b})", "pow({i}, 2, 5)", "math.sin({a})"),
    *("pow(2, 3, {i})", "(6 // ({i} - 2))", "(2.0 ** (300 * {i}))"),
    *("torch.sym_max({a}, {b})", "torch.sym_min({a}, {b})", "math.fabs({a})"),
    *("torch.sym_int({a})", "torch.sym_float({a})", "({a} > {b})", "bool({a})"),
    *("({a} == {b})", "({a} != {b})", "({a} <= {b})", "({a} if {c} else {b})"),
    *("(({a} / 2).is_integer() + 0)", "sum([{a}, {b}])", "({c} and {a})"),
    *("math.gcd({i}, 6)", "({a} * 1.0)", "math.isqrt(abs({i}))"),
    *("math.copysign(1.0, {a})", "isinstance({a}, int)"),
)

CONDITIONS: Final = (
    *("{a} > {b}", "{a} == {b}", "{a} % 2 == 0", "{a} < 3.5", "{a}", "not {a}"),
    *("{a} / 3 >= 1.1", "round({a}) == {b}", "0 <= {a} <= 5", "{a} in (1, 2)"),
)

USES: Final = (
    *("x * {a}", "x + {a}", "torch.full((2,), {a})", "x.new_full((2,), {a})"),
    *("torch.zeros(max(0, int({a})) % 50)", "x / {a}", "x - 2 * {a}"),
    *("x.new_zeros(abs({i}) % 50)", "torch.arange(abs({i}) % 20)", "x ** {a}"),
    *("x[: {i}]", "x.narrow(0, 0, {i})", "torch.where(x > {a}, x, {b})"),
    *("x if {c} else -x", "x * 2 if {c} else x.sum()", "x.clamp(min={a})"),
    *("x.repeat(abs({i}) % 4, 1)", "x.roll({i}, 0)", "F.pad(x, (0, {i}))"),
    *("F.interpolate(x[None], scale_factor=abs({a}) % 3 + 0.1)", "x.view({i})"),
    *(
        "torch.tensor({a})",
        "torch.tensor([[{a}, 1], [2, {b}]])",
        "x.reshape({i}, -1)",
        "torch.scalar_tensor({a})",
    ),
    *("torch.linspace(0, {a}, 4)", "F.dropout(x, 0.0) * {a}", "x.sum() > {a}"),
    *("F.adaptive_avg_pool1d(x, {i})", "x.expand({i}, *x.shape)"),
)

FREE_USES: Final = (
    *("self.gru(x)[0]", "self.lstm(x)[0][..., 1:3]", "self.rnn(x)[0]"),
    *(
        "self.proj(x)[0]",
        "x + self.gru_cell(x[0], x[-1])",
        "x + self.gru(x)[1]",
    ),
    "sum(self.lstm_cell(x.flatten(0, 1))).reshape(x.shape)",
    "self.rnn(x, torch.randn(1, x.shape[1], 2))[0]",
    "x + pack(x, torch.full(x[0, :, 0].shape, len(x))).data.mean(0)",
    *("x + torch.randn(x.shape)", "x * torch.rand(*x.shape)", "F.dropout(x)"),
    *("x + torch.randn_like(x)", "x + torch.empty(x.shape).normal_()"),
    *("torch.normal(0.0, 1.0, x.shape) * x", "x[torch.randperm(len(x))]"),
    *("x + torch.randint(9, x.shape)", "torch.bernoulli(x.sigmoid()) - x"),
    *("x.transpose(0, 1)", "x.transpose(0, 1).contiguous()", "x * x.shape[0]"),
)
"""What may be computed of a batch of rows without fixing a size of it."""


class Cells(nn.Module):
    """Recurrent modules."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(2, 2)
        self.lstm = nn.LSTM(2, 2, 2, batch_first=True, bidirectional=True)
        self.proj = nn.LSTM(2, 3, proj_size=2)
        self.rnn = nn.RNN(2, 2, nonlinearity="relu", bias=False)
        self.gru_cell, self.lstm_cell = nn.GRUCell(2, 2), nn.LSTMCell(2, 2)


SHAPES: Final = (1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 30, 64, 101)
"""Sizes that inputs have."""


class Writer:
    """Writes programs."""

    def __init__(self, rng: random.Random) -> None:
        """Make one that draws from a generator."""
        self._rng = rng

    def program(self) -> str:
        """A program of one to three lines of arithmetic, and a use."""
        lines, names = [], [*SIZES]
        for place in range(self._rng.randint(1, 3)):
            line = f"v{place} = {self._number(names, 2)}"
            if self._rng.random() < 0.2:
                caught = f"except ArithmeticError: v{place} = 2"
                line = f"try: {line}\n    {caught}"
            lines.append(line)
            names += [f"v{place}"] * 3
        use = self._filled(self._rng.choice(USES), names, 1)
        lines.append(f"return {use}")
        return "def program(x, y, k, r):\n    " + "\n    ".join(lines)

    def _number(self, names: list[str], depth: int) -> str:
        """An expression."""
        kind = self._rng.random()
        if depth == 0 or kind < 0.2:
            return self._rng.choice(names)
        if kind < 0.35:
            return self._rng.choice(CONSTANTS)
        return self._filled(self._rng.choice(OPERATIONS), names, depth - 1)

    def _filled(self, form: str, names: list[str], depth: int) -> str:
        """A form with expressions in it; ints for i and j."""
        asked = self._rng.choice(CONDITIONS) if "{c}" in form else ""
        for key in ("c", "i", "j", "a", "b"):
            text = f"({asked})"
            if key in "ab":
                text = self._number(names, depth)
            elif key in "ij":
                whole = self._rng.choice(("round({a})", "int({a})", "{s}"))
                text = whole.format(
                    a=self._number(names, depth), s=self._rng.choice(SIZES)
                )
            form = form.replace(f"{{{key}}}", text)
        return form


def given(rng: random.Random) -> tuple[AnyValue, ...]:
    """Inputs: a matrix and a row of numbers, an int and a float."""
    rows, columns, length = (rng.choice(SHAPES) for _ in range(3))
    made = torch.arange(1.0, rows * columns + 1).reshape(rows, columns)
    k = rng.choice((0, 1, 1, 2, 3, 7, 10, -1, -2, -5, 100))
    r = rng.choice((0.0, -0.0, 1.0, 0.5, -0.5, 1.7, 2.0, -3.0, 1e3))
    return made, torch.arange(1.0, length + 1), k, r


FREE: Final = {
    **dict.fromkeys(("x", "y"), True),
    **dict.fromkeys(("k", "r"), torch.export.Dim.AUTO),
}
"""What may vary: all sizes, and both numbers."""


def judged(rng: random.Random, refused: Refused) -> Iterator[Outcome]:
    """A program, on its example and ten other inputs, as one case."""
    text, names = Writer(rng).program(), dict(NAMES)
    exec(text, names)
    program, example = names["program"], given(rng)
    if isinstance(called(program, example, {}), Exception):
        return  # not on this example
    if rng.random() < 0.2:
        yield of_cells(rng)
        yield Outcome(text, marked(program, example, rng.choice([*MARKS])))
    gm = graph_of(
        text,
        refused,
        lambda: fx.trace(program, *example, dynamic=FREE, check=False),
    )
    if isinstance(gm, Outcome):
        yield gm
    if not callable(gm):
        return
    found = ""
    for inputs in (example, *(given(rng) for _ in range(10))):
        shapes = [
            (*each.shape,) if isinstance(each, torch.Tensor) else each
            for pair in (example, inputs)
            for each in pair
        ]
        if fault := wrong(gm, program, *inputs):
            found = f"{fault}\n# traced and called with {shapes}"
    yield Outcome(text, found)


MARKS: Final = {"x": {0: True}, "y": {0: True}, "k": True, "r": True}
"""What may have to stay free, and how that is said."""


def others(value: AnyValue) -> Iterator[AnyValue]:
    """Other values of a number, or tensors with other first sizes."""
    is_tensor = isinstance(value, torch.Tensor)
    number = len(value) if is_tensor else value
    near = {number + step for step in range(-64, 65)}
    near |= {number * factor for factor in range(-1, 9)}
    if isinstance(value, float):
        near |= {value - 0.3, value + 0.3}
    for other in near - {number}:
        if not is_tensor:
            yield other
        elif other > 0:
            yield torch.ones(other, *value.shape[1:])


def marked(program: AnyValue, example: tuple[AnyValue, ...], name: str) -> str:
    """What is wrong about a size or number that must stay free, if anything."""
    place, spec = [*MARKS].index(name), MARKS[name]
    try:
        gm, error = fx.trace(program, *example, dynamic={name: spec}), ""
    except fx.TraceError as refusal:
        if "may vary, and the program fixes it" not in f"{refusal}":
            return ""
        auto, error = torch.export.Dim.AUTO, f"{refusal}"
        spec = auto if spec is True else {0: auto}
        gm = fx.trace(program, *example, dynamic={name: spec})
    for other in others(example[place]):
        inputs = *example[:place], other, *example[place + 1 :]
        if not isinstance(called(gm, inputs, {}), fx.GuardError):
            return error and f"{name} may be {other}, and {error}"
    return "" if error else f"{name} must stay free, and is fixed:\n{gm.guards}"


def of_cells(rng: random.Random) -> Outcome:
    """A program that must leave all sizes free, if the example has no 1."""
    lines = [f"x = {rng.choice(FREE_USES)}" for _ in range(rng.randint(1, 4))]
    text = "\n    ".join(["def forward(self, x):", *lines, "return x"])
    names = dict(NAMES)
    exec(text, names)
    net = type("Net", (Cells,), {"forward": names["forward"]})()
    drawn = SHAPES[2:], *[SHAPES] * 4
    inputs = [torch.randn(*rng.sample(each, 2), 2) for each in drawn]
    try:
        gm = fx.trace(net, inputs[0], dynamic={"x": {0: True, 1: True}})
    except fx.TraceError as error:
        return Outcome(text, f"is refused: {error}")
    found = [text for x in inputs if (text := wrong(gm, net, x))]
    return Outcome(text, "\n".join(found))


PART = Part(
    "arithmetic",
    "programs that compute with sizes, and their graphs by fx.trace, on other "
    "sizes",
    partial(searched, judged),
    share=40,
    long=2_000,
    plants=(
        Plant(
            "fx/torch_private/symbolic_sizes.py",
            "    return number.node.shape_env.operate(form, other, number)",
            "    return number.node.shape_env.operate(form, number, other)",
            "7 - n is taken for n - 7",
        ),
        Plant(
            "fx/torch_private/symbolic_sizes.py",
            "                is_division and not self._is_positive(nodes[1])",
            "                False",
            "divisions by what may be 0, or negative, are taken as exact",
        ),
        Plant(
            "fx/extra/example_trace/questions.py",
            "        self._nodes[text], number = node, ",
            "        self._nodes[text], number = value, ",
            "a number that may vary is that of the example",
        ),
        Plant(
            "fx/extra/example_trace/dynamic.py",
            "        if guard is not None:",
            "        if guard is Ellipsis:",
            "what must stay free may be fixed",
        ),
        Plant(
            "fx/extra/example_trace/dynamic.py",
            "        left |= {value + sign * 0.3 for sign in (1, -1)}",
            "        left = set()",
            "a number that may vary is taken to be fixed",
        ),
        Plant(
            "fx/torch_private/recurrent.py",
            "    for rule in filter(None, _LAYERS):",
            "    for rule in ():",
            "a recurrent module fixes the length",
        ),
    ),
)
"""What a part of the search is: its cases, and the faults it must find."""
