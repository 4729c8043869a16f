"""Programs whose sizes depend on values, or that read values which are known.

A program is a forward of a few lines.  Some select by the values of the inputs,
so that sizes follow from data, and what comes after computes with such tensors,
asks for their sizes, or checks them. Others make small tensors of constants, of
a buffer or of a closure, write into them, and read their values. `fx.trace`
records it on an example; with other inputs, of which many select nothing or one
item, after a change of the buffer, and in other modes, the graph must give what
the program gives, or refuse.
"""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, TypeAlias

import torch
from torch import nn
from torch.nn import functional

import fx
from tests.reliability.asking import MODES
from tests.reliability.part import Outcome, Part, Plant
from tests.reliability.traced import Refused, called, graph_of, searched, wrong

AnyValue: TypeAlias = Any

TABLE: Final = torch.tensor([2.0, 0.5, 1.0])
"""A tensor of a closure."""

NAMES: Final[dict[str, AnyValue]] = {
    "torch": torch,
    "F": functional,
    "math": math,
    "TABLE": TABLE,
}

SELECTED: Final = (
    *("{a}[{a} > {n}]", "{a}.nonzero() * 1.0", "torch.where({a} > 0)[0] * 1.0"),
    *("torch.unique({a})", "torch.masked_select({a}, {a} > {i})"),
    *(
        "torch.unique_consecutive({a}.flatten())",
        "{a}[{a}.flatten(1)[:, 0] > 0]",
    ),
    "{a}.flatten().repeat_interleave(({a}.flatten() > 0).long())",
    "torch.unique({a}.flatten(), return_counts=True)[1] * 1.0",
)
"""What a line may select of a tensor a, with a number n and a constant i."""

TENSORS: Final = (
    *("{a} + {b}", "{a} * 2", "{a}.sum(0)", "{a}.flatten()", "{a}.cumsum(0)"),
    *("torch.cat([{a}.flatten(), {b}.flatten()])", "{a}.reshape(-1, 1)"),
    *("{a}.flatten().topk({i}).values", "{a}[1:]", "{a}[:{n}]", "{a}[-1:]"),
    *("{a}.unsqueeze(0)", "{a}.squeeze(0)", "F.pad({a}, (0, 1))", "{a} * {k}"),
    *("{a}.flatten()[:, None] * {b}.flatten()", "torch.zeros({n}) + {a}.sum()"),
    *("{a}.expand(2, *{a}.shape)", "{a}.t()", "{a}.chunk(2)[0]", "{a} * {n}"),
    "{a}.new_zeros(4).index_add(0, {a}.flatten().long() % 4, {a}.flatten())",
    *("{a}.view(-1, {i})", "{a}.softmax(-1)", "torch.ones({n}) * {a}.sum()"),
    *("torch.stack([{a}, {b}])", "{a} @ {b}.t()", "{a}.amax(0)", "{a} + {k}"),
    *("F.normalize({a}, dim=0)", "{a}.clone().index_fill_(0, {k}.long(), 7.0)"),
    "{a}[: torch.as_tensor({n} * 0.7).long()]",
    *("{a}.mean()", "{a}.mean(0)", "F.mse_loss({a}, {b})", "{a} / {n}"),
    *("{a} * ({n} / 3)", "{a}.t().softmax(0)", "torch.full((2,), {n} * 0.3)"),
    *("F.linear({a}, torch.ones(2, {a}.shape[-1]))", "{a}[: ({b} > 0).sum()]"),
    *("{a}[({b} > 1).sum() :]", "{a}[..., {b}.argmax() : {a}.argmax() + 1]"),
)
"""What it may compute of tensors a and b, and a known one, k."""

KNOWN: Final = (
    *("torch.arange({i}) * 1.0", "torch.linspace(0, 2, {i})", "{k} * 2"),
    *("torch.tensor([2.0, 1.0, {i}])", "{k}.cumsum(0)", "{k}.flip(0)"),
    *("self.b * 1", "TABLE + 1", "{k}.clone()", "torch.cat([{k}, {j}])"),
    *("{k}[:2]", "{k}.view(-1)", "self.b", "{k} @ {k} + {j}", "self.b[1:]"),
    *(
        "{k} + {a}.sum()",
        "torch.ones(3) * {n}",
        "{k}.sort().values",
        "{k}.data",
    ),
)
"""What it may compute of constants, the buffer and the closure, and more."""

