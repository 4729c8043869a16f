"""Extra: calls of torch that a trace records in a way of their own.

`PLACES` lists what is replaced while a program is traced on an example, and the
function that is given the recorder and the call.

Blocks, in which calls mean something else,

    with torch.no_grad():        →    mode = torch.is_grad_enabled()
        y = x * 2                     _set_grad_enabled(False)
                                      y = x * 2
                                      _set_grad_enabled(mode)

are recorded as torch's own compilers write them: a call when a block begins and
one when it ends, which puts back what was there at run time. If the mode of the
trace were written into the graph, a graph that was traced under `no_grad` would
switch gradients off for good. Torch keeps the old mode in the block itself, so
a block that is begun a second time inside of itself forgets the first; the
graph does the same.

Functions that a program hands to torch are recorded as modules:

    checkpoint(block, x)    →    checkpoint(self._traced0, x, weight)
    torch.vmap(row)(x)      →    vmap = torch.vmap(self._traced0, (0, None))
                                 call = vmap(x, y)

What such a function does has a graph of its own.  Tensors and sizes that it has
from outside become inputs of it: they are lifted. A checkpointed function runs
twice, once more in the backward pass. If the trace went through it, the graph
would give the same values, but would keep all that it computes. In
`torch.vmap`, torch runs the function on tensors that have one dimension less,
and what is recorded meanwhile is about these. The branches of `torch.cond` must
have the same inputs, so each gets placeholders for what only the other uses.

The hash of a size needs a number. When the program asks for it, as a key of a
dict does, a guard fixes the size; torch itself still gets the symbol.
"""

from __future__ import annotations

import copy
import functools
import operator
import re
import sys
from collections.abc import Callable
from typing import Final

import torch
from torch.autograd.function import BackwardCFunction
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from ...graph import Graph
from ...graph_module import GraphModule
from ...node import Node
from ...proxy import TraceError
from ...recording import frames
from ...torch_private.fake_tensors import FakeTensor
from ...torch_private.modules import (
    INFERENCE_MODE,
    enter_autocast,
    exit_autocast,
    switch_gradients,
)
from ...torch_private.pytree import pytree
from ...torch_private.symbolic_sizes import SYMBOLIC, specialize
from ...torch_private.watching import (
    VMAP,
    autocast_arguments,
    broadcast_to_and_flatten,
)
from ...tracing.patching import TRACES
from ...tracing.wrapping import original_of
from ...use_def.values import AnyValue, Argument
from ..watching.switches import PLACES as SWITCHES
from . import errors
from .calls import Call, Lifting, current, handing_to
from .questions import MODES, SETTINGS
from .recorder import Recorder
from .structures import is_tensor

_OF_GRADIENTS: Final = (
    *(torch.no_grad, torch.enable_grad, torch.set_grad_enabled),
)


def patch() -> None:
    """Replace what the functions below record, and who asks of modes."""
    for block in (torch.autocast, torch.inference_mode, *_OF_GRADIENTS):
        # This one switches when it is made, if it is a block at all.
        begin = "__init__" if block is torch.set_grad_enabled else "__enter__"
        TRACES.patch(block, [begin], handing_to(_enter))
        TRACES.patch(block, ["__exit__"], handing_to(_leave))
    TRACES.patch(FakeTensor, ["device"], _asked_device)
    for number in SYMBOLIC[:2]:
        methods = vars(number).keys() & _OF_NUMBERS
        TRACES.patch(number, methods, handing_to(_ask_number))
    for holder, functions in SWITCHES:
        changing = [name for name in functions if _CHANGES.search(name)]
        TRACES.patch(holder, changing, handing_to(_refuse_change))
    for owner in {type(held) for held, _ in SETTINGS.values()}:
        for name in ("__get__", "__getattr__"):
            if name in vars(owner):
                TRACES.patch(owner, [name], handing_to(_ask_setting))
    attention = "scaled_dot_product_attention"
    TRACES.patch(vars(functional), [attention], handing_to(_take_bools))
    with_backward: AnyValue = BackwardCFunction
    TRACES.patch(with_backward, ["__init__"], lambda _: _seen_context)
    scripted: AnyValue = torch.jit.ScriptFunction
    TRACES.patch(scripted, ["__call__"], handing_to(_call_object))
    TRACES.patch(*VMAP, handing_to(_vmap))


_OF_NUMBERS: Final = frozenset(("__hash__", "__repr__", "__str__"))
"""Methods for which a number has to be known, or written."""

