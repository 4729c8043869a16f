"""The tracer's own methods and flags: where a subclass steps in."""

from __future__ import annotations

import operator
from typing import Any, no_type_check

import torch
import torch.nn.functional as F
from torch import nn

from tests.parity.harness import Lib, Seen, error, program, show
from tests.parity.programs._subjects import (
    AnyValue,
    Inner,
    Outer,
    Overview,
    Root,
    lines,
    module_of,
    node_line,
    proxy,
    subclass,
    trace_with,
)


@program(claims=("tracer-hooks-overridable",))
def a_tracer_may_decide_what_is_true(lib: Lib) -> Seen:
    asked: list[str] = []

    def to_bool(self: AnyValue, obj: AnyValue) -> bool:
        asked.append(node_line(obj.node))
        return True

    @no_type_check
    def f(x):
        return x + 1 if x > 0 else x - 1

    return [lines(trace_with(lib, f, to_bool=to_bool)), asked]


@program(claims=("tracer-hooks-overridable", "iter-raises-trace-error"))
def a_tracer_may_iterate(lib: Lib) -> Seen:
    def each(self: AnyValue, obj: AnyValue) -> object:
        return iter([obj[0], obj[1]])

    @no_type_check
    def f(x):
        first, *rest = x
        return sum([i for i in x]) + first, rest  # noqa: C416

    return lines(trace_with(lib, f, iter=each))


@program(claims=("tracerbase-flags",))
def the_flags_of_a_tracer_are_class_attributes(lib: Lib) -> Seen:
    base = lib.proxy.TracerBase
    flags = (
        "record_stack_traces",
        "check_mutable_operations",
        "trace_asserts",
        "proxy_buffer_attributes",
        "traced_func_name",
    )
    changed = subclass(lib.Tracer, proxy_buffer_attributes=True)
    return [
        [getattr(base, flag) for flag in flags],
        [getattr(lib.Tracer(), flag) for flag in flags],
        [getattr(changed(), flag) for flag in flags],
        issubclass(lib.Tracer, base),
    ]


@program(claims=("tracerbase-state",))
def every_tracer_has_graph_scope_and_module_stack(lib: Lib) -> Seen:
    names = ("graph", "scope", "module_stack", "node_name_to_scope")
    appending = lib.proxy.GraphAppendingTracer(lib.Graph())
    tracing = lib.Tracer()
    before = [hasattr(tracing, name) for name in names[1:]]
    graph = tracing.trace(lambda x: x + 1)
    return [
        [name in lib.proxy.TracerBase.__annotations__ for name in names],
        [hasattr(appending, name) for name in names],
        before,
        [hasattr(tracing, name) for name in names],
        tracing.graph is graph,
        (tracing.scope.module_path, tracing.scope.module_type),
        dict(tracing.module_stack),
        isinstance(tracing.module_stack, dict),
    ]


@program(claims=("tracer-create-node-hook",))
def create_node_may_refuse(lib: Lib) -> Seen:
    def create_node(
        self: AnyValue, kind: str, target: AnyValue, *rest: Any, **named: Any
    ) -> AnyValue:
        if kind == "call_method" and target.endswith("_"):
            raise RuntimeError(f"no in-place operations, but {target}")
        return lib.Tracer.create_node(self, kind, target, *rest, **named)

    def trace(root: object) -> str:
        return error(lambda: trace_with(lib, root, create_node=create_node))

    return [trace(lambda x: x.add_(1)), trace(lambda x: x.add(1))]


@program(claims=("tracer-proxy-method",))
def proxy_chooses_the_class_of_proxies(lib: Lib) -> Seen:
    own = subclass(lib.Proxy, shout=lambda self: self.relu() * 2)
    seen: list[str] = []

    @no_type_check
    def f(self, x):
        y = self.sub(x) + self.w
        seen.extend(type(v).__name__ for v in (x, y, torch.relu(y), self.w))
        return y.shout()

    root = Root(f, sub=nn.ReLU(), w=nn.Parameter(torch.ones(1)))
    graph = trace_with(lib, root, proxy=lambda self, node: own(node, self))
    return [seen, lines(graph)]


@program(claims=("create-proxy-steps",))
def create_proxy_lowers_creates_and_wraps(lib: Lib) -> Seen:
    steps: list[str] = []

    def create_arg(self: AnyValue, a: object) -> AnyValue:
        steps.append(f"create_arg {type(a).__name__}")
        return base.create_arg(self, a)

    def create_node(self: AnyValue, kind: str, *rest: Any) -> AnyValue:
        steps.append(f"create_node {kind}")
        return base.create_node(self, kind, *rest)

    def wrap_node(self: AnyValue, node: AnyValue) -> AnyValue:
        steps.append(f"proxy {node.name}")
        return base.proxy(self, node)

    base = lib.proxy.GraphAppendingTracer
    spy = subclass(
        base, create_arg=create_arg, create_node=create_node, proxy=wrap_node
    )
    graph = lib.Graph()
    p = lib.Proxy(graph.placeholder("x"), spy(graph))
    total = p + 1
    order = [s.split()[0] for s in steps]
    return [
        type(total).__name__,
        total.node is list(graph.nodes)[-1],
        order[0],
        order[-2:],
        steps[-2:],
        sorted(set(order[:-2])),
    ]


