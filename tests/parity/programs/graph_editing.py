"""Erasing, replacing and copying nodes and whole graphs."""

from __future__ import annotations

import copy
import operator
from functools import partial
from typing import TypeAlias

import pytest
import torch

from tests.parity.harness import Lib, Made, Seen, error, names, program
from tests.parity.programs.use_def import both_ends_agree, edges, inputs

Copied: TypeAlias = dict[Made, Made]
"""From the nodes of one graph to those of another."""


def small(lib: Lib) -> Made:
    """relu(x + y) * x, returned with y in a dict."""
    g = lib.Graph()
    x, y = g.placeholder("x"), g.placeholder("y", type_expr=int)
    add = g.call_function(operator.add, (x, y))
    relu = g.call_function(torch.relu, (add,), {"inplace": False})
    mul = g.call_function(operator.mul, (relu, x), type_expr=torch.Tensor)
    g.output((mul, {"y": y}))
    add.meta["note"] = ["kept"]
    return g


@program(claims=("erase-node",))
def erasing_takes_a_node_out(lib: Lib) -> Seen:
    g, x, y = inputs(lib, "xy")
    n = g.call_function(torch.relu, (x,))
    before = (len(g.nodes), n._erased, names(g.nodes))
    g.erase_node(n)
    found = names(g.find_nodes(op="call_function", target=torch.relu))
    after = (len(g.nodes), n._erased, names(g.nodes), n in list(g.nodes))
    g.erase_node(y)
    return before, after, found, names(g.nodes), names(reversed(g.nodes))


