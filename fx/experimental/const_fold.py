"""Passes: what depends on no input is computed once (constant folding).

    def forward(self, x):                  once:     folded = self.a * self.b
        return x + self.a * self.b    →    forward:  return x + folded

The calls that can be folded become a graph of their own, which runs at once,
and again before a call of the module if a tensor that it read has changed.

A folded value must be what each call would have computed, and there are three
ways in which it could not be.  The graph itself may write what the call reads,
and somebody may write into the value that is kept: both are asked of
`fx.extra.effects` before anything is folded.  And the weights change when they
are trained or loaded: that is looked at in each call.
"""

from __future__ import annotations

import functools
import operator
import re
import threading
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import chain
from types import ModuleType
from typing import Final, cast

import torch
from torch import nn

from .._symbolic_trace import is_fx_tracing, symbolic_trace
from ..codegen.attributes import copy_attributes, paths_in
from ..extra.effects.effects import classify, must_keep
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node
from ..passes.dialect.common.cse_pass import (
    is_copy,
    known_tensors,
    sharable_calls,
)
from ..passes.tools_common import CALLABLE_NODE_OPS
from ..passes.utils.call_order import kept_in_order, may_write_attributes
from ..passes.utils.common import subgraph_of
from ..torch_private.modules import without_modes
from ..use_def.dotted_path import exists, find
from ..use_def.values import AnyValue

__all__ = [
    "FoldedGraphModule",
    "get_unique_attr_name_in_module",
    "split_const_subgraphs",
]


