"""Stage 08's checks of reinplacing: alias sets, and each rule alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias, cast

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from fx._symbolic_trace import symbolic_trace
from fx.graph_module import GraphModule
from fx.node import Node
from fx.passes.reinplace import (
    is_redundant_scatter,
    reinplace,
    rule_1b_inputs,
    rule_1c_arguments,
    rule_2_later_uses,
)
from fx.reinplacing.aliasing import Storages, propagate
from fx.reinplacing.simulation import NotInPlace, Simulation, Site
from fx.use_def.values import AnyValue
from stages.checking import check, same, working

Function: TypeAlias = Callable[..., object]
Rule: TypeAlias = Callable[[Simulation, Site], object]

IS_ALIAS = "reinplacing.aliasing.Storages.is_alias"
RULE_1B = "passes.reinplace.rule_1b_inputs"
RULE_1C = "passes.reinplace.rule_1c_arguments"
REDUNDANT = "passes.reinplace.is_redundant_scatter"
RULE_2 = "passes.reinplace.rule_2_later_uses"
DO = "reinplacing.simulation.Simulation.do_in_place"

RULES = ("1a", "1b", "1c", "2")

aten: Final[AnyValue] = torch.ops.aten

ROW = torch.ones(3)
SQUARE = torch.ones(3, 3)

# An operator that torch does not have: it copies, and declares views.
_library = cast(AnyValue, torch.library).Library("course", "DEF")
_library.define("both(Tensor(a) x, Tensor(b) y) -> (Tensor(a), Tensor(b))")
_library.impl(
    "both", lambda x, y: (x.clone(), y.clone()), "CompositeExplicitAutograd"
)
# Another one, which declares no view and returns an item of its argument.
_library.define("first(Tensor[] xs) -> Tensor")
_library.impl("first", lambda xs: xs[0], "CompositeExplicitAutograd")
course: Final[AnyValue] = torch.ops.course

# The first fake mode imports half of torch. Make it before a test is timed.
FakeTensorMode()


def named(gm: GraphModule) -> dict[str, Node]:
    """The nodes of a graph by name."""
    return {node.name: node for node in gm.graph.nodes}


# -- alias sets --------------------------------------------------------------


def storages_of(
    function: Function, *inputs: torch.Tensor
) -> tuple[Storages, dict[str, Node]]:
    """The storages of a function's values, and its nodes by name."""
    gm = symbolic_trace(function)
    _, values = propagate(gm, inputs)
    return Storages(values), named(gm)


def share(function: Function, one: str, other: str) -> bool:
    """Whether two nodes of a function are in one alias set; x is 2 by 3."""
    storages, nodes = storages_of(function, torch.ones(2, 3))
    mine, others = (
        storages.alias_sets(nodes[one]),
        storages.alias_sets(nodes[other]),
    )
    return not set(mine).isdisjoint(others)


def alias(function: Function, node: str, of: str) -> bool:
    """Whether a node of a function is an alias of another; x, y are 2 by 3."""
    inputs = [torch.ones(2, 3), torch.ones(2, 3)]
    storages, nodes = storages_of(function, *inputs)
    found = storages.is_alias(nodes[node], nodes[of])
    check(
        isinstance(found, bool),
        f"is_alias must return True or False, not {found!r}",
    )
    return found


@pytest.mark.exercise(IS_ALIAS)
def test_a_view_is_an_alias() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> object:
        return [aten.t.default(x), y]

    check(
        alias(program, "t_default", "x"),
        "t(x) reads no element of x, and only returns another view of the "
        "same elements.",
    )


@pytest.mark.exercise(IS_ALIAS)
def test_a_computed_result_is_not_an_alias() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> object:
        return aten.add.Tensor(x, y)

    check(
        not alias(program, "add_tensor", "x"),
        "add reads the elements of x and allocates memory for the result, "
        "which is not an alias.",
    )


@pytest.mark.exercise(IS_ALIAS)
def test_an_item_of_views_is_an_alias() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> object:
        return [aten.split.Tensor(x, 1)[0], y]

    check(
        alias(program, "split_tensor", "x"),
        "split(x) is a list of views of x: an alias.",
    )
    check(
        alias(program, "getitem", "split_tensor"),
        "split(x)[0] takes a view out of a list of views. getitem has no "
        "schema, but is_item knows it.",
    )


@pytest.mark.exercise(IS_ALIAS)
def test_a_write_is_not_an_alias() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> object:
        return aten.add_.Tensor(x, y)

    check(
        not alias(program, "add__tensor", "x"),
        "add_(x, y) returns x, in the same storage; but it writes into it, "
        "which is more than returning another view.",
    )


@pytest.mark.exercise(IS_ALIAS)
def test_an_argument_that_is_not_viewed_is_used() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> object:
        return aten.expand_as.default(x, y)

    check(
        alias(program, "expand_as_default", "x"),
        "expand_as(x, y) is a view of x.",
    )
    check(
        not alias(program, "expand_as_default", "y"),
        "expand_as(x, y) is a view of x; y is only read for its shape. Is "
        "the argument in question the one that is viewed?",
    )


