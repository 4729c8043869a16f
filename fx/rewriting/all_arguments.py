"""Stage 07, rewriter: all arguments of a call, defaults filled in.

Two calls of one function may be written in different ways: `scaled(x)` and
`scaled(x, by=1.0)` are the same if 1.0 is the default.  Who knows the
parameters can tell: an OpOverload has a schema, and a leaf function, which was
marked with `wrap`, has a signature.
"""

from __future__ import annotations

import inspect

from ..node import Node
from ..usedef.annotations import signature_of
from ..usedef.values import Argument, Value


def by_schema(node: Node) -> list[Argument]:
    """All arguments of a call of an OpOverload, defaults filled in."""
    target: Value = node.target
    args, kwargs = node.args, node.kwargs
    arguments: list[Argument] = []
    for place, parameter in enumerate(target._schema.arguments):
        if parameter.name in kwargs:
            arguments.append(kwargs[parameter.name])
        elif not parameter.kwarg_only and place < len(args):
            arguments.append(args[place])
        else:
            arguments.append(parameter.default_value)
    return arguments


def by_signature(
    pattern: Node, node: Node
) -> tuple[list[Argument], list[Argument]] | None:
    """All arguments of two calls of one leaf function, in one order.

    None if the pattern's target is not a leaf function, or if either call does
    not fit its parameters.
    """
    target: Value = pattern.target
    is_leaf = pattern.meta.get("is_wrapped") and node.target is pattern.target
    if not is_leaf:
        return None
    try:
        signature = signature_of(target)
        return _bound(signature, pattern), _bound(signature, node)
    except (TypeError, ValueError):  # it does not fit, or is written in C
        return None


def _bound(signature: inspect.Signature, node: Node) -> list[Argument]:
    """The arguments of a call in the order of the parameters.

    Raises:
        TypeError: the arguments do not fit the parameters.
    """
    bound = signature.bind(*node.args, **node.kwargs)
    bound.apply_defaults()
    return [*bound.arguments.values()]
