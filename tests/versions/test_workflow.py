"""The hosted workflow runs what the project says; `make workflow` checks it."""

from __future__ import annotations

import re

from tests.checks.files import targets
from tests.versions.pythons import MINORS
from tests.versions.uv import ROOT

WORKFLOW = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")


def test_it_runs_the_two_commands_and_newest() -> None:
    commands = re.findall(r"^ *- run: (.*)$", WORKFLOW, re.MULTILINE)
    assert commands == ["make tour", "make test", "make newest"]
    known = targets((ROOT / "Makefile").read_text("utf-8"))
    assert {command.removeprefix("make ") for command in commands} <= set(known)


def test_it_runs_them_with_the_oldest_and_the_newest_python() -> None:
    assert f'python: ["{MINORS[0]}", "{MINORS[-1]}"]' in WORKFLOW


def test_actions_are_pinned_and_may_only_read() -> None:
    actions = re.findall(r"uses: (\S+)", WORKFLOW)
    assert len(actions) == 4
    assert all(re.search("@[0-9a-f]{40}$", action) for action in actions)
    assert "\npermissions:\n  contents: read\n" in WORKFLOW