WRITES: Final = (
    *("{k} += 1", "{k}[0] = 3", "{k}.mul_({a}.sum())", "{k}.data.add_(1)"),
    *("{k}.view(-1)[0] = {a}.sum()", "{k}.data.mul_({a}.sum())", "self.b += 1"),
    *("{a}[: ({b} > 0).sum()] = {n}", "{a}[{b}.argmin() :].add_(1)"),
    *("{a}[{a} > 0] = 1", "{k}.data = {k} * 2", "self.b[0] = {k}[0]"),
    *(
        "{a}.masked_fill_({a} > 0, 2)",
        "{k}[0] = {j}[-1]",
        "{k}.view(-1).add_({j})",
    ),
)
"""What may write into them, or into an input."""

NUMBERS: Final = (
    *("{a}.shape[0]", "{a}.numel()", "{a}.size(-1)", "({n} + 1)", "({n} * 2)"),
    *("max({n}, {m})", "int({k}.tolist()[0])", "int({k}.sum())", "len({k})"),
    *("{k}[0].item()", "round(self.b[1].item())", "float({k}.max())", "{i}"),
    *("math.ceil({n} / 2)", "int({n} * 0.7)", "(7 // {n})", "({n} % {m})"),
    *("int(TABLE[0])", "({n} // 2)", "int(({k} > 1).sum())"),
)
"""What it may compute as a number."""

CONDITIONS: Final = (
    *("{n} > {m}", "{a}.shape[0] == {b}.shape[0]", "{n} == 1", "{k}[0] > 1"),
    *("bool({k}.sum() > 2)", "(self.b > 1).any()", "torch.equal({k}, {j})"),
    *(
        "{a}.is_contiguous()",
        "{a}.dim() == 2",
        "1.0 in {k}",
        "self.b.sum() < 9",
    ),
    *("torch.allclose({k}, {j} * 1)", "{a}.shape[-1] == 1"),
)
"""What a branch may ask."""

CHECKS: Final = (
    *("torch._check({n} >= 1)", "torch._check({a}.shape[0] == {b}.shape[0])"),
    *("torch._check({a}.numel() > 1)", "assert {a}.dim() < 3"),
)
"""What it may say of sizes."""


class Base(nn.Module):
    """What programs compute with."""

    def __init__(self) -> None:
        super().__init__()
        self.b = nn.Buffer(torch.tensor([1.5, 3.0, 0.1]))


class Program:
    """A forward that grows line by line, and is run on its example."""

    def __init__(self, rng: random.Random) -> None:
        """Begin with one that selects, or reads."""
        self._rng = rng
        self.example = inputs(rng)
        self.tensors, self.numbers = ["x", "y"], ["1", "2"]
        self.known, self.lines = ["self.b", "TABLE"], list[str]()
        self._selects = rng.random() < 0.5
        for _ in range(rng.randint(3, 8)):
            self._grow()

    @property
    def text(self) -> str:
        """The forward."""
        given = ", ".join(self.tensors + self.numbers[2:] + self.known[2:])
        body = "\n    ".join([*self.lines, f"return [{given}]"])
        return f"def forward(self, x, y):\n    {body}"

    def module(self) -> nn.Module:
        """A module of this forward."""
        names = dict(NAMES)
        exec(self.text, names)
        made: nn.Module = type("M", (Base,), {"forward": names["forward"]})()
        return made

    def _grow(self) -> None:
        """Add a line that the example can run."""
        held = self.tensors, self.numbers, self.known, self.lines
        kept = [each[:] for each in held]
        kind, name = self._rng.random(), f"v{len(self.lines)}"
        if kind < 0.3 and self._selects:
            self.lines.append(f"{name} = {self._of(SELECTED)}")
            self.tensors.append(name)
        elif kind < 0.3:
            self.lines.append(f"{name} = {self._of(KNOWN)}")
            self.known.append(name)
        elif kind < 0.4:
            self.lines.append(self._of(WRITES))
        elif kind < 0.45:
            self.lines.append(self._of(CHECKS))
        elif kind < 0.6:
            self.lines.append(f"{name} = {self._of(NUMBERS)}")
            self.numbers.append(name)
        else:
            line = f"{name} = {self._of(TENSORS)}"
            if kind > 0.9:
                line += f" if {self._of(CONDITIONS)} else {self._of(TENSORS)}"
            self.lines.append(line)
            self.tensors.append(name)
        result = called(partial(_kept, self.module()), self.example, {})
        if isinstance(result, Exception):
            for each, was in zip(held, kept, strict=True):
                each[:] = was

    def _of(self, forms: tuple[str, ...]) -> str:
        """One of some forms, with names in it."""
        names = {key: self._rng.choice(self.tensors) for key in "ab"}
        names |= {key: self._rng.choice(self.numbers) for key in "nm"}
        names |= {key: self._rng.choice(self.known) for key in "kj"}
        names["i"] = str(self._rng.randint(1, 3))
        return self._rng.choice(forms).format(**names)


