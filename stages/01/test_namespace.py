"""Stage 01: unique, legal names for nodes."""

from __future__ import annotations

import gc

import pytest

from fx.linked_list.namespace import Namespace
from stages.checking import check, same


def asked(*candidates: str) -> list[str]:
    """The names that a new namespace returns for candidates, in order."""
    names = Namespace()
    return [names.create_name(candidate) for candidate in candidates]


@pytest.mark.exercise("linked_list.namespace.Namespace.create_name")
def test_a_free_name_is_returned_unchanged() -> None:
    same(
        asked("relu", "linear", "x"),
        ["relu", "linear", "x"],
        "None of these names is in use, so each must be returned unchanged.",
    )


@pytest.mark.exercise("linked_list.namespace.Namespace.create_name")
def test_a_name_that_is_used_gets_a_number() -> None:
    same(
        asked("add", "add", "add", "mul", "add"),
        ["add", "add_1", "add_2", "mul", "add_3"],
        "A name that is in use must get the next number: add, add_1, add_2.",
    )


@pytest.mark.exercise("linked_list.namespace.Namespace.create_name")
def test_illegal_characters_are_replaced() -> None:
    same(
        asked("layer.0.weight", "a b!c", "0", ""),
        ["layer_0_weight", "a_b_c", "_0", "_unnamed"],
        "A name must be an identifier of Python: `_parse` makes it one.",
    )
    same(
        asked("a.b", "a_b", "a b"),
        ["a_b", "a_b_1", "a_b_2"],
        "Three candidates all become a_b once `_parse` has made them "
        "identifiers, so two of them need a number. Compare the names that "
        "`_parse` returns, not the candidates.",
    )


@pytest.mark.exercise("linked_list.namespace.Namespace.create_name")
@pytest.mark.parametrize("word", ["for", "list", "torch", "None", "inf"])
def test_a_reserved_name_gets_a_number_at_once(word: str) -> None:
    same(
        asked(word, word),
        [f"{word}_1", f"{word}_2"],
        f"The name {word!r} is in TAKEN, because as a variable it would be a "
        "syntax error or would hide something that generated code needs. So "
        "even the first node of this name gets a number.",
    )


@pytest.mark.exercise("linked_list.namespace.Namespace.create_name")
def test_a_candidate_may_have_a_number() -> None:
    same(
        asked("x_7", "x_7", "x_7"),
        ["x_7", "x_8", "x_9"],
        "x_7 was free, so it stays as it is. The second time, counting goes "
        "on from 7 and gives x_8, not x_7_1.",
    )


@pytest.mark.exercise("linked_list.namespace.Namespace.create_name")
def test_a_number_may_be_written_with_zeros() -> None:
    same(
        asked("layer_007", "layer_7", "layer_007"),
        ["layer_007", "layer_7", "layer_8"],
        "layer_007 was free, so it stays as it is: its number is 7, but the "
        "name is given out as it was asked for. Only a new number makes "
        "another name.",
    )


@pytest.mark.exercise("linked_list.namespace.Namespace.create_name")
def test_a_number_is_not_given_twice() -> None:
    same(
        asked("add_1", "add", "add"),
        ["add_1", "add", "add_2"],
        "add_1 was asked for first. Then add was free, and the second add "
        "must skip add_1, which is in use.",
    )
    same(
        asked("add", "add", "add_1"),
        ["add", "add_1", "add_2"],
        "The second add became add_1, so it is in use like any other name. "
        "When add_1 is asked for, the next free number is 2.",
    )
    same(
        asked("add_2", "add_1", "add", "add"),
        ["add_2", "add_1", "add", "add_3"],
        "add_2 and add_1 were asked for first. Counting for the second add "
        "goes on until it finds a free name, which is add_3.",
    )


