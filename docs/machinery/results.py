"""What other people's programs did: `/// results | programs`.

All is read from the tables below tests/clients/results, which `make clients`
and `make families` write.
"""

from __future__ import annotations

import csv
import re
import xml.etree.ElementTree as etree
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from docs.machinery.directives import Kind
from docs.machinery.scene import Block, Scene, element
from docs.machinery.source import ROOT
from docs.machinery.svg import WIDTH, Canvas, Tone

FOLDER: Final = ROOT / "tests" / "clients" / "results"

Row: TypeAlias = Mapping[str, str]

CALLS: Final = {
    "families": ("example", "other", "batch of one"),
    "pictures": (
        *("eval: example", "eval: other", "eval: batch of one"),
        *("train: example", "train: other", "train: batch of one"),
    ),
    "libraries": ("example", "other sizes", "large", "batch of one"),
}
"""Table of models -> its columns with calls of the graph."""

TONES: Final[dict[str, Tone]] = {"right": "strong", "refused": "plain"}
"""How a bar shows what came out; all else is new."""

HEADS: Final = ("cases", "same", "fail under both", "differ")
"""What is shown of a client."""


def read(name: str) -> list[Row]:
    """The rows of a table."""
    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file)]


def _results(scene: Scene) -> etree.Element:
    """A part of the results, which the argument names."""
    name = scene.directive.argument
    if name in CALLS:
        _models(scene, name)
    elif name == "programs":
        _programs(scene.parent)
    elif name == "dead_code":
        element(scene.parent, "p", extracted(read(name)))
    else:
        known = ", ".join((*CALLS, "programs", "dead_code"))
        raise scene.error(f"no results {name!r}: there are {known}")
    return element(scene.parent, "div")


# --- models traced by fx.trace ----------------------------------------------


def _models(scene: Scene, name: str) -> None:
    """A bar for each kind of call, and why models do not come out right."""
    rows = read(name)
    (run,) = (row for row in read("runs") if row["table"] == name)
    counts = {call: Counter(row[call] for row in rows) for call in CALLS[name]}
    box = element(scene.parent, "div", css="fx-figure fx-chart")
    scene.raw(box, bars(counts).svg())
    element(
        box,
        "p",
        f"{len(rows)} models run, of {run['tried']} tried; {run['versions']}. "
        f"{_times(name, rows)}",
        css="fx-where",
    )
    _list(scene.parent, stopped(rows, CALLS[name]))


def _times(name: str, rows: Sequence[Row]) -> str:
    """The median time of a trace, and of an export if there was one."""
    ratios = sorted(
        float(row["its CPU seconds"]) / float(row["CPU seconds"])
        for row in rows
        if row.get("torch.export") == "yes" and float(row["CPU seconds"])
    )
    if ratios:
        how = ", which fixes all sizes," if name == "pictures" else ""
        median = f"{ratios[len(ratios) // 2]:.1f} times the time (median)"
        return f"torch.export{how} takes {len(ratios)} of them, in {median}."
    traces = sorted(float(row["CPU seconds"]) for row in rows)
    return f"The median trace takes {traces[len(traces) // 2]:.0f} s."


def bars(counts: Mapping[str, Counter[str]]) -> Canvas:
    """A bar for each kind of call, cut by what came out."""
    said = [f"{call}: {_said(found)}" for call, found in counts.items()]
    canvas = Canvas("; ".join(said), len(counts) * 42)
    for at, found in enumerate(counts.values()):
        top, left = at * 42.0, 0.0
        canvas.word(0, top + 10, said[at], anchor="start")
        whole = sum(number for _, number in _order(found)) or 1
        for what, number in _order(found):
            width = WIDTH * number / whole
            tone = TONES.get(what, "new")
            canvas.box(left, top + 20, max(width - 1, 1), 12, tone=tone)
            left += width
    return canvas


def _said(found: Counter[str]) -> str:
    """What came out, and how often, in words."""
    return ", ".join(f"{number} {what}" for what, number in _order(found))


def _order(found: Counter[str]) -> list[tuple[str, int]]:
    """What came out, and how often; a call that was not made is left out."""
    names = [*TONES, *sorted(found.keys() - {*TONES, "-"})]
    return [(name, found[name]) for name in names if found[name]]


def stopped(rows: Iterable[Row], calls: Sequence[str]) -> Iterator[str]:
    """What stopped models, and which; a guard by what it asks for."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        ways = [row[call] for call in calls if row[call] not in ("right", "-")]
        if ways:
            worst = min(ways, key=lambda way: way == "refused")
            names = found.setdefault((worst, _cause(row["why"])), [])
            names.append(row["model"].rpartition("/")[2])
    for (way, why), names in sorted(found.items(), key=lambda one: one[0]):
        few = names[:4] if way == "refused" else names
        more = f" and {len(names) - len(few)} more" if few != names else ""
        yield f"{way}, {', '.join(few)}{more}: {why}"


def _cause(why: str) -> str:
    """A reason, in words that models with the same one share."""
    guard = why.partition("what the trace relied on, ")[2]
    if not guard:
        return why
    batch = r"\.size\(0\)\S* (!=|>=?) [12]|1 != \w+\.size\(0\)"
    what = "a batch of one" if re.search(batch, guard) else "other sizes"
    return f"the program may do something else for {what}"


# --- programs, under torch.fx and under fx ----------------------------------


def _programs(parent: etree.Element) -> None:
    """The libraries, and why cases differ or fail."""
    table = element(parent, "table", css="fx-cards", role="table")
    head = element(element(table, "thead"), "tr")
    for label in ("client", *HEADS):
        element(head, "th", label)
    body = element(table, "tbody")
    for row in read("clients"):
        line = element(body, "tr", role="row")
        for label in ("client", *HEADS):
            text = row["about" if label == "client" else label]
            text = text.partition(":")[0].replace("`", "")
            cell = element(line, "td", text, role="cell")
            cell.set("data-label", label)
    _list(parent, _why(read("reasons")))


def _why(rows: Iterable[Row]) -> Iterator[str]:
    """Each reason for which cases differ or fail, and some of the cases."""
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    errors: dict[tuple[str, str], str] = {}
    for row in rows:
        why, _, error = row["why"].partition(". (")
        reason = (row["kind"], why)
        errors.setdefault(reason, f". ({error}" if error else "")
        names = found.setdefault(reason, {}).setdefault(row["client"], [])
        names += row["cases"].split("; ")
    for reason, clients in found.items():
        cases = []
        for client, names in clients.items():
            more = f" and {len(names) - 2} more" if len(names) > 2 else ""
            cases.append(f"{client} ({'; '.join(names[:2])}{more})")
        yield f"{reason[0]}, {', '.join(cases)}: {reason[1]}{errors[reason]}"


def extracted(rows: Sequence[Row]) -> str:
    """How much of all models both rules for dead code keep."""
    sums = {
        label: sum(int(row[label]) for row in rows)
        for label in rows[0]
        if label != "model"
    }
    theirs, ours = [*sums.values()][:3], [*sums.values()][3:]
    return (
        f"Of {len(rows)} models together, torch.fx's rule keeps {theirs[0]:,} "
        f"modules and {theirs[1]:,} nodes ({theirs[2]:,} in training), and "
        f"fx's own rule {ours[0]:,} modules and {ours[1]:,} nodes "
        f"({ours[2]:,} in training)."
    )


def _list(parent: etree.Element, lines: Iterable[str]) -> None:
    """Reasons, in a list."""
    listed = element(parent, "ul")
    for line in lines:
        element(listed, "li", line.replace("`", ""))


BLOCKS = {"results": Block(Kind(True, {}, "none"), _results)}
