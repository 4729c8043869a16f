"""Checking a graph: what lint finds, and what creation looks up."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import torch
from torch import nn

from tests.parity.harness import Lib, Made, Seen, error, names, program
from tests.parity.programs.use_def import inputs

Build: TypeAlias = Callable[[Made, Made], object]
"""Completes a graph of one placeholder, given both."""


class Tree(nn.Module):
    """A module with a submodule, a parameter, a buffer and a number."""

    weight: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.block = nn.Sequential(nn.ReLU(), nn.Linear(2, 2))
        self.param = nn.Parameter(torch.zeros(1))
        self.register_buffer("weight", torch.zeros(1))
        self.number = 3


def owned(lib: Lib, op: str, target: object) -> str:
    """What lint says of a node `op[target]` in a graph that Tree owns."""
    g = lib.Graph(owning_module=Tree())
    x = g.placeholder("x")
    g.output(g.create_node(op, target, (x,) if op != "get_attr" else ()))
    return error(g.lint, chars=90)


def two_outputs(g: Made, x: Made) -> None:
    """Return twice."""
    g.output(x)
    g.output(x)


def node_behind_the_output(g: Made, x: Made) -> None:
    """Return, then call."""
    g.output(x)
    g.call_function(torch.relu, (x,))


def placeholders(*given: tuple[object, ...]) -> Build:
    """Have these (name, default) parameters behind x."""

    def build(g: Made, x: Made) -> None:
        for one in given:
            g.placeholder(one[0], None, *one[1:])
        g.output(x)

    return build


def users_lost(g: Made, x: Made) -> None:
    """Empty the users of x by hand."""
    g.output(g.call_function(torch.relu, (x,)))
    x.users.clear()


def user_that_is_none(g: Made, x: Made) -> None:
    """Write a user into the users of x by hand."""
    out = g.output(g.call_function(torch.relu, (x,)))
    x.users[out] = None


def str_as_function(g: Made, x: Made) -> None:
    """Give a call_function the target of a call_method."""
    n = g.call_function(torch.relu, (x,))
    g.output(n)
    n.target = "relu"


def name_that_is_none(g: Made, x: Made) -> None:
    """Rename x to something that is no identifier."""
    g.output(x)
    x.name = "not a name"


FAULTS: dict[str, Build] = {
    "no output": lambda g, x: None,
    "two outputs": two_outputs,
    "a node behind the output": node_behind_the_output,
    "one parameter twice": placeholders(("x",)),
    "no default behind a default": placeholders(("y", 1), ("z",)),
    "two variadic parameters": placeholders(("*a",), ("*b",)),
    "users lost": users_lost,
    "a user that is none": user_that_is_none,
    "a str as function": str_as_function,
    "a name that is none": name_that_is_none,
}
"""Graphs that torch.fx's lint finds nothing wrong with."""


