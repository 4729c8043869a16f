"""Stage 02, use-def: what a node does besides computing its value.

A node whose value nobody uses can be removed only if nothing else is lost
with it.  `classify` answers with one of three words and its reason:

    pure      the value is all there is
    impure    an argument or some state is changed, or must be assumed so
    unknown   the code that runs is a user's, or is not there to be read

The answer comes from what torch itself says where it says something (the
schema of an operator, the tags on it), else from `effect_tables`.  It is
about one node as the graph has it: a flag that is computed at run time counts
as set, and the object of a method call is taken for a tensor if tensors have
a method of that name.
"""

from __future__ import annotations

import builtins
import cmath
import functools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType
from typing import Final, Literal, NamedTuple, ParamSpec, TypeAlias, TypeVar

import torch
from torch import Tag, nn
from torch._C import _dispatch_has_kernel
from torch._library.custom_ops import CustomOpDef
from torch._library.simple_registry import singleton
from torch._ops import HigherOrderOperator, OpOverload, OpOverloadPacket

from ..node import Node
from ..operator_schemas import builtin_name, python_signature
from ..text.dotted_path import PathError, find
from ..text.qualified_names import (
    _get_qualified_name,
    is_from_torch,
    pretty_target,
    resolves_to,
)
from ..usedef.values import Argument, Value
from .effect_tables import (
    CALLED_FOR_EFFECT,
    DRAWS_IF,
    EFFECTFUL_OPERATORS,
    FLAGS,
    FUNCTIONAL_DRAWS_IF,
    FUNCTIONAL_MODULES,
    IN_PLACE_METHODS,
    IN_PLACE_OPERATORS,
    MODULE_EFFECTS,
    PURE_BUILTINS,
    PURE_METHODS,
    PURE_TORCH,
    UPDATES_STATISTICS_IF,
    ModuleEffect,
)

__all__ = ["Effect", "classify", "has_side_effect", "is_impure", "keeper"]

P = ParamSpec("P")
R = TypeVar("R")


class Effect(NamedTuple):
    """What a node does besides computing its value.

    Attributes:
        kind: see the head of this file.
        reason: why, in one clause, for people.
        seeded: impure for this alone, that an operator of torch.ops draws
            from the random state.
    """

    kind: Literal["pure", "impure", "unknown"]
    reason: str
    seeded: bool = False


Operator: TypeAlias = OpOverload[..., Value]
"""One overload of an operator of torch."""

Rule: TypeAlias = Effect | Callable[[Node], Effect]
"""What a target says of its calls: the same of all, or by the arguments."""


# -- the questions -----------------------------------------------------------


def classify(node: Node) -> Effect:
    """Say what a node does besides computing its value, and how we know.

    Args:
        node: of any opcode.  A call_module node is read through the module
            that owns its graph, as that is now: in training or not.

    Cost: O(1) once a target has been seen; for a module, O(its submodules);
    for a module with a graph of its own, O(the nodes of that).
    """
    if node.op == "call_function":
        return _of_function(node)
    if node.op == "call_method":
        rule = _method_rule(str(node.target))
        return rule if isinstance(rule, Effect) else rule(node)
    if node.op == "call_module":
        return _of_call_module(node)
    return _OF_OPCODE[node.op]


def is_impure(node: Node, impure_random: bool = True) -> bool:
    """Whether removing the node is known to change what the program does.

    Args:
        node: of any opcode; placeholders and the output are never removable.
        impure_random: count it as an effect that an operator of torch.ops
            draws from the random state.  Other functions, methods and modules
            that draw are impure either way.

    torch.fx: node.py, Node.is_impure
    """
    effect = classify(node)
    return effect.kind == "impure" and (impure_random or not effect.seeded)


