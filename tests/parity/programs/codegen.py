"""Generated code: one statement per node, and what each looks like."""

from __future__ import annotations

import gc
import math
import operator
import weakref
from typing import Any, no_type_check

import torch
from torch import nn

from tests.parity.harness import Lib, Seen, error, program
from tests.parity.programs._subjects import (
    AnyValue,
    Outer,
    Overview,
    Root,
    lines,
    module_of,
)


def body(gm: AnyValue) -> list[str]:
    """The statements of generated code, after the def line."""
    code = gm.code.splitlines()
    start = next(i for i, line in enumerate(code) if line.startswith("def "))
    return [line.strip() for line in code[start + 1 :] if line.strip()]


def statements(lib: Lib, *calls: tuple[AnyValue, ...]) -> list[str]:
    """The statements of calls (target, args, kwargs) on two inputs."""
    g = lib.Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    named = {"x": x, "y": y}

    def put_in(value: AnyValue) -> AnyValue:
        if value == "new":
            return g.call_method("clone", (x,))
        return named.get(value, value) if isinstance(value, str) else value

    for target, args, kwargs in calls:
        new_args = tuple(put_in(a) for a in args)
        new_kwargs = {k: put_in(v) for k, v in kwargs.items()}
        g.call_function(target, new_args, new_kwargs)
    g.output((x, y))
    return body(lib.GraphModule({}, g))[:-1]


def double(x: AnyValue) -> AnyValue:
    """A function of the user's."""
    return x * 2


@program(claims=("fx-three-components",))
def trace_change_and_generate(lib: Lib) -> Seen:
    root = Root(
        lambda self, x: torch.add(x, self.w), w=nn.Parameter(torch.ones(2))
    )
    gm = lib.symbolic_trace(root)
    before = [type(gm.graph).__name__, gm.code, gm(torch.ones(2) * 3)]
    for node in gm.graph.nodes:
        if node.target is torch.add:
            node.target = torch.mul
    gm.graph.lint()
    gm.recompile()
    return [*before, gm.code, gm(torch.ones(2) * 3), isinstance(gm, nn.Module)]


