"""Whether a pass or a printed text is the same in every process.

A set of strings has another order in each process, as their hashes do, and a
set of nodes another one, as their places in memory do.  So a pass that walks a
set may do one thing today and another one tomorrow.  Random programs with many
equal calls go through the passes in two processes, where the strings and the
nodes have different hashes, and the texts that come out must be the same.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import pickle
import random
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

import torch
from torch import nn

import fx
from fx.experimental.const_fold import split_const_subgraphs
from fx.experimental.merge_matmul import merge_matmul
from fx.experimental.normalize import NormalizeArgs, NormalizeOperators
from fx.experimental.optimization import remove_dropout
from fx.experimental.proxy_tensor import make_fx
from fx.extra.matching.explain import explain
from fx.passes.dialect.common.cse_pass import CSEPass
from fx.passes.graph_drawer import FxGraphDrawer
from fx.passes.infra.partitioner import CapabilityBasedPartitioner
from fx.passes.operator_support import create_op_support
from fx.passes.pipeline import cut_in_stages
from fx.passes.reinplace import reinplace, reinplace_report
from fx.passes.split_module import split_module
from fx.passes.split_utils import split_by_tags
from fx.passes.structure import structure_hash
from fx.passes.tools_common import sort_nodes
from fx.passes.utils.matcher_utils import SubgraphMatcher
from tests.reliability import programs
from tests.reliability.part import Outcome, Part, Plant

AnyValue: TypeAlias = Any

SETS: Final[tuple[AnyValue, ...]] = (
    {"left", "right", "middle", "none"},
    frozenset((2.5, "two", (1, "one"), torch.float32)),
)
"""What a call has among its arguments."""

PRODUCTS: Final = (
    "{v} = torch.matmul({a}, self.linear.weight)",
    "{v} = self.scale * self.offset + {a} * (self.offset - self.scale)",
)
"""Statements that merge_matmul merges, and const_fold folds."""


def sided(x: AnyValue, sides: AnyValue) -> AnyValue:
    """A function that takes a set."""
    return x * len(sides)


def sources(rng: random.Random) -> tuple[str, str]:
    """Two programs with many equal calls, of which the second is an edit."""
    few = [*rng.sample(programs.STATEMENTS, 10), *PRODUCTS]
    head = f"{programs.HEADER}{programs.head(rng)}\n"
    names, lines = ["x", "y"], list[tuple[str, str]]()
    for number in range(24):
        name, near = f"v{number}", names[-5:]
        given = {"v": name, "a": rng.choice(near), "b": rng.choice(near)}
        line = rng.choice(few).format(**given)
        other = rng.choice(few) if rng.random() < 0.3 else ""
        lines.append((line, other.format(**given) or line))
        names.append(name)
    result = f"        return {', '.join(names[-6:])}\n"
    one, other = (
        "".join(f"        {line}\n" for line in side)
        for side in zip(*lines, strict=True)
    )
    return head + one + result, head + other + result


def traced(text: str) -> fx.GraphModule:
    """A program's graph module."""
    module = programs.module_of(text).requires_grad_(False)
    gm = fx.symbolic_trace(module)
    output = gm.graph.output_node()
    with gm.graph.inserting_before(output):
        for sides in SETS:
            gm.graph.call_function(sided, (output.args[0][0], sides))  # type: ignore[index]
    gm.recompile()
    return gm


# -- what comes out ------------------------------------------------------------

Draw: TypeAlias = random.Random
Output: TypeAlias = Callable[[fx.GraphModule, fx.GraphModule, Draw], object]
"""A pass: of a program, which it may change, and of its edit."""


def _graphs(gm: nn.Module) -> str:
    """The graph and the code of a module and of all in it."""
    return "\n".join(
        f"{path}\n{part.graph}\n{part.code}"
        for path, part in gm.named_modules()
        if isinstance(part, fx.GraphModule)
    )


def _diff(gm: fx.GraphModule, other: fx.GraphModule, rng: Draw) -> object:
    found = fx.diff(gm, other)
    return found, *(f"{a} {b}" for a, b in found.pairs.items())