@pytest.mark.exercise(IS_ALIAS)
def test_an_argument_that_is_given_twice_is_used() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> object:
        return [aten.expand_as.default(x, x), y]

    check(
        not alias(program, "expand_as_default", "x"),
        "expand_as(x, x): x is viewed, and the operator reads it as well, "
        "because it is among the arguments twice.",
    )


@pytest.mark.exercise(IS_ALIAS)
def test_storage_found_in_the_run_counts_too() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> object:
        return aten.type_as.default(x, y)

    check(
        alias(program, "type_as_default", "x"),
        "type_as(x, y) declares no view, and returns x itself because the "
        "type is right: the result was found to be in the storage of x.",
    )
    check(
        not alias(program, "type_as_default", "y"),
        "type_as(x, y) returns x, which is not in the storage of y.",
    )


@pytest.mark.exercise(IS_ALIAS)
def test_a_part_of_what_is_found_in_several_storages() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> object:
        return course.first.default(aten.broadcast_tensors.default([x, y]))

    check(
        alias(program, "first_default", "broadcast_tensors_default"),
        "The argument is a list of two tensors, in two storages, and the "
        "result was found in the first of these. All its storages are "
        "storages of the argument, which may have more: ask for a subset.",
    )


@pytest.mark.exercise(IS_ALIAS)
def test_the_argument_may_be_given_by_name() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> object:
        return [aten.contiguous.default(self=aten.t.default(x)), y]

    check(
        alias(program, "contiguous_default", "t_default"),
        "contiguous(self=t) declares a view of t, although it had to copy "
        "here, and t is given by name: `Parameter.of` takes args and kwargs, "
        "and finds an argument in either.",
    )


@pytest.mark.exercise(IS_ALIAS)
def test_one_of_several_results_is_not_enough() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> object:
        return aten.broadcast_tensors.default([x, y])

    check(
        not alias(program, "broadcast_tensors_default", "x"),
        "broadcast_tensors([x, y]) returned a tensor in the storage of x and "
        "one in that of y. It is another view of x only if all its results "
        "are in the storage of x.",
    )


@pytest.mark.exercise(IS_ALIAS)
def test_memory_that_may_be_the_same_is_not_enough() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> object:
        total = aten.add.Tensor(x, y)
        course.both.default(x, total)
        return total

    check(
        not alias(program, "add_tensor", "x"),
        "both(x, total) declares views of x and of total, which puts them into "
        "one alias set. But add has read x and was not found in its storage: "
        "compare `of`, and not the alias sets.",
    )


@pytest.mark.exercise(IS_ALIAS)
def test_a_node_without_a_schema_is_a_use() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> object:
        return [cast(AnyValue, x).t(), y]

    check(
        not alias(program, "t", "x"),
        "x.t() calls a method, which has no schema, and takes no item: it may "
        "read whatever it is given, wherever its result was found.",
    )


@pytest.mark.exercise(IS_ALIAS)
def test_each_declared_view_is_an_alias() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> object:
        return course.both.default(x, y)

    for name in ("x", "y"):
        check(
            alias(program, "both_default", name),
            f"both(x, y) declares that it returns views of x and of y, so it "
            f"is an alias of {name}: one of facts.views is enough.",
        )


@pytest.mark.exercise(IS_ALIAS)
def test_a_bool_is_not_a_view() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> object:
        return [aten.is_same_size.default(x, y), y]

    check(
        not alias(program, "is_same_size_default", "x"),
        "is_same_size(x, y) returns a bool, which has no storage. An empty "
        "set is a subset of every set: ask whether there are some.",
    )


# -- one rule alone ----------------------------------------------------------


class Answer(NamedTuple):
    """What a rule says of one call: why it is kept, or what it returned."""

    reason: object
    returned: object


def answers(
    rule: Rule, function: Function | GraphModule, *inputs: torch.Tensor
) -> dict[str, Answer]:
    """What a rule says of each call, if no call is done in place."""
    found: dict[str, Answer] = {}
    sim = Simulation(_module(function), inputs)
    for place, node in enumerate(sim.nodes):
        try:
            call = sim.candidate(place, node)
        except NotInPlace:
            continue
        if call is not None:
            try:
                found[node.name] = Answer(None, rule(sim, call))
            except NotInPlace as kept:
                check(
                    kept.args[0] in RULES,
                    "NotInPlace takes the number of the rule, then the reason.",
                    picture=f"yours: NotInPlace{kept.args}",
                )
                found[node.name] = Answer(kept.args[-1], None)
    return found


def _module(function: Function | GraphModule) -> GraphModule:
    """A function, traced; a module as it is."""
    if isinstance(function, GraphModule):
        return function
    return symbolic_trace(function)


