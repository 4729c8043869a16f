"""Operators on proxies, and what they need: arguments, nodes, proxies."""

from __future__ import annotations

import dataclasses
import enum
import operator
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import pytest
import torch

from fx.graph import Graph
from fx.linked_list.opcodes import Opcode, Target
from fx.node import Node
from fx.proxy import GraphAppendingTracer, Proxy, TraceError, TracerBase
from fx.recording.operators import OPERATORS, reflectable_magic_methods
from fx.use_def.values import AnyValue, Argument
from stages.checking import (
    Mistake,
    check,
    raising,
    same,
    same_graph,
    uses_intact,
    working,
)

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


class Own(Proxy):
    """Another class of proxy."""


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


# -- recording an operation --------------------------------------------------


@pytest.mark.exercise("proxy.TracerBase.create_proxy")
def test_one_node_and_a_proxy_of_it() -> None:
    graph, (x, y) = begin("x", "y")
    total = x.tracer.create_proxy("call_function", operator.add, (x, y), {})
    same_graph(
        graph,
        """
        graph():
            %x : [num_users=1] = placeholder[target=x]
            %y : [num_users=1] = placeholder[target=y]
            %add : [num_users=0] = call_function[target=operator.add]\
(args = (%x, %y), kwargs = {})
        """,
        "One operation was recorded: it is one node, after the others.",
    )
    check(
        type(total) is Proxy and total.node.name == "add",
        "The recorded operation must come back as a Proxy of its node.",
    )
    check(
        total.tracer is x.tracer,
        "The new Proxy must have the tracer that recorded it.",
    )


@pytest.mark.exercise("proxy.TracerBase.create_proxy")
def test_keyword_arguments_are_lowered_too() -> None:
    graph, (x, y) = begin("x", "y")
    x.tracer.create_proxy(
        "call_function", torch.clamp, (x,), {"min": y, "max": 2}
    )
    node = graph.find_nodes(op="call_function", target=torch.clamp)[0]
    check(
        node.kwargs.get("min") is y.node,
        "A Proxy among the kwargs becomes its node; the node has "
        f"{node.kwargs.get('min')!r} there.",
    )
    uses_intact(graph, "A keyword argument is a use like any other.")


@pytest.mark.exercise("proxy.TracerBase.create_proxy")
def test_positional_arguments_are_lowered_first() -> None:
    graph, (x,) = begin("x")
    x.tracer.create_proxy(
        "call_function", torch.full_like, (x, x.first), {"dtype": x.second}
    )
    fetched = [node.args[1] for node in graph.nodes if node.target is getattr]
    same(
        fetched,
        ["first", "second"],
        "full_like(x, x.first, dtype=x.second): lowering an attribute records "
        "its fetch, and these are recorded in another order than Python "
        "evaluates them. Lower `args` before `kwargs`.",
    )


@pytest.mark.exercise("proxy.TracerBase.create_proxy")
def test_the_name_and_the_type_are_passed_on() -> None:
    graph, (x,) = begin("x")
    tracer = x.tracer
    tracer.create_proxy("call_method", "relu", (x,), {}, "active", int)
    node = next(iter(reversed(graph.nodes)))
    same(
        node.name,
        "active",
        "create_proxy was asked for the name `active`.",
    )
    check(node.type is int, "The `type_expr` must be the node's type.")


@pytest.mark.exercise("proxy.TracerBase.create_proxy")
def test_each_step_can_be_overridden() -> None:
    class Careful(GraphAppendingTracer):
        """Makes proxies of its own and sees each node that is made."""

        seen: tuple[str, ...] = ()

        def create_node(self, *args: AnyValue, **kwargs: AnyValue) -> Node:
            node = super().create_node(*args, **kwargs)
            self.seen += (node.name,)
            return node

        def proxy(self, node: Node) -> Proxy:
            return Own(node, self)

    tracer = Careful(Graph())
    result = tracer.create_proxy("placeholder", "x", (), {})
    same(
        tracer.seen,
        ("x",),
        "A tracer overrides create_node to see each operation: yours makes "
        "the node without asking `self.create_node`.",
    )
    same(
        type(result).__name__,
        "Own",
        "A tracer overrides `proxy` to choose the class of proxy: yours "
        "does not ask `self.proxy`.",
    )


