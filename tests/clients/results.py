"""The tables below tests/clients/results, from which docs/clients.md is drawn.

A run writes the rows of what it has run; all other rows stay.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final, TypeAlias

import torch

from tests.clients.apart import APART
from tests.clients.judging import CPU, Row, Table, rows
from tests.clients.runner import (
    BESIDE,
    CLIENTS,
    REWRITTEN,
    UNCOMPARED,
    Result,
    reasons,
)

FOLDER: Final = Path(__file__).with_name("results")

Cells: TypeAlias = Mapping[str, object]

SHOWN: Final = 120
"""How many letters of an error are kept."""

TRAINING: Final = (
    *("modules, torch.fx's rule", "nodes", "nodes in training"),
    *("modules, fx's own rule", "nodes, own rule", "in training, own rule"),
)
"""What is counted of a feature extractor, by both rules for dead code."""


def read(name: str) -> list[dict[str, str]]:
    """The rows of a table."""
    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file)]


def write(name: str, found: Sequence[Cells]) -> None:
    """Write a table, whose columns are those of its first row."""
    path = FOLDER / f"{name}.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*found[0]], lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)


def replace(name: str, key: str, found: Iterable[Cells]) -> None:
    """Put rows into a table, in place of those that have the same key."""
    new: dict[object, list[Cells]] = {}
    for row in found:
        new.setdefault(row[key], []).append(row)
    rows: list[Cells] = []
    for row in read(name):
        if row[key] in new:
            rows += new.pop(row[key])
        elif row not in rows:
            rows.append(row)
    write(name, [*rows, *(row for each in new.values() for row in each)])


# --- the clients ------------------------------------------------------------


def note(results: Sequence[Result]) -> None:
    """Write what the clients did."""
    ran = {result.client for result in results}
    stays = [row for row in read("reasons") if row["client"] not in ran]
    write("reasons", [*stays, *_reasons(results)])
    plain = [one for one in results if not one.client.endswith(REWRITTEN)]
    again = {one.client.partition(",")[0]: one for one in results}
    rows = [_row(one, again[one.client]) for one in plain]
    replace("clients", "client", rows)
    if extracted := [*_dead_code(plain)]:
        replace("dead_code", "model", extracted)


def _row(result: Result, again: Result) -> Cells:
    """What came out for a client, and when its files were rewritten."""
    name = result.client
    what = APART[name].about if name in APART else CLIENTS[name]
    versions = ", ".join(f"{k} {v}" for k, v in result.versions.items())
    ratio, rewritten = result.ratio(), again is not result
    return {
        "client": name,
        "about": what + " (beside)" * (name in BESIDE),
        "versions": versions,
        "cases": len(result.theirs),
        "same": result.same(),
        "fail under both": len(result.failing()),
        "differ": len(result.differing()),
        "same when rewritten": again.same() if rewritten else "",
        "differ when rewritten": len(again.differing()) if rewritten else "",
        "time": "" if ratio is None else f"{ratio:.2f}",
    }


def _reasons(results: Sequence[Result]) -> Iterator[Cells]:
    """Why cases differ or fail, those with the same reason together."""
    for result in results:
        known = reasons().get(result.client, {})
        differ = {
            name: f"{known.get(name) or known['*']}. (`{what[:SHOWN]}`)"
            for name, what in result.differing().items()
        }
        failing = {
            name: error[:SHOWN] for name, error in result.failing().items()
        }
        if result.client.endswith(REWRITTEN):
            failing = {}  # said of the client as it is
        for kind, said in (("differ", differ), ("fail under both", failing)):
            for why, names in _alike(said):
                yield {
                    "client": result.client,
                    "kind": kind,
                    "cases": names,
                    "why": why,
                }


def _alike(said: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each thing that is said of cases, and their names."""
    names: dict[str, list[str]] = {}
    for name, what in said.items():
        names.setdefault(what, []).append(name)
    for what, each in names.items():
        yield what, "; ".join(each)


def _dead_code(results: Sequence[Result]) -> Iterator[Cells]:
    """What stays of each model by both rules."""
    for result in results:
        for name, notes in result.ours.items():
            if UNCOMPARED in notes:
                sizes = [*_sizes(notes["sizes"]), *_sizes(notes[UNCOMPARED])]
                cells = dict(zip(TRAINING, sizes, strict=True))
                yield {"model": name.removesuffix(", features"), **cells}


def _sizes(note: str) -> list[str]:
    """The numbers that a case noted, after the lines of their structure."""
    return note.split("\n")[-3:]


# --- the models traced by fx.trace ------------------------------------------


def run_models(
    table: Table, names: Iterable[str], chosen: Sequence[str]
) -> int:
    """Judge models and say what came out; 1 if one is wrong.

    Args:
        table: how, and where it is written.
        names: all its models.
        chosen: models, or libraries of models; these alone are judged, and
            their rows take the place of others.
    """
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    some = {*chosen}
    if chosen:
        names = (n for n in names if some & {n, n.partition("/")[0]})
    found = []
    for row in rows(table, names):
        found.append(row)
        print(*row, sep="   ", flush=True)
    note_models(table, found, keep=bool(chosen))
    wrong = {row.name for row in found if "WRONG" in row.calls}
    return int(bool(wrong - table.explained.keys()))


def note_models(table: Table, found: Sequence[Row], *, keep: bool) -> None:
    """Write what came out for the models of a table that run at all.

    Args:
        table: where, and what its columns are.
        found: the rows.
        keep: whether all other rows stay, and what is said of the run.
    """
    written: list[Cells] = []
    for row in found:
        if row.calls:
            calls = [*row.calls, *["-"] * len(table.calls)]
            cells = (*calls[: len(table.calls)], *row.others)
            written.append(
                {
                    "model": row.name,
                    **dict(zip(table.heads, cells, strict=False)),
                    CPU: f"{row.seconds:.1f}",
                    "why": table.explained.get(row.name, row.why),
                }
            )
    if keep:
        replace(table.name, "model", written)
        return
    write(table.name, written)
    versions = ", ".join(f"{each} {version(each)}" for each in table.packages)
    run = {"table": table.name, "tried": len(found), "versions": versions}
    replace("runs", "table", [run])
