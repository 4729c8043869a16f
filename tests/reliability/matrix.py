"""Runs the library's tests on other versions of Python and of torch.

python -m tests.reliability.matrix                  all (`make matrix`)
python -m tests.reliability.matrix 3.11/2.9 ...     these: Python/torch

Each version gets an environment of its own under build/matrix, made by uv; the
first run downloads some gigabytes. An interpreter that the machine lacks is
left out of the table.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from tests.reliability import page

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "matrix"

Row: TypeAlias = tuple[str, ...]
"""The cells of a row: versions, tour, passed, left out, failed."""

SAY_VERSIONS = (
    "import sys, torch; print(sys.version.split()[0], torch.__version__)"
)

TORCH = ("2.9", "2.10", "2.11", "2.12", "2.13")
"""The minor versions of the range in pyproject.toml."""

PYTHON = ("3.11", "3.12", "3.13")
"""The first with each torch, the others with the newest."""

NEEDS = "numpy,pytest>=9,hypothesis>=6.150,rich,tabulate"

_EFFECTS = "tests/library/test_effects.py::"
BESIDE_NEWEST = (
    "tests/library/test_codegen.py::test_text_is_that_of_torch",
    "tests/library/test_codegen.py::test_line_map_is_that_of_torch",
    "tests/library/test_codegen.py::test_globals_are_those_of_torch",
    "tests/library/test_readable_code.py::test_comments_and_shapes_as_torch",
    "tests/library/test_pytree_codegen.py::test_boxed_calls",
    "tests/library/test_operator_schemas.py::test_most_calls_can_be_normalized",
    "tests/library/test_operator_schemas.py::test_what_cannot_be_normalized",
    f"{_EFFECTS}test_all_operators_beside_torch_fx",
    f"{_EFFECTS}test_every_method_of_tensors_is_judged",
    "tests/library/test_partitioner.py::test_as_torch_fx",
    "tests/library/test_partitioner.py::test_never_more_pieces_than_torch_fx",
)
"""Tests that compare with what torch.fx 2.13 writes, or lists what is in it."""

WITHOUT_EFFECTFUL = (
    f"{_EFFECTS}test_an_operator_of_a_library_is_read_each_time",
    f"{_EFFECTS}test_higher_order_operators_with_an_effect",
    f"{_EFFECTS}test_functions_of_torch_that_draw_are_kept_either_way",
    f"{_EFFECTS}test_an_operator_on_copies_writes_nothing[auto_functionalized]",
    f"{_EFFECTS}test_an_operator_on_copies_writes_nothing[..._v2]",
    f"{_EFFECTS}test_class_and_reason[fxt.logged",
    f"{_EFFECTS}test_dead_code_elimination_goes_by_the_class[fxt.logged",
)
"""Tests that register operators with an effect, which torch 2.9 cannot."""

PRINTED_OTHERWISE = (
    "tests/library/test_split_module.py::test_networks_in_stages[bert_base]",
    "tests/library/test_split_utils.py::test_networks_in_three[bert_base]",
)
"""Tests that compare a union type with what torch.fx 2.9 prints for it."""

_SMALL = "tests/library/test_small_passes.py::"
NOT_IN_OLDEST = (
    f"{_SMALL}test_nodes_are_sorted_and_go_no_further_than_they_must",
    f"{_SMALL}test_a_circle_is_told_and_nothing_is_moved",
    "tests/library/test_source_matcher.py::"
    "test_a_class_by_itself_by_its_name_and_by_its_base",
)
"""Tests that compare with what torch.fx 2.9 has not got."""

_PIPELINE = "tests/library/test_pipeline.py::"
NO_PIPELINE = (
    f"{_PIPELINE}test_processes_train_as_one_does",
    f"{_PIPELINE}test_the_demo",
)
"""Tests of processes: those of torch 2.9 send 8 bytes where 4 are awaited."""

ALONE = (
    "tests/library/test_torch_graphs.py::"
    "test_a_backend_of_torch_compile_rewrites_with_fx",
)
"""Passes on torch 2.9 by itself; after all the other tests, in one process,
its Dynamo compiles nothing any more."""


def left_out(torch: str) -> tuple[str, ...]:
    """The tests that have no sense with a version of torch."""
    if torch == TORCH[-1]:
        return ()
    oldest = (
        *(WITHOUT_EFFECTFUL + PRINTED_OTHERWISE + ALONE),
        *(NOT_IN_OLDEST + NO_PIPELINE),
    )
    return BESIDE_NEWEST + (oldest if torch == TORCH[0] else ())


def command(python: str, torch: str) -> list[str]:
    """uv, up to the program that it runs in an environment."""
    uv = shutil.which("uv") or str(FOLDER / "uv" / "bin" / "uv")
    options = ["--quiet", "--isolated", "--no-project", "--python", python]
    needs = ["--with", f"torch=={torch}.*", "--with", NEEDS]
    return [uv, "run", *options, *needs, "python"]


def run(python: str, torch: str) -> Row | None:
    """Run the tour and the tests; None if there is no such interpreter."""
    environment = {
        **os.environ,
        "UV_CACHE_DIR": str(FOLDER / "cache"),
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_NATIVE_TLS": "1",
        "UV_SYSTEM_CERTS": "1",
    }

    def result(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command(python, torch), *args],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    versions = result("-c", SAY_VERSIONS)
    if versions.returncode:
        print(f"Python {python}, torch {torch}: not to be had here")
        print(versions.stderr[-500:])
        return None
    tour = result("-m", "stages.tour")
    tests = result(
        *("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/library"),
        *(f"--deselect={test}" for test in left_out(torch)),
    )
    log = tour.stdout + tour.stderr + tests.stdout + tests.stderr
    (FOLDER / f"{python}-{torch}.log").write_text(log)
    toured = "runs" if not tour.returncode else "fails"
    return (*versions.stdout.split(), toured, *_counts(tests))


def _counts(tests: subprocess.CompletedProcess[str]) -> Row:
    """How many passed and were left out, and which failed."""
    last = tests.stdout.strip().splitlines()[-1]
    numbers = {word: n for n, word in re.findall(r"(\d+) (\w+)", last)}
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", tests.stdout, re.MULTILINE)
    if tests.returncode and not failed:
        failed = [last]
    passed = int(numbers.get("passed", "0"))
    without = numbers.get("deselected", "0")
    return f"{passed:,}", without, "; ".join(failed) or "none"


def main(argv: Sequence[str]) -> int:
    """Run versions, and write the table of all that have ever been run."""
    pairs = [tuple(pair.split("/")) for pair in argv]
    every = [(PYTHON[0], torch) for torch in TORCH]
    every += [(python, TORCH[-1]) for python in PYTHON[1:]]
    FOLDER.mkdir(parents=True, exist_ok=True)
    for python, torch in pairs or every:
        if row := run(python, torch):
            print(*row, sep=" | ", flush=True)
            (FOLDER / f"{python}-{torch}.row").write_text(" | ".join(row))
    files = [FOLDER / f"{python}-{torch}.row" for python, torch in every]
    rows = [file.read_text() for file in files if file.exists()]
    head = "Python | torch | tour | tests passed | left out | failed"
    lines = [f"| {row} |" for row in (head, *rows)]
    lines.insert(1, "|---|---|---|--:|--:|---|")
    page.write_table("matrix", lines)
    return int(any(not row.endswith("none") for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
