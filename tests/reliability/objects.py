"""Programs that are given objects and return some, and near-equal objects.

An example is a random nest of containers, objects, constants and tensors.  The
program reads all that Python can tell of it (classes, keys and their order,
exact constants), changes a part of it, perhaps, and returns another nest.
`fx.trace` records it; then graph and program are called with the example built
anew, with the example changed in place, and with one that differs in one thing
(-0.0 for 0.0, True for 1, a list for a tuple, keys in another order).  Results
and inputs must be the same afterwards, which object is which included, or the
call is refused.  One that is built anew must not be.
"""

from __future__ import annotations

import collections
import pathlib
import random
import re
import types
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import torch
from torch import nn

import fx
from tests.reliability.part import Outcome, Part, Plant
from tests.reliability.traced import Refused, searched

AnyValue: TypeAlias = Any
Tree: TypeAlias = tuple[str, Sequence[str], Sequence["Tree"]]
"""A kind of container, its keys and what is in it; or a constant's text."""


class Plain:
    """Has attributes."""

    def __init__(self, **given: AnyValue) -> None:
        for name, value in given.items():
            object.__setattr__(self, name, value)

    def get(self) -> AnyValue:
        """Its attributes."""
        return vars(self)


class Child(Plain):
    """One more class."""


class Slotted(Plain):
    """Has slots, and no dict."""

    __slots__ = ("a", "b", "c")


@dataclass(frozen=True, slots=True)
class Frozen:
    """Cannot be assigned to."""

    a: AnyValue = None
    b: AnyValue = None
    c: AnyValue = None


class Pair(NamedTuple):
    """Three things."""

    a: AnyValue = None
    b: AnyValue = None
    c: AnyValue = None


class Registered(Plain):
    """Is taken apart as torch is told."""


class Sub(dict[str, AnyValue]):
    """A dict of one's own."""


class Made(Plain):
    """Makes its objects in a way of its own."""

    def __new__(cls, **given: AnyValue) -> AnyValue:
        return object.__new__(cls)


class Colour(Enum):
    """A member has a value."""

    RED = 1
    BLUE = 2


torch.utils._pytree.register_pytree_node(
    Registered,
    lambda value: ([*vars(value).values()], [*vars(value)]),
    lambda items, keys: Registered(**dict(zip(keys, items, strict=True))),
)
WEIGHT: Final = nn.Parameter(torch.ones(2))
SENTINEL: Final = object()


def t(count: int) -> torch.Tensor:
    """A tensor."""
    return torch.arange(1.0, count + 1)


NAMES: Final[dict[str, AnyValue]] = {
    **globals(),
    "OrderedDict": collections.OrderedDict,
    "pathlib": pathlib,
    "defaultdict": collections.defaultdict,
}

BY_POSITION: Final = ("[{}]", "({},)", "deque([{}])", "deque([{}], 5)")
BY_NAME: Final = (
    *("dict({})", "OrderedDict({})", "defaultdict(list, {})", "Plain({})"),
    *("Child({})", "Slotted({})", "Frozen({})", "Pair({})", "Registered({})"),
    *("types.SimpleNamespace({})", "partial(t, {})", "Plain({}).get"),
)
NOT_TAKEN: Final = (
    *("Sub({})", "Made({})", "iter([*dict({}).values()])", "dict({}).items()"),
    *("type('A', (list,), {{}})([*dict({}).values()])",),
)
KEYS: Final = ("1", "True", "0.0", "-0.0", "'a'", "(1, 0.0)", "None", "'b'")
NEAR: Final[tuple[tuple[str, ...], ...]] = (
    *(("1", "True", "1.0", "2"), ("0.0", "-0.0", "0"), ("'a'", "b'a'", "'b'")),
    *(("frozenset([0.0])", "frozenset([-0.0])"), ("1j", "complex(-0.0, 1)")),
    *(("float('nan')",), ("{1, 2}", "{True, 2}"), ("None", "SENTINEL", "...")),
    *(("slice(0, 2)", "slice(False, 2)"), ("range(2)", "range(0, 2, 1)")),
    *(("torch.float32", "torch.float64"), ("Colour.RED", "Colour.BLUE")),
    *(("pathlib.PurePath('a')", "pathlib.PurePath('b')"), ("torch.Size([1])",)),
    *(("t", "torch.relu", "nn.ReLU"), ("t(3)", "t(4)"), ("t(2)", "t(2) + 1")),
)
"""Texts that are like each other."""
TENSORS: Final = ("t(3)", "t(2)", "t(2) + 1")
RESULTS: Final = ("x + 1", "d * 2", "o", "x", "x.shape[0]", "WEIGHT", "x.shape")
ODD: Final = (
    *("slice(0, x.shape[0])", "(lambda: x)", "{x + 1}", "iter([x])", "p"),
    *("nn.Parameter(x + 1)", "{1: x}.items()", "(lambda: 3)", "[x, p, p]"),
    *("nn.Linear(1, 1)", "range(x.shape[0])", "(y for y in x)", "Plain()"),
)


