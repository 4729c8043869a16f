"""Passes: unchanged programs that run with fx for torch.fx."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import torch
import torch.fx
from torch import nn

import fx
from fx import as_torch
from fx.use_def.values import AnyValue
from tests.process import printed, python

X = torch.ones(1, 2)
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


DOORS = '''
import copy
import functools
import torch
import torch.fx
from functorch.compile import (
    aot_function, aot_module_simplified, make_boxed_compiler, make_boxed_func
)
from torch import nn
from torch._dynamo import lookup_backend, optimize, register_backend, reset
from torch._dynamo.backends.common import aot_autograd

def ours(gm):
    return isinstance(gm, torch.fx.GraphModule) and all(
        isinstance(node, torch.fx.Node) for node in gm.graph.nodes
    )

def tried(what, function, *arguments):
    """Print what comes out, or the first line of what goes wrong."""
    try:
        value = function(*arguments)
    except Exception as error:
        value = type(error).__name__, str(error).partition("\\n")[0]
    print(what, value)

class Net(nn.Module):
    """Has an input by keyword, a constant, and a buffer that is not used."""
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear, self.norm = nn.Linear(3, 3), nn.BatchNorm1d(3)
        self.const = torch.arange(3.0)
        self.unused = nn.Buffer(torch.ones(2))
    def forward(self, x, *, scale):
        y = self.norm(self.linear(x)) + self.const
        return {"y": torch.relu(y) * scale["a"], "z": (y.sum(), x)}

class Branches(nn.Module):
    def forward(self, x):
        sin, cos = lambda x: x.sin() + 1, lambda x: x.cos() - 1
        return torch.cond(x.sum() > 0, sin, cos, (x,))

def change(gm):
    for node in gm.graph.nodes:
        if node.target is torch.relu:
            node.target = torch.tanh
        elif node.target is torch.ops.aten.relu.default:
            node.target = torch.ops.aten.sigmoid.default
    gm.recompile()
    return gm

x, scale = torch.arange(6.0).reshape(2, 3), {"a": torch.ones(3)}
dynamic = {"x": {0: torch.export.Dim("n", min=2, max=9)}, "scale": {"a": None}}
program = torch.export.export(
    Net().eval(), (x,), {"scale": scale}, dynamic_shapes=dynamic
)
for check in True, False:
    gm = program.module(check_guards=check)
    print(ours(gm), sorted(gm.state_dict()))
    print([name for name, _ in gm.named_children()])
    tried("called", lambda: gm(x, scale=scale))
    tried("trained", gm.train)
    tried("evaluated", gm.eval)
    tried("too long", lambda: gm(torch.ones(12, 3), scale=scale))
    tried("too wide", lambda: gm(torch.ones(2, 4), scale=scale))
    tried("copied", lambda: copy.deepcopy(gm)(x, scale=scale))
    tried("changed", lambda: change(gm)(x, scale=scale))
    new = torch.fx.GraphModule(gm, gm.graph)
    tried("made anew", lambda: new(x, scale=scale))
    tried("run", lambda: torch.fx.Interpreter(gm).run(x, scale["a"]))
    again = lambda: torch.export.export(gm, (x,), {"scale": scale}).module()
    tried("exported", lambda: again()(x, scale=scale))
tried("decomposed", lambda: ours(program.run_decompositions({}).module()))
gm = torch.export.export(Branches(), (x,)).module()
print(ours(gm), [ours(c) for n, c in gm.named_children() if n != "_guards_fn"])
tried("branch", lambda: (gm(x), gm(-x)))

seen = []
def mine(gm, inputs, **options):
    children = [ours(child) for _, child in gm.named_children()]
    seen.append((ours(gm), children, *options))
    return change(gm).forward

register_backend(mine, name="mine")

class Backend:
    def __call__(self, gm, inputs):
        return mine(gm, inputs)
    def method(self, gm, inputs):
        return mine(gm, inputs)

class WithoutHash(Backend):
    __hash__ = None

def unboxed(gm, inputs):
    seen.append(("aot", ours(gm)))
    run = torch.fx.Interpreter(gm).run
    return functools.partial(run, enable_io_processing=False)

def compiler(gm, inputs):
    return make_boxed_func(unboxed(gm, inputs))

def function(x):
    return torch.relu(x) + 1

def inside(gm, inputs):
    mine(gm, inputs)
    return lookup_backend("aot_eager")(gm, inputs)

for name, backend in {
    "function": mine, "name": "mine", "looked up": lookup_backend("mine"),
    "partial": functools.partial(mine, option=1), "object": Backend(),
    "method": Backend().method, "without a hash": WithoutHash(),
    "torch's": "aot_eager", "torch's own inside": inside,
    "aot_autograd": aot_autograd(fw_compiler=compiler),
    "boxed": aot_autograd(
        fw_compiler=make_boxed_compiler(unboxed), bw_compiler=compiler
    ),
    "simplified": lambda gm, i: aot_module_simplified(gm, i, compiler),
}.items():
    reset()
    seen.clear()
    y = x.clone().requires_grad_()
    result = torch.compile(function, backend=backend)(y)
    (gradient,) = torch.autograd.grad(result.sum(), y)
    print(name, result, gradient, seen)
seen.clear()
tried("branches", torch.compile(Branches(), backend=mine), x)
tried("optimize", optimize(mine)(function), x)
tried("aot_function", aot_function(function, compiler), x)
net = nn.Sequential(nn.ReLU())
net.compile(backend=mine)
tried("a module", net, x)
torch.compile(function, backend=mine)(x)  # is known from `optimize`
torch.compile(function, backend=mine)(x)
print(seen)
'''


READS = """
import torch
from torch import nn
from torch.fx.node import map_arg
from torch.fx.passes.infra.pass_base import PassBase, PassResult
from torch.fx.passes.shape_prop import ShapeProp

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(3, 3)
    def forward(self, x):
        return torch.relu(self.linear(x)) + x, [x.sum()]

