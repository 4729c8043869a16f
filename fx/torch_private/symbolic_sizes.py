"""Extra: sizes that are dynamic while a program runs on fake tensors.

A `SymInt` is an int to Python that knows which expression of the inputs' sizes
it is.  When the program asks for a number or a truth value, torch's `ShapeEnv`
answers for the example, and keeps what was asked as a guard.  It can be
imported without torch's compiler, which takes a second; so nothing here may
import that.

Sizes are computed as Python computes them.  On ints, torch's expressions are
exact for sums, products, comparisons, and divisions by what is positive.  Its
rules for floats are those of real numbers, which floats do not follow, and
those for bits, powers and negative divisors are wrong in places.  So the result
of any other operation is a symbol of its own, whose text is that operation:

    round(x.shape[0] * 1.7) + 1    →    round(x.size(0) * 1.7) + 1

is a sum of a symbol, which stands for `round(…)`, and 1.  What the result is in
the example, Python says.
"""

from __future__ import annotations

import ast
import logging
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from numbers import Number
from typing import TYPE_CHECKING, Final

import torch
from torch.fx.experimental.sym_node import SymNode, to_node, wrap_node
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    GuardOnDataDependentSymNode,
    ShapeEnv,
)

from ..recording.operators import magic_methods, reflectable_magic_methods
from ..use_def.values import AnyValue
from .fake_tensors import FakeTensorMode
from .names import find
from .remembered import remembering

if TYPE_CHECKING:
    from torch._guards import Source as Source
else:
    Source = find("torch._guards:Source", needed_for="fx.trace")

_config: Final[AnyValue] = find(
    "torch.fx.experimental._config", needed_for="fx.trace"
)
_Printer: Final[AnyValue] = find(
    "torch.utils._sympy.printers:PythonPrinter", needed_for="fx.trace"
)

UNDECIDED: Final[type[Exception]] = GuardOnDataDependentSymNode
"""What is raised for a size that depends on values."""

