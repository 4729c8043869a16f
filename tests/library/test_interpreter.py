"""Stage 06: what parity with torch.fx cannot show of interpreters."""

from __future__ import annotations

import contextlib
import gc
import operator
import weakref
from collections.abc import Iterator

import pytest
import torch
import torch.fx
from hypothesis import given
from torch import nn
from torch.fx.passes.fake_tensor_prop import FakeTensorProp as TorchProp

import fx
from fx import traceback as fx_traceback
from fx.linked_list.opcodes import Target
from fx.passes.fake_tensor_prop import FakeTensorProp
from fx.passes.profiling import Profiler
from fx.passes.shape_prop import ShapeProp, TensorMetadata
from fx.use_def.values import AnyValue
from tests.library.random_graphs import Recipe, build, recipes
from tests.library.same_graph import assert_same_graph
from tests.zoo import ZOO, Network, borrow


def chain(length: int) -> fx.GraphModule:
    """X + 1 + 1 + …, as a module."""
    graph = fx.Graph()
    node = graph.placeholder("x")
    for _ in range(length):
        node = graph.call_function(operator.add, (node, 1))
    graph.output(node)
    return fx.GraphModule(nn.Module(), graph)


@pytest.mark.parametrize("network", ZOO, ids=lambda n: str(n.name))
def test_real_networks_run_node_by_node(network: Network) -> None:
    """The interpreter gives what the code gives, and so does a transform."""
    inputs = network.inputs()
    with borrow(network, training=False) as model, torch.no_grad():
        gm = fx.symbolic_trace(model)
        right = gm(*inputs)
        torch.testing.assert_close(
            fx.Interpreter(gm).run(*inputs), right, rtol=0, atol=0
        )
        new = fx.Transformer(gm).transform()
        assert_same_graph(new, gm)
        assert new.code == gm.code


class Peak:
    """Counts how many of the values it makes are alive at once."""

    def __init__(self) -> None:
        self.alive: weakref.WeakSet[torch.Tensor] = weakref.WeakSet()
        self.most = 0

    def next(self, x: torch.Tensor) -> torch.Tensor:
        result = x + 1
        self.alive.add(result)
        self.most = max(self.most, len(self.alive))
        return result


def test_the_peak_of_memory_is_that_of_the_code() -> None:
    def peak(run: bool) -> int:
        counter = Peak()
        graph = fx.Graph()
        node = graph.placeholder("x")
        for _ in range(50):
            node = graph.call_function(counter.next, (node,))
            graph.call_function(counter.next, (node,))  # used by nobody
        graph.output(node)
        gm = fx.GraphModule(nn.Module(), graph)
        gc.collect()
        x = torch.ones(3)
        _ = fx.Interpreter(gm).run(x) if run else gm(x)
        return counter.most

    assert peak(run=True) == peak(run=False)


class Traced(fx.Tracer):
    """Keeps the user's lines."""

    record_stack_traces = True


def fails(x: torch.Tensor) -> torch.Tensor:
    """Traces, and fails when it runs on a vector."""
    y = torch.relu(x)
    return torch.mm(y, y)  # this is the user's line


def test_an_error_names_the_node_and_the_users_line() -> None:
    tracer = Traced()
    gm = fx.GraphModule(nn.Module(), tracer.trace(fails))
    with pytest.raises(RuntimeError) as caught:
        fx.Interpreter(gm).run(torch.ones(3))
    message = str(caught.value)
    assert "While executing %mm : " in message
    assert "return torch.mm(y, y)  # this is the user's line" in message


def test_an_error_in_a_graph_that_no_code_can_say() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(operator.truediv, (x, 0)))
    x.target = "not a name"
    with pytest.raises(ZeroDivisionError, match="While executing %truediv"):
        fx.Interpreter(nn.Module(), graph=graph).run(1)


def test_the_context_of_a_node_is_honoured_though_the_rest_is_plain() -> None:
    seen: list[str] = []

    class Told(fx.Interpreter):
        @contextlib.contextmanager
        def _set_current_node(self, node: fx.Node) -> Iterator[None]:
            seen.append(f"in {node}")
            with super()._set_current_node(node):
                yield
            seen.append(f"out of {node}")

    gm = chain(1)
    assert Told(gm).run(5) == fx.Interpreter(gm).run(5)
    assert seen[:3] == ["in x", "out of x", f"in {[*gm.graph.nodes][1]}"]
    assert len(seen) == 2 * len(gm.graph.nodes)


