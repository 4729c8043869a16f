"""What all tests share: how the property tests and the collector run."""

from __future__ import annotations

import gc

import pytest
from hypothesis import settings

# The same examples each time, so that `make test` gives the same answer
# twice; no deadline, since the first call of a torch operator is slow.
settings.register_profile("test", derandomize=True, deadline=None)
# Fresh examples, many of them: `make fuzz`.
settings.register_profile("fuzz", max_examples=5000, deadline=None)
settings.load_profile("test")


@pytest.fixture(scope="module", autouse=True)
def frozen() -> None:
    """Let the collector look at what a test made, not at torch and all tests.

    It would look so rarely otherwise that gigabytes of garbage come together,
    and each look would take so long that rounds of threads took minutes.
    """
    gc.collect()
    gc.freeze()
