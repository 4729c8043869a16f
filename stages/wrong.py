"""Wrong versions that were written before they were run: `stages.wrong 04`.

Each is what a person could write who has read the page and the docstring, and
has not seen the tests.  `stages/NN/wrong.toml` was committed before its first
run, so that it says how many wrong versions the tests let pass.  With `--proof`
a version that a stage's tests let pass is proved (`stages/proof.py`), too.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor

from stages import proof
from stages.manifest import find_function, stages
from stages.mutant import Mutant
from stages.processes import pool
from stages.running import Job, run_all
from stages.tree import Tree, reference_source, with_version


def mutants(number: int) -> Iterator[Mutant]:
    """The wrong versions of a stage."""
    path = stages()[number].folder / "wrong.toml"
    for row in tomllib.loads(path.read_text(encoding="utf-8"))["wrong"]:
        texts = row["function"], row["belief"], row["was"], row["becomes"]
        yield Mutant(*texts, "")


def harmless(number: int) -> dict[str, str]:
    """The beliefs of a stage that turned out not to be wrong -> the reason."""
    path = stages()[number].folder / "wrong.toml"
    rows = tomllib.loads(path.read_text(encoding="utf-8"))["wrong"]
    return {row["belief"]: row["harmless"] for row in rows if "harmless" in row}


def tree_of(mutant: Mutant, number: int) -> Tree:
    """The reference with one wrong version in it."""
    one = find_function(mutant.function)
    return with_version(one, mutant.applied_to(reference_source(one)), number)


def survivors(
    number: int, executor: ProcessPoolExecutor
) -> Iterator[tuple[Mutant, str]]:
    """The wrong versions of a stage that its tests let pass."""
    found = [*mutants(number)]
    jobs = [
        Job(tree_of(mutant, number), [number], first_failure=True)
        for mutant in found
    ]
    results = run_all(jobs, executor)
    for mutant, result in zip(found, results, strict=True):
        if result.status == 0:
            yield mutant, "its tests are green"
        elif not result.failed:
            yield mutant, f"it was not run:\n{result.output}"


def main(arguments: Sequence[str]) -> int:
    """Print which wrong versions of the stages named are green, and how far.

    With `--proof` first, those that are green are proved, too.
    """
    proving = "--proof" in arguments
    numbers = [int(one) for one in arguments if one.isdecimal()]
    green = 0
    for number in numbers or [*stages()]:
        with pool() as executor:
            left = [*survivors(number, executor)]
        print(f"stage {number:02d}: {len([*mutants(number)])} wrong versions")
        for mutant, told in left:
            if reason := harmless(number).get(mutant.misconception):
                print(f"  {mutant.misconception}: harmless. {reason}")
                continue
            print(f"  {mutant.function}: {mutant.misconception}\n    {told}")
            if proving and told.endswith("green"):
                found = proof.prove_stage(tree_of(mutant, number), number, str)
                print(f"    the proof: {found[0].what if found else 'green'}")
                green += not found
            else:
                green += 1
    return bool(green)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
