"""PyTorch's own users of a module are given a GraphModule of fx.

Each does with it what it does with the network that was traced. Compilers are
in `test_compiled`, and quantisation, which asks for `fx.as_torch`, is in
`tests/clients`.
"""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import torch
import torch.distributed
from functorch.compile import (
    aot_module,
    default_partition,
    make_boxed_func,
    min_cut_rematerialization_partition,
)
from torch import nn
from torch._inductor import pattern_matcher
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.pipelining import SplitPoint, pipeline
from torch.distributed.tensor import parallel
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import parametrizations, prune
from torch.optim.swa_utils import AveragedModel, update_bn
from torch.testing import assert_close
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

import fx
from fx.use_def.values import AnyValue

PACKAGE: Final[AnyValue] = torch.package
JIT: Final[AnyValue] = torch.jit
PRUNE: Final[AnyValue] = prune
DISTRIBUTED: Final[AnyValue] = torch.distributed
"""What torch gives no types to, or does not say that it gives."""

X: Final = torch.linspace(-1, 1, 12).reshape(4, 3)


class Net(nn.Module):
    """Layers, a norm that writes into itself, and a residual."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(3, 3)
        self.norm = nn.BatchNorm1d(3)
        self.last = nn.Linear(3, 2)

    def forward(self, x):  # type: ignore[no-untyped-def]
        y = torch.relu(self.norm(self.first(x))) + x
        return self.last(y)


@pytest.fixture
def net() -> nn.Module:
    """A network, the same each time."""
    return Net()


@pytest.fixture
def gm(net: nn.Module) -> fx.GraphModule:
    """A copy of it, traced: what is trained is not shared."""
    return fx.symbolic_trace(copy.deepcopy(net))


def trained(module: AnyValue) -> list[AnyValue]:
    """The loss, the gradients and the buffers of one step."""
    loss = module(X).square().sum()
    loss.backward()
    gradients = [each.grad for each in module.parameters()]
    return [loss, *gradients, *module.buffers()]


# -- TorchScript and export --------------------------------------------------


@pytest.mark.filterwarnings("ignore")
def test_torchscript(net: nn.Module, gm: fx.GraphModule) -> None:
    for scripted in (JIT.script(gm), JIT.trace(gm, X)):
        file = io.BytesIO()
        JIT.save(scripted, file)
        file.seek(0)
        assert_close(JIT.load(file)(X), net(X))


@pytest.mark.filterwarnings("ignore:.*treespec:FutureWarning")
@pytest.mark.parametrize("strict", [False, True])
def test_export_with_a_free_batch(
    net: nn.Module, gm: fx.GraphModule, strict: bool
) -> None:
    batch = {0: torch.export.Dim("batch", min=2)}
    program = torch.export.export(
        gm.eval(), (X,), dynamic_shapes=(batch,), strict=strict
    )
    for made in (program.module(), torch.export.unflatten(program)):
        assert_close(made(X[:3]), net.eval()(X[:3]))
    assert {*program.state_dict} == {*net.state_dict()}


# -- functions of modules ----------------------------------------------------


@pytest.mark.parametrize(
    "partition", [default_partition, min_cut_rematerialization_partition]
)
def test_aot_module(
    net: nn.Module, gm: fx.GraphModule, partition: AnyValue
) -> None:
    def compiler(inner: AnyValue, _: object) -> AnyValue:
        graphs.append(inner)
        return make_boxed_func(inner.forward)

    graphs: list[AnyValue] = []
    made = aot_module(gm, compiler, compiler, partition)
    assert_close(trained(made), trained(net))
    assert len(graphs) == 2


def test_functional_call_and_transforms(
    net: nn.Module, gm: fx.GraphModule
) -> None:
    parameters = {name: each.detach() for name, each in net.named_parameters()}

    def loss(module: AnyValue) -> AnyValue:
        def of(values: AnyValue, x: AnyValue) -> AnyValue:
            call = torch.func.functional_call(module, values, (x[None],))
            return call.square().sum()

        return of

    found = []
    for module in (net.eval(), gm.eval()):
        of = loss(module)
        each = torch.func.vmap(torch.func.grad(of), (None, 0))(parameters, X)
        along = torch.func.jvp(
            lambda x, of=of: of(parameters, x), (X[0],), (torch.ones(3),)
        )
        found.append((each, along))
    assert_close(*found)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint(
    net: nn.Module, gm: fx.GraphModule, reentrant: bool
) -> None:
    x = X.clone().requires_grad_()
    found = []
    for module in (net.eval(), gm.eval()):
        y: AnyValue = checkpoint(module, x, use_reentrant=reentrant)
        found.append(torch.autograd.grad(y.sum(), x) if not reentrant else y)
    assert_close(*found)


# -- what is done to a module ------------------------------------------------


def test_hooks(net: nn.Module, gm: fx.GraphModule) -> None:
    seen: dict[int, list[str]] = {0: [], 1: []}
    for number, module in enumerate((net, gm)):
        for name, child in module.named_children():
            child.register_forward_pre_hook(
                lambda *_, n=number, name=name: seen[n].append(f"before {name}")
            )
            child.register_full_backward_hook(
                lambda *_, n=number, name=name: seen[n].append(f"back {name}")
            )
        module.register_forward_hook(
            lambda *_, n=number: seen[n].append("after")
        )
    x = X.clone().requires_grad_()
    for module in (net, gm):
        module(x).sum().backward()
    assert seen[0] == seen[1]
    assert len(seen[0]) == 7


def test_parametrisations_and_pruning(
    net: nn.Module, gm: fx.GraphModule
) -> None:
    for module in (net, gm):
        layers: AnyValue = module
        torch.manual_seed(0)
        parametrizations.weight_norm(layers.first)
        PRUNE.l1_unstructured(layers.last, "weight", 0.5)
    assert_close(trained(gm), trained(net))


def test_averaged_weights(net: nn.Module, gm: fx.GraphModule) -> None:
    found = []
    for module in (net, gm):
        averaged = AveragedModel(module)
        averaged.update_parameters(module)
        update_bn([X, X + 1], averaged)
        found.append(averaged.state_dict())
    assert_close(*found)


def test_profiler_and_flop_counter(net: nn.Module, gm: fx.GraphModule) -> None:
    counted, seen = [], []
    for module in (net, gm):
        with FlopCounterMode(display=False) as flops:
            module(X)
        counted.append(flops.get_total_flops())
        with torch.profiler.profile(acc_events=True) as profile:
            module(X)
        seen.append({e.key: e.count for e in profile.key_averages()})
    assert counted[0] == counted[1] == 2 * 4 * 3 * (3 + 2)
    assert seen[0] == seen[1]
    assert seen[0]["aten::addmm"] == 2


def test_a_package(net: nn.Module, gm: fx.GraphModule, tmp_path: Path) -> None:
    """It has the graph; fx and torch are those of the reader."""
    file = str(tmp_path / "package.pt")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with PACKAGE.PackageExporter(file) as exporter:
            exporter.extern(["fx.**", "torch.**", "_operator"])
            exporter.save_pickle("model", "gm.pkl", gm.eval())
        read: AnyValue = PACKAGE.PackageImporter(file).load_pickle(
            "model", "gm.pkl"
        )
    assert_close(read(X), net.eval()(X))
    assert str(read.graph) == str(gm.graph)


# -- in several processes, of which there is one here ------------------------


@pytest.fixture(scope="module")
def process_group() -> Iterator[None]:
    """A group of this process alone."""
    store = DISTRIBUTED.HashStore()
    DISTRIBUTED.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    DISTRIBUTED.destroy_process_group()


@pytest.mark.usefixtures("process_group")
def test_data_parallel(net: nn.Module, gm: fx.GraphModule) -> None:
    assert_close(trained(DistributedDataParallel(gm)), trained(net))


@pytest.mark.usefixtures("process_group")
@pytest.mark.filterwarnings("ignore")
def test_sharded(net: nn.Module, gm: fx.GraphModule) -> None:
    mesh = init_device_mesh("cpu", (1,))
    layers: AnyValue = gm
    fully_shard(layers.first, mesh=mesh)
    sharded: AnyValue = fully_shard(gm, mesh=mesh)
    assert isinstance(sharded, fx.GraphModule)
    found = trained(sharded)
    expected = trained(net)
    assert_close(found[0], expected[0])
    whole = [getattr(each, "full_tensor", lambda e=each: e)() for each in found]
    assert_close(whole, expected)


@pytest.mark.usefixtures("process_group")
@pytest.mark.filterwarnings("ignore")
def test_sharded_by_a_module_around_it(
    net: nn.Module, gm: fx.GraphModule
) -> None:
    wrapped = FullyShardedDataParallel(
        gm, device_id=torch.device("cpu"), use_orig_params=True
    )
    assert isinstance(wrapped.module, fx.GraphModule)
    assert_close(trained(wrapped), trained(net))


@pytest.mark.usefixtures("process_group")
@pytest.mark.filterwarnings("ignore")
def test_tensor_parallel(net: nn.Module, gm: fx.GraphModule) -> None:
    plan: AnyValue = {
        "first": parallel.ColwiseParallel(
            output_layouts=torch.distributed.tensor.Replicate()
        ),
        "last": parallel.ColwiseParallel(
            output_layouts=torch.distributed.tensor.Replicate()
        ),
    }
    cut = parallel.parallelize_module(gm, init_device_mesh("cpu", (1,)), plan)
    assert_close(cut(X), net(X))


@pytest.mark.filterwarnings("ignore")
def test_pipelining(net: nn.Module, gm: fx.GraphModule) -> None:
    pipe = pipeline(gm.eval(), (X,), split_spec={"last": SplitPoint.BEGINNING})
    assert pipe.num_stages == 2
    (result,) = pipe(X)
    assert_close(result, net.eval()(X))


# -- what takes graphs of torch.fx alone -------------------------------------


def test_inductors_pattern_matcher_is_given_a_graph_of_torch() -> None:
    """It refuses ours; `to_torch` makes what it takes."""
    passes = pattern_matcher.PatternMatcherPass()

    @pattern_matcher.register_graph_pattern(
        pattern_matcher.CallFunction(
            torch.relu, pattern_matcher.KeywordArg("x")
        ),
        pass_dict=passes,
    )
    def replaced(match: AnyValue, x: AnyValue) -> None:
        match.replace_by_example(torch.tanh, [x])

    gm = fx.symbolic_trace(lambda x: torch.relu(x))
    with pytest.raises(RuntimeError, match="must be a GraphModule or a Graph"):
        passes.apply(gm)  # type: ignore[arg-type]
    theirs = fx.to_torch(gm)
    for node in theirs.graph.nodes:
        node.meta["val"] = X
    assert passes.apply(theirs) == 1
    ours = fx.from_torch(theirs)
    ours.recompile()
    assert_close(ours(X), torch.tanh(X))
