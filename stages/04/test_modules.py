"""Which modules are leaves, where they are, and what calling one does."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
import torch
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

LEAF = "tracing.tracer.Tracer.is_leaf_module"
PATH = "tracing.tracer.Tracer.path_of_module"
CALL = "tracing.tracer.Tracer.call_module"


class Childless(nn.Module):
    """A module of the user's that has no children."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Twice x.

        Args:
            x: of any shape.
        """
        return x + x


class OwnLinear(nn.Linear):
    """A layer of the user's, derived from one of torch."""


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


# -- leaves ------------------------------------------------------------------


@pytest.mark.exercise(LEAF)
def test_layers_of_torch_are_leaves() -> None:
    for module in (nn.Linear(1, 1), nn.ReLU(), nn.MultiheadAttention(4, 1)):
        name = type(module).__name__
        check(
            Tracer().is_leaf_module(module, "layer"),
            f"nn.{name} comes with torch.nn, so it is a leaf, with children "
            "or without.",
        )


@pytest.mark.exercise(LEAF)
def test_torch_nn_is_more_than_its_layers() -> None:
    place = {"__module__": "torch.nn.utils.parametrize"}
    other: Callable[[], nn.Module] = type("List", (nn.Module,), place)
    check(
        Tracer().is_leaf_module(other(), "parametrizations"),
        "A class that is defined in torch.nn.utils.parametrize is in torch.nn, "
        "too, so its modules are leaves.",
    )


@pytest.mark.exercise(LEAF)
def test_modules_of_the_user_are_traced_through() -> None:
    for module in (Residual(), Childless()):
        name = type(module).__name__
        check(
            not Tracer().is_leaf_module(module, "block"),
            f"{name} is the user's own class and is traced through, even if "
            "it has no children.",
        )


@pytest.mark.exercise(LEAF)
def test_a_sequential_is_traced_through() -> None:
    check(
        not Tracer().is_leaf_module(nn.Sequential(nn.ReLU()), "layers"),
        "nn.Sequential comes with torch.nn, but it only calls one module "
        "after the other: it is traced through, to show them.",
    )
    place = {"__module__": "torch.ao.nn.intrinsic.modules.fused"}
    fused: Callable[[], nn.Module] = type("LinearReLU", (nn.Sequential,), place)
    check(
        not Tracer().is_leaf_module(fused(), "layers"),
        "A subclass of nn.Sequential that comes with torch.ao.nn is a "
        "Sequential too, and is traced through.",
    )


@pytest.mark.exercise(LEAF)
def test_a_subclass_of_the_user_is_traced_through() -> None:
    check(
        not Tracer().is_leaf_module(OwnLinear(1, 1), "layer"),
        "A user's subclass of nn.Linear may do anything in its forward: it "
        "is traced through.",
    )


@pytest.mark.exercise(LEAF)
def test_layers_of_quantization_are_leaves() -> None:
    for kind in ("quantized", "qat"):
        place = {"__module__": f"torch.ao.nn.{kind}.modules.linear"}
        layer: Callable[[], nn.Module] = type("Linear", (nn.Module,), place)
        check(
            Tracer().is_leaf_module(layer(), "layer"),
            "Modules of torch.ao.nn are leaves as those of torch.nn are, and "
            f"one of torch.ao.nn.{kind} is not to you.",
        )


@pytest.mark.exercise(LEAF)
def test_modules_of_other_packages_are_traced_through() -> None:
    for package in ("torchvision.ops.misc", "my.torch.nn", "torch.optim.own"):
        other: Callable[[], nn.Module]
        other = type("Layer", (nn.Module,), {"__module__": package})
        check(
            not Tracer().is_leaf_module(other(), "layer"),
            f"A class that is defined in {package} does not come with "
            "torch.nn or torch.ao.nn, so it is traced through.",
        )


# -- paths -------------------------------------------------------------------


@pytest.mark.exercise(PATH)
def test_the_path_during_a_trace() -> None:
    net = Net()
    tracer = started(net)
    for path in ("first", "first.linear", "rest.0.linear"):
        same(
            tracer.path_of_module(net.get_submodule(path)),
            path,
            f"The module at {path} must be found by its whole path.",
        )


