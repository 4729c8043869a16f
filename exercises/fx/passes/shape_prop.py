"""Stage 06, interpreter: ShapeProp, which notes the shape of each node's value.

A pass that fuses operations or plans memory has to know shapes and dtypes, long
after the values themselves are gone.  `ShapeProp` runs the graph once on sample
inputs and writes what it sees to the nodes.
"""

from __future__ import annotations

import copy
from typing import NamedTuple

import torch
from torch import nn

from ..graph_module import GraphModule
from ..interpreter import Interpreter
from ..node import Node
from ..torch_private.fake_tensors import (
    FakeCopyMode,
    FakeTensorMode,
    detect_fake_mode,
    is_contiguous,
    python_dispatcher,
)
from ..torch_private.pytree import pytree
from ..use_def.arguments import map_aggregate
from ..use_def.values import AnyValue, Argument

__all__ = ["ShapeProp", "TensorMetadata"]


MEMORY_FORMATS = (
    torch.contiguous_format,
    torch.channels_last,
    torch.channels_last_3d,
)
"""The memory formats that are tried, in order."""


class TensorMetadata(NamedTuple):
    """What is known of a tensor besides its data.

    Attributes:
        shape: its size.
        dtype: the type of its elements.
        requires_grad: whether it takes part in autograd.
        stride: elements to step over in each dimension.
        memory_format: the first format it is contiguous in, or None.
        is_quantized: whether it is quantized.
        qparams: how; empty if it is not.

    torch.fx: passes/shape_prop.py, TensorMetadata
    """

    shape: torch.Size
    dtype: torch.dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: torch.memory_format | None
    is_quantized: bool
    qparams: dict[str, AnyValue]


def extract_tensor_metadata(result: torch.Tensor) -> TensorMetadata:
    """What is known of `result`, which is any tensor.

    torch.fx: passes/shape_prop.py, _extract_tensor_metadata
    """
    strided = result.layout is torch.strided
    return TensorMetadata(
        result.shape,
        result.dtype,
        result.requires_grad,
        result.stride() if strided else (),
        _memory_format(result) if strided else None,
        result.is_quantized,
        _quantization(result) if result.is_quantized else {},
    )


_extract_tensor_metadata = extract_tensor_metadata


def _memory_format(tensor: torch.Tensor) -> torch.memory_format | None:
    """The first memory format that a tensor is contiguous in."""
    for memory_format in MEMORY_FORMATS:
        if is_contiguous(tensor, memory_format=memory_format):
            return memory_format
    return None


def _quantization(tensor: torch.Tensor) -> dict[str, AnyValue]:
    """The parameters of a quantized tensor."""
    scheme = tensor.qscheme()
    found: dict[str, AnyValue] = {"qscheme": scheme}
    if scheme in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        found["scale"] = tensor.q_scale()
        found["zero_point"] = tensor.q_zero_point()
    elif str(scheme).startswith("torch.per_channel"):
        found["scale"] = tensor.q_per_channel_scales().tolist()
        found["zero_point"] = tensor.q_per_channel_zero_points().tolist()
        found["axis"] = tensor.q_per_channel_axis()
    return found


class ShapeProp(Interpreter):
    """Writes the shape of each node's value to `node.meta["tensor_meta"]`.

        ShapeProp(gm).propagate(torch.randn(50, 1000))

    A tuple or other structure of tensors gives the same structure of
    TensorMetadata. `node.meta["type"]` is the type of the value. If a node
    raises an Exception of any class, it is the cause of a RuntimeError.

    torch.fx: passes/shape_prop.py, ShapeProp
    """

    def __init__(
        self, gm: GraphModule, fake_mode: FakeTensorMode | None = None
    ) -> None:
        """Make a pass.

        Args:
            gm: the module to run; its nodes are annotated.
            fake_mode: run without data, with fake tensors of this mode; by
                default the mode in force, if there is one.
        """
        super().__init__(gm)
        self.fake_mode: FakeTensorMode | None = fake_mode or detect_fake_mode()
        self.fake_module: nn.Module | None = None
        self.real_module = gm
        if self.fake_mode is not None:
            with FakeCopyMode(self.fake_mode):
                self.fake_module = copy.deepcopy(gm)
            self.module: nn.Module = self.fake_module

    def propagate(self, *args: AnyValue) -> AnyValue:
        """Run the module on sample inputs and annotate its nodes.

        Args:
            *args: the inputs; tensors in them are made fake if need be.

        Returns:
            The module's result.

        Raises:
            RuntimeError: a node failed; the message names it.

        torch.fx: passes/shape_prop.py, ShapeProp.propagate
        """
        if self.fake_mode is not None:
            fake = self.fake_mode.from_tensor
            args = pytree.tree_map_only(torch.Tensor, fake, args)
        return self.run(*args)

    def run_node(self, n: Node) -> AnyValue:
        """Run one node and annotate it."""
        raise NotImplementedError("stage 06: ShapeProp.run_node")

    def _run_in_mode(self, n: Node) -> AnyValue:
        """Run one node, with fake tensors if there is a mode."""
        if self.fake_mode is None:
            return super().run_node(n)
        with self.fake_mode, python_dispatcher():
            return super().run_node(n)