def reason(
    rule: Rule, function: Function, name: str, *inputs: torch.Tensor
) -> object:
    """Why a rule keeps one call; None if it does not."""
    return answers(rule, function, *inputs)[name].reason


# -- 1b: inputs --------------------------------------------------------------


@pytest.mark.exercise(RULE_1B)
def test_new_memory_may_be_written() -> None:
    found = answers(
        rule_1b_inputs, lambda x: aten.relu.default(aten.neg.default(x)), ROW
    )["relu_default"]
    same(
        found.reason,
        None,
        "neg(x) is in new memory, which no input owns: memory.owner is None.",
    )
    same(
        found.returned,
        4,
        "No copy_ ends the time in which this memory is free, so the limit is "
        "the end of the graph: len(sim.nodes).",
    )


@pytest.mark.exercise(RULE_1B)
def test_an_input_must_not_change() -> None:
    check(
        reason(
            rule_1b_inputs, lambda x: aten.relu.default(x), "relu_default", ROW
        ),
        "x is an input, and the caller needs it as it was.",
    )


@pytest.mark.exercise(RULE_1B)
def test_a_view_of_an_input_must_not_change() -> None:
    check(
        reason(
            rule_1b_inputs,
            lambda x: aten.relu.default(aten.t.default(x)),
            "relu_default",
            SQUARE,
        ),
        "t(x) is not an input, but an alias of one: the same memory. Ask the "
        "memory for its owner, and not the node for its opcode.",
    )


class _Holder(torch.nn.Module):
    """Computes with a tensor that it has."""

    def __init__(self) -> None:
        super().__init__()
        self.held = torch.ones(3)

    def forward(self, x: torch.Tensor) -> AnyValue:
        return aten.add.Tensor(self.held, x)


@pytest.mark.exercise(RULE_1B)
def test_a_tensor_of_the_module_must_not_change() -> None:
    check(
        reason(rule_1b_inputs, symbolic_trace(_Holder()), "add_tensor", ROW),
        "self.held belongs to the module, and later calls need it as it was.",
    )


def increment(x: torch.Tensor) -> object:
    """What functionalization makes of x.add_(1)."""
    return aten.copy_.default(x, aten.add.Tensor(x, 1))


@pytest.mark.exercise(RULE_1B)
def test_an_input_that_is_overwritten_is_free_until_then() -> None:
    found = answers(rule_1b_inputs, increment, ROW)["add_tensor"]
    same(
        found.reason,
        None,
        "x is overwritten by copy_(x, …) later, as functionalization does it: "
        "until then it is free memory.",
    )
    same(
        found.returned,
        2,
        "x is free until copy_ overwrites it: rule_1b_inputs has to return the "
        "place of that copy_, as the limit for rule 2.",
    )


@pytest.mark.exercise(RULE_1B)
def test_an_input_that_is_overwritten_in_part_is_not_free() -> None:
    def program(x: torch.Tensor) -> object:
        result = aten.add.Tensor(x, 1)
        row = aten.select.int(x, 0, 0)
        aten.copy_.default(row, aten.select.int(result, 0, 0))
        return None

    check(
        reason(rule_1b_inputs, program, "add_tensor", SQUARE),
        "copy_ overwrites the first row of x and add would write all of x: "
        "the other rows would be changed for good.",
    )


@pytest.mark.exercise(RULE_1B)
def test_inputs_that_share_memory_are_not_free() -> None:
    memory = torch.ones(3)

    def program(x: torch.Tensor, y: torch.Tensor) -> object:
        return aten.copy_.default(x, aten.add.Tensor(x, 1)), y

    check(
        reason(rule_1b_inputs, program, "add_tensor", memory, memory),
        "x and y are in one memory here, and may be in two in another call: "
        "memory.blocked says so, and then no call may write, copy_ or not.",
    )


@pytest.mark.exercise(RULE_1B)
def test_memory_without_an_owner_may_be_blocked() -> None:
    def program(x: torch.Tensor) -> object:
        once = aten.neg.default(x)
        aten.add_.Tensor(once, 1)
        return aten.relu.default(once)

    check(
        reason(rule_1b_inputs, program, "relu_default", ROW),
        "neg(x) is in memory that no input owns, but add_ writes into it, and "
        "so it is blocked: ask memory.blocked before memory.owner.",
    )


@pytest.mark.exercise(RULE_1B)
def test_only_a_copy_to_an_input_is_a_limit() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> object:
        once = aten.neg.default(x)
        result = aten.add.Tensor(once, 1)
        aten.copy_.default(once, y)
        return result

    same(
        answers(rule_1b_inputs, program, ROW, ROW.clone())[
            "add_tensor"
        ].returned,
        6,
        "neg(x) is in memory that no input owns, and the copy_ to it is a use "
        "like any other: the limit is the end of the graph.",
    )


