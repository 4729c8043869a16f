"""Find, stub, judge and replace single functions of a source file.

Stubs are made in the text, because a person will read them.  A borrowed
function is only run, and is put into the syntax tree.
"""

from __future__ import annotations

import ast
import io
from collections.abc import Iterator, Mapping
from enum import Enum

Function = ast.FunctionDef | ast.AsyncFunctionDef


class State(Enum):
    """How far a learner is with a function."""

    UNWRITTEN = "to write"
    EMPTY = "empty"
    WRITTEN = "written"
    BROKEN = "cannot be read"


# --- finding ---------------------------------------------------------------


def functions(tree: ast.Module) -> dict[str, list[Function]]:
    """The functions of a module and of its classes, by qualified name.

    A function inside another one is `outer.inner`.  A name has several
    functions if it is overloaded, or is a property with a setter.
    """
    found: dict[str, list[Function]] = {}
    for name, function in _walk(tree, ""):
        found.setdefault(name, []).append(function)
    return found


def _walk(
    parent: ast.Module | ast.ClassDef | Function, prefix: str
) -> Iterator[tuple[str, Function]]:
    """Every function that a body defines, and those in their own bodies."""
    for child in parent.body:
        if isinstance(child, Function):
            yield prefix + child.name, child
        if isinstance(child, ast.ClassDef | Function):
            yield from _walk(child, f"{prefix}{child.name}.")


def function(tree: ast.Module, qualname: str) -> Function:
    """The one function of that name.

    Raises:
        LookupError: there is none, or there are several.
    """
    found = functions(tree).get(qualname, [])
    if len(found) != 1:
        raise LookupError(f"{len(found)} functions are named {qualname}")
    return found[0]


def source_of(text: str, qualname: str) -> str:
    """The source lines of a function, with its decorators.

    Raises:
        LookupError: there is none, or there are several.
    """
    first, last = _span(function(ast.parse(text), qualname))
    return "".join(_lines(text)[first:last])


def with_source(text: str, qualname: str, new: str) -> str:
    """`text` with the source lines of one function replaced by `new`."""
    first, last = _span(function(ast.parse(text), qualname))
    lines = _lines(text)
    return "".join([*lines[:first], new, *lines[last:]])


def _lines(text: str) -> list[str]:
    """The lines of a text as Python counts them, not split at form feeds."""
    return io.StringIO(text).readlines()


def _span(found: Function) -> tuple[int, int]:
    """The (start, stop) of a function in the list of the file's lines."""
    starts = [found.lineno, *(mark.lineno for mark in found.decorator_list)]
    assert found.end_lineno is not None
    return min(starts) - 1, found.end_lineno


# --- stubs -----------------------------------------------------------------


def stubbed(text: str, stubs: Mapping[str, str]) -> str:
    """`text` with the bodies of some functions replaced by stubs.

    Decorators, signature and docstring stay, and the rest of the body becomes
    one line, `raise NotImplementedError("…")`.

    Args:
        text: the source of a module.
        stubs: qualified name -> the stub's message.

    Raises:
        LookupError: there is no such function, or there are several.
        ValueError: a function has no docstring, or nothing but a docstring.
    """
    tree = ast.parse(text)
    lines = _lines(text)
    found = [(function(tree, name), says) for name, says in stubs.items()]
    for one, says in sorted(found, key=lambda pair: -pair[0].lineno):
        docstring, *body = one.body
        if not _is_docstring(docstring) or not body:
            raise ValueError(f"{one.name} needs a docstring and a body")
        indent = " " * docstring.col_offset
        stub = f'{indent}raise NotImplementedError("{says}")\n'
        lines[docstring.end_lineno : one.end_lineno] = [stub]
    return "".join(lines)


# --- state -----------------------------------------------------------------


def state(found: Function) -> State:
    """Whether a function is a stub, does nothing, or is written."""
    body = found.body[1:] if _is_docstring(found.body[0]) else found.body
    if all(_does_nothing(statement) for statement in body):
        return State.EMPTY
    if len(body) == 1 and _is_stub(body[0]):
        return State.UNWRITTEN
    return State.WRITTEN


def signature(found: Function) -> str:
    """A function's decorators, name and types, on one line."""
    marks = "".join(f"@{ast.unparse(mark)} " for mark in found.decorator_list)
    keyword = "def" if isinstance(found, ast.FunctionDef) else "async def"
    returns = f" -> {ast.unparse(found.returns)}" if found.returns else ""
    arguments = ast.unparse(found.args)
    return f"{marks}{keyword} {found.name}({arguments}){returns}"


def body_lines(found: Function) -> int:
    """How many lines a function's body has, without the docstring."""
    body = found.body[1:] if _is_docstring(found.body[0]) else found.body
    if not body or found.end_lineno is None:
        return 0
    return found.end_lineno - body[0].lineno + 1


def _is_docstring(statement: ast.stmt) -> bool:
    """Whether a statement is only a string."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _does_nothing(statement: ast.stmt) -> bool:
    """Whether a statement is `pass`, `...` or a bare `return`."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    if isinstance(statement, ast.Return):
        return statement.value is None or (
            isinstance(statement.value, ast.Constant)
            and statement.value.value is None
        )
    return isinstance(statement, ast.Pass)


def _is_stub(statement: ast.stmt) -> bool:
    """Whether a statement raises NotImplementedError, and nothing else."""
    if not isinstance(statement, ast.Raise) or statement.exc is None:
        return False
    raised = statement.exc
    called = raised.func if isinstance(raised, ast.Call) else raised
    return isinstance(called, ast.Name) and called.id == "NotImplementedError"


# --- replacing -------------------------------------------------------------


def exchange(tree: ast.Module, qualname: str, other: Function) -> None:
    """Replace a function in a syntax tree by another.

    Raises:
        LookupError: there is none of that name, or there are several.
    """
    old = function(tree, qualname)
    parents: list[ast.Module | ast.ClassDef | Function] = [tree]
    for parent in parents:  # grows meanwhile
        for place, child in enumerate(parent.body):
            if child is old:
                parent.body[place] = other
            elif isinstance(child, ast.ClassDef | Function):
                parents.append(child)
