"""Programs that ask what they compute, and torch for its modes, and catch.

A program is the forward of a small module: it computes with parameters, child
modules and a leaf that decides by its `training`, and branches on the dtype,
the shape or the device of what it has computed, asked by many names, or on a
mode of torch. Some lines catch what their own calls raise. `fx.trace` records
it in some mode. Then the module and the graph are called in other modes and on
other sizes, after `.double()`, and with other children. The graph must give
what the module gives, or refuse.
"""

from __future__ import annotations

import contextlib
import copy
import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import Any, Final, TypeAlias

import torch
from torch import get_default_dtype as default_dtype
from torch import is_grad_enabled as grads
from torch import nn
from torch.nn import functional

import fx
from tests.reliability.part import Outcome, Part, Plant
from tests.reliability.traced import Refused, called, graph_of, searched, wrong

AnyValue: TypeAlias = Any

NAMES: Final[dict[str, AnyValue]] = {
    "torch": torch,
    "F": functional,
    "suppress": suppress,
    # In functions of this file, since only modules' globals are replaced.
    "grads": lambda: grads(),
    "default_dtype": lambda: default_dtype(),
    "isinstance": lambda value, kind: isinstance(value, kind),
}

TENSORS: Final = (
    *(
        "self.l({a})",
        "self.q({a})",
        "self.w * {a}",
        "{a} + self.b",
        "{a} * {n}",
    ),
    *(
        "{a} @ {a}.t()",
        "{a} - {b}",
        "F.relu({a})",
        "{a}.sum(0)",
        "{a}.mean(-1)",
    ),
    *("self.e(i)", "torch.zeros({n})", "torch.ones(3) * {n}", "self.w.sum(0)"),
    *("torch.full((2,), {n}, dtype={a}.dtype)", "{a}.to({b}.dtype)", "{a}[0]"),
    *("torch.arange({n}, device={a}.device)", "{a}.new_ones({n})", "{a}.t()"),
    *("torch.cat([{a}, {b}])", "F.linear({a}, self.w)", "{a}.flatten()"),
)
"""What a line may compute of tensors a and b, and a number n."""

NUMBERS: Final = (
    *("{a}.shape[-1]", "{a}.size(0)", "{a}.dim()", "len({a})", "{a}.numel()"),
    *("{a}.element_size()", "{a}.nbytes", "self.w.shape[0]", "self.b.numel()"),
    *(
        "int(torch.finfo(self.w.dtype).bits)",
        "{a}.stride(0)",
        "{a}.dtype.itemsize",
    ),
)
"""What it may ask as a number."""

CONDITIONS: Final = (
    *("{a}.dtype == torch.float32", "{a}.is_floating_point()", "{n} > 3"),
    *("torch.is_floating_point({a})", "{a}.dtype == {b}.dtype", "{n} == {m}"),
    *("torch.result_type({a}, {b}) == torch.float64", "{a}.requires_grad"),
    *(
        "torch.result_type({a}, 1.5) == torch.float32",
        "{a}.device.type == 'cpu'",
    ),
    *(
        "{a}.type() == 'torch.FloatTensor'",
        "isinstance({a}, torch.FloatTensor)",
    ),
    *("torch.promote_types({a}.dtype, torch.half) == torch.half", "{a}.is_cpu"),
    *("getattr({a}, 'dtype') == torch.float64", "{a}.shape == {b}.shape"),
    *("self.w.dtype == torch.float32", "self.b.dtype == {a}.dtype"),
    *("next(self.parameters()).dtype == torch.float64", "self.w.is_cuda"),
    *("{a}.detach().data.dtype is torch.bfloat16", "{a}.is_contiguous()"),
    *("torch.is_grad_enabled()", "grads()", "torch._C.is_grad_enabled()"),
    *(
        "default_dtype() == torch.float32",
        "torch.tensor(1.0).dtype == {a}.dtype",
    ),
    *("torch.is_autocast_enabled('cpu')", "torch.is_inference_mode_enabled()"),
    *("torch.get_autocast_dtype('cpu') == torch.half", "{a}.is_inference()"),
    *(
        "torch.are_deterministic_algorithms_enabled()",
        "torch.is_anomaly_enabled()",
    ),
    "torch.get_float32_matmul_precision() == 'highest'",
    *("torch.backends.mkldnn.enabled", "torch.backends.cudnn.benchmark"),
)
"""What a branch may ask."""

