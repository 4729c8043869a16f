"""Stage 04, module patching: Tracer, which runs a module and gets its graph.

To trace a module is to call its forward with proxies for the inputs, which
record the operations on them.  Three kinds of calls do not touch a proxy, so
a trace replaces the functions behind them (`patching`) to see them too:

    self.linear(x)    nn.Module.__call__      Tracer.call_module
                      a leaf is recorded, any other module is traced through
    self.weight       nn.Module.__getattr__   Tracer.getattr
                      a parameter becomes a proxy of a get_attr node
    math.sqrt(x)      a global                a leaf function: see wrapping

Tensors among the arguments of an operation, which a node cannot hold, become
get_attr nodes in `create_other_arg`.

A `Tracer` is the trace that runs: replacements hand it each call they catch,
and its methods, which users override, decide what is recorded.  A
`TraceListener` is told what happens, and records nothing.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import ClassVar, Final, TypeAlias

import torch
from torch import nn

from ..graph import Graph
from ..linked_list.opcodes import Opcode, Target
from ..node import Node
from ..proxy import ParameterProxy, Proxy, TraceError, TracerBase
from ..recording import frames
from ..use_def.annotations import annotations_of
from ..use_def.values import (
    AnyValue,
    Args,
    Argument,
    Function,
    Kwargs,
    overrides_new,
)
from .inputs import method_of, not_a_function, root_call, undecorated
from .patching import TRACES
from .state import STORED, State, path_among, refuse_proxies_in
from .wrapping import (
    ORIGINAL,
    QUESTIONS,
    Globals,
    ProxyableClassMeta,
    all_wrapped_globals,
    find_proxy,
    original_of,
    record_leaf,
    wrapped_globals,
)


class TraceListener:
    """Is told what happens in one trace, and takes no notice."""

    def begin(self, tracer: Tracer, state: State) -> None:
        """A trace begins, whose root has in it what `state` says."""

    def given(
        self, function: Function, defaults: Mapping[str, AnyValue]
    ) -> None:
        """Told of the function traced, and of the defaults that it may use."""

    def replace(self) -> None:
        """A trace replaces what it has to see, and more may be replaced."""

    def visit(self, namespace: Globals) -> None:
        """Code that has these globals is going to run."""

    def enter(self, module: nn.Module) -> None:
        """The forward of a module is going to run."""

    def fetched(self, node: Node, value: AnyValue) -> None:
        """The code has a value without a proxy, which `node` fetches."""

    def capture(self, state: State) -> None:
        """A capture begins to run what has this state."""

    def captured(self, *, undo: bool) -> None:
        """It has run: warn of what it has changed, or undo that."""

    def end(self) -> None:
        """The code has run, and the graph is whole."""

    def failed(self, error: BaseException) -> None:
        """The trace ends with an error."""


Root: TypeAlias = nn.Module | Function
"""What can be traced: a module, or a plain Python function."""


class Tracer(TracerBase):
    """Traces a module or function: `Tracer().trace(root)` is its graph.

    A subclass changes what is recorded by overriding `is_leaf_module`,
    `call_module`, `getattr`, `create_arg`, `create_node`, `proxy`, `to_bool`,
    `iter` or `keys`.

    One tracer runs one trace at a time. Several tracers may run in several
    threads, and code outside a trace is not affected.

    Attributes:
        root: the module that get_attr and call_module targets are in. For a
            function, a new module that holds its tensor constants.
        submodule_paths: module -> dotted path, during a trace.

    torch.fx: _symbolic_trace.py, Tracer
    """

    root: nn.Module
    submodule_paths: dict[nn.Module, str] | None
    _watching: ClassVar[type[TraceListener]] = TraceListener

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Function, ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        """Make a tracer.

        Args:
            autowrap_modules: Python modules whose functions are leaves.
            autowrap_functions: functions that are leaves.
            param_shapes_constant: let code branch on shapes of parameters,
                which are then fixed in the graph.

        torch.fx: _symbolic_trace.py, Tracer.__init__
        """
        super().__init__()
        functions = [
            value
            for module in autowrap_modules
            for name, value in vars(module).copy().items()
            if name[:1] != "_" and name not in QUESTIONS and callable(value)
        ]
        self._autowrap_function_ids = {
            id(original_of(f)) for f in (*functions, *autowrap_functions)
        }
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.root_module_name: str = ""
        self.num_calls: dict[str, int] = {}
        self.tensor_attrs: dict[AnyValue, str] = {}
        self._forget()

    def _forget(self) -> None:
        """Forget what only a running trace knows."""
        self._is_tracing = False
        self.submodule_paths = None
        self._state: State | None = None
        self._watch = TraceListener()
        self._added: list[str] = []
        self._numbers: dict[str, int] = {}
        self._proxies: dict[str, Proxy] = {}
        self._visited: set[int] = set()
        self._leaves = set(self._autowrap_function_ids)

    # -- the trace ---------------------------------------------------------

    def trace(
        self,
        root: Root,
        concrete_args: dict[str, AnyValue] | tuple[AnyValue, ...] | None = None,
    ) -> Graph:
        """The graph of what `root` does.

        Args:
            root: a module, whose forward is run, or a plain function.
            concrete_args: values for some inputs, by name, or for all of
                them, in order; `fx.PH` inside stays symbolic.

        Raises:
            TraceError: the code does what a graph cannot express.
            TypeError: `concrete_args` names no parameter.
            AssertionError: `root` is neither a module nor a function.
            Whatever the code raises. In each case the patches are undone,
            and the constants that the trace has stored on `root` removed.

        Warns if the root has a forward of its own or hooks, which are not
        traced. Also of code that asks what a proxy is, writes into a tensor
        that is not a proxy, or switches gradients, inference mode or
        autocast. A thread that forward starts is not traced.

        Cost: O(operations recorded), besides running the Python code.

        torch.fx: _symbolic_trace.py, Tracer.trace
        """
        with self._recording(root) as function:
            given = function, isinstance(root, nn.Module), concrete_args
            call, inputs = frames.run_traced(self.create_args_for_root, given)
            with TRACES.during(self):
                self._patch(function)
                self._is_tracing = True
                # The recording: the code runs, and proxies write down how.
                result = frames.run_traced(call, inputs)
                returned = frames.run_traced(self.create_arg, (result,))
            is_flat = self.graph._pytree_info is None
            notes = annotations_of(undecorated(call)) if is_flat else {}
            kind, last = notes.get("return"), ("output", "output", (returned,))
            frames.run_traced(self.create_node, (*last, {}, None, kind))
            return self.graph

    @contextmanager
    def _recording(self, root: Root) -> Iterator[FunctionType]:
        """A block in which `root` is traced, and the function to run for it."""
        function = self._start(root)
        try:
            yield function
            self._watch.end()
            self._forget()
        except BaseException as error:
            for name in self._added:
                vars(self.root).pop(name, None)
            self._watch.failed(error)
            self._forget()
            raise

    def _start(self, root: Root) -> FunctionType:
        """Prepare for a trace, and return the function to run."""
        if isinstance(root, nn.Module):
            function = method_of(root, self.traced_func_name)
            self.root = root
            self.root_module_name = type(root).__name__
        else:
            # Another thread's trace may have replaced the function.
            function = original_of(root)
            self.root = nn.Module()
        if not isinstance(function, FunctionType):
            raise AssertionError(not_a_function(root, function))
        self.graph: Graph = Graph(tracer_cls=type(self))
        noted = "co_name", "co_filename", "co_firstlineno"
        self.graph._co_fields = {
            n: getattr(function.__code__, n) for n in noted
        }
        self.module_stack.clear()
        self.num_calls.clear()
        self._forget()
        state = self._state = State(self.root)
        self.submodule_paths = state.modules
        self.tensor_attrs = state.constants
        self._watch = self._watching()
        self._watch.begin(self, state)
        return function

    def create_args_for_root(
        self,
        root_fn: Function,
        is_module: bool,
        concrete_args: dict[str, AnyValue] | tuple[AnyValue, ...] | None = None,
    ) -> tuple[Function, list[AnyValue]]:
        """Make a placeholder for each parameter of the root.

        Args:
            root_fn: the function that will be run.
            is_module: its first parameter is `self`, which is `self.root`.
            concrete_args: see `trace`.

        Returns:
            What to call, and with which arguments: `root_fn` itself, or a
            variant that takes `*args` as one, or flat inputs.

        Raises:
            RuntimeError: `self` is only in `*args`; a tuple of concrete_args
                of the wrong length; the root is decorated, takes `*args` or
                `**kwargs`, and its wrapper has other parameters.
            TypeError: concrete_args names no parameter.

        torch.fx: _symbolic_trace.py, Tracer.create_args_for_root
        """
        owner = self.root if is_module else None
        return root_call(self, root_fn, owner, concrete_args, self._watch)

    # -- modules -----------------------------------------------------------

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Whether a call of `m` is recorded as one call_module node.

        By default the modules of torch.nn are leaves, nn.Sequential apart,
        and all others are traced through. Override this to draw the line
        elsewhere.

        Args:
            m: the module that is called.
            module_qualified_name: its dotted path from the root.

        torch.fx: _symbolic_trace.py, Tracer.is_leaf_module
        """
        return m.__module__.startswith(
            ("torch.nn", "torch.ao.nn")
        ) and not isinstance(m, nn.Sequential)

    def path_of_module(self, mod: nn.Module) -> str:
        """The dotted path of a module from the root, "" for the root.

        Raises:
            NameError: it is not in the root's hierarchy.

        Cost: O(1) during a trace, O(modules) after it.

        torch.fx: _symbolic_trace.py, Tracer.path_of_module
        """
        paths = self.submodule_paths
        if paths is None:
            paths = {m: name for name, m in self.root.named_modules()}
        path = paths.get(mod)
        if path is None:
            raise NameError(
                "module is not installed as a submodule\n"
                f"  A {type(mod).__name__} is called that is not in the "
                f"hierarchy of {type(self.root).__name__}. Assign it to an "
                "attribute of a module that is."
            )
        return path

    def call_module(
        self, m: nn.Module, forward: Function, args: Args, kwargs: Kwargs
    ) -> AnyValue:
        """Answer the call of a submodule while tracing.

        A leaf gives a proxy of a call_module node; another module is run,
        and so traced through. `scope` and `module_stack` have the call from
        before `is_leaf_module` is asked until the answer is there.

        Args:
            m: the module that is called.
            forward: calls it for real.
            args: positional arguments of the call.
            kwargs: keyword arguments of the call.

        Raises:
            NameError: `m` is not in the root's hierarchy.

        torch.fx: _symbolic_trace.py, Tracer.call_module
        """
        path = self.path_of_module(m)
        calls = self.num_calls.get(path, 0)
        self.num_calls[path] = calls + 1
        call = f"{path}@{calls}" if calls else path
        scope, here = self.scope, (path, type(m))
        before = scope.module_path, scope.module_type
        try:
            scope.module_path, scope.module_type = here
            self.module_stack[call] = here
            if not self.is_leaf_module(m, path):
                return forward(*args, **kwargs)
            return self._call_leaf(path, forward, args, kwargs)
        finally:
            self.module_stack.pop(call, None)
            scope.module_path, scope.module_type = before

    def _call_leaf(
        self, path: str, forward: Function, args: Args, kwargs: Kwargs
    ) -> AnyValue:
        """Record the call of a leaf module, whose `forward` is not run."""
        return self.create_proxy("call_module", path, args, kwargs)

    def getattr(
        self,
        attr: str,
        attr_val: AnyValue,
        parameter_proxy_cache: dict[str, Proxy],
    ) -> AnyValue:
        """Answer the read of a module's attribute while tracing.

        For a parameter (and a buffer, with `proxy_buffer_attributes`) in the
        root's hierarchy that is a proxy of its get_attr node, the same each
        time. Any other value is returned as it is.

        Args:
            attr: the name that is read.
            attr_val: its value.
            parameter_proxy_cache: dotted path -> proxy made before.

        torch.fx: _symbolic_trace.py, Tracer.getattr
        """
        if not isinstance(attr_val, torch.Tensor):
            return attr_val
        wanted = isinstance(attr_val, nn.Parameter)
        if not wanted and not self.proxy_buffer_attributes:
            return attr_val
        path = self._tensor_path(attr_val)
        if path is None:
            return attr_val
        if path not in parameter_proxy_cache:
            parameter_proxy_cache[path] = self._state_proxy(path, attr_val)
        return parameter_proxy_cache[path]

    def _state_proxy(self, path: str, value: torch.Tensor) -> Proxy:
        """A proxy of a new get_attr node."""
        if self.param_shapes_constant and isinstance(value, nn.Parameter):
            make = partial(ParameterProxy, self, name=path, param=value)
            return self.create_proxy(
                "get_attr", path, (), {}, proxy_factory_fn=make
            )
        # Not with None: a user's create_proxy may take no factory.
        return self.create_proxy("get_attr", path, (), {})

    def _tensor_path(self, tensor: torch.Tensor) -> str | None:
        """The dotted path of a parameter or buffer, if it is in the root."""
        if self._state is not None and id(tensor) in self._state.tensors:
            return self._state.tensors[id(tensor)][0]
        if isinstance(tensor, nn.Parameter):
            return path_among(tensor, self.root.named_parameters())
        return path_among(tensor, self.root.named_buffers())

    # -- arguments ---------------------------------------------------------

    def create_other_arg(self, a: AnyValue) -> Argument:
        """Turn a value into what a node can hold, perhaps a part of the root.

        A parameter, buffer, module or tensor that the root has becomes a
        get_attr node. Another tensor is stored on the root first, as
        `_tensor_constant0` and so on. A named tuple becomes a node that
        constructs it.

        Raises:
            NameError: a parameter that is not in the root's hierarchy.
            NotImplementedError: a node cannot hold the value.

        torch.fx: _symbolic_trace.py, Tracer.create_arg
        """
        node = self._state_node(a)
        if node is not None:
            return node
        kind = type(a)
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            items = tuple([self.create_arg(item) for item in a])
            if overrides_new(kind):
                kind, items = kind._make, (items,)
            return self.create_node("call_function", kind, items, {})
        if isinstance(a, tuple(STORED)):
            return self._fetch(self._constant_path(a), a)
        if type(kind) is ProxyableClassMeta:
            refuse_proxies_in(a)
            path = self._store(f"_{kind.__name__}_constant_", a)
            return self._fetch(path, a)
        return super().create_other_arg(a)

    def _state_node(self, a: AnyValue) -> Node | None:
        """A get_attr node for a parameter, buffer or module of the root.

        None for any other value.
        """
        if isinstance(a, torch.Tensor):
            path = self._tensor_path(a)
            if path is None and isinstance(a, nn.Parameter):
                raise NameError(
                    "parameter is not a member of this module\n"
                    f"  A Parameter of shape {tuple(a.shape)} is used, but no "
                    f"module in {type(self.root).__name__} has it. Assign it "
                    "to an attribute of one."
                )
        elif isinstance(a, nn.Module):
            path = path_among(a, self.root.named_modules())
        else:
            return None
        return None if path is None else self._fetch(path, a)

    def _fetch(self, path: str, value: AnyValue) -> Node:
        """A new get_attr node, for a value that code has without a proxy."""
        if not path:
            raise TraceError(
                "the root module is an argument of a call that is recorded, "
                f"and no node can fetch it\n  in\n  {frames.where()}\n"
                "  Pass the parts of it that the function needs, or trace a "
                "module that has this one as a child."
            )
        node = self.create_node("get_attr", path, (), {})
        self._watch.fetched(node, value)
        return node

    def _constant_path(self, a: AnyValue) -> str:
        """The path of a constant, which is stored on the root if it is new."""
        path = self.tensor_attrs.get(a)
        if path is None:
            prefix = next(STORED[t] for t in STORED if isinstance(a, t))
            path = self.tensor_attrs[a] = self._store(prefix, a)
        return path

    def _store(self, prefix: str, value: AnyValue) -> str:
        """Put a constant on the root; its name there."""
        name = self.get_fresh_qualname(prefix)
        self._added.append(name)  # first: an interrupt can come at any line
        # Another thread may trace the same root, and have taken the name.
        while vars(self.root).setdefault(name, value) is not value:
            self._added[-1] = name = self.get_fresh_qualname(prefix)
        return name

    def get_fresh_qualname(self, prefix: str) -> str:
        """The first of prefix0, prefix1, … that the root does not have.

        A trace does not try the numbers again that it found taken.

        Cost: O(names taken) for all calls of a trace together.

        torch.fx: _symbolic_trace.py, Tracer.get_fresh_qualname
        """
        number = self._numbers.get(prefix, 0)
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        self._numbers[prefix] = number
        return f"{prefix}{number}"

    def check_unfinished(self, kind: Opcode, target: Target) -> None:
        """Refuse a node that would come after the graph's output."""
        if self.graph.inserts_at_end:
            raise RuntimeError(
                f"a Proxy of a finished trace is used: {kind} of {target} "
                "would come after the output of its graph. To edit the "
                "graph, set an insert point (graph.inserting_before) and "
                "wrap its nodes: Proxy(node)"
            )

    # -- the calls that replacements hand over -----------------------------

    def _patch(self, function: FunctionType) -> None:
        """Replace what a trace of `function` has to see."""
        TRACES.patch(nn.Module, ["__call__"], _module_call)
        TRACES.patch(nn.Module, ["__getattr__"], _module_getattr)
        self._watch.replace()
        for namespace, name, leaf in all_wrapped_globals():
            self._patch_leaf(namespace, name, leaf)
        self._visit(function.__globals__)
        for module in self._autowrap_search:
            self._visit(vars(module))
        for kind in dict.fromkeys(map(type, self.submodule_paths or ())):
            # Python calls the method of the first base class that has one.
            owner = next(c for c in kind.__mro__ if "__call__" in vars(c))
            if owner is not nn.Module:
                TRACES.patch(owner, ["__call__"], _own_call)

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
        leaves = self._autowrap_function_ids
        members = namespace.copy()
        if not leaves.isdisjoint(map(id, members.values())):
            marked = [n for n, f in members.items() if id(f) in leaves]
            wanted = [name for name in marked if name[:1] != "_"]
            TRACES.patch(namespace, wanted, leaf_call)
        self._watch.visit(namespace)

    def _visit_forward(self, module: nn.Module) -> None:
        """Visit the globals that the forward of a module reads."""
        self._watch.enter(module)
        forward = getattr(module, "forward", None)
        self._visit(getattr(forward, "__globals__", None))

    def _answer_call(
        self, original: Function, args: Args, kwargs: Kwargs
    ) -> AnyValue:
        """Answer the call of a module, as `call_module` decides."""
        module = args[0]

        def forward(*inputs: AnyValue, **options: AnyValue) -> AnyValue:
            self._visit_forward(module)
            return original(module, *inputs, **options)

        if self.call_module != Tracer.call_module.__get__(self):
            # One of the user's may call no `forward`.
            self._visit_forward(module)
        return self.call_module(module, forward, args[1:], kwargs)

    def _answer_own_call(
        self, original: Function, args: Args, kwargs: Kwargs
    ) -> AnyValue:
        """Answer the call of a module whose class has its own `__call__`.

        A leaf is recorded whatever that method does; otherwise the method
        runs, and calls nn.Module's in its turn.
        """
        path = self.path_of_module(args[0])
        if self.is_leaf_module(args[0], path):
            return self._answer_call(original, args, kwargs)
        return original(*args, **kwargs)

    def _answer_read(
        self, original: Function, args: Args, kwargs: Kwargs
    ) -> AnyValue:
        """Answer the read of a parameter, buffer or submodule."""
        return self.getattr(args[1], original(*args), self._proxies)

    def _answer_function(
        self, function: Function, args: Args, kwargs: Kwargs
    ) -> AnyValue:
        """Answer the call of a global function.

        It is recorded if the function is a leaf of this trace and a proxy is
        among the arguments.
        """
        if id(function) in self._leaves:
            proxy = find_proxy(args, kwargs)
            if proxy is not None:
                return record_leaf(proxy, function, args, kwargs)
        return function(*args, **kwargs)

    def __deepcopy__(self, memo: dict[int, AnyValue]) -> Tracer:
        """A copy that shares the Python modules, which cannot be copied."""
        memo.update((id(module), module) for module in self._autowrap_search)
        new = memo[id(self)] = object.__new__(type(self))
        vars(new).update(copy.deepcopy(vars(self), memo))
        return new


