"""Small passes that back ends are built with."""

from __future__ import annotations

import torch
from torch import nn

from tests.parity.harness import Lib, Seen, error, names, program
from tests.parity.programs._subjects import AnyValue, passes


def by_tags(
    lib: Lib, root: AnyValue, late: set[str], tags: list[str]
) -> AnyValue:
    """A traced program, cut in two: some nodes are in the part "late"."""
    gm = lib.symbolic_trace(root)
    for node in gm.graph.nodes:
        node.tag = "late" if node.name in late else "early"
    return passes(lib, "split_utils").split_by_tags(gm, tags)


class Weighed(nn.Module):
    """Fetches a weight in two parts."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))

    def forward(self, x):  # type: ignore[no-untyped-def]
        return {"both": torch.relu(x) * self.w}, (x * self.w).neg()


@program(
    differs="split-effects", ours="AssertionError: Component early order mu"
)
def a_write_moved_by_tags(lib: Lib) -> Seen:
    def f(x: AnyValue) -> AnyValue:
        y = x + 1
        before = y * 2
        y.add_(3)
        return before, y * 5

    return error(lambda: by_tags(lib, f, {"mul"}, ["early", "late"]), chars=24)


@program(differs="split-tags-defaults", ours=6)
def a_default_after_tags(lib: Lib) -> Seen:
    def f(x: AnyValue, k: AnyValue = 2, *more: AnyValue) -> AnyValue:
        return x * k, more

    try:
        return by_tags(lib, f, set(), ["early"])(3)[0]
    except TypeError:
        return "TypeError"


@program(differs="compare-graphs", ours=[True, False, False])
def graphs_compared(lib: Lib) -> Seen:
    left = lib.symbolic_trace(lambda x, y: x - y).graph
    compare = passes(lib, "utils.common").compare_graphs
    return [
        compare(left, lib.symbolic_trace(other).graph)
        for other in (
            lambda a, b: a - b,
            lambda a, b: b - a,
            lambda a, b: (a.add_(1), a - b)[1],
        )
    ]


@program(differs="legalize-stable", ours=["clone", "neg", "exp", "mul", "add_"])
def nodes_made_legal(lib: Lib) -> Seen:
    def f(x: AnyValue) -> AnyValue:
        y = x.clone()
        read = y * x.neg().exp()
        y.add_(3)
        return read, y

    gm = lib.symbolic_trace(f)
    passes(lib, "tools_common").legalize_graph(gm)
    return names(gm.graph.nodes)[1:-1]


@program(differs="replaced-targets", ours=("int", 1))
def what_a_replaced_call_keeps(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: torch.relu(x))
    for node in gm.graph.nodes:
        if node.op == "call_function":
            node.type, node.meta["note"] = int, 1
    replace = passes(lib, "graph_manipulation").replace_target_nodes_with
    replace(gm, "call_function", torch.relu, "call_function", torch.neg)
    (node,) = (n for n in gm.graph.nodes if n.op == "call_function")
    return getattr(node.type, "__name__", None), node.meta.get("note")


@program(differs="size-of-several", ours=[[24, 24], [4, 52]])
def sizes_of_several_and_of_weights(lib: Lib) -> Seen:
    manipulation = passes(lib, "graph_manipulation")
    several = lib.symbolic_trace(lambda x: torch.max(x, 1))
    linear = lib.symbolic_trace(nn.Sequential(nn.Linear(2, 2).half()))
    x = torch.zeros(1, 2, dtype=torch.half)
    passes(lib, "shape_prop").ShapeProp(linear).propagate(x)
    linear.double()
    sizes: list[object] = []
    for gm, args in ((several, [torch.zeros(2, 3)]), (linear, None)):
        try:
            manipulation.get_size_of_all_nodes(gm, args)
        except AttributeError:
            sizes.append("AttributeError")
            continue
        sizes.append([*[*gm.graph.nodes][1].size_bytes])
    return sizes
