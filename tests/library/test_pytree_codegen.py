"""Functions with nested inputs, of graphs with flat ones; boxed calls."""

from __future__ import annotations

from collections import ChainMap, OrderedDict, UserList
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pytest
import torch
import torch.fx
from torch.utils import _pytree as pytree

import fx
from fx._pytree import tree_flatten_spec
from fx.codegen.nested import _PyTreeCodeGen, default_codegen
from fx.graph import Graph
from fx.use_def.protocols import PyTreeInfo
from tests.library.generated import AnyValue, Lib, run


class Pair(NamedTuple):
    first: object
    second: object


# -- nested inputs and outputs -----------------------------------------------


def pytree_graph(
    lib: Lib,
    names: Sequence[str],
    inputs: AnyValue,
    placeholders: Sequence[str],
    **types: AnyValue,
) -> AnyValue:
    """A graph that returns its placeholders, with nested inputs."""
    graph = lib.Graph()
    made = [graph.placeholder(name, types.get(name)) for name in placeholders]
    graph.output(made)
    in_spec = pytree.tree_structure(inputs)
    out_spec = pytree.tree_structure({"all": [0] * len(made)})
    if lib is fx:
        info: AnyValue = PyTreeInfo([*names], in_spec, out_spec)
        graph.set_codegen(_PyTreeCodeGen(info))
    else:
        info = torch.fx.graph._PyTreeInfo([*names], in_spec, out_spec)
        graph.set_codegen(torch.fx.graph._PyTreeCodeGen(info))
    return graph


PYTREES: tuple[dict[str, AnyValue], ...] = (
    {
        "names": ["x", "y"],
        "inputs": ([1, 2], 3),
        "placeholders": ["x_1", "x_2", "y_1"],
    },
    {
        "names": ["self", "x"],
        "inputs": (0, [1, 2]),
        "placeholders": ["x_1", "x_2"],
        "x_1": int,
        "x_2": list[int],
    },
    {
        "names": ["a", "b", "k"],
        "inputs": ((1, 2), {"k": 3}),
        "placeholders": ["a_1", "b_1", "k_1"],
        "k_1": int,
    },
)


def _cases(expanded: bool) -> Iterator[AnyValue]:
    """The cases; one with annotations, on one line, is written as in 2.15."""
    for case in PYTREES:
        annotated = case.keys() - {"names", "inputs", "placeholders"}
        marks = [pytest.mark.newest] * bool(annotated and not expanded)
        name = f"{case['names']}-{expanded}"
        yield pytest.param(case, expanded, id=name, marks=marks)


@pytest.mark.parametrize(("case", "expanded"), [*_cases(False), *_cases(True)])
def test_nested_inputs_as_torch_writes_them(
    case: dict[str, AnyValue], expanded: bool
) -> None:
    theirs = pytree_graph(torch.fx, **case)
    ours = pytree_graph(fx, **case)
    options = {"expanded_def": expanded}
    assert (
        ours.python_code("self", **options).src
        == theirs.python_code("self", **options).src
    )


def call_nested(graph: Graph, *args: AnyValue) -> AnyValue:
    codegen = graph._codegen
    assert isinstance(codegen, _PyTreeCodeGen)
    info = codegen.pytree_info
    specs: AnyValue = type("Root", (), {})()
    specs._in_spec, specs._out_spec = info.in_spec, info.out_spec
    return run(graph, *args, root=specs)


def test_nested_inputs_run() -> None:
    graph = pytree_graph(fx, **PYTREES[0])
    assert call_nested(graph, [1, 2], 3) == {"all": [1, 2, 3]}
    keywords = pytree_graph(fx, **PYTREES[2])
    assert call_nested(keywords, 1, 2, 3) == {"all": [1, 2, 3]}
    assert graph.process_inputs([1, 2], 3) == [1, 2, 3]
    assert graph.process_outputs([1, 2, 3]) == {"all": [1, 2, 3]}
    assert keywords.process_inputs(1, 2, 3) == [1, 2, 3]


def difference(x: AnyValue, y: int = 3) -> AnyValue:
    """The difference of two entries."""
    return x["a"] - x["b"], y


class Difference(torch.nn.Module):
    """The same as a module, which is in the spec and not among the inputs."""

    def forward(self, x: AnyValue, y: int = 3) -> AnyValue:
        return difference(x, y)


@pytest.mark.parametrize("root", [Difference(), difference])
def test_an_interpreter_reads_dicts_by_their_keys_as_the_module_does(
    root: AnyValue,
) -> None:
    nested = {"x": {"a": fx.PH, "b": fx.PH}}
    gm = fx.symbolic_trace(root, concrete_args=nested)
    interpreter = fx.Interpreter(gm)
    given = {"b": 1, "a": 5}
    assert interpreter.run(given) == gm(given) == (4, 3)
    assert interpreter.run(given, 7) == gm(given, 7) == (4, 7)
    assert interpreter.run(5, 1) == (4, 3)


