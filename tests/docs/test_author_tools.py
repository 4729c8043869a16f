"""What authors are given to begin with, and how their pages are checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.machinery import __main__ as tools
from docs.machinery import checking
from docs.machinery.checking import block_errors
from docs.machinery.directives import read_page
from docs.machinery.extension import KINDS
from docs.machinery.literate import gaps, not_drawn, shown_lines
from docs.machinery.source import ROOT, read

FILES = sorted((ROOT / "fx").rglob("*.py"))


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of pages."""
    (tmp_path / "files" / "linked_list").mkdir(parents=True)
    monkeypatch.setattr(tools, "DOCS", tmp_path)
    return tmp_path


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_an_outline_shows_each_line_once(path: Path, docs: Path) -> None:
    module = read(path)
    text = "\n".join(tools.outline(module.name))
    (docs / "files" / "page.md").write_text(text, encoding="utf-8")
    shown = shown_lines(docs, KINDS)[module.path]
    assert list(gaps(module, shown)) == []


def test_a_page_is_checked_alone(
    docs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = docs / "files" / "linked_list" / "opcodes.md"
    page.write_text(
        "\n".join(tools.outline("fx.linked_list.opcodes")), encoding="utf-8"
    )
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
    page.write_text("/// source | fx.opcode\nHead.\n///\n", encoding="utf-8")
    assert tools.main(["check", "files/linked_list/opcodes.md"]) == 1
    assert "docs/files/linked_list/opcodes.md:1: " in capsys.readouterr().out


def test_all_pages_are_checked_with_a_line_for_each(
    docs: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checking, "FILES", [])
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


def test_a_file_without_a_page_is_told(
    docs: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checking, "FILES", ["fx/node.py"])
    assert docs.is_dir()
    assert tools.main(["check"]) == 1
    assert capsys.readouterr().out == (
        "docs/files/node.md is missing: begin with "
        "python -m docs.machinery outline fx.node\n"
    )


def test_links_to_what_a_broken_page_would_show_lead_to_its_error(
    docs: Path,
) -> None:
    page = docs / "files" / "linked_list" / "opcodes.md"
    text = "\n".join(tools.outline("fx.linked_list.opcodes"))
    page.write_text(text.replace(".OPCODES", ".OPCODE"), encoding="utf-8")
    (error,) = block_errors(docs, "files/linked_list/opcodes.md")
    assert "did you mean OPCODES?" in str(error)
    read_again = read_page(
        "files/linked_list/opcodes.md", page.read_text().splitlines(), KINDS
    )
    assert list(not_drawn(read_again)) == [
        "fx.linked_list.opcodes.OPCODE",
        "fx.linked_list.opcodes.OPCODES",
    ]
