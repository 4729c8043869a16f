"""Operators on proxies: every one a node, on either side, in every form."""

from __future__ import annotations

import operator
from typing import no_type_check

import torch

from tests.parity.harness import Lib, Seen, error, program, show
from tests.parity.programs._subjects import (
    lines,
    new_nodes,
    node_line,
    proxies,
    proxy,
)

REFLECTABLE = (
    "add",
    "sub",
    "mul",
    "floordiv",
    "truediv",
    "mod",
    "pow",
    "lshift",
    "rshift",
    "and_",
    "or_",
    "xor",
    "getitem",
    "matmul",
)
COMPARISONS = ("eq", "ne", "lt", "gt", "le", "ge")
UNARY = ("pos", "neg", "invert")


def dunder(name: str, prefix: str = "") -> str:
    """'__and__' of 'and_'; '__rand__' with the prefix 'r'."""
    return f"__{prefix}{name.strip('_')}__"


@program(claims=("magic-methods-installed", "magic-add-records-operator"))
def every_operator_has_its_dunder_on_proxy(lib: Lib) -> Seen:
    p, q = proxies(lib, "x", "y")
    seen = []
    for name in (*COMPARISONS, *REFLECTABLE):
        r = getattr(operator, name)(p, q)
        own = dunder(name) in vars(lib.Proxy)
        seen.append((own, r.node.target is getattr(operator, name)))
    for name in UNARY:
        r = getattr(operator, name)(p)
        own = dunder(name) in vars(lib.Proxy)
        seen.append((own, r.node.target is getattr(operator, name)))
    return [seen, lines(p.node.graph)]


@program(claims=("magic-dunder-naming",))
def dunders_are_named_after_the_table(lib: Lib) -> Seen:
    p = proxy(lib)
    cls = lib.Proxy
    direct = [
        (dunder(n), getattr(cls, dunder(n)).__name__)
        for n in COMPARISONS + REFLECTABLE + UNARY
    ]
    reflected = [
        (method.__name__, method.__qualname__)
        for method in [getattr(cls, dunder(n, "r")) for n in REFLECTABLE]
    ]
    return [
        node_line((p & 1).node),
        (p & 1).node.target is operator.and_,
        direct,
        reflected,
    ]


@program(
    claims=("magic-methods-installed",),
    differs="no-div",
    ours=[False, False, "no error", "call_method __div__ (x, 2) {}"],
)
def a_proxy_has_no_division_of_python_2(lib: Lib) -> Seen:
    p = proxy(lib)
    raised = error(lambda: p.__div__(2))
    last = list(p.node.graph.nodes)[-1]
    return [
        "__div__" in vars(lib.Proxy),
        "__rdiv__" in vars(lib.Proxy),
        raised,
        node_line(last),
    ]


@program(claims=("magic-tracer-of-first-operand",))
def the_first_operands_tracer_records(lib: Lib) -> Seen:
    graph = lib.Graph()
    tracers = [lib.proxy.GraphAppendingTracer(graph) for _ in range(2)]
    nodes = [graph.placeholder(name) for name in ("x", "y")]
    p, q = map(lib.Proxy, nodes, tracers)
    return [
        (p + q).tracer is p.tracer,
        (q - p).tracer is q.tracer,
        lines(graph),
    ]


@program(
    claims=("magic-tracer-of-first-operand",),
    differs="args-checked",
    ours=[
        "RuntimeError: Argument 'y' of Node 'add' does not belong",
        ["x: placeholder x () {}"],
        ["y: placeholder y () {}"],
    ],
)
def operands_of_two_graphs_do_not_mix(lib: Lib) -> Seen:
    p, q = proxy(lib, "x"), proxy(lib, "y")
    return [
        error(lambda: p + q, chars=43),
        lines(p.node.graph),
        lines(q.node.graph),
    ]


@program(claims=("magic-reflected",))
def a_proxy_on_the_right_of_a_plain_value(lib: Lib) -> Seen:
    p = proxy(lib)
    graph = p.node.graph
    pair, mixed, zero = [1, 2], (1, p.node), 0
    forms = [
        lambda: 2 + p,
        lambda: 2 - p,
        lambda: 2 * p,
        lambda: 2 // p,
        lambda: 2 / p,
        lambda: 2 % p,
        lambda: 2**p,
        lambda: 2 << p,
        lambda: 2 >> p,
        lambda: 2 & p,
        lambda: 2 | p,
        lambda: 2 ^ p,
        lambda: "text" + p,
        lambda: pair + p,
        lambda: mixed + p,
        lambda: 1.5 @ p,
        lambda: zero < p,
    ]
    return [error(lambda f=f: f()) for f in forms] + lines(graph)  # type: ignore[misc]


