"""Stage 06: fetching values, running a node, running them all, freeing."""

from __future__ import annotations

import operator
import re
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest
import torch
from torch import nn

from fx._symbolic_trace import symbolic_trace
from fx.graph import Graph
from fx.graph_module import GraphModule
from fx.interpreter import Interpreter
from fx.linked_list.opcodes import Target
from fx.node import Node
from fx.use_def.values import AnyValue, Argument
from stages.checking import check, linear, raising, same, same_text, working
from stages.residual import Residual


class Nested(nn.Module):
    """A module with something at every kind of path."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4, bias=False)])
        self.scale = 2.0
        self.nothing = None


def interpreter_of(module: nn.Module) -> Interpreter:
    """An interpreter of a module, with an empty graph."""
    return Interpreter(module, graph=Graph())


@contextmanager
def freeing(why: str = "") -> Iterator[None]:
    """Say what is wrong, and why, if a value is gone that is still needed."""
    try:
        yield
    except RuntimeError as error:
        gone = re.search(r"Node (\w+) .* nonexistent value (\w+)", str(error))
        if not gone:
            raise
        check(
            False,
            "A value was dropped from env while a later node still uses it. "
            "Drop it when its *last* user has run, not its first: "
            f"`last_users(self.graph.nodes)` says which node that is.{why}",
            picture=f"%{gone[1]} uses %{gone[2]}, which has no value any more",
        )


@contextmanager
def calling() -> Iterator[None]:
    """Say what is wrong if a method is called without its object."""
    try:
        yield
    except TypeError as error:
        check(
            False,
            "The method for an opcode could not be called. Ask `self` for it, "
            "`getattr(self, n.op)`: the class gives a plain function, which "
            "knows neither this interpreter nor what a subclass overrides. "
            "It takes the target, the args and the kwargs.",
            picture=f"TypeError: {error}",
        )


def module_of(graph: Graph) -> GraphModule:
    """A module that does what a graph without targets says."""
    return GraphModule(nn.Module(), graph)


# -- fetch_attr --------------------------------------------------------------


@pytest.mark.exercise("interpreter.Interpreter.fetch_attr")
class TestFetchAttr:
    def test_an_attribute_of_the_module(self) -> None:
        same(
            interpreter_of(Nested()).fetch_attr("scale"),
            2.0,
            "The target is the name of an attribute of `self.module`.",
        )

    def test_a_dotted_path(self) -> None:
        module = Nested()
        try:
            found = interpreter_of(module).fetch_attr("layers.0.weight")
        except (AttributeError, RuntimeError) as error:
            check(
                False,
                f"{error}: `layers.0.weight` is a path and not one name: "
                "follow it from the module, one name at a time.",
            )
        else:
            check(
                found is module.get_parameter("layers.0.weight"),
                "At the end of the path `layers.0.weight` is the parameter "
                "itself, no copy and nothing on the way to it.",
            )

    def test_a_module_is_an_attribute_too(self) -> None:
        module = Nested()
        check(
            interpreter_of(module).fetch_attr("layers.0")
            is module.get_submodule("layers.0"),
            "`layers.0` leads to a module; call_module fetches it here.",
        )

    def test_none_is_a_value(self) -> None:
        module = Nested()
        try:
            found = interpreter_of(module).fetch_attr("layers.0.bias")
        except RuntimeError as error:
            check(
                False,
                f"{error}: the bias is there, and it is None. An attribute "
                "that is None is not missing.",
            )
        else:
            same(found, None, "The bias of this layer is None.")

    def test_what_was_replaced_is_found(self) -> None:
        module = Nested()
        interpreter = interpreter_of(module)
        replaced = nn.Identity()
        module.layers = nn.ModuleList([replaced])
        check(
            interpreter.fetch_attr("layers.0") is replaced,
            "The module was replaced after the interpreter was made: look "
            "paths up when they are asked for.",
        )

    @pytest.mark.parametrize(
        ("path", "so_far"),
        [
            ("missing", "missing"),
            ("layers.7.weight", "layers.7"),
            ("layers.0.kernel.data", "layers.0.kernel"),
            ("nothing.weight", "nothing.weight"),
        ],
    )
    def test_a_path_that_breaks_off(self, path: str, so_far: str) -> None:
        interpreter = interpreter_of(Nested())
        sentence = (
            f"`{path}` breaks off at `{so_far}`: say so in a RuntimeError "
            "whose message ends with a space and the path up to the first "
            "attribute that is missing, for there the mistake is."
        )
        with raising(RuntimeError, f"{so_far}", sentence):
            interpreter.fetch_attr(path)
        try:
            interpreter.fetch_attr(path)
        except RuntimeError as found:
            check(
                str(found).endswith(f" {so_far}"), sentence, picture=str(found)
            )


# -- map_nodes_to_values -----------------------------------------------------


class Pair(NamedTuple):
    """A named tuple."""

    low: object
    high: object


def two_nodes() -> tuple[Interpreter, Node, Node, Node]:
    """An interpreter, x with the value 2, y with 3, and a node that asks."""
    graph = Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    asking = graph.call_function(max, (x, y))
    interpreter = Interpreter(nn.Module(), graph=graph)
    interpreter.env = {x: 2, y: 3}
    return interpreter, x, y, asking


@pytest.mark.exercise("interpreter.Interpreter.map_nodes_to_values")
class TestMapNodesToValues:
    def test_a_node_is_its_value(self) -> None:
        interpreter, x, _, asking = two_nodes()
        same(
            interpreter.map_nodes_to_values(x, asking),
            2,
            "The value of x is in `self.env`.",
        )

    def test_constants_stay(self) -> None:
        interpreter, _, _, asking = two_nodes()
        same(
            interpreter.map_nodes_to_values((1.5, "sum", None), asking),
            (1.5, "sum", None),
            "A constant is its own value.",
        )

    def test_nodes_at_any_depth(self) -> None:
        interpreter, x, y, asking = two_nodes()
        same(
            repr(interpreter.map_nodes_to_values((x, (1, (y,))), asking)),
            "(2, (1, (3,)))",
            "A node inside of containers is a node too: `map_arg` finds "
            "nodes at any depth.",
        )

    def test_lists_dicts_and_slices(self) -> None:
        interpreter, x, y, asking = two_nodes()
        args = ([x, y], {"low": x}, slice(x, None, y))
        same(
            repr(interpreter.map_nodes_to_values(args, asking)),
            "([2, 3], {'low': 2}, slice(2, None, 3))",
            "Nodes may be in lists, dicts and slices: `map_arg` knows all "
            "kinds of containers.",
        )

    def test_a_named_tuple_keeps_its_class(self) -> None:
        interpreter, x, y, asking = two_nodes()
        found = interpreter.map_nodes_to_values((Pair(x, [y]),), asking)
        same(
            repr(found),
            "(Pair(low=2, high=[3]),)",
            "A named tuple among the arguments must come back as one of the "
            "same class: the function may ask for its fields. `map_arg` knows "
            "all kinds of containers.",
        )

    def test_a_value_may_be_a_node(self) -> None:
        interpreter, x, y, asking = two_nodes()
        interpreter.env[x] = [y]
        sentence = (
            "The value of x is a list with a node in it, as in a program that "
            "works on graphs. Only the arguments are looked through: a value "
            "is not, and stays the object that it is."
        )
        with working(sentence):
            found = interpreter.map_nodes_to_values((x,), asking)
        check(
            isinstance(found, tuple) and found[0] is interpreter.env[x],
            sentence,
            picture=f"yours: {found}",
        )

    @pytest.mark.parametrize("value", [None, False, 0])
    def test_a_value_that_is_false(self, value: object) -> None:
        interpreter, x, _, asking = two_nodes()
        interpreter.env[x] = value
        try:
            found = interpreter.map_nodes_to_values((x,), asking)
        except RuntimeError as error:
            check(
                False,
                f"{error}: x has the value {value!r}, which is a value. "
                "Ask whether the node is in `self.env`.",
            )
        else:
            same(found, (value,), f"The value of x is {value!r}.")

    def test_a_node_without_a_value(self) -> None:
        interpreter, x, _, asking = two_nodes()
        del interpreter.env[x]
        for part in ("Node max_1", "value x"):
            with raising(
                Exception,
                part,
                "x has no value (any more), and max asked for it: raise what "
                "`_refuse_missing` says, which names both nodes. A KeyError "
                "would name one.",
            ):
                interpreter.map_nodes_to_values((x,), asking)


# -- _call -------------------------------------------------------------------


def beside(x: AnyValue, *, ndigits: AnyValue) -> AnyValue:
    """Both of its inputs."""
    return x, ndigits


class Watcher(Interpreter):
    """Notes what each opcode's method is called with."""

    def __init__(self, module: nn.Module, graph: Graph) -> None:
        super().__init__(module, graph=graph)
        self.seen: list[str] = []

    def call_function(
        self, target: Target, args: tuple[Argument, ...], kwargs: AnyValue
    ) -> AnyValue:
        """Note the call, then make it."""
        self.seen.append(f"call_function{args} {dict(kwargs)}")
        return super().call_function(target, args, kwargs)

    def get_attr(
        self, target: Target, args: tuple[Argument, ...], kwargs: AnyValue
    ) -> AnyValue:
        """Note the fetch."""
        self.seen.append(f"get_attr {target}")
        return 1.0


