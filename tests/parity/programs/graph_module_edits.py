"""Editing graph modules: submodules, hooks, checks, copies."""

from __future__ import annotations

import copy
from typing import no_type_check

import torch
from torch import nn

from tests.parity.harness import Lib, Seen, error, program, show
from tests.parity.programs._subjects import (
    AnyValue,
    Inner,
    Outer,
    Overview,
    lines,
)


def modules_of(gm: AnyValue) -> list[str]:
    """The dotted names of a module's submodules."""
    return [name for name, _ in gm.named_modules() if name]


@program()
def submodules_are_added_and_deleted_by_path(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(Outer())
    added = [
        gm.add_submodule("extra", nn.ReLU()),
        gm.add_submodule("a.b.c", nn.ReLU()),
        gm.add_submodule("foo.more", nn.Tanh()),
        gm.add_submodule("foo.l.weight.c", nn.ReLU()),
    ]
    seen = [added, modules_of(gm)]
    deleted = [
        gm.delete_submodule("a.b.c"),
        gm.delete_submodule("a.b.c"),
        gm.delete_submodule("missing.at.all"),
        gm.delete_submodule("foo.l.weight"),
        gm.delete_submodule("foo.more"),
    ]
    return [*seen, deleted, modules_of(gm), gm(torch.ones(2))]


@program()
def unused_submodules_are_deleted_together(lib: Lib) -> Seen:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = nn.Linear(2, 2), nn.Linear(2, 2)
            self.deep, self.read = Outer(), nn.Linear(2, 2)

        @no_type_check
        def forward(self, x):
            return self.deep(self.used(x)) + self.read.weight

    gm = lib.symbolic_trace(Both())
    gm.add_submodule("added.deep", nn.ReLU())
    gm.add_submodule("deep.other", nn.ReLU())
    gm.add_submodule("used.child", nn.ReLU())
    before = modules_of(gm)
    gm.delete_all_unused_submodules()
    gm.graph.lint()
    return [before, modules_of(gm), gm.code]


@program()
def submodules_of_a_called_module_count_as_used(lib: Lib) -> Seen:
    g = lib.Graph()
    g.output(g.call_module("outer", (g.placeholder("x"),)))
    gm = lib.GraphModule({"outer": Outer()}, g)
    gm.delete_all_unused_submodules()
    kept = modules_of(gm)
    call = list(g.nodes)[1]
    call.replace_all_uses_with(call.args[0])
    g.erase_node(call)
    gm.delete_all_unused_submodules()
    return [kept, modules_of(gm)]


@program()
def hooks_on_creating_and_erasing_nodes(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: torch.relu(x))
    events: list[object] = []

    def created(node: AnyValue) -> None:
        there = any(n is node for n in gm.graph.nodes)
        events.append(("created", node.name, there, str(node.args)))

    def erased(node: AnyValue) -> None:
        events.append(("erased", node.name, node._erased))

    gm._register_create_node_hook(created)
    gm._register_erase_node_hook(erased)
    x, relu, _ = gm.graph.nodes
    with gm.graph.inserting_after(relu):
        new = gm.graph.call_function(torch.neg, (x,))
    gm.graph.erase_node(new)
    gm._unregister_create_node_hook(created)
    gm._unregister_erase_node_hook(erased)
    with gm.graph.inserting_after(relu):
        gm.graph.erase_node(gm.graph.call_function(torch.neg, (x,)))
    return [
        *events,
        error(lambda: gm._register_create_node_hook(3)).partition(":")[0],
    ]


@program()
def a_hook_on_replacing_nodes(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: torch.relu(x) + torch.relu(x))
    events: list[tuple[str, str, str]] = []

    def replaced(*, old: AnyValue, new: str, user: AnyValue) -> None:
        events.append((old.name, new, user.name))

    def fail() -> None:
        with gm._set_replace_hook(replaced):
            raise KeyError("inside")

    x, first, second, add, _ = gm.graph.nodes
    with gm._set_replace_hook(replaced):
        second.replace_all_uses_with(first)
        add.args = (first, x)
        add.name = "total"
        first.replace_input_with(x, second)
    raised = error(fail)
    second.replace_all_uses_with(x)
    return [events, raised, lines(gm.graph)]


@program()
def hooks_come_along_in_deep_copies(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: torch.relu(x))
    events: list[str] = []
    copies: list[AnyValue] = []

    def created(node: AnyValue) -> None:
        events.append(f"created {node.name}")

    gm._register_create_node_hook(created)
    gm._register_deepcopy_hook(copies.append)
    other = copy.deepcopy(gm)
    other.graph.call_function(torch.neg, (next(iter(other.graph.nodes)),))
    gm._unregister_deepcopy_hook(copies.append)
    copy.deepcopy(gm)
    return [events, len(copies), copies[0] is other]


def with_extras(lib: Lib) -> AnyValue:
    """A GraphModule with attributes that its graph does not refer to."""
    gm = lib.symbolic_trace(Outer())
    gm.extra = nn.Linear(2, 2)
    gm.note = "a plain attribute"
    gm.register_buffer("unused", torch.ones(1))
    return gm.eval()


@program(
    differs="copies-keep-attributes",
    ours=[[True, True, True], [True, True, True], False],
)
def copies_keep_what_the_user_added(lib: Lib) -> Seen:
    gm = with_extras(lib)
    deep, shallow = copy.deepcopy(gm), copy.copy(gm)
    names = ("extra", "note", "unused")
    return [
        [hasattr(deep, n) for n in names],
        [hasattr(shallow, n) for n in names],
        shallow.training,
    ]


@program()
def attributes_the_user_asked_to_preserve(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: x + 1)
    gm.meta["_user_preserved_attributes"] = {"note": "kept"}
    return [copy.deepcopy(gm).note, hasattr(gm, "note")]


@program(claims=("graphmodule-is-module",))
def training_flags_follow_train_and_eval(lib: Lib) -> Seen:
    layers = nn.Sequential(nn.Dropout(1.0), Inner()).eval()
    gm = lib.symbolic_trace(layers)
    x = torch.ones(2)
    quiet = gm(x)
    gm.train()
    return [
        lib.symbolic_trace(layers).training,
        [m.training for m in gm.modules()],
        torch.equal(quiet, gm(x)),
        [m.training for m in gm.eval().modules()],
        lib.symbolic_trace(Outer()).training,
    ]


@program(claims=("graphmodule-is-module",))
def parameters_move_and_load_like_any_modules(lib: Lib) -> Seen:
    model = Overview()
    gm = lib.symbolic_trace(model)
    state = {
        name: torch.zeros_like(v) for name, v in model.state_dict().items()
    }
    loaded = gm.load_state_dict(state)
    gm.double()
    return [
        sorted(gm.state_dict()) == sorted(model.state_dict()),
        str(loaded),
        str(gm(torch.ones(3, 4, dtype=torch.float64)).dtype),
        len(list(gm.parameters())),
        str(model.linear.weight.dtype),
    ]


@program(claims=("graphmodule-graph-assignment",))
def nested_graph_modules_are_recompiled_together(lib: Lib) -> Seen:
    inner = lib.symbolic_trace(lambda x: torch.neg(x))
    g = lib.Graph()
    g.output(g.call_module("inner", (g.placeholder("x"),)))
    outer = lib.GraphModule({"inner": inner}, g)
    next(
        n for n in inner.graph.nodes if n.target is torch.neg
    ).target = torch.abs
    stale = outer(torch.tensor(2.0))
    outer.recompile()
    return [stale, outer(torch.tensor(2.0)), inner.code]


@program(claims=("graphmodule-root-module",))
def a_new_graph_that_needs_more_of_the_root(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: x + 1)
    gm.add_submodule("act", nn.ReLU())
    x, add, _ = gm.graph.nodes
    with gm.graph.inserting_after(add):
        act = gm.graph.call_module("act", (add,))
    add.replace_all_uses_with(act, delete_user_cb=lambda user: user is not act)
    gm.graph.lint()
    gm.recompile()
    return [*show(gm, torch.tensor(-3.0)), x.name]
