"""Whether `fx.save` keeps what it is given, and what was there before.

Half of the cases save into a folder where other people's files lie: files,
folders, links and pipes of the names that `fx.save` uses or of others, a graph
that was saved before and changed since, and what another program puts there
while the graph is written.  Whatever `fx.save` did not write must still be
there afterwards.

The other half save modules with odd names and odd values in every place.  Each
must be refused when it is saved, or be loaded again with the same code, names,
notes and results.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sys
import tempfile
import types
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

import torch
from torch import nn
from torch.utils import _pytree as pytree

import fx
from tests.reliability.part import Outcome, Part, Plant

AnyValue: TypeAlias = Any

TEXT, WEIGHTS = "graph.jsonl", "weights.pt"
X = torch.ones(2, 2)


# -- other people's files ----------------------------------------------------


def small(number: int) -> fx.GraphModule:
    """A graph module to save; those of different numbers differ."""
    root, graph = nn.Module(), fx.Graph()
    root.scale = nn.Parameter(torch.full((2,), float(number)))
    args = (graph.placeholder("x"), graph.get_attr("scale"))
    graph.output(graph.call_function(torch.mul, args))
    return fx.GraphModule(root, graph)


Thing: TypeAlias = Callable[[Path, Path], object]
"""Puts something at a path; the second is a folder for what links lead to."""


def _a_folder(path: Path, beside: Path) -> None:
    path.mkdir()
    (path / "mine").write_text("weeks of training")


def _a_link(path: Path, beside: Path) -> None:
    (beside / "store").write_text("what a link leads to")
    path.symlink_to(beside / "store")


THINGS: Final[dict[str, Thing]] = {
    "text": lambda path, beside: path.write_text("mine"),
    "empty": lambda path, beside: path.write_text(""),
    "header": lambda path, beside: path.write_text(
        '{"format": "fx graph", "version": 2}\n{"module": ""}\n'
    ),
    "tensors": lambda path, beside: torch.save({"mine": X}, path),
    "state": lambda path, beside: torch.save(small(7).state_dict(), path),
    "folder": _a_folder,
    "empty folder": lambda path, beside: path.mkdir(),
    "link": _a_link,
    "dead link": lambda path, beside: path.symlink_to("nowhere"),
    "pipe": lambda path, beside: os.mkfifo(path),
}
NAMES: Final = (TEXT, WEIGHTS, "notes.txt", "notes.pt", "GRAPH.JSONL")


def state_of(path: Path) -> AnyValue:
    """What is at a path, and what is in it."""
    if path.is_symlink():
        return "link", os.readlink(path)
    if path.is_dir():
        return {each.name: state_of(each) for each in path.iterdir()}
    return path.read_bytes() if path.is_file() else "pipe"


_SAVED: Final = ("saved", "added", "changed", "tuned", "swapped")
"""What a graph is that lies in the folder."""


def fill(rng: random.Random, folder: Path, beside: Path) -> str:
    """Put things into a folder, or make it one; says which."""
    kind = rng.choice(("things", "things", "file", *_SAVED))
    said = [kind]
    if kind == "file":
        folder.write_text("mine")
        return kind
    if kind in _SAVED:
        fx.save(small(1), folder)
    else:
        folder.mkdir()
    if kind == "changed":
        file = folder / TEXT
        file.write_text(file.read_text().replace("scale", "scalf"))
    if kind == "tuned":
        torch.save({"scale": nn.Parameter(torch.zeros(2))}, folder / WEIGHTS)
    if kind == "swapped":
        name = rng.choice((TEXT, WEIGHTS))
        (folder / name).unlink()
        said += put(rng, folder / name, beside)
    for _ in range({"things": rng.randrange(4), "added": 1}.get(kind, 0)):
        name = rng.choice(NAMES[2:] if kind == "added" else NAMES)
        if not os.path.lexists(folder / name):
            said += put(rng, folder / name, beside)
    return " ".join(said)


def put(rng: random.Random, path: Path, beside: Path) -> list[str]:
    """Put anything at a path."""
    thing = rng.choice([*THINGS])
    THINGS[thing](path, beside)
    return [f"{thing} at {path.name}"]


class Meanwhile:
    """Another program, which writes a file while something is saved."""

    def __init__(self) -> None:
        self.event = ""
        self.file: Path | None = None

    def audit(self, event: str, args: tuple[object, ...]) -> None:
        """Write the file when the event is seen the first time."""
        if self.file is None or event != self.event:
            return
        place, file = Path(str(args[0])), self.file
        if event == "os.rename" and place != file.parent:
            return
        if event == "os.remove":  # it has the folder open that is removed
            if place.parent.name != "old":
                return
            file = place.with_name(file.name)
        self.file = None
        with contextlib.suppress(OSError):
            file.write_text("meanwhile")


@cache
def meanwhile() -> Meanwhile:
    """The one of this process, since an audit hook cannot be removed."""
    one = Meanwhile()
    sys.addaudithook(one.audit)
    return one


def kept(rng: random.Random, place: Path) -> tuple[str, str]:
    """Save over something; what was there, and what is wrong then."""
    folder, beside = place / "gm", place / "beside"
    beside.mkdir()
    said = fill(rng, folder, beside)
    before, stored = state_of(folder), state_of(beside)
    is_ours = said == "saved"
    other, now = meanwhile(), ""
    if isinstance(before, dict) and rng.random() < 0.3:
        other.event = rng.choice(("tempfile.mkdtemp", "os.rename", "os.remove"))
        names = NAMES[2:] if other.event == "os.remove" else (*NAMES, "new")
        other.file = folder / rng.choice(names)
        is_ours = is_ours and other.file.name not in (TEXT, WEIGHTS)
        now = f"{other.event} {other.file.name}"
    wrote = other.file
    try:
        fx.save(small(2), folder)
        saved = True
    except OSError:
        saved = False
    finally:
        done, other.file = other.file is None, None
    wrong = [] if state_of(beside) == stored else ["a link was followed"]
    if now and done and wrote is not None and not _is_somewhere(place, wrote):
        wrong.append(f"what another program wrote is gone, {now}")
    if saved:
        was_free = is_ours or before == {}
        wrong += [] if was_free else [f"{sorted(before)} were replaced"]
        if float(fx.load(folder)(X)[0, 0]) != 2:
            wrong.append("another graph was saved")
    elif not now and state_of(folder) != before:
        wrong.append("it was refused, and the folder is another")
    elif is_ours and not now:
        wrong.append("a graph that was saved there is not replaced")
    return f"{said} {now}", "; ".join(wrong)


def _is_somewhere(place: Path, file: Path) -> bool:
    """Whether a file that was written below a place is there, wherever."""
    found = [each for each in place.rglob(file.name) if each.is_file()]
    return any(each.read_bytes() == b"meanwhile" for each in found)


# -- odd names and values ----------------------------------------------------

ODD_NAMES: Final = (
    *(
        "x",
        "class",
        "len",
        "a b",
        "",
        "1x",
        "é",
        "self",
        "torch",
        "a-b",
        "None",
    ),
    *("__scale", "__scale__", "__class__", "__deepcopy__", "__dict__", "_"),
    *("_graph", "forward", "meta", "training", "weight", "_in_spec", "code"),
    *("a\nb", "\ud800", "nan", "fx_pytree", "add_1", "0", "__x_", "_modules"),
    *("_parameters", "in_features", "__overloads__", "graph", "node", "bias"),
)
OWN: Final = {*vars(fx.symbolic_trace(nn.ReLU())), "__overloads__"}
"""What nobody can give another meaning without breaking a module; and a note of
torch.jit.script, which is left out."""
Pair: Final = namedtuple("Pair", ["a", "b"])


class Own(int):
    """A number of a user's class."""


