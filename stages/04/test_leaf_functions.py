"""Leaf functions: calls of globals that are recorded as one node."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from math import sqrt

import pytest
import torch

from fx.proxy import Proxy, TraceError
from fx.tracing.tracer import Tracer
from fx.tracing.wrapping import wrap
from fx.use_def.values import AnyValue
from stages.checking import check, same, same_graph, uses_intact, working

EXERCISE = "tracing.tracer.Tracer._answer_function"
PATCH = "tracing.patching.Patches.patch"

wrap("len")


@wrap
def clip(value: AnyValue, low: int, *, high: int = 1) -> AnyValue:
    """Branches on its argument, so it cannot be traced through."""
    return max(low, min(high, value)) if value else value


def double(value: AnyValue) -> AnyValue:
    """A function that can be traced through."""
    return value + value


def clip_plainly(value: int, high: int = 1) -> int:
    """A function that is not a leaf."""
    return min(high, value)


def begin(*leaves: Callable[..., AnyValue]) -> tuple[Tracer, Proxy]:
    """A trace that has these leaf functions, and an input of its trace."""
    tracer = Tracer(autowrap_functions=leaves)
    tracer._start(double)
    x = tracer.create_proxy("placeholder", "x", (), {})
    return tracer, x


@pytest.mark.exercise(EXERCISE)
def test_a_leaf_that_meets_a_proxy_is_recorded() -> None:
    trace, x = begin(clip)
    try:
        result = trace._answer_function(clip, (x, 0), {"high": 2})
    except TraceError as error:
        check(
            "truth value" not in str(error),
            "A Proxy was asked for its truth value, which is not known: by "
            "clip, if yours has called it instead of recording the call; or "
            "by you, if you ask `if proxy` and not `is not None`.",
        )
        raise
    same(
        type(result).__name__,
        "Proxy",
        "The call of a leaf function gives a Proxy for its result.",
    )
    node = next(iter(reversed(x.node.graph.nodes)))
    same(
        (node.op, node.target, node.args, node.kwargs),
        ("call_function", clip, (x.node, 0), {"high": 2}),
        "The call is one call_function node with all its arguments.",
    )
    check(
        node.meta.get("is_wrapped"),
        "Use `record_leaf`: it notes `is_wrapped`, so that generated code "
        "wraps the function again.",
    )
    uses_intact(x.node.graph, "The call of the leaf function lost a use.")


@pytest.mark.exercise(EXERCISE)
def test_a_leaf_without_a_proxy_just_runs() -> None:
    trace, x = begin(clip)
    same(
        trace._answer_function(clip, (5, 0), {"high": 3}),
        3,
        "No proxy is among the arguments, so the function is just called.",
    )
    same(
        len(x.node.graph.nodes),
        1,
        "A call without a proxy must not be recorded.",
    )


@pytest.mark.exercise(EXERCISE)
def test_a_proxy_may_be_anywhere_among_the_arguments() -> None:
    cases: list[tuple[str, Callable[[Proxy], tuple[AnyValue, AnyValue]]]] = [
        ("a keyword argument", lambda x: ((1, 0), {"high": x})),
        ("an item of a list", lambda x: (([1, x], 0), {})),
        ("deep inside", lambda x: ((1, 0), {"high": ({"a": (x,)},)})),
        ("not the first argument", lambda x: ((1, x), {})),
    ]
    for where, arguments in cases:
        trace, x = begin(clip)
        args, kwargs = arguments(x)
        with suppress(TypeError, ValueError):  # clip ran on a proxy
            trace._answer_function(clip, args, kwargs)
        check(
            len(x.node.graph.nodes) == 2
            and next(iter(reversed(x.node.graph.nodes))).target is clip,
            f"The proxy is {where}, and the call must be recorded: "
            "`find_proxy` looks at any depth, and in kwargs too.",
        )


@pytest.mark.exercise(EXERCISE)
def test_a_function_that_is_no_leaf_is_traced_through() -> None:
    trace, x = begin(clip)
    trace._answer_function(double, (x,), {})
    same_graph(
        x.node.graph,
        """
        graph():
            %x : [num_users=1] = placeholder[target=x]
            %add : [num_users=0] = call_function[target=operator.add]\
