"""Only one room of fx/ reads private names of torch, and the check can fail."""

from __future__ import annotations

import pytest

from tests.checks.sources import library, snippet
from tests.checks.torch_names import (
    dotted_names,
    is_private,
    looked_up,
    problems,
)


def test_no_other_file_reads_a_private_name() -> None:
    found = list(problems(library()))
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("import torch._ops", "torch._ops"),
        ("from torch._ops import OpOverload", "torch._ops.OpOverload"),
        ("from torch.utils import _pytree as p", "torch.utils._pytree"),
        ("import torch\nx = torch._C", "torch._C"),
        ("import torch.fx as t\nx = t.graph._x", "torch.fx.graph._x"),
        ("from torch import nn\nx = nn._reduction", "torch.nn._reduction"),
        ("import torch\nx = getattr(torch, '_C')", "torch._C"),
        ("from torch import nn\nx = getattr(nn, f'_g{1}')", "torch.nn._g"),
        ("import torch\nx = vars(torch)['_C']", "torch._C"),
        ("x = import_module('torch._ops')", "torch._ops"),
        ("x = resolve_name('torch.jit:_y.z')", "torch.jit._y.z"),
    ],
)
def test_a_private_name_is_seen(code: str, name: str) -> None:
    found = list(dotted_names(snippet(code).tree))
    assert [use.name for use in found] == [name]


@pytest.mark.parametrize(
    "code",
    [
        "import torch\nx = torch.ops.aten.add",
        "import torch\nx = torch.Tensor.__torch_function__",
        "from ..torch_private import pytree",
        "x = 'see torch._ops'",
    ],
)
def test_what_is_public_or_quoted_is_not(code: str) -> None:
    assert not list(dotted_names(snippet(code).tree))


def test_the_list_of_names_has_them_all() -> None:
    paths = [name.path for name in looked_up()]
    assert len(paths) > 50
    assert all(is_private(path) for path in paths)
    assert all(name.what for name in looked_up())
