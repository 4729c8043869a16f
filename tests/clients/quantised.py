"""The pass of docs/examples/own_quantise.py, over small language models.

    python -m tests.clients.quantised

It needs an environment with transformers; `make families` makes one.  Each
model is traced on an example, the pass replaces its linear layers, and what the
graph gives then has to be near to what it gave, also for another batch size and
length.
"""

from __future__ import annotations

import sys
import warnings
from typing import Final

import torch
import transformers

import fx
from docs.examples.own_quantise import Int8Linear, quantise
from fx.use_def.values import AnyValue
from tests.clients.families import SHAPES, small

MODELS: Final = (
    ("LlamaConfig", "LlamaForCausalLM"),
    ("Qwen3Config", "Qwen3ForCausalLM"),
    ("BertConfig", "BertForMaskedLM"),
)
"""Configurations, and the models of them."""

NEAR: Final = 0.05
"""By how much of its norm a result may change."""


def main() -> int:
    """Quantise each model, and say by how much it changes; 1 if too much."""
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    worst = 0.0
    for config, name in MODELS:
        torch.manual_seed(0)
        model: AnyValue = getattr(transformers, name)(
            small(getattr(transformers, config)())
        ).eval()
        gm = fx.trace(model, input_ids=torch.randint(2, 100, SHAPES[0]))
        calls = [torch.randint(2, 100, shape) for shape in SHAPES[:2]]
        with torch.no_grad():
            before = [gm(input_ids=ids).logits for ids in calls]
            count = quantise(gm)
            after = [gm(input_ids=ids).logits for ids in calls]
        changed = max(
            float((new - old).norm() / old.norm())
            for new, old in zip(after, before, strict=True)
        )
        made = [m for m in gm.modules() if isinstance(m, Int8Linear)]
        print(f"{name}: {count} layers in eight bits, changed by {changed:.2%}")
        if len(made) != count or not count:
            return 1
        worst = max(worst, changed)
    return int(not 0 < worst < NEAR)


if __name__ == "__main__":
    sys.exit(main())
