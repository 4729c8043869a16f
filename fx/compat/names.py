"""Passes: names that torch.fx has in an earlier file than fx.

`fx.graph` is a file of stage 02 and imports nothing of stage 05, so that
`CodeGen` cannot be defined or imported there.  Programs that were written for
torch.fx look for it there all the same.  The package root therefore
sets such names last, from the one table here.

A name is in the table if other people's programs ask for it and fx has
something that plays the same part.  Without that it stays missing, because an
ImportError is clearer than a function that does nothing.  So there is no
`Graph._find_nodes_lookup_table`: `node.graph is graph` answers its question.

A few are torch.fx's own objects. They are about the text of a stack trace,
TorchScript's types, notes in `meta` or unpickling, and touch no node except by
its attributes, so that they work with either library.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType
from typing import Final

import torch.fx
from torch import nn
from torch.fx import traceback as torch_traceback

from .. import (
    _pytree,
    _symbolic_trace,
    annotate,
    experimental,
    graph,
    graph_module,
    immutable_collections,
    interpreter,
    node,
    operator_schemas,
    passes,
    proxy,
    subgraph_rewriter,
    traceback,
)
from ..codegen import attributes
from ..codegen.codegen import CodeGen
from ..codegen.nested import _BoxedCodeGen, _PyTreeCodeGen
from ..linked_list.namespace import Namespace
from ..passes import utils
from ..passes.utils import matcher_utils
from ..recording import operators
from ..tracing.tracer import Tracer
from ..use_def import dead_code, protocols, text, values
from ..use_def.values import AnyValue, Args, Argument, Kwargs
from .first_use import importer, load, of_namesake


def _format_arg(arg: Argument, max_list_len: float = math.inf) -> str:
    """An argument as the printed graph shows it; of a long list, its head."""
    if not isinstance(arg, list | tuple) or len(arg) <= max_list_len:
        return text.format_arg(arg)
    left, right = "[]" if isinstance(arg, list) else "()"
    head = map(text.format_arg, arg[: int(max_list_len)])
    return f"{left}{', '.join(head)}, ...[total_len={len(arg)}]{right}"


def _deserialization_tracer(cls: type[Tracer], root: nn.Module) -> Tracer:
    """Make the tracer with which torch.fx traces pickled code again.

    fx pickles the graph and asks for none; a class of the user's that makes
    one in another way, as torch.fx wants it, can call this.

    torch.fx: _symbolic_trace.py, Tracer._graph_module_deserialization_tracer
    """
    return cls()


_OF_UTILS: Final[dict[str, str]] = {
    name: f"passes.utils.common.{name}"
    for name in ("HolderModule", "compare_graphs", "lift_subgraph_as_module")
}
"""What `fx.passes.utils` has of its modules, by name."""


def _normalize_function_or_error(
    target: Callable[..., AnyValue],
    args: Args,
    kwargs: Kwargs | None = None,
    *types_and_flag: AnyValue,
    **types_and_flag_by_name: AnyValue,
) -> operator_schemas.ArgsKwargsPair:
    """Do what `normalize_function` does, but raise where it gives None.

    torch.fx: operator_schemas.py, _normalize_function_or_error
    """
    pair = operator_schemas.normalize_function(
        target, args, kwargs, *types_and_flag, **types_and_flag_by_name
    )
    if pair is None:
        raise RuntimeError(
            f"Failed to normalize function {target} with args {args} and "
            f"kwargs {kwargs}"
        )
    return pair


def _copy_attr(
    from_module: nn.Module, to_module: nn.Module, target: str
) -> None:
    """Put what a module has at a path into another one, at the same path.

    torch.fx: graph_module.py, _copy_attr
    """
    attributes.copy_attributes(from_module, to_module, (target,))


_FRONT_DOORS: Final = (
    _pytree,
    _symbolic_trace,
    annotate,
    graph,
    graph_module,
    immutable_collections,
    interpreter,
    node,
    operator_schemas,
    proxy,
    subgraph_rewriter,
    traceback,
)
"""The modules that give what their namesakes in torch.fx import."""

_NAMES: Final[dict[ModuleType | type, dict[str, AnyValue]]] = {
    graph: {
        "CodeGen": CodeGen,
        "_BoxedCodeGen": _BoxedCodeGen,
        "_Namespace": Namespace,
        "_PyTreeCodeGen": _PyTreeCodeGen,
        "_PyTreeInfo": protocols.PyTreeInfo,
        "inplace_methods": operators.inplace_methods,
        "magic_methods": operators.magic_methods,
        "reflectable_magic_methods": operators.reflectable_magic_methods,
    },
    graph_module: {
        "_USER_PRESERVED_ATTRIBUTES_KEY": attributes.PRESERVED,
        "_copy_attr": _copy_attr,
    },
    node: {
        "BaseArgumentTypes": values.BaseArgumentTypes,
        "_format_arg": _format_arg,
        "_side_effectful_functions": dead_code.side_effect_registry,
        "has_side_effect": dead_code.has_side_effect,
    },
    operator_schemas: {
        "_normalize_function_or_error": _normalize_function_or_error,
    },
    _pytree: {
        "_dict_flatten_spec": _pytree._values,
        "_list_flatten_spec": _pytree._items,
        "_tuple_flatten_spec": _pytree._items,
    },
    traceback: {
        "NodeSource": torch_traceback.NodeSource,
        "NodeSourceAction": torch_traceback.NodeSourceAction,
    },
    _symbolic_trace: {
        "_set_is_fx_tracing": _symbolic_trace.set_is_fx_tracing,
    },
    Tracer: {
        "_graph_module_deserialization_tracer": classmethod(
            _deserialization_tracer
        ),
    },
    **{
        package: {"__getattr__": importer(package.__name__, {})}
        for package in (passes, experimental)
    },
    utils: {"__getattr__": importer(utils.__name__, _OF_UTILS)},
}
"""Module or class of fx -> the names that it gets, and what they mean."""

_LATER: Final[dict[ModuleType, dict[str, str]]] = {
    graph: {
        "_parse_stack_trace": "torch_private.torch_fx.parse_stack_trace",
        "_pytree_info": "extra.saving.packing._pytree_info",
    },
    graph_module: {
        "_CodeOnlyModule": "torch_private.torch_fx.CodeOnlyModule",
        "_exec_with_source": "torch_private.torch_fx.exec_with_source",
        "reduce_graph_module": (
            "extra.saving.pickled_modules.reduce_graph_module"
        ),
    },
    _symbolic_trace: {
        name: f"extra.watching.flags.{name[1:]}"
        for name in (
            *("_get_is_fx_tracing", "_is_fx_tracing_context"),
            "_is_fx_tracing_flag",
        )
    },
    operator_schemas: {
        "_torchscript_type_to_python_type": (
            "torch_private.torch_fx.python_type"
        ),
    },
}
"""Module of fx -> names that are looked up when they are asked for."""


def _read_from_torch(source: AnyValue) -> AnyValue:
    """A pattern or replacement of torch.fx as one of fx."""
    return load("compat.torch_graphs.read_from_torch")(source)


def set_all() -> None:
    """Set the names; the package root does so when all modules are there."""
    for kind in (torch.fx.Graph, torch.fx.GraphModule):
        matcher_utils.CONVERTERS[kind] = _read_from_torch
    for door in _FRONT_DOORS:
        later = _LATER.get(door, {})
        vars(door)["__getattr__"] = of_namesake(door.__name__, later)
    for holder, names in _NAMES.items():
        for name, value in names.items():
            setattr(holder, name, value)
