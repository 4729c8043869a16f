"""Extra: nested inputs and outputs of a trace, in the file of a saved graph.

A structure is saved as an example of it, because torch's own description of
structures is not made to be kept.
"""

from __future__ import annotations

import dataclasses

from ...linked_list.namespace import is_parameter_name
from ...torch_internals import pytree
from ...usedef.values import Value
from ..example_trace.guarded_code import (
    GuardedCodeGen,
    Inputs,
    Outputs,
    Parameter,
)
from ..example_trace.structures import (
    BackReference,
    Constant,
    Container,
    Leaf,
    Part,
)
from .values import Codec

# -- writing -------------------------------------------------------------------


def data(codegen: GuardedCodeGen, codec: Codec) -> Value:
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
    }


def _part(part: Part, codec: Codec) -> Value:
    """A part of the inputs or outputs, as data."""
    match part:
        case Leaf():
            return {"leaf": part.index}
        case BackReference():
            return {"again": part.number}
        case Constant():
            return {"constant": codec.data(part.value)}
    inside = [_part(inner, codec) for inner in part.parts]
    example = pytree.tree_unflatten([0] * len(inside), part.spec)
    name = part.kind and codec.allowed.name_of(part.kind)
    if dataclasses.is_dataclass(example):
        names = [field.name for field in dataclasses.fields(example)]
        given = {n: 0 for n in names if getattr(example, n) is not None}
        form = {"class": codec.allowed.name_of(type(example)), "of": given}
    else:
        form = {"value": codec.data(example)}
    return {"container": [part.number, form, inside, name]}


# -- reading -------------------------------------------------------------------


def make(record: Value, codec: Codec) -> GuardedCodeGen:
    """The code generator that data stand for.

    Raises:
        Exception: they stand for none.
    """
    inputs = outputs = None
    if record["parameters"] is not None:
        inputs = _inputs(record["parameters"], record["names"], codec)
    if record["outputs"] is not None:
        first, *refills = [_made(part, codec) for part in record["outputs"]]
        outputs = Outputs(
            first, [r for r in refills if isinstance(r, Container)]
        )
    return GuardedCodeGen(inputs, outputs)


def _inputs(rows: Value, names: Value, codec: Codec) -> Inputs:
    """The inputs that data stand for."""
    parameters = [
        Parameter(
            *(name, _made(part, codec), bool(keyword_only)),
            *(bool(has_default), codec.value(default)),
        )
        for name, part, keyword_only, has_default, default in rows
    ]
    inputs = Inputs(parameters, names)
    for name in (*inputs.known, *inputs.variables()):
        if not is_parameter_name(name):
            raise ValueError(f"{name!r} is not an identifier")
    return inputs


def _made(record: Value, codec: Codec) -> Part:
    """The part that data stand for."""
    [(tag, value)] = record.items()
    if tag == "leaf":
        return Leaf(int(value))
    if tag == "again":
        return BackReference(int(value))
    if tag == "constant":
        return Constant(codec.value(value))
    number, form, inside, name = value
    named: dict[str, Value] = codec.allowed.named
    if "class" in form:
        example = named[form["class"]](**form["of"])
    else:
        example = codec.value(form["value"])
    parts = tuple(_made(part, codec) for part in inside)
    kind = None if name is None else named[name]
    new = Container.of(int(number), example, parts, kind)
    if len(parts) != new.spec.num_children:
        raise ValueError("a container has another number of parts")
    return new
