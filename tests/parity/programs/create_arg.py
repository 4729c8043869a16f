"""Arguments: what a tracer makes of the values that meet a proxy."""

from __future__ import annotations

import collections
import dataclasses
import enum
from typing import Any, NamedTuple, no_type_check

import numpy as np
import torch
from torch import nn

from tests.parity.harness import Lib, Seen, error, program, show
from tests.parity.programs._subjects import (
    AnyValue,
    Root,
    lines,
    proxies,
    proxy,
    subclass,
)


class Pair(NamedTuple):
    """A named tuple of the user's."""

    left: Any
    right: Any


@dataclasses.dataclass
class Record:
    """A dataclass of the user's."""

    u: Any
    v: Any = 3


class Color(enum.Enum):
    """An enum of the user's."""

    RED = 1
    BLUE = "b"


class Level(enum.IntEnum):
    """An enum whose members are ints."""

    LOW = 1
    HIGH = 2


class Words(list[Any]):
    """A list subclass."""


class Rows(tuple[Any, ...]):
    """A tuple subclass."""

    __slots__ = ()


def lowered(lib: Lib, value: object) -> tuple[str, str]:
    """Type and text of what a base tracer makes of `value`."""
    result = lib.proxy.GraphAppendingTracer(lib.Graph()).create_arg(value)
    return type(result).__name__, repr(result)


@program(claims=("create-arg-proxy",))
def a_proxy_becomes_its_node(lib: Lib) -> Seen:
    p = proxy(lib)
    attribute = p.foo
    seen = [
        p.tracer.create_arg(p) is p.node,
        p.tracer.create_arg(attribute) is attribute.node,
    ]
    return [*seen, lines(p.node.graph)]


@program(claims=("create-arg-sequences",))
def tuples_and_lists_are_rebuilt_element_by_element(lib: Lib) -> Seen:
    (p,) = proxies(lib, "x")
    a = p.tracer.create_arg((p, [p, 1], ((p,), [])))
    words = p.tracer.create_arg(Words([p, 1]))
    rows = p.tracer.create_arg(Rows([p, 1]))
    size = p.tracer.create_arg(torch.Size([2, 3]))
    return [
        a == (p.node, [p.node, 1], ((p.node,), [])),
        [type(v).__name__ for v in (a, a[1], a[2], words, rows, size)],
        repr([a, words, rows, size]),
    ]


@program(claims=("create-arg-sequences",))
def a_node_stores_sequences_as_immutable_lists(lib: Lib) -> Seen:
    p = proxy(lib)
    given = [p, 1, [p]]
    n = p.stack(given, last={"k": [p]}).node
    given.append(2)
    return [
        type(n.args[1]).__name__,
        type(n.args[1][2]).__name__,
        type(n.kwargs["last"]).__name__,
        repr((n.args, n.kwargs)),
        isinstance(n.args[1], list),
        isinstance(n.kwargs["last"], dict),
        lowered(lib, lib.immutable_collections.immutable_list([1, 2])),
        lowered(lib, lib.immutable_collections.immutable_dict({"a": 2})),
    ]


@program(claims=("create-arg-namedtuple",))
def a_base_tracer_rebuilds_a_named_tuple(lib: Lib) -> Seen:
    p = proxy(lib)
    a = p.tracer.create_arg(Pair(p, [p, 1]))
    return [
        type(a) is Pair,
        a.left is p.node,
        repr(a),
        lines(p.node.graph),
    ]


@program(claims=("create-arg-namedtuple",))
def a_tracer_records_the_construction_of_a_named_tuple(lib: Lib) -> Seen:
    @no_type_check
    def f(x):
        pair = Pair(x + 1, (x, 2))
        return pair, pair.left * 2

    gm = lib.symbolic_trace(f)
    out = gm(torch.zeros(1))
    return [*show(gm, torch.zeros(1)), type(out[0]).__name__]


@program(claims=("create-arg-dict",))
def a_dict_is_rebuilt_with_its_keys_and_values_converted(lib: Lib) -> Seen:
    p, q = proxies(lib, "x", "y")
    create_arg = p.tracer.create_arg
    a = create_arg({"a": p, 1: 2, (1, 2): [q], None: {"b": q}})
    ordered = create_arg(collections.OrderedDict(z=p, y=1))
    return [
        a == {"a": p.node, 1: 2, (1, 2): [q.node], None: {"b": q.node}},
        repr(a),
        type(ordered).__name__,
        repr(ordered),
        error(lambda: create_arg({p: 1}), chars=80),
        error(lambda: create_arg({(1, p): 1}), chars=80),
    ]


