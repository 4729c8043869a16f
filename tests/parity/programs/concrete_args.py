"""Concrete arguments: inputs fixed, or taken apart, before tracing."""

from __future__ import annotations

import collections
import importlib
import inspect
from typing import Any, NamedTuple, no_type_check

import torch

from tests.parity.harness import Lib, Made, Seen, error, program, show
from tests.parity.programs._subjects import AnyValue, lines


class Point(NamedTuple):
    """A named tuple: a pytree node."""

    x: Any
    y: Any


@no_type_check
def by_flag(x, flag):
    return x if flag else x * 2


@no_type_check
def summed(x):
    out = 0
    for v in x.values():
        out += v
    return out


@program(claims=("concrete-args",))
def a_fixed_flag_makes_its_branch_static(lib: Lib) -> Seen:
    on = lib.symbolic_trace(by_flag, concrete_args={"flag": True})
    off = lib.symbolic_trace(by_flag, concrete_args={"flag": False})
    x = torch.ones(2)
    return [
        *show(on, x, True),
        *show(off, x, False),
        error(lambda: on(x, False), chars=80),
        error(lambda: off(x, True), chars=80),
        error(lambda: lib.symbolic_trace(by_flag)),
    ]


@program(claims=("concrete-args",))
def constants_of_every_kind_are_asserted(lib: Lib) -> Seen:
    @no_type_check
    def f(x, n):
        return x if n else (x, 1)

    def fixing(value: object) -> list[object]:
        gm = lib.symbolic_trace(f, concrete_args={"n": value})
        return [gm.code, gm(7, value), error(lambda: gm(7, "wrong"), chars=90)]

    values = (3, 0, 2.5, "text", "", 1 + 2j, True, -0.0)
    return [fixing(value) for value in values]