def test_an_interpreter_reads_keywords_by_their_keys() -> None:
    inputs = ((1,), {"k": {"a": 2, "b": 3}})
    graph = pytree_graph(fx, ["x", "k"], inputs, ["a", "b", "c"])
    interpreter = fx.Interpreter(fx.GraphModule({}, graph))
    assert interpreter.run(1, {"b": 3, "a": 2}) == {"all": [1, 2, 3]}


def test_nested_inputs_whose_names_are_taken() -> None:
    names = ["pytree", "fx_pytree"]
    inputs = ([1, 2], 3)
    graph = pytree_graph(fx, names, inputs, ["a", "b", "c"])
    assert call_nested(graph, [1, 2], 3) == {"all": [1, 2, 3]}


def test_inputs_without_a_leaf_are_checked_too() -> None:
    gm = fx.symbolic_trace(lambda x: len(x), concrete_args={"x": []})
    assert gm([]) == 0
    with pytest.raises(RuntimeError, match=r"a list of 1 was .* input x:"):
        gm([3])


def test_a_tuple_and_a_dict_are_not_taken_for_args_and_kwargs() -> None:
    trees = {"x": (fx.PH, [fx.PH]), "y": {}}
    gm = fx.symbolic_trace(lambda x, y: x[0] - x[1][0], concrete_args=trees)
    for call in (gm, fx.Interpreter(gm).run):
        assert call((3, [1]), {}) == 2


def test_two_parameters_are_not_taken_for_args_and_kwargs() -> None:
    inputs = ((1, 2), {"k": 3})
    graph = pytree_graph(fx, ["x", "y"], inputs, ["a", "b", "c"])
    assert call_nested(graph, (1, 2), {"k": 3}) == {"all": [1, 2, 3]}


def test_defaults_beside_nested_inputs() -> None:
    graph = Graph()
    a, b = graph.placeholder("x_1"), graph.placeholder("x_2")
    y = graph.placeholder("y", int, default_value="a = b: #")
    graph.output([a, b, y])
    spec = pytree.tree_structure(([1, 2], 3))
    graph.set_codegen(default_codegen(PyTreeInfo(["x", "y"], spec, None)))
    assert call_nested(graph, [1, 2]) == [1, 2, "a = b: #"]
    assert call_nested(graph, [1, 2], 3) == [1, 2, 3]


def test_a_part_of_an_input_has_no_default() -> None:
    def f(a: AnyValue, b: AnyValue = (10, 20)) -> AnyValue:
        return a, b[0]

    gm = fx.symbolic_trace(f, concrete_args={"b": (fx.PH, fx.PH)})
    with pytest.raises(RuntimeError, match="parameter b_1"):
        fx.Interpreter(gm).run(1)
    assert fx.Interpreter(gm).run(1, (2, 3)) == gm(1, (2, 3)) == (1, 2)


def test_defaults_in_front_of_parameters_without_one() -> None:
    graph = Graph()
    y = graph.placeholder("y", default_value=5)
    a = graph.placeholder("x_1")
    graph.output([y, a])
    spec = pytree.tree_structure((0, [1]))
    graph.set_codegen(default_codegen(PyTreeInfo(["y", "x"], spec, None)))
    assert call_nested(graph, 3, [4]) == [3, 4]


def test_without_output_spec_outputs_stay_flat() -> None:
    spec = pytree.tree_structure(([1],))
    codegen = default_codegen(PyTreeInfo(["x"], spec, None))
    assert codegen.process_outputs(7) == 7
    assert codegen.generate_output((1, 2)) == "return (1, 2)"


@pytest.mark.parametrize(
    "tree",
    [
        3,
        [1, (2, {"a": 3})],
        {"b": 1, "a": [2]},
        (),
        Pair(1, [2]),
        torch.max(torch.eye(2), 1),
    ],
    ids=repr,
)
def test_flattening_is_that_of_torch(tree: AnyValue) -> None:
    spec = pytree.tree_structure(tree)
    ours = tree_flatten_spec(tree, spec)
    theirs = torch.fx._pytree.tree_flatten_spec(tree, spec)
    assert len(ours) == len(theirs)
    assert all(a is b for a, b in zip(ours, theirs, strict=True))


OTHERS: tuple[tuple[AnyValue, AnyValue, str], ...] = (
    ([0, 0], [1, 2, 3], r"^a list of 3 was given, and a list of 2 was .*xs:"),
    ([0, 0], [1], r"^a list of 1 was given, and a list of 2 .* input xs:"),
    ([0, 0], (1,), r"^a tuple of 1 was given"),
    ([0, 0], torch.ones(2), r"^a Tensor was given, and a list of 2 was"),
    ([0, 0], "ab", r"^a str of 2 was given, and a list of 2 was traced"),
    ([0, 0], None, r"^a NoneType was given"),
    ([0, (0, 0)], [1, (2,)], r"a tuple of 1 .*, for the input xs\[1\]:"),
    ([{"a": [0]}], [{"a": 1}], r"a int was .* input xs\[0\]\['a'\]:"),
    ({"a": 0}, {"a": 1, "b": 2}, r"keys \['a', 'b'\] .* keys \['a'\] was"),
    ({"a": 0, "b": 0}, {"b": 1}, r"keys \['b'\] was given, and a dict with"),
    ([], [1], r"a list of 1 was given, and a list of 0 was traced"),
    ({}, 3, r"a int was given, and a dict with the keys \[\] was traced"),
    ((0, 0), Pair(1, 2), r"a Pair of 2 was given, and a tuple of 2 was"),
    (Pair(0, 0), (1, 2), r"a tuple of 2 was given, and a Pair of 2 was"),
    (OrderedDict(a=0), {"a": 1}, r"^Real spec .* of object .* is different"),
    (torch.max(torch.eye(2), 1), (1, 2), r"a tuple of 2 .*, and a max of 2"),
)


