"""Graphs saved as data: what comes back, what is refused, what is harmless."""

from __future__ import annotations

import json
import math
import operator
import os
from collections import OrderedDict
from pathlib import Path
from typing import NamedTuple, Optional, Union, cast, no_type_check
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrize
from torch.utils import _pytree as pytree

import fx
from fx.experimental.proxy_tensor import make_fx
from fx.immutable_collections import immutable_list
from fx.passes.shape_prop import ShapeProp, TensorMetadata
from fx.use_def.values import AnyValue
from tests.library.random_aten import random_inputs, random_program
from tests.library.same_graph import assert_same_graph
from tests.process import printed
from tests.zoo import ZOO, Network, borrow

X = torch.linspace(-1, 1, 8).reshape(2, 4)


def again(
    gm: fx.GraphModule,
    folder: Path,
    root: nn.Module | None = None,
    *,
    allow: tuple[object, ...] = (),
) -> fx.GraphModule:
    """What is loaded of what was saved; checks that it is the same graph."""
    fx.save(gm, folder / "gm", allow=allow)
    back = fx.load(folder / "gm", root, allow=allow)
    assert_same_graph(back, gm)
    assert back.code == gm.code
    assert type(back).__name__ == type(gm).__name__
    assert [str(n.type) for n in back.graph.nodes] == [
        str(n.type) for n in gm.graph.nodes
    ]
    assert not list(fx.lint.problems(back.graph))
    return back


def text(folder: Path) -> list[dict[str, AnyValue]]:
    """The lines of a saved graph."""
    lines = (folder / "gm" / "graph.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def of(build: AnyValue, root: nn.Module | None = None) -> fx.GraphModule:
    """A module of the graph that `build` makes of its input x."""
    graph = fx.Graph()
    graph.output(build(graph, graph.placeholder("x")))
    return fx.GraphModule(root or nn.Module(), graph)


def same_state(one: nn.Module, other: nn.Module) -> None:
    """Both have the same tensors, in the same places, with the same flags."""
    for each in ("named_parameters", "named_buffers"):
        ours = list(getattr(one, each)(remove_duplicate=False))
        theirs = list(getattr(other, each)(remove_duplicate=False))
        assert [name for name, _ in ours] == [name for name, _ in theirs]
        for (name, a), (_, b) in zip(ours, theirs, strict=True):
            assert type(a) is type(b), name
            assert a.dtype == b.dtype, name
            assert a.requires_grad == b.requires_grad, name
            assert a.stride() == b.stride(), name
            assert torch.equal(a, b), name
    assert [*one.state_dict()] == [*other.state_dict()]
    assert [m.training for m in one.modules()] == [
        m.training for m in other.modules()
    ]


# -- round trips -------------------------------------------------------------


@pytest.mark.parametrize("network", ZOO, ids=lambda n: str(n.name))
def test_a_network_needs_no_root(network: Network, tmp_path: Path) -> None:
    with borrow(network, training=False) as model:
        gm = fx.symbolic_trace(model)
        back = again(gm, tmp_path)
        same_state(back, gm)
        with torch.no_grad():
            torch.manual_seed(1)
            got = back(*network.inputs())
            torch.manual_seed(1)
            right = gm(*network.inputs())
        torch.testing.assert_close(got, right, rtol=0, atol=0)


SPARSE = (
    torch.ops.aten._to_dense.default,
    torch.ops.aten._sparse_coo_tensor_with_dims_and_tensors.default,
)
"""Private operators, which a file may not name unless the user says so."""


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
@pytest.mark.parametrize("seed", range(60))
def test_an_aten_program_comes_back(seed: int, tmp_path: Path) -> None:
    gm = random_program(seed)
    back = again(gm, tmp_path, allow=SPARSE)
    ours = back(*random_inputs(seed))
    theirs = gm(*random_inputs(seed))
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0, equal_nan=True)


CONSTANTS = (
    *(None, True, 0, -(2**70), 1.5, -0.0, math.inf, -math.inf, "a\n'\u2028"),
    *(b"\0x", ..., 1 + 2j, complex(-0.0, math.inf), (1, (2,)), {"a": [1]}),
    *(slice(1, None, 2), range(0, 9, 3), torch.float32, torch.strided),
    *(torch.channels_last, torch.device("cpu"), torch.device("cuda:1")),
    *({1, 2}, frozenset(("a",)), int, torch.Tensor),
    {(1, 2): None},
)


@pytest.mark.parametrize("value", CONSTANTS, ids=repr)
def test_a_constant_comes_back(value: AnyValue, tmp_path: Path) -> None:
    gm = of(lambda g, x: (x, value, [x, value]))
    back = again(gm, tmp_path)
    for one in (back, gm):
        _, alone, (_, inside) = one(X)
        assert repr(alone) == repr(inside) == repr(value)
        assert type(alone) is type(value)


def test_nan_comes_back(tmp_path: Path) -> None:
    assert math.isnan(again(of(lambda g, x: math.nan), tmp_path)(X))


class Odd:
    """A class of a user."""


