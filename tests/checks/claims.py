"""The claims of the source documents, and the tests that check each.

tests/claims.toml does not name the tests: each test says which claims it
checks,

- a parity program by `@program(claims=("claim-id",))`,
- any other test by `@pytest.mark.claims("claim-id")`.

Both are read from the source of the tests, without importing or running it.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from tests.checks.sources import ROOT, Source, read_tree

LEDGER = ROOT / "tests" / "claims.toml"
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
    """Every test or program that names a claim.

    Raises:
        ValueError: a mark is not made of plain strings.
    """
    for source in sources:
        for owner in source.tree.body:
            inside = owner.body if isinstance(owner, ast.ClassDef) else [owner]
            for node in inside:
                if isinstance(node, ast.FunctionDef):
                    yield from _marks(source, node, owner)


def _marks(
    source: Source, test: ast.FunctionDef, owner: ast.stmt
) -> Iterator[Mark]:
    """What a test, or a program, says of claims above its name."""
    for call in test.decorator_list:
        match call:
            case ast.Call(func=ast.Name("program"), keywords=keywords):
                given = {one.arg: one.value for one in keywords}
                name = f"{PROGRAM_TEST}[{source.path.stem}.{test.name}]"
            case ast.Call(func=ast.Attribute(attr="claims"), args=args):
                given = {"claims": ast.Tuple([*args])}
                inside = "" if owner is test else f"::{vars(owner)['name']}"
                name = f"{source.path}{inside}::{test.name}"
            case _:
                continue
        claims = ast.literal_eval(given.get("claims", ast.Tuple([])))
        differs = ast.literal_eval(given.get("differs", ast.Constant("")))
        if claims:
            yield Mark(name, claims, source.at(call), differs)


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
