"""Putting replacements in the place of functions, and originals back."""

from __future__ import annotations

import builtins
import threading
import time
from collections import UserDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import ClassVar

import pytest
import torch

from fx.tracing import patching
from fx.tracing.patching import TRACES, Patches
from fx.tracing.tracer import Tracer
from fx.use_def.dotted_path import MISSING
from fx.use_def.values import AnyValue
from stages.checking import check, same, working
from stages.residual import Residual

PATCH = "tracing.patching.Patches.patch"
UNDO = "tracing.patching.Patches._undo"
BEGIN = "tracing.patching.Patches._begin"
END = "tracing.patching.Patches._end"

Function = Callable[..., AnyValue]

NO_THREAD = -1
"""What no living thread has as its number."""


def greet() -> str:
    """What a place holds at first."""
    return "hello"


def loudly(original: Function) -> Function:
    """A replacement that calls the original, and shouts."""

    def replacement(*args: AnyValue) -> AnyValue:
        result = original(*args)
        return f"{result}!"

    return replacement


def remembered(patches: Patches) -> list[tuple[AnyValue, Function]]:
    """The original and the replacement of each place that is patched."""
    known = [names for _, names in patches._patches.values()]
    return [patch for names in known for patch in names.values()]


def trace() -> Tracer:
    """Something that `Patches` takes for a running trace."""
    return Tracer()


class Touchy:
    """A function that cannot be compared by `==`, as some objects cannot."""

    def __call__(self) -> str:
        return "hello"

    def __eq__(self, other: object) -> bool:
        raise TypeError("the user's __eq__ was asked")


class Interrupting(dict[str, AnyValue]):
    """Globals of a module, which can interrupt what is written to them."""

    def __init__(self, **values: AnyValue) -> None:
        super().__init__(values)
        self.interrupting = ""

    def __setitem__(self, name: str, value: AnyValue) -> None:
        if name == self.interrupting:
            self.interrupting = ""
            raise KeyboardInterrupt
        super().__setitem__(name, value)


# -- patched -----------------------------------------------------------------


@pytest.mark.exercise(PATCH)
def test_a_global_has_a_replacement() -> None:
    namespace: dict[str, AnyValue] = {"greet": greet}
    Patches().patch(namespace, ["greet"], loudly)
    check(
        namespace["greet"] is not greet,
        "The place still has its original: put the replacement there.",
    )
    same(
        namespace["greet"](),
        "hello!",
        "The replacement must be what `make` makes from the original.",
    )


@pytest.mark.exercise(PATCH)
def test_an_attribute_of_a_class_has_a_replacement() -> None:
    class Person:
        def greet(self) -> str:
            return "good day"

    Patches().patch(Person, ["greet"], loudly)
    same(
        Person().greet(),
        "good day!",
        "A method of a class is patched in the class, for all objects.",
    )


@pytest.mark.exercise(PATCH)
def test_a_place_is_patched_once() -> None:
    namespace: dict[str, AnyValue] = {"greet": greet}
    patches = Patches()
    patches.patch(namespace, ["greet"], loudly)
    first = namespace["greet"]
    patches.patch(namespace, ["greet"], loudly)
    same(
        namespace["greet"](),
        "hello!",
        "Patched twice, by two traces, the place has a replacement of the "
        "replacement. It needs one only: if the name is among those that are "
        "known for this holder, do not make another.",
    )
    check(
        namespace["greet"] is first,
        "A second patch of the same place must leave the replacement alone.",
    )


@pytest.mark.exercise(PATCH)
def test_two_places_are_two_patches() -> None:
    one: dict[str, AnyValue] = {"greet": greet, "leave": lambda: "bye"}
    other: dict[str, AnyValue] = {"greet": lambda: "hi"}
    patches = Patches()
    for holder, name in ((one, "greet"), (other, "greet"), (one, "leave")):
        patches.patch(holder, [name], loudly)
    same(
        (one["greet"](), other["greet"](), one["leave"]()),
        ("hello!", "hi!", "bye!"),
        "The same name in another module, and another name in the same "
        "module, are other places: remember each under its holder and name.",
    )


