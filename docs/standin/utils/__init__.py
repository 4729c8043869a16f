"""A stand-in for torch.utils."""

from . import _pytree as _pytree
