"""The program that runs the cases of one client; see `runner`.

program.py CLIENT FILE [fx]
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import torch

from tests.clients.apart import APART
from tests.clients.record import finish
from tests.clients.vision import declare_operators


def main(client: str, file: str) -> None:
    """Run the cases of a client, and write what they noted to a file."""
    torch.set_num_threads(1)
    if client not in APART:  # the others have the torchvision of their torch
        declare_operators()
    cases = importlib.import_module(f"tests.clients.cases.{client}")
    cases.main()
    finish(cases.PACKAGES, Path(file))


if __name__ == "__main__":
    main(*sys.argv[1:3])