class FoldedGraphModule(GraphModule):
    """A module with a graph that computes some of its attributes.

    Before a call, that graph runs if it has not yet, or if since then
    something changed that it reads: a tensor was written into, converted or
    replaced, a module changed its mode, autocast, the default dtype or the
    default device was switched.  Other changes, such as writes through `.data`
    and by an optimizer with `fused=True`, do not show, and an Interpreter or a
    trace does not look: call `run_folding` then.

    Threads may call it at the same time.  Autocast is a matter of each thread,
    so values are kept for each state of it: the attribute holds those of the
    state in which `run_folding` ran, and a call in another state runs on a
    *view* of the module, which shares all its attributes but has the values of
    that state.  A hook of the module is given the view then.  (A lock around
    the whole call would make the threads wait for each other.)

    Gradients end at the folded values.

    Attributes:
        const_subgraph_module: computes the folded values; None if there are
            none.
        has_folding_been_run: whether the values are there.
        fx_const_folded_attrs_name: the attribute that holds them: a Parameter,
            or a ParameterList of several.
        device_for_folded_attrs: not used; torch.fx puts numbers there.

    torch.fx: experimental/const_fold.py, FoldedGraphModule; it folds once,
    before the first call, so that an Interpreter which comes earlier finds an
    empty tensor, and weights that are loaded afterwards have no effect on the
    folded values. The names are the same, because back ends take
    `const_subgraph_module` and the attribute, and compile the rest.
    """

    def __init__(
        self,
        root: nn.Module,
        graph: Graph,
        const_subgraph: Graph | None = None,
        fx_const_folded_attrs_name: str | None = None,
        device_for_folded_attrs: str = "cuda",
    ) -> None:
        """Make it of both graphs; `root` has what their nodes name."""
        constants = None
        if const_subgraph is not None:
            constants = GraphModule(root, const_subgraph)
        super().__init__(root, graph)
        self.const_subgraph_module: GraphModule | None = constants
        self.has_folding_been_run: bool = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs
        # Kept alive, so that no id in the stamp comes to mean another object.
        self._folded_from: list[object] = []
        self._stamp: Hashable = None
        self._state: Hashable = None
        self._views = _Views()

    def __call__(self, *args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        """Fold if the folded values are missing or out of date; then run.

        A trace takes the folded values that there are.
        """
        module = self if is_fx_tracing() else self._with_values()
        return super(FoldedGraphModule, module).__call__(*args, **kwargs)

    def delete_all_unused_submodules(self) -> None:
        """Remove the modules that neither graph uses."""
        constants = self.const_subgraph_module
        super().delete_all_unused_submodules()
        self.const_subgraph_module = constants

    def run_folding(self) -> None:
        """Compute the folded values, for the first time or again.

        Raises:
            RuntimeError: a module that is folded is not constant any more, as
                a dropout that was put in training.

        Warns if gradients are wanted, since these end at the values.

        torch.fx: experimental/const_fold.py, FoldedGraphModule.run_folding
        """
        name = self.fx_const_folded_attrs_name
        if self.const_subgraph_module is None or name is None:
            return
        with _FOLDING:
            state, (parts, stamp) = _state(), self._now()
            folded = self._folded()
            old = getattr(self, name, None)
            if old is not None and type(old) is not type(folded):
                delattr(self, name)  # torch refuses a number for a Parameter
            # In one step, because other threads may be running the module.
            setattr(self, name, folded)
            # Last, so that a thread that finds the stamp finds its values.
            self._folded_from, self._stamp, self._state = parts, stamp, state
            self.has_folding_been_run = True

    def _folded(self) -> AnyValue:
        """What `const_subgraph_module` computes now, as it is held."""
        gm: AnyValue = self.const_subgraph_module
        for node in gm.graph.find_nodes(op="call_module"):
            effect = classify(node)
            if effect.kind == "impure":
                raise RuntimeError(
                    f"{node} was folded and is not constant any more: "
                    f"{effect.reason}. Fold the module again as it is now, or "
                    "call eval()."
                )
        recording = torch.is_grad_enabled()
        # What is made in inference mode, or without data, is of no use later.
        with (
            torch.inference_mode(False),
            torch.set_grad_enabled(recording),
            without_modes(),
        ):
            values = gm()
            several = isinstance(gm.graph.output_node().args[0], tuple)
            folded = [_held(v) for v in (values if several else (values,))]
        trainable = any(getattr(v, "requires_grad", False) for v in folded)
        if trainable and recording:
            warnings.warn(_NO_GRADIENT, stacklevel=3)
        return nn.ParameterList(folded) if several else folded[0]

    def _with_values(self) -> FoldedGraphModule:
        """This module, or a view of it, with the values of now."""
        name = self.fx_const_folded_attrs_name
        if self.const_subgraph_module is None or name is None:
            return self
        if not self.has_folding_been_run:
            with _FOLDING:
                if not self.has_folding_been_run:  # nor by another thread
                    self.run_folding()
        state = _state()
        if state == self._state:
            if self._stamp != self._now()[1]:
                self.run_folding()
            return self
        view, _, known = self._views.get(state, (self, [], None))
        parts, stamp = self._now()
        if known != stamp or vars(view) is not vars(self):
            view = _view(self, name, self._folded())
            self._views[state] = view, parts, stamp
        return view

    def _apply(self, *args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        """Convert the tensors, as `half` does; then they are folded again."""
        self.has_folding_been_run = False
        self._views.clear()
        convert: AnyValue = super()._apply
        convert(*args, **kwargs)
        self._share()
        return self

    def _share(self) -> None:
        """Have both graphs fetch one tensor, also where one was replaced.

        Raises:
            RuntimeError: something else than a tensor of its kind is there now,
                as after a parametrization.
        """
        gm = self.const_subgraph_module
        if gm is None:
            return
        for path in paths_in(gm.graph.nodes):
            if exists(self, path) and find(self, path) is not find(gm, path):
                try:
                    copy_attributes(self, gm, (path,))
                except (KeyError, TypeError) as error:
                    raise RuntimeError(
                        f"{path} was folded, and is of another kind now: fold "
                        "the module again as it is"
                    ) from error

    def _now(self) -> tuple[list[object], Hashable]:
        """What the folded values depend on, and a stamp that tells changes.

        Cost: O(attributes, and tensors of modules, that are folded).
        """
        self._share()
        gm = self.const_subgraph_module
        parts = [] if gm is None else [*_parts(gm, gm.graph.nodes)]
        return parts, (*map(_stamp, parts),)


class _Views(dict[Hashable, tuple[FoldedGraphModule, list[object], Hashable]]):
    """State -> the view with its values, what they depend on, and their stamp.

    A copy of the module begins without any.
    """

    def __reduce__(self) -> tuple[type[_Views], tuple[()]]:
        """Neither copy nor pickle what is in it."""
        return _Views, ()


def _view(
    module: FoldedGraphModule, name: str, value: object
) -> FoldedGraphModule:
    """A module with the attributes of another one, and `value` as one of them.

    Both have the same `__dict__`; but the class of the view has a property of
    that name, which Python looks up first.
    """
    cls: AnyValue = type(module)
    members = {name: property(lambda _: value)}
    below: AnyValue = type(cls)(cls.__name__, (cls,), members)
    view: AnyValue = object.__new__(below)
    view.__dict__ = vars(module)
    return cast(FoldedGraphModule, view)


_FOLDING: Final = threading.RLock()
"""Snapshotted while the values of a module are exchanged."""

_AUTOCAST: Final = ("cpu", "cuda", "xpu", "mps", "hpu", "xla", "mtia")
"""Types of devices that have autocast."""


def _state() -> Hashable:
    """What operators depend on besides their inputs, in this thread."""
    casts = [
        torch.is_autocast_enabled(kind) and torch.get_autocast_dtype(kind)
        for kind in _AUTOCAST
    ]
    return torch.get_default_dtype(), torch.get_default_device(), *casts


_NO_GRADIENT: Final = (
    "gradients end at the folded values: train the module that was folded"
)


def _held(value: AnyValue) -> AnyValue:
    """A folded value as it is held: tensors as parameters.

    A parameter moves with the module, and is saved with it.
    """
    if not isinstance(value, torch.Tensor):
        return value
    return nn.Parameter(value.detach().clone(), value.requires_grad)


def _parts(root: nn.Module, nodes: Iterable[Node]) -> Iterator[object]:
    """The modules, tensors and others that nodes call or fetch.

    Modules come with all that is in them.
    """
    for path in paths_in(nodes):
        part = find(root, path)
        yield part
        if isinstance(part, nn.Module):
            yield from chain(part.modules(), part.parameters(), part.buffers())


def _stamp(part: object) -> Hashable:
    """What is another one if a part has changed.

    A write raises the version of a tensor, but for the few that
    `FoldedGraphModule` names.  If `.data` was given another tensor, only the
    pointer shows it.
    """
    if isinstance(part, nn.Module):
        return id(part), part.training
    if not isinstance(part, torch.Tensor):
        return id(part)
    try:
        return id(part), part._version, part.data_ptr()  # noqa: SLF001
    except RuntimeError:  # neither: of inference mode, sparse or fake
        return id(part)


def get_unique_attr_name_in_module(mod_traced: GraphModule, name: str) -> str:
    """A name that can be an attribute, and is not one of a module yet.

    Args:
        mod_traced: the module.
        name: the wish: what cannot be in a name becomes `_`, and a number is
            put behind it, or raised, until the name is free.

    torch.fx: experimental/const_fold.py, get_unique_attr_name_in_module
    """
    name = re.sub("[^0-9a-zA-Z_]+", "_", name)
    name = re.sub("^(?=[0-9]|$)", "_", name)
    while hasattr(mod_traced, name):
        base, _, number = name.rpartition("_")
        if number.isdecimal():
            name = f"{base}_{int(number) + 1}"
        else:
            name = f"{name}_1"
    return name


def split_const_subgraphs(
    module: nn.Module,
    skip_folding_node_fn: Callable[[Node], bool] | None = None,
    device_for_folded_attrs: str = "cpu",
    is_impure_node: Callable[[Node], bool] | None = None,
) -> FoldedGraphModule:
    """Have all calls that depend on attributes alone computed once.

    Folded are calls without an effect whose inputs are attributes or folded.
    Not folded is a call

    - behind one that may change what it reads (a write into an input, a user's
      function), or that reads the statistics of a BatchNorm in training, or
      that is a view of an attribute, if any call may write into attributes;
    - whose value may be written later, or is returned, as the caller may write
      into it: such a value must be new each time;
    - whose value goes to a method of what may not be a tensor: annotate inputs;
    - that takes an attribute which is a module, or is missing.

    If anything is folded, dead code is left out of the new module.

    Args:
        module: traced, if it is not a GraphModule; it is not changed, and the
            new module shares its modules and tensors.
        skip_folding_node_fn: says of an attribute or a call whose inputs are
            constant that it must not be folded. A call of a module is folded
            as a whole, or not if this is said of any node of the graphs in
            it; the modules that those nodes name are in
            `node.graph.owning_module`.
        device_for_folded_attrs: not used; torch.fx has it.
        is_impure_node: says which calls have effects, besides those that
            `effects.classify` knows: they are neither folded nor dead.

    Raises:
        TypeError: the module was folded already.

    Cost: O(nodes + uses), those of the modules called among them.

    torch.fx: experimental/const_fold.py, split_const_subgraphs; it cuts the
    module in two with `split_module`, and puts one half back in line.
    """
    gm = module if isinstance(module, GraphModule) else symbolic_trace(module)
    if getattr(gm, "const_subgraph_module", None) is not None:
        raise TypeError(
            "the module was folded already: fold the one that it was made from"
        )
    impure = is_impure_node or _never
    skip = _at_any_depth(gm, skip_folding_node_fn or _never)
    folded = _foldable(gm.graph, lambda node: impure(node) or skip(node))
    results = [n for n in folded if any(user not in folded for user in n.users)]
    name = get_unique_attr_name_in_module(gm, "_FX_CONST_FOLDED_ATTRS")
    main = _main_graph(gm.graph, folded, results, name)
    root = nn.Module()
    root.training = gm.training
    copy_attributes(gm, root, paths_in(gm.graph.nodes))
    if not results:
        return FoldedGraphModule(root, main)
    empty = nn.Parameter() if len(results) == 1 else nn.ParameterList()
    setattr(root, name, empty)
    main = _without_dead_code(root, main, impure)
    const, _ = subgraph_of([*folded], results, fetches=True)
    new = FoldedGraphModule(root, main, const, name, device_for_folded_attrs)
    new.run_folding()
    return new


def _main_graph(
    old: Graph, folded: dict[Node, None], results: list[Node], name: str
) -> Graph:
    """A graph without the folded calls, which fetches their values."""
    graph = Graph()
    graph.set_codegen(old._codegen)
    inputs = old.find_nodes(op="placeholder")
    values = {node: graph.node_copy(node) for node in inputs}
    fetched = [graph.get_attr(name)] if results else []
    if len(results) > 1:
        fetched = [
            graph.call_function(operator.getitem, (fetched[0], number))
            for number in range(len(results))
        ]
    for node, value in zip(results, fetched, strict=True):
        value.meta = node.meta.copy()
        values[node] = value
    for node in old.nodes:
        is_used = (
            node.op != "get_attr" or not folded.keys() >= node.users.keys()
        )
        if is_used and node not in values and node not in folded:
            values[node] = graph.node_copy(node, values.__getitem__)
    return graph


def _without_dead_code(
    root: nn.Module, graph: Graph, is_impure: Callable[[Node], bool]
) -> Graph:
    """A graph without the calls that nobody needs, if there are any.

    Whether a call of a module has an effect is a question about that module,
    so the graph, which has no owner yet, gets one for the occasion.
    """
    ends = [node for node in graph.nodes if not node.users]
    if all(node.op in ("placeholder", "output") for node in ends):
        return graph
    known = must_keep("drop")
    owned = GraphModule(root, graph).graph
    owned.eliminate_dead_code(lambda node: is_impure(node) or known(node))
    return owned


def _never(node: Node) -> bool:
    """What is said of each node by who has nothing to say."""
    return False


def _at_any_depth(
    root: nn.Module, skip: Callable[[Node], bool]
) -> Callable[[Node], bool]:
    """Whether `skip` is true of a node, or of one inside the module it calls.

    If `relu` must not be folded, that goes for each `relu`, also for one in a
    graph that is called as a module.  Each module is looked at once.
    """

    @functools.cache
    def inside(module: nn.Module) -> bool:
        return any(
            node.op not in ("placeholder", "output") and skip(node)
            for part in module.modules()
            if isinstance(part, GraphModule)
            for node in part.graph.nodes
        )

    def anywhere(node: Node) -> bool:
        called = node.op == "call_module"
        return skip(node) or (called and inside(find(root, str(node.target))))

    return anywhere


def _is_value(root: nn.Module, node: Node) -> bool:
    """Whether a node does not fetch a module, nor what is not there.

    The graph of a control operator is fetched like a weight, and is constant;
    but the call that takes it does not compute with constants.
    """
    if node.op != "get_attr":
        return True
    path = str(node.target)
    return exists(root, path) and not isinstance(
        find(root, path), (nn.Module, ModuleType)
    )


def _foldable(graph: Graph, skip: Callable[[Node], bool]) -> dict[Node, None]:
    """The calls to fold, in order."""
    root: AnyValue = graph.owning_module
    tensors = known_tensors(graph)
    sharable, returned = sharable_calls(graph, tensors)
    # The calls that each must stay behind: if one of them runs in each call of
    # the module, so does this one.
    before: dict[Node, list[Node]] = {}
    for first, second in kept_in_order(graph):
        before.setdefault(second, []).append(first)
    changing = {
        id(part)
        for node in graph.find_nodes(op="call_module")
        if classify(node).kind == "impure"
        for part in _parts(root, (node,))
    }
    # A view of a parameter shows what is written into the parameter later.
    may_write = may_write_attributes(graph)
    shown: set[Node] = set()
    constant: dict[Node, None] = {}
    for node in graph.nodes:
        inputs = node.all_input_nodes
        is_view = not (shown.isdisjoint(inputs) or is_copy(node, tensors))
        if is_view or node.op == "get_attr":
            shown.add(node)
        needs = (*inputs, *before.get(node, ()))
        must_be_new = node in returned or node not in sharable
        if (
            node.op not in ("placeholder", "output")
            and all(needed in constant for needed in needs)
            and _is_value(root, node)
            and not skip(node)
            and classify(node, tensors).kind == "pure"
            and changing.isdisjoint(map(id, _parts(root, (node,))))
            and (node.op == "get_attr" or not must_be_new)
            and not (is_view and may_write)
        ):
            constant[node] = None
    return {n: None for n in constant if n.op in CALLABLE_NODE_OPS}
