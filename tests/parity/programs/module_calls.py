"""Module calls: which submodules a trace enters and which it calls."""

from __future__ import annotations

from collections import OrderedDict
from typing import no_type_check

import torch
from torch import nn

from tests.parity.harness import Lib, Seen, error, program, show
from tests.parity.programs._subjects import (
    AnyValue,
    Inner,
    Outer,
    Root,
    lines,
    trace_with,
)


@program(claims=("module-call-goes-to-call-module",))
def every_submodule_call_goes_to_call_module(lib: Lib) -> Seen:
    calls: list[object] = []

    @no_type_check
    def call_module(self, m, forward, args, kwargs):
        shown = [type(m).__name__, callable(forward), repr(args), repr(kwargs)]
        calls.append([*shown, self.path_of_module(m)])
        return lib.Tracer.call_module(self, m, forward, args, kwargs)

    @no_type_check
    def forward(self, x):
        return self.outer(x) + self.bilinear(x, input2=x)

    root = Root(forward, outer=Outer(), bilinear=nn.Bilinear(2, 2, 2))
    graph = trace_with(lib, root, call_module=call_module)
    return [calls, lines(graph)]


@program(claims=("call-module-leaf",))
def a_leaf_module_is_called_not_entered(lib: Lib) -> Seen:
    received: list[str] = []

    @no_type_check
    def forward(self, x):
        y = self.linear(x)
        received.append(type(y).__name__)
        return self.linear(y)

    root = Root(forward, linear=nn.Linear(2, 2))
    gm = lib.symbolic_trace(root)
    return [lines(gm.graph), received, gm.code]


@program(claims=("call-module-non-leaf",))
def a_users_module_is_traced_through(lib: Lib) -> Seen:
    inner = lib.symbolic_trace(Inner())
    outer = lib.symbolic_trace(Outer())
    deep = lib.symbolic_trace(Root(lambda self, x: self.a(x), a=Outer()))
    return [*show(inner), *show(outer), *show(deep)]


@program(claims=("call-module-non-leaf",))
def what_an_entered_forward_returns_comes_back(lib: Lib) -> Seen:
    @no_type_check
    def child(self, x, scale, *, shift=None):
        return {"y": x * scale, "n": 3, "shift": shift}

    seen: list[object] = []

    @no_type_check
    def forward(self, x):
        got = self.child(x, 2, shift="up")
        seen.append((sorted(got), type(got["y"]).__name__, got["n"]))
        return got["y"] + got["n"], got["shift"]

    gm = lib.symbolic_trace(Root(forward, child=Root(child)))
    return [seen, *show(gm, torch.ones(1))]


@program(claims=("call-module-override",))
def call_module_may_leave_modules_out(lib: Lib) -> Seen:
    @no_type_check
    def call_module(self, m, forward, args, kwargs):
        if isinstance(m, nn.Dropout):
            return args[0]
        return lib.Tracer.call_module(self, m, forward, args, kwargs)

    layers = nn.Sequential(nn.Linear(2, 2), nn.Dropout(), nn.ReLU())
    return lines(trace_with(lib, layers, call_module=call_module))


@program(claims=("call-module-override",))
def call_module_may_make_nested_graph_modules(lib: Lib) -> Seen:
    @no_type_check
    def call_module(self, m, forward, args, kwargs):
        path = self.path_of_module(m)
        if not self.is_leaf_module(m, path):
            setattr(self.root, path, lib.symbolic_trace(m))
        return self.create_proxy("call_module", path, args, kwargs)

    root = Root(lambda self, x: self.sub(x) + 1, sub=Inner())
    graph = trace_with(lib, root, call_module=call_module)
    gm = lib.GraphModule(root, graph)
    return [gm.code, isinstance(gm.sub, lib.GraphModule), gm.sub.code]


