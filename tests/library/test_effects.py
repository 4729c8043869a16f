"""Effects: what each construct does besides computing its value.

`ROWS` is the truth about `fx.effects`, for people too: docs/differences.md
shows it.  It is no opinion: every row that can run is run, once as it is and
once with its node removed, and the world is compared: an impure node must
leave a trace in it, a pure one must not.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import copy
import functools
import gc
import inspect
import io
import math
import operator
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import pytest
import torch
import torch.fx
from torch import nn
from torch.amp.autocast_mode import _exit_autocast
from torch.nn import functional as F  # noqa: N812
from torch.nn.parameter import is_lazy
from torch.nn.utils import parametrizations

from fx.effect_tables import (
    DRAWS_IF,
    FUNCTIONAL_DRAWS_IF,
    UPDATES_STATISTICS_IF,
)
from fx.effects import classify, has_side_effect, is_impure, keeper
from fx.graph import Graph
from fx.node import Node, map_arg

Anything: TypeAlias = Any


class Row(NamedTuple):
    """A construct, its class, and words of the reason.

    `call` is Python over the values of `World`; `self.x` is a submodule.
    `runs` is False where a run cannot show anything, with the reason beside.
    """

    call: str
    kind: str
    reason: str
    runs: bool = True


IMPURE = [
    # operators by their schema
    Row("torch.relu_(z)", "impure", "aten::relu_ writes into `self`"),
    Row("F.relu_(z)", "impure", "aten::relu_ writes into `self`"),
    Row("F.elu_(z)", "impure", "aten::elu_ writes into `self`"),
    Row("torch.add(x, 1, out=y)", "impure", "`out=`"),
    Row("torch.sort(x, out=(y, index))", "impure", "`out=`"),
    Row("aten.add_.Tensor(x, y)", "impure", "aten::add_.Tensor writes"),
    Row("aten.add_(x, y)", "impure", "writes into `self`"),
    Row("aten.add.out(x, y, out=y)", "impure", "writes into `out`"),
    Row("aten.add(x, y, out=y)", "impure", "`out=`"),
    Row("aten.sort(x, values=y, indices=index)", "impure", "`values=`"),
    Row("aten.index_fill_(x, 0, row, 1)", "impure", "writes into `self`"),
    Row("aten.copy_(x, y)", "impure", "writes into `self`"),
    Row("torch.fill_(x, 3)", "impure", "writes into `self`"),
    # functions of torch that are Python
    Row("F.relu(z, inplace=True)", "impure", "`inplace=True`"),
    Row("F.relu(z, True)", "impure", "`inplace=True`"),
    Row("F.hardtanh(z, 0.0, 1.0, True)", "impure", "`inplace=True`"),
    Row("F.rrelu(z, inplace=True)", "impure", "`inplace=True`"),
    Row("F.relu(z, inplace=flag)", "impure", "`inplace=True`"),
    Row("F.normalize(x, out=y)", "impure", "`out=`"),
    Row("F.normalize(x, 2.0, 1, 1e-9, y)", "impure", "`out=`"),
    Row("F.embedding(index, x, max_norm=0.1)", "impure", "`max_norm=`"),
    Row("F.embedding(index, x, None, 0.1)", "impure", "`max_norm=`"),
    Row("F.embedding_bag(rows, x, max_norm=0.1)", "impure", "`max_norm=`"),
    Row("nn.init.zeros_(x)", "impure", "in place, as its name says"),
    # batch norm in training
    Row(
        "F.batch_norm(x, mean, var, training=True)",
        "impure",
        "writes into running_mean and running_var with running_mean and "
        "training set",
    ),
    Row("F.batch_norm(x, mean, var, None, None, flag)", "impure", "running_m"),
    Row("F.instance_norm(image, mean, var)", "impure", "use_input_stats set"),
    Row(
        "torch.batch_norm(x, None, None, mean, var, True, 0.1, 1e-5, False)",
        "impure",
        "aten::batch_norm writes into running_mean",
    ),
    Row(
        "aten.native_batch_norm.default"
        "(x, None, None, mean, var, True, 0.1, 1e-5)",
        "impure",
        "aten::native_batch_norm writes into running_mean",
    ),
    Row(
        "aten._native_batch_norm_legit"
        "(x, None, None, mean, var, True, 0.1, 1e-5)",
        "impure",
        "writes into `running_mean` and `running_var`",
    ),
    Row(
        "torch.batch_norm_update_stats(x, mean, var, 0.1)",
        "impure",
        "writes into running_mean and running_var",
    ),
    # random numbers
    Row("torch.rand(2)", "impure", "draws from the random state"),
    Row("torch.randn(2)", "impure", "draws"),
    Row("torch.randint(9, (2,))", "impure", "draws"),
    Row("torch.randperm(3)", "impure", "draws"),
    Row("torch.rand_like(x)", "impure", "aten::rand_like draws"),
    Row("torch.bernoulli(x)", "impure", "draws"),
    Row("torch.multinomial(x, 1)", "impure", "draws"),
    Row("torch.normal(x, y)", "impure", "draws"),
    Row("torch.poisson(x)", "impure", "draws"),
    Row("aten.rand_like.default(x)", "impure", "aten::rand_like draws"),
    Row("aten.rand_like(x)", "impure", "aten::rand_like draws"),
    Row("torch.dropout(x, 0.5, True)", "impure", "with p and train set"),
    Row("torch.dropout(x, 0.5, flag)", "impure", "with p and train set"),
    Row("aten.dropout.default(x, 0.5, True)", "impure", "aten::dropout draws"),
    Row("aten.native_dropout(x, 0.5, None)", "impure", "draws"),
    Row("F.dropout(x)", "impure", "with p and training set"),
    Row("F.dropout(x, inplace=True)", "impure", "draws"),
    Row("F.dropout(x, 0.5, flag)", "impure", "draws"),
    Row("F.dropout2d(image)", "impure", "draws"),
    Row("F.alpha_dropout(x, training=True)", "impure", "draws"),
    Row("F.feature_alpha_dropout(image, 0.5, True)", "impure", "draws"),
    Row("F.rrelu(z, training=True)", "impure", "with training set"),
    Row("F.gumbel_softmax(x)", "impure", "draws"),
    Row("F.fractional_max_pool2d(image, 2, 2)", "impure", "draws"),
    Row(
        "F.scaled_dot_product_attention(image, image, image, None, 0.5)",
        "impure",
        "with dropout_p set",
    ),
    Row(
        "torch.gru(rnn, hidden, weights, True, 2, 0.5, True, False, False)",
        "impure",
        "aten::gru draws",
    ),
    # functions of Python
    Row("operator.iadd(x, 1)", "impure", "operator.iadd works in place"),
    Row("operator.ior(table, {'b': 2})", "impure", "works in place"),
    Row("operator.setitem(x, 0, 7)", "impure", "operator.setitem works in"),
    Row("operator.delitem(items, 0)", "impure", "operator.delitem works in"),
    Row("operator.iadd(items, [3])", "impure", "works in place"),
    Row("setattr(box, 'size', 2)", "impure", "registered"),
    Row("delattr(box, 'name')", "impure", "registered"),
    Row("next(iterator)", "impure", "registered"),
    Row("print(x)", "impure", "builtins.print is registered"),
    # called for the effect
    Row("torch._assert(False, 'no')", "impure", "torch._assert is registered"),
    Row("torch._assert_async(no)", "impure", "registered"),
    Row("aten._assert_async.msg(no, 'no')", "impure", "registered"),
    Row("aten._assert_tensor_metadata(x, [9])", "impure", "registered"),
    Row(
        "aten.sym_constrain_range.default(5, min=0, max=2)",
        "impure",
        "registered",
    ),
    Row("torch.manual_seed(3)", "impure", "registered"),
    Row("torch.seed()", "impure", "registered"),
    Row("torch.set_rng_state(state)", "impure", "registered"),
    Row("torch.set_default_dtype(torch.float64)", "impure", "registered"),
    Row("torch.set_grad_enabled(False)", "impure", "registered"),
    Row("torch._C._set_grad_enabled(False)", "impure", "registered"),
    Row(
        "torch.amp.autocast_mode._enter_autocast"
        "('cpu', torch.bfloat16, True, False)",
        "impure",
        "registered",
    ),
    Row("torch.autograd.backward(loss)", "impure", "registered"),
    Row("torch.save(x, file)", "impure", "registered"),
    Row(
        "torch.ops.profiler._record_function_enter_new('range', None)",
        "impure",
        "profiler::_record_function_enter_new is registered",
    ),
    Row("register(log)", "impure", "register is registered as having"),
    # operators of libraries
    Row("fxt.scale_(x)", "impure", "fx_effect_tests::scale_ writes into"),
    Row("fxt.scale_.default(x)", "impure", "writes into `x`"),
    Row("scale_op(x)", "impure", "fx_effect_tests::scale_ writes into `x`"),
    Row("fxt.logged(x)", "impure", "fx_effect_tests::logged is registered"),
    Row("fxt.logged.default(x)", "impure", "registered"),
    # methods of tensors, as functions and by name
    Row("torch.Tensor.add_(x, 1)", "impure", "in place, by its name"),
    Row("x.mul_(2)", "impure", "`.mul_()` works in place"),
    Row("x.requires_grad_()", "impure", "in place, by its name"),
    Row("x.resize_(2)", "impure", "in place, by its name"),
    Row("x.share_memory_()", "impure", "in place, by its name"),
    Row("x.__setitem__(0, 7)", "impure", "for what it changes"),
    Row("x.__iadd__(1)", "impure", "for what it changes"),
    Row("x.bernoulli(0.5)", "impure", "aten::bernoulli draws"),
    Row("x.multinomial(1)", "impure", "draws"),
    Row("loss.backward()", "impure", "for what it changes"),
    Row("loss.register_hook(print)", "impure", "what it changes", runs=False),
    # methods of Python's containers
    Row("items.append(3)", "impure", "for what it changes"),
    Row("items.clear()", "impure", "for what it changes"),
    Row("table.update(a=2)", "impure", "for what it changes"),
    Row("table.pop('a')", "impure", "for what it changes"),
    # modules of torch.nn
    Row("self.relu_in_place(z)", "impure", "ReLU writes into its input"),
    Row("self.dropout(x)", "impure", "Dropout draws from the random state"),
    Row("self.rrelu(z)", "impure", "RReLU draws"),
    Row("self.pool(image)", "impure", "FractionalMaxPool2d draws"),
    Row("self.batch_norm(x)", "impure", "BatchNorm1d updates running_mean"),
    Row("self.instance_norm(image)", "impure", "updates running_mean"),
    Row("self.lstm(rnn)", "impure", "LSTM draws"),
    Row("self.attention(rnn, rnn, rnn)", "impure", "MultiheadAttention draws"),
    Row("self.encoder(rnn)", "impure", "MultiheadAttention draws"),
    Row("self.sequence(x)", "impure", "1: Dropout draws"),
    Row("self.embedding(index)", "impure", "Embedding renormalises"),
    Row("self.bag(rows)", "impure", "EmbeddingBag renormalises"),
    Row("self.lazy(x)", "impure", "LazyLinear makes its parameters"),
    Row("self.spectral(x)", "impure", "_SpectralNorm updates its singular"),
    Row("self.declared(x)", "impure", "_is_impure is set"),
    Row("self.traced_impure(z)", "impure", "relu_: aten::relu_ writes into"),
]

PURE = [
    Row("torch.relu(x)", "pure", "the schema of aten::relu writes nothing"),
    Row("torch.add(x, 1)", "pure", "the schema of aten::add writes nothing"),
    Row("torch.add(x, 1, out=None)", "pure", "writes nothing"),
    Row("torch.sort(x)", "pure", "writes nothing"),
    Row("torch.einsum('ij->ji', x)", "pure", "writes nothing"),
    Row("torch.tensor(1.0)", "pure", "returns a value"),
    Row("torch.ones(2)", "pure", "writes nothing"),
    Row("torch.functional.norm(x)", "pure", "returns a value"),
    Row("aten.relu.default(x)", "pure", "writes nothing"),
    Row("aten.add(x, y)", "pure", "writes nothing"),
    Row("F.relu(x)", "pure", "torch.nn.functional.relu returns a value"),
    Row("F.relu(x, inplace=False)", "pure", "returns a value"),
    Row("F.gelu(x)", "pure", "writes nothing"),
    Row("F.max_pool2d(image, 2)", "pure", "returns a value"),
    Row("F.normalize(x)", "pure", "returns a value"),
    Row("F.embedding(index, x)", "pure", "returns a value"),
    Row("F.dropout(x, training=False)", "pure", "returns a value"),
    Row("F.dropout(x, 0.5, False, True)", "pure", "returns a value"),
    Row("F.dropout(x, 0.0)", "pure", "returns a value"),
    Row("F.dropout(x, p=0)", "pure", "returns a value"),
    Row("F.rrelu(x)", "pure", "returns a value"),
    Row("torch.dropout(x, 0.5, False)", "pure", "writes nothing"),
    Row("aten.dropout.default(x, 0.0, True)", "pure", "writes nothing"),
    Row(
        "F.scaled_dot_product_attention(image, image, image)",
        "pure",
        "writes nothing",
    ),
    Row("F.batch_norm(x, mean, var)", "pure", "returns a value"),
    Row("F.batch_norm(x, None, None, training=True)", "pure", "a value"),
    Row("F.instance_norm(image)", "pure", "returns a value"),
    Row(
        "aten.native_batch_norm(x, None, None, mean, var, False, 0.1, 1e-5)",
        "pure",
        "writes nothing",
    ),
    Row("operator.add(x, 1)", "pure", "operator.add returns a value"),
    Row("operator.getitem(x, 0)", "pure", "returns a value"),
    Row("operator.and_(flag, flag)", "pure", "returns a value"),
    Row("math.sqrt(4.0)", "pure", "math.sqrt returns a value"),
    Row("len(items)", "pure", "builtins.len returns a value"),
    Row("getattr(x, 'shape')", "pure", "builtins.getattr returns a value"),
    Row("fxt.double(x)", "pure", "fx_effect_tests::double writes nothing"),
    Row("torch.Tensor.add(x, 1)", "pure", "writes nothing"),
    Row("x.relu()", "pure", "aten::relu writes nothing"),
    Row("x.view(-1)", "pure", "writes nothing"),
    Row("x.sort()", "pure", "aten::sort writes nothing"),
    Row("x.size()", "pure", "writes nothing"),
    Row("x.__add__(1)", "pure", "returns a value"),
    Row("x.tolist()", "pure", "returns a value"),
    Row("x.double()", "pure", "returns a value"),
    Row("self.linear(x)", "pure", "Linear changes nothing"),
    Row("self.relu(x)", "pure", "ReLU changes nothing"),
    Row("self.dropout_eval(x)", "pure", "Dropout changes nothing"),
    Row("self.dropout_zero(x)", "pure", "Dropout changes nothing"),
    Row("self.batch_norm_eval(x)", "pure", "BatchNorm1d changes nothing"),
    Row("self.batch_norm_plain(x)", "pure", "BatchNorm1d changes nothing"),
    Row("self.instance_norm_plain(image)", "pure", "changes nothing"),
    Row("self.gru(rnn)", "pure", "GRU changes nothing"),
    Row("self.attention_plain(rnn, rnn, rnn)", "pure", "changes nothing"),
    Row("self.encoder_eval(rnn)", "pure", "changes nothing"),
    Row("self.sequence_eval(x)", "pure", "Sequential changes nothing"),
    Row("self.embedding_plain(index)", "pure", "changes nothing"),
    Row("self.weight_norm(x)", "pure", "changes nothing"),
    Row("self.traced(x)", "pure", "nothing in the graph of Traced"),
]

UNKNOWN = [
    Row("user_function(log)", "unknown", "nothing is known of"),
    Row("user_neg(x)", "unknown", "nothing is known of"),
    Row("(lambda: 1)()", "unknown", "nothing is known of"),
    Row("disguised(x)", "unknown", "nothing is known of torch.nn.functional"),
    Row("partial(x)", "unknown", "nothing is known of functools.partial"),
    Row("box.method()", "unknown", "tensors have no method `method`"),
    Row("table.get('a')", "unknown", "tensors have no method `get`"),
    Row("x.frobnicate()", "unknown", "tensors have no method", runs=False),
    Row("operator.methodcaller('relu_')(x)", "unknown", "nothing is known"),
    Row("operator.call(user_function, log)", "unknown", "nothing is known"),
    Row("torch.autograd.grad(loss, leaf)", "unknown", "nothing is known"),
    Row(
        "torch.ops.higher_order.cond(True, user_function, user_function, ())",
        "unknown",
        "runs what it is given",
        runs=False,
    ),
    Row("self.custom(x)", "unknown", "Custom is not of torch.nn"),
    Row("self.sequence_custom(x)", "unknown", "0: Custom is not of torch.nn"),
    Row("self.hooked(x)", "unknown", "Linear has forward hooks"),
    Row("self.own_forward(x)", "unknown", "has a forward of its own"),
    Row("self.traced_unknown(x)", "unknown", "nothing is known of"),
    Row("self.missing(x)", "unknown", "'missing' leads nowhere", runs=False),
    Row("self.value(x)", "unknown", "not of torch.nn", runs=False),
]

BY_KEYWORD = [
    # A user's function, but these keywords mean one thing everywhere.
    Row("user_add(x, 1, out=y)", "impure", "writes into what `out=` names"),
    Row("user_relu(z, inplace=True)", "impure", "`inplace=True` writes into"),
]

ROWS = [*IMPURE, *BY_KEYWORD, *PURE, *UNKNOWN]


# -- the world the rows live in ----------------------------------------------


class Box:
    def __init__(self) -> None:
        self.name = "box"

    def method(self) -> None:
        self.name = "changed"


class Custom(nn.Module):
    """A user's module: it counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: torch.Tensor
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return x


