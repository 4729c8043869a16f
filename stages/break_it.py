"""Break it: find a program that shows what is wrong with a version of fx.

`break_it` in stage.toml names one of the stage's mutants.  The learner writes
`answer` in `exercises/break_it/NN.py`: a program, a graph, a list of names.
It is tried twice, on the reference, where nothing may be wrong, and on the
wrong version, where something must be.
"""

from __future__ import annotations

import contextlib
import importlib
import runpy
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from stages.checking import Overtime, stub_of, time_limit
from stages.manifest import EXERCISES, REFERENCE, Mutant, Stage, exercises
from stages.prove import mutants
from stages.tree import Tree, install, reference_source, with_version

ANSWERS = EXERCISES / "break_it"
"""Where the learner writes the answers."""

SECONDS = 20.0
"""How long a trial may take."""


class Found(NamedTuple):
    """What a trial of an answer came to.

    Attributes:
        is_written: whether there is an answer.
        wrong: what came out wrong; "" if nothing did.
    """

    is_written: bool
    wrong: str


def wrong_version(stage: Stage) -> Mutant:
    """The version that is to be broken."""
    (found,) = (
        mutant
        for mutant in mutants(stage)
        if mutant.misconception == stage.break_it.misconception
    )
    return found


def wrong_source(stage: Stage) -> str:
    """The wrong version of the function, as source."""
    mutant = wrong_version(stage)
    return mutant.applied_to(reference_source(exercises()[mutant.function]))


def verdict(
    stage: Stage, executor: ProcessPoolExecutor, answers: Path = ANSWERS
) -> Iterator[tuple[bool, str]]:
    """Lines for the learner, each with whether it speaks for the answer.

    The last line decides: it is True if the answer breaks the wrong version.
    """
    path = answers / f"{stage.number:02d}.py"
    one = exercises()[wrong_version(stage).function]
    trees = Tree(REFERENCE), with_version(one, wrong_source(stage))
    jobs = [executor.submit(_try, tree, stage, path) for tree in trees]
    right, broken = [job.result() for job in jobs]
    if not right.is_written:
        yield False, f"to write: `answer` in {path.name}. {stage.break_it.task}"
    elif right.wrong:
        yield False, f"With the right {one.qualname}: {right.wrong}"
        yield False, "Not this way: the right version has to pass."
    elif not broken.wrong:
        yield True, f"The right {one.qualname} passes."
        yield False, "The wrong one passes, too: it is not broken yet."
    else:
        yield True, f"The right {one.qualname} passes."
        yield True, f"The wrong one: {broken.wrong}"
        yield True, "You have broken it."


def _try(tree: Tree, stage: Stage, path: Path) -> Found:
    """Try an answer in a process of its own."""
    install(tree)
    trial = getattr(
        importlib.import_module("stages.trials"), stage.break_it.trial
    )
    said = contextlib.redirect_stdout(None)
    try:
        with said, time_limit(SECONDS):
            return Found(
                True, str(trial(runpy.run_path(str(path))["answer"]()))
            )
    except (Exception, Overtime) as error:
        if stub_of(error):
            return Found(False, "")
        first = str(error).partition("\n")[0]
        return Found(True, f"{type(error).__name__}: {first}")
