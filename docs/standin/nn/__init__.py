"""A stand-in for torch.nn."""

from .._functions import LISTED, lacking
from .._tensor import AnyValue
from . import functional as functional
from . import init as init
from . import modules as modules
from .layers import LAYERS, unknown
from .modules import Module as Module
from .modules import ModuleDict as ModuleDict
from .modules import ModuleList as ModuleList
from .modules import Parameter as Parameter
from .modules import Sequential as Sequential

globals().update(LAYERS)


def __getattr__(name: str) -> AnyValue:
    """A module of which only is known that torch has it."""
    if name not in LISTED["modules"]:
        raise lacking("torch.nn", name)
    kind = unknown(name)
    kind.__module__ = LISTED["modules"][name]
    return globals().setdefault(name, kind)
