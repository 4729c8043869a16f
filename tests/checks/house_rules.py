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
    "fx/immutable_collections.py": r"[\w.]*register_pytree_node\(",
}
"""Statements that may change other modules at import: file, pattern."""

_BUILTINS = frozenset(
    """__import__ compile delattr eval exec input open print setattr""".split()
)
_METHODS = frozenset(
    """
    basicConfig connect filterwarnings getenv import_module makedirs
    manual_seed mkdir putenv read_text seed set_default_dtype simplefilter
    system write_text
    """.split()
)
"""Functions that may not be called at import, because of a side effect."""


def side_effect_problems(source: Source) -> Iterator[str]:
    """Side effects of importing the file, beyond binding its own names.

    The check reads the code that runs at import: the bodies of the module and
    its classes, with the blocks of `if`, `try` and `for`.  Such code may
    compute constants with calls, and fill a table that the file has made.  It
    may not contain

    - a statement that is only a call, unless on such a table;
    - an assignment to, or deletion of, an attribute or item of anything that
      this file did not make;
    - a call of a function known for its effect (print, open, getenv, …);
    - `with`, `while`, `assert`, `raise`.
    """
    own = _own_tables(source.tree)
    for node in _import_time(source.tree.body):
        if not _is_registration(source, node) and (fault := _effect(node, own)):
            yield f"{source.at(node)}: at import: {fault}"


def stale_registrations(sources: Sequence[Source]) -> Iterator[str]:
    """Registrations that are allowed, but that no file makes any more."""
    for source in sources:
        if str(source.path) in REGISTRATIONS:
            nodes = _import_time(source.tree.body)
            if not any(_is_registration(source, node) for node in nodes):
                yield f"{source.path}: no `{REGISTRATIONS[str(source.path)]}`"


def _is_registration(source: Source, node: ast.stmt) -> bool:
    """Is it a registration that this file may make at import?"""
    pattern = REGISTRATIONS.get(str(source.path))
    return (
        pattern is not None
        and isinstance(node, ast.Assign | ast.Expr)
        and re.match(pattern, ast.unparse(node)) is not None
    )


_IS_PROGRAM = "__name__ == '__main__'"
"""What is true of a file that is run, and of none that is imported."""


def _import_time(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Every statement that runs when the file is imported."""
    for node in body:
        yield node
        match node:
            case ast.ClassDef():
                yield from _import_time(node.body)
            case ast.If(test=test) if ast.unparse(test) == _IS_PROGRAM:
                yield from _import_time(node.orelse)
            case ast.If() | ast.For():
                yield from _import_time(node.body + node.orelse)
            case ast.Try():
                handlers = [s for h in node.handlers for s in h.body]
                yield from _import_time(
                    node.body + handlers + node.orelse + node.finalbody
                )


def _own_tables(tree: ast.Module) -> set[str]:
    """Names bound at the top of the file to an object made there.

    A bare name or attribute on the right (`table = other.table`) makes no new
    object: writing to it would change another module.
    """
    own: set[str] = set()
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=value):
                pass
            case _:
                continue
        if isinstance(
            value,
            ast.Dict
            | ast.DictComp
            | ast.List
            | ast.ListComp
            | ast.Set
            | ast.SetComp,
        ):
            own.add(name)
    return own


def _effect(node: ast.stmt, own: set[str]) -> str | None:
    """The side effect of a statement, beyond binding names of this file."""
    text = ast.unparse(node).splitlines()[0]
    match node:
        case ast.While() | ast.With() | ast.Assert() | ast.Raise():
            return text
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=x)))):
            return None if x in own else text
        case ast.Expr(value=value):
            return None if isinstance(value, ast.Constant) else text
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            written = targets
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            written = [target]
        case ast.For(target=target):
            written = [target]
        case _:
            written = []
    if any(_writes_elsewhere(target, own) for target in written):
        return text
    return _known_effect(node)


def _writes_elsewhere(target: ast.expr, own: set[str]) -> bool:
    """Does assigning to it change an object that this file did not make?"""
    match target:
        case ast.Name():
            return False
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return any(_writes_elsewhere(part, own) for part in parts)
        case ast.Subscript(value=ast.Name(id=name)):
            return name not in own
    return True


def _known_effect(node: ast.stmt) -> str | None:
    """A call at import of a function known to have a side effect."""
    evaluated: list[ast.AST] = [node]
    while evaluated:
        part = evaluated.pop()
        match part:
            case ast.Call(func=ast.Name(id=name)) if name in _BUILTINS:
                return ast.unparse(part)
            case ast.Call(func=ast.Attribute(attr=name)) if name in _METHODS:
                return ast.unparse(part)
        evaluated += _evaluated(part)
    return None


def _evaluated(node: ast.AST) -> list[ast.AST]:
    """The parts evaluated together with a node; not the bodies inside it."""
    match node:
        case ast.Lambda(args=args):
            return _defaults(args)
        case ast.FunctionDef(args=args) | ast.AsyncFunctionDef(args=args):
            return [*node.decorator_list, *_defaults(args)]
        case ast.ClassDef(bases=bases, keywords=keywords):
            return [*node.decorator_list, *bases, *keywords]
        case ast.If(test=head) | ast.For(iter=head):
            return [head]
        case ast.Try():
            return []
    return list(ast.iter_child_nodes(node))


def _defaults(args: ast.arguments) -> list[ast.AST]:
    """The default values of parameters."""
    return [*args.defaults, *filter(None, args.kw_defaults)]
