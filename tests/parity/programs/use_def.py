"""Producers and consumers: what a node reads and who reads it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import torch

from tests.parity.harness import Lib, Made, Seen, error, names, program


class Pair(NamedTuple):
    """A named tuple that can hold nodes."""

    left: object
    right: object


def inputs(lib: Lib, text: str) -> list[Made]:
    """A graph with a placeholder a letter: [graph, node, node, …]."""
    g = lib.Graph()
    return [g, *(g.placeholder(letter) for letter in text)]


Edits: TypeAlias = Sequence[Callable[[], object]]
"""Things to do one after another."""


def edges(g: Made) -> Seen:
    """For each node its inputs and its users, by name."""
    return {n.name: (names(n.all_input_nodes), names(n.users)) for n in g.nodes}


def both_ends_agree(g: Made) -> bool:
    """Whether m is an input of n exactly when n is a user of m."""
    nodes = list(g.nodes)
    return all(
        (m in n._input_nodes) == (n in m.users) for m in nodes for n in nodes
    )


@program(claims=("usedef-ordered-sets",))
def users_and_inputs_are_dicts_of_nothing(lib: Lib) -> Seen:
    g, x, y = inputs(lib, "xy")
    last = g.call_function(operator.add, (y, x))
    g.call_function(operator.mul, (x, x))
    for ends in (x.users, y.users, last._input_nodes):
        assert all(value is None for value in ends.values())
    return (
        type(x.users).__name__,
        type(last._input_nodes).__name__,
        names(x.users),
        names(last._input_nodes),
        list(x.users.values()),
    )


@program(claims=("usedef-ordered-sets",))
def users_stand_in_the_order_of_first_use(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    late = g.call_function(torch.relu, (x,))
    with g.inserting_before(late):
        g.call_function(torch.abs, (x,))
    return names(x.users), names(g.nodes)


@program(claims=("usedef-both-ends",))
def both_ends_agree_through_a_series_of_edits(lib: Lib) -> Seen:
    g, x, y = inputs(lib, "xy")
    add = g.call_function(operator.add, (x, y))
    mul = g.call_function(operator.mul, (add, x), {"k": y})
    out = g.output((mul, add))
    edits: Edits = (
        lambda: setattr(add, "args", (y, y)),
        lambda: setattr(mul, "kwargs", {"k": x, "m": [x, add]}),
        lambda: mul.update_arg(0, x),
        lambda: mul.update_kwarg("k", y),
        lambda: setattr(out, "args", ((mul,),)),
        lambda: mul.replace_input_with(add, y),
        lambda: g.erase_node(add),
        lambda: y.replace_all_uses_with(x),
        lambda: setattr(mul, "args", ()),
    )
    seen = []
    for edit in edits:
        edit()
        seen.append((edges(g), both_ends_agree(g)))
    return seen


@program(claims=("usedef-on-kwargs-assign",))
def assigning_kwargs_moves_the_edges(lib: Lib) -> Seen:
    g, x, y = inputs(lib, "xy")
    n = g.call_function(torch.relu, (x,))
    n.kwargs = {"k": y}
    seen = [edges(g), dict(n.kwargs)["k"] is y, type(n.kwargs).__name__]
    n.kwargs = {"k": x, "m": [y]}
    seen.append(edges(g))
    n.kwargs = {}
    return [*seen, edges(g), repr(n.args), repr(n.kwargs)]


@program(claims=("usedef-update-steps",))
def reassigning_takes_the_node_out_and_puts_it_back_last(lib: Lib) -> Seen:
    g, x, y = inputs(lib, "xy")
    one = g.call_function(operator.add, (x, y))
    g.call_function(operator.mul, (x, y))
    before = (names(x.users), names(y.users), names(one._input_nodes))
    one.args = (y, x)
    after = (names(x.users), names(y.users), names(one._input_nodes))
    one.args = one.args
    return before, after, names(x.users), names(one._input_nodes)


@program(claims=("usedef-nested-containers",))
def inputs_are_found_in_nested_containers(lib: Lib) -> Seen:
    g, x, y, z, w = inputs(lib, "xyzw")
    n = g.call_function(
        print, ([x, (y, 1)], {"k": z}), {"s": slice(w, None), "t": "text"}
    )
    return names(n.all_input_nodes), edges(g), repr(n.args), repr(n.kwargs)


@program(claims=("usedef-nested-containers",))
def inputs_are_found_in_every_part_of_a_slice(lib: Lib) -> Seen:
    g, x, y, z = inputs(lib, "xyz")
    one = g.call_function(operator.getitem, (x, slice(y, z, x)))
    two = g.call_function(operator.getitem, (x, (slice(None, y), ..., [z])))
    return edges(g), repr(one.args), repr(two.args)


@program(claims=("usedef-nested-containers",))
def named_tuples_keep_their_class(lib: Lib) -> Seen:
    g, x, y = inputs(lib, "xy")
    n = g.call_function(print, (Pair(x, [y]),))
    kind = type(n.args[0]).__name__
    n.replace_input_with(y, x)
    return kind, type(n.args[0]).__name__, repr(n.args), edges(g)


@program(claims=("usedef-nested-containers",))
def keys_of_a_dict_are_no_inputs(lib: Lib) -> Seen:
    g, x, y = inputs(lib, "xy")
    n = g.call_function(print, ({1: x, (2, 3): y, None: 4, False: x},))
    return names(n.all_input_nodes), repr(n.args)


@program(claims=("usedef-no-duplicates",))
def a_node_used_twice_is_entered_once(lib: Lib) -> Seen:
    g, x, y = inputs(lib, "xy")
    n = g.call_function(operator.add, (x, x))
    seen = [edges(g)]
    n.update_arg(0, y)
    seen.append(edges(g))
    n.update_arg(1, y)
    seen.append(edges(g))
    n.args, n.kwargs = (x, [x, (x,)]), {"k": x}
    return [*seen, edges(g)]


@program(claims=("all-input-nodes",))
def inputs_stand_in_the_order_of_first_occurrence(lib: Lib) -> Seen:
    g, x, y, z = inputs(lib, "xyz")
    n = g.call_function(print, (y, x, y), {"b": z, "a": x})
    other = g.call_function(print, (), {"c": z, "a": [y, x], "b": z})
    return names(n.all_input_nodes), names(other.all_input_nodes)


@program(claims=("all-input-nodes-copy",))
def the_list_of_inputs_is_a_copy(lib: Lib) -> Seen:
    g, x, y = inputs(lib, "xy")
    n = g.call_function(torch.relu, (x,))
    listed = n.all_input_nodes
    listed.append(y)
    return (
        type(listed).__name__,
        n.all_input_nodes is not n.all_input_nodes,
        edges(g),
        error(lambda: setattr(n, "all_input_nodes", [])).partition(":")[0],
    )


@program(claims=("usedef-example-listing", "lint-topological"))
def worked_example_replaces_an_input(lib: Lib) -> Seen:
    g = lib.Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    add = g.call_function(operator.add, (x, y))
    seen = [str(add.all_input_nodes), str(x.users), str(y.users)]
    z = g.placeholder("z")
    add.args = (x, z)
    seen += [str(add.all_input_nodes), str(y.users), str(z.users)]
    wrong = error(g.lint)
    x.append(z)
    y.append(z)
    g.output(add)
    return seen, wrong, error(g.lint)


@program(claims=("usedef-analysis-example",))
def worked_example_lists_inputs_and_users(lib: Lib) -> Seen:
    g = lib.Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    add = g.call_function(operator.add, (x, y))
    mul = g.call_function(operator.mul, (add, x))
    g.output(g.call_function(torch.relu, (mul,)))
    return [
        f"{n.name:10s} {n.all_input_nodes!s:15s} {list(n.users)!s}"
        for n in g.nodes
    ]


@program(claims=("graph-logical-dag",))
def uses_have_no_cycle_and_any_topological_order_will_do(lib: Lib) -> Seen:
    g, x, y = inputs(lib, "xy")
    a = g.call_function(torch.relu, (x,))
    b = g.call_function(torch.neg, (y,))
    c = g.call_function(operator.add, (a, b))
    g.output((c, a))
    on_path: list[Made] = []

    def cyclic(node: Made) -> bool:
        if node in on_path:
            return True
        on_path.append(node)
        found = any(cyclic(m) for m in node._input_nodes)
        on_path.pop()
        return found

    moves: Edits = (
        lambda: a.prepend(b),
        lambda: c.prepend(a),
        lambda: x.prepend(y),
        lambda: c.append(a),
    )
    seen: list[object] = [any(cyclic(n) for n in g.nodes)]
    for move in moves:
        move()
        seen.append((names(g.nodes), error(g.lint)))
    return seen


@program(claims=("usedef-on-create", "usedef-ordered-sets"))
def a_node_made_by_hand_is_a_user_too(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    n = lib.Node(g, "n", "call_function", print, ([x],), {"k": {"d": x}})
    return names(x.users), names(n.all_input_nodes), repr(n.kwargs)


@program(claims=("usedef-on-args-assign",))
def update_arg_and_insert_arg(lib: Lib) -> Seen:
    g, x, y, z = inputs(lib, "xyz")
    n = g.call_function(print, (x, 1, y))
    edits: Edits = (
        lambda: n.update_arg(0, z),
        lambda: n.update_arg(-1, x),
        lambda: n.insert_arg(0, y),
        lambda: n.insert_arg(4, z),
        lambda: n.insert_arg(2, (x, 5)),
        lambda: n.update_arg(3, slice(y)),
    )
    seen = []
    for edit in edits:
        edit()
        read_by_n = [names(m.users) for m in (x, y, z)]
        inputs_of_n = sorted(names(n.all_input_nodes))
        seen.append((repr(n.args), inputs_of_n, read_by_n))
    return seen


@program(
    claims=("all-input-nodes",),
    differs="insert-arg-normalised",
    ours=("immutable_list", ["x", "y"]),
)
def insert_arg_treats_an_argument_as_creation_does(lib: Lib) -> Seen:
    g, x, y = inputs(lib, "xy")
    n = g.call_function(print, (y,))
    n.insert_arg(0, [x])
    return type(n.args[0]).__name__, names(n.all_input_nodes)


@program(claims=("usedef-on-kwargs-assign",))
def update_kwarg_adds_and_replaces(lib: Lib) -> Seen:
    g, x, y = inputs(lib, "xy")
    n = g.call_function(print, (), {"a": x})
    n.update_kwarg("b", [y])
    seen = [(repr(n.kwargs), edges(g), type(n.kwargs["b"]).__name__)]
    n.update_kwarg("a", 3)
    return [*seen, (repr(n.kwargs), edges(g))]


@program(claims=("usedef-update-steps",))
def a_self_loop_is_recorded_as_any_use(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    n = g.call_function(torch.relu, (x,))
    n.args = (n,)
    loop = (edges(g), error(g.lint))
    n.args = (x,)
    return loop, edges(g)