BLOCKS: Final = (
    *("torch.no_grad()", "torch.enable_grad()"),
    "torch.autocast('cpu', dtype=torch.bfloat16)",
    "torch.autocast('cpu', enabled=False)",
)
"""In which a line may stand."""

CATCHES: Final = (
    "try: {v} = {t}\nexcept Exception: {v} = {b}",
    "{v} = {a}\nwith suppress(RuntimeError, TypeError): {v} = {t}",
    "try: {v} = {a} if {a}.sum() > 0 else {b}\nexcept Exception: {v} = {b}",
    "{v} = {a} * (2 if hasattr({a}, 'foo') else 3)",
    "try: {v} = {a} + {b}\nexcept RuntimeError: {v} = {a} * 2",
)
"""Lines that catch."""


class Leaf(nn.Module):
    """Decides by `training`."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Another dtype, and another shape, in training."""
        return torch.cat([x.double(), x]) if self.training else x * 2


class Base(nn.Module):
    """What programs compute with."""

    def __init__(self) -> None:
        super().__init__()
        self.l, self.e, self.q = nn.Linear(3, 3), nn.Embedding(5, 3), Leaf()
        self.w = nn.Parameter(torch.ones(3, 3))
        self.b = nn.Buffer(torch.ones(3))


class Program:
    """A forward that grows line by line, and is run on its example."""

    def __init__(self, rng: random.Random) -> None:
        """Begin with one that returns its inputs."""
        self._rng = rng
        self.tensors, self.numbers = ["x", "self.e(i)"], ["1", "2", "3"]
        self.lines: list[str] = []
        for _ in range(rng.randint(2, 5)):
            self._grow()

    @property
    def text(self) -> str:
        """The forward."""
        given = ", ".join(self.tensors + self.numbers[3:])
        body = "\n".join([*self.lines, f"return [{given}]"])
        return "def forward(self, x, i):\n    " + body.replace("\n", "\n    ")

    def module(self) -> nn.Module:
        """A module of this forward, with the same weights each time."""
        names = dict(NAMES)
        exec(self.text, names)
        torch.manual_seed(0)
        made: nn.Module = type("M", (Base,), {"forward": names["forward"]})()
        return made

    def _grow(self) -> None:
        """Add a line that the example can run."""
        kept = self.lines[:], self.tensors[:], self.numbers[:]
        kind, name = self._rng.random(), f"v{len(self.lines)}"
        if kind < 0.25:
            line = f"{name} = {self._of(NUMBERS)}"
            self.numbers.append(name)
        else:
            line = f"{name} = {self._of(TENSORS)}"
            if kind < 0.32:
                form = self._rng.choice(CATCHES)
                names = {"v": name, "t": self._of(TENSORS)}
                a, b = (self._rng.choice(self.tensors) for _ in "ab")
                line = form.format(**names, a=a, b=b)
            elif kind < 0.8:
                line += f" if {self._of(CONDITIONS)} else {self._of(TENSORS)}"
            if kind > 0.65:
                line = f"with {self._rng.choice(BLOCKS)}:\n    {line}"
            self.tensors.append(name)
        self.lines.append(line)
        try:
            self.module()(*given(2))
        except Exception:  # not on this example
            self.lines, self.tensors, self.numbers = kept

    def _of(self, forms: tuple[str, ...]) -> str:
        """One of some forms, with names in it."""
        names = {key: self._rng.choice(self.tensors) for key in "ab"}
        names |= {key: self._rng.choice(self.numbers) for key in "nm"}
        return self._rng.choice(forms).format(**names)


