"""Stage 05: what each opcode writes, and what the end of a line frees."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from fractions import Fraction

import pytest
import torch

from fx.codegen.emit import Emitter, has_syntax
from fx.codegen.names import LocalNames
from fx.graph import Graph
from fx.node import Node
from fx.recording.operators import syntax_of
from fx.use_def.lint import last_users
from fx.use_def.values import Argument
from stages.checking import check, same, same_text


def write_return(
    output_args: Argument,
    variables: LocalNames,
    *,
    descs: Sequence[str] | None,
    repr_fn: Callable[[object], str],
) -> str:
    """The return statement, as the plain code generator has it."""
    return f"return {repr_fn(output_args)}"


def emitter_of(graph: Graph, root: str = "self") -> Emitter:
    """An emitter for all nodes of a graph."""
    return Emitter(graph.nodes, root, write_return)


def graph_with(*parameters: str) -> tuple[Graph, list[Node]]:
    """A graph that has nothing but parameters."""
    graph = Graph()
    return graph, [graph.placeholder(name) for name in parameters]


def residual_graph() -> Graph:
    """relu(linear(x) + x)."""
    graph, (x,) = graph_with("x")
    y = graph.call_module("linear", (x,))
    total = graph.call_function(operator.add, (y, x))
    graph.output(graph.call_function(torch.relu, (total,)))
    return graph


# -- has_syntax --------------------------------------------------------------


def syntax(
    graph: Graph, call: Callable[..., object], *args: Argument
) -> Callable[[], bool]:
    """Whether a call that is added now can be syntax, asked later."""
    node = graph.call_function(call, args)
    row = syntax_of(call)
    assert row is not None
    return lambda: has_syntax(row, node, last_users(graph.nodes))


@pytest.mark.exercise("codegen.emit.has_syntax")
class TestHasSyntax:
    def test_operands_and_nothing_else(self) -> None:
        graph, (x, y) = graph_with("x", "y")
        same(
            [
                syntax(graph, operator.add, x, y)(),
                syntax(graph, operator.neg, x)(),
                syntax(graph, operator.sub, 2, 1)(),
            ],
            [True, True, True],
            "`x + y`, `-x` and `2 - 1` are Python: operands may be constants.",
        )
        same(
            [
                syntax(graph, operator.add, x)(),
                syntax(graph, operator.neg, x, y)(),
            ],
            [False, False],
            "An operator has as many operands as its `arity` says.",
        )

    def test_a_keyword(self) -> None:
        graph, (x, y) = graph_with("x", "y")
        node = graph.call_function(operator.add, (x, y), {"alpha": 2})
        row = syntax_of(operator.add)
        assert row is not None
        same(
            has_syntax(row, node, last_users(graph.nodes)),
            False,
            "`x + y` has no place for the keyword alpha, and would lose it.",
        )

    @pytest.mark.parametrize(
        ("left", "possible"),
        [((1, 2), True), ([1], True), ("ab", True), (1, False), (None, False)],
    )
    def test_what_brackets_may_follow(
        self, left: Argument, possible: bool
    ) -> None:
        graph, (x,) = graph_with("x")
        same(
            syntax(graph, operator.getitem, left, 0)(),
            possible,
            f"`{left!r}[0]`: Python warns of brackets behind a value that "
            "cannot have any, and of no other.",
        )
        check(
            syntax(graph, operator.getitem, x, 0)(),
            "`x[0]` is what brackets are for.",
        )

    def test_in_place_on_a_constant(self) -> None:
        graph, (x,) = graph_with("x")
        same(
            [
                syntax(graph, operator.iadd, 1, x)(),
                syntax(graph, operator.setitem, [x], 0, 1)(),
            ],
            [False, False],
            "`1 += x` is not Python: the left side must be a variable.",
        )

    def test_in_place_on_what_is_read_later(self) -> None:
        graph, (n, m) = graph_with("n", "m")
        before = syntax(graph, operator.iadd, n, 1)
        last = syntax(graph, operator.iadd, n, 1)
        itself = syntax(graph, operator.iadd, m, m)
        same(
            [before(), last(), itself()],
            [False, True, True],
            "The first of two lines `n += 1` gives the variable n another "
            "value, which the second would read. A line may read its own "
            "left side twice, as `m += m` does.",
        )

    def test_an_item_that_is_set(self) -> None:
        graph, (x,) = graph_with("x")
        lost = syntax(graph, operator.setitem, x, 0, 1)
        used = syntax(graph, operator.setitem, x, 0, 1)
        graph.output(list(graph.nodes)[-1])
        same(
            [lost(), used()],
            [True, False],
            "`x[0] = 1` binds no variable, so that x may be read later; but "
            "it has no value, which a node with users must have.",
        )


# -- placeholder -------------------------------------------------------------


@pytest.mark.exercise("codegen.emit.Emitter.placeholder")
class TestPlaceholder:
    def test_it_is_a_parameter_and_no_line(self) -> None:
        graph, (x,) = graph_with("x")
        emitter = emitter_of(graph)
        same(
            emitter.placeholder(x),
            "",
            "A placeholder is a parameter of the function. The parameter is "
            "the node's variable already, so there is no line to write.",
        )
        same(
            emitter.parameters,
            ["x"],
            "The parameter is missing among `self.parameters`, of which the "
            "def line is made.",
        )

    def test_parameters_are_in_order(self) -> None:
        graph, nodes = graph_with("x", "y", "z")
        emitter = emitter_of(graph)
        for node in nodes:
            emitter.placeholder(node)
        same(
            emitter.parameters,
            ["x", "y", "z"],
            "Each placeholder adds one parameter behind those before it.",
        )

    def test_an_annotation_and_a_default(self) -> None:
        graph = Graph()
        node = graph.placeholder("x", torch.Tensor, 1.5)
        emitter = emitter_of(graph)
        emitter.placeholder(node)
        same(
            emitter.parameters,
            ["x : torch.Tensor = 1.5"],
            "The annotation comes from `_annotation`, and the default is the "
            "placeholder's only argument.",
        )

    @pytest.mark.parametrize("default", [None, False, 0, ""])
    def test_a_default_that_is_false(self, default: object) -> None:
        graph = Graph()
        node = graph.placeholder("x", default_value=default)
        emitter = emitter_of(graph)
        emitter.placeholder(node)
        same(
            emitter.parameters,
            [f"x = {default!r}"],
            "None, False, 0 and '' are defaults like any other: a "
            "placeholder has a default if node.args is not empty.",
        )

    def test_a_default_that_cannot_be_written_out(self) -> None:
        graph = Graph()
        node = graph.placeholder("x", default_value=Fraction(1, 3))
        emitter = emitter_of(graph)
        emitter.placeholder(node)
        same(
            emitter.parameters,
            ["x = _constant_fraction"],
            "The repr of a Fraction says nothing to the generated code, which "
            "has not imported it. A default is an argument: `_text` writes it, "
            "here as a global that is bound to it.",
        )

    def test_a_variable_with_another_name(self) -> None:
        graph, (node,) = graph_with("input")
        emitter = emitter_of(graph)
        same(
            emitter.placeholder(node),
            "input_1 = input\n",
            "Callers say `input=…`, so the parameter keeps that name, but the "
            "node's variable is input_1, since input is a builtin: a line has "
            "to bind it, and that line ends itself.",
        )
        same(
            emitter.parameters,
            ["input"],
            "The parameter is called as the target says, not as the "
            "variable: callers pass it by keyword.",
        )

    def test_a_parameter_with_stars(self) -> None:
        graph = Graph()
        nodes = [
            graph.create_node("placeholder", "*rest", name="rest"),
            graph.placeholder("**options"),
        ]
        emitter = emitter_of(graph)
        same(
            [emitter.placeholder(node) for node in nodes],
            ["", "_options = options\n"],
            "The parameter of `*rest` is `rest`, for stars do not belong to "
            "a name: compare the variable with `self.variables.parameters`, "
            "where they are left out, and bind it to that.",
        )
        same(
            emitter.parameters,
            ["*rest", "**options"],
            "In the def line a parameter keeps the stars of its target.",
        )


# -- the end of a line -------------------------------------------------------


def ends_of(graph: Graph) -> dict[str, str]:
    """The end of each node's line, parameters left out."""
    emitter = emitter_of(graph)
    return {
        node.name: emitter._end(node)
        for node in graph.nodes
        if node.op != "placeholder"
    }


