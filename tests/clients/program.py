"""The program that runs the cases of one client; see `runner`.

program.py CLIENT FILE [fx]
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from pathlib import Path

import torch

from tests.clients.record import finish


def main(client: str, file: str) -> None:
    """Run the cases of a client, and write what they noted to a file."""
    torch.set_num_threads(1)
    # torchvision's operators are not loaded where it was built for another
    # torch than this; its models need only that they are declared.
    for name in ("nms", "qnms"):
        with contextlib.suppress(RuntimeError):
            torch.library.define(
                f"torchvision::{name}",
                "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
            )
    cases = importlib.import_module(f"tests.clients.cases.{client}")
    cases.main()
    finish(cases.PACKAGES, Path(file))


if __name__ == "__main__":
    main(*sys.argv[1:3])
