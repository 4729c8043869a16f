"""Extra: calls that are recorded whole: leaves, and how their result is known.

A leaf runs on fake tensors, and nothing that it does is recorded.  If it needs
values, it runs on data that are made up: then only the kinds of its results
are known.  Their sizes are taken to be free, and what the program asks about
them is checked where the graph has computed them.

A node cannot hold a cache with fake tensors in it. It holds the tensors, and a
function that makes such a cache of them, calls the method, and gives back what
the cache has anew. What a leaf reads of `training` is its own affair: it reads
that again when the graph runs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import NoneType
from typing import TypeAlias

import torch

from ...node import Node
from ...proxy import TraceError
from ...torch_internals import pytree
from ...torch_internals.fake_tensors import unset_fake_temporarily
from ...torch_internals.symbolic_sizes import DATA_DEPENDENT
from ...usedef.values import Value
from ..watching.fixed import Entered
from . import refusals
from .calls import Call, Function
from .guards import GuardError
from .sizes import plain
from .structures import Apart, Part, is_tensor
from .values import Values

Make: TypeAlias = Callable[[Value, Value], Node]
"""Makes a node of its arguments."""


class Wholes(Values):
    """A tracer that records leaves.

    Attributes:
        shown: what the program gets for an attribute of a module.
        entered: notes who reads the `training` of which module.
    """

    entered: Entered

    def __init__(self) -> None:
        """Begin with fake tensors for parameters."""
        super().__init__()
        self.shown: Callable[[Value], Value] = self.fake

    @contextmanager
    def showing(self, shown: Callable[[Value], Value]) -> Iterator[None]:
        """A block that is not recorded, and reads parameters otherwise.

        Args:
            shown: what an attribute of a module is.
        """
        before, self.shown = self.shown, shown
        try:
            with self.pause():
                yield
        finally:
            self.shown = before

    def call_leaf(self, call: Call, target: Value = None) -> Value:
        """Make the call of a leaf function, and record it if it has tensors.

        Args:
            call: gives the result.
            target: what the node calls, if that is not the function.
        """
        if not call.has_values():
            return call.run()
        target = target or call.function
        make = partial(self.create_node, "call_function", target)
        try:
            return self.record_whole(call, make)
        except NotImplementedError:
            if self.inner is not None:
                raise
            return self._record_with_objects(call)

    def _record_with_objects(self, call: Call) -> Value:
        """Record a call that is given objects, in which there are tensors.

        The node takes these tensors, and gives those in the result and in the
        objects afterwards, which are put into the program's.
        """
        apart = Apart()
        part = apart.take((call.args, call.kwargs))
        given, whole = [*apart.leaves], OnObjects(call.function, part)
        answer, bind = self.run_call(Call(whole, (*given,), {}), is_leaf=True)
        node = self.call(whole, *map(self.create_arg, given))
        leaves = given + bind(node, answer)
        result = apart.put(whole.parts[0], leaves)
        for container in whole.parts[1:]:
            apart.refill(container, leaves)
        return result

    def record_whole(self, call: Call, make: Make) -> Value:
        """Record a call in which nothing else is recorded."""
        written: Value = self.create_arg((call.args, call.kwargs))
        read = {*self.entered.read_training}
        result, bind = self.run_call(call, is_leaf=True)
        self.entered.read_training = read
        return bind(make(*written), result)

    def run_call(
        self, call: Call, *, is_leaf: bool
    ) -> tuple[Value, Callable[[Node, Value], Value]]:
        """Make a call that is recorded as one node; with data, if it must be.

        Some operators have a wrong rule for tensors without data, or none, and
        a leaf may decide by values.

        Returns:
            The result, and what binds it.
        """
        try:
            with self.pause():
                return call.run(), self.bind
        except Exception as error:
            if not is_leaf and isinstance(error, DATA_DEPENDENT):
                raise
            try:
                if not is_leaf and call.has_symbols():
                    with self.pause():  # it wants numbers: these are fixed
                        return call.mapped(plain).run(), self.bind
            except Exception:  # that is not why
                pass
            try:
                with unset_fake_temporarily(), self.showing(self.real):
                    result = call.mapped(self.real).run()
            except Exception:
                raise error from None
            kinds = torch.Tensor, NoneType
            if all(isinstance(x, kinds) for x in pytree.tree_leaves(result)):
                return result, self._bind_real
            message = refusals.data_dependent(error, self.paths)
            raise TraceError(message) from error

    def _bind_real(self, node: Node, value: Value) -> Value:
        """Bind the result of a run with data: all its sizes are unknown."""
        if is_tensor(value):
            with self.pause():
                node, fake = self.sizes.result(value, node)
            return self.bind(node, fake)
        if type(value) not in (tuple, list):
            return value
        return type(value)(
            self._bind_real(self.call(operator.getitem, node, index), item)
            for index, item in enumerate(value)
        )


class OnObjects:
    """A function that is called with objects, and given their tensors.

    Attributes:
        part: what it is called with.
        parts: what it has returned in the first call, and what it has changed.
    """

    def __init__(self, function: Function, part: Part) -> None:
        """Make it of what a call is given."""
        self._function = function
        self.part: Part = part
        self.parts: tuple[Value, ...] = ()
        self.__name__: str = getattr(function, "__name__", "call")

    def __call__(self, *leaves: Value) -> list[Value]:
        """The tensors in the result, then those that objects have anew.

        Raises:
            GuardError: there are others than in the first call.
        """
        apart = Apart()
        args, kwargs = apart.put(self.part, [*leaves])
        before = apart.snapshot()
        apart.leaves += leaves
        result = self._function(*args, **kwargs)
        parts = apart.take(result), *apart.changed(before)
        self.parts = self.parts or parts
        if parts != self.parts:
            raise GuardError(
                f"{self.__name__} has done something else with its objects "
                "than when it was traced. Trace again with such inputs"
            )
        return apart.leaves[len(leaves) :]
