"""Parameters, buffers and other tensors of the traced module."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from fx.node import Node
from fx.proxy import Proxy, TraceError
from fx.tracing.tracer import Tracer
from fx.use_def.values import AnyValue
from stages.checking import check, raising, same, same_graph, uses_intact
from stages.residual import Residual

READ = "tracing.tracer.Tracer.getattr"
ARGUMENT = "tracing.tracer.Tracer._state_node"


class Pair(nn.Module):
    """Two layers, a parameter and a buffer."""

    offset: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Linear(4, 4)
        self.right = Residual()
        self.scale = nn.Parameter(torch.ones(4))
        self.register_buffer("offset", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Both layers' results, scaled.

        Args:
            x: of shape (*, 4).
        """
        y: torch.Tensor = self.left(x) * self.scale
        z: torch.Tensor = self.right(y) / self.scale
        return z


class Weight(nn.Parameter):
    """A parameter of a class of the user's own."""


class Marked(torch.Tensor):
    """A tensor of a class of the user's own."""


class Buffers(Tracer):
    """A tracer that wants proxies for buffers too."""

    proxy_buffer_attributes = True


def started(root: nn.Module, tracer: Tracer | None = None) -> Tracer:
    """A tracer at the beginning of a trace of `root`, nothing patched."""
    tracer = tracer or Tracer()
    tracer._start(root)
    return tracer


def targets(tracer: Tracer) -> list[AnyValue]:
    """The targets of the nodes recorded so far."""
    return [node.target for node in tracer.graph.nodes]


# -- read --------------------------------------------------------------------


@pytest.mark.exercise(READ)
def test_a_parameter_that_is_read_is_a_proxy() -> None:
    pair = Pair()
    tracer = started(pair)
    found = tracer.getattr("scale", pair.scale, {})
    check(
        type(found) is Proxy,
        "Reading a parameter gives a Proxy; yours gave a "
        f"{type(found).__name__}, whose use is not recorded.",
    )
    same_graph(
        tracer.graph,
        """
        graph():
            %scale : [num_users=0] = get_attr[target=scale]
        """,
        "The parameter is fetched by a get_attr node.",
    )


@pytest.mark.exercise(READ)
def test_a_frozen_parameter_is_a_parameter() -> None:
    pair = Pair()
    pair.scale.requires_grad_(False)
    check(
        type(started(pair).getattr("scale", pair.scale, {})) is Proxy,
        "A parameter whose requires_grad is False is a parameter, too, and "
        "reading it gives a Proxy: else what is done with it would be done "
        "once, while tracing.",
    )


@pytest.mark.exercise(READ)
def test_a_parameter_of_a_subclass_is_a_parameter() -> None:
    pair = Pair()
    pair.scale = Weight(torch.ones(4))
    check(
        type(started(pair).getattr("scale", pair.scale, {})) is Proxy,
        "`scale` is of a class derived from nn.Parameter, so it is a "
        "parameter, and reading it gives a Proxy: ask `isinstance`, which "
        "knows subclasses, and not for the type.",
    )


@pytest.mark.exercise(READ)
def test_a_parameter_has_its_whole_path() -> None:
    pair = Pair()
    tracer = started(pair)
    cache: dict[str, Proxy] = {}
    tracer.getattr("weight", pair.left.weight, cache)
    tracer.getattr("weight", pair.right.linear.weight, cache)
    same(
        targets(tracer),
        ["left.weight", "right.linear.weight"],
        "Both layers have an attribute called weight. The target of get_attr "
        "is the whole path from the root.",
    )


@pytest.mark.exercise(READ)
def test_a_parameter_may_be_read_from_elsewhere() -> None:
    pair = Pair()
    tracer = started(pair)

    def forward(value: AnyValue) -> AnyValue:
        return tracer.getattr("weight", pair.left.weight, {})

    x = tracer.create_proxy("placeholder", "x", (), {})
    tracer.call_module(pair.right, forward, (x,), {})
    same(
        targets(tracer)[1:],
        ["left.weight"],
        "The module at `right` is running and reads the weight of `left`. "
        "The path is where the parameter is, and not the scope in which it "
        "is read with the attribute's name behind it: ask `_tensor_path`.",
    )


