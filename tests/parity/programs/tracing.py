"""Tracing: running a root once with proxies for its inputs."""

from __future__ import annotations

import functools
from typing import Any, no_type_check

import torch
from torch import nn

from tests.parity.harness import Lib, Seen, error, program, show
from tests.parity.programs._subjects import (
    AnyValue,
    Inner,
    Overview,
    Root,
    lines,
    node_line,
    subclass,
    trace_with,
)


@program(claims=("tracer-behind-symbolic-trace",))
def a_tracer_gives_the_graph_of_symbolic_trace(lib: Lib) -> Seen:
    graph = lib.Tracer().trace(Overview())
    gm = lib.symbolic_trace(Overview())
    return [
        type(graph).__name__,
        isinstance(gm, lib.GraphModule),
        str(graph) == str(gm.graph),
        str(graph),
    ]


@program(claims=("tracer-subclassing",))
def a_subclass_of_tracer_traces_and_its_graph_runs(lib: Lib) -> Seen:
    tracer = subclass(lib.Tracer)()
    root = Root(lambda self, x: torch.relu(x) + torch.ones(3, 4))
    graph = tracer.trace(root)
    return show(lib.GraphModule(root, graph), -torch.ones(3, 4))


@program(claims=("trace-root-kinds",))
def a_root_is_a_module_or_a_function(lib: Lib) -> Seen:
    selves: list[object] = []

    @no_type_check
    def forward(self, x):
        selves.append(self)
        return x + 1

    @no_type_check
    def function(x):
        return x + 1

    root = Root(forward)
    return [
        lines(lib.Tracer().trace(root)),
        selves[0] is root and len(selves) == 1,
        lines(lib.Tracer().trace(function)),
        lines(lib.Tracer().trace(lambda x: -x)),
    ]


@program(claims=("trace-root-kinds",))
def other_callables_are_no_roots(lib: Lib) -> Seen:
    class Callable:
        def __call__(self, x: object) -> object:
            return x

        def method(self, x: object) -> object:
            return x

    roots = (
        torch.relu,
        len,
        functools.partial(torch.add, 1),
        Callable().method,
        Callable(),
        Callable,
        3,
        None,
    )
    return [
        error(lambda r=root: lib.Tracer().trace(r), chars=21)  # type: ignore[misc]
        for root in roots
    ]


@program(claims=("trace-function-root",))
def a_functions_root_is_a_new_module_for_constants(lib: Lib) -> Seen:
    tracer = lib.Tracer()
    constant = torch.ones(2)
    graph = tracer.trace(lambda x: x + constant)
    kept = [n.target for n in graph.nodes if n.op == "get_attr"]
    module_tracer, module = lib.Tracer(), Overview()
    module_tracer.trace(module)
    return [
        type(tracer.root) is nn.Module,
        kept,
        getattr(tracer.root, kept[0]) is constant,
        module_tracer.root is module,
    ]


@program(claims=("trace-runs-root-with-proxies",))
def the_root_is_called_once_with_proxies(lib: Lib) -> Seen:
    seen: list[object] = []

    @no_type_check
    def f(x, y=2, *rest, k=3, **more):
        inputs = (x, y, rest, k, more)
        seen.append([isinstance(v, lib.Proxy) for v in inputs])
        return x, [y, {"k": k}], (rest, more, 1, None, "a", slice(x, 1))

    graph = lib.Tracer().trace(f)
    output = list(graph.nodes)[-1]
    return [
        seen,
        output.op,
        output.target,
        repr(output.args),
        repr(output.kwargs),
    ]


@program(claims=("trace-runs-root-with-proxies",))
def what_the_root_returns_is_the_output(lib: Lib) -> Seen:
    roots: list[AnyValue] = [
        lambda x: x,
        lambda x: None,
        lambda x: 3,
        lambda: 4,
        lambda x: (),
        lambda x: [],
        lambda x: {},
        lambda x: [x, [x, (x,)]],
        lambda x: {"a": x, "b": {"c": [x]}},
        lambda x: (x.T, x.a.b),
        lambda x: "text",
        lambda x: (x, x),
    ]
    gms = [lib.symbolic_trace(root) for root in roots]
    return [show(gm) for gm in gms]


