"""The library on a GPU: networks traced, run, rewritten and saved there.

Each test is run for two networks on the CPU, which shows that the test itself
works, and for all networks of the zoo on CUDA, where there is a GPU:

    pytest -q tests/library/test_on_gpu.py -k cuda
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Final, NamedTuple

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import fx
from fx.experimental.proxy_tensor import make_fx
from fx.passes.reinplace import reinplace
from fx.passes.split_module import split_module
from fx.use_def.values import AnyValue
from tests.zoo import ZOO, Inputs, Network

SMALL: Final = frozenset(("blstm_cnn", "mobilenet_v2"))
"""The networks that also run on the CPU."""

NEEDS_GPU: Final = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="there is no GPU here"
)


class Case(NamedTuple):
    """A network in evaluation, and inputs for it, on a device."""

    name: str
    module: nn.Module
    inputs: Inputs
    device: torch.device

    def eager(self) -> AnyValue:
        """What the network returns."""
        return self.module(*self.inputs)


def _floating(inputs: Inputs, dtype: torch.dtype) -> Inputs:
    """The inputs, with other numbers where they are not whole."""
    return tuple(
        each.to(dtype) if each.is_floating_point() else each for each in inputs
    )


PLACES: Final = [
    pytest.param(
        (network, device),
        id=f"{network.name}-{device}",
        marks=[NEEDS_GPU] if device == "cuda" else [],
    )
    for network in ZOO
    for device in ("cpu", "cuda")
    if device == "cuda" or network.name in SMALL
]


@pytest.fixture(scope="module", params=PLACES)
def case(request: pytest.FixtureRequest) -> Iterator[Case]:
    """Each network in turn."""
    place: tuple[Network, str] = request.param
    network, device = place
    module = network.build().eval().to(device)
    inputs = tuple(each.to(device) for each in network.inputs())
    with torch.no_grad():
        yield Case(network.name, module, inputs, torch.device(device))


def _close(found: AnyValue, expected: AnyValue) -> None:
    """Equal but for the order in which a GPU adds up; on the same device."""
    assert_close(found, expected, rtol=1e-4, atol=1e-4, check_device=True)


def test_it_is_traced_run_and_interpreted(case: Case) -> None:
    gm = fx.symbolic_trace(case.module)
    gm.graph.lint()
    for run in (gm, fx.Interpreter(gm).run, fx.Transformer(gm).transform()):
        _close(run(*case.inputs), case.eager())


def _peak(case: Case, run: AnyValue) -> int:
    """The most CUDA memory that a run takes beyond what is there; 0 on CPU."""
    if case.device.type != "cuda":
        run(*case.inputs)
        return 0
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    run(*case.inputs)
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def test_it_is_captured_and_reinplaced_and_takes_no_more_memory(
    case: Case, record_property: AnyValue
) -> None:
    captured = make_fx(case.module)(*case.inputs)
    before = _peak(case, captured)
    in_place = reinplace(captured, *case.inputs)
    _close(in_place(*case.inputs), case.eager())
    after = _peak(case, in_place)
    assert after <= before
    record_property("peak of CUDA memory", f"{case.name}: {before} -> {after}")


def test_it_is_split(case: Case) -> None:
    gm = fx.symbolic_trace(case.module)
    half = {
        node: number > len(gm.graph.nodes) // 2
        for number, node in enumerate(gm.graph.nodes)
    }
    parts = split_module(gm, case.module, half.__getitem__)
    assert len([*parts.children()]) == 2
    _close(parts(*case.inputs), case.eager())


def test_it_is_saved_and_loaded(case: Case, tmp_path: Path) -> None:
    gm = fx.symbolic_trace(case.module)
    fx.save(gm, tmp_path / "model")
    loaded = fx.load(tmp_path / "model", case.module)
    assert {each.device.type for each in loaded.parameters()} == {
        case.device.type
    }
    _close(loaded(*case.inputs), case.eager())
    moved = fx.load(tmp_path / "model", case.module, map_location="cpu")
    assert {each.device.type for each in moved.parameters()} == {"cpu"}
    case.module.to(case.device)


def test_half_precision(case: Case) -> None:
    """The same operations in the same order give the same numbers."""
    dtype = torch.bfloat16 if case.device.type == "cpu" else torch.float16
    gm = fx.symbolic_trace(case.module)
    inputs = _floating(case.inputs, dtype)
    try:
        for module in (case.module, gm):
            module.to(dtype)
        assert_close(gm(*inputs), case.module(*inputs))
        assert_close(fx.Interpreter(gm).run(*inputs), case.module(*inputs))
    finally:
        case.module.float()


def test_autocast(case: Case) -> None:
    gm = fx.symbolic_trace(case.module)
    with torch.autocast(case.device.type, dtype=torch.bfloat16):
        try:
            expected = case.eager()
        except RuntimeError as error:  # an LSTM, on a CPU without bfloat16
            pytest.skip(f"torch cannot run it here: {error}")
        assert_close(gm(*case.inputs), expected)
        assert_close(fx.Interpreter(gm).run(*case.inputs), expected)


def _stream(case: Case) -> AnyValue:
    """What runs the calls inside beside others; the CPU has no such thing."""
    if case.device.type != "cuda":
        return nullcontext()
    cuda: AnyValue = torch.cuda  # some of it has no types
    stream = cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    return torch.cuda.stream(stream)


def test_two_streams(case: Case) -> None:
    gm = fx.symbolic_trace(case.module)
    found = []
    for run in (gm, fx.Interpreter(gm).run):
        with _stream(case):
            found.append(run(*case.inputs))
    if case.device.type == "cuda":
        torch.cuda.synchronize()
    for each in found:
        _close(each, case.eager())


@NEEDS_GPU
def test_a_cuda_graph(case: Case) -> None:
    """A graph module is captured as its network would be, and replayed."""
    if case.device.type != "cuda":
        pytest.skip("the CPU has no CUDA graphs")
    if case.name in ("blstm_cnn", "dlrm"):
        pytest.skip("reads sizes from the GPU, which a capture refuses")
    gm = fx.symbolic_trace(case.module)
    with _stream(case):
        gm(*case.inputs)  # as CUDA asks for: the first run sets things up
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = gm(*case.inputs)
    graph.replay()
    torch.cuda.synchronize()
    _close(result, case.eager())
