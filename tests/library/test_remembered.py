"""What a trace remembers of torch's rules is what the rules give again."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial
from typing import Any, TypeAlias

import pytest
import torch
from torch import nn
from torch.nn import functional

import fx
from fx.torch_private import remembered, symbolic_sizes

AnyValue: TypeAlias = Any

SEEDS = 4

LINES = (
    *("{a}.relu()", "functional.hardswish({a})", "{a} * 2", "{a} * 2.5"),
    *("2 ** {a}", "{a} + {b}", "{a} * {b}", "{a} > 0", "{a} - {b}[:1]"),
    *("torch.where({a} > 0, {a}, {b})", "{a}.clone().relu_()", "~({a} > 1)"),
    *("{a}.clone(memory_format=torch.channels_last)", "{a}.double()", "-{a}"),
    *(
        "functional.batch_norm({a}, m, v)",
        "functional.batch_norm({a}, m, v, w)",
    ),
    *("functional.batch_norm({a}, m, v, w, w, True)", "{a}.clone().add_({b})"),
    *("functional.layer_norm({a}, {a}.shape[-1:])", "{a}.to({b}.dtype)"),
    *("functional.conv2d({a}, k)", "{a} + w", "{a}.mean(0)", "{a}.sum((2, 3))"),
    *(
        "{a}.transpose(2, 3)",
        "{a}.mT.sigmoid()",
        "{a}[:, :, 1:]",
        "{a} @ {a}.mT",
    ),
    *(
        "{a}[:, :, ::2].exp()",
        "{a}[:, :, 1:].exp()",
        "{a}.half()",
        "{a} + 0.5",
        "({a} > 0) * 1",
        "{a}.clone().mul_(3)",
    ),
)
"""What a line may compute of tensors a and b, of whatever layout."""


def run(lines: list[str], *given: torch.Tensor) -> list[torch.Tensor]:
    """What lines compute; a line that raises is taken out of the list."""
    names: dict[str, AnyValue] = {"torch": torch, "functional": functional}
    names |= {"m": torch.zeros(3), "v": torch.ones(3), "w": torch.ones(3)}
    names |= {"k": torch.ones(3, 3, 1, 1), "a": [*given]}
    for line in [*lines]:
        try:
            names["a"].append(eval(line, names))
        except (RuntimeError, IndexError, ValueError, TypeError):
            lines.remove(line)
    found: list[torch.Tensor] = names["a"]
    return found


def program(rng: random.Random, *given: torch.Tensor) -> list[str]:
    """Lines that compute of these tensors, none of which raises."""
    lines: list[str] = []
    for _ in range(25):
        count = len(lines) + len(given)
        a, b = (f"a[{rng.randrange(count)}]" for _ in range(2))
        lines.append(rng.choice(LINES).format(a=a, b=b))
        run(lines, *given)
    return lines


class Compared:
    """Stands for what remembers, and asks the rule, too.

    Attributes:
        answers: how many calls were remembered, by operator.
        wrong: operators whose rules give something else.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        """Put it in place."""
        self._again = remembered._again
        self._remembering = remembered.remembering
        self.answers: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._last = False
        patch.setattr(remembered, "_again", self._noting)
        patch.setattr(symbolic_sizes, "remembering", self)

    def _noting(self, *given: AnyValue) -> AnyValue:
        self._last = True
        return self._again(*given)

    def __call__(
        self, rule: AnyValue, known: AnyValue, mode: AnyValue, call: AnyValue
    ) -> AnyValue:
        """What is remembered, if it is what the rule gives."""
        self._last = False
        result = self._remembering(rule, known, mode, call)
        if self._last:
            self._last = False
            before = len(mode.shape_env.guards)
            if seen(rule(mode, *call)) != seen(result):
                self.wrong.append(call[0].name())
            if len(mode.shape_env.guards) != before:
                self.wrong.append(f"guards of {call[0].name()}")
            self.answers[call[0].name()] += 1
        return result


def seen(result: AnyValue) -> list[AnyValue]:
    """All that a program can ask of a result."""
    tensors = result if isinstance(result, tuple | list) else [result]
    return [
        (
            *(each.dtype, each.device, each.storage_offset()),
            *map(str, (*each.shape, *each.stride())),
            *(each.requires_grad, each.is_inference()),
            str(torch._C._dispatch_keys(each)),
        )
        for each in tensors
    ]


def search(
    lines: list[str], *given: torch.Tensor, dynamic: bool = True
) -> tuple[int, list[str]]:
    """Trace lines; how many operators were remembered, and which wrongly."""
    with pytest.MonkeyPatch.context() as patch:
        compared = Compared(patch)
        fx.trace(partial(run, lines), *given, dynamic=dynamic, check=False)
        return len(compared.answers), compared.wrong


def test_what_is_remembered_is_what_the_rule_gives() -> None:
    found = 0
    for seed in range(SEEDS):
        rng = random.Random(seed)
        x = torch.randn(rng.choice((1, 2, 4)), 3, 5, rng.choice((5, 3)))
        y = torch.randn(x.shape)
        if rng.random() < 0.4:
            y = y.contiguous(memory_format=torch.channels_last)
        lines = program(rng, x, y)
        count, wrong = search(lines, x, y, dynamic=rng.random() < 0.7)
        assert not wrong
        found += count
    assert found > 5 * SEEDS


@pytest.mark.parametrize(
    ("name", "fault", "line"),
    [
        ("_is_contiguous", lambda sizes, strides: True, "{}.exp()"),
        ("_sizes", lambda sizes: (len([*sizes]),), "{}.sum((2, 3))"),
    ],
)
def test_a_fault_is_found(
    name: str, fault: AnyValue, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [line.format(given) for given in ("a[0]", "a[0]", "a[0][:, ::2]")]
    given = torch.randn(2, 4, 3, 3)
    assert not search(lines, given)[1]
    monkeypatch.setattr(remembered, name, fault)
    assert search(lines, given)[1]


@pytest.mark.parametrize("training", [False, True])
def test_a_network_has_the_same_nodes_and_guards(
    training: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = nn.Sequential(*(block for _ in range(3) for block in layers()))
    model.train(training)
    given = torch.randn(2, 4, 6, 6)
    one = fx.trace(model, given, dynamic=True)
    monkeypatch.setattr(remembered, "_is_remembered", lambda func: False)
    two = fx.trace(model, given, dynamic=True)
    assert str(one.graph) == str(two.graph)
    assert [*map(str, one.guards)] == [*map(str, two.guards)]
    kinds = [
        [seen(node.meta["val"]) for node in gm.graph.nodes if is_one(node)]
        for gm in (one, two)
    ]
    assert kinds[0] == kinds[1]


def layers() -> list[nn.Module]:
    """A block of a network for pictures."""
    norm = nn.BatchNorm2d(4), nn.GroupNorm(2, 4), nn.Hardswish(inplace=True)
    return [nn.Conv2d(4, 4, 3, padding=1), *norm, nn.GELU(), nn.Dropout()]


def is_one(node: fx.Node) -> bool:
    """Whether a node stands for a tensor."""
    return isinstance(node.meta.get("val"), torch.Tensor)
