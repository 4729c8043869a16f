"""Extra: watches traces, and warns of what their graphs do not do.

Functions that change what other calls do, or that ask what an object is, do
not see a proxy among their arguments, or must not record it.  So they are
replaced while a trace runs, like those that the trace itself has to see.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import torch
from torch import nn

from ...node import Node
from ...recording import frames
from ...torch_private.pytree import pytree
from ...tracing.patching import TRACES
from ...tracing.state import State
from ...tracing.torch_marks import is_torchs, take_over
from ...tracing.tracer import TraceListener, Tracer, leaf_call, replacing
from ...tracing.wrapping import (
    ORIGINAL,
    QUESTIONS,
    Globals,
    all_wrapped_globals,
    original_of,
)
from ...use_def.values import AnyValue, Args, Function, Kwargs
from .advice import explain
from .asking import warn_unless_a_tensor_agrees
from .captured import Captured
from .changes import (
    Snapshotted,
    StateChange,
    changes,
    held_in,
    put_back_proxies,
    warn_of_changes,
)
from .fixed import Entered, Training
from .flags import FLAGS
from .limits import LIMITS, stand_in
from .modes import APPLY, MODES, Modes
from .roots import warn_of_is, warn_of_unseen
from .switches import (
    PLACES,
    SWITCHES,
    places_of_draws,
    warn_of_draw,
    warn_of_switch,
)


class Watching(TraceListener):
    """Warns, and adds advice to errors.

    Attributes:
        modes: what was recorded in other modes than the first.
        entered: the modules that were traced into.
    """

    modes: Modes
    entered: Entered
    _held: Sequence[Snapshotted] = ()

    def begin(self, tracer: Tracer, state: State) -> None:
        """Warn of what is not traced of the root, and begin to look."""
        self._root, self._held = tracer.root, held_in(state.modules)
        self._graph = tracer.graph
        warn_of_unseen(tracer.root, tracer.traced_func_name)
        self.modes = Modes(tracer.graph)
        self.entered = Entered(state.modules)
        self._captured = Captured(state)

    def given(
        self,
        function: Callable[..., AnyValue],
        defaults: Mapping[str, AnyValue],
    ) -> None:
        """Warn of defaults that the code compares by `is`."""
        warn_of_is(function, defaults)

    def replace(self) -> None:
        """Replace what asks for a trace, switches modes, or changes torch.

        What `torch.fx.wrap` marks is marked for fx, too.
        """
        take_over()
        places: AnyValue = *FLAGS, APPLY, TRAINING
        for place in places:
            TRACES.patch(*place)
        for holder, names in MODES:
            TRACES.patch(holder, names, _mode_switch)
        for holder, names in PLACES:
            TRACES.patch(holder, names, _state_switch)
        for holder, names in places_of_draws():
            TRACES.patch(holder, names, _drawing)
        # Where a library has put a function of its own, which may record the
        # call, that stays.
        limits = [n for n in _LIMITS if id(getattr(torch, n)) in LIMITS]
        TRACES.patch(vars(torch), limits, stand_in)

    def visit(self, namespace: Globals) -> None:
        """Replace what a module has imported, and builtins that ask."""
        snapshot = namespace.copy()
        if not _LOOKED_FOR.isdisjoint(map(id, snapshot.values())):
            switches = [n for n, f in snapshot.items() if id(f) in SWITCHES]
            TRACES.patch(namespace, switches, _state_switch)
            limits = [n for n, f in snapshot.items() if id(f) in LIMITS]
            TRACES.patch(namespace, limits, stand_in)
        TRACES.patch(namespace, QUESTIONS - snapshot.keys(), QUESTION)

    def enter(self, module: nn.Module) -> None:
        """Warn of the hooks of a module that is traced into."""
        self.entered.enter(module)

    def fetched(self, node: Node, value: AnyValue) -> None:
        """Note a tensor into which the graph may write."""
        self._captured.note(node, value)

    def capture(self, state: State) -> None:
        """Remember what the modules hold; marked functions are to warn.

        Not those that `torch.fx.wrap` has marked: the user of a library has
        marked nothing.
        """
        self._held = held_in(state.modules)
        for namespace, name, _ in all_wrapped_globals():
            if not is_torchs(namespace, name):
                TRACES.patch(namespace, [name], _marked)

    def captured(self, *, undo: bool) -> None:
        """Warn of what the code has changed, or undo it."""
        changed = changes(self._held)
        if undo:
            for change in changed:
                change.undo()
        else:
            warn_of_changes(changed, "Write into it instead (copy_)")

    def _put_back(self) -> Sequence[StateChange]:
        """Put back what holds a proxy; all that the code has changed."""
        changed = [*changes(self._held)]
        put_back_proxies(changed)
        return changed

    def end(self) -> None:
        """Warn of what the code did and the graph does not do."""
        changed = self._put_back()
        self.modes.warn()
        for last in [*reversed(self._graph.nodes)][:1]:
            self.entered.note_mode(last, self._root.training)
        self._captured.warn(self._root, changed)

    def failed(self, error: BaseException) -> None:
        """Put back what holds a proxy, and explain the error if that helps."""
        self._put_back()
        explain(error, self._graph)


_LOOKED_FOR: Final = SWITCHES.union(LIMITS)

_LIMITS: Final = [kind.__name__ for kind in LIMITS.values()]


def _watching(trace: object) -> Watching | None:
    """What watches a trace, if the trace is watched."""
    watch = trace._watch if isinstance(trace, Tracer) else None  # noqa: SLF001
    return watch if isinstance(watch, Watching) else None


def _note_reading(module: nn.Module) -> None:
    """Note that the trace of this thread has read `training`."""
    watch = _watching(TRACES.current)
    if watch is not None:
        watch.entered.read_training.add(module)


TRAINING: Final[AnyValue] = (
    nn.Module,
    ["training"],
    lambda _: Training(_note_reading),
)
"""What is replaced to see who reads `training`."""


def _switch_mode(
    trace: Tracer, function: Function, args: Args, kwargs: Kwargs
) -> AnyValue:
    """Answer the switch of a mode in a trace."""
    watch = _watching(trace)
    if watch is not None:
        watch.modes.warn()
    return function(*args, **kwargs)


def _switch_state(
    trace: Tracer, function: Function, args: Args, kwargs: Kwargs
) -> AnyValue:
    """Answer a call that changes torch's state, with a warning."""
    warn_of_switch(function)
    return function(*args, **kwargs)


