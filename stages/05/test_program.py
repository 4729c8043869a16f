"""Stage 05: a graph as the text of a function, and the text as a function."""

from __future__ import annotations

import gc
import inspect
import linecache
import math
import operator
import sys
import weakref
from collections.abc import Callable, Sequence

import pytest
import torch
from torch.utils import _pytree as pytree

import fx.codegen.nested
from fx._symbolic_trace import symbolic_trace
from fx.codegen.codegen import CodeGen
from fx.codegen.source import compile_forward, line_of
from fx.graph import Graph
from fx.node import Node
from fx.use_def.protocols import PythonCode, PyTreeInfo
from fx.use_def.values import AnyValue
from stages.checking import check, raising, same, same_text, stub_of, working
from stages.residual import Residual


def residual_graph() -> Graph:
    """relu(linear(x) + x)."""
    graph = Graph()
    x = graph.placeholder("x")
    y = graph.call_module("linear", (x,))
    total = graph.call_function(operator.add, (y, x))
    graph.output(graph.call_function(torch.relu, (total,)))
    return graph


def defined_by(code: PythonCode) -> Callable[..., AnyValue]:
    """The function that a text defines, without `compile_forward`."""
    namespace = dict(code.globals)
    exec(compile(code.src, "<exercise>", "exec", dont_inherit=True), namespace)
    forward: Callable[..., AnyValue] = namespace["forward"]
    return forward


# -- putting the text together -----------------------------------------------

OF_EACH_NODE = """
linear | linear = self.linear(x)
add | add = linear + x;  linear = x = None
relu | relu = torch.relu(add);  add = None
output | return relu
"""

ASSEMBLY = pytest.mark.exercise("codegen.codegen.CodeGen._gen_python_code")


@ASSEMBLY
class TestTheText:
    def test_the_whole_function(self) -> None:
        same_text(
            residual_graph().python_code("self").src,
            """
            def forward(self, x):
                linear = self.linear(x)
                add = linear + x;  linear = x = None
                relu = torch.relu(add);  add = None
                return relu
            """,
            "This is not the function that the graph describes. The def "
            "line needs the parameters, and those are known when the emitter "
            "has run.",
        )

    def test_annotations(self) -> None:
        graph = Graph()
        x = graph.placeholder("x", torch.Tensor)
        y = graph.placeholder("y", default_value=None)
        graph.output((x, y), type_expr=tuple)
        same_text(
            graph.python_code("self").src,
            """
            def forward(self, x : torch.Tensor, y = None) -> tuple:
                return (x, y)
            """,
            "The return annotation is in `emitter.returns` when the "
            "emitter has run; `gen_fn_def` takes both.",
        )

    def test_it_can_be_executed(self) -> None:
        forward = defined_by(residual_graph().python_code("self"))
        model, x = Residual(), torch.randn(3, 4)
        check(
            torch.equal(forward(model, x), model(x)),
            "Called as forward(module, x), the text must compute what the "
            "module does.",
        )

    def test_another_root(self) -> None:
        same_text(
            residual_graph().python_code("self.block").src,
            """
            def forward(self, x):
                linear = self.block.linear(x)
                add = linear + x;  linear = x = None
                relu = torch.relu(add);  add = None
                return relu
            """,
            "The caller said how the code calls the module: "
            "`root_module` is for the emitter.",
        )

    def test_a_graph_without_statements(self) -> None:
        graph = Graph()
        graph.placeholder("x")
        with working(
            "The graph has no statement, and a function without any is not "
            "Python. It needs the line `pass`."
        ):
            forward = defined_by(graph.python_code("self"))
        same(forward(None, 1), None, "This function returns nothing.")

    def test_a_graph_without_statements_that_somebody_edits(self) -> None:
        graph = Graph()
        graph.placeholder("x")
        with graph.on_generate_code(lambda before: list):
            code = graph.python_code("self")
        same_text(
            code.src,
            """
            def forward(self, x):
                pass
            """,
            "For a user's edits (Graph.on_generate_code) the pieces have "
            "comments among them, which are not statements: whether there is "
            "a line is seen from `emitter.origins`, not from the pieces.",
        )

    def test_one_parameter_a_line(self) -> None:
        same_text(
            residual_graph().python_code("self", expanded_def=True).src,
            """
            def forward(
                self,
                x,
            ):
                linear = self.linear(x)
                add = linear + x;  linear = x = None
                relu = torch.relu(add);  add = None
                return relu
            """,
            "The caller of python_code said expanded_def=True: it is in "
            "`options`, and `gen_fn_def` has a keyword for it.",
        )

    def test_parameters_that_no_function_can_have(self) -> None:
        graph = Graph()
        graph.placeholder("x", default_value=1)
        graph.output(graph.placeholder("y"))
        with raising(
            RuntimeError,
            "has no default",
            "A parameter with a default precedes one without, and Python "
            "refuses that: `_check` says so before anything is written.",
        ):
            graph.python_code("self")

    def test_parameters_are_checked_before_anything_is_written(self) -> None:
        written: list[object] = []

        class Watching(CodeGen):
            def generate_output(
                self, *args: AnyValue, **named: AnyValue
            ) -> str:
                written.append(args)
                return "return"

        graph = Graph()
        graph.placeholder("x", default_value=1)
        graph.output(graph.placeholder("y"))
        graph.set_codegen(Watching())
        with raising(
            RuntimeError,
            "has no default",
            "The parameters are wrong, whoever writes the return statement.",
        ):
            graph.python_code("self")
        check(
            not written,
            "The parameters are wrong, and still a subclass was asked for the "
            "return statement, which may fail for another reason and hide this "
            "one. Call `_check` first.",
        )


