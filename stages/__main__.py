"""`python -m stages`: shows your progress in the course, and helps with it."""

from __future__ import annotations

import argparse
import runpy
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table

from stages import prove
from stages.blame import blame, told
from stages.break_it import is_answered, verdict, wrong_source, wrong_version
from stages.capstones.gradient.variant import operators
from stages.functions import State
from stages.generate import generated
from stages.grade import grade
from stages.grades import WRITERS, show
from stages.manifest import (
    EXERCISES,
    HERE,
    REFERENCE,
    Exercise,
    Piece,
    Stage,
    exercises,
    find,
    find_function,
    pieces,
    stages,
)
from stages.moved import moved
from stages.predict import ask
from stages.processes import pool
from stages.read import page_of, read
from stages.report import (
    CAPSTONES,
    is_written,
    to_do,
    unfinished,
    unwritten,
    written,
)
from stages.running import Job, run_all
from stages.seal import is_noted, note, seal
from stages.seal import told as told_of_seal
from stages.tree import Broken, Tree, install, problems, reference_source
from stages.watch import watch
from stages.workspace import (
    Workspace,
    against_reference,
    lay_out,
    reset_files,
    reset_functions,
    restore,
    restore_function,
    stage_at_work,
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
    """Run the command that the command line names.

    Returns:
        The exit status: 0 for success.
    """
    parser = _parser()
    chosen = parser.parse_args(arguments)
    try:
        if found := moved(Path.cwd()):
            raise RuntimeError(found)
        lay_out()
        command: Command = chosen.command
        return command(chosen)
    except TROUBLE as error:
        CONSOLE.print(str(error), style="red")
        return 2
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m stages",
        description="The course: see your progress, and get help. "
        "`pytest stages/04` checks a stage.",
    )
    parser.set_defaults(command=progress, check=False)
    commands = parser.add_subparsers(metavar="command")
    add = commands.add_parser
    one = add(
        "progress", help="show what you have written so far (the default)"
    )
    one.add_argument("--check", action="store_true", help="also run the tests")
    one.set_defaults(command=progress)
    one = add("read", help="show the page of a stage, in a browser")
    one.add_argument(
        "page", nargs="?", help="03, capstones/gradient, views, why, tiny, …"
    )
    one.set_defaults(command=reading)
    one = add("predict", help="begin a stage: what does this program print?")
    one.add_argument("stage", type=_stage)
    one.add_argument("guess", nargs="?", help="what you think, in quotes")
    one.set_defaults(command=predicting)
    one = add("watch", help="check a stage again whenever a file is saved")
    one.add_argument("stage", type=_stage)
    one.set_defaults(command=watching)
    one = add(
        "hint", help="show a hint: level 1 is a nudge, 3 nearly the solution"
    )
    one.add_argument(
        "exercise",
        nargs="?",
        help="by default, the next one of the stage that you are in",
    )
    one.add_argument("level", type=_level, nargs="?", default=1)
    one.set_defaults(command=hint)
    one = add("reset", help="make functions stubs again; keeps a backup")
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
        help="bring back what the last reset or update changed, or only "
        "the exercise named before it",
    )
    one.set_defaults(command=reset)
    one = add("update", help="merge a newer fx into your files")
    one.set_defaults(command=updating)
    one = add("seal", help="run the library's own tests on your finished stage")
    one.add_argument("stage", type=_stage)
    one.set_defaults(command=sealing)
    one = add("blame", help="find which of your functions is wrong")
    one.add_argument("stage", type=_stage)
    one.set_defaults(command=blaming)
    one = add("break", help="try your answer to a stage's `break it`")
    one.add_argument("stage", type=_stage)
    one.set_defaults(command=breaking)
    one = add("run", help="run a script with your fx; stubs are borrowed")
    one.add_argument("script")
    one.add_argument("arguments", nargs=argparse.REMAINDER)
    one.set_defaults(command=running)
    one = add("grade", help="grade what students have handed in")
    one.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    one.add_argument(
        "--stages",
        type=_stages,
        default=[*stages()],
        metavar="01-03",
        help="which stages; by default, all",
    )
    one.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="also write FILE.csv, FILE.json or FILE.xml (JUnit's)",
    )
    one.add_argument(
        "--seconds",
        type=int,
        default=20,
        help="of processor time for the tests of a stage",
    )
    one.add_argument("--jobs", type=int, default=0, help="how many at a time")
    one.set_defaults(command=grading)
    one = add("variant", help="list operators for another capstone `gradient`")
    one.add_argument("seed", type=int)
    one.set_defaults(command=varying)
    one = add("prove", help="prove that a stage's tests find wrong programs")
    one.add_argument("stages", type=_stage, nargs="*", metavar="stage")
    one.set_defaults(command=proving)
    one = add("solution", help="show the reference's, once yours passes")
    one.add_argument("exercise")
    one.add_argument(
        "--spoil", action="store_true", help="do not wait until yours passes"
    )
    one.set_defaults(command=solution)
    return parser


