"""Extra: what a trace relied on, and the check that it holds.

    gm.guards[0]    Guard("x.size(1) > 4", True, 'File "model.py", line 3, …')

    _guards = self._guards(x, y)

They are a module, which the first node of the graph calls with the placeholders
and which is impure, so that they go wherever nodes go: into copies, other
graphs, an Interpreter, a split, graphs of torch.fx.  If the inputs are proxies,
the call is recorded.

An expression is in terms of the placeholders' names.  All of them together are
one function that gives their values; to compare these with what the trace saw
costs some microseconds a call.  Only when they differ is it asked which one,
and the error says that.

Inputs that are one tensor in the example must be one in each call, and others
must not: `query is key` is a question that no tensor can notice.

A file may come from anyone.  So an expression that is read has to be arithmetic
of sizes, or one of the few questions that a trace asks: each piece of it is on
a list. `x.size(0) ** x.size(1)` is not, because it can take all memory.
"""

from __future__ import annotations

import ast
import math
import re
import traceback
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress
from types import FunctionType
from typing import Final, NamedTuple, NoReturn, overload

import torch
from torch import nn

from ...codegen.source import where_it_failed
from ...node import Node
from ...proxy import TraceError
from ...torch_private.modules import (
    INFERENCE_MODE,
    enter_autocast,
    exit_autocast,
    switch_gradients,
)
from ...tracing.wrapping import original_of
from ...use_def.protocols import PythonCode
from ...use_def.values import PROXY_TYPES, AnyValue


class GuardError(RuntimeError):
    """A graph was called with what its trace does not hold for.

    Attributes:
        ended: the ids of blocks that were open, and have been ended.
    """

    ended: Sequence[int] = ()


class Guard(NamedTuple):
    """Something that a trace relied on.

    Attributes:
        expression: what was asked, as Python in terms of the placeholders.
        value: the answer in the example, which must be the answer always.
        line: the line of the program that asked, as a traceback shows it; ""
            for what each trace relies on.
    """

    expression: str
    value: AnyValue
    line: str = ""

    @property
    def asked(self) -> str:
        """The expression, so that its value can be compared."""
        if isinstance(self.value, bool):  # a symbol may stand for one
            return f"(True if {self.expression} else False)"
        return self.expression

    def __str__(self) -> str:
        """The guard as an equation."""
        if self.value is True:
            return self.expression
        return f"{self.expression} is {self.value!r}"


def identities(*tensors: torch.Tensor) -> tuple[int, ...]:
    """For each tensor, which of them is the first that is the same object."""
    ids = [*map(id, tensors)]
    return tuple(map(ids.index, ids))


def refuse(message: str, opened: Sequence[AnyValue]) -> NoReturn:
    """Raise in the middle of a graph, outside of the blocks that are open.

    Args:
        message: what is wrong.
        opened: what the calls that began these blocks have given.

    Raises:
        GuardError: always.
    """
    end_blocks(opened)
    error = GuardError(message)
    error.ended = [id(x) for x in opened if not isinstance(x, bool)]
    raise error


def end_blocks(opened: Sequence[AnyValue]) -> None:
    """End blocks, given what the calls that began them have given."""
    for before in reversed(opened):
        if isinstance(before, bool):
            switch_gradients(before)
        elif isinstance(before, torch.autocast):
            exit_autocast(before)
        else:
            INFERENCE_MODE[1](before)


def explained(
    error: Exception,
    forward: FunctionType,
    code: PythonCode,
    nodes: Sequence[Node],
) -> str:
    """What to print of an error in a graph; ends the blocks that it was in.

    Their variables are those that the function has not let go.
    """
    ended = getattr(error, "ended", ())
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code is forward.__code__:
            held = frame.f_locals
            here = [node for node in nodes if held.get(node.name) is not None]
            opened = [held[node.name] for node in filter(_begins, here)]
            if not any(id(each) in ended for each in opened):
                end_blocks(opened)
    return where_it_failed(error, forward, code, nodes)


def _begins(node: Node) -> bool:
    """Whether it begins a block, or says what gradients were before one."""
    users = (user.target for user in node.users)
    is_asked = node.target is original_of(torch.is_grad_enabled)
    begins = node.target in (enter_autocast, INFERENCE_MODE[0])
    return begins or (is_asked and switch_gradients in users)


