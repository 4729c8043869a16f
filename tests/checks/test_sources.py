"""`Source` finds the stages, lines and names that the checks rely on."""

from __future__ import annotations

from pathlib import Path

from tests.checks.sources import functions, library, read_tree, snippet

SAMPLE = snippet(
    '''"""Stage 02, use-def: a sample.

Two paragraphs.
"""

# A comment.
import os  # with a remark


class Box:
    """A box."""

    size: int
    """How large."""

    def put(self) -> str:
        """Put it in."""
        return """not a
        docstring"""

    def _hide(self) -> None: ...


def free() -> None:
    def inner() -> None: ...
'''
)


def test_stage_comes_from_the_first_words() -> None:
    assert SAMPLE.heading == (2, "use-def")
    for text in (
        '"""Stage 09, more: x."""',
        '"""Stage 2, use-def: x."""',
        '"""A file of Stage 02, use-def: x."""',
        '"""Stage 02."""',
        "x = 1",
    ):
        assert snippet(text).stage is None, text


def test_docstrings_comments_and_blanks_are_no_code() -> None:
    assert sorted(SAMPLE.docstring_lines) == [1, 2, 3, 4, 11, 14, 17]
    assert sorted(SAMPLE.code_lines) == [7, 10, 13, 16, 18, 19, 21, 24, 25]


def test_comments_are_found_behind_code_too() -> None:
    assert SAMPLE.comments == [(6, "A comment."), (7, "with a remark")]


def test_nested_functions_count() -> None:
    names = [f.name for f in functions(SAMPLE)]
    assert sorted(names) == ["_hide", "free", "inner", "put"]


def test_module_names() -> None:
    assert snippet("", "fx/passes/__init__.py").module == "fx.passes"
    assert snippet("", "fx/node.py").module == "fx.node"
    assert snippet("", "fx/__init__.py").module == "fx"


def test_the_whole_library_is_read(tmp_path: Path) -> None:
    package = tmp_path / "fx"
    (package / "passes").mkdir(parents=True)
    (package / "passes" / "one.py").write_text("x = 1\n")
    (package / "node.py").write_text("y = 2\n")
    (package / "py.typed").write_text("")
    paths = [str(source.path) for source in read_tree(tmp_path, "fx")]
    assert paths == ["fx/node.py", "fx/passes/one.py"]
    assert len(library()) > 1