def keeper(unknown: Literal["drop", "keep"]) -> Callable[[Node], bool]:
    """The test for what dead code elimination must leave in place.

    Args:
        unknown: "drop" keeps what is impure, as torch.fx does; "keep" keeps
            all that is not pure.

    Raises:
        ValueError: `unknown` is another word.
    """
    if unknown == "drop":
        return is_impure
    if unknown == "keep":
        return lambda node: classify(node).kind != "pure"
    raise ValueError(f'unknown={unknown!r}: say unknown="drop" or "keep"')


side_effect_registry: Final = set(CALLED_FOR_EFFECT)
"""Functions that are called for their effect; see `has_side_effect`."""


def has_side_effect(fn: Callable[P, R]) -> Callable[P, R]:
    """Register a function as impure, so that no call of it is removed.

    Args:
        fn: hashable.  Comes back unchanged, so this can be a decorator.

    torch.fx: node.py, has_side_effect
    """
    side_effect_registry.add(fn)
    return fn


_REGISTERED: Final = "is registered as having an effect"

_OF_OPCODE: Final = {
    "placeholder": Effect("impure", "a parameter is part of the signature"),
    "output": Effect("impure", "the output is what the function returns"),
    "get_attr": Effect("pure", "reads an attribute"),
}


# -- functions ---------------------------------------------------------------


class _Parameter(NamedTuple):
    """A parameter, as calls can give it; `place` is None by keyword only."""

    name: str
    place: int | None = None
    default: object = None

    def is_set(
        self, args: Sequence[Argument], kwargs: Mapping[str, Argument]
    ) -> bool:
        """Whether a call gives anything but None, False and 0 for it."""
        name, place, value = self
        if name in kwargs:
            value = kwargs[name]
        elif place is not None and place < len(args):
            value = args[place]
        is_zero = isinstance(value, int | float) and value == 0
        return value is not None and not is_zero


Parameters: TypeAlias = Mapping[str, _Parameter]
"""The parameters of a function, by name."""


class _When(NamedTuple):
    """An effect that a call has if all these parameters are set."""

    needs: tuple[_Parameter, ...]
    effect: Effect


@dataclass(slots=True)
class _ByArguments:
    """The first of the effects whose parameters are set, or `otherwise`."""

    whens: tuple[_When, ...]
    otherwise: Effect

    def __call__(self, node: Node) -> Effect:
        """The effect of one call."""
        args, kwargs = node.args, node.kwargs
        for needs, effect in self.whens:
            for parameter in needs:
                if not parameter.is_set(args, kwargs):
                    break
            else:
                return effect
        return self.otherwise


def _by_keyword(name: str) -> _When:
    """What is written into because of a keyword, `out=` or `inplace=`."""
    reason = FLAGS.get(name, f"writes into what `{name}=` names")
    return _When((_Parameter(name),), Effect("impure", reason))


def _when(
    names: Sequence[str], known: Parameters, reason: str, seeded: bool = False
) -> _When:
    """An effect if `names` are set; always, if they are not all known."""
    if all(name in known for name in names):
        if names:
            reason = f"{reason} with {' and '.join(names)} set"
        needs = tuple(known[name] for name in names)
    else:
        needs = ()
    return _When(needs, Effect("impure", reason, seeded))


def _fixed_rules() -> Iterator[tuple[object, Rule]]:
    """The rules of `operator` and `math`, and of what stands in a table."""
    for module in (cmath, math, operator):
        for name, function in vars(module).items():
            bare = name.strip("_")
            text = f"{module.__name__}.{bare}"
            if not isinstance(function, BuiltinFunctionType) or bare == "call":
                continue
            if bare in IN_PLACE_OPERATORS:
                yield function, Effect("impure", f"{text} works in place")
            else:
                yield function, Effect("pure", f"{text} returns a value")
    for function in (*PURE_TORCH, *map(vars(builtins).get, PURE_BUILTINS)):
        effect = Effect("pure", f"{pretty_target(function)} returns a value")
        yield function, effect


