"""Passes: notes on values found anew, after a rewrite has changed values.

The rewriter drops notes that may be untrue (`fx.extra.notes.value_notes` finds
them).  If you need notes there, to plan memory for instance, ask for new ones
with `recompute_meta=True`.  Then the calls behind a change run one by one, on
fake tensors of the mode that the graph's own notes are from; the nodes in front
of them give what their own notes say.
"""

from __future__ import annotations

import copy
import functools
from itertools import chain
from typing import Final

import torch

from ..extra.notes.value_notes import Changes, Notes
from ..graph_module import GraphModule
from ..interpreter import Interpreter
from ..linked_list.opcodes import Target
from ..node import Node
from ..torch_private import pytree
from ..torch_private.fake_tensors import (
    FakeCopyMode,
    FakeTensor,
    unset_fake_temporarily,
)
from ..use_def.arguments import map_aggregate
from ..use_def.values import Argument, Value
from .fake_tensor_prop import FakeTensorProp
from .shape_prop import TensorMetadata, extract_tensor_metadata

__all__ = ["Recomputed"]

_SHOWN: Final = ("val", "example_value", "tensor_meta")
"""The notes that show what a value is like."""


class Recomputed(FakeTensorProp):
    """Runs a graph on fake tensors like those that its nodes have noted.

    Attributes:
        problem: which affected call could not be run, and why; "" so far.
    """

    def __init__(self, gm: GraphModule, change: Changes) -> None:
        """Begin before the first node."""
        vals = [node.meta.get("val") for node in change.before]
        fakes = (
            leaf.fake_mode
            for leaf in pytree.tree_leaves(vals)
            if isinstance(leaf, FakeTensor)
        )
        super().__init__(gm, next(fakes, None))
        self.extra_traceback = False
        self.env: dict[Node, Value] = {}
        self.problem: str = ""
        self._why = ""
        self._change = change
        tensors = chain(gm.parameters(), gm.buffers())
        devices = (tensor.device for tensor in tensors)
        self._device: torch.device = next(devices, torch.device("cpu"))

    def see(self, node: Node, *, is_affected: bool) -> Notes:
        """What a node should note of its value, if it is affected.

        What holds for some sizes of the inputs only must not be noted for all:
        a call that adds a condition on the sizes counts as one that cannot be
        run.

        Args:
            node: the next one of the graph.
            is_affected: its notes may be untrue.

        Returns:
            The notes of each kind; nothing if it cannot be run.
        """
        try:
            with self._mode:
                if not is_affected:
                    self.env[node] = self._known(node)
                    return {}
                guards = self._guards()
                value = self._run(node)
                notes = self._noted(value)
                if self._guards() > guards:
                    raise RuntimeError("it branches on the size of an input")
                self.env[node] = value
                return notes
        except Exception as error:
            self._why = self._why or str(error).partition("\n")[0]
            if is_affected and not self.problem:
                self.problem = f"{node} was not computed ({self._why})"
            return {}

    def _guards(self) -> int:
        """The number of conditions on sizes so far."""
        sizes: Value = self._mode.shape_env
        return 0 if sizes is None else len(sizes.guards)

    def _noted(self, value: Value) -> Notes:
        """The notes on a value: what ShapeProp and FakeTensorProp would note.

        A call may write into its input, or reshape it, so the notes are not
        the value itself.
        """
        kept = map_aggregate(value, self._keep)
        is_tensor = isinstance(value, torch.Tensor)
        notes: dict[str, Value] = {
            "val": kept,
            "example_value": kept,
            "type": torch.Tensor if is_tensor else type(value),
        }
        leaves = pytree.tree_leaves(value)
        if any(isinstance(leaf, torch.Tensor) for leaf in leaves):
            notes["tensor_meta"] = map_aggregate(value, _metadata)
        return {key: note for key, note in notes.items() if note is not None}

    # -- values ------------------------------------------------------------

    def _known(self, node: Node) -> Value:
        """The value of a node whose notes are true, run if they say too little.

        A call with a `val` does not run, so that its symbols stay those that
        were noted, unless its result needs gradients, which only
        `tensor_meta` says.

        Raises:
            RuntimeError: nothing is known of an input.
        """
        if node.op == "placeholder":
            like = functools.partial(self._like, node)
            for key in _SHOWN:
                if node.meta.get(key) is not None:
                    noted: Value = node.meta[key]
                    return pytree.tree_map(like, noted, is_leaf=_is_metadata)
            raise RuntimeError(f"nothing is noted of {node}")
        val = node.meta.get("val")
        says_all = isinstance(val, torch.Tensor) and not _needs_grad(node, val)
        can_skip = says_all and not self._change.reshapes
        return self._keep(val) if can_skip else self._run(node)

    def _like(self, node: Node, noted: Value) -> Value:
        """A leaf of what a node has noted, or of an attribute, as a fake."""
        if _is_metadata(noted):
            if noted.is_quantized or len(noted.shape) != len(noted.stride):
                raise RuntimeError(f"{node} is quantized or sparse")
            fake: Value = torch.empty_strided(
                noted.shape,
                noted.stride,
                dtype=noted.dtype,
                device=self._device,
            )
        elif isinstance(noted, torch.Tensor):
            fake = self._keep(noted)
        else:
            return noted  # a number, or a module
        return fake.requires_grad_(_needs_grad(node, noted))

    def _run(self, node: Node) -> Value:
        """The value of a node, computed."""
        sizes: Value = self._mode.shape_env
        if node.op == "get_attr":
            like = functools.partial(self._like, node)
            return pytree.tree_map(like, self.fetch_attr(str(node.target)))
        if sizes is None:
            return Interpreter.run_node(self, node)
        with sizes.ignore_fresh_unbacked_symbols():
            return Interpreter.run_node(self, node)

    def call_module(self, target: Target, args: Value, kwargs: Value) -> Value:
        """The result of a copy of the module, which may change its state."""
        with unset_fake_temporarily(), FakeCopyMode(self._mode):
            module = copy.deepcopy(self.fetch_attr(str(target)))
        return module(*args, **kwargs)


def _metadata(leaf: Argument) -> Argument:
    """What ShapeProp notes of a leaf of a value."""
    if isinstance(leaf, torch.Tensor):
        return extract_tensor_metadata(leaf)
    return leaf


def _is_metadata(value: object) -> bool:
    """Whether it is a TensorMetadata, of fx or of torch.fx."""
    return type(value).__name__ == TensorMetadata.__name__


def _needs_grad(node: Node, noted: Value) -> bool:
    """Whether a tensor that a node notes takes part in autograd."""
    described = node.meta.get("tensor_meta", noted)
    needs: bool = getattr(described, "requires_grad", noted.requires_grad)
    return needs