@pytest.mark.exercise(RULE_1B)
def test_the_copy_need_not_be_the_next_use() -> None:
    def program(x: torch.Tensor) -> object:
        row = aten.add.Tensor(aten.select.int(x, 0, 0), 1)
        whole = aten.select_scatter.default(x, row, 0, 0)
        aten.copy_.default(x, whole)
        return None

    same(
        answers(rule_1b_inputs, program, SQUARE)["add_tensor"].returned,
        4,
        "This is what functionalization makes of x[0].add_(1). The next use of "
        "x is the scatter, and copy_, at place 4, comes after it: look at all "
        "that next_uses gives.",
    )


@pytest.mark.exercise(RULE_1B)
def test_the_copy_must_be_among_the_next_two_uses() -> None:
    def program(x: torch.Tensor) -> object:
        new = aten.add.Tensor(x, 1)
        old = [aten.mul.Tensor(x, 2), aten.mul.Tensor(x, 3)]
        aten.copy_.default(x, new)
        return old

    check(
        reason(rule_1b_inputs, program, "add_tensor", ROW),
        "Two other uses of x precede the copy_, so it is not among the next "
        "two: next_uses looks no further, so that a rule takes no longer for "
        "a long graph.",
    )


# -- 1c: other arguments -----------------------------------------------------


@pytest.mark.exercise(RULE_1C)
def test_arguments_in_other_memory() -> None:
    same(
        reason(
            rule_1c_arguments,
            lambda x: aten.add.Tensor(aten.neg.default(x), x),
            "add_tensor",
            ROW,
        ),
        None,
        "neg(x) and x do not share storage: add may write the one while it "
        "reads the other.",
    )


@pytest.mark.exercise(RULE_1C)
def test_an_argument_that_is_given_twice() -> None:
    def program(x: torch.Tensor) -> object:
        once = aten.neg.default(x)
        return aten.add.Tensor(once, once)

    check(
        reason(rule_1c_arguments, program, "add_tensor", ROW),
        "neg(x) is among the arguments twice, and the second one is in the "
        "memory that is written.",
    )


@pytest.mark.exercise(RULE_1C)
def test_a_view_among_the_arguments() -> None:
    def program(x: torch.Tensor) -> object:
        once = aten.neg.default(x)
        return aten.add.Tensor(once, aten.t.default(once))

    check(
        reason(rule_1c_arguments, program, "add_tensor", SQUARE),
        "once + t(once): the second argument is another node and a view of "
        "the first. Written in place, elements would be read after they have "
        "changed.",
    )


@pytest.mark.exercise(RULE_1C)
def test_a_view_given_by_keyword() -> None:
    def program(x: torch.Tensor) -> object:
        once = aten.neg.default(x)
        return aten.add.Tensor(once, other=aten.t.default(once))

    check(
        reason(rule_1c_arguments, program, "add_tensor", SQUARE),
        "add(once, other=t(once)): an argument given by keyword is read as "
        "well. arguments_of has them all.",
    )


@pytest.mark.exercise(RULE_1C)
def test_a_view_inside_a_list() -> None:
    def program(x: torch.Tensor) -> object:
        once = aten.neg.default(x)
        return aten.index_put.default(once, [aten.t.default(once)], x)

    check(
        reason(
            rule_1c_arguments,
            program,
            "index_put_default",
            torch.zeros(2, 2, dtype=torch.long),
        ),
        "index_put(once, [t(once)], x): the indices are a list, and a view of "
        "the first argument is in it. arguments_of looks into lists.",
    )


@pytest.mark.exercise(RULE_1C)
def test_an_argument_that_may_be_in_the_memory() -> None:
    def program(x: torch.Tensor) -> object:
        once = aten.neg.default(x)
        dense = aten.contiguous.default(aten.t.default(once))
        return aten.add.Tensor(once, dense)

    check(
        reason(rule_1c_arguments, program, "add_tensor", SQUARE),
        "contiguous has copied for these strides, and would return its "
        "argument for others, so that it may be in the memory of neg(x): ask "
        "the alias sets, and not the storages.",
    )


@pytest.mark.exercise(RULE_1C)
def test_an_argument_in_memory_that_was_merged() -> None:
    def program(x: torch.Tensor) -> object:
        one = aten.neg.default(x)
        two = aten.add.Tensor(one, 1)
        return aten.mul.Tensor(two, aten.t.default(two))

    sim = Simulation(symbolic_trace(program), (SQUARE,))
    nodes = {node.name: node for node in sim.nodes}
    one, two = nodes["neg_default"], nodes["add_tensor"]
    sim.replaced[two] = one  # as if add had been done in place
    sim.storages.sets.merge(*sim.storages.of[one], *sim.storages.of[two])
    call = sim.candidate(sim.places[nodes["mul_tensor"]], nodes["mul_tensor"])
    assert call is not None
    try:
        rule_1c_arguments(sim, call)
    except NotInPlace:
        return
    check(
        False,
        "add has been done in place, so its result is in the memory of "
        "neg(x), and t(add) is a view of it. The two have had a storage each; "
        "their alias sets were merged.",
    )


