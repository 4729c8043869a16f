"""Stage 08: functional graphs of ATen operators, done in place.

The graphs are captured by torch for both libraries, so that both start from
the same nodes.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, TypeAlias

import torch
import torch.fx
from torch.fx.experimental.proxy_tensor import make_fx

from tests.parity.harness import Lib, Seen, error, program

aten = torch.ops.aten

AnyValue: TypeAlias = Any


def x22() -> torch.Tensor:
    return torch.tensor([[1.0, 2.0], [3.0, 4.0]])


def x4() -> torch.Tensor:
    return torch.tensor([1.0, -2.0, 3.0, -4.0])


def as_lib(lib: Lib, captured: AnyValue) -> AnyValue:
    """A graph module of torch as one of `lib`, node by node."""
    if lib is torch.fx:
        return captured
    graph = lib.Graph()
    new: dict[AnyValue, AnyValue] = {}
    for n in captured.graph.nodes:
        args = torch.fx.map_arg(n.args, new.__getitem__)
        kwargs = torch.fx.map_arg(n.kwargs, new.__getitem__)
        new[n] = graph.create_node(n.op, n.target, args, kwargs, n.name, n.type)
    return lib.GraphModule(captured, graph)


def captured(
    lib: Lib, f: Callable[..., AnyValue], *inputs: AnyValue
) -> AnyValue:
    """`f` as ATen operators, as they stand."""
    return as_lib(lib, make_fx(f)(*inputs))


def functional(
    lib: Lib, f: Callable[..., AnyValue], *inputs: AnyValue
) -> AnyValue:
    """`f` as ATen operators, writes made functional."""
    return as_lib(lib, make_fx(torch.func.functionalize(f))(*inputs))


def reinplace_of(lib: Lib) -> AnyValue:
    return importlib.import_module(f"{lib.__name__}.passes.reinplace").reinplace


def fresh(inputs: tuple[AnyValue, ...]) -> list[AnyValue]:
    """The inputs, as they were, for one more run."""
    return [t.clone() if isinstance(t, torch.Tensor) else t for t in inputs]


def same(one: AnyValue, other: AnyValue) -> bool:
    """Are two results equal, shapes and dtypes too?"""
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    return len(one) == len(other) and all(map(same, one, other))


def done(lib: Lib, gm: AnyValue, *inputs: AnyValue) -> list[object]:
    """What becomes of a graph, and whether anyone can tell."""
    first, second = fresh(inputs), fresh(inputs)
    before = gm(*first)
    result = reinplace_of(lib)(gm, *inputs)
    seen: list[object] = [result is gm, str(gm.graph), gm.code]
    gm.graph.lint()
    try:
        after = gm(*second)
    except RuntimeError:
        return [*seen, "does not run"]
    return [*seen, same(before, after), same(first, second)]


def targets(lib: Lib, gm: AnyValue, *inputs: AnyValue) -> list[object]:
    """The calls that are left, and whether anyone can tell."""
    seen = done(lib, gm, *inputs)[3:]
    return [
        *[str(n.target) for n in gm.graph.nodes if n.op == "call_function"],
        *seen,
    ]


def reinplaced(
    *inputs: Callable[[], AnyValue],
    capture: Callable[..., AnyValue] = captured,
    look: Callable[..., list[object]] = done,
) -> Callable[[Callable[..., AnyValue]], Callable[[Lib], Seen]]:
    """A program that captures the decorated function, and reinplaces it."""

    def program_of(f: Callable[..., AnyValue]) -> Callable[[Lib], Seen]:
        @functools.wraps(f)
        def run(lib: Lib) -> Seen:
            gm = capture(lib, f, *[make() for make in inputs])
            return look(lib, gm, *[make() for make in inputs])

        return run

    return program_of


# --- the basic rule --------------------------------------------------------


@program(claims=("ri-api", "ri-basic-rule", "ri-3b-inplace-variant"))
def a_value_that_dies_is_written(lib: Lib) -> Seen:
    return done(lib, captured(lib, lambda x: x.clone().add(1), x4()), x4())


@program(claims=("ri-basic-rule",))
@reinplaced(x4)
def a_value_read_again_is_not(x: AnyValue) -> AnyValue:
    a = x.clone()
    return a + 1, a * 2


@program(claims=("ri-node-by-node",))
def a_failed_check_skips_one_node(lib: Lib) -> Seen:
    return done(lib, captured(lib, lambda x: x.add(1).mul(2), x4()), x4())


@program(claims=("ri-basic-rule", "ri-4-later-users-updated"))
@reinplaced(x4)
def a_chain_of_operators(x: AnyValue) -> AnyValue:
    return (x.sin() * 2 + 1).relu().neg().sigmoid().tanh().exp()


@program(claims=("ri-3b-inplace-variant",))
@reinplaced(x4)
def operators_without_a_variant_stay(x: AnyValue) -> AnyValue:
    a, b, c = x.clone(), x.clone(), x.clone()
    d = torch.maximum(a, b)
    return torch.cat([d, torch.pow(2, c)]), x.clone().sum()


@program(claims=("ri-3b-inplace-variant",))
@reinplaced(x4)
def scalars_tensors_and_keywords(x: AnyValue) -> AnyValue:
    a = torch.add(x.clone(), x, alpha=2)
    b = a.clamp(min=-1, max=1).masked_fill(x > 0, 3.0)
    return torch.lerp(b, x, 0.5).div(2, rounding_mode="floor")


@program(claims=("ri-3b-inplace-variant",))
@reinplaced(x22)
def views_are_not_written(x: AnyValue) -> AnyValue:
    return x.clone().t().unsqueeze(0).transpose(0, 1).squeeze(1)


@program(claims=("ri-basic-rule",))
@reinplaced(x22, look=targets)
def results_of_several(x: AnyValue) -> AnyValue:
    values, places = torch.max(x, 0)
    first, second = torch.split(x.clone(), 1)
    return values * 2, places + 1, first + 1, second


@program(claims=("ri-basic-rule",))
def a_training_step(lib: Lib) -> Seen:
    def loss(w: AnyValue, b: AnyValue, x: AnyValue) -> AnyValue:
        hidden = torch.tanh(x @ w + b)
        return (hidden * hidden).sum()

    def f(w: AnyValue, b: AnyValue, x: AnyValue) -> AnyValue:
        dw, db = torch.func.grad(loss, argnums=(0, 1))(w, b, x)
        return w - 0.5 * dw, b - 0.5 * db

    args = (x22(), torch.ones(2), x22())
    return targets(lib, captured(lib, f, *args), *args)


@program(claims=("ri-bc-guaranteed",))
def its_name_and_signature(lib: Lib) -> Seen:
    code = reinplace_of(lib).__code__
    return [code.co_varnames[: code.co_argcount + 1], code.co_argcount]


# --- what it is given ------------------------------------------------------


@program(claims=("ri-needs-functional-aten",))
def a_symbolic_trace_passes_unchanged(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: torch.relu(x.clone() + 1).neg())
    return done(lib, gm, x4())


@program(claims=("ri-needs-functional-aten",))
@reinplaced(x22, capture=functional)
def a_capture_is_functional(x: AnyValue) -> AnyValue:
    a = x.clone()
    a.add_(1)
    a.view(-1).mul_(2)
    return a


@program(claims=("ri-sample-args",))
def sample_inputs_are_needed(lib: Lib) -> Seen:
    gm = captured(lib, lambda x: x.clone().add(1), x4())
    act = reinplace_of(lib)
    return [error(lambda: act(gm)), gm.code]


@program(claims=("ri-sample-args",))
def nodes_get_their_example_result(lib: Lib) -> Seen:
    gm = captured(lib, lambda x: x.clone().add(1), x4())
    reinplace_of(lib)(gm, x4())
    return [
        (n.name, type(n.meta["fake_result"]).__name__)
        for n in gm.graph.nodes
        if n.op != "output"
    ]


@program(claims=("ri-sample-args", "ri-1b-program-inputs"))
def inputs_may_share_memory(lib: Lib) -> Seen:
    base = x22()

    def f(x: AnyValue, y: AnyValue) -> AnyValue:
        return x + 1, y * 2

    return done(lib, captured(lib, f, base, base[0]), base, base[0])


# --- (1) checks ------------------------------------------------------------


@program(claims=("ri-1a-size",))
@reinplaced()
def a_larger_result_stays() -> AnyValue:
    return torch.add(torch.ones(1), torch.ones(10))


@program(claims=("ri-1a-size",))
@reinplaced()
def a_result_broadcast_the_other_way_fits() -> AnyValue:
    return torch.add(torch.ones(10), torch.ones(1))


@program(claims=("ri-1a-dtype",))
@reinplaced(x4)
def a_result_of_another_dtype_stays(x: AnyValue) -> AnyValue:
    return torch.ge(x.clone(), 0), torch.ones(4, dtype=torch.int64) / 2


@program(claims=("ri-1a-dtype",))
@reinplaced(x4)
def a_comparison_of_bools_fits(x: AnyValue) -> AnyValue:
    return torch.logical_not((x > 0).clone()).eq(False)


@program(claims=("ri-1a-compare-then-cast",))
@reinplaced(x4, capture=functional)
def a_comparison_in_place_is_not_recovered(x: AnyValue) -> AnyValue:
    a = x.clone()
    a.ge_(x)
    return a


@program(claims=("ri-1a-internal-overlap",))
@reinplaced()
def expanded_memory_is_not_written() -> AnyValue:
    return torch.ones(1).expand(4, 4).add(1)


@program(
    claims=("ri-1a-internal-overlap",),
    differs="reinplace-overlap",
    ours=[
        "aten.clone.default",
        "aten.as_strided.default",
        "aten.add.Tensor",
        True,
        True,
    ],
)
@reinplaced(x4, look=targets)
def memory_that_overlaps_itself_without_a_zero_stride(x: AnyValue) -> AnyValue:
    return aten.as_strided(x.clone(), [3, 2], [1, 1]).add(1)


@program(
    claims=("ri-1a-size",),
    differs="reinplace-sizes",
    ours=["aten.clone.default", "aten.add.Tensor", True, True],
)
def as_many_elements_but_another_size(lib: Lib) -> Seen:
    def f(x: AnyValue, y: AnyValue) -> AnyValue:
        return x.clone().add(y)

    args = (torch.ones(1), torch.ones(1, 1))
    return targets(lib, captured(lib, f, *args), *args)


@program(claims=("ri-1b-program-inputs",))
@reinplaced(x22)
def inputs_are_not_written(x: AnyValue) -> AnyValue:
    return x.add(1), x.view(-1).add(1), x.t()[0].mul(2)


@program(
    claims=("ri-1b-later-copy",),
    differs="reinplace-overwritten-inputs",
    ours=["aten.mul_.Tensor", "aten.add.Tensor", True, True],
)
@reinplaced(x4, capture=functional, look=targets)
def an_input_that_is_overwritten_later(x: AnyValue) -> AnyValue:
    x.mul_(2)
    return x + 1


@program(
    claims=("ri-1b-program-inputs",),
    differs="reinplace-maybe-views",
    ours=["aten.contiguous.default", "aten.add.Tensor", [1.0, 1.0, 1.0, 1.0]],
)
def what_is_a_view_for_other_strides(lib: Lib) -> Seen:
    graph = lib.Graph()
    x = graph.placeholder("x")
    dense = graph.call_function(aten.contiguous.default, (x,))
    graph.output(graph.call_function(aten.add.Tensor, (dense, 1)))
    gm = lib.GraphModule(torch.nn.Module(), graph)
    try:
        reinplace_of(lib)(gm, torch.ones(8)[::2])
    except AssertionError:  # torch: "view_storage != base_storage"
        return "an operator that copies, though its schema says view"
    given = torch.ones(4)
    gm(given)
    calls = [n for n in graph.nodes if n.op == "call_function"]
    return [*[str(n.target) for n in calls], given.tolist()]


class Scaled(torch.nn.Module):
    """A parameter that is not to be written."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4), requires_grad=False)


