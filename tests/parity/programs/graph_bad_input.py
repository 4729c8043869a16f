"""What the graph's own methods do with input that is wrong."""

from __future__ import annotations

import copy
import dataclasses
import signal
from collections.abc import Callable
from functools import partial

import torch

from tests.parity.harness import Lib, Made, Seen, error, names, program
from tests.parity.programs.use_def import edges, inputs


@dataclasses.dataclass
class Box:
    """A user's dataclass."""

    content: object
    label: str = "box"


def kind(said: str) -> str:
    """The type of the error alone."""
    return said.partition(":")[0]


def in_time(act: Callable[[], object]) -> str:
    """The type of the error, TimeoutError after a fifth of a second."""

    def stop(*_: object) -> None:
        raise TimeoutError("it may never end")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        return kind(error(act))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def state(g: Made) -> Seen:
    """All that a refused change must leave alone."""
    return str(g), names(reversed(g.nodes)), len(g.nodes), edges(g)


@program(claims=("create-node-steps",))
def args_must_be_a_tuple_and_kwargs_a_dict(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    before = state(g)
    raised = [
        error(lambda: g.call_function(torch.relu, [x])),
        error(lambda: g.call_function(torch.relu, x)),
        error(lambda: g.call_function(torch.relu, "x")),
        error(lambda: g.call_function(torch.relu, (x,), [1])),
        error(lambda: g.call_method("relu", [x])),
        error(lambda: g.call_module("m", (x,), "k")),
    ]
    return raised, state(g) == before


@program(claims=("create-node-steps", "opcode-unknown-rejected"))
def a_refused_node_leaves_no_trace_among_the_nodes(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    before = state(g)
    raised = [
        kind(error(lambda: g.create_node("bogus", "x", (x,)))),
        kind(error(lambda: g.create_node("call_function", "relu", (x,)))),
        kind(error(lambda: g.create_node("call_method", torch.relu, (x,)))),
        kind(error(lambda: g.create_node("call_function", 3, (x,)))),
    ]
    return raised, state(g) == before, names(x.users)


@program(
    claims=("create-node-steps",),
    differs="refused-node-keeps-no-name",
    ours="fresh",
)
def a_refused_node_uses_up_no_name(lib: Lib) -> Seen:
    g = lib.Graph()
    error(lambda: g.create_node("bogus", "fresh"))
    return g.placeholder("fresh").name


@program(claims=("inserting-before", "inserting-after"))
def insert_points_take_nodes_alone(lib: Lib) -> Seen:
    g, _x = inputs(lib, "x")
    raised = [
        kind(error(lambda: g.inserting_before("x"))),
        kind(error(lambda: g.inserting_after(3))),
    ]
    return raised, g._insert == g._root.prepend


@program(
    claims=("inserting-before", "inserting-after"),
    differs="insert-at-erased",
    ours=("AssertionError", "AssertionError", ["x", "y"], ["y", "x"]),
)
def nothing_can_be_inserted_beside_an_erased_node(lib: Lib) -> Seen:
    g, _x, gone, _y = inputs(lib, "xgy")
    g.erase_node(gone)

    def insert(before: bool) -> None:
        place = g.inserting_before if before else g.inserting_after
        with place(gone):
            g.placeholder("new")

    raised = [kind(error(partial(insert, before))) for before in (True, False)]
    return (*raised, names(g.nodes), names(reversed(g.nodes)))


@program(
    claims=("insert-point-permanent", "erase-node"),
    differs="insert-at-erased",
    ours=("AssertionError", ["x", "y"], ["y", "x"], 2),
)
def nothing_lands_at_a_point_whose_node_is_erased_later(lib: Lib) -> Seen:
    g, x, gone, y = inputs(lib, "xgy")
    g.inserting_before(gone)
    g.erase_node(gone)
    x.append(y)
    raised = kind(error(lambda: g.placeholder("new")))
    return raised, names(g.nodes), names(reversed(g.nodes)), len(g.nodes)


@program(
    claims=("node-append", "node-prepend", "erase-node"),
    differs="move-erased",
    ours=(["AssertionError"] * 4, ["x", "y"], ["y", "x"], 2),
)
def an_erased_node_can_neither_move_nor_be_a_place(lib: Lib) -> Seen:
    g, x, gone, y = inputs(lib, "xgy")
    g.erase_node(gone)
    raised = [
        kind(error(partial(act, node)))
        for act, node in (
            (x.append, gone),
            (x.prepend, gone),
            (gone.append, y),
            (gone.prepend, y),
        )
    ]
    return raised, names(g.nodes), names(reversed(g.nodes)), len(g.nodes)


@program(
    claims=("node-append", "erase-node"),
    differs="loose-nodes",
    ours=(["AssertionError", "RuntimeError"], ["x"], 1),
)
def a_node_made_by_hand_is_no_place_in_the_graph(lib: Lib) -> Seen:
    g, _x = inputs(lib, "x")
    loose = lib.Node(g, "loose", "call_function", torch.relu, (), {})

    def insert_beside() -> None:
        with g.inserting_before(loose):
            g.placeholder("new")

    acts = (insert_beside, lambda: g.erase_node(loose))
    raised = [kind(error(act)) for act in acts]
    return raised, names(g.nodes), len(g.nodes)


@program(claims=("node-append", "node-prepend"))
def moving_takes_nodes_alone(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    raised = [
        error(lambda: x.append("y")) != "no error",
        error(lambda: x.prepend(None)) != "no error",
    ]
    return raised, names(g.nodes), names(reversed(g.nodes)), len(g.nodes)


@program(
    claims=("usedef-on-create", "lint-ownership"),
    differs="args-checked",
    ours=["RuntimeError: Argument 'y' of Node 'relu' does not belong"] * 3,
)
def inputs_of_another_graph_are_refused(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    _h, y = inputs(lib, "y")
    raised = [error(lambda: g.call_function(torch.relu, ([y],)), chars=44)]
    n = g.call_function(torch.relu, (x,))
    raised.append(error(lambda: setattr(n, "args", (y,)), chars=44))
    raised.append(error(lambda: n.update_kwarg("k", {"k": y}), chars=44))
    return raised


@program(
    claims=("usedef-on-create", "erase-node"),
    differs="args-checked",
    ours=(["RuntimeError"] * 5, True),
)
def erased_inputs_are_refused(lib: Lib) -> Seen:
    g, x, gone = inputs(lib, "xg")
    n = g.call_function(torch.relu, (x,))
    g.output(n)
    g.erase_node(gone)
    before = state(g)
    raised = [
        error(lambda: g.call_function(torch.abs, (gone,))),
        error(lambda: setattr(n, "args", (gone,))),
        error(lambda: n.insert_arg(0, [gone])),
        error(lambda: n.replace_input_with(x, gone)),
        error(lambda: x.replace_all_uses_with(gone)),
    ]
    return [kind(said) for said in raised], state(g) == before


@program(
    claims=("usedef-on-args-assign", "usedef-on-kwargs-assign"),
    differs="args-checked",
    ours=["no error", "tuple", "AssertionError", "AssertionError", "tuple"],
)
def assigned_args_and_kwargs_have_their_types_too(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    n = g.call_function(torch.relu, (x,))
    return [
        kind(error(lambda: setattr(n, "args", [x]))),
        type(n.args).__name__,
        kind(error(lambda: setattr(n, "args", x))),
        kind(error(lambda: setattr(n, "kwargs", [("k", x)]))),
        type(n.args).__name__,
    ]


@program(
    claims=("usedef-nested-containers",),
    differs="args-checked",
    ours=("TypeError", "TypeError", []),
)
def nodes_in_sets_are_refused(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    raised = [
        kind(error(lambda: g.call_function(print, ({x, 1},)))),
        kind(error(lambda: g.call_function(print, ([frozenset([x])],)))),
    ]
    return (*raised, names(x.users))


@program(
    claims=("usedef-nested-containers",),
    differs="dataclass-arguments",
    ours=(["x", "y"], ["print_1"], "Box", "[y]"),
)
def nodes_in_dataclasses_are_inputs(lib: Lib) -> Seen:
    g, x, y = inputs(lib, "xy")
    n = g.call_function(print, (Box([x]), Box(y)))
    found, users = names(n.all_input_nodes), names(x.users)
    n.replace_input_with(x, y)
    box = n.args[0]
    return found, users, type(box).__name__, repr(box.content)


@program(claims=("usedef-nested-containers",))
def dataclasses_without_nodes_stay_as_they_are(lib: Lib) -> Seen:
    g = lib.Graph()
    box = Box([1])
    n = g.call_function(print, (box, Box), {"k": box})
    content = type(box.content).__name__
    return n.args[0] is box, n.args[1] is Box, n.kwargs["k"] is box, content


@program(
    claims=(
        "opcode-placeholder",
        "opcode-call-function",
        "opcode-call-method",
        "opcode-get-attr",
        "opcode-call-module",
        "usedef-on-kwargs-assign",
    ),
    differs="names-validated",
    ours=(["ValueError"], ["x", "print_1"], ["print_1"]),
)
def what_stands_in_the_code_must_be_a_name(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    n = g.call_function(print, (x,))
    parameters = (
        *("class", "None", "x y", "1x", "x.y", "", "x=1", "***x", "*"),
        *("'x'", "x, y", "x: int", "x\nprint()"),
    )
    keywords = ("class", "from", "a b", "1x", "", "min=0, max", 1)
    methods, paths = ("a b", "x()", "", "1x", 'x"y'), ("", "a..b", ".a", "a.")
    acts = [
        *(partial(g.placeholder, wish) for wish in parameters),
        *(partial(g.call_function, print, (), {k: x}) for k in keywords),
        *(partial(g.call_method, wish, (x,)) for wish in methods),
        *(partial(g.get_attr, wish) for wish in paths),
        *(partial(g.call_module, wish) for wish in paths),
        *(partial(setattr, n, "kwargs", {k: x}) for k in ("is", None)),
        partial(n.update_kwarg, 2, x),
    ]
    raised = sorted({kind(error(act)) for act in acts})
    return raised, names(g.nodes), names(x.users)


@program(claims=("opcode-placeholder",))
def odd_parameters_that_are_legal(lib: Lib) -> Seen:
    g = lib.Graph()
    wishes = ("_", "match", "torch", "len", "naïve", "*args", "**kwargs")
    return [(g.placeholder(wish).name, wish) for wish in wishes]


@program(claims=("usedef-on-args-assign",))
def positions_of_arguments_out_of_range(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    n = g.call_function(torch.relu, (x,))
    before = state(g)
    raised = [
        error(lambda: n.update_arg(1, x)),
        error(lambda: n.update_arg(-2, x)),
        error(lambda: n.insert_arg(2, x), chars=50),
        error(lambda: n.insert_arg(-1, x), chars=50),
    ]
    return raised, state(g) == before


@program(claims=("erase-node",))
def erasing_takes_nodes_alone(lib: Lib) -> Seen:
    g, _x = inputs(lib, "x")
    return kind(error(lambda: g.erase_node("x"))), names(g.nodes)


@program(claims=("erase-node-with-users", "erase-node"))
def having_users_is_complained_of_first(lib: Lib) -> Seen:
    g, _x = inputs(lib, "x")
    h, y = inputs(lib, "y")
    h.output(y)
    return error(lambda: g.erase_node(y))


@program(
    claims=("graph-root-sentinel",),
    differs="sentinel-is-fixed",
    ours=(
        ["AssertionError", "AssertionError", "RuntimeError"],
        (True, True),
        (True, True),
        1,
    ),
)
def the_sentinel_cannot_be_moved_or_erased(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    raised = [
        in_time(lambda: x.append(g._root)),
        in_time(lambda: x.prepend(g._root)),
        in_time(lambda: g.erase_node(g._root)),
    ]
    root = g._root  # no loop over the nodes: a broken ring has no end
    there = (root._next is x, x._next is root)
    return raised, there, (root._prev is x, x._prev is root), len(g.nodes)


@program(claims=("graph-copy-val-map", "graph-copy"))
def a_copy_of_a_graph_out_of_order_fails(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    a = g.call_function(torch.relu, (x,))
    b = g.call_function(torch.abs, (a,))
    g.output(b)
    b.append(a)
    return (
        error(lambda: lib.Graph().graph_copy(g, {})),
        error(lambda: copy.deepcopy(g)),
    )


@program(claims=("node-copy",))
def a_transform_that_fails_leaves_no_copy(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    n = g.call_function(torch.relu, (x,))
    h = lib.Graph()
    raised = error(lambda: h.node_copy(n, lambda m: {}[m]))
    return raised, len(h.nodes), h.placeholder("relu").name


@program(claims=("node-type-expr",))
def odd_types_are_kept(lib: Lib) -> Seen:
    g = lib.Graph()
    kinds = (..., 3, "no type", [int], (int, str), 2.5)
    made = [g.placeholder("x", type_expr=k) for k in kinds]
    return [n.type == k for n, k in zip(made, kinds, strict=True)]


@program(
    claims=("node-meta",),
    differs="copies-repoint-notes",
    ours=([], False, True, {"x": ([], []), "y": ([], [])}),
)
def a_copy_of_a_note_leads_into_the_copied_graph(lib: Lib) -> Seen:
    g, x, y = inputs(lib, "xy")
    x.meta["other"] = y
    h = copy.deepcopy(g)
    first = next(iter(h.nodes))
    other = first.meta["other"]
    return names(y.users), other is y, other.graph is h, edges(g)


@program(
    claims=("opcode-output",),
    differs="empty-graph-output-node",
    ours="AssertionError",
)
def an_empty_graph_has_no_output_node(lib: Lib) -> Seen:
    return kind(error(lib.Graph().output_node))


@program(
    claims=("rauw-redirects-users", "replace-input-with"),
    differs="args-checked",
    ours=(False, False, True),
)
def uses_are_replaced_by_nodes_alone(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    n = g.call_function(torch.relu, (x,))
    before = state(g)
    accepted = (
        error(lambda: x.replace_all_uses_with("x")) == "no error",
        error(lambda: n.replace_input_with(x, 3)) == "no error",
    )
    return (*accepted, state(g) == before)


@program(claims=("node-attributes",))
def nodes_and_graphs_are_no_values(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    return [
        error(lambda: list(x)),
        error(lambda: x + 1),
        error(lambda: len(x)),
        error(lambda: x()),
        error(lambda: x[0]),
        error(lambda: len(g)),
        error(lambda: list(g)),
        error(lambda: x in g),
        (g == g, g != lib.Graph(), bool(lib.Graph())),
    ]
