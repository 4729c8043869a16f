"""depyf: the source of what torch.compile has made, in files."""

from __future__ import annotations

import contextlib
import re
import tempfile
from pathlib import Path
from typing import Final

import depyf
import torch

from tests.clients.record import case
from tests.clients.small import NETWORKS

PACKAGES = ("depyf", "torch")

_NAMES: Final = re.compile(r"[0-9a-f_]{36,}|/\S*(?=tests/clients)")
"""What is another in each run: a graph's name, and the path to a folder."""


def main() -> None:
    """Compile each network for two backends, and read the files."""
    for network, (make, x) in NETWORKS.items():
        for backend in "eager", "aot_eager":
            with (
                case(f"{network}, {backend}") as found,
                tempfile.TemporaryDirectory() as folder,
                contextlib.chdir(folder),
                torch.no_grad(),
            ):
                torch._dynamo.reset()
                with depyf.prepare_debug(folder):
                    torch.compile(make().eval(), backend=backend)(x)
                for file in sorted(Path(folder).glob("__*.py")):
                    name_and_text = file.name, file.read_text("utf-8")
                    key, text = (_NAMES.sub("…", s) for s in name_and_text)
                    found[key] = text
