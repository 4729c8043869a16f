"""Graphs whose texts and objects try to run code of their own.

Each graph has a hostile text in one place or two: a name, a target, a keyword,
a constant, a default, a type, a note in meta, the name of a class, a function
or a module. It is printed, compiled, run, copied, pickled and loaded, written
to a folder and imported from there. Nothing of it may run, and each of these
either says no or does what it does with a harmless text.
"""

from __future__ import annotations

import builtins
import contextlib
import copy
import enum
import importlib.util
import io
import pickle
import random
import tempfile
import types
import warnings
from collections import namedtuple
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import torch
import torch.fx

import fx
from tests.reliability.part import Outcome, Part, Plant

Lib: TypeAlias = Any
"""`torch.fx` or `fx`, or something of one of them."""

AnyValue: TypeAlias = Any

FIRED: list[str] = []


def fire(text: str = "") -> str:
    """What hostile texts and objects want to have called."""
    FIRED.append(text)
    return ""


vars(builtins)["hostile_fire"] = fire
BOMB = "hostile_fire()"
"""Runs wherever it is evaluated; as a path, it has no dot in it."""

TEXTS = (
    BOMB,
    f"x\n    {BOMB}\n    y",
    f"x); {BOMB}; (x",
    f"x', {BOMB}, 'y",
    f'x", {BOMB}, "y',
    f"x=0, y={BOMB}",
    f"x: {BOMB}",
    f"x # \n    {BOMB}\n    #",
    f"x\r    {BOMB}\r    y",
    f"x\x0c{BOMB}",
    f"x\u2028{BOMB}\u2029",
    f"x'''\n{BOMB}\n'''",
    f'x"""\n{BOMB}\n"""',
    f"x\\\n{BOMB}",
    f"x]; {BOMB}; [0",
    f"x}}{BOMB}{{",
    f"\x1b[2J{BOMB}\x00",
    f"x.{BOMB}.y",
    f"x(self, x): return {BOMB}\ndef forward",
    f"/../{BOMB}",
)


def identity(x: AnyValue, *args: AnyValue, **kwargs: AnyValue) -> AnyValue:
    """What calls return: their input and all else that they were given."""
    return (x, args, kwargs) if args or kwargs else x


@dataclass
class Hostile:
    """A graph that is being made.

    Attributes:
        lib: whose graph it is.
        graph: itself; it has one placeholder.
        x: the placeholder.
        root: what its modules and attributes are of.
        results: what it returns.
        expected: what that is for x, but for what cannot be known.
        class_name: for the graph module.
        module_name: for the folder.
    """

    lib: Lib
    graph: Lib
    x: Lib
    root: torch.nn.Module = field(default_factory=torch.nn.Module)
    results: list[Lib] = field(default_factory=list)
    expected: list[AnyValue] = field(default_factory=list)
    class_name: str = "GraphModule"
    module_name: str = "Written"

    def call(self, *args: AnyValue, name: str = "", **kwargs: AnyValue) -> Lib:
        """A call that gives back what it gets."""
        make = self.graph.create_node
        all_args = (self.x, *args)
        node = make("call_function", identity, all_args, kwargs, name or "call")
        self.results.append(node)
        self.expected.append(identity(1, *args, **kwargs))
        return node


Place: TypeAlias = Callable[[Hostile, str], object]


def _named(made: AnyValue, text: str) -> AnyValue:
    """An object with the text for each of its names."""
    made.__name__ = made.__qualname__ = made.__module__ = text
    return made


def _keyword(it: Hostile, text: str) -> None:
    keywords: dict[str, AnyValue] = {text: 1}
    it.call(**keywords)


def _function(it: Hostile, text: str) -> None:
    copied = types.FunctionType(identity.__code__, globals(), "copied")
    node = it.call()
    node.target = _named(copied, text)


def _class(text: str) -> type:
    kind: type = type("Kind", (), {"__slots__": ()})
    kind.__name__ = text.replace("\0", "")
    kind.__qualname__, kind.__module__ = kind.__name__, text
    return kind


