"""Stage 02: erasing nodes, and eliminating dead code."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable

import pytest
import torch

from fx.graph import Graph
from fx.node import Node
from fx.use_def.protocols import ReplaceHook
from stages.checking import check, linear, raising, same, uses_intact, working


def residual() -> Graph:
    """Residual's graph, built node by node."""
    graph = Graph()
    x = graph.placeholder("x")
    linear = graph.call_module("linear", (x,))
    add = graph.call_function(operator.add, (linear, x))
    graph.output(graph.call_function(torch.relu, (add,)))
    return graph


def find(graph: Graph, name: str) -> Node:
    """The node of that name."""
    return next(node for node in graph.nodes if node.name == name)


def names(graph: Graph) -> str:
    """The names of a graph's nodes, in order."""
    return " ".join(node.name for node in graph.nodes)


def with_dead_chain() -> tuple[Graph, Node, Node]:
    """Residual with neg(x) and cos(neg) before its output, as dead code."""
    graph = residual()
    with graph.inserting_before(graph.output_node()):
        neg = graph.call_function(torch.neg, (find(graph, "x"),))
        cos = graph.call_function(torch.cos, (neg,))
    return graph, neg, cos


# -- erasing -----------------------------------------------------------------


@pytest.mark.exercise("graph.Graph.erase_node")
def test_what_is_erased_is_not_found() -> None:
    graph = Graph()
    erased = graph.call_function(torch.relu, (graph.placeholder("x"),))
    graph.find_nodes(op="call_function", target=torch.relu)
    graph.erase_node(erased)
    check(
        not graph.find_nodes(op="call_function", target=torch.relu),
        "relu was erased, and `find_nodes` still finds it: the graph's table "
        "of nodes has to forget it (`self._table.drop`).",
    )


@pytest.mark.exercise("graph.Graph.erase_node")
def test_a_node_without_users_is_erased() -> None:
    graph, _, cos = with_dead_chain()
    graph.erase_node(cos)
    same(names(graph), "x linear add relu neg output", "cos was erased.")
    same(len(graph.nodes), 6, "One of seven nodes was erased.")


@pytest.mark.exercise("graph.Graph.erase_node")
def test_the_inputs_lose_an_erased_user() -> None:
    graph, neg, cos = with_dead_chain()
    graph.erase_node(cos)
    same(
        list(neg.users),
        [],
        "cos was erased but is still in neg.users, so neg could never be "
        "erased. Erasing removes the edges as well as the node.",
    )
    graph.erase_node(neg)
    uses_intact(graph, "cos and neg were erased, one after the other.")
    same(
        cos.all_input_nodes + neg.all_input_nodes,
        [],
        "An erased node has no inputs: `_drop_inputs` changes its arguments "
        "as well as the users of its inputs.",
    )


@pytest.mark.exercise("graph.Graph.erase_node")
def test_a_node_with_users_stays() -> None:
    graph = residual()
    with raising(
        RuntimeError,
        "add",
        "add uses linear, so erasing linear must be refused, or add would use "
        "a value that is never computed.",
    ):
        graph.erase_node(find(graph, "linear"))
    same(names(graph), "x linear add relu output", "Nothing may change.")
    uses_intact(graph, "A refused call must not change any edge.")


@pytest.mark.exercise("graph.Graph.erase_node")
def test_only_a_node_of_this_graph_can_be_erased() -> None:
    _, _, cos = with_dead_chain()
    other = residual()
    with raising(
        RuntimeError,
        "wrong graph",
        "Erasing a node of another graph must be refused.",
    ):
        other.erase_node(cos)
    same(len(other.nodes), 5, "A refused call must not change the count.")
    cos.graph.erase_node(cos)
    with raising(
        RuntimeError,
        "wrong graph",
        "A node that was erased from another graph must be refused, too: only "
        "a node of this graph can be one that was collected twice.",
    ):
        other.erase_node(cos)


