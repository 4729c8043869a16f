"""Makes every small mistake in a stage's exercises: `stages.mutate 04`.

`mutants.py` lists the mistakes that people make.  Here a program makes them:
in the reference's version of each exercise it changes one operator, condition,
constant, order or statement at a time, and runs the stage's tests.  A change
that no test notices *survives*: either a test is missing, or the change makes
no difference, which `stages/NN/equivalent.toml` then says, with the reason.

It takes minutes, so `make test` does not run it.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from typing import Final, NamedTuple

from stages import functions
from stages.manifest import REFERENCE, Exercise, Stage, pieces, stages
from stages.processes import pool
from stages.running import Job, Result, run
from stages.tree import with_version

_OTHER: Final[dict[type, type[ast.AST]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.BitOr: ast.BitAnd,
    ast.Break: ast.Continue,
    ast.Continue: ast.Break,
}
"""Operators, and what each is mistaken for."""

_CALLS: Final = {"any": "all", "all": "any", "min": "max", "max": "min"}
"""Functions, and what each is mistaken for."""

_SEEN_THROUGH: Final = ("reversed", "list", "tuple", "sorted", "iter")
"""Functions that are left away: order, and eager or lazy."""


class Change(NamedTuple):
    """One small mistake in an exercise.

    Attributes:
        one: the exercise.
        was: the code that was changed, on one line.
        becomes: what it was changed to.
        source: the whole function with the change.
    """

    one: Exercise
    was: str
    becomes: str
    source: str

    @property
    def name(self) -> str:
        """The change as text, which `equivalent.toml` repeats."""
        return f"{self.was} → {self.becomes}"


# --- making changes --------------------------------------------------------


def changes(one: Exercise) -> Iterator[Change]:
    """Every small mistake in the reference's version of an exercise."""
    text = (REFERENCE / one.file).read_text(encoding="utf-8")
    found = functions.function(ast.parse(text), one.qualname)
    original = ast.unparse(found)
    indent = " " * found.col_offset
    seen = {original}
    for was, becomes, changed in _changed(found):
        source = ast.unparse(changed)
        if source not in seen:
            seen.add(source)
            lines = [indent + line for line in source.splitlines()]
            yield Change(one, was, becomes, "\n".join(lines) + "\n")


def _changed(
    found: functions.Function,
) -> Iterator[tuple[str, str, functions.Function]]:
    """A function with one change after the other, and what was changed.

    Each change is undone before the next, so use it at once.
    """
    for node in [*_inside(found)]:
        for was, becomes, apply in [*_variants(node)]:
            with apply:
                yield was, becomes, found


def _inside(found: functions.Function) -> Iterator[ast.AST]:
    """The nodes of a function's body and the function, docstring apart."""
    yield found
    for statement in found.body[1:]:
        yield from ast.walk(statement)


Variant = tuple[str, str, "_Apply"]


class _Apply:
    """Sets one field of a node for a block."""

    def __init__(self, node: ast.AST, field: str, value: object) -> None:
        self._node, self._field, self._value = node, field, value

    def __enter__(self) -> None:
        self._exchange()

    def __exit__(self, *error: object) -> None:
        self._exchange()

    def _exchange(self) -> None:
        """Set the field, and keep what was there."""
        was = getattr(self._node, self._field)
        setattr(self._node, self._field, self._value)
        self._value = was


def _variants(node: ast.AST) -> Iterator[Variant]:
    """The changes of one node's own fields."""
    for field, value in ast.iter_fields(node):
        if isinstance(value, list):
            for new, was, becomes in _lists(node, value):
                yield was, becomes, _Apply(node, field, new)
        elif isinstance(value, ast.AST):
            others = [*_others(value)]
            if field == "test" and isinstance(value, ast.expr):
                others += _conditions(value)
            for other in others:
                yield (*_said(node, value, other), _Apply(node, field, other))


