"""What a proxy cannot be: a loop's items, a condition.

The asserts below are what is traced, so pytest must leave them as they are:
PYTEST_DONT_REWRITE.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fx.graph import Graph
from fx.proxy import GraphAppendingTracer, Proxy, TraceError, assert_fn
from fx.use_def.values import AnyValue
from stages.checking import check, raising, same, same_graph

ITERATED = "proxy.Proxy.__iter__"
ASKED = "proxy.Proxy.__bool__"


class Knowing(GraphAppendingTracer):
    """A tracer that has an answer to every question."""

    def __init__(self, graph: Graph, answer: bool = True) -> None:
        super().__init__(graph)
        self.answer = answer
        self.asked: list[str] = []
        self.recorded: list[AnyValue] = []

    def create_proxy(self, *args: AnyValue, **kwargs: AnyValue) -> Proxy:
        """Note the target."""
        result = super().create_proxy(*args, **kwargs)
        self.recorded.append(result.node.target)
        return result

    def to_bool(self, obj: Proxy) -> bool:
        """The answer."""
        self.asked.append(obj.node.name)
        return self.answer

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


# -- asked for a truth value -------------------------------------------------


@pytest.mark.exercise(ASKED)
def test_a_condition_cannot_be_traced() -> None:
    _, x = begin()
    sentence = "A graph has one path, so a Proxy has no truth value."
    with raising(TraceError, "inputs to control flow", sentence):
        if x:
            pass
    with raising(TraceError, "inputs to control flow", sentence):
        _ = not x
    with raising(TraceError, "inputs to control flow", sentence):
        while x > 0:
            break


@pytest.mark.exercise(ASKED)
def test_the_error_names_the_line() -> None:
    _, x = begin()
    with raising(
        TraceError,
        "if x + 1 > 0:",
        "The error names the line of the user that asked, which is not in fx.",
    ):
        if x + 1 > 0:
            pass


@pytest.mark.exercise(ASKED)
def test_the_tracer_may_know_the_truth() -> None:
    for answer in (True, False):
        graph = Graph()
        tracer = Knowing(graph, answer)
        x = Proxy(graph.placeholder("x"), tracer)
        try:
            found = bool(x)
        except TraceError:
            check(
                False,
                "A tracer may override `to_bool`, and this one did: ask "
                "`self.tracer.to_bool` and let it raise or answer.",
            )
            return
        same(found, answer, f"The tracer's answer is {answer}.")
        same(tracer.asked, ["x"], "The tracer is asked once, with the Proxy.")


@pytest.mark.exercise(ASKED)
def test_an_assert_is_recorded_if_the_tracer_wants_it() -> None:
    graph, x = begin()
    x.tracer.trace_asserts = True
    try:
        assert x, "never shown"
    except TraceError:
        check(
            not graph.find_nodes(op="call_function", target=assert_fn),
            "`assert x` was recorded, and refused all the same: a recorded "
            "assert is answered with True, and the trace goes on.",
        )
        check(
            False,
            "With `trace_asserts`, `assert x` is recorded: look at the "
            "instruction that your caller is executing.",
        )
    same_graph(
        graph,
        """
        graph():
            %x : [num_users=1] = placeholder[target=x]
            %assert_fn : [num_users=0] = call_function\
[target=fx.proxy.assert_fn](args = (%x,), kwargs = {})
        """,
        "With `trace_asserts`, `assert x` is one call of assert_fn.",
    )


@pytest.mark.exercise(ASKED)
def test_the_tracer_records_an_assert() -> None:
    graph = Graph()
    tracer = Knowing(graph)
    tracer.trace_asserts = True
    x = Proxy(graph.placeholder("x"), tracer)
    assert x
    same(
        (tracer.recorded, tracer.asked),
        ([assert_fn], []),
        "A tracer may override `create_proxy` to see each operation. The "
        "assert must be recorded by it, once, and `to_bool` not be asked.",
    )


@pytest.mark.exercise(ASKED)
def test_an_assert_is_a_condition_otherwise() -> None:
    graph, x = begin()
    with raising(
        TraceError,
        "inputs to control flow",
        "This tracer has no `trace_asserts`: `assert x` is a condition like "
        "any other.",
    ):
        assert x
    check(
        not graph.find_nodes(op="call_function", target=assert_fn),
        "Without `trace_asserts` nothing is recorded for an assert.",
    )


@pytest.mark.exercise(ASKED)
def test_an_if_is_no_assert() -> None:
    _, x = begin()
    x.tracer.trace_asserts = True
    with raising(
        TraceError,
        "inputs to control flow",
        "Only an assert is recorded with `trace_asserts`; an `if` still has "
        "two paths.",
    ):
        if not x:
            raise AssertionError
        print("the other path")
