"""Stage 02, use-def: torch's functions for nested containers, as trees.

A nested structure of tuples, lists, dicts and registered classes is a tree,
and what is in it at the end are its leaves.  `torch.utils._pytree` takes such
trees apart and puts them together; each use in fx goes through here.  Its own
names are not looked up one by one: without them torch itself does not run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .names import find

__all__ = ["pytree"]

if TYPE_CHECKING:
    from torch.utils import _pytree as pytree
else:
    pytree = find("torch.utils._pytree", needed_for="nested inputs")
