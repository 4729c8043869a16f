"""Stage 05, codegen: from generated text to a function that debuggers can read.

Text that is compiled in memory has no file, so a traceback through it would
show bare line numbers.  Here each text gets a file name of its own, its *key*,
under which the standard library's `linecache` finds the lines; tracebacks,
`inspect.getsource`, pdb and TorchScript all ask there.  The lines live as long
as the compiled code does, in a traceback that somebody keeps if need be, and
go with it.
"""

from __future__ import annotations

import itertools
import linecache
import traceback
import weakref
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Final, NamedTuple

from ..node import Node
from ..usedef.protocols import PythonCode
from ..usedef.values import Value

_numbers: Final = itertools.count()


class Line(NamedTuple):
    """A line of generated text.

    Attributes:
        number: its number, from 1 on.
        text: what stands there.
        node: the node that it was written for; None for the def line, say.
    """

    number: int
    text: str
    node: Node | None


class Program(NamedTuple):
    """Generated text, compiled.

    Attributes:
        forward: the function.
        code: the text with the globals that it names.
        nodes: the nodes that the text was written for, in order: a graph may
            be edited later, and the text is still about these.
    """

    forward: FunctionType
    code: PythonCode
    nodes: Sequence[Node]

    def line(self, number: int) -> Line:
        """The line with this number, and the node it was written for."""
        return _line(self.code, self.nodes, number)

    def is_of(self, code: PythonCode, nodes: Sequence[Node]) -> bool:
        """Whether `code`, compiled, would do and say what this does.

        So it would if it is the same text, written for the same nodes, and
        its names mean the very same objects.
        """
        forward: Value = self.forward
        known = forward.__globals__
        return (
            self.code.src == code.src
            and self.code._lineno_map == code._lineno_map
            and self.nodes == nodes
            and all(known.get(k, known) is v for k, v in code.globals.items())
        )


def compile_forward(
    code: PythonCode,
    nodes: Sequence[Node],
    co_fields: Mapping[str, Value],
) -> Program:
    """Compile the text of a function `forward`, and define the function.

    Args:
        code: the text; it gets a copy of the globals.
        nodes: the nodes it was written for, in order.
        co_fields: co_name, co_filename and co_firstlineno of the user's
            function that was traced, if known: they become part of the key.

    Raises:
        RuntimeError: Python does not accept the text. Says which line, and
            which node wrote it.

    Cost: O(length of the text), nearly all of it Python's own `compile`.

    torch.fx: graph_module.py, _forward_from_src
    """
    key = _new_key(co_fields)
    namespace = dict(code.globals)
    lines = [f"{line}\n" for line in code.src.split("\n")]
    linecache.cache[key] = len(code.src), None, lines, key
    try:
        # dont_inherit: without it this file's `annotations` future would turn
        # the annotations of the generated function into strings.
        exec(compile(code.src, key, "exec", dont_inherit=True), namespace)
        forward: FunctionType = namespace.pop("forward")
    except Exception as error:
        _forget(key)
        message = _why_refused(error, key, code, nodes)
        raise RuntimeError(message) from error
    # The code, not the function: a traceback holds the code alone.
    weakref.finalize(forward.__code__, _forget, key).atexit = False
    return Program(forward, code, nodes)


def _forget(key: str) -> None:
    """Drop the lines that are known under `key`."""
    linecache.cache.pop(key, None)


def _new_key(co_fields: Mapping[str, Value]) -> str:
    """A file name that no other text has, and that says what was traced."""
    key = f"<eval_with_key>.{next(_numbers)}"
    try:
        file, first = co_fields["co_filename"], co_fields["co_firstlineno"]
        return f"{key} from {file}:{first} in {co_fields['co_name']}"
    except KeyError:
        return key


def _line(code: PythonCode, nodes: Sequence[Node], number: int) -> Line:
    """A line of `code` with the node among `nodes` that it was written for."""
    lines = code.src.split("\n")
    text = lines[number - 1] if 0 < number <= len(lines) else ""
    index = (code._lineno_map or {}).get(number - code._prologue_start)
    # A user's code generator can say what it likes.
    if index is None or index >= len(nodes):
        return Line(number, text, None)
    return Line(number, text, nodes[index])


def _why_refused(
    error: Exception, key: str, code: PythonCode, nodes: Sequence[Node]
) -> str:
    """The message for text that Python does not accept."""
    text = f"Python refuses the generated code: {_describe(error)}"
    number = _number_in(error, key)
    if number is not None:
        line = _line(code, nodes, number)
        text += f"\n  line {number}: {line.text.strip()}"
        if line.node is not None:
            text += f"\n  written for Node {line.node}: "
            text += str(line.node.format_node())
            text += _stack(line.node)
    return text + (
        "\nNothing was changed by this. list(fx.lint.problems(graph)) finds "
        "what is wrong with a graph: change that, then call recompile() again"
    )


def _describe(error: Exception) -> str:
    """An exception in one line."""
    what = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {what}"


def _number_in(error: Exception, key: str) -> int | None:
    """The line of the text `key` in which an exception arose, if known."""
    if isinstance(error, SyntaxError) and error.filename == key:
        return error.lineno
    frames = traceback.walk_tb(error.__traceback__)
    numbers = [n for f, n in frames if f.f_code.co_filename == key]
    return numbers[-1] if numbers else None


def _stack(node: Node) -> str:
    """Where the node was recorded, to be added to a message."""
    user_line = last_frame(node.stack_trace or "")
    return f"\n  recorded at:\n{user_line}" if user_line else ""


def last_frame(stack_trace: str) -> str:
    """The innermost frame of a stack trace in text, "" if there is none."""
    lines = stack_trace.rstrip().splitlines()
    heads = [i for i, line in enumerate(lines) if _is_head(line)]
    return "\n".join(lines[heads[-1] :]) if heads else ""


def _is_head(line: str) -> bool:
    """Whether a frame begins with this line of a stack trace."""
    return line.lstrip().startswith('File "')