_rules: Final[dict[int, tuple[object, Rule]]] = {
    id(function): (function, rule) for function, rule in _fixed_rules()
}
"""id of a function of torch or Python → the function and its rule.

By identity, as a user's callable may define `==`.  No user's function is put
in, so that it can go, and no operator of a library, for which an effect can
be registered at any time."""


def _of_function(node: Node) -> Effect:
    """The effect of a call_function node."""
    target = node.target
    if _is_registered(target):
        return Effect("impure", f"{pretty_target(target)} {_REGISTERED}")
    known = _rules.get(id(target))
    rule = _rule(target) if known is None else known[1]
    return rule if isinstance(rule, Effect) else rule(node)


def _is_registered(target: object) -> bool:
    """Whether `target` is in the registry."""
    try:
        return target in side_effect_registry
    except TypeError:  # it is not hashable, so it cannot be
        return False


def _rule(target: object) -> Rule:
    """The rule of a function that is not in `_rules`."""
    # torch itself wraps functions: importing torch.compile's parts replaces
    # torch.manual_seed.
    if _is_registered(getattr(target, "__wrapped__", None)):
        return Effect("impure", f"what it wraps {_REGISTERED}")
    if isinstance(target, FunctionType) and not is_from_torch(target):
        return _unknown(target)
    if isinstance(target, CustomOpDef):
        target = vars(target)["_opoverload"]
    if isinstance(target, HigherOrderOperator):
        return _higher_order_rule(target)
    operators = _operators(target)
    rule = _operator_rule(target, operators) or _python_rule(target)
    if rule is None:
        return _unknown(target)
    if not _is_from_library(target):
        _rules[id(target)] = (target, rule)
    return rule


def _unknown(target: object) -> Rule:
    """The rule of a user's function: only two keywords mean something."""
    reason = f"nothing is known of {pretty_target(target)}"
    return _ByArguments(_USUAL_KEYWORDS, Effect("unknown", reason))


_USUAL_KEYWORDS: Final = (_by_keyword("out"), _by_keyword("inplace"))


def _is_from_library(target: object) -> bool:
    """Whether `target` is an operator, but not one of torch's own."""
    own = ("aten.", "prims.")
    is_operator = isinstance(target, OpOverload | OpOverloadPacket)
    return is_operator and not str(target).startswith(own)


def _operators(target: object) -> list[Operator]:
    """The operators on tensors that a call of `target` can end in."""
    if isinstance(target, OpOverload):
        return [target]
    packet: object = target
    name = builtin_name(target)
    if name is not None and name.startswith("aten::"):
        packet = getattr(torch.ops.aten, name.removeprefix("aten::"), None)
    if not isinstance(packet, OpOverloadPacket):
        return []
    names: Callable[[], list[str]] = packet.overloads
    overloads: list[Operator] = [getattr(packet, name) for name in names()]
    # The others are parts of TorchScript, such as `sort` of a list.
    on_tensors = [op for op in overloads if _dispatch_has_kernel(_name(op))]
    return on_tensors or (overloads if packet is target else [])


def _operator_rule(
    target: object, operators: Sequence[Operator]
) -> Rule | None:
    """What schemas and tags say of a function that ends in `operators`."""
    if not operators:
        return None
    name = operators[0]._schema.name
    if name in EFFECTFUL_OPERATORS or any(map(_is_effectful, operators)):
        return Effect("impure", f"{name} {_REGISTERED}")
    outs, functional = ["out"], []
    for op in operators:
        written = _written(op)
        if not written:
            functional.append(op)
        elif len(operators) > 1 and all(one.kwarg_only for one in written):
            outs += [one.name for one in written if one.name != "out"]
        else:
            names = " and ".join(f"`{one.name}`" for one in written)
            return Effect("impure", f"{_name(op)} writes into {names}")
    base = name.removeprefix("aten::")
    parameters = _of_schema(functional[0]) if len(functional) == 1 else {}
    whens = [_by_keyword(out) for out in dict.fromkeys(outs)]
    whens += _statistics(base, name, parameters)
    if any(Tag.nondeterministic_seeded in op.tags for op in functional):
        reason = f"{name} draws from the random state"
        seeded = isinstance(target, OpOverload | OpOverloadPacket)
        gates = DRAWS_IF.get(base, ())
        whens.append(_when(gates, parameters, reason, seeded=seeded))
    otherwise = Effect("pure", f"the schema of {name} writes nothing")
    return _ByArguments(tuple(whens), otherwise)


