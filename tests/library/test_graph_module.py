"""GraphModule: what it holds, how it is called, recompiled, copied."""

from __future__ import annotations

import copy
import gc
import io
import linecache
import math
import pickle
import pickletools
import pkgutil
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import cast, no_type_check

import pytest
import torch
from torch import nn

from fx._symbolic_trace import (
    PH,
    Tracer,
    is_fx_symbolic_tracing,
    is_fx_tracing,
    symbolic_trace,
)
from fx.extra.saving.pickled_modules import state_to_pickle
from fx.graph import Graph
from fx.graph_module import GraphModule, reduce_graph_module
from fx.node import Node
from fx.subgraph_rewriter import replace_pattern
from fx.use_def.lint import problems
from fx.use_def.values import AnyValue, Argument
from tests.library.same_graph import assert_same_graph

X = torch.linspace(-1, 1, 12).reshape(3, 4)


class Net(nn.Module):
    """A parameter, a buffer, a leaf, a nested leaf, a constant."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.param = nn.Parameter(torch.ones(4))
        self.register_buffer("buffer", torch.ones(4) * 2)
        self.inner = Inner()
        self.unused = nn.ReLU()

    @no_type_check
    def forward(self, x):
        x = self.linear(x) * self.param + self.buffer
        return self.inner(x) - torch.ones(4)


class Inner(nn.Module):
    """Traced through; its leaf has the path inner.act."""

    def __init__(self) -> None:
        super().__init__()
        self.act = nn.Tanh()

    @no_type_check
    def forward(self, x):
        return self.act(x)


class Tagged(GraphModule):
    """A user's subclass, with state and methods of its own."""

    def __init__(self, root: nn.Module, graph: Graph, tag: str = "new") -> None:
        super().__init__(root, graph, "Tagged")
        self.tag = tag

    def shout(self) -> str:
        return self.tag.upper()


def chain(count: int) -> Graph:
    graph = Graph()
    last = graph.placeholder("x")
    for _ in range(count):
        last = graph.call_function(torch.neg, (last,))
    graph.output(last)
    return graph


def module_of(
    build: Callable[[Graph, Node], Argument], root: AnyValue = None
) -> GraphModule:
    """A GraphModule of one parameter, `x`."""
    graph = Graph()
    graph.output(build(graph, graph.placeholder("x")))
    return GraphModule({} if root is None else root, graph)


def calling(path: str, root: AnyValue) -> GraphModule:
    return module_of(lambda graph, x: graph.call_module(path, (x,)), root)


def node_named(gm: GraphModule, name: str) -> Node:
    return next(node for node in gm.graph.nodes if node.name == name)


def through_pickle(value: AnyValue) -> AnyValue:
    return pickle.loads(pickle.dumps(value))


class TestConstruction:
    @pytest.mark.claims("graphmodule-class-per-instance")
    def test_each_instance_has_a_class_and_none_are_nested(self) -> None:
        first = symbolic_trace(Net())
        again = symbolic_trace(first)
        other = type(first)(first, copy.deepcopy(first.graph))
        assert torch.equal(other(X), first(X))
        copies = copy.deepcopy(copy.deepcopy(other)), copy.copy(other)
        modules = (first, again, other, *copies, through_pickle(other))
        assert len({type(gm) for gm in modules}) == len(modules)
        for gm in modules:
            assert type(gm).__mro__[1:] == (GraphModule, nn.Module, object)
            assert type(gm).__qualname__.endswith("GraphModuleImpl")

    @pytest.mark.parametrize(
        "name", ["graph", "code", "meta", "recompile", "_graph", "training"]
    )
    def test_a_target_that_would_hide_our_own_is_refused(
        self, name: str
    ) -> None:
        with pytest.raises(RuntimeError) as caught:
            calling(f"{name}.act", {f"{name}.act": nn.ReLU()})
        assert f"needs '{name}.act'" in str(caught.value)
        assert f"node.target = 'my_{name}.act'" in str(caught.value)

    def test_the_remedy_works(self) -> None:
        graph = Tracer().trace(_WithGraph())
        next(
            n for n in graph.nodes if n.op == "call_module"
        ).target = "my_graph"
        gm = GraphModule({"my_graph": nn.ReLU()}, graph)
        assert torch.equal(gm(X), X.relu())


