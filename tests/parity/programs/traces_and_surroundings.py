"""Traces and what surrounds them: other traces, threads, hooks, state."""

from __future__ import annotations

import operator
import threading
from typing import no_type_check

import torch
from torch import nn
from torch.nn.utils import parametrize

from tests.parity.harness import Lib, Seen, error, program, show
from tests.parity.programs._subjects import (
    AnyValue,
    Inner,
    Outer,
    Root,
    lines,
    trace_with,
)


@program()
def a_trace_within_a_trace(lib: Lib) -> Seen:
    inner: list[object] = []

    @no_type_check
    def forward(self, x):
        gm = lib.symbolic_trace(Inner())
        inner.append(lines(gm.graph))
        return self.sub(x) + self.w

    root = Root(forward, sub=Inner(), w=nn.Parameter(torch.ones(2)))
    return [lines(lib.Tracer().trace(root)), inner]


@program()
def one_tracer_can_trace_again(lib: Lib) -> Seen:
    tracer = lib.Tracer()
    first = tracer.trace(Outer())
    second = tracer.trace(lambda x: x + 1)
    third = tracer.trace(Outer())
    return [str(first) == str(third), first is third, lines(second)]


@program()
def hooks_of_inlined_modules_are_traced_and_the_roots_are_not(lib: Lib) -> Seen:
    @no_type_check
    def forward(self, x):
        return self.inlined(x) + self.leaf(x)

    inlined, leaf = Inner(), nn.ReLU()
    root = Root(forward, inlined=inlined, leaf=leaf)
    inlined.register_forward_hook(lambda m, a, out: out * 2)
    inlined.register_forward_pre_hook(lambda m, a: (a[0] + 1,))
    leaf.register_forward_hook(lambda m, a, out: out * 10)
    root.register_forward_hook(lambda m, a, out: out * 100)
    gm = lib.symbolic_trace(root)
    return [lines(gm.graph), gm.leaf(torch.ones(1))]


@program()
def state_changed_in_forward_changes_once(lib: Lib) -> Seen:
    @no_type_check
    def forward(self, x):
        self.calls += 1
        self.cache = x + self.calls
        return self.cache * self.calls

    root = Root(forward)
    root.__dict__["calls"] = 0
    gm = lib.symbolic_trace(root)
    return [*show(gm, 3), gm(3), root.calls]


@program()
def a_childs_own_call_is_inlined(lib: Lib) -> Seen:
    class Doubling(Inner):
        @no_type_check
        def __call__(self, x):
            return super().__call__(x) * 2

    root = Root(lambda self, x: self.sub(x) + 1, sub=Doubling())
    return lines(lib.Tracer().trace(root))


@program(
    differs="own-call-of-a-leaf",
    ours=[
        [
            "x: placeholder x () {}",
            "sub: call_module sub (x,) {}",
            "output: output output (sub,) {}",
        ],
        ("tensor", "torch.float32", [2.0]),
    ],
)
def a_leafs_own_call_is_part_of_the_leaf(lib: Lib) -> Seen:
    class Doubling(nn.Module):
        @no_type_check
        def __call__(self, x):
            return super().__call__(x) * 2

        @no_type_check
        def forward(self, x):
            return x

    root = Root(lambda self, x: self.sub(x), sub=Doubling())
    graph = trace_with(lib, root, is_leaf_module=lambda self, m, name: True)
    gm = lib.GraphModule(root, graph)
    return [lines(graph), gm(torch.ones(1))]


@program(
    differs="tracing-is-isolated",
    ours=["no error", ["x", "relu", "output"]],
)
def another_thread_runs_modules_during_a_trace(lib: Lib) -> Seen:
    linear, seen = nn.Linear(2, 2), []

    def eager() -> None:
        seen.append(error(lambda: linear(torch.ones(2)), chars=30))

    @no_type_check
    def f(x):
        thread = threading.Thread(target=eager)
        thread.start()
        thread.join()
        return torch.relu(x)

    graph = lib.Tracer().trace(f)
    return [*seen, [n.name for n in graph.nodes]]


@program(
    differs="stale-proxy",
    ours=[
        [
            "no error",
            "RuntimeError",
            "RuntimeError",
            "RuntimeError",
            "RuntimeError",
        ],
        ["x", "add", "output"],
    ],
)
def a_proxy_used_after_its_trace(lib: Lib) -> Seen:
    leaked: list[AnyValue] = []

    @no_type_check
    def f(x):
        leaked.append(x)
        return x + 1

    graph = lib.Tracer().trace(f)
    (p,) = leaked
    uses: list[AnyValue] = [
        lambda: repr(p),
        lambda: p + 1,
        lambda: torch.relu(p),
        lambda: p.clamp(0),
        lambda: p.shape[0],
    ]
    return [
        [error(use).partition(":")[0] for use in uses],
        [n.name for n in graph.nodes],
    ]


@program(
    differs="stale-proxy",
    ours=["RuntimeError", "RuntimeError"],
)
def a_proxy_of_another_trace(lib: Lib) -> Seen:
    @no_type_check
    def outer(x, use):
        return lib.Tracer().trace(lambda y: use(x, y))

    def trace(use: AnyValue) -> str:
        @no_type_check
        def root(x):
            outer(x, use)
            return x

        return error(lambda: lib.Tracer().trace(root)).partition(":")[0]

    return [trace(operator.add), trace(lambda x, y: y.add(x))]


@program()
def a_parametrised_attribute_is_a_module_call(lib: Lib) -> Seen:
    class Symmetric(nn.Module):
        @no_type_check
        def forward(self, w):
            return w.triu() + w.triu(1).transpose(-1, -2)

    class Weighted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.arange(4.0).reshape(2, 2))
            self.linear = nn.Linear(2, 2)

        @no_type_check
        def forward(self, x):
            return self.linear(x) @ self.w

    model = Weighted()
    parametrize.register_parametrization(model, "w", Symmetric())
    parametrize.register_parametrization(model.linear, "weight", Symmetric())
    gm = lib.symbolic_trace(model)
    x = torch.ones(1, 2)
    return [lines(gm.graph), gm.code, torch.equal(gm(x), model(x))]


@program()
def properties_and_plain_attributes_of_modules(lib: Lib) -> Seen:
    class Own(nn.Module):
        scale = 3

        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.ones(2))
            self.sizes = {"a": [1, 2]}
            self.none = None
            self.register_parameter("absent", None)
            self.register_buffer("gone", None)

        @property
        def doubled(self) -> AnyValue:
            return self.w * 2

        @no_type_check
        def helper(self, x):
            return x + self.w

        @no_type_check
        def forward(self, x):
            if self.absent is None and self.gone is None and self.none is None:
                x = self.helper(x) * self.doubled * self.scale
            return x * self.sizes["a"][1] + getattr(self, "missing", 7)

    return show(lib.symbolic_trace(Own()), torch.ones(2))