(args = (%x, %x), kwargs = {})
        """,
        "`double` is not a leaf of this trace (another trace may have made it "
        "one): it is called, and traced through.",
    )
    same(
        trace._answer_function(clip_plainly, (5,), {"high": 3}),
        3,
        "A function that is not a leaf is called with all its arguments, those "
        "by keyword too.",
    )


@pytest.mark.exercise(EXERCISE)
def test_a_proxy_of_another_trace() -> None:
    trace, x = begin(clip)
    _, other = begin(clip)
    try:
        trace._answer_function(clip, (other, 0), {})
    except RuntimeError as error:
        check(
            "another" not in str(error) and "belong" not in str(error),
            "The proxy is of another trace, so the call belongs in its "
            "graph: record by the tracer of the proxy, as `record_leaf` does.",
        )
        raise
    same(
        (len(x.node.graph.nodes), len(other.node.graph.nodes)),
        (1, 2),
        "The proxy is of another trace, so the call belongs in its graph: "
        "record by the tracer of the proxy, as `record_leaf` does.",
    )


# -- whole traces ------------------------------------------------------------


def normalized(x: AnyValue) -> AnyValue:
    """A value over its root, clipped."""
    return clip(x / sqrt(x), 0)


def measured(x: AnyValue) -> AnyValue:
    """A value over the root of its length."""
    return x / sqrt(len(x))


@pytest.mark.exercise(EXERCISE)
def test_wrapped_functions_are_recorded_in_a_trace() -> None:
    graph = Tracer().trace(normalized)
    same(
        next(iter(graph.nodes)).next.target,
        math.sqrt,
        "The default leaves of `math` are calls in the graph.",
    )
    check(
        len(graph.find_nodes(op="call_function", target=clip)) == 1,
        "`@wrap` makes clip one call in the graph.",
        picture=str(graph),
    )


@pytest.mark.exercise(PATCH, EXERCISE)
def test_a_wrapped_builtin_is_recorded_in_a_trace() -> None:
    with working(
        "`wrap('len')` was called in this module, where no global is named "
        "len. The place is empty, so its original is MISSING, and what it "
        "holds is compared with that, not with the builtin that the "
        "replacement is made from. The trace raised an error:"
    ):
        graph = Tracer().trace(measured)
    same(
        [node.target for node in list(graph.nodes)[1:3]],
        [len, math.sqrt],
        "`wrap('len')` makes len a call in the graph.",
    )
    check(
        "len" not in globals(),
        "The module had no global len before the trace, and has one after it.",
    )


@pytest.mark.exercise(EXERCISE)
def test_wrapped_functions_are_themselves_after_a_trace() -> None:
    before = clip
    Tracer().trace(normalized)
    check(
        globals()["clip"] is before,
        "After the trace the globals must hold what they held before.",
    )
    same(clip(7, 0, high=3), 3, "Outside of a trace a leaf just runs.")


@pytest.mark.exercise(EXERCISE)
def test_a_function_that_the_tracer_names() -> None:
    def root(x: AnyValue) -> AnyValue:
        return double(x)

    plain = Tracer().trace(root)
    named = Tracer(autowrap_functions=(double,)).trace(root)
    check(
        not plain.find_nodes(op="call_function", target=double),
        "`double` is not a leaf for a plain tracer.",
        picture=str(plain),
    )
    check(
        len(named.find_nodes(op="call_function", target=double)) == 1,
        "`autowrap_functions` makes `double` a leaf of this tracer.",
        picture=str(named),
    )


@pytest.mark.exercise(EXERCISE)
def test_a_leaf_on_numbers_runs_while_tracing() -> None:
    def root(x: torch.Tensor) -> torch.Tensor:
        return x * sqrt(16)

    node = list(Tracer().trace(root).nodes)[1]
    same(
        node.args[1],
        4.0,
        "`sqrt(16)` meets no proxy: it is computed while tracing.",
    )
