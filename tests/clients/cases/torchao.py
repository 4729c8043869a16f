"""torchao: layers with smaller weights, and quantisation of exported graphs."""

from __future__ import annotations

import contextlib
import io

import torch
from torch.fx import GraphModule
from torchao.quantization.pt2e import quantizer as quantizers
from torchao.quantization.pt2e.quantize_pt2e import (
    convert_pt2e,
    prepare_pt2e,
    prepare_qat_pt2e,
)
from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

from docs.examples import quantise_torchao
from fx.use_def.values import AnyValue
from tests.clients.record import case, module, to_ours
from tests.clients.small import Small

PACKAGES = ("torch", "torchao")


def _quantised(training: bool) -> AnyValue:
    """An exported network, prepared, run and converted."""
    x = torch.rand(2, 3, 8, 8)
    model = Small().train(training)
    gm = to_ours(torch.export.export(model, (x,)).module())
    assert isinstance(gm, GraphModule)
    quantizer = x86.X86InductorQuantizer()
    quantizer.set_global(
        x86.get_default_x86_inductor_quantization_config(is_qat=training)
    )
    prepare = prepare_qat_pt2e if training else prepare_pt2e
    prepared = prepare(gm, quantizer)
    prepared(x)
    return convert_pt2e(prepared)


def main() -> None:
    """The page's example, and PT2E after training and in it."""
    assert quantizers is not None
    with case("the example of the page") as found:
        with contextlib.redirect_stdout(io.StringIO()) as said:
            quantise_torchao.main()
        found["printed"] = said.getvalue()
        assert said.getvalue().splitlines() == [
            "layers: embed mix",
            "within 1 %: True",
            "another class: True",
        ]
    for training in (False, True):
        name = "PT2E, in training" if training else "PT2E, after training"
        with case(name) as found:
            made = _quantised(training)
            module(found, made, torch.rand(2, 3, 8, 8))