def _stage(text: str) -> int:
    """The number of a stage, written 4, 04 or stages/04."""
    last = text.rstrip("/").rpartition("/")[2]
    if last.isdecimal() and int(last) in stages():
        return int(last)
    raise argparse.ArgumentTypeError(
        f"there is no stage {text!r}: the stages are 01 to {max(stages()):02d}"
    )


def _stages(text: str) -> list[int]:
    """The numbers of stages, written 3, 01-03 or 01,03."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found |= {*range(_stage(first), _stage(last or first) + 1)}
    return sorted(found)


def _level(text: str) -> int:
    """The level of a hint: 1, 2 or 3."""
    if text in ("1", "2", "3"):
        return int(text)
    raise argparse.ArgumentTypeError(
        "there are three hints: 1, 2, 3. When your function passes, "
        "`python -m stages solution` shows the reference's"
    )


def _tree(*numbers: int) -> Tree:
    """The learner's tree, with some stages under test."""
    return Tree(EXERCISES / "fx", under_test=numbers)


def _sound_tree() -> Tree:
    """The learner's tree without a stage under test, if it can be imported.

    Raises:
        Broken: it cannot be; the message lists every reason.
    """
    tree = _tree()
    if found := [*problems(tree)]:
        raise Broken("\n\n".join(found))
    return tree


# --- progress --------------------------------------------------------------


def progress(chosen: argparse.Namespace) -> int:
    """Print which exercises are written, and which one is next."""
    tree = _sound_tree()
    states = tree.states()
    verdicts = _verdicts(states) if chosen.check else {}
    heads = ("stage", "", "written", "exercises", "break it")
    table = Table(*heads, box=None, padding=(0, 2, 0, 0))
    for stage in stages().values():
        table.add_row(*_row(stage, tree, states, verdicts))
    CONSOLE.print(table)
    CONSOLE.print(f"\noptional: break it, and capstones: {_capstones()}\n")
    _print_next(states, verdicts)
    return 0


def _row(
    stage: Stage,
    tree: Tree,
    states: dict[str, State],
    verdicts: dict[str, str],
) -> tuple[str, str, str, str, str]:
    """The row of a stage in the table."""
    signs = "".join(_sign(one, states, verdicts) for one in stage.pieces)
    done = written(stage, states)
    count = f"{done} of {len(stage.pieces)}"
    words = [w for w in ("done", "sealed") if is_noted(tree, stage.number, w)]
    count = ", ".join([count, *words[-1:]])
    is_broken = is_answered(stage, EXERCISES / "break_it")
    optional = "w" if is_broken else "·"
    return f"{stage.number:02d}", stage.title, count, signs, optional


def _capstones() -> str:
    """The capstones, each with whether it is begun."""
    own = EXERCISES / "capstones"
    names = sorted(path.parent.name for path in HERE.glob("capstones/*/test_*"))
    return " ".join(
        f"{'w' if (own / f'{name}.py').is_file() else '·'} {name}"
        for name in names
    )


def _sign(
    piece: Piece, states: dict[str, State], verdicts: dict[str, str]
) -> str:
    """The verdict of an exercise's tests, or whether it is written."""
    if verdicts.get(piece.title, "").strip():
        return verdicts[piece.title]
    return "w" if is_written(piece, states) else "·"


