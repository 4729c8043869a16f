"""Whether what `make_fx` captured computes the same for other inputs.

Each case is an operator of torch's own test suite (OpInfo), or a function that
does something with a tensor that is not an operator.  It is captured with
inputs, with data and without, and then run on others: the same numbers in
another order.  Compared with eager are results, inputs, what the function
writes beside, and the state of the random generator; also after the capture
itself, which runs the function once, or not at all in fake mode.

Further functions take numbers, strings, None and the like beside a tensor, and
their graphs are called with others: never with another result.  One tensor may
be given twice, and two later; then the capture has to have warned.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import random
import warnings
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx as torchs_make_fx
from torch.nn import functional as F
from torch.utils import _pytree as pytree

from fx.experimental.proxy_tensor import make_fx
from tests.reliability.effects import DTYPES, copied, from_torchs_tests
from tests.reliability.part import Outcome, Part, Plant

Anything: TypeAlias = Any
Tensor: TypeAlias = torch.Tensor
Function: TypeAlias = Callable[..., Anything]

STATE = {"one": torch.ones(1), "four": torch.arange(4.0)}
"""The tensors that functions find in no argument."""

STATE["view"] = STATE["four"].view(2, 2)


PLACES = torch.tensor([[1, 3]])


def renewed() -> list[Tensor]:
    """The tensors of `STATE`, as they are at first."""
    STATE["one"].data = torch.ones(1)
    STATE["four"].copy_(torch.arange(4.0))
    return [*STATE.values()]


def _set(x: Tensor, y: Tensor) -> Tensor:
    x.data = y
    return x


def _put(x: Tensor, place: Anything, y: Anything) -> Tensor:
    x[place] = y
    return x


FUNCTIONS: tuple[Callable[[Tensor], Anything], ...] = (
    # Data that Python gets.
    lambda x: x + x.tolist()[0],
    lambda x: x * sum((x * 2).tolist()),
    lambda x: x + float(x.numpy()[0]),
    lambda x: x + torch.from_numpy(x.numpy() * 2),
    lambda x: torch.from_numpy(np.asarray(x)) + 1,
    lambda x: torch.as_tensor(np.sin(x)),
    lambda x: x * np.ones(4, dtype=np.float32),
    lambda x: x.clone().apply_(lambda each: each * 2),
    lambda x: x + x[0].item(),
    lambda x: x + 1 if x[0] > x[1] else x - 1,
    lambda x: x[x.argmax() :].sum(),
    lambda x: _put(x.clone(), x.argmax(), 9.0),
    # Data that another tensor gets.
    lambda x: torch.tensor([x[0], 2.0]) + 1,
    lambda x: torch.tensor(list(x)),
    lambda x: torch.tensor(x) + 1,
    lambda x: torch.as_tensor([x[1], x[0]]),
    lambda x: torch.asarray([x[1], x[0]]),
    lambda x: x.new([x[1], x[0]]),
    lambda x: x[[x.argmax(), x.argmin()]],
    lambda x: _put(x.clone(), [x.argmax()], 9.0),
    lambda x: torch.sparse_coo_tensor(PLACES, [x[0], x[1]]).to_dense(),
    lambda x: x.new_tensor([x[0], 1.0]),
    lambda x: x.new_tensor(x * 2),
    lambda x: torch.Tensor(x) + 1,
    lambda x: nn.Parameter(x) * 2,
    lambda x: nn.Parameter(x * 3) * 2,
    lambda x: nn.Buffer(x * 3) * 2,
    lambda x: x.as_subclass(nn.Parameter) + 1,
    lambda x: torch.utils.dlpack.from_dlpack(x * 2) + 1,
    lambda x: x.data + 1,
    lambda x: _set(x + 1, x * 2) + 1,
    lambda x: _set(x + 1, STATE["four"]) + x,
    lambda x: _set(STATE["one"], x * 2) + x,
    lambda x: torch.ops.aten.set_(x * 2, x * 3) + 1,
    lambda x: torch.tensor_split(x, x.argmax()[None])[0].sum(),
    lambda x: x.tensor_split(x.argmax()[None])[0].sum(),
    # What is there beside the inputs.
    lambda x: x + STATE["one"].add_(torch.tensor(1.0)),
    lambda x: x + STATE["one"].add_(1),
    lambda x: x + torch.add(torch.tensor(1.0), 1, out=STATE["one"]),
    lambda x: (STATE["four"].add_(x), STATE["view"] + 1),
    lambda x: (STATE["view"].mul_(2), STATE["four"] + x),
    lambda x: x * (torch.tensor(2.0) * STATE["one"].sum()).item(),
    lambda x: x * torch.tensor([torch.tensor(2.0), 1.0]).tolist()[0],
    # Inputs that are written, and results in their memory.
    lambda x: (x.add_(1), x[1:], x.view(2, 2)),
    lambda x: (x.t_(), x.unsqueeze_(0), x * 2),
    lambda x: x.as_strided((3, 2), (1, 1)) * 2,
    lambda x: x.expand(2, 4)[0].mul_(2),
    lambda x: torch.add(x[:2], 1, out=x[2:]),
    lambda x: [x, {"a": (x, x + 1)}],
    lambda x: x[:0].sum() + x[0].exp_(),
    lambda x: torch.complex(x, x).conj().imag.mul_(2),
    lambda x: torch.view_as_real(torch.complex(x, x).conj().resolve_conj()),
    # Modes, derivatives and random numbers.
    lambda x: F.dropout(x) + torch.rand_like(x),
    lambda x: torch.inference_mode()(lambda: x.view(4) + 1)(),
    lambda x: torch.no_grad()(lambda: x.clone().exp_())(),
    lambda x: torch.autocast("cpu", torch.bfloat16)(lambda: x[None] @ x)(),
    lambda x: torch.vmap(lambda each: each * 2 + x)(x),
    lambda x: torch.func.grad(lambda y: (y.exp() * y).sum())(x),
    lambda x: torch.func.jacrev(torch.sigmoid)(x),
    lambda x: torch.func.hessian(lambda y: (y**3).sum())(x),
    lambda x: torch.func.functionalize(lambda y: y[1:].add_(1))(x),
)
"""What a program can do with a tensor of four numbers."""


def other(value: Anything) -> Anything:
    """The same arguments with the numbers of each tensor in another order."""

    def turn(part: Anything) -> Anything:
        if not isinstance(part, Tensor) or part.layout != torch.strided:
            return part
        return part.flip([*range(part.dim())])

    return pytree.tree_map(turn, value)


Seen: TypeAlias = list[tuple[str, Tensor | None]]
"""Values in words, and the numbers of tensors."""


def seen(call: Function, given: Anything) -> Seen | None:
    """What can be seen of a call; None if it raised."""
    state = renewed()
    torch.manual_seed(0)
    try:
        result = call(*given)
    except Exception:  # an operator may raise anything
        return None
    found: Seen = [(str(int(torch.get_rng_state().sum())), None)]
    for one in pytree.tree_leaves((result, given, state)):
        if isinstance(one, Tensor) and one.layout == torch.strided:
            words = f"{one.dtype} {one.stride()}"
            found.append((words, one.detach().clone().resolve_neg()))
        else:
            found.append((repr(one), None))
    return found


def alike(ours: Seen, theirs: Seen) -> bool:
    """Whether the same was seen twice, apart from rounding."""
    return [words for words, _ in ours] == [
        words for words, _ in theirs
    ] and all(
        torch.allclose(one, other, rtol=1e-3, atol=1e-4, equal_nan=True)
        for (_, one), (_, other) in zip(ours, theirs, strict=True)
        if one is not None and other is not None
    )


NUMBERS: tuple[Anything, ...] = (
    *(0, 1, 3, True, False, 1.0, 2.5, 0.0, -0.0, float("nan"), 1j, None, "a"),
    *("sum", "mean", b"a", torch.float64, torch.float32, torch.device("cpu")),
    *(slice(1, None), slice(0, 2), np.float64(2.5), range(2), ...),
)
"""What is among the inputs of functions beside tensors."""


def number(rng: random.Random) -> tuple[Function, list[Anything]]:
    """A function of a tensor and other values, and these, nested or not."""
    count = rng.choice((1, 2, 2, 3))
    values = [rng.choice(NUMBERS) for _ in range(count)]

    def f(x: Tensor, *others: Anything) -> Anything:
        total = x * 1
        for other in pytree.tree_leaves(others):
            total = used(total, x, other)
        return total

    if rng.random() < 0.4:
        nested: Anything = {"a": values[0], "b": values[1:]}
        return f, [nested]
    return f, values


def used(total: Tensor, x: Tensor, other: Anything) -> Tensor:
    """Another tensor for each value."""
    if isinstance(other, Tensor):
        return total + other * 2
    if other is None or isinstance(other, bool):
        return total - (3 if other is None else other) * x.sum()
    if isinstance(other, int | float | complex):
        kind = 7 if isinstance(other, int) else 1
        return total * other + kind / (x + 10) + math.copysign(1.0, other.real)
    if isinstance(other, torch.dtype):
        return (total * 1.3).to(other)
    if isinstance(other, slice | range):
        return (
            total
            + x[[*range(4)[other]] if isinstance(other, slice) else [0]].sum()
        )
    method = {"sum": Tensor.sum, "mean": Tensor.mean}.get(
        str(other), Tensor.neg
    )
    return total + method(x)


def numbers(make: Function, rng: random.Random) -> str:
    """What is wrong about a graph that is called with another number."""
    f, values = number(rng)
    x = torch.tensor([1.5, -2.0, 3.0, 0.25])
    mode = rng.choice(("real", "fake"))
    if rng.random() < 0.2:
        values.append(x)
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            gm = make(f, tracing_mode=mode)(x, *values)
    except Exception:
        return ""
    if any("are one tensor" in str(each.message) for each in told):
        return ""
    leaves, spec = pytree.tree_flatten(values)
    found = []
    for _ in range(4):
        others = [rng.choice((leaf, rng.choice(NUMBERS))) for leaf in leaves]
        given = x.flip(0), *pytree.tree_unflatten(others, spec)
        eager, graph = seen(f, given), seen(gm, given)
        same = repr(others) == repr(leaves)
        if eager is not None and graph is None and same:
            found.append(f"{values} are refused")
        elif eager and graph and not alike(graph, eager):
            found.append(f"{values}, then {others}: {graph}, not {eager}")
    return "; ".join(found[:1])


def wrong(make: Function, f: Function, args: Anything, mode: str) -> str:
    """How a captured function differs from the function; "" if it does not."""

    def capture(*given: Anything) -> None:
        made.append(make(f, tracing_mode=mode)(*given))

    def run(*given: Anything) -> None:
        f(*given)

    made: list[Anything] = []
    after = seen(capture, copied(args))
    if after is None:  # refused
        return ""
    computes = mode == "real"
    expected = seen(run if computes else lambda *given: None, copied(args))
    if expected is not None and not alike(after, expected):
        return f"the capture has done {after}\ninstead of {expected}"
    turned = other(args)
    eager, graph = seen(f, copied(turned)), seen(made[0], copied(turned))
    if eager is None or graph is None or alike(graph, eager):
        return ""
    return f"{graph}\ninstead of {eager}\nin {made[0].code}"


# -- torch's samples ---------------------------------------------------------


def operators() -> list[tuple[str, Function]]:
    """The operators of OpInfo, and how to find their samples."""
    table = from_torchs_tests(
        "torch.testing._internal.common_methods_invocations", "op_db"
    )
    # What `empty` holds is anything.
    return [
        (info.name, functools.partial(samples_of, info))
        for info in table
        if "empty" not in info.name
    ]


def samples_of(info: Anything) -> Iterator[tuple[Function, Anything]]:
    """Calls of an operator as functions of tensors, with these."""
    code = getattr(info.op, "__code__", None)
    if "wrapper_set_seed" in getattr(code, "co_names", ()):
        return  # no operator sets a seed
    dtypes = [d for d in DTYPES if d in info.supported_dtypes("cpu")]
    for dtype in dtypes[:1]:
        # Not `sample_inputs`, which inspects the stack each time.
        samples = info.sample_inputs_func(info, "cpu", dtype, False)
        for sample in islice(samples, 3):
            given = (sample.input, sample.args, sample.kwargs)
            leaves, spec = pytree.tree_flatten(given)
            places = [
                place
                for place, leaf in enumerate(leaves)
                if isinstance(leaf, Tensor)
            ]

            def call(
                *tensors: Tensor,
                leaves: list[Anything] = leaves,
                spec: Anything = spec,
                places: list[int] = places,
            ) -> Anything:
                for place, tensor in zip(places, tensors, strict=True):
                    leaves[place] = tensor
                one, args, kwargs = pytree.tree_unflatten(leaves, spec)
                return info.op(one, *args, **kwargs)

            yield call, tuple([leaves[place] for place in places])


def functions() -> Iterator[tuple[Function, Anything]]:
    """The functions of `FUNCTIONS`, with four numbers."""
    for function in FUNCTIONS:
        yield function, (torch.tensor([1.5, -2.0, 3.0, 0.25]),)


# -- the part ----------------------------------------------------------------

GRADS = (torch.enable_grad, torch.no_grad, torch.inference_mode)
"""Where autograd is off, composite operators arrive undivided."""


def run(seed: int, cases: int) -> Iterator[Outcome]:
    """Capture `cases` operators, and all functions."""
    warnings.simplefilter("ignore")
    logging.getLogger("torch._subclasses.fake_tensor").disabled = True
    for case in range(min(cases * 5, 2_000)):
        key = seed * 1_000_000 + case
        both = [
            numbers(make, random.Random(key))
            for make in (make_fx, torchs_make_fx)
        ]
        yield Outcome(f"numbers {key}", *both)
    rng = random.Random(seed)
    chosen = operators()
    rng.shuffle(chosen)
    for name, samples in [("functions", functions), *chosen[:cases]]:
        ours: set[str] = set()
        theirs: set[str] = set()
        grad = rng.choice(GRADS) if samples is not functions else GRADS[0]
        with contextlib.suppress(NotImplementedError), grad():
            for f, args in samples():
                for mode in ("real", "fake"):
                    ours.add(wrong(make_fx, f, args, mode))
                    theirs.add(wrong(torchs_make_fx, f, args, mode))
        yield Outcome(name, *("".join(sorted(one)) for one in (ours, theirs)))


READING = "fx/capture/unsupported.py"
CONSTANTS = "fx/capture/unsupported.py"

PART = Part(
    "capturing",
    "functions and what make_fx captured, on other inputs",
    run,
    share=12,
    long=10_000,
    plants=(
        Plant(
            "fx/experimental/proxy_tensor.py",
            "        if not isinstance(value, torch.Tensor):\n",
            "        if False:\n",
            "a graph ignores the numbers that it is called with",
        ),
        Plant(
            "fx/experimental/proxy_tensor.py",
            "elif (other := first.setdefault(id(value), node)) is not node:",
            "elif (other := node) is not node:",
            "one tensor that is given twice is not told of",
        ),
        Plant(
            "fx/tracing/inputs.py",
            "    if type(value) is not type(constant) or not same:\n",
            "    if not same:\n",
            "True is taken for 1, and 1 for 1.0",
        ),
        Plant(
            "fx/tracing/inputs.py",
            "repr(value) == repr(constant) if signed else value == constant",
            "value == constant",
            "-0.0 is taken for 0.0",
        ),
        Plant(
            READING,
            "map_ numpy tolist __array__",
            "map_ numpy __array__",
            "the numbers of one run are in the graph",
        ),
        Plant(
            READING,
            "asarray tensor sparse",
            "asarray sparse",
            "a tensor that is made of others keeps their data of one run",
        ),
        Plant(
            READING,
            '    vars(torch.Tensor.__base__)["data"].__set__: lambda',
            "    None: lambda",
            "a tensor gets other data, and the graph has the old",
        ),
        Plant(
            READING,
            "if maker is not None:",
            "if False:",
            "a parameter in the memory of an input is taken for a constant",
        ),
        Plant(
            CONSTANTS,
            "if leaves and all(id(leaf) in self for leaf in leaves)",
            "if any(id(leaf) in self for leaf in leaves)",
            "a tensor of the function is written twice",
        ),
    ),
)
