"""Proxies: what stands in for a value while user code runs."""

from __future__ import annotations

import copy
import traceback
from typing import no_type_check

import torch
from torch.nn import functional as F

from tests.parity.harness import Lib, Seen, error, program, show
from tests.parity.programs._subjects import (
    AnyValue,
    lines,
    new_nodes,
    node_line,
    proxy,
    subclass,
)


@program(claims=("proxy-wraps-node",))
def a_proxy_wraps_one_node_and_each_operation_a_new_one(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    p = lib.Proxy(x)
    results = [p + 1, torch.relu(p), p.clamp(min=0), p[0], -p, p(2)]
    return [
        p.node is x,
        [isinstance(r, lib.Proxy) for r in results],
        [r.node is not x and r.node.graph is g for r in results],
        len({r.node for r in results}),
    ]


@program(claims=("proxy-records-not-computes",))
def operations_on_a_proxy_are_recorded_one_node_each(lib: Lib) -> Seen:
    p = proxy(lib)
    graph = p.node.graph
    return [
        new_nodes(graph, lambda: torch.relu(p)),
        new_nodes(graph, lambda: p.clamp(min=0)),
        new_nodes(graph, lambda: p + 1),
        new_nodes(graph, lambda: torch.add(p, p, alpha=2)),
    ]


@program(claims=("proxy-transparent",))
def ordinary_code_traces_unmodified(lib: Lib) -> Seen:
    @no_type_check
    def f(x, y):
        first, rest = x[0], x[1:, ..., None]
        z = 2 - first.sum() + y.T.reshape(-1)[: x.shape[0]] * x.ndim
        z = torch.cat([z, rest.flatten()], dim=0).clamp(min=-1, max=1.5)
        return {"z": z, "pair": (F.relu(y), abs(-y) ** 2 % 3)}

    gm = lib.symbolic_trace(f)
    x, y = torch.arange(6.0).reshape(2, 3), torch.ones(2, 2) * 1.25
    same = torch.equal(gm(x, y)["z"], f(x, y)["z"])
    return [*show(gm, x, y), same]


@program(claims=("proxy-transparent",))
def what_a_proxy_cannot_stand_for(lib: Lib) -> Seen:
    p = proxy(lib)

    def assign() -> None:
        p[0] = 1

    def delete() -> None:
        del p[0]

    return [
        error(lambda: bool(p)),
        error(lambda: list(p)),
        error(lambda: len(p)),
        error(lambda: int(p)),
        error(lambda: float(p)),
        error(lambda: complex(p)),
        error(lambda: [1, 2][p]),
        error(lambda: range(p)),
        error(lambda: round(p)),
        error(lambda: divmod(p, 2)),
        error(lambda: reversed(p)),
        error(lambda: 1 in p),
        error(lambda: 0 < p < 1),
        error(lambda: not p),
        error(assign),
        error(delete),
        isinstance(p, torch.Tensor),
        len(list(p.node.graph.nodes)),
    ]


@program(claims=("proxy-default-tracer", "graph-appending-tracer"))
def a_raw_node_in_a_proxy_extends_its_graph(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    p = lib.Proxy(x)
    given = lib.proxy.GraphAppendingTracer(g)
    return [
        type(p.tracer).__name__,
        p.tracer.graph is g,
        new_nodes(g, lambda: p + 1),
        lib.Proxy(x, given).tracer is given,
        (p * 2).tracer is p.tracer,
    ]


@program(claims=("graph-appending-tracer",))
def a_graph_appending_tracer_starts_outside_every_module(lib: Lib) -> Seen:
    g = lib.Graph()
    t = lib.proxy.GraphAppendingTracer(g)
    seen = [
        isinstance(t, lib.proxy.TracerBase),
        isinstance(t, lib.Tracer),
        (t.scope.module_path, t.scope.module_type),
        dict(t.module_stack),
        dict(t.node_name_to_scope),
    ]
    p = t.create_proxy("placeholder", "x", (), {})
    total = p + 1
    return [
        *seen,
        lines(g),
        t.node_name_to_scope,
        "nn_module_stack" in total.node.meta,
    ]


@program(claims=("proxy-getattr-attribute",))
def reading_an_attribute_gives_an_attribute(lib: Lib) -> Seen:
    p = proxy(lib)
    a = p.foo
    return [
        type(a).__name__,
        type(a) is lib.proxy.Attribute,
        issubclass(lib.proxy.Attribute, lib.Proxy),
        a.root is p,
        a.attr,
        a.tracer is p.tracer,
    ]


@program(claims=("attribute-call-is-call-method",))
def calling_an_attribute_records_call_method(lib: Lib) -> Seen:
    p = proxy(lib)
    graph = p.node.graph
    return [
        new_nodes(graph, lambda: p.clamp(min=0.0)),
        new_nodes(graph, lambda: p.no_such_method(1, b=p)),
        new_nodes(graph, lambda: p.view(p.size(0), -1)),
    ]


@program(claims=("attribute-value-lazy",))
def an_attribute_becomes_a_node_when_its_value_is_used(lib: Lib) -> Seen:
    p = proxy(lib)
    graph = p.node.graph
    a = p.foo
    alone = len(list(graph.nodes))
    used = new_nodes(graph, lambda: a + 1)
    again = new_nodes(graph, lambda: a * 2)
    return [alone, used, again, a.node is a.node, node_line(a.node)]


@program(claims=("attribute-value-lazy", "attribute-call-is-call-method"))
def attributes_of_attributes(lib: Lib) -> Seen:
    p = proxy(lib)
    graph = p.node.graph
    return [
        new_nodes(graph, lambda: p.foo.bar.baz),
        new_nodes(graph, lambda: p.foo.bar.baz(3)),
        new_nodes(graph, lambda: p.shape[0]),
        new_nodes(graph, lambda: p.foo(1).bar(2)),
        new_nodes(graph, lambda: torch.relu(p.T)),
        new_nodes(graph, lambda: [p.unused, p.foo.unused]),
    ]


@program(claims=("attribute-value-lazy",))
def a_method_kept_and_called_later_is_still_a_method(lib: Lib) -> Seen:
    @no_type_check
    def f(x):
        add = x.add
        shape = x.shape
        return add(1), add(2), shape[0], shape[1], x.shape[0]

    return show(lib.symbolic_trace(f), torch.zeros(2, 3))


@program()
def an_attribute_assigned_to_a_proxy_stays_on_the_proxy(lib: Lib) -> Seen:
    p = proxy(lib)
    p.note = 3
    return [p.note, len(list(p.node.graph.nodes))]


@program(claims=("proxy-call",))
def calling_a_proxy_records_dunder_call(lib: Lib) -> Seen:
    p = proxy(lib)
    graph = p.node.graph
    gm = lib.symbolic_trace(lambda f, x: f(x, dim=0) + f(x))
    return [
        new_nodes(graph, lambda: p(3, z=4)),
        new_nodes(graph, lambda: p()(p)),
        *show(gm, torch.sum, torch.ones(2)),
    ]


@program(claims=("bool-raises-trace-error",))
def a_proxy_has_no_truth_value(lib: Lib) -> Seen:
    def message(act: AnyValue) -> str:
        try:
            lib.symbolic_trace(act)
        except lib.proxy.TraceError as raised:
            return str(raised).splitlines()[0]
        return "no error"

    @no_type_check
    def looping(x):
        while x > 0:
            x = x - 1
        return x

    @no_type_check
    def asserting(x):
        assert x.sum() == 3
        return x

    p = proxy(lib)
    return [
        error(lambda: bool(p), chars=100),
        error(lambda: bool(p.foo), chars=100),
        message(lambda x: x if x.sum() else -x),
        message(lambda x: x > 0 and x),
        message(lambda x: x or 1),
        message(lambda x: not x),
        message(lambda x: [i for i in range(3) if x]),
        message(lambda x: x in (1, 2)),
        message(lambda x: any([x])),
        message(looping),
        message(asserting),
    ]


@program(claims=("dynamic-control-flow-unsupported",))
def control_flow_on_inputs_cannot_be_traced(lib: Lib) -> Seen:
    seen: list[str] = []

    @no_type_check
    def on_size(x):
        d = x.size()[0]
        seen.append(type(d).__name__)
        if d == 3:
            return x
        return -x

    @no_type_check
    def on_shape(x):
        return x.relu() if x.size[0] == 3 else x

    @no_type_check
    def until(x):
        while x.sum() < 10:
            x = x * 2
        return x

    return [
        error(lambda: lib.symbolic_trace(on_size), chars=80),
        error(lambda: lib.symbolic_trace(on_shape), chars=80),
        error(lambda: lib.symbolic_trace(until), chars=80),
        seen,
    ]


@program(claims=("trace-error-points-at-user-code",))
def the_traceback_of_a_trace_error_shows_the_users_line(lib: Lib) -> Seen:
    @no_type_check
    def branching(x):
        y = x + 1
        if y.sum() > 0:
            return y
        return x

    try:
        lib.symbolic_trace(branching)
    except lib.proxy.TraceError as raised:
        frames = traceback.extract_tb(raised.__traceback__)
        names = [frame.name for frame in frames]
        user = names.index("branching")
        inside = names[user + 1 :]
        return [
            frames[user].line,
            "__bool__" in inside,
            "to_bool" in inside,
        ]
    return "no error"


@program(claims=("trace-error-class",))
def trace_error_is_a_value_error(lib: Lib) -> Seen:
    raised = lib.proxy.TraceError
    return [issubclass(raised, ValueError), raised.__name__]


@program(claims=("iter-raises-trace-error",))
def iterating_a_proxy_is_refused(lib: Lib) -> Seen:
    p = proxy(lib)

    @no_type_check
    def looping(x):
        for row in x:
            x = x + row
        return x

    @no_type_check
    def products(x, y):
        return sum([i * j for i, j in zip(x, y, strict=False)])

    def trace(root: AnyValue) -> str:
        return error(lambda: lib.symbolic_trace(root), chars=31)

    return [
        error(lambda: iter(p), chars=31),
        error(lambda: max(*p), chars=31),
        trace(looping),
        trace(products),
        trace(lambda x: sum(i + 1 for i in x)),
        trace(lambda x: torch.add(*x)),
        trace(lambda x: [*x]),
        trace(lambda x: list(map(torch.relu, x))),
    ]


@program(claims=("iter-raises-trace-error",))
def unpacking_a_known_number_of_items_is_indexing(lib: Lib) -> Seen:
    @no_type_check
    def f(x):
        a, b, c = x
        (d, e), g = a, b
        return c - d + e * g

    @no_type_check
    def in_a_loop(x):
        return [first + second for first, second in [x, x + 1]]

    @no_type_check
    def with_a_star(x):
        a, *rest = x
        return a, rest

    x = torch.arange(6).reshape(3, 2)
    return [
        *show(lib.symbolic_trace(f), torch.arange(18).reshape(3, 2, 3)),
        *show(lib.symbolic_trace(in_a_loop), x[:2]),
        error(lambda: lib.symbolic_trace(with_a_star), chars=31),
    ]


@program(claims=("keys-hook",))
def keys_go_through_the_tracer(lib: Lib) -> Seen:
    p = proxy(lib)

    @no_type_check
    def f(x):
        return dict(**x)

    keyed = subclass(lib.Tracer, keys=lambda self, obj: ["a", "b"])
    graph = keyed().trace(f)
    return [
        new_nodes(p.node.graph, lambda: p.keys()),
        error(lambda: lib.symbolic_trace(f), chars=31),
        lines(graph),
        show(lib.GraphModule(torch.nn.Module(), graph)),
    ]


@program(claims=("len-raises",))
def the_length_of_a_proxy_is_unknown(lib: Lib) -> Seen:
    p = proxy(lib)
    return [
        error(lambda: len(p), chars=55),
        error(lambda: lib.symbolic_trace(lambda x: x / len(x)), chars=55),
        "wrap('len')" in error(lambda: len(p), chars=200),
    ]


@program(claims=("proxy-retracing",))
def a_rewrite_stated_as_a_function_of_proxies(lib: Lib) -> Seen:
    @no_type_check
    def relu_decomposition(x):
        return (x > 0) * x

    gm = lib.symbolic_trace(lambda x: F.relu(x - 1) + F.relu(-x))
    graph = lib.Graph()
    tracer = lib.proxy.GraphAppendingTracer(graph)
    env: dict[AnyValue, AnyValue] = {}
    for node in gm.graph.nodes:
        if node.target is F.relu:
            args = [lib.Proxy(env[a], tracer) for a in node.args]
            env[node] = relu_decomposition(*args).node
        else:
            env[node] = graph.node_copy(node, lambda n: env[n])
    graph.lint()
    new = lib.GraphModule(gm, graph)
    x = torch.linspace(-2, 2, 7)
    return [*show(new, x), torch.equal(new(x), gm(x))]


@program()
def proxies_print_as_their_nodes_name(lib: Lib) -> Seen:
    p = proxy(lib)
    return [repr(p), str(p + 1), f"{p}", f"{p.foo!r}"]


@program()
def asking_a_proxys_type_is_silently_constant(lib: Lib) -> Seen:
    @no_type_check
    def f(x):
        if isinstance(x, torch.Tensor):
            return x + 1
        return x - len(str(x)), callable(x), hasattr(x, "anything")

    return show(lib.symbolic_trace(f), torch.zeros(2))


@program()
def a_proxy_can_be_deep_copied_with_its_graph(lib: Lib) -> Seen:
    p = proxy(lib)
    q = copy.deepcopy(p)
    q + 1
    return [
        q.node.name,
        q.node.graph is p.node.graph,
        q.node is p.node,
        len(list(p.node.graph.nodes)),
    ]


@program()
def getattr_with_a_default_is_an_attribute(lib: Lib) -> Seen:
    @no_type_check
    def f(x):
        return getattr(x, "shape", None)[0] + getattr(x, "ndim", 0)

    return show(lib.symbolic_trace(f), torch.zeros(2, 3))
