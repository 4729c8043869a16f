"""replace_pattern step by step, as the documents tell it."""

from __future__ import annotations

from typing import no_type_check

import torch
from torch import nn

from tests.parity.harness import Lib, Made, Seen, error, names, program, show
from tests.parity.programs._subjects import Overview, Root
from tests.parity.programs.rewriting_pairs import (
    A,
    B,
    matcher,
    paired,
    rewrite,
    rewriter,
)


def matches(lib: Lib, target: object, pattern: object, **flags: bool) -> Seen:
    """What SubgraphMatcher finds: pairs, inputs and returned nodes."""
    sought = lib.symbolic_trace(pattern).graph
    graph = lib.symbolic_trace(target).graph
    found = matcher(lib).SubgraphMatcher(sought, **flags).match(graph)
    return [
        (
            [(str(k), str(v)) for k, v in one.nodes_map.items()],
            [str(node) for node in one.anchors],
            [str(node) for node in one.placeholder_nodes],
            [str(node) for node in one.returning_nodes],
        )
        for one in found
    ]


@program(claims=("replace-pattern-api", "rewrite-recompiles"))
def replace_pattern_changes_the_module_in_place(lib: Lib) -> Seen:
    replace = rewriter(lib).replace_pattern
    gm = lib.symbolic_trace(lambda x: torch.relu(x))
    before = gm.code
    found = replace(gm, lambda x: torch.relu(x), lambda x: torch.neg(x))
    return (
        lib.replace_pattern is replace,
        lib.subgraph_rewriter.replace_pattern is replace,
        [type(one).__name__ for one in found],
        found[0]._fields,
        before != gm.code,
        gm(A),
        replace(gm, lambda x: torch.relu(x), lambda x: x),
    )


