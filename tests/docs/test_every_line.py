"""Each line of fx is shown exactly once, on the page of its file."""

from __future__ import annotations

from pathlib import Path

from docs.machinery.checking import FILES, missing_pages
from docs.machinery.extension import KINDS
from docs.machinery.literate import gaps, shown_lines
from docs.machinery.source import ROOT, cut, read

DOCS = ROOT / "docs"


def test_every_file_has_its_page() -> None:
    """Whether the page shows each line once, tests.docs.test_build asks."""
    assert len(FILES) > 50
    missing = missing_pages(DOCS)
    assert not missing, "\n".join(missing)


def test_lines_shown_twice_or_never_are_seen(tmp_path: Path) -> None:
    page = tmp_path / "files" / "linked_list" / "opcodes.md"
    page.parent.mkdir(parents=True)
    page.write_text(
        "/// source | fx.linked_list.opcodes\n    to: Target\n\nA.\n///\n"
        "/// source | fx.linked_list.opcodes.Target\nB.\n///\n"
        "/// source | fx.linked_list.opcodes.check_target\nC.\n///\n"
    )
    module = read(ROOT / "fx" / "linked_list" / "opcodes.py")
    shown = shown_lines(tmp_path, KINDS)[module.path]
    target, opcodes = module.unit("Target"), module.unit("OPCODES")
    assert list(gaps(module, shown)) == [
        f"fx/linked_list/opcodes.py:{target.first}-{target.last}: shown 2 "
        "times: fx.linked_list.opcodes.Target",
        f"fx/linked_list/opcodes.py:{opcodes.first}-{opcodes.last}: not shown: "
        "fx.linked_list.opcodes.OPCODES",
    ]


def test_a_file_without_lines_has_none_to_show() -> None:
    empty = cut("", "m", "m.py")
    assert empty.units == ()
