"""Extra: generated code that checks its inputs, and takes them apart.

    def forward(self, x, cache = None):
        x_1, cache_keys, = _checked_inputs(x, cache)

A graph's code generator goes where the graph goes: into copies, pickles, what a
Transformer makes.  So it has the guards.  An Interpreter asks it, too.

Most programs take tensors and None, and then nothing has to be taken apart. A
cache that the program was given holds the new tensors after the call, as if
the program itself had run: the container of the call is refilled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Final, NamedTuple

import torch
from torch.fx import graph as torch_graph

from ...codegen.codegen import CodeGen
from ...codegen.emit import INDENT
from ...codegen.layout import output_text
from ...proxy import TraceError
from ...usedef.values import Argument, Recorded, Value
from .guards import GuardError, Guards
from .structures import (
    Apart,
    Constant,
    Container,
    Leaf,
    LeftOut,
    Part,
    difference,
    in_words,
)

CHECK: Final = "_checked_inputs"
NEST: Final = "_nested_outputs"
"""What generated code calls."""


class Parameter(NamedTuple):
    """A parameter of the function that was traced.

    Attributes:
        name: with its stars.
        part: what it was in the example.
        keyword_only: whether a call has to name it.
        has_default: whether a call may leave it out.
        default: what it is then.
    """

    name: str
    part: Part
    keyword_only: bool = False
    has_default: bool = False
    default: Value = None

    @property
    def variable(self) -> str:
        """The name without stars."""
        return self.name.lstrip("*")


class Inputs:
    """Makes flat inputs of those of a call, and checks them.

    Attributes:
        parameters: of the function that was traced, without `self`.
        guards: what has to hold.
    """

    def __init__(self, parameters: Sequence[Parameter], guards: Guards) -> None:
        """Make it of what a trace saw."""
        self.parameters: tuple[Parameter, ...] = tuple(parameters)
        self.guards: Guards = guards
        self._nested = any(isinstance(p.part, Container) for p in parameters)

    def __call__(self, *values: Value) -> list[Value]:
        """The tensors in the values of all parameters.

        Raises:
            GuardError: they are not what the trace holds for.
        """
        checked = self.guards.enabled
        if checked and any(isinstance(value, Recorded) for value in values):
            raise TraceError(
                "guards cannot be checked for proxies. To change a graph, use "
                "fx.Transformer(gm).transform(). To trace it as a part of "
                "something else, use fx.trace, or leave the guards out: "
                "gm.guards.enabled = False"
            )
        if self._nested or not self._are_tensors(values):
            leaves = self.apart(values, checked=checked).leaves
        else:
            leaves = [v for v in values if isinstance(v, torch.Tensor)]
        if checked:
            self.guards.check(leaves)
        return leaves

    def _are_tensors(self, values: Sequence[Value]) -> bool:
        """Whether there are tensors where they were, and None elsewhere."""
        return all(
            isinstance(value, torch.Tensor)
            if isinstance(parameter.part, Leaf)
            else value is None and parameter.part == _NONE
            for parameter, value in zip(self.parameters, values, strict=True)
        )

    def apart(self, values: Sequence[Value], *, checked: bool = False) -> Apart:
        """The values of all parameters, taken apart.

        Raises:
            GuardError: they are to be checked, and one is built otherwise
                than the example's.
        """
        apart = Apart()
        for parameter, value in zip(self.parameters, values, strict=True):
            was = parameter.part
            if isinstance(was, LeftOut) and value is parameter.default:
                continue
            into = Apart() if isinstance(was, Constant) else apart
            part = into.flatten(value, parameter.variable)
            if checked and part != was:
                self._refuse(parameter, part)
        return apart

    def _refuse(self, parameter: Parameter, part: Part) -> None:
        """Raise for an input that is built otherwise than the example's."""
        path, was, now = difference(parameter.part, part, parameter.variable)
        raise GuardError(
            f"{path} is not what the trace relied on: it was {in_words(was)}, "
            f"and is {in_words(now)}\n  What is no tensor is fixed in the "
            "graph. Trace again with an example like this one"
        )

    def bind(self, args: Sequence[Value]) -> list[Value]:
        """Values for all parameters, of those given by position.

        Raises:
            RuntimeError: one is missing, or there are too many.
        """
        rest: list[Value] = [*args]
        values: list[Value] = []
        for parameter in self.parameters:
            if parameter.name.startswith("**"):
                values.append({})
            elif parameter.name.startswith("*"):
                values.append(tuple(rest))
                rest.clear()
            elif rest:
                values.append(rest.pop(0))
            elif parameter.has_default:
                values.append(parameter.default)
            else:
                raise RuntimeError(f"the input {parameter.name!r} is missing")
        if rest:
            raise RuntimeError(
                f"{len(args)} inputs were given, and the graph takes "
                f"{len(self.parameters)}: {', '.join(self.names())}"
            )
        return values

    def names(self) -> list[str]:
        """The parameters as variables."""
        return [parameter.variable for parameter in self.parameters]

    def signature(self) -> list[str]:
        """The parameters as a definition has them."""
        texts: list[str] = []
        starred = False
        for parameter in self.parameters:
            if parameter.keyword_only and not starred:
                texts.append("*")
            starred |= parameter.keyword_only or parameter.name[:1] == "*"
            text = parameter.name
            if parameter.has_default:
                text += f" = {default_text(parameter)}"
            texts.append(text)
        return texts


