"""Whether `fx.load` runs or returns anything harmful, whatever a file says.

Each case is a saved graph with something hostile put in: in the text, such as
a target, a path, a type, a name or a key; or in the file of the weights, such
as a pickle that calls a function.  A function named `canary` is put where code
or a name in the file could find it.  Loading must raise a LoadError that names
the file, or return a module that never calls the canary: not when it is
printed, compiled, copied, or run.
"""

from __future__ import annotations

import builtins
import contextlib
import copy
import io
import json
import operator
import os
import pickle
import random
import resource
import shutil
import sys
import tempfile
import threading
import typing
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, no_type_check

import torch
from torch import nn

import fx
from tests.reliability.part import Outcome, Part, Plant

Data: TypeAlias = Any

FILES = TEXT, WEIGHTS = "graph.jsonl", "weights.pt"
X = torch.ones(2, 4)


# -- noticing ----------------------------------------------------------------


@dataclass
class Watch:
    """What happened while it was on."""

    on: bool = False
    seen: list[str] = field(default_factory=list)

    def fire(self, *args: object, **kwargs: object) -> float:
        """The canary."""
        self.seen.append("the canary was called")
        return 1.0

    def audit(self, event: str, args: tuple[object, ...]) -> None:
        """Note what no load has a reason to do."""
        if self.on and event.startswith(_SUSPICIOUS):
            self.seen.append(f"{event}{args!r:.80}")


_SUSPICIOUS = (
    *("os.system", "os.exec", "os.posix_spawn", "subprocess.", "socket."),
    *("ctypes.", "pickle.find_class", "os.remove", "os.rename", "shutil."),
    *("code.__new__", "webbrowser.", "urllib."),
)


@cache
def watch() -> Watch:
    """The one of this process, since an audit hook cannot be removed."""
    one = Watch()
    sys.addaudithook(one.audit)
    return one


class Fires:
    """A pickle of it calls the canary."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return builtins.eval, ("canary()",)


@contextlib.contextmanager
def canaries() -> Iterator[Watch]:
    """The canary, in every place that a name or text could lead to."""
    seen = watch()
    seen.seen.clear()

    def canary(*args: object, **kwargs: object) -> float:
        return seen.fire()

    class CanaryModule(nn.Module):
        def __init__(self, *args: object) -> None:
            seen.fire()

    holders: list[Data] = [builtins, torch, torch.hub, torch.Tensor, operator]
    holders += [nn.Module, torch.nn.functional, torch.ops.aten]
    for holder in holders:
        holder.canary = canary
    nn.CanaryModule = CanaryModule  # type: ignore[attr-defined]
    module: Data = nn.Module
    module.canary_property = property(canary)
    seen.on = True
    try:
        yield seen
    finally:
        seen.on = False
        for holder in holders:
            delattr(holder, "canary")
        del nn.CanaryModule, nn.Module.canary_property  # type: ignore[attr-defined]


# -- what is saved -----------------------------------------------------------


class Net(nn.Module):
    """Modules, tied weights, buffers, methods, attributes, constants."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(4, 4)
        self.again = nn.ModuleList([nn.Linear(4, 4, bias=False), nn.ReLU()])
        self.again[0].weight = self.first.weight
        self.scale = nn.Parameter(torch.ones(4))
        self.register_buffer("kept", torch.ones(4), persistent=False)
        self.norm = nn.BatchNorm1d(4).eval()

    @no_type_check
    def forward(self, x: torch.Tensor, scale: float = 2.0):
        x = self.norm(self.again[1](self.again[0](self.first(x))))
        x = torch.add(x, self.kept, alpha=scale).clamp(min=-1.5)
        return {"y": x.reshape(x.shape[0], -1)[:, 1:] * self.scale[1:]}


@no_type_check
def nested(x, pair):
    return [x["a"] + pair[0], (torch.ops.aten.mul.Tensor(x["a"], pair[1]),)]


@cache
def saved() -> tuple[tuple[str, bytes, tuple[Data, ...]], ...]:
    """The text and the weights of each graph, and inputs for it."""
    trees = {"x": {"a": fx.PH}, "pair": [fx.PH, fx.PH]}
    inner = fx.symbolic_trace(nn.Sequential(nn.Linear(4, 4), nn.Tanh()))
    outer = fx.Graph()
    outer.output(outer.call_module("inner", (outer.placeholder("x"),)))
    modules = (
        (fx.symbolic_trace(Net()), (X,)),
        (fx.symbolic_trace(nested, trees), ({"a": X}, [X, X])),
        (fx.GraphModule(nn.ModuleDict({"inner": inner}), outer), (X,)),
    )
    found = []
    for gm, inputs in modules:
        gm.meta["note"] = {"of": ["a", (1, None)]}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "gm")
            fx.save(gm, path)
            files = (path / TEXT).read_text(), (path / WEIGHTS).read_bytes()
        found.append((*files, inputs))
    return tuple(found)