def _draw(
    trace: Tracer, function: Function, args: Args, kwargs: Kwargs
) -> AnyValue:
    """Answer a call that draws random numbers; the graph does not make it."""
    value = function(*args, **kwargs)
    warn_of_draw(function, value)
    return value


def _answer(
    trace: Tracer, function: Function, args: Args, kwargs: Kwargs
) -> AnyValue:
    """Answer `isinstance` and its like, which ask a proxy about itself.

    The answer is that for the proxy, with a warning if a tensor would give
    another one.
    """
    result = trace._answer_function(function, args, kwargs)  # noqa: SLF001
    warn_unless_a_tensor_agrees(function, args, result)
    return result


_mode_switch: Final = replacing(_switch_mode)
_state_switch: Final = replacing(_switch_state)
_drawing: Final = replacing(_draw)
QUESTION: Final = replacing(_answer)


def _marked(called: Callable[..., AnyValue]) -> Callable[..., AnyValue]:
    """A replacement of a leaf function that warns once in each capture.

    For `symbolic_trace` a marked function is one call; here it runs.  It also
    does what a trace of another thread needs, because a place is patched only
    once.
    """
    original = original_of(called)
    in_trace: Final[Callable[..., AnyValue]] = leaf_call(original)

    @functools.wraps(original)
    def replacement(*args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        trace = TRACES.current
        if trace is None or isinstance(trace, Tracer):  # no capture
            return in_trace(*args, **kwargs)
        leaves = pytree.arg_tree_leaves(*args, **kwargs)
        name = original.__name__
        said = vars(trace).setdefault("said", set())
        if name not in said and any(
            isinstance(leaf, torch.Tensor) for leaf in leaves
        ):
            said.add(name)
            frames.warn(
                f"make_fx records the operators inside of {name}, although "
                "fx.wrap has marked it: a graph of operators has no calls of "
                "Python functions. To keep it as one call, make an operator "
                "of it (torch.library.custom_op), or use fx.symbolic_trace"
            )
        return original(*args, **kwargs)

    vars(replacement)[ORIGINAL] = original
    return replacement