class Noting(torch.fx.Interpreter):
    def run_node(self, n):
        print(isinstance(n, torch.fx.Node), n.target)
        return super().run_node(n)

class Pass(PassBase):
    def call(self, gm):
        return PassResult(gm, isinstance(gm, torch.fx.GraphModule))

x = torch.ones(2, 3)
exported = torch.export.export(Net(), (x,))
for program in exported, exported.run_decompositions({}):
    gm, graph = program.graph_module, program.graph
    given = [*program.state_dict.values(), x]
    print(isinstance(gm, torch.fx.GraphModule), Pass()(gm).modified, graph)
    for node in graph.nodes:
        match node:
            case torch.fx.Node():
                print(node, map_arg((node.args, node.kwargs), lambda n: n.op))
    print(Noting(gm).run(*given), torch.fx.Transformer(gm).transform()(*given))
    ShapeProp(gm).propagate(*given)
    new, copies = torch.fx.Graph(), {}
    for node in graph.nodes:
        copies[node] = new.node_copy(node, lambda n: copies[n])
    print(new, torch.fx.GraphModule(gm, new)(*given))
    new = torch.fx.Graph()
    new.output(new.graph_copy(graph, {}))
    gm.graph = new
    gm.recompile()
    print(torch.fx.GraphModule(gm, graph)(*given), gm(*given))
    print(program.module()(x))
    other = torch.fx.Graph()
    foreign, one = other.placeholder("foreign"), new.find_nodes(op="output")[0]
    one.args = (foreign,)
    print(one.args, one.all_input_nodes)
    try:
        new.lint()
    except RuntimeError as error:
        print(type(error))
"""


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


def test_graphs_that_torch_makes_are_converted(tmp_path: Path) -> None:
    """Both print the same, and none of it says that a graph is another's."""
    path = tmp_path / "doors.py"
    path.write_text(DOORS)
    theirs = _plain(path)
    finished = python(
        "-W", "error::UserWarning", "-m", "fx.as_torch", str(path)
    )
    assert not finished.returncode, finished.stderr
    assert finished.stdout == theirs
    assert theirs.count("True") >= 20
    assert "False" not in theirs


def test_graphs_of_an_exported_program_are_read(tmp_path: Path) -> None:
    """A node of another graph may be an argument there, and lint says so."""
    path = tmp_path / "reads.py"
    path.write_text(READS)
    finished = python(
        "-W", "error::UserWarning", "-m", "fx.as_torch", str(path)
    )
    assert not finished.returncode, finished.stderr
    assert finished.stdout == _plain(path)
    assert "False" not in finished.stdout


