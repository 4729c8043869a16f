"""Stage 02: the arguments of a node, and the edges between nodes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch

from fx.graph import Graph
from fx.node import Node
from fx.use_def.protocols import ReplaceHook
from fx.use_def.values import AnyValue
from stages.checking import (
    check,
    raising,
    same,
    same_graph,
    uses_intact,
    working,
)


class Residual(NamedTuple):
    """The graph of Residual and its nodes."""

    graph: Graph
    x: Node
    linear: Node
    add: Node
    relu: Node
    output: Node


def residual() -> Residual:
    """Residual's graph, built node by node."""
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
def test_a_new_node_is_a_user_of_its_inputs() -> None:
    graph, x, linear, add, *_ = residual()
    same(
        (names(add.all_input_nodes), names(x.users), names(linear.users)),
        (["linear", "x"], ["linear", "add"], ["add"]),
        "add was made with the arguments (linear, x). Both must be among its "
        "inputs, in this order, and both must have add among their users.",
    )
    uses_intact(graph, "In Residual, an edge is recorded at one end only.")


@pytest.mark.exercise("node.Node._connect")
def test_a_node_that_is_used_twice_has_one_user() -> None:
    graph, x, *_ = residual()
    mul = graph.call_function(operator.mul, (x, x))
    same(
        (names(mul.all_input_nodes), names(x.users)),
        (["x"], ["linear", "add", "mul"]),
        "mul uses x twice, but x is one input of mul, and mul one user of x.",
    )


@pytest.mark.exercise("node.Node._connect")
def test_assigning_arguments_moves_the_edges() -> None:
    graph, x, linear, add, *_ = residual()
    add.args = (x, 1)
    same(
        names(linear.users),
        [],
        "add used linear and was given the arguments (x, 1). linear must lose "
        "add as a user, or linear can never be erased.",
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
        "The arguments of add were (linear, x) and are now (x, linear). Both "
        "are old inputs and new ones: dropping the old edges must not remove "
        "the new ones.",
    )