def of_kind(
    tensor: torch.Tensor,
    dtype: torch.dtype,
    dim: int,
    opened: Sequence[AnyValue] = (),
) -> torch.Tensor:
    """Check a tensor that the graph has computed, whose kind is no guard's.

    Returns:
        The tensor.

    Raises:
        GuardError: it is of another kind, or it is empty.
    """
    if tensor.dtype != dtype or tensor.dim() != dim or 0 in tensor.shape:
        what = f"has {tensor.dtype} and {tensor.dim()} dimensions"
        what = "is empty" if 0 in tensor.shape else what
        refuse(
            f"the trace relied on a result of {dtype} with {dim} dimensions, "
            f"and it {what}. Trace again with an example like this one",
            opened,
        )
    return tensor


def answered(
    answer: AnyValue,
    expected: AnyValue,
    message: str,
    opened: Sequence[AnyValue] = (),
) -> AnyValue:
    """Check what the graph asks again of a value that it has computed.

    It is the condition of a `torch._assert`, which no pass removes.

    Returns:
        True; if the answer is a proxy, one of this call.

    Raises:
        GuardError: the answer is not the one that the trace relied on.
    """
    if issubclass(type(answer), PROXY_TYPES):
        record = answer.tracer.create_proxy
        given = answer, expected, message, opened
        return record("call_function", answered, given, {})
    if answer != expected:
        refuse(
            f"{message}\n  It is {answer!r}. Trace again with an example, a "
            "module and modes like these",
            opened,
        )
    return True


_SIZE: Final = re.compile(r"\b\w+\.size\(\d+\)")
"""The size of an input, in an expression."""

OF_MODES: Final = re.compile(
    r"_?(is|are|get)_(?!torch_function|dispatch)\w*(enabled|precision|debug_mode"
    r"|deterministic\w*|tf32|cudnn_benchmark|default_d\w+|autocast_(\w+_)?dtype)"
    r"|get_num_(interop_)?threads|(flash|\w*efficient|math|cudnn)_sdp_enabled"
    r"|fp16_bf16_reduction_math_sdp_allowed"
)
"""Names of functions that ask in which mode a program runs."""

_OF_BACKENDS: Final = frozenset(
    "cudnn mkldnn miopen quantized opt_einsum matmul conv rnn enabled engine "
    "deterministic benchmark benchmark_limit allow_tf32 fp32_precision "
    "immediate strategy allow_fp16_accumulation "
    "allow_fp16_reduced_precision_reduction "
    "allow_bf16_reduced_precision_reduction".split()
)
"""Attributes of torch.backends that say so, and the way to them."""

NAMES: Final[dict[str, AnyValue]] = {
    "math": math,
    "torch": torch,
    "identities": identities,
}
"""What expressions name besides the placeholders."""


def same_objects(
    names: Sequence[str], values: Sequence[AnyValue]
) -> Iterator[Guard]:
    """A guard that the same inputs are one object as were in the example.

    With a single input there is nothing to guard.
    """
    if len(names) > 1:
        ids = tuple(map([*values].index, values))
        yield Guard(f"identities({', '.join(names)})", ids)


