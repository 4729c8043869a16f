"""Imports the stages 01 to k, for each k, in a separate process.

    python -m tests.checks.import_prefixes TREE MODULE... -- TREE MODULE...

torch is imported once; then, for each tree, a forked child puts the tree at
the head of the path and imports its modules one by one.  Prints one line for
each module that does not import, or comes from elsewhere; exit 1 if any did.
Run by test_floors.py as a program, so that no fx is imported beforehand.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from itertools import groupby
from pathlib import Path

import torch

from tests.process import fork


def import_from(tree: Path, module: str) -> str | None:
    """Import one module; a line about it if it fails, or is not in the tree."""
    try:
        loaded = importlib.import_module(module)
    except BaseException:  # whatever a module raises, it must be told
        lines = traceback.format_exc().strip().splitlines()
        return f"{tree.name}: import {module}: {lines[-1]}"
    where = Path(loaded.__file__ or "")
    if not where.is_relative_to(tree):
        return f"{tree.name}: import {module}: found elsewhere, in {where}"
    return None


def check_tree(tree: Path, modules: list[str]) -> int:
    """Import all modules of one tree; returns how many failed."""
    sys.path.insert(0, str(tree))
    failures = [import_from(tree, module) for module in modules]
    for line in filter(None, failures):
        print(line, flush=True)
    return sum(line is not None for line in failures)


def in_child(tree: Path, modules: list[str]) -> bool:
    """Run `check_tree` in a forked child; returns whether all succeeded."""
    child = fork()
    if child == 0:
        status = 1
        try:
            status = min(check_tree(tree, modules), 1)
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


def main(arguments: list[str]) -> int:
    """Check each `TREE MODULE...` of the arguments."""
    assert torch.__version__
    if any(name.partition(".")[0] == "fx" for name in sys.modules):
        print("fx was imported before its prefixes were tried")
        return 1
    groups = [
        list(group)
        for dashes, group in groupby(arguments, "--".__eq__)
        if not dashes
    ]
    passed = [in_child(Path(tree), modules) for tree, *modules in groups]
    return 0 if passed and all(passed) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