@program(claims=("replace-pattern-add-mul-example",))
def the_sample_of_the_documents(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(Overview())
    found = rewriter(lib).replace_pattern(
        gm, lambda x, y: x + y, lambda x, y: x * y
    )
    x = torch.ones(3, 4, requires_grad=True)
    gm(x).sum().backward()
    return paired(found), show(gm, torch.ones(3, 4)), x.grad


@program(claims=("replace-pattern-neg-cat-example",))
def cats_by_stacks(lib: Lib) -> Seen:
    @no_type_check
    def target(w1, w2):
        m1 = torch.cat([torch.neg(w1), w2]).sum()
        m2 = torch.cat([torch.neg(w2), w1]).sum()
        return torch.max(m1) + torch.max(m2)

    return rewrite(
        lib,
        target,
        lambda a1, a2: torch.cat([torch.neg(a1), a2]).sum(),
        lambda w1, w2: torch.stack([w1, w2]),
        A,
        B,
    )


@program(claims=("rewrite-three-graphs",))
def pattern_and_replacement_are_traced(lib: Lib) -> Seen:
    @no_type_check
    def static(x):
        for _ in range(2):
            x = torch.neg(x)
        return x

    @no_type_check
    def dynamic(x):
        return torch.neg(x) if x.sum() > 0 else x

    seen = rewrite(lib, lambda x: -torch.neg(torch.neg(x)), static, static, A)
    gm = lib.symbolic_trace(static)
    replace = rewriter(lib).replace_pattern
    return (
        seen,
        error(lambda: replace(gm, dynamic, static), chars=40),
        error(lambda: replace(gm, static, dynamic), chars=40),
        str(gm.graph),
    )


@program(claims=("match-from-pattern-output",))
def a_pattern_is_found_wherever_its_last_operation_is(lib: Lib) -> Seen:
    @no_type_check
    def target(x):
        a = torch.relu(torch.neg(x))
        b = torch.relu(torch.neg(a)) + 1
        return torch.relu(torch.neg(b)), b

    found = matches(lib, target, lambda x: torch.relu(torch.neg(x)))
    return found, rewrite(
        lib,
        target,
        lambda x: torch.relu(torch.neg(x)),
        lambda x: torch.exp(x),
        A,
    )


@program(claims=("match-op-and-target",))
def op_and_target_must_be_equal(lib: Lib) -> Seen:
    @no_type_check
    def target(x):
        return torch.relu(x), x.relu(), torch.add(x, x), x + 1

    return [
        matches(lib, target, pattern)
        for pattern in (
            lambda x: torch.relu(x),
            lambda x: x.relu(),
            lambda x, y: x + y,
            lambda x: torch.add(x, x),
            lambda x: torch.nn.functional.relu(x),
        )
    ]


@program(claims=("match-placeholder-wildcard",))
def a_placeholder_matches_anything(lib: Lib) -> Seen:
    weight = nn.Parameter(torch.ones(3))
    root = Root(lambda self, x: torch.relu(self.w) + x, w=weight)
    return (
        matches(
            lib, lambda x: torch.relu(torch.exp(x)), lambda q: torch.relu(q)
        ),
        matches(lib, root, lambda q: torch.relu(q)),
        matches(lib, lambda x: x + 2, lambda x, y: x + y),
        matches(lib, lambda x: x + x, lambda x, y: x + y),
        matches(lib, lambda x, y: x + y, lambda x: x + x),
    )


@program(claims=("match-output-node",))
def several_values_are_matched(lib: Lib) -> Seen:
    @no_type_check
    def target(x, y):
        return torch.relu(x) + torch.neg(y), y * 2

    @no_type_check
    def pattern(x, y):
        return torch.relu(x), torch.neg(y)

    replace = rewriter(lib).replace_pattern
    gm = lib.symbolic_trace(target)
    too_few = error(lambda: replace(gm, pattern, lambda x, y: x), chars=38)
    return (
        matches(lib, target, pattern),
        too_few,
        rewrite(lib, target, pattern, lambda x, y: (y, x), A, B),
    )


@program()
def the_output_can_be_part_of_the_pattern(lib: Lib) -> Seen:
    @no_type_check
    def target(x):
        return torch.relu(torch.relu(x))

    return (
        matches(lib, target, lambda x: torch.relu(x), match_output=True),
        matches(lib, target, target, match_output=True, match_placeholder=True),
        matches(lib, target, lambda x: torch.relu(x), match_placeholder=True),
        matches(
            lib,
            lambda x: (torch.relu(x), x),
            lambda x: torch.relu(x),
            match_output=True,
        ),
    )


@program(claims=("match-inputs-pairwise",))
def arguments_are_compared_in_order(lib: Lib) -> Seen:
    @no_type_check
    def pattern(x, y):
        return torch.add(torch.neg(x), y)

    return (
        matches(lib, lambda x, y: torch.add(torch.neg(x), y), pattern),
        matches(lib, lambda x, y: torch.add(y, torch.neg(x)), pattern),
        matches(lib, lambda x: x + 2, lambda x: x + 1),
        matches(lib, lambda x: x + 1, lambda x: x + 1),
        matches(lib, lambda x: x + 2, lambda x: x + 1, ignore_literals=True),
        matches(lib, lambda x: x + 1.0, lambda x: x + 1),
        matches(lib, lambda x: x.sum(dim=0), lambda x: x.sum(0)),
    )


@program()
def inputs_alone_match_every_pair_of_values(lib: Lib) -> Seen:
    return matches(
        lib, lambda x, y: torch.relu(x) + y, lambda x, y: (x, y)
    ), matches(
        lib,
        lambda x, y: torch.add(x, 2) + torch.add(torch.relu(x), y),
        lambda x, y: torch.add(x, y),
        match_placeholder=True,
    )


@program()
def inputs_and_operations_match_every_pair(lib: Lib) -> Seen:
    @no_type_check
    def target(x, y):
        return torch.neg(torch.relu(x) + torch.relu(y))

    return (
        matches(lib, target, lambda x, y: (x, torch.relu(y))),
        matches(lib, target, lambda x, y: (torch.relu(y), x)),
    )


@program(claims=("match-no-external-users",))
def inner_nodes_have_no_other_readers(lib: Lib) -> Seen:
    @no_type_check
    def target(x):
        a = torch.neg(x)
        return torch.relu(a) + a

    @no_type_check
    def pattern(x):
        return torch.relu(torch.neg(x))

    return matches(lib, target, pattern), rewrite(
        lib, target, pattern, lambda x: torch.exp(x), A
    )


@program(claims=("match-no-overlap",))
def of_overlapping_matches_the_first_is_taken(lib: Lib) -> Seen:
    def chain(count: int) -> object:
        @no_type_check
        def target(x):
            for _ in range(count):
                x = torch.neg(x)
            return x

        return target

    two = chain(2)
    return [
        (
            matches(lib, chain(count), two),
            matches(lib, chain(count), two, remove_overlapping_matches=False),
        )
        for count in (1, 2, 3, 4, 5)
    ]


@program(claims=("rewrite-placeholder-count",))
def inputs_must_be_equally_many(lib: Lib) -> Seen:
    seen = []
    for new in (lambda x: x, lambda x, y, z: x, lambda x, y: y):
        gm = lib.symbolic_trace(lambda x, y: torch.relu(x) + y)
        raised = error(
            lambda gm=gm, new=new: rewriter(lib).replace_pattern(  # type: ignore[misc]
                gm, lambda x, y: x + y, new
            ),
            chars=34,
        )
        seen.append((raised, str(gm.graph)))
    return seen


@program(
    claims=(
        "rewrite-copies-replacement",
        "rewrite-redirects-uses",
        "rewrite-reverse-erase",
    )
)
def the_three_steps_by_hand(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(Overview())
    x, param, add, linear, *_ = gm.graph.nodes
    new = lib.symbolic_trace(lambda a, b: a * b).graph
    values = dict(zip(new.nodes, (x, param), strict=False))
    with gm.graph.inserting_before(linear):
        copied = gm.graph.graph_copy(new, values)
    seen: list[object] = [str(gm.graph)]
    add.replace_all_uses_with(copied)
    seen.append(str(gm.graph))
    for node in reversed(gm.graph.nodes):
        if node.op != "output" and not node.users:
            gm.graph.erase_node(node)
    gm.recompile()
    by_one_call = lib.symbolic_trace(Overview())
    rewriter(lib).replace_pattern(
        by_one_call, lambda x, y: x + y, lambda x, y: x * y
    )
    return [*seen, *show(gm), gm.code == by_one_call.code]


@program(claims=("rewrite-reverse-erase",))
def only_matched_nodes_are_erased(lib: Lib) -> Seen:
    @no_type_check
    def target(x, unused):
        torch.exp(x)
        return torch.relu(x)

    return rewrite(
        lib, target, lambda x: torch.relu(x), lambda x: torch.neg(x), A, B
    )


@program(claims=("rewrite-insert-point",))
def the_new_goes_before_the_first_reader(lib: Lib) -> Seen:
    @no_type_check
    def target(x, y):
        a = torch.relu(x)
        b = torch.exp(y)
        c = b + 1
        return c * a, a - b

    return rewrite(
        lib, target, lambda x: torch.relu(x), lambda x: torch.neg(x), A, B
    )


@program()
def filters_choose_among_the_matches(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: torch.relu(torch.relu(x) + 1))
    asked: list[object] = []

    def wanted(match: Made, graph: Made, pattern: Made) -> bool:
        found = match.returning_nodes[0]
        asked.append((str(found), graph is gm.graph, names(pattern.nodes)))
        return bool(found.args[0].op == "placeholder")

    done = rewriter(lib).replace_pattern_with_filters(
        gm,
        lambda x: torch.relu(x),
        lambda x: torch.neg(torch.exp(x)),
        match_filters=[wanted],
    )
    made = [names(one.replacements) for one in done]
    return asked, made, paired(done), show(gm, A)


@program()
def a_callback_makes_each_replacement(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: (x + 1) * (x + 2))
    functions = iter((torch.relu, torch.exp))

    def make(match: Made, graph: Made, pattern: Made) -> Made:
        new = lib.Graph()
        new.placeholder("a")
        b = new.placeholder("b")
        found = new.call_function(next(functions), (b,))
        new.output(found)
        return new

    done = rewriter(lib).replace_pattern_with_filters(
        gm,
        lambda y, x: x + y,
        replacement_callback=make,
    )
    return paired(done), show(gm, A)


@program()
def literals_can_be_ignored(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: (x + 1) * 2 + 3)
    done = rewriter(lib).replace_pattern_with_filters(
        gm, lambda x: x + 7, lambda x: x - 7, ignore_literals=True
    )
    return paired(done), show(gm, A)


@program()
def graphs_and_modules_are_taken_as_they_are(lib: Lib) -> Seen:
    seen = []
    old = lib.symbolic_trace(lambda x: torch.relu(x))
    new = lib.symbolic_trace(lambda x: torch.neg(x))
    for sought, put in ((old, new), (old.graph, new.graph), (old.graph, new)):
        gm = lib.symbolic_trace(lambda x: torch.relu(x) + 1)
        found = rewriter(lib).replace_pattern_with_filters(gm, sought, put)
        seen.append((paired(found), show(gm, A)))
    return seen


@program()
def nodes_can_be_matched_by_name(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: torch.exp(torch.relu(x)))
    done = rewriter(lib).replace_pattern_with_filters(
        gm,
        lambda x: torch.neg(x),
        lambda x: torch.sin(x),
        node_name_match="relu",
    )
    return paired(done), show(gm, A)


@program()
def patterns_that_cannot_be_matched(lib: Lib) -> Seen:
    make = matcher(lib).SubgraphMatcher
    return error(lambda: make(lib.Graph()), chars=58)


@program(newest=True)
def a_pattern_with_dead_code(lib: Lib) -> Seen:
    dead = lib.Graph()
    x = dead.placeholder("x")
    dead.call_function(torch.relu, (x,))
    dead.output(x)
    return error(lambda: matcher(lib).SubgraphMatcher(dead), chars=67)


@program(newest=True)
def inputs_that_stand_for_lists_and_numbers(lib: Lib) -> Seen:
    @no_type_check
    def f(x, y):
        a = torch.cat([x, y], 1)
        return torch.cat([a, x], 0)

    gm = lib.symbolic_trace(f)
    found = rewriter(lib).replace_pattern_with_filters(
        gm,
        lambda xs, d: torch.cat(xs, d),
        lambda xs, d: torch.stack(xs, d).relu(),
    )
    return gm.code, [
        (
            {str(k): str(v) for k, v in one.nodes_map.items()},
            names(one.replacements),
        )
        for one in found
    ]
