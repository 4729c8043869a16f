"""Programs that the reader edits and runs: `/// play`, `/// written`.

A page has the program and what it printed when the page was built.  If Python
for browsers was there when the site was made, a script offers to load it; it
runs the files of fx that `FILES` lists, and a stand-in for torch.
"""

from __future__ import annotations

import ast
import importlib.util
import io
import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as etree
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Final

from docs.machinery import running
from docs.machinery.directives import Kind
from docs.machinery.making import MADE, to_the_root, write
from docs.machinery.scene import Block, Scene, element, prose
from docs.machinery.small_torch import listed
from docs.machinery.source import ROOT
from docs.machinery.standalone import standalone
from fx.show.document import SCRIPTS
from stages.manifest import stages

STAGES: Final = 5
"""The last stage of which all files run with the stand-in for torch."""

MORE: Final = (
    *("interpreter.py", "codegen/nested.py", "subgraph_rewriter.py"),
    *("show/page.py", "passes/graph_diff.py"),
)
"""Files of later stages and passes that run with it, too."""

INSTEAD: Final = {
    "show/measure.py": "measure.py",
    "passes/utils/call_order.py": "call_order.py",
}
"""Files that need more than the stand-in, and what a page has instead."""

PYTHON: Final = "pyodide@314.0.7"
"""The package of Python for browsers, and its version."""

EDITOR: Final = "codemirror@5.65.21"
"""The package of the editor, and its version."""

OF_EDITOR: Final = (
    *("lib/codemirror.js", "lib/codemirror.css", "mode/python/python.js"),
)
PARTS: Final = (
    "pyodide.mjs",
    "pyodide.asm.mjs",
    "pyodide.asm.wasm",
    "pyodide-lock.json",
    "python_stdlib.zip",
)
"""Its files that a page loads."""

WRITTEN: Final = (1, 2, 3)
"""The stages whose exercises are written in a page."""

PYTEST: Final = (
    *("pytest", "_pytest", "py", "pluggy"),
    *("iniconfig", "packaging", "pygments"),
)
"""The modules of pytest, and of what it imports."""

ASSETS: Final = ("page.html", "page.css", *SCRIPTS)
"""What the viewer's page consists of."""

CACHE: Final = ROOT / "build" / "playground"
PLAY: Final = MADE / "play"
FX: Final = ROOT / "fx"
PLAYGROUND: Final = ROOT / "docs" / "playground"
EXERCISES: Final = ROOT / "exercises" / "fx"


def make() -> None:
    """Put what the pages load into docs/made."""
    write(PLAY / "fx.zip", archive(contents()))
    write(PLAY / "course.zip", archive(of_course()))
    for wanted, parts in ((PYTHON, PARTS), (EDITOR, OF_EDITOR)):
        if folder := package(wanted):
            for name in parts:
                part = folder / name
                write(PLAY / part.name, part.read_bytes())


def package(wanted: str) -> Path | None:
    """Where a package of npm is; it is fetched once, if npm is there."""
    folder = CACHE / wanted / "package"
    npm = shutil.which("npm")
    if not folder.is_dir() and npm:
        target = folder.parent
        target.mkdir(parents=True, exist_ok=True)
        try:
            packed = subprocess.run(
                [npm, "pack", "--silent", wanted],
                cwd=target,
                check=True,
                capture_output=True,
                text=True,
            ).stdout.split()[-1]
            shutil.unpack_archive(target / packed, target)
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"{wanted} was not fetched, so no page offers it: {error}")
    return folder if folder.is_dir() else None


def megabytes() -> int:
    """What a page loads on a click; 0 if Python is not there."""
    sizes = [(PLAY / name) for name in (*PARTS, "fx.zip")]
    if not all(path.is_file() for path in sizes):
        return 0
    return round(sum(path.stat().st_size for path in sizes) / 1e6)


# --- the files of fx --------------------------------------------------------


def files() -> list[Path]:
    """The files that run in a page: those of the stages, and what they use."""
    seen: set[Path] = set()
    waiting = [FX / name for name in MORE]
    for number, stage in stages().items():
        if number <= STAGES:
            waiting += [FX / name for name in stage.core]
            waiting += sorted((FX / "tracing").glob("*.py")) * (number == 4)
    waiting.append(FX / "_symbolic_trace.py")
    while waiting:
        path = waiting.pop()
        if path not in seen and path != FX / "__init__.py":
            seen.add(path)
            if path.relative_to(FX).as_posix() not in INSTEAD:
                waiting += used_by(path)
            if (package := path.parent / "__init__.py").is_file():
                waiting.append(package)
    return sorted(seen)


def used_by(path: Path) -> Iterator[Path]:
    """The files of fx that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = path.parents[node.level - 1]
            base = base.joinpath(*(node.module or "").split("."))
            for place in (base, *(base / one.name for one in node.names)):
                for found in (place.with_suffix(".py"), place / "__init__.py"):
                    if found.is_file():
                        yield found


def face() -> str:
    """The names of fx that these files define, imported as fx does."""
    there = {*files()}
    top = ast.parse((FX / "__init__.py").read_text(encoding="utf-8")).body
    lines = ['"""The part of fx that runs in a page."""']
    for node in top:
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module:
            place = FX.joinpath(*node.module.split("."))
            own = {place / f"{one.name}.py" for one in node.names}
            if place.with_suffix(".py") in there or own <= there:
                lines.append(ast.unparse(node))
    return "\n".join(lines) + _ABSENT


_ABSENT: Final = """
from playground import effects as _effects
from fx.passes.graph_diff import diff
from playground.showing import show

