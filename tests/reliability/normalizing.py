"""Whether calls that are normalized, or matched by meaning, still do the same.

Each case is an operator of torch's own test suite (OpInfo).  It is called in
each form that there is: as `torch.f`, `torch.nn.functional.f`,
`torch._C._nn.f`, an operator of `torch.ops` and each of its overloads, a
method; with arguments by name, with defaults left out, and with numbers for
tensors.  What normalizing makes of such a call must give what the call gives,
and a pattern must not match a call that gives something else.
"""

from __future__ import annotations

import copy
import itertools
import random
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from keyword import iskeyword
from typing import Any, NamedTuple, TypeAlias

import torch
import torch.fx
from torch.fx.experimental import normalize as torch_normalize
from torch.nn import functional as F
from torch.utils import _pytree as pytree

import fx
from fx.experimental.normalize import NormalizeArgs, NormalizeOperators
from fx.operator_schemas import create_type_hint, get_signature_for_torch_op
from tests.reliability.effects import DTYPES, copied, from_torchs_tests, record
from tests.reliability.part import Outcome, Part, Plant

Anything: TypeAlias = Any


class Call(NamedTuple):
    """A call of a function, or of a method by its name."""

    target: Anything
    args: tuple[Anything, ...]
    kwargs: dict[str, Anything]

    @property
    def op(self) -> str:
        """The opcode of its node."""
        is_method = isinstance(self.target, str)
        return "call_method" if is_method else "call_function"

    def __str__(self) -> str:
        home = getattr(self.target, "__module__", "")
        name = getattr(self.target, "__name__", self.target)
        return f"{home}.{name} of {self.kinds()}"

    def kinds(self) -> str:
        """The types of its arguments."""
        given = (list(self.args), self.kwargs)
        return str(pytree.tree_map(lambda one: type(one).__name__, given))


# -- what a call gives -------------------------------------------------------


def seen(call: Callable[[], Anything]) -> str:
    """What a call gives, in words, with the same random numbers each time."""
    torch.default_generator.manual_seed(0)  # which does not ask for a GPU
    try:
        return "; ".join(map(in_words, pytree.tree_leaves(call())))
    except Exception as error:
        return f"refused: {type(error).__name__}: {str(error)[:200]}"


def in_words(one: Anything) -> str:
    """A tensor with its numbers, a number, or else the type."""
    if isinstance(one, torch.Tensor):
        is_plain = one.layout is torch.strided and not one.is_quantized
        numbers = one.tolist() if is_plain else ""
        return f"{tuple(one.shape)} {one.dtype} {one.layout} {numbers}"
    is_number = isinstance(one, (bool, int, float, complex, str, torch.dtype))
    return repr(one) if is_number else type(one).__name__


def eager(call: Call) -> str:
    """What a call gives, and its tensors afterwards.

    It is refused if it gives another result the second time.
    """

    def run() -> Anything:
        args, kwargs = given = copied((call.args, call.kwargs))
        if isinstance(call.target, str):
            got = getattr(args[0], call.target)(*args[1:], **kwargs)
        else:
            got = call.target(*args, **kwargs)
        if got is NotImplemented:
            raise TypeError("an operator of Python asks the other operand")
        return got, only_tensors(given)

    found = seen(run)
    return found if seen(run) == found else RANDOM


RANDOM = "refused: random"


def is_legal(result: str) -> bool:
    """Whether a call was not refused."""
    return not result.startswith("refused")


def only_tensors(given: Anything) -> list[torch.Tensor]:
    """The tensors among some arguments."""
    leaves = pytree.tree_leaves(given)
    return [one for one in leaves if isinstance(one, torch.Tensor)]


# -- normalizing -------------------------------------------------------------


def module_of(lib: Anything, call: Call, *, typed: bool) -> Anything:
    """A module that does one call, with an input for each of its tensors."""
    graph = lib.Graph()
    node, _ = record(graph, call.op, call.target, call.args, call.kwargs)
    graph.output(node)
    for one in graph.nodes:
        one.type = one.type if typed else None
        one.meta.update({"type": one.type} if one.type else {})
    return lib.GraphModule(torch.nn.Module(), graph)


def kind_of(given: Anything) -> Anything:
    """The type of an argument of a node."""
    if isinstance(given, list | tuple):
        return create_type_hint([*map(kind_of, given)])
    return torch.Tensor if isinstance(given, fx.Node) else type(given)


def by_arguments(gm: Anything) -> Anything:
    """The module with what `Node.normalized_arguments` gives by position.

    As in torch.fx, the names of keywords are those of functions, and some are
    not legal in code.
    """
    graph = fx.Graph()
    node: Anything = graph.graph_copy(gm.graph, {})
    kinds = {key: kind_of(given) for key, given in node.kwargs.items()}
    pair = node.normalized_arguments(gm, (*map(kind_of, node.args),), kinds)
    if pair is not None and not {"from", "input"} & {*pair.kwargs}:
        node.args, node.kwargs = pair
    graph.output(node)
    return fx.GraphModule(gm, graph)