@pytest.mark.exercise("proxy.TracerBase.create_proxy")
def test_a_factory_wraps_instead() -> None:
    graph = Graph()
    wrapped: list[Node] = []

    class Asked(GraphAppendingTracer):
        """Notes for which nodes it is asked to make a proxy."""

        asked: tuple[str, ...] = ()

        def proxy(self, node: Node) -> Proxy:
            self.asked += (node.name,)
            return super().proxy(node)

    tracer = Asked(graph)
    own = Own(graph.placeholder("own"), tracer)

    def factory(node: Node) -> Proxy:
        wrapped.append(node)
        return own

    try:
        result = tracer.create_proxy(
            "placeholder", "x", (), {}, proxy_factory_fn=factory
        )
    except TraceError as error:
        raise Mistake(
            "The proxy that `proxy_factory_fn` made was asked for its truth "
            "value, which nobody knows: `factory(node) or …` does that, and "
            "so does `if proxy`. Ask whether there is a factory: `if "
            "proxy_factory_fn is None`.",
        ) from error
    check(
        wrapped == list(graph.nodes)[1:],
        "With `proxy_factory_fn`, that function wraps the node, once.",
    )
    check(
        result is own,
        "`proxy_factory_fn` made a proxy, and another one came back.",
    )
    same(
        tracer.asked,
        (),
        "With `proxy_factory_fn`, that function wraps the node *instead* of "
        "`self.proxy`, which must not be called.",
    )


@pytest.mark.exercise("proxy.TracerBase.create_proxy")
def test_a_factory_may_be_false() -> None:
    graph = Graph()
    tracer = GraphAppendingTracer(graph)

    class Made(list[Proxy]):
        """A list of the proxies that it has made, which is empty at first."""

        def __call__(self, node: Node) -> Proxy:
            """Make a proxy, and note it."""
            self.append(Proxy(node, tracer))
            return self[-1]

    factory = Made()
    tracer.create_proxy("placeholder", "x", (), {}, proxy_factory_fn=factory)
    same(
        len(factory),
        1,
        "`proxy_factory_fn` is a list that can be called, and it is empty, so "
        "its truth value is false. It must wrap the node all the same: ask `if "
        "proxy_factory_fn is None`.",
    )


@pytest.mark.exercise("proxy.TracerBase.create_proxy")
def test_a_row_of_arguments_is_lowered_as_a_whole() -> None:
    class Lists(GraphAppendingTracer):
        """Lowers tuples to what no node's args can be."""

        def create_arg(self, a: AnyValue) -> Argument:
            lowered = super().create_arg(a)
            return list(lowered) if isinstance(lowered, tuple) else lowered

    class Pairs(GraphAppendingTracer):
        """Lowers dicts to what no node's kwargs can be."""

        def create_arg(self, a: AnyValue) -> Argument:
            lowered = super().create_arg(a)
            return (*lowered.items(),) if isinstance(lowered, dict) else lowered

    graph, (x,) = begin("x")
    x.tracer.create_proxy("call_method", "relu", (x,), {})
    tracers: list[tuple[GraphAppendingTracer, str, str]] = [
        (Lists(graph), "the tuple `args`", "a list"),
        (Pairs(graph), "the dict `kwargs`", "a tuple"),
    ]
    for tracer, was, became in tracers:
        with raising(
            AssertionError,
            "must be a",
            f"The tracer's create_arg makes {became} of {was}, which a graph "
            "refuses. It must be asked once for the whole of it, and the node "
            "made with what came back.",
        ):
            tracer.create_proxy("call_method", "relu", (x,), {"k": 1})