@program(claims=("leaf-module-default",))
def modules_of_torch_nn_are_leaves(lib: Lib) -> Seen:
    tracer = lib.Tracer()
    modules: list[nn.Module] = [
        nn.Linear(2, 2),
        nn.Conv2d(1, 1, 1),
        nn.BatchNorm1d(2),
        nn.Dropout(),
        nn.LSTM(2, 2),
        nn.MultiheadAttention(2, 1),
        nn.ModuleList(),
        nn.Module(),
        torch.ao.nn.quantized.FloatFunctional(),
        nn.Sequential(nn.ReLU()),
        Inner(),
        Outer(),
        type("Own", (nn.Linear,), {})(2, 2),
        type("OwnSequential", (nn.Sequential,), {})(),
    ]
    return [
        (type(m).__name__, tracer.is_leaf_module(m, "some.path"))
        for m in modules
    ]


@program(claims=("leaf-module-customizable",))
def is_leaf_module_decides_by_module_and_path(lib: Lib) -> Seen:
    asked: list[tuple[str, str]] = []

    def is_leaf_module(self: AnyValue, m: nn.Module, name: str) -> bool:
        asked.append((type(m).__name__, name))
        return isinstance(m, Inner)

    root = Root(lambda self, x: self.a(x) + self.b(x), a=Outer(), b=Outer())
    graph = trace_with(lib, root, is_leaf_module=is_leaf_module)
    return [asked, lines(graph)]


@program(claims=("leaf-module-customizable",))
def entering_a_module_of_torch_nn(lib: Lib) -> Seen:
    layers = nn.Sequential(nn.Linear(2, 3), nn.Hardtanh(), nn.Flatten())
    gm_graph = trace_with(
        lib, layers, is_leaf_module=lambda self, m, name: False
    )
    gm = lib.GraphModule(layers, gm_graph)
    x = torch.ones(1, 2)
    return [*show(gm), torch.equal(gm(x), layers(x))]


@program(claims=("path-of-module",))
def the_path_of_a_module_below_the_root(lib: Lib) -> Seen:
    seen: list[object] = []
    tracer = lib.Tracer()
    outer = Outer()
    root = Root(lambda self, x: self.probe(x), probe=Inner(), outer=outer)

    def asking(self: AnyValue, x: AnyValue) -> AnyValue:
        seen.extend(paths())
        return self.probe(x)

    def paths() -> list[str]:
        modules = (root, outer, outer.foo, outer.foo.l)
        return [tracer.path_of_module(m) for m in modules]

    type(root).forward = asking
    tracer.trace(root)
    stranger = error(lambda: tracer.path_of_module(Inner()), chars=37)
    return [seen, paths(), stranger]


@program(claims=("path-of-module",))
def calling_a_module_outside_the_root_is_an_error(lib: Lib) -> Seen:
    stranger = Inner()
    roots: list[AnyValue] = [
        lambda x: stranger(x),
        Root(lambda self, x: stranger(x)),
        lambda x: nn.ReLU()(x),
    ]

    def trace(root: AnyValue) -> str:
        return error(lambda: lib.Tracer().trace(root), chars=37)

    return [trace(root) for root in roots]


def stack_of(node: AnyValue) -> list[object]:
    """The nn_module_stack of a Node as plain data."""
    stack = node.meta.get("nn_module_stack", {})
    return [(key, path, kind.__name__) for key, (path, kind) in stack.items()]


@program(claims=("module-stack",))
def nodes_record_the_calls_that_are_open(lib: Lib) -> Seen:
    @no_type_check
    def forward(self, x):
        return self.outer(x + 1) * self.act(x)

    tracer = lib.Tracer()
    graph = tracer.trace(Root(forward, outer=Outer(), act=nn.ReLU()))
    return [
        [(n.name, stack_of(n)) for n in graph.nodes],
        list(tracer.module_stack),
    ]


