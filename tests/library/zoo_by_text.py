"""The networks, for tests that compare their texts with those of torch.fx."""

from __future__ import annotations

import pytest

from tests.zoo import ZOO

_UNIONS = frozenset(("bert_base",))
"""The networks with an annotation that torch.fx wrote otherwise before 2.15."""

BY_TEXT = [
    pytest.param(
        network,
        id=network.name,
        marks=[pytest.mark.newest] * (network.name in _UNIONS),
    )
    for network in ZOO
]
