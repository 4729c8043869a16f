"""Stage 06: an interpreter that writes down what each value is."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from fx._symbolic_trace import symbolic_trace
from fx.graph import Graph
from fx.graph_module import GraphModule
from fx.node import Node
from fx.passes.shape_prop import ShapeProp, TensorMetadata
from fx.use_def.values import AnyValue
from stages.checking import Mistake, check, raising, same, working
from stages.residual import Residual


def shape_of(node: Node) -> object:
    """The shape that was written to a node, or what was written instead."""
    known = node.meta.get("tensor_meta")
    return list(known.shape) if isinstance(known, TensorMetadata) else known


def shapes_written(module: GraphModule, *inputs: AnyValue) -> AnyValue:
    """Run ShapeProp over a module, with errors shown as they are raised."""
    prop = ShapeProp(module)
    prop.extra_traceback = False
    return prop.propagate(*inputs)


class InMode(ShapeProp):
    """Notes which nodes are run in its mode."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.ran: list[str] = []
        self.extra_traceback = False

    def _run_in_mode(self, n: Node) -> AnyValue:
        """Note the node, then run it."""
        self.ran.append(n.name)
        return super()._run_in_mode(n)


def split_module() -> GraphModule:
    """A tensor split in two parts, with a number beside them."""
    graph = Graph()
    x = graph.placeholder("x")
    parts = graph.call_function(torch.split, (x, 2))
    size = graph.call_method("dim", (x,))
    graph.output((parts, size))
    return GraphModule(nn.Module(), graph)


