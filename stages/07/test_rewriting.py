"""Stage 07's checks of the rewriter: splicing, filters, rules till stable."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest
import torch

from fx._symbolic_trace import symbolic_trace
from fx.graph import Graph
from fx.graph_module import GraphModule
from fx.node import Node
from fx.passes.utils.matcher_utils import InternalMatch
from fx.rewriting.replacing import Edit
from fx.rewriting.rules import (
    DoesNotEndError,
    Rule,
    Worklist,
    rewrite_until_stable,
)
from fx.rewriting.templates import Rewrite, graph_of, make_template
from fx.use_def.values import AnyValue
from stages.checking import (
    check,
    raising,
    same,
    same_graph,
    uses_intact,
    working,
)
from stages.residual import Residual

Function: TypeAlias = Callable[..., AnyValue]

INSERT = "rewriting.replacing.Edit.insert"
LOOK_AGAIN = "rewriting.rules.Worklist.look_again"


def named(graph: Graph) -> dict[str, Node]:
    """The nodes of a graph by name."""
    return {node.name: node for node in graph.nodes}


def rewrite_of(
    gm: GraphModule,
    pattern: Function,
    replacement: Function,
    **pairs: AnyValue,
) -> Rewrite:
    """A rewrite whose match is written down by hand.

    Args:
        gm: the module to rewrite.
        pattern: what was found.
        replacement: what is to be put there.
        pairs: name in the pattern = name in the graph, or a constant.
    """
    sought = graph_of(pattern)
    nodes, found = named(sought), named(gm.graph)
    nodes_map = {nodes[a]: found.get(b, b) for a, b in pairs.items()}
    inputs = [node for node in sought.nodes if node.op == "placeholder"]
    returned = sought.output_node().all_input_nodes
    match = InternalMatch(
        returned,
        nodes_map,
        [nodes_map[node] for node in inputs],
        [nodes_map[node] for node in returned],
    )
    graph = graph_of(replacement)
    owner = graph.owning_module
    template = make_template(gm, graph, owner, own_constants=True)
    return Rewrite(match, template, inputs)


def relu_of_sum(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """What most patterns here are."""
    return torch.relu(a + b)


def clamp_of_sum(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The same in other operations."""
    return torch.clamp(a + b, min=0.0)


def inserted() -> tuple[GraphModule, Rewrite, Edit]:
    """relu(a + b) in a Residual, its replacement inserted."""
    gm = symbolic_trace(Residual())
    rewrite = rewrite_of(
        gm, relu_of_sum, clamp_of_sum, a="linear", b="x", add="add", relu="relu"
    )
    edit = Edit(gm, carry_meta=False)
    edit.insert(rewrite)
    return gm, rewrite, edit


# -- splicing ----------------------------------------------------------------


@pytest.mark.exercise(INSERT)
def test_old_and_new_are_side_by_side() -> None:
    gm, _, _ = inserted()
    same_graph(
        gm.graph,
        """
        graph():
            %x : torch.Tensor [num_users=3] = placeholder[target=x]
            %linear : [num_users=2] = call_module[target=linear](args = (%x,), kwargs = {})
            %add : [num_users=1] = call_function[target=operator.add](args = (%linear, %x), kwargs = {})
            %relu : [num_users=1] = call_function[target=torch.relu](args = (%add,), kwargs = {})
            %add_1 : [num_users=1] = call_function[target=operator.add](args = (%linear, %x), kwargs = {})
            %clamp : [num_users=0] = call_function[target=torch.clamp](args = (%add_1,), kwargs = {min: 0.0})
            return relu
        """,  # noqa: E501
        "insert copies the operations of the template behind their operands "
        "and before their future users, with the match's inputs for the "
        "template's placeholders. The old nodes are not touched yet.",
    )
    uses_intact(gm.graph, "A copied node must be among the users of its input.")


@pytest.mark.exercise(INSERT)
def test_what_was_made_is_noted() -> None:
    _, rewrite, _ = inserted()
    same(
        [node.name for node in rewrite.made],
        ["add_1", "clamp"],
        "rewrite.made lists the new nodes in order: the caller of "
        "replace_pattern_with_filters is told of them.",
    )


@pytest.mark.exercise(INSERT)
def test_what_is_to_be_redirected_is_noted() -> None:
    _, _, edit = inserted()
    same(
        {str(old): str(new) for old, new in edit.new.items()},
        {"relu": "clamp"},
        "The users of relu are to use clamp: `replace` notes it, once for each "
        "value that the pattern returns.",
    )