@program(
    claims=("ri-1b-program-inputs",),
    differs="reinplace-module-tensors",
    ours=[["aten.mul.Tensor", "aten.add_.Tensor"], [1.0, 1.0, 1.0, 1.0]],
)
def a_tensor_of_the_module_is_no_free_memory(lib: Lib) -> Seen:
    graph = lib.Graph()
    x = graph.placeholder("x")
    weight = graph.get_attr("weight")
    mul = graph.call_function(aten.mul.Tensor, (weight, x))
    graph.output(graph.call_function(aten.add.Tensor, (mul, 1)))
    gm = lib.GraphModule(Scaled(), graph)
    try:
        reinplace_of(lib)(gm, x4())
    except AssertionError:  # torch: "Please convert all Tensors to FakeTensors"
        return "a module with tensors of its own is refused"
    gm(x4())
    calls = [n for n in graph.nodes if n.op == "call_function"]
    return [[str(n.target) for n in calls], gm.weight.tolist()]


@program(claims=("ri-2b-repeated-argument", "ri-1c-aliasing-args"))
@reinplaced(x4)
def a_repeated_argument(x: AnyValue) -> AnyValue:
    a = x.clone()
    return torch.mul(a, a)


@program(
    claims=("ri-1c-aliasing-args",),
    differs="reinplace-aliasing-arguments",
    ours=[
        "aten.clone.default",
        "aten.view.default",
        "aten.mul.Tensor",
        True,
        True,
    ],
)
@reinplaced(x4, look=targets)
def an_argument_that_shares_memory(x: AnyValue) -> AnyValue:
    a = x.clone()
    return torch.mul(a, a.view(-1))


