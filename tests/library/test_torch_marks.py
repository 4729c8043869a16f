"""What is marked for torch.fx holds for fx, and its objects are refused."""

from __future__ import annotations

import gc
import math
import types
import weakref
from collections.abc import Callable, Iterator

import pytest
import torch
import torch.fx
from torch.fx import _symbolic_trace as torch_tracing
from torch.fx.node import _side_effectful_functions

import fx
from fx.use_def.values import AnyValue

SOURCE = """
import torch
import torch.fx

@torch.fx.wrap
def rounded(x, low):
    return x.clamp(low) if low else x

torch.fx.wrap("size_of")

def size_of(x):
    return len(x)

def root(x):
    return rounded(x, 0.5) * size_of(x)
"""


@pytest.fixture
def library() -> Iterator[AnyValue]:
    """A Python module that marks its leaf functions with torch.fx.wrap."""
    registry = torch_tracing._wrapped_fns_to_patch
    before = dict(registry)
    module = types.ModuleType("library")
    exec(compile(SOURCE, "library.py", "exec"), vars(module))
    yield module
    registry.clear()
    registry.update(before)


def test_a_marked_function_is_a_leaf_and_stays_one(library: AnyValue) -> None:
    """Graph, code and result are torch.fx's; so is a trace of the code."""
    theirs = torch.fx.symbolic_trace(library.root)
    ours = fx.symbolic_trace(library.root)
    assert [n.op for n in ours.graph.nodes].count("call_function") == 3
    assert str(ours.graph) == str(theirs.graph)
    assert ours.code == theirs.code
    assert 'torch.fx._symbolic_trace.wrap("library_rounded")' in ours.code
    x = torch.rand(4)
    torch.testing.assert_close(ours(x), library.root(x), rtol=0, atol=0)
    for lib in (fx, torch.fx):
        again = lib.symbolic_trace(ours)
        assert str(again.graph) == str(ours.graph)
    assert fx.from_torch(theirs).code == theirs.code
    assert library.rounded.__name__ == "rounded"
    assert not hasattr(library.rounded, "__fx_original__")


def test_a_function_that_fx_marks_too_keeps_our_line(library: AnyValue) -> None:
    exec('import fx\nfx.wrap("rounded")', library.__dict__)
    code = fx.symbolic_trace(library.root).code
    assert '\nwrap("library_rounded")' in code
    assert 'torch.fx._symbolic_trace.wrap("library_size_of")' in code


def test_what_torch_fx_has_traced_does_not_change_our_code() -> None:
    """Its generated code marks math.sqrt, and that mark is never removed."""

    def root(x: AnyValue) -> AnyValue:
        return x / math.sqrt(x)

    before = fx.symbolic_trace(root).code
    theirs = torch.fx.symbolic_trace(root)
    assert 'wrap("math_sqrt")' in theirs.code
    assert '\nwrap("math_sqrt")' in before
    assert fx.symbolic_trace(root).code == before


@pytest.mark.parametrize("convert", [fx.symbolic_trace, fx.from_torch])
def test_a_leaf_of_another_tracer_of_torch_fx_stays_one(
    library: AnyValue, convert: Callable[[AnyValue], fx.GraphModule]
) -> None:
    """Only the code that torch.fx generated marks it."""
    exec(
        "def kind(x): return 1 if isinstance(x, torch.Tensor) else 2\n"
        "def root(x): return x * kind(x)",
        library.__dict__,
    )
    tracer = torch.fx.Tracer(autowrap_functions=(library.kind,))
    graph = tracer.trace(library.root)
    ours = convert(torch.fx.GraphModule(torch.nn.Module(), graph))
    assert float(torch.fx.symbolic_trace(ours)(torch.ones(()))) == 1


