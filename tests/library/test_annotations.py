"""Annotations that name a class which only a type checker imports.

Python 3.14 evaluates an annotation when it is asked for, so that such code
runs there without `from __future__ import annotations`.  The programs here are
texts, because this file, like all others, has that line.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import fx
from fx.codegen.codegen import CodeGen
from fx.experimental.normalize import NormalizeArgs
from fx.experimental.proxy_tensor import make_fx
from fx.passes.infra.pass_manager import PassManager
from fx.show import __main__ as show
from fx.use_def.annotations import annotations_of, signature_of
from fx.use_def.values import AnyValue

lazily = pytest.mark.skipif(
    sys.version_info < (3, 14),
    reason="before Python 3.14 such a program ends where it is defined",
)

PROGRAM = """
import functools
from typing import TYPE_CHECKING

import torch
from torch import nn

import fx

if TYPE_CHECKING:
    from somewhere import Known


def function(x: torch.Tensor, many: list[Known] = (), flag: Known | None = None
) -> tuple[Known, torch.Tensor]:
    return flag, x + 1


class Network(nn.Module):
    def __init__(self, layer: Known | None = None) -> None:
        super().__init__()

    def forward(self, x: Known, *, scale: nn.Missing = 2) -> Known:
        return x * scale


def added(x: Known, y: Known) -> Known:
    return x + y


fx.wrap("wrapped")


@functools.wraps(added)
def wrapped(*args: Known) -> Known:
    return added(*args)


def calling(x: Known) -> Known:
    return wrapped(x, x)


def check(module: Known) -> None:
    pass
"""


def defined() -> dict[str, AnyValue]:
    """What the program defines."""
    names: dict[str, AnyValue] = {"__name__": "a_program"}
    code = compile(PROGRAM, "program.py", "exec", dont_inherit=True)
    exec(code, names)
    return names


def test_what_is_known_is_a_value_as_ever() -> None:
    def function(x: torch.Tensor, n: int = 1) -> list[int]:
        return [n]

    function.__annotations__.update(x=torch.Tensor, n=int)
    found = annotations_of(function)
    assert found == {"x": torch.Tensor, "n": int, "return": "list[int]"}
    assert list(signature_of(function).parameters) == ["x", "n"]
    assert annotations_of(len) == {}
    with pytest.raises(ValueError, match="signature"):
        signature_of(torch.add)


@lazily
def test_what_is_not_known_is_text() -> None:
    names = defined()
    assert annotations_of(names["function"]) == {
        "x": torch.Tensor,
        "many": "list[Known]",
        "flag": "Known | None",
        "return": "tuple[Known, torch.Tensor]",
    }
    assert annotations_of(names["Network"].forward) == {
        "x": "Known",
        "scale": "nn.Missing",
        "return": "Known",
    }
    assert list(signature_of(names["function"]).parameters) == [
        "x",
        "many",
        "flag",
    ]


@lazily
def test_such_programs_are_traced_printed_and_run() -> None:
    names = defined()
    gm = fx.symbolic_trace(names["function"])
    assert [node.type for node in gm.graph.find_nodes(op="placeholder")] == [
        torch.Tensor,
        "list[Known]",
        "Known | None",
    ]
    assert gm.graph.output_node().type == "tuple[Known, torch.Tensor]"
    assert gm(torch.ones(1))[1].item() == 2.0
    again = fx.GraphModule({}, gm.graph)
    assert again(torch.ones(1))[1].item() == 2.0

    gm = fx.symbolic_trace(names["Network"]())
    assert "%x : 'Known' [num_users=1]" in str(gm.graph)
    assert gm(torch.ones(1)).item() == 2.0


@lazily
def test_so_do_captures_and_passes() -> None:
    names = defined()
    captured = make_fx(names["Network"]().forward)(torch.ones(1))
    assert captured(torch.ones(1)).item() == 2.0

    gm = fx.symbolic_trace(names["calling"])
    gm.graph.eliminate_dead_code()
    normalized = NormalizeArgs(gm).transform()
    assert normalized(torch.ones(1)).item() == 2.0

    PassManager().add_checks(names["check"])


@lazily
def test_so_do_pages_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lazily_noted.py").write_text(PROGRAM)
    monkeypatch.syspath_prepend(str(tmp_path))
    page = tmp_path / "page.html"
    place = "lazily_noted:Network"
    assert show.main([place, "--input", "2", "-o", str(page)]) == 0
    assert "Known" in page.read_text()


@lazily
def test_so_do_code_generators() -> None:
    names = defined()
    text = (
        "class Mine(CodeGen):\n"
        "    def gen_fn_def(self, free_vars: Known, returns: Known) -> Known:\n"
        "        return super().gen_fn_def(free_vars, returns)\n"
    )
    exec(
        compile(text, "m.py", "exec", dont_inherit=True),
        {"CodeGen": CodeGen},
        names,
    )
    graph = fx.symbolic_trace(nn.ReLU()).graph
    graph.set_codegen(names["Mine"]())
    assert "relu" in graph.python_code("self").src