DATA_DEPENDENT: Final[tuple[type[Exception], ...]] = (
    UNDECIDED,
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
    """A ShapeEnv that computes as Python does, and says what was asked.

    Attributes:
        noted: called with each new guard: a text, what it has to give, and
            whether that depends on what is in `late`.
        known: an operation and its operands → the SymNode that it gives.
        texts: symbol → how it is written.
        hints: symbol → what it is in the example.
        late: the symbols that are only known when the graph runs.
        unbacked: those of them that depend on values, and have no example.
        is_inside: whether torch's rules compute, and not the program.
        deferred: called with each expression of these that torch takes to
            hold from then on.
        undecided: called with the error for a question that they decide.
    """

    noted: Callable[[str, AnyValue, bool], None]
    known: dict[AnyValue, AnyValue]
    texts: dict[AnyValue, str]
    hints: dict[AnyValue, AnyValue]
    late: set[AnyValue]
    unbacked: set[AnyValue]
    is_inside: bool
    deferred: Callable[[AnyValue], None]
    undecided: Callable[[Exception], None]

    def create_unbacked_symint(
        self, *args: AnyValue, **kwargs: AnyValue
    ) -> AnyValue:
        """A size that depends on values; `texts` lacks it so far."""
        size = super().create_unbacked_symint(*args, **kwargs)
        self.unbacked.add(size.node.expr)
        return size

    def assume(
        self, orig_expr: AnyValue, *args: AnyValue, **kwargs: AnyValue
    ) -> bool:
        """Take it that an expression holds, and say so if no guard does."""
        before = self.num_deferred_runtime_asserts
        assumed: AnyValue = super().guard_or_defer_runtime_assert
        result: bool = assumed(orig_expr, *args, **kwargs)
        if self.num_deferred_runtime_asserts > before:
            self.deferred(orig_expr)
        return result

    def evaluate_expr(
        self,
        orig_expr: AnyValue,
        hint: AnyValue = None,
        *args: AnyValue,
        **kwargs: AnyValue,
    ) -> AnyValue:
        """Answer a question about sizes, and note what that relies on."""
        expr = orig_expr
        if type(hint) in (bool, float) and expr in self.texts:
            self._note(expr, hint)
            if hint == 0.0 and type(hint) is float:  # which is not -0.0
                late = not self.late.isdisjoint(expr.free_symbols)
                sign = f"math.copysign(1.0, {self.written(expr)})"
                self.noted(sign, math.copysign(1.0, hint), late)
            return hint
        before = len(self.guards)
        try:
            result = super().evaluate_expr(expr, hint, *args, **kwargs)
        except UNDECIDED as error:
            self.undecided(error)
            raise
        for guard in self.guards[before:]:
            self._note(guard.expr, value=True)
        return result

    def learn(self, expr: AnyValue) -> None:
        """Learn from a relation, but not by a division by what may be 0.

        Of `k * n == k * 2` torch would take it that n is 2; k may be 0, too.
        """
        for part in expr.args if expr.is_Relational else ():
            for product in part.expand().as_ordered_terms():
                factors = [f for f in product.args if f.free_symbols]
                if len(factors) > 1 and not all(
                    factor.is_zero is False for factor in factors
                ):
                    return
        learnt: AnyValue = super()._maybe_guard_rel
        learnt(expr)

    _maybe_guard_rel: AnyValue = learn  # which torch caches

    def _note(self, expr: AnyValue, value: AnyValue) -> None:
        """Note what is relied on from now on."""
        late = not self.late.isdisjoint(expr.free_symbols)
        self.noted(self.written(expr), value, late)

    def written(self, expression: AnyValue) -> str:
        """An expression of sympy as Python."""
        names = self.texts
        if expression in names:  # without parentheses
            return ast.unparse(ast.parse(names[expression]))
        renamed = {
            symbol: type(symbol)(
                names.get(symbol, symbol.name), **symbol.assumptions0
            )
            for symbol in expression.free_symbols
        }
        text: str = _Printer().doprint(expression.xreplace(renamed))
        return text

    # -- what is computed --------------------------------------------------

    def operate(self, form: str, *operands: AnyValue) -> AnyValue:
        """What an operator of Python gives for numbers.

        Args:
            form: how it is written, with `{}` for each operand.
            *operands: numbers; None for one that is left out.
        """
        given = [number for number in operands if number is not None]
        if not all(isinstance(x, (Number, *SYMBOLIC)) for x in given):
            return NotImplemented
        if form.count("{}") < len(given):  # the digits, or a modulus
            name = "round" if "round" in form else "pow"
            form = f"{name}({', '.join(['{}'] * len(given))})"
        if not all(type(x) in (*_KINDS, *SYMBOLIC) for x in given):
            return _function(form)(*map(specialize, given))  # of numpy, say
        first = next(x for x in given if isinstance(x, SYMBOLIC)).node
        nodes = [to_node(first, number) for number in given]
        name = _NAMES.get(form, "")
        if name:
            node = getattr(nodes[0], name)(*nodes[1:])
        else:
            node = self.opaque(form, *nodes)
        return wrap_node(node) if isinstance(node, SymNode) else node

    def compute(
        self, name: str, method: Callable[..., AnyValue], *nodes: AnyValue
    ) -> AnyValue:
        """Call a method of SymNode, or give what the same call gave before.

        Torch's rules compute the same few products of sizes over and over in a
        trace, and nineteen of twenty calls are answered from memory.
        """
        kinds = {node.pytype for node in nodes}
        is_opaque = any(node.expr.is_Symbol for node in nodes)
        if kinds == {bool} and name in _LOGIC and not is_opaque:
            return method(*nodes)
        if kinds != {int}:
            return self.opaque(_FORMS[name], *nodes)
        key = name, *[node._expr for node in nodes]  # noqa: SLF001
        if key not in self.known:
            is_division = name in ("int_floordiv", "mod")
            if name in _ROUNDING:
                self.known[key] = nodes[0]
            elif name not in _EXACT or (
                is_division and not self._is_positive(nodes[1])
            ):
                self.known[key] = self.opaque(_FORMS[name], *nodes)
            else:
                self.known[key] = method(*nodes)
        return self.known[key]

    def _is_positive(self, node: AnyValue) -> bool:
        """Whether it is, whatever the sizes are."""
        if not node.expr.free_symbols:
            return bool(node.hint > 0)
        if node.pytype is not int:
            return False
        lowest: AnyValue = self.bound_sympy(node.expr).lower
        return bool(node.expr.is_positive or lowest >= 1)

    def opaque(self, form: str, *nodes: AnyValue) -> AnyValue:
        """A symbol for an operation, of which nothing else is known.

        What it may raise, or give of another type, for other sizes is guarded.

        Raises:
            Exception: what Python raises. Then the operands are fixed.
        """
        text = form.format(*map(self._side, nodes))
        if text in self.known:
            return self.known[text]
        try:
            value = _function(form)(*[node.hint for node in nodes])
        except Exception:
            if (unknown := self._unknown(form, text, nodes)) is not None:
                return unknown
            for node in nodes:
                node.evaluate()
            raise
        kind = type(value)
        free = {s for node in nodes for s in node.expr.free_symbols}
        if not free or kind not in _KINDS:
            for node in nodes:
                node.evaluate()
            return to_node(nodes[0], value) if kind in _KINDS else value
        tree = ast.parse(text, mode="eval").body
        plain = ast.unparse(tree)
        symbol = self.create_unspecified_symbol(
            value if kind is int else 0.0, _Size(plain), DimDynamic.DYNAMIC
        )
        is_call = isinstance(tree, ast.Call)
        self.texts[symbol] = plain if is_call else f"({plain})"
        self.hints[symbol] = value
        if not self.late.isdisjoint(free):
            self.late.add(symbol)
        self.known[text] = SymNode(symbol, self, kind, value)
        may_fail = form == "{} ** {}" and kind is float  # which may overflow
        may_fail |= any(
            not self._is_positive(nodes[place])
            for place in _PARTIAL.get(form, ())
            if place == 0 or nodes[place].expr.free_symbols
        )
        if may_fail:
            asked = f"isinstance({plain}, {kind.__name__})"
            self.noted(asked, True, symbol in self.late)
        return self.known[text]

    def _unknown(
        self, form: str, text: str, nodes: tuple[AnyValue, ...]
    ) -> AnyValue:
        """A symbol for an operation on what depends on values.

        What torch's rules compute inside of a call, the graph does not, so it
        may fail there.

        Returns:
            None if it might fail, or its type is not known.
        """
        divisors = [nodes[place] for place in _PARTIAL.get(form, ())]
        is_sure = self.is_inside or all(map(self._is_positive, divisors))
        is_known = all(node.has_hint() for node in nodes)
        if is_known or not is_sure or form not in _PLAIN:
            return None
        is_float = any(node.pytype is float for node in nodes)
        made: AnyValue = (
            self.create_unbacked_symfloat()
            if (_PLAIN[form] or (float if is_float else int)) is float
            else self.create_unbacked_symint()
        )
        symbol = made.node.expr
        self.unbacked.add(symbol)
        self.texts[symbol] = f"({text})"
        if all(node.expr.free_symbols <= self.late for node in nodes):
            self.late.add(symbol)
        self.known[text] = made.node
        return made.node

    def _side(self, node: AnyValue) -> str:
        """An operand as Python."""
        if node.expr.free_symbols:
            return f"({self.written(node.expr)})"
        return f"({constant(node.hint)})"


def new_env(
    noted: Callable[[str, AnyValue, bool], None],
    deferred: Callable[[AnyValue], None],
    undecided: Callable[[Exception], None],
) -> NotedGuards:
    """An environment without symbols.

    Each size is a symbol of its own, also if two are equal in the example, and
    0 and 1 are sizes as others.  A size may depend on values; a number that
    does is refused.

    Args:
        noted: called with each new guard.
        deferred: with what is taken to hold of sizes that depend on values.
        undecided: with the error for what these would decide.
    """
    env = NotedGuards(
        allow_scalar_outputs=False,
        allow_dynamic_output_shape_ops=True,
        specialize_zero_one=False,
        duck_shape=False,
    )
    env.noted, env.deferred, env.undecided = noted, deferred, undecided
    env.known, env.texts, env.hints = {}, {}, {}
    env.late, env.unbacked, env.is_inside = set(), set(), False
    untyped: AnyValue = env
    untyped.guard_or_defer_runtime_assert = env.assume  # which torch caches
    return env


_KINDS: Final = (int, float, bool)

_ROUNDING: Final = ("ceil", "floor", "trunc", "pos")
_LOGIC: Final = ("and_", "or_", "sym_not")
_FUNCTIONS: Final = (
    *("sqrt", "cos", "cosh", "sin", "sinh", "tan", "tanh"),
    *("asin", "acos", "atan", "log2"),
)

_FORMS: Final[dict[str, str]] = {
    **{name: magic_methods[name] for name in ("add", "sub", "mul", "mod")},
    **{name: magic_methods[name] for name in ("neg", "pos", "and_", "or_")},
    **{n: magic_methods[n] for n in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{"int_floordiv": "{} // {}", "sym_not": "not {}", "abs": "abs({})"},
    **{"bitwise_and": "{} & {}", "bitwise_or": "{} | {}"},
    **{"bitwise_xor": "{} ^ {}", "lshift": "{} << {}", "rshift": "{} >> {}"},
    **{"int_truediv": "{} / {}", "float_truediv": "{} / {}"},
    **{"pow_by_natural": "{} ** {}", "float_pow": "{} ** {}"},
    **{name: f"math.{name}({{}})" for name in ("ceil", "floor", "trunc")},
    **{f"sym_{name}": f"math.{name}({{}})" for name in _FUNCTIONS},
    **{"sym_max": "torch.sym_max({}, {})", "sym_min": "torch.sym_min({}, {})"},
    **{"sym_ite": "torch.sym_ite({}, {}, {})", "sym_float": "float({})"},
}
"""Method of SymNode → what it computes, as Python."""

_NAMES: Final = {form: name for name, form in reversed([*_FORMS.items()])}

_EXACT: Final = frozenset(
    "add sub mul neg int_floordiv mod eq ne lt le gt ge sym_max sym_min".split()
)
"""Methods that compute as Python does on ints, if they divide by > 0."""

_PLAIN: Final[dict[str, type | None]] = {
    **dict.fromkeys(("float({})", "{} / {}"), float),
    **dict.fromkeys(
        [f"math.{n}({{}})" for n in ("ceil", "floor", "trunc")], int
    ),
    **dict.fromkeys(
        [f"{{}} {sign} {{}}" for sign in ("+", "-", "*", "//", "%")]
    ),
}
"""Operations that fail for a divisor of 0 alone → the type of the result.

None if it is a float where an operand is, else an int.
"""

_PARTIAL: Final[dict[str, tuple[int, ...]]] = {
    "{} ** {}": (0, 1),
    **dict.fromkeys(("{} / {}", "{} // {}", "{} % {}"), (1,)),
    **dict.fromkeys(("{} << {}", "{} >> {}"), (1,)),
    "pow({}, {}, {})": (1, 2),
}
"""Operations that may raise → operands for which they do not, if these are > 0.

Nor do they if the second is a constant, with which they succeed once.
"""


@cache
def _function(form: str) -> Callable[..., AnyValue]:
    """The function of its operands that a form is."""
    sides = (f"a[{place}]" for place in range(form.count("{}")))
    function: Callable[..., AnyValue] = eval(  # of our own text
        f"lambda *a: {form.format(*sides)}", {"math": math, "torch": torch}
    )
    return function


def constant(number: AnyValue) -> str:
    """A number of Python, as Python."""
    text = repr(number)
    return text if text.strip("-") not in ("inf", "nan") else f"float({text!r})"


def specialize(number: AnyValue) -> AnyValue:
    """The number itself, which is fixed by a guard from then on."""
    if isinstance(number, torch.SymInt):
        return int(number)
    if isinstance(number, torch.SymFloat):
        return float(number)
    return bool(number) if isinstance(number, torch.SymBool) else number


def arithmetic() -> Iterator[tuple[type, str, Callable[..., AnyValue]]]:
    """What computes sizes, or asks: holders, names, makers of replacements.

    Torch calls methods of SymNode, and a program those of numbers. Some of
    these are missing, or differ from Python's.
    """
    for name in _FORMS.keys() & vars(SymNode).keys():
        yield SymNode, name, partial(_computing, name)
    forms: dict[str, str] = {**magic_methods, "round": "round({})"}
    forms |= {name: _FORMS[name] for name in ("abs", *_ROUNDING)}
    for kind in SYMBOLIC:
        for name in forms.keys() - {"matmul", "getitem"}:
            bare, given = name.strip("_"), partial(_operated, forms[name])
            yield kind, f"__{bare}__", partial(_instead, given)
            if name in reflectable_magic_methods:
                swapped = partial(_reflected, forms[name])
                yield kind, f"__r{bare}__", partial(_instead, swapped)
        for name, function in _OTHERS.items():
            yield kind, name, partial(_instead, function)
    for name, function in _OF_FLOATS.items():
        yield torch.SymFloat, name, partial(_instead, function)
    yield (
        torch.SymBool,
        "__float__",
        partial(_instead, lambda a: float(bool(a))),
    )
    yield FakeTensorMode, "__torch_dispatch__", _asking


def _computing(
    name: str, method: Callable[..., AnyValue]
) -> Callable[..., AnyValue]:
    """The same method of SymNode, which computes as Python does."""

    def replacement(node: AnyValue, *others: AnyValue) -> AnyValue:
        env = node.shape_env
        if not isinstance(env, NotedGuards):  # of somebody else's sizes
            return method(node, *others)
        return env.compute(name, method, node, *others)

    return replacement


def _instead(
    function: Callable[..., AnyValue], method: Callable[..., AnyValue] | None
) -> Callable[..., AnyValue]:
    """A method of numbers that calls a function, if they are a trace's."""

    def replacement(number: AnyValue, *others: AnyValue) -> AnyValue:
        env = getattr(number.node, "shape_env", None)
        if isinstance(env, NotedGuards):
            return function(number, *others)
        return method(number, *others) if method else NotImplemented

    return replacement


def _operated(form: str, number: AnyValue, *others: AnyValue) -> AnyValue:
    """What an operator gives."""
    return number.node.shape_env.operate(form, number, *others)


def _reflected(form: str, number: AnyValue, other: AnyValue) -> AnyValue:
    """What it gives with its operands in reverse."""
    return number.node.shape_env.operate(form, other, number)


_OTHERS: Final[dict[str, Callable[..., AnyValue]]] = {
    "__divmod__": lambda a, b: (a // b, a % b),
    "__rdivmod__": lambda a, b: (b // a, b % a),
}
_OF_FLOATS: Final[dict[str, Callable[..., AnyValue]]] = {
    "__bool__": lambda a: bool(a != 0),
    "is_integer": lambda a: a % 1 == 0,
}
"""Methods of numbers that others make up."""


def _asking(dispatch: Callable[..., AnyValue]) -> Callable[..., AnyValue]:
    """The same method of a mode, which asks for sizes that a rule leaves out.

    Torch's rule for `squeeze` takes a dynamic size for not 1, and does not
    check that. It is asked here, whoever calls it by whatever name.
    """

    def replacement(
        mode: FakeTensorMode,
        func: AnyValue,
        types: AnyValue,
        args: AnyValue = (),
        kwargs: AnyValue = None,
    ) -> AnyValue:
        env, call = mode.shape_env, (func, types, args, kwargs or {})
        if not isinstance(env, NotedGuards):
            return dispatch(mode, *call)
        if func.name().startswith("aten::squeeze"):
            tensor, *rest = args
            dims = rest[0] if rest else range(tensor.dim())
            for dim in (dims,) if isinstance(dims, int) else dims:
                if -tensor.dim() <= dim < tensor.dim():
                    bool(tensor.shape[dim] == 1)
        if env.late or env.unbacked:  # the graph checks what each call asks
            return dispatch(mode, *call)
        return remembering(dispatch, env.known, mode, call)

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


def new_size(env: NotedGuards, text: str, value: int) -> AnyValue:
    """The SymInt of a new symbol for a size that is guarded not to be 0.

    The text is kept, so that a guard reads `x.size(1) > 4` and not `s64 > 4`.

    Args:
        env: where it belongs.
        text: how it is written.
        value: what it is in the example.
    """
    source = _Size(text)
    symbol: AnyValue = env.create_symbol(value, source, DimDynamic.DYNAMIC)
    env.texts[symbol], env.hints[symbol] = text, value
    largest: AnyValue = env.var_to_range[symbol].upper
    env.constrain_symbol_range(symbol, 1, largest)
    return env.create_symintnode(symbol, hint=value, source=source)


def new_number(env: NotedGuards, text: str, value: AnyValue) -> AnyValue:
    """The SymInt or SymFloat of a number, of which nothing is known.

    Args:
        env: where it belongs.
        text: how it is written.
        value: what it is in the example, an int or a float.
    """
    kind = type(value)
    symbol = env.create_unspecified_symbol(
        value if kind is int else 0.0, _Size(text), DimDynamic.DYNAMIC
    )
    env.texts[symbol] = text
    return wrap_node(SymNode(symbol, env, kind, value))


def expression_of(number: AnyValue) -> AnyValue:
    """The expression, of sympy, that a SymInt or the like stands for."""
    return number.node.expr


def hint_of(number: AnyValue) -> AnyValue:
    """What a SymInt or the like is in the example; all else as it is.

    A size that depends on values is taken for 2.
    """
    if not isinstance(number, SYMBOLIC) or number.node.has_hint():
        return number.node.hint if isinstance(number, SYMBOLIC) else number
    hints = number.node.shape_env.hints
    expression = expression_of(number)
    return int(
        expression.xreplace(
            {symbol: hints.get(symbol, 2) for symbol in expression.free_symbols}
        )
    )
