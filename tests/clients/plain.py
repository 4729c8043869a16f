"""Recurrent, tabular and policy networks, as one would write them."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import rnn

from fx.use_def.values import AnyValue


class Program(nn.Module):
    """A function as a module, with what it calls."""

    def __init__(
        self, function: Callable[..., AnyValue], *modules: nn.Module
    ) -> None:
        super().__init__()
        self.function, self.parts = function, nn.ModuleList(modules)

    def forward(self, *args: AnyValue) -> AnyValue:
        """What the function gives for its modules and inputs."""
        return self.function(*self.parts, *args)


# --- recurrent --------------------------------------------------------------


def last_of(layer: nn.Module, x: AnyValue) -> AnyValue:
    """The last step, and the state, of a recurrent layer."""
    y, state = layer(x)
    return y[:, -1], state


def packed(layer: nn.Module, x: AnyValue, lengths: AnyValue) -> AnyValue:
    """What a layer gives for sequences of several lengths."""
    y, _ = layer(
        rnn.pack_padded_sequence(
            x, lengths, batch_first=True, enforce_sorted=False
        )
    )
    return rnn.pad_packed_sequence(y, batch_first=True)[0]


def stepped(cell: nn.Module, x: AnyValue) -> AnyValue:
    """A cell in a loop over the steps."""
    h = c = x.new_zeros(x.shape[0], 8)
    for step in x.unbind(1):
        h, c = cell(step, (h, c))
    return h


def attended(
    encoder: nn.Module, decoder: nn.Module, x: AnyValue, y: AnyValue
) -> AnyValue:
    """An encoder and a decoder that looks back at each of its steps."""
    seen, state = encoder(x)
    y, _ = decoder(y, state)
    weights = torch.softmax(y @ seen.transpose(1, 2) / 8**0.5, -1)
    return torch.cat((y, weights @ seen), -1)


# --- tabular ----------------------------------------------------------------


class Tabular(nn.Module):
    """Columns of categories and of numbers, as tokens that layers take."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(n, 8) for n in (3, 5, 7))
        self.scale = nn.Parameter(torch.rand(4, 8))
        self.norm, self.mixer = nn.BatchNorm1d(4), nn.Sequential(*layers)

    def forward(self, categories: AnyValue, numbers: AnyValue) -> AnyValue:
        """What the layers give for all columns."""
        columns = zip(self.tables, categories.unbind(1), strict=True)
        x = torch.stack([table(column) for table, column in columns], 1)
        x = torch.cat((x, self.norm(numbers)[..., None] * self.scale), 1)
        return self.mixer(x)


def factors(x: AnyValue) -> AnyValue:
    """All products of two columns, as a factorisation machine adds them."""
    return (x.sum(1) ** 2 - (x**2).sum(1)).sum(1) / 2


def sparse(layer: nn.Module, x: AnyValue) -> AnyValue:
    """A choice of columns by sparsemax, as TabNet makes it."""
    z = layer(x)
    ordered, _ = torch.sort(z, -1, descending=True)
    total = ordered.cumsum(-1) - 1
    count = (ordered * torch.arange(1, z.shape[-1] + 1) > total).sum(-1, True)
    return x * (z - total.gather(-1, count - 1) / count).clamp(min=0)


# --- policies ---------------------------------------------------------------


def normal(net: nn.Module, x: AnyValue) -> AnyValue:
    """An action of a normal distribution squashed by tanh, as SAC's."""
    mean, scale = net(x).chunk(2, -1)
    policy: AnyValue = torch.distributions.Normal(
        mean, F.softplus(scale), validate_args=False
    )
    action = policy.rsample()
    return action.tanh(), policy.log_prob(action).sum(-1)


def categorical(net: nn.Module, x: AnyValue) -> AnyValue:
    """An action of a few, and how likely it was, as PPO's."""
    policy: AnyValue = torch.distributions.Categorical(
        logits=net(x), validate_args=False
    )
    action = policy.sample()
    return action, policy.log_prob(action), policy.entropy()


def masked(net: nn.Module, x: AnyValue, allowed: AnyValue) -> AnyValue:
    """The best of the actions that are allowed."""
    return net(x).masked_fill(allowed == 0, -torch.inf).max(-1)


def duel(value: nn.Module, gain: nn.Module, x: AnyValue) -> AnyValue:
    """The values of actions, as a duelling network computes them."""
    gains = gain(x)
    return value(x) + gains - gains.mean(-1, keepdim=True)


def advantages(rewards: AnyValue, values: AnyValue) -> AnyValue:
    """Generalised advantages, from the last step to the first."""
    deltas = rewards[:, :-1] + 0.99 * values[:, 1:] - values[:, :-1]
    last, found = torch.zeros_like(deltas[:, 0]), []
    for step in reversed(range(deltas.shape[1])):
        last = deltas[:, step] + 0.95 * last
        found.append(last)
    return torch.stack(found[::-1], 1)


def experts(
    router: nn.Module, one: nn.Module, two: nn.Module, x: AnyValue
) -> AnyValue:
    """Each token by the expert that its router prefers."""
    weights, chosen = router(x).softmax(-1).max(-1)
    y = torch.zeros_like(x)
    for at, expert in enumerate((one, two)):
        where = torch.where(chosen == at)
        y[where] = expert(x[where]) * weights[where][..., None]
    return y
