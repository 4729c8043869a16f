"""Passes: the types that torch's own signatures give to values."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Final

import torch

from ..graph_module import GraphModule
from ..interpreter import Transformer
from ..linked_list.opcodes import Target
from ..proxy import Proxy
from ..use_def.text import resolves_to
from ..use_def.values import AnyValue, Args

__all__ = ["AnnotateTypesWithSchema"]

_PLAIN: Final = (bool, int, float, complex, str)
"""Types of attributes, besides tensors, that a node can have."""


class AnnotateTypesWithSchema(Transformer):
    """Notes on nodes what type their values have; other types stay.

    Looked at are functions of torch.nn.functional and modules of torch.nn,
    which have return annotations, and the attributes that are fetched.

    torch.fx: experimental/schema_type_annotation.py, AnnotateTypesWithSchema
    """

    _keeps_values = True

    def __init__(
        self,
        module: GraphModule,
        annotate_functionals: bool = True,
        annotate_modules: bool = True,
        annotate_get_attrs: bool = True,
    ) -> None:
        """Prepare to annotate a copy of a module.

        Args:
            module: stays as it is.
            annotate_functionals: whether to look at functions.
            annotate_modules: whether to look at modules.
            annotate_get_attrs: whether to look at attributes.
        """
        self.annotate_get_attrs = annotate_get_attrs
        self.annotate_modules = annotate_modules
        self.annotate_functionals = annotate_functionals
        super().__init__(module)

    def call_function(
        self, target: Target, args: Args, kwargs: AnyValue
    ) -> AnyValue:
        """A call of the function, with the type that it returns."""
        of_torch = getattr(target, "__module__", "") == "torch.nn.functional"
        proxy: AnyValue = super().call_function(target, args, kwargs)
        if self.annotate_functionals and of_torch and callable(target):
            _note(proxy, _returned(target))
        return proxy

    def call_module(
        self, target: Target, args: Args, kwargs: AnyValue
    ) -> AnyValue:
        """A call of the module, with the type that its forward returns."""
        module: AnyValue = self.fetch_attr(str(target))
        cls = type(module)
        proxy: AnyValue = super().call_module(target, args, kwargs)
        if self.annotate_modules and resolves_to(
            f"torch.nn.{cls.__name__}", cls
        ):
            _note(proxy, _returned(module.forward))
        return proxy

    def get_attr(self, target: Target, args: Args, kwargs: AnyValue) -> Proxy:
        """The attribute, with its type."""
        proxy = super().get_attr(target, args, kwargs)
        value: AnyValue = self.fetch_attr(str(target))
        if self.annotate_get_attrs and isinstance(value, torch.Tensor):
            _note(proxy, torch.Tensor)
        elif self.annotate_get_attrs and type(value) in _PLAIN:
            _note(proxy, type(value))
        return proxy


def _note(proxy: Proxy, kind: AnyValue) -> None:
    """Annotate a node with a type, unless it has one."""
    proxy.node.type = proxy.node.type or kind


def _returned(function: Callable[..., AnyValue]) -> AnyValue:
    """The return annotation of a function; None if it has none."""
    annotation: AnyValue = inspect.signature(function).return_annotation
    return None if annotation is inspect.Signature.empty else annotation