@pytest.mark.parametrize(("traced", "given", "message"), OTHERS, ids=repr)
def test_inputs_of_another_structure_are_refused(
    traced: AnyValue, given: AnyValue, message: str
) -> None:
    tree = pytree.tree_map(lambda _: fx.PH, traced)

    def f(ys: AnyValue, xs: AnyValue) -> AnyValue:
        return pytree.tree_leaves(xs)

    gm = fx.symbolic_trace(f, concrete_args={"xs": tree, "ys": [fx.PH]})
    for call in (gm, gm.forward, fx.Interpreter(gm).run):
        with pytest.raises(RuntimeError, match=message) as caught:
            call([given], given)
        assert "input xs" in str(caught.value)
        with pytest.raises(RuntimeError, match="for the input ys"):
            call([given, 1], given)
    with pytest.raises(RuntimeError, match=r"3 inputs were given.* 2: ys, xs"):
        fx.Interpreter(gm).run([1], traced, 1)


class Rows(UserList[int]):
    """A sequence of a user's."""


LIKE: tuple[tuple[AnyValue, AnyValue], ...] = (
    ([0, 0], (1, 2)),
    ((0, 0), [1, 2]),
    ([0, 0], Rows([1, 2])),
    ((0, 0), torch.Size([1, 2])),
    ({"a": 0, "b": 0}, OrderedDict(b=2, a=1)),
    ({"a": 0, "b": 0}, ChainMap({"b": 2}, {"a": 1})),
)


@pytest.mark.parametrize(("traced", "given"), LIKE, ids=repr)
def test_what_may_stand_for_a_list_or_a_dict(
    traced: AnyValue, given: AnyValue
) -> None:
    assert tree_flatten_spec(given, pytree.tree_structure(traced)) == [1, 2]


def test_keywords_of_another_structure_are_refused() -> None:
    inputs = ((1,), {"k": {"a": 2, "b": 3}})
    graph = pytree_graph(fx, ["x", "k"], inputs, ["a", "b", "c"])
    gm = fx.GraphModule({}, graph)
    for call in (gm, fx.Interpreter(gm).run):
        with pytest.raises(RuntimeError, match="for the input k:"):
            call(1, {"b": 3})


def test_without_names_the_path_is_said() -> None:
    spec = pytree.tree_structure([{"a": 0}, [0]])
    with pytest.raises(RuntimeError, match=r"for the input \[1\]:"):
        tree_flatten_spec([{"a": 2}, 3], spec)
    with pytest.raises(RuntimeError, match=r"a int was .* was traced: a"):
        tree_flatten_spec(3, spec)


class Box:
    def __init__(self, inside: AnyValue) -> None:
        self.inside = inside


def test_flattening_of_registered_types() -> None:
    register = fx._pytree.register_pytree_flatten_spec
    register(Box, lambda box, _: [box.inside])
    pytree.register_pytree_node(
        Box, lambda box: ([box.inside], None), lambda inside, _: Box(*inside)
    )
    spec = pytree.tree_structure(Box([1, 2]))
    try:
        assert tree_flatten_spec(Box([3, 4]), spec) == [3, 4]
        with pytest.raises(RuntimeError, match=r"for the input \[0\]"):
            tree_flatten_spec(Box([3]), spec)
        register(Box, lambda box, _: [box.inside, 5])
        with pytest.raises(RuntimeError, match="2 items were given, and 1"):
            tree_flatten_spec(Box([3, 4]), spec)
        register(Box, lambda box, _: [box.inside], lambda box, _: False)
        with pytest.raises(RuntimeError, match="a Box was given"):
            tree_flatten_spec(Box([3, 4]), spec)
    finally:
        fx._pytree._deregister_pytree_flatten_spec(Box)
    assert tree_flatten_spec(Box([3, 4]), spec) == [3, 4]
    with pytest.raises(RuntimeError, match="different from expected spec"):
        tree_flatten_spec(Box([3, 4, 5]), spec)


# -- the boxed calling convention --------------------------------------------


def test_dynamo_traces_into_nested_inputs() -> None:
    """What names an input in an error is looked for in an error only."""
    gm = fx.symbolic_trace(
        lambda pair: pair["x"][0] + 1,
        concrete_args={"pair": {"x": [fx.PH]}},
    )
    given = {"x": [torch.ones(2)]}
    compiled = torch.compile(gm, backend="eager", fullgraph=True)
    assert compiled(given).tolist() == [2.0, 2.0]
