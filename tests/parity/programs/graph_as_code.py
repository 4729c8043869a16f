"""Graphs as functions: traced, edited, written out as code and run."""

from __future__ import annotations

import contextlib
import copy
import io
import math
import operator
from typing import no_type_check

import torch
from torch import nn
from torch.nn import functional

from tests.parity.harness import Lib, Made, Seen, error, names, program, show
from tests.parity.programs._subjects import Overview

INPUT = torch.linspace(-2, 2, 6).reshape(2, 3)


class TopK(nn.Module):
    """The module of the documents' Graph entry."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.param = nn.Parameter(torch.rand(3, 4))
        self.linear = nn.Linear(4, 5)

    @no_type_check
    def forward(self, x):
        return torch.topk(
            torch.sum(self.linear(x + self.linear.weight).relu(), dim=-1), 3
        )


class LinearRelu(nn.Module):
    """The module of the worked replacement example."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(3, 2)

    @no_type_check
    def forward(self, x):
        return torch.relu(self.linear(x))


def nested() -> nn.Module:
    """A module with the parameter foo.bar.baz and the module foo.bar."""
    root = nn.Module()
    root.foo = nn.Module()
    torch.manual_seed(0)
    root.foo.bar = nn.Linear(3, 3)
    root.foo.bar.baz = nn.Parameter(torch.ones(3))
    return root


def double(value: Made) -> Made:
    """A user's function."""
    return value + value


@program(claims=("graph-denotes-function", "graph-build-example"))
def a_graph_built_by_hand_runs(lib: Lib) -> Seen:
    g = lib.Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    total = g.call_function(operator.add, (x, y))
    g.output(g.call_function(torch.relu, (total,)))
    gm = lib.GraphModule(nn.Module(), g)
    by_hand = torch.relu(INPUT + 1)
    return show(gm, INPUT, 1), torch.equal(gm(INPUT, 1), by_hand)


@program(claims=("graph-build-example", "graph-denotes-function"))
def python_code_of_a_graph_built_by_hand(lib: Lib) -> Seen:
    g = lib.Graph()
    x, y = g.placeholder("x"), g.placeholder("y")
    total = g.call_function(operator.add, (x, y))
    g.output(g.call_function(torch.relu, (total,)))
    code = g.python_code("self")
    return code.src, sorted(code.globals)