# --- (2) later uses --------------------------------------------------------


def unread_view(lib: Lib, returned: bool) -> AnyValue:
    """`a + 1`, and a view of a afterwards that is returned or not."""
    graph = lib.Graph()
    x = graph.placeholder("x")
    a = graph.call_function(aten.clone.default, (x,))
    b = graph.call_function(aten.add.Tensor, (a, 1))
    view = graph.call_function(aten.view.default, (a, [2, 2]))
    graph.output((b, view) if returned else b)
    return lib.GraphModule(torch.nn.Module(), graph)


@program(claims=("ri-2a-later-view-allowed",))
def a_later_view_does_no_harm(lib: Lib) -> Seen:
    return done(lib, unread_view(lib, returned=False), x4())


@program(claims=("ri-2a-view-then-used",))
def a_later_view_that_is_returned(lib: Lib) -> Seen:
    return done(lib, unread_view(lib, returned=True), x4())


@program(claims=("ri-2a-view-then-used",))
@reinplaced(x4)
def an_earlier_view_that_is_read_later(x: AnyValue) -> AnyValue:
    a = x.clone()
    view = a.view(2, 2)
    b = a + 1
    return b, view * 3


@program(claims=("ri-2a-view-then-used",))
@reinplaced(x22)
def a_part_that_another_part_does_not_touch(x: AnyValue) -> AnyValue:
    a = x.clone()
    return a[0] + 1, a[1]


