"""What a trace fixes, leaves out or leaves behind, and says of it."""

from __future__ import annotations

import warnings

import torch
import torch.nn.functional as F
from torch import nn

from tests.parity.harness import Lib, Made, Seen, program


def warned(call: Made) -> list[str]:
    """The first words of what a call warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [" ".join(str(w.message).split()[:4]) for w in caught]


@program(
    differs="switches-warned-of",
    ours=["manual_seed is called while", "saved_tensors_hooks is called while"],
)
def switches_in_forward(lib: Lib) -> Seen:
    def f(x: Made) -> Made:
        torch.manual_seed(3)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            return x * x

    return warned(lambda: lib.symbolic_trace(f))


class Drops(nn.Module):
    def forward(self, x: Made) -> Made:
        return F.dropout(x, 0.5, training=self.training)


@program(
    differs="mode-fixed-warned-of",
    ours=[[], ["eval() does not reach"], True],
)
def the_mode_is_changed(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(Drops())
    (call,) = [node for node in gm.graph.nodes if node.op == "call_function"]
    return [warned(gm.train), warned(gm.eval), call.kwargs["training"]]


class Sub(nn.Module):
    def forward(self, x: Made) -> Made:
        return x * 2


@program(
    differs="hooks-inside-warned-of",
    ours=[["0, a Sub, is"], 1],
)
def a_hook_inside(lib: Lib) -> Seen:
    root, kept = nn.Sequential(Sub()), []
    root[0].register_forward_hook(lambda *args: kept.append(args))
    said = warned(lambda: lib.symbolic_trace(root)(torch.ones(1)))
    return [said, len(kept)]


class Keeps(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.feats: list[Made] = []
        self.last: Made = None

    def forward(self, x: Made) -> Made:
        self.feats.append(x)
        self.last = x + 1
        return self.last


@program(
    differs="module-kept-clean",
    ours=[["the code put another"], [], "NoneType"],
)
def forward_keeps_a_proxy(lib: Lib) -> Seen:
    root = Keeps()
    said = warned(lambda: lib.symbolic_trace(root))
    kinds = [type(value).__name__ for value in root.feats]
    return [said, kinds, type(root.last).__name__]


@program(
    differs="constants-without-proxies",
    ours="TraceError: a Bag that was made without a proxy holds",
)
def an_object_is_filled_with_proxies(lib: Lib) -> Seen:
    meta: Made = lib.ProxyableClassMeta
    Bag: Made = meta("Bag", (), {})

    def f(x: Made) -> Made:
        bag = Bag()
        bag.items = [x]
        return bag

    try:
        made = lib.symbolic_trace(f)(torch.ones(1))
    except Exception as error:
        first = str(error).split()[:9]
        return f"{type(error).__name__}: {' '.join(first)}"
    return type(made.items[0]).__name__


@program(
    differs="errors-with-advice",
    ours=["TypeError", "'Proxy' object does not support item assignment", 1],
)
def an_error_of_python(lib: Lib) -> Seen:
    def f(x: Made) -> Made:
        x[0] = 1
        return x

    try:
        lib.symbolic_trace(f)
    except TypeError as error:
        notes = getattr(error, "__notes__", [])
        return [type(error).__name__, str(error), len(notes)]
    return []