def test_a_function_marked_in_globals_without_a_name_stays_a_leaf(
    library: AnyValue,
) -> None:
    here: dict[str, AnyValue] = {"rounded": library.rounded}
    source = """
import torch.fx
torch.fx.wrap("rounded")
def root(x): return rounded(x, 0.5)
"""
    exec(source, here)
    code = fx.symbolic_trace(here["root"]).code
    assert 'torch.fx._symbolic_trace.wrap("library_rounded")' in code


def test_a_marked_class_is_traced_through(library: AnyValue) -> None:
    """While it is replaced, nothing would be an instance of it."""
    source = """
class Pair:
    def __init__(self, left): self.left = left

torch.fx.wrap("Pair")

def root(x):
    pair = Pair(x)
    assert isinstance(pair, Pair)
    return pair.left + 1
"""
    exec(source, library.__dict__)
    graph = fx.symbolic_trace(library.root).graph
    assert [n.name for n in graph.nodes] == ["x", "add", "output"]


def test_a_name_that_is_missing_is_said(library: AnyValue) -> None:
    del library.size_of
    with pytest.raises(NameError, match=r"wrap\('size_of'\) at torch\.fx"):
        fx.symbolic_trace(library.root)
    fx.symbolic_trace(lambda x: x + math.pi)  # another module: not its concern


def test_a_registered_effect_is_kept() -> None:
    def log(x: AnyValue) -> None: ...

    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.call_function(log, (x,))
    graph.output(x)
    torch.fx.node.has_side_effect(log)
    try:
        assert not graph.eliminate_dead_code()
    finally:
        _side_effectful_functions.discard(log)
    assert graph.eliminate_dead_code()


def _torchs() -> torch.fx.GraphModule:
    return torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU()))


def _ours() -> fx.GraphModule:
    return fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU()))


def _torch_proxy() -> AnyValue:
    graph = torch.fx.Graph()
    tracer = torch.fx.proxy.GraphAppendingTracer(graph)
    return torch.fx.Proxy(graph.placeholder("x"), tracer)


MEETINGS: dict[str, Callable[[AnyValue], object]] = {
    "Interpreter": fx.Interpreter,
    "Interpreter(graph=)": lambda gm: fx.Interpreter(_ours(), graph=gm.graph),
    "Transformer": fx.Transformer,
    "graph_copy": lambda gm: fx.Graph().graph_copy(gm.graph, {}),
    "node_copy": lambda gm: fx.Graph().node_copy(next(iter(gm.graph.nodes))),
    "replace_pattern": lambda gm: fx.replace_pattern(
        gm, lambda x: x + 1, lambda x: x + 2
    ),
    "proxy": lambda gm: fx.symbolic_trace(lambda x: x + _torch_proxy()),
    "Proxy": lambda gm: fx.Proxy(next(iter(gm.graph.nodes))),
    "args": lambda gm: fx.Graph().output(next(iter(gm.graph.nodes))),
    "replace_all_uses_with": lambda gm: (
        fx.Graph()
        .placeholder("x")
        .replace_all_uses_with(next(iter(gm.graph.nodes)))
    ),
}


@pytest.mark.parametrize("meeting", MEETINGS.values(), ids=MEETINGS)
def test_torchs_objects_are_refused(
    meeting: Callable[[AnyValue], object],
) -> None:
    with pytest.raises(TypeError, match=r"of torch\.fx.*fx\.from_torch"):
        meeting(_torchs())


def test_a_graph_of_torch_fx_is_not_that_of_a_graph_module() -> None:
    theirs: AnyValue = _torchs()
    with pytest.raises(AssertionError, match=r"fx\.from_torch"):
        _ours().graph = theirs.graph
    with pytest.raises(AssertionError, match=r"fx\.from_torch"):
        fx.GraphModule(theirs, theirs.graph)


def test_graphs_without_torchs_marks_are_freed() -> None:
    """Only what torch.fx marked is kept by its registry, as torch.fx does."""
    gm = fx.symbolic_trace(lambda x: math.sqrt(x) + 1)
    forward = weakref.ref(type(gm).forward)
    assert "wrap(" in gm.code
    del gm
    gc.collect()
    assert forward() is None
