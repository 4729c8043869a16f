"""Programs that do with a proxy what cannot simply be recorded.

Each is traced as a root, as a child and inside a function, and then called
several times beside eager. It has to give the same, or to have been refused or
warned of while it was traced: what must not be is a wrong result in silence.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import math
import random
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, Final, TypeAlias

import torch
import torch.nn.functional as F
from torch import nn

import fx

from .part import Outcome, Part, Plant

AnyValue: TypeAlias = Any
Body: TypeAlias = Callable[["Subject", AnyValue], AnyValue]


class Subject(nn.Module):
    """What the programs find: a parameter, buffers, a tensor, modules."""

    total: torch.Tensor
    count: torch.Tensor

    def __init__(self, body: Body) -> None:
        super().__init__()
        self.body = body
        self.weight = nn.Parameter(torch.tensor([2.0, 3.0]))
        self.register_buffer("total", torch.zeros(2))
        self.register_buffer("count", torch.zeros(()))
        self.plain = torch.zeros(2)
        self.steps = 1
        self.before: AnyValue = None
        self.kept: list[AnyValue] = [0.0]
        self.named: dict[str, AnyValue] = {}
        self.nested: dict[str, list[AnyValue]] = {"in": [0.0]}
        self.queue: deque[AnyValue] = deque([0.0], maxlen=2)
        self.settings = SimpleNamespace(last=0.0, n=1)
        self.several: set[AnyValue] = set()
        self.relu = nn.ReLU(inplace=True)
        self.same = nn.Identity()
        self.compiled = torch.compile(_plus_one, backend="eager")

    def forward(self, x: torch.Tensor) -> AnyValue:
        return self.body(self, x)


class Parent(nn.Module):
    """Calls a subject as its child."""

    def __init__(self, body: Body) -> None:
        super().__init__()
        self.child = Subject(body)

    def forward(self, x: torch.Tensor) -> AnyValue:
        return self.child(x * 1)


def _plus_one(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def as_function(body: Body) -> Callable[[torch.Tensor], AnyValue]:
    """A root that is a function, and has the subject in its closure."""
    subject = Subject(body)

    def root(x: torch.Tensor) -> AnyValue:
        return body(subject, x)

    return root


ROOTS: Final[dict[str, Callable[[Body], AnyValue]]] = {
    "module": Subject,
    "child": Parent,
    "function": as_function,
}

BODIES: Final[dict[str, Body]] = {}


def body(function: Body) -> Body:
    """Take a program into the table."""
    BODIES[function.__name__] = function
    return function


# -- writes into tensors that are not proxies --------------------------------


@body
def out_then_read(self: Subject, x: AnyValue) -> AnyValue:
    t = torch.zeros(2)
    torch.add(x, 1, out=t)
    return t * 2


@body
def in_place_then_read(self: Subject, x: AnyValue) -> AnyValue:
    t = torch.zeros(2)
    t.add_(x)
    return t * 2


@body
def in_place_then_returned(self: Subject, x: AnyValue) -> AnyValue:
    return torch.zeros(2).add_(x)


@body
def item_then_read(self: Subject, x: AnyValue) -> AnyValue:
    t = torch.zeros(2)
    t[0] = x[0]
    return t + 1


@body
def copy_then_number(self: Subject, x: AnyValue) -> AnyValue:
    t = torch.zeros(2)
    t.copy_(x)
    return x + t.sum().item()


@body
def view_then_read(self: Subject, x: AnyValue) -> AnyValue:
    t = torch.zeros(2)
    t[1:].copy_(x[:1])
    return t + 1


@body
def operator_in_place_then_read(self: Subject, x: AnyValue) -> AnyValue:
    t = torch.zeros(2)
    kept = t
    t += x
    return kept * 3


@body
def aten_in_place_then_read(self: Subject, x: AnyValue) -> AnyValue:
    t = torch.zeros(2)
    torch.ops.aten.add_.Tensor(t, x)
    return t * 3


@body
def recorded_then_in_place(self: Subject, x: AnyValue) -> AnyValue:
    total, factor = x, torch.ones(2)
    for _ in range(3):
        total = total + x * factor
        factor *= 0.5
    return total


@body
def recorded_then_out(self: Subject, x: AnyValue) -> AnyValue:
    t = torch.zeros(2)
    y = x + t
    torch.ones(2, out=t)
    return y


ALIASES: Final[dict[str, Callable[[AnyValue, AnyValue], AnyValue]]] = {
    "to": lambda t, x: t.to(x.device),
    "to_dtype": lambda t, x: t.to(dtype=x.dtype),
    "type_as": lambda t, x: t.type_as(x),
    "view_as": lambda t, x: t.view_as(x),
    "reshape": lambda t, x: t.reshape(x.size(0)),
    "expand": lambda t, x: t.expand(x.size(0)),
    "narrow": lambda t, x: t.narrow(0, 0, x.size(0)),
    "torch_narrow": lambda t, x: torch.narrow(t, 0, 0, x.size(0)),
    "then_item": lambda t, x: t.to(x.device)[:],
    "then_method": lambda t, x: torch.squeeze(t.to(x.device)).view(2),
    "unbind": lambda t, x: t.expand(x.size(0), 2).unbind()[0],
    "attribute": lambda t, x: t.view_as(x).T,
}
"""Ways to another tensor in the memory of one, all of which are recorded."""


def _into_alias(
    held: bool, alias: Callable[[AnyValue, AnyValue], AnyValue]
) -> Body:
    """A program that writes into an alias of a tensor without a proxy."""

    def into_alias(self: Subject, x: AnyValue) -> AnyValue:
        t = self.total if held else torch.zeros(2)
        alias(t, x).add_(x)
        return t * 1

    return into_alias


@body
def into_what_a_leaf_returns(self: Subject, x: AnyValue) -> AnyValue:
    self.same(self.total).add_(x)
    return self.total * 1


@body
def magic_method_in_place(self: Subject, x: AnyValue) -> AnyValue:
    self.total.view_as(x).__iadd__(x)
    return self.total * 1


for _name, _alias in ALIASES.items():
    BODIES[f"made_{_name}"] = _into_alias(False, _alias)
    BODIES[f"held_{_name}"] = _into_alias(True, _alias)


@body
def buffer_then_read(self: Subject, x: AnyValue) -> AnyValue:
    self.total.add_(x)
    return self.total * 2


@body
def moving_average(self: Subject, x: AnyValue) -> AnyValue:
    self.total.mul_(0.5).add_(x)
    return x - self.total


@body
def buffer_of_a_number(self: Subject, x: AnyValue) -> AnyValue:
    self.count.add_(x.sum())
    return x * float(self.count)


@body
def counted(self: Subject, x: AnyValue) -> AnyValue:
    self.count += 1
    return x * self.count


@body
def buffer_bound_anew(self: Subject, x: AnyValue) -> AnyValue:
    self.total = self.total + 1
    return x * self.total


@body
def buffer_bound_to_a_result(self: Subject, x: AnyValue) -> AnyValue:
    self.total = self.total + x
    return x * self.total


@body
def attribute_bound_anew(self: Subject, x: AnyValue) -> AnyValue:
    self.plain = self.plain * 0.5 + 1
    return x + self.plain


@body
def attribute_bound_to_a_result(self: Subject, x: AnyValue) -> AnyValue:
    y = self.plain + x
    self.plain = x
    return y


@body
def attribute_then_read(self: Subject, x: AnyValue) -> AnyValue:
    self.plain.copy_(x)
    return self.plain + self.plain


@body
def module_in_place_then_read(self: Subject, x: AnyValue) -> AnyValue:
    self.plain.copy_(x - 2)
    self.relu(self.plain)
    return self.plain + 1


@body
def index_put_then_read(self: Subject, x: AnyValue) -> AnyValue:
    t = torch.zeros(2)
    t.index_put_((torch.tensor([0]),), x[:1])
    return t + x


@body
def out_in_a_tuple(self: Subject, x: AnyValue) -> AnyValue:
    values, places = torch.zeros(()), torch.zeros((), dtype=torch.long)
    torch.max(x, 0, out=(values, places))
    return values + 1


@body
def foreach_then_read(self: Subject, x: AnyValue) -> AnyValue:
    t = torch.zeros(2)
    torch._foreach_add_([t], [x])
    return t * 2


@body
def where_out(self: Subject, x: AnyValue) -> AnyValue:
    t = torch.zeros(2)
    torch.where(x > 0, x, -x, out=t)
    return t.sum()


@body
def parameter_in_place(self: Subject, x: AnyValue) -> AnyValue:
    with torch.no_grad():
        self.weight.add_(x)
    return self.weight * 1


# -- what a module keeps -----------------------------------------------------


@body
def number_counted(self: Subject, x: AnyValue) -> AnyValue:
    self.steps += 1
    return x * self.steps


@body
def none_bound_to_an_input(self: Subject, x: AnyValue) -> AnyValue:
    y = x if self.before is None else x + self.before
    self.before = x
    return y


@body
def new_attribute(self: Subject, x: AnyValue) -> AnyValue:
    y = getattr(self, "absent", 0.0) + x
    self.absent = x
    return y


@body
def item_of_a_list(self: Subject, x: AnyValue) -> AnyValue:
    y = self.kept[-1] + x
    self.kept[0] = x
    return y


@body
def appended_to_a_list(self: Subject, x: AnyValue) -> AnyValue:
    self.kept.append(x)
    return x * len(self.kept)


@body
def item_of_a_dict(self: Subject, x: AnyValue) -> AnyValue:
    y = self.named.get("last", 0.0) + x
    self.named["last"] = x
    return y


@body
def proxy_in_a_tuple(self: Subject, x: AnyValue) -> AnyValue:
    y = x if self.before is None else x + self.before[0]
    self.before = (x, 1)
    return y


@body
def kept_in_a_list_in_a_dict(self: Subject, x: AnyValue) -> AnyValue:
    y = self.nested["in"][0] + x
    self.nested["in"][0] = x
    return y


@body
def kept_in_a_deque(self: Subject, x: AnyValue) -> AnyValue:
    y = self.queue[-1] + x
    self.queue.append(x)
    return y


@body
def kept_in_a_set(self: Subject, x: AnyValue) -> AnyValue:
    self.several.add(len(self.several))
    return x * len(self.several)


@body
def kept_in_an_object(self: Subject, x: AnyValue) -> AnyValue:
    y = self.settings.last + x
    self.settings.last = x
    return y


@body
def kept_in_an_object_as_a_number(self: Subject, x: AnyValue) -> AnyValue:
    self.settings.n += 1
    return x * self.settings.n


@body
def kept_in_a_new_buffer(self: Subject, x: AnyValue) -> AnyValue:
    y = self.same._buffers.get("last", torch.zeros(2)) + x
    self.same.register_buffer("last", x)
    return y


# -- the mode of training, which is changed after the trace ------------------


@body
def mode_of_the_root(self: Subject, x: AnyValue) -> AnyValue:
    return x * 2 if self.training else x


@body
def mode_of_a_child(self: Subject, x: AnyValue) -> AnyValue:
    return x * 2 if self.same.training else x


@body
def mode_by_its_name(self: Subject, x: AnyValue) -> AnyValue:
    name = "training"
    return x * 2 if getattr(self, name) else x


def _is_on(module: nn.Module) -> bool:
    return module.training


@body
def mode_by_a_function(self: Subject, x: AnyValue) -> AnyValue:
    return x * 2 if _is_on(self) else x


@body
def mode_by_a_partial(self: Subject, x: AnyValue) -> AnyValue:
    return x * 2 if functools.partial(_is_on, self)() else x


# -- assigned attributes -----------------------------------------------------


@body
def data_assigned(self: Subject, x: AnyValue) -> AnyValue:
    y = x + 0
    y.data = x * 5
    return y + 1


@body
def data_of_an_attribute(self: Subject, x: AnyValue) -> AnyValue:
    y = x * 1
    y.data.mul_(2)
    return y + 1


@body
def real_assigned(self: Subject, x: AnyValue) -> AnyValue:
    y = torch.complex(x, x)
    y.real = x * 3
    return y * 2


@body
def imag_assigned(self: Subject, x: AnyValue) -> AnyValue:
    y = torch.complex(x, x)
    y.imag = x * 0 + 7
    return y * 2


@body
def requires_grad_assigned(self: Subject, x: AnyValue) -> AnyValue:
    y = x.detach().clone()
    y.requires_grad = True
    return (y * 2).requires_grad, y * 2


@body
def grad_assigned(self: Subject, x: AnyValue) -> AnyValue:
    y = x.detach().clone()
    y.grad = x * 2
    return y.grad + 1


@body
def own_attribute(self: Subject, x: AnyValue) -> AnyValue:
    x.note = 3
    return x + x.note


@body
def attribute_deleted(self: Subject, x: AnyValue) -> AnyValue:
    y = x.detach().clone()
    del y.grad
    return y + 1


@body
def setattr_called(self: Subject, x: AnyValue) -> AnyValue:
    y = x * 1
    setattr(y, "data", x + 4)  # noqa: B010
    return y


@body
def item_of_a_proxy(self: Subject, x: AnyValue) -> AnyValue:
    y = x * 1
    y[0] = 3
    return y


@body
def item_deleted(self: Subject, x: AnyValue) -> AnyValue:
    y = [x, x]
    del y[0]
    del x[0]
    return y


# -- modes -------------------------------------------------------------------


@body
def gradients_off(self: Subject, x: AnyValue) -> AnyValue:
    with torch.no_grad():
        y = self.weight * x
    return y.requires_grad, y


@body
def gradients_off_by_a_decorator(self: Subject, x: AnyValue) -> AnyValue:
    y = torch.no_grad()(lambda: self.weight * x)()
    return y.requires_grad, y


@body
def gradients_off_by_a_call(self: Subject, x: AnyValue) -> AnyValue:
    torch.set_grad_enabled(False)
    try:
        y = self.weight * x
    finally:
        torch.set_grad_enabled(True)
    return y.requires_grad, y


@body
def inference(self: Subject, x: AnyValue) -> AnyValue:
    with torch.inference_mode():
        y = x * 2
    return y.is_inference(), y


@body
def cast(self: Subject, x: AnyValue) -> AnyValue:
    with torch.autocast("cpu"):
        return x[None] @ x[:, None]


@body
def cast_not_inside(self: Subject, x: AnyValue) -> AnyValue:
    with torch.autocast("cpu"):
        y = x[None] @ x[:, None]
        with torch.autocast("cpu", enabled=False):
            return y.float() @ x[None] * 1.1


# -- questions about what an object is ---------------------------------------


@body
def called_callable(self: Subject, x: AnyValue) -> AnyValue:
    return x + (1 if callable(x) else 2)


@body
def asked_isinstance(self: Subject, x: AnyValue) -> AnyValue:
    return x + (1 if isinstance(x, torch.Tensor) else 2)


@body
def asked_isinstance_of_many(self: Subject, x: AnyValue) -> AnyValue:
    return x + (1 if isinstance(x, list | tuple) else 2)


@body
def asked_hasattr(self: Subject, x: AnyValue) -> AnyValue:
    return x + (1 if hasattr(x, "nowhere") else 2)


@body
def asked_hasattr_of_a_method(self: Subject, x: AnyValue) -> AnyValue:
    return x + (1 if hasattr(x, "relu") else 2)


@body
def found_in_a_set(self: Subject, x: AnyValue) -> AnyValue:
    return x + (1 if x in {x} else 2)


@body
def number_in_a_set(self: Subject, x: AnyValue) -> AnyValue:
    return x + (1 if x.dim() in {1, 2} else 2)


@body
def number_in_a_dict(self: Subject, x: AnyValue) -> AnyValue:
    return x + {1: 5}.get(x.dim(), 7)


@body
def number_in_a_list(self: Subject, x: AnyValue) -> AnyValue:
    return x + (1 if x.dim() in [1, 2] else 2)


@body
def number_in_a_range(self: Subject, x: AnyValue) -> AnyValue:
    return x + (1 if x.dim() in range(1, 3) else 2)


@body
def found_in_a_list(self: Subject, x: AnyValue) -> AnyValue:
    return x + (1 if x in [x] else 2)


@body
def key_of_a_dict(self: Subject, x: AnyValue) -> AnyValue:
    return {x: x * 2}[x]


@body
def contained(self: Subject, x: AnyValue) -> AnyValue:
    return x + (1 if 3.0 in x else 2)


@body
def cached(self: Subject, x: AnyValue) -> AnyValue:
    @functools.lru_cache
    def size(n: AnyValue) -> AnyValue:
        return n * 2

    return x + size(x.dim())


# -- values that Python asks for ---------------------------------------------


@body
def condition(self: Subject, x: AnyValue) -> AnyValue:
    return x if x.sum() > 0 else -x


@body
def negation(self: Subject, x: AnyValue) -> AnyValue:
    return x + (not x.sum())


@body
def both(self: Subject, x: AnyValue) -> AnyValue:
    return x.sum() and x


@body
def chained(self: Subject, x: AnyValue) -> AnyValue:
    return x + (0 < x.sum() < 9)


@body
def asserted(self: Subject, x: AnyValue) -> AnyValue:
    assert x.sum() > -100
    return x


@body
def loop(self: Subject, x: AnyValue) -> AnyValue:
    return [part * 2 for part in x]


@body
def unpacked(self: Subject, x: AnyValue) -> AnyValue:
    a, b = x
    return a + b


@body
def unpacked_with_rest(self: Subject, x: AnyValue) -> AnyValue:
    a, *rest = x
    return a, rest


@body
def starred(self: Subject, x: AnyValue) -> AnyValue:
    return torch.stack([*x])


@body
def zipped(self: Subject, x: AnyValue) -> AnyValue:
    return [a + b for a, b in zip(x, x, strict=True)]


@body
def summed(self: Subject, x: AnyValue) -> AnyValue:
    return sum(x)


@body
def length(self: Subject, x: AnyValue) -> AnyValue:
    return x * len(x)


@body
def numbers(self: Subject, x: AnyValue) -> AnyValue:
    return [float(x[0]), int(x[1]), round(x[0].item())]


@body
def index(self: Subject, x: AnyValue) -> AnyValue:
    return [10, 20, 30][x.argmax()]


@body
def repeated(self: Subject, x: AnyValue) -> AnyValue:
    return [x[i] for i in range(x.shape[0])]


@body
def minimum(self: Subject, x: AnyValue) -> AnyValue:
    return min(x[0], x[1])


@body
def ordered(self: Subject, x: AnyValue) -> AnyValue:
    return sorted([x[0], x[1]])


@body
def root_of(self: Subject, x: AnyValue) -> AnyValue:
    return math.sqrt(x.sum())


@body
def array(self: Subject, x: AnyValue) -> AnyValue:
    return torch.from_numpy(x.detach().numpy() + 1)


@body
def listed(self: Subject, x: AnyValue) -> AnyValue:
    return torch.tensor(x.tolist()) + 1


@body
def built_of_numbers(self: Subject, x: AnyValue) -> AnyValue:
    return torch.tensor([x[0], x[1]]) * 2


@body
def divided_with_rest(self: Subject, x: AnyValue) -> AnyValue:
    return divmod(x, 2)


@body
def absolute(self: Subject, x: AnyValue) -> AnyValue:
    return abs(x), +x, -x, x.__abs__()


@body
def reflected(self: Subject, x: AnyValue) -> AnyValue:
    return [2 - x, 2**x, 2 / x, 7 // x, 7 % x, self.weight.detach() @ x]


@body
def matched(self: Subject, x: AnyValue) -> AnyValue:
    match x:
        case [a, b]:
            return a + b
        case _:
            return x * 3


# -- copies, leaves, other tracers -------------------------------------------


@body
def deep_copy(self: Subject, x: AnyValue) -> AnyValue:
    y = copy.deepcopy(x.detach())
    return y.mul_(2) + x


@body
def deep_copy_in_a_list(self: Subject, x: AnyValue) -> AnyValue:
    y = x.detach()
    a, b = copy.deepcopy([y, y])
    a.mul_(2)
    return b + y


@body
def shallow_copy(self: Subject, x: AnyValue) -> AnyValue:
    y = x * 1
    z = copy.copy(y)
    z.mul_(2)
    return y + z


@body
def compiled(self: Subject, x: AnyValue) -> AnyValue:
    return self.compiled(x) * 2


@body
def scripted(self: Subject, x: AnyValue) -> AnyValue:
    return torch.jit.script(_plus_one)(x)


@body
def mapped(self: Subject, x: AnyValue) -> AnyValue:
    return torch.vmap(_plus_one)(x)


@body
def differentiated(self: Subject, x: AnyValue) -> AnyValue:
    return torch.func.grad(lambda y: (y * y).sum())(x)


@body
def checkpointed(self: Subject, x: AnyValue) -> AnyValue:
    return torch.utils.checkpoint.checkpoint(_plus_one, x, use_reentrant=False)


@body
def root_given_to_a_leaf(self: Subject, x: AnyValue) -> AnyValue:
    return _leaf(self, x)


@body
def own_state(self: Subject, x: AnyValue) -> AnyValue:
    return F.dropout(x, 0.0, self.training) * self.weight


@fx.wrap
def _leaf(module: AnyValue, x: AnyValue) -> AnyValue:
    return x * module.weight


torch.fx.wrap("_leaf")

# -- the run -----------------------------------------------------------------


RECORDED: Final = frozenset(
    "data_assigned data_of_an_attribute real_assigned deep_copy unpacked "
    "absolute reflected own_attribute own_state shallow_copy".split()
)
"""Programs that no library may refuse as a child."""


def outcome(lib: AnyValue, make: Callable[[Body], AnyValue], body: Body) -> str:
    """What is wrong with a program in a library; "" if nothing."""
    given = [torch.tensor([1.5, 4.0]), torch.tensor([-3.0, 2.0])]
    if body.__name__.startswith("mode_"):
        return in_another_mode(lib, make(body), given)
    expected = results(make(body), given)
    root = make(body)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            traced = lib.symbolic_trace(root)
        except Exception as error:  # refused, in whatever words
            must = body.__name__ in RECORDED and make is Parent
            return f"{body.__name__}: {error}" if must else ""
    warned = any(warning.category is UserWarning for warning in caught)
    got = [] if warned else results(traced, given)
    after = results(root, given)[-1]
    if type(after) is not type(expected[-1]):
        return f"{body.__name__}: the root fails after its trace: {after!r}"
    for want, have in zip(expected, got, strict=False):
        if not same(want, have):
            return f"{body.__name__}: eager gives {want}, the graph {have}"
    return ""


def in_another_mode(
    lib: AnyValue, root: AnyValue, given: list[torch.Tensor]
) -> str:
    """What is wrong with graphs once they are put in evaluation.

    The second is a trace of the first.
    """
    traced, wrong = lib.symbolic_trace(root), ""
    root.eval()
    for gm in (lib.symbolic_trace(traced), traced):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            gm.eval()
        got, expected = results(gm, given), results(root, given)
        if not caught and not same(expected, got):
            wrong = f"eager gives {expected}, the graph {got}"
    return wrong


def results(function: AnyValue, given: list[torch.Tensor]) -> list[AnyValue]:
    """What calls return, one after the other; errors end them."""
    found: list[AnyValue] = []
    with warnings.catch_warnings(), _silence():
        warnings.simplefilter("ignore")
        for x in given:
            try:
                found.append(copy.deepcopy(detached(function(x.clone()))))
            except Exception as error:  # what a user's program raises
                found.append(error)
                break
    return found


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """A graph that fails prints where; here it may."""
    before = sys.stderr
    try:
        with open("/dev/null", "w", encoding="utf-8") as sys.stderr:
            yield
    finally:
        sys.stderr = before


def detached(value: AnyValue) -> AnyValue:
    """Values without the graph of autograd, which has no copies."""
    return torch.utils._pytree.tree_map(
        lambda x: x.detach() if isinstance(x, torch.Tensor) else x, value
    )


def same(want: AnyValue, have: AnyValue) -> bool:
    """Whether two results are equal, kinds included.

    A graph that fails is not wrong in silence.
    """
    if isinstance(have, Exception):
        return True
    if isinstance(want, torch.Tensor):
        if not isinstance(have, torch.Tensor) or want.dtype != have.dtype:
            return False
        return torch.equal(want, have)
    if isinstance(want, list | tuple):
        return len(want) == len(have) and all(map(same, want, have))
    return bool(type(want) is type(have) and want == have)


KEPT: Final = frozenset(
    "counted number_counted new_attribute item_of_a_list appended_to_a_list "
    "item_of_a_dict proxy_in_a_tuple".split()
)
"""Programs that keep something on the subject, which then must be the root or
below it."""


def run(seed: int, cases: int) -> Iterator[Outcome]:
    """Try programs in some order, each as one of the roots."""
    table = [(name, root) for root in ROOTS for name in BODIES]
    for name in BODIES:  # state that no root has
        of_modules = name.startswith(("kept_in_", "mode_"))
        if name in KEPT or "_bound_" in name or of_modules:
            table.remove((name, "function"))
    random.Random(seed).shuffle(table)
    for name, root in table[:cases]:
        make = ROOTS[root]
        yield Outcome(
            f"{name} ({root})",
            outcome(fx, make, BODIES[name]),
            outcome(torch.fx, make, BODIES[name]),
        )


PART = Part(
    name="tracing",
    compares="what a proxy cannot record: equal to eager, refused or warned of",
    run=run,
    share=3 * len(BODIES),
    long=3 * len(BODIES),
    plants=(
        Plant(
            "fx/extra/watching/watching.py",
            "        self._captured.warn(self._root, changed)\n",
            "",
            "a recorded write into a tensor of the trace is lost",
        ),
        Plant(
            "fx/extra/watching/modes.py",
            "        if entered and len(nodes) > seen:\n",
            "        if False:\n",
            "gradients are off, or autocast is on, in a part of the code",
        ),
        Plant(
            "fx/extra/captured_writes.py",
            "                views.append(user)\n",
            "                pass\n",
            "a write into a view of a tensor is lost",
        ),
        Plant(
            "fx/extra/watching/captured.py",
            "self._before.append((str(node.target), value, version))",
            "pass",
            "a tensor is written after a node that reads it",
        ),
        Plant(
            "fx/extra/watching/captured.py",
            "        if written:\n",
            "        if False:\n",
            "buffers that change while they are traced change no more",
        ),
        Plant(
            "fx/extra/watching/changes.py",
            "        if _holds_proxy(change.value):\n",
            "        if False:\n",
            "the root keeps a proxy in the place of its buffer",
        ),
        Plant(
            "fx/proxy.py",
            "        data = Assigned()\n",
            "",
            "x.data = y stays on the proxy",
        ),
        Plant(
            "fx/extra/watching/asking.py",
            "frames.is_user(sys._getframe(1))",
            "False",
            "a number is not found in a set",
        ),
        Plant(
            "fx/extra/watching/watching.py",
            "TRACES.patch(namespace, QUESTIONS - snapshot.keys(), QUESTION)",
            "pass",
            "callable(x) is true",
        ),
    ),
)
