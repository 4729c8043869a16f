"""Stage 01, linked-list graph: the doubly linked list that holds the nodes.

A pass edits a program in the middle while it walks over it.  In an array,
each edit would move everything after it, and the loop would lose its place;
in a doubly linked list an edit changes two neighbours and nothing else.

The list is circular.  A *sentinel*, a link that is not a member, comes before
the first link and after the last, so that each link has two neighbours and no
operation needs a special case for "first", "last" or "empty":

        ┌──────────────────────────────────────────┐
        └─> root <──> first <──> … <──> last <─────┘

The list is also *intrusive*: the pointers are in the links themselves, and
whatever inherits from `Link` can be in one list at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Generic, Self, TypeVar

LinkT = TypeVar("LinkT", bound="Link")

GAP: Final = 1 << 16
"""The distance between the order keys of links appended one by one."""


class Link:
    """A member of a circular list: its two neighbours and its order key.

    A fresh link is a circle of one.  Other files may read `_prev` and `_next`,
    but only this file assigns them.  An erased link keeps both, so that a
    loop that is at this link can still go on.

    `_sort_key` grows along the list, so `a < b` says whether a comes before b
    without a walk.  The sentinel's key is 0 and all others are greater.

    torch.fx: node.py, Node (the base class torch._C._NodeBase)
    """

    __slots__ = ("_erased", "_next", "_prev", "_sort_key")

    _prev: Self
    _next: Self
    _erased: bool
    _sort_key: int

    def __init__(self: Self) -> None:
        """Make a link that is its own neighbour on both sides."""
        self._prev = self
        self._next = self
        self._erased = False
        self._sort_key = 0

    def prepend(self: Self, x: Self) -> None:
        """Move `x` to the place right before this link.

        Its order key becomes one between those of its new neighbours.  Before
        the sentinel nothing limits the key, and it is `GAP` more than that of
        the last link.

            before:  p <-> self     a <-> x <-> b
            after:   p <-> x <-> self     a <-> b

        Args:
            x: a link of the same list, or one that is not in a list yet.

        torch.fx: node.py, Node.prepend
        """
        raise NotImplementedError("stage 01: Link.prepend")

    def append(self: Self, x: Self) -> None:
        """Move `x` to the place right after this link.

        Args:
            x: a link of the same list, or one that is not in a list yet.

        torch.fx: node.py, Node.append
        """
        self._next.prepend(x)

    def _unlink(self) -> None:
        """Join the two neighbours; this link keeps its own pointers."""
        raise NotImplementedError("stage 01: Link._unlink")

    def __lt__(self, other: object) -> bool:
        """Whether this link comes before `other` in their list."""
        if isinstance(other, Link):
            return self._sort_key < other._sort_key
        return NotImplemented

    def __le__(self, other: object) -> bool:
        """Whether this link is `other` or comes before it."""
        if isinstance(other, Link):
            return self._sort_key <= other._sort_key
        return NotImplemented


def _key_between(before: Link, after: Link) -> int:
    """An order key for a link that will be put between two neighbours.

    Args:
        before: a link, or the sentinel, whose key is 0.
        after: the next link, which is not the sentinel.
    """
    low = before._sort_key
    if after._sort_key - low < 2:
        _make_room(before)
    return (low + after._sort_key) // 2


def _make_room(start: Link) -> None:
    """Spread the keys after `start`, to free one right after its own.

    Finds the shortest run of n links with more than (n + 1)² keys from `start`
    to the link after it, and spaces them evenly.  An insertion then costs
    O(log n), amortised (Dietz and Sleator, "Two algorithms for maintaining
    order in a list", 1987).
    """
    raise NotImplementedError("stage 01: _make_room")


class LinkedList(Generic[LinkT]):
    """An ordered collection of links that may be edited while it is walked.

    A loop over the list, forwards or backwards, asks the current link for its
    neighbour only when it goes on:

    - it visits links inserted ahead of it, and not those inserted behind it;
    - it does not visit a link erased ahead of it, and the current link can be
      erased safely;
    - if the current link is moved, the loop goes on from the new place.

    `len()` is O(1) and a walk O(n); a link cannot be found by its index.

    torch.fx: graph.py, _node_list
    """

    __slots__ = ("_len", "_root")

    def __init__(self, root: LinkT) -> None:
        """Make an empty list.

        Args:
            root: a fresh link that becomes the sentinel.  It is not a member
                of the list, and a loop does not yield it.
        """
        self._root = root
        self._len = 0

    def __len__(self) -> int:
        """How many links there are, the sentinel not counted."""
        return self._len

    def __iter__(self) -> Iterator[LinkT]:
        """Walk from the first link to the last; edits are allowed."""
        raise NotImplementedError("stage 01: LinkedList.__iter__")

    def __reversed__(self) -> Iterator[LinkT]:
        """Walk from the last link to the first; edits are allowed."""
        raise NotImplementedError("stage 01: LinkedList.__reversed__")

    def add(self, link: LinkT, insert: Callable[[LinkT], None]) -> None:
        """Let `insert` put a new link into the list, and count it.

        Args:
            link: in no list yet.
            insert: the `prepend` or `append` of the link beside its place.
        """
        insert(link)
        self._len += 1

    def erase(self, link: LinkT) -> None:
        """Remove `link`; a loop that is at this link can go on.

        Args:
            link: a member of this list.
        """
        raise NotImplementedError("stage 01: LinkedList.erase")