class Declared(Custom):
    _is_impure = True


def user_function(log: list[int]) -> None:
    log.append(1)


def user_neg(x: torch.Tensor) -> torch.Tensor:
    return x.neg_()


@has_side_effect
def register(log: list[int]) -> None:
    log.append(2)


def user_add(x: torch.Tensor, y: object, out: torch.Tensor) -> torch.Tensor:
    return out.fill_(9)


def user_relu(x: torch.Tensor, inplace: bool) -> torch.Tensor:
    return x.relu_()


@functools.wraps(F.relu)
def disguised(x: torch.Tensor) -> torch.Tensor:
    return x.relu_()


LOGGED: list[float] = []
custom_op: Anything = torch.library.custom_op


@custom_op("fx_effect_tests::scale_", mutates_args=("x",))  # type: ignore[untyped-decorator]
def scale_op(x: torch.Tensor) -> None:
    x.mul_(2)


@custom_op("fx_effect_tests::logged", mutates_args=())  # type: ignore[untyped-decorator]
def logged(x: torch.Tensor) -> torch.Tensor:
    LOGGED.append(float(x.sum()))
    return x.clone()


@custom_op("fx_effect_tests::double", mutates_args=())  # type: ignore[untyped-decorator]
def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


logged.register_effect(torch._library.effects.EffectType.ORDERED)


