"""What a traced program asks and catches: see `fx.extra.example_trace`."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias

import pytest
import torch
from torch import is_grad_enabled as grads
from torch import nn
from torch._C import get_default_dtype as default_dtype
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import fx

AnyValue: TypeAlias = Any

X = torch.ones(2, 3)


class Asks(nn.Module):
    """Decides by the dtype and the shape of what it computes."""

    def __init__(self) -> None:
        super().__init__()
        self.l = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """A layer, and what depends on its result."""
        y: torch.Tensor = self.l(x)
        return y * y.shape[1] if y.dtype == torch.float32 else y


def in_autocast(
    program: AnyValue, dtype: torch.dtype = torch.bfloat16
) -> AnyValue:
    """What a program gives in autocast."""
    with torch.autocast("cpu", dtype=dtype):
        return program(X)


def refused(gm: AnyValue, *inputs: AnyValue) -> str:
    """Why a graph refuses a call."""
    with pytest.raises(fx.GuardError) as raised:
        gm(*inputs)
    return str(raised.value)


def copies(gm: AnyValue) -> list[AnyValue]:
    """Other ways in which a graph is kept."""
    for_torch = fx.to_torch(copy.deepcopy(gm))
    for_torch.graph.eliminate_dead_code()
    for_torch.recompile()
    pruned = copy.deepcopy(gm)
    pruned.graph.eliminate_dead_code()
    pruned.recompile()
    pickled = pickle.loads(pickle.dumps(gm))
    transformed = fx.Transformer(copy.deepcopy(gm)).transform()
    return [copy.deepcopy(gm), pickled, for_torch, pruned, transformed]


def test_a_computed_dtype_is_asked_again_also_of_copies() -> None:
    class OfRows(Asks):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            """The rows of a parameter, whose dtype is that of no input."""
            y = F.embedding(x, self.l.weight)
            return y * 2 if y.dtype == torch.float32 else y

    rows = torch.tensor([1, 2])
    gm = fx.trace(OfRows(), rows)
    for each in copies(gm):
        torch.testing.assert_close(each(rows), gm(rows))
        told = "embedding.dtype == torch.float32"
        assert told in refused(copy.deepcopy(each).double(), rows)


def test_a_replaced_child_is_noticed_by_its_result() -> None:
    gm = fx.trace(Asks(), X)
    gm.l = nn.Linear(3, 6)
    assert "l.shape == (size, 3)" in refused(gm, X)
    gm.l = nn.Linear(3, 3)
    gm(torch.ones(5, 3))


@pytest.mark.parametrize(
    "ask",
    [
        lambda y: y.dtype == torch.float32,
        lambda y: y.type() == "torch.FloatTensor",
        lambda y: isinstance(y, (torch.FloatTensor,)),
        lambda y: y.is_floating_point() and y.element_size() == 4,
        lambda y: torch.result_type(y, 1) == torch.float32,
        lambda y: torch.promote_types(y.dtype, torch.half) == torch.float32,
        lambda y: torch.finfo(y.dtype).bits == 32,
    ],
)
def test_a_dtype_is_guarded_by_whatever_name_it_is_asked(
    ask: Callable[[AnyValue], bool],
) -> None:
    def forward(x: AnyValue) -> AnyValue:
        y = x @ x.T
        return y * 2 if ask(y) else y * 3

    gm = fx.trace(forward, X)
    assert torch.equal(gm(X), forward(X))
    with pytest.raises(fx.GuardError):
        in_autocast(gm)


def test_what_nobody_asked_is_not_compared() -> None:
    plain = fx.trace(lambda x: x @ x.T, X)
    assert in_autocast(plain).dtype == torch.bfloat16
    inside = in_autocast(lambda x: fx.trace(lambda x: x @ x.T, x))
    assert inside(X).dtype == torch.float32
    assert in_autocast(inside, torch.half).dtype == torch.half


@pytest.mark.parametrize(
    ("ask", "mode"),
    [
        (grads, torch.no_grad),
        (lambda: torch._C.is_grad_enabled(), torch.inference_mode),
        (torch.is_anomaly_enabled, torch.autograd.detect_anomaly),
        (
            lambda: torch.get_autocast_dtype("cpu") == torch.half,
            lambda: torch.autocast("cpu", dtype=torch.half),
        ),
        (
            lambda: torch.are_deterministic_algorithms_enabled(),
            lambda: Setting(torch.use_deterministic_algorithms, True, False),
        ),
        (
            lambda: torch.get_float32_matmul_precision(),
            lambda: Setting(
                torch.set_float32_matmul_precision, "medium", "highest"
            ),
        ),
        (
            lambda: default_dtype(),
            lambda: Setting(
                torch.set_default_dtype, torch.float64, torch.float32
            ),
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:Anomaly")
def test_a_mode_is_guarded_by_whatever_name_it_is_asked(
    ask: Callable[[], AnyValue], mode: Callable[[], AnyValue]
) -> None:
    here: dict[str, AnyValue] = {"ask": ask, "__name__": "somebodys"}
    exec("def forward(x):\n    return x * 2 if ask() else x", here)
    forward = here["forward"]
    if ask in (grads, torch.is_anomaly_enabled):  # by names of this module
        forward = by_grads if ask is grads else by_anomaly
    gm = fx.trace(forward, X)
    assert torch.equal(gm(X), forward(X))
    with mode():
        refused(gm, X)


def by_grads(x: torch.Tensor) -> torch.Tensor:
    """Asks by a name that was imported."""
    return x * 2 if grads() else x


def by_anomaly(x: torch.Tensor) -> torch.Tensor:
    """Asks for a mode that is not the gradients'."""
    return x * 2 if torch.is_anomaly_enabled() else x