class _WithGraph(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.graph = nn.ReLU()

    @no_type_check
    def forward(self, x):
        return self.graph(x)


class TestRecompile:
    def test_an_empty_graph_is_refused_at_the_call(self) -> None:
        """It may be filled after the module was made."""
        gm = GraphModule(nn.Module(), Graph())
        assert copy.deepcopy(gm).code == gm.code
        with pytest.raises(RuntimeError, match="still empty"):
            gm(torch.ones(2))
        x = gm.graph.placeholder("x")
        gm.graph.output(gm.graph.call_function(torch.neg, (x,)))
        gm.recompile()
        assert gm(torch.tensor(2.0)) == -2.0

    def test_a_blank_instance_can_be_made(self) -> None:
        """As torchvision does: without the arguments of `__init__`."""

        class Dual(GraphModule):
            def __init__(self, root: nn.Module, train: Graph) -> None:
                super().__init__(root, train, "Dual")

            def __deepcopy__(self, memo: dict[int, AnyValue]) -> Dual:
                new = type(self).__new__(type(self))
                memo[id(self)] = new
                root = nn.Module()
                vars(root).update(copy.deepcopy(vars(self)))
                Dual.__init__(new, root, copy.deepcopy(self.graph))
                return new

        dual = Dual(nn.Module(), chain(2))
        twin = copy.deepcopy(dual)
        assert isinstance(twin, Dual)
        assert twin.code == dual.code
        again = type(dual)(nn.Module(), dual.graph)
        assert again.code == dual.code

    def test_a_refused_edit_leaves_everything_as_it_was(self) -> None:
        gm = symbolic_trace(lambda x: torch.neg(x))
        code, forward, state = gm.code, type(gm).forward, dict(vars(gm))
        gm.graph.erase_node(gm.graph.output_node())
        with pytest.raises(RuntimeError, match="has no output"):
            gm.recompile()
        assert (gm.code, type(gm).forward) == (code, forward)
        assert vars(gm) == state
        assert gm(torch.tensor(2.0)) == -2.0

    def test_a_refused_graph_is_not_taken(self) -> None:
        gm = symbolic_trace(lambda x: torch.neg(x))
        other = GraphModule({}, chain(2))
        graph, bad = gm.graph, other.graph
        bad.erase_node(bad.output_node())
        with pytest.raises(RuntimeError, match="has no output"):
            gm.graph = bad
        assert gm.graph is graph
        assert graph.owning_module is gm
        assert bad.owning_module is other

    def test_code_that_python_refuses_names_the_node(self) -> None:
        gm = symbolic_trace(lambda x: torch.neg(x))
        code = gm.code
        gm.graph.on_generate_code(lambda _: _break)
        with pytest.raises(RuntimeError) as caught:
            gm.recompile()
        text = str(caught.value)
        assert "SyntaxError" in text
        assert "line 5: neg = torch.neg(x)" in text
        assert "Node neg: %neg" in text
        assert gm.code == code and gm(torch.tensor(2.0)) == -2.0

    def test_threads_call_while_another_recompiles(self) -> None:
        gm = symbolic_trace(lambda x: torch.neg(torch.abs(x)))
        end, done = time.monotonic() + 0.5, threading.Event()
        wrong: list[object] = []

        def call() -> None:
            while not done.is_set():
                try:
                    result = gm(torch.tensor(2.0)).item()
                    if result not in (-2.0, 2.0):
                        wrong.append(result)
                except Exception as error:
                    wrong.append(error)

        threads = [threading.Thread(target=call) for _ in range(3)]
        for thread in threads:
            thread.start()
        while time.monotonic() < end:
            node = node_named(gm, "neg")
            node.target = torch.neg if node.target is torch.abs else torch.abs
            gm.recompile()
        done.set()
        for thread in threads:
            thread.join()
        assert wrong == []


def _break(pieces: list[str]) -> list[str]:
    return [piece.replace("neg(x)", "neg(x) +") for piece in pieces]


class _Holder(nn.Module):
    """A module with another inside, called or its forward called."""

    def __init__(self, inner: nn.Module, *, direct: bool) -> None:
        super().__init__()
        self.inner = inner
        self.direct = direct

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        run: AnyValue = self.inner.forward if self.direct else self.inner
        result: torch.Tensor = run(x) + 1
        return result


class TestCalling:
    def test_what_replaces_module_call_is_used(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        gm = symbolic_trace(lambda x: x)
        monkeypatch.setattr(nn.Module, "__call__", lambda self, x: "patched")
        assert gm(X) == "patched"

    def test_a_subclass_type_checks_and_keeps_its_methods(self) -> None:
        net = Net()
        gm = Tagged(net, Tracer().trace(net), "hello")
        graph: Graph = gm.graph
        assert gm.shout() == "HELLO"
        assert isinstance(gm, Tagged)
        assert graph.owning_module is gm

    def test_torch_compile_sees_each_recompile(self) -> None:
        """What it has compiled goes by the code of the functions that run."""
        gm = symbolic_trace(lambda x: x.relu())
        compiled = torch.compile(gm, backend="eager")
        for method in ("neg", "sin", "cos", "tan"):
            gm.graph.find_nodes(op="call_method")[0].target = method
            gm.recompile()
            assert torch.equal(compiled(X), getattr(X, method)())

    def test_torch_compile_takes_as_many_as_there_are(self) -> None:
        """It gives up a function of which it has eight versions."""
        for count in range(10):
            module = nn.Sequential(*[nn.ReLU() for _ in range(count + 1)])
            gm = symbolic_trace(module)
            compiled = torch.compile(gm, backend="eager", fullgraph=True)
            assert torch.equal(compiled(X), module(X))

    @pytest.mark.parametrize("direct", [True, False])
    def test_torch_compile_takes_one_inside_that_nobody_has_called(
        self, direct: bool
    ) -> None:
        """It looks past descriptors: `forward` must be a function by now."""
        gm = symbolic_trace(Net())
        outer = _Holder(gm, direct=direct)
        compiled = torch.compile(outer, backend="eager", fullgraph=True)
        assert torch.equal(compiled(X), outer(X))

    def test_it_can_be_compiled_in_place_before_it_is_called(self) -> None:
        net = Net()
        gm = symbolic_trace(net)
        gm.compile(backend="eager", fullgraph=True)
        assert torch.equal(gm(X), net(X))

    def test_code_made_under_another_class_stays_when_that_goes(self) -> None:
        gm = symbolic_trace(Net())
        before = gm(X)
        own = type(gm)
        gm.__class__ = cast("AnyValue", type("Below", (own,), {}))
        output = gm.graph.output_node()
        with gm.graph.inserting_before(output):
            output.args = (gm.graph.call_function(torch.neg, output.args),)
        gm.recompile()
        assert torch.equal(gm(X), -before)
        gm.__class__ = cast("AnyValue", own)
        assert torch.equal(gm(X), -before)


class TestErrorsInGeneratedCode:
    def test_the_line_and_the_node_are_shown(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        gm = module_of(
            lambda g, x: g.call_method("no_such", (g.call_method("neg", (x,)),))
        )
        with pytest.raises(AttributeError, match="no_such"):
            gm(X)
        out, said = capsys.readouterr()
        assert out == ""
        assert said.startswith("Traceback (most recent call last)")
        _, _, shown = said.partition("Call using an FX-traced Module, ")
        assert shown.splitlines() == [
            "line 6 of the traced Module's generated forward function:",
            "    neg = x.neg();  x = None",
            "    no_such = neg.no_such();  neg = None",
            "",
            "~" * 36 + "~~~ <--- HERE",
            "    return no_such",
            "",
            "    ",
            "",
            "That line is Node no_such",
        ]

    def test_the_users_line_is_shown_if_it_is_known(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        gm = module_of(lambda g, x: g.call_method("no_such", (x,)))
        node_named(gm, "no_such").stack_trace = (
            '  File "net.py", line 1, in outer\n    f(x)\n'
            '  File "net.py", line 7, in f\n    x.no_such()\n'
        )
        with pytest.raises(AttributeError):
            gm(X)
        said = capsys.readouterr().err
        assert said.endswith(
            "That line is Node no_such, recorded at\n"
            '  File "net.py", line 7, in f\n    x.no_such()\n'
        )

    def test_the_message_is_about_the_nodes_that_were_compiled(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        gm = module_of(lambda g, x: g.call_method("no_such", (x,)))
        with gm.graph.inserting_before(node_named(gm, "no_such")):
            gm.graph.call_method("neg", (node_named(gm, "x"),))
        with pytest.raises(AttributeError):
            gm(X)
        assert "That line is Node no_such" in capsys.readouterr().err

    def test_a_nested_module_is_shown_once(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        inner = module_of(lambda g, x: g.call_method("no_such", (x,)))
        outer = calling("inner", {"inner": inner})
        with pytest.raises(AttributeError):
            outer(X)
        said = capsys.readouterr().err
        assert said.count("Call using an FX-traced Module") == 1
        assert "no_such = x.no_such()" in said

    def test_the_traceback_reaches_the_generated_frame(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        gm = module_of(lambda g, x: g.call_method("no_such", (x,)))
        with pytest.raises(AttributeError) as caught:
            gm(X)
        assert caught.traceback[-1].frame.code.name == "forward"
        assert "x.no_such()" in str(caught.traceback[-1].statement)
        assert capsys.readouterr().err


class TestSubmodules:
    def test_what_no_node_needs_is_deleted(self) -> None:
        graph = Graph()
        x = graph.placeholder("x")
        graph.call_module("a.whole", (x,))
        graph.get_attr("b.linear.weight")
        graph.get_attr("c.fetched")
        graph.output(x)
        root = nn.Module()
        for name, child in (
            ("a", nn.ModuleDict({"whole": nn.Sequential(nn.ReLU())})),
            ("b", nn.ModuleDict({"linear": nn.Linear(1, 1)})),
            ("c", nn.ModuleDict({"fetched": nn.Sequential(nn.ReLU())})),
        ):
            root.add_module(name, child)
        gm = GraphModule(root, graph)
        gm.add_submodule("a.no", nn.ReLU())
        gm.add_submodule("b.no.deep", nn.ReLU())
        gm.add_submodule("d", nn.ReLU())
        gm.delete_all_unused_submodules()
        left = " a a.whole a.whole.0 b b.linear c c.fetched c.fetched.0"
        assert [name for name, _ in gm.named_modules()] == left.split(" ")

    def test_a_shared_module_keeps_what_either_path_needs(self) -> None:
        shared = nn.Module()
        shared.x, shared.y, shared.z = nn.ReLU(), nn.ReLU(), nn.ReLU()
        graph = Graph()
        x = graph.placeholder("x")
        graph.output(
            graph.call_module("b.y", (graph.call_module("a.x", (x,)),))
        )
        gm = GraphModule({"a.x": shared.x, "b.y": shared.y}, graph)
        gm.a = gm.b = shared
        gm.delete_all_unused_submodules()
        assert list(shared._modules) == ["x", "y"]
        assert torch.equal(gm(X), X.relu())

    def test_deleting_is_linear(self) -> None:
        def seconds(count: int) -> float:
            graph = Graph()
            x = graph.placeholder("x")
            parts: dict[str, AnyValue] = {}
            for index in range(count):
                x = graph.call_module(f"m{index}", (x,))
                parts[f"m{index}"] = nn.Module()
            graph.output(x)
            gm = GraphModule(parts, graph)
            begin = time.process_time()
            gm.delete_all_unused_submodules()
            return time.process_time() - begin

        few, many = (min(seconds(n) for _ in range(3)) for n in (300, 3000))
        assert many < 40 * few


class TestHooks:
    def test_only_callables_are_taken(self) -> None:
        gm = symbolic_trace(lambda x: x)
        hook: AnyValue = "no hook"
        for register in (
            gm._register_replace_node_hook,
            gm._register_create_node_hook,
            gm._register_erase_node_hook,
            gm._register_deepcopy_hook,
        ):
            with pytest.raises(AssertionError, match="must be a callable"):
                register(hook)


def _ignore(node: Node) -> None:
    """A hook that does nothing."""


class TestDeepCopy:
    def test_nothing_is_shared_and_nothing_is_lost(self) -> None:
        gm: AnyValue = symbolic_trace(Net().eval())
        gm.note = {"list": [1]}
        gm.extra = nn.ReLU()
        gm.register_buffer("loose", torch.ones(1), persistent=False)
        gm.meta["tag"] = [1]
        gm.register_forward_hook(_plus_one)
        new = copy.deepcopy(gm)
        assert torch.equal(new(X), gm(X))
        assert_same_graph(new, gm)
        assert new.code == gm.code
        assert new.graph is not gm.graph and new.graph.owning_module is new
        assert new.linear is not gm.linear
        assert new.note == gm.note and new.note is not gm.note
        assert isinstance(new.extra, nn.ReLU) and new.extra is not gm.extra
        assert new.meta == gm.meta and new.meta["tag"] is not gm.meta["tag"]
        assert list(new.state_dict()) == list(gm.state_dict())
        assert not new.training
        assert type(new).__name__ == "GraphModule"

    def test_state_dict_hooks_come_along(self) -> None:
        gm: AnyValue = symbolic_trace(Net())
        gm._register_state_dict_hook(_drop_everything)
        assert copy.deepcopy(gm).state_dict() == {}

    def test_attributes_of_a_subclass_come_along(self) -> None:
        net = Net()
        new = copy.deepcopy(Tagged(net, Tracer().trace(net), "mine"))
        assert isinstance(new, Tagged)
        assert new.shout() == "MINE"

    def test_a_subclass_may_initialise_its_copies(self) -> None:
        class Counting(GraphModule):
            made = 0

            def _deepcopy_init(self) -> Callable[..., None]:
                type(self).__mro__[1].made += 1  # type: ignore[attr-defined]
                return GraphModule.__init__

        net = Net()
        gm: AnyValue = Counting(net, Tracer().trace(net))
        gm.note = 1
        new = copy.deepcopy(gm)
        assert Counting.made == 1
        assert new.note == 1
        assert torch.equal(new(X), gm(X))

    def test_nodes_among_the_attributes_are_the_copies_nodes(self) -> None:
        gm = symbolic_trace(lambda x: torch.neg(x))
        gm.meta["first"] = node_named(gm, "x")
        new = copy.deepcopy(gm)
        assert new.meta["first"] is node_named(new, "x")

    def test_it_may_refer_to_itself(self) -> None:
        gm = symbolic_trace(lambda x: x)
        gm.meta["self"] = gm
        gm._register_create_node_hook(gm.meta.__contains__)
        assert copy.deepcopy(gm).meta["self"] is not gm

    def test_a_module_that_holds_it_can_be_copied(self) -> None:
        pair = nn.Sequential(symbolic_trace(Net()), symbolic_trace(Inner()))
        assert torch.equal(copy.deepcopy(pair)(X), pair(X))

    def test_a_missing_submodule_is_no_obstacle(self) -> None:
        gm = calling("act", {"act": nn.ReLU()})
        gm.delete_submodule("act")
        assert copy.deepcopy(gm).code == gm.code


def _plus_one(module: nn.Module, args: AnyValue, out: torch.Tensor) -> AnyValue:
    return out + 1


def _drop_everything(
    module: nn.Module, state: dict[str, AnyValue], prefix: str, local: AnyValue
) -> dict[str, AnyValue]:
    state.clear()
    return state


class TestCopy:
    def test_graph_and_attributes_are_shared(self) -> None:
        gm: AnyValue = symbolic_trace(Net())
        gm.note = ["mine"]
        gm.extra = nn.ReLU()
        gm.register_forward_hook(_plus_one)
        new = copy.copy(gm)
        assert new.graph is gm.graph and gm.graph.owning_module is new
        assert new.linear is gm.linear and new.extra is gm.extra
        assert new.note is gm.note and new.meta is gm.meta
        assert new.inner is not gm.inner
        assert torch.equal(new(X), gm(X))
        assert list(new.state_dict()) == list(gm.state_dict())

    def test_modules_and_hooks_added_later_are_not(self) -> None:
        gm = symbolic_trace(Net())
        new = copy.copy(gm)
        new.add_submodule("inner.more", nn.ReLU())
        new.add_submodule("more", nn.ReLU())
        new.register_forward_hook(_plus_one)
        new._register_create_node_hook(_ignore)
        assert not hasattr(gm.inner, "more") and not hasattr(gm, "more")
        assert gm._create_node_hooks == []
        assert not torch.equal(new(X), gm(X))

    def test_a_replica_leaves_the_graph_to_the_original(self) -> None:
        gm = symbolic_trace(Net())
        replica = gm._replicate_for_data_parallel()
        assert replica._is_replica
        assert gm.graph.owning_module is gm
        assert torch.equal(replica(X), gm(X))


@no_type_check
def _takes_a_root(x):
    return math.sqrt(x.numel())  # a leaf: the code wraps it again


class TestSize:
    def test_twenty_thousand_nodes_are_copied_and_pickled(self) -> None:
        gm = GraphModule({}, chain(20_000))
        for make in (through_pickle, copy.deepcopy):
            new = make(gm)
            assert len(new.graph.nodes) == 20_002
            assert new(torch.tensor(2.0)) == 2.0
            del new

    @pytest.mark.parametrize("root", [Net(), _takes_a_root])
    def test_a_module_is_freed_with_its_lines(self, root: AnyValue) -> None:
        gm = symbolic_trace(root)
        key = type(gm).forward.__code__.co_filename
        dead: list[weakref.ref[AnyValue]] = [
            weakref.ref(gm),
            weakref.ref(type(gm)),
            weakref.ref(gm.graph),
            weakref.ref(type(gm).forward.__code__),
        ]
        del gm
        gc.collect()
        assert [ref() for ref in dead] == [None] * 4
        assert key not in linecache.cache

    def test_old_code_is_freed_by_recompile(self) -> None:
        gm = symbolic_trace(Net())
        code = weakref.ref(type(gm).forward.__code__)
        next(iter(gm.graph.nodes)).name = "renamed"
        gm.recompile()
        gc.collect()
        assert code() is None


def test_whether_a_trace_runs() -> None:
    seen: list[bool] = []

    def look(x: AnyValue) -> AnyValue:
        seen.extend((is_fx_tracing(), is_fx_symbolic_tracing()))
        return x

    symbolic_trace(look)
    assert seen == [True, True]
    assert not is_fx_tracing() and not is_fx_symbolic_tracing()


class TinyGraphModuleImpl(GraphModule):
    """A user's class with a name like those that fx makes."""

    def hello(self) -> str:
        """Say hello."""
        return "hello"


def test_a_users_class_may_have_any_name() -> None:
    gm = TinyGraphModuleImpl({}, symbolic_trace(lambda x: x).graph)
    assert gm.hello() == copy.deepcopy(gm).hello() == "hello"


class Extractor(GraphModule):
    """A class that does not call GraphModule.__init__, as torchvision has."""

    def __init__(self, root: nn.Module, graph: Graph) -> None:
        nn.Module.__init__(self)
        for name, child in root.named_children():
            setattr(self, name, child)
        self.graph = graph


class TestClassesThatDoNotCallTheConstructor:
    def make(self) -> Extractor:
        net = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        return Extractor(net, Tracer().trace(net))

    def test_copies_pickles_and_rewriting(self) -> None:
        gm = self.make()
        for copied in (copy.deepcopy(gm), copy.copy(gm), through_pickle(gm)):
            assert torch.equal(copied(X), gm(X))
            assert copied.meta == {}
        gm = self.make()
        told: list[object] = []
        gm._register_replace_node_hook(lambda old, new, user: told.append(new))
        relu = [*gm.graph.nodes][2]
        with gm.graph.inserting_after(relu):
            neg = gm.graph.call_function(torch.neg, (relu,))
        relu.replace_all_uses_with(neg, lambda user: user is not neg)
        gm.recompile()
        right = gm(X)
        matches = replace_pattern(gm, lambda a: torch.neg(a), lambda a: -a)
        assert len(matches) == 1
        assert torch.equal(gm(X), right)
        assert told

    def test_no_two_share_hooks_or_notes(self) -> None:
        one, other = self.make(), self.make()
        one._register_create_node_hook(print)
        one.meta["a"] = 1
        assert (other._create_node_hooks, other.meta) == ([], {})


class TestFunctionsOfSelf:
    def test_it_reads_the_module(self) -> None:
        @no_type_check
        def f(self, x):
            return self.linear(x) * self.inner.scale + self.param

        net = Net()
        net.inner.register_buffer("scale", torch.full((4,), 2.0))
        gm = GraphModule(net, Tracer().trace(f))
        right = net.linear(X) * 2 + net.param
        for made in (gm, copy.deepcopy(gm), through_pickle(gm)):
            assert torch.equal(made(X), right)
        assert torch.equal(symbolic_trace(gm)(X), right)
        assert not list(problems(gm.graph))
        assert "unused" not in dict(gm.named_children())

    def test_beside_what_the_graph_fetches(self) -> None:
        graph = Graph()
        own = graph.placeholder("self")
        weight = graph.get_attr("weight")
        bias = graph.call_function(getattr, (own, "bias"))
        again = graph.get_attr("weight")
        graph.output((weight, bias, again))
        linear = nn.Linear(1, 1)
        weight_, bias_, again_ = GraphModule(linear, graph)()
        assert weight_ is again_ is linear.weight
        assert bias_ is linear.bias

    def test_with_nested_inputs(self) -> None:
        @no_type_check
        def f(self, xs):
            return xs[0] * self.w + xs[1]

        root = nn.Module()
        root.register_buffer("w", torch.tensor(3.0))
        graph = Tracer().trace(f, concrete_args={"xs": [PH, PH]})
        gm = GraphModule(root, graph)
        assert gm([2, 1]) == 7
        with pytest.raises(RuntimeError, match="for the input xs"):
            gm([2, 1, 0])

    @pytest.mark.parametrize("first", [False, True])
    def test_another_self_is_refused(self, first: bool) -> None:
        for options in ({"type_expr": int}, {"default_value": 1}, {}):
            graph = Graph()
            if not first:
                graph.placeholder("x")
            graph.output(graph.placeholder("self", **options))
            if first and not options:
                continue
            message = "a second parameter named self"
            with pytest.raises(RuntimeError, match=message):
                GraphModule({}, graph)
            with pytest.raises(RuntimeError, match=message):
                graph.lint()


def _fx_names_in(pickled: bytes) -> Iterator[str]:
    """The names of fx in a pickle, and in those inside of it."""
    for _, found, _ in pickletools.genops(pickled):
        if isinstance(found, bytes) and found[:1] == b"\x80":
            yield from _fx_names_in(found)
        elif isinstance(found, str) and found.startswith("fx."):
            yield found


class TestUnpickling:
    def test_it_names_what_torch_fx_has_too(self) -> None:
        """So that a file of fx may move without losing what was pickled."""
        gm = symbolic_trace(lambda x: x["a"], concrete_args={"x": {"a": PH}})
        names = {*_fx_names_in(pickle.dumps(gm))}
        assert {"fx.graph", "fx.Tracer", "fx.graph._PyTreeCodeGen"} <= names
        for name in names - {"fx.graph._pytree_info"}:  # a function of ours
            assert pkgutil.resolve_name(f"torch.{name}") is not None

    def allowed(self, file: io.BytesIO) -> list[AnyValue]:
        file.seek(0)
        names = torch.serialization.get_unsafe_globals_in_checkpoint(file)
        file.seek(0)
        return [pkgutil.resolve_name(name) for name in names]

    @pytest.mark.parametrize("make", [Net, Inner])
    def test_with_weights_only(self, make: Callable[[], nn.Module]) -> None:
        gm = symbolic_trace(make())
        gm.meta["note"] = ["a"]
        torch.save(gm, file := io.BytesIO())
        allowed = self.allowed(file)
        assert {reduce_graph_module, GraphModule, Graph} <= set(allowed)
        with torch.serialization.safe_globals(allowed):
            back = torch.load(file, weights_only=True)
        assert_same_graph(back, gm)
        assert torch.equal(back(X), gm(X))
        assert back.meta == gm.meta
        assert type(back).__name__ == make.__name__
        assert type(back).__mro__[1:] == (GraphModule, nn.Module, object)

    def test_a_module_that_has_itself(self) -> None:
        gm = symbolic_trace(Inner())
        vars(gm)["all"] = [gm]
        back = through_pickle(gm)
        assert vars(back)["all"] == [back]

    def test_of_all_its_state_at_once(self) -> None:
        gm = symbolic_trace(Inner())
        back = reduce_graph_module(state_to_pickle(gm), "")
        assert torch.equal(back(X), gm(X))
        assert type(back).__name__ == "Inner"

    def test_code_alone_is_not_traced_again(self) -> None:
        state = {**vars(symbolic_trace(Inner()))}
        del state["_graph"]
        with pytest.raises(RuntimeError, match="keep '_graph' in the state"):
            reduce_graph_module(state, "")


@pytest.mark.parametrize("value", [torch.ones(2), "text"])
def test_an_edited_graph_whose_old_code_fails_says_so(value: AnyValue) -> None:
    gm = symbolic_trace(nn.Sequential(nn.ReLU()))
    node = [*gm.graph.nodes][1]
    node.op, node.target = "call_function", torch.neg
    if isinstance(value, torch.Tensor):
        gm.delete_all_unused_submodules()
    with pytest.raises((AttributeError, TypeError)) as raised:
        gm(value)
    assert "edited since this code was made" in raised.value.__notes__[0]
    gm.recompile()
    assert torch.equal(gm(torch.ones(2)), -torch.ones(2))
