"""Questions about views, storage and ATen, before stage 08."""

from __future__ import annotations

import torch

from fx.experimental.proxy_tensor import make_fx


def written_through() -> None:
    a = torch.zeros(2, 3)
    row = a[0]
    row.add_(1)
    print(a.sum().item(), row.data_ptr() == a.data_ptr())


def another_order() -> None:
    a = torch.zeros(2, 3)
    flat, turned = a.reshape(6), a.t().reshape(6)
    flat[0] = 1
    turned[0] = 2
    print(a[0, 0].item(), a.t().stride())


def too_early() -> None:
    y = torch.ones(2) * 2
    first = y[:1]
    z = y.add_(1)
    print((first * z[:1]).item())


def below_python() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        y = x.reshape(4).clone()
        y += 1
        return y

    gm = make_fx(program)(torch.ones(2, 2))
    for node in gm.graph.nodes:
        if node.op == "call_function":
            print(node.target)


def schemas() -> None:
    for operator in (
        torch.ops.aten.add.Tensor,
        torch.ops.aten.add_.Tensor,
        torch.ops.aten.t.default,
        torch.ops.aten.reshape.default,
    ):
        print(operator._schema)