class Setting:
    """A block in which a setting of torch is another one."""

    def __init__(
        self, change: AnyValue, value: AnyValue, before: AnyValue
    ) -> None:
        self.change, self.value, self.before = change, value, before

    def __enter__(self) -> None:
        self.change(self.value)

    def __exit__(self, *_: object) -> None:
        self.change(self.before)


def test_a_mode_that_a_block_decides_is_asked_in_the_graph() -> None:
    def forward(x: AnyValue) -> AnyValue:
        with torch.no_grad():
            return x * (2 if torch.is_grad_enabled() else 3)

    gm = fx.trace(forward, X)
    with torch.no_grad():
        assert torch.equal(gm(X), X * 3)


def test_questions_in_a_function_for_torch_are_asked_outside() -> None:
    class Checkpointed(Asks):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            """Asks in a checkpoint."""
            y = self.l(x)
            once: torch.Tensor = checkpoint(
                lambda a: a * a.shape[1], y, use_reentrant=False
            )
            return once

    gm = fx.trace(Checkpointed(), X)
    assert gm(torch.ones(4, 3)).shape == (4, 3)
    gm.l = nn.Linear(3, 6)
    assert "l.shape" in refused(gm, X)


def test_a_question_is_asked_once() -> None:
    def forward(x: AnyValue) -> AnyValue:
        y = torch.relu(x)
        return y.to(y.dtype) + torch.zeros(3, dtype=y.dtype, device=y.device)

    names = [node.name for node in fx.trace(forward, X).graph.nodes]
    assert [name[:8] for name in names].count("answered") == 2


def swallowing() -> list[Callable[[AnyValue], AnyValue]]:
    """Programs that go on after what a trace refuses."""

    def bare(x: AnyValue) -> AnyValue:
        try:
            return x * 2 if x.sum() > 0 else x
        except:  # noqa: E722
            return x

    def suppressed(x: AnyValue) -> AnyValue:
        with suppress(Exception):
            return x.tolist()
        return x

    def finally_returns(x: AnyValue) -> AnyValue:
        try:
            x = x * x.sum().item()
        finally:
            return x  # noqa: B012

    def raises_another(x: AnyValue) -> AnyValue:
        try:
            return x[: int(x.sum())]
        except Exception:
            raise KeyError("x") from None

    def broadcasts(x: AnyValue) -> AnyValue:
        try:
            return x + x.t()
        except RuntimeError:
            return x

    return [bare, suppressed, finally_returns, raises_another, broadcasts]


@pytest.mark.parametrize("program", swallowing(), ids=lambda f: f.__name__)
def test_a_refusal_cannot_be_swallowed(program: AnyValue) -> None:
    with pytest.raises(fx.TraceError, match="test_trace_questions"):
        fx.trace(program, X)


def test_an_error_that_is_sure_to_come_may_be_caught() -> None:
    def program(x: AnyValue) -> AnyValue:
        try:
            return x + x.t()
        except RuntimeError:
            return F.relu(x)

    gm = fx.trace(program, X, dynamic=False)
    assert torch.equal(gm(X), X)
    assert torch.equal(fx.trace(lambda x: getattr(x, "foo", x), X)(X), X)