def given(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs of a program."""
    return torch.arange(1.0, 3 * count + 1).reshape(count, 3), torch.arange(2)


@contextlib.contextmanager
def _set(get: AnyValue, change: AnyValue, value: AnyValue) -> Iterator[None]:
    """A block in which a setting of torch is another one."""
    before = get()
    # torch's own tests, which others import, forbid it for the process.
    with getattr(torch.backends, "__allow_nonbracketed_mutation")():
        change(value)
        try:
            yield
        finally:
            change(before)


MODES: Final[dict[str, Callable[[], AbstractContextManager[AnyValue]]]] = {
    "": nullcontext,
    "no_grad": torch.no_grad,
    "bfloat16": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "half": lambda: torch.autocast("cpu", dtype=torch.half),
    "inference": torch.inference_mode,
    "double": lambda: _set(
        torch.get_default_dtype, torch.set_default_dtype, torch.float64
    ),
    "precision": lambda: _set(
        torch.get_float32_matmul_precision,
        torch.set_float32_matmul_precision,
        "medium",
    ),
    "benchmark": lambda: _set(
        lambda: torch.backends.cudnn.benchmark,
        partial(setattr, torch.backends.cudnn, "benchmark"),
        True,
    ),
    "deterministic": lambda: _set(
        torch.are_deterministic_algorithms_enabled,
        torch.use_deterministic_algorithms,
        True,
    ),
}
"""In which a program may be called."""


def _replace(module: AnyValue, name: str, child: AnyValue) -> None:
    """Let a module have another child or parameter, if it uses one."""
    if hasattr(module, name):
        setattr(module, name, child)


CHANGES: Final[dict[str, Callable[[AnyValue], object]]] = {
    "": lambda m: None,
    "double": lambda m: m.double(),
    "bfloat16": lambda m: m.to(torch.bfloat16),
    "leaf.eval()": lambda m: hasattr(m, "q") and m.q.eval(),
    "wide": lambda m: _replace(m, "l", _wide()),
    "buffer": lambda m: _replace(m, "b", torch.ones(1)),
    "weight": lambda m: _replace(m, "w", nn.Parameter(torch.ones(1, 3))),
    "frozen": lambda m: m.requires_grad_(requires_grad=False),
}
"""What may be done to the module and the graph alike."""


def _wide() -> nn.Module:
    """A layer with more features, and the same weights each time."""
    torch.manual_seed(1)
    return nn.Linear(3, 6)


def fault(
    m: AnyValue, gm: AnyValue, call: tuple[str, str, int], text: str
) -> str:
    """What a graph does wrong in a mode, after a change, "" if nothing.

    It may raise what a program catches: no graph has a line that catches. And
    it may do anything where the program raises.
    """
    mode, change, count = call
    m, gm = copy.deepcopy((m, gm))
    for each in (m, gm):
        CHANGES[change](each)
    catches = "try:" in text or "suppress" in text
    with MODES[mode]():
        return wrong(gm, m, *given(count), may_raise=catches, is_lax=True)


def judged(rng: random.Random, refused: Refused) -> Iterator[Outcome]:
    """A program, traced once and called some times."""
    program = Program(rng)
    m, mode = program.module(), rng.choice(["", "", *MODES])
    with MODES[mode]():
        if isinstance(called(m, given(2), {}), Exception):
            return  # not in this mode
        gm = graph_of(
            program.text,
            refused,
            lambda: fx.trace(m, *given(2), leaves=["q"]),
        )
    if isinstance(gm, Outcome):
        yield gm
    if not callable(gm):
        return
    calls = [(mode, "", 2), (mode, "double", 2), ("", "wide", 2)]
    for _ in range(8):
        count = rng.choice((1, 2, 2, 3, 5))
        calls.append((rng.choice([*MODES]), rng.choice([*CHANGES]), count))
    for call in calls:
        case = f"{program.text}\n# traced in {mode!r}, called as {call}"
        yield Outcome(case, fault(m, gm, call, program.text))


PART = Part(
    "asking",
    "programs that ask for dtypes, shapes and modes, or catch, and their "
    "graphs by fx.trace in other modes and of changed modules",
    partial(searched, judged),
    share=100,
    long=12_000,
    plants=(
        Plant(
            "fx/extra/example_trace/guards.py",
            "    if answer != expected:",
            "    if type(answer) is not type(expected):",
            "what is asked again is not compared",
        ),
        Plant(
            "fx/extra/example_trace/trace.py",
            "            if swallowed is not None:",
            "            if swallowed is Ellipsis:",
            "a refusal that a program catches is forgotten",
        ),
        Plant(
            "fx/extra/example_trace/guards.py",
            "            if not any(id(each) in ended for each in opened):",
            "            if id(error) in ended:",
            "an error in a block leaves torch in its mode",
        ),
    ),
)
