"""Effects: what each construct does besides computing its value.

Every row of effect_rows.py that can run is run, once as it is and once with
its node removed, and the world is compared.
"""

from __future__ import annotations

import ast
import collections
import contextlib
import copy
import functools
import gc
import inspect
import io
import math
import operator
import queue
import re
import textwrap
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import pytest
import torch
import torch.fx
from torch import nn
from torch._jit_internal import boolean_dispatched
from torch.amp.autocast_mode import _exit_autocast
from torch.nn import functional as F
from torch.nn.parameter import is_lazy
from torch.nn.utils import parametrizations

from fx.extra.effects.effect_tables import (
    DRAWS_IF_ASKED,
    FUNCTIONAL_DRAWS,
    MODULE_EFFECTS,
    UPDATES_STATISTICS,
)
from fx.extra.effects.effects import (
    classify,
    has_side_effect,
    is_impure,
    must_keep,
    place_of,
)
from fx.graph import Graph
from fx.graph_module import GraphModule
from fx.node import Node, map_arg
from fx.use_def.dead_code import side_effect_registry
from tests.library.effect_rows import ROWS, UNKNOWN, Row

Anything: TypeAlias = Any


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


@custom_op("fx_effect_tests::note", mutates_args=())  # type: ignore[untyped-decorator]
def note(x: torch.Tensor) -> None:
    LOGGED.append(float(x.sum()))


if hasattr(logged, "register_effect"):  # torch 2.10 and later
    logged.register_effect(torch._library.effects.EffectType.ORDERED)


class Owner(nn.Module):
    """A module that can own graphs of both libraries."""

    def __init__(self) -> None:
        super().__init__()
        self._replace_hooks: list[Anything] = []
        self._create_node_hooks: list[Anything] = []
        self._erase_node_hooks: list[Anything] = []


class Drawing(Custom):
    """A user's module that has an attribute named `graph`, as any may have."""

    def __init__(self) -> None:
        super().__init__()
        self.graph = Graph()


class Counted(nn.Linear):
    """A user's class below one of torch."""

    def __init__(self) -> None:
        super().__init__(3, 3)
        self.calls: torch.Tensor
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return super().forward(x)


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
    def make() -> nn.Module:
        graph = Graph()
        x = graph.placeholder("x")
        for function in calls:
            graph.call_function(function, (x,))
        graph.output(x)
        return GraphModule(nn.Module(), graph)

    return make


def traced_hooked() -> nn.Module:
    module = traced(torch.relu)()
    module.register_forward_pre_hook(lambda m, args: None)
    return module


def traced_edited() -> nn.Module:
    module = traced(torch.relu)()
    object.__setattr__(module, "forward", torch.Tensor.relu_)
    return module


def backward_hooked() -> nn.Module:
    module = nn.Linear(3, 3)
    module.register_full_backward_hook(lambda m, a, b: None)
    return module


encoder = functools.partial(nn.TransformerEncoderLayer, 4, 2, 8)
weight_norm = parametrizations.weight_norm

MODULES: dict[str, Callable[[], nn.Module]] = {
    "activation": lambda: encoder(activation=user_neg, dropout=0.0),
    "attention": lambda: nn.MultiheadAttention(4, 2, dropout=0.5),
    "attention_plain": lambda: nn.MultiheadAttention(4, 2),
    "backward_hooked": backward_hooked,
    "bag": lambda: nn.EmbeddingBag(4, 3, max_norm=0.1),
    "batch_norm": lambda: nn.BatchNorm1d(3),
    "batch_norm_eval": lambda: nn.BatchNorm1d(3).eval(),
    "batch_norm_plain": lambda: nn.BatchNorm1d(3, track_running_stats=False),
    "custom": Custom,
    "declared": Declared,
    "drawing": Drawing,
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
    "traced_edited": traced_edited,
    "traced_hooked": traced_hooked,
    "traced_impure": traced(torch.relu, torch.relu_),
    "traced_unknown": traced(torch.relu, user_neg),
    "weight_norm": lambda: weight_norm(nn.Linear(3, 3)),
    "weight_norm_custom": lambda: weight_norm(Counted()),
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
        "queue": queue.Queue(),
        "words": {"a"},
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
    inputs = {
        n: graph.placeholder(n, torch.Tensor if given_is_tensor(n) else None)
        for n in names
        if n in used
    }

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


@functools.cache
def given_is_tensor(name: str) -> bool:
    """Whether a name in the rows stands for a tensor; they are annotated."""
    with restored():
        return isinstance(values()[name], torch.Tensor)


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
        hooks = (value._backward_hooks, value._post_accumulate_grad_hooks)
        flags = (
            value.requires_grad,
            value.retains_grad,
            is_shared(value),
            *map(bool, hooks),
        )
        return (str(value.detach().tolist()), value.shape, *flags, grad)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Box):
        return dict(vars(value))
    if isinstance(value, io.BytesIO):
        return value.getvalue()
    if isinstance(value, queue.Queue):
        return list(value.queue)
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
    assert_like = ("registered", "returns nothing")
    assert kept["raised"] == "" or row.reason.endswith(assert_like)


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
    for unknown in ("drop", "keep"):
        graph = made(row).graph
        calls = [node for node in graph.nodes if node.op != "placeholder"]
        assert len(calls) == 1
        try:
            graph.eliminate_dead_code(unknown=unknown)
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
        if namespace in OWN_NAMESPACES:
            packet = getattr(getattr(torch.ops, namespace), base)
            yield packet
            yield getattr(packet, overload or "default")


