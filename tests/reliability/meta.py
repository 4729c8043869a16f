"""What is kept in `meta`, through pickle, torch.save and deepcopy.

Nodes, tensors, operators and plain values are put at random into containers
and objects of every kind, and those into each other. Afterwards each value has
to be what it was, of the same type, and each node the one of the new graph.
"""

from __future__ import annotations

import collections
import copy
import enum
import functools
import io
import pickle
import random
import types
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

import fx
from fx.node import Node

from .part import Outcome, Part, Plant
from .subjects import Note, Pair, Slotted, Thing, added

AnyValue: TypeAlias = Any


class Color(enum.Enum):
    """An enumeration."""

    RED = 1
    BLUE = 2


def note(values: list[AnyValue]) -> Note:
    """A dataclass whose field without constructor is set, too."""
    made = Note(values[0], values[1:])
    made.cost = values[-1]
    return made


def cycle(values: list[AnyValue]) -> Thing:
    """An object that holds itself."""
    made = Thing(values)
    values.append(made)
    return made


CONTAINERS: Final[dict[str, Callable[[list[AnyValue]], AnyValue]]] = {
    "list": list,
    "tuple": tuple,
    "dict value": lambda v: {"k": v[0], 2: v[-1]},
    "ordered dict": lambda v: collections.OrderedDict(a=v[0], b=v[-1]),
    "default dict": lambda v: collections.defaultdict(list, {"a": v}),
    "deque": lambda v: collections.deque(v, maxlen=9),
    "named tuple": lambda v: Pair(v[0], v[-1]),
    "dataclass": note,
    "object": Thing,
    "slots": lambda v: Slotted(v[0]),
    "namespace": lambda v: types.SimpleNamespace(a=v[0], b=v[-1]),
    "partial": lambda v: functools.partial(print, v[0], end=v[-1]),
    "method": lambda v: Thing(v).method,
    "chain map": lambda v: collections.ChainMap({"a": v[0]}, {"b": v[-1]}),
    "cycle": cycle,
    "slice": lambda v: slice(v[0], v[-1]),
}
"""Containers of any values."""

KEYED: Final[dict[str, Callable[[list[AnyValue]], AnyValue]]] = {
    "set": set,
    "frozen set": frozenset,
    "dict key": lambda v: dict.fromkeys(v, "value"),
    "key in a tuple": lambda v: {(v[0], 1): v[-1]},
    "counter": collections.Counter,
}
"""Containers of values with a hash: nodes, here."""


def leaf(rng: random.Random, nodes: list[Node], mode: AnyValue) -> AnyValue:
    """A value with nothing inside."""
    with mode:
        fake = torch.empty_strided((2, 3), (1, 2), dtype=torch.float64)
    choices: list[AnyValue] = [
        rng.choice(nodes),
        rng.choice(nodes),
        rng.choice((1, 2.5, "text", None, True, 3j, b"x", ...)),
        torch.arange(3.0),
        fake,
        torch.float16,
        torch.device("cpu"),
        torch.ops.aten.add.Tensor,
        torch.ops.aten.add,
        torch.relu,
        added,
        Color.BLUE,
        torch.Size((2, 3)),
        Thing,
        range(4),
    ]
    return rng.choice(choices)


def value(rng: random.Random, nodes: list[Node], mode: AnyValue) -> AnyValue:
    """A random value, of up to four levels."""
    if rng.random() < 0.3:
        made: AnyValue = [rng.choice(nodes) for _ in range(2)]
        return KEYED[rng.choice([*KEYED])](made)
    made = [leaf(rng, nodes, mode) for _ in range(rng.randint(1, 3))]
    for _ in range(rng.randint(1, 3)):
        made = [CONTAINERS[rng.choice([*CONTAINERS])](made)]
        if rng.random() < 0.3:
            made.append(made[0])  # the same object twice
        made.append(leaf(rng, nodes, mode))
    return made


# -- one text for equal values -------------------------------------------------


_SHARED: Final = (
    list,
    dict,
    set,
    collections.deque,
    types.SimpleNamespace,
    Thing,
    Slotted,
    Note,
)


