"""Graph modules: a graph, its source, and the function compiled from it."""

from __future__ import annotations

import contextlib
import copy
import inspect
import io
import linecache
import operator
import re
from collections.abc import Callable
from typing import Any, Final, no_type_check

import torch
from torch import nn

from tests.parity.harness import Lib, Seen, error, program, show
from tests.parity.programs._subjects import (
    AnyValue,
    Inner,
    Outer,
    Overview,
    Root,
    lines,
    subclass,
)


@no_type_check
def add_one(x):
    return torch.relu(x) + 1


def stderr_of(act: AnyValue) -> tuple[str, str]:
    """What `act` raises, and what it printed to stderr meanwhile."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        raised = error(act)
    return raised, said.getvalue()


@program(claims=("symbolic-trace",))
def symbolic_trace_gives_a_graph_module_that_agrees(lib: Lib) -> Seen:
    model = Overview()
    gm, of_function = lib.symbolic_trace(model), lib.symbolic_trace(add_one)
    x = torch.linspace(-1, 1, 12).reshape(3, 4)
    return [
        isinstance(gm, lib.GraphModule)
        and isinstance(of_function, lib.GraphModule),
        torch.equal(gm(x), model(x)),
        torch.equal(of_function(x), add_one(x)),
        lib.symbolic_trace(add_one, None).code == of_function.code,
        list(inspect.signature(lib.symbolic_trace).parameters),
    ]


@program(claims=("symbolic-trace-steps", "graphmodule-class-name"))
def the_three_steps_of_symbolic_trace(lib: Lib) -> Seen:
    seen = []
    for root, name in ((Overview(), "Overview"), (add_one, "add_one")):
        tracer = lib.Tracer()
        graph = tracer.trace(root)
        gm = lib.GraphModule(tracer.root, graph, name)
        short = lib.symbolic_trace(root)
        seen.append(gm.code == short.code)
        seen.append((type(gm).__name__, type(short).__name__))
    return [*seen, type(lib.symbolic_trace(lambda x: x)).__name__]


@program(claims=("trace-phases-summary",))
def the_order_of_events_in_a_trace(lib: Lib) -> Seen:
    call, generate = nn.Module.__call__, lib.Graph.python_code
    events: list[object] = []

    def patched() -> str:
        return "patched" if nn.Module.__call__ is not call else "unpatched"

    @no_type_check
    def forward(self, x):
        events.append(("root runs", patched()))
        return x + 1

    def python_code(self: AnyValue, *args: Any, **kwargs: Any) -> AnyValue:
        owner = type(self.owning_module)
        events.append(("code is generated", patched()))
        events.append(("forward is set", "forward" in vars(owner)))
        return generate(self, *args, **kwargs)

    lib.Graph.python_code = python_code
    try:
        gm = lib.symbolic_trace(Root(forward))
    finally:
        lib.Graph.python_code = generate
    return [*events, "forward" in vars(type(gm)), patched()]


@program(claims=("recompile-exec-compile",))
def recompile_sets_a_fresh_forward_on_the_class(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(add_one)
    old = type(gm).forward
    list(gm.graph.nodes)[1].name = "rectified"
    code = gm.recompile()
    new = type(gm).forward
    return [
        old is new,
        "forward" in vars(type(gm)),
        code.src == gm.code,
        sorted(set(code.globals) - {"torch"}),
        new.__code__.co_filename.startswith("<eval_with_key>."),
        new.__name__,
        "forward" in code.globals,
    ]


@program(claims=("recompile-exec-compile", "debug-step-generated-code"))
def the_source_of_generated_code_can_be_read(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(add_one)
    forward = type(gm).forward
    filename = forward.__code__.co_filename
    g = lib.Graph()
    g.output(g.placeholder("x"))
    by_hand = lib.GraphModule({}, g)
    return [
        "".join(linecache.getlines(filename)).rstrip() == gm.code.rstrip(),
        linecache.getline(filename, forward.__code__.co_firstlineno),
        inspect.getsource(forward),
        inspect.getsource(gm.forward),
        inspect.getsource(type(by_hand).forward),
        inspect.getsourcelines(forward)[1],
    ]


@program(differs="lambda-source-kept", ours=[True, True])
def the_source_of_a_traced_lambda_can_be_read(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: x.no_such_method())
    filename = type(gm).forward.__code__.co_filename
    _, said = stderr_of(lambda: gm(torch.ones(1)))
    return [
        "".join(linecache.getlines(filename)).rstrip() == gm.code.rstrip(),
        "x.no_such_method();  x = None" in said,
    ]


class Shadowed(nn.Module):
    """A module of which a child is hidden by an attribute of its class."""

    act = staticmethod(torch.sigmoid)

    def __init__(self) -> None:
        super().__init__()
        self.add_module("linear", nn.Identity())
        self.act = nn.ReLU()

    def forward(self, x: AnyValue) -> AnyValue:
        for child in self.children():
            x = child(x)
        return x


@program(differs="children-first", ours=["ReLU", True])
def a_child_that_an_attribute_of_the_class_hides(lib: Lib) -> Seen:
    model, x = Shadowed(), torch.linspace(-1, 1, 6)
    gm = lib.symbolic_trace(model)
    return [type(gm.act).__name__, torch.equal(gm(x), model(x))]


@program()
def a_child_that_an_attribute_of_the_instance_hides(lib: Lib) -> Seen:
    inner = Root(lambda self, x: x * self.scale, scale=nn.ReLU())
    inner.__dict__["scale"] = torch.full((2,), 3.0)
    gm = lib.symbolic_trace(Root(lambda self, x: self.sub(x) + 1, sub=inner))
    return [gm.code, type(gm.sub.scale).__name__, gm(torch.ones(2))]


@program(claims=("recompile-key",))
def every_compilation_has_a_key_of_its_own(lib: Lib) -> Seen:
    def key(gm: AnyValue) -> str:
        return str(type(gm).forward.__code__.co_filename)

    def number(text: str) -> int:
        found = re.match(r"<eval_with_key>\.(\d+)", text)
        return int(found[1]) if found else -1

    first, second = lib.symbolic_trace(add_one), lib.symbolic_trace(Inner())
    g = lib.Graph()
    g.output(g.placeholder("x"))
    by_hand = lib.GraphModule({}, g)
    before = key(first)
    list(first.graph.nodes)[1].name = "rectified"
    first.recompile()
    numbers = [
        number(k) for k in (before, key(second), key(by_hand), key(first))
    ]
    return [
        numbers == sorted(set(numbers)),
        key(first).rpartition("/")[2].partition(":")[0],
        key(first).rpartition(" in ")[2],
        key(second).rpartition(" in ")[2],
        key(by_hand),
    ]


@program(claims=("graphmodule-call-path",))
def a_call_is_an_ordinary_module_call(lib: Lib) -> Seen:
    model = Overview()
    gm = lib.symbolic_trace(model)
    fired: list[str] = []
    gm.register_forward_hook(lambda m, args, out: fired.append("hook"))
    gm.register_forward_pre_hook(lambda m, args: fired.append("pre hook"))
    gm.linear.register_forward_hook(lambda m, args, out: fired.append("child"))
    out = gm(torch.ones(3, 4))
    out.sum().backward()
    return [
        fired,
        gm.param is model.param and model.param.grad is not None,
        bool(model.linear.weight.grad.abs().sum() > 0),  # type: ignore[union-attr]
        torch.equal(out, gm.forward(torch.ones(3, 4))),
    ]


@program(claims=("graphmodule-call-wrapped",))
def the_class_of_a_graph_module_wraps_its_calls(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(add_one)
    wrapped = type(gm)._wrapped_call
    gm.recompile()
    return [
        type(gm).__call__.__name__,
        "__call__" in vars(type(gm)),
        type(wrapped).__name__,
        type(gm)._wrapped_call is wrapped,
        gm._wrapped_call(gm, torch.ones(1)),
        type(gm).__call__(gm, torch.ones(1)),
    ]


@program(claims=("graphmodule-call-wrapped", "graphmodule-call-path"))
def a_subclass_with_a_call_of_its_own(lib: Lib) -> Seen:
    def tens(self: AnyValue, *args: Any) -> AnyValue:
        return super(cls, self).__call__(*args) * 10

    graph = lib.Tracer().trace(add_one)
    cls = subclass(lib.GraphModule, __call__=tens)
    gm = cls(nn.Module(), graph)
    plain = subclass(lib.GraphModule, helper=lambda self: "helped")(
        nn.Module(), graph
    )
    return [
        gm(torch.ones(1)),
        isinstance(gm, cls),
        plain.helper(),
        plain(torch.ones(1)),
        plain.code == gm.code,
    ]


@program(claims=("graphmodule-call-path",))
def an_error_inside_a_called_function_prints_nothing(lib: Lib) -> Seen:
    def fails(x: object) -> object:
        raise KeyError("in the function")

    g = lib.Graph()
    g.output(g.call_function(fails, (g.placeholder("x"),)))
    gm = lib.GraphModule({}, g)
    failing = Root(lambda self, x: fails(x))
    holder = lib.Graph()
    holder.output(holder.call_module("sub", (holder.placeholder("x"),)))
    outer = lib.GraphModule({"sub": failing}, holder)
    return [stderr_of(lambda: gm(1)), stderr_of(lambda: outer(1))]


@program(claims=("graphmodule-call-path",))
def wrong_arguments_are_pythons_error(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x, y=2: x + y)
    return [
        gm(1),
        gm(x=1, y=5),
        error(lambda: gm(), chars=40),
        error(lambda: gm(1, 2, 3), chars=20),
        error(lambda: gm(z=1), chars=40),
    ]


@program(claims=("graphmodule-two-ways",))
def editing_before_or_after_building_is_the_same(lib: Lib) -> Seen:
    def edit(graph: AnyValue) -> None:
        for node in graph.nodes:
            if node.target is operator.add:
                with graph.inserting_after(node):
                    new = graph.call_function(torch.mul, node.args)
                node.replace_all_uses_with(new)
                graph.erase_node(node)

    tracer = lib.Tracer()
    graph = tracer.trace(add_one)
    edit(graph)
    built = lib.GraphModule(tracer.root, graph)
    traced = lib.symbolic_trace(add_one)
    edit(traced.graph)
    traced.recompile()
    x = torch.ones(2) * 3
    return [built.code == traced.code, *show(traced, x), built(x)]


@program(claims=("graphmodule-edit-needs-recompile",))
def an_edited_graph_needs_recompile(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: torch.add(x, 3))
    before = gm.code
    next(n for n in gm.graph.nodes if n.target is torch.add).target = torch.mul
    stale = [gm.code == before, gm(torch.tensor(2.0))]
    gm.recompile()
    return [*stale, gm.code, gm(torch.tensor(2.0))]


@program(claims=("graphmodule-graph-assignment",))
def assigning_a_graph_recompiles(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: x + 1)
    other = lib.Tracer().trace(lambda x, y: x * y)
    gm.graph = other
    return [
        gm.code,
        gm(3, 4),
        gm.graph is other,
        other.owning_module is gm,
        error(lambda: setattr(gm, "graph", "no graph"), chars=25),
    ]


@program(claims=("graphmodule-root-module",))
def what_a_graph_refers_to_is_taken_from_the_root(lib: Lib) -> Seen:
    class Deep(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(2, 2)
            self.param = nn.Parameter(torch.ones(2))
            self.register_buffer("buffer", torch.ones(2))
            self.inner = Outer()
            self.unused = nn.Linear(2, 2)
            self.plain = torch.ones(2) * 2
            self.note = "not referred to"

        @no_type_check
        def forward(self, x):
            x = self.linear(x) + self.param
            return self.inner(x) + self.buffer + self.plain

    model = Deep()
    gm = lib.symbolic_trace(model)
    return [
        gm.linear is model.linear,
        gm.param is model.param,
        gm.inner.foo.l is model.inner.foo.l,
        type(gm.inner) is nn.Module and gm.inner is not model.inner,
        [hasattr(gm, name) for name in ("unused", "note", "forward")],
        [name for name, _ in gm.named_buffers()],
        sorted(name for name, _ in gm.named_parameters()),
        sorted(gm.state_dict()),
        sorted(dict(gm.named_modules())),
        gm.code,
    ]


@program(claims=("graphmodule-root-module",))
def a_whole_submodule_and_a_part_of_it(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    y = g.call_module("foo", (x,))
    z = g.call_module("foo.l", (y,))
    g.output((z, g.get_attr("foo.l.weight")))
    root = Outer()
    gm = lib.GraphModule(root, g)
    reverse = lib.Graph()
    x = reverse.placeholder("x")
    y = reverse.call_module("foo.l", (x,))
    reverse.output(reverse.call_module("foo", (y,)))
    other = lib.GraphModule(root, reverse)
    return [
        gm.foo is root.foo,
        other.foo.l is root.foo.l,
        other.foo is root.foo,
        error(lambda: gm(torch.ones(2))),
        error(lambda: other(torch.ones(2))),
    ]


@program(claims=("graphmodule-root-dict",))
def attributes_can_come_from_a_dict(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    y = g.call_module("foo.bar", (x,))
    w = g.get_attr("foo.w")
    b = g.get_attr("b")
    g.output((g.call_function(torch.add, (y, w)), b))
    linear, weight = nn.Linear(2, 2), nn.Parameter(torch.ones(2))
    parts = {"foo.bar": linear, "foo.w": weight, "b": torch.ones(1)}
    gm = lib.GraphModule({**parts, "needless": nn.ReLU()}, g)
    return [
        gm.foo.bar is linear and gm.foo.w is weight,
        hasattr(gm, "needless"),
        [name for name, _ in gm.named_buffers()],
        error(
            lambda: lib.GraphModule({"foo.bar": linear, "b": 1}, g), chars=70
        ),
        error(lambda: lib.GraphModule("no root", g), chars=17),
        error(lambda: lib.GraphModule(None, g), chars=17),
        gm.code,
    ]


@program(claims=("graphmodule-root-dict",))
def a_parent_and_its_child_in_one_dict(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    deep = g.call_module("foo.act.extra", (x,))
    g.output(g.call_module("foo", (deep,)))
    foo = Root(lambda self, x: x * 2, act=nn.Module())
    gm = lib.GraphModule({"foo.act.extra": nn.ReLU(), "foo": foo}, g)
    return [gm.foo is foo, hasattr(foo.act, "extra"), gm(torch.tensor(-1.0))]


@program(claims=("graphmodule-class-name",))
def the_class_of_a_graph_module_can_be_named(lib: Lib) -> Seen:
    graph = lib.Tracer().trace(add_one)
    named = lib.GraphModule(nn.Module(), graph, "Foo")
    default = lib.GraphModule(nn.Module(), graph)
    return [
        type(named).__name__,
        type(default).__name__,
        str(named).splitlines()[0],
        repr(default),
        named._get_name(),
        type(lib.symbolic_trace(Outer())).__name__,
        type(lib.GraphModule(nn.Module(), graph, class_name="a b")).__name__,
    ]


@program(claims=("graphmodule-class-name", "graphmodule-is-module"))
def printing_a_graph_module(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(Root(lambda self, x: self.a(x), a=Outer()))
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        returned = gm.print_readable()
    return [
        str(gm),
        repr(gm),
        gm.print_readable(print_output=False),
        said.getvalue() == returned + "\n",
    ]


@program()
def a_readable_listing_of_nested_graph_modules(lib: Lib) -> Seen:
    inner = lib.symbolic_trace(Inner())
    g = lib.Graph()
    x = g.placeholder("x")
    g.output(g.call_module("inner", (g.call_function(torch.relu, (x,)),)))
    gm = lib.GraphModule({"inner": inner}, g)
    relu = list(g.nodes)[1]
    relu.meta["val"] = torch.ones(2, 3, dtype=torch.int64)
    neg = next(n for n in inner.graph.nodes if n.target is torch.neg)
    neg.target = torch.abs  # not compiled yet
    return [
        gm.print_readable(print_output=False),
        gm.print_readable(False, include_stride=True, include_device=True),
        lines(gm.graph),
    ]


BEFORE_ITS_GRAPH: Final[dict[str, Callable[[AnyValue], AnyValue]]] = {
    "train": lambda gm: gm.train().training,
    "eval": lambda gm: gm.eval().linear.training,
    "state_dict": lambda gm: sorted(gm.state_dict()),
    "load_state_dict": lambda gm: gm.load_state_dict(gm.state_dict()),
    "to": lambda gm: gm.to(torch.float64).linear.weight.dtype,
    "repr": repr,
    "apply": lambda gm: gm.apply(lambda module: None) is gm,
    "requires_grad_": lambda gm: gm.requires_grad_(False).linear.weight,
    "zero_grad": lambda gm: gm.zero_grad(),
    "add_submodule": lambda gm: gm.add_submodule("relu", nn.ReLU()),
    "delete_submodule": lambda gm: gm.delete_submodule("linear"),
    "set_submodule": lambda gm: gm.set_submodule("linear", nn.ReLU()),
    "delete_all_unused_submodules": lambda gm: (
        gm.delete_all_unused_submodules()
    ),
    "setattr": lambda gm: setattr(gm, "factor", 3),
    "register_buffer": lambda gm: gm.register_buffer("b", torch.ones(1)),
    "register_forward_hook": lambda gm: bool(gm.register_forward_hook(print)),
    "graph": lambda gm: gm.graph,
    "recompile": lambda gm: gm.recompile(),
    "call": lambda gm: gm(1),
    "copy": lambda gm: type(copy.copy(gm)).__name__,
}


@program()
def what_can_be_asked_before_there_is_a_graph(lib: Lib) -> Seen:
    base: AnyValue = lib.GraphModule

    class Extractor(base):  # type: ignore[misc]  # of either library
        def __init__(self) -> None:
            nn.Module.__init__(self)
            torch.manual_seed(0)
            self.linear = nn.Linear(2, 2)

    told = []
    for name, ask in BEFORE_ITS_GRAPH.items():
        try:
            told.append((name, str(ask(Extractor()))))
        except (AttributeError, NotImplementedError) as error:
            told.append((name, type(error).__name__))
    return told
