"""Models and programs of other libraries, traced by fx.trace.

    python -m tests.clients.libraries [LIBRARY …]

It needs an environment with these libraries; `make families` makes one.  Each
model is small and has random weights.  It is traced with all sizes free, and
called with the example, with two batches of other sizes, and with a batch (or
a graph) of one.  torch.export gets the same example, with all sizes free.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Final, TypeAlias

import diffusers
import kornia as k
import peft
import torch
import torchaudio
import transformers
from monai.networks import nets
from torch import nn
from torch_geometric import nn as pyg
from torchvision.models import detection, optical_flow, video

import fx
from fx.torch_private.pytree import pytree
from fx.use_def.values import AnyValue
from tests.clients import plain
from tests.clients.families import small
from tests.clients.judging import Row, called, line, rows, timed
from tests.clients.plain import Program
from tests.clients.results import note_models

SIZES: Final = ((2, 4), (3, 6), (5, 8), (1, 4))
"""Batch, and how long or large: of the example, and of the other calls."""

HEADS: Final = (
    *("example", "other sizes", "large", "batch of one"),
    *("torch.export", "its CPU seconds"),
)

PACKAGES: Final = (
    "torch-geometric diffusers peft torchaudio kornia monai torchvision "
    "transformers torch"
).split()

Maker: TypeAlias = Callable[[], nn.Module]

MODELS: Final[dict[str, tuple[str, Maker]]] = {}
"""What is tried: the inputs, as `inputs` reads them, and what makes it."""


def inputs(text: str, n: int, s: int) -> AnyValue:
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
    return given if "=" in text else tuple(given.values())


def add(library: str, text: str, **makers: AnyValue) -> None:
    """Note models of a library that have the same inputs."""
    for name, maker in makers.items():
        MODELS[f"{library}/{name}"] = text, maker


def functions(
    library: str, text: str, *given: AnyValue, **named: AnyValue
) -> None:
    """Note functions, as modules."""
    makers = {f.__name__: f for f in given} | named
    add(library, text, **{n: partial(Program, f) for n, f in makers.items()})


def of_geometric() -> None:
    """Convolutions, networks and poolings of graphs."""
    library, graph = "torch_geometric", "3*n-2,8 2,4*s-6:3*n-2"
    pna = (["mean", "std"], ["amplification"], torch.tensor([0, 3, 4, 2]))
    for name in ("GCN", "GAT", "SAGE", "Graph", "TAG", "Hypergraph"):
        add(
            library, graph, **{name: partial(getattr(pyg, f"{name}Conv"), 8, 4)}
        )
    add(
        library,
        graph,
        GATv2=lambda: pyg.GATv2Conv(8, 4, 2),
        GIN=lambda: pyg.GINConv(nn.Linear(8, 4)),
        Cheb=lambda: pyg.ChebConv(8, 4, 2),
        Transformer=lambda: pyg.TransformerConv(8, 4, 2),
        Edge=lambda: pyg.EdgeConv(nn.Linear(16, 4)),
        GatedGraph=lambda: pyg.GatedGraphConv(8, 2),
        PNA=lambda: pyg.PNAConv(8, 4, *pna),
        GraphSAGE=lambda: pyg.GraphSAGE(8, 8, 2, 4, jk="cat"),
        GATs=lambda: pyg.GAT(8, 8, 2, 4, heads=2),
        TopKPooling=lambda: pyg.TopKPooling(8),
    )
    add(library, f"{graph} 4*s-6:3", RGCN=lambda: pyg.RGCNConv(8, 4, 3))
    add(
        library,
        f"{graph} 4*s-6,4",
        GINE=lambda: pyg.GINEConv(nn.Linear(8, 4), edge_dim=4),
        CG=lambda: pyg.CGConv(8, 4),
    )
    functions(library, "3*n-2,8 3*n-2:n", pyg.global_mean_pool)


def _sampled(scheduler: str, x: AnyValue) -> AnyValue:
    """A few steps of a loop that samples."""
    made = getattr(diffusers, f"{scheduler}Scheduler")()
    made.set_timesteps(3)
    for step in made.timesteps:
        scaled = x
        if hasattr(made, "scale_model_input"):
            scaled = made.scale_model_input(x, step)
        x = made.step(scaled.tanh(), step, x).prev_sample
    return x


def of_diffusers() -> None:
    """Networks that take noise away, and loops that sample."""
    some: AnyValue = {"block_out_channels": (8, 16), "norm_num_groups": 4}
    down, up = "DownBlock2D", "UpBlock2D"
    heads: AnyValue = {"num_attention_heads": 2, "attention_head_dim": 8}
    heads |= {"num_layers": 2, "in_channels": 4}
    joint = {**heads, "joint_attention_dim": 8, "pooled_projection_dim": 8}
    unet = partial(
        diffusers.UNet2DModel,
        **some,
        in_channels=4,
        attention_head_dim=4,
        down_block_types=(down, f"Attn{down}"),
        up_block_types=(f"Attn{up}", up),
    )
    crossed = partial(
        diffusers.UNet2DConditionModel,
        **some,
        cross_attention_dim=8,
        attention_head_dim=4,
        down_block_types=(f"CrossAttn{down}", down),
        up_block_types=(up, f"CrossAttn{up}"),
    )
    coder = partial(
        diffusers.AutoencoderKL,
        **some,
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
    )
    picture, step = "n,4,2*s,2*s", "timestep=n:9"
    told = f"encoder_hidden_states=n,s-1,8 {step}"
    library = "diffusers"
    add(library, f"sample={picture} {step}", UNet2DModel=unet)
    add(library, f"sample={picture} timestep=", UNet2DNumber=unet)
    add(library, f"sample={picture} {told}", UNet2DConditionModel=crossed)
    add(library, "sample=n,3,4*s,4*s", AutoencoderKL=coder)
    add(
        library,
        "n,3,4*s,4*s",
        AutoencoderKLSample=lambda: Program(
            lambda net, x: net(x, sample_posterior=True).sample, net=coder()
        ),
    )
    add(
        library,
        f"hidden_states={picture} {step} class_labels=n:9",
        DiT=lambda: diffusers.DiTTransformer2DModel(
            **heads, norm_num_groups=4, sample_size=8, num_embeds_ada_norm=10
        ),
    )
    add(
        library,
        f"hidden_states={picture} {told} pooled_projections=n,8",
        SD3=lambda: diffusers.SD3Transformer2DModel(
            **joint, sample_size=16, caption_projection_dim=16, out_channels=4
        ),
    )
    add(
        library,
        "hidden_states=n,s*s,4 encoder_hidden_states=n,s-1,8 timestep=n "
        "pooled_projections=n,8 img_ids=s*s,3 txt_ids=s-1,3",
        Flux=lambda: diffusers.FluxTransformer2DModel(
            **joint, num_single_layers=1, axes_dims_rope=(2, 2, 4)
        ),
    )
    add(
        library,
        f"hidden_states=n,4,3,s,s {told}",
        Wan=lambda: diffusers.WanTransformer3DModel(
            **heads, out_channels=4, text_dim=8, freq_dim=8, ffn_dim=16
        ),
    )
    for name in ("DDPM", "DDIM", "EulerDiscrete", "DPMSolverMultistep", "LCM"):
        functions(library, picture, **{name: partial(_sampled, name)})


def of_peft() -> None:
    """Adapters on a small transformer."""
    config = small(transformers.LlamaConfig())
    config.use_cache = False  # which torch.export does not return

    def adapted(kind: str, **options: AnyValue) -> nn.Module:
        model = transformers.LlamaForCausalLM(config)
        made = getattr(peft, f"{kind}Config")(**options)
        found: nn.Module = peft.get_peft_model(model, made)
        return found

    two: AnyValue = {"target_modules": ["q_proj", "v_proj"]}
    three = {**two, "feedforward_modules": ["v_proj"]}
    add(
        "peft",
        "input_ids=n,s:100 attention_mask=n,s:2",
        **{n: partial(adapted, n, **two) for n in ("LoHa", "LoKr", "HRA")},
        LoRA=partial(adapted, "Lora", **two),
        DoRA=partial(adapted, "Lora", **two, use_dora=True),
        IA3=partial(adapted, "IA3", **three),
        OFT=partial(adapted, "OFT", **two, oft_block_size=8),
    )


def of_torchaudio() -> None:
    """Networks for sound, and what prepares it."""
    m, t, library = torchaudio.models, torchaudio.transforms, "torchaudio"
    sizes = "symbol_embedding encoder_embedding decoder_rnn attention_rnn"
    dims: AnyValue = {f"{name}_dim": 16 for name in sizes.split()}
    tacotron = partial(m.Tacotron2, **dims, n_mels=8, n_symbol=16)
    full = "n:s,s+1"
    add(library, f"n,s,8 {full}", Conformer=lambda: m.Conformer(8, 2, 16, 2, 3))
    add(library, "n,1,9*s,8", DeepSpeech=lambda: m.DeepSpeech(8, 16, 4))
    add(
        library,
        "n,1,200*s",
        Wav2Letter=lambda: m.Wav2Letter(8),
        ConvTasNet=lambda: m.ConvTasNet(2, 16, 8, 3, 8, 8, 2, 1),
    )
    add(library, f"n,16,s {full}", TacotronEncoder=lambda: tacotron().encoder)
    add(library, "n,8,s", TacotronPostnet=lambda: tacotron().postnet)
    add(library, f"n,s:16 {full} n,8,s {full}", Tacotron2=tacotron)
    add(
        library,
        "n,400*s",
        Spectrogram=lambda: t.Spectrogram(64),
        GriffinLim=lambda: nn.Sequential(
            t.Spectrogram(64), t.GriffinLim(64, 3)
        ),
        MFCC=lambda: t.MFCC(n_mfcc=8, melkwargs={"n_fft": 64, "n_mels": 16}),
        Resample=lambda: t.Resample(4, 3),
        Vad=lambda: t.Vad(800),
    )


def of_kornia() -> None:
    """Filters, geometry, colours, and augmentations of constants."""
    f, g, a = k.filters, k.geometry, k.augmentation
    library, picture = "kornia", "n,3,4*s,4*s"
    functions(
        library,
        picture,
        *(f.sobel, f.canny, k.color.rgb_to_hsv, k.color.rgb_to_lab),
        *(k.enhance.equalize, k.enhance.equalize_clahe, g.pyrdown),
        k.feature.harris_response,
        gaussian_blur2d=lambda x: f.gaussian_blur2d(x, (3, 3), (1.0, 1.0)),
        median_blur=lambda x: f.median_blur(x, 3),
        laplacian=lambda x: f.laplacian(x, 3),
        guided_blur=lambda x: f.guided_blur(x, x, 3, 0.1),
        dilation=lambda x: k.morphology.dilation(x, torch.ones(3, 3)),
        rotate=lambda x: g.rotate(x, torch.tensor(30.0)),
        rescale=lambda x: g.rescale(x, 1.5),
        center_crop=lambda x: g.center_crop(x, (8, 8)),
        ssim=lambda x: k.metrics.ssim(x, x.flip(-1), 5),
    )
    functions(
        library,
        f"{picture} n,2,3",
        warp_affine=lambda x, m: g.warp_affine(x, m, (12, 20)),
    )
    functions(library, "n,4,2 n,4,2", g.get_perspective_transform)
    functions(library, "s+5,8 s+7,8", k.feature.match_nn)
    add(
        library,
        picture,
        RandomHorizontalFlip=lambda: a.RandomHorizontalFlip(p=1.0),
        RandomAffine=lambda: a.RandomAffine((30.0, 30.0), p=1.0),
        RandomCrop=lambda: a.RandomCrop((8, 8), p=1.0),
        ColorJiggle=lambda: a.ColorJiggle((1.2, 1.2), p=1.0),
        Normalize=lambda: a.Normalize(torch.rand(3), torch.rand(3) + 1),
    )


def of_monai() -> None:
    """Networks for medical pictures of three dimensions."""
    add(
        "MONAI",
        "n,1,8*s,8*s,32",
        UNet=lambda: nets.UNet(3, 1, 2, (4, 8, 16), (2, 2)),
        BasicUNet=lambda: nets.BasicUNet(features=(4, 4, 8, 8, 16, 4)),
        AttentionUnet=lambda: nets.AttentionUnet(3, 1, 2, (4, 8), (2,)),
        SegResNet=lambda: nets.SegResNet(
            3, 8, blocks_down=(1, 1), blocks_up=(1,)
        ),
        AutoEncoder=lambda: nets.AutoEncoder(3, 1, 2, (4, 8), (2, 2)),
        DenseNet=lambda: nets.DenseNet(3, 1, 2, 4, 4, (2, 2)),
        SwinUNETR=lambda: nets.SwinUNETR(1, 2, (1,) * 4, (1, 1, 2, 2), 12),
    )
    add(
        "MONAI",
        "n,1,32,32,32",
        UNETR=lambda: nets.UNETR(1, 2, 32, 4, 12, 24, 2),
    )


def of_torchvision() -> None:
    """Networks for films, and such that find things in pictures."""
    library = "torchvision"
    add(
        library, "n,3,8,16*s,16*s", r3d_18=video.r3d_18, swin3d_t=video.swin3d_t
    )
    add(library, "n,3,128,32*s n,3,128,32*s", raft=optical_flow.raft_small)
    large, names = "mobilenet_v3_large", ("ssdlite320_", "fasterrcnn_")
    for name, rest in zip(names, ("", "_320_fpn"), strict=True):
        made = partial(
            getattr(detection, f"{name}{large}{rest}"), weights_backbone=None
        )
        add(library, "n,3,64,64", **{name[:-1]: partial(_detecting, made)})


def _detecting(make: Maker) -> nn.Module:
    """A detector, of which each picture of a batch is one."""
    return Program(lambda net, x: net([*x]), net=make())


def of_plain() -> None:
    """The networks of tests/clients/plain.py."""
    p = plain
    rest: AnyValue = {"batch_first": True}

    def of(function: AnyValue, *made: AnyValue) -> Maker:
        named = {f"{place}": one for place, one in enumerate(made)}
        return lambda: Program(function, **named)

    def mixed(*layers: nn.Module, tokens: bool) -> Maker:
        return lambda: p.Tabular(nn.Sequential(*layers), tokens=tokens)

    gru = partial(nn.GRU, 8, 8, **rest)
    add(
        "recurrent",
        "n,s,8",
        LSTM=of(p.last_of, nn.LSTM(8, 8, 2, **rest)),
        GRU=of(p.last_of, gru(bidirectional=True)),
        RNN=of(p.last_of, nn.RNN(8, 8, **rest)),
        cell=of(p.stepped, nn.LSTMCell(8, 8)),
    )
    add("recurrent", "n,s,8 n:1,s+1", packed=of(p.packed, gru()))
    add("recurrent", "n,s,8 n,s+1,8", attended=of(p.attended, gru(), gru()))
    layer = nn.TransformerEncoderLayer(8, 2, 16, **rest)
    add(
        "tabular",
        "n,3:3 n,4",
        MLP=mixed(nn.Linear(56, 8), nn.ReLU(), nn.Linear(8, 1), tokens=False),
        FTTransformer=mixed(layer, tokens=True),
        FactorMachine=mixed(p.Factors(), tokens=True),
        TabNet=mixed(p.Sparse(), tokens=False),
    )
    net = nn.Linear(8, 6)
    add(
        "policy",
        "n,8",
        normal=of(p.normal, net),
        categorical=of(p.categorical, net),
        duel=of(p.duel, nn.Linear(8, 1), net),
        experts=of(p.experts, *(nn.Linear(8, 8) for _ in range(3))),
    )
    add("policy", "n,8 n,6:2", masked=of(p.masked, net))
    functions("policy", "n,s n,s", p.advantages)


# --- judging ----------------------------------------------------------------


def judged(name: str) -> Row:
    """Build, trace, call and export a model."""
    text, make = MODELS[name]
    torch.manual_seed(0)
    try:
        model = make().eval()
        found = [inputs(text, *sizes) for sizes in SIZES]
        given = [((), x) if isinstance(x, dict) else (x, {}) for x in found]
        for args, kwargs in given:
            model(*args, **kwargs)
    except Exception as error:
        return Row(name, (), 0.0, line(error))
    args, kwargs = given[0]
    numbers = [x for x in kwargs if not isinstance(kwargs[x], torch.Tensor)]
    dynamic = dict.fromkeys(kwargs, True) if numbers else None
    seconds, gm = timed(
        lambda: fx.trace(model, *args, dynamic=dynamic, **kwargs)
    )
    if isinstance(gm, Exception):
        calls, reasons = ["not traced", *"-" * (len(SIZES) - 1)], [line(gm)]
    else:
        both = [called(gm, model, *a, **named) for a, named in given]
        calls, reasons = map(list, zip(*both, strict=True))
    export: AnyValue = torch.export
    free = export.ShapesCollection()
    for leaf in pytree.tree_leaves((args, kwargs)):
        if isinstance(leaf, torch.Tensor):
            free[leaf] = (export.Dim.AUTO,) * leaf.dim()
    took, program = timed(
        lambda: export.export(
            model, args, kwargs, dynamic_shapes=free, strict=False
        )
    )
    taken = "no" if isinstance(program, Exception) else "yes"
    why = next(filter(None, reasons), "")
    return Row(name, tuple(calls), seconds, why, (taken, f"{took:.1f}"))


def main(chosen: list[str]) -> int:
    """Judge models and say what came out; 1 if one is wrong."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for register in (
        *(of_geometric, of_diffusers, of_peft, of_torchaudio, of_kornia),
        *(of_monai, of_torchvision, of_plain),
    ):
        register()
    judged("tabular/MLP")  # imports what each of them needs
    names = [n for n in MODELS if not chosen or n.partition("/")[0] in chosen]
    found = []
    for row in rows(names, judged):
        found.append(row)
        print(*row, sep="   ", flush=True)
    if not chosen:
        told = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
        note_models("libraries", HEADS, found, told, {})
    return int(any("WRONG" in row.calls for row in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