CALL = pytest.mark.exercise("interpreter.Interpreter._call")


@CALL
class TestCall:
    @calling()
    def test_it_returns_the_value(self) -> None:
        interpreter, _, _, asking = two_nodes()
        same(
            interpreter.run_node(asking),
            3,
            "Running %max_1 = max(x, y) with x = 2 and y = 3 gives 3.",
        )

    @calling()
    def test_the_method_gets_values(self) -> None:
        graph = Graph()
        x = graph.placeholder("x")
        node = graph.call_function(beside, (x,), {"ndigits": 1})
        watcher = Watcher(nn.Module(), graph)
        watcher.env = {x: 2.718}
        watcher.run_node(node)
        check(
            watcher.seen,
            "This subclass has a `call_function` of its own, and it was not "
            "called: the method for an opcode is looked up on `self`, not on "
            "Interpreter.",
        )
        same(
            watcher.seen,
            ["call_function(2.718,) {'ndigits': 1}"],
            "The method for an opcode gets the *values* of the arguments: "
            "fetch them first (`fetch_args_kwargs_from_env`).",
        )

    @calling()
    def test_the_opcode_chooses_the_method(self) -> None:
        graph = Graph()
        node = graph.get_attr("scale")
        watcher = Watcher(Nested(), graph)
        found = watcher.run_node(node)
        same(
            watcher.seen,
            ["get_attr scale"],
            "A get_attr node is run by the method `get_attr` of *this* "
            "interpreter, which a subclass may have overridden.",
        )
        same(
            found,
            1.0,
            "What the method of the opcode returns is the node's value.",
        )

    @calling()
    def test_the_object_may_have_a_method_of_its_own(self) -> None:
        interpreter, _, _, asking = two_nodes()
        vars(interpreter)["call_function"] = lambda target, args, kwargs: 7
        same(
            interpreter.run_node(asking),
            7,
            "Somebody has put another `call_function` on this interpreter, "
            "and not on its class. Look the method up on the object, by "
            "`getattr(self, …)`.",
        )

    @calling()
    def test_the_method_is_called_by_position(self) -> None:
        class Renamed(Interpreter):
            def call_function(
                self, function: AnyValue, *given: AnyValue
            ) -> AnyValue:
                return given

        interpreter, _, _, asking = two_nodes()
        interpreter.__class__ = Renamed
        with working(
            "A subclass has other names for the parameters of `call_function`, "
            "as subclasses written for torch.fx may: give target, args and "
            "kwargs by position."
        ):
            interpreter.run_node(asking)

    @calling()
    def test_how_values_are_fetched_can_be_overridden(self) -> None:
        class Doubled(Interpreter):
            def fetch_args_kwargs_from_env(
                self, n: Node
            ) -> tuple[tuple[AnyValue, ...], dict[str, AnyValue]]:
                return (20, 30), {}

        _, _, _, asking = two_nodes()
        interpreter = Doubled(nn.Module(), graph=asking.graph)
        sentence = (
            "A subclass has its own way to fetch arguments: ask "
            "`self.fetch_args_kwargs_from_env`."
        )
        try:
            found = interpreter.run_node(asking)
        except RuntimeError as error:
            check(False, sentence, picture=str(error))
        else:
            same(found, 30, sentence)


