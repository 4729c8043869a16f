"""Passes: graphs of torch.fx as graphs of fx, and back."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest
import torch
import torch.fx
from torch import nn
from torch.fx._symbolic_trace import PH as torch_PH
from torch.fx.graph import CodeGen as TorchCodeGen

import fx
from fx.passes.infra.partitioner import CapabilityBasedPartitioner
from fx.passes.operator_support import OperatorSupport
from fx.passes.split_module import split_module
from fx.passes.utils.matcher_utils import SubgraphMatcher
from fx.passes.utils.matcher_with_name_node_map_utils import (
    SubgraphMatcherWithNameNodeMap,
)
from fx.subgraph_rewriter import replace_pattern_with_filters
from fx.use_def.values import AnyValue
from tests.library.same_graph import assert_same_graph
from tests.zoo import ZOO, Network, borrow


def _same(left: AnyValue, right: AnyValue) -> None:
    """Fail unless two results are equal to the last bit."""
    torch.testing.assert_close(left, right, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("network", ZOO, ids=lambda n: str(n.name))
def test_networks_come_over_and_go_back(network: Network) -> None:
    """Graph, code, types and meta are the same, and so are results."""
    with borrow(network, training=False) as model, torch.no_grad():
        theirs = torch.fx.symbolic_trace(model)
        for index, node in enumerate(theirs.graph.nodes):
            node.meta["place"] = index
        ours = fx.from_torch(theirs)
        back = fx.to_torch(ours)
        assert_same_graph(fx.from_torch(back), ours)
        assert str(ours.graph) == str(theirs.graph) == str(back.graph)
        assert back.code == theirs.code
        for one, two, three in zip(
            theirs.graph.nodes, ours.graph.nodes, back.graph.nodes, strict=True
        ):
            assert one.type == two.type == three.type
            assert one.meta == two.meta == three.meta
        ours.graph.lint()
        inputs = network.inputs()
        results = []
        for module in (theirs, ours, back):
            torch.manual_seed(0)
            results.append(module(*inputs))
        _same(results[1], results[0])
        _same(results[2], results[0])


def test_state_is_shared_and_an_edit_is_not() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    theirs = torch.fx.symbolic_trace(model)
    theirs.meta["note"] = "kept"
    ours = fx.from_torch(theirs)
    assert ours.get_submodule("0") is model[0]
    assert ours.meta == {"note": "kept"} == fx.to_torch(ours).meta
    before = str(theirs.graph)
    relu = ours.graph.find_nodes(op="call_module", target="1")[0]
    relu.replace_all_uses_with(relu.input_at(0))
    ours.graph.erase_node(relu)
    ours.recompile()
    x = torch.randn(2, 3)
    _same(ours(x), model[0](x))
    assert str(theirs.graph) == before
    _same(fx.to_torch(ours)(x), model[0](x))


def _nested(batch: AnyValue) -> AnyValue:
    """The sum of a pair in a dict, in a dict."""
    left, right = batch["pair"]
    return {"sum": left + right}


def test_nested_inputs_stay_nested() -> None:
    shape = {"pair": (torch_PH, torch_PH)}
    theirs = torch.fx.symbolic_trace(_nested, concrete_args={"batch": shape})
    ours = fx.from_torch(theirs)
    assert ours.code == theirs.code
    batch = {"pair": (torch.ones(2), torch.ones(2))}
    _same(ours(batch), _nested(batch))
    _same(fx.Interpreter(ours).run(batch), _nested(batch))
    back = fx.to_torch(ours)
    assert back.code == theirs.code
    _same(back(batch), _nested(batch))


def test_defaults_beside_nested_inputs_are_dropped() -> None:
    shape = {"pair": (fx.PH, fx.PH)}
    ours = fx.symbolic_trace(lambda pair, k=2: pair[0] * k, concrete_args=shape)
    assert ours((3, 4)) == fx.to_torch(ours)((3, 4), 2) == 6


def test_buffers_that_are_not_saved_stay_so() -> None:
    def holder() -> nn.Module:
        module = nn.Module()
        module.register_buffer("once", torch.ones(1), persistent=False)
        return module

    graph = fx.Graph()
    names = ["once", "inner.once"]
    graph.output(tuple([graph.get_attr(name) for name in names]))
    root = holder()
    root.inner = holder()
    ours = fx.GraphModule(root, graph)
    theirs = fx.to_torch(ours)
    assert [*dict(theirs.named_buffers())] == names
    assert not theirs.state_dict()
    assert not fx.from_torch(theirs).state_dict()


def test_hooks_are_missed_with_a_warning() -> None:
    theirs = torch.fx.symbolic_trace(nn.Sequential(nn.ReLU()))
    ours = fx.from_torch(theirs)
    for module in (theirs, ours):
        module.register_forward_hook(lambda m, args, out: out * 0)
    with pytest.warns(UserWarning, match="Sequential has forward_hooks"):
        fx.from_torch(theirs)
    with pytest.warns(UserWarning, match="Sequential has forward_hooks"):
        ours.to_torch()


def test_a_forward_of_its_own_is_missed_with_a_warning() -> None:
    gm = fx.symbolic_trace(nn.ReLU())
    vars(gm)["forward"] = lambda x: x
    with pytest.warns(UserWarning, match="has a forward of its own"):
        gm.to_torch()


def test_a_graph_out_of_order_is_named() -> None:
    graph = torch.fx.symbolic_trace(lambda x: x.relu().neg()).graph
    _, relu, neg, _ = graph.nodes
    neg.append(relu)
    with pytest.raises(RuntimeError, match="'relu' is used before"):
        fx.from_torch(graph)


def test_a_name_that_fx_would_not_give_is_kept() -> None:
    theirs = torch.fx.Graph()
    x = theirs.placeholder("x")
    node = theirs.call_function(torch.relu, (x,))
    node.name = "len"
    theirs.output(node)
    ours = fx.from_torch(theirs)
    assert [n.name for n in ours.nodes] == ["x", "len", "output"]
    assert str(fx.to_torch(ours)) == str(theirs) == str(ours)


def no_trace_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Say that torch.fx traces nothing.

    Two threads that traced with it at once, in another test, may have left
    this set; Dynamo would pass over everything.
    """
    names = torch.fx._symbolic_trace
    if hasattr(names, "_is_fx_tracing_flag"):
        monkeypatch.setattr(names, "_is_fx_tracing_flag", False)
    else:
        thread = vars(names)["_is_fx_tracing_tls"]
        monkeypatch.setattr(thread, "flag", False, raising=False)


