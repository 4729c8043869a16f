"""Passes: what a page about a graph says; how it looks, a browser tests."""

from __future__ import annotations

import copy
import html
import json
import math
import random
import re
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path

import pytest
import torch
import torch.fx
from torch import nn

import fx
from fx import GraphModule
from fx.codegen.source import frames_of
from fx.passes.infra.pass_base import PassResult
from fx.passes.shape_prop import ShapeProp
from fx.show.__main__ import main
from fx.show.describe import Data, _longest_rise, bytes_of, rows_of, value_text
from fx.show.document import Page
from fx.show.page import traced
from fx.use_def.values import AnyValue
from tests.process import python
from tests.zoo import ZOO, borrow


class Block(nn.Module):
    """A convolution with its norm, and what came in added."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 3, padding=1)
        self.norm = nn.BatchNorm2d(2)

    def forward(self, x: AnyValue) -> AnyValue:
        return torch.relu(self.norm(self.conv(x)) + x)


class Net(nn.Module):
    """Two blocks, the second called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(2, 1, 1))
        self.blocks = nn.Sequential(Block(), Block())

    def forward(self, x: AnyValue) -> AnyValue:
        x = self.blocks(x * self.scale)
        x = self.blocks[1](x)
        return {"mean": x.mean((2, 3), keepdim=True)}, x.flatten(1)


IMAGE = torch.ones(1, 2, 4, 4)


def data_of(page: Page) -> AnyValue:
    """What the scripts of a page will read."""
    (text,) = re.findall(
        r'<script type="application/json" id="data">(.*?)</script>', page.html
    )
    return json.loads(text)


def side_of(
    module: nn.Module, *inputs: AnyValue, **options: AnyValue
) -> AnyValue:
    """The one graph of a page."""
    (side,) = data_of(fx.show(module, *inputs, **options))["sides"]
    return side


def by_name(side: AnyValue) -> dict[str, AnyValue]:
    return {node["name"]: node for node in side["nodes"]}


# -- nodes ------------------------------------------------------


def test_nodes_and_their_inputs_are_those_of_the_graph() -> None:
    gm = fx.symbolic_trace(Net())
    nodes = side_of(gm)["nodes"]
    names = [node["name"] for node in nodes]
    assert names == [node.name for node in gm.graph.nodes]
    for shown, node in zip(nodes, gm.graph.nodes, strict=True):
        found = [names[at] for at in shown.get("inputs", [])]
        assert found == [each.name for each in node.all_input_nodes]
        assert shown["op"] == node.op


def test_values_have_shapes_and_sizes() -> None:
    nodes = by_name(side_of(Net().half(), IMAGE.half()))
    assert nodes["blocks_0_conv"]["type"] == "f16[1,2,4,4]"
    assert nodes["blocks_0_conv"]["bytes"] == 64
    assert nodes["output"]["type"] == "({mean: f16[1,2,1,1]}, f16[1,32])"
    assert nodes["output"]["bytes"] == 4 + 64
    assert "ms" not in nodes["add"]


def test_values_that_meta_knows_are_shown_without_inputs() -> None:
    gm = fx.symbolic_trace(Net())
    assert "type" not in by_name(side_of(gm))["add"]
    ShapeProp(gm).propagate(IMAGE)
    assert by_name(side_of(gm))["add"]["type"] == "f32[1,2,4,4]"
    for node in gm.graph.nodes:
        node.meta["val"] = torch.ones(7)  # of another run
    larger = side_of(gm, IMAGE.expand(3, 2, 4, 4))
    assert by_name(larger)["add"]["type"] == "f32[3,2,4,4]"


def test_a_graph_is_the_same_after_it_was_shown() -> None:
    gm = traced(Net())
    before = [dict(node.meta) for node in gm.graph.nodes]
    norm: AnyValue = gm.get_submodule("blocks.0.norm")
    count = int(norm.num_batches_tracked)
    fx.show(gm, IMAGE, after=copy.deepcopy(gm))
    assert [dict(node.meta) for node in gm.graph.nodes] == before
    assert int(norm.num_batches_tracked) == count
    assert gm.graph.owning_module is gm


def test_a_value_that_no_shape_is_known_of_is_said() -> None:
    def f(x: AnyValue) -> AnyValue:
        return torch.ones(int_of(x)) + 1

    gm = fx.symbolic_trace(f)
    side = side_of(gm, torch.ones(()))
    assert "int_of" in side["problem"]
    assert by_name(side)["x"]["type"] == "f32[]"
    assert "type" not in by_name(side)["add"]


