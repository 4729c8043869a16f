"""Extra: records the calls of torch that a program makes with fake tensors.

While the program runs, a mode of torch shows us each call of a function or
method of torch.  A call that gives a tensor becomes a node:

    y = F.relu(x) + 1    →    relu = F.relu(x);  add = relu + 1

A call that gives something else, such as `x.dtype`, is a question.  Most
answers follow from what each guard checks; others are asked again at run time.

torch gives a mode the outermost call only. What
`F.multi_head_attention_forward` calls in its turn is not seen, and so the
graph keeps the words of the author. `x + 1` and `x.add(1)` are the same to a
mode, and both are written `x + 1`.

The stride of a computed tensor does not follow from the guards, since a fake
tensor may have other strides than a real one. So the graph asks again at this
place, and compares: one call more, for questions that are rare.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Final

import torch
from torch import nn
from torch.overrides import TorchFunctionMode, is_tensor_method_or_property

from ...node import Node
from ...proxy import TraceError
from ...recording import frames
from ...recording.operators import magic_methods
from ...torch_internals import pytree
from ...torch_internals.fake_tensors import unset_fake_temporarily
from ...torch_internals.symbolic_sizes import SYMBOLIC
from ...tracing.state import State
from ...tracing.tracer import Tracer
from ...usedef.values import Value
from ..watching.fixed import Entered
from . import refusals
from .blocks import Blocks
from .calls import Call, Function
from .leaves import Leaves
from .structures import is_tensor

if TYPE_CHECKING:
    from ...proxy import Proxy


class ExampleTracer(Blocks):
    """Records what a program does with fake tensors.

    Attributes:
        facts: what was asked of parameters and buffers, as sentences.
    """

    def _runs_by_forward(self) -> bool:
        """Whether `call_module` runs a module's forward itself: it does."""
        return True

    def __init__(self, chosen: Tracer, leaves: Leaves) -> None:
        """Begin with an empty graph.

        Args:
            chosen: says which modules are leaves.
            leaves: what else is.
        """
        super().__init__()
        self._chosen = chosen
        self._leaves = leaves
        self.facts: dict[str, str] = {}

    def begin(self, state: State) -> None:
        """Begin with what the root holds."""
        self._state = state
        self.submodule_paths = state.modules
        self.tensor_attrs.update(state.constants)
        self.entered: Entered = Entered(state.modules)

    def finish(self) -> None:
        """Forget the root, and what the trace kept alive."""
        self.submodule_paths = self._state = None
        self.entered = Entered({})
        self._alive.clear()

    def note_modes(self, output: Node) -> None:
        """Note at the output which modules' modes the graph has fixed."""
        self.entered.note_mode(output, self.root.training)

    # -- modules -----------------------------------------------------------

    def getattr(
        self,
        attr: str,
        attr_val: Value,
        parameter_proxy_cache: dict[str, Proxy],
    ) -> Value:
        """A fake tensor for a parameter or buffer."""
        return self.shown(attr_val)

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Whether a call is recorded as a whole, as the chosen tracer says."""
        return (
            m in self._leaves.modules
            or isinstance(m, torch.jit.ScriptModule)
            or self._chosen.is_leaf_module(m, module_qualified_name)
        )

    def call_module(
        self,
        m: nn.Module,
        forward: Function,
        args: tuple[Value, ...],
        kwargs: dict[str, Value],
    ) -> Value:
        """Record the call of a leaf, or run another module."""
        path, call = self.paths.get(m), Call(forward, args, kwargs)
        if self.paused or not path:
            return call.run()
        count = self.num_calls.get(path, 0)
        self.num_calls[path] = count + 1
        key = f"{path}@{count}" if count else path
        scope, here = self.scope, (path, type(m))
        before = scope.module_path, scope.module_type
        try:
            scope.module_path, scope.module_type = here
            self.module_stack[key] = here
            if not self.is_leaf_module(m, path):
                return call.run()
            make = partial(self.create_node, "call_module", path)
            return self.record_whole(call, make)
        finally:
            self.module_stack.pop(key, None)
            scope.module_path, scope.module_type = before

    # -- calls -------------------------------------------------------------

    def see(self, call: Call) -> Value:
        """Make a call of torch, and record it unless it only asks."""
        call, name = call.mapped(self.fake), call.name
        if name in _BY_ONES:
            self.sizes.ask_if_one(call.args[0])
        try:
            written: Value = self.create_arg((call.args, call.kwargs))
        except NotImplementedError:
            if call.has_values():
                raise
            with unset_fake_temporarily(), self.pause():
                return call.run()  # of an array of numpy, say
        result, bind = self.run_call(call, is_leaf=False)
        gives_tensors = any(map(is_tensor, pytree.tree_leaves(result)))
        if gives_tensors or (result is None and name != "__get__"):
            node = self._record(call, *written)
            return bind(node, result) if gives_tensors else None
        self._ask(call, result)
        return result

    def _record(self, call: Call, args: Value, kwargs: Value) -> Node:
        """The node for a call."""
        function, name = call.function, call.name
        make = partial(self.create_node, "call_function")
        if name in ("__get__", "__set__"):
            attribute: Value = function
            given = args[0], attribute.__self__.__name__, *args[1:]
            if name == "__get__":
                return make(getattr, given[:2], {})
            return make(setattr, given, {})
        is_method = getattr(torch.Tensor, name, None) is function
        if not is_method and not is_tensor_method_or_property(function):
            return make(function, args, kwargs)
        target, count, is_reflected = _OPERATORS.get(name, (None, 0, False))
        if target is not None and len(args) == count and not kwargs:
            return make(target, args[::-1] if is_reflected else args, {})
        return self.create_node("call_method", name, args, kwargs)

    # -- questions ---------------------------------------------------------

    def _ask(self, call: Call, answer: Value) -> None:
        """Note what was asked of a tensor.

        Raises:
            TraceError: the answer cannot be compared with a later one.
        """
        name, is_attribute = call.name, call.name == "__get__"
        if is_attribute:
            getter: Value = call.function
            name = getter.__self__.__name__
        asked: Value = next(iter(call.args), None)
        node = self.node_by_id.get(id(asked))
        if name in _FOLLOWS:
            path = self.path_of(asked)
            if path is not None:
                text = f"{path}.{name} was {answer!r}"
                self.facts.setdefault(text, frames.where())
            elif name == "dtype" and node and node.op != "placeholder":
                self.ask_what_casts(asked.device.type)
        elif name == "grad_fn":
            for attribute in ("requires_grad", "is_leaf"):
                get: Value = vars(torch.Tensor.__base__)[attribute].__get__
                self._ask(Call(get, (asked,), {}), get(asked))
        elif not isinstance(answer, _ANSWERS):
            raise TraceError(refusals.data_dependent(None, self.paths))
        elif node and node.op == "placeholder" and not self.inner:
            given = [*map(repr, call.args[1:])]
            given += [f"{key}={value!r}" for key, value in call.kwargs.items()]
            text = "" if is_attribute else f"({', '.join(given)})"
            self.sizes.ask_input(f"{node}.{name}{text}", answer)
        else:
            written: Value = self.create_arg((call.args, call.kwargs))
            again = self._record(call, *written)
            self.sizes.check_equal(again, self.create_arg(answer))


class Watch(TorchFunctionMode):
    """Shows a tracer each call of torch."""

    def __init__(self, tracer: ExampleTracer) -> None:
        """Make it for a tracer."""
        super().__init__()
        self._tracer = tracer

    def __torch_function__(
        self,
        func: Function,
        types: Value,
        args: Value = (),
        kwargs: Value = None,
    ) -> Value:
        """Hand a call to the tracer."""
        call = Call(func, args, kwargs or {})
        return call.run() if self._tracer.paused else self._tracer.see(call)


def _rows() -> Iterator[tuple[str, tuple[Function, int, bool]]]:
    """The names of methods, and what Python writes for them."""
    for name, text in magic_methods.items():
        bare, function = name.strip("_"), getattr(operator, name)
        yield bare, (function, text.count("{}"), False)
        yield f"__{bare}__", (function, text.count("{}"), False)
        yield f"__r{bare}__", (function, 2, True)
    yield "div", (operator.truediv, 2, False)
    yield "__setitem__", (operator.setitem, 3, False)


_OPERATORS: Final = dict(_rows())
"""Name of a method → operator, number of operands, whether in reverse."""

_BY_ONES: Final = ("squeeze", "squeeze_")
"""Calls whose result has fewer dimensions where a size is 1."""

_FOLLOWS: Final = frozenset(
    "dtype device layout ndim dim ndimension shape size numel nelement type "
    "is_floating_point is_complex is_signed element_size itemsize nbytes "
    "get_device is_cpu is_cuda is_meta is_sparse is_quantized is_nested "
    "is_mkldnn is_mps is_xpu __len__".split()
)
"""Questions whose answer follows from what each guard checks."""

_ANSWERS: Final = (bool, int, float, str, tuple, NoneType, *SYMBOLIC)
"""Types of answers that can be compared."""
