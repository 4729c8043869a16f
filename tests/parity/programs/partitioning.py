"""Pieces of a graph for a back end."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from tests.parity.harness import Lib, Seen, error, program
from tests.parity.programs._subjects import AnyValue, passes


def partitioner(
    lib: Lib,
    root: AnyValue,
    supports: Callable[[AnyValue], bool],
    **options: AnyValue,
) -> AnyValue:
    """A partitioner of a traced program."""
    support = passes(lib, "operator_support").create_op_support
    return passes(lib, "infra.partitioner").CapabilityBasedPartitioner(
        lib.symbolic_trace(root), support(lambda _, n: supports(n)), **options
    )


def is_function(node: AnyValue) -> bool:
    """Whether a node calls a function."""
    return bool(node.op == "call_function")


@program()
def two_pieces(lib: Lib) -> Seen:
    def f(x, y):  # type: ignore[no-untyped-def]
        a = torch.exp(x) * y
        return torch.neg(a.relu()) + a, (y + 1) * 2

    gm = partitioner(lib, f, is_function).partition_and_fuse()
    return gm.code, gm.fused_0.code, gm.fused_1.code


@program(newest=True)
def a_piece_takes_the_inputs_in_their_order(lib: Lib) -> Seen:
    def f(x, y, z):  # type: ignore[no-untyped-def]
        return torch.exp(torch.sub(z, x)) * y

    def g(x, y):  # type: ignore[no-untyped-def]
        return torch.add(y, x.relu()) * x

    made = [partitioner(lib, one, is_function) for one in (f, g)]
    whole, mixed = (each.partition_and_fuse() for each in made)
    return whole.code, whole.fused_0.code, mixed.code, mixed.fused_0.code


@program()
def a_piece_that_would_need_itself(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: torch.exp(x) + torch.exp(x).relu())
    nodes = [node for node in gm.graph.nodes if is_function(node)]
    fuse = passes(lib, "utils.fuser_utils").fuse_by_partitions
    return error(lambda: fuse(gm, [dict.fromkeys(nodes)]), chars=42)


@program(differs="partition-effects", ours=[2.0, 20.0])
def a_write_that_is_not_in_the_piece(lib: Lib) -> Seen:
    def f(x: AnyValue) -> AnyValue:
        y = torch.add(x, 1)
        before = torch.mul(y, 2)
        y.add_(3)
        return torch.stack([before, torch.mul(y, 5)])

    gm = partitioner(lib, f, is_function).partition_and_fuse()
    return gm(torch.zeros(())).tolist()


@program(differs="partition-modules", ours=[["0", "1"]])
def pieces_of_modules(lib: Lib) -> Seen:
    root = nn.Sequential(nn.Linear(1, 1), nn.ReLU())
    found = partitioner(lib, root, lambda node: node.op == "call_module")
    return [[n.target for n in p.nodes] for p in found.propose_partitions()]


@program(differs="partition-signature", ours=["exp"])
def all_that_a_table_supports(lib: Lib) -> Seen:
    table = passes(lib, "operator_support").OperatorSupport({"torch.exp": None})
    found = passes(lib, "infra.partitioner").CapabilityBasedPartitioner(
        lib.symbolic_trace(lambda x: torch.exp(x)), table, True
    )
    return [n.name for part in found.propose_partitions() for n in part.nodes]


@program(differs="fuse-names", ours=[2.0])
def fused_twice(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: torch.add(torch.add(x, 1), x + 1))
    fuse = passes(lib, "utils.fuser_utils").fuse_by_partitions
    for name in ("add_2", "add"):
        node = next(n for n in gm.graph.nodes if n.name == name)
        fuse(gm, [{node: None}])
    try:
        return gm(torch.zeros(1)).tolist()
    except TypeError:
        return "TypeError"