@program(claims=("create-args-for-root",))
def every_parameter_gets_its_placeholder(lib: Lib) -> Seen:
    @no_type_check
    def f(a, b, c=1, d=None, e="text", g=(1, 2), *, h=4, i=2.5):
        return a + b + c + h + i, d, e, g

    @no_type_check
    def plain(a, b=1):
        return a + b

    @functools.wraps(plain)
    def decorated(*args: Any, **kwargs: Any) -> AnyValue:
        return plain(*args, **kwargs) * 2

    @no_type_check
    def positional(x, /, y):
        return x - y

    gm = lib.symbolic_trace(f)
    return [
        *show(gm),
        gm(1, 2, h=3)[0],
        gm(1, 2, 3, 4, 5, 6, 7, 8)[0],
        *show(lib.symbolic_trace(decorated), 5),
        *show(lib.symbolic_trace(positional), 5, 3),
    ]


@program(claims=("create-args-for-root",))
def create_args_for_root_can_be_called_and_overridden(lib: Lib) -> Seen:
    seen: list[object] = []

    def create_args(
        self: AnyValue, fn: AnyValue, is_module: bool, *rest: Any
    ) -> AnyValue:
        result = lib.Tracer.create_args_for_root(self, fn, is_module, *rest)
        seen.append((is_module, len(result[1]), result[0] is fn))
        return result

    members = {"create_args_for_root": create_args}
    return [
        lines(trace_with(lib, Overview(), **members)),
        lines(trace_with(lib, lambda x, y: x + y, **members)),
        seen,
    ]


@program(claims=("create-args-varargs",))
def starred_parameters_of_the_root(lib: Lib) -> Seen:
    @no_type_check
    def f(x, *args, **kwargs):
        return x + args[0] * kwargs["scale"]

    @no_type_check
    def only(*args):
        return args[0] + args[1]

    @no_type_check
    def named(x, *, y=2, **options):
        return x + y + options["z"]

    @no_type_check
    def forward(self, *args, **kwargs):
        return args[0] + kwargs["k"]

    gm = lib.symbolic_trace(f)
    return [
        lines(gm.graph)[:3],
        *show(gm),
        gm(1, 2, 3, scale=4),
        *show(lib.symbolic_trace(only), 5, 6),
        *show(lib.symbolic_trace(named)),
        lib.symbolic_trace(named)(1, z=3),
        show(lib.symbolic_trace(Root(forward))),
    ]


@program(claims=("patch-module-getattr-call",))
def module_call_and_getattr_are_patched_while_the_root_runs(lib: Lib) -> Seen:
    def patched() -> list[bool]:
        return [
            nn.Module.__call__ is not call,
            nn.Module.__getattr__ is not read,
        ]

    call, read = nn.Module.__call__, nn.Module.__getattr__
    seen: list[object] = [patched()]

    @no_type_check
    def forward(self, x):
        seen.append(patched())
        if self.fails:
            raise KeyError("in forward")
        return self.sub(x)

    root = Root(forward, sub=Inner())
    root.__dict__["fails"] = False
    lib.Tracer().trace(root)
    seen.append(patched())
    root.__dict__["fails"] = True
    seen.append(error(lambda: lib.Tracer().trace(root)))
    return [*seen, patched()]


@program(claims=("getattr-parameter-becomes-proxy",))
def reading_a_parameter_gives_one_proxy(lib: Lib) -> Seen:
    seen: list[object] = []

    @no_type_check
    def forward(self, x):
        first, second = self.w, self.w
        seen.append(type(first).__name__)
        seen.append(first is second and first.node is second.node)
        seen.append(node_line(first.node))
        return x * first + self.sub.l.bias + self.sub.l.bias

    graph = lib.Tracer().trace(
        Root(forward, w=nn.Parameter(torch.ones(2)), sub=Inner())
    )
    return [*seen, lines(graph)]


