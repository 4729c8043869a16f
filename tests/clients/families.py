"""Families of transformers, traced by fx.trace on a tiny model of each.

    python -m tests.clients.families [FAMILY …]

It needs an environment with transformers; `make clients` makes one.  A family
is a model type that AutoModel knows.  Its configuration is made small by the
names of its options, so that nothing is downloaded, and some cannot be built
like that.  Each model is traced on one input, and called with it, with another
batch size and length, and with a batch of one.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Final

import torch
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

from fx.use_def.values import AnyValue
from tests.clients.judging import Given, Table
from tests.clients.results import run_models

SMALL: Final = {
    name: int(size)
    for size, *names in map(
        str.split,
        """\
32 hidden_size d_model n_embd dim embed_dim embedding_size hidden_dim
32 moe_intermediate_size mlp_dim image_size
64 intermediate_size d_ff ffn_dim n_inner encoder_ffn_dim decoder_ffn_dim
64 max_position_embeddings n_positions
2 num_hidden_layers n_layer n_layers num_layers encoder_layers
2 decoder_layers num_decoder_layers num_encoder_layers num_key_value_heads
2 num_experts_per_tok
4 num_attention_heads n_head n_heads num_heads encoder_attention_heads
4 decoder_attention_heads attention_heads num_experts num_local_experts
4 n_routed_experts
8 head_dim d_kv attention_head_size patch_size
128 vocab_size text_vocab_size
1 pad_token_id bos_token_id eos_token_id decoder_start_token_id sep_token_id
1 cls_token_id mask_token_id
""".splitlines(),
    )
    for name in names
}
"""Option of a configuration → what it is set to."""

SHAPES: Final = ((2, 8), (3, 12), (1, 8))
"""Batch size and length: of the example, and of the other calls."""


def small(config: AnyValue) -> AnyValue:
    """A configuration, changed so that its model is tiny."""
    for name, value in [*vars(config).items()]:
        if isinstance(value, transformers.PreTrainedConfig):
            small(value)
        elif type(value) is int and name in SMALL:
            with contextlib.suppress(Exception):  # a computed option
                setattr(config, name, SMALL[name])
    return config


def inputs(
    model: AnyValue, batch: int, length: int, kind: int
) -> dict[str, torch.Tensor]:
    """Inputs of a model: its main input, and as the kind says, others."""
    config = model.config
    size = getattr(config, "image_size", 32)
    size = size if isinstance(size, int) else 32
    bins = getattr(config, "num_mel_bins", 80)
    frames = 2 * getattr(config, "max_source_positions", 4 * length)
    ids = torch.randint(2, 100, (batch, length))
    features = torch.randn(batch, bins, frames)
    given = {
        "input_ids": ids,
        "pixel_values": torch.randn(batch, 3, size, size),
        "input_values": torch.randn(batch, 400 * length),
        "input_features": features.transpose(1, 2) if kind == 2 else features,
    }
    names = [model.main_input_name]
    if kind == 1:
        names = ["input_ids", "pixel_values"]
    found = {name: given[name] for name in names}
    if "input_ids" in names:
        found["attention_mask"] = torch.ones_like(ids)
    if getattr(config, "is_encoder_decoder", False):
        found["decoder_input_ids"] = ids
    return found


def build(family: str) -> tuple[AnyValue, list[Given]]:
    """The model of a family, and inputs of the first kind it runs on."""
    names = MODEL_MAPPING_NAMES[family]
    name = names if isinstance(names, str) else names[0]
    made = getattr(transformers, CONFIG_MAPPING_NAMES[family])()
    model = getattr(transformers, name)(small(made)).eval()
    errors = []
    for kind in range(3):
        try:
            model(**inputs(model, *SHAPES[0], kind))
            return model, [((), inputs(model, *s, kind)) for s in SHAPES]
        except Exception as error:
            errors.append(error)
    raise errors[0]


TABLE: Final = Table(
    "families",
    ("example", "other", "batch of one"),
    build,
    ("transformers", "torch"),
    explained=dict.fromkeys(
        ("aimv2", "paligemma"),
        "transformers leaves out a mask in which all is 1 unless it is traced, "
        "and the attention is then not causal; right with a token that is "
        "masked",
    ),
)
"""A family that is explained gives another result when traced, since what the
library does differs, and the graph does what it did in the trace."""


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    sys.exit(run_models(TABLE, sorted(MODEL_MAPPING_NAMES), sys.argv[1:]))