@program(claims=("magic-reflected",))
def reflected_dunders_put_the_proxy_second(lib: Lib) -> Seen:
    p = proxy(lib)
    results = [getattr(p, dunder(n, "r"))(5) for n in REFLECTABLE]
    return [node_line(r.node) for r in results]


@program(claims=("magic-comparison-recorded",))
def comparisons_are_proxies_not_bools(lib: Lib) -> Seen:
    p = proxy(lib)
    zero, nothing = 0, None
    results = [p > 0, p >= 0, p < 0, p <= 0, p == 0, p != 0]
    results += [zero < p, zero >= p, zero == p]
    results += [p == nothing, p != "a", nothing == p]
    return [
        [isinstance(r, lib.Proxy) for r in results],
        [node_line(r.node) for r in results],
    ]


@program(claims=("magic-add-records-operator",))
def operators_between_tensors_and_proxies(lib: Lib) -> Seen:
    @no_type_check
    def f(x):
        one = self_made
        return one + x, x + one, one - x, one == x, one @ x, one[0] * x, x**one

    self_made = torch.tensor([1.0, 2.0])
    return show(lib.symbolic_trace(f), torch.tensor([3.0, 4.0]))


@program()
def augmented_assignment_records_the_plain_operator(lib: Lib) -> Seen:
    @no_type_check
    def f(x, y):
        x += 1
        x -= y
        x *= 2
        x /= 3
        x //= 1
        x %= 5
        x **= 2
        y @= x
        return x, y

    @no_type_check
    def bits(x):
        x &= 6
        x |= 1
        x ^= 3
        x <<= 2
        x >>= 1
        return x

    return [
        *show(lib.symbolic_trace(f), torch.ones(2) * 9, torch.ones(2)),
        *show(lib.symbolic_trace(bits), torch.tensor([5])),
    ]


@program()
def functions_of_the_operator_module(lib: Lib) -> Seen:
    @no_type_check
    def f(x, y):
        z = operator.add(x, y)
        z = operator.iadd(z, 1)
        z = operator.mul(2, z)
        z = operator.neg(operator.getitem(z, 0))
        z = operator.methodcaller("clamp", min=-5)(z)
        return operator.attrgetter("shape")(z), operator.itemgetter(0)(z)

    return show(lib.symbolic_trace(f), torch.ones(2, 2), torch.ones(2))


@program()
def builtin_functions_with_an_operator_behind_them(lib: Lib) -> Seen:
    @no_type_check
    def f(x, y):
        return abs(x), pow(x, 2), sum([x, y, 1]), pow(2, y), sum((x,), start=y)

    return show(lib.symbolic_trace(f), torch.ones(2) * -2, torch.ones(2))


@program(claims=("create-arg-slice-range",))
def indexing_in_every_form(lib: Lib) -> Seen:
    p, i = proxies(lib, "x", "i")
    graph = p.node.graph
    p[0], p[-1], p[1:], p[:2], p[::2], p[1:3:1], p[:]
    p[...], p[None], p[..., 0], p[:, None, 1:], p[True], p["key"]
    p[i], p[i:], p[: i + 1], p[i, ..., i:], p[[0, 1]], p[[i, 2]]
    p[(1, 2), (0, 1)], p[()], p[1,], p[0][1][i], p[i.shape[0] :]
    p[p > 0], p[torch.float32]
    return lines(graph)


@program(claims=("magic-reflected",))
def tensors_numbers_and_strings_on_the_left_of_a_method(lib: Lib) -> Seen:
    p = proxy(lib)
    graph = p.node.graph
    t = torch.ones(2)
    return [
        error(lambda: new_nodes(graph, lambda: 3.5 * p)),
        new_nodes(graph, lambda: True + p),
        new_nodes(graph, lambda: 1j - p),
        new_nodes(graph, lambda: torch.float32 == p),
        [n.op for n in [(t + p).node, (t * p).node, (t == p).node]],
        [str(n.target) for n in [(t + p).node, (t / p).node, (t > p).node]],
    ]
