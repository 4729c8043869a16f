"""The zoo is what it says: published sizes, finite outputs, traceable."""

import importlib
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, fx, nn

from . import ZOO, Inputs, Network, borrow
from .densenet import densenet121
from .dlrm import DLRM
from .gpt import gpt2
from .mobilenet import mobilenet_v2
from .resnet import resnet18, resnet50
from .siamese import siamese
from .unet import unet
from .vgg import vgg16
from .vit import vit_b_16

# What the papers' tables print for an image of the size they train on: the
# shape of what a submodule gives. Strides do not show in parameter counts.
FEATURES: tuple[
    tuple[Callable[[], nn.Module], str, tuple[int, ...], tuple[int, ...]], ...
] = (
    (resnet18, "layer1", (3, 224, 224), (64, 56, 56)),
    (resnet18, "layer4", (3, 224, 224), (512, 7, 7)),
    (resnet50, "layer2", (3, 224, 224), (512, 28, 28)),
    (resnet50, "layer4", (3, 224, 224), (2048, 7, 7)),
    (vgg16, "features", (3, 224, 224), (512, 7, 7)),
    (mobilenet_v2, "features.3", (3, 224, 224), (24, 56, 56)),
    (mobilenet_v2, "features.13", (3, 224, 224), (96, 14, 14)),
    (mobilenet_v2, "features", (3, 224, 224), (1280, 7, 7)),
    (densenet121, "features.4", (3, 224, 224), (256, 56, 56)),
    (densenet121, "features", (3, 224, 224), (1024, 7, 7)),
    (unet, "downs.4", (1, 572, 572), (1024, 28, 28)),
    (unet, "head", (1, 572, 572), (2, 388, 388)),
    (vit_b_16, "blocks", (3, 224, 224), (197, 768)),
)
FAMILIES = sorted(
    path.stem
    for path in Path(__file__).parent.glob("*.py")
    if path.stem not in {"__init__", "test_zoo"}
)


@pytest.fixture(params=ZOO, ids=lambda network: network.name)
def network(request: pytest.FixtureRequest) -> Network:
    """Each network in turn."""
    assert isinstance(request.param, Network)
    return request.param


@pytest.fixture(params=[False, True], ids=["eval", "train"])
def training(request: pytest.FixtureRequest) -> bool:
    """Evaluation mode, then training mode."""
    return bool(request.param)


def count_parameters(module: nn.Module) -> int:
    """How many numbers it learns; a shared parameter counts once."""
    return sum(parameter.numel() for parameter in module.parameters())


def named(name: str) -> Network:
    """The network of that name."""
    return next(network for network in ZOO if network.name == name)


def run(module: nn.Module, inputs: Inputs) -> tuple[Tensor, ...]:
    """The outputs for copies of the inputs, dropout being seeded."""
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        outputs = module(*(x.clone() for x in inputs))
    return outputs if isinstance(outputs, tuple) else (outputs,)


def test_names_are_unique() -> None:
    assert len({network.name for network in ZOO}) == len(ZOO) >= 13


def test_every_family_is_registered_and_names_its_paper() -> None:
    registered = {network.architecture.__module__ for network in ZOO}
    package = __name__.rpartition(".")[0]
    assert registered == {f"{package}.{family}" for family in FAMILIES}
    for name in registered:
        doc = importlib.import_module(name).__doc__
        assert doc is not None
        title, year = doc.splitlines()[0].rstrip(".").rsplit(", ", 1)
        title = title.partition(" (")[0].removesuffix(" and ...")
        assert any(
            network.paper.startswith(title) and network.paper.endswith(year)
            for network in ZOO
        ), f"{name} names {title!r}, which no network's paper begins with"


def test_parameters_are_as_published(network: Network) -> None:
    assert count_parameters(network.without_numbers()) == network.parameters


