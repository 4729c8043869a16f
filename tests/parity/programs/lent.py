"""Modules that fx has not, and that torch lends: run on graphs of each library.

A program sees the same on both, though the file that does the work is one.
"""

from __future__ import annotations

import contextlib
import io
import pickle
import warnings

import torch
from torch import nn

from tests.parity.harness import Lib, Seen, names, program, show
from tests.parity.programs._subjects import AnyValue, module

X = torch.linspace(-1, 1, 6).reshape(2, 3)


def mixed(x, y):  # type: ignore[no-untyped-def]
    """Three calls for a back end, with one between that it does not have."""
    a = torch.relu(x) + y
    return torch.neg(torch.sin(a)) * y


def is_not_sin(_: object, node: AnyValue) -> bool:
    """What the back end has."""
    return node.target is not torch.sin


@program()
def a_splitter(lib: Lib) -> Seen:
    base = module(lib, "passes.splitter_base")
    support = module(lib, "passes.operator_support")
    splitter = base._SplitterBase(
        lib.symbolic_trace(mixed),
        (X, X),
        support.create_op_support(is_not_sin),
        base._SplitterSettingBase(min_acc_module_size=1),
    )
    with contextlib.redirect_stdout(io.StringIO()) as said:
        preview = splitter.node_support_preview()
    gm = splitter()
    parts = [(name, part.code) for name, part in gm.named_children()]
    return show(gm, X, X), parts, preview, said.getvalue()


@program()
def a_net_minimizer(lib: Lib) -> Seen:
    base = module(lib, "passes.net_min_base")
    derived_from: AnyValue = base._MinimizerBase

    class Minimizer(derived_from):  # type: ignore[misc]
        def run_a(
            self, mod: AnyValue, inputs: AnyValue, report_idx: int = -1
        ) -> AnyValue:
            return mod(*inputs)

        def run_b(
            self, mod: AnyValue, inputs: AnyValue, report_idx: int = -1
        ) -> AnyValue:
            wrong = any(n.target is torch.sin for n in mod.graph.nodes)
            return mod(*inputs) + wrong

    def close(a: AnyValue, b: AnyValue, _: object) -> tuple[float, bool]:
        return float((a - b).abs().max()), torch.allclose(a, b)

    found = []
    for method in ("sequential", "binary", "accumulate"):
        settings = base._MinimizerSettingBase(traverse_method=method)
        gm = lib.symbolic_trace(mixed)
        minimizer = Minimizer(gm, (X, X), close, settings)
        with contextlib.redirect_stdout(io.StringIO()):
            found.append(names(minimizer.minimize()))
    return found


@program()
def a_transform_observer(lib: Lib) -> Seen:
    from_observer = module(lib, "passes.graph_transform_observer")
    gm = lib.symbolic_trace(mixed)
    with torch._inductor.config.patch("trace.provenance_tracking_level", 1):
        observer = from_observer.GraphTransformObserver(gm, "change")
        with observer:
            (old,) = (n for n in gm.graph.nodes if n.target is torch.sin)
            with gm.graph.inserting_before(old):
                new = gm.graph.call_function(torch.cos, old.args)
            old.replace_all_uses_with(new)
            gm.graph.erase_node(old)
    (source,) = new.meta["from_node"]
    made = observer.created_nodes, observer.erased_nodes
    said = source.name, source.pass_name, [each.name for each in source.action]
    return [sorted(each) for each in made], said, str(gm.graph)


@program()
def a_partition_for_cuda_graphs(lib: Lib) -> Seen:
    """Only cut: fake tensors have a device that the machine may lack."""
    aten = torch.ops.aten
    graph = lib.Graph()
    x = graph.placeholder("x")
    here = graph.call_function(aten.relu.default, (x,))
    kind = {"device": torch.device("cuda")}
    ones = graph.call_function(aten.ones.default, ([2, 3],), kind)
    there = graph.call_function(aten.neg.default, (ones,))
    graph.output((here, graph.call_function(aten.exp.default, (there,))))
    backend = module(lib, "passes.backends.cudagraphs")
    cut = backend.partition_cudagraphs(lib.GraphModule({}, graph), (X,))
    return cut.code, [part.code for part in cut.children()]


