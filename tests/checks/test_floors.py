"""No stage imports a later one, and the stages 01 to k work alone."""

from __future__ import annotations

import subprocess
from contextlib import closing
from pathlib import Path
from sqlite3 import connect

import pytest

from stages.manifest import source_files
from tests.checks.floors import (
    circle_problems,
    import_problems,
    room_problems,
    stage_problems,
    write_prefix,
    write_stage,
)
from tests.checks.sources import ROOT, Source, library, snippet
from tests.process import python

LOW = '"""Stage 01, list: low."""\n'
MID = '"""Stage 02, use: mid."""\n'


def file_of(stage: int, name: str, body: str = "") -> Source:
    """A made-up file of a stage."""
    text = f'"""Stage 0{stage}, s{"abc"[stage - 1]}: x."""\n{body}'
    return snippet(text, f"fx/{name}.py")


# --- imports ---------------------------------------------------------------


def test_no_import_goes_up() -> None:
    assert list(import_problems(library())) == []


@pytest.mark.parametrize(
    "body",
    [
        "from .high import X",
        "from . import high",
        "def f() -> None:\n    from .high import X",
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from .high import X",
        "from ..fx.high import X",
    ],
)
def test_an_upward_import_is_seen(body: str) -> None:
    low, high = file_of(1, "low", body), file_of(2, "high")
    (problem,) = import_problems([low, high])
    assert problem.endswith(": stage 01 imports fx.high of stage 02")


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("import fx", "package root"),
        ("import fx.low", "absolute name"),
        ("import importlib\nimportlib.import_module('fx.low')", "absolute"),
        ("__import__('fx')", "package root"),
        ("from .gone import X", "not there"),
    ],
)
def test_the_root_and_absolute_names_are_seen(
    body: str, complaint: str
) -> None:
    problems = import_problems([file_of(1, "low"), file_of(2, "user", body)])
    assert complaint in "\n".join(problems)


def test_a_pass_may_import_everything_and_only_a_pass_imports_it() -> None:
    text = '"""Passes: one."""\nfrom .high import X'
    one, high = snippet(text, "fx/one.py"), file_of(3, "high")
    assert list(import_problems([one, high])) == []
    assert list(stage_problems([file_of(1, "a"), file_of(2, "b"), one])) == []
    other = snippet('"""Passes: two."""\nfrom .one import Y', "fx/two.py")
    assert list(import_problems([one, high, other])) == []
    user = file_of(3, "user", "from .one import Y")
    (problem,) = import_problems([one, high, user])
    assert problem.endswith("only a pass imports a pass")


# --- circles ---------------------------------------------------------------


def test_there_is_no_circle_of_imports() -> None:
    assert list(circle_problems(library())) == []


def test_a_circle_of_imports_is_seen() -> None:
    one = file_of(1, "one", "from .two import X")
    two = file_of(1, "two", "from .one import Y")
    problems = list(circle_problems([one, two]))
    assert problems == ["a circle of imports: fx.one -> fx.two -> fx.one"]


# --- headings --------------------------------------------------------------


def test_every_file_says_its_stage() -> None:
    assert list(stage_problems(library())) == []


def test_the_course_reads_the_same_stages() -> None:
    ours = {
        (str(source.path), *source.heading)
        for source in library()
        if source.heading
    }
    assert ours == {
        (f"fx/{file.path}", file.stage, file.title) for file in source_files()
    }


def test_a_file_without_a_stage_is_seen() -> None:
    (problem,) = stage_problems([snippet('"""A file."""', "fx/a.py")])
    assert problem.startswith("fx/a.py: the docstring does not begin")


def test_each_room_is_of_one_stage() -> None:
    assert list(room_problems(library())) == []


def test_a_file_in_the_room_of_another_stage_is_seen() -> None:
    room = snippet(LOW, "fx/room/__init__.py")
    (problem,) = room_problems([room, snippet(MID, "fx/room/mid.py")])
    assert problem == (
        "fx/room/mid.py: not of the stage that fx/room/__init__.py says"
    )
    full = snippet(LOW + "X = 1", "fx/room/__init__.py")
    (problem,) = stage_problems([full])
    assert problem.endswith("may hold a docstring alone")


# --- every prefix is a program ---------------------------------------------


def stages(sources: list[Source]) -> list[int]:
    """The stages that have files."""
    return sorted({source.stage for source in sources if source.stage})


def import_prefixes(
    sources: list[Source], folder: Path
) -> subprocess.CompletedProcess[str]:
    """Try to import the stages 01 to k, for each k."""
    arguments: list[str] = []
    for last in stages(sources):
        tree = folder / f"stages-01-{last:02d}"
        modules = write_prefix(sources, last, tree)
        arguments += [str(tree), *modules, "--"]
    return python("-m", "tests.checks.import_prefixes", *arguments)


def typecheck_prefixes(sources: list[Source], folder: Path) -> list[str]:
    """Run mypy on the stages 01 to k, for each k; returns its complaints.

    The stages are added to one tree, and mypy's cache keeps the results for
    the earlier ones and for torch, so that all runs cost about as much as one;
    `make types` has left what it found of torch.
    """
    for part in (ROOT / ".mypy_cache").glob("3.*/cache.*.db"):
        copy = folder / part.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        with closing(connect(part)) as kept, closing(connect(copy)) as new:
            kept.backup(new)  # whole, even while another mypy writes
    complaints = []
    for last in stages(sources):
        write_stage(sources, last, folder)
        run = python(
            *("-m", "mypy", "--config-file", str(ROOT / "pyproject.toml")),
            *("--strict", "--no-error-summary", "--no-pretty", "fx"),
            cwd=folder,
        )
        if run.returncode:
            complaints.append(f"stages 01-{last:02d}: {run.stdout}{run.stderr}")
    return complaints


def test_every_prefix_imports(tmp_path: Path) -> None:
    run = import_prefixes(library(), tmp_path)
    assert (run.returncode, run.stdout) == (0, ""), run.stdout + run.stderr


def test_every_prefix_type_checks(tmp_path: Path) -> None:
    complaints = typecheck_prefixes(library(), tmp_path)
    assert not complaints, "\n".join(complaints)
