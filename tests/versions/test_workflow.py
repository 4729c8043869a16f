"""The hosted workflow runs what the project says; `make workflow` checks it."""

from __future__ import annotations

import re
import tomllib

from tests.checks.files import targets
from tests.process import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PYTHONS = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
WORKFLOW = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")


def test_it_runs_the_two_commands_and_newest() -> None:
    commands = re.findall(r"^ *- run: make (.*)$", WORKFLOW, re.MULTILINE)
    assert commands == ["tour", "test", f"newest PYTHON=python{PYTHONS[-1]}"]
    known = targets((ROOT / "Makefile").read_text("utf-8"))
    assert {command.split()[0] for command in commands} <= set(known)


def test_it_runs_them_with_the_oldest_and_the_newest_python() -> None:
    assert f'python: ["{PYTHONS[0]}", "{PYTHONS[-1]}"]' in WORKFLOW
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"


def test_actions_are_pinned_and_may_only_read() -> None:
    actions = re.findall(r"uses: (\S+)", WORKFLOW)
    assert len(actions) == 4
    assert all(re.search("@[0-9a-f]{40}$", action) for action in actions)
    assert "\npermissions:\n  contents: read\n" in WORKFLOW