@program(claims=("lint-signature",))
def lint_takes_no_argument_and_is_silent(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    g.output(g.call_function(torch.relu, (x,)))
    parameters = list(inspect.signature(lib.Graph.lint).parameters)
    extra = error(lambda: g.lint(nn.Module())).partition(":")[0]
    return parameters, g.lint(), extra


@program(claims=("lint-opcode",))
def lint_finds_unknown_opcodes(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    n = g.call_function(torch.relu, (x,))
    g.output(n)
    n.op = "bogus"
    seen = [error(g.lint)]
    n.op = "root"
    seen.append(error(g.lint))
    n.op = "call_function"
    return [*seen, error(g.lint)]


@program(claims=("lint-ownership",))
def lint_finds_nodes_of_another_graph(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    n = g.call_function(torch.relu, (x,))
    g.output(n)
    n.graph = lib.Graph()
    seen = [error(g.lint, chars=45)]
    n.graph = g
    return [*seen, error(g.lint)]


@program(claims=("lint-ownership",))
def lint_finds_inputs_of_another_graph(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    loose = lib.Node(g, "loose", "call_function", torch.abs, (x,), {})
    g.output(g.call_function(torch.relu, (loose,)))
    loose.graph = lib.Graph()
    return error(g.lint, chars=70)


@program(claims=("lint-ownership", "lint-topological"))
def lint_finds_inputs_that_are_in_no_list(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    loose = lib.Node(g, "loose", "call_function", torch.abs, (x,), {})
    n = g.call_function(torch.relu, (loose,))
    g.output(n)
    found = error(g.lint, chars=70)
    n.args = (x,)
    loose.args = ()
    return found, error(g.lint)


@program(claims=("lint-ownership", "node-append"))
def a_node_that_nobody_counted_does_not_pass(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    g.output(x)
    loose = lib.Node(g, "loose", "call_function", torch.abs, (x,), {})

    def slip_in() -> None:
        x.append(loose)
        g.lint()

    return error(slip_in) != "no error"


@program(claims=("lint-unique-names",))
def lint_finds_two_nodes_of_one_name(lib: Lib) -> Seen:
    g, x, y = inputs(lib, "xy")
    g.output((x, y))
    y.name = "x"
    seen = [error(g.lint)]
    y.name = "z"
    return [*seen, error(g.lint), str(g)]


@program(claims=("lint-topological",))
def lint_finds_a_use_before_the_definition(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    a = g.call_function(torch.relu, (x,))
    b = g.call_function(torch.abs, (a,))
    g.output(b)
    b.append(a)
    wrong = (error(g.lint, chars=90), names(g.nodes))
    b.prepend(a)
    return wrong, error(g.lint)


@program(claims=("lint-topological",))
def lint_finds_uses_inside_containers(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    a = g.call_function(torch.relu, (x,))
    b = g.call_function(print, ([(a,)],), {"k": slice(a)})
    g.output(b)
    a.prepend(b)
    return error(g.lint, chars=90)


@program(claims=("lint-signature", "lint-targets"))
def lint_resolves_targets_in_the_owner(lib: Lib) -> Seen:
    return {
        f"{op} {target}": owned(lib, op, target)
        for op, target in (
            ("call_module", "linear"),
            ("call_module", "block.0"),
            ("call_module", "block"),
            ("call_module", "missing"),
            ("call_module", "block.7"),
            ("call_module", "block.missing.deep"),
            ("call_module", "param"),
            ("call_module", "linear.weight"),
            ("call_module", "number"),
            ("get_attr", "param"),
            ("get_attr", "weight"),
            ("get_attr", "block.1.weight"),
            ("get_attr", "number"),
            ("get_attr", "linear"),
            ("get_attr", "missing"),
            ("get_attr", "block.missing"),
            ("get_attr", "linear.weight.missing"),
            ("call_method", "missing"),
        )
    }


@program(claims=("lint-signature",))
def lint_needs_an_owner_for_that(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    g.output((g.call_module("missing", (x,)), g.get_attr("missing")))
    free = error(g.lint)
    g.owning_module = Tree()
    return free, error(g.lint)


@program(claims=("lint-signature", "target-type-constraint"))
def lint_checks_the_type_of_targets(lib: Lib) -> Seen:
    seen = []
    for op, good, bad in (
        ("call_function", torch.relu, "relu"),
        ("call_method", "relu", torch.relu),
    ):
        g = lib.Graph(Tree())
        n = g.create_node(op, good, (g.placeholder("x"),))
        g.output(n)
        n.target = bad
        seen.append(error(g.lint, chars=24))
    return seen


@program(claims=("opcode-get-attr", "opcode-call-module"))
def creation_looks_targets_up_in_the_owner(lib: Lib) -> Seen:
    g = lib.Graph(Tree())
    seen = []
    targets = ("param", "weight", "linear", "block.1.weight", "number", "no.no")
    for target in targets:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            g.get_attr(target)
        said = any("Attempted to insert a get_attr" in str(w) for w in caught)
        seen.append((target, said))
    modules = ("linear", "block.0", "missing", "param", "block.9")
    raised = [
        error(partial(g.call_module, m)).partition(":")[0] for m in modules
    ]
    return seen, raised, len(g.nodes)


@program(
    claims=("lint-signature",),
    differs="lint-is-a-verifier",
    ours={
        "no output": "RuntimeError",
        "two outputs": "RuntimeError",
        "a node behind the output": "RuntimeError",
        "one parameter twice": "RuntimeError",
        "no default behind a default": "RuntimeError",
        "two variadic parameters": "RuntimeError",
        "users lost": "RuntimeError",
        "a user that is none": "RuntimeError",
        "a str as function": "ValueError",
        "a name that is none": "RuntimeError",
    },
)
def lint_finds_what_would_be_a_syntax_error(lib: Lib) -> Seen:
    seen = {}
    for name, build in FAULTS.items():
        g, x = inputs(lib, "x")
        build(g, x)
        seen[name] = error(g.lint).partition(":")[0]
    return seen