def test_a_module_whose_graph_is_something_else_is_refused() -> None:
    module = torch.nn.Module()
    module.graph = "bars"  # type: ignore[assignment]
    with pytest.raises(TypeError, match=r"is not an fx.Graph but a .*str"):
        fx.Interpreter(module)


def test_run_node_of_one_instance_is_honoured() -> None:
    interpreter = fx.Interpreter(chain(2))
    seen: list[str] = []
    run_node = interpreter.run_node

    def watched(n: fx.Node) -> AnyValue:
        seen.append(n.name)
        return run_node(n)

    interpreter.run_node = watched  # type: ignore[method-assign]
    interpreter.run(torch.ones(1))
    assert seen == [node.name for node in interpreter.graph.nodes]


def test_map_nodes_to_values_is_honoured_for_flat_arguments() -> None:
    class Doubles(fx.Interpreter):
        def map_nodes_to_values(self, args: AnyValue, n: fx.Node) -> AnyValue:
            mapped = super().map_nodes_to_values(args, n)
            if n.op == "call_function" and isinstance(mapped, tuple):
                return tuple(2 * arg for arg in mapped)
            return mapped

    assert Doubles(chain(1)).run(5) == 12


def test_methods_of_one_instance_are_honoured() -> None:
    interpreter: AnyValue = fx.Interpreter(fx.symbolic_trace(lambda x: x + 1))
    interpreter.map_nodes_to_values = lambda args, n: args and (1000, 1)
    assert interpreter.run(1) == 1000  # the first argument of the output
    other: AnyValue = fx.Interpreter(fx.symbolic_trace(lambda x: x + 1))
    other.placeholder = lambda target, args, kwargs: 2
    assert other.run(1, 1) == 3  # it may take any inputs


def test_keywords_are_a_dict_though_there_are_none() -> None:
    def scaled(x: AnyValue, **options: AnyValue) -> AnyValue:
        return take(x, options)

    interpreter = fx.Interpreter(fx.symbolic_trace(scaled))
    assert interpreter.run(3) == 6
    assert interpreter.run(3, scale=5) == 15
    with pytest.raises(RuntimeError, match="extra arguments"):
        interpreter.run(3, 4)


def take(x: AnyValue, options: dict[str, int]) -> AnyValue:
    """Read an option that may be missing."""
    return x * options.get("scale", 2)


fx.wrap("take")


def test_an_input_by_position_and_by_name_is_refused() -> None:
    interpreter = fx.Interpreter(fx.symbolic_trace(lambda x, y: x - y))
    with pytest.raises(RuntimeError, match="the input 'x' by position, too"):
        interpreter.run(1, x=5)
    assert interpreter.run(1, y=5) == -4


def test_a_transformer_method_may_return_any_value() -> None:
    class Folds(fx.Transformer):
        def call_function(
            self, target: Target, args: tuple[AnyValue, ...], kwargs: AnyValue
        ) -> AnyValue:
            if target is operator.add:
                return args[0]
            return super().call_function(target, args, kwargs)

    new = Folds(chain(3)).transform()
    assert [node.op for node in new.graph.nodes] == ["placeholder", "output"]
    assert new(7) == 7


def test_a_transformer_calls_modules_as_leaves() -> None:
    class Twice(fx.Transformer):
        def call_module(
            self, target: Target, args: tuple[AnyValue, ...], kwargs: AnyValue
        ) -> AnyValue:
            child = self.fetch_attr(str(target))
            return self.tracer.call_module(child, child.forward, args, kwargs)

    inner = fx.symbolic_trace(lambda x: x + 1)
    graph = fx.Graph()
    graph.output(graph.call_module("inner", (graph.placeholder("x"),)))
    new = Twice(fx.GraphModule({"inner": inner}, graph)).transform()
    assert [node.op for node in new.graph.nodes][1] == "call_module"


class Tall(fx.Transformer):
    """Gives the relus a dimension more, which all that follows then has."""

    def call_function(
        self, target: Target, args: tuple[AnyValue, ...], kwargs: AnyValue
    ) -> AnyValue:
        """The call, a relu's of an argument with a dimension more."""
        if target is torch.relu:
            args = (torch.stack([args[0], args[0]]),)
        return super().call_function(target, args, kwargs)


