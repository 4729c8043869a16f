"""A trace is tried on its example, and leaves nothing without data behind."""

from __future__ import annotations

import copy
import functools
import logging
import random
from typing import Any, Final, TypeAlias

import pytest
import torch
from torch import nn

import fx

AnyValue: TypeAlias = Any

X: Final = torch.ones(3, 4)
KEPT: Final[dict[str, AnyValue]] = {}
LAST: AnyValue = None


def keeps_in_default(x: AnyValue, held: list[AnyValue] = []) -> AnyValue:  # noqa: B006
    """Keep an input in a default."""
    held.append(x)
    return x + 1


def keeps_in_global(x: AnyValue) -> AnyValue:
    """Keep a result in a dict."""
    KEPT["y"] = x + 1
    return x


def assigns_global(x: AnyValue) -> AnyValue:
    """Keep a shape in a global."""
    global LAST  # noqa: PLW0603
    LAST = x.shape
    return x


class Holder:
    """An object that keeps what it is given."""

    last: AnyValue = None

    def __call__(self, x: AnyValue) -> AnyValue:
        """Keep it, inside of a tuple."""
        self.last = (x * 2, 1)
        return x


HOLDER: Final = Holder()


@pytest.mark.parametrize(
    ("program", "where"),
    [
        (keeps_in_default, "a list of keeps_in_default"),
        (keeps_in_global, "KEPT"),
        (assigns_global, "test_trace_trial"),
        (lambda x: HOLDER(x), "HOLDER"),
    ],
)
def test_what_outlives_a_trace_is_refused_and_removed(
    program: AnyValue, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "LAST", None)
    with pytest.raises(fx.TraceError, match="which has no data") as caught:
        fx.trace(program, X)
    assert where in str(caught.value)
    assert keeps_in_default.__defaults__ == ([],)
    assert KEPT == {}
    assert LAST is None
    assert HOLDER.last is None
    assert type(program(X)) is torch.Tensor
    monkeypatch.undo()
    keeps_in_default.__defaults__[0].clear()
    KEPT.clear()


def test_caches_lose_what_the_trace_has_put_there() -> None:
    @functools.lru_cache(None)
    def table(n: int) -> torch.Tensor:
        return torch.arange(n) * 2.0

    @functools.lru_cache(2)
    def small(n: int) -> torch.Tensor:
        return torch.arange(n) * 2.0

    for cached in (table, small):
        gm = fx.trace(lambda x, f=cached: x + f(4), X)
        assert gm(X).sum() == 3 * 16
        assert type(cached(4)) is torch.Tensor
        assert type(cached(1)) is torch.Tensor
    assert fx.trace(lambda x: x + table(5)[:4], X)(X).sum() == 3 * 16
    assert type(table(5)) is torch.Tensor
    with pytest.raises(fx.TraceError, match=r"the cache of .*small"):
        fx.trace(lambda x: x + small(5)[:4], X)


def test_an_error_of_the_program_leaves_nothing_behind() -> None:
    def fails(x: AnyValue) -> AnyValue:
        KEPT["x"] = x
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fx.trace(fails, X)
    assert KEPT == {}


def test_a_trial_puts_everything_back() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(4)
            self.calls = [0]

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            """Write into buffers, an input and a list."""
            self.calls[0] += 1
            y = nn.functional.dropout(self.norm(x.clone()), 0.5)
            return x.mul_(2) + y

    net, x = Net(), torch.randn(3, 4)
    before, state = copy.deepcopy((net.state_dict(), x)), torch.get_rng_state()
    versions = [t._version for t in (*net.buffers(), x)]
    drawn = random.getstate()
    with pytest.warns(UserWarning, match="the program has assigned"):
        fx.trace(net, x)
    assert torch.equal(x, before[1])
    for name, tensor in net.state_dict().items():
        assert torch.equal(tensor, before[0][name])
    assert [t._version for t in (*net.buffers(), x)] == versions
    assert torch.equal(torch.get_rng_state(), state)
    assert random.getstate() == drawn
    assert net.calls == [0]


