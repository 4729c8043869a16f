"""Traces of odd roots, and what passes and notes do beside them."""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import operator
import warnings
from collections.abc import Callable
from typing import no_type_check

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from tests.parity.harness import Lib, Made, Seen, error, program
from tests.parity.programs._subjects import AnyValue, Inner, Root, lines


def warned(act: Callable[[], object]) -> list[str]:
    """The start of each warning that `act` gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        act()
    return [str(warning.message)[:40] for warning in caught]


def decorated(function: AnyValue) -> AnyValue:
    """`function` with a wrapper around it, as decorators are written."""

    @functools.wraps(function)
    def wrapper(*args: AnyValue, **kwargs: AnyValue) -> AnyValue:
        return function(*args, **kwargs)

    return wrapper


def fake_values(
    lib: Lib, gm: Made, mode: AnyValue, *args: AnyValue
) -> list[object]:
    """Shape and requires_grad of each node's value, by FakeTensorProp."""
    path = f"{lib.__name__}.passes.fake_tensor_prop"
    prop = importlib.import_module(path).FakeTensorProp(gm, mode)
    prop.propagate_dont_convert_inputs(*args)
    values = [node.meta["val"] for node in gm.graph.nodes]
    return [(tuple(v.shape), v.requires_grad) for v in values]


@program(
    differs="constants-count-from-zero",
    ours=[True, True],
)
def constants_of_equal_roots_have_equal_names(lib: Lib) -> Seen:
    def stored() -> str:
        root = Root(lambda self, x: x + torch.ones(1))
        root.__dict__["_tensor_constant0"] = "taken"
        (node,) = lib.Tracer().trace(root).find_nodes(op="get_attr")
        return str(node.target)

    first = stored()
    return [stored() == first, stored() == first]


@program()
def a_tracer_whose_create_proxy_takes_less(lib: Lib) -> Seen:
    class Older(lib.Tracer):  # type: ignore[misc]
        """Overrides create_proxy as it was before proxy_factory_fn."""

        def create_proxy(
            self,
            kind: AnyValue,
            target: AnyValue,
            args: AnyValue,
            kwargs: AnyValue,
            name: AnyValue = None,
            type_expr: AnyValue = None,
            *_: AnyValue,
        ) -> AnyValue:
            return super().create_proxy(
                kind, target, args, kwargs, name, type_expr
            )

    root = Root(lambda self, x: x + self.w, w=nn.Parameter(torch.ones(2)))
    return str(Older().trace(root))


@program(
    differs="shapes-constant-and-buffers",
    ours="no error",
)
def constant_shapes_of_parameters_beside_proxied_buffers(lib: Lib) -> Seen:
    root = Root(lambda self, x: x + self.b, b=torch.ones(2))
    tracer = lib.Tracer(param_shapes_constant=True)
    tracer.proxy_buffer_attributes = True
    return error(lambda: tracer.trace(root))


@program(
    differs="format-stack-inherited-only",
    ours=[0, 0, ["one"]],
)
def the_stack_that_new_nodes_inherit(lib: Lib) -> Seen:
    traceback = importlib.import_module(f"{lib.__name__}.traceback")
    outside = len(traceback.format_stack())
    with traceback.preserve_node_meta():
        unset = len(traceback.format_stack())
        traceback.set_stack_trace(["one"])
        inherited = traceback.format_stack()
        traceback.set_stack_trace([])
    return [outside, unset, inherited]


@program(
    differs="modes-warned-of",
    ours=[
        ["relu was recorded with gradients off, an"],
        ["relu was recorded with gradients off and"],
        ["relu was recorded with autocast to torch"],
        ["relu was recorded with gradients off, an"],
        [],
        [],
    ],
)
def calls_in_modes_that_no_graph_keeps(lib: Lib) -> Seen:
    def within(mode: AnyValue, inside: AnyValue = torch.relu) -> Seen:
        def f(x: AnyValue) -> AnyValue:
            with mode:
                y = inside(x)
            return y + 1

        return warned(lambda: lib.symbolic_trace(f))

    def left_off(x: AnyValue) -> AnyValue:
        torch.set_grad_enabled(False)
        return torch.relu(x)

    with torch.enable_grad():
        at_the_end = warned(lambda: lib.symbolic_trace(left_off))
    with torch.no_grad():
        as_it_began = within(torch.no_grad())
    return [
        within(torch.no_grad()),
        within(torch.inference_mode()),
        within(torch.autocast("cpu", dtype=torch.bfloat16)),
        at_the_end,
        as_it_began,
        within(torch.no_grad(), lambda x: x),
    ]