@pytest.mark.exercise(RULE_1C)
def test_an_argument_in_several_memories() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> object:
        once = aten.neg.default(x)
        places = aten.broadcast_tensors.default([once, y])
        return aten.index_put.default(once, places, x)

    square = torch.zeros(2, 2, dtype=torch.int64)
    check(
        reason(rule_1c_arguments, program, "index_put_default", square, square),
        "index_put reads the places of the elements from two tensors, which "
        "are one argument, and the first of them is a view of what it writes. "
        "It is enough if one of the memories of an argument is that one.",
    )


@pytest.mark.exercise(RULE_1C)
def test_parts_that_are_apart() -> None:
    def program(x: torch.Tensor) -> object:
        once = aten.neg.default(x)
        upper = aten.slice.Tensor(once, 0, 0, 2)
        lower = aten.slice.Tensor(once, 0, 2, 4)
        return aten.add.Tensor(upper, lower)

    same(
        reason(rule_1c_arguments, program, "add_tensor", torch.ones(4)),
        None,
        "The two halves of one tensor are in one storage and are apart, so "
        "writing one does not change the other (_are_apart).",
    )


# -- 2c: scatter -------------------------------------------------------------


def redundant(function: Function, call: str, user: str) -> bool:
    """Whether a user is redundant if a call is done in place."""

    def rule(sim: Simulation, one: Site) -> object:
        nodes = {node.name: node for node in sim.nodes}
        return is_redundant_scatter(sim, one, nodes[user])

    return bool(answers(rule, function, SQUARE)[call].returned)


def row_plus_one(x: torch.Tensor) -> object:
    """What functionalization makes of `a = -x; a[0].add_(1)`."""
    whole = aten.neg.default(x)
    row = aten.add.Tensor(aten.select.int(whole, 0, 0), 1)
    return aten.select_scatter.default(whole, row, 0, 0)


@pytest.mark.exercise(REDUNDANT)
def test_a_scatter_to_where_the_view_came_from() -> None:
    check(
        redundant(row_plus_one, "add_tensor", "select_scatter_default"),
        "Row 0 was computed in place, and select_scatter puts it to row 0, "
        "where it is already.",
    )


@pytest.mark.exercise(REDUNDANT)
def test_a_source_that_is_given_by_name() -> None:
    def program(x: torch.Tensor) -> object:
        whole = aten.neg.default(x)
        row = aten.add.Tensor(aten.select.int(whole, 0, 0), 1)
        return aten.select_scatter.default(whole, src=row, dim=0, index=0)

    with working(
        "select_scatter(whole, src=row, dim=0, index=0): the source is not in "
        "args. `Parameter.of` takes args and kwargs, and finds it in either."
    ):
        found = redundant(program, "add_tensor", "select_scatter_default")
    check(
        found,
        "select_scatter(whole, src=row, dim=0, index=0) is the same call as "
        "with all arguments by place, and puts row 0 where it is already.",
    )


@pytest.mark.exercise(REDUNDANT)
def test_a_scatter_to_another_place() -> None:
    def program(x: torch.Tensor) -> object:
        whole = aten.neg.default(x)
        row = aten.add.Tensor(aten.select.int(whole, 0, 0), 1)
        return aten.select_scatter.default(whole, row, 0, 1)

    check(
        not redundant(program, "add_tensor", "select_scatter_default"),
        "The result that was computed in row 0 is put to row 1, another place, "
        "so the scatter is needed. Compare the place of the result with the "
        "part that the scatter writes (written_by_scatter).",
    )


@pytest.mark.exercise(REDUNDANT)
def test_a_scatter_into_an_expanded_tensor() -> None:
    def program(x: torch.Tensor) -> object:
        whole = aten.expand.default(aten.neg.default(x[0]), [3, 3])
        row = aten.add.Tensor(aten.select.int(whole, 0, 0), 1)
        return aten.select_scatter.default(whole, row, 0, 0)

    check(
        not redundant(program, "add_tensor", "select_scatter_default"),
        "All three rows are the same three elements in memory. The scatter "
        "changes one row of a copy, and a write in place would change all: "
        "the scatter is needed if its first argument overlaps itself.",
    )


@pytest.mark.exercise(REDUNDANT)
def test_a_scatter_of_something_else() -> None:
    def program(x: torch.Tensor) -> object:
        whole = aten.neg.default(x)
        row = aten.add.Tensor(aten.select.int(whole, 0, 0), 1)
        other = aten.mul.Tensor(row, 2)
        return aten.select_scatter.default(whole, other, 0, 0)

    check(
        not redundant(program, "add_tensor", "select_scatter_default"),
        "The scatter writes row 0, but not with the result of add: it writes "
        "something else.",
    )