@pytest.mark.exercise(INSERT)
def test_all_operations_of_the_match_will_be_gone() -> None:
    _, _, edit = inserted()
    same(
        sorted(node.name for node in edit.dead),
        ["add", "relu"],
        "All operations of the match are dead, not the returned one alone: "
        "else add would be computed although nothing uses it.",
    )


@pytest.mark.exercise(INSERT)
def test_then_the_graph_can_be_redirected_and_cleaned() -> None:
    gm, _, edit = inserted()
    with working(
        "insert has noted what each returned node is replaced by, and redirect "
        "cannot use it: that must be a node of the graph, not the template's."
    ):
        edit.redirect()
        edit.erase()
    same_graph(
        gm.graph,
        """
        graph():
            %x : torch.Tensor [num_users=2] = placeholder[target=x]
            %linear : [num_users=1] = call_module[target=linear](args = (%x,), kwargs = {})
            %add_1 : [num_users=1] = call_function[target=operator.add](args = (%linear, %x), kwargs = {})
            %clamp : [num_users=1] = call_function[target=torch.clamp](args = (%add_1,), kwargs = {min: 0.0})
            return clamp
        """,  # noqa: E501
        "After insert, redirect and erase only the new nodes are left, and "
        "the output uses them.",
    )
    uses_intact(gm.graph, "redirect and erase found something left undone.")


@pytest.mark.exercise(INSERT)
def test_an_input_may_be_a_constant() -> None:
    gm = symbolic_trace(lambda x: x * 2)
    rewrite = rewrite_of(
        gm, lambda a, b: a * b, lambda a, b: b + a, a="x", b=2, mul="mul"
    )
    Edit(gm, carry_meta=False).insert(rewrite)
    same(
        [str(arg) for arg in rewrite.made[0].args],
        ["2", "x"],
        "The pattern's input b stands for the constant 2, so the new add is "
        "2 + x: a placeholder of the template may stand for a constant.",
    )


@pytest.mark.exercise(INSERT)
def test_inputs_are_paired_by_place() -> None:
    gm = symbolic_trace(lambda p, q: torch.sub(p, q))
    rewrite = rewrite_of(
        gm,
        lambda x, y: torch.sub(x, y),
        lambda y, x: y * 10 - x,
        sub="sub",
        y="q",
        x="p",
    )
    Edit(gm, carry_meta=False).insert(rewrite)
    same(
        [str(node.args) for node in rewrite.made],
        ["(p, 10)", "(mul, q)"],
        "The first input of the replacement is the first of the pattern, "
        "whatever they are called: here it is called y, as the second one of "
        "the pattern is. Nor does it matter which was paired first: "
        "`placeholder_nodes` has the order of the pattern.",
    )


@pytest.mark.exercise(INSERT)
def test_a_replacement_may_return_its_input() -> None:
    gm = symbolic_trace(lambda x: torch.neg(torch.neg(x)) * 2)
    rewrite = rewrite_of(
        gm,
        lambda a: torch.neg(torch.neg(a)),
        lambda a: a,
        a="x",
        neg="neg",
        neg_1="neg_1",
    )
    edit = Edit(gm, carry_meta=False)
    edit.insert(rewrite)
    same(
        {str(old): str(new) for old, new in edit.new.items()},
        {"neg_1": "x"},
        "The replacement of neg(neg(a)) is a: users of neg_1 are to use x, "
        "the graph's node, and not the template's placeholder.",
    )


@pytest.mark.exercise(INSERT)
@pytest.mark.parametrize("constant", [0, None])
def test_a_replacement_may_return_a_constant(constant: AnyValue) -> None:
    gm = symbolic_trace(lambda x: (x - x) * 2)
    rewrite = rewrite_of(
        gm, lambda a: a - a, lambda a: constant, a="x", sub="sub"
    )
    edit = Edit(gm, carry_meta=False)
    edit.insert(rewrite)
    same(
        {str(old): new for old, new in edit.new.items()},
        {"sub": constant},
        f"The replacement of a - a is the constant {constant}, which is not a "
        "node of the template: it is what it is.",
    )


def sum_and_difference(a: AnyValue, b: AnyValue) -> tuple[AnyValue, AnyValue]:
    """Two results of the same operands."""
    return a + b, a - b