def test_a_difference_is_an_error_that_says_where() -> None:
    seen: list[int] = []

    def by_chance(x: torch.Tensor) -> AnyValue:
        seen.append(1)
        return {"a": x, "b": [x + (len(seen) == 1)]}

    with pytest.raises(fx.TraceError, match=r"result\['b'\]\[0\]"):
        fx.trace(by_chance, X)
    seen.clear()
    assert fx.trace(by_chance, X, check=False)(X)["b"][0].sum() == 24


def test_gradients_are_compared() -> None:
    def hooked(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        hook: AnyValue = y.register_hook
        if y.requires_grad and type(y) is torch.Tensor:  # not while tracing
            hook(lambda g: g * 10)
        return y

    fx.trace(hooked, X)
    with pytest.raises(fx.TraceError, match="gradient of input 0"):
        fx.trace(hooked, X.clone().requires_grad_())


def test_a_program_that_differs_from_itself_is_said_to() -> None:
    calls = iter(range(10))

    def counts(x: torch.Tensor) -> torch.Tensor:
        return x + next(calls)

    gm = fx.trace(counts, X)
    assert any("each time it runs" in text for text in gm.guards.unchecked)


def test_texts_are_no_guards(caplog: pytest.LogCaptureFixture) -> None:
    def tells(x: torch.Tensor) -> torch.Tensor:
        logging.getLogger("net").warning("%s %s", x.shape[0], x + 1)
        check: AnyValue = torch._assert
        check(x.shape[1] == 4, f"bad {x.shape} {x:}")
        return x * 2

    gm = fx.trace(tells, X)
    assert gm(torch.ones(7, 4)).shape == (7, 4)
    assert any("the text of x.size(0)" in text for text in gm.guards.unchecked)
    gm = fx.trace(lambda x: x * {"3": 5, "6": 7}[f"{x.shape[0]}"], X)
    assert gm(X)[0, 0] == 5
    with pytest.raises(fx.GuardError, match=r"x.size\(0\) == 3"):
        gm(torch.ones(6, 4))
    assert caplog.records


def test_what_has_no_data_is_not_tried() -> None:
    with torch.device("meta"):
        net, x = nn.Linear(4, 4), torch.ones(2, 4)
    assert fx.trace(net, x)(x).is_meta


@pytest.mark.parametrize(
    "write",
    [
        lambda w: w.data.view(-1).mul_(2),
        lambda w: w.view(-1).data.data.mul_(2),
        lambda w: setattr(w, "data", w.data * 2),
    ],
)
def test_a_weight_that_is_written_by_its_data_is_put_back(
    write: AnyValue,
) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            write(self.weight)
            return x * self.weight

    net, x = Net(), torch.ones(4)
    gm = fx.trace(net, x)
    assert net.weight.tolist() == [1] * 4
    assert gm(x).tolist() == [2] * 4
    assert net.weight.tolist() == [2] * 4


class _Slots:
    __slots__ = ("count", "last")
    count: int


class _State(_Slots):
    """Has slots of its base, and a dict."""


def _kept(held: AnyValue, x: AnyValue) -> AnyValue:
    held.count += 1
    held.last = x * held.count
    return held.last + 1


def test_slots_of_what_a_module_has_are_put_back() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.state = _State()
            self.state.count = 1

        def forward(self, x: AnyValue) -> AnyValue:
            return _kept(self.state, x)

    net, x = Net(), torch.ones(3)
    with pytest.warns(UserWarning, match=r"assigned state.count, state.last"):
        gm = fx.trace(net, x)
    assert net.state.count == 1
    assert not hasattr(net.state, "last")
    assert torch.equal(gm(x * 2), net(x * 2))


_STATE = _State()


def test_slots_of_a_global_do_not_keep_what_has_no_data() -> None:
    _STATE.count = 1
    with pytest.raises(fx.TraceError, match=r"kept a tensor .* in a _State"):
        fx.trace(lambda x: _kept(_STATE, x), torch.ones(3))
    assert not hasattr(_STATE, "last")
