"""Where torch.fx has what the pages name: kept in a table, checked, renewed."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.machinery import quotes, source
from docs.machinery.quotes import Quote, Table, check, quoting, table, write
from docs.machinery.source import UnknownName
from fx.torch_internals.names import TESTED_TORCH

CODE = '''"""Head."""


class Node:
    """A node."""

    def prepend(self):
        return 1


def map_arg(a):
    return a
'''


@pytest.fixture
def torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A torch of one file, two pages that quote it, and a table of it."""
    (tmp_path / "torch" / "fx").mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    (tmp_path / "torch" / "fx" / "node.py").write_text(CODE, encoding="utf-8")
    monkeypatch.setattr(quotes, "torch_root", lambda: tmp_path)
    release(tmp_path, "2.15.0", monkeypatch)
    page(tmp_path, "a", "torch.fx.node.Node.prepend", "torch.fx.node")
    page(tmp_path, "b", "torch.fx.node.map_arg", "torch.fx.node.Node.prepend")
    assert write(tmp_path / "t.toml", tmp_path / "docs") == []
    return tmp_path


def release(torch: Path, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the torch another release, by its own word."""
    monkeypatch.setattr(quotes, "torch_version", lambda: version)


def page(torch: Path, name: str, *quoted: str) -> None:
    blocks = [f"/// torch | {one}\nSo.\n///\n" for one in quoted]
    (torch / "docs" / f"{name}.md").write_text("\n".join(blocks))


def edit(torch: Path, old: str, new: str) -> None:
    path = torch / "torch" / "fx" / "node.py"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    source._read.cache_clear()


def checked(torch: Path) -> list[str]:
    return check(torch / "t.toml", torch / "docs")


def test_the_table_is_of_the_newest_torch_that_fx_was_tested_with() -> None:
    assert table().torch.rpartition(".")[0] == TESTED_TORCH[1]


def test_the_table_has_what_the_pages_quote_and_nothing_else() -> None:
    assert set(table().quotes) == set(quoting())


def test_a_table_that_is_read_and_written_is_the_same() -> None:
    text = quotes.TABLE.read_text(encoding="utf-8")
    assert quotes.written(table()) == text


def test_what_a_page_quotes_is_found(torch: Path) -> None:
    assert checked(torch) == []
    made = table(torch / "t.toml").quotes
    quote = made["torch.fx.node.Node.prepend"]
    assert (quote.path, quote.first, quote.last) == ("torch/fx/node.py", 7, 8)
    assert made["torch.fx.node"].name == ""


def test_lines_that_moved_are_told_apart_from_other_code(torch: Path) -> None:
    edit(torch, "class Node", "\nclass Node")
    moved = "lines 8-9 of torch/fx/node.py in torch 2.15.0, 7-8 in the table"
    assert f"torch.fx.node.Node.prepend: {moved}" in checked(torch)
    edit(torch, "return 1", "return 2")
    (wrong,) = [one for one in checked(torch) if "prepend" in one]
    assert wrong.endswith("torch 2.15.0 has other code there")


def test_new_and_unused_and_missing_names_are_told(torch: Path) -> None:
    page(torch, "b", "torch.fx.node.map_args", "torch.fx.node.Node")
    gone, *others = checked(torch)
    assert gone.startswith("torch.fx.node.map_args (docs/b.md): ")
    assert "did you mean map_arg" in gone
    assert others == [
        "torch.fx.node.Node: not in the table",
        "torch.fx.node.map_arg: in the table, and quoted by no page",
    ]
    before = (torch / "t.toml").read_text(encoding="utf-8")
    assert gone in write(torch / "t.toml", torch / "docs")
    assert (torch / "t.toml").read_text(encoding="utf-8") == before


def test_another_torch_is_not_compared(
    torch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release(torch, "2.15.1", monkeypatch)
    assert checked(torch) == []
    release(torch, "2.16.0", monkeypatch)
    (said,) = checked(torch)
    assert "of torch 2.15.0, and torch 2.16.0 is installed" in said


def test_a_new_torch_names_the_pages_to_read_again(
    torch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release(torch, "2.16.0", monkeypatch)
    edit(torch, "return 1", "return 2")
    assert write(torch / "t.toml", torch / "docs") == [
        "docs/a.md, docs/b.md: read what is said of torch.fx.node.Node.prepend"
        ", which has other code in torch 2.16.0"
    ]
    assert table(torch / "t.toml").torch == "2.16.0"
    assert checked(torch) == []


def test_an_older_torch_writes_no_table(
    torch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release(torch, "2.9.1", monkeypatch)
    (said,) = write(torch / "t.toml", torch / "docs")
    assert "the table is of torch 2.15.0" in said
    assert table(torch / "t.toml").torch == "2.15.0"


def test_a_name_that_the_table_lacks_says_how_to_add_it() -> None:
    place = Quote("torch/fx/node.py", "Node.prepend", 5, 6, "")
    known = Table("2.15.0", {place.dotted: place})
    with pytest.raises(UnknownName) as raised:
        known.quote("torch.fx.node.Node.prepnd")
    said = str(raised.value)
    assert "did you mean torch.fx.node.Node.prepend?" in said
    assert said.endswith("make newest, then " + quotes.WRITE)


def test_the_command_says_what_it_did(
    torch: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(quotes, "check", lambda: [])
    assert quotes.main(["--check"]) == 0
    assert f"places in torch {table().torch}" in capsys.readouterr().out
    monkeypatch.setattr(quotes, "check", lambda: ["a: not in the table"])
    assert quotes.main(["--check"]) == 1
    assert "to make the table anew: " in capsys.readouterr().out
    assert quotes.main([]) == 2
