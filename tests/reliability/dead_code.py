"""Whether dead code elimination changes what a program does, and what it keeps.

Each case is a random graph of views, writes, containers, modules, random draws
and calls of a user's functions.  It runs before and after elimination on equal
inputs, and these must be equal: the outputs, the inputs and the module's state
afterwards, what a user's functions saw, the state of the random generator, and
the gradients.  Programs of which is known what must go are tried too.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import torch
import torch.fx
from torch import nn
from torch.nn import functional as F

import fx
from tests.reliability.part import Outcome, Part, Plant

Anything: TypeAlias = Any

aten: Anything = torch.ops.aten


# -- the world of the programs -----------------------------------------------

SEEN: list[Anything] = []
"""What the users' functions and hooks were given, kept as they got it."""


def keep(x: Anything) -> Anything:
    """A user's function that keeps its argument and returns it."""
    SEEN.append(x)
    return x


class Keeper(nn.Module):
    """A user's module that keeps its argument."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        SEEN.append(x)
        return x + 1


def hook(module: nn.Module, args: Anything, result: Anything) -> None:
    """A hook that keeps what the module returned."""
    SEEN.append(result)


class Bag:
    """Has methods of the names that tensors have."""

    def __init__(self) -> None:
        self.held: list[Anything] = []

    def add(self, x: Anything) -> Bag:
        """Keep a value."""
        self.held.append(x)
        return self

    def relu(self) -> Bag:
        """Return the bag itself."""
        return self

    def add_(self, x: Anything) -> Bag:
        """Forget a value, and keep another."""
        self.held = [x]
        return self


def owner(training: bool) -> nn.Module:
    """The module whose children, parameter and buffer the graphs use."""
    torch.manual_seed(1)
    made = nn.Module()
    made.linear, made.hooked = nn.Linear(4, 4), nn.Linear(4, 4)
    made.hooked.register_forward_hook(hook)
    made.norm = nn.BatchNorm1d(4)
    made.relu, made.relu_ = nn.ReLU(), nn.ReLU(inplace=True)
    made.dropout, made.identity = nn.Dropout(0.5), nn.Identity()
    made.sequence = nn.Sequential(nn.Identity(), nn.ReLU(inplace=True))
    made.keeper = Keeper()
    made.weight = nn.Parameter(torch.rand(4, 4))
    made.register_buffer("buffer", torch.rand(4, 4))
    return made.train(training)


def inputs() -> tuple[Anything, ...]:
    """The arguments of every program: x, y, a list and a bag."""
    torch.manual_seed(2)
    x = torch.randn(4, 4, requires_grad=True)
    y = torch.randn(4, 4)
    return x, y, [torch.randn(4, 4)], Bag()


# -- random programs ---------------------------------------------------------

Build: TypeAlias = Callable[["Program"], Anything]


class Program:
    """A graph that grows at random, of fx or of torch.fx."""

    def __init__(self, lib: Anything, seed: int) -> None:
        """Make a graph of 3 to 25 calls, whose output is some of them."""
        self.rng = random.Random(seed)
        self.training = self.rng.random() < 0.5
        self.owner = owner(self.training)
        self.graph = lib.Graph(self.owner)
        tensor = torch.Tensor if self.rng.random() < 0.7 else None
        x, y = (self.graph.placeholder(name, tensor) for name in "xy")
        self.items = self.graph.placeholder("items")
        self.bag = self.graph.placeholder("bag")
        first = self.call(torch.mul, x, 1.5)
        self.tensors = [x, y, first]
        for _ in range(self.rng.randint(3, 25)):
            made = self.rng.choice(STEPS)(self)
            if made is not None:
                self.tensors.append(made)
        self.graph.output(tuple(self.rng.choices(self.tensors, k=2)))

    def any(self) -> Anything:
        """A tensor of the program, most often a late one."""
        return self.rng.choice(self.tensors[-self.rng.randint(1, 9) :])

    def call(
        self, function: Anything, *args: Anything, **kw: Anything
    ) -> Anything:
        """Add a call of a function."""
        return self.graph.call_function(function, args, kw)

    def method(self, name: str, *args: Anything, **kw: Anything) -> Anything:
        """Add a call of a method."""
        return self.graph.call_method(name, args, kw)

    def module(self, name: str, x: Anything) -> Anything:
        """Add a call of a child of the owner."""
        return self.graph.create_node("call_module", name, (x,), {})

    def view(self) -> Anything:
        """Some rows of a square tensor, as a view that is square again."""
        x = self.any()
        return self.rng.choice(
            (
                lambda: self.call(operator.getitem, x, slice(None)),
                lambda: self.method("view", x, 4, 4),
                lambda: self.method("t", x),
                lambda: self.call(torch.transpose, x, 0, 1),
                lambda: self.call(aten.view.default, x, [4, 4]),
                lambda: self.method(
                    "reshape", x, self.method("size", x, 0), -1
                ),
                lambda: self.method("detach", x),
                lambda: self.call(getattr, x, "data"),
                lambda: self.method("type_as", x, x),
                lambda: self.method("contiguous", x),
                lambda: self.call(torch.atleast_1d, x),
                lambda: self.call(F.dropout, x, 0.5, False),
                lambda: self.module("identity", x),
                lambda: self.call(
                    operator.getitem, self.call(torch.atleast_1d, [x, x]), 1
                ),
                lambda: self.call(
                    operator.getitem,
                    self.call(torch.broadcast_tensors, x, self.any()),
                    self.rng.randint(0, 1),
                ),
            )
        )()

    def write(self) -> Anything:
        """A write; its value is used later, or not at all."""
        x, y = self.any(), self.any()
        made = self.rng.choice(
            (
                lambda: self.call(torch.relu_, x),
                lambda: self.method("mul_", x, 0.5),
                lambda: self.method("add_", x, y),
                lambda: self.method("copy_", x, y),
                lambda: self.call(F.relu, x, inplace=True),
                lambda: self.call(F.elu, x, 1.0, True),
                lambda: self.call(aten.tanh_.default, x),
                lambda: self.call(operator.iadd, x, 1.0),
                lambda: self.call(operator.setitem, x, 0, 0.25),
                lambda: self.call(torch.add, x, 1, out=y),
                lambda: self.module("relu_", x),
                lambda: self.module("sequence", x),
                lambda: self.method("bernoulli_", x),
                lambda: self.method("zero_", self.call(operator.getitem, x, 1)),
            )
        )()
        dead = made.target is operator.setitem or self.rng.random() < 0.5
        return None if dead or "zero_" in made.name else made

    def new(self) -> Anything:
        """New memory, which is where a write can be dead."""
        x, y = self.any(), self.any()
        return self.rng.choice(
            (
                lambda: self.call(torch.add, x, y),
                lambda: self.call(operator.mul, x, 2),
                lambda: self.method("clone", x),
                lambda: self.call(torch.matmul, x, y),
                lambda: self.call(aten.sigmoid.default, x),
                lambda: self.module("linear", x),
                lambda: self.module("norm", x),
                lambda: self.module("relu", x),
                lambda: self.module("dropout", x),
                lambda: self.module("hooked", x),
                lambda: self.call(torch.rand, 4, 4),
                lambda: self.call(F.dropout, x),
                lambda: self.call(torch.zeros_like, x),
            )
        )()

    def state(self) -> Anything:
        """A parameter or buffer, or a view of one."""
        name = self.rng.choice(("weight", "buffer"))
        made = self.graph.get_attr(name)
        if name == "weight":
            return self.call(torch.mul, made, 1.0)
        return made

    def other(self) -> Anything:
        """Containers, users' code, and methods of what is no tensor."""
        x = self.any()
        return self.rng.choice(
            (
                lambda: self.call(keep, x),
                lambda: self.module("keeper", x),
                lambda: self.method("append", self.items, x),
                lambda: self.call(operator.getitem, self.items, 0),
                lambda: self.call(
                    operator.getitem,
                    self.call(operator.add, self.items, [x]),
                    1,
                ),
                lambda: self.method("add", self.bag, x),
                lambda: self.method("add_", self.method("relu", self.bag), x),
                lambda: self.call(list, self.call(map, keep, [x])),
                lambda: self.call(operator.getitem, self.call(tuple, [x]), 0),
                lambda: self.method("numpy", self.method("detach", x)),
            )
        )() if self.rng.random() < 0.6 else None  # fmt: skip