class Outputs:
    """Makes of a graph's flat outputs what the traced function returned.

    Attributes:
        part: what that was.
        refills: what containers among the inputs hold afterwards.
    """

    def __init__(self, part: Part, refills: Sequence[Container]) -> None:
        """Make it of what a trace saw."""
        self.part: Part = part
        self.refills: tuple[Container, ...] = tuple(refills)

    def __call__(self, leaves: Sequence[Value], apart: Apart) -> Value:
        """Nest outputs.

        Args:
            leaves: the outputs of the graph.
            apart: the inputs of the call.
        """
        result = apart.unflatten(self.part, [*leaves])
        for part in self.refills:
            apart.refill(part, [*leaves])
        return result


class GuardedCodeGen(CodeGen):
    """Writes a function that does what was traced, of inputs like those.

    Attributes:
        inputs: checks them, and takes them apart.
        outputs: puts them together; None if the graph's are as they were.
    """

    def __init__(self, inputs: Inputs, outputs: Outputs | None) -> None:
        """Make a code generator for what a trace noted."""
        super().__init__()
        self.inputs: Inputs = inputs
        self.outputs: Outputs | None = outputs

    @property
    def guards(self) -> Guards:
        """What the trace relied on."""
        return self.inputs.guards

    def process_inputs(self, *args: Value) -> Value:
        """The checked leaves of inputs, which may be leaves already.

        Raises:
            GuardError: they are not what the trace holds for.
            RuntimeError: there are none, because an Interpreter was given
                them by name, or in a list, and shows them to nobody.
        """
        if not args and self.guards.names:
            raise RuntimeError(
                "a graph of fx.trace takes and checks its inputs by position: "
                f"Interpreter(gm).run({', '.join(self.inputs.names())}), not "
                "by name, by initial_env or in boxed_run. Or pass the tensors "
                "alone with run(…, enable_io_processing=False), which checks "
                "nothing"
            )
        values: Sequence[Value] = args
        are_leaves = all(isinstance(value, torch.Tensor) for value in args)
        if are_leaves and len(args) == len(self.guards.names):
            leaves = [*args]
            if self.guards.enabled:
                self.guards.check(leaves)
        else:
            values = self.inputs.bind(args)
            leaves = self.inputs(*values)
        if self.outputs is not None:
            _APART.set(self.inputs.apart(values))
        return leaves

    def process_outputs(self, outputs: Value) -> Value:
        """The outputs, nested as the traced function's."""
        if self.outputs is None:
            return outputs
        return self.outputs(outputs, _APART.get())

    def of_other_library(self) -> Value:
        """A code generator of torch.fx that writes, and checks, the same."""
        return GuardedForTorch(self)

    def gen_fn_def(
        self,
        free_vars: list[str],
        maybe_return_annotation: str,
        *,
        expanded_def: bool = False,
    ) -> str:
        """The first line, and the statement that checks the inputs."""
        bare = [text for text in free_vars if text != "self"]
        definition = super().gen_fn_def(
            ["self", *self.inputs.signature()],
            maybe_return_annotation,
            expanded_def=expanded_def,
        )
        annotated = "".join(f"\n{INDENT}{text}" for text in bare if ":" in text)
        names = "".join(f"{text.partition(':')[0].strip()}, " for text in bare)
        given = ", ".join(self.inputs.names())
        call = f"{CHECK}({given})"
        return f"{definition}{annotated}\n{INDENT}" + (
            f"{names}= {call}" if names else call
        )

    def generate_output(
        self,
        output_args: Argument,
        *,
        descs: Sequence[str] | None = None,
        repr_fn: Callable[[object], str] | None = None,
    ) -> str:
        """The return statement, which puts the outputs together."""
        if self.outputs is None:
            return super().generate_output(
                output_args, descs=descs, repr_fn=repr_fn
            )
        text = output_text(output_args, descs, repr_fn or repr)
        given = "".join(f"{name}, " for name in self.inputs.names())
        return f"return {NEST}({text}, {CHECK}.apart(({given})))"

    def additional_globals(self) -> list[tuple[str, Value]]:
        """What the text calls, and defaults that have no text."""
        pairs: list[tuple[str, Value]] = [(CHECK, self.inputs)]
        if self.outputs is not None:
            pairs.append((NEST, self.outputs))
        for parameter in self.inputs.parameters:
            if parameter.has_default and type(parameter.default) not in _PLAIN:
                pairs.append((default_text(parameter), parameter.default))
        return pairs

    def _own_parameters(self) -> Iterable[str]:
        """The parameters of the traced function."""
        return self.inputs.names()


class GuardedForTorch(torch_graph.CodeGen):
    """A code generator of torch.fx that hands everything to one of fx."""

    def __init__(self, ours: GuardedCodeGen) -> None:
        """Make it for a code generator of fx."""
        super().__init__()
        self._ours = ours
        self.guards: Guards = ours.guards
        vars(self).update({name: getattr(ours, name) for name in _ASKED})

    def of_other_library(self) -> GuardedCodeGen:
        """The code generator of fx."""
        return self._ours


_APART: Final[ContextVar[Apart]] = ContextVar("fx guarded inputs")
"""The inputs of the run of an Interpreter in this thread."""

_ASKED: Final = (
    *("process_inputs", "process_outputs", "additional_globals"),
    *("gen_fn_def", "generate_output"),
)
"""What a graph of torch.fx asks of its code generator."""

_NONE: Final = Constant(None)
_PLAIN: Final = (type(None), bool, int, str)
"""Types of defaults that are written as they are."""


def default_text(parameter: Parameter) -> str:
    """How the default of a parameter is written."""
    if type(parameter.default) in _PLAIN:
        return repr(parameter.default)
    return f"_default_{parameter.variable}"