def values() -> list[AnyValue]:
    """Values of all kinds."""
    base = torch.arange(4.0).reshape(2, 2)
    return [
        *(
            None,
            True,
            -0.0,
            float("nan"),
            10**50,
            1 + 0j,
            "a\nb",
            "\ud800",
            b"x",
        ),
        *(..., slice(1, None), range(3), torch.float16, torch.strided, int, X),
        *(torch.device("meta"), torch.Size([1, 2]), torch.max(base, 0)),
        *(torch.return_types.sort((X, 2 * X)), OrderedDict(b=1, a=2), {"b": 1}),
        *({1: 2}, {1, 2}, frozenset(("a", 1)), [[]], (), ((1,), [2]), {"a": X}),
        *(list[int], int | None, Own(1), Pair(1, 2), defaultdict(list, a=[1])),
        *(deque([1]), types.SimpleNamespace(a=1), print, nn.ReLU(), 10**5000),
        *(nn.Parameter(base), base.to_sparse(), base[0].expand(3, 2), base.t()),
        *(
            torch.ones(2, dtype=torch.cfloat).conj(),
            torch.ones(2, device="meta"),
        ),
        *(base.as_subclass(nn.Parameter), nn.Parameter(base, False), X[:0]),
        *(
            [1] * 50,
            bytearray(b"x"),
            torch.Generator(),
            torch.finfo(torch.half),
        ),
    ]


