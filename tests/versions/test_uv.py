"""What is asked of uv and of the machine, with a uv that only answers."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.versions import pythons, uv
from tests.versions.newest import HeldBack, chosen, compared
from tests.versions.pythons import Python, asked, newest

FAKE = """#!/bin/sh
cat > {folder}/stdin
env | grep ^UV_ | sort > {folder}/env
echo "$@" > {folder}/args
head -1 {folder}/answers
sed -i 1d {folder}/answers
test -s {folder}/errors && cat {folder}/errors >&2 && exit 1
exit 0
"""


def program(path: Path, text: str) -> Path:
    """A script that can be started."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which a uv finds what to say, and leaves what it heard."""
    program(tmp_path / "bin" / "uv", FAKE.format(folder=tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    for name in ("answers", "errors"):
        (tmp_path / name).write_text("")
    return tmp_path


# --- the index -------------------------------------------------------------


def test_the_list_is_asked_for_without_what_holds_versions_back(
    answers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("UV_CONSTRAINT", "UV_EXCLUDE_NEWER", "UV_OFFLINE"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://example.com/simple")
    (answers / "answers").write_text("torch==2.15.0\n")
    assert uv.listed("torch>=2.9") == "2.15.0"
    heard = (answers / "env").read_text().split()
    assert {line.partition("=")[0] for line in heard} & {
        *("UV_CONSTRAINT", "UV_EXCLUDE_NEWER", "UV_OFFLINE"),
        *("UV_DEFAULT_INDEX", "UV_SYSTEM_CERTS"),
    } == {"UV_DEFAULT_INDEX", "UV_SYSTEM_CERTS"}
    assert (answers / "stdin").read_text() == "torch>=2.9"
    for option in ("--no-config", "--refresh-package torch", "--no-deps"):
        assert option in (answers / "args").read_text()


def test_the_settings_count_when_something_is_installed(
    answers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_CONSTRAINT", "held.txt")
    uv.install(answers / "env", "torch", UV_CACHE_DIR="here")
    heard = (answers / "env").read_text()
    assert "UV_CONSTRAINT=held.txt" in heard
    assert "UV_CACHE_DIR=here" in heard


def test_each_minor_version_gives_its_newest_patch(answers: Path) -> None:
    (answers / "answers").write_text("torch==2.11.0\ntorch==2.10.1\n")
    versions = uv.newest_patches("2.9")
    assert [next(versions), next(versions)] == ["2.11.0", "2.10.1"]
    assert (answers / "stdin").read_text() == "torch>=2.9,<2.11"
    (answers / "errors").write_text("  x No solution found when resolving")
    assert list(versions) == []
    assert (answers / "stdin").read_text() == "torch>=2.9,<2.10"


def test_an_error_of_uv_is_not_the_end_of_the_list(answers: Path) -> None:
    (answers / "errors").write_text("error: Request failed after 3 retries")
    with pytest.raises(uv.UvError, match="Request failed"):
        uv.listed()


def test_versions_are_compared_as_numbers() -> None:
    assert uv.minor("2.15.0+cpu") == "2.15"
    assert uv.release("2.10.0") > uv.release("2.9.1+cu128") == (2, 9, 1)


# --- the newest ------------------------------------------------------------


@pytest.mark.parametrize("got", ["2.15.0", "2.15.0+cpu", "2.15.1"])
def test_the_newest_is_taken(got: str) -> None:
    compared(got, "2.15.0", "3.12.1")


def test_an_older_torch_than_the_newest_is_an_error() -> None:
    with pytest.raises(HeldBack, match=r"lists torch 2\.15\.0.* got 2\.9\.1"):
        compared("2.9.1", "2.15.0", "3.12.1")


# --- Pythons ---------------------------------------------------------------


def test_a_python_that_does_not_start_is_no_python(tmp_path: Path) -> None:
    shim = program(tmp_path / "python3.12", "#!/bin/sh\nexit 127\n")
    assert asked(str(shim)) is None
    assert asked(str(tmp_path / "python3.13")) is None
    assert asked(str(tmp_path)) is None
    with pytest.raises(LookupError, match="does not start"):
        chosen(str(shim))


def test_those_named_are_preferred(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = []
    for number, words in enumerate(("3 12 1", "3 12 9", "3 10 1", "3 12 3")):
        text = f"#!/bin/sh\necho {words} /python/{number}\n"
        paths.append(str(program(tmp_path / str(number), text)))
    monkeypatch.setattr(pythons, "candidates", lambda: paths[:3])
    assert pythons.found() == {"3.12": Python((3, 12, 9), "/python/1")}
    assert pythons.found(paths[3:])["3.12"].path == "/python/3"


def test_a_first_release_is_only_taken_if_there_is_no_other() -> None:
    old, new, first = (
        Python(version, "") for version in ((3, 11, 7), (3, 12, 1), (3, 13, 0))
    )
    assert newest([new, first, old]) == new
    assert newest([first]) == first
    with pytest.raises(LookupError, match="no Python from"):
        newest([])


def test_the_pythons_are_those_of_the_classifiers() -> None:
    text = (uv.ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for minor in pythons.MINORS:
        assert json.dumps(f"Programming Language :: Python :: {minor}") in text
    assert f'requires-python = ">={pythons.MINORS[0]}"' in text
