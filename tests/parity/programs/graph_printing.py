"""How graphs and nodes are written as text."""

from __future__ import annotations

import contextlib
import functools
import io
import operator
import sys
from collections.abc import Callable
from typing import Any, Literal, Optional
from unittest import mock

import torch

from tests.parity.harness import Lib, Made, Seen, error, program


class Printed:
    """A constant that says how a graph shall print it."""

    def _custom_fx_repr_fn(self) -> str:
        return "as it likes"


def printed(act: Callable[[], object]) -> str:
    """What `act` writes to the standard output."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        act()
    return out.getvalue()


def overview(lib: Lib) -> Made:
    """get_attr, add, call_module and clamp, built by hand."""
    g = lib.Graph()
    x = g.placeholder("x")
    param = g.get_attr("param")
    add = g.call_function(operator.add, (x, param))
    linear = g.call_module("linear", (add,))
    clamp = g.call_method("clamp", (linear,), {"min": 0.0, "max": 1.0})
    g.output(clamp)
    return g


@program(claims=("graph-str-users-count", "graph-str-header"))
def overview_graph_prints_line_by_line(lib: Lib) -> Seen:
    return str(overview(lib)).splitlines()


@program(claims=("graph-str-users-count",))
def users_are_counted_at_the_time_of_printing(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    seen = [str(g)]
    twice = g.call_function(operator.add, (x, x))
    seen.append(str(g))
    g.call_function(torch.relu, (x,))
    g.erase_node(twice)
    return [*seen, str(g)]


@program(claims=("graph-str-header",))
def header_is_always_the_same(lib: Lib) -> Seen:
    empty, g = lib.Graph(), lib.Graph()
    g.output(g.placeholder("x"), type_expr=torch.Tensor)
    h = lib.Graph()
    h.placeholder("x", type_expr=int)
    h.placeholder("y", default_value=3)
    return str(empty), str(g).splitlines(), str(h).splitlines(), f"{h}"


@program(
    claims=("graph-str-target-names",),
    differs="callable-without-name",
    ours=[
        "[target=builtins.str.upper](args = (), kwargs = {})",
        "[target=functools.partial](args = (), kwargs = {})",
    ],
)
def odd_callables_print_too(lib: Lib) -> Seen:
    g = lib.Graph()
    seen = []
    for function in (str.upper, functools.partial(abs)):
        try:
            line = g.call_function(function, ()).format_node()
        except AttributeError as raised:
            line = f"AttributeError: {raised}"
        seen.append(line[line.find("[target") :])
    return seen


@program(claims=("graph-str-target-names",))
def string_targets_print_as_they_are(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    made = [
        g.call_module("layers.0.conv", (x,)),
        g.call_method("__getitem__", (x, 0)),
        g.get_attr("a.b.c"),
    ]
    return [n.format_node() for n in made]


@program(claims=("node-format-node", "graph-docstring-example"))
def format_node_is_a_line_of_the_listing(lib: Lib) -> Seen:
    g = overview(lib)
    lines = [line.strip() for line in str(g).splitlines()]
    return [n.format_node() in lines for n in g.nodes], len(lines)


@program(claims=("node-format-node",))
def arguments_print_nested(lib: Lib) -> Seen:
    g = lib.Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    args: tuple[object, ...] = (
        [x, (y, 1)],
        (x,),
        (),
        [],
        {},
        {"a": x, "b": [y]},
        slice(x, None, 2),
        "text",
        None,
        ...,
        1.5,
        float("nan"),
        torch.float32,
        torch.device("cpu"),
        Printed(),
        True,
    )
    kwargs = {"first": x, "second": (y, "s"), "third": {"k": x}}
    return [g.call_function(print, (a,)).format_node() for a in args] + [
        g.call_function(print, (), kwargs).format_node()
    ]


@program(claims=("node-format-node", "node-type-expr"))
def types_print_before_the_user_count(lib: Lib) -> Seen:
    g = lib.Graph()
    types = (
        int,
        torch.Tensor,
        list[int],
        Optional[torch.Tensor],  # noqa: UP045 - prints differently
        int | None,
        "a string",
        None,
        Any,
        tuple[int, ...],
        dict[str, torch.Tensor],
        torch.nn.Linear,
        type(None),
        Callable[[int], str],
        Literal[1],
    )
    made = []
    for kind in types:
        made.append(g.placeholder("x", type_expr=kind))
        made.append(g.call_function(abs, (), type_expr=kind))
        made.append(g.get_attr("w", type_expr=kind))
    return [n.format_node() for n in made]


@program(claims=("node-format-node", "opcode-placeholder-default"))
def defaults_print_behind_the_target(lib: Lib) -> Seen:
    g = lib.Graph()
    defaults = (1, None, "s", (1, 2), [1], {"a": 1}, torch.float32, 1e400)
    made = [g.placeholder("x", int, d) for d in defaults]
    return [n.format_node() for n in made]


@program(claims=("node-format-node",))
def tensor_metadata_prints_on_request(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    relu = g.call_function(torch.relu, (x,), type_expr=int)
    x.meta["val"] = relu.meta["val"] = torch.zeros(2, 3)
    neg = g.call_function(torch.neg, (x,))
    neg.meta["val"] = 3
    late = g.call_function(torch.abs, (x,))
    late.meta["example_value"] = torch.zeros(4, dtype=torch.int64)
    g.call_method("t", (x,)).meta["tensor_meta"] = torch.ones(2, 2).bool()
    return [
        [n.format_node(include_tensor_metadata=True) for n in g.nodes],
        [n.format_node() for n in g.nodes],
    ]


@program(claims=("node-format-node",))
def format_node_fills_a_list_that_holds_something(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    out = g.output(x, type_expr=torch.Tensor)
    parameters, returns = ["self"], [""]
    lines = [
        x.format_node(parameters),
        out.format_node(parameters, returns),
        x.format_node([]),
    ]
    return lines, parameters, returns


@program(
    claims=("node-format-node",),
    differs="format-node-typed-placeholder",
    ours=(None, ["self", "x: int"]),
)
def format_node_writes_a_typed_parameter_once(lib: Lib) -> Seen:
    parameters = ["self"]
    line = lib.Graph().placeholder("x", int).format_node(parameters)
    return line, parameters


@program(claims=("graph-print-tabular",))
def table_of_the_overview(lib: Lib) -> Seen:
    return printed(overview(lib).print_tabular)


@program(claims=("graph-print-tabular",))
def table_of_a_graph_with_short_names(lib: Lib) -> Seen:
    g = lib.Graph()
    g.call_method("t", (g.placeholder("x"),), {"k": 1})
    return printed(g.print_tabular)


@program(claims=("graph-print-tabular",))
def table_of_an_empty_graph(lib: Lib) -> Seen:
    return printed(lib.Graph().print_tabular)


@program(claims=("graph-print-tabular",))
def table_with_nested_arguments_and_long_cells(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("a_very_long_name_indeed", default_value=(1, 2))
    y = g.call_function(operator.add, ([x, (x, 1)],), {"k": {"deep": x}})
    g.call_method("view", (y, -1, 2.5, None), {"text": "with | and\ttab"})
    g.call_module("layers.0", ())
    g.output((y, [x]))
    return printed(g.print_tabular)


@program(
    claims=("graph-print-tabular",),
    differs="print-tabular-needs-nothing",
    ours=("no error", ["opcode", "name", "target", "args", "kwargs"]),
)
def table_without_the_package_tabulate(lib: Lib) -> Seen:
    raised: list[str] = []
    with mock.patch.dict(sys.modules, {"tabulate": None}):
        text = printed(
            lambda: raised.append(error(overview(lib).print_tabular))
        )
    return raised[0].partition(":")[0], text.splitlines()[0].split()


def known(lib: Lib, **meta: object) -> Seen:
    """A node with notes, in the printed graph and in code for people."""
    g = lib.Graph()
    relu = g.call_function(torch.relu, (g.placeholder("x"),))
    relu.meta.update(meta)
    g.output(relu)
    options = {"verbose": True, "include_stride": True, "include_device": True}
    return [
        relu.format_node(include_tensor_metadata=True),
        g.python_code("self", **options).src,
    ]


@program(newest=True)
def tensors_with_compressed_rows_have_no_strides(lib: Lib) -> Seen:
    x = torch.eye(4)
    return [
        known(lib, val=value)
        for value in (
            x,
            x.to_sparse(),
            x.to_sparse_csr(),
            x.to_sparse_csc(),
            x.to_sparse_bsr((2, 2)),
            x.to_sparse_bsc((2, 2)),
        )
    ]


@program(newest=True)
def nodes_of_a_backward_pass_say_so(lib: Lib) -> Seen:
    trace = 'File "a.py", line 3, in forward\n    y = relu(x)\n'
    return [
        known(lib, stack_trace=trace, autograd_backward=True),
        known(lib, stack_trace=trace, autograd_backward=False),
        known(lib, autograd_backward=True),
    ]


@program(newest=True)
def the_current_device_where_one_compiles_for_all(lib: Lib) -> Seen:
    config: Any = torch.compiler.config
    ours = torch.device("meta")
    devices = [torch.device("meta", index) for index in (0, 3)]

    def lines() -> Seen:
        g = lib.Graph()
        values = [torch.empty(2, device=device) for device in devices]
        return [
            g.call_function(torch.zeros, (2,), {"device": d}).format_node()
            for d in (*devices, ours, torch.device("cpu"))
        ] + [known(lib, val=value) for value in values]

    accelerator = torch.accelerator
    with (
        mock.patch.object(accelerator, "current_accelerator", lambda: ours),
        mock.patch.object(accelerator, "current_device_index", lambda: 3),
        config.patch(compile_on_one_rank=True),
    ):
        seen = lines()
    return seen, lines()
