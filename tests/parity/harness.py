"""One program, two libraries: run it on torch.fx and on fx, compare notes.

A *program* is a function of one argument, `lib`: either the package
`torch.fx` or the package `fx`.  It does something with the library and
returns what it saw: strings, numbers, lists, tuples, dicts.  What both
libraries let it see must be equal.  Where fx differs on purpose, the program
names the row of docs/differences.md and says what fx shows instead:

    @program(claims=("node-prepend",))
    def prepend_moves(lib: Lib) -> Seen:
        g = lib.Graph()
        ...
        return str(g)

    @program(differs="wrap-refuses-classes", ours="TypeError: wrap(...)")
    def wrap_of_a_class(lib: Lib) -> Seen:
        return error(lambda: lib.wrap(torch.nn.Linear))

fx follows the newest torch.fx.  A program whose notes differ from one version
of torch.fx to the next is compared beside the newest alone:

    @program(newest=True)
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch.fx import _symbolic_trace as torch_tracing

Lib: TypeAlias = Any
"""`torch.fx` or `fx`: programs are written against both, so untyped."""

Made: TypeAlias = Any
"""What a library made (a graph, a node, a module): untyped as well."""

Seen: TypeAlias = object
"""What a program saw: strings, numbers, None, lists, tuples, dicts."""


class _Same:
    """The value of `ours` in a program that must see the same in both."""


SAME = _Same()


@dataclass(frozen=True)
class Program:
    """A parity program, as `@program` registers it."""

    name: str
    run: Callable[[Lib], Seen]
    claims: tuple[str, ...]
    differs: str | None
    ours: object
    newest: bool

    def seen_by(self, lib: Lib) -> Seen:
        """What the program sees in `lib`, in a form fit to compare."""
        with _torch_wraps_kept():
            return plain(self.run(lib))


@contextlib.contextmanager
def _torch_wraps_kept() -> Iterator[None]:
    """Forget what was wrapped with torch.fx inside: it has no unwrap."""
    registry = torch_tracing._wrapped_fns_to_patch
    before = dict(registry)
    try:
        yield
    finally:
        registry.clear()
        registry.update(before)


PROGRAMS: dict[str, Program] = {}


def program(
    *,
    claims: Sequence[str] = (),
    differs: str | None = None,
    ours: object = SAME,
    newest: bool = False,
) -> Callable[[Callable[[Lib], Seen]], Callable[[Lib], Seen]]:
    """Register a parity program.

    Args:
        claims: ids of tests/claims.toml that this program checks.
        differs: id of the row in docs/differences.md, where fx differs.
        ours: what fx shows then (exactly, after `plain`).
        newest: an older torch.fx than the newest shows something else.
    """
    if (differs is None) != (ours is SAME):
        raise ValueError("differs= and ours= go together")

    def register(run: Callable[[Lib], Seen]) -> Callable[[Lib], Seen]:
        name = f"{run.__module__.rpartition('.')[2]}.{run.__name__}"
        if name in PROGRAMS:
            raise ValueError(f"two parity programs are called {name}")
        PROGRAMS[name] = Program(
            name, run, tuple(claims), differs, ours, newest
        )
        return run

    return register


def error(act: Callable[[], object], *, chars: int = 60) -> str:
    """'TypeName: start of the message' of what `act` raises.

    Only the first line and `chars` characters count: the start of a message
    is interface, the rest is each library's own help.
    """
    try:
        act()
    except Exception as raised:
        # Before it is cut: Python 3.14 writes a class with its module.
        text = str(raised).replace("torch.fx.", "fx.")
        line = (text.splitlines() or [""])[0]
        return f"{type(raised).__name__}: {line[:chars]}".rstrip()
    return "no error"


def names(nodes: Iterable[Made]) -> list[str]:
    """The names of `nodes`, in order: how a program returns nodes."""
    return [node.name for node in nodes]


def show(gm: Made, *inputs: object) -> list[object]:
    """The graph, the code and, given inputs, the result of a GraphModule."""
    seen: list[object] = [str(gm.graph), gm.code]
    if inputs:
        torch.manual_seed(0)
        seen.append(gm(*inputs))
    return seen


def plain(value: object) -> object:
    """`value` as plain data: tensors as lists, library names made equal."""
    match value:
        case str():
            text = value.replace("torch.fx.", "fx.")
            text = re.sub(r"0x[0-9a-f]+", "0x…", text)
            return re.sub(r"<eval_with_key>\.\d+", "<eval_with_key>.N", text)
        case torch.Tensor():
            return ("tensor", str(value.dtype), value.tolist())
        case Mapping():
            return {plain(k): plain(v) for k, v in value.items()}
        case list():
            return [plain(v) for v in value]
        case tuple():
            return tuple(plain(v) for v in value)
        case None | bool() | int() | float() | complex():
            return value
    raise TypeError(
        f"a program may return plain data only, not {type(value).__name__}: "
        "turn nodes into names, types into their __name__"
    )
