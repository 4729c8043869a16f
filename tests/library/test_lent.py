"""Extra: what fx has not, and torch lends. tests/parity runs such passes."""

from __future__ import annotations

import importlib
import pickle
import re
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import torch
import torch.fx
from torch import nn

import fx
from fx.extra.lending import lending
from fx.extra.lending.lending import NOT_LENT, SHARED, Lender
from fx.passes import split_utils
from fx.use_def.values import AnyValue
from tests.checks.api_surface import FILE, load
from tests.process import printed

ROOT = Path(__file__).parents[2]
TORCHS = Path(torch.fx.__path__[0])


def test_a_lent_module_is_torchs_file_about_fx() -> None:
    lent: AnyValue = importlib.import_module("fx.passes.splitter_base")
    assert lent.__file__ == str(TORCHS / "passes" / "splitter_base.py")
    assert lent.__name__ == "fx.passes.splitter_base"
    assert lent._SplitterBase.__module__ == "fx.passes.splitter_base"
    theirs: AnyValue = torch.fx.passes.splitter_base
    assert lent._SplitterBase is not theirs._SplitterBase
    assert lent.split_by_tags is split_utils.split_by_tags


def test_a_lent_package_lends_what_is_in_it() -> None:
    name = "fx.passes.backends.cudagraphs"
    support: AnyValue = importlib.import_module(name).CudaGraphsSupport
    own = importlib.import_module("fx.passes.infra.partitioner")
    module: AnyValue = sys.modules[support.__module__]
    assert module.CapabilityBasedPartitioner is own.CapabilityBasedPartitioner


def test_a_file_of_fx_comes_first() -> None:
    for name in ("passes.split_module", "experimental.proxy_tensor", "node"):
        file = importlib.import_module(f"fx.{name}").__file__
        assert Path(str(file)).is_relative_to(ROOT)


def test_modules_about_sizes_are_torchs_own() -> None:
    """Nor does torch's module learn of its second name."""
    for name in sorted(SHARED):
        if (TORCHS / Path(*name.split(".")[1:])).with_suffix(".py").exists():
            shared = importlib.import_module(name)
            assert shared is importlib.import_module(f"torch.{name}")
            assert shared.__spec__ is not None
            assert shared.__spec__.name == f"torch.{name}"


def test_names_that_a_module_of_fx_lacks_are_found() -> None:
    ours: AnyValue = importlib.import_module("fx.experimental.optimization")
    lent = ours.optimize_for_inference
    assert lent.__module__ == "fx.experimental.optimization_of_torch"
    assert lent is ours.optimize_for_inference
    assert pickle.loads(pickle.dumps(lent)) is lent
    assert ours.fuse.__module__ == "fx.experimental.optimization"


def test_a_name_that_neither_has_is_an_error() -> None:
    ours: AnyValue = importlib.import_module("fx.experimental.optimization")
    with pytest.raises(
        AttributeError,
        match=r"has no attribute 'nowhere', and neither has "
        r"torch\.fx\.experimental\.optimization, which lends",
    ):
        ours.nowhere  # noqa: B018
    assert not hasattr(ours, "__wrapped__")


def test_modules_that_neither_has_are_errors_as_ever() -> None:
    for name in ("fx.nowhere", "fx.passes.nowhere", "fx.passes.backends.no"):
        with pytest.raises(ModuleNotFoundError, match=f"named '{name}'$"):
            importlib.import_module(name)
    assert not hasattr(fx, "nowhere")


@pytest.mark.parametrize("name", sorted(NOT_LENT))
def test_what_is_out_says_why(name: str) -> None:
    with pytest.raises(
        ModuleNotFoundError, match=r"No module named .*: "
    ) as it:
        importlib.import_module(name)
    assert NOT_LENT[name] in str(it.value)
    assert it.value.name == name


def test_an_error_says_that_the_file_is_torchs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if a torch to come had a module that needs what fx has not."""
    file = tmp_path / "made_up_for_a_test.py"
    file.write_text("from torch.fx.graph import NoSuchThing\n")
    monkeypatch.setattr(torch.fx, "__path__", [str(tmp_path)])
    with pytest.raises(ImportError, match=r"from 'fx\.graph'") as raised:
        importlib.import_module("fx.made_up_for_a_test")
    (note,) = raised.value.__notes__
    assert note.startswith("fx.made_up_for_a_test is not a file of fx")
    assert str(file) in note


def test_it_is_python_that_asks_last() -> None:
    finders = [finder for finder in sys.meta_path if isinstance(finder, Lender)]
    assert len(finders) == 1
    lending.install()
    assert [f for f in sys.meta_path if isinstance(f, Lender)] == finders
    assert Lender().find_spec("collections.nowhere", None) is None
    assert Lender().find_spec("fx", None) is None


def test_importing_fx_loads_nothing_that_is_lent() -> None:
    said = printed(
        "-c",
        "import fx, sys; print([n for n, m in sys.modules.items()\n"
        "    if n.startswith('fx.') and 'torch/fx' in str(m.__file__)])",
    )
    assert said == "[]\n"


def test_both_libraries_support_each_others_partitioner() -> None:
    """What torch lends is given to a pass of fx, and does not know torch.fx."""
    support: AnyValue = importlib.import_module("fx.passes.operator_support")
    partitioner = importlib.import_module("fx.passes.infra.partitioner")
    table = support.OperatorSupport({"torch.nn.modules.activation.ReLU": None})
    gm = fx.symbolic_trace(nn.Sequential(nn.ReLU(), nn.ReLU(), nn.Tanh()))
    cut = partitioner.CapabilityBasedPartitioner(gm, table)
    assert [*map(len, [p.nodes for p in cut.propose_partitions()])] == [2]


def test_the_table_of_own_and_lent_is_that_of_the_surface() -> None:
    """Each module that no stage's page explains is in a row of the page."""
    page = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8")
    table = page.partition("## Own or lent")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.*) \| (own|lent) \|", table, re.MULTILINE)
    said = {
        name: kind
        for names, kind in rows
        for name in re.findall("`(.+?)`", names)
    }
    surface = load(FILE.read_text(encoding="utf-8"))
    kinds = {"same": "own", "lent": "lent"}
    found: set[str] = set()
    for (module, key), row in surface.items():
        name = module.removeprefix("fx.")
        if key or row.status == "out" or module in SHARED or "." not in name:
            continue
        file = importlib.import_module(module).__file__
        if str(file).endswith("__init__.py"):
            continue
        pattern = next(each for each in said if fnmatchcase(name, each))
        assert said[pattern] == kinds[row.status], name
        found.add(pattern)
    assert said.keys() - found == {
        "experimental.symbolic_shapes",
        "tensor_type",
    }


def test_stubs_stand_for_lent_modules_alone() -> None:
    """So that a type checker finds the modules, and says `Any` of names."""
    stubs = {*(ROOT / "fx").rglob("*.pyi")}
    assert len(stubs) > 10
    for stub in stubs:
        assert not stub.with_suffix(".py").exists()
        assert (
            (TORCHS / stub.relative_to(ROOT / "fx")).with_suffix(".py").exists()
        )
