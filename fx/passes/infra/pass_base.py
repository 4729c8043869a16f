"""Passes: what a pass is, and what it returns."""

from __future__ import annotations

import abc
from typing import NamedTuple

from ...graph_module import GraphModule
from ...use_def.errors import refuse_torchs
from ...use_def.values import AnyValue

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """What a pass returns.

    Attributes:
        graph_module: the module, changed or a new one.
        modified: whether it is another program than before.

    torch.fx: passes/infra/pass_base.py, PassResult
    """

    graph_module: AnyValue
    modified: bool


class PassBase(abc.ABC):
    """A pass with a check before and one after it.

    torch.fx: passes/infra/pass_base.py, PassBase
    """

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        """Check a module, run the pass on it, and check it again."""
        refuse_torchs(graph_module)
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """Run the pass on a module."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Raise if a module is not fit for the pass; by default it is."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Raise if the pass has not done its work on the given module."""