def odd(rng: random.Random) -> fx.GraphModule:
    """A graph module with odd names and values.

    Raises:
        Exception: fx or torch refuses it.
    """

    def name() -> str:
        return rng.choice(ODD_NAMES)

    def value() -> AnyValue:
        return rng.choice(values())

    root, graph = nn.Module(), fx.Graph()
    kinds: list[AnyValue] = [
        nn.Linear(2, 2),
        nn.Module(),
        nn.ReLU(),
        nn.LSTM(2, 2),
    ]
    child = rng.choice(kinds)
    root.add_module("child", child)
    for _ in range(rng.randrange(3)):
        holder = rng.choice((root, child))
        place = rng.choice(("_parameters", "_buffers", "_modules", ""))
        made: AnyValue = {"_parameters": nn.Parameter(X), "_buffers": X * 2}
        made["_modules"] = rng.choice((nn.ReLU(), nn.Linear(2, 2)))
        table = vars(holder)[place] if place else vars(holder)
        if place or (key := name()) not in OWN:
            table[name() if place else key] = made.get(place, value())
    x = (
        graph.placeholder("x", default_value=value())
        if rng.random() < 0.3
        else (graph.placeholder(rng.choice(("x", "__x", "self_", "é", "len"))))
    )
    nodes = [x, graph.call_function(torch.relu, (x,))]
    held: list[AnyValue] = [nodes[-1], value(), [value()]]
    for path in (*vars(root)["_buffers"], *vars(child)["_parameters"]):
        prefix = "" if path in vars(root)["_buffers"] else "child."
        with contextlib.suppress(Exception):
            held.append(graph.get_attr(f"{prefix}{path}"))
    graph.output(held)
    for node in rng.sample(nodes, rng.randrange(2)):
        node.name = name()
    if rng.random() < 0.5:
        nodes[-1].meta[name()] = value()
    gm = fx.GraphModule(root, graph)
    gm.add_module("child", child)
    if rng.random() < 0.5 and (key := name()) not in OWN:
        vars(gm)[key] = value()
    return gm


def nested(rng: random.Random) -> fx.GraphModule:
    """A graph module whose inputs and results are nested.

    Raises:
        Exception: fx or torch refuses it.
    """
    shape, result = rng.choice(values()), rng.choice(values())
    trees = {"x": pytree.tree_map(lambda _: fx.PH, shape)}

    def f(x: AnyValue) -> AnyValue:
        first = pytree.tree_leaves(x)[0]
        return pytree.tree_map(lambda _: first, result)

    return fx.symbolic_trace(f, trees)