# -- what is put in ----------------------------------------------------------

FUNCTIONS = (
    *("canary", "builtins.canary", "torch.canary", "torch.hub.canary"),
    *("operator.canary", "torch.nn.functional.canary", "torch.Tensor.canary"),
    *("torch.ops.aten.canary", "torch.ops.aten.add.canary", "builtins.eval"),
    *("torch.load", "torch.save", "torch.hub.load", "torch.from_file"),
    *("torch.ops.aten.from_file.default", "torch.ops.load_library"),
    *("builtins.exec", "builtins.__import__", "builtins.open", "os.system"),
    *("operator.attrgetter", "operator.methodcaller", "operator.call"),
    *("builtins.getattr", "builtins.setattr", "builtins.map", "builtins.vars"),
    *("functools.partial", "torch.compile", "torch.Tensor.apply_", "torch"),
    *("torch.ops", "torch.ops.aten", "torch.nn.CanaryModule", "operator.add"),
)
METHODS = (
    *("canary", "__reduce__", "__class__", "apply_", "register_hook", "tofile"),
    *("data.canary", "share_memory_", "__getattribute__", "_make_subclass"),
    *("numpy.tofile", "__init_subclass__", "clone", "storage"),
)
PATHS = (
    *("canary", "canary_property", "first.canary", "first.canary_property"),
    *("forward", "__class__", "_graph", "first.__init__", "first.forward"),
    *("first._forward_hooks", "first.weight", "", "first..weight", "a.b.c"),
    *("__dict__", "_modules", "first.weight.canary", "training", "again.0"),
)
TEXTS = (
    # The string that it opens ends where the text is pasted a second time.
    'own="""+canary()): pass\ndef g():\n    str([',
    *("canary()", "x\n    canary()", "x=canary()", "x: canary()", "*canary()"),
    *("x', canary(), '", "\\", "self", "torch", "__class__", "x;canary()", "é"),
    *("lambda: canary()", "{canary()}", "%s", "\u2028canary()", "\ud800", ""),
    *("x if canary() else y", "a" * 100_000, "__import__('canary')", "None"),
    *("list[canary()]", "[canary() for _ in 'a']", "ﬁ", "x)\ncanary()\n#"),
)
CLASSES = (
    *("torch.nn.CanaryModule", "torch.nn.Module", "torch.nn.Linear", "canary"),
    *("fx.GraphModule", "os.system", "torch.Tensor", "builtins.type", "Net"),
    *("tests.reliability.saved_files.Net", "torch.nn.LSTM", "int", "object"),
)
VALUES: tuple[Data, ...] = (
    *(
        None,
        True,
        -1,
        1.5,
        "canary()",
        [],
        {},
        [[]],
        {"a": 1},
        {"a": 1, "b": 2},
    ),
    *({"node": "missing"}, {"node": "output"}, {"node": 1}, {"node": None}),
    *(
        {"name": "os.system"},
        {"name": []},
        {"name": "torch.nn.CanaryModule"},
    ),
    *({"tensor": "missing"}, {"tensor": ["scale"]}, {"name": "torch.load"}),
    *({"name": "canary"}, {"name": "torch.float32"}, {"name": "torch"}),
    *(
        {"device": ["cpu", "a"]},
        {"tuple": {}},
        {"tuple": 3},
        {"set": [[1]]},
        {"dict": [1]},
    ),
    *({"dict": [[[], 1]]}, {"slice": [1, 2, 3, 4]}, {"range": [0, 1, 0]}),
    *(
        {"range": ["a"]},
        {"bytes": [300]},
        {"device": ["canary"]},
        {"Size": "a"},
    ),
    *({"complex": ["1", 2]}, {"name": "..."}, {"namedtuple": [1]}),
    *(
        {"generic": [{"name": "builtins.list"}, {"name": "builtins.int"}]},
        {"generic": []},
    ),
    *({"generic": [{"name": "torch.relu"}, 1]}, {"union": []}),
    *(
        {"union": [{"name": "builtins.int"}, 3]},
        {"namedtuple": [{"name": "builtins.int"}, 1]},
    ),
    *(
        {"canary": [1]},
        {"__class__": [1]},
        {"type": ["canary"]},
        {"list": "ab"},
    ),
    {"dict": [[{"node": "x"}, {"node": "x"}]]},
    {"set": [{"node": "x"}]},
    *({"name": name} for name in FUNCTIONS),
)
ATTRIBUTES = (
    *(
        "forward",
        "__class__",
        "_forward_hooks",
        "__call__",
        "_modules",
        "graph",
    ),
    *("_graph", "__dict__", "training", "__setstate__", "in_features", "_code"),
    *("weight", "__deepcopy__", "canary", "_wrapped_call", "x", "recompile"),
)

