"""A stand-in for torch.overrides."""

from ._tensor import Value


def is_tensor_method_or_property(function: Value) -> bool:
    """Whether a function is a method of tensors."""
    return getattr(function, "__module__", "") == "torch._tensor"
