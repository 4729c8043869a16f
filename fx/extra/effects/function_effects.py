"""Extra: what a call does besides computing its value.

`torch.add(x, 1)` computes a value and does nothing else, but with `out=y` it
writes into `y`.  The effect of a call may depend on its arguments, so what is
known of a function is a list of cases, each for calls that set some
parameters.  The first case that fits a call decides:

    torch.add                    out             impure, writes into it
                                 any other call  pure
    torch.nn.functional.dropout  p and training  impure, draws random numbers
                                 any other call  pure

The cases come from what torch itself says where it says something (the schema
and the tags of an operator, the signature of a function in Python), else from
`effect_tables`.  A flag that is computed at run time counts as set.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Final, Literal, NamedTuple, TypeAlias

import torch

from ...operator_schemas import python_signature
from ...schemas.facts import (
    OperatorInfo,
    Parameter,
    facts_of,
    facts_of_overloads,
)
from ...torch_private.modules import CustomOpDef, declared_effect
from ...torch_private.operators import has_kernel
from ...torch_private.overloads import (
    HigherOrderOperator,
    OpOverload,
    OpOverloadPacket,
    called_for_effect,
)
from ...use_def.dead_code import is_in, side_effect_registry
from ...use_def.text import (
    _get_qualified_name,
    is_from_torch,
    pretty_target,
    resolves_to,
)
from ...use_def.values import Args, Argument, Kwargs
from . import effect_tables as tables


class Effect(NamedTuple):
    """What a call does besides computing its value.

    Attributes:
        kind: "pure" if the value is all there is; "impure" if an argument or
            some state is changed, or must be assumed to be; "unknown" if a
            user's code runs, or there is no code to read. torch.fx removes
            such a call if it has no users; a pass that must be right keeps it.
        reason: why, in one clause, for people.
        only_draws: whether it is impure only because an operator of
            torch.ops draws random numbers. Without the call, all numbers that
            are drawn later are others; torch has a switch for whether that
            counts.
        target: the parameter whose elements the call overwrites and then
            returns, if it is known that it does nothing else. That was
            observed, since `uniform_` and `set_` do more. Such a call is dead
            if nobody uses the memory later.
    """

    kind: Literal["pure", "impure", "unknown"]
    reason: str
    only_draws: bool = False
    target: Parameter | None = None


class Case(NamedTuple):
    """The effect of calls that set all of some parameters.

    Attributes:
        needs: the parameters.
        effect: what such calls do.
        by_keyword: whether only a call with keywords can set them.
    """

    needs: tuple[Parameter, ...]
    effect: Effect
    by_keyword: bool = False


Cases: TypeAlias = Sequence[Case]
"""What is known of a function; the last case fits every call."""


# -- from a call to its effect -----------------------------------------------


def effect_of_function(target: object, args: Args, kwargs: Kwargs) -> Effect:
    """The effect of a call of a function, an operator or a builtin.

    Users have the last word: what they have registered, with fx or with
    torch.fx, is asked each time, as more can be added.

    Cost: O(1) once a target has been seen.
    """
    if not is_in(side_effect_registry, target):
        known = _known.get(id(target))
        cases = known[1] if known else _cases_of_function(target, args)
        effect = _first_that_fits(cases, args, kwargs)
        # What is impure anyway has its reason already.
        if effect.kind == "impure" or not is_in(called_for_effect, target):
            return effect
    return Effect("impure", f"{pretty_target(target)} {_REGISTERED}")


def effect_of_method(name: str, args: Args, kwargs: Kwargs) -> Effect:
    """The effect of a call of a method, of which only the name is known.

    The object of the method is taken for a tensor.
    """
    return _first_that_fits(_cases_of_method(name), args, kwargs)


def _first_that_fits(cases: Cases, args: Args, kwargs: Kwargs) -> Effect:
    """The effect of one call, given what is known of its target."""
    # No `all(…)`: to make a generator for each case takes time, and dead code
    # elimination asks about each node.
    for needs, effect, by_keyword in cases:
        if by_keyword and not kwargs:
            continue
        for parameter in needs:
            if not _is_set(parameter.of(args, kwargs)):
                break
        else:
            return effect
    raise AssertionError("the last case fits every call")


def _is_set(value: Argument) -> bool:
    """Whether it is anything but None, False and 0.

    The value of a node is not known, so it counts as set.
    """
    if value is None:  # most often: the parameter is not given
        return False
    # A tensor or a user's object is not asked to compare itself.
    return not (isinstance(value, int | float) and value == 0)


# -- the registry ------------------------------------------------------------

_REGISTERED: Final = "is registered as having an effect"


# -- making cases ------------------------------------------------------------


def _always(
    kind: Literal["pure", "impure", "unknown"],
    reason: str,
    target: Parameter | None = None,
) -> Cases:
    """What is known of a function whose calls all have the same effect."""
    return (Case((), Effect(kind, reason, target=target)),)


_FIRST: Final = Parameter("self", 0)
"""What an operator that works in place writes into."""


def _keyword_case(name: str) -> Case:
    """Calls that give `out=` or another keyword that is written into."""
    reason = tables.FLAGS.get(name, f"writes into what `{name}=` names")
    return Case((Parameter(name),), Effect("impure", reason), by_keyword=True)


def _impure_case(
    flags: Sequence[str],
    known: Mapping[str, Parameter],
    reason: str,
    only_draws: bool = False,
) -> Case:
    """Calls that set all of the flags that are among known parameters.

    If none is known, that is every call: where a new torch renames a flag, the
    answer errs on the safe side.
    """
    names = [name for name in flags if name in known]
    if names:
        reason = f"{reason} with {' and '.join(names)} set"
    needs = tuple([known[name] for name in names])
    return Case(needs, Effect("impure", reason, only_draws))


def _statistics_cases(
    base: str, name: str, known: Mapping[str, Parameter]
) -> list[Case]:
    """Calls that update the statistics of a batch norm, if it has any.

    The schema of `aten::native_batch_norm` does not say that it does.
    """
    if base not in tables.UPDATES_STATISTICS:
        return []
    reason = f"{name} writes into running_mean and running_var"
    return [_impure_case(tables.STATISTICS_FLAGS, known, reason)]


# -- functions ---------------------------------------------------------------


def _fixed_cases() -> Iterator[tuple[object, Cases]]:
    """What is known of `operator`, `math` and the functions in the tables."""
    for text, function in tables.OF_PYTHON:
        name = text.rpartition(".")[2]
        if name in tables.IN_PLACE_OPERATORS:
            target = None if name in ("delitem", "iconcat") else _FIRST
            reason = f"{text} works in place"
            yield function, _always("impure", reason, target)
        elif name in tables.ITERATING:
            reason = f"{text} may exhaust an iterator"
            yield function, _always("unknown", reason)
        else:
            yield function, _always("pure", f"{text} returns a value")
    for function in (
        *tables.PURE_TORCH,
        *map(vars(builtins).get, tables.PURE_BUILTINS),
    ):
        reason = f"{pretty_target(function)} returns a value"
        yield function, _always("pure", reason)


_known: Final[dict[int, tuple[object, Cases]]] = {
    id(function): (function, cases) for function, cases in _fixed_cases()
}
"""id of a function of torch or Python → the function and its cases.

