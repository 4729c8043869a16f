"""What one can see once an exercise of stage 01 is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fx.linked_list.linked_list import Link, LinkedList, _make_room
from fx.linked_list.namespace import Namespace


class Dot(Link):
    """A link with a name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


def dots() -> LinkedList[Dot]:
    """The ring root, a, b, c, d."""
    links = LinkedList(Dot("root"))
    for name in "abcd":
        links._root.prepend(Dot(name))
        links._len += 1
    return links


def ring() -> str:
    """Links are erased in a loop over them."""
    links = dots()
    drawn = [" ⇄ ".join(dot.name for dot in (links._root, *links))]
    for dot in links:
        if dot.name in "bc":
            links.erase(dot)
    drawn.append(" ⇄ ".join(dot.name for dot in (links._root, *links)))
    back = " ⇄ ".join(dot.name for dot in reversed(links))
    return f"{drawn[0]} ⇄ …\n{drawn[1]} ⇄ …    (backwards {back})"


def names() -> str:
    """A name is asked for three times."""
    space = Namespace()
    return ", ".join(space.create_name(name) for name in ("add", "add", "if"))


def room() -> str:
    """Keys that are crowded, and the same with room."""
    links = dots()
    for key, dot in enumerate(links, 1):
        dot._sort_key = key
    before = [dot._sort_key for dot in links]
    _make_room(links._root)
    return f"keys {before} became {[dot._sort_key for dot in links]}"


SEE: Final[dict[str, Callable[[], str]]] = {
    "ring": ring,
    "Namespace.create_name": names,
    "_make_room": room,
}
"""An exercise -> what it can do now."""
