"""The tests of what changed, for as long as `make quick` has time.

They are those that the table of CONTRIBUTING.md names for the files that
changed since HEAD; if none has, since the branch left main.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Final

from tests.checks.contributing import FILE, Row, rows
from tests.process import ROOT

SECONDS: Final = 45
_SEARCH = "tests/reliability/test_reliability.py::test_nothing_is_wrong"


def git(*command: str) -> list[str]:
    """The lines that git prints; none if it fails."""
    run = subprocess.run(["git", *command], cwd=ROOT, capture_output=True)
    return run.stdout.decode().splitlines()


def changed() -> list[str]:
    """The files that differ from HEAD, or else from where main was left."""
    found = git("diff", "--name-only", "HEAD")
    found += git("ls-files", "--others", "--exclude-standard")
    return found or git("diff", "--name-only", *git("merge-base", "main", "@"))


def chosen(files: Iterable[str], table: Iterable[Row]) -> Iterator[str]:
    """The tests of some files: themselves, and those of the table."""
    for file in files:
        if re.search("/test_|/programs/[a-z]", file) and (ROOT / file).exists():
            yield file
        for row in table:
            places = [path.replace("NN", file[7:9]) for path in row.look_at]
            if file.startswith(tuple(places)):
                yield from row.tests


def commands(tests: Iterable[str]) -> Iterator[list[str]]:
    """The runs of pytest; the test that takes longest is the last."""
    pytest = [sys.executable, "-m", "pytest", "-q", "--maxfail=1"]
    found = sorted(dict.fromkeys(tests), key="tests/docs/test_build.py".__eq__)
    if stages := [test for test in found if test.startswith("stages/")]:
        yield [*pytest, "--reference", *stages]
    if parity := " or ".join(re.findall(r"/programs/(\w+)", str(found))):
        yield [*pytest, "tests/parity/test_programs.py", "-k", parity]
    part, short = r"tests/reliability/(?!test_)(\w+)\.py", rf"{_SEARCH}[\1]"
    rest = [re.sub(part, short, test) for test in found if test not in stages]
    if rest := [t for t in rest if not re.search("/browser/|/programs/", t)]:
        yield [*pytest, "-n2", "--dist=loadfile", *rest]


def main() -> int:
    """Run what there is time for; the exit status of the first that fails."""
    end = time.monotonic() + SECONDS
    tests = chosen(changed(), rows(FILE.read_text(encoding="utf-8")))
    for command in commands(tests):
        print(*command[2:], flush=True)
        with subprocess.Popen(command, cwd=ROOT) as run:
            try:
                if status := run.wait(max(end - time.monotonic(), 0)):
                    return status
            except subprocess.TimeoutExpired:
                run.send_signal(signal.SIGINT)
                print("no more time: `make test` runs the rest")
                return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
