"""The small torch of a page gives what torch gives, or says it does not know.

small_torch_calls.txt has the calls. Each is also changed in many ways, by other
arguments, one less, or a keyword of some other function: what a rule does not
read must not go unnoticed. Both run them, and tell shapes and dtypes.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

from tests.docs.conftest import printed_in_page

AnyValue: TypeAlias = Any
"""A node of a program."""

CALLS: Final = (
    Path(__file__)
    .with_name("small_torch_calls.txt")
    .read_text("utf-8")
    .splitlines()
)

TELL: Final = """
import torch
from torch import nn
from torch.nn import functional as F

def told(value):
    if isinstance(value, torch.Tensor):
        return f"{[*value.shape]} {value.dtype}"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(told, value))})"
    plain = isinstance(value, (int, float, str, torch.dtype, type(None)))
    return repr(value) if plain else "another value"

def known(layer):
    if vars(layer).get("is_unknown"):
        raise NotImplementedError
    return layer

def tell(call):
    ones, zeros, whole = torch.ones, torch.zeros, torch.int64
    names = {
        **{"torch": torch, "nn": nn, "F": F},
        **{"x": ones(2, 3, 4), "y": ones(3, 4), "m": ones(4, 5)},
        **{"im": ones(2, 3, 16, 20), "v": ones(4), "s": ones(())},
        **{"ix": zeros(2, 3, dtype=whole), "t": zeros(3, dtype=whole)},
        **{"b": ones(2, 3, 4) > 0, "known": known},
    }
    try:
        return told(eval(call, names))
    except NotImplementedError:
        return "unknown"
    except Exception as error:
        return f"refused: {error}"
