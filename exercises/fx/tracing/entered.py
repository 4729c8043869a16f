"""Stage 04, module patching: what a trace fixes of the modules it goes into.

A module that is traced into is gone from the graph: its calls are there, in the
form that they had while tracing.  Two things that people rely on are fixed so.

    F.dropout(x, 0.5, training=self.training)

records `training=True`, whatever `eval()` says later.  To trace in the mode in
which one runs is right and common, so nobody is told before they change the
mode.  And a forward hook that collects features runs once, with proxies.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from types import CodeType
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

from torch import nn

from ..graph import Graph
from ..node import Node
from ..recording import frames
from ..torch_internals.modules import HOOKS
from ..usedef.values import Value

FIXED_MODE: Final = "fixed_training"
"""The key in the output's `meta` for a `FixedMode`, as a plain tuple."""


class FixedMode(NamedTuple):
    """The mode in which a root was traced, and which modules it decides for.

    Attributes:
        training: of the root, when it was traced.
        paths: of the modules whose forward reads `training`, if theirs was the
            same; "" is the root.
    """

    training: bool
    paths: tuple[str, ...]


def note_mode(
    output: Node,
    root: nn.Module,
    entered: Mapping[nn.Module, str],
) -> None:
    """Note at the end of a graph which modules' modes it has fixed.

    Args:
        output: the graph's output node.
        root: what was traced.
        entered: the modules that were traced into, without the root, and
            their paths.
    """
    fixed = tuple(
        path
        for module, path in ((root, ""), *entered.items())
        if module.training == root.training and _reads_training(type(module))
    )
    if fixed:
        output.meta[FIXED_MODE] = (root.training, fixed)


def warn_of_mode(graph: Graph, training: bool) -> None:
    """Warn if a graph is to run in another mode than it was traced in.

    Args:
        graph: whose module gets the mode.
        training: the mode.
    """
    last = next(iter(reversed(graph.nodes)), None)
    noted = last and last.meta.get(FIXED_MODE)
    if not noted:
        return
    traced, paths = FixedMode(*noted)
    if traced != training:
        where = ", ".join(path or "the root" for path in paths)
        asked, then = ("train", "eval") if training else ("eval", "train")
        frames.warn(
            f"{asked}() does not reach all of this graph: it was traced after "
            f"{then}(), and what forward did because of `training` is fixed, "
            f"in {where}. Trace the module again in the mode in which it is "
            "to run, or use a module such as nn.Dropout, which the graph calls"
        )


def warn_of_hooks(module: nn.Module, path: str) -> None:
    """Warn that the hooks of a module that is traced into run once only."""
    hooks = [
        hook
        for kind in HOOKS
        for hook in vars(module).get(kind, {}).values()
        if not f"{getattr(hook, '__module__', '')}.".startswith("torch.")
    ]
    if hooks:
        frames.warn(
            f"{path}, a {type(module).__name__}, is traced into and has hooks, "
            "which run once, with proxies. The graph has the calls that they "
            "make, and nothing else of what they do. Make the module a leaf "
            "(is_leaf_module), or give what they collect as an output"
        )


_READ: Final[WeakKeyDictionary[type, bool]] = WeakKeyDictionary()
"""Whether classes read `training`, as far as it was asked."""


def _reads_training(kind: type[nn.Module]) -> bool:
    """Whether the forward of a class reads `training`, or a method of its does.

    Cost: O(code) for the first question about a class.
    """
    if kind not in _READ:
        _READ[kind] = any("training" in names for names in _names_read(kind))
    return _READ[kind]


def _names_read(kind: type[nn.Module]) -> Iterator[tuple[str, ...]]:
    """The names in `forward`, and in the methods that are named in turn."""
    known = {"forward"}
    ahead = ["forward"]
    for name in ahead:
        for code in _definitions(kind, name):
            yield code.co_names
            new = set(code.co_names) - known - {"training"}
            known |= new
            ahead += new


def _definitions(kind: type[nn.Module], name: str) -> Iterator[CodeType]:
    """The code of a method in a class and its bases, up to nn.Module."""
    for base in kind.__mro__[: kind.__mro__.index(nn.Module)]:
        held: Value = vars(base).get(name)
        held = getattr(held, "fget", getattr(held, "__func__", held))
        code = getattr(inspect.unwrap(held), "__code__", None)
        ahead = [code] if isinstance(code, CodeType) else []
        for one in ahead:  # lambdas and comprehensions are code inside of code
            yield one
            ahead += [c for c in one.co_consts if isinstance(c, CodeType)]