WAYS: dict[str, Callable[[Anything], Anything]] = {
    "NormalizeArgs": lambda gm: NormalizeArgs(gm).transform(),
    "NormalizeArgs by position": lambda gm: NormalizeArgs(
        gm, normalize_to_only_use_kwargs=False
    ).transform(),
    "NormalizeOperators": lambda gm: NormalizeOperators(gm).transform(),
    "normalized_arguments": by_arguments,
}


def changed(
    lib: Anything, gm: Anything, call: Call, want: str, way: Anything
) -> str:
    """What a module of a call gives when it is written anew.

    It is "" if the call was to give that, or is written as before.
    """

    def run() -> Anything:
        made, given = way(gm), copied(only_tensors((call.args, call.kwargs)))
        if way is not copy.copy and str(made.graph) == str(gm.graph):
            return AS_IT_WAS
        interpreter = lib.Interpreter(made)
        interpreter.extra_traceback = False
        return interpreter.run(*given), given

    got = seen(run)
    return "" if got in (want, repr(AS_IT_WAS)) else got


AS_IT_WAS = "as it was"


def wrong_normalized(call: Call, want: str) -> str:
    """What is wrong with what is made of a call that gives `want`."""
    for typed in (True, False):
        gm = module_of(fx, call, typed=typed)
        for name, way in WAYS.items():
            got = changed(fx, gm, call, want, way)
            if got:
                return f"{name} of {call}: {got[:200]}, not {want[:200]}"
    return ""


def wrong_in_torch_fx(call: Call, want: str) -> str:
    """What is wrong with what torch.fx makes of a call."""
    try:
        gm = module_of(torch.fx, call, typed=True)
    except SyntaxError:  # code that calls a method of a number
        return ""
    passes: Anything = torch_normalize
    return changed(
        torch.fx,
        gm,
        call,
        want,
        lambda gm: passes.NormalizeArgs(gm).transform(),
    )


# -- matching ----------------------------------------------------------------


def pattern_of(call: Call, *, is_open: bool) -> fx.GraphModule:
    """A graph of a call with an input for each tensor, or each argument."""
    graph, count = fx.Graph(), itertools.count()

    def parameter(one: Anything) -> Anything:
        whole = is_open and not isinstance(one, list | tuple)
        if whole or isinstance(one, torch.Tensor):
            return graph.placeholder(f"x{next(count)}")
        return one

    args, kwargs = pytree.tree_map(parameter, (call.args, call.kwargs))
    op: Anything = call.op
    graph.output(graph.create_node(op, call.target, args, kwargs))
    return fx.GraphModule(torch.nn.Module(), graph)


def wrong_match(given: Sequence[tuple[Call, str]]) -> str:
    """The first call that is not the same with a pattern in its place.

    The pattern is a call that gives something else for the same arguments.  Of
    the patterns that refuse the call's arguments, which an error says, only
    those count that want a number and get a tensor.
    """
    for (here, one), (there, other) in itertools.permutations(given, 2):
        differs = one != other and RANDOM not in (one, other)
        for is_open in (False, True) if differs and is_legal(one) else ():
            pattern = pattern_of(there, is_open=is_open)
            gm = module_of(fx, here, typed=False)
            if fx.replace_pattern(gm, pattern, pattern, normalize=True):
                got = changed(fx, gm, here, one, copy.copy)
                if got and (is_legal(got) or "of type 'number'" in got):
                    return f"{there} for {here}: {got[:200]}, not {one[:200]}"
    return ""


# -- calls -------------------------------------------------------------------


def targets_of(info: Anything) -> list[Anything]:
    """All that is called by the name of an operator, methods by theirs."""
    flat = info.name.removeprefix("nn.functional.").replace(".", "_")
    c: Anything = torch._C
    homes = torch, F, c._nn, c._special, c._linalg, c._fft, torch.ops.aten
    found = [info.op]
    for each in {flat: 0, info.name.rpartition(".")[2]: 0}:
        found += [getattr(home, each, None) for home in homes]
        packet = getattr(torch.ops.aten, each, None)
        overloads = packet.overloads() if packet is not None else ()
        found += [getattr(packet, name) for name in overloads]
        method = getattr(torch.Tensor, each, None)
        found += [each] if callable(method) else []
    once: dict[int, Anything] = {id(one): one for one in found}
    return [one for one in once.values() if callable(one) or type(one) is str]


def variants(
    args: tuple[Anything, ...], kwargs: dict[str, Anything]
) -> Iterator[tuple[tuple[Anything, ...], dict[str, Anything]]]:
    """The arguments of a call, and some that are like them."""
    yield args, kwargs
    for key in kwargs:
        yield args, {k: v for k, v in kwargs.items() if k != key}
    if kwargs:
        yield args, {}
        yield (*args, *kwargs.values()), {}
    for count in range(1, len(args)):
        yield args[:count], kwargs

    def number(one: Anything) -> Anything:
        if not isinstance(one, torch.Tensor) or one.layout != torch.strided:
            return one
        return one.flatten()[0].item() if one.numel() else one

    yield pytree.tree_map(number, (args, kwargs))