@program(claims=("erase-node",))
def an_erased_node_keeps_its_name_target_and_graph(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    n = g.call_function(torch.relu, (x,), {"inplace": True})
    g.erase_node(n)
    return n.name, n.target is torch.relu, n.graph is g, n.format_node()


@program(claims=("erase-node-with-users",))
def a_node_with_users_cannot_be_erased(lib: Lib) -> Seen:
    g, x, y = inputs(lib, "xy")
    add = g.call_function(operator.add, (x, y))
    g.call_function(torch.relu, (x,))
    before = str(g)
    raised = [error(partial(g.erase_node, n), chars=110) for n in (x, y)]
    return raised, str(g) == before, edges(g), (x._erased, add._erased)


@program(claims=("erase-node",))
def a_node_of_another_graph_cannot_be_erased(lib: Lib) -> Seen:
    g, _x = inputs(lib, "x")
    h, y = inputs(lib, "y")
    return error(lambda: g.erase_node(y)), names(g.nodes), names(h.nodes)


@program(claims=("erase-node",))
def a_node_is_erased_once(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    n = g.call_function(torch.relu, (x,))
    g.erase_node(n)
    with pytest.warns(UserWarning, match="erased"):
        g.erase_node(n)
    return len(g.nodes), names(g.nodes)


@program(claims=("erase-updates-producers",))
def erasing_frees_the_producers(lib: Lib) -> Seen:
    g, x, y = inputs(lib, "xy")
    add = g.call_function(operator.add, (x, y))
    nested = g.call_function(print, ([x, (1, y)],), {"k": slice(x), "m": 2})
    for n in (add, nested):
        g.erase_node(n)
    left = [(repr(n.args), repr(n.kwargs)) for n in (add, nested)]
    return left, names(add.all_input_nodes), edges(g)


@program(claims=("erase-after-replace", "erase-node-with-users"))
def first_redirect_then_erase(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    relu = g.call_function(torch.relu, (x,))
    g.output(g.call_function(torch.neg, (relu,)))
    refused = error(lambda: g.erase_node(relu)).partition(":")[0]
    relu.replace_all_uses_with(x)
    g.erase_node(relu)
    return refused, error(g.lint), str(g)


@program(claims=("rauw-redirects-users", "rauw-returns-changed"))
def all_uses_are_redirected_wherever_they_are(lib: Lib) -> Seen:
    g, n, m = inputs(lib, "nm")
    g.call_function(operator.add, (n, 1))
    g.call_function(print, ([n, (m, n)],), {"k": {"deep": n}, "s": slice(n)})
    g.output((n, [n], m))
    users = names(n.users)
    changed = n.replace_all_uses_with(m)
    kind = type(changed).__name__
    return users, names(changed), kind, edges(g), str(g), error(g.lint)


@program(claims=("rauw-returns-changed",))
def replacing_a_node_without_users_changes_nothing(lib: Lib) -> Seen:
    g, n, m = inputs(lib, "nm")
    return n.replace_all_uses_with(m), edges(g)


@program(claims=("rauw-returns-changed", "rauw-redirects-users"))
def replacing_a_node_by_itself(lib: Lib) -> Seen:
    g, n = inputs(lib, "n")
    for op in (torch.relu, torch.abs):
        g.call_function(op, (n,))
    return names(n.replace_all_uses_with(n)), edges(g)


@program(claims=("rauw-delete-user-cb",))
def a_callback_decides_which_users_change(lib: Lib) -> Seen:
    g, n, m = inputs(lib, "nm")
    calls = [g.call_function(op, (n,)) for op in (abs, len, print)]
    asked: list[str] = []

    def wanted(user: Made) -> bool:
        asked.append(user.name)
        return user is not calls[1]

    changed = n.replace_all_uses_with(m, delete_user_cb=wanted)
    again = n.replace_all_uses_with(m, lambda user: False)
    return names(changed), asked, names(again), edges(g)


@program(claims=("rauw-propagate-meta",))
def meta_is_copied_on_request(lib: Lib) -> Seen:
    g, n, m, other = inputs(lib, "nmo")
    g.output(n)
    note = [1]
    n.meta["a"], n.meta["b"] = note, 2
    n.replace_all_uses_with(m)
    by_default = dict(m.meta)
    m.replace_all_uses_with(n)
    n.replace_all_uses_with(m, propagate_meta=True)
    shared = (m.meta["a"] is note, m.meta is n.meta)
    refused = error(
        lambda: n.replace_all_uses_with(m, propagate_meta=True), chars=75
    )
    positional = error(
        lambda: n.replace_all_uses_with(other, None, True)
    ).partition(":")[0]
    return by_default, dict(m.meta), shared, refused, positional, edges(g)


@program(claims=("replace-input-with",))
def one_nodes_input_is_swapped(lib: Lib) -> Seen:
    g, x, y = inputs(lib, "xy")
    a = g.call_function(print, (x, [x]), {"k": x, "m": y})
    g.call_function(torch.abs, (x,))
    a.replace_input_with(x, y)
    seen = [repr(a.args), repr(a.kwargs), edges(g)]
    a.replace_input_with(x, y)
    return [*seen, edges(g), both_ends_agree(g)]


@program(claims=("rauw-insert-recipe", "inserting-after"))
def an_operation_is_spliced_in_behind_a_node(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    node = g.call_function(torch.abs, (x,))
    g.output((node, g.call_function(torch.neg, (node,))))
    with g.inserting_after(node):
        new = g.call_function(torch.relu, (node,))
    changed = node.replace_all_uses_with(new, lambda u: u is not new)
    return names(changed), error(g.lint), str(g)


@program(claims=("rauw-insert-recipe",))
def the_recipe_as_printed_makes_a_node_its_own_input(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    node = g.call_function(torch.abs, (x,))
    g.output(node)
    with g.inserting_after(node):
        new = g.call_function(torch.relu, (node,))
    node.replace_all_uses_with(new)
    broken = (repr(new.args), error(g.lint))
    new.args = (node,)
    return broken, error(g.lint), str(g)


@program(claims=("replace-target-recipe",))
def targets_are_replaced_in_place(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    first = g.call_function(torch.relu, (x,))
    g.output(g.call_function(torch.relu, (first,)))
    for node in g.nodes:
        if node.op == "call_function" and node.target == torch.relu:
            node.target = torch.sigmoid
    found = [
        names(g.find_nodes(op="call_function", target=op))
        for op in (torch.relu, torch.sigmoid)
    ]
    return str(g), found, error(g.lint)


@program(claims=("graph-copy",))
def copying_a_graph_returns_the_output_value(lib: Lib) -> Seen:
    h = lib.Graph()
    val_map: Copied = {}
    value = h.graph_copy(small(lib), val_map)
    kinds = (type(value).__name__, type(value[1]).__name__, repr(value))
    own = all(n.graph is h for n in h.nodes)
    h.output(value)
    h.lint()
    return kinds, own, [n.op for n in h.nodes], str(h)


@program(claims=("graph-copy",))
def copying_a_graph_without_output_returns_none(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    g.call_function(torch.relu, (x,))
    h = lib.Graph()
    empty = h.graph_copy(lib.Graph(), {})
    return h.graph_copy(g, {}), empty, str(h)


@program(claims=("graph-copy",))
def copies_land_at_the_insert_point_with_free_names(lib: Lib) -> Seen:
    h, x, y = inputs(lib, "xy")
    with h.inserting_before(y):
        h.graph_copy(small(lib), {})
    h.graph_copy(small(lib), {})
    return names(h.nodes), names(x.users), names(y.users)


@program(claims=("graph-copy",))
def the_copied_output_node_can_be_asked_for(lib: Lib) -> Seen:
    g, h = small(lib), lib.Graph()
    value, node = h.graph_copy(g, {}, return_output_node=True)
    nothing = lib.Graph().graph_copy(lib.Graph(), {}, True)
    return repr(value), node is list(g.nodes)[-1], nothing


@program(claims=("graph-copy-val-map",))
def nodes_mapped_beforehand_are_not_copied(lib: Lib) -> Seen:
    g, h = small(lib), lib.Graph()
    one = h.placeholder("one")
    x, y, *_ = g.nodes
    val_map: Copied = {x: one, y: one}
    value = h.graph_copy(g, val_map)
    h.output(value)
    mapped = {n.name: to.name for n, to in val_map.items()}
    return mapped, str(h), error(h.lint)


@program(claims=("node-copy",))
def a_graph_is_copied_node_by_node(lib: Lib) -> Seen:
    g, h = small(lib), lib.Graph()
    remap: Copied = {}
    for node in g.nodes:
        remap[node] = h.node_copy(node, lambda n: remap[n])
    h.lint()
    return str(h) == str(g), str(h), names(h.nodes)


@program(claims=("node-copy",))
def the_transform_may_return_any_argument(lib: Lib) -> Seen:
    g, h = small(lib), lib.Graph()
    asked: list[str] = []

    def constant(node: Made) -> object:
        asked.append(node.name)
        return [1, node.name]

    copies = [h.node_copy(n, constant) for n in g.nodes]
    return asked, [(repr(c.args), repr(c.kwargs)) for c in copies]


@program(claims=("node-copy-keeps-name-type-meta",))
def a_copy_keeps_name_type_and_meta(lib: Lib) -> Seen:
    g, h = small(lib), lib.Graph()
    x, y, add, *_ = g.nodes
    made = [h.node_copy(n, lambda n: None) for n in (x, y, add, add)]
    types = [m.type is n.type for m, n in zip(made, (x, y, add), strict=False)]
    meta = made[2].meta
    same = (meta == add.meta, meta is add.meta)
    shared = meta["note"] is add.meta["note"]
    return names(made), types, same, shared, made[2].users, made[2].graph is h


@program(claims=("node-copy-default-transform",))
def a_copy_within_one_graph_shares_its_inputs(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    n = g.call_function(torch.relu, ([x],), {"k": x})
    copied = g.node_copy(n)
    return names(copied.all_input_nodes), copied.args == n.args, edges(g)


@program(
    claims=("node-copy-default-transform",),
    differs="args-checked",
    ours=("RuntimeError: Argument 'x' of Node 'relu' does not belong", [], 0),
)
def a_copy_into_another_graph_needs_a_transform(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    n = g.call_function(torch.relu, (x,))
    h = lib.Graph()
    raised = error(lambda: h.node_copy(n), chars=43)
    if raised == "no error":
        raised = error(h.lint, chars=43)
    return raised, names(h.nodes), len(x.users) - 1


@program(claims=("graph-copy", "node-meta"))
def deepcopy_gives_an_independent_graph(lib: Lib) -> Seen:
    g = small(lib)
    h = copy.deepcopy(g)
    h.lint()
    same = str(g) == str(h)
    first = next(iter(h.nodes))
    with h.inserting_before(first):
        first.replace_all_uses_with(h.placeholder("z"))
    again = copy.deepcopy(h)
    new = (h.placeholder("add").name, again.placeholder("add").name)
    return same, str(g), str(h), str(again) == str(h), new


@program(claims=("graph-copy",))
def deepcopy_keeps_types_and_no_owner(lib: Lib) -> Seen:
    g = lib.Graph(torch.nn.Module())
    g.output(g.placeholder("x", int), type_expr=torch.Tensor)
    h = copy.deepcopy(g)
    types = [n.type in (int, torch.Tensor) for n in h.nodes]
    return types, h.owning_module is None, type(h).__name__


@program(claims=("graph-copy",))
def deepcopy_leaves_out_what_stands_behind_the_output(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    g.output(x)
    g.call_function(torch.relu, (x,))
    return names(copy.deepcopy(g).nodes), names(g.nodes)


@program(claims=("graph-copy", "graph-linked-list-not-array"))
def long_graphs_can_be_copied(lib: Lib) -> Seen:
    g, value = inputs(lib, "x")
    for _ in range(3000):
        value = g.call_function(torch.relu, (value,))
    g.output(value)
    h = copy.deepcopy(g)
    return len(h.nodes), str(h) == str(g), error(h.lint)


@program(claims=("create-node-steps", "erase-node"))
def nodes_are_found_by_opcode_and_target(lib: Lib) -> Seen:
    g, x, y = inputs(lib, "xy")
    late = g.call_function(torch.relu, (x,))
    with g.inserting_before(late):
        g.call_function(torch.relu, (y,))
        g.call_function(torch.abs, (y,))
    g.call_method("view", (x,))
    g.call_method("size", (x,))
    g.call_module("m.n", (x,))
    g.get_attr("w")
    g.output(x)
    queries = (
        {"op": "call_function", "target": torch.relu},
        {"op": "call_function", "target": torch.neg},
        {"op": "call_method"},
        {"op": "call_method", "target": "size"},
        {"op": "call_module", "target": "m.n"},
        {"op": "call_module", "target": "m"},
        {"op": "get_attr"},
        {"op": "placeholder"},
        {"op": "placeholder", "target": "y"},
        {"op": "output"},
        {"op": "nothing"},
    )
    ordered = [names(g.find_nodes(**q)) for q in queries]
    unsorted = [sorted(names(g.find_nodes(**q, sort=False))) for q in queries]
    return ordered, unsorted, error(lambda: g.find_nodes(op="call_function"))


@program(claims=("create-node-steps", "erase-node"))
def nodes_are_found_after_changes(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    a, b = (g.call_function(torch.relu, (x,)) for _ in range(2))
    a.target = torch.abs
    b.op, b.target = "call_method", "relu"
    x.prepend(b)
    found = [
        names(g.find_nodes(op="call_function", target=torch.relu)),
        names(g.find_nodes(op="call_function", target=torch.abs)),
        names(g.find_nodes(op="call_method", target="relu")),
    ]
    return found, names(g.nodes)


@program(claims=("opcode-output",))
def the_output_node_is_the_last_one(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    raised = error(g.output_node, chars=40)
    out = g.output(x)
    found = g.output_node() is out
    g.placeholder("late")
    return raised, found, error(g.output_node, chars=40)
