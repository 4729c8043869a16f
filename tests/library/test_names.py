"""Names that programs written for torch.fx look for, and what they do."""

from __future__ import annotations

import operator

import pytest
import torch
import torch.fx
from torch import nn
from torch.fx.experimental import proxy_tensor as torch_machine

import fx
import fx._lazy_graph_module as lazy
import fx.graph
import fx.tensor_type
from fx._compatibility import compatibility
from fx._lazy_graph_module import _make_graph_module
from fx.compat.first_use import of_namesake
from fx.experimental import proxy_tensor
from fx.linked_list.namespace import target_to_str
from fx.use_def.values import AnyValue


def test_modules_and_graphs_go_to_torch_fx() -> None:
    gm = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))
    theirs = gm.to_torch()
    assert type(theirs.graph) is torch.fx.Graph
    assert theirs.code == gm.code
    assert str(gm.graph.to_torch()) == str(gm.graph)
    x = torch.rand(2, 2)
    torch.testing.assert_close(theirs(x), gm(x), rtol=0, atol=0)


def test_a_code_generator_is_derived_from_the_graphs_name() -> None:
    names: AnyValue = fx.graph

    class Listed(names.CodeGen):  # type: ignore[misc]  # set by the root
        def gen_fn_def(self, *args: AnyValue, **kwargs: AnyValue) -> str:
            return f"# listed\n{super().gen_fn_def(*args, **kwargs)}"

    gm = fx.symbolic_trace(lambda x: x + 1)
    gm.graph.set_codegen(Listed())
    gm.recompile()
    assert "# listed" in gm.code
    assert gm(torch.tensor(1.0)) == 2.0


def test_an_effect_is_registered_by_the_private_set() -> None:
    def log(x: AnyValue) -> None: ...

    registry: AnyValue = vars(fx.node)["_side_effectful_functions"]
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
    flag = operator.attrgetter("_is_fx_tracing_flag")(fx._symbolic_trace)
    seen = []

    def root(x: AnyValue) -> AnyValue:
        seen.append(bool(flag))
        return x

    fx.symbolic_trace(root)
    assert seen == [True]
    assert not flag


def test_a_trace_can_be_said_to_be_none() -> None:
    """As torch does where it compiles a part of what is traced."""
    theirs = vars(torch.fx._symbolic_trace)
    ask, named, set_own = operator.attrgetter(
        "_get_is_fx_tracing", "_is_fx_tracing_context", "_set_is_fx_tracing"
    )(fx._symbolic_trace)
    asked = [fx._symbolic_trace.is_fx_tracing, ask]
    seen = []

    def own(value: bool) -> None:
        theirs.get("_set_is_fx_tracing", set_own)(value)

    def answers() -> list[bool]:
        flag = theirs.get("_get_is_fx_tracing")
        return [ask() for ask in (*asked, *([flag] if flag else []))]

    def root(x: AnyValue) -> AnyValue:
        with named(False):
            seen.append(answers())
        seen.append(answers())
        own(False)
        seen.append(answers())
        fx.symbolic_trace(lambda y: seen.append(answers()))
        own(True)
        seen.append(answers())
        set_own(False)
        return x

    fx.symbolic_trace(root)
    said = [{*answer} for answer in seen]
    assert said == [{False}, {True}, {False}, {True}, {True}]
    assert {*answers()} == {False}
    with named(True):
        assert fx._symbolic_trace.is_fx_tracing()
    assert not fx._symbolic_trace.is_fx_tracing()


def test_the_decorator_decorates_nothing() -> None:
    for promise in (False, True):
        assert compatibility(is_backward_compatible=promise)(nn.ReLU) is nn.ReLU


def test_long_arguments_are_shortened_as_torch_fx_does() -> None:
    ours = vars(fx.node)["_format_arg"]
    theirs = vars(torch.fx.node)["_format_arg"]
    values: tuple[AnyValue, ...] = (
        [],
        (1,),
        [1, 2, 3],
        (1, 2, 3),
        {"a": [1, 2, 3]},
        [[1, 2, 3], 2],
    )
    for value in values:
        for longest in 1, 2, 3:
            assert ours(value, max_list_len=longest) == theirs(value, longest)
        assert ours(value) == theirs(value)


