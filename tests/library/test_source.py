"""Generated text: compiled, found by debuggers, and freed with its code."""

from __future__ import annotations

import gc
import inspect
import linecache
import re
import threading
import traceback
from collections.abc import Mapping
from functools import partial

import pytest
import torch

from fx.codegen.source import CompiledForward, compile_forward, line_of
from fx.graph import Graph
from fx.graph_module import GraphModule
from fx.node import Node
from fx.use_def.protocols import PythonCode
from fx.use_def.values import AnyValue

TEXT = """


def forward(self, x):
    doubled = x * 2
    raise ValueError("no line like this")
"""


def compiled(
    text: str = TEXT,
    fields: Mapping[str, AnyValue] | None = None,
    lines: dict[int, int | None] | None = None,
    nodes: tuple[Node, ...] = (),
    **names: AnyValue,
) -> CompiledForward:
    code = PythonCode(text, names, lines or {}, 4)
    return compile_forward(code, nodes, fields or {})


def key_of(program: CompiledForward) -> str:
    return program.forward.__code__.co_filename


def some_nodes() -> tuple[Node, ...]:
    graph = Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(torch.relu, (x,)))
    return tuple(graph.nodes)


class TestTheKey:
    def test_it_is_a_number_that_grows(self) -> None:
        keys = [key_of(compiled()) for _ in range(3)]
        numbers = [
            int(re.fullmatch(r"<eval_with_key>\.(\d+)", key)[1])  # type: ignore[index]
            for key in keys
        ]
        assert numbers == sorted(set(numbers))

    def test_half_a_description_is_left_out(self) -> None:
        assert "a.py" not in key_of(compiled(fields={"co_filename": "a.py"}))

    def test_threads_never_share_one(self) -> None:
        keys: list[str] = []

        def work() -> None:
            keys.extend(key_of(compiled()) for _ in range(50))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(keys)) == len(keys) == 200


class TestTheLines:
    def test_a_key_that_ends_in_brackets_is_found_too(self) -> None:
        fields = {"co_filename": "a", "co_firstlineno": 1}
        program = compiled(fields={**fields, "co_name": "<lambda>"})
        assert linecache.getline(key_of(program), 5) == "    doubled = x * 2\n"
        assert inspect.getsource(program.forward) == TEXT.lstrip("\n")

    def test_checking_the_cache_does_not_lose_them(self) -> None:
        program = compiled()
        linecache.checkcache()
        assert linecache.getlines(key_of(program))

    def test_separators_that_python_does_not_know_split_no_line(self) -> None:
        program = compiled("def forward(self):\n    '\x0c\u2028'\n    return 1")
        assert linecache.getline(key_of(program), 3) == "    return 1\n"

    def test_a_traceback_shows_them(self) -> None:
        with pytest.raises(ValueError) as caught:
            compiled().forward(None, 1)
        text = "".join(traceback.format_exception(caught.value))
        assert '    raise ValueError("no line like this")' in text

    def test_a_line_knows_its_node(self) -> None:
        nodes = some_nodes()
        program = compiled(lines={1: 0, 2: 1}, nodes=nodes)
        line = partial(line_of, program.code, program.nodes)
        assert line(5) == ("    doubled = x * 2", nodes[0])
        assert line(6).node is nodes[1]
        assert line(4) == ("def forward(self, x):", None)
        odd = compiled(lines={1: 7}, nodes=nodes)
        assert line_of(odd.code, odd.nodes, 5).node is None
        assert line(99) == ("", None)
        assert line(0) == ("", None)


class TestTextThatPythonRefuses:
    def test_a_syntax_error_names_line_and_node(self) -> None:
        nodes = some_nodes()
        nodes[1].stack_trace = '  File "net.py", line 7, in f\n    x.relu()\n'
        before = dict(linecache.cache)
        with pytest.raises(RuntimeError) as caught:
            compiled(
                "\n\n\ndef forward(self, x):\n    relu = x +\n",
                lines={1: 1},
                nodes=nodes,
            )
        text = str(caught.value)
        assert "SyntaxError: invalid syntax" in text
        assert "line 5: relu = x +" in text
        assert "Node relu: %relu : [num_users=1] = call_function" in text
        assert 'File "net.py", line 7, in f' in text
        assert "recompile()" in text
        assert isinstance(caught.value.__cause__, SyntaxError)
        assert linecache.cache == before

    def test_an_error_while_it_is_defined_names_its_line(self) -> None:
        with pytest.raises(RuntimeError, match="NameError") as caught:
            compiled("\n\n\ndef forward(self, x=missing):\n    return x")
        assert "line 4: def forward(self, x=missing):" in str(caught.value)

    def test_a_text_too_deep_for_python_is_refused_with_words(self) -> None:
        deep = "(" * 500 + ")" * 500
        with pytest.raises(RuntimeError, match="too many nested parentheses"):
            compiled(f"def forward(self):\n    return {deep}")


class TestManyModules:
    def test_nothing_is_left_of_modules_that_are_gone(self) -> None:
        graph = Graph()
        graph.output(graph.placeholder("x"))

        def generated() -> int:
            keys = list(linecache.cache)
            return sum(key.startswith("<eval_with_key>") for key in keys)

        gc.collect()
        before = generated()
        kept = GraphModule({}, graph)
        for _ in range(100):
            kept.recompile()
        gc.collect()
        assert generated() == before + 1
        del kept, graph
        gc.collect()
        assert generated() == before
