"""The table of operators, beside Python and torch.fx."""

from __future__ import annotations

import operator

import pytest
import torch
import torch.fx

import fx
from fx.recording import operators

# -- the table of operators --------------------------------------------------


def test_the_table_of_operators_is_that_of_torch() -> None:
    theirs = torch.fx.graph
    python2 = {"div": "{} / {}"}
    for name in ("magic_methods", "reflectable_magic_methods"):
        assert getattr(operators, name) | python2 == getattr(theirs, name)
    assert operators.inplace_methods == theirs.inplace_methods


@pytest.mark.parametrize("op", operators.OPERATORS, ids=lambda op: op.name)
def test_rows_of_the_table(op: operators.Operator) -> None:
    assert getattr(operator, op.name) is op.function
    assert getattr(operator, f"__{op.name.strip('_')}__") is op.function
    assert operators.syntax_of(op.function) is op
    reflected = getattr(int, f"__r{op.name.strip('_')}__", None)
    without = {"getitem", "matmul"}
    expected = operators.reflectable_magic_methods.keys() - without
    assert (reflected is not None) == (op.name in expected)


def test_no_method_of_a_callable_is_run_to_find_its_syntax() -> None:
    class Sly:
        def __call__(self) -> None:
            """Be callable."""

        def __hash__(self) -> int:
            raise AssertionError("hashed")

    assert operators.syntax_of(Sly()) is None


def test_a_node_in_the_place_of_a_proxy_is_named() -> None:
    node = fx.Graph().placeholder("x")
    with pytest.raises(NotImplementedError, match=r"argument of .*\n.*") as e:
        fx.Proxy(node)(node)
    assert "That is a node: pass a proxy of it, Proxy(x)." in str(e.value)
