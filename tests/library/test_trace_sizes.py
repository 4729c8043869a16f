"""Sizes in a trace are computed as Python computes them."""

from __future__ import annotations

import copy
import math
import pickle
import re
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
import torch
from torch import nn
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.nn import functional
from torch.nn.utils import rnn
from torch.utils._pytree import tree_leaves

import fx

AnyValue: TypeAlias = Any

X: Final = torch.ones(5, 4)
SIZES: Final = (1, 2, 3, 7, 10, 30, 101)
TORCH: Final[AnyValue] = torch
AUTO: Final[AnyValue] = torch.export.Dim.AUTO


def squeezes(x: AnyValue) -> AnyValue:
    """Count the dimensions that a leaf leaves."""
    return x.squeeze()


def first_rows(x: AnyValue) -> AnyValue:
    """Return as many rows as the values say, which are made up in a trace."""
    return x[: 2 if x.sum() < 0 else 3]


@pytest.mark.parametrize(
    "number",
    [
        lambda n: round(n * 1.7),
        lambda n: math.ceil(n / 2) * 2,
        lambda n: n**0.5,
        lambda n: 0.0 * n,
        lambda n: (n * 0.1).is_integer() + 0,
        lambda n: divmod(n, -3),
        lambda n: divmod(-n, 3.5),
        lambda n: (-n) // 7 & n % -3,
        lambda n: (n << 2 | 5) ^ ~n >> 1,
        lambda n: (n > 3) + (n == True) - (n / 2 > 1.1),  # noqa: E712
        lambda n: 1 + (n > 3) if (n > 3) == 1 else 7,
        lambda n: round(n, -1) + pow(n, 3, 7),
        lambda n: 2 ** (n % 4) + abs(-n) + math.floor(n),
        lambda n: TORCH.sym_max(n, 2.5) * TORCH.sym_sqrt(n),
        lambda n: n * 1j,
        lambda n: n * math.inf,
        lambda n: n - 0.7 + 0.1 == n - 0.6,
    ],
)
def test_sizes_are_computed_as_python_computes(number: AnyValue) -> None:
    def program(x: AnyValue) -> AnyValue:
        return x.sum() * 0 + 1, number(x.shape[0])

    gm = fx.trace(program, X)
    refused = 0
    for size in SIZES:
        given = torch.ones(size, 4)
        try:
            result = gm(given)
        except fx.GuardError:
            refused += 1
            continue
        assert repr(result) == repr(program(given))
    is_fixed = isinstance(number(5), bool | complex) or number(2) == 7
    assert refused == 0 or is_fixed


def test_graph_has_the_operation_of_the_program() -> None:
    gm = fx.trace(lambda x: x.new_ones(round(x.shape[0] * 1.7)), X)
    assert "size * 1.7" in gm.code
    assert "round(mul)" in gm.code
    assert "round(x.size(0) * 1.7) >= 0" in [str(each) for each in gm.guards]


