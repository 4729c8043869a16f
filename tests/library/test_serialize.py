"""GraphModules on disk: pickles, and packages that can be read and edited."""

from __future__ import annotations

import copy
import importlib
import itertools
import math
import operator
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, no_type_check

import pytest
import torch
from torch import nn
from torch.utils import _pytree as pytree

from fx._symbolic_trace import PH, Tracer, symbolic_trace, wrap
from fx.graph import Graph
from fx.graph_module import GraphModule
from fx.node import Node
from fx.use_def.values import AnyValue, Argument
from tests.library.same_graph import assert_same_graph
from tests.process import printed

ROOT = Path(__file__).parents[2]
X = torch.linspace(-1, 1, 8).reshape(2, 4)

_numbers = itertools.count()


class Pair(NamedTuple):
    """A container of inputs, and a constant."""

    left: AnyValue
    right: AnyValue


@wrap
def leaf(x: AnyValue, scale: float = 2.0) -> AnyValue:
    """Branches, and so must stay a leaf."""
    return x * scale if x.sum() > 0 else x


@no_type_check
def uses_leaf(x):
    return leaf(x, scale=3.0) + leaf(-x)


@no_type_check
def uses_math(x):
    return x * math.sqrt(x.numel()) + math.inf


@no_type_check
def adds_up(x, pair):
    return {"sum": x["a"] + x["b"] + pair.left * pair.right}


class Everything(nn.Module):
    """Children with and without a Python form, and all kinds of tensors."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(4, 4, dtype=torch.float64)
        self.norm = nn.BatchNorm1d(4, dtype=torch.float64)
        self.act = nn.Hardtanh()
        self.holder = nn.ModuleDict({"act": nn.Tanh()})
        self.param = nn.Parameter(torch.ones(4, dtype=torch.float64))
        self.counts = nn.Parameter(torch.arange(4), requires_grad=False)
        self.register_buffer("saved", torch.ones(4) * 2)
        self.register_buffer("loose", torch.ones(4) * 3, persistent=False)
        self.__private = nn.Parameter(torch.ones(4))

    @no_type_check
    def forward(self, x):
        x = self.norm(self.linear(x) * self.param) + self.counts
        x = self.holder.act(self.act(x + self.saved + self.loose))
        return x * self.__private - torch.tensor([1.0, 2.0, 3.0, 4.0])


class Tied(nn.Module):
    """A module with parameters and buffers that have two names."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two, self.act = (
            nn.Linear(4, 4),
            nn.Linear(4, 4),
            nn.ELU(),
        )
        self.own = self.two.weight = self.one.weight
        self.own.requires_grad_(False)
        self.act.scale = self.one.bias
        mask = torch.ones(4, requires_grad=True)
        self.register_buffer("mask", mask)
        self.act.register_buffer("mask", mask)
        vars(self.own)["note"] = lambda: "cannot be pickled"

    @no_type_check
    def forward(self, x):
        return self.act(self.two(self.one(x))) @ self.own * self.mask


class Tagged(GraphModule):
    """A user's subclass, with state of its own."""

    def __init__(self, root: nn.Module, graph: Graph, tag: str) -> None:
        super().__init__(root, graph, "Tagged")
        self.tag = tag


class OwnTracer(Tracer):
    """A tracer that can be imported."""


class Written(NamedTuple):
    """A package that was written, and what it holds."""

    folder: Path
    package: ModuleType

    @property
    def text(self) -> str:
        return (self.folder / "module.py").read_text()

    @property
    def files(self) -> list[str]:
        names = (path.name for path in self.folder.iterdir())
        return sorted(name for name in names if name != "__pycache__")


