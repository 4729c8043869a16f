"""Stage 05, codegen: from generated text to a function that debuggers can read.

Text that is compiled in memory has no file, so a traceback through it would
show bare line numbers.  Here each text gets a unique file name, its *key*.
The standard library's `linecache` finds the lines under that name, and
tracebacks, `inspect.getsource`, pdb and TorchScript all ask there.  The lines
are dropped when the compiled code is, which a kept traceback may delay.

An error in generated text, of Python's compiler or when the code runs, is told
with its line, the node for which that was written, and where the node was
recorded.
"""

from __future__ import annotations

import itertools
import linecache
import re
import traceback
import weakref
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Final, NamedTuple

from ..node import Node
from ..use_def.protocols import PythonCode
from ..use_def.values import AnyValue

_numbers: Final = itertools.count()


class CompiledForward(NamedTuple):
    """Generated text, compiled.

    Attributes:
        forward: the function.
        code: the text with the globals that it names.
        nodes: the nodes for which the text was written, in order. A graph may
            be edited later, and the text is still about these.
    """

    forward: FunctionType
    code: PythonCode
    nodes: Sequence[Node]


def compile_forward(
    code: PythonCode,
    nodes: Sequence[Node],
    co_fields: Mapping[str, AnyValue],
) -> CompiledForward:
    """Compile the text of a function `forward`, and define the function.

    Args:
        code: the text; it gets a copy of the globals.
        nodes: the nodes for which it was written, in order.
        co_fields: co_name, co_filename and co_firstlineno of the user's
            function that was traced, if known: they become part of the key.

    Raises:
        RuntimeError: Python does not accept the text. Says which line, and
            which node wrote it.

    Cost: O(length of the text), nearly all of it Python's own `compile`.

    torch.fx: graph_module.py, _forward_from_src
    """
    raise NotImplementedError("stage 05: compile_forward")


def _forget(key: str) -> None:
    """Drop the lines that are known under `key`."""
    linecache.cache.pop(key, None)


def _new_key(co_fields: Mapping[str, AnyValue]) -> str:
    """A unique file name that says which function was traced."""
    key = f"<eval_with_key>.{next(_numbers)}"
    try:
        file, first = co_fields["co_filename"], co_fields["co_firstlineno"]
        return f"{key} from {file}:{first} in {co_fields['co_name']}"
    except KeyError:
        return key


# -- text that is compiled already -------------------------------------------


def kept(
    known: CompiledForward | None, code: PythonCode, nodes: Sequence[Node]
) -> CompiledForward | None:
    """`known`, if compiling `code` would make it again.

    A pass that changes nothing recompiles all the same, since the user may
    have edited the graph before.  Usually not, and then Python's `compile`, two
    thirds of the time, would only make the same function again.

    Equal text is not enough.  The lines must have been written for the same
    nodes, because errors name them, `linecache` must still have them, and each
    global must be the same object: two functions of one name are written alike.

    Args:
        known: what was compiled last, if anything.
        code: what would be compiled now.
        nodes: the nodes for which `code` was written, in order.

    Cost: O(nodes + globals + length of the text), all of it comparisons.
    """
    if known is None:
        return None
    forward: AnyValue = known.forward
    names = forward.__globals__
    same = (
        known.code.src == code.src
        and known.code._lineno_map == code._lineno_map
        and known.nodes == nodes
        and forward.__code__.co_filename in linecache.cache
        # `names` stands for "missing": no global of the code is that dict.
        and all(names.get(k, names) is v for k, v in code.globals.items())
    )
    return known if same else None


def _refuse_call(self: object, *args: AnyValue, **kwargs: AnyValue) -> None:
    """The forward of a module whose graph has no node yet.

    Raises:
        RuntimeError: always.
    """
    raise RuntimeError(
        "the graph of this module is still empty: add nodes and an output "
        "to gm.graph, then call gm.recompile()"
    )


refuse_call: Final[AnyValue] = _refuse_call
"""The same, for where mypy asks for a FunctionType."""


# -- errors that name a node -------------------------------------------------