@program(claims=("ri-functionalized-example", "ri-2c-scatter-allowed"))
def the_documents_example(lib: Lib) -> Seen:
    def f(x: AnyValue) -> AnyValue:
        a = aten.add(x, x)
        b = aten.diagonal(a)
        aten.fill_(b, 0)
        return a

    gm = functional(lib, f, x22())
    return [str(gm.graph), done(lib, gm, x22())]


def write_through(lib: Lib, view: Callable[[AnyValue], AnyValue]) -> Seen:
    """One update in place, through a view."""

    def f(x: AnyValue) -> AnyValue:
        a = x.clone()
        view(a).mul_(3)
        return a

    return done(lib, functional(lib, f, x22()), x22())


@program(claims=("ri-view-inverse-pairs", "ri-5-scatter-deleted"))
def a_write_through_each_kind_of_view(lib: Lib) -> Seen:
    views: list[Callable[[AnyValue], AnyValue]] = [
        lambda a: a.select(0, 1),
        lambda a: a[:, 1:],
        lambda a: a.diagonal(1),
        lambda a: a.as_strided((2,), (2,), 1),
        lambda a: a[1].view(2, 1),
        lambda a: a.view(-1),
    ]
    return [write_through(lib, view) for view in views]


@program(claims=("ri-5-scatter-deleted", "ri-4-storage-sets-fused"))
@reinplaced(x22, capture=functional)
def several_writes_one_after_the_other(x: AnyValue) -> AnyValue:
    a = x.clone()
    a[0].add_(1)
    a[1].mul_(2)
    a[:, 0].sub_(3)
    a.relu_()
    return a * 2