By identity, as a user's callable may define `==`.  It holds no functions of
users, so that these can be freed, and no operators of libraries, for which an
effect can be registered at any time."""


def _cases_of_function(target: object, args: Args) -> Cases:
    """What is known of a function that is not in `_known`.

    Operators that call others are given them as arguments.  A user's function
    is recognized before any name is looked at, as anyone may name a function
    `torch.relu`.
    """
    if isinstance(target, HigherOrderOperator):
        return (Case((), _effect_of_higher_order(target, args)),)
    # torch itself wraps functions: importing torch.compile's parts replaces
    # torch.manual_seed.
    if is_in(side_effect_registry, getattr(target, "__wrapped__", None)):
        return _always("impure", f"what it wraps {_REGISTERED}")
    if isinstance(target, CustomOpDef):
        target = vars(target)["_opoverload"]
    cases = None
    if not isinstance(target, FunctionType) or is_from_torch(target):
        cases = _cases_of_operator(target) or _cases_of_python(target)
    if cases is None:
        reason = f"nothing is known of {pretty_target(target)}"
        return (*_USUAL_KEYWORDS, Case((), Effect("unknown", reason)))
    # An operator of a library can be unloaded; torch's own stay.
    own = ("aten.", "prims.")
    if not _is_operator(target) or str(target).startswith(own):
        _known[id(target)] = (target, cases)
    return cases


_USUAL_KEYWORDS: Final = (_keyword_case("out"), _keyword_case("inplace"))
"""What two keywords mean by convention, even for a user's function."""