TYPES = (
    *(int, torch.Tensor, list[int], list[torch.Tensor], int | None),
    Union[torch.Tensor, None, int],  # noqa: UP007 (as users write it)
    *(dict[str, tuple[int, ...]], "list[Tensor]"),
    Optional[torch.Tensor],  # noqa: UP045
    *(type(None), nn.Linear, torch.Size, AnyValue),
)


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_the_type_of_a_node_comes_back(kind: AnyValue, tmp_path: Path) -> None:
    graph = fx.Graph()
    x = graph.placeholder("x", type_expr=kind)
    graph.output(graph.call_function(torch.relu, (x,), type_expr=kind))
    back = again(fx.GraphModule(nn.Module(), graph), tmp_path)
    for node in back.graph.nodes:
        assert node.op == "output" or node.type == kind


def test_notes_of_known_types_come_back(tmp_path: Path) -> None:
    gm = fx.symbolic_trace(nn.Sequential(nn.Linear(4, 3), nn.ReLU()))
    ShapeProp(gm).propagate(X)
    gm.meta["steps"] = ["traced", {"by": "hand"}]
    nodes = list(gm.graph.nodes)
    nodes[0].meta["spans"] = {"lines": ((1, 2), [3])}
    nodes[0].meta["held"] = immutable_list([1])
    back = again(gm, tmp_path, allow=(TensorMetadata,))
    assert back.meta == gm.meta
    for one, other in zip(back.graph.nodes, nodes, strict=True):
        assert str(one.meta) == str(other.meta)
        assert list(map(type, one.meta.values())) == list(
            map(type, other.meta.values())
        )
    _, second, *_ = back.graph.nodes
    assert type(second.meta["nn_module_stack"]) is OrderedDict
    assert second.meta["nn_module_stack"]["0"] == ("0", nn.Linear)


def test_notes_that_are_left_out_are_named(tmp_path: Path) -> None:
    gm = make_fx(torch.sin)(X)  # `val` is fx's own: nothing is said of it
    gm.graph.output_node().meta["mine"] = gm.graph.output_node().meta["val"] = X
    gm.graph.output_node().meta["mine"] = object()
    with pytest.warns(UserWarning, match=r"'mine' of node output.*has no") as w:
        fx.save(gm, tmp_path / "gm")
    assert "'val'" not in str(w[0].message)
    back = fx.load(tmp_path / "gm")
    assert torch.equal(back(X), X.sin())
    assert all("val" not in node.meta for node in back.graph.nodes)


def test_a_class_in_notes_that_is_not_allowed_is_its_name(
    tmp_path: Path,
) -> None:
    gm = of(lambda g, x: x)
    gm.meta["made by"] = Odd
    assert again(gm, tmp_path).meta["made by"] == f"{__name__}.Odd"
    assert again(gm, tmp_path, allow=(Odd,)).meta["made by"] is Odd


@no_type_check
def nested(x, pair):
    return {"sum": x["a"] + x["b"], "product": (pair[0] * pair[1],)}


def test_nested_inputs_and_outputs_come_back(tmp_path: Path) -> None:
    tree = ({"a": fx.PH, "b": fx.PH}, [fx.PH, fx.PH])
    gm = fx.symbolic_trace(
        nested, concrete_args=dict(zip(("x", "pair"), tree, strict=True))
    )
    back = again(gm, tmp_path)
    inputs = {"a": X, "b": X * 2}, [X, X + 1]
    ours, theirs = back(*inputs), gm(*inputs)
    assert pytree.tree_structure(ours) == pytree.tree_structure(theirs)
    assert all(map(torch.equal, *map(pytree.tree_leaves, (ours, theirs))))


class Shared(nn.Module):
    """Tied weights, a module in two places, buffers of both kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(5, 4)
        self.out = nn.Linear(4, 5, bias=False)
        self.out.weight = self.embed.weight
        self.twice = nn.ModuleList([nn.Linear(4, 4)] * 2)
        self.frozen = nn.Parameter(torch.ones(4, dtype=torch.float64), False)
        self.register_buffer("kept", torch.arange(4))
        self.register_buffer("passing", torch.arange(8)[::2], persistent=False)
        self.twice[0].eval()

    @no_type_check
    def forward(self, x):
        x = self.embed(x) * self.frozen + self.kept * self.passing
        return self.out(self.twice[1](self.twice[0](x.float())))


def test_what_is_shared_stays_shared(tmp_path: Path) -> None:
    gm = fx.symbolic_trace(Shared())
    back = again(gm, tmp_path)
    same_state(back, gm)
    weight = back.get_parameter("embed.weight")
    assert back.get_parameter("out.weight") is weight
    assert not back.get_submodule("twice.0").training
    assert len(list(back.parameters())) == len(list(gm.parameters()))
    x = torch.tensor([1, 4])
    assert torch.equal(back(x), gm(x))


def test_a_module_in_two_places_is_one_module(tmp_path: Path) -> None:
    root = nn.ModuleDict({"a": nn.ModuleList([nn.Linear(4, 4)])})
    root["b"] = root["a"]
    back = again(
        of(
            lambda g, x: g.call_module("b.0", (g.call_module("a.0", (x,)),)),
            nn.ModuleDict({"a": root["a"], "b": root["b"]}),
        ),
        tmp_path,
    )
    assert back.get_submodule("a.0") is back.get_submodule("b.0")
    assert len(list(back.parameters())) == 2


def test_views_of_one_storage_stay_views(tmp_path: Path) -> None:
    gm = of(lambda g, x: (g.get_attr("whole"), g.get_attr("part")), Views())
    back = again(gm, tmp_path)
    whole, part = back(X)
    whole.zero_()
    assert not part.any()


class Views(nn.Module):
    """A buffer, and another that is a view of it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("whole", torch.ones(4))
        self.register_buffer("part", self.get_buffer("whole")[1:3])