@pytest.mark.exercise(PATCH)
def test_a_builtin_is_patched_where_it_is_looked_up() -> None:
    namespace: dict[str, AnyValue] = {}
    made: list[AnyValue] = []

    def make(original: Function) -> Function:
        made.append(original)
        return loudly(original)

    patches = Patches()
    patches.patch(namespace, ["len"], make)
    given = ["MISSING" if one is MISSING else one for one in made]
    check(
        made and made[0] is builtins.len,
        "The place is empty, as `len` is a builtin: the replacement is made "
        f"from the builtin; `make` was given {given}.",
    )
    for original, _ in remembered(patches):
        check(
            original is MISSING,
            "The builtin was remembered as the original of an empty place, and "
            "would be left there when the patch is undone. What the place held "
            "is MISSING; the builtin is only what the replacement is made "
            "from.",
            picture=f"remembered: {original!r}",
        )
    check(
        "len" in namespace,
        "`len` is not replaced: a global of the module must hide it, since a "
        "global is found before a builtin.",
    )
    same(namespace["len"]("abc"), "3!", "The replacement calls the builtin.")
    check(builtins.len("abc") == 3, "The builtin itself must stay.")


@pytest.mark.exercise(PATCH)
def test_an_empty_place_and_no_builtin_of_its_name() -> None:
    class Declares:
        training: bool

    with working(
        "The class only declares `training`, so the place is empty, and no "
        "builtin has that name: `make` is given None."
    ):
        Patches().patch(Declares, ["training"], lambda _: loudly(greet))
    check(
        "training" in vars(Declares),
        "The class only declares `training`. Its place is empty, and needs "
        "the replacement.",
    )


@pytest.mark.exercise(PATCH)
def test_a_global_with_the_name_of_a_builtin() -> None:
    namespace: dict[str, AnyValue] = {"len": greet}
    Patches().patch(namespace, ["len"], lambda original: original)
    check(
        namespace["len"] is greet,
        "The module has a `len` of its own. The replacement is made from that: "
        "the builtin counts only where the place is empty.",
    )


@pytest.mark.exercise(PATCH)
@pytest.mark.parametrize("value", [None, []], ids=repr)
def test_an_original_may_be_false(value: AnyValue) -> None:
    namespace: dict[str, AnyValue] = {"len": value}
    given: list[AnyValue] = []

    def make(original: AnyValue) -> Callable[..., AnyValue]:
        given.append(original)
        return greet

    Patches().patch(namespace, ["len"], make)
    check(
        len(given) == 1 and given[0] is value,
        f"The module has a `len` of its own, which is {value}. A place is "
        "empty if its original is MISSING, and not if it is false: the "
        "replacement is made from what is there.",
        picture=f"yours was made from: {given}",
    )


@pytest.mark.exercise(PATCH)
def test_the_names_may_come_from_a_generator() -> None:
    namespace: dict[str, AnyValue] = {"greet": greet, "hail": greet}
    Patches().patch(namespace, (name for name in ["greet", "hail"]), loudly)
    same(
        [namespace[name]() for name in ("greet", "hail")],
        ["hello!", "hello!"],
        "The names are an Iterable, here a generator, which gives each name "
        "once: go through them in one loop.",
    )


@pytest.mark.exercise(PATCH)
def test_an_original_that_is_back_is_patched_again() -> None:
    namespace: dict[str, AnyValue] = {"greet": greet}
    patches = Patches()
    patches.patch(namespace, ["greet"], loudly)
    namespace["greet"] = greet
    patches.patch(namespace, ["greet"], loudly)
    same(
        namespace["greet"](),
        "hello!",
        "A trace patches a place that is known but has its original again "
        "(another trace may have just put it back): it needs the replacement.",
    )


