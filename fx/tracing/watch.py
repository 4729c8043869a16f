"""Stage 04, module patching: who is told what a trace meets.

A trace records what code does with proxies.  What the code does besides is not
in the graph: it writes into a tensor that is no proxy, switches gradients off,
asks whether a proxy is a tensor.  Somebody should say so, but to find out takes
more code than to record, and changes nothing that is recorded.  So a trace
tells a Watch what happens.  The plain one here takes no notice; `import fx`
puts one at `Tracer._watching` that warns, and adds advice to errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from torch import nn

from ..node import Node
from ..usedef.values import Value
from .state import State
from .wrapping import Globals

if TYPE_CHECKING:
    from .tracer import Tracer


class Watch:
    """Is told what happens in one trace, and takes no notice."""

    def begin(self, tracer: Tracer, state: State) -> None:
        """A trace begins, whose root has in it what `state` says."""

    def given(
        self, function: Callable[..., Value], defaults: Mapping[str, Value]
    ) -> None:
        """A function is traced whose inputs have defaults, by name."""

    def replace(self) -> None:
        """A trace replaces what it has to see, and more may be replaced."""

    def visit(self, namespace: Globals) -> None:
        """Code that has these globals is going to run."""

    def enter(self, module: nn.Module) -> None:
        """The forward of a module is going to run."""

    def fetched(self, node: Node, value: Value) -> None:
        """The code has a value without a proxy, which `node` fetches."""

    def finish(self) -> None:
        """The code has run, or raised: what it left on the root may go."""

    def end(self, output: Node) -> None:
        """The graph is whole."""

    def failed(self, error: BaseException) -> None:
        """The trace has ended with an error."""
