"""What runs in the reader's browser: the stand-in for torch, and the tasks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from docs.machinery import playing, running
from docs.machinery.source import ROOT
from docs.machinery.standalone import standalone
from docs.playground.run import play
from docs.playground.tasks import TASKS

STANDIN = ROOT / "docs" / "standin"

TEN = {
    "arithmetic": "def forward(x, y):\n    return 1 - x * 2 + y / 3",
    "functions": "def forward(x, y):\n    return torch.relu(x).add(y.exp())",
    "matrices": "def forward(x, y):\n    return torch.matmul(x, y.t()) @ x",
    "functional": "def forward(x, y):\n"
    "    return F.softmax(F.relu(x), dim=-1) + F.gelu(y)",
    "lists": "def forward(x, y):\n    return torch.cat([x, y], dim=1)",
    "unpacked": "def forward(x, y):\n    a, b = x.chunk(2)\n    return a + b",
    "attributes": "def forward(x, y):\n    return x.view(x.shape[0], -1) + y",
    "indices": "def forward(x, y):\n    return x[:, None, ..., 0] + y[0]",
    "where": "def forward(x, y):\n    return torch.where(x > 0, x, y).sum()",
    "methods": "def forward(x, y):\n"
    "    return x.transpose(0, 1).reshape(-1).mean() * y.sigmoid()",
}
"""Functions that are traced with torch and with the stand-in."""

HEAD = "import torch, fx\nfrom torch.nn import functional as F\n"
TAIL = """
gm = fx.symbolic_trace(forward)
print(gm.graph)
result = gm(torch.ones(4, 4), torch.ones(4, 4))
print(tuple(result.shape), result.dtype)
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that a page has."""
    folder = tmp_path_factory.mktemp("page")
    for name, text in playing.contents():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def in_page(page: Path, *programs: tuple[str, str]) -> list[dict[str, object]]:
    """What programs give where no torch is installed."""
    code = (
        "import sys, json; sys.path.insert(0, sys.argv[1])\n"
        "from playground.run import play\n"
        "assert not hasattr(__import__('torch'), 'linalg')\n"
        "for one in json.load(sys.stdin): print(play(*one))"
    )
    said = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(page)],
        input=json.dumps(programs),
        capture_output=True,
        text=True,
        check=False,
    )
    assert not said.stderr
    return [json.loads(line) for line in said.stdout.splitlines()]


def test_ten_functions_are_recorded_as_with_torch(page: Path) -> None:
    programs = [(HEAD + text + TAIL, "") for text in TEN.values()]
    assert len(programs) == 10
    here = [json.loads(play(*one)) for one in programs]
    for name, ours, found in zip(
        TEN, here, in_page(page, *programs), strict=True
    ):
        assert ours["error"] == "", name
        assert len(ours["nodes"]) > 3
        assert found == ours, name


def test_what_the_pages_record_is_what_the_reader_gets(page: Path) -> None:
    for name in ("forward", "tiny", "module", "code"):
        target = f"docs.examples.play_{name}"
        source = playing.flat(standalone(target))
        [found] = in_page(page, (source, ""))
        assert found["error"] == ""
        said = str(found["printed"])
        assert said == running.printed(target)
        assert found["nodes"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("def forward(x, y)\n    return x", "line 3: SyntaxError"),
        (
            "def forward(x, y):\n    return x if x.sum() > 0 else y",
            "TraceError",
        ),
        ("def forward(x, y):\n    return y.no_such(1) + zzz", "NameError"),
    ],
)
def test_an_error_is_told_with_its_line(
    page: Path, text: str, told: str
) -> None:
    [found] = in_page(page, (HEAD + text + TAIL, ""))
    assert told in str(found["error"])
    assert str(found["error"]).startswith("line ")


ADDED = {
    "01-insert": "with graph.inserting_before(add):\n"
    '    graph.create_node("call_method", "neg")',
    "01-move": "add.prepend(relu)",
    "01-erase": 'for node in graph.nodes:\n    if node.op == "call_function":\n'
    "        graph.erase_node(node)",
    "02-replace": "with graph.inserting_after(relu):\n"
    "    new = graph.call_function(torch.nn.functional.gelu, (add,))\n"
    "relu.replace_all_uses_with(new)\ngraph.erase_node(relu)",
    "02-behind": "with graph.inserting_after(linear):\n"
    "    mul = graph.call_function(operator.mul, (linear, 2))\n"
    "linear.replace_all_uses_with(mul, lambda user: user is not mul)",
    "02-dead": "relu.replace_input_with(add, linear)\n"
    "graph.eliminate_dead_code()",
}
CHANGED = {
    "03-reflected": "1 - x",
    "03-attribute": "x.view(x.shape[0], -1)",
    "03-unpack": "sum(x.chunk(2))\n\ndef forward(x):\n"
    "    a, b = x.chunk(2)\n    return a + b",
}


def solution(name: str) -> str:
    """A program that does what a task asks."""
    start = TASKS[name].start
    if name in ADDED:
        return start + ADDED[name] + "\n"
    before, _, after = start.partition("    return ")
    return f"{before}    return {CHANGED[name]}\n{after.partition(chr(10))[2]}"


def test_each_stage_has_three_tasks() -> None:
    assert [name[:2] for name in TASKS] == ["01"] * 3 + ["02"] * 3 + ["03"] * 3
    assert {*ADDED, *CHANGED} == {*TASKS}


def test_a_start_does_not_do_it_and_a_solution_does(page: Path) -> None:
    starts = [(task.start, name) for name, task in TASKS.items()]
    for (_, name), found in zip(starts, in_page(page, *starts), strict=True):
        assert found["error"] == "", name
        assert found["problem"], name
    done = [(solution(name), name) for name in TASKS]
    for (_, name), found in zip(done, in_page(page, *done), strict=True):
        assert (found["error"], found["problem"]) == ("", ""), name


def test_the_files_of_fx_are_those_of_the_repository() -> None:
    names = [name for name, _ in playing.contents()]
    assert len(names) == len({*names})
    for part in ("node", "graph", "proxy", "tracing/tracer", "codegen/emit"):
        assert f"fx/{part}.py" in names
    assert not [one for one in names if "/extra/" in one or "/compat/" in one]
