"""tests/claims.toml and the tests list the same claims."""

from __future__ import annotations

from dataclasses import replace

import pytest

from docs.machinery.source import find
from tests.checks.claims import (
    LEDGER,
    PROGRAM_TEST,
    Cited,
    Claim,
    Document,
    Mark,
    Section,
    cited,
    documents,
    load,
    marks,
    problems,
    read_tests,
    with_tests,
)
from tests.checks.sources import library, snippet
from tests.parity import programs as _programs  # registers them
from tests.parity.harness import PROGRAMS

ROW = Claim("a-claim", 2, "000 Node", "It is so.", "holds", code="fx.node.Node")
TEXT = """\
[[claim]]
id = "a-claim"
stage = 2
where = "000 Node"
text = "It is so."
code = "fx.node.Node"
holds = "holds"
"""


def test_the_ledger_agrees_with_the_tests() -> None:
    claims = load(LEDGER.read_text(encoding="utf-8"))
    built = {source.stage for source in library() if source.stage}
    wrong = list(problems(claims, list(marks(read_tests())), built))
    assert not wrong, "\n".join(wrong)


def test_all_claims_of_the_documents_are_there() -> None:
    claims = load(LEDGER.read_text(encoding="utf-8"))
    assert len({claim.id for claim in claims}) == 283


def test_each_section_is_cited_and_each_citation_has_its_section() -> None:
    text = LEDGER.read_text(encoding="utf-8")
    known = documents(text)
    found = {
        (place.document, place.section)
        for claim in load(text)
        for place in cited(claim, known)
    }
    assert found == {
        (document.id, section.name)
        for document in known
        for section in document.sections
    }
    assert [d.id for d in known] == ["000", "001", "002", "003", "004"]


def test_each_claim_names_a_definition_of_fx() -> None:
    for claim in load(LEDGER.read_text(encoding="utf-8")):
        if claim.holds != "n/a":
            assert claim.code.startswith("fx."), claim.id
            assert find(claim.code).unit.name, claim.id


def test_programs_read_from_the_text_are_the_registered_ones() -> None:
    assert _programs is not None
    read = {
        (mark.test, claim)
        for mark in marks(read_tests())
        if mark.test.startswith(PROGRAM_TEST)
        for claim in mark.claims
    }
    registered = {
        (f"{PROGRAM_TEST}[{program.name}]", claim)
        for program in PROGRAMS.values()
        for claim in program.claims
    }
    assert read == registered


# --- reading the tests -----------------------------------------------------


def read(text: str, path: str = "tests/library/test_x.py") -> list[Mark]:
    """The marks of a made-up file."""
    return list(marks([snippet(text, path)]))


def test_programs_and_marks_are_read() -> None:
    program = "@program(claims=('a', 'b'), differs='row')\ndef moves(lib): ..."
    (mark,) = read(program, "tests/parity/programs/nodes.py")
    assert mark.test == (
        "tests/parity/test_programs.py::test_program[nodes.moves]"
    )
    assert mark.claims == ("a", "b")
    assert mark.differs == "row"
    text = (
        "class TestIt:\n"
        "    @pytest.mark.claims('b', 'c')\n    def test_one(self): ...\n"
        "@pytest.mark.claims('z')\ndef test_two(): ...\n"
    )
    path = "tests/library/test_x.py"
    assert [(mark.test, mark.claims) for mark in read(text)] == [
        (f"{path}::TestIt::test_one", ("b", "c")),
        (f"{path}::test_two", ("z",)),
    ]


# --- comparing -------------------------------------------------------------


def complaints(*rows: Claim, mark: Mark | None = None) -> str:
    """The problems found in made-up rows and at most one test."""
    return "\n".join(problems(rows, [mark] if mark else [], built={1, 2}))


def test_a_claim_without_a_test_is_seen() -> None:
    assert "no test checks this claim" in complaints(ROW)
    later = Claim("late", 3, "x", "x", "holds")
    absent = Claim("gone", 2, "x", "x", "n/a", torch="C++ only")
    assert complaints(later, absent) == ""


def test_a_test_of_an_unknown_claim_is_seen() -> None:
    mark = Mark("tests/t.py::test_x", ("b-claim",), "tests/t.py:3")
    later = Claim("late", 3, "x", "x", "holds")
    assert complaints(later, mark=mark) == (
        "tests/t.py:3: no claim is called 'b-claim'"
    )


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("stage = 2", "stage = 9"),
        ("stage = 2", 'stage = "2"'),
        ('holds = "holds"', 'holds = "maybe"'),
        ('text = "It is so."', "text = 3"),
        ("stage = 2", 'test = ["t"]\nstage = 2'),
        ('where = "000 Node"\n', ""),
    ],
)
def test_a_row_that_is_wrong_is_refused(right: str, wrong: str) -> None:
    assert load(TEXT) == [ROW]
    assert right in TEXT
    with pytest.raises(ValueError, match="claim 'a-claim': "):
        load(TEXT.replace(right, wrong))


# --- documents -------------------------------------------------------------

SECTIONS = (Section("§3", "A", "", ""), Section("§3.1", "B", "", "b"))
DOCUMENT = Document("003", "T", "题", "an article", "", SECTIONS)


def test_a_place_is_the_longest_section_and_a_part_of_it() -> None:
    row = replace(ROW, where="003 §3.1 (table), §3")
    assert list(cited(row, [DOCUMENT])) == [
        Cited("003", "§3.1", "(table)"),
        Cited("003", "§3"),
    ]
    for wrong in ("003 §3.2", "003 §31", "004 §3", "003"):
        with pytest.raises(ValueError, match="has no section"):
            list(cited(replace(ROW, where=wrong), [DOCUMENT]))


def test_documents_are_read() -> None:
    text = (
        '[[document]]\nid = "003"\ntitle = "T"\noriginal = "题"\n'
        'about = "an article"\nurl = ""\n'
        'sections = [["§3", "A", "", ""], ["§3.1", "B", "", "b"]]\n'
    )
    assert documents(text) == [DOCUMENT]
    for wrong in (text.replace('"B", ', ""), text.replace('url = ""', "")):
        with pytest.raises(ValueError, match="document '003'"):
            documents(wrong)


def test_a_claim_without_code_is_seen() -> None:
    mark = Mark("tests/t.py::test_x", ("a-claim",), "tests/t.py:3")
    (row,) = with_tests([replace(ROW, code="")], [mark])
    assert complaints(row, mark=mark) == (
        "a-claim: `code` must name a definition of fx"
    )