def with_alpha(a: AnyValue, b: AnyValue) -> tuple[AnyValue, AnyValue]:
    """The same in functions of torch."""
    return torch.add(a, b), torch.add(a, b, alpha=-1)


@pytest.mark.exercise(INSERT)
def test_a_pattern_may_return_several_values() -> None:
    def program(x: AnyValue, y: AnyValue) -> AnyValue:
        total, rest = sum_and_difference(x, y)
        return total * rest

    gm = symbolic_trace(program)
    rewrite = rewrite_of(
        gm, sum_and_difference, with_alpha, a="x", b="y", add="add", sub="sub"
    )
    edit = Edit(gm, carry_meta=False)
    edit.insert(rewrite)
    same(
        [(str(old), str(new)) for old, new in edit.new.items()],
        [("add", "add_1"), ("sub", "add_2")],
        "The pattern returns two values, and the replacement two others in "
        "the same order: `self.replace` each of `match.returning_nodes`, not "
        "only the first.",
    )


@pytest.mark.exercise(INSERT)
def test_matches_may_touch() -> None:
    gm = symbolic_trace(lambda x: torch.relu(torch.relu(x)))
    edit = Edit(gm, carry_meta=False)
    rewrites = [
        rewrite_of(
            gm,
            lambda a: torch.relu(a),
            lambda a: torch.sigmoid(a),
            a=source,
            relu=found,
        )
        for source, found in (("x", "relu"), ("relu", "relu_1"))
    ]
    for rewrite in rewrites:
        edit.insert(rewrite)
    same(
        str(rewrites[1].made[0].args[0]),
        "sigmoid",
        "The input of the second match was replaced by the first rewrite: "
        "the new node has to use its replacement (`current`), because relu "
        "will be erased.",
    )
    shown = [str(one.match.placeholder_nodes[0]) for one in rewrites]
    same(
        shown,
        ["x", "sigmoid"],
        "The match that the caller gets back shows its inputs as they are "
        "now, not as they were found: tell `show_inputs`.",
    )


@pytest.mark.exercise(INSERT)
def test_an_input_in_a_list_may_have_been_replaced() -> None:
    gm = symbolic_trace(lambda x: torch.cat([torch.relu(x), x]))
    edit = Edit(gm, carry_meta=False)
    edit.insert(
        rewrite_of(
            gm,
            lambda a: torch.relu(a),
            lambda a: torch.sigmoid(a),
            a="x",
            relu="relu",
        )
    )
    cat = named(gm.graph)["cat"]
    second = rewrite_of(
        gm,
        lambda a: torch.cat(a),
        lambda a: torch.hstack(a),
        a=cat.args[0],
        cat="cat",
    )
    edit.insert(second)
    same(
        str(second.made[0].args[0]),
        "[sigmoid, x]",
        "The input of the second match is a list, [relu, x], and the first "
        "rewrite replaced the relu in it: ask `current` for each value, "
        "which looks into lists, and not only for nodes.",
    )


@pytest.mark.exercise(INSERT)
def test_the_place_is_behind_what_the_inputs_are_now() -> None:
    def program(x: torch.Tensor) -> list[torch.Tensor]:
        early = torch.exp(torch.sin(x))
        return [early, torch.cos(torch.relu(x))]

    gm = symbolic_trace(program)
    first = rewrite_of(
        gm, lambda a: torch.relu(a), lambda a: torch.abs(a), a="x", relu="relu"
    )
    second = rewrite_of(
        gm,
        lambda a, b: (torch.sin(a), torch.cos(b)),
        lambda a, b: (torch.tan(a), torch.neg(b)),
        a="x",
        b="relu",
        sin="sin",
        cos="cos",
    )
    with working(
        "A new node was put before its input: sin(x) and cos(relu(x)) are "
        "replaced together, and abs has just replaced relu. Tell `show_inputs` "
        "before you ask `find_place`, which puts the new nodes behind the last "
        "input of the match."
    ):
        Edit(gm, carry_meta=False).apply([first, second])
        gm.graph.lint()


