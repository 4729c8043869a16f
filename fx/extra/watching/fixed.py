"""Extra: what a trace fixes of the modules it goes into.

A module that is traced into is gone from the graph: its calls are there, in the
form that they had while tracing. This fixes two things that people rely on.

    F.dropout(x, 0.5, training=self.training)

records `training=True`, whatever `eval()` says later.  To trace in the mode in
which one runs is right and common, so nobody is told before they change the
mode.  And a forward hook that collects features runs once, with proxies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from torch import nn

from ...graph import Graph
from ...graph_module import GraphModule
from ...node import Node
from ...recording import frames
from ...torch_private.modules import HOOKS
from ...use_def.values import AnyValue

FIXED_MODE: Final = "fixed_training"
"""The key in the output's `meta` for a `FixedMode`, as a plain tuple."""


class FixedMode(NamedTuple):
    """The mode in which a root was traced, and which modules it decides for.

    Attributes:
        training: of the root, when it was traced.
        paths: of the modules whose `training` the code has read, if theirs was
            the same; "" is the root.
    """

    training: bool
    paths: tuple[str, ...]


def train(self: GraphModule, mode: bool = True) -> GraphModule:
    """Set the mode of the modules that the graph calls.

    Warns if the graph was traced in the other mode, and has fixed what a
    forward did because of it.

    Args:
        self: the module.
        mode: whether it is to be trained.
    """
    if "_graph" in vars(self):  # a subclass may build itself, graph last
        _warn_of_mode(self.graph, mode)
    super(GraphModule, self).train(mode)
    return self


def _warn_of_mode(graph: Graph, training: bool) -> None:
    """Warn if a graph is to run in another mode than it was traced in."""
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


class Entered:
    """The modules whose forward has run, and those that were asked their mode.

    Attributes:
        read_training: the modules whose `training` the code has read.
    """

    def __init__(self, paths: Mapping[nn.Module, str]) -> None:
        """Begin a trace of a root with these modules."""
        self._paths = paths
        self._entered: set[nn.Module] = set()
        self.read_training: set[nn.Module] = set()

    def enter(self, module: nn.Module) -> None:
        """Note that a module is traced into, and warn of its hooks."""
        if module not in self._entered:
            self._entered.add(module)
            path = self._paths.get(module, type(module).__name__)
            _warn_of_hooks(module, path)

    def note_mode(self, output: Node, training: bool) -> None:
        """Note at the end of a graph which modules' modes it has fixed.

        Copies and pickles of the graph keep the output's `meta`.  A child
        whose mode differs from the root's was set so on purpose, and changes
        of the root's mode say nothing about it.

        Args:
            output: the graph's output node.
            training: the mode of the root.
        """
        read = self.read_training
        fixed = tuple(
            path
            for module, path in self._paths.items()
            if (module in read and module.training == training)
            or ("_graph" in vars(module) and _is_fixed(module, training))
        )
        if fixed:
            output.meta[FIXED_MODE] = (training, fixed)


class Training:
    """`training` of modules while traces run, which notes who reads it.

    It is on the class and has `__set__`, so that Python asks it before it looks
    among the attributes of a module, where the flag stays.  So each read is
    noted, whether it stands in `forward`, in a function that is given the
    module, or in the `forward` of its parent.  Only `vars(self)["training"]`
    goes by it.
    """

    def __init__(self, note: Callable[[nn.Module], None]) -> None:
        """Stand there; `note` is called with each module that is asked."""
        self._note = note

    def __get__(self, module: nn.Module | None, owner: type) -> bool:
        """The flag of a module."""
        attributes = {} if module is None else vars(module)
        if "training" not in attributes:  # that of a ScriptModule is elsewhere
            raise AttributeError("training")
        if module is not None:
            self._note(module)
        flag: bool = attributes["training"]
        return flag

    def __set__(self, module: nn.Module, value: AnyValue) -> None:
        """Set the flag of a module."""
        vars(module)["training"] = value

    def __delete__(self, module: nn.Module) -> None:
        """Remove the flag of a module."""
        del vars(module)["training"]


def _is_fixed(module: nn.Module, training: bool) -> bool:
    """Whether a module has a graph that was traced in a mode.

    A module of the root may have one itself; its note is passed on.
    """
    graph = vars(module)["_graph"]
    last = next(iter(reversed(graph.nodes)), None) if graph else None
    noted: AnyValue = last and last.meta.get(FIXED_MODE)
    return bool(noted) and FixedMode(*noted).training == training


def _warn_of_hooks(module: nn.Module, path: str) -> None:
    """Warn that the hooks of a module that is traced into run once only.

    Hooks of torch.nn.utils compute weights, which are recorded.
    """
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