def _is_operator(target: object) -> bool:
    """Whether `target` comes from torch.ops."""
    return isinstance(target, OpOverload | OpOverloadPacket)


def _cases_of_python(target: object) -> Cases | None:
    """What is known of a function that torch has in Python.

    torch.nn.functional has hundreds of functions without a schema. They keep a
    convention: a trailing underscore, or a flag `inplace`, `out` or `max_norm`.
    """
    text = _get_qualified_name(target)
    module, _, name = text.rpartition(".")
    # A decorator copies names: only what is found under its name is torch's.
    if not text.startswith("torch.") or not resolves_to(text, target):
        return None
    if module == "torch.Tensor":
        return _cases_of_method(name)
    if name.endswith("_"):
        return _always("impure", f"{text} works in place, as its name says")
    signature = python_signature(target) if callable(target) else None
    if signature is None or module not in tables.FUNCTIONAL_MODULES:
        return None
    known = {
        parameter.name: Parameter(parameter.name, place, parameter.default)
        for place, parameter in enumerate(signature.parameters.values())
    }
    cases = _statistics_cases(name, text, known)
    if name in tables.FUNCTIONAL_DRAWS:
        reason = f"{text} draws from the random state"
        cases.append(_impure_case(tables.DRAW_FLAGS, known, reason))
    first = next(iter(known.values()), None)
    for flag, reason in tables.FLAGS.items():
        # Dropout works in place exactly when it draws.
        if flag in known and not (flag == "inplace" and "p" in known):
            only_writes = (
                flag == "inplace" and name in tables.RETURNS_NEW_MEMORY
            )
            target = first if only_writes else None
            effect = Effect("impure", reason, target=target)
            cases.append(Case((known[flag],), effect))
    return (*cases, *_always("pure", f"{text} returns a value"))


# -- methods -----------------------------------------------------------------


@functools.lru_cache(maxsize=4096)
def _cases_of_method(name: str) -> Cases:
    """What is known of a method by its name."""
    packet = getattr(torch.ops.aten, name, None)
    if name.endswith("_") and not name.endswith("__"):
        target = _overwritten(overloads_on_tensors(packet))
        reason = f"`.{name}()` works in place, by its name"
        return _always("impure", reason, target)
    if name in tables.IN_PLACE_METHODS:
        return _always("impure", f"`.{name}()` is called for what it changes")
    if not hasattr(torch.Tensor, name):
        reason = f"tensors have no method `{name}`"
        return _always("unknown", reason)
    cases = _cases_of_operator(packet, is_method=True)
    if cases is not None:
        return cases
    if name in tables.PURE_METHODS or name.startswith("__"):
        return _always("pure", f"`.{name}()` of a tensor returns a value")
    return _always("unknown", f"no schema speaks for torch.Tensor.{name}")


# -- operators ---------------------------------------------------------------


