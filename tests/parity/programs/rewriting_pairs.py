"""Patterns and what they are tried on: equal graphs, code, matches, results.

A row is a program, a pattern and a replacement, all of them traced by both
libraries. Each becomes a parity program of its own.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeAlias, no_type_check

import torch
from torch import nn

from tests.parity.harness import Lib, Made, Seen, error, program, show
from tests.parity.programs._subjects import Root

Traced: TypeAlias = Callable[..., Any] | nn.Module
"""What is to be traced: lambdas, whose parameters have no annotations."""

A, B, C = (torch.tensor([x, -1.0, 2.0]) for x in (0.5, 1.5, -3.0))


def rewriter(lib: Lib) -> Made:
    """The file subgraph_rewriter of a library."""
    return importlib.import_module(f"{lib.__name__}.subgraph_rewriter")


def matcher(lib: Lib) -> Made:
    """The file with SubgraphMatcher of a library."""
    return importlib.import_module(f"{lib.__name__}.passes.utils.matcher_utils")


def paired(found: list[Made]) -> Seen:
    """The anchor and the pairs of each match, in order."""
    return [
        (str(one.anchor), [(str(k), str(v)) for k, v in one.nodes_map.items()])
        for one in found
    ]


def rewrite(
    lib: Lib, target: Traced, pattern: Traced, new: Traced, *inputs: object
) -> Seen:
    """All that can be seen of one call of replace_pattern."""
    gm = lib.symbolic_trace(target)
    found: list[Made] = []
    raised = error(
        lambda: found.extend(rewriter(lib).replace_pattern(gm, pattern, new)),
        chars=30,
    )
    seen = [raised, paired(found), error(gm.graph.lint), *show(gm)]
    return [*seen, gm(*inputs)] if raised == "no error" else seen


def pair(
    name: str, target: Traced, pattern: Traced, new: Traced, *inputs: object
) -> None:
    """Register a row."""

    def run(lib: Lib) -> Seen:
        torch.manual_seed(0)
        return rewrite(lib, target, pattern, new, *inputs)

    run.__name__ = name
    program()(run)


# What is rewritten again and again. Untyped: annotations would be traced.


@no_type_check
def negs(x):
    return -torch.neg(torch.neg(torch.neg(torch.neg(torch.neg(x)))))


@no_type_check
def diamond(x, y):
    a = torch.relu(x)
    b = torch.neg(a)
    c = torch.exp(a)
    return b * c + y


@no_type_check
def mixed(x, y):
    a = torch.relu(x + y)
    b = a * 2
    c = torch.relu(b + y)
    return torch.cat([a, c]), c.clamp(min=0.0, max=1.0)


@no_type_check
def branches(x, y):
    a = torch.relu(x)
    b = torch.neg(y)
    return a + 1, b - 1, torch.relu(y), torch.neg(x)


relu, neg, exp, sin = torch.relu, torch.neg, torch.exp, torch.sin

# One operation.
pair("one_op", diamond, lambda x: relu(x), lambda x: sin(x), A, B)
pair("one_op_many_times", negs, lambda x: neg(x), lambda x: exp(x), A)
pair("same_op_again", negs, lambda x: neg(x), lambda x: neg(x), A)
pair("one_op_by_two", negs, lambda x: neg(x), lambda x: sin(exp(x)), A)
pair("one_op_by_nothing", negs, lambda x: neg(x), lambda x: x, A)
pair("no_match", negs, lambda x: relu(x), lambda x: sin(x), A)
pair("operator", mixed, lambda x, y: x + y, lambda x, y: x - y, A, B)
pair("operands_turned", mixed, lambda x, y: x + y, lambda x, y: y + x, A, B)
pair("operand_dropped", mixed, lambda x, y: x + y, lambda x, y: x, A, B)
pair("operand_twice", mixed, lambda x, y: x + y, lambda x, y: x * x, A, B)
pair(
    "method", lambda x: x.relu().relu(), lambda x: x.relu(), lambda x: neg(x), A
)
pair("getitem", lambda x: x[0] + x[1], lambda x: x[0], lambda x: x[2], A)
pair("getitem_slice", lambda x: x[1:], lambda x: x[1:], lambda x: x[:1], A)
pair(
    "getattr",
    lambda x: x.view(x.shape),
    lambda x: x.shape,
    lambda x: x.size(),
    A,
)

# Chains, and where they overlap.
pair("two_of_five", negs, lambda x: neg(neg(x)), lambda x: sin(x), A)
pair("mixed_operator_chain", negs, lambda x: -neg(x), lambda x: sin(x), A)
pair("two_by_nothing", negs, lambda x: neg(neg(x)), lambda x: x, A)
pair("wraps_itself", negs, lambda x: neg(x), lambda x: relu(neg(x)), A)
pair(
    "back_to_back",
    lambda x: relu(relu(relu(relu(x) + 1) + 1) + 1) + 1,
    lambda x: relu(x) + 1,
    lambda x: sin(x) * x,
    A,
)
pair(
    "back_to_back_by_input",
    lambda x: relu(relu(relu(x) + 1) + 1) * 2,
    lambda x: relu(x) + 1,
    lambda x: x,
    A,
)

# Readers.
pair("outer_readers", diamond, lambda x: relu(x), lambda x: x + 1, A, B)
pair(
    "whole_diamond",
    diamond,
    lambda x: neg(relu(x)) * exp(relu(x)),
    lambda x: x,
    A,
    B,
)


@no_type_check
def shared(x):
    a = relu(x)
    return neg(a) * exp(a)


pair("shared_inside", diamond, shared, lambda x: sin(x), A, B)
pair(
    "read_twice_by_one",
    lambda x: relu(x) + relu(x),
    lambda x: relu(x),
    lambda x: neg(x),
    A,
)


@no_type_check
def doubled(x):
    a = relu(x)
    return a + a


pair("one_node_twice", doubled, lambda x: x + x, lambda x: x * 2, A)
pair("two_inputs_one_node", doubled, lambda x, y: x + y, lambda x, y: x * y, A)
pair("one_input_two_nodes", mixed, lambda x: x + x, lambda x: x * 2, A, B)
pair(
    "result_is_output",
    lambda x: relu(x),
    lambda x: relu(x),
    lambda x: neg(x),
    A,
)
pair(
    "nobody_reads_it",
    lambda x: (torch.relu(x), x + 1)[1],
    lambda x: relu(x),
    lambda x: neg(x),
    A,
)

# Constants.
pair("literal", mixed, lambda x: x * 2, lambda x: x + x, A, B)
pair(
    "literal_for_input",
    mixed,
    lambda x, y: x * y,
    lambda x, y: torch.add(x, y),
    A,
    B,
)
pair(
    "literal_input_used_twice",
    lambda x: x * 2 + 2,
    lambda x, y: x * y + y,
    lambda x, y: x - y,
    A,
)
pair(
    "literal_input_must_agree",
    lambda x: x * 2 + 3,
    lambda x, y: x * y + y,
    lambda x, y: x - y,
    A,
)
pair(
    "kwargs",
    mixed,
    lambda x: x.clamp(min=0.0, max=1.0),
    lambda x: torch.sigmoid(x),
    A,
    B,
)
pair(
    "kwargs_in_another_order",
    mixed,
    lambda x: x.clamp(max=1.0, min=0.0),
    lambda x: torch.sigmoid(x),
    A,
    B,
)
pair(
    "kwargs_missing", mixed, lambda x: x.clamp(min=0.0), lambda x: neg(x), A, B
)
pair(
    "kwarg_as_input",
    mixed,
    lambda x, low: x.clamp(min=low, max=1.0),
    lambda x, low: x.clamp(min=low),
    A,
    B,
)
pair(
    "aten_defaults",
    lambda x: torch.ops.aten.add.Tensor(x, x),
    lambda x: torch.ops.aten.add.Tensor(x, x, alpha=1),
    lambda x: x * 2,
    A,
)
pair(
    "aten_by_keyword",
    lambda x, y: torch.ops.aten.sub.Tensor(self=x, other=y),
    lambda x, y: torch.ops.aten.sub.Tensor(x, y),
    lambda x, y: y - x,
    A,
    B,
)

# Containers.
pair(
    "cat_by_stack",
    lambda x, y: torch.cat([x, y]) + torch.cat([y, x]),
    lambda a, b: torch.cat([a, b]),
    lambda a, b: torch.stack([a, b]).view(-1),
    A,
    B,
)
pair(
    "tuple_for_list",
    lambda x, y: torch.cat((x, y)),
    lambda a, b: torch.cat([a, b]),
    lambda a, b: a * b,
    A,
    B,
)
pair(
    "list_of_other_length",
    lambda x, y: torch.cat([x, y, x]),
    lambda a, b: torch.cat([a, b]),
    lambda a, b: a * b,
    A,
    B,
)
pair(
    "list_for_input",
    lambda x, y: torch.cat([x, y]),
    lambda a: torch.cat(a),
    lambda a: torch.stack(a),
    A,
    B,
)
pair(
    "reshape_sizes",
    lambda x: x.reshape((3, 1)),
    lambda x: x.reshape((3, 1)),
    lambda x: x.reshape((1, 3)),
    A,
)

# Several values.
pair(
    "two_values_one_input",
    branches,
    lambda x: (relu(x), neg(x)),
    lambda x: (sin(x), exp(x)),
    A,
    B,
)
pair(
    "two_values_turned",
    branches,
    lambda x, y: (relu(x), neg(y)),
    lambda x, y: (neg(y), relu(x)),
    A,
    B,
)


@no_type_check
def both_ends(x):
    a = relu(x)
    return a, neg(a)


@no_type_check
def other_ends(x):
    return sin(x), exp(x)


pair("inner_value_returned", diamond, both_ends, other_ends, A, B)
pair(
    "three_values",
    lambda x: (relu(x), neg(x), exp(x)),
    lambda x: (relu(x), neg(x), exp(x)),
    lambda x: (x + 1, x + 2, x + 3),
    A,
)
# Modules and attributes.


class Linears(nn.Module):
    """Two leaves and a parameter."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.fc1, self.fc2 = nn.Linear(3, 3), nn.Linear(3, 3)
        self.scale = nn.Parameter(torch.rand(3))

    @no_type_check
    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x * self.scale)))