def _default(it: Hostile, text: str) -> None:
    node = it.graph.create_node("placeholder", "more", (text,))
    it.results.append(node)
    it.expected.append(text)


def _typed(it: Hostile, kind: AnyValue) -> None:
    it.call().type = kind
    it.x.type = kind


def _of_root(it: Hostile, op: str, text: str) -> None:
    it.results.append(it.graph.create_node(op, text, (it.x,), {}))
    it.expected.append(None)


def _attribute(it: Hostile, text: str) -> None:
    setattr(it.root, text, 5)
    it.results.append(it.graph.create_node("get_attr", text))
    it.expected.append(5)


def _child(it: Hostile, text: str) -> None:
    it.root.add_module(text, torch.nn.Identity())
    it.results.append(it.graph.create_node("call_module", text, (it.x,)))
    it.expected.append(1)


def _member(it: Hostile, text: str) -> None:
    kind = enum.Enum("Kind", {text: 1})  # type: ignore[misc]  # made of text
    it.call(kind(1))


def _tuple(it: Hostile, text: str) -> None:
    kind: AnyValue = namedtuple("kind", ["a", "b"])
    it.call(_named(kind, text)(1, 2))


class Armed:
    """An object whose text is asked for in vain."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return fire("repr") or self.text

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return fire("format") or self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Armed) and other.text == self.text

    __hash__ = None  # type: ignore[assignment]  # it is in no key


class ArmedText(str):
    """A text that runs code when it is asked for its text."""

    __slots__ = ()

    def __repr__(self) -> str:
        return fire("repr") or str.__str__(self)

    __str__ = __repr__


def _pytree(it: Hostile, text: str) -> None:
    graph = it.lib.graph
    _, spec = torch.utils._pytree.tree_flatten(((1,), {}))
    info = graph._PyTreeInfo([text], spec, None)
    it.graph.set_codegen(graph._PyTreeCodeGen(info))


PLACES: dict[str, Place] = {
    "name of a node": lambda it, text: it.call(name=text),
    "name, set later": lambda it, text: setattr(it.call(), "name", text),
    "renamed": lambda it, text: it.call()._rename(text),
    "placeholder": lambda it, text: it.graph.placeholder(text),
    "method": lambda it, text: _of_root(it, "call_method", text),
    "module": lambda it, text: _of_root(it, "call_module", text),
    "attribute": lambda it, text: _of_root(it, "get_attr", text),
    "an attribute that is there": _attribute,
    "a child that is there": _child,
    "target, set later": lambda it, text: setattr(it.x, "target", text),
    "keyword": _keyword,
    "constant": lambda it, text: it.call(text),
    "bytes": lambda it, text: it.call(text.encode()),
    "in a container": lambda it, text: it.call([(text, {text: text})]),
    "in a slice": lambda it, text: it.call(slice(text, None, text)),
    "default": _default,
    "type as text": _typed,
    "class as type": lambda it, text: _typed(it, _class(text)),
    "class as constant": lambda it, text: it.call(_class(text)),
    "function": _function,
    "member of an enum": _member,
    "named tuple": _tuple,
    "object": lambda it, text: it.call(Armed(text)),
    "text of a class": lambda it, text: it.call(ArmedText(text)),
    "names of a pytree": _pytree,
    "class of the module": lambda it, text: setattr(it, "class_name", text),
    "module in the folder": lambda it, text: setattr(it, "module_name", text),
    "stack trace": lambda it, text: it.call().meta.update(stack_trace=text),
    "note": lambda it, text: it.call().meta.update(
        nn_module_stack={text: (text, text)}, desc=text, source_fn=text
    ),
}

VALUES = {"object", "text of a class", "type as text"}
"""Places of objects: printing a graph shows a constant as `str` does."""

PRINTING = {"printed", "printed as a table", "printed to be read", "checked"}
"""What prints nodes, or quotes them in an error."""


# -- what is done with a graph ---------------------------------------------

Step: TypeAlias = Callable[[Hostile, Lib], object]


def _run(it: Hostile, gm: Lib) -> None:
    found = gm(1)
    known = [value for value in it.expected if value is not None]
    if len(known) == len(it.expected) and list(found) != known:
        raise WrongResult(f"{list(found)!r} and not {known!r}")


def _pickled(it: Hostile, gm: Lib) -> None:
    # Objects of classes that no module has: pickle itself says no.
    _run(it, pickle.loads(pickle.dumps(gm)))


def _written(it: Hostile, gm: Lib) -> None:
    with tempfile.TemporaryDirectory() as folder:
        inside = Path(folder) / "a" / "b"
        gm.to_folder(inside, it.module_name)
        around = {path.name for path in Path(folder).rglob("*")}
        spec = importlib.util.spec_from_file_location(
            "written", inside / "module.py"
        )
        assert spec is not None
        assert spec.loader is not None
        assert around >= {"a", "b", "module.py"}
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


STEPS: dict[str, Step] = {
    "printed": lambda it, gm: str(it.graph),
    "printed as a table": lambda it, gm: it.graph.print_tabular(),
    "checked": lambda it, gm: it.graph.lint(),
    "printed to be read": lambda it, gm: gm.print_readable(print_output=False),
    "run": _run,
    "interpreted": lambda it, gm: it.lib.Interpreter(gm).run(1),
    "copied": lambda it, gm: _run(it, copy.deepcopy(gm)),
    "compiled again": lambda it, gm: gm.recompile(),
    "pickled": _pickled,
    "written to a folder": _written,
}


class WrongResult(Exception):
    """A program gave something else than it was made to give."""


def tried(lib: Lib, hostile: list[tuple[str, str]]) -> str:
    """What is wrong after all has been done with a graph, if anything."""
    FIRED.clear()
    it = Hostile(lib, graph := lib.Graph(), graph.placeholder("x"))
    said = ""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.suppress(Exception):
            for place, text in hostile:
                PLACES[place](it, text)
        with contextlib.suppress(Exception):
            said = _all_done(it, {place for place, _ in hostile})
    ran = f"it ran {FIRED} when made or compiled" if FIRED else ""
    return said or ran


def _all_done(it: Hostile, places: set[str]) -> str:
    """Output, compile, and each step; what is wrong."""
    try:
        it.graph.output(it.results)
        gm = it.lib.GraphModule(it.root, it.graph, it.class_name)
    except SyntaxError as error:
        return f"compiling is a SyntaxError: {error}"
    for name, step in STEPS.items():
        if name in PRINTING and places & VALUES:
            continue
        try:
            step(it, gm)
        except (SyntaxError, WrongResult) as error:
            return f"{name}: {type(error).__name__}: {error}"
        except Exception:
            pass  # it said no
        if FIRED:
            return f"{name}: it ran {FIRED}"
    return ""


def run(seed: int, cases: int) -> Iterator[Outcome]:
    """Each text in each place, in random order; then two at a time."""
    rng = random.Random(seed)
    single = [[(place, text)] for place in PLACES for text in TEXTS]
    rng.shuffle(single)
    for number in range(cases):
        hostile = single[number] if number < len(single) else []
        while len(hostile) < 1 + (number >= len(single)):
            hostile.append((rng.choice(list(PLACES)), rng.choice(TEXTS)))
        ours, theirs = tried(fx, hostile), tried(torch.fx, hostile)
        yield Outcome(repr(hostile), ours, theirs)


PART = Part(
    "hostile",
    "graphs whose names, targets, keywords, constants, types and notes are "
    "texts that would run code: printed, compiled, run, copied, pickled, "
    "written",
    run,
    share=200,
    long=5_000,
    plants=(
        Plant(
            "fx/codegen/argument_text.py",
            "if kind in _BY_REPR:",
            "if isinstance(value, tuple(_BY_REPR)):",
            "an object of a user's class is written as its repr",
        ),
        Plant(
            "fx/codegen/emit.py",
            "        if is_attribute_name(name):",
            "        if name:",
            "an attribute is written as it is called",
        ),
    ),
)
