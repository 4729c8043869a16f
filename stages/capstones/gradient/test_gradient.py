"""Checks reverse-mode differentiation of traced graphs, against autograd."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeAlias

import pytest
import torch

from fx.graph import Graph
from fx.graph_module import GraphModule
from fx.proxy import GraphAppendingTracer, Proxy
from fx.use_def.values import AnyValue
from stages.capstones.board import Board, Program, Row, timed
from stages.capstones.gradient.networks import NETWORKS, loss, program_of
from stages.capstones.gradient.variant import Operator, operators
from stages.checking import check, same

Function: TypeAlias = Callable[..., torch.Tensor]
Tensors: TypeAlias = tuple[torch.Tensor, ...]
Case: TypeAlias = tuple[Function, Tensors]

PLAIN: Final = ("torch.", "operator.", "_operator.", "builtins.", "math.")
"""Where the functions are defined that a gradient may call,"""

NOT_PLAIN: Final = ("torch.autograd", "torch.func", "torch._functorch")
"""but for these."""

SIZE_LIMIT: Final = 8
"""How many calls the result may have for each one of the program."""


def tensors(*shapes: Sequence[int]) -> Tensors:
    """Random tensors of some shapes, between a half and one and a half."""
    chance = torch.Generator().manual_seed(len(shapes))
    return tuple(torch.rand(shape, generator=chance) + 0.5 for shape in shapes)


def by_autograd(function: Function, inputs: Tensors) -> Tensors:
    """What torch's own differentiation gives."""
    leaves = [one.clone().requires_grad_() for one in inputs]
    result = function(*leaves)
    found: Sequence[AnyValue] = torch.autograd.grad(
        result, leaves, allow_unused=True
    )
    return tuple(
        torch.zeros_like(leaf) if grad is None else grad
        for leaf, grad in zip(leaves, found, strict=True)
    )


def traced(function: Function, count: int) -> GraphModule:
    """A function of some number of tensors as a graph, each an input."""
    graph = Graph()
    tracer = GraphAppendingTracer(graph)
    names = [f"x{number}" for number in range(count)]
    inputs = [Proxy(graph.placeholder(name), tracer) for name in names]
    result: AnyValue = function(*inputs)
    graph.output(result.node)
    return GraphModule({}, graph)


def calls(gm: GraphModule) -> int:
    """How many operations a graph has."""
    return sum(node.op.startswith("call") for node in gm.graph.nodes)


def checked(
    program: Program,
    function: Function,
    inputs: Tensors,
) -> GraphModule:
    """The program's gradient of a function, compared with autograd's."""
    gm = traced(function, len(inputs))
    before = str(gm.graph)
    with torch.no_grad():
        made: GraphModule = program.gradient(gm, *inputs)
        check(
            isinstance(made, GraphModule),
            f"`gradient` must return a GraphModule, not {type(made).__name__}.",
        )
        same(
            str(gm.graph), before, "The graph that is given must stay as it is."
        )
        made.graph.lint()
        for node in made.graph.nodes:
            home = str(getattr(node.target, "__module__", ""))
            check(
                node.op != "call_function"
                or (
                    (home + ".").startswith(PLAIN)
                    and not home.startswith(NOT_PLAIN)
                ),
                f"{node} calls {node.target}, and the gradient must be a graph "
                f"of plain operators: functions of torch, and of operator.",
            )
    code = f"{gm.code}\n{made.code}"
    _compared(made, function, inputs, code)
    other = tuple(0.75 * one for one in inputs)
    _compared(made, function, other, code)
    return made


def _compared(
    made: GraphModule, function: Function, inputs: Tensors, code: str
) -> None:
    """Compare a gradient with autograd's, for some values of the inputs."""
    with torch.no_grad():
        found = made(*inputs)
    wanted = by_autograd(function, inputs)
    check(
        isinstance(found, tuple) and len(found) == len(inputs),
        f"The result must be a tuple with a gradient for each of the "
        f"{len(inputs)} inputs, in order.",
        picture=code,
    )
    for number, (one, other) in enumerate(zip(found, wanted, strict=True)):
        check(
            isinstance(one, torch.Tensor) and one.shape == other.shape,
            f"Gradient {number} must have the shape of input {number}, "
            f"{list(other.shape)}: where an operand was broadcast, its "
            f"gradient is a sum.",
            picture=f"{one!r}\n{code}",
        )
        check(
            torch.allclose(one, other, rtol=1e-3, atol=1e-4),
            f"Gradient {number} differs from the one that autograd computes.",
            picture=f"yours:    {one}\nexpected: {other}\n{code}",
        )


