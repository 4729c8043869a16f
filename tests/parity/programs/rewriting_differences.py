"""Where replace_pattern differs on purpose."""

from __future__ import annotations

import operator
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeAlias, no_type_check

import torch

from tests.parity.harness import Lib, Made, Seen, error, names, program
from tests.parity.programs._subjects import Root, module_of
from tests.parity.programs.rewriting_pairs import A, matcher, paired, rewriter

Traced: TypeAlias = Callable[..., Any]
"""A function without annotations, to be traced."""


def kind(act: Callable[[], object]) -> str:
    """The type of the error that a callable raises."""
    return error(act).partition(":")[0]


@program(
    differs="rewrite-unused-input",
    ours=[("relu", [("relu", "relu"), ("x", "x")])],
)
def an_input_that_the_pattern_does_not_use(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: torch.relu(x))
    found: list[Made] = []
    raised = kind(
        lambda: found.extend(
            rewriter(lib).replace_pattern(
                gm, lambda x, y: torch.relu(x), lambda x, y: torch.neg(x)
            )
        )
    )
    return raised if raised != "no error" else paired(found)


@program(differs="match-anchor-absent", ours=(0, "no error"))
def one_of_two_anchors_is_nowhere(lib: Lib) -> Seen:
    sought = lib.symbolic_trace(lambda x: (torch.exp(x), torch.neg(x))).graph
    graph = lib.symbolic_trace(lambda x: torch.exp(x)).graph
    found: list[Made] = []
    make = matcher(lib).SubgraphMatcher
    raised = kind(lambda: found.extend(make(sought).match(graph)))
    return len(found), raised


@program(differs="pattern-is-input", ours="ValueError")
def a_pattern_that_is_an_input(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: torch.relu(x))
    return kind(
        lambda: rewriter(lib).replace_pattern(gm, lambda x: x, lambda x: x + 1)
    )


@program(
    differs="rewrite-all-or-nothing",
    ours=("ValueError", ["x", "relu", "relu_1", "output"]),
)
def a_callback_that_raises_for_the_second_match(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: torch.relu(torch.relu(x)))
    made: list[Made] = []

    def make(match: Made, graph: Made, pattern: Made) -> Made:
        if made:
            raise ValueError("enough")
        made.append(lib.symbolic_trace(lambda x: torch.neg(x)).graph)
        return made[0]

    raised = kind(
        lambda: rewriter(lib).replace_pattern_with_filters(
            gm, lambda x: torch.relu(x), replacement_callback=make
        )
    )
    return raised, names(gm.graph.nodes)


@program(
    differs="rewrite-missing-target",
    ours=("RuntimeError", ["x", "relu", "output"]),
)
def a_replacement_that_names_what_nobody_has(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: torch.relu(x))
    new = lib.Graph()
    x = new.placeholder("x")
    new.output(new.call_module("nowhere", (x,)))
    raised = kind(
        lambda: rewriter(lib).replace_pattern_with_filters(
            gm, lambda x: torch.relu(x), new
        )
    )
    return raised, names(gm.graph.nodes)


@program(differs="rewrite-attributes", ours=("no error", True))
def a_replacement_with_a_parameter_further_down(lib: Lib) -> Seen:
    inner = torch.nn.Module()
    inner.scale = torch.nn.Parameter(torch.ones(3))
    gm = lib.symbolic_trace(lambda x: torch.neg(x))
    new = lib.symbolic_trace(Root(lambda s, x: x * s.inner.scale, inner=inner))
    raised = kind(
        lambda: rewriter(lib).replace_pattern(gm, lambda x: torch.neg(x), new)
    )
    return raised, hasattr(gm, "inner") and hasattr(gm.inner, "scale")


@program(differs="rewrite-by-constant", ours=("no error", "return 2"))
def a_constant_in_place_of_a_value(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: x + 2)
    raised = kind(
        lambda: rewriter(lib).replace_pattern(
            gm, lambda x, y: x + y, lambda x, y: y
        )
    )
    return raised, gm.code.strip().splitlines()[-1].strip()


