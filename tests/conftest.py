"""What all tests share: how long the property tests run."""

from __future__ import annotations

from hypothesis import settings

# The same examples each time, so that `make test` gives the same answer
# twice; no deadline, since the first call of a torch operator is slow.
settings.register_profile("test", derandomize=True, deadline=None)
# Fresh examples, many of them: `make fuzz`.
settings.register_profile("fuzz", max_examples=5000, deadline=None)
settings.load_profile("test")