def _unless_odd(build: Build) -> Build:
    """A step whose value counts as a tensor only if it is one."""

    def step(program: Program) -> Anything:
        made = build(program)
        odd = ("append", "add", "add_", "numpy", "list")
        by_name = made is not None and str(made.target) in odd
        return (
            None
            if by_name or (made is not None and made.target is list)
            else made
        )

    return step


STEPS: tuple[Build, ...] = (
    *(Program.view, Program.view, Program.write, Program.write, Program.write),
    *(Program.new, Program.new, Program.new, Program.state),
    _unless_odd(Program.other),
)


# -- running -----------------------------------------------------------------


def plain(value: Anything) -> Anything:
    """A value in a form that can be compared."""
    if isinstance(value, torch.Tensor):
        return repr(value.detach().tolist())
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, Bag):
        return plain(value.held)
    return repr(value)


def world(program: Program) -> dict[str, Anything]:
    """Everything that can be seen when a program has run."""
    SEEN.clear()
    given = inputs()
    torch.manual_seed(3)
    env: dict[Anything, Anything] = {}
    feed = iter(given)
    result: Anything = None

    def value(argument: Anything) -> Anything:
        return fx.map_arg(torch.fx.map_arg(argument, env.get), env.get)

    for node in program.graph.nodes:
        args, kwargs = value(node.args), value(dict(node.kwargs))
        if node.op == "placeholder":
            env[node] = next(feed)
        elif node.op == "get_attr":
            env[node] = getattr(program.owner, node.target)
        elif node.op == "call_function":
            env[node] = node.target(*args, **kwargs)
        elif node.op == "call_method":
            env[node] = getattr(args[0], node.target)(*args[1:], **kwargs)
        elif node.op == "call_module":
            env[node] = getattr(program.owner, node.target)(*args, **kwargs)
        else:
            result = args[0]
    found = {
        "output": plain(result),
        "inputs": plain(given),
        "state": plain([*program.owner.state_dict().values()]),
        "random": plain(torch.get_rng_state()),
        "kept by users": plain(SEEN),
    }
    total = sum(part.sum() for part in result if part.requires_grad)
    if isinstance(total, torch.Tensor):
        try:
            torch.autograd.backward(total)
        except RuntimeError:
            return found  # a value that backward needs was overwritten
        found["gradient"] = plain(given[0].grad)
    return found