@fx.wrap
def int_of(x: torch.Tensor) -> int:
    """What only the data can say."""
    return int(x.item())


def test_times_are_the_least_of_a_few_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ticks = iter(
        second
        for run in ((3.0, 1.0), (2.0, 5.0), (4.0, 4.0))
        for second in (0.0, run[0], 0.0, run[1], 0.0, 0.0)
    )
    monkeypatch.setattr("time.perf_counter", lambda: next(ticks))
    gm = fx.symbolic_trace(lambda x: x.neg())
    nodes = by_name(side_of(gm, IMAGE, times=True))
    assert [nodes[n]["ms"] for n in ("x", "neg")] == [2000.0, 1000.0]


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")
def test_times_are_taken_of_copies() -> None:
    norm, x = nn.BatchNorm1d(2), torch.zeros(4, 2)
    result = nn.Linear(2, 2)(x)  # which deepcopy refuses
    gm = fx.symbolic_trace(nn.Sequential(norm, nn.Dropout()))
    torch.manual_seed(0)
    side_of(gm, x, times=True)
    side_of(fx.symbolic_trace(lambda x: x.add_(1)), x, times=True)
    side = side_of(fx.symbolic_trace(lambda x: x.neg()), result, times=True)
    assert not side["problem"] and by_name(side)["neg"]["ms"] > 0
    drawn = torch.rand(1)
    torch.manual_seed(0)
    assert torch.equal(drawn, torch.rand(1))
    assert norm.num_batches_tracked == 0
    assert torch.equal(x, torch.zeros(4, 2))


def test_times_of_what_does_not_run_are_said() -> None:
    gm = fx.symbolic_trace(nn.Linear(2, 2))
    side = side_of(gm, torch.ones(1, 3), times=True)
    assert "RuntimeError" in side["problem"]


def test_notes_of_ones_own_are_columns() -> None:
    gm = fx.symbolic_trace(Net())
    flops: dict[str, AnyValue] = {"add": 32, "x": math.inf, "output": [1]}
    for node in gm.graph.nodes:
        node.meta.update(
            {"flops": flops[node.name]} if node.name in flops else {}
        )
    data = data_of(fx.show(gm, notes=["flops"]))
    assert data["notes"] == ["flops"]
    nodes = by_name(data["sides"][0])
    assert [nodes[name]["notes"] for name in flops] == [[32], ["inf"], ["[1]"]]
    assert {"notes": [""]}.items() <= nodes["blocks_0_conv"].items()
    with pytest.raises(
        KeyError, match=r"no node has it .* node\.meta\['flop'\]"
    ):
        fx.show(gm, notes=["flop"])


def test_a_called_module_is_shown_with_its_settings() -> None:
    nodes = by_name(side_of(Net()))
    conv = nodes["blocks_0_conv"]
    assert conv["module"].startswith("Conv2d(2, 2, kernel_size=(3, 3)")
    assert conv["weights"] == 38
    assert conv["call"] == "Conv2d(mul)"
    assert nodes["scale"]["weights"] == 2
    assert nodes["scale"]["call"] == "self.scale"
    assert nodes["flatten"]["call"] == "relu_2.flatten(1)"
    assert "module" not in nodes["add"]


def groups_around(side: AnyValue, node: AnyValue) -> list[tuple[str, str]]:
    """The modules that a node is shown in, the innermost first."""
    at, found = node["group"], []
    while at >= 0:
        group = side["groups"][at]
        found.append((group["name"], group["kind"]))
        at = group["in"]
    return found


def test_nodes_are_in_the_modules_that_made_them() -> None:
    side = side_of(Net())
    nodes = by_name(side)
    first = [("blocks.0", "Block"), ("blocks", "Sequential")]
    assert groups_around(side, nodes["blocks_0_conv"]) == first
    assert groups_around(side, nodes["add"]) == first
    assert groups_around(side, nodes["mul"]) == []
    (again,) = groups_around(side, nodes["blocks_1_conv_1"])
    assert again == ("blocks.1@1", "Block")


def test_modules_come_from_targets_where_no_stack_was_recorded() -> None:
    gm = fx.symbolic_trace(Net())
    for node in gm.graph.nodes:
        node.meta.clear()
    side = side_of(gm)
    nodes = by_name(side)
    assert groups_around(side, nodes["blocks_0_conv"]) == [
        ("blocks.0", ""),
        ("blocks", ""),
    ]


