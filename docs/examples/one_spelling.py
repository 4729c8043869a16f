"""One call in several forms, and its canonical form."""

from __future__ import annotations

import torch

from fx.graph import Graph
from fx.operator_schemas import get_signature_for_torch_op, normalize_function
from fx.use_def.values import Argument


def main() -> None:
    """Print the overloads of add, and two forms of a call of one."""
    signatures = get_signature_for_torch_op(torch.add) or []
    print(f"torch.add has {len(signatures)} overloads, the first three are")
    for signature in signatures[:3]:
        print(f"  {signature}")

    graph = Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    add = torch.ops.aten.add.Tensor
    no_kwargs: dict[str, Argument] = {}
    for args, kwargs in (((x, y), no_kwargs), ((x,), {"other": y})):
        print(f"\ngiven         {args} {kwargs}")
        for text, flag in (("normalized", False), ("by keyword", True)):
            pair = normalize_function(
                add, args, kwargs, normalize_to_only_use_kwargs=flag
            )
            if pair is not None:
                print(f"{text:<13} {pair.args} {pair.kwargs}")

    print("\ntorch.add(x, y) without the types of x and y:")
    try:
        normalize_function(torch.add, (x, y))
    except RuntimeError as error:
        print(str(error).partition("!")[0])
    types = (torch.Tensor, torch.Tensor)
    print("with them:", *normalize_function(torch.add, (x, y), {}, types) or ())


if __name__ == "__main__":
    main()