class Owner(nn.Module):
    """A module that can own graphs of both libraries."""

    def __init__(self) -> None:
        super().__init__()
        self._replace_hooks: list[Anything] = []
        self._create_node_hooks: list[Anything] = []
        self._erase_node_hooks: list[Anything] = []


class Traced(Owner):
    """A module with a graph, as stage 05's GraphModule is one."""

    def __init__(self, calls: Sequence[Anything]) -> None:
        super().__init__()
        self.graph = Graph(self)
        x = self.graph.placeholder("x")
        for function in calls:
            self.graph.call_function(function, (x,))
        self.graph.output(x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = evaluate(self.graph, {"x": x})
        return result


def hooked() -> nn.Module:
    module = nn.Linear(3, 3)
    module.register_forward_hook(lambda m, args, result: None)
    return module


def own_forward() -> nn.Module:
    module = nn.Linear(3, 3)
    vars(module)["forward"] = torch.Tensor.relu_
    return module


def spectral() -> nn.Module:
    module = parametrizations.spectral_norm(nn.Linear(3, 3))
    with torch.no_grad():
        for vector in module.buffers():
            vector.fill_(0.5)
    return module


def traced(*calls: Anything) -> Callable[[], nn.Module]:
    return lambda: Traced(calls)


encoder = functools.partial(nn.TransformerEncoderLayer, 4, 2, 8)

MODULES: dict[str, Callable[[], nn.Module]] = {
    "attention": lambda: nn.MultiheadAttention(4, 2, dropout=0.5),
    "attention_plain": lambda: nn.MultiheadAttention(4, 2),
    "bag": lambda: nn.EmbeddingBag(4, 3, max_norm=0.1),
    "batch_norm": lambda: nn.BatchNorm1d(3),
    "batch_norm_eval": lambda: nn.BatchNorm1d(3).eval(),
    "batch_norm_plain": lambda: nn.BatchNorm1d(3, track_running_stats=False),
    "custom": Custom,
    "declared": Declared,
    "dropout": nn.Dropout,
    "dropout_eval": lambda: nn.Dropout(inplace=True).eval(),
    "dropout_zero": lambda: nn.Dropout(0.0),
    "embedding": lambda: nn.Embedding(4, 3, max_norm=0.1),
    "embedding_plain": lambda: nn.Embedding(4, 3),
    "encoder": encoder,
    "encoder_eval": lambda: encoder().eval(),
    "gru": lambda: nn.GRU(4, 4, 2),
    "hooked": hooked,
    "instance_norm": lambda: nn.InstanceNorm2d(3, track_running_stats=True),
    "instance_norm_plain": lambda: nn.InstanceNorm2d(3),
    "lazy": lambda: nn.LazyLinear(2),
    "linear": lambda: nn.Linear(3, 2),
    "lstm": lambda: nn.LSTM(4, 4, 2, dropout=0.5),
    "own_forward": own_forward,
    "pool": lambda: nn.FractionalMaxPool2d(2, 2),
    "relu": nn.ReLU,
    "relu_in_place": lambda: nn.ReLU(inplace=True),
    "rrelu": nn.RReLU,
    "sequence": lambda: nn.Sequential(nn.Linear(3, 3), nn.Dropout()),
    "sequence_custom": lambda: nn.Sequential(Custom(), nn.ReLU()),
    "sequence_eval": lambda: nn.Sequential(nn.ReLU(), nn.Dropout().eval()),
    "spectral": spectral,
    "traced": traced(torch.relu, F.gelu),
    "traced_impure": traced(torch.relu, torch.relu_),
    "traced_unknown": traced(torch.relu, user_neg),
    "weight_norm": lambda: parametrizations.weight_norm(nn.Linear(3, 3)),
}
"""The submodules of `self`, made when a row asks for them."""


def modules(call: str) -> Owner:
    """The `self` of a row."""
    owner = Owner()
    vars(owner)["value"] = 3
    for name, make in MODULES.items():
        if f"self.{name}(" in call:
            setattr(owner, name, make())
    return owner


def values() -> dict[str, Anything]:
    """What the names in the rows stand for: made anew, always the same."""
    torch.manual_seed(77)
    state = torch.get_rng_state()
    torch.manual_seed(1)
    leaf = torch.ones(3, requires_grad=True)
    gru = nn.GRU(4, 4, 2, dropout=0.5)
    return {
        "x": torch.rand(4, 3),
        "y": torch.rand(4, 3),
        "z": torch.randn(4, 3),
        "image": torch.rand(2, 3, 4, 4),
        "rnn": torch.rand(5, 2, 4),
        "hidden": torch.rand(2, 2, 4),
        "weights": [weight.detach() for weight in gru.parameters()],
        "index": torch.tensor([[0, 1, 2]] * 4),
        "row": torch.tensor([1, 2]),
        "rows": torch.tensor([[0, 1], [2, 3]]),
        "mean": torch.zeros(3),
        "var": torch.ones(3),
        "flag": True,
        "no": torch.tensor(False),
        "state": state,
        "leaf": leaf,
        "loss": (leaf * 2).sum(),
        "items": [1, 2, 3],
        "table": {"a": 1},
        "box": Box(),
        "iterator": iter([1, 2, 3]),
        "log": [],
        "file": io.BytesIO(),
    }


NAMES = {
    "F": F,
    "aten": torch.ops.aten,
    "disguised": disguised,
    "fxt": torch.ops.fx_effect_tests,
    "math": math,
    "nn": nn,
    "operator": operator,
    "partial": functools.partial(torch.relu_),
    "register": register,
    "scale_op": scale_op,
    "torch": torch,
    "user_add": user_add,
    "user_function": user_function,
    "user_neg": user_neg,
    "user_relu": user_relu,
}


def record(call: str, graph: Anything, names: Sequence[str]) -> Anything:
    """Add the one node that a row's call stands for, and its inputs."""
    expression = ast.parse(call, mode="eval").body
    assert isinstance(expression, ast.Call)
    used = {n.id for n in ast.walk(expression) if isinstance(n, ast.Name)}
    inputs = {n: graph.placeholder(n) for n in names if n in used}

    def value_of(part: ast.expr) -> Anything:
        match part:
            case ast.Name(id=name) if name in inputs:
                return inputs[name]
            case ast.Tuple(elts=parts):
                return tuple(map(value_of, parts))
            case ast.List(elts=parts):
                return list(map(value_of, parts))
        return eval(ast.unparse(part), NAMES)

    args = tuple(map(value_of, expression.args))
    kwargs = {str(k.arg): value_of(k.value) for k in expression.keywords}
    match expression.func:
        case ast.Attribute(value=ast.Name(id="self"), attr=path):
            return graph.create_node("call_module", path, args, kwargs)
        case ast.Attribute(value=ast.Name(id=name), attr=method) if (
            name in inputs
        ):
            return graph.call_method(method, (inputs[name], *args), kwargs)
    return graph.call_function(value_of(expression.func), args, kwargs)


def evaluate(graph: Anything, given: dict[str, Anything]) -> Anything:
    """Run a graph, node by node."""
    env: dict[Anything, Anything] = {}
    for node in graph.nodes:
        args = map_arg(node.args, env.__getitem__)
        kwargs = map_arg(dict(node.kwargs), env.__getitem__)
        if node.op == "placeholder":
            env[node] = given[node.target]
        elif node.op == "call_function":
            env[node] = node.target(*args, **kwargs)
        elif node.op == "call_method":
            env[node] = getattr(args[0], node.target)(*args[1:], **kwargs)
        elif node.op == "call_module":
            module = node.graph.owning_module.get_submodule(node.target)
            env[node] = module(*args, **kwargs)
        elif node.op == "output":
            return args[0]
        if isinstance(env[node], torch.autocast):
            given["autocast"] = env[node]
    return None


def plain(value: Anything) -> Anything:
    """A value in a form that can be compared."""
    if isinstance(value, torch.Tensor):
        grad = None if not value.is_leaf else plain(value.grad)
        if is_lazy(value):
            return "no value yet"
        flags = (value.requires_grad, is_shared(value))
        return (str(value.detach().tolist()), value.shape, *flags, grad)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Box):
        return dict(vars(value))
    if isinstance(value, io.BytesIO):
        return value.getvalue()
    if isinstance(value, dict):
        return dict(value)
    return list(copy.copy(value)) if isinstance(value, Iterator) else value


