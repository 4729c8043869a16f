"""Stage 06, interpreter: FakeTensorProp, a fake tensor for each node's value.

A fake tensor has no data, so that running on fake tensors takes no memory and
no arithmetic.  It still knows its shape, its device and its strides, and which
other tensors it shares storage with.
"""

from __future__ import annotations

import torch

from ..graph_module import GraphModule
from ..interpreter import Interpreter
from ..node import Node
from ..torch_private.fake_tensors import FakeTensor, FakeTensorMode
from ..torch_private.pytree import pytree
from ..use_def.arguments import map_aggregate
from ..use_def.values import AnyValue, Argument

__all__ = ["FakeTensorProp"]

_NUMBERS = (int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool)


class FakeTensorProp(Interpreter):
    """Writes each node's value, as a fake tensor, to `node.meta["val"]`.

        FakeTensorProp(gm).propagate(torch.randn(2, 3))

    The weights of the module are real; the default mode turns them into fake
    ones where they meet others.

    torch.fx: passes/fake_tensor_prop.py, FakeTensorProp
    """

    def __init__(
        self, module: GraphModule, mode: FakeTensorMode | None = None
    ) -> None:
        """Make a pass.

        Args:
            module: the module to run; its nodes are annotated.
            mode: makes the fake tensors; by default a new mode that lets the
                module's own parameters in.
        """
        super().__init__(module)
        self._mode = mode or FakeTensorMode(allow_non_fake_inputs=True)

    def propagate(self, *args: AnyValue) -> AnyValue:
        """Run on sample inputs, which are turned into fake ones.

        torch.fx: passes/fake_tensor_prop.py, FakeTensorProp.propagate
        """
        fake = self._mode.from_tensor
        fakes: AnyValue = pytree.tree_map_only(torch.Tensor, fake, args)
        return self.propagate_dont_convert_inputs(*fakes)

    def propagate_dont_convert_inputs(self, *args: AnyValue) -> AnyValue:
        """Run on inputs that are fake already.

        An operator that moves an input to another device in place has no
        effect on the caller's tensor: it is where it was afterwards.

        torch.fx: passes/fake_tensor_prop.py,
        FakeTensorProp.propagate_dont_convert_inputs
        """
        fakes = [value for value in args if isinstance(value, FakeTensor)]
        devices = [fake.fake_device for fake in fakes]
        with self._mode:
            try:
                return self.run(*args)
            finally:
                for fake, device in zip(fakes, devices, strict=True):
                    fake.fake_device = device

    def run_node(self, n: Node) -> AnyValue:
        """Run one node and annotate it.

        A later node may resize or transpose the value in place, so what is
        noted is a detached tensor: it has sizes and strides of its own and
        shares the storage, by which aliasing is recognised.  As in torch.fx, it
        says `requires_grad=False`.
        """
        result = super().run_node(n)
        value = map_aggregate(result, self._keep)
        if value is not None:
            n.meta["val"] = value
        return result

    def _keep(self, value: Argument) -> Argument:
        """What meta keeps of a leaf; of a tensor, a detached one."""
        if isinstance(value, torch.Tensor):
            if not isinstance(value, FakeTensor):
                value = self._mode.from_tensor(value, static_shapes=True)
            return value.detach()
        return value if isinstance(value, _NUMBERS) else None