@program(claims=("concrete-args",))
def none_is_asserted_too(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(
        lambda x, y: x if y is None else x + y, concrete_args={"y": None}
    )
    calls = [n for n in gm.graph.nodes if n.op == "call_function"]
    return [
        [n.target.__name__ for n in calls],
        [repr(n.args) for n in calls],
        gm(3, None),
        error(lambda: gm(3, 4), chars=80),
        [line for line in gm.code.splitlines() if "return" in line],
    ]


@program(claims=("concrete-args",))
def nested_inputs_of_every_container(lib: Lib) -> Seen:
    ph = lib.PH

    @no_type_check
    def f(pair, items, point, table, z):
        total = pair[0] - pair[1][0] + sum(items)
        return {
            "total": total * point.x + point.y,
            "both": [table["k"][0], (z, table["k"][1])],
        }

    gm = lib.symbolic_trace(
        f,
        concrete_args={
            "pair": (ph, (ph,)),
            "items": [ph, ph],
            "point": Point(ph, ph),
            "table": {"k": (ph, ph)},
        },
    )
    out = gm((9, (2,)), [1, 1], Point(2, 3), {"k": (5, 6)}, 7)
    return [str(gm.graph), gm.code, out]


@program(claims=("concrete-args",))
def named_and_ordered_containers_come_back(lib: Lib) -> Seen:
    @no_type_check
    def f(p, d):
        return Point(p.y, d["b"]), collections.OrderedDict(a=d["a"], s=p.x)

    ordered = collections.OrderedDict(a=lib.PH, b=lib.PH)
    args = {"p": Point(lib.PH, lib.PH), "d": ordered}
    gm = lib.symbolic_trace(f, concrete_args=args)
    first, second = gm(Point(1, 2), collections.OrderedDict(a=3, b=4))
    return [
        gm.code,
        (type(first).__name__, tuple(first)),
        (type(second).__name__, dict(second)),
    ]


@program(claims=("concrete-args",))
def constants_and_placeholders_in_one_tree(lib: Lib) -> Seen:
    @no_type_check
    def f(x, options):
        y = x * options["scale"]
        if options["flip"]:
            y = -y
        return y if options["bias"] is None else y + options["bias"]

    options = {"scale": lib.PH, "flip": True, "bias": None}
    gm = lib.symbolic_trace(f, concrete_args={"options": options})
    right = {"scale": 3, "flip": True, "bias": None}
    seen = [line for line in gm.code.splitlines() if "_assert" not in line]
    return [
        seen,
        gm(2, right),
        error(lambda: gm(2, {**right, "flip": False}), chars=70),
        error(lambda: gm(2, {**right, "bias": 1}), chars=70),
    ]


@program(claims=("concrete-args",))
def defaults_and_positions_of_fixed_parameters(lib: Lib) -> Seen:
    @no_type_check
    def f(flag, x, y=2, *, more=True):
        return x + y if flag and more else x

    gm = lib.symbolic_trace(f, concrete_args={"flag": 1, "more": True})
    return [
        *show(gm),
        gm(1, 5),
        gm(1, 5, 7, True),
        error(lambda: gm(2, 5), chars=70),
    ]


@program(
    differs="structure-of-nested-inputs",
    ours=[
        "RuntimeError: a list of 3 was given, and a list of 2 was traced",
        "RuntimeError: a Tensor was given, and a list of 2 was traced",
        "RuntimeError: a list of 1 was given, and a list of 2 was traced",
        "RuntimeError: a dict with the keys ['b'] was given, and a dict with "
        "the keys ['a'] was traced",
    ],
)
def nested_inputs_of_another_structure(lib: Lib) -> Seen:
    xs = [lib.PH, lib.PH]
    gm = lib.symbolic_trace(lambda xs: xs[0] + xs[1], concrete_args={"xs": xs})
    x = torch.ones(2)

    of_dict = lib.symbolic_trace(
        lambda x: x["a"], concrete_args={"x": {"a": lib.PH}}
    )

    def seen(module: Made, given: object) -> object:
        return error(lambda: module(given), chars=90).partition(", for")[0]

    said = [seen(gm, [x, x, x]), seen(gm, torch.ones(3, 2)), seen(gm, [x])]
    return [*said, seen(of_dict, {"b": x})]


@program(
    differs="library-functions-by-name",
    ours=["_assert_is_none = fx__symbolic_trace__assert_is_none(y_1, "],
)
def how_the_librarys_own_assertion_is_written(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x, y: x, concrete_args={"y": None})
    said = [line for line in gm.code.splitlines() if "is_none" in line]
    return [line.strip().partition("'")[0] for line in said]


@program(claims=("concrete-args",))
def a_tuple_of_concrete_args_is_positional(lib: Lib) -> Seen:
    tracer = lib.Tracer()
    graph = tracer.trace(by_flag, concrete_args=(lib.PH, True))
    return [
        lines(graph),
        error(
            lambda: lib.Tracer().trace(by_flag, concrete_args=(1,)), chars=60
        ),
    ]


@program(claims=("concrete-args",))
def placeholders_that_carry_a_key(lib: Lib) -> Seen:
    tracing = importlib.import_module(f"{lib.__name__}._symbolic_trace")
    keyed = tracing.PHWithMeta(ph_key="the key")
    keyed.note = 5
    graph = lib.Tracer().trace(
        lambda x, y: x["a"] + x["b"] + y,
        concrete_args={"x": {"a": keyed, "b": lib.PH}, "y": keyed},
    )
    return [
        [getattr(n, "ph_key", None) for n in graph.nodes],
        [getattr(n, "note", None) for n in graph.nodes],
        repr(lib.PH),
        isinstance(keyed, type(lib.PH)),
        [n.name for n in graph.nodes],
    ]


@program(claims=("concrete-args",))
def a_placeholder_alone_is_an_ordinary_input(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x, y: x - y, concrete_args={"y": lib.PH})
    return [*show(gm, 5, 3)]


@program(claims=("concrete-args",))
def traced_trees_survive_a_change_and_recompile(lib: Lib) -> Seen:
    inputs = {"a": lib.PH, "b": lib.PH}
    gm = lib.symbolic_trace(
        lambda x, y: {"r": x["a"] + x["b"] * y}, concrete_args={"x": inputs}
    )
    for node in gm.graph.nodes:
        if node.target is torch.add or node.name == "add":
            node.target = torch.sub
    gm.recompile()
    gm.graph.lint()
    again = lib.symbolic_trace(gm, concrete_args={"x": inputs})
    one = {"a": torch.tensor(5.0), "b": torch.tensor(2.0)}
    return [gm.code, gm(one, 2), again.code, again(one, 2)]


@program(claims=("concrete-args",))
def the_graph_knows_how_to_flatten_its_inputs(lib: Lib) -> Seen:
    inputs = {"a": lib.PH, "b": (lib.PH, lib.PH)}
    gm = lib.symbolic_trace(
        lambda x: [x["a"], {"s": x["b"][0] - x["b"][1]}],
        concrete_args={"x": inputs},
    )
    flat = gm.graph.process_inputs({"a": 1, "b": (7, 3)})
    return [
        list(flat),
        gm.graph.process_outputs([1, 4]),
        [n.name for n in gm.graph.nodes],
        lib.Interpreter(gm).run({"a": 1, "b": (7, 3)}),
        gm({"a": 1, "b": (7, 3)}),
    ]


@program(differs="interpreter-reads-by-key", ours=[3, 3, 3])
def an_interpreter_gets_a_dict_in_another_order(lib: Lib) -> Seen:
    inputs = {"a": lib.PH, "b": lib.PH}
    gm = lib.symbolic_trace(
        lambda x: x["a"] - x["b"], concrete_args={"x": inputs}
    )
    given = {"b": 2, "a": 5}
    run = lib.Interpreter(gm).run
    return [gm(given), run(given), run(5, 2)]


@program(claims=("concrete-args",), newest=True)
def annotated_parameters_that_are_taken_apart(lib: Lib) -> Seen:
    def f(x: dict[str, torch.Tensor], n: int) -> torch.Tensor:
        return x["a"] * n + x["b"]

    f.__annotations__.update(x=dict[str, torch.Tensor], n=int)
    f.__annotations__["return"] = torch.Tensor
    inputs = {"a": lib.PH, "b": lib.PH}
    gm = lib.symbolic_trace(f, concrete_args={"x": inputs})
    return [*show(gm), gm({"a": 2, "b": 3}, 4)]


@program(
    differs="concrete-args-checked",
    ours=["TypeError", "no error"],
)
def a_misspelt_key_of_concrete_args(lib: Lib) -> Seen:
    def trace(args: AnyValue) -> str:
        raised = error(lambda: lib.symbolic_trace(by_flag, concrete_args=args))
        return raised.partition(":")[0]

    return [trace({"flags": True, "flag": True}), trace({"flag": True})]


@program()
def the_rest_may_be_named_and_stays_an_input(lib: Lib) -> Seen:
    """Transformers fixes every parameter that has a default, and `kwargs`."""

    def f(
        x: AnyValue, flag: bool = False, *rest: AnyValue, **kwargs: AnyValue
    ) -> AnyValue:
        return x + 1 if flag else x

    given = {"flag": True, "rest": (), "kwargs": inspect.Parameter.empty}
    gm = lib.symbolic_trace(f, concrete_args=given)
    return str(gm.graph), gm.code
