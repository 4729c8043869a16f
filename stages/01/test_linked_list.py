"""Stage 01: moving and erasing links, walking over them, and order keys.

These tests build and read the lists pointer by pointer, so that each function
is checked without the others.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import islice, pairwise

import pytest

from fx.linked_list.linked_list import GAP, Link, LinkedList, _make_room
from stages.checking import check, linear, same, same_text


class Letter(Link):
    """A link that prints as a letter."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def __repr__(self) -> str:
        return self.text


def chain(links: list[Letter]) -> None:
    """Link these into a circle; the first is the sentinel."""
    for index, link in enumerate(links):
        link._next = links[(index + 1) % len(links)]
        link._prev = links[index - 1]


def ring(texts: Iterable[str]) -> tuple[LinkedList[Letter], list[Letter]]:
    """A circular list of letters, and the letters."""
    links = LinkedList(Letter("root"))
    letters = [Letter(text) for text in texts]
    chain([links._root, *letters])
    for place, letter in enumerate(letters, start=1):
        letter._sort_key = place * GAP
    links._len = len(letters)
    return links, letters


def cut(links: LinkedList[Letter], link: Letter) -> None:
    """Erase a link without LinkedList.erase."""
    link._prev._next, link._next._prev = link._next, link._prev
    link._erased = True
    links._len -= 1


def put(links: LinkedList[Letter], before: Letter, new: Letter) -> None:
    """Insert `new` after `before`, without Link.prepend."""
    after = before._next
    before._next = after._prev = new
    new._prev, new._next = before, after
    new._sort_key = (before._sort_key + after._sort_key) // 2
    links._len += 1


def walk(links: LinkedList[Letter], pointer: str) -> list[str]:
    """The links that a pointer leads to from the sentinel, twelve at most."""
    link: Letter = getattr(links._root, pointer)
    met = ["root"]
    while link is not links._root and len(met) < 12:
        met.append(link.text)
        link = getattr(link, pointer)
    return [*met, "root" if link is links._root else "…"]


def reads(links: LinkedList[Letter], text: str, event: str) -> None:
    """Check that the list has the letters of `text`, in both directions."""
    forwards = walk(links, "_next")
    wanted = ["root", *text, "root"]
    same_text(
        " > ".join(forwards),
        " > ".join(wanted),
        f"After {event}, a walk forwards goes wrong: "
        + first_difference(forwards, wanted, "_next"),
    )
    backwards = walk(links, "_prev")
    same_text(
        " < ".join(backwards),
        " < ".join(wanted[::-1]),
        f"After {event}, a walk forwards is right but a walk backwards is "
        "wrong: " + first_difference(backwards, wanted[::-1], "_prev"),
    )


def first_difference(met: list[str], wanted: list[str], pointer: str) -> str:
    """A sentence about the first pointer that leads a walk wrong."""
    for before, (yours, right) in zip(
        wanted, zip(met[1:], wanted[1:], strict=False), strict=False
    ):
        if yours != right:
            return f"`{before}.{pointer}` is {yours} and must be {right}."
    return "it is right."


def in_order(links: LinkedList[Letter], event: str) -> None:
    """Check that order keys grow along the list, from the sentinel's 0."""
    before, link = links._root, links._root._next
    while link is not links._root:
        check(
            before._sort_key < link._sort_key,
            f"After {event}, {link} comes after {before}, but its order key "
            "is not greater, so `<` would give a wrong answer.",
            picture=f"{before}: {before._sort_key}, {link}: {link._sort_key}",
        )
        before, link = link, link._next


def said(links: Iterable[Letter], most: int = 12) -> str:
    """The links that a loop visits, as text; `most` links at most."""
    return " ".join(link.text for link in islice(links, most))


# -- taking a link out -------------------------------------------------------


@pytest.mark.exercise("linked_list.linked_list.Link._unlink")
def test_the_neighbours_close_the_gap() -> None:
    links, (_, b, _) = ring("abc")
    b._unlink()
    reads(links, "ac", "b._unlink() in a b c")


@pytest.mark.exercise("linked_list.linked_list.Link._unlink")
def test_an_unlinked_link_keeps_its_own_pointers() -> None:
    _, (a, b, c) = ring("abc")
    b._unlink()
    check(
        b._prev is a and b._next is c,
        "b was unlinked from a b c and has lost its own pointers. A link must "
        "keep its `_prev` and `_next`, because a loop may be at it and has to "
        "go on from there.",
        picture=f"b._prev is {b._prev}, b._next is {b._next}",
    )


