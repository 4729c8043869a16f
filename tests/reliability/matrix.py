"""Runs the library's tests on other versions of Python and of torch.

python -m tests.reliability.matrix                  all (`make matrix`)
python -m tests.reliability.matrix 3.11/2.9 ...     these: Python/torch
PYTHONS="/a/bin/python3 /b/bin/python3" ...         with these Pythons too

The package index says which versions of torch there are: the newest patch of
each minor version is tried.  Each row has an environment of its own, which is
removed after it, and of the downloads only those of the newest torch are kept.
Rows are remembered in build/matrix, so that the table can be made in several
runs, and on several systems that share the folder.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tests.reliability import page
from tests.versions import pythons, uv
from tests.versions.newest import EXTRAS, QUIET
from tests.versions.package import readme_program

FOLDER: Final = uv.BUILD / "matrix"
ENVIRONMENT: Final = FOLDER / "environment"
CACHE: Final = FOLDER / "cache"
"""Where uv keeps downloads of all torches but the newest, one at a time."""

GIGABYTES: Final = 12
"""What a torch and its environment need, while both are there."""

MAIN: Final = "3.12"
"""The Python that every torch is tried with, if the machine has it."""

_EFFECTS = "tests/library/test_effects.py::"
_SMALL = "tests/library/test_small_passes.py::"
_CODEGEN = "tests/library/test_codegen.py::"
_SCHEMAS = "tests/library/test_operator_schemas.py::"
_PIPELINE = "tests/library/test_pipeline.py::"

WITHOUT: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "2.9": {
        "it cannot register an operator with an effect": (
            f"{_EFFECTS}test_an_operator_of_a_library_is_read_each_time",
            f"{_EFFECTS}test_higher_order_operators_with_an_effect",
            f"{_EFFECTS}test_functions_of_torch_that_draw_are_kept_either_way",
            f"{_EFFECTS}"
            "test_an_operator_on_copies_writes_nothing[auto_functionalized]",
            f"{_EFFECTS}test_an_operator_on_copies_writes_nothing[..._v2]",
            f"{_EFFECTS}test_class_and_reason[fxt.logged",
            f"{_EFFECTS}"
            "test_dead_code_elimination_goes_by_the_class[fxt.logged",
        ),
        "it lacks the parts of torch.fx that they compare with": (
            f"{_SMALL}test_nodes_are_sorted_and_go_no_further_than_they_must",
            f"{_SMALL}test_a_circle_is_told_and_nothing_is_moved",
            "tests/library/test_source_matcher.py::"
            "test_a_class_by_itself_by_its_name_and_by_its_base",
            f"{_CODEGEN}test_text_is_that_of_torch",
            f"{_CODEGEN}test_line_map_is_that_of_torch",
            "tests/library/test_readable_code.py::"
            "test_comments_and_shapes_as_torch_writes_them",
        ),
        "it names and declares its operators in another way": (
            f"{_EFFECTS}test_all_operators_beside_torch_fx",
            f"{_EFFECTS}test_every_method_of_tensors_is_judged",
            f"{_SCHEMAS}test_most_calls_can_be_normalized",
            f"{_SCHEMAS}test_what_cannot_be_normalized_can_be_an_error",
        ),
        "it enters one context manager from inside of another": (
            "tests/library/test_traced_state.py::"
            "test_a_switch_is_warned_of_where_the_user_calls_it",
        ),
        "its processes send each other messages of a wrong size": (
            f"{_PIPELINE}test_processes_train_as_one_does",
            f"{_PIPELINE}test_the_demo",
        ),
        "its Dynamo compiles nothing after the other tests": (
            "tests/library/test_pytree_codegen.py::"
            "test_dynamo_traces_into_nested_inputs",
            "tests/library/test_torch_graphs.py::"
            "test_a_backend_of_torch_compile_rewrites_with_fx",
            "tests/library/test_torch_graphs.py::"
            "test_a_backend_trains_a_resnet",
        ),
    },
}
"""torch -> why tests are left out beside it -> these tests.

