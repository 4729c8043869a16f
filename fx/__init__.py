"""fx: torch.fx built again, as eight stages a person can read."""

from . import (
    annotate,
    arguments,
    effects,
    graph,
    immutable_collections,
    lint,
    node,
    operator_schemas,
    proxy,
    traceback,
    tracer,
)
from .concrete_args import PH
from .graph import Graph
from .node import Node, map_arg
from .proxy import Proxy
from .tracer import Tracer
from .wrapping import ProxyableClassMeta, wrap
