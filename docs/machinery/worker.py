"""The process that runs examples: torch is imported once, each run forked.

    python -m docs.machinery.worker

A request is a line of JSON, `{"target": "stages.01.demo", "call": "main"}`;
the answer is a line of JSON, `{"ok": true, "output": "…"}`.  A run sees
nothing of another run: each is a child of its own.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType

import torch

import fx  # here, so that no run has to
from docs.machinery.film import Film

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Answer requests until the input ends."""
    assert fx.__all__
    torch.set_num_threads(1)
    for line in sys.stdin:
        request = json.loads(line)
        answer = forked(request["target"], request["call"])
        print(json.dumps(answer), flush=True)


def forked(target: str, call: str) -> dict[str, object]:
    """Run in a child process."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        answer = json.dumps(run(target, call)).encode()
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(answer)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    if not text:
        return {"ok": False, "output": f"{target} ended its process"}
    found: dict[str, object] = json.loads(text)
    return found


def run(target: str, call: str) -> dict[str, object]:
    """Import a file by its dotted path and call a function of it.

    Returns:
        What it printed; or the film that it returned.
    """
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            returned = getattr(load(target), call)()
    except BaseException:
        return {"ok": False, "output": traceback.format_exc()}
    text = returned.json() if isinstance(returned, Film) else ""
    text = text or printed.getvalue()
    return {"ok": True, "output": text}


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