@pytest.mark.exercise(READ)
def test_a_parameter_is_fetched_once() -> None:
    pair = Pair()
    tracer = started(pair)
    cache: dict[str, Proxy] = {}
    first = tracer.getattr("scale", pair.scale, cache)
    try:
        again = tracer.getattr("scale", pair.scale, cache)
    except TraceError as error:
        check(
            "truth value" not in str(error),
            "A Proxy has no truth value, so `cache.get(path) or …` cannot be "
            "asked: ask whether the path is in the cache.",
        )
        raise
    check(
        first is again and targets(tracer) == ["scale"],
        "A parameter read twice is fetched once: the cache has its proxy.",
        picture=str(tracer.graph),
    )
    check(
        [*cache] == ["scale"] and cache["scale"] is first,
        "Keep the proxy in `parameter_proxy_cache`, under its path; it has "
        f"{cache}.",
    )
    tracer.getattr("scale", pair.scale, {})
    same(
        targets(tracer),
        ["scale", "scale"],
        "Another cache belongs to another trace, in which the parameter has "
        "not been fetched: keep proxies in the cache that is given only.",
    )


@pytest.mark.exercise(READ)
def test_a_parameter_whose_shape_is_fixed() -> None:
    pair = Pair()
    tracer = started(pair, Tracer(param_shapes_constant=True))
    same(
        type(tracer.getattr("scale", pair.scale, {})).__name__,
        "ParameterProxy",
        "With `param_shapes_constant`, reading a parameter gives a proxy that "
        "knows its shape: `_state_proxy` makes the right one.",
    )


@pytest.mark.exercise(READ)
def test_other_values_are_what_they_are() -> None:
    pair = Pair()
    tracer = started(pair)
    loose = torch.ones(4)
    for name, value in (
        ("left", pair.left),
        ("training", True),
        ("loose", loose),
        ("offset", pair.offset),
    ):
        check(
            tracer.getattr(name, value, {}) is value,
            f"`{name}` is not a parameter: it is read as it is. (A buffer too, "
            "unless the tracer has `proxy_buffer_attributes`.)",
        )
    same(targets(tracer), [], "Reading these must record nothing.")


@pytest.mark.exercise(READ)
def test_a_parameter_from_elsewhere_is_what_it_is() -> None:
    tracer = started(Pair())
    other = nn.Parameter(torch.ones(2))
    try:
        found = tracer.getattr("other", other, {})
    except (NameError, ValueError) as error:
        found = error
    check(
        found is other,
        "A parameter that the root does not have is read as it is: only its "
        f"use in the graph would be wrong. Yours: {found!r}",
    )


@pytest.mark.exercise(READ)
def test_a_buffer_is_a_proxy_if_the_tracer_wants_it() -> None:
    pair = Pair()
    tracer = started(pair, Buffers())
    cache: dict[str, Proxy] = {}
    found = tracer.getattr("offset", pair.offset, cache)
    check(
        type(found) is Proxy and targets(tracer) == ["offset"],
        "With `proxy_buffer_attributes`, reading a buffer gives a Proxy of a "
        "get_attr node.",
    )
    check(
        tracer.getattr("offset", pair.offset, cache) is found,
        "A buffer read twice is fetched once, like a parameter: the cache "
        "has its proxy.",
        picture=str(tracer.graph),
    )
    loose = torch.ones(4)
    check(
        tracer.getattr("loose", loose, {}) is loose,
        "A tensor that is neither parameter nor buffer is read as it is.",
    )
    for value in (pair.left, 3, ["a", "list"]):
        try:
            found = tracer.getattr("other", value, {})
        except TypeError as error:
            found = error
        check(
            found is value,
            f"{value!r} is not a tensor, so not a buffer: it is read as it is. "
            f"Yours: {found!r}",
        )