ONE: Final[dict[str, Case]] = {
    "add": (lambda x, y: torch.sum(x + y), tensors((3,), (3,))),
    "sub": (lambda x, y: torch.sum(x - y), tensors((3,), (3,))),
    "mul": (lambda x, y: torch.sum(x * y), tensors((3,), (3,))),
    "div": (lambda x, y: torch.sum(x / y), tensors((3,), (3,))),
    "neg": (lambda x: torch.sum(-x), tensors((3,))),
    "exp": (lambda x: torch.sum(torch.exp(x)), tensors((3,))),
    "log": (lambda x: torch.sum(torch.log(x)), tensors((3,))),
    "tanh": (lambda x: torch.sum(torch.tanh(x)), tensors((3,))),
    "sigmoid": (lambda x: torch.sum(torch.sigmoid(x)), tensors((3,))),
    "relu": (lambda x: torch.sum(torch.relu(x - 1)), tensors((9,))),
    "the kink of relu": (
        lambda x: torch.sum(torch.relu(x)),
        (torch.tensor([-1.0, 0.0, 1.0]),),
    ),
    "matmul": (lambda x, y: torch.sum(x @ y), tensors((2, 3), (3, 4))),
    "batches": (
        lambda x, y: torch.sum(torch.exp(torch.matmul(x, y))),
        tensors((5, 2, 3), (3, 4)),
    ),
    "numbers": (
        lambda x: torch.sum(2 / (3 - x) + (x * 4 - 1) / 5 + 1),
        tensors((3,)),
    ),
    "broadcast": (
        lambda x, y, z: torch.sum(x * y + z / y - y),
        tensors((2, 3), (3,), (2, 1)),
    ),
    "scalar": (lambda x, y: torch.sum(x * y) * y, tensors((2, 3), ())),
    "transpose": (
        lambda x, y: torch.sum(torch.exp(torch.transpose(x, 0, -1) @ y)),
        tensors((3, 2, 4), (4, 3, 1)),
    ),
    "sum of rows": (
        lambda x: torch.sum(x / torch.sum(x, 1, keepdim=True) * x),
        tensors((2, 3)),
    ),
    "sum, kept": (
        lambda x: torch.sum(torch.exp(torch.sum(x, -1, True)) * x),
        tensors((2, 3)),
    ),
    "used twice": (
        lambda x: torch.sum(x * x + torch.exp(x) * x),
        tensors((3,)),
    ),
    "unused": (lambda x, y: torch.sum(x), tensors((3,), (2, 2))),
    "a constant": (lambda x: torch.sum(x - x), tensors((3,))),
    "itself": (lambda x: x, tensors(())),
}


def called(operator: Operator, values: Sequence[AnyValue]) -> AnyValue:
    """The result of an operator, called in the way that it is written."""
    if operator.is_method:
        return getattr(values[0], operator.name)(*values[1:])
    return getattr(torch, operator.name)(*values)


def variant(seed: int) -> dict[str, Case]:
    """Each operator that a seed adds on its own, and twenty random programs."""
    found: dict[str, Case] = {}
    for one in operators(seed):
        inputs = tensors((2, 3), (3,))[: len(one.operands)]
        found[one.written] = partial(alone, one), inputs
    for number in range(20):
        program = partial(mixed, seed, number)
        found[f"random {number}"] = program, tensors((3, 3), (3,), (3, 1))
    return found


def alone(operator: Operator, *inputs: torch.Tensor) -> torch.Tensor:
    """A program of one operator, whose result is used twice."""
    value = called(operator, inputs)
    return torch.sum(value * value + value)