class Owner(torch.nn.Module):
    """A module that a graph can belong to."""

    def __init__(self) -> None:
        super().__init__()
        self._replace_hooks: list[ReplaceHook] = []
        self._create_node_hooks: list[Callable[[Node], object]] = []
        self._erase_node_hooks: list[Callable[[Node], object]] = []


class Listener(Owner):
    """An owner with an erase hook that records its calls."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.heard: list[str] = []
        self.graph = graph
        self.objects = False
        self._erase_node_hooks.append(self.hear)

    def hear(self, node: Node) -> None:
        """Record the graph's nodes, and perhaps make relu use this one."""
        self.heard.append(f"{node}{node.args}: {names(self.graph)}")
        if self.objects:
            find(self.graph, "relu").args = (node,)


@pytest.mark.exercise("graph.Graph.erase_node")
def test_erase_hooks_are_called_before_the_node_is_gone() -> None:
    graph, _, cos = with_dead_chain()
    owner = Listener(graph)
    graph.owning_module = owner
    graph.erase_node(cos)
    same(
        owner.heard,
        ["cos(neg,): x linear add relu neg cos output"],
        "The graph's owner has an erase hook. It must be called once, while "
        "the node is still in the graph and has its arguments.",
    )


@pytest.mark.exercise("graph.Graph.erase_node")
def test_erase_hooks_are_not_called_if_the_node_must_stay() -> None:
    graph = residual()
    owner = Listener(graph)
    graph.owning_module = owner
    with raising(RuntimeError, "add", "add uses linear, so it must stay."):
        graph.erase_node(find(graph, "linear"))
    same(
        owner.heard,
        [],
        "linear has a user and was not erased, but the erase hook was called: "
        "check before the hooks as well as after them.",
    )


@pytest.mark.exercise("graph.Graph.erase_node")
def test_a_node_that_is_erased_twice_is_a_warning() -> None:
    graph, _, cos = with_dead_chain()
    graph.erase_node(cos)
    with pytest.warns(UserWarning, match="cos is erased already") as found:
        graph.erase_node(cos)
    same(len(graph.nodes), 6, "The second time, nothing was erased.")
    same(
        found[0].filename,
        __file__,
        "The warning must point to the line that called erase_node, so warn "
        "with stacklevel=2.",
    )


@pytest.mark.exercise("graph.Graph.erase_node")
def test_an_owner_may_be_false() -> None:
    class Empty(Listener):
        def __len__(self) -> int:
            return 0

    graph, _, cos = with_dead_chain()
    owner = Empty(graph)
    graph.owning_module = owner
    graph.erase_node(cos)
    same(
        len(owner.heard),
        1,
        "The owner's class has a `__len__` that gives 0, as an empty "
        "nn.Sequential does, so its truth value is false. It is an owner all "
        "the same, and its hook must be called: ask `is not None`.",
    )


@pytest.mark.exercise("graph.Graph.erase_node")
def test_an_erase_hook_may_take_itself_out() -> None:
    graph, _, cos = with_dead_chain()
    owner = Listener(graph)

    def once(node: Node) -> None:
        owner._erase_node_hooks.remove(once)

    owner._erase_node_hooks.insert(0, once)
    graph.owning_module = owner
    graph.erase_node(cos)
    same(
        len(owner.heard),
        1,
        "The owner has two erase hooks, and the first takes itself out of the "
        "list when it is called. The second must be called all the same: "
        "`_tell_owner` goes through a copy of the list.",
    )


@pytest.mark.exercise("graph.Graph.erase_node")
def test_an_erase_hook_can_erase_the_node_itself() -> None:
    graph, _, cos = with_dead_chain()
    owner = Owner()
    owner._erase_node_hooks.append(graph.nodes.erase)
    graph.owning_module = owner
    with raising(
        RuntimeError,
        "Tried to erase Node cos, which is erased already",
        "The erase hook erased the node itself. Call `_check_erasable` again "
        "after the hooks, because it checks for this too.",
    ):
        graph.erase_node(cos)
    same(len(graph.nodes), 6, "One of seven nodes was erased, by the hook.")


