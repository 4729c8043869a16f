"""Stage 06: running a graph with proxies, which records another one."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from fx._symbolic_trace import symbolic_trace
from fx.graph import Graph
from fx.graph_module import GraphModule
from fx.interpreter import Transformer
from fx.linked_list.opcodes import Target
from fx.node import Node
from fx.tracing import inputs
from fx.use_def.values import AnyValue, Argument
from stages.checking import check, raising, same, same_graph, working
from stages.residual import Residual


class Gelu(Transformer):
    """Puts gelu in the place of relu."""

    def call_function(
        self, target: Target, args: tuple[Argument, ...], kwargs: AnyValue
    ) -> AnyValue:
        """Record a gelu for a relu, anything else as it is."""
        if target is torch.relu:
            target = torch.nn.functional.gelu
        return super().call_function(target, args, kwargs)


# -- transform ---------------------------------------------------------------

TRANSFORM = pytest.mark.exercise("interpreter.Transformer.transform")


@TRANSFORM
class TestTransform:
    def test_without_overrides_it_is_a_copy(self) -> None:
        torch.manual_seed(0)
        model, x = Residual(), torch.randn(2, 4)
        traced = symbolic_trace(model)
        new = Transformer(traced).transform()
        check(
            new is not traced,
            "transform() returns a new GraphModule.",
        )
        same_graph(
            new.graph,
            str(traced.graph),
            "A Transformer that overrides nothing records the same graph, "
            "output included.",
        )
        check(
            torch.equal(new(x), model(x)),
            "The new module computes what the old one does.",
        )

    def test_the_old_module_stays(self) -> None:
        traced = symbolic_trace(Residual())
        before = str(traced.graph)
        new = Gelu(traced).transform()
        same_graph(
            traced.graph,
            before,
            "The module that is transformed must stay as it is.",
        )
        check(
            new.graph is not traced.graph
            and traced.graph.owning_module is traced,
            "The new module has the new graph; the old one stays the old "
            "module's.",
        )

    def test_the_parameters_are_shared(self) -> None:
        model = Residual()
        new = Transformer(symbolic_trace(model)).transform()
        weight: AnyValue = new.get_parameter("linear.weight")
        check(
            weight is model.linear.weight,
            "The new module has copies of the parameters, so that training one "
            "module no longer trains the other. Give GraphModule the module "
            "itself (`self.module`), not a copy.",
        )

    def test_relu_becomes_gelu(self) -> None:
        torch.manual_seed(0)
        model, x = Residual(), torch.randn(2, 4)
        new = Gelu(symbolic_trace(model)).transform()
        wanted = torch.nn.functional.gelu(model.linear(x) + x)
        check(
            torch.equal(new(x), wanted),
            "The method records gelu for relu: the new module must compute "
            "gelu(linear(x) + x).",
        )

    def test_an_output_that_is_a_structure(self) -> None:
        def both(x: torch.Tensor) -> dict[str, AnyValue]:
            return {"parts": [x + 1, (x, 2)]}

        traced = symbolic_trace(both)
        new = Transformer(traced).transform()
        same_graph(
            new.graph,
            str(traced.graph),
            "The result may be a structure of proxies and constants: "
            "`self.tracer.create_arg` makes an argument of it.",
        )

    def test_the_output_keeps_type_and_notes(self) -> None:
        graph = Graph()
        output = graph.output(graph.placeholder("x"), torch.Tensor)
        output.meta["note"] = "kept"
        new = Transformer(GraphModule(nn.Module(), graph)).transform()
        found = new.graph.output_node()
        same(
            found.type,
            torch.Tensor,
            "The return annotation is the type of the output node, and the "
            "new output must have it too.",
        )
        same(
            found.meta.get("note"),
            "kept",
            "What passes have noted on the output must not be lost.",
        )

    def test_a_run_node_of_its_own(self) -> None:
        class Own(Transformer):
            def run_node(self, n: Node) -> AnyValue:
                args, kwargs = self.fetch_args_kwargs_from_env(n)
                return getattr(self, n.op)(n.target, args, kwargs)

        graph = Graph()
        graph.output(graph.placeholder("x"), torch.Tensor)
        new = Own(GraphModule(nn.Module(), graph)).transform()
        same(
            new.graph.output_node().type,
            torch.Tensor,
            "A class may run nodes in its own way: tell the recorder that "
            "the output is `running` before it makes the new one.",
        )

    def test_both_outputs_have_notes_of_their_own(self) -> None:
        graph = Graph()
        output = graph.output(graph.placeholder("x"))
        new = Transformer(GraphModule(nn.Module(), graph)).transform()
        new.graph.output_node().meta["note"] = "of the new graph"
        check(
            "note" not in output.meta,
            "What is noted on the new output is seen on the old one: both "
            "have the same dict. Copy the notes into the new node's meta.",
        )

    def test_what_was_noted_of_another_value_is_dropped(self) -> None:
        graph = Graph()
        x = graph.placeholder("x")
        double = graph.call_function(torch.mul, (x, 2))
        graph.output(graph.call_function(torch.relu, (double,)))
        for node in graph.nodes:
            node.meta["type"] = torch.Tensor

        class Float(Transformer):
            def call_function(
                self,
                target: Target,
                args: tuple[Argument, ...],
                kwargs: AnyValue,
            ) -> AnyValue:
                if target is torch.mul:
                    args = (args[0], 2.0)
                return super().call_function(target, args, kwargs)

        class SameValues(Float):
            _keeps_values = True

        module = GraphModule(nn.Module(), graph)
        new = Float(module).transform()
        noted = [node.name for node in new.graph.nodes if "type" in node.meta]
        check(
            noted != ["x", "output"],
            "The output still has the note, although its value is another "
            "one: it is not among the recorder's `repeated`. Say that the old "
            "output is `running`, and let `self._recorder.create_node` make "
            "the new one.",
        )
        same(
            noted,
            ["x"],
            "mul gets 2.0 for 2, so that what was noted of its value, and of "
            "all that follows, need not be true: give the recorder's "
            "`repeated` to `fx_traceback.forget_changed_values`.",
        )
        same(
            "type" in SameValues(module).transform().graph.output_node().meta,
            True,
            "The class says that it keeps the values (`_keeps_values`), so "
            "all notes stay true.",
        )

    def test_a_graph_without_output(self) -> None:
        traced = symbolic_trace(Residual())
        traced.graph.erase_node(traced.graph.output_node())
        with raising(
            Exception,
            "the Graph has no output",
            "The graph has no output any more, so the new one gets none, and "
            "to make a module of it is refused. Ask `is_finished` before you "
            "ask for the output.",
        ):
            Transformer(traced).transform()

    def test_a_graph_that_returns_nothing(self) -> None:
        graph = Graph()
        graph.placeholder("x")
        graph.output(None)
        module = GraphModule(nn.Module(), graph)
        with working(
            "The graph returns None, which is a value: it has an output, and "
            "the new graph needs one. Ask `self.graph.is_finished`, not "
            "whether the result is None."
        ):
            new = Transformer(module).transform()
        same_graph(
            new.graph,
            str(graph),
            "The graph returns None, and the new one must as well.",
        )

    def test_new_nodes_say_where_they_are_from(self) -> None:
        traced = symbolic_trace(Residual())
        (relu,) = traced.graph.find_nodes(op="call_function", target=torch.relu)
        relu.meta["custom"] = {"block": 3}
        new = Gelu(traced).transform()
        gelu = new.graph.output_node().input_at(0)
        same(
            gelu.meta.get("custom"),
            {"block": 3},
            "gelu stands for relu and should inherit its notes: run the "
            "graph inside `fx_traceback.preserve_node_meta()`.",
        )

    def test_nested_inputs_and_outputs(self) -> None:
        def swap(
            pair: tuple[torch.Tensor, torch.Tensor],
        ) -> dict[str, torch.Tensor]:
            return {"first": pair[1], "second": pair[0]}

        hole = inputs.PH
        traced = symbolic_trace(swap, {"pair": (hole, hole)})
        new = Transformer(traced).transform()
        same_graph(
            new.graph,
            str(traced.graph),
            "The graph has flat inputs and outputs, and its code generator "
            "nests them. A proxy is recorded for each flat one: run with "
            "enable_io_processing=False.",
        )
        same(
            new((1, 2)),
            {"first": 2, "second": 1},
            "The new module takes a pair and returns a dict, as the old one.",
        )
