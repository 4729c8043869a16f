"""Bad input to tracing, code generation and graph modules."""

from __future__ import annotations

import operator
from typing import Any, no_type_check

import torch
from torch import nn

from tests.parity.harness import Lib, Seen, error, program
from tests.parity.programs._subjects import (
    AnyValue,
    Inner,
    Overview,
    Root,
    lines,
    proxy,
)


def kind(act: AnyValue) -> str:
    """The type of what `act` raises, or 'no error'."""
    return error(act).partition(":")[0]


@program()
def forwards_that_raise_keep_their_exception(lib: Lib) -> Seen:
    class OwnError(Exception):
        """Of the user's."""

    @no_type_check
    def raising(self, x):
        raise OwnError("from forward", x.sum())

    @no_type_check
    def deep(x):
        return {"a": [x.y.z(1)]}["b"]

    return [
        error(lambda: lib.symbolic_trace(Root(raising)), chars=15),
        error(lambda: lib.symbolic_trace(deep)),
        error(lambda: lib.symbolic_trace(lambda x: x.shape + undefined)),  # type: ignore[name-defined]  # noqa: F821
        error(lambda: lib.symbolic_trace(lambda x: 1 / 0)),
    ]


@program()
def values_that_cannot_be_returned(lib: Lib) -> Seen:
    @no_type_check
    def generating(x):
        yield x

    @no_type_check
    async def waiting(x):
        return x

    def trace(root: AnyValue) -> str:
        return error(lambda: lib.symbolic_trace(root), chars=45)

    class Own:
        """No argument of any graph."""

    said = trace(waiting)
    return [
        trace(generating),
        said.partition("<")[0],
        trace(lambda x: {x: 1}),
        trace(lambda x: {1, 2}),
        trace(lambda x: (x, lambda y: y)),
        trace(lambda x: Own()).partition("<")[0],
        trace(lambda x: iter([x])),
    ]


@program()
def roots_without_self_or_forward(lib: Lib) -> Seen:
    class NoForward(nn.Module):
        """Has no forward."""

    class Selfless(nn.Module):
        @staticmethod
        def forward(x: AnyValue) -> AnyValue:
            return x

    class Starred(nn.Module):
        def forward(*args: Any) -> object:
            return args[1]

    return [
        kind(lambda: lib.symbolic_trace(NoForward())),
        kind(lambda: lib.symbolic_trace(Starred())),
        kind(lambda: lib.symbolic_trace("forward")),
        kind(lambda: lib.symbolic_trace()),
    ]


@program()
def proxies_where_python_wants_a_value(lib: Lib) -> Seen:
    @no_type_check
    def formatting(x):
        return x + int(f"{x:d}")

    @no_type_check
    def matching(x):
        match x:
            case [a, b]:
                return a + b
            case _:
                return x

    @no_type_check
    def entering(x):
        with x:
            return x

    def trace(root: AnyValue) -> str:
        return error(lambda: lib.symbolic_trace(root), chars=44)

    return [
        trace(formatting),
        trace(entering),
        trace(lambda x: sorted([x, 1])),
        trace(lambda x: {x.a: 1}[x]),
        trace(lambda x: "a" * x),
        trace(lambda x: next(x)),
        trace(lambda x: range(3)[x]),
        kind(lambda: lib.symbolic_trace(matching)),
    ]


@program()
def what_module_level_bugs_look_like(lib: Lib) -> Seen:
    return [
        error(lambda: lib.GraphModule(nn.Module()), chars=12).partition("(")[0],
        error(lambda: lib.Tracer().trace(), chars=12).partition("(")[0],
        error(lambda: lib.Proxy(), chars=12).partition("(")[0],
        kind(lambda: lib.Proxy(None)),
        kind(lambda: lib.proxy.GraphAppendingTracer()),
        kind(lambda: proxy(lib).tracer.create_proxy("call_function")),
    ]


@program()
def targets_that_the_root_lacks(lib: Lib) -> Seen:
    g = lib.Graph()
    g.output(g.get_attr("missing.path"))
    calling = lib.Graph()
    x = calling.placeholder("x")
    calling.output(calling.call_module("linear.missing", (x,)))

    def build(root: object, graph: AnyValue) -> str:
        try:
            lib.GraphModule(root, graph)
        except AttributeError:
            return "AttributeError"
        except RuntimeError as raised:
            return str(raised)[:70]
        return "no error"

    return [
        build(nn.Module(), g),
        build(Overview(), calling),
        build({}, g),
        build({"missing": 1}, g),
    ]


