"""Stage 05: what each opcode writes, and what the end of a line frees."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NoReturn

import pytest
import torch

from fx.codegen.emit import Emitter
from fx.codegen.names import GlobalNames, LocalNames
from fx.graph import Graph
from fx.node import Node
from fx.use_def.values import AnyValue, Argument
from stages.checking import check, raising, same, same_text, working


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


def refused_for_its_target(method: Callable[[Node], str], node: Node) -> None:
    """A node whose target is a function where a path must be."""
    for error in (Exception, ValueError):
        with raising(
            error,
            "a str is expected",
            f"The target of this {node.op} node is a function, which is "
            "not a path: text made of it would mean nothing. `path_of` "
            "gives the target as a str, or raises if it is not one.",
        ):
            method(node)


# -- call_module -------------------------------------------------------------


@pytest.mark.exercise("codegen.emit.Emitter.call_module")
class TestCallModule:
    def test_it_calls_what_the_target_names(self) -> None:
        graph, (x,) = graph_with("x")
        node = graph.call_module("linear", (x,))
        same(
            emitter_of(graph).call_module(node),
            "linear = self.linear(x)",
            "A call_module node calls the module that its target names, and "
            "its value goes into the node's variable. The line's end is not "
            "part of the statement.",
        )

    def test_arguments_by_position_and_by_keyword(self) -> None:
        graph, (x, y) = graph_with("x", "y")
        node = graph.call_module("attention", (x, y), {"causal": True})
        same(
            emitter_of(graph).call_module(node),
            "attention = self.attention(x, y, causal = True)",
            "All arguments go between the parentheses: first node.args, "
            "then node.kwargs as `key = value`. `_arguments` writes both.",
        )

    def test_no_arguments(self) -> None:
        graph, _ = graph_with()
        node = graph.call_module("noise")
        same(
            emitter_of(graph).call_module(node),
            "noise = self.noise()",
            "A module may be called with nothing: the parentheses stay, for "
            "without them the line would fetch the module.",
        )

    def test_the_root_is_not_always_self(self) -> None:
        graph, (x,) = graph_with("x")
        node = graph.call_module("linear", (x,))
        same(
            emitter_of(graph, "self.child").call_module(node),
            "linear = self.child.linear(x)",
            "The target is a path from the root module, and the code calls "
            "that one as the caller of python_code said: here `self.child`, "
            "not `self`.",
        )

    def test_a_number_in_the_path(self) -> None:
        graph, (x,) = graph_with("x")
        node = graph.call_module("layers.0.conv", (x,))
        same(
            emitter_of(graph).call_module(node),
            'layers_0_conv = getattr(self.layers, "0").conv(x)',
            "`self.layers.0` is not Python: where a dot cannot be, the "
            "attribute is fetched by getattr. `_attribute` knows when.",
        )

    def test_the_annotation(self) -> None:
        graph, (x,) = graph_with("x")
        node = graph.call_module("linear", (x,), type_expr=torch.Tensor)
        same(
            emitter_of(graph).call_module(node),
            "linear : torch.Tensor = self.linear(x)",
            "The node has a type, and the assignment does not say it: "
            "`_assign` writes a variable with its annotation.",
        )

    def test_the_variable_is_not_always_the_name(self) -> None:
        graph = Graph()
        x = graph.create_node("placeholder", "linear", name="x")
        node = graph.call_module("linear", (x,))
        same(
            emitter_of(graph).call_module(node),
            "linear_1 = self.linear(x)",
            "Node `linear` got another variable, because a parameter is "
            "called `linear`: the left side is `self.variables[node]`, not "
            "`node.name`.",
        )

    def test_a_target_that_is_no_string(self) -> None:
        graph, (x,) = graph_with("x")
        node = graph.call_module("linear", (x,))
        node.target = torch.relu
        refused_for_its_target(emitter_of(graph).call_module, node)


# -- call_method -------------------------------------------------------------


@pytest.mark.exercise("codegen.emit.Emitter.call_method")
class TestCallMethod:
    def test_the_first_argument_comes_before_the_dot(self) -> None:
        graph, (x,) = graph_with("x")
        node = graph.call_method("clamp", (x,), {"min": 0.0})
        same(
            emitter_of(graph).call_method(node),
            "clamp = x.clamp(min = 0.0)",
            "The first argument of a call_method node is the object: it "
            "goes before the dot, and the keywords in parentheses.",
        )

    def test_only_the_other_arguments_are_in_parentheses(self) -> None:
        graph, (x,) = graph_with("x")
        node = graph.call_method("view", (x, 2, -1))
        same(
            emitter_of(graph).call_method(node),
            "view = x.view(2, -1)",
            "The object is given before the dot, and must not be given again "
            "as an argument: only args[1:] go between the parentheses.",
        )

    def test_a_method_of_none(self) -> None:
        graph, (x,) = graph_with("x")
        node = graph.call_method("__eq__", (None, x))
        sentence = (
            "The object is None, which is a constant like any other: there is "
            "no object only if args is empty."
        )
        with working(sentence):
            text = emitter_of(graph).call_method(node)
        same(text, "eq = None.__eq__(x)", sentence)

    def test_a_method_of_a_constant(self) -> None:
        graph, (x,) = graph_with("x")
        number = graph.call_method("bit_length", (12,))
        text = graph.call_method("join", (", ", x))
        same(
            emitter_of(graph).call_method(number),
            "bit_length = (12).bit_length()",
            "The object may be a constant, and `12.bit_length` is not Python: "
            "`_primary` writes an argument so that a dot can follow.",
        )
        same(
            emitter_of(graph).call_method(text),
            "join = ', '.join(x)",
            "The object may be a string: `_primary` writes any argument.",
        )

    @pytest.mark.parametrize("part", ["step", "clamp"])
    def test_a_method_of_nothing(self, part: str) -> None:
        graph, _ = graph_with()
        node = graph.create_node("call_method", "clamp", name="step")
        for error in (Exception, RuntimeError):
            with raising(
                error,
                part,
                "A call_method node without arguments has no object to call "
                "a method of: say so in a RuntimeError that names the node "
                "(here step) and the method (here clamp).",
            ):
                emitter_of(graph).call_method(node)

    def test_an_object_given_by_keyword(self) -> None:
        graph, (x,) = graph_with("x")
        node = graph.create_node("call_method", "clamp", (), {"input": x})
        with raising(
            RuntimeError,
            "clamp",
            "A call_method node has only a keyword argument. The object is the "
            "first *positional* argument, and there is none: say so in a "
            "RuntimeError, and do not guess.",
        ):
            emitter_of(graph).call_method(node)

    def test_a_path_to_the_method(self) -> None:
        graph, (x,) = graph_with("x")
        plain = graph.call_method("T.relu", (x,))
        keyword = graph.call_method("a.class.b", (x,))
        same(
            emitter_of(graph).call_method(plain),
            "t_relu = x.T.relu()",
            "The target may be a path from the object to the method.",
        )
        same(
            emitter_of(graph).call_method(keyword),
            'a_class_b = getattr(x.a, "class").b()',
            "`x.a.class` is not Python, since class is a keyword: "
            "`_attribute` writes a path from any owner, with getattr where a "
            "dot cannot be.",
        )

    def test_a_target_that_is_no_string(self) -> None:
        graph, (x,) = graph_with("x")
        node = graph.call_method("relu", (x,))
        node.target = torch.relu
        refused_for_its_target(emitter_of(graph).call_method, node)

    def test_the_object_is_written_by_its_variable(self) -> None:
        graph, (x,) = graph_with("x")
        node = graph.call_method("relu", (x,), type_expr=torch.Tensor)
        x.name = "list"
        same(
            emitter_of(graph).call_method(node),
            "relu : torch.Tensor = list_1.relu()",
            "Node `list` got the variable list_1, because list is a builtin: "
            "nodes are written by their variables, and the node's type is "
            "written too. `_primary` and `_assign` do it.",
        )


# -- call_function -----------------------------------------------------------


@pytest.mark.exercise("codegen.emit.Emitter.call_function")
class TestCallFunction:
    def test_a_function_of_torch(self) -> None:
        graph, (x,) = graph_with("x")
        node = graph.call_function(torch.relu, (x,))
        same(
            emitter_of(graph).call_function(node),
            "relu = torch.relu(x)",
            "A function of torch is called by its path. How a "
            "function is written is `_spell`'s business.",
        )

    def test_keywords(self) -> None:
        graph, (x, y) = graph_with("x", "y")
        node = graph.call_function(torch.add, (x, y), {"alpha": 2})
        same(
            emitter_of(graph).call_function(node),
            "add = torch.add(x, y, alpha = 2)",
            "Keywords come after the positional arguments.",
        )

    def test_an_operator_is_written_as_syntax(self) -> None:
        graph, (x, y) = graph_with("x", "y")
        node = graph.call_function(operator.add, (x, y))
        same(
            emitter_of(graph).call_function(node),
            "add = x + y",
            "operator.add is an operator of Python, so the line has its "
            "syntax: if `_spell` gives an Operator, `_operator` writes it.",
        )

    def test_operators_with_one_operand_and_with_brackets(self) -> None:
        graph, (x,) = graph_with("x")
        minus = graph.call_function(operator.neg, (x,))
        item = graph.call_function(operator.getitem, (x, (0, 1)))
        same(
            emitter_of(graph).call_function(minus),
            "neg = -x",
            "An operator may have one operand: its row in "
            "fx/recording/operators.py has the template.",
        )
        same(
            emitter_of(graph).call_function(item),
            "getitem = x[(0, 1)]",
            "operator.getitem has brackets for syntax.",
        )

    def test_an_operator_that_changes_its_operand(self) -> None:
        graph, (x,) = graph_with("x")
        node = graph.call_function(operator.iadd, (x, 1))
        same(
            emitter_of(graph).call_function(node),
            "x += 1;  iadd = x",
            "`x += 1` is a statement and has no value: the variable gets its "
            "value behind it. `_operator` does both.",
        )

    def test_an_attribute(self) -> None:
        graph, (x,) = graph_with("x")
        node = graph.call_function(getattr, (x, "shape"))
        same(
            emitter_of(graph).call_function(node),
            "getattr_1 = x.shape",
            "A call of getattr with a name is written with a dot.",
        )

    def test_an_attribute_of_a_constant(self) -> None:
        graph, _ = graph_with()
        node = graph.call_function(getattr, (12, "real"))
        same(
            emitter_of(graph).call_function(node),
            "getattr_1 = (12).real",
            "`12.real` is not Python, which reads `12.` as a float: "
            "`_primary` writes an argument so that a dot can follow.",
        )

    def test_other_functions_of_an_object_and_a_name(self) -> None:
        graph, (x,) = graph_with("x")
        node = graph.call_function(hasattr, (x, "shape"))
        same(
            emitter_of(graph).call_function(node),
            "hasattr_1 = hasattr(x, 'shape')",
            "hasattr is called here, not getattr. `is_attribute_access` "
            "looks at the arguments alone: only a call of getattr can be a "
            "dot.",
        )

    def test_an_attribute_that_no_dot_can_fetch(self) -> None:
        graph, (x,) = graph_with("x")
        default = graph.call_function(getattr, (x, "shape", None))
        number = graph.call_function(getattr, (x, "0"))
        same(
            emitter_of(graph).call_function(default),
            "getattr_1 = getattr(x, 'shape', None)",
            "getattr with a default is not an attribute access: `x.shape` "
            "would lose the default. `is_attribute_access` knows.",
        )
        same(
            emitter_of(graph).call_function(number),
            "getattr_2 = getattr(x, '0')",
            "`x.0` is not Python: `is_attribute_access` says whether a dot "
            "can be written.",
        )
        keyword = graph.call_function(getattr, (x, "class"))
        same(
            emitter_of(graph).call_function(keyword),
            "getattr_3 = getattr(x, 'class')",
            "`x.class` is not Python, because class is a keyword: "
            "`is_attribute_access` says whether a dot can be written.",
        )

    def test_a_wrapped_function_is_noted(self) -> None:
        graph, (x,) = graph_with("x")
        node = graph.call_function(len, (x,))
        node.meta["is_wrapped"] = True
        emitter = emitter_of(graph)
        same(
            emitter.call_function(node),
            "len_1 = len(x)",
            "A builtin is called by its name.",
        )
        same(
            list(emitter.wrapped),
            ["len"],
            "The node is marked is_wrapped, but its function is not in "
            "`self.wrapped`: code traced again would look into len, for no "
            "line would say that it is a leaf.",
        )

    def test_a_wrapped_function_is_noted_by_its_global(self) -> None:
        def clip(value: AnyValue) -> AnyValue:
            return value

        graph, (x, _) = graph_with("x", "stages_05_test_emit_clip")
        node = graph.call_function(clip, (x,))
        node.meta["is_wrapped"] = True
        emitter = emitter_of(graph)
        line = emitter.call_function(node)
        noted = ", ".join(emitter.wrapped)
        check(
            noted and f"{noted}(" in line,
            "What is noted in `self.wrapped` must be the name that the line "
            "calls: the code says `wrap(name)` for a global of its own, which "
            "need not have the function's `__name__`.",
            picture=f"line:  {line}\nnoted: {noted}",
        )

    def test_a_dot_is_not_noted(self) -> None:
        graph, (x,) = graph_with("x")
        node = graph.call_function(getattr, (x, "shape"))
        node.meta["is_wrapped"] = True
        emitter = emitter_of(graph)
        emitter.call_function(node)
        same(
            list(emitter.wrapped),
            [],
            "The line is `getattr_1 = x.shape`, and no function is called "
            "in it: there is nothing to wrap. Only calls are noted.",
        )

    def test_a_path_is_not_noted(self) -> None:
        graph, (x,) = graph_with("x")
        node = graph.call_function(torch.relu, (x,))
        node.meta["is_wrapped"] = True
        emitter = emitter_of(graph)
        emitter.call_function(node)
        same(
            list(emitter.wrapped),
            [],
            "`wrap` takes the name of a global, and `torch.relu` is a path: "
            "only identifiers are noted.",
        )

    def test_other_functions_are_not_noted(self) -> None:
        graph, (x,) = graph_with("x")
        node = graph.call_function(len, (x,))
        emitter = emitter_of(graph)
        emitter.call_function(node)
        same(
            list(emitter.wrapped),
            [],
            "Only nodes with meta['is_wrapped'] call leaf functions: len is "
            "an ordinary function here.",
        )

    def test_a_mark_may_be_false(self) -> None:
        graph, (x,) = graph_with("x")
        node = graph.call_function(len, (x,))
        node.meta["is_wrapped"] = False
        emitter = emitter_of(graph)
        emitter.call_function(node)
        same(
            list(emitter.wrapped),
            [],
            "meta['is_wrapped'] is False, as a pass may set it that wants code "
            "to be traced through len: ask for the value, and not whether "
            "there is one.",
        )

    def test_the_annotation(self) -> None:
        graph, (x,) = graph_with("x")
        node = graph.call_function(torch.relu, (x,), type_expr=torch.Tensor)
        same(
            emitter_of(graph).call_function(node),
            "relu : torch.Tensor = torch.relu(x)",
            "The node has a type, and the assignment does not say it: "
            "`_assign` writes a variable with its annotation.",
        )

    def test_nothing_of_the_function_is_called(self) -> None:
        graph, (x,) = graph_with("x")
        node = graph.call_function(Touchy("touchy"), (x,))
        try:
            line = emitter_of(graph).call_function(node)
        except ZeroDivisionError as error:
            check(
                False,
                f"{error}: a user's function may be an object that defines "
                "`==` and hash as it likes. Ask whether it *is* getattr, and "
                "look up `id(target)`, never the target.",
            )
        else:
            check(
                line.startswith("touchy = ") and line.endswith("(x)"),
                "A function of a user is called by its global, and the value "
                "goes into the node's variable.",
                picture=f"yours:    {line}\nexpected: touchy = …(x)",
            )


class Touchy:
    """A function of a user that must not be compared."""

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = name

    def __call__(self, x: object) -> object:
        return x

    def __eq__(self, other: object) -> NoReturn:
        raise ZeroDivisionError("__eq__ of a user's function was called")

    def __hash__(self) -> NoReturn:
        raise ZeroDivisionError("__hash__ of a user's function was called")


class PlainNames(GlobalNames):
    """Calls each function by its own name, with nothing in its way."""

    def name_of(self, obj: AnyValue, hint: str = "") -> str:
        """The name of a function."""
        return f"_{obj.__name__}"


@pytest.mark.exercise("codegen.emit.Emitter.call_function")
class TestAnOperatorWithoutItsSyntax:
    def test_an_operator_with_a_keyword(self) -> None:
        graph, (x, y) = graph_with("x", "y")
        node = graph.call_function(operator.add, (x, y), {"alpha": 2})
        emitter = emitter_of(graph)
        emitter.globals = PlainNames(())
        same(
            emitter.call_function(node),
            "add = _add(x, y, alpha = 2)",
            "operator.add is called with a keyword here, which `x + y` would "
            "lose: if `has_syntax` says no, the function is called by the "
            "name that `self.globals.name_of` gives it.",
        )

    def test_in_place_on_a_constant(self) -> None:
        graph, (x,) = graph_with("x")
        node = graph.call_function(operator.iadd, (1, x))
        emitter = emitter_of(graph)
        emitter.globals = PlainNames(())
        same(
            emitter.call_function(node),
            "iadd = _iadd(1, x)",
            "`1 += x` is not Python: whether an operator can be written as "
            "syntax depends on the arguments, and `has_syntax` knows.",
        )

    def test_in_place_on_what_is_read_later(self) -> None:
        graph, (n,) = graph_with("n")
        node = graph.call_function(operator.iadd, (n, 1))
        graph.call_function(operator.mul, (n, node))
        emitter = emitter_of(graph)
        emitter.globals = PlainNames(())
        same(
            emitter.call_function(node),
            "iadd = _iadd(n, 1)",
            "mul reads n after this line, and after `n += 1` a number would "
            "be another one. `has_syntax` sees this if you give it "
            "`self._last_users`.",
        )

    def test_one_operator_with_and_without(self) -> None:
        graph, (x, y) = graph_with("x", "y")
        nodes = [
            graph.call_function(operator.add, (x, y), {"alpha": 2}),
            graph.call_function(operator.add, (x, y)),
        ]
        emitter = emitter_of(graph)
        emitter.globals = PlainNames(())
        same(
            [emitter.call_function(node) for node in nodes],
            ["add = _add(x, y, alpha = 2)", "add_1 = x + y"],
            "Two nodes call the same operator, and only the second can have "
            "its syntax: that is decided for each node anew.",
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
