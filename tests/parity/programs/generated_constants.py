"""Constants in generated code: how they are written and that they come back."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import functools
import itertools
import math
import pathlib
from dataclasses import dataclass
from typing import Any, NamedTuple, no_type_check

import numpy as np
import torch

from tests.parity.harness import Lib, Seen, error, program
from tests.parity.programs._subjects import Value

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


class Bits(enum.Flag):
    """An enum whose members combine."""

    ONE = 1
    TWO = 2


@dataclass(frozen=True)
class Record:
    """A dataclass of the user's."""

    u: Any


class Loud(str):
    """A str that prints as something else."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "not the text"


class Injected:
    """An object whose repr is code."""

    def __repr__(self) -> str:
        path = "tests.parity.programs.generated_constants"
        return f"__import__({path!r}, fromlist=['x']).Seeds.append('ran')"


def identity(*args: Any, **kwargs: Any) -> Value:
    """What it is given: the constants as the function received them."""
    return args[0] if args else kwargs["k"]


def received(lib: Lib, value: Value) -> tuple[str, Value]:
    """The argument's text in the code, and its value in the function."""
    g = lib.Graph()
    g.output(g.call_function(identity, (value,)))
    gm = lib.GraphModule({}, g)
    text = next(line for line in gm.code.splitlines() if "identity(" in line)
    return text.partition("identity(")[2][:-1], gm()


def written(lib: Lib, values: list[Value]) -> list[tuple[str, str, str]]:
    """Text, type and repr of each of `values` after a run."""
    seen = []
    for value in values:
        text, back = received(lib, value)
        seen.append((text, type(back).__name__, repr(back)))
    return seen


@program(claims=("codegen-builtin-globals",))
def numbers_are_written_so_that_they_come_back(lib: Lib) -> Seen:
    numbers = [
        0,
        -7,
        10**30,
        True,
        0.5,
        -0.0,
        1e300,
        1e-5,
        1e16,
        0.1 + 0.2,
        math.inf,
        -math.inf,
        math.nan,
        1 + 2j,
        -1.5 - 0.5j,
    ]
    return written(lib, numbers)


@program(newest=True)
def complex_numbers_that_are_no_sums(lib: Lib) -> Seen:
    parts = (0.0, -0.0, 2.5, math.inf, -math.inf, math.nan)
    pairs = itertools.product(parts, parts)
    return written(lib, [complex(*pair) for pair in pairs])


@program()
def texts_are_written_so_that_they_come_back(lib: Lib) -> Seen:
    texts = [
        "",
        "plain",
        "it's",
        'say "so"',
        "both ' and \"",
        "line\nbreak\ttab\\ backslash",
        "# no comment; x = 1",
        "über \U0001f600 \x00",
        "%s {} {{}}",
    ]
    return written(lib, texts)


@program()
def values_of_torch_are_written_by_their_names(lib: Lib) -> Seen:
    values: list[Value] = [
        torch.float32,
        torch.bfloat16,
        torch.int64,
        torch.bool,
        torch.device("cpu"),
        torch.device("cuda", 1),
        torch.device("meta"),
        torch.strided,
        torch.sparse_coo,
        torch.channels_last,
        torch.contiguous_format,
    ]
    return written(lib, values)


@program()
def containers_are_written_as_literals(lib: Lib) -> Seen:
    values: list[Value] = [
        (),
        (1,),
        (1, 2),
        [],
        [1, [2, (3,)]],
        {},
        {"a": 1, "b": [2]},
        {1: 2, (1, 2): 3, None: 4, 1.5: 5},
        {"k": {"deep": (torch.float32, math.inf)}},
        slice(None),
        slice(1, None, -1),
        slice((1, 2), [3], "x"),
        range(3),
        range(10, 0, -3),
        ...,
        None,
        (None, ..., slice(0, 1), torch.float32, math.nan),
    ]
    return written(lib, values)


@program()
def enums_and_named_tuples_are_written_by_their_class(lib: Lib) -> Seen:
    values = [
        Color.RED,
        Color.BLUE,
        Level.HIGH,
        [Color.RED, (Level.LOW,)],
        Pair(1, "x"),
        Pair(None, (1, [2])),
    ]
    return written(lib, values)


@program()
def sizes_and_dict_subclasses_become_plain(lib: Lib) -> Seen:
    values: list[Value] = [
        torch.Size([2, 3]),
        collections.OrderedDict(a=1),
        collections.defaultdict(list, a=1),
    ]
    seen = []
    for value in values:
        _, back = received(lib, value)
        seen.append((type(back).__name__, back == value, len(back)))
    return seen


