"""What a proxy cannot be: a loop's items, a condition.

The asserts below are what is traced, so pytest must leave them as they are:
PYTEST_DONT_REWRITE.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fx.graph import Graph
from fx.proxy import GraphAppendingTracer, Proxy, TraceError
from fx.use_def.values import AnyValue
from stages.checking import check, raising, same, same_graph

ITERATED = "proxy.Proxy.__iter__"


class Knowing(GraphAppendingTracer):
    """A tracer that has an answer."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.asked: list[str] = []

    def iter(self, obj: Proxy) -> Iterator[AnyValue]:
        """Three items."""
        self.asked.append(obj.node.name)
        return iter(["a", "b", "c"])


def begin() -> tuple[Graph, Proxy]:
    """A graph with the placeholder x, and a proxy for it."""
    graph = Graph()
    return graph, Proxy(graph.placeholder("x"), GraphAppendingTracer(graph))


# -- iterated ----------------------------------------------------------------


@pytest.mark.exercise(ITERATED)
def test_unpacking_says_how_many() -> None:
    graph, x = begin()
    try:
        a, b = x
    except TraceError:
        check(
            False,
            "`a, b = x` says that there are two items, so a Proxy can give "
            "them: look at the instruction that your caller is executing.",
        )
        return
    except TypeError as error:
        check(
            "non-iterator" not in str(error),
            "`__iter__` must return an iterator, and a list is not one: "
            f"`iter(…)` makes one of it. Python says: {error}.",
        )
        raise
    check(
        isinstance(a, Proxy) and isinstance(b, Proxy),
        "`a, b = x` gives a Proxy for each item.",
    )
    same_graph(
        graph,
        """
        graph():
            %x : [num_users=2] = placeholder[target=x]
            %getitem : [num_users=0] = call_function[target=operator.getitem]\
(args = (%x, 0), kwargs = {})
            %getitem_1 : [num_users=0] = call_function[target=operator.getitem]\
(args = (%x, 1), kwargs = {})
        """,
        "`a, b = x` is `x[0]` and `x[1]`, in this order.",
    )


@pytest.mark.exercise(ITERATED)
def test_unpacking_of_other_sizes() -> None:
    graph, x = begin()
    try:
        (only,) = x
        a, b, c = x[1]
    except ValueError as error:
        check(
            False,
            "One name takes one item, three names take three, and no more "
            f"may be given: {error}.",
        )
        return
    same(
        [node.args[1] for node in list(graph.nodes)[1:]],
        [0, 1, 0, 1, 2],
        "`(only,) = x` takes x[0]; `a, b, c = x[1]` takes three items.",
    )
    check(only is not a and b is not c, "Each item is a Proxy of its own.")


@pytest.mark.exercise(ITERATED)
def test_unpacking_to_no_names() -> None:
    graph, x = begin()
    (_first,) = x  # an unwritten __iter__ says so here
    try:
        [] = x
    except TraceError:
        check(
            False,
            "`[] = x` says that there are no items. That is a number too: "
            "`frames.unpack_count` gives 0, which is false, but not None.",
        )
    same(len(graph.nodes), 2, "`[] = x` takes no item, and records nothing.")


@pytest.mark.exercise(ITERATED)
def test_a_loop_cannot_be_traced() -> None:
    _, x = begin()
    (_first,) = x  # an unwritten __iter__ says so here
    sentence = "How often a loop over a Proxy runs is not known."
    with raising(TraceError, "Proxy object cannot be iterated", sentence):
        for _ in x:
            break
    with raising(
        TraceError,
        "Proxy object cannot be iterated",
        "`iter(x)` itself must raise. If `__iter__` has a `yield` in it, it "
        "is a generator, and nothing of it runs before the first item.",
    ):
        iter(x)
    with raising(TraceError, "Proxy object cannot be iterated", sentence):
        list(x)
    with raising(TraceError, "Proxy object cannot be iterated", sentence):
        print(*x)


@pytest.mark.exercise(ITERATED)
def test_a_starred_name_has_no_known_size() -> None:
    _, x = begin()
    (_first,) = x
    with raising(
        TraceError,
        "Proxy object cannot be iterated",
        "`a, *rest = x` takes as many items as there are: not a known number.",
    ):
        _a, *_rest = x


@pytest.mark.exercise(ITERATED)
def test_the_tracer_may_know_the_items() -> None:
    graph = Graph()
    tracer = Knowing(graph)
    x = Proxy(graph.placeholder("x"), tracer)
    try:
        items = list(iter(x))
    except TraceError:
        check(
            False,
            "A tracer may override `iter`, and this one did: ask "
            "`self.tracer.iter` and let it raise or answer.",
        )
        return
    same(items, ["a", "b", "c"], "The tracer's items must be given.")
    same(tracer.asked, ["x"], "The tracer is asked once, with the Proxy.")
