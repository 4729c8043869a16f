"""Names of callables: torch.fx's text, and no surprise where it has none."""

from __future__ import annotations

import builtins
import functools
import inspect
import math
import operator
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest
import torch
import torch.fx
from torch.nn import functional

from fx.use_def.text import (
    _get_qualified_name,
    _type_repr,
    is_from_torch,
    pretty_target,
    resolves_to,
)

Anything: TypeAlias = Any


def a_function(x: object) -> object:
    return x


class Box:
    def method(self) -> None: ...

    def __call__(self) -> None: ...


a_lambda = lambda x: x  # noqa: E731
annotated: Callable[[Anything], Anything] = lambda x: x  # noqa: E731
in_a_list = [lambda x: x]
twins = (lambda x: x), (lambda x: -x)


def _overloads() -> Iterator[object]:
    for name in torch._C._dispatch_get_all_op_names():
        namespace, _, rest = name.partition("::")
        base, _, overload = rest.partition(".")
        if namespace in ("aten", "prims", "profiler"):
            packet = getattr(getattr(torch.ops, namespace), base)
            yield packet
            yield getattr(packet, overload or "default")


def _callables() -> list[object]:
    """Everything callable in the modules that programs call into."""
    homes: list[object] = [
        torch, torch.Tensor, functional, torch._C._nn, torch.fft,
        torch.linalg, torch.nn.init, torch.special, torch.functional,
        torch._VF, builtins, operator, math, inspect, types, str, list,
    ]  # fmt: skip
    found = [getattr(home, name, None) for home in homes for name in dir(home)]
    own = [a_function, Box, Box.method, Box().method, Box(), a_lambda]
    return [*filter(callable, found), *own, *_overloads()]


CALLABLES = _callables()


def _torch(ask: Callable[[Anything], str], obj: object) -> str | None:
    """What torch.fx answers, or None if it cannot."""
    try:
        return ask(obj)
    except (AttributeError, RuntimeError):
        return None


def test_every_callable_has_the_name_that_torch_fx_gives_it() -> None:
    assert len(CALLABLES) > 6000
    named = 0
    for obj in CALLABLES:
        expected = _torch(torch.fx.node._get_qualified_name, obj)
        ours = _get_qualified_name(obj)
        if expected is not None:
            named += 1
            assert ours == expected, obj
    assert named > 0.9 * len(CALLABLES)


def test_every_target_prints_as_in_torch_fx() -> None:
    for obj in ["a.b", *CALLABLES]:
        expected = _torch(torch.fx.Node._pretty_print_target, obj)
        ours = pretty_target(obj)
        assert expected is None or ours == expected, obj


def test_the_second_answer_is_the_first() -> None:
    # The second comes out of the cache, where there is one.
    first = [_get_qualified_name(obj) for obj in CALLABLES]
    assert first == [_get_qualified_name(obj) for obj in CALLABLES]


def test_from_torch_is_what_torch_fx_says() -> None:
    for obj in [torch, 1, None, torch.float32, *CALLABLES]:
        expected = torch.fx.graph._is_from_torch(obj)
        assert is_from_torch(obj) == expected, obj


@pytest.mark.parametrize(
    "module",
    [
        "torch", "torch.x", "torch.x.y", "torchvision", "xtorch", "", "torch.",
        "torch..x", "torch._dynamo", "torch._dynamo.x", "torch._inductor.x.y",
        "torch._inductor", "torch.x._dynamo.y", "torch.x._dynamo",
    ],
)  # fmt: skip
def test_from_torch_goes_by_the_module(module: str) -> None:
    def function() -> None: ...

    function.__module__ = module
    expected = torch.fx.graph._is_from_torch(function)
    assert is_from_torch(function) == expected


@pytest.mark.parametrize(
    ("func", "name"),
    [
        (functools.partial(a_function), "functools.partial"),
        (Box(), f"{__name__}.Box"),
        ([].append, "builtins.list.append"),
        (str.upper, "builtins.str.upper"),
        (torch.Generator().manual_seed, "torch._C.Generator.manual_seed"),
        (in_a_list[0], f"{__name__}.<lambda>"),
        (twins[1], f"{__name__}.<lambda>"),
        (eval("lambda x: x"), f"{__name__}.<lambda>"),
    ],
)
def test_callables_that_torch_fx_cannot_name(func: object, name: str) -> None:
    answer = _torch(torch.fx.node._get_qualified_name, func)
    # A lambda that is not assigned is a line of source to torch.fx.
    assert answer is None or not answer.isidentifier()
    assert _get_qualified_name(func) == name
    assert pretty_target(func) == name


def test_a_name_resolves_to_the_object_alone() -> None:
    assert resolves_to("torch.relu", torch.relu)
    assert resolves_to("torch.ops.aten.add.Tensor", torch.ops.aten.add.Tensor)
    assert resolves_to("len", len)
    assert resolves_to(f"{__name__}.a_function", a_function)
    for name in ("torch.relu", "torch", "relu", "torch.nope", "nope.relu", ""):
        assert not resolves_to(name, torch.relu_), name
        assert not resolves_to(name, None), name
    assert not resolves_to("torch.classes.no.thing", None)


def test_a_module_may_refuse_a_name_in_its_own_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """PEP 562: a module's `__getattr__` runs, and may raise anything."""

    def refuse(name: str) -> None:
        raise ValueError(name)

    module = types.ModuleType("refusing")
    monkeypatch.setattr(module, "__getattr__", refuse, raising=False)
    monkeypatch.setitem(sys.modules, "refusing", module)
    assert not resolves_to("refusing.relu", torch.relu)


def test_a_name_can_lie_and_resolving_tells() -> None:
    @functools.wraps(functional.relu)
    def mine(x: torch.Tensor) -> None: ...

    text = _get_qualified_name(mine)
    assert text == "torch.nn.functional.relu"
    assert is_from_torch(mine)
    assert not resolves_to(text, mine)


@pytest.mark.parametrize(
    "obj",
    [
        int, torch.Tensor, Box, list[int], list, dict[str, torch.Tensor],
        int | None, ..., a_function, None, "text", 3, type(None), tuple[()],
        Callable[[int], str], torch.nn.Module, len,
    ],
)  # fmt: skip
def test_types_are_written_as_in_torch_fx(obj: object) -> None:
    assert _type_repr(obj) == torch.fx.node._type_repr(obj)