OWN_NAMESPACES = (
    "_c10d_functional", "aten", "inductor", "prims", "profiler", "quantized",
    "rngprims",
)  # fmt: skip


def test_all_operators_beside_torch_fx() -> None:
    graph, other = Graph(), torch.fx.Graph()
    more: set[str] = set()
    counts = [0, 0]
    for op in _operators():
        ours, theirs = graph.call_function(op), other.call_function(op)
        for random in (True, False):
            mine = is_impure(ours, random)
            if _base(op) in DRAWS_IF_ASKED:
                continue  # torch.fx does not look at `train`
            if theirs.is_impure(random):
                assert mine, (op, classify(ours))
            elif mine and not _has_mutable_overload(op):
                more.add(".".join(str(op).split(".")[:2]))
            counts[random] += mine
    assert counts[True] > counts[False] > 1000
    late = {name for name in more if name.startswith("prims.inductor_")}
    assert more - REGISTERED_LATE - late == MORE_THAN_TORCH_FX


MORE_THAN_TORCH_FX = {
    # Schemas that keep silent about a write.
    *(f"aten.{name}" for name in UPDATES_STATISTICS),
    # Tagged as random, but not in aten.
    "prims.normal",
    "prims.uniform",
    "rngprims.philox_rand",
    # Packets without an overload `default`.
    "aten.gru",
    "aten.lstm",
    "aten.rnn_relu",
    "aten.rnn_tanh",
    # Registered, but for one overload of two.
    "profiler._record_function_exit",
    # They return nothing.
    "aten._assert_async",
    "aten._backward",
    "aten._cufft_clear_plan_cache",
    "aten._cufft_set_plan_cache_max_size",
    "aten._propagate_xla_data",
    "aten._validate_compressed_sparse_indices",
    *(
        f"aten._validate_sparse_{layout}_tensor_args"
        for layout in "bsc bsr compressed coo csc csr".split()
    ),
}
"""Operators that torch.fx drops though they do something."""

REGISTERED_LATE = {
    f"_c10d_functional.{name}"
    for name in ("batch_p2p_ops", "irecv", "isend", "wait_tensor")
}
"""Those that torch.fx keeps once torch.distributed has been imported."""


def _base(op: Anything) -> str:
    """The operator's name without namespace and overload."""
    return str(op).split(".")[1]


def _has_mutable_overload(op: Anything) -> bool:
    """torch.fx looks at one overload of a packet, `default`, if it has one."""
    if isinstance(op, torch._ops.OpOverload):
        return bool(op._schema.is_mutable)
    return any(getattr(op, name)._schema.is_mutable for name in op.overloads())


def test_functions_of_torch_that_draw_are_kept_either_way() -> None:
    # torch.fx: `impure_random=False` forgives operators, not functions.
    graph, other = Graph(), torch.fx.Graph()
    functions: set[Anything] = torch._library.utils._RANDOM_FUNCTIONS
    assert len(functions) > 8
    for function in functions:
        for random in (True, False):
            assert is_impure(graph.call_function(function), random)
            assert other.call_function(function).is_impure(random)
    node = graph.call_function(torch.ops.aten.rand.default)
    assert is_impure(node)
    assert not is_impure(node, impure_random=False)


# -- nodes that call nothing, graphs that own nothing ------------------------


def test_what_calls_nothing() -> None:
    graph = Graph(Owner())
    x = graph.placeholder("x")
    weight = graph.create_node("get_attr", "weight")
    output = graph.output(x)
    assert [classify(node).kind for node in (x, weight, output)] == [
        "impure",
        "pure",
        "impure",
    ]
    assert is_impure(x) and is_impure(output) and not is_impure(weight)


