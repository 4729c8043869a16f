"""Which modules are leaves, where they are, and what calling one does."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress

import pytest
from torch import nn

from fx.proxy import Proxy
from fx.tracing.tracer import Tracer
from fx.use_def.values import AnyValue
from stages.checking import (
    check,
    raising,
    same,
    same_graph,
    uses_intact,
    working,
)
from stages.residual import Residual

CALL = "tracing.tracer.Tracer.call_module"


class Net(nn.Module):
    """Two blocks, one inside a list; the second is there twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first = Residual()
        self.rest = nn.ModuleList([Residual()])
        self.again = self.rest[0]


class Observed(Tracer):
    """A tracer that has blocks as leaves and notes what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Whether `m` is a Residual.

        Args:
            m: the module that is called.
            module_qualified_name: its path.
        """
        self.asked.append(module_qualified_name)
        return isinstance(m, Residual)


class Failing(Tracer):
    """A tracer that can record nothing."""

    def create_proxy(self, *args: AnyValue, **kwargs: AnyValue) -> Proxy:
        """Refuse."""
        raise ValueError("an argument that no node can hold")


def started(root: nn.Module, tracer: Tracer | None = None) -> Tracer:
    """A tracer at the beginning of a trace of `root`, nothing patched."""
    tracer = tracer or Tracer()
    tracer._start(root)
    return tracer


def placeholder(tracer: Tracer) -> Proxy:
    """A proxy for an input of the trace."""
    return tracer.create_proxy("placeholder", "x", (), {})


def refuse(*args: AnyValue, **kwargs: AnyValue) -> AnyValue:
    """A forward that must not run."""
    check(
        False,
        "A leaf is not entered: its forward must not be called, only the "
        "call recorded.",
    )


# -- calls -------------------------------------------------------------------


@pytest.mark.exercise(CALL)
def test_a_leaf_is_one_node() -> None:
    net = Net()
    tracer = started(net)
    x = placeholder(tracer)
    tracer.call_module(net.first.linear, refuse, (x,), {"scale": 2})
    same_graph(
        tracer.graph,
        """
        graph():
            %x : [num_users=1] = placeholder[target=x]
            %first_linear : [num_users=0] = call_module[target=first.linear]\
(args = (%x,), kwargs = {scale: 2})
        """,
        "A leaf is one call_module node, whose target is the path of the "
        "module from the root.",
    )
    uses_intact(tracer.graph, "The call of the leaf lost a use.")


@pytest.mark.exercise(CALL)
def test_a_leaf_gives_a_proxy() -> None:
    block = Residual()
    tracer = started(block)
    x = placeholder(tracer)
    result = tracer.call_module(block.linear, refuse, (x,), {})
    same(
        type(result).__name__,
        "Proxy",
        "Calling a leaf gives a Proxy for its result.",
    )


