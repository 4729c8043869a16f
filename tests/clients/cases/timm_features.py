"""timm: features of its models, by FX."""

from __future__ import annotations

from typing import Final

import timm
import torch
import torch.fx
from timm.models import _features_fx

from tests.clients.record import case, module

PACKAGES = ("timm",)

MODELS: Final = (
    "convnext_atto",
    "cspresnet50",
    "densenet121",
    "dla34",
    "efficientnet_b0",
    "ghostnet_100",
    "hrnet_w18_small",
    "levit_128s",
    "mixer_s32_224",
    "mobilenetv3_small_100",
    "nf_resnet26",
    "regnetx_002",
    "repvgg_a0",
    "resnest14d",
    "resnet18",
    "rexnet_100",
    "selecsls42",
    "swin_tiny_patch4_window7_224",
    "vgg11_bn",
    "vit_tiny_patch16_224",
    "xception41",
)


def main() -> None:
    """Trace each model, extract features, and cut the graph at two nodes."""
    for name in MODELS:
        torch.manual_seed(0)
        model = timm.create_model(name, exportable=True).eval()
        x = torch.rand(1, *model.default_cfg["input_size"])
        with case(f"{name}, symbolic_trace") as found, torch.no_grad():
            module(found, torch.fx.symbolic_trace(model), x)
        with case(f"{name}, FeatureGraphNet") as found, torch.no_grad():
            _, nodes = _features_fx.get_graph_node_names(model)
            wanted = [nodes[len(nodes) // 3], nodes[len(nodes) // 2]]
            out = _features_fx.GraphExtractNet(model, wanted)
            module(found, out.graph_module, x)