def named(call: Call) -> Iterator[Call]:
    """The call with its last arguments by the names that schemas have."""
    of_torch = isinstance(call.target, types.BuiltinFunctionType)
    is_function = call.op == "call_function"
    found = get_signature_for_torch_op(call.target) if is_function else None
    for signature in found or ():
        names = [*signature.parameters]
        if not of_torch and "self" not in names:
            names = ["self" if one == "input" else one for one in names]
        for kept in range(min(len(call.args), 2)):
            given = dict(zip(names[kept:], call.args[kept:], strict=False))
            if not any(map(iskeyword, given)):
                kwargs = {**given, **call.kwargs}
                yield Call(call.target, call.args[:kept], kwargs)


def groups(info: Anything) -> Iterator[list[Call]]:
    """Calls of an operator with the same arguments, for each of their types."""
    targets, known = targets_of(info), set[str]()
    dtypes = [d for d in DTYPES if d in info.supported_dtypes("cpu")]
    for dtype in dtypes[:2]:
        samples = info.sample_inputs_func(info, "cpu", dtype, False)
        for sample in itertools.islice(samples, 12):
            given = (sample.input, *sample.args), sample.kwargs
            for args, kwargs in variants(*given):
                calls = [Call(one, args, dict(kwargs)) for one in targets]
                if calls[0].kinds() not in known:
                    known.add(calls[0].kinds())
                    yield calls


def judged(group: Sequence[Call]) -> tuple[str, str]:
    """What is wrong here, and in torch.fx, with the calls of a group."""
    given = [(call, eager(call)) for call in group]
    found, theirs = wrong_match(given), ""
    for call, want in given:
        if is_legal(want):
            theirs = theirs or wrong_in_torch_fx(call, want)
            more = [(each, eager(each)) for each in named(call)]
            for each, result in ((call, want), *more):
                if is_legal(result):
                    found = found or wrong_normalized(each, result)
    return found, theirs


# -- the part ----------------------------------------------------------------


def run(seed: int, cases: int) -> Iterator[Outcome]:
    """Judge `cases` operators; of few, some calls each."""
    warnings.simplefilter("ignore")
    common = "torch.testing._internal.common_methods_invocations"
    chosen = {
        f"{info.name} {info.variant_test_name}".strip(): info
        for info in from_torchs_tests(common, "op_db")
        # What they give is, in part, what was there.
        if "empty" not in info.name and info.name != "linalg.lstsq"
    }
    order = random.Random(seed).sample([*chosen], len(chosen))
    order.sort(key=lambda name: name not in ALWAYS)
    for name in order[:cases]:
        is_short = cases < len(chosen) and name not in ALWAYS
        found = itertools.islice(groups(chosen[name]), 3 if is_short else None)
        wrong = [*map(judged, found)]
        ours, theirs = (
            "; ".join([one[side] for one in wrong if one[side]][:2])
            for side in (0, 1)
        )
        yield Outcome(name, ours, theirs)


ALWAYS = ("nn.functional.binary_cross_entropy", "var unbiased")
"""Cases of each run: defaults that no schema tells, overloads that convert."""

SCHEMAS = "fx/operator_schemas.py"
PASS = "fx/experimental/normalize.py"
FORMS = "fx/extra/matching/call_forms.py"

PART = Part(
    "normalizing",
    "calls before and after they are normalized, and what a pattern matches",
    run,
    share=16,
    long=10_000,
    plants=(
        Plant(
            SCHEMAS, '"reduction", ', "", "losses get the mean, which have none"
        ),
        Plant(
            SCHEMAS,
            '("ScalarType", "4"): torch.int64',
            '("", ""): None',
            "a dtype is written as a number",
        ),
        Plant(
            SCHEMAS,
            "if converts and not",
            "if False and not",
            "operators of torch.ops are said to convert nothing",
        ),
        Plant(
            SCHEMAS,
            " if has_kernel(facts.full_name)",
            "",
            "functions of torch get the names of TorchScript's overloads",
        ),
        Plant(
            PASS,
            ' or "input" in facts.parameters',
            "",
            "an operator's first argument is always named self",
        ),
        Plant(
            PASS,
            "not any(map(keyword.iskeyword, changed.kwargs))",
            "True",
            "a call has an argument that no code can name",
        ),
        Plant(
            FORMS,
            "has_kernel(facts.full_name)",
            "True",
            "overloads of numbers match functions of tensors",
        ),
        Plant(
            FORMS,
            "meant or bound",
            "bound",
            "a number is taken for a truth value",
        ),
        Plant(
            FORMS,
            " and any(alike(called, other) for other, _ in meant)",
            "",
            "overloads match that no function calls with these arguments",
        ),
        Plant(
            FORMS,
            "alike(ours, theirs) and in_list == other",
            "True",
            "overloads match that have other defaults",
        ),
        Plant(
            FORMS,
            "takes or not may_be or isinstance(value, (int, float, complex))",
            "True",
            "a tensor is given for a number",
        ),
    ),
)
