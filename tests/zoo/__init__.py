"""Real networks at their published sizes, for tests to trace and to run.

    for network in ZOO:
        with borrow(network, training=False) as module:
            module(*network.inputs())

Each family has a file, written as the usual PyTorch code for its paper is and
traceable by torch.fx.symbolic_trace in evaluation and in training mode. The
first line of a file names the paper, the next its table with the size.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor, nn

from .bert import bert_base
from .densenet import densenet121
from .dlrm import dlrm
from .fpn import fpn, retinanet_fpn
from .gpt import gpt2
from .mobilenet import mobilenet_v2
from .resnet import resnet18, resnet50
from .siamese import siamese
from .tagger import blstm_cnn
from .unet import unet
from .vgg import vgg16
from .vit import vit_b_16

__all__ = ["ZOO", "Inputs", "Network", "borrow"]

Inputs: TypeAlias = tuple[Tensor, ...]
Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Network:
    """A network, how to build and call it, and what its paper says of it."""

    name: str
    architecture: Callable[[], nn.Module]
    example: Callable[[torch.Generator], Inputs]
    outputs: tuple[Shape, ...]
    """The shape of each output for the example inputs."""
    parameters: int
    """As published, or counted by hand in the docstring of its file."""
    paper: str

    def build(self) -> nn.Module:
        """A new instance in training mode, with the same weights each time."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return self.architecture()

    def without_numbers(self) -> nn.Module:
        """A new instance on the device meta, for who asks for no results."""
        with torch.device("meta"):
            return self.architecture()

    def inputs(self) -> Inputs:
        """New example inputs for forward, the same each time.

        They are as small as the network's published form can take.
        """
        return self.example(torch.Generator().manual_seed(0))


_LAST: dict[Network, nn.Module] = {}
"""The network that was borrowed last: all of them take 2.6 GB."""


def _shared(network: Network) -> nn.Module:
    if network not in _LAST:
        _LAST.clear()
        gc.collect()  # a graph and its module, which has weights, are a cycle
        _LAST[network] = network.build()
    return _LAST[network]


@contextmanager
def borrow(network: Network, *, training: bool) -> Iterator[nn.Module]:
    """An instance of `network`, the same until another is borrowed.

    Its buffers (the statistics of batch normalisation) are as before when it is
    given back; whoever writes to anything else uses `network.build()` instead.
    """
    module = _shared(network)
    before = {name: b.clone() for name, b in module.named_buffers()}
    try:
        yield module.train(training)
    finally:
        for name, buffer in module.named_buffers():
            buffer.copy_(before[name])


def _floats(*shapes: Shape) -> Callable[[torch.Generator], Inputs]:
    """Example inputs of normally distributed numbers."""
    return lambda generator: tuple(
        torch.randn(shape, generator=generator) for shape in shapes
    )


def _integers(
    *limits: tuple[int, Shape],
) -> Callable[[torch.Generator], Inputs]:
    """Example inputs of whole numbers, each tensor's below its limit."""
    return lambda generator: tuple(
        torch.randint(limit, shape, generator=generator)
        for limit, shape in limits
    )


def _bert_inputs(generator: torch.Generator) -> Inputs:
    """Two texts of two sentences; the second is padded by three words.

    The segments, though forward can do without, are given: a trace with a
    placeholder for them has taken the branch where they are not None.
    """
    words = torch.randint(1, 30_522, (2, 8), generator=generator)
    words[1, 5:] = 0
    segments = (torch.arange(8) >= 4).long().repeat(2, 1)
    return words, (words != 0).long(), segments


def _dlrm_inputs(generator: torch.Generator) -> Inputs:
    """Two samples, with one and two categories for each feature.

    The shortest table has three rows.
    """
    dense = torch.rand((2, 13), generator=generator)
    indices = torch.randint(3, (26, 3), generator=generator)
    return dense, indices, torch.tensor([0, 1]).repeat(26, 1)


_IMAGE = _floats((1, 3, 64, 64))

