"""Paths in module hierarchies: one home for what torch.fx does six times."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
import torch
import torch.fx
from torch import nn

import fx
from fx.codegen.attributes import (
    add_submodule,
    assign,
    copy_attributes,
    delete_submodule,
)
from fx.compat.names import _copy_attr as copy_attribute
from fx.use_def.dotted_path import MISSING, PathError, Step, exists, find, walk

Anything: TypeAlias = Any


class Settings:
    """A plain object inside a module."""

    def __init__(self) -> None:
        self.scale = 2.0
        self.table = torch.ones(2)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 3)
        self.nothing = None
        self.settings = Settings()
        self.register_buffer("buffer", torch.zeros(1), persistent=False)
        self.tensor = torch.arange(3)


class Root(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = Block()
        self.seq = nn.Sequential(nn.Linear(2, 2), nn.ModuleList([Block()]))
        self.weight = nn.Parameter(torch.ones(2))


class Hidden(nn.Module):
    """A module with children that attributes hide, and one that is nothing."""

    act = staticmethod(torch.sigmoid)

    def __init__(self) -> None:
        super().__init__()
        self.act = nn.ReLU()
        self.scale = nn.Identity()
        self.__dict__["scale"] = torch.ones(2)
        self.register_module("none", None)


PRESENT = (
    "weight",
    "block",
    "block.linear.weight",
    "block.linear",
    "block.buffer",
    "block.tensor",
    "block.nothing",
    "block.settings.scale",
    "block.settings.table",
    "seq.0",
    "seq.0.bias",
    "seq.1.0.linear.weight",
    "seq.1.0",
    "forward",
)
ABSENT = {
    # path: (prefix, atom)
    "": ("", ""),
    "nope": ("", "nope"),
    "block.": ("block", ""),
    ".block": ("", ""),
    "block..linear": ("block", ""),
    "block.liner.weight": ("block", "liner"),
    "block.linear.weight.nope": ("block.linear.weight", "nope"),
    "block.nothing.more": ("block.nothing", "more"),
    "block.settings.nope": ("block.settings", "nope"),
    "seq.2": ("seq", "2"),
    "seq.1.1.linear": ("seq.1", "1"),
}


def by_hand(root: object, path: str) -> Anything:
    """What Python makes of `root.path`, by plain getattr."""
    value: Anything = root
    for atom in path.split("."):
        value = getattr(value, atom)
    return value


@pytest.mark.parametrize("path", PRESENT)
def test_what_is_there_is_found(path: str) -> None:
    root = Root()
    expected = by_hand(root, path)
    found = find(root, path)
    assert found is expected or found == expected  # a method is made anew
    assert exists(root, path)
    steps = list(walk(root, path))
    assert [step.atom for step in steps] == path.split(".")
    assert steps[-1].value is found or steps[-1].value == found
    for step in steps:
        whole = f"{step.prefix}.{step.atom}".lstrip(".")
        assert path == whole or path.startswith(f"{whole}.")


@pytest.mark.parametrize("path", ABSENT)
def test_what_is_missing_is_named(path: str) -> None:
    root = Root()
    prefix, atom = ABSENT[path]
    assert not exists(root, path)
    *before, last = walk(root, path)
    assert last == Step(prefix, atom, MISSING)
    assert all(step.value is not MISSING for step in before)
    with pytest.raises(AttributeError, match="leads nowhere") as caught:
        find(root, path)
    error = caught.value
    assert isinstance(error, PathError)
    assert error.name == atom
    where = f"'{prefix}'" if prefix else "the root"
    assert f"'{path}'" in str(error)
    assert where in str(error)
    assert f"has no attribute '{atom}'" in str(error)


def test_a_child_is_copied_although_its_class_has_the_name_too() -> None:
    hidden = Hidden()
    root = nn.Sequential(hidden)
    copy = nn.Module()
    copy_attributes(root, copy, ["0.act", "0.scale", "0.none"])
    assert find(copy, "0.act") is hidden._modules["act"]
    assert find(copy, "0.scale") is hidden.scale  # of the instance, not hidden
    assert find(copy, "0.none") is None


def test_lint_finds_what_the_code_would_call() -> None:
    """And not the child that the class's attribute hides from it."""
    graph = fx.Graph()
    graph.output(graph.call_module("act", (graph.placeholder("x"),)))
    graph.owning_module = Hidden()  # type: ignore[assignment]  # no GraphModule
    with pytest.raises(RuntimeError, match="act"):
        graph.lint()