def test_a_graph_inside_of_a_graph_comes_back(tmp_path: Path) -> None:
    inner = of(lambda g, x: g.call_function(torch.relu, (x,)))
    outer = of(
        lambda g, x: g.call_module("f", (x,)), nn.ModuleDict({"f": inner})
    )
    outer.meta["depth"] = 2
    back = again(outer, tmp_path)
    child = back.get_submodule("f")
    assert isinstance(child, fx.GraphModule)
    assert str(child.graph) == str(inner.graph)
    assert torch.equal(back(X), X.relu())


def test_constant_tensors_and_attributes_come_back(tmp_path: Path) -> None:
    weight = nn.Parameter(torch.tensor([1.0, -0.0]))
    root = nn.Module()
    vars(root)["table"] = {"a": (1, torch.ones(2))}
    gm = of(lambda g, x: [weight, weight, g.get_attr("table"), (weight,)], root)
    one, two, table, (three,) = again(gm, tmp_path)(X)
    assert one is two is three
    assert type(one) is nn.Parameter
    assert torch.equal(one, weight)
    assert table["a"][0] == 1


def test_another_process_can_load(tmp_path: Path) -> None:
    gm = fx.symbolic_trace(Shared())
    fx.save(gm, tmp_path / "gm")
    x = torch.tensor([2, 3])
    torch.save((x, gm(x)), tmp_path / "expected.pt")
    code = (
        "import sys, torch, fx\n"
        "x, y = torch.load(sys.argv[1] + '/expected.pt')\n"
        "gm = fx.load(sys.argv[1] + '/gm')\n"
        "assert torch.equal(gm(x), y)\n"
        "print(gm.graph)"
    )
    said = printed("-c", code, str(tmp_path))
    assert said.strip() == str(gm.graph).strip()


# -- modules -----------------------------------------------------------------

LEAVES = (
    *(lambda: nn.Linear(4, 3, bias=False), lambda: nn.GELU("tanh")),
    *(lambda: nn.LSTM(4, 3, 2, bidirectional=True, proj_size=2),),
    *(lambda: nn.GRU(4, 3, batch_first=True),),
    *(lambda: nn.RNN(4, 3, nonlinearity="relu"),),
    *(lambda: nn.MultiheadAttention(4, 2, bias=False),),
    *(lambda: nn.Conv2d(3, 4, 3, padding="same", padding_mode="reflect"),),
    *(lambda: nn.BatchNorm2d(3, affine=False), lambda: nn.LayerNorm((2, 4))),
    *(lambda: nn.CrossEntropyLoss(weight=torch.ones(3)),),
    *(lambda: nn.Embedding(5, 4, padding_idx=1), lambda: nn.Hardtanh()),
    *(lambda: nn.Upsample(scale_factor=2.0), lambda: nn.Unflatten(1, (2, 2))),
    *(lambda: nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.3)),),
    *(lambda: nn.TripletMarginWithDistanceLoss(),),
)


def leaf(module: nn.Module) -> fx.GraphModule:
    """A graph module that calls `module` as a leaf."""
    return of(
        lambda g, x: g.call_module("m", (x,)), nn.ModuleDict({"m": module})
    )


@pytest.mark.parametrize("make", LEAVES, ids=lambda f: str(f()).split("(")[0])
def test_a_module_of_torch_is_made_again(
    make: AnyValue, tmp_path: Path
) -> None:
    gm = leaf(make())
    back = again(gm, tmp_path)
    assert repr(back) == repr(gm)
    same_state(back, gm)
    one, other = (vars(each.get_submodule("m")) for each in (gm, back))
    assert one.keys() == other.keys()
    for name, value in one.items():
        if type(value) in (bool, int, float, str, tuple):
            assert (other[name], type(other[name])) == (value, type(value))


def test_a_recurrent_layer_uses_the_loaded_weights(tmp_path: Path) -> None:
    gm = leaf(nn.LSTM(4, 3))
    torch.testing.assert_close(again(gm, tmp_path)(X), gm(X), rtol=0, atol=0)


def test_attributes_set_after_the_constructor_come_back(tmp_path: Path) -> None:
    linear = nn.Linear(4, 4)
    vars(linear).update(note=("mine", [1, 2]), in_features=7)
    back = again(leaf(linear), tmp_path).get_submodule("m")
    assert vars(back)["note"] == ("mine", [1, 2])
    assert vars(back)["in_features"] == 7


