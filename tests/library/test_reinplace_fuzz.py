"""Reinplacing random programs: same results, and a broken rule is found."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import fx
from fx.passes import reinplace as passes_reinplace
from fx.passes.reinplace import reinplace, reinplace_report
from fx.reinplacing.simulation import Simulation
from tests.library.random_aten import random_inputs, random_program

SEEDS = st.integers(min_value=0, max_value=10**9)
EXAMPLES = max(200, settings().max_examples)


def equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Equal in size, dtype and every element."""
    return one.dtype == other.dtype and torch.equal(one, other)


def run(gm: fx.GraphModule, seed: int) -> tuple[list[torch.Tensor], ...]:
    """The results, and the inputs afterwards."""
    inputs = random_inputs(seed)
    return [result.clone() for result in gm(*inputs)], inputs


def difference(seed: int) -> str | None:
    """What reinplace has changed about results or inputs, if anything."""
    gm = random_program(seed)
    code, (before, inputs) = gm.code, run(gm, seed)
    reinplace(gm, *random_inputs(seed))
    gm.graph.lint()
    both = f"seed {seed}\n{code}\n{gm.code}"
    try:
        after, touched = run(gm, seed)
    except (RuntimeError, ValueError) as raised:
        return f"{raised}\n{both}"
    if not all(map(equal, before, after)):
        return f"the results differ\n{both}"
    if not all(map(equal, inputs, touched)):
        return f"the inputs differ\n{both}"
    return None


@settings(max_examples=EXAMPLES)
@given(SEEDS)
def test_results_and_inputs_stay_the_same(seed: int) -> None:
    found = difference(seed)
    assert found is None, found


def test_the_programs_use_every_rule() -> None:
    """Otherwise the test above would be green for nothing."""
    done: set[str] = set()
    kept: set[str] = set()
    for seed in range(150):
        report = reinplace_report(random_program(seed), *random_inputs(seed))
        done |= {verdict.rule for verdict in report.done}
        kept |= {verdict.rule for verdict in report.kept}
    assert done == {"3a", "3b", "5"}
    assert {"1a", "1b", "1c", "2", "3b"} <= kept


def free_to_the_end(sim: Simulation, call: object) -> int:
    """What rule 1b says of memory that no input owns."""
    return len(sim.nodes)


@pytest.mark.parametrize(
    ("rule", "broken"),
    [
        ("rule_1a_metadata", lambda sim, call: None),
        ("rule_1b_inputs", free_to_the_end),
        ("rule_1c_arguments", lambda sim, call: None),
        ("rule_2_later_uses", lambda sim, call, limit: None),
    ],
    ids=["1a", "1b", "1c", "2"],
)
def test_a_rule_that_is_switched_off_is_missed(
    rule: str,
    broken: Callable[..., object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(passes_reinplace, rule, broken)
    assert any(difference(seed) for seed in range(600))