def _name(op: Operator | HigherOrderOperator) -> str:
    """The name with its namespace: "aten::add.Tensor"."""
    name: Callable[[], str] = op.name
    if isinstance(op, HigherOrderOperator):
        return f"{op.namespace}::{name()}"
    return name()


def _written(op: Operator) -> list[torch._C.Argument]:
    """The arguments that an operator's schema marks as written."""
    return [
        argument
        for argument in op._schema.arguments
        if argument.alias_info is not None and argument.alias_info.is_write
    ]


def _of_schema(op: Operator) -> Parameters:
    """The parameters of an operator."""
    return {
        argument.name: _Parameter(
            argument.name,
            None if argument.kwarg_only else place,
            argument.default_value if argument.has_default_value() else ...,
        )
        for place, argument in enumerate(op._schema.arguments)
    }


def _is_effectful(op: Operator | HigherOrderOperator) -> bool:
    """Whether torch.library knows an effect of the operator."""
    holder = getattr(singleton.find(_name(op)), "effect", None)
    return getattr(holder, "effect", None) is not None


def _higher_order_rule(op: HigherOrderOperator) -> Rule:
    """Operators that call others: what they do is in what they are given."""
    name = _name(op)
    if name in EFFECTFUL_OPERATORS or _is_effectful(op):
        return Effect("impure", f"{name} {_REGISTERED}")
    if name.startswith("higher_order::auto_functionalized"):
        return _auto_functionalized
    return Effect("unknown", f"{name} runs what it is given")


def _auto_functionalized(node: Node) -> Effect:
    """A mutable operator on copies: only a registered effect is left."""
    inner = node.args[0] if node.args else None
    if _is_registered(inner) or (
        isinstance(inner, OpOverload)
        and inner._schema.name in EFFECTFUL_OPERATORS
    ):
        return Effect("impure", f"{inner} {_REGISTERED}")
    return Effect("pure", f"{inner} writes into copies")


def _statistics(base: str, name: str, known: Parameters) -> list[_When]:
    """When a function updates the statistics of a batch norm, if it does."""
    gates = UPDATES_STATISTICS_IF.get(base)
    if gates is None:
        return []
    reason = f"{name} writes into running_mean and running_var"
    return [_when(("running_mean", *gates), known, reason)]


def _python_rule(target: object) -> Rule | None:
    """What is known of a function that torch has in Python."""
    text = _get_qualified_name(target)
    module, _, name = text.rpartition(".")
    # A decorator copies names: only what is found under its name is torch's.
    if not text.startswith("torch.") or not resolves_to(text, target):
        return None
    if module == "torch.Tensor":
        return _method_rule(name)
    if name.endswith("_"):
        return Effect("impure", f"{text} works in place, as its name says")
    signature = python_signature(target) if callable(target) else None
    if signature is None or module not in FUNCTIONAL_MODULES:
        return None
    known = {
        one.name: _Parameter(one.name, place, one.default)
        for place, one in enumerate(signature.parameters.values())
    }
    gates = FUNCTIONAL_DRAWS_IF.get(name)
    whens = _statistics(name, text, known)
    if gates is not None:
        reason = f"{text} draws from the random state"
        whens.append(_when(gates, known, reason))
    for flag, reason in FLAGS.items():
        # Dropout works in place exactly when it draws.
        if flag in known and not (flag == "inplace" and "p" in (gates or ())):
            needs = (known[flag],)
            whens.append(_When(needs, Effect("impure", reason)))
    otherwise = Effect("pure", f"{text} returns a value")
    return _ByArguments(tuple(whens), otherwise)


