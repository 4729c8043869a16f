"""Stage 01, linked-list graph: the ring of links that holds a graph's nodes.

A program is an ordered list of lines, and a pass edits it in the middle while
walking over it.  An array would move everything behind each edit; a doubly
linked list touches the two neighbours.  The list is closed to a ring by a
*sentinel*, a link that stands for both ends, so that no operation has a
special case for "first", "last" or "empty":

        ┌──────────────────────────────────────────┐
        └─> root <──> first <──> … <──> last <─────┘

The links carry the list themselves (it is *intrusive*): whatever inherits
from `Link` can be put into a ring without a box around it, and is in at most
one ring at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Generic, Self, TypeVar

LinkT = TypeVar("LinkT", bound="Link")

GAP: Final = 1 << 20
"""The distance between the order keys of links appended one by one."""


class Link:
    """A member of a ring: its two neighbours and its place in the order.

    A fresh link is a ring of one.  `_prev` and `_next` are followed freely
    but written only in this file.  An erased link keeps both, so that a loop
    that stands on it can still walk on.

    `_sort_key` grows along the ring; comparing two links of one ring with
    `<` compares their places without a walk.  The sentinel's key is 0 and all
    others are greater.

    torch.fx: node.py, Node (the base class torch._C._NodeBase)
    """

    __slots__ = ("_erased", "_next", "_prev", "_sort_key")

    _prev: Self
    _next: Self
    _erased: bool
    _sort_key: int

    def __init__(self: Self) -> None:
        """Make a ring of one link."""
        self._prev = self
        self._next = self
        self._erased = False
        self._sort_key = 0

    def prepend(self: Self, x: Self) -> None:
        """Put `x` right before this link, out of wherever it was.

        Its order key is between those of its new neighbours; before the
        sentinel, where nothing limits it, `GAP` more than the last.

            before:  p <-> self     a <-> x <-> b
            after:   p <-> x <-> self     a <-> b

        Args:
            x: a link of the same ring, or one that is in no ring yet.

        torch.fx: node.py, Node.prepend
        """
        if x is self:
            return
        if x._next is not x:
            x._unlink()
        before = self._prev
        is_sentinel = self._sort_key == 0
        if is_sentinel:  # x becomes the last link: the end is open
            x._sort_key = before._sort_key + GAP
        else:
            x._sort_key = _key_between(before, self)
        x._prev = before
        x._next = self
        before._next = x
        self._prev = x

    def append(self: Self, x: Self) -> None:
        """Put `x` right behind this link: the same as `self.next.prepend(x)`.

        Args:
            x: a link of the same ring, or one that is in no ring yet.

        torch.fx: node.py, Node.append
        """
        if x is not self:
            x._unlink()
            self._next.prepend(x)

    def _unlink(self) -> None:
        """Close the ring behind this link, which keeps its own pointers."""
        before, after = self._prev, self._next
        before._next = after
        after._prev = before

    def __lt__(self, other: object) -> bool:
        """Whether this link stands before `other` in their ring."""
        if isinstance(other, Link):
            return self._sort_key < other._sort_key
        return NotImplemented

    def __gt__(self, other: object) -> bool:
        """Whether this link stands behind `other` in their ring."""
        if isinstance(other, Link):
            return self._sort_key > other._sort_key
        return NotImplemented

    def __le__(self, other: object) -> bool:
        """Whether this link is `other` or stands before it."""
        if isinstance(other, Link):
            return self._sort_key <= other._sort_key
        return NotImplemented

    def __ge__(self, other: object) -> bool:
        """Whether this link is `other` or stands behind it."""
        if isinstance(other, Link):
            return self._sort_key >= other._sort_key
        return NotImplemented


def _key_between(before: Link, after: Link) -> int:
    """An order key for a link about to stand between two neighbours.

    The link is not in the ring yet. `after` is not the sentinel; `before` may
    be, its key is 0.
    """
    low = before._sort_key
    if after._sort_key - low < 2:
        _make_room(before)
    return (low + after._sort_key) // 2


def _make_room(start: Link) -> None:
    """Spread the keys behind `start` so that the next place is free again.

    Takes the shortest stretch of n links whose keys span more than n², and
    spaces them evenly: amortised O(log n) an insertion (Dietz and Sleator,
    "Two algorithms for maintaining order in a list", 1987).
    """
    low = start._sort_key
    crowd: list[Link] = []
    link = start._next
    while link._sort_key and link._sort_key - low <= (len(crowd) + 1) ** 2:
        crowd.append(link)
        link = link._next
    places = len(crowd) + 1
    high = link._sort_key or low + (places + 1) * GAP
    step = (high - low) // places
    for place, crowded in enumerate(crowd, start=1):
        crowded._sort_key = low + place * step


class LinkedList(Generic[LinkT]):
    """An ordered collection of links that may be edited while it is walked.

    A loop over the list, forwards or backwards, goes from the link it stands
    on to that link's neighbour *at that moment*:

    - a link inserted ahead of the loop is met, one inserted behind is not;
    - a link erased ahead is not met; erasing the current one is harmless;
    - if the current link is moved, the loop goes on from its new place.

    `len()` and emptiness are O(1), a walk is O(n), there is no indexing.

    torch.fx: graph.py, _node_list
    """

    __slots__ = ("_len", "_root")

    def __init__(self, root: LinkT) -> None:
        """Make an empty list.

        Args:
            root: a fresh link that becomes the sentinel: no member of the
                list, never handed out by a loop.
        """
        self._root = root
        self._len = 0

    def __len__(self) -> int:
        """How many links there are, the sentinel not counted."""
        return self._len

    def __iter__(self) -> Iterator[LinkT]:
        """Walk from the first link to the last; edits are allowed."""
        root = self._root
        link = root._next
        while link is not root:
            if not link._erased:
                yield link
            link = link._next

    def __reversed__(self) -> Iterator[LinkT]:
        """Walk from the last link to the first; edits are allowed."""
        root = self._root
        link = root._prev
        while link is not root:
            if not link._erased:
                yield link
            link = link._prev

    def erase(self, link: LinkT) -> None:
        """Take `link` out for good; loops that stand on it can go on.

        Args:
            link: a member of this list.
        """
        link._unlink()
        link._erased = True
        self._len -= 1
