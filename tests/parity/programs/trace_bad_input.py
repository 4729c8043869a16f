"""Bad input to tracing, code generation and graph modules."""

from __future__ import annotations

from typing import Any, no_type_check

from torch import nn

from tests.parity.harness import Lib, Seen, error, program
from tests.parity.programs._subjects import AnyValue, Overview, Root


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
