"""Imported once by the process that checks are forked from: all but fx."""

from __future__ import annotations

import contextlib
import io
import os

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from stages import plugin
from stages.tree import compile_reference

__all__ = ["plugin", "pytest"]

# A fork of a process whose pool of threads has started would wait for ever.
torch.set_num_threads(1)
compile_reference()
FakeTensorMode()  # the first one imports for two seconds

# What other packages add to pytest is not needed, and takes a second.
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
with contextlib.redirect_stdout(io.StringIO()):
    pytest.main(["--version"])  # imports pytest's own parts