def _lists(
    node: ast.AST, value: list[object]
) -> Iterator[tuple[list[object], str, str]]:
    """What a list among the fields of a node is mistaken for."""
    if value and isinstance(value[0], ast.stmt):
        body = [one for one in value if isinstance(one, ast.stmt)]
        for new, was, becomes in _statements(
            body, isinstance(node, functions.Function)
        ):
            yield [*new], was, becomes
        return
    for place, item in enumerate(value):
        for other in _others(item):
            assert isinstance(item, ast.AST)
            new_list = [*value[:place], other, *value[place + 1 :]]
            yield (new_list, *_said(node, item, other))
    if isinstance(node, ast.Call) and value is node.args and len(value) > 1:
        swapped = [value[1], value[0], *value[2:]]
        call = ast.Call(node.func, [node.args[1], node.args[0]], [])
        yield swapped, _line(node), f"{_line(call)}: first arguments exchanged"


def _said(parent: ast.AST, was: ast.AST, becomes: ast.AST) -> tuple[str, str]:
    """Both versions as text on one line; an operator within its parent."""
    if isinstance(was, ast.Constant):  # there may be several such
        return _line(parent), f"{_line(was)} is {_line(becomes)}"
    if isinstance(was, ast.expr):
        return _line(was), _line(becomes)
    return _line(parent), type(becomes).__name__


def _line(node: ast.AST) -> str:
    """A node as one line: of a compound statement, the first."""
    first, *rest = ast.unparse(node).splitlines()
    return f"{first} …" if rest else first


def _statements(
    body: list[ast.stmt], skip: bool
) -> Iterator[tuple[list[ast.stmt], str, str]]:
    """Bodies with one statement dropped, or two exchanged."""
    start = 1 if skip and isinstance(body[0], ast.Expr) else 0
    for place in range(start, len(body)):
        one = body[place]
        last = place + 1 == len(body)
        if not isinstance(one, functions.Function | ast.Pass) and not (
            skip and last and _line(one) in ("return", "return None")
        ):
            rest = [*body[:place], ast.Pass(), *body[place + 1 :]]
            yield rest, _line(one), "(dropped)"
        if not last and not _independent(one, other := body[place + 1]):
            new = [*body[:place], other, one, *body[place + 2 :]]
            yield new, f"{_line(one)}; {_line(other)}", "(exchanged)"


def _independent(one: ast.stmt, other: ast.stmt) -> bool:
    """Whether two statements only set what the other does not use."""
    bound, used = _bound(one), _bound(other)
    if not bound or not used:
        return False
    return not (bound & _names(other) or used & _names(one))


def _bound(statement: ast.stmt) -> set[str]:
    """The names, and `.attributes`, that a statement sets, if only that."""
    match statement:
        case ast.Assign([ast.Tuple(targets)]):
            return {_name(target) for target in targets}
        case (
            ast.Assign([target])
            | ast.AnnAssign(target)
            | ast.AugAssign(target=target)
        ):
            return {_name(target)} - {""}
        case ast.FunctionDef(name):
            return {name}
    return set()


def _names(statement: ast.stmt) -> set[str]:
    """The names, and `.attributes`, that a statement uses when it is run."""
    if isinstance(statement, functions.Function):
        return {statement.name}  # what it calls is looked up later
    return {_name(each) for each in ast.walk(statement)} - {""}


def _name(node: ast.AST) -> str:
    """A name, an attribute with its dot; "" for anything else."""
    match node:
        case ast.Name(name):
            return name
        case ast.Attribute(attr=name):
            return f".{name}"
    return ""


def _conditions(test: ast.expr) -> Iterator[ast.expr]:
    """What a condition is mistaken for."""
    if not isinstance(test, ast.Compare):  # its operators are changed anyway
        yield ast.UnaryOp(ast.Not(), test)
    yield ast.Constant(True)
    yield ast.Constant(False)