@pytest.mark.exercise("graph.Graph.erase_node")
def test_an_erase_hook_can_use_the_node_after_all() -> None:
    graph, _, cos = with_dead_chain()
    owner = Listener(graph)
    owner.objects = True
    graph.owning_module = owner
    with raising(
        RuntimeError,
        "relu",
        "The erase hook made relu use the node that is being erased. The node "
        "has a user now, so check again after the hooks.",
    ):
        graph.erase_node(cos)
    check("cos" in names(graph), "Erasing cos was refused, but cos is gone.")


# -- dead code ---------------------------------------------------------------


@pytest.mark.exercise("graph.Graph.eliminate_dead_code")
def test_live_code_stays() -> None:
    graph = residual()
    changed = graph.eliminate_dead_code()
    same(
        names(graph),
        "x linear add relu output",
        "Every node of Residual has users or is its output, so all must stay.",
    )
    same(changed, False, "Nothing was erased, so the result must be False.")


@pytest.mark.exercise("graph.Graph.eliminate_dead_code")
def test_a_dead_chain_is_erased_in_one_call() -> None:
    graph, *_ = with_dead_chain()
    changed = graph.eliminate_dead_code()
    same(
        names(graph),
        "x linear add relu output",
        "cos has no users, and neg has only cos, so both are dead. neg loses "
        "its user when cos is erased: the walk must come to neg after cos.",
    )
    same(changed, True, "Two nodes were erased, so the result must be True.")
    uses_intact(graph, "cos and neg must be gone from all users.")


@pytest.mark.exercise("graph.Graph.eliminate_dead_code")
def test_the_nodes_are_walked_once() -> None:
    def clean(size: int) -> None:
        graph = residual()
        value = find(graph, "x")
        with graph.inserting_before(graph.output_node()):
            for _ in range(size):
                value = graph.call_function(torch.neg, (value,))
        graph.eliminate_dead_code()
        same(
            len(graph.nodes),
            5,
            "Five nodes must be left: the whole chain is dead.",
        )

    linear(
        clean,
        "A chain of dead nodes that is four times as long takes far more than "
        "four times the work: your loop walks over the graph again and again. "
        "One walk from the last node to the first is enough, because each "
        "node comes after all its users.",
    )


@pytest.mark.exercise("graph.Graph.eliminate_dead_code")
def test_the_walk_is_over_the_graph_itself() -> None:
    graph = residual()
    with graph.inserting_before(graph.output_node()):
        sin = graph.call_function(torch.sin, (find(graph, "x"),))
        graph.call_function(torch.cos, (find(graph, "x"),))
    asked: list[str] = []

    def erases_sin(node: Node) -> bool:
        asked.append(node.name)
        if node.name == "cos":
            graph.erase_node(sin)
        return node.op == "output"

    sentence = (
        "The caller's function erased sin when it was asked of cos, and then "
        "your walk came to sin, which is not in the graph any more: you walk "
        "over a copy of the nodes. `self._nodes` itself can be walked over "
        "while nodes are erased."
    )
    with working(sentence):
        graph.eliminate_dead_code(erases_sin)
    check("sin" not in asked, sentence)


@pytest.mark.exercise("graph.Graph.eliminate_dead_code")
def test_nodes_with_a_side_effect_stay() -> None:
    graph = residual()
    with graph.inserting_before(find(graph, "linear")):
        graph.placeholder("unused")
    with graph.inserting_before(graph.output_node()):
        graph.call_method("add_", (find(graph, "x"), 1))
        graph.call_function(print, (find(graph, "x"),))
    graph.eliminate_dead_code()
    same(
        names(graph),
        "x unused linear add relu add_ print_1 output",
        "unused, add_ and print_1 have no users, but each has another purpose: "
        "unused is a parameter in the signature, add_ writes to the caller's "
        "x, and print_1 prints. All must stay.",
    )