@pytest.mark.exercise("linked_list.linked_list.Link._unlink")
@pytest.mark.parametrize(
    ("text", "out", "left"), [("ab", 0, "b"), ("ab", 1, "a")]
)
def test_the_first_and_the_last_are_like_all_others(
    text: str, out: int, left: str
) -> None:
    links, letters = ring(text)
    letters[out]._unlink()
    reads(links, left, f"{letters[out]}._unlink() in a b")


@pytest.mark.exercise("linked_list.linked_list.Link._unlink")
def test_unlinking_the_only_link_leaves_the_sentinel() -> None:
    links, (a,) = ring("a")
    a._unlink()
    root = links._root
    check(
        root._next is root and root._prev is root,
        "The only link was unlinked, so both pointers of the sentinel must "
        "point to the sentinel itself.",
        picture=f"root._next is {root._next}, root._prev is {root._prev}",
    )


@pytest.mark.exercise("linked_list.linked_list.Link._unlink")
def test_unlinking_is_not_erasing() -> None:
    _, (_, b, _) = ring("abc")
    b._unlink()
    check(
        not b._erased,
        "_unlink marked the link as erased, but a link that only moves to "
        "another place is unlinked too. Only LinkedList.erase sets the mark.",
    )


# -- putting a link in -------------------------------------------------------


@pytest.mark.exercise("linked_list.linked_list.Link.prepend")
def test_a_fresh_link_becomes_the_last_one() -> None:
    links, _ = ring("ab")
    links._root.prepend(Letter("x"))
    reads(links, "abx", "root.prepend(x) in a b, which makes x the last")


@pytest.mark.exercise("linked_list.linked_list.Link.prepend")
def test_the_first_link_of_all() -> None:
    links, _ = ring("")
    links._root.prepend(Letter("x"))
    reads(links, "x", "root.prepend(x) in an empty list")
    in_order(links, "root.prepend(x) in an empty list")


@pytest.mark.exercise("linked_list.linked_list.Link.prepend")
@pytest.mark.parametrize(("place", "text"), [(1, "axbc"), (0, "xabc")])
def test_a_fresh_link_goes_right_before(place: int, text: str) -> None:
    links, letters = ring("abc")
    letters[place].prepend(Letter("x"))
    reads(links, text, f"{letters[place]}.prepend(x) in a b c")


@pytest.mark.exercise("linked_list.linked_list.Link.prepend")
def test_a_link_put_last_has_the_greatest_key() -> None:
    links, (_, b) = ring("ab")
    x = Letter("x")
    links._root.prepend(x)
    check(
        x._sort_key > b._sort_key,
        "x was put last, right before the sentinel, but its order key is not "
        "greater than that of b before it. At the end, no link follows that "
        "would limit the key: the sentinel's key 0 is not an upper limit.",
        picture=f"b: {b._sort_key}, x: {x._sort_key}",
    )


@pytest.mark.exercise("linked_list.linked_list.Link.prepend")
def test_a_link_put_between_two_has_a_key_between_theirs() -> None:
    _, (_, b, c) = ring("abc")
    x = Letter("x")
    c.prepend(x)
    check(
        b < x < c,
        "c.prepend(x) in a b c gave x an order key that is not between those "
        "of b and c, so `b < x < c` is false.",
        picture=f"b: {b._sort_key}, x: {x._sort_key}, c: {c._sort_key}",
    )


@pytest.mark.exercise("linked_list.linked_list.Link.prepend")
@pytest.mark.parametrize(
    ("place", "moved", "text"), [("a", "c", "cab"), ("c", "a", "bac")]
)
def test_a_link_of_the_ring_moves(place: str, moved: str, text: str) -> None:
    links, letters = ring("abc")
    by_name = {letter.text: letter for letter in letters}
    by_name[place].prepend(by_name[moved])
    event = (
        f"{place}.prepend({moved}) in a b c, where {moved} has to leave its "
        "old place"
    )
    reads(links, text, event)
    in_order(links, event)


@pytest.mark.exercise("linked_list.linked_list.Link.prepend")
def test_moving_a_link_to_where_it_stands() -> None:
    links, (a, b, _) = ring("abc")
    b.prepend(a)
    event = "b.prepend(a) in a b c, where a is right before b already"
    reads(links, "abc", event)
    in_order(links, event)


