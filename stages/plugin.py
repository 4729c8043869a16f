"""Makes `pytest stages/04` a check of the course, and nothing else another.

Every run of pytest in this project loads it (`-p stages.plugin`).  It imports
the course's own plugin, with all that this needs, only if the command line
names a stage or a capstone.

PYTEST_DONT_REWRITE: pytest must not rewrite the asserts of this file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

HERE: Final = Path(__file__).resolve().parent
COURSE: Final = "stages.course"


@pytest.hookimpl
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Import the plugin of the course if the command line names a stage."""
    folder = early_config.invocation_params.dir
    named = early_config.known_args_namespace.file_or_dir or ["."]
    paths = [(folder / name.partition("::")[0]).resolve() for name in named]
    if any(_is_in_stages(path) for path in paths):
        early_config.pluginmanager.import_plugin(COURSE)


def _is_in_stages(path: Path) -> bool:
    """Whether a path is in the folder of stages of this or another clone."""
    return any(
        one.name == "stages" and (one / "plugin.py").is_file()
        for one in (path, *path.parents)
    )


@pytest.hookimpl
def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known that the tests of stages have."""
    config.addinivalue_line(
        "markers", "exercise(*names): the exercises that a test checks"
    )


@pytest.hookimpl
def pytest_ignore_collect(
    collection_path: Path, config: pytest.Config
) -> bool | None:
    """Leave the stages to those who name them."""
    is_named = config.pluginmanager.hasplugin(COURSE)
    return True if collection_path == HERE and not is_named else None
