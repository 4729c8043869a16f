"""Sessions of nox: `make newest`, `make matrix` and `make package`.

`nox -f tests/versions/noxfile.py --list` lists the rows of the matrix.  uv
makes the environments, because it does not read pip's settings, which may hold
torch back; `package` alone uses pip, as people do.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import Final

import nox

ROOT: Final = Path(__file__).resolve().parents[2]
CACHES: Final = ROOT / "build" / "matrix"
"""What uv downloaded for a torch that is not the newest: one at a time."""

UV: Final = os.environ.get("UV", "uv")

MAIN: Final = "3.12"
"""The Python that every torch is tried with."""

PYTHONS: Final = nox.project.python_versions(
    nox.project.load_toml(ROOT / "pyproject.toml")
)

_OLDEST, _NEWEST = re.findall(
    r'^(?:OLDEST|TESTED)_TORCH\b.*"2\.(\d+)"',
    (ROOT / "fx" / "torch_private" / "names.py").read_text("utf-8"),
    re.MULTILINE,
)
TORCHES: Final = [f"2.{n}" for n in range(int(_OLDEST), int(_NEWEST) + 1)]

ROWS: Final = [
    nox.param(python, torch, id=f"{python}/{torch}")
    for torch in TORCHES
    for python in PYTHONS
    if python == MAIN or torch in (TORCHES[0], TORCHES[-1])
]
"""Each torch with one Python; the oldest and the newest with all."""

EXTRAS: Final = ".[course,test]"
"""What the tests need besides torch."""

QUIET: Final = {"OMP_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": "1000000"}
"""As in the Makefile, under `test`."""

PYTEST: Final = (
    *("python", "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile"),
    *("-p", "no:cacheprovider"),
)

AT_NEWEST: Final = (
    "tests/library/test_codegen.py",
    "tests/library/test_compiled.py",
    "tests/library/test_partitioner.py",
    "tests/library/test_pytree_codegen.py",
    "tests/library/test_source_matcher.py",
    "tests/library/test_torch_private.py",
    "tests/library/test_torch_versions.py",
    "tests/library/test_trace.py",
    "tests/checks/test_api_surface.py",
    "tests/checks/test_torch_names.py",
    "tests/parity",
)
"""What compares with torch.fx, or needs what is private in torch.