@pytest.mark.exercise("linked_list.linked_list.Link.prepend")
def test_the_only_link_moves_to_the_end() -> None:
    links, (a,) = ring("a")
    links._root.prepend(a)
    event = (
        "root.prepend(a), where a is the only link, both of whose neighbours "
        "are the sentinel, and has to leave its old place like any other"
    )
    reads(links, "a", event)
    in_order(links, event)


@pytest.mark.exercise("linked_list.linked_list.Link.prepend")
def test_a_link_before_itself_stays() -> None:
    links, (_, b, _) = ring("abc")
    b.prepend(b)
    reads(links, "abc", "b.prepend(b) in a b c, which has nothing to move")
    in_order(links, "b.prepend(b) in a b c")


@pytest.mark.exercise("linked_list.linked_list.Link.prepend")
def test_many_moves_do_what_a_python_list_does() -> None:
    links, letters = ring("abcdefgh")
    model, choose = list(letters), random.Random(1)
    for _ in range(60):
        place, moved = choose.sample(model, 2)
        was = "".join(letter.text for letter in model)
        place.prepend(moved)
        model.remove(moved)
        model.insert(model.index(place), moved)
        event = f"{place}.prepend({moved}) in {was}"
        reads(links, "".join(letter.text for letter in model), event)
        in_order(links, event)


# -- walking -----------------------------------------------------------------


@pytest.mark.exercise("linked_list.linked_list.LinkedList.__iter__")
def test_a_loop_visits_each_link_in_order() -> None:
    links, _ = ring("abc")
    same(
        said(links),
        "a b c",
        "A loop over a b c must visit each link once, in order, and never the "
        "sentinel.",
    )
    same(said(links), "a b c", "A second loop must start at the front again.")


@pytest.mark.exercise("linked_list.linked_list.LinkedList.__iter__")
def test_a_loop_over_nothing() -> None:
    links, _ = ring("")
    same(said(links), "", "A loop over an empty list must not visit a link.")


@pytest.mark.exercise("linked_list.linked_list.LinkedList.__iter__")
def test_erasing_the_current_link_does_not_end_the_loop() -> None:
    links, _ = ring("abcd")
    met = []
    for link in islice(links, 12):
        met.append(link.text)
        cut(links, link)
    same(
        " ".join(met),
        "a b c d",
        "The loop's body erased each link of a b c d that the loop came to, "
        "and the loop did not visit all four. It can go on from an erased "
        "link, which still has its `_next`.",
    )


@pytest.mark.exercise("linked_list.linked_list.LinkedList.__iter__")
def test_a_link_erased_ahead_is_not_visited() -> None:
    links, (_, b, c, _) = ring("abcd")
    met = []
    for link in islice(links, 12):
        met.append(link.text)
        if link is b:
            cut(links, c)
    same(
        " ".join(met),
        "a b d",
        "c was erased while the loop was at b, so the loop must not visit c: "
        "find the next link after the loop's body has run.",
    )


@pytest.mark.exercise("linked_list.linked_list.LinkedList.__iter__")
def test_a_link_inserted_ahead_is_visited() -> None:
    links, (a, b, c) = ring("abc")
    met = []
    for link in islice(links, 12):
        met.append(link.text)
        if link is b:
            put(links, b, Letter("x"))
            put(links, c, Letter("z"))
            put(links, a, Letter("y"))
    same(
        " ".join(met),
        "a b x c z",
        "While the loop over a b c was at b, x was inserted right after b, z "
        "after c, and y before b. The loop must visit x and z, which are "
        "ahead of it, and not y.",
    )


@pytest.mark.exercise("linked_list.linked_list.LinkedList.__iter__")
def test_several_links_erased_around_the_loop() -> None:
    links, (_, b, c, d, _) = ring("abcde")
    met = []
    for link in islice(links, 12):
        met.append(link.text)
        if link is b:
            for gone in (b, c, d):
                cut(links, gone)
    same(
        " ".join(met),
        "a b e",
        "While the loop over a b c d e was at b, the links b, c, d were "
        "erased, in this order. b still points to c, and c to d, so the loop "
        "must go past erased links without yielding them.",
    )


