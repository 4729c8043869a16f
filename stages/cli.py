"""The commands of `python -m stages`."""

from __future__ import annotations

import argparse
import importlib.util
import os
import runpy
import socket
import subprocess
import sys
import time
import traceback
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table

from stages import prove
from stages.blame import blame, told
from stages.break_it import verdict, wrong_source, wrong_version
from stages.functions import State
from stages.generate import generated
from stages.grade import WRITERS, grade, show
from stages.manifest import (
    EXERCISES,
    REFERENCE,
    ROOT,
    Piece,
    Stage,
    exercises,
    find,
    stages,
)
from stages.predict import ask
from stages.report import (
    CAPSTONES,
    counted,
    is_written,
    to_write,
    unfinished,
    written,
)
from stages.running import Job, pool, run_all
from stages.seal import seal
from stages.seal import told as told_of_seal
from stages.tree import Broken, Tree, install, problems, reference_source
from stages.watch import watch
from stages.workspace import (
    Workspace,
    against_reference,
    is_noted,
    lay_out,
    moved,
    note,
    reset_files,
    reset_functions,
    restore,
    stage_checked,
)

DOCS: Final = ROOT / "docs"
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

Command: TypeAlias = Callable[[argparse.Namespace], int]
Option: TypeAlias = Any
"""What argparse takes for an option."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the command line names.

    Returns:
        The exit status: 0 for success.
    """
    chosen = _parser().parse_args(arguments)
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
    parser.set_defaults(command=progress)
    commands = parser.add_subparsers(metavar="command")

    def add(name: str, command: Command, about: str, **options: Option) -> None:
        """Add a command; a name that begins with `_` is an `--option`."""
        one = commands.add_parser(name, help=about)
        one.set_defaults(command=command)
        for option, how in options.items():
            dashed = option.replace("_", "--", 1)
            one.add_argument(dashed, **how)

    stage = {"type": _stage}
    maybe = {"nargs": "?"}
    add("progress", progress, "show what you have written (the default)")
    pages = "03, capstones/gradient, views, why, tiny, …"
    about = "show the page of a stage, in a browser"
    add("read", reading, about, page=maybe | {"help": pages})
    about = "begin a stage: what does this program print?"
    guess = maybe | {"help": "what you think, in quotes"}
    add("predict", predicting, about, stage=stage, guess=guess)
    about = "check a stage again whenever a file is saved"
    add("watch", lambda chosen: watch(chosen.stage), about, stage=stage)
    about = "show a hint: level 1 is a nudge, 3 nearly the solution"
    named = maybe | {"help": "by default, the next one"}
    level = maybe | {"type": _level, "default": 1}
    add("hint", hint, about, exercise=named, level=level)
    what = "an exercise, a file like node.py, a stage like 04, or all"
    back = "bring back what the last reset changed"
    add(
        *("reset", reset, "make functions stubs again; keeps a backup"),
        what=maybe | {"help": what},
        _restore=maybe | {"const": "", "metavar": "BACKUP", "help": back},
    )
    about = "run the library's own tests on a stage that is done"
    add("seal", sealing, about, stage=stage)
    about = "find which of your functions is wrong"
    add("blame", blaming, about, stage=stage)
    add("break", breaking, "try your answer to `break it`", stage=stage)
    about = "run a script with your fx; stubs are borrowed"
    rest = {"nargs": argparse.REMAINDER}
    add("run", running, about, script={}, arguments=rest)
    about = "show the reference's, once yours passes"
    spoil = {"action": "store_true", "help": "do not wait until yours passes"}
    add("solution", solution, about, exercise={}, _spoil=spoil)
    add(
        *("grade", grading, "grade what students have handed in"),
        folders={"nargs": "+", "type": Path, "metavar": "FOLDER"},
        _stages={
            **{"type": _stages, "default": [*stages()], "metavar": "01-03"},
            "help": "which stages; by default, all",
        },
        _out={
            **{"type": Path, "metavar": "FILE"},
            "help": "also write FILE.csv, FILE.json or FILE.xml (JUnit's)",
        },
        _seconds={
            **{"type": int, "default": 20},
            "help": "of processor time for the tests of a stage",
        },
        _jobs={"type": int, "default": 0, "help": "how many at a time"},
        _seal={"action": "store_true", "help": "also seal what is all right"},
    )
    about = "prove that a stage's tests find wrong programs (for authors)"
    add("prove", proving, about, stages=stage | {"nargs": "*"})
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


def _install() -> None:
    """Make `import fx` import the learner's tree.

    Raises:
        Broken: it cannot be imported; the message lists every reason.
    """
    if found := [*problems(_tree())]:
        raise Broken("\n\n".join(found))
    install(_tree())


