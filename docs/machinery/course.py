"""What a stage asks of the learner.

`/// write | NAME`, `/// exercises | 01`, `/// stages`, `/// stub | NAME`,
`/// told | NAME`.
"""

from __future__ import annotations

import textwrap
import xml.etree.ElementTree as etree

from docs.machinery.directives import Kind
from docs.machinery.scene import Block, Scene, after, element, prose
from docs.machinery.source import ROOT, Place, find
from stages import functions
from stages.generate import generated
from stages.manifest import Exercise, Piece, Stage, exercises, stages

TOLD = ROOT / "tests" / "course" / "golden"
"""What checks say, to the letter; tests/course/test_golden.py runs them."""


def _exercises(scene: Scene) -> etree.Element:
    """Every exercise of a stage: the task, and where."""
    stage = scene.directive.argument
    known = {f"{number:02d}": one for number, one in _known(scene).items()}
    if stage not in known:
        raise scene.error(f"no stage {stage!r}: there are {', '.join(known)}")
    _commands(scene, stage)
    rows = element(scene.parent, "ol", css="fx-exercises")
    for piece in known[stage].pieces:
        _row(scene, element(rows, "li"), piece)
    _break_it(scene, element(rows, "li"), known[stage])
    return rows


def _known(scene: Scene) -> dict[int, Stage]:
    """The stages that there are."""
    try:
        return stages()
    except ValueError as error:
        raise scene.error(error) from None


def _commands(scene: Scene, stage: str) -> None:
    """What to type."""
    lines = (
        f"python -m stages watch {stage}    # checks at each save\n"
        f"python -m stages hint    # a hint for the next one, then more\n"
        f"python -m stages solution NAME    # ours, once yours passes"
    )
    scene.code(scene.parent, lines, language="sh")


def _row(scene: Scene, item: etree.Element, piece: Piece) -> None:
    """One exercise: its functions, where they are, and the task."""
    for one in piece.functions:
        place = _place(one)
        head = element(item, "p")
        head.set("id", f"exercise-{one.name}")
        code = element(head, "code", place.unit.name, css="fx-function")
        after(code, " ")
        file = place.module.path.removeprefix("fx/")
        where = element(head, "span", f"exercises/fx/{file} · ", css="fx-where")
        element(where, "a", "idea", href=_idea(scene, one))
    if len(piece.functions) > 1:
        prose(item, "p", f"Together they are one exercise, `{piece.title}`.")
    prose(item, "p", piece.task)


def _break_it(scene: Scene, item: etree.Element, stage: Stage) -> None:
    """The program that is to be found, once the rest is written."""
    head = element(item, "p")
    after(element(head, "strong", "Break it"), " ")
    where = f"exercises/break_it/{stage.number:02d}.py"
    element(head, "span", where, css="fx-where")
    prose(
        item,
        "p",
        f"{stage.break_it.task} The wrong version is shown, and your answer is "
        f"tried on both, by `python -m stages break {stage.number:02d}`.",
    )


def _place(exercise: Exercise) -> Place:
    """Where the reference has the function, or the one that it is in."""
    name = exercise.name.replace(exercise.qualname, "", 1)
    outer, _, inner = exercise.qualname.partition(".")
    shown = outer if outer.islower() and inner else exercise.qualname
    return find(f"fx.{name}{shown}")


def _idea(scene: Scene, exercise: Exercise) -> str:
    """Where the exercise is explained."""
    page = scene.directive.page
    stage = scene.directive.argument
    if page == f"stages/{stage}.md":
        return f"#{exercise.anchor}"
    return f"{'../' * page.count('/')}stages/{stage}.md#{exercise.anchor}"


def _stages(scene: Scene) -> etree.Element:
    """Every stage: what one has built at its end."""
    up = "../" * scene.directive.page.count("/")
    rows = element(scene.parent, "ol", css="fx-stages")
    for number, stage in _known(scene).items():
        item = element(rows, "li")
        page = f"stages/{number:02d}.md"
        if (ROOT / "docs" / page).is_file():
            title = element(item, "a", stage.title, href=up + page)
        else:
            title = element(item, "strong", stage.title)
        after(title, ". ")
        prose(item, "span", stage.summary)
    return rows


def _write(scene: Scene) -> etree.Element:
    """What the author of one function must know, folded."""
    name = scene.directive.argument
    place = find(f"fx.{name}")
    if name not in exercises():
        raise scene.error(f"{name} is not an exercise: there is no stub of it")
    box = element(scene.parent, "details", css="fx-write")
    summary = element(box, "summary", "To write it: ")
    element(summary, "code", place.unit.name)
    return element(box, "div")


def _stub(scene: Scene) -> etree.Element:
    """An exercise as the learner finds it."""
    one = exercises().get(scene.directive.argument)
    if one is None:
        raise scene.error(f"no exercise {scene.directive.argument!r}")
    source = functions.source_of(generated()[one.file], one.qualname)
    element(scene.parent, "p", f"exercises/fx/{one.file}", css="fx-where")
    scene.code(scene.parent, textwrap.dedent(source).rstrip())
    return element(scene.parent, "div")


def _told(scene: Scene) -> etree.Element:
    """What a check says, up to a line of it."""
    path = TOLD / f"{scene.directive.argument}.txt"
    if not path.is_file():
        known = ", ".join(sorted(one.stem for one in TOLD.glob("*.txt")))
        raise scene.error(f"no text {path.stem!r}: there are {known}")
    text = path.read_text(encoding="utf-8")
    if last := scene.directive.option("to"):
        head, found, rest = text.partition(last)
        if not found:
            raise scene.error(f"to: no line contains {last!r}")
        text = head + last + rest.partition("\n")[0] + "\n…"
    scene.output(scene.parent, text.strip("\n"))
    return element(scene.parent, "div")


BLOCKS = {
    "write": Block(Kind(True, {}, "prose"), _write),
    "exercises": Block(Kind(True, {}, "none"), _exercises),
    "stages": Block(Kind(False, {}, "none"), _stages),
    "stub": Block(Kind(True, {}, "none"), _stub),
    "told": Block(Kind(True, {"to": False}, "none"), _told),
}