def test_a_backend_trains_a_resnet(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step has the loss of eager mode, and leaves the same weights."""
    no_trace_of_torch(monkeypatch)
    network = next(one for one in ZOO if one.name == "resnet18")
    replaced: list[int] = []

    def with_fx(gm: torch.fx.GraphModule, _: AnyValue) -> AnyValue:
        ours = fx.from_torch(gm)
        done = fx.replace_pattern(
            ours,
            lambda x: nn.functional.relu(x, inplace=True),
            lambda x: torch.relu(x),
        )
        replaced.append(len(done))
        return fx.to_torch(fx.Transformer(ours).transform())

    def trained(backend: AnyValue) -> list[torch.Tensor]:
        torch.manual_seed(0)
        x, target = torch.randn(2, 3, 32, 32), torch.tensor([1, 2])
        with borrow(network, training=True) as shared:
            model = copy.deepcopy(shared)
        run: AnyValue = (
            torch.compile(model, backend=backend) if backend else model
        )
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        loss: AnyValue = nn.functional.cross_entropy(run(x), target)
        loss.backward()
        optimizer.step()
        return [loss, *model.parameters()]

    expected = trained(None)
    torch._dynamo.reset()
    torch.testing.assert_close(trained(with_fx), expected)
    assert replaced == [17]


def test_an_exported_program_is_edited_and_put_back() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    x = torch.randn(2, 3)
    program = torch.export.export(model, (x,))
    ours = fx.from_torch(program.graph_module)
    (relu,) = (n for n in ours.graph.nodes if n.name == "relu")
    relu.target = torch.ops.aten.tanh.default
    back = fx.to_torch(ours)
    edited = torch.export.ExportedProgram(
        back,
        back.graph,
        program.graph_signature,
        program.state_dict,
        program.range_constraints,
        program.module_call_graph,
    )
    run: AnyValue = edited.module()
    _same(run(x), torch.tanh(model[0](x)))


def test_an_exported_module_is_pickled_without_its_checks() -> None:
    program = torch.export.export(nn.Linear(2, 2), (torch.ones(1, 2),))
    gm = fx.from_torch(program.module())
    with pytest.warns(UserWarning, match="checks of inputs"):
        back = pickle.loads(pickle.dumps(gm))
    assert torch.equal(back(torch.ones(1, 2)), gm(torch.ones(1, 2)))
    assert "_guards_fn" in gm.code
    assert "_guards_fn" not in back.code


def test_what_is_ours_stays_as_it_is() -> None:
    gm = fx.symbolic_trace(nn.ReLU())
    assert fx.from_torch(gm) is gm
    assert fx.from_torch(gm.graph) is gm.graph


def test_what_cannot_be_converted_is_refused() -> None:
    class Own(TorchCodeGen):
        """A code generator of a user's."""

    theirs = torch.fx.Graph()
    theirs.output(theirs.placeholder("x"))
    theirs.set_codegen(Own())
    with pytest.raises(TypeError, match=r"is of the class .*Own"):
        fx.from_torch(theirs)
    not_a_graph: AnyValue = nn.ReLU()
    with pytest.raises(TypeError, match="not ReLU"):
        fx.from_torch(not_a_graph)
    with pytest.raises(TypeError, match="not ReLU"):
        fx.to_torch(not_a_graph)


# -- graphs of torch.fx as patterns and replacements ---------------------------


def exported(f: Callable[..., AnyValue], *args: AnyValue) -> AnyValue:
    """What torch.export makes of a function, a module of torch.fx."""

    class Holder(nn.Module):
        """Calls the function."""

        def forward(self, *args: AnyValue) -> AnyValue:
            """Call it."""
            return f(*args)

    return torch.export.export(Holder(), args).module()


def relus(x: AnyValue) -> AnyValue:
    """What is rewritten."""
    return torch.relu(x) + torch.relu(x * 2)


def aten_relu(x: AnyValue) -> AnyValue:
    """A pattern."""
    return torch.ops.aten.relu.default(x)


def aten_tanh(x: AnyValue) -> AnyValue:
    """A replacement."""
    return torch.ops.aten.tanh.default(x)


X = torch.linspace(-1, 1, 4)


@pytest.mark.parametrize("how", ["traced", "exported"])
@pytest.mark.parametrize("bare", [False, True])
def test_a_graph_of_torch_fx_is_a_pattern_and_a_replacement(
    how: str, bare: bool
) -> None:
    made: list[AnyValue] = [
        torch.fx.symbolic_trace(f) if how == "traced" else exported(f, X)
        for f in (aten_relu, aten_tanh)
    ]
    given = [one.graph for one in made] if bare else made
    before = [one.print_readable(print_output=False) for one in made]
    gm = fx.from_torch(exported(relus, X))
    assert len(fx.replace_pattern(gm, *given)) == 2
    _same(gm(X), torch.tanh(X) + torch.tanh(X * 2))
    assert before == [one.print_readable(print_output=False) for one in made]
    assert all(isinstance(node, fx.Node) for node in gm.graph.nodes)


class Scale(nn.Module):
    """A module with a tensor of its own."""

    def __init__(self, value: float) -> None:
        """Take the tensor's value."""
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(value))

    def forward(self, x: AnyValue) -> AnyValue:
        """Scale a tensor."""
        return x * self.scale


