"""Stage 02: arguments, and the edges between nodes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch

from fx.graph import Graph
from fx.node import Node
from fx.usedef.protocols import ReplaceHook
from fx.usedef.values import Value
from stages.checking import check, raising, same, same_graph, uses_intact


class Residual(NamedTuple):
    """The graph of Residual and its nodes."""

    graph: Graph
    x: Node
    linear: Node
    add: Node
    relu: Node
    output: Node


def residual() -> Residual:
    """Residual's graph, made by hand."""
    graph = Graph()
    x = graph.placeholder("x")
    linear = graph.call_module("linear", (x,))
    add = graph.call_function(operator.add, (linear, x))
    relu = graph.call_function(torch.relu, (add,))
    return Residual(graph, x, linear, add, relu, graph.output(relu))


def names(nodes: object) -> list[str]:
    """The names of some nodes, in order."""
    assert hasattr(nodes, "__iter__")
    return [str(node) for node in nodes]


# -- edges -------------------------------------------------------------------


@pytest.mark.exercise("node.Node._connect")
def test_a_new_node_is_a_user_of_what_it_reads() -> None:
    graph, x, linear, add, *_ = residual()
    same(
        (names(add.all_input_nodes), names(x.users), names(linear.users)),
        (["linear", "x"], ["linear", "add"], ["add"]),
        "add was made with the arguments (linear, x): it knows its inputs, "
        "and both of them know add as a user, in the order in which they "
        "were first used.",
    )
    uses_intact(graph, "Residual was made, and an edge is at one end only.")


@pytest.mark.exercise("node.Node._connect")
def test_a_node_that_is_read_twice_has_one_user() -> None:
    graph, x, *_ = residual()
    mul = graph.call_function(operator.mul, (x, x))
    same(
        (names(mul.all_input_nodes), names(x.users)),
        (["x"], ["linear", "add", "mul"]),
        "mul reads x twice: x is one input of mul, and mul one user of x.",
    )


@pytest.mark.exercise("node.Node._connect")
def test_assigning_arguments_moves_the_edges() -> None:
    graph, x, linear, add, *_ = residual()
    add.args = (x, 1)
    same(
        names(linear.users),
        [],
        "add read linear and was given the arguments (x, 1). linear must "
        "lose its user, or it can never be erased.",
    )
    same((add.args, dict(add.kwargs)), ((x, 1), {}), "These were assigned.")
    uses_intact(graph, "add.args = (x, 1) left an edge at one end only.")


@pytest.mark.exercise("node.Node._connect")
def test_an_input_that_stays_keeps_its_user() -> None:
    _, x, linear, add, *_ = residual()
    add.args = (x, linear)
    same(
        (names(x.users), names(linear.users)),
        (["linear", "add"], ["add"]),
        "add read linear and x, and now reads x and linear. They are among "
        "the old inputs and among the new: dropping the old edges must not "
        "take away the new ones.",
    )


@pytest.mark.exercise("node.Node._connect")
def test_who_reads_again_reads_last() -> None:
    _, x, linear, *_ = residual()
    linear.args = (x,)
    same(
        names(x.users),
        ["add", "linear"],
        "linear was given the arguments that it had. All old edges go and "
        "all new ones come, so linear is the last among the users of x now.",
    )


@pytest.mark.exercise("node.Node._connect")
def test_keyword_arguments_have_edges_too() -> None:
    graph, x, linear, add, *_ = residual()
    add.kwargs = {"alpha": x, "out": linear}
    same(
        dict(add.kwargs),
        {"alpha": x, "out": linear},
        "These keyword arguments were assigned to add.",
    )
    add.args = (linear,)
    uses_intact(graph, "add reads linear and x, one of them by keyword only.")
    add.kwargs = {}
    same(dict(add.kwargs), {}, "add was given no keyword arguments at last.")
    same(names(x.users), ["linear"], "add gave up x, its keyword argument.")
    same(names(linear.users), ["add"], "add reads linear still, in args.")


