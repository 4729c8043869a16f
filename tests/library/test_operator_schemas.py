"""Signatures of torch's operators: the same as torch.fx's, case by case."""

from __future__ import annotations

import inspect
import numbers
import operator
import typing
import warnings
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
import torch
import torch.fx.operator_schemas as theirs
from torch import nn
from torch.nn import functional

import fx.operator_schemas as ours
from fx.operator_schemas import (
    check_for_mutable_operation,
    create_type_hint,
    get_signature_for_torch_op,
    normalize_function,
    normalize_module,
    type_matches,
)

Anything: TypeAlias = Any
Function: TypeAlias = Callable[..., Anything]

FUNCTIONS: list[Function] = [
    torch.add, torch.sub, torch.mul, torch.div, torch.matmul, torch.cat,
    torch.stack, torch.relu, torch.relu_, torch.sum, torch.mean, torch.max,
    torch.sort, torch.topk, torch.where, torch.clamp, torch.zeros, torch.ones,
    torch.full, torch.arange, torch.rand, torch.rand_like, torch.randn,
    torch.empty_like, torch.softmax, torch.layer_norm, torch.conv2d,
    torch.batch_norm, torch.dropout, torch.bernoulli, torch.normal,
    torch.index_put, torch.gather, torch.split, torch.chunk, torch.transpose,
    torch.permute, torch.reshape, torch.squeeze, torch.unsqueeze, torch.cumsum,
    torch.std, torch.var, torch.einsum, torch.lstm, torch.eq, torch.pow,
    torch.quantize_per_tensor, torch.fft.fft, torch.linalg.norm,
    functional.gelu, functional.linear, functional.one_hot,
]  # fmt: skip


def _overloads() -> list[Anything]:
    """All overloads, and all packets, of torch's own operators."""
    found: list[Anything] = []
    for name in torch._C._dispatch_get_all_op_names():
        namespace, _, rest = name.partition("::")
        base, _, overload = rest.partition(".")
        if namespace in ("aten", "prims", "quantized"):
            packet = getattr(getattr(torch.ops, namespace), base)
            found += [packet, getattr(packet, overload or "default")]
    return found


OPERATORS = _overloads()

Optional: Anything = typing.Optional
GENERATOR = (torch.Generator, Optional[torch.Generator])
"""Where torch.fx's annotation is `typing.Generator`, which takes nothing."""


def _same(mine: inspect.Signature, other: inspect.Signature) -> bool:
    """Whether two signatures are equal, Generator aside."""
    ours_, theirs_ = mine.parameters.values(), other.parameters.values()
    return [*map(str, _shape(ours_))] == [*map(str, _shape(theirs_))] and all(
        a.annotation == b.annotation
        for a, b in zip(ours_, theirs_, strict=True)
        if a.annotation not in GENERATOR and not _is_special(b.annotation)
    )


def _is_special(annotation: object) -> bool:
    """A type variable, made by each library for itself, or a script class.

    For the classes of torch.classes we say Any, which matches as little.
    """
    return "~t" in str(annotation) or "ScriptClass" in str(annotation)


def _shape(parameters: Anything) -> list[object]:
    return [(p.name, p.kind, p.default) for p in parameters]


def _theirs(op: Function) -> Anything:
    """What torch.fx answers; it stumbles over a few types and names."""
    try:
        return theirs.get_signature_for_torch_op(op, return_schemas=True)
    except (NameError, ValueError) as error:
        return error


def test_all_signatures_are_those_of_torch_fx() -> None:
    compared = stumbled = 0
    for op in [*FUNCTIONS, *OPERATORS, len, operator.add, abs]:
        expected = _theirs(op)
        signatures, schemas = get_signature_for_torch_op(
            op, return_schemas=True
        )
        assert get_signature_for_torch_op(op) == signatures
        if isinstance(expected, Exception):
            stumbled += 1
            assert signatures
            continue
        assert (signatures is None) == (expected[0] is None), op
        assert list(map(str, schemas or ())) == [*map(str, expected[1] or ())]
        for mine, other in zip(
            signatures or (), expected[0] or (), strict=True
        ):
            compared += 1
            assert _same(mine, other), (op, mine, other)
            if mine.return_annotation is not torch.Generator:
                said = other.return_annotation
                if isinstance(said, tuple):  # torch.fx before 2.15
                    said = tuple.__class_getitem__(said)
                assert mine.return_annotation == said or _is_special(said)
    assert compared > 5000
    assert 0 < stumbled < 20