def test_outputs_are_finite_and_traceable(
    network: Network, training: bool
) -> None:
    inputs = network.inputs()
    with borrow(network, training=training) as module:
        outputs = run(module, inputs)
        assert tuple(tuple(y.shape) for y in outputs) == network.outputs
        assert all(bool(y.isfinite().all()) for y in outputs)
        traced = fx.symbolic_trace(module)
        traced_outputs = run(traced, inputs)
    torch.testing.assert_close(traced_outputs, outputs, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("architecture", "path", "image", "expected"),
    FEATURES,
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_features_have_the_resolution_of_the_paper(
    architecture: Callable[[], nn.Module],
    path: str,
    image: tuple[int, ...],
    expected: tuple[int, ...],
) -> None:
    shapes: list[tuple[int, ...]] = []
    with torch.device("meta"):
        module = architecture()
        module.get_submodule(path).register_forward_hook(
            lambda module, inputs, output: shapes.append(tuple(output.shape))
        )
        module(torch.empty(1, *image))
    assert shapes == [(1, *expected)]


def test_dlrm_with_whole_tables_is_as_published() -> None:
    with torch.device("meta"):
        module = DLRM()
    assert count_parameters(module.tables) == 540_201_232
    assert count_parameters(module) == 540_677_217


def test_siamese_twins_are_one_module_called_twice() -> None:
    with torch.device("meta"):
        module = siamese()
    assert module.left is module.right
    calls = [
        node.target
        for node in fx.symbolic_trace(module).graph.nodes
        if node.target == "left.fc"
    ]
    assert len(calls) == 2


def test_gpt2_ties_its_output_to_its_embedding() -> None:
    with torch.device("meta"):
        module = gpt2()
    assert module.lm_head.weight is module.wte.weight


def test_bert_takes_missing_segments_for_the_first() -> None:
    network = named("bert_base")
    words, mask, segments = network.inputs()
    with borrow(network, training=False) as module:
        without = run(module, (words, mask))
        first = run(module, (words, mask, torch.zeros_like(segments)))
        both = run(module, (words, mask, segments))
    torch.testing.assert_close(without, first, rtol=0, atol=0)
    assert not torch.equal(without[0], both[0])


def test_bert_does_not_attend_to_padding() -> None:
    network = named("bert_base")
    words, mask, segments = network.inputs()
    other = words.where(mask == 1, 7)
    with borrow(network, training=False) as module:
        padded = run(module, (words, mask, segments))[0]
        changed = run(module, (other, mask, segments))[0]
    read = mask == 1
    torch.testing.assert_close(padded[read], changed[read], rtol=0, atol=0)


def test_gpt2_does_not_see_the_future() -> None:
    network = named("gpt2")
    (tokens,) = network.inputs()
    other = tokens.clone()
    other[0, 10:] += 1
    with borrow(network, training=False) as module:
        (before,), (after,) = run(module, (tokens,)), run(module, (other,))
    torch.testing.assert_close(before[:, :10], after[:, :10])
    assert not torch.allclose(before[:, 10:], after[:, 10:])


def test_build_and_inputs_are_the_same_each_time() -> None:
    network = named("mobilenet_v2")
    with torch.random.fork_rng(devices=[]):
        first = network.build()
        torch.rand(1)
        state = torch.get_rng_state()
        second = network.build()
        assert torch.equal(torch.get_rng_state(), state)
    assert first is not second
    torch.testing.assert_close(
        first.state_dict(), second.state_dict(), rtol=0, atol=0
    )
    torch.testing.assert_close(
        network.inputs(), network.inputs(), rtol=0, atol=0
    )


def test_a_borrowed_network_is_given_back_as_it_was() -> None:
    network = named("mobilenet_v2")
    with borrow(network, training=False) as module:
        before = {k: v.clone() for k, v in module.state_dict().items()}
    with pytest.raises(KeyError), borrow(network, training=True) as again:
        assert again is module
        assert again.training
        run(again, network.inputs())
        changed = again.state_dict()["features.0.1.running_mean"]
        assert not torch.equal(changed, before["features.0.1.running_mean"])
        raise KeyError
    torch.testing.assert_close(
        dict(module.state_dict()), before, rtol=0, atol=0
    )
