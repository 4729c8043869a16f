"""What is measured of passes that are built with the stages, as one function.

See `operations`.
"""

from __future__ import annotations

import copy
import itertools
import operator

import torch
from torch import nn

from tests.benchmarks import programs
from tests.benchmarks.measure import Made, Task
from tests.benchmarks.operations import Library, at_least, benchmark


@benchmark(at_least(1))
def split_module(lib: Library, size: int) -> Task:
    """split_module of the mixed chain, into ten parts of equal length.

    What compile() takes for the eleven graphs is in it. Compared are the parts:
    our main graph keeps its return type.
    """
    module = lib.compiled(programs.Mixed(size))
    split = lib.module("passes.split_module").split_module
    length = len(module.graph.nodes) // 10 + 1

    def run(_: Made) -> Made:
        number = itertools.count()
        return split(module, module, lambda _: next(number) // length)

    def codes(new: Made) -> list[str]:
        return [part.code for part in new.children()]

    return Task(run, len(module.graph.nodes), show=codes)


@benchmark(at_least(1), full=())
def split_by_tags(lib: Library, size: int) -> Task:
    """split_by_tags of the mixed chain, into ten parts of equal length.

    What compile() takes for the eleven graphs is in it.
    """
    module = lib.compiled(programs.Mixed(size))
    split = lib.module("passes.split_utils").split_by_tags
    length = len(module.graph.nodes) // 10 + 1
    for place, node in enumerate(module.graph.nodes):
        node.tag = f"part_{place // length}"
    tags = [f"part_{number}" for number in range(10)]

    def codes(new: Made) -> list[str]:
        return [part.code for part in new.children()]

    return Task(
        lambda _: split(module, tags), len(module.graph.nodes), show=codes
    )


@benchmark(at_least(1), full=())
def equal_calls(lib: Library, size: int) -> Task:
    """CSEPass on a chain in which each call stands twice.

    What compile() takes for the new graph is in it.
    """
    graph = lib.root.Graph()
    value = graph.placeholder("x")
    add, mul = torch.ops.aten.add.Tensor, torch.ops.aten.mul.Tensor
    for _ in range(size // 3):
        twice = [graph.call_function(add, (value, 1)) for _ in range(2)]
        value = graph.call_function(mul, tuple(twice))
    graph.output(value)
    module = lib.root.GraphModule({}, graph)
    run = lib.module("passes.dialect.common.cse_pass").CSEPass()
    return Task(
        lambda _: run(module).graph_module,
        len(graph.nodes),
        show=lambda new: new.code,
    )


@benchmark(at_least(1), full=())
def fold_constants(lib: Library, size: int) -> Task:
    """split_const_subgraphs of a chain, half of whose calls are constant.

    What compile() takes for the two new graphs is in it. Compared is how many
    calls are folded.
    """
    graph = lib.root.Graph()
    value = graph.placeholder("x")
    add, neg = torch.ops.aten.add.Tensor, torch.ops.aten.neg.default
    for _ in range(size // 3):
        weight = graph.call_function(neg, (graph.get_attr("w"),))
        value = graph.call_function(add, (value, weight))
    graph.output(value)
    module = lib.root.GraphModule({"w": torch.ones(2)}, graph)
    split = lib.module("experimental.const_fold").split_const_subgraphs

    def folded(new: Made) -> int:
        nodes = new.const_subgraph_module.graph.nodes
        return sum(node.op == "call_function" for node in nodes)

    return Task(lambda _: split(module), len(graph.nodes), show=folded)


@benchmark(at_least(1), full=())
def fuse_norms(lib: Library, size: int) -> Task:
    """Fuse a chain of convolutions and norms, in place.

    What it takes to trace and compile() the chain is in it. Compared is how
    many nodes are left.
    """
    pairs = [
        module
        for _ in range(size // 2)
        for module in (nn.Conv1d(1, 1, 1), nn.BatchNorm1d(1))
    ]
    model = nn.Sequential(*pairs).eval()
    fuse = lib.module("experimental.optimization").fuse
    return Task(
        lambda _: fuse(model, inplace=True),
        len(pairs) + 2,
        show=lambda new: len(new.graph.nodes),
    )


@benchmark(at_least(1), full=())
def normalize_arguments(lib: Library, size: int) -> Task:
    """NormalizeArgs on a chain of two functions of torch.

    Compared is what is called: fx knows more overloads.
    """
    graph = lib.root.Graph()
    value = graph.placeholder("x")
    for number in range(size):
        target = nn.functional.relu if number % 2 else torch.neg
        value = graph.call_function(target, (value,))
    graph.output(value)
    module = lib.root.GraphModule({}, graph)
    cls = lib.module("experimental.normalize").NormalizeArgs
    return Task(
        lambda _: cls(module).transform(),
        len(graph.nodes),
        show=lambda new: [node.op for node in new.graph.nodes],
    )


@benchmark(at_least(1), full=())
def merge_products(lib: Library, size: int) -> Task:
    """merge_matmul of ten products with one matrix, beside other calls.

    Compared is how many products are left: torch.fx leaves unused nodes.
    """
    graph = lib.root.Graph()
    value = graph.placeholder("x")
    weight = graph.get_attr("w")
    results = []
    for _ in range(10):
        new = graph.call_function(torch.neg, (value,))
        results.append(graph.call_function(torch.matmul, (new, weight)))
        for _ in range(size // 10 - 2):
            results.append(graph.call_function(torch.neg, (results[-1],)))
    graph.output(results)
    module = lib.root.GraphModule({"w": torch.eye(2)}, graph)
    merge = lib.module("experimental.merge_matmul").merge_matmul

    def count(new: Made) -> int:
        return sum(node.target is torch.matmul for node in new.graph.nodes)

    return Task(lambda _: merge(module), len(graph.nodes), show=count)


@benchmark(at_least(1), full=())
def source_partitions(lib: Library, size: int) -> Task:
    """get_source_partitions of a chain in which four nodes have one origin."""
    graph = lib.root.Graph()
    value = graph.placeholder("x")
    for number in range(size):
        value = graph.call_function(torch.neg, (value,))
        origin = (f"call_{number // 4}", torch.neg)
        value.meta["source_fn_stack"] = [origin]
    graph.output(value)
    find = lib.module("passes.utils.source_matcher_utils").get_source_partitions
    return Task(
        lambda _: find(graph, [torch.neg, torch.exp]),
        len(graph.nodes),
        show=lambda new: [str(part.nodes) for part in new[torch.neg]],
    )


@benchmark(at_least(1), full=())
def pass_manager(lib: Library, size: int) -> Task:
    """PassManager with three passes that change nothing, on the mixed chain."""
    module = lib.compiled(programs.Mixed(size))
    result = lib.module("passes.infra.pass_base").PassResult
    passes = [lambda new: result(new, False)] * 3
    run = lib.module("passes.infra.pass_manager").PassManager(passes)
    return Task(
        lambda _: run(module).graph_module,
        len(module.graph.nodes),
        show=lambda new: new.code,
    )


@benchmark(
    at_least(10),
    sizes=(1_000,),
    full=(),
)
def partitioner(lib: Library, size: int) -> Task:
    """CapabilityBasedPartitioner on a chain with two unsupported calls in ten.

    At 5,000 nodes torch.fx took 185 s once, and fx 0.02 s: it grows with the
    third power of the size, so what is measured stays small.
    Compared is how many partitions there are: torch.fx numbers them otherwise.
    """
    graph = lib.root.Graph()
    value = other = graph.placeholder("x")
    for number in range(size):
        rare = number % 10 in (3, 4)
        target = torch.ops.aten.sub if rare else torch.ops.aten.add
        pair = (value, other if number % 3 else value)
        other, value = value, graph.call_function(target.Tensor, pair)
    graph.output(value)
    module = lib.root.GraphModule({}, graph)
    supports = lib.module("passes.operator_support").create_op_support(
        lambda _, node: node.target is torch.ops.aten.add.Tensor
    )
    make = lib.module("passes.infra.partitioner").CapabilityBasedPartitioner
    return Task(
        lambda _: make(module, supports, True).propose_partitions(),
        len(graph.nodes),
        show=len,
    )


@benchmark(at_least(1), full=())
def sort_nodes(lib: Library, size: int) -> Task:
    """stable_topological_sort of the mixed chain, and recompiling it."""
    module = lib.compiled(programs.Mixed(size))
    sort = lib.module("passes.tools_common").stable_topological_sort
    return Task(
        lambda _: sort(module),
        len(module.graph.nodes),
        show=lambda new: new.code,
    )


@benchmark(at_least(1), full=())
def fuse_partitions(lib: Library, size: int) -> Task:
    """fuse_by_partitions of ten runs of calls in the mixed chain.

    Each run has a fresh copy of the module. What compile() takes is in it.
    """
    module = lib.compiled(programs.Mixed(size))
    fuse = lib.module("passes.utils.fuser_utils").fuse_by_partitions

    def run(fresh: Made) -> Made:
        calls = [n for n in fresh.graph.nodes if n.op.startswith("call")]
        step = len(calls) // 10
        runs = [calls[i * step : (i + 1) * step] for i in range(10)]
        return fuse(fresh, [dict.fromkeys(one) for one in runs])

    return Task(
        run,
        len(module.graph.nodes),
        lambda: copy.deepcopy(module),
        show=lambda new: len(new.graph.nodes),
    )


@benchmark(at_least(1), full=())
def sizes_of_nodes(lib: Library, size: int) -> Task:
    """get_size_of_all_nodes of the mixed chain, whose shapes are known."""
    module = lib.compiled(programs.Mixed(size))
    lib.module("passes.shape_prop").ShapeProp(module).propagate(torch.ones(4))
    ask = lib.module("passes.graph_manipulation").get_size_of_all_nodes
    return Task(
        lambda _: ask(module),
        len(module.graph.nodes),
        show=lambda _: [
            str(getattr(node, "size_bytes", None))
            for node in module.graph.nodes
        ],
    )


@benchmark(at_least(1), full=())
def drawing(lib: Library, size: int) -> Task:
    """FxGraphDrawer of the mixed chain, as pydot's objects."""
    module = lib.compiled(programs.Mixed(size))
    draw = lib.module("passes.graph_drawer").FxGraphDrawer
    return Task(
        lambda _: draw(module, "chain").get_dot_graph(),
        len(module.graph.nodes),
        show=lambda graph: len(graph.get_nodes()),
    )


@benchmark(
    at_least(1),
    full=(),
)
def named_matches(lib: Library, size: int) -> Task:
    """SubgraphMatcherWithNameNodeMap of add and relu, in a chain of them.

    The pattern has a structured input: torch.fx asks for a flat pattern.
    """

    def pattern(x: Made) -> Made:
        total = x[0] + 1
        result = torch.relu(total)
        return result, {"sum": total, "result": result}

    graph = lib.root.Graph()
    value = graph.placeholder("x")
    for _ in range(size // 2):
        total = graph.call_function(operator.add, (value, 1))
        value = graph.call_function(torch.relu, (total,))
    graph.output(value)
    utils = lib.module("passes.utils.matcher_with_name_node_map_utils")
    flat = lib.root.symbolic_trace(pattern, {"x": (lib.root.PH,)})
    matcher = utils.SubgraphMatcherWithNameNodeMap(flat)
    return Task(
        lambda _: matcher.match(graph),
        len(graph.nodes),
        show=lambda found: [
            {name: str(node) for name, node in match.name_node_map.items()}
            for match in found
        ],
    )