@ASSEMBLY
class TestTheGlobals:
    def test_what_the_text_names_is_there(self) -> None:
        graph = Graph()
        x = graph.placeholder("x")
        root = graph.call_function(math.sqrt, (x,))
        graph.output(graph.call_function(max, (root, 3)))
        code = graph.python_code("self")
        check(
            math.sqrt in code.globals.values(),
            "The text calls math.sqrt by a global that the emitter has "
            "bound, but that global is not in the PythonCode.",
        )
        same(
            defined_by(code)(None, 16.0),
            4.0,
            "The text with its globals must compute max(sqrt(x), 3).",
        )

    def test_a_subclass_brings_its_own(self) -> None:
        class Counting(CodeGen):
            def additional_globals(self) -> list[tuple[str, AnyValue]]:
                return [("answer", 42)]

        graph = Graph()
        graph.output(graph.placeholder("x"))
        graph.set_codegen(Counting())
        same(
            graph.python_code("self").globals.get("answer"),
            42,
            "A code generator that writes names of its own says their "
            "objects in `additional_globals()`: claim each of them.",
        )

    def test_a_subclass_cannot_take_a_name(self) -> None:
        class Greedy(CodeGen):
            def additional_globals(self) -> list[tuple[str, AnyValue]]:
                return [("x", 42)]

        graph = Graph()
        graph.output(graph.placeholder("x"))
        graph.set_codegen(Greedy())
        with raising(
            RuntimeError,
            "additional_globals",
            "A parameter is called x, so no global can be: `claim` refuses "
            "what would be hidden.",
        ):
            graph.python_code("self")

    def test_nor_the_name_of_what_the_body_calls(self) -> None:
        class Greedy(CodeGen):
            def additional_globals(self) -> list[tuple[str, AnyValue]]:
                return [("len", 42)]

        graph = Graph()
        graph.output(graph.call_function(len, (graph.placeholder("x"),)))
        graph.set_codegen(Greedy())
        with raising(
            RuntimeError,
            "additional_globals",
            "The body calls the builtin len, so no additional global can have "
            "that name. The emitter knows which globals the body needs once "
            "it has run: `claim` after that.",
        ):
            graph.python_code("self")