@program(differs="rewrite-behind-inputs", ours="no error")
def a_reader_that_comes_before_an_input(lib: Lib) -> Seen:
    @no_type_check
    def target(x, y):
        early = torch.exp(torch.relu(x))
        late = torch.sin(y)
        return early + torch.neg(late)

    gm = lib.symbolic_trace(target)
    rewriter(lib).replace_pattern(
        gm,
        lambda x, y: (torch.relu(x), torch.neg(y)),
        lambda x, y: (x + y, y),
    )
    return kind(gm.graph.lint)


@program(differs="match-deep-pattern", ours=(1, "no error"))
def a_pattern_of_two_thousand_nodes(lib: Lib) -> Seen:
    graph = lib.Graph()
    node = graph.placeholder("x")
    for _ in range(2_000):
        node = graph.call_function(operator.neg, (node,))
    graph.output(graph.call_function(torch.relu, (node,)))
    found: list[Made] = []
    make = matcher(lib).SubgraphMatcher
    raised = kind(lambda: found.extend(make(graph).match(graph)))
    return len(found), raised


@program(differs="rewrite-ignored-literals", ours=(0, 0, 1))
def only_constants_are_ignored(lib: Lib) -> Seen:
    def found(target: Traced, pattern: Traced) -> int:
        make = matcher(lib).SubgraphMatcher
        graphs = [lib.symbolic_trace(one).graph for one in (pattern, target)]
        return len(make(graphs[0], ignore_literals=True).match(graphs[1]))

    return (
        found(lambda x: x * 2, lambda a: a * a),
        found(lambda x, y: x + y, lambda a: a + 1),
        found(lambda x: x + 2, lambda a: a + 1),
    )


@program(differs="rewrite-own-constants", ours=[9.0, 7.0, 9.0])
def constants_of_a_traced_replacement(lib: Lib) -> Seen:
    old, new = torch.ones(3), torch.full((3,), 7.0)
    gm = lib.symbolic_trace(lambda x: torch.relu(x) + old)
    rewriter(lib).replace_pattern(
        gm, lambda x: torch.relu(x), lambda x: x.sign() + new
    )
    return [float(x) for x in gm(A + torch.tensor([0.0, -1.0, 0.0]))]


@program(differs="rewrite-into-modules", ours=[1, 1.0])
def a_module_beside_the_steps_of_another(lib: Lib) -> Seen:
    leaf = {"is_leaf_module": lambda *_: True}
    tracer = type("LeafTracer", (lib.Tracer,), leaf)

    @no_type_check
    def whole(self, x):
        return self.steps(x) + torch.relu(x)

    @no_type_check
    def second(self, x):
        return self.steps[1](x)

    identity, dropped = torch.nn.Identity, torch.nn.Threshold(9.0, 0.0)
    model = Root(whole, steps=torch.nn.Sequential(identity()))
    new = Root(second, steps=torch.nn.Sequential(identity(), dropped))
    gm, replacement = (
        lib.GraphModule(root, tracer().trace(root)) for root in (model, new)
    )
    rewriter(lib).replace_pattern(gm, lambda x: torch.relu(x), replacement)
    steps: Any = model.steps
    return [len(steps), float(gm(torch.tensor(1.0)))]


@program(
    differs="recompile-unchanged",
    ours=[(0, True, -1.0), (0, False, 1.0), True],
)
def nothing_is_found_before_and_after_an_edit(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: torch.neg(x))
    seen = []
    for target in (torch.neg, torch.abs):
        for node in gm.graph.find_nodes(op="call_function", target=torch.neg):
            node.target = target
        before = type(gm).forward
        found = rewriter(lib).replace_pattern(
            gm, lambda x: torch.exp(x), lambda x: torch.neg(x)
        )
        same = type(gm).forward is before
        seen.append((len(found), same, gm(torch.ones(())).item()))
    before = type(gm).forward
    gm.recompile()
    return [*seen, type(gm).forward is before]