class Block(nn.Module):
    """A user's module, which the tracer is told not to look into."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.width = width
        self.inner = nn.Linear(width, width)

    @no_type_check
    def forward(self, x):
        return self.inner(x).relu()


def test_a_users_module_comes_from_the_root(tmp_path: Path) -> None:
    gm = leaf(Block())
    root = nn.ModuleDict({"m": Block()})
    inner = root.get_submodule("m.inner")
    inner.register_forward_hook(lambda *_: None)
    back = again(gm, tmp_path, root)
    assert back.get_submodule("m") is root["m"]
    assert torch.equal(back(X), gm(X))
    same_state(back, gm)
    with pytest.raises(fx.LoadError, match=r'"m".*Block. is not allowed'):
        fx.load(tmp_path / "gm")
    with pytest.raises(fx.LoadError, match=r"Give a module .* `allow` to save"):
        fx.load(tmp_path / "gm", nn.Module())
    other = nn.ModuleDict({"m": Block()})
    other["m"].register_parameter("more", nn.Parameter(torch.ones(1)))
    with pytest.raises(fx.LoadError, match="it has the parameters"):
        fx.load(tmp_path / "gm", other)


def test_a_module_that_refuses_to_be_pickled(tmp_path: Path) -> None:
    linear = nn.Linear(4, 4)
    parametrize.register_parametrization(linear, "weight", nn.Softplus())
    gm = leaf(linear)
    assert torch.equal(again(gm, tmp_path, gm)(X), linear(X))
    with pytest.raises(fx.LoadError, match="ParametrizedLinear' is not allow"):
        fx.load(tmp_path / "gm")


def test_a_damaged_file_leaves_the_root_as_it_was(tmp_path: Path) -> None:
    fx.save(leaf(Block().eval()), tmp_path / "gm")
    text = tmp_path / "gm" / "graph.jsonl"
    text.write_text(text.read_text() + "{")
    root = nn.ModuleDict({"m": Block()})
    inner = root.get_submodule("m.inner")
    held = dict(root.named_parameters())
    for _ in range(2):
        with pytest.raises(fx.LoadError, match="JSONDecodeError"):
            fx.load(tmp_path / "gm", root)
        assert all(held[k] is p for k, p in root.named_parameters())
        assert all(module.training for module in root.modules())
        assert root.get_submodule("m.inner") is inner


def test_a_link_to_a_folder_stays_one(tmp_path: Path) -> None:
    fx.save(leaf(nn.ReLU()), tmp_path / "first")
    (tmp_path / "last").symlink_to(tmp_path / "first")
    fx.save(leaf(nn.Tanh()), tmp_path / "last")
    assert (tmp_path / "last").is_symlink()
    assert isinstance(fx.load(tmp_path / "first").get_submodule("m"), nn.Tanh)


def test_a_users_module_that_is_allowed_is_made(tmp_path: Path) -> None:
    back = again(leaf(Block(4)), tmp_path, allow=(Block,))
    assert type(back.get_submodule("m")) is Block


def test_what_is_no_graph_module_replaces_nothing(tmp_path: Path) -> None:
    gm = fx.symbolic_trace(nn.ReLU())
    fx.save(gm, tmp_path / "saved")
    theirs = torch.fx.symbolic_trace(nn.ReLU())
    for wrong, message in (
        (nn.Linear(2, 2), "not Linear"),
        (theirs, "torch.fx"),
    ):
        with pytest.raises(TypeError, match=message):
            fx.save(cast("AnyValue", wrong), tmp_path / "saved")
    assert str(fx.load(tmp_path / "saved").graph) == str(gm.graph)


def test_a_forward_of_its_own_is_code(tmp_path: Path) -> None:
    gm = fx.symbolic_trace(nn.ReLU())
    vars(gm)["forward"] = lambda x: x
    with pytest.raises(ValueError, match="a forward of its own, which is code"):
        fx.save(gm, tmp_path / "saved")


def test_checks_of_inputs_come_back_and_stay(tmp_path: Path) -> None:
    gm = fx.symbolic_trace(lambda x, m: x.neg(), concrete_args={"m": None})
    fx.save(gm, tmp_path / "saved")
    loaded = fx.load(tmp_path / "saved")
    loaded.graph.eliminate_dead_code()
    loaded.recompile()
    with pytest.raises(AssertionError, match="specialized to have value None"):
        loaded(torch.ones(1), 2)


def test_the_root_must_have_a_module_of_the_class(tmp_path: Path) -> None:
    class Other(Twice):
        """Another class, with the same tensors."""

    class All(fx.Tracer):
        def is_leaf_module(
            self, m: nn.Module, module_qualified_name: str
        ) -> bool:
            return True

    root = nn.Sequential(Twice())
    fx.save(fx.GraphModule(root, All().trace(root)), tmp_path / "saved")
    x = torch.ones(1)
    assert torch.equal(fx.load(tmp_path / "saved", root)(x), root(x))
    with pytest.raises(fx.LoadError, match=r"a Twice was saved.* a Other"):
        fx.load(tmp_path / "saved", nn.Sequential(Other()))


class Twice(nn.Module):
    """A module of a user's own."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


@pytest.mark.filterwarnings("ignore:.*script.* is deprecated")
def test_what_torchscript_has_looked_at_is_saved(tmp_path: Path) -> None:
    gm = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2)))
    torch.jit.script(gm)
    fx.save(gm, tmp_path / "saved")
    x = torch.ones(1, 2)
    assert torch.equal(fx.load(tmp_path / "saved")(x), gm(x))


def test_a_module_with_hooks_comes_from_the_root(tmp_path: Path) -> None:
    module = nn.Linear(4, 4)
    module.register_forward_hook(lambda *_: X)
    fx.save(leaf(module), tmp_path / "gm")
    with pytest.raises(fx.LoadError, match="it has forward_hooks, which are"):
        fx.load(tmp_path / "gm")
    assert torch.equal(
        fx.load(tmp_path / "gm", nn.ModuleDict({"m": module}))(X), X
    )


