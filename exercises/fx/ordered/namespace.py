"""Stage 01, linked-list graph: names that are unique and legal in Python.

The value of each node becomes a variable of generated code, so its name must
be an identifier, must not hide a keyword or a builtin, and must be its own.
Names stay close to what they stand for: the first addition is `add`, the next
ones are `add_1`, `add_2`.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Mapping
from typing import Final

from .opcodes import Opcode, Target

RESERVED: Final[frozenset[str]] = frozenset(
    ("inf", "nan", "NoneType", "torch", "device", "fx_pytree", "pytree")
)
"""Names that generated code uses for its own globals."""

_BUILTINS: Final[Mapping[str, object]] = vars(builtins)
TAKEN: Final = frozenset(keyword.kwlist) | set(_BUILTINS) | RESERVED
"""Names that no node has: keywords, builtins, and the reserved ones."""

_MOST_DIGITS: Final = 640
"""More digits are part of the word: Python may refuse to read the number."""

_not_identifier = re.compile(r"[^0-9a-zA-Z_]+")
_hump = re.compile(r"(?<=[a-z])([A-Z])")


class Namespace:
    """Gives out names, each at most once.

    - An object gets one name, and keeps it.
    - No two objects share a name.
    - No name hides a keyword, a builtin or a reserved global, unless the
      object is that builtin.

    torch.fx: graph.py, _Namespace
    """

    def __init__(self) -> None:
        """Make a namespace in which no name is used."""
        self._names: dict[object, str] = {}
        self._used: set[str] = set()
        self._counts: dict[str, int] = {}

    def create_name(self, candidate: str, obj: object | None = None) -> str:
        """A name that nobody has, as close to `candidate` as can be.

        A name that is taken gets the next number: `add` is followed by
        `add_1`, and `add_7`, asked for twice, by `add_8`.

        Args:
            candidate: the wish, any string; what cannot stand in an
                identifier becomes an underscore.
            obj: if given (hashable), the object that the name is for: asked
                again for the same object, the same name comes back.

        Cost: O(1) amortised, however often one candidate comes.

        torch.fx: graph.py, _Namespace.create_name
        """
        raise NotImplementedError("stage 01: Namespace.create_name")


def _is_builtin(name: str, obj: object | None) -> bool:
    """Whether `name` is the builtin name of `obj` itself."""
    return obj is not None and _BUILTINS.get(name) is obj


def _parse(candidate: str) -> tuple[str, str, int]:
    """Clean a candidate and split it: ("a_7", "a", 7); no number is -1."""
    if not (candidate.isidentifier() and candidate.isascii()):
        path = candidate.replace(".", "_") if ".." not in candidate else ""
        if path.isidentifier() and path.isascii():
            candidate = path
        else:
            candidate = _not_identifier.sub("_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
    base, _, tail = candidate.rpartition("_")
    if base and tail.isdigit() and len(tail) <= _MOST_DIGITS:
        return candidate, base, int(tail)
    return candidate, candidate, -1


def is_parameter_name(name: object) -> bool:
    """Whether `name` can be a parameter or a keyword in a Python call."""
    if not isinstance(name, str):
        return False
    forbidden = keyword.iskeyword(name) or name == "__debug__"
    return name.isidentifier() and not forbidden


def check_text(op: Opcode, target: str) -> None:
    """Raise unless Python code can contain `target` where `op` puts it.

    Args:
        op: the opcode of a node whose target is a string.
        target: a parameter name (with its stars), a method's name, a dotted
            path, or the word "output".

    Raises:
        ValueError: it is not what the opcode needs.
    """
    if op == "placeholder":
        bare = target.removeprefix("*").removeprefix("*")
        legal, need = is_parameter_name(bare), "parameter name"
    elif op == "call_method":
        legal = all(map(str.isidentifier, target.split(".")))
        need = "method name"
    else:
        legal = op == "output" or "" not in target.split(".")
        need = "dotted path"
    if not legal:
        raise ValueError(
            f"{op} target {target!r} is not a {need}: use identifiers"
            + (" that are not keywords" if op == "placeholder" else "")
        )


def target_to_str(target: Target) -> str:
    """The name that a node asks for, made from its target.

    `torch.relu` gives "relu", "layer.0" stays, `operator.__getitem__` gives
    "getitem", "toUpper" gives "to_upper".

    Raises:
        AssertionError: the target is neither a string nor callable.

    torch.fx: graph.py, Graph._target_to_str
    """
    if isinstance(target, str):
        if target.startswith("__") and target.endswith("__"):
            target = target[2:-2]
        return snake_case(target)
    if not callable(target):
        raise AssertionError(
            f"Expected target to be str, got {type(target)}: give a callable "
            "for call_function, and a string for all other opcodes"
        )
    return snake_case(getattr(target, "__name__", type(target).__name__))


def snake_case(name: str) -> str:
    """`name` in Python's style: a capital in a word becomes _ and a small."""
    small = name.lower()
    return small if small == name else _hump.sub(r"_\1", name).lower()
