"""Operators on proxies, and what they need: arguments, nodes, proxies."""

from __future__ import annotations

import dataclasses
import enum
from contextlib import suppress
from typing import NamedTuple

import pytest
import torch

from fx.graph import Graph
from fx.linked_list.opcodes import Opcode, Target
from fx.node import Node
from fx.proxy import GraphAppendingTracer, Proxy, TracerBase
from fx.use_def.values import AnyValue, Argument
from stages.checking import check, raising, same, uses_intact

OTHER = (
    "A value of a type that create_arg does not name was refused, but "
    "`self.create_other_arg` knows what to do with it: subclasses, named "
    "tuples, dataclasses, enumerations and more go there."
)


class Extent(NamedTuple):
    """A named tuple of the user's code."""

    low: AnyValue
    high: AnyValue


@dataclasses.dataclass
class Window:
    """A dataclass of the user's code."""

    start: AnyValue
    size: AnyValue


class Mode(enum.Enum):
    """An enumeration of the user's code."""

    FAST = 1


class Handle:
    """An object that knows how to become an argument."""

    def __init__(self, inner: Proxy) -> None:
        self.inner = inner

    def __fx_create_arg__(self, tracer: TracerBase) -> Argument:
        return (tracer.create_arg(self.inner), "handle")


class Metres(float):
    """A number that says itself what it becomes."""

    def __fx_create_arg__(self, tracer: TracerBase) -> Argument:
        return ("metres", float(self))


class Wired:
    """An object with a node and a tracer, as a proxy has; it is none."""

    node = "its own node"
    tracer = "its own tracer"

    def __fx_create_arg__(self, tracer: TracerBase) -> Argument:
        return "wired"


def holds_proxy(value: AnyValue) -> bool:
    """Whether there is a Proxy somewhere in an argument."""
    if isinstance(value, tuple | list):
        return any(map(holds_proxy, value))
    if isinstance(value, dict):
        return any(map(holds_proxy, value.values()))
    if isinstance(value, slice):
        return holds_proxy((value.start, value.stop, value.step))
    return isinstance(value, Proxy)


class Watching(GraphAppendingTracer):
    """Stops at a node that would hold a Proxy: it could not be printed."""

    def create_node(
        self,
        kind: Opcode,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: AnyValue = None,
    ) -> Node:
        """Look at the arguments, then make the node."""
        for words, lowered in (("args", args), ("kwargs", kwargs)):
            check(
                not holds_proxy(lowered),
                f"A Proxy among the {words} must become its node, by "
                f"`self.create_arg`; it got into the {words} of a node.",
            )
        return super().create_node(kind, target, args, kwargs, name, type_expr)


def begin(*names: str) -> tuple[Graph, list[Proxy]]:
    """A graph with placeholders, and a proxy for each, of one tracer."""
    graph = Graph()
    tracer = Watching(graph)
    return graph, [Proxy(graph.placeholder(name), tracer) for name in names]


def lowered(tracer: TracerBase, value: AnyValue, sentence: str) -> Argument:
    """What create_arg makes of a value that it must not refuse."""
    try:
        return tracer.create_arg(value)
    except NotImplementedError as error:
        # An unwritten function raises this too, with other words.
        check(not str(error).startswith("argument of type"), sentence)
        raise


# -- what a node can hold ----------------------------------------------------


@pytest.mark.exercise("proxy.TracerBase.create_arg")
def test_a_constant_stays() -> None:
    _, (x,) = begin("x")
    for value in (1, 2.5, True, None, "sum", ..., torch.float32, range(3)):
        found = x.tracer.create_arg(value)
        check(
            found is value,
            f"{value!r} is a constant, and a node can hold it as it is; "
            f"yours made {found!r} of it.",
        )


@pytest.mark.exercise("proxy.TracerBase.create_arg")
def test_a_proxy_becomes_its_node() -> None:
    _, (x,) = begin("x")
    found = x.tracer.create_arg(x)
    check(
        found is x.node,
        "A node cannot hold a Proxy, only the node that the Proxy stands "
        f"for: yours gave a {type(found).__name__}.",
    )