@pytest.mark.exercise(REDUNDANT)
def test_a_scatter_of_a_view_of_the_result() -> None:
    def program(x: torch.Tensor) -> object:
        whole = aten.neg.default(x)
        row = aten.add.Tensor(aten.select.int(whole, 0, 0), 1)
        again = aten.squeeze.dim(aten.unsqueeze.default(row, 0), 0)
        return aten.select_scatter.default(whole, again, 0, 0)

    check(
        redundant(program, "add_tensor", "select_scatter_default"),
        "The scatter is given a view of the result that has the same "
        "elements in the same place: through_views follows it back.",
    )


@pytest.mark.exercise(REDUNDANT)
def test_a_scatter_to_another_tensor() -> None:
    def program(x: torch.Tensor) -> object:
        whole = aten.neg.default(x)
        row = aten.add.Tensor(aten.select.int(whole, 0, 0), 1)
        other = aten.exp.default(x)
        return aten.select_scatter.default(other, row, 0, 0)

    check(
        not redundant(program, "add_tensor", "select_scatter_default"),
        "The row was computed in neg(x), and the scatter puts it into a copy "
        "of exp(x): another tensor, which has to be made.",
    )


@pytest.mark.exercise(REDUNDANT)
def test_a_scatter_to_a_tensor_that_may_be_the_same() -> None:
    def program(x: torch.Tensor) -> object:
        whole = aten.neg.default(x)
        dense = aten.contiguous.default(aten.t.default(whole))
        row = aten.add.Tensor(aten.select.int(whole, 0, 0), 1)
        return aten.select_scatter.default(dense, row, 0, 0)

    check(
        not redundant(program, "add_tensor", "select_scatter_default"),
        "contiguous may return a view, so its result is in the alias set of "
        "neg(x), but it has copied: equal offsets in two storages are two "
        "places. sim.same_place compares the storages as well.",
    )


@pytest.mark.exercise(REDUNDANT)
def test_another_user_is_needed() -> None:
    def program(x: torch.Tensor) -> object:
        whole = aten.neg.default(x)
        row = aten.add.Tensor(aten.select.int(whole, 0, 0), 1)
        return [row, aten.mul.Tensor(whole, 2)]

    check(
        not redundant(program, "add_tensor", "mul_tensor"),
        "mul is not a scatter operator, as facts.view says: it reads the old "
        "value, and is needed.",
    )


@pytest.mark.exercise(REDUNDANT)
def test_the_output_has_no_schema() -> None:
    def program(x: torch.Tensor) -> object:
        whole = aten.neg.default(x)
        return [whole, aten.add.Tensor(aten.select.int(whole, 0, 0), 1)]

    sentence = (
        "The later use is the output, which does not call an operator: "
        "facts_of returns None, and a node without facts is not a scatter."
    )
    try:
        found = redundant(program, "add_tensor", "output")
    except AttributeError as error:
        check(False, sentence, picture=f"yours: {error!r}")
    else:
        check(not found, sentence)


# -- 2: last use -------------------------------------------------------------


def free_to_the_end(sim: Simulation, call: Site) -> object:
    """Rule 2 for a call whose memory is free up to the end of the graph."""
    return rule_2_later_uses(sim, call, len(sim.nodes))


@pytest.mark.exercise(RULE_2)
def test_a_last_use() -> None:
    def program(x: torch.Tensor) -> object:
        once = aten.neg.default(x)
        before = aten.mul.Tensor(once, 2)
        return [before, aten.relu.default(once)]

    found = answers(free_to_the_end, program, ROW)
    same(
        found["relu_default"].reason,
        None,
        "relu is the last to read neg(x); mul has read it before.",
    )
    check(
        found["mul_tensor"].reason,
        "mul may not write into neg(x): relu reads it later and needs the old "
        "value.",
    )


@pytest.mark.exercise(RULE_2)
def test_a_view_is_used_later() -> None:
    def program(x: torch.Tensor) -> object:
        once = aten.neg.default(x)
        view = aten.t.default(once)
        return [aten.relu.default(once), aten.mul.Tensor(view, 2)]

    check(
        reason(free_to_the_end, program, "relu_default", SQUARE),
        "No node reads neg(x) after relu, but mul reads a view of it, in the "
        "same memory: what counts are the uses of the memory.",
    )


@pytest.mark.exercise(RULE_2)
def test_a_view_without_users() -> None:
    def program(x: torch.Tensor) -> object:
        once = aten.neg.default(x)
        result = aten.relu.default(once)
        aten.t.default(once)
        return result

    same(
        reason(free_to_the_end, program, "relu_default", SQUARE),
        None,
        "The view t(neg(x)) comes later and has no users: a view alone reads "
        "no element (2a).",
    )


@pytest.mark.exercise(RULE_2)
def test_a_scatter_may_vanish() -> None:
    found = answers(free_to_the_end, row_plus_one, SQUARE)["add_tensor"]
    same(
        found.reason,
        None,
        "The one later use of the memory is the scatter that puts the row "
        "back where it came from: it is redundant (2c).",
    )
    same(
        str(found.returned),
        "select_scatter_default",
        "The scatter is redundant: rule_2_later_uses has to return it, so "
        "that it will be erased.",
    )