def replacing(
    handle: Callable[[Tracer, Function, Args, Kwargs], AnyValue],
) -> Callable[[Function], Function]:
    """A maker of replacements that hand each call to the current trace.

    Where none runs in the calling thread, the original is called.
    """

    def make(called: Function) -> Function:
        # Someone may have saved a replacement and put it back since.
        original = original_of(called)

        @functools.wraps(original)
        def replacement(*args: AnyValue, **kwargs: AnyValue) -> AnyValue:
            trace = TRACES.current
            if not isinstance(trace, Tracer):
                return original(*args, **kwargs)
            return handle(trace, original, args, kwargs)

        vars(replacement)[ORIGINAL] = original
        return replacement

    # Kept, because each trace replaces those of math and torch anew; a user's
    # function would be kept alive.
    keep = functools.lru_cache(maxsize=256)(make)

    def keep_or_make(called: Function) -> Function:
        is_librarys = type(called) is BuiltinFunctionType or (
            type(called) is FunctionType and called.__module__[:6] == "torch."
        )
        return (keep if is_librarys else make)(called)

    return keep_or_make


_module_call: Final = replacing(Tracer._answer_call)  # noqa: SLF001
_own_call: Final = replacing(Tracer._answer_own_call)  # noqa: SLF001
_module_getattr: Final = replacing(Tracer._answer_read)  # noqa: SLF001
leaf_call: Final = replacing(Tracer._answer_function)  # noqa: SLF001
