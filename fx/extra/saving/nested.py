"""Extra: nested inputs and outputs of a trace, in the file of a saved graph."""

from __future__ import annotations

from ...linked_list.namespace import is_parameter_name
from ...use_def.values import AnyValue
from ..example_trace.guarded_code import (
    GuardedCodeGen,
    Inputs,
    Outputs,
    TracedParameter,
)
from ..example_trace.structures import (
    BackReference,
    Constant,
    Container,
    LeftOut,
    Part,
    TensorLeaf,
    is_taken_apart,
)
from .values import Codec

# -- writing -------------------------------------------------------------------


def data(codegen: GuardedCodeGen, codec: Codec) -> AnyValue:
    """What a code generator is made of, as data of JSON.

    Raises:
        ValueError: it holds what has no form as data.
    """
    inputs, outputs = codegen.inputs, codegen.outputs
    parameters = inputs and [
        [
            *(p.name, _part(p.part, codec), p.keyword_only),
            *(p.has_default, codec.data(p.default)),
        ]
        for p in inputs.parameters
    ]
    return {
        "parameters": parameters,
        "outputs": outputs
        and [_part(part, codec) for part in (outputs.part, *outputs.refills)],
        "names": inputs and [*inputs.names],
        "numbers": inputs
        and {path: kind.__name__ for path, kind in inputs.numbers.items()},
    }


def _part(part: Part, codec: Codec) -> AnyValue:
    """A part of the inputs or outputs, as data."""
    match part:
        case TensorLeaf():
            return {"leaf": part.index}
        case BackReference():
            return {"again": part.number}
        case LeftOut():
            return {"default": codec.data(part.value)}
        case Constant():
            return {"constant": codec.data(part.value)}
    inside = [_part(inner, codec) for inner in part.parts]
    name = codec.allowed.name_of(part.kind)
    form = codec.data(part.form.value)
    return {"container": [part.number, name, form, inside]}


# -- reading -------------------------------------------------------------------


def make(record: AnyValue, codec: Codec) -> GuardedCodeGen:
    """The code generator that data stand for.

    Raises:
        Exception: they stand for none.
    """
    inputs = outputs = None
    if record["parameters"] is not None:
        inputs = _inputs(record, codec)
    if record["outputs"] is not None:
        first, *refills = [_made(part, codec) for part in record["outputs"]]
        outputs = Outputs(
            first, [r for r in refills if isinstance(r, Container)]
        )
    return GuardedCodeGen(inputs, outputs)


def _inputs(record: AnyValue, codec: Codec) -> Inputs:
    """The inputs that data stand for."""
    parameters = [
        TracedParameter(
            *(name, _made(part, codec), bool(keyword_only)),
            *(bool(has_default), codec.value(default)),
        )
        for name, part, keyword_only, has_default, default in (
            record["parameters"]
        )
    ]
    kinds = {"int": int, "float": float}
    numbers = {path: kinds[kind] for path, kind in record["numbers"].items()}
    inputs = Inputs(parameters, record["names"], numbers)
    for name in (*inputs.known, *inputs.variables()):
        if not is_parameter_name(name):
            raise ValueError(f"{name!r} is not an identifier")
    return inputs


def _made(record: AnyValue, codec: Codec) -> Part:
    """The part that data stand for."""
    [(tag, value)] = record.items()
    if tag == "leaf":
        return TensorLeaf(int(value))
    if tag == "again":
        return BackReference(int(value))
    if tag in ("constant", "default"):
        return (Constant, LeftOut)[tag == "default"](codec.value(value))
    number, name, form, inside = value
    kind: AnyValue = codec.allowed.named[name]
    if not is_taken_apart(kind):
        raise ValueError(f"{name} is no class that is taken apart")
    parts = tuple(_made(part, codec) for part in inside)
    return Container(int(number), kind, Constant(codec.value(form)), parts)