def test_what_may_raise_for_other_sizes_is_guarded() -> None:
    gm = fx.trace(lambda x: (10 // (x.shape[0] - 3), x)[1], X)
    assert gm(torch.ones(7, 4)).shape == (7, 4)
    with pytest.raises(fx.GuardError, match=r"isinstance\(10 // "):
        gm(torch.ones(3, 4))


@pytest.mark.parametrize("rows", [1, 2, 4])
def test_what_may_raise_and_be_caught_is_guarded(rows: int) -> None:
    operations: list[AnyValue] = [
        lambda n: 6 // (n - 2),
        lambda n: pow(3, 2, n - 2),
        lambda n: 2.0 ** (500 * n),
        lambda n: float(n > 3),
    ]

    def program(x: AnyValue) -> AnyValue:
        results = []
        for operation in operations:
            try:
                results.append(x * operation(x.shape[0]))
            except (ArithmeticError, ValueError):
                results.append(-x)
        return results

    gm = fx.trace(program, torch.ones(rows, 2))
    for other in range(1, 6):
        x = torch.ones(other, 2)
        with suppress(fx.GuardError):
            torch.testing.assert_close(gm(x), program(x))


def test_what_raises_in_the_example_is_guarded() -> None:
    def program(x: AnyValue) -> AnyValue:
        try:
            return x * (7 % (x.shape[0] - 5))
        except ZeroDivisionError:
            return -x

    gm = fx.trace(program, X)
    assert torch.equal(gm(X), -X)
    with pytest.raises(fx.GuardError):
        gm(torch.ones(6, 4))


def test_sizes_that_a_leaf_has_computed_are_asked_behind_it() -> None:
    def program(x: AnyValue) -> AnyValue:
        kept = first_rows(x)
        return kept * 2 if kept.shape[0] / 2 > 1.1 else kept * math.e

    gm = fx.trace(program, X, leaves=[first_rows])
    assert "truediv" in gm.code
    assert torch.equal(gm(X), program(X))
    with pytest.raises(fx.GuardError, match=r"/ 2 > 1\.1"):
        gm(-X)


@pytest.mark.parametrize(
    "squeeze",
    [
        torch.squeeze_copy,
        torch.ops.aten.squeeze.default,
        lambda x: torch.squeeze(input=x, dim=(0, 1)),
        lambda x: torch.ops.aten.squeeze.dim(self=x, dim=0),
        lambda x: x.clone().squeeze_(),
        lambda x: squeezes(x),
        nn.Sequential(nn.Flatten(0, 0), nn.Identity()).forward,
    ],
)
def test_squeeze_asks_by_whatever_name(squeeze: AnyValue) -> None:
    def program(x: AnyValue) -> AnyValue:
        return squeeze(x).dim() * x.sum()

    gm = fx.trace(program, X, leaves=[squeezes])
    for shape in ((1, 5), (5, 1), (1, 1), (3, 2)):
        given = torch.ones(shape)
        try:
            assert torch.equal(gm(given), program(given))
        except fx.GuardError:
            assert 1 in shape


def test_squeeze_of_one_dimension_asks_for_that() -> None:
    gm = fx.trace(lambda x: x.squeeze(0) * 2, X)
    assert gm(torch.ones(3, 1)).shape == (3, 1)
    with pytest.raises(fx.GuardError):
        gm(torch.ones(1, 3))


def test_scale_factors_leave_sizes_free() -> None:
    def program(x: AnyValue) -> AnyValue:
        return functional.interpolate(x, scale_factor=1.7)

    gm = fx.trace(program, torch.ones(1, 2, 5, 5))
    for size in SIZES:
        given = torch.rand(2, 1, size, 9)
        assert torch.equal(gm(given), program(given))


def test_sizes_of_other_environments_are_computed_as_before() -> None:
    env = ShapeEnv()
    found: list[AnyValue] = []

    def program(x: AnyValue) -> AnyValue:
        def other() -> None:
            size: AnyValue = env.create_unbacked_symint()
            found.extend([str(size * 1.5), str(size % 3)])
            with pytest.raises(TypeError):
                divmod(size, 2)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return x * (x.shape[0] * 1.5)

    fx.trace(program, X)
    assert "ToFloat" in found[0]


def _equal_rows(x: AnyValue, y: AnyValue) -> AnyValue:
    return x[:, :1].reshape(-1) + y


@pytest.mark.parametrize(
    ("program", "asked"),
    [
        (lambda x, y: x * len(range(x.shape[0])), ""),
        (lambda x, y: x if x.shape[0] == 5 else -x, ""),
        (lambda x, y: x if 2 * x.shape[0] - 10 == 0 else -x, ""),
        (lambda x, y: x * int(x.shape[0] * 1.7), "x.size(0) * 1.7 is 8.5"),
        (lambda x, y: x if x.shape[0] ** 2 == 25 else -x, "** 2 == 25"),
        (lambda x, y: x if 4 < x.shape[0] < 6 else -x, "x.size(0) < 6"),
        (lambda x, y: _equal_rows(x, torch.ones(5)), ""),
        (lambda x, y: (_equal_rows(x, y), y + torch.ones(5)), "y.size(0)"),
    ],
)
def test_size_that_must_stay_free_is_not_fixed(
    program: AnyValue, asked: str
) -> None:
    given, named = (X, torch.ones(5)), {"x": {0: True}, "y": {0: AUTO}}
    with pytest.raises(fx.TraceError, match="fixes it to 5") as caught:
        fx.trace(program, *given, dynamic=named)
    text = str(caught.value)
    assert asked in text
    assert Path(__file__).name in text
    # It may be fixed if nobody has said that it must not be.
    for dynamic in (None, True, {"x": True, "y": True}, {"x": {0: AUTO}}):
        gm = fx.trace(program, *given, dynamic=dynamic)
        assert gm(*given) is not None


@pytest.mark.parametrize(
    "program",
    [
        lambda x, y: (x * x.shape[0], y),
        lambda x, y: (x if x.shape[0] % 5 == 0 else -x, y),
        lambda x, y: (x if x.shape[0] > 4 and x.shape[0] != 9 else -x, y),
        lambda x, y: (x if x.shape[0] == y.shape[0] else -x, y),
        lambda x, y: (x[: x.shape[0] // 2], y, f"{x.shape}"[:1]),
    ],
)
def test_size_that_is_only_asked_about_stays_free(program: AnyValue) -> None:
    named = {"x": {0: True}, "y": {0: torch.export.Dim.DYNAMIC}}
    gm = fx.trace(program, X, torch.ones(5), dynamic=named)
    assert gm(torch.ones(10, 4), torch.ones(10))[0].shape[1] == 4


def test_size_of_an_example_that_cannot_be_free_is_not_said_to_be() -> None:
    with pytest.raises(TypeError, match="of an example that is empty"):
        fx.trace(lambda x: x + 1, X[:0], dynamic={"x": {1: True}})
    fx.trace(lambda x: x + 1, X[:0], dynamic={"x": {1: AUTO}})
    with pytest.raises(TypeError, match="dynamic= says that k may vary"):
        fx.trace(lambda x, k=2: x + k, X, dynamic={"k": True})


@pytest.mark.parametrize(
    ("program", "found"),
    [
        (lambda x, y: x * len(range(x.shape[0])), "== 5, but it is 7\n"),
        (lambda x, y: x if x.shape[0] < 6 else -x, "< 6, but it is 7\n"),
        (
            lambda x, y: x if x.shape[0] == y.shape[0] else -x,
            "but x.size(0) is 7 and y.size(0) is 5\n",
        ),
        (lambda x, y: x * int(x.shape[0] * 1.7), "is 8.5, but it is 11.9"),
    ],
)
def test_guard_says_what_the_size_is(program: AnyValue, found: str) -> None:
    gm = fx.trace(program, X, torch.ones(5))
    with pytest.raises(fx.GuardError, match=re.escape(found)):
        gm(torch.ones(7, 4), torch.ones(5))


# -- numbers among the inputs --------------------------------------------------


def _step(x: AnyValue, t: AnyValue, scale: float = 2.0) -> AnyValue:
    if not torch.is_tensor(t):
        kind = torch.float64 if isinstance(t, float) else torch.int64
        t = torch.tensor([t], dtype=kind)
    return x * t.sin() * scale, t // 2


@pytest.mark.parametrize("example", [0, 1, 5, -3, 0.5, -0.0])
def test_number_that_may_vary_is_an_input(example: float) -> None:
    free = {"x": True, "t": True}
    gm = fx.trace(_step, X, example, dynamic=free)
    for t in (0, 1, 2, -7, 999, 0.0, -0.0, 2.5, True):
        if type(t) is not type(example):
            with pytest.raises(fx.GuardError, match="t is not what"):
                gm(X, t)
            continue
        want, got = _step(X, t), gm(X[:3], t)
        assert torch.equal(want[0][:3], got[0])
        assert want[1].dtype == got[1].dtype
        assert torch.equal(want[1], got[1])


def test_number_that_may_vary_is_in_a_container_and_saved(
    tmp_path: Path,
) -> None:
    def program(given: AnyValue, *, scale: float = 2.0) -> AnyValue:
        return given["x"] * given["n"] + scale, given["n"] + 1, scale

    free = {"given": {"x": True, "n": True}, "scale": True}
    given = {"x": X, "n": 3}
    gm = fx.trace(program, given, scale=0.5, dynamic=free)
    fx.save(gm, tmp_path / "gm")
    interpreted = fx.Interpreter(gm)
    for each in (
        gm,
        fx.load(tmp_path / "gm"),
        pickle.loads(pickle.dumps(gm)),
        copy.deepcopy(gm),
        torch.compile(gm, backend="eager"),
    ):
        for n, scale in ((4, 1.5), (0, -2.0), (-1, 0.0)):
            got = each({"x": X * 2, "n": n}, scale=scale)
            want = program({"x": X * 2, "n": n}, scale=scale)
            assert torch.equal(got[0], want[0])
            assert got[1:] == want[1:]
        with pytest.raises(fx.GuardError, match=r"\['n'\] is not .* it was a"):
            each({"x": X, "n": 1.5}, scale=0.5)
    assert interpreted.run({"x": X, "n": 7}, 0.25)[1:] == (8, 0.25)


@pytest.mark.parametrize(
    "program",
    [
        lambda x, t: x * math.sqrt(t),
        lambda x, t: x[:t] if t == 3 else x,
        lambda x, t: x * len(range(t)),
    ],
)
def test_number_that_must_stay_free_is_not_fixed(program: AnyValue) -> None:
    with pytest.raises(fx.TraceError, match=r"says that t may vary.* to 3"):
        fx.trace(program, X, 3, dynamic={"t": True})
    gm = fx.trace(program, X, 3, dynamic={"t": AUTO})
    assert torch.equal(gm(X, 3), program(X, 3))
    with pytest.raises(fx.GuardError):
        gm(X, 4)


def test_sign_of_zero_is_asked() -> None:
    def program(x: AnyValue, t: float) -> AnyValue:
        return x * math.copysign(1.0, t)

    gm = fx.trace(program, X, 0.0, dynamic={"t": AUTO})
    assert torch.equal(gm(X, 0.0), X)
    with pytest.raises(fx.GuardError, match="copysign"):
        gm(X, -0.0)


def test_what_cannot_vary_is_not_said_to() -> None:
    for value in (True, "text", None, 2**70):
        with pytest.raises(TypeError, match="dynamic= "):
            fx.trace(lambda x, t: x, X, value, dynamic={"t": True})
    with pytest.raises(TypeError, match="dynamic= says that scale may vary"):
        fx.trace(_step, X, 1, dynamic={"scale": True})


@pytest.mark.parametrize(
    "drawn",
    [
        lambda x: torch.randn(x.shape),
        lambda x: torch.randn(x.shape, generator=None, device=x.device),
        lambda x: torch.rand(x.shape[0], 4, generator=None, dtype=x.dtype),
        lambda x: torch.randint(0, 9, x.shape, generator=None) + x,
        lambda x: torch.tensor([x.shape[0], 2.0, 3, x.numel()]).expand(x.shape),
        lambda x: x.new_tensor([[x.shape[0]]] * 4).t() + x,
    ],
)
def test_tensors_made_of_sizes_leave_them_free(drawn: AnyValue) -> None:
    gm = fx.trace(lambda x: drawn(x) + x, X, dynamic={"x": {0: True}})
    for rows in (1, 2, 9):
        given = torch.ones(rows, 4)
        torch.manual_seed(3)
        want = drawn(given) + given
        torch.manual_seed(3)
        assert torch.equal(gm(given), want)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(
    "module",
    [
        nn.RNN(4, 5, batch_first=True),
        nn.RNN(4, 5, nonlinearity="relu", bidirectional=True),
        nn.GRU(4, 5, batch_first=True),
        nn.GRU(4, 5, num_layers=2, bidirectional=True, bias=False),
        nn.LSTM(4, 5, batch_first=True),
        nn.LSTM(4, 5, num_layers=2, bidirectional=True),
        nn.LSTM(4, 5, proj_size=3),
        nn.LSTM(4, 5, dtype=torch.double),
        *(nn.RNNCell(4, 5), nn.GRUCell(4, 5), nn.LSTMCell(4, 5)),
    ],
    ids=str,
)
def test_recurrent_modules_leave_batch_and_length_free(
    module: AnyValue, whole: bool
) -> None:
    sizes = 2 - isinstance(module, nn.RNNCellBase)
    root: AnyValue = nn.Sequential(module) if whole else module
    dtype = next(root.parameters()).dtype
    free = {"input": dict.fromkeys(range(sizes), True)}
    gm = fx.trace(
        root, torch.ones(3, 7, 4, dtype=dtype)[(0,) * (2 - sizes)], dynamic=free
    )
    for given in ((1, 7), (3, 1), (1, 1), (5, 2)):
        x = torch.randn(*given[:sizes], 4, dtype=dtype)
        results = zip(*map(tree_leaves, (gm(x), root(x))), strict=True)
        for ours, eager in results:
            assert torch.equal(ours, eager)
            assert ours.stride() == eager.stride()


def _mean(x: AnyValue, lengths: AnyValue) -> AnyValue:
    packed = rnn.pack_padded_sequence(x, lengths, batch_first=True)
    assert packed.batch_sizes.dtype == torch.int64
    return packed.data.sum() / packed.data.shape[0]


def test_sizes_of_a_packed_sequence_depend_on_values() -> None:
    gm = fx.trace(_mean, torch.ones(1, 7, 4), torch.tensor([7]))
    for lengths in ([5], [7, 3, 2], [1, 1]):
        given = (
            torch.randn(len(lengths), max(lengths), 4),
            torch.tensor(lengths),
        )
        assert torch.equal(gm(*given), _mean(*given))
    gru: AnyValue = nn.GRU(4, 5)
    packed = rnn.pack_padded_sequence(X[:, None], torch.tensor([5]))
    with pytest.raises(fx.TraceError, match=r"in the expression: gru\(p\)"):
        fx.trace(lambda p: gru(p), packed)
    with pytest.raises(fx.TraceError, match=r"in the expression: gru\("):
        fx.trace(
            lambda x, n: gru(rnn.pack_padded_sequence(x, n)),
            X[:, None],
            torch.tensor([5]),
        )


def test_nothing_is_learnt_by_a_division_by_what_may_be_zero() -> None:
    def program(x: AnyValue, k: int) -> AnyValue:
        x = x * 2 if k * (x.size(0) - 2) == 0 else x.sum()
        return x + 1 if x.size(0) == 2 else x - 1

    def equal(x: AnyValue, y: AnyValue, k: int) -> AnyValue:
        x = x * 2 if k * x.size(0) == k * y.size(0) else x.sum()
        return x + 1 if x.numel() == y.numel() else x - 1

    free = {"x": True, "k": True}
    for k in (0, 3):
        gm = fx.trace(program, torch.ones(2), k, dynamic=free)
        with pytest.raises(fx.GuardError):
            gm(torch.ones(5), 0)
    other = fx.trace(program, torch.ones(5), 0, dynamic=free)
    many = torch.ones(7)
    assert other(many, 0).equal(program(many, 0))
    inputs = torch.ones(2), torch.ones(3), 0
    found = fx.trace(equal, *inputs, dynamic={**free, "y": True})
    assert found(*inputs).equal(equal(*inputs))