class Linear(nn.Module):
    """Has a parameter that its graph does not use, and a hook."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.unused = nn.Linear(2, 2), nn.Parameter(torch.ones(1))

    def forward(self, x: AnyValue) -> AnyValue:
        """Run it."""
        return self.linear(x)


def test_a_converted_module_has_what_it_had() -> None:
    root = Linear()
    theirs: AnyValue = torch.fx.symbolic_trace(root)
    theirs.unused, theirs.note = root.unused, "mine"
    theirs.itself = theirs.named_parameters
    theirs.inner = torch.fx.symbolic_trace(nn.ReLU())
    calls: list[object] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a hook that is not torch.export's
        theirs.register_forward_pre_hook(lambda gm, _: calls.append(gm))
        ours = as_torch._converted(theirs)
    assert type(ours).__mro__[1] is fx.GraphModule
    assert [*ours.state_dict()] == [*theirs.state_dict()]
    assert ours.unused is root.unused
    assert ours.note == "mine"
    assert ours.itself.__self__ is ours
    assert isinstance(ours.inner, fx.GraphModule)
    assert isinstance(theirs.inner, torch.fx.GraphModule)
    del ours.linear
    assert theirs.linear is not None
    ours.linear = theirs.linear
    assert torch.equal(ours(X), root(X))
    assert calls == [ours]


def test_a_graph_that_cannot_be_converted_is_said() -> None:
    class Own(torch.fx.graph.CodeGen):
        """A code generator that fx does not know."""

    gm = torch.fx.symbolic_trace(nn.ReLU())
    gm.graph.set_codegen(Own())
    with pytest.warns(UserWarning, match=r"stays a graph of torch\.fx.*Own"):
        assert as_torch._converted(gm) is gm


def test_dynamo_must_not_be_loaded() -> None:
    code = "import torch._dynamo, fx.as_torch; fx.as_torch.install()"
    assert "RuntimeError: torch._dynamo is loaded already" in (
        python("-c", code).stderr
    )


def test_what_export_notes_of_tensors_is_a_tensor_metadata(
    tmp_path: Path,
) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import torch, torch.fx\n"
        "from torch.fx.passes.shape_prop import ShapeProp, TensorMetadata\n"
        "net = torch.nn.ReLU()\n"
        "x = torch.ones(2)\n"
        "traced = torch.fx.symbolic_trace(net)\n"
        "ShapeProp(traced).propagate(x)\n"
        "for graph in torch.export.export(net, (x,)).graph, traced.graph:\n"
        "    _, call, _ = graph.nodes\n"
        "    print(isinstance(call.meta['tensor_meta'], TensorMetadata))\n"
    )
    assert printed("-m", "fx.as_torch", str(program)).split() == ["True"] * 2


def test_make_fx_takes_the_options_that_only_torch_has(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import torch, torch.fx\n"
        "from torch.fx.experimental.proxy_tensor import make_fx\n"
        "def f(x): return torch.nn.functional.linear(x, x).expand(*x.shape)\n"
        "x = torch.ones(3, 3)\n"
        "made = [make_fx(f)(x), make_fx(f, pre_dispatch=True)(x),\n"
        "        make_fx(f, tracing_mode='symbolic')(x)]\n"
        "for gm in made:\n"
        "    print(type(gm.graph) is torch.fx.Graph, int(gm(x).sum()),\n"
        "          'linear' in gm.code, 'sym_size' in gm.code)\n"
    )
    assert printed("-m", "fx.as_torch", str(program)).splitlines() == [
        "True 27 False False",
        "True 27 True False",
        "True 27 False True",
    ]


def test_what_runs_the_source_of_graphs_may_be_replaced(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import torch, torch.fx\n"
        "from unittest.mock import patch\n"
        "seen = []\n"
        "run = torch.fx.graph_module._exec_with_source\n"
        "def running(src, globals, fields=None):\n"
        "    seen.append(src)\n"
        "    run(src, globals, fields)\n"
        "def compiled():\n"
        "    torch._dynamo.reset()\n"
        "    torch.compile(torch.sin, backend='eager')(torch.ones(2))\n"
        "    return any('sin' in text for text in seen), seen.clear()\n"
        "files = torch.fx.graph_module\n"
        "with patch.object(files, '_exec_with_source', running):\n"
        "    print(compiled()[0])\n"
        "print(compiled()[0])\n"
    )
    assert printed("-m", "fx.as_torch", str(program)).split() == [
        *("True", "False"),
    ]


def test_without_a_program_it_says_what_it_takes() -> None:
    with pytest.raises(SystemExit, match=r"usage: .* program\.py"):
        as_torch.main([])