@pytest.mark.parametrize(
    ("holder", "name"),
    [
        (torch.backends.cudnn, "enabled"),
        (torch.backends.cudnn, "benchmark"),
        (torch.backends.cuda.matmul, "allow_tf32"),
        (torch.backends.mkldnn, "enabled"),
    ],
)
def test_attributes_of_backends_are_guarded(
    holder: AnyValue, name: str
) -> None:
    gm = fx.trace(lambda x: x * 2 if getattr(holder, name) else -x, X)
    loaded = pickle.loads(pickle.dumps(gm))
    unasked = fx.trace(lambda x: x * 2, X)
    before = getattr(holder, name)
    # torch's own tests, which others import, forbid it for the process.
    with getattr(torch.backends, "__allow_nonbracketed_mutation")():
        setattr(holder, name, not before)
        try:
            unasked(X)
            for each in (gm, loaded):
                assert f".{name}" in refused(each, X)
        finally:
            setattr(holder, name, before)
    torch.testing.assert_close(gm(X), loaded(X))


def test_what_a_module_has_not_is_listed() -> None:
    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_parameter("bias", None)

        def forward(self, x: AnyValue) -> AnyValue:
            """With the bias, if there is one."""
            bias: AnyValue = self.bias
            return x * 2 if bias is None else x + bias

    (told,) = fx.trace(nn.Sequential(Scale()), X).guards.unchecked
    assert told.startswith("bias of a module was None: ")
    assert "test_trace_questions" in told


def test_a_check_that_fails_leaves_the_blocks_that_are_open() -> None:
    layer = nn.Linear(2, 2)

    def program(x: AnyValue) -> AnyValue:
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            y = layer(x)
            return y * 2 if y.dtype == torch.bfloat16 else y

    gm = fx.trace(program, torch.ones(2, 2))
    node = next(n for n in gm.graph.nodes if "answered" in str(n.target))
    node.update_arg(1, torch.float16)
    gm.recompile()
    with pytest.raises(fx.GuardError):
        gm(torch.ones(2, 2))
    assert not torch.is_autocast_enabled("cpu")
    assert torch.is_grad_enabled()


def test_a_block_without_a_dtype_takes_that_of_the_block_around_it() -> None:
    def taken(x: AnyValue) -> AnyValue:
        with torch.autocast("cpu"):
            return x @ x

    def given(x: AnyValue) -> AnyValue:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return x @ x

    x = torch.eye(3)
    traced = fx.trace(taken, x)
    assert traced(x).dtype == taken(x).dtype == torch.bfloat16
    with torch.autocast("cpu", dtype=torch.half):
        with pytest.raises(fx.GuardError, match="get_autocast_dtype"):
            traced(x)
        assert fx.trace(given, x)(x).dtype == torch.bfloat16
        assert fx.trace(taken, x)(x).dtype == torch.half


def test_names_and_bytes_of_a_tensor_are_known() -> None:
    def program(x: AnyValue) -> AnyValue:
        known = "relu" in dir(x) and "nowhere" not in dir(x + 1)
        return x * x.nbytes if known else x, (x @ x.t()).nbytes

    gm = fx.trace(program, X)
    for shape in ((4, 3), (1, 3), (2, 9)):
        given = torch.ones(shape)
        want, got = program(given), gm(given)
        assert torch.equal(want[0], got[0])
        assert want[1] == got[1]
    assert any("names of x" in text for text in gm.guards.unchecked)
    with pytest.raises(fx.GuardError, match=r"x\.dtype"):
        gm(X.double())


def test_call_that_fails_raises_what_eager_raises() -> None:
    with pytest.raises(RuntimeError, match="zero-dimensional"):
        fx.trace(lambda x: torch.cat([*x]), torch.ones(3))


def test_hook_on_a_tensor_is_refused() -> None:
    def program(x: AnyValue) -> AnyValue:
        y = x * 2
        y.register_hook(lambda gradient: gradient * 3)
        return y

    given = torch.ones(3, requires_grad=True)
    with pytest.raises(fx.TraceError, match="registers a hook") as raised:
        fx.trace(program, given)
    assert "autograd.Function" in str(raised.value)
    assert "program" in str(raised.value)
    gm = fx.trace(lambda x: _hooked(x) + 1, given, leaves=[_hooked])
    gm(given).sum().backward()
    assert given.grad is not None
    assert given.grad.tolist() == [6, 6, 6]


def _hooked(x: AnyValue) -> AnyValue:
    y = x * 2
    y.register_hook(lambda gradient: gradient * 3)
    return y


@pytest.mark.parametrize(
    "squeeze",
    [
        lambda x: torch.squeeze(input=x),
        lambda x: torch.squeeze(input=x, dim=-1),
        lambda x: torch.ops.aten.squeeze.dims(x, dim=(0, 1)),
    ],
)
def test_squeeze_is_called_by_keywords(squeeze: AnyValue) -> None:
    gm = fx.trace(squeeze, torch.ones(3, 1))
    assert torch.equal(gm(torch.ones(5, 1)), torch.ones(5))
    with pytest.raises(fx.GuardError):
        gm(torch.ones(5, 2))