def test_a_plain_object_may_call_anything_modules() -> None:
    settings = Settings()
    settings._modules = None  # type: ignore[attr-defined]  # no module's
    root = Root()
    root.block.settings = settings
    copy = nn.Module()
    copy_attribute(root, copy, "block.settings.scale")
    assert find(copy, "block.settings.scale") == 2.0


def test_the_error_says_what_was_asked_of_what() -> None:
    with pytest.raises(PathError) as caught:
        find(Root(), "block.liner.weight")
    error = caught.value
    assert str(error) == (
        "'block.liner.weight' leads nowhere: 'block', a Block, has no "
        "attribute 'liner'"
    )
    assert isinstance(error.obj, Block)
    assert error.name == "liner"  # Python suggests `linear` by these two


def test_the_error_can_be_pickled() -> None:
    with pytest.raises(PathError) as caught:
        find(Root(), "block.nope")
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)


def test_other_errors_are_not_hidden() -> None:
    class Broken(nn.Module):
        @property
        def part(self) -> object:
            raise ValueError("broken")

    for ask in (find, exists):
        with pytest.raises(ValueError, match="broken"):
            ask(Broken(), "part.weight")


# -- assign and copy: as torch.fx, but tensors may be in plain objects ---------

Put: TypeAlias = Callable[[nn.Module, nn.Module, str], None]


def _theirs(source: nn.Module, destination: nn.Module, path: str) -> None:
    torch.fx.graph_module._copy_attr(source, destination, path)
    if path == "block.buffer":  # torch.fx before 2.15 forgets it
        block = destination.get_submodule("block")
        block._non_persistent_buffers_set.add("buffer")


def _shape(module: nn.Module) -> dict[str, object]:
    """Where everything is in a module, and what it is."""
    kinds: dict[str, object] = {}
    for name, part in module.named_modules():
        children = {k: type(v).__name__ for k, v in part.named_children()}
        kinds[name] = (
            children,
            {k: id(v) for k, v in part.named_parameters(recurse=False)},
            {k: id(v) for k, v in part.named_buffers(recurse=False)},
            sorted(part._non_persistent_buffers_set),
            {
                k: v if isinstance(v, float) else id(v)
                for k, v in vars(part).items()
                if not k.startswith("_")
            },
        )
    return kinds


PATHS = [path for path in PRESENT if path != "forward"]


IN_PLAIN_OBJECT = "block.settings.table"
WITH_TORCH = [path for path in PATHS if path != IN_PLAIN_OBJECT]


@pytest.mark.parametrize("first", WITH_TORCH)
def test_copying_is_what_torch_fx_does(first: str) -> None:
    source = Root()
    for second in WITH_TORCH:
        ours, theirs = nn.Module(), nn.Module()
        for path in (first, second):
            copy_attribute(source, ours, path)
            _theirs(source, theirs, path)
            assert _shape(ours) == _shape(theirs), (first, second)
            assert find(ours, path) is find(source, path)


@pytest.mark.parametrize("first", PATHS)
def test_copying_many_is_copying_one_by_one(first: str) -> None:
    source = Root()
    for second, third in itertools.product(PATHS, PATHS):
        paths = (first, second, third)
        once, singly = nn.Module(), nn.Module()
        copy_attributes(source, once, paths)
        for path in paths:
            copy_attribute(source, singly, path)
        assert _shape(once) == _shape(singly), paths


def test_a_tensor_of_a_plain_object_becomes_a_buffer() -> None:
    source, copy = Root(), nn.Module()
    copy_attribute(source, copy, IN_PLAIN_OBJECT)
    assert set(copy.state_dict()) == {IN_PLAIN_OBJECT}


def test_a_buffer_that_was_not_saved_is_saved_if_the_source_says_so() -> None:
    source, copy = Root(), nn.Module()
    copy_attribute(source, copy, "block.buffer")
    source.block.register_buffer("buffer", torch.ones(1))
    copy_attribute(source, copy, "block.buffer")
    assert set(copy.state_dict()) == {"block.buffer"}


def test_a_shared_parent_is_left_alone() -> None:
    source, copy = Root(), nn.Module()
    copy_attribute(source, copy, "block")
    before = _shape(source)
    copy_attribute(source, copy, "block.tensor")
    assert _shape(source) == before
    assert find(copy, "block") is source.block


