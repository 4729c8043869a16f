"""Extra: `fx.trace`, the graph of what a program does on an example.

    gm = fx.trace(model, x, mask=mask)
    gm.guards                             # what that relied on
    gm(x, mask=mask)                      # checked, and then as ever

A symbolic trace does not know values.  But nearly everything that Python asks
of a tensor (sizes, dtype, device) is known from one example, and nothing has
to be computed for that. So the program runs on tensors without data, and each
condition that it tested has to hold whenever the graph is called.

The trace is the `Recorder`, a `Tracer`, so that it shares the replacements of
`nn.Module.__call__` with symbolic traces of other threads. What the program
assigns to its modules is put back in every case, since fake tensors must not
stay in a user's model. Numbers of Python's `random` and of numpy would be
drawn once and be the same in each call; the states of their generators tell
whether the program has drawn some.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, Final

import torch
from torch import nn

from ...graph_module import GraphModule
from ...node import Node
from ...proxy import TraceError
from ...recording import frames
from ...torch_private.fake_tensors import is_fake, python_dispatcher
from ...torch_private.modules import has_backward_hook
from ...torch_private.recurrent import recurrent
from ...torch_private.symbolic_sizes import (
    DATA_DEPENDENT,
    UNSUPPORTED,
    arithmetic,
    settings,
)
from ...tracing.patching import TRACES
from ...tracing.tracer import Root, Tracer, _module_call, _module_getattr
from ...use_def.values import AnyValue, Args, Kwargs
from ..watching.changes import changes
from ..watching.fixed import FIXED_MODE
from ..watching.flags import FLAGS
from ..watching.watching import QUESTION, TRAINING, Watching
from . import errors, handlers, trial
from .calls import CallMode, Leaf, Leaves, handing_to, places_of
from .dynamic import check_free
from .example import Example
from .guarded_code import GuardedCodeGen, Outputs
from .guards import Guards
from .recorder import Recorder
from .structures import (
    Apart,
    Constant,
    Container,
    Part,
    TensorLeaf,
    check_results,
    walk,
)

if TYPE_CHECKING:

    class Traced(GraphModule):
        """A GraphModule, of whose guards a type checker knows the class."""

        guards: ClassVar[Guards]
else:
    Traced = GraphModule


def trace(
    root: Root,
    /,
    *args: AnyValue,
    dynamic: AnyValue = None,
    leaves: Iterable[Leaf] = (),
    tracer: Tracer | None = None,
    check: bool = True,
    **kwargs: AnyValue,
) -> Traced:
    """Trace a module or function by running it on an example.

    The program runs on tensors without data, and each call of torch is
    recorded, modules of torch.nn as one node.  What Python asked about the
    inputs is in `gm.guards`, and each call of the result checks that the
    answers are the same.  Then the graph is tried on the example.

    Args:
        root: a module, or a function.
        *args: an example of its inputs; nested ones are taken apart.
        dynamic: which sizes of the inputs may vary: True or None for all,
            False for none; or, by the name of a parameter, what
            `torch.export.export` takes as `dynamic_shapes`. A size that is
            named there must stay free. So must a number, an int or a float,
            that is given True.
        leaves: functions, methods and modules, or their dotted paths, whose
            calls are recorded as one node each.
        tracer: says by `is_leaf_module` which other modules are leaves.
        check: whether model and graph are run once more each on the example,
            and compared: results, what they write, gradients of the inputs.
            Tensors, attributes and random numbers are as before afterwards;
            what else the program does, such as printing, it does once more.
            Leave it out for a model that is too large to be run twice.
        **kwargs: the rest of the example, by name.

    Returns:
        A module with the parameters of the root, which it shares.

    Raises:
        TraceError: the program decides by the values of tensors, or does what
            no graph can, or keeps a tensor of the trace, or fixes a size that
            must stay free; or the graph gives something else than the program.
            Says where, and the ways out.
        TypeError: the example does not fit the root's parameters.
        What the program raises.  Nothing stays patched or changed.

    Warns of attributes that the program has assigned: they are as before.

    Cost: the program's Python code, and some 100 µs for each call recorded.
    """
    chosen = tracer or Tracer(), Leaves(root, leaves)
    run = ExampleRun(root, *chosen)
    try:
        return run.trace(args, kwargs, dynamic, check=check)
    except Exception:
        questions, sizes = run.recorder.questions, run.recorder.sizes
        if sizes.fixed or not questions.wrote_sizes:
            raise
    # The program decides by the text of a size: then that is fixed.
    run = ExampleRun(root, *chosen)
    run.recorder.questions.fixes_texts = True
    return run.trace(args, kwargs, dynamic, check=check)


class ExampleRun:
    """A trace of a program on an example.

    Attributes:
        recorder: records.
    """

    def __init__(self, root: Root, chosen: Tracer, leaves: Leaves) -> None:
        """Begin with what is to be traced.

        Args:
            root: a module or function.
            chosen: says which modules are leaves.
            leaves: what else is.
        """
        owner = root if isinstance(root, nn.Module) else nn.Module()
        self.recorder: Recorder = Recorder(owner, chosen, leaves)
        self._root = root
        self._leaves_of_user = leaves
        self._held = self.recorder.held
        self._globals = trial.namespaces([root, *self.recorder.paths])
        # Asked by what is replaced to see who reads `training`.
        watching = Watching()
        watching.entered = self.recorder.entered
        self.recorder._watch = watching  # noqa: SLF001

    def _patch(self) -> None:
        """Replace what the trace has to see."""
        TRACES.patch(nn.Module, ["__call__"], _module_call)
        TRACES.patch(nn.Module, ["__getattr__"], _module_getattr)
        TRACES.patch(*TRAINING)
        for place in FLAGS:
            TRACES.patch(*place)
        leaf = handing_to(Recorder.call_function)
        for holder, name in self._leaves_of_user.places():
            TRACES.patch(holder, [name], leaf)
        chosen = [(each, leaf) for each in self._leaves_of_user.functions]
        makers = [*handlers.FUNCTIONS, *chosen]
        builtins = {"isinstance": QUESTION, **handlers.BUILTINS}
        for holder, name, make in places_of(makers, builtins):
            TRACES.patch(holder, [name], make)
        for holder, name, make in (*arithmetic(), *recurrent()):
            TRACES.patch(holder, [name], make)
        handlers.patch()
        trial.patch()

    def trace(
        self, args: Args, kwargs: Kwargs, dynamic: AnyValue, *, check: bool
    ) -> Traced:
        """Make a module of what the program does, and try it."""
        hooked = isinstance(self._root, nn.Module) and torch.is_grad_enabled()
        if hooked and has_backward_hook(self.recorder.root):
            raise TraceError(errors.backward_hook(type(self._root).__name__))
        recorder, is_traced = self.recorder, False
        example = Example(self._function(), args, kwargs, dynamic)
        tensors = [*example.tensors, *recorder.root.parameters()]
        try:
            gm = self._recorded(example)
            read = [tensor for tensor, _ in recorder.known.read.values()]
            written = [*recorder.writes.written(), *recorder.root.buffers()]
            if recorder.ran_on_data:
                written = [*tensors, *recorder.root.buffers()]
            is_traced = True
        finally:
            for change in changes(self._held):
                change.undo()
            recorder.finish()
            example.forget()
            if not is_traced:
                with suppress(TraceError):
                    trial.refuse_leftovers(recorder.made, self._globals)
        trial.refuse_leftovers(recorder.made, self._globals)
        if not any(tensor.is_meta or is_fake(tensor) for tensor in tensors):
            gm.guards.check([*example.leaves, *read])
            if check:
                self._try(gm, example, written)
        return gm

    def _recorded(self, example: Example) -> Traced:
        """Run the program on tensors without data, and make the module."""
        recorder, drawn, guards = self.recorder, _drawn(), Guards()
        try:
            first = recorder.known.check_first
            frames.run_traced(example.give, (recorder,))
            frames.run_traced(first, (guards, example.places))
            with TRACES.during(recorder):
                self._patch()
                with settings(), recorder.sizes.mode, python_dispatcher():
                    result = frames.run_traced(self._run, (example,))
            recorder.has_ended = True
            if _drawn() != drawn:
                raise TraceError(errors.drawn())
            return self._finish(example, result, guards)
        except (*DATA_DEPENDENT, UNSUPPORTED) as error:
            raise errors.refusal(error, recorder.paths) from error

    def _try(
        self, gm: GraphModule, example: Example, written: list[torch.Tensor]
    ) -> None:
        """Compare the graph with the program on the example.

        Raises:
            TraceError: they differ, and the program does not differ from
                itself.
        """
        root = self.recorder.root
        owned = dict([*root.named_parameters(), *root.named_buffers()])
        attempt = trial.Trial(
            example.arguments, example.leaves, written, owned, self._held
        )
        found = attempt.difference(self._root, gm)
        if found and attempt.repeats(self._root):
            raise TraceError(errors.differs(found))
        if found:
            gm.guards.unchecked.append(
                f"the program gives something else each time it runs: {found}"
            )

    def _function(self) -> Callable[..., AnyValue]:
        """The function whose parameters the example has to fit."""
        if isinstance(self._root, nn.Module):
            return self._root.forward
        return self._root

    def _run(self, example: Example) -> AnyValue:
        """Run the program, hooks of a module included."""
        recorder = self.recorder
        try:
            with CallMode(recorder):
                result = self._root(*example.args, **example.kwargs)
            swallowed = recorder.refusal or recorder.failure
            if swallowed is not None:
                raise swallowed
            return result
        except Exception as error:
            refusal = recorder.refusal
            if refusal is not None and refusal is not error:
                raise refusal from error
            devices = {
                name: str(tensor.device)
                for name, tensor in [
                    *example.named_tensors(),
                    *recorder.root.named_parameters(),
                    *recorder.root.named_buffers(),
                ]
            }
            if "device" in str(error) and len({*devices.values()}) > 1:
                raise TraceError(errors.devices(error, devices)) from error
            raise

    def _finish(
        self, example: Example, result: AnyValue, guards: Guards
    ) -> Traced:
        """Make a module of what was recorded."""
        recorder, made = self.recorder, example.made
        part = made.flatten(result, "the result")
        refills = made.changed(example.before)
        check_results(made, example.same.values())
        nodes = [recorder.create_arg(leaf) for leaf in made.leaves]
        for path, leaf, node in zip(
            made.paths, made.leaves, nodes, strict=True
        ):
            if isinstance(leaf, nn.Parameter) and not _is_given(node):
                raise TraceError(errors.parameter(path))
        check_free(recorder.sizes)
        recorder.sizes.check_unbacked()
        recorder.writes.check_constants()
        outputs = None
        if refills or not all(map(_is_plain, walk(part))):
            outputs, value = Outputs(part, refills), tuple(nodes)
        else:
            value = Apart().unflatten(part, nodes)
        output = recorder.create_node("output", "output", (value,), {})
        recorder.erase_unused()
        recorder.entered.note_mode(output, recorder.root.training)
        read = [*recorder.known.checked()]
        noted = [
            *example.guards(),
            *recorder.questions.modes,
            *recorder.sizes.guards,
            *(guard for *_, guard in read),
        ]
        guards.read = [tensor.detach().cpu().clone() for _, tensor, _ in read]
        guards.note([*example.names, *(node for node, *_ in read)], noted)
        guards.unchecked += [*self._facts(output), *self._assigned()]
        guards.unchecked += example.unchecked()
        inputs = example.inputs()
        if inputs or outputs:
            recorder.graph.set_codegen(GuardedCodeGen(inputs, outputs))
        name = type(self._root).__name__
        is_module = isinstance(self._root, nn.Module)
        return Traced(
            recorder.root, recorder.graph, name if is_module else "GraphModule"
        )

    def _facts(self, output: Node) -> Iterator[str]:
        """What the graph has fixed and no guard can ask."""
        for text, line in self.recorder.questions.facts.items():
            yield f"{text}: {line}"
        training, paths = output.meta.get(FIXED_MODE, (None, ()))
        for path in paths:
            yield f"training of {path or 'the root'} was {training}"

    def _assigned(self) -> Iterator[str]:
        """What the program has assigned, which gets its old value back."""
        assigned: dict[str, None] = {}
        for change in [*changes(self._held)]:
            if change.path in self.recorder.stored:
                continue  # a constant of the graph, which needs it still
            change.undo()
            if self.recorder.path_of(change.value) != change.path:
                assigned[change.path] = None
        if assigned:
            frames.warn(
                f"the program has assigned {', '.join(assigned)}, and the "
                "graph does not do that. They are as before the trace"
            )
        for path in assigned:
            yield f"{path} is assigned by the program, and not by the graph"


def _drawn() -> tuple[AnyValue, ...]:
    """The states of the random numbers that a graph cannot draw."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return (random.getstate(),)
    name, keys, *rest = numpy.random.get_state()
    return random.getstate(), name, keys.tobytes(), *rest


def _is_given(value: AnyValue) -> bool:
    """Whether a result is an input or a parameter, perhaps written in place."""
    while value.op == "call_method" and value.target[-1] == "_":
        value = value.args[0]
    return value.op in ("placeholder", "get_attr")


def _is_plain(part: Part) -> bool:
    """Whether a node can hold a part of a result as it is."""
    if isinstance(part, Constant):
        return type(part.value) in _HELD
    if isinstance(part, Container):
        has_names = all(type(key) is str for key in part.keys)
        return part.kind in (tuple, list) or (part.kind is dict and has_names)
    return isinstance(part, TensorLeaf)


_HELD: Final = (bool, int, float, str, type(None), torch.dtype, torch.device)
