"""Stage 08, reinplace: the verdict on each call, and the bytes saved."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from .simulation import INPUTS, Simulation, Verdict


@dataclass(frozen=True)
class ReinplaceReport:
    """What `reinplace` does to a graph, and what it leaves.

    Attributes:
        done: the nodes that are done in place or erased, in order.
        kept: the other calls, except for views and writes, with the rule that
            stopped each.
        peak_before: the most bytes that are alive at once, without the inputs
            and the module's own tensors.
        peak_after: the same for the rewritten graph.
    """

    done: tuple[Verdict, ...]
    kept: tuple[Verdict, ...]
    peak_before: int
    peak_after: int

    def __str__(self) -> str:
        lines = [
            f"{len(self.done)} of {len(self.done) + len(self.kept)} calls in "
            f"place or erased; peak {self.peak_before:,} -> "
            f"{self.peak_after:,} bytes"
        ]
        for sign, verdicts in (("+", self.done), ("-", self.kept)):
            lines += [
                f"{sign} {v.node:24} {v.target:32} ({v.rule}) {v.reason}"
                for v in verdicts
            ]
        return "\n".join(lines)


def report_on(sim: Simulation) -> ReinplaceReport:
    """The report on a simulation in which all calls are decided.

    Storages are counted and not tensors, so a view costs nothing.  A storage is
    born where it is allocated and dies after the last node that holds a value
    in it, as in the generated code.
    """
    return ReinplaceReport(
        tuple(sim.done),
        tuple(sim.kept),
        _peak_bytes(sim, after=False),
        _peak_bytes(sim, after=True),
    )


def _peak_bytes(sim: Simulation, after: bool) -> int:
    """The most bytes that are alive at once, if values die at their last use.

    Args:
        sim: the simulation.
        after: whether to count for the rewritten graph.
    """
    births: dict[int, int] = {}
    deaths: dict[int, int] = {}
    for place, node in enumerate(sim.nodes):
        if after and node in sim.erased:
            continue
        is_given = node.op in INPUTS
        for holder in (node, *node.all_input_nodes):
            for number in sim.storages.of[holder]:
                storage = sim.fused.find(number) if after else number
                births.setdefault(storage, -1 if is_given else place)
                deaths[storage] = place
    changes = [0] * (len(sim.nodes) + 1)
    for storage, birth in births.items():
        if birth >= 0:
            changes[birth] += sim.storages.all[storage].nbytes()
            changes[deaths[storage] + 1] -= sim.storages.all[storage].nbytes()
    return max(itertools.accumulate(changes))
