"""fx.trace: programs recorded on an example, and called with other inputs."""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
import pickle
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import checkpoint as checkpoints
from torch.utils.checkpoint import checkpoint

import fx
from fx.extra.example_trace.guards import check
from tests.process import python

AnyValue: TypeAlias = Any

X = torch.arange(6.0).reshape(2, 3)


def same(one: AnyValue, two: AnyValue) -> bool:
    """Whether two results are equal, in their types, too."""
    if isinstance(one, torch.Tensor):
        return (
            isinstance(two, torch.Tensor)
            and one.dtype == two.dtype
            and one.requires_grad == two.requires_grad
            and torch.equal(one, two)
        )
    if type(one) is not type(two):
        return False
    if isinstance(one, tuple | list):
        return len(one) == len(two) and all(map(same, one, two))
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(
            same(one[key], two[key]) for key in one
        )
    if dataclasses.is_dataclass(one):
        names = [each.name for each in dataclasses.fields(one)]
        return all(same(getattr(one, n), getattr(two, n)) for n in names)
    if hasattr(one, "__dict__") and not isinstance(one, nn.Module):
        return same(vars(one), vars(two))
    return bool(one == two)


def right(
    program: AnyValue, gm: AnyValue, *args: AnyValue, **kwargs: AnyValue
) -> bool:
    """Whether a graph does what the program does, to its inputs, too."""
    given, others = copy.deepcopy((args, kwargs)), copy.deepcopy((args, kwargs))
    want = program(*given[0], **given[1])
    got = gm(*others[0], **others[1])
    return same(want, got) and same(given, others)


def refused(gm: AnyValue, *args: AnyValue, **kwargs: AnyValue) -> str:
    """What a guard says of a call that it refuses."""
    with pytest.raises((fx.GuardError, AssertionError)) as raised:
        gm(*copy.deepcopy(args), **kwargs)
    return str(raised.value)


# -- modules -------------------------------------------------------------------


class Net(nn.Module):
    """A network that asks for sizes, slices a buffer and counts in one."""

    places: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)
        self.weight = nn.Parameter(torch.randn(4))
        self.register_buffer("places", torch.arange(10.0))

    def forward(
        self, x: torch.Tensor, mask: AnyValue = None, *, scale: int = 2
    ) -> dict[str, AnyValue]:
        """Whatever."""
        batch, length = x.shape[:2]
        y = self.linear(x) * self.weight
        y = self.norm(y.reshape(batch * length, 4)).view(batch, length, 4)
        y = y + self.places[:length].unsqueeze(-1)
        for _ in range(2):
            y = F.relu(y) * scale
        if mask is not None:
            y = y * mask
        if length > 2:
            y = y - 1
        return {"y": y, "also": (y.sum(), length)}


def test_a_module_is_recorded_in_its_own_words() -> None:
    net = Net().eval()
    gm = fx.trace(net, torch.randn(2, 3, 4))
    called = [n.target for n in gm.graph.nodes if n.op == "call_module"]
    assert called == ["_guards", "linear", "norm"]
    assert "def forward(self, x, mask = None, *, scale = 2):" in gm.code
    assert "torch.nn.functional.relu(add" in gm.code
    for batch, length in ((2, 3), (5, 7), (1, 9)):
        assert right(net, gm, torch.randn(batch, length, 4))
    gm.graph.lint()


def test_notes_say_where_a_node_comes_from() -> None:
    gm = fx.trace(nn.Sequential(nn.Linear(4, 3), nn.ReLU()), torch.ones(2, 4))
    guards, linear, relu = gm.graph.find_nodes(op="call_module")
    assert not guards.stack_trace  # nothing of the user's program made it
    assert linear.meta["val"].shape[1] == 3
    assert linear.meta["nn_module_stack"] == {"0": ("0", nn.Linear)}
    net = Net()
    relu = next(
        node
        for node in fx.trace(net, torch.ones(2, 3, 4)).graph.nodes
        if node.target is F.relu
    )
    assert "F.relu(y) * scale" in (relu.stack_trace or "")


def test_nothing_of_the_users_is_touched() -> None:
    net = Net()
    before = copy.deepcopy(net.state_dict())
    versions = [t._version for t in net.state_dict(keep_vars=True).values()]
    held = {name: {**vars(m)} for name, m in net.named_modules()}
    x = torch.randn(2, 3, 4)
    gm = fx.trace(net, x)
    assert same(before, net.state_dict())
    after = [t._version for t in net.state_dict(keep_vars=True).values()]
    assert after == versions
    for name, module in net.named_modules():
        assert vars(module).keys() == held[name].keys()
    assert gm.weight is net.weight
    twin = copy.deepcopy(net)
    gm(x)
    twin(x)
    assert same(net.state_dict(), twin.state_dict())  # the graph counts, too


def test_a_tracer_says_which_modules_are_leaves() -> None:
    class Deep(fx.Tracer):
        def is_leaf_module(self, m: nn.Module, name: str) -> bool:
            """None but the norm."""
            return isinstance(m, nn.BatchNorm1d)

    x = torch.randn(2, 3, 4)
    gm = fx.trace(Net(), x, tracer=Deep())
    called = [n.target for n in gm.graph.nodes if n.op == "call_module"]
    assert called == ["_guards", "norm"]
    net = Net().eval()
    assert right(net, fx.trace(net, x, tracer=Deep()), x)


def test_buffers_are_written_when_the_graph_runs_and_not_before() -> None:
    class Counter(nn.Module):
        count: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            """Count."""
            self.count += 1
            self.count.add_(x.sum())
            return x * self.count

    counter = Counter()
    gm = fx.trace(counter, X)
    assert counter.count.item() == 0
    gm(X)
    assert counter.count.item() == 16
    assert gm.count is counter.count


