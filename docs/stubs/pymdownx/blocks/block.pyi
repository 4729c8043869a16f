from abc import ABCMeta, abstractmethod
from collections.abc import Mapping
from typing import Any
from xml.etree.ElementTree import Element

from markdown import Markdown

class Block(metaclass=ABCMeta):
    NAME: str
    ARGUMENT: bool
    md: Markdown
    argument: str
    config: Mapping[str, Any]
    @abstractmethod
    def on_create(self, parent: Element) -> Element: ...
