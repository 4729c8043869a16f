"""A user's program type-checks if it is right, and only then."""

import importlib.util
import io
import re
import tokenize
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fx.extra.lending.lending import SHARED

from . import client
from .checkers import Problem, mypy, pyright, untyped

HERE = Path(__file__).resolve().parent

PYRIGHT_RULES = {
    "arg-type": "reportArgumentType",
    "assignment": "reportAttributeAccessIssue",
    "attr-defined": "reportAttributeAccessIssue",
    "call-overload": "reportCallIssue",
    "comparison-overlap": None,  # reported in its strict mode alone
    "index": "reportIndexIssue",
    "misc": "reportAttributeAccessIssue",
    "operator": "reportOperatorIssue",
    "override": "reportIncompatibleMethodOverride",
}
"""What mypy calls a wrong use -> what pyright does, None if it is silent."""

MISMARKED = """
import fx

def f(n: fx.Node) -> None:
    n.append("y")
    n.append(n)  # wrong: arg-type
"""
"""A wrong use without a mark, and below it a mark without a wrong use."""


class Report(NamedTuple):
    """What one checker says about each of our files, by the file's name."""

    checker: str
    problems: dict[str, list[Problem]]

    def errors(self, name: str) -> dict[int, str]:
        """The lines with errors: the code of each line's first."""
        found: dict[int, str] = {}
        for problem in self.problems[name]:
            if problem.is_error:
                found.setdefault(problem.line, problem.code)
        return found

    def marked(self, text: str) -> dict[int, str]:
        """The errors that the marks in a text promise."""
        marks = re.compile("# wrong: (.*)$")
        promised: dict[int, str] = {}
        for number, line in enumerate(text.splitlines(), start=1):
            if mark := marks.search(line):
                mypy_code = mark[1]
                rule = PYRIGHT_RULES[mypy_code]
                code = mypy_code if self.checker == "mypy" else rule
                if code is not None:
                    promised[number] = code
        return promised


# --- what is checked -------------------------------------------------------


def read(name: str) -> str:
    """The text of a file beside this one."""
    return (HERE / name).read_text(encoding="utf-8")


def torch_client() -> str:
    """The client as it would be written for torch.fx."""
    text, imports = re.subn(
        "^import fx$", "import torch.fx as fx", read("client.py"), flags=re.M
    )
    text, getters = re.subn(r"\.input_at\((\d+)\)", r".args[\1]", text)
    assert (imports, getters > 0) == (1, True)
    return text


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The files to be checked, by name."""
    folder = tmp_path_factory.mktemp("typing")
    texts = {"torch_client.py": torch_client(), "mismarked.py": MISMARKED}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    places = {name: folder / name for name in texts}
    ours = ("client.py", "wrong_uses.py")
    return places | {name: HERE / name for name in ours}


@pytest.fixture(scope="module", params=[mypy, pyright], ids=["mypy", "pyright"])
def report(request: pytest.FixtureRequest, files: dict[str, Path]) -> Report:
    """All that a checker says, from one run."""
    check: Callable[[Iterable[Path]], list[Problem]] = request.param
    problems = check(files.values())
    by_name = {
        name: [problem for problem in problems if problem.file == name]
        for name in files
    }
    return Report(check.__name__, by_name)


# --- a right program -------------------------------------------------------


def test_the_client_works() -> None:
    lines, called, difference = client.main()
    assert lines == [
        "take x",
        "clip is computed, for 1",
        "gate is self.gate",
        "neg is gate.neg",
        "exp is computed, for 1",
        "add_1 is computed, for 1",
        "log is computed, for 1",
        "gt is computed, for 1",
        "abs_1 is computed, for 1",
        "where is computed, for 1",
        "scale is self.scale",
        "add is computed, for 1",
        "return add",
    ]
    assert called == {"Gate": 1}
    assert difference < 1e-6


def test_the_client_does_the_same_on_torch_fx(files: dict[str, Path]) -> None:
    path = files["torch_client.py"]
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.fx.__name__ == "torch.fx"
    assert module.main() == client.main()


def test_the_client_is_accepted(report: Report) -> None:
    problems = "\n".join(map(str, report.problems["client.py"]))
    assert problems == ""


def ways_out(text: str) -> set[str]:
    """The words in a program that make a checker look away."""
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    comments = [t.string for t in tokens if t.type == tokenize.COMMENT]
    names = {t.string for t in tokens if t.type == tokenize.NAME}
    looks_away = re.compile(r"#.*(type:|ignore|mypy:|pyright:)")
    return names & {"Any", "cast", "no_type_check"} | {
        comment for comment in comments if looks_away.match(comment)
    }


def test_the_client_has_no_way_out() -> None:
    assert ways_out(read("client.py")) == set()
    assert ways_out("x = cast(Any, y)") == {"cast", "Any"}
    assert ways_out("f()  # type: ignore[x]") == {"# type: ignore[x]"}
    assert ways_out("# pyright: basic\nx = 1\n") == {"# pyright: basic"}


def test_torch_fx_does_not_accept_it(
    report: Report, capsys: pytest.CaptureFixture[str]
) -> None:
    errors = [p for p in report.problems["torch_client.py"] if p.is_error]
    lines = {problem.line for problem in errors}
    codes = Counter(problem.code for problem in errors)
    with capsys.disabled():
        print(
            f"\nclient.py on torch.fx, {report.checker}: {len(errors)} errors "
            f"on {len(lines)} lines; on fx: {len(report.errors('client.py'))}"
        )
    assert len(errors) >= 10, codes
    assert len(lines) >= 5, codes


# --- wrong programs --------------------------------------------------------


def test_wrong_uses_are_errors_and_nothing_else_is(report: Report) -> None:
    marked = report.marked(read("wrong_uses.py"))
    assert len(marked) > 30
    assert report.errors("wrong_uses.py") == marked


def test_a_wrong_mark_is_seen(report: Report) -> None:
    (line,) = report.errors("mismarked.py")
    (mark,) = report.marked(MISMARKED)
    assert (line, mark) == (5, 6)


# --- the library's own interface -------------------------------------------


def test_all_that_is_public_has_a_type() -> None:
    """But what torch lends, of its own modules, has the types that it has."""
    share, names = untyped("fx")
    lent = tuple(f"{name}." for name in SHARED)
    ours = [name for name in names if not name.startswith(lent)]
    assert not ours, "\n".join(ours)
    assert share > 0.98


def test_a_missing_type_is_seen(tmp_path: Path) -> None:
    package = tmp_path / "half"
    package.mkdir()
    (package / "py.typed").touch()
    text = "def typed() -> int: ...\ndef bare(x): ...\n"
    (package / "__init__.py").write_text(text, encoding="utf-8")
    share, names = untyped("half", tmp_path)
    assert share == 0.5
    assert {name.partition(":")[0] for name in names} == {"half.bare"}
