"""Imports what each check needs, except fx, into the process they fork from."""

from __future__ import annotations

import contextlib
import gc
import io
import os

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from stages import course
from stages.tree import compile_reference

__all__ = ["course", "pytest"]

# If torch's thread pool had started, a forked process would wait for ever.
torch.set_num_threads(1)
compile_reference()
FakeTensorMode()  # the first one imports for two seconds

# Plugins that other packages add to pytest are not needed, and cost a second.
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
with contextlib.redirect_stdout(io.StringIO()):
    pytest.main(["--version"])  # imports pytest's own parts
gc.freeze()  # forks need not search all this for garbage