@pytest.mark.exercise(INSERT)
def test_paths_may_have_other_names() -> None:
    gm = symbolic_trace(lambda x: torch.relu(x) + torch.tensor([5.0]))
    rewrite = rewrite_of(
        gm,
        lambda a: torch.relu(a),
        lambda a: a + torch.tensor([1.0]),
        a="x",
        relu="relu",
    )
    Edit(gm, carry_meta=False).apply([rewrite])
    gm.recompile()
    same(
        gm(torch.zeros(1)).tolist(),
        [6.0],
        "The graph has a _tensor_constant0 already, and the replacement "
        "brings its own: template.renamed says under which path it is now, "
        "and the copied get_attr must fetch that one.",
    )


@pytest.mark.exercise(INSERT)
def test_only_some_paths_have_other_names() -> None:
    gm = symbolic_trace(Residual())
    rewrite = rewrite_of(
        gm, relu_of_sum, clamp_of_sum, a="linear", b="x", add="add", relu="relu"
    )
    fetched = rewrite.template.body[0].graph.create_node(
        "get_attr", "linear.weight"
    )
    rewrite.template.body.insert(0, fetched)
    rewrite.template.renamed["scale"] = "scale_1"
    with working(
        "The replacement fetches `linear.weight`, and template.renamed has "
        "another path only: what is not in it keeps its path."
    ):
        Edit(gm, carry_meta=False).insert(rewrite)
    same(
        rewrite.made[0].target,
        "linear.weight",
        "`linear.weight` is not in template.renamed: it keeps its path.",
    )


@pytest.mark.exercise(INSERT)
def test_a_new_node_has_a_meta_of_its_own() -> None:
    _, rewrite, _ = inserted()
    new, old = rewrite.made[0], rewrite.template.body[0]
    check(
        new.meta is not old.meta,
        "A new node shares the dict `meta` with the node of the template that "
        "it is a copy of. The template may be inserted again: a note on one "
        "copy must not appear at all others.",
    )


@pytest.mark.exercise(INSERT)
def test_what_is_known_of_the_old_is_carried() -> None:
    gm = symbolic_trace(Residual())
    rewrite = rewrite_of(
        gm, relu_of_sum, clamp_of_sum, a="linear", b="x", add="add", relu="relu"
    )
    Edit(gm, carry_meta=True).insert(rewrite)
    same(
        rewrite.made[-1].meta.get("replaces"),
        ("add", "relu"),
        "With carry_meta the new nodes say what they replace: `carry` "
        "does it, given the rewrite and the template's outputs as they are "
        "in the graph.",
    )


@pytest.mark.exercise(INSERT)
def test_nothing_is_carried_unasked() -> None:
    _, rewrite, _ = inserted()
    same(
        [node.meta.get("replaces") for node in rewrite.made],
        [None, None],
        "Without carry_meta the new nodes have no meta of the old ones.",
    )


# -- until nothing matches ---------------------------------------------------

NEG_NEG = Rule(lambda a: torch.neg(torch.neg(a)), lambda a: a)
RELU_TO_ABS = Rule(lambda a: torch.relu(a), lambda a: torch.abs(a))
LARGE = Rule(
    lambda a: torch.exp(torch.sin(torch.abs(a))), lambda a: torch.cos(a)
)
"""Three nodes, so that how far one looks is not what a test fails for."""
ABS_ABS = Rule(lambda a: torch.abs(torch.abs(a)), lambda a: torch.abs(a))


def targets_of(gm: GraphModule) -> list[str]:
    """What is called, in order."""
    return [
        getattr(node.target, "__name__", str(node.target))
        for node in gm.graph.nodes
        if node.op.startswith("call")
    ]


def waiting_after(
    gm: GraphModule, rules: list[Rule], name: str, *before: str
) -> set[str]:
    """What is to be looked at again after a rule was applied at one node.

    Args:
        gm: the module to rewrite.
        rules: all rules.
        name: of the node.
        before: names of nodes that are waiting before.
    """
    work = Worklist(gm, rules)
    work.waiting.clear()
    work.waiting.update(dict.fromkeys(named(gm.graph)[one] for one in before))
    node = named(gm.graph)[name]
    check(
        any(fits(node) for _, fits in work.ready),
        f"The rule did not match at %{name}.",
    )
    return {node.name for node in work.waiting}


@pytest.mark.exercise(LOOK_AGAIN)
def test_what_is_new_is_looked_at() -> None:
    gm = symbolic_trace(lambda x: torch.relu(x))
    waiting = waiting_after(gm, [RELU_TO_ABS], "relu")
    check(
        "abs_1" in waiting,
        "relu was replaced by the new node abs_1, which is not waiting: a "
        "match may end at what is new.",
        picture=f"waiting: {sorted(waiting)}",
    )


