"""Stage 08's checks of reinplacing: alias sets, and each rule alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from fx._symbolic_trace import symbolic_trace
from fx.graph_module import GraphModule
from fx.node import Node
from fx.passes.reinplace import (
    _has_nothing_left,
    _rule_1a_metadata,
    _rule_1b_inputs,
    _rule_1c_arguments,
    _rule_2_later_uses,
    reinplace,
)
from fx.reinplacing.aliasing import Storages, propagate
from fx.reinplacing.plan import Call, Plan
from fx.usedef.values import Value
from stages.checking import check, same

Function: TypeAlias = Callable[..., object]
Rule: TypeAlias = Callable[[Plan, Call], object]

MERGE = "reinplacing.aliasing.Storages._merge_declared"
IS_ALIAS = "reinplacing.aliasing.Storages.is_alias"
RULE_1A = "passes.reinplace._rule_1a_metadata"
RULE_1B = "passes.reinplace._rule_1b_inputs"
RULE_1C = "passes.reinplace._rule_1c_arguments"
NOTHING_LEFT = "passes.reinplace._has_nothing_left"
RULE_2 = "passes.reinplace._rule_2_later_uses"

aten: Final[Value] = torch.ops.aten

ROW = torch.ones(3)
SQUARE = torch.ones(3, 3)

# The first of all fake modes imports half of torch: on no test's clock.
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
    """Whether two nodes of a function count as one memory; x is 2 by 3."""
    storages, nodes = storages_of(function, torch.ones(2, 3))
    mine, others = storages.classes(nodes[one]), storages.classes(nodes[other])
    return not set(mine).isdisjoint(others)


@pytest.mark.exercise(MERGE)
def test_a_view_that_was_a_copy_counts_as_a_view() -> None:
    for name, function in (
        ("contiguous", lambda x: aten.contiguous.default(aten.t.default(x))),
        ("reshape", lambda x: aten.reshape.default(aten.t.default(x), [6])),
    ):
        check(
            share(function, "x", f"{name}_default"),
            f"{name} copied here, because of these strides. Its schema says "
            "that it may be a view of its argument, and for other inputs it "
            "is: the two storages have to be merged.",
        )


@pytest.mark.exercise(MERGE)
def test_a_result_of_its_own_stays_apart() -> None:
    check(
        not share(lambda x: aten.neg.default(x), "x", "neg_default"),
        "neg makes new memory and its schema declares no view: nothing is to "
        "be merged.",
    )


@pytest.mark.exercise(MERGE)
def test_only_the_viewed_argument_is_merged() -> None:
    def program(x: torch.Tensor) -> object:
        shape = aten.neg.default(x)
        return aten.expand_as.default(x, shape)

    check(
        not share(program, "neg_default", "expand_as_default"),
        "expand_as(x, other) is a view of x and reads only the shape of other: "
        "the schema says which parameter is viewed, and the result has "
        "nothing to do with the memory of the other one.",
    )


@pytest.mark.exercise(MERGE)
def test_the_viewed_argument_may_be_given_by_keyword() -> None:
    check(
        share(
            lambda x: aten.contiguous.default(self=aten.t.default(x)),
            "x",
            "contiguous_default",
        ),
        "contiguous(self=…): the viewed argument is given by keyword here. "
        "Parameter.of finds it wherever the call has it.",
    )


@pytest.mark.exercise(MERGE)
def test_sets_grow_together() -> None:
    def program(x: torch.Tensor) -> object:
        first = aten.contiguous.default(aten.t.default(x))
        return aten.contiguous.default(aten.t.default(first))

    check(
        share(program, "x", "contiguous_default_1"),
        "x may be in the memory of the first contiguous, and that in the "
        "memory of the second: all of it may be one.",
    )


def alias(function: Function, node: str, of: str) -> bool:
    """Whether a node of a function is an alias of another; x, y are 2 by 3."""
    inputs = [torch.ones(2, 3), torch.ones(2, 3)]
    storages, nodes = storages_of(function, *inputs)
    found = storages.is_alias(nodes[node], nodes[of])
    check(
        isinstance(found, bool), f"is_alias is to be True or False: {found!r}"
    )
    return found


@pytest.mark.exercise(IS_ALIAS)
def test_a_view_is_an_alias() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> object:
        return [aten.t.default(x), y]

    check(
        alias(program, "t_default", "x"),
        "t(x) is a view of x: it reads nothing of x, and only gives another "
        "view of the same elements.",
    )


@pytest.mark.exercise(IS_ALIAS)
def test_what_computes_is_no_alias() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> object:
        return aten.add.Tensor(x, y)

    check(
        not alias(program, "add_tensor", "x"),
        "add reads the elements of x and makes new memory: no alias.",
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
        "split(x)[0] takes a view out of a list of views. getitem is no "
        "operator with a schema, but is_item knows it.",
    )


@pytest.mark.exercise(IS_ALIAS)
def test_a_write_is_no_alias() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> object:
        return aten.add_.Tensor(x, y)

    check(
        not alias(program, "add__tensor", "x"),
        "add_(x, y) gives x back, in the same storage; but it writes into it, "
        "which is more than giving another view.",
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
        "expand_as(x, y) is a view of x; y is only read for its shape. The "
        "question is about one argument: is that the one that is viewed?",
    )


@pytest.mark.exercise(IS_ALIAS)
def test_an_argument_that_stands_twice_is_used() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> object:
        return [aten.expand_as.default(x, x), y]

    check(
        not alias(program, "expand_as_default", "x"),
        "expand_as(x, x): x is viewed, and it is read as well, for it stands "
        "among the arguments twice.",
    )


@pytest.mark.exercise(IS_ALIAS)
def test_what_is_found_counts_too() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> object:
        return aten.type_as.default(x, y)

    check(
        alias(program, "type_as_default", "x"),
        "type_as(x, y) declares no view and gives x itself back, the type "
        "being right: its result was found to be in the storage of x.",
    )
    check(
        not alias(program, "type_as_default", "y"),
        "type_as(x, y) gives x back: that is not in the storage of y.",
    )


@pytest.mark.exercise(IS_ALIAS)
def test_what_is_no_tensor_is_no_view() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> object:
        return [aten.is_same_size.default(x, y), y]

    check(
        not alias(program, "is_same_size_default", "x"),
        "is_same_size(x, y) gives a bool, which is in no storage at all. No "
        "storages are among any others: ask whether there are some.",
    )


# -- one rule alone ----------------------------------------------------------


class Answer(NamedTuple):
    """What a rule said of one call, and what it noted there."""

    reason: object
    limit: str | None
    scatter: str | None


def answers(
    rule: Rule, function: Function | GraphModule, *inputs: torch.Tensor
) -> dict[str, Answer]:
    """What a rule says of each call; no call is done in place."""
    found: dict[str, Answer] = {}

    def ask(plan: Plan, call: Call) -> str:
        reason = rule(plan, call)
        limit = None if call.limit is None else plan.nodes[call.limit].name
        scatter = None if call.scatter is None else call.scatter.name
        found[call.node.name] = Answer(reason, limit, scatter)
        return "no"

    Plan(_module(function), inputs, {"asked": ask})
    return found


def _module(function: Function | GraphModule) -> GraphModule:
    """A function, traced; a module as it is."""
    if isinstance(function, GraphModule):
        return function
    return symbolic_trace(function)


def reason(
    rule: Rule, function: Function, name: str, *inputs: torch.Tensor
) -> object:
    """What a rule says of one call."""
    return answers(rule, function, *inputs)[name].reason


# -- 1a: the result fits -----------------------------------------------------


@pytest.mark.exercise(RULE_1A)
def test_a_result_that_fits() -> None:
    same(
        reason(
            _rule_1a_metadata,
            lambda x: aten.relu.default(x),
            "relu_default",
            ROW,
        ),
        None,
        "relu(x) has the size, dtype and device of x: nothing speaks against "
        "it, so the answer is None.",
    )


@pytest.mark.exercise(RULE_1A)
@pytest.mark.parametrize("shape", [(3, 3), (1, 3)])
def test_a_result_of_another_size(shape: tuple[int, ...]) -> None:
    check(
        reason(
            _rule_1a_metadata,
            lambda x, y: aten.add.Tensor(x, y),
            "add_tensor",
            ROW,
            torch.ones(shape),
        ),
        f"x has size [3] and x + y has {list(shape)}, by broadcasting: it is "
        "the size that has to be the same, not the number of elements.",
    )


@pytest.mark.exercise(RULE_1A)
def test_a_result_of_another_dtype() -> None:
    check(
        reason(
            _rule_1a_metadata,
            lambda x: aten.gt.Scalar(x, 0),
            "gt_scalar",
            ROW,
        ),
        "x > 0 is of bools and x of floats: the result does not fit into the "
        "memory of x.",
    )


@pytest.mark.exercise(RULE_1A)
def test_a_result_on_another_device() -> None:
    check(
        reason(
            _rule_1a_metadata,
            lambda x, y: aten.add.Tensor(x, y),
            "add_tensor",
            torch.tensor(1.0),
            torch.tensor(2.0, device="meta"),
        ),
        "x is a single number on the CPU and y one on another device, where "
        "x + y is computed: it cannot be written into the memory of x.",
    )


def of_another_base(base: str) -> Rule:
    """Rule 1a for calls whose "a" is a certain node."""

    def ask(plan: Plan, call: Call) -> object:
        call.base = {node.name: node for node in plan.nodes}[base]
        return _rule_1a_metadata(plan, call)

    return ask


@pytest.mark.exercise(RULE_1A)
@pytest.mark.parametrize("base", ["split_tensor", "_to_sparse_default"])
def test_what_has_no_storage_of_its_own(base: str) -> None:
    def program(x: torch.Tensor) -> object:
        parts = aten.split.Tensor(x, 1)
        return [aten.relu.default(x), parts, aten._to_sparse.default(x)]

    sentence = (
        '"a" is a list of tensors, or a sparse tensor, which has no strides: '
        "nothing can be written into it element by element. It must be one "
        "tensor, and tensors_in must find it."
    )
    try:
        answer = reason(of_another_base(base), program, "relu_default", ROW)
    except (AttributeError, RuntimeError, TypeError) as error:
        check(False, sentence, picture=f"yours: {error!r}")
    else:
        check(answer, sentence)


@pytest.mark.exercise(RULE_1A)
def test_elements_that_share_memory() -> None:
    def program(x: torch.Tensor) -> object:
        return aten.add.Tensor(aten.expand.default(x, [3, 3]), 1)

    check(
        reason(_rule_1a_metadata, program, "add_tensor", ROW),
        "expand gives three rows that are one row of memory: what is written "
        "to the one would be written to all.",
    )


@pytest.mark.exercise(RULE_1A)
def test_autograd_needs_old_values() -> None:
    parameter = torch.ones(3, requires_grad=True)
    check(
        reason(
            _rule_1a_metadata,
            lambda x: aten.relu.default(x),
            "relu_default",
            parameter,
        ),
        "x requires a gradient: autograd may need its old value.",
    )
    check(
        reason(
            _rule_1a_metadata,
            lambda x, y: aten.mul.Tensor(x, y),
            "mul_tensor",
            ROW,
            parameter,
        ),
        "x needs no gradient and x * y does, for y does: autograd keeps x, "
        "to compute the gradient of y.",
    )


# -- 1b: inputs --------------------------------------------------------------


@pytest.mark.exercise(RULE_1B)
def test_new_memory_may_be_written() -> None:
    same(
        reason(
            _rule_1b_inputs,
            lambda x: aten.relu.default(aten.neg.default(x)),
            "relu_default",
            ROW,
        ),
        None,
        "neg(x) is in new memory, which is nobody's: memory.owner is None.",
    )


@pytest.mark.exercise(RULE_1B)
def test_an_input_must_not_change() -> None:
    check(
        reason(
            _rule_1b_inputs, lambda x: aten.relu.default(x), "relu_default", ROW
        ),
        "x is an input: whoever passed it wants to find it as it was.",
    )


@pytest.mark.exercise(RULE_1B)
def test_a_view_of_an_input_must_not_change() -> None:
    check(
        reason(
            _rule_1b_inputs,
            lambda x: aten.relu.default(aten.t.default(x)),
            "relu_default",
            SQUARE,
        ),
        "t(x) is no input, but an alias of one: the same memory. Ask the "
        "memory who its owner is, not the node what it is.",
    )


class _Holder(torch.nn.Module):
    """Computes with a tensor that it has."""

    def __init__(self) -> None:
        super().__init__()
        self.held = torch.ones(3)

    def forward(self, x: torch.Tensor) -> Value:
        return aten.add.Tensor(self.held, x)


@pytest.mark.exercise(RULE_1B)
def test_a_tensor_of_the_module_must_not_change() -> None:
    check(
        reason(_rule_1b_inputs, symbolic_trace(_Holder()), "add_tensor", ROW),
        "self.held belongs to the module and is there at the next call, too.",
    )


def increment(x: torch.Tensor) -> object:
    """What functionalization makes of x.add_(1)."""
    return aten.copy_.default(x, aten.add.Tensor(x, 1))


@pytest.mark.exercise(RULE_1B)
def test_an_input_that_is_overwritten_is_free_till_then() -> None:
    found = answers(_rule_1b_inputs, increment, ROW)["add_tensor"]
    same(
        found.reason,
        None,
        "x is overwritten by copy_(x, …) later, as functionalization does it: "
        "until then it is free memory.",
    )
    same(
        found.limit,
        "copy__default",
        "x is free until copy_ overwrites it: call.limit has to be the place "
        "of that copy_, for the next rule.",
    )


@pytest.mark.exercise(RULE_1B)
def test_an_input_that_is_overwritten_in_part_is_not_free() -> None:
    def program(x: torch.Tensor) -> object:
        result = aten.add.Tensor(x, 1)
        row = aten.select.int(x, 0, 0)
        aten.copy_.default(row, aten.select.int(result, 0, 0))
        return None

    check(
        reason(_rule_1b_inputs, program, "add_tensor", SQUARE),
        "copy_ overwrites the first row of x and add would write all of x: "
        "the other rows would be changed for good.",
    )


@pytest.mark.exercise(RULE_1B)
def test_inputs_that_share_memory_are_not_free() -> None:
    memory = torch.ones(3)

    def program(x: torch.Tensor, y: torch.Tensor) -> object:
        return aten.copy_.default(x, aten.add.Tensor(x, 1)), y

    check(
        reason(_rule_1b_inputs, program, "add_tensor", memory, memory),
        "x and y are one memory here, and in another call they may be two: "
        "memory.held says so, and then nobody may write, copy_ or not.",
    )


# -- 1c: other arguments -----------------------------------------------------


@pytest.mark.exercise(RULE_1C)
def test_arguments_in_other_memory() -> None:
    same(
        reason(
            _rule_1c_arguments,
            lambda x: aten.add.Tensor(aten.neg.default(x), x),
            "add_tensor",
            ROW,
        ),
        None,
        "neg(x) and x are in different memories: add may write the one while "
        "it reads the other.",
    )


@pytest.mark.exercise(RULE_1C)
def test_an_argument_that_stands_twice() -> None:
    def program(x: torch.Tensor) -> object:
        once = aten.neg.default(x)
        return aten.add.Tensor(once, once)

    check(
        reason(_rule_1c_arguments, program, "add_tensor", ROW),
        "neg(x) stands among the arguments twice: the second one is in the "
        "memory that is written.",
    )


@pytest.mark.exercise(RULE_1C)
def test_a_view_among_the_arguments() -> None:
    def program(x: torch.Tensor) -> object:
        once = aten.neg.default(x)
        return aten.add.Tensor(once, aten.t.default(once))

    check(
        reason(_rule_1c_arguments, program, "add_tensor", SQUARE),
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
        reason(_rule_1c_arguments, program, "add_tensor", SQUARE),
        "add(once, other=t(once)): an argument given by keyword is read just "
        "as well. arguments_of has them all.",
    )


@pytest.mark.exercise(RULE_1C)
def test_parts_that_are_apart() -> None:
    def program(x: torch.Tensor) -> object:
        once = aten.neg.default(x)
        upper = aten.slice.Tensor(once, 0, 0, 2)
        lower = aten.slice.Tensor(once, 0, 2, 4)
        return aten.add.Tensor(upper, lower)

    same(
        reason(_rule_1c_arguments, program, "add_tensor", torch.ones(4)),
        None,
        "The two halves of one tensor are in one storage and are apart: "
        "writing the one does not change the other (_are_apart).",
    )


# -- 2c: scatter -------------------------------------------------------------


def nothing_left(function: Function, call: str, user: str) -> bool:
    """Whether a user has nothing left to do once a call is in place."""

    def rule(plan: Plan, one: Call) -> object:
        nodes = {node.name: node for node in plan.nodes}
        return _has_nothing_left(plan, one, nodes[user])

    return bool(reason(rule, function, call, SQUARE))


def row_plus_one(x: torch.Tensor) -> object:
    """What functionalization makes of `a = -x; a[0].add_(1)`."""
    whole = aten.neg.default(x)
    row = aten.add.Tensor(aten.select.int(whole, 0, 0), 1)
    return aten.select_scatter.default(whole, row, 0, 0)


@pytest.mark.exercise(NOTHING_LEFT)
def test_a_scatter_to_where_the_view_came_from() -> None:
    check(
        nothing_left(row_plus_one, "add_tensor", "select_scatter_default"),
        "Row 0 was computed in place, and select_scatter puts it to row 0: "
        "it is there already.",
    )


@pytest.mark.exercise(NOTHING_LEFT)
def test_a_scatter_to_another_place() -> None:
    def program(x: torch.Tensor) -> object:
        whole = aten.neg.default(x)
        row = aten.add.Tensor(aten.select.int(whole, 0, 0), 1)
        return aten.select_scatter.default(whole, row, 0, 1)

    check(
        not nothing_left(program, "add_tensor", "select_scatter_default"),
        "What was computed in row 0 is put to row 1, another place: the "
        "scatter has something to do. Compare where the result is with what "
        "the scatter's view (compute_view) would be.",
    )


@pytest.mark.exercise(NOTHING_LEFT)
def test_a_scatter_of_something_else() -> None:
    def program(x: torch.Tensor) -> object:
        whole = aten.neg.default(x)
        row = aten.add.Tensor(aten.select.int(whole, 0, 0), 1)
        other = aten.mul.Tensor(row, 2)
        return aten.select_scatter.default(whole, other, 0, 0)

    check(
        not nothing_left(program, "add_tensor", "select_scatter_default"),
        "The scatter writes row 0, but not with the result of add: it writes "
        "something else.",
    )


@pytest.mark.exercise(NOTHING_LEFT)
def test_a_scatter_of_a_view_of_the_result() -> None:
    def program(x: torch.Tensor) -> object:
        whole = aten.neg.default(x)
        row = aten.add.Tensor(aten.select.int(whole, 0, 0), 1)
        again = aten.squeeze.dim(aten.unsqueeze.default(row, 0), 0)
        return aten.select_scatter.default(whole, again, 0, 0)

    check(
        nothing_left(program, "add_tensor", "select_scatter_default"),
        "The scatter is given a view of the result that has the same "
        "elements in the same place: through_views follows it back.",
    )


@pytest.mark.exercise(NOTHING_LEFT)
def test_another_user_has_its_work() -> None:
    def program(x: torch.Tensor) -> object:
        whole = aten.neg.default(x)
        row = aten.add.Tensor(aten.select.int(whole, 0, 0), 1)
        return [row, aten.mul.Tensor(whole, 2)]

    check(
        not nothing_left(program, "add_tensor", "mul_tensor"),
        "mul is no scatter operator, facts.view says so: it reads the old "
        "value and has its work to do.",
    )


@pytest.mark.exercise(NOTHING_LEFT)
def test_the_output_has_no_schema() -> None:
    def program(x: torch.Tensor) -> object:
        whole = aten.neg.default(x)
        return [whole, aten.add.Tensor(aten.select.int(whole, 0, 0), 1)]

    sentence = (
        "The later use is the output, which is no operator: facts_of answers "
        "None, and what nothing is known of is no scatter."
    )
    try:
        found = nothing_left(program, "add_tensor", "output")
    except AttributeError as error:
        check(False, sentence, picture=f"yours: {error!r}")
    else:
        check(not found, sentence)


# -- 2: last use -------------------------------------------------------------


@pytest.mark.exercise(RULE_2)
def test_a_last_use() -> None:
    def program(x: torch.Tensor) -> object:
        once = aten.neg.default(x)
        before = aten.mul.Tensor(once, 2)
        return [before, aten.relu.default(once)]

    found = answers(_rule_2_later_uses, program, ROW)
    same(
        found["relu_default"].reason,
        None,
        "relu is the last to read neg(x); mul has read it before, and does "
        "not mind.",
    )
    check(
        found["mul_tensor"].reason,
        "mul may not write into neg(x): relu reads it later and wants the old "
        "value.",
    )


@pytest.mark.exercise(RULE_2)
def test_a_view_is_used_later() -> None:
    def program(x: torch.Tensor) -> object:
        once = aten.neg.default(x)
        view = aten.t.default(once)
        return [aten.relu.default(once), aten.mul.Tensor(view, 2)]

    check(
        reason(_rule_2_later_uses, program, "relu_default", SQUARE),
        "Nobody reads neg(x) after relu, but mul reads a view of it, in the "
        "same memory: what counts are the uses of the memory.",
    )


@pytest.mark.exercise(RULE_2)
def test_a_view_that_nobody_uses() -> None:
    def program(x: torch.Tensor) -> object:
        once = aten.neg.default(x)
        result = aten.relu.default(once)
        aten.t.default(once)
        return result

    same(
        reason(_rule_2_later_uses, program, "relu_default", SQUARE),
        None,
        "The view t(neg(x)) comes later and nobody uses it: a view alone "
        "reads nothing (2a).",
    )


@pytest.mark.exercise(RULE_2)
def test_a_scatter_may_vanish() -> None:
    found = answers(_rule_2_later_uses, row_plus_one, SQUARE)["add_tensor"]
    same(
        found.reason,
        None,
        "The one later use of the memory is the scatter that puts the row "
        "back to where it came from: it has nothing left to do (2c).",
    )
    same(
        found.scatter,
        "select_scatter_default",
        "The scatter has nothing left to do: it is to be noted in "
        "call.scatter, so that it will be erased.",
    )


@pytest.mark.exercise(RULE_2)
def test_a_scatter_and_another_use() -> None:
    def program(x: torch.Tensor) -> object:
        whole = aten.neg.default(x)
        row = aten.add.Tensor(aten.select.int(whole, 0, 0), 1)
        put = aten.select_scatter.default(whole, row, 0, 0)
        return [put, aten.mul.Tensor(whole, 2)]

    check(
        reason(_rule_2_later_uses, program, "add_tensor", SQUARE),
        "The scatter would have nothing left to do, but mul reads the old "
        "value as well: exactly one later use may be a scatter.",
    )


def free_until_copied(plan: Plan, call: Call) -> object:
    """Rule 2 for a call whose memory is free until the graph's copy_."""
    for place, node in enumerate(plan.nodes):
        if node.target is aten.copy_.default and place > call.place:
            call.limit = place
    return _rule_2_later_uses(plan, call)


@pytest.mark.exercise(RULE_2)
def test_uses_after_the_copy_see_the_new_value() -> None:
    def program(x: torch.Tensor) -> object:
        aten.copy_.default(x, aten.add.Tensor(x, 1))
        return aten.mul.Tensor(x, 2)

    same(
        reason(free_until_copied, program, "add_tensor", ROW),
        None,
        "mul reads x after copy_ has overwritten it: it wants the new value. "
        "Only uses before call.limit are in the way.",
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
        "mul reads x before copy_ overwrites it: it wants the old value.",
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
        "is returned after that: _after_limit has to be asked.",
    )


def smaller(
    function: Function, *inputs: torch.Tensor
) -> tuple[list[str], bool]:
    """The calls of a function after reinplace, and if it does the same."""
    gm = reinplace(symbolic_trace(function), *inputs)
    ours, theirs = ([one.clone() for one in inputs] for _ in range(2))
    results: Value = (gm(*ours), symbolic_trace(function)(*theirs))
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
            "With all rules written, reinplace rewrites what it may: the "
            "calls that are left.",
        )
        check(agrees, "The rewritten graph computes something else.")
