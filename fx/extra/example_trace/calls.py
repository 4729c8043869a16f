"""Extra: the calls that a trace on an example sees.

torch shows each call of its functions and methods to a mode, `CallMode`. What
torch does not show is replaced while the trace runs (`handing_to`), wherever a
Python module or class has it: the functions that a user keeps whole,

    fx.trace(model, x, leaves=["lib.attention", Cache.update, model.head])

and `isinstance`, since a size is a `torch.SymInt` while the program is traced,
and an int when the graph runs. `type(n) is int`, `n is 1` and a pattern `case
int()` ask in ways that cannot be replaced. In other threads the replacements
call the original, and so they do for what a symbolic trace has replaced.

`fx.wrap` has to be written into the module that calls the function, which is
most often not the user's; `leaves=` names the function from outside. Another
module may have imported it by its name, so all modules are looked through.
"""

from __future__ import annotations

import functools
import operator
import pkgutil
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from ...recording.operators import magic_methods
from ...torch_private.modules import HOOKS
from ...torch_private.pytree import pytree
from ...torch_private.symbolic_sizes import SYMBOLIC, hint_of
from ...tracing.patching import TRACES, names_of
from ...tracing.wrapping import ORIGINAL, all_wrapped_globals, original_of
from ...use_def.values import AnyValue, Args, Function, Kwargs
from ..watching.changes import is_library
from . import errors

if TYPE_CHECKING:
    from ...graph import Graph
    from ...node import Node

Place: TypeAlias = tuple[AnyValue, str]
"""Where Python looks something up: globals or a class, and a name."""


Leaf: TypeAlias = nn.Module | str | Callable[..., AnyValue]
"""What can be a leaf."""


class Call(NamedTuple):
    """A call that is to be made, and perhaps recorded.

    Attributes:
        function: what is called.
        args: with these arguments.
        kwargs: and these, by name.
    """

    function: Function
    args: Args
    kwargs: Kwargs

    @property
    def name(self) -> str:
        """The name of the function; "" if it has none."""
        return getattr(self.function, "__name__", "")

    def run(self) -> AnyValue:
        """Make the call."""
        return self.function(*self.args, **self.kwargs)

    def mapped(self, change: Callable[[AnyValue], AnyValue]) -> Call:
        """The same call with other values in its arguments."""
        given = pytree.tree_map(change, (self.args, self.kwargs))
        return Call(self.function, *given)

    def has_symbols(self) -> bool:
        """Whether it is given numbers computed of sizes."""
        leaves = pytree.tree_leaves((self.args, self.kwargs))
        return any(isinstance(leaf, SYMBOLIC) for leaf in leaves)

    def has_values(self) -> bool:
        """Whether it is given tensors, or numbers computed of sizes."""
        leaves = pytree.tree_leaves((self.args, self.kwargs))
        return any(isinstance(leaf, _VALUES) for leaf in leaves)


_VALUES: Final = (torch.Tensor, *SYMBOLIC)


class Lifting(Protocol):
    """A function that torch calls, recorded as a module of its own.

    See `handlers`.
    """

    outer: tuple[Graph, Lifting | None, dict[int, Node]]

    def lift(self, node: Node) -> Node:
        """The node itself, or what stands in the module for one outside."""
        ...


class CallMode(TorchFunctionMode):
    """Shows a recorder each call of torch."""

    def __init__(self, recorder: AnyValue) -> None:
        """Make it for a recorder."""
        super().__init__()
        self._recorder = recorder

    def __torch_function__(
        self,
        func: Function,
        types: AnyValue,
        args: AnyValue = (),
        kwargs: AnyValue = None,
    ) -> AnyValue:
        """Hand a call to the recorder."""
        call = Call(func, args, kwargs or {})
        recorder = self._recorder
        if recorder.paused:
            return call.run()
        try:
            return recorder.see(call)
        except errors.REFUSALS as error:
            recorder.refuse(error)
            raise


def current() -> AnyValue:
    """The recorder of the trace on an example that runs here; None without."""
    trace = TRACES.current
    return trace if hasattr(trace, "node_by_id") else None


def handing_to(
    handle: Callable[[AnyValue, Call], AnyValue],
) -> Callable[[AnyValue], AnyValue]:
    """A maker of replacements, which hand each call to the trace that runs.

    Where none does, or nothing is recorded, they call the original.

    Args:
        handle: is given the recorder, and the call of the original.
    """

    def make(called: AnyValue) -> AnyValue:
        kind: AnyValue = type(called)
        if kind in (staticmethod, classmethod):
            return kind(make(called.__func__))
        original = original_of(called)

        @functools.wraps(original)
        def replacement(*args: AnyValue, **kwargs: AnyValue) -> AnyValue:
            recorder = current()
            if recorder is None or recorder.paused:
                return original(*args, **kwargs)
            try:
                return handle(recorder, Call(original, args, kwargs))
            except errors.REFUSALS as error:
                recorder.refuse(error)
                raise

        vars(replacement)[ORIGINAL] = original
        return replacement

    return make


def places_of(
    makers: Iterable[tuple[AnyValue, AnyValue]], builtins: dict[str, AnyValue]
) -> Iterator[tuple[AnyValue, str, AnyValue]]:
    """Where Python modules have some functions among their globals.

    Args:
        makers: pairs of a function and what makes its replacement.
        builtins: the same for names of builtins, wherever a module that is not
            torch's, fx's or Python's may call them.

    Yields:
        The globals, a name in them, and what makes the replacement.

    Cost: O(globals of all modules), in one pass.
    """
    wanted = {id(function): make for function, make in makers}
    for name, module in [*sys.modules.items()]:
        members = getattr(module, "__dict__", None)
        if not isinstance(members, dict):
            continue
        if not wanted.keys().isdisjoint(map(id, [*members.values()])):
            for key, value in [*members.items()]:
                if id(value) in wanted:
                    yield members, key, wanted[id(value)]
        if not is_library(name):
            for key, make in builtins.items():
                if key not in members:
                    yield members, key, make


