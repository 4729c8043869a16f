"""Checks int8 weights: what the linears compute, and what is known of it."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fx._symbolic_trace import symbolic_trace
from fx.graph_module import GraphModule
from fx.interpreter import Interpreter
from fx.node import Node
from fx.tracing.tracer import Tracer
from fx.use_def.values import AnyValue
from stages.capstones.board import Board, Program, Row, timed
from stages.capstones.int8.programs import ALONE, CASES, WIDTH
from stages.checking import Mistake, check, same
from tests.zoo import ZOO, Network, borrow

Tensors: TypeAlias = tuple[Tensor, ...]

LOOSE: Final = 1.5
"""How many times as large as needed a bound may be."""

NAMES: Final = ("gpt2", "siamese", "dlrm")
NETWORKS: Final = [one for one in ZOO if one.name in NAMES]


class Linear(NamedTuple):
    """What a linear of the given graph computes with.

    Attributes:
        weight: the weight itself, in its own dtype.
        input: the value it is applied to.
        bias: in float64; zeros if there is none.
    """

    weight: Tensor
    input: Tensor
    bias: Tensor


class Exact:
    """A linear's result without any rounding to speak of, and its size.

    Args:
        linear: what is computed.

    Attributes:
        result: in float64.
        sizes: the sum of the sizes of what was added up for each output.
        needed: the bound that a scale for each channel gives.
        peaks: the largest weight of each channel.
    """

    def __init__(self, linear: Linear) -> None:
        x, weight = linear.input.double(), linear.weight.double()
        self.result = F.linear(x, weight, linear.bias)
        x, weight = x.abs(), weight.abs()
        self.sizes = F.linear(x, weight, linear.bias.abs())
        self.peaks = weight.amax(1)
        last = torch.finfo(linear.weight.dtype)
        own = min(last.eps, torch.finfo(torch.float32).eps)
        steps = (weight.shape[1] + 8) * own + 2 * last.eps
        rounding = steps * self.sizes + last.smallest_normal * last.eps
        halves = self.peaks / 254
        self.needed = x.sum(-1, keepdim=True) * halves + rounding


class Running(Interpreter):
    """Runs the learner's graph, and keeps the values of some nodes."""

    def __init__(self, gm: GraphModule, names: Sequence[str]) -> None:
        super().__init__(gm)
        self.kept: dict[str, AnyValue] = dict.fromkeys(names)

    def run_node(self, n: Node) -> AnyValue:
        """Run a node.

        Args:
            n: the node.
        """
        value = super().run_node(n)
        if n.name in self.kept:
            self.kept[n.name] = value
        return value


class Rest(Interpreter):
    """Runs the given graph, with the learner's results for its linears."""

    def __init__(self, gm: GraphModule, results: dict[str, AnyValue]) -> None:
        super().__init__(gm)
        self.results = results
        self.linears: dict[str, Linear] = {}
        self.others: dict[str, AnyValue] = {}

    def run_node(self, n: Node) -> AnyValue:
        """Run a node, or take the learner's result.

        Args:
            n: the node.
        """
        if n.name not in self.results:
            value = self.others[n.name] = super().run_node(n)
            return value
        given: dict[str, AnyValue] = {"bias": None}
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        if n.op == "call_module":
            module = self.fetch_attr(str(n.target))
            given |= {"weight": module.weight, "bias": module.bias}
            args = args[:1]
        given |= kwargs
        given |= zip(("input", "weight", "bias"), args, strict=False)
        weight, bias = given["weight"], given["bias"]
        none = torch.zeros(len(weight), dtype=torch.float64)
        bias = none if bias is None else bias.detach().double()
        self.linears[n.name] = Linear(weight.detach(), given["input"], bias)
        return self.results[n.name]


class Leaves(Tracer):
    """Does not look into linears of any type."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Whether to record a call of a module as one node.

        Args:
            m: the module.
            module_qualified_name: its path.
        """
        known = isinstance(m, nn.Linear)
        return known or super().is_leaf_module(m, module_qualified_name)