@pytest.mark.exercise("linked_list.namespace.Namespace.create_name")
def test_counting_goes_on_after_the_last_number() -> None:
    same(
        asked("add_5", "add", "add"),
        ["add_5", "add", "add_6"],
        "add_5 was free, so the last number given for `add` is 5. The name "
        "add itself has no number and leaves that as it is: count on from 5.",
    )
    same(
        asked("add_1", "add_5", "add_1"),
        ["add_1", "add_5", "add_6"],
        "add_1 is in use. Counting goes on after the last number that was "
        "given for `add`, which is 5, and not after the number in the "
        "candidate.",
    )
    same(
        asked("x_1_2", "x_1", "x_1"),
        ["x_1_2", "x_1", "x_2"],
        "x_1 is x with the number 1, also after x_1_2, which is x_1 with the "
        "number 2: a candidate that ends in a digit is always taken apart.",
    )


@pytest.mark.exercise("linked_list.namespace.Namespace.create_name")
def test_an_object_keeps_its_name() -> None:
    names, first, second = Namespace(), ("first",), ("second",)
    same(names.create_name("t", first), "t", "The name t was free.")
    same(
        names.create_name("t", second),
        "t_1",
        "A second object asked for the name t, which is in use.",
    )
    same(
        names.create_name("t", first),
        "t",
        "create_name was called a second time for the same object, and must "
        "return the same name again.",
    )
    same(
        names.create_name("other", second),
        "t_1",
        "An object that has a name keeps it, whatever the candidate is.",
    )


@pytest.mark.exercise("linked_list.namespace.Namespace.create_name")
def test_a_builtin_may_have_its_own_name() -> None:
    names = Namespace()
    same(
        names.create_name("len", len),
        "len",
        "The name len is in TAKEN, but the object to be named is the builtin "
        "len itself, as `_is_builtin` says, so it may have the name.",
    )
    same(
        names.create_name("max", min),
        "max_1",
        "The name max belongs to the builtin max, but the object is min.",
    )


class Thing:
    """An object that is equal to nothing but itself."""


@pytest.mark.exercise("linked_list.namespace.Namespace.create_name")
def test_an_object_may_be_false() -> None:
    names, empty = Namespace(), ()
    first = names.create_name("t", empty)
    same(
        names.create_name("t", empty),
        first,
        "The object is an empty tuple, and an object like any other although "
        "its truth value is false. It was named before, and keeps its name: "
        "ask `obj is not None`, not `if obj`.",
    )


@pytest.mark.exercise("linked_list.namespace.Namespace.create_name")
def test_a_new_object_gets_a_new_name() -> None:
    names = Namespace()
    found = []
    for _ in range(20):
        found.append(names.create_name("t", Thing()))
        gc.collect(0)
    same(
        len(set(found)),
        20,
        "Twenty objects were named one after the other, each dead before the "
        "next was made, and two have the same name. Python gives the id of a "
        "dead object to a new one, so remember the object itself, not its id.",
    )


@pytest.mark.exercise("linked_list.namespace.Namespace.create_name")
def test_an_object_with_a_name_takes_no_other() -> None:
    names, thing = Namespace(), Thing()
    names.create_name("t", thing)
    names.create_name("other", thing)
    same(
        names.create_name("other"),
        "other",
        "An object that is named t was asked for again, with the candidate "
        "other. It stays t, so the name other must still be free.",
    )


@pytest.mark.exercise("linked_list.namespace.Namespace.create_name")
def test_the_last_number_need_not_be_the_highest() -> None:
    same(
        asked("add_7", "add_3", "add_7"),
        ["add_7", "add_3", "add_4"],
        "add_7 is in use. The number given last for `add` is 3, and counting "
        "goes on from there, though a higher one was given before: `_counts` "
        "holds the last number, not the highest.",
    )


class Counting(dict[str, None]):
    """A dict that counts how often `in` is used on it."""

    asked = 0

    def __contains__(self, key: object) -> bool:
        self.asked += 1
        return super().__contains__(key)


@pytest.mark.exercise("linked_list.namespace.Namespace.create_name")
def test_the_thousandth_name_costs_as_little_as_the_first() -> None:
    names, used = Namespace(), Counting()
    names._used = used
    last = [names.create_name("add") for _ in range(1000)][-1]
    same(last, "add_999", "A thousand nodes asked for the name add.")
    check(
        used.asked < 10_000,
        f"To name 1000 nodes add, {used.asked} names were tried, because each "
        "call began at add_1: store in `_counts` where counting stopped.",
    )
