"""Code of graphs that few people build: odd operands, nested defaults."""

from __future__ import annotations

import contextlib
import copy
import importlib
import io
import operator
from collections import namedtuple
from types import SimpleNamespace
from typing import no_type_check

import torch
from torch import nn

from tests.parity.harness import Lib, Made, Seen, error, program
from tests.parity.programs._subjects import Root, subclass


def built(lib: Lib, target: object, *args: object, **kwargs: object) -> Made:
    """A module that takes x and returns one call; "x" stands for its input."""
    g = lib.Graph()
    x = g.placeholder("x")
    given = tuple(x if a == "x" else a for a in args)
    make = g.call_method if isinstance(target, str) else g.call_function
    g.output(make(target, given, kwargs))
    return lib.GraphModule({}, g)


def called(
    lib: Lib, x: object, target: object, *args: object, **kwargs: object
) -> object:
    """What such a module returns for `x`, or the type of its error."""
    quiet = contextlib.redirect_stderr(io.StringIO())
    try:
        with quiet:
            return built(lib, target, *args, **kwargs)(x)
    except Exception as raised:
        return type(raised).__name__


class Classy:
    """Has attributes that Python cannot spell after a dot."""

    def __init__(self) -> None:
        setattr(self, "class", "first")


@program(differs="operators-as-python-reads-them", ours=[4, 6])
def in_place_operators_on_constants(lib: Lib) -> Seen:
    return [
        called(lib, 3, operator.iadd, 1, "x"),
        called(lib, 3, operator.imul, 2, "x"),
    ]


@program(differs="operators-as-python-reads-them", ours="first")
def an_attribute_that_is_called_class(lib: Lib) -> Seen:
    return called(lib, Classy(), getattr, "x", "class")


@program(
    differs="operators-as-python-reads-them", ours=["TypeError", "TypeError"]
)
def keywords_that_an_operator_does_not_take(lib: Lib) -> Seen:
    return [
        called(lib, 3, operator.add, "x", 2, other=1),
        called(lib, 3, operator.truediv, "x", 2, rounding_mode="floor"),
    ]


@program(
    differs="defaults-of-nested-inputs",
    ours=("no error", ["add = x + pair_1", "add_1 = add + pair_2"], 6),
)
def a_nested_input_with_a_default(lib: Lib) -> Seen:
    @no_type_check
    def f(x, pair=(1, 2)):
        return x + pair[0] + pair[1]

    nested = {"pair": (lib.PH, lib.PH)}
    graph = lib.Tracer().trace(f, concrete_args=nested)
    source = graph.python_code("self").src
    sums = [line.strip() for line in source.splitlines() if " + " in line]
    code = [line.partition(";")[0] for line in sums]
    made: list[Made] = []
    raised = error(lambda: made.append(lib.GraphModule({}, graph)), chars=0)
    return raised, code, made[0](1, (2, 3)) if made else None


class Nested(torch.nn.Module):
    @no_type_check
    def forward(this, x, d):
        return x - d["a"]


@program(
    differs="names-of-nested-inputs",
    ours=[-19, 3, "RuntimeError: a_nested_input_beside_names_like_it"],
)
def a_nested_input_beside_names_like_it(lib: Lib) -> Seen:
    @no_type_check
    def numbered(d, d_1):
        return d["a"] - d_1 * 10

    @no_type_check
    def with_rest(d, *rest):
        return d["a"]

    shape = {"d": {"a": lib.PH}}
    found: list[object] = []
    for root, inputs in [
        (numbered, ({"a": 1}, 2)),
        (Nested(), (5, {"a": 2})),
        (with_rest, ({"a": 1},)),
    ]:
        try:
            gm = lib.symbolic_trace(root, concrete_args=shape)
            found.append(gm(*inputs))
        except Exception as raised:
            words = str(raised).partition(".")[0]
            found.append(f"{type(raised).__name__}: {words}")
    return found


class Span(namedtuple("Span", "first last")):
    __slots__ = ()

    @no_type_check
    def __new__(cls, first, count):
        return super().__new__(cls, first, first + count)


