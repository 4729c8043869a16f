"""Extra: the example that a program is traced on, as tensors without data.

Each tensor among the inputs gets a placeholder, and the program gets a fake
tensor in its place, inside new containers and objects: whatever it does to
those, the user's own are never touched.

The program is called as the user has called it, by position or by name,
because a decorator may tell the difference. Parameters that were left out are
filled in by the program itself: their defaults are constants of the trace.

Kind and dtype of each tensor are checked in each call, whether somebody has
asked or not, since nearly every operator asks. `dynamic=` is what
`torch.export.export` calls `dynamic_shapes`; two sizes with one `Dim` get one
symbol, and a guard that they are equal.

A placeholder is named after the way to its tensor, `cache_layers_0_keys`,
because a guard shows that name.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import torch

from ...linked_list.namespace import is_parameter_name
from ...node import Node
from ...proxy import TraceError
from ...torch_private.fake_tensors import is_fake
from ...use_def.values import AnyValue, Args, Kwargs
from . import errors
from .dynamic import Free
from .guarded_code import Inputs, TracedParameter
from .guards import NAMES, Guard, same_objects
from .recorder import Recorder
from .structures import (
    Apart,
    Container,
    LeftOut,
    Part,
    check_inputs,
    is_constant,
    is_tensor,
)

_EMPTY: Final = inspect.Parameter.empty
_REST: Final = (
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD,
)


class Example:
    """The inputs of a trace.

    Attributes:
        parameters: of the program, with what the example is for each.
        args: what the program is called with.
        kwargs: the same, by name.
        places: the placeholders.
        names: of these.
        leaves: the user's tensors and numbers, one for each placeholder.
        tensors: those that are tensors.
        numbers: path → the type of a number that may vary.
        made: the containers that the program gets.
        before: what these hold.
        same: path → what is compared by identity.
    """

    def __init__(
        self,
        function: Callable[..., AnyValue],
        args: Sequence[AnyValue],
        kwargs: Mapping[str, AnyValue],
        dynamic: AnyValue,
    ) -> None:
        """Match an example with the parameters of a function.

        Args:
            function: what is traced.
            args: the example.
            kwargs: the same, by name.
            dynamic: which sizes may vary; see `fx.trace`.

        Raises:
            TypeError: it does not fit.
            TraceError: a part of it is not taken apart.
        """
        self._bound = _signature(function).bind(*args, **kwargs)
        self._given = len(args), [*kwargs]
        given = {**self._bound.arguments}
        self._bound.apply_defaults()
        self._flatten(given, {})
        check_inputs(self._apart)
        self._free = Free(dynamic, self.parameters, self._apart.leaves)
        self.numbers: dict[str, type] = self._free.numbers
        if self.numbers:  # which are leaves, too
            self._flatten(given, self.numbers)
            self._free = Free(dynamic, self.parameters, self._apart.leaves)
        self.same: dict[str, AnyValue] = self._apart.same
        self.leaves: list[AnyValue] = self._apart.leaves
        self.tensors: list[torch.Tensor] = [*filter(is_tensor, self.leaves)]
        self.places: list[Node] = []
        self.names: list[str] = []
        self.made: Apart = Apart()
        self.before: list[Container] = []
        self.args: Args = ()
        self.kwargs: Kwargs = {}

    def _flatten(
        self, given: Mapping[str, AnyValue], numbers: Mapping[str, type]
    ) -> None:
        """Take the arguments apart.

        Args:
            given: those that the example does not leave out.
            numbers: those that are leaves.
        """
        self.parameters: list[TracedParameter] = []
        self._apart = Apart(numbers)
        for name, value in self._bound.arguments.items():
            parameter = self._bound.signature.parameters[name]
            part: Part = LeftOut(value)  # what the program itself fills in
            if name in given or parameter.kind in _REST:
                part = self._apart.flatten(value, name)
            self.parameters.append(_described(parameter, part))

    def named_tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        """The tensors, and the names of their placeholders."""
        for name, leaf in zip(self.names, self.leaves, strict=True):
            if is_tensor(leaf):
                yield name, leaf

    def give(self, recorder: Recorder) -> None:
        """Make placeholders, and the inputs that the program gets.

        Args:
            recorder: records.
        """
        nodes = [_placeholder(recorder, path) for path in self._apart.paths]
        self.places, self.names = nodes, [node.name for node in nodes]
        recorder.inputs.update(nodes)
        dims = self._free.dims
        fakes: dict[int, torch.Tensor] = {}
        leaves: list[AnyValue] = []
        for index, (tensor, node) in enumerate(
            zip(self.leaves, nodes, strict=True)
        ):
            if not is_tensor(tensor):
                must = bool(dims[index])
                number = recorder.sizes.number(tensor, node, must=must)
                recorder.made.note(number)
                node.meta["val"] = tensor
                leaves.append(number)
                continue
            if id(tensor) not in fakes:
                fake = recorder.sizes.fake(tensor, node, dims[index])
                fakes[id(tensor)] = recorder.bind(node, fake)
                recorder.writes.note(tensor, fake)
                recorder.made.note(fake)
                for fact in _copy_attributes(fake, tensor):
                    recorder.questions.facts[f"{node} {fact}"] = "the example"
            node.meta["val"] = recorder.noted(fakes[id(tensor)])
            leaves.append(fakes[id(tensor)])
        self.args, self.kwargs = self.arguments(leaves, self.made)
        again, other = Apart(self.numbers), Apart()
        for name, part in [(p.variable, p.part) for p in self.parameters]:
            value = other.unflatten(part, leaves)
            is_given = not isinstance(part, LeftOut)
            if is_given and again.flatten(value, name) != part:
                raise TraceError(errors.refused(name, value))
        self.before = self.made.snapshot()

    def arguments(
        self, leaves: list[AnyValue], into: Apart | None = None
    ) -> tuple[Args, Kwargs]:
        """What to call the program with: by position and by name, as the user.

        A decorator may tell the difference.

        Args:
            leaves: for the tensors of the example.
            into: notes the containers that are made.
        """
        into, named = into or Apart(), dict[str, AnyValue]()
        for parameter in self.parameters:
            value = into.unflatten(parameter.part, leaves)
            named[parameter.variable] = value
        count, keys = self._given
        bound = inspect.BoundArguments(self._bound.signature, {**named})
        for parameter in self.parameters:
            if parameter.name.startswith("**"):
                named = {**named, **named[parameter.variable]}
        return bound.args[:count], {key: named[key] for key in keys}

    def forget(self) -> None:
        """Keep no tensors without data."""
        self.made, self.before = Apart(), []
        self.args, self.kwargs = (), {}

    def guards(self) -> list[Guard]:
        """What each trace relies on."""
        guards = []
        named = dict(self.named_tensors())
        for name, tensor in named.items():
            values = {"dtype": tensor.dtype, "device": tensor.device}
            values |= {"dim()": tensor.dim(), "layout": tensor.layout}
            guards += [Guard(f"{name}.{key}", values[key]) for key in values]
            is_parameter = isinstance(tensor, torch.nn.Parameter)
            asked = f"isinstance({name}, torch.nn.Parameter)"
            guards.append(Guard(asked, is_parameter))
        guards += same_objects([*named], [*map(id, named.values())])
        return guards

    def inputs(self) -> Inputs | None:
        """What takes inputs apart; None if there is nothing to do.

        Then the placeholders are the parameters of the program.
        """
        is_plain = all(parameter.is_plain for parameter in self.parameters)
        if self.numbers or not is_plain:
            return Inputs(self.parameters, self.names, self.numbers)
        for place, parameter in zip(self.places, self.parameters, strict=True):
            place.target = parameter.name
            place.args = (parameter.default,) * parameter.has_default
        return None

    def unchecked(self) -> Iterator[str]:
        """What is in the inputs that no call compares."""
        for path, value in self.same.items():
            name = getattr(value, "__qualname__", f"a {type(value).__name__}")
            yield f"{path} is {name}, and what that holds is not compared"
        for parameter in self.parameters:
            is_left_out = isinstance(parameter.part, LeftOut)
            if is_left_out and not is_constant(parameter.default):
                name = parameter.variable
                yield f"the default of {name}, and what it holds, is fixed"


# -- parameters ----------------------------------------------------------------


def _signature(function: Callable[..., AnyValue]) -> inspect.Signature:
    """The signature of a function; of one that has none, `*args, **kwargs`."""
    try:
        return inspect.signature(function)
    except ValueError:  # of a function of torch
        names = ("args", _REST[0]), ("kwargs", _REST[1])
        return inspect.Signature([inspect.Parameter(*pair) for pair in names])


def _described(parameter: inspect.Parameter, part: Part) -> TracedParameter:
    """A parameter, and what the example is for it."""
    has_default = parameter.default is not _EMPTY
    return TracedParameter(
        str(parameter).partition(parameter.name)[0] + parameter.name,
        part,
        parameter.kind is parameter.KEYWORD_ONLY,
        has_default,
        parameter.default if has_default else None,
    )


def _copy_attributes(fake: AnyValue, tensor: torch.Tensor) -> Iterator[str]:
    """Copy the example's Python attributes to its fake tensor.

    Yields:
        What no guard checks.

    Raises:
        TypeError: the example is of a class of the user's own.
    """
    if is_fake(tensor):  # its attributes are torch's
        return
    kind = type(tensor)
    if kind not in (torch.Tensor, torch.nn.Parameter):
        raise TypeError(
            f"an input is a {kind.__qualname__}: a trace gives the program "
            "plain tensors, and could not tell what that class does. Give "
            "x.as_subclass(torch.Tensor), or make what needs the class a leaf"
        )
    own = {n: v for n, v in vars(tensor).items() if n[:7] != "_dynamo"}
    fake.__dict__.update(own)
    if own:
        yield f"has attributes of its own, {', '.join(own)}"
    if kind is torch.nn.Parameter:
        fake._is_param = True  # noqa: SLF001  # so isinstance says


def _placeholder(recorder: Recorder, path: str) -> Node:
    """A placeholder for the tensor that is written so."""
    name = re.sub(r"\W+", "_", path).strip("_")
    if not is_parameter_name(name) or name in NAMES:
        name = f"input_{name}"
    node = recorder.create_node("placeholder", name, (), {})
    node.target = node.name
    return node
