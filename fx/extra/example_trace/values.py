"""Extra: which node of a trace computes which value of the program.

Tensors are known by their identity, so all that were seen are kept alive.  The
program never gets a parameter itself, but a fake tensor for it, and when it is
first used, that becomes a get_attr node.

A tensor that is unknown is one of a closure, and becomes a constant. But a
fake one that is unknown was made by something that no mode of torch sees, and
the graph would lack a call, so it is refused.

`x.contiguous()` may give back `x` itself, or a copy, which depends on the
strides of the call. If both were known by one tensor, a later write into one
of them would be recorded for the wrong one. So the program gets an alias, and
the graph keeps two nodes.

A constant that the program writes into would be found written by the next
call. Each write counts up a tensor's version, through whichever view it is
made.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import torch
from torch import nn

from ...linked_list.opcodes import Opcode, Target
from ...node import Node, map_arg
from ...proxy import TraceError
from ...recording import frames
from ...torch_internals import pytree
from ...torch_internals.fake_tensors import detached, is_fake
from ...torch_internals.symbolic_sizes import SYMBOLIC, hint_of
from ...torch_internals.transforms import is_wrapped
from ...tracing.tracer import Tracer
from ...usedef.values import Argument, Value
from . import refusals
from .calls import Function
from .sizes import Sizes, plain
from .structures import attributes_of, is_tensor


class Lifting(Protocol):
    """A function that is recorded as a module: see `submodules`."""

    def lift(self, node: Node) -> Node:
        """The node itself, or what stands in the module for one outside."""
        ...


class Values(Tracer):
    """A tracer that knows the nodes of tensors.

    Attributes:
        sizes: the symbols, and what was asked about them.
        node_by_id: id of a tensor → the node that computes it.
        inner: the innermost function that is recorded as a module.
        erasable: nodes that only take a value apart, or fetch one.
        paused: how many calls go on in which nothing is recorded.
        has_ended: whether the program has returned.
    """

    record_stack_traces = True
    sizes: Sizes

    def __init__(self) -> None:
        """Begin without any."""
        super().__init__()
        self.node_by_id: dict[int, Node] = {}
        self.inner: Lifting | None = None
        self.erasable: set[Node] = set()
        self.paused: int = 0
        self.has_ended: bool = False
        self._real_of: dict[int, torch.Tensor] = {}
        self._fake_of: dict[int, torch.Tensor] = {}
        self._alive: list[Value] = []
        self._constants: list[tuple[torch.Tensor, int, str]] = []

    @property
    def paths(self) -> dict[nn.Module, str]:
        """The modules of the root, and their dotted paths."""
        return self.submodule_paths or {}

    @contextmanager
    def pause(self) -> Iterator[None]:
        """A block in which nothing is recorded."""
        self.paused += 1
        try:
            yield
        finally:
            self.paused -= 1

    # -- nodes -------------------------------------------------------------

    def create_node(
        self,
        kind: Opcode,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: Value = None,
    ) -> Node:
        """Add a node; in a submodule, nodes from outside are lifted."""
        if self.inner is not None:
            lifted: Value = map_arg((args, kwargs), self.inner.lift)
            args, kwargs = lifted
        return super().create_node(kind, target, args, kwargs, name, type_expr)

    def call(self, target: Function, *args: Argument, **kwargs: Value) -> Node:
        """Add a call_function node."""
        return self.create_node("call_function", target, args, kwargs)

    def create_arg(self, a: Value) -> Argument:
        """What a node can hold for a value of the program."""
        if is_tensor(a):
            return self.node_of(a)
        if isinstance(a, SYMBOLIC):
            try:
                return self.sizes.node(a)
            except KeyError:  # too rare to be written: fixed, and guarded
                return plain(a)
        if isinstance(a, type):
            return a
        if isinstance(a, torch.Size):
            return tuple(map(self.create_arg, a))
        return super().create_arg(a)

    def node_of(self, tensor: torch.Tensor) -> Node:
        """The node of a tensor; for one of the root, a new get_attr node.

        Raises:
            TraceError: the call that made it was not seen.
        """
        node = self.node_by_id.get(id(tensor))
        if node is not None:
            return node
        real = self._real_of.get(id(tensor), tensor)
        if is_fake(real):
            paths = None if self.has_ended else self.paths
            raise TraceError(refusals.unseen(tensor, paths))
        path, fake = self._tensor_path(real), self.fake(real)
        if path is None:
            path = self._constant_path(real)
            self._constants.append((fake, _version(fake), frames.where()))
        node = self.create_node("get_attr", path, (), {})
        node.meta["val"] = self.noted(fake)
        self.erasable.add(node)
        self.node_by_id |= {id(t): node for t in (tensor, real, fake)}
        return node

    def erase_unused(self) -> None:
        """Erase the nodes that are not used after all."""
        for node in reversed(self.graph.nodes):
            if not node.users and node in self.erasable:
                self.graph.erase_node(node)

    # -- values ------------------------------------------------------------

    def bind(self, node: Node, value: Value) -> Value:
        """Let a node stand for a value, and for the tensors in it.

        A tensor that was there before, such as the one that `contiguous`
        gives back, may be another one at run time.  So the program gets a
        new alias of it.

        Returns:
            The value for the program.
        """
        node.meta["val"] = pytree.tree_map(self.noted, value)
        if is_tensor(value):
            if id(value) in self.node_by_id and not _keeps_identity(node):
                with self.pause():
                    value = value.view_as(value)
            self.node_by_id[id(value)] = node
            self._alive.append(value)
        elif isinstance(value, tuple | list):
            items = [
                self.bind_item(node, operator.getitem, index, item)
                for index, item in enumerate(value)
            ]
            return type(value)(items) if type(value) in (tuple, list) else value
        elif not isinstance(value, nn.Module):
            is_dict = isinstance(value, dict)
            get: Function = operator.getitem if is_dict else getattr
            keyed = value if is_dict else attributes_of(value) or {}
            for key, item in keyed.items():
                self.bind_item(node, get, key, item)
        return value

    def bind_item(
        self, whole: Node, get: Function, key: Value, item: Value
    ) -> Value:
        """Bind what is in a value, if there are tensors in it."""
        if not any(map(is_tensor, pytree.tree_leaves(item))):
            return item
        node = self.call(get, whole, key)
        self.erasable.add(node)
        return self.bind(node, item)

    def bind_leaves(
        self, node: Node, result: Value, leaves: list[torch.Tensor]
    ) -> Value:
        """Bind the tensors of a result, which the node gives as a tuple."""
        if is_tensor(result):
            return self.bind(node, result)
        for index, leaf in enumerate(leaves):
            self.bind_item(node, operator.getitem, index, leaf)
        return result

    def noted(self, value: Value) -> Value:
        """What a node's `meta` keeps of a value: no gradients, no symbols."""
        if is_tensor(value) and is_wrapped(value):
            return None
        if is_fake(value):
            with self.pause():
                return detached(self.sizes.mode, value)
        return hint_of(value)

    def fake(self, tensor: Value) -> Value:
        """The fake tensor for a tensor that is not part of the inputs."""
        if not is_tensor(tensor) or is_fake(tensor) or is_wrapped(tensor):
            return tensor
        if id(tensor) not in self._fake_of:
            with self.pause():
                new = self.sizes.mode.from_tensor(tensor, static_shapes=True)
            self._fake_of[id(tensor)] = new
            self._real_of[id(new)] = tensor
            self._alive += [tensor, new]
        return self._fake_of[id(tensor)]

    def real(self, value: Value) -> Value:
        """Some data such as a fake tensor may have; or a copy of a tensor."""
        if not is_fake(value):
            return value.clone() if is_tensor(value) else hint_of(value)
        if id(value) in self._real_of:
            return self._real_of[id(value)].detach().clone()
        sizes, strides = map(hint_of, value.shape), map(hint_of, value.stride())
        kinds = {"dtype": value.dtype, "device": value.device}
        may_index = not (value.is_floating_point() or value.is_complex())
        may_index &= value.dtype != torch.bool
        new = torch.empty_strided([*sizes], [*strides], **kinds)
        return new.fill_(0 if may_index else 1)

    # -- the root ----------------------------------------------------------

    def path_of(self, value: Value) -> str | None:
        """Where the root has a tensor, or that for which a fake one stands."""
        real: Value = self._real_of.get(id(value), value)
        return self._tensor_path(real) if is_tensor(real) else None

    def check_constants(self) -> None:
        """Raise TraceError if a tensor that no call has made is written to."""
        for fake, version, line in self._constants:
            if _version(fake) != version:
                raise TraceError(refusals.written(line))

    @property
    def stored(self) -> list[str]:
        """The names of what the trace has put on the root."""
        return self._added

    def store(self, prefix: str, value: Value) -> Node:
        """A node that fetches what is put on the root until the trace ends."""
        return self.create_node("get_attr", self._store(prefix, value), (), {})


def _version(tensor: Value) -> int:
    """How often a tensor was written to; 0 where nobody counts."""
    known = not torch.is_inference(tensor)
    return tensor._version if known else 0  # noqa: SLF001


def _keeps_identity(node: Node) -> bool:
    """Whether a call always gives back the tensor that it was given."""
    name = str(node.target)
    in_place = name.endswith("_") and not name.endswith("__")
    return node.op == "call_method" and in_place
