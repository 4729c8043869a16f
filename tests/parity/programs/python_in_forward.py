"""Python in forward: what of the language tracing runs through."""

from __future__ import annotations

import contextlib
import copy
import operator
from typing import no_type_check

import torch
from torch import nn

from tests.parity.harness import Lib, Seen, error, program, show
from tests.parity.programs._subjects import AnyValue, Inner, Root, lines, proxy


@program(claims=("proxy-transparent",))
def statements_of_every_kind(lib: Lib) -> Seen:
    @no_type_check
    def f(x):
        if (n := 3) > 2:
            x = x + n
        with contextlib.nullcontext(2) as two:
            x = x * two
        try:
            raise ValueError
        except ValueError as problem:
            x = x - len(problem.args)
        finally:
            x = -x
        for i, name in enumerate("ab"):
            if i == 1:
                break
            x = x + ord(name)
        else:
            x = None
        a, (b, *c) = x, (x + 1, x + 2, x + 3)
        del b
        assert n == 3
        match n:
            case 3:
                a = a * 10
        return a, c, [v for v in c if v is not x], {id(v) > 0: v for v in c}

    return show(lib.symbolic_trace(f), torch.tensor(1.0))


@program(claims=("iter-raises-trace-error",))
def shapes_taken_apart(lib: Lib) -> Seen:
    @no_type_check
    def f(x):
        b, c = x.shape
        first, second = x.size()
        return (
            x.reshape(c, b),
            first * second,
            x.size()[:-1] + torch.Size((1, 3)),
        )

    return [
        *show(lib.symbolic_trace(f), torch.ones(2, 3)),
        error(lambda: lib.symbolic_trace(lambda x: x.view(*x.shape)), chars=31),
        error(
            lambda: lib.symbolic_trace(lambda x: torch.zeros(*x.shape)),
            chars=31,
        ),
    ]


@program(claims=("non-torch-functions",))
def texts_made_of_proxies(lib: Lib) -> Seen:
    @no_type_check
    def f(x):
        y = x + 1
        table = {x: "x", y: "y"}
        return (
            f"{x} {y!r} {x.shape}",
            str([y]),
            table[x],
            x is y,
            bool([x]),
            id(x) > 0,
        )

    return [repr(n.args) for n in lib.Tracer().trace(f).nodes]


@program(claims=("proxy-getattr-attribute",))
def attributes_that_a_proxy_has_itself(lib: Lib) -> Seen:
    p = proxy(lib)
    graph = p.node.graph
    names = ("node", "tracer", "keys", "__len__", "_node", "root")
    kinds = [type(getattr(p, name)).__name__ for name in names]
    kinds.append(p.__class__.__name__)
    dunders = [hasattr(p, n) for n in ("__iter__", "__float__", "__array__")]
    return [kinds, dunders, len(list(graph.nodes))]


@program()
def indexing_constants_with_proxies(lib: Lib) -> Seen:
    table = torch.arange(6.0).reshape(3, 2)

    def trace(root: AnyValue) -> object:
        try:
            return lines(lib.Tracer().trace(root))
        except Exception as raised:
            return f"{type(raised).__name__}: {str(raised)[:30]}"

    return [
        trace(lambda i: table[i]),
        trace(lambda i: table[i, 0]),
        trace(lambda i: table[i > 0]),
        trace(lambda i: table[i:]),
        trace(lambda i: [1, 2][0] + i),
        trace(lambda i: {"a": 1}["a"] + i),
        trace(lambda i: table.index_select(0, i)),
    ]


@program()
def tracers_and_proxies_can_be_copied(lib: Lib) -> Seen:
    tracer = lib.Tracer(autowrap_functions=(operator.add,))
    graph = tracer.trace(Inner())
    other = copy.deepcopy(tracer)
    again = other.trace(lambda x: x + 1)
    return [
        type(other).__name__,
        other.graph is graph,
        lines(graph),
        lines(again),
        other.param_shapes_constant,
    ]


@program()
def retracing_forgets_meta_and_keeps_types_of_inputs(lib: Lib) -> Seen:
    @no_type_check
    def f(x, y):
        return x + y

    f.__annotations__["x"] = torch.Tensor
    gm = lib.symbolic_trace(f)
    for node in gm.graph.nodes:
        node.meta["tag"] = node.name
    again = lib.symbolic_trace(gm)
    return [
        [dict(n.meta) for n in again.graph.nodes],
        again.code == gm.code,
        [n.type is torch.Tensor for n in again.graph.nodes],
    ]


@program()
def two_graph_modules_of_one_graph(lib: Lib) -> Seen:
    graph = lib.Tracer().trace(lambda x: torch.relu(x))
    first = lib.GraphModule(nn.Module(), graph)
    second = lib.GraphModule(nn.Module(), graph)
    list(graph.nodes)[1].target = torch.neg
    second.recompile()
    one = torch.ones(1)
    return [
        graph.owning_module is second,
        first.graph is second.graph,
        [first(one), second(one)],
    ]


@program()
def the_tracers_class_is_remembered(lib: Lib) -> Seen:
    class Local:
        """Makes the tracer's class local to this function."""

    tracer = type("Own", (lib.Tracer, Local), {})
    graph = tracer().trace(lambda x: x)
    gm = lib.GraphModule(nn.Module(), lib.Tracer().trace(lambda x: x))
    return [
        graph._tracer_cls is tracer,
        gm.graph._tracer_cls is lib.Tracer,
        gm._tracer_cls is lib.Tracer,
        lib.Graph()._tracer_cls,
    ]


@program()
def modules_called_with_plain_values_while_tracing(lib: Lib) -> Seen:
    @no_type_check
    def forward(self, x):
        constant = self.inner(torch.ones(2))
        leaf = self.linear(torch.ones(2))
        return x + constant + leaf

    torch.manual_seed(0)
    root = Root(forward, inner=Inner(), linear=nn.Linear(2, 2))
    graph = lib.Tracer().trace(root)
    gm = lib.GraphModule(root, graph)
    return [lines(graph), gm(torch.zeros(2))]