@pytest.mark.exercise(READ)
def test_a_buffer_of_a_subclass_is_a_buffer() -> None:
    pair = Pair()
    pair.offset = torch.zeros(4).as_subclass(Marked)
    tracer = started(pair, Buffers())
    check(
        type(tracer.getattr("offset", pair.offset, {})) is Proxy,
        "The buffer is of a class derived from torch.Tensor, so it is a "
        "buffer, and with `proxy_buffer_attributes` reading it gives a Proxy: "
        "ask `isinstance`, and not for the type.",
    )


@pytest.mark.exercise(READ)
def test_the_example_is_traced() -> None:
    same_graph(
        Tracer().trace(Residual()),
        """
        graph():
            %x : torch.Tensor [num_users=2] = placeholder[target=x]
            %linear : [num_users=1] = call_module[target=linear]\
(args = (%x,), kwargs = {})
            %add : [num_users=1] = call_function[target=operator.add]\
(args = (%linear, %x), kwargs = {})
            %relu : [num_users=1] = call_function[target=torch.relu]\
(args = (%add,), kwargs = {})
            return relu
        """,
        "Tracing the example must leave its five nodes.",
    )


@pytest.mark.exercise(READ)
def test_a_parameter_used_twice_is_one_node_of_the_trace() -> None:
    graph = Tracer().trace(Pair())
    fetched = [node.target for node in graph.find_nodes(op="get_attr")]
    check(
        fetched.count("scale") == 1,
        "The parameter `scale` is read twice in one trace, and fetched once.",
        picture=str(graph),
    )
    uses_intact(graph, "A use of the parameter was lost.")


# -- as an argument ----------------------------------------------------------


@pytest.mark.exercise(ARGUMENT)
def test_a_parameter_as_an_argument() -> None:
    pair = Pair()
    tracer = started(pair)
    for parameter, path in (
        (pair.scale, "scale"),
        (pair.right.linear.weight, "right.linear.weight"),
    ):
        node = tracer.create_arg(parameter)
        check(
            isinstance(node, Node),
            "A parameter as an argument becomes a Node, which is what a node "
            f"can hold; yours is a {type(node).__name__}.",
        )
        same(
            targets(tracer)[-1],
            path,
            "The get_attr node has the whole path of the parameter.",
        )


@pytest.mark.exercise(ARGUMENT)
def test_a_parameter_inside_a_list() -> None:
    pair = Pair()
    tracer = started(pair)
    x = tracer.create_proxy("placeholder", "x", (), {})
    tracer.create_proxy("call_function", torch.cat, ([x, pair.scale],), {})
    same_graph(
        tracer.graph,
        """
        graph():
            %x : [num_users=1] = placeholder[target=x]
            %scale : [num_users=1] = get_attr[target=scale]
            %cat : [num_users=0] = call_function[target=torch.cat]\
(args = ([%x, %scale],), kwargs = {})
        """,
        "A parameter inside a list is fetched before the call that uses it.",
    )


@pytest.mark.exercise(ARGUMENT)
def test_a_buffer_as_an_argument() -> None:
    pair = Pair()
    tracer = started(pair)
    tracer.create_arg(pair.offset)
    same(
        targets(tracer),
        ["offset"],
        "The root has this buffer already: fetch it, do not store it as a "
        "constant a second time.",
    )


