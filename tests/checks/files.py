"""The files of the project, and words that none of them may contain."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.checks.sources import ROOT

_HOSTS = (
    ("pypi", "org"),
    ("pythonhosted", "org"),
    ("download", "pytorch", "org"),
    ("npmjs", "org"),
    ("npmjs", "com"),
    ("unpkg", "com"),
    ("jsdelivr", "net"),
    ("conda", "anaconda", "org"),
)
"""Hosts that packages come from, in parts: this file names none either."""

_HOST = re.compile(
    "|".join(r"\b" + r"\.".join(parts) + r"\b" for parts in _HOSTS)
)
_INDEX = re.compile(r"--(?:extra-)?index-url|--find-link[s]|\bindex_url\b")
_PATH = re.compile(r"(?<![\w.*$}~<>-])/(?:home|opt|root|tmp|Users|work)/\w")


def tracked(root: Path = ROOT) -> list[Path]:
    """The project's files: those that git knows, or would add."""
    run = subprocess.run(
        ["git", "ls-files", "-z", "-co", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    files = {root / name for name in run.stdout.split("\0") if name}
    return sorted(file for file in files if file.is_file())


def machine_problems(name: str, text: str) -> Iterator[str]:
    """Words that work on one machine only, or name one package index."""
    for number, line in enumerate(text.splitlines(), 1):
        for what, pattern in (
            ("a package host", _HOST),
            ("a package index", _INDEX),
            ("a path of one machine", _PATH),
        ):
            if found := pattern.search(line):
                yield f"{name}:{number}: {what}: {found[0]}"


def targets(makefile: str) -> dict[str, str | None]:
    """The targets of a Makefile, each with its line of help if it has one."""
    found = re.findall(
        r"^([a-z][\w-]*):(?!=)[^#\n]*(?:##\*? (.*))?$", makefile, re.MULTILINE
    )
    return {name: help_text or None for name, help_text in found}


def mentioned_targets(text: str) -> set[str]:
    """The `make X` that a text tells its reader to run.

    It is found only in code: in backticks, after a prompt, or in a block that
    is indented or fenced.  "To make sense" in a sentence is not a target.
    """
    fenced = "".join(re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S))
    commands = re.findall(
        r"(?:`|^ *\$ | {4,}|&& *)make((?: +[a-z][\w-]*)+)", text, re.MULTILINE
    ) + re.findall(r"^make((?: +[a-z][\w-]*)+)", fenced, re.MULTILINE)
    return {target for command in commands for target in command.split()}
