"""Signatures of generated code: parameters, defaults, annotations."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any, no_type_check

import torch

from tests.parity.harness import Lib, Seen, error, program, show
from tests.parity.programs._subjects import AnyValue, lines, module_of

ANNOTATED = """
import typing, enum, collections.abc
from typing import Any, Callable, Dict, List, Literal, NamedTuple, Optional
from typing import Tuple, Union
import torch
from torch import Tensor, nn

class Own:
    class Nested:
        pass

class Pair(NamedTuple):
    a: int

def traced(x: {annotation}, y):
    return x
"""


def annotated(lib: Lib, annotation: str) -> list[object]:
    """Graph and def line of a function with a parameter so annotated."""
    with module_of(ANNOTATED.format(annotation=annotation)) as user:
        try:
            gm = lib.symbolic_trace(user.traced)
        except Exception as raised:
            return [annotation, type(raised).__name__]
        return [
            annotation,
            def_line(gm),
            str(gm.graph).splitlines()[1],
            gm(1, 2),
        ]


def def_line(gm: AnyValue) -> str:
    """The line of the generated code that defines forward."""
    return str(re.findall("^def .*$", gm.code, re.MULTILINE)[0])


@program(claims=("codegen-type-annotations",))
def annotations_of_parameters_and_result_survive(lib: Lib) -> Seen:
    source = """
    import torch

    def f(x: torch.Tensor, y: int = 2) -> torch.Tensor:
        return x + y
    """
    with module_of(source) as user:
        gm = lib.symbolic_trace(user.f)
        types = {n.name: n.type for n in gm.graph.nodes}
        return [
            *show(gm, torch.ones(1)),
            [types["x"] is torch.Tensor, types["y"] is int, types["add"]],
            types["output"] is torch.Tensor,
            inspect.signature(type(gm).forward).return_annotation
            is torch.Tensor,
        ]


@program(claims=("codegen-type-annotations",))
def annotations_of_a_modules_forward_survive(lib: Lib) -> Seen:
    source = """
    import torch
    from typing import List, Optional

    class M(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.sub = Sub()

        def forward(self, x: torch.Tensor, n: Optional[int]=None) -> List[int]:
            y: torch.Tensor = self.sub(x)
            return [y, n]

    class Sub(torch.nn.Module):
        def forward(self, inner: float) -> float:
            return inner + 1
    """
    with module_of(source) as user:
        gm = lib.symbolic_trace(user.M())
        return [*show(gm, 1.5), [repr(n.type) for n in gm.graph.nodes]]


@program(
    differs="annotations-written",
    ours=["Callable[[int], str]", "typing.Annotated[int, 'note']", 1, 1],
)
def annotations_that_torch_cannot_write(lib: Lib) -> Seen:
    texts = ("Callable[[int], str]", "typing.Annotated[int, 'note']")
    both = [annotated(lib, text) for text in texts]
    return [*(seen[0] for seen in both), *(seen[-1] for seen in both)]


@program(claims=("codegen-type-annotations",))
def types_set_on_nodes_by_hand(lib: Lib) -> Seen:
    g = lib.Graph()
    x = g.placeholder("x", type_expr=torch.Tensor)
    y = g.call_function(torch.relu, (x,), type_expr=torch.Tensor)
    z = g.call_method("sum", (y,), type_expr=list[torch.Tensor])
    w = g.call_function(torch.add, (z, 1), type_expr=int | None)
    g.output((w, y), type_expr=tuple[torch.Tensor, torch.Tensor])
    gm = lib.GraphModule({}, g)
    w.type = int
    gm.recompile()
    return [str(g), gm.code, gm(torch.ones(2))]


@program(claims=("codegen-type-annotations",))
def annotate_gives_a_proxy_a_type(lib: Lib) -> Seen:
    annotate = importlib.import_module(f"{lib.__name__}.annotate").annotate

    @no_type_check
    def f(x):
        y = annotate(x + 1, torch.Tensor)
        n = annotate(3, int)
        return annotate(y.sum(), list[int]), n

    def twice(x: AnyValue) -> AnyValue:
        return annotate(annotate(x, int), str)

    gm = lib.symbolic_trace(f)
    return [*show(gm, torch.ones(2)), error(lambda: lib.symbolic_trace(twice))]


@program(claims=("codegen-comment-local-annotations",))
def comments_and_local_annotations_are_lost(lib: Lib) -> Seen:
    source = """
    import torch

    def f(x, y):
        # type: (torch.Tensor, int) -> torch.Tensor
        z: torch.Tensor = x + y
        w: int
        w = z * 2  # type: int
        return w
    """
    with module_of(source) as user:
        gm = lib.symbolic_trace(user.f)
        return [*show(gm, 1, 2), [n.type for n in gm.graph.nodes]]


@program(claims=("codegen-type-annotations",))
def annotations_of_starred_parameters(lib: Lib) -> Seen:
    source = """
    def f(x: int, *args: float, **kwargs: bool) -> None:
        return args[0], kwargs["k"]
    """
    with module_of(source) as user:
        gm = lib.symbolic_trace(user.f)
        return [*show(gm), gm(1, 2.0, k="b")]


@program(
    differs="keyword-only-behind-args",
    ours=[
        "def forward(self, x, *args, k = 'a', **kwargs):",
        ("b", "a"),
    ],
)
def keyword_only_parameters_behind_args(lib: Lib) -> Seen:
    @no_type_check
    def f(x, *args, k="a", **kwargs):
        return args[0], k

    gm = lib.symbolic_trace(f)
    return [def_line(gm), gm(1, "b", 2.0)]


@program(
    differs="signature-attribute-ignored",
    ours=["def forward(self, x, y = 2.0, k = 3):", 6.0],
)
def a_signature_that_is_not_the_functions(lib: Lib) -> Seen:
    @no_type_check
    def f(x, y=2.0, *, k=3):
        return x * y * k

    f.__signature__ = inspect.signature(lambda value: value)
    seen = error(lambda: lib.symbolic_trace(f))
    if seen != "no error":
        return [seen]
    gm = lib.symbolic_trace(f)
    return [def_line(gm), gm(1.0)]


@program(differs="defaults-stay-constants", ours=["no error"] * 2)
def a_tensor_as_default(lib: Lib) -> Seen:
    three = torch.full((1,), 3.0)

    def f(x: AnyValue, scale: AnyValue = three) -> AnyValue:
        return x * scale

    def traced() -> AnyValue:
        gm = lib.symbolic_trace(f)
        assert gm(2.0).tolist() == [6.0]
        return gm

    def copied() -> None:
        assert lib.Transformer(traced()).transform()(2.0).tolist() == [6.0]

    return [error(traced), error(copied)]


@program(claims=("codegen-placeholder-signature", "create-args-for-root"))
def defaults_are_kept_in_the_signature(lib: Lib) -> Seen:
    @no_type_check
    def f(a, b=1, c="two", d=(3, [4]), e=None, g=-0.5, *, h=True, **k):
        return a, b, c, d, e, g, h

    gm = lib.symbolic_trace(f)
    return [
        lines(gm.graph),
        def_line(gm),
        str(inspect.signature(gm.forward)),
        gm(0),
        gm(0, 9, h=8),
    ]


@program(claims=("codegen-placeholder-signature",))
def parameters_named_like_builtins(lib: Lib) -> Seen:
    @no_type_check
    def f(input, id, list=2, *args, type=3, **kwargs):
        return input + id * list - type + len(kwargs["k"].v), args[0]

    return [
        error(lambda: lib.symbolic_trace(f), chars=40),
        *show(lib.symbolic_trace(lambda input, dict, self_: input + dict)),
        lib.symbolic_trace(lambda input, dict, print: input + dict)(1, 2, 3),
    ]


@program(claims=("codegen-placeholder-signature",))
def a_placeholder_renamed_keeps_its_parameter(lib: Lib) -> Seen:
    g = lib.Graph()
    a = g.placeholder("x")
    b = g.create_node("placeholder", "y", (), {}, name="other")
    g.output(g.call_function(torch.add, (a, b)))
    a.name = "renamed"
    gm = lib.GraphModule({}, g)
    return [
        str(g),
        gm.code,
        gm(torch.ones(1), torch.ones(1)),
        gm(x=1, y=torch.ones(1)),
    ]


@program(claims=("create-args-for-root", "codegen-type-annotations"))
def annotated_functions_inside_a_future_import(lib: Lib) -> Seen:
    def f(x: int, y: torch.Tensor) -> list[Any]:
        return [x + 1, y]

    gm = lib.symbolic_trace(f)
    return [
        [n.type for n in gm.graph.nodes],
        def_line(gm),
        gm(1, 2),
    ]


@program(
    differs="functions-of-self",
    ours=[
        ["def forward(self, x):", "self_1 = self"],
        [5.0, 10.0],
        [5.0, 10.0],
        "no error",
    ],
)
def a_function_of_self(lib: Lib) -> Seen:
    @no_type_check
    def f(self, x):
        return x * self.w

    root = torch.nn.Module()
    root.w = torch.full((2,), 5.0)
    x = torch.tensor([1.0, 2.0])
    gm = lib.GraphModule(root, lib.Tracer().trace(f))
    run = error(lambda: gm(x))
    gm.w = root.w
    said = [line.strip() for line in gm.code.splitlines() if "self" in line]
    return [
        [line for line in said if "=" not in line or line == "self_1 = self"],
        gm(x).tolist(),
        lib.Interpreter(gm).run(gm, x).tolist(),
        run,
    ]
