"""Stage 05: which names generated code has for things that are not its own."""

from __future__ import annotations

import decimal
from typing import NoReturn

import pytest
import torch

from fx.codegen.argument_text import ArgumentPrinter
from fx.codegen.names import GlobalNames
from fx.graph import Graph
from stages.checking import check, same


class Touchy:
    """An object that must not be asked anything."""

    __slots__ = ()

    def __eq__(self, other: object) -> NoReturn:
        raise ZeroDivisionError("__eq__ of a user's object was called")

    def __hash__(self) -> NoReturn:
        raise ZeroDivisionError("__hash__ of a user's object was called")


def scale(x: object) -> object:
    """A function of a user."""
    return x


def shown(names: GlobalNames, name: str) -> str:
    """What a global means, in a word."""
    if name not in names.values:
        return "nothing"
    value: object = names.values[name]
    return str(getattr(value, "__name__", repr(value)))


def renamed(names: GlobalNames, yours: str, taken: str) -> str:
    """A picture: a name, and that it had to be another than the taken one."""
    return (
        f"yours:    {yours!r}, which means {shown(names, yours)}\n"
        f"expected: a name that is not {taken!r}, which means {taken}"
    )


@pytest.mark.exercise("codegen.names.GlobalNames.bind")
class TestBind:
    def test_the_name_leads_to_the_object(self) -> None:
        names = GlobalNames(())
        name = names.bind("scale", scale)
        same(
            name,
            "scale",
            "Nobody is called `scale` yet: the hint itself is the name.",
        )
        check(
            names.values.get(name) is scale,
            "`names.values` becomes the globals of the code, and the object "
            "is not in it under the name that was given: running the code "
            "would be a NameError.",
        )

    def test_an_object_keeps_its_name(self) -> None:
        names = GlobalNames(())
        first = names.bind("scale", scale)
        again = names.bind("other", scale)
        check(
            first == again,
            "The same object was bound before: it keeps the name it has, "
            "whatever the hint says now.",
            picture=f"first: {first!r}\nagain: {again!r}",
        )
        same(
            [name for name, obj in names.values.items() if obj is scale],
            [first],
            "One object, one name: there is a second global for it.",
        )
        check(
            names.bind("third", scale) == first,
            "The same object was bound for the third time, and has another "
            "name now: leave `_known` as it is if the object is in it.",
        )

    def test_two_objects_never_share_a_name(self) -> None:
        names = GlobalNames(())
        first, second = [1], [2]
        one, two = names.bind("weights", first), names.bind("weights", second)
        check(
            one != two,
            f"Two objects asked for the name `weights` and both are {one}: "
            f"the code would find the second in place of the first.",
        )
        check(
            names.values[one] is first and names.values[two] is second,
            "Each of the two names must lead to its own object.",
        )

    def test_equal_objects_are_two_objects(self) -> None:
        names = GlobalNames(())
        first, second = [0.0], [0.0]
        one, two = names.bind("bias", first), names.bind("bias", second)
        check(
            one != two,
            "Two lists are equal today, but they are two objects and may "
            "differ tomorrow: objects are told apart by `_key`, not by `==`.",
        )

    def test_equal_constants_share_a_name(self) -> None:
        names = GlobalNames(())
        text = "a text of the user"
        other = "".join(["a text", " of the user"])
        first, again = names.bind("note", text), names.bind("note", other)
        check(
            first == again,
            "Equal strings cannot be told apart and share one global: what "
            "is remembered is `_key(obj)`, not `id(obj)`.",
            picture=f"first: {first!r}\nagain: {again!r}",
        )

    def test_none_is_an_object(self) -> None:
        names = GlobalNames(())
        name = names.bind("nothing", None)
        check(
            name == "nothing" and name in names.values,
            "None is an object like any other: bind it under the name that "
            "was asked for.",
            picture=f"yours: {name!r}, values: {names.values}",
        )

    def test_the_names_of_the_function_are_taken(self) -> None:
        names = GlobalNames(("scale", "x"))
        name = names.bind("scale", scale)
        check(
            name not in ("scale", "x"),
            f"The function has a variable `{name}`, which would hide the "
            "global of that name: `_free_name` knows what is taken.",
            picture=f"yours:    {name!r}\n"
            "expected: a name that is neither 'scale' nor 'x'",
        )

    def test_what_has_a_name_is_not_bound_again(self) -> None:
        names = GlobalNames(())
        path = names.name_of(torch.relu)
        before = dict(names.values)
        same(
            names.bind("relu", torch.relu),
            path,
            "torch.relu was named before, by its path, and keeps that name.",
        )
        same(
            sorted(names.values),
            sorted(before),
            "torch.relu has a name, so `bind` has nothing to do, and yet there "
            "is one more entry in `values`. A path is not the name of a "
            "global: make an entry only for a new name.",
        )

    def test_the_names_that_every_function_has_are_taken(self) -> None:
        names = GlobalNames(())
        name = names.bind("torch", scale)
        check(
            name != "torch" and names.values["torch"] is torch,
            "`torch` is a global of every generated function, and now it "
            "means something else: `_free_name` knows that it is in use.",
            picture=f"yours:    {name!r} for the function; `torch` means "
            f"{shown(names, 'torch')}\n"
            "expected: another name for it; `torch` means torch",
        )

    def test_nothing_of_the_object_is_called(self) -> None:
        names = GlobalNames(())
        try:
            names.bind("touchy", Touchy())
            names.bind("touchy", Touchy())
        except ZeroDivisionError as error:
            check(
                False,
                f"{error}: a user's object can define `==` and hash as it "
                "likes, so `_key(obj)` is what to look up, never the object.",
            )

    def test_a_hint_that_is_no_identifier(self) -> None:
        names = GlobalNames(())
        name = names.bind("my_model.scale", scale)
        same(
            name,
            "my_model_scale",
            "The hint may be a path, and a global's name must be an "
            "identifier: `_free_name` makes one of it.",
        )