@program(claims=("create-proxy-factory",))
def create_proxy_takes_name_type_and_factory(lib: Lib) -> Seen:
    t = lib.proxy.GraphAppendingTracer(lib.Graph())
    made: list[AnyValue] = []

    def factory(node: AnyValue) -> AnyValue:
        made.append(node)
        return lib.Proxy(node, t)

    p = t.create_proxy(
        "placeholder",
        "x",
        (),
        {},
        name="n",
        type_expr=int,
        proxy_factory_fn=factory,
    )
    q = t.create_proxy("call_function", operator.add, (p, 1), {}, "total")
    return [
        made == [p.node],
        (p.node.name, p.node.target, p.node.type is int),
        (q.node.name, q.node.type),
        str(t.graph),
    ]


class Stacked(nn.Module):
    """Its forward's lines are what stack traces name."""

    @no_type_check
    def forward(self, x):
        y = x * 3  # the line of mul
        return torch.relu(y)


def relu_of_triple(x: AnyValue) -> AnyValue:
    """A function not called forward."""
    y = x * 3  # in a function
    return torch.relu(y)


def last_line(node: AnyValue) -> str:
    """The last line of a Node's stack trace, markers aside."""
    trace = str(node.stack_trace)
    said = [line.strip(" ~^") for line in trace.splitlines()]
    return [line for line in said if line][-1]


@program(
    claims=("record-stack-traces",),
    differs="stack-traces-are-the-users",
    ours=[
        ["y = x * 3  # the line of mul", "return torch.relu(y)"],
        ["y = x * 3  # in a function", "return torch.relu(y)"],
    ],
)
def stack_traces_end_at_the_users_line_in_any_function(lib: Lib) -> Seen:
    seen = []
    for root in (Stacked(), relu_of_triple):
        graph = trace_with(lib, root, record_stack_traces=True)
        calls = [n for n in graph.nodes if n.op == "call_function"]
        seen.append([last_line(n) for n in calls])
    return seen


@program(claims=("check-mutable-operations",))
def mutating_functions_are_refused_on_demand(lib: Lib) -> Seen:
    def trace(root: object, **flags: object) -> str:
        return error(lambda: trace_with(lib, root, **flags), chars=32)

    on = {"check_mutable_operations": True}
    return [
        trace(lambda x: torch.relu_(x), **on),
        trace(lambda x: torch.relu(x), **on),
        trace(lambda x: x.add_(1), **on),
        trace(lambda x: x.add(1).mul_(2), **on),
        trace(lambda x: torch.relu_(x)),
    ]


@program(
    claims=("trace-asserts",),
    differs="trace-asserts-works",
    ours=[
        "no error",
        ["placeholder", "call_function", "call_function", "call_method"],
        ["assert_fn"],
        "AssertionError: Assertion failed",
        "no error",
    ],
)
def assertions_on_proxies_are_recorded_on_demand(lib: Lib) -> Seen:
    @no_type_check
    def f(x):
        assert x > 0
        return x.neg()

    raised = error(lambda: trace_with(lib, f, trace_asserts=True))
    if raised != "no error":
        return [raised]
    graph = trace_with(lib, f, trace_asserts=True)
    gm = lib.GraphModule(nn.Module(), graph)
    return [
        raised,
        [n.op for n in graph.nodes][:-1],
        [
            n.target.__name__
            for n in graph.nodes
            if n.op == "call_function" and n.target is not operator.gt
        ],
        error(lambda: gm(torch.tensor(-1.0))),
        error(lambda: gm(torch.tensor(1.0))),
    ]


@program(claims=("scope-object",))
def a_scope_is_a_path_and_a_module_type(lib: Lib) -> Seen:
    scope = lib.proxy.Scope("a.b", Inner)
    root = lib.Tracer().scope
    return [
        scope.module_path,
        scope.module_type is Inner,
        (root.module_path, root.module_type),
    ]


@program(claims=("scope-context-manager",))
def a_scope_is_overwritten_in_place_and_restored(lib: Lib) -> Seen:
    scope = lib.proxy.Scope("", None)

    def now() -> tuple[object, object]:
        kind = scope.module_type
        return scope.module_path, kind and kind.__name__

    seen: list[object] = [now()]
    manager = lib.proxy.ScopeContextManager(scope, lib.proxy.Scope("a", Outer))
    seen.append(now())
    with manager as entered:
        seen += [entered is scope, now()]
        inner = lib.proxy.Scope("a.b", Inner)
        with lib.proxy.ScopeContextManager(scope, inner) as again:
            seen += [again is scope, now()]
        seen.append(now())
    return [*seen, now()]