def test_a_call_with_the_stack_of_a_function_stays_where_that_was() -> None:
    gm = traced(Net())
    conv, add = (
        next(node for node in gm.graph.nodes if node.name == name)
        for name in ("blocks_0_conv", "add")
    )
    conv.meta = add.meta
    side = side_of(gm)
    groups = groups_around(side, by_name(side)["blocks_0_conv"])
    assert groups == groups_around(side, by_name(side)["add"]) != []


def test_a_replaced_module_stays_in_the_module_around_it() -> None:
    gm = traced(Net().eval())
    gm.add_submodule("other", nn.Conv2d(3, 3, 1))
    conv = next(n for n in gm.graph.nodes if n.name == "blocks_0_conv")
    conv.target = "other"
    side = side_of(gm)
    other = by_name(side)["blocks_0_conv"]
    assert [name for name, _ in groups_around(side, other)] == [
        "blocks.0",
        "blocks",
    ]


def test_each_line_of_code_is_that_of_its_node() -> None:
    side = side_of(Net())
    code = side["code"].splitlines()
    assert code[0].startswith("def forward")
    for node in side["nodes"]:
        if node["op"] == "placeholder":
            assert node["line"] == 0
        else:
            said = "return" if node["op"] == "output" else f"{node['name']} ="
            assert code[node["line"] - 1].strip().startswith(said)


def test_a_traced_module_has_the_lines_of_its_program() -> None:
    side = side_of(Net())
    frames = side["stacks"][by_name(side)["add"]["stack"]]
    assert [frame[3] for frame in frames] == [
        "x = self.blocks(x * self.scale)",
        "return torch.relu(self.norm(self.conv(x)) + x)",
    ]
    assert frames[-1][0] == __file__
    assert "stack" not in by_name(side)["x"]


def test_frames_without_code() -> None:
    trace = (
        'File "a.py", line 1, in f\n  File "b c.py", line 20, in <lambda>\n'
        '    x("File")\n  File "d.py", line 3, in g'
    )
    assert frames_of(trace) == [
        ("a.py", 1, "f", ""),
        ("b c.py", 20, "<lambda>", 'x("File")'),
        ("d.py", 3, "g", ""),
    ]
    assert frames_of(None) == frames_of("no frames here") == []
    assert "\n".join(map(str, frames_of(trace))) == f"  {trace}"


def test_sizes_that_are_not_known_count_as_nothing() -> None:
    assert bytes_of([torch.ones(2), (torch.ones(3), None, 7)]) == 20
    assert value_text([1, None, torch.ones((), dtype=torch.bool)]) == (
        "(int, , b8[])"
    )


@pytest.mark.parametrize("network", ZOO, ids=lambda network: network.name)
def test_networks_can_be_shown(network: AnyValue) -> None:
    with borrow(network, training=False) as module:
        side = side_of(module, *network.inputs())
    assert side["problem"] == ""
    assert all("type" in node for node in side["nodes"])
    assert side["weights"] == network.parameters


# -- two graphs ------------------------------------------------------


def edited(gm: fx.GraphModule, rng: random.Random) -> fx.GraphModule:
    """A copy in which some nodes were removed, added, changed or moved."""
    made = copy.deepcopy(gm)
    for node in [*made.graph.nodes]:
        if node.op in ("placeholder", "output") or rng.random() < 0.6:
            continue
        inputs = node.all_input_nodes
        match rng.randrange(4):
            case 0 if inputs:
                node.replace_all_uses_with(inputs[0])
                made.graph.erase_node(node)
            case 1:
                with made.graph.inserting_after(node):
                    new = made.graph.call_function(torch.neg, (node,))
                node.replace_all_uses_with(new, lambda u, new=new: u is not new)
            case 2 if node.op == "call_function":
                node.target = torch.sub
            case 3 if not node.users:
                made.graph.output_node().prepend(node)
    made.recompile()
    return made


def straight(rng: random.Random) -> fx.GraphModule:
    """A graph of independent and dependent calls."""
    graph = fx.Graph()
    known = [graph.placeholder("x")]
    for _ in range(rng.randrange(1, 20)):
        target: AnyValue = rng.choice([torch.add, torch.mul])
        args = (rng.choice(known), rng.choice(known))
        known.append(graph.call_function(target, args))
    graph.output(known[-1])
    return fx.GraphModule({}, graph)


def differing(before: GraphModule, after: GraphModule) -> list[Data]:
    """The rows of two graphs, as `fx.show` pairs them."""
    difference = fx.diff(before, after)
    what = {one.after: one.what for one in difference.changed}
    return rows_of(before, after, difference.pairs, what)


