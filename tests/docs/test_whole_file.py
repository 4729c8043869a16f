"""A page that is made of a file: its docstrings beside its code, each once."""

from __future__ import annotations

import re
import xml.etree.ElementTree as etree
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown import Markdown

from docs.machinery import hook, whole_file
from docs.machinery.checking import USUAL, block_errors
from docs.machinery.docstrings import draw_docstring
from docs.machinery.extension import DocsExtension
from docs.machinery.pages import (
    DOCS,
    TAGS,
    first_line,
    made,
    pages,
    text_of,
    written,
)
from docs.machinery.source import FILES, cut, find
from docs.machinery.whole_file import spans

PAGE = "files/passes/graph_diff.md"
NAME = "fx.passes.graph_diff"


def drawn(text: str) -> str:
    extension = DocsExtension(PAGE)
    html = Markdown(extensions=[*USUAL, extension]).convert(text)
    assert extension.reading.page.errors == []
    return html


def test_a_file_that_is_no_core_has_a_page_that_nobody_wrote() -> None:
    assert len(made(DOCS)) > 20
    assert all(f"docs/{page}" not in written(DOCS) for page in made(DOCS))
    assert "files/use_def/errors.md" in made(DOCS)
    assert "files/node.md" not in made(DOCS)
    assert set(pages(DOCS)) == {*written(DOCS), *made(DOCS)}


def test_made_pages_have_the_words_that_readers_search_for() -> None:
    pages = made(DOCS)
    for path, tags in TAGS.items():
        text = pages[f"files/{path.removesuffix('.py')}.md"]
        assert re.findall(r"^  - (.+)$", text, re.MULTILINE) == [*tags]


def test_another_folder_has_what_is_written_there(tmp_path: Path) -> None:
    (tmp_path / "one.md").write_text("# One\n")
    assert pages(tmp_path) == ["one.md"]
    with pytest.raises(FileNotFoundError):
        text_of(tmp_path, PAGE)


def test_each_line_of_a_file_is_shown_once_or_said_beside() -> None:
    module = find(NAME).module
    html = drawn(f"# x\n\n/// file | {NAME}\n///\n")
    numbers = re.findall(r'data-linenos="\s*(\d+)', html)
    assert len(numbers) == len(set(numbers)) > 50
    shown = set(map(int, numbers))
    beside = {
        line for span in spans(module) for line in whole_file.beside(span)
    }
    assert beside and not beside & shown
    full = {n for n, line in enumerate(module.lines, 1) if line.strip()}
    assert full <= shown | beside


def test_each_name_of_a_file_is_an_anchor() -> None:
    html = drawn(f"# x\n\n/// file | {NAME}\n///\n")
    assert f'id="{NAME}"' in html
    for unit in find(NAME).module.all():
        if unit.name:
            assert f'id="{NAME}.{unit.name}"' in html


def test_a_docstring_stands_beside_the_code_and_not_in_it() -> None:
    text = (
        '"""Passes: a thing."""\n\nimport os\n\n__all__ = ["f"]\n\n'
        'def f():\n    """Say it."""\n    return os\n'
    )
    module = cut(text, "fx.thing", "fx/thing.py")
    head, body = spans(module)
    assert (head.first, head.last) == (1, 5)
    assert list(whole_file.beside(head)) == [1]
    assert list(whole_file.beside(body)) == [8]


def test_it_belongs_to_the_pages_of_files(tmp_path: Path) -> None:
    (tmp_path / "guide.md").write_text(f"# x\n\n/// file | {NAME}\n///\n")
    (error,) = block_errors(tmp_path, "guide.md")
    assert "belongs to the pages of docs/files" in str(error)


def test_names_in_docstrings_lead_to_where_they_are_defined() -> None:
    text = (
        '"""Extra: a thing."""\n\n'
        "from ...node import Node as N\nfrom . import modules\n\n"
        "def f():\n    return N\n"
    )
    here = "files/extra/effects/thing.md"
    module = cut(text, "fx.extra.effects.thing", "fx/extra/effects/thing.py")
    assert whole_file.imported(module)["N"] == "fx.node.Node"
    link = whole_file.linking(here, module)
    assert link("modules") == "../../../files/extra/effects/modules.md"
    up = "../../../files"
    assert link("modules.py") == f"{up}/extra/effects/modules.md"
    assert link("N.is_impure") == f"{up}/node.md#fx.node.Node.is_impure"
    assert link("fx.node.Node") == f"{up}/node.md#fx.node.Node"
    unknown = ["fx.nothing", "x.add_(1)", "torch.add", "N.nothing", "tables"]
    assert [link(name) for name in unknown] == [""] * 5


def test_the_docstring_of_a_file_names_its_neighbours() -> None:
    page, module = PAGE, find(NAME).module
    there = "../../files/passes/structure.md"
    assert whole_file.linking(page, module, is_head=True)("structure") == there
    assert whole_file.linking(page, module)("structure") == ""
    assert whole_file.linking(page, module)("structure.py") == there


def test_what_torch_does_otherwise_stands_below_where_it_has_it() -> None:
    box = etree.Element("div")
    draw_docstring(box, "torch.fx: node.py, Node.prepend; it returns `None`.")
    (aside,) = box
    where, said = aside
    assert "torch/fx/node.py" in "".join(where.itertext())
    assert "".join(said.itertext()) == "It returns None."
    draw_docstring(box, "torch.fx: node.py, Node.prepend (of a base)")
    assert "".join(box[1].itertext()).endswith(" (of a base)")


def test_a_value_with_a_docstring_is_shown_beside_it() -> None:
    text = (
        '"""Passes: a thing."""\n\nA = 1\n\nB = 2\n\n'
        'C = 3\nD = 4\n"""Of both."""\nE = 5\n"""Of E."""\n\nF = 6\n'
    )
    module = cut(text, "fx.thing", "fx/thing.py")
    shown = [span.title for span in spans(module)]
    assert shown == ["", "A … B", "C … D", "E", "F"]
    hidden = [list(whole_file.beside(one)) for one in spans(module)]
    assert hidden == [[1], [], [9], [11], []]


def test_a_made_page_is_named_in_words() -> None:
    pages = made(DOCS)
    said = "# What is said when an argument cannot be accepted\n"
    assert pages["files/use_def/errors.md"].startswith(said)
    assert first_line("fx/_symbolic_trace.py") == (
        "Stage 05, codegen",
        "symbolic_trace, from a function to a module in one call",
    )


def test_the_navigation_has_each_folder_once() -> None:
    names = ["extra/a.md", "extra/effects/b.md", "extra/c.md", "d.md"]
    assert hook.by_room(f"files/{name}" for name in names) == [
        {"fx": ["files/d.md"]},
        {"fx/extra": ["files/extra/a.md", "files/extra/c.md"]},
        {"fx/extra/effects": ["files/extra/effects/b.md"]},
    ]


def listed(nav: hook.Nav) -> Iterator[str]:
    """The pages of a part of the navigation."""
    for one in nav:
        if isinstance(one, str):
            yield one
        else:
            for inside in one.values():
                yield from listed(inside)


def test_one_tab_has_the_pages_of_all_files_and_each_once() -> None:
    tab = hook.source_tab()
    of_files = [page for page in pages(DOCS) if page.startswith(FILES)]
    assert sorted([*listed(tab), *hook.PASS_PAGES]) == of_files
    first = tab[0]
    assert isinstance(first, dict)
    assert (
        first["01 Linked-list graph"][0] == "files/linked_list/linked_list.md"
    )
    assert {*tab[1]} == {"02 Use-def"}
