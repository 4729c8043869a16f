"""Stage 01: names that nobody has yet."""

from __future__ import annotations

import pytest

from fx.ordered.namespace import Namespace
from stages.checking import check, same


def asked(*candidates: str) -> list[str]:
    """The names that a new namespace gives for these wishes, in order."""
    names = Namespace()
    return [names.create_name(candidate) for candidate in candidates]


@pytest.mark.exercise("ordered.namespace.Namespace.create_name")
def test_a_free_name_is_given_as_it_is() -> None:
    same(
        asked("relu", "linear", "x"),
        ["relu", "linear", "x"],
        "Nobody has these names: each wish is granted as it is.",
    )


@pytest.mark.exercise("ordered.namespace.Namespace.create_name")
def test_a_name_that_is_used_gets_a_number() -> None:
    same(
        asked("add", "add", "add", "mul", "add"),
        ["add", "add_1", "add_2", "mul", "add_3"],
        "Asked for again, a name gets the next number: add, add_1, add_2.",
    )


@pytest.mark.exercise("ordered.namespace.Namespace.create_name")
def test_what_cannot_stand_in_a_name_is_cleaned() -> None:
    same(
        asked("layer.0.weight", "a b!c", "0", ""),
        ["layer_0_weight", "a_b_c", "_0", "_unnamed"],
        "A name must be an identifier of Python: `_parse` cleans the wish.",
    )
    same(
        asked("a.b", "a_b", "a b"),
        ["a_b", "a_b_1", "a_b_2"],
        "Three wishes that are cleaned to the same name a_b: two of them "
        "need a number. Compare names after cleaning, not before.",
    )


@pytest.mark.exercise("ordered.namespace.Namespace.create_name")
@pytest.mark.parametrize("word", ["for", "list", "torch", "None", "inf"])
def test_a_reserved_name_gets_a_number_at_once(word: str) -> None:
    same(
        asked(word, word),
        [f"{word}_1", f"{word}_2"],
        f"The name {word!r} is in TAKEN: as a variable it would be a syntax "
        "error or would hide what generated code needs, so even the first "
        "node that asks for it gets a number.",
    )


@pytest.mark.exercise("ordered.namespace.Namespace.create_name")
def test_a_wish_may_have_a_number() -> None:
    same(
        asked("x_7", "x_7", "x_7"),
        ["x_7", "x_8", "x_9"],
        "x_7 was free, so it stays; asked for again it counts on from 7: "
        "x_8, not x_7_1.",
    )


@pytest.mark.exercise("ordered.namespace.Namespace.create_name")
def test_a_number_is_not_given_twice() -> None:
    same(
        asked("add_1", "add", "add"),
        ["add_1", "add", "add_2"],
        "Somebody asked for add_1 by name. Then add was free, and the second "
        "add must skip add_1, which is used.",
    )
    same(
        asked("add", "add", "add_1"),
        ["add", "add_1", "add_2"],
        "add_1 was made by counting and then asked for by name: it is used "
        "like any other, and the next free number is 2.",
    )
    same(
        asked("add_2", "add_1", "add", "add"),
        ["add_2", "add_1", "add", "add_3"],
        "add_1 and add_2 were asked for by name, in this order. Counting for "
        "the second add goes on until it finds a free one, which is add_3.",
    )


@pytest.mark.exercise("ordered.namespace.Namespace.create_name")
def test_an_object_keeps_its_name() -> None:
    names, first, second = Namespace(), ("first",), ("second",)
    same(names.create_name("t", first), "t", "The first object is named t.")
    same(
        names.create_name("t", second),
        "t_1",
        "Another object with the same wish gets a name of its own.",
    )
    same(
        names.create_name("t", first),
        "t",
        "Asked again for the same object, the namespace must give the same "
        "name again, not a new one.",
    )
    same(
        names.create_name("other", second),
        "t_1",
        "An object that has a name keeps it, whatever the wish is now.",
    )


@pytest.mark.exercise("ordered.namespace.Namespace.create_name")
def test_a_builtin_may_have_its_own_name() -> None:
    names = Namespace()
    same(
        names.create_name("len", len),
        "len",
        "The name len is taken, but by len itself, which is the object to be "
        "named: `_is_builtin` says so.",
    )
    same(
        names.create_name("max", min),
        "max_1",
        "The name max is the builtin max's, and the object is another.",
    )


class Counting(set[str]):
    """A set that counts how often it is asked."""

    asked = 0

    def __contains__(self, item: object) -> bool:
        self.asked += 1
        return super().__contains__(item)


@pytest.mark.exercise("ordered.namespace.Namespace.create_name")
def test_the_thousandth_name_costs_as_little_as_the_first() -> None:
    names, used = Namespace(), Counting()
    names._used = used
    last = [names.create_name("add") for _ in range(1000)][-1]
    same(last, "add_999", "A thousand nodes asked for the name add.")
    check(
        used.asked < 10_000,
        f"To give add to 1000 nodes, {used.asked} names were tried, each "
        "time from add_1 on: remember in `_counts` where counting stopped.",
    )