@pytest.mark.exercise("node.Node._connect")
def test_a_refused_input_leaves_everything_as_it_was() -> None:
    graph, x, linear, add, relu, _ = residual()
    stranger = residual().linear
    with raising(
        RuntimeError,
        "does not belong to this Graph",
        "A node of another graph was given as an argument, which must be "
        "refused.",
    ):
        relu.args = (x, stranger)
    check(
        relu.args[0] is add and relu not in x.users,
        "relu.args = (x, …) was refused because of its second argument, but "
        "the first edge had been moved already: check all, then change.",
        picture=f"relu.args: {relu.args}, x.users: {names(x.users)}",
    )
    uses_intact(graph, "What was refused must leave all edges as they were.")
    linear._erased = True
    with raising(
        RuntimeError,
        "was erased",
        "An erased node was given as an argument, which must be refused.",
    ):
        relu.args = (linear,)


# -- arguments ---------------------------------------------------------------


@pytest.mark.exercise("node.Node._freeze")
def test_nodes_inside_a_list_are_inputs() -> None:
    graph, x, linear, *_ = residual()
    cat = graph.call_function(torch.cat, ([x, linear],))
    same(
        names(cat.all_input_nodes),
        ["x", "linear"],
        "cat has the arguments ([x, linear],): it reads both nodes, though "
        "they stand inside a list.",
    )
    uses_intact(graph, "cat reads x and linear, so it must be their user.")


@pytest.mark.exercise("node.Node._freeze")
def test_nodes_are_found_at_any_depth_each_once() -> None:
    graph, x, linear, add, *_ = residual()
    args = (3, (add, [slice(None, x), {"k": (linear, add)}]))
    node = graph.call_function(torch.cat, args)
    same(
        names(node.all_input_nodes),
        ["add", "x", "linear"],
        "Nodes stand inside a tuple, a list, a slice and a dict. Each is an "
        "input once, in the order of first occurrence; 3 and None are not.",
    )


@pytest.mark.exercise("node.Node._freeze")
def test_nodes_in_keyword_arguments_are_inputs() -> None:
    graph, x, linear, *_ = residual()
    node = graph.call_function(
        torch.cat, ([linear],), {"dim": 0, "out": [x, linear]}
    )
    same(
        names(node.all_input_nodes),
        ["linear", "x"],
        "Keyword arguments are arguments: nodes in kwargs are inputs too, "
        "behind those in args.",
    )


@pytest.mark.exercise("node.Node._freeze")
def test_a_list_that_is_changed_later_does_not_change_the_node() -> None:
    graph, x, linear, *_ = residual()
    mine = [x, linear]
    node = graph.call_function(torch.cat, (mine,), {"out": mine})
    mine.clear()
    same(
        (names(node.args[0]), names(node.kwargs["out"])),
        (["x", "linear"], ["x", "linear"]),
        "The list that was given as an argument was cleared afterwards, and "
        "the node's arguments changed with it, so its users are wrong now. "
        "A node keeps copies.",
    )


@pytest.mark.exercise("node.Node._freeze")
def test_lists_and_dicts_in_arguments_refuse_to_change() -> None:
    graph, x, *_ = residual()
    node = graph.call_function(torch.cat, ([x], {"k": x}))
    inside = node.args[0]
    assert isinstance(inside, list)
    with raising(
        TypeError,
        "does not support mutation",
        "Something was appended to a list inside node.args, unseen by the "
        "edges: lists in arguments must be immutable.",
    ):
        inside.append(x)
    named = node.args[1]
    assert isinstance(named, dict)
    with raising(
        TypeError,
        "does not support mutation",
        "A dict inside node.args could be changed: it must be immutable.",
    ):
        named["k"] = 1
    node.kwargs = {"out": [x]}
    with raising(
        TypeError,
        "does not support mutation",
        "An item of node.kwargs was replaced, unseen by the edges: the dict "
        "of keyword arguments itself must be immutable too.",
    ):
        node.kwargs["out"] = 1


