"""Passes: which calls a back end can run."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import torch
from torch import nn

from ..node import Node
from .shape_prop import TensorMetadata
from .tools_common import CALLABLE_NODE_OPS, get_node_target

__all__ = [
    "OpSupports",
    "OperatorSupport",
    "OperatorSupportBase",
    "any_chain",
    "chain",
    "create_op_support",
]

TargetTypeName: TypeAlias = str
"""What `get_node_target` returns."""

Dtypes: TypeAlias = Sequence[torch.dtype] | None
"""The dtypes that an argument may have; None for any."""

SupportedArgumentDTypes: TypeAlias = (
    tuple[Sequence[Dtypes], Mapping[str, Dtypes]] | None
)
"""Those of the arguments by place and by keyword; None for any."""

SupportDict: TypeAlias = Mapping[TargetTypeName, SupportedArgumentDTypes]

Submodules: TypeAlias = Mapping[str, nn.Module]
"""Path -> module, as `dict(gm.named_modules())`."""

IsNodeSupported: TypeAlias = Callable[[Submodules, Node], bool]


class OperatorSupportBase(abc.ABC):
    """Says which nodes a back end can run.

    torch.fx: passes/operator_support.py, OperatorSupportBase
    """

    @abc.abstractmethod
    def is_node_supported(self, submodules: Submodules, node: Node) -> bool:
        """Whether the back end can run a node."""


class OperatorSupport(OperatorSupportBase):
    """Supports the calls of a table, with arguments of given dtypes.

        OperatorSupport({
            "torch.relu": None,
            "torch.add": (([torch.float32], None), {"other": [torch.int64]}),
        })

    supports any `torch.relu`; and `torch.add` if its first argument, where
    that is a node's value, is float32, and so on.  Dtypes are those that
    `ShapeProp` has noted.

    torch.fx: passes/operator_support.py, OperatorSupport
    """

    _support_dict: SupportDict

    def __init__(self, support_dict: SupportDict | None = None) -> None:
        """Support what a table has; nothing without one."""
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules: Submodules, node: Node) -> bool:
        """Whether the table has the call; a node that calls nothing is.

        Raises:
            KeyError: dtypes are asked for, and ShapeProp has not run.
        """
        if node.op not in CALLABLE_NODE_OPS:
            return True
        target = get_node_target(submodules, node)
        dtypes = self._support_dict.get(target)
        if dtypes is None:
            return target in self._support_dict
        by_place, by_name = dtypes
        given = [
            *zip(by_place, node.args, strict=False),
            *((by_name[key], node.kwargs.get(key)) for key in by_name),
        ]
        return all(
            _dtype_of(value) in allowed
            for allowed, value in given
            if allowed is not None and isinstance(value, Node)
        )


def _dtype_of(node: Node) -> object:
    """The dtype of a node's value, or its type if it is not one tensor."""
    noted = node.meta.get("tensor_meta")
    if isinstance(noted, TensorMetadata):
        return noted.dtype
    if "type" not in node.meta:
        raise KeyError(
            f"type: nothing is noted of {node}; run ShapeProp before"
        )
    return node.meta["type"]


class _Asks(OperatorSupportBase):
    """Supports what a function says."""

    def __init__(self, is_node_supported: IsNodeSupported) -> None:
        self._ask = is_node_supported

    def is_node_supported(self, submodules: Submodules, node: Node) -> bool:
        return self._ask(submodules, node)


def create_op_support(
    is_node_supported: IsNodeSupported,
) -> OperatorSupportBase:
    """Support what a function of submodules and node says.

    torch.fx: passes/operator_support.py, create_op_support
    """
    return _Asks(is_node_supported)


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Support what all of some support.

    torch.fx: passes/operator_support.py, chain
    """
    return _Asks(
        lambda modules, node: all(
            one.is_node_supported(modules, node) for one in op_support
        )
    )


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Support what at least one of some supports.

    torch.fx: passes/operator_support.py, any_chain
    """
    return _Asks(
        lambda modules, node: any(
            one.is_node_supported(modules, node) for one in op_support
        )
    )


class OpSupports:
    """What can be given to `chain`.

    torch.fx: passes/operator_support.py, OpSupports
    """

    @classmethod
    def decline_if_input_dtype(cls, dtype: torch.dtype) -> OperatorSupportBase:
        """Support nodes none of whose inputs has a dtype."""
        return _Asks(
            lambda _, node: all(
                _dtype_of(value) != dtype for value in node.all_input_nodes
            )
        )

    @classmethod
    def decline_if_node_in_names(
        cls, disallow_set: set[str]
    ) -> OperatorSupportBase:
        """Support nodes whose names are not in a set."""
        return _Asks(lambda _, node: node.name not in disallow_set)
