"""Questions of stage 04: what does this print?"""

from __future__ import annotations

import math
import threading

import torch
from torch import nn

from fx.tracing.patching import Patches
from fx.tracing.tracer import Tracer
from fx.use_def.values import AnyValue


def another_thread() -> None:
    class Elsewhere(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def work(self) -> None:
            result = self.linear(torch.ones(2, 4))
            print(type(result).__name__)

        def forward(self, x: AnyValue) -> AnyValue:
            thread = threading.Thread(target=self.work)
            thread.start()
            thread.join()
            return self.linear(x)

    print(*Tracer().trace(Elsewhere()).nodes)


def put_back() -> None:
    def shout(original: AnyValue) -> AnyValue:
        return lambda: original() + "!"

    names: AnyValue = {"a": lambda: "a", "b": lambda: "b"}
    patches = Patches()
    patches.patch(names, ["a"], shout)
    patches.patch(names, ["a", "b"], shout)
    print(names["a"](), names["b"]())
    names["b"] = lambda: "other"
    patches._undo()
    print(names["a"](), names["b"]())


def two_ways_to_call() -> None:
    class Ways(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x: AnyValue) -> AnyValue:
            y = self.linear(x)
            return self.linear.forward(y)

    print(*Tracer().trace(Ways()).nodes)


def read_and_passed() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(4))
            self.both = [self.scale, self.scale]

        def forward(self, x: AnyValue) -> AnyValue:
            y = x * self.scale * self.scale
            return torch.cat([y, *self.both])

    print(*Tracer().trace(Scaled()).nodes)


def kinds_of_call() -> None:
    def half(x: AnyValue) -> AnyValue:
        return x / 2

    def root(x: AnyValue) -> AnyValue:
        noise = torch.rand(1)
        return half(x) + math.sqrt(16) + math.sqrt(x) + noise

    for node in Tracer().trace(root).nodes:
        print(node.name, node.args)