@pytest.mark.exercise("proxy.TracerBase.create_arg")
def test_a_proxy_of_a_subclass_becomes_its_node() -> None:
    class Labelled(Proxy):
        """A proxy that a tracer of the user's makes."""

    _, (x,) = begin("x")
    found = lowered(x.tracer, Labelled(x.node, x.tracer), OTHER)
    check(
        found is x.node,
        "An object of a subclass of Proxy is a Proxy too, and becomes its "
        f"node: yours gave a {type(found).__name__}.",
    )


@pytest.mark.exercise("proxy.TracerBase.create_arg")
def test_a_container_is_rebuilt_with_nodes() -> None:
    _, (x, y) = begin("x", "y")
    a, b = x.node, y.node
    cases: list[tuple[str, object, object]] = [
        ("a tuple", (x, 1), (a, 1)),
        ("a list", [x, 1, y], [a, 1, b]),
        ("a list in a tuple", ([x], (y, 2)), ([a], (b, 2))),
        ("a dict", {"left": x, "right": [y]}, {"left": a, "right": [b]}),
        ("a slice", slice(x, None, y), slice(a, None, b)),
        ("an empty list", [], []),
    ]
    for kind, value, expected in cases:
        found = lowered(
            x.tracer,
            value,
            f"{value!r} was refused. {kind.capitalize()} is a container too, "
            "and is rebuilt: ask for each exact type.",
        )
        check(
            not holds_proxy(found),
            f"A Proxy inside {kind} must become its node: yours left it in.",
        )
        same(found, expected, f"What was {kind} must stay what it is.")


@pytest.mark.exercise("proxy.TracerBase.create_arg")
def test_a_named_tuple_keeps_its_class() -> None:
    _, (x,) = begin("x")
    found = lowered(x.tracer, Extent(x, 4), OTHER)
    check(
        not holds_proxy(found),
        "A Proxy inside a named tuple must become its node: yours left it in.",
    )
    same(
        found,
        Extent(x.node, 4),
        "A named tuple is a tuple, but it must come back as a named tuple "
        "of the same class.",
    )


@pytest.mark.exercise("proxy.TracerBase.create_arg")
@pytest.mark.parametrize("given", [[], {}], ids=repr)
def test_an_empty_container_is_rebuilt_too(given: AnyValue) -> None:
    _, (x,) = begin("x")
    found: AnyValue = x.tracer.create_arg(given)
    check(
        found == given and found is not given,
        f"What came back for the user's {given} must be equal to it, and "
        "another object: the user may put something into it later.",
    )


@pytest.mark.exercise("proxy.TracerBase.create_arg")
def test_items_go_through_an_overridden_create_arg() -> None:
    class Texts(GraphAppendingTracer):
        """Writes bytes as text, which TracerBase does not know."""

        def create_arg(self, a: AnyValue) -> Argument:
            if isinstance(a, bytes):
                return a.decode()
            return super().create_arg(a)

    tracer = Texts(Graph())
    same(tracer.create_arg(b"one"), "one", "The overriding method was lost.")
    found = lowered(
        tracer,
        [b"one", (b"two",)],
        "The items of a list must be lowered by the same tracer, whose "
        "class may override create_arg: yours lowered them by another.",
    )
    same(
        found,
        ["one", ("two",)],
        "The items of a list must be lowered by the same tracer, whose "
        "class may override create_arg.",
    )


class Unlucky:
    """Something whose lowering raises a KeyError; counts how often."""

    def __init__(self) -> None:
        self.asked = 0

    def __fx_create_arg__(self, tracer: TracerBase) -> Argument:
        self.asked += 1
        raise KeyError("in the user's method")