class Rounded(torch.autograd.Function):
    """Rounds, and lets the gradient pass."""

    @staticmethod
    def forward(ctx: AnyValue, x: AnyValue) -> AnyValue:
        return x.round()

    @staticmethod
    def backward(ctx: AnyValue, *gradients: AnyValue) -> AnyValue:
        return gradients[0]


apply_rounded: AnyValue = Rounded.apply


@program(
    differs="backward-warned-of",
    ours=[
        [0.0],
        ["a torch.autograd.Function is traced thro"],
        [],
        [1.0],
    ],
)
def a_function_with_its_own_backward(lib: Lib) -> Seen:
    def gradient(of: Callable[..., AnyValue]) -> list[float]:
        x = torch.tensor([1.5], requires_grad=True)
        of(x).sum().backward()
        found: list[float] = x.grad.tolist() if x.grad is not None else []
        return found

    def f(x: AnyValue) -> AnyValue:
        return apply_rounded(x)

    return [
        gradient(lib.symbolic_trace(f)),
        warned(lambda: lib.symbolic_trace(f)),
        warned(
            lambda: lib.symbolic_trace(
                lambda x: x + apply_rounded(torch.ones(1))
            )
        ),
        gradient(apply_rounded),
    ]


@program(
    differs="limits-of-a-proxy",
    ours=["TypeError: torch.iinfo takes a dtype, and Pr"],
)
def the_limits_of_an_unknown_dtype(lib: Lib) -> Seen:
    def f(x: AnyValue) -> AnyValue:
        return x.clamp(max=torch.iinfo(x.dtype).max)

    try:
        clamp = lib.symbolic_trace(f).graph.find_nodes(
            op="call_method", target="clamp"
        )
    except TypeError as error:
        return [f"TypeError: {error}"[:44]]
    return [node.kwargs for node in clamp]


class Around(Inner):
    """Adds something to what forward gives."""

    def __call__(self, *args: AnyValue) -> AnyValue:
        return super().__call__(*args) + 10


@program(
    differs="root-calls-warned-of",
    ours=[
        ["the root has a forward of its own, and o"],
        ["the root has forward_pre_hooks and forwa"],
        ["the root has a __call__ in its class, an"],
        [],
    ],
)
def a_root_whose_call_is_more_than_its_forward(lib: Lib) -> Seen:
    """And a graph module, whose call is no more than that."""
    own, hooked = Inner(), Inner()
    own.__dict__["forward"] = lambda x: x
    hooked.register_forward_hook(lambda m, args, out: out * 2)
    hooked.register_forward_pre_hook(lambda m, args: None)
    roots = (own, hooked, Around(), lib.symbolic_trace(Inner()))
    trace = lib.symbolic_trace
    return [warned(functools.partial(trace, root)) for root in roots]


@program()
def a_root_with_hooks_inside_another_module(lib: Lib) -> Seen:
    root = Inner()
    root.register_forward_hook(lambda m, args, out: out * 2)
    root.__dict__["forward"] = lambda x: torch.abs(x)
    return lines(lib.symbolic_trace(nn.Sequential(root)).graph)


@program(
    differs="decorated-roots",
    ours=["def forward(self, x, k : int = 3) -> torch.Tensor:", 5],
)
def a_decorated_root_with_keyword_only_parameters(lib: Lib) -> Seen:
    def forward(x: AnyValue, *, k: int = 3) -> torch.Tensor:
        total: torch.Tensor = x + k
        return total

    forward.__annotations__.pop("x")
    forward.__annotations__.update({"k": int, "return": torch.Tensor})
    try:
        gm = lib.symbolic_trace(decorated(forward))
    except ValueError as raised:
        return type(raised).__name__
    (line,) = (text for text in gm.code.splitlines() if "def" in text)
    return [line, gm(3, 2)]


@program(differs="decorated-roots", ours="RuntimeError")
def a_decorated_root_with_starred_parameters(lib: Lib) -> Seen:
    @no_type_check
    def forward(x, *rest):
        return x + rest[0]

    return error(
        lambda: lib.symbolic_trace(decorated(forward)), chars=0
    ).rstrip(": ")