@program(claims=("opcode-placeholder", "opcode-placeholder-default"))
def placeholders_become_parameters(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    y = g.placeholder("y", default_value=3)
    z = g.placeholder("z", default_value=None)
    g.output((x, y, z))
    gm = lib.GraphModule(nn.Module(), g)
    return gm.code, gm(1), gm(1, 2), gm(1, z=5), gm(y=7, x=0)


@program(claims=("opcode-placeholder-default",))
def defaults_are_traced(lib: Lib) -> Seen:
    @no_type_check
    def function(x, y=3, *, z=None):
        return x + y

    gm = lib.symbolic_trace(function)
    args = [(n.name, repr(n.args)) for n in gm.graph.nodes][:3]
    return args, str(gm.graph), gm.code, gm(1), gm(1, 5)


@program(claims=("opcode-get-attr",))
def get_attr_fetches_a_dotted_attribute(lib: Lib) -> Seen:
    g = lib.Graph()
    g.output(g.get_attr("foo.bar.baz"))
    return show(lib.GraphModule(nested(), g)), lib.GraphModule(nested(), g)()


@program(claims=("opcode-call-function",))
def every_kind_of_function_is_called(lib: Lib) -> Seen:
    seen = []
    for function, value in (
        (torch.neg, INPUT),
        (double, 4),
        (len, "text"),
        (operator.neg, 3),
        (math.sqrt, 9.0),
        (functional.relu, INPUT),
        (torch.ops.aten.neg.default, INPUT),
    ):
        g = lib.Graph()
        g.output(g.call_function(function, (g.placeholder("x"),)))
        gm = lib.GraphModule(nn.Module(), g)
        seen.append((gm.code, gm(value)))
    return seen


@program(claims=("opcode-call-method",))
def a_method_is_called_on_the_first_argument(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    upper = g.call_method("upper", (x,))
    g.output(g.call_method("split", (upper, "A"), {"maxsplit": 1}))
    gm = lib.GraphModule(nn.Module(), g)
    return gm.code, gm("banana")


@program(claims=("opcode-call-module",))
def a_submodule_is_called(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    g.output(g.call_module("foo.bar", (x,)))
    gm = lib.GraphModule(nested(), g)
    same = torch.equal(gm(INPUT), nested().foo.bar(INPUT))  # type: ignore[union-attr,operator]
    return gm.code, same, names(g.nodes)


@program(claims=("opcode-output",))
def output_is_the_return_statement(lib: Lib) -> Seen:
    seen = []
    for structure in (
        lambda x, y: (x, y),
        lambda x, y: x,
        lambda x, y: [y, (x,)],
        lambda x, y: {"x": x, "one": [1, y]},
        lambda x, y: None,
    ):
        g = lib.Graph()
        g.output(structure(g.placeholder("x"), g.placeholder("y")))
        gm = lib.GraphModule(nn.Module(), g)
        seen.append((gm.code, gm(1, 2)))
    return seen


@program(claims=("node-type-expr",))
def types_become_annotations(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x", type_expr=torch.Tensor)
    y = g.placeholder("y", type_expr=int, default_value=2)
    total = g.call_function(operator.add, (x, y), type_expr=torch.Tensor)
    size = g.call_method("numel", (total,), type_expr=int)
    g.output((total, size), type_expr=tuple[torch.Tensor, int])
    return show(lib.GraphModule(nn.Module(), g), INPUT)


@program(claims=("node-name-candidate", "node-names-unique"))
def names_of_nodes_become_variables(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x")
    one = g.create_node("call_function", torch.neg, (x,), name="my name")
    two = g.create_node("call_function", torch.neg, (one,), name="class")
    g.output(g.create_node("call_function", torch.neg, (two,), name="my_name"))
    return show(lib.GraphModule(nn.Module(), g), INPUT)


@program(claims=("node-name-first-suffix", "graph-str-users-count"))
def the_overview_module_is_traced(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(Overview())
    return names(gm.graph.nodes), show(gm, torch.ones(3, 4))


@program(claims=("graph-docstring-example", "graph-str-header"))
def the_topk_module_is_traced(lib: Lib) -> Seen:
    model = TopK()
    gm = lib.symbolic_trace(model)
    x = torch.rand(5, 4)
    kinds = [(n.op, n.format_node()) for n in gm.graph.nodes]
    same = all(
        torch.equal(ours, theirs)
        for ours, theirs in zip(gm(x), model(x), strict=True)
    )
    return kinds, str(gm.graph), same


@program(claims=("node-meta",))
def traced_nodes_know_the_modules_they_are_in(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(nn.Sequential(nn.Sequential(LinearRelu())))
    stacks = []
    for node in gm.graph.nodes:
        stack = node.meta.get("nn_module_stack", {})
        stacks.append(
            [
                (key, path, getattr(kind, "__name__", kind))
                for key, (path, kind) in stack.items()
            ]
        )
    return names(gm.graph.nodes), stacks


@program(claims=("node-meta",))
def shape_propagation_writes_tensor_meta(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(LinearRelu())
    lib.passes.shape_prop.ShapeProp(gm).propagate(INPUT)
    seen = []
    for node in gm.graph.nodes:
        meta = node.meta["tensor_meta"]
        seen.append((list(meta.shape), str(meta.dtype), list(meta.stride)))
    return seen


@program(claims=("replace-target-recipe",))
def replaced_targets_take_effect_on_recompile(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(LinearRelu())
    for node in gm.graph.nodes:
        if node.op == "call_function" and node.target is torch.relu:
            node.target = torch.sigmoid
    stale = gm(INPUT)
    gm.graph.lint()
    gm.recompile()
    by_hand = torch.sigmoid(gm.linear(INPUT))
    return stale, torch.equal(gm(INPUT), by_hand), show(gm, INPUT)


@program(claims=("relu-to-gelu-example", "nodes-mutation-while-iterating"))
def relu_becomes_gelu(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(LinearRelu())
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        for node in gm.graph.nodes:
            print(node.op, node.name, str(node.target)[:12])
    for node in gm.graph.nodes:
        if node.op == "call_function" and node.target == torch.relu:
            with gm.graph.inserting_after(node):
                new = gm.graph.call_function(
                    functional.gelu, args=node.args, kwargs=node.kwargs
                )
            node.replace_all_uses_with(new)
            gm.graph.erase_node(node)
    gm.graph.lint()
    gm.recompile()
    same = torch.equal(gm(INPUT), functional.gelu(gm.linear(INPUT)))
    return out.getvalue(), str(gm.graph), gm.code, same


@program(claims=("rauw-insert-recipe",))
def an_operation_is_added_behind_a_traced_one(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(Overview())
    for node in gm.graph.nodes:
        if node.op == "call_module":
            with gm.graph.inserting_after(node):
                new = gm.graph.call_function(torch.tanh, (node,))
            node.replace_all_uses_with(
                new, delete_user_cb=lambda user, new=new: user is not new
            )
    gm.graph.lint()
    gm.recompile()
    return show(gm, torch.ones(3, 4))


@program(claims=("node-copy", "graph-copy", "graph-copy-val-map"))
def copies_of_a_traced_graph_compute_the_same(lib: Lib) -> Seen:
    model = TopK()
    gm = lib.symbolic_trace(model)
    one, two = lib.Graph(), lib.Graph()
    remap: dict[Made, Made] = {}
    for node in gm.graph.nodes:
        remap[node] = one.node_copy(node, lambda n: remap[n])
    two.output(two.graph_copy(gm.graph, {}))
    x = torch.rand(5, 4)
    seen = []
    for g in (one, two, copy.deepcopy(gm.graph)):
        g.lint()
        values = lib.GraphModule(model, g)(x)
        same = all(map(torch.equal, values, model(x)))
        seen.append((str(g) == str(gm.graph), same))
    return seen


@program(claims=("graph-copy-val-map",))
def a_traced_graph_is_copied_onto_one_input(lib: Lib) -> Seen:
    @no_type_check
    def function(x, y):
        return torch.relu(x) + y

    traced = lib.symbolic_trace(function)
    g = lib.Graph()
    one = g.placeholder("one")
    x, y, *_ = traced.graph.nodes
    val_map = {x: one, y: one}
    g.output(g.graph_copy(traced.graph, val_map))
    mapped = sorted((n.name, m.name) for n, m in val_map.items())
    return mapped, show(lib.GraphModule(nn.Module(), g), INPUT)


@program(claims=("create-node-steps", "erase-node"))
def hooks_hear_of_creation_and_erasure(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(LinearRelu())
    heard: list[object] = []

    def made(node: Made) -> None:
        there = any(n is node for n in gm.graph.nodes)
        heard.append(("made", node.name, there, names(node.all_input_nodes)))

    def erased(node: Made) -> None:
        heard.append(("erased", node.name, node._erased))

    gm._register_create_node_hook(made)
    gm._register_erase_node_hook(erased)
    linear = gm.graph.find_nodes(op="call_module")[0]
    with gm.graph.inserting_after(linear):
        extra = gm.graph.call_function(torch.abs, (linear,))
    gm.graph.erase_node(extra)
    gm._unregister_create_node_hook(made)
    gm._unregister_erase_node_hook(erased)
    gm.graph.erase_node(gm.graph.call_function(torch.abs, (linear,)))
    return heard, names(gm.graph.nodes)


@program(claims=("rauw-redirects-users", "replace-input-with"))
def hooks_hear_of_replacement_and_renaming(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(LinearRelu())
    heard: list[object] = []

    def replaced(old: Made, new: str, user: Made) -> None:
        heard.append((old.name, new, user.name))

    x, linear, relu, out = gm.graph.nodes
    with gm._set_replace_hook(replaced):
        relu.replace_all_uses_with(linear)
        out.replace_input_with(linear, relu)
        linear.name = "renamed"
    out.replace_input_with(relu, x)
    return heard, str(gm.graph)


@program()
def dead_code_goes_in_child_graph_modules_too(lib: Lib) -> Seen:
    @no_type_check
    def function(x):
        torch.abs(x)
        return torch.relu(x)

    root = nn.Module()
    root.fetched = lib.symbolic_trace(function)
    root.called = lib.symbolic_trace(function)
    g = lib.Graph()
    x = g.placeholder("x")
    g.output((g.get_attr("fetched"), g.call_module("called", (x,))))
    gm = lib.GraphModule(root, g)
    changed = (gm.graph.eliminate_dead_code(), gm.graph.eliminate_dead_code())
    children = (gm.fetched, gm.called)
    return changed, [(names(c.graph.nodes), c.code) for c in children]


@program(
    claims=("graph-denotes-function",),
    differs="no-output",
    ours="RuntimeError: the Graph has no output",
)
def a_graph_without_output_is_no_function(lib: Lib) -> Seen:
    g = lib.Graph()
    g.call_function(torch.neg, (g.placeholder("x"),))
    return error(lambda: lib.GraphModule(nn.Module(), g), chars=23)


@program(claims=("opcode-call-method",))
def methods_with_odd_names_are_called(lib: Lib) -> Seen:
    seen = []
    for name in ("a.b", "naïve", "match", "_", "__call__"):
        g = lib.Graph()
        g.output(g.call_method(name, (g.placeholder("x"), 1)))
        seen.append(lib.GraphModule(nn.Module(), g).code)
    return seen
