"""A few lines for each difference from torch.fx that one meets often.

What is below the comment with a row's id is shown in that row.
"""

from __future__ import annotations

import copy
import pickle
import tempfile
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

import torch
from torch import nn

import fx
from fx.subgraph_rewriter import replace_pattern_with_filters
from fx.use_def.lint import problems

AnyValue: TypeAlias = Any
"""What a program computes with: anything."""

relu = torch.relu


@contextmanager
def raises(*kinds: type[Exception]) -> Iterator[None]:
    """Expect an error of one of the kinds.

    Raises:
        AssertionError: there was none.
    """
    with suppress(*kinds):
        yield
        raise AssertionError(f"no {kinds}")


def main() -> None:
    """Run all."""
    warnings.simplefilter("ignore")
    tracing()
    graphs()
    modules()
    rewriting()


def tracing() -> None:
    """Trace programs."""
    model, x = nn.Sequential(nn.Linear(2, 2)), torch.ones(2, 2)

    # tracing-is-isolated
    with ThreadPoolExecutor() as pool:
        pool.submit(fx.symbolic_trace, model)
        model(x)  # runs meanwhile, and is not recorded

    # root-calls-warned-of
    model.register_forward_hook(lambda *_: print("not recorded"))
    fx.symbolic_trace(model)  # warns of the hook

    # trace-errors-say-where
    with raises(fx.TraceError):
        fx.symbolic_trace(lambda x: x if x.sum() > 0 else -x)

    # concrete-args-checked
    with raises(TypeError):
        fx.symbolic_trace(model, concrete_args={"inptu": None})

    # structure-of-nested-inputs
    pair = {"xs": [fx.PH, fx.PH]}
    gm = fx.symbolic_trace(lambda xs: xs[0] + xs[1], concrete_args=pair)
    with raises(RuntimeError):
        gm([x, x, x])

    # keyword-only-behind-args
    def f(x: AnyValue, *rest: AnyValue, scale: float = 1.0) -> AnyValue:
        return x * scale + rest[0]

    assert fx.symbolic_trace(f)(2, 3, scale=10) == 23

    # stack-traces-are-the-users
    tracer = fx.Tracer()
    tracer.record_stack_traces = True
    print([node.stack_trace for node in tracer.trace(lambda x: x + 1).nodes])

    # writes-beside-proxies
    total = torch.zeros(2, 2)
    fx.symbolic_trace(lambda x: total.add_(x))  # warns

    # compared-by-is
    fx.symbolic_trace(lambda x, m: x if m is None else x * m)  # warns of m

    # asked-what-it-is
    fx.symbolic_trace(lambda x: x if isinstance(x, torch.Tensor) else None)


def graphs() -> None:
    """Edit and check graphs."""
    gm = fx.symbolic_trace(lambda x: torch.relu(x) + 1)
    _, node, *_ = gm.graph.nodes
    other = fx.symbolic_trace(lambda x: torch.neg(x))

    # args-checked
    with raises(RuntimeError, AssertionError):
        node.args = (next(iter(other.graph.nodes)),)  # of another graph

    # names-validated
    with raises(ValueError):
        gm.graph.placeholder("not a name")

    # print-tabular-needs-nothing
    gm.graph.print_tabular()

    # lint-is-a-verifier
    for problem in problems(gm.graph):  # all of them
        print(problem.message)

    # effects-known
    gm = fx.symbolic_trace(lambda x: (x.add_(1), x)[1])
    gm.graph.eliminate_dead_code()
    assert "add_" in gm.code

    # dce-unknown
    gm.graph.eliminate_dead_code(unknown="keep")

    # hygienic-code
    gm = fx.symbolic_trace(lambda torch: relu(torch))
    assert gm(-torch.ones(2)).sum() == 0  # the input hides nothing

    # wrap-line
    assert "wrap(" in fx.symbolic_trace(lambda x: wrapped(x)).code

    # lambda-names
    print(gm.graph.call_function(lambda v: v * 100).name)  # _lambda_

    # no-output
    graph = fx.Graph()
    graph.placeholder("x")
    with raises(RuntimeError):
        fx.GraphModule({}, graph)


@fx.wrap
def wrapped(x: torch.Tensor) -> torch.Tensor:
    """One node."""
    return x


def modules() -> None:
    """Keep and run modules."""
    gm, x = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2))), torch.ones(2, 2)

    # recompile-unchanged
    before = type(gm).forward
    gm.recompile()
    assert type(gm).forward is before

    # to-folder-imports
    gm = fx.symbolic_trace(lambda x: wrapped(x))
    with tempfile.TemporaryDirectory() as folder:
        gm.to_folder(folder, "Saved")  # imports what it calls

    # pickle-keeps-the-graph
    next(iter(gm.graph.nodes)).meta["note"] = "kept"
    again = pickle.loads(pickle.dumps(gm))
    assert next(iter(again.graph.nodes)).meta["note"] == "kept"

    # copies-keep-attributes
    vars(gm)["version"] = 3
    assert copy.copy(gm).version == 3

    # interpreter-arity
    with raises(RuntimeError):
        fx.Interpreter(gm).run(x, x)

    # from-node-pairs
    new = fx.Transformer(gm).transform()
    print([node.meta.get("from_node") for node in new.graph.nodes])

    # transformer-keeps
    assert [*map(str, new.graph.nodes)] == [*map(str, gm.graph.nodes)]


def rewriting() -> None:
    """Replace patterns."""
    gm = fx.symbolic_trace(lambda x: torch.relu(x))

    # rewrite-unused-input
    fx.replace_pattern(gm, lambda x, y: relu(x), lambda x, y: torch.neg(x))

    # pattern-is-input
    with raises(ValueError):
        fx.replace_pattern(gm, lambda x: x, lambda x: x + 1)

    # rewrite-all-or-nothing
    with raises(ValueError):  # from the callback; the graph stays as it was
        replace_pattern_with_filters(
            gm, lambda x: torch.neg(x), replacement_callback=fails
        )


def fails(*_: object) -> fx.Graph:
    """A callback.

    Raises:
        ValueError: always.
    """
    raise ValueError
