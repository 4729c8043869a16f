"""Passes: run several in an order that suits them, until nothing changes."""

from __future__ import annotations

import inspect
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from functools import wraps
from graphlib import CycleError, TopologicalSorter
from itertools import permutations
from time import perf_counter
from typing import Final, NamedTuple, TypeAlias

from torch import nn

from ...graph_module import GraphModule
from ...use_def.annotations import signature_of
from ...use_def.values import AnyValue
from .pass_base import PassResult

__all__ = [
    "PassManager",
    "pass_result_wrapper",
    "this_before_that_pass_constraint",
]

_log: Final = logging.getLogger(__name__)

Pass: TypeAlias = Callable[..., AnyValue]
"""Takes a module and returns a PassResult."""

Constraint: TypeAlias = Callable[[Pass, Pass], bool]
"""Says of two passes whether the first may run before the second."""


class PassChange(NamedTuple):
    """What one run of a pass did.

    Attributes:
        name: the pass.
        added: how many nodes are new.
        removed: how many nodes are gone.
        seconds: how long it took.
        modified: whether the pass says that it changed something.
    """

    name: str
    added: int
    removed: int
    seconds: float
    modified: bool


def pass_result_wrapper(fn: Pass | None) -> AnyValue:
    """Make a pass return a PassResult that returns something else.

    Args:
        fn: returns a module, or None if it changes the given one. Either
            counts as modified.

    Returns:
        The pass; None for None.

    torch.fx: passes/infra/pass_manager.py, pass_result_wrapper
    """
    if fn is None:
        return None

    @wraps(fn)
    def wrapped_fn(gm: nn.Module) -> PassResult | None:
        result = fn(gm)
        if result is None:
            return PassResult(gm, True)
        if isinstance(result, nn.Module):
            return PassResult(result, True)
        return result if isinstance(result, PassResult) else None

    wrapped_fn.__name__ = _name(fn)
    return wrapped_fn


def this_before_that_pass_constraint(this: Pass, that: Pass) -> Constraint:
    """The constraint that one pass runs before another.

    torch.fx: passes/infra/pass_manager.py, this_before_that_pass_constraint
    """

    def depends_on(a: Pass, b: Pass) -> bool:
        return a != that or b != this

    return depends_on