is_shared: Callable[[torch.Tensor], bool] = torch.Tensor.is_shared
exit_autocast: Callable[[object], None] = _exit_autocast


@contextlib.contextmanager
def restored() -> Iterator[None]:
    """Put the global state back that a row may change."""
    dtype, state = torch.get_default_dtype(), torch.get_rng_state()
    grad = torch.is_grad_enabled()
    try:
        yield
    finally:
        torch.set_default_dtype(dtype)
        torch.set_grad_enabled(grad)
        torch.set_rng_state(state)
        LOGGED.clear()


def world_after(row: Row, removed: bool) -> dict[str, Anything]:
    """Everything that can be seen when the row's program has run."""
    with restored():
        given = values()
        owner = modules(row.call)
        graph = Graph(owner)
        node = record(row.call, graph, list(given))
        if removed:
            graph.erase_node(node)
        torch.manual_seed(2)
        printed, raised = io.StringIO(), ""
        with contextlib.redirect_stdout(printed), ranges(row) as recorded:
            try:
                evaluate(graph, given)
            except (AssertionError, RuntimeError) as error:
                raised = repr(error)
        autocast = torch.is_autocast_enabled("cpu")
        if "autocast" in given:
            exit_autocast(given.pop("autocast"))
        return {
            "values": {name: plain(value) for name, value in given.items()},
            "modules": {k: plain(v) for k, v in owner.state_dict().items()},
            "random": plain(torch.get_rng_state()),
            "globals": (torch.get_default_dtype(), torch.is_grad_enabled()),
            "autocast": autocast,
            "printed": printed.getvalue(),
            "raised": raised,
            "logged": list(LOGGED),
            "ranges": list(recorded),
        }