def test_every_function_has_overloads_to_compare() -> None:
    assert len(FUNCTIONS) > 40
    assert [op for op in FUNCTIONS if not get_signature_for_torch_op(op)] == []


def only_signature(op: Function) -> inspect.Signature:
    """The signature of an operator that has one overload."""
    signatures = get_signature_for_torch_op(op)
    assert signatures is not None
    assert len(signatures) == 1
    return signatures[0]


def test_what_is_no_operator_has_no_signature() -> None:
    def mine() -> None: ...

    for func in (mine, nn.Linear, functional.relu, str.upper, Ellipsis):
        assert get_signature_for_torch_op(func) is None  # type: ignore[arg-type]
    assert get_signature_for_torch_op(mine, return_schemas=True) == (None, None)


def test_a_generator_is_a_generator() -> None:
    # torch.fx: `typing.Generator`, which no torch.Generator matches.
    signature = only_signature(torch.ops.aten.bernoulli.default)
    annotation = signature.parameters["generator"].annotation
    assert type_matches(annotation, torch.Generator)
    assert type_matches(annotation, type(None))


def test_types_that_torch_fx_cannot_read() -> None:
    # torch.fx: NameError, name 'tVal' is not defined.
    signatures = get_signature_for_torch_op(torch.ops.aten.keys)
    assert signatures
    assert str(signatures[0]) == "(input: Dict[str, ~t]) -> List[str]"


def test_a_name_that_comes_twice() -> None:
    # torch.fx: ValueError, duplicate parameter name: 'input'.
    op = torch.ops.aten.conv_tbc_backward.default
    signature = only_signature(op)
    assert list(signature.parameters)[:2] == ["self", "input"]


def test_a_signature_is_made_once_for_each_definition() -> None:
    # Not once for each name: torch.fx shows the first definition for ever.
    make: Anything = torch.library.Library
    seen = []
    for parameter in ("x", "renamed"):
        library = make("fx_schema_tests", "DEF")
        library.define(f"twice(Tensor {parameter}) -> Tensor")
        op = torch.ops.fx_schema_tests.twice.default
        signature = only_signature(op)
        assert only_signature(op) is signature
        seen.append(str(signature))
        library._destroy()
    assert seen == [
        "(x: torch.Tensor) -> torch.Tensor",
        "(renamed: torch.Tensor) -> torch.Tensor",
    ]


# -- normalize ---------------------------------------------------------------

X = torch.ones(2, 3)

CALLS: list[tuple[Function, tuple[Anything, ...], dict[str, Anything]]] = [
    (torch.relu, (X,), {}),
    (torch.ops.aten.add.Tensor, (X, X), {}),
    (torch.ops.aten.add.Tensor, (X,), {"other": X}),
    (torch.ops.aten.add.Tensor, (), {"input": X, "other": X, "alpha": 2}),
    (torch.ops.aten.add.Tensor, (X,), {}),
    (torch.ops.aten.clamp.default, (X, 0), {}),
    (torch.ops.aten.relu, (X,), {}),
    (torch.ops.aten.uniform_.default, (X, 0.0, 1.0), {}),
    (torch.ops.aten.uniform_.default, (X,), {}),
    (torch.ops.aten.random_.to, (X, 3), {}),
    (torch.conv2d, (X, X), {"bias": None, "padding": "same"}),
    (torch.matmul, (X, X), {}),
    (torch.sin, (X,), {"no": 1}),
    (torch.cat, ([X, X],), {"dim": 1}),
    (torch.softmax, (X, 1), {"dtype": torch.float64}),
    (functional.relu, (X,), {}),
    (functional.relu, (X, True), {}),
    (functional.max_pool2d, (X, 2), {"return_indices": False}),
    (functional.adaptive_max_pool1d, (X, 2), {}),
    (functional.dropout, (), {"input": X, "p": 0.3}),
    (functional.scaled_dot_product_attention, (X, X, X), {}),
    (functional.gelu, (X,), {}),
    (len, ([1],), {}),
    (operator.add, (X, X), {}),
    (print, (X,), {}),
]


def _name(call: tuple[Function, tuple[Anything, ...], Anything]) -> str:
    """A name for a test that is the same in each process."""
    function, args, kwargs = call
    return f"{function.__name__}-{len(args)}-{'-'.join(kwargs)}"


def _attempt(act: Callable[[], object]) -> object:
    """The result, or the type of the error."""
    try:
        return act()
    except (RuntimeError, TypeError, ValueError) as error:
        return type(error).__name__


