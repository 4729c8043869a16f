"""Where torch.fx has what a page names: a link to the file."""

from __future__ import annotations

import re
import xml.etree.ElementTree as etree
from typing import Final

from docs.machinery.scene import after, element
from fx.torch_private.names import TESTED_TORCH

NEWEST: Final = TESTED_TORCH[1]
"""The torch that fx follows."""

PUBLIC: Final = "https://github.com/pytorch/pytorch/blob"
"""Where torch's source is public, below the name of a tag."""

_of_torch = re.compile(r"torch\.fx: ([\w/]+)\.py, +([\w.]+)(.*)")


def of_torch(paragraph: str) -> tuple[str, str] | None:
    """What `torch.fx: node.py, Node.prepend, …` names, and what follows it.

    Returns:
        The full name, `torch.fx.node.Node.prepend`; None for any other text.
    """
    found = _of_torch.match(" ".join(paragraph.split()))
    if not found:
        return None
    path, name, rest = found.groups()
    return f"torch.fx.{path.replace('/', '.')}.{name.rstrip('.')}", rest


def split(name: str) -> tuple[str, str]:
    """The file of a full name, and the name in it.

    The file ends before the first class, or before the last part.
    """
    *parts, _ = name.split(".")
    classes = [
        n for n, one in enumerate(parts) if one.lstrip("_")[:1].isupper()
    ]
    count = classes[0] if classes else len(parts)
    inside = name.split(".")[count:]
    return f"{'/'.join(parts[:count])}.py", ".".join(inside)


def where(box: etree.Element, name: str) -> None:
    """Say where torch.fx has a name, with a link to the file."""
    path, inside = split(name)
    after(element(box, "strong", f"torch.fx {NEWEST}"), " ")
    after(element(box, "code", inside), " ")
    element(box, "a", path, href=f"{PUBLIC}/v{NEWEST}.0/{path}")
