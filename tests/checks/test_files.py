"""No file depends on one machine, and each `make` target named exists."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.checks.files import (
    machine_problems,
    mentioned_targets,
    targets,
    tracked,
)
from tests.checks.sources import ROOT

# --- machines --------------------------------------------------------------


def test_no_file_is_tied_to_a_machine() -> None:
    problems: list[str] = []
    for file in tracked():
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a picture
        problems += machine_problems(str(file.relative_to(ROOT)), text)
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("see https://py" + "pi.org/x", "a package host: py" + "pi.org"),
        ("https://unpkg" + ".com/x.js", "a package host: unpkg" + ".com"),
        ("pip --extra-" + "index-url x", "a package index: --extra-index"),
        ("x = '/wo" + "rk/main/fx'", "a path of one machine: /wo" + "rk/m"),
        ("cd /ro" + "ot/x", "a path of one machine: /ro" + "ot/x"),
        ("at /t" + "mp/tv/x", "a path of one machine: /t" + "mp/t"),
    ],
)
def test_a_tie_to_a_machine_is_seen(line: str, complaint: str) -> None:
    (problem,) = machine_problems("a.md", f"# Fine\n{line}")
    assert problem.startswith(f"a.md:2: {complaint}")


def test_new_files_are_read_before_they_are_committed(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "new.py").write_text("")
    (tmp_path / "x.log").write_text("")
    names = [file.name for file in tracked(tmp_path)]
    assert names == [".gitignore", "new.py"]
    assert ROOT / "pyproject.toml" in tracked()


# --- make ------------------------------------------------------------------


def makefile() -> dict[str, str | None]:
    """The targets of this project's Makefile."""
    return targets((ROOT / "Makefile").read_text(encoding="utf-8"))


def test_every_target_has_its_line_of_help() -> None:
    assert {"help", "test", "tour", "lint", "types"} <= makefile().keys()
    assert [name for name, text in makefile().items() if not text] == []
    assert targets("all: help\n\nhelp: ## Print.\nX := y\n") == {
        "all": None,
        "help": "Print.",
    }


def test_make_alone_prints_the_targets() -> None:
    run = subprocess.run(
        ["make", "--no-print-directory"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name, text in makefile().items():
        assert f"  {name:11}  {text}" in run.stdout
    first, _, rest = run.stdout.partition("for those who work on fx:\n")
    assert len(first.splitlines()) == 1 + 6
    assert len(rest.splitlines()) == len(makefile()) - 6


def test_every_target_that_a_page_names_exists() -> None:
    pages = [file for file in tracked() if file.suffix == ".md"]
    wrong = [
        f"{page.relative_to(ROOT)}: make {target}"
        for page in pages
        for target in mentioned_targets(page.read_text(encoding="utf-8"))
        if target not in makefile()
    ]
    assert not wrong, "\n".join(wrong)


# --- pyproject.toml --------------------------------------------------------


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def test_types_are_checked_wherever_there_is_code() -> None:
    assert PROJECT["tool"]["mypy"]["files"] == ["fx", "stages", "tests", "docs"]
    types = (ROOT / "Makefile").read_text("utf-8").partition("types:")[2]
    assert "mypy --no-error-summary $$stage/*.py" in types
    assert "cd exercises && ../$(BIN)/mypy" in types


def test_the_wheel_holds_the_library_alone() -> None:
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel == {"packages": ["fx"]}
    assert PROJECT["project"]["dependencies"] == ["torch>=2.9"]  # and no bound
    assert (ROOT / "fx" / "py.typed").exists()
