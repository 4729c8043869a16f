"""Reads the project's own code, for all checks of this folder.

A *check* is a function from one `Source` (or all of them) to an iterator of
sentences, one for each place where a rule is broken.  One test requires that
the check finds nothing in fx/.  Another gives it a small bad source and
requires the sentence, so that a check which finds nothing at all would fail.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TypeAlias

ROOT = Path(__file__).resolve().parents[2]

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

_LAYOUT = frozenset(
    {
        tokenize.COMMENT,
        tokenize.DEDENT,
        tokenize.ENCODING,
        tokenize.ENDMARKER,
        tokenize.INDENT,
        tokenize.NEWLINE,
        tokenize.NL,
    }
)
"""Tokens that do not make a line a line of code."""

_STAGE = re.compile(r"Stage (0[1-8]), ([a-z][a-z -]*): ")
"""How the docstring of each file with a stage begins."""


@dataclass(frozen=True)
class Source:
    """A Python file: its path below the root of its tree, and its text."""

    path: PurePosixPath
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed file."""
        return ast.parse(self.text, str(self.path))

    @cached_property
    def module(self) -> str:
        """The dotted name: `fx.passes` for fx/passes/__init__.py."""
        parts = self.path.with_suffix("").parts
        return ".".join(parts[:-1] if self.is_init else parts)

    @property
    def is_init(self) -> bool:
        """Is this a package's `__init__.py`?"""
        return self.path.name == "__init__.py"

    @cached_property
    def heading(self) -> tuple[int, str] | None:
        """(number, name) of the stage, if the docstring begins with one."""
        found = _STAGE.match(ast.get_docstring(self.tree) or "")
        return (int(found[1]), found[2]) if found else None

    @property
    def stage(self) -> int | None:
        """The number of the stage, if the docstring begins with one."""
        return self.heading[0] if self.heading else None

    @property
    def is_pass(self) -> bool:
        """Does this use all stages and belong to none, as passes and extra?"""
        docstring = ast.get_docstring(self.tree) or ""
        return docstring.startswith(("Passes: ", "Extra: "))

    @cached_property
    def docstring_lines(self) -> frozenset[int]:
        """Lines of strings that are statements: docstrings, also of fields."""
        return frozenset(
            line
            for node in ast.walk(self.tree)
            if is_docstring(node)
            for line in lines_of(node)
        )

    @cached_property
    def code_lines(self) -> frozenset[int]:
        """Lines of code: those with more than a comment or a docstring."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        code = {
            line
            for token in tokens
            if token.type not in _LAYOUT
            for line in range(token.start[0], token.end[0] + 1)
        }
        return frozenset(code) - self.docstring_lines

    @cached_property
    def comments(self) -> list[tuple[int, str]]:
        """(line, text) of each comment, without its `#`."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return [
            (token.start[0], token.string.removeprefix("#").strip())
            for token in tokens
            if token.type == tokenize.COMMENT
        ]

    def at(self, node: ast.AST | int) -> str:
        """`path:line`, the start of a sentence about that place."""
        line = node if isinstance(node, int) else getattr(node, "lineno", 1)
        return f"{self.path}:{line}"


def snippet(text: str, path: str = "fx/sample.py") -> Source:
    """A made-up file, to test a check with."""
    return Source(PurePosixPath(path), text)


def read_tree(root: Path, package: str) -> list[Source]:
    """Every Python file under root/package, in order of path."""
    return [
        Source(
            PurePosixPath(file.relative_to(root).as_posix()),
            file.read_text(encoding="utf-8"),
        )
        for file in sorted((root / package).rglob("*.py"))
        if "__pycache__" not in file.parts
    ]


def library() -> list[Source]:
    """Every Python file of fx/; fails if there is none."""
    sources = read_tree(ROOT, "fx")
    if not sources:
        raise FileNotFoundError(f"no Python file in {ROOT / 'fx'}")
    return sources


def lines_of(node: ast.AST) -> range:
    """The lines that a statement or expression covers."""
    first = getattr(node, "lineno", 1)
    return range(first, (getattr(node, "end_lineno", None) or first) + 1)


def is_docstring(node: ast.AST) -> bool:
    """Is it a string that stands alone as a statement?"""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def functions(source: Source) -> Iterator[Function]:
    """Every function and method of a file, the nested ones too."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
