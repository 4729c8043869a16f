"""Films: what is different between two shots is found, and every film plays."""

from __future__ import annotations

import importlib
import json
import operator
from pathlib import Path

import pytest

from docs.machinery import stepper
from docs.machinery.film import (
    MOST_ROWS,
    Arc,
    Choices,
    Film,
    Row,
    Shot,
    Spot,
    code_of,
    compared,
    frame_spot,
)
from docs.machinery.source import ROOT
from fx.graph import Graph

FILMS = sorted(f.stem for f in (ROOT / "docs/examples").glob("steps_*.py"))


def shot(*names: str, code: str = "") -> Shot:
    film = Film()
    film.shot("Say.", [Row(name, name) for name in names], code=code)
    return film.shots[0]


def marks(before: Shot, now: Shot) -> dict[str, str]:
    return {row.name: row.mark for row in compared(before, now).rows}


def test_new_and_gone_rows_are_marked_and_gone_ones_keep_their_place() -> None:
    found = marks(shot("a", "b", "c"), shot("a", "c", "d"))
    assert found == {"a": "", "b": "gone", "c": "", "d": "new"}
    assert list(found) == ["a", "b", "c", "d"]


def test_the_first_row_can_be_gone() -> None:
    assert list(marks(shot("a", "b"), shot("b"))) == ["a", "b"]


def test_a_moved_row_is_marked_and_the_others_are_not() -> None:
    found = marks(shot("a", "b", "c", "d"), shot("d", "a", "b", "c"))
    assert found == {"d": "moved", "a": "", "b": "", "c": ""}


def test_another_text_or_note_is_a_change() -> None:
    before = Shot("Say.", (Row("a", "1"), Row("b", "1"), Row("c", "1")))
    now = Shot("Say.", (Row("a", "2"), Row("b", "1", "n"), Row("c", "1")))
    assert marks(before, now) == {"a": "changed", "b": "changed", "c": ""}


def test_new_arcs_and_new_lines_are_marked() -> None:
    before = Shot("Say.", (Row("a", ""), Row("b", "")), (Arc("a", "b"),))
    now = Shot("Say.", before.rows, (Arc("a", "b"), Arc("b", "a")))
    assert [arc.mark for arc in compared(before, now).arcs] == ["", "new"]
    lines = compared(shot(code="a\nc"), shot(code="a\nb\nc")).code
    assert [line.mark for line in lines] == ["", "new", ""]


def test_a_graph_is_shown_with_its_uses() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(operator.add, (x, 1)))
    film = Film()
    film.graph("Say.", graph, look=["add"], notes={"x": "here"})
    (taken,) = film.shots
    assert [row.text for row in taken.rows] == [
        "placeholder",
        "call_function add(x, 1)",
        "output add",
    ]
    assert taken.rows[0].note == "here"
    assert taken.rows[1].mark == "look"
    assert taken.arcs == (Arc("x", "add"), Arc("add", "output"))


def test_too_much_for_a_picture_is_refused() -> None:
    with pytest.raises(ValueError, match="at most"):
        Film().shot("Say.", [Row(str(n), "") for n in range(MOST_ROWS + 1)])


def test_a_place_is_named_by_a_text_that_stands_once() -> None:
    film = Film("stages.residual.Residual.forward")
    film.shot("Say.", [], at="self.linear(x)")
    spot = film.shots[0].spot
    assert spot is not None
    lines = (ROOT / "stages/residual.py").read_text().splitlines()
    line = lines[spot.line - 1]
    assert line[spot.column : spot.end_column] == "self.linear(x)"
    for text in ("self.linear(y)", "torch"):
        with pytest.raises(ValueError, match="must stand once"):
            film.shot("Say.", [], at=text)


def test_the_running_expression_is_found_to_the_column() -> None:
    found: list[Spot | None] = []

    def note(value: int) -> int:
        found.append(frame_spot(code_of(program)))
        return value

    def program() -> int:
        return 1 + note(2 * 3)

    program()
    (spot,) = found
    assert spot is not None
    line = Path(__file__).read_text().splitlines()[spot.line - 1]
    assert line[spot.column : spot.end_column] == "note(2 * 3)"
    assert frame_spot(code_of(note)) is None


def test_there_is_a_film_for_each_stage() -> None:
    assert {f"steps_{n:02}" for n in range(1, 9)} | {"steps_home"} == {*FILMS}


@pytest.mark.parametrize("name", FILMS)
def test_every_film_plays(name: str) -> None:
    film: Film = importlib.import_module(f"docs.examples.{name}").film()
    shots = film.marked()
    assert len(shots) >= 5
    assert all(taken.say.endswith((".", ":")) for taken in shots)
    assert any(row.mark for taken in shots for row in taken.rows)


CHOICES = sorted(f.stem for f in (ROOT / "docs/examples").glob("choose_*.py"))


@pytest.mark.parametrize("name", CHOICES)
def test_every_choice_has_answers_that_differ(name: str) -> None:
    asked = importlib.import_module(f"docs.examples.{name}").choices()
    data = json.loads(asked.json())
    assert len(data["labels"]) == len(data["shots"]) >= 4
    said = [taken["say"] for taken in data["shots"]]
    assert len(set(said)) == len(said)
    assert all(taken["rows"] for taken in data["shots"])


def test_an_answer_is_compared_with_what_was_before() -> None:
    asked = Choices("Which?")
    film = asked.option("b")
    film.shot("Before.", [Row("a", "a")])
    film.shot("After.", [Row("a", "a"), Row("b", "b")])
    with pytest.raises(ValueError, match="two answers are labelled 'b'"):
        asked.option("b")
    (taken,) = json.loads(asked.json())["shots"]
    assert [row["mark"] for row in taken["rows"]] == ["", "new"]


def answers(name: str) -> dict[str, str]:
    asked = importlib.import_module(f"docs.examples.{name}").choices()
    data = json.loads(asked.json())
    said = (taken["say"] for taken in data["shots"])
    return dict(zip(data["labels"], said, strict=True))


def test_the_choices_show_what_fx_says() -> None:
    edits = answers("choose_02")
    assert "Tried to erase Node relu" in edits["erase relu"]
    assert "was used before it" in edits["move relu before add"]
    anchors = answers("choose_07")
    assert anchors["relu"].startswith("A match of add and relu")
    assert "users outside of the match" in anchors["relu_1"]
    rules = answers("choose_08").values()
    for rule in ("1a", "1b", "1c", "2"):
        assert any(f"by rule {rule}" in say for say in rules)
    assert any("select_scatter" in say for say in rules)


def test_the_home_page_shows_a_module_its_graph_and_its_code() -> None:
    film = importlib.import_module("docs.examples.steps_home").film()
    assert [row.name for row in film.shots[0].rows] == ["x"]
    shot = film.shots[2]
    assert shot.spot is not None
    assert [row.name for row in shot.rows] == ["x", "linear", "add"]
    assert [line.text.strip() for line in shot.code][1:] == [
        "linear = self.linear(x)",
        "add = linear + x;  linear = x = None",
    ]
    assert "torch.tanh(add)" in film.shots[-1].code[3].text


def test_a_film_does_not_show_the_docstring_of_its_source() -> None:
    html = stepper._source("stages.residual.Residual.forward", None)
    assert "def forward" in html
    assert "return torch.relu(y + x)" in html
    assert "relu(linear(x) + x)." not in html
    assert "Args:" not in html
