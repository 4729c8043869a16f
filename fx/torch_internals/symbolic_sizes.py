"""Extra: sizes that stay free while a program runs on fake tensors.

A `SymInt` is an int to Python that knows which expression of the inputs' sizes
it is.  When the program asks for a number or a truth value, torch's `ShapeEnv`
answers for the example, and keeps what was asked as a guard.  It can be
imported without torch's compiler, which takes a second; so nothing here may
import that.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

import torch
from torch.fx.experimental.sym_node import SymNode
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    GuardOnDataDependentSymNode,
    ShapeEnv,
)

from ..usedef.values import Value
from .fake_tensors import FakeTensorMode
from .names import find

if TYPE_CHECKING:
    from torch._guards import Source as Source
else:
    Source = find("torch._guards:Source", needed_for="fx.trace")

_config: Final[Value] = find(
    "torch.fx.experimental._config", needed_for="fx.trace"
)
_Printer: Final[Value] = find(
    "torch.utils._sympy.printers:PythonPrinter", needed_for="fx.trace"
)

DATA_DEPENDENT: Final[tuple[type[Exception], ...]] = (
    GuardOnDataDependentSymNode,
    *[
        find(f"torch._subclasses.fake_tensor:{name}", needed_for="fx.trace")
        for name in (
            "DataDependentOutputException",
            "DynamicOutputShapeException",
        )
    ],
)
"""What is raised where a fake tensor would need data."""

UNSUPPORTED: Final[type[Exception]] = find(
    "torch._subclasses.fake_tensor:UnsupportedOperatorException",
    needed_for="fx.trace",
)
"""What is raised for an operator that cannot run without data."""

SYMBOLIC: Final = (torch.SymInt, torch.SymFloat, torch.SymBool)
"""The types of numbers that are expressions."""


class _Name(str):
    """The name of a source: an attribute, or a method up to torch 2.11."""

    __slots__ = ()

    def __call__(self) -> str:
        """The name."""
        return self


class _Size(Source):
    """Where a symbol comes from, as a ShapeEnv wants to be told.

    Most of torch's own sources are in its compiler, which is not imported.
    """

    def __init__(self, name: str) -> None:
        """Make the source of a size that is written so."""
        vars(self)["name"] = _Name(name)


class NotedGuards(ShapeEnv):
    """A ShapeEnv that says at once what was asked.

    Each question goes through `evaluate_expr`, and the environment has a guard
    more afterwards if the answer relies on one.

    Attributes:
        noted: called with each new guard, an expression of sympy.
        known: an operation and its operands, as expressions → what it gives.
    """

    noted: Callable[[Value], None]
    known: dict[tuple[Value, ...], Value]

    def evaluate_expr(self, *args: Value, **kwargs: Value) -> Value:
        """Answer a question about sizes, and note what that relies on."""
        before = len(self.guards)
        result = super().evaluate_expr(*args, **kwargs)
        for guard in self.guards[before:]:
            self.noted(guard.expr)
        return result


def new_env(noted: Callable[[Value], None]) -> NotedGuards:
    """An environment without symbols.

    Each size is a symbol of its own, also if two are equal in the example, and
    0 and 1 are sizes as others.  A value that only exists at run time is
    refused.

    Args:
        noted: called with each new guard.
    """
    env = NotedGuards(
        allow_scalar_outputs=False,
        allow_dynamic_output_shape_ops=False,
        specialize_zero_one=False,
        duck_shape=False,
    )
    env.noted = noted
    env.known = {}
    return env


COMPUTED: Final[tuple[Value, Iterable[str]]] = (
    SymNode,
    vars(SymNode).keys()
    & frozenset(
        "add sub mul neg int_floordiv floordiv int_truediv mod eq ne lt le gt "
        "ge sym_max sym_min sym_not and_ or_".split()
    ),
)
"""The class behind SymInt and the like, and its methods that compute."""


def remembering(method: Callable[..., Value]) -> Callable[..., Value]:
    """The same method of SymNode, which computes once in a trace.

    Torch's rules compute the same few products of sizes over and over, and
    nineteen of twenty calls are answered from memory.
    """

    def replacement(node: Value, *others: Value) -> Value:
        known = getattr(node.shape_env, "known", None)
        if known is None:  # of somebody else's sizes
            return method(node, *others)
        key: tuple[Value, ...] = (method,)
        for operand in (node, *others):
            key += operand.pytype, operand._expr  # noqa: SLF001
        if key not in known:
            known[key] = method(node, *others)
        return known[key]

    return replacement


@contextmanager
def settings() -> Iterator[None]:
    """A block in which torch does what a trace needs.

    It does not ask on its own whether a size is 1.  Its rules for broadcasting
    and strides would ask at each step; here they take it for not 1, and check
    that what they computed is right if it is.  What torch.compile has wrapped
    runs as it is.  And a rule that fails is not logged: we try another way; nor
    is what is asked of sizes, since a record of the log would keep them.

    The settings are of the process: what another thread compiles meanwhile has
    them, too.
    """
    names = FakeTensorMode.__module__, "torch.__trace"
    logs = [logging.getLogger(name) for name in names]
    compiler = sys.modules.get("torch._dynamo")
    disabled = [log.disabled for log in logs]
    for log in logs:
        log.disabled = True
    try:
        with ExitStack() as stack:
            stack.enter_context(_config.patch(backed_size_oblivious=True))
            if compiler is not None:
                inline = compiler.config.patch(error_on_nested_fx_trace=False)
                stack.enter_context(inline)
            yield
    finally:
        for log, was in zip(logs, disabled, strict=True):
            log.disabled = was


def new_size(env: NotedGuards, text: str, value: int) -> tuple[Value, Value]:
    """A symbol for a size, and the SymInt of it.

    The text is kept, so that a guard reads `x.size(1) > 4` and not `s64 > 4`.

    Args:
        env: where it belongs.
        text: how it is written.
        value: what it is in the example.
    """
    source = _Size(text)
    symbol = env.create_symbol(value, source, DimDynamic.DYNAMIC)
    return symbol, env.create_symintnode(symbol, hint=value, source=source)


def expression_of(number: Value) -> Value:
    """The expression, of sympy, that a SymInt or the like stands for."""
    return number.node.expr


def hint_of(number: Value) -> Value:
    """What a SymInt or the like is in the example; all else as it is."""
    return number.node.hint if isinstance(number, SYMBOLIC) else number


def written(expression: Value, names: dict[Value, str]) -> str:
    """An expression as Python.

    Args:
        expression: of sympy.
        names: how its symbols are written.
    """
    renamed = {
        symbol: type(symbol)(names[symbol], **symbol.assumptions0)
        for symbol in expression.free_symbols
    }
    text: str = _Printer().doprint(expression.xreplace(renamed))
    return text
