"""What runs in the reader's browser: the stand-in for torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import fx
from docs.machinery import playing, running
from docs.machinery.source import ROOT
from docs.machinery.standalone import standalone
from docs.playground.measure import PLACE
from docs.playground.run import play
from docs.playground.showing import show
from tests.docs.conftest import printed_in_page

STANDIN = ROOT / "docs" / "standin"

PROGRAMS = (
    Path(__file__)
    .with_name("small_torch_programs.txt")
    .read_text("utf-8")
    .split("# ---\n")
)
"""Programs that are traced with torch and with the stand-in."""

HEAD = "import torch, fx\nfrom torch.nn import functional as F\n"
TAIL = """
gm = fx.symbolic_trace(forward)
print(gm.graph)
result = gm(torch.ones(4, 4), torch.ones(4, 4))
print(tuple(result.shape), result.dtype)
"""


def in_page(page: Path, *programs: str) -> list[dict[str, object]]:
    """What programs give where no torch is installed."""
    code = (
        "from playground.run import play\n"
        "assert __import__('torch').__file__.startswith(sys.argv[1])\n"
        "for one in json.load(sys.stdin): print(play(one))"
    )
    said = printed_in_page(page, code, programs)
    return [json.loads(line) for line in said.splitlines()]


def data(answer: dict[str, object]) -> dict[str, Any]:
    """What the viewer's page of an answer shows."""
    text = str(answer["page"]).partition('id="data">')[2]
    found: dict[str, Any] = json.loads(text.partition("</script>")[0])
    return found


SIZED = (
    *("zeros(n, 3)", "zeros((n, 3))", "zeros(3, n)", "ones(n)", "rand(n, 3)"),
    *("ones(3).expand(n, 3)", "ones(3).view(n, 3)", "arange(0, n)"),
    "ones(4)[:n]",
)
"""What is made with a traced size; torch refuses some."""


def test_a_traced_size_is_taken_where_torch_takes_it(page: Path) -> None:
    program = "def forward(x):\n    n = x.size(0)\n    return torch."
    end = "\nfx.symbolic_trace(forward)\n"
    programs = [HEAD + program + text + end for text in SIZED]
    for text, one, found in zip(
        SIZED, programs, in_page(page, *programs), strict=True
    ):
        ours = json.loads(play(one))
        assert bool(ours["error"]) == bool(found["error"]), text


@pytest.mark.filterwarnings("ignore:.*writes into")
def test_programs_are_recorded_as_with_torch(page: Path) -> None:
    """Whichever argument is a proxy; and their results have torch's shapes."""
    programs = [HEAD + one for one in PROGRAMS]
    for one, found in zip(programs, in_page(page, *programs), strict=True):
        ours = json.loads(play(one))
        assert found["printed"] == ours["printed"], one
        assert bool(found["error"]) == bool(ours["error"]), one
        if ours["page"]:
            sides = [data(each)["sides"] for each in (ours, found)]
            mine, other = [[one["code"] for one in each] for each in sides]
            assert mine == other, one


NAMES = (
    "torch.functional.block_diag(x)",
    "torch.block_diag(x, x)",
    "torch.special.erf(x)",
    "torch.fft.rfft(x, n=4)",
    "torch.linalg.norm(x)",
    "torch.einsum('ab,cb->ac', x, x)",
    "torch.topk(x, 2)",
    "torch.stft(x, 4)",
    "F.cross_entropy(x, y)",
    "F.max_pool2d(x, 2)",
    "F.adaptive_avg_pool2d(x, (1, 1))",
    "F.scaled_dot_product_attention(x, y, y, is_causal=True)",
    "F.interpolate(x, scale_factor=2)",
    "F.embedding(x, y)",
    "F.group_norm(x, 2)",
    "F.pad(x, (1, 1))",
)


def test_names_without_a_rule_are_recorded_as_with_torch(page: Path) -> None:
    """Of these the small torch has the name and the parameters at most."""
    text = "".join(
        f"print(fx.symbolic_trace(lambda x, y: {one}).graph)\n" for one in NAMES
    )
    [found] = in_page(page, HEAD + text)
    assert found["error"] == ""
    assert found["printed"] == json.loads(play(HEAD + text))["printed"]