@pytest.mark.exercise("proxy.TracerBase.create_proxy")
@pytest.mark.parametrize("row", [tuple, dict])
def test_a_row_of_arguments_does_not_vanish(row: type) -> None:
    class Forgetful(GraphAppendingTracer):
        """Has no answer for rows of arguments of one type."""

        def create_arg(self, a: AnyValue) -> Argument:
            return None if isinstance(a, row) else super().create_arg(a)

    graph, (x,) = begin("x")
    with raising(
        AssertionError,
        "gave None",
        f"The tracer's create_arg makes None of a {row.__name__}, which a "
        "graph takes for no arguments at all: the inputs would be lost "
        "without an error. Look at what came back, and raise.",
    ):
        Forgetful(graph).create_proxy("call_method", "relu", (x,), {"k": 1})
    same(
        [node.name for node in graph.nodes],
        ["x"],
        "create_proxy refused the arguments and left a node in the graph: "
        "look at what came back before you call create_node.",
    )


# -- and so the operators ----------------------------------------------------


@pytest.mark.exercise("proxy.TracerBase.create_proxy", "proxy._records.method")
def test_every_operator_of_the_table_is_recorded() -> None:
    for row in OPERATORS:
        if row.in_place:
            continue
        graph, (x, y) = begin("x", "y")
        row.function(*[x, y][: row.arity])
        node = next(iter(reversed(graph.nodes)))
        check(
            node.target is row.function,
            f"`{row.template.format('x', 'y')}` must be recorded as one call "
            f"of operator.{row.name}.",
            picture=str(graph),
        )


@pytest.mark.exercise("proxy._records.method", "proxy._reflects.method")
def test_the_operands_stay_in_the_order_of_the_source() -> None:
    graph, (x,) = begin("x")
    _ = 1 - x
    _ = x - 1
    same_graph(
        graph,
        """
        graph():
            %x : [num_users=2] = placeholder[target=x]
            %sub : [num_users=0] = call_function[target=operator.sub]\
(args = (1, %x), kwargs = {})
            %sub_1 : [num_users=0] = call_function[target=operator.sub]\
(args = (%x, 1), kwargs = {})
        """,
        "`1 - x` and `x - 1` are the same function with other arguments.",
    )


@pytest.mark.exercise("proxy.TracerBase.create_proxy")
def test_in_place_syntax_makes_a_new_value() -> None:
    graph, (x, y) = begin("x", "y")
    value: AnyValue = x
    value += y
    check(
        value is not x and x.node.name == "x",
        "A Proxy has no `__iadd__`, so `value += y` binds `value` again, to "
        "a new Proxy; the old one still stands for the old value.",
    )
    node = next(iter(reversed(graph.nodes)))
    check(
        node.target is operator.add,
        "`value += y` on proxies is recorded as operator.add.",
        picture=str(graph),
    )


def residual(linear: Callable[[Proxy], Proxy], x: Proxy) -> Proxy:
    """The example without its relu."""
    return linear(x) + x


@pytest.mark.exercise("proxy.TracerBase.create_proxy")
def test_a_function_run_on_proxies_leaves_its_graph() -> None:
    graph, (x,) = begin("x")

    def linear(value: Proxy) -> Proxy:
        return value.tracer.create_proxy("call_module", "linear", (value,), {})

    residual(linear, x)
    same_graph(
        graph,
        """
        graph():
            %x : [num_users=2] = placeholder[target=x]
            %linear : [num_users=1] = call_module[target=linear]\
(args = (%x,), kwargs = {})
            %add : [num_users=0] = call_function[target=operator.add]\
(args = (%linear, %x), kwargs = {})
        """,
        "Running the function on a Proxy must record its graph.",
    )
    uses_intact(graph, "The recorded graph has an edge in one place only.")


@pytest.mark.exercise("proxy._reflects.method")
def test_the_proxy_may_be_on_the_right() -> None:
    names = reflectable_magic_methods.keys() - {"getitem"}
    rows = [one for one in OPERATORS if one.name in names]
    for row in rows:
        graph, (x,) = begin("x")
        row.function(2, x)
        node = next(iter(reversed(graph.nodes)))
        check(
            node.target is row.function
            and node.args == (2, x.node)
            and not node.kwargs,
            f"`{row.template.format(2, 'x')}` must be recorded as one call of "
            f"operator.{row.name} with the arguments (2, x): the other operand "
            f"comes first, as in the source.",
            picture=str(graph),
        )