def test_what_the_program_assigns_is_told_and_put_back() -> None:
    class Keeps(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last: AnyValue = None

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            """Keep the input."""
            self.last = x
            return x + 1

    keeps = Keeps()
    with pytest.warns(UserWarning, match="assigned last"):
        gm = fx.trace(keeps, X)
    assert keeps.last is None
    assert any("last is assigned" in each for each in gm.guards.unchecked)


def test_hooks_of_modules_run() -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    net.register_forward_hook(lambda module, args, result: result * 2)
    assert right(net, fx.trace(net, X), X)


# -- sizes ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "others", "not_these"),
    [
        (lambda x: sum(x[i] for i in range(len(x))), [(2, 9)], [(3, 3)]),
        (lambda x: [row * 2 for row in x], [(2, 9)], [(3, 3)]),
        (lambda x: x + len(x) * torch.arange(len(x.T)), [(4, 5)], []),
        (
            lambda x: x.new_zeros(int(math.ceil(x.shape[1] / 2) * 2)) + 1,
            [(5, 4), (5, 3)],
            [(2, 5)],
        ),
        (lambda x: x.new_ones(2 * x.shape[1], len(x.shape)), [(4, 5)], []),
        (
            lambda x: torch.ones(x.shape[0], 4) + torch.arange(4) + x.size(1),
            [(4, 5), (1, 1)],
            [],
        ),
        (lambda x: x[..., : x.shape[-1] // 2], [(3, 8), (3, 1)], []),
        (lambda x: (x.shape, x.shape[0] * 2, x.numel(), "a"), [(4, 5)], []),
        (lambda x: x + 1 if x.shape[0] == 2 else x - 1, [(2, 5)], [(1, 3)]),
        (lambda x: x.sum(0) if x.shape[0] else x, [(1, 3)], [(0, 3)]),
        (
            lambda x: (y := x.squeeze()) + (1 if y.dim() == 2 else 0),
            [(4, 5)],
            [(1, 3), (3, 1)],
        ),
        (
            lambda x: x + 1 if x.t().is_contiguous() else x - 1,
            [(4, 5)],
            [(1, 3)],
        ),
        (lambda x: {x.shape[0]: x}[x.shape[0]], [(2, 5)], [(3, 3)]),
        (lambda x: (x, f"{x.shape[1]} wide"), [(5, 3)], [(2, 4)]),
        (lambda x: x.expand(3, -1, -1).reshape(-1, x.shape[-1]), [(4, 5)], []),
        (lambda x: torch.einsum("ij,kj->ik", x, x), [(4, 5)], []),
        (lambda x: x.chunk(2, -1)[0], [(4, 3)], []),
        (lambda x: x.max(-1).values[:, None] + x, [(4, 5)], []),
        (
            lambda x: x * 2 if max(x.shape) < 2 * min(x.shape) else x,
            [(4, 5)],
            [(2, 5)],
        ),
    ],
)
def test_sizes_are_free_or_guarded(
    program: Callable[[torch.Tensor], AnyValue],
    others: list[tuple[int, int]],
    not_these: list[tuple[int, int]],
) -> None:
    gm = fx.trace(program, X)
    for shape in [(2, 3), *others]:
        assert right(program, gm, torch.randn(shape))
    for shape in not_these:
        assert "the trace relied on" in refused(gm, torch.randn(shape))


def test_the_error_names_input_line_and_way_out() -> None:
    gm = fx.trace(Net().eval(), torch.randn(2, 3, 4))
    said = refused(gm, torch.randn(5, 2, 4))
    assert said.startswith("x is not what the trace relied on, x.size(1) > 2")
    assert "x has the shape (5, 2, 4)" in said
    assert "if length > 2:" in said
    assert "test_trace.py" in said
    assert "Trace a second graph" in said
    said = refused(gm, torch.randn(2, 3, 4), torch.ones(1))
    assert said.startswith("mask is not what the trace relied on: it was None")
    assert "scale" in refused(gm, torch.randn(2, 3, 4), scale=3)


def test_sums_of_two_inputs_need_equal_sizes() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x + y) * (x + y).shape[0]

    gm = fx.trace(program, X, X + 1)
    assert right(program, gm, torch.ones(4, 5), torch.ones(4, 5) * 2)
    assert right(program, gm, torch.ones(1, 3), torch.ones(1, 3) * 2)
    assert "x.size(0) == y.size(0)" in refused(
        gm, torch.ones(1, 3), torch.ones(4, 3)
    )
    assert refused(gm, torch.ones(4, 1), torch.ones(4, 3))


def test_dynamic_says_which_sizes_may_vary() -> None:
    def program(x: torch.Tensor, more: AnyValue) -> AnyValue:
        return x * 2 + more["y"].sum()

    given = X, {"y": torch.ones(4)}
    fixed = fx.trace(program, *given, dynamic=False)
    assert "dynamic" in refused(fixed, torch.ones(3, 3), given[1])
    rows = fx.trace(program, *given, dynamic={"x": {0: True}})
    assert right(program, rows, torch.ones(5, 3), given[1])
    assert refused(rows, torch.ones(2, 4), given[1])
    assert refused(rows, X, {"y": torch.ones(5)})
    dim = torch.export.Dim("n", min=2, max=9)
    spec = {"x": (dim, None), "more": {"y": [torch.export.Dim.AUTO]}}
    gm = fx.trace(program, *given, dynamic=spec)
    assert right(program, gm, torch.ones(9, 3), {"y": torch.ones(7)})
    assert "x.size(0) <= 9" in refused(gm, torch.ones(10, 3), given[1])
    assert "x.size(0) >= 2" in refused(gm, torch.ones(1, 3), given[1])
    both = fx.trace(
        lambda x, y: (x, y), X, X + 1, dynamic={"x": {0: dim}, "y": {0: dim}}
    )
    assert refused(both, torch.ones(3, 3), torch.ones(4, 3))
    with pytest.raises(TypeError, match="dynamic= names 'z'"):
        fx.trace(program, *given, dynamic={"z": None})


# -- what else is relied on ----------------------------------------------------


@pytest.mark.parametrize(
    ("program", "given", "not_this"),
    [
        (lambda x: x * 2, X, X.double()),
        (lambda x: x * 2, X, X[0]),
        (
            lambda x: x * 2 if x.requires_grad else x,
            X,
            X.clone().requires_grad_(),
        ),
        (
            lambda x: x * 2 if (x + 1).requires_grad else x,
            X,
            X.clone().requires_grad_(),
        ),
        (lambda x: x * 2 if x.is_contiguous() else x, X, torch.ones(3, 2).t()),
        (lambda x: x * 2 if x.stride(0) > 1 else x, X, torch.ones(3, 2).t()),
        (lambda x: x[0] * x[1], (X, 3), (X, 4)),
        (lambda x: x[0] * x[1], (X, 3), (X, 3.0)),
        (lambda x: x[0] * x[1], (X, 1), (X, True)),
        (lambda x: x[0] * len(x), [X, X + 1], [X]),
        (lambda x: x["a"] * len(x), {"a": X}, {"a": X, "b": X}),
        (lambda x: x["a"], {"a": X}, {"b": X}),
    ],
)
def test_other_inputs_are_refused(
    program: Callable[[AnyValue], AnyValue], given: AnyValue, not_this: AnyValue
) -> None:
    gm = fx.trace(program, given)
    assert right(program, gm, given)
    assert "the trace relied on" in refused(gm, not_this)


def test_whether_two_inputs_are_one() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x * 2 if x is y else x + y

    gm = fx.trace(program, X, X)
    assert torch.equal(gm(X, X), X * 2)
    with pytest.raises(
        fx.GuardError, match=r"x and y are .*identities\(x, y\)"
    ):
        gm(X, X + 1)
    gm = fx.trace(program, X, X + 1)
    with pytest.raises(
        fx.GuardError, match=r"x and y are .*identities\(x, y\)"
    ):
        gm(X, X)


def test_facts_that_cannot_be_checked_are_listed() -> None:
    class Asks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            """Ask a parameter, and for the mode."""
            if self.weight.dtype == x.dtype:
                x = x * 2
            return F.dropout(x, 0.5, self.training)

    gm = fx.trace(Asks().eval(), X)
    told = "\n".join(gm.guards.unchecked)
    assert "training of the root was False" in told
    with pytest.raises(fx.GuardError, match=r"== torch.float32, asked"):
        gm.double()(X)
    gm.float()
    with pytest.warns(UserWarning, match="does not reach all"):
        gm.train()


def test_guards_can_be_read_and_switched_off() -> None:
    gm = fx.trace(lambda x: x * 2 if x.shape[0] > 1 else x, X)
    asked = next(guard for guard in gm.guards if guard.line)
    assert asked.expression == "x.size(0) > 1"
    assert asked.value is True
    assert "test_trace.py" in asked.line
    assert "x.size(0) > 1" in repr(gm.guards)
    gm.guards.enabled = False
    assert gm(torch.ones(1, 3)).sum() == 6  # wrong, and not checked
    assert fx.symbolic_trace(nn.ReLU()).guards == ()


# -- values that only exist at run time ----------------------------------------


def positive(x: torch.Tensor) -> torch.Tensor:
    """A branch on values."""
    return x * 2 if x.sum() > 0 else x


class Router:
    """Has a method that decides by values."""

    @staticmethod
    def route(x: torch.Tensor) -> torch.Tensor:
        """As the function."""
        return positive(x)


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x * x.sum().item(),
        lambda x: x if x.sum() > 0 else -x,
        lambda x: torch.tensor(x.tolist()),
        lambda x: torch.from_numpy(x.numpy() * 2),
        lambda x: int(x.sum()) * x,
        lambda x: x * 2 if torch.equal(x, x) else x,
    ],
)
def test_values_are_refused(program: Callable[[AnyValue], AnyValue]) -> None:
    with pytest.raises(fx.TraceError, match="values of a tensor") as raised:
        fx.trace(program, X)
    assert "torch.where" in str(raised.value)
    assert "test_trace.py" in str(raised.value)


