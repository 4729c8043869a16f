"""Passes: torch.fx's types of tensors, which are about no graph.

They describe the shape of a tensor in an annotation.  None of them holds a
node, so that both libraries can use the same classes.
"""

from typing import Final

from torch.fx import tensor_type
from torch.fx.tensor_type import TensorType, is_consistent, is_more_precise

from .usedef.values import Value

__all__ = ["Dyn", "TensorType", "is_consistent", "is_more_precise"]

Dyn: Final[Value] = tensor_type.Dyn
"""Stands for a dimension, or a type, that is not known."""