@pytest.mark.exercise("proxy.TracerBase.create_arg")
def test_an_error_inside_an_item_comes_through() -> None:
    _, (x,) = begin("x")
    x.tracer.create_arg([x])  # an unwritten create_arg says so here
    item = Unlucky()
    with suppress(KeyError):
        x.tracer.create_arg([item])
    same(
        item.asked,
        1,
        "An item of a list raised a KeyError in its own `__fx_create_arg__`, "
        "and the list was lowered again: let an error from inside pass "
        "through.",
    )


@pytest.mark.exercise("proxy.TracerBase.create_arg")
def test_a_dataclass_becomes_a_node_that_makes_it() -> None:
    graph, (x,) = begin("x")
    found = lowered(x.tracer, Window(x, 3), OTHER)
    check(
        isinstance(found, Node),
        "A dataclass becomes a node that constructs it; yours gave a "
        f"{type(found).__name__}.",
    )
    last = graph.find_nodes(op="call_function", target=Window)
    check(
        len(last) == 1 and last[0].kwargs == {"start": x.node, "size": 3},
        "The node that constructs a dataclass has its class as target and "
        "its fields as keyword arguments.",
        picture=str(graph),
    )
    uses_intact(graph, "The fields of the dataclass lost a use.")


@pytest.mark.exercise("proxy.TracerBase.create_arg")
def test_the_rest_turn_themselves_or_stay() -> None:
    _, (x,) = begin("x")
    same(
        lowered(x.tracer, Handle(x), OTHER),
        (x.node, "handle"),
        "An object with `__fx_create_arg__` says itself what it becomes.",
    )
    same(
        lowered(x.tracer, Metres(2.0), OTHER),
        ("metres", 2.0),
        "A float with `__fx_create_arg__` says itself what it becomes, too: "
        "`CONSTANTS` has exact types, and `create_other_arg` knows subclasses.",
    )
    same(
        lowered(x.tracer, Mode.FAST, OTHER),
        Mode.FAST,
        "A member of an enumeration is a constant.",
    )


@pytest.mark.exercise("proxy.TracerBase.create_arg")
def test_a_proxy_is_known_by_its_class() -> None:
    _, (x,) = begin("x")
    same(
        lowered(x.tracer, Wired(), OTHER),
        "wired",
        "An object of the user's has attributes `node` and `tracer`, and was "
        "taken for a proxy. Look at the class of a value, not at its "
        "attributes.",
    )


@pytest.mark.exercise("proxy.TracerBase.create_arg")
def test_a_tensor_is_for_the_subclass_to_lower() -> None:
    class Fetching(GraphAppendingTracer):
        """Fetches a tensor by a node, as the tracer of stage 04 does."""

        def create_other_arg(self, a: AnyValue) -> Argument:
            if isinstance(a, torch.Tensor):
                return "a node that fetches it"
            return super().create_other_arg(a)

    same(
        Fetching(Graph()).create_arg([torch.ones(2)]),
        ["a node that fetches it"],
        "A tensor was kept as it is, and so frozen into the graph. It is not "
        "among the types that create_arg names: `self.create_other_arg` "
        "decides, which a tracer overrides to fetch parameters.",
    )


@pytest.mark.exercise("proxy.TracerBase.create_arg")
def test_what_no_node_can_hold_is_refused() -> None:
    _, (x,) = begin("x")
    x.tracer.create_arg(1)  # an unwritten create_arg says so here
    sentence = "A node cannot hold any object: one of no known type is refused."
    with raising(NotImplementedError, "argument of type", sentence):
        x.tracer.create_arg(object())
    with raising(NotImplementedError, "argument of type", sentence):
        x.tracer.create_arg([{"deep": object()}])


@pytest.mark.exercise("proxy.TracerBase.create_arg")
def test_a_proxy_in_a_key_is_refused() -> None:
    _, (x,) = begin("x")
    sentence = "The use of a node in a key of a dict cannot be tracked."
    with raising(RuntimeError, "Got key: x", sentence):
        x.tracer.create_arg({x: 1})