def _verdicts(states: dict[str, State]) -> dict[str, str]:
    """The tests' verdicts on the exercises of stages that have been begun."""
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
        name: result.ran().verdicts[name]
        for number, result in zip(begun, results, strict=True)
        for piece in stages()[number].pieces
        for name in (piece.title, *(one.name for one in piece.functions))
    }


def _print_next(states: dict[str, State], verdicts: dict[str, str]) -> None:
    """Say what to do next."""
    if not verdicts:
        CONSOLE.print(
            "· to write   w written (`python -m stages progress --check` "
            "runs the tests)"
        )
    known = [*dict.fromkeys(pieces().values())]
    wrong = [one for one in known if verdicts.get(one.title) == "✗"]
    left = [one for one in known if not is_written(one, states)]
    for piece in (*wrong, *left)[:1]:
        verb = "fix" if wrong else "write"
        if not written(stages()[piece.stage], states) and not wrong:
            number = f"{piece.stage:02d}"
            CONSOLE.print(
                f"begin: python -m stages predict {number} (two minutes), "
                f"then python -m stages read {number}"
            )
        bad = [one for one in piece.functions if verdicts.get(one.name) == "✗"]
        title, one = to_do(piece, bad or unwritten(piece, states))
        CONSOLE.print(
            f"next: {verb} {title} in exercises/fx/{one.file}, "
            f"then pytest stages/{piece.stage:02d}"
        )
        CONSOLE.print(f"      {piece.task}")
        return
    CONSOLE.print("All exercises are written.")
    CONSOLE.print(f"next: {CAPSTONES}")


def reading(chosen: argparse.Namespace) -> int:
    """Show a page; by default, that of the lowest stage to write."""
    left = unfinished(_tree().states())
    name = chosen.page or f"{(left or [*stages()])[0]:02d}"
    return read(page_of(name), CONSOLE)


def predicting(chosen: argparse.Namespace) -> int:
    """Ask what a program prints, and run it with the learner's fx."""
    install(_sound_tree())
    guess: str | None = chosen.guess
    if guess is None and not CONSOLE.is_terminal:
        guess = ""
    ask(stages()[chosen.stage], guess, CONSOLE)
    return 0


def watching(chosen: argparse.Namespace) -> int:
    """Check a stage on every save until interrupted."""
    return watch(chosen.stage)


def sealing(chosen: argparse.Namespace) -> int:
    """Run on a stage what the library is tested with, if its tests pass."""
    number: int = chosen.stage
    tree, began = _tree(number), time.monotonic()
    with pool() as executor:
        (result,) = run_all([Job(tree, [number])], executor)
    if result.ran().status:
        CONSOLE.print(result.output)
        return 1
    CONSOLE.print(f"Stage {number:02d}: exercises done ✓")
    CONSOLE.print("Now the library's own tests run on your code:")
    try:
        found = seal(tree, number, time.monotonic() - began, CONSOLE)
    except KeyboardInterrupt:
        CONSOLE.print(f"Stage {number:02d} is done, and not sealed.")
        return 130
    if found is None:
        note(tree, number, "sealed")
        CONSOLE.print(f"Stage {number:02d} is sealed ✓")
        return 0
    for line in told_of_seal(found):
        CONSOLE.print(line)
    CONSOLE.print(f"Stage {number:02d} is done, and not sealed.")
    return 1


# --- help ------------------------------------------------------------------


def hint(chosen: argparse.Namespace) -> int:
    """Print the hints of an exercise up to a level."""
    one = find(chosen.exercise) if chosen.exercise else _next_unwritten()
    CONSOLE.print(f"{one.title} (stage {one.stage:02d}): {one.task}")
    for level, text in enumerate(one.hints[: chosen.level], 1):
        CONSOLE.print(f"\nhint {level} of 3: {text}")
    CONSOLE.print()
    if len(one.functions) > 1:
        _print_steps(one)
    if chosen.level < 3:
        CONSOLE.print(
            f"more: python -m stages hint {one.title} {chosen.level + 1}"
        )
    heading = one.anchor.replace("-", " ")
    CONSOLE.print(f"read: python -m stages read {one.stage:02d}, {heading!r}")
    return 0


