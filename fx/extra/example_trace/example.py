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
from .guarded_code import Inputs, TracedParameter
from .guards import NAMES, Guard, same_objects
from .questions import Dims
from .recorder import Recorder
from .structures import (
    Apart,
    Container,
    LeftOut,
    Part,
    TensorLeaf,
    check_inputs,
    is_constant,
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
        tensors: the user's, one for each placeholder.
        made: the containers that the program gets.
        before: what these hold.
        same: path → what is compared by identity.
    """

    def __init__(
        self,
        function: Callable[..., AnyValue],
        args: Sequence[AnyValue],
        kwargs: Mapping[str, AnyValue],
    ) -> None:
        """Match an example with the parameters of a function.

        Raises:
            TypeError: it does not fit.
            TraceError: a part of it is not taken apart.
        """
        self._bound = _signature(function).bind(*args, **kwargs)
        self._given = len(args), [*kwargs]
        given = {**self._bound.arguments}
        self._bound.apply_defaults()
        self.parameters: list[TracedParameter] = []
        self._apart = Apart()
        for name, value in self._bound.arguments.items():
            parameter = self._bound.signature.parameters[name]
            part: Part = LeftOut(value)  # what the program itself fills in
            if name in given or parameter.kind in _REST:
                part = self._apart.flatten(value, name)
            self.parameters.append(_described(parameter, part))
        check_inputs(self._apart)
        self.same: dict[str, AnyValue] = self._apart.same
        self.tensors: list[torch.Tensor] = self._apart.leaves
        self.places: list[Node] = []
        self.names: list[str] = []
        self.made: Apart = Apart()
        self.before: list[Container] = []
        self.args: Args = ()
        self.kwargs: Kwargs = {}

    def give(self, recorder: Recorder, dynamic: AnyValue) -> None:
        """Make placeholders, and the inputs that the program gets.

        Args:
            recorder: records.
            dynamic: which sizes may vary; see `fx.trace`.
        """
        nodes = [_placeholder(recorder, path) for path in self._apart.paths]
        self.places, self.names = nodes, [node.name for node in nodes]
        recorder.inputs.update(nodes)
        dims = self._dims(dynamic)
        fakes: dict[int, torch.Tensor] = {}
        leaves = []
        for index, (tensor, node) in enumerate(
            zip(self.tensors, nodes, strict=True)
        ):
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
        again, other = Apart(), Apart()
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
        for name, tensor in zip(self.names, self.tensors, strict=True):
            values = {"dtype": tensor.dtype, "device": tensor.device}
            values |= {"dim()": tensor.dim(), "layout": tensor.layout}
            guards += [Guard(f"{name}.{key}", values[key]) for key in values]
            is_parameter = isinstance(tensor, torch.nn.Parameter)
            asked = f"isinstance({name}, torch.nn.Parameter)"
            guards.append(Guard(asked, is_parameter))
        guards += same_objects(self.names, [*map(id, self.tensors)])
        return guards

    def inputs(self) -> Inputs | None:
        """What takes inputs apart; None if there is nothing to do.

        Then the placeholders are the parameters of the program.
        """
        if not all(parameter.is_plain for parameter in self.parameters):
            return Inputs(self.parameters, self.names)
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

    # -- which sizes may vary ----------------------------------------------

    def _dims(self, dynamic: AnyValue) -> list[Dims]:
        """For each tensor, which of its sizes may vary."""
        if dynamic is None or dynamic is True:
            return [None] * len(self.tensors)
        if dynamic is False:
            return [{} for _ in self.tensors]
        dims: list[Dims] = [{} for _ in self.tensors]
        known = {parameter.variable: parameter for parameter in self.parameters}
        for name, spec in dict(dynamic).items():
            if name not in known:
                raise TypeError(
                    f"dynamic= names {name!r}, and the parameters are "
                    f"{', '.join(known)}"
                )
            self._spread(known[name].part, spec, dims, name)
        return dims

    def _spread(
        self, part: Part, spec: AnyValue, dims: list[Dims], path: str
    ) -> None:
        """Note what a user says of a part of the inputs."""
        if spec is None:
            return
        if isinstance(part, TensorLeaf):
            dims[part.index] = _dims_of(self.tensors[part.index], spec, path)
        elif isinstance(part, Container):
            keyed = spec if isinstance(spec, Mapping) else dict(enumerate(spec))
            keys = [*part.keys]
            for key, inner_spec in keyed.items():
                if key not in keys:
                    raise TypeError(f"dynamic= names {path}[{key!r}]")
                inside = part.parts[keys.index(key)]
                self._spread(inside, inner_spec, dims, f"{path}[{key!r}]")


def _dims_of(tensor: torch.Tensor, spec: AnyValue, path: str) -> Dims:
    """Which sizes of a tensor may vary, as a user says."""
    if spec is True:
        return None
    if spec is False:
        return {}
    named = spec if isinstance(spec, Mapping) else dict(enumerate(spec))
    dims = {}
    for place, dim in named.items():
        kind = getattr(dim, "type", dim)
        name = getattr(kind, "name", kind)
        if isinstance(dim, int) and not isinstance(dim, bool):
            if tensor.size(place) != dim:
                raise TypeError(
                    f"dynamic= says that {path}.size({place}) is {dim}, and "
                    f"it is {tensor.size(place)} in the example"
                )
        elif dim not in (None, False) and name != "STATIC":
            if hasattr(dim, "root"):
                raise TypeError(f"{dim} is computed of another Dim: give one")
            named_one = dim if hasattr(dim, "__name__") else None
            dims[place % tensor.dim()] = named_one
    return dims


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