def users_own(value: object) -> object:
    """A function whose side effects fx does not know."""
    return value


@pytest.mark.exercise("graph.Graph.eliminate_dead_code")
def test_the_caller_decides_about_unknown_functions() -> None:
    graph = residual()
    with graph.inserting_before(graph.output_node()):
        graph.call_function(users_own, (find(graph, "x"),))
    graph.eliminate_dead_code(unknown="keep")
    check(
        "users_own" in names(graph),
        'With unknown="keep", a call of an unknown function must stay.',
    )
    graph.eliminate_dead_code()
    check(
        "users_own" not in names(graph),
        'By default (unknown="drop"), a dead call of an unknown function must '
        "be erased.",
    )


@pytest.mark.exercise("graph.Graph.eliminate_dead_code")
def test_the_caller_may_decide_about_everything() -> None:
    graph, *_ = with_dead_chain()
    changed = graph.eliminate_dead_code(lambda node: True)
    check(
        not changed and "cos" in names(graph),
        "is_impure_node returned True for every node, but one is gone.",
    )
    with graph.inserting_before(graph.output_node()):
        graph.call_method("add_", (find(graph, "x"), 1))
    graph.eliminate_dead_code(lambda node: node.op == "output")
    same(
        names(graph),
        "x linear add relu output",
        "is_impure_node returned True only for the output. It replaces what "
        "fx knows of side effects, so add_ must be erased too.",
    )


@pytest.mark.exercise("graph.Graph.eliminate_dead_code")
def test_dead_code_is_not_only_calls() -> None:
    graph = residual()
    with graph.inserting_before(find(graph, "linear")):
        graph.placeholder("unused")
        graph.get_attr("linear.weight")
    graph.eliminate_dead_code(lambda node: node.op == "output")
    same(
        names(graph),
        "x linear add relu output",
        "is_impure_node returned True only for the output, so a placeholder "
        "and a get_attr node without users must be erased too: the caller "
        "decides about nodes of every opcode.",
    )


@pytest.mark.exercise("graph.Graph.eliminate_dead_code")
def test_a_broken_graph_is_left_alone() -> None:
    graph, *_ = with_dead_chain()
    find(graph, "x").prepend(find(graph, "relu"))
    with raising(
        RuntimeError,
        "add",
        "relu was moved before the value that it uses. Call "
        "lint.structure_problems before you erase anything, because a broken "
        "graph may have wrong users.",
    ):
        graph.eliminate_dead_code()
    check("cos" in names(graph), "Nothing may be erased from a broken graph.")


@pytest.mark.exercise("graph.Graph.eliminate_dead_code")
def test_a_graph_without_an_output_can_be_cleaned() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    graph.call_function(torch.neg, (x,))
    try:
        graph.eliminate_dead_code()
    except RuntimeError as error:
        check(
            "no output" not in str(error),
            "This graph has no output yet, but its edges are right, which is "
            "enough here: call lint.structure_problems, not lint.problems.",
        )
        raise
    same(names(graph), "x", "neg has no users, so it must be erased.")


@pytest.mark.exercise("graph.Graph.eliminate_dead_code")
def test_a_dead_chain_may_be_long() -> None:
    graph = residual()
    with graph.inserting_before(graph.output_node()):
        last = find(graph, "x")
        for _ in range(2 * sys.getrecursionlimit()):
            last = graph.call_function(torch.neg, (last,))
    with working(
        "Nothing uses the last of thousands of neg, each of which uses the "
        "one before. A function that erases a node and calls itself for the "
        "inputs goes too deep for Python: walk backwards over the nodes, "
        "where users come before their inputs."
    ):
        graph.eliminate_dead_code()
    same(names(graph), "x linear add relu output", "All neg were dead.")