def test_the_error_names_the_leaf_to_pass() -> None:
    name = f"{__name__}.positive"
    with pytest.raises(fx.TraceError, match=name):
        fx.trace(lambda x: positive(x) + 1, X)
    given: list[AnyValue] = [name, positive]
    for leaf in given:
        gm = fx.trace(lambda x: positive(x) + 1, X, leaves=[leaf])
        names = [node.name for node in gm.graph.nodes]
        assert names[2:] == ["positive", "of_kind", "add", "output"]
        inputs: list[torch.Tensor] = [X, X.neg(), torch.ones(4, 5)]
        for x in inputs:
            assert torch.equal(gm(x) - 1, positive(x))
    gm = fx.trace(lambda x: Router.route(x), X, leaves=[Router.route])
    assert torch.equal(gm(-X), -X)
    assert positive.__name__ == "positive"
    assert not hasattr(positive, "__wrapped__")


def test_what_follows_from_the_sizes_of_a_leaf_is_checked() -> None:
    with pytest.raises(fx.TraceError):
        fx.trace(chosen_rows, X)
    gm = fx.trace(chosen_rows, X + 1, leaves=[rows_of])
    assert torch.equal(gm(X + 1), chosen_rows(X + 1))
    with pytest.raises(fx.GuardError, match="the trace relied on"):
        gm(torch.tensor([[1.0, 2.0], [-1.0, 2.0]]))