def test_tensors_go_where_the_caller_wants_them(tmp_path: Path) -> None:
    fx.save(leaf(nn.Linear(4, 4)), tmp_path / "gm")
    back = fx.load(tmp_path / "gm", map_location="meta")
    assert {p.device.type for p in back.parameters()} == {"meta"}


def test_loading_draws_no_random_numbers(tmp_path: Path) -> None:
    fx.save(leaf(nn.Linear(4, 4)), tmp_path / "gm")
    before = torch.get_rng_state()
    fx.load(tmp_path / "gm")
    assert torch.equal(torch.get_rng_state(), before)


# -- what is allowed ---------------------------------------------------------


def scale(x: torch.Tensor) -> torch.Tensor:
    """A user's function."""
    return x * 3


def test_a_users_function_must_be_allowed(tmp_path: Path) -> None:
    gm = of(lambda g, x: g.call_function(scale, (x,)))
    with pytest.raises(ValueError, match=r"node scale .*\.scale' is not allow"):
        fx.save(gm, tmp_path / "gm")
    assert not list(tmp_path.iterdir())
    assert torch.equal(again(gm, tmp_path, allow=(scale,))(X), X * 3)
    with pytest.raises(fx.LoadError, match=r"line 5: .*scale' is not allowed"):
        fx.load(tmp_path / "gm")


class Pair(NamedTuple):
    """A named tuple, which a trace calls again."""

    a: AnyValue
    b: AnyValue


def test_the_class_of_a_named_tuple_is_called(tmp_path: Path) -> None:
    gm = fx.symbolic_trace(lambda x: Pair(x, x + 1))
    found = again(gm, tmp_path, allow=(Pair,))(X)
    assert type(found) is Pair and torch.equal(found.b, X + 1)
    with pytest.raises(fx.LoadError, match=r"Pair' is not allowed"):
        fx.load(tmp_path / "gm")


def test_a_method_is_allowed_by_its_name(tmp_path: Path) -> None:
    gm = of(lambda g, x: g.call_method("__matmul__", (x, x)))
    with pytest.raises(ValueError, match="'__matmul__' is not allowed"):
        fx.save(gm, tmp_path / "gm")
    again(gm, tmp_path, allow=("__matmul__",))


def test_two_allowed_objects_with_one_name_are_refused() -> None:
    def named(x: AnyValue) -> AnyValue:
        return x

    named.__module__, named.__name__ = "torch", "relu"
    with pytest.raises(
        ValueError, match=r"two objects are named 'torch\.relu'"
    ):
        fx.load("nowhere", allow=(named,))


HARMFUL = (
    *("torch.load", "torch.save", "torch.hub.load", "torch.from_file"),
    *("torch.compile", "torch.jit.load", "torch.ops.load_library", "eval"),
    *("torch.utils.cpp_extension.load", "torch.nn.functional.handle_torch"),
    *("torch.ops.aten.from_file", "torch.ops.aten.from_file.default"),
    *("torch.ops.aten.__class__", "torch.ops.aten.add.__class__", "exec"),
    *("torch.ops.mylib.op.default", "torch.ops", "torch.ops.aten", "os.system"),
    *("builtins.eval", "builtins.exec", "builtins.__import__", "builtins.open"),
    *("builtins.setattr", "builtins.map", "builtins.type", "builtins.print"),
    *("operator.attrgetter", "operator.methodcaller", "operator.call", ""),
    *("functools.partial", "torch.serialization.load", "torch.Tensor.apply_"),
    *("torch._dynamo.optimize", "torch.ops.aten._sparse_coo_tensor_unsafe"),
)


@pytest.mark.parametrize("name", HARMFUL)
def test_a_harmful_function_is_not_allowed(name: str, tmp_path: Path) -> None:
    with pytest.raises(fx.LoadError, match="is not allowed"):
        load_with(tmp_path, op="call_function", target=name)


@pytest.mark.parametrize(
    "name",
    *(
        "apply_ map_ map2_ __reduce__ __reduce_ex__ __class__ register_hook "
        "share_memory_ data_ptr numpy.tofile tofile _make_subclass storage "
        "untyped_storage as_subclass module_load backward format".split(),
    ),
)
def test_a_harmful_method_is_not_allowed(name: str, tmp_path: Path) -> None:
    with pytest.raises(fx.LoadError, match="is not allowed"):
        load_with(tmp_path, op="call_method", target=name)


@pytest.mark.parametrize(
    "path",
    *(
        "forward __class__ _graph graph _modules training meta.a code "
        "child.forward child._modules child.__init__ child.weight.data "
        "child..weight missing _forward_hooks __dict__".split(),
    ),
)
def test_a_path_leads_to_what_was_saved(path: str, tmp_path: Path) -> None:
    with pytest.raises(fx.LoadError, match=r"leads to nothing|not a dotted"):
        load_with(tmp_path, op="get_attr", target=path, args=[])


@pytest.mark.parametrize(
    "name", ["__class__", "_backward_hooks", "grad_fn", "numpy", {"node": "x"}]
)
def test_getattr_fetches_data_alone(name: AnyValue, tmp_path: Path) -> None:
    with pytest.raises(fx.LoadError, match=r"getattr of .* is not allowed"):
        load_with(
            tmp_path,
            op="call_function",
            target="builtins.getattr",
            args=[{"node": "x"}, name],
        )


