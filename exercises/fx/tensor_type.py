"""Passes: torch.fx's types of tensors, which are about no graph."""

from torch.fx.tensor_type import Dyn, TensorType, is_consistent, is_more_precise

__all__ = ["Dyn", "TensorType", "is_consistent", "is_more_precise"]
