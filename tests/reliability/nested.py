"""Graphs of nested inputs, called with inputs of another structure.

A function takes containers in containers, with a constant here and there, and
is traced with one structure of them. Its graph is then called with the same
structure and with others: items more or fewer, other keys, a tensor or a number
for a list, a list for a tuple. Called as a module, run by an Interpreter,
pickled, and written to a folder, it must compute what the function computes, or
say which input is wrong.
"""

from __future__ import annotations

import contextlib
import io
import pickle
import random
import warnings
from collections import OrderedDict, deque, namedtuple
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import torch
import torch.fx
from torch.utils import _pytree as pytree

import fx
from tests.reliability.part import Outcome, Part, Plant
from tests.reliability.programs import folder_of, from_folder

AnyValue: TypeAlias = Any

Pair: Final = namedtuple("Pair", ["a", "b"])
riaP: Final = namedtuple("riaP", ["b", "a"])
KEYS: Final = ("a", "b", 1)


def tensor(rng: random.Random) -> torch.Tensor:
    """A small tensor of whole numbers, whose sums are exact."""
    rows = [[float(rng.randrange(9)) for _ in range(2)] for _ in range(2)]
    return torch.tensor(rows)


def tree(rng: random.Random, depth: int = 2) -> AnyValue:
    """Containers of tensors, and in them others."""
    if depth == 0 or rng.random() < 0.3:
        return tensor(rng)
    kind = rng.choice(
        ("list", "list", "tuple", "dict", "dict", "named", "rare")
    )
    items = [tree(rng, depth - 1) for _ in range(rng.choice((0, 1, 2, 2, 3)))]
    if kind == "dict":
        return dict(zip(rng.sample(KEYS, 3), items, strict=False))
    if kind in ("list", "tuple"):
        return items if kind == "list" else tuple(items)
    two = tree(rng, depth - 1), tree(rng, 0)
    if kind == "named":
        return Pair(*two)
    return rng.choice(
        (
            OrderedDict(zip("ab", two, strict=True)),
            torch.max(tensor(rng), 1),
            deque(two),
        )
    )


def other(rng: random.Random, value: AnyValue) -> AnyValue:
    """The same containers, or somewhere others."""
    if rng.random() < 0.25:
        return rng.choice(CHANGES)(rng, value)
    if isinstance(value, dict):
        return type(value)({key: other(rng, x) for key, x in value.items()})
    if isinstance(value, Pair):
        return Pair(*[other(rng, item) for item in value])
    if type(value) in (list, tuple, deque):
        return type(value)([other(rng, item) for item in value])
    return value


def _items(value: AnyValue) -> list[AnyValue]:
    """What is in a container, else the value itself."""
    if isinstance(value, dict):
        return [*value.values()]
    return [*value] if isinstance(value, tuple | list | deque) else [value]


def _keyed(rng: random.Random, value: AnyValue) -> AnyValue:
    keys = rng.sample((*KEYS, "c"), 4)
    return dict(zip(keys, _items(value), strict=False))


CHANGES: Final[tuple[Callable[[random.Random, AnyValue], AnyValue], ...]] = (
    lambda rng, value: [*_items(value), tensor(rng)],
    lambda rng, value: _items(value)[:-1],
    lambda rng, value: tuple(_items(value)),
    lambda rng, value: list(_items(value)),
    lambda rng, value: deque(_items(value)),
    lambda rng, value: tensor(rng),
    lambda rng, value: torch.ones(3, 2, 2),
    lambda rng, value: rng.choice((None, 3, "ab", [], {}, ())),
    lambda rng, value: (
        {**value, "c": 1} if isinstance(value, dict) else [value]
    ),
    lambda rng, value: (
        dict([*value.items()][::-1]) if isinstance(value, dict) else value
    ),
    lambda rng, value: OrderedDict(value) if isinstance(value, dict) else value,
    lambda rng, value: Pair(*(_items(value) * 2)[:2]) if _items(value) else [],
    lambda rng, value: riaP(*(_items(value) * 2)[:2]) if _items(value) else [],
    _keyed,
)


def walked(value: AnyValue, weight: float = 1.0) -> AnyValue:
    """A number for a value, to which all that is in it contributes."""
    if isinstance(value, dict):
        named = [(sum(map(ord, repr(k))), x) for k, x in value.items()]
        return 1 + sum(walked(x, weight + n) * n for n, x in named)
    if isinstance(value, Pair | riaP):
        return 2 + 3 * walked(value.a, weight) + 7 * walked(value.b, weight)
    if isinstance(value, tuple | list | deque):
        parts = enumerate(value, 2)
        return len(value) + sum(n * walked(x, weight + n) for n, x in parts)
    return value * weight


def program(rng: random.Random) -> Callable[..., AnyValue]:
    """A function of two inputs."""
    twice = rng.random() < 0.5

    def f(x: AnyValue, y: AnyValue) -> AnyValue:
        total = walked(x) + walked(y) * 2
        return {"sum": (total, [total * 2])} if twice else total

    return f