@pytest.mark.exercise("node.Node._freeze")
def test_constants_stay_what_they_are() -> None:
    graph, x, *_ = residual()
    constant, plain = object(), {1, 2}
    node = graph.call_function(torch.cat, ([x], constant, plain))
    check(
        node.args[1] is constant and node.args[2] == plain,
        "A constant among the arguments must be the same object afterwards.",
        picture=f"args: {node.args[1:]}, expected {(constant, plain)}",
    )


@pytest.mark.exercise("node.Node._freeze")
def test_arguments_in_a_list_become_a_tuple() -> None:
    graph, x, linear, *_ = residual()
    given: Value = [x, linear]
    node = graph.call_function(torch.add)
    node.args = given
    same(
        tuple(node.args),
        (x, linear),
        "The arguments were given as a list, and must be the same ones.",
    )
    check(
        type(node.args) is tuple,
        "The arguments were given as a list. A node keeps them as a tuple; "
        f"yours is of the type {type(node.args).__name__}.",
    )


@pytest.mark.exercise("node.Node._freeze")
def test_arguments_that_are_in_no_row_are_refused() -> None:
    _, x, *_, relu, _ = residual()
    relu.args = ([x],)  # an unwritten _freeze says so here
    wrong: list[Value] = ["ab", {1, 2}]
    for given in wrong:
        with raising(
            AssertionError,
            "args must be a tuple",
            f"args = {given!r} is no tuple or list, and must be refused, not "
            "taken apart: `_check_containers` must be asked first.",
        ):
            relu.args = given


@pytest.mark.exercise("node.Node._freeze")
def test_a_node_inside_a_set_is_refused() -> None:
    graph, x, *_ = residual()
    for inside in ({x}, frozenset([x])):
        with raising(
            TypeError,
            "inside a set",
            f"A node stands inside a {type(inside).__name__} among the "
            "arguments. Replacing it there is not possible, so `_check_set` "
            "must be asked.",
        ):
            graph.call_function(torch.cat, ([inside],))
    uses_intact(graph, "A node that was refused must not be a user of x.")


@pytest.mark.exercise("node.Node._freeze")
def test_a_keyword_that_no_call_can_have_is_refused() -> None:
    graph, x, *_ = residual()
    with raising(
        ValueError,
        "not an identifier",
        "'not a name' cannot be a keyword of a call: `_check_keywords` must "
        "be asked.",
    ):
        graph.call_function(torch.cat, (), {"not a name": [x]})


# -- replacing an input ------------------------------------------------------


@pytest.mark.exercise("node.Node.replace_input_with")
def test_the_new_input_stands_where_the_old_one_stood() -> None:
    graph, _, linear, add, relu, _ = residual()
    relu.replace_input_with(add, linear)
    same(
        names(relu.all_input_nodes),
        ["linear"],
        "After relu.replace_input_with(add, linear), relu reads linear only.",
    )
    uses_intact(
        graph,
        "relu reads linear instead of add now, and both of them have to know: "
        "an edge is written at both ends.",
    )


@pytest.mark.exercise("node.Node.replace_input_with")
def test_each_occurrence_is_replaced() -> None:
    graph, x, linear, *_ = residual()
    node = graph.call_function(
        torch.cat, ([x, (x, linear)], x), {"out": x, "k": [{"k": x}]}
    )
    node.replace_input_with(x, linear)
    same(
        names(node.all_input_nodes),
        ["linear"],
        "x stood in a list, in a tuple inside it, and in keyword arguments. "
        "replace_input_with must replace each occurrence.",
    )
    uses_intact(graph, "After the replacement x has lost this user.")


@pytest.mark.exercise("node.Node.replace_input_with")
def test_what_is_not_the_old_input_stays() -> None:
    graph, x, linear, add, *_ = residual()
    add.args = (linear, x, 1.5, "x", None)
    add.replace_input_with(x, linear)
    same(
        add.args,
        (linear, linear, 1.5, "x", None),
        "Only the node x is replaced; constants and other nodes stay, in "
        "their places.",
    )
    uses_intact(graph, "add reads linear twice now, and x no more.")


