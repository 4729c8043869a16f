"""Stage 04, module patching: what a running trace does with the calls it sees.

A trace replaces functions (`patching`), and the replacements hand each call
to the trace that runs in their thread.  A TraceRun is that trace: it says
what to replace, decides which calls concern it, and asks the tracer what to
do with those.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

from torch import nn

from ..proxy import Proxy
from ..usedef.values import Value
from .patching import TRACES
from .watch import Watch
from .wrapping import (
    ORIGINAL,
    Globals,
    all_wrapped_globals,
    find_proxy,
    original_of,
    record_leaf,
    wrapped_globals,
)

if TYPE_CHECKING:
    from .tracer import Tracer

Function: TypeAlias = Callable[..., Value]


class TraceRun:
    """One run of a tracer: what the replacements ask in its thread.

    Attributes:
        other_marks: called to mark leaf functions that `wrap` has not marked.
            There are none by default; `import fx` puts a function here that
            takes over those of `torch.fx.wrap`.
    """

    other_marks: ClassVar[tuple[Callable[[], None], ...]] = ()

    def __init__(self, tracer: Tracer) -> None:
        """Begin with no attribute read and no module visited.

        Args:
            tracer: decides what is recorded.
        """
        self.tracer = tracer
        self.watch: Watch = tracer._watch  # noqa: SLF001
        self._calls_forward = tracer._runs_by_forward()  # noqa: SLF001
        self._proxies: dict[str, Proxy] = {}
        self._visited: set[int] = set()
        self._leaves = set(tracer._autowrap_function_ids)

    def patch(self, function: FunctionType) -> None:
        """Replace what a trace of `function` has to see."""
        TRACES.patch(nn.Module, ["__call__"], _module_call)
        TRACES.patch(nn.Module, ["__getattr__"], _module_getattr)
        self.watch.replace()
        for mark in self.other_marks:
            mark()
        for namespace, name, leaf in all_wrapped_globals():
            self._patch_leaf(namespace, name, leaf)
        self._visit(function.__globals__)
        for module in self.tracer._autowrap_search:
            self._visit(vars(module))
        modules = self.tracer.submodule_paths or ()
        for kind in dict.fromkeys(map(type, modules)):
            self._patch_own_call(kind)

    def _patch_leaf(self, there: Globals, name: str, leaf: Function) -> None:
        """Replace a leaf function in one place."""
        self._leaves.add(id(leaf))
        TRACES.patch(there, [name], leaf_call)

    def _visit(self, namespace: Globals | None) -> None:
        """Replace the leaf functions among the globals of a module, once."""
        if namespace is None or id(namespace) in self._visited:
            return
        self._visited.add(id(namespace))
        for name, leaf in wrapped_globals(namespace, must_exist=True):
            self._patch_leaf(namespace, name, leaf)
        leaves = self.tracer._autowrap_function_ids
        members = namespace.copy()
        if not leaves.isdisjoint(map(id, members.values())):
            marked = [n for n, f in members.items() if id(f) in leaves]
            wanted = [name for name in marked if name[:1] != "_"]
            TRACES.patch(namespace, wanted, leaf_call)
        self.watch.visit(namespace)

    def _visit_forward(self, module: nn.Module) -> None:
        """Visit the globals that the forward of a module reads."""
        self.watch.enter(module)
        forward = getattr(module, "forward", None)
        self._visit(getattr(forward, "__globals__", None))

    def _patch_own_call(self, kind: type[nn.Module]) -> None:
        """Replace the `__call__` of a module class that has its own.

        Python calls the method of the first base class that has one.
        """
        for base in kind.__mro__:
            if "__call__" in vars(base):
                if base is not nn.Module:
                    TRACES.patch(base, ["__call__"], _own_call)
                return

    def call_module(
        self,
        original: Function,
        args: tuple[Value, ...],
        kwargs: dict[str, Value],
    ) -> Value:
        """Answer the call of a module: the tracer decides."""
        module = args[0]

        def forward(*inputs: Value, **options: Value) -> Value:
            self._visit_forward(module)
            return original(module, *inputs, **options)

        if not self._calls_forward:
            self._visit_forward(module)
        return self.tracer.call_module(module, forward, args[1:], kwargs)

    def call_overridden(
        self,
        original: Function,
        args: tuple[Value, ...],
        kwargs: dict[str, Value],
    ) -> Value:
        """Answer the call of a module whose class has its own `__call__`.

        A leaf is recorded whatever that method does; otherwise the method
        runs, and calls nn.Module's in its turn.
        """
        path = self.tracer.path_of_module(args[0])
        if self.tracer.is_leaf_module(args[0], path):
            return self.call_module(original, args, kwargs)
        return original(*args, **kwargs)

    def read_attribute(
        self,
        original: Function,
        args: tuple[Value, ...],
        kwargs: dict[str, Value],
    ) -> Value:
        """Answer the read of a parameter, buffer or submodule."""
        value = original(*args)
        return self.tracer.getattr(args[1], value, self._proxies)

    def call_function(
        self,
        function: Function,
        args: tuple[Value, ...],
        kwargs: dict[str, Value],
    ) -> Value:
        """Answer the call of a global function.

        It is recorded if the function is a leaf of this trace and a proxy is
        among the arguments.
        """
        raise NotImplementedError("stage 04: TraceRun.call_function")


def replacing(
    handle: Callable[
        [TraceRun, Function, tuple[Value, ...], dict[str, Value]], Value
    ],
) -> Callable[[Function], Function]:
    """A maker of replacements that hand each call to the current TraceRun.

    Where none runs in the calling thread, the original is called.
    """

    def make(called: Function) -> Function:
        # Someone may have saved a replacement and put it back since.
        original = original_of(called)

        @functools.wraps(original)
        def replacement(*args: Value, **kwargs: Value) -> Value:
            run = TRACES.current
            if not isinstance(run, TraceRun):
                return original(*args, **kwargs)
            return handle(run, original, args, kwargs)

        vars(replacement)[ORIGINAL] = original
        return replacement

    # Kept, because each trace replaces those of math and torch anew.
    keep = functools.lru_cache(maxsize=256)(make)

    return lambda f: (keep if _is_librarys(f) else make)(f)


def _is_librarys(function: Function) -> bool:
    """Whether a function is Python's or torch's, so that it may be kept."""
    return type(function) is BuiltinFunctionType or (
        type(function) is FunctionType and function.__module__[:6] == "torch."
    )


_module_call: Final = replacing(TraceRun.call_module)
_own_call: Final = replacing(TraceRun.call_overridden)
_module_getattr: Final = replacing(TraceRun.read_attribute)
leaf_call: Final = replacing(TraceRun.call_function)
