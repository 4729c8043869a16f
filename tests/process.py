"""Python in a process of its own, as tests run it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]


def python(
    *arguments: str,
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    executable: str = sys.executable,
    timeout: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run Python, and keep what it prints.

    Args:
        arguments: its command line.
        cwd: the folder that it starts in.
        env: variables besides those of this process.
        executable: which Python, if not that of this process.
        timeout: seconds after which it is killed.

    Raises:
        subprocess.TimeoutExpired: it was killed.
    """
    return subprocess.run(
        [executable, *arguments],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )


def printed(
    *arguments: str, cwd: Path = ROOT, env: Mapping[str, str] | None = None
) -> str:
    """What Python prints, which must not fail; as `python` runs it."""
    done = python(*arguments, cwd=cwd, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def fork() -> int:
    """`os.fork`, for what cannot do without: five programs, none of the course.

    They try or measure fx many times, each in a child of a process that has
    imported torch: `docs.machinery.worker`, `tests.checks.import_prefixes`,
    `tests.reliability`, `tests.benchmarks` and `tests.benchmarks.start`.

    Raises:
        SystemExit: the system has no fork.
    """
    if not hasattr(os, "fork"):
        raise SystemExit(
            "this needs a system that can fork a process, such as Linux or "
            "macOS; fx and the course run without"
        )
    return os.fork()
