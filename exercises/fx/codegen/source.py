"""Stage 05, codegen: from generated text to a function that debuggers can read.

Text that is compiled in memory has no file, so a traceback through it would
show bare line numbers.  Here each text gets a unique file name, its *key*.
The standard library's `linecache` finds the lines under that name, and
tracebacks, `inspect.getsource`, pdb and TorchScript all ask there.  The lines
are dropped when the compiled code is, which a kept traceback may delay.
"""

from __future__ import annotations

import itertools
import linecache
import weakref
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Final, NamedTuple

from ..node import Node
from ..usedef.protocols import PythonCode
from ..usedef.values import Value
from .failures import why_refused

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
    co_fields: Mapping[str, Value],
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


def _new_key(co_fields: Mapping[str, Value]) -> str:
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
    forward: Value = known.forward
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