def _next_unwritten() -> Piece:
    """The next exercise to write, beginning where the learner works.

    Raises:
        LookupError: all are written.
    """
    states = _tree().states()
    for piece in _from_here(dict.fromkeys(pieces().values())):
        if not is_written(piece, states):
            return piece
    raise LookupError(
        "all exercises are written: name the one you want a hint for"
    )


def _from_here(found: Iterable[Piece]) -> list[Piece]:
    """Exercises of the stage at work first, then of those after it."""
    here = stage_at_work(Workspace()) or 0
    return sorted(found, key=lambda piece: piece.stage < here)


def _print_steps(piece: Exercise | Piece) -> None:
    """List the functions of an exercise, and the next one to write."""
    states = _tree().states()
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for one in piece.functions:
        sign = "w" if is_written(one, states) else "·"
        table.add_row(sign, one.qualname, one.task)
    CONSOLE.print(table)
    CONSOLE.print("· to write   w written\n")
    for one in piece.functions:
        if not is_written(one, states):
            where = f"stages/{one.stage:02d} --exercise {one.qualname}"
            CONSOLE.print(f"step: {one.qualname} in exercises/fx/{one.file}")
            CONSOLE.print(f"      python -m stages hint {one.qualname}")
            CONSOLE.print(f"      pytest {where}")
            break


def blaming(chosen: argparse.Namespace) -> int:
    """Find which function makes a stage's tests fail."""
    with pool() as executor:
        found = blame(_tree(chosen.stage), chosen.stage, executor)
    for line in told(found):
        CONSOLE.print(line)
    return bool(found.failing)


def breaking(chosen: argparse.Namespace) -> int:
    """Show the wrong version of a stage, and try the learner's answer."""
    stage = stages()[chosen.stage]
    one = find_function(wrong_version(stage).function)
    if _tree().states()[one.name] is not State.WRITTEN:
        CONSOLE.print(
            f"Write {one.qualname} first: the version to break shows most of "
            f"what is right."
        )
        return 1
    code = wrong_source(stage)
    CONSOLE.print(Syntax(code, "python", background_color="default"))
    CONSOLE.print(f"This version believes: {stage.break_it.misconception}")
    CONSOLE.print(f"{stage.break_it.task}\n")
    is_broken = False
    with pool() as executor:
        for is_broken, line in verdict(stage, executor):
            CONSOLE.print(f"{'✓' if is_broken else '✗'} {line}")
    return not is_broken


def solution(chosen: argparse.Namespace) -> int:
    """Show the reference's version of an exercise once the learner's passes."""
    one = find(chosen.exercise)
    if not chosen.spoil:
        job = Job(_tree(one.stage), [one.stage], exercise=one.title)
        with pool() as executor:
            (result,) = run_all([job], executor)
        if result.ran().status != 0:
            CONSOLE.print(
                f"{one.title} does not pass yet. Once it does, this "
                f"command shows the reference's version beside yours. To see "
                f"it now, add --spoil; or try the last hint first: "
                f"python -m stages hint {one.title} 3"
            )
            return 1
    for function in one.functions:
        _show_code(function)
        if not chosen.spoil:
            for line in against_reference(Workspace(), function):
                CONSOLE.print(line)
    return 0


def _show_code(one: Exercise) -> None:
    """Print the reference's version of a function."""
    code = reference_source(one)
    CONSOLE.print(Syntax(code, "python", background_color="default"))


def running(chosen: argparse.Namespace) -> int:
    """Run a script in which `import fx` imports the learner's fx."""
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
    except Exception:  # an error of the script itself
        traceback.print_exc()
        return 1
    return 0


def grading(chosen: argparse.Namespace) -> int:
    """Grade folders of students; 0 if all that was asked for is right."""
    out: Path | None = chosen.out
    # A name that nothing writes is refused before the work, not after it.
    if out is not None and out.suffix not in WRITERS:
        known = ", ".join(WRITERS)
        raise LookupError(f"{out}: the name must end in one of {known}")
    rows = grade(
        chosen.folders,
        chosen.stages,
        CONSOLE,
        seconds=chosen.seconds,
        jobs=chosen.jobs,
    )
    show(rows, CONSOLE)
    if out is not None:
        out.write_text(WRITERS[out.suffix](rows), encoding="utf-8")
        CONSOLE.print(f"written: {out}")
    marks = [mark for row in rows for mark in row.marks.values()]
    return any(why for mark in marks for why in mark.told.values())


