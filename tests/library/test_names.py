"""Names that programs written for torch.fx look for, and what they do."""

from __future__ import annotations

import importlib

import pytest
import torch
import torch.fx
from torch import nn

import fx
import fx.graph
from fx._compatibility import compatibility
from fx.usedef.values import Value

NAMES = """
_compatibility.compatibility
_symbolic_trace._is_fx_tracing_flag
graph.CodeGen
graph._BoxedCodeGen
graph._PyTreeCodeGen
graph._PyTreeInfo
graph.inplace_methods
graph.magic_methods
graph.reflectable_magic_methods
graph_module._USER_PRESERVED_ATTRIBUTES_KEY
graph_module._copy_attr
node.BaseArgumentTypes
node._format_arg
node._side_effectful_functions
node.has_side_effect
""".split()


@pytest.mark.parametrize("name", NAMES)
def test_the_name_is_where_torch_fx_has_it(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    ours = importlib.import_module(f"fx.{module}")
    theirs = importlib.import_module(f"torch.fx.{module}")
    assert hasattr(ours, attribute)
    newest = torch.__version__.startswith("2.13")
    assert hasattr(theirs, attribute) or not newest


def test_modules_and_graphs_go_to_torch_fx() -> None:
    gm = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))
    theirs = gm.to_torch()
    assert type(theirs.graph) is torch.fx.Graph
    assert theirs.code == gm.code
    assert str(gm.graph.to_torch()) == str(gm.graph)
    x = torch.rand(2, 2)
    torch.testing.assert_close(theirs(x), gm(x), rtol=0, atol=0)


def test_a_code_generator_is_derived_from_the_graphs_name() -> None:
    names: Value = fx.graph

    class Listed(names.CodeGen):  # type: ignore[misc]  # set by the root
        def gen_fn_def(self, *args: Value, **kwargs: Value) -> str:
            return f"# listed\n{super().gen_fn_def(*args, **kwargs)}"

    gm = fx.symbolic_trace(lambda x: x + 1)
    gm.graph.set_codegen(Listed())
    gm.recompile()
    assert "# listed" in gm.code
    assert gm(torch.tensor(1.0)) == 2.0


def test_an_effect_is_registered_by_the_private_set() -> None:
    def log(x: Value) -> None: ...

    registry: Value = vars(fx.node)["_side_effectful_functions"]
    graph = fx.Graph()
    graph.call_function(log, (graph.placeholder("x"),))
    graph.output(None)
    registry.add(log)
    try:
        assert not graph.eliminate_dead_code()
    finally:
        registry.discard(log)
    assert graph.eliminate_dead_code()


def test_the_flag_says_whether_a_trace_runs() -> None:
    flag = vars(fx._symbolic_trace)["_is_fx_tracing_flag"]
    seen = []

    def root(x: Value) -> Value:
        seen.append(bool(flag))
        return x

    fx.symbolic_trace(root)
    assert seen == [True]
    assert not flag


def test_the_decorator_decorates_nothing() -> None:
    for promise in (False, True):
        assert compatibility(is_backward_compatible=promise)(NAMES) is NAMES
