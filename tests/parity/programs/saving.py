"""Saving graph modules: pickles, folders, packages of code."""

from __future__ import annotations

import contextlib
import copy
import importlib
import math
import pickle
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import no_type_check

import torch
from torch import nn

from tests.parity.harness import Lib, Seen, error, program
from tests.parity.programs._subjects import (
    AnyValue,
    Outer,
    lines,
    module_of,
    without_wraps,
)


class Everything(nn.Module):
    """Children, a parameter, a buffer, a constant."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)
        self.act = nn.Hardtanh()
        self.param = nn.Parameter(torch.ones(4))
        self.register_buffer("buffer", torch.ones(4) * 2)

    @no_type_check
    def forward(self, x):
        x = self.norm(self.linear(x) * self.param)
        return self.act(x + self.buffer) - torch.tensor([1.0, 2.0, 3.0, 4.0])


@no_type_check
def with_math(x):
    return x * math.sqrt(x.numel()) + 1


def pickled(gm: AnyValue) -> AnyValue:
    """`gm` after a round trip through pickle."""
    return pickle.loads(pickle.dumps(gm))


@contextlib.contextmanager
def folder_of(gm: AnyValue, *names: str) -> Iterator[AnyValue]:
    """The package that to_folder wrote, imported."""
    with tempfile.TemporaryDirectory() as parent:
        name = "written_by_fx"
        gm.to_folder(Path(parent) / name, *names)
        sys.path.insert(0, parent)
        importlib.invalidate_caches()
        try:
            yield importlib.import_module(name)
        finally:
            sys.path.remove(parent)
            for loaded in [m for m in sys.modules if m.split(".")[0] == name]:
                del sys.modules[loaded]


@program(newest=True)
def a_tracer_that_takes_arguments_is_remembered(lib: Lib) -> Seen:
    source = """
    class Named(lib.Tracer):
        def __init__(self, name):
            super().__init__()
            self.name = name

        @classmethod
        def _graph_module_deserialization_tracer(cls, root):
            return cls("again")

    class Plain(lib.Tracer):
        @classmethod
        def _graph_module_deserialization_tracer(cls, root):
            return super()._graph_module_deserialization_tracer(root)
    """
    with module_of(source, lib=lib, name="pickled_tracer") as user:
        tracer = user.Named("first")
        graph = tracer.trace(Everything())
        gm = lib.GraphModule(tracer.root, graph)
        new = pickled(gm)
        plain = user.Plain._graph_module_deserialization_tracer(gm)
        return [
            lines(new.graph),
            new.graph._tracer_cls is user.Named,
            type(plain) is user.Plain,
        ]


@program()
def wrapped_functions_are_pickled_by_name(lib: Lib) -> Seen:
    source = """
    lib.wrap("leaf")

    def leaf(x, scale=2):
        return x * scale

    def f(x):
        return leaf(x, scale=3) + 1
    """
    with module_of(source, lib=lib, name="pickled_user") as user:
        gm = lib.symbolic_trace(user.f)
        new = pickled(gm)
        return [
            lines(new.graph),
            without_wraps(new.code) == without_wraps(gm.code),
            new(5),
            lines(pickled(new).graph),
        ]


@program()
def functions_of_math_are_pickled(lib: Lib) -> Seen:
    new = pickled(lib.symbolic_trace(with_math))
    return [lines(new.graph), without_wraps(new.code), new(torch.ones(4))]


@program(
    differs="pickle-keeps-the-graph",
    ours=[
        ["x", "renamed", "output"],
        "tag",
        True,
        [False, False],
        ["placeholder", "call_function", "call_function", "output"],
    ],
)
def pickling_keeps_names_types_meta_and_random_nodes(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: torch.relu(x))
    relu = list(gm.graph.nodes)[1]
    relu.name, relu.type = "renamed", torch.Tensor
    relu.meta["tag"] = "tag"
    gm.recompile()
    new = list(pickled(gm).graph.nodes)
    g = lib.Graph()
    x = g.placeholder("x")
    rand = g.call_function(torch.rand, (2,))
    g.output(g.call_function(torch.add, (x, rand)))
    random = pickled(lib.GraphModule({}, g))
    zero = torch.zeros(2)
    repeats = [torch.equal(random(zero), random(zero)) for _ in range(2)]
    return [
        [n.name for n in new],
        new[1].meta.get("tag"),
        new[1].type is torch.Tensor,
        repeats,
        [n.op for n in random.graph.nodes],
    ]


@program(claims=("to-folder",))
def a_folder_can_be_imported(lib: Lib) -> Seen:
    torch.manual_seed(0)
    gm = lib.symbolic_trace(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)))
    gm.eval()
    x = torch.linspace(-1, 1, 8).reshape(2, 4)
    with folder_of(gm) as package:
        new = package.FxModule().eval()
        files = sorted(p.name for p in Path(package.__file__).parent.iterdir())
        return [
            [f for f in files if f != "__pycache__"],
            torch.equal(new(x), gm(x)),
            sorted(new.state_dict()) == sorted(gm.state_dict()),
            type(new).__bases__[0] is nn.Module,
            isinstance(new, lib.GraphModule),
        ]


@program(claims=("to-folder",))
def a_folder_with_a_class_name_of_its_own(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x, y=math.inf: torch.relu(x) + y)
    with folder_of(gm, "Foo") as package:
        new = package.Foo()
        return [new(torch.ones(2), 1), new(torch.ones(1)), type(new).__name__]


@program(
    claims=("to-folder",),
    differs="to-folder-imports",
    ours=["no error", ("tensor", "torch.float32", [3.0, 3.0, 3.0, 3.0])],
)
def a_folder_with_functions_of_other_modules(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(with_math)
    outputs: list[object] = []

    def run() -> None:
        with folder_of(gm) as package:
            outputs.append(package.FxModule()(torch.ones(4)))

    return [error(run).partition(":")[0], *outputs]


@program()
def a_deep_copy_after_a_round_trip(lib: Lib) -> Seen:
    gm = copy.deepcopy(pickled(copy.deepcopy(lib.symbolic_trace(Outer()))))
    again = lib.symbolic_trace(gm)
    return [gm.code, again.code == gm.code, type(gm).__name__]