@pytest.mark.exercise("codegen.names.GlobalNames.bind")
class TestWhatNeedsANameOfItsOwn:
    def test_a_constant_that_cannot_be_written_out(self) -> None:
        names = GlobalNames(())
        tenth = decimal.Decimal("0.1")
        name = ArgumentPrinter({}, names).text(tenth)
        same(
            name,
            "_constant_decimal",
            "A Decimal is not written out but bound to a global, named after "
            "its type.",
        )
        check(
            names.values.get(name) is tenth,
            "The global of a constant must be that very object.",
        )

    def test_a_parameter_called_torch(self) -> None:
        names = GlobalNames(("torch",))
        spelled = names.spelled["torch"]
        check(
            spelled != "torch" and names.values.get(spelled) is torch,
            "A parameter is called `torch`, so the module torch needs "
            "another name in `names.values`.",
            picture=renamed(names, spelled, "torch"),
        )

    def test_a_parameter_called_like_a_builtin(self) -> None:
        names = GlobalNames(("len",))
        spelled = names.name_of(len)
        check(
            spelled != "len" and names.values.get(spelled) is len,
            "A parameter is called `len`, so the builtin len needs another "
            "name in `names.values`.",
            picture=renamed(names, spelled, "len"),
        )

    def test_a_function_of_a_user_in_a_graph(self) -> None:
        graph = Graph()
        x = graph.placeholder("x")
        node = graph.call_function(scale, (x,))
        names = GlobalNames(("x", node.name))
        spelled = names.name_of(scale)
        check(
            spelled not in ("x", node.name)
            and names.values.get(spelled) is scale,
            "A node that calls `scale` has the variable `scale`; the "
            "function needs a global of another name.",
            picture=renamed(names, spelled, "scale"),
        )