"""
"""A program that tells what a call gives."""

OF_NUMBERS: Final = (
    *("in self", "DATA bounds", "Target", "ZeroDivision", "differentiable"),
    *(
        "index_copy_(): index",
        "offsets[",
        "takes value",
        "a leaf Variable",
        "overflow",
    ),
)
"""In errors of torch about numbers or gradients, which a page lacks."""

KNOWN: Final = 1_000
"""So many of the calls have a known result, or are refused by both."""


def in_page(page: Path, calls: list[str]) -> list[str]:
    """What calls give where no torch is installed."""
    code = (
        f"import warnings; warnings.simplefilter('ignore')\n{TELL}\n"
        "print(json.dumps([*map(tell, json.load(sys.stdin))]))"
    )
    found: list[str] = json.loads(printed_in_page(page, code, calls))
    return found


def with_torch(calls: list[str]) -> list[str]:
    """What calls give with the installed torch."""
    names: dict[str, AnyValue] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(TELL, names)
        return [names["tell"](call) for call in calls]


def wrong(calls: list[str], small: list[str], real: list[str]) -> list[str]:
    """The calls of which the small torch says what is not so."""
    return [
        f"{call}: {ours}, with torch {theirs}"
        for call, ours, theirs in zip(calls, small, real, strict=True)
        if ours not in ("unknown", theirs)
        and theirs != "unknown"
        and not (ours.startswith("refused") and theirs.startswith("refused"))
        and not any(one in theirs for one in OF_NUMBERS)
    ]


SETTINGS: Final = (
    "kernel_size stride padding dilation output_padding transposed groups "
    "in_channels out_channels in_features out_features bias eps momentum "
    "affine num_features normalized_shape num_groups num_channels p inplace "
    "dim mode hidden_size num_layers batch_first bidirectional embed_dim "
    "num_heads kdim head_dim num_embeddings padding_idx scale_factor "
    "reduction running_mean"
).split()
"""Attributes of layers that passes ask for."""


def test_a_layer_has_the_settings_that_it_has_in_torch(page: Path) -> None:
    made = {
        ast.unparse(node)
        for call in CALLS
        for node in ast.walk(ast.parse(call))
        if isinstance(node, ast.Call)
        and re.fullmatch(
            r"nn\.(?!Param|TransformerEncoder$)[A-Z]\w+", ast.unparse(node.func)
        )
    }
    layers = [f"known({one})" for one in sorted(made)]
    calls = [f"repr({one})" for one in layers]
    calls += [f"{one}.{name}" for one in layers for name in SETTINGS]
    known = [
        (call, ours, theirs)
        for call, ours, theirs in zip(
            calls, in_page(page, calls), with_torch(calls), strict=True
        )
        if "refused" not in theirs
    ]
    assert not wrong(*map(list, zip(*known, strict=True)))
    assert len(known) > 600


def test_a_result_is_that_of_torch_or_unknown(page: Path) -> None:
    small = in_page(page, CALLS)
    assert not wrong(CALLS, small, with_torch(CALLS))
    assert len(CALLS) - small.count("unknown") > KNOWN


def test_no_argument_is_passed_over(page: Path) -> None:
    """Of the changed calls some are tried."""
    every = [one for call in CALLS for one in changes(call)]
    tried = [changed(*one) for one in every[::EACH]]
    assert len(tried) > 5_000
    assert not wrong(tried, in_page(page, tried), with_torch(tried))


EACH: Final = 29
NAMES: Final = ("x", "y", "m", "im", "v", "s", "ix", "t", "b")
VALUES: Final = "0 1 -1 5 2.0 True None (1,2) 'none'".split()
TENSORS: Final = "x y ix b im s x.double() x.mT 3".split()
KEYWORDS: Final = (
    "dim=0 dim=(0,1) keepdim=True dtype=torch.float64 dtype=torch.int64 "
    "p=0.9 reduction='none' ceil_mode=True padding=1 padding='same' "
    "stride=2 dilation=2 groups=3 bias=False alpha=2 training=True "
    "batch_first=True unbiased=False correction=0 largest=False "
    "descending=True device='cpu' requires_grad=True inplace=True "
    "size=(2,3) mode='bilinear' value=2.5 scale_factor=2.5 "
    "align_corners=True num_classes=4 return_indices=True output_size=3 "
    "divisor_override=2 eps=1e-3 affine=False num_layers=3 "
    "bidirectional=True proj_size=2 dropout=0.5 need_weights=False "
    "max_norm=1.0 average_attn_weights=False attn_mask=b is_causal=True "
    "enable_gqa=True label_smoothing=0.1 beta=2 min=0 max=1.5 "
    "rounding_mode='floor' offset=1 start_dim=1 end_dim=1 output_padding=1 "
    "antialias=True momentum=None padding_mode='reflect' kdim=4 "
    "nonlinearity='relu' out=x.clone() names=None "
    "track_running_stats=False replacement=True elementwise_affine=False "
    "memory_format=torch.contiguous_format stable=True index=ix weight=v "
    "ord=2 "
).split()


def changes(call: str) -> Iterator[tuple[str, int, str, str]]:
    """A call, a node of it by its number, what is changed, and the new text."""
    for at, node in enumerate(ast.walk(ast.parse(call, mode="eval"))):
        texts: list[str] = []
        if isinstance(node, ast.Constant):
            texts = VALUES
        elif isinstance(node, ast.Name) and node.id in NAMES:
            texts = TENSORS
        elif isinstance(node, ast.Call):
            yield from ((call, at, "keywords", one) for one in KEYWORDS)
            texts = [*VALUES, "x", "torch.float64"]
            yield from ((call, at, "args", one) for one in texts)
            texts = []
            for gone in range(len(node.args)):
                yield call, at, "fewer", str(gone)
        yield from ((call, at, "value", one) for one in texts)
    for more in (".view(-1)", "[0].view(-1)", ".mT.reshape(-1).view(2, -1)"):
        yield call, 0, "behind", more


def changed(call: str, at: int, what: str, text: str) -> str:
    """The call with the change."""
    if what == "behind":
        return f"({call}){text}"
    tree = ast.parse(call, mode="eval")
    node: AnyValue = [*ast.walk(tree)][at]
    if what == "fewer":
        del node.args[int(text)]
    elif what == "value":
        new = ast.parse(text, mode="eval").body
        node.__class__, node.__dict__ = new.__class__, new.__dict__
    else:
        new = ast.parse(f"call({text})", mode="eval").body
        getattr(node, what).extend(getattr(new, what))
    return ast.unparse(tree)
