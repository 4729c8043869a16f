"""What authors are given to begin with, and how their pages are checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.machinery import __main__ as tools
from docs.machinery.extension import BLOCKS
from docs.machinery.literate import gaps, shown_lines
from docs.machinery.source import ROOT, read

KINDS = {name: block.kind for name, block in BLOCKS.items()}
FILES = sorted((ROOT / "fx").rglob("*.py"))


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of pages."""
    (tmp_path / "files" / "ordered").mkdir(parents=True)
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
    page = docs / "files" / "ordered" / "opcodes.md"
    page.write_text(
        "\n".join(tools.outline("fx.ordered.opcodes")), encoding="utf-8"
    )
    assert tools.main(["check", "files/ordered/opcodes.md"]) == 0
    assert "nothing to mend" in capsys.readouterr().out


def test_what_is_missing_or_wrong_is_said(
    docs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = docs / "files" / "ordered" / "opcodes.md"
    page.write_text(
        "/// source | fx.ordered.opcodes\nHead.\n///\n", encoding="utf-8"
    )
    assert tools.main(["check", "docs/files/ordered/opcodes.md"]) == 1
    assert (
        "not shown: fx.ordered.opcodes.check_target" in capsys.readouterr().out
    )
    page.write_text("/// source | fx.opcode\nHead.\n///\n", encoding="utf-8")
    assert tools.main(["check", "files/ordered/opcodes.md"]) == 1
    assert "docs/files/ordered/opcodes.md:1: " in capsys.readouterr().out