def test_getattr_of_a_shape_is_allowed(tmp_path: Path) -> None:
    gm = of(lambda g, x: g.call_function(getattr, (x, "shape")))
    assert again(gm, tmp_path)(X) == X.shape


def load_with(folder: Path, **changes: AnyValue) -> fx.GraphModule:
    """Load a graph that reads `child.weight` and calls relu, changed."""
    gm = of(
        lambda g, x: (
            g.get_attr("child.weight"),
            g.call_function(torch.relu, (x,)),
        ),
        nn.ModuleDict({"child": nn.Linear(2, 2)}),
    )
    fx.save(gm, folder / "gm")
    lines = text(folder)
    [relu] = [line for line in lines if line.get("node") == "relu"]
    relu |= changes
    data = "\n".join(map(json.dumps, lines))
    (folder / "gm" / "graph.jsonl").write_text(data)
    return fx.load(folder / "gm")


def test_the_text_that_load_with_changes_is_right(tmp_path: Path) -> None:
    assert torch.equal(load_with(tmp_path)(X)[1], X.relu())


# -- what cannot be saved ----------------------------------------------------


def with_codegen() -> fx.GraphModule:
    """A graph module whose generated code is edited."""
    gm = of(lambda g, x: x)
    gm.graph.on_generate_code(lambda _: lambda body: body)
    return gm


def with_hook() -> fx.GraphModule:
    """A graph module with a hook."""
    gm = of(lambda g, x: x)
    gm.register_forward_hook(lambda *_: None)
    return gm


class Own(fx.GraphModule):
    """A class of a user below GraphModule."""


class Marked(torch.Tensor):
    """A subclass of Tensor."""


def with_attribute() -> fx.GraphModule:
    """A graph module with an attribute that is not data."""
    gm = of(lambda g, x: x)
    vars(gm)["odd"] = Odd()
    return gm


UNSAVED = {
    r"node output .*a .*\.Odd has no form": lambda: of(lambda g, x: Odd()),
    r"node mul .*an int of 16610 bits has no form": lambda: of(
        lambda g, x: g.call_function(operator.mul, (x, 10**5000))
    ),
    r"node output .*subclass of torch\.Tensor": lambda: of(
        lambda g, x: torch.ones(1).as_subclass(Marked)
    ),
    r"node output .*serialization.load' is not allowed": lambda: of(
        lambda g, x: [torch.load]
    ),
    r"node x .*Odd' is not allowed": lambda: typed(Odd),
    r"node x .*'print\(\)' is not a type": lambda: typed("print()"),
    r"node getattr_1 .*getattr of '__class__'": lambda: of(
        lambda g, x: g.call_function(getattr, (x, "__class__"))
    ),
    "code generator of a user": with_codegen,
    "module cannot be saved: it has forward_hooks": with_hook,
    r"node linear .*nn\.Linear' is not allowed": lambda: of(
        lambda g, x: g.call_function(nn.Linear, (2, 2))
    ),
    "module cannot be saved: it is a Own.*save a plain one": lambda: Own(
        nn.Module(), of(lambda g, x: x).graph
    ),
    "module cannot be saved: a .*Odd has no form": with_attribute,
}


def typed(kind: AnyValue) -> fx.GraphModule:
    """A graph whose input has a type."""
    graph = fx.Graph()
    graph.output(graph.placeholder("x", type_expr=kind))
    return fx.GraphModule(nn.Module(), graph)


@pytest.mark.parametrize("message", UNSAVED)
def test_what_cannot_be_saved_is_named(message: str, tmp_path: Path) -> None:
    gm = UNSAVED[message]()
    with pytest.raises(ValueError, match=message):
        fx.save(gm, tmp_path / "gm")
    assert not list(tmp_path.iterdir())