def one_scatter(lib: Lib, index: int) -> AnyValue:
    """A part taken at 0, changed, and put back at `index`."""

    def f(x: AnyValue) -> AnyValue:
        a = x.clone()
        new = a.select(0, 0).mul(3)
        return torch.select_scatter(a, new, 0, index)

    return captured(lib, f, x22())


@program(claims=("ri-scatter-args-must-agree",))
def a_scatter_to_where_the_part_came_from_and_elsewhere(lib: Lib) -> Seen:
    """The last is where it came from, written otherwise."""
    return [done(lib, one_scatter(lib, i), x22()) for i in (0, 1, -2)]


@program(claims=("ri-alias-used-once",))
@reinplaced(x22)
def a_scatter_and_another_use(x: AnyValue) -> AnyValue:
    a = x.clone()
    new = a.select(0, 0).mul(3)
    return torch.select_scatter(a, new, 0, 0), a + 1


@program(
    claims=("ri-alias-used-once",),
    differs="reinplace-used-once",
    ours=[
        "aten.clone.default",
        "aten.select.int",
        "aten.mul.Tensor",
        "aten.mul.Tensor",
        "aten.select_scatter.default",
        "aten.select.int",
        "aten.copy_.default",
        "aten.add_.Tensor",
        True,
        True,
    ],
)
@reinplaced(x22, look=targets)
def two_scatters_on_one_base(x: AnyValue) -> AnyValue:
    a = x.clone()
    new = a.select(0, 0).mul(3)
    five = new.mul(5)
    one = torch.select_scatter(a, new, 0, 0)
    return one + torch.select_scatter(a, five, 0, 0)


@program(
    claims=("ri-scatter-args-must-agree",),
    differs="reinplace-scatter-source",
    ours=[
        "aten.clone.default",
        "aten.select.int",
        "aten.mul.Tensor",
        "aten.select.int",
        "aten.neg.default",
        "aten.select.int",
        "aten.copy_.default",
        True,
        True,
    ],
)
@reinplaced(x22, look=targets)
def a_scatter_of_something_else(x: AnyValue) -> AnyValue:
    a = x.clone()
    new = a.select(0, 0).mul(3)
    other = x[1].neg()
    return torch.select_scatter(a, other, 0, 0), new


@program(
    claims=("ri-2c-scatter-allowed",),
    differs="reinplace-layout",
    ours=[
        "aten.cat.default",
        "aten.slice.Tensor",
        "aten.mul.Tensor",
        "aten.view.default",
        "aten.neg_.default",
        True,
        True,
    ],
)
@reinplaced(x22, look=targets)
def a_later_view_that_needs_the_strides(x: AnyValue) -> AnyValue:
    part = torch.cat([x, x], 1)[:, 1:3].mul(2).view(4)
    return part.neg()


@program(
    differs="reinplace-returned-strides", ours=[True, (3, 1), (3, 1), True]
)
def a_caller_who_needs_the_strides(lib: Lib) -> Seen:
    def f(x: AnyValue) -> AnyValue:
        return x.add(1).t().cumsum(0)

    x = torch.arange(12.0).view(3, 4)
    gm = functional(lib, f, x)
    before = gm(x)
    after = reinplace_of(lib)(gm, x)(x)
    return [
        torch.equal(before, after),
        before.stride(),
        after.stride(),
        after.is_contiguous() == before.is_contiguous(),
    ]


@program(differs="reinplace-returned-together", ours=(True, False))
def a_result_and_its_scatter_are_both_returned(lib: Lib) -> Seen:
    def f(x: AnyValue) -> AnyValue:
        whole = x.clone()
        part = whole.select(0, 0).add(1)
        return whole.select_scatter(part, 0, 0), part

    gm = captured(lib, f, x22())
    whole, part = reinplace_of(lib)(gm, x22())(x22())
    same = torch.equal(whole[0], part)
    part.zero_()
    return same, torch.equal(whole[0], part)