def test_the_kind_of_what_a_leaf_gives_is_checked() -> None:
    gm = fx.trace(lambda x: kinds(x) + 1, X + 1, leaves=[kinds])
    gm.graph.eliminate_dead_code()
    gm.recompile()
    assert torch.equal(gm(X + 1), X + 2)
    with pytest.raises(fx.GuardError, match="and 2 dimensions"):
        gm(-X)
    with pytest.raises(fx.GuardError, match="is empty"):
        fx.trace(lambda x: rows_of(x), X + 1, leaves=[rows_of])(-X)


def kinds(x: torch.Tensor) -> torch.Tensor:
    """Decides by values which dtype it gives."""
    return x if x.sum() > 0 else x.double()


def rows_of(x: torch.Tensor) -> torch.Tensor:
    """The rows that begin with a positive number."""
    return x[x[:, 0] > 0]


def chosen_rows(x: torch.Tensor) -> torch.Tensor:
    """Asks for a size that only exists at run time."""
    rows = rows_of(x)
    return rows.sum(0) if rows.shape[0] > 1 else rows


def test_modules_are_leaves_by_object_and_path() -> None:
    class Decides(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            """Decide by values."""
            return positive(x)

    net = nn.Sequential(nn.Linear(3, 3), Decides())
    for leaf in ("1", net[1]):
        gm = fx.trace(net, X, leaves=[leaf])
        assert [n.target for n in gm.graph.nodes if n.op == "call_module"] == [
            *("_guards", "0", "1")
        ]
        assert right(net, gm, X)
        assert right(net, gm, -X)
    with pytest.raises(ValueError, match="no leaf has the path"):
        fx.trace(net, X, leaves=["nowhere.at_all"])


def test_a_number_that_a_leaf_makes_of_values_is_refused() -> None:
    with pytest.raises(fx.TraceError, match="values of a tensor"):
        fx.trace(lambda x: x * counted(x)[1], X, leaves=[counted])


def by_count(x: torch.Tensor) -> torch.Tensor:
    """Decides by what a leaf has made of values."""
    return x * counted(x)[1]


def test_the_leaf_to_pass_is_one_that_can_be_kept_whole() -> None:
    with pytest.raises(fx.TraceError, match=rf"\['{__name__}.by_count'\]"):
        fx.trace(lambda x: by_count(x), X, leaves=[counted])
    with pytest.raises(fx.TraceError, match="move it into a function"):
        fx.trace(positive, X)


def counted(x: torch.Tensor) -> tuple[torch.Tensor, int]:
    """A tensor, and a number of its values."""
    return x, int(x.sum())


def test_numbers_of_python_are_not_drawn_once() -> None:
    state = random.getstate()
    with pytest.raises(fx.TraceError, match="draws random numbers"):
        fx.trace(lambda x: x * random.random(), X)
    random.setstate(state)
    gm = fx.trace(lambda x: F.dropout(x + torch.rand(3), 0.5), X)
    torch.manual_seed(0)
    one = gm(X)
    assert not torch.equal(one, gm(X))


# -- signatures and structures -------------------------------------------------


def test_parameters_of_all_kinds() -> None:
    def program(
        x: AnyValue,
        y: AnyValue = 2,
        *rest: AnyValue,
        scale: AnyValue = 3,
        **more: AnyValue,
    ) -> AnyValue:
        return x * y * scale + sum(rest) + sum(more.values())

    gm = fx.trace(program, X, X + 1, X, scale=4, z=X)
    given: dict[str, AnyValue] = {"scale": 4, "z": X}
    assert same(gm(X, X + 1, X, **given), program(X, X + 1, X, **given))
    with pytest.raises(fx.GuardError, match="scale"):
        gm(X, X + 1, X, z=X)
    gm = fx.trace(program, x=X)
    assert same(gm(X), program(X))
    assert same(gm(x=X), program(X))
    with pytest.raises(TypeError, match="missing"):
        fx.trace(program)


def test_a_tensor_as_default_is_the_default() -> None:
    default = torch.full((3,), 2.0)

    def program(x: AnyValue, m: AnyValue = default) -> AnyValue:
        return x * m

    gm = fx.trace(program, X)
    assert right(program, gm, X)
    assert "m is not what" in refused(gm, X, torch.zeros(3))
    gm.guards.enabled = False
    assert torch.equal(gm(X), X * 2)


EMPTY: dict[str, int] = {}


def test_defaults_are_not_counted_among_the_containers() -> None:
    def program(
        x: AnyValue, options: AnyValue = EMPTY, held: AnyValue = None
    ) -> AnyValue:
        held.append(x)
        return options.get("k", 2) * x

    gm = fx.trace(program, X, held=[X + 1])
    held = [X + 1]
    assert torch.equal(gm(X, held=held), X * 2)
    assert same(held, [X + 1, X])
    assert refused(gm, X, {"k": 3}, held=[X + 1])


def test_operators_that_want_plain_numbers() -> None:
    def program(x: torch.Tensor) -> AnyValue:
        causal = bool(x.dim()) and x.shape[-2] > 1
        return F.scaled_dot_product_attention(x, x, x, is_causal=causal)

    gm = fx.trace(program, torch.randn(2, 3, 4))
    assert right(program, gm, torch.randn(2, 5, 4))
    assert refused(gm, torch.randn(2, 1, 4))


def test_a_program_must_not_change_torch() -> None:
    state = torch.get_rng_state()
    for change in (
        lambda: torch.manual_seed(3),
        lambda: torch.set_default_dtype(torch.float64),
    ):
        with pytest.raises(fx.TraceError, match="changes what later calls"):
            fx.trace(lambda x, c=change: (c(), x)[1], X)
    assert torch.equal(torch.get_rng_state(), state)
    gm = fx.trace(lambda math, torch: math + torch, X, X + 1)
    assert torch.equal(gm(X, X + 1), X + X + 1)


def test_functions_without_a_signature() -> None:
    gm = fx.trace(torch.add, X, X + 1)
    assert "def forward(self, *args, **kwargs):" in gm.code
    assert right(torch.add, gm, torch.ones(4, 5), torch.zeros(4, 5))


def test_decorated_programs() -> None:
    def decorated(f: Callable[..., AnyValue]) -> Callable[..., AnyValue]:
        @functools.wraps(f)
        def inner(*args: AnyValue, **kwargs: AnyValue) -> AnyValue:
            return f(*args, **kwargs)

        return inner

    program = decorated(lambda x, y=2: x * y)
    gm = fx.trace(program, X)
    assert "def forward(self, x, y = 2):" in gm.code
    assert right(program, gm, torch.ones(4, 4))


class Pair(NamedTuple):
    """Two things."""

    left: torch.Tensor
    right: int


@dataclasses.dataclass
class Record:
    """Two things."""

    left: torch.Tensor
    right: int = 3


@dataclasses.dataclass(slots=True)
class Slots:
    """Two things."""

    left: torch.Tensor
    right: int = 3


@pytest.mark.parametrize("kind", [Pair, Record, Slots])
def test_structures_go_in_and_out(kind: AnyValue) -> None:
    def program(pair: AnyValue) -> AnyValue:
        return kind(pair.left * pair.right, pair.right)

    gm = fx.trace(program, kind(X, 2))
    assert right(program, gm, kind(torch.ones(4, 4), 2))
    assert "right" in refused(gm, kind(X, 3))


class Cache:
    """Keeps tensors, as caches of language models do."""

    def __init__(self, *held: torch.Tensor) -> None:
        self.held = [*held]
        self.count = len(held)

    def update(self, x: torch.Tensor) -> torch.Tensor:
        """Keep one more."""
        self.held.append(x)
        self.count += 1
        return torch.cat(self.held)


def test_a_cache_among_the_inputs_is_updated() -> None:
    def program(x: torch.Tensor, cache: Cache) -> AnyValue:
        return cache.update(x)

    def returning(x: torch.Tensor, cache: Cache) -> AnyValue:
        return cache.update(x), cache

    for each in (program, returning):
        gm = fx.trace(each, X, Cache(X + 1))
        assert right(each, gm, torch.ones(4, 3), Cache(torch.zeros(5, 3)))
        assert "cache.held" in refused(gm, X, Cache())
        cache = Cache(X + 1)
        gm(X, cache)
        assert cache.count == 2
        assert same(cache.held, [X + 1, X])
        ran = fx.Interpreter(gm).run(X, cache := Cache(X + 1))
        assert same(ran, each(X, Cache(X + 1)))
        assert cache.count == 2


def decided(x: torch.Tensor, cache: Cache) -> torch.Tensor:
    """Decides by values, and keeps a tensor."""
    return cache.update(x * 2 if x.sum() > 0 else x)


def test_a_leaf_may_take_an_object() -> None:
    def program(x: torch.Tensor, cache: Cache) -> AnyValue:
        return cache.update(x + 1) * 2, cache.held[0]

    for leaf in (Cache.update, f"{__name__}.Cache.update"):
        gm = fx.trace(program, X, Cache(X + 1), leaves=[leaf])
        calls = [n for n in gm.graph.nodes if n.op == "call_function"]
        assert torch.cat not in [node.target for node in calls]
        assert right(program, gm, torch.ones(4, 3), Cache(torch.zeros(5, 3)))
        assert right(program, pickle.loads(pickle.dumps(gm)), X, Cache(X + 1))

    def values(x: torch.Tensor, cache: Cache) -> AnyValue:
        return decided(x, cache)

    gm = fx.trace(values, X, Cache(X + 1), leaves=[decided])
    for x in (X, -X):
        assert right(values, gm, x, Cache(X + 1))


def test_containers_among_the_inputs_are_updated() -> None:
    def program(
        x: torch.Tensor, held: AnyValue, named: AnyValue
    ) -> torch.Tensor:
        held.append(x * 2)
        named["new"] = named.pop("old") + 1
        return x

    gm = fx.trace(program, X, [X + 1], {"old": X + 2})
    assert right(program, gm, X, [X + 3], {"old": X + 5})


def test_results_of_many_kinds() -> None:
    weight = nn.Parameter(torch.ones(3))

    def program(x: torch.Tensor) -> AnyValue:
        rows = [x, x]
        return rows, rows, x, weight, torch.float32, None, slice(1, 2)

    gm = fx.trace(program, X)
    got = gm(X)
    assert got[0] is got[1]
    assert got[0][0] is got[2]
    assert got[4:] == (torch.float32, None, slice(1, 2))


# -- writes --------------------------------------------------------------------


def test_writes_and_views() -> None:
    def program(x: torch.Tensor) -> AnyValue:
        y = x[0]
        y += 1
        x[1] = 0
        x[:, 0].mul_(3)
        z = x.contiguous()
        z.add_(1)
        return x, y, z

    gm = fx.trace(program, X.clone())
    assert right(program, gm, torch.ones(4, 2))
    assert right(program, gm, torch.ones(2, 5))
    assert right(program, gm, torch.ones(3, 2).t())  # contiguous copies


def test_a_constant_is_not_written() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        made = torch.Tensor([1.0, 2.0, 3.0])  # which a mode does not see
        return made[:2].add_(x[0, :2])

    with pytest.raises(fx.TraceError, match="writes into a tensor"):
        fx.trace(program, X)
    gm = fx.trace(lambda x: x + torch.Tensor([1.0, 2.0, 3.0]), X)
    assert torch.equal(gm(X), X + torch.tensor([1.0, 2.0, 3.0]))


# -- blocks --------------------------------------------------------------------


def blocks(x: torch.Tensor) -> AnyValue:
    """Gradients are switched in many ways."""
    with torch.no_grad():
        y = x * 2
        with torch.enable_grad():
            z = x * 3
        with torch.set_grad_enabled(True):
            w = x * 4
        v = x * 5
    block = torch.no_grad()
    with torch.enable_grad():
        with block:
            with block:  # torch forgets what was before the first time
                u = x * 6
            t = x * 7
        s = x * 8
    return y, z, w, v, undecorated(x), u, t, s, x * 9


@torch.no_grad()
def undecorated(x: torch.Tensor) -> torch.Tensor:
    """In a block, too."""
    return x * 7


@pytest.mark.parametrize("traced", [True, False])
@pytest.mark.parametrize("called", [True, False])
def test_gradients_are_switched_and_put_back(
    traced: bool, called: bool
) -> None:
    x = X.clone().requires_grad_()
    with torch.set_grad_enabled(traced):
        gm = fx.trace(blocks, x)
    with torch.set_grad_enabled(called):
        assert same(gm(x), blocks(x))
        assert torch.is_grad_enabled() is called


def test_a_trace_in_inference_mode() -> None:
    net = Net().eval()
    x = torch.randn(2, 3, 4)
    with torch.inference_mode():
        gm = fx.trace(lambda x: net(x)["y"] + X.sum(), x)
        assert torch.equal(gm(x), net(x)["y"] + X.sum())


def test_autocast_and_inference_mode() -> None:
    def program(x: torch.Tensor) -> AnyValue:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ x.t()
        with torch.inference_mode():
            z = x * 2
        return y, z, x @ x.t()

    gm = fx.trace(program, X)
    y, z, w = gm(X)
    assert y.dtype == torch.bfloat16
    assert z.is_inference()
    assert not w.is_inference()
    assert right(program, gm, torch.ones(4, 5))


class Checkpointed(nn.Module):
    """A network with two checkpointed blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3))
        self.linear = nn.Linear(3, 3)

    def block(self, x: torch.Tensor, k: int = 1) -> AnyValue:
        """A method, with a number in its result."""
        return torch.sin(self.linear(x) * self.weight) * k, x.shape[0] * 2

    def forward(self, x: torch.Tensor) -> AnyValue:
        """Call both."""
        length = x.shape[0]
        y, n = checkpoint(self.block, x, k=3, use_reentrant=False)
        z = checkpoints.checkpoint(
            lambda v: v.sum(0) * length + x[0], y, use_reentrant=False
        )
        return y, n, z


def test_checkpointed_blocks_are_modules() -> None:
    net = Checkpointed()
    gm = fx.trace(net, X)
    called = [n for n in gm.graph.nodes if n.target is checkpoint]
    assert len(called) == 2
    assert not [name for name in vars(net) if "traced" in name]
    x = torch.randn(5, 3)
    saved = []
    for program in (net, gm):
        kept: list[torch.Tensor] = []

        def keep(t: torch.Tensor, kept: list[torch.Tensor] = kept) -> AnyValue:
            kept.append(t)
            return t

        hooks = torch.autograd.graph.saved_tensors_hooks
        with hooks(keep, lambda t: t):
            y, n, z = program(x)
        assert n == 10
        gradients = torch.autograd.grad(y.sum() + z.sum(), [*net.parameters()])
        saved.append((len(kept), y, z, gradients))
    assert saved[1][0] <= saved[0][0] + 1  # x, which a function may enclose
    assert same(saved[0][1:], saved[1][1:])
    again = pickle.loads(pickle.dumps(gm))
    assert same(again(x)[0], net(x)[0])


def test_functions_of_functions() -> None:
    def masked(x: torch.Tensor) -> AnyValue:
        rows, columns = torch.arange(x.shape[0]), torch.arange(x.shape[1])

        def one(row: AnyValue, column: AnyValue) -> AnyValue:
            return (column <= row) & (row >= 0)

        by_column = torch.vmap(one, in_dims=(None, 0))
        return torch.vmap(by_column, in_dims=(0, None))(rows, columns)

    assert right(masked, fx.trace(masked, X), torch.ones(4, 5))

    def rows(x: torch.Tensor) -> AnyValue:
        return torch.vmap(lambda row: row * 2 + x.sum() * x.shape[0])(x)

    gm = fx.trace(rows, X)
    assert torch.vmap in [node.target for node in gm.graph.nodes]
    assert right(rows, gm, torch.ones(4, 5))


def test_the_branches_of_cond_are_kept() -> None:
    def program(x: torch.Tensor) -> AnyValue:
        pred, branches = x.sum() > 0, (lambda v: v * 2 + x, lambda v: v * 3)
        return torch.cond(pred, *branches, (x,))

    gm = fx.trace(program, X)
    assert torch.cond in [node.target for node in gm.graph.nodes]
    assert torch.equal(gm.get_submodule("_traced1")(X), X * 3)
    with pytest.raises(fx.TraceError, match=r"branches of torch\.cond"):
        fx.trace(
            lambda x: torch.cond(
                x.sum() > 0, lambda v: v, lambda v: v.sum(), (x,)
            ),
            X,
        )


class Hundred(torch.autograd.Function):
    """Has a backward of its own."""

    @staticmethod
    def forward(ctx: AnyValue, x: AnyValue) -> AnyValue:
        """Twice."""
        return x * 2

    @staticmethod
    def backward(ctx: AnyValue, grad: AnyValue) -> AnyValue:
        """Not twice."""
        return grad * 100


def _scripted(x: torch.Tensor) -> torch.Tensor:
    """A scripted function."""
    return x * 2 + 1


scripted: AnyValue = torch.jit.script(_scripted)


def _compiled(x: torch.Tensor) -> torch.Tensor:
    return x * 3


compiled: AnyValue = torch.compile(_compiled)


def test_helpers_that_are_not_python() -> None:
    apply: AnyValue = Hundred.apply
    gm = fx.trace(lambda x: apply(x) + 1, X)
    x = X.clone().requires_grad_()
    (grad,) = torch.autograd.grad(gm(x).sum(), x)
    assert (grad == 100).all()
    gm = fx.trace(lambda x: scripted(x), X)
    assert scripted in [node.target for node in gm.graph.nodes]
    assert torch.equal(gm(X), X * 2 + 1)
    gm = fx.trace(lambda x: compiled(x), X)
    assert torch.equal(gm(torch.ones(4, 4)), torch.full((4, 4), 3.0))


def test_custom_operators() -> None:
    @torch.library.custom_op("fx_trace::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @torch.library.custom_op("fx_trace::unknown", mutates_args=())
    def unknown(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @twice.register_fake
    def _(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x)

    gm = fx.trace(lambda x: torch.ops.fx_trace.twice(x) + 1, X)
    assert torch.equal(gm(torch.ones(4, 4)), torch.full((4, 4), 3.0))
    gm = fx.trace(lambda x: torch.ops.fx_trace.unknown(x) + 1, X)
    assert torch.equal(gm(torch.ones(4, 4)), torch.full((4, 4), 3.0))


def test_what_cannot_be_seen_is_refused() -> None:
    with pytest.raises(fx.TraceError, match="no call of torch has made"):
        fx.trace(torch.func.grad(torch.sum), X)


# -- where guards go -----------------------------------------------------------


def guarded() -> tuple[AnyValue, AnyValue]:
    """A graph with nested inputs, and what refuses it."""
    gm = fx.trace(
        lambda x, more: {"y": x * more[0]} if len(x) > 1 else x, X, [X + 1]
    )
    return gm, (torch.ones(1, 3), [torch.ones(1, 3) * 2])


@pytest.mark.parametrize(
    "change",
    [
        copy.copy,
        copy.deepcopy,
        lambda gm: pickle.loads(pickle.dumps(gm)),
        lambda gm: fx.Transformer(gm).transform(),
        lambda gm: fx.GraphModule(gm, copy.deepcopy(gm.graph)),
    ],
)
def test_guards_survive(change: Callable[[AnyValue], AnyValue]) -> None:
    gm, other = guarded()
    new = change(gm)
    assert same(new(X, [X + 1]), {"y": X * (X + 1)})
    assert refused(new, *other)
    assert [*new.guards] == [*gm.guards]


def test_guards_survive_a_rewrite() -> None:
    gm, other = guarded()
    fx.replace_pattern(gm, lambda a, b: a * b, lambda a, b: a + b)
    assert same(gm(X, [X + 1]), {"y": X + (X + 1)})
    assert refused(gm, *other)


def test_an_interpreter_checks() -> None:
    gm, other = guarded()
    ways: list[Callable[..., AnyValue]] = [
        lambda x, more: fx.Interpreter(gm).run(x, more),
        lambda x, more: fx.Interpreter(gm).run(x=x, more_0=more[0]),
        lambda x, more: fx.Interpreter(gm).boxed_run([x, more[0]]),
    ]
    for way in ways:
        assert torch.equal(way(X, [X + 1])["y"], X * (X + 1))
        with pytest.raises(fx.GuardError):
            way(*other)
    with pytest.raises(fx.GuardError, match="it was a list of 1"):
        fx.Interpreter(gm).run(X, X + 1)
    with pytest.raises(RuntimeError, match="'more', which no placeholder"):
        fx.Interpreter(gm).run(x=X, more=[X + 1])


def test_guards_go_to_torch_and_back() -> None:
    gm, other = guarded()
    theirs = fx.to_torch(gm)
    assert same(theirs(X, [X + 1]), {"y": X * (X + 1)})
    ran = torch.fx.Interpreter(theirs).run(X, [X + 1])
    assert torch.equal(ran["y"], X * (X + 1))
    again = pickle.loads(pickle.dumps(theirs))
    assert isinstance(again, torch.fx.GraphModule)
    assert same(again(X, [X + 1]), {"y": X * (X + 1)})
    copies = theirs, copy.deepcopy(theirs), fx.from_torch(theirs), again
    for each in copies:
        assert refused(each, *other)
    assert [*fx.from_torch(theirs).guards] == [*gm.guards]


def test_blocks_and_late_checks_are_saved(tmp_path: Path) -> None:
    def program(x: torch.Tensor) -> AnyValue:
        with torch.no_grad(), torch.autocast("cpu"):
            y = x @ x.t()
        with torch.inference_mode():
            z = x * 2
        return (y if y.stride(0) > 1 else y + 1), z

    gm = fx.trace(program, X)
    gm.graph.eliminate_dead_code()
    fx.save(gm, tmp_path / "gm")
    assert right(program, fx.load(tmp_path / "gm"), X)


def test_guards_are_saved(tmp_path: Path) -> None:
    gm, other = guarded()
    fx.save(gm, tmp_path / "gm")
    new = fx.load(tmp_path / "gm")
    assert same(new(X, [X + 1]), {"y": X * (X + 1)})
    assert refused(new, *other)
    assert [*new.guards] == [*gm.guards]
    nested = fx.trace(lambda r: Record(r.left * r.right), Record(X))
    with pytest.raises(ValueError, match="Record' is not allowed"):
        fx.save(nested, tmp_path / "nested")
    fx.save(nested, tmp_path / "nested", allow=[Record])
    new = fx.load(tmp_path / "nested", allow=[Record])
    assert same(new(Record(X)), Record(X * 3))


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('x')",
        "x.__class__",
        "x.data.fill_(0)",
        "(lambda: 1)()",
        "[x for x in y]",
        "x.size(0) ** x.size(1)",
        "x.size(0) ** 99999999",
        "open('x')",
    ],
)
def test_a_file_cannot_say_any_expression(text: str) -> None:
    check("x.size(0) * 2 // 3 == max(1, x.size(1))", ["x"])
    with pytest.raises(ValueError, match="not the expression of a guard"):
        check(text, ["x"])


# -- other threads, and errors -------------------------------------------------


def test_other_threads_run_as_ever() -> None:
    started, done = threading.Event(), threading.Event()
    results: list[AnyValue] = []

    def program(x: torch.Tensor) -> torch.Tensor:
        started.set()
        done.wait(10)
        return positive(x)

    def other() -> None:
        started.wait(10)
        results.append((positive(-X), Net().eval()(torch.ones(1, 3, 4))))
        with torch.no_grad():
            results.append(torch.is_grad_enabled())
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    fx.trace(program, X, leaves=[positive])
    thread.join()
    assert torch.equal(results[0][0], -X)
    assert results[1] is False


def test_an_error_between_devices_names_the_inputs() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y

    with pytest.raises(fx.TraceError, match="x on cpu; y on meta") as raised:
        fx.trace(program, X, X.to("meta"))
    assert "return x + y" in str(raised.value)
    with pytest.raises(fx.TraceError, match=r"weight, bias on cpu"):
        fx.trace(nn.Linear(3, 3), X.to("meta"))
    gm = fx.trace(lambda x, y: x * y.shape[0], X, X.to("meta"))
    assert torch.equal(gm(X, X.to("meta")), X * 2)


def test_an_error_of_the_program_leaves_nothing_patched() -> None:
    before = nn.Module.__call__, torch.is_grad_enabled, hash(torch.SymInt)
    with pytest.raises(RuntimeError, match="must match"):
        fx.trace(lambda x: x + torch.ones(5), X, dynamic=False)
    with pytest.raises(ZeroDivisionError):
        fx.trace(lambda x: 1 / 0, X)
    after = nn.Module.__call__, torch.is_grad_enabled, hash(torch.SymInt)
    assert before == after


def test_import_fx_does_not_import_what_a_trace_needs() -> None:
    code = (
        "import sys, fx\n"
        "assert 'fx.extra.example_trace.trace' not in sys.modules\n"
        "assert 'sympy' not in sys.modules\n"
        "fx.trace\n"
        "assert 'torch._dynamo' not in sys.modules"
    )
    done = python("-c", code)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("kinds", "is_number"),
    [(int, True), ((str, int), True), (float, False), (torch.Tensor, False)],
)
def test_a_size_is_an_int_to_who_asks(kinds: AnyValue, is_number: bool) -> None:
    """Under a trace it is a SymInt, and the graph is for ints."""
    isinstance_before = isinstance

    def f(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if isinstance(x.shape[0], kinds) else x * 3

    def half(x: torch.Tensor) -> torch.Tensor:
        part: AnyValue = x.shape[0] / 2
        return x * 2 if isinstance(part, float) else x * 3

    x = torch.ones(4)
    assert torch.equal(fx.trace(f, x)(x), x * (2 if is_number else 3))
    assert torch.equal(fx.trace(half, x)(x), x * 2)
    assert "isinstance" not in globals()
    assert isinstance is isinstance_before


def test_who_asks_for_grad_fn_asks_whether_there_is_one() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.grad_fn is None else x * 3

    x = torch.ones(3)
    gm = fx.trace(f, x)
    assert torch.equal(gm(x), x * 2)
    with pytest.raises(fx.GuardError, match="requires_grad"):
        gm(torch.ones(3, requires_grad=True) * 1)
    leaf = torch.ones(3, requires_grad=True)
    with pytest.raises(fx.GuardError, match="is_leaf"):
        fx.trace(f, leaf)(leaf * 1)


def test_an_example_has_its_attributes_and_is_a_parameter() -> None:
    def forward(x: AnyValue) -> AnyValue:
        if isinstance(x, nn.Parameter):
            return x + 1
        return x * x.mine if hasattr(x, "mine") else x - 1

    plain, marked = torch.ones(2), torch.ones(2)
    marked.mine = 5.0  # type: ignore[attr-defined]
    for x in (plain, marked, nn.Parameter(torch.ones(2))):
        gm = fx.trace(forward, x)
        assert torch.equal(gm(x), forward(x))
    (said,) = fx.trace(forward, marked).guards.unchecked
    assert said == "x has attributes of its own, mine: the example"
    with pytest.raises(fx.GuardError, match="Parameter"):
        fx.trace(forward, plain)(nn.Parameter(plain))
    with pytest.raises(fx.GuardError, match="Parameter"):
        fx.trace(forward, nn.Parameter(plain))(plain)


def test_an_example_without_data_has_no_attributes_of_its_own() -> None:
    with FakeTensorMode():
        x = torch.ones(2, 3)
    gm = fx.trace(torch.relu, x)
    assert gm.guards.unchecked == []
    assert torch.equal(gm(-X), torch.zeros_like(X))


def test_an_example_of_a_class_of_ones_own_is_refused() -> None:
    class Marked(torch.Tensor):
        pass

    x = torch.ones(2).as_subclass(Marked)
    with pytest.raises(TypeError, match=r"an input is a .*Marked: a trace"):
        fx.trace(lambda x: x + isinstance(x, Marked), x)
