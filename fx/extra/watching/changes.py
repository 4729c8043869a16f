"""Extra: what forward has changed, and put back.

Code may keep a value in an attribute, a list or a dict of a module, and while
it is traced, that value may be a proxy.  Neither the code nor the graph could
use it afterwards, so what holds a proxy is put back when the trace ends, also
after an error.  Numbers that forward counts stay counted, since that is what
one run of it does.

Most modules are as they were, so a module is compared with a copy of its
attributes by `is`, in C.  Lists, dicts, sets, deques, the attributes of a
user's object and those of the class are compared as well.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from ...recording import frames
from ...tracing.patching import names_of, put
from ...tracing.state import Held, inside
from ...tracing.wrapping import find_proxy
from ...use_def.dotted_path import MISSING
from ...use_def.values import Value


class Change(NamedTuple):
    """A value that is not what it was when the trace began.

    Attributes:
        path: of the attribute, list or dict that has it.
        value: what is there now; None if it was removed.
        undo: makes it what it was.
    """

    path: str
    value: Value
    undo: Callable[[], None]


def changes(held: Iterable[Held]) -> Iterator[Change]:
    """The changes of what is held: those of a list are told as one.

    Cost: O(values held), but all of it is done in C.
    """
    for path, now, before in held:
        if not isinstance(before, dict):
            is_set = isinstance(before, set)
            same = len(now) == len(before) and (
                now == before if is_set else all(map(operator.is_, now, before))
            )
            if not same:
                yield Change(path, [*now], partial(_refill, now, before))
            continue
        has = names_of(now)
        if len(has) != len(before) or any(
            map(operator.is_not, has.values(), before.values())
        ):
            names = dict.fromkeys((*before, *has))
            for name in names:
                old, new = before.get(name, MISSING), has.get(name, MISSING)
                if old is not new and not _is_pythons(now, name):
                    is_module = not path or path.endswith(".")
                    where = f"{path}{name}" if is_module else path
                    value = None if new is MISSING else new
                    yield Change(where, value, partial(put, now, name, old))


def put_back_proxies(changed: Iterable[Change]) -> None:
    """Let what held other values when a trace began hold no proxies."""
    for change in changed:
        if _holds_proxy(change.value):
            change.undo()


def _holds_proxy(value: Value) -> bool:
    """Whether there is a proxy in a value, or in objects and sets there."""
    items = [
        item
        for _, now in inside("", value, set())
        for item in (now.values() if isinstance(now, dict) else now)
    ]
    return find_proxy(value, *items) is not None


def _is_pythons(holder: Value, name: Value) -> bool:
    """Whether it is an attribute of a class that is not the user's."""
    return isinstance(holder, type) and name[:2] == "__"


def _refill(values: Value, before: Value) -> None:
    """Let a list, set or deque have the items that it had."""
    values.clear()
    add = values.update if isinstance(before, set) else values.extend
    add(before)


def warn_of_changes(found: Iterable[Change], advice: str) -> None:
    """Warn of what is not what it was, if there is such."""
    paths = dict.fromkeys(change.path for change in found)
    if paths:
        frames.warn(
            f"the code put another value in the place of {', '.join(paths)} "
            "while it was traced, and the graph does not do that when it "
            f"runs. {advice}"
        )