class Convolved(nn.Module):
    """A small network whose input has a type with an unknown dimension."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.relu, self.fc = nn.ReLU(), nn.Linear(4, 5)

    def forward(self, x):  # type: ignore[no-untyped-def]
        return self.fc(self.relu(self.conv(x)).transpose(1, 3))


def typed(lib: Lib) -> AnyValue:
    """The network, traced; its input has a gradual type."""
    gm = lib.symbolic_trace(Convolved())
    types = module(lib, "tensor_type")
    (x,) = (node for node in gm.graph.nodes if node.op == "placeholder")
    x.type = types.TensorType((types.Dyn, 3, 8, 8))
    return gm


@program()
def gradual_types_checked(lib: Lib) -> Seen:
    checker = module(lib, "experimental.graph_gradual_typechecker")
    gm = lib.symbolic_trace(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()))
    types = module(lib, "tensor_type")
    (x,) = (node for node in gm.graph.nodes if node.op == "placeholder")
    x.type = types.TensorType((types.Dyn, 3, 8, 8))
    fits = checker.GraphTypeChecker({}, gm).type_check()
    found = [str(node.type) for node in gm.graph.nodes]
    checker.Refine(gm).refine()
    module(lib, "experimental.unify_refinements").infer_symbolic_types(gm)
    return fits, found, [str(node.type) for node in gm.graph.nodes]


@program()
def gradual_types_as_constraints(lib: Lib) -> Seen:
    gradual = "experimental.migrate_gradual_types"
    generator = module(lib, f"{gradual}.constraint_generator")
    transformation = module(lib, f"{gradual}.constraint_transformation")
    made = generator.ConstraintGenerator(typed(lib))
    constraint, counter = made.generate_constraints(0)
    text = str(constraint)
    simpler, counter = transformation.transform_constraint(constraint, counter)
    return text, str(simpler), counter


class Checked(nn.Module):
    """Has an assertion, which a trace cannot follow."""

    def forward(self, x):  # type: ignore[no-untyped-def]
        assert x.sum() > 0, "no"
        return x + 1


@program()
def a_rewriting_tracer(lib: Lib) -> Seen:
    tracer = module(lib, "experimental.rewriter").RewritingTracer()
    return str(tracer.trace(Checked()))


class Sized(nn.Module):
    """Asks for the number of dimensions, which a proxy alone does not know."""

    def __init__(self) -> None:
        super().__init__()
        self.relu = nn.ReLU()

    def forward(self, x):  # type: ignore[no-untyped-def]
        y = self.relu(x).sum(0, keepdim=True)
        return y * 2 if y.dim() == 2 else y


@program()
def a_meta_tracer(lib: Lib) -> Seen:
    trace = module(lib, "experimental.meta_tracer").symbolic_trace
    model = Sized()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gm = trace(model, {"x": X.to("meta")})
    return str(gm.graph), torch.equal(gm(X), model(X))


@program()
def parts_for_devices(lib: Lib) -> Seen:
    utils = module(lib, "experimental.partitioner_utils")
    gm = lib.symbolic_trace(nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3)))
    module(lib, "passes.graph_manipulation").get_size_of_all_nodes(gm, [X])
    devices = [utils.Device(f"dev_{n}", 100, n) for n in range(3)]
    partitioner = module(lib, "experimental.accelerator_partitioner")
    cut = partitioner.Partitioner().partition_graph(
        gm, gm, utils.PartitionerConfig(devices)
    )
    parts = [node.submodule_node.name for node in cut.dag.nodes]
    same = torch.equal(cut.module_with_submodules(X), gm(X))
    return parts, str(cut.module_with_submodules.graph), same


@program()
def a_manager_of_passes(lib: Lib) -> Seen:
    manager = module(lib, "passes.pass_manager")

    def change(gm: AnyValue) -> AnyValue:
        for node in gm.graph.nodes:
            if node.target is torch.sin:
                node.target = torch.cos
        gm.recompile()
        return gm

    run = manager.PassManager()
    run.add_pass(manager.inplace_wrapper(change))
    return run(lib.symbolic_trace(mixed)).code


@program()
def types_of_items(lib: Lib) -> Seen:
    annotate = module(lib, "passes.annotate_getitem_nodes")
    graph = lib.Graph()
    pair = graph.placeholder("pair", type_expr=tuple[int, ...])
    graph.output(graph.call_function(annotate.operator.getitem, (pair, 0)))
    annotate.annotate_getitem_nodes(graph)
    return [str(node.type) for node in graph.nodes]


@program()
def a_break_point(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: x + 1)
    return module(lib, "experimental.debug").set_trace(gm).code


@program()
def what_a_module_weighs(lib: Lib) -> Seen:
    torch.manual_seed(0)
    gm = lib.symbolic_trace(nn.Sequential(nn.Linear(3, 3)))
    module(lib, "passes.param_fetch").lift_lowering_attrs_to_nodes(gm)
    (call,) = (node for node in gm.graph.nodes if node.op == "call_module")
    return str(call.attrs_for_lowering)


@program()
def a_network_for_inference(lib: Lib) -> Seen:
    """The name is lent: `fx.experimental.optimization` has others."""
    optimization = module(lib, "experimental.optimization")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
    made = optimization.optimize_for_inference(model.eval())
    x = torch.rand(1, 3, 8, 8)
    same = torch.allclose(made(x), model(x), atol=1e-5)
    return made.code, same, len(made.graph.nodes)


@program()
def groups_for_an_accelerator(lib: Lib) -> Seen:
    tools = module(lib, "passes.tools_common")
    gm = lib.symbolic_trace(lambda x: x.view(x.size(0) * 1, -1).neg())
    module(lib, "passes.shape_prop").ShapeProp(gm).propagate(X)
    calls = {node for node in gm.graph.nodes if node.op.startswith("call")}
    fusions = tools.FxNetAccFusionsFinder(gm, calls)()
    return {node.name: sorted(names(group)) for node, group in fusions.items()}


@program()
def a_pickled_result(lib: Lib) -> Seen:
    """A class that is lent is found by its module's name."""
    device = module(lib, "experimental.partitioner_utils").Device("a", 1, 0)
    return str(pickle.loads(pickle.dumps(device)))