def test_private_names_of_tensors_and_children_come_back(
    tmp_path: Path,
) -> None:
    class Private(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("__scale", torch.full((4,), 2.0))
            self.add_module("__lin", nn.Linear(4, 4))

        @no_type_check
        def forward(self, x):
            return self._modules["__lin"](x) * self._buffers["__scale"]

    gm = fx.symbolic_trace(Private())
    assert torch.equal(again(gm, tmp_path)(X), gm(X))


def test_what_could_not_be_loaded_is_not_saved(tmp_path: Path) -> None:
    gm = fx.symbolic_trace(nn.Linear(4, 4))
    gm.register_buffer("__scale__", torch.ones(4))
    with pytest.raises(ValueError, match=r"not be loaded.*'__scale__' cannot"):
        fx.save(gm, tmp_path / "gm")
    assert not list(tmp_path.iterdir())


def test_an_attribute_that_hides_a_tensor_is_refused(tmp_path: Path) -> None:
    gm = leaf(nn.Linear(4, 4))
    vars(gm.get_submodule("m"))["weight"] = 3
    with pytest.raises(ValueError, match=r"'m' cannot .* hide \['weight'\]"):
        fx.save(gm, tmp_path / "gm")


def test_a_method_set_on_the_module_is_code(tmp_path: Path) -> None:
    gm = of(lambda g, x: x)
    vars(gm)["recompile"] = 3
    with pytest.raises(ValueError, match="'recompile' cannot be an attribute"):
        fx.save(gm, tmp_path / "gm")


def test_saving_leaves_the_modules_of_a_user_alone(tmp_path: Path) -> None:
    gm = leaf(Block())
    module = gm.get_submodule("m.inner")
    before = vars(module).copy(), vars(module)["_parameters"].copy()
    fx.save(gm, tmp_path / "gm")
    assert vars(module) == before[0]
    assert all(map(operator.is_, module.parameters(), before[1].values()))


@pytest.mark.parametrize(
    "name",
    ["class", "a b", "", "1x", "a\nb", "\ud800", "self", "len", "add_01"],
)
def test_a_name_that_is_not_an_identifier_comes_back(
    name: str, tmp_path: Path
) -> None:
    gm = of(lambda g, x: g.call_function(torch.relu, (x,)))
    for node in gm.graph.nodes:
        if node.op == "call_function":
            node.name = name
    gm.recompile()
    fx.save(gm, tmp_path / "gm")
    back = fx.load(tmp_path / "gm")
    assert [node.name for node in back.graph.nodes] == ["x", name, "output"]
    assert back.code == gm.code
    assert torch.equal(back(X), X.relu())


TUPLES = (
    torch.return_types.max((X, X)),
    OrderedDict(b=1, a=2),
)


@pytest.mark.parametrize("value", TUPLES, ids=lambda v: type(v).__name__)
def test_tuples_of_torch_and_ordered_dicts_come_back(
    value: AnyValue, tmp_path: Path
) -> None:
    tree = pytree.tree_map(lambda _: fx.PH, value)

    def f(x: AnyValue) -> AnyValue:
        return pytree.tree_map(lambda _: pytree.tree_leaves(x)[0], value)

    gm = fx.symbolic_trace(f, concrete_args={"x": tree})
    vars(gm)["held"] = held = [value, torch.Size([1, 2])]
    back = again(gm, tmp_path)
    assert type(back(value)) is type(gm(value)) is type(value)
    assert list(map(type, vars(back)["held"])) == list(map(type, held))
    assert repr(vars(back)["held"]) == repr(held)


# -- files -------------------------------------------------------------------


def test_the_files_can_be_read(tmp_path: Path) -> None:
    fx.save(fx.symbolic_trace(Shared()), tmp_path / "gm")
    assert sorted(os.listdir(tmp_path / "gm")) == ["graph.jsonl", "weights.pt"]
    tied = {"module": "out", "class": "torch.nn.Linear"}
    [out] = [line for line in text(tmp_path) if tied.items() <= line.items()]
    assert out["parameters"]["weight"] == "embed.weight"
    weights = torch.load(tmp_path / "gm" / "weights.pt", weights_only=True)
    assert "out.weight" not in weights


def test_a_saved_graph_is_replaced_as_a_whole(tmp_path: Path) -> None:
    fx.save(of(lambda g, x: 1), tmp_path / "gm")
    with pytest.raises(ValueError, match="has no form"):
        fx.save(of(lambda g, x: Odd()), tmp_path / "gm")
    assert fx.load(tmp_path / "gm")(X) == 1
    fx.save(of(lambda g, x: 2), tmp_path / "gm")
    assert fx.load(tmp_path / "gm")(X) == 2
    assert os.listdir(tmp_path) == ["gm"]


@pytest.mark.parametrize("name", ["weights.pt", "graph.jsonl"])
def test_a_file_of_that_name_that_fx_did_not_write(
    name: str, tmp_path: Path
) -> None:
    mine = {name: torch.ones(2)}
    (tmp_path / "run").mkdir()
    torch.save(mine, tmp_path / "run" / name)
    (tmp_path / "model" / name).mkdir(parents=True)
    (tmp_path / "model" / name / "epoch1.bin").write_text("weeks of training")
    for folder in ("run", "model"):
        with pytest.raises(FileExistsError, match="has other files than a"):
            fx.save(of(lambda g, x: 1), tmp_path / folder)
    assert torch.load(tmp_path / "run" / name).keys() == mine.keys()
    assert (tmp_path / "model" / name / "epoch1.bin").exists()
    assert sorted(os.listdir(tmp_path)) == ["model", "run"]


def test_a_saved_graph_that_somebody_changed_is_not_replaced(
    tmp_path: Path,
) -> None:
    gm = fx.symbolic_trace(nn.Linear(2, 2))
    for name in ("graph.jsonl", "weights.pt"):
        fx.save(gm, tmp_path / name)
        file = tmp_path / name / name
        if name == "weights.pt":
            held = torch.load(file)
            torch.save({key: held[key] + 1 for key in held}, file)
        else:
            file.write_text(file.read_text() + "\n")
        before = file.read_bytes()
        with pytest.raises(FileExistsError, match="changed since then"):
            fx.save(gm, tmp_path / name)
        assert file.read_bytes() == before


def test_what_comes_into_the_folder_while_saving_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fx.save(of(lambda g, x: 1), tmp_path / "gm")
    save = torch.save

    def slow(*args: AnyValue, **kwargs: AnyValue) -> None:
        (tmp_path / "gm" / "notes.txt").write_text("mine")
        save(*args, **kwargs)

    monkeypatch.setattr("torch.save", slow)
    with pytest.raises(FileExistsError, match="has other files than a"):
        fx.save(of(lambda g, x: 2), tmp_path / "gm")
    assert (tmp_path / "gm" / "notes.txt").read_text() == "mine"
    assert fx.load(tmp_path / "gm")(X) == 1
    assert os.listdir(tmp_path) == ["gm"]


def test_a_folder_that_cannot_be_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileExistsError, match="is the current directory"):
        fx.save(of(lambda g, x: 1), ".")
    fx.save(of(lambda g, x: 1), "gm")
    monkeypatch.chdir("gm")
    with pytest.raises(FileExistsError, match=r"gm/model"):
        fx.save(of(lambda g, x: 2), ".")
    assert fx.load(".")(X) == 1
    fx.save(of(lambda g, x: 2), "../other")
    assert sorted(os.listdir("..")) == ["gm", "other"]
    monkeypatch.setattr(os.path, "ismount", lambda path: True)
    with pytest.raises(FileExistsError, match="or a mount point"):
        fx.save(of(lambda g, x: 2), tmp_path / "gm")