def alike(one: AnyValue, other: AnyValue) -> bool:
    """Whether two values are of the same types and say the same."""
    return type(one) is type(other) and (
        len(one) == len(other) and all(map(alike, one, other))
        if isinstance(one, tuple | list)
        else repr(one) == repr(other)
    )


def survives(rng: random.Random, place: Path) -> tuple[str, str]:
    """Save something odd; what is wrong with what is loaded."""
    try:
        gm = rng.choice((odd, odd, nested))(rng)
        said, expected = f"{gm.graph}"[:400], gm(X)
    except Exception:
        return "", ""
    try:
        fx.save(gm, place / "gm")
    except (ValueError, RuntimeError, OverflowError):
        return said, ""
    except Exception as error:
        return said, f"save raises {type(error).__name__}: {error}"
    try:
        back = fx.load(place / "gm", gm)
        got = back(X)
    except Exception as error:
        return said, f"saved, and not loaded: {error}"
    wrong = [] if alike(got, expected) else [f"{got} instead of {expected}"]
    names = [node.name for node in back.graph.nodes]
    if back.code != gm.code or names != [node.name for node in gm.graph.nodes]:
        wrong.append(f"other code: {back.code}")
    for one, other in zip(back.modules(), gm.modules(), strict=True):
        ours, theirs = vars(one), vars(other)
        own = [
            name for name in theirs if name not in OWN and "_flat" not in name
        ]
        wrong += [
            f"the attribute {name!r} is another"
            for name in own
            if name not in ours or not alike(ours[name], theirs[name])
        ]
    if [*back.state_dict()] != [*gm.state_dict()]:
        wrong.append(f"other tensors: {[*back.state_dict()]}")
    return said, "; ".join(wrong)


# -- the part ----------------------------------------------------------------


def run(seed: int, cases: int) -> Iterator[Outcome]:
    """Save so many modules, or over so many folders."""
    for number in range(cases):
        rng = random.Random(seed * 1_000_000 + number)
        with tempfile.TemporaryDirectory() as place:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                way = kept if number % 2 else survives
                said, wrong = way(rng, Path(place).resolve())
            shutil.rmtree(Path(place, "gm"), ignore_errors=True)
        yield Outcome(f"{number}: {said}", wrong[:400])


FILES = "fx/extra/saving/files.py"

PART = Part(
    name="saving",
    compares="what `fx.save` was given with what `fx.load` returns, and a "
    "folder before and after",
    run=run,
    share=300,
    long=20_000,
    plants=(
        Plant(
            FILES,
            "if os.listdir(folder) and not _is_unchanged(folder):",
            "if not {*os.listdir(folder)} <= {TEXT, WEIGHTS}:",
            "other people's files are known by their names alone",
        ),
        Plant(
            FILES,
            "            _check_known(old, folder)\n",
            "",
            "what comes into the folder while the graph is written is removed",
        ),
        Plant(
            FILES,
            "        folder.rmdir()",
            "        shutil.rmtree(folder)",
            "a folder is removed with whatever is in it",
        ),
        Plant(
            FILES,
            "{TEXT, WEIGHTS}:\n        return False\n",
            "{TEXT, WEIGHTS}:\n        return False\n    return True\n",
            "a link or a folder of the name is taken for a file of fx",
        ),
        Plant(
            "fx/extra/saving/saved_graph.py",
            "    for line in lines:\n        try:",
            "    return\n    for line in lines:\n        try:",
            "what is written is not tried",
        ),
        Plant(
            "fx/extra/saving/values.py",
            "        if kind in _PARTS:\n",
            "        if kind is torch.Size:\n            kind = tuple\n"
            "        if kind in _PARTS:\n",
            "a torch.Size comes back as a tuple",
        ),
        Plant(
            "fx/extra/saving/saved_graph.py",
            "                node.name = self._names[node]\n",
            "                pass\n",
            "the name of a node is not the one it had",
        ),
    ),
)