@pytest.mark.parametrize("only_kwargs", [False, True])
@pytest.mark.parametrize("call", CALLS, ids=_name)
def test_calls_are_normalized_as_in_torch_fx(
    call: tuple[Function, tuple[Anything, ...], dict[str, Anything]],
    only_kwargs: bool,
) -> None:
    target, args, kwargs = call
    flag = {"normalize_to_only_use_kwargs": only_kwargs}
    mine = _attempt(lambda: normalize_function(target, args, kwargs, **flag))  # type: ignore[arg-type]
    other = _attempt(
        lambda: theirs.normalize_function(target, args, kwargs, **flag)  # type: ignore[arg-type]
    )
    assert str(mine) == str(other)


def test_most_calls_can_be_normalized() -> None:
    done = [_attempt(lambda c=c: normalize_function(*c)) for c in CALLS]  # type: ignore[misc]
    assert sum(isinstance(one, ours.ArgsKwargsPair) for one in done) >= 18


TYPED: list[tuple[Function, tuple[Anything, ...], tuple[Anything, ...]]] = [
    (torch.add, (1, 2), (torch.Tensor, torch.Tensor)),
    (torch.add, (1, 2), (torch.Tensor, int)),
    (torch.add, (1, 2), (torch.Tensor, float)),
    (torch.sum, (1, 2), (str, str)),
    (torch.sum, (1, 2), (torch.Tensor, int)),
    (torch.sum, (1, 2), (torch.Tensor, list[int])),
    (torch.mean, (1, 2), (torch.Tensor, tuple[int, int])),
    (torch.clamp, (1, 2, 3), (torch.Tensor, int, int)),
    (torch.clamp, (1, 2, 3), (torch.Tensor, torch.Tensor, torch.Tensor)),
    (torch.ops.aten.add, (1, 2), (torch.Tensor, torch.Tensor)),
    (torch.split, (1, 2), (torch.Tensor, int)),
    (torch.split, (1, 2), (torch.Tensor, list[int])),
    (torch.div, (1, 2), (torch.Tensor, torch.Tensor)),
    (torch.max, (1, 2), (torch.Tensor, torch.Tensor)),
    (torch.max, (1, 2), (torch.Tensor, int)),
    (torch.where, (1, 2, 3), (torch.Tensor, torch.Tensor, float)),
    (torch.pow, (1, 2), (int, torch.Tensor)),
]


@pytest.mark.parametrize("call", TYPED, ids=lambda c: f"{c[0].__name__}{c[2]}")
def test_types_choose_the_overload_as_in_torch_fx(
    call: tuple[Function, tuple[Anything, ...], tuple[Anything, ...]],
) -> None:
    target, args, types = call
    mine = normalize_function(target, args, {}, types)
    other = theirs.normalize_function(target, args, {}, types)
    assert str(mine) == str(other)
    named = dict(enumerate(types[1:], 1))
    assert named  # every call has two arguments to tell apart


def test_without_types_an_ambiguous_call_is_an_error() -> None:
    for library in (theirs, ours):
        with pytest.raises(RuntimeError) as caught:
            library.normalize_function(torch.max, (X, X))
        text = str(caught.value)
        assert text.startswith(
            f"Tried to normalize arguments to {torch.typename(torch.max)} but "
            "the schema match "
            "was ambiguous! Please provide argument types to the "
            "normalize_arguments() call. Available schemas:\n(input: torch."
        )


LOSSES: list[Function] = [
    torch.binary_cross_entropy_with_logits,
    torch.cosine_embedding_loss,
    torch.ctc_loss,
    torch.hinge_embedding_loss,
    torch.kl_div,
    torch.margin_ranking_loss,
    torch.triplet_margin_loss,
    *(
        getattr(torch._C._nn, name)
        for name in "binary_cross_entropy cross_entropy_loss huber_loss "
        "l1_loss mse_loss multi_margin_loss multilabel_margin_loss nll_loss "
        "nll_loss2d smooth_l1_loss soft_margin_loss".split()
    ),
]
"""Functions whose schema says that the default of `reduction` is the mean."""


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.__name__)
def test_a_default_that_no_schema_tells_is_left_out(loss: Function) -> None:
    # torch.fx: reduction=1, which is the mean; called without it, it is 0.
    (signature, *_) = get_signature_for_torch_op(loss) or [inspect.Signature()]
    assert signature.parameters["reduction"].default == 1
    values = signature.parameters.values()
    types = tuple([v.annotation for v in values if v.default is v.empty])
    args = tuple(range(len(types)))
    pair = normalize_function(loss, args, {}, types)
    assert pair is not None
    assert "reduction" not in pair.kwargs
    given = {"reduction": 2}
    pair = normalize_function(loss, args, given, types, {"reduction": int})
    assert pair is not None
    assert pair.kwargs["reduction"] == 2


