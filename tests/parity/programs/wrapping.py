"""Wrapped functions: calls that stay one node in the graph.

What is wrapped lives in modules made from source, one for each library, so
that nothing of one is seen by the other.
"""

from __future__ import annotations

import math

import torch

from tests.parity.harness import Lib, Seen, error, program
from tests.parity.programs._subjects import (
    Inner,
    Root,
    lines,
    module_of,
    without_wraps,
)

SQUARES = """
def my_custom_function(x, y):
    return x * x + y * y

{wrap}

def traced(x, y):
    return my_custom_function(x, y) + my_custom_function(y, 2)
"""


@program(claims=("wrap-leaf-function",))
def a_wrapped_function_stays_one_call(lib: Lib) -> Seen:
    source = SQUARES.format(wrap="lib.wrap('my_custom_function')")
    with module_of(source, lib=lib) as user:
        gm = lib.symbolic_trace(user.traced)
        targets = [n.target for n in gm.graph.nodes if n.op == "call_function"]
        seen = [
            targets[0] is user.my_custom_function,
            lines(gm.graph),
            without_wraps(gm.code),
            gm(torch.tensor(3.0), torch.tensor(4.0)),
        ]
    with module_of(SQUARES.format(wrap=""), lib=lib) as user:
        return [*seen, lines(lib.Tracer().trace(user.traced))]


@program(claims=("wrap-name-or-decorator",))
def wrap_takes_a_name_or_decorates(lib: Lib) -> Seen:
    by_name = SQUARES.format(wrap="given = lib.wrap('my_custom_function')")
    by_function = SQUARES.format(wrap="given = lib.wrap(my_custom_function)")
    decorated = SQUARES.format(wrap="").replace("def my", "@lib.wrap\ndef my")
    seen: list[object] = []
    for source in (by_name, by_function, decorated):
        with module_of(source, lib=lib) as user:
            graph = lib.Tracer().trace(user.traced)
            given = getattr(user, "given", user.my_custom_function)
            seen.append(lines(graph))
            seen.append(given == "my_custom_function" or given.__name__)
            seen.append(user.my_custom_function(3, 4))
    return [seen[0] == seen[3] == seen[6], *seen]


@program(claims=("wrap-name-or-decorator",))
def wrap_refuses_what_is_no_function(lib: Lib) -> Seen:
    return [
        error(lambda: lib.wrap(3), chars=39),
        error(lambda: lib.wrap(None), chars=39),
        error(lambda: lib.wrap(["f"]), chars=39),
    ]


@program(claims=("wrap-module-scope",))
def wrap_is_for_module_level(lib: Lib) -> Seen:
    source = """
    def wrapping():
        lib.wrap("f")

    class Body:
        try:
            lib.wrap("f")
        except NotImplementedError as raised:
            text = str(raised)

    def f(x):
        return x
    """
    with module_of(source, lib=lib) as user:
        return [
            error(user.wrapping, chars=48),
            error(lambda: lib.wrap(len), chars=48),
            user.Body.text[:48],
            lines(lib.Tracer().trace(lambda x: user.f(x) + 1)),
        ]


@program(claims=("wrap-len-sqrt-example",))
def len_and_sqrt_recorded_as_calls(lib: Lib) -> Seen:
    source = """
    from math import sqrt
    lib.wrap("len")
    lib.wrap("sqrt")

    def normalize(x):
        return x / sqrt(len(x))
    """
    with module_of(source, lib=lib) as user:
        gm = lib.symbolic_trace(user.normalize)
        x = torch.tensor([2.0, 4.0, 6.0, 8.0])
        targets = [n.target for n in gm.graph.nodes if n.op == "call_function"]
        return [
            lines(gm.graph),
            [targets[0] is len, targets[1] is math.sqrt],
            without_wraps(gm.code),
            gm(x),
            user.normalize(x),
            "len" in vars(user),
        ]


@program(claims=("leaf-functions-patched",))
def leaf_functions_are_replaced_where_they_are_looked_up(lib: Lib) -> Seen:
    source = """
    import math
    lib.wrap("mine")
    lib.wrap("len")

    def mine(x):
        return x

    original = mine
    seen = []

    def f(x):
        seen.append(mine is original)
        seen.append(globals()["mine"] is original)
        seen.append(math.sqrt is kept[0])
        seen.append("len" in globals())
        seen.append(mine.__name__)
        return mine(x)
    """
    with module_of(source, lib=lib, kept=[math.sqrt]) as user:
        lib.Tracer().trace(user.f)
        return [
            user.seen,
            user.mine is user.original,
            math.sqrt.__module__,
            "len" in vars(user),
            user.f.__globals__["mine"] is user.original,
        ]


