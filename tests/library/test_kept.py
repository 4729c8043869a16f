"""Graph modules that an earlier version of fx has kept, in each way."""

from __future__ import annotations

import pickle
import pickletools
import pkgutil
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest
import torch

import fx
from fx.usedef.values import Value
from tests.library.saved.write import KEPT, write
from tests.process import python

HERE = Path(__file__).parent / "saved"
VERSIONS = sorted(path.stem for path in HERE.glob("*.zip"))


def _pickled(path: Path) -> fx.GraphModule:
    gm, graph = pickle.loads(path.read_bytes())
    assert str(graph) == str(gm.graph)
    return cast(fx.GraphModule, gm)


def _from_torch(path: Path) -> fx.GraphModule:
    return cast(fx.GraphModule, torch.load(path, weights_only=False))


def _saved(path: Path) -> fx.GraphModule:
    return fx.load(path)


READ: dict[str, Callable[[Path], fx.GraphModule]] = {
    "pickle": _pickled,
    "torch": _from_torch,
    "saved": _saved,
}


@pytest.fixture(scope="module", params=VERSIONS)
def folder(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """What a version has kept."""
    made = tmp_path_factory.mktemp("kept")
    shutil.unpack_archive(HERE / f"{request.param}.zip", made)
    return made


@pytest.mark.parametrize("way", READ)
@pytest.mark.parametrize("name", KEPT)
def test_a_graph_module_is_read(name: str, way: str, folder: Path) -> None:
    if not (folder / name / way).exists():
        assert way not in KEPT[name]().ways
        return
    gm = READ[way](folder / name / way)
    inputs, result = torch.load(folder / name / "call.pt", weights_only=False)
    for run in (gm, fx.Interpreter(gm).run):
        assert _equal(run(*inputs), result)
    assert not list(fx.lint.problems(gm.graph))
    today = KEPT[name]().gm.graph
    assert [node.op for node in gm.graph.nodes] == [n.op for n in today.nodes]
    gm.graph.eliminate_dead_code()
    gm.recompile()
    assert _equal(gm(*inputs), result)


def _equal(found: Value, right: Value) -> bool:
    """Whether two results are the same, tensors by their values."""
    if isinstance(right, torch.Tensor):
        return found.dtype == right.dtype and torch.allclose(found, right)
    if isinstance(right, dict):
        same = all(_equal(found[key], right[key]) for key in right)
        return same and found.keys() == right.keys()
    return bool(found == right)


RUN = """
import importlib, sys, torch
for name in sys.argv[1:]:
    inputs, right = torch.load(f'{name}/call.pt', weights_only=False)
    module = importlib.import_module(f'{name}.folder').Kept().eval()
    with torch.no_grad():
        found = module(*inputs)
    assert str(found) == str(right), (name, found, right)
    print(name)
"""


def test_a_folder_is_a_package_that_runs(folder: Path) -> None:
    (folder / "run.py").write_text(RUN)
    names = sorted(path.parent.name for path in folder.glob("*/folder"))
    run = python("run.py", *names, cwd=folder)
    assert run.stdout.split() == names, run.stderr
    assert len(names) > 4


def test_this_version_writes_them_all(tmp_path: Path) -> None:
    assert list(write(tmp_path)) == []
    assert {p.parent.name for p in tmp_path.glob("*/pickle")} == {*KEPT}


def _names_in(pickled: bytes) -> Iterator[str]:
    """The names that a pickle looks up, and those of pickles inside of it."""
    texts: list[str] = []
    for code, found, _ in pickletools.genops(pickled):
        if isinstance(found, str):
            texts.append(found)
            if found.startswith("fx."):
                yield found
        elif isinstance(found, bytes) and found[:1] == b"\x80":
            yield from _names_in(found)
        assert code.name != "GLOBAL", "an old protocol"


def test_pickles_look_for_nothing_that_may_move(tmp_path: Path) -> None:
    """They name what torch.fx has, too, under the same name."""
    list(write(tmp_path))
    names = {
        name
        for path in tmp_path.glob("*/pickle")
        for name in _names_in(path.read_bytes())
    }
    assert {"fx.graph", "fx.Tracer", "fx.graph._PyTreeCodeGen"} <= names
    for name in names - {"fx.graph._pytree_info"}:  # a function of ours
        assert pkgutil.resolve_name(f"torch.{name}") is not None