class Guards(nn.Module, Sequence[Guard]):
    """What a trace relied on: a sequence, and the module that checks it.

    Attributes:
        names: of the placeholders.
        enabled: whether it is checked.  What is `False` here can be silently
            wrong.
        unchecked: sentences on what is fixed in the graph and cannot be asked
            of its inputs, such as `training` of a module.
        read: the values that the trace has read of tensors which are no inputs.
    """

    _is_impure = True  # dead code elimination keeps it, torch's too

    def __init__(
        self, names: Sequence[str] = (), guards: Iterable[Guard] = ()
    ) -> None:
        """Make them of what was noted.

        Args:
            names: the placeholders.
            guards: what was noted.
        """
        super().__init__()
        self.enabled: bool = True
        self.unchecked: list[str] = []
        self.read: list[torch.Tensor] = []
        self.note(names, guards)

    def note(self, names: Sequence[str], guards: Iterable[Guard]) -> None:
        """Be about these placeholders, and these guards; each is kept once."""
        by_expression: dict[str, Guard] = {}
        for guard in guards:
            by_expression.setdefault(guard.expression, guard)
        self.names: tuple[str, ...] = tuple(names)
        self._guards = tuple(by_expression.values())
        self._values = tuple(guard.value for guard in self._guards)
        self._ask: Callable[..., tuple[AnyValue, ...]] = self._all()
        self._others: dict[tuple[bool, ...], Guards] = {}
        self._seen: dict[int, AnyValue] = {}

    def __getstate__(self) -> dict[str, AnyValue]:
        """What is copied and saved: no functions, and no class of ours."""
        made = "_values", "_ask", "_others", "_seen"
        state = {k: v for k, v in vars(self).items() if k not in made}
        return state | {"_guards": [*map(tuple, self._guards)]}

    def __setstate__(self, state: dict[str, AnyValue]) -> None:
        """Take what was saved.

        Raises:
            ValueError: an expression is not one that a trace writes.
        """
        listed = [Guard(*each) for each in state["_guards"]]
        for guard in listed:
            check(guard.expression, state["names"])
        untyped: AnyValue = super()
        untyped.__setstate__(state)
        self.note(state["names"], listed)

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

    def forward(self, *leaves: AnyValue) -> None:
        """Raise unless all of them hold; record the call if it is traced.

        Args:
            leaves: values for the placeholders; `...` for one that was erased,
                about which nothing is checked any more.

        Raises:
            GuardError: one does not hold. Says which, and who asked.

        Cost: O(guards), a microsecond for about ten.
        """
        for leaf in leaves:
            if issubclass(type(leaf), PROXY_TYPES):
                return self._record(leaf, leaves)
        if self.enabled:
            self.check(leaves)

    def _record(self, proxy: AnyValue, leaves: Sequence[AnyValue]) -> None:
        """Record that the graph which is traced checks them, too."""
        try:
            path = proxy.tracer.path_of_module(self)
        except (AttributeError, NameError) as error:
            raise TraceError(
                "a graph that fx.trace has made is called with proxies whose "
                "tracer has no module with its guards. Call the GraphModule "
                "itself, as a part of what is traced"
            ) from error
        proxy.tracer.create_proxy("call_module", path, (*leaves,), {})

    def check(self, leaves: Sequence[AnyValue]) -> None:
        """Raise unless all of them hold."""
        try:
            if self._ask(*leaves) == self._values:
                return
        except Exception:  # a size of a tensor that has fewer, say
            pass
        kept = tuple(leaf is not ... for leaf in leaves)
        if not all(kept):
            self._of(kept).check([*compress(leaves, kept)])
            return
        for guard in self._guards:
            self._check_one(guard, leaves)

    def _of(self, kept: tuple[bool, ...]) -> Guards:
        """Those that are about inputs which are still there."""
        if kept not in self._others:
            names = [*compress(self.names, kept)]
            gone = {*self.names}.difference(names)
            left: list[Guard] = []
            for guard in self._guards:
                if guard.expression.startswith("identities("):
                    left += same_objects(names, [*compress(guard.value, kept)])
                elif gone.isdisjoint(self._inputs_of(guard)):
                    left.append(guard)
            self._others[kept] = Guards(names, left)
            self._others[kept].read = self.read
        return self._others[kept]

    def relate(self, index: int) -> bool:
        """Whether one says something of a placeholder and another one."""
        name = self.names[index]
        asked = [[*self._inputs_of(guard)] for guard in self if guard.line]
        return any(name in inputs and len(inputs) > 1 for inputs in asked)

    def _all(self) -> Callable[..., AnyValue]:
        """The function that gives the values of all of them."""
        return self._function(
            f"({''.join(f'{guard.asked}, ' for guard in self._guards)})"
        )

    def _check_one(self, guard: Guard, leaves: Sequence[AnyValue]) -> None:
        """Raise unless one of them holds."""
        try:
            answer = self._function(guard.asked)(*leaves)
        except Exception as error:
            raise self._refusal(guard, leaves, str(error)) from None
        if answer != guard.value:
            raise self._refusal(
                guard, leaves, self._found(guard, answer, leaves)
            )

    def _found(
        self, guard: Guard, answer: AnyValue, leaves: Sequence[AnyValue]
    ) -> str:
        """What is there instead: the sizes, if the answer is yes or no."""
        if guard.expression.startswith("unchanged("):
            return "it has other values than the program has read"
        sizes = [*dict.fromkeys(_SIZE.findall(guard.expression))]
        if not isinstance(answer, bool) or not sizes:
            return f"it is {answer!r}"
        values = [self._function(size)(*leaves) for size in sizes]
        if len(sizes) == 1 and guard.expression.startswith(sizes[0]):
            return f"it is {values[0]!r}"
        pairs = zip(sizes, values, strict=True)
        return " and ".join(f"{size} is {value!r}" for size, value in pairs)

    def _function(self, text: str) -> Callable[..., AnyValue]:
        """The function of the placeholders that a text is."""
        names = {**NAMES, "unchanged": self._unchanged}
        function: Callable[..., AnyValue] = eval(  # of our own text
            f"lambda {', '.join(self.names)}: {text}", names
        )
        return function

    def _unchanged(
        self, tensor: torch.Tensor, index: int, is_lost: bool = False
    ) -> bool:
        """Whether a tensor has the values that the trace has read.

        They are compared if it is another tensor than last time, or if a write
        was counted. One by way of `tensor.data` is not: if the program does
        that (`is_lost`), they are compared each time.
        """
        if not (is_lost or torch.is_inference(tensor)):
            held, *counted = self._seen.get(index, (lambda: None,))
            now = [tensor._version, tensor.data_ptr()]  # noqa: SLF001
            if held() is tensor and counted == now:
                return True
            self._seen[index] = weakref.ref(tensor), *now
        was = self.read[index]
        same = tensor.dtype == was.dtype and torch.equal(tensor.cpu(), was)
        if not same:
            self._seen.pop(index, None)
        return same

    def _refusal(
        self, guard: Guard, leaves: Sequence[AnyValue], problem: str
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
            + f"\n  {_advice(guard, problem)}"
        )

    def _inputs_of(self, guard: Guard) -> Iterator[str]:
        """The placeholders that a guard is about."""
        for name in self.names:
            if re.search(rf"\b{name}\b", guard.expression):
                yield name