_TORCHS_OWN = "a leaf Variable that requires grad"
"""In torch 2.13 a view that was made before its base got a gradient counts as
a leaf until somebody reads it.  Then a call whose value nobody uses decides:

    t = y.T;  y.add_(x);  torch.add(t, 1);  torch.relu_(t)    # runs
    t = y.T;  y.add_(x);                    torch.relu_(t)    # RuntimeError
"""


def difference(lib: Anything, seed: int, **settings: str) -> str | None:
    """What elimination changed in a program; None if it cannot run."""
    try:
        before = world(Program(lib, seed))
    except Exception:
        return None
    program = Program(lib, seed)
    try:
        program.graph.eliminate_dead_code(**settings)
        after = world(program)
    except Exception as error:
        if _TORCHS_OWN in str(error):
            return None
        return f"{type(error).__name__} after elimination"
    changed = [
        name
        for name, value in before.items()
        if name in after and value != after[name]
    ]
    return ", ".join(changed)


# -- what must go ------------------------------------------------------------


def _written_twice(p: Program, x: Anything) -> None:
    made = p.module("linear", x)
    p.call(torch.relu_, made)
    p.method("mul_", p.method("view", made, -1), 2)


def _in_pieces(p: Program, x: Anything) -> None:
    pieces = p.call(torch.chunk, p.call(torch.add, x, 1), 2)
    p.method("zero_", p.call(operator.getitem, pieces, 0))