@pytest.mark.exercise(RULE_2)
def test_a_scatter_and_another_use() -> None:
    def program(x: torch.Tensor) -> object:
        whole = aten.neg.default(x)
        row = aten.add.Tensor(aten.select.int(whole, 0, 0), 1)
        put = aten.select_scatter.default(whole, row, 0, 0)
        return [put, aten.mul.Tensor(whole, 2)]

    check(
        reason(free_to_the_end, program, "add_tensor", SQUARE),
        "The scatter would be redundant, but mul reads the old value as well: "
        "exactly one later use may be a scatter.",
    )


def free_until_copied(sim: Simulation, call: Site) -> object:
    """Rule 2 for a call whose memory is free until the graph's copy_."""
    limit = len(sim.nodes)
    for place, node in enumerate(sim.nodes):
        if node.target is aten.copy_.default and place > call.place:
            limit = place
    return rule_2_later_uses(sim, call, limit)


@pytest.mark.exercise(RULE_2)
def test_uses_after_the_copy_see_the_new_value() -> None:
    def program(x: torch.Tensor) -> object:
        aten.copy_.default(x, aten.add.Tensor(x, 1))
        return aten.mul.Tensor(x, 2)

    same(
        reason(free_until_copied, program, "add_tensor", ROW),
        None,
        "mul reads x after copy_ has overwritten it, and needs the new value. "
        "Only uses before `limit` count.",
    )


@pytest.mark.exercise(RULE_2)
def test_uses_before_the_copy_want_the_old_value() -> None:
    def program(x: torch.Tensor) -> object:
        new = aten.add.Tensor(x, 1)
        old = aten.mul.Tensor(x, 2)
        aten.copy_.default(x, new)
        return old

    check(
        reason(free_until_copied, program, "add_tensor", ROW),
        "mul reads x before copy_ overwrites it, and needs the old value.",
    )


@pytest.mark.exercise(RULE_2)
def test_the_result_is_needed_after_the_copy() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> object:
        result = aten.add.Tensor(x, 1)
        aten.copy_.default(x, y)
        return result

    check(
        reason(free_until_copied, program, "add_tensor", ROW, ROW.clone()),
        "copy_ writes y over x, and the result of add, which would be in x, "
        "is returned after that: _check_copy has to be called.",
    )


@pytest.mark.exercise(RULE_2)
def test_the_scatter_is_needed_after_the_copy() -> None:
    def program(x: torch.Tensor) -> object:
        row = aten.select.int(x, 0, 0)
        put = aten.select_scatter.default(x, aten.add.Tensor(row, 1), 0, 0)
        aten.copy_.default(x, aten.mul.Tensor(put, 2))
        return put

    check(
        reason(free_until_copied, program, "add_tensor", SQUARE),
        "Without the scatter, its result is x itself, which copy_ overwrites "
        "before it is returned: tell _check_copy of the scatter, too.",
    )


def smaller(
    function: Function, *inputs: torch.Tensor
) -> tuple[list[str], bool]:
    """The calls of a function after reinplace; whether it does the same."""
    with working(
        "reinplace could not rewrite the graph as it was decided. A node that "
        "is erased must be replaced as well, so that the other takes its users."
    ):
        gm = reinplace(symbolic_trace(function), *inputs)
    ours, theirs = ([one.clone() for one in inputs] for _ in range(2))
    results: AnyValue = (gm(*ours), symbolic_trace(function)(*theirs))
    agree = [torch.equal(*pair) for pair in zip(ours, theirs, strict=True)]
    agree.append(torch.equal(*results))
    calls = [str(n.target) for n in gm.graph.nodes if n.op == "call_function"]
    return calls, all(agree)


@pytest.mark.exercise(RULE_2)
def test_all_rules_together() -> None:
    for function, expected in (
        (
            row_plus_one,
            ["aten.neg.default", "aten.select.int", "aten.add_.Tensor"],
        ),
        (increment, ["aten.add_.Tensor"]),
    ):
        calls, agrees = smaller(function, SQUARE)
        same(
            calls,
            expected,
            "With all rules written, reinplace does in place what it may. "
            "These are the calls that must be left.",
        )
        check(agrees, "The rewritten graph computes something else.")


# -- what is true afterwards -------------------------------------------------


def done(function: Function, name: str, scatter: str = "") -> Simulation:
    """The simulation of a function in which one call is done in place."""
    gm = symbolic_trace(function)
    sim = Simulation(gm, (SQUARE,))
    nodes = named(gm)
    node = nodes[name]
    call = sim.candidate(sim.places[node], node)
    assert call is not None
    sim.do_in_place(call, nodes[scatter] if scatter else None, {})
    return sim


def two_in_a_row(x: torch.Tensor) -> object:
    """A call, another one on its result, and a use of what both are from."""
    base = aten.neg.default(x)
    one = aten.add.Tensor(base, 1)
    two = aten.mul.Tensor(one, 2)
    return aten.div.Tensor(two, base)