@program()
def graphs_whose_code_fails_when_it_runs(lib: Lib) -> Seen:
    def run(build: AnyValue, *inputs: object) -> str:
        g = lib.Graph()
        build(g, g.placeholder("x"))
        gm = lib.GraphModule({"linear": nn.Linear(2, 2)}, g)
        return error(lambda: gm(*inputs), chars=40)

    def missing_method(g: AnyValue, x: AnyValue) -> None:
        g.output(g.call_method("no_such_method", (x,)))

    def unknown_keyword(g: AnyValue, x: AnyValue) -> None:
        g.output(g.call_function(torch.relu, (x,), {"no_such": 1}))

    def wrong_shape(g: AnyValue, x: AnyValue) -> None:
        g.output(g.call_module("linear", (x,)))

    def not_called(g: AnyValue, x: AnyValue) -> None:
        g.output(g.call_module("linear.weight", (x,)))

    return [
        run(missing_method, torch.ones(1)),
        run(unknown_keyword, torch.ones(1)).partition("(")[0],
        run(wrong_shape, torch.ones(1, 3)),
        kind(lambda: run(not_called, torch.ones(2))),
    ]


def build_error(lib: Lib, build: AnyValue) -> str:
    """What building a graph, and a module of it, raises; 'runs' if nothing."""
    g = lib.Graph()
    try:
        build(g)
        lib.GraphModule({}, g)
    except Exception as raised:
        return type(raised).__name__
    return "runs"


@program(
    differs="no-output",
    ours=["runs", "RuntimeError", "runs"],
)
def a_graph_without_output_has_no_code(lib: Lib) -> Seen:
    def empty(g: AnyValue) -> None:
        del g

    def placeholders(g: AnyValue) -> None:
        g.placeholder("x")

    def whole(g: AnyValue) -> None:
        g.output(g.placeholder("x"))

    return [build_error(lib, build) for build in (empty, placeholders, whole)]


@program(
    differs="graph-shape-checked",
    ours=["RuntimeError", "RuntimeError", "RuntimeError", "RuntimeError"],
)
def signatures_that_python_refuses(lib: Lib) -> Seen:
    def twice(g: AnyValue) -> None:
        g.placeholder("x")
        g.output(g.create_node("placeholder", "x", (), {}, name="other"))

    def default_first(g: AnyValue) -> None:
        g.placeholder("x", default_value=1)
        g.output(g.placeholder("y"))

    def two_stars(g: AnyValue) -> None:
        g.placeholder("*args")
        g.output(g.placeholder("*more"))

    def named_self(g: AnyValue) -> None:
        g.placeholder("x")
        g.output(g.placeholder("self"))

    builds = (twice, default_first, two_stars, named_self)
    return [build_error(lib, build) for build in builds]


@program(
    differs="graph-shape-checked",
    ours=["RuntimeError", None],
)
def a_keyword_only_parameter_after_a_default(lib: Lib) -> Seen:
    @no_type_check
    def f(x, y=2, *, z):
        return x + y + z

    raised = kind(lambda: lib.symbolic_trace(f))
    return [
        raised,
        lib.symbolic_trace(f)(1, z=3) if raised == "no error" else None,
    ]


@program()
def attributes_assigned_to_modules_while_tracing(lib: Lib) -> Seen:
    @no_type_check
    def forward(self, x):
        self.sub.kept = x + 1
        return self.sub(self.sub.kept)

    root = Root(forward, sub=Inner())
    return lines(lib.Tracer().trace(root))


@program()
def a_submodule_replaced_while_tracing(lib: Lib) -> Seen:
    @no_type_check
    def forward(self, x):
        y = self.sub(x)
        self.sub = nn.ReLU()
        return self.sub(y)

    root = Root(forward, sub=nn.Tanh())
    return [
        error(lambda: lib.symbolic_trace(root), chars=37),
        error(lambda: lib.symbolic_trace(Root(lambda self, x: self.gone(x)))),
    ]


@program()
def wrong_arguments_for_the_tracer(lib: Lib) -> Seen:
    return [
        kind(lambda: lib.Tracer(no_such_option=True)),
        kind(lambda: lib.Tracer().path_of_module(nn.ReLU())),
        kind(lambda: lib.Tracer().create_arg(operator.add)),
    ]
