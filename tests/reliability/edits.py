"""Edits of a graph, beside a plain model of lists and dicts.

A script is made from a seed and played on three graphs: of fx, of torch.fx,
and of `plain`. After every edit, nodes, users, order, names and what lint says
are those of the plain one, and the code that of torch.fx; in the end the
results are those of the plain evaluation, in every way to run a graph.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator

import torch.fx

import fx
from tests.reliability import plain
from tests.reliability.part import Outcome, Part, Plant
from tests.reliability.player import AnyValue, Lib, Player, total

LOOKS: tuple[Callable[[Player], object], ...] = (
    Player.nodes,
    Player.uses,
    Player.ordered,
    Player.sought,
    Player.lint,
)
"""What is compared after every edit."""


def run(seed: int, cases: int) -> Iterator[Outcome]:
    """Play `cases` scripts."""
    for number in range(seed * 1_000_000, seed * 1_000_000 + cases):
        yield played(number)


def played(seed: int) -> Outcome:
    """Play the script of a seed on all three; what differs first."""
    model, theirs = Player(plain, seed), Player(torch.fx, seed)
    ours, wrong = Player(fx, seed), ""
    for number in range(seed % 12):
        done = model.edit()
        where = f"edit {number}, {done}: "
        if not wrong:
            wrong = _difference(where, theirs, theirs.edit() == done, model)
        bad = _difference(where, ours, ours.edit() == done, model)
        if not (bad or wrong) and ours.code() != theirs.code():
            bad = f"{where}the code is\n{ours.code()}\nnot\n{theirs.code()}"
        if bad:
            return Outcome(f"seed {seed}", bad, wrong)
    if model.lint():
        return Outcome(f"seed {seed}", "", wrong)
    if not wrong:
        wrong = _different_results(theirs, model, {"call": lambda gm: gm})
    bad = _different_results(ours, model, WAYS)
    return Outcome(f"seed {seed}", bad, wrong)


def _difference(where: str, one: Player, done: bool, model: Player) -> str:
    """What differs from the plain model after an edit."""
    if not done:
        return f"{where}it ended in another way"
    for look in LOOKS:
        expected, found = look(model), look(one)
        if expected != found:
            name = look.__name__
            return f"{where}{name} are\n{found}\nand should be\n{expected}"
    return ""


def _traced_again(gm: fx.GraphModule) -> fx.GraphModule:
    """A trace of the generated code."""
    tracer = fx.Tracer(autowrap_functions=(total,))
    return fx.GraphModule(gm, tracer.trace(gm))


WAYS: dict[str, Callable[[Lib], AnyValue]] = {
    "call": lambda gm: gm,
    "Interpreter": lambda gm: fx.Interpreter(gm).run,
    "Transformer": lambda gm: fx.Transformer(gm).transform(),
    "deepcopy": copy.deepcopy,
    "pickle": lambda gm: pickle.loads(pickle.dumps(gm)),
    "trace": _traced_again,
}


def _different_results(
    one: Player, model: Player, ways: dict[str, Callable[[Lib], AnyValue]]
) -> str:
    """What differs when the program runs, in every way to run it."""
    expected = model.results(lambda gm: gm)
    for way, make in ways.items():
        found = one.results(make)
        # What a tensor refuses, a proxy may refuse with another error.
        refused = way == "trace" and isinstance(found, str)
        if refused and isinstance(expected, str):
            continue
        if found != expected:
            code = one.code()
            return f"{way} gives\n{found}\nnot\n{expected}\n{code}"
    return ""


PART = Part(
    "edits",
    "random edits of a graph: order, users, names, lint and results, beside a "
    "plain model of lists and dicts",
    run,
    share=150,
    long=20_000,
    plants=(
        Plant(
            "fx/node.py",
            "kwargs = self._kwargs and map_arg(self._kwargs, swap)",
            "kwargs = self._kwargs",
            "replacing an input forgets the keyword arguments",
        ),
        Plant(
            "fx/linked_list/linked_list.py",
            "crowded._sort_key = low + place * step",
            "crowded._sort_key = low + place",
            "keys are spread so narrowly that two become equal",
        ),
        Plant(
            "fx/linked_list/linked_list.py",
            "return (low + after._sort_key) // 2",
            "return (before._sort_key + after._sort_key) // 2 - 1",
            "the key of an inserted link is that of an earlier one",
        ),
        Plant(
            "fx/linked_list/namespace.py",
            "        counts[base] = number\n",
            "        counts[base] = number + 1\n",
            "a name's number is counted wrongly",
        ),
        Plant(
            "fx/graph.py",
            "if not node.users and not must_stay(node):",
            "if not node.users:",
            "the output is dead code",
        ),
        Plant(
            "fx/node.py",
            "        if is_known:\n            self.graph._table.add(self)\n",
            "",
            "a node with a new target is not found any more",
        ),
        Plant(
            "fx/graph.py",
            "        self._table.drop(to_erase)\n",
            "",
            "a node that was erased is found",
        ),
        Plant(
            "fx/graph.py",
            "            self._table.add(node)\n",
            "",
            "a node made after the first question is not found",
        ),
        Plant(
            "fx/graph.py",
            "return sorted(nodes, key=_BY_PLACE)",
            "return list(nodes)",
            "nodes are found in the order in which they were made",
        ),
    ),
)