def proving(chosen: argparse.Namespace) -> int:
    """Prove the tests of the stages named, or of all."""
    return prove.main(chosen.stages or [*stages()], CONSOLE.print)


def varying(chosen: argparse.Namespace) -> int:
    """Print the operators that a seed adds to the capstone `gradient`."""
    seed: int = chosen.seed
    CONSOLE.print("Beside those of the page, the programs use")
    for one in operators(seed):
        CONSOLE.print(f"  {one.written}")
    CONSOLE.print("where x and y are above 0, and broadcast. Check it with")
    CONSOLE.print(f"  pytest stages/capstones/gradient --variant {seed}")
    return 0


# --- files -----------------------------------------------------------------


def _is_stage(text: str) -> bool:
    """Whether an argument means a stage: 4, 04 or stages/04."""
    return text.removeprefix("stages/").rstrip("/").isdecimal()


def _file(text: str) -> str:
    """The path of a file below fx/; `text` may begin with exercises/ or fx/.

    Raises:
        LookupError: fx has no such file.
    """
    name = text.replace("\\", "/").removeprefix("exercises/")
    name = name.removeprefix("fx/")
    if not (REFERENCE / name).is_file():
        raise LookupError(f"fx has no file {text!r}")
    return name


def reset(chosen: argparse.Namespace) -> int:
    """Make functions stubs again, or restore a backup."""
    work = Workspace()
    if chosen.restore is not None and chosen.what:
        for one in find(chosen.what).functions:
            source = restore_function(work, one, chosen.restore or None)
            CONSOLE.print(f"restored: {one.qualname}, from {_short(source)}")
        CONSOLE.print("To undo this, use the same command again.")
        return 0
    if chosen.restore is not None:
        for file in restore(work, chosen.restore or None):
            CONSOLE.print(f"restored: exercises/fx/{file}")
        CONSOLE.print("To undo this, use --restore again.")
        return 0
    if not chosen.what:
        raise LookupError("reset what? An exercise, a file, a stage, or all.")
    kept = _reset(work, chosen.what)
    CONSOLE.print(f"done; a backup of your code is in {_short(kept)}")
    CONSOLE.print("python -m stages reset --restore brings it back")
    return 0


def _short(path: Path) -> str:
    """A path relative to the project's root folder, if it is inside."""
    root = EXERCISES.parent
    return str(path.relative_to(root) if path.is_relative_to(root) else path)


def _reset(work: Workspace, what: str) -> Path:
    """Reset an exercise, a file, a stage, or all; returns the backup."""
    if what == "all":
        return reset_files(work, generated(work.reference))
    if what.endswith(".py"):
        return reset_files(work, [_file(what)])
    if _is_stage(what):
        wanted = stages()[_stage(what)].exercises
    else:
        wanted = find(what).functions
    try:
        return reset_functions(work, wanted)
    except (LookupError, SyntaxError, FileNotFoundError) as error:
        files = sorted({one.file for one in wanted})
        raise LookupError(
            f"Nothing was changed, because the functions could not be reset "
            f"on their own ({error}). You can reset whole files:"
            + "".join(f"\n    python -m stages reset {f}" for f in files)
        ) from None


def updating(chosen: argparse.Namespace) -> int:
    """Merge a newer reference into the learner's files."""
    done = update(Workspace())
    if not done.changed:
        CONSOLE.print("Your files are up to date.")
        return 0
    for name in done.changed:
        CONSOLE.print(f"updated: exercises/fx/{name}")
    for name, lines in done.conflicts.items():
        for line in lines:
            CONSOLE.print(f"conflict: exercises/fx/{name}:{line}", style="red")
    assert done.backup is not None
    CONSOLE.print(f"a backup of your code is in {_short(done.backup)}")
    if done.conflicts:
        CONSOLE.print(
            "At each conflict, keep the lines you want between the markers "
            "<<<<<<< and >>>>>>>, and remove the others and the markers."
        )
    return bool(done.conflicts)


if __name__ == "__main__":
    sys.exit(main())