def read_by_many(x: torch.Tensor) -> list[torch.Tensor]:
    """abs(abs(x)) + x, and some more users of x."""
    total = torch.abs(torch.abs(x)) + x
    return [total, torch.sin(x), torch.cos(x), torch.exp(x), torch.tan(x)]


@pytest.mark.exercise(LOOK_AGAIN)
def test_users_of_a_new_operand_are_looked_at() -> None:
    gm = symbolic_trace(read_by_many)
    drop = Rule(lambda a: torch.abs(torch.abs(a)), lambda a: a)
    waiting = waiting_after(gm, [drop, LARGE], "abs_2")
    check(
        "add" in waiting,
        "abs(abs(x)) + x became x + x: nothing in it is new, but add has "
        "another operand: %x took the place of %abs_2. All users of what "
        "took the place have to be looked at, however many there are.",
        picture=f"waiting: {sorted(waiting)}",
    )


@pytest.mark.exercise(LOOK_AGAIN)
def test_a_new_operand_may_be_in_a_list() -> None:
    def program(x: AnyValue, y: AnyValue) -> list[AnyValue]:
        joined: AnyValue = torch.cat([x, y])
        total = torch.vstack(joined)
        others = torch.sin, torch.cos, torch.exp, torch.tan
        return [total, *(f(z) for z in (x, y) for f in others)]

    gm = symbolic_trace(program)
    drop = Rule(lambda a: torch.cat(a), lambda a: a)
    waiting = waiting_after(gm, [drop, LARGE], "cat")
    check(
        "vstack" in waiting,
        "vstack(cat([x, y])) became vstack([x, y]): the list took the place of "
        "cat, and vstack has two other operands. `map_arg` finds the nodes of "
        "`edit.new` at any depth.",
        picture=f"waiting: {sorted(waiting)}",
    )


@pytest.mark.exercise(LOOK_AGAIN)
def test_matches_may_end_below_what_is_new() -> None:
    gm = symbolic_trace(lambda x: torch.exp(torch.sin(torch.relu(x))))
    waiting = waiting_after(gm, [LARGE, RELU_TO_ABS], "relu")
    check(
        "exp" in waiting,
        "The new abs_1 is where exp(sin(abs(a))) begins, and that match ends "
        "two users below, at %exp: a match ends up to a pattern's size "
        "below what is new.",
        picture=f"waiting: {sorted(waiting)}",
    )


@pytest.mark.exercise(LOOK_AGAIN)
def test_the_way_leads_through_what_is_waiting() -> None:
    gm = symbolic_trace(lambda x: torch.neg(torch.exp(torch.relu(x))))
    large = Rule(
        lambda a: torch.neg(torch.exp(torch.abs(a))), lambda a: torch.cos(a)
    )
    waiting = waiting_after(gm, [large, RELU_TO_ABS], "relu", "exp")
    check(
        "neg" in waiting,
        "relu(x) became abs(x), and a match may end two users below, at %neg. "
        "%exp, on the way, was waiting already for another reason: go on "
        "below it all the same.",
        picture=f"waiting: {sorted(waiting)}",
    )


@pytest.mark.exercise(LOOK_AGAIN)
def test_an_input_of_many_users_is_left_alone() -> None:
    def program(x: torch.Tensor) -> list[torch.Tensor]:
        first = torch.relu(x)
        return [first, *(torch.sin(x) for _ in range(10))]

    gm = symbolic_trace(program)
    constant = Rule(lambda a: torch.relu(a), lambda a: 0)
    waiting = waiting_after(gm, [NEG_NEG, constant], "relu")
    same(
        waiting,
        set(),
        "relu was erased and %x lost a user. It has ten more, and no pattern "
        "has so many nodes: no match can have begun to fit because of that.",
    )


@pytest.mark.exercise(LOOK_AGAIN)
def test_an_input_may_be_in_a_list() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        once = torch.relu(x)
        return [torch.neg(once), torch.cat([once, y])]

    gm = symbolic_trace(program)
    inner = Rule(lambda a: torch.neg(torch.relu(a)), lambda a: torch.clamp(a))
    joined = Rule(lambda a: torch.cat(a), lambda a: torch.zeros(2))
    same(
        rewrite_until_stable(gm, [inner, joined, LARGE]),
        2,
        "cat([relu, y]) was replaced, and the input a of its pattern is the "
        "whole list: relu, which is in it, has lost a user, and neg(relu(x)) "
        "matches now. `map_arg` finds nodes at any depth.",
    )