def _split(gm: fx.GraphModule, other: fx.GraphModule, rng: Draw) -> object:
    order = {node: place for place, node in enumerate(gm.graph.nodes)}
    return _graphs(split_module(gm, gm, lambda node: order[node] // 7))


def _split_wrong(
    gm: fx.GraphModule, other: fx.GraphModule, rng: Draw
) -> object:
    names = dict.fromkeys(gm.graph.nodes, "")
    parts = {node: rng.choice("abc") for node in names}
    return _graphs(split_module(gm, gm, parts.__getitem__))


def _tags(gm: fx.GraphModule, other: fx.GraphModule, rng: Draw) -> object:
    nodes = [*gm.graph.nodes]
    for place, node in enumerate(nodes):
        node.__dict__["tag"] = "abc"[3 * place // len(nodes)]
    return _graphs(split_by_tags(gm, [*"abc"]))


def _partitions(alone: bool) -> Output:
    def run(gm: fx.GraphModule, other: fx.GraphModule, rng: Draw) -> object:
        taken = {node.name for node in gm.graph.nodes if rng.random() < 0.7}
        support = create_op_support(lambda _, node: node.name in taken)
        finder: AnyValue = CapabilityBasedPartitioner(
            gm, support, skip_horizontal_fusion=alone
        )
        found = finder.propose_partitions()
        return found, _graphs(finder.fuse_partitions(found))

    return run


def _rewritten(gm: fx.GraphModule, other: fx.GraphModule, rng: Draw) -> object:
    def pattern(x: AnyValue, y: AnyValue) -> AnyValue:
        return x + y, torch.relu(x)

    def sum_of(x: AnyValue, y: AnyValue) -> AnyValue:
        return x + y

    def other_sum(x: AnyValue, y: AnyValue) -> AnyValue:
        return torch.add(y, x)

    options: AnyValue = {"print_output": False}
    graph = fx.symbolic_trace(pattern).graph
    tried = SubgraphMatcher(graph).match(gm.graph)
    why = explain(gm, pattern, other_sum, **options)
    made = fx.replace_pattern(gm, sum_of, other_sum)
    pairs = [
        *(each.nodes_map for each in tried),
        *(each.nodes_map for each in made),
    ]
    return why, pairs, _graphs(gm)


def _dead(gm: fx.GraphModule, other: fx.GraphModule, rng: Draw) -> object:
    output = gm.graph.output_node()
    output.args = (output.args[0][:1],)  # type: ignore[index]
    gm.graph.eliminate_dead_code(unknown="keep")
    return gm.graph


def _sorted(gm: fx.GraphModule, other: fx.GraphModule, rng: Draw) -> object:
    nodes = [node for node in gm.graph.nodes if node.op.startswith("call")]
    rng.shuffle(nodes)
    for node in nodes:
        gm.graph.output_node().prepend(node)
    found = _problems(gm.graph)
    sort_nodes(gm.graph)
    return found, gm.graph


def _problems(graph: fx.Graph) -> str:
    found = fx.lint.problems(graph)
    return "\n".join(f"{each.node} {each.message}" for each in found)


def _lint(gm: fx.GraphModule, other: fx.GraphModule, rng: Draw) -> object:
    nodes = [node for node in gm.graph.nodes if node.op.startswith("call")]
    for node in rng.sample(nodes, 4):
        node.users.clear()
    for node in rng.sample(nodes, 2):
        untyped: AnyValue = node
        untyped._inputs = {}
    return _problems(gm.graph)


def _folder(save: Callable[[AnyValue, Path], object]) -> Output:
    def run(gm: fx.GraphModule, other: fx.GraphModule, rng: Draw) -> object:
        for child in gm.children():
            child._forward_hooks.clear()
        with tempfile.TemporaryDirectory() as place:
            save(gm, Path(place, "saved"))
            files = sorted(Path(place).rglob("*"))
            return [
                (file.name, _short(file.read_bytes()))
                for file in files
                if file.is_file()
            ]

    return run


def _short(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return hashlib.sha256(data).hexdigest()


def _saved(gm: AnyValue, place: Path) -> None:
    ops = torch.ops.fx_reliability
    known = (sided, setattr, programs.subjects.added, "of_pair")
    fx.save(gm, place, allow=(*known, ops.bump_, ops.double))


def _without_sets(gm: fx.GraphModule) -> fx.GraphModule:
    """For what writes sets in their order, or takes none."""
    for node in gm.graph.nodes:
        if node.target is sided:
            node.args = (node.args[0], "sides")
    return gm


def _pickled(gm: fx.GraphModule, other: fx.GraphModule, rng: Draw) -> object:
    graph = _without_sets(gm).graph
    for node in graph.find_nodes(op="placeholder"):
        if any(isinstance(arg, torch.Tensor) for arg in node.args):
            node.args = ()  # torch pickles a tensor with its address
    return _short(pickle.dumps(graph))


def _aten(gm: fx.GraphModule, other: fx.GraphModule, rng: Draw) -> object:
    seen = make_fx(gm)(*programs.inputs())
    before = seen.code
    report = reinplace_report(seen, *programs.inputs())
    done = reinplace(seen, *programs.inputs())
    return before, report, done.code


def _page(gm: fx.GraphModule, other: fx.GraphModule, rng: Draw) -> object:
    return fx.show(gm, after=other).html.partition('"sides"')[2]


def _drawing(gm: fx.GraphModule, other: fx.GraphModule, rng: Draw) -> object:
    return FxGraphDrawer(gm, "it").get_dot_graph().to_string()


_cse: AnyValue = CSEPass
OUTPUTS: Final[dict[str, Output]] = {
    "trace": lambda gm, other, rng: _graphs(gm),
    "readable": lambda gm, other, rng: gm.print_readable(print_output=False),
    "structure_hash": lambda gm, other, rng: structure_hash(gm),
    "diff": _diff,
    "cse": lambda gm, other, rng: _graphs(_cse()(gm).graph_module),
    "split_module": _split,
    "split_module, parts at random": _split_wrong,
    "split_by_tags": _tags,
    "partitioner": _partitions(False),
    "partitioner, connected": _partitions(True),
    "rewriter": _rewritten,
    "dead code": _dead,
    "sorted": _sorted,
    "lint": _lint,
    "arguments": lambda gm, other, rng: _graphs(
        NormalizeArgs(_without_sets(gm)).transform()
    ),
    "operators": lambda gm, other, rng: _graphs(
        NormalizeOperators(_without_sets(gm)).transform()
    ),
    "const_fold": lambda gm, other, rng: _graphs(split_const_subgraphs(gm)),
    "merge_matmul": lambda gm, other, rng: _graphs(merge_matmul(gm)),
    "remove_dropout": lambda gm, other, rng: _graphs(remove_dropout(gm)),
    "stages": lambda gm, other, rng: [
        _graphs(part) for part in cut_in_stages(gm, 3, programs.inputs())
    ],
    "make_fx, reinplace": _aten,
    "page": _page,
    "drawing": _drawing,
    "fx.save": _folder(_saved),
    "to_folder": _folder(lambda gm, place: gm.to_folder(place, "It")),
    "pickle": _pickled,
}
"""What is compared."""


_RAISED: Final = "raised "
_ERRORS: Final = {"split_module, parts at random", "stages"}
"""What is refused for most programs: then the words are compared."""


def outputs(seed: int, cases: int) -> dict[str, str]:
    """What each pass makes of each program, or the exception it raises."""
    found: dict[str, str] = {}
    for case in range(cases):
        one, edited = map(traced, sources(random.Random(f"{seed} {case}")))
        for name, output in OUTPUTS.items():
            try:
                rng = random.Random(case)
                text = _text(output(copy.deepcopy(one), edited, rng))
            except Exception as error:
                text = f"{_RAISED}{type(error).__name__}: {error}"
            found[f"{name}, program {case}"] = text
    return found


def _text(value: object) -> str:
    """A value without the addresses of objects."""
    if isinstance(value, list | tuple):
        return "\n".join(map(_text, value))
    return re.sub(r"\b0x[0-9a-f]+", "0x", str(value))


# -- two processes -------------------------------------------------------------

_ELSEWHERE: Final = """
import json, sys
from tests.reliability import processes
processes.main(*map(int, sys.argv[1:]))
"""


def turned_hash(value: object) -> int:
    """A hash that puts objects into another order."""
    return -object.__hash__(value)


def main(seed: int, cases: int, turned: int) -> None:
    """Print the outputs, as one line; nodes have other hashes if turned."""
    for cls in (fx.Node, nn.Module) if turned else ():
        cls.__hash__ = turned_hash  # type: ignore[method-assign,assignment]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        print(json.dumps(outputs(seed, cases)))


def run(seed: int, cases: int) -> Iterator[Outcome]:
    """Compare what two processes make of `cases` programs."""
    started = [
        subprocess.Popen(
            [
                *(sys.executable, "-P", "-c", _ELSEWHERE),
                *map(str, (seed, cases, turned)),
            ],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(sys.path),
                "PYTHONHASHSEED": str(2 * seed + turned),
                "OMP_NUM_THREADS": "1",
            },
            stdout=subprocess.PIPE,
            text=True,
        )
        for turned in range(2)
    ]
    here, there = [json.loads(each.communicate()[0]) for each in started]
    for name, text in here.items():
        yield Outcome(name, difference(text, there[name]))
    for name in OUTPUTS.keys() - _ERRORS:
        texts = (here[f"{name}, program {case}"] for case in range(cases))
        always = all(text.startswith(_RAISED) for text in texts)
        yield Outcome(f"{name}, all", "it always raises" if always else "")


def difference(here: str, there: str) -> str:
    """The first lines that differ."""
    lines = zip(here.split("\n"), there.split("\n"), strict=False)
    first = next((two for two in lines if two[0] != two[1]), None)
    if first is not None:
        return " | ".join(first)
    return "" if here == there else "one is longer"


PART = Part(
    "processes",
    "what passes, printing and saving make of a program in two processes, "
    "where strings and nodes have other hashes",
    run,
    share=4,
    long=100,
    plants=(
        Plant(
            "fx/passes/graph_diff.py",
            "        for key, users in free.items():\n",
            "        for key in free.keys() & theirs.keys():\n"
            "            users = free[key]\n",
            "diff pairs users in the order of a set of texts",
        ),
        Plant(
            "fx/passes/utils/common.py",
            "        for value in dict.fromkeys(used)\n",
            "        for value in {*used}\n",
            "a part takes its inputs in the order of a set of nodes",
        ),
        Plant(
            "fx/codegen/argument_text.py",
            "', '.join(in_order(value, items))",
            "', '.join(items)",
            "code has the items of a set in their order",
        ),
        Plant(
            "fx/extra/saving/values.py",
            'sorted(data, key=repr) if "set" in tag else data',
            "data",
            "a saved file has the items of a set in their order",
        ),
    ),
)