@program(differs="named-tuples-with-new", ours=[11, [(1, 11)], (1, 11)])
def a_named_tuple_with_a_constructor_of_its_own(lib: Lib) -> Seen:
    g = lib.Graph()
    g.output(g.call_function(operator.getitem, ((Span(1, 10),), 0)))
    arg = copy.deepcopy(g).output_node().args[0].args[0]
    gm = lib.GraphModule({}, g)
    result = lib.symbolic_trace(lambda x: Span(x, 10))(1)
    return [result.last, [tuple(each) for each in arg], tuple(gm())]


@program(differs="parameters-that-swap-names", ours=2)
def parameters_whose_variables_are_named_crosswise(lib: Lib) -> Seen:
    g = lib.Graph()
    a = g.create_node("placeholder", "a", name="b")
    b = g.create_node("placeholder", "b", name="a")
    g.output(g.call_function(operator.sub, (a, b)))
    return lib.GraphModule({}, g)(5, 3)


@program(differs="parameters-that-swap-names", ours=2)
def parameters_whose_variables_have_one_name(lib: Lib) -> Seen:
    g = lib.Graph()
    a, b = g.placeholder("a"), g.placeholder("b")
    g.output(g.call_function(operator.sub, (a, b)))
    a.name = "b"
    return lib.GraphModule({}, g)(5, 3)


@program(
    differs="class-of-an-instance",
    ours=["no error", True],
)
def the_class_of_a_graph_module_makes_graph_modules(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: torch.relu(x))
    new = type(gm)({}, lib.symbolic_trace(lambda x: torch.neg(x)).graph)
    return [error(lambda: new.code, chars=0), "_modules" in vars(new)]


@program(newest=True)
def buffers_that_are_not_saved(lib: Lib) -> Seen:
    root = Root(
        lambda self, x: x + self.kept + self.passing, kept=torch.ones(1)
    )
    root.register_buffer("passing", torch.ones(1), persistent=False)
    gm = lib.symbolic_trace(root)
    return [
        sorted(gm.state_dict()),
        sorted(name for name, _ in gm.named_buffers()),
    ]


@program(
    differs="tensors-of-plain-objects",
    ours=["no error", ["settings.table"]],
    newest=True,
)
def a_tensor_of_an_object_that_is_no_module(lib: Lib) -> Seen:
    settings = SimpleNamespace(table=torch.ones(1))
    root = Root(lambda self, x: x, settings=settings)
    g = lib.Graph()
    g.output(g.get_attr("settings.table"))
    made: list[Made] = []
    failed = error(lambda: made.append(lib.GraphModule(root, g)))
    return [failed, [name for gm in made for name in gm.state_dict()]]


@program()
def plain_tensors_become_buffers_that_are_saved(lib: Lib) -> Seen:
    root = Root(lambda self, x: x + self.plain, sub=nn.Linear(1, 1))
    root.__dict__["plain"] = torch.ones(1)
    return sorted(lib.symbolic_trace(root).state_dict())


@program(differs="hygienic-code", ours=5)
def an_input_named_like_a_box(lib: Lib) -> Seen:
    home = "codegen.nested" if lib.__name__ == "fx" else "graph"
    boxed = importlib.import_module(f"{lib.__name__}.{home}")._BoxedCodeGen
    g = lib.Graph()
    g.output(g.placeholder("args_list"))
    g.set_codegen(boxed())
    try:
        return lib.GraphModule({}, g)([5])
    except Exception as raised:
        return type(raised).__name__


@program(differs="method-of-nothing", ours="RuntimeError: Node relu")
def a_method_without_an_object(lib: Lib) -> Seen:
    g = lib.Graph()
    g.output(g.call_method("relu", ()))
    return error(lambda: g.python_code("self"), chars=9)


@program(differs="additional-globals-clash", ours="RuntimeError")
def a_global_of_a_code_generator_that_has_its_name_taken(lib: Lib) -> Seen:
    home = "codegen.codegen" if lib.__name__ == "fx" else "graph"
    base = importlib.import_module(f"{lib.__name__}.{home}").CodeGen

    def additional_globals(self: object) -> list[tuple[str, object]]:
        return [("torch", 5)]

    g = lib.Graph()
    g.output(g.call_function(torch.relu, (g.placeholder("x"),)))
    g.set_codegen(subclass(base, additional_globals=additional_globals)())
    try:
        return sorted(g.python_code("self").globals)[-2:]
    except RuntimeError as raised:
        return type(raised).__name__