# -- the loop ----------------------------------------------------------------


class Alive(Interpreter):
    """Notes before each node which values there are."""

    def __init__(self, module: GraphModule, *, collect: bool = True) -> None:
        super().__init__(module, garbage_collect_values=collect)
        self.lines: list[str] = []

    def run_node(self, n: Node) -> AnyValue:
        """Note the values, then run the node."""
        values = " ".join(str(node) for node in self.env)
        self.lines.append(f"{n}: {values}".rstrip())
        return super().run_node(n)


def chain() -> GraphModule:
    """neg(relu(x) + x), and a sigmoid without users."""
    graph = Graph()
    x = graph.placeholder("x")
    relu = graph.call_function(torch.relu, (x,))
    graph.call_function(torch.sigmoid, (x,))
    add = graph.call_function(operator.add, (relu, x))
    graph.output(graph.call_function(torch.neg, (add,)))
    return module_of(graph)


LOOP = pytest.mark.exercise("interpreter.Interpreter._run_nodes")


@LOOP
class TestTheLoop:
    @freeing()
    def test_it_computes_what_the_module_does(self) -> None:
        torch.manual_seed(0)
        model, x = Residual(), torch.randn(2, 4)
        found = Interpreter(symbolic_trace(model)).run(x)
        check(
            isinstance(found, torch.Tensor) and torch.equal(found, model(x)),
            "Interpreter(traced).run(x) must be what the module returns: the "
            "value of the output.",
        )

    def test_each_node_runs_once_and_in_order(self) -> None:
        alive = Alive(chain(), collect=False)
        alive.run(torch.ones(2))
        same(
            [line.partition(":")[0] for line in alive.lines],
            ["x", "relu", "sigmoid", "add", "neg", "output"],
            "Each node is run once, in the order of the graph, by "
            "`self.run_node`, which a subclass may have overridden.",
        )

    def test_a_graph_without_output(self) -> None:
        graph = Graph()
        graph.placeholder("x")
        sentence = "A graph without an output returns None."
        with working(sentence):
            found = Interpreter(nn.Module(), graph=graph).run(1)
        same(found, None, sentence)

    def test_nothing_runs_behind_the_output(self) -> None:
        ran: list[object] = []
        graph = Graph()
        graph.output(graph.placeholder("x"))
        graph.call_function(ran.append, (1,))
        found = Interpreter(nn.Module(), graph=graph).run(7)
        same(found, 7, "The value of the output is what is returned.")
        same(
            ran,
            [],
            "The output is the return statement: a node behind it does not "
            "run.",
        )

    @freeing()
    def test_a_value_that_was_given_is_not_computed(self) -> None:
        module = chain()
        _, relu, *_ = module.graph.nodes
        alive = Alive(module)
        found = alive.run(
            torch.ones(2), initial_env={relu: torch.full((2,), 5.0)}
        )
        same(
            [line.partition(":")[0] for line in alive.lines],
            ["x", "sigmoid", "add", "neg", "output"],
            "relu was in `initial_env`: a node that has a value in env is "
            "not run.",
        )
        same(found.tolist(), [-6.0, -6.0], "-(5 + 1) is -6.")

    def test_none_that_was_given_is_not_computed(self) -> None:
        ran: list[object] = []
        graph = Graph()
        node = graph.call_function(ran.append, (1,))
        graph.output((node,))
        interpreter = Interpreter(nn.Module(), graph=graph)
        found = interpreter.run(initial_env={node: None})
        same(
            (found, ran),
            ((None,), []),
            "The value in `initial_env` was None, which is a value like any "
            "other, and the node was run all the same: ask `node in env`.",
        )

    @freeing()
    def test_the_output_may_be_given_beforehand(self) -> None:
        module = chain()
        *_, output = module.graph.nodes
        same(
            Interpreter(module).run(torch.ones(2), initial_env={output: 5}),
            5,
            "The value of the output was in `initial_env`: it is the result, "
            "like one that was made just now.",
        )

    def test_a_node_may_change_what_comes_after_it(self) -> None:
        class Editing(Interpreter):
            """Makes `neg` of the first user of x, and erases that user."""

            def run_node(self, n: Node) -> AnyValue:
                if n.op == "placeholder":
                    user = next(iter(n.users))
                    with self.graph.inserting_after(n):
                        neg = self.graph.call_function(operator.neg, (n,))
                    user.replace_all_uses_with(neg)
                    self.graph.erase_node(user)
                return super().run_node(n)

        graph = Graph()
        x = graph.placeholder("x")
        graph.output(graph.call_function(operator.add, (x, 1)))
        sentence = (
            "run_node put neg in the place of add while x was run, and the run "
            "must go on with neg: loop over `self.graph.nodes`, which shows "
            "edits, and not over a list of the nodes that was made before."
        )
        with working(sentence):
            found = Editing(nn.Module(), graph=graph).run(5)
        same(found, -5, sentence)

    def test_a_long_graph(self) -> None:
        graph = Graph()
        value = graph.placeholder("x")
        for _ in range(3000):
            value = graph.call_function(operator.add, (value, 1))
        graph.output(value)
        same(
            Interpreter(nn.Module(), graph=graph).run(0),
            3000,
            "A graph may be thousands of nodes long: run it in a loop.",
        )


