"""Stage 03, proxies and magic methods: the one table of Python's operators.

`x + y` is three things to fx: a method `__add__` that a Proxy must have, a
function `operator.add` that the recorded node targets, and the text `x + y`
that generated code shows.  The rows below say which belong together, which
operators have a reflected form (`1 + x` asks x for `__radd__`), and which
change their first operand in place.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import BuiltinFunctionType
from typing import Final, NamedTuple


class Operator(NamedTuple):
    """An operator of Python that can be written as more than a call.

    Attributes:
        name: its name in the module `operator`: "add", "and_", "iadd".
        function: `operator.add`, what nodes have as their target.
        template: its syntax, with `{}` for each operand.
        reflected: whether it has a reflected method, `__radd__`.
        in_place: whether the syntax is a statement that changes, or binds
            again, the first operand.
    """

    name: str
    function: Callable[..., object]
    template: str
    reflected: bool
    in_place: bool

    @property
    def arity(self) -> int:
        """How many operands there are."""
        return self.template.count("{}")

    @property
    def method(self) -> str:
        """The method that Python calls for it: "__and__"."""
        return f"__{self.name.strip('_')}__"


def _rows(
    syntax: dict[Callable[..., object], str],
    *,
    reflected: bool = False,
    in_place: bool = False,
) -> list[Operator]:
    """The rows of operators of one kind."""
    return [
        Operator(function.__name__, function, template, reflected, in_place)
        for function, template in syntax.items()
    ]


OPERATORS: Final[tuple[Operator, ...]] = (
    *_rows(
        {
            operator.eq: "{} == {}",
            operator.ne: "{} != {}",
            operator.lt: "{} < {}",
            operator.le: "{} <= {}",
            operator.gt: "{} > {}",
            operator.ge: "{} >= {}",
            operator.pos: "+{}",
            operator.neg: "-{}",
            operator.invert: "~{}",
        }
    ),
    *_rows(
        {
            operator.add: "{} + {}",
            operator.sub: "{} - {}",
            operator.mul: "{} * {}",
            operator.matmul: "{} @ {}",
            operator.truediv: "{} / {}",
            operator.floordiv: "{} // {}",
            operator.mod: "{} % {}",
            operator.pow: "{} ** {}",
            operator.lshift: "{} << {}",
            operator.rshift: "{} >> {}",
            operator.and_: "{} & {}",
            operator.xor: "{} ^ {}",
            operator.or_: "{} | {}",
            # Nothing in Python calls `__rgetitem__`, but torch.fx defines it.
            operator.getitem: "{}[{}]",
        },
        reflected=True,
    ),
    *_rows(
        {
            operator.iadd: "{} += {}",
            operator.isub: "{} -= {}",
            operator.imul: "{} *= {}",
            operator.imatmul: "{} @= {}",
            operator.itruediv: "{} /= {}",
            operator.ifloordiv: "{} //= {}",
            operator.imod: "{} %= {}",
            operator.ipow: "{} **= {}",
            operator.ilshift: "{} <<= {}",
            operator.irshift: "{} >>= {}",
            operator.iand: "{} &= {}",
            operator.ixor: "{} ^= {}",
            operator.ior: "{} |= {}",
            operator.setitem: "{}[{}] = {}",
        },
        in_place=True,
    ),
)
"""Every operator that has a syntax; the one table of them."""

SYNTAX: Final[dict[object, Operator]] = {op.function: op for op in OPERATORS}
"""`operator.add` -> its row. `syntax_of` looks it up for any object."""


def syntax_of(function: object) -> Operator | None:
    """The row of `function`, if it is one of Python's operators.

    A user's callable is not hashed or compared, which could run its code.
    """
    if type(function) is not BuiltinFunctionType:
        return None
    return SYNTAX.get(function)


reflectable_magic_methods: Final[dict[str, str]] = {
    op.name: op.template for op in OPERATORS if op.reflected
}
"""Name -> syntax of the operators with a reflected method.

torch.fx: graph.py, reflectable_magic_methods (which has Python 2's "div" too)
"""

magic_methods: Final[dict[str, str]] = {
    op.name: op.template for op in OPERATORS if not op.in_place
}
"""Name -> syntax of the operators that give a value.

torch.fx: graph.py, magic_methods
"""

inplace_methods: Final[dict[str, str]] = {
    op.name: op.template for op in OPERATORS if op.in_place
}
"""Name -> syntax of the operators that are statements.

torch.fx: graph.py, inplace_methods
"""
