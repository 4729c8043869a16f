"""`python -m stages`: where one is in the course, and help to get on."""

from __future__ import annotations

import argparse
import runpy
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table

from stages import functions
from stages.blame import blame, told
from stages.functions import State
from stages.generate import generated
from stages.manifest import (
    EXERCISES,
    REFERENCE,
    Exercise,
    Stage,
    exercises,
    find,
    stages,
)
from stages.running import Job, pool, run_all
from stages.tree import Broken, Tree, install, problems
from stages.watch import watch
from stages.workspace import (
    Workspace,
    against_reference,
    differences,
    remember_base,
    reset_files,
    reset_functions,
    restore,
    update,
)

CONSOLE: Final = Console(highlight=False, markup=False)

TROUBLE: Final = (
    argparse.ArgumentTypeError,
    Broken,
    LookupError,
    OSError,
    RuntimeError,
    SyntaxError,
)
"""Errors whose message is for the learner."""

Command = Callable[[argparse.Namespace], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says.

    Returns:
        The exit status: 0 if all is well.
    """
    parser = _parser()
    chosen = parser.parse_args(arguments)
    try:
        remember_base()
        command: Command = chosen.command
        return command(chosen)
    except TROUBLE as error:
        CONSOLE.print(str(error), style="red")
        return 2
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m stages",
        description="The course: where you are, and help to get on. "
        "`pytest stages/04` checks a stage.",
    )
    parser.set_defaults(command=progress, check=False, stage=None)
    commands = parser.add_subparsers(metavar="command")
    add = commands.add_parser
    one = add("progress", help="all stages and what is written (the default)")
    one.add_argument("stage", type=_stage, nargs="?", help="its exercises")
    one.add_argument("--check", action="store_true", help="run their tests too")
    one.set_defaults(command=progress)
    one = add("watch", help="check a stage again whenever a file is saved")
    one.add_argument("stage", type=_stage)
    one.set_defaults(command=watching)
    one = add("hint", help="a hint for an exercise: 1 a nudge … 3 nearly all")
    one.add_argument("exercise", nargs="?", help="the next one if not given")
    one.add_argument("level", type=_level, nargs="?", default=1)
    one.set_defaults(command=hint)
    one = add("diff", help="what you have changed since you began")
    one.add_argument("file", nargs="?", help="one file, like node.py")
    one.set_defaults(command=diff)
    one = add("reset", help="make stubs again; a backup is kept")
    one.add_argument(
        "what",
        nargs="?",
        help="an exercise, a file like node.py, a stage like 04, or all",
    )
    one.add_argument(
        "--restore",
        nargs="?",
        const="",
        metavar="BACKUP",
        help="bring back what the last reset or update changed",
    )
    one.set_defaults(command=reset)
    one = add("update", help="merge a newer fx into your files")
    one.set_defaults(command=updating)
    one = add("blame", help="find which of your functions is wrong")
    one.add_argument("stage", type=_stage)
    one.set_defaults(command=blaming)
    one = add("run", help="run a script with your fx, the rest borrowed")
    one.add_argument("script")
    one.add_argument("arguments", nargs=argparse.REMAINDER)
    one.set_defaults(command=running)
    one = add("solution", help="the reference, once your own passes")
    one.add_argument("exercise")
    one.add_argument("--give-up", action="store_true", help="show it now")
    one.set_defaults(command=solution)
    return parser


def _stage(text: str) -> int:
    """The number of a stage, written 4, 04 or stages/04."""
    last = text.rstrip("/").rpartition("/")[2]
    if last.isdecimal() and int(last) in stages():
        return int(last)
    raise argparse.ArgumentTypeError(
        f"there is no stage {text!r}: they are 01 to {max(stages()):02d}"
    )


def _level(text: str) -> int:
    """Which hint: 1, 2 or 3."""
    if text in ("1", "2", "3"):
        return int(text)
    raise argparse.ArgumentTypeError(
        "there are three hints: 1, 2, 3. When it passes, "
        "`python -m stages solution` shows how the reference does it"
    )


def _tree(*numbers: int) -> Tree:
    """The learner's tree, with some stages under test."""
    return Tree(EXERCISES / "fx", under_test=numbers)


def _sound_tree() -> Tree:
    """The learner's tree, none of its stages under test.

    Raises:
        Broken: something is wrong with it; says all that is.
    """
    tree = _tree()
    if found := [*problems(tree)]:
        raise Broken("\n\n".join(found))
    return tree


# --- where one is ----------------------------------------------------------


def progress(chosen: argparse.Namespace) -> int:
    """Print each stage with its exercises, written or not."""
    tree = _sound_tree()
    states = tree.states()
    verdicts = _verdicts(states) if chosen.check else {}
    table = Table(box=None, padding=(0, 2, 0, 0))
    if chosen.stage:
        for one in stages()[chosen.stage].exercises:
            sign = _sign(states[one.name], verdicts.get(one.name))
            table.add_row(sign, one.qualname, one.task)
    else:
        for column in ("stage", "", "written", "exercises"):
            table.add_column(column)
        for stage in stages().values():
            table.add_row(*_row(stage, states, verdicts))
    CONSOLE.print(table)
    CONSOLE.print()
    _print_next(states, verdicts)
    return 0


def _row(
    stage: Stage, states: dict[str, State], verdicts: dict[str, str]
) -> tuple[str, str, str, str]:
    """A stage's line of the table."""
    names = [one.name for one in stage.exercises]
    count = sum(states[name] is State.WRITTEN for name in names)
    signs = "".join(_sign(states[name], verdicts.get(name)) for name in names)
    written = f"{count} of {len(names)}"
    return f"{stage.number:02d}", stage.title, written, signs


def _sign(state: State, verdict: str | None) -> str:
    """A sign for an exercise: what its tests said, else whether written."""
    if verdict and verdict.strip():
        return verdict
    return "w" if state is State.WRITTEN else "·"


def _verdicts(states: dict[str, State]) -> dict[str, str]:
    """What the tests say of each exercise in stages that were begun."""
    begun = sorted(
        {
            one.stage
            for one in exercises().values()
            if states[one.name] is State.WRITTEN
        }
    )
    with pool() as executor:
        results = run_all(
            [Job(_tree(number), [number]) for number in begun], executor
        )
    return {
        name: verdict
        for number, result in zip(begun, results, strict=True)
        for name, verdict in result.ran().verdicts.items()
        if exercises()[name].stage == number
    }


def _print_next(states: dict[str, State], verdicts: dict[str, str]) -> None:
    """Say what to do next."""
    if not verdicts:
        CONSOLE.print(
            "· to write   w written (`python -m stages progress --check` "
            "runs their tests)"
        )
    wrong = [name for name, sign in verdicts.items() if sign == "✗"]
    left = [
        name for name, state in states.items() if state is not State.WRITTEN
    ]
    for name in [*wrong, *left][:1]:
        one = exercises()[name]
        verb = "mend" if wrong else "write"
        CONSOLE.print(
            f"next: {verb} {one.qualname} in exercises/fx/{one.file}, "
            f"then pytest stages/{one.stage:02d}"
        )
        CONSOLE.print(f"      {one.task}")
        return
    CONSOLE.print("All stages are written.")


def watching(chosen: argparse.Namespace) -> int:
    """Check a stage on every save until interrupted."""
    return watch(chosen.stage)


# --- help ------------------------------------------------------------------


def hint(chosen: argparse.Namespace) -> int:
    """Print the hints of an exercise up to a level."""
    one = find(chosen.exercise) if chosen.exercise else _first_unwritten()
    CONSOLE.print(f"{one.qualname} (stage {one.stage:02d}): {one.task}")
    for level, text in enumerate(one.hints[: chosen.level], 1):
        CONSOLE.print(f"\nhint {level} of 3: {text}")
    CONSOLE.print()
    if chosen.level < 3:
        CONSOLE.print(
            f"more: python -m stages hint {one.qualname} {chosen.level + 1}"
        )
    CONSOLE.print(f"read: docs/stages/{one.stage:02d}.md#{one.anchor}")
    return 0


def _first_unwritten() -> Exercise:
    """The next exercise to write.

    Raises:
        LookupError: all are written.
    """
    for name, state in _tree().states().items():
        if state is not State.WRITTEN:
            return exercises()[name]
    raise LookupError("all exercises are written; a hint for which one?")


def blaming(chosen: argparse.Namespace) -> int:
    """Find which function makes a stage's tests fail."""
    with pool() as executor:
        found = blame(_tree(chosen.stage), chosen.stage, executor)
    for line in told(found):
        CONSOLE.print(line)
    return bool(found.failing)


def solution(chosen: argparse.Namespace) -> int:
    """Show the reference's version of an exercise that passes."""
    one = find(chosen.exercise)
    if not chosen.give_up:
        job = Job(_tree(one.stage), [one.stage], exercise=one.name)
        with pool() as executor:
            (result,) = run_all([job], executor)
        if result.ran().status != 0:
            CONSOLE.print(
                f"{one.qualname} does not pass yet. When it does, the "
                f"reference's version is shown here to compare; "
                f"--give-up shows it now. First, maybe: "
                f"python -m stages hint {one.qualname} 3"
            )
            return 1
    _show_code(one)
    if not chosen.give_up:
        for line in against_reference(Workspace(), one):
            CONSOLE.print(line)
    return 0


def _show_code(one: Exercise) -> None:
    """Print the reference's version of a function."""
    text = (REFERENCE / one.file).read_text(encoding="utf-8")
    code = functions.source_of(text, one.qualname)
    CONSOLE.print(Syntax(code, "python", background_color="default"))


def running(chosen: argparse.Namespace) -> int:
    """Run a script whose `import fx` is the learner's."""
    tree = _sound_tree()
    script = Path(chosen.script).resolve()
    if not script.is_file():
        raise LookupError(f"there is no file {chosen.script}")
    install(tree)
    sys.argv = [str(script), *chosen.arguments]
    sys.path.insert(0, str(script.parent))
    try:
        runpy.run_path(str(script), run_name="__main__")
    except Broken:
        raise
    except Exception:  # the script's own, whatever it is
        traceback.print_exc()
        return 1
    return 0


# --- files -----------------------------------------------------------------


def diff(chosen: argparse.Namespace) -> int:
    """Print what was changed since the start."""
    name = _file(chosen.file) if chosen.file else None
    text = "\n".join(differences(Workspace(), name))
    if not text:
        CONSOLE.print("Nothing is changed.")
    elif CONSOLE.is_terminal:
        CONSOLE.print(
            Syntax(text, "diff", background_color="default", word_wrap=True)
        )
    else:
        CONSOLE.print(text, soft_wrap=True)  # as it is, for a patch
    return 0


def _file(text: str) -> str:
    """A file of fx, however its path is written.

    Raises:
        LookupError: there is none.
    """
    name = text.replace("\\", "/").removeprefix("exercises/")
    name = name.removeprefix("fx/")
    if not (REFERENCE / name).is_file():
        raise LookupError(f"fx has no file {text!r}")
    return name


def reset(chosen: argparse.Namespace) -> int:
    """Make stubs again, or bring a backup back."""
    work = Workspace()
    if chosen.restore is not None:
        for file in restore(work, chosen.restore or None):
            CONSOLE.print(f"brought back: exercises/fx/{file}")
        CONSOLE.print("What was there is kept: --restore again undoes this.")
        return 0
    if not chosen.what:
        raise LookupError("reset what? An exercise, a file, a stage, or all.")
    kept = _reset(work, chosen.what)
    CONSOLE.print(f"done; what was there is in {_short(kept)}")
    CONSOLE.print("python -m stages reset --restore brings it back")
    return 0


def _short(path: Path) -> str:
    """A path as one would type it at the top of the project."""
    root = EXERCISES.parent
    return str(path.relative_to(root) if path.is_relative_to(root) else path)


def _reset(work: Workspace, what: str) -> Path:
    """Reset what was named; the backup's folder."""
    if what == "all":
        return reset_files(work, generated(work.reference))
    if what.endswith(".py"):
        return reset_files(work, [_file(what)])
    if what.removeprefix("stages/").rstrip("/").isdecimal():
        wanted = stages()[_stage(what)].exercises
    else:
        wanted = (find(what),)
    try:
        return reset_functions(work, wanted)
    except (LookupError, SyntaxError, FileNotFoundError) as error:
        files = sorted({one.file for one in wanted})
        raise LookupError(
            f"Nothing was changed: the functions could not be put back alone "
            f"({error}). Whole files can be:"
            + "".join(f"\n    python -m stages reset {f}" for f in files)
        ) from None


def updating(chosen: argparse.Namespace) -> int:
    """Merge a newer reference into the learner's files."""
    done = update(Workspace())
    if not done.changed:
        CONSOLE.print("Your files are up to date.")
        return 0
    for name in done.changed:
        CONSOLE.print(f"newer now: exercises/fx/{name}")
    for name, lines in done.conflicts.items():
        for line in lines:
            CONSOLE.print(
                f"both changed: exercises/fx/{name}:{line}", style="red"
            )
    assert done.backup is not None
    CONSOLE.print(f"as they were: {_short(done.backup)}")
    if done.conflicts:
        CONSOLE.print(
            "Keep the lines you want between the marks <<<<<<< and >>>>>>>, "
            "and remove the marks."
        )
    return bool(done.conflicts)


if __name__ == "__main__":
    sys.exit(main())
