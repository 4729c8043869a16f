"""e3nn, whose tensor products are graphs, and opt_einsum_fx."""

from __future__ import annotations

import copy
import io
from typing import Final

import e3nn
import opt_einsum_fx
import torch
import torch.fx
from e3nn import nn as e3nn_nn
from e3nn import o3

from fx.use_def.values import AnyValue
from tests.clients.record import Notes, case, module

PACKAGES = ("e3nn", "opt-einsum-fx")

A: Final = "3x0e + 2x1o + 1x2e"
B: Final = "2x0e + 1x1o"
C: Final = "4x0e + 2x1o + 1x1e"


def _operators() -> dict[str, tuple[AnyValue, tuple[torch.Tensor, ...]]]:
    """Operators of e3nn that write their own code, with inputs."""
    a, b = o3.Irreps(A), o3.Irreps(B)
    x, y = a.randn(5, -1), b.randn(5, -1)
    return {
        "FullTensorProduct": (o3.FullTensorProduct(A, B), (x, y)),
        "FullyConnectedTensorProduct": (
            o3.FullyConnectedTensorProduct(A, B, C),
            (x, y),
        ),
        "ElementwiseTensorProduct": (
            o3.ElementwiseTensorProduct(A, A),
            (x, x),
        ),
        "TensorSquare": (o3.TensorSquare(A), (x,)),
        "Linear": (o3.Linear(A, C), (x,)),
        "Norm": (o3.Norm(A), (x,)),
        "ReducedTensorProducts": (
            o3.ReducedTensorProducts("ij=-ji", i="1o"),
            (torch.randn(5, 3), torch.randn(5, 3)),
        ),
        "SphericalHarmonics": (
            o3.SphericalHarmonics("0e + 1o + 2e", normalize=True),
            (torch.randn(5, 3),),
        ),
        "Extract": (e3nn_nn.Extract(A, ["3x0e + 1x2e"], [(0, 2)]), (x,)),
    }


def _operator(found: Notes, name: str) -> None:
    """Run an operator in eager mode, saved and read too."""
    torch.manual_seed(0)
    operator, inputs = _operators()[name]
    generated = {
        path: child
        for path, child in operator.named_modules()
        if isinstance(child, torch.fx.GraphModule)
    }
    found["graphs"] = "\n".join(str(gm.graph) for gm in generated.values())
    found["code"] = "\n".join(gm.code for gm in generated.values())
    found["result"] = operator(*inputs)
    found["copied"] = copy.deepcopy(operator)(*inputs)
    file = io.BytesIO()
    torch.save(operator, file)
    file.seek(0)
    found["saved"] = torch.load(file, weights_only=False)(*inputs)


def _product() -> AnyValue:
    """Einsums with scalars between them; TorchScript wants no types of ours."""
    return lambda x, y, z: (
        torch.einsum(
            "il,il->i",
            b := torch.einsum(
                "ik,kl->il", torch.einsum("ij,jk->ik", x, y) * 2.0, z
            ),
            b,
        ).mul(0.5)
        / 3.0
    )


def _einsums(found: Notes, name: str) -> None:
    """One function of opt_einsum_fx, on a traced module."""
    traced: AnyValue = torch.fx.symbolic_trace(_product())
    inputs = (torch.rand(3, 4), torch.rand(4, 5), torch.rand(5, 6))
    if name == "optimize_einsums_full":
        changed = opt_einsum_fx.optimize_einsums_full(traced, inputs)
    elif name == "EfficientShapeProp":
        opt_einsum_fx.EfficientShapeProp(traced).run(*inputs)
        found["shapes"] = str(
            [
                getattr(node.meta.get("tensor_meta"), "shape", None)
                for node in traced.graph.nodes
            ]
        )
        changed = traced
    else:
        graph = getattr(opt_einsum_fx, name)(traced.graph)
        changed = torch.fx.GraphModule(traced, graph)
    module(found, changed, *inputs)
    found["script"] = torch.jit.script(opt_einsum_fx.jitable(changed)).code


def main() -> None:
    """The operators in eager mode, and as TorchScript; the einsums."""
    names = list(_operators())
    for mode in "eager", "script":
        e3nn.set_optimization_defaults(jit_mode=mode)
        for name in names:
            with case(f"{name}, {mode}") as found:
                _operator(found, name)
    for name in (
        "optimize_einsums_full",
        "fuse_einsums",
        "fuse_scalars",
        "EfficientShapeProp",
    ):
        with case(name) as found:
            _einsums(found, name)