@program(differs="reinplace-sparse", ours=("no error", [1.0, 2.0, 3.0]))
def values_of_a_sparse_tensor(lib: Lib) -> Seen:
    def f(places: AnyValue, x: AnyValue) -> AnyValue:
        values = x.add(1)
        whole = torch.sparse_coo_tensor(
            places, values, (3,), is_coalesced=True, check_invariants=False
        )
        values.mul(2).sum()
        return whole.to_dense()

    inputs = torch.tensor([[0, 1, 2]]), torch.arange(3.0)
    gm = functional(lib, f, *inputs)
    done = error(lambda: reinplace_of(lib)(gm, *inputs))
    return done, [float(one) for one in gm(*inputs)]


# --- (3) to (5) ------------------------------------------------------------


@program(claims=("ri-3a-scatter-rewrite", "ri-5-scatter-deleted"))
@reinplaced(lambda: torch.ones(2))
def a_scatter_becomes_a_view_and_a_copy(b: AnyValue) -> AnyValue:
    return torch.select_scatter(torch.zeros(2, 2), b, 0, 0)


@program(claims=("ri-3a-scatter-rewrite",))
@reinplaced(lambda: torch.ones(2), capture=functional)
def the_documents_assignment(x: AnyValue) -> AnyValue:
    a = torch.zeros(2, 2)
    a[0] = x
    return a


@program(claims=("ri-3a-scatter-rewrite",))
@reinplaced(x22)
def each_scatter_becomes_its_view_and_a_copy(x: AnyValue) -> AnyValue:
    row = torch.ones(2)
    a = torch.slice_scatter(x.clone(), x[:1] * 2, 0, 0, 1)
    b = torch.diagonal_scatter(a, row)
    return torch.as_strided_scatter(b, row, (2,), (1,), 1)


@program(claims=("ri-3a-scatter-rewrite", "ri-1b-program-inputs"))
@reinplaced(x22)
def a_scatter_on_an_input_stays(x: AnyValue) -> AnyValue:
    return torch.select_scatter(x, torch.ones(2), 0, 0)


@program(claims=("ri-4-later-users-updated",))
def all_later_uses_read_the_memory(lib: Lib) -> Seen:
    def f(x: AnyValue) -> AnyValue:
        b = x.clone().add(1)
        return b, [torch.cat([b, b]), {"k": b.sum()}], b.view(2, 2)

    gm = captured(lib, f, x4())
    reinplace_of(lib)(gm, x4())
    by_name = {n.name: n for n in gm.graph.nodes}
    return [str(gm.graph), len(by_name["add"].users)]


@program(claims=("ri-4-storage-sets-fused",))
@reinplaced(x4)
def a_view_of_the_result_is_a_view_of_the_memory(x: AnyValue) -> AnyValue:
    a = x.clone()
    b = a.add(1)
    view = b.view(2, 2)
    c = b.mul(2)
    return view + c.view(2, 2)


@program(claims=("ri-5-no-dce",))
def dead_code_elimination_keeps_the_writes(lib: Lib) -> Seen:
    def f(x: AnyValue) -> AnyValue:
        a = aten.add(x, x)
        aten.fill_(aten.diagonal(a), 0)
        return a

    gm = reinplace_of(lib)(functional(lib, f, x22()), x22())
    before = len(gm.graph.nodes)
    gm.graph.eliminate_dead_code()
    gm.recompile()
    return [before, str(gm.graph), gm(x22())]


@program(differs="reinplace-autograd", ours=[2.0, 2.0])
def what_autograd_has_saved_is_not_written(lib: Lib) -> Seen:
    def f(x: AnyValue, w: AnyValue) -> AnyValue:
        a = aten.mul(x, 2)
        flat = aten._unsafe_view(a, [-1])
        return aten.mul(flat, w), aten.add(a, 100)

    x, w = torch.ones(1, 2), torch.ones(2, requires_grad=True)
    gm = captured(lib, f, x, w)
    reinplace_of(lib)(gm, x, w)
    gm(x, w)[0].sum().backward()
    assert w.grad is not None
    return w.grad.tolist()