@pytest.mark.parametrize(
    "call",
    [
        (torch.randperm, (3,), (int,)),
        (torch.randint, (3, (2,)), (int, tuple[int, ...])),
        (torch.tril_indices, (2, 2), (int, int)),
        (torch.triu_indices, (2, 2), (int, int)),
        (torch.full, ((2,), 1), (tuple[int, ...], int)),
        (torch.zeros, ((2,),), (tuple[int, ...],)),
        (torch.zeros_like, (X,), (torch.Tensor,)),
        (torch.hann_window, (3,), (int,)),
        (torch.ops.aten.randperm.default, (3,), (int,)),
        (torch.ops.aten.contiguous.default, (X,), (torch.Tensor,)),
    ],
    ids=lambda call: call[0].__name__,
)
@pytest.mark.parametrize("only_kwargs", [True, False])
def test_what_makes_a_tensor_can_be_called(
    call: tuple[Function, tuple[Anything, ...], tuple[Anything, ...]],
    only_kwargs: bool,
) -> None:
    # torch.fx: dtype=4, memory_format=0 and pin_memory=None.
    function, args, types = call
    pair = normalize_function(function, args, {}, types, None, only_kwargs)
    assert pair is not None
    kwargs = dict(pair.kwargs)
    if hasattr(function, "_schema"):
        kwargs = {"self" if k == "input" else k: v for k, v in kwargs.items()}
    made, expected = function(*pair.args, **kwargs), function(*args)
    assert made.dtype == expected.dtype
    assert made.shape == expected.shape
    assert type(kwargs.get("dtype")) in (torch.dtype, type(None))


def test_overloads_of_torchscript_are_not_functions_of_torch() -> None:
    # torch.fx: the names `a` and `b`, which torch.add does not take.
    numbers: Any = (2.0, 3.0), {}, (float, float)
    assert normalize_function(torch.add, *numbers) is None
    assert normalize_function(torch.ops.aten.add, *numbers) is None
    pair = normalize_function(torch.ops.aten.add.float, *numbers)
    assert pair == ((2.0, 3.0), {})


@pytest.mark.parametrize(
    ("given", "kind", "name"),
    [([1], list[int], "dim"), (True, bool, "unbiased"), (1, int, None)],
)
def test_an_overload_that_would_convert_comes_first(
    given: object, kind: Anything, name: str | None
) -> None:
    # torch.ops.aten.var(x, 1) takes the 1 for True; torch.fx says dim=1.
    var, types = torch.ops.aten.var, (torch.Tensor, kind)
    pair = normalize_function(var, (X, given), {}, types, None, True)
    assert (pair and [*pair.kwargs][1]) == name
    if name:
        named = var(X, **{name: given})
        assert torch.equal(named, var(X, given))


def test_a_function_written_in_c_without_a_signature_is_not_normalized() -> (
    None
):
    # torch.fx: ValueError, no signature found.
    assert normalize_function(torch.Tensor.relu, (X,)) is None


def test_nonzero_is_normalized() -> None:
    # torch.fx: None, its own table of exceptions is never read.
    assert theirs.normalize_function(torch.nonzero, (X,)) is None
    pair = normalize_function(torch.nonzero, (1,), None, None, None, True)
    assert pair == ((), {"input": 1})


def test_what_cannot_be_normalized_can_be_an_error() -> None:
    name = "_normalize_function_or_error"
    function = vars(ours)[name]
    pair = function(functional.relu, (1,))
    assert pair == ((1,), {"inplace": False})
    pair = function(torch.relu, (1,), normalize_to_only_use_kwargs=True)
    assert pair.kwargs == {"input": 1}
    for each in (vars(theirs)[name], function):
        with pytest.raises(RuntimeError, match="Failed to normalize function"):
            each(torch.sin, (1,), {"no": 2})


MODULES: list[tuple[str, tuple[Anything, ...], dict[str, Anything]]] = [
    ("0", (1,), {}),
    ("0", (), {"input": 1}),
    ("1", (1,), {"output_size": 3}),
    ("2", (1,), {}),
    ("3", (1, 2, 3), {"need_weights": False}),
    ("4.0", (1,), {}),
    ("0", (1, 2, 3), {}),
    ("9", (1,), {}),
]