@program(
    differs="decorated-roots",
    ours=["x", "neg", "output"],
)
def what_decorates_a_builtin_is_a_root(lib: Lib) -> Seen:
    @functools.wraps(torch.relu)
    def mine(x: AnyValue) -> AnyValue:
        return torch.neg(x)

    try:
        return [node.name for node in lib.Tracer().trace(mine).nodes]
    except AttributeError:
        return "AttributeError"


@program()
def fake_values_are_what_they_were_at_their_node(lib: Lib) -> Seen:
    @no_type_check
    def forward(self, x):
        y = x * self.w
        return y.t_()

    root = Root(forward, w=nn.Parameter(torch.ones(2)))
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        x = torch.ones(3, 2, requires_grad=True)
    return fake_values(lib, lib.symbolic_trace(root), mode, x)


@program(newest=True)
def inputs_stay_on_their_device(lib: Lib) -> Seen:
    def move(x: AnyValue) -> AnyValue:
        x.fake_device = torch.device("meta")
        return x + 1

    g = lib.Graph()
    g.output(g.call_function(move, (g.placeholder("x"),)))
    path = f"{lib.__name__}.passes.fake_tensor_prop"
    with FakeTensorMode() as mode:
        x = torch.ones(2)
    prop = importlib.import_module(path).FakeTensorProp
    prop(lib.GraphModule({}, g), mode).propagate_dont_convert_inputs(x)
    *_, add, _ = g.nodes
    return str(x.device), str(add.meta.get("val", x).device)


@program(
    differs="fake-tensor-prop-parameters",
    ours="no error",
)
def fake_values_of_a_module_with_parameters(lib: Lib) -> Seen:
    path = f"{lib.__name__}.passes.fake_tensor_prop"
    prop = importlib.import_module(path).FakeTensorProp
    gm = lib.symbolic_trace(nn.Sequential(nn.Linear(2, 2)))
    return error(lambda: prop(gm).propagate(torch.ones(1, 2)), chars=20)


@program(differs="interpreter-sees-edits", ours=["no error", 2.0])
def a_graph_edited_behind_an_interpreter(lib: Lib) -> Seen:
    gm = lib.symbolic_trace(lambda x: torch.relu(x))
    interpreter = lib.Interpreter(gm)
    x, relu, output = gm.graph.nodes
    with gm.graph.inserting_after(relu):
        output.args = (gm.graph.call_function(torch.add, (relu, x)),)
    results: list[torch.Tensor] = []
    raised = error(
        lambda: results.append(interpreter.run(torch.ones(1))), chars=0
    )
    return [raised, *(float(result) for result in results)]


@program(differs="interpreter-sees-edits", ours=["output"])
def a_table_of_last_uses_that_is_assigned(lib: Lib) -> Seen:
    interpreter = lib.Interpreter(lib.symbolic_trace(lambda x: torch.relu(x)))
    interpreter.user_to_last_uses = {}
    interpreter.run(torch.ones(1))
    return [str(node) for node in interpreter.env]


@program(differs="from-node-pairs", ours=[("add", "Interpreter_Transformer")])
def where_a_transformed_node_comes_from(lib: Lib) -> Seen:
    traceback = importlib.import_module(f"{lib.__name__}.traceback")
    gm = lib.symbolic_trace(lambda x: x + 1)
    for node in gm.graph.nodes:
        node.meta["stack_trace"] = "here"
    with traceback.preserve_node_meta():
        new = lib.Transformer(gm).transform()
    (add,) = new.graph.find_nodes(op="call_function", target=operator.add)
    return [
        source if isinstance(source, tuple) else type(source).__name__
        for source in add.meta["from_node"]
    ]


@program(differs="shape-prop-prints-nothing", ours=["RuntimeError:", 0])
def shapes_that_do_not_fit(lib: Lib) -> Seen:
    path = f"{lib.__name__}.passes.shape_prop"
    prop = importlib.import_module(path).ShapeProp
    gm = lib.symbolic_trace(lambda x: torch.mm(x, x))
    with contextlib.redirect_stderr(io.StringIO()) as printed:
        raised = error(lambda: prop(gm).propagate(torch.ones(1)), chars=0)
    return [raised, min(1, len(printed.getvalue()))]