@pytest.mark.parametrize("seed", range(40))
def test_rows_have_each_node_once_and_what_differs(seed: int) -> None:
    rng = random.Random(seed)
    before = straight(rng)
    after = edited(before, rng)
    rows = differing(before, after)
    found = fx.diff(before, after)
    for s, gm in enumerate((before, after)):
        shown = [row["at"][s] for row in rows if row["at"][s] is not None]
        assert shown == [*range(len(gm.graph.nodes))]
    sides = [[*before.graph.nodes], [*after.graph.nodes]]

    def marked(mark: str, s: int) -> list[AnyValue]:
        ats = [row["at"][s] for row in rows if row.get("mark") == mark]
        return [sides[s][at] for at in ats if at is not None]

    assert marked("-", 0) == [*found.removed]
    assert marked("+", 1) == [*found.added]
    noted = {
        sides[1][row["at"][1]]: row["what"] for row in rows if "what" in row
    }
    assert noted == {one.after: [*one.what] for one in found.changed}
    for row in rows:
        old, new = row["at"]
        if old is not None and new is not None:
            assert found.pairs[sides[0][old]] is sides[1][new]
    moved = {found.pairs[node] for node in marked("m", 0)}
    assert moved == {*marked("m", 1)}


def test_equal_graphs_have_no_marks() -> None:
    gm = fx.symbolic_trace(Net())
    rows = differing(gm, copy.deepcopy(gm))
    assert [row["at"] for row in rows] == [
        [at, at] for at in range(len(gm.graph.nodes))
    ]
    assert all(row.keys() == {"at"} for row in rows)


def test_what_is_removed_stands_before_what_is_added_there() -> None:
    gm = fx.symbolic_trace(lambda x: torch.relu(x.neg()))
    after = fx.symbolic_trace(lambda x: torch.relu(torch.add(x, x)))
    marks = [row.get("mark") for row in differing(gm, after)]
    assert marks == [None, "-", "+", "~", None]


@pytest.mark.parametrize("seed", range(20))
def test_a_longest_rise(seed: int) -> None:
    rng = random.Random(seed)
    numbers = rng.sample(range(30), rng.randrange(9))
    found = [n for n in numbers if n in _longest_rise(numbers)]
    assert found == sorted(found)
    longest = max(
        size
        for size in range(len(numbers) + 1)
        for part in combinations(numbers, size)
        if [*part] == sorted(part)
    )
    assert len(found) == longest


# -- the page ------------------------------------------------------


class Tags(HTMLParser):
    """The tags of a page, and the text in its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loads: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(
        self, tag: str, attrs: list[tuple[str, str | None]]
    ) -> None:
        self.tags.append(tag)
        self.loads += [v or "" for k, v in attrs if k in ("src", "href")]


EVIL = "</script><script>window.hacked=1</script><!--{{data}}"


class Hostile(nn.Module):
    """A module whose names end scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.add_module(EVIL.replace(".", ""), nn.ReLU())

    def forward(self, x: AnyValue) -> AnyValue:
        (child,) = self.children()
        return torch.einsum(EVIL, child(x))


def hostile() -> fx.GraphModule:
    """A graph with markup wherever a text can be."""
    gm = traced(Hostile())
    for node in gm.graph.nodes:
        node.meta["stack_trace"] = f'File "{EVIL}", line 1, in f\n    {EVIL}'
        node.meta["nn_module_stack"] = {EVIL: (EVIL, EVIL)}
    return gm


def test_names_with_markup_stay_text() -> None:
    page = fx.show(hostile(), after=hostile(), title=EVIL)
    plain = fx.show(fx.symbolic_trace(nn.ReLU()), title="plain")
    assert Tags(page.html).tags == Tags(plain.html).tags
    for side in data_of(page)["sides"]:
        assert side["stacks"][0] == [[EVIL, 1, "f", EVIL]]
        assert by_name(side)["einsum"]["call"].startswith("einsum('</script>")
    assert page.html.count(html.escape(EVIL)) == 2


def test_a_page_loads_nothing() -> None:
    page = fx.show(fx.symbolic_trace(Net()))
    assert Tags(page.html).loads == ["data:,"]
    assert "@import" not in page.html
    assert "default-src 'none'" in page.html
    assert "{{" not in re.sub(r"\$\{.*?\}", "", page.html).replace("{{}", "")


def test_a_notebook_shows_the_page_in_a_frame() -> None:
    page = fx.show(hostile())
    (shown,) = re.findall(r'srcdoc="([^"]*)"', page._repr_html_())
    assert html.unescape(shown) == page.html
    assert Tags(page._repr_html_()).tags == ["iframe"]
    assert 'sandbox="allow-scripts"' in page._repr_html_()


