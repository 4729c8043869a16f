"""What tracing decides for good: flags, loops, modes."""

from __future__ import annotations

import inspect
from typing import no_type_check

import torch
from torch import nn
from torch.nn import functional as F

from tests.parity.harness import Lib, Seen, error, program, show
from tests.parity.programs._subjects import AnyValue, Overview, lines, module_of


class MyModule(nn.Module):
    """The documents' module with a constructor flag."""

    def __init__(self, do_activation: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.do_activation = do_activation
        self.linear = nn.Linear(3, 3)

    @no_type_check
    def forward(self, x):
        x = self.linear(x)
        if self.do_activation:
            x = torch.relu(x)
        return x


@program(claims=("static-control-flow-specializes",))
def a_constructor_flag_is_decided_while_tracing(lib: Lib) -> Seen:
    x = torch.ones(3)
    without = lib.symbolic_trace(MyModule(do_activation=False))
    with_it = lib.symbolic_trace(MyModule(do_activation=True))
    return [*show(without, x), *show(with_it, x)]


@program(claims=("static-control-flow-specializes",))
def loops_of_known_length_are_unrolled(lib: Lib) -> Seen:
    @no_type_check
    def f(x):
        for i in range(3):
            x = x + i
        while i > 0:
            x, i = x * 2, i - 1
        return [x - j for j in (5, 6)]

    return show(lib.symbolic_trace(f), 1)


@program(claims=("static-flag-example",))
def a_global_flag_leaves_no_trace(lib: Lib) -> Seen:
    source = """
    flag = True

    def f(x, y):
        return y if flag else x
    """
    with module_of(source) as user:
        return show(lib.symbolic_trace(user.f), 1, 2)


@program(claims=("static-by-closure",))
def a_setting_is_fixed_outside_the_traced_function(lib: Lib) -> Seen:
    @no_type_check
    def f(x, flag):
        return x if flag else x * 2

    def fixing(flag: bool) -> AnyValue:
        return lambda x: f(x, flag)

    return [
        error(lambda: lib.symbolic_trace(f)),
        *show(lib.symbolic_trace(lambda x: f(x, True)), 3),
        *show(lib.symbolic_trace(fixing(False)), 3),
    ]


@program(claims=("flags-frozen-at-trace",))
def the_training_flag_is_frozen_but_leaves_follow_eval(lib: Lib) -> Seen:
    class Functional(nn.Module):
        @no_type_check
        def forward(self, x):
            return F.dropout(x, p=1.0, training=self.training)

    class Library(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.drop = nn.Dropout(1.0)

        @no_type_check
        def forward(self, x):
            return self.drop(x)

    x = torch.ones(3)
    frozen, leaf = (
        lib.symbolic_trace(Functional()),
        lib.symbolic_trace(Library()),
    )
    training = [frozen(x), leaf(x)]
    frozen.eval()
    leaf.eval()
    return [
        frozen.code,
        training,
        [frozen(x), leaf(x)],
        lib.symbolic_trace(Functional().eval()).code,
    ]


@program(claims=("debug-compare-results",))
def a_transform_that_changes_nothing_keeps_results(lib: Lib) -> Seen:
    model = Overview()
    gm = lib.symbolic_trace(model)
    graph = lib.Graph()
    copies: dict[AnyValue, AnyValue] = {}
    for node in gm.graph.nodes:
        copies[node] = graph.node_copy(node, lambda n: copies[n])
    new = lib.GraphModule(gm, graph)
    x = torch.linspace(-1, 1, 12).reshape(3, 4)
    return [torch.allclose(model(x), new(x)), new.code == gm.code]


@program(claims=("debug-paste-forward",))
def the_generated_forward_pasted_into_a_class(lib: Lib) -> Seen:
    model = Overview()
    gm = lib.symbolic_trace(model)
    names = dict(gm.graph.python_code("self").globals)
    exec(gm.code, names)
    pasted = type("Pasted", (Overview,), {"forward": names["forward"]})()
    pasted.load_state_dict(model.state_dict())
    x = torch.linspace(-1, 1, 12).reshape(3, 4)
    return [torch.equal(pasted(x), model(x)), type(pasted).__mro__[1].__name__]


@program(claims=("debug-step-generated-code",))
def a_debugger_finds_the_line_of_every_frame(lib: Lib) -> Seen:
    frames: list[tuple[str, str]] = []

    def probe(x: AnyValue) -> AnyValue:
        caller = inspect.stack()[1]
        frames.append((caller.function, (caller.code_context or [""])[0]))
        return x

    g = lib.Graph()
    x = g.placeholder("x")
    g.output(g.call_function(probe, (g.call_function(torch.neg, (x,)),)))
    gm = lib.GraphModule({}, g)
    filename = type(gm).forward.__code__.co_filename
    gm(torch.ones(1))
    return [frames, filename.startswith("<eval_with_key>")]


@program(claims=("fusion-limit",))
def a_graph_holds_the_forward_pass_alone(lib: Lib) -> Seen:
    model = Overview()
    gm = lib.symbolic_trace(model)
    gm(torch.ones(3, 4)).sum().backward()
    return [lines(gm.graph), model.param.grad is not None]
