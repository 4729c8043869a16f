"""What a trace leaves on a module, and what it fixes of it."""

from __future__ import annotations

import copy
import functools
import pickle
import random
import re
import warnings
from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import finfo, nn

import fx
from fx.extra.watching.modes import MODES
from fx.extra.watching.switches import PLACES
from fx.passes.split_module import split_module

AnyValue: TypeAlias = Any


def warned(root: AnyValue) -> list[str]:
    """What a trace warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fx.symbolic_trace(root)
    return [str(one.message) for one in caught]


# -- proxies on the module -----------------------------


class Settings:
    """An object of the user's that a module has."""

    def __init__(self, every: list[AnyValue]) -> None:
        self.every = every


class Keeps(nn.Module):
    """Does something with itself, and returns its input."""

    def __init__(self, keep: Callable[[AnyValue, AnyValue], object]) -> None:
        super().__init__()
        self.keep = keep
        self.number = 0.0
        self.nothing: AnyValue = None
        self.feats: list[AnyValue] = [1]
        self.cache: dict[str, AnyValue] = {"a": 1}
        self.deep: AnyValue = [{"a": []}]
        self.names: set[AnyValue] = {"a"}
        self.queue: deque[AnyValue] = deque()
        self.settings = Settings([])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.keep(self, x)
        return x + 1


KEEPS: dict[str, Callable[[AnyValue, AnyValue], object]] = {
    "number": lambda m, x: setattr(m, "number", m.number * 0.5 + x),
    "nothing": lambda m, x: setattr(m, "nothing", x),
    "absent": lambda m, x: setattr(m, "absent", x),
    "absent_tuple": lambda m, x: setattr(m, "absent", (1, x)),
    "feats": lambda m, x: m.feats.append(x),
    "feats_item": lambda m, x: m.feats.__setitem__(0, x),
    "cache": lambda m, x: m.cache.update(a=x, b=x),
    "deep": lambda m, x: m.deep[0]["a"].append(x),
    "names_set": lambda m, x: m.names.add(x),
    "queue": lambda m, x: m.queue.append(x),
    "settings.last": lambda m, x: setattr(m.settings, "last", x),
    "settings": lambda m, x: m.settings.every.append(x),
    "absent_object": lambda m, x: setattr(m, "absent", Settings([x])),
    "number_deleted": lambda m, x: (
        m.__delattr__("nothing"),
        m.feats.append(x),
    ),
}


@pytest.mark.parametrize("name", KEEPS)
@pytest.mark.parametrize("is_child", [False, True])
def test_no_proxy_stays_on_the_module(name: str, is_child: bool) -> None:
    module = Keeps(KEEPS[name])
    before = copy.copy(vars(module)), [*module.feats], {**module.cache}
    inside = copy.deepcopy(vars(module.settings))
    root = nn.Sequential(module) if is_child else module
    said = warned(root)[-1]  # a set asks a proxy for its hash, with a warning
    path = ("0." if is_child else "") + name.partition("_")[0]
    assert path in said or "nothing" in said
    assert module.feats == before[1]
    assert module.cache == before[2]
    assert (module.deep, module.names) == ([{"a": []}], {"a"})
    assert not module.queue
    assert vars(module.settings) == inside
    if name != "number_deleted":  # nothing of a proxy
        assert vars(module) == before[0]


@pytest.mark.filterwarnings("ignore:the hash of")
@pytest.mark.parametrize("name", KEEPS)
def test_nor_after_a_trace_that_failed(name: str) -> None:
    def keep(module: AnyValue, x: AnyValue) -> None:
        KEEPS[name](module, x)
        raise ValueError("it fails")

    module = Keeps(keep)
    with pytest.raises(ValueError, match="it fails"):
        fx.symbolic_trace(module)
    assert "Proxy(" not in repr((vars(module), vars(module.settings)))
    assert module.feats == [1]


class Last(nn.Module):
    """Keeps what it computes on its class, and counts its calls there."""

    calls = 0
    last: AnyValue = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        Last.calls += 1
        Last.last = x + 1
        return x + 1


def test_no_proxy_stays_on_the_class() -> None:
    (said,) = warned(nn.Sequential(Last()))
    assert "in the place of Last.calls, Last.last while" in said
    assert Last.last is None
    assert Last.calls == 1


def test_a_number_that_is_counted_is_warned_of_and_stays() -> None:
    module = Keeps(lambda m, x: setattr(m, "number", m.number + 1))
    (said,) = warned(module)
    assert said.startswith("the code put another value in the place of number")
    assert module.number == 1.0


