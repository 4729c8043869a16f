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
import warnings
from typing import Final

import torch
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

import fx
from fx.use_def.values import AnyValue
from tests.clients.judging import Row, called, line, rows, timed
from tests.clients.results import note_models

SMALL: Final[dict[str, int]] = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "dim"), 32),
    **dict.fromkeys(("embed_dim", "embedding_size", "hidden_dim"), 32),
    **dict.fromkeys(("intermediate_size", "d_ff", "ffn_dim", "n_inner"), 64),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), 64),
    **dict.fromkeys(("moe_intermediate_size", "mlp_dim"), 32),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers"), 2),
    **dict.fromkeys(("num_layers", "encoder_layers", "decoder_layers"), 2),
    **dict.fromkeys(("num_decoder_layers", "num_encoder_layers"), 2),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads"), 4),
    **dict.fromkeys(("num_heads", "encoder_attention_heads"), 4),
    **dict.fromkeys(("decoder_attention_heads", "attention_heads"), 4),
    **dict.fromkeys(("num_key_value_heads",), 2),
    **dict.fromkeys(("head_dim", "d_kv", "attention_head_size"), 8),
    **dict.fromkeys(("vocab_size", "text_vocab_size"), 128),
    **dict.fromkeys(("max_position_embeddings", "n_positions"), 64),
    **dict.fromkeys(("image_size",), 32),
    **dict.fromkeys(("patch_size",), 8),
    **dict.fromkeys(("num_experts", "num_local_experts"), 4),
    **dict.fromkeys(("n_routed_experts",), 4),
    **dict.fromkeys(("num_experts_per_tok",), 2),
    **dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id"), 1),
    **dict.fromkeys(("decoder_start_token_id", "sep_token_id"), 1),
    **dict.fromkeys(("cls_token_id", "mask_token_id"), 1),
}
"""Option of a configuration → what it is set to."""

SHAPES: Final = ((2, 8), (3, 12), (1, 8))
"""Batch size and length: of the example, and of the other calls."""

HEADS: Final = ("example", "other", "batch of one")
"""The calls of a graph, as the columns of the table are named."""

EXPLAINED: Final = dict.fromkeys(
    ("aimv2", "paligemma"),
    "transformers leaves out a mask in which all is 1 unless it is traced, and "
    "the attention is then not causal; right with a token that is masked",
)
"""Families that give another result when traced, and why: what the library
does differs, and the graph does what it did in the trace."""


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


KINDS: Final = range(3)
"""Kinds of inputs, of which the first is taken that a model runs on."""


def runs(model: AnyValue, kind: int) -> Exception | None:
    """Why a model does not run on a kind of inputs; None if it does."""
    try:
        model(**inputs(model, *SHAPES[0], kind))
    except Exception as error:
        return error
    return None


def judged(family: str) -> Row:
    """Build, trace and call the model of a family."""
    names = MODEL_MAPPING_NAMES[family]
    name = names if isinstance(names, str) else names[0]
    torch.manual_seed(0)
    try:
        made = getattr(transformers, CONFIG_MAPPING_NAMES[family])()
        model = getattr(transformers, name)(small(made)).eval()
    except Exception as error:
        return Row(family, (), 0.0, line(error))
    failures = [runs(model, kind) for kind in KINDS]
    if None not in failures:
        return Row(family, (), 0.0, line(failures[0]))
    kind = failures.index(None)
    given: AnyValue = inputs(model, *SHAPES[0], kind)
    seconds, gm = timed(lambda: fx.trace(model, **given))
    if isinstance(gm, Exception):
        return Row(family, ("not traced",), 0.0, line(gm))
    calls, reasons = zip(
        *(called(gm, model, **inputs(model, *s, kind)) for s in SHAPES),
        strict=True,
    )
    return Row(family, calls, seconds, next(filter(None, reasons), ""))


def main(names: list[str]) -> int:
    """Judge families and say what came out; 1 if one is wrong."""
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    with torch.no_grad():
        judged("bert")  # imports what each of them needs
    found = []
    for row in rows(names or sorted(MODEL_MAPPING_NAMES), judged):
        found.append(row)
        print(*row, sep="   ", flush=True)
    if not names:
        versions = (
            f"transformers {transformers.__version__}, "
            f"torch {torch.__version__}"
        )
        note_models("families", HEADS, found, versions, EXPLAINED)
    wrong = {row.name for row in found if "WRONG" in row.calls}
    return bool(wrong - EXPLAINED.keys())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