MODULES = """
from torch import nn
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(10, 8)
        self.mix = nn.MultiheadAttention(8, 2, batch_first=True)
        self.over = nn.LSTM(8, 4, 2, batch_first=True, bidirectional=True)
        self.bag = nn.EmbeddingBag(10, 8, _weight=torch.ones(10, 8))
        self.norm = nn.GroupNorm(5, 5)
    def forward(self, x):
        h = self.words(x)
        h, weights = self.mix(h, h, h)
        h, (last, cell) = self.over(h)
        found = self.bag(x) + 1
        return self.norm(h), found, weights, last
gm = fx.symbolic_trace(M())
fx.show(gm, torch.zeros((2, 5), dtype=torch.int64))
"""


def test_modules_have_shapes_or_the_page_says_which_has_none(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shapes are those of torch."""
    monkeypatch.setattr(fx, "show", show)
    [found] = in_page(page, HEAD + MODULES)
    [side] = data(found)["sides"]
    [real] = data(json.loads(play(HEAD + MODULES)))["sides"]
    assert "torch.nn.EmbeddingBag" in side["problem"]
    assert "parameters of nn.EmbeddingBag are not counted" in side["problem"]
    assert side["weights"] == real["weights"] - 80
    assert side["code"] == real["code"]
    kinds = {node["name"]: node.get("type") for node in side["nodes"]}
    assert kinds["bag"] is kinds["add"] is None
    assert kinds["norm"] == "f32[2,5,8]"
    assert kinds["mix"] == "(f32[2,5,8], f32[2,5,5])"
    assert real["problem"] == ""
    for node in real["nodes"]:
        if kinds[node["name"]]:
            assert kinds[node["name"]] == node["type"]
    assert kinds["getitem_3"] == "(f32[4,2,4], f32[4,2,4])"


def test_what_is_not_here_says_so(page: Path) -> None:
    programs = [
        *("fx.trace(abs)", "torch.compile(abs)", "torch.nn.NoSuch()"),
        "fx.symbolic_trace(lambda x: [*range(x.shape[0])])",
        *("torch.reluu(1)", "torch.ones(2).sofmax(0)", "import numpy"),
        *("from torch.fx import symbolic_trace", "torch.ones(2).qr()"),
        "from fx.passes.shape_prop import ShapeProp",
    ]
    found = in_page(page, *(HEAD + one for one in programs))
    told = [str(one["error"]) for one in found]
    assert "fx.trace needs the installed torch" in told[0]
    assert "has no torch.compile; the installed fx" in told[1]
    assert "torch.nn has no 'NoSuch'" in told[2]
    assert "its value is not known while tracing" in told.pop(3)
    assert "torch has no 'reluu'; did you mean relu?" in told[3]
    assert "Tensor has no 'sofmax'; did you mean softmax?" in told[4]
    assert "this page has Python's own modules, fx and a small torch" in told[5]
    assert "write `import fx` instead of torch.fx" in told[6]
    assert "no rule for what Tensor.qr gives" in told[7]
    assert "shape_prop'; it needs the installed torch" in told[8]


def test_the_programs_to_choose_from(page: Path) -> None:
    programs = playing.more()
    assert len(programs) == 6
    answers = in_page(page, *programs.values())
    for title, found in zip(programs, answers, strict=True):
        if title == "A branch that tracing refuses":
            assert "TraceError" in str(found["error"])
            continue
        assert found["error"] == "", title
        shown = data(found)
        assert all(side["problem"] == "" for side in shown["sides"]), title
        frames = [one for side in shown["sides"] for one in side["stacks"]]
        assert frames, title
        assert {file for frame in frames for file, *_ in frame} == {PLACE}
    marks = [row.get("mark") for row in data(answers[-1])["rows"]]
    assert marks == [None, "-", "~", None]


SWAPPED = """
gm = fx.symbolic_trace(lambda x: torch.relu(torch.relu(x) + 1))
new = copy.deepcopy(gm)
for node in new.graph.find_nodes(op="call_function", target=torch.relu):
    with new.graph.inserting_after(node):
        swapped = new.graph.call_function(torch.tanh, node.args)
    node.replace_all_uses_with(swapped)
    new.graph.erase_node(node)
fx.show(gm, after=new)
"""


CHANGED = """
from torch import nn
before = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Sequential(nn.Tanh()))
class Folded(fx.Tracer):
    def is_leaf_module(self, m, path):
        return path == "2" or super().is_leaf_module(m, path)