@program(claims=("overview-example-code", "codegen-frees-dead-values"))
def the_code_of_the_overview_module(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(Overview())
    expected = """

def forward(self, x):
    param = self.param
    add = x + param;  x = param = None
    linear = self.linear(add);  add = None
    clamp = linear.clamp(min = 0.0, max = 1.0);  linear = None
    return clamp
    """
    return [
        gm.code == "\n" + expected or gm.code,
        gm.code,
        gm(torch.ones(3, 4)),
    ]


@program(claims=("codegen-object", "codegen-python-code"))
def python_code_is_source_and_globals(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: torch.relu(x) + math.floor(x))
    code = gm.graph.python_code("self")
    names = dict(code.globals)
    exec(code.src, names)
    plain = lib.Graph()
    plain.output(plain.placeholder("x"))
    return [
        type(code).__name__,
        code.src == gm.code,
        names["forward"](gm, torch.tensor(1.5)),
        code.globals["math_floor"] is math.floor,
        code.globals["torch"] is torch,
        plain.python_code("self").src,
        plain.python_code(root_module="mod").src,
        error(lambda: plain.python_code()).partition("(")[0],
        lib.CodeGen.__name__,
    ]


@program(claims=("codegen-python-code",))
def another_name_for_the_root(lib: Lib) -> Seen:
    graph = lib.Tracer().trace(Outer())
    return graph.python_code("root.of.it").src


@program(claims=("codegen-placeholder-signature", "opcode-placeholder-default"))
def placeholders_are_the_parameters(lib: Lib) -> Seen:
    g = lib.Graph()
    x, y = g.placeholder("x"), g.placeholder("y", default_value=3)
    z = g.placeholder("z", default_value=None)
    g.placeholder("*rest")
    more = g.placeholder("**more")
    g.output((y, x, z, more))
    gm = lib.GraphModule({}, g)
    return [gm.code, gm(1), gm(1, 2, 3, 4, k=5), gm(y=7, x=0)]


@program(claims=("codegen-get-attr",))
def attributes_are_paths_from_self(lib: Lib) -> Seen:
    g = lib.Graph()
    targets = ("w", "a.b.w", "seq.0.w", "a b.w", "0")
    g.output([g.get_attr(t) for t in targets])
    gm = lib.GraphModule({t: nn.Parameter(torch.ones(1)) for t in targets}, g)
    return [gm.code, [float(v) for v in gm()]]


@program(claims=("codegen-call-module",))
def module_calls_are_paths_with_arguments(lib: Lib) -> Seen:
    class Own(nn.Module):
        def forward(self, *args: Any, **kwargs: Any) -> object:
            return [args, kwargs]

    g = lib.Graph()
    x = g.placeholder("x")
    own = g.call_module("own", (x, [x, 1]), {"k": x, "flag": True})
    other = g.call_module("deep.own", (), {"out": own})
    last = g.call_module("list.0", (other, (x,)))
    g.output(last)
    gm = lib.GraphModule({"own": Own(), "deep.own": Own(), "list.0": Own()}, g)
    return [gm.code, gm(7)]


@program(claims=("codegen-call-method",))
def method_calls_are_written_on_their_first_argument(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    clamp = g.call_method("clamp", (x,), {"min": 0.0, "max": 1.0})
    view = g.call_method("reshape", (clamp, 2, -1))
    call = g.call_method("__getitem__", (view, 0))
    const = g.call_method("format", ("{} {}", 1, x))
    g.output((call, const))
    gm = lib.GraphModule({}, g)
    return [gm.code, gm(torch.ones(2, 2))[0]]


@program(claims=("codegen-call-method",))
def a_dotted_method_name_is_a_chain(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    g.output(g.call_method("T.relu", (x,)))
    gm = lib.GraphModule({}, g)
    return [gm.code, gm(torch.tensor([[-1.0, 2.0]]))]


@program(claims=("codegen-magic-template",))
def in_place_operators_run_in_place(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    a = g.call_function(operator.iadd, (x, 1))
    g.call_function(operator.setitem, (a, 0, 9))
    b = g.call_function(operator.imul, (a, 2))
    g.output(b)
    gm = lib.GraphModule({}, g)
    given = torch.ones(2)
    return [gm.code, gm(given), given]


@program(
    differs="in-place-then-read",
    ours=[
        "    iadd = _operator_iadd(n, 1)",
        "    setitem = _operator_setitem(d, 0, 1);  d = None",
        [3, 20, None],
        [3, 20, None],
    ],
)
def a_number_is_read_after_an_in_place_operator(lib: Lib) -> Seen:
    g = lib.Graph()
    n, d = g.placeholder("n"), g.placeholder("d")
    add = g.call_function(operator.iadd, (n, 1))
    put = g.call_function(operator.setitem, (d, 0, 1))
    g.output([add, g.call_function(operator.mul, (n, 10)), put])
    gm = lib.GraphModule({}, g)
    first, second = gm.code.strip().split("\n")[1:3]
    return [first, second, gm(2, {}), lib.Interpreter(gm).run(2, {})]


@program(claims=("codegen-function-names",))
def functions_of_one_name_are_told_apart(lib: Lib) -> Seen:
    with (
        module_of("def f(x):\n    return x + 1", name="one.f") as one,
        module_of("def f(x):\n    return x + 2", name="one_f") as two,
    ):
        g = lib.Graph()
        x = g.placeholder("one_f_f")
        y = g.call_function(one.f, (x,))
        z = g.call_function(two.f, (y,), name="len")
        g.output((y, z, g.call_function(one.f, (z,))))
        gm = lib.GraphModule({}, g)
        return [gm.code, gm(1)]


@program(claims=("codegen-function-names",))
def named_lambdas_and_local_functions_as_targets(lib: Lib) -> Seen:
    def local(x: AnyValue) -> AnyValue:
        return x - 1

    named = lambda v: v * 10  # noqa: E731
    g = lib.Graph()
    value = g.placeholder("x")
    for target in (local, named, local):
        value = g.call_function(target, (value,))
    g.output(value)
    gm = lib.GraphModule({}, g)
    return [lines(g), str(g), gm.code, gm(3)]


@program(
    claims=("codegen-function-names",),
    differs="lambda-names",
    ours=[
        "_lambda_ = tests_parity_programs_codegen_lambda_(x);  x = None",
        "_lambda__1 = tests_parity_programs_codegen_lambda__1(_lambda_);  "
        "_lambda_ = None",
        "return _lambda__1",
    ],
)
def lambdas_that_are_not_assigned_to_a_name(lib: Lib) -> Seen:
    g = lib.Graph()
    value = g.placeholder("x")
    for target in (lambda v: v * 100, lambda v: v + 0.5):
        value = g.call_function(target, (value,))
    g.output(value)
    return body(lib.GraphModule({}, g))


@program(claims=("codegen-output-return",))
def output_is_the_return_statement(lib: Lib) -> Seen:
    outputs: list[AnyValue] = [
        lambda x, add: (add, [x, 1]),
        lambda x, add: add,
        lambda x, add: None,
        lambda x, add: {"a": add, 1: (x,), "b": {}},
        lambda x, add: [add, slice(x, None), ..., 1.5, "text"],
        lambda x, add: ((), [], {}, ((add,),)),
    ]
    seen = []
    for output in outputs:
        g = lib.Graph()
        x = g.placeholder("x")
        g.output(output(x, g.call_function(operator.add, (x, 1))))
        seen.append(body(lib.GraphModule({}, g)))
    return seen


@program(claims=("codegen-frees-dead-values", "codegen-last-use-reverse-scan"))
def values_are_set_to_none_after_their_last_use(lib: Lib) -> Seen:
    @no_type_check
    def f(x, y, z):
        a = x + y
        b = torch.cat([a, a, x])
        torch.neg(b)
        c = b.sum(dim=0, out=a)
        return a, c, z

    return body(lib.symbolic_trace(f))


@program(claims=("codegen-memory-released",))
def a_dead_value_is_freed_while_forward_still_runs(lib: Lib) -> Seen:
    watched: list[weakref.ref[AnyValue]] = []
    alive: list[bool] = []

    def watch(x: AnyValue) -> AnyValue:
        watched.append(weakref.ref(x))
        return x

    def look(x: AnyValue) -> AnyValue:
        gc.collect()
        alive.append(watched[0]() is not None)
        return x

    g = lib.Graph()
    x = g.placeholder("x")
    mid = g.call_function(torch.mul, (x, 2))
    seen = g.call_function(watch, (mid,))
    first = g.call_function(look, (x,))
    used = g.call_function(torch.add, (seen, first))
    after = g.call_function(look, (used,))
    g.output(after)
    out = lib.GraphModule({}, g)(torch.ones(2))
    return [alive, out]


@program(claims=("codegen-builtin-globals",))
def names_every_generated_function_can_use(lib: Lib) -> Seen:
    g = lib.Graph()
    g.output((math.inf, -math.inf, type(None) is not None))
    code = g.python_code("self")
    gm = lib.GraphModule({}, g)
    return [
        sorted(code.globals),
        code.globals["NoneType"] is type(None),
        code.globals["device"] is torch.device,
        code.globals["fx_pytree"] is lib._pytree,
        code.src,
        gm(),
    ]


@program(claims=("codegen-no-import-lines",))
def generated_code_imports_nothing(lib: Lib) -> Seen:
    with module_of("import math\ndef f(x):\n    return math.sqrt(x)") as user:
        gm = lib.symbolic_trace(user.f)
        code = gm.code
    return [
        "import" in code.replace("fx._symbolic_trace", ""),
        "import" in lib.symbolic_trace(Overview()).code,
    ]


@program(claims=("codegen-node-by-node",))
def names_of_nodes_that_python_forbids(lib: Lib) -> Seen:
    g = lib.Graph()
    names = (
        "class",
        "len",
        "print",
        "self_",
        "x.y",
        "1st",
        "über",
        "inf",
    )
    inputs = [g.placeholder(n) for n in ("x", "input", "type", "sum")]
    named = [
        g.create_node("call_function", double, (inputs[0],), name=n)
        for n in names
    ]
    g.output((inputs, named))
    gm = lib.GraphModule({}, g)
    return [[n.name for n in g.nodes], gm.code, gm(1, 2, 3, 4)]
