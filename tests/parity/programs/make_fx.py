"""Stage 08: functions captured as ATen operators, in both libraries."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple, no_type_check

import torch
from torch import nn
from torch.func import functional_call, functionalize, grad, vmap
from torch.nn import functional as F

from tests.parity.harness import Lib, Made, Seen, error, program, show

Inputs = Callable[[], tuple[object, ...]]
"""Makes inputs anew: a captured function may write to them."""


def make_fx(lib: Lib) -> Made:
    """The library's make_fx."""
    return import_module(f"{lib.__name__}.experimental.proxy_tensor").make_fx


def shape(value: object) -> object:
    """What `node.meta["val"]` says, as text."""
    if isinstance(value, list | tuple):
        return [shape(item) for item in value]
    if not isinstance(value, torch.Tensor):
        return str(value)
    if value.layout is not torch.strided:
        return type(value).__name__
    return (
        f"{type(value).__name__} {value.dtype} {tuple(value.shape)} "
        f"{value.stride()} {value.device}"
    )


def without_checks(gm: Made) -> None:
    """Erase the checks of fixed inputs: see `a_number_among_the_inputs`."""
    for node in [*gm.graph.nodes]:
        if "_assert_same" in str(node.target):
            gm.graph.erase_node(node)
    gm.recompile()


def captured(
    inputs: Inputs,
    *,
    within: Callable[[Any], Any] = lambda f: f,
    newest: bool = False,
    detaches: bool = False,
    **options: Any,
) -> Callable[[Callable[..., Any]], Callable[[Lib], Seen]]:
    """Register a program that captures a function and runs the graph.

    Args:
        inputs: makes the sample inputs.
        within: wraps the function before it is captured.
        newest: an older torch.fx than the newest captures something else.
        detaches: torch or the function calls `detach`, which the newest
            records as `alias` if it is given no table.  A second program
            captures the function with an empty table.
        **options: for make_fx.
    """

    def register(f: Callable[..., Any]) -> Callable[[Lib], Seen]:
        def run(lib: Lib, **more: Any) -> Seen:
            torch.manual_seed(0)
            gm = make_fx(lib)(within(f), **options, **more)(*inputs())
            without_checks(gm)
            values = {
                node.name: shape(node.meta.get("val"))
                for node in gm.graph.nodes
            }
            return [*show(gm, *inputs()), values]

        def as_it_is(lib: Lib) -> Seen:
            return run(lib, decomposition_table={})

        run.__name__ = f.__name__
        as_it_is.__name__ = f"{f.__name__}_with_an_empty_table"
        if detaches:
            program()(as_it_is)
        return program(newest=newest or detaches)(run)

    return register