@pytest.mark.exercise("node.Node.replace_input_with")
def test_other_users_keep_the_old_input() -> None:
    _, x, linear, add, *_ = residual()
    add.replace_input_with(x, linear)
    same(
        names(x.users),
        ["linear"],
        "add gave up x. linear reads x too and was not asked to change: "
        "this is about one user, replace_all_uses_with about all.",
    )


@pytest.mark.exercise("node.Node.replace_input_with")
def test_an_input_of_another_graph_is_refused() -> None:
    graph, x, _, add, *_ = residual()
    stranger = residual().linear
    with raising(
        RuntimeError,
        "does not belong to this Graph",
        "The new input is a node of another graph, which must be refused.",
    ):
        add.replace_input_with(x, stranger)
    uses_intact(graph, "What was refused must leave all edges as they were.")
    check(add not in stranger.users, "The refused node has a new user.")


class Told(torch.nn.Module):
    """An owner that writes down what its hooks are told, and see."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []
        self._replace_hooks: list[ReplaceHook] = [self.hear]
        self._create_node_hooks: list[Callable[[Node], object]] = []
        self._erase_node_hooks: list[Callable[[Node], object]] = []

    def hear(self, *, old: Node, new: str, user: Node) -> None:
        """Write down a replacement, and what the user reads just now."""
        inputs = " ".join(names(user.all_input_nodes))
        self.heard.append(f"{old} by {new!r} in {user}, reading {inputs}")


@pytest.mark.exercise("node.Node.replace_input_with")
def test_the_owner_of_the_graph_is_told() -> None:
    graph, x, linear, add, *_ = residual()
    owner = Told()
    graph.owning_module = owner
    add.replace_input_with(x, linear)
    same(
        owner.heard,
        ["x by 'linear' in add, reading linear x"],
        "The graph's owner has a replace hook, which must be called once, "
        "before the arguments change, with the old node, the new one's name "
        "(a str), and the user.",
    )


@pytest.mark.exercise("node.Node.replace_input_with")
def test_the_new_input_is_checked_first() -> None:
    graph, x, _, add, relu, _ = residual()
    stranger = residual().linear
    owner = Told()
    graph.owning_module = owner
    for old in (x, relu):  # add does not read relu
        with raising(
            RuntimeError,
            "does not belong to this Graph",
            "The new input is a node of another graph, which must be refused "
            "by `_check_node`, even where nothing would be replaced.",
        ):
            add.replace_input_with(old, stranger)
    same(
        owner.heard,
        [],
        "The new input was refused, and the hooks had been told of it "
        "already: check before anything else.",
    )


# -- replacing all uses ------------------------------------------------------


@pytest.mark.exercise("node.Node.replace_all_uses_with")
def test_every_user_reads_the_new_node() -> None:
    graph, x, linear, add, *_ = residual()
    with graph.inserting_after(x):
        neg = graph.call_function(torch.neg)
    try:
        x.replace_all_uses_with(neg)
    except RuntimeError as error:
        check(
            "changed size" not in str(error),
            "Each replaced use takes a user out of x.users, and a dict must "
            "not change while you loop over it: go over a copy.",
        )
        raise
    same(
        (names(x.users), names(neg.users)),
        ([], ["linear", "add"]),
        "After x.replace_all_uses_with(neg), x has no users, and neg has "
        "those that x had.",
    )
    same(
        (names(linear.all_input_nodes), names(add.all_input_nodes)),
        (["neg"], ["linear", "neg"]),
        "linear and add read x before and must read neg now.",
    )
    uses_intact(graph, "After replace_all_uses_with the edges disagree.")


@pytest.mark.exercise("node.Node.replace_all_uses_with")
def test_the_changed_users_are_returned() -> None:
    graph, x, linear, add, *_ = residual()
    with graph.inserting_after(x):
        neg = graph.call_function(torch.neg)
    same(
        names(x.replace_all_uses_with(neg)),
        ["linear", "add"],
        "replace_all_uses_with returns the users that it changed, in order.",
    )
    same(
        names(add.users) + names(linear.users),
        ["relu", "add"],
        "Replacing x must not touch the users of other nodes.",
    )
    same(
        names(x.replace_all_uses_with(neg)),
        [],
        "x has no users any more: none can be changed.",
    )


@pytest.mark.exercise("node.Node.replace_all_uses_with")
def test_the_owner_is_told_of_each_use() -> None:
    graph, x, *_ = residual()
    with graph.inserting_after(x):
        neg = graph.call_function(torch.neg)
    owner = Told()
    graph.owning_module = owner
    x.replace_all_uses_with(neg)
    same(
        owner.heard,
        [
            "x by 'neg' in linear, reading x",
            "x by 'neg' in add, reading linear x",
        ],
        "The graph's owner has a replace hook, which must hear of each use "
        "that is replaced: `replace_input_with` tells it.",
    )


@pytest.mark.exercise("node.Node.replace_all_uses_with")
def test_a_user_for_which_the_callback_says_no_keeps_the_old_node() -> None:
    graph, x, *_ = residual()
    with graph.inserting_after(x):
        neg = graph.call_function(torch.neg, (x,))
    changed = x.replace_all_uses_with(neg, lambda user: user is not neg)
    same(
        names(neg.all_input_nodes),
        ["x"],
        "neg was put behind x and excluded by delete_user_cb. It reads its "
        "own value now: a user for which the callback says False is left "
        "alone.",
    )
    same(
        names(changed),
        ["linear", "add"],
        "neg was excluded by delete_user_cb, so it is not among the users "
        "that were changed.",
    )
    same_graph(
        graph,
        """
        graph():
            %x : [num_users=1] = placeholder[target=x]
            %neg : [num_users=2] = call_function[target=torch.neg](args = (%x,), kwargs = {})
            %linear : [num_users=1] = call_module[target=linear](args = (%neg,), kwargs = {})
            %add : [num_users=1] = call_function[target=operator.add](args = (%linear, %neg), kwargs = {})
            %relu : [num_users=1] = call_function[target=torch.relu](args = (%add,), kwargs = {})
            return relu
        """,  # noqa: E501  # as it is printed
        "neg was put between x and all users of x.",
    )


@pytest.mark.exercise("node.Node.replace_all_uses_with")
def test_meta_is_copied_on_request() -> None:
    _, _, linear, add, relu, _ = residual()
    add.meta["note"] = "from add"
    add.replace_all_uses_with(relu, lambda user: False)
    same(relu.meta, {}, "propagate_meta is off by default.")
    add.replace_all_uses_with(relu, propagate_meta=True)
    same(
        relu.meta,
        {"note": "from add"},
        "With propagate_meta=True the new node gets the old one's meta.",
    )
    add.meta["note"] = "changed"
    same(
        relu.meta,
        {"note": "from add"},
        "A note was changed in the old node's meta and the new node's "
        "changed with it: the two nodes must not share one dict.",
    )
    with raising(
        AssertionError,
        "note",
        "The new node has meta of its own, which must not be overwritten.",
    ):
        linear.replace_all_uses_with(relu, propagate_meta=True)
    same(names(linear.users), ["add"], "What is refused changes nothing.")


@pytest.mark.exercise("node.Node.replace_all_uses_with")
def test_a_replacement_of_another_graph_is_refused() -> None:
    stranger = residual().linear
    graph, x, *_, output = residual()
    for node in (x, output):  # the output has no users
        with raising(
            RuntimeError,
            "does not belong to this Graph",
            "The replacement is a node of another graph, which must be "
            "refused even if there are no users.",
        ):
            node.replace_all_uses_with(stranger)
    uses_intact(graph, "What was refused must leave all edges as they were.")
    x.meta["note"] = "from x"
    with raising(
        RuntimeError,
        "does not belong to this Graph",
        "The replacement is a node of another graph, which must be refused.",
    ):
        x.replace_all_uses_with(stranger, propagate_meta=True)
    same(
        stranger.meta,
        {},
        "The replacement was refused, and had got the meta already: check "
        "the node before anything is copied.",
    )