@pytest.mark.exercise(PATCH)
def test_a_place_that_was_emptied_stays_empty() -> None:
    namespace: dict[str, AnyValue] = {"greet": greet}
    patches = Patches()
    patches.patch(namespace, ["greet"], loudly)
    del namespace["greet"]
    patches.patch(namespace, ["greet"], loudly)
    check(
        "greet" not in namespace,
        "The place held a function when it was patched, and then other code "
        "deleted the name. That is not the original, so a second patch must "
        "leave the place empty: compare what it holds with the original.",
    )


@pytest.mark.exercise(PATCH)
def test_a_place_that_is_empty_again_is_patched_again() -> None:
    namespace: dict[str, AnyValue] = {}
    patches = Patches()
    patches.patch(namespace, ["len"], loudly)
    namespace.clear()
    patches.patch(namespace, ["len"], loudly)
    check(
        "len" in namespace,
        "The place of `len` was empty at first, and is empty again: that is "
        "its original, so it needs the replacement.",
    )


@pytest.mark.exercise(PATCH)
def test_what_other_code_put_over_the_replacement_stays() -> None:
    namespace: dict[str, AnyValue] = {"greet": greet}
    patches = Patches()
    patches.patch(namespace, ["greet"], loudly)
    namespace["greet"] = len
    patches.patch(namespace, ["greet"], loudly)
    check(
        namespace["greet"] is len,
        "The place is known, and other code has put a function over the "
        "replacement. A second patch must leave it: the replacement goes "
        "back only where the original is again.",
    )


@pytest.mark.exercise(PATCH)
def test_a_patched_function_is_not_compared() -> None:
    namespace: dict[str, AnyValue] = {"greet": Touchy()}
    patches = Patches()
    try:
        patches.patch(namespace, ["greet"], loudly)
        patches.patch(namespace, ["greet"], loudly)
    except TypeError as error:
        check("__eq__" not in str(error), f"{BY_IDENTITY} its original.")
        raise
    same(namespace["greet"](), "hello!", "The place needs its replacement.")


BY_IDENTITY = (
    "The place holds an object of a class with an `__eq__` of its own, which "
    "was asked. Find out by `is` whether the place has"
)


@pytest.mark.exercise(PATCH)
def test_two_traces_at_the_same_moment() -> None:
    namespace: dict[str, AnyValue] = {"greet": greet}
    patches = Patches()
    made: list[Function] = []

    def make(original: Function) -> Function:
        made.append(loudly(original))
        mine = made[-1]
        if len(made) == 1:  # another thread comes here in the meantime
            patches.patch(namespace, ["greet"], make)
        return mine

    patches.patch(namespace, ["greet"], make)
    check(
        namespace["greet"] is made[-1],
        "While this trace made its replacement, another one patched the place, "
        "and its replacement is not there any more. Both must go on with the "
        "patch that was remembered first.",
    )
    check(
        [replacement for _, replacement in remembered(patches)] == made[-1:],
        "While this trace made its replacement, another one patched the place. "
        "Its patch was overwritten, so its replacement will never be taken "
        "away. Both must go on with the patch that was remembered first, so "
        "looking and remembering must be one step.",
    )


@pytest.mark.exercise(PATCH)
def test_two_traces_that_come_to_a_module_at_once() -> None:
    namespace: dict[str, AnyValue] = {"greet": greet}
    patches = Patches()

    class Raced(dict[int, AnyValue]):
        """Has another thread patch the same module before an entry is set."""

        entered = False

        def __setitem__(self, key: int, value: AnyValue) -> None:
            """Let the other one go first, once."""
            if not self.entered:
                self.entered = True
                patches.patch(namespace, ["greet"], loudly)
            super().__setitem__(key, value)

    patches._patches = Raced()
    patches.patch(namespace, ["greet"], loudly)
    same(
        namespace["greet"](),
        "hello!",
        "Two traces patch a module for the first time, and the second one has "
        "forgotten what the first had noted of it: the place is replaced "
        "twice. `setdefault` is for the module, too.",
    )