def sums(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f`, and the sum of its results."""
    return lambda x: f(x).sum()


def x() -> tuple[torch.Tensor]:
    """One tensor."""
    return (torch.arange(12.0).reshape(3, 4) - 5,)


def xy() -> tuple[torch.Tensor, torch.Tensor]:
    """Two tensors."""
    return *x(), torch.linspace(-1, 1, 12).reshape(3, 4)


def image() -> tuple[torch.Tensor]:
    """A batch of pictures."""
    return (torch.linspace(-1, 1, 2 * 3 * 6 * 6).reshape(2, 3, 6, 6),)


CLOSED_OVER = torch.tensor([1.0, 2.0, 3.0, 4.0])

# -- operators -------------------------------------------------------------


@captured(x)
@no_type_check
def numbers_are_constants(x):
    return (x + 1) * 2.5 - 3


@captured(x)
@no_type_check
def factories(x):
    return x + torch.ones(3, 4) + torch.zeros_like(x) + torch.arange(4)


@captured(x)
@no_type_check
def tensors_from_python_numbers(x):
    return x + torch.tensor([1.0, 2.0, 3.0, 4.0]) * torch.tensor(2)


@captured(x)
@no_type_check
def tensors_that_are_closed_over(x):
    return x + CLOSED_OVER * CLOSED_OVER


@captured(x)
@no_type_check
def the_number_in_a_constant(x):
    two = torch.tensor(2.0)
    three = two.add_(1).clone()
    return x * three.item() if three > 2 else x


@captured(x)
@no_type_check
def writes(x):
    x = x.clone()
    x[0] = 1
    x[:, 1] += 2
    x.t().mul_(3)
    return x


@captured(x)
@no_type_check
def writes_to_an_input(x):
    x.add_(1)
    return x * 2


@captured(x)
@no_type_check
def results_into_a_given_tensor(x):
    out = torch.empty(3, 4)
    torch.add(x, 1, out=out)
    return out


@captured(x, detaches=True)
@no_type_check
def detached(x):
    return x.detach() + x.data


@captured(x)
@no_type_check
def random_numbers(x):
    return F.dropout(x, 0.5) + torch.rand_like(x) + torch.randn(4)


@program()
def generators_of_random_numbers(lib: Lib) -> Seen:
    generator = torch.Generator().manual_seed(3)
    gm = make_fx(lib)(lambda x: x + torch.randn(4, generator=generator))(*x())
    return show(gm, *x())


# -- several results -------------------------------------------------------


@captured(x)
@no_type_check
def unbound(x):
    return [row * 2 for row in x.unbind(0)] + list(x.chunk(3))


@captured(x)
@no_type_check
def named_results(x):
    top = x.max(1)
    return top.values + torch.topk(x, 2).indices.sum(1), x.sort().values


@captured(x)
@no_type_check
def results_that_are_none(x):
    return F.layer_norm(x, (4,)), F.group_norm(x.view(3, 4, 1), 2)


# -- inputs and outputs ----------------------------------------------------


class Pair(NamedTuple):
    """A named tuple."""

    first: object
    second: object


@captured(lambda: ({"a": x()[0], "b": [x()[0], x()[0] * 2]}, x()[0]))
@no_type_check
def nested_inputs(tree, y):
    return tree["a"] + tree["b"][1] * y


@captured(lambda: ((x()[0], x()[0] + 1), 3), newest=True)
@no_type_check
def nested_inputs_and_outputs(pair, n):
    return {"sum": pair[0] + pair[1], "rest": (None, n, [pair[0] * n])}


@captured(x)
@no_type_check
def nested_outputs(x):
    return {"a": x + 1, "b": (x, None, 3, [x * 2, "text"])}


@captured(x)
@no_type_check
def a_named_tuple(x):
    return Pair(x + 1, (x, 2))


@captured(lambda: (*x(), 3, None), newest=True)
@no_type_check
def inputs_that_are_no_tensors(x, n, nothing):
    return x * n


@captured(lambda: (*x(), 2.0), newest=True)
@no_type_check
def parameters_with_defaults(x, y=2.0):
    return x * y


@captured(xy)
@no_type_check
def any_number_of_inputs(*tensors):
    return sum(tensors)


@captured(xy)
@no_type_check
def unused_inputs(x, y):
    return y


@program()
def a_tensor_given_twice(lib: Lib) -> Seen:
    (same,) = x()
    return show(make_fx(lib)(lambda x, y: x + y)(same, same), same, same)


@captured(lambda: ())
@no_type_check
def no_inputs():
    return torch.ones(2) + 1, CLOSED_OVER


@captured(xy, within=lambda f: functools.partial(f, scale=2))
@no_type_check
def partial_functions(x, y, scale):
    return x + y * scale


# -- torch.func ------------------------------------------------------------


@captured(x, within=functionalize)
@no_type_check
def functionalized_writes(x):
    y = x.clone()
    y.add_(1)
    y.diagonal().fill_(0)
    return y


@captured(xy, within=functionalize)
@no_type_check
def functionalized_views(x, y):
    z = x * 2
    z[0] = 1
    z[:, 1:3].mul_(2)
    z.select(1, 0).copy_(y[:, 0])
    first, second = z.split(2, 1)
    first.add_(second)
    z.as_strided((2,), (1,), 3).zero_()
    return z, first


@captured(x, within=lambda f: functionalize(f, remove="mutations_and_views"))
@no_type_check
def functionalized_without_views(x):
    y = x.clone()
    y.view(-1)[1:3].add_(1)
    return y.t()


@captured(x, within=grad)
@no_type_check
def gradients(x):
    return (x.sin() * 2).sum()


@captured(x, within=vmap)
@no_type_check
def batched(row):
    return row.sin() @ row


@captured(lambda: (torch.ones(3),), within=torch.func.hessian)
@no_type_check
def hessians(v):
    return (v**3).sum()


# -- networks --------------------------------------------------------------


def network() -> nn.Sequential:
    """A small network, the same each time."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2))


NET = network()


@captured(lambda: (dict(network().named_parameters()), *x()), detaches=True)
@no_type_check
def forward_and_backward(parameters, x):
    loss = functional_call(NET, parameters, (x,)).square().sum()
    return loss, torch.autograd.grad(loss, list(parameters.values()))


@captured(x, detaches=True)
@no_type_check
def backward_into_parameters(x):
    NET.zero_grad()
    NET(x).relu().sum().backward()
    return [parameter.grad for parameter in NET.parameters()]


@captured(
    lambda: (dict(network().named_parameters()), *x()),
    within=grad,
    detaches=True,
)
@no_type_check
def gradients_of_a_network(parameters, x):
    return functional_call(NET, parameters, (x,)).square().mean()


@captured(lambda: (dict(network().named_parameters()), *x()), detaches=True)
@no_type_check
def a_training_step(parameters, x):
    def loss(parameters):
        return functional_call(NET, parameters, (x,)).square().mean()

    grads = grad(loss)(parameters)
    return {k: p - 0.1 * grads[k] for k, p in parameters.items()}


@captured(x)
@no_type_check
def parameters_used_twice(x):
    weight = NET[0].weight
    return x @ weight.T + weight.sum()


@captured(x)
@no_type_check
def without_gradients(x):
    with torch.no_grad():
        return NET(x)


@captured(x)
@no_type_check
def in_inference_mode(x):
    with torch.inference_mode():
        y = F.linear(x, torch.ones(2, 4)).reshape(-1)
        return y.clone() if True else y


CONV = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.MaxPool2d(2))


@captured(image)
@no_type_check
def convolutions(x):
    return functional_call(CONV.eval(), {}, (x,))


ENCODER = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)


@captured(lambda: (x()[0][None],))
@no_type_check
def an_encoder_layer(x):
    with torch.no_grad():
        return ENCODER.eval()(x)


LSTM = nn.LSTM(4, 3)


@captured(x, detaches=True)
@no_type_check
def recurrent_layers(x):
    return LSTM(x)


@captured(x, detaches=True)
@no_type_check
def lower_precision(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return NET(x)


class Doubled(torch.autograd.Function):
    """A function with a backward of its own."""

    @staticmethod
    @no_type_check
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    @no_type_check
    def backward(ctx, *grads):
        (x,) = ctx.saved_tensors
        return grads[0] * 2 + x * 0


@captured(lambda: (x()[0].requires_grad_(),))
@no_type_check
def functions_with_their_own_backward(x):
    return torch.autograd.grad(Doubled.apply(x).sum(), x)


@captured(lambda: (x()[0].requires_grad_(),), detaches=True)
@no_type_check
def checkpoints(x):
    y = torch.utils.checkpoint.checkpoint(
        lambda x: x.sin().cos(), x, use_reentrant=False
    )
    return torch.autograd.grad(y.sum(), x)


# -- decompositions --------------------------------------------------------

aten = torch.ops.aten

TABLE = torch._decomp.get_decompositions(
    [aten.gelu, aten.native_layer_norm, aten.addmm, aten.tanh_backward]
)


@captured(x, decomposition_table=TABLE)
@no_type_check
def decomposed(x):
    return F.gelu(F.layer_norm(x, (4,))) @ torch.ones(4, 4) + NET(x)[:, :1]


@no_type_check
def _log_or_nothing(x):
    return x.log2() * 0.6931 if x.dim() == 1 else NotImplemented


@captured(x, decomposition_table={aten.log.default: _log_or_nothing})
@no_type_check
def decompositions_that_decline(x):
    return x.exp().log() + x[0].square().log()


# -- without data ----------------------------------------------------------


@captured(xy, tracing_mode="fake")
@no_type_check
def fake_inputs(x, y):
    left, right = (x @ y.T).split([1, 2])
    return {"left": left, "right": [right + torch.tensor(2.0), torch.ones(3)]}


@captured(x, within=functionalize, tracing_mode="fake", detaches=True)
@no_type_check
def fake_writes(x):
    x.add_(1)
    y = x.clone()
    y[0] = torch.tensor(3.0).item()
    return y


@captured(
    lambda: (dict(network().named_parameters()), *x()),
    tracing_mode="fake",
    detaches=True,
)
@no_type_check
def fake_backward(parameters, x):
    loss = functional_call(NET, parameters, (x,)).square().sum()
    return torch.autograd.grad(loss, list(parameters.values()))


# -- captures and surroundings ---------------------------------------------


@program()
def a_capture_inside_a_capture(lib: Lib) -> Seen:
    inner: list[Made] = []

    def f(x: torch.Tensor) -> torch.Tensor:
        inner.append(make_fx(lib)(lambda y: y.sin() * 2)(x))
        return x + 1

    outer = make_fx(lib)(f)(*x())
    return [show(outer, *x()), show(inner[0], *x())]


@program()
def a_captured_graph_is_captured_again(lib: Lib) -> Seen:
    gm = make_fx(lib)(lambda x: F.gelu(x) * 2)(*x())
    table = torch._decomp.get_decompositions([aten.gelu])
    return show(make_fx(lib)(gm, table)(*x()), *x())


@program()
def numbers_that_depend_on_data(lib: Lib) -> Seen:
    def branches(x: torch.Tensor) -> torch.Tensor:
        return x if x.sum() > 0 else -x

    def in_one_of_many(x: torch.Tensor) -> torch.Tensor:
        return x * torch.tensor(2.0).expand(3)[0].item()

    return [
        error(lambda: make_fx(lib)(in_one_of_many)(*x())),
        error(lambda: make_fx(lib)(lambda x: x * x.sum().item())(*x())),
        error(lambda: make_fx(lib)(branches)(*x())),
        error(lambda: make_fx(lib)(lambda x: torch.equal(x, x))(*x())),
    ]


def refused(lib: Lib, f: Callable[[Any], Any]) -> str:
    """How the error begins that capturing a function raises."""
    return error(lambda: make_fx(lib)(f)(torch.ones(2)), chars=30)


@program(
    differs="capture-reads",
    ours="RuntimeError: It appears that you're trying",
)
def numbers_in_a_list(lib: Lib) -> Seen:
    return refused(lib, lambda x: x + x.tolist()[0])


@program(
    differs="capture-memory",
    ours="RuntimeError: make_fx met a tensor in the me",
)
def a_parameter_of_an_input(lib: Lib) -> Seen:
    return refused(lib, lambda x: nn.Parameter(x) * 2)


@program(differs="capture-writes", ours=1.0)
def a_count_of_captures(lib: Lib) -> Seen:
    count = torch.zeros(1)
    make_fx(lib)(lambda x: x + count.add_(torch.tensor(1.0)))(torch.ones(2))
    return count.item()


class Binds(nn.Module):
    count: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count = self.count + x
        return self.count * 2


@program(differs="capture-binds", ours=1)
def a_buffer_bound_to_a_result(lib: Lib) -> Seen:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make_fx(lib)(Binds())(torch.ones(2))
    return sum("in the place of count" in str(w.message) for w in caught)


@program(
    differs="capture-fixes-inputs",
    ours=[
        ["mul", "_assert_same"],
        [3.0, 3.0],
        *["AssertionError: i_1 has been specialized to have value 3"] * 2,
    ],
)
def a_number_among_the_inputs(lib: Lib) -> Seen:
    x = torch.ones(2)
    gm = make_fx(lib)(lambda x, i: x * i)(x, 3)
    called = {node.name for node in gm.graph.nodes} & {"mul", "_assert_same"}
    return [
        sorted(called, reverse=True),
        gm(x, 3).tolist(),
        error(lambda: gm(x, 1), chars=40),
        error(lambda: gm(x, 3.0), chars=40),
    ]


@program(differs="capture-one-input", ours=1)
def one_tensor_given_twice(lib: Lib) -> Seen:
    x = torch.ones(2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make_fx(lib)(lambda x, y: x + 2 * y)(x, x)
    return sum("are one tensor in this run" in str(w.message) for w in caught)