class PassManager:
    """Runs passes in an order that their constraints allow.

        run = PassManager([fold, pass_result_wrapper(clean)], steps=5)
        module, modified = run(module)
        print(run.changes)

    Attributes:
        passes: in the order in which they run, once that is decided.
        constraints: what that order must hold.
        steps: how often all passes are run at most.
        changes: what each pass did in the last call, in order.

    torch.fx: passes/infra/pass_manager.py, PassManager; it does not lint
    graphs. With constraints, a pass that is listed twice counts as a circle.
    """

    passes: list[Pass]
    constraints: list[Constraint]
    steps: int = 1
    changes: list[PassChange]
    _validated: bool = False

    def __init__(
        self,
        passes: list[Pass] | None = None,
        constraints: list[Constraint] | None = None,
        steps: int | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        """Collect passes and constraints.

        Args:
            passes: take a module and return a PassResult.
            constraints: see `this_before_that_pass_constraint`.
            steps: run all passes so often, or until none of them changes
                anything; once by default.
            run_checks_after_each_pass: check the module after each pass, and
                lint its graph, instead of checking it at the beginning only.
            suppress_check_failures: log what a check raises, and go on.
        """
        self.changes = []
        self.passes, self.constraints = passes or [], constraints or []
        self.steps = steps or type(self).steps
        self.suppress_check_failures = suppress_check_failures
        self.run_checks_after_each_pass = run_checks_after_each_pass

    def add_pass(self, _pass: Pass) -> None:
        """Run one more pass."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Constraint) -> None:
        """Hold one more constraint."""
        self.constraints.append(constraint)
        self._validated = False

    def add_checks(self, check: Callable[[nn.Module], None]) -> None:
        """Check modules with this function, which raises if one is wrong.

        Raises:
            TypeError: it does not have one parameter.
        """
        if len(signature_of(check).parameters) != 1:
            raise TypeError(
                "PassManager check function should only take in one variable, "
                "a module"
            )
        vars(self)["check"] = check

    def validate_constraints(self) -> None:
        """Raise if the passes, as they are ordered now, break a constraint.

        Raises:
            RuntimeError: they do.
        """
        if self._validated:
            return
        for i, j in _broken(self.passes, self.constraints):
            if i < j:
                a, b = self.passes[i], self.passes[j]
                raise RuntimeError(
                    f"pass schedule constraint violated. Expected {b} before "
                    f"{a}, but they run as number {j} and {i}; "
                    "solve_constraints() finds an order"
                )
        self._validated = True

    def solve_constraints(self) -> None:
        """Order the passes so that they hold all constraints.

        Raises:
            RuntimeError: there is no such order.

        Cost: O(passes² · constraints).
        """
        passes = self.passes
        sorter = TopologicalSorter(dict.fromkeys(range(len(passes)), ()))
        for after, before in _broken(passes, self.constraints):
            sorter.add(after, before)
        try:
            self.passes = [passes[place] for place in sorter.static_order()]
        except CycleError as error:
            circle = [passes[place] for place in error.args[1]]
            raise RuntimeError(
                "Circular dependency detected within the following passes: "
                f"{circle}"
            ) from None
        self._validated = True

    def check(self, module: nn.Module) -> None:
        """Raise if a module is wrong: what `add_checks` was given."""

    def __call__(self, module: nn.Module) -> PassResult:
        """Run the passes.

        Args:
            module: of any class, if the passes can take it; a GraphModule is
                recompiled after each pass.

        Returns:
            What the last pass returned, and whether any changed anything.

        Raises:
            RuntimeError: there is no order that holds the constraints.
            Exception: a pass raised, or did not return a PassResult.
        """
        if not self._validated:
            self.solve_constraints()
        self.changes = []
        self._check(module)
        modified = False
        for _ in range(self.steps):
            done = len(self.changes)
            for number in range(len(self.passes)):
                module = self._run(number, module)
            if not any(change.modified for change in self.changes[done:]):
                break
            modified = True
        return PassResult(module, modified)

    def _run(self, number: int, module: AnyValue) -> AnyValue:
        """Run one pass, note what it changed, and return its module."""
        run = self.passes[number]
        before, start = _nodes(module), perf_counter()
        try:
            result = run(module)
            if not hasattr(result, "graph_module"):
                raise TypeError(
                    f"The result of the pass {_name(run)} should be type "
                    "PassResult. Please wrap it with pass_result_wrapper()"
                )
            seconds = perf_counter() - start
            module = result.graph_module
            if isinstance(module, GraphModule):
                module.recompile()
            if self.run_checks_after_each_pass:
                self._check(module)
        except Exception as error:
            names = [_name(earlier) for earlier in self.passes[:number]]
            raise Exception(
                f"An error occurred when running the '{_name(run)}' pass "
                f"after the following passes: {names}"
            ) from error
        after = _nodes(module)
        added, removed = (after - before).total(), (before - after).total()
        change = PassChange(
            _name(run), added, removed, seconds, bool(result.modified)
        )
        self.changes.append(change)
        _log.debug("%s", change)
        return module

    def _check(self, module: nn.Module) -> None:
        """Check a module, and its graph if that is wanted."""
        try:
            self.check(module)
            if self.run_checks_after_each_pass and isinstance(
                module, GraphModule
            ):
                module.graph.lint()
        except Exception:
            if not self.suppress_check_failures:
                raise
            _log.exception("a check failed")


def _name(run: Pass) -> str:
    """The name of a pass."""
    return run.__name__ if inspect.isfunction(run) else type(run).__name__


def _nodes(module: AnyValue) -> Counter[tuple[str, str, str]]:
    """The nodes of a module, in a form that a copied graph shares."""
    if not isinstance(module, GraphModule):
        return Counter()
    return Counter(
        (node.name, node.op, str(node.target)) for node in module.graph.nodes
    )


def _broken(
    passes: Sequence[Pass], constraints: Sequence[Constraint]
) -> list[tuple[int, int]]:
    """The places of two passes of which the first must not run first."""
    return [
        (i, j)
        for (i, a), (j, b) in permutations(enumerate(passes), 2)
        if not all(may_precede(a, b) for may_precede in constraints)
    ]
