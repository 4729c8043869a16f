"""Removing what has no use and no effect."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch.nn import functional

from tests.parity.harness import Lib, Made, Seen, error, names, program
from tests.parity.programs.graph_lint import Tree
from tests.parity.programs.use_def import inputs

Build: TypeAlias = Callable[[Made, Made], object]
"""Adds a call that reads the node given second to the graph given first."""


def survivors(lib: Lib, *calls: Build) -> Seen:
    """For each call that nobody reads, what is left after elimination."""
    seen = []
    for call in calls:
        g, x = inputs(lib, "x")
        call(g, x)
        g.output(x)
        changed = g.eliminate_dead_code()
        seen.append((changed, names(g.nodes)[1:-1]))
    return seen


@program()
def dead_code_is_removed_with_what_it_alone_needs(lib: Lib) -> Seen:
    g, x, y = inputs(lib, "xy")
    used = g.call_function(torch.relu, (x,))
    dead = g.call_function(torch.abs, (y,))
    g.call_function(operator.add, (dead, used))
    g.call_method("view", (dead,))
    g.get_attr("weight")
    g.output(used)
    first = g.eliminate_dead_code()
    return first, g.eliminate_dead_code(), str(g), error(g.lint)


@program()
def inputs_and_output_are_never_dead(lib: Lib) -> Seen:
    g, _x, _y = inputs(lib, "xy")
    g.output(None)
    return g.eliminate_dead_code(), names(g.nodes)


@program()
def a_callback_says_what_must_stay(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    for op in (torch.relu, torch.abs, torch._assert):
        g.call_function(op, (x,))
    g.output(x)
    asked: list[str] = []

    def stays(node: Made) -> bool:
        if not node.users:
            asked.append(node.name)
        return node.op != "call_function" or node.target is torch.abs

    changed = g.eliminate_dead_code(is_impure_node=stays)
    again = g.eliminate_dead_code(lambda node: node.op == "placeholder")
    return changed, sorted(asked), again, names(g.nodes)


@program(claims=("lint-opcode", "lint-unique-names"))
def dead_code_is_removed_only_if_lint_is_content(lib: Lib) -> Seen:
    seen = []
    for field, value in (("op", "bogus"), ("name", "x")):
        g, x = inputs(lib, "x")
        n = g.call_function(torch.relu, (x,))
        g.output(x)
        setattr(n, field, value)
        seen.append((error(g.eliminate_dead_code), len(g.nodes)))
    return seen


@program(newest=True)
def switches_of_inference_mode_are_kept(lib: Lib) -> Seen:
    modes = torch.autograd.grad_mode
    enter, leave = modes._enter_inference_mode, modes._exit_inference_mode
    return survivors(
        lib,
        lambda g, x: g.call_function(enter, (True,)),
        lambda g, x: g.call_function(leave, (x,)),
    )


@program(
    differs="effects-known",
    ours=[
        (False, ["relu_"]),
        (False, ["relu_"]),
        (False, ["relu_"]),
        (False, ["relu"]),
        (False, ["mul_"]),
        (False, ["requires_grad_"]),
        (False, ["iadd"]),
        (False, ["add"]),
        (False, ["view", "zero_"]),
        (False, ["setitem"]),
        (False, ["append"]),
    ],
)
def writes_through_python_functions_are_kept(lib: Lib) -> Seen:
    return survivors(
        lib,
        lambda g, x: g.call_function(torch.relu_, (x,)),
        lambda g, x: g.call_function(functional.relu_, (x,)),
        lambda g, x: g.call_method("relu_", (x,)),
        lambda g, x: g.call_function(functional.relu, (x,), {"inplace": True}),
        lambda g, x: g.call_method("mul_", (x, 2)),
        lambda g, x: g.call_method("requires_grad_", (x,)),
        lambda g, x: g.call_function(operator.iadd, (x, 1)),
        lambda g, x: g.call_function(torch.add, (x, 1), {"out": x}),
        lambda g, x: g.call_method("zero_", (g.call_method("view", (x, -1)),)),
        lambda g, x: g.call_method("__setitem__", (x, 0, 1)),
        lambda g, x: g.call_method("append", (x, 1)),
    )


@program(
    differs="dce-unseen-writes",
    ours=[(True, []), (True, []), (False, ["sigmoid", "view", "relu_"])],
)
def writes_that_nobody_can_see(lib: Lib) -> Seen:
    aten = torch.ops.aten

    def relu_of(g: Made, made: Made) -> None:
        g.call_function(aten.relu_.default, (made,))

    def kept_elsewhere(g: Made, x: Made) -> None:
        made = g.call_function(torch.sigmoid, (x,))
        view = g.call_function(aten.view.default, (made, [-1]))
        relu_of(g, view)
        g.call_function(print, (made,))

    seen = survivors(
        lib,
        lambda g, x: relu_of(g, g.call_function(torch.sigmoid, (x,))),
        lambda g, x: relu_of(
            g,
            g.call_function(
                aten.view.default, (g.call_function(torch.sigmoid, (x,)), [-1])
            ),
        ),
        kept_elsewhere,
    )
    return [
        (
            changed,
            [
                name.removesuffix("_default")
                for name in left
                if "print" not in name
            ],
        )
        for changed, left in seen  # type: ignore[attr-defined]
    ]


@program(
    differs="dce-returns-nothing",
    ours=[(False, ["_backward_default"])],
)
def operators_that_return_nothing_are_kept(lib: Lib) -> Seen:
    backward = torch.ops.aten._backward.default
    return survivors(lib, lambda g, x: g.call_function(backward, (x, [])))


@program(
    differs="dce-bare-graph",
    ours=(True, "no error", ["x", "output"]),
)
def dead_module_calls_of_a_graph_without_owner(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    g.call_module("layer", (x,))
    g.output(x)
    answers: list[bool] = []
    raised = error(lambda: answers.append(g.eliminate_dead_code()))
    return bool(answers), raised.partition(":")[0], names(g.nodes)


@program(
    differs="dce-unknown",
    ours=("no error", ["x", "layer", "inputs", "output"]),
)
def unknown_calls_are_kept_on_request(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    g.call_module("layer", (x,))
    g.call_function(inputs, (x,))
    g.call_function(torch.relu, (x,))
    g.output(x)
    raised = error(lambda: g.eliminate_dead_code(unknown="keep"))
    return raised.partition(":")[0], names(g.nodes)


@program()
def modules_are_dropped_unless_they_say_otherwise(lib: Lib) -> Seen:
    owner = Tree()
    owner.block[1]._is_impure = True  # type: ignore[assignment]
    g = lib.Graph(owner)
    x = g.placeholder("x")
    for target in ("linear", "block.0", "block.1"):
        g.call_module(target, (x,))
    g.output(x)
    return g.eliminate_dead_code(), names(g.nodes)


@program()
def a_function_can_be_declared_to_have_an_effect(lib: Lib) -> Seen:
    def speak(value: object) -> None:
        print(value)

    def build(g: Made, x: Made) -> None:
        g.call_function(speak, (x,))

    before = survivors(lib, build)
    declared = lib.has_side_effect(speak) is speak
    return before, declared, survivors(lib, build)


@program(
    differs="dce-rule",
    ours=[["x", "add_", "output"], ["x", "output"]],
)
def a_write_that_the_caller_sees(lib: Lib) -> Seen:
    """It goes by torch.fx's rule, which fx has for a block."""
    seen = []
    for rule in ("sound", "torch"):
        g = lib.Graph()
        x = g.placeholder("x")
        g.call_method("add_", (x, 1))
        g.output(x)
        block = contextlib.nullcontext()
        if hasattr(lib, "effects"):
            block = lib.effects.by_rule(rule)
        with block:
            g.eliminate_dead_code()
        seen.append(names(g.nodes))
    return seen
