"""Extra: what a trace relied on, and the check that it holds.

    gm.guards[0]    Guard("x.size(1) > 4", True, 'File "model.py", line 3, …')

An expression is in terms of the graph's placeholders.  All of them together
are one function, compiled when it is first called, that gives their values;
to compare these with what the trace saw costs some microseconds a call.  Only
when they differ is it asked which one, and the error says that.

Inputs that are one tensor in the example must be one in each call, and others
must not: `query is key` is a question that no tensor can notice.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, overload

import torch

from ...usedef.values import Value


class GuardError(RuntimeError):
    """A graph was called with what its trace does not hold for."""


class Guard(NamedTuple):
    """Something that a trace relied on.

    Attributes:
        expression: what was asked, as Python in terms of the placeholders.
        value: the answer in the example, which must be the answer always.
        line: the line of the program that asked, as a traceback shows it; ""
            for what each trace relies on.
    """

    expression: str
    value: Value
    line: str = ""

    @property
    def asked(self) -> str:
        """The expression, so that its value can be compared."""
        is_bool = isinstance(self.value, bool)  # a symbol may stand for one
        return f"bool({self.expression})" if is_bool else self.expression

    def __str__(self) -> str:
        """The guard as an equation."""
        if self.value is True:
            return self.expression
        return f"{self.expression} is {self.value!r}"


def identities(*tensors: torch.Tensor) -> tuple[int, ...]:
    """For each tensor, which of them is the first that is the same object."""
    ids = [*map(id, tensors)]
    return tuple(map(ids.index, ids))


def of_kind(tensor: torch.Tensor, dtype: torch.dtype, dim: int) -> torch.Tensor:
    """Check a tensor that the graph has computed, whose kind is no guard's.

    Returns:
        The tensor.

    Raises:
        GuardError: it is of another kind, or it is empty.
    """
    if tensor.dtype != dtype or tensor.dim() != dim or 0 in tensor.shape:
        what = f"has {tensor.dtype} and {tensor.dim()} dimensions"
        what = "is empty" if 0 in tensor.shape else what
        raise GuardError(
            f"the trace relied on a result of {dtype} with {dim} dimensions, "
            f"and it {what}. Trace again with an example like this one"
        )
    return tensor


def answered(answer: Value, expected: Value, message: str) -> bool:
    """Check what the graph asks again of a value that it has computed.

    It is the condition of a `torch._assert`, which no pass removes.

    Raises:
        GuardError: the answer is not the one that the trace relied on.
    """
    if answer != expected:
        raise GuardError(
            f"{message}\n  It is {answer!r}. Trace again with an example, a "
            "module and modes like these"
        )
    return True


NAMES: Final[dict[str, Value]] = {
    "math": math,
    "torch": torch,
    "identities": identities,
}
"""What expressions name besides the placeholders."""


class Guards(Sequence[Guard]):
    """What a trace relied on, as a sequence that can be switched off.

    Attributes:
        names: of the placeholders.
        enabled: whether calls of the graph are checked.  What is `False` here
            can be silently wrong.
        unchecked: sentences on what is fixed in the graph and cannot be asked
            of its inputs, such as `training` of a module.
    """

    def __init__(
        self, names: Sequence[str], guards: Iterable[Guard] = ()
    ) -> None:
        """Make them of what was noted; each is kept once.

        Args:
            names: the placeholders.
            guards: what was noted.
        """
        self.enabled: bool = True
        self.unchecked: list[str] = []
        self.names: tuple[str, ...] = tuple(names)
        by_expression: dict[str, Guard] = {}
        for guard in guards:
            by_expression.setdefault(guard.expression, guard)
        self._guards = tuple(by_expression.values())
        self._ask: Callable[..., tuple[Value, ...]] | None = None
        self._values = tuple(guard.value for guard in self._guards)

    def __reduce__(self) -> tuple[Value, ...]:
        """Pickle without the compiled function."""
        state = {"enabled": self.enabled, "unchecked": self.unchecked}
        return Guards, (self.names, self._guards), state

    def __len__(self) -> int:
        """How many there are."""
        return len(self._guards)

    @overload
    def __getitem__(self, index: int) -> Guard: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Guard]: ...
    def __getitem__(self, index: int | slice) -> Guard | Sequence[Guard]:
        """One of them, or some."""
        return self._guards[index]

    def __repr__(self) -> str:
        """Each on a line, then what is not checked."""
        lines = [*map(str, self._guards)]
        lines += [f"not checked: {text}" for text in self.unchecked]
        return "\n".join(lines)

    def check(self, leaves: Sequence[Value]) -> None:
        """Raise unless all of them hold.

        Args:
            leaves: values for the placeholders.

        Raises:
            GuardError: one does not hold. Says which, and who asked.

        Cost: O(guards), a microsecond for about ten.
        """
        if self._ask is None:
            asked = "".join(f"{guard.asked}, " for guard in self._guards)
            self._ask = self._function(f"({asked})")
        try:
            if self._ask(*leaves) == self._values:
                return
        except Exception:  # a size of a tensor that has fewer, say
            pass
        for guard in self._guards:
            self._check_one(guard, leaves)

    def _check_one(self, guard: Guard, leaves: Sequence[Value]) -> None:
        """Raise unless one of them holds."""
        try:
            answer = self._function(guard.asked)(*leaves)
        except Exception as error:
            raise self._refusal(guard, leaves, str(error)) from None
        if answer != guard.value:
            raise self._refusal(guard, leaves, f"it is {answer!r}")

    def _function(self, text: str) -> Callable[..., Value]:
        """The function of the placeholders that a text is."""
        function: Callable[..., Value] = eval(  # of our own text
            f"lambda {', '.join(self.names)}: {text}", dict(NAMES)
        )
        return function

    def _refusal(
        self, guard: Guard, leaves: Sequence[Value], problem: str
    ) -> GuardError:
        """The error for a guard that does not hold."""
        names = [*self._inputs_of(guard)]
        shapes = [
            f"{name} has the shape {tuple(leaf.shape)}"
            for name, leaf in zip(self.names, leaves, strict=False)
            if name in names and isinstance(leaf, torch.Tensor)
        ]
        return GuardError(
            f"{' and '.join(names) or 'a call'} "
            f"{'are' if len(names) > 1 else 'is'} not what the trace relied "
            f"on, {guard}, but {problem}"
            + "".join(f"\n  {shape}" for shape in shapes)
            + (f"\n  asked at {guard.line}" if guard.line else "")
            + f"\n  {_advice(guard)}"
        )

    def _inputs_of(self, guard: Guard) -> Iterator[str]:
        """The placeholders that a guard is about."""
        for name in self.names:
            if re.search(rf"\b{name}\b", guard.expression):
                yield name


def _advice(guard: Guard) -> str:
    """What to do about a guard that does not hold."""
    if ".size(" in guard.expression and guard.line:
        return (
            "Trace again with an example of this size, or let the line ask "
            "something else; fx.trace(…, leaves=[…]) keeps a function whole"
        )
    if ".size(" in guard.expression:
        return "The size was fixed by fx.trace(…, dynamic=…): let it vary there"
    return "Trace again with an example like this one"