class _Holdings(pickle.Pickler):
    """Finds the tensors that a module holds, wherever it holds them."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), protocol=4)
        self.found: list[Tensor] = []

    def persistent_id(self, obj: AnyValue) -> str | None:
        """Note a tensor.

        Args:
            obj: whatever is pickled.
        """
        if isinstance(obj, Tensor):
            self.found.append(obj)
            return "a tensor"
        return None


def held(module: nn.Module) -> list[Tensor]:
    """A tensor for each storage that a module holds.

    Raises:
        Mistake: it cannot be pickled.
    """
    pickler = _Holdings()
    try:
        pickler.dump(module)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise Mistake(f"The result cannot be saved: {error}") from error
    found = {one.untyped_storage().data_ptr(): one for one in pickler.found}
    return list(found.values())


def size(tensors: Sequence[Tensor]) -> int:
    """How many bytes tensors of different storages hold."""
    return sum(one.untyped_storage().nbytes() for one in tensors)


def _state(gm: GraphModule) -> dict[str, object]:
    """What must be as before, but for the tensors' values."""
    return {
        "graph": str(gm.graph),
        "tensors": [(name, id(one)) for name, one in _tensors_of(gm)],
        "modules": [
            (name, id(one), one.training) for name, one in gm.named_modules()
        ],
    }


