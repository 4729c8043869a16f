"""Extra: what nodes note of their values is true after a rewrite, or gone.

`make_fx`, `ShapeProp` and torch.export note in each node's `meta` of which
shape and dtype its value is, and passes believe them.  A replacement may return
something else, and all that is computed from it is something else then.  So new
nodes have no notes, nor has what is behind them, unless its inputs have noted
what they had before.  With `recompute_meta=True` these calls run, in order, on
fake tensors of the mode that the graph's own notes are from.

torch.fx: subgraph_rewriter.py, _replace_pattern; there the notes behind a
replacement stay as they are. New nodes have those of the replacement's nodes,
if it was exported with inputs of its own.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from itertools import chain
from typing import Final, TypeAlias

import torch
from torch import Tag

from ..graph_module import GraphModule
from ..interpreter import Interpreter
from ..linked_list.opcodes import Target
from ..node import Node
from ..passes.fake_tensor_prop import FakeTensorProp
from ..passes.shape_prop import TensorMetadata, extract_tensor_metadata
from ..recording import frames
from ..reinplacing.aliasing import arguments_of, nodes_in
from ..rewriting.snapshot import Snapshot
from ..torch_private import fake_tensors, pytree
from ..traceback import OF_VALUE
from ..use_def.arguments import map_aggregate
from ..use_def.dead_code import RULE
from ..use_def.values import AnyValue, Argument

Notes: TypeAlias = Mapping[str, AnyValue]
"""The meta of a node, or the part of it that is about its value."""

_SHOWN: Final = ("val", "example_value", "tensor_meta")
"""The notes that show what a value is like."""


def settle(
    before: Snapshot, gm: GraphModule, options: Iterable[Mapping[str, object]]
) -> None:
    """Make the notes on the values of a rewritten graph true, or drop them.

    A program that runs by the rule of torch.fx keeps all that it has, unless it
    asks for true notes: torchao does not quantize a node that has none.  Each
    `meta` that changes becomes a new dict, since the snapshot holds the old.

    Args:
        before: the graph before the first edit.
        gm: the module that was rewritten.
        options: with `recompute_meta` among them the notes are found anew;
            warns if some cannot be.

    Cost: O(nodes + uses); to recompute, each call behind a new node is run.
    """
    recompute = any(chosen.get("recompute_meta") for chosen in options)
    if RULE.get() == "torch" and not recompute:
        return
    olds = before.fields
    kinds = OF_VALUE.intersection(chain.from_iterable(n.meta for n in olds))
    # After `x.t_()`, a note on `x` is true of some of its users only: as such
    # calls are rare, every note but those of the inputs is doubtful then.
    reshapes = any(map(changes_shapes, {*olds, *gm.graph.nodes}))
    run = _Run(gm, olds, reshapes) if recompute and kinds else None
    found: dict[Node, Notes] = {}

    def same(old: Notes, new: Notes) -> bool:
        keys = kinds & old.keys()
        return bool(keys) and all(
            key in new and described(old[key]) == described(new[key])
            for key in keys
        )

    def is_doubtful(node: Node) -> bool:
        if node not in olds or (reshapes and node.op != "placeholder"):
            return True
        had, has = nodes_in(olds[node][2:4]), arguments_of(node)
        return len(had) != len(has) or any(
            new in found
            if new is old
            else not same(old.meta, found.get(new, new.meta))
            for old, new in zip(had, has, strict=True)
        )

    for node in gm.graph.nodes:
        doubtful = is_doubtful(node)
        notes = run.see(node, doubtful) if run else {}
        if node not in olds or (doubtful and not same(node.meta, notes)):
            found[node] = notes
    for node, notes in found.items():
        keys = OF_VALUE & node.meta.keys()
        had = keys if node in olds else kinds
        kept = {key: node.meta[key] for key in node.meta if key not in keys}
        node.meta = kept | {key: notes[key] for key in notes if key in had}
    if run and run.problem:
        frames.warn(
            f"recompute_meta: {run.problem}, so that this node and what "
            "depends on it have no notes on their values"
        )


def described(noted: AnyValue) -> str:
    """What a note says, as text: to compare symbols would add a guard."""

    def text(leaf: AnyValue) -> str:
        if isinstance(leaf, torch.Tensor):
            stride = leaf.stride() if leaf.layout is torch.strided else ""
            where = f"{leaf.dtype} {leaf.device} {leaf.layout}"
            return f"{tuple(leaf.shape)} {stride} {where}"
        if isinstance(leaf, type) and issubclass(leaf, torch.Tensor):
            return "a tensor"
        return f"{type(leaf)} {leaf}"

    return str(pytree.tree_map(text, noted))


def changes_shapes(node: Node) -> bool:
    """Whether a call gives a tensor that it is given another shape."""
    name = str(getattr(node.target, "__name__", node.target)).split(".")[0]
    is_call = node.op in ("call_function", "call_method")
    return is_call and name.endswith("_") and _reshapes(name)


@lru_cache(maxsize=1024)
def _reshapes(name: str) -> bool:
    packet = getattr(torch.ops.aten, name, None)
    overloads = packet.overloads() if packet else ()
    tags = (getattr(packet, overload).tags for overload in overloads)
    return any(Tag.inplace_view in those for those in tags)


class _Run(FakeTensorProp):
    """Runs a graph on fake tensors like those that its nodes have noted.

    Attributes:
        problem: which doubtful call could not be run, and why; "" so far.
    """

    def __init__(
        self, gm: GraphModule, olds: Iterable[Node], reshapes: bool
    ) -> None:
        leaves = pytree.tree_leaves([node.meta.get("val") for node in olds])
        modes = (
            leaf.fake_mode
            for leaf in leaves
            if isinstance(leaf, fake_tensors.FakeTensor)
        )
        super().__init__(gm, next(modes, None))
        self.extra_traceback = False
        self.env: dict[Node, AnyValue] = {}
        self.problem: str = ""
        self._why = ""
        self._reshapes = reshapes
        devices = (t.device for t in chain(gm.parameters(), gm.buffers()))
        self._device = next(devices, torch.device("cpu"))

    def see(self, node: Node, doubtful: bool) -> Notes:
        """What the next node should note, if its notes are doubtful.

        Nothing if it cannot be run.  What holds for some sizes of the inputs
        only must not be noted for all, so a call that adds a condition on the
        sizes counts as one that cannot be run.
        """
        try:
            with self._mode:
                if not doubtful:
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
            if doubtful and not self.problem:
                self.problem = f"{node} was not computed ({self._why})"
            return {}

    def _guards(self) -> int:
        """The number of conditions on sizes so far."""
        sizes: AnyValue = self._mode.shape_env
        return 0 if sizes is None else len(sizes.guards)

    def _noted(self, value: AnyValue) -> Notes:
        """What ShapeProp and FakeTensorProp would note of a value."""
        kept = map_aggregate(value, self._keep)
        is_tensor = isinstance(value, torch.Tensor)
        kind = torch.Tensor if is_tensor else type(value)
        notes: dict[str, AnyValue] = {
            "val": kept,
            "example_value": kept,
            "type": kind,
        }
        leaves = pytree.tree_leaves(value)
        if any(isinstance(leaf, torch.Tensor) for leaf in leaves):
            notes["tensor_meta"] = map_aggregate(value, _metadata)
        return {key: note for key, note in notes.items() if note is not None}

    def _known(self, node: Node) -> AnyValue:
        """The value of a node whose notes are true, run if they say too little.

        A call with a `val` does not run, so that its symbols stay those that
        were noted, unless its result needs gradients: `tensor_meta` says that.
        """
        if node.op != "placeholder":
            val = node.meta.get("val")
            if not isinstance(val, torch.Tensor) or _needs_grad(node, val):
                return self._run(node)
            return self._run(node) if self._reshapes else self._keep(val)
        for noted in map(node.meta.get, _SHOWN):
            if noted is not None:
                like = partial(self._like, node)
                return pytree.tree_map(like, noted, is_leaf=_is_metadata)
        raise RuntimeError(f"nothing is noted of {node}")

    def _like(self, node: Node, noted: AnyValue) -> AnyValue:
        """A leaf of what a node has noted, or of an attribute, as a fake."""
        if _is_metadata(noted):
            if noted.is_quantized or len(noted.shape) != len(noted.stride):
                raise RuntimeError(f"{node} is quantized or sparse")
            place = noted.shape, noted.stride
            fake: AnyValue = torch.empty_strided(
                *place, dtype=noted.dtype, device=self._device
            )
        elif isinstance(noted, torch.Tensor):
            fake = self._keep(noted)
        else:
            return noted  # a number, or a module
        return fake.requires_grad_(_needs_grad(node, noted))

    def _run(self, node: Node) -> AnyValue:
        """The value of a node, computed."""
        sizes: AnyValue = self._mode.shape_env
        if node.op == "get_attr":
            fetched = self.fetch_attr(str(node.target))
            return pytree.tree_map(partial(self._like, node), fetched)
        if sizes is None:
            return Interpreter.run_node(self, node)
        with sizes.ignore_fresh_unbacked_symbols():
            return Interpreter.run_node(self, node)

    def call_module(
        self, target: Target, args: AnyValue, kwargs: AnyValue
    ) -> AnyValue:
        """The result of a copy of the module, which may change its state."""
        copying = fake_tensors.FakeCopyMode(self._mode)
        with fake_tensors.unset_fake_temporarily(), copying:
            module = copy.deepcopy(self.fetch_attr(str(target)))
        return module(*args, **kwargs)


def _metadata(leaf: Argument) -> Argument:
    if isinstance(leaf, torch.Tensor):
        return extract_tensor_metadata(leaf)
    return leaf


def _is_metadata(value: object) -> bool:
    """Whether it is a TensorMetadata, of fx or of torch.fx."""
    return type(value).__name__ == TensorMetadata.__name__


def _needs_grad(node: Node, noted: AnyValue) -> bool:
    """Whether a tensor that a node notes takes part in autograd."""
    said = node.meta.get("tensor_meta", noted)
    return bool(getattr(said, "requires_grad", noted.requires_grad))
