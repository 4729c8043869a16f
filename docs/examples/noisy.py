"""A program with a loop, random numbers and a branch."""

import torch


def noise(x: torch.Tensor) -> torch.Tensor:
    for _ in range(2):
        x = x + torch.rand(3)
    return x


def program(x: torch.Tensor) -> torch.Tensor:
    x = noise(x)
    if x.sum() > 0:
        return torch.relu(x)
    return -x