@pytest.fixture
def write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Written]]:
    """Writes a module, moves the package elsewhere, and imports it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)

    def written(gm: GraphModule, class_name: str = "FxModule") -> Written:
        name = f"written_{next(_numbers)}"
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Was not able to save")
            gm.to_folder(tmp_path / "first", class_name)
        folder = (tmp_path / "first").rename(tmp_path / name)
        importlib.invalidate_caches()
        return Written(folder, importlib.import_module(name))

    yield written
    for name in set(sys.modules) - before:
        if name.startswith("written_"):
            del sys.modules[name]


def through_pickle(value: AnyValue) -> AnyValue:
    return pickle.loads(pickle.dumps(value))


def node_named(gm: GraphModule, name: str) -> Node:
    return next(node for node in gm.graph.nodes if node.name == name)


def graph_module(
    build: Callable[[Graph, Node], Argument], **parts: AnyValue
) -> GraphModule:
    graph = Graph()
    graph.output(build(graph, graph.placeholder("x")))
    return GraphModule(parts, graph)


class TestWhatIsWritten:
    def test_annotations_in_quotes_can_be_read(
        self, write: Callable[..., Written]
    ) -> None:
        def f(x: AnyValue) -> AnyValue:
            return x

        f.__annotations__.update(x="Some[Type]", **{"return": "it's"})
        written = write(symbolic_trace(f))
        assert "_Some_Type_ = 'Some[Type]'" in written.text
        assert "module.globals.pt" not in written.files
        forward = written.package.FxModule.forward
        assert forward.__annotations__ == f.__annotations__

    @pytest.mark.parametrize(
        "name", ["class", "a b", "", "Foo; import os", "torch", "getattr"]
    )
    def test_a_name_that_is_none_is_refused(
        self, name: str, tmp_path: Path
    ) -> None:
        gm = symbolic_trace(uses_leaf)
        with pytest.raises(ValueError, match="cannot be the name of the class"):
            gm.to_folder(tmp_path / "package", name)
        assert not (tmp_path / "package").exists()

    def test_a_name_that_the_code_uses_is_refused(self, tmp_path: Path) -> None:
        gm = symbolic_trace(uses_math)
        taken = next(k for k in gm.recompile().globals if k.startswith("math"))
        with pytest.raises(ValueError, match="cannot be the name of the class"):
            gm.to_folder(tmp_path / "package", taken)

    def test_children_that_were_pickled_are_warned_of(
        self, tmp_path: Path
    ) -> None:
        gm = graph_module(lambda g, x: g.call_module("act", (x,)), act=nn.ELU())
        with pytest.warns(UserWarning, match="Was not able to save") as caught:
            gm.to_folder(tmp_path / "package")
        assert "['act']" in str(caught[0].message)
        assert caught[0].filename == __file__

    def test_a_folder_can_be_written_again(self, tmp_path: Path) -> None:
        for gm in (symbolic_trace(uses_leaf), symbolic_trace(uses_math)):
            gm.to_folder(tmp_path / "package")
        assert "math" in (tmp_path / "package" / "module.py").read_text()

    def test_the_compiled_code_is_written_not_the_edited_graph(
        self, write: Callable[..., Written]
    ) -> None:
        gm = graph_module(lambda g, x: g.call_function(torch.neg, (x,)))
        next(n for n in gm.graph.nodes if n.name == "neg").target = torch.abs
        assert torch.equal(write(gm).package.FxModule()(X), -X)


def _other_padding(child: nn.Conv1d) -> None:
    nn.Conv1d.__init__(child, 2, 2, 3, padding="same")


def _other_padding_mode(child: nn.Conv1d) -> None:
    nn.Conv1d.__init__(child, 2, 2, 3, padding=1, padding_mode="circular")


def _other_shape(child: nn.Conv1d) -> None:
    child.weight = nn.Parameter(torch.ones(5, 2, 3))
    child.bias = nn.Parameter(torch.ones(5))


def _own_attribute(child: nn.Conv1d) -> None:
    child.scale = torch.ones(2)


def _own_buffer(child: nn.Conv1d) -> None:
    child.register_buffer("scale", torch.ones(2))


def _own_module(child: nn.Conv1d) -> None:
    child.inner = nn.Linear(2, 2)


def _own_forward(child: nn.Conv1d) -> None:
    vars(child)["forward"] = torch.neg


_CHANGES = (
    _other_padding,
    _other_padding_mode,
    _other_shape,
    _own_attribute,
    _own_buffer,
    _own_module,
    _own_forward,
    lambda child: setattr(child, "padding", "same"),
    lambda child: setattr(child, "padding_mode", "circular"),
)


class TestTheModuleComesBack:
    def test_with_tied_tensors(self, write: Callable[..., Written]) -> None:
        net = Tied()
        new = write(symbolic_trace(net)).package.FxModule()
        assert new.two.weight is new.one.weight is new.own
        assert new.act.scale is new.one.bias
        assert not new.own.requires_grad and new.two.bias.requires_grad
        assert new.mask is new.act.mask and new.mask.requires_grad
        for parameters in (net.parameters(), new.parameters()):
            assert len(list(parameters)) == 3
        assert torch.equal(new(X), net(X))

    def test_with_all_its_state(self, write: Callable[..., Written]) -> None:
        gm = symbolic_trace(Everything().eval())
        gm.linear.bias.requires_grad_(False)  # type: ignore[union-attr]
        new = write(gm).package.FxModule()
        x = X.double()
        assert torch.equal(new(x), gm(x))
        old_state, new_state = gm.state_dict(), new.state_dict()
        assert list(old_state) == list(new_state)
        for name, tensor in old_state.items():
            assert tensor.dtype == new_state[name].dtype, name
        for name, parameter in gm.named_parameters():
            found = new.get_parameter(name)
            assert found.requires_grad == parameter.requires_grad, name
        modes = {name: m.training for name, m in gm.named_modules()}
        assert modes == {name: m.training for name, m in new.named_modules()}

    def test_with_a_module_under_two_names(
        self, write: Callable[..., Written]
    ) -> None:
        shared = nn.Linear(4, 4)
        gm = graph_module(
            lambda g, x: g.call_module(
                "a", (g.call_module("b", (g.call_module("no", (x,)),)),)
            ),
            a=shared,
            b=shared,
            no=nn.Identity(),
        )
        gm.register_module("nothing", None)
        new = write(gm).package.FxModule()
        assert new.a is new.b and new.nothing is None
        assert torch.equal(new(X), gm(X))

    def test_with_names_that_are_no_identifiers(
        self, write: Callable[..., Written], tmp_path: Path
    ) -> None:
        names = ("class", "0", "a/b", "__private", "quote'", "new\nline")
        graph = Graph()
        x = graph.placeholder("x")
        for name in names:
            x = graph.call_module(name, (x,))
        graph.output(x)
        gm = GraphModule({name: nn.ELU() for name in names}, graph)
        written = write(gm)
        assert torch.equal(written.package.FxModule()(X), gm(X))
        assert [path.name for path in tmp_path.iterdir()] == [
            written.folder.name
        ]

    def test_with_hooks_on_a_child(self, write: Callable[..., Written]) -> None:
        linear = nn.Linear(4, 4)
        linear.register_forward_hook(_negate)
        gm = graph_module(
            lambda g, x: g.call_module("linear", (x,)), linear=linear
        )
        assert torch.equal(write(gm).package.FxModule()(X), gm(X))

    @pytest.mark.parametrize("change", _CHANGES, ids=lambda f: f.__name__)
    def test_with_a_child_that_is_not_what_its_repr_says(
        self,
        change: Callable[[nn.Conv1d], object],
        write: Callable[..., Written],
    ) -> None:
        child = nn.Conv1d(2, 2, 3, padding=1)
        change(child)
        plain = nn.Conv1d(2, 2, 3, padding=1)
        gm = graph_module(
            lambda g, x: g.call_module("conv", (x,)), conv=child, plain=plain
        )
        state = torch.get_rng_state()
        written = write(gm)
        assert torch.equal(torch.get_rng_state(), state)
        assert "conv.pt" in written.files and "plain.pt" not in written.files
        new = written.package.FxModule()
        assert torch.equal(new(X), gm(X))
        assert new.state_dict().keys() == gm.state_dict().keys()
        assert vars(new.conv).keys() == vars(child).keys()

    def test_with_nested_graph_modules(
        self, write: Callable[..., Written]
    ) -> None:
        gm = graph_module(
            lambda g, x: g.call_module("child", (x,)),
            child=symbolic_trace(uses_leaf),
        )
        new = write(gm).package.FxModule()
        assert isinstance(new.child, GraphModule)
        assert torch.equal(new(X), gm(X))

    def test_with_attributes_that_are_no_tensors(
        self, write: Callable[..., Written]
    ) -> None:
        gm = graph_module(
            lambda g, x: g.call_function(torch.mul, (x, g.get_attr("factor"))),
            factor=3,
        )
        new = write(gm).package.FxModule()
        assert new.factor == 3 and torch.equal(new(X), X * 3)

    def test_with_a_buffer_that_is_not_in_its_state_dict(
        self, write: Callable[..., Written]
    ) -> None:
        gm = graph_module(
            lambda g, x: g.call_function(torch.mul, (x, g.get_attr("loose"))),
            loose=torch.ones(4),
        )
        gm.register_buffer("loose", torch.ones(4) * 3, persistent=False)
        new = write(gm).package.FxModule()
        assert torch.equal(new(X), X * 3)
        assert "loose" in dict(new.named_buffers())
        assert new.state_dict() == {}

    def test_with_a_repr_that_would_be_code(
        self, write: Callable[..., Written]
    ) -> None:
        gm = graph_module(lambda g, x: g.call_module("m", (x,)), m=Sly())
        written = write(gm)
        assert written.package.FxModule()(1) == 1
        assert not hasattr(sys, "sly")


def _negate(
    module: nn.Module, args: AnyValue, out: torch.Tensor
) -> torch.Tensor:
    return -out


class Sly(nn.Module):
    """A module whose repr tries to leave the comment that it is put in."""

    def __repr__(self) -> str:
        return "\n        import sys; sys.sly = 1\r\n\x00\u2028"

    @no_type_check
    def forward(self, x):
        return x


class TestWhatTheCodeNames:
    def test_functions_of_other_modules_are_imported(
        self, write: Callable[..., Written]
    ) -> None:
        gm = symbolic_trace(uses_math)
        written = write(gm)
        assert "from math import sqrt as math_sqrt\n" in written.text
        assert "from math import inf\n" in written.text
        assert torch.equal(written.package.FxModule()(X), gm(X))

    def test_wrapped_functions_are_wrapped_again(
        self, write: Callable[..., Written]
    ) -> None:
        gm = symbolic_trace(uses_leaf)
        new = write(gm).package.FxModule()
        assert torch.equal(new(X), gm(X))
        again = symbolic_trace(new)
        calls = [n.target for n in again.graph.nodes if n.target is leaf]
        assert len(calls) == 2

    def test_trees_of_inputs(self, write: Callable[..., Written]) -> None:
        tree = {"x": {"a": PH, "b": PH}, "pair": Pair(PH, PH)}
        gm = symbolic_trace(adds_up, tree)
        new = write(gm).package.FxModule()
        assert new({"a": 1, "b": 2}, Pair(3, 4)) == {"sum": 15}
        assert (new._in_spec, new._out_spec) == (gm._in_spec, gm._out_spec)

    def test_objects_without_a_name_are_pickled(
        self, write: Callable[..., Written]
    ) -> None:
        weights = torch.tensor([1.0, 2.0, 3.0, 4.0])
        first = operator.itemgetter(0)
        gm = graph_module(
            lambda g, x: g.call_function(
                first, (g.call_function(torch.mul, (x, weights)),)
            )
        )
        written = write(gm)
        assert "module.globals.pt" in written.files
        assert torch.equal(written.package.FxModule()(X), gm(X))

    def test_types_in_annotations(self, write: Callable[..., Written]) -> None:
        graph = Graph()
        graph.output(graph.placeholder("x", type_expr=Pair), type_expr=Path)
        forward = write(GraphModule({}, graph)).package.FxModule.forward
        assert forward.__annotations__ == {"x": Pair, "return": Path}

    def test_an_object_that_cannot_be_pickled_is_refused(
        self, tmp_path: Path
    ) -> None:
        gm = graph_module(lambda g, x: g.call_function(lambda y: y, (x,)))
        with pytest.raises(RuntimeError) as caught:
            gm.to_folder(tmp_path / "package")
        assert "can be neither imported nor pickled" in str(caught.value)
        assert "<lambda>" in str(caught.value)
        assert not (tmp_path / "package").exists()

    def test_a_child_that_cannot_be_pickled_is_refused(
        self, tmp_path: Path
    ) -> None:
        odd: AnyValue = nn.ELU()
        odd.of_mine = lambda x: x
        gm = graph_module(
            lambda g, x: g.call_module("act", (x,)), act=odd, fine=nn.ELU()
        )
        with pytest.raises(RuntimeError, match="the module has the child act"):
            gm.to_folder(tmp_path / "package")
        assert not (tmp_path / "package").exists()

    def test_names_that_a_class_would_change(
        self, write: Callable[..., Written]
    ) -> None:
        graph = Graph()
        graph.output(graph.placeholder("__x"))
        new = write(GraphModule({}, graph)).package.FxModule()
        assert new(__x=3) == 3


class TestPickle:
    def test_nothing_is_lost(self) -> None:
        gm: AnyValue = symbolic_trace(Everything().eval())
        gm.note = {"list": [1]}
        gm.extra = nn.ReLU()
        gm.meta["tag"] = [1]
        gm.register_forward_hook(_negate)
        linear = node_named(gm, "linear")
        linear.type, linear.meta = torch.Tensor, {"deep": {"a": [1]}}
        linear.stack_trace = "trace"
        linear.name = "renamed"
        gm.recompile()
        new = through_pickle(gm)
        assert_same_graph(new, gm)
        assert new.code == gm.code
        assert torch.equal(new(X.double()), gm(X.double()))
        assert new.note == {"list": [1]} and new.meta == {"tag": [1]}
        assert isinstance(new.extra, nn.ReLU)
        assert type(new).__name__ == "Everything"
        assert not new.training
        assert new.graph.owning_module is new
        node = node_named(new, "renamed")
        assert node.type is torch.Tensor
        assert node.meta == {"deep": {"a": [1]}, "stack_trace": "trace"}
        assert new._tracer_cls is Tracer
        keys = [type(g).forward.__code__.co_filename for g in (gm, new)]
        assert keys[0] != keys[1]
        assert len({key.partition(" from ")[2] for key in keys}) == 1

    def test_a_graph_that_cannot_be_traced_is_pickled(self) -> None:
        gm = graph_module(lambda g, x: g.call_function(len, (x,)))
        assert through_pickle(gm)([1, 2, 3]) == 3

    def test_classes_noted_by_a_trace_need_not_be_importable(self) -> None:
        class Local(nn.Module):
            def __init__(self, inner: nn.Module) -> None:
                super().__init__()
                self.inner = inner

            def forward(self, x: AnyValue) -> AnyValue:
                return self.inner(x)

        inner = symbolic_trace(nn.Sequential(nn.ReLU()))
        gm = symbolic_trace(nn.Sequential(Local(inner)))
        call, again = (
            node_named(m, "_0_inner_0") for m in (gm, through_pickle(gm))
        )
        assert call.meta["nn_module_stack"]["0"] == ("0", Local)
        kinds = [kind for _, kind in again.meta["nn_module_stack"].values()]
        assert [str(kind).rpartition(".")[2] for kind in kinds[:2]] == [
            "Local",
            "GraphModuleImpl",
        ]
        assert kinds[2:] == [nn.ReLU]

    def test_an_edit_without_recompile_is_pickled(self) -> None:
        gm = symbolic_trace(lambda x: torch.neg(x))
        node_named(gm, "neg").target = torch.abs
        assert through_pickle(gm)(torch.tensor(2.0)) == 2.0
        assert gm(torch.tensor(2.0)) == -2.0

    def test_subclasses_and_nested_modules_come_back_as_they_are(self) -> None:
        net = Everything()
        child = Tagged(net, Tracer().trace(net), "child")
        gm = graph_module(
            lambda g, x: g.call_module("child", (x,)), child=child
        )
        new = through_pickle(gm)
        assert isinstance(new.child, Tagged) and new.child.tag == "child"
        assert torch.equal(new(X.double()), gm(X.double()))

    def test_a_local_subclass_comes_back_as_its_base(self) -> None:
        class Local(Tagged):
            pass

        net = Everything()
        new = through_pickle(Local(net, Tracer().trace(net), "local"))
        assert type(new).__mro__[1] is Tagged
        assert (type(new).__name__, new.tag) == ("Tagged", "local")

    def test_a_tracer_comes_back(self) -> None:
        gm = GraphModule(nn.Module(), OwnTracer().trace(lambda x: x))
        assert gm._tracer_cls is OwnTracer
        assert through_pickle(gm)._tracer_cls is OwnTracer

    def test_a_local_tracer_does_not(self) -> None:
        class Local(Tracer):
            pass

        gm = GraphModule(nn.Module(), Local().trace(lambda x: x))
        assert gm._tracer_cls is None
        assert through_pickle(gm)._tracer_cls is None

    def test_trees_of_inputs_come_back(self) -> None:
        tree = {"x": {"a": PH, "b": PH}, "pair": Pair(PH, PH)}
        gm = symbolic_trace(adds_up, tree)
        spec: pytree.TreeSpec = gm._in_spec
        copies: list[GraphModule] = [through_pickle(gm), copy.deepcopy(gm)]
        copies.append(copy.copy(gm))
        for new in copies:
            assert new({"a": 1, "b": 2}, Pair(3, 4)) == {"sum": 15}
            assert new._in_spec == spec


def test_another_process_can_import_it(tmp_path: Path) -> None:
    gm = symbolic_trace(uses_math)
    gm.to_folder(tmp_path / "package")
    program = (
        "import torch; from package import FxModule; "
        "print(FxModule()(torch.ones(1)))"
    )
    path = {"PYTHONPATH": str(ROOT)}
    said = printed("-c", program, cwd=tmp_path, env=path)
    assert said == "tensor([inf])\n"