class Doubled(fx.Transformer):
    def call_module(self, target, args, kwargs):
        found = super().call_module(target, args, kwargs)
        return found + found if target == "0" else found
print(before[1:])
gm = fx.symbolic_trace(before)
new = Doubled(fx.GraphModule(before, Folded().trace(before))).transform()
other = copy.deepcopy(gm)
other.get_submodule("2").eval()
print(fx.diff(gm, new), fx.diff(gm, other))
def noted(x):
    x.add_(1)
    y = x * 2
    print("seen")
    return y.relu()
print(fx.diff(fx.symbolic_trace(noted), fx.symbolic_trace(noted)))
def summed(x):
    return x + x
print(fx.replace_pattern(new, summed, lambda x: 2 * x), new.code)
fx.show(gm, torch.ones(2, 4), after=new)
"""


def test_a_change_is_found_as_by_the_installed_fx(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fx, "show", show)
    for text in (SWAPPED, CHANGED):
        program = f"import copy\n{HEAD}{text}"
        [found] = in_page(page, program)
        ours = json.loads(play(program))
        assert found["error"] == ours["error"] == ""
        assert found["printed"] == ours["printed"]
        rows = data(ours)["rows"]
        assert {"~"} < {row.get("mark") for row in rows} or text == SWAPPED
        assert data(found)["rows"] == rows


def test_what_the_pages_record_is_what_the_reader_gets(page: Path) -> None:
    for name in ("forward", "tiny", "module", "code"):
        target = f"docs.examples.play_{name}"
        source = playing.flat(standalone(target))
        [found] = in_page(page, source)
        assert found["error"] == ""
        said = str(found["printed"])
        assert said == running.printed(target)
        assert found["nodes"] or found["page"]


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
    [found] = in_page(page, HEAD + text + TAIL)
    assert told in str(found["error"])
    assert str(found["error"]).startswith("line ")


def test_where_shapes_end_is_told(page: Path) -> None:
    text = "def f(x, y):\n    return torch.relu(x) @ y\n"
    tail = "fx.show(fx.symbolic_trace(f), torch.ones(2, 3)"
    fits, refused, missing = in_page(
        page,
        f"{HEAD}{text}{tail}, torch.ones(3, 4))",
        f"{HEAD}{text}{tail}, torch.ones(2, 3))",
        f"{HEAD}{text}{tail})",
    )
    assert fits["problem"] == ""
    assert refused["problem"] == "the run stops at matmul, line 4"
    assert missing["problem"] == "the run stops at y"


def test_dead_code_keeps_what_has_an_effect(page: Path) -> None:
    text = """
def forward(x):
    x.add_(1)
    torch.relu_(x)
    torch.neg(x)
    print(x)
    return x
gm = fx.symbolic_trace(forward)
gm.graph.eliminate_dead_code()
print(gm.graph)
"""
    [found] = in_page(page, HEAD + text)
    assert found["error"] == ""
    assert found["printed"] == json.loads(play(HEAD + text))["printed"]


def test_the_files_of_fx_are_those_of_the_repository() -> None:
    names = [name for name, _ in playing.contents()]
    assert len(names) == len({*names})
    for part in ("node", "graph", "proxy", "tracing/tracer", "codegen/emit"):
        assert f"fx/{part}.py" in names
    assert not [one for one in names if "/extra/" in one or "/compat/" in one]
