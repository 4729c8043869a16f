"""Leaf functions: calls of globals that are recorded as one node."""

from __future__ import annotations

import math
from math import sqrt

import pytest

from fx.tracing.tracer import Tracer
from fx.tracing.wrapping import wrap
from fx.use_def.values import AnyValue
from stages.checking import check, same, working

PATCH = "tracing.patching.Patches.patch"

wrap("len")


def measured(x: AnyValue) -> AnyValue:
    """A value over the root of its length."""
    return x / sqrt(len(x))


@pytest.mark.exercise(PATCH)
def test_a_wrapped_builtin_is_recorded_in_a_trace() -> None:
    with working(
        "`wrap('len')` was called in this module, where no global is named "
        "len. The place is empty, so its original is MISSING, and what it "
        "holds is compared with that, not with the builtin that the "
        "replacement is made from. The trace raised an error:"
    ):
        graph = Tracer().trace(measured)
    same(
        [node.target for node in list(graph.nodes)[1:3]],
        [len, math.sqrt],
        "`wrap('len')` makes len a call in the graph.",
    )
    check(
        "len" not in globals(),
        "The module had no global len before the trace, and has one after it.",
    )
