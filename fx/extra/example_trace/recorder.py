"""Extra: records what a program does with tensors that have no data.

While the program runs, `calls` shows us each call of a function or method of
torch.  A call that gives a tensor becomes a node:

    y = F.relu(x) + 1    →    relu = F.relu(x);  add = relu + 1

A call that gives something else, such as `x.dtype`, is a question: `questions`.

torch shows the outermost call only. What `F.multi_head_attention_forward` calls
in its turn is not seen, and so the graph keeps the words of the author. `x + 1`
and `x.add(1)` are the same call to torch, and both are written `x + 1`.

Tensors are known by their identity, so all that were seen are kept alive.  The
program never gets a parameter itself, but a fake tensor for it, and when it is
first used, that becomes a get_attr node. A tensor that is unknown is one of a
closure, and becomes a constant. But a fake one that is unknown was made by
something that torch does not show, and the graph would lack a call, so it is
refused. A constant that the program writes into would be found written by the
next call; each write counts up a tensor's version, through whichever view it
is made.

`x.contiguous()` may give back `x` itself, or a copy, which depends on the
strides of the call. If both were known by one tensor, a later write into one
of them would be recorded for the wrong one. So the program gets an alias, and
the graph keeps two nodes.

A leaf runs on fake tensors, and nothing that it does is recorded.  If it needs
values, it runs on data that are made up: then only the kinds of its results
are known.  Their sizes are dynamic, and what the program asks about them is
checked where the graph has computed them. What a leaf reads of `training` is
its own affair: it reads that again when the graph runs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, TypeAlias

import torch
from torch import nn
from torch.overrides import is_tensor_method_or_property

from ...graph import Graph
from ...linked_list.opcodes import Opcode, Target
from ...node import Node, map_arg
from ...proxy import TraceError
from ...recording import frames
from ...torch_private.fake_tensors import (
    detached,
    is_fake,
    unset_fake_temporarily,
)
from ...torch_private.modules import has_backward_hook
from ...torch_private.pytree import pytree
from ...torch_private.symbolic_sizes import (
    DATA_DEPENDENT,
    SYMBOLIC,
    hint_of,
    specialize,
)
from ...torch_private.watching import is_wrapped
from ...tracing.state import State
from ...tracing.tracer import Tracer
from ...use_def.values import AnyValue, Args, Argument, Function, Kwargs
from ..watching.changes import Snapshotted, held_in
from ..watching.fixed import Entered
from . import errors
from .calls import (
    OPERATORS,
    Call,
    Leaves,
    Lifting,
    dicts_of,
    is_instance,
    run_freely,
    state_of,
)
from .known import Known, made_up
from .questions import MADE_UP, Questions, Sizes
from .structures import (
    Apart,
    OnObjects,
    Part,
    attributes_of,
    check_inputs,
    is_literal,
    is_tensor,
    of_structure,
    structure_of,
)
from .trial import Made, Writes

if TYPE_CHECKING:
    from ...proxy import Proxy

Make: TypeAlias = Callable[[AnyValue, AnyValue], Node]
"""Makes a node of its arguments."""


class Recorder(Tracer):
    """A tracer that records what a program does with fake tensors.

    Attributes:
        sizes: the symbols, and what was asked about them.
        questions: what else was asked.
        node_by_id: id of a tensor → the node that computes it.
        inputs: the placeholders of the program itself.
        inner: the innermost function that is recorded as a module.
        erasable: nodes that only take a value apart, or fetch one.
        paused: how many calls go on in which nothing is recorded.
        has_ended: whether the program has returned.
        ran_on_data: whether a call was run on data that were made up.
        shown: what the program gets for an attribute of a module.
        entered: notes who reads the `training` of which module.
        blocks: what has to be put back when a block ends, by its id.
        refusal: the first error of ours that the program was given.
        failure: what to say of the first call that failed as it would in
            eager, but might not in other calls.
        unsure: nodes whose shape depends on what the root has, or on a leaf.
        held: what the root holds, as it was.
        made: all that has no data.
        known: values that are known nevertheless.
        writes: which tensors of the user are written.
    """

    record_stack_traces = True

    def __init__(self, root: nn.Module, chosen: Tracer, leaves: Leaves) -> None:
        """Begin with an empty graph.

        Args:
            root: has the parameters.
            chosen: says which modules are leaves.
            leaves: what else is.
        """
        super().__init__()
        self._chosen = chosen
        self._whole = leaves
        self.root = root
        self.graph: Graph = Graph(tracer_cls=type(chosen))
        state = self._state = State(root)
        self.held: list[Snapshotted] = held_in(state.modules)
        for m, path in state.modules.items():
            self.held += [(path and f"{path}.", d, {**d}) for d in dicts_of(m)]
        self.submodule_paths = state.modules
        self.tensor_attrs.update(state.constants)
        self.entered: Entered = Entered(state.modules)
        self.node_by_id: dict[int, Node] = {}
        self.inner: Lifting | None = None
        self.inputs: set[Node | None] = set()
        self.erasable: set[Node] = set()
        self.blocks: dict[int, Node] = {}
        self.refusal: Exception | None = None
        self.failure: TraceError | None = None
        self.unsure: set[Node] = set()
        self.paused: int = 0
        self.has_ended: bool = False
        self.ran_on_data: bool = False
        self.shown: Callable[[AnyValue], AnyValue] = self.fake
        self.questions: Questions = Questions(self)
        asking = self.questions.opened, self.questions.refuse
        self.sizes: Sizes = Sizes(self.graph, self.erasable, *asking)
        self._real_of: dict[int, torch.Tensor] = {}
        self._fake_of: dict[int, torch.Tensor] = {}
        self._alive: list[AnyValue] = []
        self.writes: Writes = Writes()
        self.made: Made = Made()
        self.known: Known = Known(self)
        self._leaf_states = {m: state_of(m) for m in state.modules}

    def finish(self) -> None:
        """Forget the root, and what the trace kept alive."""
        self.submodule_paths = self._state = None
        self.entered = Entered({})
        self.sizes.finish()
        for known in (self.node_by_id, self._real_of, self._fake_of):
            known.clear()
        self._alive, self.writes, self.known = [], Writes(), Known(self)
        self.refusal = self.failure = None

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

    @contextmanager
    def showing(self, shown: Callable[[AnyValue], AnyValue]) -> Iterator[None]:
        """Record nothing in a block, and give other values for attributes.

        Args:
            shown: called with the attribute of a module that the program
                reads; what it returns is what the program gets.
        """
        before, self.shown = self.shown, shown
        try:
            with self.pause():
                yield
        finally:
            self.shown = before

    def refuse(self, error: Exception) -> None:
        """Remember an error of ours, which the program may catch."""
        if self.refusal is None:  # its line is known now, and not later
            self.refusal = errors.refusal(error, self.paths)

    # -- nodes -------------------------------------------------------------

    def create_node(
        self,
        kind: Opcode,
        target: Target,
        args: Args,
        kwargs: Kwargs,
        name: str | None = None,
        type_expr: AnyValue = None,
    ) -> Node:
        """Add a node; in a submodule, nodes from outside are lifted."""
        if self.inner is not None:
            lifted: AnyValue = map_arg((args, kwargs), self.inner.lift)
            args, kwargs = lifted
        node = super().create_node(kind, target, args, kwargs, name, type_expr)
        is_roots = kind in ("call_module", "get_attr")
        if is_roots or not self.unsure.isdisjoint(node.all_input_nodes):
            self.unsure.add(node)
        return node

    @contextmanager
    def in_graph(self, graph: Graph) -> Iterator[None]:
        """A block that is recorded into the graph around a submodule's."""
        before = self.graph, self.inner
        try:
            while self.inner is not None and self.graph is not graph:
                self.graph, self.inner, _ = self.inner.outer
            yield
        finally:
            self.graph, self.inner = before

    def call(self, target: Function, *args: Argument, **kwargs: object) -> Node:
        """Add a call_function node."""
        return self.create_node("call_function", target, args, kwargs)

    def create_arg(self, a: AnyValue) -> Argument:
        """What a node can hold for a value of the program."""
        if is_tensor(a):
            return self.node_of(a)
        if isinstance(a, SYMBOLIC):
            try:
                return self.sizes.node(a)
            except KeyError:  # too rare to be written: fixed, and guarded
                return specialize(a)
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
        if (known := self.node_by_id.get(id(tensor))) is not None:
            return known
        real = self._real_of.get(id(tensor), tensor)
        if is_fake(real):
            paths = None if self.has_ended else self.paths
            raise TraceError(errors.unseen(tensor, paths))
        fake, node = self.fake(real), self.fetch(real)
        self.erasable.add(node)
        self.node_by_id |= {id(t): node for t in (tensor, real, fake)}
        return node

    def fetch(self, real: torch.Tensor) -> Node:
        """A new get_attr node for a tensor of the user."""
        path, fake = self._tensor_path(real), self.fake(real)
        if path is None:
            path = self._constant_path(real)
            self.writes.note(real, fake, frames.where())
        node = self.create_node("get_attr", path, (), {})
        node.meta["val"] = self.noted(fake)
        return node

    def erase_unused(self) -> None:
        """Erase the nodes that are not used after all."""
        for node in reversed(self.graph.nodes):
            if not node.users and node in self.erasable:
                self.graph.erase_node(node)

    # -- calls -------------------------------------------------------------

    def see(self, call: Call) -> AnyValue:
        """Make a call of torch, and record it unless it only asks."""
        call, name = call.mapped(self.fake), call.name
        own = MADE_UP.get(call.function) or MADE_UP.get(name)
        if own is not None:
            return own(self, *call.args)
        if self.known.answers(call):
            return self.known.answer(call)
        try:
            written: AnyValue = self.create_arg((call.args, call.kwargs))
        except NotImplementedError:
            if call.has_values():
                raise
            with unset_fake_temporarily(), self.pause():
                return call.run()  # of an array of numpy, say
        is_known = self.known.is_given(call)
        result, bind = self.known.run(call, is_known=is_known)
        gives_tensors = any(map(is_tensor, pytree.tree_leaves(result)))
        self.writes.follow(call, result)
        if gives_tensors or (result is None and name != "__get__"):
            node = self.record(call, *written)
            result = bind(node, result) if gives_tensors else None
            self.known.follow(call, result, node, is_known=is_known)
            return result
        self.questions.ask(call, result)
        return result

    def record(self, call: Call, args: AnyValue, kwargs: AnyValue) -> Node:
        """The node for a call."""
        function, name = call.function, call.name
        make = partial(self.create_node, "call_function")
        if name in ("__get__", "__set__"):
            attribute: AnyValue = function
            given = args[0], attribute.__self__.__name__, *args[1:]
            if name == "__get__":
                return make(getattr, given[:2], {})
            return make(setattr, given, {})
        is_method = getattr(torch.Tensor, name, None) is function
        if not is_method and not is_tensor_method_or_property(function):
            return make(function, args, kwargs)
        target, count, is_reflected = OPERATORS.get(name, (None, 0, False))
        if target is not None and len(args) == count and not kwargs:
            return make(target, args[::-1] if is_reflected else args, {})
        return self.create_node("call_method", name, args, kwargs)

    # -- leaves ------------------------------------------------------------

    def getattr(
        self,
        attr: str,
        attr_val: AnyValue,
        parameter_proxy_cache: dict[str, Proxy],
    ) -> AnyValue:
        """What the program gets for an attribute of a module.

        For a tensor of the root that is its fake tensor.  If the attribute is
        None, a guard notes so: a module may have a tensor there later.
        """
        if attr_val is None and not self.paused:
            told = f"{attr} of a module was None"
            self.questions.facts.setdefault(told, frames.where())
        return self.shown(attr_val)

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Whether a call is recorded as one node, as the chosen tracer says.

        If the program has changed the module, the graph would call another
        one, and so it is traced through; with a backward hook it cannot be.

        Raises:
            TraceError: it was changed, and cannot be traced through.
        """
        is_whole = isinstance(m, torch.jit.ScriptModule) or has_backward_hook(m)
        if not (
            is_whole
            or m in self._whole.modules
            or self._chosen.is_leaf_module(m, module_qualified_name)
        ):
            return False
        is_changed = any(self._is_changed(child) for child in m.modules())
        if is_changed and is_whole:
            raise TraceError(errors.leaf_changed(module_qualified_name))
        return not is_changed

    def _is_changed(self, m: nn.Module) -> bool:
        """Whether a module is not as it was found, or as its calls left it."""
        return self._leaf_states.get(m) != state_of(m)

    def call_module(
        self, m: nn.Module, forward: Function, args: Args, kwargs: Kwargs
    ) -> AnyValue:
        """Record the call of a leaf, or run another module."""
        if self.paused or not self.paths.get(m):
            return forward(*args, **kwargs)
        return super().call_module(m, forward, args, kwargs)

    def _call_leaf(
        self, path: str, forward: Function, args: Args, kwargs: Kwargs
    ) -> AnyValue:
        """Run a leaf module, and record its call as one node."""
        make = partial(self.create_node, "call_module", path)
        try:
            result = self.record_leaf(Call(forward, args, kwargs), make)
        except errors.REFUSALS as error:
            self.refuse(error)
            raise
        for module in self.root.get_submodule(path).modules():
            self._leaf_states[module] = state_of(module)
        return result

    def _visit_forward(self, module: nn.Module) -> None:
        """Do nothing: a fake tensor answers all questions itself."""

    def _answer_function(
        self, function: Function, args: Args, kwargs: Kwargs
    ) -> AnyValue:
        """Answer a builtin that asks what an object is."""
        answer = is_instance if function is isinstance else function
        return answer(*args, **kwargs)

    def call_function(self, call: Call, target: AnyValue = None) -> AnyValue:
        """Make the call of a leaf function, and record it if it has tensors.

        Args:
            call: gives the result.
            target: what the node calls, if that is not the function.
        """
        if not call.has_values():
            return call.run()
        apart, target = Apart(), target or call.function
        part = apart.flatten((call.args, call.kwargs), call.name or "call")
        make = partial(self.create_node, "call_function", target)
        try:
            if self.inner is not None or is_literal(part):
                return self.record_leaf(call, make)
        except NotImplementedError:
            if self.inner is not None:
                raise
        return self._record_with_objects(call, apart, part)

    def _record_with_objects(
        self, call: Call, apart: Apart, part: Part
    ) -> AnyValue:
        """Record a call that is given objects, in which there are tensors.

        The node takes these tensors, and gives those in the result and in the
        objects afterwards, which are put into the program's.
        """
        check_inputs(apart)
        given, whole = [*apart.leaves], OnObjects(call.function, part)
        answer, bind = self.run_call(Call(whole, (*given,), {}), is_leaf=True)
        node = self.call(whole, *map(self.create_arg, given))
        leaves = given + bind(node, answer)
        result = apart.unflatten(whole.parts[0], leaves)
        for container in whole.parts[1:]:
            apart.refill(container, leaves)
        return result

    def record_leaf(self, call: Call, make: Make) -> AnyValue:
        """Make the call of a leaf, and record it as one node."""
        written: AnyValue = self.create_arg((call.args, call.kwargs))
        read, given = {*self.entered.read_training}, Apart()
        given.flatten((call.args, call.kwargs))
        before = given.snapshot()
        result, bind = self.run_call(call, is_leaf=True)
        self.entered.read_training = read
        if given.changed(before):
            raise TraceError(errors.changed(call.name))
        node = make(*written)
        if not is_tensor(result) and result is not None:
            opened = self.questions.opened()
            node = self.call(of_structure, node, structure_of(result), *opened)
        self.unsure.add(node)
        return bind(node, result)

    def run_call(
        self, call: Call, *, is_leaf: bool
    ) -> tuple[AnyValue, Callable[[Node, AnyValue], AnyValue]]:
        """Make a call that is recorded as one node; with data, if it must be.

        Some operators have a wrong rule for tensors without data, or none, and
        a leaf may decide by values, or give as much as they say.

        Returns:
            The result, and what binds it.
        """
        try:
            with self.pause(), self.sizes.inside(whole=is_leaf) as selects:
                result = run_freely(call)
                if is_leaf and any(map(selects, pytree.tree_leaves(result))):
                    raise DATA_DEPENDENT[-1](call.function)  # of such a size
            return result, self.bind
        except Exception as error:
            if not is_leaf and isinstance(error, DATA_DEPENDENT):
                raise
            try:
                if not is_leaf and call.has_symbols():
                    with self.pause():  # it wants numbers: these are fixed
                        return call.mapped(specialize).run(), self.bind
            except Exception:  # that is not why
                pass
            try:
                self.ran_on_data = True
                with unset_fake_temporarily(), self.showing(self.real):
                    result = call.mapped(self.real).run()
            except Exception as found:
                if self.failure is None and self._may_vary(call):
                    self.failure = TraceError(errors.caught(error))
                if isinstance(error, errors.REFUSALS):
                    raise error from None
                raise found from None  # what eager raises
            kinds = torch.Tensor, NoneType
            if all(isinstance(x, kinds) for x in pytree.tree_leaves(result)):
                return result, self._bind_real
            # Whole already: who calls it, and decides by it, can be the leaf.
            message = errors.data_dependent(None, self.paths)
            raise TraceError(message) from error

    def _may_vary(self, call: Call) -> bool:
        """Whether a call may be given other shapes when the graph runs."""
        leaves = pytree.tree_leaves((call.args, call.kwargs))
        for leaf in filter(is_tensor, leaves[:]):
            leaves += leaf.shape
            if self.node_by_id.get(id(leaf)) in self.unsure:
                return True
        return any(isinstance(leaf, SYMBOLIC) for leaf in leaves)

    def _bind_real(self, node: Node, value: AnyValue) -> AnyValue:
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

    # -- values ------------------------------------------------------------

    def bind(self, node: Node, value: AnyValue) -> AnyValue:
        """Let a node stand for a value, and for the tensors in it.

        A tensor that was there before, such as the one that `contiguous`
        gives back, may be another one at run time.  So the program gets a
        new alias of it.

        Returns:
            The value for the program.
        """
        node.meta["val"] = pytree.tree_map(self.noted, value)
        if is_tensor(value):
            with self.pause():
                if self.sizes.name(node, value):
                    self.unsure.add(node)
            known = id(value) in self.node_by_id
            if known and not self.questions.keeps_identity(node):
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
            keyed = value if is_dict else attributes_of(value)
            for key, item in keyed.items():
                self.bind_item(node, get, key, item)
        return value

    def bind_item(
        self, whole: Node, get: Function, key: AnyValue, item: AnyValue
    ) -> AnyValue:
        """Bind what is in a value, if there are tensors in it."""
        if not any(map(is_tensor, pytree.tree_leaves(item))):
            return item
        node = self.call(get, whole, key)
        self.erasable.add(node)
        return self.bind(node, item)

    def bind_leaves(
        self, node: Node, result: AnyValue, leaves: list[torch.Tensor]
    ) -> AnyValue:
        """Bind the tensors of a result, which the node gives as a tuple."""
        if is_tensor(result):
            return self.bind(node, result)
        for index, leaf in enumerate(leaves):
            self.bind_item(node, operator.getitem, index, leaf)
        return result

    def noted(self, value: AnyValue) -> AnyValue:
        """What a node's `meta` keeps of a value: no gradients, no symbols."""
        if is_tensor(value) and is_wrapped(value):
            return None
        if is_fake(value):
            with self.pause(), self.made.excepting():
                return detached(self.sizes.mode, value)
        return hint_of(value)

    def fake(self, tensor: AnyValue) -> AnyValue:
        """The fake tensor for a tensor that is not part of the inputs."""
        if not is_tensor(tensor) or is_fake(tensor) or is_wrapped(tensor):
            return tensor
        if id(tensor) not in self._fake_of:
            with self.pause():
                new = self.sizes.mode.from_tensor(tensor, static_shapes=True)
                self.writes.note(tensor, new)
                self.known.begin(new, tensor)
            self._fake_of[id(tensor)] = new
            self._real_of[id(new)] = tensor
            self._alive += [tensor, new]
        return self._fake_of[id(tensor)]

    def real(self, value: AnyValue) -> AnyValue:
        """Some data such as a fake tensor may have; or a copy of a tensor."""
        if not is_fake(value):
            return value.clone() if is_tensor(value) else hint_of(value)
        if id(value) in self._real_of:
            return self._real_of[id(value)].detach().clone()
        return made_up(value)

    # -- the root ----------------------------------------------------------

    def path_of(self, value: AnyValue) -> str | None:
        """Where the root has a tensor, or that for which a fake one stands."""
        real: AnyValue = self._real_of.get(id(value), value)
        return self._tensor_path(real) if is_tensor(real) else None

    @property
    def stored(self) -> list[str]:
        """The names of what the trace has put on the root."""
        return self._added

    def store(self, prefix: str, value: AnyValue) -> Node:
        """A node that fetches what is put on the root until the trace ends."""
        return self.create_node("get_attr", self._store(prefix, value), (), {})
