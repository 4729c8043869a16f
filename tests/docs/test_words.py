"""How long a page is said to be."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.machinery import __main__ as tools
from docs.machinery.directives import Page, read_page
from docs.machinery.extension import KINDS
from docs.machinery.source import ROOT
from docs.machinery.words import core_pages, filled, label, words
from tests.docs.test_directives import drawn_with

TEXT = """# A title is not counted

Four words of prose.

/// run | docs.examples.home
    unknown: option words

Three in block.
///

| a | table | is | not |
|---|---|---|---|

```sh
make nothing of this
```

And two.
"""


def page(text: str, name: str = "page.md") -> Page:
    return read_page(name, text.splitlines(), KINDS)


def test_only_prose_is_counted() -> None:
    assert words(page(TEXT)) == 4 + 3 + 2


BESIDE = """# T

Core.

/// source | fx.node

Two words.

/// torch | torch.fx.node.Node
An aside.
///
///

/// write | node.Node._connect
Three words folded.
///

## For reference

More to look up.

## What is claimed

/// claims
node-meta
///
"""


def test_ids_of_claims_are_not_prose_and_the_core_ends_before() -> None:
    assert words(page(BESIDE)) == 1 + 2 + 2 + 3 + 4
    assert words(page(BESIDE), core=True) == 1 + 2


def test_a_page_can_say_how_long_another_is(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("---\ntags: [x]\n---\n" + "word " * 660)
    said = filled("It takes {minutes a.md}.", "b.md", tmp_path, KINDS)
    assert said == "It takes 3 minutes."


@pytest.mark.parametrize("address", ["https://forge.example/fx", ""])
def test_a_page_can_say_what_to_clone(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPO_URL", address)
    text = "git clone {repository} fx"
    said = filled(text, "course.md", ROOT / "docs", KINDS)
    assert said == (f"git clone {address} fx" if address else "")


def test_a_page_can_say_where_a_definition_is() -> None:
    html, errors = drawn_with("It is {at fx.proxy._records}.", "stages/03.md")
    assert not errors
    lines = (ROOT / "fx" / "proxy.py").read_text().splitlines()
    (line,) = (n for n, text in enumerate(lines, 1) if "def _records" in text)
    link = '<a href="../files/proxy.md#fx.proxy._records">'
    assert f"<p>It is {link}fx/proxy.py:{line}</a>.</p>" in html


def test_a_definition_that_is_not_there_is_an_error_with_its_line() -> None:
    _, errors = drawn_with("First.\n\nIt is {at fx.node.map_art}.", "p.md")
    assert [error.partition(";")[0] for error in errors] == [
        "docs/p.md:3: fx/node.py defines no 'map_art'"
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "files/node.md",
            "fx/node.py · Stage 02 · core, 1 minute beside the code",
        ),
        ("files/annotate.md", "fx/annotate.py · Stage 03"),
        ("files/as_torch.md", "fx/as_torch.py"),
        ("library.md", "1 minute without the programs"),
        ("glossary.md", ""),
    ],
)
def test_a_page_says_where_it_belongs(name: str, text: str) -> None:
    said = label(page(TEXT, name), ROOT / "docs", KINDS)
    assert said == text


def test_the_page_of_a_stage_counts_its_core(tmp_path: Path) -> None:
    for name in core_pages(1):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("# T\n\n" + "word " * 1000)
    stage = page((tmp_path / "stages/01.md").read_text(), "stages/01.md")
    count = len(core_pages(1))
    assert count > 1
    assert label(stage, tmp_path, KINDS) == (
        f"5 minutes · with the core files {round(count * 1000 / 220)} minutes"
    )


def test_one_command_counts_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert tools.main(["words"]) == 0
    *stages, cores, whole = capsys.readouterr().out.splitlines()
    assert len(stages) == 8
    total = sum(int(line.split("core ")[1].split()[0]) for line in stages)
    assert cores.startswith(f"all cores: {total} words")
    assert int(whole.rpartition(" ")[2]) > total