Tests marked `newest`, which compare with what the newest torch.fx writes, are
left out by themselves beside any other torch.
"""


@dataclass
class Row:
    """What was found with a Python and a torch, or why nothing was.

    Attributes:
        python: its version, such as `"3.12.1"`.
        torch: its version, such as `"2.15.0+cpu"`.
        day: when it ran.
        used: whether the installed package did what the README says.
        tour: whether the tour ran.
        passed: how many tests passed.
        left_out: how many were left out.
        failed: the tests that failed.
        absent: why there is no row, if there is none.
    """

    python: str
    torch: str
    day: str = field(
        default_factory=lambda: datetime.now(tz=UTC).date().isoformat()
    )
    used: bool = False
    tour: bool = False
    passed: int = 0
    left_out: int = 0
    failed: list[str] = field(default_factory=list)
    absent: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        """As the table has it."""
        said = ["runs" if good else "fails" for good in (self.used, self.tour)]
        numbers = (f"{self.passed:,}", f"{self.left_out:,}")
        failed = "; ".join(self.failed).replace("|", "\\|") or "none"
        return (self.python, self.torch, *said, *numbers, failed)

    @property
    def good(self) -> bool:
        """Did all of it run?"""
        return self.used and self.tour and not self.failed


# --- what to run -----------------------------------------------------------


def oldest_torch() -> str:
    """The bound in pyproject.toml."""
    text = (uv.ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (torch,) = tomllib.loads(text)["project"]["dependencies"]
    return str(torch).removeprefix("torch>=")


def main_of(minors: Sequence[str]) -> str:
    """The Python that every torch is tried with."""
    return MAIN if MAIN in minors else minors[0]


def planned(
    minors: Sequence[str], torches: Sequence[str]
) -> list[tuple[str, str]]:
    """The pairs to run, so that each torch is installed for one time.

    Args:
        minors: the Pythons there are, such as `"3.12"`.
        torches: the versions of torch, the oldest first.

    Returns:
        Each torch with one Python, and the oldest and the newest with all.
    """
    main = main_of(minors)
    ends = (torches[0], torches[-1])
    return [
        (minor, torch)
        for torch in torches
        for minor in minors
        if minor == main or torch in ends
    ]


def left_out(torch: str) -> list[str]:
    """The tests that have no sense with a version of torch."""
    groups = WITHOUT.get(uv.minor(torch), {})
    return [test for tests in groups.values() for test in tests]


def need_space() -> None:
    """Check that a torch fits on the disk.

    Raises:
        OSError: it may not.
    """
    free = shutil.disk_usage(uv.ROOT).free / 1e9
    if free < GIGABYTES:
        raise OSError(
            f"make matrix needs {GIGABYTES} GB on the disk at a time, and "
            f"{free:.0f} GB are free"
        )


# --- a row -----------------------------------------------------------------


def inside(*arguments: str, cwd: Path = uv.ROOT) -> tuple[bool, str]:
    """Run Python in the environment: whether it worked, what it printed."""
    done = subprocess.run(
        [str(ENVIRONMENT / "bin" / "python"), *arguments],
        cwd=cwd,
        env={**os.environ, **QUIET},
        capture_output=True,
        text=True,
        check=False,
    )
    return not done.returncode, done.stdout + done.stderr


def used() -> tuple[bool, str]:
    """Use the installed package as the README says, far from the checkout."""
    programs = FOLDER / "programs"
    programs.mkdir(exist_ok=True)
    readme = (uv.ROOT / "README.md").read_text(encoding="utf-8")
    (programs / "readme.py").write_text(readme_program(readme))
    show = ("-m", "fx.show", "readme:Net", "--input", "2,4", "-o", "x.html")
    good, text = inside("readme.py", cwd=programs)
    shown, said = inside(*show, cwd=programs)
    return good and shown, text + said


def run(python: pythons.Python, torch: str, **more: str) -> Row:
    """Make an environment, use the package, run the tour and the tests.

    Args:
        python: the Python.
        torch: the version of torch.
        more: variables for uv.
    """
    options = ("--quiet", "--clear", "--python", python.path)
    try:
        uv.run("venv", *options, str(ENVIRONMENT), env=uv.settings())
        uv.install(ENVIRONMENT, EXTRAS, f"torch=={torch}", **more)
    except uv.UvError as error:
        last = str(error).splitlines()[-1].strip()
        return Row(python.text, torch, absent=last)
    _, version = inside("-c", "import torch; print(torch.__version__)")
    row = Row(python.text, version.split()[-1])
    row.used, usage = used()
    row.tour, tour = inside("-m", "stages.tour")
    _, listed = pytest(torch, "--collect-only")
    _, tests = pytest(torch, "-n", "2", "--dist", "loadfile")
    row.passed, row.failed = counted(tests)
    row.left_out = number("deselected", listed)
    name = f"{python.minor}-{uv.minor(torch)}.log"
    (FOLDER / name).write_text("\n".join((usage, tour, tests)))
    return row


def pytest(torch: str, *options: str) -> tuple[bool, str]:
    """Run the tests beside a torch, or list them: with `--collect-only`."""
    return inside(
        *("-m", "pytest", "-q", "-p", "no:cacheprovider", *options),
        *(f"--deselect={test}" for test in left_out(torch)),
        "tests/library",
    )


def summary(text: str) -> str:
    """The line with numbers that pytest prints at its end.

    Other lines may follow it, which libraries print when Python ends.  If there
    is none, since pytest did not come so far, it is the last line.
    """
    lines = re.findall(r"^.* in \d+\.\d+s(?: .*)?$", text, re.MULTILINE)
    return str([*text.strip().splitlines()[-1:], *lines][-1])


def number(word: str, text: str) -> int:
    """The number before a word in what pytest said at its end."""
    found = re.search(rf"(\d+) {word}\b", summary(text))
    return int(found[1]) if found else 0


def counted(tests: str) -> tuple[int, list[str]]:
    """How many passed, and which failed; if none ran, what was said last."""
    passed = number("passed", tests)
    failed = re.findall(
        r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", tests, re.MULTILINE
    )
    if not passed and not failed:
        failed = [summary(tests)]
    return passed, list(dict.fromkeys(failed))


# --- the table -------------------------------------------------------------


def remembered() -> dict[str, Row]:
    """The rows of earlier runs."""
    file = FOLDER / "rows.json"
    if not file.exists():
        return {}
    rows = json.loads(file.read_text())
    return {name: Row(**row) for name, row in rows.items()}


def remember(rows: Mapping[str, Row]) -> None:
    """Keep rows for later runs."""
    text = json.dumps({name: asdict(row) for name, row in rows.items()})
    (FOLDER / "rows.json").write_text(text)


def table(
    rows: Mapping[str, Row], found: Iterable[str], torches: Sequence[str]
) -> list[str]:
    """The lines of the table, and of what is not in it.

    Args:
        rows: what was run.
        found: the Pythons of this machine, such as `"3.12"`.
        torches: the versions of torch, the oldest first.
    """
    head = "Python | torch | used | tour | tests passed | left out | failed"
    there = [
        (minor, torch, row)
        for torch in map(uv.minor, torches)
        for minor in pythons.MINORS
        if (row := rows.get(f"{minor}/{torch}")) and not row.absent
    ]
    days = sorted({row.day for _, _, row in there}) or ["never"]
    return [
        *(f"| {head} |", "|---|---|---|---|--:|--:|---|"),
        *(f"| {' | '.join(row.cells)} |" for _, _, row in there),
        "",
        f"Run on {' and '.join(dict.fromkeys((days[0], days[-1])))}.",
        "",
        *(f"- {gap}" for gap in gaps(rows, found, torches)),
    ]


def gaps(
    rows: Mapping[str, Row], found: Iterable[str], torches: Sequence[str]
) -> Iterator[str]:
    """Say what is not in the table, and why."""
    there = {name.partition("/")[0] for name in rows} | {*found}
    minors = [minor for minor in pythons.MINORS if minor in there]
    for minor in pythons.MINORS:
        if minor not in there:
            yield f"Python {minor}: this machine does not have it."
    for row in rows.values():
        if row.absent:
            yield f"Python {row.python} with torch {row.torch}: {row.absent}"
    pairs = planned(minors, torches)
    every = [f"{minor}/{uv.minor(torch)}" for minor, torch in pairs]
    if lacking := [name for name in every if name not in rows]:
        yield f"Not run yet: {', '.join(lacking)}."
    yield (
        f"With other Pythons than {main_of(minors)}, only the oldest and the "
        "newest torch are tried."
    )
    yield (
        f"Left out beside every torch but {uv.minor(torches[-1])}: tests that "
        "compare with what the newest torch.fx writes or lists."
    )
    for torch, groups in WITHOUT.items():
        for why, tests in groups.items():
            yield f"Left out beside torch {torch}, as {why}: {len(tests)}."


# --- the command -----------------------------------------------------------


def run_all(
    pairs: Iterable[tuple[str, str]],
    found: Mapping[str, pythons.Python],
    newest: str,
    rows: dict[str, Row],
) -> Iterator[Row]:
    """Run pairs, and remember each row as soon as it is there.

    Downloads of the newest torch stay in uv's own cache, where `make newest`
    finds them; those of another are removed before the next torch.
    """
    cached = newest
    for minor, torch in pairs:
        if torch != cached:
            shutil.rmtree(CACHE, ignore_errors=True)
        cached = torch
        need_space()
        more = {} if torch == newest else {"UV_CACHE_DIR": str(CACHE)}
        row = run(found[minor], torch, **more)
        shutil.rmtree(ENVIRONMENT, ignore_errors=True)
        rows[f"{minor}/{uv.minor(torch)}"] = row
        remember(rows)
        yield row
    shutil.rmtree(CACHE, ignore_errors=True)


def main(argv: Sequence[str]) -> int:
    """Run versions, and write the table of all that have ever been run."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    found = pythons.found(os.environ.get("PYTHONS", "").split())
    torches = list(uv.newest_patches(oldest_torch()))[::-1]
    patches = {uv.minor(torch): torch for torch in torches}
    print("Pythons:", *(python.text for python in found.values()))
    print("torch:", *torches, flush=True)
    named = [pair.split("/") for pair in argv]
    pairs = [(python, patches[torch]) for python, torch in named]
    rows = remembered()
    pairs = pairs or planned(list(found), torches)
    good = True
    try:
        for row in run_all(pairs, found, torches[-1], rows):
            print(*row.cells, row.absent, sep=" | ", flush=True)
            good &= row.good or bool(row.absent)
    except OSError as error:
        print(error, file=sys.stderr)
        good = False
    page.write_table("matrix", table(rows, found, torches))
    return int(not good)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