class Frame(NamedTuple):
    """A line of a program, in a stack trace that is text.

    Attributes:
        file: the path of its file.
        line: its number.
        function: the name of the function that it is in.
        code: its text, "" if it is not known.
    """

    file: str
    line: int
    function: str
    code: str

    def __str__(self) -> str:
        """The frame as a traceback shows it."""
        head = f'  File "{self.file}", line {self.line}, in {self.function}'
        return f"{head}\n    {self.code}" if self.code else head


_FRAME: Final = re.compile(
    r'^ *File "(.+)", line (\d+), in (.+)(?:\n(?! *File ") *(.*))?',
    re.MULTILINE,
)


def frames_of(stack_trace: str | None) -> list[Frame]:
    """The frames of a stack trace that is text, the innermost last."""
    matches = _FRAME.findall(stack_trace or "")
    return [Frame(file, int(line), *rest) for file, line, *rest in matches]


class Line(NamedTuple):
    """A line of generated text.

    Attributes:
        text: its characters, without the line end.
        node: the node for which it was written; None for the def line, say.
    """

    text: str
    node: Node | None


def line_of(code: PythonCode, nodes: Sequence[Node], number: int) -> Line:
    """One line of generated text; an empty one if the number is out of range.

    Args:
        code: the text.
        nodes: the nodes for which it was written, in order.
        number: which line, from 1 on.

    Cost: O(length of the text).
    """
    lines = code.src.split("\n")
    text = lines[number - 1] if 0 < number <= len(lines) else ""
    index = (code._lineno_map or {}).get(number - code._prologue_start)
    # A user's own code generator may map lines to nodes that do not exist.
    if index is None or index >= len(nodes):
        return Line(text, None)
    return Line(text, nodes[index])


def why_refused(
    error: Exception, key: str, code: PythonCode, nodes: Sequence[Node]
) -> str:
    """The message for text that Python does not accept.

    Args:
        error: what Python raised when it compiled or executed the text.
        key: the file name under which the text was compiled.
        code: the text.
        nodes: the nodes for which it was written, in order.
    """
    what = error.msg if isinstance(error, SyntaxError) else str(error)
    text = f"Python refuses the generated code: {type(error).__name__}: {what}"
    number = _number_in(error, key)
    if number is not None:
        line, node = line_of(code, nodes, number)
        text += f"\n  line {number}: {line.strip()}"
        if node is not None:
            text += f"\n  written for Node {node}: {node.format_node()}"
            for frame in frames_of(node.stack_trace)[-1:]:
                text += f"\n  recorded at:\n{frame}"
    return text + (
        "\nNothing was changed by this. list(fx.lint.problems(graph)) finds "
        "what is wrong with a graph: change that, then call recompile() again"
    )


def _number_in(error: Exception, key: str) -> int | None:
    """The line of the text `key` in which an exception arose, if known."""
    if isinstance(error, SyntaxError) and error.filename == key:
        return error.lineno
    frames = traceback.walk_tb(error.__traceback__)
    numbers = [n for f, n in frames if f.f_code.co_filename == key]
    return numbers[-1] if numbers else None


def where_it_failed(
    error: Exception,
    forward: FunctionType,
    code: PythonCode,
    nodes: Sequence[Node],
) -> str:
    """The message for an error that a line of `forward` itself raised.

    Args:
        error: what was raised, with its traceback.
        forward: the generated function.
        code: its text.
        nodes: the nodes for which the text was written, in order.

    Returns:
        The message; "" if the error came from a function that `forward`
        called. The traceback ends at the cause then, and if that is in an
        inner GraphModule, the inner module has printed its own message.
    """
    *_, (frame, number) = traceback.walk_tb(error.__traceback__)
    if frame.f_code is not forward.__code__:
        return ""
    before, failed, *after = (
        line_of(code, nodes, number + step) for step in (-1, 0, 1, 2)
    )
    parts = [
        "".join(traceback.format_exception(error)),
        f"Call using an FX-traced Module, line {number} of the traced "
        "Module's generated forward function:",
        f"{before.text}\n{failed.text}\n",
        f"{'~' * len(failed.text.strip())}~~~ <--- HERE",
        *(f"{line.text}\n" for line in after),
    ]
    if failed.node is not None:
        said = f"That line is Node {failed.node}"
        frames = frames_of(failed.node.stack_trace)
        parts += [f"{said}, recorded at\n{frames[-1]}" if frames else said]
    return "\n".join(parts)