@program(claims=("getattr-parameter-becomes-proxy",))
def shared_parameters_have_their_first_name(lib: Lib) -> Seen:
    @no_type_check
    def forward(self, x):
        return x * self.a * self.b * self.sub.w

    shared = nn.Parameter(torch.ones(2))
    sub = Root(lambda self, x: x, w=shared)
    return lines(lib.Tracer().trace(Root(forward, a=shared, b=shared, sub=sub)))


@program(claims=("getattr-parameter-becomes-proxy",))
def getattr_of_the_tracer_can_be_overridden(lib: Lib) -> Seen:
    asked: list[tuple[str, str]] = []

    def getattr_(
        self: AnyValue, attr: str, value: AnyValue, cache: AnyValue
    ) -> AnyValue:
        asked.append((attr, type(value).__name__))
        return value

    graph = trace_with(lib, Overview(), getattr=getattr_)
    return [asked, lines(graph)]


@program(claims=("traced-func-name",))
def another_method_than_forward_can_be_traced(lib: Lib) -> Seen:
    class Going(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.act = nn.ReLU()

        @no_type_check
        def forward(self, x):
            return x

        @no_type_check
        def go(self, x, by=2):
            return self.act(x) * by

    going = trace_with(lib, Going(), traced_func_name="go")
    return [
        lines(going),
        error(
            lambda: trace_with(lib, Going(), traced_func_name="missing"),
            chars=14,
        ),
        lines(trace_with(lib, lambda x: x + 1, traced_func_name="go")),
    ]


@program(claims=("buffers-proxied-flag",))
def buffers_are_proxied_on_demand(lib: Lib) -> Seen:
    @no_type_check
    def forward(self, x):
        return self.b.sum() + x * self.sub.deep

    def graph(flag: bool) -> list[str]:
        sub = Root(lambda self, x: x, deep=torch.ones(1))
        root = Root(forward, b=torch.ones(2), sub=sub)
        return lines(trace_with(lib, root, proxy_buffer_attributes=flag))

    return [graph(True), graph(False)]


@program(claims=("parameter-proxy",))
def a_parameter_proxy_keeps_its_parameter(lib: Lib) -> Seen:
    g = lib.Graph()
    t = lib.proxy.GraphAppendingTracer(g)
    node = g.get_attr("w")
    w = nn.Parameter(torch.ones(2, 3))
    p = lib.proxy.ParameterProxy(t, node, "w", w)
    return [
        isinstance(p, lib.Proxy),
        p.param is w,
        p.name,
        repr(p),
        error(
            lambda: lib.proxy.ParameterProxy(t, node, "w", torch.ones(2)),
            chars=14,
        ),
        node_line((p + 1).node),
        (p.shape, p.ndim, p.size(), p.dim(), p.numel(), p.nelement()),
        [type(p.dtype).__name__, type(p.relu()).__name__],
        lines(g),
    ]


@program(claims=("parameter-proxy-shape-attributes",))
def shapes_of_parameters_may_decide(lib: Lib) -> Seen:
    seen: list[object] = []

    @no_type_check
    def forward(self, x):
        p = self.p
        values = (p.shape, p.ndim, p.size(), p.dim(), p.numel(), p.nelement())
        seen.append([isinstance(v, lib.Proxy) for v in values])
        if p.shape[0] == 2 and p.numel() > 3:
            return x + p.sum() * p.dtype_of
        return x

    def root() -> Root:
        return Root(forward, p=nn.Parameter(torch.ones(2, 3)))

    graph = lib.Tracer(param_shapes_constant=True).trace(root())
    return [lines(graph), seen, error(lambda: lib.Tracer().trace(root()))]
