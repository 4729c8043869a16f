"""Stage 01, linked-list graph: names that are unique and legal in Python.

The value of each node becomes a variable of generated code.  So its name must
be an identifier, must differ from keywords and builtins, and must not be the
name of another node.  A name should also remind the reader of what it names:
the first addition is `add`, the next ones are `add_1`, `add_2`.
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

BUILTINS: Final[Mapping[str, object]] = vars(builtins)
"""What Python has without an import: `len`, `print`, `int`."""

TAKEN: Final = frozenset(keyword.kwlist) | set(BUILTINS) | RESERVED
"""Names that a node cannot have: keywords, builtins, and the reserved ones."""

_MOST_DIGITS: Final = 640
"""A longer row of digits is left in the name: `int` may refuse to read it."""

_not_identifier = re.compile(r"[^0-9a-zA-Z_]+")
_hump = re.compile(r"(?<=[a-z])([A-Z])")


class Namespace:
    """Creates names, each only once.

    - If an object is named, it keeps that name.
    - Two objects never have the same name.
    - A name is not a keyword, a builtin or a reserved global, unless the
      object is that builtin.

    torch.fx: graph.py, _Namespace
    """

    def __init__(self) -> None:
        """Make a namespace that has not created a name yet."""
        self._names: dict[object, str] = {}
        self._used: dict[str, None] = {}  # smaller than a set of strings
        self._counts: dict[str, int] = {}

    def create_name(self, candidate: str, obj: object | None = None) -> str:
        """Create a name that is not in use, as close to `candidate` as can be.

        If the name is taken, it gets the next number: `add` is followed by
        `add_1`, and a second `add_7` becomes `add_8`.  Counting goes on from
        the number given last, not from the one asked for: after `add_7` and
        `add_3`, a second `add_7` becomes `add_4`.

        Args:
            candidate: any string; characters that an identifier cannot have
                become underscores.
            obj: the object that is named, if it is to keep the name; hashable.
                A second call for the same object returns the same name.

        Cost: O(1) amortised, however often a candidate is asked for.

        torch.fx: graph.py, _Namespace.create_name
        """
        if obj is not None:
            known = self._names.get(obj)
            if known is not None:
                return known
        used, counts = self._used, self._counts
        name, base, number = candidate, candidate, -1
        # What has a count, and no number of its own, needs no parsing.
        if candidate not in counts or candidate[-1].isdigit():
            name, base, number = _parse(candidate)
        if number < 0 or name in used:
            number = counts.get(base, 0)
            if name in TAKEN and not _is_builtin(name, obj):
                number += 1
                name = f"{base}_{number}"
        while name in used:
            number += 1
            name = f"{base}_{number}"
        used[name] = None
        counts[base] = number
        if obj is not None:
            self._names[obj] = name
        return name


def _is_builtin(name: str, obj: object | None) -> bool:
    """Whether `obj` is the builtin of that name."""
    return obj is not None and BUILTINS.get(name) is obj


def _parse(candidate: str) -> tuple[str, str, int]:
    """A candidate as an identifier, split: ("a_7", "a", 7), ("b", "b", -1)."""
    name = candidate
    if not (name.isidentifier() and name.isascii()):
        name = candidate.replace(".", "_")
        if ".." in candidate or not (name.isidentifier() and name.isascii()):
            name = _not_identifier.sub("_", candidate) or "_unnamed"
            if name[0].isdigit():
                name = f"_{name}"
    base, _, tail = name.rpartition("_")
    if base and tail.isdigit() and len(tail) <= _MOST_DIGITS:
        return name, base, int(tail)
    return name, name, -1


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
    """The candidate for the name of a node with this target.

    `torch.relu` gives "relu", "layer.0" stays, `operator.__getitem__` gives
    "getitem", "toUpper" gives "to_upper".

    Raises:
        AssertionError: the target is neither a string nor callable.

    torch.fx: graph.py, Graph._target_to_str
    """
    if isinstance(target, str):
        if "__" in target and target[:2] == target[-2:] == "__":
            target = target[2:-2]
        return snake_case(target)
    if not callable(target):
        raise AssertionError(
            f"Expected target to be str, got {type(target)}: give a callable "
            "for call_function, and a string for all other opcodes"
        )
    name = getattr(target, "__name__", None)
    return snake_case(name if isinstance(name, str) else type(target).__name__)


def snake_case(name: str) -> str:
    """`name` in lower case, an underscore before each capital inside a word."""
    small = name.lower()
    return small if small == name else _hump.sub(r"_\1", name).lower()
