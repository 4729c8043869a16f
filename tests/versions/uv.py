"""Ask uv which torch the package index lists, and make environments with it.

pip obeys the settings of a machine, such as a file of constraints, without a
word.  uv does not read pip's settings, but it has some of its own.  They count
when something is installed, and are left aside when the index is asked what it
lists, so that one can be compared with the other.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
BUILD: Final = ROOT / "build"

_WHERE: Final = re.compile(
    "UV_(.*INDEX.*|.*CERTS?|.*TLS|.*HOST|.*HTTP.*|.*TIMEOUT|KEYRING.*|CACHE_DIR)"
)
"""Settings that say where the index is and how it is reached."""


class UvError(Exception):
    """uv did not do what it was asked to; the message is its own."""


def program() -> str:
    """The uv on PATH, or the one that the Makefile installs."""
    return shutil.which("uv") or str(BUILD / "uv" / "bin" / "uv")


def settings(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment in which uv installs.

    It trusts the certificates that this machine trusts, and uses the Pythons
    that are there, where it would get one from elsewhere.
    """
    ours = {"UV_SYSTEM_CERTS": "1", "UV_PYTHON_DOWNLOADS": "never"}
    return {**ours, **environment}


def bare(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment without the settings of uv that choose versions.

    UV_CONSTRAINT, UV_EXCLUDE_NEWER, UV_OFFLINE and the like are not in it; what
    says where the index is stays.
    """
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith("UV_") or _WHERE.fullmatch(name)
    }


def run(*arguments: str, env: Mapping[str, str], stdin: str = "") -> str:
    """What uv prints.

    Raises:
        UvError: it failed.
    """
    done = subprocess.run(
        [program(), *arguments],
        cwd=ROOT,
        env=dict(env),
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise UvError(done.stderr.strip())
    return done.stdout


def minor(version: str) -> str:
    """`"2.15"` for `"2.15.0+cpu"`."""
    return ".".join(version.split(".")[:2])


def release(version: str) -> tuple[int, ...]:
    """`(2, 15, 0)` for `"2.15.0+cpu"`, to compare versions by."""
    return tuple(int(part) for part in version.split("+")[0].split("."))


# --- what the index lists --------------------------------------------------


def listed(requirement: str = "torch", python: str = "3.11") -> str | None:
    """The newest version that the index lists, for this Python or newer ones.

    The list is asked for anew, although a copy of it may be in uv's cache.
    Neither what is installed nor any setting that chooses versions counts.

    Returns:
        The version, or None if nothing in the list fits the requirement.
    """
    options = ["--universal", "--no-deps", "--no-header", "--no-annotate"]
    options += ["--no-config", "--quiet", "--refresh-package", "torch"]
    try:
        text = run(
            *("pip", "compile", *options, "--python-version", python, "-"),
            env=bare(settings()),
            stdin=requirement,
        )
    except UvError as error:
        if "No solution found" in str(error):
            return None
        raise
    # One line for each range of Pythons, if they get different versions.
    lines: list[str] = re.findall(r"^torch==(\S+)", text, re.MULTILINE)
    return max(lines, key=release)


def newest_patches(oldest: str) -> Iterator[str]:
    """The newest patch of each minor version from `oldest` on, newest first."""
    found = listed(f"torch>={oldest}")
    while found:
        yield found
        found = listed(f"torch>={oldest},<{minor(found)}")


# --- environments ----------------------------------------------------------


def installed(environment: Path) -> str:
    """The version of torch in an environment.

    Raises:
        UvError: there is none.
    """
    python = str(environment / "bin" / "python")
    text = run("pip", "show", "--python", python, "torch", env=settings())
    (version,) = re.findall(r"^Version: (\S+)", text, re.MULTILINE)
    return str(version)


def install(environment: Path, *arguments: str, **more: str) -> None:
    """Install into an environment; variables are added to the settings."""
    python = str(environment / "bin" / "python")
    run(
        *("pip", "install", "--quiet", "--python", python, *arguments),
        env={**settings(), **more},
    )
