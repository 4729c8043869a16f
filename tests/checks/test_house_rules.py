"""Every file of fx/ keeps the house rules, and each check can fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest

from tests.checks import house_rules
from tests.checks.house_rules import (
    any_problems,
    docstring_problems,
    file_problems,
    function_problems,
    hidden_problems,
    ignore_problems,
    lengths,
    side_effect_problems,
    stale_registrations,
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
        any_problems,
        docstring_problems,
        file_problems,
        hidden_problems,
        ignore_problems,
        side_effect_problems,
    ],
)
def test_every_file_keeps_the_rule(check: Check) -> None:
    problems = [line for source in library() for line in check(source)]
    assert not problems, "\n".join(problems)


# --- sizes -----------------------------------------------------------------


def test_functions_are_short() -> None:
    problems = list(function_problems(library()))
    assert not problems, "\n".join(problems)


def test_a_long_function_is_seen() -> None:
    source = snippet(function_of(60, "ok") + function_of(61, "long"))
    found = [p for p in function_problems([source]) if "max" in p]
    assert found == ["fx/sample.py:65 long: 61 lines (max 60)"]


def test_too_long_on_the_whole_is_seen() -> None:
    short, middle, long = function_of(3), function_of(9), function_of(26)
    assert not list(function_problems([snippet(short * 10)]))
    assert list(function_problems([snippet(short * 8 + long * 2)])) == [
        "90% of the functions have up to 26 lines, not 25"
    ]
    assert list(function_problems([snippet(short * 4 + middle * 6)])) == [
        "50% of the functions have up to 9 lines, not 8"
    ]


def test_declarations_do_not_flatter_the_median() -> None:
    source = snippet(
        "class P:\n    def a(self) -> None: ...\n"
        '    def b(self) -> None:\n        """Say b."""\n\n'
        "    def c(self) -> int:\n        return 1\n"
    )
    assert [length.lines for length in lengths([source])] == [2]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x = 1\n" * 451, "fx/sample.py: 451 lines of code (max 450)"),
        ("# x\n" * 901, "fx/sample.py: 901 lines (max 900)"),
        ("#\n#" + "x" * 80, "fx/sample.py:2: 81 columns (max 80)"),
    ],
)
def test_long_files_and_lines_are_seen(text: str, complaint: str) -> None:
    assert list(file_problems(snippet(text))) == [complaint]
    assert not list(file_problems(snippet("# x\nx = 1\n" * 450)))


# --- types -----------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "def f(x: Any) -> None: ...",
        "def f() -> dict[str, Any]: ...",
        "x: Any = 1",
        "x: 'Any' = 1",
        "x: 'list[Any]' = []",
        "x = cast('dict[str, Any]', y)",
        "x: typing.Any = 1",
        "from typing import Any as Whatever",
        "Value = Any",
    ],
)
def test_any_is_seen(text: str) -> None:
    (problem,) = any_problems(snippet(text))
    assert problem == "fx/sample.py:1: `Any` outside a named TypeAlias"


def test_any_by_a_named_alias_is_fine() -> None:
    source = snippet(
        '"""Any value may pass."""\nfrom typing import Any, TypeAlias\n'
        "Value: TypeAlias = Any\nMany: TypeAlias = 'dict[str, Any]'\n"
        "Long: TypeAlias = Union[\n    int,\n    Any,\n]\n"
        "def f(x: Value) -> None:\n    raise TypeError('Any: no')\n"
    )
    assert list(any_problems(source)) == []


def test_silenced_type_errors_are_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Written apart, so that the type checkers do not read them here.
    bare, coded = "# type" + ": ignore", "# type" + ": ignore[misc]"
    text = f"x = 1  {bare}\ny = 2  {coded}\nz = 3  {coded}  # why\n"
    source = snippet(f"{text}s = 'no {bare}'\n")
    assert list(ignore_problems(source)) == [
        f"fx/sample.py:1: `{bare[2:]}` names no error code",
        f"fx/sample.py:2: `{coded[2:]}` gives no reason",
        "fx/sample.py: 3 ignores, not 0",
    ]
    monkeypatch.setitem(house_rules.TYPE_IGNORES, "fx/sample.py", 1)
    assert list(ignore_problems(snippet(f"z = 3  {coded}  # why"))) == []
    assert list(ignore_problems(snippet("z = 3"))) == [
        "fx/sample.py: 0 ignores, not 1"
    ]


# --- functions and docstrings ----------------------------------------------


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("def f() -> None:\n    global x, y", ":2: global x, y"),
        ("def f() -> None:\n    import os", ":2: import inside a function"),
        (
            "class C:\n    def f(self) -> None:\n        from os import path",
            ":3: import inside a function",
        ),
    ],
)
def test_global_and_hidden_imports_are_seen(text: str, complaint: str) -> None:
    assert list(hidden_problems(snippet(text))) == ["fx/sample.py" + complaint]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("def f() -> None: ...", "f has no docstring"),
        ("class C:\n    x = 1", "C has no docstring"),
        (
            'class C:\n    """A box."""\n    def m(self) -> None: ...',
            "C.m has no docstring",
        ),
        (
            'if X:\n    def f() -> None:\n        """does it"""',
            "f begins with no sentence: 'does it'",
        ),
        ('def f() -> None:\n    """F."""', "f begins with a single word: 'F.'"),
    ],
)
def test_a_missing_docstring_is_seen(text: str, complaint: str) -> None:
    (problem,) = docstring_problems(snippet(text))
    assert problem.partition(": ")[2] == complaint


def test_private_and_inherited_names_need_no_docstring() -> None:
    source = snippet(
        "def _f() -> None: ...\n"
        'class C:\n    """A box."""\n'
        "    def __len__(self) -> int: ...\n"
        "    @overload\n    def m(self) -> int: ...\n"
        "    @m.setter\n    def m(self, x: int) -> None: ...\n"
        "class _D:\n    def m(self) -> None: ...\n"
    )
    assert list(docstring_problems(source)) == []


# --- importing -------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "print('hello')",
        "register(f)",
        "Graph._make_codegen = CodeGen",
        "torch.table['x'] = 1",
        "for x in y:\n    other[x] = 1",
        "del torch.table",
        "a, torch.b = 1, 2",
        "torch.x += 1",
        "torch.x: int = 1",
        "class C:\n    register(1)",
        "if X:\n    torch.x = 1",
        "try:\n    pass\nexcept OSError:\n    torch.x = 1",
        "x = os.getenv('X')",
        "x = [open(f) for f in y]",
        "def f(x: str = input()) -> None: ...",
        "@cache(open('x'))\ndef f() -> None: ...",
        "with lock:\n    x = 1",
        "assert x",
        "shared = torch.table\nshared['x'] = 1",
        "shared = torch.table\nshared.update(x=1)",
        "for x in open('f'):\n    y = 1",
        "if __name__ == '__main__':\n    pass\nelse:\n    main()",
    ],
)
def test_an_effect_at_import_is_seen(text: str) -> None:
    (problem,) = side_effect_problems(snippet(text))
    assert ": at import: " in problem


def test_building_constants_is_no_effect() -> None:
    source = snippet(
        '"""A file."""\nimport os\n'
        "LEGAL = frozenset({'a', 'b'})\nTABLE: dict[str, int] = {}\n"
        "for name in LEGAL:\n    TABLE[name] = len(name)\n"
        "TABLE.update(c=1)\nT = TypeVar('T')\nNAME = re.compile('x')\n"
        "state = ContextVar('state', default=None)\n"
        "@dataclass(frozen=True)\nclass C:\n"
        "    x: int = field(default_factory=list)\n"
        "    def f(self) -> None:\n        print(open('x'))\n"
        "if TYPE_CHECKING:\n    from x import y\n"
        "action = lambda: print('later')\n"
        "if __name__ == '__main__':\n    sys.exit(main())\n"
    )
    assert list(side_effect_problems(source)) == []


def test_the_registrations_are_allowed_in_their_files_only() -> None:
    line = "Graph._make_codegen = staticmethod(default_codegen)"
    home, other = (
        snippet(line, "fx/codegen/variants.py"),
        snippet(line, "fx/codegen/emit.py"),
    )
    assert not list(side_effect_problems(home))
    assert len(list(side_effect_problems(other))) == 1
    call = "for t in x:\n    torch.utils._pytree.register_pytree_node(t)"
    home = snippet(call, "fx/immutable_collections.py")
    assert not list(side_effect_problems(home))
    assert not list(stale_registrations([home]))


def test_no_registration_is_allowed_for_nothing() -> None:
    assert list(stale_registrations(library())) == []
    (problem,) = stale_registrations(
        [snippet("x = 1", "fx/codegen/variants.py")]
    )
    assert problem.startswith("fx/codegen/variants.py: no `Graph")


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
