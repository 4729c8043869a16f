"""The process that runs examples: torch is imported once, each run forked.

    python -m docs.machinery.worker

A request is a line of JSON: for a film it is
`{"target": "docs.examples.steps_01", "call": "film"}`;
for an example its text, and the files to put beside it, as
`docs.machinery.running.printed` writes it.  The answer is a line of JSON,
`{"ok": true, "output": "…"}`.  A run sees nothing of another run: each is a
child of its own.  An example runs in an empty folder, where nothing of this
project can be imported but fx.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import runpy
import shutil
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import torch

import fx  # here, so that no run has to
from fx.show.document import Page
from tests.process import fork

ROOT = Path(__file__).resolve().parents[2]
COURSE = ("docs", "stages", "tests")
"""What no example may import."""

Request: TypeAlias = dict[str, Any]
"""What is asked, as JSON gave it."""


def main() -> None:
    """Answer requests until the input ends."""
    assert fx.__all__
    torch.set_num_threads(1)
    for line in sys.stdin:
        print(json.dumps(forked(json.loads(line))), flush=True)


def forked(request: Request) -> dict[str, object]:
    """Run in a child process."""
    reader, writer = os.pipe()
    child = fork()
    if not child:
        os.close(reader)
        answer = json.dumps(run(request)).encode()
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(answer)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    if not text:
        return {"ok": False, "output": "the example ended its process"}
    found: dict[str, object] = json.loads(text)
    return found


def run(request: Request) -> dict[str, object]:
    """What an example prints, or the film that a file gives."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if "text" in request:
                example(request)
            else:
                made = getattr(load(request["target"]), request["call"])()
                page = isinstance(made, Page)
                said.truncate(said.seek(0))  # a page may also print
                said.write(made.html if page else made.json())
    except BaseException:
        return {"ok": False, "output": traceback.format_exc()}
    return {"ok": True, "output": said.getvalue()}


def example(request: Request) -> None:
    """Run an example as its reader would: from a file, without the course."""
    with tempfile.TemporaryDirectory() as folder:
        for name, file in request["beside"].items():
            shutil.copy(file, Path(folder, f"{name}.py"))
        path = Path(folder, request["name"])
        path.write_text(request["text"], encoding="utf-8")
        os.chdir(folder)
        sys.path.insert(0, folder)
        for name in [*sys.modules, *COURSE]:
            if name.partition(".")[0] in COURSE:  # not to be imported
                sys.modules[name] = None  # type: ignore[assignment]
        try:
            runpy.run_path(path.name, run_name="__main__")
        finally:
            os.chdir(ROOT)


def load(target: str) -> ModuleType:
    """A module from its file: `stages.01.demo` is stages/01/demo.py."""
    path = ROOT.joinpath(*target.split(".")).with_suffix(".py")
    spec = importlib.util.spec_from_file_location(target, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"no file {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[target] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