def test_a_path_may_be_deeper_than_python_recurses() -> None:
    graph, path = fx.Graph(), ".".join(["deep"] * 1500)
    graph.output(graph.get_attr(path))
    weight = nn.Parameter(torch.ones(1))
    gm = fx.GraphModule({path: weight}, graph)
    assert gm() is weight
    assert fx.GraphModule(gm, graph)() is weight


def test_nothing_is_installed_for_a_path_that_is_not_there() -> None:
    source, copy = Root(), nn.Module()
    with pytest.raises(PathError):
        copy_attribute(source, copy, "block.settings.nope")
    assert _shape(copy) == _shape(nn.Module())


@pytest.mark.parametrize("path", ["a", "a.b", "block.x", "seq.0.x.y", "seq.1"])
@pytest.mark.parametrize(
    "value",
    [
        torch.ones(1),
        nn.Parameter(torch.ones(1)),
        nn.Linear(1, 1),
        1.5,
        None,
        Settings(),
    ],
)
def test_assigning_is_what_torch_fx_does(path: str, value: object) -> None:
    if path == "seq.1" and not isinstance(value, nn.Module):
        value = nn.ReLU()
    ours = Root()
    theirs = Root()
    assign(ours, path, value)
    torch.fx.graph_module._assign_attr(value, theirs, path)
    assert find(ours, path) is value
    for name, part in theirs.named_modules():
        assert type(find(ours, name) if name else ours) is type(part)
    for mine, other in zip(ours.modules(), theirs.modules(), strict=True):
        assert list(mine._parameters) == list(other._parameters)
        assert list(mine._buffers) == list(other._buffers)
        assert sorted(vars(mine)) == sorted(vars(other))


def test_a_tensor_in_a_plain_object_is_a_plain_attribute() -> None:
    # torch.fx: AttributeError, 'Settings' has no attribute 'register_buffer'.
    root, value = Root(), torch.zeros(3)
    assign(root, "block.settings.table", value)
    assert root.block.settings.table is value


def test_a_buffer_cannot_replace_another_attribute() -> None:
    root = Root()
    with pytest.raises(KeyError, match="already exists"):
        assign(root, "block.settings", torch.zeros(1))


# -- submodules --------------------------------------------------------------


def _both(module: Root) -> torch.fx.GraphModule:
    """A GraphModule of torch.fx with the same children."""
    return torch.fx.GraphModule(
        {name: child for name, child in module.named_modules() if name},
        _graph_of_everything(module),
    )


def _graph_of_everything(module: nn.Module) -> torch.fx.Graph:
    graph = torch.fx.Graph()
    for name, _ in module.named_modules():
        if name:
            graph.call_module(name)
    graph.output(None)
    return graph


SUBMODULES = [
    "new", "new.deep.er", "block.linear", "block.linear.inner", "seq.0",
    "seq.7", "block.settings.x", "block.linear.weight.x", "block.nothing",
]  # fmt: skip


def _outcome(act: Callable[[], object]) -> object:
    try:
        return act()
    except KeyError as error:
        return str(error)


@pytest.mark.parametrize("path", SUBMODULES)
def test_adding_is_what_graph_modules_do(path: str) -> None:
    ours, new = Root(), nn.ReLU()
    theirs = _both(Root())
    added = _outcome(lambda: add_submodule(ours, path, new))
    assert added == _outcome(lambda: theirs.add_submodule(path, new))
    assert (find(ours, path) is new) if added is True else True
    names = [name for name, _ in ours.named_modules()]
    assert sorted(names) == sorted(name for name, _ in theirs.named_modules())


@pytest.mark.parametrize("path", [*SUBMODULES, "block", "weight", "", "seq.1"])
def test_deleting_is_what_graph_modules_do(path: str) -> None:
    ours, theirs = Root(), _both(Root())
    deleted = delete_submodule(ours, path)
    assert deleted == theirs.delete_submodule(path)
    assert not (deleted and exists(ours, path))
    names = [name for name, _ in ours.named_modules()]
    assert sorted(names) == sorted(name for name, _ in theirs.named_modules())


def test_some_can_be_added_and_some_deleted() -> None:
    # So that the two tests above are not about refusals alone.
    root = Root()
    assert add_submodule(root, "a.b.c", nn.ReLU())
    assert type(find(root, "a.b")) is nn.Module
    assert delete_submodule(root, "a.b.c")
    assert exists(root, "a.b")
    assert not delete_submodule(root, "a.b.c")
    assert delete_submodule(root, "seq.0")
    assert [name for name, _ in root.seq.named_children()] == ["1"]
    assert not add_submodule(root, "weight.x", nn.ReLU())