def test_a_graph_module_in_another_module_is_read_through_its_graph() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    write = graph.call_method("add_", (x, 1))
    graph.output(x)
    inner = GraphModule({}, graph)
    modules = {"deep": nn.Sequential(nn.Sequential(nn.ReLU(), inner))}
    outer = Graph()
    seen = outer.placeholder("x")
    node = outer.call_module("deep", (seen,))
    outer.output(seen)
    owner = GraphModule(modules, outer)
    effect = classify(node)
    assert effect.kind == "impure"
    assert effect.reason.startswith("0.1: add_: ")
    assert not owner.graph.eliminate_dead_code()
    inner.graph.erase_node(write)
    assert classify(node).kind == "impure"  # the code runs until `recompile`
    inner.recompile()
    assert classify(node).kind == "unknown"
    assert owner.graph.eliminate_dead_code()


def test_a_module_is_read_as_it_is_now() -> None:
    owner = modules("self.dropout(")
    graph = Graph(owner)
    node = graph.call_module("dropout", (graph.placeholder("x"),))
    assert classify(node).kind == "impure"
    owner.eval()
    assert classify(node).kind == "pure"
    owner.dropout = Custom()
    assert classify(node).kind == "unknown"


def test_arguments_are_read_as_they_are_now() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    node = graph.call_function(F.dropout, (x,), {"training": False})
    assert classify(node).kind == "pure"
    node.kwargs = {"training": True}
    assert classify(node).kind == "impure"
    node.args = (x, 0.0)
    assert classify(node).kind == "pure"


@pytest.mark.parametrize("version", ["auto_functionalized", "..._v2"])
def test_an_operator_on_copies_writes_nothing(version: str) -> None:
    name = version.replace("...", "auto_functionalized")
    op: Anything = getattr(torch.ops.higher_order, name)
    inner = (torch.ops.aten.add_.Tensor, torch.ops.aten._assert_scalar.default)
    graph, other = Graph(), torch.fx.Graph()
    for each, kind in zip(inner, ("pure", "impure"), strict=True):
        assert classify(graph.call_function(op, (each,))).kind == kind
        assert other.call_function(op, (each,)).is_impure() == (kind != "pure")


def test_higher_order_operators_with_an_effect() -> None:
    graph, other = Graph(), torch.fx.Graph()
    op: Anything = torch.ops.higher_order.print
    assert is_impure(graph.call_function(op, ("text",)))
    assert other.call_function(op, ("text",)).is_impure()


# -- the registry and the caches ---------------------------------------------


def node_of(function: Anything) -> Node:
    graph = Graph()
    return graph.call_function(function, (graph.placeholder("x"),))


def test_the_registry_is_asked_each_time() -> None:
    for function in (torch.relu, user_function, torch.ops.aten.relu.default):
        node = node_of(function)
        before = classify(node)
        assert before.kind != "impure"
        assert has_side_effect(function) is function
        assert is_impure(node)
        side_effect_registry.discard(function)
        assert classify(node) == before


def test_methods_are_registered_by_equality() -> None:
    box = Box()
    node = node_of(box.method)
    assert not is_impure(node)
    has_side_effect(box.method)
    try:
        assert is_impure(node)
        assert not is_impure(node_of(Box().method))
    finally:
        side_effect_registry.discard(box.method)


def test_a_wrapped_function_of_the_registry_is_in_it() -> None:
    @functools.wraps(torch.save)
    def wrapper(*args: Anything) -> None: ...

    effect = classify(node_of(wrapper))
    assert effect.kind == "impure"
    assert "what it wraps is registered" in effect.reason


class Unhashable:
    __hash__ = None  # type: ignore[assignment]

    def __call__(self, x: Anything) -> Anything: ...


class Alike:
    """Equal to everything, with the hash of a function of torch."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash(torch.relu)

    def __call__(self, x: Anything) -> Anything: ...


def test_callables_with_a_strange_identity() -> None:
    classify(node_of(torch.relu))
    assert classify(node_of(Unhashable())).kind == "unknown"
    assert classify(node_of(Alike())).kind == "unknown"


def test_no_user_function_is_kept_alive() -> None:
    def mine(x: object) -> None: ...

    @functools.wraps(F.relu)
    def in_disguise(x: object) -> None: ...

    gone: list[weakref.ref[Anything]] = [
        weakref.ref(mine),
        weakref.ref(in_disguise),
    ]
    for function in (mine, in_disguise):
        assert classify(node_of(function)).kind == "unknown"
    del mine, in_disguise, function
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


def test_an_operator_of_a_library_is_read_each_time() -> None:
    make: Anything = torch.library.Library
    library = make("fx_effect_tests_2", "DEF")
    library.define("late(Tensor x) -> Tensor")
    late = torch.ops.fx_effect_tests_2.late
    nodes = [node_of(late), node_of(late.default)]
    assert [classify(node).kind for node in nodes] == ["pure", "pure"]
    library._register_effectful_op(
        "fx_effect_tests_2::late", torch._library.effects.EffectType.ORDERED
    )
    assert [classify(node).kind for node in nodes] == ["impure", "impure"]
    library._destroy()


def test_must_keep_knows_two_words() -> None:
    with pytest.raises(ValueError, match="say unknown="):
        must_keep("maybe")  # type: ignore[arg-type]


# -- nothing is forgotten: each table against torch's own source -------------


def _public_functions() -> dict[str, Anything]:
    return {
        name: function
        for name, function in vars(F).items()
        if inspect.isfunction(function)
        and function.__module__ == F.__name__
        and not name.startswith("_")
    }


DRAWING = re.compile(
    r"dropout_?\(|\brrelu_?\(|exponential_|_random_samples|torch.rand|"
    r"bernoulli|dropout_p"
)


def _code(function: Anything) -> str:
    """The source of a function without its docstring."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    (definition,) = tree.body
    assert isinstance(definition, ast.FunctionDef)
    keep = definition.body[ast.get_docstring(definition) is not None :]
    return "\n".join(map(ast.unparse, keep))