@pytest.mark.parametrize("only_kwargs", [False, True])
@pytest.mark.parametrize("call", MODULES, ids=str)
def test_module_calls_are_normalized_as_in_torch_fx(
    call: tuple[str, tuple[Anything, ...], dict[str, Anything]],
    only_kwargs: bool,
) -> None:
    class Custom(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x

    root = nn.Sequential(
        nn.Linear(2, 2),
        nn.MaxUnpool2d(2),
        Custom(),
        nn.MultiheadAttention(2, 1),
        nn.Sequential(nn.ReLU()),
    )
    target, args, kwargs = call
    mine = _attempt(
        lambda: normalize_module(root, target, args, kwargs, only_kwargs)
    )
    other = _attempt(
        lambda: theirs.normalize_module(root, target, args, kwargs, only_kwargs)
    )
    assert str(mine) == str(other)


def test_a_module_that_is_not_there() -> None:
    with pytest.raises(RuntimeError, match="Tried to normalize node with"):
        normalize_module(nn.Sequential(), "0", ())


# -- types and mutation -------------------------------------------------------

List: Anything = typing.List  # noqa: UP006  (as in signatures)

SIGNATURE_TYPES: list[Anything] = [
    torch.Tensor, int, float, bool, str, numbers.Number, torch.dtype,
    List[int], List[torch.Tensor], List[float], Optional[int],
    Optional[torch.Tensor], Optional[List[int]], List[bool], type(None), Any,
    List[numbers.Number],
]  # fmt: skip
ARGUMENT_TYPES: list[Anything] = [
    torch.Tensor, nn.Parameter, int, float, bool, str, torch.dtype,
    type(None), list[int], list[torch.Tensor], list[bool], list[float],
    tuple[int, ...], tuple[int, int], tuple[torch.Tensor, int], tuple[()],
    List[int], dict[str, int], Any, complex,
]  # fmt: skip


def test_types_match_as_in_torch_fx() -> None:
    matched = 0
    for signature in SIGNATURE_TYPES:
        for argument in ARGUMENT_TYPES:
            mine = type_matches(signature, argument)
            other = theirs.type_matches(signature, argument)
            assert mine == other, (signature, argument)
            matched += mine
    assert matched > 40


def test_lists_of_optional_things_match() -> None:
    # torch.fx: "Does not support nested parametric types", and False.
    annotation = List[Optional[torch.Tensor]]
    assert type_matches(annotation, list[torch.Tensor])
    assert not type_matches(annotation, list[int])
    with pytest.warns(UserWarning, match="nested parametric types"):
        assert not theirs.type_matches(annotation, list[torch.Tensor])


@pytest.mark.parametrize(
    "types",
    [
        [], (), [int], (int,), [int, bool], [bool, int], (int, str),
        [nn.Module, nn.Linear, nn.ReLU], [nn.Linear, nn.ReLU], int, "x", None,
        (bool, bool), [list, tuple], {"a": int},
    ],
    ids=str,
)  # fmt: skip
def test_type_hints_are_those_of_torch_fx(types: object) -> None:
    assert create_type_hint(types) == theirs.create_type_hint(types)


def test_a_hint_for_what_are_no_types() -> None:
    for library in (theirs, ours):
        with pytest.warns(UserWarning, match="not able to successfully create"):
            assert library.create_type_hint([int, 3]) == [int, 3]


MUTATING: list[tuple[Function, tuple[Anything, ...], dict[str, Anything]]] = [
    (torch.relu_, (X,), {}),
    (torch.ops.aten.add_.Tensor, (X, X), {}),
    (torch.sin, (X,), {"out": X}),
    (torch.ops.aten.sin.out, (X,), {"out": X}),
]


AMBIGUOUS: list[tuple[Function, tuple[Anything, ...], dict[str, Anything]]] = [
    (torch.ops.aten.add_, (X, X), {}),
    (torch.ops.aten.fill_, (X, 1), {}),
]


@pytest.mark.parametrize("call", [*MUTATING, *AMBIGUOUS, *CALLS], ids=_name)
def test_mutable_calls_are_refused_as_in_torch_fx(
    call: tuple[Function, tuple[Anything, ...], dict[str, Anything]],
) -> None:
    def ask(check: Callable[..., None]) -> str:
        try:
            check(*call)
        except RuntimeError as error:
            return str(error)
        return "fine"

    mine = ask(check_for_mutable_operation)
    assert mine == ask(theirs.check_for_mutable_operation)
    if any(call is one for one in MUTATING):
        assert mine.startswith("Tried to trace mutable operation aten::")


def test_no_warning_comes_from_ours() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for argument in ARGUMENT_TYPES:
            for signature in SIGNATURE_TYPES:
                type_matches(signature, argument)
