"""Extra: notes on values, computed again after a rewrite.

The calls behind a new node run, on fake tensors of the graph's own mode.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial
from itertools import chain

import torch

from ..graph_module import GraphModule
from ..interpreter import Interpreter
from ..node import Node
from ..passes.fake_tensor_prop import FakeTensorProp
from ..passes.shape_prop import extract_tensor_metadata
from ..recording import frames
from ..rewriting.replacing import described
from ..rewriting.snapshot import Snapshot
from ..torch_private import fake_tensors
from ..torch_private.pytree import pytree
from ..traceback import OF_VALUE
from ..use_def.arguments import map_aggregate
from ..use_def.values import AnyValue, Argument


def recompute(
    before: Snapshot, gm: GraphModule, changed: Mapping[Node, AnyValue]
) -> None:
    """Note the same properties of values as the graph had notes on.

    `changed` are the nodes whose notes were dropped, and their `meta` before.
    Warns if a value cannot be computed.
    """
    metas = [changed.get(node, node.meta) for node in before.fields]
    kinds = OF_VALUE.intersection(chain.from_iterable(metas))
    if not kinds:
        return
    run = _Run(gm, [meta.get("val") for meta in metas])
    for node in gm.graph.nodes:
        notes = run.see(node, node in changed)
        meta = changed.get(node, {})
        is_old = node in before.fields
        for key in notes.keys() & (meta if is_old else kinds):
            same = described(meta.get(key)) == described(notes[key])
            node.meta[key] = meta[key] if same and is_old else notes[key]
    if run.problem:
        frames.warn(
            f"recompute_meta: {run.problem}, so that this node and what "
            "depends on it have no notes on their values"
        )


class _Run(FakeTensorProp):
    """Runs a graph on fake tensors like those that its nodes have noted."""

    def __init__(self, gm: GraphModule, noted: list[AnyValue]) -> None:
        fakes = pytree.tree_leaves(noted)
        modes = (getattr(fake, "fake_mode", None) for fake in fakes)
        super().__init__(gm, next(filter(None, modes), None))
        self.extra_traceback = False
        self.env: dict[Node, AnyValue] = {}
        self.problem = self._why = ""
        self._sizes: AnyValue = self._mode.shape_env
        with fake_tensors.FakeCopyMode(self._mode):
            self.module = copy.deepcopy(gm)  # calls may change its state

    def see(self, node: Node, doubtful: bool) -> dict[str, AnyValue]:
        """What the next node notes, if it can be run, or what it has noted.

        A call that adds a condition on the sizes cannot: what holds for some
        sizes of the inputs must not be noted for all.
        """
        guards = self._sizes and len(self._sizes.guards)
        try:
            with self._mode:
                value = self._value(node, doubtful)
                kept = map_aggregate(value, self._keep)
                shape = map_aggregate(value, _metadata)
            if doubtful and self._sizes and len(self._sizes.guards) > guards:
                raise RuntimeError("it branches on the size of an input")
        except Exception as error:
            self._why = self._why or str(error).partition("\n")[0]
            if doubtful and not self.problem:
                self.problem = f"{node} was not computed ({self._why})"
            return {}
        self.env[node] = value
        notes: dict[str, AnyValue] = {"type": type(value)}
        if isinstance(value, torch.Tensor):
            notes["type"] = torch.Tensor
        if kept is not None:
            notes |= {"val": kept, "example_value": kept}
        leaves = pytree.tree_leaves(value)
        if any(isinstance(leaf, torch.Tensor) for leaf in leaves):
            notes["tensor_meta"] = shape
        return notes

    def _value(self, node: Node, doubtful: bool) -> AnyValue:
        """The value of a node, run if what it has noted says too little.

        A call with a true `val` does not run, so that its symbols stay those
        that were noted, unless its result needs gradients.
        """
        said = map(node.meta.get, ("val", "example_value", "tensor_meta"))
        noted = next((one for one in said if one is not None), None)
        if node.op == "placeholder":
            if noted is None:
                raise RuntimeError(f"nothing is noted of {node}")
        elif (
            doubtful
            or not isinstance(node.meta.get("val"), torch.Tensor)
            or _needs_grad(node, noted)
        ):
            quiet = self._sizes and self._sizes.ignore_fresh_unbacked_symbols()
            with quiet or nullcontext():
                return Interpreter.run_node(self, node)
        like = partial(self._like, node)
        return pytree.tree_map(
            like, noted, is_leaf=lambda leaf: hasattr(leaf, "qparams")
        )

    def _like(self, node: Node, noted: AnyValue) -> AnyValue:
        """A leaf of what a node has noted, as a fake."""
        if isinstance(noted, torch.Tensor):
            fake: AnyValue = self._keep(noted)
        elif hasattr(noted, "qparams"):  # a TensorMetadata, of fx or torch.fx
            if noted.is_quantized or len(noted.shape) != len(noted.stride):
                raise RuntimeError(f"{node} is quantized or sparse")
            held = chain(self.module.parameters(), self.module.buffers())
            device = next((t.device for t in held), torch.device("cpu"))
            place = noted.shape, noted.stride
            fake = torch.empty_strided(*place, dtype=noted.dtype, device=device)
        else:
            return noted  # a number
        return fake.requires_grad_(_needs_grad(node, noted))


def _metadata(leaf: Argument) -> Argument:
    if isinstance(leaf, torch.Tensor):
        return extract_tensor_metadata(leaf)
    return leaf


def _needs_grad(node: Node, noted: AnyValue) -> bool:
    """Whether a tensor that a node notes takes part in autograd."""
    said = node.meta.get("tensor_meta", noted)
    return bool(getattr(said, "requires_grad", noted.requires_grad))
