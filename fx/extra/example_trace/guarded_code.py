"""Extra: generated code that takes inputs apart, and puts outputs together.

    def forward(self, x, cache = None):
        x, cache_keys, = _flat_inputs(x, cache)
        _guards = self._guards(x, cache_keys)

A graph has a placeholder for each tensor, and takes and gives flat values.  A
program whose parameters are all tensors has the same ones, and needs nothing of
this.  Others have a code generator, which goes where the graph goes. It knows
the placeholders by name, and checks what is no tensor: what the inputs are in,
and constants.  An Interpreter asks it, too.

A cache that the program was given holds the new tensors after the call, as if
the program itself had run: the container of the call is refilled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Final, NamedTuple

from torch.fx import graph as torch_graph

from ...codegen.codegen import CodeGen, output_text
from ...codegen.emit import INDENT
from ...graph import Graph
from ...linked_list.linked_list import LinkedList
from ...node import Node
from ...use_def.dotted_path import find
from ...use_def.lint import Problem, parameter_problems
from ...use_def.values import AnyValue, Argument
from .guards import GuardError, Guards
from .structures import (
    Apart,
    BackReference,
    Constant,
    Container,
    LeftOut,
    Part,
    TensorLeaf,
    difference,
    in_words,
    walk,
)

CHECK: Final = "_flat_inputs"
NEST: Final = "_nested_outputs"
"""What generated code calls."""


class TracedParameter(NamedTuple):
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
    default: AnyValue = None

    @property
    def is_plain(self) -> bool:
        """Whether a placeholder of the same name says all about it."""
        is_tensor = isinstance(self.part, TensorLeaf) and "*" not in self.name
        is_tensor &= not self.keyword_only
        return is_tensor and type(self.default) in _PLAIN

    @property
    def variable(self) -> str:
        """The name without stars."""
        return self.name.lstrip("*")


class Inputs:
    """Makes flat inputs of those of a call.

    Attributes:
        parameters: of the function that was traced, without `self`.
        names: of the placeholders, in the order of the tensors; "" for one that
            was erased inside of something nested.
        numbers: path → the type of a number that may vary.
    """

    def __init__(
        self,
        parameters: Sequence[TracedParameter],
        names: Sequence[str],
        numbers: Mapping[str, type],
    ) -> None:
        """Make it of what a trace saw."""
        self.numbers: dict[str, type] = {**numbers}
        self.parameters: tuple[TracedParameter, ...] = tuple(parameters)
        self.names: tuple[str, ...] = tuple(names)

    @property
    def known(self) -> list[str]:
        """The placeholders that it has values for."""
        return [*filter(None, self.names)]

    def __call__(self, *values: AnyValue) -> list[AnyValue]:
        """The tensors in the values of all parameters.

        Raises:
            GuardError: something else is not what the trace holds for.
        """
        leaves = self.apart(values, checked=True).leaves
        if "" in self.names:
            pairs = zip(leaves, self.names, strict=True)
            leaves = [leaf for leaf, name in pairs if name]
        return leaves

    def apart(
        self, values: Sequence[AnyValue], *, checked: bool = False
    ) -> Apart:
        """The values of all parameters, taken apart.

        Raises:
            GuardError: they are to be checked, and one is built otherwise
                than the example's.
        """
        apart = Apart(self.numbers)
        for parameter, value in zip(self.parameters, values, strict=True):
            was = parameter.part
            if isinstance(was, LeftOut) and value is parameter.default:
                continue
            into = Apart() if isinstance(was, Constant) else apart
            part = into.flatten(value, parameter.variable)
            if checked and part != was:
                self._refuse(parameter, part)
        return apart

    def _refuse(self, parameter: TracedParameter, part: Part) -> None:
        """Raise for an input that is built otherwise than the example's."""
        path, was, now = difference(parameter.part, part, parameter.variable)
        kind = self.numbers.get(path)
        before = f"a number, {kind.__name__}" if kind else in_words(was)
        raise GuardError(
            f"{path} is not what the trace relied on: it was {before}, "
            f"and is {in_words(now)}\n  What is no tensor is fixed in the "
            "graph. Trace again with an example like this one"
        )

    def bind(self, args: Sequence[AnyValue]) -> list[AnyValue]:
        """Values for all parameters, of those given by position.

        Raises:
            RuntimeError: one is missing, or there are too many.
        """
        rest: list[AnyValue] = [*args]
        values: list[AnyValue] = []
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
                f"{len(self.parameters)}: {', '.join(self.variables())}"
            )
        return values

    def variables(self) -> list[str]:
        """The parameters as variables."""
        return [parameter.variable for parameter in self.parameters]

    def check_left_out(self) -> None:
        """Check a call that is given the tensors alone, by placeholder.

        Raises:
            GuardError: a parameter without tensors has another value if it is
                left out than in the trace.
        """
        for parameter in self.parameters:
            part, is_rest = parameter.part, parameter.name[0] == "*"
            is_empty = is_rest and not getattr(part, "parts", ())
            if is_empty or any(
                isinstance(each, TensorLeaf) for each in walk(part)
            ):
                continue
            default = Constant(parameter.default)
            if not parameter.has_default or default != part:
                raise GuardError(
                    f"{parameter.variable} was {in_words(part)} in the trace, "
                    "and is left out here: give the inputs by position, as "
                    f"in run({', '.join(self.variables())})"
                )

    def without(self, name: str) -> Inputs:
        """What is left if a placeholder is erased.

        A parameter that is this one tensor goes, too.
        """
        index = self.names.index(name)
        kept = [p for p in self.parameters if p.part != TensorLeaf(index)]
        names = [*self.names]
        if len(kept) == len(self.parameters):
            names[index] = ""
            return Inputs(kept, names, self.numbers)
        del names[index]
        left = [p._replace(part=_before(p.part, index)) for p in kept]
        return Inputs(left, names, self.numbers)

    def signature(self, more: Sequence[str]) -> list[str]:
        """The parameters as a definition has them.

        Args:
            more: others, which have to be named in a call.
        """
        texts: list[str] = []
        starred = False
        rest = [p.name for p in self.parameters if p.name.startswith("**")]
        for parameter in self.parameters[: -len(rest) or None]:
            if parameter.keyword_only and not starred:
                texts.append("*")
            starred |= parameter.keyword_only or parameter.name[:1] == "*"
            text = parameter.name
            if parameter.has_default:
                text += f" = {default_text(parameter)}"
            texts.append(text)
        return texts + ["*"] * bool(more and not starred) + [*more, *rest]

    def problem(self, names: Sequence[str]) -> str:
        """Why placeholders are not right, or ""."""
        known, variables = self.known, self.variables()
        more = names[len(known) :]
        fit = all(n not in variables and n[:1] != "*" for n in more)
        if fit and names[: len(known)] == known:
            return ""
        return (
            f"the placeholders are {', '.join(names)}. Those that the inputs "
            f"are taken apart for have to be the first, {', '.join(known)}; "
            "others come after them, and are named in a call. Or let the "
            "placeholders be the parameters: graph.set_codegen(fx.CodeGen())"
        )


