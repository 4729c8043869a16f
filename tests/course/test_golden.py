"""The words of a check, whole: what a learner reads, as it was read and liked.

docs/course.md shows some of them.

After a change of these words on purpose: `python -m tests.course.test_golden`
writes tests/course/golden again; read the difference before it is committed.
"""

from __future__ import annotations

import re
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from stages.running import pool
from tests.course.learner import Learner

GOLDEN = Path(__file__).parent / "golden"
UNLINK, PREPEND = (
    "linked_list.linked_list.Link._unlink",
    "linked_list.linked_list.Link.prepend",
)


def first_check(learner: Learner) -> str:
    """Nothing is written, and the whole stage is checked."""
    return learner.check(1).output


def untouched(learner: Learner) -> str:
    """Nothing is written."""
    return learner.check(1, exercise=UNLINK).output


def first_right(learner: Learner) -> str:
    """One function is written, and right."""
    learner.write(UNLINK)
    return learner.check(1, exercise=UNLINK).output


def half_an_arrow(learner: Learner) -> str:
    """Only one of the two neighbours learns that a link is gone."""
    learner.write(UNLINK, "after._prev = before", "pass")
    return learner.check(1, exercise=UNLINK).output


def wrong_edge(learner: Learner) -> str:
    """Old edges of a node stay when it takes new arguments."""
    learner.write("node.Node._freeze")
    learner.write(
        "node.Node._connect",
        "            node.users.pop(self, None)",
        "            pass",
    )
    return learner.check(2, exercise="node.Node._connect").output


def wrong_line(learner: Learner) -> str:
    """A generated line frees nothing."""
    learner.body("codegen.emit.Emitter._end", 'return "\\n"')
    return learner.check(5, exercise="codegen.emit.Emitter._end").output


CASES = {
    case.__name__: case
    for case in (
        *(first_check, untouched, half_an_arrow, first_right),
        *(wrong_edge, wrong_line),
    )
}


def _steady(text: str) -> str:
    """A text without the time it took."""
    return re.sub(r"=+ (.*) in [\d.]+s =+", r"== \1 ==", text).strip() + "\n"


@pytest.mark.parametrize("name", CASES)
def test_the_words_are_these(name: str, learner: Learner) -> None:
    expected = (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")
    assert _steady(CASES[name](learner)) == expected


def _write(executor: ProcessPoolExecutor) -> None:
    """Write all golden texts anew."""
    for name, case in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            learner = Learner.new(Path(folder) / "exercises", executor)
            text = _steady(case(learner))
        (GOLDEN / f"{name}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    with pool() as processes:
        _write(processes)
    sys.exit()
