"""Passes: two ways to run a graph, compared.

One way is eager mode, the other a backend, a lower precision, or a pass:

    ways = Comparison(torch.compile, rtol=1e-3)
    ways.problem(gm, inputs)    None, or how the results differ

What `narrow_down` finds with it is `Found`, which can write a program that
shows the difference to others.
"""

from __future__ import annotations

import copy
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

import torch

from ..graph_module import GraphModule
from ..node import Node
from ..torch_private.pytree import pytree
from ..use_def.values import AnyValue

__all__ = ["Comparison", "Failing", "Found", "Way", "eager"]

Way: TypeAlias = Callable[[GraphModule], Callable[..., AnyValue]]
"""A way to run a graph: makes something to call of a module.

`torch.compile` is one, and so is a pass that returns a module.  It is given the
module, not only inputs, because a compiler has to look at the graph.  The
module is a copy, which may be changed.
"""


def eager(gm: GraphModule) -> Callable[..., AnyValue]:
    """The way in which a module runs by itself."""
    return gm


class Failing(NamedTuple):
    """How two ways differ.

    Attributes:
        kind: "values", or the name of the exception that the other way raised.
        text: what is to be said of it.
    """

    kind: str
    text: str


@dataclass(frozen=True)
class Comparison:
    """Two ways to run a graph, and how much their results may differ.

    Attributes:
        other: the way that is tried.
        reference: the way that is right.
        rtol: the relative tolerance.
        atol: the absolute tolerance.  If both are None, they are those of
            `torch.testing.assert_close` for the dtype; if one is, it is 0.
    """

    other: Way
    reference: Way = eager
    rtol: float | None = None
    atol: float | None = None

    def problem(
        self, gm: GraphModule, inputs: Sequence[AnyValue]
    ) -> Failing | None:
        """How the two ways differ on a module; None if they do not.

        Both begin with the same seed, and run without gradients on copies of
        the module and the inputs.  What they write into the inputs is
        compared as well.  Values of types other than tensors and numbers are
        not, and neither are dtypes.

        Args:
            gm: the module.
            inputs: what it is called with.

        Raises:
            What the reference raises.
        """
        expected = self._run(self.reference, gm, inputs)
        try:
            found = self._run(self.other, gm, inputs)
        except Exception as raised:
            kind = type(raised).__name__
            return Failing(kind, f"raises {kind}: {raised}")
        if len(found) != len(expected):
            text = f"{len(found)} values instead of {len(expected)}"
            return Failing("values", text)
        for index, (got, right) in enumerate(zip(found, expected, strict=True)):
            if text := self._apart(got, right):
                return Failing("values", f"value {index}: {text}")
        return None

    def _run(
        self, way: Way, gm: GraphModule, inputs: Sequence[AnyValue]
    ) -> list[AnyValue]:
        """The results, and the inputs as they are then, without structure."""
        # In one call, which keeps tensors together that share memory.
        gm, inputs = copy.deepcopy((gm, inputs))
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            result = way(gm)(*inputs)
        return pytree.tree_leaves((result, list(inputs)))

    def _apart(self, found: AnyValue, right: AnyValue) -> str:
        """How two values differ; nothing if they do not."""
        numbers = (torch.Tensor, bool, int, float, complex)
        if not isinstance(right, numbers):
            return ""
        if not isinstance(found, numbers) or (
            isinstance(found, torch.Tensor) != isinstance(right, torch.Tensor)
        ):
            return f"{type(found).__name__}, not {type(right).__name__}"
        given = self.rtol is not None or self.atol is not None
        try:
            torch.testing.assert_close(
                found,
                right,
                rtol=(self.rtol or 0.0) if given else None,
                atol=(self.atol or 0.0) if given else None,
                equal_nan=True,
                check_dtype=False,
            )
        except AssertionError as apart:
            return str(apart)
        return ""


@dataclass(frozen=True)
class Found:
    """Calls on which two ways to run them differ.

    Attributes:
        nodes: the calls, in the graph that was searched.
        module: these calls alone.
        inputs: what to call it with.
        comparison: the two ways.
        problem: how the results differ.
        runs: how many parts of the graph were compared until here.
    """

    nodes: tuple[Node, ...]
    module: GraphModule
    inputs: tuple[AnyValue, ...]
    comparison: Comparison
    problem: Failing
    runs: int

    def __str__(self) -> str:
        """The calls, and how the results differ."""
        calls = [f"  {node.format_node()}" for node in self.nodes]
        head = f"these calls differ (found in {self.runs} comparisons):"
        return "\n".join([head, *calls, self.problem.text])

    def write(self, folder: str | Path) -> Path:
        """Write a program that shows the difference.

        It is for the people who maintain the backend: they want a program that
        fails, without the model, its weights and the data around it.

        `python repro.py` prints it and exits with 1, or with 0 once it is
        gone.  The program imports the two ways by name; the file of one that
        is in no package is copied beside it.  Besides that it needs fx, torch,
        and what the calls themselves need.

        Args:
            folder: where to write to; made if need be.

        Returns:
            The path of the program.

        Raises:
            ValueError: a way is not a function that can be imported, such as
                a lambda, or its file is called as the program is, `repro`; a
                call is of a function of the program that is run.
        """
        folder, ways = Path(folder), self.comparison
        other, reference = _home(ways.other), _home(ways.reference)
        for node in self.nodes:
            if getattr(node.target, "__module__", "") == "__main__":
                raise ValueError(
                    f"{node} calls a function of the program that runs, which "
                    "no other one can load: move it into a file to import"
                )
        folder.mkdir(parents=True, exist_ok=True)
        for home in (other, reference):
            copied = folder / f"{home.module}.py"
            if (
                home.file is not None
                and copied.resolve() != home.file.resolve()
            ):
                shutil.copy(home.file, copied)
        torch.save((self.module, self.inputs), folder / "case.pt")
        program = folder / "repro.py"
        program.write_text(
            _PROGRAM.format(
                calls=", ".join(node.name for node in self.nodes),
                other=f"from {other.module} import {other.name}",
                reference=f"from {reference.module} import {reference.name}",
                tolerances=f"rtol={ways.rtol}, atol={ways.atol}",
            ),
            encoding="utf-8",
        )
        return program


_PROGRAM = '''"""Two ways to run {calls} differ: exits with 1 while they do."""

import sys
from pathlib import Path

import torch

from fx.passes.two_ways import Comparison
{other} as other
{reference} as reference

case = Path(__file__).parent / "case.pt"
gm, inputs = torch.load(case, weights_only=False)
print(gm.code)
ways = Comparison(other, reference, {tolerances})
problem = ways.problem(gm, inputs)
print(problem.text if problem else "no difference")
sys.exit(1 if problem else 0)
'''


class _Home(NamedTuple):
    """Where a function is imported from, and the file to take along."""

    module: str
    name: str
    file: Path | None


def _home(way: Way) -> _Home:
    """Where to import a way from; ValueError if that is nowhere."""
    name = getattr(way, "__qualname__", "")
    module = sys.modules.get(getattr(way, "__module__", ""))
    if module is None or getattr(module, name, None) is not way:
        raise ValueError(
            f"the program would have to import {way!r}, which is not a "
            "function at the top of a file: write it as one"
        )
    path = module.__name__
    file = Path(module.__file__ or "__init__")
    if "." in path or file.stem == "__init__":
        return _Home(path, name, None)
    if file.stem == "repro":
        raise ValueError(
            f"{file} is called as the program would be: give it another name"
        )
    return _Home(file.stem, name, file)