class Outputs:
    """Makes of a graph's flat outputs what the traced function returned.

    Attributes:
        part: what that was.
        refills: what containers among the inputs hold afterwards.
        count: how many outputs the graph has.
    """

    def __init__(self, part: Part, refills: Sequence[Container]) -> None:
        """Make it of what a trace saw."""
        self.part: Part = part
        self.refills: tuple[Container, ...] = tuple(refills)
        inside = (x for each in (part, *refills) for x in walk(each))
        places = [each.index for each in inside if isinstance(each, TensorLeaf)]
        self.count: int = max(places, default=-1) + 1

    def __call__(
        self, leaves: Sequence[AnyValue], apart: Apart | None = None
    ) -> AnyValue:
        """Nest outputs.

        Args:
            leaves: the outputs of the graph.
            apart: the inputs of the call; None if they are not nested.
        """
        apart = apart or Apart()
        result = apart.unflatten(self.part, [*leaves])
        for part in self.refills:
            apart.refill(part, [*leaves])
        return result

    def problem(self, leaves: AnyValue) -> str:
        """Why the outputs of a graph are not right, or ""."""
        flat = isinstance(leaves, tuple | list)
        if flat and len(leaves) == self.count:
            return ""
        return (
            f"the traced function returned {in_words(self.part)}, for which "
            f"the graph has to give a tuple of {self.count}, and it gives "
            f"{f'one of {len(leaves)}' if flat else 'one value'}: say what it "
            "returns now, fx.set_outputs(graph, …)"
        )