_CHANGES: Final = re.compile(r"seed|rng|set_default|dual|deterministic_algo")
"""Names of functions that change what later calls compute."""


# -- blocks --------------------------------------------------------------------


def _enter(recorder: Recorder, call: Call) -> AnyValue:
    """Record that a block begins, and let it."""
    block = call.args[0]
    # As torch does, each time anew for a block that is begun again.
    node = recorder.blocks[id(block)] = _mode(recorder, block)
    recorder.questions.open[id(block)] = node
    with recorder.pause():
        result = call.run()
    if isinstance(block, _OF_GRADIENTS):
        recorder.call(switch_gradients, torch.is_grad_enabled())
    return result


def _mode(recorder: Recorder, block: AnyValue) -> Node:
    """A node for what has to be put back when a block ends."""
    if isinstance(block, torch.autocast):
        return recorder.call(enter_autocast, *autocast_arguments(block))
    if isinstance(block, torch.inference_mode):
        return recorder.call(INFERENCE_MODE[0], block.mode)
    return recorder.call(original_of(torch.is_grad_enabled))


def _leave(recorder: Recorder, call: Call) -> AnyValue:
    """Record that it ends, and let it."""
    block, target = call.args[0], INFERENCE_MODE[1]
    before: AnyValue = recorder.blocks.get(id(block))
    if isinstance(block, torch.autocast):
        target = exit_autocast
    elif isinstance(block, _OF_GRADIENTS):
        target = switch_gradients
    recorder.questions.open.pop(id(block), None)
    recorder.call(target, block.prev if before is None else before)
    with recorder.pause():
        return call.run()


# -- questions and changes -----------------------------------------------------


def _ask_mode(recorder: Recorder, call: Call) -> AnyValue:
    """Note that the program, and not torch, asks for a mode.

    A block of autocast for which it gives no dtype takes that of the block
    around it, so then the program has asked, too.
    """
    answer, asking = call.run(), sys._getframe(2)
    is_default = (
        call.name == "get_autocast_dtype" and asking.f_code is _AUTOCAST
    )
    if is_default or frames.is_user(asking):
        recorder.questions.ask_mode(call, answer)
    return answer


_AUTOCAST: Final = torch.autocast.__init__.__code__
"""What makes a block of autocast."""


def _ask_setting(recorder: Recorder, call: Call) -> AnyValue:
    """Note that the program asks for an attribute of `torch.backends`."""
    answer, (held, name, *_) = call.run(), call.args
    if id(held) in SETTINGS and frames.is_user(sys._getframe(2)):
        text = SETTINGS[id(held)][1]
        text += f".{name}" * (call.name == "__getattr__")
        recorder.questions.ask_setting(text, answer)
    return answer


def _ask_device(recorder: Recorder, call: Call) -> AnyValue:
    """Note that the program asks for a device."""
    answer = call.run()
    get: AnyValue = vars(torch.Tensor.__base__)["device"].__get__
    recorder.questions.ask(Call(get, call.args, {}), answer)
    return answer


def _asked_device(was: AnyValue) -> AnyValue:
    """The property of a tensor without data, which torch does not show."""
    return property(handing_to(_ask_device)(was.fget))


def _refuse_change(recorder: Recorder, call: Call) -> AnyValue:
    """Raise TraceError if the program changes torch for what follows."""
    if not frames.is_user(sys._getframe(2)):
        return call.run()
    raise TraceError(
        f"the program calls {call.name}, which changes what later calls of "
        f"torch compute, and no graph says so\n  in\n  {frames.where()}\n"
        "  Call it around the graph"
    )


def _take_bools(recorder: Recorder, call: Call) -> AnyValue:
    """Make a call that refuses a truth value computed of sizes: fix it."""

    def fixed(value: AnyValue) -> AnyValue:
        return specialize(value) if isinstance(value, torch.SymBool) else value

    return call.mapped(fixed).run()


def _ask_number(recorder: Recorder, call: Call) -> AnyValue:
    """Answer the program's question for the hash or the text of a size."""
    if not frames.is_user(sys._getframe(2)):
        return call.run()
    if call.name == "__hash__":
        return hash(specialize(call.args[0]))
    return recorder.questions.text_of_size(call.args[0])


def _power(recorder: Recorder, call: Call) -> AnyValue:
    """Answer pow(a, b, c), which Python asks of `a` alone."""
    symbols = [x for x in call.args if isinstance(x, SYMBOLIC)]
    if not symbols or call.kwargs:
        return call.run()
    return symbols[0].node.shape_env.operate("{} ** {}", *call.args)


