"""Passes: torch.fx's place for `compatibility`, which is in `compat`."""

from .compat.compatibility import compatibility

__all__ = ["compatibility"]