@pytest.mark.exercise(PATCH)
def test_what_was_patched_before_an_error_is_remembered() -> None:
    namespace: dict[str, AnyValue] = {"greet": greet, "hail": len}
    patches = Patches()

    def make(original: Function) -> Function:
        if original is len:
            raise ValueError("no replacement for this one")
        return loudly(original)

    with suppress(ValueError):
        patches.patch(namespace, ["greet", "hail"], make)
    known = [replacement for _, replacement in remembered(patches)]
    check(
        namespace["greet"] is greet or namespace["greet"] in known,
        "`make` raised for the second name, when the first place had its "
        "replacement already. That patch is not remembered, and so its "
        "original never comes back: remember each before you put it there.",
    )


# -- put back ----------------------------------------------------------------


@pytest.mark.exercise(UNDO)
def test_originals_are_put_back() -> None:
    class Person:
        def greet(self) -> str:
            return "good day"

    method = vars(Person)["greet"]
    namespace: dict[str, AnyValue] = {"greet": greet}
    patches = Patches()
    patches.patch(namespace, ["greet"], loudly)
    patches.patch(Person, ["greet"], loudly)
    patches._undo()
    check(
        namespace["greet"] is greet and vars(Person)["greet"] is method,
        "Every place must have the very object back that it held.",
    )


@pytest.mark.exercise(UNDO)
def test_an_empty_place_is_empty_again() -> None:
    namespace: dict[str, AnyValue] = {"len": greet}
    patches = Patches()
    patches._patches[id(namespace)] = namespace, {"len": (MISSING, greet)}
    patches._undo()
    same(
        dict(namespace),
        {},
        "The module had no global `len`, and must have none again.",
    )


@pytest.mark.exercise(UNDO)
def test_what_other_code_put_there_stays() -> None:
    namespace: dict[str, AnyValue] = {"greet": greet}
    patches = Patches()
    patches.patch(namespace, ["greet"], loudly)
    namespace["greet"] = len
    patches._undo()
    check(
        namespace["greet"] is len,
        "Other code put a function there meanwhile. It is not our "
        "replacement, and must not be overwritten.",
    )


@pytest.mark.exercise(UNDO)
def test_a_place_that_other_code_emptied_stays_empty() -> None:
    namespace: dict[str, AnyValue] = {"greet": greet, "hail": greet}
    patches = Patches()
    patches.patch(namespace, ["greet", "hail"], loudly)
    del namespace["greet"]
    with working(
        "Other code deleted the name `greet` meanwhile. An error at that place "
        "leaves all that come after it patched: an empty place holds MISSING."
    ):
        patches._undo()
    check(
        "greet" not in namespace and namespace["hail"] is greet,
        "Other code deleted the name `greet` meanwhile. The place does not "
        "hold our replacement, so it must stay empty, and the other place "
        "must have its original back.",
    )


@pytest.mark.exercise(UNDO)
def test_what_other_code_put_there_is_not_compared() -> None:
    namespace: dict[str, AnyValue] = {"greet": greet}
    patches = Patches()
    patches.patch(namespace, ["greet"], loudly)
    namespace["greet"] = Touchy()
    try:
        patches._undo()
    except TypeError as error:
        check("__eq__" not in str(error), f"{BY_IDENTITY} our replacement.")
        raise


@pytest.mark.exercise(UNDO)
def test_the_patches_are_forgotten() -> None:
    namespace: dict[str, AnyValue] = {"greet": greet}
    patches = Patches()
    patches.patch(namespace, ["greet"], loudly)
    patches._undo()
    namespace["greet"] = lambda: "hi"
    patches.patch(namespace, ["greet"], loudly)
    same(
        namespace["greet"](),
        "hi!",
        "The place has another function now, and the next trace must "
        "patch that one: an undone patch has to be forgotten.",
    )


