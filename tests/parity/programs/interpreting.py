"""Stage 06: running graphs node by node, and rewriting them that way."""

from __future__ import annotations

import operator
from typing import no_type_check

import torch
from torch import nn

from tests.parity.harness import Lib, Made, Seen, error, program, show
from tests.parity.programs._subjects import subclass


class Net(nn.Module):
    """A parameter, two modules, methods and functions."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(3, 3)
        self.inner = nn.Sequential(nn.ReLU(), nn.Linear(3, 2))
        self.scale = nn.Parameter(torch.ones(3))

    @no_type_check
    def forward(self, x, y=2.0):
        z = torch.relu(self.linear(x) * self.scale) + y
        return self.inner(z).clamp(min=0.0)


def traced(lib: Lib) -> Made:
    """`Net`, traced."""
    return lib.symbolic_trace(Net())


X = torch.tensor([[1.0, -2.0, 3.0]])


@program(claims=("interp-node-by-node", "interp-run"))
def an_interpreter_gives_what_the_code_gives(lib: Lib) -> Seen:
    gm = traced(lib)
    interpreter = lib.Interpreter(gm)
    return [interpreter.run(X, 1.0), interpreter.run(X), gm(X)]


@program(claims=("interp-node-by-node",))
def an_edited_graph_runs_in_its_new_form(lib: Lib) -> Seen:
    gm = traced(lib)
    for node in gm.graph.nodes:
        if node.target is torch.relu:
            node.target = torch.neg
    return [lib.Interpreter(gm).run(X), gm(X)]


def logging(lib: Lib, log: list[object]) -> Made:
    """A class of interpreters that log every overridable method."""

    def logged(name: str) -> Made:
        @no_type_check
        def method(self, *args):
            shown = [
                str(a) if not isinstance(a, torch.Tensor) else "tensor"
                for a in args[:1]
            ]
            log.append((name, *shown))
            return getattr(lib.Interpreter, name)(self, *args)

        return method

    names = (
        "run_node",
        "placeholder",
        "get_attr",
        "call_function",
        "call_method",
        "call_module",
        "output",
        "fetch_args_kwargs_from_env",
        "map_nodes_to_values",
        "fetch_attr",
    )
    methods = {name: logged(name) for name in names}
    return type("Logging", (lib.Interpreter,), methods)


@program(claims=("interp-method-map", "interp-node-by-node"))
def overridden_methods_are_called_in_this_order(lib: Lib) -> Seen:
    log: list[object] = []
    gm = traced(lib)
    result = logging(lib, log)(gm).run(X)
    skipped = ("fetch_attr",)
    return [result, [entry for entry in log if entry[:1] != skipped]]  # type: ignore[index]


@program(claims=("interp-method-map",))
def a_single_method_can_be_overridden(lib: Lib) -> Seen:
    seen = []
    for name in ("call_function", "call_method", "call_module", "get_attr"):
        calls: list[str] = []

        @no_type_check
        def method(self, target, args, kwargs, _name=name, _calls=calls):
            _calls.append(str(getattr(target, "__name__", target)))
            return getattr(lib.Interpreter, _name)(self, target, args, kwargs)

        kind = type("One", (lib.Interpreter,), {name: method})
        seen.append([name, kind(traced(lib)).run(X), calls])
    return seen


def swap(lib: Lib, base: str) -> Made:
    """The documents' example, with `n` corrected to the three arguments."""
    parent = getattr(lib, base)

    @no_type_check
    def call_function(self, target, args, kwargs):
        if target is torch.sigmoid:
            return torch.neg(*args, **kwargs)
        return parent.call_function(self, target, args, kwargs)

    @no_type_check
    def call_method(self, target, args, kwargs):
        if target == "neg":
            call_self, *args_tail = args
            return call_self.sigmoid(*args_tail, **kwargs)
        return parent.call_method(self, target, args, kwargs)

    methods = {"call_function": call_function, "call_method": call_method}
    return subclass(parent, **methods)


@no_type_check
def sigmoid_then_neg(x):
    """What the example swaps."""
    return torch.sigmoid(x).neg()