@pytest.mark.exercise(ARGUMENT)
def test_an_argument_is_found_without_a_walk() -> None:
    pair = Pair()
    tracer = started(pair)
    walks: list[str] = []

    def noting(name: str) -> Callable[..., AnyValue]:
        def walk(**options: AnyValue) -> AnyValue:
            walks.append(name)
            return getattr(nn.Module, name)(pair, **options)

        return walk

    for name in ("named_parameters", "named_buffers"):
        vars(pair)[name] = noting(name)
    tracer.create_arg(pair.right.linear.weight)
    tracer.create_arg(pair.offset)
    check(
        not walks,
        "A parameter and a buffer were arguments, and all tensors of the root "
        "were gone through for each: that makes a trace slow. `_tensor_path` "
        "has their paths since the beginning of the trace.",
        picture=f"gone through: {', '.join(walks)}",
    )


@pytest.mark.exercise(ARGUMENT)
def test_a_module_as_an_argument() -> None:
    pair = Pair()
    tracer = started(pair)
    try:
        tracer.create_arg(pair.right.linear)
    except NotImplementedError as error:
        check(
            not str(error).startswith("argument of type"),
            "A module of the root, a nested one too, becomes a get_attr "
            "node; yours was refused.",
        )
        raise
    same(
        targets(tracer),
        ["right.linear"],
        "A module as an argument is fetched by its path.",
    )


@pytest.mark.exercise(ARGUMENT)
def test_the_root_as_an_argument() -> None:
    pair = Pair()
    tracer = started(pair)
    tracer.create_arg(pair.scale)  # an unwritten function says so here
    with raising(
        TraceError,
        "no node can fetch it",
        'The root itself is an argument. It has the path "", which is a path, '
        "so `_fetch` is asked for a get_attr node, and refuses. Ask "
        "`path is None`, since `if path` takes this path for none.",
    ):
        tracer._state_node(pair)


@pytest.mark.exercise(ARGUMENT)
def test_what_is_no_state_of_the_root_is_none() -> None:
    tracer = started(Pair())
    for what, value in (
        ("A module that the root does not have", Residual()),
        ("A tensor that the root does not have", torch.ones(4)),
        ("The number 3", 3),
        ("A string", "text"),
        ("None", None),
    ):
        try:
            found = tracer._state_node(value)
        except (NameError, UnboundLocalError) as error:
            check(
                False,
                f"{what} is not refused here: the answer is None, and "
                f"create_arg goes on. Yours raised {type(error).__name__}: "
                f"{error}",
            )
            return
        check(
            found is None,
            f"{what} is an argument, and the answer is None; yours gave "
            f"{found!r}.",
        )
    same(targets(tracer), [], "Nothing of this is fetched.")


@pytest.mark.exercise(ARGUMENT)
def test_a_parameter_outside_of_the_root_is_refused() -> None:
    pair = Pair()
    tracer = started(pair)
    tracer.create_arg(pair.scale)  # an unwritten function says so here
    with raising(
        NameError,
        "parameter is not a member of this module",
        "A Parameter that no module of the root has would become a constant "
        "that is never trained: it is refused.",
    ):
        tracer.create_arg(nn.Parameter(torch.ones(2)))


@pytest.mark.exercise(ARGUMENT)
def test_a_parameter_of_a_subclass_is_refused_as_well() -> None:
    tracer = started(Pair())
    with raising(
        NameError,
        "parameter is not a member of this module",
        "The parameter is of a class derived from nn.Parameter, so it is a "
        "parameter, and one that the root does not have is refused: ask "
        "`isinstance`, which knows subclasses, and not for the type.",
    ):
        tracer.create_arg(Weight(torch.ones(2)))


@pytest.mark.exercise(ARGUMENT)
def test_another_tensor_becomes_a_constant() -> None:
    pair = Pair()
    tracer = started(pair)
    loose = torch.ones(4)
    tracer.create_arg(loose)
    same(
        targets(tracer),
        ["_tensor_constant0"],
        "A tensor that is neither parameter nor buffer is not state: give "
        "None, and create_arg stores it as a constant.",
    )
    check(
        pair.get_buffer("_tensor_constant0") is loose
        if "_tensor_constant0" in pair._buffers
        else vars(pair)["_tensor_constant0"] is loose,
        "The constant on the root must be the tensor itself.",
    )