def test_what_the_trace_stores_itself_is_not_warned_of() -> None:
    class Constant(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + torch.ones(2)

    module = Constant()
    assert warned(module) == []
    assert torch.is_tensor(module._tensor_constant0)


# -- what is fixed -----------------------------


class Drops(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.dropout(x, 0.5, training=self.training)


class Branches(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if self._is_on() else x

    def _is_on(self) -> bool:
        return self.training


def doubled_in_training(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return x * 2 if module.training else x


MODE: Final = "training"


class Asks(nn.Module):
    """Has others ask for its mode."""

    def __init__(self, ask: Callable[[AnyValue, AnyValue], AnyValue]) -> None:
        super().__init__()
        self.ask = ask

    def forward(self, x: torch.Tensor) -> AnyValue:
        return self.ask(self, x)


class Has(nn.Module):
    def __init__(self, child: nn.Module) -> None:
        super().__init__()
        self.child = child
        self.drop = nn.Dropout()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        dropped: torch.Tensor = self.drop(self.child(x))
        return dropped


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    ("root", "where"),
    [
        (Drops(), "in the root."),
        (Branches(), "in the root."),
        (Has(Drops()), "in child."),
        (nn.Sequential(Branches(), Drops()), "in 0, 1."),
        (Asks(doubled_in_training), "in the root."),
        (Asks(lambda m, x: x if getattr(m, MODE) else -x), "in the root."),
        (Has(Asks(lambda m, x: doubled_in_training(m, x))), "in child."),
    ],
)
def test_a_change_of_the_mode_is_warned_of(
    root: nn.Module, where: str, training: bool
) -> None:
    gm = fx.symbolic_trace(root.train(training))
    gm.train(training)  # as it was
    other = "eval()" if training else "train()"
    for module in (gm, copy.deepcopy(gm), pickle.loads(pickle.dumps(gm))):
        with pytest.warns(UserWarning, match=r"does not reach all") as caught:
            module.train(not training)
        said = str(caught[0].message)
        assert said.startswith(other)
        assert where in said
        assert module.training is not training


def test_split_modules_and_second_traces_keep_the_note() -> None:
    gm = fx.symbolic_trace(Drops())
    for module in (split_module(gm, gm, lambda n: 0), fx.symbolic_trace(gm)):
        with pytest.warns(UserWarning, match=r"does not reach all"):
            module.eval()


def test_modules_that_are_called_follow_the_mode() -> None:
    gm = fx.symbolic_trace(Has(nn.Linear(2, 2)))
    assert torch.equal(gm.eval()(torch.ones(2)), gm(torch.ones(2)))
    gm.train()


def test_a_child_kept_in_another_mode_on_purpose_is_quiet() -> None:
    root = Has(Drops()).train()
    root.child.eval()
    gm = fx.symbolic_trace(root)
    gm.train()
    gm.eval()


def test_hooks_of_a_module_that_is_traced_into_are_warned_of() -> None:
    class Sub(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    root, kept = Has(Sub()), []
    root.child.register_forward_hook(lambda m, args, out: kept.append(out))
    (said,) = warned(root)
    assert said.startswith("child, a Sub, is traced into and has hooks")


def test_hooks_of_a_leaf_run_as_ever() -> None:
    root, kept = Has(nn.Linear(2, 2)), []
    root.child.register_forward_hook(lambda m, args, out: kept.append(out))
    assert warned(root) == []
    fx.symbolic_trace(root)(torch.ones(2))
    assert len(kept) == 1


# -- objects, switches, stacks -----------------------------


class Bag(metaclass=fx.ProxyableClassMeta):
    def __init__(self, *items: AnyValue) -> None:
        self.items = [*items]


def test_an_object_that_was_filled_with_proxies_is_refused() -> None:
    def filled(x: AnyValue) -> Bag:
        bag = Bag()
        bag.items.append(x)
        return bag

    with pytest.raises(fx.TraceError, match=r"made without a proxy holds"):
        fx.symbolic_trace(filled)
    made = fx.symbolic_trace(lambda x: Bag(x))(torch.ones(1))
    assert torch.equal(made.items[0], torch.ones(1))


def test_a_switch_is_warned_of_where_the_user_calls_it() -> None:
    def block(x: torch.Tensor) -> torch.Tensor:
        with torch.autograd.graph.save_on_cpu():
            return x * x

    def again(x: torch.Tensor) -> AnyValue:
        return torch.utils.checkpoint.checkpoint(
            torch.sin, x, use_reentrant=False
        )

    def on_meta(x: torch.Tensor) -> torch.Tensor:
        with torch.device("cpu"):
            return x + torch.zeros(2)

    for function, name in (
        (block, "save"),
        (again, "checkpoint is called"),
        (on_meta, "a device, as a context manager, is called"),
    ):
        said = warned(function)
        assert len(said) == 1, said
        assert name in said[0]


def test_the_stacks_of_inputs_and_output_are_the_users() -> None:
    def f(x: torch.Tensor) -> tuple[torch.Tensor, torch.Size]:
        return x + 1, x.shape

    tracer = fx.Tracer()
    tracer.record_stack_traces = True
    first, add, *outside = tracer.trace(f).nodes
    assert len(outside) == 2
    assert not any(node.stack_trace for node in (first, *outside))
    assert add.stack_trace
    assert add.stack_trace.endswith("return x + 1, x.shape")


# -- errors -----------------------------


ADVICE: dict[str, tuple[Callable[[AnyValue], object], str]] = {
    "range": (lambda x: list(range(x.shape[0])), "A loop over range(n)"),
    "int": (lambda x: int(x.sum()), "needs a number"),
    "round": (lambda x: round(x.shape[0]), "needs a number"),
    "percent": (lambda x: "%d" % x.shape[0], "needs a number"),  # noqa: UP031
    "format": (lambda x: f"{x.shape[0]:d}", "needs a number"),
    "tensor": (lambda x: torch.tensor(x.shape[0]), "torch.full((), n)"),
    "zeros": (lambda x: torch.zeros(x.shape[0], 3), "torch.zeros((n, m))"),
    "finfo": (lambda x: torch.finfo(x.dtype), "torch.finfo(torch.float32)"),
    "slice": (lambda x: torch.ones(4)[: x.shape[0]], "torch.narrow"),
    "index": (lambda x: [1, 2][x.shape[0]], "needs a number"),
    "key": (lambda x: {1: 2}[x.shape[0]], "A dict finds its keys"),
    "module": (lambda x: nn.Linear(2, 2)(x), "in __init__"),
    "vmap": (lambda x: torch.vmap(torch.sin)(x), "transforms of torch.func"),
    "jvp": (lambda x: torch.func.jvp(torch.sin, (x,), (x,)), "fx.wrap"),
}


@pytest.mark.parametrize("name", ADVICE)
@pytest.mark.filterwarnings("ignore:the hash of")
def test_an_error_of_python_gets_the_line_and_a_way_out(name: str) -> None:
    function, advice = ADVICE[name]
    with pytest.raises(Exception) as raised:  # of any type
        fx.symbolic_trace(function)
    notes = "".join(getattr(raised.value, "__notes__", ()))
    assert notes.startswith("This was raised while fx traced\n  File ")
    assert f'"{__file__}"' in notes
    assert advice in notes


@pytest.mark.parametrize("kind", ["finfo", "iinfo"])
def test_the_limits_of_an_unknown_dtype_are_refused(kind: str) -> None:
    """Unrefused, `torch.iinfo` takes any object for uint8."""
    limits = getattr(torch, kind)

    def clamped(x: torch.Tensor) -> torch.Tensor:
        return x.clamp(max=getattr(torch, kind)(x.dtype).max)

    def imported(x: torch.Tensor) -> torch.Tensor:
        return x.clamp(max=finfo(x.dtype).max)

    def by_name(x: torch.Tensor) -> torch.Tensor:
        return x.clamp(max=getattr(torch, kind)(type=x.dtype).max)

    for function in (clamped, by_name, imported):
        with pytest.raises(TypeError, match=r"takes a dtype, and .*getattr_1"):
            fx.symbolic_trace(function)
    assert getattr(torch, kind) is limits


def places_in_torch() -> list[tuple[AnyValue, str]]:
    """Where a trace replaces functions of torch: a namespace and a name."""
    found = [(vars(torch), "finfo"), (vars(torch), "iinfo")]
    for holder, names in (*PLACES, *MODES):
        if isinstance(holder, dict):
            found += [(holder, name) for name in names]
    return found


@pytest.mark.filterwarnings("ignore")
def test_what_a_library_has_put_over_a_function_of_torch_is_called() -> None:
    """As the tracer of transformers does, which records `torch.finfo`."""
    for holder, name in places_in_torch():
        called: list[AnyValue] = []

        def calls(x: torch.Tensor) -> torch.Tensor:
            holder[name](x.dtype)  # noqa: B023
            return x

        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(holder, name, called.append)
            fx.symbolic_trace(calls)
        assert len(called) == 1, name


def test_the_limits_of_a_dtype_are_known_while_tracing() -> None:
    seen: list[object] = []

    def clamped(x: torch.Tensor) -> torch.Tensor:
        limits = torch.iinfo(torch.int16)
        seen.append(torch.iinfo in {type(limits)})
        seen.append(type(limits) in {torch.iinfo})
        seen.append(isinstance(limits, torch.iinfo))
        seen.append(isinstance(torch.finfo(), torch.iinfo))
        return x.clamp(max=limits.max)

    gm = fx.symbolic_trace(clamped)
    assert "max = 32767" in gm.code
    assert seen == [True, True, True, False]


def test_an_assignment_to_an_item_gets_both() -> None:
    def assigns(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        y[0] = 3
        return y

    with pytest.raises(TypeError) as raised:
        fx.symbolic_trace(assigns)
    (note,) = raised.value.__notes__
    assert "y[0] = 3" in note
    assert "y[i].copy_(v)" in note


def test_the_advice_works() -> None:
    def advised(x: torch.Tensor) -> AnyValue:
        n = x.shape[0]
        y = x + 1
        y[0].copy_(x[1])
        return (
            y,
            torch.zeros((n,)),
            x.new_zeros(n),
            torch.full((), n),
            torch.narrow(torch.arange(5), 0, 0, n),
        )

    x = torch.arange(3.0)
    got, expected = fx.symbolic_trace(advised)(x), advised(x)
    assert all(torch.equal(a, b) for a, b in zip(got, expected, strict=True))


def _by_dtype(x: AnyValue) -> AnyValue:
    return x + 1 if x.dtype == torch.float32 and x.shape[0] > 1 else x


def _starred(x: AnyValue) -> AnyValue:
    return torch.stack([*x])


def _of_a_dict(x: AnyValue) -> AnyValue:
    def add(a: AnyValue) -> AnyValue:
        return a + 1

    return add(**x)


def _long(x: AnyValue) -> AnyValue:
    return x * len(x) + sum(range(x.shape[0]))


class _Decorated(nn.Module):
    def forward(self, x: AnyValue, **more: AnyValue) -> AnyValue:
        return x + 1 if not more else x


def _checked(forward: Callable[..., AnyValue]) -> Callable[..., AnyValue]:
    @functools.wraps(forward)
    def checked(self: nn.Module, *args: AnyValue, **more: AnyValue) -> AnyValue:
        return forward(self, *args, **more)

    return checked


@pytest.mark.parametrize(
    ("root", "given"),
    [
        (_by_dtype, torch.ones(2)),
        (_starred, torch.ones(2)),
        (_of_a_dict, {"a": torch.ones(2)}),
        (_long, torch.ones(2)),
        (_Decorated, torch.ones(2)),
    ],
)
def test_first_advice_is_a_trace_on_an_example(
    root: AnyValue, given: AnyValue, monkeypatch: pytest.MonkeyPatch
) -> None:
    if root is _Decorated:
        monkeypatch.setattr(root, "forward", _checked(root.forward))
        root = root()
    with pytest.raises(Exception, match=r"Proxy|decorated") as raised:
        fx.symbolic_trace(root)
    said = [str(raised.value), *getattr(raised.value, "__notes__", ())]
    told = [text for text in said if "fx.trace(root, *inputs)" in text]
    before = told[0].partition("fx.trace(root")[0]
    assert not re.search(
        "concrete_args|fx.wrap|[Ww]rite|Unpack|Give it", before
    )
    gm = fx.trace(root, given)  # and that is the way out
    assert torch.equal(gm(given), root(given))


@pytest.mark.parametrize(
    "root",
    [
        lambda x: x if x.sum() > 0 else -x,
        lambda size: size if size else 0,
        lambda x: x if x.max(0).values + x.shape[0] else 0,
    ],
)
def test_no_trace_on_an_example_is_advised_for_values(root: AnyValue) -> None:
    with pytest.raises(fx.proxy.TraceError) as raised:
        fx.symbolic_trace(root)
    assert "fx.trace" not in str(raised.value)


def test_an_error_about_something_else_is_left_as_it_is() -> None:
    def fails(x: torch.Tensor) -> torch.Tensor:
        raise TypeError("mine")

    with pytest.raises(TypeError) as raised:
        fx.symbolic_trace(fails)
    assert not hasattr(raised.value, "__notes__")


def test_a_bound_method_is_told_how_to_trace_it() -> None:
    class Net(nn.Module):
        def encode(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    net = Net()
    with pytest.raises(AssertionError, match="traced_func_name = 'encode'"):
        fx.symbolic_trace(net.encode)
    tracer = fx.Tracer()
    tracer.traced_func_name = "encode"
    gm = fx.GraphModule(net, tracer.trace(net))
    assert torch.equal(gm(torch.ones(1)), torch.full((1,), 2.0))


@pytest.mark.parametrize(
    "draw",
    [lambda: torch.rand(2), lambda: random.random(), lambda: np.random.rand()],
)
def test_random_numbers_that_become_constants(
    draw: Callable[[], AnyValue],
) -> None:
    with pytest.warns(UserWarning, match="random numbers while tracing") as w:
        fx.symbolic_trace(lambda x: x + draw())
    assert w[0].filename == __file__
    assert "torch.rand_like(x)" in str(w[0].message)
    assert not hasattr(torch.rand, "__wrapped__")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fx.symbolic_trace(lambda x: x + torch.rand_like(x))
