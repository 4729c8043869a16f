"""Traced graphs that are copied, run in other ways, and given other signatures.

A program takes tensors, options and nested values, asks about them, and returns
something nested.  `fx.trace` records it, and then something is done with the
graph: it goes into another graph, through an Interpreter, to torch.fx, into a
file; placeholders change places, are erased and added; outputs are others.  The
result is called with inputs that satisfy the guards and with ones that do not,
and must give what the program gives, or an error.
"""

from __future__ import annotations

import contextlib
import copy
import io
import operator
import pickle
import random
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import torch
from torch.fx.passes.split_module import split_module as torch_split
from torch.utils import _pytree as pytree

import fx
from fx.codegen.codegen import CodeGen
from fx.passes.split_module import split_module
from tests.reliability.part import Outcome, Part, Plant
from tests.reliability.traced import same

AnyValue: TypeAlias = Any
Inputs: TypeAlias = dict[str, Any]
Call: TypeAlias = Callable[[Inputs], Any]


class Pair(NamedTuple):
    """A result of two."""

    first: AnyValue
    second: AnyValue


TENSORS: Final = {
    "x": ["x", "x + 1"],
    "y": ["y", "x * y"],
    "z": ["z", "z - x"],
    "more": ["more[0]", "sum(more)"],
    "held": ["held['t']", "held['t'] * x"],
}
ASKED: Final = {
    "x": ["x.shape[0] > 2", "x.dtype == torch.float32", "x.requires_grad"],
    "y": ["x is y", "x.shape[0] == y.shape[0]", "len(y) == 3"],
    "flag": ["flag", "not flag"],
    "n": ["n > 2", "n == 3"],
    "more": ["len(more) > 1", "more[0] is x", "x.shape == more[0].shape"],
    "held": ["held['k'] == 2", "held['t'] is x"],
}
"""What a program computes and asks, by the parameter that this needs."""

RETURNS: Final = ("v", "[v, w]", "{'a': v, 'b': [w]}", "Pair(v, w)", "(x, v)")
OPTIONS: Final = {"flag": "True", "n": "3", "z": "None"}
FIXED: Final = ("flag", "n")


def text_of(rng: random.Random) -> str:
    """A program."""
    names = ["x", *(n for n in ("y", "more", "held") if rng.random() < 0.45)]
    last = [n for n in OPTIONS if rng.random() < 0.4]
    star = ["*"] if last and rng.random() < 0.3 else []
    given = [*names, *star, *(f"{n}={OPTIONS[n]}" for n in last)]
    names += last
    tensors = [t for n in names for t in TENSORS.get(n, ())]
    asked = [a for n in names for a in ASKED.get(n, ())]
    lines = [
        f"{v} = {rng.choice(tensors)} if {rng.choice(asked)} else "
        f"{rng.choice(tensors)} * 3"
        for v in "vw"
    ]
    returned = rng.choice(RETURNS)
    if "held" in names and rng.random() < 0.4:
        lines.append("held['t'] = held['t'] + 1")
        returned = rng.choice((returned, "(v, held)"))
    body = "\n    ".join([*lines, f"return {returned}"])
    return f"def program({', '.join(given)}):\n    {body}"


def inputs(rng: random.Random, names: list[str]) -> Inputs:
    """Inputs of a program, most often without surprises."""
    shape = rng.choice(((3, 2), (3, 2), (4, 2), (2, 2), (1, 2)))

    def tensor() -> torch.Tensor:
        kind = torch.float64 if rng.random() < 0.05 else torch.float32
        made = torch.arange(shape[0] * 2, dtype=kind).reshape(shape)
        return made.requires_grad_() if rng.random() < 0.05 else made + 1

    x = tensor()
    made: Inputs = {
        "x": x,
        "y": x if rng.random() < 0.2 else tensor(),
        "z": tensor(),
        "more": [tensor() for _ in range(rng.choice((1, 1, 1, 2)))],
        "held": {"t": tensor(), "k": rng.choice((2, 2, 2, 3))},
        "flag": rng.random() < 0.6,
        "n": rng.choice((3, 3, 2, 4, True)),
    }
    return {n: made[n] for n in names if n not in FIXED or rng.random() < 0.8}