class Child(torch.nn.Module):
    """A module with a graph, like the GraphModule of stage 05."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.recompiled = ""

    def recompile(self) -> None:
        """Remember the graph that the code is made from."""
        self.recompiled = names(self.graph)


def fetching(*children: Child) -> Graph:
    """Residual, whose relu also takes child modules of the owner."""
    owner, graph = Owner(), residual()
    owner.add_module("linear", torch.nn.Linear(4, 4))
    graph.owning_module = owner
    relu = find(graph, "relu")
    for number, child in enumerate(children):
        owner.add_module(f"child{number}", child)
        with graph.inserting_before(relu):
            relu.args = (*relu.args, graph.get_attr(f"child{number}"))
    return graph


@pytest.mark.exercise("graph.Graph.eliminate_dead_code")
def test_graphs_of_children_are_cleaned_too() -> None:
    inner, *_ = with_dead_chain()
    child = Child(inner)
    graph = fetching(child)
    changed = graph.eliminate_dead_code()
    same(
        names(inner),
        "x linear add relu output",
        "A get_attr node fetches a child module that has a graph: dead code "
        "must be erased there too.",
    )
    same(
        child.recompiled,
        names(inner),
        "The child's graph changed: recompile the child, after its graph was "
        "cleaned.",
    )
    same(changed, True, "Nodes of the child's graph were erased.")
    with inner.inserting_before(find(inner, "x")):
        inner.placeholder("y")
    graph.eliminate_dead_code()
    same(
        child.recompiled,
        names(inner),
        "The child's graph was edited and not recompiled, and had no dead "
        "code. Recompile the child in any case.",
    )


@pytest.mark.exercise("graph.Graph.eliminate_dead_code")
def test_graphs_of_children_are_cleaned_with_the_same_settings() -> None:
    inner, *_ = with_dead_chain()
    before = names(inner)
    fetching(Child(inner)).eliminate_dead_code(lambda node: True)
    same(
        names(inner),
        before,
        "The caller says that every node has a side effect: clean the child "
        "with the same settings, `is_impure_node` and `unknown`.",
    )
    with inner.inserting_before(inner.output_node()):
        inner.call_function(users_own, (find(inner, "x"),))
    fetching(Child(inner)).eliminate_dead_code(unknown="keep")
    check(
        "users_own" in names(inner),
        'With unknown="keep", a call of an unknown function must stay in the '
        "child's graph, too.",
    )
    with inner.inserting_before(inner.output_node()):
        inner.call_method("add_", (find(inner, "x"), 1))
    fetching(Child(inner)).eliminate_dead_code(effects="torch")
    check(
        "add_" not in names(inner),
        'With effects="torch", a write whose result nothing uses is erased '
        "as torch.fx does, and in the child's graph, too.",
    )


@pytest.mark.exercise("graph.Graph.eliminate_dead_code")
def test_every_graph_is_cleaned_whatever_was_erased_elsewhere() -> None:
    first, *_ = with_dead_chain()
    second, *_ = with_dead_chain()
    graph = fetching(Child(first), Child(residual()), Child(second))
    with graph.inserting_before(graph.output_node()):
        graph.call_function(torch.neg, (find(graph, "x"),))
    graph.eliminate_dead_code()
    same(
        [names(inner) for inner in (first, second)],
        ["x linear add relu output"] * 2,
        "There was dead code in the graph itself and in two child graphs: "
        "each graph must be cleaned, even if something was erased before.",
    )
    clean = fetching(Child(residual()))
    with clean.inserting_before(clean.output_node()):
        clean.call_function(torch.neg, (find(clean, "x"),))
    same(
        clean.eliminate_dead_code(),
        True,
        "A node of the graph itself was erased. The child's graph, which had "
        "no dead code, must not make the result False.",
    )
