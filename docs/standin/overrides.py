"""A stand-in for torch.overrides."""

from ._tensor import AnyValue


def is_tensor_method_or_property(function: AnyValue) -> bool:
    """Whether a function is a method of tensors."""
    return getattr(function, "__module__", "") == "torch._tensor"
