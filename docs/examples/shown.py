"""A module is shown before and after a pass."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path

import torch
from torch import nn

import fx
from fx.passes.conv_bn_fusion import fold_conv_bn


def main() -> None:
    """Write two pages."""
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
    gm = fx.symbolic_trace(model.eval())
    x = torch.randn(1, 3, 32, 32)
    folded = copy.deepcopy(gm)
    fold_conv_bn(folded)
    with tempfile.TemporaryDirectory() as folder:
        one = fx.show(gm, x, times=True)
        two = fx.show(gm, x, after=folded, title="folded")
        for page in (one, two):
            file = page.write(Path(folder) / f"{page.title}.html")
            print(file.name, "<title>" in file.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