@given(recipes)
def test_a_transformer_leaves_no_note_that_is_not_true(recipe: Recipe) -> None:
    gm = fx.GraphModule(nn.Module(), build(recipe))
    inputs = torch.ones(2, 3), torch.ones(2, 3)
    ShapeProp(gm).propagate(*inputs)
    new = Tall(gm).transform()
    noted = [node.meta.get("tensor_meta") for node in new.graph.nodes]
    ShapeProp(new).propagate(*inputs)
    for node, note in zip(new.graph.nodes, noted, strict=True):
        assert note in (None, node.meta["tensor_meta"]), node
    same = fx.Transformer(gm).transform()
    assert all("tensor_meta" in node.meta for node in same.graph.nodes)


def test_none_that_becomes_a_node_is_a_change() -> None:
    class Clamps(fx.Transformer):
        def call_function(
            self, target: Target, args: tuple[AnyValue, ...], kwargs: AnyValue
        ) -> AnyValue:
            if target is torch.clamp:
                args = (args[0], torch.zeros_like(args[0][None]), args[2])
            return super().call_function(target, args, kwargs)

    gm = fx.symbolic_trace(lambda x: torch.clamp(x, None, 1))
    ShapeProp(gm).propagate(torch.ones(2))
    (clamp,) = (
        Clamps(gm)
        .transform()
        .graph.find_nodes(op="call_function", target=torch.clamp)
    )
    assert "tensor_meta" not in clamp.meta


def branches(x: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Several results, nested."""
    a, b = torch.split(x, 1, dim=1)
    return a @ b.t(), [x.int(), x.to(memory_format=torch.contiguous_format)]


def test_shapes_with_real_and_with_fake_tensors_are_the_same() -> None:
    x = torch.randn(4, 2)
    real, fake = fx.symbolic_trace(branches), fx.symbolic_trace(branches)
    ShapeProp(real).propagate(x)
    with torch._subclasses.FakeTensorMode() as mode:
        pass
    ShapeProp(fake, mode).propagate(x)
    for a, b in zip(real.graph.nodes, fake.graph.nodes, strict=True):
        assert a.meta["tensor_meta"] == b.meta["tensor_meta"], a
    (split,) = real.graph.find_nodes(op="call_function", target=torch.split)
    assert [type(m) for m in split.meta["tensor_meta"]] == [TensorMetadata] * 2


def test_fake_values_are_those_of_torch() -> None:
    x = torch.randn(4, 2)
    ours = fx.symbolic_trace(branches)
    theirs = torch.fx.symbolic_trace(branches)
    FakeTensorProp(ours).propagate(x)
    TorchProp(theirs).propagate(x)
    for a, b in zip(ours.graph.nodes, theirs.graph.nodes, strict=True):
        assert a.name == b.name
        assert described(a.meta.get("val")) == described(b.meta.get("val")), a


def described(value: object) -> object:
    """Kind, dtype, shape and stride of fake tensors in a structure."""
    if isinstance(value, torch.Tensor):
        return (value.dtype, tuple(value.shape), value.stride())
    if isinstance(value, (tuple, list)):
        return [described(item) for item in value]
    return value


def test_the_profiler_sees_every_node() -> None:
    gm = fx.symbolic_trace(branches)
    profiler = Profiler(gm)
    profiler.run(torch.ones(4, 2))
    names = [record.node.name for record in profiler.records]
    assert names == [node.name for node in gm.graph.nodes]
    by_name = {record.node.name: record for record in profiler.records}
    assert by_name["matmul"].bytes == 4 * 4 * 4
    assert by_name["matmul"].shape == (4, 4)
    assert by_name["split"].shape is None
    assert all(record.seconds > 0 for record in profiler.records)
    table = profiler.table(most=3).splitlines()
    assert len(table) == 4
    assert table[0].split()[:3] == ["node", "op", "ms"]


class Asking(fx.Interpreter):
    """Notes what a node would inherit that a call records."""

    noted: AnyValue = None

    def call_function(
        self, target: Target, args: tuple[AnyValue, ...], kwargs: AnyValue
    ) -> AnyValue:
        """Note it, then make the call."""
        self.noted = fx_traceback.get_current_meta()
        return super().call_function(target, args, kwargs)


def test_what_is_recorded_in_a_run_inherits_from_the_node() -> None:
    """Its meta, with its name and the pass; only if that is asked for."""
    gm = chain(1)
    gm.graph.find_nodes(op="call_function", target=operator.add)[0].meta = {
        "nn_module_stack": "the module"
    }
    asking = Asking(gm)
    asking.run(1)
    assert asking.noted == {}
    with fx_traceback.preserve_node_meta():
        asking.run(1)
    assert asking.noted == {
        "nn_module_stack": "the module",
        "from_node": [("add", "Interpreter_Asking")],
    }