def grown(rng: random.Random, leaves: Sequence[str], depth: int) -> Tree:
    """A random nest; its root is a container."""
    kinds: Sequence[str] = rng.choice(
        (BY_POSITION, BY_NAME, BY_NAME, ("keyed",))
    )
    if rng.random() < 0.015:
        kinds = NOT_TAKEN
    count = rng.randint(1, 3)
    inside: list[Tree] = []
    for _ in range(count):
        if depth and rng.random() < 0.4:
            inside.append(grown(rng, leaves, depth - 1))
        else:
            inside.append((rng.choice(leaves), (), ()))
    keys = rng.sample(KEYS, count) if kinds == ("keyed",) else [*"abc"[:count]]
    return rng.choice(kinds), keys, inside


def text(tree: Tree) -> str:
    """A nest as Python."""
    kind, keys, inside = tree
    if not inside:
        return kind
    items = [*map(text, inside)]
    if kind == "keyed":
        pairs = zip(keys, items, strict=True)
        return "{" + ", ".join(f"{key}: {item}" for key, item in pairs) + "}"
    if kind not in BY_POSITION:
        items = [f"{k}={item}" for k, item in zip(keys, items, strict=True)]
    return kind.format(", ".join(items))


def near(rng: random.Random, tree: Tree) -> Tree:
    """A nest that differs in one thing, perhaps."""
    kind, keys, inside = tree
    if not inside:
        alike = [row for row in NEAR if kind in row]
        return (rng.choice(alike[0]) if alike else kind), keys, inside
    if rng.random() < 0.6:
        at = rng.randrange(len(inside))
        changed = [*inside]
        changed[at] = near(rng, inside[at])
        return kind, keys, changed
    for kinds in (BY_POSITION, BY_NAME):
        if kind in kinds and rng.random() < 0.4:
            return rng.choice(kinds), keys, inside
    if rng.random() < 0.5:
        return kind, keys[::-1], inside[::-1]
    return (kind, keys[1:], inside[1:]) if inside[1:] else tree


def built(source: str) -> AnyValue:
    """What a text makes."""
    return eval(source, dict(NAMES))


# -- all that Python can tell --------------------------------------------------


def parts(value: AnyValue) -> list[tuple[AnyValue, AnyValue]] | None:
    """What is in a value, by its keys; None if it is none of ours."""
    if isinstance(value, dict):
        more = [("factory", getattr(value, "default_factory", None))]
        return [*value.items(), *more]
    if isinstance(value, list | tuple | set | frozenset | deque):
        more = [("most", getattr(value, "maxlen", None))]
        return [*enumerate(value), *more]
    if isinstance(value, partial):
        return [("f", value.func), ("a", value.args), ("k", value.keywords)]
    if isinstance(value, types.MethodType):
        return [("f", value.__func__), ("s", value.__self__)]
    if isinstance(value, types.FunctionType) and value.__closure__:
        return [(0, cell.cell_contents) for cell in value.__closure__]
    if isinstance(value, slice):
        return [("a", value.start), ("b", value.stop), ("c", value.step)]
    if isinstance(value, Slotted | Frozen):
        own = [*vars(value).items()] if hasattr(value, "__dict__") else []
        return own + [
            (n, getattr(value, n)) for n in "abc" if hasattr(value, n)
        ]
    if isinstance(value, Plain | types.SimpleNamespace):
        return [*vars(value).items()]
    return None