class Describe:
    """Writes a value as text, nodes by their names."""

    def __init__(self, graph: AnyValue) -> None:
        self.graph = graph
        self.seen: dict[int, int] = {}

    def text(self, x: AnyValue) -> str:
        """The text: of equal values the same."""
        if isinstance(x, Node | torch.fx.Node):
            mine = any(x is node for node in self.graph.nodes)
            return f"node {x.name}" if mine else f"STRANGE node {x.name}"
        if isinstance(x, torch.Tensor):
            fake = isinstance(x, FakeTensor)
            content = "" if fake else x.tolist()
            how = (x.dtype, tuple(x.shape), x.stride(), x.requires_grad)
            return f"{type(x).__name__}{how}{content}"
        if isinstance(x, type | types.FunctionType | types.BuiltinFunctionType):
            return f"{x.__module__}.{x.__qualname__}"
        if isinstance(x, _SHARED):  # an object that can be changed
            if id(x) in self.seen:
                return f"again {self.seen[id(x)]}"
            self.seen[id(x)] = len(self.seen)
        return f"{type(x).__qualname__}({self._inside(x)})"

    def _inside(self, x: AnyValue) -> str:
        if isinstance(x, set | frozenset):
            return ", ".join(sorted(map(self.text, x)))
        if isinstance(x, dict):
            return ", ".join(
                f"{self.text(k)}: {self.text(v)}" for k, v in x.items()
            )
        if isinstance(x, list | tuple | collections.deque):
            return ", ".join(map(self.text, x))
        if isinstance(x, functools.partial):
            return self._inside([x.func, x.args, x.keywords])
        if isinstance(x, types.MethodType):
            return self._inside([x.__func__, x.__self__])
        if isinstance(x, slice):
            return self._inside([x.start, x.stop, x.step])
        if isinstance(x, Slotted):
            return self.text(x.held)
        if isinstance(x, Color) or not hasattr(x, "__dict__"):
            return str(x)
        if isinstance(x, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
            return str(x)
        return self._inside(vars(x))


def described(gm: AnyValue) -> str:
    """All notes of a module's graph, as text."""
    describe = Describe(gm.graph)
    lines = [f"{n}: {describe._inside(n.meta)}" for n in gm.graph.nodes]
    return "\n".join(lines)


# -- the run ---------------------------------------------------------------


def program(x: torch.Tensor) -> torch.Tensor:
    """What is traced."""
    return torch.relu(x + 1) * 2


def _saved(gm: AnyValue) -> AnyValue:
    file = io.BytesIO()
    torch.save(gm, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


WAYS: Final[dict[str, Callable[[AnyValue], AnyValue]]] = {
    "pickle": lambda gm: pickle.loads(pickle.dumps(gm)),
    "torch.save": _saved,
    "deepcopy": copy.deepcopy,
}


def noted(lib: AnyValue, seed: str) -> AnyValue:
    """A module whose nodes have random notes."""
    rng, mode = random.Random(seed), FakeTensorMode()
    gm = lib.symbolic_trace(program)
    nodes = list(gm.graph.nodes)
    for node in nodes:
        for key in range(rng.randint(0, 3)):
            node.meta[f"note {key}"] = value(rng, nodes, mode)
    return gm


def wrong(lib: AnyValue, seed: str, way: str) -> str:
    """What one way does to the notes of one module; "" if nothing."""
    gm = noted(lib, seed)
    before = described(gm)
    try:
        got = described(WAYS[way](gm))
    except Exception as error:  # each is a finding
        return f"{type(error).__name__}: {error}"
    if got != before:
        lines = zip(before.split("\n"), got.split("\n"), strict=False)
        return next(f"{old} became {new}" for old, new in lines if old != new)
    if described(gm) != before:
        return "the original has changed"
    return ""


def run(seed: int, cases: int) -> Iterator[Outcome]:
    """Try random notes, each in all ways."""
    for case in range(-(-cases // len(WAYS))):
        for way in WAYS:
            key = f"{seed}.{case}"
            theirs = wrong(torch.fx, key, way)
            yield Outcome(f"{key} {way}", wrong(fx, key, way), theirs)


PART = Part(
    name="meta",
    compares="notes in meta before and after pickle, torch.save, deepcopy",
    run=run,
    share=150,
    long=20000,
    plants=(
        Plant(
            "fx/graph.py",
            "        self._move_notes(copies)\n",
            "",
            "a deep copy's notes lead to the old graph",
        ),
        Plant(
            "fx/extra/saving/packing.py",
            '            return ("fake", self._place(obj, _Fake.of))\n',
            "            return None\n",
            "FakeTensors cannot be pickled",
        ),
        Plant(
            "fx/extra/saving/packing.py",
            "        if isinstance(obj, (OpOverload, OpOverloadPacket)):\n",
            "        if False:\n",
            "operators cannot be pickled",
        ),
        Plant(
            "fx/extra/saving/packing.py",
            "        level = gc.get_referents(",
            "        level = [] and gc.get_referents(",
            "only nodes at the top of meta are found",
        ),
        Plant(
            "fx/extra/saving/packing.py",
            "        if isinstance(obj, Link) and obj in self._number:\n",
            "        if False:\n",
            "what is rebuilt keeps the old nodes",
        ),
    ),
)
