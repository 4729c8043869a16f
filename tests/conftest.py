"""What all tests share: how the property tests and the collector run.

And which torch they are for: what compares with texts or lists of the newest
torch.fx is left out beside an older torch.
"""

from __future__ import annotations

import gc
import importlib

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what is marked `newest`, unless the newest torch is there."""
    marked = [item for item in items if item.get_closest_marker("newest")]
    if not marked:
        return
    names = importlib.import_module("fx.torch_private.names")
    if names.TORCH.startswith(f"{names.TESTED_TORCH[1]}."):
        return
    for item in marked:
        item.add_marker(pytest.mark.skip(reason="for the newest torch alone"))
