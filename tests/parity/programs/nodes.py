"""The six kinds of nodes, and what every node carries."""

from __future__ import annotations

import copy
import inspect
import math
import operator
import pickle
from functools import partial

import torch

from tests.parity.harness import Lib, Made, Seen, error, names, program

OPCODES = (
    "placeholder",
    "get_attr",
    "call_function",
    "call_method",
    "call_module",
    "output",
)


def double(value: Made) -> Made:
    """A user's function."""
    return value + value


def facts(node: Made) -> Seen:
    """op, target, name, args and kwargs of a node, as plain data."""
    target = node.target if isinstance(node.target, str) else "a callable"
    return (node.op, target, node.name, repr(node.args), repr(node.kwargs))


@program(claims=("opcode-six-kinds", "opcode-unknown-rejected"))
def unknown_opcodes_are_refused(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    raised = [
        error(partial(g.create_node, op, "x", (x,)), chars=28)
        for op in ("foo", "bar", "Foo", "get")
    ]
    return raised, len(g.nodes), names(g.nodes), names(x.users)


@program(
    claims=("opcode-six-kinds", "opcode-unknown-rejected", "lint-opcode"),
    differs="root-opcode",
    ours=("AssertionError", ["x"]),
)
def nobody_else_may_be_a_root(lib: Lib) -> Seen:
    g = lib.Graph()
    g.placeholder("x")
    raised = error(lambda: g.create_node("root", "r"))
    return raised.partition(":")[0], names(g.nodes)


@program(claims=("opcode-placeholder",))
def placeholder_target_is_the_parameters_name(lib: Lib) -> Seen:
    g = lib.Graph()
    made = [g.placeholder("x"), g.placeholder("y", type_expr=int)]
    made.append(g.create_node("placeholder", "z", (), {}, "other"))
    return [facts(n) for n in made], [n.type is int for n in made]


@program(claims=("opcode-placeholder-default",))
def placeholder_args_hold_the_default(lib: Lib) -> Seen:
    g = lib.Graph()
    defaults = (3, None, "s", 1.5, (1, 2), [1], {"a": 1})
    made = [g.placeholder(f"p{i}", None, d) for i, d in enumerate(defaults)]
    made.append(g.placeholder("empty", default_value=inspect.Signature.empty))
    made.append(g.placeholder("plain"))
    made.append(g.create_node("placeholder", "low", (4,)))
    return [(n.name, repr(n.args)) for n in made], str(g)


@program(claims=("opcode-get-attr",))
def get_attr_keeps_the_dotted_name(lib: Lib) -> Seen:
    g = lib.Graph()
    return [facts(g.get_attr("foo.bar.baz")), facts(g.get_attr("weight"))]


@program(claims=("opcode-call-function",))
def call_function_targets_are_the_objects(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    functions = (torch.relu, double, len, operator.add, math.sqrt, print)
    made = [g.call_function(f, (x, 2), {"k": x}) for f in functions]
    same = [n.target is f for n, f in zip(made, functions, strict=True)]
    return same, [facts(n) for n in made]


@program(claims=("opcode-call-method",))
def call_method_holds_the_object_in_args(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    node = g.call_method("view", (x, 2, -1), {"k": 1})
    return facts(node), node.args[0] is x


@program(claims=("opcode-call-module",))
def call_module_args_are_without_the_module(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    node = g.call_module("foo.bar", (x,), {"scale": x})
    return facts(node), len(node.args)


@program(claims=("opcode-output", "graph-str-output-line"))
def output_holds_the_returned_structure(lib: Lib) -> Seen:
    seen = []
    for structure in (
        lambda x, y: x,
        lambda x, y: (x, y),
        lambda x, y: [x, (y, 1)],
        lambda x, y: {"a": x, "b": y},
        lambda x, y: None,
        lambda x, y: (),
        lambda x, y: slice(x, None),
        lambda x, y: 3,
    ):
        g = lib.Graph()
        out = g.output(structure(g.placeholder("x"), g.placeholder("y")))
        kind = type(out.args[0]).__name__
        seen.append((facts(out), kind, len(out.args), out.format_node()))
    return seen


@program(claims=("target-type-constraint",))
def node_checks_the_type_of_its_target(lib: Lib) -> Seen:
    g = lib.Graph()
    wrong = [
        error(partial(lib.Node, g, "n", op, torch.relu, (), {}), chars=6)
        for op in OPCODES
        if op != "call_function"
    ]
    wrong.append(error(lambda: g.call_function("relu", ()), chars=6))
    for op, target in (("call_function", "relu"), ("call_method", torch.relu)):
        try:
            lib.Node(g, "n", op, target, (), {})
        except ValueError as raised:
            text = str(raised)
            wrong.append(f"{'a Callable is expected' in text}")
            wrong.append(f"{'a str is expected' in text}")
    return wrong, len(g.nodes)


@program(claims=("target-type-constraint",))
def other_targets_fail_already_in_create_node(lib: Lib) -> Seen:
    g = lib.Graph()
    return [
        error(lambda: g.create_node("call_function", 3), chars=37),
        error(lambda: g.create_node("call_function", None), chars=37),
        error(lambda: g.create_node("call_method", 3), chars=37),
        error(lambda: g.create_node("placeholder", b"x"), chars=37),
    ]


@program(claims=("node-constructor-params",))
def parameters_of_the_node_constructor(lib: Lib) -> Seen:
    parameters = inspect.signature(lib.Node.__init__).parameters
    g = lib.Graph()
    typed = lib.Node(g, "a", "call_function", abs, (), {}, int)
    by_name = lib.Node(g, "b", "call_function", abs, (), {}, return_type=str)
    plain = lib.Node(g, "c", "call_function", abs, (), {})
    return (
        list(parameters),
        parameters["return_type"].default,
        (typed.type is int, by_name.type is str, plain.type),
        names([typed, by_name, plain]),
    )


@program(claims=("node-constructor-params", "node-attributes"))
def a_node_made_by_hand_is_in_no_list_yet(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    loose = lib.Node(g, "loose", "call_function", torch.relu, (x,), {})
    before = (names(g.nodes), len(g.nodes), names(x.users))
    return before, loose.graph is g, loose.next is loose, loose.prev is loose


@program(claims=("node-attributes",))
def what_a_fresh_node_carries(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    n = g.call_function(torch.relu, (x,), {"inplace": False})
    fields = "graph name op target type meta users _input_nodes _args _kwargs"
    return (
        [type(getattr(n, field)).__name__ for field in fields.split()],
        (n.graph is g, n.name, n.op, n.target is torch.relu, n.type),
        (n.meta, n.users, names(n._input_nodes)),
        (n.args is n._args, n.kwargs is n._kwargs, n._erased, n._repr_fn),
        hasattr(n, "_sort_key"),
    )


@program(claims=("node-attributes",))
def a_node_takes_further_attributes(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    x.shape_key = (1, 2)
    x.cost = 3
    return x.shape_key, x.cost, error(lambda: x.missing).partition(":")[0]


@program(claims=("node-attributes", "replace-target-recipe"))
def target_type_meta_and_users_can_be_assigned(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    n = g.call_function(torch.relu, (x,))
    n.target, n.type, n.meta = torch.sigmoid, int, {"k": 1}
    n.users = {}
    n.op = "call_method"
    n.target = "sigmoid"
    return facts(n), n.type is int, n.meta, str(g)


@program(claims=("node-type-expr",))
def every_creation_method_takes_type_expr(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x", type_expr=int)
    g.get_attr("w", type_expr=int)
    g.call_function(abs, (x,), type_expr=int)
    g.call_method("bit_length", (x,), type_expr=int)
    g.call_module("m", (x,), type_expr=int)
    g.create_node("call_function", abs, (x,), type_expr=int)
    g.output(x, type_expr=int)
    return [n.type is int for n in g.nodes], str(g)


@program(claims=("node-repr-fn",))
def repr_fn_overrides_how_a_node_prints(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    n = g.call_function(torch.relu, (x,))
    before = (repr(x), str(x), f"{x}", repr([x]))
    x._repr_fn = lambda node: f"<{node.name}>"
    after = (repr(x), str(x), f"{x}", n.format_node(), str(g))
    x._repr_fn = None
    return before, after, repr(x)


@program(claims=("node-meta",))
def meta_is_a_dict_of_each_node(lib: Lib) -> Seen:
    g = lib.Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    fresh = (dict(x.meta), y.meta is x.meta, type(x.meta).__name__)
    x.meta["note"] = [1]
    x.meta["val"] = 3
    return fresh, x.meta, y.meta, list(x.meta)


@program(claims=("node-stack-trace-property",))
def stack_trace_lives_in_meta(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    seen = [x.stack_trace, dict(x.meta)]
    x.stack_trace = "File here, line 1"
    seen.append((x.stack_trace, dict(x.meta)))
    x.meta["stack_trace"] = "there"
    seen.append(x.stack_trace)
    x.stack_trace = None
    return [*seen, x.stack_trace, dict(x.meta)]


@program(claims=("node-meta", "node-copy-keeps-name-type-meta"))
def copying_a_graph_copies_meta_of_every_node(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    out = g.output(x)
    shared = [1]
    x.meta["a"], out.meta["b"] = shared, 2
    h = copy.deepcopy(g)
    metas = [n.meta for n in h.nodes]
    metas[0]["new"] = 1
    return metas, x.meta, metas[0]["a"] is shared


@program(claims=("node-attributes",))
def equality_is_identity(lib: Lib) -> Seen:
    g, h = lib.Graph(), lib.Graph()
    x, twin = g.placeholder("x"), h.placeholder("x")
    return x == twin, x != twin, x == x, x == "x", x in [twin], bool(x)


@program(
    differs="graph-pickle-depth",
    ours=(["no error", "no error", "no error"], [5002, 5002, 5002]),
)
def long_graphs_and_their_nodes_can_be_pickled_and_copied(lib: Lib) -> Seen:
    g = lib.Graph()
    value = g.placeholder("x")
    for _ in range(5000):
        value = g.call_function(torch.relu, (value,))
    g.output(value)
    made: list[Made] = []
    raised = [
        error(lambda: made.append(pickle.loads(pickle.dumps(g)))),
        error(lambda: made.append(pickle.loads(pickle.dumps(value)).graph)),
        error(lambda: made.append(copy.deepcopy(value).graph)),
    ]
    kinds = [said.partition(":")[0] for said in raised]
    return kinds, [len(one.nodes) for one in made]


@program()
def pickle_keeps_what_hangs_on_a_node(lib: Lib) -> Seen:
    g = lib.Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    n = g.call_function(operator.getitem, (x, slice(y, None, x)))
    m = g.call_function(torch.add, (n, [x, {"k": (y, None)}]))
    g.output(m, type_expr=torch.Tensor)
    x.cost, x.meta["next"], y.meta["plain"] = 5, n, [1, "text"]
    x.prepend(y)
    first = pickle.loads(pickle.dumps(g))
    first.lint()
    y2, x2, n2, m2, out = first.nodes
    return (
        str(first) == str(g),
        (x2.cost, x2.meta["next"] is n2, y2.meta, out.type is torch.Tensor),
        (m2.target is torch.add, n2.args[1].start is y2),
        (names(x2.users), names(y2.users), y2 < x2 < n2 < m2),
        error(lambda: pickle.dumps(first)),
    )


@program(
    differs="graph-pickle-operators",
    ours=["no error", "no error"],
)
def operators_and_packets_can_be_pickled_in_a_graph(lib: Lib) -> Seen:
    seen = []
    for target in (torch.ops.aten.add.Tensor, torch.ops.aten.add):
        g = lib.Graph()
        g.output(g.call_function(target, (g.placeholder("x"), 1)))
        said = error(partial(pickle.dumps, g)).partition(":")[0]
        if said == "no error":
            back = pickle.loads(pickle.dumps(g))
            _, call, _ = back.nodes
            said = said if call.target is target else "another target"
        seen.append(said)
    return seen


@program()
def a_node_survives_pickle_with_its_graph(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    g.output(g.call_function(torch.relu, (x,)))
    back = pickle.loads(pickle.dumps({"first": x, "all": list(g.nodes)}))
    first = back["first"]
    same = (first is back["all"][0], first.graph is back["all"][1].graph)
    return names(back["all"]), same, str(first.graph), names(first.users)


@program()
def a_node_is_copied_deeply_with_its_graph(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    n = g.call_function(torch.relu, (x,))
    g.output(n)
    copies: list[Made] = [n]
    raised = error(lambda: copies.append(copy.deepcopy(n)))
    last = copies[-1]
    twin = str(last.graph) == str(g)
    return raised.partition(":")[0], last.name, twin, last.graph is g