@pytest.mark.exercise(LOOK_AGAIN)
def test_matches_may_end_as_far_as_a_pattern_reaches() -> None:
    gm = symbolic_trace(
        lambda x: [torch.relu(x) + x, torch.sin(x), torch.cos(x), torch.tan(x)]
    )
    drop = Rule(lambda a: torch.relu(a), lambda a: a)
    double = Rule(lambda a: a + a, lambda a: a * 2)
    waiting = waiting_after(gm, [double, drop], "relu")
    check(
        "add" in waiting,
        "relu(x) + x became x + x, which is the pattern a + a. %x took the "
        "place of %relu, and %add, its user, is one step below. The largest "
        "pattern has two nodes, `reach` is 2, and a step of one is less.",
        picture=f"waiting: {sorted(waiting)}",
    )


@pytest.mark.exercise(LOOK_AGAIN)
@pytest.mark.parametrize("first", ["short", "long"])
def test_the_shortest_way_counts(first: str) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        new = torch.relu(x)
        if first == "short":
            near, far = torch.sin(new), torch.cos(torch.tan(new))
        else:
            far, near = torch.cos(torch.tan(new)), torch.sin(new)
        return torch.neg(torch.exp(near + far))

    gm = symbolic_trace(program)
    deep = Rule(lambda a: torch.exp(torch.exp(torch.exp(a))), lambda a: a)
    waiting = waiting_after(gm, [RELU_TO_ABS, deep], "relu")
    check(
        "exp" in waiting,
        "abs took the place of relu, and exp is three steps below it by way of "
        "sin and add, and four steps by way of tan and cos. The largest "
        "pattern has four nodes, its input too, so exp can end a match. Take "
        "what is nearest first, or the longer way is counted: `popleft`.",
        picture=f"waiting: {sorted(waiting)}",
    )


def _sin_and_cos_of_one(a: torch.Tensor) -> torch.Tensor:
    """A pattern with an inner node that has two users."""
    once = torch.neg(a)
    return torch.sin(once) + torch.cos(once)


def zeros(*calls: Function) -> Graph:
    """A graph without inputs: the calls, one on the result of the other."""
    graph = Graph()
    node = graph.call_function(calls[0], ((2,),))
    for call in calls[1:]:
        node = graph.call_function(call, (node,))
    graph.output(node)
    return graph


@pytest.mark.exercise(LOOK_AGAIN)
def test_a_match_may_begin_at_what_is_touched() -> None:
    gm = GraphModule({}, zeros(torch.zeros, torch.neg))
    start = Rule(zeros(torch.zeros), zeros(torch.ones))
    minus = Rule(zeros(torch.ones, torch.neg), zeros(torch.empty))
    waiting = waiting_after(gm, [minus, start], "zeros")
    check(
        "neg" in waiting,
        "zeros() became ones(), with which the match neg(ones()) begins. That "
        "pattern has no input, so that both of its nodes count: `reach` is 2, "
        "and %neg is one step below the new node, which is at 0.",
        picture=f"waiting: {sorted(waiting)}",
    )
    graph = zeros(torch.ones, torch.neg)
    ones = next(iter(graph.nodes))
    with graph.inserting_after(ones):
        graph.call_function(torch.relu, (ones,))
    gm = GraphModule({}, graph)
    constant = Rule(lambda a: torch.relu(a), lambda a: 0)
    waiting = waiting_after(gm, [minus, constant], "relu")
    check(
        "neg" in waiting,
        "relu was erased, and %ones, which it used, is used by neg alone: the "
        "match neg(ones()) begins there, and %neg is one step below.",
        picture=f"waiting: {sorted(waiting)}",
    )


@pytest.mark.exercise(LOOK_AGAIN)
def test_each_new_node_is_where_a_match_may_begin() -> None:
    gm = symbolic_trace(lambda x: torch.exp(torch.relu(x)))
    long = Rule(
        lambda a: torch.relu(a),
        lambda a: torch.sin(torch.cos(torch.tan(a))),
    )
    last = Rule(lambda a: torch.exp(torch.sin(a)), lambda a: torch.abs(a))
    waiting = waiting_after(gm, [last, long], "relu")
    check(
        "exp" in waiting,
        "relu(x) became sin(cos(tan(x))), three new nodes, and %exp is one "
        "step below the last of them. A node that was touched stays at depth "
        "0 when it is met again from another one.",
        picture=f"waiting: {sorted(waiting)}",
    )


