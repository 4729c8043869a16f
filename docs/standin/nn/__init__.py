"""A stand-in for torch.nn."""

from .._functions import LISTED, lacking
from .._tensor import AnyValue
from . import functional as functional
from .modules import ALIKE, unknown
from .modules import LSTM as LSTM
from .modules import Conv2d as Conv2d
from .modules import Embedding as Embedding
from .modules import Flatten as Flatten
from .modules import Linear as Linear
from .modules import MaxPool2d as MaxPool2d
from .modules import Module as Module
from .modules import ModuleList as ModuleList
from .modules import MultiheadAttention as MultiheadAttention
from .modules import Parameter as Parameter
from .modules import Sequential as Sequential

globals().update(ALIKE)


def __getattr__(name: str) -> AnyValue:
    """A module of which only is known that torch has it."""
    if name not in LISTED["modules"]:
        raise lacking("torch.nn", name)
    return globals().setdefault(name, unknown(name))