`tests.versions.marked` names a test with the mark `newest` that is missing.
"""

# `python3.12` on the path may be a shim of pyenv, which does not start.
for _folder in Path.home().glob(".pyenv/versions/3.1[1-4].*/bin"):
    os.environ["PATH"] += f"{os.pathsep}{_folder}"

# An environment is made anew if it has another Python than the one asked for.
os.environ["NOX_ENABLE_STALENESS_CHECK"] = "1"
nox.options.envdir = ROOT / "build"
nox.options.default_venv_backend = "uv"
nox.options.download_python = "never"
nox.options.sessions = ()


@nox.session(python=os.environ.get("PYTHON", MAIN), reuse_venv=True)
def newest(session: nox.Session) -> None:
    """Test beside the newest torch that the package index lists."""
    session.chdir(ROOT)
    session.install(
        *("--upgrade-package", "torch", "--refresh-package", "torch"),
        *("--editable", EXTRAS),
    )
    need_newest(session)
    with session.chdir("build"):
        say = "import fx, torch; print('fx', fx.__version__, torch.__version__)"
        session.run("python", "-W", "error", "-c", say)
    session.run("python", "-m", "stages.tour", env=QUIET)
    marked = ("-p", "tests.versions.marked")
    session.run(*PYTEST, *marked, *AT_NEWEST, env=QUIET)


@nox.session
@nox.parametrize("python,torch", ROWS)
def matrix(session: nox.Session, torch: str) -> None:
    """Run the tests beside the newest patch of a torch; write the row.

    The environment is removed afterwards, and the downloads before the next
    torch; those of the newest stay in uv's own cache, for `newest`.
    """
    session.chdir(ROOT)
    for cache in CACHES.glob("*"):
        if cache.name != torch:
            shutil.rmtree(cache)
    ours = {"UV_CACHE_DIR": str(CACHES / torch)}
    env = {} if torch == TORCHES[-1] else ours
    try:
        session.install(EXTRAS, f"torch=={torch}.*", env=env)
        with session.chdir(session.create_tmp()):
            use_as_readme_says(session)
        session.run("python", "-m", "stages.tour", env=QUIET)
        row = ("-p", "tests.versions.row")
        session.run(*PYTEST, *row, "tests/library", env=QUIET)
    finally:
        shutil.rmtree(session.virtualenv.location, ignore_errors=True)


@nox.session(venv_backend="venv", python=str(ROOT / ".venv/bin/python"))
def package(session: nox.Session) -> None:
    """Build sdist and wheel, look inside, and use the wheel elsewhere."""
    session.chdir(ROOT)
    folder = Path(session.virtualenv.location)
    dist = folder / "dist"
    session.run(UV, "build", "-q", "--out-dir", str(dist), external=True)
    (sdist,), (wheel,) = dist.glob("*.tar.gz"), dist.glob("*.whl")
    listed = session.run(
        *("git", "ls-files", "--cached", "--others", "--exclude-standard"),
        external=True,
        silent=True,
    )
    files = {name for name in listed.splitlines() if (ROOT / name).is_file()}
    with tarfile.open(sdist) as tar:
        names = {one.name.partition("/")[2] for one in tar if one.isfile()}
    need_same(session, sdist, names - {"PKG-INFO"}, files)
    with zipfile.ZipFile(wheel) as archive:
        names = {one for one in archive.namelist() if ".dist-info/" not in one}
    library = {name for name in files if name.startswith("fx/")}
    need_same(session, wheel, names, library)

    session.install("-c", ".ci/constraints.txt", str(wheel))
    programs = folder / "programs"
    programs.mkdir()
    shutil.copy(ROOT / "tests" / "typing" / "client.py", programs)
    session.chdir(programs)
    use_as_readme_says(session, "client.py")
    version = wheel.name.split("-")[1]
    ask = (
        "import fx; from importlib.metadata import version as listed; "
        f"assert fx.__version__ == listed('fx-in-stages') == {version!r}; "
        f"assert fx.__file__.startswith({str(folder)!r})"
    )
    session.run("python", "-c", ask)
    session.run(
        *(str(ROOT / ".venv/bin/mypy"), "--strict", "--config-file="),
        *("--python-executable", str(folder / "bin" / "python")),
        *("readme.py", "client.py"),
        external=True,
    )


def need_newest(session: nox.Session) -> None:
    """End the session if its torch is older than what the index lists.

    The list is asked for anew, although a copy of it may be in uv's cache.  No
    setting that chooses versions counts, but those that say where it is do.
    """
    where = (
        "UV_(.*INDEX.*|.*CERTS?|.*TLS|.*HOST|.*HTTP.*|.*TIMEOUT|KEYRING.*"
        "|CACHE_DIR)"
    )
    options = (
        *("--universal", "--no-deps", "--no-header", "--no-annotate"),
        *("--refresh-package", "torch", "--python-version", PYTHONS[0]),
    )
    listed = subprocess.run(
        [UV, "pip", "compile", "-q", "--no-config", *options, "-"],
        env={
            name: value
            for name, value in os.environ.items()
            if not name.startswith("UV_") or re.fullmatch(where, name)
        },
        input="torch",
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    ask = "from importlib.metadata import version; print(version('torch'))"
    got = session.run_install("python", "-c", ask, silent=True).strip()
    # One line for each range of Pythons, if they get different versions.
    lines = re.findall(r"^torch==(\S+)", listed, re.MULTILINE)
    newest = max(lines, key=release)
    if release(got) < release(newest):
        session.error(
            f"The index lists torch {newest}, and build/newest got {got}. It "
            "was held back by a setting of uv (UV_CONSTRAINT, "
            "UV_EXCLUDE_NEWER, uv.toml), by a bound in pyproject.toml or in "
            "another package, or there is no wheel for this Python: try make "
            "newest PYTHON=…"
        )
    session.log(f"build/newest: torch {got}, the newest listed")


def release(version: str) -> tuple[int, ...]:
    """`(2, 15, 0)` for `"2.15.0+cpu"`, to compare versions by."""
    return tuple(map(int, version.partition("+")[0].split(".")))


def use_as_readme_says(session: nox.Session, *more: str) -> None:
    """Run the README's program here, far from the checkout, and `fx.show`."""
    text = (ROOT / "README.md").read_text("utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    Path("readme.py").write_text(program, "utf-8")
    for file in ("readme.py", *more):
        printed = session.run("python", file, silent=True)
        if "return add" not in printed:
            session.error(f"{file} does not print 'return add': {printed}")
    show = ("-m", "fx.show", "readme:Net", "--input", "2,4", "-o", "x.html")
    session.run("python", *show, silent=True)


def need_same(
    session: nox.Session, path: Path, packed: set[str], wanted: set[str]
) -> None:
    """End the session if a package has not just the files that it should."""
    if packed != wanted:
        lacks, strange = sorted(wanted - packed), sorted(packed - wanted)
        session.error(
            f"{path.name} lacks {lacks} and should not have {strange}"
        )