def _advice(guard: Guard, problem: str) -> str:
    """What to do about a guard that does not hold."""
    if ".size(" in guard.expression and guard.line:
        advice = (
            "Trace a second graph with an example of this size, or let the "
            "line ask something else"
        )
        if problem.endswith(" is 1"):
            return f"With a size of 1, torch computes otherwise there. {advice}"
        return advice
    if ".size(" in guard.expression:
        return "The size was fixed by fx.trace(…, dynamic=…): let it vary there"
    return "Trace again with an example like this one"


# -- expressions that are read -------------------------------------------------


_SYNTAX: Final = (
    *(ast.Expression, ast.Constant, ast.Name, ast.Attribute, ast.Call),
    *(ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Load),
    *(ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.IfExp),
)
_ATTRIBUTES: Final = _OF_BACKENDS | frozenset(
    "_C backends ceil cuda device dim dtype floor is_conj is_contiguous "
    "is_inference is_leaf is_neg layout mha nn Parameter requires_grad shape "
    "size sqrt storage_offset stride sym_float sym_int trunc _sym_sqrt inf nan "
    "copysign SymInt SymFloat"
    "".split()
)
"""What else an expression may look up, in a tensor, in math or in torch."""
CALLED: Final = frozenset(
    "abs bool divmod float identities int isinstance max min pow round".split()
)
"""What it may call by a name."""


def _is_small(operand: ast.expr) -> bool:
    """Whether an exponent is such that a power is computed at once."""
    value = operand.value if isinstance(operand, ast.Constant) else None
    return isinstance(value, int | float) and abs(value) <= 64


def check(expression: str, names: AnyValue) -> None:
    """Raise ValueError unless it is safe to run an expression from a file.

    A trace writes guards as expressions of a few kinds, without calls of any
    but known functions; nothing else is allowed.

    Args:
        expression: the text, as Python.
        names: those of the inputs.
    """
    known = {*names, *NAMES, *CALLED, "unchanged"}
    for node in ast.walk(ast.parse(expression, mode="eval")):
        right = isinstance(node, _SYNTAX)
        if isinstance(node, ast.Name):
            right = node.id in known
        elif isinstance(node, ast.Attribute):
            is_mode = OF_MODES.fullmatch(node.attr) is not None
            right = is_mode or node.attr in _ATTRIBUTES
        elif isinstance(node, ast.Constant):
            right = isinstance(node.value, int | float | str)
        elif isinstance(node, ast.BinOp):
            grows = isinstance(node.op, ast.Pow | ast.LShift)
            right = not grows or _is_small(node.right)
        if not right:
            raise ValueError(f"{expression!r} is not the expression of a guard")
