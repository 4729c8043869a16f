"""Which torch fx works with: it can be asked for, and none is warned of."""

from __future__ import annotations

import re

import pytest
from torch.torch_version import TorchVersion

import fx
from fx.torch_private.names import OLDEST_TORCH, checked_version
from tests.process import printed, python

SAY = "import torch; torch.__version__ = type(torch.__version__)('{}')\n"
"""A program that makes torch say that it is another version."""


def test_the_versions_can_be_asked_for() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+)?", fx.__version__)
    oldest, newest = fx.tested_torch
    assert oldest == OLDEST_TORCH
    assert TorchVersion(newest) >= "2.15"


@pytest.mark.parametrize(
    "version", ["2.9.0", "2.9.1+cpu", "2.10.0", "2.16.0.dev20260101", "3.0.0"]
)
def test_every_newer_torch_is_taken(version: str) -> None:
    assert checked_version(TorchVersion(version)) == version


def test_nothing_is_said_about_a_torch_newer_than_what_was_tested() -> None:
    run = python(
        *("-W", "error", "-c"),
        SAY.format("2.99.0") + "import fx; print('imported')",
    )
    assert (run.stdout, run.stderr) == ("imported\n", "")


def test_a_torch_too_old_is_noticed_before_anything_else_of_fx() -> None:
    program = SAY.format("2.1.0") + (
        "import sys\n"
        "try: import fx\n"
        "except ImportError: pass\n"
        "print(*sorted(name for name in sys.modules if name[:3] == 'fx.'))"
    )
    assert printed("-c", program).split() == [
        *("fx.torch_private", "fx.use_def", "fx.use_def.values")
    ]
