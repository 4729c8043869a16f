"""Sizes that depend on values, and values that are known, in `fx.trace`."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
import torch
from torch import nn
from torch.distributions import Categorical, Normal
from torch.nn import functional

import fx
from tests.reliability.traced import wrong

AnyValue: TypeAlias = Any

TORCH: AnyValue = torch
CHECK: AnyValue = torch._check
NORMAL: AnyValue = Normal
CATEGORICAL: AnyValue = Categorical

ROW = torch.tensor([1.0, -2.0, 3.0, -4.0, 5.0])
ROWS = [-ROW, ROW.abs(), ROW[:1], torch.zeros(3), torch.randn(7)]
"""Nothing, all, one item, nothing again, and some are above 0."""


def is_right(program: AnyValue, gm: AnyValue, *args: AnyValue) -> bool:
    """Whether a graph gives what the program gives, and does not refuse."""
    gm(*copy.deepcopy(args))
    found = wrong(gm, program, *args)
    assert not found, found
    return True


def repeated(x: torch.Tensor) -> torch.Tensor:
    """As many copies of each item as it says."""
    return x.repeat_interleave((x > 0).long() * 2)


def filled(x: torch.Tensor) -> torch.Tensor:
    """Zeros up to some item, and ones in others before that."""
    x[: x.argmax()] = 0
    x[x.argmin() :][:2].add_(1)
    return x


@pytest.mark.parametrize(
    "program",
    [
        lambda x: torch.where(x > 0)[0],
        lambda x: x.nonzero().sum(0),
        lambda x: x[x > 0] * 2,
        lambda x: torch.unique(x, return_inverse=True, return_counts=True),
        lambda x: torch.masked_select(x, x > 0).cumsum(0),
        lambda x: torch.cat([x[x > 0], x[x < 0] + 1]),
        lambda x: x[x > 0][1:].reshape(-1, 1).expand(-1, 3),
        lambda x: torch.arange(x[x > 0].shape[0] * 2),
        lambda x: [*x[x > 0].shape, x[x < 0].sum() / x[x < 0].numel()],
        lambda x: torch.bincount((x > 0).long(), minlength=4),
        lambda x: [x[x > 0].mean(), x * (len(x[x > 0]) / 2)],
        lambda x: functional.mse_loss(y := x[x > 0], y * 2),
        lambda x: functional.linear(x.nonzero() * 1.0, torch.ones(2, 1)),
        lambda x: x.nonzero().double().log_softmax(0),
        lambda x: [x[: (x > 0).sum()], x[(x > 0).sum() - 2 :] * 2],
        lambda x: x[: (torch.as_tensor(0.7 * len(x)) + 0.5).ceil().long()],
        filled,
        repeated,
    ],
)
def test_a_size_may_depend_on_values(program: Callable[..., AnyValue]) -> None:
    gm = fx.trace(program, ROW)
    assert all(is_right(program, gm, x) for x in [ROW, *ROWS])


def test_what_torch_takes_to_hold_of_such_a_size_is_checked() -> None:
    def largest(x: torch.Tensor) -> torch.Tensor:
        chosen = x[x > 0]
        top = chosen.topk(2).values
        return top if chosen.numel() else top * 2

    gm = fx.trace(largest, ROW)
    assert "_assert" in gm.code
    assert is_right(largest, gm, ROW.abs())
    with pytest.raises(fx.GuardError, match=r"relied on .*size\(0\) >= 2"):
        gm(ROW[:1])

    def total(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        a, b = x[x > 0], y[y > 0]
        both = a + b  # which is fine for one item, too
        return both if a.shape[0] == b.shape[0] else both * 2

    gm = fx.trace(total, ROW, ROW.abs() * (ROW > 0))
    assert is_right(total, gm, ROW.clone(), ROW)
    with pytest.raises(fx.GuardError, match=r"== getitem_1.size"):
        gm(ROW, torch.ones(1))


def test_such_checks_stay_in_a_symbolic_trace() -> None:
    class Outer(nn.Module):
        def __init__(self, inner: nn.Module) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, x: torch.Tensor) -> AnyValue:
            return self.inner(x)[0] + 1

    def program(x: torch.Tensor) -> AnyValue:
        chosen = x[x > 0]
        return chosen.topk(2).values, chosen.reshape(-1, 1)

    outer = Outer(fx.trace(program, ROW))
    gm = fx.symbolic_trace(outer)
    assert is_right(outer, gm, ROW.abs())
    with pytest.raises(fx.GuardError, match=r"size\(0\) >= 2"):
        gm(ROW[:1])


def test_a_branch_on_such_a_size_needs_a_check() -> None:
    def program(x: torch.Tensor, said: bool = False) -> torch.Tensor:
        chosen = x[x > 0]
        if said:
            CHECK(chosen.shape[0] > 0)
        return chosen * 2 if chosen.numel() else chosen.new_zeros(1)

    with pytest.raises(fx.TraceError, match=r"torch\._check") as raised:
        fx.trace(program, ROW)
    assert "chosen.numel()" in str(raised.value)
    assert "a, b" not in str(raised.value)
    gm = fx.trace(program, ROW, said=True)
    assert is_right(program, gm, ROW.abs(), True)
    with pytest.raises(fx.GuardError, match=r"chosen\.shape"):
        gm(-ROW.abs(), said=True)


def test_such_a_refusal_cannot_be_caught() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        try:
            return x if len(x[x > 0]) else x * 2
        except Exception:
            return x * 3

    with pytest.raises(fx.TraceError, match="size that depends on the values"):
        fx.trace(program, ROW)


def test_a_size_of_values_in_a_checkpoint() -> None:
    def inner(x: torch.Tensor) -> torch.Tensor:
        return x[x > 0] * 2

    def program(x: torch.Tensor) -> AnyValue:
        y = torch.utils.checkpoint.checkpoint(inner, x, use_reentrant=False)
        return y, torch.zeros(y.shape[0] + 1)

    gm = fx.trace(program, ROW)
    assert all(is_right(program, gm, x) for x in ROWS)


def convolve(
    x: torch.Tensor, edges: torch.Tensor, weight: torch.Tensor
) -> torch.Tensor:
    """A graph convolution: own loops, degrees, sums over neighbours."""
    count = x.size(0)
    edges = edges[:, edges[0] != edges[1]]
    loops = torch.arange(count)
    edges = torch.cat([edges, torch.stack([loops, loops])], 1)
    source, target = edges
    degree = torch.zeros(count).index_add(0, target, torch.ones(target.size(0)))
    scale = degree.pow(-0.5)
    scale[scale == float("inf")] = 0
    norm = (scale[source] * scale[target])[:, None]
    out = torch.zeros(count, weight.size(1))
    return out.index_add(0, target, norm * (x @ weight)[source])


def attend(
    x: torch.Tensor, edges: torch.Tensor, weight: torch.Tensor
) -> torch.Tensor:
    """A graph attention: a softmax over the edges into each node."""
    edges = edges[:, edges[0] != edges[1]]
    source, target = edges
    h = x @ weight
    score = functional.leaky_relu((h[source] * h[target]).sum(-1), 0.2)
    index = target
    top = torch.full((x.size(0),), -1e9).scatter_reduce(
        0, index, score, "amax", include_self=True
    )
    score = (score - top[index]).exp()
    total = torch.zeros(x.size(0)).index_add(0, index, score)
    share = score / (total[index] + 1e-16)
    out = torch.zeros(x.size(0), weight.size(1))
    return out.index_add(0, index, h[source] * share[:, None])


@pytest.mark.parametrize("program", [convolve, attend])
def test_networks_of_graphs(program: Callable[..., AnyValue]) -> None:
    def edges(*pairs: tuple[int, int]) -> torch.Tensor:
        return torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).t()

    weight = torch.randn(3, 2)
    gm = fx.trace(program, torch.randn(4, 3), edges((0, 1), (1, 2)), weight)
    calls = [
        (5, ((0, 1), (1, 1), (4, 2))),
        (1, ((0, 0),)),
        (2, ((1, 0),)),
        (4, ((0, 0), (3, 3))),
    ]
    for count, pairs in calls:
        assert is_right(
            program, gm, torch.randn(count, 3), edges(*pairs), weight
        )


class Experts(nn.Module):
    """A mixture of experts, each of which takes the tokens that chose it."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(4, 3)
        self.experts = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The sum of what two experts give for each token."""
        shares, chosen = self.gate(x).softmax(-1).topk(2, -1)
        masks = functional.one_hot(chosen, 3).permute(2, 1, 0)
        out = torch.zeros_like(x)
        for mask, expert in zip(masks, self.experts, strict=True):
            place, token = torch.where(mask)
            given = expert(x[token]) * shares[token, place, None]
            out.index_add_(0, token, given)
        return out


def test_a_mixture_of_experts() -> None:
    net = Experts()
    gm = fx.trace(net, torch.randn(6, 4))
    for count in (6, 1, 2, 9):
        assert is_right(net, gm, torch.randn(count, 4))


# -- values that are known -----------------------------------------------------


class Schedule(nn.Module):
    """A sampler: numbers of a schedule, and a network."""

    def __init__(self) -> None:
        super().__init__()
        alphas = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 1000), 0)
        self.alphas = nn.Buffer(alphas)
        self.steps = nn.Buffer(torch.tensor([750, 500, 250, 0]))
        self.net = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """As in DDIM."""
        steps = self.steps.tolist()
        for step, after in zip(steps, [*steps[1:], -1], strict=True):
            now = self.alphas[step].item()
            then = self.alphas[after].item() if after >= 0 else 1.0
            noise = self.net(x) * (step / 1000)
            clean = (x - (1 - now) ** 0.5 * noise) / now**0.5
            x = then**0.5 * clean + (1 - then) ** 0.5 * noise
        return x


def denoise(x: torch.Tensor) -> torch.Tensor:
    """As in DDPM, with a schedule of its own."""
    betas = torch.linspace(1e-4, 0.02, 20)
    alphas = torch.cumprod(1 - betas, 0)
    for step in reversed(range(0, 20, 5)):
        share = betas[step].item() / (1 - alphas[step].item()) ** 0.5
        x = (x - share * x.tanh()) / (1 - betas[step]).sqrt()
        if betas[step] > 1e-3:
            x = x + betas[step].sqrt() * torch.randn_like(x)
    return x


@pytest.mark.parametrize("program", [Schedule(), denoise])
def test_schedules(program: AnyValue) -> None:
    gm = fx.trace(program, torch.randn(2, 4))
    for count in (2, 1, 3, 8):
        assert is_right(program, gm, torch.randn(count, 4))


def written(x: torch.Tensor) -> torch.Tensor:
    """Reads what it has written."""
    table = torch.arange(4.0)
    table[0] = 5
    table.view(2, 2)[1].mul_(3)
    return x * float(table.tolist()[0]) + table[3].item()


@pytest.mark.parametrize(
    "program",
    [
        written,
        lambda x: x * torch.tensor([1, 2]).tolist()[1],
        lambda x: x[: torch.tensor(2)].reshape(torch.tensor([1, 2])[1], -1),
        lambda x: x * 2 if torch.arange(3).sum() > 2 else x,
        lambda x: sum(x * t for t in torch.arange(3) if t),
        lambda x: x + torch.from_numpy(torch.arange(3).numpy() * 2).sum(),
        lambda x: (
            x if torch.equal(torch.arange(2), torch.tensor([0, 1])) else 0
        ),
        lambda x: x * ROW.tolist()[2],
        lambda x: sum(x * i for i in range(len((ROW > 0).nonzero()))),
        lambda x: x * nn.Parameter(ROW[:1] * 1).item(),
    ],
)
def test_values_that_are_known(program: Callable[..., AnyValue]) -> None:
    even = torch.arange(4.0)
    gm = fx.trace(program, even)
    for x in (even, even + 1, torch.ones(8)):
        assert is_right(program, gm, x)


def shared(x: torch.Tensor) -> torch.Tensor:
    """Writes into a part of a table by way of a view of unknown size."""
    table = torch.arange(4.0)
    table[: x.shape[0]].add_(x)
    return x * table[0].item()


def around(x: torch.Tensor) -> torch.Tensor:
    """Writes by way of `data`, which counts for itself."""
    table = torch.arange(4.0)
    table.data.add_(x.sum())
    return x * table[0].item()


@pytest.mark.parametrize(
    "program",
    [
        shared,
        around,
        lambda x: x * torch.rand(3)[1].item(),
        lambda x: x * torch.empty(3)[1].item(),
        lambda x: x * torch.randperm(3).tolist()[0],
        lambda x: x * (torch.arange(4) * x).sum().item(),
        lambda x: x * torch.ones(x.shape[0]).sum().item(),
        lambda x: x * functional.dropout(torch.ones(3)).sum().item(),
    ],
)
def test_values_that_are_not_known(program: Callable[..., AnyValue]) -> None:
    state = torch.get_rng_state()
    with pytest.raises(fx.TraceError, match="values of a tensor"):
        fx.trace(program, torch.ones(4))
    assert torch.equal(state, torch.get_rng_state())


def test_a_buffer_whose_value_was_read_is_a_guard() -> None:
    net, x = Schedule(), torch.randn(2, 4)
    gm = fx.trace(net, x)
    asked = [guard for guard in gm.guards if "unchanged" in guard.expression]
    assert [guard.line.count("in Schedule.forward") for guard in asked] == [
        1,
        1,
    ]
    net.alphas = nn.Buffer(net.alphas.clone())
    gm.alphas = net.alphas
    others = [copy.deepcopy(gm), pickle.loads(pickle.dumps(gm))]
    assert all(is_right(net, each, x) for each in [gm, gm, *others])
    for each in (gm, *others):
        each.steps[1] = 400
        with pytest.raises(fx.GuardError, match="other values") as raised:
            each(x)
        assert "self.steps.tolist()" in str(raised.value)
        each.steps[1] = 500
        each(x)
        each.alphas = each.alphas.double()
        with pytest.raises(fx.GuardError, match="other values"):
            each(x)


def test_what_is_written_into_a_table_is_a_guard() -> None:
    class Filled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Buffer(torch.tensor([2.0]))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            table = torch.zeros(2)
            view = table.view(2, 1)
            table[0] = self.scale[0]
            view[1].add_(self.scale)
            return x * float(table[0].item()) * float(view[1].item())

    net = Filled()
    gm = fx.trace(net, ROW)
    assert is_right(net, gm, ROW)
    net.scale.fill_(3)
    with pytest.raises(fx.GuardError, match="other values"):
        gm(ROW)


def test_a_value_that_the_program_counts_up_is_refused_later() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.count = nn.Buffer(torch.tensor(0))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count.add_(1)
            return x * self.count.item()

    net = Counter()
    gm = fx.trace(net, ROW)
    assert net.count == 0
    assert torch.equal(gm(ROW), ROW)
    with pytest.raises(fx.GuardError, match="other values"):
        gm(ROW)


def test_a_value_that_is_written_by_way_of_data_is_compared_each_time() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.count = nn.Buffer(torch.tensor(2.0))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            before = self.count.item()
            self.count.data.mul_(2)
            return x * before

    gm = fx.trace(Scaled(), ROW)
    assert torch.equal(gm(ROW), ROW * 2)
    with pytest.raises(fx.GuardError, match="other values"):
        gm(ROW)


def test_what_else_decides_a_constant_is_a_guard() -> None:
    gm = fx.trace(lambda x: x * torch.linspace(0, 1, 4)[1].item(), ROW)
    refused = pytest.raises(fx.GuardError, match="autocast")
    with refused, torch.autocast("cpu"):
        gm(ROW)
    torch.set_default_dtype(torch.float64)
    try:
        with pytest.raises(fx.GuardError, match="default_dtype"):
            gm(ROW)
    finally:
        torch.set_default_dtype(torch.float32)
    gm = fx.trace(lambda x: x * torch.tensor([1, 2]).tolist()[1], ROW)
    with torch.autocast("cpu"):
        assert torch.equal(gm(ROW), ROW * 2)


def test_distributions() -> None:
    def normal(x: torch.Tensor) -> AnyValue:
        one = NORMAL(x, x.exp(), validate_args=False)
        return one.rsample(), one.log_prob(x), one.entropy()

    def categorical(x: torch.Tensor) -> AnyValue:
        one = CATEGORICAL(logits=x, validate_args=False)
        drawn = one.sample()
        return drawn, one.log_prob(drawn), one.entropy()

    for program in (normal, categorical):
        gm = fx.trace(program, torch.randn(3, 4))
        for shape in ((3, 4), (1, 4), (5, 2), (1, 1)):
            assert is_right(program, gm, torch.randn(shape))
    with pytest.raises(fx.TraceError, match="validate_args=False"):
        fx.trace(lambda x: NORMAL(x, 1.0, validate_args=True).sample(), ROW)


def test_a_class_is_no_leaf() -> None:
    with pytest.raises(TypeError, match=r"isinstance\(m, Linear\)"):
        fx.trace(nn.Sequential(nn.Linear(2, 2)), ROW[:2], leaves=[nn.Linear])


@torch.library.custom_op("fx_tests::nms", mutates_args=())
def nms(boxes: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    """The boxes that no better one covers, by their left edges."""
    kept: list[int] = []
    for place in scores.argsort(descending=True).tolist():
        if all(abs(boxes[place, 0] - boxes[i, 0]) > 0.2 for i in kept):
            kept.append(place)
    return torch.tensor(kept, dtype=torch.long)


@nms.register_fake
def _(boxes: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    """As many as there are."""
    return boxes.new_empty(
        torch.library.get_ctx().new_dynamic_size(), dtype=torch.long
    )


def test_boxes_are_chosen() -> None:
    def program(boxes: torch.Tensor, scores: torch.Tensor) -> AnyValue:
        sure = scores > 0.4
        boxes, scores = boxes[sure].clamp(0, 0.9), scores[sure]
        wide = torch.where(boxes[:, 0] > 0.1)[0]
        boxes, scores = boxes[wide], scores[wide]
        kept = TORCH.ops.fx_tests.nms(boxes, scores)[:5]
        return boxes[kept], scores[kept], kept.shape[0]

    gm = fx.trace(program, torch.rand(9, 4), torch.rand(9))
    for count in (9, 1, 2, 20):
        given = torch.rand(count, 4), torch.rand(count)
        assert is_right(program, gm, *given)
        assert is_right(program, gm, given[0], torch.zeros(count))


def test_the_value_of_a_tensor_made_of_a_size_is_not_known() -> None:
    def program(x: AnyValue) -> AnyValue:
        few = x[: torch.as_tensor(0.75 * x.shape[0]).long()]
        return x * 2 if few.shape[0] > 3 else x * 3

    with pytest.raises(fx.TraceError, match="depends on the values of"):
        fx.trace(program, ROW, check=False)


def test_an_input_and_what_is_chosen_together_are_not_empty() -> None:
    def program(x: AnyValue) -> AnyValue:
        both = torch.cat((x, x[x > 0]))
        return x if both.numel() == 0 else both * 2

    gm = fx.trace(program, ROW)
    assert all(is_right(program, gm, row) for row in ROWS)