def read(value: AnyValue) -> AnyValue:
    """A number, or a tensor, that depends on all of a value."""
    if isinstance(value, torch.Tensor):
        return value.sum()
    inside = parts(value)
    total: AnyValue = len(type(value).__name__)
    if inside is None:
        named = re.sub(" at 0x.*", "", repr(value))
        return total + sum(map(ord, named)) / 100
    for place, (key, item) in enumerate(inside):
        total = total + (place + 2) * read(item) + read(key) / 7
    return total


def told(value: AnyValue, seen: dict[int, int]) -> str:
    """A value as text, with a number for each object that was met before."""
    if isinstance(value, torch.Tensor):
        form = type(value).__name__, value.dtype, value.tolist()
        return f"{form}"
    inside = parts(value)
    if inside is None:
        return re.sub(" at 0x.*", "", f"{type(value)} {value!r}")
    if not isinstance(value, tuple | slice | types.MethodType | frozenset):
        if id(value) in seen:
            return f"again {seen[id(value)]}"
        seen[id(value)] = len(seen)
    items = [f"{told(k, seen)}: {told(v, seen)}" for k, v in inside]
    return f"{type(value).__name__}({', '.join(items)})"


# -- changes -------------------------------------------------------------------


def changeable(value: AnyValue) -> list[AnyValue]:
    """The containers in a value that can be changed in place."""
    inside = parts(value) or []
    found = [each for _, item in inside for each in changeable(item)]
    kinds = dict, list, set, deque, Plain, types.SimpleNamespace
    return [value, *found] if isinstance(value, kinds) else found


def change(value: AnyValue, seed: int, item: AnyValue) -> bool:
    """Change a container in a value; whether there is one."""
    rng = random.Random(seed)
    given = changeable(value)
    if not given:
        return False
    at = rng.choice(given)
    if isinstance(at, dict):
        key = rng.choice([*at, "new"]) if at else "new"
        if rng.random() < 0.3 and key in at:
            item = at.pop(key)  # it comes last now
        at[key] = item
    elif isinstance(at, set):
        at.add(7)
    elif isinstance(at, list | deque):
        if at and rng.random() < 0.5:
            at.pop()
        at.append(item)
    elif rng.random() < 0.3 and hasattr(at, "a"):
        del at.a
    else:
        setattr(at, rng.choice("ab"), item)
    return True


# -- programs ------------------------------------------------------------------


class Program:
    """A program that takes a tensor and an object."""

    def __init__(self, rng: random.Random) -> None:
        constants = [each for row in NEAR for each in row]
        self.tree = grown(rng, [*TENSORS * 3, *constants], 2)
        odd = [rng.choice(ODD)] if rng.random() < 0.3 else []
        leaves = [*RESULTS * 2, *odd * 8, *constants]
        self.result = text(grown(rng, leaves, 1))
        self.is_kept = rng.random() < 0.2
        self.writes = rng.randint(0, 999) if rng.random() < 0.3 else None

    @property
    def case(self) -> str:
        """The example, the result, the write, and whether it is a leaf."""
        how = f"{self.writes}; {self.is_kept}"
        return f"o = {text(self.tree)}; {self.result}; {how}"

    def __call__(self, x: torch.Tensor, o: AnyValue) -> AnyValue:
        """Read the object, write, and return a nest."""
        run = kept if self.is_kept else done
        return run(x, o, self.result, self.writes)


