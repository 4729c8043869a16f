"""onnx2torch: a graph module of a model in ONNX's form."""

from __future__ import annotations

from typing import Final

import numpy as np
import onnx
import onnx2torch
import torch
from onnx import TensorProto, helper, numpy_helper

from fx.use_def.values import AnyValue
from tests.clients.record import case, module

PACKAGES = ("onnx2torch",)


def _model(
    nodes: list[AnyValue],
    shapes: tuple[list[int], list[int]],
    weights: dict[str, tuple[int, ...]],
) -> AnyValue:
    """A model with one input, `x`, and one output, `y`."""
    draw = np.random.default_rng(0)
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shapes[0])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shapes[1])],
        [
            numpy_helper.from_array(
                draw.standard_normal(size).astype(np.float32), name
            )
            for name, size in weights.items()
        ],
    )
    opset = [helper.make_opsetid("", 13)]
    made = helper.make_model(graph, opset_imports=opset, ir_version=8)
    onnx.checker.check_model(made)
    return made


node: Final = helper.make_node
MODELS: Final[dict[str, AnyValue]] = {
    "linears": (
        [
            node("Gemm", ["x", "w", "b"], ["h"], transB=1),
            node("Relu", ["h"], ["r"]),
            node("MatMul", ["r", "v"], ["y"]),
        ],
        ([2, 4], [2, 3]),
        {"w": (8, 4), "b": (8,), "v": (8, 3)},
    ),
    "convolutions": (
        [
            node("Conv", ["x", "w", "b"], ["c"], kernel_shape=[3, 3]),
            node("Relu", ["c"], ["r"]),
            node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
            node("GlobalAveragePool", ["p"], ["g"]),
            node("Flatten", ["g"], ["y"]),
        ],
        ([1, 3, 16, 16], [1, 4]),
        {"w": (4, 3, 3, 3), "b": (4,)},
    ),
    "reductions": (
        [
            node("Softmax", ["x"], ["s"], axis=1),
            node("ReduceMean", ["s"], ["m"], axes=[1], keepdims=1),
            node("Sub", ["s", "m"], ["d"]),
            node("Mul", ["d", "d"], ["q"]),
            node("ReduceMax", ["q"], ["y"], axes=[0], keepdims=0),
        ],
        ([3, 5], [5]),
        {},
    ),
    "shapes": (
        [
            node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
            node("Concat", ["t", "t"], ["c"], axis=1),
            node("Sigmoid", ["c"], ["s"]),
            node("Clip", ["s"], ["y"]),
        ],
        ([2, 3, 4], [2, 8, 3]),
        {},
    ),
}


def main() -> None:
    """Convert each model, and run it."""
    for name, (nodes, shapes, weights) in MODELS.items():
        with case(name) as found, torch.no_grad():
            converted = onnx2torch.convert(_model(nodes, shapes, weights))
            module(found, converted, torch.rand(shapes[0]))