Line: TypeAlias = dict[str, Data]
Change: TypeAlias = Callable[[random.Random, list[Line]], None]


def a_line(rng: random.Random, lines: list[Line], *keys: str) -> Line:
    """A line that begins with one of the keys, or any."""
    fit = [line for line in lines if next(iter(line), "") in keys]
    return rng.choice(fit or [line for line in lines if line] or [{}])


def change_target(rng: random.Random, lines: list[Line]) -> None:
    """Another target for a node, hostile ones most often."""
    line = a_line(rng, lines, "node")
    pools = {
        "call_function": FUNCTIONS,
        "call_method": METHODS,
        "get_attr": PATHS,
        "call_module": PATHS,
        "placeholder": TEXTS,
    }
    if rng.random() < 0.5:
        line["op"] = rng.choice((*pools, "output", "canary", "root", "run"))
    pool = pools.get(str(line.get("op")), TEXTS)
    line["target"] = rng.choice(pool)
    if line["target"] == "builtins.getattr":
        name = rng.choice((*METHODS, "grad_fn", "_backward_hooks", "shape", 3))
        line["args"] = [{"node": "x"}, name]


def change_name(rng: random.Random, lines: list[Line]) -> None:
    """Another name for a node, a keyword or a parameter."""
    line, text = a_line(rng, lines, "node", "graph"), rng.choice(TEXTS)
    if "parameters" in line:
        line["parameters"][rng.randrange(len(line["parameters"]))] = text
    elif rng.random() < 0.3:
        line["kwargs"] = {text: 1}
    else:
        line["node" if "node" in line else "graph"] = text


def change_type(rng: random.Random, lines: list[Line]) -> None:
    """Another annotation."""
    a_line(rng, lines, "node")["type"] = rng.choice((*TEXTS, *VALUES))


def change_class(rng: random.Random, lines: list[Line]) -> None:
    """Another class or root for a module."""
    line = a_line(rng, lines, "module")
    if rng.random() < 0.2:
        line["root"] = "because"
    line["class"] = rng.choice(CLASSES)
    line.setdefault("attributes", {})[rng.choice(TEXTS)] = rng.choice(VALUES)


def change_attribute(rng: random.Random, lines: list[Line]) -> None:
    """Another attribute, argument or note of a module or node."""
    line = a_line(rng, lines, "module")
    kind = rng.choice(("attributes", "trees", "parameters", "buffers", "meta"))
    name = rng.choice(ATTRIBUTES)
    line.setdefault(kind, {})[name] = rng.choice((*VALUES, "first.weight"))


def change_path(rng: random.Random, lines: list[Line]) -> None:
    """Another path for a module, or the module of another path."""
    line = a_line(rng, lines, "module")
    if rng.random() < 0.5:
        line["module"] = rng.choice((*PATHS, *TEXTS))
    else:
        line["same as"] = rng.choice(("", "first", "again", *PATHS))


def change_notes(rng: random.Random, lines: list[Line]) -> None:
    """Notes that others read: where a node is from, whether it is wrapped."""
    line = a_line(rng, lines, "node")
    notes = line.setdefault("meta", {})
    if not isinstance(notes, dict):
        return
    notes["is_wrapped"] = True
    notes["stack_trace"] = rng.choice((*TEXTS, 'File "x", line 1, in f\n\tx'))
    notes[rng.choice(("val", "tensor_meta", "custom", *TEXTS))] = rng.choice(
        VALUES
    )