@ASSEMBLY
class TestSubclasses:
    def test_one_writes_another_def_line(self) -> None:
        class Named(CodeGen):
            def gen_fn_def(
                self,
                free_vars: list[str],
                maybe_return_annotation: str,
                *,
                expanded_def: bool = False,
            ) -> str:
                text = ", ".join(["module", *free_vars])
                return f"def forward({text}){maybe_return_annotation}:"

        graph = Graph()
        graph.output(graph.placeholder("x"))
        graph.set_codegen(Named())
        same_text(
            graph.python_code("self").src,
            """
            def forward(module, x):
                return x
            """,
            "The def line is `self.gen_fn_def`'s, so that a subclass can "
            "write another.",
        )

    def test_one_was_written_before_expanded_def(self) -> None:
        class Old(CodeGen):
            def gen_fn_def(  # type: ignore[override]
                self, free_vars: list[str], maybe_return_annotation: str
            ) -> str:
                return f"def forward(self, {', '.join(free_vars)}):"

        graph = Graph()
        graph.output(graph.placeholder("x"))
        graph.set_codegen(Old())
        try:
            text = graph.python_code("self").src
        except TypeError as error:
            check(
                False,
                f"{error}: an older subclass does not take the keyword. Let "
                "`call_override` call gen_fn_def.",
            )
        else:
            check("self, x" in text, "The def line is the subclass's.")

    def test_a_user_edits_the_body(self) -> None:
        def shout(pieces: list[str]) -> list[str]:
            return ["print('running')\n", *pieces]

        graph = Graph()
        graph.output(graph.placeholder("x"))
        with graph.on_generate_code(lambda before: shout):
            text = graph.python_code("self").src
        same_text(
            text,
            """
            def forward(self, x):
                print('running')
                return x
            """,
            "A user may edit the pieces of the body before they are joined "
            "(Graph.on_generate_code): `_body` asks for that.",
        )

    def test_an_edited_body_has_its_own_line_map(self) -> None:
        graph = residual_graph()

        def announced(pieces: list[str]) -> list[str]:
            return ["print('running')\n", "print('still')\n", *pieces]

        with graph.on_generate_code(lambda before: announced):
            code = graph.python_code("self")
        same_text(
            "\n".join(overview(code, tuple(graph.nodes))[-4:]),
            OF_EACH_NODE,
            "A user has put two lines before the first statement, so each "
            "statement is two lines further down. `_body` returns the origins "
            "of the edited lines, not `emitter.origins`. The first of them is "
            "of the body's first line: count from where that is in the text.",
        )

    def test_what_it_spells_otherwise(self) -> None:
        info = PyTreeInfo(["pytree"], pytree.tree_structure(((0, 0),)), None)
        graph = Graph()
        x, y = graph.placeholder("x"), graph.placeholder("fx_pytree")
        graph.output((x, y))
        graph.set_codegen(fx.codegen.nested.default_codegen(info))
        code = graph.python_code("self")
        check(
            "= fx_pytree.tree_flatten_spec" not in code.src,
            "A variable is called `fx_pytree` here, so the text calls the "
            "module of that name otherwise. Subclasses look the spelling up "
            "in `self._spelled`: make it `emitter.globals.spelled`.",
        )

    def test_what_the_return_statement_spells_otherwise(self) -> None:
        outputs = pytree.tree_structure([0])
        info = PyTreeInfo(["pytree"], pytree.tree_structure(((0,),)), outputs)
        graph = Graph()
        graph.output([graph.placeholder("leaf")])
        graph.set_codegen(fx.codegen.nested.default_codegen(info))
        code = graph.python_code("self")
        check(
            "return pytree.tree_unflatten" not in code.src,
            "A parameter is called `pytree`, so the return statement calls "
            "the module of that name otherwise. It is written while the "
            "emitter runs: `self._spelled` must be there before.",
            picture=code.src.strip(),
        )


def overview(code: PythonCode, nodes: Sequence[Node]) -> list[str]:
    """`node | line` for each line of the function that has a node."""
    count = len(code.src.splitlines())
    lines = [line_of(code, nodes, number) for number in range(1, count + 1)]
    return [
        f"{line.node} | {line.text.strip()}"
        for line in lines
        if line.node is not None and line.text.strip()
    ]