@program(claims=("scope-context-manager",))
def a_scope_is_restored_after_an_exception(lib: Lib) -> Seen:
    scope = lib.proxy.Scope("", None)

    def fail() -> None:
        inner = lib.proxy.Scope("a", Inner)
        with lib.proxy.ScopeContextManager(scope, inner):
            raise KeyError("inside")

    return [error(fail), scope.module_path, scope.module_type]


@program(claims=("node-name-to-scope",))
def every_node_is_entered_with_its_scope(lib: Lib) -> Seen:
    @no_type_check
    def forward(self, x):
        return self.outer(x + 1) * self.act(x)

    tracer = lib.Tracer()
    tracer.trace(Root(forward, outer=Outer(), act=nn.ReLU()))
    return [
        (name, path, kind and kind.__name__)
        for name, (path, kind) in tracer.node_name_to_scope.items()
    ]


@program(claims=("tracer-proxy-method", "create-proxy-factory"))
def attributes_come_from_the_tracers_proxies_too(lib: Lib) -> Seen:
    p = proxy(lib)
    values = [p.shape, p.shape[0], p.foo.bar, p.foo()]
    return [
        [type(v).__name__ for v in values],
        [v.tracer is p.tracer for v in values],
        show(lib.symbolic_trace(lambda x: x.shape[0] + x.a.b()))[1],
    ]


@program(claims=("create-proxy-steps",))
def create_proxy_can_be_overridden(lib: Lib) -> Seen:
    kinds: list[str] = []

    def create_proxy(
        self: AnyValue, kind: str, *args: Any, **named: Any
    ) -> AnyValue:
        kinds.append(kind)
        return lib.Tracer.create_proxy(self, kind, *args, **named)

    graph = trace_with(lib, Overview(), create_proxy=create_proxy)
    return [kinds, lines(graph)]


@program(claims=("tracer-hooks-overridable",))
def names_and_paths_can_be_overridden(lib: Lib) -> Seen:
    def path_of_module(self: AnyValue, mod: nn.Module) -> str:
        return f"moved.{lib.Tracer.path_of_module(self, mod)}"

    def get_fresh_qualname(self: AnyValue, prefix: str) -> str:
        return f"own{prefix}"

    graph = trace_with(
        lib,
        Root(lambda self, x: self.act(x) + torch.ones(1), act=nn.ReLU()),
        path_of_module=path_of_module,
        get_fresh_qualname=get_fresh_qualname,
    )
    return lines(graph)


@program(claims=("tracer-hooks-overridable",))
def trace_can_be_extended(lib: Lib) -> Seen:
    def trace(
        self: AnyValue, root: AnyValue, concrete_args: AnyValue = None
    ) -> AnyValue:
        graph = lib.Tracer.trace(self, root, concrete_args)
        for node in graph.nodes:
            node.meta["seen"] = True
        return graph

    tracer = subclass(lib.Tracer, trace=trace)()
    graph = tracer.trace(Overview())
    return [
        [n.meta.get("seen") for n in graph.nodes],
        graph._tracer_cls is type(tracer),
    ]


@program(claims=("tracer-hooks-overridable",))
def create_node_may_edit_the_keywords(lib: Lib) -> Seen:
    @no_type_check
    def create_node(self, kind, target, args, kwargs, *rest, **named):
        kwargs.pop("inplace", None)
        if target is torch.relu:
            kwargs["input"], args = args[0], ()
        create = lib.Tracer.create_node
        return create(self, kind, target, args, kwargs, *rest, **named)

    @no_type_check
    def f(x):
        return F.relu(torch.relu(x), inplace=True)

    return lines(trace_with(lib, f, create_node=create_node))


@program(claims=("tracer-hooks-overridable",))
def call_module_may_run_a_module_without_forward(lib: Lib) -> Seen:
    source = """
        from math import sqrt
        from torch import nn
        class Leaf(nn.Module):
            def forward(self, x):
                return sqrt(x.size(0)) + x
        """

    @no_type_check
    def by_method(self, m, _, args, named):
        return m.forward(*args, **named)

    @no_type_check
    def by_class(self, m, _, args, named):
        return type(m).forward(m, *args, **named)

    seen: list[Seen] = []
    for call_module in (by_method, by_class):
        with module_of(source) as elsewhere:
            root = Root(lambda self, x: self.a(x) * 2, a=elsewhere.Leaf())
            graph = trace_with(lib, root, call_module=call_module)
        seen.append(lines(graph))
    return seen
