"""The page docs/clients.md, of what the clients did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from tests.clients.apart import APART
from tests.clients.runner import (
    BESIDE,
    CLIENTS,
    REWRITTEN,
    ROOT,
    UNCOMPARED,
    Result,
    read,
    reasons,
)

PAGE: Final = ROOT / "docs" / "clients.md"

BEGIN: Final = """\
---
tags:
  - torchvision
  - pytorch geometric
  - timm
---

# Other people's programs

`make clients` runs these libraries under torch.fx and under fx, compares
graphs, generated code and results of each case, and writes this page. Their
source is unchanged: [`fx.as_torch`](coming-from-torch-fx.md#unchanged-programs)
has their imports say `fx`. In the rows marked "beside", nothing is rewritten:
fx traces models whose library has marked its functions for torch.fx, graphs
that torch.export has made come to fx and go back by `fx.from_torch` and
`fx.to_torch`, and torch compiles and exports what fx has traced.
"""

_BOTH: Final = "- Fails under both: "

BEGIN_APART, END_APART = "<!-- apart: begin -->", "<!-- apart: end -->"

ABOUT_APART: Final = """\
## Each in an environment of its own

These libraries ask for packages that do not go together. `make clients
ONLY=NAME` makes an environment for one of them with uv, and removes it at the
end; `ONLY=apart` does it for each. A program runs three times: under torch.fx,
unchanged under `fx.as_torch`, and when its files and those of all its
libraries say `fx` where they said `torch.fx`, as somebody would edit them; then
the program itself gives a graph of torch.export to `fx.from_torch`. The table
has what came out when each was run last, with the newest PyTorch that the
library takes. "Time" is that of fx's traces by that of torch.fx's, for models
that both trace.
"""

DEAD: Final = """\
## Dead code

A feature extractor returns inner values of a model, and removes what comes
after them. By torch.fx's rule all of that goes. By the rule that fx has of
itself, a call stays if a value that is returned may notice it, or if it draws
random numbers or writes into a module, as a batch norm in training does.
[Coming from torch.fx](coming-from-torch-fx.md#dead-code) says how to choose.
The extractors are those of the table above; a module is counted if either
graph uses it.
"""


def page(results: Sequence[Result]) -> str:
    """The text of the page."""
    return "\n".join(
        [
            BEGIN,
            *_table(
                "client | version | cases | same | fail under both | differ",
                map(_row, results),
            ),
            "",
            *_differences(results),
            *_failures(results),
            DEAD,
            *_dead_code(results),
            "",
            *apart(),
            "",
        ]
    )


def apart() -> Iterator[str]:
    """What the clients that are apart noted when they were run last.

    Of one that was not run in this folder, the lines of the page stay.
    """
    table, reasons = list[str](), list[str]()
    for name, client in APART.items():
        unchanged, rewritten = read(name), read(name, REWRITTEN)
        if unchanged.versions:
            table.append(_line(_row_apart(unchanged, rewritten)))
            reasons += _reasons([unchanged, rewritten])
            reasons += _failing_apart(unchanged)
        else:
            table += _kept(f"| {client.about}")
            reasons += _kept(f"- {name}:", f"- {name},", f"{_BOTH}{name},")
    yield from (ABOUT_APART, BEGIN_APART, "")
    yield from _table(
        "client | version | cases | same | fail under both | differ "
        "| same when rewritten | differ when rewritten | time",
        (),
    )
    yield from (*table, "", *reasons, "", END_APART)


def _failing_apart(result: Result) -> Iterator[str]:
    """The cases that neither library can do, those with one error together."""
    short = {name: error[:120] for name, error in result.failing().items()}
    for error, names in _alike(short):
        yield f"{_BOTH}{result.client}, {names}: `{error}`"


def _kept(*starts: str) -> list[str]:
    """The lines of the page, of those that are apart, that start so."""
    text = PAGE.read_text(encoding="utf-8").partition(BEGIN_APART)[2]
    return [line for line in text.splitlines() if line.startswith(starts)]


def write_apart() -> None:
    """Write the table of the clients that are apart into the page."""
    text = PAGE.read_text(encoding="utf-8")
    head = text.partition(ABOUT_APART.splitlines()[0])[0].rstrip()
    lines = [head, "", *apart(), ""]
    PAGE.write_text("\n".join(lines), encoding="utf-8")


def _table(head: str, rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """The lines of a table."""
    columns = head.split(" | ")
    yield f"| {head} |"
    yield f"|{'---|' * len(columns)}"
    yield from map(_line, rows)


def _line(row: Sequence[object]) -> str:
    """A row of a table."""
    return f"| {' | '.join(map(str, row))} |"


def _row(result: Result) -> tuple[object, ...]:
    """What came out for a client."""
    beside = " (beside)" if result.client in BESIDE else ""
    versions = ", ".join(f"{k} {v}" for k, v in result.versions.items())
    known = APART.get(result.client)
    what = known.about if known else CLIENTS[result.client]
    what += beside
    counts = len(result.theirs), result.same(), len(result.failing())
    return what, versions, *counts, len(result.differing())


def _row_apart(unchanged: Result, rewritten: Result) -> tuple[object, ...]:
    """What came out for a client that is apart."""
    ratio = unchanged.ratio()
    time = "" if ratio is None else f"{ratio:.2f}"
    counts = rewritten.same(), len(rewritten.differing())
    return (*_row(unchanged), *counts, time)


def _differences(results: Sequence[Result]) -> Iterator[str]:
    """The cases that differ, each with its reason."""
    yield "## What differs, and why\n"
    yield from _reasons(results)
    yield ""


def _reasons(results: Sequence[Result]) -> Iterator[str]:
    """The cases that differ, those with the same reason together."""
    for result in results:
        known = reasons().get(result.client, {})
        said = {
            name: f"{known.get(name) or known['*']}. (`{what[:120]}`)"
            for name, what in result.differing().items()
        }
        for why, names in _alike(said):
            yield f"- {result.client}: {names}: {why}"


def _alike(said: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each thing that is said of cases, and their names."""
    names: dict[str, list[str]] = {}
    for name, what in said.items():
        names.setdefault(what, []).append(name)
    for what, each in names.items():
        yield what, "; ".join(each)


def _failures(results: Sequence[Result]) -> Iterator[str]:
    """The cases that neither library can do."""
    yield "## What fails under both\n"
    for result in results:
        for name, error in result.failing().items():
            yield f"- {result.client}, {name}: `{error[:120]}`"
    yield ""


def _dead_code(results: Sequence[Result]) -> Iterator[str]:
    """What stays of each model by both rules."""
    rows = []
    for result in results:
        for name, notes in result.ours.items():
            if UNCOMPARED in notes:
                one, two = _sizes(notes["sizes"]), _sizes(notes[UNCOMPARED])
                rows.append([name.removesuffix(", features"), *one, *two])
    yield from _table(
        "model | modules, torch.fx's rule | nodes | nodes in training "
        "| modules, fx's own rule | nodes | nodes in training",
        rows,
    )


def _sizes(note: str) -> list[str]:
    """The numbers that a case noted, after the lines of their structure."""
    return note.split("\n")[-3:]