@ASSEMBLY
class TestWhichNodeALineIsFrom:
    def test_each_statement_has_its_node(self) -> None:
        graph = residual_graph()
        same_text(
            "\n".join(overview(graph.python_code("self"), tuple(graph.nodes))),
            OF_EACH_NODE,
            "An error in a line is blamed on the node that the line map "
            "gives for it. The def line is line 0 of the function, and it "
            "is line _prologue_start of the text.",
        )

    def test_a_definition_may_end_in_a_line_break(self) -> None:
        class Spaced(CodeGen):
            def gen_fn_def(self, *args: AnyValue, **named: AnyValue) -> str:
                return super().gen_fn_def(*args, **named) + "\n"

        graph = residual_graph()
        graph.set_codegen(Spaced())
        same_text(
            "\n".join(overview(graph.python_code("self"), tuple(graph.nodes))),
            OF_EACH_NODE,
            "The definition of this subclass ends in a line break, so an empty "
            "line comes before the body, and the definition takes two lines: "
            "count its line breaks, which `splitlines` does not do.",
        )

    def test_a_line_that_is_no_nodes_statement(self) -> None:
        graph = Graph()
        graph.placeholder("x")
        graph.placeholder("y")
        same_text(
            "\n".join(overview(graph.python_code("self"), tuple(graph.nodes))),
            "y | pass",
            "No node has written the line `pass`: it is said to be from the "
            "last one.",
        )

    def test_a_line_of_a_graph_without_nodes(self) -> None:
        code = Graph().python_code("self")
        same(
            set((code._lineno_map or {}).values()),
            {None},
            "There is no node that the line `pass` could be from: its index "
            "is None. (-1 would be an index from the end of the list.)",
        )

    def test_a_def_line_that_is_several_lines(self) -> None:
        graph = residual_graph()
        code = graph.python_code("self", expanded_def=True)
        same_text(
            "\n".join(overview(code, tuple(graph.nodes))),
            OF_EACH_NODE,
            "With one parameter a line the body begins further down: count "
            "the lines of the definition.",
        )

    def test_the_layout_of_the_text(self) -> None:
        graph = Graph()
        x = graph.call_function(len, (graph.placeholder("x"),))
        x.meta["is_wrapped"] = True
        graph.output(x)
        same(
            graph.python_code("self").src.split("\n")[:4],
            ["", 'wrap("len")', "", "def forward(self, x):"],
            "The text is an empty line, the wraps, an empty line, the "
            "definition, the body: line 4 is the def line, with one line "
            "that wraps as without any.",
        )

    def test_lines_that_wrap_come_first(self) -> None:
        graph = Graph()
        x = graph.placeholder("x")
        for function in (len, abs):
            x = graph.call_function(function, (x,))
            x.meta["is_wrapped"] = True
        graph.output(x)
        code = graph.python_code("self")
        same_text(
            "\n".join(filter(str.strip, code.src.splitlines())),
            """
            wrap("len")
            wrap("abs")
            def forward(self, x):
                len_1 = len(x);  x = None
                abs_1 = abs(len_1);  len_1 = None
                return abs_1
            """,
            "Before the function come the lines that make its leaf "
            "functions leaves again: `_wrap_statements` writes them, one for "
            "each function that the emitter has noted while it ran.",
        )
        same_text(
            "\n".join(overview(code, tuple(graph.nodes))),
            """
            len_1 | len_1 = len(x);  x = None
            abs_1 | abs_1 = abs(len_1);  len_1 = None
            output | return abs_1
            """,
            "The lines that wrap come before the function, so it begins "
            "further down: _prologue_start counts them.",
        )


# -- from the text to the function -------------------------------------------

COMPILING = pytest.mark.exercise("codegen.source.compile_forward")

TEXT = """


def forward(self, x):
    doubled = x * factor
    return doubled
"""

COUNTING = """


def forward(self, x):
    global count; count = count + x
    return count
"""


def code_of(text: str = TEXT, **names: AnyValue) -> PythonCode:
    """A text with globals, of which line 4 is the def line."""
    return PythonCode(text, names, {1: 1, 2: 2, 3: 2}, 4)


def some_nodes() -> tuple[Node, ...]:
    """Three nodes, for the three lines of the texts here."""
    graph = Graph()
    x = graph.placeholder("x")
    doubled = graph.call_function(operator.mul, (x, 2), name="doubled")
    graph.output(doubled)
    return tuple(graph.nodes)


def finalizers() -> set[weakref.finalize[..., AnyValue]]:
    """All finalizers that have not been called yet."""
    return set(vars(weakref.finalize)["_registry"])


def lines_known_for(key: str) -> list[str]:
    """What debuggers find under a file name."""
    return linecache.getlines(key)


