"""What authors are given to begin with, and how their pages are checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.machinery import __main__ as tools
from docs.machinery.checking import block_errors
from docs.machinery.directives import read_page
from docs.machinery.extension import KINDS
from docs.machinery.literate import not_drawn

OPCODES = "fx.linked_list.opcodes"
WHOLE = f"/// source | {OPCODES}\n    to: check_target\n\nAll of it.\n///\n"


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of pages."""
    (tmp_path / "files" / "linked_list").mkdir(parents=True)
    monkeypatch.setattr(tools, "DOCS", tmp_path)
    return tmp_path


def test_a_page_is_checked_alone(
    docs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = docs / "files" / "linked_list" / "opcodes.md"
    page.write_text(WHOLE, encoding="utf-8")
    assert tools.main(["check", "files/linked_list/opcodes.md"]) == 0
    assert "nothing to mend" in capsys.readouterr().out


def test_what_is_missing_or_wrong_is_said(
    docs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = docs / "files" / "linked_list" / "opcodes.md"
    page.write_text(
        "/// source | fx.linked_list.opcodes\nHead.\n///\n", encoding="utf-8"
    )
    assert tools.main(["check", "docs/files/linked_list/opcodes.md"]) == 1
    assert (
        "not shown: fx.linked_list.opcodes.check_target"
        in capsys.readouterr().out
    )
    page.write_text(f"{WHOLE}/// source | {OPCODES}.Target\nT.\n///\n")
    assert tools.main(["check", "files/linked_list/opcodes.md"]) == 1
    assert "shown 2 times" in capsys.readouterr().out
    page.write_text("/// source | fx.opcode\nHead.\n///\n", encoding="utf-8")
    assert tools.main(["check", "files/linked_list/opcodes.md"]) == 1
    assert "docs/files/linked_list/opcodes.md:1: " in capsys.readouterr().out


def test_all_pages_are_checked_with_a_line_for_each(
    docs: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (docs / "good.md").write_text("# `fx.node.Node`\n", encoding="utf-8")
    assert tools.main(["check"]) == 0
    assert capsys.readouterr().out == "all pages: nothing to mend\n"
    (docs / "one.md").write_text(
        "# T\n\nSee `fx.node.Nod`.\n\n[x](files/node.md#fx.node.Noda)\n",
        encoding="utf-8",
    )
    (docs / "two.md").write_text("/// torch | x\nT.\n///\n", encoding="utf-8")
    assert tools.main(["check"]) == 1
    one, two = capsys.readouterr().out.splitlines()
    assert one.startswith("docs/one.md:3: fx.node.Nod: fx/node.py defines no")
    assert one.endswith("(and 1 more)")
    assert two.startswith("docs/two.md:1: /// torch needs a name of torch")


def test_links_to_what_a_broken_page_would_show_lead_to_its_error(
    docs: Path,
) -> None:
    page = docs / "files" / "linked_list" / "opcodes.md"
    text = WHOLE.replace(
        f"{OPCODES}\n    to: check_target", f"{OPCODES}.OPCODE"
    )
    page.write_text(text, encoding="utf-8")
    (error,) = block_errors(docs, "files/linked_list/opcodes.md")
    assert "did you mean OPCODES?" in str(error)
    read_again = read_page(
        "files/linked_list/opcodes.md", page.read_text().splitlines(), KINDS
    )
    assert f"{OPCODES}.OPCODE" in not_drawn(read_again)
    assert f"{OPCODES}.OPCODES" in not_drawn(read_again)