@no_type_check
def _by_path(self, x):
    return torch.relu(self.fc1(x))


@no_type_check
def _wider(self, x):
    return self.wide(x) + self.shift


pair(
    "module_by_path",
    Linears(),
    Root(_by_path, fc1=nn.Linear(3, 3)),
    lambda x: torch.tanh(x),
    A,
)
pair(
    "module_brought_along",
    Linears(),
    Root(_by_path, fc1=nn.Linear(3, 3)),
    Root(_wider, wide=nn.Identity(), shift=nn.Parameter(torch.ones(3))),
    A,
)
pair(
    "module_that_is_there",
    Linears(),
    lambda x: torch.relu(x),
    Root(_by_path, fc1=nn.Linear(3, 3)),
    A,
)
pair(
    "parameter",
    Linears(),
    Root(lambda self, x: x * self.p, p=nn.Parameter(torch.zeros(1))),
    lambda x: x + 1,
    A,
)
pair(
    "parameter_is_no_buffer",
    Linears(),
    Root(lambda self, x: x * self.p, p=torch.zeros(1)),
    lambda x: x + 1,
    A,
)
pair(
    "parameter_for_input",
    Linears(),
    lambda x, y: x * y,
    lambda x, y: torch.add(x, y),
    A,
)

# What does not fit.
pair("more_values", mixed, lambda x: relu(x), lambda x: (x, x), A, B)
pair("fewer_values", branches, both_ends, lambda x: x, A, B)
pair(
    "dead_code", mixed, lambda x: (neg(x), relu(x))[1], lambda x: relu(x), A, B
)