MUST_GO: tuple[Callable[[Program, Anything], Anything], ...] = (
    lambda p, x: p.call(torch.relu_, p.module("linear", x)),
    lambda p, x: p.module("relu_", p.module("linear", x)),
    lambda p, x: p.call(F.relu, p.call(torch.add, x, x), inplace=True),
    lambda p, x: p.method("mul_", p.call(operator.add, x, 1), 2),
    lambda p, x: p.call(operator.setitem, p.call(torch.clone, x), 0, 1),
    lambda p, x: p.call(
        aten.relu_.default,
        p.call(aten.view.default, p.call(torch.abs, x), [-1]),
    ),
    lambda p, x: p.module("linear", p.module("relu_", p.module("linear", x))),
    lambda p, x: p.module("identity", p.module("relu_", p.call(torch.abs, x))),
    _written_twice,
    _in_pieces,
)
"""Each adds calls to a program that has an annotated input x.  None of them
does anything, so nothing of them may be left."""


def left_over(place: int) -> str:
    """What elimination leaves of one of `MUST_GO`."""
    program = Program.__new__(Program)
    program.owner = owner(training=False)
    made: Anything = program.owner
    program.graph = graph = fx.Graph(made)
    x = graph.placeholder("x", torch.Tensor)
    MUST_GO[place](program, x)
    graph.output(x)
    for unknown in ("keep", "drop"):
        graph.eliminate_dead_code(unknown=unknown)
        left = [node.name for node in graph.nodes if node.op.startswith("call")]
        if left:
            return f"{unknown}: {' '.join(left)} could have gone"
    return ""


# -- the part ----------------------------------------------------------------


def run(seed: int, cases: int) -> Iterator[Outcome]:
    """Eliminate dead code from `cases` programs that can run, and more."""
    for place in range(len(MUST_GO)):
        yield Outcome(f"must go: {place}", left_over(place))
    for number in range(cases):
        case = seed * 1_000_003 + number
        ours = difference(fx, case, unknown="keep")
        if ours is not None:
            theirs = difference(torch.fx, case)
            yield Outcome(f"seed {case}", ours, theirs)


TENSORS = "fx/extra/effects/effects.py"
DEAD_CODE = "fx/extra/effects/effects.py"

PART = Part(
    "dead_code",
    "what a program does before and after dead code elimination",
    run,
    share=150,
    long=50_000,
    plants=(
        Plant(
            "fx/extra/effects/modules.py",
            "    if any(getattr(module, kind) for kind in HOOKS):",
            "    if False:",
            "a module with hooks is taken for one without",
        ),
        Plant(
            "fx/extra/effects/effects.py",
            "is_tensor(first_of(node), {} if tensors is None else tensors):",
            "node.args:",
            "a method of anything is taken for a tensor's",
        ),
        Plant(
            "fx/extra/effects/effect_tables.py",
            '"map object oct ord',
            '"list map object oct ord',
            "list(map(f, xs)) is taken for pure",
        ),
        Plant(
            DEAD_CODE,
            "_last(self._escapes[maker]) is not None",
            "False",
            "memory that has escaped is taken for unseen",
        ),
        Plant(
            DEAD_CODE,
            "_last(self._users[maker]) is not write",
            "False",
            "what is written is never seen",
        ),
        Plant(
            "fx/extra/effects/effect_tables.py",
            '"abs acos acosh add ',
            '"detach type_as abs acos acosh add ',
            "`type_as` and `detach` are taken for new memory",
        ),
        Plant(
            TENSORS,
            " and is_tensor(first_of(node), tensors)",
            "",
            "what a method of anything returns is taken for new memory",
        ),
    ),
)
