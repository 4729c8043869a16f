"""Blocks are read strictly: what is not understood ends the build."""

from __future__ import annotations

import re
from html import unescape

import pytest
from markdown import Markdown

from docs.machinery.directives import Page, read_page
from docs.machinery.extension import KINDS, DocsExtension
from docs.machinery.source import ROOT


def page(text: str) -> Page:
    return read_page("files/p.md", text.splitlines(), KINDS)


def drawn_with(text: str, name: str = "files/p.md") -> tuple[str, list[str]]:
    """A page as HTML, and its errors."""
    extension = DocsExtension(name)
    usual = "pymdownx.superfences", "tables", "toc"
    html = Markdown(extensions=[*usual, extension]).convert(text)
    return html, [str(error) for error in extension.reading.page.errors]


def drawn(text: str) -> str:
    """A page without errors as HTML."""
    html, errors = drawn_with(text)
    assert not errors
    return html


def test_options_prose_and_place_are_read() -> None:
    found = page(
        "Text.\n\n/// source | fx.node.Node\n    mark: [a, b]\n"
        "    to: c\n\nWhy.\n///\n"
    )
    (directive,) = found.directives
    assert directive.argument == "fx.node.Node"
    assert directive.options == {"mark": ("a", "b"), "to": ("c",)}
    assert (directive.body, directive.line) == ("Why.", 3)


def test_blocks_in_blocks_need_no_counting_of_slashes() -> None:
    found = page(
        "/// source | fx.node\n\nOut.\n\n/// torch | torch.fx.node\nIn.\n"
        "///\n\nOut.\n///\n"
    )
    opened = [line for line in found.lines if "fx |" in line]
    assert len(opened) == 2
    assert opened[0].count("/") > opened[1].count("/")


def test_slashes_in_a_fence_are_text() -> None:
    assert not page("```text\n/// nothing\n```\n").directives


