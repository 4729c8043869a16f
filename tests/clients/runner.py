"""Runs each client twice, and compares what it noted."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from tests.clients.apart import APART, NEWEST, environment, rewrite
from tests.process import python

ROOT: Final = Path(__file__).parents[2]
OUTPUT: Final = ROOT / "build" / "clients" / "notes"
REASONS: Final = Path(__file__).with_name("differs.toml")

Notes: TypeAlias = dict[str, str]
Cases: TypeAlias = dict[str, Notes]

LIBRARIES: Final = ("torch.fx", "fx")
REWRITTEN: Final = "rewritten"
"""A third run, of a client whose files say `fx` themselves."""

UNCOMPARED: Final = "fx alone"
"""A note that only the run under fx makes."""

SECONDS: Final = "seconds"
"""A note of how long a trace took."""

CLIENTS: Final[dict[str, str]] = {
    "torchvision_models": "torchvision: its 80 classification models traced, "
    "and features extracted",
    "torchvision_marks": "torchvision unchanged, traced by `fx.symbolic_trace`",
    "quantization": "FX quantisation: fuse, prepare, convert, QAT, numeric "
    "suite, equalisation, model report",
    "timm_features": "timm: models traced, and features extracted",
    "transformers_fx": "Transformers: its own tracer",
    "optimum_fx": "optimum: transformations of graphs",
    "brevitas_fx": "Brevitas: tracers, preparation, quantisation",
    "e3nn_codegen": "e3nn and opt_einsum_fx: generated operators",
    "onnx2torch_fx": "onnx2torch: graphs made of ONNX models",
    "pyg_fx": "PyTorch Geometric: models for many types of nodes",
    "torch_compile": "A backend of torch.compile, and a pass after export",
    "torch_export": "Graphs of torch.export, edited and put back",
    "zoo_compiled": "torch.compile and torch.export on traces of the zoo: "
    "forward and gradient as eager's",
}
"""File in `cases/` -> what it is about."""

BESIDE: Final = frozenset(("torchvision_marks", "torch_export", "zoo_compiled"))
"""Clients whose imports stay as they are, and that use fx beside torch.fx."""


IN_NEWEST: Final = frozenset(("zoo_compiled",))
"""Clients that run beside the newest torch: torchvision asks for an older."""

SLOWEST: Final = frozenset(("torchvision_marks", "zoo_compiled"))
"""Clients that run only if they are named: they take two thirds of the time.

Most of what they show has a smaller case elsewhere: models of torchvision in
`torchvision_models`, compiled and exported graphs in `torch_compile`.
"""

SHARED: Final = ROOT / "build" / "clients" / "bin" / "python"
"""The Python of `make clients`, for clients that are not apart."""


class Result(NamedTuple):
    """What a client did under both libraries.

    Attributes:
        client: its file in `cases/`, and ", rewritten" if it was.
        versions: of its packages.
        theirs: its cases under torch.fx.
        ours: the same under fx.
        errors: what the processes wrote, if one did not finish.
    """

    client: str
    versions: Mapping[str, str]
    theirs: Cases
    ours: Cases
    errors: str = ""

    def differing(self) -> dict[str, str]:
        """The cases that are not the same, and what is different."""
        found = {}
        for name in self.theirs | self.ours:
            one = self.theirs.get(name, {})
            two = self.ours.get(name, {})
            if one.keys() & two.keys() >= {"error"}:
                continue
            parts = sorted(
                part
                for part in one.keys() | two.keys()
                if one.get(part) != two.get(part)
                and part not in (UNCOMPARED, SECONDS)
            )
            if parts:
                what = two.get("error") or one.get("error")
                found[name] = what or ", ".join(parts)
        return found

    def same(self) -> int:
        """How many cases are the same."""
        apart = len(self.differing()) + len(self.failing())
        return len(self.theirs) - apart

    def ratio(self) -> float | None:
        """The time of fx by that of torch.fx, where both have traced."""
        times = [
            (float(one[SECONDS]), float(self.ours[name][SECONDS]))
            for name, one in self.theirs.items()
            if SECONDS in one and SECONDS in self.ours.get(name, {})
        ]
        if not times:
            return None
        return sum(ours for _, ours in times) / sum(one for one, _ in times)

    def failing(self) -> dict[str, str]:
        """The cases that fail under both libraries, and torch.fx's error."""
        return {
            name: notes["error"]
            for name, notes in self.theirs.items()
            if "error" in notes and "error" in self.ours.get(name, {})
        }


def run(client: str) -> list[Result]:
    """Run a client under torch.fx, then under fx, with the Python it needs.

    One that is apart runs once more, rewritten: it has two results.
    """
    if client not in APART:
        executable = str(NEWEST if client in IN_NEWEST else SHARED)
        errors = [_run(client, executable, each) for each in LIBRARIES]
        return [read(client, errors="".join(errors))]
    with environment(client) as executable:
        errors = [_run(client, executable, each) for each in LIBRARIES]
        programs = rewrite(executable)
        last = _run(client, executable, REWRITTEN, f"{programs}:")
    return [read(client, errors="".join(errors)), read(client, REWRITTEN, last)]


def _run(client: str, executable: str, library: str, before: str = "") -> str:
    """Run a client under a library; what it wrote if it did not finish."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    file = _notes(client, library)
    file.unlink(missing_ok=True)
    finished = python(
        *_arguments(client, file, library),
        env={"PYTHONPATH": f"{before}{ROOT}", "PYTHONHASHSEED": "0"},
        executable=executable,
    )
    return finished.stderr[-2000:] if finished.returncode else ""


def read(client: str, library: str = "fx", errors: str = "") -> Result:
    """What the last run of a client noted under torch.fx and a library."""
    theirs, ours = (
        json.loads(file.read_text("utf-8")) if file.exists() else {}
        for file in (_notes(client, each) for each in ("torch.fx", library))
    )
    return Result(
        f"{client}, {REWRITTEN}" if library == REWRITTEN else client,
        theirs.get("versions", {}),
        theirs.get("cases", {}),
        ours.get("cases", {}),
        errors,
    )


def _notes(client: str, library: str) -> Path:
    """The file that a run writes."""
    return OUTPUT / f"{client}.{library}.json"


def _arguments(client: str, file: Path, library: str) -> Iterator[str]:
    """The command line of a run, behind `python`."""
    yield from ("-W", "ignore")
    if library == "fx" and client not in BESIDE:
        yield from ("-m", "fx.as_torch")
    yield from ("tests/clients/program.py", client, str(file))
    if library == "fx" and client in BESIDE:
        yield "fx"


def reasons() -> dict[str, dict[str, str]]:
    """Client -> case, or "*" -> why it differs."""
    with REASONS.open("rb") as file:
        return tomllib.load(file)


def unexplained(result: Result) -> list[str]:
    """What must not be: differences without a reason, reasons for nothing."""
    known = reasons().get(result.client, {})
    differing = result.differing()
    found = [result.errors] if result.errors else []
    found += [
        f"{result.client}, {name}: {what}"
        for name, what in differing.items()
        if name not in known and "*" not in known
    ]
    found += [
        f"{result.client}, {name}: has a reason in {REASONS.name}, and is the "
        "same"
        for name in known
        if name not in differing and not (name == "*" and differing)
    ]
    return found