@contextlib.contextmanager
def ranges(row: Row) -> Iterator[list[str]]:
    """The profiler ranges that are opened by hand."""
    profiler: Anything = torch.autograd.profiler
    found: list[str] = []
    with profiler.profile(enabled="profiler" in row.call) as profile:
        yield found
    if "profiler" in row.call:
        events = profile.function_events
        found += [event.name for event in events if event.name == "range"]


# -- the rows ----------------------------------------------------------------

by_call = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.call)


def made(row: Row) -> Node:
    """The node of a row, in its graph."""
    with restored():
        node: Node = record(row.call, Graph(modules(row.call)), list(values()))
        return node


@by_call
def test_class_and_reason(row: Row) -> None:
    effect = classify(made(row))
    assert effect.kind == row.kind, effect
    assert row.reason in effect.reason
    # One clause, for people.
    assert "\n" not in effect.reason
    assert not effect.reason.endswith(".")
    assert len(effect.reason) < 160


@pytest.mark.parametrize(
    "row",
    [row for row in ROWS if row.runs and row.kind != "unknown"],
    ids=lambda row: row.call,
)
def test_the_class_is_true(row: Row) -> None:
    kept, removed = (world_after(row, removed=r) for r in (False, True))
    if row.kind == "pure":
        assert kept == removed
        return
    assert kept != removed
    assert kept["raised"] == "" or "registered" in row.reason