@pytest.mark.exercise("linked_list.linked_list.LinkedList.__iter__")
def test_a_moved_link_takes_the_loop_with_it() -> None:
    links, (_, b, c, _) = ring("abcd")
    met = []
    for link in islice(links, 12):
        met.append(link.text)
        if link is b:
            b._prev._next, b._next._prev = b._next, b._prev
            put(links, c, b)
    same(
        " ".join(met),
        "a b d",
        "While the loop over a b c d was at b, b was moved after c. The loop "
        "must go on from b's new place, so d comes next.",
    )


@pytest.mark.exercise("linked_list.linked_list.LinkedList.__iter__")
def test_a_loop_inside_a_loop() -> None:
    links, _ = ring("abc")
    pairs = ((one, other) for one in links for other in links)
    same(
        " ".join(f"{one}{other}" for one, other in islice(pairs, 12)),
        "aa ab ac ba bb bc ca cb cc",
        "A loop over a b c has another loop over the same list in its body. "
        "Each loop has to remember for itself where it is, so keep the link "
        "in a local variable and not on the list.",
    )


@pytest.mark.exercise("linked_list.linked_list.LinkedList.__iter__")
def test_a_walk_begins_when_the_first_link_is_asked_for() -> None:
    links, (_, b) = ring("ab")
    walk = iter(links)
    put(links, links._root, Letter("x"))
    same(
        said(walk),
        "x a b",
        "x became the first link between `iter(links)` and the first `next`. "
        "Where to begin is read when the first link is asked for, which a "
        "generator does: write the `yield` into `__iter__` itself.",
    )
    check(links._root._prev is b, "The walk must not change the list.")


@pytest.mark.exercise("linked_list.linked_list.LinkedList.__reversed__")
def test_a_loop_backwards() -> None:
    links, _ = ring("abc")
    same(
        said(reversed(links)),
        "c b a",
        "reversed(…) over a b c must visit each link once, the last one "
        "first, and never the sentinel.",
    )
    empty, _ = ring("")
    same(said(reversed(empty)), "", "An empty list has no link to visit.")


@pytest.mark.exercise("linked_list.linked_list.LinkedList.__reversed__")
def test_erasing_while_walking_backwards() -> None:
    links, (_, b, c, d, _) = ring("abcde")
    met = []
    for link in islice(reversed(links), 12):
        met.append(link.text)
        cut(links, link)
        if link is d:
            cut(links, c)
            cut(links, b)
    same(
        " ".join(met),
        "e d a",
        "A loop backwards over a b c d e erased e when it was at e; at d, it "
        "erased d, c and b. c and b were erased before the loop got to them, "
        "so it must not visit them.",
    )


@pytest.mark.exercise("linked_list.linked_list.LinkedList.__reversed__")
def test_inserting_while_walking_backwards() -> None:
    links, (a, b, _) = ring("abc")
    met = []
    for link in islice(reversed(links), 12):
        met.append(link.text)
        if link is b:
            put(links, a, Letter("x"))
            put(links, b, Letter("y"))
            put(links, links._root, Letter("w"))
    same(
        " ".join(met),
        "c b x a w",
        "While a loop backwards over a b c was at b, x was inserted right "
        "before b, w before a, and y right after b. The loop must visit x and "
        "w, which are ahead of it, and not y.",
    )


@pytest.mark.exercise("linked_list.linked_list.LinkedList.__reversed__")
def test_a_walk_backwards_begins_when_a_link_is_asked_for() -> None:
    links, (_, b) = ring("ab")
    walk = reversed(links)
    put(links, b, Letter("x"))
    same(
        said(walk),
        "x b a",
        "x became the last link between `reversed(links)` and the first "
        "`next`. Where to begin is read when the first link is asked for: "
        "write the `yield` into `__reversed__` itself.",
    )


# -- erasing -----------------------------------------------------------------


@pytest.mark.exercise("linked_list.linked_list.LinkedList.erase")
def test_an_erased_link_is_out_of_the_list() -> None:
    links, (_, b, _) = ring("abc")
    links.erase(b)
    reads(links, "ac", "links.erase(b) in a b c")


@pytest.mark.exercise("linked_list.linked_list.LinkedList.erase")
def test_the_list_knows_its_length() -> None:
    links, (a, b, _) = ring("abc")
    links.erase(b)
    same(len(links), 2, "One of three links was erased: len() must be 2.")
    links.erase(a)
    same(len(links), 1, "Two of three links were erased: len() must be 1.")


