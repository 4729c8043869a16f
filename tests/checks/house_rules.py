"""The house rules for the code of fx/, one check for each rule.

Each check takes a `Source` and yields a sentence for each breach.  What ruff or
mypy has a rule for is not repeated here: docstrings, `Any`, `global`, imports
inside functions, wide lines.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from tests.checks.sources import Source, functions, lines_of

FILE_LINES = 900
FILE_CODE_LINES = 450
FUNCTION_MAX = 60

TYPE_IGNORES = {"fx/immutable_collections.py": 2, "fx/proxy.py": 3}
"""How many `type: ignore` a file may have; other files may have none."""

# --- sizes -----------------------------------------------------------------


def function_problems(source: Source) -> Iterator[str]:
    """Functions that are too long; docstrings do not count."""
    for function in functions(source):
        lines = len(set(lines_of(function)) - source.docstring_lines)
        if lines > FUNCTION_MAX:
            yield (
                f"{source.at(function)} {function.name}: {lines} lines "
                f"(max {FUNCTION_MAX})"
            )


def file_problems(source: Source) -> Iterator[str]:
    """Files that are too long."""
    if (lines := len(source.text.splitlines())) > FILE_LINES:
        yield f"{source.path}: {lines} lines (max {FILE_LINES})"
    code = len(source.code_lines)
    if code > FILE_CODE_LINES:
        yield f"{source.path}: {code} lines of code (max {FILE_CODE_LINES})"


# --- types -----------------------------------------------------------------


def ignores(source: Source) -> list[tuple[int, str]]:
    """(line, comment) of each `type: ignore`."""
    return [
        (line, comment)
        for line, comment in source.comments
        if re.match(r"(type|pyright|mypy)\s*:\s*ignore", comment)
    ]


def ignore_problems(source: Source) -> Iterator[str]:
    """Type errors silenced without a reason, or too often."""
    found = ignores(source)
    for line, comment in found:
        if not re.search(r"\]\s+# \w", comment):
            yield f"{source.at(line)}: `{comment}` gives no reason"
    allowed = TYPE_IGNORES.get(str(source.path), 0)
    if len(found) != allowed:
        yield f"{source.path}: {len(found)} ignores, not {allowed}"


# --- importing a module does nothing else ----------------------------------

REGISTRATIONS = {
    "fx/__init__.py": r"(_names\.set_all|_extra\.register)\(\)",
    "fx/_symbolic_trace.py": r"_assert_is_none\.__module__ = ",
    "fx/codegen/nested.py": (
        r"Graph\._make_codegen = |PREFILLED\['fx_pytree'\] = "
    ),
    "fx/extra/effects/effects.py": r"side_effect_registry\.update\(",
    "fx/extra/saving/pickled_modules.py": r"reduce_graph_module\.__module__ = ",
    "fx/immutable_collections.py": r"[\w.]*register_pytree_node\(",
}
"""Statements that may change other modules at import: file, pattern."""


def side_effect_problems(source: Source) -> Iterator[str]:
    """What importing the file does to others, beyond binding its own names.

    Read are the bodies of the file and its classes, with the blocks of `if`,
    `try` and `for`.  A statement that is only a call, and an assignment to an
    attribute or item, may be about a table that the file has made itself.
    What an import changes in Python and torch, a test sees by trying.
    """
    own = {
        target.id
        for node in source.tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and isinstance(node.value, _TABLES)
        for target in getattr(node, "targets", [getattr(node, "target", None)])
        if isinstance(target, ast.Name)
    }
    allowed = REGISTRATIONS.get(str(source.path))
    for node in _import_time(source.tree.body):
        text = ast.unparse(node).splitlines()[0]
        if _changes(node, own) and not (allowed and re.match(allowed, text)):
            yield f"{source.at(node)}: at import: {text}"


_TABLES = ast.Dict, ast.DictComp, ast.List, ast.ListComp, ast.Set, ast.SetComp


def _import_time(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Every statement that runs when the file is imported."""
    for node in body:
        yield node
        is_program = "__name__ == '__main__'" in ast.unparse(node)
        if isinstance(node, ast.ClassDef | ast.For | ast.Try) or (
            isinstance(node, ast.If) and not is_program
        ):
            yield from _import_time(node.body)
            yield from _import_time(getattr(node, "orelse", []))


def _changes(node: ast.stmt, own: set[str]) -> bool:
    """Whether a statement changes what is neither a name nor in `own`."""
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=base))):
            return not (isinstance(base, ast.Name) and base.id in own)
        case ast.Expr(value=value):
            return not isinstance(value, ast.Constant)
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            parts = [part for target in targets for part in ast.walk(target)]
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            parts = [*ast.walk(target)]
        case _:
            return isinstance(node, ast.With | ast.While | ast.Raise)
    return any(
        not (isinstance(part.value, ast.Name) and part.value.id in own)
        for part in parts
        if isinstance(part, ast.Attribute | ast.Subscript)
    )
