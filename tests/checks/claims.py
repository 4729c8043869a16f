"""The claims of the source documents, and the tests that check each.

    python -m tests.checks.claims

says how many claims of each stage have a test.  tests/claims.toml does not
name the tests: each test says which claims it checks,

- a parity program by `@program(claims=("claim-id",))`,
- any other test by `@pytest.mark.claims("claim-id")`, on the function, on
  its class, or as the file's `pytestmark`.

Both are read from the source of the tests, without importing or running it.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from tests.checks.sources import ROOT, Function, Source, read_tree

LEDGER = ROOT / "tests" / "claims.toml"
PROGRAMS = "tests/parity/programs/"
PROGRAM_TEST = "tests/parity/test_programs.py::test_program"

Row: TypeAlias = dict[str, Any]
"""A row as the TOML parser returns it, not yet checked."""

Holds: TypeAlias = Literal["holds", "changed", "n/a"]


@dataclass(frozen=True)
class Section:
    """A section of a document.

    Attributes:
        name: what `where` of a claim calls it.
        title: its title in English.
        original: its title in the document, where that is another.
        fragment: what stands behind the # in its address.
    """

    name: str
    title: str
    original: str
    fragment: str


@dataclass(frozen=True)
class Document:
    """A source document.

    Attributes:
        id: its number.
        title: its title in English.
        original: its title, where that is another.
        about: what it is.
        url: where it is public; "" if no address is known.
        sections: its sections, in order.
    """

    id: str
    title: str
    original: str
    about: str
    url: str
    sections: tuple[Section, ...]


@dataclass(frozen=True)
class Cited:
    """A place that a claim names: a section, and which part of it."""

    document: str
    section: str
    part: str = ""


@dataclass(frozen=True)
class Claim:
    """One row of tests/claims.toml.

    What is not written there: `differs`, the rows of docs/differences.md where
    fx is another way on purpose, and `test`, the tests that check it.
    """

    id: str
    stage: int
    where: str
    text: str
    holds: Holds
    code: str = ""
    torch: str = ""
    note: str = ""
    differs: tuple[str, ...] = ()
    test: tuple[str, ...] = ()


@dataclass(frozen=True)
class Mark:
    """A test that says which claims it checks."""

    test: str
    claims: tuple[str, ...]
    where: str
    problem: str | None = None
    differs: str = ""


# --- the ledger ------------------------------------------------------------


def load(text: str) -> list[Claim]:
    """The claims of a ledger.

    Raises:
        ValueError: a row lacks a field, or has one that is unknown or wrong.
    """
    rows = tomllib.loads(text).get("claim", [])
    return [_claim(row) for row in rows]


def documents(text: str) -> list[Document]:
    """The documents of a ledger.

    Raises:
        ValueError: a document lacks a field, or a section one of its four.
    """
    return [_document(row) for row in tomllib.loads(text).get("document", [])]


def _document(row: Row) -> Document:
    """One document, checked."""
    try:
        sections = tuple(Section(*parts) for parts in row.pop("sections"))
        return Document(**row, sections=sections)
    except (KeyError, TypeError) as error:
        raise ValueError(f"document {row.get('id')!r}: {error}") from None


def cited(claim: Claim, known: Iterable[Document]) -> Iterator[Cited]:
    """The sections that a claim's `where` names.

    Each is the longest name of a section that the text begins with.

    Raises:
        ValueError: no section of the document has that name.
    """
    sections = {
        document.id: sorted(
            (section.name for section in document.sections),
            key=len,
            reverse=True,
        )
        for document in known
    }
    for group in claim.where.split("; "):
        number, _, rest = group.partition(" ")
        for place in rest.split(", "):
            for name in sections.get(number, ()):
                if re.match(re.escape(name) + r"(?![\w.])", place):
                    part = place.removeprefix(name).strip()
                    yield Cited(number, name, part)
                    break
            else:
                raise ValueError(
                    f"claim {claim.id!r}: document {number!r} has no section "
                    f"{place!r}"
                )


def _claim(row: Row) -> Claim:
    """One row, checked."""
    try:
        claim = Claim(**row)
    except TypeError as error:
        raise ValueError(f"claim {row.get('id')!r}: {error}") from None
    for name, value in vars(claim).items():
        if not _fits(name, value):
            raise ValueError(f"claim {claim.id!r}: {name} = {value!r}")
    return claim


def _fits(name: str, value: object) -> bool:
    """Is this a legal value of the field?"""
    match name:
        case "stage":
            return value in range(1, 9)
        case "holds":
            return value in get_args(Holds)
        case "test" | "differs":
            return value == ()  # the tests say it
    return isinstance(value, str)


def with_tests(claims: Iterable[Claim], marks: Iterable[Mark]) -> list[Claim]:
    """The claims, each with the tests that say they check it."""
    tests: dict[str, set[str]] = {}
    differs: dict[str, set[str]] = {}
    for mark in marks:
        for claim in mark.claims:
            tests.setdefault(claim, set()).add(mark.test)
            if mark.differs:
                differs.setdefault(claim, set()).add(mark.differs)
    return [
        replace(
            claim,
            differs=tuple(sorted(differs.get(claim.id, ()))),
            test=tuple(sorted(tests.get(claim.id, ()))),
        )
        for claim in claims
    ]


# --- the tests -------------------------------------------------------------


def read_tests(root: Path = ROOT) -> list[Source]:
    """The files in which tests are looked for."""
    return read_tree(root, "tests")


def marks(sources: Iterable[Source]) -> Iterator[Mark]:
    """Every test or program that names a claim."""
    for source in sources:
        path = str(source.path)
        if path.startswith(PROGRAMS):
            yield from _programs(source)
        elif source.path.name.startswith("test_"):
            yield from _tests(source)


def _programs(source: Source) -> Iterator[Mark]:
    """The parity programs of a file that name a claim."""
    for node in source.tree.body:
        if isinstance(node, ast.FunctionDef):
            name = f"{source.path.stem}.{node.name}"
            for call in _decorators(node, "program"):
                given = {one.arg: one.value for one in call.keywords}
                if "claims" in given:
                    test = f"{PROGRAM_TEST}[{name}]"
                    mark = _mark(test, source, call, [given["claims"]])
                    match given.get("differs"):
                        case ast.Constant(value=str(row)):
                            mark = replace(mark, differs=row)
                    yield mark


def _tests(source: Source) -> Iterator[Mark]:
    """The tests of a file that name a claim, by any mark above them."""
    inherited = [
        call
        for node in source.tree.body
        if isinstance(node, ast.Assign)
        and ast.unparse(node.targets[0]) == "pytestmark"
        for call in _calls(node.value, "claims")
    ]
    for scope, node in _test_functions(source.tree.body, []):
        owners = [*scope, node]
        calls = [c for owner in owners for c in _decorators(owner, "claims")]
        name = "::".join([str(source.path), *(owner.name for owner in owners)])
        for call in [*inherited, *calls]:
            mark = _mark(name, source, call, call.args)
            yield replace(mark, problem=mark.problem or _never_run(owners))
    yield from _stray(source)


def _test_functions(
    body: Sequence[ast.stmt], scope: list[ast.ClassDef]
) -> Iterator[tuple[list[ast.ClassDef], Function]]:
    """Functions that pytest collects, with the classes around them."""
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from _test_functions(node.body, [*scope, node])
        elif isinstance(node, Function) and node.name.startswith("test"):
            yield scope, node


def _stray(source: Source) -> Iterator[Mark]:
    """Marks on functions that pytest does not collect."""
    collected = {node for _, node in _test_functions(source.tree.body, [])}
    for node in ast.walk(source.tree):
        if isinstance(node, Function) and node not in collected:
            for call in _decorators(node, "claims"):
                mark = _mark(node.name, source, call, call.args)
                yield replace(mark, problem=f"{node.name} is no test")


def _decorators(node: Function | ast.ClassDef, name: str) -> Iterator[ast.Call]:
    """The decorators of that name, called with arguments."""
    for decorator in node.decorator_list:
        yield from _calls(decorator, name)


def _calls(node: ast.expr, name: str) -> Iterator[ast.Call]:
    """The calls of a function of that name in an expression."""
    for part in ast.walk(node):
        match part:
            case ast.Call(
                func=ast.Name(id=called) | ast.Attribute(attr=called)
            ):
                if called == name:
                    yield part


def _never_run(owners: Iterable[Function | ast.ClassDef]) -> str | None:
    """Why a test does not count: a skipped test does not check its claim."""
    for owner in owners:
        for decorator in owner.decorator_list:
            text = ast.unparse(decorator)
            if text.startswith(("pytest.mark.skip", "pytest.mark.xfail")):
                return f"{owner.name} is marked {text}"
    return None


def _mark(
    test: str, source: Source, call: ast.Call, arguments: list[ast.expr]
) -> Mark:
    """A mark with those of its ids that are literal strings."""
    where = source.at(call)
    try:
        values = [ast.literal_eval(argument) for argument in arguments]
    except ValueError:
        return Mark(test, (), where, "claims must be plain strings")
    flat = [
        item
        for value in values
        for item in (value if isinstance(value, tuple | list) else [value])
    ]
    if not flat or not all(isinstance(item, str) for item in flat):
        return Mark(test, (), where, "claims must be plain strings")
    return Mark(test, tuple(flat), where)


# --- both together ---------------------------------------------------------


def problems(
    claims: Sequence[Claim], found: Sequence[Mark], built: Iterable[int]
) -> Iterator[str]:
    """The differences between the ledger and the tests.

    Args:
        claims: the rows of the ledger.
        found: the marks of the tests.
        built: the stages whose claims must have a test.
    """
    ids = [claim.id for claim in claims]
    for double in sorted({id for id in ids if ids.count(id) > 1}):
        yield f"two claims are called {double!r}"
    for mark in found:
        if mark.problem:
            yield f"{mark.where}: {mark.problem}"
        for unknown in sorted(set(mark.claims) - set(ids)):
            yield f"{mark.where}: no claim is called {unknown!r}"
    for claim in with_tests(claims, found):
        must = claim.stage in built and claim.holds != "n/a"
        if must and not claim.test:
            yield f"{claim.id}: no test checks this claim of a built stage"
        if claim.holds != "holds" and not claim.torch:
            yield f"{claim.id}: `torch` must say how it is in torch 2.13"
        if must and not claim.code:
            yield f"{claim.id}: `code` must name a definition of fx"


def tested(root: Path = ROOT) -> list[Claim]:
    """The claims of the ledger, each with the tests that check it."""
    claims = load(LEDGER.read_text(encoding="utf-8"))
    return with_tests(claims, marks(read_tests(root)))


def main() -> int:
    """Report which claims have tests."""
    claims = tested()
    for stage in range(1, 9):
        rows = [claim for claim in claims if claim.stage == stage]
        untested = [claim.id for claim in rows if not claim.test]
        checked = len(rows) - len(untested)
        print(f"stage {stage:02d}: {checked} of {len(rows)} have tests")
        if untested:
            print("    without:", " ".join(untested))
    return 0


if __name__ == "__main__":
    sys.exit(main())
