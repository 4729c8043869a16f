"""What a program of `cases/` notes of each case, for the comparison."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Final, TypeAlias

import torch
import torch.fx
from torch.utils import _pytree as pytree

import fx
from fx.use_def.values import AnyValue

Notes: TypeAlias = dict[str, AnyValue]
"""What was found in a case: a name, and text, a graph, tensors …"""

UNDER_FX: Final = torch.fx.__name__ == "fx" or sys.argv[3:] == ["fx"]
"""Whether fx is tried: all imports say fx, or the runner asks for it."""

library: Final[AnyValue] = fx if UNDER_FX else torch.fx
"""The library that is tried, for programs that use both."""

SECONDS: Final = "seconds"
"""A note of how long a trace took: it is shown, and not compared."""

_cases: Final[dict[str, dict[str, str]]] = {}


def to_ours(gm: AnyValue) -> AnyValue:
    """A graph that PyTorch made, for the library that is tried."""
    is_ours = isinstance(gm, fx.GraphModule)
    return fx.from_torch(gm) if UNDER_FX and not is_ours else gm


def to_torch(gm: AnyValue) -> AnyValue:
    """A graph of the library that is tried, for PyTorch."""
    return fx.to_torch(gm) if UNDER_FX else gm


def module(found: Notes, gm: AnyValue, *inputs: AnyValue) -> None:
    """Note a graph module: its graph, its code, what it returns."""
    found["graph"] = gm.graph
    found["code"] = gm.code
    torch.manual_seed(0)
    found["result"] = gm(*inputs)


@contextmanager
def case(name: str) -> Iterator[Notes]:
    """A case; what its block puts into the dict is noted, or its error."""
    found: Notes = {}
    torch.manual_seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield found
    except Exception as error:  # of another library
        line = str(error).strip().partition("\n")[0]
        found["error"] = f"{type(error).__name__}: {line}"
    _cases[name] = {key: _text(value) for key, value in found.items()}


def finish(packages: Sequence[str], file: Path) -> None:
    """Write what was noted to a file.

    Args:
        packages: what the cases are about, as its distribution is named.
        file: where to write.
    """
    versions = {name: metadata.version(name) for name in packages}
    found = {"versions": versions, "cases": _cases}
    file.write_text(json.dumps(found, indent=1), encoding="utf-8")


def _text(value: AnyValue) -> str:
    """A value as text that is equal if the value is, in either library."""
    if not isinstance(value, str | torch.fx.Graph | fx.Graph):
        leaves, spec = pytree.tree_flatten(value)
        value = "\n".join([str(spec), *map(_leaf, leaves)])
    text = re.sub(r"0x[0-9a-f]{6,}", "0x…", str(value))
    text = re.sub(r"\btorch\.fx\b", "fx", text)
    # docs/differences.md, "wrap-line": ours is a global of the code.
    return text.replace("fx._symbolic_trace.wrap(", "wrap(")


def _leaf(value: AnyValue) -> str:
    """A tensor as shape, type and a checksum of its bytes; others as text."""
    if not isinstance(value, torch.Tensor):
        return str(value)
    if value.is_quantized:
        value = value.dequantize()
    data = value.detach().contiguous().reshape(-1).view(torch.uint8)
    digest = hashlib.sha256(data.numpy().tobytes()).hexdigest()[:16]
    return f"{value.dtype} {tuple(value.shape)} {digest}"