@program(differs="rewrite-dicts", ours=(0.0, "RuntimeError"))
def dicts_that_are_returned(lib: Lib) -> Seen:
    def pattern(a: Made) -> Made:
        return {"s": torch.sigmoid(a), "r": torch.relu(a)}

    def swapped(a: Made) -> Made:
        return dict(reversed(pattern(a).items()))

    gm = lib.symbolic_trace(lambda x: torch.relu(x) - torch.sigmoid(x))
    act = rewriter(lib).replace_pattern
    refused = kind(lambda: act(gm, pattern, swapped))
    if refused == "no error":
        return kind(lambda: gm(A)), refused
    before = gm(A)
    act(gm, pattern, pattern)
    return float((gm(A) - before).abs().sum()), refused


LEAF = """
@lib.wrap
def scaled(x, by=2.0):
    return x * by

def traced(x):
    return scaled(x) + scaled(x, by=3.0)

def two(x):
    return scaled(x, 2.0)
"""


@program(differs="pattern-is-a-leaf", ours=(2, 1))
def a_leaf_function_as_pattern_and_as_replacement(lib: Lib) -> Seen:
    with module_of(LEAF, lib=lib) as user:
        gm = lib.symbolic_trace(user.traced)
        replace = rewriter(lib).replace_pattern
        found = replace(gm, user.scaled, lambda x, by: torch.div(x, by))
        gm = lib.symbolic_trace(lambda x, y: torch.sub(x, y))
        replace(gm, lambda x, y: torch.sub(x, y), user.scaled)
        left = [n for n in gm.graph.nodes if n.target is user.scaled]
        return len(found), len(left)


@program(differs="match-leaf-arguments", ours=1)
def a_leaf_function_that_is_called_in_another_way(lib: Lib) -> Seen:
    with module_of(LEAF, lib=lib) as user:
        gm = lib.symbolic_trace(user.traced)
        sought = lib.symbolic_trace(user.two).graph
        return len(matcher(lib).SubgraphMatcher(sought).match(gm.graph))


@program(differs="rewrite-notes", ours=[(2, 3), None, None, None])
def notes_on_values_behind_a_rewrite(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: torch.neg(torch.relu(x)))
    path = f"{lib.__name__}.passes.shape_prop"
    shapes = import_module(path).ShapeProp
    shapes(gm).propagate(torch.ones(2, 3))
    new = lib.symbolic_trace(lambda x: torch.sum(x, 0))
    shapes(new).propagate(torch.ones(9, 9))
    rewriter(lib).replace_pattern(gm, lambda x: torch.relu(x), new)
    noted = [node.meta.get("tensor_meta") for node in gm.graph.nodes]
    return [None if one is None else tuple(one.shape) for one in noted]


def options(lib: Lib, name: str) -> dict[str, Made]:
    """An option that fx has."""
    return {name: True} if lib.__name__ == "fx" else {}


@program(differs="rewrite-lost-writes", ours=(0, True, 1, True))
def a_write_that_is_lost(lib: Lib) -> Seen:
    seen: list[object] = []
    for returns_write in (False, True):

        @no_type_check
        def target(x):
            y = torch.relu(x)
            z = y.mul_(2)
            return z if returns_write else y  # noqa: B023

        gm = lib.symbolic_trace(target)
        found = rewriter(lib).replace_pattern(
            gm,
            lambda a: a.mul_(2),
            lambda a: a * 2,
            **options(lib, "respect_mutations"),
        )
        seen += [len(found), torch.equal(gm(torch.ones(2)), torch.ones(2) * 2)]
    return tuple(seen)


@program(differs="rewrite-by-class", ours=(2, True))
def a_module_that_is_matched_is_called(lib: Lib) -> Seen:
    a, b, x = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2), torch.ones(2)
    net = torch.nn.Sequential(a, torch.nn.Sequential(b))
    gm = lib.symbolic_trace(net)
    pattern = Root(lambda s, x: s.one(x), one=torch.nn.Linear(1, 1))
    new = Root(lambda s, x: -s.one(x), one=torch.nn.Linear(1, 1))
    found = rewriter(lib).replace_pattern(
        gm, pattern, new, **options(lib, "modules_by_class")
    )
    return len(found), torch.equal(gm(x), -b(-a(x)))
