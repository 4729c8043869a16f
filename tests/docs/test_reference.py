"""The reference finds the definition of every public name."""

from __future__ import annotations

import pytest
from markdown import Markdown

from docs.machinery import reference_pages
from docs.machinery.checking import USUAL
from docs.machinery.extension import DocsExtension
from docs.machinery.reference import Name, names, set_late


@pytest.mark.parametrize(
    ("anchor", "home"),
    [
        ("fx.trace", "fx.extra.example_trace.trace.trace"),  # on first use
        ("fx.show", "fx.show.page.show"),  # a folder has the same name
        ("fx.graph.CodeGen", "fx.codegen.codegen.CodeGen"),  # set later
        ("fx.node._format_arg", "fx.compat.names._format_arg"),
    ],
)
def test_a_name_that_is_not_there_at_once_is_found(
    anchor: str, home: str
) -> None:
    (name,) = (one for one in names() if one.anchor == anchor)
    assert name.place is not None
    assert f"{name.place.module.name}.{name.place.unit.name}" == home


def test_a_name_without_a_definition_is_torchs_own() -> None:
    without = [
        name.anchor
        for name in names()
        if name.place is None and "." not in name.key
    ]
    homes = {set_late()[anchor].partition(".")[0] for anchor in without}
    assert homes == {"torch"}


def test_a_name_that_is_defined_nowhere_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lost = Name("fx", "lost", None)
    monkeypatch.setattr(reference_pages, "names", lambda: [*names(), lost])
    extension = DocsExtension("page.md")
    page = Markdown(extensions=[*USUAL, extension])
    page.convert("# Rest\n\n/// api | rest\n///\n")
    (error,) = extension.reading.page.errors
    assert "nothing says where fx.lost is defined" in str(error)
