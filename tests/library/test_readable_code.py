"""Generated code for people: comments, shapes, colours, profiler ranges."""

from __future__ import annotations

import enum
import re
from typing import NamedTuple

import pytest
import torch
import torch.fx
from torch import nn

import fx
from fx.codegen.codegen import CodeGen
from fx.graph import Graph
from tests.library.generated import (
    AnyValue,
    Lib,
    function,
    node_of_line,
    written,
)


class Colour(enum.Enum):
    RED = 1


# -- code for people ---------------------------------------------------------


def with_meta(lib: Lib, graph: Lib) -> None:
    """Nodes with everything that comments and annotations are made of."""
    x = graph.placeholder("x", default_value="#")
    x.meta["val"] = torch.ones(2, 3)
    x.meta["desc"] = "the input"
    y = graph.call_function(torch.relu, (x,), type_expr=int)
    y.meta["tensor_meta"] = Meta(torch.Size((2,)), torch.int8)
    y.meta["stack_trace"] = (
        'File "lib.py", line 3, in call\n    f(x)\n'
        'File "my model.py", line 7, in forward\n    y =\t relu(x)  # so\n'
    )
    z = graph.call_function(torch.neg, (y,))
    z.meta.update(y.meta)
    z.meta["example_value"] = nn.Parameter(torch.ones(1))
    del z.meta["tensor_meta"]
    w = graph.call_function(torch.neg, (z,))
    w.meta["custom"] = {"note": "n" * 50, "n": 3, "pair": (1, "a"), "one": (1,)}
    w.meta["seq_nr"], w.meta["colour"] = 5, Colour.RED
    w.meta["recompute"], w.meta["ac_graph_id"] = Colour.RED, 4
    v = graph.call_function(torch.neg, (w,))
    v.meta["recompute"] = Colour.RED
    v.meta["val"] = torch.ones(2).to_sparse()
    out = graph.output((v, [w]))
    out.meta["desc"] = ["the first", "the second"]


class Meta(NamedTuple):
    shape: torch.Size
    dtype: torch.dtype


class Tensor3(torch.Tensor):
    pass


VERBOSE: dict[str, AnyValue] = {
    "verbose": True,
    "include_stride": True,
    "include_device": True,
    "additional_meta": ["seq_nr", "colour", "absent"],
}


@pytest.mark.parametrize("colored", [False, True])
def test_comments_and_shapes_as_torch_writes_them(colored: bool) -> None:
    def build(lib: Lib, graph: Lib) -> None:
        with_meta(lib, graph)
        if lib is torch.fx:  # which knows shape propagation's own class only
            size: AnyValue = torch.Size((2,))
            shape: AnyValue = (size, torch.int8, False, (1,), None, False, {})
            kind = torch.fx.passes.shape_prop.TensorMetadata
            relu = next(n for n in graph.nodes if n.name == "relu")
            relu.meta["tensor_meta"] = kind(*shape)

    theirs = written(build, torch.fx, **VERBOSE, colored=colored)
    ours = written(build, fx, **VERBOSE, colored=colored)
    assert ours.src == theirs.src
    assert 'relu: "i8[2]" = torch.relu(x)' in re.sub(
        r"\x1b\[\d+m", "", ours.src
    )
    if not colored:
        function(ours)


def test_descriptions_beside_parameters_and_outputs() -> None:
    code = written(with_meta, fx, expanded_def=True)
    assert "    x = '\\x23',  # the input\n" in code.src
    assert "    v" not in code.src
    text = (
        "return (\n        neg_2,  # the first\n        [neg_1],  # the second"
    )
    assert text in code.src
    assert function(code)(None, torch.ones(1))[0] == -1
    parameter = function(code).__defaults__
    assert parameter == ("#",)


def test_fewer_descriptions_than_outputs_drop_no_output() -> None:
    codegen = CodeGen()
    text = codegen.generate_output((1, 2), descs=["one"])
    assert text == "return (\n    1,  # one\n    2,\n)"


def test_profiler_ranges() -> None:
    graph = Graph()
    x = graph.placeholder("_rf")
    y = graph.call_function(torch.neg, (x,), name="_rf_relu")
    z = graph.call_function(torch.relu, (y,))
    graph.output((z, x, y))
    code = graph.python_code("self", record_func=True)
    one = torch.ones(1)
    assert function(code)(None, one) == (0, one, -one)
    found = node_of_line(graph, code)
    assert found["_rf_relu_1.__exit__(None, None, None)"] == "relu"


def test_environment_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FX_GRAPH_SHOW_STRIDE", "1")
    monkeypatch.setenv("FX_GRAPH_SHOW_DEVICE", "1")
    code = written(with_meta, fx, verbose=True)
    assert 'x: "f32[2, 3][3, 1]cpu"' in code.src
    assert "cpu" not in written(with_meta, fx).src