def done(
    x: torch.Tensor, o: AnyValue, result: str, writes: int | None
) -> AnyValue:
    """Read an object, write, and return a nest."""
    d = read(o) * x
    inside = [item for _, item in parts(o) or []]
    p = inside[0] if inside and parts(inside[0]) else [d]
    if writes is not None:
        change(o, writes, x * 3)
    return d, eval(f"lambda x, o, d, p: {result}", dict(NAMES))(x, o, d, p)


def kept(
    x: torch.Tensor, o: AnyValue, result: str, writes: int | None
) -> AnyValue:
    """The same, as a leaf."""
    return done(x, o, result, writes)


def wrong(
    gm: AnyValue, program: Program, ours: AnyValue, theirs: AnyValue
) -> str:
    """What a graph does wrong with an object; "refused" if it refuses."""
    x, seen = t(3), dict[int, int]()
    try:
        want = told((program(x, theirs), theirs), seen)
    except Exception as error:
        want = f"{type(error).__name__}: {error}"
    try:
        got = told((gm(x, ours), ours), {})
    except fx.GuardError:
        return "refused"
    except Exception as error:
        got = f"{type(error).__name__}: {error}"
        return "" if want[:9] == got[:9] else f"raises {got}, not {want}"
    return "" if want == got else f"{got} is {want}"


def judged(rng: random.Random, refused: Refused) -> Iterator[Outcome]:
    """A program, traced once and called some times."""
    program = Program(rng)
    source = text(program.tree)
    try:
        example, again = built(source), built(source)
        program(t(3), built(source))
    except Exception:  # a slot that there is not, say
        return
    before = told(example, {})
    try:
        gm = fx.trace(program.__call__, t(3), example, leaves=[kept])
    except fx.TraceError as error:
        found = re.search(r" is an? (\w+)", str(error))
        refused[found[1] if found else str(error)[:60]] += 1
        yield Outcome(program.case)
        return
    except Exception as error:
        yield Outcome(program.case, f"trace raises {type(error)}: {error}")
        return
    refused[""] += 1
    if told(example, {}) != before:
        yield Outcome(program.case, "the example is changed by the trace")
        return
    problem = wrong(gm, program, again, built(source))
    yield Outcome(program.case, problem)
    for _ in range(5):
        seed, item = rng.randrange(1000), rng.choice((t(2), 0.0, -0.0, True))
        ours = example
        theirs = built(source)
        if program.writes is None and change(ours, seed, item):
            change(theirs, seed, item)
            problem = wrong(gm, program, ours, theirs)
            case = f"{program.case}; changed in place, {seed}, {item}"
            yield Outcome(case, problem.removeprefix("refused"))
            example = built(source)
        other = text(near(rng, program.tree))
        try:
            ours, theirs = built(other), built(other)
        except Exception:  # Slotted has no d
            continue
        problem = wrong(gm, program, ours, theirs)
        case = f"{program.case}; called with {other}"
        yield Outcome(case, problem.removeprefix("refused"))


PART = Part(
    "objects",
    "programs that are given nests of containers and objects, and return "
    "some, with the graphs of fx.trace on near-equal ones",
    partial(searched, judged),
    share=150,
    long=20_000,
    plants=(
        Plant(
            "fx/extra/example_trace/structures.py",
            '        return struct.pack("d", one) == struct.pack("d", two)',
            "        return one == two",
            "0.0 stands for -0.0",
        ),
        Plant(
            "fx/extra/example_trace/structures.py",
            "    if cls is not type(two) or one is two:",
            "    if one is two:",
            "True stands for 1, as a value and as a key",
        ),
        Plant(
            "fx/extra/example_trace/structures.py",
            "    for name, member in slots_of(cls).items():",
            "    for name, member in ():",
            "what objects have in slots is not compared",
        ),
        Plant(
            "fx/extra/example_trace/structures.py",
            "    for path, value in (*apart.refused.items(), *held):",
            "    for path, value in ():",
            "what a graph cannot make anew is returned as it was",
        ),
    ),
)
