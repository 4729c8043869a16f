"""Extra: guards, and what is nested, in the file of a saved graph.

A guard is compiled when the graph is called, and a file may come from anyone.
So an expression that is read has to be arithmetic of sizes, or one of the few
questions that a trace asks: no other name, attribute or call.

An expression is parsed, and each piece has to be on a list. `x.size(0) **
x.size(1)` is not, though it is arithmetic, because it can take all memory. A
structure is saved as an example of it, because torch's own description of
structures is not made to be kept.
"""

from __future__ import annotations

import ast
import dataclasses
from typing import Final

from ...linked_list.namespace import is_parameter_name
from ...torch_internals import pytree
from ...usedef.values import Value
from ..saving.values import Codec
from .guarded_code import GuardedCodeGen, Inputs, Outputs, Parameter
from .guards import NAMES, Guard, Guards
from .questions import OF_MODES
from .structures import BackReference, Constant, Container, Leaf, Part

# -- writing -------------------------------------------------------------------


def data(codegen: GuardedCodeGen, codec: Codec) -> Value:
    """What a code generator is made of, as data of JSON.

    Raises:
        ValueError: it holds what has no form as data.
    """
    guards, outputs = codegen.guards, codegen.outputs
    parameters = [
        [
            *(p.name, _part(p.part, codec), p.keyword_only),
            *(p.has_default, codec.data(p.default)),
        ]
        for p in codegen.inputs.parameters
    ]
    return {
        "parameters": parameters,
        "outputs": outputs
        and [_part(part, codec) for part in (outputs.part, *outputs.refills)],
        "names": [*guards.names],
        "guards": [
            [guard.expression, codec.data(guard.value), guard.line]
            for guard in guards
        ],
        "unchecked": guards.unchecked,
        "enabled": guards.enabled,
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
        Exception: they stand for none, or an expression is not one that a
            trace writes.
    """
    names = record["names"]
    listed = [
        Guard(text, codec.value(value), str(line))
        for text, value, line in record["guards"]
    ]
    parameters = [
        Parameter(
            *(name, _made(part, codec), bool(keyword_only)),
            *(bool(has_default), codec.value(default)),
        )
        for name, part, keyword_only, has_default, default in record[
            "parameters"
        ]
    ]
    variables = [parameter.variable for parameter in parameters]
    for name in (*names, *variables):
        if not is_parameter_name(name):
            raise ValueError(f"{name!r} is not an identifier")
    for guard in listed:
        check(guard.expression, names)
    guards = Guards(names, listed)
    guards.unchecked = [*map(str, record["unchecked"])]
    guards.enabled = bool(record["enabled"])
    outputs = None
    if record["outputs"] is not None:
        first, *refills = [_made(part, codec) for part in record["outputs"]]
        outputs = Outputs(
            first, [r for r in refills if isinstance(r, Container)]
        )
    return GuardedCodeGen(Inputs(parameters, guards), outputs)


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


_SYNTAX: Final = (
    *(ast.Expression, ast.Constant, ast.Name, ast.Attribute, ast.Call),
    *(ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Load),
    *(ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.IfExp),
)
_ATTRIBUTES: Final = frozenset(
    "_C backends ceil cuda device dim dtype floor is_conj is_contiguous "
    "is_inference is_leaf is_neg layout mha requires_grad shape size sqrt "
    "storage_offset stride sym_float sym_int trunc _sym_sqrt inf nan".split()
)
"""What an expression may look up, in a tensor, in math or in torch."""
_CALLED: Final = frozenset("abs max min round identities".split())
"""What it may call by a name."""


def _is_small(operand: ast.expr) -> bool:
    """Whether an exponent is such that a power is computed at once."""
    value = operand.value if isinstance(operand, ast.Constant) else None
    return isinstance(value, int | float) and abs(value) <= 64


def check(expression: str, names: Value) -> None:
    """Raise ValueError unless a trace writes expressions such as this one."""
    known = {*names, *NAMES, *_CALLED}
    for node in ast.walk(ast.parse(expression, mode="eval")):
        right = isinstance(node, _SYNTAX)
        if isinstance(node, ast.Name):
            right = node.id in known
        elif isinstance(node, ast.Attribute):
            is_mode = OF_MODES.fullmatch(node.attr) is not None
            right = is_mode or node.attr in _ATTRIBUTES
        elif isinstance(node, ast.Constant):
            right = isinstance(node.value, int | float | str)
        elif isinstance(node, ast.BinOp):
            grows = isinstance(node.op, ast.Pow | ast.LShift)
            right = not grows or _is_small(node.right)
        if not right:
            raise ValueError(f"{expression!r} is not the expression of a guard")
