"""torchvision: its classification models, and feature extraction of each."""

from __future__ import annotations

import torch
import torch.fx
from torchvision.models import feature_extraction as features

import fx
from fx.use_def.values import AnyValue
from tests.clients.cases.vision import MODELS, inputs_for, make
from tests.clients.record import UNDER_FX, Notes, case, module

PACKAGES = ("torchvision",)


def sizes(extractor: AnyValue) -> list[int]:
    """How much an extractor has: modules, nodes in evaluation, in training."""
    graphs = extractor.eval_graph, extractor.train_graph
    modules = sum(1 for _ in extractor.modules())
    return [modules, *(len(graph.nodes) for graph in graphs)]


def compare_rules(model: AnyValue, wanted: list[str], found: Notes) -> None:
    """Note what stays by torch.fx's rule, and under fx by its own, too."""
    found["sizes"] = sizes(features.create_feature_extractor(model, wanted))
    if UNDER_FX:
        with fx.effects.by_rule("sound"):
            extractor = features.create_feature_extractor(model, wanted)
        found["fx alone"] = sizes(extractor)


def extract(model: AnyValue, x: torch.Tensor, found: Notes) -> None:
    """Extract two inner values of a model, in evaluation and in training."""
    train, evaluate = features.get_graph_node_names(model)
    found["names"] = "\n".join([*train, "", *evaluate])
    both = [name for name in evaluate if name in set(train)]
    wanted = [both[len(both) // 3], both[2 * len(both) // 3]]
    extractor = features.create_feature_extractor(model, wanted)
    module(found, extractor, x)
    compare_rules(model, wanted, found)
    extractor.train()
    found["train"] = extractor.graph
    found["train code"] = extractor.code


def main() -> None:
    """Trace each model, and extract features of it."""
    for name in MODELS:
        model = make(name)
        x = inputs_for(name)
        with case(f"{name}, symbolic_trace") as found, torch.no_grad():
            module(found, torch.fx.symbolic_trace(model), x)
        with case(f"{name}, features") as found, torch.no_grad():
            extract(model, x, found)
    model = make("resnet18")
    x = inputs_for("resnet18")
    with case("resnet18, bn1 alone") as found, torch.no_grad():
        extractor = features.create_feature_extractor(model, ["bn1"])
        module(found, extractor, x)
        compare_rules(model, ["bn1"], found)