def _cases_of_operator(target: object, is_method: bool = False) -> Cases | None:
    """What schemas and tags say of the overloads that a call can mean.

    A schema marks what is written, as in `add_(Tensor(a!) self, …)`, and torch
    makes its own bindings from that text.  Some operators have overloads of
    both kinds, such as `sort(self)` and `sort(self, *, values, indices)`: what
    is written and must be given by keyword makes the *call* impure that names
    it; what is given by position makes the *operator* impure.

    torch itself, in `torch._library.utils.is_impure`, asks the schema of an
    overload, or that of a packet's default overload.  For a function such as
    `torch.add` it asks none, so `torch.add(x, 1, out=x)` is pure there.
    """
    overloads = overloads_on_tensors(target)
    if not overloads:
        return None
    name = overloads[0].name
    if name in tables.EFFECTFUL_OPERATORS or any(
        _has_registered_effect(facts.full_name) for facts in overloads
    ):
        return _always("impure", f"{name} {_REGISTERED}")
    if any(facts.returns_nothing for facts in overloads):
        return _always("impure", f"{name} returns nothing: it has an effect")
    outs, functional = {"out": None}, []
    for facts in overloads:
        if not facts.writes:
            functional.append(facts)
        elif len(overloads) > 1 and all(
            out.place is None for out in facts.writes
        ):
            outs |= {out.name: None for out in facts.writes}
        else:
            names = " and ".join(f"`{out.name}`" for out in facts.writes)
            reason = f"{facts.full_name} writes into {names}"
            return _always("impure", reason, _overwritten(overloads))
    base = name.removeprefix("aten::")
    # Of two overloads, the third argument may be `p` in one and `train` in
    # the other.
    known = functional[0].parameters if len(functional) == 1 else {}
    cases = [_keyword_case(out) for out in outs]
    cases += _statistics_cases(base, name, known)
    if any(facts.draws for facts in functional):
        reason = f"{name} draws from the random state"
        only_draws = _is_operator(target) and not is_method
        flags = tables.DRAW_FLAGS if base in tables.DRAWS_IF_ASKED else ()
        cases.append(_impure_case(flags, known, reason, only_draws))
    return (*cases, *_always("pure", f"the schema of {name} writes nothing"))


def _overwritten(overloads: Sequence[OperatorInfo]) -> Parameter | None:
    """What all overloads overwrite, if they are known to do nothing else.

    Their variant without the underscore was observed, and none draws random
    numbers, as `bernoulli_` does.
    """
    for facts in overloads:
        base, _, rest = facts.base.rpartition("_")
        known = (
            not rest and base in tables.RETURNS_NEW_MEMORY and facts.is_torchs
        )
        if not known or facts.draws or len(facts.writes) != 1:
            return None
        if facts.writes != [*facts.parameters.values()][:1]:
            return None
    return _FIRST if overloads else None


def overloads_on_tensors(target: object) -> list[OperatorInfo]:
    """The overloads that a call of `target` can mean, if it is an operator.

    Which one a call of `torch.add` means depends on values that a graph does
    not have, so all are asked.
    """
    overloads = facts_of_overloads(target) or []
    # The others are parts of TorchScript, such as `sort` of a list, and some
    # of them write.
    on_tensors = [facts for facts in overloads if has_kernel(facts.full_name)]
    return on_tensors or (overloads if _is_operator(target) else [])


def _has_registered_effect(full_name: str) -> bool:
    """Whether torch.library knows an effect of the operator."""
    holder = getattr(declared_effect(full_name), "effect", None)
    return getattr(holder, "effect", None) is not None


def _effect_of_higher_order(op: HigherOrderOperator, args: Args) -> Effect:
    """Operators that call others: what they do is in what they are given."""
    own_name: Callable[[], str] = op.name
    name = f"{op.namespace}::{own_name()}"
    if name in tables.EFFECTFUL_OPERATORS or _has_registered_effect(name):
        return Effect("impure", f"{name} {_REGISTERED}")
    if not name.startswith("higher_order::auto_functionalized"):
        return Effect("unknown", f"{name} runs what it is given")
    # It runs a mutable operator on copies: only a registered effect is left.
    inner = args[0] if args else None
    facts = facts_of(inner)
    if is_in(side_effect_registry, inner) or (
        facts
        and (facts.returns_nothing or facts.name in tables.EFFECTFUL_OPERATORS)
    ):
        return Effect("impure", f"{inner} has an effect of its own")
    return Effect("pure", f"{inner} writes into copies")