def test_a_lazy_graph_module_is_one_that_is_compiled() -> None:
    graph = fx.symbolic_trace(lambda x: x + 1).graph
    gm = _make_graph_module({}, graph)
    assert type(gm).__mro__[1] is fx.GraphModule
    assert gm(1) == 2

    class Own(fx.GraphModule):
        """A class of a user's."""

    assert isinstance(_make_graph_module({}, graph, graph_module_cls=Own), Own)


def test_a_note_on_where_a_node_is_from_takes_our_nodes() -> None:
    source = vars(fx.traceback)["NodeSource"]
    graph = fx.symbolic_trace(lambda x: x + 1).graph
    node = graph.find_nodes(op="placeholder")[0]
    assert source(node, "a pass").to_dict()["name"] == "x"
    assert fx.tensor_type.is_consistent(fx.tensor_type.Dyn, node.type)


def test_a_callable_whose_name_is_no_string_is_named_by_its_class() -> None:
    class Adder:
        __name__ = None

        def __call__(self, x: int) -> int:
            return x + 1

    assert target_to_str(Adder()) == "adder"


def test_names_that_torch_fx_imports_are_found_where_it_has_them() -> None:
    tree_spec: AnyValue = vars(torch.fx._pytree)["TreeSpec"]
    doors: AnyValue = fx
    assert doors._pytree.TreeSpec is tree_spec
    assert doors.interpreter.map_aggregate is fx.node.map_aggregate
    assert doors.subgraph_rewriter.symbolic_trace is fx.symbolic_trace
    assert doors.graph.compatibility is compatibility
    assert doors.passes.utils.HolderModule is not None
    for module, name in (
        (fx.graph, "nowhere"),
        (fx.graph, "math"),  # a module
        (fx.graph, "_snake_case"),  # private
        (fx._symbolic_trace, "HAS_VARSTUFF"),  # its own
        (fx.node, "_side_effects"),
    ):
        assert not hasattr(module, name)


def test_a_name_that_is_imported_from_what_fx_lacks() -> None:
    find = of_namesake("fx.passes.tools_common", {})
    with pytest.raises(AttributeError, match="no attribute 'nowhere'"):
        find("nowhere")


def test_a_subclass_enters_what_notes_the_current_node() -> None:
    class Counts(fx.Interpreter):
        def run_node(self, n: fx.Node) -> AnyValue:
            with self._set_current_node(n):
                args, kwargs = self.fetch_args_kwargs_from_env(n)
                return getattr(self, n.op)(n.target, args, kwargs)

    class Notes(fx.Interpreter):
        def _set_current_node(self, node: fx.Node) -> AnyValue:
            seen.append(node.name)
            return super()._set_current_node(node)

    seen: list[str] = []
    gm = fx.symbolic_trace(lambda x: x + 1)
    assert [Counts(gm).run(1), Notes(gm).run(1)] == [2, 2]
    assert seen == ["x", "add", "output"]


def test_torchs_own_machine_makes_torchs_graphs() -> None:
    theirs: AnyValue = proxy_tensor
    assert theirs.PythonKeyTracer is torch_machine.PythonKeyTracer
    assert (
        theirs._ModuleStackTracer is vars(torch_machine)["_ModuleStackTracer"]
    )
    assert theirs.get_proxy_mode() is None
    assert theirs.make_fx is not torch_machine.make_fx
    with pytest.raises(AttributeError, match="nothing"):
        theirs.nothing()
    assert callable(operator.attrgetter("_exec_with_source")(fx.graph_module))
    with lazy._use_lazy_graph_module(True):
        gm = fx.symbolic_trace(nn.ReLU())
    assert not isinstance(gm, lazy._LazyGraphModule)
