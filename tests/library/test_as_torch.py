"""Passes: unchanged programs that run with fx for torch.fx."""

from __future__ import annotations

from pathlib import Path

import pytest

from fx import as_torch
from tests.process import printed, python

ROOT = Path(__file__).parents[2]

LIBRARY = '''
"""A library that uses torch.fx in every form that Python has."""

from dataclasses import dataclass

import torch
import torch.fx
import torch.fx.passes.shape_prop
import torch.fx as alias
import torch as T
import torch.fx.node as node_alias
from torch import fx, nn as networks
from torch.fx import Tracer, symbolic_trace as trace
from torch.fx.passes import annotate_getitem_nodes as lacking
from torch.fx.experimental import symbolic_shapes

@torch.fx.wrap
def leaf(x):
    return x if x.sum() > 0 else -x

@dataclass
class Noted:
    count: int

def found():
    return {
        "attribute": torch.fx.Node,
        "alias": alias.Graph,
        "alias of torch": T.fx.Graph,
        "module alias": node_alias.Node,
        "from torch": fx.Proxy,
        "from torch.fx": Tracer,
        "function": trace,
        "submodule": torch.fx.passes.shape_prop.ShapeProp,
        "lacking": lacking.annotate_getitem_nodes,
    }

def shared():
    return symbolic_shapes.ShapeEnv, torch.fx.experimental.symbolic_shapes

def other():
    return networks.ReLU, Noted.__annotations__["count"]
'''

PROGRAM = '''
import operator
import sys
import typing
import torch
import client
from torch.fx.passes.annotate_getitem_nodes import annotate_getitem_nodes

class Model(torch.nn.Module):
    """Dead code: a write that is seen later."""
    def forward(self, x):
        y = client.leaf(x)
        y.add_(1)
        return y

for what, value in client.found().items():
    print(what, value.__module__.partition(".")[0])
print(*client.other(), [s.__module__ if hasattr(s, "__module__")
                        else s.__name__ for s in client.shared()])
gm = client.trace(Model())
gm.graph.eliminate_dead_code()
gm.recompile()
print(gm.graph)
print(gm(torch.ones(2)))
(values,) = gm.graph.find_nodes(op="placeholder")
values.type = typing.Tuple[int, ...]
with gm.graph.inserting_after(values):
    got = gm.graph.call_function(operator.getitem, (values, 0))
annotate_getitem_nodes(gm.graph)
print(got.type)
print(__name__, sys.argv[1:], "client" in sys.modules)
'''


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, beside its library."""
    folder = tmp_path_factory.mktemp("program")
    (folder / "client.py").write_text(LIBRARY)
    path = folder / "program.py"
    path.write_text(PROGRAM)
    return path


def _plain(program: Path, *arguments: str) -> str:
    """What the program prints under torch.fx."""
    return printed(str(program), *arguments, env={"PYTHONPATH": str(ROOT)})


def test_a_program_does_the_same_with_fx(program: Path) -> None:
    """Also where Python has the library's code in its cache."""
    theirs = _plain(program, "a", "b")
    finished = python("-m", "fx.as_torch", str(program), "a", "b")
    assert not finished.returncode, finished.stderr
    ours = finished.stdout
    heads = [line.split()[-1] for line in theirs.splitlines()[:9]]
    assert heads == ["torch"] * 9
    heads = [line.split()[-1] for line in ours.splitlines()[:9]]
    assert heads == ["fx"] * 9
    assert ours.splitlines()[9:] == theirs.splitlines()[9:]
    assert "add_" not in ours  # torch.fx's rule: what it returns is wrong


def test_dynamo_must_not_be_loaded() -> None:
    code = "import torch._dynamo, fx.as_torch; fx.as_torch.install()"
    assert "RuntimeError: torch._dynamo is loaded already" in (
        python("-c", code).stderr
    )


def test_without_a_program_it_says_what_it_takes() -> None:
    with pytest.raises(SystemExit, match=r"usage: .* program\.py"):
        as_torch.main([])
