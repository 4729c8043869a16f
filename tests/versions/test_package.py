"""What is wrong with an sdist or a wheel is seen."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.versions.package import PackageError, problems, readme_program
from tests.versions.uv import ROOT

FILES = ["README.md", "exercises/fx/a.py", "fx/a.py", "fx/py.typed"]


def packed(folder: Path, sdist: list[str], wheel: list[str]) -> list[str]:
    """The problems of two packages with these files."""
    with tarfile.open(folder / "x.tar.gz", "w:gz") as tar:
        for name in (*sdist, "PKG-INFO"):
            tar.addfile(tarfile.TarInfo(f"x-1/{name}"), io.BytesIO())
    with zipfile.ZipFile(folder / "x.whl", "w") as archive:
        for name in (*wheel, "x-1.dist-info/METADATA"):
            archive.writestr(name, "")
    return problems(folder / "x.tar.gz", folder / "x.whl", FILES)


def test_the_sdist_has_every_file_and_the_wheel_those_of_fx(
    tmp_path: Path,
) -> None:
    assert packed(tmp_path, FILES, ["fx/a.py", "fx/py.typed"]) == []
    wheel = ["fx/a.py", "exercises/fx/a.py"]
    assert packed(tmp_path, FILES[1:], wheel) == [
        "the sdist lacks README.md",
        "the wheel lacks fx/py.typed",
        "the wheel has exercises/fx/a.py",
    ]


def test_the_program_of_the_readme_is_found() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    compile(readme_program(text), "README.md", "exec")
    assert readme_program("a\n```python\nx = 1\n```\n") == "x = 1\n"
    with pytest.raises(PackageError, match="has 0 programs"):
        readme_program("```sh\nls\n```\n")