# -- methods -----------------------------------------------------------------


@functools.lru_cache(maxsize=4096)
def _method_rule(name: str) -> Rule:
    """The rule of a method by its name."""
    if name.endswith("_") and not name.endswith("__"):
        return Effect("impure", f"`.{name}()` works in place, by its name")
    if name in IN_PLACE_METHODS:
        return Effect("impure", f"`.{name}()` is called for what it changes")
    if not hasattr(torch.Tensor, name):
        return Effect("unknown", f"tensors have no method `{name}`")
    packet = getattr(torch.ops.aten, name, None)
    rule = _operator_rule(None, _operators(packet))
    if rule is not None:
        return rule
    if name in PURE_METHODS or name.startswith("__"):
        return Effect("pure", f"`.{name}()` of a tensor returns a value")
    return Effect("unknown", f"no schema speaks for torch.Tensor.{name}")


# -- modules -----------------------------------------------------------------


def _of_call_module(node: Node) -> Effect:
    """The effect of a call_module node."""
    if node.graph.owning_module is None:
        return Effect("unknown", "the graph has no module to look into")
    try:
        module = find(node.graph.owning_module, str(node.target))
    except PathError as error:
        return Effect("unknown", str(error))
    return _of_module(module, type(node.graph))


def _of_module(module: object, graph_class: type) -> Effect:
    """The effect of calling a module; of all its parts, the worst."""
    name = type(module).__qualname__
    if getattr(module, "_is_impure", False):
        return Effect("impure", f"{name} says so: _is_impure is set")
    graph: Value = getattr(module, "graph", None)
    if isinstance(graph, graph_class):
        return _worst(
            f"nothing in the graph of {name} has an effect", _calls(graph)
        )
    if isinstance(module, nn.Module) and _is_of_torch(type(module)):
        return _worst(f"{name} changes nothing", _parts(module, graph_class))
    return Effect("unknown", f"{name} is not of torch.nn, and has no graph")


def _calls(graph: Value) -> Iterator[tuple[str, Effect]]:
    """The effects of a graph's nodes, parameters and output aside."""
    for node in graph.nodes:
        if node.op not in ("placeholder", "output"):
            yield f"{node.name}: ", classify(node)


def _parts(
    module: nn.Module, graph_class: type
) -> Iterator[tuple[str, Effect]]:
    """The effects of a module of torch.nn itself, then of its children."""
    cls: Value = type(module)  # a class is hashable, but not to mypy
    name = cls.__qualname__
    for _, applies, what in _module_effects(cls):
        if applies(module):
            yield "", Effect("impure", f"{name} {what}")
    for kind in ("_forward_pre_hooks", "_forward_hooks"):
        if getattr(module, kind):
            yield "", Effect("unknown", f"{name} has forward hooks")
    if "forward" in vars(module):
        yield "", Effect("unknown", f"{name} has a forward of its own")
    for path, child in module.named_children():
        yield f"{path}: ", _of_module(child, graph_class)


@functools.lru_cache(maxsize=256)
def _module_effects(cls: type[object]) -> list[ModuleEffect]:
    """What instances of a class of torch.nn might do."""
    return [one for one in MODULE_EFFECTS if issubclass(cls, one.cls)]


def _is_of_torch(cls: type) -> bool:
    """Whether a module class is one of torch.nn that does what it is told."""
    where = f"{cls.__module__}."
    return where.startswith(("torch.nn.modules.", "torch.nn.utils."))


def _worst(pure: str, parts: Iterable[tuple[str, Effect]]) -> Effect:
    """The first impure effect, else the first unknown one, else pure."""
    worst = Effect("pure", pure)
    for path, effect in parts:
        if effect.kind == "impure":
            return Effect("impure", f"{path}{effect.reason}")
        if effect.kind == "unknown" and worst.kind == "pure":
            worst = Effect("unknown", f"{path}{effect.reason}")
    return worst