@program(claims=("interp-swap-example",))
def the_swap_example_as_an_interpreter(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(sigmoid_then_neg)
    other = traced(lib)
    kind = swap(lib, "Interpreter")
    return [
        kind(gm).run(X),
        torch.neg(X).sigmoid(),
        kind(other).run(X),
    ]


@program(claims=("interp-initial-env",))
def values_given_beforehand_are_not_computed(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: (x + 1) * 2)
    x, add = list(gm.graph.nodes)[:2]
    env = {add: 10}
    interpreter = lib.Interpreter(gm, garbage_collect_values=False)
    return [
        interpreter.run(5, initial_env=env),
        sorted(map(str, env)),
        interpreter.env is env,
        interpreter.run(initial_env={x: 3}),
    ]


@program(claims=("interp-placeholder-stateful",))
def inputs_are_taken_one_after_the_other(lib: Lib) -> Seen:
    @no_type_check
    def f(x, y, *rest):
        return x, y, rest

    gm = lib.symbolic_trace(f)
    default = lib.symbolic_trace(lambda x, y=3: x + y)
    return [
        lib.Interpreter(gm).run(1, 2, 3, 4),
        lib.Interpreter(default).run(1),
        error(lambda: lib.Interpreter(gm).run(1), chars=70),
    ]


@program(
    claims=("interp-run",),
    differs="interpreter-arity",
    ours=[
        "RuntimeError: Interpreter.run expected at most 1 positional",
        "RuntimeError: Interpreter.run got the input 'z', which no",
        3,
    ],
)
def inputs_without_a_place_are_refused(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: x + 1)
    run = lib.Interpreter(gm).run

    def by_name() -> object:
        try:
            return run(x=2)
        except TypeError as raised:
            return str(raised)

    return [
        error(lambda: run(1, 2), chars=45),
        error(lambda: run(1, z=2), chars=43),
        by_name(),
    ]


@program(
    claims=("interp-node-by-node",),
    differs="interpreter-frees-unused",
    ours=[["output"], ["x", "y", "relu", "add", "output"]],
)
def what_is_left_in_env(lib: Lib) -> Seen:
    @no_type_check
    def f(x, y):
        torch.relu(y)
        return x + 1

    gm = lib.symbolic_trace(f)
    left = []
    for collect in (True, False):
        interpreter = lib.Interpreter(gm, garbage_collect_values=collect)
        interpreter.run(X, X)
        left.append([str(node) for node in interpreter.env])
    return left


@program()
def what_each_node_is_the_last_to_use(lib: Lib) -> Seen:
    @no_type_check
    def f(x, y, z):
        both = torch.cat([y, x, y])
        torch.relu(z)
        return torch.cat([z, both, x])

    frees = lib.Interpreter(lib.symbolic_trace(f)).user_to_last_uses
    return sorted((str(user), str(used)) for user, used in frees.items())


@program(
    claims=(
        "interp-get-attr",
        "interp-call-function",
        "interp-call-method",
        "interp-call-module",
        "interp-output",
        "interp-fetch-attr",
    )
)
def each_method_by_itself(lib: Lib) -> Seen:
    gm = traced(lib)
    run = lib.Interpreter(gm)
    return [
        run.get_attr("linear.weight", (), {}) is gm.linear.weight,
        run.call_function(operator.sub, (5, 3), {}),
        run.call_method("replace", ("aa", "a", "b"), {}),
        run.call_module("linear", (X,), {}),
        run.output("output", (X,), {}) is X,
        run.fetch_attr("inner.1.bias") is getattr(gm.inner, "1").bias,
        error(lambda: run.fetch_attr("inner.7.bias")),
        error(lambda: run.call_module("inner.nothing", (X,), {})),
    ]


@program(claims=("interp-output",))
def the_output_can_be_wrapped(lib: Lib) -> Seen:
    @no_type_check
    def output(self, target, args, kwargs):
        return {"result": args[0]}

    return subclass(lib.Interpreter, output=output)(traced(lib)).run(X)


@program(
    claims=("interp-fetch-args-kwargs", "interp-map-nodes-to-values"),
)
def arguments_are_looked_up_in_env(lib: Lib) -> Seen:
    g = lib.Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    n = g.call_function(print, (x, [y, {"k": x}]), {"sep": y})
    g.output(n)
    run = lib.Interpreter(nn.Module(), graph=g)
    run.env = {x: 1, y: 2}
    found = run.fetch_args_kwargs_from_env(n)
    del run.env[y]
    return [
        type(found).__name__,
        list(map(str, found)),
        str(run.map_nodes_to_values([x, (x, 7)], n)),
        error(lambda: run.map_nodes_to_values((y,), n), chars=75),
    ]


@program(claims=("interp-run",))
def structures_come_back_with_values(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: (x + 1, [x, {"k": x * 2}]))
    first, (same, inner) = lib.Interpreter(gm).run(2)
    return [first, same, inner["k"]]


@program(claims=("interp-run",))
def inputs_in_one_list(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x, y: x - y)
    args = [5, 3]
    result = lib.Interpreter(gm).boxed_run(args)
    run = lib.Interpreter(gm).boxed_run
    return [result, args, error(lambda: run([1])), error(lambda: run([1] * 3))]


@program(claims=("interp-run",))
def errors_say_which_node_was_running(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: (x + 1).missing(3))
    keyed = lib.symbolic_trace(lambda x: x["no such key"])
    seen = []
    for module, value in ((gm, X), (keyed, {"k": 1})):
        try:
            lib.Interpreter(module).run(value)
        except Exception as raised:
            lines = str(raised).splitlines()
            seen.append([type(raised).__name__, lines[0], lines[2]])
    return seen


@program(
    claims=("transformer-produces-module", "transformer-placeholder-get-attr")
)
def a_transformer_makes_an_equal_module(lib: Lib) -> Seen:
    gm = traced(lib)
    before = gm.code
    new = lib.Transformer(gm).transform()
    return [
        issubclass(lib.Transformer, lib.Interpreter),
        isinstance(new, lib.GraphModule) and new is not gm,
        *show(new, X),
        gm.code == before,
        new.linear is gm.linear,
    ]


@program(claims=("transformer-swap-example",))
def the_swap_example_as_a_transformer(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(sigmoid_then_neg)
    kind = swap(lib, "Transformer")
    return show(kind(gm).transform(), X) + show(
        kind(traced(lib)).transform(), X
    )


@program(claims=("transformer-placeholder-get-attr",))
def placeholders_and_attributes_become_proxies(lib: Lib) -> Seen:
    gm = traced(lib)
    transformer = lib.Transformer(gm)
    x = transformer.placeholder("x", (), {})
    y = transformer.placeholder("y", (3,), {})
    weight = transformer.get_attr("linear.weight", (), {})
    nodes = [p.node for p in (x, y, weight)]
    return [
        [node.graph is transformer.new_graph for node in nodes],
        [node.format_node() for node in nodes],
    ]


@program(
    claims=("transformer-produces-module",),
    differs="transformer-keeps",
    ours=[["x", "first", "add_1", "output"], ["kept", None], ["int", "None"]],
)
def what_a_transformer_keeps_of_a_node(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x", type_expr=int)
    first = g.create_node("call_function", torch.relu, (x,), name="first")
    first.meta["note"] = "kept"
    add = g.create_node("call_function", operator.add, (first, 1), name="add_1")
    g.output(add)
    new = lib.Transformer(lib.GraphModule(nn.Module(), g)).transform()
    nodes = list(new.graph.nodes)
    return [
        [node.name for node in nodes],
        [node.meta.get("note") for node in nodes[1:3]],
        [getattr(node.type, "__name__", "None") for node in nodes[:2]],
    ]


@program(claims=("transformer-produces-module",))
def operations_on_proxies_in_a_transformer(lib: Lib) -> Seen:
    parent = lib.Transformer

    @no_type_check
    def call_function(self, target, args, kwargs):
        if target is torch.relu:
            (x,) = args
            return (x > 0) * x
        return parent.call_function(self, target, args, kwargs)

    @no_type_check
    def call_module(self, target, args, kwargs):
        if target == "inner.0":
            return args[0].relu() + torch.ones(3)
        return parent.call_module(self, target, args, kwargs)

    methods = {"call_function": call_function, "call_module": call_module}
    decompose = subclass(parent, **methods)
    return show(decompose(traced(lib)).transform(), X)


@program(claims=("node-meta", "interp-node-by-node"))
def shapes_are_written_to_the_nodes(lib: Lib) -> Seen:
    @no_type_check
    def f(x):
        a, b = torch.split(x, 1, dim=1)
        return a + b, x.int()

    gm = lib.symbolic_trace(f)
    lib.passes.shape_prop.ShapeProp(gm).propagate(torch.ones(3, 2))
    seen = []
    for node in gm.graph.nodes:
        meta = node.meta["tensor_meta"]
        seen.append([node.name, str(meta), node.meta["type"].__name__])
    return seen


class Written:
    """A value that code can write."""

    def __repr__(self) -> str:
        return "None"


@program(differs="transformer-constants", ours="no error")
def a_constant_that_no_trace_records(lib: Lib) -> Seen:
    graph = lib.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(print, (x, Written())))
    gm = lib.GraphModule(nn.Module(), graph)
    return error(lambda: lib.Transformer(gm).transform(), chars=19)