def _tensors_of(gm: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """The parameters and buffers of a module, with their names."""
    yield from gm.named_parameters(remove_duplicate=False)
    yield from gm.named_buffers(remove_duplicate=False)


def quantised(program: Program, gm: GraphModule) -> GraphModule:
    """The learner's version of a module, which itself stays as it is."""
    before = _state(gm)
    values = [(one, one.detach().clone()) for _, one in _tensors_of(gm)]
    small: object = program.quantise(gm)
    check(
        isinstance(small, GraphModule) and small is not gm,
        f"`quantise` must return another GraphModule, not "
        f"{'the given one' if small is gm else type(small).__name__}.",
    )
    assert isinstance(small, GraphModule)
    for what, known in before.items():
        same(
            _state(gm)[what],
            known,
            f"The module that is given must stay as it is, and its {what} "
            f"changed: what the result shares with it must not be replaced.",
        )
    check(
        all(torch.equal(now, then) for now, then in values),
        "The module that is given must stay as it is; its tensors changed.",
    )
    same(small.training, gm.training, "The result is in another mode.")
    try:
        small.graph.lint()
    except RuntimeError as error:
        told, _, near = str(error).partition("\n")
        raise Mistake(f"The graph of the result: {told}.", near) from error
    return small


def checked(
    program: Program,
    gm: GraphModule,
    inputs: Tensors,
    names: Sequence[str],
    stays: dict[str, str] | None = None,
) -> GraphModule:
    """The learner's version of a module."""
    small = quantised(program, gm)
    stays = stays or {}
    running = Running(small, [*names, *stays])
    torch.manual_seed(0)
    try:
        with torch.no_grad():
            result = running.run(*inputs)
    except Exception as error:
        told = str(error).partition("\n")[0]
        raise Mistake(
            f"The result cannot be run: {type(error).__name__}: {told}",
            str(small.graph),
        ) from error
    results = {name: running.kept[name] for name in names}
    for name, value in results.items():
        check(
            isinstance(value, Tensor),
            f"In your graph, the node that has the linear's result must be "
            f"named {name}, as in the graph that is given.",
            picture=str(small.graph),
        )
    rest = Rest(gm, results)
    torch.manual_seed(0)
    with torch.no_grad():
        wanted = rest.run(*inputs)
    for name, reason in stays.items():
        check(
            _equal(running.kept[name], rest.others[name]),
            f"{name} must stay in float: {reason}.",
        )
    small_enough(gm, small, [one.weight for one in rest.linears.values()])
    for name, one in rest.linears.items():
        within(program, small, name, one, results[name])
    check(
        _equal(result, wanted),
        "Given the results of your linears, the rest of the program computes "
        "something else than before.",
        picture=str(small.graph),
    )
    return small


def _equal(one: AnyValue, other: AnyValue) -> bool:
    """Whether two values, or those in two tuples, are the same numbers."""
    if isinstance(one, (tuple, list)):
        return all(map(_equal, one, other))
    if isinstance(one, Tensor):
        return torch.equal(one, other)
    return bool(one == other)


def within(
    program: Program, small: GraphModule, name: str, one: Linear, found: Tensor
) -> None:
    """Check a linear's result, and its bound."""
    exact = Exact(one)
    with torch.no_grad():
        limit: AnyValue = program.bound(small, name, one.input.detach())
    shape, dtype = exact.result.shape, one.weight.dtype
    check(
        found.shape == shape and found.dtype == dtype,
        f"{name} must be {dtype} of {list(shape)}, and is {found.dtype} of "
        f"{list(found.shape)}.",
    )
    check(
        isinstance(limit, Tensor) and limit.shape == shape,
        f"The bound of {name} must be a tensor with a number for each output, "
        f"{list(shape)}.",
    )
    error = (found.double() - exact.result).abs()
    own = one.weight.shape[1] * torch.finfo(torch.float64).eps * exact.sizes
    _compared(
        error - own,
        limit.double(),
        f"{name} is off by {{:.9g}} at {{}}, and its bound says at most "
        f"{{:.9g}}. A bound must hold for every input.",
    )
    channels = ", ".join(f"{peak:.3g}" for peak in exact.peaks[:16].tolist())
    _compared(
        limit.double(),
        LOOSE * exact.needed,
        f"The bound of {name} is {{:.4g}} at {{}}, and {LOOSE} times what is "
        f"needed there is {{:.4g}}: the last dimension counts the channels, "
        f"each of which needs a scale for its own largest weight "
        f"({channels}), in float32 at least, and rounding to the nearest.",
    )


def _compared(one: Tensor, limit: Tensor, sentence: str) -> None:
    """Check that no element is over its limit, or not a number.

    The sentence is formatted with the element, its place and its limit.
    """
    over = torch.nan_to_num(one - limit, nan=torch.inf)
    if over.numel() and over.max() > 0:
        place = tuple(
            int(i) for i in torch.unravel_index(over.argmax(), over.shape)
        )
        raise Mistake(sentence.format(one[place], [*place], limit[place]))


def small_enough(
    gm: GraphModule, small: GraphModule, weights: Sequence[Tensor]
) -> None:
    """Check how many bytes the result holds, after it has been run."""
    distinct = {one.data_ptr(): one for one in weights}.values()
    now = held(small)
    check(
        all(one.grad_fn is None for one in now),
        "The result holds a tensor that autograd has computed, and with it "
        "the float weight: make int8 weights and scales of `weight.detach()`.",
    )
    elements = sum(one.numel() for one in distinct)
    ints = [one for one in now if one.dtype == torch.int8]
    check(
        size(ints) >= elements,
        f"The result holds {size(ints)} numbers of int8, and the weights of "
        f"its linears are {elements}.",
    )
    storages = {one.untyped_storage().data_ptr(): one for one in distinct}
    most = size(held(gm)) - size(list(storages.values()))
    most += sum(one.numel() + 8 * len(one) for one in distinct)
    lines = [f"{one.dtype}{list(one.shape)}" for one in now[:40]]
    check(
        size(now) <= most,
        f"After a run, the result holds {size(now):,} bytes, and {most:,} are "
        f"enough: a byte for each weight, eight for each channel, and what is "
        f"not a linear's weight. Float weights must go, and a weight that is "
        f"shared must be shared in int8, too.",
        picture="it holds " + ", ".join(lines),
    )


def _built(name: str, seed: int) -> GraphModule:
    """The network of a case, with other weights for each seed."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = CASES[name].build()
        return GraphModule(model, Leaves().trace(model))


def _inputs(name: str) -> Tensors:
    """Inputs for a case."""
    chance = torch.Generator().manual_seed(2)
    shape = (CASES[name].inputs, WIDTH, WIDTH)
    return tuple(torch.randn(shape, generator=chance))


@pytest.mark.parametrize("name", CASES)
def test_a_small_network(name: str, yours: Program) -> None:
    _, _, stays, _ = case = CASES[name]
    gm = _built(name, 0)
    gm.train(name == "chain")
    checked(yours, gm, _inputs(name), case.linears.split(), stays)


@pytest.mark.parametrize("name", ALONE)
def test_the_worst_input(name: str, yours: Program) -> None:
    torch.manual_seed(1)
    linear = ALONE[name]()
    gm = symbolic_trace(nn.Sequential(linear))
    weight = linear.weight.detach()
    x = torch.eye(weight.shape[1], dtype=weight.dtype)
    checked(yours, gm, (x,), ["_0"])
    with torch.no_grad():
        bias = dict(linear.named_parameters()).get("bias", 0)
        changed = (yours.quantise(gm)(x) - bias).T
    signs = torch.where(changed > weight, 1, -1).to(weight.dtype)
    for worst in (signs, -signs, signs * 1000, torch.randn_like(signs)):
        checked(yours, gm, (worst,), ["_0"])


@pytest.mark.parametrize("shape", [(16,), (0, 16), (2, 3, 16), (2, 1, 2, 16)])
def test_inputs_of_other_shapes(shape: Sequence[int], yours: Program) -> None:
    gm = symbolic_trace(nn.Sequential(nn.Linear(16, 5)))
    checked(yours, gm, (torch.ones(*shape),), ["_0"])


@pytest.mark.parametrize("name", ["chain", "functional", "shared"])
def test_copies_and_saved_states(name: str, yours: Program) -> None:
    gm, other = _built(name, 0).eval(), _built(name, 1).eval()
    inputs = _inputs(name)
    small, changed = yours.quantise(gm), yours.quantise(other)
    with torch.no_grad():
        small_enough(gm, small, [])
        wanted = small(*inputs)
        copies = {
            "copy.deepcopy": copy.deepcopy(small),
            "pickle": pickle.loads(pickle.dumps(small)),
        }
        changed(*inputs)
        changed.load_state_dict(small.state_dict())
        copies["load_state_dict"] = changed
        linear = CASES[name].linears.split()[0]
        limit = yours.bound(small, linear, inputs[0])
        for way, one in copies.items():
            check(
                torch.equal(one(*inputs), wanted)
                and torch.equal(yours.bound(one, linear, inputs[0]), limit),
                f"After {way}, the module or its bound is another: int8 "
                f"weights and scales must be in its state, and only there.",
            )
            same(
                size(held(one)),
                size(held(small)),
                f"After {way}, the module holds another number of bytes.",
            )


def test_a_gradient_reaches_the_input(yours: Program) -> None:
    linear = nn.Linear(WIDTH, WIDTH, bias=False)
    x = torch.ones(3, WIDTH, requires_grad=True)
    result = yours.quantise(symbolic_trace(nn.Sequential(linear)))(x)
    check(
        result.requires_grad,
        "The result has no gradient: autograd must see how it is computed.",
    )
    (found,) = torch.autograd.grad(result.sum(), x)
    weight = linear.weight.detach()
    off = (found - weight.sum(0)).abs().max()
    check(
        off <= LOOSE * weight.abs().amax(1).sum() / 254,
        f"The gradient by the input is off by {off:.3g}.",
    )


@pytest.mark.parametrize("network", NETWORKS, ids=lambda one: str(one.name))
def test_a_network(
    network: Network, yours: Program, ours: Program, board: Board
) -> None:
    inputs = network.inputs()
    with borrow(network, training=False) as model, torch.no_grad():
        gm = symbolic_trace(model)
        names = [
            node.name
            for node in gm.graph.find_nodes(op="call_module")
            if type(gm.get_submodule(str(node.target))) is nn.Linear
            and node.name != "lm_head"
        ]
        checked(yours, gm, inputs, names)
        right = gm(*inputs)
        programs = yours.quantise, ours.quantise
        smalls = [quantise(gm) for quantise in programs]
        sizes = [size(held(one)) / size(held(gm)) for one in smalls]
        off = [float((one(*inputs) - right).norm()) for one in smalls]
        errors = [one / float(right.norm()) for one in off]
        making = timed(*(partial(one, gm) for one in programs))
        running = timed(*(partial(one, *inputs) for one in smalls))
    name = network.name
    board.rows += [
        Row(f"{name}, bytes / float", sizes[0], sizes[1], ""),
        Row(f"{name}, error", errors[0], errors[1], ""),
        Row(f"{name}, making it", *making, "ms"),
        Row(f"{name}, running it", *running, "ms"),
    ]
