"""What an answer to "break it" is tried on; imports the fx under test.

Each function is given a learner's answer, does something with it, and returns
what came out wrong, or "" if nothing did.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import nn

from fx._symbolic_trace import symbolic_trace
from fx.graph import Graph
from fx.interpreter import Interpreter
from fx.linked_list.namespace import Namespace
from fx.passes.reinplace import reinplace
from fx.subgraph_rewriter import replace_pattern
from fx.use_def.values import AnyValue

Program = Callable[..., AnyValue] | nn.Module


def names(candidates: Sequence[str]) -> str:
    """Whether each name that is asked for is another one."""
    space = Namespace()
    found = [space.create_name(candidate) for candidate in candidates]
    twice = sorted({name for name in found if found.count(name) > 1})
    return f"create_name gave {twice} twice: {found}" if twice else ""


def lint(graph: Graph) -> str:
    """Whether lint refuses a graph."""
    try:
        graph.lint()
    except RuntimeError:
        return ""
    return "lint accepts the graph"


def traced(answer: tuple[Program, Sequence[torch.Tensor]]) -> str:
    """Whether a program does the same when it is traced."""
    program, inputs = answer
    return _compared(symbolic_trace(program), program, inputs)


def interpreted(answer: tuple[Program, Sequence[torch.Tensor]]) -> str:
    """Whether a program does the same when it is run node by node."""
    program, inputs = answer
    run = Interpreter(symbolic_trace(program)).run
    return _compared(run, program, inputs)


def rewritten(
    answer: tuple[Program, Program, Program, Sequence[torch.Tensor]],
) -> str:
    """Whether a program does the same after a replacement that does."""
    program, pattern, replacement, inputs = answer
    gm = symbolic_trace(program)
    replace_pattern(gm, pattern, replacement)
    gm.graph.lint()
    return _compared(gm, program, inputs)


def reinplaced(answer: tuple[Program, Sequence[torch.Tensor]]) -> str:
    """Whether a program does the same when it reuses memory."""
    program, inputs = answer
    gm = reinplace(symbolic_trace(program), *[one.clone() for one in inputs])
    return _compared(gm, program, inputs)


def _compared(
    ours: Program, program: Program, inputs: Sequence[torch.Tensor]
) -> str:
    """What two programs do differently."""
    expected = program(*[one.clone() for one in inputs])
    result = ours(*[one.clone() for one in inputs])
    flat, flat_expected = _leaves(result), _leaves(expected)
    if len(flat) == len(flat_expected) and all(
        torch.equal(torch.as_tensor(one), torch.as_tensor(other))
        for one, other in zip(flat, flat_expected, strict=True)
    ):
        return ""
    return f"the program gives {expected}, and fx makes it {result}"


def _leaves(value: AnyValue) -> list[AnyValue]:
    """What is in a result."""
    if isinstance(value, tuple | list):
        return [leaf for one in value for leaf in _leaves(one)]
    return [value]