# --- progress --------------------------------------------------------------


def progress(chosen: argparse.Namespace) -> int:
    """Print how many functions are written, and which one is next."""
    tree = _tree()
    states = tree.states()
    heads = ("stage", "", "functions", "exercises")
    table = Table(*heads, box=None, padding=(0, 2, 0, 0))
    for stage in stages().values():
        table.add_row(*_row(stage, tree, states))
    CONSOLE.print(table)
    CONSOLE.print("· to write   w written   ! cannot be read\n")
    if found := [*problems(tree)]:
        raise Broken("\n\n".join(found))
    left = [
        piece
        for stage in stages().values()
        for piece in stage.pieces
        if not is_written(piece, states)
    ]
    if not left:
        CONSOLE.print(f"All exercises are written.\nnext: {CAPSTONES}")
        return 0
    piece, number = left[0], f"{left[0].stage:02d}"
    if not any(written(one, states) for one in stages()[piece.stage].pieces):
        CONSOLE.print(
            f"begin: python -m stages predict {number} (two minutes), "
            f"then python -m stages read {number}"
        )
    title, one = to_write(piece, states)
    CONSOLE.print(f"next: write {title} in exercises/fx/{one.file},")
    CONSOLE.print(f"      while python -m stages watch {number} checks it")
    CONSOLE.print(f"      {piece.task}")
    return 0


def _row(
    stage: Stage, tree: Tree, states: dict[str, State]
) -> tuple[str, str, str, str]:
    """The row of a stage in the table."""
    signs = "".join(_sign(piece, states) for piece in stage.pieces)
    done = sum(written(piece, states) for piece in stage.pieces)
    words = [f"{done} of {len(stage.exercises)}"]
    if "!" not in signs:
        notes = ("sealed", "done")
        words += [w for w in notes if is_noted(tree, stage.number, w)][:1]
    return f"{stage.number:02d}", stage.title, ", ".join(words), signs


def _sign(piece: Piece, states: dict[str, State]) -> str:
    """Whether an exercise is written, or cannot be read."""
    if any(states[one.name] is State.BROKEN for one in piece.functions):
        return "!"
    return "w" if is_written(piece, states) else "·"


def reading(chosen: argparse.Namespace) -> int:
    """Show a page; by default, that of the lowest stage to write.

    Raises:
        RuntimeError: MkDocs is not installed.
    """
    left = unfinished(_tree().states())
    path = page_of(chosen.page or f"{(left or [*stages()])[0]:02d}")
    place = path.relative_to(DOCS).with_suffix("").as_posix()
    if importlib.util.find_spec("mkdocs") is None:
        raise RuntimeError(
            f"MkDocs shows the pages, and is not installed:\n"
            f"    pip install -e '.[course,docs]'\n"
            f"The text of this page is in docs/{place}.md."
        )
    CONSOLE.print(f"Building the site for {place}, in one or two minutes …")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    server = subprocess.Popen(
        [
            *(sys.executable, "-m", "mkdocs", "serve", "--quiet"),
            *("--no-strict", "--no-livereload", "-a", f"127.0.0.1:{port}"),
        ],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "SITE_URL": ""},
    )
    try:
        while server.poll() is None and not _answers(port):
            time.sleep(0.2)
        address = f"http://127.0.0.1:{port}/{place.removesuffix('index')}"
        CONSOLE.print(f"{address}    (Ctrl-C ends)")
        if has_windows():
            webbrowser.open(address)
        return server.wait()
    finally:
        server.terminate()
        server.wait()


def page_of(name: str) -> Path:
    """The page of a stage, or of another name: `3`, `views`, `capstones/int8`.

    Raises:
        LookupError: there is no such page.
    """
    last = name.removeprefix("stages/").removesuffix(".md").rstrip("/")
    if last.isdecimal() and int(last) in stages():
        return DOCS / "stages" / f"{int(last):02d}.md"
    for folder in (DOCS, DOCS / "capstones"):
        path = folder / f"{name.removesuffix('.md')}.md"
        if path.is_file() and path.resolve().is_relative_to(DOCS):
            return path
    known = ", ".join(sorted(path.stem for path in DOCS.glob("*.md")))
    raise LookupError(
        f"there is no page {name!r}. A stage is a number, a capstone is "
        f"`gradient`, and the other pages are {known}"
    )


def _answers(port: int) -> bool:
    """Whether something on this machine listens at a port."""
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


def has_windows() -> bool:
    """Whether a browser with windows can be opened from here."""
    shown = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return bool(shown) or not sys.platform.startswith("linux")


