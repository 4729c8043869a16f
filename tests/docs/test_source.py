"""Files are cut into units: each line is in one, under a name."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.machinery.source import (
    ROOT,
    Module,
    Unit,
    UnknownName,
    cut,
    find,
    read,
    torch_root,
)

FILES = sorted((ROOT / "fx").rglob("*.py"))

TEXT = '''"""Head."""
import os

# About A.
A = 1
"""What A is."""
del os


@decorated
class C(B):
    """A class."""

    __slots__ = ("x",)
    w: int

    @property
    def x(self): ...

    # The setter.
    @x.setter
    def x(self, value): ...

    y = 1

    class D:
        z = 2

        def f(self): ...


@overload
def f(a: int): ...
@overload
def f(a: str): ...
def f(a): ...


if TYPE_CHECKING:
    class Like: ...
else:
    Like = object
first, second = 1, 2
# The end.
'''


@pytest.fixture(scope="module")
def module() -> Module:
    return cut(TEXT, "m", "m.py")


def shown(module: Module, name: str) -> str:
    unit = module.unit(name)
    return module.text(unit.first, unit.last)


def test_the_header_of_a_class_ends_before_its_first_method(
    module: Module,
) -> None:
    unit = module.unit("C")
    assert module.lines[unit.header_last - 2] == "    w: int"


def test_a_branch_has_the_name_of_what_it_defines(module: Module) -> None:
    assert shown(module, "Like").startswith("if TYPE_CHECKING:")


def level_is_whole(module: Module, units: tuple[Unit, ...]) -> list[int]:
    """The lines that are in none of the units, or in two."""
    span = range(units[0].first, units[-1].last + 1)
    times = [sum(u.first <= n <= u.last for u in units) for n in span]
    return [
        number
        for number, count in zip(span, times, strict=True)
        if count != 1 and (count or module.lines[number - 1].strip())
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_each_line_of_fx_is_in_one_unit_of_each_level(path: Path) -> None:
    module = read(path)
    if not module.lines:
        return
    assert not level_is_whole(module, module.units)
    assert module.units[0].first == 1
    assert module.units[-1].last == len(module.lines)
    for unit in module.all():
        if unit.members:
            assert not level_is_whole(module, unit.members)
            assert unit.members[-1].last == unit.last


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_each_name_of_fx_means_one_unit(path: Path) -> None:
    module = read(path)
    names = [unit.name for unit in module.all() if unit.name]
    assert len(names) == len(set(names))


def test_an_unknown_name_says_what_is_near() -> None:
    with pytest.raises(UnknownName, match=r"did you mean Link\.prepend"):
        find("fx.linked_list.linked_list.Link.prepnd")
    with pytest.raises(UnknownName, match="no file"):
        find("fy.linked_list")


def test_torch_is_looked_up_by_name() -> None:
    place = find("torch.fx.node.Node.prepend", torch_root())
    text = place.module.text(place.unit.first, place.unit.last)
    assert "def prepend(" in text
    assert "def append(" not in text
