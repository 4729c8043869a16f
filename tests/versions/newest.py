"""`make newest`: test beside the newest torch that the package index lists.

python -m tests.versions.newest                     what `make newest` does
python -m tests.versions.newest --python PATH       with this Python
python -m tests.versions.newest --only-install      make the environment
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.versions import pythons, uv

ENVIRONMENT: Final = uv.BUILD / "newest"

EXTRAS: Final = ".[course,test]"
"""What the tests need besides torch."""

TESTS: Final = (
    "tests/library",
    "tests/parity",
    "tests/versions",
    "tests/checks/test_api_surface.py",
    "tests/checks/test_claims.py",
)

PYTEST: Final = (
    *("-m", "pytest", "-q", "-n", "2", "--dist", "loadfile"),
    *("-p", "no:cacheprovider", "-p", "tests.versions.marked"),
)

QUIET: Final = {"OMP_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": "1000000"}
"""As in the Makefile, under `test`."""


class HeldBack(Exception):
    """What was installed is not the newest torch."""


def compared(got: str, newest: str, python: str) -> None:
    """Check that the torch of an environment is the newest.

    Raises:
        HeldBack: it is older; the message says where to look.
    """
    if uv.release(got) < uv.release(newest):
        raise HeldBack(
            f"The index lists torch {newest}, and build/newest got {got}. "
            "It was held back by a setting of uv (UV_CONSTRAINT, "
            "UV_EXCLUDE_NEWER, uv.toml), by a bound in pyproject.toml or in "
            f"another package, or there is no wheel for Python {python}: try "
            "make newest PYTHON=…"
        )


def prepared(python: pythons.Python) -> str:
    """Make or update the environment; the version of torch in it.

    Raises:
        HeldBack: it is not the newest.
        uv.UvError: uv could not find or install something.
    """
    newest = uv.listed("torch")
    if newest is None:
        raise HeldBack("The index lists no torch at all.")
    known = pythons.asked(str(ENVIRONMENT / "bin" / "python"))
    if known is None or known.version != python.version:
        options = ("--quiet", "--clear", "--python", python.path)
        uv.run("venv", *options, str(ENVIRONMENT), env=uv.settings())
    uv.install(
        ENVIRONMENT,
        *("--upgrade-package", "torch", "--refresh-package", "torch"),
        *("--editable", EXTRAS),
    )
    got = uv.installed(ENVIRONMENT)
    compared(got, newest, python.text)
    return got


def inside(*arguments: str, env: Mapping[str, str], cwd: Path = uv.ROOT) -> int:
    """Run Python in the environment; the exit status."""
    command = [str(ENVIRONMENT / "bin" / "python"), *arguments]
    return subprocess.run(command, cwd=cwd, env=env, check=False).returncode


def checked() -> int:
    """Import fx elsewhere, run the tour and the tests.

    Returns:
        0, or the status of something that failed; all is run in any case.
    """
    env = {**os.environ, **QUIET}
    say = "import fx, torch; print('fx', fx.__version__, torch.__version__)"
    statuses = (
        inside("-W", "error", "-c", say, env=env, cwd=ENVIRONMENT),
        inside("-m", "stages.tour", env=env),
        inside(*PYTEST, *TESTS, env=env),
    )
    return next(filter(None, statuses), 0)


def main(argv: Sequence[str] | None = None) -> int:
    """Make the environment, and test in it."""
    parser = argparse.ArgumentParser(prog="python -m tests.versions.newest")
    parser.add_argument("--python", help="the path of the Python to use")
    parser.add_argument("--only-install", action="store_true")
    options = parser.parse_args(argv)
    began = time.monotonic()
    try:
        python = chosen(options.python)
        print(f"build/newest: Python {python.text}; asking for torch …")
        torch = prepared(python)
    except (HeldBack, LookupError, uv.UvError) as error:
        print(error, file=sys.stderr)
        return 1
    took = time.monotonic() - began
    print(f"build/newest: torch {torch}, the newest listed ({took:.0f} s)")
    return 0 if options.only_install else checked()


def chosen(path: str | None) -> pythons.Python:
    """The Python that was named, or the newest of this machine.

    Raises:
        LookupError: there is none, or the one named does not start.
    """
    if path is None:
        return pythons.newest(pythons.found().values())
    python = pythons.asked(path)
    if python is None:
        raise LookupError(f"{path} does not start as a Python")
    return python


if __name__ == "__main__":
    sys.exit(main())
