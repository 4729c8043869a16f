"""Extra: guards, and what is nested, in the file of a saved graph.

A guard is compiled when the graph is called, and a file may come from anyone.
So an expression that is read has to be arithmetic of sizes, or one of the few
questions that a trace asks: no other name, attribute or call.

An expression is parsed, and each piece has to be on a list. `x.size(0) **
x.size(1)` is not, though it is arithmetic, because it can take all memory.
"""

from __future__ import annotations

import ast
from typing import Final

from ...linked_list.namespace import is_parameter_name
from ...usedef.values import Value
from ..saving.values import Codec
from .guarded_code import GuardedCodeGen, Inputs, Outputs, Parameter
from .guards import NAMES, Guard, Guards
from .kinds import is_taken_apart
from .structures import BackReference, Constant, Container, Leaf, LeftOut, Part

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
        case LeftOut():
            return {"default": codec.data(part.value)}
        case Constant():
            return {"constant": codec.data(part.value)}
    inside = [_part(inner, codec) for inner in part.parts]
    name = codec.allowed.name_of(part.kind)
    form = codec.data(part.form.value)
    return {"container": [part.number, name, form, inside]}


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
    if tag in ("constant", "default"):
        return (Constant, LeftOut)[tag == "default"](codec.value(value))
    number, name, form, inside = value
    kind: Value = codec.allowed.named[name]
    if not is_taken_apart(kind):
        raise ValueError(f"{name} is no class that is taken apart")
    parts = tuple(_made(part, codec) for part in inside)
    return Container(int(number), kind, Constant(codec.value(form)), parts)


_SYNTAX: Final = (
    *(ast.Expression, ast.Constant, ast.Name, ast.Attribute, ast.Call),
    *(ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Load),
    *(ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.IfExp),
)
_ATTRIBUTES: Final = frozenset(
    "ceil device dim dtype floor get_autocast_dtype get_default_device "
    "get_default_dtype is_autocast_cpu_enabled is_autocast_enabled is_conj "
    "is_contiguous is_grad_enabled is_inference is_inference_mode_enabled "
    "is_leaf is_neg layout requires_grad shape size sqrt storage_offset "
    "stride sym_float sym_int trunc _sym_sqrt inf nan".split()
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
            right = node.attr in _ATTRIBUTES
        elif isinstance(node, ast.Constant):
            right = isinstance(node.value, int | float | str)
        elif isinstance(node, ast.BinOp):
            grows = isinstance(node.op, ast.Pow | ast.LShift)
            right = not grows or _is_small(node.right)
        if not right:
            raise ValueError(f"{expression!r} is not the expression of a guard")