class GuardedCodeGen(CodeGen):
    """Writes a function that does what was traced, of inputs like those.

    Attributes:
        inputs: takes them apart; None if the placeholders are the parameters.
        outputs: puts them together; None if the graph's are as they were.
    """

    def __init__(self, inputs: Inputs | None, outputs: Outputs | None) -> None:
        """Make a code generator for what a trace noted."""
        super().__init__()
        self.inputs: Inputs | None = inputs
        self.outputs: Outputs | None = outputs

    @property
    def containers(self) -> int:
        """How many containers there are in the inputs."""
        given = self.inputs.parameters if self.inputs else ()
        parts = (part for each in given for part in walk(each.part))
        return sum(isinstance(p, Container) and p.number >= 0 for p in parts)

    def problems(self, graph: Graph) -> Iterator[Problem]:
        """What is wrong with a graph that this is to write."""
        places = graph.find_nodes(op="placeholder")
        if self.inputs is None:
            yield from parameter_problems(graph)
        elif text := self.inputs.problem([str(node.target) for node in places]):
            yield Problem(next(iter(places), None), text)
        if self.outputs and graph.is_finished:
            output = graph.output_node()
            text = self.outputs.problem(output.args[0])
            yield from [Problem(output, text)] * bool(text)

    def _check(self, nodes: LinkedList[Node]) -> None:
        """Raise if there are problems."""
        for node in nodes:
            for problem in self.problems(node.graph):
                raise problem.kind(problem.message)
            return

    def process_inputs(self, *args: AnyValue) -> AnyValue:
        """The leaves of inputs that are given by position.

        An Interpreter that was given them by placeholder, as in `boxed_run`,
        asks without any.

        Raises:
            GuardError: they are not what the trace holds for.
            RuntimeError: there are none, and a container in the inputs is part
                of the result.
        """
        if self.inputs is None:
            values: Sequence[AnyValue] = args
        elif args or not self.inputs.known:
            values = self.inputs.bind(args)
            args = (*self.inputs(*values),)
        else:
            self.inputs.check_left_out()
            _APART.set(self._without_inputs())
            return args
        if self.outputs is not None:
            inputs = self.inputs
            _APART.set(inputs.apart(values) if inputs else Apart())
        return args

    def _without_inputs(self) -> Apart:
        """Inputs whose containers nobody knows.

        Raises:
            RuntimeError: the result needs them.
        """
        apart, outputs, count = Apart(), self.outputs, self.containers
        apart.containers += [None] * count
        if outputs and (
            outputs.refills
            or any(
                isinstance(part, BackReference) and part.number < count
                for part in walk(outputs.part)
            )
        ):
            raise RuntimeError(
                "the traced function returns or changes a container that it "
                "was given: give the inputs by position, or the tensors alone "
                "with run(…, enable_io_processing=False)"
            )
        return apart

    def process_outputs(self, outputs: AnyValue) -> AnyValue:
        """The outputs, nested as the traced function's.

        Raises:
            RuntimeError: there are more than were traced, or fewer.
        """
        if self.outputs is None:
            return outputs
        if text := self.outputs.problem(outputs):
            raise RuntimeError(text)
        return self.outputs(outputs, _APART.get())

    def of_other_library(self) -> AnyValue:
        """A code generator of torch.fx that writes the same."""
        return GuardedForTorch(self)

    def gen_fn_def(
        self,
        free_vars: list[str],
        maybe_return_annotation: str,
        *,
        expanded_def: bool = False,
    ) -> str:
        """The first line, and the statement that takes the inputs apart."""
        if self.inputs is None:
            return super().gen_fn_def(
                free_vars, maybe_return_annotation, expanded_def=expanded_def
            )
        known, variables = self.inputs.known, self.inputs.variables()
        named = {text.partition(":")[0].strip(): text for text in free_vars}
        named.pop("self", None)
        more = [text for name, text in named.items() if name not in known]
        lines = [
            super().gen_fn_def(
                ["self", *self.inputs.signature(more)],
                maybe_return_annotation,
                expanded_def=expanded_def,
            )
        ]
        lines += [t for n, t in named.items() if ":" in t and n in known]
        names = "".join(f"{name}, " for name in known)
        equals = "= " if names else ""
        lines.append(f"{names}{equals}{CHECK}({', '.join(variables)})")
        return f"\n{INDENT}".join(lines)

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
        if self.inputs is None:
            return f"return {NEST}({text})"
        given = "".join(f"{name}, " for name in self.inputs.variables())
        return f"return {NEST}({text}, {CHECK}.apart(({given})))"

    def additional_globals(self) -> list[tuple[str, AnyValue]]:
        """What the text calls, and defaults that have no text."""
        pairs: list[tuple[str, AnyValue]] = [(NEST, self.outputs)]
        if self.inputs is not None:
            pairs.append((CHECK, self.inputs))
            for p in self.inputs.parameters:
                if p.has_default and type(p.default) not in _PLAIN:
                    pairs.append((default_text(p), p.default))
        return pairs

    def _own_parameters(self) -> Iterable[str]:
        """The parameters of the traced function."""
        return self.inputs.variables() if self.inputs else ()