def change_leaf(rng: random.Random, lines: list[Line]) -> None:
    """Put anything in the place of anything."""
    here: Data = a_line(rng, lines)
    while True:
        keys = list(here if isinstance(here, dict) else range(len(here)))
        if not keys:
            return
        key = rng.choice(keys)
        inside = here[key]
        if isinstance(inside, dict | list) and inside and rng.random() < 0.8:
            here = inside
            continue
        here[key] = copy.deepcopy(rng.choice((*VALUES, *TEXTS)))
        return


def change_lines(rng: random.Random, lines: list[Line]) -> None:
    """Lines that are missing, there twice, or in another order."""
    at = rng.randrange(len(lines))
    kind = rng.randrange(5)
    if kind == 0:
        del lines[at]
    elif kind == 1:
        lines.insert(rng.randrange(len(lines)), copy.deepcopy(lines[at]))
    elif kind == 2:
        lines.insert(rng.randrange(len(lines)), lines.pop(at))
    elif kind == 3:
        lines[at][rng.choice(TEXTS)] = 1
    else:
        lines[0][rng.choice(("version", "format"))] = rng.choice((2, "1", None))


CHANGES: tuple[Change, ...] = (
    *(change_target, change_target, change_name, change_type, change_class),
    *(change_attribute, change_path, change_leaf, change_leaf, change_lines),
    change_notes,
)


def getattr_line(name: Data) -> Line:
    """A node that fetches an attribute of the input."""
    args = [{"node": "x"}, name]
    return {"op": "call_function", "target": "builtins.getattr", "args": args}


@cache
def aimed() -> tuple[tuple[str, str, Line], ...]:
    """Each hostile text once, alone: which line it is for, and what it sets.

    Without these, a search of a few hundred cases would miss a check.
    """

    def each(op: str, key: str, pool: tuple[Data, ...]) -> list[Data]:
        return [(f"{key} {text!r:.40}", op, {key: text}) for text in pool]

    names = (*METHODS, "grad_fn", "_backward_hooks", {"node": "x"})
    return (
        *each("call_function", "target", FUNCTIONS),
        *each("call_method", "target", METHODS),
        *each("get_attr", "target", PATHS),
        *each("placeholder", "type", TEXTS),
        *each("placeholder", "target", TEXTS),
        *each("call_function", "node", TEXTS),
        *each("graph", "parameters", tuple(["x", t] for t in TEXTS)),
        *each("call_function", "kwargs", tuple({t: 1} for t in TEXTS)),
        *each("module", "class", CLASSES),
        *each("module", "attributes", tuple({n: 1} for n in ATTRIBUTES)),
        *((f"getattr {n}", "call_method", getattr_line(n)) for n in names),
    )


def aim(number: int) -> tuple[str, bytes, bytes, tuple[Data, ...]]:
    """A case of `aimed`, in the first graph that has such a line."""
    done, kind, changes = aimed()[number % len(aimed())]
    for text, weights, inputs in saved():
        lines = [json.loads(line) for line in text.splitlines()]
        for line in lines[2:]:
            fits = line.get("op") == kind or next(iter(line)) == kind
            if fits and ("parameters" not in changes or "trees" in line):
                line |= changes
                data = "".join(f"{json.dumps(each)}\n" for each in lines)
                return done, data.encode(), weights, inputs
    raise AssertionError(f"no graph has a line for {done}")


def spoil_text(rng: random.Random, text: str) -> bytes:
    """The text with characters that JSON or UTF-8 do not allow there."""
    data, at = text.encode(), rng.randrange(len(text))
    return rng.choice(
        (
            data[:at],
            data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :],
            data.replace(b"1", b"NaN", 1),
            data.replace(b"1", b"9" * 5000, 1),
            data.replace(b"null", b"[" * 100_000 + b"]" * 100_000, 1),
            data[: data.rindex(b"\n")] + b"\n" + b"[" * 100_000,
            data.replace(b'{"node"', b'{"node": 1, "node"', 1),
            data + data,
            data + b"canary()\n",
            b"",
            b"\xff\xfe" + data,
            b"canary()",
        )
    )