@program(claims=("module-stack",))
def the_module_stack_lists_outer_to_inner(lib: Lib) -> Seen:
    tracer = lib.Tracer()
    seen: list[object] = []

    @no_type_check
    def innermost(self, x):
        open_calls = tracer.module_stack
        seen.append(isinstance(open_calls, OrderedDict))
        seen.append([(k, p, t.__name__) for k, (p, t) in open_calls.items()])
        y = x + 1
        recorded = y.node.meta["nn_module_stack"]
        seen.append((recorded == open_calls, recorded is open_calls))
        return y

    middle = Root(lambda self, x: self.deep(x), deep=Root(innermost))
    root = Root(lambda self, x: self.mid(self.mid(x)), mid=middle)
    graph = tracer.trace(root)
    return [seen, [stack_of(n) for n in graph.nodes], len(tracer.module_stack)]


def trace_past_a_failing_child(lib: Lib) -> AnyValue:
    """The Graph of a forward that catches what its child raises."""

    @no_type_check
    def failing(self, x):
        x + 1
        raise KeyError("in child")

    @no_type_check
    def forward(self, x):
        try:
            x = self.bad(x)
        except KeyError:
            x = x * 2
        return self.good(x)

    root = Root(forward, bad=Root(failing), good=nn.ReLU())
    return lib.Tracer().trace(root)


@program(claims=("module-stack", "node-name-to-scope"))
def a_failing_child_can_be_caught_and_the_trace_goes_on(lib: Lib) -> Seen:
    return lines(trace_past_a_failing_child(lib))


@program(
    claims=("module-stack",),
    differs="module-stack-restored",
    ours=[[], [("bad", "bad", "Root")], [], [("good", "good", "ReLU")], []],
)
def a_failing_child_leaves_the_module_stack(lib: Lib) -> Seen:
    return [stack_of(n) for n in trace_past_a_failing_child(lib).nodes]


@program(claims=("call-module-leaf",))
def containers_and_their_numbered_children(lib: Lib) -> Seen:
    @no_type_check
    def forward(self, x):
        x = self.seq(x)
        for layer in self.listed:
            x = layer(x)
        for name in self.named:
            x = self.named[name](x)
        return self.listed[-1](x) + self.seq[0](x) * self.params[1]

    root = Root(
        forward,
        seq=nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU(), Inner())),
        listed=nn.ModuleList([nn.Tanh(), Inner()]),
        named=nn.ModuleDict({"first one": nn.ReLU(), "2": nn.Tanh()}),
        params=nn.ParameterList([torch.ones(2), torch.ones(2)]),
    )
    gm = lib.symbolic_trace(root)
    x = torch.ones(2)
    return [*show(gm), torch.equal(gm(x), root(x))]


@program(claims=("module-stack", "path-of-module"))
def a_shared_submodule_has_its_first_path(lib: Lib) -> Seen:
    shared = nn.Linear(2, 2)
    inner = Root(lambda self, x: self.again(x), again=shared)

    @no_type_check
    def forward(self, x):
        return self.b(self.a(x)) + self.inner(x)

    gm = lib.symbolic_trace(Root(forward, a=shared, b=shared, inner=inner))
    return [*show(gm), [stack_of(n) for n in gm.graph.nodes]]


@program(claims=("call-module-non-leaf",))
def graph_modules_are_traced_through_again(lib: Lib) -> Seen:
    first = lib.symbolic_trace(Outer())
    again = lib.symbolic_trace(first)
    holding = lib.symbolic_trace(Root(lambda self, x: self.gm(x) - 1, gm=first))
    return [
        again.code == first.code,
        again.code,
        type(again).__name__,
        *show(holding),
    ]


@program(claims=("leaf-module-default",))
def calling_forward_itself_enters_a_leaf(lib: Lib) -> Seen:
    @no_type_check
    def forward(self, x):
        return self.act.forward(x) + self.inner.forward(x)

    graph = lib.Tracer().trace(Root(forward, act=nn.ReLU(), inner=Inner()))
    return lines(graph)
