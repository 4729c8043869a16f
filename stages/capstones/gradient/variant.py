"""The operators that `--variant SEED` adds to those of the capstone's page.

Who teaches gives out a seed that is not in the repository: a program that knows
the page's operators alone does not pass, and none that lies beside does.
"""

from __future__ import annotations

import random
from typing import Final, NamedTuple

UNARY: Final = (
    *("asinh", "atan", "cos", "cosh", "erf", "expm1", "log1p", "reciprocal"),
    *("rsqrt", "sin", "sinh", "sqrt", "square"),
)
"""Functions of one tensor, with a derivative wherever it is above 0."""

BINARY: Final = ("atan2", "hypot", "logaddexp")
"""Functions of two tensors, which broadcast."""


class Operator(NamedTuple):
    """An operator, and how the programs write it.

    Attributes:
        name: that of the function, and of the method of tensors.
        operands: their names.
        is_method: whether it is written as a method.
    """

    name: str
    operands: tuple[str, ...]
    is_method: bool

    @property
    def written(self) -> str:
        """`torch.hypot(x, y)` or `x.hypot(y)`."""
        first, *others = self.operands
        if self.is_method:
            return f"{first}.{self.name}({', '.join(others)})"
        return f"torch.{self.name}({', '.join(self.operands)})"


def operators(seed: int) -> list[Operator]:
    """Five operators of one operand, and one of two; some are methods."""
    chance = random.Random(seed)
    ways = chance.sample([True, False] * 3, 6)
    names = chance.sample(UNARY, 5)
    found = [
        Operator(name, ("x",), way)
        for name, way in zip(names, ways, strict=False)
    ]
    return [*found, Operator(chance.choice(BINARY), ("x", "y"), ways[-1])]


def told(seed: int) -> str:
    """The operators of a seed, as a learner reads them."""
    return "\n".join(
        [
            "Beside those of the page, the programs use",
            *(f"  {one.written}" for one in operators(seed)),
            "where x and y are above 0, and broadcast.",
        ]
    )
