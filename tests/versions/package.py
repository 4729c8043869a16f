"""`make package`: build sdist and wheel, and use the wheel as people do.

The wheel is built from the sdist, so that both are known to be whole.  It is
installed into a new environment, which has nothing else of this project: the
README's program runs there, and mypy checks two typed programs against it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from tests.checks.files import tracked
from tests.versions import uv

FOLDER: Final = uv.BUILD / "package"
ENVIRONMENT: Final = FOLDER / "environment"
PROGRAMS: Final = FOLDER / "programs"
"""Programs of a user; nothing beside them is of this project."""

PRINTED: Final = {"readme.py": "return add", "client.py": "'return add'"}
"""The two programs, and something that each of them prints."""

MADE: Final = {"sdist": ("PKG-INFO",), "wheel": (".dist-info/",)}
"""Files that the builder adds."""


class PackageError(Exception):
    """Something about the package is not as it should be."""


def strange(
    what: str, packed: Iterable[str], wanted: Iterable[str]
) -> Iterator[str]:
    """Say which files are in a package and should not be, or the reverse."""
    there, right = set(packed), set(wanted)
    yield from (f"the {what} lacks {name}" for name in sorted(right - there))
    yield from (f"the {what} has {name}" for name in sorted(there - right))


def in_sdist(path: Path) -> list[str]:
    """The files of an sdist, without its folder and what the builder adds."""
    with tarfile.open(path) as archive:
        files = [entry.name for entry in archive if entry.isfile()]
    names = [name.partition("/")[2] for name in files]
    return [name for name in names if name not in MADE["sdist"]]


def in_wheel(path: Path) -> list[str]:
    """The files of a wheel, without those that describe it."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    return [name for name in names if MADE["wheel"][0] not in name]


def problems(sdist: Path, wheel: Path, files: Iterable[str]) -> list[str]:
    """What is wrong with the files of both.

    Args:
        sdist: it should have every file of the project.
        wheel: it should have those of fx/ alone.
        files: the files of the project.
    """
    every = list(files)
    library = [name for name in every if PurePosixPath(name).parts[0] == "fx"]
    return [
        *strange("sdist", in_sdist(sdist), every),
        *strange("wheel", in_wheel(wheel), library),
    ]


def build() -> tuple[Path, Path]:
    """Build both into an empty folder; the paths of sdist and wheel."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    out = FOLDER / "dist"
    uv.run("build", "--quiet", "--out-dir", str(out), env=uv.settings())
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    return sdist, wheel


def readme_program(text: str) -> str:
    """The program under "In use".

    Raises:
        PackageError: there is not exactly one.
    """
    programs = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    if len(programs) != 1:
        raise PackageError(f"README.md has {len(programs)} programs, not one")
    return str(programs[0])


def say(*command: str | Path, cwd: Path = PROGRAMS) -> str:
    """What a command prints.

    Raises:
        PackageError: it failed; with what it printed.
    """
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        short = " ".join(Path(part).name for part in map(str, command))
        raise PackageError(f"{short}\n{done.stdout}{done.stderr}")
    return done.stdout


def install(wheel: Path) -> Path:
    """Make an environment with the wheel; its Python."""
    say(sys.executable, "-m", "venv", ENVIRONMENT, cwd=uv.ROOT)
    python = ENVIRONMENT / "bin" / "python"
    options = ("-q", "--disable-pip-version-check", "-c", ".ci/constraints.txt")
    say(python, "-m", "pip", "install", *options, wheel, cwd=uv.ROOT)
    return python


def use(python: Path, version: str) -> None:
    """Run a user's programs, and check their types with the mypy of .venv."""
    PROGRAMS.mkdir(parents=True)
    readme = (uv.ROOT / "README.md").read_text(encoding="utf-8")
    (PROGRAMS / "readme.py").write_text(readme_program(readme))
    shutil.copy(uv.ROOT / "tests" / "typing" / "client.py", PROGRAMS)
    for name, text in PRINTED.items():
        if text not in say(python, name):
            raise PackageError(f"{name} does not print {text!r}")
    say(python, "-m", "fx.show", "readme:Net", "--input", "2,4", "-o", "x.html")
    ask = (
        "import fx; from importlib.metadata import version; "
        "print(fx.__version__, version('fx-in-stages'), fx.__file__)"
    )
    ours, listed, where = say(python, "-c", ask).split()
    if (ours, listed) != (version, version) or str(ENVIRONMENT) not in where:
        raise PackageError(f"{where} is {ours}, the package {listed}")
    mypy = (sys.executable, "-m", "mypy", "--strict", "--config-file=")
    options = ("--python-executable", python, "--cache-dir", FOLDER / "mypy")
    say(*mypy, *options, *PRINTED)


def main() -> int:
    """Build, look inside, install, use."""
    try:
        sdist, wheel = build()
        files = [path.relative_to(uv.ROOT).as_posix() for path in tracked()]
        if wrong := problems(sdist, wheel, files):
            raise PackageError("\n".join(wrong))
        use(install(wheel), wheel.name.split("-")[1])
    except (PackageError, uv.UvError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{sdist.name} and {wheel.name} are whole, and work")
    return 0


if __name__ == "__main__":
    sys.exit(main())