def _length(recorder: Recorder, call: Call) -> AnyValue:
    """Answer len(x), of which Python would make an int, and fix the size."""
    if not call.args or not is_tensor(call.args[0]):
        return call.run()
    with recorder.pause():
        has_rows = call.args[0].dim() > 0
    return call.args[0].size(0) if has_rows else call.run()


def _copy(recorder: Recorder, call: Call) -> AnyValue:
    """Record copy.copy of a tensor, which gives an alias that is detached."""
    if not is_tensor(call.args[0]):
        return call.run()
    tensor = call.args[0]
    with recorder.pause():
        new = tensor.detach().requires_grad_(tensor.requires_grad)
    node = recorder.call(call.function, recorder.create_arg(tensor))
    return recorder.bind(node, new)


def _call_object(recorder: Recorder, call: Call) -> AnyValue:
    """Record the call of an object, such as a scripted function."""
    called, *args = call.args
    function = functools.partial(call.function, called)
    return recorder.call_function(
        Call(function, tuple(args), call.kwargs), called
    )


def _seen_context(ctx: AnyValue) -> None:
    """Make the context of a torch.autograd.Function, and keep it whole.

    Programs bind `apply` to names of their own.  It makes a context first, and
    then looks up `forward`, which takes the context or not.
    """
    if current() is None:
        return
    cls: AnyValue = ctx._forward_cls  # noqa: SLF001
    owner = next(kind for kind in cls.__mro__ if "forward" in vars(kind))
    base = torch.autograd.Function
    first = int(cls.setup_context is base.setup_context)

    def forward(recorder: Recorder, call: Call) -> AnyValue:
        function = functools.partial(call.function, *call.args[:first])
        inner = Call(function, call.args[first:], call.kwargs)
        return recorder.call_function(inner, cls.apply)

    TRACES.patch(owner, ["forward"], handing_to(forward))


# -- functions of functions ----------------------------------------------------


class Submodule:
    """A function that is being recorded as a module.

    Attributes:
        graph: what it does.
        lifted: node outside → the placeholder for it.
        leaves: the tensors that it has returned.
    """

    def __init__(self, recorder: Recorder) -> None:
        """Begin with an empty graph."""
        self._recorder = recorder
        self.outer: tuple[Graph, Lifting | None, dict[int, Node]] = (
            *(recorder.graph, recorder.inner),
            {**recorder.node_by_id},
        )
        self.graph: Graph = Graph(tracer_cls=recorder.graph._tracer_cls)
        self.lifted: dict[Node, Node] = {}
        self.leaves: list[torch.Tensor] = []
        self._last: Node | None = None

    def record(self, function: Callable[[], AnyValue]) -> AnyValue:
        """Run a function that is recorded into the graph; its result."""
        recorder = self._recorder
        recorder.graph, recorder.inner = self.graph, self
        try:
            result = function()
            leaves = pytree.tree_leaves(result)
            self.leaves = [leaf for leaf in leaves if is_tensor(leaf)]
            nodes = [*map(recorder.create_arg, self.leaves)]
            value: Argument = nodes[0] if is_tensor(result) else tuple(nodes)
            recorder.create_node("output", "output", (value,), {})
            recorder.erase_unused()
            return result
        finally:
            recorder.graph, recorder.inner, recorder.node_by_id = self.outer

    def placeholder(self, name: str) -> Node:
        """A new input, behind those that there are."""
        graph, last = self.graph, self._last
        with graph.inserting_after(last) if last else graph.inserting_before():
            self._last = new = graph.placeholder(name)
        new.target = new.name
        self._recorder.unsure.add(new)
        return new

    def lift(self, node: Node) -> Node:
        """The node itself, or the placeholder for one from outside."""
        if node.graph is self.graph:
            return node
        if self.outer[1] is not None:
            node = self.outer[1].lift(node)
        if node not in self.lifted:
            self.lifted[node] = new = self.placeholder(node.name)
            new.meta.update(node.meta)
        return self.lifted[node]

    def stored(self) -> Node:
        """A node, outside, that fetches the module."""
        with self._recorder.showing(lambda value: value):
            module = GraphModule(self._recorder.root, self.graph)
        return self._recorder.store("_traced", module)


_OPTIONS: Final = frozenset(
    "use_reentrant context_fn determinism_check debug early_stop "
    "preserve_rng_state".split()
)
"""The keywords of `checkpoint` that are not for the function."""