Tracer.record_stack_traces = True  # the viewer shows the lines


def __getattr__(name):
    raise AttributeError(
        f"fx.{name} needs the installed torch: the small one of this page has "
        "shapes and no numbers"
    )
"""
"""What fx says in a page of the names that it lacks there."""


def contents() -> Iterator[tuple[str, str]]:
    """Each file that a page has, and its text."""
    for path in files():
        other = INSTEAD.get(path.relative_to(FX).as_posix())
        text = (PLAYGROUND / other if other else path).read_text("utf-8")
        yield path.relative_to(ROOT).as_posix(), text
    yield "fx/__init__.py", face()
    for name in ASSETS:
        yield f"fx/show/{name}", (FX / "show" / name).read_text("utf-8")
    docs = ROOT / "docs"
    for folder, name in (("standin", "torch"), ("playground", "playground")):
        for path in sorted((docs / folder).rglob("*.py")):
            below = path.relative_to(docs / folder).as_posix()
            yield f"{name}/{below}", path.read_text("utf-8")
    yield "torch/listed.json", listed()
    yield "tiny_fx.py", (docs / "examples" / "tiny_fx.py").read_text("utf-8")


def of_course() -> Iterator[tuple[str, str]]:
    """What the checks of stages need, and pytest from the environment.

    All other files of exercises/fx are copies, which the first check lays.
    """
    parts = ["stages/*.py", *(f"stages/{one:02d}/*.*" for one in WRITTEN)]
    tests = [path for part in parts for path in ROOT.glob(part)]
    stubs = [EXERCISES / name for one in WRITTEN for name in asked(one)]
    for path in sorted([*tests, *files(), *stubs]):
        yield path.relative_to(ROOT).as_posix(), path.read_text("utf-8")
    rule = ROOT / "docs" / "playground" / "effects.py"
    yield "fx/__init__.py", rule.read_text("utf-8")
    for name in PYTEST:
        found = importlib.util.find_spec(name)
        assert found and found.origin
        path = Path(found.origin)
        whole = path.name == "__init__.py"
        for one in sorted(path.parent.rglob("*.py")) if whole else [path]:
            below = one.relative_to(path.parents[whole]).as_posix()
            yield below, one.read_text("utf-8")


def asked(stage: int) -> list[str]:
    """The files in which a stage has something to write, in its order."""
    return [*dict.fromkeys(one.file for one in stages()[stage].exercises)]


def archive(files: Iterator[tuple[str, str]]) -> bytes:
    """Files as a zip, which is the same whenever they are."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as into:
        for name, text in files:
            into.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


# --- blocks -----------------------------------------------------------------


def _box(
    scene: Scene, tag: str, own: Mapping[str, str], extra: int = 0
) -> etree.Element:
    """What a script makes an editor of; `extra` is in megabytes."""
    size = megabytes()
    attributes = {
        "class": "fx-play",
        "data-root": to_the_root(scene.directive.page),
        "data-megabytes": str(size + extra) if size else "",
        "data-search-exclude": "",
        **own,
    }
    return etree.SubElement(scene.parent, tag, attributes)


def flat(program: str) -> str:
    """A program whose last function is not one, so that its names are there."""
    before, _, rest = program.rpartition("\n\n\ndef ")
    name, _, body = rest.partition("() -> None:\n")
    body = re.sub(r'^    """.*"""\n', "", body).removesuffix(f"{name}()")
    return f"{before}\n\n\n{dedent(body)}".strip()


def more() -> dict[str, str]:
    """The programs to choose from, by their titles."""
    path = ROOT / "docs" / "examples" / "play_more.py"
    found = {}
    for one in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(one, ast.FunctionDef) and (
            title := ast.get_docstring(one)
        ):
            program = standalone(f"docs.examples.play_more.{one.name}")
            found[title.rstrip(".")] = flat(program)
    return found


def _play(scene: Scene) -> etree.Element:
    """A program that one may edit, and what it printed."""
    target = scene.directive.argument
    words = element(scene.parent, "div", css="fx-run-prose")
    own = {"data-source": flat(standalone(target))}
    if scene.directive.flag("choice"):
        own["data-choice"] = json.dumps(more())
    box = _box(scene, "fx-play", own)
    scene.code(box, own["data-source"])
    recorded = element(box, "div", css="fx-recorded")
    element(recorded, "p", "It prints", css="fx-where")
    scene.output(recorded, running.printed(target).strip("\n"))
    return words


def _written(scene: Scene) -> etree.Element:
    """The files of a stage, as stubs to be written and checked."""
    words = element(scene.parent, "div")
    stage = scene.directive.argument
    names = asked(int(stage))
    texts = {one: (EXERCISES / one).read_text("utf-8") for one in names}
    own = {"data-files": json.dumps(texts), "data-stage": stage}
    parts = stages()[int(stage)].pieces
    own["data-order"] = " ".join(o.qualname for p in parts for o in p.functions)
    box = _box(scene, "fx-exercise", own, extra=2)
    told = (
        "Python cannot run here: scripts are off, or the site has none. Use "
        f"[a terminal](../course.md): `python -m stages watch {stage}`."
    )
    prose(box, "p", told).set("class", "fx-recorded")
    return words


BLOCKS = {
    "written": Block(Kind(True, {}, "prose"), _written),
    "play": Block(Kind(True, {"choice": False}, "prose"), _play),
}
