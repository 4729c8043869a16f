"""Traces of the zoo's networks, compiled and exported by torch.

Both libraries' traces have to give what the network itself gives, forward and
gradient: to the last bit where torch runs the same operators, and nearly where
"inductor" makes kernels of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.clients.record import Notes, case, library
from tests.compiled import BACKENDS, EXPORT, HAS_COMPILER, compare, compiled
from tests.compiled import step as one_step
from tests.zoo import ZOO, Network

PACKAGES = ("torch",)

EXACT: Final = (*BACKENDS, EXPORT)


def _ways(network: Network, *, training: bool) -> Iterator[str]:
    """How a network is compiled; kernels are made of what is trained."""
    yield from EXACT
    if training and HAS_COMPILER:
        yield "inductor"


def _compiled(
    found: Notes, network: Network, way: str, *, training: bool
) -> None:
    """Compile a trace, and compare a step of training with eager's."""
    model, inputs = network.build().train(training), network.inputs()
    expected = one_step(model, inputs)
    gm = library.symbolic_trace(model)
    got = one_step(compiled(gm, way, inputs), inputs)
    compare(got, expected, exact=way in EXACT)
    found["graph"] = gm.graph
    if way in EXACT:
        found["results"] = got.results
        found["gradients"] = list(got.gradients.values())


def main() -> None:
    """Each network in evaluation and in training, in each way."""
    for network in ZOO:
        for training in False, True:
            mode = "training" if training else "evaluation"
            for way in _ways(network, training=training):
                with case(f"{network.name}, {mode}, {way}") as found:
                    _compiled(found, network, way, training=training)