@pytest.mark.exercise("passes.shape_prop.ShapeProp.run_node")
class TestShapeProp:
    def test_the_shape_of_each_value(self) -> None:
        traced = symbolic_trace(Residual())
        with working(
            "The Residual must run without an error. A node computes with what "
            "run_node has returned for its inputs: return the value itself, "
            "and not its description."
        ):
            shapes_written(traced, torch.randn(2, 4))
        same(
            {str(node): shape_of(node) for node in traced.graph.nodes},
            {name: [2, 4] for name in ("x", "linear", "add", "relu", "output")},
            "Each node of the Residual is a tensor of shape (2, 4), and "
            "node.meta['tensor_meta'] must describe it "
            "(`extract_tensor_metadata`).",
        )

    def test_it_returns_the_value(self) -> None:
        graph = Graph()
        node = graph.call_function(torch.ones, (2, 3))
        graph.output(node)
        found = ShapeProp(GraphModule(nn.Module(), graph)).run_node(node)
        check(
            isinstance(found, torch.Tensor),
            "run_node returns the value of the node, not its description: "
            "the nodes behind it compute with it.",
            picture=f"yours: {found}",
        )

    def test_the_module_returns_what_it_did(self) -> None:
        torch.manual_seed(0)
        model, x = Residual(), torch.randn(2, 4)
        found = shapes_written(symbolic_trace(model), x)
        check(
            isinstance(found, torch.Tensor) and torch.equal(found, model(x)),
            "propagate returns what the module returns.",
        )

    def test_the_type_of_each_value(self) -> None:
        module = split_module()
        shapes_written(module, torch.randn(3, 4))
        _, parts, size, output = module.graph.nodes
        same(
            [node.meta.get("type") for node in (parts, size, output)],
            [tuple, int, tuple],
            "node.meta['type'] is the type of the value, whatever it is.",
        )

    def test_other_notes_stay(self) -> None:
        module = split_module()
        x, *_ = module.graph.nodes
        x.meta["note"] = "of another pass"
        notes = x.meta
        shapes_written(module, torch.randn(3, 4))
        same(
            x.meta.get("note"),
            "of another pass",
            "A node's meta has what other passes have noted. Set the two "
            "entries, and leave all others as they are.",
        )
        check(
            x.meta is notes,
            "The node has another dict as its meta now, so that code which "
            "holds the old one does not see the description: set the two "
            "entries in the dict that the node has.",
        )

    def test_a_second_run_notes_what_it_has_seen(self) -> None:
        module = split_module()
        x, *_ = module.graph.nodes
        x.meta["type"] = int
        for size in (3, 5):
            shapes_written(module, torch.randn(size, 4))
        same(
            (shape_of(x), x.meta["type"]),
            ([5, 4], torch.Tensor),
            "ShapeProp ran twice, and x had another shape the second time. It "
            "also had a wrong note on its type: what was noted before is "
            "replaced.",
        )

    def test_a_value_without_tensors_is_returned_as_it_is(self) -> None:
        value = [1, 2]
        graph = Graph()
        node = graph.call_function(lambda: value)
        graph.output(node)
        found = ShapeProp(GraphModule(nn.Module(), graph)).run_node(node)
        check(
            found is value,
            "The value is a list of numbers. The nodes behind it compute with "
            "this very list: return it, and not the copy that `map_aggregate` "
            "makes.",
        )

    def test_the_type_of_none(self) -> None:
        graph = Graph()
        graph.output(None)
        module = GraphModule(nn.Module(), graph)
        shapes_written(module)
        same(
            module.graph.output_node().meta.get("type"),
            type(None),
            "The value is None, which has a type, too: node.meta['type'] must "
            "be NoneType.",
        )

    def test_a_parameter_is_a_tensor(self) -> None:
        graph = Graph()
        graph.output(graph.get_attr("weight"))
        module = GraphModule(nn.Linear(4, 2), graph)
        shapes_written(module)
        weight, _ = module.graph.nodes
        same(
            shape_of(weight),
            [2, 4],
            "A Parameter is a tensor, too: ask `isinstance`, for the type of "
            "a tensor may be a subclass.",
        )
        same(
            weight.meta.get("type"),
            nn.Parameter,
            "node.meta['type'] is the value's own type.",
        )

    def test_a_structure_of_tensors(self) -> None:
        module = split_module()
        shapes_written(module, torch.randn(3, 4))
        _, parts, _, _ = module.graph.nodes
        known = parts.meta.get("tensor_meta")
        check(
            isinstance(known, tuple)
            and [list(part.shape) for part in known] == [[2, 4], [1, 4]],
            "torch.split gives a tuple of tensors: the description is a "
            "tuple too, each tensor in it described (`map_aggregate`).",
            picture=f"yours: {known}",
        )

    def test_a_structure_with_something_else(self) -> None:
        module = split_module()
        shapes_written(module, torch.randn(3, 4))
        *_, output = module.graph.nodes
        known = output.meta.get("tensor_meta")
        check(
            isinstance(known, tuple) and known[1] == 2,
            "The output is a tuple of tensors and the number 2: what is not "
            "a tensor stays as it is in the description.",
            picture=f"yours: {known}",
        )

    def test_no_tensor_at_all(self) -> None:
        module = split_module()
        shapes_written(module, torch.randn(3, 4))
        _, _, size, _ = module.graph.nodes
        check(
            "tensor_meta" not in size.meta,
            "The value of this node is the number 2, with no tensor in it: "
            "there is nothing to write to meta['tensor_meta'].",
        )

    def test_a_node_that_fails(self) -> None:
        graph = Graph()
        x = graph.placeholder("x")
        graph.output(graph.call_method("view", (x, 7)))
        module = GraphModule(nn.Module(), graph)
        sentence = (
            "A shape does not fit: that is a RuntimeError which says that "
            "ShapeProp failed, and names the node, raised from the cause. It "
            "begins with `ShapeProp error for: node=`."
        )
        for part in ("ShapeProp error for: node=", "%view"):
            with raising(Exception, part, sentence):
                shapes_written(module, torch.ones(3))
        try:
            shapes_written(module, torch.ones(3))
        except Exception as error:
            check(
                isinstance(error, RuntimeError)
                and isinstance(error.__cause__, RuntimeError)
                and "shape" in str(error.__cause__),
                sentence,
            )

    def test_whatever_a_node_raises_is_told(self) -> None:
        def refusing(x: AnyValue) -> AnyValue:
            raise KeyError("no such column")

        graph = Graph()
        x = graph.placeholder("x")
        graph.output(graph.call_function(refusing, (x,)))
        module = GraphModule(nn.Module(), graph)
        sentence = (
            "A node raised a KeyError, and nobody hears which node it was. "
            "Calls raise what they like: catch every Exception, and raise a "
            "RuntimeError from it."
        )
        try:
            shapes_written(module, torch.ones(3))
        except RuntimeError as error:
            check("ShapeProp error for: node=" in str(error), sentence)
        except KeyError as error:
            raise Mistake(sentence) from error

    def test_an_interruption_comes_through(self) -> None:
        def interrupted(x: AnyValue) -> AnyValue:
            raise KeyboardInterrupt

        graph = Graph()
        x = graph.placeholder("x")
        graph.output(graph.call_function(interrupted, (x,)))
        try:
            shapes_written(GraphModule(nn.Module(), graph), torch.ones(3))
        except KeyboardInterrupt:
            pass
        except RuntimeError as error:
            check(
                not isinstance(error.__context__, KeyboardInterrupt),
                "Ctrl-C while a node runs became a RuntimeError about that "
                "node, so the program would not stop. Only an Exception is "
                "the node's fault; a KeyboardInterrupt is not one.",
            )
            raise

    def test_values_without_data(self) -> None:
        graph = Graph()
        graph.output(graph.call_function(torch.ones, (2, 3)))
        prop = InMode(GraphModule(nn.Module(), graph))
        prop.propagate()
        same(
            prop.ran,
            ["ones", "output"],
            "ShapeProp may be given a mode for tensors without data, and "
            "torch.ones would make a real one: `_run_in_mode` runs a node so "
            "that the mode is in force.",
        )
