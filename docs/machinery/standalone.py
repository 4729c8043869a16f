"""Examples as whole programs: what a page shows, one can paste.

An example lives in a file of docs/examples or in a stage's demo, where it is
type-checked, and it may share things with its neighbours.  The page shows it
with all that it uses and nothing else: imports of torch, fx and Python, then
what comes from other files of the course, then the example and its call.  That
text is what the build runs, so a reader who pastes it gets the same output.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from docs.machinery.source import ROOT, Module, find

SAVED = {
    name: ROOT / "docs" / "examples" / f"{name}.py"
    for name in ("tiny_fx", "noisy")
}
"""Files that a page asks its reader to save; examples import them by name."""

GAP = "\n\n\n"
"""What stands between the pieces of a program."""

_MAIN = re.compile(r'\n+if __name__ == "__main__":\n    main\(\)$')


@dataclass(frozen=True, order=True)
class _Import:
    """What binds one name; `name` is "" for `import origin`."""

    origin: str
    name: str
    bound: str

    @property
    def group(self) -> int:
        """Python's own imports stand first, those of fx last."""
        top = self.origin.partition(".")[0]
        if top in sys.stdlib_module_names:
            return 0
        return 2 if top in ("fx", *SAVED) else 1


def standalone(target: str) -> str:
    """An example as a whole program.

    Args:
        target: its file, whose `main` is called; or one function of it, which
            takes no arguments: `docs.examples.predict_01.erased_neighbour`.

    Raises:
        UnknownName: there is no such file or function.
    """
    return GAP.join(pieces(target))


def pieces(target: str) -> list[str]:
    """An example in pieces: imports, what it uses, itself, and its call.

    Args:
        target: as for `standalone`.

    Raises:
        UnknownName: there is no such file or function.
    """
    place = find(target)
    call = place.unit.name or place.module.unit("main").name
    named = [unit.name for unit in place.module.units if unit.name]
    program = _Program()
    program.add(place.module, [place.unit.name] if place.unit.name else named)
    return program.pieces(call)


class _Program:
    """A program while it is put together.

    Attributes:
        imports: what it imports.
        parts: its statements, each behind those that it uses.
    """

    def __init__(self) -> None:
        self.imports: set[_Import] = set()
        self.parts: dict[str, None] = {}

    def add(self, module: Module, wanted: Iterable[str]) -> None:
        """Add names of a file, and before them what they use.

        Args:
            module: the file; what it does besides naming things comes along.
            wanted: the names.
        """
        known = {one.bound: one for one in _imports(module)}
        texts = {
            unit.name: _MAIN.sub("", module.text(unit.first, unit.last))
            for unit in module.units
            if unit.name
        }
        done: set[str] = set()

        def use(text: str) -> None:
            for name in _names(text) - done:
                if name in known:
                    self._import(known[name])
                if name in texts:
                    done.add(name)
                    use(texts[name])
            self.parts[text] = None

        for text in _loose(module):
            use(text)
        for name in wanted:
            if name not in done:
                done.add(name)
                use(texts[name])

    def _import(self, one: _Import) -> None:
        """Import a name, or add it if it comes from the course."""
        stem = one.origin.rpartition(".")[2]
        if one.origin.partition(".")[0] not in ("docs", "stages"):
            self.imports.add(one)
        elif stem in SAVED:
            self.imports.add(_Import(stem, one.name, one.bound))
        else:
            self.add(find(one.origin).module, [one.name])

    def pieces(self, call: str) -> list[str]:
        """The program.

        Args:
            call: the function that it calls at its end.
        """
        groups = [
            "\n".join(_lines(one for one in self.imports if one.group == group))
            for group in range(3)
        ]
        head = "\n\n".join(group for group in groups if group)
        whole = [head, *self.parts, f"{call}()"]
        return [one for piece in whole if (one := piece.strip("\n"))]


def _names(text: str) -> set[str]:
    """The names that a piece of code reads or writes."""
    tree = ast.walk(ast.parse(text))
    return {node.id for node in tree if isinstance(node, ast.Name)}


def _imports(module: Module) -> Iterator[_Import]:
    """What a file imports at its top."""
    for node in ast.parse("\n".join(module.lines)).body:
        if isinstance(node, ast.Import):
            for one in node.names:
                bound = one.asname or one.name.partition(".")[0]
                yield _Import(one.name, "", bound)
        elif isinstance(node, ast.ImportFrom):
            for one in node.names:
                bound = one.asname or one.name
                yield _Import(node.module or "", one.name, bound)


def _loose(module: Module) -> Iterator[str]:
    """What a file does before it names anything, as `wrap("len")`."""
    head = module.units[0]
    text = "" if head.name else module.text(head.first, head.last)
    for node in ast.parse(text).body[1:]:
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            yield ast.unparse(node)


def _lines(imports: Iterable[_Import]) -> Iterator[str]:
    """The lines of imports, one for each module."""
    names: dict[str, list[str]] = {}
    for one in sorted(imports, key=lambda one: (bool(one.name), one)):
        if one.name:
            renamed = "" if one.bound == one.name else f" as {one.bound}"
            names.setdefault(one.origin, []).append(one.name + renamed)
        else:
            plain = one.origin.partition(".")[0] == one.bound
            tail = "" if plain else f" as {one.bound}"
            yield f"import {one.origin}{tail}"
    for origin, bound in names.items():
        line = f"from {origin} import {', '.join(bound)}"
        if len(line) > 80:
            inner = "".join(f"    {name},\n" for name in bound)
            line = f"from {origin} import (\n{inner})"
        yield line