@pytest.mark.exercise(CALL)
def test_another_module_is_run() -> None:
    net = Net()
    tracer = started(net)
    x = placeholder(tracer)
    given: list[object] = []

    def forward(*args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        given.extend([args[0] is x, kwargs])
        return "whatever it gives"

    tracer.call_module(net.first, forward, (x,), {})
    same(
        given,
        [True, {}],
        "A module that is not a leaf is run by the `forward` handed in, which "
        "calls it for real, hooks included.",
    )
    result = tracer.call_module(net.first, forward, (x,), {"scale": 2})
    same(given[2:], [True, {"scale": 2}], "Keyword arguments are passed on.")
    same(
        result,
        "whatever it gives",
        "The result of the call is what `forward` gave.",
    )
    check(len(tracer.graph.nodes) == 1, "Nothing is recorded for the call.")


@pytest.mark.exercise(CALL)
def test_the_tracer_decides_what_is_a_leaf() -> None:
    net = Net()
    tracer = Observed()
    started(net, tracer)
    x = placeholder(tracer)
    tracer.call_module(net.first, lambda *args: None, (x,), {})
    same(
        tracer.asked,
        ["first"],
        "A tracer overrides `is_leaf_module` to draw the line elsewhere: ask "
        "`self`, once, with the module and its path.",
    )
    tracer.call_module(net.first, lambda *args: None, (x,), {})
    same(
        tracer.asked,
        ["first", "first"],
        "The module is called a second time. `is_leaf_module` is asked with "
        "the path of the module; `first@1` is the name of the call.",
    )
    check(
        len(tracer.graph.nodes) == 3,
        "`is_leaf_module` said leaf, so the call must be recorded.",
        picture=str(tracer.graph),
    )


class Scoped(Tracer):
    """A tracer whose leaves depend on where it is."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, list[str]]] = []

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Note the scope, and say yes.

        Args:
            m: the module that is called.
            module_qualified_name: its path.
        """
        self.seen.append((self.scope.module_path, [*self.module_stack]))
        return True


@pytest.mark.exercise(CALL)
def test_the_leaf_is_asked_for_inside_its_scope() -> None:
    net = Net()
    tracer = Scoped()
    started(net, tracer)
    tracer.call_module(net.first, refuse, (placeholder(tracer),), {})
    same(
        tracer.seen,
        [("first", ["first"])],
        "While `is_leaf_module` answers, the call is open: `self.scope` is "
        "that of the module, and `self.module_stack` has it. Enter the scope, "
        "then ask.",
    )


@pytest.mark.exercise(CALL)
def test_a_leaf_is_named_by_its_path_each_time() -> None:
    net = Net()
    tracer = started(net)
    x = placeholder(tracer)
    for _ in range(2):
        tracer.call_module(net.first.linear, refuse, (x,), {})
    same(
        [node.target for node in list(tracer.graph.nodes)[1:]],
        ["first.linear", "first.linear"],
        "The target of call_module is the path by which the module is found, "
        "and the second call finds it there, too. Only the key in "
        "`self.module_stack` has the number of the call.",
    )


@pytest.mark.exercise(CALL)
def test_a_call_is_counted_before_it_is_made() -> None:
    net = Net()
    tracer = started(net)
    counted: list[int] = []

    def forward(value: Proxy) -> None:
        counted.append(tracer.num_calls.get("first", 0))

    x = placeholder(tracer)
    for _ in range(2):
        tracer.call_module(net.first, forward, (x,), {})
    same(
        counted,
        [1, 2],
        "While a module runs, its call is counted in `self.num_calls` "
        "already: the module may call itself, and the inner call is the next "
        "one. Count before you run `forward`.",
    )


@pytest.mark.exercise(CALL)
def test_what_is_recorded_inside_knows_where_it_is() -> None:
    net = Net()
    tracer = started(net)
    x = placeholder(tracer)

    def forward(value: Proxy) -> Proxy:
        tracer.call_module(net.first.linear, refuse, (value,), {})
        return value + 1

    tracer.call_module(net.first, forward, (x,), {})
    same(
        tracer.node_name_to_scope,
        {
            "x": ("", None),
            "first_linear": ("first.linear", nn.Linear),
            "add": ("first", Residual),
        },
        "While a module is called, `self.scope` must say its path and class; "
        "after the inner call it must say the outer module's again.",
    )
    stacks = [
        list(node.meta.get("nn_module_stack", {}).values())
        for node in tracer.graph.nodes
    ]
    same(
        stacks,
        [
            [],
            [("first", Residual), ("first.linear", nn.Linear)],
            [("first", Residual)],
        ],
        "`self.module_stack` must hold the calls that are open, outermost "
        "first, and a call that has ended must be taken out: one is still "
        "open, or one is missing.",
    )


@pytest.mark.exercise(CALL)
def test_the_scope_is_one_object() -> None:
    net = Net()
    tracer = started(net)
    scope, inside = tracer.scope, []
    sentence = (
        "`self.scope` is one object, which other code may hold while the "
        "trace runs: set its two fields, and do not put another Scope in its "
        "place."
    )
    tracer.call_module(net.first, lambda: inside.append(tracer.scope), (), {})
    check(inside[0] is scope, sentence)
    check(tracer.scope is scope, sentence)
    same(
        (scope.module_path, scope.module_type),
        ("", None),
        "After the call the scope must be that of the root again.",
    )


@pytest.mark.exercise(CALL)
def test_all_is_as_before_after_an_error() -> None:
    net = Net()
    tracer = started(net)
    x = placeholder(tracer)

    def forward(value: Proxy) -> Proxy:
        raise ValueError("in the user's forward")

    with suppress(ValueError):
        tracer.call_module(net.first, forward, (x,), {})
    same(
        (tracer.scope.module_path, tracer.scope.module_type),
        ("", None),
        "The call raised, and `self.scope` still says that it is open.",
    )
    same(
        len(tracer.module_stack),
        0,
        "The call raised, and `self.module_stack` still holds it.",
    )
    failing = started(net, Failing())
    with suppress(ValueError):
        failing.call_module(net.first.linear, refuse, (), {})
    same(
        (failing.scope.module_path, len(failing.module_stack)),
        ("", 0),
        "The call of a leaf could not be recorded: create_proxy raised. "
        "`self.scope` and `self.module_stack` must be as before the call "
        "here as well.",
    )


class Interrupting(OrderedDict[str, AnyValue]):
    """A stack that an interrupt from the keyboard leaves as it was."""

    def __setitem__(self, key: str, value: AnyValue) -> None:
        raise KeyboardInterrupt


@pytest.mark.exercise(CALL)
def test_all_is_as_before_after_an_interrupt() -> None:
    net = Net()
    tracer = started(net)
    x = placeholder(tracer)
    tracer.module_stack = Interrupting()
    with (
        suppress(KeyboardInterrupt),
        working(
            "An interrupt came just before the call was put into "
            "`self.module_stack`. What restores the stack found no entry "
            "there, and raised an error in place of the interrupt."
        ),
    ):
        tracer.call_module(net.first.linear, refuse, (x,), {})
    same(
        (tracer.scope.module_path, tracer.scope.module_type),
        ("", None),
        "An interrupt came just before the call was put into "
        "`self.module_stack`, and `self.scope` still says that it is open.",
    )


@pytest.mark.exercise(CALL)
def test_all_is_as_before_if_nobody_knows_whether_it_is_a_leaf() -> None:
    class Unsure(Tracer):
        """A tracer that fails when it is asked for a leaf."""

        def is_leaf_module(self, m: nn.Module, name: str) -> bool:
            """Fail."""
            raise ValueError("in the user's is_leaf_module")

    net = Net()
    tracer = started(net, Unsure())
    with suppress(ValueError):
        tracer.call_module(net.first, refuse, (), {})
    same(
        (tracer.scope.module_path, len(tracer.module_stack)),
        ("", 0),
        "`is_leaf_module` belongs to the user and raised. It is asked while "
        "the call is open, so `self.scope` and `self.module_stack` must be as "
        "before the call here as well: ask it inside of the `try`.",
    )


@pytest.mark.exercise(CALL)
def test_all_is_as_before_after_an_interruption() -> None:
    net = Net()
    tracer = started(net)
    x = placeholder(tracer)

    def forward(value: Proxy) -> Proxy:
        raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        tracer.call_module(net.first, forward, (x,), {})
    same(
        (tracer.scope.module_path, len(tracer.module_stack)),
        ("", 0),
        "Ctrl-C ended the call, and the tracer still says that it is open. A "
        "KeyboardInterrupt is not an Exception: put scope and module_stack "
        "back in a `finally`.",
    )


@pytest.mark.exercise(CALL)
def test_each_call_has_a_key_of_its_own() -> None:
    net = Net()
    tracer = started(net)
    x = placeholder(tracer)
    for module in (net.first.linear, net.rest[0], net.first.linear):
        tracer.call_module(module, lambda value: value + 1, (x,), {})
    stacks = [
        node.meta.get("nn_module_stack", {})
        for node in list(tracer.graph.nodes)[1:]
    ]
    keys = [list(stack) for stack in stacks]
    same(
        keys,
        [["first.linear"], ["rest.0"], ["first.linear@1"]],
        "Three calls, one after the other, the last of the same module as "
        "the first. The key in `self.module_stack` is the path, and path@1 "
        "for the second call of that path in the trace.",
    )
    same(
        [path for stack in stacks for path, _ in stack.values()],
        ["first.linear", "rest.0", "first.linear"],
        "What is under a key is a pair of the path, without @1, and the class.",
    )


@pytest.mark.exercise(CALL)
@pytest.mark.parametrize("path", ["first", ""])
def test_a_module_can_be_open_twice(path: str) -> None:
    net = Net()
    tracer = started(net)
    x = placeholder(tracer)
    module = net.get_submodule(path)
    depths: list[int] = []

    def forward(value: Proxy, depth: int) -> None:
        depths.append(len(tracer.module_stack))
        if depth:
            tracer.call_module(module, forward, (value, depth - 1), {})
            depths.append(len(tracer.module_stack))

    tracer.call_module(module, forward, (x, 2), {})
    same(
        depths,
        [1, 2, 3, 2, 1],
        f"The module at {path!r} calls itself and is open three times: the "
        "calls need entries of their own in `self.module_stack`, so the path "
        "alone cannot be the key, and that of the root neither.",
    )


@pytest.mark.exercise(CALL)
def test_a_call_of_a_module_from_elsewhere() -> None:
    net = Net()
    tracer = started(net)
    x = placeholder(tracer)
    tracer.call_module(net.first.linear, refuse, (x,), {})
    with raising(
        NameError,
        "not installed as a submodule",
        "A module that the root does not have cannot be recorded.",
    ):
        tracer.call_module(nn.Linear(4, 4), refuse, (x,), {})
