"""Every file of fx/ keeps the house rules, and each check can fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest

from tests.checks import house_rules
from tests.checks.house_rules import (
    file_problems,
    function_problems,
    ignore_problems,
    side_effect_problems,
)
from tests.checks.sources import Source, library, snippet
from tests.process import printed

Check: TypeAlias = Callable[[Source], Iterator[str]]


def function_of(lines: int, name: str = "f") -> str:
    """A function of this many lines, and a docstring, which does not count."""
    body = '    """One.\n\n    Two.\n    """\n' + "    x = 1\n" * (lines - 1)
    return f"def {name}() -> None:\n{body}"


@pytest.mark.parametrize(
    "check",
    [
        file_problems,
        function_problems,
        ignore_problems,
        side_effect_problems,
    ],
)
def test_every_file_keeps_the_rule(check: Check) -> None:
    problems = [line for source in library() for line in check(source)]
    assert not problems, "\n".join(problems)


# --- sizes -----------------------------------------------------------------


def test_a_long_function_is_seen() -> None:
    source = snippet(function_of(60, "ok") + function_of(61, "long"))
    (problem,) = function_problems(source)
    assert problem == "fx/sample.py:65 long: 61 lines (max 60)"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x = 1\n" * 451, "fx/sample.py: 451 lines of code (max 450)"),
        ("# x\n" * 901, "fx/sample.py: 901 lines (max 900)"),
    ],
)
def test_long_files_are_seen(text: str, complaint: str) -> None:
    assert list(file_problems(snippet(text))) == [complaint]
    assert not list(file_problems(snippet("# x\nx = 1\n" * 450)))


# --- types -----------------------------------------------------------------


def test_silenced_type_errors_are_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Written apart, so that the type checkers do not read them here.
    coded = "# type" + ": ignore[misc]"
    text = f"y = 2  {coded}\nz = 3  {coded}  # why\n"
    source = snippet(f"{text}s = 'no {coded}'\n")
    assert list(ignore_problems(source)) == [
        f"fx/sample.py:1: `{coded[2:]}` gives no reason",
        "fx/sample.py: 2 ignores, not 0",
    ]
    monkeypatch.setitem(house_rules.TYPE_IGNORES, "fx/sample.py", 1)
    assert list(ignore_problems(snippet(f"z = 3  {coded}  # why"))) == []
    assert list(ignore_problems(snippet("z = 3"))) == [
        "fx/sample.py: 0 ignores, not 1"
    ]


# --- importing -------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "register(f)",
        "Graph._make_codegen = CodeGen",
        "del torch.table",
        "torch.x += 1",
        "class C:\n    register(1)",
        "if X:\n    torch.table['x'] = 1",
        "shared = torch.table\nshared.update(x=1)",
    ],
)
def test_an_effect_at_import_is_seen(text: str) -> None:
    (problem,) = side_effect_problems(snippet(text))
    assert ": at import: " in problem


def test_building_constants_is_no_effect() -> None:
    source = snippet(
        '"""A file."""\nTABLE: dict[str, int] = {}\n'
        "for name in LEGAL:\n    TABLE[name] = len(name)\n"
        "TABLE.update(c=1)\n"
        "if __name__ == '__main__':\n    sys.exit(main())\n"
    )
    assert list(side_effect_problems(source)) == []
    line = "Graph._make_codegen = staticmethod(default_codegen)"
    home = snippet(line, "fx/codegen/nested.py")
    assert not list(side_effect_problems(home))


WATCH = """
import builtins, logging, math, operator, os, sys, warnings
import numpy, torch, torch.fx, torch.utils._pytree as pytree
import torch.nn.functional as F

def watched():
    spaces = {
        "builtins": vars(builtins), "math": vars(math), "F": vars(F),
        "operator": vars(operator), "torch": vars(torch),
        "torch.fx": vars(torch.fx), "torch.fx.Graph": vars(torch.fx.Graph),
        "Module": vars(torch.nn.Module), "Tensor": vars(torch.Tensor),
        "environ": os.environ, "pytree": pytree.SUPPORTED_NODES,
    }
    seen = {f"{n}.{k}": id(v) for n, s in spaces.items() for k, v in s.items()}
    seen = {k: v for k, v in seen.items() if "environ" not in k}
    seen |= {f"environ.{k}": v for k, v in os.environ.items()}
    seen["filters"] = list(warnings.filters)
    seen["handlers"] = list(logging.getLogger().handlers)
    seen["path"] = list(sys.path)
    seen["finders"] = list(sys.meta_path)
    seen["hooks"] = (sys.excepthook, sys.displayhook, sys.gettrace())
    seen["dtype"] = torch.get_default_dtype()
    seen["seed"] = torch.initial_seed()
    return seen

before = watched()
exec(sys.argv[1])
after = watched()
for name in sorted(before.keys() | after.keys()):
    if before.get(name) != after.get(name):
        print(name)
"""
"""Prints what a statement changes in Python and torch."""


def changed_by(statement: str) -> list[str]:
    """What the statement changes, run in a fresh interpreter."""
    return printed("-c", WATCH, statement).splitlines()


def test_importing_fx_changes_nothing_elsewhere() -> None:
    """But for its own pytrees, and the finder of what torch lends to it."""
    changes = changed_by("import fx")
    own = [name for name in changes if name.startswith("pytree.<class 'fx.")]
    assert changes == ["finders", *own]


MODULES = 80
"""The most that `import fx` may load, when torch is loaded: each takes time."""


def test_importing_fx_loads_few_modules() -> None:
    loaded = printed(
        "-c",
        "import sys, torch\nbefore = set(sys.modules)\nimport fx\n"
        "print(*sorted(set(sys.modules) - before))",
    ).split()
    assert len(loaded) <= MODULES, (
        "import what is no stage's core when it is first used (Later, in "
        f"fx/compat/first_use.py): {loaded}"
    )


def test_a_change_made_by_importing_is_seen() -> None:
    assert changed_by(
        "torch.relu = 1; torch.nn.Module.__call__ = 2; math.new = 3; "
        "warnings.simplefilter('ignore'); os.environ['NEW'] = '1'; "
        "sys.path.insert(0, 'x'); torch.manual_seed(3)"
    ) == [
        "Module.__call__",
        "environ.NEW",
        "filters",
        "math.new",
        "path",
        "seed",
        "torch.relu",
    ]