@pytest.mark.exercise("node.Node._connect")
def test_assigned_edges_come_last_among_the_users() -> None:
    _, x, linear, *_ = residual()
    linear.args = (x,)
    same(
        names(x.users),
        ["add", "linear"],
        "linear was given the same arguments again. Drop all old edges and add "
        "all new ones, so that linear becomes the last of the users of x.",
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
    uses_intact(graph, "add uses linear and x, and x only by keyword.")
    add.kwargs = {}
    same(dict(add.kwargs), {}, "The keyword arguments of add were removed.")
    same(
        names(x.users),
        ["linear"],
        "x was a keyword argument of add, and then the keyword arguments of "
        "add were removed: x must lose add as a user.",
    )
    same(names(linear.users), ["add"], "add still has linear in its args.")


@pytest.mark.exercise("node.Node._connect")
def test_the_users_stay_one_dict() -> None:
    _, x, linear, add, *_ = residual()
    users = x.users
    add.args = (linear,)
    check(
        x.users is users and add not in users,
        "add no longer uses x. Take add out of the dict that x has: with a new "
        "dict in its place, code that holds `x.users` sees old users, and each "
        "edge costs a copy of all others.",
    )


@pytest.mark.exercise("node.Node._connect")
def test_a_refused_input_leaves_everything_as_it_was() -> None:
    graph, x, linear, add, relu, _ = residual()
    stranger = residual().linear
    with raising(
        RuntimeError,
        "Argument 'linear' of Node 'relu' does not belong to this Graph",
        "An argument is a node of another graph, and must be refused. The "
        "message names the argument, then its user.",
    ):
        relu.args = (x, stranger)
    check(
        relu.args[0] is add and relu not in x.users,
        "relu.args = (x, …) was refused because of its second argument, but "
        "the edge to x had been added already: check all inputs before you "
        "change any.",
        picture=f"relu.args: {relu.args}, x.users: {names(x.users)}",
    )
    uses_intact(graph, "A refused assignment must not change any edge.")
    linear._erased = True
    with raising(
        RuntimeError,
        "was erased",
        "An argument is an erased node, and must be refused.",
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
        "cat has the arguments ([x, linear],). Both nodes are its inputs, "
        "though they are inside a list.",
    )
    uses_intact(graph, "cat uses x and linear, so it must be their user.")


@pytest.mark.exercise("node.Node._freeze")
def test_nodes_are_found_at_any_depth_each_once() -> None:
    graph, x, linear, add, *_ = residual()
    args = (3, (add, [slice(None, x), {"k": (linear, add)}]))
    node = graph.call_function(torch.cat, args)
    same(
        names(node.all_input_nodes),
        ["add", "x", "linear"],
        "There are nodes inside a tuple, a list, a slice and a dict. Each must "
        "be an input once, in the order of first occurrence; 3 and None are "
        "not inputs.",
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
        "Keyword arguments are arguments: nodes in kwargs are inputs too, and "
        "come after those in args.",
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
        "the node's arguments changed with it, so the users of its inputs are "
        "wrong now. A node must keep copies.",
    )


@pytest.mark.exercise("node.Node._freeze")
def test_containers_without_a_node_are_copied_too() -> None:
    graph, x, *_ = residual()
    sizes, named, kinds = [1, 2], {"k": [3]}, {4}
    node = graph.call_function(torch.cat, (x, sizes, named), {"only": kinds})
    sizes.append(9)
    named["k"].append(9)
    kinds.add(9)
    same(
        str((node.args[1:], node.kwargs["only"])),
        "(([1, 2], {'k': [3]}), {4})",
        "A list, a dict and a set without a node in them were given as "
        "arguments and changed afterwards, and the node's arguments changed "
        "with them. Copy all containers, not only those that have nodes.",
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
        "A node was appended to a list inside node.args, and the edges do not "
        "know of it: lists in arguments must be immutable.",
    ):
        inside.append(x)
    named = node.args[1]
    assert isinstance(named, dict)
    with raising(
        TypeError,
        "does not support mutation",
        "A dict inside node.args could be changed, but must be immutable.",
    ):
        named["k"] = 1
    node.kwargs = {"out": [x]}
    with raising(
        TypeError,
        "does not support mutation",
        "An item of node.kwargs was replaced, and the edges do not know of it: "
        "the dict of keyword arguments itself must be immutable too.",
    ):
        node.kwargs["out"] = 1


@pytest.mark.exercise("node.Node._freeze")
def test_constants_stay_what_they_are() -> None:
    graph, x, *_ = residual()
    constant, plain = object(), {1, 2}
    node = graph.call_function(torch.cat, ([x], constant, plain))
    check(
        node.args[1] is constant and node.args[2] == plain,
        "A constant among the arguments must stay the same object.",
        picture=f"args: {node.args[1:]}, expected {(constant, plain)}",
    )


class Secretive:
    """A constant that must be asked nothing, as a tensor of many elements."""

    def __bool__(self) -> bool:
        """Refuse to say."""
        raise ValueError("truth value")

    def __eq__(self, other: object) -> bool:
        """Refuse to compare."""
        raise ValueError("comparison")

    def __hash__(self) -> int:
        """A hash, because `__eq__` would take it away."""
        return 1


@pytest.mark.exercise("node.Node._freeze")
def test_constants_have_no_truth_value() -> None:
    graph, x, *_ = residual()
    constant = Secretive()
    with working(
        "An argument is a constant whose truth value nobody can ask for, as "
        "that of a tensor of many elements: ask only whether it is a Node."
    ):
        node = graph.call_function(torch.cat, ([x, constant], constant))
    check(node.args[1] is constant, "The constant must stay what it is.")


class Marked(Node):
    """A subclass of Node."""

    __slots__ = ()


@pytest.mark.exercise("node.Node._freeze")
def test_a_node_of_a_subclass_is_an_input() -> None:
    graph, x, *_ = residual()
    marked = graph.call_function(torch.neg, (x,))
    marked.__class__ = Marked
    sentence = (
        "An argument is of a class derived from Node, so it is a node and must "
        "get its user: ask `isinstance(leaf, Node)`, and not for the type."
    )
    with working(sentence):
        node = graph.call_function(torch.add, (marked, [marked]))
    check(node in marked.users, sentence)


@pytest.mark.exercise("node.Node._freeze")
def test_arguments_in_a_list_become_a_tuple() -> None:
    graph, x, linear, *_ = residual()
    given: AnyValue = [x, linear]
    node = graph.call_function(torch.add)
    node.args = given
    same(
        tuple(node.args),
        (x, linear),
        "The arguments were given as a list, and must not change.",
    )
    check(
        type(node.args) is tuple,
        "The arguments were given as a list. A node must keep them as a "
        f"tuple, but yours keeps a {type(node.args).__name__}.",
    )


@pytest.mark.exercise("node.Node._freeze")
def test_arguments_must_be_a_tuple_or_a_list() -> None:
    _, x, *_, relu, _ = residual()
    relu.args = ([x],)  # an unwritten _freeze raises its error here
    wrong: list[AnyValue] = ["ab", {1, 2}]
    for given in wrong:
        with raising(
            AssertionError,
            "args must be a tuple",
            f"args = {given!r} is not a tuple or list, and must be refused, "
            "not iterated over: `_check_containers` must be called first.",
        ):
            relu.args = given


@pytest.mark.exercise("node.Node._freeze")
def test_a_node_inside_a_set_is_refused() -> None:
    graph, x, *_ = residual()
    for inside in ({x}, frozenset([x])):
        with raising(
            TypeError,
            f"inside a {type(inside).__name__}",
            f"A node is inside a {type(inside).__name__} among the arguments. "
            "It could not be replaced there, so `errors.constant` must be "
            "called "
            "to refuse it.",
        ):
            graph.call_function(torch.cat, ([inside],))
    uses_intact(graph, "A node that was refused must not become a user of x.")


@pytest.mark.exercise("node.Node._freeze")
def test_a_keyword_that_no_call_can_have_is_refused() -> None:
    graph, x, *_ = residual()
    with raising(
        ValueError,
        "not an identifier",
        "'not a name' cannot be a keyword of a call: `_check_keywords` must "
        "be called to refuse it.",
    ):
        graph.call_function(torch.cat, (), {"not a name": [x]})


# -- replacing an input ------------------------------------------------------


class Told(torch.nn.Module):
    """An owner with a replace hook that records its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []
        self._replace_hooks: list[ReplaceHook] = [self.hear]
        self._create_node_hooks: list[Callable[[Node], object]] = []
        self._erase_node_hooks: list[Callable[[Node], object]] = []

    def hear(self, *, old: Node, new: str, user: Node) -> None:
        """Record a replacement, and the inputs of the user at this time."""
        inputs = " ".join(names(user.all_input_nodes))
        self.heard.append(f"{old} by {new!r} in {user}, with inputs {inputs}")


# -- replacing all uses ------------------------------------------------------


@pytest.mark.exercise("node.Node.replace_all_uses_with")
def test_every_user_takes_the_new_node() -> None:
    graph, x, linear, add, *_ = residual()
    with graph.inserting_after(x):
        neg = graph.call_function(torch.neg)
    try:
        x.replace_all_uses_with(neg)
    except RuntimeError as error:
        check(
            "changed size" not in str(error),
            "Each replacement removes a user from x.users, and a dict must "
            "not change while you loop over it: loop over a copy.",
        )
        raise
    same(
        (names(x.users), names(neg.users)),
        ([], ["linear", "add"]),
        "After x.replace_all_uses_with(neg), x must not have users, and neg "
        "must have those that x had.",
    )
    same(
        (names(linear.all_input_nodes), names(add.all_input_nodes)),
        (["neg"], ["linear", "neg"]),
        "linear and add used x before, and must use neg now.",
    )
    uses_intact(
        graph,
        "After replace_all_uses_with, an edge is recorded at one end only.",
    )


@pytest.mark.exercise("node.Node.replace_all_uses_with")
def test_the_changed_users_are_returned() -> None:
    graph, x, linear, add, *_ = residual()
    with graph.inserting_after(x):
        neg = graph.call_function(torch.neg)
    same(
        names(x.replace_all_uses_with(neg)),
        ["linear", "add"],
        "replace_all_uses_with must return the users that it changed, in "
        "order.",
    )
    same(
        names(add.users) + names(linear.users),
        ["relu", "add"],
        "Replacing x must not touch the users of other nodes.",
    )
    same(
        names(x.replace_all_uses_with(neg)),
        [],
        "x no longer has users, so none can be changed.",
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
            "x by 'neg' in linear, with inputs x",
            "x by 'neg' in add, with inputs linear x",
        ],
        "The graph's owner has a replace hook, which must be called for each "
        "user that changes: `replace_input_with` does that.",
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
        "neg was put after x and excluded by delete_user_cb, but now it uses "
        "its own value: a user for which the callback returns False must not "
        "change.",
    )
    same(
        names(changed),
        ["linear", "add"],
        "neg was excluded by delete_user_cb, so it must not be among the users "
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
def test_the_callback_sees_what_was_changed_before() -> None:
    graph, x, *_ = residual()
    with graph.inserting_after(x):
        neg = graph.call_function(torch.neg)
    changed = x.replace_all_uses_with(neg, lambda user: not neg.users)
    same(
        names(changed),
        ["linear"],
        "The callback says yes as long as neg has no user. After linear was "
        "changed neg has one, so add must stay: ask for a user, change it, "
        "and only then ask for the next one.",
    )


@pytest.mark.exercise("node.Node.replace_all_uses_with")
def test_a_callback_may_be_false() -> None:
    class Chosen(list[Node]):
        """A list that can be called, and says whether it has a user."""

        def __call__(self, user: Node) -> bool:
            return user in self

    _, x, *_, relu, _ = residual()
    same(
        names(x.replace_all_uses_with(relu, Chosen())),
        [],
        "`delete_user_cb` is a list that can be called, and it is empty, so "
        "its truth value is false. It must be asked all the same: write "
        "`if delete_user_cb is None`.",
    )


@pytest.mark.exercise("node.Node.replace_all_uses_with")
def test_meta_is_copied_on_request() -> None:
    _, _, linear, add, relu, output = residual()
    add.meta["note"] = "from add"
    add.replace_all_uses_with(relu, lambda user: False)
    same(relu.meta, {}, "propagate_meta is off by default.")
    add.replace_all_uses_with(relu, propagate_meta=True)
    same(
        relu.meta,
        {"note": "from add"},
        "With propagate_meta=True, the new node must get the old one's meta.",
    )
    output.meta["note"] = "from output"
    output.replace_all_uses_with(linear, propagate_meta=True)
    same(
        linear.meta,
        {"note": "from output"},
        "The old node has no users, but with propagate_meta=True its meta is "
        "copied all the same: what nothing uses yet may be used later.",
    )
    linear.meta.clear()
    add.meta["value"] = [1.0]
    add.replace_all_uses_with(linear, lambda user: False, propagate_meta=True)
    check(
        linear.meta["value"] is add.meta["value"],
        "The new node must have the very notes of the old one, and not copies: "
        "a note may be a tensor, or something that cannot be copied.",
    )
    linear.meta.clear()
    add.meta["note"] = "changed"
    same(
        relu.meta,
        {"note": "from add"},
        "An entry in the old node's meta was changed, and the new node's meta "
        "changed with it: the two nodes must not share one dict.",
    )
    with raising(
        AssertionError,
        "note",
        "The new node has a meta entry already, so the call must be refused, "
        "and the message must list the keys of its meta: here `note`.",
    ):
        linear.replace_all_uses_with(relu, propagate_meta=True)
    same(names(linear.users), ["add"], "A refused call must change nothing.")


@pytest.mark.exercise("node.Node.replace_all_uses_with")
def test_meta_is_copied_into_the_dict_that_is_there() -> None:
    _, _, linear, add, *_ = residual()
    add.meta["note"] = "from add"
    notes = linear.meta
    add.replace_all_uses_with(linear, lambda user: False, propagate_meta=True)
    check(
        linear.meta is notes,
        "The new node has another dict as its meta now, so that code which "
        "holds the old one does not see the notes: copy them into the dict "
        "that the node has.",
    )


@pytest.mark.exercise("node.Node.replace_all_uses_with")
def test_a_replacement_of_another_graph_is_refused() -> None:
    stranger = residual().linear
    graph, x, *_, output = residual()
    for node in (x, output):  # the output has no users
        with raising(
            RuntimeError,
            "does not belong to this Graph",
            "The replacement is a node of another graph, and must be refused "
            "even if there are no users.",
        ):
            node.replace_all_uses_with(stranger)
    uses_intact(graph, "A refused replacement must not change any edge.")
    x.meta["note"] = "from x"
    with raising(
        RuntimeError,
        "does not belong to this Graph",
        "The replacement is a node of another graph, and must be refused.",
    ):
        x.replace_all_uses_with(stranger, propagate_meta=True)
    same(
        stranger.meta,
        {},
        "The replacement was refused, but the meta had been copied to it "
        "already: check the node before you copy.",
    )


@pytest.mark.exercise("node.Node.replace_all_uses_with")
def test_the_new_node_may_be_a_user_like_others() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    neg = graph.call_function(torch.neg, (x,))
    same(
        names(x.replace_all_uses_with(neg)),
        ["neg"],
        "neg uses x, and it is the node that replaces x. Nothing is said that "
        "would leave it alone: that is what `delete_user_cb` is for.",
    )
    same(
        names(neg.all_input_nodes),
        ["neg"],
        "neg takes itself as its input now, and lint would say so. Who does "
        "not want that, passes a `delete_user_cb`.",
    )