@program(claims=("leaf-functions-patched",))
def wrapped_functions_called_without_proxies_just_run(lib: Lib) -> Seen:
    source = """
    ran = []

    @lib.wrap
    def table(n):
        ran.append(n)
        return [n, n + 1]

    def f(x):
        return x + table(3)[1] + table(x)[0] + table([x, 1])[0]
    """
    with module_of(source, lib=lib) as user:
        graph = lib.Tracer().trace(user.f)
        return [user.ran, lines(graph)]


@program(claims=("leaf-functions-patched",))
def proxies_are_found_inside_containers(lib: Lib) -> Seen:
    source = """
    @lib.wrap
    def leaf(*args, **kwargs):
        return 1

    def f(x):
        a = leaf([x])
        b = leaf({"k": (1, [x])})
        c = leaf(1, key=x)
        d = leaf(slice(x, None))
        e = leaf(1, key=[2])
        return a, b, c, d, e
    """
    with module_of(source, lib=lib) as user:
        return lines(lib.Tracer().trace(user.f))


@program(claims=("codegen-wrap-statements",))
def retracing_generated_code_keeps_wrapped_calls(lib: Lib) -> Seen:
    source = SQUARES.format(wrap="lib.wrap('my_custom_function')")
    with module_of(source, lib=lib) as user:
        gm = lib.symbolic_trace(user.traced)
        again = lib.symbolic_trace(gm)
        third = lib.symbolic_trace(Root(lambda self, x: self.gm(x, x), gm=gm))
        code_lines = [line for line in gm.code.splitlines() if line.strip()]
        return [
            lines(again.graph),
            without_wraps(again.code) == without_wraps(gm.code),
            lines(third.graph),
            'wrap("user_code_my_custom_function")' in code_lines[0],
            code_lines[1].startswith("def forward"),
        ]


@program(
    claims=("codegen-wrap-statements", "wrap-len-sqrt-example"),
    differs="wrap-line",
    ours=['wrap("len")', 'wrap("math_sqrt")', True],
)
def the_wrap_lines_of_generated_code(lib: Lib) -> Seen:
    source = """
    from math import sqrt
    lib.wrap("len")

    def normalize(x):
        return x / sqrt(len(x))
    """
    with module_of(source, lib=lib) as user:
        gm = lib.symbolic_trace(user.normalize)
        text = [line for line in gm.code.splitlines() if "wrap(" in line]
        return [
            *text,
            gm.graph.python_code("self").globals.get("wrap") is lib.wrap,
        ]


@program(claims=("wrap-leaf-function",))
def an_alias_of_a_wrapped_name_is_not_wrapped(lib: Lib) -> Seen:
    source = """
    @lib.wrap
    def leaf(x):
        return x * 2

    alias = leaf

    class Holder:
        method = staticmethod(leaf)

    def f(x):
        return alias(x), Holder.method(x), leaf(x), (lambda: leaf)()(x)
    """
    with module_of(source, lib=lib) as user:
        return lines(lib.Tracer().trace(user.f))


@program(claims=("wrap-leaf-function",))
def wrapping_twice_wraps_once(lib: Lib) -> Seen:
    source = """
    lib.wrap("leaf")
    lib.wrap("leaf")

    @lib.wrap
    def leaf(x):
        return x * 2

    def f(x):
        return leaf(x)
    """
    with module_of(source, lib=lib) as user:
        original = user.leaf
        return [
            lines(lib.Tracer().trace(user.f)),
            user.leaf is original,
            lines(lib.Tracer().trace(user.f)),
        ]


@program(
    differs="wrap-checked",
    ours=["TypeError", "TypeError", "TypeError"],
)
def wrap_refuses_classes_and_other_callables(lib: Lib) -> Seen:
    source = """
    import torch, functools

    class Callable:
        __name__ = "instance"

        def __call__(self, x):
            return x

    instance = Callable()
    raised = []
    for value in (torch.nn.Linear, Callable, instance):
        try:
            lib.wrap(value)
            raised.append("no error")
        except Exception as problem:
            raised.append(type(problem).__name__)
    """
    with module_of(source, lib=lib) as user:
        return [*user.raised]


@program(
    differs="wrap-checked",
    ours=["no error", "NameError", "x * 2", "no error"],
)
def a_wrapped_name_that_its_module_lacks(lib: Lib) -> Seen:
    source = """
    lib.wrap("does_not_exist")

    def f(x):
        return x * 2
    """
    with module_of(source, lib=lib) as user:
        elsewhere = error(lambda: lib.Tracer().trace(Inner())).partition(":")[0]
        here = error(lambda: lib.Tracer().trace(user.f)).partition(":")[0]
        user.does_not_exist = lambda x: x
        graph = lib.Tracer().trace(user.f)
        mul = list(graph.nodes)[1]
        later = error(lambda: lib.Tracer().trace(user.f))
        return [elsewhere, here, f"x * {mul.args[1]}", later]
