"""Stage 08, step by step: which calls of Residual can be done in place."""

from __future__ import annotations

import torch

from docs.machinery.film import Film
from fx.experimental.proxy_tensor import make_fx
from fx.passes.reinplace import reinplace, reinplace_report
from stages.residual import Residual


def film() -> Film:
    """Each verdict of the pass, then the graph that it makes."""
    torch.manual_seed(0)
    steps = Film(rows="ATen operators, and what the pass says of each")
    model, x = Residual(), torch.randn(2, 4)
    with torch.no_grad():
        gm = make_fx(torch.func.functionalize(model))(x)
        report = reinplace_report(gm, x)
        verdicts = {v.node: v for v in (*report.done, *report.kept)}
        notes: dict[str, str] = {}
        steps.graph(
            "Captured: t is a view, and all other operators make new tensors.",
            gm.graph,
        )
        for node in gm.graph.nodes:
            if node.name in verdicts:
                verdict = verdicts[node.name]
                notes[node.name] = f"({verdict.rule}) {verdict.reason}"
                can = "can" if verdict in report.done else "cannot"
                say = f"{can} write into its first argument, {node.args[0]}"
                steps.graph(f"{node.name} {say}.", gm.graph, notes=notes)
        reinplace(gm, x)
    steps.graph(
        "Rewritten: add and relu write into the memory of addmm, and the "
        "nodes that used their values use addmm.",
        gm.graph,
        notes=notes,
    )
    return steps