def ways(lib: AnyValue, gm: AnyValue) -> dict[str, Callable[..., AnyValue]]:
    """The ways to run a graph module."""
    return {
        "call": gm,
        "forward": gm.forward,
        "Interpreter": lib.Interpreter(gm).run,
        "pickle": pickle.loads(pickle.dumps(gm)),
    }


def wrong(lib: AnyValue, seed: int, *, everywhere: bool) -> tuple[str, str]:
    """What was done, and what a library gets wrong."""
    rng = random.Random(seed)
    f, traced = program(rng), [tree(rng, 2), tree(rng, 1)]
    holes = [pytree.tree_map(lambda _: lib.PH, one) for one in traced]
    if not any(isinstance(one, tuple | list | dict | deque) for one in traced):
        return "", ""
    gm = lib.symbolic_trace(f, dict(zip("xy", holes, strict=True)))
    run: dict[str, Callable[..., AnyValue]]
    if everywhere:
        with folder_of(gm) as where:
            run = {"folder": from_folder(*where)}
    else:
        run = ways(lib, gm)
    said = [f"traced {shape(traced)}"]
    for number in range(5):
        given = [other(rng, one) for one in traced] if number else traced
        said.append(shape(given))
        if all(map(pytree.tree_is_leaf, given)):
            run.pop("Interpreter", None)  # which takes leaves, flat
        elif "Interpreter" in run and rng.random() < 0.2:
            with contextlib.suppress(RuntimeError):
                return said[-1], f"a surplus: {run['Interpreter'](*given, 1)}"
        found = [
            f"{name} of {said[-1]}: {what}"
            for name, call in run.items()
            if (
                what := differs(
                    f, call, given, same=shape(given) == shape(traced)
                )
            )
        ]
        if found:
            return "; ".join(said), "; ".join(found)
    return "; ".join(said), ""


def shape(value: AnyValue) -> str:
    """A structure in words."""
    return str(pytree.tree_map(lambda x: getattr(x, "ndim", x), value))


def differs(
    f: Callable[..., AnyValue],
    call: Callable[..., AnyValue],
    given: list[AnyValue],
    *,
    same: bool,
) -> str:
    """How a call of a graph differs from the function; "" if it does not."""
    try:
        expected = repr(f(*given))
    except Exception:
        expected = ""
    try:
        got = repr(call(*given))
    except Exception as error:
        text = str(error)
        if same:
            return f"{type(error).__name__}: {text}"
        names = (" x", " y", "x_", "y_")
        # Where a tensor was, the graph gets whatever is given, and uses it.
        used = isinstance(error, TypeError) and "unsupported operand" in text
        used = used or "can't multiply sequence" in text
        if expected and not used and not any(name in text for name in names):
            return f"{type(error).__name__}: {text} names no input"
        return ""
    return "" if got == expected else f"{got} instead of {expected}"


def run(seed: int, cases: int) -> Iterator[Outcome]:
    """Try so many functions; one in ten as a folder."""
    warnings.simplefilter("ignore")
    for number in range(cases):
        key, everywhere = seed * 1_000_000 + number, number % 10 == 9
        said, ours = wrong(fx, key, everywhere=everywhere)
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                _, theirs = wrong(torch.fx, key, everywhere=everywhere)
        except Exception as error:  # it cannot pickle or trace it
            theirs = f"{type(error).__name__}: {error}"
        yield Outcome(f"{key}: {said}"[:500], ours[:500], theirs)


TREES: Final = "fx/_pytree.py"

PART = Part(
    name="nested inputs",
    compares="functions of nested inputs and their graphs, on inputs of the "
    "structure that was traced and of others",
    run=run,
    share=40,
    long=5_000,
    plants=(
        Plant(
            TREES,
            "    return len(tree) == spec.num_children\n",
            "    return len(tree) >= spec.num_children\n",
            "the surplus items of a list are dropped",
        ),
        Plant(
            TREES,
            "isinstance(tree, Mapping) and tree.keys() == {*spec.context}",
            "isinstance(tree, Mapping) and tree.keys() >= {*spec.context}",
            "the surplus keys of a dict are dropped",
        ),
        Plant(
            TREES,
            "isinstance(tree, spec.context)",
            "len(tree) == spec.num_children",
            "the items of a named tuple are taken by their places",
        ),
        Plant(
            TREES,
            'f", for the input {name}{keys}" if name or keys else ""',
            '""',
            "an error does not say which input is wrong",
        ),
        Plant(
            "fx/tracing/inputs.py",
            "pytree.tree_flatten(args if is_pair else tuple(args))",
            "pytree.tree_flatten(tuple(args))",
            "a tuple and a dict are read as args and kwargs",
        ),
        Plant(
            "fx/codegen/nested.py",
            "        if len(inputs) > len(specs):\n",
            "        if False:\n",
            "an interpreter drops inputs",
        ),
    ),
)
