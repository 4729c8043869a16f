"""Models and programs of other libraries, traced by fx.trace.

    python -m tests.clients.libraries [LIBRARY or LIBRARY/MODEL …]

It needs an environment with these libraries; `make families` makes one.  Each
model is small and has random weights.  It is traced with all sizes free, and
called with the example, with two batches of other sizes, and with a batch (or
a graph) of one.  torch.export gets the same example, with all sizes free.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Final

import peft
import torch
import transformers
from torch import nn

from fx.use_def.values import AnyValue
from tests.clients import plain
from tests.clients.families import small
from tests.clients.judging import Given, Table
from tests.clients.results import run_models

SIZES: Final = ((2, 4), (3, 6), (5, 8), (1, 4))
"""Batch n, and how long or large s: of the example, and of the other calls."""

PLACES: Final = {
    "pyg": "torch_geometric.nn",
    "d": "diffusers",
    "m": "torchaudio.models",
    "t": "torchaudio.transforms",
    "k": "kornia",
    "nets": "monai.networks.nets",
    "v": "torchvision.models",
}
"""How modules are named in the table."""

MODELS: Final = """
torch_geometric
  3*n-2,8 2,4*s-6:3*n-2
    GCN pyg.GCNConv(8, 4)
    GAT pyg.GATConv(8, 4)
    SAGE pyg.SAGEConv(8, 4)
    Graph pyg.GraphConv(8, 4)
    TAG pyg.TAGConv(8, 4)
    Hypergraph pyg.HypergraphConv(8, 4)
    GATv2 pyg.GATv2Conv(8, 4, 2)
    GIN pyg.GINConv(nn.Linear(8, 4))
    Cheb pyg.ChebConv(8, 4, 2)
    Transformer pyg.TransformerConv(8, 4, 2)
    Edge pyg.EdgeConv(nn.Linear(16, 4))
    GatedGraph pyg.GatedGraphConv(8, 2)
    PNA pyg.PNAConv(
      8, 4, ["mean", "std"], ["amplification"], torch.tensor([0, 3, 4, 2]))
    GraphSAGE pyg.GraphSAGE(8, 8, 2, 4, jk="cat")
    GATs pyg.GAT(8, 8, 2, 4, heads=2)
    TopKPooling pyg.TopKPooling(8)
  3*n-2,8 2,4*s-6:3*n-2 4*s-6:3
    RGCN pyg.RGCNConv(8, 4, 3)
  3*n-2,8 2,4*s-6:3*n-2 4*s-6,4
    GINE pyg.GINEConv(nn.Linear(8, 4), edge_dim=4)
    CG pyg.CGConv(8, 4)
  3*n-2,8 3*n-2:n
    global_mean_pool pyg.global_mean_pool