def test_every_function_that_draws_is_in_the_table() -> None:
    found = set()
    for name, function in _public_functions().items():
        both = boolean_dispatched.get(function, {"if_true": function})
        parts = filter(inspect.isfunction, both.values())
        if any(DRAWING.search(_code(part)) for part in parts):
            found.add(name)
    assert found == set(FUNCTIONAL_DRAWS)


def test_every_function_with_statistics_is_in_the_table() -> None:
    for name, function in _public_functions().items():
        signature = inspect.signature(function)
        has_statistics = "running_mean" in signature.parameters
        assert has_statistics == (name in UPDATES_STATISTICS), name


INNOCENT = {
    # They have the statistics as arguments and only read them.
    "_batch_norm_no_update",
    "_batch_norm_with_update_functional",
    "_native_batch_norm_legit_functional",
    "_native_batch_norm_legit_no_training",
}


def test_every_operator_with_statistics_is_judged() -> None:
    found = set()
    for op in _operators():
        if not str(op).startswith("aten.") or "backward" in str(op):
            continue
        if isinstance(op, torch._ops.OpOverload) and not op._schema.is_mutable:
            names = [argument.name for argument in op._schema.arguments]
            if "running_mean" in names:
                found.add(_base(op))
    assert found == {*UPDATES_STATISTICS, *INNOCENT}


STATEFUL = re.compile(
    r"self\.training|self\.inplace|max_norm|_random_samples|num_batches"
)


def test_every_module_whose_forward_has_a_state_is_in_the_table() -> None:
    judged = [one.cls for one in MODULE_EFFECTS if one.cls is not nn.Module]
    unjudged = set()
    for cls in vars(nn).values():
        if not inspect.isclass(cls) or not issubclass(cls, nn.Module):
            continue
        source = _code(cls.forward)
        if STATEFUL.search(source) and not issubclass(cls, tuple(judged)):
            unjudged.add(cls.__name__)
            assert "self.inplace" in source or cls in MADE_OF_JUDGED, cls
    assert len(unjudged) > 8


MADE_OF_JUDGED = (nn.TransformerEncoderLayer, nn.TransformerEncoder)
"""They look at `training` to choose how to run, and draw in their parts."""


def test_every_method_of_tensors_is_judged() -> None:
    graph = Graph()
    unknown = set()
    for name in dir(torch.Tensor):
        if callable(getattr(torch.Tensor, name, None)):
            x = graph.placeholder("x", torch.Tensor)
            node = graph.call_method(name, (x,))
            if classify(node).kind == "unknown" and not name.startswith("_"):
                unknown.add(name)
    # Removed from torch, or from another library.
    gone = "cholesky eig lstsq qr reinforce solve symeig".split()
    assert unknown <= {*gone}


def test_every_function_of_operator_is_judged() -> None:
    kinds: dict[str, set[str]] = collections.defaultdict(set)
    for name, function in vars(operator).items():
        if inspect.isbuiltin(function) and name.strip("_") != "call":
            kinds[classify(node_of(function)).kind].add(name.strip("_"))
    in_place = {f"i{name}" for name in kinds["pure"]} & set(dir(operator))
    assert len(in_place) == 14
    assert kinds["impure"] == in_place | {"delitem", "setitem"}
    assert kinds["unknown"] == {"contains", "countOf", "indexOf"}


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_tensors_in_one_memory_have_one_place(device: str) -> None:
    x = torch.empty(4, device=device)
    assert (
        place_of(x) == place_of(x[1:]) == place_of(nn.Parameter(x.view(2, 2)))
    )
    other = torch.empty(4, device=device)
    assert place_of(x) != place_of(other)


def test_a_tensor_without_a_storage_is_a_place_of_its_own() -> None:
    sparse, lazy = torch.eye(2).to_sparse(), nn.UninitializedParameter()
    assert place_of(sparse) == place_of(sparse) != place_of(sparse.clone())
    assert place_of(lazy) == place_of(lazy)
