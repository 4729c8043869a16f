"""Which torch fx works with: asked for, refused if too old, never warned of."""

from __future__ import annotations

import re

import pytest

import fx
from fx.torch_internals.names import OLDEST_TORCH, checked_version
from tests.process import printed, python

IMPORT = "import torch; torch.__version__ = '{}'; import fx; print('imported')"
"""A program that imports fx beside a torch that says it is another version."""


def test_the_versions_can_be_asked_for() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", fx.__version__)
    oldest, newest = fx.tested_torch
    assert oldest == OLDEST_TORCH
    assert int(newest.removeprefix("2.")) >= 15


@pytest.mark.parametrize("version", ["1.13.1", "2.0.0+cpu", "2.8.0+cu128"])
def test_an_older_torch_is_refused(version: str) -> None:
    with pytest.raises(ImportError, match=r"2\.9 or newer") as refused:
        checked_version(version)
    assert version in str(refused.value)


@pytest.mark.parametrize(
    "version", ["2.9.0", "2.9.1+cpu", "2.10.0", "2.16.0.dev20260101", "3.0.0"]
)
def test_every_newer_torch_is_taken(version: str) -> None:
    assert checked_version(version) == version


def test_an_older_torch_is_one_error_at_import() -> None:
    run = python("-c", IMPORT.format("2.8.0+cpu"))
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1] == (
        "ImportError: fx needs torch 2.9 or newer, and this is torch "
        "2.8.0+cpu: pip install 'torch>=2.9'"
    )


def test_nothing_is_said_about_a_torch_newer_than_what_was_tested() -> None:
    run = python("-W", "error", "-c", IMPORT.format("2.99.0"))
    assert (run.stdout, run.stderr) == ("imported\n", "")


def test_a_torch_too_old_is_noticed_before_anything_else_of_fx() -> None:
    program = (
        "import sys, torch; torch.__version__ = '2.1.0'\n"
        "try: import fx\n"
        "except ImportError: pass\n"
        "print(*sorted(name for name in sys.modules if name[:3] == 'fx.'))"
    )
    assert printed("-c", program).split() == [
        *("fx.torch_internals", "fx.usedef", "fx.usedef.values")
    ]
