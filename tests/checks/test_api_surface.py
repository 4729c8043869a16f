"""tests/api_surface.toml says truly which names of torch.fx fx has."""

from __future__ import annotations

import importlib
import textwrap
from pathlib import Path

import pytest
import torch

from tests.checks.api_surface import (
    FILE,
    NOT_PASSED_ON,
    Item,
    Row,
    describe,
    dump,
    load,
    look_up,
    members,
    parameters,
    passed_on,
    passed_on_problems,
    public_names,
    row_problems,
    surface_problems,
    torch_modules,
    torch_surface,
    updated,
)


def test_every_row_is_true_of_fx() -> None:
    rows = load(FILE.read_text(encoding="utf-8"))
    wrong = [
        problem
        for (module, key), row in rows.items()
        for problem in row_problems(row, look_up(module, key))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.newest
def test_every_name_of_torch_fx_has_a_row() -> None:
    rows = load(FILE.read_text(encoding="utf-8"))
    wrong = list(surface_problems(rows, torch_surface(rows)))
    assert not wrong, "\n".join(wrong)


@pytest.mark.newest
def test_every_name_that_torch_fx_imports_is_there_or_out() -> None:
    rows = load(FILE.read_text(encoding="utf-8"))
    wrong = list(passed_on_problems(rows))
    assert not wrong, "\n".join(wrong)


def test_the_file_is_in_its_one_form() -> None:
    text = FILE.read_text(encoding="utf-8")
    assert dump(load(text)) == text


# --- the checks can fail ---------------------------------------------------

SAME = Row("fx.m", "f", "function", "(a, b=1)", "same")


@pytest.mark.parametrize(
    ("row", "found", "complaint"),
    [
        (SAME, None, "fx.m.f: fx has it not"),
        (SAME, Item("class"), "fx.m.f: a class, not a function"),
        (
            SAME,
            Item("function", "(a, *, b=1)"),
            "fx.m.f: takes (a, *, b=1), torch.fx (a, b=1)",
        ),
        (
            Row("fx.m", "f", "data", None, "differs"),
            Item("data"),
            "fx.m.f: differs, but no reason is given",
        ),
        (
            Row("fx.m", "f", "data", None, "out", "why"),
            Item("data"),
            "fx.m.f: is out, yet fx has it",
        ),
    ],
)
def test_a_row_that_is_not_true_is_seen(
    row: Row, found: Item | None, complaint: str
) -> None:
    assert list(row_problems(row, found)) == [complaint]


def test_a_name_that_is_imported_and_lacking_is_seen() -> None:
    home = Row("fx.node", "", "module", None, "same")
    rows = {("fx.node", ""): home}
    names = {"torch.fx.node": {"Node", "map_aggregate", "nowhere"}}
    found = [*passed_on_problems(rows, names.__getitem__)]
    assert found[0].startswith("fx.node.nowhere: torch.fx's file imports it")
    assert len(found) == 1 + len(NOT_PASSED_ON)
    assert "there is no such name" in found[1]
    assert "TreeSpec" in passed_on("torch.fx._pytree")


def test_each_module_is_own_lent_or_out_and_imports() -> None:
    """Own and lent ones are what their rows say; what is out is refused."""
    rows = load(FILE.read_text(encoding="utf-8"))
    kinds = {"same": False, "differs": False, "lent": True, "out": None}
    for (module, key), row in rows.items():
        if not key and f"torch.{module}" in torch_modules():
            found = look_up(module, "")
            assert (found and found.lent) == kinds[row.status], module


@pytest.mark.newest
def test_a_name_without_a_row_and_a_row_without_a_name_are_seen() -> None:
    rows = load(FILE.read_text(encoding="utf-8"))
    lost = rows.pop(("fx.graph", "Graph.lint"))
    made_up = Row("fx.graph", "Graph.lent", "function", "(self)", "same")
    rows["fx.graph", "Graph.lent"] = made_up
    changed = Row("fx.node", "map_arg", "function", "(a)", "same")
    rows["fx.node", "map_arg"] = changed
    assert list(surface_problems(rows, torch_surface(rows))) == [
        "fx.graph.Graph.lint: torch.fx has it, the file has not",
        "fx.node.map_arg: is a function (a, fn) in torch.fx",
        "fx.graph.Graph.lent: torch.fx has it not",
    ]
    again = updated(rows)
    assert again["fx.graph", "Graph.lint"] == lost
    assert ("fx.graph", "Graph.lent") not in again


# --- looking at objects ----------------------------------------------------


class _Hidden:
    def inherited(self) -> None: ...


class Sample(_Hidden):
    """A class with one member of each kind."""

    annotated: int
    constant = 3

    def __init__(self, a: int, *, b: str = "x") -> None:
        self.set = a
        self._private = b

        class Inner:
            nested: int

            def __init__(self) -> None:
                self.not_ours = 1

    @property
    def computed(self) -> int:
        return 1

    @staticmethod
    def static(a: int) -> None: ...

    @classmethod
    def made(cls) -> None: ...

    def _hidden(self) -> None: ...


def test_members_of_a_class() -> None:
    data = Item("data")
    assert members(Sample, __name__) == {
        "inherited": Item("function", "(self)"),
        "annotated": data,
        "constant": data,
        "__init__": Item("function", "(self, a, *, b='x')"),
        "set": data,
        "computed": data,
        "static": Item("function", "(a)"),
        "made": Item("function", "(cls)"),
    }


def test_defaults_are_compared_by_what_they_print() -> None:
    def f(a: int, /, b: object = torch.fx.Node, *c: int) -> None: ...

    assert parameters(f) == "(a, /, b=<class 'fx.node.Node'>, *c)"
    assert parameters(torch.fx.Graph.placeholder) == (
        "(self, name, type_expr=None, default_value=Ellipsis)"
    )
    assert parameters(lambda m=torch, n=len: None) == (
        "(m=torch, n=<built-in function len>)"
    )
    assert describe(len).kind == "function"
    assert describe(torch).kind == "module"


def test_public_names_of_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """
        import logging
        from os import path
        from typing import TypeVar
        __all__ = ["listed"]
        log = logging.getLogger()
        T = TypeVar("T")
        x: int = 1
        _y = 2
        def f(): ...
        class C: ...
        """
    (tmp_path / "made_up.py").write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("made_up")
    assert public_names(module) == {"C", "f", "listed", "x"}
