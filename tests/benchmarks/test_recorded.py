"""What is slower than recorded is found, named, and measured twice."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from tests.benchmarks import recorded
from tests.benchmarks.__main__ import main
from tests.benchmarks.measure import Rounds, Task, Unit, seconds
from tests.benchmarks.operations import TORCH, Benchmark, Library
from tests.benchmarks.report import DifferentWork, measured
from tests.benchmarks.tables import BENCHMARKS


class Clock:
    """A benchmark of two tasks on a clock of its own.

    torch takes one second, always; ours takes the given times in turn, and
    from then on the last of them.
    """

    def __init__(self, ours: Sequence[float]) -> None:
        self.now = 0.0
        self.ours = list(ours)

    def run_theirs(self, _: object) -> str:
        """Take one second."""
        self.now += 1.0
        return "done"

    def run_ours(self, _: object) -> str:
        """Take the next of our times."""
        self.now += self.ours.pop(0) if len(self.ours) > 1 else self.ours[0]
        return "done"

    def benchmark(self) -> Benchmark:
        """The benchmark, at one size."""

        def make(lib: Library, size: int) -> Task:
            return Task(self.run_theirs if lib is TORCH else self.run_ours, 1)

        def sample(task: Task, loops: int) -> float:
            return seconds(task, loops, lambda: self.now)

        unit = Unit("s", 1.0, sample)
        return Benchmark("fake", make, "A fake.", {}, (1,), (), unit, (), None)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of recorded ratios; five rounds for each row, in this process."""
    path = tmp_path / "recorded.toml"
    quick = Rounds(most=5, least=5, sample=0.0)
    monkeypatch.setattr(recorded, "FILE", path)
    monkeypatch.setattr(recorded, "ROUNDS", quick)
    monkeypatch.setattr(recorded, "apart", measured)
    return path


def status(recorded_ratio: float, file: Path, *ours: float) -> int:
    """The exit status of a comparison."""
    ratios = {("fake", 1): [recorded_ratio]}
    text = recorded.as_toml(ratios, date.today(), "")
    file.write_text(text, encoding="utf-8")
    return main(["--compare"], {"fake": Clock(ours).benchmark()})