@LOOP
class TestFreeing:
    @freeing()
    def test_what_is_alive_before_each_node(self) -> None:
        alive = Alive(chain())
        alive.run(torch.ones(2))
        same_text(
            "\n".join(alive.lines),
            """
            x:
            relu: x
            sigmoid: x relu
            add: x relu
            neg: add
            output: neg
            """,
            "Before each node, env must hold the values that are still "
            "needed and no others. After a node ran, drop what it was the "
            "last to read (see `last_users`), and its own value if nobody "
            "uses it.",
        )

    def test_the_memory_is_free(self) -> None:
        made: list[weakref.ref[torch.Tensor]] = []
        counts: list[int] = []

        def step(x: torch.Tensor) -> torch.Tensor:
            counts.append(sum(ref() is not None for ref in made))
            result = x + 1
            made.append(weakref.ref(result))
            return result

        graph = Graph()
        value = graph.placeholder("x")
        for _ in range(6):
            value = graph.call_function(step, (value,))
            graph.call_function(step, (value,))  # used by nobody
        graph.output(value)
        Interpreter(nn.Module(), graph=graph).run(torch.ones(2))
        check(
            max(counts) == 1,
            f"In a chain of calls each needs one earlier tensor, but up to "
            f"{max(counts)} were alive: their last reader has run, and the "
            "loop still holds them, in env or in a local variable, such as one "
            "with the value of the node before.",
        )

    @freeing(
        " Here neg was made last and put in front of sigmoid: it is the last "
        "of relu.users, but not the last user of relu to run."
    )
    def test_the_last_user_is_the_last_in_the_program(self) -> None:
        module = chain()
        _, relu, sigmoid, *_ = module.graph.nodes
        with module.graph.inserting_before(sigmoid):
            module.graph.call_function(torch.neg, (relu,))
        alive = Alive(module)
        alive.run(torch.ones(2))
        same(
            alive.lines[3],
            "sigmoid: x relu",
            "When sigmoid runs, it needs x and relu, which add uses later.",
        )

    def test_inputs_inside_lists_are_dropped_too(self) -> None:
        graph = Graph()
        x, y, z = (graph.placeholder(name) for name in "xyz")
        cat = graph.call_function(torch.cat, ([x, y],), {"out": z})
        graph.output(graph.call_function(torch.neg, (cat,)))
        alive = Alive(module_of(graph))
        alive.run(torch.ones(1), torch.ones(1), torch.ones(2))
        same(
            alive.lines[4],
            "neg: cat",
            "cat was the last to use x, y and z. What a node uses is in "
            "`_inputs`, also if it is inside a list or in kwargs.",
        )

    @freeing(" Here the graph was edited after the first run: ask in each run.")
    def test_the_graph_may_be_edited_between_two_runs(self) -> None:
        graph = Graph()
        x = graph.placeholder("x")
        neg = graph.call_function(operator.neg, (x,))
        output = graph.output(neg)
        interpreter = Interpreter(nn.Module(), graph=graph)
        interpreter.run(1)
        with graph.inserting_after(neg):
            output.args = (graph.call_function(operator.add, (neg, x)),)
        same(
            interpreter.run(1),
            0,
            "-1 + 1 is 0: the second run is of the graph as it is now.",
        )

    def test_the_last_users_are_found_once(self) -> None:
        def run(size: int) -> None:
            graph = Graph()
            value = graph.placeholder("x")
            for _ in range(size):
                value = graph.call_function(operator.neg, (value,))
            graph.output(value)
            Interpreter(nn.Module(), graph=graph).run(1)

        linear(
            run,
            "A run of four times as many nodes should take four times as "
            "many steps: `last_users` walks over the whole graph, so ask it "
            "once, before the loop.",
        )

    @freeing()
    def test_the_result_outlives_the_run(self) -> None:
        module = chain()
        with module.graph.inserting_after(next(iter(module.graph.nodes))):
            module.graph.placeholder("unused")
        interpreter = Interpreter(module)
        interpreter.run(torch.ones(2), torch.ones(3))
        same(
            [str(node) for node in interpreter.env],
            ["output"],
            "When all is done env holds the value of the output, and nothing "
            "else, not even an input that has no users. (The output has none "
            "either, and is not dropped.)",
        )

    def test_all_values_are_kept_if_one_asks_for_it(self) -> None:
        interpreter = Interpreter(chain(), garbage_collect_values=False)
        interpreter.run(torch.ones(2))
        same(
            [str(node) for node in interpreter.env],
            ["x", "relu", "sigmoid", "add", "neg", "output"],
            "garbage_collect_values is False: all values stay in env.",
        )

    def test_a_value_that_is_read_twice(self) -> None:
        graph = Graph()
        x = graph.placeholder("x")
        double = graph.call_function(operator.add, (x, x))
        graph.output((double, double))
        same(
            Interpreter(nn.Module(), graph=graph).run(2),
            (4, 4),
            "A node may read a value twice, and it is dropped once.",
        )

    def test_the_caller_gets_its_values_in_env(self) -> None:
        graph = Graph()
        x = graph.placeholder("x")
        graph.output(x)
        env: dict[Node, AnyValue] = {}
        Interpreter(nn.Module(), False, graph).run(3, initial_env=env)
        same(
            {str(node): value for node, value in env.items()},
            {"x": 3, "output": 3},
            "`initial_env` is used as env: the values go into that dict.",
        )