WRONG = {
    "/// sorce | fx.node\n///\n": "1: no block is named 'sorce'",
    "/// source\nText.\n///\n": "1: /// source needs an argument",
    "\n/// ledger | x\n///\n": "2: /// ledger takes no argument",
    "/// source | fx.node\nText.\n": "1: /// source is never closed",
    "Text.\n///\n": "2: /// closes nothing",
    "/// source | fx.node\n///\n": "1: /// source says nothing",
    "/// source | fx.node\n    marked: x\n\nText.\n///\n": (
        "2: /// source has no option 'marked'"
    ),
    "/// source | fx.node\n  mark: x\n\nText.\n///\n": (
        "1: indent the option mark: by four"
    ),
    "/// source | fx.node\nmark: x\n\nText.\n///\n": (
        "1: indent the option mark: by four"
    ),
    "/// source | fx.node\n    mark: a: b\n\nText.\n///\n": (
        "2: options not understood"
    ),
    "/// source | fx.node\n    just words\n\nText.\n///\n": (
        "2: options are written"
    ),
    "/// source | fx.node\n    mark:\n\nText.\n///\n": "2: option mark",
    "/// predict | docs.examples.predict_01.several_after\n\nWhat?\n///\n": (
        "1: /// predict needs the option answer:"
    ),
    "/// ledger\nText.\n///\n": "2: /// ledger holds no text",
    "/// source | fx.node\n\n## Heading\n///\n": "3: no headings",
    "- item\n\n    /// ledger\n": "3: a block begins at the left margin",
    "/// source fx.node\nText.\n///\n": "1: not understood",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_not_understood_is_an_error_with_its_line(text: str) -> None:
    message = f"docs/files/p.md:{WRONG[text]}"
    first, *_ = page(text).errors
    assert str(first).startswith(message)


RING = "fx.linked_list.linked_list"
UNDRAWN = {
    "/// source | fx.node.Nod\nText.\n///\n": "did you mean Node",
    "/// source | os.path\nText.\n///\n": "code comes from",
    f"/// source | {RING}.Link\n    mark: nowhere\n\nText.\n///\n": (
        "mark: no line here contains 'nowhere'"
    ),
    f"/// source | {RING}.Link\n    mark: [self._next, self._]\n\nT.\n///\n": (
        "mark: each line with 'self._next' has another mark already"
    ),
    f"/// source | {RING}.Link.append\n    to: prepend\n\nT.\n///\n": (
        "to: Link.prepend stands before Link.append"
    ),
    f"/// source | {RING}.Link\n    to: nobody\n\nText.\n///\n": (
        "fx/linked_list/linked_list.py defines no 'nobody'"
    ),
    f"/// source | {RING}.GAP\n    header: true\n\nText.\n///\n": (
        "header is for classes"
    ),
    f"/// source | {RING}.Link\n    header: yes\n\nText.\n///\n": (
        "option header can only be true"
    ),
    "/// torch | fx.node.Node\nText.\n///\n": "a name of torch",
    "/// claims\n///\n": "belongs to the page of a stage",
    "/// exercises | 9\n///\n": "no stage '9'",
    "/// write | node.Node._conect\nText.\n///\n": "did you mean Node._connect",
    "/// write | graph.Graph.lint\nText.\n///\n": "is not an exercise",
    "/// stub | graph.Graph.lint\n///\n": "no exercise 'graph.Graph.lint'",
    "/// told | nothing\n///\n": "no text 'nothing': there are first_check,",
    "/// told | untouched\n    to: tset\n///\n": "no line contains 'tset'",
    "/// picture | none\nText.\n///\n": "no picture 'none'",
    "/// trace | docs.examples.none\nText.\n///\n": "none.py",
    "/// run | docs.examples.predict_01\nText.\n///\n": "defines no 'main'",
    "/// predict | docs.examples.predict_01.several_after\n"
    "    answer: x first second\n\nWhat?\n///\n": (
        "the answer is not what the code prints"
    ),
}


@pytest.mark.parametrize("text", UNDRAWN)
def test_what_cannot_be_drawn_is_an_error_with_its_line(text: str) -> None:
    html, (error,) = drawn_with(text)
    assert error.startswith("docs/files/p.md:1: ")
    assert UNDRAWN[text] in error
    assert UNDRAWN[text] in unescape(html)


def test_an_exercise_is_shown_as_a_stub() -> None:
    name = "linked_list.linked_list.Link._unlink"
    html, errors = drawn_with(f"/// stub | {name}\n///\n")
    assert not errors
    plain = re.sub("<[^>]+>", "", html)
    assert "exercises/fx/linked_list/linked_list.py" in plain
    assert 'raise NotImplementedError("stage 01: Link._unlink' in plain
    assert "before" not in plain


def test_what_a_check_says_is_shown_up_to_a_line() -> None:
    whole, _ = drawn_with("/// told | untouched\n///\n")
    part, _ = drawn_with("/// told | untouched\n    to: collected\n///\n")
    assert "next: write Link._unlink (ring" in whole
    assert "7 selected\n…" in part
    assert "next: write Link._unlink (ring" not in part


def test_what_one_needs_to_write_a_function_is_folded() -> None:
    html, errors = drawn_with("/// write | node.Node._connect\nFirst.\n///\n")
    assert not errors
    head, _, rest = html.partition("</summary>")
    assert head.endswith(
        '<details class="fx-write">\n'
        "<summary>To write it: <code>Node._connect</code>"
    )
    assert "<p>First.</p>" in rest.partition("</details>")[0]


def test_whole_files_are_shown_on_their_pages_only() -> None:
    text = "/// source | fx.linked_list.linked_list\nText.\n///\n"
    _, (error,) = drawn_with(text, "stages/01.md")
    assert "write /// excerpt" in error


def test_code_has_the_line_numbers_of_its_file() -> None:
    html = drawn("/// source | fx.linked_list.linked_list.GAP\nWhy.\n///\n")
    first = find_line("fx/linked_list/linked_list.py", "GAP: Final")
    assert f'data-linenos="{first} "' in html
    assert 'id="fx.linked_list.linked_list.GAP"' in html
    assert "<p>Why.</p>" in html


def find_line(path: str, text: str) -> int:
    """The number of the first line of a file with that text."""
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    return next(n for n, line in enumerate(lines, 1) if text in line)


def test_each_definition_of_a_range_is_an_anchor() -> None:
    html = drawn(
        f"/// source | {RING}.Link.prepend\n    to: __lt__\n\nWhy.\n///\n"
    )
    for name in ("prepend", "append", "_unlink", "__lt__"):
        assert html.count(f'id="fx.linked_list.linked_list.Link.{name}"') == 1


def test_marked_lines_are_marked() -> None:
    html = drawn(
        "/// source | fx.linked_list.linked_list.Link.prepend\n"
        "    mark: before._next = x\n\nWhy.\n///\n"
    )
    assert html.count('class="hll"') == 1


def test_names_with_underscores_stay_as_they_are() -> None:
    html = drawn(
        "/// source | fx.linked_list.linked_list.Link.__lt__\nWhy.\n///\n"
    )
    assert "<code>Link.__lt__</code>" in html


def test_imports_are_folded_and_nothing_is_lost() -> None:
    html = drawn("/// source | fx.node\n    to: T\n\nWhy.\n///\n")
    before, _, rest = html.partition('<details class="fx-imports">')
    folded, _, after = rest.partition("</details>")
    first = find_line("fx/node.py", "from __future__")
    assert f"Imports, lines {first}-" in folded
    assert "immutable_dict" in folded
    assert "__all__" in folded
    assert "immutable_dict" not in before + after
    last = find_line("fx/node.py", "T = TypeVar")
    lines = (ROOT / "fx/node.py").read_text(encoding="utf-8").splitlines()
    full = [n for n, line in enumerate(lines[:last], 1) if line.strip()]
    numbers = re.findall(r'data-linenos=" *(\d+) "', html)
    assert set(map(str, full)) <= set(numbers)
    assert len(numbers) == len(set(numbers))
    assert 'id="fx.node.T"' in after


def test_a_class_for_type_checkers_is_not_folded() -> None:
    html = drawn("/// source | fx.proxy._Op\n    to: _Like\n\nWhy.\n///\n")
    assert "_Like" in html
    assert "fx-imports" not in html


def test_an_import_that_is_marked_is_not_folded() -> None:
    text = (
        "/// source | fx.node\n    to: T\n    mark: import copy\n\nWhy.\n///\n"
    )
    html = drawn(text)
    assert "fx-imports" not in html
    assert html.count('class="hll"') == 1