@pytest.mark.exercise(PATH)
def test_the_path_of_the_root() -> None:
    net = Net()
    tracer = started(net)
    try:
        path = tracer.path_of_module(net)
    except NameError:
        path = "(nothing)"
    same(path, "", 'The root has a path: the empty one, "".')


@pytest.mark.exercise(PATH)
def test_the_path_after_a_trace() -> None:
    net = Net()
    tracer = started(net)
    tracer.submodule_paths = None
    try:
        path = tracer.path_of_module(net.first.linear)
    except (NameError, TypeError, AttributeError):
        path = "(nothing)"
    same(
        path,
        "first.linear",
        "Without `submodule_paths` the root's modules, nested ones too, "
        "must be searched.",
    )
    net.add_module("late", nn.ReLU())
    with working(
        "The trace is over, and the root has got another module since. Search "
        "again at each question: what a search has found may be old."
    ):
        tracer.path_of_module(net.get_submodule("late"))


@pytest.mark.exercise(PATH)
def test_a_path_is_one_look_up_during_a_trace() -> None:
    net = Net()
    tracer = started(net)
    walks: list[str] = []

    def walk(**options: AnyValue) -> Iterator[tuple[str, nn.Module]]:
        walks.append("named_modules")
        every: Iterator[tuple[str, nn.Module]]
        every = nn.Module.named_modules(net, **options)
        return every

    class Paths(dict[nn.Module, str]):
        """Notes when somebody goes through it."""

        def __iter__(self) -> Iterator[nn.Module]:
            walks.append("submodule_paths")
            return super().__iter__()

        def items(self) -> AnyValue:
            """Note it, and give the pairs."""
            walks.append("submodule_paths")
            return super().items()

    vars(net)["named_modules"] = walk
    tracer.submodule_paths = Paths(tracer.submodule_paths or {})
    tracer.path_of_module(net.first)
    check(
        not walks,
        "During a trace `submodule_paths` has every path: searching all the "
        "modules for each call makes a trace slow. Look the module up in the "
        "dict.",
        picture=f"gone through: {', '.join(walks)}",
    )


@pytest.mark.exercise(PATH)
def test_a_module_that_is_installed_during_a_trace() -> None:
    net = Net()
    tracer = started(net)
    tracer.path_of_module(net.first)  # an unwritten function says so here
    net.later = Residual()
    with raising(
        NameError,
        "not installed as a submodule",
        "The code that is traced has installed a module. During a trace "
        "`submodule_paths` alone says what is installed: the module is "
        "refused, as in torch.fx.",
    ):
        tracer.path_of_module(net.later)


@pytest.mark.exercise(PATH)
def test_a_module_with_two_paths_has_the_first() -> None:
    net = Net()
    tracer = started(net)
    same(
        tracer.path_of_module(net.again),
        "rest.0",
        "A module that is there twice has the path found first.",
    )
    tracer.submodule_paths = None
    same(
        tracer.path_of_module(net.again),
        "rest.0",
        "A module that is there twice has the path found first, after the "
        "trace as well.",
    )


@pytest.mark.exercise(PATH)
def test_a_module_from_elsewhere_has_no_path() -> None:
    net = Net()
    tracer = started(net)
    tracer.path_of_module(net.first)  # an unwritten function says so here
    sentence = "A module outside the root is refused, with a NameError."
    for paths in (tracer.submodule_paths, None):
        tracer.submodule_paths = paths
        try:
            with raising(NameError, "not installed as a submodule", sentence):
                tracer.path_of_module(Residual())
        except LookupError as error:
            check(False, f"{sentence} Yours raised {type(error).__name__}.")


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


@pytest.mark.exercise("tracing.tracer.Tracer.is_leaf_module")
def test_only_a_sequential_is_not_a_leaf() -> None:
    lists = torch.nn.ModuleList([torch.nn.ReLU()])
    check(
        Tracer().is_leaf_module(lists, "lists"),
        "A ModuleList comes with torch.nn and is not a Sequential: it is a "
        "leaf, as every other module of torch.nn.",
    )