@pytest.mark.exercise(UNDO)
def test_a_patch_that_was_not_ours_to_undo_is_forgotten() -> None:
    namespace: dict[str, AnyValue] = {"greet": greet}
    patches = Patches()
    patches.patch(namespace, ["greet"], loudly)
    namespace["greet"] = lambda: "hi"
    patches._undo()
    patches.patch(namespace, ["greet"], loudly)
    same(
        namespace["greet"](),
        "hi!",
        "Other code had put a function there, and it was left alone; but "
        "the patch was remembered, so the next trace does not patch that "
        "function. Forget a patch whether or not something was put back.",
    )


@pytest.mark.exercise(UNDO)
def test_undoing_that_is_interrupted_can_be_done_again() -> None:
    namespace = Interrupting(a=greet, b=greet, c=greet)
    patches = Patches()
    for name in "abc":
        patches.patch(namespace, [name], loudly)
    namespace.interrupting = "b"
    with suppress(KeyboardInterrupt):
        patches._undo()
    check(
        not namespace.interrupting,
        "Each original must be put back by `put`.",
    )
    patches._undo()
    left = [name for name in "abc" if namespace[name] is not greet]
    check(
        not left,
        "An interrupt came just when `b` was to be put back, and the second "
        "`_undo` did not do it. Forget a patch only after its place is right.",
        picture=f"still patched: {left}",
    )


@pytest.mark.exercise(UNDO)
def test_a_trace_in_the_middle_of_an_undoing() -> None:
    patches = Patches()

    class Finalizing(dict[str, AnyValue]):
        """Globals of a module; what is freed when they are written traces."""

        traces = False

        def __setitem__(self, name: str, value: AnyValue) -> None:
            if self.traces:
                self.traces = False
                with patches.during(trace()):
                    patches.patch(self, ["leave"], loudly)
            super().__setitem__(name, value)

    namespace = Finalizing(greet=greet, leave=greet)
    patches.patch(namespace, ["greet"], loudly)
    namespace.traces = True
    with working(
        "In the middle of an undoing, a finalizer has traced something. The "
        "trace patched another name of the same module, and undid all patches "
        "at its end. So what `_undo` walks over changes meanwhile, and what it "
        "wants to forget may be forgotten already."
    ):
        patches._undo()
    check(
        namespace["greet"] is greet and namespace["leave"] is greet,
        "In the middle of an undoing, a finalizer has traced something, and "
        "patched another name of the same module. All originals must be back.",
    )


@pytest.mark.exercise(UNDO)
def test_a_module_that_is_patched_in_the_middle_of_an_undoing() -> None:
    patches = Patches()
    later: dict[str, AnyValue] = {"greet": greet}

    class Shared(dict[str, AnyValue]):
        """Globals of a module; when they are written, another is patched."""

        is_ready = False

        def __setitem__(self, name: str, value: AnyValue) -> None:
            if self.is_ready:
                self.is_ready = False
                patches.patch(later, ["greet"], loudly)
            super().__setitem__(name, value)

    namespace = Shared(greet=greet)
    patches.patch(namespace, ["greet"], loudly)
    namespace.is_ready = True
    patches._undo()
    check(
        later["greet"] is greet or remembered(patches),
        "In the middle of an undoing another module was patched. Its original "
        "was not put back, and yet the patch was forgotten, so it stays for "
        "good. Forget each holder when its own places are right.",
    )


@pytest.mark.exercise(UNDO)
def test_the_last_open_trace_puts_back() -> None:
    namespace: dict[str, AnyValue] = {"greet": greet}
    patches = Patches()
    with patches.during(trace()):
        patches.patch(namespace, ["greet"], loudly)
        with patches.during(trace()):
            patches.patch(namespace, ["greet"], loudly)
        same(
            namespace["greet"](),
            "hello!",
            "An inner trace has ended and an outer one still runs: its "
            "replacement must stay.",
        )
    check(
        namespace["greet"] is greet,
        "The last trace has ended: the original must be back.",
    )


