"""Graphs and nodes where few people go: copies of itself, loose ends, hooks."""

from __future__ import annotations

import copy
import importlib
import pickle

import torch
from torch import nn

from tests.parity.harness import Lib, Made, Seen, error, names, program
from tests.parity.programs.graph_bad_input import kind
from tests.parity.programs.use_def import inputs


class AtMostNine(dict[Made, Made]):
    """A map of nodes that ends what would not end by itself."""

    def __setitem__(self, key: Made, value: Made) -> None:
        if len(self) == 9:
            raise OverflowError("nine nodes and no end")
        super().__setitem__(key, value)


def two_readers_against_the_order(lib: Lib) -> tuple[Made, Made]:
    """A graph, and its input, whose second reader stands first."""
    g, x = inputs(lib, "x")
    late = g.call_function(torch.relu, (x,))
    with g.inserting_before(late):
        early = g.call_function(torch.abs, (x,))
    g.output((late, early))
    return g, x


@program()
def empty_arguments_may_be_of_any_type(lib: Lib) -> Seen:
    g = lib.Graph()
    n = g.create_node("call_function", torch.rand, [], [])
    m = g.call_method("item", "", 0)
    return [
        (type(made.args).__name__, type(made.kwargs).__name__, len(made.args))
        for made in (n, m)
    ]


@program(
    differs="hook-that-raises",
    ours=("RuntimeError: no", ["relu"], ["x", "relu", "output"]),
)
def a_node_refused_by_a_hook_uses_nothing(lib: Lib) -> Seen:
    def refuse(node: Made) -> None:
        raise RuntimeError("no")

    gm = lib.symbolic_trace(lambda x: torch.relu(x))
    gm._register_create_node_hook(refuse)
    (x,) = gm.graph.find_nodes(op="placeholder")
    raised = error(lambda: gm.graph.call_function(torch.abs, (x,)))
    return raised, names(x.users), names(gm.graph.nodes)


@program(
    differs="graph-copy-of-itself",
    ours=("no error", ["x", "relu", "x_1", "relu_1"]),
)
def a_graph_without_output_is_copied_into_itself(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    g.call_function(torch.relu, (x,))
    raised = error(lambda: g.graph_copy(g, AtMostNine()))
    return raised, names(g.nodes)[:4]


@program()
def a_graph_with_output_is_copied_into_itself(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    g.output(g.call_function(torch.relu, (x,)))
    return error(lambda: g.graph_copy(g, AtMostNine())), str(g)


@program(
    differs="deepcopy-keeps-nodes-together",
    ours=[True, True],
)
def nodes_copied_beside_their_graph_are_the_copys_own(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    g.output(x)
    first = copy.deepcopy({"graph": g, "node": x})
    second = copy.deepcopy({"node": x, "graph": g})
    return [
        both["node"] in list(both["graph"].nodes) for both in (first, second)
    ]


@program(
    differs="has-attr-follows-paths",
    ours=[True, False],
)
def asking_whether_a_path_leads_anywhere(lib: Lib) -> Seen:
    # It has no underscore, and another name, in fx.
    name = lib.__name__
    if name == "fx":
        has = importlib.import_module("fx.use_def.dotted_path").exists
    else:
        has = importlib.import_module("torch.fx.graph_module")._has_attr
    module = nn.Sequential(nn.Linear(1, 1))
    return [has(module, "0.weight"), has(module, "0.nothing")]


@program()
def pickling_keeps_the_order_of_users(lib: Lib) -> Seen:
    g, x = two_readers_against_the_order(lib)
    again = pickle.loads(pickle.dumps(g))
    back = next(iter(again.nodes))
    return [names(x.users), names(back.users), str(again) == str(g)]


@program(differs="args-checked", ours=("TypeError", []))
def nodes_in_keys_of_dicts_are_refused(lib: Lib) -> Seen:
    g, x = inputs(lib, "x")
    made: list[Made] = []

    def make() -> None:
        made.append(g.call_function(dict, ({x: 1},)))

    return kind(error(make)), [names(node._input_nodes) for node in made]


@program(differs="copies-keep-tracer-extras", ours={"depth": 1})
def a_deep_copy_keeps_the_options_of_its_tracer(lib: Lib) -> Seen:
    g = lib.Graph(tracer_extras={"depth": 1})
    g.output(None)
    return copy.deepcopy(g)._tracer_extras


@program(differs="signature-of-nonzero", ours=2)
def signatures_of_an_operator_with_a_table_of_exceptions(lib: Lib) -> Seen:
    schemas = importlib.import_module(f"{lib.__name__}.operator_schemas")
    found = schemas.get_signature_for_torch_op(torch.nonzero)
    return None if found is None else len(found)


@program(differs="arguments-called-from", ours=2)
def arguments_of_an_operator_that_has_one_called_from(lib: Lib) -> Seen:
    schemas = importlib.import_module(f"{lib.__name__}.operator_schemas")
    x = torch.zeros(2)
    pair = schemas.normalize_function(
        torch.ops.aten.uniform.out, (x, 0.0, 1.0), {"out": x}
    )
    return None if pair is None else len(pair.kwargs)


@program(differs="wrappers-of-operators", ours=None)
def arguments_of_an_object_around_an_operator(lib: Lib) -> Seen:
    class Around:
        _op = torch.ops.aten.relu.default

        def __call__(self, x: torch.Tensor, *rest: object) -> torch.Tensor:
            return torch.relu(x)

    schemas = importlib.import_module(f"{lib.__name__}.operator_schemas")
    pair = schemas.normalize_function(Around(), (torch.zeros(2),))
    return None if pair is None else len(pair.args)
