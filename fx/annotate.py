"""Stage 03, proxies and magic methods: say what type a traced value has.

A type is never replaced, since it may come from the signature.  Outside of a
trace the value is returned as it is.
"""

from __future__ import annotations

from .proxy import Proxy
from .use_def.values import AnyValue

__all__ = ["annotate"]


def annotate(val: AnyValue, type: AnyValue) -> AnyValue:
    """Give the node of a proxy a type, which generated code will show.

    Args:
        val: any value; only a Proxy is changed.
        type: the annotation.

    Returns:
        `val`.

    Raises:
        RuntimeError: the node has a type already.

    torch.fx: annotate.py, annotate
    """
    if isinstance(val, Proxy):
        if val.node.type is not None:
            raise RuntimeError(
                "Tried to annotate a value that already had a type on it! "
                f"Existing type of {val.node} is {val.node.type} and new type "
                f"is {type}. For a parameter, change its annotation in the "
                "function's signature; otherwise annotate a value once"
            )
        val.node.type = type
    return val