def mixed(seed: int, number: int, *inputs: torch.Tensor) -> torch.Tensor:
    """A random program of the operators that a seed adds."""
    chance = random.Random(f"{seed} {number}")
    values: list[AnyValue] = [*inputs]
    for _ in range(8):
        one = chance.choice(operators(seed))
        operands = chance.choices(values, k=len(one.operands))
        above = [torch.sigmoid(operand) + 0.5 for operand in operands]
        values.append(called(one, above) - chance.choice(values))
    return torch.sum(values[-1]) + torch.sum(values[-2] * values[-1])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give `test_an_operator` its cases, and those of `--variant`."""
    if "case" in metafunc.fixturenames:
        seed = metafunc.config.getoption("--variant")
        cases = ONE if seed is None else ONE | variant(seed)
        metafunc.parametrize("case", cases.values(), ids=list(cases))


def test_an_operator(case: Case, yours: Program) -> None:
    checked(yours, *case)


def mlp(x: torch.Tensor, *layers: torch.Tensor) -> torch.Tensor:
    """A network of four layers, and the cross entropy of its first class."""
    v, w, b, c = layers
    hidden = torch.relu(torch.tanh(x @ v + b) @ w + c)
    logits = hidden - torch.log(torch.sum(torch.exp(hidden), 1, keepdim=True))
    return -torch.sum(logits * logits) / 10


def attention(
    x: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
) -> torch.Tensor:
    """One head of attention, gated."""
    scores = torch.exp(torch.tanh((x @ q) @ k / 4))
    weights = scores / torch.sum(scores, -1, keepdim=True)
    mixed = weights @ (x @ v)
    return torch.sum(torch.sigmoid(mixed) * mixed)


def deep(depth: int) -> Function:
    """A chain of operations, of which each uses two earlier values."""

    def function(x: torch.Tensor) -> torch.Tensor:
        before, now = x, torch.sigmoid(x)
        for _ in range(depth):
            before, now = now, torch.tanh(now * before + x)
        return torch.sum(now)

    return function


LARGE: Final[dict[str, tuple[Function, Tensors]]] = {
    "mlp": (
        lambda x, v, w, b, c: mlp(x, v, w, b, c),
        tensors((8, 6), (6, 9), (9, 4), (9,), (4,)),
    ),
    "attention": (attention, tensors((5, 4), (4, 4), (4, 5), (4, 4))),
    "deep": (deep(300), tensors((4,))),
}


def compared(
    name: str,
    programs: tuple[Program, Program],
    function: Function,
    inputs: Tensors,
) -> list[Row]:
    """Check the gradient of a network, and measure it beside ours.

    Args:
        name: the network's.
        programs: the learner's, and ours.
        function: the network.
        inputs: what it is called with.
    """
    gm = traced(function, len(inputs))
    made = checked(programs[0], function, inputs)
    best: GraphModule = programs[1].gradient(gm, *inputs)
    most = SIZE_LIMIT * calls(gm)
    check(
        calls(made) <= most,
        f"The gradient has {calls(made)} operations, and the program "
        f"{calls(gm)}: more than {most} means that gradients of one value "
        f"are computed once for each of its uses. Add them up first.",
    )
    making = timed(*(partial(one.gradient, gm, *inputs) for one in programs))
    with torch.no_grad():
        running = timed(partial(made, *inputs), partial(best, *inputs))
    return [
        Row(f"{name}, calls", calls(made), calls(best), ""),
        Row(f"{name}, making it", *making, "ms"),
        Row(f"{name}, running it", *running, "ms"),
    ]


@pytest.mark.parametrize("name", LARGE)
def test_a_network(
    name: str, yours: Program, ours: Program, board: Board
) -> None:
    board.rows += compared(name, (yours, ours), *LARGE[name])


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_of_the_zoo(
    name: str, yours: Program, ours: Program, board: Board
) -> None:
    network = program_of(name)
    function = loss(network.function)
    board.rows += compared(name, (yours, ours), function, network.inputs)


def random_function(seed: int) -> tuple[Function, Tensors]:
    """A program of random operators on tensors that broadcast, its inputs."""

    def function(
        x: torch.Tensor, y: torch.Tensor, z: torch.Tensor
    ) -> torch.Tensor:
        chance = random.Random(seed)
        values: list[AnyValue] = [x, y, z]
        for _ in range(15):
            one, other = chance.choices(values, k=2)
            kind = chance.randrange(8)
            if kind == 0:
                values.append(torch.tanh(one) - other)
            elif kind == 1:
                values.append(torch.sigmoid(one) / torch.exp(torch.tanh(other)))
            elif kind == 2:
                values.append(torch.relu(one - 0.7) * other)
            elif kind == 3:
                values.append(-torch.log(torch.exp(torch.tanh(one)) + 1))
            elif kind == 4:
                wide = one + torch.tanh(x + y)
                values.append(torch.sum(wide, chance.choice((0, 1, -1)), True))
            elif kind == 5:
                wide = torch.tanh(one + x + y)
                values.append(wide @ torch.sigmoid(z + x))
            elif kind == 6:
                values.append(2 / (torch.sigmoid(one) + 1) - one)
            else:
                values.append(torch.tanh(one * other))
        last = chance.choices(values, k=3)
        return torch.sum(values[-1]) + torch.sum(last[0] * last[1] - last[2])

    return function, tensors((3, 3), (3,), (3, 1))


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed: int, yours: Program) -> None:
    checked(yours, *random_function(seed))