@pytest.mark.parametrize("bare", [False, True])
def test_what_its_nodes_fetch_comes_along(bare: bool) -> None:
    sought: AnyValue = torch.fx.symbolic_trace(Scale(3.0))
    new: AnyValue = torch.fx.symbolic_trace(Scale(5.0))
    gm = fx.symbolic_trace(Scale(2.0))
    new.register_parameter("other", new.scale)
    for node in new.graph.nodes:
        if node.op == "get_attr":
            node.target = "other"
    given = [one.graph if bare else one for one in (sought, new)]
    assert len(fx.replace_pattern(gm, *given)) == 1
    assert gm(torch.ones(())).item() == 5.0


def test_a_callback_may_make_graphs_of_torch_fx() -> None:
    gm = fx.symbolic_trace(relus)
    graph: AnyValue = torch.fx.symbolic_trace(lambda x: torch.tanh(x)).graph
    found = replace_pattern_with_filters(
        gm,
        lambda x: torch.relu(x),
        replacement_callback=lambda match, graph_, pattern: graph,
    )
    assert len(found) == 2
    _same(gm(X), torch.tanh(X) + torch.tanh(X * 2))


def test_a_matcher_takes_a_graph_of_torch_fx() -> None:
    graph: AnyValue = torch.fx.symbolic_trace(lambda x: torch.relu(x)).graph
    matcher = SubgraphMatcher(graph)
    found = matcher.match(fx.symbolic_trace(relus).graph)
    assert [*found[0].nodes_map] == [*matcher.pattern.nodes][1::-1]

    def with_name(x: AnyValue) -> AnyValue:
        y = torch.relu(x)
        return y, {"it": y}

    named: AnyValue = torch.fx.symbolic_trace(with_name)
    names = SubgraphMatcherWithNameNodeMap(named)
    matches = names.match(fx.symbolic_trace(relus).graph)
    assert [str(one.name_node_map["it"]) for one in matches] == [
        "relu",
        "relu_1",
    ]


def test_a_graph_of_torch_fx_that_would_be_edited_is_refused() -> None:
    theirs: AnyValue = torch.fx.symbolic_trace(relus)
    with pytest.raises(TypeError, match=r"of torch\.fx.*fx\.from_torch"):
        fx.replace_pattern(theirs, lambda x: torch.relu(x), torch.tanh)


@pytest.mark.parametrize(
    "read",
    [
        lambda gm: split_module(gm, gm, lambda node: 0),
        lambda gm: CapabilityBasedPartitioner(gm, OperatorSupport()),
        lambda gm: fx.diff(gm, gm),
        fx.show,
        lambda gm: fx.effects.classify(next(iter(gm.graph.nodes))),
        lambda gm: [*fx.lint.problems(gm.graph)],
    ],
)
def test_what_reads_a_graph_of_fx_names_the_conversion(
    read: Callable[[AnyValue], object],
) -> None:
    gm: AnyValue = torch.fx.symbolic_trace(nn.Sequential(nn.ReLU()))
    with pytest.raises(TypeError, match=r"fx\.from_torch\(graph\)"):
        read(gm)
    read(fx.from_torch(gm))