@COMPILING
class TestTheFunction:
    def test_it_computes(self) -> None:
        program = compile_forward(code_of(factor=2), (), {})
        same(
            program.forward(None, 21),
            42,
            "The text defines a function `forward`; executed with the "
            "globals of the code, it computes x * factor.",
        )

    def test_it_comes_with_its_text_and_nodes(self) -> None:
        code, nodes = code_of(factor=2), some_nodes()
        program = compile_forward(code, nodes, {})
        check(
            program.code is code and program.nodes is nodes,
            "A CompiledForward is the function with the code it was made "
            "from and the nodes for which the text was written.",
        )

    def test_the_globals_of_the_code_stay_as_they_are(self) -> None:
        code = code_of(factor=2)
        compile_forward(code, (), {})
        same(
            sorted(code.globals),
            ["factor"],
            "exec writes into the dict it is given: `forward` and the "
            "builtins are now among the globals of the code. Give it a copy.",
        )

    def test_two_functions_do_not_share_globals(self) -> None:
        code = code_of(COUNTING, count=0)
        first = compile_forward(code, (), {}).forward
        second = compile_forward(code, (), {}).forward
        first(None, 1)
        same(
            second(None, 1),
            1,
            "Both functions are of one PythonCode, and a global that the "
            "first has set was seen by the second: each gets a copy.",
        )

    def test_annotations_are_evaluated(self) -> None:
        text = TEXT.replace("x)", "x : torch.Tensor)")
        program = compile_forward(code_of(text, torch=torch, factor=2), (), {})
        same(
            program.forward.__annotations__.get("x"),
            torch.Tensor,
            "The annotation of x is a string: `compile` has inherited "
            "`from __future__ import annotations` from "
            "fx/codegen/source.py. Say dont_inherit=True.",
        )

    def test_an_interruption_comes_through(self) -> None:
        def stop() -> None:
            raise KeyboardInterrupt

        text = TEXT.replace("x)", "x=stop())")
        with raising(
            KeyboardInterrupt,
            "",
            "Ctrl-C while the text is executed became an error in the "
            "text. Only an Exception says that Python does not accept it.",
        ):
            try:
                compile_forward(code_of(text, stop=stop, factor=2), (), {})
            except RuntimeError as error:
                if stub_of(error):
                    raise

    def test_it_is_not_among_its_own_globals(self) -> None:
        forward: AnyValue = compile_forward(code_of(factor=2), (), {}).forward
        check(
            "forward" not in forward.__globals__,
            "exec has put `forward` into the dict that is its globals, and "
            "left there the function and its globals hold each other: only "
            "the garbage collector could free them. Take it out with `pop`.",
        )


@COMPILING
class TestWhatDebuggersSee:
    def test_the_source_is_found(self) -> None:
        program = compile_forward(code_of(factor=2), (), {})
        key = program.forward.__code__.co_filename
        entry = linecache.cache.get(key, "nothing")
        try:
            source = inspect.getsource(program.forward)
        except OSError as error:
            source = f"inspect.getsource: OSError: {error}"
        same_text(
            source,
            TEXT,
            "The text has no file, so debuggers find its lines only if "
            "linecache.cache has them, under the file name that the text was "
            "compiled with, in a tuple (length of the text, None, lines with "
            "their line ends, file name). A time in the place of None would "
            f"make them look for a file. Under {key!r} is: {entry}",
        )

    def test_a_line_ends_where_python_ends_it(self) -> None:
        text = 'def forward(self, x):\n    a = "\u2028"\n    return a'
        program = compile_forward(code_of(text), (), {})
        same(
            lines_known_for(program.forward.__code__.co_filename),
            [f"{line}\n" for line in text.split("\n")],
            "The text has three lines to Python, which ends one at \\n alone, "
            "and debuggers find others. (`splitlines` also splits at \\u2028, "
            "which a string of the user may hold.) Each line of the list ends "
            "in \\n, the last one too.",
        )

    def test_the_lines_are_there_while_the_text_is_executed(self) -> None:
        known: list[str] = []

        def look() -> int:
            known.extend(lines_known_for(sys._getframe(1).f_code.co_filename))
            return 0

        text = TEXT.replace("x)", "x = look())")
        compile_forward(code_of(text, look=look, factor=2), (), {})
        check(
            known,
            "A default of the text is evaluated while the text is executed, "
            "and its lines were not in linecache yet: a warning given there, "
            "or a debugger, could not show them. Make the entry before you "
            "compile.",
        )

    def test_two_texts_have_two_file_names(self) -> None:
        one = compile_forward(code_of(factor=2), (), {}).forward
        other_text = TEXT.replace("doubled", "changed")
        two = compile_forward(code_of(other_text, factor=2), (), {}).forward
        names = one.__code__.co_filename, two.__code__.co_filename
        check(
            names[0] != names[1],
            f"Both functions say that they are from {names[0]!r}: a "
            "traceback of one would show lines of the other. `_new_key` "
            "gives each text a file name of its own.",
        )

    def test_the_file_name_says_what_was_traced(self) -> None:
        fields = {"co_name": "f", "co_filename": "a.py", "co_firstlineno": 3}
        forward = compile_forward(code_of(factor=2), (), fields).forward
        check(
            forward.__code__.co_filename.endswith("from a.py:3 in f"),
            "`co_fields` tells which function of the user was traced, and "
            "becomes part of the file name: give it to `_new_key`.",
        )

    def test_the_lines_go_with_the_code(self) -> None:
        forward = compile_forward(code_of(factor=2), (), {}).forward
        key = forward.__code__.co_filename
        del forward
        gc.collect()
        check(
            not lines_known_for(key),
            "Nobody has the function any more, and its lines are still in "
            "linecache: a program that recompiles often would never free "
            "them. weakref.finalize can call `_forget`.",
        )

    def test_the_end_of_the_program_needs_no_call(self) -> None:
        before = finalizers()
        program = compile_forward(code_of(factor=2), (), {})
        ours = finalizers() - before
        check(
            not any(each.atexit for each in ours),
            "At the program's end Python calls each finalizer that is still "
            "there and has `atexit` set, one after the other: here for each "
            "text, only to empty a dict that dies anyway. Set it to False.",
        )
        del program

    def test_the_lines_stay_while_a_traceback_holds_the_code(self) -> None:
        forward = compile_forward(code_of(factor=2), (), {}).forward
        code = forward.__code__
        del forward
        gc.collect()
        check(
            lines_known_for(code.co_filename),
            "The function is gone, but its code object is not (a traceback "
            "that somebody keeps holds the code alone), and the lines are "
            "lost: they must live as long as `forward.__code__`.",
        )