# -- the user's choice ---------------------------------------------------------


class Leaves:
    """The modules and functions that a trace keeps whole.

    Attributes:
        modules: those among the root's.
        functions: the others.
    """

    def __init__(self, root: object, given: Iterable[Leaf]) -> None:
        """Look up what the user has named.

        Args:
            root: a module, perhaps; a string can be a path in it.
            given: the user's choice.

        Raises:
            ValueError: nothing has such a path.
            TypeError: it is neither a module nor a function.
        """
        self.modules: set[nn.Module] = set()
        self.functions: list[AnyValue] = []
        paths: dict[str, nn.Module] = {}
        if isinstance(root, nn.Module):
            paths.update(root.named_modules())
        for leaf in given:
            value: AnyValue = leaf
            if isinstance(leaf, str):
                value = paths.get(leaf) or _looked_up(leaf)
            if isinstance(value, nn.Module):
                self.modules.add(value)
            elif callable(value) and not isinstance(value, type):
                self.functions.append(value)
            elif isinstance(value, type):
                name = value.__qualname__
                raise TypeError(
                    f"{name} is a class, and a leaf is one module or function: "
                    f"leaves=[m for m in model.modules() if isinstance(m, "
                    f"{name})] keeps all modules of the class, and "
                    f"leaves=[{name}.forward] a method"
                )
            else:
                raise TypeError(
                    f"{leaf!r} cannot be a leaf: give functions, methods and "
                    "modules, or their dotted paths"
                )

    def places(self) -> Iterator[Place]:
        """Where Python looks the functions up, beside globals."""
        for namespace, name, _ in all_wrapped_globals():
            yield namespace, name
        for function in self.functions:
            yield from _methods(function)


def _looked_up(path: str) -> AnyValue:
    """The object of a dotted path."""
    try:
        return pkgutil.resolve_name(path)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"no leaf has the path {path!r}: it is neither a module of the "
            f"root nor something that can be imported ({error})"
        ) from None


def _methods(function: AnyValue) -> Iterator[Place]:
    """The classes that have a method, and its name there."""
    *way, name = str(getattr(function, "__qualname__", "")).split(".")
    module = sys.modules.get(str(getattr(function, "__module__", "")))
    holder: AnyValue = functools.reduce(
        lambda value, part: getattr(value, part, None), way, module
    )
    inner = getattr(function, "__func__", function)
    if isinstance(holder, type):
        method = names_of(holder).get(name)
        if getattr(method, "__func__", method) is inner:
            yield holder, name


def state_of(module: nn.Module) -> list[tuple[str, AnyValue]]:
    """What a module holds, by identity: tensors, children, hooks, settings."""
    dicts = vars(module), *dicts_of(module)
    return [(name, id(held[name])) for held in dicts for name in held]


def dicts_of(module: nn.Module) -> list[dict[AnyValue, AnyValue]]:
    """Tensors, children and hooks of a module, each kind by name."""
    names = "_parameters", "_buffers", "_modules", *HOOKS
    found = [vars(module).get(name) for name in names]
    return [held for held in found if isinstance(held, dict)]


# -- isinstance ----------------------------------------------------------------


def is_instance(value: AnyValue, kinds: AnyValue) -> bool:
    """What `isinstance` answers of what a fake or symbolic value stands for."""
    result = isinstance(value, kinds)
    asked = map(type, pytree.tree_leaves(kinds))
    if isinstance(value, torch.Tensor) and _LEGACY in asked:
        value.type()  # which is a question
    is_number = isinstance(value, SYMBOLIC)
    return result or (is_number and issubclass(value.node.pytype, kinds))


_LEGACY: Final[AnyValue] = type(torch.FloatTensor)
"""The class of classes that know a dtype and a device."""


# -- how calls are written -----------------------------------------------------


def _rows() -> Iterator[tuple[str, tuple[Function, int, bool]]]:
    """The names of methods, and what Python writes for them."""
    for name, text in magic_methods.items():
        bare, function = name.strip("_"), getattr(operator, name)
        yield bare, (function, text.count("{}"), False)
        yield f"__{bare}__", (function, text.count("{}"), False)
        yield f"__r{bare}__", (function, 2, True)
    yield "div", (operator.truediv, 2, False)
    yield "__setitem__", (operator.setitem, 3, False)


OPERATORS: Final = dict(_rows())
"""Name of a method → operator, number of operands, whether in reverse."""


def run_freely(call: Call) -> AnyValue:
    """Make a call; torch would fix sizes that some are given.

    It makes a tensor of numbers, whose kind follows from theirs, or draws one
    by a generator, whose kind does not depend on that.
    """
    if call.function in _OF_NUMBERS and call.has_symbols():
        kept: torch.Tensor = call.mapped(hint_of).run()  # with their values
        return torch.empty_like(kept, requires_grad=kept.requires_grad)
    if call.function in _DRAWING and call.has_symbols():
        rest = {k: v for k, v in call.kwargs.items() if k != "generator"}
        return call.function(*call.args, **rest)
    return call.run()


_OF_NUMBERS: Final[tuple[AnyValue, ...]] = (
    *(torch.tensor, torch.as_tensor, torch.asarray, torch.Tensor.new_tensor),
)
"""Functions that make tensors of numbers."""

_DRAWING: Final[tuple[AnyValue, ...]] = (
    *(torch.randn, torch.rand, torch.randint, torch.randperm),
)
"""Functions that draw tensors of some sizes."""