def test_a_page_is_written_and_named_by_its_class(tmp_path: Path) -> None:
    page = fx.show(Net())
    assert page.title == "Net"
    file = page.write(str(tmp_path / "net.html"))
    assert file.read_text(encoding="utf-8") == page.html


def test_a_module_of_torch_fx_is_refused() -> None:
    theirs: AnyValue = torch.fx.symbolic_trace(nn.ReLU())
    with pytest.raises(TypeError, match=r"GraphModule of torch\.fx"):
        fx.show(theirs)
    with pytest.raises(TypeError, match=r"GraphModule of torch\.fx"):
        fx.show(nn.ReLU(), after=theirs)


def test_both_modules_of_a_page_are_traced_if_need_be() -> None:
    data = data_of(fx.show(nn.Sequential(nn.ReLU()), after=nn.Sequential()))
    assert [len(side["nodes"]) for side in data["sides"]] == [3, 2]
    assert [row.get("mark") for row in data["rows"]] == [None, "-", "~"]


# -- the command ------------------------------------------------------


def eaten(gm: fx.GraphModule) -> PassResult:
    """A pass that returns another module."""
    return PassResult(fx.symbolic_trace(nn.Identity()), True)


def test_the_command_writes_a_page(tmp_path: Path) -> None:
    file = tmp_path / "net.html"
    done = python(
        *("-W", "error", "-m", "fx.show", "torch.nn:Tanh"),
        *("--input", "2,3", "-o", str(file)),
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == str(file)
    assert "f32[2,3]" in file.read_text(encoding="utf-8")


def shown(tmp_path: Path, *arguments: str) -> AnyValue:
    """The data of the page that the command writes."""
    file = tmp_path / "page.html"
    assert main([*arguments, "-o", str(file)]) == 0
    page = Page("", {})
    page.__dict__["html"] = file.read_text(encoding="utf-8")
    return data_of(page)


def test_the_command_shows_a_pass(tmp_path: Path) -> None:
    place = f"{__name__}:"
    fold = "fx.passes.conv_bn_fusion:fold_conv_bn"
    data = shown(tmp_path, f"{place}Net", "--eval", "--pass", fold)
    marks = [row.get("mark", "") for row in data["rows"]]
    assert (marks.count("-"), marks.count("~")) == (3, 3)
    data = shown(tmp_path, f"{place}Net", "--pass", f"{place}eaten")
    assert len(data["sides"][1]["nodes"]) == 2


def test_the_command_takes_inputs_of_any_type(tmp_path: Path) -> None:
    words = f"{__name__}:WORDS"
    data = shown(tmp_path, words, "--input", "int64:2,3", "--times")
    nodes = by_name(data["sides"][0])
    assert nodes["input_1"]["type"] == "i64[2,3]"
    assert nodes["output"]["ms"] >= 0


WORDS = nn.Sequential(nn.Embedding(5, 4))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere.at_all:f"], "No module named"),
        (["torch.nn:Nothing"], "no attribute"),
        (["torch.nn"], "is not PLACE:NAME"),
        (["torch.nn:ReLU", "--input", "1,x"], "is not [DTYPE:]SIZES"),
        (["torch.nn:ReLU", "--input", "f33:1"], "is not [DTYPE:]SIZES"),
        (["torch.nn:ReLU", "--input", "Tensor:1"], "is not a dtype"),
        (["torch.nn:Linear"], "missing a required argument"),
        (["os:path"], "is not a callable object"),
        (["builtins:dict"], "no signature found"),
        (["os:getcwd"], "not a module"),
    ],
)
def test_wrong_arguments_are_named(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    assert raised.value.code == 2
    assert says in capsys.readouterr().err


class Branches(nn.Module):
    """Cannot be traced."""

    def forward(self, x: AnyValue) -> AnyValue:
        return x if x.sum() > 0 else -x


def test_a_module_that_cannot_be_traced_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([f"{__name__}:Branches"]) == 1
    assert "x.sum() > 0" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_said(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["torch.nn:Flatten", "-o", str(tmp_path)]) == 1
    assert str(tmp_path) in capsys.readouterr().err


def test_lazy_parameters_count_as_nothing() -> None:
    net = nn.Sequential(nn.LazyLinear(2), nn.Linear(2, 2))
    assert data_of(fx.show(net))["sides"][0]["weights"] == 6