def failing(error: Exception) -> Callable[[AnyValue], AnyValue]:
    """A function that raises."""

    def fail(x: AnyValue) -> AnyValue:
        raise error

    return fail


@LOOP
class TestErrors:
    def test_an_error_names_its_node(self) -> None:
        graph = Graph()
        x = graph.placeholder("x")
        broken = failing(ValueError("the input is too large"))
        node = graph.call_function(broken, (x,), name="broken")
        graph.output(node)
        for part in ("the input is too large", "While executing %broken"):
            with raising(
                ValueError,
                part,
                "An error that a node raises stays what it is and also says "
                "which node it was: `_explain` adds that, then it is raised "
                "on.",
            ):
                Interpreter(nn.Module(), graph=graph).run(1)

    def test_an_interruption_is_no_error_of_the_node(self) -> None:
        interruption = KeyboardInterrupt("stop")

        def interrupted(x: AnyValue) -> AnyValue:
            raise interruption

        graph = Graph()
        graph.output(
            graph.call_function(interrupted, (graph.placeholder("x"),))
        )
        with raising(KeyboardInterrupt, "stop", "Ctrl-C must come through."):
            Interpreter(nn.Module(), graph=graph).run(1)
        same(
            str(interruption),
            "stop",
            "A KeyboardInterrupt has nothing to do with the node that "
            "happened to run: only an Exception is explained.",
        )

    def test_the_caller_may_not_want_that(self) -> None:
        error = ValueError("plain")
        graph = Graph()
        node = graph.call_function(failing(error), (graph.placeholder("x"),))
        graph.output(node)
        interpreter = Interpreter(nn.Module(), graph=graph)
        interpreter.extra_traceback = False
        with raising(ValueError, "plain", "The error must come through."):
            interpreter.run(1)
        same(
            str(error),
            "plain",
            "extra_traceback is False: `_explain` says nothing then, and "
            "neither does the loop.",
        )