def _others(node: object) -> Iterator[ast.AST]:
    """What an operator or an expression is mistaken for."""
    if type(node) in _OTHER:
        yield _OTHER[type(node)]()
    match node:
        case ast.BoolOp(op, values):
            for place in range(len(values)):
                rest = values[:place] + values[place + 1 :]
                yield rest[0] if len(rest) == 1 else ast.BoolOp(op, rest)
        case ast.UnaryOp(ast.Not(), operand):
            yield operand
        case ast.Constant(bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(int(value)):
            yield ast.Constant(value + 1)
        case ast.Call(ast.Name(name)):
            yield from _other_calls(node, name)
        case ast.Name("Exception"):
            yield ast.Name("BaseException")
        case ast.Subscript(value, ast.Constant(0), ast.Load()):
            yield ast.Subscript(value, ast.Constant(-1), ast.Load())


def _other_calls(call: ast.Call, name: str) -> Iterator[ast.AST]:
    """What a call of a builtin is mistaken for."""
    if name in _CALLS:
        yield ast.Call(ast.Name(_CALLS[name]), call.args, call.keywords)
    elif name in _SEEN_THROUGH and len(call.args) == 1:
        yield call.args[0]


# --- trying them -----------------------------------------------------------


def survivors(
    stage: Stage, executor: ProcessPoolExecutor
) -> Iterator[tuple[Exercise, list[Change], list[Change]]]:
    """For each exercise all changes, and those that no test notices."""
    for one in stage.exercises:
        made = [*changes(one)]
        title = pieces()[one.name].title
        alone = _unnoticed(made, stage, executor, title)
        yield one, made, _unnoticed(alone, stage, executor, None)


def _unnoticed(
    made: Sequence[Change],
    stage: Stage,
    executor: ProcessPoolExecutor,
    exercise: str | None,
) -> list[Change]:
    """The changes with which all tests pass."""
    jobs: list[tuple[Change, Future[Result]]] = [
        (change, executor.submit(run, _job(change, stage, exercise)))
        for change in made
    ]
    return [change for change, job in jobs if _passes(job)]


def _passes(job: Future[Result]) -> bool:
    """Whether all tests passed; a process that died did not pass."""
    try:
        return job.result().status == 0
    except BrokenExecutor as error:
        raise SystemExit(f"a change ended a process: {error}") from None


def _job(change: Change, stage: Stage, exercise: str | None) -> Job:
    """A check of the reference with one change, up to the first failure."""
    tree = with_version(change.one, change.source, stage.number)
    return Job(tree, [stage.number], exercise, first_failure=True)


def equivalent(stage: Stage) -> dict[tuple[str, str], str]:
    """(exercise, change) -> why it makes no difference."""
    path = stage.folder / "equivalent.toml"
    if not path.is_file():
        return {}
    rows = tomllib.loads(path.read_text(encoding="utf-8"))["equivalent"]
    return {(row["function"], row["change"]): row["reason"] for row in rows}


def report(
    stage: Stage, executor: ProcessPoolExecutor
) -> Iterator[tuple[str, bool]]:
    """The table of a stage line by line, and whether a line is a problem."""
    known = equivalent(stage)
    left: list[Change] = []
    used: set[tuple[str, str]] = set()
    yield f"{'':36} changes killed equivalent surviving", False
    for one, made, unnoticed in survivors(stage, executor):
        same = [c for c in unnoticed if (one.name, c.name) in known]
        new = [c for c in unnoticed if c not in same]
        used |= {(one.name, c.name) for c in same}
        left += new
        killed = len(made) - len(unnoticed)
        counts = f"{len(made):7} {killed:6} {len(same):10} {len(new):9}"
        yield f"{one.qualname:36} {counts}", False
    for change in left:
        yield f"survives: {change.one.name}\n    {change.name}", True
    for function, name in sorted({*known} - used):
        yield f"not equivalent (any more): {function}\n    {name}", True


def main(arguments: Sequence[str]) -> int:
    """Print the tables of the stages named, or of all."""
    problems = 0
    with pool() as executor:
        for number in [int(text) for text in arguments] or [*stages()]:
            print(f"stage {number:02d}, {stages()[number].title}")
            for line, is_problem in report(stages()[number], executor):
                print(line, flush=True)
                problems += is_problem
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
