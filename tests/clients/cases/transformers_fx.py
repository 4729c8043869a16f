"""Transformers' own tracer, on small models of many kinds."""

from __future__ import annotations

from typing import Final

import torch
import transformers
from transformers.utils import fx as transformers_fx

from fx.use_def.values import AnyValue
from tests.clients.record import case

PACKAGES = ("transformers",)

SMALL: Final[dict[str, AnyValue]] = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "vocab_size": 50,
    "attn_implementation": "eager",
}
MODELS: Final[dict[str, tuple[str, dict[str, AnyValue]]]] = {
    "BertForSequenceClassification": ("BertConfig", SMALL),
    "BertForMaskedLM": ("BertConfig", SMALL),
    "RobertaForTokenClassification": ("RobertaConfig", SMALL),
    "ElectraModel": ("ElectraConfig", {**SMALL, "embedding_size": 16}),
    "DistilBertModel": (
        "DistilBertConfig",
        {"dim": 16, "hidden_dim": 32, "n_layers": 2, "n_heads": 2},
    ),
    "AlbertModel": ("AlbertConfig", {**SMALL, "embedding_size": 16}),
    "GPT2LMHeadModel": (
        "GPT2Config",
        {"n_embd": 16, "n_layer": 2, "n_head": 2, "vocab_size": 50},
    ),
    "GPTNeoForCausalLM": (
        "GPTNeoConfig",
        {
            "hidden_size": 16,
            "num_layers": 2,
            "num_heads": 2,
            "vocab_size": 50,
            "attention_types": [[["global", "local"], 1]],
        },
    ),
    "LlamaForCausalLM": ("LlamaConfig", SMALL),
    "MistralForCausalLM": (
        "MistralConfig",
        {**SMALL, "num_key_value_heads": 2},
    ),
    "OPTForCausalLM": (
        "OPTConfig",
        {**SMALL, "ffn_dim": 32, "word_embed_proj_dim": 16},
    ),
    "T5ForConditionalGeneration": (
        "T5Config",
        {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2},
    ),
    "ViTForImageClassification": (
        "ViTConfig",
        {**SMALL, "image_size": 32, "patch_size": 8},
    ),
    "ResNetForImageClassification": (
        "ResNetConfig",
        {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1]},
    ),
}


def _inputs(model: AnyValue) -> dict[str, torch.Tensor]:
    """What a model takes: tokens, or a picture."""
    if model.main_input_name == "pixel_values":
        return {"pixel_values": torch.rand(1, 3, 32, 32)}
    tokens = torch.arange(12).reshape(2, 6) % 50
    found = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}
    if model.config.is_encoder_decoder:
        found["decoder_input_ids"] = tokens
    return found


def main() -> None:
    """Trace each model by the names of its inputs."""
    for name, (config, options) in MODELS.items():
        with case(name) as found, torch.no_grad():
            torch.manual_seed(0)
            kind = getattr(transformers, config)
            model = getattr(transformers, name)(kind(**options)).eval()
            inputs = _inputs(model)
            traced = transformers_fx.symbolic_trace(model, list(inputs))
            found["graph"] = traced.graph
            found["code"] = traced.code
            result = traced(**inputs)
            found["result"] = next(iter(result.values()))
