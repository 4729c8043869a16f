"""Mistakes with fx that a type checker finds: each marked line is one.

The mark is mypy's error code; test_typing.py knows pyright's name for it and
holds both to exactly these lines.  This file is for checkers: nobody runs it.
"""

# ruff: noqa: B015, B018  (a line is here for its types, not for its value)

from typing import assert_never

import torch
from torch import Tensor, nn

import fx


def opcodes(graph: fx.Graph, node: fx.Node) -> None:
    node.op = "bogus"  # wrong: assignment
    node.op == "call_modul"  # wrong: comparison-overlap
    graph.create_node("call", "x")  # wrong: arg-type
    graph.find_nodes(op="conv")  # wrong: arg-type


def five_of_six(node: fx.Node) -> str:
    match node.op:
        case "placeholder" | "get_attr" | "output":
            return "a value"
        case "call_function" | "call_module":
            return "a call"
        case _:
            assert_never(node.op)  # wrong: arg-type


def a_str_is_no_node(graph: fx.Graph, node: fx.Node) -> None:
    node.replace_all_uses_with("y")  # wrong: arg-type
    node.replace_input_with(node, "y")  # wrong: arg-type
    node.append("y")  # wrong: arg-type
    graph.erase_node("y")  # wrong: arg-type
    graph.inserting_before("y")  # wrong: arg-type
    graph.node_copy("y")  # wrong: arg-type
    fx.Proxy("y")  # wrong: arg-type


def a_proxy_is_no_node(graph: fx.Graph, node: fx.Node) -> None:
    y = fx.Proxy(node) + 1
    node.replace_all_uses_with(y)  # wrong: arg-type
    graph.inserting_after(y)  # wrong: arg-type
    y.node = "y"  # wrong: assignment


def a_node_is_no_tensor(node: fx.Node) -> None:
    node + 1  # wrong: operator
    torch.relu(node)  # wrong: arg-type
    node.relu()  # wrong: attr-defined


def arguments(node: fx.Node) -> None:
    node.args[0].meta  # wrong: attr-defined
    node.args[0] = node  # wrong: index
    node.args = [node]  # wrong: assignment
    node.kwargs = None  # wrong: assignment
    node.input_at("x")  # wrong: arg-type
    node.input_at(0) + 1  # wrong: operator
    fx.map_arg(node.args, 1)  # wrong: call-overload


def places(graph: fx.Graph, node: fx.Node) -> None:
    graph.nodes[0]  # wrong: index
    graph.nodes = graph.nodes  # wrong: misc
    node.next = node  # wrong: misc


def targets(graph: fx.Graph, net: nn.Module) -> None:
    graph.call_function("relu")  # wrong: arg-type
    graph.call_method(torch.relu)  # wrong: arg-type
    graph.call_module(net)  # wrong: arg-type


def tracing(net: nn.Module) -> None:
    fx.wrap(3)  # wrong: call-overload
    fx.symbolic_trace("net")  # wrong: arg-type
    fx.Tracer().trace(net).code  # wrong: attr-defined
    module = fx.GraphModule(net, net)  # wrong: arg-type
    module.graph = module.code  # wrong: assignment
    module.code = ""  # wrong: misc
    guards = fx.trace(net, torch.ones(2)).guards
    guards[0].text  # wrong: attr-defined
    guards.unchecked = None  # wrong: assignment


class CarelessTracer(fx.Tracer):
    def is_leaf_module(self, m: nn.Module) -> bool:  # wrong: override
        return isinstance(m, nn.Linear)

    def to_bool(self, obj: fx.Proxy) -> Tensor:  # wrong: override
        return torch.ones(())