@COMPILING
class TestWhatPythonRefuses:
    def test_a_syntax_error_names_line_and_node(self) -> None:
        text = TEXT.replace("x * factor", "x * * factor")
        for part in ("x * * factor", "Node doubled"):
            with raising(
                Exception,
                part,
                "Python refuses the text, and a bare SyntaxError does not say "
                "which node wrote the line: raise RuntimeError with what "
                "`why_refused` says. It knows the line from the file name "
                "in the error, so the text must be compiled under the key.",
            ):
                compile_forward(code_of(text, factor=2), some_nodes(), {})

    def test_the_cause_is_kept(self) -> None:
        try:
            compile_forward(code_of("def forward(:", factor=2), (), {})
        except Exception as error:
            check(
                isinstance(error, RuntimeError)
                and isinstance(error.__cause__, SyntaxError),
                "What Python refuses is a RuntimeError here, raised `from` "
                "Python's own SyntaxError: the cause would be lost otherwise.",
            )
        else:
            check(False, "Python refuses this text, and no error was raised.")

    def test_an_error_while_the_function_is_defined(self) -> None:
        text = TEXT.replace("x)", "x = missing)")
        with raising(
            Exception,
            "Python refuses",
            "The default of a parameter is evaluated when the text is "
            "executed: errors of exec count, not those of compile alone.",
        ):
            compile_forward(code_of(text, factor=2), (), {})

    @pytest.mark.parametrize(
        ("text", "part"),
        [
            (TEXT.replace("x)", "x = 1 / 0)"), "ZeroDivisionError"),
            (TEXT.replace("forward", "backward"), "KeyError"),
        ],
    )
    def test_any_error_counts(self, text: str, part: str) -> None:
        for error in (Exception, RuntimeError):
            with raising(
                error,
                f"Python refuses the generated code: {part}",
                f"Defining the function fails with a {part}, since a default "
                "is evaluated then and may be anything, or the text may "
                "define no `forward` at all. Any Exception means that the "
                "text is refused.",
            ):
                compile_forward(code_of(text, factor=2), (), {})

    def test_nothing_of_a_refused_text_stays(self) -> None:
        before = set(linecache.cache)
        with raising(
            Exception, "Python refuses", "Python refuses this text: say so."
        ):
            compile_forward(code_of("def forward(:"), (), {})
        same(
            sorted(set(linecache.cache) - before),
            [],
            "The text was refused, and its lines are still in linecache, "
            "where nothing will ever remove them: `_forget` the key.",
        )


@COMPILING
class TestTheWholeStage:
    def test_a_traced_module_computes_the_same(self) -> None:
        torch.manual_seed(0)
        model, x = Residual(), torch.randn(3, 4)
        traced = symbolic_trace(model)
        check(
            torch.equal(traced(x), model(x)),
            "symbolic_trace(model) must compute exactly what model does.",
        )

    def test_an_edit_and_recompile(self) -> None:
        torch.manual_seed(0)
        model, x = Residual(), torch.randn(3, 4)
        traced = symbolic_trace(model)
        (relu,) = traced.graph.find_nodes(op="call_function", target=torch.relu)
        relu.target = torch.sigmoid
        traced.recompile()
        check(
            "torch.sigmoid(add)" in traced.code,
            "recompile() writes the code anew from the edited graph.",
        )
        check(
            torch.equal(traced(x), torch.sigmoid(model.linear(x) + x)),
            "After recompile() the module computes what the graph says now.",
        )