def spoil_weights(rng: random.Random, data: bytes) -> bytes:
    """Something else in the place of the tensors."""
    held = torch.load(io.BytesIO(data), weights_only=True)
    at = rng.randrange(len(data))
    objects: tuple[Data, ...] = (
        *(Fires(), {"scale": Fires()}, [1], None, 3, {}, {"scale": 1}),
        *({**held, "more": Fires()}, {**held, "first.weight": torch.ones(1)}),
        *({1: torch.ones(1)}, nn.Linear(2, 2), {k: [held[k]] for k in held}),
        {k: held[k].to_sparse() for k in held},
    )
    kind = rng.randrange(6)
    if kind == 0:
        return pickle.dumps(rng.choice(objects[:4]))
    if kind == 1:
        return data[:at]
    if kind == 2:
        return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
    file = io.BytesIO()
    torch.save(rng.choice(objects), file)
    return file.getvalue()


def hostile(number: int) -> tuple[str, bytes, bytes, tuple[Data, ...]]:
    """A name for what was done, text, weights, and inputs."""
    if number % 2:
        return aim(number // 2)
    rng = random.Random(number)
    text, weights, inputs = rng.choice(saved())
    kind = rng.random()
    if kind < 0.1:
        return "weights", text.encode(), spoil_weights(rng, weights), inputs
    if kind < 0.2:
        return "text", spoil_text(rng, text), weights, inputs
    lines = [json.loads(line) for line in text.splitlines()]
    changes = rng.sample(CHANGES, rng.choice((1, 1, 2)))
    for change in changes:
        with contextlib.suppress(TypeError, AttributeError, KeyError):
            change(rng, lines)  # after another change, it may not fit
    done = " ".join(change.__name__ for change in changes)
    data = "".join(f"{json.dumps(line)}\n" for line in lines)
    return done, data.encode(), weights, inputs


# -- files that are no plain files -------------------------------------------

HUGE: typing.Final = 3 * 2**28
"""Bytes that a small file claims to hold."""


def _again(
    data: bytes, method: int, change: Callable[[str, bytes], bytes] | None
) -> bytes:
    """A zip file again, compressed or with other parts."""
    file = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as old,
        zipfile.ZipFile(file, "w", method) as new,
    ):
        for info in old.infolist():
            part, name = old.read(info), info.filename
            new.writestr(name, change(name, part) if change else part)
    return file.getvalue()


def _with_part(part: bytes) -> Callable[[bytes], bytes]:
    """Puts something in the place of the first tensor's data."""

    def change(name: str, held: bytes) -> bytes:
        return part if name.endswith("/data/0") else held

    return lambda data: _again(data, zipfile.ZIP_STORED, change)


@cache
def bomb() -> bytes:
    """A small file with a tensor of `HUGE` zeros, as large as it says."""
    file, number = io.BytesIO(), HUGE.to_bytes(4, "little")
    torch.save({"scale": torch.zeros(7, dtype=torch.uint8)}, file)

    def change(name: str, part: bytes) -> bytes:
        return part.replace(b"K\x07", b"J" + number)

    packed = io.BytesIO(_again(file.getvalue(), zipfile.ZIP_DEFLATED, change))
    with zipfile.ZipFile(packed) as old:
        names = {info.filename: old.read(info) for info in old.infolist()}
    with zipfile.ZipFile(file := io.BytesIO(), "w", 8) as new:
        for name, part in names.items():
            with new.open(name, "w") as held:
                is_data = name.endswith("/data/0")
                for _ in range(HUGE // 2**20 if is_data else 1):
                    held.write(bytes(2**20) if is_data else part)
    return file.getvalue()


def overlapping(data: bytes) -> bytes:
    """A zip file that lists one part again and again, by other names."""
    file = io.BytesIO(data)
    with zipfile.ZipFile(file, "a") as archive:
        [info, *_] = [i for i in archive.infolist() if "/data/" in i.filename]
        for number in range(1000, 1400):
            more = copy.copy(info)
            more.filename = info.filename.replace("/data/", f"/data/{number}")
            archive.filelist.append(more)
        archive.writestr("more", b"")
    return file.getvalue()


def _replace(file: Path, make: Callable[[Path], object]) -> object:
    file.unlink()
    return make(file)


def _pipe(file: Path) -> Callable[[], None]:
    os.mkfifo(file)
    # Whoever waits for it gets an end of file, and is noticed.
    timer = threading.Timer(1.0, _end_pipe, (file, watch()))
    timer.start()
    return timer.cancel


def _end_pipe(file: Path, seen: Watch) -> None:
    with contextlib.suppress(OSError):  # nobody waits, or it is gone
        os.close(os.open(file, os.O_WRONLY | os.O_NONBLOCK))
        seen.seen.append("it waits for a pipe")


LAYOUTS: dict[str, Callable[[Path], object]] = {
    "a pipe": _pipe,
    "a folder": Path.mkdir,
    "a device": lambda file: file.symlink_to("/dev/zero"),
    "a dead link": lambda file: file.symlink_to("nowhere"),
    "a link to itself": lambda file: file.symlink_to(file),
    "nothing": lambda file: None,
}
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "compressed": lambda data: _again(data, zipfile.ZIP_DEFLATED, None),
    "bzip2": lambda data: _again(data, zipfile.ZIP_BZIP2, None),
    "a bomb": lambda data: bomb(),
    "overlapping": overlapping,
    "behind something": lambda data: bytes(1000) + data,
    "before something": lambda data: data + bytes(1000),
    "twice": lambda data: data + data,
    "a part too short": _with_part(b"1"),
    "a part too long": _with_part(bytes(10**6)),
    "a pickle": lambda data: pickle.dumps({"scale": [1]}, 2),
    "an old file": lambda data: _old(),
}