@program(claims=("create-arg-slice-range",))
def slices_and_ranges_are_rebuilt(lib: Lib) -> Seen:
    p = proxy(lib)
    create_arg = p.tracer.create_arg
    return [
        create_arg(slice(p, None, 2)) == slice(p.node, None, 2),
        repr(create_arg(slice(p, (p, 1), p))),
        create_arg(range(3)) == range(3),
        repr(create_arg(range(5, 1, -2))),
        error(lambda: range(p)),
    ]


@program(claims=("create-arg-fx-create-arg-protocol",))
def an_object_may_convert_itself(lib: Lib) -> Seen:
    class Scaled:
        def __init__(self, value: AnyValue, factor: int) -> None:
            self.value, self.factor = value, factor

        def __fx_create_arg__(self, tracer: AnyValue) -> AnyValue:
            value = tracer.create_arg(self.value)
            args = (value, self.factor)
            return tracer.create_node("call_function", torch.mul, args, {})

    p = proxy(lib)
    node = p.tracer.create_arg(Scaled(p, 4))
    return [
        type(node).__name__,
        lines(p.node.graph),
        *show(
            lib.symbolic_trace(lambda x, y: x + Scaled(y, 2)), 1, torch.ones(1)
        ),
        lines(lib.Tracer().trace(lambda x: x.index_add([Scaled(x, 3)], k=1))),
    ]


@program(claims=("create-arg-dataclass",))
def a_dataclass_becomes_a_call_of_its_class(lib: Lib) -> Seen:
    p = proxy(lib)
    node = p.tracer.create_arg(Record(p, [p, 2]))
    gm = lib.symbolic_trace(lambda x: Record(x + 1))
    out = gm(torch.zeros(1))
    return [
        node.op,
        node.target is Record,
        repr((node.args, node.kwargs)),
        lines(p.node.graph),
        show(gm),
        (type(out).__name__, out.u, out.v),
    ]


@program(claims=("create-arg-constants",))
def constants_pass_through_unchanged(lib: Lib) -> Seen:
    t = lib.proxy.GraphAppendingTracer(lib.Graph())
    values: list[object] = [
        "text",
        7,
        2.5,
        True,
        1 + 2j,
        Color.RED,
        Color.BLUE,
        Level.HIGH,
        None,
        ...,
        torch.float16,
        torch.device("cpu", 0),
        torch.strided,
        torch.channels_last,
        torch.ones(2),
        float("inf"),
        -0.0,
        10**30,
    ]
    return [[t.create_arg(v) is v for v in values], lines(t.graph)]


@program(claims=("create-arg-op-overload",))
def operator_objects_pass_through_unchanged(lib: Lib) -> Seen:
    t = lib.proxy.GraphAppendingTracer(lib.Graph())
    overload = torch.ops.aten.add.Tensor
    cond = torch.ops.higher_order.cond
    return [t.create_arg(overload) is overload, t.create_arg(cond) is cond]


@program(claims=("create-arg-unsupported",))
def any_other_value_is_refused(lib: Lib) -> Seen:
    def generate() -> AnyValue:
        yield 1

    t = lib.proxy.GraphAppendingTracer(lib.Graph())
    values: list[object] = [
        object(),
        {1, 2},
        frozenset(),
        b"bytes",
        bytearray(b"a"),
        len,
        lambda: 1,
        generate(),
        int,
        NotImplemented,
        np.ones(2),
        torch.Generator(),
        torch.per_tensor_affine,
        torch,
    ]
    return [error(lambda v=v: t.create_arg(v), chars=80) for v in values]  # type: ignore[misc]


@program(claims=("create-arg-parameter",))
def a_parameter_becomes_get_attr(lib: Lib) -> Seen:
    param, stranger = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
    tracer = lib.Tracer()
    seen: list[object] = []

    @no_type_check
    def forward(self, x):
        node = tracer.create_arg(param)
        seen.append((node.op, node.target))
        seen.append(error(lambda: tracer.create_arg(stranger), chars=40))
        return torch.add(x, param) + self.sub.w

    sub = Root(lambda self, x: x, w=nn.Parameter(torch.ones(1)))
    graph = tracer.trace(Root(forward, p=param, sub=sub))
    return [*seen, lines(graph)]


@program(claims=("create-arg-tensor-constant",))
def a_tensor_constant_is_kept_on_the_root(lib: Lib) -> Seen:
    shared = torch.ones(2)

    @no_type_check
    def forward(self, x):
        x = x + shared
        x = torch.add(x, self.buffer)
        x = torch.mul(x, self.plain)
        x = torch.sub(x, shared)
        x = torch.sub(x, self.sub.deep)
        return x + torch.zeros(2)

    sub = Root(lambda self, x: x)
    sub.__dict__["deep"] = torch.ones(2) * 5
    root = Root(forward, buffer=torch.ones(2) * 2, sub=sub)
    root.__dict__["plain"] = torch.ones(2) * 3
    tracer = lib.Tracer()
    graph = tracer.trace(root)
    gm = lib.GraphModule(root, graph)
    return [
        tracer.root is root,
        lines(graph),
        sorted(name for name, _ in gm.named_buffers()),
        [root._tensor_constant0 is shared, root._tensor_constant1],
        *show(gm, torch.zeros(2)),
    ]