def test_nothing_can_be_said_of_the_unknown() -> None:
    # Some change the world and some do not: no word but "unknown" is true.
    rows = [row for row in UNKNOWN if row.runs]
    changes = [
        world_after(row, removed=False) != world_after(row, removed=True)
        for row in rows
    ]
    assert {True, False} == set(changes)
    assert sum(changes) >= 6


def test_a_run_leaves_the_same_world_twice() -> None:
    # Else the comparison above would prove nothing.
    row = Row("torch.relu(x)", "pure", "")
    assert world_after(row, removed=False) == world_after(row, removed=False)


def test_every_row_is_there_once() -> None:
    calls = [row.call for row in ROWS]
    assert len(set(calls)) == len(calls)
    assert sum(not row.runs for row in ROWS) <= 6


@by_call
def test_dead_code_elimination_goes_by_the_class(row: Row) -> None:
    for unknown, kept in (
        ("drop", ("impure",)),
        ("keep", ("impure", "unknown")),
    ):
        graph = made(row).graph
        calls = [node for node in graph.nodes if node.op != "placeholder"]
        assert len(calls) == 1
        try:
            graph.eliminate_dead_code(unknown=unknown)  # type: ignore[arg-type]
        except RuntimeError:
            assert not row.runs  # lint refuses a target that is not there
            return
        left = [node for node in graph.nodes if node.op != "placeholder"]
        stays = {"pure": False, "impure": True, "unknown": unknown == "keep"}
        assert bool(left) == stays[row.kind]