def flat(given: Inputs) -> Inputs:
    """The tensors of inputs, by placeholder."""
    named: Inputs = {}
    for name, value in given.items():
        if name == "more":
            named |= {f"more_{i}": t for i, t in enumerate(value)}
        elif name not in FIXED:
            named["held_t" if name == "held" else name] = (
                value["t"] if name == "held" else value
            )
    return named


class Subject:
    """A program, its example, and its graph."""

    def __init__(self, rng: random.Random) -> None:
        """Make one that can be traced."""
        self.rng = rng
        self.text = text_of(rng)
        scope: Inputs = {"torch": torch, "Pair": Pair}
        exec(self.text, scope)
        self.program: AnyValue = scope["program"]
        code = scope["program"].__code__
        count = code.co_argcount + code.co_kwonlyargcount
        self.names = [*code.co_varnames[:count]]
        self.example = inputs(rng, self.names)
        self.gm: AnyValue = fx.trace(self.program, **copied(self.example))

    def eager(self, given: Inputs) -> AnyValue:
        """What the program gives."""
        return self.program(**given)

    def as_traced(self, given: Inputs) -> AnyValue:
        """What it gives with the options of the example."""
        fixed = {n: v for n, v in self.example.items() if n in FIXED}
        tensors = {n: v for n, v in given.items() if n not in FIXED}
        if "held" in tensors:
            tensors["held"]["k"] = self.example["held"]["k"]
        return self.program(**tensors, **fixed)


def copied(given: Inputs) -> Inputs:
    """The inputs, with new tensors; the same ones stay the same."""
    return copy.deepcopy(given)


# -- what is done with a graph -------------------------------------------------
# Each gives a call, and what the program does that it has to do.

Done: TypeAlias = tuple[Call, Call]


def moved(change: Callable[[AnyValue], AnyValue]) -> Callable[[Subject], Done]:
    """Another module that does the same."""

    def done(s: Subject) -> Done:
        gm = change(s.gm)
        return lambda given: gm(**given), s.eager

    return done


def saved(gm: AnyValue) -> AnyValue:
    """Through a file."""
    with tempfile.TemporaryDirectory() as folder:
        fx.save(gm, Path(folder) / "gm")
        return fx.load(Path(folder) / "gm")


def cleaned(gm: AnyValue) -> AnyValue:
    """Without dead code."""
    gm.graph.eliminate_dead_code()
    gm.recompile()
    return gm