@pytest.mark.exercise(UNDO)
def test_originals_are_back_after_an_error() -> None:
    namespace: dict[str, AnyValue] = {"greet": greet}
    patches = Patches()
    try:
        with patches.during(trace()):
            patches.patch(namespace, ["greet"], loudly)
            raise ValueError("in the middle of a trace")
    except ValueError:
        pass
    check(
        namespace["greet"] is greet,
        "An error ended the trace, and the original must be back all the same.",
    )


# -- traces in several threads -----------------------------------------------


class Elsewhere(threading.Thread):
    """A thread whose errors are those of the test."""

    def __init__(self, function: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self._function = function
        self._error: BaseException | None = None

    def run(self) -> None:
        """Call the function, and keep its error."""
        try:
            self._function()
        except BaseException as error:
            self._error = error

    def end(self) -> None:
        """Wait until it has ended, and raise what it raised."""
        self.join(2)
        if self._error is not None:
            raise self._error

    def reach(self, event: threading.Event) -> None:
        """Wait until it sets an event, at most until it ends, or 2 s."""
        began = time.monotonic()
        while self.is_alive() and time.monotonic() < began + 2:
            if event.wait(0.01):
                return


class Slow(dict[str, AnyValue]):
    """Globals of a module; writing to them waits when it is told to."""

    def __init__(self, **values: AnyValue) -> None:
        super().__init__(values)
        self.reached, self.go_on = threading.Event(), threading.Event()
        self.waits = False

    def __setitem__(self, name: str, value: AnyValue) -> None:
        if self.waits:
            self.waits = False
            self.reached.set()
            self.go_on.wait(2)
        super().__setitem__(name, value)


@pytest.mark.exercise(BEGIN)
def test_a_trace_is_current_while_it_runs() -> None:
    patches = Patches()
    outer, inner = trace(), trace()
    with patches.during(outer):
        check(
            patches.current is outer,
            "Code that a trace runs asks `current` which trace that is: "
            "`_begin` has to set it.",
        )
        with patches.during(inner):
            check(patches.current is inner, "The inner trace runs now.")
        check(
            patches.current is outer,
            "An inner trace has ended, and the outer one runs again: `_end` "
            "is given what was current `before`, and has to set it.",
        )
    check(
        patches.current is None,
        "No trace runs any more, and the last one is still current: `_end` "
        "has to set `_current` to what was `before`.",
    )


@pytest.mark.exercise(BEGIN)
def test_a_trace_waits_for_a_thread_that_undoes() -> None:
    namespace = Slow(greet=greet)
    patches = Patches()
    begun = threading.Event()
    announced: list[bool] = []

    def first() -> None:
        with patches.during(trace()):
            patches.patch(namespace, ["greet"], loudly)
            namespace.waits = True

    def second() -> None:
        one = trace()
        with patches.during(one):
            begun.set()
            announced.append(one in patches._open)

    ending = Elsewhere(first)
    ending.start()
    ending.reach(namespace.reached)  # it is putting the original back
    beginning = Elsewhere(second)
    beginning.start()
    early = begun.wait(0.1)
    namespace.go_on.set()
    ending.end()
    beginning.end()
    check(
        not early,
        "Another thread was putting originals back, and a trace has begun in "
        "the middle of it: what that trace patches would be undone. `_begin` "
        "has to wait while another thread is among `_undoing`.",
    )
    check(
        begun.is_set() and announced == [True],
        "The other thread has finished, and the trace has not begun, or is "
        "not announced in `_open`, where the end of other traces looks.",
    )


@pytest.mark.exercise(BEGIN)
def test_a_trace_does_not_wait_for_its_own_thread() -> None:
    patches = Patches()
    patches._undoing["interrupted"] = threading.get_ident()
    patches._undoing["of a thread that has ended"] = NO_THREAD
    watchdog = threading.Timer(1, patches._undoing.clear)
    watchdog.start()
    with patches.during(trace()):
        waited = not patches._undoing
    watchdog.cancel()
    check(
        not waited,
        "A trace waited for an undoing that nobody else will finish: one of "
        "its own thread, or of a thread that has ended. Wait for other, "
        "living threads only.",
    )


@pytest.mark.exercise(BEGIN)
def test_a_trace_is_announced_before_it_looks() -> None:
    patches = Patches()
    announced: list[bool] = []

    class Watched(UserDict[object, int]):
        """Looks at `_open` whenever somebody looks at `_undoing`."""

        def __len__(self) -> int:
            """Look, and count."""
            announced.append(bool(patches._open))
            return super().__len__()

        def __iter__(self) -> Iterator[object]:
            """Look, and go through the traces."""
            announced.append(bool(patches._open))
            return super().__iter__()

    watched: AnyValue = Watched({"of a thread that has ended": NO_THREAD})
    patches._undoing = watched
    announced.clear()
    patches._begin(trace())
    check(
        announced,
        "`_begin` did not look at `_undoing`: another thread may be about to "
        "take away what this trace needs.",
    )
    check(
        announced[-1],
        "A trace looked whether another thread is undoing before it was "
        "announced in `_open`. In between, that thread may look for open "
        "traces, find none, and begin to undo.",
    )


@pytest.mark.exercise(END)
def test_a_trace_of_another_thread_keeps_the_patches() -> None:
    namespace: dict[str, AnyValue] = {"greet": greet}
    patches = Patches()
    entered, leave = threading.Event(), threading.Event()

    def other() -> None:
        with patches.during(trace()):
            patches.patch(namespace, ["greet"], loudly)
            entered.set()
            leave.wait(2)

    thread = Elsewhere(other)
    thread.start()
    thread.reach(entered)
    with patches.during(trace()):
        patches.patch(namespace, ["greet"], loudly)
    still = namespace["greet"]
    leave.set()
    thread.end()
    check(
        still is not greet,
        "This thread's trace has ended, but another thread's still runs, and "
        "lost its replacements: undo only when no trace is open.",
    )
    check(
        namespace["greet"] is greet,
        "The last trace of all threads has ended: the original must be back.",
    )


@pytest.mark.exercise(END)
def test_two_traces_end_together(monkeypatch: pytest.MonkeyPatch) -> None:
    namespace: dict[str, AnyValue] = {"greet": greet}
    patches = Patches()
    inside, both = threading.Barrier(3), threading.Barrier(2)
    look = patching._threads_of

    def together(traces: dict[object, int]) -> set[int]:
        found = look(traces)
        with suppress(threading.BrokenBarrierError):
            both.wait(1)
        return found

    def run() -> None:
        try:
            with patches.during(trace()):
                patches.patch(namespace, ["greet"], loudly)
                inside.wait(2)
                inside.wait(2)
        except BaseException:
            inside.abort()
            raise

    threads = [Elsewhere(run), Elsewhere(run)]
    for thread in threads:
        thread.start()
    with suppress(threading.BrokenBarrierError):
        inside.wait(2)
        monkeypatch.setattr(patching, "_threads_of", together)
        inside.wait(2)
    for thread in threads:
        thread.end()
    check(
        namespace["greet"] is greet,
        "Two threads ended their traces together. Each looked who else is "
        "there before the other was gone, both left the undoing to the other, "
        "and the replacement stays for good. Withdraw your trace *before* you "
        "look, and look at the open traces alone.",
    )


@pytest.mark.exercise(END)
def test_a_trace_of_a_dead_thread_does_not_count() -> None:
    namespace: dict[str, AnyValue] = {"greet": greet}
    patches = Patches()
    patches._open["left over"] = NO_THREAD
    with patches.during(trace()):
        patches.patch(namespace, ["greet"], loudly)
    check(
        namespace["greet"] is greet,
        "A trace of a thread that has ended can never end, so it must not "
        "keep the patches: `_threads_of` counts living threads.",
    )


@pytest.mark.exercise(END)
def test_the_end_is_announced_before_the_trace_is_withdrawn() -> None:
    patches = Patches()
    seen: list[bool] = []

    class Watched(dict[object, int]):
        """Looks at `_undoing` when a trace is withdrawn."""

        def pop(self, key: object, *default: AnyValue) -> AnyValue:
            """Look, and withdraw.

            Args:
                key: the trace.
                *default: what there is if it is not open.
            """
            seen.append(key in patches._undoing)
            return super().pop(key, *default)

        def __delitem__(self, key: object) -> None:
            self.pop(key)

    patches._open = Watched()
    with patches.during(trace()):
        pass
    check(
        seen and all(seen),
        "A trace was withdrawn from `_open` before it was noted in "
        "`_undoing`. In between another thread sees neither a trace nor an "
        "undoing, and patches what is then undone.",
    )
    check(
        not patches._open and not patches._undoing,
        "After the end of the only trace, both `_open` and `_undoing` must be "
        "empty.",
    )


@pytest.mark.exercise(END)
def test_the_undoing_is_over_also_after_an_interrupt() -> None:
    namespace = Interrupting(greet=greet)
    patches = Patches()
    with suppress(KeyboardInterrupt), patches.during(trace()):
        patches.patch(namespace, ["greet"], loudly)
        namespace.interrupting = "greet"
    check(
        not patches._undoing,
        "An interrupt broke into `_undo`, and the undoing is still announced: "
        "every other thread would wait for ever. Withdraw it in a finally "
        "block.",
    )
    check(
        namespace["greet"] is greet,
        "An interrupt broke into the end of a trace, `during` has ended it "
        "once more, and the original is not back: `_end` must do all its work "
        "when it is called again.",
    )


class Stubborn(dict[str, AnyValue]):
    """Globals of a module, which cannot be written while `interrupts` is on."""

    interrupts = False

    def __setitem__(self, name: str, value: AnyValue) -> None:
        if self.interrupts:
            raise KeyboardInterrupt
        super().__setitem__(name, value)


@pytest.mark.exercise(END)
def test_an_undoing_that_is_given_up() -> None:
    namespace = Stubborn(greet=greet)
    patches = Patches()
    with suppress(KeyboardInterrupt), patches.during(trace()):
        patches.patch(namespace, ["greet"], loudly)
        namespace.interrupts = True
    check(
        not patches._undoing,
        "Every try to put the original back was interrupted, so it was given "
        "up; but the undoing is still announced, and every other thread would "
        "wait for it. Withdraw it in a finally block.",
    )
    check(
        patches.current is None,
        "The undoing was interrupted and given up, and the trace that has "
        "ended is still the current one: set `_current` before anything that "
        "may raise.",
    )
    namespace.interrupts = False
    with patches.during(trace()):
        pass
    check(
        namespace["greet"] is greet,
        "An undoing was given up, and the end of a later trace did not finish "
        "it: no trace is open any more, so all patches are to be undone.",
    )


# -- a real trace ------------------------------------------------------------


class Spying(torch.nn.Module):
    """Calls a layer in another thread, in the middle of its forward."""

    seen: ClassVar[list[object]] = []

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The layer's result.

        Args:
            x: of shape (*, 4).
        """

        def elsewhere() -> None:
            self.seen.append(Residual()(torch.ones(1, 4)))

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        result: torch.Tensor = self.layer(x)
        return result


@pytest.mark.exercise("tracing.tracer.Tracer.getattr")
def test_a_trace_leaves_nothing_patched_and_other_threads_alone() -> None:
    module = torch.nn.Module
    before = vars(module)["__call__"], vars(module)["__getattr__"]
    root = Spying()
    Tracer().trace(root)
    check(
        len(root.seen) == 1 and type(root.seen[0]) is torch.Tensor,
        "A module called in another thread, while this one traces, must "
        f"run as usual; it gave {root.seen}.",
    )
    after = vars(module)["__call__"], vars(module)["__getattr__"]
    check(
        before == after and TRACES.current is None,
        "After a trace nn.Module must have its own methods again.",
    )