@pytest.mark.exercise("linked_list.linked_list.LinkedList.erase")
def test_an_erased_link_is_marked() -> None:
    links, (a, b, _) = ring("abc")
    links.erase(b)
    check(
        b._erased and not a._erased,
        "b was erased, but its `_erased` is not True. Without the mark, a loop "
        "that goes on from an erased link next to b would still visit b.",
    )


@pytest.mark.exercise("linked_list.linked_list.LinkedList.erase")
def test_an_erased_link_leads_back_into_the_list() -> None:
    links, (a, b, c) = ring("abc")
    links.erase(b)
    check(
        b._prev is a and b._next is c,
        "b was erased from a b c and lost its own pointers, so a loop that is "
        "at b could not go on to c, or backwards to a.",
        picture=f"b._prev is {b._prev}, b._next is {b._next}",
    )


@pytest.mark.exercise("linked_list.linked_list.LinkedList.erase")
def test_erasing_until_nothing_is_left() -> None:
    links, letters = ring("abcd")
    for index in (1, 3, 0, 2):
        links.erase(letters[index])
    reads(links, "", "erasing b, d, a and c of a b c d")
    same(len(links), 0, "All four links are erased: len() must be 0.")


@pytest.mark.exercise("linked_list.linked_list.LinkedList.erase")
def test_erasing_does_not_count_the_rest() -> None:
    rings = {size: ring("x" * size) for size in (50, 200)}

    def erase_all(size: int) -> None:
        links, letters = rings[size]
        for letter in letters:
            links.erase(letter)

    linear(
        erase_all,
        "Erasing all links of a list that is four times as long takes far more "
        "than four times the work: erase must not walk over the list, as "
        "counting what is left does.",
    )


# -- order keys --------------------------------------------------------------


def keyed(*keys: int) -> tuple[LinkedList[Letter], list[Letter]]:
    """A list whose links have these order keys."""
    links, letters = ring(f"link {place}" for place in range(1, len(keys) + 1))
    for key, letter in zip(keys, letters, strict=True):
        letter._sort_key = key
    return links, letters


def room_is_made(keys: tuple[int, ...], place: int) -> list[int]:
    """The keys after `_make_room` of a link; place 0 is the sentinel."""
    links, letters = keyed(*keys)
    start = [links._root, *letters][place]
    low = start._sort_key
    _make_room(start)
    same(
        start._sort_key,
        low,
        "_make_room(start) changed the key of start itself. It may only "
        "change the keys of links after start.",
    )
    same(links._root._sort_key, 0, "The sentinel's key must stay 0.")
    in_order(links, f"_make_room({start}) with the keys {list(keys)[:12]}")
    after = start._next._sort_key
    check(
        after == 0 or after - low >= 2,
        "After _make_room(start), there must be an integer between the keys "
        "of start and of the link after it, but there is none.",
        picture=f"start: {low}, after it: {after}",
    )
    return [letter._sort_key for letter in letters]


@pytest.mark.exercise("linked_list.linked_list._make_room")
def test_room_between_two_links() -> None:
    room_is_made((10, 11, 1000), 1)


@pytest.mark.exercise("linked_list.linked_list._make_room")
def test_room_at_the_front() -> None:
    room_is_made((1, 2, 3, 1000), 0)


@pytest.mark.exercise("linked_list.linked_list._make_room")
def test_room_where_everything_up_to_the_end_is_crowded() -> None:
    room_is_made((1,), 0)
    room_is_made((7, 8), 1)
    room_is_made(tuple(range(1, 51)), 0)
    room_is_made(tuple(range(1, 51)), 25)


@pytest.mark.exercise("linked_list.linked_list._make_room")
def test_room_is_shared_out_evenly() -> None:
    keys = room_is_made((1000, 1001, 1002, 1003, 1100), 1)
    gaps = [after - key for key, after in pairwise(keys)]
    check(
        max(gaps) <= 2 * min(gaps),
        "The keys 1000 to 1003 are crowded, and 1100 comes next. Each of the "
        "links must get about as much room as the others, or the next "
        "insertion beside one of them makes room again: the step is the span "
        "between the two ends divided by the number of gaps.",
        picture=f"keys now: {keys}",
    )


@pytest.mark.exercise("linked_list.linked_list._make_room")
def test_keys_before_the_place_stay() -> None:
    keys = room_is_made((1, 2, 3, 4, 1000), 2)
    same(keys[:2], [1, 2], "The keys up to that of start must not change.")


