"""What a failed check shows: pictures that fit, and each mistake once."""

from __future__ import annotations

import pytest

from fx.graph import Graph
from stages.checking import Mistake, linear, side_by_side
from tests.course.learner import Learner


def test_two_columns_where_they_fit() -> None:
    assert side_by_side(["a", "b", "c"], ["a", "x"]).splitlines() == [
        "  yours    expected",
        "  a        a",
        "→ b        x",
        "  c        (nothing)",
        "→ the first difference",
    ]


def test_no_picture_is_wider_than_a_terminal() -> None:
    graph = ["graph():", f"    %x : {'a long line ' * 9}", "    return x"]
    other = [graph[0], graph[1] + "too", graph[2]]
    picture = side_by_side(graph, other).splitlines()
    assert max(map(len, picture)) <= 76
    assert [line.split(":")[0] for line in picture if "%x" in line] == [
        "→ yours",
        "  expected",
    ]
    assert picture.count("  graph():") == 1, "equal lines are shown once"
    assert "    return x" in picture[-2]


def test_work_is_counted_and_not_timed() -> None:
    def build(size: int) -> None:
        graph = Graph()
        for _ in range(size):
            graph.placeholder("x")

    linear(build, "too much")
    with pytest.raises(Mistake, match="too much") as caught:
        linear(lambda size: build(size * size // 8), "too much")
    assert "15 times as many" in caught.value.picture


def test_a_failure_inside_another_exercise_is_not_told_again(
    learner: Learner,
) -> None:
    learner.write_all()
    learner.write(
        "Interpreter._run_nodes",
        """if last.get(used) is node:
                            del env[used]""",
        "env.pop(used, None)",
    )
    result = learner.check(6)
    assert result.status == 1
    wrong = [name for name, sign in result.verdicts.items() if sign == "✗"]
    assert wrong == ["interpreter.Interpreter._run_nodes", "loop"]
    assert result.verdicts["interpreter.Transformer.transform"] == "~"
    assert "(~ failed inside loop)" in result.output
    assert result.output.count("was dropped from env") == 1
    assert len(result.output.splitlines()) < 40
    assert max(map(len, result.output.splitlines())) < 250


def test_an_error_of_another_kind_is_told_with_its_lines(
    learner: Learner,
) -> None:
    learner.write_all()
    learner.write(
        "Interpreter.fetch_attr",
        "        except AttributeError:\n",
        "        except KeyError:\n",
    )
    result = learner.check(6)
    (told,) = [
        text
        for test, text in result.failed.items()
        if test.endswith("[layers.7.weight-layers.7]")
    ]
    sentence, yours, expected, place, line, *_ = told.splitlines()
    assert "`layers.7.weight` breaks off at `layers.7`" in sentence
    assert yours.strip().startswith("yours:    AttributeError: ")
    assert expected.strip() == "expected: RuntimeError: … layers.7 …"
    assert place.endswith(", in fetch_attr")
    assert line.strip() == "return attrgetter(target)(self.module)"
