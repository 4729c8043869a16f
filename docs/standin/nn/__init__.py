"""A stand-in for torch.nn."""

from . import functional as functional
from .modules import ALIKE
from .modules import Conv2d as Conv2d
from .modules import Flatten as Flatten
from .modules import Linear as Linear
from .modules import MaxPool2d as MaxPool2d
from .modules import Module as Module
from .modules import ModuleList as ModuleList
from .modules import Parameter as Parameter
from .modules import Sequential as Sequential

globals().update(ALIKE)