def test_a_folder_keeps_who_may_read_it(tmp_path: Path) -> None:
    (tmp_path / "gm").mkdir(0o700)
    for _ in range(2):
        fx.save(of(lambda g, x: 1), tmp_path / "gm")
        assert (tmp_path / "gm").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("fails", ["torch.save", "pathlib.Path.write_bytes"])
def test_nothing_is_left_of_a_failed_save(
    fails: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: AnyValue, **kwargs: AnyValue) -> None:
        raise OSError("the disk is full")

    fx.save(of(lambda g, x: 1), tmp_path / "gm")
    with monkeypatch.context() as patch:
        patch.setattr(fails, full)
        with pytest.raises(OSError, match=r"the disk is full"):
            fx.save(of(lambda g, x: 2), tmp_path / "gm")
    assert os.listdir(tmp_path) == ["gm"]
    assert fx.load(tmp_path / "gm")(X) == 1


def test_the_old_graph_comes_back_if_the_new_cannot_be_put_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def refuse_new(self: Path, target: Path) -> Path:
        if self.name == "new":
            raise OSError("no")
        return rename(self, target)

    fx.save(of(lambda g, x: 1), tmp_path / "gm")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", refuse_new)
        with pytest.raises(OSError, match="no"):
            fx.save(of(lambda g, x: 2), tmp_path / "gm")
    assert os.listdir(tmp_path) == ["gm"]
    assert fx.load(tmp_path / "gm")(X) == 1


# -- files from elsewhere ----------------------------------------------------


def test_a_file_of_another_version_is_refused(tmp_path: Path) -> None:
    fx.save(leaf(nn.ReLU()), tmp_path / "gm")
    file = tmp_path / "gm" / "graph.jsonl"
    lines = file.read_text()
    assert lines.count('"version": 1}') == 1
    file.write_text(lines.replace('"version": 1}', '"version": 2}'))
    with pytest.raises(fx.LoadError, match="reads 'fx graph', version 1: "):
        fx.load(tmp_path / "gm")


def test_files_may_be_links(tmp_path: Path) -> None:
    fx.save(leaf(nn.ReLU()), tmp_path / "gm")
    (tmp_path / "linked").mkdir()
    for name in ("graph.jsonl", "weights.pt"):
        (tmp_path / "linked" / name).symlink_to(tmp_path / "gm" / name)
    assert torch.equal(fx.load(tmp_path / "linked")(X), X.relu())
    with pytest.raises(FileExistsError, match="has other files than a"):
        fx.save(leaf(nn.ReLU()), tmp_path / "linked")


def test_a_file_must_be_plain(tmp_path: Path) -> None:
    for name in ("graph.jsonl", "weights.pt"):
        fx.save(leaf(nn.ReLU()), tmp_path / name)
        (tmp_path / name / name).unlink()
        os.mkfifo(tmp_path / name / name)
        with pytest.raises(fx.LoadError, match=f"{name}: .*not a plain file"):
            fx.load(tmp_path / name)


def test_a_graph_that_is_saved_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fx.save(of(lambda g, x: 1), tmp_path / "gm")
    load = torch.load

    def meanwhile(*args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        monkeypatch.undo()
        fx.save(of(lambda g, x: 2), tmp_path / "gm")
        return load(*args, **kwargs)

    monkeypatch.setattr("torch.load", meanwhile)
    with pytest.raises(fx.LoadError, match="was saved there meanwhile"):
        fx.load(tmp_path / "gm")
    assert fx.load(tmp_path / "gm")(X) == 2


def test_weights_that_are_more_than_their_file(tmp_path: Path) -> None:
    root = nn.Module()
    root.register_buffer("zeros", torch.zeros(100, 100))
    fx.save(of(lambda g, x: g.get_attr("zeros"), root), tmp_path / "gm")
    file = tmp_path / "gm" / "weights.pt"
    with ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    with pytest.raises(fx.LoadError, match="its parts are compressed"):
        fx.load(tmp_path / "gm")
    torch.save({}, file, _use_new_zipfile_serialization=False)
    with pytest.raises(fx.LoadError, match="not a zip file"):
        fx.load(tmp_path / "gm")


def test_types_compute_nothing(tmp_path: Path) -> None:
    wide = {"tensor": "child.weight"}
    for kind in ("generic", "union"):
        (tmp_path / kind).mkdir()
        with pytest.raises(fx.LoadError, match="is not a type"):
            load_with(tmp_path / kind, args=[{kind: [wide, wide]}])