def predicting(chosen: argparse.Namespace) -> int:
    """Ask what a program prints, and run it with the learner's fx."""
    _install()
    guess: str | None = chosen.guess
    if guess is None and not (CONSOLE.is_terminal and sys.stdin.isatty()):
        guess = ""
    ask(stages()[chosen.stage], guess, CONSOLE)
    return 0


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
    status, lines = 0, list[str]()
    try:
        if found := seal(tree, number, time.monotonic() - began, CONSOLE):
            status, lines = 1, [*told_of_seal(found)]
    except KeyboardInterrupt:
        status = 130
    if not status:
        note(tree, number, "sealed")
    end = "done, and not sealed." if status else "sealed ✓"
    for line in (*lines, f"Stage {number:02d} is {end}"):
        CONSOLE.print(line)
    return status


# --- help ------------------------------------------------------------------


def hint(chosen: argparse.Namespace) -> int:
    """Print the hints of an exercise up to a level."""
    states = _tree().states()
    one = find(chosen.exercise) if chosen.exercise else _next(states)
    CONSOLE.print(f"{one.title} (stage {one.stage:02d}): {one.task}")
    for level, text in enumerate(one.hints[: chosen.level], 1):
        CONSOLE.print(f"\nhint {level} of 3: {text}")
    CONSOLE.print()
    if len(one.functions) > 1:
        _print_steps(one, states)
    if chosen.level < 3:
        CONSOLE.print(
            f"more: python -m stages hint {one.title} {chosen.level + 1}"
        )
    heading = one.anchor.replace("-", " ")
    CONSOLE.print(f"read: python -m stages read {one.stage:02d}, {heading!r}")
    return 0


def _next(states: dict[str, State]) -> Piece:
    """The next exercise to write, from the stage on that was checked last.

    Raises:
        LookupError: all are written.
    """
    here = stage_checked(Workspace())
    for number in sorted(stages(), key=lambda number: number < here):
        for piece in stages()[number].pieces:
            if not is_written(piece, states):
                return piece
    raise LookupError(
        "all exercises are written: name the one you want a hint for"
    )


def _print_steps(piece: Piece, states: dict[str, State]) -> None:
    """List the functions of an exercise, and the next one to write."""
    CONSOLE.print(f"{counted(piece, states)} functions written:")
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for one in piece.functions:
        sign = "w" if states[one.name] is State.WRITTEN else "·"
        table.add_row(sign, one.qualname, one.task)
    CONSOLE.print(table)
    if not is_written(piece, states):
        _, one = to_write(piece, states)
        CONSOLE.print(f"step: {one.qualname} in exercises/fx/{one.file}")
        CONSOLE.print(f"      python -m stages hint {one.qualname}")


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
    one = exercises()[wrong_version(stage).function]
    if _tree().states()[one.name] is not State.WRITTEN:
        CONSOLE.print(
            f"Write {one.qualname} first: the version to break shows most of "
            f"what is right."
        )
        return 1
    _print_code(wrong_source(stage))
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
        _print_code(reference_source(function))
        if not chosen.spoil:
            for line in against_reference(Workspace(), function):
                CONSOLE.print(line)
    return 0


def _print_code(code: str) -> None:
    """Print a program in colours."""
    CONSOLE.print(Syntax(code, "python", background_color="default"))


def running(chosen: argparse.Namespace) -> int:
    """Run a script in which `import fx` imports the learner's fx."""
    script = Path(chosen.script).resolve()
    if not script.is_file():
        raise LookupError(f"there is no file {chosen.script}")
    _install()
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
        seals=chosen.seal,
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


# --- files -----------------------------------------------------------------


def reset(chosen: argparse.Namespace) -> int:
    """Make functions stubs again, or restore a backup."""
    work = Workspace()
    if chosen.restore is not None:
        for file in restore(work, chosen.restore or None):
            CONSOLE.print(f"restored: exercises/fx/{file}")
        CONSOLE.print("To undo this, use --restore again.")
        return 0
    if not chosen.what:
        raise LookupError("reset what? An exercise, a file, a stage, or all.")
    kept = _reset(work, chosen.what)
    CONSOLE.print(f"done; a backup of your code is in exercises/{kept}")
    CONSOLE.print("python -m stages reset --restore brings it back")
    return 0


def _reset(work: Workspace, what: str) -> str:
    """Reset an exercise, a file, a stage, or all; returns the backup."""
    if what == "all":
        return reset_files(work, generated(work.reference))
    if what.endswith(".py"):
        name = what.removeprefix("exercises/").removeprefix("fx/")
        if not (REFERENCE / name).is_file():
            raise LookupError(f"fx has no file {what!r}")
        return reset_files(work, [name])
    if what.removeprefix("stages/").rstrip("/").isdecimal():
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