def _checkpoint(recorder: Recorder, call: Call) -> AnyValue:
    """Record a checkpointed function as a module."""
    given = {**call.kwargs}
    options = {key: given.pop(key) for key in _OPTIONS & given.keys()}
    inner, function = Submodule(recorder), call.args[0]
    result = inner.record(lambda: function(*call.args[1:], **given))
    node = recorder.call(
        call.function, inner.stored(), *inner.lifted, **options
    )
    return recorder.bind_leaves(node, result, inner.leaves)


def _cond(recorder: Recorder, call: Call) -> AnyValue:
    """Record the branches of torch.cond as modules."""
    names = "pred", "true_fn", "false_fn", "operands"
    given = {**dict(zip(names, call.args, strict=False)), **call.kwargs}
    operands = given.get("operands", ())
    one, two = Submodule(recorder), Submodule(recorder)
    result = one.record(lambda: given["true_fn"](*operands))
    for node in one.lifted:  # so that both have the same inputs, in one order
        two.lift(node)
    two.record(lambda: given["false_fn"](*operands))
    with recorder.pause():
        if [*map(_kind, one.leaves)] != [*map(_kind, two.leaves)]:
            raise TraceError(errors.branches())
    for node in two.lifted:
        one.lift(node)
    pred = recorder.create_arg(given["pred"])
    modules = one.stored(), two.stored()
    node = recorder.call(call.function, pred, *modules, tuple(one.lifted))
    return recorder.bind_leaves(node, result, one.leaves)


def _kind(tensor: torch.Tensor) -> tuple[AnyValue, ...]:
    """What two tensors have in common if one may stand for the other."""
    return tensor.dtype, tensor.device, *tensor.shape


def _vmap(recorder: Recorder, call: Call) -> AnyValue:
    """Record a function that torch.vmap calls as a module."""
    function, in_dims, out_dims, randomness, chunk_size, *given = call.args
    dims = _flat_dims(in_dims, tuple(given)) + _flat_dims(0, call.kwargs)
    outside = filter(is_tensor, pytree.tree_leaves((given, call.kwargs)))
    rows = [
        recorder.create_arg(tensor)
        for tensor, dim in zip(outside, dims, strict=True)
        if dim is not None
    ]
    inner = Submodule(recorder)

    def recorded(*args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        before, recorder.paused = recorder.paused, 0
        try:
            inside = filter(is_tensor, pytree.tree_leaves((args, kwargs)))
            for row, dim in zip(inside, dims, strict=True):
                if dim is not None:
                    recorder.bind(inner.placeholder("row"), row)
            return inner.record(lambda: function(*args, **kwargs))
        finally:
            recorder.paused = before

    with recorder.pause():
        result = call.function(recorded, *call.args[1:], **call.kwargs)
    mapped = recorder.call(
        torch.vmap,
        inner.stored(),
        in_dims=(
            *(d for d in dims if d is not None),
            *[None] * len(inner.lifted),
        ),
        out_dims=out_dims,
        randomness=randomness,
        chunk_size=chunk_size,
    )
    node = recorder.call(operator.call, mapped, *rows, *inner.lifted)
    leaves = [leaf for leaf in pytree.tree_leaves(result) if is_tensor(leaf)]
    return recorder.bind_leaves(node, result, leaves)


def _flat_dims(dims: AnyValue, value: AnyValue) -> list[AnyValue]:
    """The dimension that vmap takes away, for each tensor in its inputs.

    Args:
        dims: as the user gave them.
        value: the inputs.
    """
    leaves, spec = pytree.tree_flatten(value)
    spread: AnyValue = broadcast_to_and_flatten(dims, spec)
    pairs = zip(leaves, spread, strict=True)
    return [dim for leaf, dim in pairs if is_tensor(leaf)]


FUNCTIONS: Final[list[tuple[AnyValue, AnyValue]]] = [
    *((function, handing_to(_ask_mode)) for function in MODES),
    (checkpoint, handing_to(_checkpoint)),
    (torch.cond, handing_to(_cond)),
    (copy.copy, handing_to(_copy)),
]
"""Functions, by whatever name they are called, and makers of replacements."""


BUILTINS: Final[dict[str, AnyValue]] = {
    "pow": functools.cache(handing_to(_power)),
    "len": functools.cache(handing_to(_length)),
}
"""Names, and makers of replacements, the same for all modules."""
