"""Stage 03, proxies and magic methods: the one table of Python's operators.

`x + y` is three things to fx: a method `__add__` that a Proxy must have, a
function `operator.add` that the recorded node targets, and the text `x + y`
that generated code shows.  The rows below say which belong together, which
operators have a reflected form (`1 + x` asks x for `__radd__`), and which
change their first operand in place.

The three must agree: `x @ y` recorded as `operator.mul` would trace, run, and
be wrong.  So everything that knows operators is made from the rows or compared
with them.
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
        in_place: whether the syntax is a statement that changes, or binds
            again, the first operand.
    """

    name: str
    function: Callable[..., object]
    template: str
    in_place: bool

    @property
    def arity(self) -> int:
        """How many operands there are."""
        return self.template.count("{}")


reflectable_magic_methods: Final[dict[str, str]] = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "matmul": "{} @ {}",
    "truediv": "{} / {}",
    "floordiv": "{} // {}",
    "mod": "{} % {}",
    "pow": "{} ** {}",
    "lshift": "{} << {}",
    "rshift": "{} >> {}",
    "and_": "{} & {}",
    "xor": "{} ^ {}",
    "or_": "{} | {}",
    # Nothing in Python calls `__rgetitem__`, but torch.fx defines it.
    "getitem": "{}[{}]",
}
"""Name -> syntax of the operators with a reflected method.

torch.fx: graph.py, reflectable_magic_methods (which has Python 2's "div" too)
"""

magic_methods: Final[dict[str, str]] = {
    "eq": "{} == {}",
    "ne": "{} != {}",
    "lt": "{} < {}",
    "le": "{} <= {}",
    "gt": "{} > {}",
    "ge": "{} >= {}",
    "pos": "+{}",
    "neg": "-{}",
    "invert": "~{}",
    **reflectable_magic_methods,
}
"""Name -> syntax of the operators that give a value.

torch.fx: graph.py, magic_methods
"""

inplace_methods: Final[dict[str, str]] = {
    "iadd": "{} += {}",
    "isub": "{} -= {}",
    "imul": "{} *= {}",
    "imatmul": "{} @= {}",
    "itruediv": "{} /= {}",
    "ifloordiv": "{} //= {}",
    "imod": "{} %= {}",
    "ipow": "{} **= {}",
    "ilshift": "{} <<= {}",
    "irshift": "{} >>= {}",
    "iand": "{} &= {}",
    "ixor": "{} ^= {}",
    "ior": "{} |= {}",
    "setitem": "{}[{}] = {}",
}
"""Name -> syntax of the operators that are statements.

torch.fx: graph.py, inplace_methods
"""

OPERATORS: Final[tuple[Operator, ...]] = tuple(
    Operator(name, getattr(operator, name), syntax, name in inplace_methods)
    for name, syntax in {**magic_methods, **inplace_methods}.items()
)
"""Every operator that has a syntax."""

SYNTAX: Final[dict[object, Operator]] = {op.function: op for op in OPERATORS}
"""`operator.add` -> its row. `syntax_of` looks it up for any object."""


def syntax_of(function: object) -> Operator | None:
    """The row of `function`, if it is one of Python's operators.

    A user's callable is not hashed or compared, which could run its code.
    """
    if type(function) is not BuiltinFunctionType:
        return None
    return SYNTAX.get(function)