diffusers
  sample=n,4,2*s,2*s timestep=n:9
    UNet2DModel d.UNet2DModel(**UNET)
  sample=n,4,2*s,2*s timestep=
    UNet2DNumber d.UNet2DModel(**UNET)
  sample=n,4,2*s,2*s encoder_hidden_states=n,s-1,8 timestep=n:9
    UNet2DConditionModel d.UNet2DConditionModel(
      **SOME, cross_attention_dim=8, attention_head_dim=4,
      down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
      up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"))
  sample=n,3,4*s,4*s
    AutoencoderKL d.AutoencoderKL(**CODER)
  n,3,4*s,4*s
    AutoencoderKLSample Program(
      lambda net, x: net(x, sample_posterior=True).sample,
      d.AutoencoderKL(**CODER))
  hidden_states=n,4,2*s,2*s timestep=n:9 class_labels=n:9
    DiT d.DiTTransformer2DModel(
      **HEADS, norm_num_groups=4, sample_size=8, num_embeds_ada_norm=10)
  hidden_states=n,4,2*s,2*s encoder_hidden_states=n,s-1,8 timestep=n:9
      pooled_projections=n,8
    SD3 d.SD3Transformer2DModel(
      **JOINT, sample_size=16, caption_projection_dim=16, out_channels=4)
  hidden_states=n,s*s,4 encoder_hidden_states=n,s-1,8 timestep=n
      pooled_projections=n,8 img_ids=s*s,3 txt_ids=s-1,3
    Flux d.FluxTransformer2DModel(
      **JOINT, num_single_layers=1, axes_dims_rope=(2, 2, 4))
  hidden_states=n,4,3,s,s encoder_hidden_states=n,s-1,8 timestep=n:9
    Wan d.WanTransformer3DModel(
      **HEADS, out_channels=4, text_dim=8, freq_dim=8, ffn_dim=16)
  n,4,2*s,2*s
    DDPM lambda x: sampled(d.DDPMScheduler(), x)
    DDIM lambda x: sampled(d.DDIMScheduler(), x)
    EulerDiscrete lambda x: sampled(d.EulerDiscreteScheduler(), x)
    DPMSolverMultistep lambda x: sampled(d.DPMSolverMultistepScheduler(), x)
    LCM lambda x: sampled(d.LCMScheduler(), x)
peft
  input_ids=n,s:100 attention_mask=n,s:2
    LoHa adapted("LoHa")
    LoKr adapted("LoKr")
    HRA adapted("HRA")
    LoRA adapted("Lora")
    DoRA adapted("Lora", use_dora=True)
    IA3 adapted("IA3", feedforward_modules=["v_proj"])
    OFT adapted("OFT", oft_block_size=8)
torchaudio
  n,s,8 n:s,s+1
    Conformer m.Conformer(8, 2, 16, 2, 3)
  n,1,9*s,8
    DeepSpeech m.DeepSpeech(8, 16, 4)
  n,1,200*s
    Wav2Letter m.Wav2Letter(8)
    ConvTasNet m.ConvTasNet(2, 16, 8, 3, 8, 8, 2, 1)
  n,16,s n:s,s+1
    TacotronEncoder m.Tacotron2(**TACOTRON).encoder
  n,8,s
    TacotronPostnet m.Tacotron2(**TACOTRON).postnet
  n,s:16 n:s,s+1 n,8,s n:s,s+1
    Tacotron2 m.Tacotron2(**TACOTRON)
  n,400*s
    Spectrogram t.Spectrogram(64)
    GriffinLim nn.Sequential(t.Spectrogram(64), t.GriffinLim(64, 3))
    MFCC t.MFCC(n_mfcc=8, melkwargs={"n_fft": 64, "n_mels": 16})
    Resample t.Resample(4, 3)
    Vad t.Vad(800)
kornia
  n,3,4*s,4*s
    sobel k.filters.sobel
    canny k.filters.canny
    rgb_to_hsv k.color.rgb_to_hsv
    rgb_to_lab k.color.rgb_to_lab
    equalize k.enhance.equalize
    equalize_clahe k.enhance.equalize_clahe
    pyrdown k.geometry.pyrdown
    harris_response k.feature.harris_response
    gaussian_blur2d lambda x: k.filters.gaussian_blur2d(x, (3, 3), (1.0, 1.0))
    median_blur lambda x: k.filters.median_blur(x, 3)
    laplacian lambda x: k.filters.laplacian(x, 3)
    guided_blur lambda x: k.filters.guided_blur(x, x, 3, 0.1)
    dilation lambda x: k.morphology.dilation(x, torch.ones(3, 3))
    rotate lambda x: k.geometry.rotate(x, torch.tensor(30.0))
    rescale lambda x: k.geometry.rescale(x, 1.5)
    center_crop lambda x: k.geometry.center_crop(x, (8, 8))
    ssim lambda x: k.metrics.ssim(x, x.flip(-1), 5)
  n,3,4*s,4*s n,2,3
    warp_affine lambda x, m: k.geometry.warp_affine(x, m, (12, 20))
  n,4,2 n,4,2
    get_perspective_transform k.geometry.get_perspective_transform
  s+5,8 s+7,8
    match_nn k.feature.match_nn
  n,3,4*s,4*s
    RandomHorizontalFlip k.augmentation.RandomHorizontalFlip(p=1.0)
    RandomAffine k.augmentation.RandomAffine((30.0, 30.0), p=1.0)
    RandomCrop k.augmentation.RandomCrop((8, 8), p=1.0)
    ColorJiggle k.augmentation.ColorJiggle((1.2, 1.2), p=1.0)
    Normalize k.augmentation.Normalize(torch.rand(3), torch.rand(3) + 1)
MONAI
  n,1,8*s,8*s,32
    UNet nets.UNet(3, 1, 2, (4, 8, 16), (2, 2))
    BasicUNet nets.BasicUNet(features=(4, 4, 8, 8, 16, 4))
    AttentionUnet nets.AttentionUnet(3, 1, 2, (4, 8), (2,))
    SegResNet nets.SegResNet(3, 8, blocks_down=(1, 1), blocks_up=(1,))
    AutoEncoder nets.AutoEncoder(3, 1, 2, (4, 8), (2, 2))
    DenseNet nets.DenseNet(3, 1, 2, 4, 4, (2, 2))
  n,1,32,32,32
    UNETR nets.UNETR(1, 2, 32, 4, 12, 24, 2)
torchvision
  n,3,8,16*s,16*s
    r3d_18 v.video.r3d_18()
    swin3d v.video.SwinTransformer3d(
      [2, 4, 4], 12, [1, 1], [1, 2], [2, 4, 4])
  n,3,128,32*s n,3,128,32*s
    raft v.optical_flow.raft_small()
  n,3,64,64
    ssdlite320 Program(
      lambda net, x: net([*x]),
      v.detection.ssdlite320_mobilenet_v3_large(weights_backbone=None))
    fasterrcnn Program(
      lambda net, x: net([*x]),
      v.detection.fasterrcnn_mobilenet_v3_large_320_fpn(weights_backbone=None))
recurrent
  n,s,8
    LSTM Program(last_of, nn.LSTM(8, 8, 2, batch_first=True))
    GRU Program(last_of, nn.GRU(8, 8, batch_first=True, bidirectional=True))
    RNN Program(last_of, nn.RNN(8, 8, batch_first=True))
    cell Program(stepped, nn.LSTMCell(8, 8))
  n,s,8 n:1,s+1
    packed Program(packed, nn.GRU(8, 8, batch_first=True))
  n,s,8 n,s+1,8
    attended Program(attended, nn.GRU(8, 8, batch_first=True),
      nn.GRU(8, 8, batch_first=True))
tabular
  n,3:3 n,4
    MLP Tabular(nn.Flatten(), nn.Linear(56, 8), nn.ReLU(), nn.Linear(8, 1))
    FTTransformer Tabular(
      nn.TransformerEncoderLayer(8, 2, 16, batch_first=True))
    FactorMachine Tabular(Program(factors))
    TabNet Tabular(nn.Flatten(), Program(sparse, nn.Linear(56, 56)))
policy
  n,8
    normal Program(normal, nn.Linear(8, 6))
    categorical Program(categorical, nn.Linear(8, 6))
    duel Program(duel, nn.Linear(8, 1), nn.Linear(8, 6))
    experts Program(experts, *(nn.Linear(8, 8) for _ in range(3)))
  n,8 n,6:2
    masked Program(masked, nn.Linear(8, 6))
  n,s n,s
    advantages advantages
"""
"""Libraries; inputs, as `inputs` reads them; models, or functions."""

SOME: Final = {"block_out_channels": (8, 16), "norm_num_groups": 4}
UNET: Final = {
    **{**SOME, "in_channels": 4, "attention_head_dim": 4},
    "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
    "up_block_types": ("AttnUpBlock2D", "UpBlock2D"),
}
CODER: Final = {
    **{**SOME, "down_block_types": ("DownEncoderBlock2D",) * 2},
    "up_block_types": ("UpDecoderBlock2D",) * 2,
}
HEADS: Final = {
    **{"num_attention_heads": 2, "attention_head_dim": 8},
    **{"num_layers": 2, "in_channels": 4},
}
JOINT: Final = {**HEADS, "joint_attention_dim": 8, "pooled_projection_dim": 8}
TACOTRON: Final = {
    **dict.fromkeys(("symbol_embedding_dim", "encoder_embedding_dim"), 16),
    **dict.fromkeys(("decoder_rnn_dim", "attention_rnn_dim"), 16),
    **{"n_mels": 8, "n_symbol": 16},
}
"""Options that make models small."""


def sampled(scheduler: AnyValue, x: AnyValue) -> AnyValue:
    """A few steps of a loop that samples."""
    scheduler.set_timesteps(3)
    for step in scheduler.timesteps:
        scaled = x
        if hasattr(scheduler, "scale_model_input"):
            scaled = scheduler.scale_model_input(x, step)
        x = scheduler.step(scaled.tanh(), step, x).prev_sample
    return x


def adapted(kind: str, **options: AnyValue) -> AnyValue:
    """Adapters on a small transformer."""
    config = small(transformers.LlamaConfig())
    config.use_cache = False  # which torch.export does not return
    options["target_modules"] = ["q_proj", "v_proj"]
    made = getattr(peft, f"{kind}Config")(**options)
    return peft.get_peft_model(transformers.LlamaForCausalLM(config), made)


# --- judging ----------------------------------------------------------------


def models() -> Iterator[tuple[str, tuple[str, str]]]:
    """The name of each model; its inputs, and what makes it."""
    library = text = ""
    for each in re.sub(r"\n {6,}", " ", MODELS).strip().splitlines():
        depth, each = len(each) - len(each.lstrip()), each.strip()
        name, _, code = each.partition(" ")
        if depth == 4:
            yield f"{library}/{name}", (text, code)
        elif depth:
            text = each
        else:
            library = each


def inputs(text: str, n: int, s: int) -> Given:
    """Inputs of a batch of n and of size s, by name if they have names.

    Args:
        text: shapes, as `x=n,3,s,s`; after a colon, the bounds of integers;
            `t=` is a number.
        n: the batch.
        s: how long or large.
    """
    given: dict[str, AnyValue] = {}
    for part in text.split():
        name, _, shape = part.rpartition("=")
        sizes: AnyValue
        bounds: AnyValue
        sizes, bounds = [
            eval(f"({each},)" if each else "()", {"n": n, "s": s})  # our own
            for each in f"{shape}:".split(":")[:2]
        ]
        value: AnyValue = torch.rand(sizes) if sizes else n * s
        if bounds:
            value = torch.zeros(sizes).long().random_(*bounds)
        given[name or f"{len(given)}"] = value
    return ((), given) if "=" in text else ((*given.values(),), {})


def build(name: str) -> tuple[nn.Module, list[Given]]:
    """A model, and inputs of each call, on which it runs."""
    text, code = dict(models())[name]
    scope = {name: import_module(place) for name, place in PLACES.items()}
    made: AnyValue = eval(code, {**globals(), **vars(plain), **scope})
    model = made if isinstance(made, nn.Module) else plain.Program(made)
    model.eval()
    given = [inputs(text, *sizes) for sizes in SIZES]
    for args, kwargs in given:
        model(*args, **kwargs)
    return model, given


TABLE: Final = Table(
    "libraries",
    ("example", "other sizes", "large", "batch of one"),
    build,
    (
        *("torch-geometric", "diffusers", "peft", "torchaudio", "kornia"),
        *("monai", "torchvision", "transformers", "torch"),
    ),
    free=True,
)

if __name__ == "__main__":
    for each in PLACES.values():
        import_module(each)
    sys.exit(run_models(TABLE, dict(models()), sys.argv[1:]))