def divided(split: AnyValue, gm: AnyValue) -> AnyValue:
    """In two parts."""
    place = {node: i for i, node in enumerate(gm.graph.nodes)}
    return split(gm, gm, lambda node: int(place[node] > len(place) // 2))


def interpreted(s: Subject) -> Done:
    """By position, as the program takes them."""
    run = fx.Interpreter(s.gm).run
    order = s.names

    def call(given: Inputs) -> AnyValue:
        args = [given[n] for n in order if n in given]
        if any(n in given for n in order[len(args) :]):
            raise fx.GuardError("one in the middle is left out")
        return run(*args)

    return call, s.eager


def by_name(s: Subject) -> Done:
    """By placeholder: what has none is left out."""

    def call(given: Inputs) -> AnyValue:
        return fx.Interpreter(s.gm).run(**flat(given))

    def expected(given: Inputs) -> AnyValue:
        if "held" in given:
            given["held"]["k"] = s.example["held"]["k"]
        return s.program(**{n: given[n] for n in given if n not in FIXED})

    return call, expected


def flat_run(s: Subject) -> Done:
    """The tensors alone, in the order of the placeholders."""
    places = [str(n.target) for n in s.gm.graph.find_nodes(op="placeholder")]
    plain = s.rng.random() < 0.5

    def call(given: Inputs) -> AnyValue:
        named = flat(given)
        if named.keys() != {*places}:
            raise fx.GuardError("others than the placeholders")
        values = [named.pop(place) for place in places]
        if plain:
            return fx.Interpreter(s.gm).boxed_run(values)
        ran = fx.Interpreter(s.gm).run(*values, enable_io_processing=False)
        return [*pytree.tree_leaves(ran)]

    def expected(given: Inputs) -> AnyValue:
        result = s.as_traced(given)
        return result if plain else pytree.tree_leaves(result)

    return call, expected if plain or not is_changing(s) else refused


def is_changing(s: Subject) -> bool:
    """Whether a program changes a container: its graph gives more values."""
    return "held['t'] =" in s.text or "held" in s.text.rpartition("return")[2]


def refused(given: Inputs) -> AnyValue:
    """Nothing to compare with."""
    raise fx.GuardError


def by_placeholder(s: Subject, gm: AnyValue) -> Done:
    """Another module, whose parameters are the placeholders."""
    leaves = pytree.tree_leaves
    return (
        lambda given: leaves(gm(**flat(given))),
        refused if is_changing(s) else lambda given: leaves(s.as_traced(given)),
    )


def graph_copied(s: Subject) -> Done:
    """In a new graph."""
    new = fx.Graph()
    new.output(new.graph_copy(s.gm.graph, {}))
    return by_placeholder(s, fx.GraphModule(s.gm, new))


def torch_divided(s: Subject) -> Done:
    """In two parts by torch, which forgets code generators."""
    return by_placeholder(s, divided(torch_split, fx.to_torch(s.gm)))


def swapped(s: Subject) -> Done:
    """The last placeholder becomes the first."""
    places = s.gm.graph.find_nodes(op="placeholder")
    places[0].prepend(places[-1])
    if s.rng.random() < 0.5:
        plain = type(s.gm.graph._codegen) is CodeGen
        return by_name(s) if plain else interpreted(s)
    return moved(checked)(s)


def checked(gm: AnyValue) -> AnyValue:
    """After an edit."""
    gm.graph.lint()
    gm.recompile()
    return gm


def erased(s: Subject) -> Done:
    """Inputs that are only checked are gone."""
    gone = []
    for place in s.gm.graph.find_nodes(op="placeholder"):
        if all("_guards" in str(user.target) for user in place.users):
            s.gm.graph.erase_node(place)
            gone.append(str(place.target))
    gm = checked(s.gm)
    fixed = {name: s.example[name] for name in gone if name in s.names}

    def call(given: Inputs) -> AnyValue:
        return gm(**{n: v for n, v in given.items() if n not in fixed})

    def expected(given: Inputs) -> AnyValue:
        new = {n: v for n, v in given.items() if n not in fixed}
        for name, value in fixed.items():
            same_one = value is s.example["x"] and "x" not in fixed
            new[name] = given["x"] if same_one else value
        return s.program(**new)

    return call, expected


def scaled(s: Subject) -> Done:
    """The recipe "Change the signature"."""
    graph = s.gm.graph
    places = graph.find_nodes(op="placeholder")
    with graph.inserting_after(s.rng.choice((places[0], places[-1]))):
        scale = graph.placeholder("scale", default_value=1.0)
    with graph.inserting_before(next(n for n in graph.nodes if n.op[0] != "p")):
        product = graph.call_function(operator.mul, (places[0], scale))
    places[0].replace_all_uses_with(product, lambda user: user is not product)
    gm = checked(s.gm)

    def expected(given: Inputs) -> AnyValue:
        return s.program(**{**given, "x": given["x"] * 2.0})

    return lambda given: gm(**given, scale=2.0), expected


def reduced(s: Subject) -> Done:
    """One value is returned, with the verb for that or without."""
    output = s.gm.graph.output_node()
    (value, *_) = pytree.tree_leaves(output.args[0]) or [None]
    returns_tuple = s.rng.random() < 0.5
    if returns_tuple:
        fx.set_outputs(s.gm.graph, {"only": Pair(value, 3)})
    else:
        output.args = ((value,),)
    gm = checked(s.gm)

    def expected(given: Inputs) -> AnyValue:
        first = pytree.tree_leaves(s.eager(given))[0]
        return {"only": Pair(first, 3)} if returns_tuple else (first,)

    return lambda given: gm(**given), expected


WAYS: Final[dict[str, Callable[[Subject], Done]]] = {
    "as it is": moved(lambda gm: gm),
    "deepcopy": moved(copy.deepcopy),
    "pickle": moved(lambda gm: pickle.loads(pickle.dumps(gm))),
    "file": moved(saved),
    "dead code": moved(cleaned),
    "dead code, torch": moved(lambda gm: cleaned(fx.to_torch(gm))),
    "Transformer": moved(lambda gm: fx.Transformer(gm).transform()),
    "there and back": moved(lambda gm: fx.from_torch(fx.to_torch(gm))),
    "traced again": moved(fx.symbolic_trace),
    "split": moved(lambda gm: divided(split_module, gm)),
    "split, torch": torch_divided,
    **{"Interpreter": interpreted, "by name": by_name, "flat": flat_run},
    **{"graph_copy": graph_copied, "swapped": swapped, "erased": erased},
    **{"added": scaled, "outputs": reduced},
}
COUNTED: Final[Counter[str]] = Counter()
"""How many calls of which way were right on the example, and refused."""

REFUSALS: Final = (fx.GuardError, fx.TraceError, RuntimeError, TypeError)


def wrong(call: Call, expected: Call, given: Inputs, way: str) -> str:
    """What a call does wrong, "" if nothing."""
    ours, theirs = copied(given), copied(given)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            got = call(ours)
    except REFUSALS as error:
        COUNTED[f"{way}: refused {str(error)[:30]}"] += 1
        return ""
    except Exception as error:
        got = error
    try:
        want = expected(theirs)
    except fx.GuardError:
        return ""
    except Exception as error:
        raised = isinstance(got, Exception)
        return "" if raised else f"gives {got}, the program {error!r}"
    COUNTED[f"{way}: right"] += 1
    if isinstance(want, Pair | tuple | list) and type(want) is type(got):
        want, got = [*want], [*got]
    if "Pair(" in repr(want):
        want, got = (pytree.tree_leaves(each) for each in (want, got))
    return "" if same(want, got) else f"{got} is {want}"


def judged(rng: random.Random, way: str) -> Iterator[Outcome]:
    """A program whose graph goes this way, called some times."""
    try:
        s = Subject(rng)
    except (fx.TraceError, TypeError):
        return
    except RuntimeError:  # sizes that do not fit
        return
    case = f"{s.text}\n# traced with {s.example}\n# {way}"
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            call, expected = WAYS[way](s)
    except (*REFUSALS, ValueError) as error:
        COUNTED[f"{way}: not done, {str(error)[:40]}"] += 1
        yield Outcome(case)
        return
    yield Outcome(case, wrong(call, expected, s.example, f"{way}, example"))
    for _ in range(3):
        given = inputs(rng, s.names)
        text = f"{case}\n# called with {given}"
        yield Outcome(text, wrong(call, expected, given, way))


def run(seed: int, cases: int) -> Iterator[Outcome]:
    """Judge programs until there were so many calls."""
    warnings.simplefilter("ignore")
    rng, count = random.Random(seed), 0
    while True:
        for way in WAYS:
            for outcome in judged(rng, way):
                count += 1
                yield outcome
        if count >= cases:
            return


PART = Part(
    "rerouted",
    "graphs by fx.trace that are copied, run in other ways, and edited",
    run,
    share=150,
    long=6_000,
    plants=(
        Plant(
            "fx/extra/example_trace/guards.py",
            "    _is_impure = True",
            "    _is_impure = False",
            "dead code elimination drops the guards",
        ),
        Plant(
            "fx/extra/example_trace/guarded_code.py",
            "        if fit and names[: len(known)] == known:",
            "        if fit:",
            "placeholders that change places are bound by position",
        ),
        Plant(
            "fx/extra/example_trace/guarded_code.py",
            "            if not parameter.has_default or default != part:",
            "            if False:",
            "an option that is left out counts as that of the example",
        ),
    ),
)
