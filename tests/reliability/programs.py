"""Generated programs: eager beside every way of running their graph.

A program is a module with shared, tied, nested and hooked children, and a
forward of random statements: containers, in-place operators, views, defaults,
keyword-only parameters, leaf functions, custom operators. Its result must be
the same from eager, GraphModule, Interpreter, Transformer, a deep copy, a
pickle, and a folder that is imported again, for some in a new process.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import io
import os
import pickle
import pkgutil
import random
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import torch
from torch import nn
from torch.serialization import get_unsafe_globals_in_checkpoint, safe_globals

import fx
from tests.process import python

from . import subjects as subjects  # whose operators programs call
from .part import Outcome, Part, Plant

AnyValue: TypeAlias = Any

STATEMENTS: Final = (
    "{v} = {a} + {b}",
    "{v} = {a} * 2 - 1",
    "{v} = 1 / ({a} * {a} + 1)",
    "{v} = torch.relu({a})",
    "{v} = torch.add({a}, {b}, alpha=0.5)",
    "{v} = {a}.clamp(min=-1.0, max=1.0)",
    "{v} = {a}.mul({b}).sum(1, keepdim=True).expand(2, 4) + 0",
    "{v} = torch.where({a} > {b}, {a}, {b})",
    # containers
    "{v} = torch.cat([{a}[:, :2], {b}[:, 2:]], 1)",
    "{v} = torch.stack(({a}, {b})).sum(0)",
    "{v} = added({{'a': {a}, 'b': [{b}, ({a},)]}})",
    "{v} = of_pair(Pair({a}, {b}), scale=2.0)",
    "{v}, rest = {a}.chunk(2, 1); {v} = torch.cat((rest, {v}), 1)",
    "{v} = torch.einsum('ij,ij->ij', [{a}, {b}])",
    "{v} = {a}[None, ..., slice(None)][0]",
    "{v} = F.pad({a}, (1, 1))[:, 1:5]",
    # views and writes
    "{v} = {a}.view(-1).view(2, 4)",
    "{v} = {a}.t().t()",
    "{v} = {a}.clone(); {v}[0].copy_({b}[1])",
    "{v} = {a}.clone(); {v}.t().mul_(2)",
    "{v} = {a}.clone().add_({b})",
    "{v} = F.relu({a}.clone(), inplace=True)",
    "{v} = torch.zeros_like({a}); torch.add({a}, {b}, out={v})",
    "{v} = {a}.clone(); {v} += {b}",
    "{v} = {a} * 1; {v}.data = {b} * 3",
    "{v} = copy.deepcopy({a}.detach()).mul_(2)",
    # state
    "{v} = {a} * self.scale",
    "{v} = {a} + self.offset",
    "{v} = {a} + torch.arange(4.0)",
    "{v} = F.linear({a}, self.linear.weight, self.linear.bias)",
    "{v} = self.linear({a})",
    "{v} = self.same({a})",
    "{v} = self.tied({a})",
    "{v} = self.layers({a})",
    "{v} = self.blocks[1](self.blocks[0]({a}))",
    "{v} = self.heads['out']({a})",
    "{v} = self.hooked({a})",
    "{v} = self.inner({a}, {b})",
    "{v} = self.quiet({a}.clone())",
    # parameters
    "{v} = {a} * alpha",
    "{v} = {a} * beta + {a}.shape[0]",
    "{v} = {a} * math.sqrt(2.0) + math.floor(2.7)",
    # Python around the calls
    "{v} = functools.partial(torch.add, alpha=2)({a}, {b})",
    "{v} = sum(block({a}) for block in self.blocks)",
    "{v} = (lambda z, *more, k=2: z * k + more[0])({a}, {b}, k={b})",
    "{v} = {a} * self.gain",
    "{v} = functools.reduce(torch.maximum, self.parts, {a})",
    # operators
    "{v} = torch.ops.fx_reliability.double({a})",
    "{v} = torch.ops.fx_reliability.bump_({a}.clone())",
    "{v} = torch.ops.aten.add.Tensor({a}, {b})",
)
"""Statements over tensors of two rows and four columns."""

RESULTS: Final = (
    "{a}",
    "({a}, {b})",
    "[{a}, ({b}, {a})]",
    "{{'a': {a}, 'rest': [{b}, {c}]}}",
    "{a}, None, 3, 'text'",
    "({a} * 1, {{'b': ({b},)}})",
)

SIGNATURES: Final = (
    "x, y, alpha=2.0, beta=3.0",
    "x, y, alpha=2.0, *, beta=3.0",
    "x: torch.Tensor, y, *, alpha: float = 2.0, beta=3.0",
    "x, /, y, alpha=2.0, beta=None or 3.0",
    "x, *rest, alpha=2.0, beta=3.0",
    "x, *rest, beta=3.0, alpha=2.0, **more",
    "x, y, alpha=torch.tensor([2.0]), *, beta=3.0",
)

HEADER: Final = "\nclass Program(Root):\n"

_HEAD: Final = (
    "import copy, functools, math, torch\nimport torch.nn.functional as F\n"
    "from torch import nn\nfrom tests.reliability.subjects import *\n"
)


def head(rng: random.Random) -> str:
    """How a forward of x and y begins."""
    signature = rng.choice(SIGNATURES)
    line = f"    def forward(self, {signature}):"
    return f"{line}\n        (y,) = rest" if "*rest" in signature else line


def source(rng: random.Random) -> str:
    """The text of a random program."""
    names = ["x", "y"]
    lines = [head(rng)]
    for i in range(rng.randint(2, 9)):
        a, b = rng.choice(names), rng.choice(names)
        statement = rng.choice(STATEMENTS).format(v=f"v{i}", a=a, b=b)
        lines.append(f"        {statement}")
        names.append(f"v{i}")
    a, b, c = (rng.choice(names) for _ in range(3))
    result = rng.choice(RESULTS).format(a=names[-1], b=b, c=c)
    return HEADER + "\n".join([*lines, f"        return {result}", ""])


def module_of(text: str) -> nn.Module:
    """The module of a program, the same each time."""
    space: dict[str, AnyValue] = {}
    exec(_HEAD + text, space)
    torch.manual_seed(0)
    module: nn.Module = space["Program"]()
    return module


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    """The same inputs each time, fresh."""
    x = torch.arange(8.0).reshape(2, 4) / 4 - 1
    return x, torch.cos(x * 3)


def called(function: Callable[..., AnyValue]) -> str:
    """What a call returns and does to its inputs, to the last digit."""
    torch.manual_seed(1)
    given = inputs()
    cast(AnyValue, torch).set_printoptions(precision=8)
    with torch.no_grad():
        result = function(*given)
    return str((detached(result), given))


def detached(value: AnyValue) -> AnyValue:
    """Values as plain lists and dicts of detached tensors."""
    if isinstance(value, torch.Tensor):
        return value.detach()
    if isinstance(value, list | tuple):
        return type(value)([detached(item) for item in value])
    if isinstance(value, dict):
        return {key: detached(item) for key, item in value.items()}
    return value


# -- ways to run ---------------------------------------------------------------


def _pickled(lib: AnyValue, gm: AnyValue) -> AnyValue:
    return pickle.loads(pickle.dumps(gm))


def _saved(lib: AnyValue, gm: AnyValue) -> AnyValue:
    file = io.BytesIO()
    torch.save(gm, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def _weights_only(lib: AnyValue, gm: AnyValue) -> AnyValue:
    """What is loaded if just the names are allowed that the file has."""
    file = io.BytesIO()
    torch.save(gm, file)
    file.seek(0)
    needed = get_unsafe_globals_in_checkpoint(file)
    file.seek(0)
    with safe_globals([pkgutil.resolve_name(name) for name in needed]):
        return torch.load(file, weights_only=True)


@cache
def _class_of(lib: AnyValue) -> AnyValue:
    """A class of graph modules that does not call GraphModule.__init__."""
    base: type = lib.GraphModule
    own = vars(lib.symbolic_trace(nn.ReLU())).keys()
    own -= {"_modules", "_parameters", "_buffers"}

    class Extractor(base):  # type: ignore[misc]  # of either library
        def __init__(self, root: nn.Module, graph: AnyValue) -> None:
            nn.Module.__init__(self)
            held = vars(root)
            self.__dict__ |= {k: held[k] for k in held.keys() - own}
            self.graph = graph

    return Extractor


def _of_a_class(lib: AnyValue, gm: AnyValue) -> AnyValue:
    made = _class_of(lib)(gm, copy.deepcopy(gm.graph))
    lib.replace_pattern(made, lambda x: torch.relu(x), lambda x: x.relu())
    return copy.copy(copy.deepcopy(made))


def _unpickled_graph(lib: AnyValue, gm: AnyValue) -> AnyValue:
    return lib.GraphModule(gm, copy.deepcopy(gm.graph))


WAYS: Final[dict[str, Callable[[AnyValue, AnyValue], AnyValue]]] = {
    "GraphModule": lambda lib, gm: gm,
    "Interpreter": lambda lib, gm: lib.Interpreter(gm).run,
    "Transformer": lambda lib, gm: lib.Transformer(gm).transform(),
    "deepcopy": lambda lib, gm: copy.deepcopy(gm),
    "copy": lambda lib, gm: copy.copy(gm),
    "pickle": _pickled,
    "torch.save": _saved,
    "a copied graph": _unpickled_graph,
    "weights_only": _weights_only,
    "a class without __init__": _of_a_class,
}

_PACKAGES = count()


@contextlib.contextmanager
def folder_of(gm: AnyValue) -> Iterator[tuple[str, str]]:
    """A folder that holds the module as a package: folder, package."""
    name = f"reliable_{os.getpid()}_{next(_PACKAGES)}"
    with tempfile.TemporaryDirectory() as place:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gm.to_folder(Path(place) / name, "Program")
        yield place, name


def from_folder(place: str, name: str) -> nn.Module:
    """The module that a folder holds, imported."""
    sys.path.insert(0, place)
    try:
        module: nn.Module = importlib.import_module(name).Program()
    finally:
        sys.path.remove(place)
    return module


_ELSEWHERE: Final = """
import sys
from tests.reliability.programs import called, from_folder
print(called(from_folder(*sys.argv[1:])))
"""


def in_a_new_process(place: str, name: str) -> str:
    """What the module of a folder returns in another process."""
    result = python("-W", "ignore", "-c", _ELSEWHERE, place, name)
    return (result.stdout or result.stderr[-300:]).strip()


def wrong(lib: AnyValue, text: str, *, elsewhere: bool) -> str:
    """What is wrong in a library with a program; "" if nothing."""
    expected = called(module_of(text))
    try:
        gm = lib.symbolic_trace(module_of(text))
        for way, prepare in WAYS.items():
            got = called(prepare(lib, gm))
            if got != expected:
                return f"{way}: {got} is not {expected}"
        with folder_of(gm) as where:
            if called(from_folder(*where)) != expected:
                return "to_folder: another result"
            if elsewhere and in_a_new_process(*where) != expected:
                return f"to_folder elsewhere: {in_a_new_process(*where)}"
    except Exception as error:  # each is a finding
        return f"{type(error).__name__}: {error}"
    return ""


def run(seed: int, cases: int) -> Iterator[Outcome]:
    """Try random programs; the first of every hundred in a new process."""
    rng = random.Random(seed)
    for index in range(cases):
        text = source(rng)
        ours = wrong(fx, text, elsewhere=index % 100 == 0)
        with contextlib.redirect_stderr(io.StringIO()):
            theirs = wrong(torch.fx, text, elsewhere=False)
        yield Outcome(text[len(HEADER) :], ours, theirs)


PART = Part(
    name="programs",
    compares="eager, GraphModule, Interpreter, Transformer, copies, pickles, "
    "folders",
    run=run,
    share=20,
    long=3000,
    plants=(
        Plant(
            "fx/proxy.py",
            "        if self.tracer._is_tracing:\n"
            "            record = self.tracer.create_proxy\n",
            "        if False:\n"
            "            record = self.tracer.create_proxy\n",
            "copy.deepcopy(x) copies the graph that is being recorded",
        ),
        Plant(
            "fx/tracing/inputs.py",
            "            proxy.node.args = (self.defaults[name],)\n",
            "            make = self.tracer.create_arg\n"
            "            proxy.node.args = (make(self.defaults[name]),)\n",
            "a tensor that is a default is a node",
        ),
        Plant(
            "fx/tracing/inputs.py",
            "order = [*free[:split], varargs, *free[split:], varkw]",
            "order = [*free, *rest]",
            "keyword-only parameters come before *args",
        ),
        Plant(
            "fx/codegen/attributes.py",
            "    new.graph = gm.graph\n    return new\n",
            "    new.graph = gm.graph\n    new.training = False\n"
            "    new._parameters.clear()\n    return new\n",
            "a shallow copy has lost its parameters",
        ),
        Plant(
            "fx/graph_module.py",
            "        vars(new).update(attributes.at_first())\n        if base",
            "        if base",
            "a class without __init__ has no hooks",
        ),
        Plant(
            "fx/extra/saving/pickled_modules.py",
            "= object.__new__(body.get(_CLASS, GraphModule))",
            "= body[_CLASS].__new__(body[_CLASS])",
            "what is unpickled has a class that nobody can allow",
        ),
        Plant(
            "fx/extra/saving/serialize.py",
            "    yield from _own_state(module)\n",
            "",
            "a folder has lost the module's own parameters",
        ),
        Plant(
            "fx/use_def/lint.py",
            "for user in nodes for",
            "for user in reversed(nodes) for",
            "values are freed after their first use",
        ),
    ),
)
