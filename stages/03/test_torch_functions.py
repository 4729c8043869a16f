"""Calls of torch with proxies among the arguments."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from fx.graph import Graph
from fx.proxy import GraphAppendingTracer, Proxy, _common_tracer, proxies_in
from fx.use_def.values import AnyValue, Argument
from stages.checking import check, raising, same, same_graph, uses_intact

EXERCISE = "proxy.Proxy.__torch_function__"
FOUND = "proxy.proxies_in"
COMMON = "proxy._common_tracer"


def begin(*names: str) -> tuple[Graph, list[Proxy]]:
    """A graph with placeholders, and a proxy for each, of one tracer."""
    graph = Graph()
    tracer = GraphAppendingTracer(graph)
    return graph, [Proxy(graph.placeholder(name), tracer) for name in names]


@dataclasses.dataclass
class Window:
    """A dataclass of the user's code."""

    start: AnyValue
    size: AnyValue = 1


class Alike(GraphAppendingTracer):
    """A tracer that is equal to all others."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


class Scripting(GraphAppendingTracer):
    """A tracer that can hold what TorchScript calls methods of."""

    def create_arg(self, a: AnyValue) -> Argument:
        """A string for a scripted module; any other value as usual."""
        if isinstance(a, torch._C.ScriptObject):
            return "owner"
        return super().create_arg(a)


@contextmanager
def recording(call: str, sentence: str) -> Iterator[None]:
    """Say that `call` must be recorded if it raises instead."""
    try:
        yield
    except (AttributeError, TypeError, ValueError, IndexError) as error:
        check(
            False,
            f"`{call}` was not recorded but raised {type(error).__name__}: "
            f"{error}. {sentence}",
        )


def found_in(*values: AnyValue, fields: bool = True) -> list[int]:
    """The identities of the proxies, because `==` of two is recorded."""
    return [*map(id, proxies_in(values, fields=fields))]


@pytest.mark.exercise(FOUND)
def test_proxies_are_found_at_any_depth() -> None:
    _, (x, y, z) = begin("x", "y", "z")
    same(
        found_in(x, 1, "text", None, {"key": [(2, y)]}, slice(0, z), [], x),
        [*map(id, (x, y, z, x))],
        "Proxies are in containers at any depth, and come from left to right.",
    )
    same(found_in(3, [], {"x": "y"}), [], "There is no proxy in these.")


@pytest.mark.exercise(FOUND)
def test_an_attribute_is_a_proxy_that_stays_without_a_node() -> None:
    graph, (x,) = begin("x")
    shape = x.shape
    same(
        found_in([shape]),
        [id(shape)],
        "An `Attribute` is a proxy too, and so is any subclass.",
    )
    same(
        len(graph.nodes),
        1,
        "To look for proxies records nothing: an Attribute whose node is "
        "asked for fetches it.",
    )


@pytest.mark.exercise(FOUND)
def test_fields_are_looked_into_where_asked_for() -> None:
    _, (x, y) = begin("x", "y")
    held = [Window(x), {"w": Window(1, [y])}]
    same(
        found_in(*held),
        [id(x), id(y)],
        "With `fields=True` a proxy may be a field of a dataclass.",
    )
    same(
        found_in(*held, x, fields=False),
        [id(x)],
        "With `fields=False` dataclasses are not looked into, at any depth.",
    )
    same(found_in(Window), [], "A class of dataclasses has no fields itself.")


@pytest.mark.exercise(COMMON)
def test_the_tracer_is_that_of_any_proxy() -> None:
    _, (x,) = begin("x")
    for args, kwargs in (
        ((1, [x]), {}),
        ((), {"other": x}),
        ((Window(x),), {"other": None}),
    ):
        with recording(f"{args}, {kwargs}", "The proxy may be anywhere."):
            tracer = _common_tracer(torch.add, args, kwargs)
        check(
            tracer is x.tracer,
            "There is one proxy, by position, by keyword or in a field of a "
            "dataclass, and its tracer records.",
        )


@pytest.mark.exercise(COMMON)
@pytest.mark.parametrize("kind", [GraphAppendingTracer, Alike])
def test_tracers_are_one_if_they_are_the_same_object(
    kind: type[GraphAppendingTracer],
) -> None:
    graph = Graph()
    x, y = (Proxy(graph.placeholder(name), kind(graph)) for name in ("x", "y"))
    for args, kwargs in (
        ((x, x, y), {}),
        ((x,), {"other": [y]}),
        ((x, Window(y)), {}),
    ):
        with raising(
            RuntimeError,
            "multiple different tracers",
            "All proxies of a call must be of one tracer, wherever they are, "
            "and no tracer is another one, even if `==` says so.",
        ):
            _common_tracer(torch.add, args, kwargs)


@pytest.mark.exercise(EXERCISE)
def test_a_function_is_a_call_function() -> None:
    graph, (x,) = begin("x")
    with recording("torch.relu(x)", "torch may give None for kwargs."):
        torch.relu(x)
    same_graph(
        graph,
        """
        graph():
            %x : [num_users=1] = placeholder[target=x]
            %relu : [num_users=0] = call_function[target=torch.relu]\