@program()
def other_plain_values_come_back(lib: Lib) -> Seen:
    values: list[Value] = [
        {1, 2},
        frozenset({3}),
        b"bytes\x00",
        bytearray(b"a"),
        NotImplemented,
        torch.per_tensor_affine,
        list[int],
        int | None,
    ]
    seen = []
    for value in values:
        _, back = received(lib, value)
        seen.append((type(back).__name__, back == value, repr(back)))
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
    ours=[True] * 17,
)
def every_other_constant_is_bound_by_name(lib: Lib) -> Seen:
    values: list[Value] = [
        torch.ones(2),
        Record(1),
        Bits.ONE | Bits.TWO,
        {Color.RED: 1},
        Loud("a"),
        int,
        torch.Tensor,
        Record,
        len,
        identity,
        functools.partial(identity, 1),
        math,
        np.float64(2.5),
        np.int64(3),
        decimal.Decimal("1.5"),
        datetime.date(2020, 1, 2),
        pathlib.PurePosixPath("a/b"),
    ]
    seen: list[object] = []
    for value in values:
        try:
            _, back = received(lib, value)
            seen.append(back is value or bool(back == value))
        except Exception as raised:
            seen.append(type(raised).__name__)
    return seen


@program(
    differs="hygienic-code",
    ours=["no error", "no error", "no error", "no error"],
)
def constants_that_have_no_literal(lib: Lib) -> Seen:
    values: list[Value] = [
        10**5000,
        complex(math.nan, math.inf),
        torch.Generator(),
        [lambda x: x, object()],
    ]

    def kept(value: Value) -> str:
        return error(lambda: received(lib, value)).partition(":")[0]

    return [kept(value) for value in values]


@program(
    differs="hygienic-code",
    ours=[[False, False, False], [True, True, True]],
)
def the_repr_of_a_constant_is_not_code(lib: Lib) -> Seen:
    value = Injected()

    def as_argument(g: Value) -> None:
        g.output(g.call_function(identity, (value,)))

    def as_default(g: Value) -> None:
        g.output(g.placeholder("x", default_value=value))

    def as_output(g: Value) -> None:
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
    differs="hygienic-code",
    ours=[2.0, True, "cpu", 3, True, 6.0],
)
def inputs_named_like_what_the_code_uses(lib: Lib) -> Seen:
    def run(name: str, act: Value, given: object) -> object:
        g = lib.Graph()
        g.output(act(g, g.placeholder(name)))
        try:
            return lib.GraphModule({}, g)(given)
        except Exception as raised:
            return type(raised).__name__

    def call(target: Value, *args: Value) -> Value:
        return lambda g, x: g.call_function(target, args or (x,))

    two = torch.tensor(-2.0)
    nan = run("nan", call(identity, math.nan), 3.0)
    inf = run("inf", lambda g, x: (math.inf,), 3.0)
    device = run("device", call(identity, torch.device("cpu")), 3.0)
    with_torch = run("torch", call(torch.abs), two)
    length = run("len", call(len), [1, 2, 3])
    third = run("torch", lambda g, x: g.call_function(torch.mul, (x, -3)), two)
    return [
        float(with_torch)
        if isinstance(with_torch, torch.Tensor)
        else with_torch,
        isinstance(nan, float) and math.isnan(nan),
        str(device),
        length,
        inf == (math.inf,),
        float(third) if isinstance(third, torch.Tensor) else third,
    ]


@program(
    differs="operators-as-python-reads-them",
    ours=["AttributeError", 3, complex(0, -1), True, 7],
)
def statements_that_python_would_not_parse_or_misread(lib: Lib) -> Seen:
    def run(target: Value, *args: Value) -> object:
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


@program(differs="hygienic-code", ours="# COUNTER: 3")
def a_text_that_looks_like_a_mark_of_the_generator(lib: Lib) -> Seen:
    try:
        return received(lib, "# COUNTER: 3")[1]
    except Exception as raised:
        return type(raised).__name__


@program(
    differs="operators-as-python-reads-them",
    ours=[4, 0.25, -8.0],
)
def powers_of_negative_numbers(lib: Lib) -> Seen:
    def power(base: Value, exponent: float) -> object:
        @no_type_check
        def f(x):
            return base**x

        return lib.symbolic_trace(f)(exponent)

    return [power(-2, 2), power(-0.5, 2), power(-2.0, 3)]


@program(
    differs="hygienic-code",
    ours=["no error", "no error", "no error"],
)
def enums_and_named_tuples_inside_dicts(lib: Lib) -> Seen:
    def kept(value: Value) -> str:
        return error(lambda: received(lib, value)).partition(":")[0]

    return [
        kept({"k": Level.HIGH}),
        kept({"k": [Color.RED]}),
        kept({"k": Pair(1, Color.RED)}),
    ]