@pytest.mark.exercise("linked_list.linked_list._make_room")
def test_links_far_away_keep_their_keys() -> None:
    far = tuple(place * GAP for place in range(1, 1001))
    keys = room_is_made((1, 2, 3, *far), 0)
    moved = sum(a != b for a, b in zip(keys[3:], far, strict=True))
    check(
        moved <= 3,
        f"The keys of three links were crowded, those of 1000 links after "
        f"them far apart, and {moved} of the 1000 got new keys. Find and "
        "renumber the shortest run whose range is wide enough, or an "
        "insertion would cost a walk over the whole list.",
    )


@pytest.mark.exercise("linked_list.linked_list._make_room")
def test_a_link_put_where_no_key_is_free() -> None:
    _, (first, second, third) = keyed(10, 11, 1000)
    x = Letter("x")
    second.prepend(x)
    check(
        second._sort_key != 11,
        "x was put between two links with the keys 10 and 11, where no key is "
        "free, and both still have their keys. prepend (by `_key_between`) "
        "asks `_make_room` first.",
    )
    check(
        first < x < second < third,
        "x was put between two links with the keys 10 and 11, and now the keys "
        "are out of order. If all tests above pass, the mistake is in prepend: "
        "x must get its key before it is linked in, because `_make_room` must "
        "not find x itself, which does not have a valid key yet.",
        picture=f"keys: {[i._sort_key for i in (first, x, second, third)]}",
    )


@pytest.mark.exercise("linked_list.linked_list._make_room")
def test_one_place_can_be_used_for_ever() -> None:
    links, (first, _) = ring("ab")
    rewritten = 0
    newest = first
    for _ in range(2000):
        new = Letter("x")
        before = newest._sort_key
        newest.prepend(new)
        rewritten += newest._sort_key != before
        newest = new
    in_order(links, "2000 insertions, each at the very front")
    check(
        rewritten < 1000,
        f"Of 2000 insertions at the front, {rewritten} found no free key. "
        "Space the keys out evenly, so that many more links fit in between.",
    )


@pytest.mark.exercise("linked_list.linked_list.Link.prepend")
def test_a_link_is_put_behind_another() -> None:
    links, (a, b, *_) = ring("abc")
    new = Letter("n")
    a.append(new)
    links._len += 1
    same(
        said(links),
        "a n b c",
        "`a.append(n)` puts n right behind a, which is right before what was "
        "behind a until now.",
    )
    in_order(links, "`a.append(n)`")
    b.append(a)
    same(
        said(links),
        "n b a c",
        "`b.append(a)` moves a, which is in the list, to the place behind b.",
    )
    in_order(links, "`b.append(a)`")


@pytest.mark.exercise("linked_list.linked_list.Link.prepend")
def test_a_link_behind_itself_stays_where_it_is() -> None:
    for text in ("a", "b", "c"):
        links, letters = ring("abc")
        link = letters["abc".index(text)]
        link.append(link)
        same(
            said(links),
            "a b c",
            f"`{text}.append({text})` asks for the place behind the link "
            f"itself, where it is already: nothing changes.",
        )


@pytest.mark.exercise("linked_list.linked_list.Link.prepend")
def test_the_link_behind_may_be_the_one_that_moves() -> None:
    links, (a, b, _) = ring("abc")
    a.append(b)
    same(
        said(links),
        "a b c",
        "b is behind a already, and `a.append(b)` has to leave it there. "
        "`append` is given: it calls `b.prepend(b)`.",
    )
    in_order(links, "`a.append(b)`")
    check(
        a._next is b and b._prev is a,
        "After `a.append(b)`, a and b must point to each other.",
    )
    last = links._root._prev
    last.append(a)
    same(
        said(links),
        "b c a",
        "`last.append(a)` moves the first link to the end of the list.",
    )


@pytest.mark.exercise("linked_list.linked_list.Link.prepend")
def test_the_end_of_the_list_has_room() -> None:
    links, letters = ring("ab")
    new = Letter("c")
    links._root.prepend(new)
    same(
        new._sort_key - letters[-1]._sort_key,
        GAP,
        "Nothing limits the key of the last link, so it is GAP more than that "
        "of the link before it. With less, every later insertion there would "
        "have to make room first.",
    )