(args = (%x,), kwargs = {})
        """,
        "A call of a function of torch is one call_function node.",
    )


@pytest.mark.exercise(EXERCISE)
def test_the_result_can_go_on() -> None:
    graph, (x, y) = begin("x", "y")
    torch.sum(torch.relu(x) + y, dim=0)
    same_graph(
        graph,
        """
        graph():
            %x : [num_users=1] = placeholder[target=x]
            %y : [num_users=1] = placeholder[target=y]
            %relu : [num_users=1] = call_function[target=torch.relu]\
(args = (%x,), kwargs = {})
            %add : [num_users=1] = call_function[target=operator.add]\
(args = (%relu, %y), kwargs = {})
            %sum_1 : [num_users=0] = call_function[target=torch.sum]\
(args = (%add,), kwargs = {dim: 0})
        """,
        "What torch.relu gives is a Proxy, and keyword arguments are kept.",
    )
    uses_intact(graph, "A use was lost between two calls of torch.")


@pytest.mark.exercise(EXERCISE)
def test_a_proxy_inside_a_list_is_enough() -> None:
    graph, (x, y) = begin("x", "y")
    sentence = "The proxy that knows the tracer may be inside a container."
    with recording("torch.cat([x, y])", sentence):
        torch.cat([x, y])
    with recording("torch.where(c, 1, x)", "It may be the last argument."):
        torch.where(torch.ones(2) > 0, 1, x)
    same(
        [node.target for node in graph.nodes][2:],
        [torch.cat, torch.where],
        "Both calls have a proxy among the arguments, and so are recorded.",
    )
    uses_intact(graph, "A proxy inside a list is a use as well.")


@pytest.mark.exercise(EXERCISE)
def test_a_method_of_a_tensor_is_a_call_method() -> None:
    graph, (x,) = begin("x")
    torch.zeros(2).mul_(x)
    node = next(iter(reversed(graph.nodes)))
    same(
        (node.op, node.target),
        ("call_method", "mul_"),
        "`tensor.mul_(x)` is a method of a tensor: a call_method whose "
        "target is the method's name.",
    )
    check(
        isinstance(node.args[0], torch.Tensor) and node.args[1] is x.node,
        "The tensor whose method it is comes first among the arguments.",
    )


@pytest.mark.exercise(EXERCISE)
def test_a_method_of_a_tensor_may_be_a_python_function() -> None:
    graph, (x,) = begin("x")
    _ = torch.zeros(2) // x
    node = next(iter(reversed(graph.nodes)))
    same(
        (node.op, node.target),
        ("call_method", "__floordiv__"),
        "`tensor // x` is a method of a tensor, too, although torch has "
        "written `Tensor.__floordiv__` in Python and not in C++: the type of "
        "the function does not tell. `_is_tensor_method` knows.",
    )


@pytest.mark.exercise(EXERCISE)
def test_keyword_arguments_of_every_kind_of_call() -> None:
    graph, (x,) = begin("x")
    sentence = "The proxy may be a keyword argument, and the only one."
    with recording("torch.add(tensor, other=x)", sentence):
        torch.add(torch.ones(2), other=x)
    with recording("tensor.add(other=x)", sentence):
        torch.ones(2).add(other=x)
    same(
        [(n.op, [*n.kwargs.items()]) for n in list(graph.nodes)[1:]],
        [
            ("call_function", [("other", x.node)]),
            ("call_method", [("other", x.node)]),
        ],
        "A keyword argument stays one, in a call of a function and in a call "
        "of a method.",
    )
    uses_intact(graph, "A keyword argument is a use as well.")


@pytest.mark.exercise(EXERCISE)
def test_the_name_is_made_from_the_function() -> None:
    graph, (x,) = begin("x")
    torch.nn.functional.layer_norm(x, [4])
    torch.sum(x)
    torch._C._nn.gelu(x)
    same(
        [node.name for node in graph.nodes][1:],
        ["layer_norm", "sum_1", "gelu"],
        "A node's name is made from its target, the function.",
    )
    graph, (x,) = begin("x")
    Proxy.__torch_function__(camelCase, (Proxy,), (x,))
    same(
        [node.name for node in graph.nodes][1:],
        ["camel_case"],
        "The node of `camelCase` is named `camel_case`. Leave `name` out, and "
        "create_node makes a name in Python's style from the target.",
    )


def camelCase(value: AnyValue) -> AnyValue:
    """A function whose name is not in the style of node names."""
    return value


@pytest.mark.exercise(EXERCISE)
def test_two_tracers_in_one_call() -> None:
    _, (x,) = begin("x")
    _, (other,) = begin("other")
    torch.relu(x)  # an unwritten __torch_function__ says so here
    sentence = (
        "Proxies of two traces met in one call of torch: no graph can have "
        "both, so the call is refused."
    )
    with raising(RuntimeError, "multiple different tracers", sentence):
        torch.add(x, other)
    with raising(RuntimeError, "multiple different tracers", sentence):
        torch.cat([x, other])
    with raising(
        RuntimeError,
        "multiple different tracers",
        "Proxies of two traces met in one call of torch, of which one is a "
        "keyword argument: `_common_tracer` asks all arguments, so give it "
        "args and kwargs together.",
    ):
        torch.add(x, other=other)


@pytest.mark.exercise(EXERCISE)
def test_a_higher_order_operator_with_a_function() -> None:
    _, (x,) = begin("x")
    torch.relu(x)
    with raising(
        RuntimeError,
        "arbitrary callable argument",
        "A higher-order operator was given a Python function. The function "
        "would not be traced, so the call is refused.",
    ):
        cond = torch.ops.higher_order.cond
        Proxy.__torch_function__(cond, (Proxy,), (x, len, abs, (x,)))
    named: dict[str, AnyValue] = {"true_fn": len, "operands": (x,)}
    try:
        Proxy.__torch_function__(cond, (Proxy,), (x,), named)
        said = "nothing was raised"
    except (RuntimeError, NotImplementedError) as error:
        said = str(error)
    check(
        "arbitrary callable argument" in said,
        "The Python function is given to the operator by keyword, and is "
        "refused all the same: give `refuse_functions` the keyword arguments.",
        picture=f"yours: {said}",
    )


@pytest.mark.exercise(EXERCISE)
def test_a_higher_order_operator_without_a_function() -> None:
    graph, (x,) = begin("x")
    cond = torch.ops.higher_order.cond
    try:
        result: AnyValue = Proxy.__torch_function__(cond, (Proxy,), (x, (x,)))
    except RuntimeError as error:
        check(
            "arbitrary callable argument" not in str(error),
            "No Python function is among the arguments of this higher-order "
            "operator, and yours refused it: `refuse_functions` decides.",
        )
        raise
    node = next(iter(reversed(graph.nodes)))
    same(
        (node.op, node.name, node.args),
        ("call_function", "cond", (x.node, (x.node,))),
        "A higher-order operator that is given no Python function is "
        "recorded like any function.",
    )
    check(
        type(result) is Proxy and result.node is node,
        "The recorded operation must come back as a Proxy of its node.",
    )


@pytest.mark.exercise(EXERCISE)
def test_a_script_method_is_called_on_its_owner() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        scripted = torch.jit.script(torch.nn.ReLU())
    graph = Graph()
    x = Proxy(graph.placeholder("x"), Scripting(graph))
    method: AnyValue = scripted.forward
    Proxy.__torch_function__(method, (Proxy,), (x,), {"scale": 2})
    node = next(iter(reversed(graph.nodes)))
    same(
        (node.op, node.target, node.args),
        ("call_method", "forward", ("owner", x.node)),
        "A method of a scripted module is a call_method of its name, and "
        "its owner comes first among the arguments.",
    )
    same(
        dict(node.kwargs),
        {"scale": 2},
        "A method of a scripted module keeps its keyword arguments.",
    )