class GuardedForTorch(torch_graph.CodeGen):
    """A code generator of torch.fx that hands everything to one of fx."""

    def __init__(self, ours: GuardedCodeGen) -> None:
        """Make it for a code generator of fx."""
        super().__init__()
        self._ours = ours
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

_PLAIN: Final = (type(None), bool, int, str)
"""Types of defaults that are written as they are."""


def default_text(parameter: TracedParameter) -> str:
    """How the default of a parameter is written."""
    if type(parameter.default) in _PLAIN:
        return repr(parameter.default)
    return f"_default_{parameter.variable}"


def _before(part: Part, gone: int) -> Part:
    """A part, when a leaf that it has not is no longer there."""
    if isinstance(part, TensorLeaf):
        return TensorLeaf(part.index - (part.index > gone))
    if isinstance(part, Container):
        return replace(
            part, parts=tuple(_before(inner, gone) for inner in part.parts)
        )
    return part


# -- edits of a graph ----------------------------------------------------------


def release(place: Node) -> None:
    """Let nothing of a trace need a placeholder that is about to be erased.

    Guards about it alone are no longer checked. If others compare it with an
    input that stays, or something else uses it, it keeps its users, and cannot
    be erased.
    """
    graph = place.graph
    owner: AnyValue = graph.owning_module
    users = [*place.users]
    for user in users:
        called = user.op == "call_module" and owner is not None
        guards = find(owner, str(user.target)) if called else None
        if not isinstance(guards, Guards):
            return
        if any(guards.relate(i) for i, a in enumerate(user.args) if a is place):
            return
    for user in users:
        user.args = tuple(... if arg is place else arg for arg in user.args)
    codegen, name = graph._codegen, str(place.target)
    inputs = getattr(codegen, "inputs", None)
    if isinstance(codegen, GuardedCodeGen) and inputs and name in inputs.known:
        left = inputs.without(name)
        graph.set_codegen(GuardedCodeGen(left, codegen.outputs))


def set_outputs(graph: Graph, value: AnyValue) -> None:
    """Let a graph return something else.

        fx.set_outputs(gm.graph, Result(loss, logits, hidden))
        gm.recompile()

    What a traced function has changed in its inputs is changed as before.

    Args:
        graph: of `fx.trace`, or another one whose inputs are not nested.
        value: nodes of the graph, in tuples, dicts, named tuples, dataclasses
            or other objects that `fx.trace` takes apart.

    Raises:
        TypeError: the graph has a code generator of another kind.
    """
    codegen, output = graph._codegen, graph.output_node()
    apart, inputs, before = Apart(), None, None
    if isinstance(codegen, GuardedCodeGen):
        inputs = codegen.inputs
        apart.containers += [None] * codegen.containers
        before = codegen.outputs
        if before and before.refills:
            values: AnyValue = output.args[0]
            apart.leaves += values
    elif type(codegen) is not CodeGen:
        raise TypeError(
            f"the graph has a {type(codegen).__name__}, which puts outputs "
            "together in a way of its own: graph.set_codegen(fx.CodeGen()) "
            "makes its placeholders the parameters"
        )
    part = apart.flatten(value)
    output.args = (tuple(apart.leaves),)
    outputs = Outputs(part, before.refills if before else ())
    graph.set_codegen(GuardedCodeGen(inputs, outputs))
