"""How `make clients` notes what came out."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.clients import __main__ as program
from tests.clients import results
from tests.clients.judging import Row, Table, judged, known
from tests.clients.runner import SLOWEST, Cases, Result


def client(name: str, cases: Cases) -> Result:
    return Result(name, {"package": "1.0"}, cases, cases)


def test_a_run_writes_its_rows_and_leaves_all_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tables = ("clients", "reasons", "dead_code", "runs")
    before = {name: results.read(name) for name in tables}
    folder = tmp_path / "results"
    shutil.copytree(results.FOLDER, folder)
    monkeypatch.setattr(results, "FOLDER", folder)
    failing = {"one": {"error": "ValueError: no"}, "two": {"graph": "x"}}
    results.note([client("timm_features", failing)])
    (row,) = (
        row
        for row in results.read("clients")
        if row["client"] == "timm_features"
    )
    assert (row["cases"], row["same"], row["fail under both"]) == (
        *("2", "1", "1"),
    )
    for name in ("clients", "reasons"):
        now, then = (
            [row for row in rows if row["client"] != "timm_features"]
            for rows in (results.read(name), before[name])
        )
        assert now == then
    assert results.read("reasons")[-1]["why"] == "ValueError: no"
    assert results.read("dead_code") == before["dead_code"]


def test_models_that_do_not_run_are_counted_and_have_no_row(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "runs.csv").write_text("table,tried,versions\nx,9,torch 1\n")
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    monkeypatch.setattr(results, "version", {"torch": "2"}.get)
    heads = ("example", "other")
    table = Table("x", heads, known, ["torch"], explained={"b": "known"})
    found = [
        Row("a", ("right", "refused"), 1.5, "GuardError: no"),
        Row("b", ("not traced",), 0.0, "TraceError: no"),
        Row("c", (), 0.0, "not built"),
    ]
    results.note_models(table, found, keep=False)
    results.note_models(table, [found[0]._replace(seconds=2)], keep=True)
    assert (tmp_path / "x.csv").read_text() == (
        "model,example,other,CPU seconds,why\n"
        "a,right,refused,2.0,GuardError: no\nb,not traced,-,0.0,known\n"
    )
    assert results.read("runs") == [
        {"table": "x", "tried": "3", "versions": "torch 2"}
    ]


def test_a_model_is_traced_called_and_exported_in_both_modes() -> None:
    table = Table("x", ("eval", "train"), known, (), True, (False, True))
    row = judged(table, "convolutions")
    assert (row.calls, row.why) == (("right", "right"), "")
    assert row.others[0] == "yes"
    assert table.heads[2:] == ("torch.export", "its CPU seconds")
    assert judged(table, "no such").calls == ()


def test_the_slowest_run_only_if_they_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[str] = []

    def run(name: str) -> list[Result]:
        ran.append(name)
        return []

    monkeypatch.setattr(program, "run", run)
    monkeypatch.setattr(program, "note", lambda found: None)
    assert program.main([]) == 0
    assert "timm_features" in ran
    assert not SLOWEST & {*ran}
    program.main(["zoo_compiled"])
    assert ran[-1] == "zoo_compiled"
