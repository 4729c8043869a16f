"""Constants in generated code: how they are written and that they come back."""

from __future__ import annotations

import collections
import enum
import math
from dataclasses import dataclass
from typing import Any, NamedTuple, no_type_check

import torch

from tests.parity.harness import Lib, Seen, program
from tests.parity.programs._subjects import AnyValue

Seeds: Any = []
"""What injected code would append to."""


class Pair(NamedTuple):
    """A named tuple of the user's."""

    left: Any
    right: Any


class Color(enum.Enum):
    """An enum of the user's."""

    RED = 1
    BLUE = "b"


class Level(enum.IntEnum):
    """An enum whose members are ints."""

    LOW = 1
    HIGH = 2


@dataclass(frozen=True)
class Record:
    """A dataclass of the user's."""

    u: Any


class Injected:
    """An object whose repr is code."""

    def __repr__(self) -> str:
        path = "tests.parity.programs.generated_constants"
        return f"__import__({path!r}, fromlist=['x']).Seeds.append('ran')"


def identity(*args: Any, **kwargs: Any) -> AnyValue:
    """What it is given: the constants as the function received them."""
    return args[0] if args else kwargs["k"]


def received(lib: Lib, value: AnyValue) -> tuple[str, AnyValue]:
    """The argument's text in the code, and its value in the function."""
    g = lib.Graph()
    g.output(g.call_function(identity, (value,)))
    gm = lib.GraphModule({}, g)
    text = next(line for line in gm.code.splitlines() if "identity(" in line)
    return text.partition("identity(")[2][:-1], gm()


@program()
def sizes_and_dict_subclasses_become_plain(lib: Lib) -> Seen:
    values: list[AnyValue] = [
        torch.Size([2, 3]),
        collections.OrderedDict(a=1),
        collections.defaultdict(list, a=1),
    ]
    seen = []
    for value in values:
        _, back = received(lib, value)
        seen.append((type(back).__name__, back == value, len(back)))
    return seen


@program(differs="sets-in-order", ours=[["a", "b"], True, True])
def a_set_is_printed_in_one_order(lib: Lib) -> Seen:
    names = {chr(ord("a") + i) for i in range(26)}
    g = lib.Graph()
    node = g.call_function(identity, (names, frozenset(names)))
    g.output(node)
    shown = "', '".join(sorted(names))
    code = lib.GraphModule({}, g).code
    return [
        sorted(names)[:2],
        f"args = ({{'{shown}'}}, frozenset({{'{shown}'}}))" in str(g),
        f"({{'{shown}'}}, frozenset({{'{shown}'}}))" in code,
    ]


@program()
def constants_in_every_place_of_a_graph(lib: Lib) -> Seen:
    g = lib.Graph()
    g.placeholder("x", default_value=math.inf)
    g.placeholder("y", default_value=(1, [torch.float32, None]))
    g.placeholder("z", default_value=Color.BLUE)
    f = g.call_function(identity, (), {"k": (slice(1), math.nan, Pair(1, 2))})
    m = g.call_method("index", ("abc", "b"), {})
    g.output((f, m, [Level.HIGH, torch.strided, 1 - 2j], {"k": (2,)}))
    gm = lib.GraphModule({}, g)
    return [gm.code, repr(gm())]


@program()
def constants_met_while_tracing(lib: Lib) -> Seen:
    @no_type_check
    def f(x, *, scale=math.inf, kind=torch.float64, mode=Color.RED):
        x = x.call(1 + 2j, -0.0, [math.nan, (None, ...)], {"k": range(2)})
        x = x.call(torch.device("cpu"), torch.channels_last, Level.LOW)
        x = x.call(Color.BLUE, torch.Size([1, 2]), slice(None, 3), x[1:, "a"])
        return x, scale, kind, mode, True, "text"

    gm = lib.symbolic_trace(f)
    return [str(gm.graph), gm.code]


@program(
    differs="hygienic-code",
    ours=[[False, False, False], [True, True, True]],
)
def the_repr_of_a_constant_is_not_code(lib: Lib) -> Seen:
    value = Injected()

    def as_argument(g: AnyValue) -> None:
        g.output(g.call_function(identity, (value,)))

    def as_default(g: AnyValue) -> None:
        g.output(g.placeholder("x", default_value=value))

    def as_output(g: AnyValue) -> None:
        g.output(value)

    ran, kept = [], []
    for build in (as_argument, as_default, as_output):
        Seeds.clear()
        g = lib.Graph()
        build(g)
        kept.append(lib.GraphModule({}, g)() is value)
        ran.append(bool(Seeds))
    return [ran, kept]


@program(
    differs="operators-as-python-reads-them",
    ours=["AttributeError", 3, complex(0, -1), True, 7],
)
def statements_that_python_would_not_parse_or_misread(lib: Lib) -> Seen:
    def run(target: AnyValue, *args: AnyValue) -> object:
        g = lib.Graph()
        x = g.placeholder("x")
        given = tuple(x if a == "x" else a for a in args)
        if isinstance(target, str):
            g.output(g.call_method(target, given))
        else:
            g.output(g.call_function(target, given))
        try:
            return lib.GraphModule({}, g)(torch.ones(2))
        except Exception as raised:
            return type(raised).__name__

    return [
        run(getattr, "x", "class"),
        run("bit_length", 7),
        run("conjugate", 1j),
        run("is_integer", -2.0),
        run(getattr, 7, "real"),
    ]


@program(
    differs="operators-as-python-reads-them",
    ours=[4, 0.25, -8.0, math.inf],
)
def powers_of_negative_numbers(lib: Lib) -> Seen:
    def power(base: AnyValue, exponent: float) -> object:
        @no_type_check
        def f(x):
            return base**x

        return lib.symbolic_trace(f)(exponent)

    return [
        power(-2, 2),
        power(-0.5, 2),
        power(-2.0, 3),
        power(-math.inf, 2),
    ]