@pytest.mark.exercise(DO)
def test_the_result_is_where_its_argument_is() -> None:
    sim = done(two_in_a_row, "add_tensor")
    nodes = {node.name: node for node in sim.nodes}
    add, neg = nodes["add_tensor"], nodes["neg_default"]
    check(add in sim.in_place, "The call must be noted in `in_place`.")
    check(
        sim.replacement(add) is neg,
        "The result of add is in the memory of neg from now on, so neg is the "
        "replacement of add.",
    )
    same(
        [str(one) for one in sim.storages.alias_sets(add)],
        [str(one) for one in sim.storages.alias_sets(neg)],
        "add and neg are in one memory now: their alias sets are merged.",
    )
    call = sim.candidate(sim.places[nodes["mul_tensor"]], nodes["mul_tensor"])
    assert call is not None
    uses = sim.next_uses(sim.memories[call.memory], call.place)
    same(
        [str(sim.nodes[place]) for place in uses],
        ["div_tensor"],
        "mul(add) may not be done in place, because add is in the memory of "
        "neg, and div reads neg later: the one memory has the uses of both.",
    )


@pytest.mark.exercise(DO)
def test_the_verdict_names_its_step() -> None:
    sim = done(two_in_a_row, "add_tensor")
    same(
        [(str(one.node), one.rule) for one in sim.done],
        [("add_tensor", "3b")],
        "add becomes add_, which is step 3b, and is told once.",
    )

    def scattering(x: torch.Tensor) -> object:
        return aten.select_scatter.default(aten.neg.default(x), x[0], 0, 0)

    sim = done(scattering, "select_scatter_default")
    same(
        [one.rule for one in sim.done],
        ["3a"],
        "A scatter becomes its view and a copy_, which is step 3a.",
    )


@pytest.mark.exercise(DO)
def test_a_redundant_scatter_goes() -> None:
    sim = done(row_plus_one, "add_tensor", "select_scatter_default")
    nodes = {node.name: node for node in sim.nodes}
    scatter, whole = nodes["select_scatter_default"], nodes["neg_default"]
    check(
        scatter in sim.erased,
        "The scatter would put the row where it is already: it is erased.",
    )
    check(
        sim.replacement(scatter) is whole,
        "The users of the scatter need the whole with the row in it, which is "
        "what the scatter wrote into: its first argument, or what that is "
        "replaced by.",
    )
    same(
        [(str(one.node), one.rule) for one in sim.done],
        [("add_tensor", "3b"), ("select_scatter_default", "5")],
        "Two things are done: the call (3b), and the scatter is erased (5).",
    )


@pytest.mark.exercise(DO)
def test_what_a_scatter_writes_into_may_be_replaced() -> None:
    def program(x: torch.Tensor) -> object:
        base = aten.neg.default(x)
        whole = aten.mul.Tensor(base, 2)
        row = aten.add.Tensor(aten.select.int(whole, 0, 0), 1)
        return aten.select_scatter.default(whole, row, 0, 0)

    gm = symbolic_trace(program)
    sim = Simulation(gm, (SQUARE,))
    nodes = named(gm)
    for name, scatter in (
        ("mul_tensor", None),
        ("add_tensor", nodes["select_scatter_default"]),
    ):
        call = sim.candidate(sim.places[nodes[name]], nodes[name])
        assert call is not None
        sim.do_in_place(call, scatter, {})
    same(
        str(sim.replacement(nodes["select_scatter_default"])),
        "neg_default",
        "mul is done in the memory of neg, so what the scatter writes into is "
        "neg, too: ask `replacement` for it.",
    )


@pytest.mark.exercise(DO)
def test_changed_values_are_known_afterwards() -> None:
    gm = symbolic_trace(two_in_a_row)
    sim = Simulation(gm, (SQUARE,))
    nodes = named(gm)
    node = nodes["add_tensor"]
    call = sim.candidate(sim.places[node], node)
    assert call is not None
    with sim.mode:
        other = torch.empty_strided((3, 3), (1, 3))
    sim.do_in_place(call, None, {nodes["mul_tensor"]: other})
    check(
        sim.values[nodes["mul_tensor"]] is other,
        "`changed` has the values that have other strides from now on (4): "
        "later calls must be decided with these.",
    )


@pytest.mark.exercise(DO)
def test_a_changed_value_may_be_that_of_the_scatter() -> None:
    gm = symbolic_trace(row_plus_one)
    sim = Simulation(gm, (SQUARE,))
    nodes = named(gm)
    node, scatter = nodes["add_tensor"], nodes["select_scatter_default"]
    call = sim.candidate(sim.places[node], node)
    assert call is not None
    with sim.mode:
        other = torch.empty_strided((3, 3), (1, 3))
    sim.do_in_place(call, scatter, {scatter: other})
    check(
        sim.values[scatter] is other,
        "`changed` says what the scatter's value is from now on, and it is the "
        "last word: update `values` after the scatter has been replaced.",
    )
