"""Drawings of graphs: the text that Graphviz would lay out."""

from __future__ import annotations

import importlib
import sys
from typing import Any, TypeAlias

import pytest
import torch
from torch import nn

from tests.parity.harness import Lib, Seen, error, program

AnyValue: TypeAlias = Any


class Parts(nn.Module):
    """Each kind of node; a function with lists, and one of ATen."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.w = nn.Parameter(torch.ones(2))

    def forward(self, x, n=3):  # type: ignore[no-untyped-def]
        y = torch.cat([self.linear(x), x], dim=1) * self.w.repeat(2)
        z = torch.ops.aten.add.Tensor(y, 1, alpha=n)
        return {"z": z.view([-1] + [1] * 9)}, torch.relu(y), [*range(12)]


def drawer(lib: Lib) -> AnyValue:
    """The class that draws."""
    module = f"{lib.__name__}.passes.graph_drawer"
    return importlib.import_module(module).FxGraphDrawer


def drawn(lib: Lib, root: AnyValue, **options: AnyValue) -> str:
    """A traced program as dot text, without the tensors of its modules."""
    gm = lib.symbolic_trace(root)
    options = {"ignore_parameters_and_buffers": True, **options}
    text: str = drawer(lib)(gm, "g", **options).get_dot_graph().to_string()
    return text


@program()
def a_drawing(lib: Lib) -> Seen:
    return drawn(lib, Parts())


@program()
def a_drawing_without_attributes(lib: Lib) -> Seen:
    return drawn(lib, Parts(), ignore_getattr=True, dot_graph_shape="box")


@program()
def a_drawing_with_all_arguments(lib: Lib) -> Seen:
    options = {"skip_node_names_in_args": False, "normalize_args": True}
    return drawn(lib, Parts(), **options)


@program()
def a_drawing_with_shapes_and_lines(lib: Lib) -> Seen:
    def f(x: AnyValue) -> AnyValue:
        y: AnyValue = torch.relu(x)
        return y.split(1)

    gm = lib.symbolic_trace(f)
    prop = importlib.import_module(f"{lib.__name__}.passes.shape_prop")
    prop.ShapeProp(gm).propagate(torch.ones(2, 2))
    for number, node in enumerate(gm.graph.nodes):
        head = f'File "a/b/c.py", line {number}, in f'
        node.stack_trace = f"{head}\n    x = 1\n  {head}\n    y = f(x)\n"
    made = drawer(lib)(gm, "g", parse_stack_trace=True)
    return made.get_dot_graph().to_string()


@program()
def a_drawing_of_a_quantized_tensor(lib: Lib) -> Seen:
    def f(x: AnyValue) -> AnyValue:
        whole = torch.quantize_per_tensor(x, 0.5, 3, torch.qint8)
        zeros = torch.zeros(2, dtype=torch.int64)
        each = torch.quantize_per_channel(
            x, torch.ones(2), zeros, 0, torch.qint8
        )
        return whole, each

    gm = lib.symbolic_trace(f)
    prop = importlib.import_module(f"{lib.__name__}.passes.shape_prop")
    prop.ShapeProp(gm).propagate(torch.ones(2, 2))
    return drawer(lib)(gm, "g").get_dot_graph().to_string()


@program()
def drawings_of_called_graph_modules(lib: Lib) -> Seen:
    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = lib.symbolic_trace(nn.ReLU())

        def forward(self, x: AnyValue) -> AnyValue:
            return self.inner(x)

    class Leafy(lib.Tracer):  # type: ignore[misc]
        def is_leaf_module(self, m: AnyValue, qualname: str) -> bool:
            return True

    root = Outer()
    gm = lib.GraphModule(root, Leafy().trace(root))
    made = drawer(lib)(gm, "g")
    assert made.get_dot_graph() is made.get_main_dot_graph()
    assert made.get_dot_graph("inner") is made.get_submod_dot_graph("inner")
    every = made.get_all_dot_graphs()
    missing = error(lambda: made.get_dot_graph("other"), chars=8)
    return [*every], made.get_dot_graph("inner").to_string(), missing


@program(
    differs="drawer-tensors",
    ours=r"{_0.running_mean|op_code=get_buffer\ltorch.float32[2]\n}",
)
def a_buffer_in_a_drawing(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(nn.Sequential(nn.BatchNorm1d(2)))
    text = drawer(lib)(gm, "g").get_dot_graph().to_string()
    at = text.index("running_mean")
    return text[text.index("label=", at) + 7 : text.index('", shape', at)]


@program(differs="drawer-names", ours=['"graph"', '"edge"', '"node"'])
def a_node_with_a_name_of_dot(lib: Lib) -> Seen:
    def f(graph: AnyValue, edge: AnyValue, node: AnyValue) -> AnyValue:
        return graph, edge, node

    dot = drawer(lib)(lib.symbolic_trace(f), "g").get_dot_graph()
    return [node.get_name() for node in dot.get_nodes()][:3]


@program(differs="drawer-text", ours=r"args=(a\|b\<c\>,)|num_users")
def a_text_with_signs_of_dot(lib: Lib) -> Seen:
    text = drawn(lib, lambda x: torch.einsum("a|b<c>", x))
    return text[text.index("args=(a") : text.index("=1", text.index("args=(a"))]


@program(differs="drawer-numbers", ours="no error")
def a_drawing_of_numbers_beside_tensors(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(nn.ReLU())
    next(iter(gm.graph.nodes)).meta["tensor_meta"] = (3, None)
    return error(lambda: drawer(lib)(gm, "g"), chars=23)


@program(differs="drawer-import", ours="ImportError: FxGraphDrawer draw")
def a_drawing_without_pydot(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(nn.ReLU())
    name = drawer(lib).__module__
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(sys.modules, "pydot", None)
        patched.delitem(sys.modules, name)
        cls = importlib.import_module(name).FxGraphDrawer
        return error(lambda: cls(gm, "g"), chars=18)