@pytest.mark.exercise("codegen.emit.Emitter._end")
class TestTheEndOfALine:
    def test_a_value_is_freed_after_its_last_use(self) -> None:
        graph, (x,) = graph_with("x")
        first = graph.call_function(torch.relu, (x,))
        graph.output(graph.call_function(torch.neg, (first,)))
        ends = ends_of(graph)
        same(
            ends["relu"],
            ";  x = None\n",
            "No line after that of relu uses x, so that line sets x to "
            "None. Two spaces follow the semicolon.",
        )
        same(
            ends["neg"],
            ";  relu = None\n",
            "No line after that of neg uses relu.",
        )

    def test_a_value_that_is_read_later_stays(self) -> None:
        ends = ends_of(residual_graph())
        same(
            ends["linear"],
            "\n",
            "add uses x after linear did: the line of linear frees nothing. "
            "A value is dead after its last use, not after its first.",
        )

    def test_the_last_user_is_the_last_in_the_program(self) -> None:
        graph, (x,) = graph_with("x")
        relu = graph.call_function(torch.relu, (x,))
        with graph.inserting_before(relu):
            neg = graph.call_function(torch.neg, (x,))
        graph.output((relu, neg))
        same(
            ends_of(graph),
            {"neg": "\n", "relu": ";  x = None\n", "output": "\n"},
            "neg was made last and put in front of relu, so it is the last of "
            "x.users, but x is used once more after it: look up the last user "
            "in `self._last_users`.",
        )

    def test_in_the_order_of_the_inputs(self) -> None:
        graph, (b, a) = graph_with("b", "a")
        node = graph.call_function(torch.add, (b, a))
        graph.output(node)
        same(
            ends_of(graph)["add"],
            ";  b = a = None\n",
            "The variables stand in the order of the node's `_inputs`.",
        )

    def test_several_values_at_once(self) -> None:
        ends = ends_of(residual_graph())
        same(
            ends["add"],
            ";  linear = x = None\n",
            "add is the last user of linear and x: both become None in one "
            "chain, in the order of the inputs.",
        )

    def test_the_output_frees_nothing(self) -> None:
        ends = ends_of(residual_graph())
        same(
            ends["output"],
            "\n",
            "Nothing runs behind the return statement, and leaving the "
            "function frees all variables: the output's line just ends.",
        )

    def test_an_unused_value(self) -> None:
        graph, (x,) = graph_with("x")
        graph.call_function(torch.sigmoid, (x,))
        graph.output(x)
        same(
            ends_of(graph)["sigmoid"],
            ";  sigmoid = None\n",
            "No node uses sigmoid, so no later line can free it: it is "
            "freed on its own line.",
        )

    def test_an_unused_value_that_is_itself_a_last_use(self) -> None:
        graph, (x, y) = graph_with("x", "y")
        graph.call_function(torch.sigmoid, (x,))
        graph.output(y)
        same(
            ends_of(graph)["sigmoid"],
            ";  x = sigmoid = None\n",
            "sigmoid is the last user of x and has no user itself: its "
            "line frees both, first what it read.",
        )

    def test_a_value_that_is_read_twice_by_one_node(self) -> None:
        graph, (x,) = graph_with("x")
        node = graph.call_function(operator.mul, (x, x))
        graph.output(node)
        same(
            ends_of(graph)["mul"],
            ";  x = None\n",
            "mul uses x twice, but x is one variable and freed once.",
        )

    def test_values_inside_a_list(self) -> None:
        graph, (x, y) = graph_with("x", "y")
        node = graph.call_function(torch.cat, ([x, (y,)],))
        graph.output(node)
        same(
            ends_of(graph)["cat"],
            ";  x = y = None\n",
            "cat uses x and y, which are inside a list: all that a node uses "
            "is in `_inputs`.",
        )

    def test_variables_not_names(self) -> None:
        graph, (x,) = graph_with("x")
        node = graph.call_function(torch.relu, (x,))
        x.name = "list"
        graph.output(node)
        same(
            ends_of(graph)["relu"],
            ";  list_1 = None\n",
            "Node `list` got the variable list_1, because list is a builtin: "
            "what is freed is `self.variables[node]`.",
        )


@pytest.mark.exercise("codegen.emit.Emitter._end")
class TestTheBody:
    def test_all_nodes_in_order(self) -> None:
        emitter = emitter_of(residual_graph())
        emitter.run()
        same_text(
            "".join(emitter.pieces),
            """
            linear = self.linear(x)
            add = linear + x;  linear = x = None
            relu = torch.relu(add);  add = None
            return relu
            """,
            "The body of relu(linear(x) + x), a line for each node that is "
            "no parameter, is not as it should be.",
        )

    def test_what_is_freed_is_gone_while_the_rest_runs(self) -> None:
        graph, (x,) = graph_with("x")
        value = x
        for _ in range(4):
            value = graph.call_function(torch.relu, (value,))
        graph.output(value)
        emitter = emitter_of(graph)
        emitter.run()
        *lines, _ = "".join(emitter.pieces).splitlines()
        variables: dict[str, object] = {"torch": torch, "x": torch.ones(2)}
        for line in lines:
            exec(line, variables)
            alive = [
                name
                for name, value in variables.items()
                if isinstance(value, torch.Tensor)
            ]
            check(
                len(alive) == 1,
                f"In a chain of calls one tensor is alive after each line, "
                f"but after `{line}` these are: {', '.join(alive)}.",
            )