def inputs(rng: random.Random) -> list[torch.Tensor]:
    """Two inputs; often nothing, or one item, of them is above 0."""
    shape = [rng.choice((1, 2, 3, 4)) for _ in range(rng.choice((1, 1, 2)))]
    low, high = rng.choice(((-2, 3), (-2, 3), (-3, 0), (-1, 1), (1, 4)))

    def one() -> torch.Tensor:
        values = [
            rng.randint(low, high) for _ in range(torch.Size(shape).numel())
        ]
        return torch.tensor(values).double().float().reshape(shape)

    return [one(), one()]


def varied(rng: random.Random, given: list[torch.Tensor]) -> AnyValue:
    """Inputs with as many dimensions."""
    while True:
        new = inputs(rng)
        if new[0].dim() == given[0].dim():
            return new


def _replace(module: AnyValue, change: Callable[[AnyValue], AnyValue]) -> None:
    """Let a module have another buffer, if it has it."""
    if hasattr(module, "b"):
        module.b = change(module.b)


CHANGES: Final[dict[str, Callable[[AnyValue], object]]] = {
    "": lambda m: None,
    "the same values": lambda m: _replace(m, lambda b: b.clone()),
    "written": lambda m: _replace(m, lambda b: b.add_(1)),
    "another": lambda m: _replace(m, lambda b: b + 0.5),
    "double": lambda m: _replace(m, lambda b: b.double()),
}
"""What may be done to the module and the graph alike."""


def _kept(run: AnyValue, *args: AnyValue) -> AnyValue:
    """What a call gives, after which the table is as before."""
    before = TABLE.clone()
    try:
        return run(*args)
    finally:
        TABLE.data.copy_(before)


def fault(
    m: nn.Module, gm: AnyValue, given: AnyValue, change: str, mode: str
) -> str:
    """What a graph does wrong after a change, in two calls; "" if nothing."""
    m, gm = copy.deepcopy(m), copy.deepcopy(gm)
    for each in (m, gm):
        CHANGES[change](each)
    with MODES[mode]():
        found = ""
        for _ in range(2):
            pair = partial(_kept, gm), partial(_kept, m)
            found = found or wrong(*pair, *given)
        return found


def judged(rng: random.Random, refused: Refused) -> Iterator[Outcome]:
    """A program, traced once and called some times."""
    program = Program(rng)
    m = program.module()
    gm = graph_of(
        program.text,
        refused,
        lambda: _kept(fx.trace, m, *copy.deepcopy(program.example)),
    )
    if isinstance(gm, Outcome):
        yield gm
    if not callable(gm):
        return
    for number in range(6):
        given = program.example if number == 0 else varied(rng, program.example)
        change = rng.choice([*CHANGES]) if number % 2 else ""
        mode = rng.choice([*MODES]) if number > 3 else ""
        case = f"{program.text}\n# traced with {program.example}"
        case += f"\n# called with {given} in {mode!r}, changed: {change!r}"
        yield Outcome(case, fault(m, gm, given, change, mode))


PART = Part(
    "selecting",
    "programs whose sizes depend on values, or that read values that are "
    "known, and their graphs by fx.trace, on other inputs and buffers",
    partial(searched, judged),
    share=100,
    long=12_000,
    plants=(
        Plant(
            "fx/torch_private/symbolic_sizes.py",
            "            self.deferred(orig_expr)",
            "            self.num_deferred_runtime_asserts += 0",
            "what torch takes to hold of sizes is not checked",
        ),
        Plant(
            "fx/extra/example_trace/guards.py",
            "            if held() is tensor and counted == now:",
            "            if index in self._seen:",
            "a tensor whose values were read is compared once",
        ),
        Plant(
            "fx/extra/example_trace/known.py",
            "        return behind == counted and not is_lost",
            "        return behind >= counted and not is_lost",
            "writes are not counted",
        ),
    ),
)