@program(claims=("create-arg-overridable",))
def create_arg_can_accept_further_types(lib: Lib) -> Seen:
    def create_arg(self: AnyValue, a: object) -> AnyValue:
        if isinstance(a, set):
            return lib.Tracer.create_arg(self, sorted(a))
        return lib.Tracer.create_arg(self, a)

    graph = subclass(lib.Tracer, create_arg=create_arg)().trace(
        lambda x: (x.sum({1, 0}), [{"deep": {2}}])
    )
    return [
        lines(graph),
        error(lambda: lib.Tracer().trace(lambda x: x.sum({1}))),
    ]


@program(claims=("tensor-constructors-embedded",))
def tensor_constructors_run_while_tracing(lib: Lib) -> Seen:
    @no_type_check
    def f(x):
        index = torch.tensor([[0, 1], [0, 1]])
        sparse = torch.sparse_coo_tensor(index, [2.0, 3.0], (2, 2))
        return x + torch.ones(2), x + torch.arange(2), sparse @ x.reshape(2, 1)

    gm = lib.symbolic_trace(f)
    return [
        *show(gm, torch.ones(2)),
        [type(b).__name__ for _, b in gm.named_buffers()],
    ]


@program(claims=("tensor-constructors-dynamic-size",))
def tensor_constructors_sized_by_an_input(lib: Lib) -> Seen:
    @no_type_check
    def f(x):
        n = x.shape[0]
        return (
            torch.ones(n),
            torch.zeros((n, 2)),
            torch.full((n,), 7),
            torch.arange(x.size(0)),
            torch.ones_like(x),
            x.new_zeros(n, 2),
            torch.randn(n).shape,
        )

    refused = error(
        lambda: lib.symbolic_trace(lambda x: torch.ones(x.shape[0], 2)),
        chars=30,
    )
    gm = lib.symbolic_trace(f)
    return [*show(gm, torch.ones(3)), gm(torch.ones(1))[:5], refused]


@program(claims=("tensor-constructors-random",))
def random_constructors_give_one_fixed_value(lib: Lib) -> Seen:
    torch.manual_seed(0)
    gm = lib.symbolic_trace(lambda x: x + torch.randn(2))
    x = torch.zeros(2)
    return [
        *show(gm),
        torch.equal(gm(x), gm(x)),
        torch.equal(gm(x), gm(x + 1) - 1),
    ]


@program(claims=("create-arg-parameter",))
def a_module_as_an_argument_becomes_get_attr(lib: Lib) -> Seen:
    act = nn.ReLU()
    graph = lib.Tracer().trace(
        Root(lambda self, x: x.apply_all([self.act]), act=act)
    )
    return [
        lines(graph),
        error(lambda: lib.symbolic_trace(lambda x: x.apply(nn.ReLU()))),
    ]


@program()
def numpy_scalars_that_are_floats_pass_through(lib: Lib) -> Seen:
    t = lib.proxy.GraphAppendingTracer(lib.Graph())
    value = np.float64(2.5)
    return [t.create_arg(value) is value, t.create_arg(np.str_("a")) == "a"]


@program(differs="numpy-numbers", ours=["no error", 3.0, 3.0, False, 2.0])
def numpy_numbers_beside_a_proxy(lib: Lib) -> Seen:
    def forward(x: AnyValue) -> AnyValue:
        less = np.float64(2) < x
        return np.float64(3) * x, x + np.float32(2), less, np.int64(3) - x

    traced: list[AnyValue] = []
    said = error(lambda: traced.append(lib.symbolic_trace(forward)), chars=0)
    return [said, *(y.item() for gm in traced for y in gm(torch.ones(1)))]


@program(differs="numpy-functions", ours="TraceError:")
def a_function_of_numpy_is_given_a_proxy(lib: Lib) -> Seen:
    return error(lambda: lib.symbolic_trace(lambda x: np.sqrt(x)), chars=0)


@program()
def a_generator_is_stored_once_on_the_root(lib: Lib) -> Seen:
    generator = torch.Generator().manual_seed(3)

    @no_type_check
    def forward(self, x):
        y = torch.bernoulli(x, generator=self.own)
        return (
            y
            + x.bernoulli(generator=generator)
            + y.bernoulli(generator=generator)
        )

    root = Root(forward)
    vars(root)["own"] = torch.Generator().manual_seed(4)
    gm = lib.symbolic_trace(root)
    return [show(gm, torch.ones(2) / 2), hasattr(root, "_opaque_obj1")]