@pytest.mark.exercise("proxy._reflects.method")
@pytest.mark.parametrize("other", [None, "text", [1]], ids=repr)
def test_the_operand_on_the_left_may_be_anything(other: AnyValue) -> None:
    graph, (x,) = begin("x")
    reflected: AnyValue = type(x).__rsub__
    found = reflected(x, other)
    check(
        isinstance(found, Proxy) and found.node.args == (other, x.node),
        f"`{other!r} - x` must be recorded, although the left operand is not a "
        "number: what the proxy stands for decides when the program runs, so "
        "the type of the other operand does not matter, nor does its truth.",
        picture=str(graph),
    )


class Counting(GraphAppendingTracer):
    """Counts what it is asked to record."""

    count = 0

    def create_proxy(self, *args: AnyValue, **kwargs: AnyValue) -> Proxy:
        """Count, and record.

        Args:
            *args: what is recorded.
            **kwargs: more of it.
        """
        self.count += 1
        return super().create_proxy(*args, **kwargs)


@pytest.mark.exercise("proxy._records.method", "proxy._reflects.method")
def test_operators_are_recorded_by_the_tracer_of_the_proxy() -> None:
    graph, (x,) = begin("x")
    tracer = Counting(graph)
    mine = Proxy(x.node, tracer)
    _ = -mine
    _ = mine @ mine
    same(
        tracer.count,
        2,
        "A tracer may override create_proxy to see all that is recorded, so "
        "an operator method asks `create_proxy` of the proxy's tracer.",
    )
    _ = 2**mine
    same(
        tracer.count,
        3,
        "`2 ** x` is recorded by the tracer of x, as `x ** 2` is.",
    )


@pytest.mark.exercise("proxy._records.method", "proxy._reflects.method")
def test_two_nodes_of_one_graph_have_two_tracers() -> None:
    graph = Graph()
    a, b = (Proxy(graph.placeholder(name)) for name in "ab")
    with working(
        "A pass wraps two nodes of one graph, Proxy(a) + Proxy(b), and each "
        "proxy has a tracer of its own. The first operand's tracer records; "
        "nobody asks for a common one."
    ):
        total = a + b
    check(
        total.tracer is a.tracer,
        "Proxy(a) + Proxy(b) is recorded by the tracer of the first operand.",
    )
    check(
        b.__radd__(a).tracer is b.tracer,
        "`b.__radd__(a)` is a + b, and it is b that Python asked: the "
        "reflected method records by the tracer of `self`, whatever the other "
        "operand is. A subclass of Proxy that overrides `__radd__` gets here.",
    )


@pytest.mark.exercise("proxy._records.method")
def test_none_is_an_operand_like_any_other() -> None:
    graph, (x,) = begin("x")
    _ = x == None  # noqa: E711
    node = next(iter(reversed(graph.nodes)))
    same(
        node.args,
        (x.node, None),
        "`x == None` has two operands, and the second is None. How many there "
        "are is said by how many the method is given, not by whether one is "
        "None.",
    )


@pytest.mark.exercise("proxy._records.method")
def test_an_operator_method_may_get_keywords() -> None:
    graph, (x,) = begin("x")
    power: AnyValue = type(x).__pow__
    power(x, 2, modulo=3)
    node = next(iter(reversed(graph.nodes)))
    check(
        node.args == (x.node, 2) and node.kwargs == {"modulo": 3},
        "What the method is given belongs to the node, keywords too.",
        picture=str(graph),
    )
    power(x, 2, 3)
    node = next(iter(reversed(graph.nodes)))
    check(
        node.args == (x.node, 2, 3),
        "pow has three operands here: what the method is given belongs to the "
        "node, all of it.",
        picture=str(graph),
    )