def _old() -> bytes:
    """The tensors as torch saved them before it wrote zip files."""
    file = io.BytesIO()
    tensors = {"scale": torch.ones(4)}
    torch.save(tensors, file, _use_new_zipfile_serialization=False)
    return file.getvalue()


def computing(text: str, weights: bytes, kind: str) -> tuple[str, bytes]:
    """A text that has tensors in the place of types, and such tensors.

    Each is of one number, and of a result that fills the memory.
    """
    wide = torch.zeros(1, dtype=torch.int64).expand(HUGE // 8)
    held = torch.load(io.BytesIO(weights), weights_only=True)
    torch.save({**held, "wide": wide}, file := io.BytesIO())
    lines = [json.loads(line) for line in text.splitlines()]
    [node, *_] = [line for line in lines if line.get("op") == "call_function"]
    node["args"] = [{kind: [{"tensor": "wide"}, {"tensor": "wide"}]}]
    return "\n".join(map(json.dumps, lines)), file.getvalue()


def laid_out(number: int, folder: Path) -> tuple[str, str]:
    """A saved graph of which one file is something else; what is wrong."""
    text, weights, inputs = saved()[0]
    kinds = [*PACKED, *((kind, file) for kind in LAYOUTS for file in FILES)]
    kind = [*kinds, "generic", "union"][number % (len(kinds) + 2)]
    if kind in ("generic", "union"):
        text, weights = computing(text, weights, str(kind))
        return f"{kind}", tried(folder, text.encode(), weights, inputs)
    if isinstance(kind, str):
        data = PACKED[kind](weights)
        return kind, tried(folder, text.encode(), data, inputs)
    what, name = kind
    wrong = tried(
        folder,
        text.encode(),
        weights,
        inputs,
        lambda: _replace(folder / name, LAYOUTS[what]),
    )
    return f"{what} as {name}", wrong


# -- what must not happen ----------------------------------------------------

FORBIDDEN: tuple[object, ...] = (
    *(eval, exec, __import__, open, getattr, setattr, map, vars, compile),
    *(torch.load, torch.save, torch.hub.load, torch.from_file, os.system),
    *(torch.ops.aten.from_file.default, operator.call, torch.compile),
    *(operator.attrgetter, operator.methodcaller, torch.Tensor.apply_),
)


def harm_in(gm: fx.GraphModule) -> str:
    """What a graph could do, or have, that it must not."""
    for node in gm.graph.nodes:
        target = node.target
        if target is getattr and str(node.args[1]) not in ("shape", "data"):
            return f"getattr of {node.args[1]!r}"
        if target is not getattr and any(target is f for f in FORBIDDEN):
            return f"it calls {target}"
        if node.op == "call_method" and str(target) in METHODS[:-2]:
            return f"it calls the method {target}"
        if node.op == "get_attr":
            found = operator.attrgetter(str(target))(gm)
            its_own = str(target).rpartition(".")[2] in vars(nn.Module())
            if its_own or (
                callable(found) and not isinstance(found, nn.Module)
            ):
                return f"it fetches {target}"
    problems = [found.message for found in fx.lint.problems(gm.graph)]
    broken = [each for each in problems if "which is not an id" not in each]
    return f"its graph is broken: {broken[0]}" if broken else ""


def use(gm: fx.GraphModule, inputs: tuple[Data, ...]) -> None:
    """Do with a loaded module what people do."""
    str(gm.graph)
    str(gm)
    gm.print_readable(print_output=False)
    copy.deepcopy(gm).recompile()
    for node in gm.graph.nodes:
        node.format_node()
    with contextlib.suppress(NameError, TypeError, AttributeError, SyntaxError):
        typing.get_type_hints(type(gm).forward)
    with (
        contextlib.suppress(Exception),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        gm(*inputs)


def tried(
    folder: Path,
    text: bytes,
    weights: bytes,
    inputs: tuple[Data, ...],
    change: Callable[[], object] = lambda: None,
) -> str:
    """What is wrong with loading these files, changed; "" if nothing."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / TEXT).write_bytes(text)
    (folder / WEIGHTS).write_bytes(weights)
    undo = change()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with canaries() as seen, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrong = ""
        try:
            gm = fx.load(folder)
        except fx.LoadError as error:
            wrong = "" if folder.name in str(error) else f"no file: {error}"
        except Exception as error:
            wrong = f"raises {type(error).__name__}: {error}"
        else:
            try:
                wrong = harm_in(gm)
                use(gm, inputs)
            except Exception as error:
                wrong = wrong or f"then {type(error).__name__}: {error}"
        if callable(undo):
            undo()
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if after - before > HUGE // 2048:  # which are kilobytes
            seen.seen.append("it fills the memory")
        return "; ".join([*dict.fromkeys(seen.seen), wrong]).strip("; ")


def run(seed: int, cases: int) -> Iterator[Outcome]:
    """Load so many hostile files."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(seed * 1_000_000, seed * 1_000_000 + cases):
            place = Path(folder, "hostile")
            if number % 15 == 4:
                done, wrong = laid_out(number // 15, place)
            else:
                done, text, weights, inputs = hostile(number)
                wrong = tried(place, text, weights, inputs)
            yield Outcome(f"{number}: {done}", wrong[:300])


PART = Part(
    name="hostile files",
    compares="what `fx.load` does with a hostile file, and nothing at all",
    run=run,
    share=500,
    long=20_000,
    plants=(
        Plant(
            "fx/extra/saving/files.py",
            "map_location=map_location, weights_only=True",
            "map_location=map_location, weights_only=False",
            "the weights are a pickle that may call anything",
        ),
        Plant(
            "fx/extra/saving/allowed.py",
            "        if function is None:\n            raise",
            '        if function is None and name.startswith("torch."):\n'
            '            path = name.split(".")[1:]\n'
            "            function = functools.reduce(getattr, path, torch)\n"
            "        if function is None:\n            raise",
            "a function is allowed by a prefix of its name",
        ),
        Plant(
            "fx/extra/saving/allowed.py",
            "if private or not callable(method) or not _safe(packet):",
            "if not str(target).isidentifier():",
            "any method may be called",
        ),
        Plant(
            "fx/extra/saving/allowed.py",
            'if namespace not in ("aten", "prims") or base == "from_file":',
            'if namespace not in ("aten", "prims"):',
            "an operator may open files",
        ),
        Plant(
            "fx/extra/saving/allowed.py",
            "if type(name) is not str or name not in _ATTRIBUTES:",
            "if type(name) is not str:",
            "getattr may fetch any attribute",
        ),
        Plant(
            "fx/extra/saving/saved_graph.py",
            "if not all(map(is_parameter_name, names)):",
            "if not names:",
            "the names of parameters are pasted into code as they are",
        ),
        Plant(
            "fx/extra/saving/module_tree.py",
            '    raise ValueError(f"the path {path!r} leads',
            '    return None\n    raise ValueError(f"the path {path!r} leads',
            "a path may lead to methods and properties",
        ),
        Plant(
            "fx/extra/saving/values.py",
            "if isinstance(kind, str) and not _annotation.fullmatch(kind):",
            "if kind == ...:",
            "an annotation may hold code",
        ),
        Plant(
            "fx/extra/saving/files.py",
            "if sum(part.file_size for part in parts) > file.stat().st_size:",
            "if not parts:",
            "a small file of tensors fills the memory",
        ),
        Plant(
            "fx/extra/saving/files.py",
            "    if not stat.S_ISREG(file.stat().st_mode):",
            "    if not file.exists():",
            "a file may be a pipe, which never ends",
        ),
        Plant(
            "fx/extra/saving/values.py",
            "lambda parts: _of_a_type(parts[0])[tuple(parts[1:])]",
            "lambda parts: parts[0][tuple(parts[1:])]",
            "an annotation may compute with tensors",
        ),
    ),
)