def test_a_slower_row_is_named_with_both_ratios(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(4.0, file, 0.3) == 1
    said = capsys.readouterr().out
    assert "fake at 1 is slower: recorded 4.00, now 3.33 (-17%)" in said
    assert "3.33 to 3.33 in 5" in said
    assert "3.33 to 3.33 in 10" in said


def test_a_tenth_less_is_not_slower(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(3.7, file, 0.3) == 0
    assert status(1.0, file, 0.3) == 0
    said = capsys.readouterr().out
    assert said.count("no row is more than 10% slower") == 2
    assert "once more" not in said


def test_what_was_slow_once_is_measured_again(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # One run to compare results, one to warm up, five rounds.
    assert status(4.0, file, *[0.5] * 7, 0.25) == 0
    said = capsys.readouterr().out
    assert "2.00 to 2.00 in 5" in said
    assert "once more, with twice as many rounds:" in said
    assert "4.00 to 4.00 in 10" in said


def test_the_median_of_the_rounds_decides(file: Path) -> None:
    assert status(4.0, file, 1, 1, 0.25, 0.5, 0.25, 0.5, 0.25) == 0
    assert status(4.0, file, 1, 1, 0.5, 0.25, 0.5, 0.25, 0.5) == 1


def test_what_is_recorded_is_read_again(file: Path) -> None:
    bench = {"fake": Clock([0.25]).benchmark()}
    for runs in (1, 2):
        assert main(["--record"], bench) == 0
        known = recorded.load(file.read_text(encoding="utf-8"))
        assert known.ratios == {("fake", 1): [4.0] * runs}
        assert known.since == f"{date.today()}, {recorded.releases()}"


def test_the_median_of_the_runs_is_compared_with(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ratios = {("fake", 1): [9.0, 4.0, 2.0]}
    text = recorded.as_toml(ratios, date.today(), "")
    file.write_text(text, encoding="utf-8")
    assert main(["--compare"], {"fake": Clock([0.25]).benchmark()}) == 0
    assert "4.00      4.00      +0%" in capsys.readouterr().out


def test_a_row_that_is_not_recorded_is_shown_and_not_judged(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(recorded.as_toml({}, date.today(), "") + "[ratio]\n")
    bench = {"fake": Clock([9]).benchmark()}
    assert main(["--compare"], bench) == 0
    assert "none" in capsys.readouterr().out


def test_a_row_is_measured_in_a_child() -> None:
    clock = Clock([0.25])
    rounds = Rounds(most=2, least=2, sample=0.0)
    row = recorded.apart(clock.benchmark(), 1, rounds)
    assert (row.name, row.size, row.ratios) == ("fake", 1, [4.0, 4.0])
    assert clock.now == 0.0


def test_what_goes_wrong_in_a_child_is_told() -> None:
    def named(lib: Library, size: int) -> Task:
        return Task(lambda _: lib.name, 1)

    def fails(lib: Library, size: int) -> Task:
        raise ZeroDivisionError

    bench = Clock([1]).benchmark()
    with pytest.raises(DifferentWork, match="fake: results differ"):
        recorded.apart(replace(bench, make=named), 1, recorded.ROUNDS)
    broken = replace(bench, make=fails)
    with pytest.raises(RuntimeError, match="fake at 1: the child failed"):
        recorded.apart(broken, 1, recorded.ROUNDS)


def test_every_row_is_recorded() -> None:
    known = recorded.load(recorded.FILE.read_text(encoding="utf-8"))
    rows = {(b.name, size) for b in BENCHMARKS.values() for size in b.sizes}
    assert known.ratios.keys() == rows


def test_a_machine_that_became_slower_is_not_our_fault(
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    turns = iter([3.4, 3.3, 3.5, 3.4, 3.3, 3.2, 3.6, 3.5, 3.4, 3.3])
    monkeypatch.setattr(recorded, "git", lambda *_: _archive())
    monkeypatch.setattr(recorded, "_ratio_with", lambda *_: next(turns))
    text = recorded.as_toml({("fake", 1): [4.0]}, date.today(), "abc123")
    file.write_text(text, encoding="utf-8")
    bench = {"fake": Clock([0.3]).benchmark()}
    assert main(["--compare"], bench) == 0
    said = capsys.readouterr().out
    assert "in turn with fx of abc123" in said
    assert "3.40      3.40" not in said  # old 3.4, new 3.3
    assert "3.40      3.30" in said


def _archive() -> bytes:
    """What `git archive` prints for a tree of no files."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w"):
        pass
    return content.getvalue()


def test_a_row_that_lost_beside_the_recorded_fx_is_slower(
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    turns = iter([4.0, 3.3] * recorded.TURNS)
    monkeypatch.setattr(recorded, "git", lambda *_: _archive())
    monkeypatch.setattr(recorded, "_ratio_with", lambda *_: next(turns))
    text = recorded.as_toml({("fake", 1): [4.5]}, date.today(), "abc123")
    file.write_text(text, encoding="utf-8")
    assert main(["--compare"], {"fake": Clock([0.3]).benchmark()}) == 1
    said = capsys.readouterr().out
    assert "fake at 1 is slower: recorded 4.00, now 3.30 (-18%)" in said


def test_a_child_finds_the_fx_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "fx").mkdir()
    (tmp_path / "fx/__init__.py").write_text("raise ImportError('not this')")
    row = measured(Clock([0.25]).benchmark(), 1, Rounds(most=1, least=1))
    tiny = replace(row, name="lint", size=40)
    change = recorded.Change(BENCHMARKS["lint"], tiny)
    assert recorded._ratio_with(str(tmp_path), change) is None
    ratio = recorded._ratio_with(str(recorded.ROOT), change)
    assert ratio is not None and ratio > 0