ZOO: tuple[Network, ...] = (
    Network(
        name="resnet18",
        architecture=resnet18,
        example=_IMAGE,
        outputs=((1, 1000),),
        parameters=11_689_512,
        paper="Deep Residual Learning for Image Recognition, 2015",
    ),
    Network(
        name="resnet50",
        architecture=resnet50,
        example=_IMAGE,
        outputs=((1, 1000),),
        parameters=25_557_032,
        paper="Deep Residual Learning for Image Recognition, 2015",
    ),
    Network(
        name="vgg16",
        architecture=vgg16,
        example=_IMAGE,
        outputs=((1, 1000),),
        parameters=138_357_544,
        paper="Very Deep Convolutional Networks for Large-Scale Image "
        "Recognition, 2014",
    ),
    Network(
        name="mobilenet_v2",
        architecture=mobilenet_v2,
        example=_IMAGE,
        outputs=((1, 1000),),
        parameters=3_504_872,
        paper="MobileNetV2: Inverted Residuals and Linear Bottlenecks, 2018",
    ),
    Network(
        name="densenet121",
        architecture=densenet121,
        example=_IMAGE,
        outputs=((1, 1000),),
        parameters=7_978_856,
        paper="Densely Connected Convolutional Networks, 2016",
    ),
    Network(
        name="unet",
        architecture=unet,
        example=_floats((1, 1, 188, 188)),
        outputs=((1, 2, 4, 4),),
        parameters=31_030_658,
        paper="U-Net: Convolutional Networks for Biomedical Image "
        "Segmentation, 2015",
    ),
    Network(
        name="vit_b_16",
        architecture=vit_b_16,
        example=_floats((1, 3, 224, 224)),
        outputs=((1, 1000),),
        parameters=86_567_656,
        paper="An Image is Worth 16x16 Words: Transformers for Image "
        "Recognition at Scale, 2020",
    ),
    Network(
        name="gpt2",
        architecture=gpt2,
        example=_integers((50_257, (1, 16))),
        outputs=((1, 16, 50_257),),
        parameters=124_439_808,
        paper="Language Models are Unsupervised Multitask Learners, 2019",
    ),
    Network(
        name="bert_base",
        architecture=bert_base,
        example=_bert_inputs,
        outputs=((2, 8, 768), (2, 768)),
        parameters=109_482_240,
        paper="BERT: Pre-training of Deep Bidirectional Transformers for "
        "Language Understanding, 2018",
    ),
    Network(
        name="blstm_cnn",
        architecture=blstm_cnn,
        example=_integers((400_002, (2, 7)), (96, (2, 7, 12))),
        outputs=((2, 7, 45),),
        parameters=40_555_055,
        paper="End-to-end Sequence Labeling via Bi-directional "
        "LSTM-CNNs-CRF, 2016",
    ),
    Network(
        name="dlrm",
        architecture=dlrm,
        example=_dlrm_inputs,
        outputs=((2, 1),),
        parameters=13_924_673,
        paper="Deep Learning Recommendation Model for Personalization and "
        "Recommendation Systems, 2019",
    ),
    Network(
        name="siamese",
        architecture=siamese,
        example=_floats((1, 1, 105, 105), (1, 1, 105, 105)),
        outputs=((1, 1),),
        parameters=38_951_745,
        paper="Siamese Neural Networks for One-shot Image Recognition, 2015",
    ),
    Network(
        name="fpn",
        architecture=fpn,
        example=_floats(
            (1, 256, 16, 16), (1, 512, 8, 8), (1, 1024, 4, 4), (1, 2048, 2, 2)
        ),
        outputs=tuple((1, 256, side, side) for side in (16, 8, 4, 2, 1)),
        parameters=3_344_384,
        paper="Feature Pyramid Networks for Object Detection, 2016",
    ),
    Network(
        name="retinanet_fpn",
        architecture=retinanet_fpn,
        example=_floats((1, 512, 16, 16), (1, 1024, 8, 8), (1, 2048, 4, 4)),
        outputs=tuple((1, 256, side, side) for side in (16, 8, 4, 2, 1)),
        parameters=7_997_440,
        paper="Focal Loss for Dense Object Detection, 2017",
    ),
)
"""Every network, by family."""