# -- torch.fx ----------------------------------------------------------------

LESS_SURE_THAN_TORCH_FX = {
    "aten.dropout.default(x, 0.0, True)": "p is 0, so nothing is drawn",
}


@by_call
def test_what_torch_fx_keeps_is_kept(row: Row) -> None:
    owner: Anything = modules(row.call)
    with restored():
        names = list(values())
    try:
        node = record(row.call, torch.fx.Graph(owner), names)
        kept = node.is_impure()
    except AttributeError:
        # No module at the target, or a function that has no name.
        assert row.kind == "unknown" or row.call == "scale_op(x)"
        return
    if kept and row.call not in LESS_SURE_THAN_TORCH_FX:
        assert row.kind == "impure"


def _operators() -> Iterator[Anything]:
    """All operators of torch's own namespaces: packets and overloads."""
    for name in torch._C._dispatch_get_all_op_names():
        namespace, _, rest = name.partition("::")
        base, _, overload = rest.partition(".")
        if namespace != "fx_effect_tests":
            packet = getattr(getattr(torch.ops, namespace), base)
            yield packet
            yield getattr(packet, overload or "default")


def test_all_operators_beside_torch_fx() -> None:
    graph, other = Graph(), torch.fx.Graph()
    more: set[str] = set()
    counts = [0, 0]
    for op in _operators():
        ours, theirs = graph.call_function(op), other.call_function(op)
        for random in (True, False):
            mine = is_impure(ours, random)
            if _base(op) in DRAWS_IF:
                continue  # torch.fx does not look at `train`
            if theirs.is_impure(random):
                assert mine, (op, classify(ours))
            elif mine and not _has_mutable_overload(op):
                more.add(_base(op))
            counts[random] += mine
    assert counts[True] > counts[False] > 1000
    # What torch.fx drops though it does something (CUDA's and MPS' too).
    assert more >= {"batch_norm", "native_batch_norm", "instance_norm"}
    assert more <= {*UPDATES_STATISTICS_IF, *SCHEMAS_WITHOUT_TAG}


def _base(op: Anything) -> str:
    """The operator's name without namespace and overload."""
    return str(op).split(".")[1]


SCHEMAS_WITHOUT_TAG: set[str] = set()


def _has_mutable_overload(op: Anything) -> bool:
    """torch.fx looks at one overload of a packet, `default`, if it has one."""
    if isinstance(op, torch._ops.OpOverload):
        return bool(op._schema.is_mutable)
    return any(getattr(op, name)._schema.is_mutable for name in op.overloads())
