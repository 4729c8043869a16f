"""Extra: what to do about an error in code that is traced.

A proxy is not a number, list or array.  Where Python, NumPy or torch need one,
they raise an error of their own, which was written for somebody who has made a
mistake: "'Proxy' object cannot be interpreted as an integer".  The code may be
right, and only cannot be traced.  So the trace adds a note to such an error,
with the line of the user's code and a way to write it.  The error keeps its
type and its message, so that programs that look for these find them.

Where a size, a dtype, a device or a number of items is all that is needed, a
trace on an example has it, and that is the first advice. In an error of fx it
stands before the others.

A proxy cannot raise a better error itself: if it had `__index__`, torch would
take it for a number and ask for its value, where today it records a call.
"""

from __future__ import annotations

import re
import traceback
from types import FrameType
from typing import Final

from ...graph import Graph
from ...node import Node
from ...recording import frames

_EXAMPLE: Final = (
    "Trace it on an example: fx.trace(root, *inputs) knows sizes, dtypes and "
    "devices, and how many items there are, and its graph checks them"
)
_WRAP: Final = (
    "or move the expression into a function at the top level of a module and "
    'mark that with fx.wrap("its_name"), which makes it one call of the graph'
)
_NUMBER: Final = (
    "Python needs a number here, and the value of a proxy is known only when "
    f"the graph runs. Is it a size? {_EXAMPLE}. Or leave the computation to "
    f"torch's functions and methods, which take proxies; {_WRAP}; or, if the "
    "number is the same in each call, "
    "fix the input that it comes from with concrete_args"
)
_ARRAY: Final = (
    "NumPy needs the data of an array here, which a proxy does not have. Use "
    f"the function of torch or of math that does the same; {_WRAP}"
)

_ADVICE: Final[tuple[tuple[str, str], ...]] = (
    (
        r"NameError: module is not installed as a submodule",
        "A module that forward makes would have new parameters in each call. "
        "Make it once, in __init__",
    ),
    (
        r"TypeError: 'Proxy' object (does not|doesn't) support item",
        "A graph records calls, and `y[i] = v` is a statement. Write "
        "`y[i].copy_(v)` if y[i] is a view, or `torch.where`, or "
        "`setitem(y, i, v)` with `from operator import setitem` and "
        'fx.wrap("setitem") at the top of the module',
    ),
    (
        r"TypeError: \w+\(\) takes 1 positional argument but \d+ were given",
        "Give the sizes as one tuple, as in `torch.zeros((n, m))`, or call a "
        "method of the proxy, as in `x.new_zeros(n, m)`",
    ),
    (
        r"TypeError: .*torch\.[fi]info",
        f"The dtype of a proxy is known only when the graph runs. {_EXAMPLE}. "
        "Or write "
        f"`torch.finfo(torch.float32)` if it is always the same, {_WRAP}",
    ),
    (
        r"TypeError: .*(range|'Proxy' object cannot be interpreted)",
        f"{_NUMBER}. A loop over range(n) is not recorded: the graph has as "
        "many rounds as the trace sees",
    ),
    (
        r"TypeError: slice indices must be integers",
        f"{_EXAMPLE}. To cut a tensor that is not a proxy, call a function: "
        "`torch.narrow(t, 0, start, length)`. Of a list, the length of the cut "
        "must be known while tracing",
    ),
    (
        r"TypeError: `?__cuda_array_interface__|RuntimeError: 'len' is not",
        f"{_EXAMPLE}. To make a tensor of a number that is a proxy, write "
        "`torch.full((), n)` or `x.new_full((), n)`; of several, "
        "`torch.stack` of such tensors",
    ),
    (
        r"(TypeError|ValueError): .*(__array_struct__|np\.ndarray|ufunc)",
        _ARRAY,
    ),
    (
        r"KeyError: Proxy|cannot contain a Node\. Got key",
        "A dict finds its keys by their values, and that of a proxy is known "
        f"only when the graph runs. Look up by something else; {_WRAP}",
    ),
    (
        r"(ValueError|RuntimeError): .*(\bfx\.proxy\.Proxy\b|type of Proxy)",
        "This runs on tensors, as the transforms of torch.func do, and not on "
        f"proxies: {_WRAP.removeprefix('or ')}",
    ),
    (
        r"TypeError: .*\bProxy\b",
        _NUMBER,
    ),
)
"""What an error says -> what to do about it; each piece of advice was tried."""


def explain(error: BaseException, graph: Graph) -> None:
    """Add a note to an error of the code that is traced, if one helps.

    Args:
        error: what ended the trace, with its traceback.
        graph: what was recorded until then.
    """
    said = f"{type(error).__name__}: {error}"
    if (found := _OURS.search(said)) and _is_known(found[1], graph):
        said, _, other = str(error).rpartition("\n  ")
        error.args = (f"{said}\n  {_EXAMPLE}.\n  {other}",)
        return
    advice = next((a for text, a in _ADVICE if re.search(text, said)), None)
    frame = raised_in(error)
    if advice is not None and frame is not None:
        error.add_note(
            f"This was raised while fx traced\n  {frames.where(frame)}\n"
            f"  {advice}."
        )


_OURS: Final = re.compile(
    r"Proxy\((\w+)\) is used as a truth value in\n|() is iterated in\n"
    r"|RuntimeError: .*() takes \*args or \*\*kwargs and is decorated by"
)
"""Errors of fx, and the name of a node that has to be known."""


def _is_known(name: str | None, graph: Graph) -> bool:
    """Whether a value follows from the sizes and kinds of inputs; "" does."""
    todo = [node for node in graph.nodes if node.name == name]
    seen: set[Node] = set()
    while todo:
        node = todo.pop()
        is_one = node.target is getattr or node.op == "call_method"
        asked = node.args[1] if node.target is getattr else node.target
        if (is_one and asked in _KINDS) or node in seen:
            continue
        if not node.all_input_nodes:
            return False
        seen.add(node)
        todo += node.all_input_nodes
    return True


_KINDS: Final = frozenset(
    "shape size dim ndim numel nelement dtype device layout type is_cuda "
    "is_cpu is_floating_point is_complex requires_grad is_contiguous stride "
    "element_size itemsize __len__".split()
)
"""What a program asks a tensor, and an example says."""


def raised_in(error: BaseException) -> FrameType | None:
    """The innermost frame of the user's code that an error came through.

    The trace hears of an error when it has left that code, but its traceback
    still knows.
    """
    stack = traceback.walk_tb(error.__traceback__)
    users = [frame for frame, _ in stack if frames.is_user(frame)]
    return users[-1] if users else None
