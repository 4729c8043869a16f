"""Attributes of proxies: a method call, or a fetch when it is needed."""

from __future__ import annotations

import operator

import pytest

from fx.graph import Graph
from fx.node import Node
from fx.proxy import Attribute, GraphAppendingTracer, Proxy
from fx.use_def.values import AnyValue
from stages.checking import check, same, same_graph, uses_intact, working

FETCHED = "proxy.Attribute.__getattr__"


class Asking(GraphAppendingTracer):
    """A tracer that says how `create_proxy` has to be called."""

    def create_proxy(self, *given: AnyValue, **named: AnyValue) -> Proxy:
        """Record a call, if it is given as one."""
        both = dict(zip(("args", "kwargs"), given[2:4], strict=False)) | named
        check(
            type(both.get("args")) is tuple
            and type(both.get("kwargs", {})) is dict,
            "create_proxy takes an opcode, a target, then all positional "
            "arguments as one tuple and the keyword arguments as one dict: "
            "do not unpack them.",
            picture=f"yours: {', '.join(map(str, given))}",
        )
        return super().create_proxy(*given, **named)


class Noting(Asking):
    """A tracer that notes what is recorded through `create_proxy`."""

    noted: tuple[AnyValue, ...] = ()

    def create_proxy(self, *args: AnyValue, **kwargs: AnyValue) -> Proxy:
        """Note the target."""
        result = super().create_proxy(*args, **kwargs)
        self.noted += (result.node.target,)
        return result


def begin() -> tuple[Graph, Proxy]:
    """A graph with the placeholder x, and a proxy for it."""
    graph = Graph()
    return graph, Proxy(graph.placeholder("x"), Asking(graph))


def targets(graph: Graph) -> list[AnyValue]:
    """The targets of all nodes but the placeholder, in order."""
    return [node.target for node in graph.nodes][1:]


# -- fetched -----------------------------------------------------------------


@pytest.mark.exercise(FETCHED)
def test_nothing_is_recorded_before_it_is_used() -> None:
    graph, x = begin()
    shape = Attribute(x, "shape")
    same(
        targets(graph),
        [],
        "`x.shape` alone records nothing: it may still become a method call.",
    )
    check(
        isinstance(shape.node, Node),
        "`shape.node` must be a Node. create_proxy gives a Proxy, which has "
        f"one; yours is of the type {type(shape.node).__name__}.",
    )
    same(
        shape.node.target,
        getattr,
        "When its node is asked for, `x.shape` is a call of getattr.",
    )


@pytest.mark.exercise(FETCHED)
def test_a_fetch_is_a_call_of_getattr() -> None:
    graph, x = begin()
    _ = Attribute(x, "shape")[0]
    same_graph(
        graph,
        """
        graph():
            %x : [num_users=1] = placeholder[target=x]
            %getattr_1 : [num_users=1] = call_function[target=builtins.getattr]\
(args = (%x, shape), kwargs = {})
            %getitem : [num_users=0] = call_function[target=operator.getitem]\
(args = (%getattr_1, 0), kwargs = {})
        """,
        "`x.shape[0]` is a call of getattr on x and an item of its result.",
    )
    uses_intact(graph, "The fetch lost a use.")


@pytest.mark.exercise(FETCHED)
def test_an_attribute_is_fetched_once() -> None:
    graph, x = begin()
    shape = Attribute(x, "shape")
    first = shape.node
    again = shape.node
    _ = shape[1]
    check(
        first is again and targets(graph).count(getattr) == 1,
        "The same `x.shape`, used several times, is fetched once: keep the "
        "node when it is made.",
        picture=str(graph),
    )


@pytest.mark.exercise(FETCHED)
def test_the_tracer_records_a_fetch() -> None:
    graph = Graph()
    tracer = Noting(graph)
    _ = Attribute(Proxy(graph.placeholder("x"), tracer), "shape").node
    same(
        tracer.noted,
        (getattr,),
        "A tracer may override `create_proxy` to see each operation. The "
        "fetch must be recorded by it, once.",
    )


@pytest.mark.exercise(FETCHED)
def test_an_attribute_of_an_attribute() -> None:
    graph, x = begin()
    inner: AnyValue = Attribute(x, "mT").real
    same(
        type(inner).__name__,
        "Attribute",
        "`x.mT.real` is an Attribute again, and may be a method.",
    )
    _ = inner + 1
    same(
        [node.args[:2] for node in graph.nodes if node.target is getattr][-1:],
        [(graph.find_nodes(op="call_function", target=getattr)[0], "real")],
        "`x.mT.real` must be fetched from `x.mT`, not from x.",
    )
    same(
        len(targets(graph)),
        3,
        "`x.mT.real + 1` is two fetches and one addition.",
    )


@pytest.mark.exercise(FETCHED)
def test_an_attribute_of_an_attribute_may_have_any_name() -> None:
    graph, x = begin()
    with working(
        "`x.mT.__cube__` raised. A proxy has an attribute for every "
        "name, and only `node` is asked for to record a fetch: a name with "
        "two underscores is like any other."
    ):
        _ = Attribute(x, "mT").__cube__ + 1
    same(
        [node.args[1] for node in graph.nodes if node.target is getattr],
        ["mT", "__cube__"],
        "`x.mT.__cube__ + 1` is two fetches and one addition.",
    )


@pytest.mark.exercise(FETCHED)
def test_an_attribute_of_an_attribute_is_late_too() -> None:
    graph, x = begin()
    shape: AnyValue = Attribute(x, "shape")
    bound = shape.numel
    same(
        targets(graph),
        [],
        "`x.shape.numel` alone records nothing, not even the fetch of "
        "`x.shape`: nobody has used either of them yet.",
    )
    _ = shape[0]
    bound()
    same(
        targets(graph),
        [getattr, operator.getitem, "numel"],
        "`s = x.shape; s[0]; s.numel()` must fetch `x.shape` once. The root of "
        "`s.numel` is `s` itself, whose node is made once and kept; a proxy "
        "made for it by another `create_proxy` is another fetch.",
    )


@pytest.mark.exercise(FETCHED)
def test_a_method_of_an_attribute() -> None:
    graph, x = begin()
    Attribute(x, "mT").relu()
    same_graph(
        graph,
        """
        graph():
            %x : [num_users=1] = placeholder[target=x]
            %getattr_1 : [num_users=1] = call_function[target=builtins.getattr]\
(args = (%x, mT), kwargs = {})
            %relu : [num_users=0] = call_method[target=relu]\
(args = (%getattr_1,), kwargs = {})
        """,
        "In `x.mT.relu()` the method is called, so only `mT` is fetched.",
    )
