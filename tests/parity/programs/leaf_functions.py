"""Leaf functions that need no wrap, and what leaves are good for."""

from __future__ import annotations

import math
from typing import no_type_check

import torch
from torch import nn

from tests.parity.harness import Lib, Seen, error, program, show
from tests.parity.programs._subjects import (
    AnyValue,
    Root,
    lines,
    module_of,
    trace_with,
    without_wraps,
)


@program(claims=("autowrap-math", "non-torch-functions"))
def functions_of_math_need_no_wrap(lib: Lib) -> Seen:
    source = """
    import math
    from math import sqrt, floor as rounded, pi

    def f(x):
        return math.sin(x) + sqrt(x) * rounded(x) + math.pi + pi
    """
    with module_of(source) as user:
        gm = lib.symbolic_trace(user.f)
        return [
            lines(gm.graph),
            without_wraps(gm.code),
            gm(4.0) == user.f(4.0),
            error(lambda: lib.Tracer(autowrap_modules=()).trace(user.f)),
            math.sin is user.math.sin and user.sqrt is math.sqrt,
        ]


@program(claims=("autowrap-math",))
def other_modules_can_be_auto_wrapped(lib: Lib) -> Seen:
    helpers = (
        "def helper(x):\n    return x * 3\n\ndef _private(x):\n    return -x\n"
    )
    source = """
    import helpers
    from helpers import helper as h, _private
    import math

    def f(x):
        return h(x) + helpers.helper(x) + _private(x)
    """
    with (
        module_of(helpers, name="helpers") as other,
        module_of(source) as user,
    ):
        tracer = lib.Tracer(autowrap_modules=(other,))
        return [
            lines(tracer.trace(user.f)),
            lines(lib.Tracer().trace(user.f)),
            error(lambda: tracer.trace(lambda x: math.sqrt(x))),
        ]


@program(claims=("autowrap-functions",))
def single_functions_can_be_auto_wrapped(lib: Lib) -> Seen:
    source = """
    def helper(x, by=2):
        return x * by

    def f(x):
        return helper(x, by=3) + helper(2) + x
    """
    with module_of(source) as user:
        tracer = lib.Tracer(autowrap_functions=(user.helper,))
        graph = tracer.trace(user.f)
        gm = lib.GraphModule(tracer.root, graph)
        return [
            lines(graph),
            lines(lib.Tracer().trace(user.f)),
            without_wraps(gm.code),
            gm(5),
        ]


@program(claims=("autowrap-check-on-module-call",))
def the_globals_of_a_called_modules_forward_are_searched(lib: Lib) -> Seen:
    layers = """
    from math import floor
    from torch import nn

    class Flooring(nn.Module):
        def forward(self, x):
            return floor(x) + 1
    """
    helpers = """
    from math import ceil

    def up(x):
        return ceil(x)
    """
    with (
        module_of(layers, name="layers") as there,
        module_of(helpers, name="helpers") as helping,
    ):
        root = Root(lambda self, x: self.sub(x) * 2, sub=there.Flooring())
        return [
            lines(lib.Tracer().trace(root)),
            there.floor is math.floor,
            error(lambda: lib.Tracer().trace(lambda x: helping.up(x))),
        ]


@program(claims=("non-torch-functions",))
def functions_of_other_libraries_need_wrap(lib: Lib) -> Seen:
    @no_type_check
    def pure(x):
        return [i * x for i in range(2)]

    def trace(root: AnyValue) -> str:
        return error(lambda: lib.Tracer().trace(root), chars=40)

    return [
        trace(lambda x: float(x)),
        trace(lambda x: int(x)),
        trace(lambda x: len(x)),
        trace(lambda x: range(x)),
        trace(lambda x: "abc".join(x)),
        lines(lib.Tracer().trace(pure)),
        lines(lib.Tracer().trace(lambda x: torch.relu(x) + math.floor(x))),
    ]


@program(claims=("dynamic-parts-as-leaf-calls",))
def an_if_inside_a_leaf_is_decided_at_run_time(lib: Lib) -> Seen:
    source = """
    @lib.wrap
    def choose(x):
        if x.sum() > 0:
            return x * 10
        return -x

    def f(x):
        return choose(x + 1)
    """

    class Choosing(nn.Module):
        @no_type_check
        def forward(self, x):
            return x if x.sum() > 0 else -x

    x = torch.ones(2)
    root = Root(lambda self, x: self.sub(x) + 1, sub=Choosing())
    graph = trace_with(lib, root, is_leaf_module=lambda self, m, name: True)
    leaf = lib.GraphModule(root, graph)
    with module_of(source, lib=lib) as user:
        gm = lib.symbolic_trace(user.f)
        return [
            lines(gm.graph),
            [gm(x), gm(-3 * x), user.f(x), user.f(-3 * x)],
            lines(graph),
            [leaf(x), leaf(-3 * x)],
            error(lambda: lib.symbolic_trace(root)),
        ]


@program(claims=("tensor-constructors-random",))
def a_wrapped_maker_of_random_tensors_runs_each_time(lib: Lib) -> Seen:
    source = """
    import torch
    ran = []

    @lib.wrap
    def noise_like(x):
        ran.append("like")
        return torch.randn(x.shape)

    @lib.wrap
    def noise():
        ran.append("noise")
        return torch.randn(2)

    def f(x):
        return x + noise_like(x)

    def g(x):
        return x + noise()
    """
    with module_of(source, lib=lib) as user:
        gm, fixed = lib.symbolic_trace(user.f), lib.symbolic_trace(user.g)
        traced = list(user.ran)
        x = torch.zeros(2)
        return [
            traced,
            torch.equal(gm(x), gm(x)),
            torch.equal(fixed(x), fixed(x)),
            user.ran,
            lines(gm.graph),
            lines(fixed.graph),
        ]


PAIRS = """
class TensorPair(metaclass=lib.ProxyableClassMeta):
    def __init__(self, left, right):
        self.left, self.right = left, right

    def add(self, other):
        left = self.left + other.left
        right = self.right + other.right
        return TensorPair(left, right)

    def mul(self, other):
        left = self.left * other.left
        right = self.right * other.right
        return TensorPair(left, right)

def use_tensor_pair_ctor(x: TensorPair, y):
    s = x.add(TensorPair(y, y))
    return s.mul(x)

def of_constants(x):
    pair = TensorPair(2, right=3)
    return x * pair.left + pair.right

constant = TensorPair(4, 5)

def as_argument(x):
    return x.add(constant), TensorPair(TensorPair(x, 1), [x])
"""


@program()
def constructing_a_proxyable_class_is_recorded(lib: Lib) -> Seen:
    with module_of(PAIRS, lib=lib) as user:
        gm = lib.symbolic_trace(user.use_tensor_pair_ctor)
        one, two = user.TensorPair(1, 2), 3
        out, ref = gm(one, two), user.use_tensor_pair_ctor(one, two)
        return [
            *show(gm),
            (out.left, out.right) == (ref.left, ref.right),
            lines(lib.Tracer().trace(user.of_constants)),
            type(one).__name__,
        ]


@program()
def instances_of_a_proxyable_class_are_constants(lib: Lib) -> Seen:
    with module_of(PAIRS, lib=lib) as user:
        gm = lib.symbolic_trace(user.as_argument)
        added, nested = gm(user.TensorPair(1, 1))
        return [
            *show(gm),
            gm._TensorPair_constant_0 is user.constant,
            (added.left, added.right),
            (nested.left.right, len(nested.right)),
        ]