@pytest.mark.exercise(LOOK_AGAIN)
def test_what_lost_a_user_may_have_several_left() -> None:
    def program(x: torch.Tensor) -> list[torch.Tensor]:
        once = torch.neg(x)
        return [torch.sin(once) + torch.cos(once), torch.relu(once)]

    gm = symbolic_trace(program)
    shared = Rule(_sin_and_cos_of_one, lambda a: torch.abs(a))
    constant = Rule(lambda a: torch.relu(a), lambda a: 0)
    same(
        rewrite_until_stable(gm, [shared, constant]),
        2,
        "neg(x) was used by sin, cos and relu, and relu was erased. Two users "
        "are left, and both are in the pattern, which matches now: what lost "
        "a user is looked at again, even if it still has several.",
    )


@pytest.mark.exercise(LOOK_AGAIN)
def test_a_rewrite_may_make_the_next_one() -> None:
    gm = symbolic_trace(lambda x: torch.neg(torch.abs(torch.abs(torch.neg(x)))))
    drop = Rule(lambda a: torch.abs(torch.abs(a)), lambda a: a)
    same(
        rewrite_until_stable(gm, [drop, NEG_NEG]),
        2,
        "neg(abs(abs(neg(x)))): without the two abs the two neg are "
        "neighbours. The users of a value that took the place of another have "
        "to be looked at again.",
    )
    same(targets_of(gm), [], "Nothing is left to be called.")


@pytest.mark.exercise(LOOK_AGAIN)
def test_a_new_node_may_be_in_the_next_match() -> None:
    gm = symbolic_trace(lambda x: torch.sin(torch.relu(torch.abs(x))))
    same(
        rewrite_until_stable(gm, [ABS_ABS, RELU_TO_ABS]),
        2,
        "relu(abs(x)) becomes abs(abs(x)), and that is the pattern of the "
        "other rule: what a rewrite made has to be looked at again.",
    )
    same(targets_of(gm), ["abs", "sin"], "abs(abs(x)) becomes abs(x) in turn.")


@pytest.mark.exercise(LOOK_AGAIN)
def test_a_lost_user_may_allow_a_match() -> None:
    def program(x: torch.Tensor) -> list[torch.Tensor]:
        once = torch.neg(x)
        return [torch.neg(once), torch.relu(once)]

    gm = symbolic_trace(program)
    constant = Rule(lambda a: torch.relu(a), lambda a: 0)
    same(
        rewrite_until_stable(gm, [NEG_NEG, constant]),
        2,
        "neg(neg(x)) did not match while relu used the inner neg. The second "
        "rule erases relu: the inputs of a match lose a user, and their "
        "other users have to be looked at again.",
    )


def chain(x: torch.Tensor) -> torch.Tensor:
    """One relu at the top of a long chain."""
    x = torch.relu(x)
    for _ in range(30):
        x = torch.sin(x)
    return x


@pytest.mark.exercise(LOOK_AGAIN)
def test_only_what_is_near_is_looked_at() -> None:
    gm = symbolic_trace(chain)
    waiting = waiting_after(gm, [RELU_TO_ABS, NEG_NEG], "relu")
    check(
        len(waiting) <= 6,
        "One node was replaced and the patterns have at most three nodes, but "
        f"{len(waiting)} nodes of the long chain below are to be looked at "
        "again: stop at a pattern's size.",
    )


@pytest.mark.exercise(LOOK_AGAIN)
def test_rules_that_never_end_are_stopped() -> None:
    gm = symbolic_trace(lambda x: torch.relu(x))
    before = str(gm.graph)
    grow = Rule(lambda a: torch.relu(a), lambda a: torch.relu(torch.sin(a)))
    with raising(
        DoesNotEndError,
        "max_rewrites=20",
        "The replacement contains the pattern: what is new matches again, "
        "without end, until max_rewrites stops it.",
    ):
        rewrite_until_stable(gm, [grow], max_rewrites=20)
    same_graph(gm.graph, before, "After an error the graph is as it was.")
